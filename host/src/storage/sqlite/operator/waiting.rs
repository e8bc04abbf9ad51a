//! What waits for a person is accepted or refused.
//!
//! What is less trusted than what it would replace waits (pending), and the words
//! of a tool are kept apart (quarantined), until a person endorses them. No tool
//! does that: it is the operator's.
//!
//! # What accepting means
//!
//! The record becomes the trusted version of its key on its level, as if the
//! person had saved it: the one before is superseded, with an edge; a tombstone
//! gives way; what the record was saved to take the place of is superseded; and
//! nothing else waits under that key any more. Its standing alone changes. Its
//! origin stays what it was, since whose words they are is no matter of who
//! believes them: so the model may later change what it said itself. Whoever wants
//! words to be the person's own saves them.
//!
//! # What refusing means
//!
//! That record is deleted, and can be restored until it is pruned; then it waits
//! again.

use rusqlite::Connection;
use serde::Serialize;

use super::undelete::{beginning_with, first_digits, several};
use super::{Operator, instant};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::provenance::Standing;
use crate::storage::check_name;
use crate::storage::sqlite::edge::EdgeRow;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::{LevelFile, identity};
use crate::storage::sqlite::record::{Book, Record};

/// A record that waits for a person, whole: who decides on it must see all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Waiting {
    /// Whose.
    pub agent: String,
    /// On which level.
    pub level: Level,
    /// The record.
    pub id: String,
    /// Its key.
    pub key: String,
    /// What it says.
    pub content: String,
    /// Its labels.
    pub tags: Vec<String>,
    /// Who the words come from.
    pub origin: String,
    /// Why it waits: `pending` or `quarantined`.
    pub standing: String,
    /// Where the caller said that the words come from.
    pub source: Option<String>,
    /// By which session it was saved.
    pub session: String,
    /// When it was saved.
    pub saved_at: Instant,
    /// When somebody last said that it is true. What waits can't be confirmed.
    pub confirmed_at: Option<Instant>,
    /// When it ends.
    pub expires_at: Option<Instant>,
    /// The ids whose place it was saved to take, and takes once it is accepted.
    pub supersedes: Vec<String>,
    /// What stands under its key now, and would give way to it.
    pub stands: Option<Stands>,
}

/// What stands under the key of a record that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stands {
    /// The record.
    pub id: String,
    /// What it says; nothing for a deletion that hides lower levels.
    pub content: String,
    /// Who the words come from.
    pub origin: String,
    /// When it was saved.
    pub saved_at: Instant,
    /// Whether it is such a deletion.
    pub is_tombstone: bool,
}

/// A record that waited, and was decided on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Answered {
    /// Whose.
    pub agent: String,
    /// On which level.
    pub level: Level,
    /// The record.
    pub id: String,
    /// Its key.
    pub key: String,
    /// Who its words come from, as before.
    pub origin: String,
    /// Why it waited.
    pub waited: String,
    /// Whether it is trusted now. False: it was refused.
    pub accepted: bool,
    /// The record that stood under its key and gave way to it.
    pub replaced: Option<String>,
    /// How many other records waited under its key, and wait no more.
    pub dismissed: u64,
}

/// What waits, the oldest first.
const WAITING: &str = "SELECT id FROM record
     WHERE standing <> 'trusted' AND superseded_at IS NULL AND deleted_at IS NULL
       AND (expires_at IS NULL OR expires_at > ?1)
     ORDER BY updated_at, id LIMIT ?2";

impl Operator<'_> {
    /// The ids of what waits on one level of one agent, the oldest first, at most
    /// so many.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for what can't be an
    /// agent's name, [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn waiting(&self, agent: &str, level: Level, most: u64) -> Result<Vec<String>, Error> {
        let Some(file) = self.existing(agent, level)? else {
            return Ok(Vec::new());
        };
        self.read(&file, |db, _| {
            let mut statement = db.prepare(WAITING)?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let ids = statement.query_map((self.now.to_sql(), most), |row| row.get(0))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    /// The record with that id, if it waits.
    ///
    /// # Errors
    /// Those of [`Self::waiting`].
    pub fn waits(&self, agent: &str, level: Level, id: &str) -> Result<Option<Waiting>, Error> {
        let Some(file) = self.existing(agent, level)? else {
            return Ok(None);
        };
        let now = self.now.to_sql();
        self.read(&file, |db, book| {
            let Some(record) = book.by_id(db, id)?.filter(|record| waits(record, &now)) else {
                return Ok(None);
            };
            let live = match book.indexed(db, &record.key)? {
                Some(live) if live.stands(&now) && !book.has_edge_from(db, &live.id)? => Some(live),
                _ => book.tombstone(db, &record.key)?,
            };
            let stands = live.map(stands).transpose()?;
            let moment = |text: &Option<String>| text.as_deref().map(instant).transpose();
            Ok(Some(Waiting {
                agent: file.agent.clone(),
                level: file.level,
                tags: record.tag_list()?,
                saved_at: instant(&record.updated_at)?,
                confirmed_at: moment(&record.confirmed_at)?,
                expires_at: moment(&record.expires_at)?,
                supersedes: record.supersedes_list()?,
                stands,
                id: record.id,
                key: record.key,
                content: record.content,
                origin: record.origin,
                standing: record.standing,
                source: record.source,
                session: record.session,
            }))
        })
    }

    /// Makes a record that waits the trusted version of its key: see the module's
    /// page. Of its id as many first digits are enough as name nothing else that waits
    /// there, at least four. Leaves one line in the trail.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) where no such record waits there;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for the beginning of
    /// several; [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn accept(&self, agent: &str, level: Level, id: &str) -> Result<Answered, Error> {
        let file = self.existing(agent, level)?.ok_or_else(|| unknown(id))?;
        let now = self.now.to_sql();
        let id = &self.whole_id(&file, id)?;
        let lower = self.found_below(&file, id)?;
        self.change(&file, |db, book| {
            let mut record = waiting_record(db, book, id, &now)?;
            let mut answered = Answered::of(&file, &record, true);
            let mut replaced = Vec::new();
            for old in record.supersedes_list()? {
                if let Some(old) = book.by_id(db, &old)? {
                    replaced.push(old);
                }
            }
            for (level, old) in &lower {
                hide(db, book, *level, old, &record, &now)?;
            }
            if let Some(tombstone) = book.tombstone(db, &record.key)? {
                book.supersede(db, tombstone, &now)?;
            }
            if let Some(previous) = book.indexed(db, &record.key)? {
                answered.replaced = Some(previous.id.clone());
                replaced.retain(|old| old.id != previous.id);
                replaced.push(previous);
            }
            for old in replaced {
                hide(db, book, file.level, &old.id, &record, &now)?;
                if old.superseded_at.is_none() {
                    book.supersede(db, old, &now)?;
                }
            }
            for other in book.apart(db, &record.key)? {
                if other.id != record.id {
                    book.supersede(db, other, &now)?;
                    answered.dismissed = answered.dismissed.saturating_add(1);
                }
            }
            trust(db, book, &mut record)?;
            self.log_of(db, book, "accept", &record, &answered.waited)?;
            Ok(answered)
        })
    }

    /// Deletes a record that waits, softly. Leaves one line in the trail.
    ///
    /// # Errors
    /// Those of [`Self::accept`].
    pub fn refuse(&self, agent: &str, level: Level, id: &str) -> Result<Answered, Error> {
        let file = self.existing(agent, level)?.ok_or_else(|| unknown(id))?;
        let now = self.now.to_sql();
        let id = &self.whole_id(&file, id)?;
        self.change(&file, |db, book| {
            let mut record = waiting_record(db, book, id, &now)?;
            let answered = Answered::of(&file, &record, false);
            book.end(db, &mut record, |record| {
                record.deleted_at = Some(now.clone());
            })?;
            self.log_of(db, book, "refuse", &record, &answered.waited)?;
            Ok(answered)
        })
    }

    /// The id of what waits in a file, of which these are the first digits.
    fn whole_id(&self, file: &LevelFile, id: &str) -> Result<String, Error> {
        let digits = first_digits(id).ok_or_else(|| unknown(id))?;
        let now = self.now.to_sql();
        let mut ids = self.read(file, |db, book| {
            let mut ids = beginning_with(db, "SELECT id FROM record WHERE id", &digits)?;
            let mut waiting = Vec::new();
            for id in ids.drain(..) {
                if book
                    .by_id(db, &id)?
                    .is_some_and(|record| waits(&record, &now))
                {
                    waiting.push(id);
                }
            }
            Ok(waiting)
        })?;
        if ids.len() > 1 {
            return Err(several(ids.len(), &digits));
        }
        ids.pop().ok_or_else(|| unknown(id))
    }

    /// The file of a level, if there is one.
    fn existing(&self, agent: &str, level: Level) -> Result<Option<LevelFile>, Error> {
        check_name("agent", agent)?;
        let file = self.inner.layout.level(agent, level);
        Ok(identity(&file.path)?.is_some().then_some(file))
    }

    /// What a record was saved to take the place of on lower levels. Looked for
    /// before its own file is locked: no two are ever locked at once.
    fn found_below(&self, file: &LevelFile, id: &str) -> Result<Vec<(Level, String)>, Error> {
        let ids = self.read(file, |db, book| match book.by_id(db, id)? {
            Some(record) => record.supersedes_list(),
            None => Ok(Vec::new()),
        })?;
        let mut found = Vec::new();
        if ids.is_empty() {
            return Ok(found);
        }
        for lower in self.files(Some(&file.agent))? {
            if lower.level == file.level || !can_flow_to(lower.level, file.level) {
                continue;
            }
            self.read(&lower, |db, book| {
                for id in &ids {
                    if book.by_id(db, id)?.is_some() {
                        found.push((lower.level, id.clone()));
                    }
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

impl Answered {
    fn of(file: &LevelFile, record: &Record, accepted: bool) -> Self {
        Self {
            agent: file.agent.clone(),
            level: file.level,
            id: record.id.clone(),
            key: record.key.clone(),
            origin: record.origin.clone(),
            waited: record.standing.clone(),
            accepted,
            replaced: None,
            dismissed: 0,
        }
    }
}

/// Whether a record waits at `now`.
fn waits(record: &Record, now: &str) -> bool {
    record.standing != Standing::Trusted.name()
        && record.superseded_at.is_none()
        && record.deleted_at.is_none()
        && !record.has_expired(now)
}

fn waiting_record(db: &Connection, book: &Book<'_>, id: &str, now: &str) -> Result<Record, Fault> {
    let record = book.by_id(db, id)?.filter(|record| waits(record, now));
    record.ok_or_else(|| unknown(id).into())
}

fn unknown(id: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("No record with the id \"{}\" waits here", id.escape_debug()),
        "An id is told with what waits, and its first four digits are enough; what was decided \
         on, superseded or deleted since, or has expired, waits no more",
        "Look again at what waits",
    )
}

fn stands(record: Record) -> Result<Stands, Fault> {
    Ok(Stands {
        saved_at: instant(&record.updated_at)?,
        is_tombstone: record.hides_lower,
        id: record.id,
        content: record.content,
        origin: record.origin,
    })
}

/// Leaves the edge that hides a record for good from all who see the newer one.
fn hide(
    db: &Connection,
    book: &Book<'_>,
    level: Level,
    old: &str,
    new: &Record,
    now: &str,
) -> Result<(), Fault> {
    book.keep_edge(
        db,
        &EdgeRow {
            old_id: old.to_owned(),
            new_id: new.id.clone(),
            old_level: level.name().to_owned(),
            at: now.to_owned(),
            session: new.session.clone(),
        },
    )?;
    Ok(())
}

/// Believes a record from now on.
fn trust(db: &Connection, book: &Book<'_>, record: &mut Record) -> Result<(), Fault> {
    Standing::Trusted.name().clone_into(&mut record.standing);
    record.seal = record.encode(book).finish().to_vec();
    db.prepare_cached("UPDATE record SET standing = ?2, seal = ?3 WHERE seq = ?1")?
        .execute((record.seq, &record.standing, &record.seal))?;
    book.index(db, record)
}
