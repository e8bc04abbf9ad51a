//! A store that the first schema wrote, kept under `tests/fixtures/schema-1`.

use std::fs;
use std::sync::Barrier;
use std::thread;

use super::*;
use crate::storage::ControlPlane as _;

/// A copy of that store. Git keeps neither its files' modes nor empty logs.
pub(super) fn first_schema() -> Store {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), &target).unwrap();
                #[cfg(unix)]
                {
                    use std::os::unix::fs::PermissionsExt as _;
                    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
                }
            }
        }
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/schema-1/store");
    let folder = folder();
    let root = folder.path().join("store");
    copy(&kept, &root);
    let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
    Store { folder, storage }
}

fn of(agent: &str, taint: Level) -> Access {
    Access {
        agent: agent.to_owned(),
        // The fixture was made by a clock of its own.
        now: Instant::from_millis(4_000_000_000_000).unwrap(),
        ..access(taint, Origin::User)
    }
}

fn versions(store: &Store) -> Vec<i64> {
    let storage = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
    let files = storage.operator(at(0)).files(None).unwrap();
    files
        .into_iter()
        .map(|file| {
            Connection::open(file.path)
                .unwrap()
                .query_row("PRAGMA user_version", [], |row| row.get(0))
                .unwrap()
        })
        .collect()
}

fn check(store: &Store) {
    let mut shelves = store.open(of("default", C));
    let deploy = live(shelves.fetch(P, "deploy").unwrap());
    assert_eq!(
        deploy.tags,
        [
            "[\"a\",\"b\"]",
            "back\\slash",
            "he said \"ops\"",
            "it's",
            "machine,learning"
        ]
    );
    assert_eq!(deploy.source.as_deref(), Some("the wiki, \"releases\""));
    assert_eq!(deploy.version, 3);
    assert_eq!(
        content(shelves.fetch(C, "deploy").unwrap()).as_deref(),
        Some("†")
    );
    assert_eq!(
        content(shelves.fetch(C, "salary").unwrap()).as_deref(),
        Some("Ada earns 95k.")
    );
    let tag = |shelves: &mut Box<dyn Shelves>, tag: &str| {
        let filter = crate::storage::Filter {
            tags: vec![tag.to_owned()],
            excerpt_bytes: 1000,
            ..Default::default()
        };
        shelves.page(P, &filter, None, 100).unwrap().items.len()
    };
    // Tags are compared whole, whatever is in them.
    assert_eq!(tag(&mut shelves, "machine,learning"), 1);
    assert_eq!(tag(&mut shelves, "he said \"ops\""), 1);
    assert_eq!(tag(&mut shelves, "machine"), 0);
    assert_eq!(tag(&mut shelves, "ops"), 0);
    let found = shelves.search(P, "Wednesdays", 0, 10).unwrap().items;
    assert_eq!(found.len(), 1);
    // Its letters lead to Wednesdays, but not to the version that says so.
    let superseded = shelves.search(P, "Mondays", 0, 10).unwrap().items;
    assert!(superseded.iter().all(|found| found.memory.id == deploy.id));
    let by_hand = Connection::open(store.root().join("agents/default/public.db")).unwrap();
    for (term, records) in [("wednesday", 1), ("monday", 0), ("quagga", 0)] {
        let holding: i64 = by_hand
            .query_row(
                "SELECT count(*) FROM memory_word_terms WHERE term = ?1",
                [term],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(holding, records, "{term}");
    }
    let deleted = shelves.search(P, "quagga", 0, 10).unwrap().items;
    assert!(deleted.is_empty());
    let history = shelves.versions(P, "deploy", None, 10).unwrap().items;
    let kept: Vec<u64> = history.iter().map(|memory| memory.version).collect();
    assert_eq!(kept, [3, 2, 1]);
    let counts = shelves.counts(P).unwrap();
    assert_eq!((counts.live, counts.pending, counts.quarantined), (2, 1, 1));
    let ann = live(store.open(of("Ann Lee", P)).fetch(P, "deploy").unwrap());
    assert_eq!(ann.tags, ["machine,learning"]);
    let work = store.storage.load("work").unwrap().unwrap();
    assert_eq!((work.taint, work.clearance), (C, C));
    for (agent, level) in [("default", P), ("default", C), ("Ann Lee", P)] {
        assert!(!store.storage.events(agent, level).unwrap().is_empty());
    }
}

/// F027: doobidoo/mcp-memory-service #83
#[test]
fn a_store_of_the_first_schema_is_migrated_with_tags_versions_tombstones_and_sessions_intact() {
    let store = first_schema();
    assert_eq!(versions(&store), [1, 1, 1]);
    check(&store);
    assert_eq!(versions(&store), [3, 3, 3]);
    let found = store
        .storage
        .operator(at(0))
        .verify(None, &mut |_| ())
        .unwrap();
    assert!(found.is_sound(), "{found:?}");
}

/// F025: stephenschoettler/hermes-lcm PR #346
#[test]
fn eight_that_start_at_once_on_a_store_of_the_first_schema_all_find_everything() {
    let store = first_schema();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let (root, barrier) = (store.root(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
                let mut shelves = storage.open(of("default", C)).unwrap();
                assert!(shelves.fetch(P, "deploy").unwrap().is_some());
                let mut shelves = storage.open(of("default", P)).unwrap();
                shelves.put(&draft(&format!("from {number}"), "x")).unwrap();
            });
        }
    });
    let counts = store.open(of("default", P)).counts(P).unwrap();
    assert_eq!(counts.live, 10);
}

#[test]
fn a_store_of_the_first_schema_whose_migration_fails_is_as_it_was_and_is_migrated_later() {
    let store = first_schema();
    let path = store.root().join("agents/default/public.db");
    // A table in the way of one that a later step makes.
    let by_hand = Connection::open(&path).unwrap();
    by_hand.execute_batch("CREATE TABLE erased (x)").unwrap();
    drop(by_hand);
    unavailable(store.open(of("default", P)).fetch(P, "deploy"));
    let by_hand = Connection::open(&path).unwrap();
    let version: i64 = by_hand
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    let stamps: i64 = by_hand
        .query_row(
            "SELECT count(*) FROM pragma_table_info('stamp') WHERE name = 'record_level'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!((version, stamps), (1, 0));
    // The other files are none the worse for it.
    assert!(
        store
            .open(of("default", C))
            .fetch(C, "salary")
            .unwrap()
            .is_some()
    );
    by_hand.execute_batch("DROP TABLE erased").unwrap();
    drop(by_hand);
    check(&store);
}

#[test]
fn a_backup_of_a_store_of_the_first_schema_is_one_of_the_newest() {
    let store = first_schema();
    let backups = folder();
    let report = store
        .storage
        .operator(at(0))
        .backup(backups.path(), &mut |_| ())
        .unwrap();
    let schemas: Vec<_> = report.files.iter().filter_map(|file| file.schema).collect();
    assert_eq!(schemas, [3, 3, 3, 1]);
}
