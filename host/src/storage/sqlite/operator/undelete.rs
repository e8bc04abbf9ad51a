//! A soft deletion is taken back.
//!
//! Nothing that was superseded comes back, and nothing takes the place of what
//! was saved since: the deletion is undone only where the record would have been
//! live had it not been deleted. What waited for a person, and was refused or
//! deleted, waits again.

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;

use super::{Operator, erased};
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::provenance::Standing;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::LevelFile;
use crate::storage::sqlite::record::{Book, Record};

/// Digits of an id.
const DIGITS: usize = 32;
/// The least digits that name a record: so many as nobody types by mistake.
const DIGITS_LEAST: usize = 4;

/// A record that is live again, or waits again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Undeleted {
    /// Whose.
    pub agent: String,
    /// On which level.
    pub level: Level,
    /// The record.
    pub id: String,
    /// Its key.
    pub key: String,
    /// Which version of the key.
    pub version: i64,
    /// Whether versions on lower levels, which it hid while it was deleted, are
    /// hidden now because it is live.
    pub was_tombstone: bool,
    /// `trusted`: it is live. Otherwise it waits for a person, as it did.
    pub standing: String,
}

impl Operator<'_> {
    /// Takes the soft deletion of a record back. Of its id as many first digits
    /// are enough as name no other record, at least four.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for what can't be
    /// an id, and for the beginning of several;
    /// [`NotFound`](crate::ErrorKind::NotFound) where no file has such a record;
    /// [`Refused`](crate::ErrorKind::Refused) where it was not deleted, or
    /// something newer stands under its key or took its place, or its time is
    /// over, or its words are gone; [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn undelete(&self, agent: Option<&str>, id: &str) -> Result<Undeleted, Error> {
        let digits = first_digits(id).ok_or_else(|| {
            Error::invalid(
                format!("\"{}\" is no record's id", id.escape_debug()),
                format!(
                    "An id is {DIGITS} hexadecimal digits; its first ones are enough, at least \
                     {DIGITS_LEAST}, where no other record has them"
                ),
                WHERE_IDS_ARE,
            )
        })?;
        let mut records = Vec::new();
        let mut erased = false;
        for file in self.files_of(agent)? {
            self.read(&file, |db, book| {
                let ids = beginning_with(db, "SELECT id FROM record WHERE id", &digits)?;
                records.extend(ids.into_iter().map(|id| (file.clone(), id)));
                let gone =
                    beginning_with(db, "SELECT record_id FROM erased WHERE record_id", &digits)?;
                for id in gone {
                    erased |= erased::is_erased(db, book, &id)?;
                }
                Ok(())
            })?;
        }
        match records.as_slice() {
            [(file, id)] => self.undelete_in(file, id),
            [] if erased => Err(refused(
                "It was erased for good",
                "What was purged does not come back",
                "Save it again",
            )),
            [] => Err(Error::new(
                ErrorKind::NotFound,
                format!("No record has the id {digits}"),
                "What was pruned is gone",
                WHERE_IDS_ARE,
            )),
            records => Err(several(records.len(), &digits)),
        }
    }

    fn undelete_in(&self, file: &LevelFile, id: &str) -> Result<Undeleted, Error> {
        let now = self.now.to_sql();
        self.change(file, |db, book| {
            let gone = || Fault::from(refused("It is gone by now", "", ""));
            let mut record = book.by_id(db, id)?.ok_or_else(gone)?;
            check(db, book, &record, &now)?;
            let is_trusted = record.standing == Standing::Trusted.name();
            if is_trusted
                && let Some(tombstone) = book.tombstone(db, &record.key)?
                && tombstone.id != record.id
            {
                // Of the key itself, made while there was no version: now there is.
                book.supersede(db, tombstone, &now)?;
            }
            let was_tombstone = record.hides_lower;
            book.end(db, &mut record, |record| {
                record.deleted_at = None;
                record.hides_lower = false;
            })?;
            book.index(db, &record)?;
            let detail = format!("version={}", record.version);
            self.log_of(db, book, "undelete", &record, &detail)?;
            Ok(Undeleted {
                agent: file.agent.clone(),
                level: file.level,
                id: record.id,
                key: record.key,
                version: record.version,
                was_tombstone,
                standing: record.standing,
            })
        })
    }
}

/// Where an operator finds ids.
const WHERE_IDS_ARE: &str = "`remora audit` and `remora digest --json` tell ids";

/// The first digits of a record's id, if they can be that.
pub(super) fn first_digits(id: &str) -> Option<String> {
    let digits = id.to_ascii_lowercase();
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && (DIGITS_LEAST..=DIGITS).contains(&digits.len())).then_some(digits)
}

pub(super) fn several(number: usize, digits: &str) -> Error {
    Error::invalid(
        format!("The ids of {number} records begin with {digits}"),
        "The digits must name one record",
        "Give more of them",
    )
}

/// The ids that begin with these digits. `sql` ends with the column.
pub(super) fn beginning_with(
    db: &Connection,
    sql: &str,
    digits: &str,
) -> Result<Vec<String>, Fault> {
    // No digit sorts behind an f.
    let mut statement = db.prepare(&format!("{sql} BETWEEN ?1 AND ?1 || 'g'"))?;
    let ids = statement.query_map([digits], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Whether the record would be live had it not been deleted.
fn check(db: &Connection, book: &Book<'_>, record: &Record, now: &str) -> Result<(), Fault> {
    let no = |what: &str, allowed: &str, remedy: &str| Err(refused(what, allowed, remedy).into());
    if record.superseded_at.is_some() || book.has_edge_from(db, &record.id)? {
        return no(
            "Something newer took its place",
            "A superseded memory never comes back",
            "Save its words again where they are true",
        );
    }
    if record.deleted_at.is_none() {
        return no("It is not deleted", "Only a deletion is taken back", "");
    }
    if record.content.is_empty() {
        return no(
            "It holds no words: it only hides what lower levels have under its key",
            "A memory that was never there, or whose words were pruned, does not come back",
            "Save it again",
        );
    }
    if record.has_expired(now) {
        return no(
            "Its time is over",
            "What has expired is not served",
            "Save it again with a later expiry, or none",
        );
    }
    if record.standing != Standing::Trusted.name() {
        // It takes nobody's place.
        return Ok(());
    }
    let live = book.indexed(db, &record.key)?;
    if live.is_some() {
        return no(
            "Another version stands under its key",
            "A deletion is taken back only while nothing newer was saved",
            "Delete that version first, or save the old words again",
        );
    }
    let newer: Option<i64> = db
        .prepare(
            "SELECT version FROM record
             WHERE key = ?1 AND version > ?2 AND standing = 'trusted' AND content <> ''
             ORDER BY version DESC LIMIT 1",
        )?
        .query_row((&record.key, record.version), |row| row.get(0))
        .optional()?;
    if let Some(newer) = newer {
        return no(
            &format!("Version {newer} was saved under its key since"),
            "Only the newest version comes back",
            "Restore that one, or save the old words again",
        );
    }
    Ok(())
}

fn refused(what: &str, allowed: &str, remedy: &str) -> Error {
    Error::refused(what, allowed, remedy)
}
