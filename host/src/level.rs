//! Levels, and the one place in the host where two of them are compared.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// How sensitive something is: PUBLIC < INTERNAL < CONFIDENTIAL < RESTRICTED.
///
/// The type has no order of its own on purpose: whatever asks whether one level
/// may reach another goes through [`can_flow_to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Anybody may see it.
    Public,
    /// For the people of one house.
    Internal,
    /// For those who need it.
    Confidential,
    /// For the few who are named.
    Restricted,
}

/// Whether data at `from` may reach a session (or a file) at `to`.
///
/// The whole policy on levels rests on this function: no session reads what
/// can't flow to its taint, and it writes at its taint alone.
#[must_use]
pub const fn can_flow_to(from: Level, to: Level) -> bool {
    from.rank() <= to.rank()
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Self; 4] = [
        Self::Public,
        Self::Internal,
        Self::Confidential,
        Self::Restricted,
    ];

    const fn rank(self) -> u8 {
        match self {
            Self::Public => 0,
            Self::Internal => 1,
            Self::Confidential => 2,
            Self::Restricted => 3,
        }
    }

    /// Its name as people and JSON write it, `CONFIDENTIAL` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "PUBLIC",
            Self::Internal => "INTERNAL",
            Self::Confidential => "CONFIDENTIAL",
            Self::Restricted => "RESTRICTED",
        }
    }

    /// Its name as files carry it, `confidential` for example.
    #[must_use]
    pub const fn file_stem(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
        }
    }

    /// The higher of the two: what a session has observed after both.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        if can_flow_to(self, other) {
            other
        } else {
            self
        }
    }

    /// The levels that a session at `taint` may read, its own first.
    pub fn readable_at(taint: Self) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .rev()
            .filter(move |level| can_flow_to(*level, taint))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Level {
    /// As its name.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Level {
    type Err = Error;

    /// Reads a level's name in any case.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| {
                Error::invalid(
                    format!("\"{}\" is not a level", text.escape_debug()),
                    "A level is PUBLIC, INTERNAL, CONFIDENTIAL or RESTRICTED, in any case",
                    "Give one of these",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_flows_up_and_never_down() {
        for (i, from) in Level::ALL.into_iter().enumerate() {
            for (j, to) in Level::ALL.into_iter().enumerate() {
                assert_eq!(can_flow_to(from, to), i <= j, "{from} to {to}");
            }
        }
    }

    #[test]
    fn the_join_is_the_higher_of_two() {
        assert_eq!(Level::Public.join(Level::Restricted), Level::Restricted);
        assert_eq!(Level::Restricted.join(Level::Public), Level::Restricted);
        assert_eq!(Level::Internal.join(Level::Internal), Level::Internal);
    }

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!(
            "Confidential".parse::<Level>().ok(),
            Some(Level::Confidential)
        );
        assert!("SECRET".parse::<Level>().is_err());
        assert!("".parse::<Level>().is_err());
    }
}
