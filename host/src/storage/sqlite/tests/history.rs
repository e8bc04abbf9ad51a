//! Histories: versions and edges.

use super::*;
use crate::storage::{Edge, limits};

fn superseding(key: &str, content: &str, ids: &[&str]) -> Draft {
    Draft {
        supersedes: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..draft(key, content)
    }
}

/// The versions of `k` as number and content.
fn versions(store: &Store, taint: Level, level: Level) -> Vec<(u64, String)> {
    let mut shelves = store.later(taint, 100);
    let all = shelves.versions(level, "k", None, 200).unwrap();
    assert!(!all.more);
    // One by one it is the same.
    let (mut before, mut single) = (None, Vec::new());
    loop {
        let page = shelves.versions(level, "k", before, 1).unwrap();
        single.extend(page.items);
        if !page.more {
            break;
        }
        before = single.last().map(|memory| memory.version);
    }
    assert_eq!(single, all.items);
    all.items
        .into_iter()
        .map(|memory| (memory.version, memory.content))
        .collect()
}

fn edges(store: &Store, taint: Level, level: Level, ids: &[&str]) -> Vec<Edge> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    store.later(taint, 100).edges(level, &ids).unwrap()
}

#[test]
fn versions_come_newest_first_with_when_each_was_superseded() {
    let store = Store::new();
    for seconds in 0..5 {
        let mut shelves = store.later(P, seconds);
        shelves.put(&draft("k", &format!("{seconds}"))).unwrap();
    }
    let told: Vec<(u64, String)> = (0..5)
        .rev()
        .map(|n: i64| (u64::try_from(n).unwrap() + 1, n.to_string()))
        .collect();
    assert_eq!(versions(&store, P, P), told);
    assert_eq!(versions(&store, R, P), told);
    let all = store.agent(P).versions(P, "k", None, 9).unwrap().items;
    let superseded: Vec<Option<Instant>> = all.iter().map(|memory| memory.superseded_at).collect();
    assert_eq!(
        superseded,
        [None, Some(at(4)), Some(at(3)), Some(at(2)), Some(at(1))]
    );
    assert_eq!(
        store.agent(P).versions(P, "other", None, 9).unwrap().items,
        []
    );
}

#[test]
fn what_was_deleted_has_expired_or_is_kept_apart_is_in_no_history() {
    let store = Store::new();
    store.save(P, "k", "1 stays");
    let limited = Draft {
        expires_at: Some(at(50)),
        ..draft("k", "2 expires")
    };
    store.later(P, 1).put(&limited).unwrap();
    store.later(P, 2).put(&draft("k", "3 is deleted")).unwrap();
    store.later(P, 3).retire("k", true).unwrap();
    store.later(P, 4).put(&draft("k", "4 is live")).unwrap();
    store
        .open(access(P, Origin::Tool))
        .put(&draft("k", "5 is apart"))
        .unwrap();
    store.user(P).put(&draft("k", "6 is the person's")).unwrap();
    store.later(P, 5).put(&draft("k", "7 waits")).unwrap();
    let texts: Vec<String> = versions(&store, C, P)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, ["6 is the person's", "4 is live", "1 stays"]);
    // A moment before it expired it was there.
    let before = Access {
        now: Instant::from_millis(at(50).millis() - 1).unwrap(),
        ..access(P, Origin::Agent)
    };
    let shown = store.open(before).versions(P, "k", None, 9).unwrap();
    assert_eq!(shown.items.len(), 4);
}

#[test]
fn a_tombstone_is_no_version() {
    let store = Store::new();
    store.save(P, "k", "low");
    store.agent(C).retire("k", true).unwrap();
    assert_eq!(versions(&store, C, C), []);
    store.save(C, "k", "high");
    assert_eq!(versions(&store, C, C), [(2, "high".to_owned())]);
}

#[test]
fn another_memory_that_took_the_place_shows_only_to_those_who_see_it() {
    let store = Store::new();
    let old = store.save(P, "k", "words");
    let new = store
        .later(C, 7)
        .put(&superseding("newer", "more words", &[&old.id]))
        .unwrap();
    let edge = Edge {
        old_id: old.id.clone(),
        new_id: new.id.clone(),
        old_key: Some("k".to_owned()),
        new_key: Some("newer".to_owned()),
        at: at(7),
    };
    for taint in [C, R] {
        for id in [&old.id, &new.id] {
            assert_eq!(edges(&store, taint, C, &[id]), std::slice::from_ref(&edge));
        }
        assert_eq!(edges(&store, taint, P, &[&old.id, &new.id]), []);
        let history = store.agent(taint).versions(P, "k", None, 9).unwrap().items;
        assert_eq!(history[0].superseded_at, Some(at(7)), "{taint}");
    }
    for taint in [P, I] {
        let history = store.agent(taint).versions(P, "k", None, 9).unwrap().items;
        assert_eq!(history[0].superseded_at, None, "{taint}");
        let ids = [old.id.clone(), new.id.clone()];
        assert_eq!(store.agent(taint).edges(P, &ids).unwrap(), []);
        let error = store.agent(taint).edges(C, &ids).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
}

#[test]
fn an_edge_outlives_the_newer_record_and_then_names_no_key() {
    for end in ["superseded", "deleted", "expired", "gone"] {
        let store = Store::new();
        let old = store.save(P, "k", "words");
        let newer = Draft {
            expires_at: (end == "expired").then(|| at(100)),
            ..superseding("newer", "x", &[&old.id])
        };
        let new = store.agent(C).put(&newer).unwrap();
        match end {
            "superseded" => drop(store.save(C, "newer", "y")),
            "deleted" => drop(store.agent(C).retire("newer", false).unwrap()),
            "gone" => drop(
                store
                    .by_hand(C)
                    .execute("DELETE FROM record WHERE id = ?1", [&new.id])
                    .unwrap(),
            ),
            _ => {}
        }
        let told = edges(&store, C, C, &[&old.id]);
        assert_eq!(told.len(), 1, "{end}");
        let named = told[0].new_key.is_some();
        assert_eq!(named, end == "superseded", "{end}");
        assert_eq!(store.later(C, 100).fetch(P, "k").unwrap(), None, "{end}");
    }
}

#[test]
fn edges_come_in_one_order_each_once() {
    let store = Store::new();
    let old: Vec<String> = (0..5)
        .map(|i| store.save(P, &format!("k{i}"), "x").id)
        .collect();
    let ids: Vec<&str> = old.iter().map(String::as_str).collect();
    let late = store
        .later(P, 9)
        .put(&superseding("n", "x", &ids[..2]))
        .unwrap();
    let early = store
        .later(P, 5)
        .put(&superseding("m", "x", &ids[2..]))
        .unwrap();
    let mut asked = ids.clone();
    asked.extend([late.id.as_str(), early.id.as_str(), "nothing", ids[0]]);
    let told = edges(&store, P, P, &asked);
    let moments: Vec<Instant> = told.iter().map(|edge| edge.at).collect();
    assert_eq!(moments, [at(5), at(5), at(5), at(9), at(9)]);
    asked.reverse();
    assert_eq!(edges(&store, P, P, &asked), told);
    let many = vec!["x".to_owned(); limits::EDGE_IDS + 1];
    let error = store.agent(P).edges(P, &many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn long_versions_are_told_by_their_first_bytes() {
    let store = Store::new();
    for i in 0..6 {
        store.save(P, "k", &format!("{i}").repeat(256 * 1024));
    }
    let page = store.agent(P).versions(P, "k", None, 200).unwrap();
    assert_eq!((page.items.len(), page.more), (6, false));
    for version in page.items {
        assert_eq!(version.content.len(), limits::EXCERPT_BYTES);
        assert_eq!(version.content_bytes, 256 * 1024);
    }
}

#[test]
fn a_version_whose_row_was_altered_is_not_told() {
    let store = Store::new();
    store.save(P, "k", "one");
    store.save(P, "k", "two");
    store
        .by_hand(P)
        .execute("UPDATE record SET content = 'uno' WHERE version = 1", [])
        .unwrap();
    unavailable(store.agent(P).versions(P, "k", None, 9));
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("two"));
}
