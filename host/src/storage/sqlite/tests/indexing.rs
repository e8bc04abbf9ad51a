//! A file that another analyser indexed.

use std::sync::Barrier;
use std::thread;

use super::super::schema::Kind;
use super::migrating::{analyser, dump};
use super::operator::crashes;
use super::*;
use crate::search::analyser::VERSION;

/// What programs before this one wrote into `meta`.
const OLDER: [&str; 2] = ["porter unicode61 1", "remora 0"];

/// So many records have the same word.
const RECORDS: usize = 20;

/// A store whose PUBLIC file has the tables of this program, and was indexed by
/// another analyser, which knew other words.
fn indexed_by(name: &str) -> Store {
    let store = Store::new();
    for i in 0..RECORDS {
        store.save(P, &format!("k{i}"), "words");
    }
    let db = store.by_hand(P);
    Kind::level(&store.storage.inner.layout.level("main", P))
        .set_meta(&db, &store.storage.inner.sealer, "analyser", name)
        .unwrap();
    db.execute_batch(
        "INSERT INTO memory_words (memory_words) VALUES ('delete-all');
         INSERT INTO memory_grams (memory_grams) VALUES ('delete-all');
         DELETE FROM memory_key;
         INSERT INTO memory_words (rowid, content) SELECT 32 * seq, 'unicorn' FROM record;
         -- How often the file is indexed.
         CREATE TABLE tally (x);
         CREATE TRIGGER tally_key AFTER INSERT ON memory_key
             BEGIN INSERT INTO tally VALUES (1); END",
    )
    .unwrap();
    // No connection from before is left.
    let Store { folder, storage } = store;
    drop(storage);
    let storage =
        SqliteStorage::open(&folder.path().join("store"), SqliteOptions::default()).unwrap();
    Store { folder, storage }
}

fn tally(store: &Store) -> usize {
    let number: i64 = store
        .by_hand(P)
        .query_row("SELECT count(*) FROM tally", [], |row| row.get(0))
        .unwrap();
    usize::try_from(number).unwrap()
}

fn found(shelves: &mut dyn Shelves, query: &str) -> usize {
    shelves.search(P, query, 0, 100).unwrap().items.len()
}

fn assert_indexed(store: &Store) {
    let file = store.storage.inner.layout.level("main", P);
    assert_eq!(analyser(store, &file), VERSION);
    assert_eq!(tally(store), RECORDS, "it was not indexed just once");
    let mut shelves = store.agent(P);
    assert_eq!(found(&mut *shelves, "words"), RECORDS);
    assert_eq!(found(&mut *shelves, "k7"), 1);
    assert_eq!(found(&mut *shelves, "unicorn"), 0);
    store
        .by_hand(P)
        .execute_batch("DROP TRIGGER tally_key; DROP TABLE tally")
        .unwrap();
    let verified = store.storage.operator(at(0)).verify(None, &mut |_| ());
    assert_eq!(verified.unwrap().findings, []);
}

#[test]
fn what_an_older_analyser_indexed_is_indexed_again_once() {
    for older in OLDER {
        let store = indexed_by(older);
        assert_eq!(found(&mut *store.agent(P), "words"), RECORDS);
        store.agent(P).counts(P).unwrap();
        assert_indexed(&store);
    }
}

#[test]
fn a_reader_that_meets_an_older_analyser_finds_everything() {
    for older in OLDER {
        let store = indexed_by(older);
        // No session at this level: the file is opened for reading alone.
        assert_eq!(found(&mut *store.agent(C), "words"), RECORDS);
        assert!(!store.path(C).exists());
        assert_indexed(&store);
    }
}

#[test]
fn a_save_that_meets_an_older_analyser_is_found_among_the_others() {
    for older in OLDER {
        let store = indexed_by(older);
        store.save(P, "k0", "other words");
        assert_eq!(tally(&store), RECORDS + 1);
        assert_eq!(found(&mut *store.agent(P), "words"), RECORDS);
        assert_eq!(found(&mut *store.agent(P), "other"), 1);
    }
}

#[test]
fn of_eight_that_start_together_one_indexes_and_all_find_everything() {
    for older in OLDER {
        let store = indexed_by(older);
        let barrier = Barrier::new(8);
        thread::scope(|scope| {
            for number in 0..8 {
                let (root, barrier) = (store.root(), &barrier);
                scope.spawn(move || {
                    // A pool of its own, as another process would have.
                    let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
                    barrier.wait();
                    match number % 4 {
                        0 => {
                            let mut shelves = storage.open(access(C, Origin::Agent)).unwrap();
                            assert_eq!(found(&mut *shelves, "words"), RECORDS);
                        }
                        1 => {
                            let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
                            // As it is already: it writes nothing.
                            shelves.put(&draft("k3", "words")).unwrap();
                        }
                        2 => {
                            let operator = storage.operator(at(0));
                            assert!(operator.verify(None, &mut |_| ()).is_ok());
                        }
                        _ => {
                            let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
                            assert_eq!(found(&mut *shelves, "k7 words"), RECORDS);
                        }
                    }
                });
            }
        });
        assert_indexed(&store);
    }
}

#[test]
fn what_a_newer_analyser_indexed_is_refused_by_its_name_and_untouched() {
    let store = indexed_by("remora 999");
    let before = dump(&store.by_hand(P));
    let told = |text: &str| assert!(text.contains("remora 999"), "{text}");
    told(&unavailable(store.agent(P).search(P, "words", 0, 9)));
    told(&unavailable(store.agent(C).search(P, "words", 0, 9)));
    told(&unavailable(store.agent(P).put(&draft("a", "b"))));
    let operator = store.storage.operator(at(0));
    told(&unavailable(operator.reindex(None, &mut |_| ())));
    let findings = operator.verify(None, &mut |_| ()).unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    told(&findings[0].what);
    // Also by one that saw it when it was older still.
    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let text = inner
        .pool
        .maintain(&file.path, &Kind::level(&file))
        .map_err(|fault| file.place().say(fault));
    told(&unavailable(text));
    assert!(dump(&store.by_hand(P)) == before);
}

#[test]
fn a_crash_in_the_middle_leaves_the_file_as_it_was() {
    for older in OLDER {
        let store = indexed_by(older);
        let before = dump(&store.by_hand(P));
        let (_, copies, folder) = crashes(&store, || store.seen(P, P, "k0"));
        assert_eq!(copies.len(), RECORDS + 1);
        for (name, copy) in &copies {
            let copied = Connection::open(copy.join("agents/main/public.db")).unwrap();
            assert!(dump(&copied) == before, "{name}");
            let storage = SqliteStorage::open(copy, SqliteOptions::default()).unwrap();
            let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
            assert_eq!(found(&mut *shelves, "words"), RECORDS);
        }
        assert_indexed(&store);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_failure_in_the_middle_leaves_the_file_as_it_was() {
    for older in OLDER {
        let store = indexed_by(older);
        let change = |tags: &str| {
            let sql = "UPDATE record SET tags = ?1 WHERE key = 'k11'";
            store.by_hand(P).execute(sql, [tags]).unwrap();
        };
        change("[1]");
        let before = dump(&store.by_hand(P));
        unavailable(store.agent(P).fetch(P, "k0"));
        unavailable(store.agent(C).search(P, "words", 0, 9));
        unavailable(store.agent(P).put(&draft("a", "b")));
        assert!(dump(&store.by_hand(P)) == before);
        change("[]");
        assert_eq!(found(&mut *store.agent(P), "words"), RECORDS);
        assert_indexed(&store);
    }
}
