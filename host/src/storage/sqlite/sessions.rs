//! The control plane: the sessions of the store, in `sessions.db`.
//!
//! What a session has observed grants reading, so no guess is safe here: a row
//! that fails its seal, a file that is gone or that another one replaced while
//! this process ran, is an error, and the caller refuses the session's calls.
//!
//! # Performance
//!
//! [`ControlPlane::load`] is asked at the start of every call: one `stat`, one
//! prepared look-up by primary key and one seal.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior};

use super::connection::Mode;
use super::event::Line;
use super::fault::{Fault, Place};
use super::layout::identity;
use super::schema::Kind;
use super::{Inner, SqliteStorage};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::provenance::Origin;
use crate::seal::{Encoder, Purpose, Sealer};
use crate::storage::{ControlPlane, NewSession, SessionRow, check_name};

const COLUMNS: &str =
    "name, agent, taint, clearance, origin, observed, created_at, updated_at, seal";

impl Inner {
    pub(super) fn sessions<T>(
        &self,
        mode: Mode,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let path = self.layout.sessions();
        let place = Place::path(&path);
        if identity(&path)? != Some(self.sessions) {
            return Err(Error::unavailable(
                format!(
                    "{} is gone, or was replaced while Remora ran",
                    path.display()
                ),
                "Without it nobody can know what a session has observed, so no call is answered",
                "Put it back; where it was restored on purpose, start Remora again",
            ));
        }
        let link = self
            .pool
            .take(&path, &Kind::sessions(), mode, place.clone(), None)?
            .ok_or_else(|| place.say(std::io::Error::from(std::io::ErrorKind::NotFound).into()))?;
        let result = link.run(work);
        self.pool.give_back(link);
        result
    }

    fn change(
        &self,
        name: &str,
        change: impl Fn(&SessionRow) -> SessionRow,
    ) -> Result<(SessionRow, bool), Error> {
        // Looked at first without the lock: mostly nothing changes, and then
        // nobody should wait.
        let row = self.load(name)?.ok_or_else(|| no_such_session(name))?;
        if change(&row) == row {
            return Ok((row, false));
        }
        self.sessions(Mode::Write, |db| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            let row = read(&tx, &self.sealer, name)?.ok_or_else(|| no_such_session(name))?;
            let changed = change(&row);
            if changed == row {
                return Ok((row, false));
            }
            tx.prepare_cached(
                "UPDATE session SET taint = ?2, origin = ?3, observed = ?4, updated_at = ?5,
                     seal = ?6
                 WHERE name = ?1",
            )?
            .execute(rusqlite::params![
                changed.name,
                changed.taint.name(),
                changed.origin.name(),
                changed.observed.map(Level::name),
                changed.updated_at.to_sql(),
                encode(&self.sealer, &changed).finish(),
            ])?;
            tx.commit()?;
            Ok((changed, true))
        })
    }

    pub(super) fn load(&self, name: &str) -> Result<Option<SessionRow>, Error> {
        self.sessions(Mode::Read, |db| read(db, &self.sealer, name))
    }
}

impl ControlPlane for SqliteStorage {
    fn check(&self) -> Result<(), Error> {
        let kind = Kind::sessions();
        self.inner.sessions(Mode::Read, |db| {
            kind.check_description(db, &self.inner.sealer, kind.schema())?;
            Ok(())
        })
    }

    fn load(&self, name: &str) -> Result<Option<SessionRow>, Error> {
        self.inner.load(name)
    }

    fn create(&self, new: &NewSession, now: Instant) -> Result<(SessionRow, bool), Error> {
        check_name("session", &new.name)?;
        check_name("agent", &new.agent)?;
        let row = SessionRow {
            name: new.name.clone(),
            agent: new.agent.clone(),
            taint: Level::Public,
            clearance: new.clearance,
            origin: new.origin,
            observed: None,
            created_at: now,
            updated_at: now,
        };
        let sealer = &self.inner.sealer;
        self.inner.sessions(Mode::Write, |db| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            if let Some(found) = read(&tx, sealer, &new.name)? {
                return Ok((found, false));
            }
            tx.prepare_cached(
                "INSERT INTO session (name, agent, taint, clearance, origin, observed,
                     created_at, updated_at, seal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(rusqlite::params![
                row.name,
                row.agent,
                row.taint.name(),
                row.clearance.name(),
                row.origin.name(),
                row.observed.map(Level::name),
                row.created_at.to_sql(),
                row.updated_at.to_sql(),
                encode(sealer, &row).finish(),
            ])?;
            tx.commit()?;
            Ok((row, true))
        })
    }

    fn raise(&self, name: &str, level: Level, now: Instant) -> Result<SessionRow, Error> {
        let row = Self::load(self, name)?.ok_or_else(|| no_such_session(name))?;
        let raised = row.having_observed(level, now);
        if raised == row {
            return Ok(row);
        }
        // The line comes first, so that no raise is without one: where it can't
        // be written nothing is raised, and the caller hears so. A crash between
        // the two leaves a line of a raise that was not done.
        let within = can_flow_to(level, raised.clearance);
        self.inner.append(
            &raised.agent,
            raised.trail(level),
            Line {
                at: &now.to_sql(),
                kind: "raise",
                session: &raised.name,
                origin: raised.origin,
                record: None,
                detail: (!within).then_some("above-clearance"),
            },
        )?;
        let (row, _) = self
            .inner
            .change(name, |row| row.having_observed(level, now))?;
        Ok(row)
    }

    fn lower_origin(&self, name: &str, origin: Origin, now: Instant) -> Result<SessionRow, Error> {
        let (row, _) = self
            .inner
            .change(name, |row| row.having_heard(origin, now))?;
        Ok(row)
    }

    fn list(&self) -> Result<Vec<SessionRow>, Error> {
        let sealer = &self.inner.sealer;
        self.inner.sessions(Mode::Read, |db| all(db, sealer))
    }
}

/// Every session, by name, its seal checked.
pub(super) fn all(db: &Connection, sealer: &Sealer) -> Result<Vec<SessionRow>, Fault> {
    let mut statement =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM session ORDER BY name"))?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(Kept::read(row)?.checked(sealer)?);
    }
    Ok(all)
}

/// Writes a session whatever stood under its name: for a restore, which knows
/// that nobody else is there.
pub(super) fn keep(db: &Connection, sealer: &Sealer, row: &SessionRow) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO session (name, agent, taint, clearance, origin, observed,
             created_at, updated_at, seal)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(rusqlite::params![
        row.name,
        row.agent,
        row.taint.name(),
        row.clearance.name(),
        row.origin.name(),
        row.observed.map(Level::name),
        row.created_at.to_sql(),
        row.updated_at.to_sql(),
        encode(sealer, row).finish(),
    ])?;
    Ok(())
}

fn read(db: &Connection, sealer: &Sealer, name: &str) -> Result<Option<SessionRow>, Fault> {
    let found = db
        .prepare_cached(
            "SELECT name, agent, taint, clearance, origin, observed, created_at, updated_at, seal
             FROM session WHERE name = ?1",
        )?
        .query_row([name], Kept::read)
        .optional()?;
    found.map(|kept| kept.checked(sealer)).transpose()
}

fn encode(sealer: &Sealer, row: &SessionRow) -> Encoder {
    sealer
        .begin(Purpose::Session)
        .text(&row.name)
        .text(&row.agent)
        .text(row.taint.name())
        .text(row.clearance.name())
        .text(row.origin.name())
        .optional(row.observed.map(Level::name))
        .text(&row.created_at.to_sql())
        .text(&row.updated_at.to_sql())
}

/// A session as its row holds it.
struct Kept {
    name: String,
    agent: String,
    taint: String,
    clearance: String,
    origin: String,
    observed: Option<String>,
    created_at: String,
    updated_at: String,
    seal: Vec<u8>,
}

impl Kept {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get(0)?,
            agent: row.get(1)?,
            taint: row.get(2)?,
            clearance: row.get(3)?,
            origin: row.get(4)?,
            observed: row.get(5)?,
            created_at: row.get(6)?,
            updated_at: row.get(7)?,
            seal: row.get(8)?,
        })
    }

    /// The session, if the row is the one that was written. Each text is read
    /// in its one spelling, so sealing what was read again is sealing the row.
    fn checked(self, sealer: &Sealer) -> Result<SessionRow, Fault> {
        const ALTERED: Fault = Fault::Altered("a session fails its seal");
        let level = |text: &str| {
            Level::ALL
                .into_iter()
                .find(|level| level.name() == text)
                .ok_or(ALTERED)
        };
        let row = SessionRow {
            taint: level(&self.taint)?,
            clearance: level(&self.clearance)?,
            origin: Origin::ALL
                .into_iter()
                .find(|origin| origin.name() == self.origin)
                .ok_or(ALTERED)?,
            observed: self.observed.as_deref().map(level).transpose()?,
            created_at: Instant::from_sql(&self.created_at).ok_or(ALTERED)?,
            updated_at: Instant::from_sql(&self.updated_at).ok_or(ALTERED)?,
            name: self.name,
            agent: self.agent,
        };
        if encode(sealer, &row).fits(&self.seal) {
            Ok(row)
        } else {
            Err(ALTERED)
        }
    }
}

fn no_such_session(name: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("There is no session \"{}\"", name.escape_debug()),
        "",
        "Name one that exists, or make it",
    )
}
