//! `verify`: whether everything is still as it was written.

use std::path::Path;

use clap::Args;
use remora_host::storage::SqliteStorage;
use remora_host::storage::sqlite::SqliteOptions;
use remora_host::storage::sqlite::operator::Verification;
use remora_host::{Error, ErrorKind};
use serde_json::json;

use super::progress::Line;
use super::{counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

/// Where to look for what did it.
const DOCTOR: &str = "`remora doctor` looks at what may be behind it: disk, permissions, room, \
                      clock.";

#[derive(Args, Debug)]
#[command(after_help = "\
Of --agent, or of the whole store with its sessions. Every table, page, key, index, seal
and the audit trail of each file are checked. Exits with 1 where anything is wrong.
`remora --store BACKUP verify` checks a backup, against its manifest too.")]
pub(crate) struct VerifyArgs {}

pub(super) fn run(context: &mut Context<'_>, _: &VerifyArgs) -> anyhow::Result<Exit> {
    let agent = context.globals.agent.clone();
    let folder = context.name_store()?;
    if SqliteStorage::is_backup(&folder) {
        return backup(context, &folder);
    }
    let storage = match storage(context, "verify") {
        Ok(storage) => storage,
        // What keeps a store from being opened is the first thing that is wrong.
        Err(error) if error.kind() == ErrorKind::Unavailable => return unopened(context, &error),
        Err(error) => return Err(error.into()),
    };
    let mut line = Line::new();
    let found = storage
        .operator(now())
        .verify(agent.as_deref(), &mut |progress| line.tell(&progress))?;
    drop(line);
    let only = |check: &str| {
        let mut findings = found.findings.iter();
        findings.all(|finding| finding.check == check)
    };
    let remedy = if only("index") {
        "Run `remora reindex`: an index is made of the records, which are sound."
    } else if only("file") {
        "What could not be opened was not checked: it is said above what to do."
    } else {
        "Restore a backup that is sound, or `remora purge` what can't be read."
    };
    let exit = tell(context, &found, remedy)?;
    if !found.is_sound() && !context.globals.json {
        context.console.note(DOCTOR)?;
    }
    Ok(exit)
}

/// A backup is checked as a whole, and nothing is left in it.
fn backup(context: &mut Context<'_>, folder: &Path) -> anyhow::Result<Exit> {
    context.globals.refuse("verify", super::WHOLE_STORE)?;
    let mut line = Line::new();
    let options = SqliteOptions::default();
    let found = SqliteStorage::verify_backup(folder, now(), &options, &mut |progress| {
        line.tell(&progress);
    });
    drop(line);
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Unavailable => return unopened(context, &error),
        Err(error) => return Err(error.into()),
    };
    tell(context, &found, "Use another backup.")
}

fn tell(context: &mut Context<'_>, found: &Verification, remedy: &str) -> anyhow::Result<Exit> {
    let exit = if found.is_sound() {
        Exit::Done
    } else {
        Exit::Findings
    };
    if context.globals.json {
        let mut report = serde_json::to_value(found)?;
        if let Some(report) = report.as_object_mut() {
            report.insert("sound".to_owned(), found.is_sound().into());
        }
        super::json(context, &report)?;
        return Ok(exit);
    }
    for finding in &found.findings {
        context.console.line(&format!(
            "{}: {}: {}",
            visible::line(&finding.file),
            finding.check,
            visible::line(&finding.what),
        ))?;
    }
    for note in &found.notes {
        let what = format!(
            "{}: {}",
            visible::line(&note.file),
            visible::line(&note.what)
        );
        context.console.note(&what)?;
    }
    let number = u64::try_from(found.findings.len()).unwrap_or(u64::MAX);
    let checked = checked(found);
    context.console.line(&if number == 0 {
        format!("Sound: {checked}.")
    } else {
        format!(
            "NOT SOUND: {} in {checked}. {remedy}",
            counted(number, "finding", "findings"),
        )
    })?;
    Ok(exit)
}

fn unopened(context: &mut Context<'_>, error: &Error) -> anyhow::Result<Exit> {
    if context.globals.json {
        let mut report = serde_json::to_value(Verification::default())?;
        let finding = json!({
            "file": "",
            "agent": null,
            "level": null,
            "check": "store",
            "what": error.to_string(),
        });
        if let Some(report) = report.as_object_mut() {
            report.insert("findings".to_owned(), json!([finding]));
            report.insert("sound".to_owned(), false.into());
        }
        super::json(context, &report)?;
    } else {
        context.console.line(&visible::line(&error.to_string()))?;
        context
            .console
            .line("NOT SOUND: the store can't be opened, so nothing else was checked.")?;
        context.console.note(DOCTOR)?;
    }
    Ok(Exit::Findings)
}

fn checked(found: &Verification) -> String {
    format!(
        "{}, {}, {}, {}",
        counted(found.files, "file", "files"),
        counted(found.records, "record", "records"),
        counted(found.events, "line of audit", "lines of audit"),
        counted(found.sessions, "session", "sessions"),
    )
}
