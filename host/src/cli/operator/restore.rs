//! `restore`: a backup becomes the store.

use std::path::PathBuf;

use clap::Args;
use remora_host::storage::SqliteStorage;
use remora_host::storage::sqlite::operator::RestoreOptions;
use remora_host::{Error, ErrorKind};

use super::progress::Line;
use super::{counted, now};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
All or nothing, and checked first. Stop the servers: a store that somebody has open is
not exchanged. Where the store that is replaced can be read, what a purge erased from it
stays erased, what it superseded stays superseded, and no session's level falls. So a key
that was saved again since may have nothing live then; how many is told.")]
pub(crate) struct RestoreArgs {
    /// A folder that `remora backup` made
    #[arg(value_name = "DIR")]
    backup: PathBuf,
    /// Also over a store that is newer, that is another one, or that can't be read
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &mut Context<'_>, args: &RestoreArgs) -> anyhow::Result<Exit> {
    context.globals.refuse("restore", super::WHOLE_STORE)?;
    let store = context.name_store()?;
    let options = RestoreOptions::default().force(args.force);
    let mut line = Line::new();
    let report = SqliteStorage::restore(&args.backup, &store, now(), &options, &mut |progress| {
        line.tell(&progress);
    })
    .map_err(in_options)?;
    drop(line);
    if context.globals.json {
        super::json(context, &report)?;
        return Ok(Exit::Done);
    }
    let sum = |of: fn(&remora_host::storage::sqlite::operator::RestoredFile) -> u64| {
        report.files.iter().map(of).fold(0, u64::saturating_add)
    };
    let levels = u64::try_from(report.files.len()).unwrap_or(u64::MAX);
    context.console.line(&format!(
        "Restored {} on {} and {} of {} to {}{}.",
        counted(sum(|file| file.records), "record", "records"),
        counted(levels, "level", "levels"),
        counted(report.sessions.total, "session", "sessions"),
        visible::line(&report.made_at),
        visible::line(&report.store),
        if report.replaced {
            ", in place of what was there"
        } else {
            ""
        },
    ))?;
    let (erased, superseded) = (sum(|file| file.erased), sum(|file| file.superseded));
    if erased > 0 {
        context.console.note(&format!(
            "{} had been purged since the backup and stayed erased.",
            counted(erased, "record", "records"),
        ))?;
    }
    if superseded > 0 {
        context.console.note(&format!(
            "{} had been superseded since the backup and stayed so.",
            counted(superseded, "record", "records"),
        ))?;
    }
    let vacant = sum(|file| file.vacant);
    if vacant > 0 {
        let places: Vec<String> = report
            .files
            .iter()
            .filter(|file| file.vacant > 0)
            .map(|file| {
                format!(
                    "{} {} {}",
                    visible::line(&file.agent),
                    file.level,
                    file.vacant
                )
            })
            .collect();
        context.console.note(&format!(
            "{} nothing live now ({}): what was there in the backup was superseded since, and \
             what took its place is newer than the backup. `remora history KEY` shows the old \
             words; save them again where they are true.",
            counted(vacant, "key has", "keys have"),
            places.join(", "),
        ))?;
    }
    if report.sessions.raised > 0 {
        context.console.note(&format!(
            "{} had risen since the backup: none was lowered.",
            counted(report.sessions.raised, "session", "sessions"),
        ))?;
    }
    for warning in &report.warnings {
        context.console.note(warning)?;
    }
    Ok(Exit::Done)
}

/// The library's remedy in the words of the command line.
fn in_options(error: Error) -> Error {
    if error.kind() != ErrorKind::Refused {
        return error;
    }
    let remedy = error.remedy().replace("with force", "with --force");
    Error::new(error.kind(), error.what(), error.allowed(), remedy)
}
