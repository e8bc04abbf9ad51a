//! Saving and deleting.

use super::super::search::index;
use super::*;
use crate::provenance::Standing;
use crate::storage::{Filter, Presence};

#[test]
fn a_first_save_is_created_and_carries_its_provenance() {
    let store = Store::new();
    let draft = Draft {
        tags: vec!["a".to_owned(), "b \"c\"".to_owned()],
        source: Some("a letter".to_owned()),
        expires_at: Some(at(100)),
        ..draft("key", "content\0with a nul and ünïcode")
    };
    let receipt = store.agent(C).put(&draft).unwrap();
    assert_eq!(receipt.outcome, Outcome::Created);
    assert_eq!((receipt.level, receipt.origin), (C, Origin::Agent));
    assert_eq!((receipt.standing, receipt.version), (Standing::Trusted, 1));
    let memory = live(store.agent(R).fetch(C, "key").unwrap());
    assert_eq!(
        memory,
        Memory {
            id: receipt.id.clone(),
            key: draft.key,
            content_bytes: 32,
            content: draft.content,
            tags: draft.tags,
            level: C,
            origin: Origin::Agent,
            standing: Standing::Trusted,
            source: draft.source,
            session: "test".to_owned(),
            version: 1,
            created_at: at(0),
            updated_at: at(0),
            confirmed_at: None,
            expires_at: Some(at(100)),
            superseded_at: None,
            deleted_at: None,
        }
    );
    assert_eq!(receipt.id.len(), 32);
}

#[test]
fn ids_are_random() {
    let store = Store::new();
    let ids: std::collections::BTreeSet<String> = (0..20)
        .map(|i| store.save(P, &format!("k{i}"), "x").id)
        .collect();
    assert_eq!(ids.len(), 20);
}

#[test]
fn a_save_on_a_live_key_is_a_new_version() {
    let store = Store::new();
    let first = store.save(P, "k", "one");
    let receipt = store.later(P, 5).put(&draft("k", "two")).unwrap();
    assert_eq!((receipt.outcome, receipt.version), (Outcome::Updated, 2));
    assert_ne!(receipt.id, first.id);
    let memory = live(store.agent(P).fetch(P, "k").unwrap());
    assert_eq!((memory.created_at, memory.updated_at), (at(0), at(5)));
    let old: String = store
        .by_hand(P)
        .query_row(
            "SELECT superseded_at FROM record WHERE id = ?1",
            [first.id],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(old, at(5).to_sql());
    let found = store.agent(P).search(P, "one", 0, 10).unwrap();
    assert!(found.items.is_empty());
}

#[test]
fn the_same_again_is_unchanged_and_touches_neither_record_nor_index() {
    let store = Store::new();
    let first = store.save(P, "k", "one");
    let before = dump(&store);
    let again = store.later(P, 9).put(&draft("k", "one")).unwrap();
    assert_eq!(
        (again.outcome, &again.id, again.version),
        (Outcome::Unchanged, &first.id, 1)
    );
    assert_eq!(dump(&store), before);
    let events = store.storage.events("main", P).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].detail.as_deref(), Some("unchanged"));
}

fn dump(store: &Store) -> Vec<String> {
    let db = store.by_hand(P);
    [
        "SELECT quote(id) || quote(seal) || quote(updated_at) FROM record",
        "SELECT quote(id) || quote(block) FROM memory_words_data",
        "SELECT quote(id) || quote(block) FROM memory_grams_data",
    ]
    .into_iter()
    .flat_map(|sql| {
        let mut statement = db.prepare(sql).unwrap();
        let rows: Vec<String> = statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        rows
    })
    .collect()
}

#[test]
fn another_source_expiry_or_tag_is_an_update() {
    for other in [
        Draft {
            source: Some("s".to_owned()),
            ..draft("k", "one")
        },
        Draft {
            expires_at: Some(at(50)),
            ..draft("k", "one")
        },
        Draft {
            tags: vec!["t".to_owned()],
            ..draft("k", "one")
        },
    ] {
        let store = Store::new();
        store.save(P, "k", "one");
        assert_eq!(
            store.agent(P).put(&other).unwrap().outcome,
            Outcome::Updated
        );
        assert_eq!(
            store.agent(P).put(&other).unwrap().outcome,
            Outcome::Unchanged
        );
    }
}

#[test]
fn a_save_over_an_expired_one_is_created() {
    let store = Store::new();
    let draft_one = Draft {
        expires_at: Some(at(10)),
        ..draft("k", "one")
    };
    store.agent(P).put(&draft_one).unwrap();
    let receipt = store.later(P, 10).put(&draft("k", "one")).unwrap();
    assert_eq!((receipt.outcome, receipt.version), (Outcome::Created, 2));
    let memory = live(store.later(P, 10).fetch(P, "k").unwrap());
    assert_eq!(memory.created_at, at(10));
}

#[test]
fn the_level_is_the_sessions_whatever_stands_below() {
    let store = Store::new();
    store.save(P, "k", "low");
    assert_eq!(store.save(C, "k", "high").outcome, Outcome::Created);
    assert_eq!(store.seen(R, P, "k").as_deref(), Some("low"));
    assert_eq!(store.seen(R, C, "k").as_deref(), Some("high"));
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("low"));
}

#[test]
fn a_draft_outside_the_bounds_is_refused_and_leaves_nothing() {
    let store = Store::new();
    for bad in [
        draft("", "x"),
        draft(" k", "x"),
        draft(&"k".repeat(257), "x"),
        draft("k", ""),
        draft("k", &"x".repeat(256 * 1024 + 1)),
        tagged("k", &["b", "a"]),
        Draft {
            expires_at: Some(at(0)),
            ..draft("k", "x")
        },
    ] {
        assert!(store.agent(P).put(&bad).is_err());
    }
    assert!(!store.path(P).exists());
    store
        .agent(P)
        .put(&draft(&"k".repeat(256), &"x".repeat(256 * 1024)))
        .unwrap();
}

#[test]
fn words_of_a_tool_stand_apart_and_replace_nothing() {
    let store = Store::new();
    store.save(P, "k", "mine");
    let mut tool = store.open(access(P, Origin::Tool));
    let receipt = tool.put(&draft("k", "theirs")).unwrap();
    assert_eq!(receipt.outcome, Outcome::Quarantined);
    assert_eq!(receipt.standing, Standing::Quarantined);
    let again = tool.put(&draft("k", "theirs")).unwrap();
    assert_eq!(
        (again.outcome, again.id),
        (Outcome::Quarantined, receipt.id)
    );
    assert_eq!(
        content(tool.fetch(P, "k").unwrap()).as_deref(),
        Some("mine")
    );
    assert!(tool.search(P, "theirs", 0, 10).unwrap().items.is_empty());
    tool.put(&draft("new", "words")).unwrap();
    assert_eq!(tool.fetch(P, "new").unwrap(), None);
    assert_eq!(
        tool.present(P, &["new".to_owned()]).unwrap(),
        [Presence::default()]
    );
    let counts = tool.counts(P).unwrap();
    assert_eq!((counts.live, counts.pending, counts.quarantined), (1, 0, 2));
    assert_eq!(
        tool.page(P, &Filter::default(), None, 10)
            .unwrap()
            .items
            .len(),
        1
    );
}

#[test]
fn what_is_less_trusted_waits_instead_of_replacing() {
    let store = Store::new();
    store.user(P).put(&draft("k", "the person's")).unwrap();
    let receipt = store.save(P, "k", "the model's");
    assert_eq!(
        (receipt.outcome, receipt.standing),
        (Outcome::Pending, Standing::Pending)
    );
    assert_eq!(store.save(P, "k", "the model's").id, receipt.id);
    assert_ne!(store.save(P, "k", "another").id, receipt.id);
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("the person's"));
    let same = store.save(P, "k", "the person's");
    assert_eq!(
        (same.outcome, same.origin),
        (Outcome::Unchanged, Origin::User)
    );
    assert_eq!(store.agent(P).counts(P).unwrap().pending, 1);
}

#[test]
fn the_person_replaces_what_the_model_said_and_makes_the_same_words_theirs() {
    let store = Store::new();
    store.save(P, "k", "words");
    let receipt = store.user(P).put(&draft("k", "words")).unwrap();
    assert_eq!(
        (receipt.outcome, receipt.origin),
        (Outcome::Updated, Origin::User)
    );
    assert_eq!(store.save(P, "k", "other").outcome, Outcome::Pending);
}

#[test]
fn a_session_that_may_not_write_is_refused_and_audited() {
    let store = Store::new();
    store.save(P, "k", "x");
    let mut shelves = store.open(Access {
        read_only: Some("The session observed RESTRICTED".to_owned()),
        ..access(P, Origin::Agent)
    });
    let put = shelves.put(&draft("k", "y")).unwrap_err();
    assert_eq!(put.kind(), ErrorKind::Refused);
    assert!(put.to_string().contains("observed RESTRICTED"));
    assert_eq!(
        shelves.retire("k", false).unwrap_err().kind(),
        ErrorKind::Refused
    );
    assert_eq!(
        content(shelves.fetch(P, "k").unwrap()).as_deref(),
        Some("x")
    );
    let kinds: Vec<String> = store
        .storage
        .events("main", P)
        .unwrap()
        .into_iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, ["save", "write-refused", "write-refused"]);
}

#[test]
fn a_delete_hides_and_keeps_the_record_and_lets_the_lower_one_show() {
    let store = Store::new();
    store.save(P, "k", "low");
    let receipt = store.save(C, "k", "high");
    let deleted = store.later(C, 3).retire("k", false).unwrap();
    assert_eq!(deleted, Some(receipt.id));
    assert_eq!(store.seen(C, C, "k"), None);
    assert_eq!(store.seen(C, P, "k").as_deref(), Some("low"));
    assert!(
        store
            .agent(C)
            .search(C, "high", 0, 10)
            .unwrap()
            .items
            .is_empty()
    );
    let kept: (String, String) = store
        .by_hand(C)
        .query_row("SELECT content, deleted_at FROM record", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(kept, ("high".to_owned(), at(3).to_sql()));
    assert_eq!(store.agent(C).retire("k", false).unwrap(), None);
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("low"));
}

#[test]
fn a_deleted_key_can_be_saved_again() {
    let store = Store::new();
    store.save(P, "k", "one");
    store.agent(P).retire("k", false).unwrap();
    let receipt = store.save(P, "k", "one");
    assert_eq!((receipt.outcome, receipt.version), (Outcome::Created, 2));
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("one"));
}

#[test]
fn a_tombstone_hides_lower_versions_until_the_key_is_saved_again() {
    for own in [false, true] {
        let store = Store::new();
        store.save(P, "k", "low");
        if own {
            store.save(C, "k", "high");
        }
        assert_eq!(store.agent(C).retire("k", true).unwrap().is_some(), own);
        assert_eq!(store.seen(C, C, "k").as_deref(), Some("†"));
        assert_eq!(store.seen(P, P, "k").as_deref(), Some("low"));
        let present = store.agent(C).present(C, &["k".to_owned()]).unwrap();
        assert_eq!(present, [Presence::Tombstone(Origin::Agent)]);
        assert_eq!(store.agent(C).retire("k", true).unwrap(), None);
        assert_eq!(store.agent(C).counts(C).unwrap().live, 0);
        store.save(C, "k", "again");
        assert_eq!(store.seen(C, C, "k").as_deref(), Some("again"));
        store.agent(C).retire("k", false).unwrap();
        assert_eq!(store.seen(C, C, "k"), None, "the tombstone is back");
    }
}

#[test]
fn nothing_is_hidden_where_nothing_lower_stands() {
    let store = Store::new();
    store.save(C, "other", "x");
    assert_eq!(store.agent(C).retire("k", true).unwrap(), None);
    assert_eq!(store.seen(C, C, "k"), None);
}

#[test]
fn what_is_more_trusted_is_neither_deleted_nor_hidden() {
    let store = Store::new();
    store.user(P).put(&draft("k", "the person's")).unwrap();
    let error = store.agent(P).retire("k", false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let error = store.agent(C).retire("k", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    store.save(C, "k", "the model's");
    let error = store.agent(C).retire("k", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(store.seen(C, C, "k").as_deref(), Some("the model's"));
    assert_eq!(store.seen(C, P, "k").as_deref(), Some("the person's"));
    let refused = store.storage.events("main", C).unwrap();
    assert_eq!(
        refused
            .iter()
            .filter(|event| event.kind == "write-refused")
            .count(),
        2
    );
    assert!(store.agent(C).retire("k", false).unwrap().is_some());
    // The person may. No version of C's own was deleted, so none is named.
    assert_eq!(store.user(C).retire("k", true).unwrap(), None);
    assert_eq!(store.seen(C, C, "k").as_deref(), Some("†"));
}

#[test]
fn nothing_done_above_changes_a_byte_below() {
    let store = Store::new();
    let old = store.save(P, "old", "words");
    store.save(P, "other", "words");
    let below = || {
        ["public.db", "public.db-wal"].map(|name| {
            std::fs::read(store.root().join("agents/main").join(name)).unwrap_or_default()
        })
    };
    let before = below();
    store.save(C, "other", "more words");
    store.agent(C).put(&superseding("new", &[&old.id])).unwrap();
    store.agent(C).retire("other", true).unwrap();
    store.agent(R).search(P, "words", 0, 9).unwrap();
    store
        .agent(R)
        .note(crate::storage::Notable::WriteRefused)
        .unwrap();
    assert!(below() == before);
}

fn superseding(key: &str, ids: &[&str]) -> Draft {
    Draft {
        supersedes: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..draft(key, "newer")
    }
}

#[test]
fn what_is_superseded_is_hidden_from_those_who_see_the_newer_and_from_nobody_else() {
    let store = Store::new();
    let old = store.save(P, "old", "words");
    let own = store.save(C, "own", "words");
    store
        .agent(C)
        .put(&superseding("new", &[&old.id, &own.id, &old.id]))
        .unwrap();
    for taint in [C, R] {
        assert_eq!(store.seen(taint, P, "old"), None);
        assert_eq!(store.seen(taint, C, "own"), None);
        assert_eq!(store.agent(taint).counts(P).unwrap().live, 0);
        assert!(
            store
                .agent(taint)
                .search(P, "words", 0, 10)
                .unwrap()
                .items
                .is_empty()
        );
        assert!(
            store
                .agent(taint)
                .page(P, &Filter::default(), None, 10)
                .unwrap()
                .items
                .is_empty()
        );
        let keys = ["old".to_owned()];
        assert_eq!(
            store.agent(taint).present(P, &keys).unwrap(),
            [Presence::default()]
        );
    }
    for taint in [P, I] {
        assert_eq!(store.seen(taint, P, "old").as_deref(), Some("words"));
        assert_eq!(store.agent(taint).counts(P).unwrap().live, 1);
        assert_eq!(
            store
                .agent(taint)
                .search(P, "words", 0, 10)
                .unwrap()
                .items
                .len(),
            1
        );
    }
}

#[test]
fn a_superseded_record_never_comes_back_and_a_later_save_of_its_key_is_not_touched() {
    let store = Store::new();
    let old = store.save(P, "old", "words");
    store.agent(C).put(&superseding("new", &[&old.id])).unwrap();
    store.agent(C).retire("new", false).unwrap();
    assert_eq!(store.seen(C, P, "old"), None);
    store.save(P, "old", "other words");
    assert_eq!(store.seen(C, P, "old").as_deref(), Some("other words"));
}

#[test]
fn only_what_is_visible_and_live_can_be_superseded() {
    let store = Store::new();
    let high = store.save(R, "high", "x");
    let gone = store.save(P, "gone", "x");
    store.agent(P).retire("gone", false).unwrap();
    let expired = store
        .agent(P)
        .put(&Draft {
            expires_at: Some(at(5)),
            ..draft("expired", "x")
        })
        .unwrap();
    let done = store.save(P, "done", "x");
    store
        .agent(C)
        .put(&superseding("first", &[&done.id]))
        .unwrap();
    let nothing = "0".repeat(32);
    let mut texts = Vec::new();
    for id in [&high.id, &gone.id, &expired.id, &done.id, &nothing] {
        let error = store
            .later(C, 5)
            .put(&superseding("new", &[id]))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        texts.push(error.to_string().replace(id.as_str(), "ID"));
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "hidden and absent read alike: {texts:?}");
    assert_eq!(store.seen(C, C, "new"), None);
    assert_eq!(store.storage.events("main", C).unwrap().len(), 1);
}

#[test]
fn a_save_that_would_supersede_what_is_more_trusted_waits() {
    let store = Store::new();
    let old = store.user(P).put(&draft("old", "the person's")).unwrap();
    let receipt = store.agent(C).put(&superseding("new", &[&old.id])).unwrap();
    assert_eq!(receipt.outcome, Outcome::Pending);
    let mut tool = store.open(access(C, Origin::Tool));
    assert_eq!(
        tool.put(&superseding("new", &[&old.id])).unwrap().outcome,
        Outcome::Quarantined
    );
    assert_eq!(store.seen(C, P, "old").as_deref(), Some("the person's"));
    let wanted: String = store
        .by_hand(C)
        .query_row(
            "SELECT supersedes FROM record WHERE standing = 'pending'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(wanted, format!("[\"{}\"]", old.id));
}

#[test]
fn a_search_after_a_save_in_the_same_call_finds_it() {
    let store = Store::new();
    let mut shelves = store.agent(P);
    assert!(shelves.search(P, "word", 0, 10).unwrap().items.is_empty());
    shelves.put(&draft("k", "word")).unwrap();
    assert_eq!(shelves.search(P, "word", 0, 10).unwrap().items.len(), 1);
    assert_eq!(
        content(shelves.fetch(P, "k").unwrap()).as_deref(),
        Some("word")
    );
}

#[test]
fn the_index_holds_just_what_stands() {
    let store = Store::new();
    for i in 0..6 {
        store.save(P, &format!("k{}", i % 3), &format!("words {i}"));
    }
    store.agent(P).retire("k1", false).unwrap();
    store
        .open(access(P, Origin::Tool))
        .put(&draft("k2", "words apart"))
        .unwrap();
    let db = store.by_hand(P);
    assert!(index::agrees(&db).unwrap());
    let rows = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(rows("SELECT count(DISTINCT doc) FROM memory_word_terms"), 2);
    assert_eq!(rows("SELECT count(*) FROM live_memory"), 2);
    let bad: Vec<String> = db
        .prepare("PRAGMA integrity_check")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(bad, ["ok"]);
    let mut foreign = db.prepare("PRAGMA foreign_key_check").unwrap();
    assert!(foreign.query([]).unwrap().next().unwrap().is_none());
}

#[test]
fn a_tombstone_has_the_authority_of_whoever_deleted() {
    let store = Store::new();
    let keys = ["k".to_owned()];
    store.save(C, "k", "the model's");
    store.user(C).retire("k", true).unwrap();
    let there = store.agent(C).present(C, &keys).unwrap();
    assert_eq!(there, [Presence::Tombstone(Origin::User)]);

    // The model does not save it away, nor with it what it hides.
    let receipt = store.save(C, "k", "again");
    assert_eq!(receipt.outcome, Outcome::Pending);
    let there = store.agent(C).present(C, &keys).unwrap();
    assert_eq!(there, [Presence::Tombstone(Origin::User)]);
    store.user(C).put(&draft("k", "so be it")).unwrap();
    let there = store.agent(C).present(C, &keys).unwrap();
    assert_eq!(there, [Presence::Live(Origin::User)]);
}

#[test]
fn the_person_replaces_the_models_tombstone_by_their_own() {
    let store = Store::new();
    let keys = ["k".to_owned()];
    store.save(P, "k", "below");
    store.agent(C).retire("k", true).unwrap();
    let there = || store.agent(C).present(C, &keys).unwrap();
    assert_eq!(there(), [Presence::Tombstone(Origin::Agent)]);
    // What the person says below since then is not hidden by it.
    store
        .user(P)
        .put(&draft("k", "said by the person"))
        .unwrap();
    store.user(C).retire("k", true).unwrap();
    assert_eq!(there(), [Presence::Tombstone(Origin::User)]);
}

#[test]
fn of_what_waits_under_a_key_only_the_last_does_and_nothing_once_the_person_spoke() {
    let waiting = |store: &Store| {
        let counts = store.agent(P).counts(P).unwrap();
        (counts.pending, counts.quarantined)
    };
    for end in ["save", "save the same", "delete"] {
        let store = Store::new();
        store.user(P).put(&draft("k", "v1")).unwrap();
        for content in ["v2", "v2", "v3", "v2"] {
            let receipt = store.save(P, "k", content);
            assert_eq!(receipt.outcome, Outcome::Pending);
            let mut tool = store.open(access(P, Origin::Tool));
            tool.put(&draft("k", content)).unwrap();
            assert_eq!(waiting(&store), (1, 1));
        }
        match end {
            "save" => drop(store.user(P).put(&draft("k", "v2")).unwrap()),
            "save the same" => drop(store.user(P).put(&draft("k", "v1")).unwrap()),
            _ => drop(store.user(P).retire("k", false).unwrap()),
        }
        assert_eq!(waiting(&store), (0, 0), "{end}");
    }
}

#[test]
fn the_persons_tombstone_stays_the_persons_whoever_else_deletes() {
    let store = Store::new();
    store.save(P, "k", "below");
    let there = || {
        let there = store.agent(C).present(C, &["k".to_owned()]).unwrap();
        there.into_iter().next().unwrap()
    };
    store.agent(C).retire("k", true).unwrap();
    assert_eq!(there(), Presence::Tombstone(Origin::Agent));
    store.user(C).retire("k", true).unwrap();
    assert_eq!(there(), Presence::Tombstone(Origin::User));
    let rows = || {
        let db = store.by_hand(C);
        let sql = "SELECT (SELECT count(*) FROM record) + (SELECT count(*) FROM event)";
        db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let before = rows();
    assert_eq!(store.agent(C).retire("k", true).unwrap(), None);
    assert_eq!(store.user(C).retire("k", true).unwrap(), None);
    assert_eq!(there(), Presence::Tombstone(Origin::User));
    // Nothing more was hidden, so nothing is kept of it.
    assert_eq!(rows(), before);
}
