//! The truth table: what each operation answers, and what is there afterwards,
//! for every pair of a session's level and a record's.
//!
//! [`generate`] writes it from a specification that is in this file alone and
//! shares nothing with the guest or the host: levels here are numbers. The
//! written table (`tests/truth-table.tsv`) is what the tests run from; `.ci/run`
//! writes it again and fails where it differs.
//!
//! # What a row means
//!
//! One store holds one record, saved under the key `k` by a session at the
//! record's level. A session at the session's level does the operation once.
//! `answer` is what it is told, `after` is what then stands under `k` on each
//! shelf that has something, as a session of just that level sees it.

use std::fmt::Write as _;

/// The levels, lowest first, as the table writes them.
pub const LEVELS: [&str; 4] = ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"];

/// The written table.
pub const WRITTEN: &str = include_str!("../truth-table.tsv");

/// The tools: held to by the real component on real files, and by the guest
/// alone.
pub const TOOLS: [&str; 10] = [
    "memory_get",
    "memory_list",
    "memory_search",
    "memory_status",
    "memory_save",
    "memory_save-another-key",
    "memory_delete",
    "memory_delete-hide-lower",
    "memory_confirm",
    "memory_history",
];

/// The imports: held to by the host alone, asked by a plugin without a policy.
pub const IMPORTS: [&str; 15] = [
    "shelf.fetch",
    "shelf.page",
    "shelf.search",
    "shelf.present",
    "shelf.versions",
    "shelf.stale",
    "shelf.used",
    "shelf.counts",
    "shelf.tags",
    "put",
    "put-another-key",
    "put-superseding",
    "retire",
    "retire-hide-lower",
    "stamp",
];

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The session's level.
    pub session: String,
    /// The record's level.
    pub record: String,
    /// What the session does.
    pub operation: String,
    /// What it is told.
    pub answer: String,
    /// What then stands under `k`.
    pub after: String,
}

/// The rows of a written table.
///
/// # Panics
/// On a line that is none.
pub fn read(table: &str) -> Vec<Row> {
    let mut lines = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    assert_eq!(
        lines.next(),
        Some("operation\tsession\trecord\tanswer\tafter"),
        "the names of the columns"
    );
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [operation, session, record, answer, after] = fields[..] else {
                panic!("not a row: {line:?}");
            };
            let owned = |text: &str| text.to_owned();
            Row {
                session: owned(session),
                record: owned(record),
                operation: owned(operation),
                answer: owned(answer),
                after: owned(after),
            }
        })
        .collect()
}

/// Writes the table.
#[must_use]
pub fn generate() -> String {
    let mut table = String::from(HEADER);
    for operation in TOOLS.into_iter().chain(IMPORTS) {
        table.push('\n');
        for (session, own) in LEVELS.into_iter().enumerate() {
            for (record, its) in LEVELS.into_iter().enumerate() {
                let (answer, after) = specify(operation, session, record);
                writeln!(table, "{operation}\t{own}\t{its}\t{answer}\t{after}")
                    .expect("a String takes it");
            }
        }
    }
    table
}

const HEADER: &str = "\
# The truth table of Remora's levels. Written by
#     cargo run -p remora-tests --bin truth-table > tests/truth-table.tsv
# from the specification in tests/src/table.rs; .ci/run writes it again and fails on
# a difference. Run by tests/tests/truth_table.rs: memory_… against the real component
# on real files, and against the component with a host that hands out every shelf; the
# others against the host with a component that asks for everything.
#
# One record stands under the key k, saved at the level `record`; a session at the level
# `session` does the operation. `answer` is what it is told, `after` what then stands
# under k on each shelf that has something, as a session of that level alone sees it:
# version 1 or 2, or a tombstone.
operation\tsession\trecord\tanswer\tafter
";

/// What happens. Levels are numbers, 0 for PUBLIC.
fn specify(operation: &str, session: usize, record: usize) -> (String, String) {
    let (own, its) = (LEVELS[session], LEVELS[record]);
    let same = session == record;
    let seen = record <= session;
    let untouched = format!("{its} 1");
    let also_own = |what: &str| {
        let mut shelves = [(record, "1"), (session, what)];
        shelves.sort_unstable();
        shelves
            .map(|(level, what)| format!("{} {what}", LEVELS[level]))
            .join(", ")
    };
    let text = str::to_owned;
    match operation {
        "memory_get" | "memory_list" | "memory_search" | "memory_history" if seen => {
            (text(its), untouched)
        }
        "memory_get" | "memory_list" | "memory_search" | "memory_history" => {
            (text("nothing"), untouched)
        }
        "memory_confirm" if seen => (format!("confirmed {its}"), untouched),
        "memory_confirm" => (text("not_found"), untouched),
        "memory_status" => {
            let readable: Vec<String> = (0..=session)
                .rev()
                .map(|level| format!("{} {}", LEVELS[level], usize::from(level == record)))
                .collect();
            (readable.join(", "), untouched)
        }
        "memory_save" if same => (format!("updated {own} 2"), format!("{own} 2")),
        "memory_save" => (format!("created {own} 1"), also_own("1")),
        "memory_save-another-key" => (format!("created {own} 1"), untouched),
        "memory_delete" | "memory_delete-hide-lower" if record > session => {
            (text("not_found"), untouched)
        }
        "memory_delete" if same => (format!("deleted {own}"), text("-")),
        "memory_delete" => (text("no_such_record_at_level"), untouched),
        "memory_delete-hide-lower" if same => {
            (format!("deleted {own}"), format!("{own} tombstone"))
        }
        "memory_delete-hide-lower" => (format!("deleted {own}"), also_own("tombstone")),

        "shelf.fetch" | "shelf.page" | "shelf.search" | "shelf.present" | "shelf.versions"
        | "shelf.stale" | "shelf.used" | "shelf.counts" | "shelf.tags" => {
            (text(if seen { "served" } else { "no shelf" }), untouched)
        }
        "put" if same => (format!("updated {own} 2"), format!("{own} 2")),
        "put" => (format!("created {own} 1"), also_own("1")),
        "put-another-key" => (format!("created {own} 1"), untouched),
        "put-superseding" if same => (format!("created {own} 1"), text("-")),
        "put-superseding" if seen => (format!("created {own} 1"), untouched),
        "put-superseding" => (text("not_found"), untouched),
        "retire" if same => (text("retired"), text("-")),
        "retire" => (text("nothing"), untouched),
        "retire-hide-lower" if same => (text("retired"), format!("{own} tombstone")),
        // Where there is nothing to hide, no tombstone is left.
        "retire-hide-lower" if !seen => (text("nothing"), untouched),
        "retire-hide-lower" => (text("nothing"), also_own("tombstone")),
        "stamp" if seen => (text("stamped"), untouched),
        "stamp" => (text("not_found"), untouched),
        other => unreachable!("the specification lacks {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_table_is_the_generated_one() {
        assert!(
            WRITTEN == generate(),
            "write it again: cargo run -p remora-tests --bin truth-table > tests/truth-table.tsv"
        );
    }

    #[test]
    fn it_has_every_pair_for_every_operation() {
        let rows = read(WRITTEN);
        assert_eq!(rows.len(), (TOOLS.len() + IMPORTS.len()) * 16);
    }
}
