//! Superseding, confirming, reviewing and looking back.

use super::*;
use crate::contract::{Past, ReviewArguments, ReviewQueue, Timeline};
use crate::moment::{DAY, LAST};

fn replacing(key: &str, supersedes: &[&str]) -> SaveArguments {
    SaveArguments {
        supersedes: supersedes.iter().map(|&key| key.to_owned()).collect(),
        source: Some("me".to_owned()),
        ..save_arguments(key, &format!("what {key} says"))
    }
}

fn save(host: &FakeHost, key: &str, supersedes: &[&str]) -> Saved {
    Tools::new(host).save(replacing(key, supersedes)).unwrap()
}

fn all(limit: u32) -> ReviewArguments {
    ReviewArguments {
        older_than_days: Some(0),
        limit: Some(limit),
    }
}

fn reviewed(queue: &ReviewQueue) -> Vec<&str> {
    let memories = queue.memories.iter();
    memories.map(|found| found.memory.key.as_str()).collect()
}

fn history(host: &FakeHost, key: &str) -> Timeline {
    Tools::new(host).history(key).unwrap()
}

/// The level, version and currency of each, and what took its place.
fn told(timeline: &Timeline) -> Vec<(Level, u64, bool, Option<&str>)> {
    let tell = |past: &Past| (past.memory.level, past.memory.version, past.current);
    timeline
        .versions
        .iter()
        .map(|past| {
            let (level, version, current) = tell(past);
            (level, version, current, past.superseded_by.as_deref())
        })
        .collect()
}

mod superseding {
    use super::*;

    #[test]
    fn takes_the_place_of_what_is_seen_under_each_key() {
        let host = FakeHost::new(Confidential)
            .with(Public, "a", "low")
            .with(Internal, "a", "seen")
            .with(Confidential, "b", "own");
        save(&host, "new", &["a", " b ", "b"]);
        let edges: Vec<(String, String)> = host.books.borrow()[Confidential as usize]
            .edges
            .iter()
            .map(|edge| (edge.old_id.clone(), edge.new_id.clone()))
            .collect();
        let new = "CONFIDENTIAL-new".to_owned();
        assert_eq!(
            edges,
            [
                ("INTERNAL-a".to_owned(), new.clone()),
                ("CONFIDENTIAL-b".to_owned(), new)
            ]
        );
        // The version beneath was not named.
        let found = Tools::new(&host).get("a").unwrap().unwrap();
        assert_eq!(found.memory.content, "low");
        assert!(Tools::new(&host).get("b").unwrap().is_none());
        let lower = host.at(Internal);
        let found = Tools::new(&lower).get("a").unwrap().unwrap();
        assert_eq!(found.memory.content, "seen");
    }

    #[test]
    fn what_is_hidden_is_not_found_just_like_what_is_absent_and_nothing_is_saved() {
        let host = FakeHost::new(Internal)
            .with(Restricted, "high", "c")
            .with(Public, "hidden", "c")
            .with_tombstone(Internal, "hidden")
            .with(Internal, "there", "c");
        let mut problems = BTreeSet::new();
        for key in ["absent", "high", "hidden"] {
            let arguments = replacing("new", &["there", key]);
            let error = Tools::new(&host).save(arguments).unwrap_err();
            let MemoryError::NotFound(problem) = error else {
                panic!("{error:?}")
            };
            assert!(problem.what.contains(key));
            problems.insert(format!("{problem:?}").replace(key, "KEY"));
        }
        assert_eq!(problems.len(), 1);
        assert!(!host.calls().contains(&"put".to_owned()));
    }

    #[test]
    fn the_own_earlier_version_need_not_be_named_and_a_lower_one_can_be() {
        let host = FakeHost::new(Internal)
            .with(Public, "k", "low")
            .with(Internal, "k", "own");
        save(&host, "k", &["k"]);
        assert!(host.books.borrow()[Internal as usize].edges.is_empty());
        let found = Tools::new(&host).get("k").unwrap().unwrap();
        assert_eq!((found.memory.level, found.memory.version), (Internal, 2));

        let host = FakeHost::new(Internal).with(Public, "k", "low");
        let saved = save(&host, "k", &["k"]);
        assert!(
            saved.notices.contains(
                &"Sessions below INTERNAL still see what it takes the place of.".to_owned()
            )
        );
        Tools::new(&host).delete("k", false).unwrap();
        // A superseded record never comes back.
        assert!(Tools::new(&host).get("k").unwrap().is_none());
        assert!(Tools::new(&host.at(Public)).get("k").unwrap().is_some());
    }

    #[test]
    fn arguments_are_checked_before_anything_is_read() {
        let host = FakeHost::new(Internal);
        let many: Vec<String> = (0..101).map(|i| format!("k{i}")).collect();
        for supersedes in [many, vec![String::new()]] {
            let saved = Tools::new(&host).save(SaveArguments {
                supersedes,
                ..save_arguments("k", "c")
            });
            assert!(saved.is_err());
        }
        assert!(host.calls().is_empty());
    }

    #[test]
    fn what_waits_for_a_person_says_what_it_waits_for() {
        let mut host = FakeHost::new(Internal).with(Internal, "old", "c");
        host.standing = Standing::Pending;
        let saved = save(&host, "k", &["old"]);
        assert!(saved.notices[1].contains("what it would take the place of"));
        let saved = save(&host, "k", &[]);
        assert!(saved.notices[1].contains("saved under this key"));
    }

    #[test]
    fn an_expiry_lies_between_now_and_the_last_moment() {
        let host = FakeHost::new(Public);
        for (at, ok) in [
            (NOW, false),
            (NOW + 1, true),
            (LAST, true),
            (LAST + 1, false),
        ] {
            let saved = Tools::new(&host).save(SaveArguments {
                expires_at: Some(at),
                ..save_arguments("k", "c")
            });
            assert_eq!(saved.is_ok(), ok, "{at}");
        }
    }
}

mod confirming {
    use super::*;

    #[test]
    fn stamps_the_record_that_is_seen_and_is_seen_from_there_up() {
        let host = FakeHost::new(Confidential)
            .with(Public, "k", "low")
            .with(Internal, "k", "seen");
        let confirmed = Tools::new(&host).confirm(" k ", Some("Ann")).unwrap();
        assert_eq!(
            (
                confirmed.key.as_str(),
                confirmed.level,
                confirmed.confirmed_at
            ),
            ("k", Internal, NOW)
        );
        assert_eq!(
            confirmed.notices,
            ["Sessions below CONFIDENTIAL will not see this confirmation."]
        );
        for (taint, seen) in [
            (Internal, None),
            (Confidential, Some(NOW)),
            (Restricted, Some(NOW)),
        ] {
            let found = Tools::new(&host.at(taint)).get("k").unwrap().unwrap();
            assert_eq!(found.memory.confirmed_at, seen);
        }
        let confirmed = Tools::new(&host.at(Internal)).confirm("k", None).unwrap();
        assert!(confirmed.notices.is_empty());
    }

    #[test]
    fn what_nobody_sees_is_not_found() {
        let host = FakeHost::new(Internal)
            .with(Restricted, "high", "c")
            .with(Public, "hidden", "c")
            .with_tombstone(Internal, "hidden");
        for key in ["absent", "high", "hidden"] {
            let error = Tools::new(&host).confirm(key, None).unwrap_err();
            let MemoryError::NotFound(problem) = error else {
                panic!("{error:?}")
            };
            assert_eq!(
                problem.what,
                format!("There is no memory with the key {key:?}")
            );
        }
        assert!(Tools::new(&host).confirm("", None).is_err());
        assert!(Tools::new(&host).confirm("k", Some(" ")).is_err());
        assert!(!host.calls().contains(&"stamp".to_owned()));
    }

    #[test]
    fn moves_no_expiry_and_says_so() {
        let host = FakeHost::new(Public);
        host.put_memory(Memory {
            expires_at: Some(NOW + DAY),
            ..memory(Public, "k", "c")
        });
        let confirmed = Tools::new(&host).confirm("k", None).unwrap();
        assert_eq!(
            confirmed.notices,
            ["It still expires at 2026-12-01T01:04:00.000Z. To keep it longer, save it again."]
        );
    }
}

mod using {
    use super::*;

    #[test]
    fn what_was_got_and_found_is_used_and_nothing_else_is() {
        let host = FakeHost::new(Internal)
            .with(Public, "a", "red")
            .with(Internal, "b", "red")
            .with(Internal, "c", "blue");
        let tools = Tools::new(&host);
        tools.get("a").unwrap();
        tools.get("absent").unwrap();
        tools.search("red", None).unwrap();
        tools.search("nothing", None).unwrap();
        tools.list(everything()).unwrap();
        tools.review(all(20)).unwrap();
        tools.history("a").unwrap();
        tools.confirm("a", None).unwrap();
        tools.status().unwrap();
        let arguments = crate::contract::ContextArguments {
            budget: None,
            query: Some("red".to_owned()),
            tags: Vec::new(),
        };
        assert!(tools.context(arguments).unwrap().contains("\"b\""));
        let books = host.books.borrow();
        let uses: Vec<(&str, u64)> = books[Internal as usize]
            .uses
            .iter()
            .map(|(id, uses)| (id.as_str(), *uses))
            .collect();
        assert_eq!(uses, [("INTERNAL-b", 1), ("PUBLIC-a", 2)]);
        assert!(books[Public as usize].uses.is_empty());
    }
}

mod reviewing {
    use super::*;

    fn saved_days_ago(host: &FakeHost, level: Level, key: &str, days: i64) {
        host.put_memory(Memory {
            updated_at: NOW - days * DAY,
            ..memory(level, key, "c")
        });
    }

    #[test]
    fn offers_the_oldest_first_and_moves_on_as_they_are_confirmed() {
        let host = FakeHost::new(Internal);
        for (level, key, days) in [
            (Public, "a", 100),
            (Internal, "b", 300),
            (Public, "c", 200),
            (Public, "d", 90),
            (Public, "e", 91),
            (Restricted, "f", 999),
        ] {
            saved_days_ago(&host, level, key, days);
        }
        let review = |limit| {
            Tools::new(&host)
                .review(ReviewArguments {
                    older_than_days: None,
                    limit: Some(limit),
                })
                .unwrap()
        };
        let queue = review(2);
        assert_eq!(reviewed(&queue), ["b", "c"]);
        assert!(queue.more && !queue.truncated);
        assert_eq!(queue.memories[0].age_days, 300);
        // Also those of lower shelves.
        for key in ["b", "c"] {
            Tools::new(&host).confirm(key, None).unwrap();
        }
        let queue = review(2);
        // Just 90 days is not longer ago than that.
        assert_eq!(reviewed(&queue), ["a", "e"]);
        assert!(!queue.more);
        Tools::new(&host).confirm("a", None).unwrap();
        assert_eq!(reviewed(&review(1)), ["e"]);
        // What a higher session confirmed is not confirmed for a lower one.
        let lower = host.at(Public);
        let queue = Tools::new(&lower).review(all(200)).unwrap();
        assert_eq!(reviewed(&queue), ["c", "a", "e", "d"]);
    }

    #[test]
    fn leaves_out_what_is_shadowed_or_superseded() {
        let host = FakeHost::new(Internal);
        for (key, days) in [("a", 400), ("b", 300), ("c", 200), ("d", 100)] {
            saved_days_ago(&host, Public, key, days);
        }
        save(&host, "a", &[]);
        save(&host, "new", &["b"]);
        let host = host.with_tombstone(Internal, "c");
        let queue = Tools::new(&host)
            .review(ReviewArguments {
                older_than_days: None,
                limit: None,
            })
            .unwrap();
        assert_eq!(reviewed(&queue), ["d"]);
        assert!(!queue.more);
        let status = Tools::new(&host).status().unwrap();
        let unconfirmed: Vec<u32> = status.shelves.iter().map(|s| s.unconfirmed).collect();
        assert_eq!(unconfirmed, [0, 1]);
        let status = Tools::new(&host.at(Public)).status().unwrap();
        assert_eq!(status.shelves[0].unconfirmed, 4);
    }

    #[test]
    fn a_status_counts_to_1000() {
        let host = FakeHost {
            rows: 200,
            ..FakeHost::new(Public)
        };
        for i in 0..1100 {
            saved_days_ago(&host, Public, &format!("k{i}"), 91 + i);
        }
        let status = Tools::new(&host).status().unwrap();
        assert_eq!(status.shelves[0].unconfirmed, 1000);
        for i in 0..200 {
            host.shelves[0].borrow_mut().remove(&format!("k{i}"));
        }
        let status = Tools::new(&host).status().unwrap();
        assert_eq!(status.shelves[0].unconfirmed, 900);
    }

    #[test]
    fn bounds_are_named_and_a_clock_set_back_does_no_harm() {
        let host = FakeHost::new(Public);
        saved_days_ago(&host, Public, "future", -10);
        saved_days_ago(&host, Public, "old", 40_000);
        host.put_memory(Memory {
            updated_at: i64::MIN,
            ..memory(Public, "ancient", "c")
        });
        let review = |older_than_days, limit| {
            Tools::new(&host).review(ReviewArguments {
                older_than_days,
                limit,
            })
        };
        assert_eq!(
            reviewed(&review(Some(0), None).unwrap()),
            ["ancient", "old"]
        );
        assert!(review(Some(36_500), Some(200)).is_ok());
        assert!(review(Some(36_501), None).is_err());
        assert!(review(None, Some(0)).is_err());
        assert!(review(None, Some(201)).is_err());
    }

    #[test]
    fn the_answer_is_bounded_and_goes_on_behind_what_was_dealt_with() {
        let host = FakeHost {
            rows: 200,
            ..FakeHost::new(Public)
        };
        for i in 0..100 {
            host.put_memory(Memory {
                updated_at: NOW - (100 + i) * DAY,
                source: Some("s".repeat(1024)),
                ..memory(Public, &format!("k{i:02}"), &"語".repeat(1000))
            });
        }
        let mut seen = Vec::new();
        loop {
            let queue = Tools::new(&host).review(all(200)).unwrap();
            assert!(answers::review(&queue, &[]).len() <= ANSWER_BYTES);
            assert_eq!(queue.more, queue.truncated);
            for key in reviewed(&queue) {
                assert!(seen.len() < 100, "{key} came again");
                seen.push(key.to_owned());
                Tools::new(&host).confirm(key, None).unwrap();
            }
            if !queue.more {
                break;
            }
        }
        let mut expected: Vec<String> = (0..100).map(|i| format!("k{i:02}")).collect();
        expected.reverse();
        assert_eq!(seen, expected);
    }
}

mod looking_back {
    use super::*;

    #[test]
    fn versions_come_newest_first_with_what_took_their_place() {
        let mut host = FakeHost::new(Public);
        save(&host, "k", &[]);
        host.now += DAY;
        save(&host.at(Internal), "k", &[]);
        host.now += DAY;
        save(&host, "k", &[]);
        host.now += DAY;
        save(&host, "new", &["k"]);
        host.now += DAY;
        save(&host, "k", &[]);
        assert_eq!(
            told(&history(&host, "k")),
            [
                (Public, 3, true, None),
                (Public, 2, false, Some("new")),
                (Public, 1, false, Some("k")),
            ]
        );
        assert_eq!(
            told(&history(&host.at(Internal), " k ")),
            [
                (Public, 3, false, None),
                (Public, 2, false, Some("new")),
                (Internal, 1, true, None),
                (Public, 1, false, Some("k")),
            ]
        );
        let timeline = history(&host, "k");
        assert_eq!(
            timeline.versions[1].memory.superseded_at,
            Some(NOW + 3 * DAY)
        );
        assert_eq!(timeline.versions[0].memory.superseded_at, None);
    }

    #[test]
    fn a_lower_version_whose_place_was_taken_is_named() {
        let host = FakeHost::new(Internal).with(Public, "k", "low");
        save(&host, "k", &["k"]);
        let timeline = history(&host, "k");
        assert_eq!(
            told(&timeline),
            [(Internal, 1, true, None), (Public, 1, false, Some("k"))]
        );
        assert_eq!(timeline.versions[0].supersedes, ["k"]);
        assert!(timeline.versions[1].supersedes.is_empty());
        assert_eq!(timeline.versions[1].memory.superseded_at, Some(NOW));
    }

    #[test]
    fn a_key_without_versions_has_none_whether_hidden_or_absent() {
        let host = FakeHost::new(Internal)
            .with(Restricted, "high", "c")
            .with(Public, "hidden", "c")
            .with_tombstone(Internal, "hidden");
        let mut bytes = BTreeSet::new();
        for key in ["absent", "high", "hidden"] {
            let timeline = history(&host, key);
            bytes.insert(answers::history(&timeline, NOW, &[]).replace(key, "KEY"));
        }
        assert_eq!(
            Vec::from_iter(bytes),
            [r#"{"key":"KEY","versions":[],"truncated":false}"#]
        );
    }

    #[test]
    fn a_tombstone_hides_what_lies_beneath_and_not_what_lies_beside_it() {
        let host = FakeHost::new(Internal).with(Public, "k", "low");
        save(&host, "k", &[]);
        save(&host, "k", &[]);
        Tools::new(&host).delete("k", true).unwrap();
        assert_eq!(
            told(&history(&host, "k")),
            [(Internal, 1, false, None)],
            "the deleted version is gone, so nothing is left that took the place"
        );
        assert_eq!(
            told(&history(&host.at(Public), "k")),
            [(Public, 1, true, None)]
        );
    }

    #[test]
    fn no_field_of_a_high_record_shows_in_a_low_history() {
        // F053
        let before = FakeHost::new(Public).with(Public, "low", "words");
        let plain = answers::history(&history(&before, "low"), NOW, &[]);
        for hostile in [false, true] {
            let host = FakeHost::new(Confidential).with(Public, "low", "words");
            save(&host, "SECRET", &["low"]);
            assert_eq!(
                told(&history(&host, "low")),
                [(Public, 1, false, Some("SECRET"))]
            );
            let mut low = host.at(Public);
            low.hostile = hostile;
            assert_eq!(answers::history(&history(&low, "low"), NOW, &[]), plain);
            let mut middle = host.at(Internal);
            middle.hostile = hostile;
            assert_eq!(answers::history(&history(&middle, "low"), NOW, &[]), plain);
        }
    }

    #[test]
    fn a_key_that_a_tombstone_hides_is_not_named() {
        let host = FakeHost::new(Public).with(Public, "old", "c");
        save(&host, "new", &["old"]);
        assert_eq!(
            told(&history(&host.at(Internal), "old")),
            [(Public, 1, false, Some("new"))]
        );
        let host = host.with_tombstone(Internal, "new");
        let timeline = history(&host.at(Internal), "old");
        assert_eq!(told(&timeline), [(Public, 1, false, None)]);
        assert!(timeline.versions[0].memory.superseded_at.is_some());
    }

    #[test]
    fn a_successor_that_is_gone_is_not_named_and_no_other_one_instead() {
        let host = FakeHost::new(Public).with(Public, "old", "c");
        save(&host, "new", &["old"]);
        save(&host, "old", &[]);
        host.books.borrow_mut()[0].edges[0].new_key = None;
        assert_eq!(
            told(&history(&host, "old")),
            [(Public, 2, true, None), (Public, 1, false, None)]
        );
    }

    #[test]
    fn a_version_of_another_level_took_no_place() {
        let mut host = FakeHost::new(Internal);
        save(&host, "k", &[]);
        save(&host, "k", &[]);
        Tools::new(&host).delete("k", false).unwrap();
        host.now += DAY;
        save(&host.at(Public), "k", &[]);
        assert_eq!(
            told(&history(&host, "k")),
            [(Public, 1, true, None), (Internal, 1, false, None)]
        );
    }

    #[test]
    fn on_one_shelf_the_version_counts_and_not_the_clock() {
        let mut host = FakeHost::new(Public);
        for days in [0, 5, -9, 1] {
            host.now += days * DAY;
            save(&host, "k", &[]);
        }
        host.now = NOW - 2 * DAY;
        save(&host.at(Internal), "k", &[]);
        let order: Vec<(Level, u64)> = told(&history(&host.at(Internal), "k"))
            .into_iter()
            .map(|(level, version, ..)| (level, version))
            .collect();
        assert_eq!(
            order,
            [
                (Internal, 1),
                (Public, 4),
                (Public, 3),
                (Public, 2),
                (Public, 1)
            ]
        );
    }

    #[test]
    fn a_long_history_is_cut_and_says_so() {
        let host = FakeHost {
            rows: 200,
            ..FakeHost::new(Public)
        };
        for (i, content) in (0..300).map(|i| (i, "c".to_owned())) {
            Tools::new(&host)
                .save(save_arguments("k", &format!("{content}{i}")))
                .unwrap();
        }
        let timeline = history(&host, "k");
        assert!(timeline.truncated);
        let json = answers::history(&timeline, NOW, &[]);
        assert!(json.len() <= ANSWER_BYTES && json.len() > ANSWER_BYTES / 2);
        assert_eq!(timeline.versions[0].memory.version, 300);

        let host = FakeHost::new(Public);
        for i in 0..40 {
            let content = format!("{i}{}", "\u{1}".repeat(3000));
            Tools::new(&host)
                .save(save_arguments("k", &content))
                .unwrap();
        }
        let timeline = history(&host, "k");
        assert!(timeline.truncated && !timeline.versions.is_empty());
        assert!(answers::history(&timeline, NOW, &[]).len() <= ANSWER_BYTES);
    }
}

#[test]
fn a_record_that_claims_a_higher_level_than_its_shelf_is_nowhere() {
    let host = FakeHost::new(Internal);
    let high = Memory {
        updated_at: NOW - 100 * DAY,
        ..tagged(Restricted, "k", &["rule"])
    };
    for shelf in [Public, Internal] {
        host.shelves[shelf as usize]
            .borrow_mut()
            .insert("k".to_owned(), Entry::Live(high.clone()));
        let mut books = host.books.borrow_mut();
        books[shelf as usize].past.push(high.clone());
        books[Internal as usize].uses.insert(high.id.clone(), 9);
    }
    let tools = Tools::new(&host);
    assert!(tools.review(all(20)).unwrap().memories.is_empty());
    let status = tools.status().unwrap();
    assert!(status.shelves.iter().all(|shelf| shelf.unconfirmed == 0));
    assert!(tools.history("k").unwrap().versions.is_empty());
    assert!(tools.confirm("k", None).is_err());
    assert!(tools.save(replacing("new", &["k"])).is_err());
    let block = tools
        .context(crate::contract::ContextArguments {
            budget: None,
            query: Some("words".to_owned()),
            tags: Vec::new(),
        })
        .unwrap();
    assert!(block.ends_with("None.\n"), "{block}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn review_history_and_status_agree_with_brute_force(
        acts in naive::acts(),
        taint in 0..4_usize,
        host_rows in 0..3_u32,
        guest_rows in 1..4_u32,
        hostile: bool,
        days in prop::sample::select(vec![0_u32, 30, 90, 200]),
        limit in 1..5_u32,
    ) {
        let host = naive::store(&acts, host_rows, hostile).at(LEVELS[taint]);
        let tools = Tools::new(&host).with_page_rows(guest_rows);

        let expected = naive::review(&host, days);
        let queue = tools
            .review(ReviewArguments { older_than_days: Some(days), limit: Some(limit) })
            .unwrap();
        let ids = |memories: &[Memory]| memories.iter().map(|m| m.id.clone()).collect::<Vec<_>>();
        let got: Vec<Memory> = queue.memories.into_iter().map(|found| found.memory).collect();
        prop_assert_eq!(queue.more, expected.len() > limit as usize);
        let first = expected.get(..limit as usize).unwrap_or(&expected);
        prop_assert_eq!(ids(&got), ids(first));

        let due = naive::review(&host, 90);
        for shelf in tools.status().unwrap().shelves {
            let count = due.iter().filter(|memory| memory.level == shelf.level).count();
            prop_assert_eq!(shelf.unconfirmed as usize, count);
        }

        for key in naive::KEYS {
            let timeline = tools.history(key).unwrap();
            let got: Vec<naive::Told> = timeline
                .versions
                .into_iter()
                .map(|past| (
                    past.memory.id,
                    past.current,
                    past.memory.superseded_at,
                    past.superseded_by,
                    past.supersedes,
                ))
                .collect();
            prop_assert_eq!(got, naive::history(&host, key));
            prop_assert!(!timeline.truncated);
        }
    }

    #[test]
    fn a_superseded_record_never_comes_back(acts in naive::acts(), more in naive::acts(), taint in 0..4_usize) {
        let all: Vec<_> = acts.iter().chain(&more).cloned().collect();
        let gone: BTreeSet<String> = {
            let host = naive::store(&acts, 0, false).at(LEVELS[taint]);
            naive::KEYS
                .into_iter()
                .flat_map(|key| naive::history(&host, key))
                .filter(|(.., at, _, _)| at.is_some())
                .map(|(id, ..)| id)
                .collect()
        };
        let host = naive::store(&all, 0, false).at(LEVELS[taint]);
        let tools = Tools::new(&host);
        let listed = tools.list(everything()).unwrap().memories;
        for found in listed {
            prop_assert!(!gone.contains(&found.memory.id), "{}", found.memory.id);
        }
    }
}
