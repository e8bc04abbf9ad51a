//! Counting use.

use super::*;
use crate::storage::Memories;

/// Gets a key and says so, as the plugin does.
fn read(shelves: &mut Box<dyn Shelves>, level: Level, key: &str) {
    let memory = live(shelves.fetch(level, key).unwrap());
    shelves.record_use(&[memory.id]);
}

/// What a level's file says of use: key or id, uses, when last.
fn kept(store: &Store, level: Level) -> Vec<(String, i64, String)> {
    store
        .by_hand(level)
        .prepare(
            "SELECT coalesce((SELECT key FROM record WHERE id = record_id), record_level), uses,
                 last_used_at FROM usage ORDER BY 1",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn keys(memories: Memories) -> Vec<String> {
    memories
        .items
        .into_iter()
        .map(|memory| memory.key)
        .collect()
}

#[test]
fn uses_are_written_in_batches_of_64() {
    let store = Store::new();
    store.save(P, "a", "x");
    store.save(P, "b", "x");
    let mut shelves = store.agent(P);
    for _ in 0..63 {
        read(&mut shelves, P, "a");
    }
    assert_eq!(kept(&store, P), []);
    read(&mut shelves, P, "b");
    let now = at(0).to_sql();
    let written = [
        ("a".to_owned(), 63, now.clone()),
        ("b".to_owned(), 1, now.clone()),
    ];
    assert_eq!(kept(&store, P), written);
    read(&mut shelves, P, "a");
    assert_eq!(kept(&store, P), written);
}

#[test]
fn a_batch_is_written_five_seconds_after_it_began_by_the_callers_clock() {
    for later in [5_i64, -5] {
        let store = Store::new();
        store.save(P, "a", "x");
        read(&mut store.later(P, 0), P, "a");
        read(&mut store.later(P, later - later.signum()), P, "a");
        assert_eq!(kept(&store, P), []);
        read(&mut store.later(P, later), P, "a");
        let last = at(later.max(0)).to_sql();
        assert_eq!(kept(&store, P), [("a".to_owned(), 3, last)]);
    }
}

#[test]
fn what_is_not_yet_written_is_written_when_the_store_is_closed() {
    let store = Store::new();
    store.save(P, "a", "x");
    read(&mut store.agent(P), P, "a");
    let storage = store.storage.clone();
    let (folder, path) = (store.folder, store.storage.root().to_owned());
    drop(store.storage);
    let again = SqliteStorage::open(&path, SqliteOptions::default()).unwrap();
    let mut used = again.open(access(P, Origin::Agent)).unwrap();
    assert_eq!(used.used(P, 0, 9, 9).unwrap().items, []);
    drop(storage);
    assert_eq!(
        keys(used.used(P, 0, 9, 9).unwrap()),
        ["a"],
        "the last clone is gone"
    );
    drop(folder);
}

#[test]
fn a_use_is_counted_where_the_reader_stands_and_nowhere_else() {
    let store = Store::new();
    store.save(P, "low", "x");
    store.save(C, "high", "x");
    let below = || {
        ["public.db", "public.db-wal"].map(|name| {
            std::fs::read(store.root().join("agents/main").join(name)).unwrap_or_default()
        })
    };
    let before = below();
    let mut shelves = store.agent(C);
    for _ in 0..64 {
        read(&mut shelves, P, "low");
    }
    assert!(below() == before);
    assert_eq!(kept(&store, C), [("PUBLIC".to_owned(), 64, at(0).to_sql())]);
    assert_eq!(keys(store.agent(C).used(P, 0, 9, 9).unwrap()), ["low"]);
    assert_eq!(store.agent(C).used(C, 0, 9, 9).unwrap().items, []);
    // Neither lower nor higher sessions are told of it.
    for taint in [P, I, R] {
        let mut other = store.agent(taint);
        assert_eq!(other.used(P, 0, 9, 9).unwrap().items, [], "{taint}");
    }
    let error = store.agent(P).used(C, 0, 9, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[test]
fn the_most_used_come_first_then_by_key_and_only_live_ones() {
    let store = Store::new();
    let uses = [
        ("b", 2),
        ("a", 2),
        ("c", 3),
        ("d", 1),
        ("B", 2),
        ("e", 5),
        ("f", 4),
        ("g", 9),
    ];
    let mut ids = Vec::new();
    for (key, uses) in uses {
        let draft = Draft {
            expires_at: (key == "f").then(|| at(50)),
            ..draft(key, "some words")
        };
        ids.push(store.agent(P).put(&draft).unwrap().id);
        let mut shelves = store.agent(P);
        for _ in 0..uses {
            read(&mut shelves, P, key);
        }
    }
    store.agent(P).retire("e", false).unwrap();
    let newer = Draft {
        supersedes: vec![ids[7].clone()],
        ..draft("newer", "x")
    };
    store.agent(P).put(&newer).unwrap();
    let expected = ["c", "B", "a", "b", "d"];
    let mut shelves = store.later(P, 50);
    assert_eq!(keys(shelves.used(P, 0, 200, 4).unwrap()), expected);
    let page = shelves.used(P, 0, 1, 4).unwrap();
    assert_eq!((page.items[0].content.as_str(), page.more), ("some", true));
    for limit in 1..=6 {
        let mut told = Vec::new();
        loop {
            let page = shelves.used(P, told.len(), limit, 9).unwrap();
            let more = page.more;
            told.extend(keys(page));
            if !more {
                break;
            }
        }
        assert_eq!(told, expected, "{limit} at once");
    }
    assert_eq!(shelves.used(P, 99, 9, 9).unwrap().items, []);
}

#[test]
fn only_records_that_the_call_could_have_been_given_are_counted() {
    let store = Store::new();
    let low = store.save(P, "low", "x");
    let high = store.save(R, "high", "x");
    let mut shelves = store.agent(P);
    shelves.fetch(P, "low").unwrap();
    for _ in 0..64 {
        shelves.record_use(&[
            high.id.clone(),
            "nothing".to_owned(),
            low.id.clone(),
            low.id.clone(),
        ]);
    }
    assert_eq!(kept(&store, P), [("low".to_owned(), 64, at(0).to_sql())]);
    shelves.record_use(&vec![low.id; 10_000]);
}

#[test]
fn a_session_that_observed_more_than_it_is_cleared_for_counts_nothing() {
    let store = Store::new();
    store.save(P, "a", "x");
    let mut shelves = store.open(Access {
        read_only: Some("It observed RESTRICTED".to_owned()),
        ..access(P, Origin::Agent)
    });
    for _ in 0..100 {
        read(&mut shelves, P, "a");
    }
    drop(shelves);
    store.storage.inner.write_all_usage();
    assert_eq!(kept(&store, P), []);
}

#[test]
fn a_reader_makes_no_file_for_its_counts_and_they_wait_for_one() {
    let store = Store::new();
    store.save(P, "low", "x");
    let mut shelves = store.agent(C);
    for _ in 0..200 {
        read(&mut shelves, P, "low");
    }
    assert_eq!(shelves.used(P, 0, 9, 9).unwrap().items, []);
    assert!(!store.path(C).exists());
    store.save(C, "high", "x");
    assert_eq!(keys(store.agent(C).used(P, 0, 9, 9).unwrap()), ["low"]);
    assert_eq!(kept(&store, C)[0].1, 200);
}

#[test]
fn reading_goes_on_while_another_holds_the_lock_and_the_counts_wait() {
    let store = Store::new();
    store.save(P, "a", "x");
    let writer = store.by_hand(P);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::Instant::now();
    let mut shelves = store.agent(P);
    for _ in 0..64 {
        read(&mut shelves, P, "a");
    }
    // One attempt for the batch, one for a call that lists.
    for _ in 0..60 {
        read(&mut shelves, P, "a");
        assert_eq!(shelves.used(P, 0, 9, 9).unwrap().items, []);
    }
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(keys(store.agent(P).used(P, 0, 9, 9).unwrap()), ["a"]);
    assert_eq!(kept(&store, P)[0].1, 124);
    assert_eq!(store.storage.events("main", P).unwrap().len(), 1);
}

#[test]
fn reading_a_thousand_times_leaves_the_index_alone() {
    let store = Store::new();
    store.save(P, "a", "words");
    let index = |store: &Store| -> Vec<(i64, Vec<u8>)> {
        store
            .by_hand(P)
            .prepare(
                "SELECT id, block FROM memory_words_data
                 UNION ALL SELECT -id, block FROM memory_grams_data ORDER BY 1",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let before = index(&store);
    let mut shelves = store.agent(P);
    for _ in 0..1000 {
        read(&mut shelves, P, "a");
    }
    drop(shelves);
    store.storage.inner.write_all_usage();
    assert_eq!(kept(&store, P)[0].1, 1000);
    assert!(index(&store) == before);
    let found = store.agent(P).search(P, "words", 0, 9).unwrap();
    assert_eq!(found.items.len(), 1);
    let memory = live(store.later(P, 9).fetch(P, "a").unwrap());
    assert_eq!((memory.updated_at, memory.confirmed_at), (at(0), None));
}

#[test]
fn threads_that_read_at_once_lose_no_count() {
    let store = Store::new();
    store.save(P, "a", "x");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    read(&mut store.agent(P), P, "a");
                }
            });
        }
    });
    store.storage.inner.write_all_usage();
    assert_eq!(kept(&store, P)[0].1, 400);
}
