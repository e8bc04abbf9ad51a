//! How an older file becomes a newer one.

use std::sync::{Arc, Barrier};
use std::thread;

use super::super::connection::{Mode, Pool};
use super::super::layout::LevelFile;
use super::super::record::Record;
use super::super::schema::{Kind, LEVEL};
use super::*;

/// A step that fails where it is done a second time.
const LATER: &str = "CREATE TABLE later (x INTEGER) STRICT";

fn pool(store: &Store) -> Pool {
    Pool::new(
        Arc::clone(&store.storage.inner.sealer),
        Duration::from_secs(5),
    )
}

fn version(store: &Store) -> i64 {
    store
        .by_hand(P)
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap()
}

/// A store whose PUBLIC file is as the first schema wrote it, with one record.
fn first_schema() -> (Store, LevelFile) {
    let store = Store::new();
    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let kind = Kind {
        steps: &LEVEL[..1],
        ..Kind::level(&file)
    };
    inner
        .layout
        .make_level(&file, |path| inner.pool.maintain(path, &kind))
        .unwrap();
    let link = inner
        .pool
        .take(&file.path, &kind, Mode::Write, file.place(), None)
        .unwrap()
        .unwrap();
    link.run(|db| {
        let mut record = Record {
            seq: 0,
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            key: "a".to_owned(),
            tags: "[\"t, \\\"u\\\"\"]".to_owned(),
            origin: "AGENT".to_owned(),
            standing: "trusted".to_owned(),
            source: None,
            session: "old".to_owned(),
            version: 1,
            created_at: at(-99).to_sql(),
            updated_at: at(-99).to_sql(),
            confirmed_at: None,
            expires_at: None,
            superseded_at: None,
            deleted_at: None,
            hides_lower: false,
            supersedes: "[]".to_owned(),
            seal: Vec::new(),
            content: "old words".to_owned(),
        };
        inner.book(&file).insert_row(db, &mut record)?;
        db.execute_batch(
            r#"INSERT INTO memory_fts (rowid, key, content, tags)
                   SELECT seq, key, content, tags FROM record;
               INSERT INTO record_tag (tag, key, seq)
                   SELECT 't, "u"', key, seq FROM record;"#,
        )?;
        Ok(())
    })
    .unwrap();
    drop(link);
    assert_eq!(version(&store), 1);
    (store, file)
}

#[test]
fn migrating_twice_is_migrating_once() {
    let store = Store::new();
    store.save(P, "a", "b");
    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let kind = Kind::level(&file);
    inner.pool.maintain(&file.path, &kind).unwrap();
    let mut steps = LEVEL.to_vec();
    steps.push(LATER);
    let newer = Kind {
        steps: &steps,
        ..kind
    };
    for _ in 0..2 {
        inner.pool.maintain(&file.path, &newer).unwrap();
        assert_eq!(version(&store), i64::try_from(steps.len()).unwrap());
        store
            .by_hand(P)
            .query_row("SELECT count(*) FROM later", [], |_| Ok(()))
            .unwrap();
        assert!(newer.check(&store.by_hand(P), &inner.sealer).unwrap());
    }
}

#[test]
fn a_migration_that_fails_in_the_middle_leaves_the_file_as_it_was_and_in_use() {
    let (store, file) = first_schema();
    let inner = &store.storage.inner;
    let old = Kind {
        steps: &LEVEL[..1],
        ..Kind::level(&file)
    };
    // The first of the missing steps succeeds; the second fails half-way.
    let broken = Kind {
        steps: &[
            LEVEL[0],
            LEVEL[1],
            "CREATE TABLE half (x INTEGER) STRICT; DELETE FROM record; SELECT no_such_function()",
        ],
        ..old
    };
    for mode in [Mode::Read, Mode::Write] {
        let taken = pool(&store).take(&file.path, &broken, mode, file.place(), None);
        unavailable(taken);
        assert_eq!(version(&store), 1);
        assert!(store.by_hand(P).prepare("SELECT * FROM half").is_err());
        assert!(store.by_hand(P).prepare("SELECT * FROM erased").is_err());
        assert!(old.check(&store.by_hand(P), &inner.sealer).unwrap());
    }
    // The program that it failed for is replaced by one that can.
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("old words"));
    assert_eq!(version(&store), i64::try_from(LEVEL.len()).unwrap());
}

#[test]
fn a_store_of_the_first_schema_keeps_all_it_has_and_gets_what_is_new() {
    let (store, _) = first_schema();
    let memory = live(store.agent(P).fetch(P, "a").unwrap());
    assert_eq!(memory.tags, ["t, \"u\""]);
    assert_eq!(memory.updated_at, at(-99));
    let mut shelves = store.agent(P);
    let stale = shelves.stale(P, at(0), None, 9).unwrap();
    assert_eq!(stale.items, std::slice::from_ref(&memory));
    shelves.stamp(&memory.id, None).unwrap();
    assert!(shelves.stale(P, at(0), None, 9).unwrap().items.is_empty());
    assert_eq!(shelves.search(P, "words", 0, 9).unwrap().items.len(), 1);
    store.storage.events("main", P).unwrap();
}

#[test]
fn a_reader_that_meets_an_older_schema_has_it_migrated_first() {
    let (store, _) = first_schema();
    // No session at this level: the file is opened for reading alone.
    assert_eq!(store.seen(C, P, "a").as_deref(), Some("old words"));
    assert_eq!(version(&store), i64::try_from(LEVEL.len()).unwrap());
    assert!(!store.path(C).exists());
}

#[test]
fn an_older_program_is_told_that_the_store_is_newer() {
    let (store, file) = first_schema();
    let inner = &store.storage.inner;
    let mut steps = LEVEL.to_vec();
    steps.push(LATER);
    let newer = Kind {
        steps: &steps,
        ..Kind::level(&file)
    };
    let link = pool(&store)
        .take(&file.path, &newer, Mode::Read, file.place(), None)
        .unwrap()
        .unwrap();
    link.run(|db| Ok(db.query_row("SELECT count(*) FROM later", [], |_| Ok(()))?))
        .unwrap();
    let text = unavailable(store.agent(P).fetch(P, "a"));
    assert!(text.contains("newer Remora"), "{text}");
    assert!(newer.check(&store.by_hand(P), &inner.sealer).unwrap());
}

#[test]
fn of_eight_that_open_an_older_store_at_once_one_migrates_it_and_all_go_on() {
    let (store, file) = first_schema();
    let mut steps = LEVEL.to_vec();
    // Would fail if it was ever done twice.
    steps.push(LATER);
    let newer = Kind {
        steps: &steps,
        ..Kind::level(&file)
    };
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            // A pool of its own, as another process would have.
            let (pool, file, barrier) = (pool(&store), &file, &barrier);
            scope.spawn(move || {
                let mode = if number % 2 == 0 {
                    Mode::Read
                } else {
                    Mode::Write
                };
                barrier.wait();
                let link = pool
                    .take(&file.path, &newer, mode, file.place(), None)
                    .unwrap()
                    .unwrap();
                let content: String = link
                    .run(|db| Ok(db.query_row("SELECT content FROM record", [], |row| row.get(0))?))
                    .unwrap();
                assert_eq!(content, "old words");
            });
        }
    });
    assert_eq!(version(&store), i64::try_from(steps.len()).unwrap());
}

#[test]
fn eight_stores_that_write_to_an_older_file_at_once_lose_nothing() {
    let (store, _) = first_schema();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let (root, barrier) = (store.root(), &barrier);
            scope.spawn(move || {
                let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
                barrier.wait();
                let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
                shelves.put(&draft(&format!("k{number}"), "x")).unwrap();
            });
        }
    });
    assert_eq!(store.agent(P).counts(P).unwrap().live, 9);
    assert_eq!(store.storage.events("main", P).unwrap().len(), 8);
}
