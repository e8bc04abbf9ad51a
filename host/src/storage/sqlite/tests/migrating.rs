//! How an older file becomes a newer one.

use std::sync::{Arc, Barrier};
use std::thread;

use super::super::connection::{Mode, Pool};
use super::super::layout::LevelFile;
use super::super::record::Record;
use super::super::schema::{Kind, LEVEL};
use super::*;
use crate::search::analyser::VERSION;

pub(super) fn analyser(store: &Store, file: &LevelFile) -> String {
    Kind::level(file)
        .meta(&store.by_hand(P), &store.storage.inner.sealer, "analyser")
        .unwrap()
        .unwrap()
}

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

/// The analyser of the schemas before the third.
const PORTER: &str = "porter unicode61 1";

/// A store whose PUBLIC file is as the first schema wrote it, with one record.
fn first_schema() -> (Store, LevelFile) {
    older(1)
}

/// A store whose PUBLIC file is as an older schema wrote it, with one record.
fn older(schema: usize) -> (Store, LevelFile) {
    let store = Store::new();
    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let kind = Kind {
        steps: &LEVEL[..schema],
        ..Kind::level(&file)
    };
    inner
        .layout
        .make_level(&file, |path| inner.pool.maintain(path, &kind))
        .unwrap();
    let record = Record {
        seq: 1,
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
    // As those programs did it, which knew no other index.
    let db = store.by_hand(P);
    kind.set_meta(&db, &inner.sealer, "analyser", PORTER)
        .unwrap();
    db.execute(
        "INSERT INTO record (seq, id, key, tags, origin, standing, session, version,
             created_at, updated_at, hides_lower, supersedes, seal, content)
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?7, 0, ?8, ?9, ?10)",
        rusqlite::params![
            record.id,
            record.key,
            record.tags,
            record.origin,
            record.standing,
            record.session,
            record.created_at,
            record.supersedes,
            record.encode(&inner.book(&file)).finish().as_slice(),
            record.content,
        ],
    )
    .unwrap();
    db.execute_batch(
        r#"INSERT INTO record_tag VALUES ('t, "u"', 'a', 1);
           INSERT INTO memory_fts (rowid, key, content, tags)
           SELECT seq, key, content, tags FROM indexed_memory;
           INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"#,
    )
    .unwrap();
    drop(db);
    assert_eq!(version(&store), i64::try_from(schema).unwrap());
    (store, file)
}

/// All that a file says: its tables, and the rows of all but the vocabularies.
pub(super) fn dump(db: &Connection) -> Vec<String> {
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let mut all =
        texts("SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY name");
    all.extend(texts(
        "SELECT CAST(user_version AS TEXT) FROM pragma_user_version",
    ));
    let plain = "SELECT name FROM pragma_table_list
                 WHERE schema = 'main' AND type IN ('table', 'shadow')
                 AND name NOT GLOB 'sqlite_*' ORDER BY name";
    for table in texts(plain) {
        let columns = texts(&format!(
            "SELECT 'quote(' || group_concat('\"' || name || '\"', ') || quote(') || ')'
             FROM pragma_table_info('{table}')"
        ));
        all.extend(texts(&format!("SELECT {} FROM \"{table}\"", columns[0])));
    }
    all
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
    for schema in [1, 2] {
        let (store, file) = older(schema);
        // The first of the missing steps succeed; the last fails half-way, or what
        // follows them does.
        for last in [
            "CREATE TABLE half (x INTEGER) STRICT; DELETE FROM record; SELECT no_such_function()",
            "UPDATE record SET tags = '{}'",
        ] {
            let broken = Kind {
                steps: &[LEVEL[0], LEVEL[1], LEVEL[2], last],
                ..Kind::level(&file)
            };
            let before = dump(&store.by_hand(P));
            for mode in [Mode::Read, Mode::Write] {
                let taken = pool(&store).take(&file.path, &broken, mode, file.place(), None);
                unavailable(taken);
                assert!(dump(&store.by_hand(P)) == before);
            }
        }
        assert_eq!(version(&store), i64::try_from(schema).unwrap());
        // The program that it failed for is replaced by one that can.
        assert_eq!(store.seen(P, P, "a").as_deref(), Some("old words"));
        assert_eq!(version(&store), i64::try_from(LEVEL.len()).unwrap());
    }
}

#[test]
fn a_store_of_an_older_schema_keeps_all_it_has_and_gets_what_is_new() {
    for schema in [1, 2] {
        let (store, file) = older(schema);
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
        let gone = "SELECT count(*) FROM sqlite_schema
                    WHERE name GLOB 'memory_fts*' OR name IN ('memory_terms', 'indexed_memory')";
        let left: i64 = store
            .by_hand(P)
            .query_row(gone, [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 0);
        assert_eq!(analyser(&store, &file), VERSION);
        let verified = store.storage.operator(at(0)).verify(None, &mut |_| ());
        // The trail does not tell of a record that no program saved.
        let findings = verified.unwrap().findings;
        let checks: Vec<&str> = findings.iter().map(|found| found.check.as_str()).collect();
        assert_eq!(checks, ["missing"], "{findings:?}");
    }
}

#[test]
fn a_reader_that_meets_an_older_schema_has_it_migrated_first() {
    for schema in [1, 2] {
        let (store, _) = older(schema);
        // No session at this level: the file is opened for reading alone.
        assert_eq!(store.seen(C, P, "a").as_deref(), Some("old words"));
        assert_eq!(version(&store), i64::try_from(LEVEL.len()).unwrap());
        assert!(!store.path(C).exists());
    }
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
