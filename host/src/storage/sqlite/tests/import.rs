//! An export becomes memory again.

use std::io::Cursor;

use serde_json::{Value, json};

use super::super::operator::{ImportOptions, ImportReport, Prune, Purge};
use super::backup::crashes;
use super::restore::{rich, text, verify};
use super::*;
use crate::storage::{Filter, Standing};

fn exported(store: &Store) -> String {
    let mut text = Vec::new();
    store
        .storage
        .operator(at(100))
        .export(None, None, &mut text, &mut |_| ())
        .unwrap();
    String::from_utf8(text).unwrap()
}

impl Store {
    fn import_as(&self, origin: Origin, text: impl AsRef<[u8]>) -> Result<ImportReport, Error> {
        let options = ImportOptions::default().origin(origin);
        self.storage
            .operator(at(200))
            .import(&mut Cursor::new(text), &options, &mut |_| ())
    }

    fn import(&self, text: impl AsRef<[u8]>) -> ImportReport {
        self.import_as(Origin::User, text).unwrap()
    }
}

const HEAD: &str = r#"{"type":"header","format":"remora-export","version":1}"#;

fn record(number: u32, key: &str, content: &str) -> Value {
    json!({
        "type": "record", "agent": "main", "level": "PUBLIC",
        "id": format!("{number:032x}"), "key": key, "version": 1, "content": content,
        "tags": [], "origin": "AGENT", "standing": "trusted", "session": "elsewhere",
        "created_at": at(-100).to_string(), "updated_at": at(-100).to_string(),
    })
}

fn with(mut line: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn file(lines: &[Value]) -> String {
    let mut text = format!("{HEAD}\n");
    for line in lines {
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn keys(store: &Store) -> Vec<String> {
    let filter = Filter {
        excerpt_bytes: 100,
        ..Filter::default()
    };
    let page = store.user(P).page(P, &filter, None, 200).unwrap();
    page.items.into_iter().map(|memory| memory.key).collect()
}

/// F073: Gentleman-Programming/engram #1231; F074: RamaAditya49/titen #111
#[test]
fn exported_imported_into_a_fresh_store_and_exported_again_everything_is_the_same() {
    let store = rich();
    store.save(P, "erased", "words");
    store
        .storage
        .operator(at(50))
        .purge(
            None,
            &Purge::key("erased"),
            Duration::from_secs(5),
            &mut |_| (),
        )
        .unwrap();
    let first = exported(&store);
    let fresh = Store::new();
    let report = fresh.import(&first);
    assert!(report.complete && report.rejected.is_empty(), "{report:?}");
    assert_eq!(report.records.imported, 13);
    let second = exported(&fresh);
    let own = format!("\"store\":\"{}\"", fresh.storage.inner.sealer.store_name());
    let second: String = second
        .lines()
        .filter(|line| !line.contains(&own))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(first, second);
    verify(&fresh.root());
    // And on into a third one, whose trail has the lines of both.
    let third = Store::new();
    third.import(exported(&fresh));
    let of_first = format!("\"store\":\"{}\"", store.storage.inner.sealer.store_name());
    let lines = exported(&third);
    assert!(lines.contains(&of_first) && lines.contains(&own));
    assert_eq!(text(&third.root()), text(&store.root()));
}

#[test]
fn a_version_or_moment_that_would_go_before_all_to_come_is_rejected_with_its_line() {
    const DAY: i64 = 24 * 60 * 60;
    let moment = |seconds: i64| at(200 + seconds).to_string();
    let edge = |number: u32, seconds| {
        json!({
            "type": "edge", "agent": "main", "level": "PUBLIC", "old_level": "PUBLIC",
            "old_id": format!("{number:032x}"), "new_id": format!("{:032x}", 99),
            "at": moment(seconds), "session": "elsewhere",
        })
    };
    let stamp = |number: u32, seconds| {
        json!({
            "type": "stamp", "agent": "main", "level": "PUBLIC", "record_level": "PUBLIC",
            "record_id": format!("{number:032x}"), "at": moment(seconds),
            "session": "elsewhere", "origin": "USER",
        })
    };
    let changed = |number: u32, change| with(record(number, &format!("k{number}"), "x"), change);
    let (just, over) = (moment(DAY), moment(DAY + 1));
    let wrong = [
        (changed(10, json!({"version": 1_000_000_001})), "version"),
        (changed(10, json!({"version": i64::MAX})), "version"),
        (changed(10, json!({"version": 0})), "version"),
        (
            changed(10, json!({"created_at": at(-99 + DAY).to_string()})),
            "created_at",
        ),
        (changed(10, json!({"updated_at": over})), "updated_at"),
        (changed(10, json!({"confirmed_at": over})), "confirmed_at"),
        (changed(10, json!({"superseded_at": over})), "superseded_at"),
        (changed(10, json!({"deleted_at": over})), "deleted_at"),
        (edge(10, DAY + 1), "its at"),
        (stamp(10, DAY + 1), "its at"),
    ];
    let lines: Vec<Value> = wrong.iter().map(|(line, _)| line.clone()).collect();
    let store = Store::new();
    let report = store.import(file(&lines));
    assert_eq!(report.rejected.len(), wrong.len(), "{report:?}");
    for ((number, note), (line, why)) in (2_u64..).zip(&report.rejected).zip(&wrong) {
        assert_eq!(note.line, number);
        assert!(note.reason.contains(why), "{line}: {}", note.reason);
    }
    let right = [
        changed(1, json!({"version": 1_000_000_000})),
        changed(2, json!({"created_at": at(-100 + DAY).to_string()})),
        changed(3, json!({"updated_at": just, "confirmed_at": just})),
        changed(4, json!({"superseded_at": just})),
        changed(5, json!({"deleted_at": just})),
        changed(6, json!({"expires_at": moment(1000 * DAY)})),
        edge(7, DAY),
        stamp(6, DAY),
    ];
    let report = store.import(file(&right));
    assert_eq!(report.rejected, [], "{report:?}");
    assert_eq!(report.records.imported, 6);
    verify(&store.root());
}

#[test]
fn importing_twice_changes_no_record() {
    let store = rich();
    let text_of = exported(&store);
    let fresh = Store::new();
    fresh.import(&text_of);
    let before = text(&fresh.root());
    let events = fresh.storage.events("main", P).unwrap().len();
    let report = fresh.import(&text_of);
    assert_eq!(report.records.imported, 0);
    assert_eq!(report.records.skipped, 13);
    for tally in [report.edges, report.stamps, report.usage, report.events] {
        assert_eq!((tally.imported, tally.rejected), (0, 0), "{report:?}");
    }
    assert_eq!(text(&fresh.root()), before);
    // Its exports leave lines; the import that changed nothing leaves none.
    let after = fresh.storage.events("main", P).unwrap();
    assert!(
        after
            .iter()
            .skip(events)
            .all(|event| event.kind == "export")
    );
    // Back where it came from as well.
    let before = text(&store.root());
    let report = store.import(exported(&fresh));
    assert_eq!(report.records.imported, 0, "{report:?}");
    assert_eq!(text(&store.root()), before);
}

/// F018: thedotmack/claude-mem #1631
#[test]
fn what_is_imported_is_found_at_once() {
    let store = Store::new();
    let lines: Vec<Value> = (0..8)
        .map(|number| record(number, &format!("k{number}"), "a zebra crossing"))
        .collect();
    store.import(file(&lines));
    assert_eq!(
        store.user(P).search(P, "zebra", 0, 20).unwrap().items.len(),
        8
    );
    verify(&store.root());
}

/// F017: Dahliyaal/justicelibre PR #8
#[test]
fn the_same_id_with_other_words_is_rejected_with_its_line_and_never_found() {
    let store = Store::new();
    let report = store.import(file(&[
        record(1, "a", "quagga"),
        record(1, "a", "okapi"),
        record(1, "a", "quagga"),
        record(2, "b", "okapi"),
    ]));
    assert_eq!(report.records.imported, 2);
    assert_eq!((report.rejected[0].line, report.skipped[0].line), (3, 4));
    assert!(report.rejected[0].reason.contains("its id"), "{report:?}");
    let mut shelves = store.user(P);
    let found = shelves.search(P, "okapi", 0, 9).unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].memory.key, "b");
    assert_eq!(shelves.search(P, "quagga", 0, 9).unwrap().items.len(), 1);
    verify(&store.root());
}

/// F072: FerroxLabs/wayland #256
#[test]
fn a_byte_order_mark_and_carriage_returns_are_no_part_of_the_file() {
    let store = Store::new();
    let text = file(&[record(1, "ZEBRA-9340", "words")]).replace('\n', "\r\n");
    let report = store.import(format!("\u{feff}{text}"));
    assert_eq!(report.records.imported, 1);
    assert_eq!(keys(&store), ["ZEBRA-9340"]);
    assert_eq!(
        store
            .user(P)
            .search(P, "ZEBRA-9340", 0, 9)
            .unwrap()
            .items
            .len(),
        1
    );
}

/// F021: modelcontextprotocol/servers PR #4510
#[test]
fn a_file_that_was_cut_off_is_imported_up_to_there_and_said_to_be_incomplete() {
    let store = Store::new();
    for number in 0..5 {
        store.save(P, &format!("k{number}"), "words");
    }
    let whole = exported(&store);
    let last = whole.rfind("\"type\":\"record\"").unwrap();
    for cut in [last + 30, last - 2] {
        let fresh = Store::new();
        let report = fresh.import(&whole[..cut]);
        assert!(!report.complete);
        assert_eq!(report.records.imported, 4);
        assert_eq!(report.unreadable, u64::from(cut > last));
        if cut > last {
            assert_eq!(report.rejected[0].line, 6);
        }
        assert_eq!(keys(&fresh).len(), 4);
        // The whole one completes it.
        let report = fresh.import(&whole);
        assert!(report.complete);
        assert_eq!((report.records.imported, report.records.skipped), (1, 4));
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said_with_its_number_and_the_others_are_imported() {
    let good = record(1, "good", "words");
    let wrong = [
        (json!({"key": ""}), "key"),
        (json!({"key": " a"}), "key"),
        (json!({"content": ""}), "content is empty"),
        (json!({"id": "12"}), "id"),
        (json!({"id": "ABCDEF00000000000000000000000000"}), "id"),
        (json!({"level": "SECRET"}), "no level"),
        (json!({"level": "public"}), "no level"),
        (json!({"agent": "a\nb"}), "agent"),
        (json!({"session": ""}), "session"),
        (json!({"origin": "GOD"}), "no origin"),
        (json!({"standing": "believed"}), "no standing"),
        (json!({"version": 0}), "version"),
        (json!({"version": "1"}), "can't be read"),
        (json!({"tags": "a"}), "can't be read"),
        (json!({"tags": ["b", "a"]}), "tags"),
        (json!({"tags": ["x".repeat(65)]}), "tag"),
        (json!({"source": "x".repeat(1025)}), "source"),
        (json!({"content": "x".repeat(256 * 1024 + 1)}), "bytes"),
        (json!({"created_at": "2026-11-30T01:04:33"}), "moment"),
        (json!({"created_at": "2026-11-30 01:04:33.000"}), "moment"),
        (json!({"updated_at": "2026-02-30T01:04:33.000Z"}), "moment"),
        (json!({"expires_at": "soon"}), "moment"),
        (json!({"hides_lower": true}), "tombstone"),
        (json!({"supersedes": ["a"]}), "id"),
        (json!({"colour": "red"}), "colour"),
        (json!({"type": "letter"}), "letter"),
    ];
    let mut lines: Vec<Value> = wrong
        .iter()
        .map(|(change, _)| with(record(9, "bad", "words"), change.clone()))
        .collect();
    lines.push(good);
    let mut text = file(&lines);
    text.push_str("{\"type\":\"record\"\n");
    text.push_str("\n  \n");
    text.push_str("not json\n");
    text.push_str(&format!("{}\n", "x".repeat(5 * 1024 * 1024)));
    text.push_str(&record(2, "last", "words").to_string());
    let mut text = text.into_bytes();
    text.extend_from_slice(b"\n\"\xff\xfe\"\n");
    let store = Store::new();
    let report = store.import(&text);
    assert_eq!(report.records.imported, 2, "{report:?}");
    assert_eq!(keys(&store), ["good", "last"]);
    for (note, (change, says)) in report.rejected.iter().zip(&wrong) {
        assert!(note.reason.contains(says), "{change}: {note:?}");
    }
    let numbers: Vec<u64> = report.rejected.iter().map(|note| note.line).collect();
    let expected: Vec<u64> = (2..28).chain([29, 32, 33, 35]).collect();
    assert_eq!(numbers, expected);
    assert!(!report.complete);
    // Nothing was made for what was rejected.
    assert_eq!(store.storage.operator(at(0)).agents().unwrap(), ["main"]);
}

#[test]
fn what_is_no_export_is_refused_at_once() {
    let store = Store::new();
    let newer = HEAD.replace("\"version\":1", "\"version\":2");
    let other = HEAD.replace("remora-export", "another");
    let rows = record(1, "a", "b").to_string();
    for text in ["", "\n", "key,value\n", "[]", rows.as_str(), &newer, &other] {
        let error = store.import_as(Origin::User, text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
    }
    assert!(store.storage.operator(at(0)).agents().unwrap().is_empty());
}

#[test]
fn nothing_that_was_superseded_deleted_or_erased_comes_back_with_an_old_export() {
    let store = Store::new();
    let old = store.save(P, "superseded", "zebra");
    store.save(P, "changed", "okapi");
    store.save(P, "deleted", "quagga");
    store.save(P, "erased", "gnu");
    store.save(P, "kept", "x");
    let text_of = exported(&store);
    let new = Draft {
        supersedes: vec![old.id],
        ..draft("new", "y")
    };
    store.agent(P).put(&new).unwrap();
    store.save(P, "changed", "z");
    store.agent(P).retire("deleted", false).unwrap();
    store
        .storage
        .operator(at(10))
        .purge(
            None,
            &Purge::key("erased"),
            Duration::from_secs(5),
            &mut |_| (),
        )
        .unwrap();
    let before = text(&store.root());
    let report = store.import(&text_of);
    assert_eq!(report.records.imported, 0, "{report:?}");
    assert_eq!(text(&store.root()), before);
    // Pruned, the edge still knows what was superseded, and the erasure is kept.
    let prune = Prune::default()
        .superseded_after(Duration::ZERO)
        .deleted_after(Duration::ZERO);
    store
        .storage
        .operator(at(20))
        .prune(None, &prune, &mut |_| ())
        .unwrap();
    store.import(&text_of);
    let mut shelves = store.user(P);
    for words in ["zebra", "gnu"] {
        assert!(
            shelves.search(P, words, 0, 9).unwrap().items.is_empty(),
            "{words}"
        );
    }
    assert_eq!(
        content(shelves.fetch(P, "changed").unwrap()).as_deref(),
        Some("z")
    );
    drop(shelves);
    verify(&store.root());
}

/// F033, small: alphaonedev/ai-memory-mcp #3285
#[test]
fn deleted_rows_don_t_come_back_while_the_rule_holds_that_bounds_their_number() {
    let store = Store::new();
    let keys: Vec<String> = (0..300).map(|number| format!("k{number}")).collect();
    for key in &keys {
        store.save(P, key, "some words");
    }
    let text_of = exported(&store);
    for key in &keys {
        store.agent(P).retire(key, false).unwrap();
    }
    store.import(&text_of);
    assert_eq!(store.user(P).counts(P).unwrap().live, 0);
    let days = |days: i64| store.storage.operator(at(days * 86_400));
    days(179)
        .prune(None, &Prune::default(), &mut |_| ())
        .unwrap();
    store.import(&text_of);
    assert_eq!(store.user(P).counts(P).unwrap().live, 0);
    days(181)
        .prune(None, &Prune::default(), &mut |_| ())
        .unwrap();
    let rows: i64 = store
        .by_hand(P)
        .query_row("SELECT count(*) FROM record", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn of_two_live_records_under_a_key_the_more_trusted_stays_and_of_equal_ones_the_later() {
    struct Case {
        here: (Origin, i64),
        there: (&'static str, i64),
        /// What is live then, and how what stands back stands.
        live: &'static str,
        other: &'static str,
    }
    let case = |here, there, live, other| Case {
        here,
        there,
        live,
        other,
    };
    let (agent, user) = (Origin::Agent, Origin::User);
    for case in [
        case((agent, 0), ("AGENT", 1), "there", "superseded"),
        case((agent, 1), ("AGENT", 0), "here", "superseded"),
        case((user, 0), ("AGENT", 1), "here", "pending"),
        case((user, 1), ("AGENT", 0), "here", "superseded"),
        case((agent, 0), ("USER", 1), "there", "superseded"),
        case((agent, 1), ("USER", 0), "there", "pending"),
    ] {
        let store = Store::new();
        let mut shelves = store.open(Access {
            now: at(case.here.1),
            ..access(P, case.here.0)
        });
        shelves.put(&draft("a", "here")).unwrap();
        let line = with(
            record(1, "a", "there"),
            json!({"origin": case.there.0, "updated_at": at(case.there.1).to_string()}),
        );
        let report = store.import(file(&[line]));
        assert_eq!(report.records.imported, 1);
        assert_eq!(report.gave_way + report.stood_back, 1);
        let found = content(store.user(P).fetch(P, "a").unwrap());
        assert_eq!(found.as_deref(), Some(case.live));
        let (standing, superseded): (String, Option<String>) = store
            .by_hand(P)
            .query_row(
                "SELECT standing, superseded_at FROM record WHERE content <> ?1",
                [case.live],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        let other = if superseded.is_some() {
            "superseded"
        } else {
            standing.as_str()
        };
        assert_eq!(other, case.other);
        assert_eq!(
            store
                .user(P)
                .search(P, "here there", 0, 9)
                .unwrap()
                .items
                .len(),
            1
        );
        verify(&store.root());
    }
}

#[test]
fn what_has_expired_goes_behind_what_has_not() {
    let store = Store::new();
    let expiring = Draft {
        expires_at: Some(at(50)),
        ..draft("a", "here")
    };
    store.user(P).put(&expiring).unwrap();
    store.import(file(&[record(1, "a", "there")]));
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("there"));
    let over = with(
        record(2, "a", "over"),
        json!({"origin": "USER", "updated_at": at(9).to_string(), "expires_at": at(10).to_string()}),
    );
    store.import(file(&[over]));
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("there"));
    verify(&store.root());
}

#[test]
fn two_exports_make_the_same_store_in_either_order() {
    let one = Store::new();
    one.save(P, "a", "from one");
    one.later(P, 5).put(&draft("b", "from one, later")).unwrap();
    one.user(P)
        .put(&draft("c", "from one, the person"))
        .unwrap();
    let two = Store::new();
    two.later(P, 3).put(&draft("a", "from two, later")).unwrap();
    two.save(P, "b", "from two");
    two.later(P, 3)
        .put(&draft("c", "from two, later, the model"))
        .unwrap();
    let (one, two) = (exported(&one), exported(&two));
    let made = [[&one, &two], [&two, &one]].map(|order| {
        let store = Store::new();
        for text in order {
            store.import(text);
        }
        text(&store.root())
    });
    assert_eq!(made[0], made[1]);
}

#[test]
fn a_tombstone_stands_under_its_key_like_a_record() {
    let tombstone = |number, seconds: i64| {
        with(
            record(number, "a", "x"),
            json!({"deleted_at": at(seconds).to_string(), "hides_lower": true}),
        )
    };
    let store = Store::new();
    store.save(P, "a", "here");
    // Older than what is here: it is kept as history.
    store.import(file(&[tombstone(1, -50)]));
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("here"));
    store.import(file(&[tombstone(2, 50)]));
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("†"));
    store.import(file(&[tombstone(3, 60)]));
    let later = with(
        record(4, "a", "there"),
        json!({"updated_at": at(70).to_string()}),
    );
    store.import(file(&[later]));
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("there"));
    verify(&store.root());
}

#[test]
fn an_import_raises_nobodys_trust() {
    let lines = [
        with(record(1, "said", "x"), json!({"origin": "USER"})),
        record(2, "thought", "x"),
        with(
            record(3, "read", "x"),
            json!({"origin": "TOOL", "standing": "quarantined"}),
        ),
        with(record(4, "endorsed", "x"), json!({"origin": "TOOL"})),
        with(record(5, "waits", "x"), json!({"standing": "pending"})),
    ];
    let expected = |vouched| match vouched {
        Origin::User => [
            ("said", "USER", "trusted"),
            ("thought", "AGENT", "trusted"),
            ("read", "TOOL", "quarantined"),
            ("endorsed", "TOOL", "trusted"),
            ("waits", "AGENT", "pending"),
        ],
        Origin::Agent => [
            ("said", "AGENT", "trusted"),
            ("thought", "AGENT", "trusted"),
            ("read", "TOOL", "quarantined"),
            ("endorsed", "TOOL", "quarantined"),
            ("waits", "AGENT", "pending"),
        ],
        Origin::Tool => [
            ("said", "TOOL", "quarantined"),
            ("thought", "TOOL", "quarantined"),
            ("read", "TOOL", "quarantined"),
            ("endorsed", "TOOL", "quarantined"),
            ("waits", "TOOL", "pending"),
        ],
    };
    for vouched in Origin::ALL {
        let store = Store::new();
        let report = store.import_as(vouched, file(&lines)).unwrap();
        assert_eq!(report.records.imported, 5);
        let by_hand = store.by_hand(P);
        for (key, origin, standing) in expected(vouched) {
            let found: (String, String) = by_hand
                .query_row(
                    "SELECT origin, standing FROM record WHERE key = ?1",
                    [key],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert_eq!(
                found,
                (origin.to_owned(), standing.to_owned()),
                "{key} {vouched}"
            );
        }
        assert_eq!(Standing::ALL.len(), 3);
        verify(&store.root());
    }
}

#[test]
fn a_stamp_is_of_whoever_vouches_at_most_and_a_tools_confirms_nothing() {
    let stamp = |origin: &str| {
        json!({
            "type": "stamp", "agent": "main", "level": "PUBLIC", "at": at(50).to_string(),
            "record_id": format!("{:032x}", 1), "record_level": "PUBLIC", "session": "s",
            "origin": origin,
        })
    };
    for (origin, vouched, kept) in [
        ("USER", Origin::User, Some("USER")),
        ("USER", Origin::Agent, Some("AGENT")),
        ("AGENT", Origin::User, Some("AGENT")),
        ("USER", Origin::Tool, None),
        ("TOOL", Origin::User, None),
    ] {
        let store = Store::new();
        store.import(file(&[record(1, "a", "x")]));
        let report = store.import_as(vouched, file(&[stamp(origin)])).unwrap();
        let rejected = u64::from(kept.is_none());
        assert_eq!(
            (report.stamps.imported, report.stamps.rejected),
            (1 - rejected, rejected),
            "{origin} {vouched}: {report:?}"
        );
        let confirmed = live(store.agent(P).fetch(P, "a").unwrap()).confirmed_at;
        assert_eq!(confirmed, kept.map(|_| at(50)));
        let found: Option<String> = store
            .by_hand(P)
            .query_row("SELECT max(origin) FROM stamp", [], |row| row.get(0))
            .unwrap();
        assert_eq!(found.as_deref(), kept);
    }
}

#[test]
fn what_was_erased_on_one_level_is_brought_in_on_no_other() {
    let store = Store::new();
    store.save(C, "a", "secret");
    let text_of = exported(&store);
    store
        .storage
        .operator(at(101))
        .purge(None, &Purge::key("a"), Duration::from_secs(5), &mut |_| ())
        .unwrap();
    for level in ["CONFIDENTIAL", "PUBLIC", "RESTRICTED"] {
        let report = store.import(text_of.replace(
            "\"level\":\"CONFIDENTIAL\"",
            &format!("\"level\":\"{level}\""),
        ));
        let records = report.records;
        assert_eq!((records.imported, records.skipped), (0, 1), "{report:?}");
    }
    assert_eq!(store.seen(R, P, "a"), None);
}

#[test]
fn an_import_lowers_no_level() {
    let store = Store::new();
    store.save(C, "a", "secret");
    let text_of = exported(&store);
    for level in ["PUBLIC", "RESTRICTED"] {
        let report = store.import(text_of.replace(
            "\"level\":\"CONFIDENTIAL\"",
            &format!("\"level\":\"{level}\""),
        ));
        assert_eq!(report.records.imported, 0);
        assert!(
            report.rejected[0]
                .reason
                .contains("is on CONFIDENTIAL here"),
            "{report:?}"
        );
    }
    assert_eq!(store.seen(R, P, "a"), None);
    // What tells of a record stands no lower than it.
    let id = format!("{:032x}", 7);
    let beneath = json!({
        "agent": "main", "level": "PUBLIC", "record_id": id, "record_level": "CONFIDENTIAL",
    });
    let moment = at(0).to_string();
    let report = store.import(file(&[
        with(beneath.clone(), json!({"type": "stamp", "at": moment, "session": "s", "origin": "USER"})),
        with(beneath, json!({"type": "usage", "last_used_at": moment, "uses": 1})),
        json!({
            "type": "edge", "agent": "main", "level": "PUBLIC", "old_id": id,
            "old_level": "CONFIDENTIAL", "new_id": format!("{:032x}", 8), "at": moment, "session": "s",
        }),
    ]));
    assert_eq!(
        (
            report.stamps.rejected,
            report.usage.rejected,
            report.edges.rejected
        ),
        (1, 1, 1),
        "{report:?}"
    );
}

#[test]
fn an_edge_hides_nothing_for_which_nothing_as_trusted_is_there() {
    let store = Store::new();
    let said = store.user(P).put(&draft("said", "by the person")).unwrap();
    let thought = store.save(P, "thought", "by the model");
    let edge = |old: &str, new: u32, level: &str| {
        json!({
            "type": "edge", "agent": "main", "level": level, "old_id": old,
            "old_level": "PUBLIC", "new_id": format!("{new:032x}"),
            "at": at(0).to_string(), "session": "elsewhere",
        })
    };
    let internal = |number, key: &str| with(record(number, key, "x"), json!({"level": "INTERNAL"}));
    let report = store.import(file(&[
        record(1, "new", "words"),
        with(
            record(2, "apart", "words"),
            json!({"standing": "quarantined", "origin": "TOOL"}),
        ),
        with(record(4, "waits", "words"), json!({"standing": "pending"})),
        edge(&thought.id, 4, "PUBLIC"),
        internal(3, "above"),
        edge(&said.id, 9, "PUBLIC"),
        edge(&said.id, 1, "PUBLIC"),
        edge(&said.id, 3, "INTERNAL"),
        edge(&thought.id, 2, "PUBLIC"),
        edge(&thought.id, 3, "INTERNAL"),
        // Nothing is hidden by it: it may come ahead of what it is about.
        edge(&format!("{:032x}", 77), 1, "PUBLIC"),
    ]));
    assert_eq!(
        (report.edges.imported, report.edges.rejected),
        (2, 5),
        "{report:?}"
    );
    assert_eq!(store.seen(I, P, "said").as_deref(), Some("by the person"));
    assert_eq!(store.seen(I, P, "thought"), None);
    assert_eq!(store.seen(P, P, "thought").as_deref(), Some("by the model"));
    store.import(file(&[record(77, "late", "zebra")]));
    assert_eq!(store.seen(P, P, "late"), None);
    let ended: bool = store
        .by_hand(P)
        .query_row(
            "SELECT superseded_at IS NOT NULL FROM record WHERE key = 'late'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert!(ended, "it would hold its key against others");
    assert!(
        store
            .user(P)
            .search(P, "zebra", 0, 9)
            .unwrap()
            .items
            .is_empty()
    );
    let report = store.import(file(&[edge(&thought.id, 1, "PUBLIC")]));
    assert_eq!(report.edges.imported, 1);
    assert_eq!(store.seen(P, P, "thought"), None);
    verify(&store.root());
}

/// F037: ohdearquant/khive #1671
#[test]
fn a_hundred_and_nineteen_records_of_one_moment_are_each_on_one_page() {
    let store = Store::new();
    let lines: Vec<Value> = (0..119)
        .map(|number| record(number, &format!("k{number}"), "x"))
        .collect();
    store.import(file(&lines));
    let mut shelves = store.user(P);
    let mut listed = Vec::new();
    loop {
        let after: Option<String> = listed.last().cloned();
        let page = shelves
            .page(P, &Filter::default(), after.as_deref(), 13)
            .unwrap();
        listed.extend(page.items.into_iter().map(|memory| memory.key));
        if !page.more {
            break;
        }
    }
    let mut sorted = listed.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((listed.len(), sorted.len()), (119, 119));
    let mut stale = Vec::new();
    let mut after = None;
    loop {
        let page = shelves.stale(P, at(0), after.as_ref(), 13).unwrap();
        stale.extend(page.items.iter().map(|memory| memory.id.clone()));
        let Some(last) = page.items.last() else { break };
        after = Some(crate::storage::StalePosition {
            checked_at: last.confirmed_at.unwrap_or(last.updated_at),
            id: last.id.clone(),
        });
    }
    stale.sort();
    stale.dedup();
    assert_eq!(stale.len(), 119);
}

#[test]
fn a_crash_in_the_middle_of_an_import_is_made_good_by_the_same_import() {
    let there = Store::new();
    for number in 0..30 {
        there.save(P, &format!("p{number}"), "words");
        there.save(I, &format!("i{number}"), "words");
    }
    let text_of = exported(&there);
    let store = Store::new();
    let root = store.root();
    let found = crashes(&root, || drop(store.import(&text_of)));
    assert!(found.len() >= 4);
    for (point, crash) in found {
        let root = crash.path().join("store");
        verify(&root);
        let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
        let report = storage
            .operator(at(300))
            .import(
                &mut Cursor::new(&text_of),
                &ImportOptions::default(),
                &mut |_| (),
            )
            .unwrap();
        assert_eq!(
            report.records.imported + report.records.skipped,
            60,
            "{point}"
        );
        drop(storage);
        assert_eq!(text(&root), text(&store.root()), "{point}");
        verify(&root);
    }
}

#[test]
fn an_import_leaves_one_line_in_the_trail_of_each_file_with_that_files_figures() {
    let store = rich();
    let fresh = Store::new();
    fresh.import(exported(&store));
    for (agent, level, records) in [
        ("main", P, 8),
        ("main", I, 2),
        ("main", C, 2),
        ("Ann Lee", P, 1),
    ] {
        let events = fresh.storage.events(agent, level).unwrap();
        assert_eq!(events.len(), 1, "{events:?}");
        let event = &events[0];
        assert_eq!(
            (event.kind.as_str(), event.session.as_str()),
            ("import", "operator")
        );
        let detail = event.detail.as_deref().unwrap();
        assert!(
            detail.starts_with(&format!("records={records} ")),
            "{detail}"
        );
    }
}

#[test]
fn an_edge_comes_with_the_record_it_hides_though_what_took_its_place_is_gone() {
    let store = Store::new();
    let old = store.save(P, "a", "zebra");
    store
        .agent(C)
        .put(&Draft {
            supersedes: vec![old.id],
            ..draft("b", "newer")
        })
        .unwrap();
    store
        .storage
        .operator(at(1))
        .purge(
            None,
            &crate::storage::sqlite::operator::Purge::key("b"),
            Duration::from_secs(1),
            &mut |_| (),
        )
        .unwrap();
    let fresh = Store::new();
    let report = fresh.import(exported(&store));
    assert!(report.rejected.is_empty(), "{report:?}");
    assert_eq!(fresh.seen(C, P, "a"), None);
    assert_eq!(fresh.seen(P, P, "a").as_deref(), Some("zebra"));
    assert_eq!(fresh.agent(C).search(C, "zebra", 0, 9).unwrap().items, []);
}

/// The lines of a record and of an edge that hides it, whose other end is gone.
fn hidden_by_what_is_gone() -> [Value; 2] {
    let id = |number: u32| format!("{number:032x}");
    let edge = json!({
        "type": "edge", "agent": "main", "level": "PUBLIC", "old_level": "PUBLIC",
        "old_id": id(1), "new_id": id(2), "at": at(-50).to_string(), "session": "elsewhere",
    });
    [record(1, "a", "zebra"), edge]
}

fn whole(lines: &[Value]) -> String {
    let trailer = json!({
        "type": "trailer", "records": 1, "edges": 1, "stamps": 0, "usage": 0, "erased": 0,
    });
    format!("{}{trailer}\n", file(lines))
}

#[test]
fn an_import_that_goes_on_after_a_crash_brings_the_edges_of_what_it_had_brought() {
    let lines = hidden_by_what_is_gone();
    let store = Store::new();
    // As far as it came: the record was committed, its edge was not.
    assert!(!store.import(file(&lines[..1])).complete);
    assert_eq!(keys(&store), ["a"]);
    let report = store.import(whole(&lines));
    assert!(report.complete && report.rejected.is_empty(), "{report:?}");
    assert_eq!(keys(&store), [""; 0]);
    verify(&store.root());
    // Once it has come to its end, nothing is left of it to go on with.
    assert_eq!(
        store.by_hand(P).query_row(
            "SELECT count(*) FROM meta WHERE name = 'import_pending'",
            [],
            |row| row.get::<_, i64>(0)
        ),
        Ok(0)
    );
}

#[test]
fn what_an_earlier_import_brought_to_its_end_is_not_hidden_by_what_is_gone() {
    let lines = hidden_by_what_is_gone();
    let store = Store::new();
    let all = json!({
        "type": "trailer", "records": 1, "edges": 0, "stamps": 0, "usage": 0, "erased": 0,
    });
    assert!(
        store
            .import(format!("{}{all}\n", file(&lines[..1])))
            .complete
    );
    let report = store.import(whole(&lines));
    assert_eq!((report.edges.imported, report.edges.rejected), (0, 1));
    assert_eq!(keys(&store), ["a"]);
}

#[test]
fn what_a_session_saved_before_an_import_went_on_is_not_hidden_by_what_is_gone() {
    let [first, edge] = hidden_by_what_is_gone();
    let store = Store::new();
    store.import(file(std::slice::from_ref(&first)));
    let saved = store.save(P, "b", "words").id;
    let report = store.import(file(&[first, with(edge, json!({ "old_id": saved }))]));
    assert_eq!((report.edges.imported, report.edges.rejected), (0, 1));
    assert_eq!(keys(&store), ["a", "b"]);
}

/// How many pieces the index is written in, by FTS5's "structure" record
/// (<https://sqlite.org/fts5.html#the_structure_record_format>).
fn pieces(root: &Path, table: &str) -> u8 {
    let path = root.join("agents/main/public.db");
    let sql = format!("SELECT block FROM {table}_data WHERE id = 10");
    let block: Vec<u8> = Connection::open(path)
        .unwrap()
        .query_row(&sql, [], |row| row.get(0))
        .unwrap();
    // Behind the cookie, the number of levels and that of segments.
    assert!(block[4] < 0x80 && block[5] < 0x80);
    block[5]
}

fn many(from: u32, number: u32) -> String {
    let mut lines: Vec<Value> = (from..from + number)
        .map(|number| record(number, &format!("key {number}"), &format!("word{number}")))
        .collect();
    lines.push(json!({
        "type": "trailer", "records": number, "edges": 0, "stamps": 0, "usage": 0, "erased": 0,
    }));
    file(&lines)
}

#[test]
fn where_an_import_brought_most_of_what_is_there_the_index_is_in_one_piece() {
    const TABLES: [&str; 2] = ["memory_words", "memory_grams"];
    let store = Store::new();
    let root = store.root();
    for number in 0..3 {
        store.save(P, &format!("own {number}"), "words");
    }
    // One that does not come to its end leaves the index alone.
    let text = many(1, 1_000);
    let cut = text.rsplit_once(r#"{"type":"trailer""#).unwrap().0;
    assert!(!store.import(cut).complete);
    for table in TABLES {
        assert!(pieces(&root, table) > 1, "{table}");
    }
    // Brought to its end it does, though all was there already: a crash is of no
    // matter.
    let found = crashes(&root, || assert!(store.import(&text).complete));
    let (point, before) = &found[found.len() - 2];
    assert_eq!(point, "before-commit");
    let before = before.path().join("store");
    verify(&before);
    for root in [&before, &root] {
        let storage = SqliteStorage::open(root, SqliteOptions::default()).unwrap();
        let report = storage
            .operator(at(300))
            .import(
                &mut Cursor::new(&text),
                &ImportOptions::default(),
                &mut |_| (),
            )
            .unwrap();
        assert_eq!((report.records.imported, report.complete), (0, true));
        for table in TABLES {
            assert_eq!(pieces(root, table), 1, "{table}");
        }
        verify(root);
    }
    // And so does one that brings few, or less than was there.
    for (from, number) in [(5_000, 10), (10_000, 1_000)] {
        assert!(store.import(many(from, number)).complete);
        for table in TABLES {
            assert!(pieces(&root, table) > 1, "{table}");
        }
    }
    verify(&root);
    let found = store.user(P).search(P, "word777", 0, 9).unwrap().items;
    assert_eq!(found[0].memory.key, "key 777");
}
