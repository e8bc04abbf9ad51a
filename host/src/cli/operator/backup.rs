//! `backup`: a copy of the whole store, taken while it is in use.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use remora_host::Error;
use serde_json::json;

use super::progress::Line;
use super::{bytes, counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

/// What a backup's folder begins with, and what is in it.
const PREFIX: &str = "remora-";
const MANIFEST: &str = "manifest.json";
const KEY: &str = "store.key";

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora backup /mnt/disk/remora
  remora backup /mnt/disk/remora --keep 14

The copy is checked like `remora verify` does before it gets its name, and it holds every
save that was answered before it began. The key is in it: keep it as carefully as the
store. `remora restore` makes a store of it.")]
pub(crate) struct BackupArgs {
    /// Where to make the dated folder; made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Afterwards delete this store's older backups there, but for so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
}

pub(super) fn run(context: &mut Context<'_>, args: &BackupArgs) -> anyhow::Result<Exit> {
    context.globals.refuse("backup", super::WHOLE_STORE)?;
    let storage = storage(context, "backup")?;
    let mut line = Line::new();
    let report = storage
        .operator(now())
        .backup(&args.folder, &mut |progress| line.tell(&progress))?;
    drop(line);
    let removed = match args.keep {
        Some(keep) => remove_older(storage.root(), Path::new(&report.folder), keep)?,
        None => Vec::new(),
    };
    if context.globals.json {
        let mut report = serde_json::to_value(&report)?;
        if let Some(report) = report.as_object_mut() {
            report.insert("removed".to_owned(), json!(removed));
        }
        super::json(context, &report)?;
        return Ok(Exit::Done);
    }
    let files = u64::try_from(report.files.len()).unwrap_or(u64::MAX);
    let mut said = format!(
        "Backed up {}, {}, to {}",
        counted(files, "file", "files"),
        bytes(report.bytes),
        visible::line(&report.folder),
    );
    if !removed.is_empty() {
        let number = u64::try_from(removed.len()).unwrap_or(u64::MAX);
        said.push_str(&format!(
            ", and deleted {}",
            counted(number, "older backup", "older backups")
        ));
    }
    context.console.line(&format!("{said}."))?;
    Ok(Exit::Done)
}

/// Deletes this store's oldest backups beside the one that was just made. Those of
/// another store have another key.
fn remove_older(store: &Path, newest: &Path, keep: u32) -> Result<Vec<String>, Error> {
    let Some(folder) = newest.parent() else {
        return Ok(Vec::new());
    };
    let say = |path: &Path, error: std::io::Error| {
        Error::unavailable(
            format!("{} can't be deleted: {error}", path.display()),
            "The new backup is made and whole",
            "Delete the older ones yourself",
        )
    };
    let own = fs::read(store.join(KEY)).map_err(|error| say(folder, error))?;
    let mut backups: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|error| say(folder, error))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let named = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(PREFIX));
            named
                && path.join(MANIFEST).is_file()
                && fs::read(path.join(KEY)).is_ok_and(|key| key == own)
        })
        .collect();
    // Their names are their moments.
    backups.sort();
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let older = backups.len().saturating_sub(keep);
    let mut removed = Vec::new();
    for path in backups.into_iter().take(older) {
        if path == newest {
            continue;
        }
        fs::remove_dir_all(&path).map_err(|error| say(&path, error))?;
        removed.push(path.display().to_string());
    }
    Ok(removed)
}
