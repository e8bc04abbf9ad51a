//! A file that another analyser indexed.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use super::super::operator::Progress;
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
         CREATE TRIGGER tally_key AFTER UPDATE ON meta WHEN new.name = 'analyser'
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
    assert_eq!(tally(store), 1, "it was not indexed just once");
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
        assert_eq!(tally(&store), 1);
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

/// A program goes on with the connections it has, while a newer one is installed and
/// indexes the file.
#[test]
fn what_is_indexed_by_a_newer_analyser_meanwhile_is_neither_searched_nor_written() {
    for (name, value) in [("analyser", "remora 999"), ("schema", "999")] {
        let store = Store::new();
        store.save(P, "a", "words");
        assert_eq!(found(&mut *store.agent(P), "words"), 1);
        let mut held = store.agent(P);
        assert_eq!(found(&mut *held, "words"), 1);
        let file = store.storage.inner.layout.level("main", P);
        let db = store.by_hand(P);
        Kind::level(&file)
            .set_meta(&db, &store.storage.inner.sealer, name, value)
            .unwrap();
        if name == "schema" {
            db.pragma_update(None, "user_version", 999).unwrap();
        }
        let before = dump(&db);
        for _ in 0..2 {
            for error in [
                unavailable(store.agent(P).search(P, "words", 0, 9)),
                unavailable(store.agent(C).search(P, "words", 0, 9)),
                unavailable(store.agent(P).put(&draft("b", "c"))),
                unavailable(store.agent(P).retire("a", false)),
                unavailable(held.search(P, "other words", 0, 9)),
                unavailable(held.put(&draft("b", "c"))),
            ] {
                assert!(
                    error.contains("another version") || error.contains("999"),
                    "{error}"
                );
            }
        }
        // The second time it is opened, and said which.
        if name == "analyser" {
            let error = unavailable(store.agent(P).put(&draft("b", "c")));
            assert!(error.contains("remora 999"), "{error}");
        }
        assert!(dump(&db) == before);
    }
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

#[test]
fn whoever_watches_is_told_how_far_it_is_and_when_it_is_over() {
    let store = indexed_by("remora 0");
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let watched = SqliteOptions::default().watch(move || {
        let kept = Arc::clone(&kept);
        let over = Over(Arc::clone(&kept));
        Box::new(move |progress| {
            let _held = &over;
            kept.lock().unwrap().push(Some(progress));
        })
    });
    let storage = SqliteStorage::open(&store.root(), watched).unwrap();
    let open = || storage.open(access(C, Origin::Agent)).unwrap();
    assert_eq!(found(&mut *open(), "words"), RECORDS);
    let told_so_far = || -> Vec<Option<Told>> {
        let told = told.lock().unwrap();
        let of = |told: &Option<Progress>| {
            let told = told.as_ref()?;
            assert_eq!(told.agent.as_deref(), Some("main"));
            Some((told.step, told.level, told.done, told.total))
        };
        told.iter().map(of).collect()
    };
    let first = told_so_far();
    assert_eq!(
        first,
        [
            Some(("index", Some(P), 0, 20)),
            Some(("index", Some(P), 20, 20)),
            None
        ]
    );
    // Nobody is told anything where there is nothing to do, or a file is new.
    open().counts(P).unwrap();
    storage
        .open(access(C, Origin::Agent))
        .unwrap()
        .put(&draft("new", "words"))
        .unwrap();
    assert_eq!(told_so_far(), first);
}

/// The step, the level, how much is done, and of how much.
type Told = (&'static str, Option<Level>, u64, u64);

/// Notes its end.
struct Over(Arc<Mutex<Vec<Option<Progress>>>>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(None);
    }
}

/// Makes a backup of a folder of a store's shape, as the program that wrote its
/// files would have.
fn as_backup(root: &Path) {
    let listed: Vec<serde_json::Value> = files(root)
        .into_iter()
        .filter(|name| name != "manifest.json")
        .map(|name| {
            let path = root.join(&name);
            let bytes = std::fs::read(&path).unwrap();
            let mut listed = serde_json::json!({
                "path": name, "bytes": bytes.len(),
                "blake3": blake3::hash(&bytes).to_hex().to_string(),
            });
            if name.ends_with(".db") {
                let db = Connection::open(&path).unwrap();
                let number =
                    |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).unwrap() };
                listed["schema"] = number("PRAGMA user_version").into();
                if name.starts_with("agents/") {
                    let text =
                        |sql: &str| -> String { db.query_row(sql, [], |row| row.get(0)).unwrap() };
                    let meta =
                        |name: &str| text(&format!("SELECT value FROM meta WHERE name = '{name}'"));
                    listed["agent"] = meta("agent").into();
                    listed["level"] = meta("level").into();
                    listed["records"] = number("SELECT count(*) FROM record").into();
                }
            }
            listed
        })
        .collect();
    let manifest = serde_json::json!({
        "format": "remora-backup", "version": 1, "made_at": at(0).to_string(),
        "program": "0.1.0", "files": listed,
    });
    std::fs::write(root.join("manifest.json"), manifest.to_string()).unwrap();
}

/// A file by its name, with the digest of its bytes.
fn sums(root: &Path) -> Vec<(String, blake3::Hash)> {
    let sum = |name: String| {
        let bytes = std::fs::read(root.join(&name)).unwrap();
        (name, blake3::hash(&bytes))
    };
    files(root).into_iter().map(sum).collect()
}

fn check_backup(backup: &Path) -> crate::storage::sqlite::operator::Verification {
    let options = SqliteOptions::default();
    SqliteStorage::verify_backup(backup, at(0), &options, &mut |_| ()).unwrap()
}

fn restored(backup: &Path) -> Store {
    let folder = folder();
    let root = folder.path().join("store");
    let options = crate::storage::sqlite::operator::RestoreOptions::default();
    SqliteStorage::restore(backup, &root, at(1), &options, &mut |_| ()).unwrap();
    let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
    let found = storage.operator(at(0)).verify(None, &mut |_| ()).unwrap();
    assert_eq!(found.findings, []);
    Store { folder, storage }
}

/// A backup of a store with as many records, whose PUBLIC file says that an analyser
/// indexed it.
fn backup_by(name: &str) -> (tempfile::TempDir, PathBuf) {
    let store = Store::new();
    for i in 0..RECORDS {
        store.save(P, &format!("k{i}"), "words");
    }
    let backups = folder();
    let report = store
        .storage
        .operator(at(0))
        .backup(backups.path(), &mut |_| ())
        .unwrap();
    let backup = PathBuf::from(report.folder);
    let db = Connection::open(backup.join("agents/main/public.db")).unwrap();
    Kind::level(&store.storage.inner.layout.level("main", P))
        .set_meta(&db, &store.storage.inner.sealer, "analyser", name)
        .unwrap();
    db.execute_batch("INSERT INTO memory_words (memory_words) VALUES ('delete-all')")
        .unwrap();
    drop(db);
    as_backup(&backup);
    (backups, backup)
}

#[test]
fn a_backup_by_an_older_analyser_is_checked_without_a_change_and_restored_with_its_index() {
    for older in OLDER {
        let (_backups, backup) = backup_by(older);
        let before = sums(&backup);
        let checked = check_backup(&backup);
        assert_eq!(checked.findings, [], "{older}");
        assert_eq!(checked.notes.len(), 1);
        assert_eq!(checked.notes[0].file, "agents/main/public.db");
        assert!(checked.notes[0].what.contains("older Remora"));
        assert_eq!(sums(&backup), before);
        let store = restored(&backup);
        assert_eq!(found(&mut *store.agent(P), "words"), RECORDS);
        assert_eq!(sums(&backup), before);
    }
}

#[test]
fn a_backup_by_a_newer_analyser_is_told_by_its_name_and_not_restored() {
    let (_backups, backup) = backup_by("remora 999");
    let before = sums(&backup);
    let findings = check_backup(&backup).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].what.contains("remora 999"), "{findings:?}");
    let folder = folder();
    let options = crate::storage::sqlite::operator::RestoreOptions::default();
    let root = folder.path().join("store");
    let text = unavailable(SqliteStorage::restore(
        &backup,
        &root,
        at(1),
        &options,
        &mut |_| (),
    ));
    assert!(text.contains("remora 999"), "{text}");
    assert_eq!(sums(&backup), before);
}

#[test]
fn a_backup_of_the_first_schema_is_checked_without_a_change_and_restored_with_its_index() {
    let Store { folder, storage } = fixture::first_schema();
    drop(storage);
    let backup = folder.path().join("store");
    // A backup's files have no log.
    for name in files(&backup).iter().filter(|name| name.ends_with(".db")) {
        Connection::open(backup.join(name))
            .unwrap()
            .pragma_update(None, "journal_mode", "DELETE")
            .unwrap();
    }
    as_backup(&backup);
    let before = sums(&backup);
    let checked = check_backup(&backup);
    assert_eq!((checked.findings, checked.notes.len()), (vec![], 1));
    assert_eq!(sums(&backup), before);
    let store = restored(&backup);
    let mut shelves = store.open(Access {
        agent: "default".to_owned(),
        now: Instant::from_millis(4_000_000_000_000).unwrap(),
        ..access(P, Origin::User)
    });
    assert_eq!(found(&mut *shelves, "Wednesdays"), 1);
    assert_eq!(sums(&backup), before);
}

#[test]
fn a_backup_of_a_store_that_an_older_analyser_indexed_is_of_this_one() {
    let store = indexed_by("remora 0");
    store
        .by_hand(P)
        .execute_batch("DROP TRIGGER tally_key; DROP TABLE tally")
        .unwrap();
    let backups = folder();
    let operator = store.storage.operator(at(0));
    let report = operator.backup(backups.path(), &mut |_| ()).unwrap();
    let checked = check_backup(Path::new(&report.folder));
    assert_eq!((checked.findings, checked.notes), (vec![], vec![]));
}
