//! Integrity: whose words are more trusted, and what origins, standings and outcomes are
//! called in JSON.

use crate::contract::{Origin, Outcome, Standing};

/// Whether words of origin `a` are more trusted than words of origin `b`.
pub fn more_trusted(a: Origin, b: Origin) -> bool {
    distance(a) < distance(b)
}

/// Whether no origin is more trusted than this one.
pub fn most_trusted(origin: Origin) -> bool {
    matches!(origin, Origin::User)
}

/// The name of an origin.
pub fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::User => "USER",
        Origin::Agent => "AGENT",
        Origin::Tool => "TOOL",
    }
}

/// The name of a standing.
pub fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Trusted => "trusted",
        Standing::Pending => "pending",
        Standing::Quarantined => "quarantined",
    }
}

/// The name of an outcome.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Updated => "updated",
        Outcome::Unchanged => "unchanged",
        Outcome::Pending => "pending",
        Outcome::Quarantined => "quarantined",
    }
}

/// How far an origin stands from the person. Written out, so that the order here does not
/// hang on the order of the cases in `wit/`.
fn distance(origin: Origin) -> u8 {
    match origin {
        Origin::User => 0,
        Origin::Agent => 1,
        Origin::Tool => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_more_trusted_than_an_agent_and_an_agent_than_a_tool() {
        let all = [Origin::User, Origin::Agent, Origin::Tool];
        for (i, a) in all.into_iter().enumerate() {
            assert_eq!(most_trusted(a), i == 0);
            for (j, b) in all.into_iter().enumerate() {
                assert_eq!(more_trusted(a, b), i < j, "{a:?} and {b:?}");
            }
        }
    }
}
