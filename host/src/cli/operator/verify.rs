//! `verify`: whether everything is still as it was written.

use clap::Args;
use remora_host::storage::sqlite::operator::Verification;
use remora_host::{Error, ErrorKind};
use serde_json::json;

use super::progress::Line;
use super::{counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Of --agent, or of the whole store with its sessions. Every table, page, key, index, seal
and the audit trail of each file are checked. Exits with 1 where anything is wrong.")]
pub(crate) struct VerifyArgs {}

pub(super) fn run(context: &mut Context<'_>, _: &VerifyArgs) -> anyhow::Result<Exit> {
    let agent = context.globals.agent.clone();
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
    let exit = if found.is_sound() {
        Exit::Done
    } else {
        Exit::Findings
    };
    if context.globals.json {
        let mut report = serde_json::to_value(&found)?;
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
    let checked = checked(&found);
    context.console.line(&if number == 0 {
        format!("Sound: {checked}.")
    } else {
        format!(
            "NOT SOUND: {} in {checked}. Restore a backup that is sound, or \
             `remora purge` what can't be read.",
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
