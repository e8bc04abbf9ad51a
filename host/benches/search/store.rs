//! Stores to search in, and the baseline beside them.

use std::collections::HashSet;
use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

use remora_host::storage::sqlite::operator::{ImportOptions, Progress};
use remora_host::storage::sqlite::{SqliteOptions, SqliteStorage};
use remora_host::storage::{Access, StorageProvider};
use remora_host::{Instant, Level, Origin};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use tempfile::TempDir;
use unicode_normalization::char::is_combining_mark;

/// The one agent of stores for which its name makes no difference.
pub(crate) const AGENT: &str = "bench";

/// Says that a store is filled.
const FILLED: &str = "filled";

/// When everything is saved and asked.
fn moment() -> Instant {
    Instant::from_millis(1_796_000_000_000).expect("a moment")
}

pub(crate) fn open(folder: &Path) -> SqliteStorage {
    SqliteStorage::open(folder, SqliteOptions::default()).expect("a store")
}

/// What a session at that level has.
pub(crate) fn access(agent: &str, taint: Level) -> Access {
    Access {
        agent: agent.to_owned(),
        session: "bench".to_owned(),
        taint,
        trail: taint,
        origin: Origin::User,
        read_only: None,
        now: moment(),
        deadline: Clock::now() + Duration::from_secs(60 * 60),
    }
}

/// The keys of the first matches on all levels that a session can see, merged as
/// the component does.
pub(crate) fn ask(
    storage: &SqliteStorage,
    agent: &str,
    taint: Level,
    text: &str,
    limit: usize,
) -> Vec<String> {
    let mut shelves = storage.open(access(agent, taint)).expect("shelves");
    let mut all: Vec<(f64, String)> = Vec::new();
    for level in Level::readable_at(taint) {
        let found = shelves.search(level, text, 0, limit).expect("matches");
        let found = found.items.into_iter();
        all.extend(found.map(|found| (found.score, found.memory.key)));
    }
    all.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    all.truncate(limit);
    all.into_iter().map(|(_, key)| key).collect()
}

/// A memory to store.
pub(crate) struct Memory {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) tags: Vec<String>,
}

/// A line of an export.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line<'a> {
    Header {
        format: &'a str,
        version: u32,
    },
    Record {
        agent: &'a str,
        level: &'a str,
        id: &'a str,
        key: &'a str,
        version: u32,
        content: &'a str,
        tags: &'a [String],
        origin: &'a str,
        standing: &'a str,
        session: &'a str,
        created_at: &'a str,
        updated_at: &'a str,
    },
}

/// The lines of an export, each made when it is read.
struct Export<'a, I> {
    agent: &'a str,
    level: Level,
    memories: I,
    made: u64,
    line: Vec<u8>,
    read: usize,
}

impl<I: Iterator<Item = Memory>> Export<'_, I> {
    fn make(&mut self, line: &Line<'_>) {
        self.line.clear();
        self.read = 0;
        serde_json::to_writer(&mut self.line, line).expect("a line");
        self.line.push(b'\n');
    }
}

impl<I: Iterator<Item = Memory>> Read for Export<'_, I> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

impl<I: Iterator<Item = Memory>> BufRead for Export<'_, I> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.made == 0 {
            self.made = 1;
            self.make(&Line::Header {
                format: "remora-export",
                version: 1,
            });
        } else if self.read == self.line.len() {
            match self.memories.next() {
                None => return Ok(&[]),
                Some(memory) => {
                    let id = id(self.level, self.made);
                    self.made += 1;
                    let moment = moment().to_string();
                    self.make(&Line::Record {
                        agent: self.agent,
                        level: self.level.name(),
                        id: &id,
                        key: &memory.key,
                        version: 1,
                        content: &memory.text,
                        tags: &memory.tags,
                        origin: "USER",
                        standing: "trusted",
                        session: "bench",
                        created_at: &moment,
                        updated_at: &moment,
                    });
                }
            }
        }
        Ok(&self.line[self.read..])
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

/// As good as random, and the same on every run.
fn id(level: Level, number: u64) -> String {
    let mix = |number: u64| {
        // SplitMix64: no two numbers become the same.
        let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let number = (number << 2) | level as u64;
    format!("{:016x}{:016x}", mix(number), mix(number ^ (1 << 63)))
}

/// Puts memories on a level: an import, which is the fastest way that anybody
/// has. Tells of each thousand or so.
pub(crate) fn fill(
    storage: &SqliteStorage,
    agent: &str,
    level: Level,
    memories: impl Iterator<Item = Memory>,
    told: &mut dyn FnMut(u64),
) -> u64 {
    let mut export = Export {
        agent,
        level,
        memories,
        made: 0,
        line: Vec::new(),
        read: 0,
    };
    let mut progress = |progress: Progress| told(progress.done);
    let report = storage
        .operator(moment())
        .import(&mut export, &ImportOptions::default(), &mut progress)
        .expect("an import");
    assert!(
        report.rejected.is_empty() && report.skipped.is_empty() && report.stood_back == 0,
        "{:?} {:?}",
        report.rejected,
        report.skipped
    );
    report.records.imported
}

/// The file of a level.
pub(crate) fn level_file(storage: &SqliteStorage, level: Level) -> PathBuf {
    let agent = storage.root().join("agents").join(AGENT);
    agent.join(format!("{}.db", level.file_stem()))
}

/// Brings what a file's log holds into it, as whoever writes to it next does. Readers
/// look each page up there until then, and levels that are filled side by side hold each
/// other up at it.
pub(crate) fn write_back(file: &Path) {
    let db = Connection::open(file).expect("a file");
    let busy: i64 = db
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .expect("a checkpoint");
    assert_eq!(busy, 0);
}

/// How many bytes the tables of FTS5 take in a file, and how many all of it.
pub(crate) fn bytes(file: &Path) -> (i64, i64) {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a file");
    let index = "SELECT coalesce(sum(pgsize), 0) FROM dbstat
         WHERE aggregate = TRUE AND name IN (
             SELECT shadow.name FROM sqlite_schema AS fts, sqlite_schema AS shadow,
                 (SELECT column1 AS of FROM (VALUES ('data'), ('idx'), ('content'), ('docsize'), ('config')))
             WHERE fts.sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'
                 AND shadow.name = fts.name || '_' || of)";
    let all = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = TRUE";
    let sum = |query: &str| {
        db.query_row(query, [], |row| row.get(0))
            .expect("SQLite's dbstat")
    };
    (sum(index), sum(all))
}

/// One table of FTS5.
pub(crate) struct Baseline(Connection);

impl Baseline {
    pub(crate) fn in_memory() -> Self {
        let db = Connection::open_in_memory().expect("a database");
        db.execute_batch("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = 'porter unicode61')")
            .expect("a table");
        Self(db)
    }

    /// In a file of its own, made where there is none. Its page cache is as
    /// large as those of four levels are together, as SQLite has them by default.
    pub(crate) fn in_file(path: &Path) -> Self {
        let db = Connection::open(path).expect("a database");
        db.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA cache_size = -8000;
             CREATE VIRTUAL TABLE IF NOT EXISTS t
                 USING fts5 (text, tokenize = 'porter unicode61');",
        )
        .expect("a table");
        Self(db)
    }

    /// Numbers them from 1.
    pub(crate) fn fill(&self, texts: impl Iterator<Item = String>) {
        let tx = self.0.unchecked_transaction().expect("a transaction");
        let mut insert = tx
            .prepare("INSERT INTO t (rowid, text) VALUES (?1, ?2)")
            .expect("a statement");
        for (number, text) in (1_i64..).zip(texts) {
            insert.execute((number, text)).expect("a row");
        }
        drop(insert);
        tx.commit().expect("a commit");
    }

    /// The numbers of the best matches of any word.
    pub(crate) fn ask(&self, text: &str, limit: i64) -> Vec<i64> {
        let Some(any) = any_of(text) else {
            return Vec::new();
        };
        let mut select = self
            .0
            .prepare_cached("SELECT rowid FROM t WHERE t MATCH ?1 ORDER BY bm25(t) LIMIT ?2")
            .expect("a statement");
        let rows = select.query_map((any, limit), |row| row.get(0));
        rows.and_then(Iterator::collect).expect("matches")
    }
}

/// Any of the words of a text, each once and quoted.
fn any_of(text: &str) -> Option<String> {
    let mut seen = HashSet::new();
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c))
        .filter(|word| !word.is_empty() && seen.insert(word.to_lowercase()))
        .map(|word| format!("\"{word}\""))
        .collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// A folder for stores: a temporary one, or one that is kept.
pub(crate) struct Place {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Place {
    /// A kept one that was not filled to its end is begun anew.
    pub(crate) fn new(keep: Option<&Path>, name: &str) -> Self {
        let Some(keep) = keep else {
            return Self::temporary(Path::new(env!("CARGO_TARGET_TMPDIR")));
        };
        let path = keep.join(name);
        if path.exists() && !path.join(FILLED).exists() {
            std::fs::remove_dir_all(&path).expect("what was not filled can be removed");
        }
        std::fs::create_dir_all(&path).expect("a folder");
        Self {
            path,
            _temporary: None,
        }
    }

    pub(crate) fn temporary(within: &Path) -> Self {
        let temporary = tempfile::tempdir_in(within).expect("a temporary folder");
        Self {
            path: temporary.path().to_owned(),
            _temporary: Some(temporary),
        }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    pub(crate) fn baseline(&self) -> PathBuf {
        self.path.join("baseline.db")
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.path.join(FILLED).exists()
    }

    pub(crate) fn set_filled(&self) {
        std::fs::write(self.path.join(FILLED), "").expect("a mark");
    }
}

/// Says how far long work has come, to whoever watches.
pub(crate) fn say(what: &str) {
    let mut to = std::io::stderr();
    if to.is_terminal() {
        // Nobody minds if it fails.
        let _ = write!(to, "\r\x1b[K{what}");
        let _ = to.flush();
    }
}

pub(crate) fn time(action: impl FnOnce()) -> Duration {
    let start = Clock::now();
    action();
    start.elapsed()
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median of the times, and that which 99 of 100 stay within, in milliseconds.
pub(crate) fn median_and_p99(times: &mut [Duration]) -> (f64, f64) {
    let median = median(times);
    let p99 = times[(times.len() * 99).div_ceil(100).saturating_sub(1)];
    (median.as_secs_f64() * 1e3, p99.as_secs_f64() * 1e3)
}
