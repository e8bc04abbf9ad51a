//! Levels: their order, their names, and the guest's own check of what the host hands out.
//!
//! The host hands out nothing above the taint, and this module does not rely on it: every
//! shelf and every record passes [`visible`] or [`visible_shelves`] before any other module
//! sees it. What fails is dropped in silence, as if it did not exist. Nowhere else in the
//! crate are two levels compared.

use crate::contract::{Level, Memory};
use crate::host::Shelf;

/// Whether data at level `a` may reach a session at level `b`: `a <= b`.
pub fn can_flow_to(a: Level, b: Level) -> bool {
    height(a) <= height(b)
}

/// The name of a level as JSON and people see it.
pub fn name(level: Level) -> &'static str {
    match level {
        Level::Public => "PUBLIC",
        Level::Internal => "INTERNAL",
        Level::Confidential => "CONFIDENTIAL",
        Level::Restricted => "RESTRICTED",
    }
}

/// The level that nothing lies below, so that nobody is shut out of it.
pub const LOWEST: Level = Level::Public;

/// Whether a record may be returned to a session at `taint`.
pub fn visible(memory: &Memory, taint: Level) -> bool {
    can_flow_to(memory.level, taint)
}

/// A shelf that passed the check, with its level (asked for once: it is a host call).
#[derive(Debug)]
pub struct VisibleShelf<S> {
    /// The shelf.
    pub shelf: S,
    /// The level it said it has.
    pub level: Level,
}

/// The shelves that a session at `taint` may read, highest level first, whatever order
/// and however many the host handed out.
pub fn visible_shelves<S: Shelf>(shelves: Vec<S>, taint: Level) -> Vec<VisibleShelf<S>> {
    let mut visible: Vec<VisibleShelf<S>> = shelves
        .into_iter()
        .map(|shelf| VisibleShelf {
            level: shelf.level(),
            shelf,
        })
        .filter(|entry| can_flow_to(entry.level, taint))
        .collect();
    visible.sort_by_key(|entry| std::cmp::Reverse(height(entry.level)));
    visible
}

/// Where a level stands in the lattice. Written out, so that the order here does not hang
/// on the order of the cases in `wit/`.
fn height(level: Level) -> u8 {
    match level {
        Level::Public => 0,
        Level::Internal => 1,
        Level::Confidential => 2,
        Level::Restricted => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [Level; 4] = [
        Level::Public,
        Level::Internal,
        Level::Confidential,
        Level::Restricted,
    ];

    #[test]
    fn flows_up_and_sideways_but_never_down() {
        for (i, a) in LEVELS.into_iter().enumerate() {
            for (j, b) in LEVELS.into_iter().enumerate() {
                assert_eq!(can_flow_to(a, b), i <= j, "{a:?} to {b:?}");
            }
        }
    }

    #[test]
    fn nothing_lies_below_the_lowest_level() {
        for level in LEVELS {
            assert!(can_flow_to(LOWEST, level));
        }
    }

    #[test]
    fn names_are_upper_case() {
        assert_eq!(
            LEVELS.map(name),
            ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]
        );
    }
}
