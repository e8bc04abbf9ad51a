//! Connections: how a file is opened, and how an open one is kept for the next
//! call.
//!
//! # Locking
//!
//! Every file is in WAL mode: readers never wait, and writers take turns with
//! `BEGIN IMMEDIATE`, waiting at most the busy timeout or the call's deadline.
//! The switch to WAL ignores the busy timeout, so it is tried again until then.
//!
//! # Who may do what
//!
//! A session's connection opens its file READONLY or for writing, never makes
//! it, and once set up an authorizer denies ATTACH, DETACH and every PRAGMA but
//! `data_version`, which FTS5 itself asks. Making, migrating and switching to
//! WAL are left to a maintenance connection, which lives for that alone.
//!
//! # Performance
//!
//! Opening a file, reading its schema and checking its description costs
//! milliseconds, a call microseconds; so connections are pooled, with their
//! prepared statements. A pooled connection is only used while its file is still
//! the one at its path: a `stat` tells.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Watch;
use super::fault::{Fault, Place};
use super::layout::{Identity, check_beside, identity, way_to};
use super::schema::Kind;
use super::search::postings;
use crate::error::Error;
use crate::seal::Sealer;

/// The first SQLite without the WAL-reset bug, which could lose a commit:
/// <https://sqlite.org/wal.html#walresetbug>.
const SQLITE_AT_LEAST: i32 = 3_051_003;

/// Idle connections kept in all. Each holds three descriptors, so this stays far
/// from the usual limit of 1024.
const IDLE: usize = 48;

/// Prepared statements kept with a connection: more than all that this module's
/// callers use on one, so none is ever prepared twice.
const STATEMENTS: usize = 96;

/// SQLite's own instructions between two looks at the clock: some tens of
/// microseconds.
const OPS_BETWEEN_CHECKS: i32 = 1000;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Opened READONLY.
    Read,
    /// Opened for writing, by the session whose own level it is.
    Write,
    /// Opened to write down what may be lost: commits don't wait for the disk,
    /// and another's lock is hardly waited for.
    Count,
}

/// How long [`Mode::Count`] waits for a lock: less than anybody notices.
const COUNT_WAIT: Duration = Duration::from_millis(50);

/// When a connection's work is to be broken off. Shared with its progress
/// handler, and set afresh by every call that takes it from the pool.
#[derive(Debug)]
struct Limit {
    began: Instant,
    nanos: AtomicU64,
}

impl Limit {
    fn set(&self, deadline: Option<Instant>) {
        let nanos = deadline.map_or(u64::MAX, |deadline| {
            let left = deadline.saturating_duration_since(self.began).as_nanos();
            u64::try_from(left).unwrap_or(u64::MAX)
        });
        self.nanos.store(nanos, Ordering::Relaxed);
    }

    fn passed(&self) -> bool {
        self.began.elapsed().as_nanos() >= u128::from(self.nanos.load(Ordering::Relaxed))
    }
}

/// An open file.
pub(super) struct Link {
    db: Connection,
    limit: Arc<Limit>,
    identity: Identity,
    path: PathBuf,
    mode: Mode,
    place: Place,
    /// Whether its file has become another version's: not to be used again.
    outdated: AtomicBool,
}

impl Link {
    /// Does something with the file, and says where it was if that fails.
    pub(super) fn run<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        if self.limit.passed() {
            return Err(self.place.say(interrupted()));
        }
        work(&self.db).map_err(|fault| {
            if matches!(fault, Fault::Outdated) {
                self.outdated.store(true, Ordering::Relaxed);
            }
            self.place.say(fault)
        })
    }
}

/// What SQLite says when its work is broken off.
pub(super) fn interrupted() -> Fault {
    Fault::Sql(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT),
        None,
    ))
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Refuses to run on a SQLite that loses commits.
pub(super) fn check_version() -> Result<(), Error> {
    if rusqlite::version_number() < SQLITE_AT_LEAST {
        return Err(Error::unavailable(
            format!(
                "This is SQLite {}, which can lose commits",
                rusqlite::version()
            ),
            "Remora needs 3.51.3 or later",
            "Build it with the SQLite that it brings along",
        ));
    }
    Ok(())
}

/// Opens files, and keeps open ones for the next call.
pub(super) struct Pool {
    idle: Mutex<Vec<Link>>,
    sealer: Arc<Sealer>,
    busy_timeout: Duration,
    began: Instant,
    watch: Option<Watch>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &self.idle)
            .field("busy_timeout", &self.busy_timeout)
            .finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(sealer: Arc<Sealer>, busy_timeout: Duration) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            sealer,
            busy_timeout,
            began: Instant::now(),
            watch: None,
        }
    }

    /// With somebody who is told of a file that is indexed again.
    pub(super) fn watched(mut self, watch: Option<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Opens a file. None when there is none.
    pub(super) fn take(
        &self,
        path: &Path,
        kind: &Kind<'_>,
        mode: Mode,
        place: Place,
        deadline: Option<Instant>,
    ) -> Result<Option<Link>, Error> {
        // Looked up first, so that a missing file is never made.
        let found = identity(path)?;
        let idle = self.pop(path, mode);
        let Some(found) = found else {
            return Ok(None);
        };
        let link = match idle {
            Some(link) if link.identity == found => link,
            _ => self
                .open(path, kind, mode, place.clone(), found)
                .map_err(|fault| place.say(fault))?,
        };
        link.limit.set(deadline);
        let wait = deadline.map_or(self.busy_timeout, |deadline| {
            deadline
                .saturating_duration_since(Instant::now())
                .min(self.busy_timeout)
        });
        let wait = match mode {
            Mode::Count => wait.min(COUNT_WAIT),
            Mode::Read | Mode::Write => wait,
        };
        link.db
            .busy_timeout(wait)
            .map_err(|error| place.say(error.into()))?;
        Ok(Some(link))
    }

    fn pop(&self, path: &Path, mode: Mode) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle
            .iter()
            .rposition(|link| link.mode == mode && link.path == path)?;
        Some(idle.remove(at))
    }

    /// Keeps a connection for the next call. One that is in the middle of
    /// something, or out of date, is closed instead.
    pub(super) fn give_back(&self, link: Link) {
        if !link.db.is_autocommit() || link.outdated.load(Ordering::Relaxed) {
            return;
        }
        let evicted = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(link);
            (idle.len() > IDLE).then(|| idle.remove(0))
        };
        // Closed outside the lock: it may write back the WAL.
        drop(evicted);
    }

    /// How many connections are kept.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.idle.lock().map(|idle| idle.len()).unwrap_or(0)
    }

    fn open(
        &self,
        path: &Path,
        kind: &Kind<'_>,
        mode: Mode,
        place: Place,
        found: Identity,
    ) -> Result<Link, Fault> {
        check_beside(path)?;
        let mut db = match self.connect(path, mode) {
            // A folder on the way may be a symbolic link, which SQLite takes for no
            // more than a file that it can't open.
            Err(fault) if fault.cannot_open() => {
                way_to(path)?;
                return Err(fault);
            }
            connected => connected?,
        };
        let current = kind.check(&db, &self.sealer)?;
        let wal: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        // A reader is content with any journal; a backup that was put back has
        // another one until somebody writes.
        if !current || (mode != Mode::Read && !wal.eq_ignore_ascii_case("wal")) {
            drop(db);
            self.maintain(path, kind)?;
            db = self.connect(path, mode)?;
            if !kind.check(&db, &self.sealer)? {
                return Err(Fault::Foreign(
                    "its schema is another after migrating".to_owned(),
                ));
            }
        }
        db.authorizer(Some(authorize))?;
        let limit = Arc::new(Limit {
            began: self.began,
            nanos: AtomicU64::new(u64::MAX),
        });
        let watched = Arc::clone(&limit);
        db.progress_handler(OPS_BETWEEN_CHECKS, Some(move || watched.passed()))?;
        let watched = Arc::clone(&limit);
        postings::register(&db, move || watched.passed())?;
        if identity(path)? != Some(found) {
            return Err(Fault::Foreign(
                "it was replaced while it was opened".to_owned(),
            ));
        }
        Ok(Link {
            db,
            limit,
            identity: found,
            path: path.to_owned(),
            mode,
            place,
            outdated: AtomicBool::new(false),
        })
    }

    pub(super) fn connect(&self, path: &Path, mode: Mode) -> Result<Connection, Fault> {
        if mode == Mode::Read && has_rollback_journal(path) {
            // What a crash left half done (a restore's exchange of files, say) is
            // undone by whoever may write, at their first look. A reader could
            // only say that it can't.
            let db = self.connect(path, Mode::Write)?;
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        }
        let access = match mode {
            Mode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Mode::Write | Mode::Count => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let db = Connection::open_with_flags(
            path,
            access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW,
        )?;
        db.busy_timeout(self.busy_timeout)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        // A plan does not depend on what is bound to its statement, which is not
        // prepared again then: FTS5 binds very often.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.execute_batch(
            "PRAGMA foreign_keys = ON;
             PRAGMA synchronous = FULL;
             PRAGMA secure_delete = ON;
             PRAGMA temp_store = MEMORY;
             PRAGMA cell_size_check = ON;",
        )?;
        if mode == Mode::Count {
            db.execute_batch("PRAGMA synchronous = NORMAL;")?;
        }
        Ok(db)
    }

    /// Makes a database of an empty file, or brings an older one up to date.
    pub(super) fn maintain(&self, path: &Path, kind: &Kind<'_>) -> Result<(), Fault> {
        let mut db = self.connect(path, Mode::Write)?;
        self.switch_to_wal(&db)?;
        kind.migrate(&mut db, &self.sealer, self.watch.as_ref())?;
        // Closing says nothing of what fails then, so it is done by name.
        db.close().map_err(|(_, error)| error)?;
        Ok(())
    }

    fn switch_to_wal(&self, db: &Connection) -> Result<(), Fault> {
        let began = Instant::now();
        loop {
            let switched = db.query_row("PRAGMA journal_mode = WAL", [], |row| {
                row.get::<_, String>(0)
            });
            match switched {
                Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
                Ok(_) => {
                    return Err(Fault::Io(std::io::Error::other(
                        "the file system can't share memory, so there is no WAL",
                    )));
                }
                Err(error)
                    if matches!(
                        error.sqlite_error_code(),
                        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                    ) && began.elapsed() < self.busy_timeout =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Gives a connection room to keep more of a file at hand, for work that walks
/// through all of it: without it the time grows faster than the file, from where
/// its indexes no longer fit (2 MB by default).
pub(super) fn for_long_work(db: &Connection) -> Result<(), Fault> {
    const KIB: i64 = 64 * 1024;
    db.pragma_update(None, "cache_size", -KIB)?;
    Ok(())
}

/// Whether a rollback journal lies beside a file. In normal use there is none,
/// since the files are in WAL mode.
fn has_rollback_journal(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    std::fs::symlink_metadata(journal).is_ok_and(|there| there.len() > 0)
}

/// What a session's statements may do.
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            if pragma_name.eq_ignore_ascii_case("data_version") && pragma_value.is_none() {
                Authorization::Allow
            } else {
                Authorization::Deny
            }
        }
        _ => Authorization::Allow,
    }
}
