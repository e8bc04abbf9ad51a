//! Records as rows: reading, sealing, writing, indexing.

use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use super::fault::Fault;
use super::layout::LevelFile;
use super::schema::indexed;
use super::search::index;
use crate::clock::Instant;
use crate::level::Level;
use crate::provenance::{Origin, Standing};
use crate::seal::{Encoder, Purpose, Sealer};
use crate::storage::Memory;

/// The columns of a record, in the order of [`Record::read`].
macro_rules! columns {
    () => {
        "seq, id, key, tags, origin, standing, source, session, version, created_at, \
         updated_at, confirmed_at, expires_at, superseded_at, deleted_at, hides_lower, \
         supersedes, seal, content"
    };
}
pub(super) use columns;

const BY_SEQ: &str = concat!("SELECT ", columns!(), " FROM record WHERE seq = ?1");
const BY_ID: &str = concat!("SELECT ", columns!(), " FROM record WHERE id = ?1");
const INDEXED_BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM record WHERE key = ?1 AND ",
    indexed!()
);
const TOMBSTONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM record WHERE key = ?1 AND hides_lower = 1 AND superseded_at IS NULL"
);
const APART: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM record WHERE standing IN ('pending', 'quarantined') AND standing <> 'trusted' AND key = ?1
      AND superseded_at IS NULL AND deleted_at IS NULL ORDER BY version"
);

/// Which file's records, with the keys to their seals.
#[derive(Clone, Copy)]
pub(super) struct Book<'a> {
    /// The file.
    pub(super) file: &'a LevelFile,
    /// The keys.
    pub(super) sealer: &'a Sealer,
}

impl Book<'_> {
    /// Begins a seal that holds only in this file.
    pub(super) fn begin(&self, purpose: Purpose) -> Encoder {
        self.sealer
            .begin(purpose)
            .text(&self.file.agent)
            .text(self.file.level.name())
    }

    fn one(
        &self,
        db: &Connection,
        sql: &str,
        params: impl Params,
    ) -> Result<Option<Record>, Fault> {
        let found = db
            .prepare_cached(sql)?
            .query_row(params, Record::read)
            .optional()?;
        match found {
            Some(record) => self.checked(record).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn checked(&self, record: Record) -> Result<Record, Fault> {
        if record.encode(self).fits(&record.seal) {
            Ok(record)
        } else {
            Err(Fault::Altered("a record fails its seal"))
        }
    }

    /// The record in that row.
    pub(super) fn by_seq(&self, db: &Connection, seq: i64) -> Result<Option<Record>, Fault> {
        self.one(db, BY_SEQ, [seq])
    }

    /// The record with that id.
    pub(super) fn by_id(&self, db: &Connection, id: &str) -> Result<Option<Record>, Fault> {
        self.one(db, BY_ID, [id])
    }

    /// The record that the index holds under a key. It may have expired.
    pub(super) fn indexed(&self, db: &Connection, key: &str) -> Result<Option<Record>, Fault> {
        self.one(db, INDEXED_BY_KEY, [key])
    }

    /// The tombstone under a key.
    pub(super) fn tombstone(&self, db: &Connection, key: &str) -> Result<Option<Record>, Fault> {
        self.one(db, TOMBSTONE, [key])
    }

    /// The records under a key that are kept apart, oldest first.
    pub(super) fn apart(&self, db: &Connection, key: &str) -> Result<Vec<Record>, Fault> {
        let mut statement = db.prepare_cached(APART)?;
        let found = statement.query_map([key], Record::read)?;
        found.map(|record| self.checked(record?)).collect()
    }

    /// Writes a new record, and puts it into the index where it belongs there.
    pub(super) fn insert(&self, db: &Connection, record: &mut Record) -> Result<(), Fault> {
        self.insert_row(db, record)?;
        self.index(db, record)
    }

    /// Writes a new record, sealed. It gets its number.
    pub(super) fn insert_row(&self, db: &Connection, record: &mut Record) -> Result<(), Fault> {
        record.seal = record.encode(self).finish().to_vec();
        db.prepare_cached(
            "INSERT INTO record (id, key, tags, origin, standing, source, session, version,
                 created_at, updated_at, confirmed_at, expires_at, superseded_at, deleted_at,
                 hides_lower, supersedes, seal, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                 ?17, ?18)",
        )?
        .execute(rusqlite::params![
            record.id,
            record.key,
            record.tags,
            record.origin,
            record.standing,
            record.source,
            record.session,
            record.version,
            record.created_at,
            record.updated_at,
            record.confirmed_at,
            record.expires_at,
            record.superseded_at,
            record.deleted_at,
            record.hides_lower,
            record.supersedes,
            record.seal,
            record.content,
        ])?;
        record.seq = db.last_insert_rowid();
        Ok(())
    }

    /// Puts a record into the index, where it belongs there.
    pub(super) fn index(&self, db: &Connection, record: &Record) -> Result<(), Fault> {
        if record.is_indexed() {
            let tags = record.tag_list()?;
            index::add(db, record.seq, &record.key, &record.content, &tags)?;
            let mut statement =
                db.prepare_cached("INSERT INTO record_tag (tag, key, seq) VALUES (?1, ?2, ?3)")?;
            for tag in tags {
                statement.execute((tag, &record.key, record.seq))?;
            }
        }
        Ok(())
    }

    /// Says on a record that it was confirmed at `at`, unless it says a later
    /// moment already. The index is not touched.
    pub(super) fn set_confirmed(
        &self,
        db: &Connection,
        record: &mut Record,
        at: &str,
    ) -> Result<(), Fault> {
        if record
            .confirmed_at
            .as_deref()
            .is_some_and(|known| known >= at)
        {
            return Ok(());
        }
        record.confirmed_at = Some(at.to_owned());
        record.seal = record.encode(self).finish().to_vec();
        db.prepare_cached("UPDATE record SET confirmed_at = ?2, seal = ?3 WHERE seq = ?1")?
            .execute(rusqlite::params![
                record.seq,
                record.confirmed_at,
                record.seal
            ])?;
        Ok(())
    }

    /// Ends a record: `end` says how. It leaves the index.
    pub(super) fn end(
        &self,
        db: &Connection,
        record: &mut Record,
        end: impl FnOnce(&mut Record),
    ) -> Result<(), Fault> {
        let was_indexed = record.is_indexed();
        end(record);
        record.seal = record.encode(self).finish().to_vec();
        db.prepare_cached(
            "UPDATE record SET superseded_at = ?2, deleted_at = ?3, hides_lower = ?4, seal = ?5
             WHERE seq = ?1",
        )?
        .execute(rusqlite::params![
            record.seq,
            record.superseded_at,
            record.deleted_at,
            record.hides_lower,
            record.seal,
        ])?;
        if was_indexed && !record.is_indexed() {
            self.unindex(db, record)?;
        }
        Ok(())
    }

    /// Ends a record whose place something newer takes.
    pub(super) fn supersede(
        &self,
        db: &Connection,
        mut record: Record,
        at: &str,
    ) -> Result<(), Fault> {
        self.end(db, &mut record, |record| {
            record.superseded_at = Some(at.to_owned());
        })
    }

    /// Takes a record out of the index that holds it, by the words it has now.
    pub(super) fn unindex(&self, db: &Connection, record: &Record) -> Result<(), Fault> {
        let tags = record.tag_list()?;
        index::remove(db, record.seq, &record.key, &record.content, &tags)?;
        db.prepare_cached("DELETE FROM record_tag WHERE seq = ?1")?
            .execute([record.seq])?;
        Ok(())
    }
}

/// A record as its row holds it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) seq: i64,
    pub(super) id: String,
    pub(super) key: String,
    /// A JSON array.
    pub(super) tags: String,
    pub(super) origin: String,
    pub(super) standing: String,
    pub(super) source: Option<String>,
    pub(super) session: String,
    pub(super) version: i64,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) confirmed_at: Option<String>,
    pub(super) expires_at: Option<String>,
    pub(super) superseded_at: Option<String>,
    pub(super) deleted_at: Option<String>,
    pub(super) hides_lower: bool,
    /// A JSON array.
    pub(super) supersedes: String,
    pub(super) seal: Vec<u8>,
    pub(super) content: String,
}

/// What can't be read although its seal fits. It would be a bug.
const UNREADABLE: Fault = Fault::Altered("a record can't be read");

impl Record {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            id: row.get(1)?,
            key: row.get(2)?,
            tags: row.get(3)?,
            origin: row.get(4)?,
            standing: row.get(5)?,
            source: row.get(6)?,
            session: row.get(7)?,
            version: row.get(8)?,
            created_at: row.get(9)?,
            updated_at: row.get(10)?,
            confirmed_at: row.get(11)?,
            expires_at: row.get(12)?,
            superseded_at: row.get(13)?,
            deleted_at: row.get(14)?,
            hides_lower: row.get(15)?,
            supersedes: row.get(16)?,
            seal: row.get(17)?,
            content: row.get(18)?,
        })
    }

    /// All columns but the row's number, which VACUUM and import may change.
    pub(super) fn encode(&self, book: &Book<'_>) -> Encoder {
        book.begin(Purpose::Record)
            .text(&self.id)
            .text(&self.key)
            .text(&self.tags)
            .text(&self.origin)
            .text(&self.standing)
            .optional(self.source.as_deref())
            .text(&self.session)
            .integer(self.version)
            .text(&self.created_at)
            .text(&self.updated_at)
            .optional(self.confirmed_at.as_deref())
            .optional(self.expires_at.as_deref())
            .optional(self.superseded_at.as_deref())
            .optional(self.deleted_at.as_deref())
            .integer(i64::from(self.hides_lower))
            .text(&self.supersedes)
            .text(&self.content)
    }

    /// Whether the index holds it: what `indexed!` asks in SQL.
    pub(super) fn is_indexed(&self) -> bool {
        self.standing == Standing::Trusted.name()
            && self.superseded_at.is_none()
            && self.deleted_at.is_none()
    }

    /// Whether it is over at `now`. Instants are of fixed width, so the order of
    /// the texts is theirs.
    pub(super) fn has_expired(&self, now: &str) -> bool {
        self.expires_at.as_deref().is_some_and(|at| at <= now)
    }

    /// Whether it is live, as far as its own row can tell: an edge may hide it.
    pub(super) fn stands(&self, now: &str) -> bool {
        self.is_indexed() && !self.has_expired(now)
    }

    /// Whether a history shows it: it is live, or something took its place.
    pub(super) fn is_history(&self, now: &str) -> bool {
        self.standing == Standing::Trusted.name()
            && self.deleted_at.is_none()
            && !self.has_expired(now)
    }

    /// Its origin.
    pub(super) fn origin(&self) -> Result<Origin, Fault> {
        Origin::ALL
            .into_iter()
            .find(|origin| origin.name() == self.origin)
            .ok_or(UNREADABLE)
    }

    pub(super) fn tag_list(&self) -> Result<Vec<String>, Fault> {
        serde_json::from_str(&self.tags).map_err(|_| UNREADABLE)
    }

    /// The ids whose place it was saved to take.
    pub(super) fn supersedes_list(&self) -> Result<Vec<String>, Fault> {
        serde_json::from_str(&self.supersedes).map_err(|_| UNREADABLE)
    }

    /// As callers see it, with at most so many bytes of content.
    pub(super) fn into_memory(self, level: Level, excerpt: usize) -> Result<Memory, Fault> {
        let instant = |text: &str| Instant::from_sql(text).ok_or(UNREADABLE);
        let optional = |text: &Option<String>| text.as_deref().map(instant).transpose();
        let standing = Standing::ALL
            .into_iter()
            .find(|standing| standing.name() == self.standing)
            .ok_or(UNREADABLE)?;
        Ok(Memory {
            tags: self.tag_list()?,
            origin: self.origin()?,
            standing,
            level,
            version: u64::try_from(self.version).map_err(|_| UNREADABLE)?,
            created_at: instant(&self.created_at)?,
            updated_at: instant(&self.updated_at)?,
            confirmed_at: optional(&self.confirmed_at)?,
            expires_at: optional(&self.expires_at)?,
            superseded_at: optional(&self.superseded_at)?,
            deleted_at: optional(&self.deleted_at)?,
            content_bytes: u64::try_from(self.content.len()).unwrap_or(u64::MAX),
            content: cut(self.content, excerpt),
            id: self.id,
            key: self.key,
            source: self.source,
            session: self.session,
        })
    }
}

/// The first bytes of a text, cut between characters.
pub(super) fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}
