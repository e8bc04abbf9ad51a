//! A backup becomes the store again.

use std::fs;

use super::super::operator::{Purge, RestoreOptions, RestoreReport};
use super::backup::{copy_tree, crashes, restore};
use super::*;
use crate::storage::{ControlPlane as _, SessionRow};

/// What a store says of everything that is kept, but for its own audit trail.
pub(super) fn text(root: &Path) -> String {
    let storage = SqliteStorage::open(root, SqliteOptions::default()).unwrap();
    let mut text = Vec::new();
    let report = storage
        .operator(at(0))
        .export(None, None, &mut text, &mut |_| ())
        .unwrap();
    assert_eq!(report.damaged, 0, "{report:?}");
    let text = String::from_utf8(text).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.contains("\"type\":\"event\""));
    lines.map(|line| format!("{line}\n")).collect()
}

fn force(backup: &str, root: &Path) -> Result<RestoreReport, Error> {
    let options = RestoreOptions::default().force(true);
    SqliteStorage::restore(
        Path::new(backup),
        root,
        at(2_000_000),
        &options,
        &mut |_| (),
    )
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    error.to_string()
}

pub(super) fn verify(root: &Path) {
    let storage = SqliteStorage::open(root, SqliteOptions::default()).unwrap();
    let found = storage.operator(at(0)).verify(None, &mut |_| ()).unwrap();
    assert!(found.is_sound(), "{found:?}");
}

fn sessions(root: &Path) -> Vec<SessionRow> {
    let storage = SqliteStorage::open(root, SqliteOptions::default()).unwrap();
    storage.list().unwrap()
}

/// A store with something of everything.
pub(super) fn rich() -> Store {
    let store = Store::new();
    store.save(P, "plain", "words");
    store.save(P, "changed", "the first");
    store.save(P, "changed", "the second");
    store.save(P, "deleted", "gone");
    store.agent(P).retire("deleted", false).unwrap();
    let old = store.save(P, "old", "Berlin");
    let mut shelves = store.user(I);
    let new = Draft {
        supersedes: vec![old.id],
        tags: vec!["a,b".to_owned(), "c \"d\"".to_owned()],
        source: Some("a letter".to_owned()),
        expires_at: Some(at(86_400)),
        ..draft("new", "Bonn, 用户身份 \u{1f980}")
    };
    shelves.put(&new).unwrap();
    store.save(C, "plain", "secret words");
    store.agent(C).retire("plain", true).unwrap();
    let confirmed = store.save(I, "confirmed", "true");
    let mut shelves = store.later(C, 60);
    shelves.stamp(&confirmed.id, Some("a call")).unwrap();
    shelves.fetch(I, "confirmed").unwrap();
    shelves.record_use(&[confirmed.id]);
    let mut shelves = store.open(access(P, Origin::Tool));
    shelves.put(&draft("fetched", "from a page")).unwrap();
    store.user(P).put(&draft("said", "by the person")).unwrap();
    store.agent(P).put(&draft("said", "by the model")).unwrap();
    let other = Access {
        agent: "Ann Lee".to_owned(),
        ..access(P, Origin::User)
    };
    store.open(other).put(&draft("plain", "Ann's")).unwrap();
    store.new_session("work", C);
    store
}

#[test]
fn restored_into_an_empty_folder_a_backup_is_the_store_again() {
    let store = rich();
    let backups = folder();
    let backup = store.backup_at(0, backups.path()).unwrap();
    let elsewhere = folder();
    // A folder that is there and one that is not; one with what mkfs leaves.
    fs::create_dir_all(elsewhere.path().join("1")).unwrap();
    fs::create_dir_all(elsewhere.path().join("3/lost+found")).unwrap();
    for name in ["1", "2/deep", "3"] {
        let root = elsewhere.path().join(name);
        let report = restore(&backup.folder, &root).unwrap();
        assert!(!report.replaced);
        assert_eq!(report.files.len(), 4);
        assert_eq!(text(&root), text(&store.root()));
        assert_eq!(sessions(&root), store.storage.list().unwrap());
        verify(&root);
        let names = files(&root);
        assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
        let restored = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
        let mut shelves = restored.open(access(I, Origin::Agent)).unwrap();
        shelves.put(&draft("more", "after it")).unwrap();
        let last = restored.events("main", P).unwrap().pop().unwrap();
        assert_eq!(
            (last.kind.as_str(), last.session.as_str()),
            ("export", "operator")
        );
    }
}

#[test]
fn a_store_in_use_is_not_replaced() {
    let store = rich();
    let backups = folder();
    let backup = store.backup_at(0, backups.path()).unwrap();
    let root = store.root();
    let before = text(&root);
    for try_it in [restore as fn(String, &Path) -> _, |backup, root| {
        force(&backup, root)
    }] {
        let text = refused(try_it(backup.folder.clone(), &root));
        assert!(text.contains("open in another process"), "{text}");
    }
    assert_eq!(text(&root), before);
    let Store { folder, storage } = store;
    storage
        .open(access(P, Origin::Agent))
        .unwrap()
        .put(&draft("x", "y"))
        .unwrap();
    drop(storage);
    force(&backup.folder, &root).unwrap();
    drop(folder);
}

/// A store that nobody has open, with its backup.
fn closed(make: impl FnOnce(&Store)) -> (tempfile::TempDir, PathBuf, String) {
    let store = Store::new();
    make(&store);
    let backup = store
        .backup_at(0, &store.folder.path().join("backups"))
        .unwrap();
    let root = store.root();
    let Store { folder, storage } = store;
    drop(storage);
    (folder, root, backup.folder)
}

fn again(root: &Path) -> SqliteStorage {
    SqliteStorage::open(root, SqliteOptions::default()).unwrap()
}

fn put(root: &Path, taint: Level, key: &str, content: &str) -> Receipt {
    let storage = again(root);
    let mut shelves = storage.open(access(taint, Origin::Agent)).unwrap();
    shelves.put(&draft(key, content)).unwrap()
}

fn seen(root: &Path, taint: Level, level: Level, key: &str) -> Option<String> {
    let storage = again(root);
    content(
        storage
            .open(access(taint, Origin::Agent))
            .unwrap()
            .fetch(level, key)
            .unwrap(),
    )
}

#[test]
fn a_store_that_is_as_old_or_only_checked_and_copied_since_is_replaced_without_force() {
    let (folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
    });
    let operator = again(&root);
    operator
        .operator(at(1))
        .backup(&folder.path().join("more"), &mut |_| ())
        .unwrap();
    operator.operator(at(1)).verify(None, &mut |_| ()).unwrap();
    operator
        .operator(at(1))
        .export(None, None, &mut Vec::new(), &mut |_| ())
        .unwrap();
    drop(operator);
    let report = restore(&backup, &root).unwrap();
    assert!(report.replaced && report.warnings.is_empty(), "{report:?}");
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("b"));
}

#[test]
fn a_newer_store_is_replaced_only_by_force() {
    let changes: [fn(&Path); 9] = [
        |root| {
            let new = crate::storage::NewSession {
                name: "t".to_owned(),
                agent: "main".to_owned(),
                clearance: R,
                origin: Origin::User,
            };
            drop(again(root).create(&new, at(9)).unwrap());
        },
        |root| drop(again(root).lower_origin("s", Origin::Tool, at(9)).unwrap()),
        |root| {
            let storage = again(root);
            let mut shelves = storage.open(access(P, Origin::User)).unwrap();
            let id = live(shelves.fetch(P, "a").unwrap()).id;
            shelves.stamp(&id, None).unwrap();
        },
        |root| {
            let storage = again(root);
            let mut shelves = storage.open(access(P, Origin::User)).unwrap();
            shelves.retire("a", false).unwrap();
        },
        |root| {
            let prune = super::super::operator::Prune::default();
            let storage = again(root);
            let pruned = storage
                .operator(at(90_000))
                .prune(None, &prune, &mut |_| ())
                .unwrap();
            assert_eq!(pruned[0].removed(), 1);
        },
        |root| drop(put(root, P, "a", "newer")),
        |root| drop(put(root, C, "only here", "newer")),
        |root| drop(again(root).raise("s", R, at(9)).unwrap()),
        |root| {
            again(root)
                .operator(at(9))
                .purge(None, &Purge::key("a"), Duration::from_secs(5), &mut |_| ())
                .unwrap();
        },
    ];
    for change in changes {
        let (_folder, root, backup) = closed(|store| {
            store.save(P, "a", "b");
            store.agent(P).put(&super::expiring_at("over", 9)).unwrap();
            store.new_session("s", I);
        });
        change(&root);
        let before = text(&root);
        let text_of = refused(restore(&backup, &root));
        assert!(text_of.contains("newer"), "{text_of}");
        assert_eq!(text(&root), before);
        verify(&root);
        force(&backup, &root).unwrap();
        // Nothing of the old files is left beside the new ones.
        let names = files(&root);
        assert!(
            names
                .iter()
                .all(|name| name.ends_with(".db") || name == "store.key"),
            "{names:?}"
        );
        verify(&root);
    }
}

#[test]
fn a_store_that_went_another_way_since_is_replaced_only_by_force() {
    let (folder, root, first) = closed(|store| drop(store.save(P, "a", "b")));
    for number in 0..3 {
        put(&root, P, "lost", &format!("{number}"));
    }
    let backups = folder.path().join("more");
    let second = again(&root).operator(at(9)).backup(&backups, &mut |_| ());
    let second = second.unwrap().folder;
    force(&first, &root).unwrap();
    // Its trail is shorter than the backup's, then as long, then longer.
    for number in 0..6 {
        let text_of = refused(restore(&second, &root));
        assert!(text_of.contains("newer"), "{text_of}");
        assert_eq!(seen(&root, P, P, "lost"), None);
        put(&root, P, "other", &format!("{number}"));
    }
    force(&second, &root).unwrap();
    verify(&root);
}

#[test]
fn another_store_is_replaced_only_by_force() {
    let (_folder, root, _) = closed(|store| drop(store.save(P, "a", "mine")));
    let (_other, _, backup) = closed(|store| drop(store.save(P, "a", "other")));
    let text = refused(restore(&backup, &root));
    assert!(text.contains("another one"), "{text}");
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("mine"));
    force(&backup, &root).unwrap();
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("other"));
    verify(&root);
}

#[test]
fn what_was_purged_stays_erased_and_its_words_are_nowhere_in_the_restored_store() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "quagga one");
        store.save(P, "a", "quagga two");
        let receipt = store.save(P, "b", "kept");
        store.save(I, "c", "quagga three");
        let mut shelves = store.agent(C);
        shelves.stamp(&receipt.id, Some("a source")).unwrap();
        let quagga = live(shelves.fetch(I, "c").unwrap());
        shelves.stamp(&quagga.id, Some("quagga four")).unwrap();
    });
    let storage = again(&root);
    for key in ["a", "c"] {
        storage
            .operator(at(9))
            .purge(None, &Purge::key(key), Duration::from_secs(5), &mut |_| ())
            .unwrap();
    }
    drop(storage);
    let report = force(&backup, &root).unwrap();
    let erased: Vec<u64> = report.files.iter().map(|file| file.erased).collect();
    assert_eq!(erased, [2, 1, 0]);
    for name in files(&root) {
        let bytes = fs::read(root.join(&name)).unwrap();
        let found = bytes.windows(6).any(|window| window == b"quagga");
        assert!(!found, "{name}");
    }
    verify(&root);
    assert_eq!(seen(&root, C, P, "b").as_deref(), Some("kept"));
    assert_eq!(seen(&root, C, P, "a"), None);
    // Nor does a second restore bring it back.
    force(&backup, &root).unwrap();
    assert_eq!(seen(&root, C, I, "c"), None);
}

#[test]
fn everything_from_a_purged_session_stays_erased_with_its_stamps() {
    let (_folder, root, backup) = closed(|store| {
        let kept = store.save(P, "a", "kept");
        let mut poison = store.open(Access {
            session: "poison".to_owned(),
            ..access(P, Origin::Agent)
        });
        poison.put(&draft("b", "quagga")).unwrap();
        poison.stamp(&kept.id, Some("quagga")).unwrap();
    });
    again(&root)
        .operator(at(9))
        .purge(
            None,
            &Purge::everything_from("poison"),
            Duration::from_secs(5),
            &mut |_| (),
        )
        .unwrap();
    force(&backup, &root).unwrap();
    for name in files(&root) {
        let bytes = fs::read(root.join(&name)).unwrap();
        assert!(
            !bytes.windows(6).any(|window| window == b"quagga"),
            "{name}"
        );
    }
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("kept"));
    verify(&root);
}

#[test]
fn what_was_superseded_since_stays_superseded_and_edges_stay() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "zebra");
        store.save(P, "low", "okapi");
        store.save(P, "same", "words");
    });
    put(&root, P, "a", "another animal");
    let storage = again(&root);
    let mut shelves = storage.open(access(C, Origin::Agent)).unwrap();
    let low = live(shelves.fetch(P, "low").unwrap());
    shelves
        .put(&Draft {
            supersedes: vec![low.id],
            ..draft("high", "something else")
        })
        .unwrap();
    drop(shelves);
    drop(storage);
    let report = force(&backup, &root).unwrap();
    let public = &report.files[0];
    assert_eq!((public.superseded, public.edges), (1, 0), "{report:?}");
    // The backup has no such file: it is made for the edge.
    assert_eq!(
        (report.files[1].level, report.files[1].edges),
        (C, 1),
        "{report:?}"
    );
    let storage = again(&root);
    let mut shelves = storage.open(access(C, Origin::Agent)).unwrap();
    assert!(shelves.fetch(P, "a").unwrap().is_none());
    assert!(shelves.search(P, "zebra", 0, 9).unwrap().items.is_empty());
    assert!(shelves.search(P, "okapi", 0, 9).unwrap().items.is_empty());
    assert!(shelves.fetch(P, "same").unwrap().is_some());
    // From below the edge nothing hides it.
    let mut below = storage.open(access(P, Origin::Agent)).unwrap();
    assert_eq!(
        content(below.fetch(P, "low").unwrap()).as_deref(),
        Some("okapi")
    );
    drop((shelves, below, storage));
    verify(&root);
}

#[test]
fn keys_whose_versions_are_all_newer_or_superseded_are_counted_where_they_were_seen() {
    let (_folder, root, backup) = closed(|store| {
        for key in ["changed", "twice", "deleted", "same", "low", "merged"] {
            store.save(P, key, "words");
        }
        store.save(C, "own", "words");
        store.agent(P).put(&super::expiring_at("over", 5)).unwrap();
    });
    put(&root, P, "changed", "since");
    put(&root, P, "twice", "since");
    put(&root, P, "twice", "and again");
    put(&root, P, "over", "since");
    let storage = again(&root);
    let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
    shelves.retire("deleted", false).unwrap();
    drop(shelves);
    let mut shelves = storage.open(access(C, Origin::Agent)).unwrap();
    let ids = [(P, "low"), (P, "merged"), (C, "own")]
        .map(|(level, key)| live(shelves.fetch(level, key).unwrap()).id);
    shelves
        .put(&Draft {
            supersedes: ids.to_vec(),
            ..draft("new", "words")
        })
        .unwrap();
    drop((shelves, storage));
    let report = force(&backup, &root).unwrap();
    let vacant: Vec<_> = report
        .files
        .iter()
        .map(|file| (file.level, file.vacant))
        .collect();
    // What was only deleted is back; what has expired was not there either.
    assert_eq!(vacant, [(P, 2), (C, 3)], "{report:?}");
    for (taint, level, key, there) in [
        (P, P, "changed", false),
        (P, P, "twice", false),
        (P, P, "deleted", true),
        (P, P, "same", true),
        (P, P, "low", true),
        (C, P, "low", false),
        (C, P, "merged", false),
        (C, C, "own", false),
    ] {
        assert_eq!(seen(&root, taint, level, key).is_some(), there, "{key}");
    }
    // Its words are told all the same, and it is written down how many there are.
    let storage = again(&root);
    let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
    let history = shelves.versions(P, "changed", None, 9).unwrap().items;
    assert_eq!(history.len(), 1);
    let events = storage.events("main", P).unwrap();
    let line = events.last().unwrap();
    assert_eq!(line.key, None);
    assert!(
        line.detail.as_deref().unwrap().ends_with(" vacant=2"),
        "{line:?}"
    );
    drop((shelves, storage));
    // Nothing more is lost when it is done again.
    let report = force(&backup, &root).unwrap();
    assert_eq!(report.files[0].vacant, 2);
    verify(&root);
}

#[test]
fn a_tombstone_that_gave_way_to_a_newer_version_hides_again() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "k", "below");
        store.user(C).retire("k", true).unwrap();
    });
    let storage = again(&root);
    let mut shelves = storage.open(access(C, Origin::User)).unwrap();
    shelves.put(&draft("k", "above")).unwrap();
    drop((shelves, storage));
    force(&backup, &root).unwrap();
    assert_eq!(seen(&root, C, C, "k").as_deref(), Some("†"));
    verify(&root);
}

#[test]
fn a_backup_is_no_store_and_stays_as_it_was_when_it_is_checked() {
    let (folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
        store.save(C, "c", "d");
    });
    let backup = Path::new(&backup);
    let bytes = || -> Vec<(String, Vec<u8>)> {
        files(backup)
            .into_iter()
            .map(|name| (name.clone(), fs::read(backup.join(name)).unwrap()))
            .collect()
    };
    let before = bytes();
    let check = || {
        let options = SqliteOptions::default();
        SqliteStorage::verify_backup(backup, at(9), &options, &mut |_| ()).unwrap()
    };
    let text = refused(SqliteStorage::open(backup, SqliteOptions::default()));
    assert!(
        text.contains("is a backup") && text.contains(" restore "),
        "{text}"
    );
    let found = check();
    assert!(found.is_sound(), "{found:?}");
    assert_eq!((found.files, found.records), (3, 2));
    assert!(bytes() == before);
    assert!(SqliteStorage::is_backup(backup) && !SqliteStorage::is_backup(&root));

    // Nor is another one restored over it.
    let other = folder.path().join("other");
    copy_tree(backup, &other);
    let error = force(&other.display().to_string(), backup).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(bytes() == before);
    restore(backup, &folder.path().join("new")).unwrap();

    for (file, what) in [
        ("agents/main/public.db", "not as the backup's manifest says"),
        ("agents/main/strange.db", "besides"),
        ("store.key", "can't be read"),
    ] {
        let path = backup.join(file);
        // Renamed, since a file keeps its mode then.
        let kept = backup.with_extension("kept");
        let moved = fs::rename(&path, &kept);
        if file != "store.key" {
            let bytes = fs::read(&kept).unwrap_or_default();
            fs::write(&path, [bytes, vec![0]].concat()).unwrap();
        }
        let found = check();
        assert!(found.findings[0].what.contains(what), "{found:?}");
        match moved {
            Ok(()) => fs::rename(&kept, &path).unwrap(),
            Err(_) => fs::remove_file(&path).unwrap(),
        }
    }
    assert!(check().is_sound());
}

#[test]
fn a_store_that_has_backups_in_it_is_a_store_all_the_same() {
    let (folder, root, backup) = closed(|store| drop(store.save(P, "a", "b")));
    copy_tree(Path::new(&backup), &root.join("remora-kept"));
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("b"));
    // Where there is none, none is made among them.
    let text = refused(SqliteStorage::open(
        &folder.path().join("backups"),
        SqliteOptions::default(),
    ));
    assert!(text.contains("holds backups, and is no store"), "{text}");
    assert_eq!(
        fs::read_dir(folder.path().join("backups")).unwrap().count(),
        1
    );
}

/// The chain that trips others.
#[test]
fn a_superseded_memory_never_comes_back_through_all_that_trips_others() {
    let (folder, root, _) = closed(|store| {
        let a = store.save(P, "a", "zebra stripes");
        let b = Draft {
            supersedes: vec![a.id],
            ..draft("b", "no stripes")
        };
        store.agent(P).put(&b).unwrap();
        store.agent(P).retire("b", false).unwrap();
    });
    let later = |days: i64| at(days * 86_400);
    let storage = again(&root);
    let prune = super::super::operator::Prune::default().deleted_after(Duration::ZERO);
    storage
        .operator(later(1))
        .prune(None, &prune, &mut |_| ())
        .unwrap();
    storage
        .operator(later(2))
        .purge(None, &Purge::key("b"), Duration::from_secs(5), &mut |_| ())
        .unwrap();
    let backup = storage
        .operator(later(3))
        .backup(&folder.path().join("b2"), &mut |_| ())
        .unwrap();
    drop(storage);
    let elsewhere = folder.path().join("elsewhere");
    for root in [&root, &elsewhere] {
        force(&backup.folder, root).unwrap();
        let storage = again(root);
        let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
        assert!(shelves.search(P, "zebra", 0, 9).unwrap().items.is_empty());
        assert!(shelves.fetch(P, "a").unwrap().is_none());
        let history = shelves.versions(P, "a", None, 9).unwrap().items;
        assert_eq!(history.len(), 1);
        assert!(history[0].superseded_at.is_some());
        let edges = shelves.edges(P, &[history[0].id.clone()]).unwrap();
        assert_eq!(edges.len(), 1);
        assert_eq!(edges[0].new_key, None);
    }
}

#[test]
fn no_session_falls_through_a_restore() {
    let (_folder, root, backup) = closed(|store| {
        store.new_session("raised", P);
        store.new_session("heard", P);
        store.new_session("as it was", I);
        store.new_session("above", P);
    });
    let storage = again(&root);
    storage.raise("raised", C, at(5)).unwrap();
    storage.lower_origin("heard", Origin::Tool, at(5)).unwrap();
    let young = crate::storage::NewSession {
        name: "young".to_owned(),
        agent: "main".to_owned(),
        clearance: I,
        origin: Origin::Agent,
    };
    storage.create(&young, at(5)).unwrap();
    storage.raise("young", R, at(5)).unwrap();
    let before = storage.list().unwrap();
    drop(storage);
    let report = force(&backup, &root).unwrap();
    assert_eq!(
        (
            report.sessions.total,
            report.sessions.raised,
            report.sessions.kept
        ),
        (5, 2, 1)
    );
    assert_eq!(sessions(&root), before);
}

#[test]
fn where_the_sessions_are_lost_each_restored_one_counts_as_having_seen_all_it_may() {
    type Damage = fn(&Path);
    let damages: [Damage; 2] = [
        |root| fs::remove_file(root.join("sessions.db")).unwrap(),
        |root| fs::write(root.join("sessions.db"), "no database").unwrap(),
    ];
    for damage in damages {
        let (_folder, root, backup) = closed(|store| {
            store.save(P, "a", "b");
            store.new_session("s", P);
        });
        damage(&root);
        let text = refused(restore(&backup, &root));
        assert!(text.contains("can't be read"), "{text}");
        let report = force(&backup, &root).unwrap();
        assert_eq!(report.warnings.len(), 1, "{report:?}");
        assert_eq!(sessions(&root)[0].taint, R);
        assert_eq!(seen(&root, P, P, "a").as_deref(), Some("b"));
    }
}

#[test]
fn a_store_with_a_damaged_file_is_replaced_by_force_and_the_report_says_what_was_not_read() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
        store.save(I, "a", "c");
    });
    fs::write(root.join("agents/main/public.db"), vec![7; 9000]).unwrap();
    refused(restore(&backup, &root));
    let report = force(&backup, &root).unwrap();
    assert!(report.warnings[0].contains("public.db"), "{report:?}");
    assert_eq!(seen(&root, I, P, "a").as_deref(), Some("b"));
    verify(&root);
}

#[test]
fn rows_that_fail_their_seals_are_passed_over_by_force_and_by_nothing_else() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
        store.save(P, "c", "d");
        store.new_session("s", P);
    });
    put(&root, P, "a", "newer");
    put(&root, P, "c", "newer");
    Connection::open(root.join("agents/main/public.db"))
        .unwrap()
        .execute_batch(
            "UPDATE record SET source = 'x' WHERE superseded_at IS NOT NULL AND key = 'a'",
        )
        .unwrap();
    Connection::open(root.join("sessions.db"))
        .unwrap()
        .execute_batch("UPDATE session SET taint = 'INTERNAL'")
        .unwrap();
    refused(restore(&backup, &root));
    let report = force(&backup, &root).unwrap();
    assert_eq!(report.warnings.len(), 2, "{report:?}");
    assert!(report.warnings[0].contains("1 rows") || report.warnings[1].contains("1 rows"));
    assert_eq!(report.files[0].superseded, 1);
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("b"));
    assert_eq!(seen(&root, P, P, "c"), None);
    assert_eq!(sessions(&root)[0].taint, R);
    verify(&root);
}

#[test]
fn a_backup_that_is_not_whole_is_not_restored_at_all() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 9] = [
        ("not as the backup's manifest", |backup| {
            let path = backup.join("agents/main/public.db");
            let mut bytes = fs::read(&path).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("not as the backup's manifest", |backup| {
            let path = backup.join("sessions.db");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 4096]).unwrap();
        }),
        ("use another backup", |backup| {
            fs::remove_file(backup.join("store.key")).unwrap()
        }),
        ("is missing, which the backup's manifest names", |backup| {
            fs::remove_file(backup.join("agents/main/internal.db")).unwrap();
        }),
        ("besides", |backup| {
            fs::copy(
                backup.join("agents/main/public.db"),
                backup.join("agents/main/restricted.db"),
            )
            .unwrap();
        }),
        ("no backup", |backup| {
            fs::remove_file(backup.join("manifest.json")).unwrap()
        }),
        ("can't be read as a manifest", |backup| {
            fs::write(backup.join("manifest.json"), "{}").unwrap();
        }),
        ("its manifest names", |backup| {
            edit(backup, |text| {
                text.replace("agents/main/public.db", "agents/../../public.db")
            });
        }),
        ("format", |backup| {
            edit(backup, |text| {
                text.replace("\"version\": 1", "\"version\": 2")
            });
        }),
    ];
    for (number, (says, damage)) in damages.into_iter().enumerate() {
        let (folder, root, backup) = closed(|store| {
            store.save(P, "a", "b");
            store.save(I, "a", "c");
        });
        damage(Path::new(&backup));
        let before = text(&root);
        for root in [&root, &folder.path().join("new")] {
            let error = SqliteStorage::restore(
                Path::new(&backup),
                root,
                at(9),
                &RestoreOptions::default().force(true),
                &mut |_| (),
            )
            .unwrap_err();
            let error = error.to_string();
            let says = says.to_lowercase();
            assert!(error.to_lowercase().contains(&says), "{number}: {error}");
            assert!(!error.contains("Put it back"), "{number}: {error}");
        }
        assert_eq!(text(&root), before);
        let new = folder.path().join("new");
        assert!(!new.exists() || files(&new).is_empty(), "{number}");
    }
}

fn edit(backup: &Path, change: impl FnOnce(&str) -> String) {
    let path = backup.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed);
    fs::write(path, changed).unwrap();
}

/// Writes a manifest that fits whatever the backup holds, as somebody with the
/// backup in their hands could.
fn forge(backup: &Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(backup.join("manifest.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&change(&text)).unwrap();
    for file in manifest["files"].as_array_mut().unwrap() {
        let bytes = fs::read(backup.join(file["path"].as_str().unwrap())).unwrap();
        file["bytes"] = bytes.len().into();
        file["blake3"] = blake3::hash(&bytes).to_hex().to_string().into();
    }
    fs::write(backup.join("manifest.json"), manifest.to_string()).unwrap();
}

#[test]
fn no_file_comes_out_on_another_level_or_of_another_agent() {
    for (level, agent) in [(P, "main"), (R, "main"), (C, "other")] {
        let (folder, root, backup) = closed(|store| {
            store.save(C, "a", "secret");
        });
        let backup = Path::new(&backup);
        let there = format!("agents/{agent}/{}.db", level.file_stem());
        fs::create_dir_all(backup.join("agents").join(agent)).unwrap();
        fs::rename(
            backup.join("agents/main/confidential.db"),
            backup.join(&there),
        )
        .unwrap();
        forge(backup, |text| {
            text.replace("agents/main/confidential.db", &there)
                .replace("CONFIDENTIAL", level.name())
                .replace("\"agent\": \"main\"", &format!("\"agent\": \"{agent}\""))
        });
        for root in [&root, &folder.path().join("new")] {
            let text = unavailable(force(backup.to_str().unwrap(), root));
            assert!(text.contains("another"), "{text}");
        }
        assert_eq!(seen(&root, C, C, "a").as_deref(), Some("secret"));
        assert_eq!(seen(&root, C, P, "a"), None);
    }
}

#[test]
fn a_backup_with_an_altered_record_is_not_restored() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
    });
    let backup_path = Path::new(&backup);
    Connection::open(backup_path.join("agents/main/public.db"))
        .unwrap()
        .execute_batch("UPDATE record SET origin = 'USER'")
        .unwrap();
    forge(backup_path, str::to_owned);
    unavailable(force(&backup, &root));
    assert_eq!(seen(&root, P, P, "a").as_deref(), Some("b"));
}

#[test]
fn a_folder_with_other_things_in_it_is_no_place_for_a_store() {
    let (folder, _, backup) = closed(|store| {
        store.save(P, "a", "b");
    });
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("letter.txt"), "dear").unwrap();
    let error = restore(&backup, &home).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(files(&home), ["letter.txt"]);
    // The folder that holds the backups is named by mistake.
    let parent = Path::new(&backup).parent().unwrap();
    let error = restore(parent, &folder.path().join("new")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&backup), "{error}");
}

#[test]
fn a_crash_at_any_point_of_a_restore_leaves_the_store_as_it_was_or_as_it_is_to_be() {
    let (folder, root, backup) = closed(|store| {
        store.save(P, "a", "before");
        store.save(I, "a", "before");
        store.new_session("s", I);
    });
    put(&root, P, "a", "after");
    put(&root, C, "b", "after");
    let other = folder.path().join("other");
    copy_tree(&root, &other);
    let old = text(&root);
    let mut done = None;
    let found = crashes(&root, || done = Some(force(&backup, &root).unwrap()));
    let new = text(&root);
    assert_ne!(old, new);
    let (mut before, mut after) = (0, 0);
    let points: Vec<&str> = found.iter().map(|(point, _)| point.as_str()).collect();
    for point in [
        "restore-copied",
        "restore-built",
        "restore-decided",
        "restore-between",
        "restore-moved",
    ] {
        assert!(points.contains(&point), "{points:?}");
    }
    for (point, crash) in &found {
        let root = crash.path().join("store");
        // Opening alone tidies up.
        verify(&root);
        let names = files(&root);
        assert!(
            names.iter().all(|name| !name.starts_with('.')),
            "{point}: {names:?}"
        );
        match text(&root) {
            text if text == old => before += 1,
            text if text == new => after += 1,
            text => panic!("{point}: {text}"),
        }
        // And a second run gets there.
        force(&backup, &root).unwrap();
        assert_eq!(text(&root), new, "{point}");
    }
    assert!(before >= 2 && after >= 7, "{before} {after}");
    // Where nothing was there before.
    let fresh = folder.path().join("fresh");
    let found = crashes(folder.path(), || drop(restore(&backup, &fresh).unwrap()));
    for (point, crash) in found {
        let root = crash.path().join("store/fresh");
        restore(&backup, &root).unwrap_or_else(|error| panic!("{point}: {error}"));
        verify(&root);
    }
}

#[test]
fn a_store_is_not_opened_while_it_is_restored() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
    });
    let place = root.clone();
    let tries = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&tries);
    super::super::operator::watch(Some(Box::new(move |_| {
        let text = unavailable(SqliteStorage::open(&place, SqliteOptions::default()));
        assert!(text.contains("being restored"), "{text}");
        unavailable(restore(backup_of(&place), &place));
        counted.set(counted.get() + 1);
    })));
    restore(&backup, &root).unwrap();
    super::super::operator::watch(None);
    assert!(tries.get() >= 5);
    verify(&root);
}

#[test]
fn who_writes_to_a_restored_file_at_once_is_not_disturbed_by_the_locks_on_the_old_one() {
    let (_folder, root, backup) = closed(|store| {
        store.save(P, "a", "b");
    });
    let path = root.join("sessions.db");
    let open = std::rc::Rc::new(std::cell::RefCell::new(None));
    let kept = std::rc::Rc::clone(&open);
    let place = path.clone();
    super::super::operator::watch(Some(Box::new(move |point| {
        if point == "restore-moved" && kept.borrow().is_none() {
            let db = Connection::open(&place).unwrap();
            db.execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE probe (x); INSERT INTO probe VALUES (1)",
            )
            .unwrap();
            *kept.borrow_mut() = Some(db);
        }
    })));
    restore(&backup, &root).unwrap();
    super::super::operator::watch(None);
    let rows = |db: &Connection| -> i64 {
        db.query_row("SELECT count(*) FROM probe", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(rows(&Connection::open(&path).unwrap()), 1);
    let db = open.take().unwrap();
    db.execute_batch("INSERT INTO probe VALUES (2)").unwrap();
    drop(db);
    assert_eq!(rows(&Connection::open(&path).unwrap()), 2);
}

fn backup_of(root: &Path) -> PathBuf {
    let backups = root.parent().unwrap().join("backups");
    fs::read_dir(backups)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}
