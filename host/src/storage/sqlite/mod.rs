//! A store in a folder, with one SQLite file per agent and level.
//!
//! | module | one idea |
//! | --- | --- |
//! | `layout` | the folder: what lies where, how files come to be |
//! | `schema` | the tables, and how older files become newer ones |
//! | `connection` | how a file is opened, and kept open for the next call |
//! | `record` | records as sealed, indexed rows |
//! | `read` | what a call may read |
//! | `write` | what a call may change |
//! | `search` | scores over exactly what a call may see |
//! | `edge` | what took the place of what |
//! | `history` | what was saved under a key |
//! | `stamp` | that a record is still true |
//! | `stale` | what is to be checked again |
//! | `usage` | which records are used |
//! | `event` | the audit trail |
//! | `operator` | what the person who runs the store does with it |
//! | `sessions` | the control plane |
//! | `fault` | what is said when something fails |
//!
//! # Isolation
//!
//! A call at taint T opens the files at or below T: the one at T for writing
//! (and reading), the others READONLY. Nothing here opens another one on behalf
//! of a session. No transaction outlives a method. A file that does not exist is
//! an empty shelf, and only a write to that very level makes it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Transaction, TransactionBehavior};

use crate::error::Error;
use crate::level::Level;
use crate::seal::Sealer;
use crate::storage::{Access, ControlPlane, Event, Shelves, StorageProvider, check_name};

mod connection;
mod edge;
mod event;
mod fault;
mod history;
mod layout;
pub mod operator;
mod read;
mod record;
mod schema;
mod search;
mod sessions;
mod stale;
mod stamp;
#[cfg(test)]
mod tests;
mod usage;
mod write;

use connection::{Link, Mode, Pool};
use event::Line;
use fault::{Fault, Place};
use layout::{Identity, Layout, LevelFile, identity};
use read::SqliteShelves;
use record::Book;
use schema::Kind;
use usage::Usage;

/// Makes the ids of records: random, so that they tell nothing of what else was
/// saved.
pub type Ids = Arc<dyn Fn() -> [u8; 16] + Send + Sync>;

/// Is called where long work begins that nobody asked for: a file that another
/// analyser indexed is indexed again. What it returns is told how far that has come,
/// and dropped at its end.
pub type Watch = Arc<dyn Fn() -> Box<dyn FnMut(operator::Progress)> + Send + Sync>;

/// How a store behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// Where ids come from. None: the system's random numbers.
    pub ids: Option<Ids>,
    /// The most rows of one page, beneath the limits of the contract. Tests set
    /// it low, to cross many pages.
    pub page_rows: Option<usize>,
    /// How long to wait for another process's lock, unless the call's deadline
    /// comes first.
    pub busy_timeout: Duration,
    /// Who is told of long work that nobody asked for. None: the log alone.
    pub watch: Option<Watch>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            ids: None,
            page_rows: None,
            busy_timeout: Duration::from_secs(5),
            watch: None,
        }
    }
}

impl SqliteOptions {
    /// With ids from there.
    #[must_use]
    pub fn ids(mut self, ids: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        self.ids = Some(Arc::new(ids));
        self
    }

    /// With at most so many rows in one page.
    #[must_use]
    pub fn page_rows(mut self, rows: usize) -> Self {
        self.page_rows = Some(rows);
        self
    }

    /// With somebody who is told of long work that nobody asked for.
    #[must_use]
    pub fn watch(
        mut self,
        watch: impl Fn() -> Box<dyn FnMut(operator::Progress)> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// Waiting so long for a lock.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("page_rows", &self.page_rows)
            .field("busy_timeout", &self.busy_timeout)
            .finish_non_exhaustive()
    }
}

/// A store in a folder. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct SqliteStorage {
    inner: Arc<Inner>,
}

impl fmt::Debug for SqliteStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStorage")
            .field("root", &self.inner.layout.root())
            .finish_non_exhaustive()
    }
}

struct Inner {
    layout: Layout,
    sealer: Arc<Sealer>,
    pool: Pool,
    /// Which file `sessions.db` was when the store was opened.
    sessions: Identity,
    options: SqliteOptions,
    usage: Usage,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.write_all_usage();
    }
}

impl SqliteStorage {
    /// Opens the store in a folder, and makes both where there is none. Any
    /// number of processes may do so at once.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable), saying which
    /// file stands in the way and what to do;
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for the folder of a
    /// backup.
    pub fn open(root: &Path, options: SqliteOptions) -> Result<Self, Error> {
        operator::refuse_backup(root)?;
        Self::open_any(root, options)
    }

    /// The same, a backup's folder too.
    fn open_any(root: &Path, options: SqliteOptions) -> Result<Self, Error> {
        connection::check_version()?;
        let layout = Layout::open(root)?;
        let (secret, new) = layout.secret()?;
        let sealer = Arc::new(Sealer::new(&secret));
        let pool =
            Pool::new(Arc::clone(&sealer), options.busy_timeout).watched(options.watch.clone());
        let path = layout.sessions();
        let place = Place::path(&path);
        if new {
            layout
                .make_sessions(|path| pool.maintain(path, &Kind::sessions()))
                .map_err(|fault| place.say(fault))?;
        }
        let gone = || Fault::Io(std::io::ErrorKind::NotFound.into());
        let sessions = identity(&path)?.ok_or_else(|| place.say(gone()))?;
        let inner = Inner {
            layout,
            sealer,
            pool,
            sessions,
            options,
            usage: Usage::default(),
        };
        let storage = Self {
            inner: Arc::new(inner),
        };
        storage.check()?;
        Ok(storage)
    }

    /// The store's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.inner.layout.root()
    }

    /// Where the store is, for people.
    #[must_use]
    pub fn location(&self) -> String {
        self.root().display().to_string()
    }
}

impl Inner {
    fn book<'a>(&'a self, file: &'a LevelFile) -> Book<'a> {
        Book {
            file,
            sealer: &self.sealer,
        }
    }

    /// A connection that reads a level's file; none where there is no file.
    fn reader(
        &self,
        file: &LevelFile,
        place: Place,
        deadline: Option<std::time::Instant>,
    ) -> Result<Option<Link>, Error> {
        self.pool
            .take(&file.path, &Kind::level(file), Mode::Read, place, deadline)
    }

    /// A connection that writes a level's file, which is made where there is
    /// none.
    fn writer(
        &self,
        file: &LevelFile,
        deadline: Option<std::time::Instant>,
    ) -> Result<Link, Error> {
        let kind = Kind::level(file);
        let take = || {
            self.pool
                .take(&file.path, &kind, Mode::Write, file.place(), deadline)
        };
        if let Some(link) = take()? {
            return Ok(link);
        }
        self.layout
            .make_level(file, |path| self.pool.maintain(path, &kind))
            .map_err(|fault: Fault| file.place().say(fault))?;
        take()?.ok_or_else(|| {
            file.place()
                .say(Fault::Io(std::io::ErrorKind::NotFound.into()))
        })
    }

    /// Adds a line to a level's audit trail, on the host's own behalf.
    fn append(&self, agent: &str, level: Level, line: Line<'_>) -> Result<(), Error> {
        let file = self.layout.level(agent, level);
        let link = self.writer(&file, None)?;
        let result = link.run(|db| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            event::append(&tx, &self.book(&file), line)?;
            Ok(tx.commit()?)
        });
        self.pool.give_back(link);
        result
    }
}

impl StorageProvider for SqliteStorage {
    fn open(&self, access: Access) -> Result<Box<dyn Shelves>, Error> {
        check_name("agent", &access.agent)?;
        check_name("session", &access.session)?;
        Ok(Box::new(SqliteShelves::new(
            Arc::clone(&self.inner),
            access,
        )))
    }

    fn control(&self) -> &dyn ControlPlane {
        self
    }

    fn events(&self, agent: &str, level: Level) -> Result<Vec<Event>, Error> {
        check_name("agent", agent)?;
        let file = self.inner.layout.level(agent, level);
        let Some(link) = self.inner.reader(&file, file.operator_place(), None)? else {
            return Ok(Vec::new());
        };
        let result = link.run(|db| {
            // One snapshot: the trail and its head must be of one moment.
            let tx = db.unchecked_transaction()?;
            let events = event::all(&tx, &self.inner.book(&file), level)?;
            tx.commit()?;
            Ok(events)
        });
        self.inner.pool.give_back(link);
        result
    }

    fn location(&self) -> String {
        Self::location(self)
    }
}
