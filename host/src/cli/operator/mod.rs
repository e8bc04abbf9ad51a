//! What the person who runs the store does with it, as commands.
//!
//! A file here is one command: its options, what it prints, how it ends. What it
//! does is the library's (`remora_host::storage::sqlite::operator`). None of it is a
//! tool: a session can't reach it, and none needs one but `review`, which asks the
//! component.
//!
//! Every command says in one line what it did; with `--json` it prints the
//! library's report as it is. Without `--agent` it is about every agent.

mod audit;
mod backup;
mod digest;
mod doctor;
mod export;
mod import;
pub(super) mod progress;
mod prune;
mod purge;
mod reindex;
mod restore;
mod restore_record;
mod review;
mod schedule;
mod span;
mod stats;
mod unused;
mod verify;

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clap::Subcommand;
use remora_host::storage::SqliteStorage;
use remora_host::{Clock as _, Error, ErrorKind, Instant, SystemClock};
use serde::Serialize;

use super::context::Context;
use super::failure::Exit;
use super::globals::Given;

/// What the operator can do.
#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Show how much of what is kept is still live
    Stats(stats::StatsArgs),
    /// Show what was saved, changed and deleted since
    Digest(digest::DigestArgs),
    /// Go through the memories that nobody has confirmed for longest
    Review(review::ReviewArgs),
    /// List live memories that nobody has used for long
    Unused(unused::UnusedArgs),
    /// Remove what has expired, and what was superseded or deleted long ago
    Prune(prune::PruneArgs),
    /// Erase memories for good, with every version and trace of their words
    Purge(purge::PurgeArgs),
    /// Take a deletion back
    RestoreRecord(restore_record::RestoreRecordArgs),
    /// Check that everything is still as it was written
    Verify(verify::VerifyArgs),
    /// Build the search index anew
    Reindex(reindex::ReindexArgs),
    /// Look for what endangers the store, and say what to do about it
    Doctor(doctor::DoctorArgs),
    /// Copy the store into a dated folder, while it is in use
    Backup(backup::BackupArgs),
    /// Make the store what a backup holds
    Restore(restore::RestoreArgs),
    /// Write memories as lines of JSON
    Export(export::ExportArgs),
    /// Read memories from lines of JSON
    Import(import::ImportArgs),
    /// Show the audit trail, and check it
    Audit(audit::AuditArgs),
    /// Have systemd run prune, backup, verify and digest every day
    Schedule(schedule::ScheduleArgs),
}

pub(crate) fn run(context: &mut Context<'_>, command: OperatorCommand) -> anyhow::Result<Exit> {
    match command {
        OperatorCommand::Stats(args) => stats::run(context, &args),
        OperatorCommand::Digest(args) => digest::run(context, &args),
        OperatorCommand::Review(args) => review::run(context, &args),
        OperatorCommand::Unused(args) => unused::run(context, &args),
        OperatorCommand::Prune(args) => prune::run(context, &args),
        OperatorCommand::Purge(args) => purge::run(context, args),
        OperatorCommand::RestoreRecord(args) => restore_record::run(context, &args),
        OperatorCommand::Verify(args) => verify::run(context, &args),
        OperatorCommand::Reindex(args) => reindex::run(context, &args),
        OperatorCommand::Doctor(args) => doctor::run(context, &args),
        OperatorCommand::Backup(args) => backup::run(context, &args),
        OperatorCommand::Restore(args) => restore::run(context, &args),
        OperatorCommand::Export(args) => export::run(context, &args),
        OperatorCommand::Import(args) => import::run(context, &args),
        OperatorCommand::Audit(args) => audit::run(context, &args),
        OperatorCommand::Schedule(args) => schedule::run(context, &args),
    }
}

/// What the options of a session can't mean for a command that has none.
const NO_SESSION: &[Given] = &[
    Given::Session,
    Given::Taint,
    Given::Clearance,
    Given::Origin,
    Given::Component,
];

/// The same, where it is not about one agent either.
const WHOLE_STORE: &[Given] = &[
    Given::Agent,
    Given::Session,
    Given::Taint,
    Given::Clearance,
    Given::Origin,
    Given::Component,
];

/// The moment it is.
fn now() -> Instant {
    SystemClock.now()
}

/// The store, which must be there: an operator who mistypes its name should hear
/// so, and not be told that a new one is in perfect order.
fn storage(context: &mut Context<'_>, command: &str) -> Result<SqliteStorage, Error> {
    context.globals.refuse(command, NO_SESSION)?;
    open_existing(context)
}

/// The same, for a command that has a use for some of these options.
fn open_existing(context: &mut Context<'_>) -> Result<SqliteStorage, Error> {
    let folder = existing(context)?;
    SqliteStorage::open(&folder, context.sqlite_options())
}

/// The folder of a store that is there.
fn existing(context: &mut Context<'_>) -> Result<PathBuf, Error> {
    let folder = context.name_store()?;
    if !folder.join("store.key").exists() && !folder.join("sessions.db").exists() {
        // A folder that can't be looked into is another matter, and opening says which.
        let unreadable = match std::fs::read_dir(&folder) {
            Ok(_) => false,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if !unreadable && !folder.join(".restore").exists() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("There is no store in {}", folder.display()),
                "--store DIR or REMORA_STORE says where it is, else it is in the platform's data \
                 folder",
                "Name the folder of one; saving a memory makes one",
            ));
        }
    }
    Ok(folder)
}

/// A report as JSON, on one line.
fn json(context: &mut Context<'_>, report: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(report)?;
    context.console.line(&text)?;
    Ok(())
}

/// `1 record`, `2 records`.
fn counted(number: u64, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {many}")
    }
}

/// Bytes, for people.
fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut tenths = u128::from(number).saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    let name = UNITS.get(unit).unwrap_or(&"");
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// A date to the day.
fn day(at: Instant) -> String {
    let text = at.to_string();
    text.get(..10).unwrap_or(&text).to_owned()
}

/// Whether somebody can be asked.
fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, and returns what was typed, trimmed; none at the end of the input.
fn ask(context: &mut Context<'_>, question: &str) -> io::Result<Option<String>> {
    context.console.prompt(question)?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        context.console.remark("")?;
        return Ok(None);
    }
    Ok(Some(line.trim().to_owned()))
}

/// Whether the answer is yes; anything but that is no.
fn agreed(context: &mut Context<'_>, question: &str) -> io::Result<bool> {
    let answer = ask(context, &format!("{question} [y/N] "))?;
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_well() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(1_572_864), "1.5 MiB");
        assert_eq!(bytes(u64::MAX), "16383.9 PiB");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(counted(1, "record", "records"), "1 record");
        assert_eq!(counted(0, "record", "records"), "0 records");
    }
}
