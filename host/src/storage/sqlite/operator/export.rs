//! The memory as text: one JSON object a line, for another store or another
//! program.
//!
//! # Lines
//!
//! | `type` | what |
//! | --- | --- |
//! | `header` | the first line: the format, and what an export leaves out |
//! | `record` | a version of a memory, live, superseded, deleted, kept apart or a tombstone |
//! | `edge` | that a record took another's place |
//! | `stamp` | that somebody said a record is still true |
//! | `usage` | how often a record was used from a level, and when last |
//! | `erased` | the id of a record that was erased for good |
//! | `event` | a line of an audit trail, with the name of the store it is from |
//! | `trailer` | the last line: how many there were of each, but for events |
//!
//! Every line but the first and the last names its agent and level. Files come
//! one after the other, agents by name and levels from the lowest; within a file
//! come first its records by key and version, then edges and the rest, each by
//! id. The lines of a file are of one moment.
//!
//! The order is that of what is kept, not of how, so the export of a store that
//! was filled from an export is the same text, but for the `event` lines that
//! bear the other store's name.
//!
//! # What is left out
//!
//! What means nothing without the store's key: seals, and erasures of a whole key
//! or session, which hold only a keyed digest. Sessions are no memory; a backup
//! has them. Audit lines are carried along as they are: [`Operator::verify`]
//! can check them only in the store where they were written.

use std::io::Write;

use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use super::erased::{self, Erased};
use super::{Operator, Progress};
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::seal::{Encoder, Purpose};
use crate::storage::sqlite::edge::EdgeRow;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::record::{Book, Record, columns};
use crate::storage::sqlite::stamp::Stamp;

/// What an export says it is.
pub(super) const FORMAT: &str = "remora-export";
/// The one version of exports so far.
pub(super) const VERSION: u32 = 1;
/// What an export says that it leaves out.
const LEFT_OUT: [&str; 3] = ["seals", "sessions", "erasures of a whole key or session"];

/// So many damaged rows are named; of more only the number is told.
const NAMED: usize = 100;

/// An export that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// Levels of agents.
    pub files: u64,
    /// How many lines of each kind.
    pub lines: ExportedLines,
    /// How many lines of audit trails, of this store and of others.
    pub events: u64,
    /// Rows that fail their seals, and are left out.
    pub damaged: u64,
    /// The first of them, each by its file and id.
    pub damaged_rows: Vec<String>,
}

/// How many lines an export has of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExportedLines {
    /// Records.
    pub records: u64,
    /// Edges.
    pub edges: u64,
    /// Stamps.
    pub stamps: u64,
    /// Counts of use.
    pub usage: u64,
    /// Erasures.
    pub erased: u64,
}

/// A line of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Line {
    Header(Header),
    Record(RecordLine),
    Edge(EdgeLine),
    Stamp(StampLine),
    Usage(UsageLine),
    Erased(ErasedLine),
    Event(EventLine),
    Trailer(ExportedLines),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    #[serde(default)]
    pub(super) leaves_out: Vec<String>,
}

/// Moments are RFC 3339 in UTC with milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordLine {
    pub(super) agent: String,
    pub(super) level: String,
    pub(super) id: String,
    pub(super) key: String,
    pub(super) version: i64,
    pub(super) content: String,
    pub(super) tags: Vec<String>,
    pub(super) origin: String,
    pub(super) standing: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    pub(super) session: String,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) confirmed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) superseded_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleted_at: Option<String>,
    /// A tombstone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) hides_lower: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) supersedes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgeLine {
    pub(super) agent: String,
    pub(super) level: String,
    pub(super) old_id: String,
    pub(super) old_level: String,
    pub(super) new_id: String,
    pub(super) at: String,
    pub(super) session: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StampLine {
    pub(super) agent: String,
    pub(super) level: String,
    pub(super) record_id: String,
    pub(super) record_level: String,
    pub(super) at: String,
    pub(super) session: String,
    pub(super) origin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageLine {
    pub(super) agent: String,
    pub(super) level: String,
    pub(super) record_id: String,
    pub(super) record_level: String,
    pub(super) last_used_at: String,
    pub(super) uses: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErasedLine {
    pub(super) agent: String,
    pub(super) level: String,
    pub(super) record_id: String,
    pub(super) at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventLine {
    /// The store in whose trail it stands.
    pub(super) store: String,
    pub(super) agent: String,
    pub(super) level: String,
    pub(super) number: i64,
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) session: String,
    pub(super) origin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) record: Option<String>,
    /// Hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    /// Hexadecimal digits.
    pub(super) chain: String,
}

impl EventLine {
    /// The seal under which a file keeps a line of another store's trail: over
    /// moments as files hold them.
    pub(super) fn encode(&self, book: &Book<'_>) -> Encoder {
        book.begin(Purpose::Foreign)
            .text(&self.store)
            .integer(self.number)
            .text(&self.at)
            .text(&self.kind)
            .text(&self.session)
            .text(&self.origin)
            .optional(self.record.as_deref())
            .optional(self.digest.as_deref())
            .optional(self.detail.as_deref())
            .text(&self.chain)
    }

    /// Reads the columns `number, at, kind, session, origin, record, digest,
    /// detail, chain` of a trail; the moment stays as files hold it.
    pub(super) fn read(row: &Row<'_>, book: &Book<'_>, store: String) -> rusqlite::Result<Self> {
        let digest: Option<Vec<u8>> = row.get(6)?;
        let chain: Vec<u8> = row.get(8)?;
        Ok(Self {
            store,
            agent: book.file.agent.clone(),
            level: book.file.level.name().to_owned(),
            number: row.get(0)?,
            at: row.get(1)?,
            kind: row.get(2)?,
            session: row.get(3)?,
            origin: row.get(4)?,
            record: row.get(5)?,
            digest: digest.as_deref().map(hex),
            detail: row.get(7)?,
            chain: hex(&chain),
        })
    }
}

/// Reads every line of other stores' trails that a file keeps, with whether its
/// seal fits.
pub(super) fn foreign_events(
    db: &Connection,
    book: &Book<'_>,
    mut each: impl FnMut(EventLine, bool) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = db.prepare(
        "SELECT number, at, kind, session, origin, record, digest, detail, chain, store, seal
         FROM foreign_event ORDER BY store, number",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let seal: Vec<u8> = row.get(10)?;
        let line = EventLine::read(row, book, row.get(9)?)?;
        let fits = line.encode(book).fits(&seal);
        each(line, fits)?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A moment as files hold it, as RFC 3339.
fn moment(sql: &str) -> String {
    let mut text = sql.replacen(' ', "T", 1);
    text.push('Z');
    text
}

/// Writes lines, and counts them.
struct Writer<'a> {
    to: &'a mut dyn Write,
    report: ExportReport,
}

impl Writer<'_> {
    fn line(&mut self, line: &Line) -> Result<(), Fault> {
        let counted = match line {
            Line::Record(_) => Some(&mut self.report.lines.records),
            Line::Edge(_) => Some(&mut self.report.lines.edges),
            Line::Stamp(_) => Some(&mut self.report.lines.stamps),
            Line::Usage(_) => Some(&mut self.report.lines.usage),
            Line::Erased(_) => Some(&mut self.report.lines.erased),
            Line::Event(_) => Some(&mut self.report.events),
            Line::Header(_) | Line::Trailer(_) => None,
        };
        if let Some(counted) = counted {
            *counted = counted.saturating_add(1);
        }
        let mut write = || -> std::io::Result<()> {
            serde_json::to_writer(&mut *self.to, line)?;
            self.to.write_all(b"\n")
        };
        write().map_err(|error| Fault::Said(unwritten(error)))
    }

    /// Whether a row is what was written. If not, it is left out.
    fn checks(&mut self, book: &Book<'_>, what: &str, seal: Encoder, kept: &[u8]) -> bool {
        let fits = seal.fits(kept);
        if !fits {
            self.damaged(book, what);
        }
        fits
    }

    fn damaged(&mut self, book: &Book<'_>, what: &str) {
        self.report.damaged = self.report.damaged.saturating_add(1);
        if self.report.damaged_rows.len() < NAMED {
            let path = book.file.path.display();
            self.report.damaged_rows.push(format!("{path}: {what}"));
        }
    }
}

fn unwritten(error: std::io::Error) -> Error {
    Error::unavailable(
        "The export can't be written",
        "An export without its last line, the trailer, is not whole",
        "Look whether the disk is full, then export again",
    )
    .caused_by(error)
}

impl Operator<'_> {
    /// Writes the memory of one agent or of all, on one level or on all, as lines
    /// of JSON: see the page of this module. Rows that fail their seals are left
    /// out and reported; the rest is written. Leaves one line in the trail of
    /// each level's file, for the words leave the store.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an agent without memories, or none on that
    /// level; [`ErrorKind::Unavailable`] for a file that can't be read, and where
    /// `to` fails.
    pub fn export(
        &self,
        agent: Option<&str>,
        level: Option<Level>,
        to: &mut dyn Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ExportReport, Error> {
        let mut files = self.files_of(agent)?;
        files.retain(|file| level.is_none_or(|level| level == file.level));
        if files.is_empty()
            && let (Some(agent), Some(level)) = (agent, level)
        {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("\"{}\" has no memories on {level}", agent.escape_debug()),
                "",
                "Leave the level out, or name another",
            ));
        }
        self.inner.write_all_usage();
        let mut writer = Writer {
            to,
            report: ExportReport::default(),
        };
        let head = Line::Header(Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            leaves_out: LEFT_OUT.map(str::to_owned).to_vec(),
        });
        let say = |fault| match fault {
            Fault::Said(error) => error,
            _ => unwritten(std::io::Error::other("not said")),
        };
        writer.line(&head).map_err(say)?;
        for file in &files {
            self.change(file, |db, book| {
                self.log(db, book, "export", None, "copied")
            })?;
            let mut told = |done, total| progress(Progress::of("export", file, done, total));
            self.read(file, |db, book| {
                records(&mut writer, db, book, &mut told)?;
                edges(&mut writer, db, book)?;
                stamps(&mut writer, db, book)?;
                usage(&mut writer, db, book)?;
                erasures(&mut writer, db, book)?;
                events(&mut writer, db, book)
            })?;
            writer.report.files = writer.report.files.saturating_add(1);
        }
        let trailer = Line::Trailer(writer.report.lines);
        writer.line(&trailer).map_err(say)?;
        writer.to.flush().map_err(unwritten)?;
        Ok(writer.report)
    }
}

fn records(
    writer: &mut Writer<'_>,
    db: &Connection,
    book: &Book<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    const ALL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM record ORDER BY key, version, id"
    );
    let total: i64 = db.query_row("SELECT count(*) FROM record", [], |row| row.get(0))?;
    let total = super::count(total);
    let mut statement = db.prepare(ALL)?;
    let mut rows = statement.query([])?;
    let mut done = 0_u64;
    while let Some(row) = rows.next()? {
        if done.is_multiple_of(1024) {
            progress(done, total);
        }
        done = done.saturating_add(1);
        let record = Record::read(row)?;
        let name = format!("record {}", record.id);
        if !writer.checks(book, &name, record.encode(book), &record.seal) {
            continue;
        }
        let (Ok(tags), Ok(supersedes)) = (record.tag_list(), record.supersedes_list()) else {
            writer.damaged(book, &name);
            continue;
        };
        writer.line(&Line::Record(RecordLine {
            agent: book.file.agent.clone(),
            level: book.file.level.name().to_owned(),
            id: record.id,
            key: record.key,
            version: record.version,
            content: record.content,
            tags,
            origin: record.origin,
            standing: record.standing,
            source: record.source,
            session: record.session,
            created_at: moment(&record.created_at),
            updated_at: moment(&record.updated_at),
            confirmed_at: record.confirmed_at.as_deref().map(moment),
            expires_at: record.expires_at.as_deref().map(moment),
            superseded_at: record.superseded_at.as_deref().map(moment),
            deleted_at: record.deleted_at.as_deref().map(moment),
            hides_lower: record.hides_lower,
            supersedes,
        }))?;
    }
    Ok(())
}

fn edges(writer: &mut Writer<'_>, db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    let mut statement = db.prepare(
        "SELECT old_id, new_id, old_level, at, session, seal FROM edge ORDER BY old_id, new_id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let edge = EdgeRow::read(row)?;
        let seal: Vec<u8> = row.get(5)?;
        let name = format!("edge {} {}", edge.old_id, edge.new_id);
        if writer.checks(book, &name, edge.encode(book), &seal) {
            writer.line(&Line::Edge(EdgeLine {
                agent: book.file.agent.clone(),
                level: book.file.level.name().to_owned(),
                old_id: edge.old_id,
                old_level: edge.old_level,
                new_id: edge.new_id,
                at: moment(&edge.at),
                session: edge.session,
            }))?;
        }
    }
    Ok(())
}

fn stamps(writer: &mut Writer<'_>, db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    let mut statement = db.prepare(
        "SELECT record_id, record_level, at, session, origin, source, seal FROM stamp
         ORDER BY record_id, at, session",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let stamp = Stamp::read(row)?;
        let seal: Vec<u8> = row.get(6)?;
        let name = format!("stamp of {}", stamp.record_id);
        if writer.checks(book, &name, stamp.encode(book), &seal) {
            writer.line(&Line::Stamp(StampLine {
                agent: book.file.agent.clone(),
                level: book.file.level.name().to_owned(),
                record_id: stamp.record_id,
                record_level: stamp.record_level,
                at: moment(&stamp.at),
                session: stamp.session,
                origin: stamp.origin,
                source: stamp.source,
            }))?;
        }
    }
    Ok(())
}

fn usage(writer: &mut Writer<'_>, db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    let mut statement = db.prepare(
        "SELECT record_id, record_level, last_used_at, uses FROM usage ORDER BY record_id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let last_used_at: String = row.get(2)?;
        writer.line(&Line::Usage(UsageLine {
            agent: book.file.agent.clone(),
            level: book.file.level.name().to_owned(),
            record_id: row.get(0)?,
            record_level: row.get(1)?,
            last_used_at: moment(&last_used_at),
            uses: row.get(3)?,
        }))?;
    }
    Ok(())
}

fn erasures(writer: &mut Writer<'_>, db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    let mut statement =
        db.prepare("SELECT record_id, at, digest, seal FROM erased ORDER BY record_id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let erased: Erased = erased::read(row)?;
        if !erased.name.contains('/')
            && writer.checks(book, "an erasure", erased.encode(book), &erased.seal)
        {
            writer.line(&Line::Erased(ErasedLine {
                agent: book.file.agent.clone(),
                level: book.file.level.name().to_owned(),
                record_id: erased.name,
                at: moment(&erased.at),
            }))?;
        }
    }
    Ok(())
}

/// This store's trail among those that came with imports, by the stores' names.
fn events(writer: &mut Writer<'_>, db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    let own = book.sealer.store_name();
    let mut before = true;
    foreign_events(db, book, |mut line, fits| {
        if before && line.store > own {
            before = false;
            own_events(writer, db, book, &own)?;
        }
        if fits {
            line.at = moment(&line.at);
            writer.line(&Line::Event(line))
        } else {
            writer.damaged(book, &format!("event {} of {}", line.number, line.store));
            Ok(())
        }
    })?;
    if before {
        own_events(writer, db, book, &own)?;
    }
    Ok(())
}

fn own_events(
    writer: &mut Writer<'_>,
    db: &Connection,
    book: &Book<'_>,
    store: &str,
) -> Result<(), Fault> {
    let mut statement = db.prepare(
        "SELECT number, at, kind, session, origin, record, digest, detail, chain
         FROM event ORDER BY number",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut line = EventLine::read(row, book, store.to_owned())?;
        line.at = moment(&line.at);
        writer.line(&Line::Event(line))?;
    }
    Ok(())
}
