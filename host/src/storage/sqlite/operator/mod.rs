//! What the person who runs the store does with it: count, tidy, erase, check,
//! copy. None of it is a tool, and none of it goes through a session: it goes
//! round the gate, on existing files, and needs nothing but the store.
//!
//! | module | one idea |
//! | --- | --- |
//! | `stats` | how much of what is kept is still live |
//! | `digest` | what happened since |
//! | `unused` | what nobody has used for long |
//! | `prune` | what has had its time goes |
//! | `purge` | words are erased for good |
//! | `erased` | what must never come back |
//! | `undelete` | a soft deletion is taken back |
//! | `waiting` | what waits for a person is accepted or refused |
//! | `inspect` | how each file is kept |
//! | `verify` | whether everything is still as it was written |
//! | `reindex` | the full-text index is built anew |
//! | `audit` | the trail, and how its beginning is let go |
//! | `backup` | a copy of the whole store, taken while it is in use |
//! | `guard` | a backup is no store |
//! | `restore` | a backup becomes the store again |
//! | `export` | the memory as text |
//! | `import` | an export becomes memory again |
//!
//! # Traces
//!
//! What changes a file leaves one line in its audit trail, with that level's
//! figures only, by the session [`SESSION`]. What only reads leaves none, but for a
//! backup and an export, by which words leave the store.
//!
//! # Locking
//!
//! Reading takes one snapshot for each file and waits for nobody. Changing takes
//! one transaction for each file, in one order: agents by
//! name, levels from the lowest. No two files are ever locked at once.
//!
//! # Performance
//!
//! Rows are streamed, never gathered, so memory does not grow with a file.

mod audit;
pub mod backup;
mod digest;
pub(super) mod erased;
pub mod export;
mod guard;
pub mod import;
mod inspect;
mod prune;
mod purge;
mod reindex;
pub mod restore;
mod stats;
mod undelete;
mod unused;
mod verify;
mod waiting;

pub use audit::{AuditFilter, AuditLine, LevelForgotten, Trail, TrailBroken};
pub use digest::{Change, DigestEntry};
pub use inspect::{Inside, Kept};
pub use prune::{LevelPruned, Prune};
pub use purge::{LevelPurged, Purge};
pub use reindex::LevelReindexed;
pub use stats::{LevelStats, Unconfirmed};
pub use undelete::Undeleted;
pub use unused::Unused;
pub use verify::{Finding, Verification};
pub use waiting::{Answered, Stands, Waiting};

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use serde::Serialize;

pub use backup::{BackedUp, BackupReport};
pub use export::{ExportReport, ExportedLines};
pub(super) use guard::refuse_backup;
pub use import::{ImportOptions, ImportReport, Imported, LINE_BYTES, LineNote};
pub(super) use restore::recover;
pub use restore::{RestoreOptions, RestoreReport, RestoredFile, RestoredSessions};

use super::connection::{Mode, Pool, for_long_work};
use super::event::{self, Line};
use super::fault::{Fault, Place};
use super::layout::{LevelFile, identity};
use super::record::{Book, Record};
use super::schema::Kind;
use super::{Inner, SqliteStorage};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::provenance::Origin;

/// The session's name in the lines that an operator's commands leave.
pub const SESSION: &str = "operator";

/// What an operator does with a store, at one moment. Cheap to make.
///
/// ```
/// # use remora_host::{Clock as _, SystemClock, storage::{SqliteStorage, sqlite::SqliteOptions}};
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let storage = SqliteStorage::open(folder, SqliteOptions::default())?;
/// let operator = storage.operator(SystemClock.now());
/// for agent in operator.agents()? {
///     println!("{agent}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Operator<'a> {
    pub(super) inner: &'a Inner,
    pub(super) now: Instant,
}

impl SqliteStorage {
    /// What the person who runs the store does with it, as of `now`.
    #[must_use]
    pub fn operator(&self, now: Instant) -> Operator<'_> {
        Operator {
            inner: &self.inner,
            now,
        }
    }
}

impl std::fmt::Debug for Operator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator")
            .field("root", &self.inner.layout.root())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// How far long work has come. Told every now and then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done: one of few words, `prune` for example.
    pub step: &'static str,
    /// In whose files; none for `sessions.db`.
    pub agent: Option<String>,
    /// On which level.
    pub level: Option<Level>,
    /// So much is done, in rows unless the step's own page says otherwise.
    pub done: u64,
    /// Of so much. Zero where nobody knows.
    pub total: u64,
}

impl Progress {
    pub(super) fn of(step: &'static str, file: &LevelFile, done: u64, total: u64) -> Self {
        Self {
            step,
            agent: Some(file.agent.clone()),
            level: Some(file.level),
            done,
            total,
        }
    }
}

/// So many days, as a span of time.
#[must_use]
pub fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

impl<'a> Operator<'a> {
    /// The moment that everything here takes as now.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The agents that have files in the store, by name.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where the folder can't be read.
    pub fn agents(&self) -> Result<Vec<String>, Error> {
        let (mut agents, _) = self.folders()?;
        agents.sort();
        Ok(agents)
    }

    /// The agents that have a folder, and what lies beside these folders and is
    /// no agent's.
    pub(super) fn folders(&self) -> Result<(Vec<String>, Vec<PathBuf>), Error> {
        let folder = self.inner.layout.root().join("agents");
        let say = |error: std::io::Error| Place::path(&folder).say(error.into());
        let (mut agents, mut strange) = (Vec::new(), Vec::new());
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((agents, strange));
            }
            Err(error) => return Err(say(error)),
        };
        for entry in entries {
            let path = entry.map_err(say)?.path();
            let agent = path.file_name().and_then(|name| name.to_str());
            let agent = agent.and_then(agent_of);
            // Only the one name that the agent's folder would be given.
            let agent = agent.filter(|agent| {
                let file = self.inner.layout.level(agent, Level::Public);
                super::check_name("agent", agent).is_ok() && file.path.parent() == Some(&path)
            });
            match agent {
                Some(agent) if path.is_dir() && !path.is_symlink() => agents.push(agent),
                _ => strange.push(path),
            }
        }
        strange.sort();
        Ok((agents, strange))
    }

    /// The levels of an agent that have a file, lowest first.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for what can't be an agent's name,
    /// [`ErrorKind::Unavailable`].
    pub fn levels(&self, agent: &str) -> Result<Vec<Level>, Error> {
        Ok(self
            .files(Some(agent))?
            .into_iter()
            .map(|file| file.level)
            .collect())
    }

    /// The files of one agent or of all that exist: agents by name, levels from
    /// the lowest.
    pub(super) fn files(&self, agent: Option<&str>) -> Result<Vec<LevelFile>, Error> {
        let agents = match agent {
            Some(agent) => {
                super::check_name("agent", agent)?;
                vec![agent.to_owned()]
            }
            None => self.agents()?,
        };
        let mut files = Vec::new();
        for agent in agents {
            for level in Level::ALL {
                let file = self.inner.layout.level(&agent, level);
                if identity(&file.path)?.is_some() {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    /// The same as [`Self::files`], but an agent that is named must have some.
    pub(super) fn files_of(&self, agent: Option<&str>) -> Result<Vec<LevelFile>, Error> {
        let files = self.files(agent)?;
        match agent {
            Some(agent) if files.is_empty() => Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "There is no agent \"{}\" in this store",
                    agent.escape_debug()
                ),
                format!("These have memories: {}", list(&self.agents()?)),
                "Name one of these",
            )),
            _ => Ok(files),
        }
    }

    /// Reads a file in one snapshot, through a connection that can't write.
    pub(super) fn read<T>(
        &self,
        file: &LevelFile,
        work: impl FnOnce(&Connection, &Book<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let place = file.operator_place();
        let link = self.inner.reader(file, place.clone(), None)?;
        let gone = || Fault::Io(std::io::ErrorKind::NotFound.into());
        let link = link.ok_or_else(|| place.say(gone()))?;
        let result = link.run(|db| {
            let tx = db.unchecked_transaction()?;
            work(&tx, &self.inner.book(file))
        });
        self.inner.pool.give_back(link);
        result
    }

    /// A connection of the operator's own to a file: no authorizer, no deadline.
    /// The file is brought up to date, and what an earlier purge left half done
    /// in it is finished.
    pub(super) fn maintain<T>(
        &self,
        file: &LevelFile,
        work: impl FnOnce(&Connection, &Book<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let work = || {
            let db = self.open(file)?;
            purge::finish(self, &db, file)?;
            let done = work(&db, &self.inner.book(file))?;
            // Closing says nothing of what fails then, so it is done by name.
            db.close().map_err(|(_, error)| error)?;
            Ok(done)
        };
        work().map_err(|fault| file.operator_place().say(fault))
    }

    /// Changes a file in one transaction, like [`Self::maintain`].
    pub(super) fn change<T>(
        &self,
        file: &LevelFile,
        work: impl FnOnce(&Connection, &Book<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        self.maintain(file, |db, book| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            Kind::level(file).check_current(&tx)?;
            let done = work(&tx, book)?;
            fault_point("before-commit");
            tx.commit()?;
            // A reader looks each page up in the log first, and a command writes many. It
            // is done already, so whether this succeeds is no matter, and none is waited for.
            db.busy_timeout(Duration::ZERO)?;
            drop(empty_log(db));
            Ok(done)
        })
    }

    fn open(&self, file: &LevelFile) -> Result<Connection, Fault> {
        let pool: &Pool = &self.inner.pool;
        let kind = Kind::level(file);
        let db = pool.connect(&file.path, Mode::Write)?;
        for_long_work(&db)?;
        let wal: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if kind.check(&db, &self.inner.sealer)? && wal.eq_ignore_ascii_case("wal") {
            return Ok(db);
        }
        drop(db);
        pool.maintain(&file.path, &kind)?;
        let db = pool.connect(&file.path, Mode::Write)?;
        for_long_work(&db)?;
        Ok(db)
    }

    /// Leaves the one line of an operator's command in a file's trail.
    pub(super) fn log(
        &self,
        db: &Connection,
        book: &Book<'_>,
        kind: &str,
        key: Option<&str>,
        detail: &str,
    ) -> Result<(), Fault> {
        event::append_operator(db, book, &self.now.to_sql(), kind, key, detail)
    }

    /// Leaves the line of an operator's command that is about one record.
    pub(super) fn log_of(
        &self,
        db: &Connection,
        book: &Book<'_>,
        kind: &str,
        record: &Record,
        detail: &str,
    ) -> Result<(), Fault> {
        let line = Line {
            at: &self.now.to_sql(),
            kind,
            session: SESSION,
            origin: Origin::User,
            record: Some((&record.id, &record.key)),
            detail: Some(detail),
        };
        event::append(db, book, line)
    }

    /// The moment so long ago, as files hold it.
    pub(super) fn before(&self, ago: Duration) -> String {
        let millis = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        Instant::from_millis_clamped(self.now.millis().saturating_sub(millis)).to_sql()
    }
}

/// Whose folder has that name.
fn agent_of(folder: &str) -> Option<String> {
    let mut name = Vec::with_capacity(folder.len());
    let mut bytes = folder.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            name.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            name.push(byte);
        }
    }
    String::from_utf8(name).ok()
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// Brings the log into the file and empties it. False: somebody reads an older
/// state or writes.
fn empty_log(db: &Connection) -> Result<bool, Fault> {
    let busy = db
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    Ok(busy == Some(0))
}

/// A moment as a file holds it.
fn instant(text: &str) -> Result<Instant, Fault> {
    Instant::from_sql(text).ok_or(Fault::Altered("a date can't be read"))
}

/// A count as reports give it.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// What a test does at a fault point, which it is told by name.
#[cfg(test)]
type Hook = Box<dyn FnMut(&str)>;

#[cfg(test)]
thread_local! {
    static AT_FAULT_POINT: std::cell::RefCell<Option<Hook>> =
        const { std::cell::RefCell::new(None) };
}

/// Has a test look at what a crash at each fault point of this thread would leave
/// behind; none ends it.
#[cfg(test)]
pub(super) fn watch(hook: Option<Hook>) {
    AT_FAULT_POINT.with(|kept| *kept.borrow_mut() = hook);
}

/// A place where a test looks at what a crash just here would leave behind.
#[cfg(test)]
pub(super) fn fault_point(name: &str) {
    // Taken out, so that a hook may use the store itself.
    let hook = AT_FAULT_POINT.with(|hook| hook.borrow_mut().take());
    if let Some(mut hook) = hook {
        hook(name);
        AT_FAULT_POINT.with(|kept| *kept.borrow_mut() = Some(hook));
    }
}

/// A place where a test looks at what a crash just here would leave behind.
#[cfg(not(test))]
pub(super) fn fault_point(_: &str) {}
