//! The audit trail: lines that are only ever added, each keyed to the one before.
//!
//! A line holds ids and keyed digests, never a key, a tag or content, so that
//! erasing a record erases its words. The head (how many lines, and the last
//! link) is sealed in `meta` and committed with every line: the trail can't lose
//! its end unnoticed.

use rusqlite::{Connection, OptionalExtension as _};

use super::fault::Fault;
use super::record::Book;
use super::schema::Kind;
use crate::clock::Instant;
use crate::level::Level;
use crate::provenance::Origin;
use crate::seal::{Digest, Encoder, Purpose};
use crate::storage::Event;

const HEAD: &str = "audit_head";

/// A line to be added.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// When, as files hold it.
    pub(super) at: &'a str,
    /// What happened.
    pub(super) kind: &'a str,
    /// By which session.
    pub(super) session: &'a str,
    /// The session's origin.
    pub(super) origin: Origin,
    /// The id of the record it is about, and its key, of which only a digest is
    /// kept.
    pub(super) record: Option<(&'a str, &'a str)>,
    /// More, from a fixed set of words.
    pub(super) detail: Option<&'a str>,
}

const BROKEN: Fault = Fault::Altered("its audit trail is broken");

/// How long a trail is, and its last link.
#[derive(PartialEq)]
struct Head {
    count: i64,
    last: Digest,
}

impl Head {
    fn none() -> Self {
        Self {
            count: 0,
            last: Digest::default(),
        }
    }

    fn to_text(&self) -> String {
        format!(
            "{} {}",
            self.count,
            blake3::Hash::from_bytes(self.last).to_hex()
        )
    }

    fn from_text(text: &str) -> Option<Self> {
        let (count, last) = text.split_once(' ')?;
        Some(Self {
            count: count.parse().ok()?,
            last: *blake3::Hash::from_hex(last).ok()?.as_bytes(),
        })
    }
}

fn head(db: &Connection, book: &Book<'_>) -> Result<Head, Fault> {
    match Kind::level(book.file).meta(db, book.sealer, HEAD)? {
        // A file is made with a head, so its absence is no beginning.
        Some(text) => Head::from_text(&text).ok_or(BROKEN),
        None => Err(BROKEN),
    }
}

fn set_head(db: &Connection, book: &Book<'_>, head: &Head) -> Result<(), Fault> {
    Kind::level(book.file).set_meta(db, book.sealer, HEAD, &head.to_text())
}

/// Begins the trail of a new file.
pub(super) fn begin(db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    set_head(db, book, &Head::none())
}

/// The digest by which a line names a key.
fn key_digest(book: &Book<'_>, key: &str) -> Digest {
    book.begin(Purpose::Key).text(key).finish()
}

struct Link<'a> {
    number: i64,
    at: &'a str,
    kind: &'a str,
    session: &'a str,
    origin: &'a str,
    record: Option<&'a str>,
    digest: Option<&'a [u8]>,
    detail: Option<&'a str>,
}

impl Link<'_> {
    fn chain(&self, book: &Book<'_>, before: &Digest) -> Encoder {
        book.begin(Purpose::Event)
            .bytes(before)
            .integer(self.number)
            .text(self.at)
            .text(self.kind)
            .text(self.session)
            .text(self.origin)
            .optional(self.record)
            .optional_bytes(self.digest)
            .optional(self.detail)
    }
}

/// Adds a line, in the caller's transaction. The trail must end where its head
/// says.
pub(super) fn append(db: &Connection, book: &Book<'_>, line: Line<'_>) -> Result<(), Fault> {
    let head = head(db, book)?;
    let last: Option<(i64, Digest)> = db
        .prepare_cached("SELECT number, chain FROM event ORDER BY number DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let found = last.map_or_else(Head::none, |(count, last)| Head { count, last });
    if found != head {
        return Err(BROKEN);
    }
    let digest = line.record.map(|(_, key)| key_digest(book, key));
    let link = Link {
        number: head.count.checked_add(1).ok_or(BROKEN)?,
        at: line.at,
        kind: line.kind,
        session: line.session,
        origin: line.origin.name(),
        record: line.record.map(|(id, _)| id),
        digest: digest.as_ref().map(Digest::as_slice),
        detail: line.detail,
    };
    let chain = link.chain(book, &head.last).finish();
    db.prepare_cached(
        "INSERT INTO event (number, at, kind, session, origin, record, digest, detail, chain)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(rusqlite::params![
        link.number,
        link.at,
        link.kind,
        link.session,
        link.origin,
        link.record,
        link.digest,
        link.detail,
        chain.as_slice(),
    ])?;
    set_head(
        db,
        book,
        &Head {
            count: link.number,
            last: chain,
        },
    )
}

/// The whole trail, oldest first, every link checked.
pub(super) fn all(db: &Connection, book: &Book<'_>, level: Level) -> Result<Vec<Event>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT event.number, event.at, event.kind, event.session, event.origin, event.record,
                event.digest, event.detail, event.chain, record.key
         FROM event LEFT JOIN record ON record.id = event.record
         ORDER BY event.number",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Head::none();
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let at: String = row.get(1)?;
        let kind: String = row.get(2)?;
        let session: String = row.get(3)?;
        let origin: String = row.get(4)?;
        let record: Option<String> = row.get(5)?;
        let digest: Option<Vec<u8>> = row.get(6)?;
        let detail: Option<String> = row.get(7)?;
        let chain: Vec<u8> = row.get(8)?;
        let key: Option<String> = row.get(9)?;
        let link = Link {
            number,
            at: &at,
            kind: &kind,
            session: &session,
            origin: &origin,
            record: record.as_deref(),
            digest: digest.as_deref(),
            detail: detail.as_deref(),
        };
        if Some(number) != found.count.checked_add(1) || !link.chain(book, &found.last).fits(&chain)
        {
            return Err(BROKEN);
        }
        if let (Some(key), Some(digest)) = (&key, &digest)
            && key_digest(book, key).as_slice() != digest.as_slice()
        {
            return Err(Fault::Altered(
                "a record has another key than when it was saved",
            ));
        }
        found = Head {
            count: number,
            last: Digest::try_from(chain.as_slice()).map_err(|_| BROKEN)?,
        };
        events.push(Event {
            level,
            number: u64::try_from(number).map_err(|_| BROKEN)?,
            at: Instant::from_sql(&at).ok_or(BROKEN)?,
            kind,
            session,
            origin: Origin::ALL
                .into_iter()
                .find(|known| known.name() == origin)
                .ok_or(BROKEN)?,
            record,
            key,
            detail,
        });
    }
    if found != head(db, book)? {
        return Err(BROKEN);
    }
    Ok(events)
}
