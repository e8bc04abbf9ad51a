//! The tables of a level's file and of `sessions.db`, and how older ones become
//! newer ones.
//!
//! # Compatibility
//!
//! `PRAGMA user_version` counts the migrations that a file has seen; each list
//! below is only ever appended to. A file runs through all it lacks in one
//! exclusive transaction, so it is either before or after. A file with a higher
//! number is from a newer Remora, and is refused untouched.
//!
//! # By hand
//!
//! An operator may read any file with plain `sqlite3`: `live_memory` is what is
//! served now, `record` everything, and dates compare with SQLite's own
//! `datetime('now')`. Writing by hand breaks the seals.

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior};

use super::Watch;
use super::event;
use super::fault::Fault;
use super::layout::LevelFile;
use super::operator::{Progress, fault_point};
use super::record::Book;
use super::search::index;
use crate::seal::{Purpose, Sealer};
use crate::search::analyser;

/// "Remr": what the file of a level says it is.
pub(super) const LEVEL_ID: i32 = 0x5265_6d72;
/// "RemS": what `sessions.db` says it is.
pub(super) const SESSIONS_ID: i32 = 0x5265_6d53;

/// The condition on a record that the index holds it: believed, and nothing took
/// its place. What is live has not expired besides, and no edge hides it. Literal
/// in every query, so that SQLite sees that the partial indexes fit.
macro_rules! indexed {
    () => {
        "standing = 'trusted' AND superseded_at IS NULL AND deleted_at IS NULL"
    };
}
pub(super) use indexed;

/// What makes a level's file, oldest first.
pub(super) const LEVEL: &[&str] = &[LEVEL_1, LEVEL_2, LEVEL_3];

/// Everything that is kept.
const LEVEL_1: &str = concat!(
    r"
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    seal  BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT, WITHOUT ROWID;

-- All versions of all memories. The content comes last, so that reading the
-- other columns never walks through it.
CREATE TABLE record (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE CHECK (length(id) = 32),
    key           TEXT NOT NULL CHECK (key <> ''),
    tags          TEXT NOT NULL CHECK (json_valid(tags)),
    origin        TEXT NOT NULL CHECK (origin IN ('USER', 'AGENT', 'TOOL')),
    standing      TEXT NOT NULL CHECK (standing IN ('trusted', 'pending', 'quarantined')),
    source        TEXT,
    session       TEXT NOT NULL,
    version       INTEGER NOT NULL CHECK (version > 0),
    created_at    TEXT NOT NULL CHECK (length(created_at) = 23),
    updated_at    TEXT NOT NULL CHECK (length(updated_at) = 23),
    confirmed_at  TEXT CHECK (length(confirmed_at) = 23),
    expires_at    TEXT CHECK (length(expires_at) = 23),
    superseded_at TEXT CHECK (length(superseded_at) = 23),
    deleted_at    TEXT CHECK (length(deleted_at) = 23),
    -- 1: a tombstone, which hides the key's versions on lower levels.
    hides_lower   INTEGER NOT NULL CHECK (hides_lower = 0 OR (hides_lower = 1 AND deleted_at IS NOT NULL)),
    -- The ids whose place it was saved to take, as JSON. The edges are made once
    -- it is trusted.
    supersedes    TEXT NOT NULL CHECK (json_valid(supersedes)),
    seal          BLOB NOT NULL CHECK (length(seal) = 32),
    content       TEXT NOT NULL CHECK (content <> '' OR hides_lower = 1)
) STRICT;
CREATE UNIQUE INDEX record_live ON record (key)
    WHERE ",
    indexed!(),
    r";
CREATE UNIQUE INDEX record_tombstone ON record (key)
    WHERE hides_lower = 1 AND superseded_at IS NULL;
CREATE INDEX record_version ON record (key, version);
CREATE INDEX record_expiry ON record (expires_at)
    WHERE expires_at IS NOT NULL AND ",
    indexed!(),
    r";
CREATE INDEX record_apart ON record (standing, key)
    WHERE standing <> 'trusted' AND superseded_at IS NULL AND deleted_at IS NULL;

-- The tags of the indexed records, in the order in which they are listed.
CREATE TABLE record_tag (
    tag TEXT NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL REFERENCES record (seq) ON DELETE CASCADE,
    PRIMARY KEY (tag, key, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_tag_seq ON record_tag (seq);

-- What took the place of what. Kept where the newer record is, so that the old
-- one is hidden only from those who can see the newer. It outlives both.
CREATE TABLE edge (
    old_id    TEXT NOT NULL,
    new_id    TEXT NOT NULL,
    old_level TEXT NOT NULL,
    at        TEXT NOT NULL CHECK (length(at) = 23),
    session   TEXT NOT NULL,
    seal      BLOB NOT NULL CHECK (length(seal) = 32),
    PRIMARY KEY (old_id, new_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX edge_new ON edge (new_id);
CREATE INDEX edge_old_level ON edge (old_level, old_id);

-- Confirmations, also of records on lower levels.
CREATE TABLE stamp (
    record_id TEXT NOT NULL,
    at        TEXT NOT NULL CHECK (length(at) = 23),
    session   TEXT NOT NULL,
    origin    TEXT NOT NULL CHECK (origin IN ('USER', 'AGENT', 'TOOL')),
    source    TEXT,
    seal      BLOB NOT NULL CHECK (length(seal) = 32),
    PRIMARY KEY (record_id, at, session)
) STRICT, WITHOUT ROWID;

-- When records were last used from this level, and how often.
CREATE TABLE usage (
    record_id    TEXT PRIMARY KEY,
    last_used_at TEXT NOT NULL CHECK (length(last_used_at) = 23),
    uses         INTEGER NOT NULL CHECK (uses > 0)
) STRICT, WITHOUT ROWID;

-- The audit trail: never a key, a tag or content.
CREATE TABLE event (
    number  INTEGER PRIMARY KEY,
    at      TEXT NOT NULL CHECK (length(at) = 23),
    kind    TEXT NOT NULL,
    session TEXT NOT NULL,
    origin  TEXT NOT NULL CHECK (origin IN ('USER', 'AGENT', 'TOOL')),
    record  TEXT,
    digest  BLOB CHECK (length(digest) = 32),
    detail  TEXT,
    chain   BLOB NOT NULL CHECK (length(chain) = 32)
) STRICT;
CREATE TRIGGER event_never_changes BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append only'); END;
CREATE TRIGGER event_never_goes BEFORE DELETE ON event
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append only'); END;

-- What is served now, by SQLite's clock, to sessions of just this level.
CREATE VIEW live_memory AS
    SELECT id, key, content, tags, origin, source, session, version,
           created_at, updated_at, confirmed_at, expires_at
    FROM record
    WHERE ",
    indexed!(),
    r"
      AND (expires_at IS NULL OR expires_at > strftime('%Y-%m-%d %H:%M:%f', 'now'))
      AND NOT EXISTS (SELECT 1 FROM edge WHERE edge.old_id = record.id);

-- What the index holds.
CREATE VIEW indexed_memory AS
    SELECT seq, key, content, tags FROM record
    WHERE ",
    indexed!(),
    r";
CREATE VIRTUAL TABLE memory_fts USING fts5 (
    key, content, tags,
    tokenize = 'porter unicode61',
    content = 'indexed_memory', content_rowid = 'seq'
);
INSERT INTO memory_fts (memory_fts, rank) VALUES ('secure-delete', 1);
-- Each occurrence of each term.
CREATE VIRTUAL TABLE memory_terms USING fts5vocab (memory_fts, instance);
"
);

/// What confirming, counting use, erasing and forgetting old audit lines need.
const LEVEL_2: &str = concat!(
    r"
-- What is to be checked again, the longest unconfirmed first.
CREATE INDEX record_checked ON record (coalesce(confirmed_at, updated_at), id)
    WHERE ",
    indexed!(),
    r";

-- The first schema had both tables, but nothing that wrote to them.
DROP TABLE stamp;
DROP TABLE usage;

-- Confirmations from this level, also of records on lower levels. One of a
-- record of this level is on the record as well.
CREATE TABLE stamp (
    record_id    TEXT NOT NULL,
    record_level TEXT NOT NULL,
    at           TEXT NOT NULL CHECK (length(at) = 23),
    session      TEXT NOT NULL,
    origin       TEXT NOT NULL CHECK (origin IN ('USER', 'AGENT', 'TOOL')),
    source       TEXT,
    -- 1: no other one here of that record is later. Not part of the seal.
    latest       INTEGER NOT NULL CHECK (latest IN (0, 1)),
    seal         BLOB NOT NULL CHECK (length(seal) = 32),
    PRIMARY KEY (record_id, at, session)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX stamp_latest ON stamp (record_id) WHERE latest = 1;
CREATE INDEX stamp_order ON stamp (record_level, at, record_id) WHERE latest = 1;

-- When records were last used from this level, and how often.
CREATE TABLE usage (
    record_id    TEXT PRIMARY KEY,
    record_level TEXT NOT NULL,
    last_used_at TEXT NOT NULL CHECK (length(last_used_at) = 23),
    uses         INTEGER NOT NULL CHECK (uses > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_order ON usage (record_level, uses DESC, record_id);

-- What was erased for good: no backup and no import brings it back. The digest
-- is that of its key.
CREATE TABLE erased (
    record_id TEXT PRIMARY KEY,
    at        TEXT NOT NULL CHECK (length(at) = 23),
    digest    BLOB CHECK (length(digest) = 32),
    seal      BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT, WITHOUT ROWID;

-- Audit lines that came with an import: the trail of the store they were written
-- in, which `store` names. Carried along, and no part of this file's own trail.
CREATE TABLE foreign_event (
    store   TEXT NOT NULL,
    number  INTEGER NOT NULL CHECK (number > 0),
    at      TEXT NOT NULL CHECK (length(at) = 23),
    kind    TEXT NOT NULL,
    session TEXT NOT NULL,
    origin  TEXT NOT NULL CHECK (origin IN ('USER', 'AGENT', 'TOOL')),
    record  TEXT,
    digest  BLOB CHECK (length(digest) = 32),
    detail  TEXT,
    chain   BLOB NOT NULL CHECK (length(chain) = 32),
    seal    BLOB NOT NULL CHECK (length(seal) = 32),
    PRIMARY KEY (store, number)
) STRICT, WITHOUT ROWID;

-- The lines up to the sealed anchor may go. It is `audit_anchor` in meta, and
-- like `audit_head` the number of a line and its link.
DROP TRIGGER event_never_goes;
CREATE TRIGGER event_never_goes BEFORE DELETE ON event
    WHEN old.number > coalesce(
        (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'audit_anchor'), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append only'); END;
"
);

/// The tables of the index. All that is in them follows from the records.
macro_rules! index_tables {
    () => {
        r"
-- Terms, each at its places, parted by spaces. A row's number is 32 times that of
-- the record, and the class of its length.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    key, content, tags,
    tokenize = 'ascii',
    content = '', columnsize = 0
);
INSERT INTO memory_words (memory_words, rank)
    VALUES ('secure-delete', 1), ('pgsz', 1000), ('crisismerge', 4);
-- Grams: which rows hold each, and with a 2 behind it, which hold it twice.
CREATE VIRTUAL TABLE memory_grams USING fts5 (
    grams,
    tokenize = 'ascii tokenchars _',
    content = '', columnsize = 0, detail = none
);
INSERT INTO memory_grams (memory_grams, rank)
    VALUES ('secure-delete', 1), ('pgsz', 1000), ('crisismerge', 4);
-- The words of each key, by which a query that names it finds it.
CREATE TABLE memory_key (
    words TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (words, seq)
) STRICT, WITHOUT ROWID;
-- Each occurrence of each term, each row of each gram, and each term once.
CREATE VIRTUAL TABLE memory_word_terms USING fts5vocab (memory_words, instance);
CREATE VIRTUAL TABLE memory_gram_terms USING fts5vocab (memory_grams, instance);
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab (memory_words, row);
"
    };
}

/// What makes the tables of the index.
pub(super) const INDEX: &str = index_tables!();

/// What an index of the host's own terms needs. Its rows are written when the file
/// is indexed again, as it is for any analyser but the one that it names.
const LEVEL_3: &str = concat!(
    r"
DROP TABLE memory_terms;
DROP TABLE memory_fts;
DROP VIEW indexed_memory;
",
    index_tables!()
);

/// What makes `sessions.db`, oldest first.
pub(super) const SESSIONS: &[&str] = &[r"
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    seal  BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    name       TEXT PRIMARY KEY,
    agent      TEXT NOT NULL,
    taint      TEXT NOT NULL,
    clearance  TEXT NOT NULL,
    origin     TEXT NOT NULL CHECK (origin IN ('USER', 'AGENT', 'TOOL')),
    observed   TEXT,
    created_at TEXT NOT NULL CHECK (length(created_at) = 23),
    updated_at TEXT NOT NULL CHECK (length(updated_at) = 23),
    seal       BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT, WITHOUT ROWID;
"];

/// The row of `meta` that names the analyser.
const ANALYSER: &str = "analyser";

/// The name of an analyser, if it is a later one of this program's than it has.
pub(super) fn newer_analyser(name: &str) -> Option<String> {
    let number = |name: &str| {
        let (kind, number) = name.rsplit_once(' ')?;
        Some((kind.to_owned(), number.parse::<u64>().ok()?))
    };
    let (kind, found) = number(name)?;
    let (own, known) = number(analyser::VERSION)?;
    (kind == own && found > known).then(|| name.to_owned())
}

/// Indexes a file again, and says so: to whoever watches, and in the log.
fn index_again(db: &Connection, file: &LevelFile, watch: Option<&Watch>) -> Result<(), Fault> {
    const STEP: u64 = 10_000;
    /// Between two tellings of how far it is.
    const STRIDE: u64 = 64;
    let all = index::belonging(db)?;
    if all < STEP {
        tracing::info!("indexing {all} memories again");
    } else {
        // A server's log is all that a person may have to look at meanwhile.
        tracing::warn!("indexing {all} memories again, as another analyser had; calls wait");
    }
    let mut tell = watch.map(|watch| watch());
    let mut tell = |done| {
        if let Some(tell) = &mut tell {
            tell(Progress::of("index", file, done, all));
        }
    };
    tell(0);
    index::rebuild(db, |done| {
        if done.is_multiple_of(STRIDE) || done == all {
            tell(done);
        }
        if done.is_multiple_of(STEP) {
            tracing::info!("indexed {done} of {all} memories");
        }
        fault_point("index-again");
    })
}

/// What a file is: its tables, and what its `meta` must say.
#[derive(Clone, Copy)]
pub(super) struct Kind<'a> {
    /// Its `application_id`.
    pub(super) id: i32,
    /// Its migrations.
    pub(super) steps: &'a [&'a str],
    /// The agent and level it belongs to; none for `sessions.db`.
    pub(super) file: Option<&'a LevelFile>,
}

impl<'a> Kind<'a> {
    /// The file of a level.
    pub(super) fn level(file: &'a LevelFile) -> Self {
        Self {
            id: LEVEL_ID,
            steps: LEVEL,
            file: Some(file),
        }
    }

    /// `sessions.db`.
    pub(super) fn sessions() -> Self {
        Self {
            id: SESSIONS_ID,
            steps: SESSIONS,
            file: None,
        }
    }

    /// The schema that this program writes.
    pub(super) fn schema(&self) -> i64 {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX)
    }

    /// The rows of `meta` that say what the file is.
    fn description(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("schema", self.schema().to_string())];
        match self.file {
            Some(file) => rows.extend([
                ("agent", file.agent.clone()),
                ("level", file.level.name().to_owned()),
                (ANALYSER, analyser::VERSION.to_owned()),
            ]),
            None => rows.push(("kind", "sessions".to_owned())),
        }
        rows
    }

    /// The seal of a row of `meta`. It covers what the file is, so that a row of
    /// one file never fits in another.
    pub(super) fn meta_seal(
        &self,
        sealer: &Sealer,
        name: &str,
        value: &str,
    ) -> crate::seal::Encoder {
        let seal = sealer.begin(Purpose::Meta);
        match self.file {
            Some(file) => seal.text(&file.agent).text(file.level.name()),
            None => seal.none(),
        }
        .text(name)
        .text(value)
    }

    /// Writes a row of `meta`.
    pub(super) fn set_meta(
        &self,
        db: &Connection,
        sealer: &Sealer,
        name: &str,
        value: &str,
    ) -> Result<(), Fault> {
        db.prepare_cached(
            "INSERT INTO meta (name, value, seal) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET value = ?2, seal = ?3",
        )?
        .execute((
            name,
            value,
            self.meta_seal(sealer, name, value).finish().as_slice(),
        ))?;
        Ok(())
    }

    /// Reads a row of `meta`, its seal checked.
    pub(super) fn meta(
        &self,
        db: &Connection,
        sealer: &Sealer,
        name: &str,
    ) -> Result<Option<String>, Fault> {
        let found: Option<(String, Vec<u8>)> = db
            .prepare_cached("SELECT value, seal FROM meta WHERE name = ?1")?
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        match found {
            None => Ok(None),
            Some((value, seal)) if self.meta_seal(sealer, name, &value).fits(&seal) => {
                Ok(Some(value))
            }
            Some(_) => Err(Fault::Altered("its description fails its seal")),
        }
    }

    /// Checks that a file is what it should be, and of the schema and indexed by the
    /// analyser that this program has. False: it is older, and can be migrated.
    pub(super) fn check(&self, db: &Connection, sealer: &Sealer) -> Result<bool, Fault> {
        // One snapshot, the caller's if there is one: another process may migrate
        // the file meanwhile.
        let snapshot = db
            .is_autocommit()
            .then(|| db.unchecked_transaction())
            .transpose()?;
        let id: i32 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        if id != self.id {
            return Err(Fault::Foreign("it is another kind of file".to_owned()));
        }
        let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > self.schema() {
            return Err(Fault::Newer(version, self.schema()));
        }
        let is_indexed = self.check_description(db, sealer, version)?;
        if let Some(snapshot) = snapshot {
            snapshot.commit()?;
        }
        Ok(is_indexed && version == self.schema())
    }

    /// Checks that `meta` says what it should. Whether the analyser that this program
    /// has wrote the index, where there is one.
    pub(super) fn check_description(
        &self,
        db: &Connection,
        sealer: &Sealer,
        version: i64,
    ) -> Result<bool, Fault> {
        let mut statement = db.prepare_cached("SELECT value, seal FROM meta WHERE name = ?1")?;
        let mut sealed = true;
        let mut is_indexed = true;
        for (name, expected) in self.description() {
            let found: Option<(String, Vec<u8>)> = statement
                .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((value, seal)) = found else {
                return Err(Fault::Altered("its description is incomplete"));
            };
            let expected = match name {
                "schema" => version.to_string(),
                // What another analyser indexed is indexed again, but not by a
                // program that knows less.
                ANALYSER => match newer_analyser(&value) {
                    Some(newer) => return Err(Fault::NewerAnalyser(newer)),
                    None => {
                        is_indexed = value == expected;
                        value.clone()
                    }
                },
                _ => expected,
            };
            if value != expected {
                return Err(Fault::Foreign(format!("it is of another {name}")));
            }
            sealed &= self.meta_seal(sealer, name, &value).fits(&seal);
        }
        // Last, since a file under another name fails its seals too, and then
        // the name is what should be said.
        if sealed {
            Ok(is_indexed)
        } else {
            Err(Fault::Altered(
                "its description fails its seal, or it comes from another store",
            ))
        }
    }

    /// Checks that a file which was current when it was opened still is: another
    /// version of this program may have brought it further since. In a transaction,
    /// before anything that the index has part in.
    pub(super) fn check_current(&self, db: &Connection) -> Result<(), Fault> {
        let mut statement = db.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
        let mut is = |name: &str, expected: &str| {
            let is_expected = |row: &Row<'_>| Ok(row.get_ref(0)?.as_str()? == expected);
            Ok::<_, Fault>(statement.query_row([name], is_expected).optional()? == Some(true))
        };
        let current = is("schema", &self.schema().to_string())?
            && (self.file.is_none() || is(ANALYSER, analyser::VERSION)?);
        if current {
            Ok(())
        } else {
            Err(Fault::Outdated)
        }
    }

    /// Brings a file to the schema that this program writes, and its index to the
    /// analyser that it has, in one exclusive transaction. Does nothing to a file that
    /// is there already, so that any number of processes may ask at once, and refuses
    /// one that a newer program has brought further meanwhile.
    pub(super) fn migrate(
        &self,
        db: &mut Connection,
        sealer: &Sealer,
        watch: Option<&Watch>,
    ) -> Result<(), Fault> {
        let tx = db.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > self.schema() {
            return Err(Fault::Newer(version, self.schema()));
        }
        let is_new = version == 0;
        if !is_new && self.check_description(&tx, sealer, version)? && version == self.schema() {
            return Ok(());
        }
        if is_new {
            // Only ever an empty file that this process has just made.
            let tables: i64 =
                tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables != 0 {
                return Err(Fault::Foreign("it is another kind of file".to_owned()));
            }
            tx.pragma_update(None, "application_id", self.id)?;
        }
        for step in self
            .steps
            .iter()
            .skip(usize::try_from(version).unwrap_or(usize::MAX))
        {
            tx.execute_batch(step)?;
        }
        if let (Some(file), false) = (self.file, is_new) {
            index_again(&tx, file, watch)?;
        }
        for (name, value) in self.description() {
            self.set_meta(&tx, sealer, name, &value)?;
        }
        if let (Some(file), true) = (self.file, is_new) {
            event::begin(&tx, &Book { file, sealer })?;
        }
        tx.pragma_update(None, "user_version", self.schema())?;
        fault_point("migrated");
        tx.commit()?;
        Ok(())
    }
}
