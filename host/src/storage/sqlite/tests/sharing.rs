//! Several threads and processes on one store.

use std::sync::Barrier;
use std::thread;

use super::*;
use crate::storage::{ControlPlane as _, NewSession};

#[test]
fn eight_at_once_on_an_empty_path_make_one_store() {
    let folder = folder();
    let path = folder.path().join("deep/store");
    let barrier = Barrier::new(8);
    let made: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    // A store of its own, as another process would have.
                    let storage = SqliteStorage::open(path, SqliteOptions::default()).unwrap();
                    let new = NewSession {
                        name: "shared".to_owned(),
                        agent: "main".to_owned(),
                        clearance: R,
                        origin: Origin::Agent,
                    };
                    let (_, made) = storage.create(&new, at(0)).unwrap();
                    for i in 0..10 {
                        let mut shelves = storage.open(access(I, Origin::Agent)).unwrap();
                        let receipt = shelves.put(&draft(&format!("{number}-{i}"), "x")).unwrap();
                        assert_eq!(receipt.outcome, Outcome::Created);
                    }
                    usize::from(made)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(made, 1);
    let storage = SqliteStorage::open(&path, SqliteOptions::default()).unwrap();
    let counts = storage
        .open(access(I, Origin::Agent))
        .unwrap()
        .counts(I)
        .unwrap();
    assert_eq!(counts.live, 80);
    assert_eq!(storage.events("main", I).unwrap().len(), 80);
    let left: Vec<String> = files(&path)
        .into_iter()
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn of_many_saves_of_one_key_one_is_live_and_each_is_a_version() {
    let store = Store::new();
    thread::scope(|scope| {
        for number in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for i in 0..10 {
                    store.save(P, "one", &format!("{number} {i}"));
                }
            });
        }
    });
    assert_eq!(store.agent(P).counts(P).unwrap().live, 1);
    let versions: Vec<i64> = store
        .by_hand(P)
        .prepare("SELECT version FROM record ORDER BY version")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(versions, (1..=40).collect::<Vec<_>>());
}

#[test]
fn reading_goes_on_while_another_writes() {
    let store = Store::new();
    store.save(P, "a", "b");
    let writer = store.by_hand(P);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("b"));
    writer.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn a_lock_that_stays_is_busy_within_the_deadline() {
    let store = Store::new();
    store.save(P, "a", "b");
    let writer = store.by_hand(P);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::Instant::now();
    let mut shelves = store.open(Access {
        deadline: began + Duration::from_millis(100),
        ..access(P, Origin::Agent)
    });
    let text = unavailable(shelves.put(&draft("c", "d")));
    assert!(text.contains("busy"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_call_past_its_deadline_is_broken_off_and_its_connection_serves_the_next() {
    let store = Store::new();
    store.save(P, "a", "b");
    let mut late = store.open(Access {
        deadline: std::time::Instant::now(),
        ..access(P, Origin::Agent)
    });
    let text = unavailable(late.fetch(P, "a"));
    assert!(text.contains("took too long"), "{text}");
    drop(late);

    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let soon = std::time::Instant::now() + Duration::from_millis(50);
    let link = inner
        .reader(&file, file.place(), Some(soon))
        .unwrap()
        .unwrap();
    let text = unavailable(link.run(|db| {
        Ok(db.query_row(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
             SELECT count(*) FROM n",
            [],
            |_| Ok(()),
        )?)
    }));
    assert!(text.contains("took too long"), "{text}");
    assert!(soon.elapsed() < Duration::from_secs(2));
    inner.pool.give_back(link);
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("b"));
}

#[test]
fn a_connection_serves_one_call_after_another() {
    let store = Store::new();
    store.save(P, "a", "b");
    for _ in 0..100 {
        assert_eq!(store.seen(C, P, "a").as_deref(), Some("b"));
    }
    let idle = store.storage.inner.pool.idle();
    assert!(idle <= 4, "{idle}");
}
