//! The audit trail.

use super::*;
use crate::storage::{Event, HostDecided, Notable};

fn events(store: &Store) -> Vec<Event> {
    store.storage.events("main", C).unwrap()
}

fn eventful() -> Store {
    let store = Store::new();
    store.save(C, "secret key", "secret content");
    store.save(C, "secret key", "other content");
    store
        .agent(C)
        .note(Notable::ArgumentIgnored(HostDecided::Taint))
        .unwrap();
    store.agent(C).note(Notable::WriteRefused).unwrap();
    store.agent(C).retire("secret key", true).unwrap();
    store
}

#[test]
fn every_write_and_note_is_a_line() {
    let store = eventful();
    let all = events(&store);
    let told: Vec<(u64, &str, Option<&str>, bool)> = all
        .iter()
        .map(|event| {
            let key = event.key.as_deref() == Some("secret key");
            (
                event.number,
                event.kind.as_str(),
                event.detail.as_deref(),
                key,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, "save", Some("created"), true),
            (2, "save", Some("updated"), true),
            (3, "argument-ignored", Some("taint"), false),
            (4, "write-refused", None, false),
            (5, "delete", Some("hide-lower"), true),
        ]
    );
    assert!(
        all.iter()
            .all(|event| event.level == C && event.session == "test")
    );
    assert!(
        all.iter()
            .all(|event| event.at == at(0) && event.origin == Origin::Agent)
    );
    assert_eq!(store.storage.events("main", P).unwrap(), []);
    assert_eq!(store.storage.events("nobody", C).unwrap(), []);
}

#[test]
fn it_holds_no_words() {
    let store = eventful();
    let db = store.by_hand(C);
    let all: Vec<String> = db
        .prepare(
            "SELECT concat_ws(' ', number, at, kind, session, origin, record, hex(digest), detail,
                 hex(chain)) FROM event",
        )
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(all.len(), 5);
    assert!(!all.concat().contains("secret"));
}

#[test]
fn it_can_only_grow() {
    let store = eventful();
    let db = store.by_hand(C);
    for sql in [
        "UPDATE event SET kind = 'x'",
        "DELETE FROM event",
        "DELETE FROM event WHERE number = 5",
    ] {
        let error = db.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("append only"), "{error}");
    }
}

#[test]
fn whatever_is_done_to_it_by_hand_shows() {
    for (change, noticed_at_once) in [
        ("UPDATE event SET kind = 'other' WHERE number = 3", false),
        ("UPDATE event SET session = 'other' WHERE number = 1", false),
        (
            "UPDATE event SET digest = zeroblob(32) WHERE number = 1",
            false,
        ),
        ("UPDATE event SET detail = NULL WHERE number = 3", false),
        ("DELETE FROM event WHERE number = 2", false),
        ("DELETE FROM event WHERE number = 1", false),
        ("DELETE FROM event WHERE number = 5", true),
        ("DELETE FROM event", true),
        (
            "INSERT INTO event SELECT 6, at, kind, session, origin, record, digest, detail, chain FROM event WHERE number = 5",
            true,
        ),
        (
            "UPDATE event SET number = -number; UPDATE event SET number = 6 + number",
            true,
        ),
        (
            "UPDATE meta SET value = '4 ' || substr(value, 3) WHERE name = 'audit_head'",
            true,
        ),
        (
            "DELETE FROM event; DELETE FROM meta WHERE name = 'audit_head'",
            true,
        ),
    ] {
        let store = eventful();
        let db = store.by_hand(C);
        db.execute_batch("DROP TRIGGER event_never_changes; DROP TRIGGER event_never_goes")
            .unwrap();
        db.execute_batch(change).unwrap();
        let text = unavailable(store.storage.events("main", C));
        assert!(text.contains("altered outside Remora"), "{change}: {text}");
        assert!(text.contains("confidential.db"), "{text}");
        if noticed_at_once {
            unavailable(store.agent(C).put(&draft("k", "x")));
        }
    }
}

#[test]
fn a_key_is_told_only_while_its_record_stands_and_only_if_it_is_the_same() {
    let store = Store::new();
    store.save(C, "k", "x");
    store
        .by_hand(C)
        .execute("UPDATE record SET key = 'other'", [])
        .unwrap();
    let text = unavailable(store.storage.events("main", C));
    assert!(text.contains("another key"), "{text}");
    store.by_hand(C).execute("DELETE FROM record", []).unwrap();
    assert_eq!(events(&store)[0].key, None);
    assert!(events(&store)[0].record.is_some());
}
