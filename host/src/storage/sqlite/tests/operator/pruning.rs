//! Prune.

use super::*;
use crate::storage::sqlite::operator::{LevelPruned, Prune};

fn prune(store: &Store, day: i64) -> Vec<LevelPruned> {
    store
        .operator(day)
        .prune(None, &Prune::default(), &mut quietly)
        .unwrap()
}

fn figures(pruned: &LevelPruned) -> [u64; 4] {
    [
        pruned.expired,
        pruned.superseded,
        pruned.deleted,
        pruned.stripped,
    ]
}

#[test]
fn what_is_reported_is_what_went() {
    // F030: 250 rows, 0 left, and the number is 250.
    let store = Store::new();
    for i in 0..250 {
        store.agent(P).put(&expiring(&format!("k{i}"), 1)).unwrap();
    }
    store.save(P, "stays", "words");
    let dry = Prune::default().dry_run(true);
    let operator = store.operator(1);
    let would = operator.prune(None, &dry, &mut quietly).unwrap();
    assert_eq!((would[0].removed(), would[0].dry_run), (250, true));
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 251);
    assert_eq!(store.told(P), []);

    let mut heard = Vec::new();
    let pruned = operator
        .prune(None, &Prune::default(), &mut |progress| {
            heard.push(progress)
        })
        .unwrap();
    assert_eq!(pruned[0].removed(), 250);
    assert_eq!(pruned[0].content_bytes, 250 * 5);
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 1);
    assert_eq!(heard.first().map(|p| (p.done, p.total)), Some((0, 250)));
    assert_eq!(heard.last().map(|p| (p.done, p.total)), Some((250, 250)));
    assert_eq!(prune(&store, 1)[0].removed(), 0);
    assert_eq!(
        store.told(P),
        [(
            "prune".to_owned(),
            "expired=250 superseded=0 deleted=0 stripped=0".to_owned()
        )]
    );
    store.assert_sound();
}

#[test]
fn each_goes_when_its_time_has_come_and_not_before() {
    let store = Store::new();
    store.agent(P).put(&expiring("expires", 10)).unwrap();
    store.save(P, "changes", "x");
    store.later(P, DAY).put(&draft("changes", "y")).unwrap();
    store.save(P, "deleted", "x");
    store.later(P, 2 * DAY).retire("deleted", false).unwrap();
    let figures = |day| figures(&prune(&store, day)[0]);
    assert_eq!(figures(9), [0, 0, 0, 0]);
    assert_eq!(figures(10), [1, 0, 0, 0]);
    assert_eq!(figures(181), [0, 0, 0, 0]);
    assert_eq!(figures(182), [0, 1, 0, 0]);
    assert_eq!(figures(183), [0, 0, 1, 0]);
    assert_eq!(store.seen(P, P, "changes").as_deref(), Some("y"));
    store.assert_sound();
}

#[test]
fn the_index_is_right_whether_few_go_or_many() {
    for (going, staying) in [(1, 60), (60, 1), (5, 0)] {
        let store = Store::new();
        for i in 0..going {
            let draft = Draft {
                tags: vec!["brief".to_owned()],
                ..expiring(&format!("going {i}"), 1)
            };
            store.agent(P).put(&draft).unwrap();
        }
        for i in 0..staying {
            store
                .agent(P)
                .put(&tagged(&format!("staying {i}"), &["long"]))
                .unwrap();
        }
        assert_eq!(prune(&store, 1)[0].expired, going);
        store.assert_sound();
        let mut shelves = store.later(P, DAY);
        let found = shelves.search(P, "words going", 0, 100).unwrap();
        assert_eq!(found.items.len() as u64, staying);
        let terms = |term: &str| {
            let sql = format!("SELECT count(*) FROM memory_word_terms WHERE term = '{term}'");
            store.rows(P, &sql)
        };
        assert_eq!(terms("go"), 0);
        assert_eq!(terms("stay"), i64::try_from(staying).unwrap());
        let grams = store.rows(P, "SELECT count(DISTINCT doc) FROM memory_gram_terms");
        assert_eq!(grams, i64::try_from(staying).unwrap());
    }
}

#[test]
fn each_level_is_told_of_its_own_only() {
    let store = Store::new();
    store.agent(P).put(&expiring("k", 1)).unwrap();
    for i in 0..3 {
        store.agent(C).put(&expiring(&format!("k{i}"), 1)).unwrap();
    }
    store.save(R, "stays", "x");
    let removed: Vec<(Level, u64)> = prune(&store, 1)
        .iter()
        .map(|pruned| (pruned.level, pruned.removed()))
        .collect();
    assert_eq!(removed, [(P, 1), (C, 3), (R, 0)]);
    assert!(store.told(P)[0].1.starts_with("expired=1 "));
    assert!(store.told(C)[0].1.starts_with("expired=3 "));
    assert_eq!(store.told(R), []);
}

#[test]
fn what_was_superseded_never_comes_back_whatever_goes() {
    let store = Store::new();
    let old = store.save(P, "old", "zebra").id;
    let lower = store.save(P, "lower", "zebra").id;
    let newer = Draft {
        supersedes: vec![old],
        ..draft("new", "x")
    };
    store.agent(P).put(&newer).unwrap();
    let above = Draft {
        supersedes: vec![lower.clone()],
        ..expiring("above", 1)
    };
    store.agent(C).put(&above).unwrap();
    store.delete(P, "new");
    let pruned = prune(&store, 400);
    assert_eq!(figures(&pruned[0]), [0, 1, 1, 0]);
    assert_eq!(figures(&pruned[1]), [1, 0, 0, 0]);
    assert_eq!(store.rows(P, "SELECT count(*) FROM edge"), 1);
    assert_eq!(store.rows(C, "SELECT count(*) FROM edge"), 1);
    for key in ["old", "new"] {
        assert_eq!(store.seen(P, P, key), None);
    }
    // Hidden from above as before, and not from its own level.
    assert_eq!(store.seen(C, P, "lower"), None);
    assert_eq!(store.seen(P, P, "lower").as_deref(), Some("zebra"));
    let found = store.agent(C).search(P, "zebra", 0, 10).unwrap();
    assert_eq!(found.items.len(), 0);
    store.assert_sound();
}

#[test]
fn what_a_tombstone_deleted_goes_and_the_tombstone_hides_on() {
    let store = Store::new();
    store.save(P, "k", "low");
    let high = Draft {
        source: Some("somewhere".to_owned()),
        ..tagged("k", &["t"])
    };
    store.agent(C).put(&high).unwrap();
    store.agent(C).retire("k", true).unwrap();
    let pruned = prune(&store, 181);
    assert_eq!(figures(&pruned[1]), [0, 0, 1, 0]);
    assert_eq!(pruned[1].content_bytes, 5);
    assert_eq!(store.seen(C, C, "k").as_deref(), Some("†"));
    assert_eq!(
        store.rows(
            C,
            "SELECT count(*) FROM record
             WHERE content = '' AND tags = '[]' AND source IS NULL AND hides_lower = 1"
        ),
        1
    );
    assert_eq!(figures(&prune(&store, 400)[1]), [0, 0, 0, 0]);
    store.assert_sound();
    // Saving again ends it, and then it goes as any superseded record.
    store.save(C, "k", "again");
    assert_eq!(figures(&prune(&store, 400)[1]), [0, 1, 0, 0]);
}

#[test]
fn stamps_and_usage_go_with_the_record_on_every_level() {
    let store = Store::new();
    store.agent(P).put(&expiring("k", 1)).unwrap();
    let id = live(store.agent(P).fetch(P, "k").unwrap()).id;
    store.save(C, "stays", "x");
    for level in [P, C] {
        let mut shelves = store.agent(level);
        shelves.fetch(P, "k").unwrap();
        shelves.stamp(&id, Some("seen")).unwrap();
        shelves.record_use(std::slice::from_ref(&id));
        shelves.used(P, 0, 1, 0).unwrap();
        assert_eq!(store.rows(level, "SELECT count(*) FROM stamp"), 1);
        assert_eq!(store.rows(level, "SELECT count(*) FROM usage"), 1);
    }
    prune(&store, 2);
    for level in [P, C] {
        assert_eq!(store.rows(level, "SELECT count(*) FROM stamp"), 0);
        assert_eq!(store.rows(level, "SELECT count(*) FROM usage"), 0);
    }
    store.assert_sound();
}

#[test]
fn what_was_altered_is_not_pruned() {
    let store = Store::new();
    store.save(P, "k", "x");
    store
        .by_hand(P)
        .execute("UPDATE record SET expires_at = updated_at", [])
        .unwrap();
    let result = store
        .operator(1)
        .prune(None, &Prune::default(), &mut quietly);
    let text = unavailable(result);
    assert!(text.contains("fails its seal"), "{text}");
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 1);
}

#[test]
fn a_crash_in_the_middle_leaves_everything_or_the_whole_of_it() {
    let store = Store::new();
    for i in 0..150 {
        store.agent(P).put(&expiring(&format!("k{i}"), 1)).unwrap();
    }
    let (_, copies, folder) = crashes(&store, || prune(&store, 1));
    let mut points: Vec<&str> = copies.iter().map(|(name, _)| name.as_str()).collect();
    points.dedup();
    assert_eq!(points, ["prune", "before-commit"]);
    for (name, copy) in &copies {
        let storage = SqliteStorage::open(copy, SqliteOptions::default()).unwrap();
        let operator = storage.operator(at(DAY));
        let verified = operator.verify(None, &mut quietly).unwrap();
        assert_eq!(verified.findings, [], "{name}");
        assert_eq!(verified.records, 150, "{name}");
        let pruned = operator
            .prune(None, &Prune::default(), &mut quietly)
            .unwrap();
        assert_eq!(pruned[0].removed(), 150);
    }
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_store_that_is_filled_and_pruned_over_and_over_does_not_grow() {
    // F033, small: what goes makes room for what comes.
    let store = Store::new();
    let mut sizes = Vec::new();
    for round in 0..6 {
        for i in 0..200 {
            let key = format!("round {round} number {i}");
            store
                .later(P, round * DAY)
                .put(&Draft {
                    content: format!("{key} {}", "word ".repeat(50)),
                    ..draft(&key, "")
                })
                .unwrap();
            store.later(P, round * DAY).retire(&key, false).unwrap();
        }
        let pruned = store
            .operator(round + 1)
            .prune(None, &Prune::default().deleted_after(days(0)), &mut quietly)
            .unwrap();
        assert_eq!(pruned[0].deleted, 200);
        store
            .operator(round + 1)
            .forget_events(None, days(1), false, &mut quietly)
            .unwrap();
        sizes.push(store.rows(P, "SELECT page_count FROM pragma_page_count"));
    }
    assert!(sizes[5] <= sizes[1] * 5 / 4, "{sizes:?}");
    store.assert_sound();
}

#[test]
fn a_version_that_was_replaced_does_not_come_back_from_before_its_prune() {
    let store = Store::new();
    let first = store.save(P, "k", "first").id;
    let mut before = Vec::new();
    store
        .operator(0)
        .export(None, None, &mut before, &mut |_| {})
        .unwrap();
    store.save(P, "k", "second");
    store.delete(P, "k");
    prune(&store, 400);
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 0);
    let told = store.agent(P).edges(P, &[first]).unwrap();
    assert_eq!(told.len(), 1);

    store
        .operator(401)
        .import(&mut before.as_slice(), &Default::default(), &mut |_| {})
        .unwrap();
    assert_eq!(store.seen(P, P, "k"), None);
    let found = store.agent(P).search(P, "first", 0, 10).unwrap();
    assert_eq!(found.items.len(), 0);
    store.assert_sound();
}

/// What another program may have kept in a tombstone.
fn tombstone(words: serde_json::Value) -> String {
    let mut line = serde_json::json!({
        "type": "record", "agent": "main", "level": "PUBLIC", "id": format!("{:032x}", 1),
        "key": "k", "version": 1, "content": "", "tags": [], "origin": "AGENT",
        "standing": "trusted", "session": "elsewhere", "created_at": at(-1).to_string(),
        "updated_at": at(-1).to_string(), "deleted_at": at(0).to_string(), "hides_lower": true,
    });
    for (name, value) in words.as_object().unwrap() {
        line[name] = value.clone();
    }
    let head = r#"{"type":"header","format":"remora-export","version":1}"#;
    format!("{head}\n{line}\n")
}

#[test]
fn a_tombstone_loses_its_words_when_their_time_has_come_and_goes_once_it_gave_way() {
    let expiry = at(10 * DAY).to_string();
    for (words, last, bytes) in [
        (serde_json::json!({"content": "words"}), 180 * DAY, 5),
        (serde_json::json!({"source": "a letter"}), 180 * DAY, 0),
        // It is over at that moment, where what was deleted stays so long.
        (
            serde_json::json!({"content": "words", "expires_at": expiry}),
            10 * DAY,
            5,
        ),
    ] {
        let store = Store::new();
        let report = store
            .operator(0)
            .import(
                &mut tombstone(words).as_bytes(),
                &Default::default(),
                &mut quietly,
            )
            .unwrap();
        assert_eq!(report.records.imported, 1, "{report:?}");
        let first = at(last).millis() + i64::from(last == 180 * DAY);
        let pruned = |millis: i64| {
            let operator = store
                .storage
                .operator(Instant::from_millis(millis).unwrap());
            let pruned = operator
                .prune(None, &Prune::default(), &mut quietly)
                .unwrap();
            (figures(&pruned[0]), pruned[0].content_bytes)
        };
        assert_eq!(pruned(first - 1), ([0, 0, 0, 0], 0));
        assert_eq!(pruned(first), ([0, 0, 0, 1], bytes));
        assert_eq!(pruned(first), ([0, 0, 0, 0], 0));
        assert_eq!(store.seen(P, P, "k").as_deref(), Some("†"));
        store.assert_sound();
        // Long deleted, but only then did something take its place.
        store.later(P, 300 * DAY).put(&draft("k", "again")).unwrap();
        assert_eq!(figures(&prune(&store, 480)[0]), [0, 0, 0, 0]);
        assert_eq!(figures(&prune(&store, 481)[0]), [0, 1, 0, 0]);
    }
}
