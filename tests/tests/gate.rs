//! The host's gate alone ([`Grant`]): over a storage that would give everything
//! to everybody, and over one whose records are not on the level they say.

use std::sync::Arc;

use remora_host::storage::sqlite::SqliteOptions;
use remora_host::storage::{
    Access, ControlPlane, Counts, Draft, Edge, Entry, Event, Filter, Matches, Memories, Notable,
    Presence, Receipt, Shelves, SqliteStorage, StalePosition, StorageProvider, TagCount,
};
use remora_host::{
    CallLimits, Error, ErrorKind, Grant, Instant, Level, SessionOptions, Store, SystemClock,
    can_flow_to,
};
use remora_tests::{AGENT, Calls, folder};
use serde_json::json;

/// A storage that looks at nobody's taint, or says another level of everything.
struct Careless {
    storage: SqliteStorage,
    lies: bool,
}

impl StorageProvider for Careless {
    fn open(&self, mut access: Access) -> Result<Box<dyn Shelves>, Error> {
        if !self.lies {
            access.taint = Level::Restricted;
        }
        let shelves = self.storage.open(access)?;
        Ok(if self.lies {
            Box::new(Lying(shelves))
        } else {
            shelves
        })
    }

    fn control(&self) -> &dyn ControlPlane {
        self.storage.control()
    }

    fn events(&self, agent: &str, level: Level) -> Result<Vec<Event>, Error> {
        self.storage.events(agent, level)
    }

    fn location(&self) -> String {
        self.storage.location()
    }
}

struct Lying(Box<dyn Shelves>);

/// Another level than that.
fn another(level: Level) -> Level {
    if level == Level::Public {
        Level::Restricted
    } else {
        Level::Public
    }
}

fn moved(level: Level, mut memories: Memories) -> Memories {
    for memory in &mut memories.items {
        memory.level = another(level);
    }
    memories
}

impl Shelves for Lying {
    fn fetch(&mut self, level: Level, key: &str) -> Result<Option<Entry>, Error> {
        let mut entry = self.0.fetch(level, key)?;
        if let Some(Entry::Live(memory)) = &mut entry {
            memory.level = another(level);
        }
        Ok(entry)
    }

    fn search(
        &mut self,
        level: Level,
        text: &str,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
        let mut matches = self.0.search(level, text, after, limit)?;
        for found in &mut matches.items {
            found.memory.level = another(level);
        }
        Ok(matches)
    }

    fn page(
        &mut self,
        level: Level,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Memories, Error> {
        let page = self.0.page(level, filter, after, limit)?;
        Ok(moved(level, page))
    }

    fn versions(
        &mut self,
        level: Level,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Memories, Error> {
        let versions = self.0.versions(level, key, before, limit)?;
        Ok(moved(level, versions))
    }

    fn edges(&mut self, level: Level, ids: &[String]) -> Result<Vec<Edge>, Error> {
        self.0.edges(level, ids)
    }

    fn stale(
        &mut self,
        level: Level,
        before: Instant,
        after: Option<&StalePosition>,
        limit: usize,
    ) -> Result<Memories, Error> {
        let stale = self.0.stale(level, before, after, limit)?;
        Ok(moved(level, stale))
    }

    fn used(
        &mut self,
        level: Level,
        after: usize,
        limit: usize,
        excerpt_bytes: usize,
    ) -> Result<Memories, Error> {
        let used = self.0.used(level, after, limit, excerpt_bytes)?;
        Ok(moved(level, used))
    }

    fn present(&mut self, level: Level, keys: &[String]) -> Result<Vec<Presence>, Error> {
        self.0.present(level, keys)
    }

    fn counts(&mut self, level: Level) -> Result<Counts, Error> {
        self.0.counts(level)
    }

    fn tags(&mut self, level: Level, limit: usize) -> Result<Vec<TagCount>, Error> {
        self.0.tags(level, limit)
    }

    fn put(&mut self, draft: &Draft) -> Result<Receipt, Error> {
        self.0.put(draft)
    }

    fn retire(&mut self, key: &str, hide_lower: bool) -> Result<Option<String>, Error> {
        self.0.retire(key, hide_lower)
    }

    fn stamp(&mut self, id: &str, source: Option<&str>) -> Result<Instant, Error> {
        self.0.stamp(id, source)
    }

    fn record_use(&mut self, ids: &[String]) {
        self.0.record_use(ids);
    }

    fn note(&mut self, notable: Notable) -> Result<(), Error> {
        self.0.note(notable)
    }
}

fn over(careless: Careless) -> Store {
    Store::with(Arc::new(careless), Arc::new(SystemClock))
}

/// What became of asking everything that can be asked of a level: first what
/// gives records, then the rest. The record `id` is used before.
fn ask(grant: &mut Grant, level: Level, id: &str) -> [Result<bool, Error>; 10] {
    let fetched = grant.fetch(level, "k").map(|entry| entry.is_some());
    grant.record_use(&[id.to_owned()]);
    let end = Instant::from_millis_clamped(i64::MAX);
    let some = |memories: Memories| !memories.items.is_empty();
    [
        fetched,
        grant
            .search(level, "heliotrope", 0, 10)
            .map(|found| !found.items.is_empty()),
        grant.page(level, &Filter::default(), None, 10).map(some),
        grant.versions(level, "k", None, 10).map(some),
        grant.stale(level, end, None, 10).map(some),
        grant.used(level, 0, 10, 10).map(some),
        grant
            .edges(level, &[id.to_owned()])
            .map(|edges| edges.is_empty()),
        grant
            .present(level, &["k".to_owned()])
            .map(|present| present[0] != Presence::Absent),
        grant.counts(level).map(|counts| counts.live > 0),
        grant.tags(level, 10).map(|tags| !tags.is_empty()),
    ]
}

#[test]
fn the_gate_alone_refuses_every_level_above_the_taint() {
    let folder = folder();
    let storage = SqliteStorage::open(folder.path(), SqliteOptions::default()).expect("a store");
    let honest = Store::with(Arc::new(storage.clone()), Arc::new(SystemClock));
    let mut ids = Vec::new();
    for level in Level::ALL {
        let put = json!([{ "do": "put", "key": "k", "content": "heliotrope", "tags": ["t"] }]);
        let answers = remora_tests::at(&honest, level).told(put).expect("saved");
        ids.push(answers[0]["ok"]["id"].as_str().expect("an id").to_owned());
    }
    let store = over(Careless {
        storage,
        lies: false,
    });
    for taint in Level::ALL {
        let session = remora_tests::at(&store, taint);
        let mut grant = Grant::for_call(&session, CallLimits::default()).expect("a grant");
        for (level, id) in Level::ALL.into_iter().zip(&ids) {
            for answer in ask(&mut grant, level, id) {
                match answer {
                    Ok(found) => {
                        assert!(found && can_flow_to(level, taint), "{taint} read {level}")
                    }
                    Err(error) => {
                        assert!(!can_flow_to(level, taint), "{taint} of {level}: {error}");
                        assert_eq!(error.kind(), ErrorKind::Refused);
                    }
                }
            }
        }
        // What a plugin is handed is no more.
        let answers = session
            .told(json!([{ "do": "shelves" }, { "do": "everything", "key": "k", "text": "heliotrope" }]))
            .expect("the puppet answers");
        let shelves: Vec<&str> = Level::readable_at(taint).map(Level::name).collect();
        assert_eq!(answers[0]["ok"], json!(shelves));
    }
}

#[test]
fn the_gate_alone_refuses_a_record_that_is_not_on_the_level_it_says() {
    let folder = folder();
    let storage = SqliteStorage::open(folder.path(), SqliteOptions::default()).expect("a store");
    let store = over(Careless {
        storage,
        lies: true,
    });
    let session = store
        .session("s", &SessionOptions::new(AGENT).taint(Level::Restricted))
        .expect("a session");
    let answers = session
        .told(json!([{ "do": "put", "key": "k", "content": "heliotrope" }]))
        .expect("saved");
    let id = answers[0]["ok"]["id"].as_str().expect("an id");
    let mut grant = Grant::for_call(&session, CallLimits::default()).expect("a grant");
    for answer in ask(&mut grant, Level::Restricted, id).into_iter().take(6) {
        assert_eq!(answer.expect_err("refused").kind(), ErrorKind::Unavailable);
    }
}

#[test]
fn a_grant_of_nothing_reads_and_writes_nothing() {
    let mut grant = Grant::of_nothing();
    for level in Level::ALL {
        for answer in ask(&mut grant, level, "0") {
            assert_eq!(answer.expect_err("refused").kind(), ErrorKind::Refused);
        }
    }
    let draft = Draft {
        key: "k".to_owned(),
        content: "c".to_owned(),
        ..Draft::default()
    };
    assert_eq!(
        grant.put(&draft).expect_err("refused").kind(),
        ErrorKind::Refused
    );
    assert_eq!(
        grant.retire("k", true).expect_err("refused").kind(),
        ErrorKind::Refused
    );
    assert_eq!(
        grant.stamp("0", None).expect_err("refused").kind(),
        ErrorKind::Refused
    );
}
