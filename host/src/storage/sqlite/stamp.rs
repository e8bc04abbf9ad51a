//! Stamps: that somebody said a record is still true.
//!
//! A stamp is kept where it was given, be the record of that level or of a lower
//! one, so a session sees just those given at or below its own level. One of a
//! record of the stamp's own level is on the record as well: reading such a
//! record asks only the levels above it.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::event;
use super::fault::Fault;
use super::read::SqliteShelves;
use super::record::{Book, Record};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::provenance::Origin;
use crate::seal::{Encoder, Purpose};
use crate::storage::{Memory, check_source};

/// A stamp as its row holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) record_id: String,
    pub(super) record_level: String,
    pub(super) at: String,
    pub(super) session: String,
    pub(super) origin: String,
    pub(super) source: Option<String>,
}

impl Stamp {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            record_id: row.get(0)?,
            record_level: row.get(1)?,
            at: row.get(2)?,
            session: row.get(3)?,
            origin: row.get(4)?,
            source: row.get(5)?,
        })
    }

    /// All columns but `latest`, which follows from the others.
    pub(super) fn encode(&self, book: &Book<'_>) -> Encoder {
        book.begin(Purpose::Stamp)
            .text(&self.record_id)
            .text(&self.record_level)
            .text(&self.at)
            .text(&self.session)
            .text(&self.origin)
            .optional(self.source.as_deref())
    }
}

impl Book<'_> {
    /// The latest stamp that this file has of the record with that id.
    pub(super) fn latest_stamp(&self, db: &Connection, id: &str) -> Result<Option<Stamp>, Fault> {
        let found: Option<(Stamp, Vec<u8>)> = db
            .prepare_cached(
                "SELECT record_id, record_level, at, session, origin, source, seal FROM stamp
                 WHERE record_id = ?1 ORDER BY at DESC, session DESC LIMIT 1",
            )?
            .query_row([id], |row| Ok((Stamp::read(row)?, row.get(6)?)))
            .optional()?;
        match found {
            Some((stamp, seal)) if !stamp.encode(self).fits(&seal) => {
                Err(Fault::Altered("a stamp fails its seal"))
            }
            found => Ok(found.map(|(stamp, _)| stamp)),
        }
    }

    /// Writes a stamp. One of the same record, moment and session gives way.
    ///
    /// Does not touch the record: see [`Book::set_confirmed`].
    pub(super) fn add_stamp(&self, db: &Connection, stamp: &Stamp) -> Result<(), Fault> {
        db.prepare_cached(
            "UPDATE stamp SET latest = 0 WHERE record_id = ?1 AND latest = 1 AND at <= ?2",
        )?
        .execute((&stamp.record_id, &stamp.at))?;
        db.prepare_cached(
            "INSERT INTO stamp (record_id, record_level, at, session, origin, source, seal, latest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
                 NOT EXISTS (SELECT 1 FROM stamp WHERE record_id = ?1 AND latest = 1))
             ON CONFLICT (record_id, at, session) DO UPDATE
                 SET record_level = excluded.record_level, origin = excluded.origin,
                     source = excluded.source, seal = excluded.seal, latest = excluded.latest",
        )?
        .execute(rusqlite::params![
            stamp.record_id,
            stamp.record_level,
            stamp.at,
            stamp.session,
            stamp.origin,
            stamp.source,
            stamp.encode(self).finish().as_slice(),
        ])?;
        Ok(())
    }
}

impl SqliteShelves {
    /// When a record was last confirmed, as far as the session can see: the
    /// latest of what the record says and the stamps on the levels above it.
    pub(super) fn confirmed(
        &self,
        level: Level,
        id: &str,
        on_record: Option<String>,
    ) -> Result<Option<String>, Fault> {
        let mut latest = on_record;
        for shelf in self.shelves() {
            if shelf.file.level == level || !can_flow_to(level, shelf.file.level) {
                continue;
            }
            let stamp = self.on(shelf, |db, book| book.latest_stamp(db, id))?;
            // None sorts ahead of any moment.
            latest = latest.max(stamp.flatten().map(|stamp| stamp.at));
        }
        Ok(latest)
    }

    /// A record as the session sees it, with at most so many bytes of content.
    pub(super) fn memory(
        &self,
        level: Level,
        mut record: Record,
        excerpt: usize,
    ) -> Result<Memory, Fault> {
        record.confirmed_at = self.confirmed(level, &record.id, record.confirmed_at.take())?;
        record.into_memory(level, excerpt)
    }

    /// Says that a visible live record is still true.
    pub(super) fn confirm(&mut self, id: &str, source: Option<&str>) -> Result<Instant, Error> {
        check_source(source)?;
        self.check_may_write()?;
        if self.access.origin == Origin::Tool {
            return self.transact(|shelves, db, book| {
                let line = shelves.line("write-refused", None, Some("origin"));
                event::append(db, book, line)?;
                Ok(Err(Error::refused(
                    "The words of a tool confirm nothing",
                    "The person or the model says that a memory is still true",
                    "Ask the person",
                )))
            });
        }
        self.open(|_| true)?;
        let unseen = || {
            Error::new(
                ErrorKind::NotFound,
                format!("No visible memory has the id \"{}\"", id.escape_debug()),
                "What is confirmed must be live and on a level that the session sees",
                "Get, search or list for it again",
            )
        };
        // Asked before the lock is taken, so that nothing comes of a wrong id.
        match self.visible(None, id) {
            Ok(Some(_)) => {}
            Ok(None) => return Err(unseen()),
            Err(fault) => {
                return Err(self
                    .inner
                    .layout
                    .level(&self.access.agent, self.access.taint)
                    .place()
                    .say(fault));
            }
        }
        self.transact(|shelves, db, book| {
            let Some((level, mut record)) = shelves.visible(Some((db, book)), id)? else {
                return Err(unseen().into());
            };
            let own = level == shelves.access.taint;
            if own {
                book.set_confirmed(db, &mut record, &shelves.now)?;
            }
            book.add_stamp(
                db,
                &Stamp {
                    record_id: record.id.clone(),
                    record_level: level.name().to_owned(),
                    at: shelves.now.clone(),
                    session: shelves.access.session.clone(),
                    origin: shelves.access.origin.name().to_owned(),
                    source: source.map(str::to_owned),
                },
            )?;
            let named = Some((record.id.as_str(), record.key.as_str()));
            let below = (!own).then_some(level.name());
            event::append(db, book, shelves.line("confirm", named, below))?;
            Ok(Ok(shelves.access.now))
        })
    }
}
