//! An export becomes memory again, in this store or another.
//!
//! # What an import may do
//!
//! It is an act of the person who runs the store: what the file says of who said
//! something is believed as far as the importer vouches for it
//! ([`ImportOptions::origin`]), and never more. Beyond that a line changes little:
//!
//! - a record keeps its level; none is put lower, and one that is known on
//!   another level is rejected;
//! - a record that is there already is skipped, whatever became of it here: what
//!   was superseded or deleted stays so. The same id with other words is rejected;
//! - what a purge erased from this store is not brought in;
//! - of two records that would both be live under a key, the more trusted stays
//!   so, of equally trusted ones the later, and of equally late ones that of the
//!   higher version or else id. The other becomes superseded; if it is the later
//!   and only less trusted, it waits for a person instead. What has expired goes
//!   behind all else, and tombstones count as records. So it does not matter in
//!   which order two exports are imported;
//! - an edge hides a record that is live here only if what took its place is here
//!   as well, and no less trusted; nor does a tool's stamp confirm anything;
//! - an erasure is kept in mind, but erases nothing that is still here;
//! - audit lines are carried along, apart from this store's own trail.
//!
//! # Damage
//!
//! A line that can't be read is rejected with its number and the rest goes on;
//! a file that ends before its trailer is reported as incomplete.
//!
//! # Crashes
//!
//! Lines are imported in batches, one transaction each, with one line in the
//! audit trail. After a crash the same import goes on where it stopped: what is
//! there is skipped. Until a file was imported to its end, a mark in `meta` says
//! which rows the import brought, so that the edges of these are still believed.
//!
//! # Performance
//!
//! One line at a time is held in memory, of at most [`LINE_BYTES`]. A file stays
//! open from batch to batch, so that what was read of its indexes, which each line
//! asks in another place, is not read again.
//!
//! An index is written in many pieces, and a search looks into each. So where an
//! import brought most of what a file holds, its index is put into one at the end.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;

use super::erased::{self, Erased};
use super::export::{
    EdgeLine, ErasedLine, EventLine, ExportedLines, FORMAT, Header, Line, RecordLine, StampLine,
    UsageLine, VERSION,
};
use super::{Operator, Progress, fault_point};
use crate::clock::Instant;
use crate::error::Error;
use crate::level::{Level, can_flow_to};
use crate::provenance::{Origin, Standing};
use crate::seal::Purpose;
use crate::storage::sqlite::check_name;
use crate::storage::sqlite::connection::Mode;
use crate::storage::sqlite::edge::EdgeRow;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::{LevelFile, identity};
use crate::storage::sqlite::record::{Book, Record};
use crate::storage::sqlite::schema::Kind;
use crate::storage::sqlite::search::index;
use crate::storage::sqlite::stamp::Stamp;
use crate::storage::{Draft, check_draft, check_key, check_source};

/// Bytes of a line. Content at its longest, every byte of it escaped, and all
/// else are far shorter.
pub const LINE_BYTES: usize = 4 * 1024 * 1024;

/// Lines of a batch: about half a second of another writer's time.
const BATCH_LINES: u64 = 2_000;
/// Bytes of the lines of a batch.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// An import that brings fewer records to a file leaves its index in its pieces.
const MANY: i64 = 1_000;

/// So many lines are told of, of those rejected and of those skipped; of more
/// only the number.
const TOLD: usize = 1_000;

/// The highest version that a line may have, so that there are always more to
/// come under its key.
const VERSION_MOST: i64 = 1_000_000_000;

/// Milliseconds that what a line tells of may lie ahead of now: clocks differ.
const AHEAD_MOST: i64 = 24 * 60 * 60 * 1000;

/// Bytes of a text in an audit line: they come from fixed vocabularies.
const EVENT_BYTES: usize = 256;

/// How to import.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Who vouches for the file. Records and stamps are of this origin at most.
    /// What becomes the words of a tool that way is kept apart.
    pub origin: Origin,
}

impl Default for ImportOptions {
    /// The person vouches for the file.
    fn default() -> Self {
        Self {
            origin: Origin::User,
        }
    }
}

impl ImportOptions {
    /// With somebody else vouching for the file.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }
}

/// An import that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// Lines that were read.
    pub lines: u64,
    /// What became of the records.
    pub records: Imported,
    /// Of the edges.
    pub edges: Imported,
    /// Of the stamps.
    pub stamps: Imported,
    /// Of the counts of use.
    pub usage: Imported,
    /// Of the erasures.
    pub erased: Imported,
    /// Of the audit lines.
    pub events: Imported,
    /// Lines that could not be read at all.
    pub unreadable: u64,
    /// Records that had been live here and gave way to imported ones.
    pub gave_way: u64,
    /// Imported records that are not live because what is here under their key
    /// goes before them.
    pub stood_back: u64,
    /// Whether the file ended as an export does, with as many lines as it says.
    pub complete: bool,
    /// The first lines that were rejected or could not be read.
    pub rejected: Vec<LineNote>,
    /// The first lines that were skipped.
    pub skipped: Vec<LineNote>,
}

/// How many lines of a kind were imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// Brought in.
    pub imported: u64,
    /// Passed over, with a reason.
    pub skipped: u64,
    /// Refused, with a reason.
    pub rejected: u64,
}

/// What is said of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LineNote {
    /// Counts from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// What became of a line.
enum Verdict {
    Imported,
    Skipped(&'static str),
    Rejected(String),
}

impl Verdict {
    fn rejected(why: impl Into<String>) -> Self {
        Self::Rejected(why.into())
    }
}

/// Why a line is wrong, before any file is asked.
type Wrong = String;

/// A line with its place and all its texts checked, and moments as files hold
/// them.
struct Checked {
    file: LevelFile,
    row: Row,
}

enum Row {
    Record(Box<Record>),
    Edge(EdgeRow),
    Stamp(Stamp),
    Usage(UsageLine),
    Erased(Erased),
    Event(EventLine),
}

/// The row of `meta` that says since when an import has been bringing rows.
const MARK: &str = "import_pending";

/// Where a file stood when an import began.
#[derive(Clone, Copy)]
struct Began {
    /// Its last row: those behind it are what the import brought, or what
    /// sessions saved meanwhile.
    seq: i64,
    /// The last line of its trail: those behind it tell what sessions saved.
    line: i64,
    /// Whether the file bears the mark.
    marked: bool,
}

impl Began {
    /// What the mark says: where, and which export.
    fn to_text(self, export: &str) -> String {
        format!("{} {} {export}", self.seq, self.line)
    }

    fn from_text(text: &str, export: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let (seq, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (parts.next() == Some(export)).then_some(Self {
            seq,
            line,
            marked: true,
        })
    }
}

/// What an import has open: one file, in a transaction.
struct Batch {
    file: LevelFile,
    db: Connection,
    /// Those of the agent's other levels that exist, for reading.
    others: Vec<(LevelFile, Connection)>,
    lines: u64,
    bytes: usize,
    imported: ExportedLines,
    events: u64,
    skipped: u64,
    rejected: u64,
}

impl Operator<'_> {
    /// Reads lines of JSON that [`Operator::export`] wrote, here or elsewhere,
    /// into the agents and levels that they name: see the page of this module.
    /// What is imported is found by search at once. Run again it changes nothing.
    /// Leaves a line in the trail of each level's file for each batch.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for what is no
    /// export, [`Unavailable`](crate::ErrorKind::Unavailable). What was imported
    /// until then stays.
    pub fn import(
        &self,
        from: &mut dyn BufRead,
        options: &ImportOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportReport, Error> {
        let mut import = Import {
            operator: self,
            options,
            batch: None,
            before: BTreeMap::new(),
            first: Vec::new(),
            committed: false,
            report: ImportReport::default(),
            seen: ExportedLines::default(),
        };
        let done = import.all(from, progress);
        if import.committed {
            done.map_err(|error| error.allowing(STAYS))?;
        } else {
            done?;
        }
        Ok(import.report)
    }
}

/// What is said of an import that fails on the way.
const STAYS: &str = "What was imported until there stays";

impl Import<'_, '_> {
    /// Imports all lines.
    fn all(
        &mut self,
        from: &mut dyn BufRead,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let mut buffer = Vec::new();
        let mut begun = false;
        loop {
            let read = read_line(from, &mut buffer).map_err(unread)?;
            if read == Read::End {
                break;
            }
            self.report.lines = self.report.lines.saturating_add(1);
            let number = self.report.lines;
            if number == 1 && buffer.starts_with(b"\xef\xbb\xbf") {
                buffer.drain(..3);
            }
            if buffer.trim_ascii().is_empty() && read == Read::Line {
                continue;
            }
            let line = match read {
                Read::TooLong => Err(format!("it has more than {LINE_BYTES} bytes")),
                _ => serde_json::from_slice(buffer.trim_ascii())
                    .map_err(|error| format!("it can't be read: {error}")),
            };
            match line {
                Ok(Line::Header(header)) => {
                    check_header(&header)?;
                    begun = true;
                    self.seen = ExportedLines::default();
                    self.report.complete = false;
                }
                _ if !begun => return Err(no_export()),
                Ok(Line::Trailer(counts)) => self.report.complete = self.seen == counts,
                Ok(line) => {
                    if self.first.is_empty() {
                        self.first = buffer.trim_ascii().to_vec();
                    }
                    self.take(number, line, buffer.len())?;
                }
                Err(why) => {
                    self.report.unreadable = self.report.unreadable.saturating_add(1);
                    note(&mut self.report.rejected, number, why);
                }
            }
            if number.is_multiple_of(1024) {
                progress(Progress {
                    step: "import",
                    agent: None,
                    level: None,
                    done: number,
                    total: 0,
                });
            }
        }
        if !begun {
            return Err(no_export());
        }
        self.close()?;
        if self.report.complete {
            self.compact()?;
            self.unmark()?;
        }
        Ok(())
    }
}

impl Batch {
    /// Begins a transaction, with one snapshot of each other level.
    fn begin(&self) -> Result<(), Fault> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        for (_, db) in &self.others {
            db.execute_batch("BEGIN")?;
        }
        Ok(())
    }
}

/// How a file names an export, by its first line: with a keyed digest, which
/// holds no words.
fn name_of(book: &Book<'_>, first: &[u8]) -> String {
    let digest = book
        .begin(Purpose::Key)
        .text("import")
        .bytes(first)
        .finish();
    blake3::Hash::from_bytes(digest).to_hex().to_string()
}

fn check_header(header: &Header) -> Result<(), Error> {
    if header.format == FORMAT && header.version == VERSION {
        return Ok(());
    }
    Err(Error::invalid(
        format!(
            "The file is of the format {} {}",
            header.format.escape_debug(),
            header.version
        ),
        format!("This Remora reads {FORMAT} {VERSION}"),
        "Use the Remora that wrote it, or a later one",
    ))
}

fn no_export() -> Error {
    Error::invalid(
        "The file does not begin as an export does",
        format!("Its first line says that it is a header of {FORMAT}"),
        "Name a file that `remora export` wrote",
    )
}

fn unread(error: std::io::Error) -> Error {
    Error::unavailable(
        "The file can't be read further",
        STAYS,
        "Import it again: what is there is skipped",
    )
    .caused_by(error)
}

fn note(notes: &mut Vec<LineNote>, line: u64, reason: impl Into<String>) {
    if notes.len() < TOLD {
        notes.push(LineNote {
            line,
            reason: reason.into(),
        });
    }
}

#[derive(PartialEq, Eq)]
enum Read {
    Line,
    TooLong,
    End,
}

/// Reads a line without its end. Of one that is too long nothing is kept.
fn read_line(from: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<Read> {
    line.clear();
    let (mut any, mut too_long) = (false, false);
    loop {
        let part = match from.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = part.iter().position(|byte| *byte == b'\n');
        let (used, done) = match end {
            Some(end) => (end.saturating_add(1), true),
            None => (part.len(), part.is_empty()),
        };
        any |= used > 0;
        let text = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
        too_long |= line.len().saturating_add(text.len()) > LINE_BYTES;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(text);
        }
        from.consume(used);
        if done {
            return Ok(match (any, too_long) {
                (false, _) => Read::End,
                (true, true) => Read::TooLong,
                (true, false) => Read::Line,
            });
        }
    }
}

struct Import<'a, 'b> {
    operator: &'a Operator<'b>,
    options: &'a ImportOptions,
    batch: Option<Batch>,
    /// Where each file stood, by its path, before this import wrote to it.
    before: BTreeMap<PathBuf, (LevelFile, Began)>,
    /// The first line behind the header, by which the same export is known again.
    first: Vec<u8>,
    /// Whether a transaction of it was committed.
    committed: bool,
    report: ImportReport,
    /// Lines of each kind since the header.
    seen: ExportedLines,
}

impl Import<'_, '_> {
    fn take(&mut self, number: u64, line: Line, bytes: usize) -> Result<(), Error> {
        let kind = Which::of(&line);
        if let Some(seen) = kind.of_lines(&mut self.seen) {
            *seen = seen.saturating_add(1);
        }
        let verdict = match self.check(line) {
            Ok(checked) => {
                self.turn_to(&checked.file)?;
                self.apply(checked.row, bytes)?
            }
            Err(wrong) => Verdict::Rejected(wrong),
        };
        let tally = kind.of_report(&mut self.report);
        match &verdict {
            Verdict::Imported => tally.imported = tally.imported.saturating_add(1),
            Verdict::Skipped(_) => tally.skipped = tally.skipped.saturating_add(1),
            Verdict::Rejected(_) => tally.rejected = tally.rejected.saturating_add(1),
        }
        if let Some(batch) = &mut self.batch {
            match &verdict {
                Verdict::Imported => {
                    let counted = kind.of_lines(&mut batch.imported);
                    let counted = counted.unwrap_or(&mut batch.events);
                    *counted = counted.saturating_add(1);
                }
                Verdict::Skipped(_) => batch.skipped = batch.skipped.saturating_add(1),
                Verdict::Rejected(_) => batch.rejected = batch.rejected.saturating_add(1),
            }
        }
        match verdict {
            Verdict::Imported => {}
            Verdict::Skipped(why) => note(&mut self.report.skipped, number, why),
            Verdict::Rejected(why) => note(&mut self.report.rejected, number, why),
        }
        let full = self
            .batch
            .as_ref()
            .is_some_and(|batch| batch.lines >= BATCH_LINES || batch.bytes >= BATCH_BYTES);
        if full { self.next_batch() } else { Ok(()) }
    }

    /// Has a transaction on that file open, and none on another.
    fn turn_to(&mut self, file: &LevelFile) -> Result<(), Error> {
        if self
            .batch
            .as_ref()
            .is_some_and(|batch| batch.file.path == file.path)
        {
            return Ok(());
        }
        self.close()?;
        let (before, first) = (&mut self.before, &self.first);
        let mut open = || -> Result<Batch, Fault> {
            let inner = self.operator.inner;
            if identity(&file.path)?.is_none() {
                let kind = Kind::level(file);
                inner
                    .layout
                    .make_level(file, |path| inner.pool.maintain(path, &kind))?;
            }
            let mut others = Vec::new();
            for level in Level::ALL.into_iter().filter(|level| *level != file.level) {
                let other = inner.layout.level(&file.agent, level);
                if identity(&other.path)?.is_some() {
                    let kind = Kind::level(&other);
                    let db = inner.pool.connect(&other.path, Mode::Read)?;
                    if !kind.check(&db, &inner.sealer)? {
                        drop(db);
                        inner.pool.maintain(&other.path, &kind)?;
                        let db = inner.pool.connect(&other.path, Mode::Read)?;
                        others.push((other, db));
                    } else {
                        others.push((other, db));
                    }
                }
            }
            let db = self.operator.open(file)?;
            let batch = Batch {
                file: file.clone(),
                db,
                others,
                lines: 0,
                bytes: 0,
                imported: ExportedLines::default(),
                events: 0,
                skipped: 0,
                rejected: 0,
            };
            batch.begin()?;
            if !before.contains_key(&file.path) {
                let kind = Kind::level(file);
                let mark = kind.meta(&batch.db, &inner.sealer, MARK)?;
                let mark = mark
                    .and_then(|text| Began::from_text(&text, &name_of(&inner.book(file), first)));
                let last = |sql: &str| batch.db.query_row(sql, [], |row| row.get(0));
                let began = match mark {
                    Some(began) => began,
                    None => Began {
                        seq: last("SELECT coalesce(max(seq), 0) FROM record")?,
                        line: last("SELECT coalesce(max(number), 0) FROM event")?,
                        marked: false,
                    },
                };
                before.insert(file.path.clone(), (file.clone(), began));
            }
            Ok(batch)
        };
        self.batch = Some(open().map_err(|fault| file.operator_place().say(fault))?);
        Ok(())
    }

    /// Ends the transaction that is open, and begins another on the same file.
    fn next_batch(&mut self) -> Result<(), Error> {
        self.commit()?;
        let Some(batch) = &mut self.batch else {
            return Ok(());
        };
        batch.lines = 0;
        batch.bytes = 0;
        batch.imported = ExportedLines::default();
        batch.events = 0;
        batch.skipped = 0;
        batch.rejected = 0;
        let place = batch.file.operator_place();
        batch.begin().map_err(|fault| place.say(fault))
    }

    /// Ends the transaction that is open, and closes its file.
    fn close(&mut self) -> Result<(), Error> {
        self.commit()?;
        let Some(batch) = self.batch.take() else {
            return Ok(());
        };
        let place = batch.file.operator_place();
        // Closing says nothing of what fails then, so it is done by name.
        let closed = batch.db.close();
        closed.map_err(|(_, error)| place.say(error.into()))
    }

    /// Puts the index of each file into one piece, where the import brought many
    /// records, and half of what is there or more. Ahead of [`Self::unmark`], so
    /// that an import that goes on after a crash still knows what it brought.
    fn compact(&self) -> Result<(), Error> {
        for (file, began) in self.before.values() {
            if !began.marked {
                continue;
            }
            let (brought, all) = self.operator.read(file, |db, _| {
                Ok(db.query_row(
                    "SELECT count(*) FILTER (WHERE seq > ?1), count(*) FROM record",
                    [began.seq],
                    |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
                )?)
            })?;
            if brought >= MANY && brought >= all.saturating_sub(brought) {
                self.operator.change(file, |db, _| index::compact(db))?;
            }
        }
        Ok(())
    }

    /// Takes the marks away, once all was imported.
    fn unmark(&mut self) -> Result<(), Error> {
        for (file, began) in self.before.values() {
            if began.marked {
                self.operator.change(file, |db, _| {
                    db.execute("DELETE FROM meta WHERE name = ?1", [MARK])?;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Ends the transaction that is open.
    fn commit(&mut self) -> Result<(), Error> {
        let Some(batch) = &self.batch else {
            return Ok(());
        };
        let place = batch.file.operator_place();
        let (before, first) = (&mut self.before, &self.first);
        let committed = &mut self.committed;
        let mut commit = || -> Result<(), Fault> {
            let book = self.operator.inner.book(&batch.file);
            let lines = batch.imported;
            if lines != ExportedLines::default() || batch.events > 0 {
                if let Some((_, began)) = before.get_mut(&batch.file.path)
                    && !began.marked
                {
                    began.marked = true;
                    let mark = began.to_text(&name_of(&book, first));
                    Kind::level(&batch.file).set_meta(&batch.db, book.sealer, MARK, &mark)?;
                }
                let detail = format!(
                    "records={} edges={} stamps={} usage={} erased={} events={} skipped={} rejected={}",
                    lines.records,
                    lines.edges,
                    lines.stamps,
                    lines.usage,
                    lines.erased,
                    batch.events,
                    batch.skipped,
                    batch.rejected
                );
                self.operator
                    .log(&batch.db, &book, "import", None, &detail)?;
            }
            fault_point("import-before-commit");
            batch.db.execute_batch("COMMIT")?;
            for (_, db) in &batch.others {
                db.execute_batch("COMMIT")?;
            }
            *committed = true;
            fault_point("import-committed");
            Ok(())
        };
        commit().map_err(|fault| place.say(fault))
    }

    fn apply(&mut self, row: Row, bytes: usize) -> Result<Verdict, Error> {
        let Some(batch) = &mut self.batch else {
            return Ok(Verdict::rejected("no file is open"));
        };
        batch.lines = batch.lines.saturating_add(1);
        batch.bytes = batch.bytes.saturating_add(bytes);
        let place = batch.file.operator_place();
        let mut contest = Contest::default();
        let apply = || -> Result<Verdict, Fault> {
            let scene = Scene {
                db: &batch.db,
                book: self.operator.inner.book(&batch.file),
                others: &batch.others,
                operator: self.operator,
                before: &self.before,
                now: self.operator.now.to_sql(),
            };
            // A line that SQLite refuses after all leaves the others untouched.
            scene.db.prepare_cached("SAVEPOINT line")?.execute([])?;
            let verdict = match row {
                Row::Record(record) => scene.record(*record, self.options.origin, &mut contest),
                Row::Edge(edge) => scene.edge(&edge),
                Row::Stamp(stamp) => scene.stamp(&stamp, self.options.origin),
                Row::Usage(usage) => scene.usage(&usage),
                Row::Erased(erased) => scene.erased(&erased),
                Row::Event(event) => scene.event(&event),
            };
            let verdict = match verdict {
                Err(Fault::Sql(error))
                    if error.sqlite_error_code()
                        == Some(rusqlite::ErrorCode::ConstraintViolation) =>
                {
                    Verdict::rejected(format!("it does not fit with what is here: {error}"))
                }
                verdict => verdict?,
            };
            if !matches!(verdict, Verdict::Imported) {
                scene.db.prepare_cached("ROLLBACK TO line")?.execute([])?;
            }
            scene.db.prepare_cached("RELEASE line")?.execute([])?;
            Ok(verdict)
        };
        let verdict = apply().map_err(|fault| place.say(fault))?;
        if matches!(verdict, Verdict::Imported) {
            let report = &mut self.report;
            report.gave_way = report.gave_way.saturating_add(contest.gave_way);
            report.stood_back = report.stood_back.saturating_add(contest.stood_back);
        }
        Ok(verdict)
    }

    /// Checks everything about a line that can be known without a file.
    fn check(&self, line: Line) -> Result<Checked, Wrong> {
        let place = |agent: &str, level: &str| -> Result<LevelFile, Wrong> {
            check_name("agent", agent).map_err(why)?;
            Ok(self.operator.inner.layout.level(agent, level_of(level)?))
        };
        let checked = match line {
            Line::Record(line) => Checked {
                file: place(&line.agent, &line.level)?,
                row: Row::Record(Box::new(check_record(line)?)),
            },
            Line::Edge(line) => {
                let file = place(&line.agent, &line.level)?;
                check_beneath(&line.old_level, file.level)?;
                Checked {
                    row: Row::Edge(check_edge(line)?),
                    file,
                }
            }
            Line::Stamp(line) => {
                let file = place(&line.agent, &line.level)?;
                check_beneath(&line.record_level, file.level)?;
                Checked {
                    row: Row::Stamp(check_stamp(line)?),
                    file,
                }
            }
            Line::Usage(mut line) => {
                let file = place(&line.agent, &line.level)?;
                check_beneath(&line.record_level, file.level)?;
                check_id(&line.record_id)?;
                line.last_used_at = sql(&line.last_used_at)?;
                // As far as a writer of usage counts.
                if !(1..=i64::MAX >> 1).contains(&line.uses) {
                    return Err(format!("it was used {} times", line.uses));
                }
                Checked {
                    file,
                    row: Row::Usage(line),
                }
            }
            Line::Erased(line) => Checked {
                file: place(&line.agent, &line.level)?,
                row: Row::Erased(check_erased(line)?),
            },
            Line::Event(line) => Checked {
                file: place(&line.agent, &line.level)?,
                row: Row::Event(check_event(line)?),
            },
            Line::Header(_) | Line::Trailer(_) => return Err("it is no row".to_owned()),
        };
        check_moments(&checked.row, self.operator.now)?;
        Ok(checked)
    }
}

/// Which kind of row a line is about.
#[derive(Clone, Copy)]
enum Which {
    Record,
    Edge,
    Stamp,
    Usage,
    Erased,
    Event,
}

impl Which {
    fn of(line: &Line) -> Self {
        match line {
            Line::Record(_) => Self::Record,
            Line::Edge(_) => Self::Edge,
            Line::Stamp(_) => Self::Stamp,
            Line::Usage(_) => Self::Usage,
            Line::Erased(_) => Self::Erased,
            Line::Event(_) | Line::Header(_) | Line::Trailer(_) => Self::Event,
        }
    }

    fn of_report(self, report: &mut ImportReport) -> &mut Imported {
        match self {
            Self::Record => &mut report.records,
            Self::Edge => &mut report.edges,
            Self::Stamp => &mut report.stamps,
            Self::Usage => &mut report.usage,
            Self::Erased => &mut report.erased,
            Self::Event => &mut report.events,
        }
    }

    /// Events have no count there.
    fn of_lines(self, lines: &mut ExportedLines) -> Option<&mut u64> {
        Some(match self {
            Self::Record => &mut lines.records,
            Self::Edge => &mut lines.edges,
            Self::Stamp => &mut lines.stamps,
            Self::Usage => &mut lines.usage,
            Self::Erased => &mut lines.erased,
            Self::Event => return None,
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn why(error: Error) -> Wrong {
    error.what().to_owned()
}

fn level_of(name: &str) -> Result<Level, Wrong> {
    Level::ALL
        .into_iter()
        .find(|level| level.name() == name)
        .ok_or_else(|| format!("\"{}\" is no level", name.escape_debug()))
}

fn origin_of(name: &str) -> Result<Origin, Wrong> {
    Origin::ALL
        .into_iter()
        .find(|origin| origin.name() == name)
        .ok_or_else(|| format!("\"{}\" is no origin", name.escape_debug()))
}

/// What a row on a level tells of must lie at or below it.
fn check_beneath(of: &str, level: Level) -> Result<(), Wrong> {
    let of = level_of(of)?;
    if can_flow_to(of, level) {
        Ok(())
    } else {
        Err(format!("it tells on {level} of a record on {of}"))
    }
}

fn check_id(id: &str) -> Result<(), Wrong> {
    let digits = id
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if id.len() == 32 && digits {
        Ok(())
    } else {
        Err("an id is not 32 hexadecimal digits".to_owned())
    }
}

fn check_hex(text: &str) -> Result<(), Wrong> {
    let digits = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() == 64 && digits {
        Ok(())
    } else {
        Err("a digest is not 64 hexadecimal digits".to_owned())
    }
}

/// A moment as files hold it.
fn sql(moment: &str) -> Result<String, Wrong> {
    let text = moment
        .strip_suffix('Z')
        .map(|text| text.replacen('T', " ", 1));
    text.filter(|text| Instant::from_sql(text).is_some())
        .ok_or_else(|| {
            format!(
                "\"{}\" is no moment like 2026-11-30T01:04:33.000Z",
                moment.escape_debug()
            )
        })
}

fn optional(moment: Option<&String>) -> Result<Option<String>, Wrong> {
    moment.map(|moment| sql(moment)).transpose()
}

fn check_record(line: RecordLine) -> Result<Record, Wrong> {
    check_id(&line.id)?;
    check_name("session", &line.session).map_err(why)?;
    origin_of(&line.origin)?;
    if !Standing::ALL
        .iter()
        .any(|standing| standing.name() == line.standing)
    {
        return Err(format!(
            "\"{}\" is no standing",
            line.standing.escape_debug()
        ));
    }
    if !(1..=VERSION_MOST).contains(&line.version) {
        return Err(format!("{} is no version", line.version));
    }
    for id in &line.supersedes {
        check_id(id)?;
    }
    let deleted_at = optional(line.deleted_at.as_ref())?;
    if line.hides_lower && deleted_at.is_none() {
        return Err("a tombstone was not deleted".to_owned());
    }
    let draft = Draft {
        key: line.key,
        content: line.content,
        tags: line.tags,
        source: line.source,
        expires_at: None,
        supersedes: line.supersedes,
    };
    if line.hides_lower && draft.content.is_empty() {
        check_key(&draft.key).map_err(why)?;
        check_source(draft.source.as_deref()).map_err(why)?;
        if !draft.tags.is_empty() {
            return Err("a tombstone without words has tags".to_owned());
        }
    } else {
        check_draft(&draft, Instant::from_millis_clamped(0)).map_err(why)?;
    }
    let json = |texts: &[String]| serde_json::to_string(texts).map_err(|error| error.to_string());
    Ok(Record {
        seq: 0,
        id: line.id,
        tags: json(&draft.tags)?,
        supersedes: json(&draft.supersedes)?,
        key: draft.key,
        content: draft.content,
        source: draft.source,
        origin: line.origin,
        standing: line.standing,
        session: line.session,
        version: line.version,
        created_at: sql(&line.created_at)?,
        updated_at: sql(&line.updated_at)?,
        confirmed_at: optional(line.confirmed_at.as_ref())?,
        expires_at: optional(line.expires_at.as_ref())?,
        superseded_at: optional(line.superseded_at.as_ref())?,
        deleted_at,
        hides_lower: line.hides_lower,
        seal: Vec::new(),
    })
}

/// What happened, happened: a moment far ahead would go before all that is saved
/// until then, and what it confirms would not be asked about again.
fn check_moments(row: &Row, now: Instant) -> Result<(), Wrong> {
    let last = Instant::from_millis_clamped(now.millis().saturating_add(AHEAD_MOST)).to_sql();
    let check = |name: &str, at: &str| {
        if at <= last.as_str() {
            Ok(())
        } else {
            Err(format!(
                "its {name} lies more than a day ahead of the clock here"
            ))
        }
    };
    match row {
        Row::Record(record) => {
            check("updated_at", &record.updated_at)?;
            for (name, at) in [
                ("confirmed_at", &record.confirmed_at),
                ("superseded_at", &record.superseded_at),
                ("deleted_at", &record.deleted_at),
            ] {
                check(name, at.as_deref().unwrap_or_default())?;
            }
            // A clock that was set back between two versions leaves it a little
            // later, so only what no clock explains is refused.
            let first = Instant::from_sql(&record.created_at).map(Instant::millis);
            let saved = Instant::from_sql(&record.updated_at).map(Instant::millis);
            if let (Some(first), Some(saved)) = (first, saved)
                && first > saved.saturating_add(AHEAD_MOST)
            {
                return Err("its created_at lies more than a day after its updated_at".to_owned());
            }
            Ok(())
        }
        // They become a record's superseded_at and confirmed_at.
        Row::Edge(edge) => check("at", &edge.at),
        Row::Stamp(stamp) => check("at", &stamp.at),
        Row::Usage(_) | Row::Erased(_) | Row::Event(_) => Ok(()),
    }
}

fn check_edge(line: EdgeLine) -> Result<EdgeRow, Wrong> {
    check_id(&line.old_id)?;
    check_id(&line.new_id)?;
    check_name("session", &line.session).map_err(why)?;
    if line.old_id == line.new_id {
        return Err("a record takes its own place".to_owned());
    }
    Ok(EdgeRow {
        at: sql(&line.at)?,
        old_id: line.old_id,
        new_id: line.new_id,
        old_level: line.old_level,
        session: line.session,
    })
}

fn check_stamp(line: StampLine) -> Result<Stamp, Wrong> {
    check_id(&line.record_id)?;
    check_name("session", &line.session).map_err(why)?;
    check_source(line.source.as_deref()).map_err(why)?;
    origin_of(&line.origin)?;
    Ok(Stamp {
        at: sql(&line.at)?,
        record_id: line.record_id,
        record_level: line.record_level,
        session: line.session,
        origin: line.origin,
        source: line.source,
    })
}

fn check_erased(line: ErasedLine) -> Result<Erased, Wrong> {
    check_id(&line.record_id)?;
    Ok(Erased {
        at: sql(&line.at)?,
        name: line.record_id,
        digest: None,
        seal: Vec::new(),
    })
}

fn check_event(mut line: EventLine) -> Result<EventLine, Wrong> {
    check_id(&line.store).map_err(|_| "a store's name is not 32 hexadecimal digits".to_owned())?;
    if line.number < 1 {
        return Err(format!("{} is no number of an audit line", line.number));
    }
    check_name("session", &line.session).map_err(why)?;
    origin_of(&line.origin)?;
    check_hex(&line.chain)?;
    if let Some(digest) = &line.digest {
        check_hex(digest)?;
    }
    if let Some(record) = &line.record {
        check_id(record)?;
    }
    // No words: these come from fixed vocabularies, in ASCII.
    for text in [Some(&line.kind), line.detail.as_ref()]
        .into_iter()
        .flatten()
    {
        let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if text.is_empty() || text.len() > EVENT_BYTES || !printable {
            return Err("an audit line holds words of its own".to_owned());
        }
    }
    line.at = sql(&line.at)?;
    Ok(line)
}

/// What became of those who wanted the same place.
#[derive(Default)]
struct Contest {
    gave_way: u64,
    stood_back: u64,
}

/// A file that lines are imported into.
struct Scene<'a> {
    db: &'a Connection,
    book: Book<'a>,
    others: &'a [(LevelFile, Connection)],
    operator: &'a Operator<'a>,
    before: &'a BTreeMap<PathBuf, (LevelFile, Began)>,
    now: String,
}

/// What stands under a key, live or as its tombstone.
fn stands(record: &Record) -> bool {
    record.is_indexed() || (record.hides_lower && record.superseded_at.is_none())
}

/// When a record came to stand there.
fn since(record: &Record) -> &str {
    record.deleted_at.as_deref().unwrap_or(&record.updated_at)
}

/// Whether one goes before the other under the same key.
fn goes_before(one: &Record, other: &Record, now: &str) -> Result<bool, Fault> {
    let (over, others_over) = (one.has_expired(now), other.has_expired(now));
    if over != others_over {
        return Ok(others_over);
    }
    let (trust, others) = (one.origin()?, other.origin()?);
    if trust != others {
        return Ok(trust.outranks(others));
    }
    Ok((since(one), one.version, &one.id) > (since(other), other.version, &other.id))
}

impl Scene<'_> {
    fn record(
        &self,
        mut record: Record,
        vouched: Origin,
        contest: &mut Contest,
    ) -> Result<Verdict, Fault> {
        let (db, book) = (self.db, &self.book);
        if let Some(known) = book.by_id(db, &record.id)? {
            // A tombstone loses its words in time.
            let stripped = known.hides_lower && known.content.is_empty();
            let words = (&record.content, &record.tags, &record.source);
            let same = known.key == record.key
                && (stripped || (&known.content, &known.tags, &known.source) == words)
                && known.session == record.session
                && known.version == record.version
                && known.created_at == record.created_at
                && known.updated_at == record.updated_at;
            return Ok(if same {
                Verdict::Skipped("the record is here already")
            } else {
                Verdict::rejected("another record has its id here")
            });
        }
        let (id, key) = (&record.id, &record.key);
        if erased::covers(db, book, id, key, &record.session, &record.updated_at)? {
            return Ok(Verdict::Skipped("it was erased here for good"));
        }
        for (file, other) in self.others {
            let other_book = self.operator.inner.book(file);
            if other_book.by_id(other, id)?.is_some() {
                return Ok(Verdict::rejected(format!(
                    "the record is on {} here",
                    file.level
                )));
            }
            if erased::is_erased(other, &other_book, id)? {
                return Ok(Verdict::Skipped("it was erased here for good"));
            }
        }
        let origin = record.origin()?.meet(vouched);
        origin.name().clone_into(&mut record.origin);
        let trusted = record.standing == Standing::Trusted.name();
        if trusted && origin == Origin::Tool && vouched != Origin::User {
            Standing::Quarantined
                .name()
                .clone_into(&mut record.standing);
        }
        if record.superseded_at.is_none()
            && let Some(edge) = book.edges_from(db, id)?.into_iter().next()
        {
            record.superseded_at = Some(edge.at);
        }
        if stands(&record) {
            self.contest(&mut record, contest)?;
        }
        book.insert(db, &mut record)?;
        Ok(Verdict::Imported)
    }

    /// Decides who stands under the record's key, and ends the others.
    fn contest(&self, record: &mut Record, contest: &mut Contest) -> Result<(), Fault> {
        let (db, book) = (self.db, &self.book);
        let known: Vec<Record> = [
            book.indexed(db, &record.key)?,
            book.tombstone(db, &record.key)?,
        ]
        .into_iter()
        .flatten()
        .collect();
        for other in &known {
            if goes_before(record, other, &self.now)? {
                continue;
            }
            contest.stood_back = contest.stood_back.saturating_add(1);
            if waits(record, other, &self.now) {
                Standing::Pending.name().clone_into(&mut record.standing);
            } else {
                record.superseded_at = Some(self.now.clone());
            }
            return Ok(());
        }
        for mut other in known {
            contest.gave_way = contest.gave_way.saturating_add(1);
            if waits(&other, record, &self.now) {
                self.set_pending(&mut other)?;
            } else {
                book.supersede(db, other, &self.now)?;
            }
        }
        Ok(())
    }

    /// Has a record wait for a person.
    fn set_pending(&self, record: &mut Record) -> Result<(), Fault> {
        self.book.unindex(self.db, record)?;
        Standing::Pending.name().clone_into(&mut record.standing);
        record.seal = record.encode(&self.book).finish().to_vec();
        self.db
            .prepare_cached("UPDATE record SET standing = ?2, seal = ?3 WHERE seq = ?1")?
            .execute((record.seq, &record.standing, &record.seal))?;
        Ok(())
    }

    /// A record of this agent on that level.
    fn find(&self, level: &str, id: &str) -> Result<Option<Record>, Fault> {
        if level == self.book.file.level.name() {
            return self.book.by_id(self.db, id);
        }
        for (file, db) in self.others {
            if file.level.name() == level {
                return self.operator.inner.book(file).by_id(db, id);
            }
        }
        Ok(None)
    }

    /// Whether this very import brought a record, be it before a crash.
    fn brought(&self, level: &str, record: &Record) -> Result<bool, Fault> {
        let own = (self.book.file, self.db);
        let others = self.others.iter().map(|(file, db)| (file, db));
        let Some((file, db)) = std::iter::once(own)
            .chain(others)
            .find(|(file, _)| file.level.name() == level)
        else {
            return Ok(false);
        };
        let Some((_, began)) = self.before.get(&file.path) else {
            return Ok(false);
        };
        if record.seq <= began.seq {
            return Ok(false);
        }
        let saved_meanwhile = db
            .prepare_cached(
                "SELECT 1 FROM event WHERE number > ?1 AND record = ?2 AND kind = 'save'",
            )?
            .exists((began.line, &record.id))?;
        Ok(!saved_meanwhile)
    }

    /// What took the place of a live record that was here before must be here,
    /// and no less trusted. Of one that comes with the same file it may be gone
    /// by now, as an edge outlives it.
    fn edge(&self, edge: &EdgeRow) -> Result<Verdict, Fault> {
        let (db, book) = (self.db, &self.book);
        let old = self.find(&edge.old_level, &edge.old_id)?;
        // Others hide it here already, or it is not live: then it hides nothing.
        let hides = old.as_ref().is_some_and(Record::is_indexed)
            && !book.has_edge_from(db, &edge.old_id)?;
        if hides && let Some(old) = &old {
            match book.by_id(db, &edge.new_id)? {
                None if self.brought(&edge.old_level, old)? => {}
                None => {
                    return Ok(Verdict::rejected(
                        "it hides a live record, and what took its place is not here",
                    ));
                }
                Some(new) if new.standing != Standing::Trusted.name() => {
                    return Ok(Verdict::rejected(
                        "it hides a live record, and what would take its place is kept apart",
                    ));
                }
                Some(new) if old.origin()?.outranks(new.origin()?) => {
                    return Ok(Verdict::rejected(
                        "it hides a record that is more trusted than what would take its place",
                    ));
                }
                Some(_) => {}
            }
        }
        if !book.keep_edge(db, edge)? {
            return Ok(Verdict::Skipped("the edge is here already"));
        }
        if edge.old_level == book.file.level.name()
            && let Some(old) = old
            && old.superseded_at.is_none()
        {
            book.supersede(db, old, &edge.at)?;
        }
        Ok(Verdict::Imported)
    }

    fn stamp(&self, stamp: &Stamp, vouched: Origin) -> Result<Verdict, Fault> {
        let (db, book) = (self.db, &self.book);
        let origin = origin_of(&stamp.origin)
            .map_err(|_| Fault::Altered("a stamp has no origin"))?
            .meet(vouched);
        if origin == Origin::Tool {
            return Ok(Verdict::rejected("the words of a tool confirm nothing"));
        }
        let known: Option<(Stamp, Vec<u8>)> = db
            .prepare_cached(
                "SELECT record_id, record_level, at, session, origin, source, seal FROM stamp
                 WHERE record_id = ?1 AND at = ?2 AND session = ?3",
            )?
            .query_row((&stamp.record_id, &stamp.at, &stamp.session), |row| {
                Ok((Stamp::read(row)?, row.get(6)?))
            })
            .optional()?;
        if let Some((known, _)) = known {
            let same = known.record_level == stamp.record_level && known.source == stamp.source;
            return Ok(if same {
                Verdict::Skipped("the stamp is here already")
            } else {
                Verdict::rejected("another stamp of that record, moment and session is here")
            });
        }
        if self.was_erased(&stamp.record_level, &stamp.record_id)?
            || self.session_was_erased(&stamp.session, &stamp.at)?
        {
            return Ok(Verdict::Skipped(
                "what it is about was erased here for good",
            ));
        }
        let mut stamp = stamp.clone();
        origin.name().clone_into(&mut stamp.origin);
        book.add_stamp(db, &stamp)?;
        if stamp.record_level == book.file.level.name()
            && let Some(mut record) = book.by_id(db, &stamp.record_id)?
        {
            book.set_confirmed(db, &mut record, &stamp.at)?;
        }
        Ok(Verdict::Imported)
    }

    fn was_erased(&self, level: &str, id: &str) -> Result<bool, Fault> {
        if level == self.book.file.level.name() {
            return erased::is_erased(self.db, &self.book, id);
        }
        for (file, db) in self.others {
            if file.level.name() == level {
                return erased::is_erased(db, &self.operator.inner.book(file), id);
            }
        }
        Ok(false)
    }

    fn session_was_erased(&self, session: &str, until: &str) -> Result<bool, Fault> {
        let name = erased::session_name(&self.book, session);
        let at: Option<String> = self
            .db
            .prepare_cached("SELECT at FROM erased WHERE record_id = ?1")?
            .query_row([name], |row| row.get(0))
            .optional()?;
        Ok(at.is_some_and(|at| until <= at.as_str()))
    }

    fn usage(&self, usage: &UsageLine) -> Result<Verdict, Fault> {
        if self.was_erased(&usage.record_level, &usage.record_id)? {
            return Ok(Verdict::Skipped(
                "what it is about was erased here for good",
            ));
        }
        // The higher of both: added, it would grow with every import.
        let changed = self
            .db
            .prepare_cached(
                "INSERT INTO usage (record_id, record_level, last_used_at, uses)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (record_id) DO UPDATE
                     SET uses = max(uses, excluded.uses),
                         last_used_at = max(last_used_at, excluded.last_used_at)
                     WHERE uses < excluded.uses OR last_used_at < excluded.last_used_at",
            )?
            .execute((
                &usage.record_id,
                &usage.record_level,
                &usage.last_used_at,
                usage.uses,
            ))?;
        Ok(if changed > 0 {
            Verdict::Imported
        } else {
            Verdict::Skipped("as much use is counted here already")
        })
    }

    fn erased(&self, erased: &Erased) -> Result<Verdict, Fault> {
        if erased::is_erased(self.db, &self.book, &erased.name)? {
            return Ok(Verdict::Skipped("the erasure is here already"));
        }
        if self.book.by_id(self.db, &erased.name)?.is_some() {
            return Ok(Verdict::rejected(
                "the record is still here; an import erases nothing, `remora purge` does",
            ));
        }
        erased.keep(self.db, &self.book)?;
        Ok(Verdict::Imported)
    }

    fn event(&self, line: &EventLine) -> Result<Verdict, Fault> {
        if line.store == self.book.sealer.store_name() {
            return Ok(Verdict::Skipped("it is of this store's own trail"));
        }
        let known: Option<Vec<u8>> = self
            .db
            .prepare_cached("SELECT seal FROM foreign_event WHERE store = ?1 AND number = ?2")?
            .query_row((&line.store, line.number), |row| row.get(0))
            .optional()?;
        if let Some(seal) = known {
            return Ok(if line.encode(&self.book).fits(&seal) {
                Verdict::Skipped("the audit line is here already")
            } else {
                Verdict::rejected("another audit line of that store and number is here")
            });
        }
        self.db
            .prepare_cached(
                "INSERT INTO foreign_event
                     (store, number, at, kind, session, origin, record, digest, detail, chain, seal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(rusqlite::params![
                line.store,
                line.number,
                line.at,
                line.kind,
                line.session,
                line.origin,
                line.record,
                line.digest.as_deref().map(bytes),
                line.detail,
                bytes(&line.chain),
                line.encode(&self.book).finish().as_slice(),
            ])?;
        Ok(Verdict::Imported)
    }
}

/// Whether a record that stands back should wait for a person: it is later than
/// what goes before it, and only less trusted.
fn waits(record: &Record, before: &Record, now: &str) -> bool {
    record.stands(now) && record.origin != before.origin && since(record) > since(before)
}

/// The bytes of hexadecimal digits, which were checked.
fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
