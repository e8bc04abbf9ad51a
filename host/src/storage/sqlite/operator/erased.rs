//! What a purge erased, so that no backup and no import ever brings it back.
//!
//! A file keeps, for each record erased from it, the record's id and the keyed
//! digest of its key. An older backup may hold versions that were pruned here
//! before the purge, whose ids nobody knows any more; so besides there is a row
//! for what the purge was asked to erase: everything under that key, or from that
//! session, that was saved until then. Such rows are named `key/…` and
//! `session/…` with a keyed digest, and hold no words either.

use rusqlite::{Connection, OptionalExtension as _};

use crate::seal::{Digest, Encoder, Purpose};
use crate::storage::sqlite::event::key_digest;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::record::Book;

/// A row of `erased`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage::sqlite) struct Erased {
    /// The id of a record, or what [`key_name`] and [`session_name`] make.
    pub(in crate::storage::sqlite) name: String,
    pub(in crate::storage::sqlite) at: String,
    /// Of the record's key, where it is about a record or a key.
    pub(in crate::storage::sqlite) digest: Option<Vec<u8>>,
    pub(in crate::storage::sqlite) seal: Vec<u8>,
}

impl Erased {
    pub(in crate::storage::sqlite) fn encode(&self, book: &Book<'_>) -> Encoder {
        book.begin(Purpose::Erased)
            .text(&self.name)
            .text(&self.at)
            .optional_bytes(self.digest.as_deref())
    }

    /// Whether it is what was written here.
    pub(in crate::storage::sqlite) fn fits(&self, book: &Book<'_>) -> bool {
        self.encode(book).fits(&self.seal)
    }

    /// Writes it down, unless it is there already. The later moment stays.
    pub(in crate::storage::sqlite) fn keep(
        &self,
        db: &Connection,
        book: &Book<'_>,
    ) -> Result<(), Fault> {
        db.prepare_cached(
            "INSERT INTO erased (record_id, at, digest, seal) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (record_id) DO UPDATE SET at = ?2, digest = ?3, seal = ?4
             WHERE at < ?2",
        )?
        .execute(rusqlite::params![
            self.name,
            self.at,
            self.digest,
            self.encode(book).finish().as_slice(),
        ])?;
        Ok(())
    }
}

fn hex(digest: &Digest) -> String {
    blake3::Hash::from_bytes(*digest).to_hex().to_string()
}

/// Under which name everything of a key is erased.
pub(in crate::storage::sqlite) fn key_name(book: &Book<'_>, key: &str) -> String {
    name_of_key(&key_digest(book, key))
}

/// The same, of a key that only its digest names.
pub(super) fn name_of_key(digest: &Digest) -> String {
    format!("key/{}", hex(digest))
}

/// Whether there is a row of that name. Its seal is not asked.
pub(super) fn is_kept(db: &Connection, name: &str) -> Result<bool, Fault> {
    let mut statement = db.prepare_cached("SELECT 1 FROM erased WHERE record_id = ?1")?;
    Ok(statement.exists([name])?)
}

/// Under which name everything from a session is erased.
pub(in crate::storage::sqlite) fn session_name(book: &Book<'_>, session: &str) -> String {
    let digest = book
        .begin(Purpose::Key)
        .text("session")
        .text(session)
        .finish();
    format!("session/{}", hex(&digest))
}

/// The row of that name, its seal checked.
fn row(db: &Connection, book: &Book<'_>, name: &str) -> Result<Option<Erased>, Fault> {
    let found = db
        .prepare_cached("SELECT record_id, at, digest, seal FROM erased WHERE record_id = ?1")?
        .query_row([name], read)
        .optional()?;
    match found {
        Some(erased) if !erased.fits(book) => Err(Fault::Altered("an erasure fails its seal")),
        found => Ok(found),
    }
}

/// Reads the columns `record_id, at, digest, seal`.
pub(in crate::storage::sqlite) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Erased> {
    Ok(Erased {
        name: row.get(0)?,
        at: row.get(1)?,
        digest: row.get(2)?,
        seal: row.get(3)?,
    })
}

/// Whether a record with this id was erased from the file.
pub(in crate::storage::sqlite) fn is_erased(
    db: &Connection,
    book: &Book<'_>,
    id: &str,
) -> Result<bool, Fault> {
    Ok(row(db, book, id)?.is_some())
}

/// Whether a purge of this file covers a record, be it one that the file no
/// longer knew by then: what restore and import ask before they bring one in.
/// Three look-ups by primary key.
pub(in crate::storage::sqlite) fn covers(
    db: &Connection,
    book: &Book<'_>,
    id: &str,
    key: &str,
    session: &str,
    updated_at: &str,
) -> Result<bool, Fault> {
    if is_erased(db, book, id)? {
        return Ok(true);
    }
    for name in [key_name(book, key), session_name(book, session)] {
        if let Some(erased) = row(db, book, &name)?
            && updated_at <= erased.at.as_str()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
