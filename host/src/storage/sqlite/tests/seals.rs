//! What was altered is never served.

use super::*;
use crate::storage::{Filter, Presence};

/// Every way of reading the record `k` of PUBLIC.
fn readings(store: &Store) -> Vec<(&'static str, Result<bool, Error>)> {
    let keys = ["k".to_owned()];
    let mut shelves = store.agent(P);
    vec![
        ("fetch", shelves.fetch(P, "k").map(|entry| entry.is_some())),
        (
            "page",
            shelves
                .page(P, &Filter::default(), None, 9)
                .map(|page| !page.items.is_empty()),
        ),
        (
            "search",
            shelves
                .search(P, "word", 0, 9)
                .map(|found| !found.items.is_empty()),
        ),
        (
            "present",
            shelves
                .present(P, &keys)
                .map(|told| told[0] != Presence::Absent),
        ),
    ]
}

#[test]
fn any_changed_column_of_a_record_fails_its_seal_on_every_path() {
    for change in [
        "id = '0123456789abcdef0123456789abcdef'",
        "tags = '[\"other\"]'",
        "origin = 'USER'",
        "source = 'me'",
        "source = NULL",
        "session = 'other'",
        "version = 7",
        "created_at = '2020-01-01 00:00:00.000'",
        "updated_at = '2020-01-01 00:00:00.000'",
        "confirmed_at = '2020-01-01 00:00:00.000'",
        "expires_at = NULL",
        "expires_at = '2099-01-01 00:00:00.000'",
        "supersedes = '[\"x\"]'",
        "content = 'word!'",
        "seal = zeroblob(32)",
    ] {
        let store = Store::new();
        let first = Draft {
            source: Some("s".to_owned()),
            expires_at: Some(at(999)),
            ..draft("k", "word")
        };
        store.agent(P).put(&first).unwrap();
        store
            .by_hand(P)
            .execute(&format!("UPDATE record SET {change}"), [])
            .unwrap();
        for (path, result) in readings(&store) {
            let text = unavailable(result);
            assert!(
                text.contains("altered outside Remora"),
                "{change}, {path}: {text}"
            );
            assert!(text.contains("public.db"), "{text}");
        }
        unavailable(store.agent(P).put(&draft("k", "other")));
        unavailable(store.agent(P).retire("k", false));
    }
}

#[test]
fn a_record_does_not_come_back_by_hand() {
    for (end, undo) in [
        ("superseded", "superseded_at = NULL"),
        ("deleted", "deleted_at = NULL"),
        ("quarantined", "standing = 'trusted'"),
    ] {
        let store = Store::new();
        match end {
            "quarantined" => {
                store
                    .open(access(P, Origin::Tool))
                    .put(&draft("k", "word"))
                    .unwrap();
            }
            "superseded" => {
                let old = store.save(P, "k", "word");
                let newer = Draft {
                    supersedes: vec![old.id],
                    ..draft("newer", "x")
                };
                store.agent(P).put(&newer).unwrap();
                store.by_hand(P).execute("DELETE FROM edge", []).unwrap();
            }
            _ => {
                store.save(P, "k", "word");
                store.agent(P).retire("k", false).unwrap();
            }
        }
        store
            .by_hand(P)
            .execute(&format!("UPDATE record SET {undo} WHERE key = 'k'"), [])
            .unwrap();
        for (path, result) in readings(&store) {
            // The index does not hold it, so a search just does not find it.
            assert!(matches!(result, Err(_) | Ok(false)), "{end}, {path}");
        }
        unavailable(store.agent(P).fetch(P, "k"));
    }
}

#[test]
fn a_record_under_another_key_fails_its_seal() {
    let store = Store::new();
    store.save(P, "a", "word");
    store
        .by_hand(P)
        .execute("UPDATE record SET key = 'k'", [])
        .unwrap();
    for (path, result) in readings(&store) {
        assert!(result.is_err(), "{path}");
    }
}

#[test]
fn a_record_moved_to_another_level_or_agent_fails_its_seal() {
    let store = Store::new();
    store.save(C, "k", "secret word");
    store.save(P, "x", "y");
    let db = store.by_hand(P);
    db.execute("ATTACH ?1 AS high", [store.path(C).to_str().unwrap()])
        .unwrap();
    db.execute_batch("INSERT INTO record SELECT seq + 10, id, key, tags, origin, standing, source, session, version,
        created_at, updated_at, confirmed_at, expires_at, superseded_at, deleted_at, hides_lower, supersedes, seal, content
        FROM high.record").unwrap();
    let text = unavailable(store.agent(P).fetch(P, "k"));
    assert!(
        text.contains("altered outside Remora") && !text.contains("secret"),
        "{text}"
    );
}

#[test]
fn a_tombstone_made_by_hand_fails_its_seal() {
    let store = Store::new();
    store.save(P, "k", "word");
    store
        .by_hand(P)
        .execute(
            "UPDATE record SET deleted_at = updated_at, hides_lower = 1",
            [],
        )
        .unwrap();
    unavailable(store.agent(P).fetch(P, "k"));
    unavailable(store.agent(P).present(P, &["k".to_owned()]));
}

#[test]
fn an_edge_made_by_hand_fails_its_seal() {
    let store = Store::new();
    let old = store.save(P, "k", "word");
    store.save(C, "x", "y");
    store
        .by_hand(C)
        .execute(
            "INSERT INTO edge VALUES (?1, 'n', 'PUBLIC', '2020-01-01 00:00:00.000', 's', zeroblob(32))",
            [old.id],
        )
        .unwrap();
    let text = unavailable(store.agent(C).fetch(P, "k"));
    assert!(
        text.contains("edge") && text.contains("confidential.db"),
        "{text}"
    );
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("word"));
}

#[test]
fn a_file_whose_description_was_changed_is_refused() {
    for name in ["level", "agent", "schema", "analyser", "audit_head"] {
        let store = Store::new();
        store.save(P, "k", "word");
        store
            .by_hand(P)
            .execute(
                "UPDATE meta SET seal = zeroblob(32) WHERE name = ?1",
                [name],
            )
            .unwrap();
        let storage = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
        let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
        unavailable(shelves.put(&draft("a", "b")));
        if name != "audit_head" {
            unavailable(shelves.fetch(P, "k"));
        }
        store
            .by_hand(P)
            .execute("DELETE FROM meta WHERE name = ?1", [name])
            .unwrap();
        let storage = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
        unavailable(
            storage
                .open(access(P, Origin::Agent))
                .unwrap()
                .put(&draft("a", "b")),
        );
    }
}
