//! The sessions.

use std::fs;

use super::*;
use crate::storage::{ControlPlane as _, NewSession};

fn new(name: &str, clearance: Level) -> NewSession {
    NewSession {
        name: name.to_owned(),
        agent: "main".to_owned(),
        clearance,
        origin: Origin::User,
    }
}

#[test]
fn a_session_begins_at_public_and_is_made_once() {
    let store = Store::new();
    let (row, made) = store.storage.create(&new("s", R), at(0)).unwrap();
    assert!(made);
    assert_eq!((row.taint, row.clearance, row.observed), (P, R, None));
    let (again, made) = store.storage.create(&new("s", P), at(9)).unwrap();
    assert!(!made);
    assert_eq!(again, row);
    assert_eq!(store.storage.load("s").unwrap(), Some(row));
    assert_eq!(store.storage.load("t").unwrap(), None);
}

#[test]
fn taint_rises_and_never_falls_also_across_restarts() {
    let store = Store::new();
    store.storage.create(&new("s", R), at(0)).unwrap();
    assert_eq!(store.storage.raise("s", C, at(1)).unwrap().taint, C);
    let row = store.storage.raise("s", I, at(2)).unwrap();
    assert_eq!((row.taint, row.updated_at), (C, at(1)));
    let again = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
    assert_eq!(again.load("s").unwrap().unwrap().taint, C);
}

#[test]
fn a_raise_above_the_clearance_unlocks_nothing_and_is_remembered() {
    let store = Store::new();
    store.storage.create(&new("s", I), at(0)).unwrap();
    let row = store.storage.raise("s", R, at(1)).unwrap();
    assert_eq!((row.taint, row.observed), (P, Some(R)));
    let row = store.storage.raise("s", C, at(2)).unwrap();
    assert_eq!((row.taint, row.observed), (P, Some(R)));
    let events = store.storage.events("main", R).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, "raise");
    assert_eq!(events[0].detail.as_deref(), Some("above-clearance"));
    assert_eq!(store.storage.events("main", C).unwrap(), []);
}

#[test]
fn a_raise_is_written_to_the_trail_of_the_level_raised_to_and_once() {
    let store = Store::new();
    store.storage.create(&new("s", R), at(0)).unwrap();
    for _ in 0..3 {
        store.storage.raise("s", C, at(1)).unwrap();
        store.storage.raise("s", P, at(1)).unwrap();
    }
    let events = store.storage.events("main", C).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].session.as_str(), events[0].at), ("s", at(1)));
    assert!(!store.path(P).exists() && !store.path(R).exists());
}

#[test]
fn origin_only_falls() {
    let store = Store::new();
    store.storage.create(&new("s", R), at(0)).unwrap();
    let lowered = store
        .storage
        .lower_origin("s", Origin::Tool, at(1))
        .unwrap();
    assert_eq!(lowered.origin, Origin::Tool);
    let row = store
        .storage
        .lower_origin("s", Origin::User, at(2))
        .unwrap();
    assert_eq!(row, lowered);
}

#[test]
fn no_session_is_not_found() {
    let store = Store::new();
    for error in [
        store.storage.raise("x", C, at(0)).unwrap_err(),
        store
            .storage
            .lower_origin("x", Origin::Tool, at(0))
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn any_changed_column_fails_the_seal() {
    for change in [
        "taint = 'RESTRICTED'",
        "taint = 'restricted'",
        "clearance = 'RESTRICTED'",
        "origin = 'USER'",
        "agent = 'other'",
        "name = 't'",
        "observed = NULL",
        "created_at = '2020-01-01 00:00:00.000'",
        "updated_at = '2020-01-01 00:00:00.000'",
        "seal = zeroblob(32)",
    ] {
        let store = Store::new();
        store
            .storage
            .create(
                &NewSession {
                    origin: Origin::Agent,
                    ..new("s", I)
                },
                at(0),
            )
            .unwrap();
        store.storage.raise("s", C, at(1)).unwrap();
        let db = Connection::open(store.root().join("sessions.db")).unwrap();
        db.execute(&format!("UPDATE session SET {change}"), [])
            .unwrap();
        let name = if change.starts_with("name") { "t" } else { "s" };
        let text = unavailable(store.storage.load(name));
        assert!(text.contains("seal"), "{change}: {text}");
        unavailable(store.storage.raise(name, R, at(2)));
        unavailable(store.storage.list());
    }
}

#[test]
fn a_row_swapped_with_another_sessions_fails_its_seal() {
    let store = Store::new();
    store.storage.create(&new("a", R), at(0)).unwrap();
    store.storage.create(&new("b", R), at(0)).unwrap();
    store.storage.raise("a", R, at(0)).unwrap();
    let db = Connection::open(store.root().join("sessions.db")).unwrap();
    db.execute_batch(
        "UPDATE session SET (taint, updated_at, seal) =
             (SELECT taint, updated_at, seal FROM session WHERE name = 'a') WHERE name = 'b'",
    )
    .unwrap();
    unavailable(store.storage.load("b"));
    assert_eq!(store.storage.load("a").unwrap().unwrap().taint, R);
}

#[test]
fn a_control_plane_that_is_gone_replaced_or_damaged_refuses() {
    let store = Store::new();
    store.storage.create(&new("s", R), at(0)).unwrap();
    store.storage.check().unwrap();
    let path = store.root().join("sessions.db");
    let kept = store.folder.path().join("kept.db");
    fs::rename(&path, &kept).unwrap();
    let text = unavailable(store.storage.load("s"));
    assert!(text.contains("sessions.db"), "{text}");
    unavailable(store.storage.check());
    unavailable(store.storage.create(&new("t", R), at(0)));
    assert!(!path.exists());
    fs::copy(&kept, &path).unwrap();
    unavailable(store.storage.load("s"));
    unavailable(store.storage.check());

    let store = Store::new();
    drop(store.storage);
    let root = store.folder.path().join("store");
    fs::write(
        root.join("sessions.db"),
        "not a database, but long enough to be one",
    )
    .unwrap();
    let text = unavailable(SqliteStorage::open(&root, SqliteOptions::default()));
    assert!(text.contains("sessions.db"), "{text}");
}

#[test]
fn a_newer_control_plane_is_refused() {
    let store = Store::new();
    Connection::open(store.root().join("sessions.db"))
        .unwrap()
        .pragma_update(None, "user_version", 7)
        .unwrap();
    let text = unavailable(SqliteStorage::open(&store.root(), SqliteOptions::default()));
    assert!(text.contains("newer Remora"), "{text}");
}

#[test]
fn sessions_are_listed_by_name() {
    let store = Store::new();
    for name in ["b", "a", "ä"] {
        store.storage.create(&new(name, R), at(0)).unwrap();
    }
    let names: Vec<String> = store
        .storage
        .list()
        .unwrap()
        .into_iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(names, ["a", "b", "ä"]);
    let bad = store.storage.create(&new(" x", R), at(0)).unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn nothing_is_raised_without_a_line_in_the_audit_trail() {
    let store = Store::new();
    store.storage.create(&new("s", R), at(0)).unwrap();
    store.save(C, "a", "b");
    store
        .by_hand(C)
        .pragma_update(None, "user_version", 9)
        .unwrap();
    let storage = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
    unavailable(storage.raise("s", C, at(1)));
    assert_eq!(storage.load("s").unwrap().unwrap().taint, P);
}
