//! What the store promises, as sentences.

mod audit;
mod backup;
mod clock;
mod confirming;
mod control;
mod export;
mod fixture;
mod folder;
mod history;
mod import;
mod indexing;
mod migrating;
mod model;
mod operator;
mod reading;
mod restore;
mod seals;
mod searching;
mod sharing;
mod stale;
mod usage;
mod writing;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::{SqliteOptions, SqliteStorage};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::provenance::Origin;
use crate::storage::{Access, Draft, Entry, Memory, Outcome, Receipt, Shelves, StorageProvider};

const P: Level = Level::Public;
const I: Level = Level::Internal;
const C: Level = Level::Confidential;
const R: Level = Level::Restricted;

/// A store in a folder of its own.
struct Store {
    folder: tempfile::TempDir,
    storage: SqliteStorage,
}

/// A folder that goes with the test: in memory where the system has such a place,
/// since each test waits for many syncs.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Half a second after noon on a day.
fn at(seconds: i64) -> Instant {
    Instant::from_millis(1_796_000_000_500 + seconds * 1000).unwrap()
}

fn access(taint: Level, origin: Origin) -> Access {
    Access {
        agent: "main".to_owned(),
        session: "test".to_owned(),
        taint,
        origin,
        read_only: None,
        trail: taint,
        now: at(0),
        deadline: std::time::Instant::now() + Duration::from_secs(60),
    }
}

impl Store {
    fn new() -> Self {
        Self::with(SqliteOptions::default())
    }

    fn with(options: SqliteOptions) -> Self {
        let folder = folder();
        let storage = SqliteStorage::open(&folder.path().join("store"), options).unwrap();
        Self { folder, storage }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn path(&self, level: Level) -> PathBuf {
        self.root()
            .join("agents/main")
            .join(format!("{}.db", level.file_stem()))
    }

    /// The file of a level, opened by hand.
    fn by_hand(&self, level: Level) -> Connection {
        Connection::open(self.path(level)).unwrap()
    }

    fn open(&self, access: Access) -> Box<dyn Shelves> {
        self.storage.open(access).unwrap()
    }

    fn agent(&self, taint: Level) -> Box<dyn Shelves> {
        self.open(access(taint, Origin::Agent))
    }

    fn user(&self, taint: Level) -> Box<dyn Shelves> {
        self.open(access(taint, Origin::User))
    }

    fn later(&self, taint: Level, seconds: i64) -> Box<dyn Shelves> {
        self.open(Access {
            now: at(seconds),
            ..access(taint, Origin::Agent)
        })
    }

    fn save(&self, level: Level, key: &str, content: &str) -> Receipt {
        self.agent(level).put(&draft(key, content)).unwrap()
    }

    fn seen(&self, taint: Level, level: Level, key: &str) -> Option<String> {
        content(self.agent(taint).fetch(level, key).unwrap())
    }
}

fn draft(key: &str, content: &str) -> Draft {
    Draft {
        key: key.to_owned(),
        content: content.to_owned(),
        ..Draft::default()
    }
}

fn tagged(key: &str, tags: &[&str]) -> Draft {
    Draft {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..draft(key, "words")
    }
}

fn expiring_at(key: &str, seconds: i64) -> Draft {
    Draft {
        expires_at: Some(at(seconds)),
        ..draft(key, "words")
    }
}

/// `†` for a tombstone.
fn content(entry: Option<Entry>) -> Option<String> {
    entry.map(|entry| match entry {
        Entry::Live(memory) => memory.content,
        Entry::Tombstone(_) => "†".to_owned(),
    })
}

fn live(entry: Option<Entry>) -> Memory {
    match entry {
        Some(Entry::Live(memory)) => memory,
        other => panic!("not live: {other:?}"),
    }
}

fn unavailable<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        !error.remedy().is_empty() || !error.allowed().is_empty(),
        "{error}"
    );
    error.to_string()
}

fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap();
                all.push(name.to_str().unwrap().to_owned());
            }
        }
    }
    all.sort();
    all
}
