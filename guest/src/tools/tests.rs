//! The operations on a fake host, one promise at a time, and then against a naive model.

use super::*;
use crate::contract::{Entry, Origin};
use crate::fake::{self, FakeHost, LEVELS, NOW, memory};
use proptest::prelude::*;
use std::collections::BTreeSet;

use Level::{Confidential, Internal, Public, Restricted};

mod context;
mod naive;
mod upkeep;

fn save_arguments(key: &str, content: &str) -> SaveArguments {
    SaveArguments {
        key: key.to_owned(),
        content: content.to_owned(),
        tags: Vec::new(),
        source: None,
        expires_at: None,
        supersedes: Vec::new(),
    }
}

fn everything() -> ListArguments {
    ListArguments {
        tags: Vec::new(),
        match_all: false,
        cursor: None,
        limit: None,
    }
}

fn keys(listing: &Listing) -> Vec<&str> {
    listing
        .memories
        .iter()
        .map(|found| found.memory.key.as_str())
        .collect()
}

fn tagged(level: Level, key: &str, tags: &[&str]) -> Memory {
    let mut memory = memory(level, key, "words");
    memory.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
    memory
}

mod saving {
    use super::*;

    #[test]
    fn reads_no_shelf() {
        let host = FakeHost::new(Public).with(Restricted, "k", "high");
        Tools::new(&host).save(save_arguments("k", "low")).unwrap();
        assert_eq!(host.calls(), ["put"]);
    }

    #[test]
    fn stores_what_was_normalised() {
        let host = FakeHost::new(Public);
        let saved = Tools::new(&host)
            .save(SaveArguments {
                tags: vec![" b".to_owned(), "a".to_owned(), "b".to_owned()],
                ..save_arguments(" cafe\u{301} ", " content ")
            })
            .unwrap();
        assert_eq!(saved.key, "caf\u{e9}");
        let found = Tools::new(&host).get("caf\u{e9}").unwrap().unwrap();
        assert_eq!(found.memory.content, " content ");
        assert_eq!(found.memory.tags, ["a", "b"]);
    }

    #[test]
    fn says_that_sessions_below_will_not_see_it() {
        for level in LEVELS {
            let host = FakeHost::new(level);
            let saved = Tools::new(&host).save(save_arguments("k", "c")).unwrap();
            assert_eq!(
                saved
                    .notices
                    .iter()
                    .any(|notice| notice.contains(classification::name(level))),
                level != Public
            );
        }
    }

    #[test]
    fn says_when_there_is_no_source_and_when_it_waits_for_a_person() {
        let mut host = FakeHost::new(Public);
        let with_source = SaveArguments {
            source: Some("https://example.org".to_owned()),
            ..save_arguments("k", "c")
        };
        let saved = Tools::new(&host).save(with_source.clone()).unwrap();
        assert!(saved.notices.is_empty());
        let saved = Tools::new(&host).save(save_arguments("k", "c")).unwrap();
        assert_eq!(saved.notices.len(), 1);
        for (standing, word) in [
            (Standing::Pending, "waits for a person"),
            (Standing::Quarantined, "kept apart"),
        ] {
            host.standing = standing;
            let saved = Tools::new(&host).save(with_source.clone()).unwrap();
            assert_eq!(saved.notices.len(), 1);
            assert!(saved.notices[0].contains(word), "{:?}", saved.notices);
        }
    }

    #[test]
    fn refuses_an_expiry_that_is_past_and_stores_nothing() {
        let host = FakeHost::new(Public);
        for (at, ok) in [(NOW - 1, false), (NOW, false), (NOW + 1, true)] {
            let saved = Tools::new(&host).save(SaveArguments {
                expires_at: Some(at),
                ..save_arguments("k", "c")
            });
            assert_eq!(saved.is_ok(), ok);
            assert_eq!(host.calls().contains(&"put".to_owned()), ok);
        }
    }
}

mod getting {
    use super::*;

    #[test]
    fn takes_the_highest_visible_version() {
        let mut host =
            FakeHost::new(Public)
                .with(Public, "k", "low")
                .with(Confidential, "k", "high");
        for (taint, content) in [
            (Public, "low"),
            (Internal, "low"),
            (Confidential, "high"),
            (Restricted, "high"),
        ] {
            host.taint = taint;
            let found = Tools::new(&host).get("k").unwrap().unwrap();
            assert_eq!(found.memory.content, content);
        }
    }

    #[test]
    fn asks_the_host_for_no_more_than_it_needs() {
        let host = FakeHost::new(Restricted).with(Confidential, "k", "c");
        host.put_memory(Memory {
            origin: Origin::User,
            ..memory(Internal, "mine", "c")
        });
        Tools::new(&host).get("k").unwrap();
        assert_eq!(
            host.calls(),
            [
                "taint",
                "shelves",
                "RESTRICTED fetch",
                "CONFIDENTIAL fetch",
                "INTERNAL present",
                "PUBLIC present",
                "now",
                "used"
            ]
        );
        host.calls.borrow_mut().clear();
        Tools::new(&host).get("mine").unwrap();
        assert_eq!(
            host.calls(),
            [
                "taint",
                "shelves",
                "RESTRICTED fetch",
                "CONFIDENTIAL fetch",
                "INTERNAL fetch",
                "now",
                "used"
            ]
        );
    }

    #[test]
    fn stops_at_a_tombstone() {
        let host = FakeHost::new(Restricted)
            .with(Public, "k", "low")
            .with_tombstone(Internal, "k");
        assert!(Tools::new(&host).get("k").unwrap().is_none());
    }

    #[test]
    fn of_several_tombstones_the_most_trusted_hides() {
        for (above, below) in [(Origin::User, Origin::Agent), (Origin::Agent, Origin::User)] {
            let host = FakeHost::new(Restricted);
            for (level, origin) in [(Confidential, above), (Internal, below)] {
                host.shelves[level as usize]
                    .borrow_mut()
                    .insert("k".to_owned(), Entry::Tombstone(origin));
            }
            host.put_memory(Memory {
                origin: Origin::User,
                ..memory(Public, "k", "red")
            });
            let tools = Tools::new(&host);
            assert!(tools.get("k").unwrap().is_none());
            assert_eq!(tools.list(everything()).unwrap().memories.len(), 0);
            assert_eq!(tools.search("red", None).unwrap().hits.len(), 0);
        }
    }

    #[test]
    fn names_a_more_trusted_version_beneath() {
        let host = FakeHost::new(Restricted);
        for (level, origin) in [
            (Restricted, Origin::Tool),
            (Confidential, Origin::Agent),
            (Internal, Origin::User),
            (Public, Origin::User),
        ] {
            host.put_memory(Memory {
                origin,
                ..memory(level, "k", "c")
            });
        }
        let conflict = |taint| {
            let host = FakeHost {
                shelves: host.shelves.clone(),
                ..FakeHost::new(taint)
            };
            Tools::new(&host)
                .get("k")
                .unwrap()
                .unwrap()
                .conflict
                .map(|conflict| (conflict.level, conflict.origin))
        };
        assert_eq!(conflict(Restricted), Some((Internal, Origin::User)));
        assert_eq!(conflict(Confidential), Some((Internal, Origin::User)));
        assert_eq!(conflict(Internal), None);
        let host = host.with_tombstone(Internal, "k");
        let _ = &host;
        let conflict = |taint| {
            let host = FakeHost {
                shelves: host.shelves.clone(),
                ..FakeHost::new(taint)
            };
            let found = Tools::new(&host).get("k").unwrap().unwrap();
            found
                .conflict
                .map(|conflict| (conflict.level, conflict.origin))
        };
        assert_eq!(conflict(Restricted), Some((Confidential, Origin::Agent)));
        assert_eq!(conflict(Confidential), None);
    }

    #[test]
    fn drops_a_record_that_claims_a_higher_level_than_its_shelf() {
        let host = FakeHost::new(Internal).with(Public, "k", "low");
        host.shelves[Internal as usize].borrow_mut().insert(
            "k".to_owned(),
            Entry::Live(memory(Restricted, "k", "SECRET")),
        );
        let found = Tools::new(&host).get("k").unwrap().unwrap();
        assert_eq!(found.memory.content, "low");
        let listing = Tools::new(&host).list(everything()).unwrap();
        assert!(
            listing
                .memories
                .iter()
                .all(|f| f.memory.level != Restricted)
        );
        let results = Tools::new(&host).search("SECRET", None).unwrap();
        assert!(results.hits.is_empty());
    }

    #[test]
    fn counts_days_from_the_confirmation_and_never_below_0() {
        let day = 86_400_000;
        for (updated, confirmed, age) in [
            (NOW - day * 3 / 2, None, 1),
            (NOW - 30 * day, Some(NOW - 2 * day), 2),
            (NOW + 10 * day, None, 0),
            (i64::MAX, None, 0),
            (i64::MIN, None, (i64::MAX / day) as u64),
        ] {
            let host = FakeHost::new(Public);
            host.put_memory(Memory {
                updated_at: updated,
                confirmed_at: confirmed,
                ..memory(Public, "k", "c")
            });
            let found = Tools::new(&host).get("k").unwrap().unwrap();
            assert_eq!(found.age_days, age);
        }
    }
}

mod listing {
    use super::*;

    #[test]
    fn filters_by_tag_after_shadowing() {
        let host = FakeHost::new(Internal);
        host.put_memory(tagged(Public, "a", &["x"]));
        host.put_memory(tagged(Internal, "a", &["y"]));
        host.put_memory(tagged(Public, "b", &["x"]));
        let host = host.with_tombstone(Internal, "b");
        host.put_memory(tagged(Public, "c", &["x"]));
        let listing = Tools::new(&host)
            .list(ListArguments {
                tags: vec!["x".to_owned()],
                ..everything()
            })
            .unwrap();
        assert_eq!(keys(&listing), ["c"]);
        assert_eq!(listing.next_cursor, None);
    }

    #[test]
    fn compares_tags_whole() {
        let host = FakeHost::new(Public);
        host.put_memory(tagged(Public, "k", &["ai", "machine,learning"]));
        for (tag, found) in [
            ("machine", false),
            ("learning", false),
            ("machine,learning", true),
            ("a", false),
            ("ai", true),
            (" ai ", true),
        ] {
            let listing = Tools::new(&host)
                .list(ListArguments {
                    tags: vec![tag.to_owned()],
                    ..everything()
                })
                .unwrap();
            assert_eq!(!listing.memories.is_empty(), found, "{tag}");
        }
    }

    #[test]
    fn hidden_rows_never_crowd_visible_ones_out_of_a_page() {
        let host = FakeHost::new(Internal);
        for i in 0..40 {
            let key = format!("k{i:02}");
            host.put_memory(tagged(Public, &key, &["x"]));
            if i < 37 {
                host.put_memory(tagged(Internal, &key, &[]));
            }
        }
        let listing = Tools::new(&host)
            .list(ListArguments {
                tags: vec!["x".to_owned()],
                limit: Some(2),
                ..everything()
            })
            .unwrap();
        assert_eq!(keys(&listing), ["k37", "k38"]);
        assert!(listing.next_cursor.is_some());
        assert!(!listing.truncated);
    }

    #[test]
    fn offers_no_cursor_to_an_empty_page() {
        let host = FakeHost::new(Internal)
            .with(Internal, "a", "c")
            .with(Public, "b", "c")
            .with_tombstone(Internal, "b");
        let listing = Tools::new(&host)
            .list(ListArguments {
                limit: Some(1),
                ..everything()
            })
            .unwrap();
        assert_eq!(keys(&listing), ["a"]);
        assert_eq!(listing.next_cursor, None);
    }

    #[test]
    fn every_memory_of_a_large_shelf_comes_exactly_once_in_pages_of_any_size() {
        let host = FakeHost {
            rows: 200,
            ..FakeHost::new(Public)
        };
        for i in 0..119 {
            host.put_memory(memory(Public, &format!("key {i}"), &"語".repeat(1000)));
        }
        for limit in [1, 13, 200] {
            let mut all = Vec::new();
            let mut cursor = None;
            loop {
                let listing = Tools::new(&host)
                    .list(ListArguments {
                        limit: Some(limit),
                        cursor: cursor.clone(),
                        ..everything()
                    })
                    .unwrap();
                let json = answers::list(&listing, &[]);
                assert!(json.len() <= ANSWER_BYTES);
                assert_eq!(
                    listing.truncated,
                    limit == 200 && listing.next_cursor.is_some()
                );
                for found in &listing.memories {
                    assert!(found.memory.content.len() <= EXCERPT_BYTES);
                    assert_eq!(found.memory.content_bytes, 3000);
                }
                all.extend(keys(&listing).into_iter().map(str::to_owned));
                cursor = listing.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(all.len(), 119);
            assert!(all.is_sorted());
        }
    }

    #[test]
    fn an_answer_is_never_over_its_bound_and_never_empty_for_want_of_room() {
        let host = FakeHost {
            rows: 200,
            ..FakeHost::new(Public)
        };
        for i in 0..60 {
            host.put_memory(Memory {
                // The worst that the bounds allow, six bytes of JSON for each of these.
                source: Some("\u{1}".repeat(1024)),
                tags: (0..32).map(|t| format!("{t}{}", "🦀".repeat(62))).collect(),
                ..memory(
                    Public,
                    &format!("{i:02}{}", "\"".repeat(254)),
                    &"\u{1} ".repeat(1000),
                )
            });
        }
        let tools = Tools::new(&host);
        let listing = tools.list(everything()).unwrap();
        let notices: Vec<String> = crate::ignored::ARGUMENTS
            .into_iter()
            .map(crate::ignored::notice)
            .collect();
        let json = answers::list(&listing, &notices);
        assert!(!listing.memories.is_empty());
        assert!(listing.truncated && listing.next_cursor.is_some());
        assert!(
            json.len() <= ANSWER_BYTES && json.len() > ANSWER_BYTES / 2,
            "{}",
            json.len()
        );

        let query = "\u{1} ".repeat(20_000);
        let results = tools.search(&query, Some(100)).unwrap();
        let json = answers::search(&results, &query, NOW, &notices);
        assert!(results.truncated);
        assert!(
            json.len() <= ANSWER_BYTES && json.len() > ANSWER_BYTES / 2,
            "{}",
            json.len()
        );
    }

    #[test]
    fn refuses_a_cursor_that_it_did_not_give() {
        let host = FakeHost::new(Public);
        let listing = Tools::new(&host).list(ListArguments {
            cursor: Some("next".to_owned()),
            ..everything()
        });
        assert!(matches!(listing, Err(MemoryError::InvalidArgument(_))));
    }
}

mod searching {
    use super::*;

    #[test]
    fn a_lower_version_is_no_hit_even_where_only_it_matches() {
        let host = FakeHost::new(Internal)
            .with(Public, "a", "red")
            .with(Internal, "a", "blue")
            .with(Public, "b", "red");
        let results = Tools::new(&host).search("red", None).unwrap();
        assert_eq!(results.hits.len(), 1);
        assert_eq!(results.hits[0].memory.key, "b");
    }

    #[test]
    fn shadowed_hits_do_not_use_up_the_limit() {
        let host = FakeHost::new(Internal);
        for i in 0..30 {
            let key = format!("k{i:02}");
            host.put_memory(memory(Public, &key, "red blue"));
            host.put_memory(memory(Internal, &key, "nothing"));
        }
        host.put_memory(memory(Public, "z", "red"));
        let results = Tools::new(&host).search("red blue", Some(1)).unwrap();
        assert_eq!(results.hits.len(), 1);
        assert_eq!(results.hits[0].memory.key, "z");
        assert!(!results.truncated);
    }

    #[test]
    fn takes_any_text_but_a_blank_one() {
        let host = FakeHost::new(Public).with(Public, "k", "red");
        for query in ["\"()*\"", "***", "-band", "retry OR", "\u{0}", "\u{200b}"] {
            assert!(Tools::new(&host).search(query, None).is_ok());
        }
        assert!(matches!(
            Tools::new(&host).search(" \n", None),
            Err(MemoryError::InvalidArgument(_))
        ));
    }

    #[test]
    fn cuts_a_very_long_query_and_says_so() {
        assert_eq!(searchable("a  b\ta"), ("a  b\ta", None));
        let long = "語".repeat(100_000);
        let (text, notice) = searchable(&long);
        assert_eq!(text.len(), QUERY_BYTES - QUERY_BYTES % 3);
        assert!(notice.unwrap().contains("256 KiB"));
        let longest = "a".repeat(QUERY_BYTES);
        assert_eq!(searchable(&longest), (longest.as_str(), None));
        let longer = format!("{longest}a");
        let (text, notice) = searchable(&longer);
        assert_eq!((text, notice.is_some()), (longest.as_str(), true));
    }

    #[test]
    fn says_when_terms_were_not_searched_for() {
        assert_eq!(left_out_notice(0), None);
        assert!(left_out_notice(7).unwrap().contains("7 of them"));
        let host = FakeHost::new(Internal).with(Public, "k", "red");
        let notices = |host: &FakeHost| Tools::new(host).search("red", None).unwrap().notices;
        assert_eq!(notices(&host), [""; 0]);
        host.left_out.set(7);
        assert!(notices(&host)[0].contains("7 of them"));
    }

    #[test]
    fn says_when_a_query_of_symbols_finds_nothing() {
        let host = FakeHost::new(Internal).with(Public, "k", "red");
        let found = |query: &str| {
            let results = Tools::new(&host).search(query, None).unwrap();
            (results.hits.len(), results.notices.len())
        };
        for query in ["&&", "\u{20ac}", "/", "\u{2260} |"] {
            assert_eq!(found(query), (0, 1), "{query}");
        }
        for query in ["green", "\u{7528}", "7", "=> a"] {
            assert_eq!(found(query), (0, 0), "{query}");
        }
        assert_eq!(found("red"), (1, 0));
    }

    #[test]
    fn a_host_with_broken_scores_does_no_harm() {
        struct Broken;
        impl Shelf for Broken {
            fn level(&self) -> Level {
                Public
            }
            fn fetch(&self, _: &str) -> Result<Option<Entry>, MemoryError> {
                Ok(None)
            }
            fn search(&self, _: &str, after: u32, _: u32) -> Result<Matches, MemoryError> {
                let scores = [f64::NAN, 1.0, f64::INFINITY, -f64::NAN, 0.5];
                let items = scores
                    .get(after as usize)
                    .map(|&score| crate::contract::Match {
                        memory: memory(Public, &format!("k{after}"), "c"),
                        score,
                        snippet: "🦀".repeat(200),
                    });
                Ok(Matches {
                    more: after < 4,
                    left_out: 0,
                    items: Vec::from_iter(items),
                })
            }
            fn page(&self, _: &Filter, _: Option<&str>, _: u32) -> Result<Memories, MemoryError> {
                // Never ends and never advances.
                Ok(Memories {
                    items: vec![memory(Public, "k", "c")],
                    more: true,
                })
            }
            fn present(&self, _: &[String]) -> Result<Vec<Presence>, MemoryError> {
                Ok(Vec::new())
            }
            fn versions(&self, _: &str, _: Option<u64>, _: u32) -> Result<Memories, MemoryError> {
                self.page(&filter(), None, 1)
            }
            fn edges(&self, _: &[String]) -> Result<Vec<crate::contract::Edge>, MemoryError> {
                unreachable!()
            }
            fn stale(
                &self,
                _: Instant,
                _: Option<&StalePosition>,
                _: u32,
            ) -> Result<Memories, MemoryError> {
                self.page(&filter(), None, 1)
            }
            fn used(&self, _: u32, _: u32, _: u32) -> Result<Memories, MemoryError> {
                Ok(Memories {
                    items: Vec::new(),
                    more: true,
                })
            }
            fn counts(&self) -> Result<crate::contract::Counts, MemoryError> {
                unreachable!()
            }
            fn tags(&self, _: u32) -> Result<Vec<crate::contract::TagCount>, MemoryError> {
                unreachable!()
            }
        }
        fn filter() -> Filter {
            Filter {
                tags: Vec::new(),
                match_all: false,
                excerpt_bytes: 10,
            }
        }
        fn stalls<F: Feed>(mut merged: Merged<F>) {
            let all = std::iter::from_fn(|| merged.pop().transpose());
            let last = all.take(10).last();
            assert!(matches!(last, Some(Err(MemoryError::Unavailable(_)))));
        }
        use crate::contract::{Instant, Matches, Memories, Presence, StalePosition};
        use crate::shadow::{Merged, Stale, Used, Versions};
        let shelves = visible_shelves(vec![Broken, Broken], Public);
        let left_out = std::cell::Cell::new(0);
        let mut merged = Unshadowed::new(&shelves[..1], |shelf| Search {
            shelf,
            text: "c",
            after: 0,
            rows: 1,
            taint: Public,
            left_out: &left_out,
        });
        let mut count = 0;
        while let Some(batch) = merged.next(2).unwrap() {
            count += batch.len();
        }
        assert_eq!(count, 5);

        let filter = filter();
        let mut merged = Unshadowed::new(&shelves, |shelf| Page {
            shelf,
            filter: &filter,
            after: None,
            rows: 1,
            taint: Public,
        });
        assert!(matches!(merged.next(10), Err(MemoryError::Unavailable(_))));
        stalls(Merged::new(&shelves, |shelf| Stale {
            shelf,
            before: NOW,
            after: None,
            rows: 1,
            taint: Public,
        }));
        stalls(Merged::new(&shelves, |shelf| Versions {
            shelf,
            key: "k",
            before: None,
            rows: 1,
            taint: Public,
        }));
        stalls(Merged::new(&shelves, |shelf| Used {
            shelf,
            after: 0,
            rows: 1,
            excerpt_bytes: 1,
            taint: Public,
        }));
    }
}

mod deleting {
    use super::*;

    #[test]
    fn touches_the_own_level_and_names_what_is_visible_now() {
        let host = FakeHost::new(Confidential)
            .with(Public, "k", "low")
            .with(Internal, "k", "middle")
            .with(Confidential, "k", "own");
        let deleted = Tools::new(&host).delete(" k ", false).unwrap();
        assert_eq!(
            (deleted.level, deleted.still_visible),
            (Confidential, Some(Internal))
        );
        assert!(deleted.notices[0].contains("INTERNAL"));
        let found = Tools::new(&host).get("k").unwrap().unwrap();
        assert_eq!(found.memory.content, "middle");
    }

    #[test]
    fn says_where_the_record_is_when_it_is_not_on_the_own_level() {
        let host = FakeHost::new(Confidential).with(Public, "k", "low");
        let Err(MemoryError::NoSuchRecordAtLevel(problem)) = Tools::new(&host).delete("k", false)
        else {
            panic!()
        };
        assert!(problem.what.contains("PUBLIC"));
        assert!(problem.remedy.contains("hide_lower"));
        assert!(Tools::new(&host).get("k").unwrap().is_some());
    }

    #[test]
    fn hides_lower_versions_when_asked() {
        for own in [true, false] {
            let host = FakeHost::new(Confidential).with(Public, "k", "low");
            let host = if own {
                host.with(Confidential, "k", "own")
            } else {
                host
            };
            let deleted = Tools::new(&host).delete("k", true).unwrap();
            assert_eq!(deleted.still_visible, None);
            assert!(Tools::new(&host).get("k").unwrap().is_none());
            let lower = FakeHost {
                shelves: host.shelves.clone(),
                ..FakeHost::new(Public)
            };
            assert!(Tools::new(&lower).get("k").unwrap().is_some());
        }
    }

    #[test]
    fn what_nobody_sees_is_not_found_and_leaves_nothing() {
        let host = FakeHost::new(Internal)
            .with(Restricted, "high", "c")
            .with(Public, "hidden", "c")
            .with_tombstone(Internal, "hidden");
        for key in ["absent", "high", "hidden", "%", "_", "*"] {
            for hide_lower in [false, true] {
                host.calls.borrow_mut().clear();
                let error = Tools::new(&host).delete(key, hide_lower).unwrap_err();
                let MemoryError::NotFound(problem) = error else {
                    panic!("{key}: {error:?}")
                };
                assert_eq!(
                    problem.what,
                    format!("There is no memory with the key {key:?}")
                );
                assert_eq!(host.calls().contains(&"retire".to_owned()), !hide_lower);
            }
        }
    }
}

#[test]
fn status_shows_only_what_can_be_read() {
    let mut host = FakeHost::new(Internal)
        .with(Public, "a", "c")
        .with(Restricted, "b", "c");
    host.put_memory(tagged(Internal, "c", &["x"]));
    host.hostile = true;
    let report = Tools::new(&host).status().unwrap();
    let levels: Vec<Level> = report.shelves.iter().map(|shelf| shelf.level).collect();
    assert_eq!(levels, [Internal, Public]);
    assert_eq!(report.shelves[0].tags[0].tag, "x");
    assert_eq!((report.taint, report.clearance), (Internal, Restricted));
}

/// The same by brute force: look at everything, then shadow, filter, sort and cut.
mod model {
    use super::*;

    const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
    const WORDS: [&str; 3] = ["red", "blue", "green"];

    #[derive(Debug, Clone)]
    struct Row {
        level: usize,
        key: usize,
        tombstone: bool,
        origin: usize,
        words: [bool; 3],
        tags: [bool; 2],
    }

    fn row() -> impl Strategy<Value = Row> {
        (
            0..4_usize,
            0..KEYS.len(),
            prop::bool::weighted(0.15),
            0..3_usize,
            any::<[bool; 3]>(),
            any::<[bool; 2]>(),
        )
            .prop_map(|(level, key, tombstone, origin, words, tags)| Row {
                level,
                key,
                tombstone,
                origin,
                words,
                tags,
            })
    }

    fn origin(i: usize) -> Origin {
        [Origin::User, Origin::Agent, Origin::Tool][i]
    }

    fn store(rows: &[Row], taint: usize, page: u32, hostile: bool) -> FakeHost {
        let host = FakeHost {
            hostile,
            rows: page,
            ..FakeHost::new(LEVELS[taint])
        };
        for row in rows {
            let level = LEVELS[row.level];
            if row.tombstone {
                host.shelves[row.level].borrow_mut().insert(
                    KEYS[row.key].to_owned(),
                    Entry::Tombstone(origin(row.origin)),
                );
                continue;
            }
            let content: Vec<&str> = (0..3).filter(|&i| row.words[i]).map(|i| WORDS[i]).collect();
            let mut memory = memory(level, KEYS[row.key], &content.join(" "));
            memory.origin = origin(row.origin);
            memory.tags = (0..2)
                .filter(|&i| row.tags[i])
                .map(|i| ["x", "y"][i].to_owned())
                .collect();
            host.put_memory(memory);
        }
        host
    }

    type Expected = (Memory, Option<(Level, Origin)>);

    fn seen(host: &FakeHost) -> Vec<Expected> {
        let mut all = Vec::new();
        for key in KEYS {
            // A tombstone buries what stands below it and is not more trusted.
            let mut column: Vec<Memory> = Vec::new();
            for level in 0..=host.taint as usize {
                match host.shelves[level].borrow().get(key) {
                    Some(Entry::Tombstone(origin)) => {
                        column.retain(|below| (below.origin as u8) < *origin as u8);
                    }
                    Some(Entry::Live(memory)) => column.insert(0, memory.clone()),
                    None => {}
                }
            }
            if let Some(top) = column.first() {
                // `min_by_key` takes the first of equals, which is the highest.
                let best = column.iter().min_by_key(|m| m.origin as u8).unwrap();
                let conflict = (best.origin != top.origin).then_some((best.level, best.origin));
                all.push((top.clone(), conflict));
            }
        }
        all
    }

    fn plain(memory: &Memory, conflict: Option<&Conflict>) -> (String, Option<(Level, Origin)>) {
        (memory.id.clone(), conflict.map(|c| (c.level, c.origin)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn get_list_and_search_agree_with_brute_force(
            rows in prop::collection::vec(row(), 0..14),
            taint in 0..4_usize,
            host_rows in 0..3_u32,
            guest_rows in 1..4_u32,
            hostile: bool,
            tags in any::<[bool; 2]>(),
            match_all: bool,
            limit in 1..5_u32,
            query in 1..8_usize,
        ) {
            let host = store(&rows, taint, host_rows, hostile);
            let tools = Tools::new(&host).with_page_rows(guest_rows);
            let seen = seen(&host);

            for key in KEYS {
                let expected = seen
                    .iter()
                    .find(|(memory, _)| memory.key == key)
                    .map(|(memory, conflict)| (memory.id.clone(), *conflict));
                let found = tools.get(key).unwrap();
                prop_assert_eq!(found.map(|f| plain(&f.memory, f.conflict.as_ref())), expected);
            }

            let tags: Vec<String> =
                (0..2).filter(|&i| tags[i]).map(|i| ["x", "y"][i].to_owned()).collect();
            let expected: Vec<_> = seen
                .iter()
                .filter(|(memory, _)| {
                    let mut has = tags.iter().map(|tag| memory.tags.contains(tag));
                    tags.is_empty() || if match_all { has.all(|h| h) } else { has.any(|h| h) }
                })
                .map(|(memory, conflict)| (memory.id.clone(), *conflict))
                .collect();
            let mut listed = Vec::new();
            let mut cursor = None;
            for page in expected.chunks(limit as usize).chain(expected.is_empty().then_some(&[][..])) {
                let listing = tools
                    .list(ListArguments { tags: tags.clone(), match_all, cursor, limit: Some(limit) })
                    .unwrap();
                prop_assert_eq!(listing.memories.len(), page.len());
                listed.extend(listing.memories.iter().map(|f| plain(&f.memory, f.conflict.as_ref())));
                prop_assert_eq!(listing.next_cursor.is_some(), listed.len() < expected.len());
                cursor = listing.next_cursor;
            }
            prop_assert_eq!(listed, expected);

            let query: Vec<&str> = (0..3).filter(|&i| query >> i & 1 == 1).map(|i| WORDS[i]).collect();
            let query = query.join(" ");
            let mut expected: Vec<(usize, Expected)> = seen
                .into_iter()
                .map(|seen| (fake::score(&query, &seen.0.content), seen))
                .filter(|(score, _)| *score > 0)
                .collect();
            expected.sort_by_key(|(score, (memory, _))| (std::cmp::Reverse(*score), memory.key.clone()));
            expected.truncate(limit as usize);
            let expected: Vec<_> =
                expected.into_iter().map(|(_, (memory, conflict))| (memory.id, conflict)).collect();
            let results = tools.search(&query, Some(limit)).unwrap();
            let found: Vec<_> =
                results.hits.iter().map(|hit| plain(&hit.memory, hit.conflict.as_ref())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
