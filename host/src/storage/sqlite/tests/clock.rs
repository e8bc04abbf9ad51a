//! Expiry: decided when reading, by instant, to the millisecond, and by every
//! path alike.

use std::collections::BTreeSet;

use super::*;
use crate::clock::{Clock as _, SystemClock};
use crate::storage::{Filter, Presence};

fn millis(millis: i64) -> Instant {
    Instant::from_millis(millis).unwrap()
}

fn open_at(store: &Store, taint: Level, now: Instant) -> Box<dyn Shelves> {
    store.open(Access {
        now,
        ..access(taint, Origin::Agent)
    })
}

fn until(key: &str, expires_at: Instant) -> Draft {
    Draft {
        expires_at: Some(expires_at),
        tags: vec!["tag".to_owned()],
        ..draft(key, "words")
    }
}

/// Whether a lone record `k` of PUBLIC is there at a moment, on every path.
fn there(store: &Store, taint: Level, now: Instant) -> bool {
    let mut shelves = open_at(store, taint, now);
    let last = Instant::from_millis_clamped(i64::MAX);
    let tagged = Filter {
        tags: vec!["tag".to_owned()],
        ..Filter::default()
    };
    let mut told = vec![
        shelves.fetch(P, "k").unwrap().is_some(),
        !shelves.search(P, "words", 0, 9).unwrap().items.is_empty(),
        !shelves
            .page(P, &Filter::default(), None, 9)
            .unwrap()
            .items
            .is_empty(),
        !shelves.page(P, &tagged, None, 9).unwrap().items.is_empty(),
        shelves.present(P, &["k".to_owned()]).unwrap()[0] != Presence::Absent,
        !shelves.versions(P, "k", None, 9).unwrap().items.is_empty(),
        !shelves.stale(P, last, None, 9).unwrap().items.is_empty(),
        shelves.counts(P).unwrap().live == 1,
        !shelves.tags(P, 9).unwrap().is_empty(),
    ];
    if taint == P {
        told.push(!shelves.used(P, 0, 9, 9).unwrap().items.is_empty());
    }
    told.dedup();
    assert_eq!(
        told.len(),
        1,
        "every path tells the same at {now}: {told:?}"
    );
    told[0]
}

#[test]
fn a_record_is_over_at_its_expiry_and_not_a_millisecond_before() {
    for expiry in [
        // Ends of a day, a year, a leap day and what is far ahead.
        "2026-12-31 23:59:59.999",
        "2027-01-01 04:59:59.000",
        "2028-02-29 23:59:59.999",
        "2028-02-29 12:00:00.001",
        "9999-12-30 21:59:59.999",
    ] {
        let expiry = Instant::from_sql(expiry).unwrap();
        let store = Store::new();
        let saved = store.agent(P).put(&until("k", expiry)).unwrap();
        let mut shelves = store.agent(P);
        shelves.fetch(P, "k").unwrap();
        shelves.record_use(std::slice::from_ref(&saved.id));
        let (before, after) = (millis(expiry.millis() - 1), millis(expiry.millis() + 1));
        for taint in [P, R] {
            assert!(there(&store, taint, at(0)));
            assert!(there(&store, taint, before), "{expiry}");
            assert!(!there(&store, taint, expiry), "{expiry}");
            assert!(!there(&store, taint, after), "{expiry}");
        }
        let error = open_at(&store, P, expiry)
            .stamp(&saved.id, None)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        open_at(&store, P, before).stamp(&saved.id, None).unwrap();
        // A clock that was set back tells what it told then.
        assert!(there(&store, P, before));
    }
}

#[test]
fn an_expiry_must_lie_ahead_by_a_millisecond_at_least() {
    let store = Store::new();
    let now = at(0);
    for (expiry, allowed) in [(-1, false), (0, false), (1, true)] {
        let draft = until("k", millis(now.millis() + expiry));
        assert_eq!(store.agent(P).put(&draft).is_ok(), allowed, "{expiry}");
    }
    let error = store.agent(P).put(&until("k", now)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains(&now.to_string()), "{error}");
}

#[test]
fn nothing_that_expired_was_ever_pruned_and_all_of_it_is_still_kept() {
    let store = Store::new();
    store.agent(P).put(&until("k", at(1))).unwrap();
    assert!(!there(&store, P, at(1)));
    let rows: i64 = store
        .by_hand(P)
        .query_row("SELECT count(*) FROM record", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn records_from_a_clock_that_was_ahead_are_read_as_they_are() {
    let store = Store::new();
    for (key, days) in [("k10", 10), ("k400", 400)] {
        let ahead = store.later(P, days * 86_400).put(&draft(key, "words"));
        ahead.unwrap();
    }
    store.save(P, "now", "words");
    let mut shelves = store.agent(P);
    let found = shelves.search(P, "words", 0, 9).unwrap();
    assert_eq!(found.items.len(), 3);
    assert!(found.items.iter().all(|hit| hit.score.is_finite()));
    let order: Vec<String> = shelves
        .stale(P, Instant::from_millis_clamped(i64::MAX), None, 9)
        .unwrap()
        .items
        .into_iter()
        .map(|memory| memory.key)
        .collect();
    assert_eq!(order, ["now", "k10", "k400"]);
}

/// `live_memory` asks SQLite for the time, a session is told it. This holds that
/// at one moment both serve the same, also around each expiry.
#[test]
fn the_view_by_sqlites_clock_and_a_session_at_that_moment_serve_the_same() {
    let store = Store::new();
    let began = SystemClock.now();
    for i in 0..200 {
        // From some moment after this test's saves, every other millisecond.
        let expiry = millis(began.millis() + 600 + 2 * i);
        let mut shelves = open_at(&store, P, began);
        shelves.put(&until(&format!("k{i:03}"), expiry)).unwrap();
    }
    store.save(P, "for ever", "words");
    let old = store.save(P, "old", "words");
    let newer = Draft {
        supersedes: vec![old.id],
        ..draft("newer", "words")
    };
    store.agent(P).put(&newer).unwrap();
    store.save(P, "deleted", "words");
    store.agent(P).retire("deleted", true).unwrap();
    store
        .open(access(P, Origin::Tool))
        .put(&draft("apart", "words"))
        .unwrap();
    let db = store.by_hand(P);
    let mut sizes = BTreeSet::new();
    loop {
        // In one statement SQLite's clock stands still.
        let (now, view): (String, String) = db
            .query_row(
                "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now'),
                     (SELECT json_group_array(key) FROM live_memory)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        let now = Instant::from_sql(&now).expect("SQLite writes moments as Remora does");
        let ours = SystemClock.now().millis() - now.millis();
        assert!((0..5_000).contains(&ours), "the clocks are {ours} ms apart");
        let view: BTreeSet<String> = serde_json::from_str::<Vec<String>>(&view)
            .unwrap()
            .into_iter()
            .collect();
        let mut shelves = open_at(&store, P, now);
        let mut served = BTreeSet::new();
        let mut after: Option<String> = None;
        loop {
            let page = shelves
                .page(P, &Filter::default(), after.as_deref(), 200)
                .unwrap();
            served.extend(page.items.into_iter().map(|memory| memory.key));
            if !page.more {
                break;
            }
            after = served.last().cloned();
        }
        assert_eq!(view, served, "at {now}");
        sizes.insert(view.len());
        if now.millis() > began.millis() + 1_100 {
            break;
        }
    }
    assert!(sizes.contains(&2), "{sizes:?}");
    assert!(sizes.len() > 3, "it looked too rarely: {sizes:?}");
}

#[test]
fn what_waits_and_what_was_confirmed_from_above_is_over_at_that_moment_too() {
    let expiry = Instant::from_sql("2027-01-01 04:59:59.000").unwrap();
    let store = Store::new();
    let saved = store.agent(P).put(&until("k", expiry)).unwrap();
    store.later(C, 1).stamp(&saved.id, None).unwrap();
    let mut person = store.open(Access {
        now: at(1),
        ..access(P, Origin::User)
    });
    person.put(&draft("said", "words")).unwrap();
    store.agent(P).put(&until("said", expiry)).unwrap();
    let mut tool = store.open(access(P, Origin::Tool));
    let waits = tool.put(&until("heard", expiry)).unwrap().id;
    let last = Instant::from_millis_clamped(i64::MAX);
    for (moment, there) in [(-1, 1), (0, 0), (1, 0)] {
        let now = millis(expiry.millis() + moment);
        let counts = open_at(&store, P, now).counts(P).unwrap();
        assert_eq!(
            (counts.live, counts.pending),
            (1 + there, there),
            "{moment}"
        );
        assert_eq!(counts.quarantined, there, "{moment}");
        let there = usize::try_from(there).unwrap();
        for taint in [P, C] {
            let queue = open_at(&store, taint, now).stale(P, last, None, 9).unwrap();
            assert_eq!(queue.items.len(), 1 + there, "{moment}");
        }
        let operator = store.storage.operator(now);
        assert_eq!(operator.waiting("main", P, 9).unwrap().len(), 2 * there);
        let waiting = operator.waits("main", P, &waits).unwrap();
        assert_eq!(waiting.is_some(), there == 1);
        let unused = operator.unused(None, Duration::ZERO).unwrap();
        assert_eq!(unused.len(), 1 + there, "{moment}");
        let stats = &operator.stats(None).unwrap()[0];
        assert_eq!(
            (stats.live, stats.expired),
            (1 + there as u64, 3 * (1 - there as u64))
        );
        let oldest = stats.oldest_unconfirmed.as_ref().unwrap();
        let expected = if there == 1 { "k" } else { "said" };
        assert_eq!(oldest.key, expected, "{moment}");
    }
}
