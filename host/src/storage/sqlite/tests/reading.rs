//! Reading.

use super::*;
use crate::storage::{Filter, Presence, limits};

#[test]
fn a_level_above_the_taint_is_refused() {
    let store = Store::new();
    store.save(R, "k", "x");
    for taint in [P, I, C] {
        let mut shelves = store.agent(taint);
        let errors = [
            shelves.fetch(R, "k").unwrap_err(),
            shelves.search(R, "x", 0, 1).unwrap_err(),
            shelves.page(R, &Filter::default(), None, 1).unwrap_err(),
            shelves.present(R, &["k".to_owned()]).unwrap_err(),
            shelves.versions(R, "k", None, 1).unwrap_err(),
            shelves.edges(R, &[]).unwrap_err(),
            shelves.stale(R, at(0), None, 1).unwrap_err(),
            shelves.used(R, 0, 1, 1).unwrap_err(),
            shelves.counts(R).unwrap_err(),
            shelves.tags(R, 1).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Refused);
        }
    }
}

#[test]
fn a_read_never_opens_a_file_above_the_taint() {
    let store = Store::new();
    store.save(P, "k", "x");
    store.save(C, "k", "y");
    std::fs::write(store.path(R), "not a database").unwrap();
    store
        .by_hand(C)
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let store = Store {
        storage: SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap(),
        folder: store.folder,
    };
    let mut shelves = store.agent(I);
    assert_eq!(
        content(shelves.fetch(P, "k").unwrap()).as_deref(),
        Some("x")
    );
    assert_eq!(shelves.search(P, "x", 0, 1).unwrap().items.len(), 1);
    assert_eq!(shelves.counts(P).unwrap().live, 1);
    let found = live(shelves.fetch(P, "k").unwrap());
    shelves.record_use(std::slice::from_ref(&found.id));
    let later = at(1);
    assert_eq!(shelves.stale(P, later, None, 1).unwrap().items.len(), 1);
    assert_eq!(shelves.versions(P, "k", None, 1).unwrap().items.len(), 1);
    assert_eq!(
        shelves.edges(P, std::slice::from_ref(&found.id)).unwrap(),
        []
    );
    assert_eq!(shelves.used(P, 0, 1, 1).unwrap(), Default::default());
    shelves.stamp(&found.id, None).unwrap();
}

fn keys(store: &Store, filter: &Filter, limit: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let after = all.last().cloned();
        let page = store
            .agent(P)
            .page(P, filter, after.as_deref(), limit)
            .unwrap();
        all.extend(page.items.into_iter().map(|memory| memory.key));
        if !page.more {
            return all;
        }
    }
}

#[test]
fn pages_follow_each_other_in_the_order_of_the_keys_bytes() {
    let store = Store::with(SqliteOptions::default().page_rows(2));
    let mut names = ["b", "B", "a", "ab", "ä", "Z", "10", "9", "\u{10348}"]
        .map(str::to_owned)
        .to_vec();
    for name in &names {
        store.save(P, name, "x");
    }
    names.sort();
    assert_eq!(keys(&store, &Filter::default(), 100), names);
    assert_eq!(keys(&store, &Filter::default(), 1), names);
    let page = store
        .agent(P)
        .page(P, &Filter::default(), None, 100)
        .unwrap();
    assert_eq!((page.items.len(), page.more), (2, true));
}

#[test]
fn a_filter_takes_any_or_every_tag_whole() {
    let store = Store::with(SqliteOptions::default().page_rows(2));
    for (key, tags) in [
        ("a", &["x"][..]),
        ("b", &["x", "y"]),
        ("c", &["y", "z"]),
        ("d", &["xy"]),
        ("e", &["x", "y", "z"]),
        ("f", &[]),
    ] {
        store.agent(P).put(&tagged(key, tags)).unwrap();
    }
    let with = |tags: &[&str], match_all| {
        let filter = Filter {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            match_all,
            excerpt_bytes: 10,
        };
        keys(&store, &filter, 100).concat()
    };
    assert_eq!(with(&["x"], false), "abe");
    assert_eq!(with(&["x", "z"], false), "abce");
    assert_eq!(with(&["x", "z"], true), "e");
    assert_eq!(with(&["x", "y"], true), "be");
    assert_eq!(with(&["x", "x"], true), "abe");
    assert_eq!(with(&["X"], false), "");
    assert_eq!(with(&[], true), "abcdef");
    store.save(P, "e", "no tags now");
    assert_eq!(with(&["z"], false), "c");
}

#[test]
fn a_filter_never_reads_the_whole_shelf() {
    let store = Store::new();
    store.save(P, "a", "b");
    let db = store.by_hand(P);
    let plan = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nothing = vec![""; statement.parameter_count()];
        statement
            .query_map(rusqlite::params_from_iter(nothing), |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    for (tags, match_all) in [(0, false), (1, true), (3, true), (3, false)] {
        let filter = Filter {
            tags: vec!["t".to_owned(); tags],
            match_all,
            excerpt_bytes: 0,
        };
        for step in plan(&super::super::read::candidates(&filter)) {
            assert!(!step.contains("SCAN"), "{step}");
            assert!(!step.contains("B-TREE"), "{step}");
        }
    }
}

#[test]
fn a_page_is_bounded_in_bytes_but_has_one_row() {
    let store = Store::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        store.save(P, key, &key.repeat(limits::CONTENT_BYTES));
    }
    let whole = Filter {
        excerpt_bytes: usize::MAX,
        ..Filter::default()
    };
    let page = store.agent(P).page(P, &whole, None, 100).unwrap();
    assert_eq!((page.items.len(), page.more), (4, true));
    assert_eq!(keys(&store, &whole, 100).concat(), "abcdef");
    let excerpts = Filter {
        excerpt_bytes: 3,
        ..Filter::default()
    };
    let page = store.agent(P).page(P, &excerpts, None, 100).unwrap();
    assert_eq!((page.items.len(), page.more), (6, false));
    assert_eq!(page.items[0].content, "aaa");
    assert_eq!(page.items[0].content_bytes, 262_144);
}

#[test]
fn an_excerpt_is_cut_between_characters() {
    let store = Store::new();
    store.save(P, "k", "aäö");
    let cut = |bytes| {
        let filter = Filter {
            excerpt_bytes: bytes,
            ..Filter::default()
        };
        store.agent(P).page(P, &filter, None, 1).unwrap().items[0]
            .content
            .clone()
    };
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 9].map(cut),
        ["", "a", "a", "aä", "aä", "aäö", "aäö"]
    );
}

#[test]
fn presence_is_told_in_the_order_asked() {
    let store = Store::new();
    store.user(P).put(&draft("u", "x")).unwrap();
    store.save(P, "a", "x");
    let ask = ["a", "none", "u", "a"].map(str::to_owned);
    let told = store.agent(P).present(P, &ask).unwrap();
    assert_eq!(
        told,
        [
            Presence::Live(Origin::Agent),
            Presence::Absent,
            Presence::Live(Origin::User),
            Presence::Live(Origin::Agent)
        ]
    );
    let many = vec!["k".to_owned(); limits::PRESENT + 1];
    assert_eq!(
        store.agent(P).present(P, &many).unwrap_err().kind(),
        ErrorKind::TooLarge
    );
}

#[test]
fn tags_are_counted_over_live_records_the_most_used_first() {
    let store = Store::new();
    for (key, tags) in [
        ("a", &["x", "y"][..]),
        ("b", &["y"]),
        ("c", &["z"]),
        ("d", &["w"]),
    ] {
        store.agent(P).put(&tagged(key, tags)).unwrap();
    }
    store.agent(P).retire("d", false).unwrap();
    let expiring = Draft {
        expires_at: Some(at(5)),
        ..tagged("e", &["v", "z"])
    };
    store.agent(P).put(&expiring).unwrap();
    let counts = |seconds, limit| -> Vec<(String, u64)> {
        let tags = store.later(P, seconds).tags(P, limit).unwrap();
        tags.into_iter().map(|tag| (tag.tag, tag.count)).collect()
    };
    let expect = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs
            .iter()
            .map(|(tag, count)| ((*tag).to_owned(), *count))
            .collect()
    };
    assert_eq!(
        counts(0, 9),
        expect(&[("y", 2), ("z", 2), ("v", 1), ("x", 1)])
    );
    assert_eq!(counts(5, 9), expect(&[("y", 2), ("x", 1), ("z", 1)]));
    assert_eq!(counts(5, 1), expect(&[("y", 2)]));
}
