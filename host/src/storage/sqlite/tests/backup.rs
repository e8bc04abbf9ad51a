//! A copy of the whole store, taken while it is in use.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::operator::{BackupReport, watch};
use super::*;
use crate::storage::{ControlPlane as _, NewSession};

impl Store {
    pub(super) fn backup_at(&self, seconds: i64, to: &Path) -> Result<BackupReport, Error> {
        self.storage.operator(at(seconds)).backup(to, &mut |_| ())
    }

    pub(super) fn new_session(&self, name: &str, taint: Level) {
        let new = NewSession {
            name: name.to_owned(),
            agent: "main".to_owned(),
            clearance: R,
            origin: Origin::User,
        };
        self.storage.create(&new, at(0)).unwrap();
        self.storage.raise(name, taint, at(0)).unwrap();
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_backup_is_a_dated_folder_with_every_file_the_key_and_a_manifest() {
    let store = Store::new();
    store.save(C, "c", "d");
    store.save(P, "a", "b");
    store.new_session("s", I);
    let backups = folder();
    let report = store.backup_at(0, backups.path()).unwrap();
    let place = Path::new(&report.folder);
    let name = place.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("remora-2026") && name.ends_with("500Z"),
        "{name}"
    );
    // Lowest level first, sessions and the key last.
    let paths: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "agents/main/public.db",
            "agents/main/internal.db",
            "agents/main/confidential.db",
            "sessions.db",
            "store.key"
        ]
    );
    assert_eq!(
        files(place),
        [
            "agents/main/confidential.db",
            "agents/main/internal.db",
            "agents/main/public.db",
            "manifest.json",
            "sessions.db",
            "store.key"
        ]
    );
    for file in &report.files {
        let bytes = fs::read(place.join(&file.path)).unwrap();
        assert_eq!(file.bytes, bytes.len() as u64);
        assert_eq!(file.blake3, blake3::hash(&bytes).to_hex().to_string());
    }
    #[cfg(unix)]
    for path in files(place) {
        assert_eq!(mode(&place.join(&path)), 0o600, "{path}");
    }
    #[cfg(unix)]
    assert_eq!(mode(place), 0o700);
    let manifest = fs::read_to_string(place.join("manifest.json")).unwrap();
    for word in [
        "remora-backup",
        "\"level\": \"CONFIDENTIAL\"",
        "\"agent\": \"main\"",
        "\"schema\": 3",
    ] {
        assert!(manifest.contains(word), "{manifest}");
    }
    // A backup is known to both trails, and does nothing else.
    for level in [P, C] {
        let kinds: Vec<String> = store
            .storage
            .events("main", level)
            .unwrap()
            .into_iter()
            .map(|event| event.kind)
            .collect();
        assert_eq!(kinds, ["save", "backup"]);
    }
}

/// F075: tkraljevic/goEMM #11
#[test]
fn a_hundred_saves_that_no_checkpoint_has_seen_are_in_the_backup() {
    let store = Store::new();
    for i in 0..100 {
        store.save(P, &format!("k{i}"), "x");
    }
    assert!(
        fs::metadata(store.root().join("agents/main/public.db-wal"))
            .unwrap()
            .len()
            > 0
    );
    let backups = folder();
    let report = store.backup_at(0, backups.path()).unwrap();
    let elsewhere = folder();
    let root = elsewhere.path().join("store");
    restore(&report.folder, &root).unwrap();
    let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
    assert_eq!(
        storage
            .open(access(P, Origin::User))
            .unwrap()
            .counts(P)
            .unwrap()
            .live,
        100
    );
}

pub(super) fn restore(
    backup: impl AsRef<Path>,
    root: &Path,
) -> Result<super::super::operator::RestoreReport, Error> {
    SqliteStorage::restore(
        backup.as_ref(),
        root,
        at(1_000_000),
        &super::super::operator::RestoreOptions::default(),
        &mut |_| (),
    )
}

#[test]
fn every_backup_taken_while_four_write_verifies_and_holds_what_was_acknowledged_before_it() {
    // Fifty where there is time for it.
    let times = std::env::var("REMORA_TEST_BACKUPS").map_or(6, |times| times.parse().unwrap());
    let store = Store::new();
    let backups = folder();
    let acknowledged = Mutex::new(Vec::<(Level, String)>::new());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, level) in [P, P, I, C].into_iter().enumerate() {
            let (root, acknowledged, done) = (store.root(), &acknowledged, &done);
            scope.spawn(move || {
                let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
                for i in 0.. {
                    if done.load(Ordering::SeqCst) {
                        break;
                    }
                    let key = format!("{number}-{i}");
                    let mut shelves = storage.open(access(level, Origin::Agent)).unwrap();
                    shelves.put(&draft(&key, "some words")).unwrap();
                    acknowledged.lock().unwrap().push((level, key));
                    // Else the store outgrows what can be checked in a test.
                    thread::sleep(Duration::from_millis(3));
                }
            });
        }
        for i in 0..times {
            let before = acknowledged.lock().unwrap().clone();
            let report = store.backup_at(i, backups.path()).unwrap();
            let copy = SqliteStorage::open_any(Path::new(&report.folder), SqliteOptions::default())
                .unwrap();
            let found = copy.operator(at(0)).verify(None, &mut |_| ()).unwrap();
            assert!(found.is_sound(), "{found:?}");
            for (level, key) in &before {
                let mut shelves = copy.open(access(*level, Origin::Agent)).unwrap();
                assert!(shelves.fetch(*level, key).unwrap().is_some(), "{key}");
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(names(backups.path()).len() as i64, times);
}

#[test]
fn a_backup_that_fails_leaves_nothing_behind() {
    let store = Store::new();
    store.save(P, "a", "b");
    store.save(I, "a", "b");
    store
        .by_hand(I)
        .execute_batch("UPDATE record SET content = 'c'")
        .unwrap();
    let backups = folder();
    let text = unavailable(store.backup_at(0, backups.path()));
    assert!(
        text.contains("internal.db") && text.contains("verify"),
        "{text}"
    );
    assert_eq!(files(backups.path()), [""; 0]);
    assert_eq!(fs::read_dir(backups.path()).unwrap().count(), 0);
}

/// What a folder would be if the process died at each fault point of some work.
pub(super) fn crashes(root: &Path, work: impl FnOnce()) -> Vec<(String, tempfile::TempDir)> {
    let found = Rc::new(RefCell::new(Vec::new()));
    let (root, kept) = (root.to_owned(), Rc::clone(&found));
    watch(Some(Box::new(move |name| {
        let folder = folder();
        copy_tree(&root, &folder.path().join("store"));
        kept.borrow_mut().push((name.to_owned(), folder));
    })));
    work();
    watch(None);
    found.take()
}

pub(super) fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_a_crashed_backup_left_is_never_taken_for_one_and_goes_with_the_next() {
    let store = Store::new();
    store.save(P, "a", "b");
    store.save(I, "a", "b");
    let backups = folder();
    let crashes = crashes(backups.path(), || {
        store.backup_at(0, backups.path()).unwrap();
    });
    assert!(crashes.len() >= 4, "{crashes:?}");
    for (point, crash) in crashes {
        let left = crash.path().join("store");
        assert_eq!(names(&left).len(), 1, "{point}");
        assert!(names(&left)[0].ends_with(".tmp"), "{point}");
        store.backup_at(1, &left).unwrap();
        assert_eq!(names(&left).len(), 1, "{point}");
        assert!(
            names(&left)[0].ends_with("501Z") || names(&left)[0].ends_with("500Z"),
            "{point}"
        );
        restore(left.join(&names(&left)[0]), &crash.path().join("new")).unwrap();
    }
}

#[test]
fn a_backup_goes_nowhere_into_the_store_and_not_over_another_one() {
    let store = Store::new();
    store.save(P, "a", "b");
    let inside = store
        .backup_at(0, &store.root().join("backups"))
        .unwrap_err();
    assert_eq!(inside.kind(), ErrorKind::InvalidArgument);
    let backups = folder();
    let first = store.backup_at(0, backups.path()).unwrap();
    unavailable(store.backup_at(0, backups.path()));
    let found =
        SqliteStorage::open_any(Path::new(&first.folder), SqliteOptions::default()).unwrap();
    assert_eq!(
        found
            .open(access(P, Origin::User))
            .unwrap()
            .counts(P)
            .unwrap()
            .live,
        1
    );
}

#[test]
fn a_folder_that_can_not_be_made_is_named_with_the_reason() {
    let store = Store::new();
    store.save(P, "a", "b");
    let file = store.folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut wrong = vec![file.clone(), file.join("x")];
    if cfg!(target_os = "linux") {
        wrong.extend(["/proc/x", "/proc"].map(PathBuf::from));
    }
    for wrong in wrong {
        let text = unavailable(store.backup_at(0, &wrong));
        let says = format!("No backup can be made in {}: ", wrong.display());
        assert!(text.starts_with(&says), "{text}");
        assert!(!text.contains("Put it back"), "{text}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn a_backup_is_made_while_a_writer_holds_a_read_transaction_and_others_wait_their_turn() {
    let store = Store::new();
    store.save(P, "a", "b");
    let reader = store.by_hand(P);
    reader.execute_batch("BEGIN; SELECT * FROM record").unwrap();
    let backups = folder();
    store.backup_at(0, backups.path()).unwrap();
    store.save(P, "c", "d");
    drop(reader);
}

#[test]
fn the_lowest_level_of_every_agent_is_copied_before_any_higher_one() {
    let store = Store::new();
    for agent in ["ann", "main"] {
        for level in [C, P] {
            let access = Access {
                agent: agent.to_owned(),
                ..access(level, Origin::User)
            };
            store.open(access).put(&draft("a", "b")).unwrap();
        }
    }
    let backups = folder();
    let report = store.backup_at(0, backups.path()).unwrap();
    let paths: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "agents/ann/public.db",
            "agents/main/public.db",
            "agents/ann/confidential.db",
            "agents/main/confidential.db",
            "sessions.db",
            "store.key"
        ]
    );
}

#[cfg(unix)]
#[test]
fn while_a_backup_is_made_in_a_folder_another_one_touches_nothing_there() {
    let store = Store::new();
    store.save(P, "a", "b");
    let backups = folder();
    // What the other one has written so far.
    let unfinished = ".remora-20261130T010433000Z.tmp";
    fs::create_dir(backups.path().join(unfinished)).unwrap();
    let lock = fs::File::open(backups.path()).unwrap();
    lock.try_lock().unwrap();
    let text = unavailable(store.backup_at(0, backups.path()));
    assert!(text.contains("Another backup is being made"), "{text}");
    assert_eq!(names(backups.path()), [unfinished]);
    drop(lock);
    store.backup_at(0, backups.path()).unwrap();
    assert_eq!(names(backups.path()).len(), 1);
}
