//! Confirming: that a record is still true, and who sees that it was said.

use super::*;
use crate::storage::{Filter, Memories};

/// When a record is said to have been confirmed, on every reading path.
fn confirmed(store: &Store, taint: Level, level: Level, key: &str) -> Option<Instant> {
    let mut shelves = store.later(taint, 1_000);
    let fetched = live(shelves.fetch(level, key).unwrap());
    let of = |memories: Memories| {
        memories
            .items
            .into_iter()
            .find(|memory| memory.key == key)
            .unwrap()
            .confirmed_at
    };
    let found = shelves.search(level, "words", 0, 9).unwrap().items;
    let found = found.iter().find(|found| found.memory.key == key).unwrap();
    let mut all = vec![
        of(shelves.page(level, &Filter::default(), None, 9).unwrap()),
        of(shelves.versions(level, key, None, 9).unwrap()),
        of(shelves.stale(level, at(9_999), None, 9).unwrap()),
        found.memory.confirmed_at,
    ];
    all.dedup();
    assert_eq!(all, [fetched.confirmed_at], "every path tells the same");
    fetched.confirmed_at
}

fn confirm(store: &Store, taint: Level, seconds: i64, id: &str) -> Result<Instant, Error> {
    store.later(taint, seconds).stamp(id, Some("a phone call"))
}

#[test]
fn a_record_of_the_own_level_carries_its_confirmation() {
    let store = Store::new();
    let saved = store.save(C, "k", "words");
    assert_eq!(confirmed(&store, R, C, "k"), None);
    assert_eq!(confirm(&store, C, 5, &saved.id).unwrap(), at(5));
    for taint in [C, R] {
        assert_eq!(confirmed(&store, taint, C, "k"), Some(at(5)));
    }
    let kept: (String, String, String, String, String) = store
        .by_hand(C)
        .query_row(
            "SELECT record_id, record_level, at, origin, source FROM stamp",
            [],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                ))
            },
        )
        .unwrap();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        kept,
        (
            saved.id,
            text("CONFIDENTIAL"),
            at(5).to_sql(),
            text("AGENT"),
            text("a phone call")
        )
    );
    let by_date: i64 = store
        .by_hand(C)
        .query_row(
            "SELECT count(*) FROM live_memory WHERE confirmed_at < datetime('now', '+90 days')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(by_date, 1);
}

#[test]
fn a_confirmation_from_above_is_seen_from_there_up_and_changes_no_byte_below() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    let below = || {
        ["public.db", "public.db-wal"].map(|name| {
            std::fs::read(store.root().join("agents/main").join(name)).unwrap_or_default()
        })
    };
    let before = below();
    confirm(&store, C, 7, &saved.id).unwrap();
    assert!(below() == before);
    for (taint, expected) in [(P, None), (I, None), (C, Some(at(7))), (R, Some(at(7)))] {
        assert_eq!(confirmed(&store, taint, P, "k"), expected, "{taint}");
    }
}

#[test]
fn the_latest_visible_confirmation_counts_whichever_level_it_is_on() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    confirm(&store, P, 20, &saved.id).unwrap();
    confirm(&store, C, 10, &saved.id).unwrap();
    confirm(&store, R, 30, &saved.id).unwrap();
    for (taint, expected) in [(P, 20), (I, 20), (C, 20), (R, 30)] {
        assert_eq!(confirmed(&store, taint, P, "k"), Some(at(expected)));
    }
    confirm(&store, I, 25, &saved.id).unwrap();
    for (taint, expected) in [(P, 20), (I, 25), (C, 25), (R, 30)] {
        assert_eq!(confirmed(&store, taint, P, "k"), Some(at(expected)));
    }
}

#[test]
fn a_clock_set_back_takes_no_confirmation_away() {
    for taint in [P, C] {
        let store = Store::new();
        let saved = store.save(P, "k", "words");
        for seconds in [50, 20, 30, 50, 40] {
            assert_eq!(
                confirm(&store, taint, seconds, &saved.id).unwrap(),
                at(seconds)
            );
            assert_eq!(confirmed(&store, taint, P, "k"), Some(at(50)));
        }
        let db = store.by_hand(taint);
        let rows: (i64, i64) = db
            .query_row("SELECT count(*), sum(latest) FROM stamp", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(rows, (4, 1), "each moment is kept, one is the latest");
        let latest: String = db
            .query_row("SELECT at FROM stamp WHERE latest = 1", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(latest, at(50).to_sql());
    }
}

#[test]
fn confirming_changes_neither_version_nor_words_nor_index() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    let index = |store: &Store| -> Vec<(i64, Vec<u8>)> {
        store
            .by_hand(P)
            .prepare(
                "SELECT id, block FROM memory_words_data
                 UNION ALL SELECT -id, block FROM memory_grams_data ORDER BY 1",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let before = (index(&store), live(store.agent(P).fetch(P, "k").unwrap()));
    for seconds in 1..50 {
        confirm(&store, P, seconds, &saved.id).unwrap();
    }
    let after = live(store.agent(P).fetch(P, "k").unwrap());
    assert!(index(&store) == before.0);
    assert_eq!(
        Memory {
            confirmed_at: None,
            ..after
        },
        before.1
    );
}

#[test]
fn a_new_version_is_not_confirmed_and_saying_the_same_again_confirms_nothing() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    confirm(&store, P, 5, &saved.id).unwrap();
    let same = store.later(P, 8).put(&draft("k", "words")).unwrap();
    assert_eq!(same.outcome, Outcome::Unchanged);
    assert_eq!(confirmed(&store, P, P, "k"), Some(at(5)));
    store.later(P, 9).put(&draft("k", "other words")).unwrap();
    assert_eq!(confirmed(&store, P, P, "k"), None);
}

#[test]
fn what_is_hidden_and_what_never_was_answer_alike_and_leave_nothing() {
    let store = Store::new();
    let high = store.save(R, "high", "x");
    let gone = store.save(P, "gone", "x");
    store.agent(P).retire("gone", false).unwrap();
    let old = store.save(P, "versions", "x");
    store.save(P, "versions", "y");
    let expired = store
        .agent(P)
        .put(&Draft {
            expires_at: Some(at(5)),
            ..draft("expired", "x")
        })
        .unwrap();
    let apart = store
        .open(access(P, Origin::Tool))
        .put(&draft("apart", "x"))
        .unwrap();
    let hidden = store.save(P, "hidden", "x");
    store
        .agent(I)
        .put(&Draft {
            supersedes: vec![hidden.id.clone()],
            ..draft("newer", "x")
        })
        .unwrap();
    let nothing = "0".repeat(32);
    let mut texts = Vec::new();
    for id in [
        &high.id,
        &gone.id,
        &old.id,
        &expired.id,
        &apart.id,
        &hidden.id,
        &nothing,
    ] {
        let error = confirm(&store, C, 5, id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        texts.push(error.to_string().replace(id.as_str(), "ID"));
    }
    let wild = confirm(&store, C, 5, "%").unwrap_err();
    assert_eq!(wild.kind(), ErrorKind::NotFound);
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(!store.path(C).exists(), "no file is made for a wrong id");
    // From below what hides it, it is there.
    confirm(&store, P, 5, &hidden.id).unwrap();
}

#[test]
fn a_tool_confirms_nothing_and_a_session_that_may_not_write_neither() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    let nothing = "0".repeat(32);
    let mut tool = store.open(access(P, Origin::Tool));
    let refused: Vec<String> = [&saved.id, &nothing]
        .map(|id| {
            let error = tool.stamp(id, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            error.to_string()
        })
        .to_vec();
    assert_eq!(refused[0], refused[1]);
    let mut observed = store.open(Access {
        read_only: Some("It observed RESTRICTED".to_owned()),
        ..access(P, Origin::User)
    });
    let error = observed.stamp(&saved.id, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(confirmed(&store, P, P, "k"), None);
    let kinds: Vec<String> = store
        .storage
        .events("main", P)
        .unwrap()
        .into_iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(
        kinds,
        ["save", "write-refused", "write-refused", "write-refused"]
    );
}

#[test]
fn confirming_is_audited_where_it_was_done() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    confirm(&store, P, 1, &saved.id).unwrap();
    confirm(&store, C, 2, &saved.id).unwrap();
    let own = store.storage.events("main", P).unwrap();
    assert_eq!(own.len(), 2);
    assert_eq!(own[1].kind, "confirm");
    assert_eq!(own[1].key.as_deref(), Some("k"));
    let above = store.storage.events("main", C).unwrap();
    assert_eq!(above.len(), 1);
    assert_eq!(above[0].record.as_deref(), Some(saved.id.as_str()));
    assert_eq!(above[0].detail.as_deref(), Some("PUBLIC"));
    assert_eq!(above[0].key, None, "its words are not kept up there");
}

#[test]
fn a_source_past_its_bound_is_refused() {
    let store = Store::new();
    let saved = store.save(P, "k", "words");
    let long = "s".repeat(1025);
    let error = store.agent(P).stamp(&saved.id, Some(&long)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    store
        .agent(P)
        .stamp(&saved.id, Some(&long[..1024]))
        .unwrap();
}

#[test]
fn any_changed_column_of_a_stamp_fails_its_seal_on_every_path() {
    for change in [
        "record_level = 'INTERNAL'",
        "at = '2099-01-01 00:00:00.000'",
        "session = 'other'",
        "origin = 'USER'",
        "source = NULL",
        "seal = zeroblob(32)",
    ] {
        let store = Store::new();
        let saved = store.save(P, "k", "words");
        confirm(&store, C, 1, &saved.id).unwrap();
        store
            .by_hand(C)
            .execute(&format!("UPDATE stamp SET {change}"), [])
            .unwrap();
        let mut shelves = store.agent(C);
        for result in [
            shelves.fetch(P, "k").map(|_| ()),
            shelves.page(P, &Filter::default(), None, 9).map(|_| ()),
            shelves.search(P, "words", 0, 9).map(|_| ()),
            shelves.versions(P, "k", None, 9).map(|_| ()),
            shelves.stale(P, at(9), None, 9).map(|_| ()),
        ] {
            let text = unavailable(result);
            assert!(
                text.contains("stamp") && text.contains("confidential.db"),
                "{change}: {text}"
            );
        }
        assert_eq!(store.seen(P, P, "k").as_deref(), Some("words"));
    }
}
