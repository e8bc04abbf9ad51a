//! Stats, digest and unused.

use super::*;
use crate::storage::sqlite::operator::{Change, LevelStats};

fn counts(stats: &LevelStats) -> [u64; 7] {
    [
        stats.all,
        stats.live,
        stats.expired,
        stats.superseded,
        stats.deleted,
        stats.pending,
        stats.quarantined,
    ]
}

#[test]
fn every_record_is_counted_once() {
    let store = Store::new();
    store.save(P, "a", "four");
    store.save(P, "a", "changed");
    store.save(P, "b", "x");
    store.delete(P, "b");
    store.agent(P).put(&expiring("c", 1)).unwrap();
    store.user(P).put(&draft("d", "mine")).unwrap();
    store.save(P, "d", "theirs");
    store
        .open(access(P, Origin::Tool))
        .put(&draft("e", "web"))
        .unwrap();
    store.save(C, "a", "y");
    store.agent(C).retire("a", true).unwrap();

    let stats = store.operator(1).stats(None).unwrap();
    let levels: Vec<Level> = stats.iter().map(|level| level.level).collect();
    assert_eq!(levels, [P, C]);
    assert_eq!(counts(&stats[0]), [7, 2, 1, 1, 1, 1, 1]);
    assert_eq!(stats[0].gap, 5);
    assert_eq!(stats[0].live_content_bytes, 7 + 4);
    assert_eq!(stats[0].content_bytes, 4 + 7 + 1 + 5 + 4 + 6 + 3);
    assert!(stats[0].file_bytes > 4096);
    assert_eq!(stats[0].events, 8);
    assert_eq!(counts(&stats[1]), [2, 0, 0, 0, 2, 0, 0]);
    assert_eq!(stats[1].tombstones, 1);
    assert_eq!(stats[1].oldest_unconfirmed, None);
    // To the millisecond, and before anything is pruned.
    let before = Instant::from_millis(at(DAY).millis() - 1).unwrap();
    let stats = store.storage.operator(before).stats(None).unwrap();
    assert_eq!(counts(&stats[0]), [7, 3, 0, 1, 1, 1, 1]);
}

#[test]
fn the_oldest_unconfirmed_moves_on_when_it_is_confirmed() {
    let store = Store::new();
    let first = store.save(P, "first", "x");
    store.later(P, 5).put(&draft("second", "x")).unwrap();
    let oldest = || {
        let stats = store.operator(1).stats(Some("main")).unwrap();
        let oldest = stats[0].oldest_unconfirmed.clone().unwrap();
        (oldest.key, oldest.since)
    };
    assert_eq!(oldest(), ("first".to_owned(), at(0)));
    store.later(P, 9).stamp(&first.id, None).unwrap();
    assert_eq!(oldest(), ("second".to_owned(), at(5)));
}

#[test]
fn an_agent_without_memories_is_not_found() {
    let store = Store::new();
    store.save(P, "a", "x");
    let error = store.operator(0).stats(Some("other")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("\"main\""), "{error}");
    assert_eq!(store.operator(0).agents().unwrap(), ["main"]);
    assert_eq!(store.operator(0).levels("main").unwrap(), [P]);
    assert_eq!(Store::new().operator(0).stats(None).unwrap(), []);
}

#[test]
fn agents_are_told_by_their_names_whatever_their_folders_are_called() {
    let store = Store::new();
    for agent in ["Ann Lee", "ä/b", "main", "%41"] {
        let mut shelves = store.open(Access {
            agent: agent.to_owned(),
            ..access(P, Origin::User)
        });
        shelves.put(&draft("k", "x")).unwrap();
    }
    assert_eq!(
        store.operator(0).agents().unwrap(),
        ["%41", "Ann Lee", "main", "ä/b"]
    );
    assert_eq!(store.operator(0).stats(None).unwrap().len(), 4);
}

#[test]
fn looking_leaves_no_line_in_the_trail() {
    let store = Store::new();
    store.save(P, "a", "x");
    let operator = store.operator(400);
    operator.stats(None).unwrap();
    operator.digest(None, at(0)).unwrap();
    operator.unused(None, days(1)).unwrap();
    operator.verify(None, &mut quietly).unwrap();
    assert_eq!(store.told(P), []);
}

#[test]
fn the_digest_tells_what_happened_since_and_no_words() {
    let store = Store::new();
    store.save(P, "before", "secret");
    let sourced = Draft {
        source: Some("the manual".to_owned()),
        ..draft("new", "secret")
    };
    store.later(P, 10).put(&sourced).unwrap();
    store
        .later(P, 20)
        .put(&draft("before", "secret two"))
        .unwrap();
    store.later(C, 30).put(&draft("high", "secret")).unwrap();
    store.later(P, 40).retire("new", false).unwrap();
    let mut tool = store.open(Access {
        now: at(50),
        ..access(P, Origin::Tool)
    });
    tool.put(&draft("page", "secret")).unwrap();

    let digest = store.operator(1).digest(None, at(10)).unwrap();
    let told: Vec<(Change, &str, Level, Instant)> = digest
        .iter()
        .map(|entry| (entry.change, entry.key.as_str(), entry.level, entry.at))
        .collect();
    assert_eq!(
        told,
        [
            (Change::Saved, "new", P, at(10)),
            (Change::Changed, "before", P, at(20)),
            (Change::Saved, "high", C, at(30)),
            (Change::Deleted, "new", P, at(40)),
            (Change::Saved, "page", P, at(50)),
        ]
    );
    assert_eq!(digest[0].source.as_deref(), Some("the manual"));
    assert_eq!(digest[4].standing, "quarantined");
    assert_eq!(digest[4].origin, "TOOL");
    let json = serde_json::to_string(&digest).unwrap();
    assert!(!json.contains("secret"), "{json}");
    assert!(
        json.contains(r#""change":"saved","agent":"main","level":"PUBLIC""#),
        "{json}"
    );
    // Nothing of tomorrow, were a clock ahead.
    assert_eq!(
        store.storage.operator(at(5)).digest(None, at(1)).unwrap(),
        []
    );
}

#[test]
fn the_digest_tells_who_did_it_and_what_took_the_place_of_what() {
    let store = Store::new();
    let by = |session: &str, seconds: i64, origin: Origin| {
        store.open(Access {
            session: session.to_owned(),
            now: at(seconds),
            ..access(P, origin)
        })
    };
    by("ada", 1, Origin::User).put(&draft("old", "x")).unwrap();
    let gone = by("ada", 2, Origin::User).put(&draft("gone", "x")).unwrap();
    let taking = Draft {
        supersedes: vec![
            by("ada", 3, Origin::User)
                .put(&draft("older", "x"))
                .unwrap()
                .id,
        ],
        ..draft("newer", "y")
    };
    by("bob", 10, Origin::User).put(&taking).unwrap();
    by("bob", 11, Origin::User).retire("gone", false).unwrap();
    let waits = by("model", 12, Origin::Agent)
        .put(&draft("old", "z"))
        .unwrap();
    let refused = by("model", 13, Origin::Agent)
        .put(&draft("newer", "z"))
        .unwrap();
    let operator = |seconds| store.storage.operator(at(seconds));
    operator(14).undelete(None, &gone.id).unwrap();
    operator(15).accept("main", P, &waits.id[..6]).unwrap();
    operator(16).refuse("main", P, &refused.id[..4]).unwrap();
    let digest = operator(20).digest(None, at(10)).unwrap();
    let told: Vec<(Change, &str, &str)> = digest
        .iter()
        .map(|entry| (entry.change, entry.key.as_str(), entry.session.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Change::Saved, "newer", "bob"),
            (Change::Superseded, "older", "bob"),
            (Change::Saved, "old", "model"),
            (Change::Saved, "newer", "model"),
            (Change::Restored, "gone", "operator"),
            (Change::Accepted, "old", "operator"),
            (Change::Deleted, "newer", "operator"),
        ]
    );
    by("bob", 30, Origin::User).retire("gone", false).unwrap();
    let digest = operator(40).digest(None, at(30)).unwrap();
    assert_eq!(
        (digest[0].change, digest[0].session.as_str()),
        (Change::Deleted, "bob")
    );
    store.assert_sound();
}

#[test]
fn unused_is_what_was_saved_long_ago_and_used_from_no_level_since() {
    let store = Store::new();
    let used = store.save(P, "used from above", "x").id;
    store.save(P, "never used", "x");
    let once = store.save(P, "used long ago", "x").id;
    let confirmed = store.save(P, "confirmed", "x").id;
    store.agent(P).put(&expiring("expired", 2)).unwrap();
    store.save(P, "deleted", "x");
    store.delete(P, "deleted");
    store.later(P, 90 * DAY).put(&draft("young", "x")).unwrap();
    let mut early = store.later(P, DAY);
    early.fetch(P, "used long ago").unwrap();
    early.record_use(&[once]);
    drop(early);
    let mut above = store.later(C, 95 * DAY);
    above.put(&draft("own", "x")).unwrap();
    above.fetch(P, "used from above").unwrap();
    above.record_use(&[used]);
    above.stamp(&confirmed, None).unwrap();
    drop(above);

    let unused = store.operator(100).unused(None, days(30)).unwrap();
    let told: Vec<(&str, Option<Instant>, u64)> = unused
        .iter()
        .map(|unused| (unused.key.as_str(), unused.last_used_at, unused.uses))
        .collect();
    assert_eq!(
        told,
        [("never used", None, 0), ("used long ago", Some(at(DAY)), 1),]
    );
    let keys = |span: u32| -> Vec<String> {
        let unused = store
            .operator(100)
            .unused(Some("main"), days(span))
            .unwrap();
        unused.into_iter().map(|unused| unused.key).collect()
    };
    assert_eq!(keys(1000), [] as [&str; 0]);
    assert_eq!(keys(1).len(), 6);
}

#[test]
fn the_digest_is_of_each_moment_from_the_first_to_now_and_tells_each_thing_once() {
    let store = Store::new();
    let digest = |since: i64, now: i64| -> Vec<(Change, Level, String)> {
        let entries = store.storage.operator(at(now)).digest(None, at(since));
        let entries = entries.unwrap().into_iter();
        entries.map(|e| (e.change, e.level, e.key)).collect()
    };
    let told = |change, level, key: &str| (change, level, key.to_owned());
    store.later(P, 1).put(&draft("a", "one")).unwrap();
    assert_eq!(digest(1, 1), [told(Change::Saved, P, "a")]);
    // In the very moment of the version before.
    store.later(P, 1).put(&draft("a", "two")).unwrap();
    assert_eq!(
        digest(1, 1),
        [told(Change::Saved, P, "a"), told(Change::Changed, P, "a")]
    );
    // A deletion that hides is no save, and what is saved behind it changes nothing.
    store.later(C, 2).retire("a", true).unwrap();
    assert_eq!(digest(2, 2), [told(Change::Deleted, C, "a")]);
    store.later(C, 3).put(&draft("a", "three")).unwrap();
    assert_eq!(digest(3, 3), [told(Change::Saved, C, "a")]);
    // Nor does it change what is told that the version before is gone.
    store.later(P, 4).put(&draft("a", "four")).unwrap();
    let prune = crate::storage::sqlite::operator::Prune::default().superseded_after(Duration::ZERO);
    store
        .storage
        .operator(at(5))
        .prune(None, &prune, &mut quietly)
        .unwrap();
    assert_eq!(digest(4, 4), [told(Change::Changed, P, "a")]);
    // Two took its place.
    let old = store.user(P).put(&draft("old", "x")).unwrap().id;
    let taking = |key: &str| Draft {
        supersedes: vec![old.clone()],
        ..draft(key, "x")
    };
    let waits = store.later(P, 10).put(&taking("waits")).unwrap().id;
    let mut person = store.open(Access {
        now: at(11),
        ..access(P, Origin::User)
    });
    person.put(&taking("newer")).unwrap();
    let operator = store.storage.operator(at(12));
    operator.accept("main", P, &waits).unwrap();
    let superseded = digest(10, 12).into_iter();
    let superseded: Vec<_> = superseded
        .filter(|(change, ..)| *change == Change::Superseded)
        .collect();
    assert_eq!(superseded, [told(Change::Superseded, P, "old")]);
}

#[test]
fn unused_is_what_lies_behind_the_span_to_the_millisecond() {
    let store = Store::new();
    store.save(P, "saved", "x");
    let used = store.later(P, -DAY).put(&draft("used", "x")).unwrap().id;
    let own = store.later(P, -DAY).put(&draft("own", "x")).unwrap().id;
    let above = store.later(P, -DAY).put(&draft("above", "x")).unwrap().id;
    let mut shelves = store.agent(P);
    shelves.fetch(P, "used").unwrap();
    shelves.record_use(&[used]);
    shelves.stamp(&own, None).unwrap();
    drop(shelves);
    store.agent(C).stamp(&above, None).unwrap();
    let unused = |millis: i64| {
        let now = Instant::from_millis(at(30 * DAY).millis() + millis).unwrap();
        let unused = store.storage.operator(now).unused(None, days(30)).unwrap();
        unused.len()
    };
    assert_eq!((unused(0), unused(1)), (0, 4));
}
