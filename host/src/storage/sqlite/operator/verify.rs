//! Whether everything is still as it was written.
//!
//! # What is checked
//!
//! | check | of |
//! | --- | --- |
//! | `file` | that each file is the one that its place says, and can be read |
//! | `schema` | that each table, index, trigger and view is as the migrations make it |
//! | `integrity` | every page, as SQLite's `integrity_check` |
//! | `foreign-keys` | as SQLite's `foreign_key_check` |
//! | `index` | that the full-text index and its tables are as they are made, and hold exactly the words of its records, where a search finds them |
//! | `tags` | that the list of tags holds exactly those of its records |
//! | `edge` | that what was saved here to take others' places has the edges for it |
//! | `missing` | that there are as many records as the trail tells of, a stamp for each confirmation, and an erasure for each purge |
//! | `record`, `edge`, `stamp`, `erased`, `meta`, `session` | the seal of every row |
//! | `audit` | that each line follows from the one before, down to the head |
//!
//! Nothing is written, so a copy of a store can be checked as well. A store in use
//! is checked as it was when the check of each file began, and nobody waits.
//!
//! # What is not found
//!
//! A whole file that was put back as it once was, and rows that were taken away
//! together with the lines that tell of them: see [`seal`](crate::seal). And what
//! no line tells of, so that nobody can say whether it is missing or was changed:
//!
//! - counts of use, which have no seal and leave no line;
//! - sessions that are missing: only raises leave a line, and a host may keep its
//!   sessions elsewhere;
//! - records, where retention has let go of the beginning of the trail (which is
//!   also how one who knows of a loss gets on, since no backup is made of a store
//!   in which something is missing); and which
//!   records are missing, since a prune and a purge tell only how many went;
//! - stamps that an import brought, those of records of lower levels, which go
//!   with these, and those from before a prune, a purge, a restore or an import;
//! - erasures that an import or a restore brought.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::Serialize;

use super::erased;
use super::{Operator, Progress, count, purge};
use crate::error::Error;
use crate::level::{Level, can_flow_to};
use crate::provenance::Standing;
use crate::seal::Digest;
use crate::storage::Event;
use crate::storage::sqlite::check_name;
use crate::storage::sqlite::connection::{Mode, for_long_work};
use crate::storage::sqlite::edge::EdgeRow;
use crate::storage::sqlite::event;
use crate::storage::sqlite::fault::{Fault, Place};
use crate::storage::sqlite::layout::{LevelFile, identity};
use crate::storage::sqlite::record::{Book, Record, columns};
use crate::storage::sqlite::schema::Kind;
use crate::storage::sqlite::search::index;
use crate::storage::sqlite::stamp::Stamp;

/// Of one check in one file so many findings are told, and then how many more
/// there are.
const TOLD: u64 = 20;

/// Rows between two words of progress.
const STRIDE: u64 = 1024;

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// In which file, by its path within the store.
    pub file: String,
    /// Whose; none for `sessions.db`.
    pub agent: Option<String>,
    /// Of which level.
    pub level: Option<Level>,
    /// What found it: see the module's page.
    pub check: String,
    /// Which row, and what is wrong with it. Never a key or content.
    pub what: String,
}

/// What was checked, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// Files that were opened.
    pub files: u64,
    /// Records whose seals were checked.
    pub records: u64,
    /// Edges.
    pub edges: u64,
    /// Stamps.
    pub stamps: u64,
    /// Erasures.
    pub erased: u64,
    /// Sessions.
    pub sessions: u64,
    /// Lines of the audit trails.
    pub events: u64,
    /// What is wrong. None: all is as it was written.
    pub findings: Vec<Finding>,
    /// What is not wrong but should be looked at: an erasure that was not
    /// completed, a thing in the store that is not the store's.
    pub notes: Vec<Finding>,
}

impl Verification {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// What is found in one file.
struct Findings<'a> {
    all: &'a mut Verification,
    file: String,
    agent: Option<String>,
    level: Option<Level>,
    /// The check whose findings are counted, and how many there were.
    counted: (&'static str, u64),
}

impl Findings<'_> {
    fn finding(&self, check: &str, what: impl Display) -> Finding {
        Finding {
            file: self.file.clone(),
            agent: self.agent.clone(),
            level: self.level,
            check: check.to_owned(),
            what: what.to_string(),
        }
    }

    fn found(&mut self, check: &'static str, what: impl Display) {
        if self.counted.0 != check {
            self.close();
            self.counted = (check, 0);
        }
        self.counted.1 = self.counted.1.saturating_add(1);
        if self.counted.1 <= TOLD {
            let finding = self.finding(check, what);
            self.all.findings.push(finding);
        }
    }

    /// Says how many findings of the check so far were not told one by one.
    fn close(&mut self) {
        let (check, number) = std::mem::take(&mut self.counted);
        if number > TOLD {
            let more = format!("and {} more", number.saturating_sub(TOLD));
            let finding = self.finding(check, more);
            self.all.findings.push(finding);
        }
    }

    fn note(&mut self, check: &str, what: impl Display) {
        let finding = self.finding(check, what);
        self.all.notes.push(finding);
    }
}

impl Operator<'_> {
    /// Checks the files of one agent, or the whole store with its sessions.
    ///
    /// What is wrong is a finding, never an error: a file that can't be opened is
    /// one, and the others are checked all the same.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where the folder itself
    /// can't be read.
    pub fn verify(
        &self,
        agent: Option<&str>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Verification, Error> {
        let mut all = Verification::default();
        let root = self.inner.layout.root();
        let within = |path: &std::path::Path| {
            let name = path.strip_prefix(root).unwrap_or(path);
            name.display().to_string()
        };
        let agents = match agent {
            Some(agent) => {
                check_name("agent", agent)?;
                vec![agent.to_owned()]
            }
            None => self.agents()?,
        };
        let levels = |agent: String| Level::ALL.map(|level| self.inner.layout.level(&agent, level));
        let mut any = false;
        for file in agents.into_iter().flat_map(levels) {
            let found = identity(&file.path);
            if matches!(found, Ok(None)) {
                continue;
            }
            any = true;
            let mut findings = Findings {
                all: &mut all,
                file: within(&file.path),
                agent: Some(file.agent.clone()),
                level: Some(file.level),
                counted: ("", 0),
            };
            match found {
                Ok(_) => self.check_file(&file, &mut findings, progress),
                Err(error) => findings.found("file", error),
            }
            findings.close();
        }
        if !any {
            self.files_of(agent)?;
        }
        if agent.is_none() {
            let mut findings = Findings {
                all: &mut all,
                file: within(&self.inner.layout.sessions()),
                agent: None,
                level: None,
                counted: ("", 0),
            };
            self.check_sessions(&mut findings, progress);
            findings.close();
            for strange in self.folders()?.1 {
                let mut findings = Findings {
                    all: &mut all,
                    file: within(&strange),
                    agent: None,
                    level: None,
                    counted: ("", 0),
                };
                findings.note("file", "it is no agent's folder, and is not looked at");
            }
        }
        Ok(all)
    }

    /// A connection that reads a file and may ask SQLite to check it.
    fn look(&self, path: &std::path::Path, kind: &Kind<'_>) -> Result<Connection, Fault> {
        identity(path)?.ok_or_else(|| Fault::Io(std::io::ErrorKind::NotFound.into()))?;
        let db = self.inner.pool.connect(path, Mode::Read)?;
        for_long_work(&db)?;
        if kind.check(&db, &self.inner.sealer)? {
            return Ok(db);
        }
        drop(db);
        self.inner.pool.maintain(path, kind)?;
        let db = self.inner.pool.connect(path, Mode::Read)?;
        kind.check(&db, &self.inner.sealer)?;
        Ok(db)
    }

    fn check_file(
        &self,
        file: &LevelFile,
        findings: &mut Findings<'_>,
        progress: &mut dyn FnMut(Progress),
    ) {
        let mut checked = || -> Result<(), Fault> {
            let db = self.look(&file.path, &Kind::level(file))?;
            findings.all.files = findings.all.files.saturating_add(1);
            let tx = db.unchecked_transaction()?;
            let book = self.inner.book(file);
            check_schema(&tx, &Kind::level(file), findings)?;
            check_pages(&tx, findings)?;
            check_index(&tx, findings)?;
            check_records(&tx, &book, findings, progress)?;
            check_edges(&tx, &book, findings)?;
            check_stamps(&tx, &book, findings)?;
            check_erased(&tx, &book, findings)?;
            check_foreign(&tx, &book, findings)?;
            check_meta(&tx, &Kind::level(file), &self.inner.sealer, findings)?;
            if purge::is_pending(self, &tx, file)? {
                findings.note(
                    "erased",
                    "an erasure was not completed: run the purge again, or prune",
                );
            }
            let mut told = Told::default();
            let walked = event::walk_closely(&tx, &book, |event, more, _| {
                let by_save = event.kind == "save"
                    && matches!(event.detail.as_deref(), Some("created" | "updated"));
                if by_save
                    && more.takes_places
                    && let Some(id) = &event.record
                {
                    self.check_superseding(&tx, &book, id, findings)?;
                }
                told.line(&tx, &book, &event, more.digest, findings)
            })?;
            if walked.broken.is_none() {
                told.compare(&tx, walked.removed == 0, findings)?;
            }
            findings.all.events = findings.all.events.saturating_add(walked.lines);
            if let Some(broken) = walked.broken {
                findings.found(
                    "audit",
                    format!("from line {} on: {}", broken.number, broken.what),
                );
            }
            Ok(())
        };
        if let Err(fault) = checked() {
            findings.found("file", Place::path(&file.path).say(fault));
        }
    }

    /// That a record that was saved in this file, and is believed, has an edge from
    /// all whose place it was saved to take. Without it they would be served again, by
    /// whatever brings them back.
    ///
    /// Of what was imported nobody can tell: an import leaves out edges that it
    /// may not believe. So the trail must say that the record was saved here.
    fn check_superseding(
        &self,
        db: &Connection,
        book: &Book<'_>,
        id: &str,
        findings: &mut Findings<'_>,
    ) -> Result<(), Fault> {
        // What can't be read or fails its seal was found before.
        let record = match book.by_id(db, id) {
            Ok(Some(record)) if record.standing == Standing::Trusted.name() => record,
            _ => return Ok(()),
        };
        let Ok(ids) = record.supersedes_list() else {
            findings.found(
                "edge",
                format!("{} does not say whose place it took", record.id),
            );
            return Ok(());
        };
        let mut has_edge =
            db.prepare_cached("SELECT 1 FROM edge WHERE old_id = ?1 AND new_id = ?2")?;
        let mut key_of = db.prepare_cached("SELECT key FROM record WHERE id = ?1")?;
        let (mut unknown, mut before) = (Vec::new(), record.version > 1);
        for id in BTreeSet::from_iter(ids) {
            if has_edge.exists([&id, &record.id])? {
                continue;
            }
            let key: Option<String> = key_of.query_row([&id], |row| row.get(0)).optional()?;
            match key {
                // The version before it needs no edge.
                Some(key) if before && key == record.key => before = false,
                Some(_) => missing(findings, &id, &record.id),
                None if self.is_beneath(book.file, &id) => missing(findings, &id, &record.id),
                None => unknown.push(id),
            }
        }
        // One of what is here no more may have been the version before it.
        if unknown.len() > usize::from(before) {
            for id in unknown {
                missing(findings, &id, &record.id);
            }
        }
        Ok(())
    }

    /// Whether a lower level of the same agent holds that record. A file that
    /// can't be read holds none: what is wrong with it is said of it.
    fn is_beneath(&self, file: &LevelFile, id: &str) -> bool {
        let lower = Level::ALL
            .into_iter()
            .filter(|level| *level != file.level && can_flow_to(*level, file.level));
        lower
            .map(|level| self.inner.layout.level(&file.agent, level))
            .any(|lower| {
                let holds = || -> Result<bool, Fault> {
                    if identity(&lower.path)?.is_none() {
                        return Ok(false);
                    }
                    let db = self.inner.pool.connect(&lower.path, Mode::Read)?;
                    let mut exists = db.prepare("SELECT 1 FROM record WHERE id = ?1")?;
                    Ok(exists.exists([id])?)
                };
                holds().unwrap_or(false)
            })
    }

    fn check_sessions(&self, findings: &mut Findings<'_>, progress: &mut dyn FnMut(Progress)) {
        let path = self.inner.layout.sessions();
        let mut checked = || -> Result<(), Fault> {
            let kind = Kind::sessions();
            let db = self.look(&path, &kind)?;
            findings.all.files = findings.all.files.saturating_add(1);
            check_schema(&db, &kind, findings)?;
            check_pages(&db, findings)?;
            check_meta(&db, &kind, &self.inner.sealer, findings)?;
            let mut statement = db.prepare("SELECT name FROM session ORDER BY name")?;
            let mut rows = statement.query([])?;
            let mut done: u64 = 0;
            while let Some(row) = rows.next()? {
                if done.is_multiple_of(STRIDE) {
                    progress(Progress {
                        step: "verify",
                        agent: None,
                        level: None,
                        done,
                        total: 0,
                    });
                }
                done = done.saturating_add(1);
                let name: String = row.get(0)?;
                if let Err(error) = self.inner.load(&name) {
                    findings.found(
                        "session",
                        format!("\"{}\": {}", name.escape_debug(), error.what()),
                    );
                }
            }
            findings.all.sessions = findings.all.sessions.saturating_add(done);
            Ok(())
        };
        if let Err(fault) = checked() {
            findings.found("file", Place::path(&path).say(fault));
        }
    }
}

/// What a trail tells of the rows beside it.
#[derive(Default)]
struct Told {
    /// Records that came.
    came: u64,
    /// Records that may have come: the line of a deletion does not say whether it
    /// left a tombstone.
    perhaps: u64,
    /// Records that went.
    went: u64,
    /// Of these, those that a purge erased.
    erased: u64,
    /// Whether everything from a session was erased.
    erased_session: bool,
}

impl Told {
    fn line(
        &mut self,
        db: &Connection,
        book: &Book<'_>,
        event: &Event,
        digest: Option<&[u8]>,
        findings: &mut Findings<'_>,
    ) -> Result<(), Fault> {
        let detail = event.detail.as_deref().unwrap_or_default();
        match event.kind.as_str() {
            "save" if detail != "unchanged" => self.came = self.came.saturating_add(1),
            "delete" if detail == "hide-lower" => self.perhaps = self.perhaps.saturating_add(1),
            "import" => self.came = self.came.saturating_add(figure(detail, "records")),
            "prune" => {
                for name in ["expired", "superseded", "deleted"] {
                    self.went = self.went.saturating_add(figure(detail, name));
                }
            }
            "restore" => self.went = self.went.saturating_add(figure(detail, "erased")),
            "purge" => {
                let records = figure(detail, "records");
                self.went = self.went.saturating_add(records);
                self.erased = self.erased.saturating_add(records);
                self.erased_session |= detail.starts_with("session ");
                if let Some(digest) = digest.and_then(|digest| Digest::try_from(digest).ok())
                    && !erased::is_kept(db, &erased::name_of_key(&digest))?
                {
                    findings.found(
                        "missing",
                        format!("the erasure of a key, of which line {} tells", event.number),
                    );
                }
            }
            "confirm" if detail.is_empty() && event.key.is_some() => {
                self.confirmed(db, book, event, findings)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// That a confirmation of a record that is still here left its stamp.
    fn confirmed(
        &self,
        db: &Connection,
        book: &Book<'_>,
        event: &Event,
        findings: &mut Findings<'_>,
    ) -> Result<(), Fault> {
        let (Some(id), at) = (&event.record, event.at.to_sql()) else {
            return Ok(());
        };
        let kept = db
            .prepare_cached(
                "SELECT 1 FROM stamp WHERE record_id = ?1 AND at = ?2 AND session = ?3",
            )?
            .exists((id, &at, &event.session))?;
        // These may have taken it away, or the record with it for a while.
        let gone = !kept
            && db
                .prepare_cached(
                    "SELECT 1 FROM event WHERE number > ?1
                       AND kind IN ('prune', 'purge', 'restore', 'import')",
                )?
                .exists([i64::try_from(event.number).unwrap_or(i64::MAX)])?;
        let level = book.file.level;
        if !kept && !gone {
            findings.found(
                "missing",
                format!(
                    "the stamp on {level} of {id}, of which line {} tells",
                    event.number
                ),
            );
        }
        Ok(())
    }

    fn compare(
        &self,
        db: &Connection,
        from_the_beginning: bool,
        findings: &mut Findings<'_>,
    ) -> Result<(), Fault> {
        let number = |sql: &str| db.query_row(sql, [], |row| row.get(0).map(count));
        if from_the_beginning {
            let here = number("SELECT count(*) FROM record")?;
            let least = self.came.saturating_sub(self.went);
            let most = least.saturating_add(self.perhaps);
            if !(least..=most).contains(&here) {
                findings.found(
                    "missing",
                    format!("there are {here} records, where the trail tells of {least}"),
                );
            }
        }
        let here = number("SELECT count(*) FROM erased WHERE record_id NOT LIKE '%/%'")?;
        if here < self.erased {
            findings.found(
                "missing",
                format!(
                    "there are {here} erasures of records, where the trail tells of {}",
                    self.erased
                ),
            );
        }
        let sessions = number("SELECT count(*) FROM erased WHERE record_id LIKE 'session/%'")?;
        if self.erased_session && sessions == 0 {
            findings.found(
                "missing",
                "the erasure of a session, of which the trail tells",
            );
        }
        Ok(())
    }
}

/// A figure in the words of a line: `records=3`.
fn figure(detail: &str, name: &str) -> u64 {
    detail
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .find(|(found, _)| *found == name)
        .and_then(|(_, figure)| figure.parse().ok())
        .unwrap_or(0)
}

/// The objects of a schema: by kind and name, what makes each. SQLite's own are
/// left out.
fn objects(db: &Connection) -> Result<BTreeMap<(String, String), Option<String>>, Fault> {
    // How a module writes down the tables behind its own is no part of what a
    // migration says, and differs in quotes between versions of SQLite.
    let mut statement = db.prepare(
        "SELECT type, name,
                CASE WHEN name IN (SELECT name FROM pragma_table_list
                                   WHERE schema = 'main' AND type = 'shadow')
                     THEN replace(replace(sql, char(39), ''), char(34), '') ELSE sql END
         FROM sqlite_schema
         WHERE name NOT GLOB 'sqlite_stat*' AND name NOT GLOB 'sqlite_autoindex*'",
    )?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The tables, indexes, triggers and views against those of a fresh file.
fn check_schema(
    db: &Connection,
    kind: &Kind<'_>,
    findings: &mut Findings<'_>,
) -> Result<(), Fault> {
    let fresh = Connection::open_in_memory()?;
    for step in kind.steps {
        fresh.execute_batch(step)?;
    }
    let expected = objects(&fresh)?;
    let mut found = objects(db)?;
    for (object, sql) in expected {
        let wrong = match found.remove(&object) {
            Some(found) if found == sql => continue,
            Some(_) => "is not as it was made",
            None => "is missing",
        };
        // Those of the index can be made again from what is kept.
        let (check, remedy) = if object.1.starts_with("memory_") {
            ("index", "; `remora reindex` makes it anew")
        } else {
            ("schema", "")
        };
        findings.found(
            check,
            format!("the {} {} {wrong}{remedy}", object.0, object.1),
        );
    }
    for (kind, name) in found.into_keys() {
        findings.found(
            "schema",
            format!(
                "the {} \"{}\" is not Remora's",
                kind.escape_debug(),
                name.escape_debug()
            ),
        );
    }
    Ok(())
}

fn missing(findings: &mut Findings<'_>, old: &str, new: &str) {
    findings.found(
        "edge",
        format!("from {old} to {new} is missing, though {new} was saved to take its place"),
    );
}

/// What SQLite's check of all, or of what is named, has to say.
fn check_integrity(db: &Connection, of: &str, findings: &mut Findings<'_>) -> Result<(), Fault> {
    let mut statement = db.prepare(&format!("PRAGMA integrity_check({of})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let told: String = row.get(0)?;
        // Of one table it may say several things, below a heading.
        let told = told.lines().filter(|what| !what.starts_with("***"));
        for what in told.filter(|what| *what != "ok") {
            // An index is checked here as far as it goes without its records.
            let of_index = what.contains("FTS5") || what.contains("fts5");
            let check = if of_index || is_in_index(db, what)? {
                "index"
            } else {
                "integrity"
            };
            findings.found(check, what);
        }
    }
    Ok(())
}

/// Whether it is a tree of the index of which SQLite says something: it names the root.
fn is_in_index(db: &Connection, what: &str) -> Result<bool, Fault> {
    let root = what.strip_prefix("Tree ").and_then(|rest| {
        let (root, _) = rest.split_once(' ')?;
        root.parse::<i64>().ok()
    });
    let Some(root) = root else {
        return Ok(false);
    };
    let mut statement = db.prepare_cached(
        "SELECT 1 FROM sqlite_schema WHERE rootpage = ?1 AND tbl_name GLOB 'memory_*'",
    )?;
    Ok(statement.exists([root])?)
}

/// Every page, and every reference from row to row.
fn check_pages(db: &Connection, findings: &mut Findings<'_>) -> Result<(), Fault> {
    match check_integrity(db, "100", findings).map_err(Fault::in_index) {
        // A full-text index that can't even be opened ends the check of all, so each
        // table is checked by itself. What is wrong with the index is found later.
        Err(Fault::Index(_)) => {
            let mut tables = db.prepare(
                "SELECT name FROM pragma_table_list
                 WHERE schema = 'main' AND type NOT IN ('virtual', 'view')",
            )?;
            let tables = tables.query_map([], |row| row.get::<_, String>(0))?;
            for table in tables {
                let table = table?;
                let quoted = format!("\"{}\"", table.replace('"', "\"\""));
                match check_integrity(db, &quoted, findings).map_err(Fault::in_index) {
                    Err(Fault::Index(error)) if table.starts_with("memory_") => {
                        findings.found("index", error);
                    }
                    Err(Fault::Index(error)) => findings.found("integrity", error),
                    checked => checked?,
                }
            }
        }
        checked => checked?,
    }
    // The tags are looked at in the order of their records, with these.
    let mut tables = db.prepare(
        "SELECT DISTINCT name FROM sqlite_schema, pragma_foreign_key_list(name)
         WHERE type = 'table' AND name <> 'record_tag'",
    )?;
    let tables = tables.query_map([], |row| row.get::<_, String>(0))?;
    for table in tables {
        let mut statement =
            db.prepare("SELECT \"table\", rowid FROM pragma_foreign_key_check(?1)")?;
        let mut rows = statement.query([table?])?;
        while let Some(row) = rows.next()? {
            let (table, row): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
            let row = row.map_or_else(|| "a row".to_owned(), |row| format!("row {row}"));
            findings.found("foreign-keys", format!("{row} of {table} points nowhere"));
        }
    }
    Ok(())
}

/// The full-text index against the records. SQLite's own check includes FTS5's, which
/// tells whether the index is sound in itself, not whether it is the right one.
fn check_index(db: &Connection, findings: &mut Findings<'_>) -> Result<(), Fault> {
    if !index::agrees(db)? {
        findings.found(
            "index",
            "it does not hold just the words of its records; `remora reindex` builds it anew"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_records(
    db: &Connection,
    book: &Book<'_>,
    findings: &mut Findings<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Fault> {
    let total = db.query_row("SELECT count(*) FROM record", [], |row| row.get(0))?;
    let mut statement = db.prepare(concat!("SELECT ", columns!(), " FROM record ORDER BY seq"))?;
    let mut rows = statement.query([])?;
    // In the order of the records, so that both are walked along together.
    let mut listing = db.prepare("SELECT seq, tag, key FROM record_tag ORDER BY seq, tag")?;
    let mut listing = Listing {
        rows: listing.query([])?,
        next: None,
        listed: 0,
        nowhere: 0,
    };
    listing.read_on()?;
    let (mut done, mut tags) = (0_u64, 0_u64);
    while let Some(row) = rows.next()? {
        if done.is_multiple_of(STRIDE) {
            progress(Progress::of("verify", book.file, done, count(total)));
        }
        done = done.saturating_add(1);
        let record = match Record::read(row) {
            Ok(record) => record,
            Err(error) => {
                findings.found(
                    "record",
                    format!("{} can't be read: {error}", row_name(row)),
                );
                if let Ok(seq) = row.get(0) {
                    listing.of(seq)?;
                }
                continue;
            }
        };
        if !record.encode(book).fits(&record.seal) {
            findings.found("record", format!("{} fails its seal", record.id));
        }
        let listed = listing.of(record.seq)?;
        if record.is_indexed() {
            check_tags(&listed, &record, &mut tags, findings);
        }
    }
    findings.all.records = findings.all.records.saturating_add(done);
    listing.of(i64::MAX)?;
    let listed = listing.listed;
    if listing.nowhere > 0 {
        findings.found(
            "foreign-keys",
            format!("{} rows of record_tag point nowhere", listing.nowhere),
        );
    }
    if listed != tags {
        findings.found(
            "tags",
            format!("{listed} are listed, where the records have {tags}"),
        );
    }
    Ok(())
}

/// The list of tags, from row to row.
struct Listing<'a> {
    rows: rusqlite::Rows<'a>,
    next: Option<(i64, String, String)>,
    /// How many were passed.
    listed: u64,
    /// How many of these are of no row.
    nowhere: u64,
}

impl Listing<'_> {
    fn read_on(&mut self) -> Result<(), Fault> {
        self.next = match self.rows.next()? {
            Some(row) => Some((row.get(0)?, row.get(1)?, row.get(2)?)),
            None => None,
        };
        Ok(())
    }

    /// The tags and keys listed for a row. Rows are asked for in their order.
    fn of(&mut self, seq: i64) -> Result<Vec<(String, String)>, Fault> {
        let mut of = Vec::new();
        while let Some((row, tag, key)) = self.next.take_if(|(row, _, _)| *row <= seq) {
            if row == seq {
                of.push((tag, key));
            } else {
                self.nowhere = self.nowhere.saturating_add(1);
            }
            self.listed = self.listed.saturating_add(1);
            self.read_on()?;
        }
        Ok(of)
    }
}

fn check_tags(
    listed: &[(String, String)],
    record: &Record,
    tags: &mut u64,
    findings: &mut Findings<'_>,
) {
    let Ok(own) = record.tag_list() else {
        findings.found("tags", format!("those of {} can't be read", record.id));
        return;
    };
    let same = listed.len() == own.len()
        && listed
            .iter()
            .zip(&own)
            .all(|((tag, key), own)| tag == own && *key == record.key);
    if !same {
        findings.found(
            "tags",
            format!("those of {} are listed otherwise", record.id),
        );
    }
    *tags = tags.saturating_add(own.len() as u64);
}

/// What imports brought of other stores' trails.
fn check_foreign(
    db: &Connection,
    book: &Book<'_>,
    findings: &mut Findings<'_>,
) -> Result<(), Fault> {
    super::export::foreign_events(db, book, |line, fits| {
        if !fits {
            findings.found(
                "audit",
                format!(
                    "line {} of the store {} fails its seal",
                    line.number, line.store
                ),
            );
        }
        Ok(())
    })
}

/// A row that can't be read, as far as it can be named.
fn row_name(row: &Row<'_>) -> String {
    row.get::<_, i64>(0)
        .map_or_else(|_| "a row".to_owned(), |seq| format!("row {seq}"))
}

fn check_edges(db: &Connection, book: &Book<'_>, findings: &mut Findings<'_>) -> Result<(), Fault> {
    let mut statement =
        db.prepare("SELECT old_id, new_id, old_level, at, session, seal FROM edge")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        findings.all.edges = findings.all.edges.saturating_add(1);
        let edge = EdgeRow::read(row)?;
        if !edge.encode(book).fits(&row.get::<_, Vec<u8>>(5)?) {
            findings.found(
                "edge",
                format!("from {} to {} fails its seal", edge.old_id, edge.new_id),
            );
        }
    }
    Ok(())
}

fn check_stamps(
    db: &Connection,
    book: &Book<'_>,
    findings: &mut Findings<'_>,
) -> Result<(), Fault> {
    let mut statement =
        db.prepare("SELECT record_id, record_level, at, session, origin, source, seal FROM stamp")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        findings.all.stamps = findings.all.stamps.saturating_add(1);
        let stamp = Stamp::read(row)?;
        if !stamp.encode(book).fits(&row.get::<_, Vec<u8>>(6)?) {
            findings.found(
                "stamp",
                format!("of {} at {} fails its seal", stamp.record_id, stamp.at),
            );
        }
    }
    // Of stamps of one moment, one is the latest.
    let mut statement = db.prepare(
        "SELECT record_id FROM stamp GROUP BY record_id
         HAVING sum(latest) <> 1 OR max(at) <> max(at) FILTER (WHERE latest = 1)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        findings.found("stamp", format!("another one of {id} is the latest"));
    }
    Ok(())
}

fn check_erased(
    db: &Connection,
    book: &Book<'_>,
    findings: &mut Findings<'_>,
) -> Result<(), Fault> {
    let mut statement = db.prepare("SELECT record_id, at, digest, seal FROM erased")?;
    let mut rows = statement.query([])?;
    let mut exists = db.prepare("SELECT 1 FROM record WHERE id = ?1")?;
    while let Some(row) = rows.next()? {
        findings.all.erased = findings.all.erased.saturating_add(1);
        let erased = erased::read(row)?;
        if !erased.fits(book) {
            findings.found("erased", format!("{} fails its seal", erased.name));
        }
        if exists.exists([&erased.name])? {
            findings.found("erased", format!("{} has come back", erased.name));
        }
    }
    Ok(())
}

fn check_meta(
    db: &Connection,
    kind: &Kind<'_>,
    sealer: &crate::seal::Sealer,
    findings: &mut Findings<'_>,
) -> Result<(), Fault> {
    let mut statement = db.prepare("SELECT name, value, seal FROM meta")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
        if !kind
            .meta_seal(sealer, &name, &value)
            .fits(&row.get::<_, Vec<u8>>(2)?)
        {
            findings.found("meta", format!("{name} fails its seal"));
        }
    }
    Ok(())
}
