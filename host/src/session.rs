//! Sessions: what a conversation has observed so far, and so may read.
//!
//! A session's state lives in the store's control plane and is read afresh at
//! the start of every call, so a raise by another process governs the very next
//! one. Nothing here caches a taint.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::{Clock, Instant, SystemClock};
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::provenance::Origin;
use crate::storage::{
    Access, Event, NewSession, Notable, SessionRow, SqliteStorage, StorageProvider, check_name,
    sqlite,
};

/// A store with its sessions: what an embedder opens first. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    provider: Arc<dyn StorageProvider>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.location()).finish()
    }
}

/// What a session is to be.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The namespace: one agent's or person's memory, apart from all others.
    pub agent: String,
    /// The most that the session's audience may see. It is fixed when the
    /// session is made; none means RESTRICTED then, and whatever it was later.
    pub clearance: Option<Level>,
    /// The level that the session has observed at least.
    pub taint: Option<Level>,
    /// Who its words come from: an existing session's origin only falls.
    pub origin: Origin,
}

impl SessionOptions {
    /// A session of this agent, at PUBLIC, cleared for everything, speaking with
    /// the person's own words. Where a model calls the tools say
    /// [`origin`](Self::origin)`(Origin::Agent)`: its words are not the person's.
    #[must_use]
    pub fn new(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            clearance: None,
            taint: None,
            origin: Origin::User,
        }
    }

    /// With a clearance.
    #[must_use]
    pub fn clearance(mut self, clearance: Level) -> Self {
        self.clearance = Some(clearance);
        self
    }

    /// Having observed at least `taint`.
    #[must_use]
    pub fn taint(mut self, taint: Level) -> Self {
        self.taint = Some(taint);
        self
    }

    /// With words of at most this origin.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Refuses what no session can start as.
    fn check_start(&self) -> Result<(), Error> {
        if let (Some(taint), Some(clearance)) = (self.taint, self.clearance)
            && !can_flow_to(taint, clearance)
        {
            return Err(Error::invalid(
                format!(
                    "The taint {taint} is above the clearance {clearance}: such a session could \
                     never write"
                ),
                "A session starts at its clearance or below",
                "Lower the taint, or give more clearance",
            ));
        }
        Ok(())
    }
}

impl Store {
    /// Opens the SQLite store in a folder, and makes it where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], saying which file stands in the way.
    pub fn open(folder: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        let storage = SqliteStorage::open(folder.as_ref(), sqlite::SqliteOptions::default())?;
        Ok(Self::with(Arc::new(storage), Arc::new(SystemClock)))
    }

    /// A store kept by another provider, or told the time by another clock.
    #[must_use]
    pub fn with(provider: Arc<dyn StorageProvider>, clock: Arc<dyn Clock>) -> Self {
        Self { provider, clock }
    }

    /// Where it is, for people.
    #[must_use]
    pub fn location(&self) -> String {
        self.provider.location()
    }

    /// The session of that name, made with these options where there is none.
    ///
    /// Of an existing one the taint can only rise and the origin only fall.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for a name that can't be one, for a
    /// clearance other than the session's own, or where a session is made, for a
    /// taint above its clearance; [`ErrorKind::Refused`] when it belongs to
    /// another agent; [`ErrorKind::Unavailable`].
    pub fn session(&self, name: &str, options: &SessionOptions) -> Result<Session, Error> {
        check_name("session", name)?;
        check_name("agent", &options.agent)?;
        // Looked up before it is made: attaching to a known session must not
        // write, so that reading goes on while another process holds the lock.
        let row = match self.provider.control().load(name)? {
            Some(row) => row,
            None => self.create(name, options)?.0,
        };
        self.attach(row, options)
    }

    /// A session of that name that was not there before. Of two callers at once,
    /// in whichever processes, one makes it and the other is told.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] where the name is taken or can't be one, and
    /// for a taint above the clearance; [`ErrorKind::Unavailable`].
    pub fn new_session(&self, name: &str, options: &SessionOptions) -> Result<Session, Error> {
        check_name("session", name)?;
        check_name("agent", &options.agent)?;
        let (row, made) = self.create(name, options)?;
        if !made {
            return Err(Error::invalid(
                format!("There is a session \"{}\" already", name.escape_debug()),
                "A session's name is unique in the store, whichever its agent",
                "Choose another name, or use the session that is there",
            ));
        }
        self.attach(row, options)
    }

    /// The session of that name, and whether it was made now.
    fn create(&self, name: &str, options: &SessionOptions) -> Result<(SessionRow, bool), Error> {
        options.check_start()?;
        let new = NewSession {
            name: name.to_owned(),
            agent: options.agent.clone(),
            clearance: options.clearance.unwrap_or(Level::Restricted),
            origin: options.origin,
        };
        self.provider.control().create(&new, self.clock.now())
    }

    /// The session of that row, as the options want it.
    fn attach(&self, row: SessionRow, options: &SessionOptions) -> Result<Session, Error> {
        let (control, now, name) = (self.provider.control(), self.clock.now(), &row.name);
        if row.agent != options.agent {
            return Err(Error::refused(
                format!("The session \"{name}\" belongs to another agent"),
                "A session is bound to the agent it was made for",
                "Name that agent, or choose another session",
            ));
        }
        if let Some(clearance) = options.clearance
            && clearance != row.clearance
        {
            return Err(Error::invalid(
                format!(
                    "The session \"{name}\" has the clearance {}, not {clearance}",
                    row.clearance
                ),
                "A clearance is set when a session is made and stays",
                "Leave it out, or start another session",
            ));
        }
        let session = Session {
            store: self.clone(),
            kept: Kept::Stored(name.clone()),
        };
        // Only what changes is written, so that nothing waits for a lock.
        if row.having_heard(options.origin, now) != row {
            control.lower_origin(name, options.origin, now)?;
        }
        if let Some(taint) = options.taint
            && row.having_observed(taint, now) != row
        {
            control.raise(name, taint, now)?;
        }
        Ok(session)
    }

    /// A session that ends with this value: nothing else can reach it, and its
    /// taint is forgotten with it. Its name starts with `once-`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for an agent that can't be one, or a taint
    /// above the clearance; [`ErrorKind::Unavailable`].
    pub fn one_shot(&self, options: &SessionOptions) -> Result<Session, Error> {
        check_name("agent", &options.agent)?;
        options.check_start()?;
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(|error| {
            Error::unavailable(
                "The system gave no random bytes",
                "A session's name needs some",
                "Try again",
            )
            .caused_by(error)
        })?;
        let now = self.clock.now();
        let row = SessionRow {
            name: format!("once-{:016x}", u64::from_be_bytes(random)),
            agent: options.agent.clone(),
            taint: Level::Public,
            clearance: options.clearance.unwrap_or(Level::Restricted),
            origin: options.origin,
            observed: None,
            created_at: now,
            updated_at: now,
        };
        // Where it starts is no raise: nothing of it was served lower.
        let row = row.having_observed(options.taint.unwrap_or(Level::Public), now);
        Ok(Session {
            store: self.clone(),
            kept: Kept::Here(Arc::new(Mutex::new(row))),
        })
    }

    /// The session of that name, where there is one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Unavailable`].
    pub fn existing_session(&self, name: &str) -> Result<Session, Error> {
        match self.provider.control().load(name)? {
            Some(_) => Ok(Session {
                store: self.clone(),
                kept: Kept::Stored(name.to_owned()),
            }),
            None => Err(no_such_session(name)),
        }
    }

    /// Every kept session, by name.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    pub fn sessions(&self) -> Result<Vec<SessionRow>, Error> {
        self.provider.control().list()
    }

    /// The audit trail of one agent's level, oldest first, its chain checked.
    /// For the operator: it goes round the gate.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], also for a trail that was altered.
    pub fn events(&self, agent: &str, level: Level) -> Result<Vec<Event>, Error> {
        self.provider.events(agent, level)
    }

    pub(crate) fn provider(&self) -> &dyn StorageProvider {
        &*self.provider
    }
}

fn no_such_session(name: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("There is no session \"{}\"", name.escape_debug()),
        "",
        "`remora session list` shows those that there are",
    )
}

/// One conversation's standing with the store. Cheap to clone; clones are the
/// same session.
#[derive(Clone, Debug)]
pub struct Session {
    store: Store,
    kept: Kept,
}

/// Where a session's row is.
#[derive(Clone, Debug)]
enum Kept {
    /// In the control plane, under this name.
    Stored(String),
    /// With this process alone.
    Here(Arc<Mutex<SessionRow>>),
}

impl Session {
    /// The session as it is now.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when the control plane can't be read or the
    /// session's row is gone or altered: since taint grants reading, no guess
    /// would be safe.
    pub fn state(&self) -> Result<SessionRow, Error> {
        let control = self.store.provider().control();
        match &self.kept {
            Kept::Stored(name) => control.load(name)?.ok_or_else(|| {
                Error::unavailable(
                    format!("The session \"{name}\" is gone from the control plane"),
                    "Without it nothing says what the session may read",
                    "Start another session",
                )
            }),
            Kept::Here(row) => {
                control.check()?;
                Ok(row.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
        }
    }

    /// Records that the session has observed `level`, and returns what it is
    /// then. Up to the clearance its taint rises. Above it nothing is unlocked,
    /// and the session writes no more: see [`SessionRow::observed`].
    ///
    /// Durable when it returns: release whatever is at that level only after.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    pub fn raise(&self, level: Level) -> Result<SessionRow, Error> {
        let now = self.store.clock.now();
        match &self.kept {
            Kept::Stored(name) => self.store.provider().control().raise(name, level, now),
            Kept::Here(row) => {
                let before = row.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let raised = before.having_observed(level, now);
                // The line comes first: see `ControlPlane::raise`.
                if raised != before {
                    let mut access = access(&raised, now, crate::plugin::DEFAULT_TIME);
                    access.taint = raised.trail(level);
                    access.trail = access.taint;
                    let notable = if can_flow_to(level, raised.clearance) {
                        Notable::Raised
                    } else {
                        Notable::RaisedAboveClearance
                    };
                    self.store.provider().open(access)?.note(notable)?;
                }
                let mut row = row.lock().unwrap_or_else(PoisonError::into_inner);
                *row = row.having_observed(level, now);
                Ok(row.clone())
            }
        }
    }

    /// Records that the session has heard words of `origin`: its own origin is
    /// at most that from now on.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    pub fn lower_origin(&self, origin: Origin) -> Result<SessionRow, Error> {
        let now = self.store.clock.now();
        match &self.kept {
            Kept::Stored(name) => self
                .store
                .provider()
                .control()
                .lower_origin(name, origin, now),
            Kept::Here(row) => {
                let mut row = row.lock().unwrap_or_else(PoisonError::into_inner);
                *row = row.having_heard(origin, now);
                Ok(row.clone())
            }
        }
    }

    /// The store it belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn now(&self) -> Instant {
        self.store.clock.now()
    }
}

/// What a call of this session may reach, from its row as read for the call.
pub(crate) fn access(row: &SessionRow, now: Instant, time: std::time::Duration) -> Access {
    let start = std::time::Instant::now();
    Access {
        agent: row.agent.clone(),
        session: row.name.clone(),
        taint: row.taint,
        origin: row.origin,
        read_only: row.observed.map(|_| {
            // Says nothing of what was observed: the sentence reaches the model.
            "This session has observed something above its clearance".to_owned()
        }),
        trail: row.trail(row.taint),
        now,
        // Past what the machine can count there is no deadline to keep.
        deadline: start.checked_add(time).unwrap_or(start),
    }
}
