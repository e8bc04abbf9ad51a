//! A backup is no store: it is checked and restored, and used for nothing else.
//!
//! A backup has the shape of a store. Whatever uses a store writes to it, if only
//! to count a use, and then the backup is no longer what its manifest says and
//! can't be restored. So the folder of a backup is never opened as a store.

use std::path::{Path, PathBuf};

use super::Progress;
use super::backup::{FORMAT, MANIFEST, Manifest, digest};
use super::restore::check_paths;
use super::verify::{Finding, Verification};
use crate::clock::Instant;
use crate::error::Error;
use crate::storage::sqlite::layout::KEY;
use crate::storage::sqlite::schema::{LEVEL, SESSIONS};
use crate::storage::sqlite::{SqliteOptions, SqliteStorage};

impl SqliteStorage {
    /// Whether a folder is a backup, whole or not, and therefore no store.
    #[must_use]
    pub fn is_backup(folder: &Path) -> bool {
        // A store holds no such file, so nothing is read there.
        std::fs::read(folder.join(MANIFEST))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains(FORMAT))
    }

    /// Checks a backup: that its files are those of its manifest, and then all
    /// that [`Operator::verify`](super::Operator::verify) checks of a store.
    /// Nothing in it is changed.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for what is no backup;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where it can't be read.
    pub fn verify_backup(
        folder: &Path,
        now: Instant,
        options: &SqliteOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Verification, Error> {
        let manifest = Manifest::read(folder)?;
        let mut found = Verification::default();
        if let Err(error) = check_paths(folder, &manifest) {
            found.findings.push(finding(MANIFEST, error.what()));
            return Ok(found);
        }
        for file in &manifest.files {
            let wrong = match digest(&folder.join(&file.path)) {
                Ok((bytes, digest))
                    if bytes == file.bytes && digest.to_hex().as_str() == file.blake3 =>
                {
                    continue;
                }
                Ok(_) => "it is not as the backup's manifest says".to_owned(),
                Err(error) => format!("it can't be read: {error}"),
            };
            found.findings.push(finding(&file.path, wrong));
        }
        // What is damaged is not opened: SQLite might try to mend it.
        if !found.is_sound() {
            return Ok(found);
        }
        let note = |path: &str| {
            // To look into it is to bring it up to date.
            finding(
                path,
                "an older Remora wrote it: its files are those of its manifest, and what is in \
                 them is checked when it is restored",
            )
        };
        let older = manifest.files.iter().find(|file| {
            let newest = if file.agent.is_some() {
                LEVEL
            } else {
                SESSIONS
            };
            let newest = i64::try_from(newest.len()).unwrap_or(i64::MAX);
            file.schema.is_some_and(|schema| schema < newest)
        });
        if let Some(older) = older {
            found.notes.push(note(&older.path));
            return Ok(found);
        }
        let storage = Self::open_any(folder, options.clone())?;
        let operator = storage.operator(now);
        let root = storage.inner.layout.root();
        let older = operator.inspect()?.into_iter().find(|kept| {
            let inside = kept.inside.as_ref();
            inside.is_ok_and(|inside| !inside.is_indexed() && !inside.newer_analyser)
        });
        if let Some(older) = older {
            let path = Path::new(&older.path);
            let path = path.strip_prefix(root).unwrap_or(path);
            found.notes.push(note(&path.display().to_string()));
            return Ok(found);
        }
        operator.verify(None, progress)
    }
}

fn finding(file: &str, what: impl Into<String>) -> Finding {
    Finding {
        file: file.to_owned(),
        agent: None,
        level: None,
        check: "backup".to_owned(),
        what: what.into(),
    }
}

/// One of the backups in a folder, if there are any.
fn backups_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| SqliteStorage::is_backup(path))
}

/// The backup that a folder lies in, however deep.
pub(super) fn backup_around(folder: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(folder).ok()?;
    let mut around = whole.ancestors().skip(1);
    let found = around.find(|folder| SqliteStorage::is_backup(folder));
    found.map(Path::to_owned)
}

/// Refuses the folder of a backup, or of several, where a store is wanted.
pub(in crate::storage::sqlite) fn refuse_backup(folder: &Path) -> Result<(), Error> {
    if SqliteStorage::is_backup(folder) {
        let shown = folder.display();
        return Err(Error::refused(
            format!("{shown} is a backup, and no store"),
            "A backup that was used as a store would no longer be what its manifest says. It is \
             checked with `remora verify` and restored, and nothing else",
            format!(
                "Restore it into a folder of its own: remora --store ELSEWHERE restore {shown}"
            ),
        ));
    }
    if let Some(backup) = backup_around(folder) {
        return Err(Error::refused(
            format!(
                "{} lies in {}, which is a backup",
                folder.display(),
                backup.display()
            ),
            "A backup that holds anything else is no longer what its manifest says, and goes when \
             its time has come",
            "Choose another folder",
        ));
    }
    // Only where a store would be made: one may well have its backups in it.
    let has_key = std::fs::symlink_metadata(folder.join(KEY)).is_ok();
    if !has_key && let Some(backup) = backups_in(folder) {
        return Err(Error::refused(
            format!("{} holds backups, and is no store", folder.display()),
            "No store is made among backups",
            format!(
                "Name a store, or one of the backups to verify it: remora --store {} verify",
                backup.display()
            ),
        ));
    }
    Ok(())
}
