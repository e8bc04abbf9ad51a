//! The reference monitor: what one call of one session may do.
//!
//! A [`Grant`] is made from the session's row at the start of a call and dropped
//! at its end. Everything that a plugin asks of the host passes through it, so
//! this file is where the host's half of the policy stands: which shelves there
//! are, that only those are read, that a record is on the level it claims, and
//! that a call is bounded. The plugin's own half (`guest/`) shares no code with
//! it.

use std::time::{Duration, Instant as Deadline};

use crate::clock::Instant;
use crate::error::Error;
use crate::level::{Level, can_flow_to};
use crate::provenance::Origin;
use crate::session::{Session, access};
use crate::storage::{
    Counts, Draft, Edge, Entry, Filter, HostDecided, Matches, Memories, Memory, Notable, Presence,
    Receipt, SessionRow, Shelves, StalePosition, TagCount,
};

/// How much one call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// How long it may take, the SQL under it included.
    pub time: Duration,
    /// How many times it may ask the host for something.
    pub requests: u32,
}

impl Default for CallLimits {
    /// Ten seconds and 100,000 requests: a listing of a hundred thousand
    /// shadowed records takes about a thousand.
    fn default() -> Self {
        Self {
            time: crate::plugin::DEFAULT_TIME,
            requests: 100_000,
        }
    }
}

/// A call went past one of its [`CallLimits`]. It ends the call: a plugin is not
/// given the chance to go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Exhausted {
    /// Too many requests.
    #[error("the plugin asked the host for more than {0} things in one call")]
    Requests(u32),
    /// Too long.
    #[error("the call took longer than {0:?}")]
    Time(Duration),
}

/// What one call of one session may do.
pub struct Grant {
    row: SessionRow,
    now: Instant,
    shelves: Box<dyn Shelves>,
    limits: CallLimits,
    deadline: Deadline,
    requests_left: u32,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("session", &self.row.name)
            .field("taint", &self.row.taint)
            .finish_non_exhaustive()
    }
}

impl Grant {
    /// Reads the session afresh and grants one call what it may do now.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) when the
    /// session or the store can't be read.
    pub fn for_call(session: &Session, limits: CallLimits) -> Result<Self, Error> {
        let row = session.state()?;
        let now = session.now();
        let access = access(&row, now, limits.time);
        let deadline = access.deadline;
        Ok(Self {
            shelves: session.store().provider().open(access)?,
            row,
            now,
            limits,
            deadline,
            requests_left: limits.requests,
        })
    }

    /// A grant of nothing: for asking a plugin what tools it has.
    #[must_use]
    pub fn of_nothing() -> Self {
        let epoch = Instant::from_millis_clamped(0);
        let limits = CallLimits::default();
        let start = Deadline::now();
        Self {
            row: SessionRow {
                name: String::new(),
                agent: String::new(),
                taint: Level::Public,
                clearance: Level::Public,
                origin: Origin::Tool,
                observed: None,
                created_at: epoch,
                updated_at: epoch,
            },
            now: epoch,
            shelves: Box::new(Nothing),
            limits,
            deadline: start.checked_add(limits.time).unwrap_or(start),
            requests_left: limits.requests,
        }
    }

    /// The session's level.
    #[must_use]
    pub fn taint(&self) -> Level {
        self.row.taint
    }

    /// The session's clearance.
    #[must_use]
    pub fn clearance(&self) -> Level {
        self.row.clearance
    }

    /// The session's origin.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.row.origin
    }

    /// The session's name.
    #[must_use]
    pub fn session_name(&self) -> &str {
        &self.row.name
    }

    /// The moment of the call.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The levels that may be read, highest first: the shelves handed out.
    pub fn readable(&self) -> impl Iterator<Item = Level> + use<> {
        Level::readable_at(self.row.taint)
    }

    /// Counts a request. Every import of the contract begins with this.
    ///
    /// # Errors
    /// When the call's time or its requests are used up.
    pub fn spend(&mut self) -> Result<(), Exhausted> {
        self.requests_left = self
            .requests_left
            .checked_sub(1)
            .ok_or(Exhausted::Requests(self.limits.requests))?;
        if Deadline::now() > self.deadline {
            return Err(Exhausted::Time(self.limits.time));
        }
        Ok(())
    }

    /// The gate for reading. A shelf handle above the taint does not exist, so
    /// this only refuses what a defect elsewhere let through.
    fn admit(&self, level: Level) -> Result<(), Error> {
        if can_flow_to(level, self.row.taint) {
            Ok(())
        } else {
            Err(Error::refused("There is no such shelf", "", ""))
        }
    }

    /// A record must be of the level it was read from.
    fn vouch(level: Level, memory: &Memory) -> Result<(), Error> {
        if memory.level == level {
            Ok(())
        } else {
            Err(Error::unavailable(
                "A record stands on another level than it says",
                "",
                "Ask the operator to check the store",
            ))
        }
    }

    fn vouch_all(level: Level, memories: Memories) -> Result<Memories, Error> {
        for memory in &memories.items {
            Self::vouch(level, memory)?;
        }
        Ok(memories)
    }

    /// See [`Shelves::fetch`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch(&mut self, level: Level, key: &str) -> Result<Option<Entry>, Error> {
        self.admit(level)?;
        let entry = self.shelves.fetch(level, key)?;
        if let Some(Entry::Live(memory)) = &entry {
            Self::vouch(level, memory)?;
        }
        Ok(entry)
    }

    /// See [`Shelves::search`].
    ///
    /// # Errors
    /// As there.
    pub fn search(
        &mut self,
        level: Level,
        text: &str,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
        self.admit(level)?;
        let matches = self.shelves.search(level, text, after, limit)?;
        for found in &matches.items {
            Self::vouch(level, &found.memory)?;
        }
        Ok(matches)
    }

    /// See [`Shelves::page`].
    ///
    /// # Errors
    /// As there.
    pub fn page(
        &mut self,
        level: Level,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.admit(level)?;
        let memories = self.shelves.page(level, filter, after, limit)?;
        Self::vouch_all(level, memories)
    }

    /// See [`Shelves::present`].
    ///
    /// # Errors
    /// As there.
    pub fn present(&mut self, level: Level, keys: &[String]) -> Result<Vec<Presence>, Error> {
        self.admit(level)?;
        self.shelves.present(level, keys)
    }

    /// See [`Shelves::versions`].
    ///
    /// # Errors
    /// As there.
    pub fn versions(
        &mut self,
        level: Level,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.admit(level)?;
        let memories = self.shelves.versions(level, key, before, limit)?;
        Self::vouch_all(level, memories)
    }

    /// See [`Shelves::edges`].
    ///
    /// # Errors
    /// As there.
    pub fn edges(&mut self, level: Level, ids: &[String]) -> Result<Vec<Edge>, Error> {
        self.admit(level)?;
        self.shelves.edges(level, ids)
    }

    /// See [`Shelves::stale`].
    ///
    /// # Errors
    /// As there.
    pub fn stale(
        &mut self,
        level: Level,
        before: Instant,
        after: Option<&StalePosition>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.admit(level)?;
        let memories = self.shelves.stale(level, before, after, limit)?;
        Self::vouch_all(level, memories)
    }

    /// See [`Shelves::used`].
    ///
    /// # Errors
    /// As there.
    pub fn used(
        &mut self,
        level: Level,
        after: usize,
        limit: usize,
        excerpt_bytes: usize,
    ) -> Result<Memories, Error> {
        self.admit(level)?;
        let memories = self.shelves.used(level, after, limit, excerpt_bytes)?;
        Self::vouch_all(level, memories)
    }

    /// See [`Shelves::counts`].
    ///
    /// # Errors
    /// As there.
    pub fn counts(&mut self, level: Level) -> Result<Counts, Error> {
        self.admit(level)?;
        self.shelves.counts(level)
    }

    /// See [`Shelves::tags`].
    ///
    /// # Errors
    /// As there.
    pub fn tags(&mut self, level: Level, limit: usize) -> Result<Vec<TagCount>, Error> {
        self.admit(level)?;
        self.shelves.tags(level, limit)
    }

    /// See [`Shelves::put`]. There is no level to pass: it is the session's.
    ///
    /// # Errors
    /// As there.
    pub fn put(&mut self, draft: &Draft) -> Result<Receipt, Error> {
        self.shelves.put(draft)
    }

    /// See [`Shelves::retire`].
    ///
    /// # Errors
    /// As there.
    pub fn retire(&mut self, key: &str, hide_lower: bool) -> Result<Option<String>, Error> {
        self.shelves.retire(key, hide_lower)
    }

    /// See [`Shelves::stamp`]. There is no level to pass: it is the session's.
    ///
    /// # Errors
    /// As there.
    pub fn stamp(&mut self, id: &str, source: Option<&str>) -> Result<Instant, Error> {
        self.shelves.stamp(id, source)
    }

    /// See [`Shelves::record_use`].
    pub fn record_use(&mut self, ids: &[String]) {
        self.shelves.record_use(ids);
    }

    /// Writes to the audit trail that the caller passed an argument which only
    /// the host decides.
    ///
    /// # Errors
    /// As [`Shelves::note`].
    pub fn note_ignored(&mut self, argument: HostDecided) -> Result<(), Error> {
        self.shelves.note(Notable::ArgumentIgnored(argument))
    }
}

/// Shelves of [`Grant::of_nothing`].
struct Nothing;

impl Nothing {
    fn refuse<T>() -> Result<T, Error> {
        Err(Error::refused(
            "There is no session here",
            "Asking for tools reads and writes nothing",
            "",
        ))
    }
}

impl Shelves for Nothing {
    fn fetch(&mut self, _: Level, _: &str) -> Result<Option<Entry>, Error> {
        Self::refuse()
    }

    fn search(&mut self, _: Level, _: &str, _: usize, _: usize) -> Result<Matches, Error> {
        Self::refuse()
    }

    fn page(&mut self, _: Level, _: &Filter, _: Option<&str>, _: usize) -> Result<Memories, Error> {
        Self::refuse()
    }

    fn present(&mut self, _: Level, _: &[String]) -> Result<Vec<Presence>, Error> {
        Self::refuse()
    }

    fn versions(&mut self, _: Level, _: &str, _: Option<u64>, _: usize) -> Result<Memories, Error> {
        Self::refuse()
    }

    fn edges(&mut self, _: Level, _: &[String]) -> Result<Vec<Edge>, Error> {
        Self::refuse()
    }

    fn stale(
        &mut self,
        _: Level,
        _: Instant,
        _: Option<&StalePosition>,
        _: usize,
    ) -> Result<Memories, Error> {
        Self::refuse()
    }

    fn used(&mut self, _: Level, _: usize, _: usize, _: usize) -> Result<Memories, Error> {
        Self::refuse()
    }

    fn counts(&mut self, _: Level) -> Result<Counts, Error> {
        Self::refuse()
    }

    fn tags(&mut self, _: Level, _: usize) -> Result<Vec<TagCount>, Error> {
        Self::refuse()
    }

    fn put(&mut self, _: &Draft) -> Result<Receipt, Error> {
        Self::refuse()
    }

    fn retire(&mut self, _: &str, _: bool) -> Result<Option<String>, Error> {
        Self::refuse()
    }

    fn stamp(&mut self, _: &str, _: Option<&str>) -> Result<Instant, Error> {
        Self::refuse()
    }

    fn record_use(&mut self, _: &[String]) {}

    fn note(&mut self, _: Notable) -> Result<(), Error> {
        Self::refuse()
    }
}
