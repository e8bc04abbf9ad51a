//! `import`: lines of JSON become memories again.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use remora_host::storage::sqlite::operator::{ImportOptions, ImportReport, Imported, LineNote};
use remora_host::{Error, Origin};

use super::progress::Line;
use super::{counted, now};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::globals::Given;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora import memories.jsonl
  remora export --all | ssh other remora import -
  remora --origin agent import memories.jsonl    trusted as a model's words at most

Into the agents and levels that the lines name; none is put lower. Run again it changes
nothing. What is here already, superseded or deleted here, or purged from here stays so.
--origin says who vouches for the file: nothing in it is trusted more than that. Exits
with 1 where a line was rejected or the file is not whole.")]
pub(crate) struct ImportArgs {
    /// The file that `remora export` wrote; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(context: &mut Context<'_>, args: &ImportArgs) -> anyhow::Result<Exit> {
    context.globals.refuse(
        "import",
        &[
            Given::Agent,
            Given::Session,
            Given::Taint,
            Given::Clearance,
            Given::Component,
        ],
    )?;
    // Opened first: a store should not be made for the sake of a mistyped name.
    let mut from: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        if args.file.is_dir() {
            return Err(a_folder(&args.file).into());
        }
        let file = File::open(&args.file).map_err(|error| {
            Error::unavailable(
                format!("{} can't be read: {error}", args.file.display()),
                READS,
                "Check the path",
            )
        })?;
        Box::new(BufReader::new(file))
    };
    let storage = context.open_storage()?;
    let origin = context.globals.origin.unwrap_or(Origin::User);
    let options = ImportOptions::default().origin(origin);
    let mut line = Line::new();
    let report = storage
        .operator(now())
        .import(&mut *from, &options, &mut |progress| line.tell(&progress))?;
    drop(line);
    let exit = if rejected(&report) == 0 && report.complete {
        Exit::Done
    } else {
        Exit::Findings
    };
    if context.globals.json {
        super::json(context, &report)?;
        return Ok(exit);
    }
    tell(context, "rejected", &report.rejected, rejected(&report))?;
    tell(context, "skipped", &report.skipped, skipped(&report))?;
    context.console.line(&format!(
        "Imported {} and {} from {}; {} skipped, {} rejected{}.",
        counted(report.records.imported, "record", "records"),
        counted(others(&report), "other line", "other lines"),
        counted(report.lines, "line", "lines"),
        skipped(&report),
        rejected(&report),
        if report.complete {
            ""
        } else {
            "; THE FILE IS NOT WHOLE: its last line is missing, or counts other lines"
        },
    ))?;
    if origin == Origin::Tool && report.records.imported > 0 {
        context.console.note(
            "as the words of a tool they are kept apart until a person accepts them: remora review",
        )?;
    }
    for (number, what) in [
        (report.gave_way, "gave way to what was imported"),
        (
            report.stood_back,
            "of those imported are not live: what is here goes before them",
        ),
    ] {
        if number > 0 {
            let what = format!("{} {what}.", counted(number, "record", "records"));
            context.console.note(&what)?;
        }
    }
    Ok(exit)
}

/// What an import takes.
const READS: &str = "An import reads a file that `remora export` wrote, or - for standard input";

fn a_folder(path: &Path) -> Error {
    let remedy = if path.join("manifest.json").is_file() {
        "It is a backup: use `remora restore`"
    } else {
        "Name a file"
    };
    Error::invalid(format!("{} is a folder", path.display()), READS, remedy)
}

/// Lines that are told one by one, to people.
const TOLD: usize = 20;

fn tell(context: &mut Context<'_>, how: &str, notes: &[LineNote], number: u64) -> io::Result<()> {
    for note in notes.iter().take(TOLD) {
        let what = format!("line {} {how}: {}", note.line, visible::line(&note.reason));
        context.console.remark(&what)?;
    }
    let told = u64::try_from(notes.len().min(TOLD)).unwrap_or(u64::MAX);
    if number > told && told > 0 {
        let more = number.saturating_sub(told);
        context.console.remark(&format!(
            "and {more} more {how}; --json tells of the first 1000"
        ))?;
    }
    Ok(())
}

fn kinds(report: &ImportReport) -> [Imported; 6] {
    [
        report.records,
        report.edges,
        report.stamps,
        report.usage,
        report.erased,
        report.events,
    ]
}

fn rejected(report: &ImportReport) -> u64 {
    kinds(report)
        .iter()
        .map(|kind| kind.rejected)
        .fold(report.unreadable, u64::saturating_add)
}

fn skipped(report: &ImportReport) -> u64 {
    let skipped = kinds(report).map(|kind| kind.skipped);
    skipped.into_iter().fold(0, u64::saturating_add)
}

fn others(report: &ImportReport) -> u64 {
    let imported = kinds(report).map(|kind| kind.imported);
    imported.into_iter().skip(1).fold(0, u64::saturating_add)
}
