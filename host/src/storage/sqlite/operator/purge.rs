//! Words are erased for good.
//!
//! A purge deletes the records (every version, whatever became of it), their
//! tags, index terms, stamps and usage, on every level at once, and notes in
//! `erased` that they must not come back. Edges stay: they hold ids alone, and
//! what was superseded stays so. That much is one transaction for each file.
//!
//! # Where words linger
//!
//! A deleted row's words may still stand in the write-ahead log, in pages that
//! readers of an older state need, and in the terms that separate the pages of
//! the index. So the index is built anew in that same transaction, and then the
//! file is: `VACUUM` writes every page afresh from what is left, and a truncating
//! checkpoint brings these into the file and empties the log. Samples that
//! `ANALYZE` took of keys are deleted too.
//!
//! # Crashes and readers
//!
//! From the deletion until the checkpoint is done, a mark in `meta` says that the
//! file may still hold erased words. Where a process dies in between, or another
//! one reads an old state for longer than the purge waits, the mark stays, and
//! whatever maintains the file next (the same purge run again, a prune…) goes on
//! from there.
//!
//! # Memory
//!
//! `VACUUM` builds the new file in memory, because a temporary file would put
//! the words on another disk; that is as much as the file is large.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;

use super::erased::{self, Erased};
use super::{Operator, Progress, count, empty_log, fault_point};
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::storage::check_key;
use crate::storage::sqlite::event::key_digest;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::LevelFile;
use crate::storage::sqlite::record::Book;
use crate::storage::sqlite::schema::Kind;
use crate::storage::sqlite::search::index;

/// The row of `meta` that says that a file may still hold erased words, and since
/// when.
const MARK: &str = "purge_pending";

/// Between two tries to empty the log.
const PAUSE: Duration = Duration::from_millis(20);

/// What to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purge {
    /// Everything under exactly this key.
    Key {
        /// The key.
        key: String,
        /// From this level only. None: from every level.
        level: Option<Level>,
    },
    /// Everything that this session saved, and its confirmations.
    Session(String),
}

impl Purge {
    /// Everything under a key, from every level.
    pub fn key(key: impl Into<String>) -> Self {
        Self::Key {
            key: key.into(),
            level: None,
        }
    }

    /// Everything under a key, from one level. What lower levels have under that
    /// key is seen again from there.
    pub fn key_at(key: impl Into<String>, level: Level) -> Self {
        Self::Key {
            key: key.into(),
            level: Some(level),
        }
    }

    /// Everything from a session.
    pub fn everything_from(session: impl Into<String>) -> Self {
        Self::Session(session.into())
    }

    fn is_about(&self, file: &LevelFile) -> bool {
        match self {
            Self::Key {
                level: Some(level), ..
            } => *level == file.level,
            Self::Key { level: None, .. } | Self::Session(_) => true,
        }
    }

    /// As `erased` names it.
    fn name(&self, book: &Book<'_>) -> String {
        match self {
            Self::Key { key, .. } => erased::key_name(book, key),
            Self::Session(session) => erased::session_name(book, session),
        }
    }

    /// Whether a file knows, or knew, anything of it.
    fn is_known(&self, db: &Connection, book: &Book<'_>) -> Result<bool, Fault> {
        let (rows, lines) = match self {
            Self::Key { key, .. } => (
                db.prepare("SELECT 1 FROM record WHERE key = ?1")?
                    .exists([key])?,
                db.prepare("SELECT 1 FROM event WHERE digest = ?1")?
                    .exists([key_digest(book, key).as_slice()])?,
            ),
            Self::Session(session) => (
                db.prepare(
                    "SELECT 1 FROM record WHERE session = ?1
                     UNION ALL SELECT 1 FROM stamp WHERE session = ?1",
                )?
                .exists([session])?,
                db.prepare("SELECT 1 FROM event WHERE session = ?1")?
                    .exists([session])?,
            ),
        };
        Ok(rows || lines || erased::is_erased(db, book, &self.name(book))?)
    }

    /// The rows to erase: seq, id and key.
    fn rows(&self, db: &Connection) -> Result<Vec<(i64, String, String)>, Fault> {
        let (sql, subject) = match self {
            Self::Key { key, .. } => ("SELECT seq, id, key FROM record WHERE key = ?1", key),
            Self::Session(session) => (
                "SELECT seq, id, key FROM record WHERE session = ?1",
                session,
            ),
        };
        let mut statement = db.prepare(sql)?;
        let rows =
            statement.query_map([subject], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn unknown(&self) -> Error {
        let (what, remedy) = match self {
            Self::Key { key, level } => {
                let place = level.map_or_else(String::new, |level| format!(" on {level}"));
                (
                    format!(
                        "Nothing was ever saved under \"{}\"{place}",
                        key.escape_debug()
                    ),
                    "List the keys, and give one exactly",
                )
            }
            Self::Session(session) => (
                format!("Nothing was ever saved by \"{}\"", session.escape_debug()),
                "List the sessions, and give one exactly",
            ),
        };
        Error::new(ErrorKind::NotFound, what, "Nothing was erased", remedy)
    }
}

/// What a purge erased from one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelPurged {
    /// Whose.
    pub agent: String,
    /// From which level.
    pub level: Level,
    /// Records: every version counts. Zero where an earlier run had come so far.
    pub records: u64,
    /// Confirmations, also of erased records of lower levels.
    pub stamps: u64,
    /// Counts of use, also of erased records of lower levels.
    pub usage: u64,
}

impl Operator<'_> {
    /// Erases records for good, from every file of one agent or of all that knows
    /// of them, and waits up to `wait` for those who still read an older state.
    /// When it returns Ok, no file of the store holds the words. Backups and
    /// exports elsewhere do; restoring one does not bring them back here.
    ///
    /// Run again after a failure, it goes on where it stopped.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) where no file ever knew of it;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for what can't be a
    /// key; [`Unavailable`](crate::ErrorKind::Unavailable), also where the words
    /// are deleted but another process holds on to an older state: it is named
    /// where the system tells.
    pub fn purge(
        &self,
        agent: Option<&str>,
        purge: &Purge,
        wait: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<LevelPurged>, Error> {
        if let Purge::Key { key, .. } = purge {
            check_key(key)?;
        }
        self.inner.write_all_usage();
        let files = self.files_of(agent)?;
        let mut report = Vec::new();
        for (file, done) in files.iter().zip(0_u64..) {
            progress(Progress::of("purge", file, done, count_of(&files)));
            let lower: Vec<&LevelFile> = files
                .iter()
                .filter(|lower| {
                    lower.agent == file.agent
                        && lower.level != file.level
                        && can_flow_to(lower.level, file.level)
                })
                .collect();
            let orphans = self.erased_below(file, &lower)?;
            let known =
                purge.is_about(file) && self.read(file, |db, book| purge.is_known(db, book))?;
            if known || !orphans.is_empty() {
                let purge = known.then_some(purge);
                report.push(self.change(file, |db, book| self.erase(db, book, purge, &orphans))?);
                fault_point("purge-deleted");
            }
        }
        if report.is_empty() {
            return Err(purge.unknown());
        }
        let deadline = Clock::now() + wait;
        for (file, done) in files.iter().zip(0_u64..) {
            progress(Progress::of("vacuum", file, done, count_of(&files)));
            self.complete(file, deadline)?;
        }
        Ok(report)
    }

    /// The ids that a file's stamps and usage name, and that were erased on lower
    /// levels.
    fn erased_below(&self, file: &LevelFile, lower: &[&LevelFile]) -> Result<Vec<String>, Error> {
        const NAMED: &str = "SELECT record_id FROM stamp UNION SELECT record_id FROM usage";
        let named = self.read(file, |db, _| {
            let mut statement = db.prepare(NAMED)?;
            let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
            Ok(ids.collect::<Result<Vec<_>, _>>()?)
        })?;
        let mut erased = Vec::new();
        for lower in lower {
            self.read(lower, |db, book| {
                for id in &named {
                    if erased::is_erased(db, book, id)? {
                        erased.push(id.clone());
                    }
                }
                Ok(())
            })?;
        }
        Ok(erased)
    }

    /// Deletes in one transaction, and marks the file.
    fn erase(
        &self,
        db: &Connection,
        book: &Book<'_>,
        purge: Option<&Purge>,
        orphans: &[String],
    ) -> Result<LevelPurged, Fault> {
        let mut report = LevelPurged {
            agent: book.file.agent.clone(),
            level: book.file.level,
            records: 0,
            stamps: 0,
            usage: 0,
        };
        let at = self.now.to_sql();
        for id in orphans {
            forget(db, id, &mut report)?;
        }
        if let Some(purge) = purge {
            for (seq, id, key) in purge.rows(db)? {
                forget(db, &id, &mut report)?;
                // Seals are not asked: what was altered can be erased too.
                db.prepare_cached("DELETE FROM record_tag WHERE seq = ?1")?
                    .execute([seq])?;
                db.prepare_cached("DELETE FROM record WHERE seq = ?1")?
                    .execute([seq])?;
                report.records = report.records.saturating_add(1);
                keep(db, book, id, &at, Some(&key))?;
            }
            if let Purge::Session(session) = purge {
                forget_session(db, session, &mut report)?;
            }
            let key = match purge {
                Purge::Key { key, .. } => Some(key.as_str()),
                Purge::Session(_) => None,
            };
            keep(db, book, purge.name(book), &at, key)?;
            index::rebuild(db, |_| {})?;
        }
        // Samples of what the indexes of the tables hold: keys.
        for table in ["sqlite_stat1", "sqlite_stat4"] {
            let exists = db
                .prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?
                .exists([table])?;
            if exists {
                db.execute(&format!("DELETE FROM {table}"), [])?;
            }
        }
        mark(db, book, &at)?;
        let what = match purge {
            Some(Purge::Key { .. }) => "key ",
            Some(Purge::Session(_)) => "session ",
            None => "",
        };
        let key = match purge {
            Some(Purge::Key { key, .. }) => Some(key.as_str()),
            _ => None,
        };
        let detail = format!(
            "{what}records={} stamps={} usage={}",
            report.records, report.stamps, report.usage
        );
        self.log(db, book, "purge", key, &detail)?;
        Ok(report)
    }

    /// Brings a marked file to where it holds no erased words.
    fn complete(&self, file: &LevelFile, deadline: Clock) -> Result<(), Error> {
        let complete = || -> Result<(), Fault> {
            let db = self.open(file)?;
            if is_pending(self, &db, file)? {
                rewrite(self, &db, file, deadline)?;
            }
            db.close().map_err(|(_, error)| error)?;
            Ok(())
        };
        complete().map_err(|fault| {
            if fault.disk_is_full() {
                return no_room(&file.path);
            }
            file.operator_place().say(fault)
        })
    }
}

/// Finishes what an earlier purge left half done in a file, where nobody stands in
/// the way.
pub(super) fn finish(
    operator: &Operator<'_>,
    db: &Connection,
    file: &LevelFile,
) -> Result<(), Fault> {
    if !is_pending(operator, db, file)? {
        return Ok(());
    }
    match rewrite(operator, db, file, Clock::now()) {
        // Somebody still reads an older state. The mark stays.
        Err(Fault::Said(_)) => Ok(()),
        result => result,
    }
}

/// Marks a file as one that is to be written afresh.
pub(super) fn mark(db: &Connection, book: &Book<'_>, at: &str) -> Result<(), Fault> {
    Kind::level(book.file).set_meta(db, book.sealer, MARK, at)
}

/// Whether an erasure in a file was not completed.
pub(super) fn is_pending(
    operator: &Operator<'_>,
    db: &Connection,
    file: &LevelFile,
) -> Result<bool, Fault> {
    let mark = Kind::level(file).meta(db, &operator.inner.sealer, MARK)?;
    Ok(mark.is_some())
}

/// Writes every page of a file afresh, empties its log, and takes the mark away.
fn rewrite(
    operator: &Operator<'_>,
    db: &Connection,
    file: &LevelFile,
    deadline: Clock,
) -> Result<(), Fault> {
    let patience = operator.inner.options.busy_timeout;
    let left = deadline.saturating_duration_since(Clock::now());
    db.busy_timeout(left.max(patience))?;
    db.execute_batch("VACUUM")?;
    fault_point("purge-vacuumed");
    // Each try of its own is short, so that the deadline is kept.
    db.busy_timeout(PAUSE)?;
    while !empty_log(db)? {
        if Clock::now() >= deadline {
            return Err(held(&file.path).into());
        }
        std::thread::sleep(PAUSE);
    }
    db.busy_timeout(patience)?;
    fault_point("purge-truncated");
    let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    tx.execute("DELETE FROM meta WHERE name = ?1", [MARK])?;
    tx.commit()?;
    // The log holds no words any more, so whether this succeeds is no matter.
    empty_log(db)?;
    Ok(())
}

/// Deletes the stamps and the usage of a record.
fn forget(db: &Connection, id: &str, report: &mut LevelPurged) -> Result<(), Fault> {
    let stamps = db
        .prepare_cached("DELETE FROM stamp WHERE record_id = ?1")?
        .execute([id])?;
    let usage = db
        .prepare_cached("DELETE FROM usage WHERE record_id = ?1")?
        .execute([id])?;
    report.stamps = report.stamps.saturating_add(stamps as u64);
    report.usage = report.usage.saturating_add(usage as u64);
    Ok(())
}

/// Deletes a session's stamps, whose sources are its words, and makes the latest
/// of what is left of each record's the latest.
fn forget_session(db: &Connection, session: &str, report: &mut LevelPurged) -> Result<(), Fault> {
    let stamps = db.execute("DELETE FROM stamp WHERE session = ?1", [session])?;
    report.stamps = report.stamps.saturating_add(stamps as u64);
    find_latest_stamps(db)
}

/// Marks the latest stamp of each record where stamps were deleted.
pub(super) fn find_latest_stamps(db: &Connection) -> Result<(), Fault> {
    db.execute_batch(
        "UPDATE stamp SET latest = 1
         WHERE NOT EXISTS (SELECT 1 FROM stamp AS other
                           WHERE other.record_id = stamp.record_id AND other.latest = 1)
           AND (at, session) = (SELECT other.at, other.session FROM stamp AS other
                                WHERE other.record_id = stamp.record_id
                                ORDER BY other.at DESC, other.session DESC LIMIT 1)",
    )?;
    Ok(())
}

fn keep(
    db: &Connection,
    book: &Book<'_>,
    name: String,
    at: &str,
    key: Option<&str>,
) -> Result<(), Fault> {
    let erased = Erased {
        name,
        at: at.to_owned(),
        digest: key.map(|key| key_digest(book, key).to_vec()),
        seal: Vec::new(),
    };
    erased.keep(db, book)
}

fn count_of(files: &[LevelFile]) -> u64 {
    count(i64::try_from(files.len()).unwrap_or(i64::MAX))
}

fn no_room(path: &Path) -> Error {
    Error::unavailable(
        format!(
            "The words are deleted, but {} still holds old copies: the disk is too full to write \
             it afresh",
            path.display()
        ),
        "That takes as much room again as the file, until it is done",
        "Free some space, then run the same command again: it completes the erasure",
    )
}

fn held(path: &Path) -> Error {
    let holders = holders(path);
    let by = match holders.as_slice() {
        [] => "another process, or another part of this one, still reads an older state of it"
            .to_owned(),
        holders => format!("it is open in {}", holders.join(", ")),
    };
    Error::unavailable(
        format!(
            "The words are deleted, but {} still holds old copies: {by}",
            path.display()
        ),
        "These go once nobody reads a state from before the deletion",
        "End that process or wait, then run the same command again: it completes the erasure",
    )
}

/// Which other processes have a database or its log open, where the system tells:
/// `process 4711 (remora)`.
fn holders(path: &Path) -> Vec<String> {
    let names: Vec<PathBuf> = ["", "-wal", "-shm"]
        .iter()
        .map(|end| {
            let mut name = path.to_owned().into_os_string();
            name.push(end);
            name.into()
        })
        .collect();
    let mut pids: Vec<u32> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && has_open(*pid, &names))
        .collect();
    pids.sort_unstable();
    pids.into_iter()
        .map(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("process {pid} ({})", name.trim())
        })
        .collect()
}

fn has_open(pid: u32, names: &[PathBuf]) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .any(|target| names.contains(&target))
}
