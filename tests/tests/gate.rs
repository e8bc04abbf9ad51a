//! The host's gate alone ([`Grant`]): over a storage that would give everything
//! to everybody, and over one whose records are not on the level they say.

use std::sync::Arc;

use remora_host::storage::sqlite::SqliteOptions;
use remora_host::storage::{
    Access, ControlPlane, Counts, Draft, Entry, Event, Filter, Matches, Memories, Notable,
    Presence, Receipt, Shelves, SqliteStorage, StorageProvider, TagCount,
};
use remora_host::{
    CallLimits, Error, ErrorKind, Grant, Level, SessionOptions, Store, SystemClock, can_flow_to,
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
        let mut page = self.0.page(level, filter, after, limit)?;
        for memory in &mut page.items {
            memory.level = another(level);
        }
        Ok(page)
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

    fn note(&mut self, notable: Notable) -> Result<(), Error> {
        self.0.note(notable)
    }
}

fn over(careless: Careless) -> Store {
    Store::with(Arc::new(careless), Arc::new(SystemClock))
}

/// What became of asking everything that can be asked of a level.
fn ask(grant: &mut Grant, level: Level) -> [Result<bool, Error>; 6] {
    [
        grant.fetch(level, "k").map(|entry| entry.is_some()),
        grant
            .search(level, "heliotrope", 0, 10)
            .map(|found| !found.items.is_empty()),
        grant
            .page(level, &Filter::default(), None, 10)
            .map(|page| !page.items.is_empty()),
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
    for level in Level::ALL {
        remora_tests::at(&honest, level).save_tagged("k", "heliotrope", &["t"]);
    }
    let store = over(Careless {
        storage,
        lies: false,
    });
    for taint in Level::ALL {
        let session = remora_tests::at(&store, taint);
        let mut grant = Grant::for_call(&session, CallLimits::default()).expect("a grant");
        for level in Level::ALL {
            for answer in ask(&mut grant, level) {
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
    session.save("k", "heliotrope");
    let mut grant = Grant::for_call(&session, CallLimits::default()).expect("a grant");
    for answer in ask(&mut grant, Level::Restricted).into_iter().take(3) {
        assert_eq!(answer.expect_err("refused").kind(), ErrorKind::Unavailable);
    }
}

#[test]
fn a_grant_of_nothing_reads_and_writes_nothing() {
    let mut grant = Grant::of_nothing();
    for level in Level::ALL {
        for answer in ask(&mut grant, level) {
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
}
