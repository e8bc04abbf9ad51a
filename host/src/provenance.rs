//! Where words come from, and whether they are believed.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Who the words of a record come from. The dual of [`Level`](crate::Level): a
/// session's origin only falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The person's own words.
    User,
    /// The model's.
    Agent,
    /// Fetched, read or returned by something outside the conversation.
    Tool,
}

impl Origin {
    /// Every origin, most trusted first.
    pub const ALL: [Self; 3] = [Self::User, Self::Agent, Self::Tool];

    const fn distrust(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Agent => 1,
            Self::Tool => 2,
        }
    }

    /// Whether words of this origin are trusted more than those of `other`.
    #[must_use]
    pub const fn outranks(self, other: Self) -> bool {
        self.distrust() < other.distrust()
    }

    /// The less trusted of the two: what a session is after hearing both.
    #[must_use]
    pub const fn meet(self, other: Self) -> Self {
        if self.outranks(other) { other } else { self }
    }

    /// Its name in JSON and in files, `USER` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "USER",
            Self::Agent => "AGENT",
            Self::Tool => "TOOL",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Origin {
    /// As its name.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Origin {
    type Err = Error;

    /// Reads an origin's name in any case.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|origin| origin.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| {
                Error::invalid(
                    format!("\"{}\" is not an origin", text.escape_debug()),
                    "An origin is user, agent or tool, in any case",
                    "Give one of these",
                )
            })
    }
}

/// Whether a record is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Served by every reading tool.
    Trusted,
    /// Would replace something more trusted, so it waits for a person.
    Pending,
    /// Comes from outside, so it is kept apart until a person endorses it.
    Quarantined,
}

impl Standing {
    /// Every standing.
    pub const ALL: [Self; 3] = [Self::Trusted, Self::Pending, Self::Quarantined];

    /// Its name in JSON and in files, `trusted` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Pending => "pending",
            Self::Quarantined => "quarantined",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Standing {
    /// As its name.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_only_falls() {
        for (i, a) in Origin::ALL.into_iter().enumerate() {
            for (j, b) in Origin::ALL.into_iter().enumerate() {
                assert_eq!(a.meet(b), Origin::ALL[i.max(j)]);
                assert_eq!(a.outranks(b), i < j);
            }
        }
    }
}
