//! The audit trail: lines that are only ever added, each keyed to the one before.
//!
//! A line holds ids and keyed digests, never a key, a tag or content, so that
//! erasing a record erases its words. The head (how many lines, and the last
//! link) is sealed in `meta` and committed with every line: the trail can't lose
//! its end unnoticed.
//!
//! Retention lets go of a trail's beginning. What stays behind is its anchor,
//! sealed in `meta` as well: how many lines are gone, and the link that the first
//! one left follows from. So it can't lose its beginning unnoticed either.

use std::collections::VecDeque;

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::fault::Fault;
use super::record::Book;
use super::schema::Kind;
use crate::clock::Instant;
use crate::level::Level;
use crate::provenance::Origin;
use crate::seal::{Digest, Encoder, Purpose};
use crate::storage::Event;

const HEAD: &str = "audit_head";
const ANCHOR: &str = "audit_anchor";

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

const BROKEN_WHAT: &str = "its audit trail is broken";
const BROKEN: Fault = Fault::Altered(BROKEN_WHAT);

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

/// What the first line follows from.
fn anchor(db: &Connection, book: &Book<'_>) -> Result<Head, Fault> {
    match Kind::level(book.file).meta(db, book.sealer, ANCHOR)? {
        Some(text) => Head::from_text(&text).ok_or(BROKEN),
        None => Ok(Head::none()),
    }
}

/// Begins the trail of a new file.
pub(super) fn begin(db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    set_head(db, book, &Head::none())
}

/// The digest by which a line names a key.
pub(super) fn key_digest(book: &Book<'_>, key: &str) -> Digest {
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
    let digest = line.record.map(|(_, key)| key_digest(book, key));
    let record = line.record.map(|(id, _)| id);
    add(db, book, &line, record, digest)
}

/// Adds the line of an operator's command. The key, if it is about one, is named
/// by its digest alone.
pub(super) fn append_operator(
    db: &Connection,
    book: &Book<'_>,
    at: &str,
    kind: &str,
    key: Option<&str>,
    detail: &str,
) -> Result<(), Fault> {
    let line = Line {
        at,
        kind,
        session: super::operator::SESSION,
        origin: Origin::User,
        record: None,
        detail: (!detail.is_empty()).then_some(detail),
    };
    add(db, book, &line, None, key.map(|key| key_digest(book, key)))
}

fn add(
    db: &Connection,
    book: &Book<'_>,
    line: &Line<'_>,
    record: Option<&str>,
    digest: Option<Digest>,
) -> Result<(), Fault> {
    let head = head(db, book)?;
    let last: Option<(i64, Digest)> = db
        .prepare_cached("SELECT number, chain FROM event ORDER BY number DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let found = match last {
        Some((count, last)) => Head { count, last },
        None => anchor(db, book)?,
    };
    if found != head {
        return Err(BROKEN);
    }
    let link = Link {
        number: head.count.checked_add(1).ok_or(BROKEN)?,
        at: line.at,
        kind: line.kind,
        session: line.session,
        origin: line.origin.name(),
        record,
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

/// What a walk along a trail found.
#[derive(Clone, Debug, Default)]
pub(super) struct Walked {
    /// How many lines there are.
    pub(super) lines: u64,
    /// How many retention had removed before the first.
    pub(super) removed: u64,
    /// Where the trail stops being what was written, and why.
    pub(super) broken: Option<Broken>,
}

/// Where and why a trail is not what was written.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    /// The number that the first wrong line has or should have had.
    pub(super) number: i64,
    pub(super) what: &'static str,
}

/// Of a line, what its [`Event`] does not tell.
#[derive(Clone, Copy, Default)]
pub(super) struct More<'a> {
    /// Whether its record is here, and was saved to take others' places.
    pub(super) takes_places: bool,
    /// The keyed digest of the key it is about.
    pub(super) digest: Option<&'a [u8]>,
}

/// Records as the lines of a trail ask for them: mostly in the order in which they
/// were saved, so that some are read ahead in that order. Ids are random, and
/// looking for each by its id would be a walk to and fro through the file.
struct Ahead<'a> {
    db: &'a Connection,
    /// The last row that was read ahead.
    last: i64,
    rows: VecDeque<Known>,
}

#[derive(Clone)]
struct Known {
    seq: i64,
    id: String,
    key: String,
    takes_places: bool,
}

impl Known {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            id: row.get(1)?,
            key: row.get(2)?,
            takes_places: row.get(3)?,
        })
    }
}

impl<'a> Ahead<'a> {
    /// Rows that are read at once.
    const ROWS: i64 = 32;

    fn new(db: &'a Connection) -> Self {
        Self {
            db,
            last: i64::MIN,
            rows: VecDeque::new(),
        }
    }

    fn read_on(&mut self) -> Result<(), Fault> {
        let mut statement = self.db.prepare_cached(
            "SELECT seq, id, key, supersedes <> '[]' FROM record
             WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )?;
        let rows = statement.query_map([self.last, Self::ROWS], Known::read)?;
        self.rows = rows.collect::<Result<_, _>>()?;
        if let Some(row) = self.rows.back() {
            self.last = row.seq;
        }
        Ok(())
    }

    /// The record with that id, if it is here.
    fn find(&mut self, id: &str) -> Result<Option<Known>, Fault> {
        if self.rows.is_empty() {
            self.read_on()?;
        }
        if let Some(at) = self.rows.iter().position(|row| row.id == id) {
            self.rows.drain(..at);
            // Kept no longer: mostly no line is about it again.
            return Ok(self.rows.pop_front());
        }
        let found = self
            .db
            .prepare_cached("SELECT seq, id, key, supersedes <> '[]' FROM record WHERE id = ?1")?
            .query_row([id], Known::read)
            .optional()?;
        // What lies between was not saved by a session: it was imported.
        if let Some(found) = &found
            && found.seq > self.last
        {
            self.last = found.seq;
            self.rows.clear();
        }
        Ok(found)
    }
}

/// Walks along a trail, oldest line first. Each line comes with whether it and
/// all before it are what was written; those behind a break come all the same.
/// To be called in one snapshot, since trail and head must be of one moment.
pub(super) fn walk(
    db: &Connection,
    book: &Book<'_>,
    mut each: impl FnMut(Event, bool) -> Result<(), Fault>,
) -> Result<Walked, Fault> {
    walk_closely(db, book, |event, _, whole| each(event, whole))
}

/// The same as [`walk`], with more of each line.
pub(super) fn walk_closely(
    db: &Connection,
    book: &Book<'_>,
    mut each: impl FnMut(Event, More<'_>, bool) -> Result<(), Fault>,
) -> Result<Walked, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT number, at, kind, session, origin, record, digest, detail, chain
         FROM event ORDER BY number",
    )?;
    let mut records = Ahead::new(db);
    let mut walked = Walked::default();
    let mut found = match anchor(db, book) {
        Ok(anchor) => anchor,
        Err(Fault::Altered(_)) => {
            walked.breaks(0, "the anchor of its audit trail fails its seal");
            Head::none()
        }
        Err(fault) => return Err(fault),
    };
    walked.removed = u64::try_from(found.count).unwrap_or(0);
    let mut rows = statement.query([])?;
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
        let known = match &record {
            Some(id) => records.find(id)?,
            None => None,
        };
        let more = More {
            takes_places: known.as_ref().is_some_and(|known| known.takes_places),
            digest: digest.as_deref(),
        };
        let key = known.map(|known| known.key);
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
        let expected = found.count.saturating_add(1);
        if number != expected {
            walked.breaks(expected, BROKEN_WHAT);
        } else if !link.chain(book, &found.last).fits(&chain) {
            walked.breaks(number, BROKEN_WHAT);
        }
        if let (Some(key), Some(digest)) = (&key, &digest)
            && key_digest(book, key).as_slice() != digest.as_slice()
        {
            walked.breaks(number, "a record has another key than when it was saved");
        }
        let instant = Instant::from_sql(&at);
        let origin = Origin::ALL.into_iter().find(|known| known.name() == origin);
        let last = Digest::try_from(chain.as_slice()).ok();
        let count = u64::try_from(number).ok();
        let (Some(at), Some(origin), Some(last), Some(number_told)) =
            (instant, origin, last, count)
        else {
            walked.breaks(number, BROKEN_WHAT);
            continue;
        };
        found = Head {
            count: number,
            last,
        };
        walked.lines = walked.lines.saturating_add(1);
        let event = Event {
            level: book.file.level,
            number: number_told,
            at,
            kind,
            session,
            origin,
            record,
            key,
            detail,
        };
        each(event, more, walked.broken.is_none())?;
    }
    match head(db, book) {
        Ok(head) if head == found => {}
        Ok(_) => walked.breaks(
            found.count.saturating_add(1),
            "its audit trail does not end at its head",
        ),
        Err(Fault::Altered(_)) => walked.breaks(
            found.count.saturating_add(1),
            "the head of its audit trail fails its seal",
        ),
        Err(fault) => return Err(fault),
    }
    Ok(walked)
}

impl Walked {
    /// The first break is the one that is told.
    fn breaks(&mut self, number: i64, what: &'static str) {
        if self.broken.is_none() {
            self.broken = Some(Broken { number, what });
        }
    }
}

/// The whole trail, oldest first, every link checked.
pub(super) fn all(db: &Connection, book: &Book<'_>, level: Level) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    let walked = walk(db, book, |event, _| {
        events.push(Event { level, ..event });
        Ok(())
    })?;
    match walked.broken {
        None => Ok(events),
        Some(broken) => Err(Fault::Altered(broken.what)),
    }
}

/// How many lines [`forget`] would remove: those before the first that is not
/// older than `before`.
pub(super) fn older(db: &Connection, before: &str) -> Result<i64, Fault> {
    let first: Option<i64> = db.query_row(
        "SELECT min(number) FROM event WHERE at >= ?1",
        [before],
        |row| row.get(0),
    )?;
    Ok(db.query_row(
        "SELECT count(*) FROM event WHERE ?1 IS NULL OR number < ?1",
        [first],
        |row| row.get(0),
    )?)
}

/// Removes the lines before the first that is not older than `before`, and leaves
/// an anchor, in the caller's transaction. Only a trail that is whole may lose
/// its beginning. Tells how many went.
pub(super) fn forget(db: &Connection, book: &Book<'_>, before: &str) -> Result<i64, Fault> {
    let walked = walk(db, book, |_, _| Ok(()))?;
    if let Some(broken) = walked.broken {
        return Err(Fault::Altered(broken.what));
    }
    let gone = older(db, before)?;
    if gone == 0 {
        return Ok(0);
    }
    let last = anchor(db, book)?.count.checked_add(gone).ok_or(BROKEN)?;
    let chain: Digest =
        db.query_row("SELECT chain FROM event WHERE number = ?1", [last], |row| {
            row.get(0)
        })?;
    let anchor = Head {
        count: last,
        last: chain,
    };
    // First, since the file keeps every line behind its anchor.
    Kind::level(book.file).set_meta(db, book.sealer, ANCHOR, &anchor.to_text())?;
    db.execute("DELETE FROM event WHERE number <= ?1", [last])?;
    Ok(gone)
}
