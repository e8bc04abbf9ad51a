//! `export`: memories as lines of JSON.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use remora_host::storage::sqlite::operator::ExportReport;
use remora_host::{Error, Level};

use super::progress::Line;
use super::{counted, now, storage};
use crate::cli::console::Console;
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora export > memories.jsonl
  remora --agent helpdesk export --level internal -o helpdesk.jsonl
  remora export --all -o everything.jsonl

Every version of every memory of --agent (or `default`), with edges, tombstones,
confirmations, use and the audit trail; the first line says what is left out. Words leave
the store that way: whoever reads the file reads every level in it.")]
pub(crate) struct ExportArgs {
    /// Only this level [default: every level]
    #[arg(long, value_name = "LEVEL")]
    level: Option<Level>,
    /// Of every agent, rather than of one
    #[arg(long)]
    all: bool,
    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(context: &mut Context<'_>, args: &ExportArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "export")?;
    if args.all && context.globals.agent.is_some() {
        return Err(Error::invalid(
            "--all and --agent exclude each other",
            "An export is of one agent or of every one",
            "Leave one of them out",
        )
        .into());
    }
    let agent = (!args.all).then(|| context.globals.agent().to_owned());
    let operator = storage.operator(now());
    let mut line = Line::new();
    let mut write = |to: &mut dyn Write| {
        operator.export(agent.as_deref(), args.level, to, &mut |progress| {
            line.tell(&progress);
        })
    };
    let report = match &args.output {
        None => write(&mut BufWriter::new(Out(&mut context.console)))?,
        Some(file) => to_file(file, write)?,
    };
    drop(line);
    let exit = if report.damaged == 0 {
        Exit::Done
    } else {
        Exit::Findings
    };
    match &args.output {
        Some(_) if context.globals.json => super::json(context, &report)?,
        Some(file) => {
            let said = format!(
                "{} to {}.",
                told(&report),
                visible::line(&file.display().to_string())
            );
            context.console.line(&said)?;
        }
        // The answer is the export.
        None => {
            context.console.flush()?;
            let said = format!("{}.", told(&report));
            context.console.remark(&said)?;
        }
    }
    for row in &report.damaged_rows {
        let what = format!("left out, because it is not as it was written: {row}");
        context.console.note(&what)?;
    }
    Ok(exit)
}

fn told(report: &ExportReport) -> String {
    let mut said = format!(
        "Exported {} of {}, {} and {}",
        counted(report.lines.records, "record", "records"),
        counted(report.files, "level", "levels"),
        counted(report.lines.edges, "edge", "edges"),
        counted(report.events, "line of audit", "lines of audit"),
    );
    if report.damaged > 0 {
        said.push_str(&format!(", leaving out {} damaged", report.damaged));
    }
    said
}

/// Whole or not at all, and for its owner alone.
fn to_file(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<ExportReport, Error>,
) -> Result<ExportReport, Error> {
    let say = |error: io::Error| {
        Error::unavailable(
            format!("{} can't be written: {error}", file.display()),
            "-o names a file in a folder that exists",
            "Choose another one",
        )
    };
    // A device or a pipe is written to, never replaced by a file, and through a
    // link what it leads to.
    let resolved = file.canonicalize();
    if let Ok(there) = resolved.as_ref().map(std::fs::metadata)
        && there.as_ref().is_ok_and(|there| !there.is_file())
    {
        let mut open = std::fs::OpenOptions::new()
            .write(true)
            .open(file)
            .map_err(say)?;
        let report = write(&mut open)?;
        open.flush().map_err(say)?;
        return Ok(report);
    }
    let file = resolved.as_deref().unwrap_or(file);
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut temporary = tempfile::Builder::new()
        .prefix(".remora-export-")
        .tempfile_in(folder)
        .map_err(say)?;
    let report = {
        let mut buffered = BufWriter::new(temporary.as_file_mut());
        let report = write(&mut buffered)?;
        buffered.flush().map_err(say)?;
        report
    };
    temporary.as_file().sync_all().map_err(say)?;
    temporary.persist(file).map_err(|error| say(error.error))?;
    Ok(report)
}

/// Standard output, as something to write to.
struct Out<'a, 'c>(&'a mut Console<'c>);

impl Write for Out<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
