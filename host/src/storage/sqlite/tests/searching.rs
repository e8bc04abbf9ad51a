//! Search, against an oracle that knows only the definition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::search::snippet::LEAD;
use crate::storage::{Match, limits};

#[test]
fn words_are_ored_and_stemmed_and_case_is_ignored() {
    let store = Store::new();
    store.save(P, "a", "He was running late");
    store.save(P, "b", "nothing");
    store.agent(P).put(&tagged("c", &["runs"])).unwrap();
    store.save(P, "run", "it");
    let keys = found(&store, P, P, "RUN xyzzy");
    assert_eq!(
        keys.iter()
            .map(|m| m.memory.key.as_str())
            .collect::<BTreeSet<_>>(),
        ["a", "c", "run"].into()
    );
    assert!(keys.iter().all(|m| m.score > 0.0 && m.score.is_finite()));
}

#[test]
fn any_text_is_a_query() {
    let store = Store::new();
    store.save(
        P,
        "a",
        "word, AND another; \"quoted\" NEAR c++ GB/s user@example.org 日本語",
    );
    for text in [
        "",
        " ",
        "!!!",
        "\"",
        "\"\"\"",
        "*",
        "a*",
        "-word",
        "word AND",
        "NOT",
        "OR OR",
        "NEAR(",
        "key:",
        "key:word",
        "{a b}:c",
        "^word",
        "(",
        ")",
        "a\0b",
        "\0",
        "\u{fffd}",
        "%",
        "'",
        "';--",
        "\\",
        "+",
        "word\u{200b}",
        "\u{301}",
        "\u{feff}",
        "🦀",
        "日本語",
        "a-b",
        "ſ",
        "İ",
    ] {
        let result = store.agent(P).search(P, text, 0, 10);
        assert!(result.is_ok(), "{text:?}: {result:?}");
    }
    for text in [
        "word",
        "and",
        "near",
        "\"quoted\"",
        "key:word word",
        "c++",
        "GB/s",
        "user@example.org",
        "日本語",
    ] {
        assert_eq!(found(&store, P, P, text).len(), 1, "{text}");
    }
    for text in ["", "!!!", "s/GB", "example@user.org", "wor", "wor*", "日本"] {
        assert_eq!(found(&store, P, P, text).len(), 0, "{text}");
    }
}

#[test]
fn a_word_of_several_terms_is_a_phrase() {
    let store = Store::new();
    store.save(P, "a", "at 3 GB/s");
    store.save(P, "b", "two GBs");
    store.save(P, "c", "gb and s");
    let keys = |text| -> Vec<String> {
        let hits = found(&store, P, P, text);
        hits.into_iter().map(|hit| hit.memory.key).collect()
    };
    assert_eq!(keys("GB/s"), ["a"]);
    assert_eq!(keys("gb").len(), 3);
    // A phrase does not reach from one column into the next.
    store.save(P, "gb", "s");
    assert_eq!(keys("GB/s"), ["a"]);
}

#[test]
fn long_queries_are_refused_by_name() {
    let store = Store::new();
    let bytes = "x".repeat(limits::QUERY_BYTES + 1);
    let words: Vec<String> = (0..=limits::QUERY_TERMS).map(|i| i.to_string()).collect();
    for text in [bytes, words.join(" ")] {
        let error = store.agent(P).search(P, &text, 0, 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }
    let repeated = "x y ".repeat(500);
    assert!(store.agent(P).search(P, &repeated, 0, 10).is_ok());
    let longest = "a/".repeat(limits::QUERY_BYTES / 2);
    store.save(P, "k", &longest);
    assert_eq!(found(&store, P, P, &longest).len(), 1);
}

#[test]
fn a_word_said_twice_counts_once() {
    let store = Store::new();
    store.save(P, "a", "apple");
    store.save(P, "b", "pear");
    assert_eq!(
        found(&store, P, P, "apple apple Apples pear"),
        found(&store, P, P, "apple pear")
    );
}

#[test]
fn a_snippet_shows_the_match_and_is_short() {
    let store = Store::new();
    let long = format!("{}needle 🦀{}", "häy ".repeat(2000), " stack".repeat(2000));
    store.save(P, "long", &long);
    store.save(P, "short", "a needle");
    store.save(P, "needle in the key", &"straw ".repeat(500));
    store.save(
        P,
        "one",
        &format!("{}needle{}", "x".repeat(5000), "y".repeat(5000)),
    );
    store.save(P, "end", &format!("{} needle", "straw ".repeat(500)));
    for hit in found(&store, P, P, "needles") {
        assert!(hit.snippet.len() <= limits::SNIPPET_BYTES);
        assert!(hit.memory.content.len() <= limits::EXCERPT_BYTES);
        match hit.memory.key.as_str() {
            "short" => assert_eq!(hit.snippet, "a needle"),
            "long" | "end" => assert!(hit.snippet.contains("needle"), "{}", hit.snippet),
            _ => assert!(!hit.snippet.is_empty()),
        }
    }
    assert_eq!(found(&store, P, P, "needles").len(), 4);
}

#[test]
fn pages_continue_by_position_and_keep_one_order() {
    let store = Store::with(SqliteOptions::default().page_rows(2));
    for i in 0..9 {
        store.save(
            P,
            &format!("k{}", (i * 7) % 9),
            if i % 2 == 0 { "word" } else { "word word more" },
        );
    }
    let mut shelves = store.agent(P);
    let mut all = Vec::new();
    loop {
        let page = shelves.search(P, "word", all.len(), 100).unwrap();
        assert!(page.items.len() <= 2);
        all.extend(page.items);
        if !page.more {
            break;
        }
    }
    assert_eq!(all.len(), 9);
    assert!(all.is_sorted_by(
        |a, b| a.score > b.score || (a.score == b.score && a.memory.key < b.memory.key)
    ));
    assert!(shelves.search(P, "word", 9, 10).unwrap().items.is_empty());
    assert!(
        shelves
            .search(P, "word", 1000, 10)
            .unwrap()
            .items
            .is_empty()
    );
}

#[test]
fn what_ends_between_two_pages_is_left_out_and_nothing_is_skipped() {
    let store = Store::with(SqliteOptions::default().page_rows(2));
    for key in ["a", "b", "c", "d", "e"] {
        store.save(P, key, "word");
    }
    let mut shelves = store.agent(P);
    assert_eq!(shelves.search(P, "word", 0, 2).unwrap().items.len(), 2);
    store.agent(P).retire("c", false).unwrap();
    let page = shelves.search(P, "word", 2, 2).unwrap();
    let keys: Vec<&str> = page
        .items
        .iter()
        .map(|hit| hit.memory.key.as_str())
        .collect();
    assert_eq!((keys, page.more), (vec!["d", "e"], false));
}

fn found(store: &Store, taint: Level, level: Level, text: &str) -> Vec<Match> {
    let mut shelves = store.agent(taint);
    let mut all = Vec::new();
    loop {
        let page = shelves.search(level, text, all.len(), 100).unwrap();
        all.extend(page.items);
        if !page.more {
            return all;
        }
    }
}

/// What a history does: level, key, words, and how.
#[derive(Clone, Debug)]
enum Step {
    Save(usize, usize, Vec<usize>),
    Expiring(usize, usize, Vec<usize>),
    Delete(usize, usize),
}

const WORDS: [&str; 6] = ["apple", "pears", "GB/s", "gb", "s", "plum-tree"];

/// The terms of a word after stemming.
fn terms(word: &str) -> Vec<&'static str> {
    match word {
        "apple" => vec!["appl"],
        "pears" => vec!["pear"],
        "GB/s" => vec!["gb", "s"],
        "gb" => vec!["gb"],
        "s" => vec!["s"],
        "plum-tree" => vec!["plum", "tree"],
        other => panic!("{other}"),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let words = || prop::collection::vec(0..WORDS.len(), 1..6);
    prop_oneof![
        6 => (0..4_usize, 0..5_usize, words()).prop_map(|(l, k, w)| Step::Save(l, k, w)),
        1 => (0..4_usize, 0..5_usize, words()).prop_map(|(l, k, w)| Step::Expiring(l, k, w)),
        2 => (0..4_usize, 0..5_usize).prop_map(|(l, k)| Step::Delete(l, k)),
    ]
}

fn text(words: &[usize]) -> String {
    words
        .iter()
        .map(|word| WORDS[*word])
        .collect::<Vec<_>>()
        .join(" ")
}

/// The indexed records: level and key to content, and whether it has expired.
type Model = BTreeMap<(usize, String), (String, bool)>;

fn apply(store: &Store, steps: &[Step]) -> Model {
    let mut model = Model::new();
    for step in steps {
        match step {
            Step::Save(level, key, words) | Step::Expiring(level, key, words) => {
                let expiring = matches!(step, Step::Expiring(..));
                let key = format!("{key} key");
                let draft = Draft {
                    expires_at: expiring.then(|| at(10)),
                    ..draft(&key, &text(words))
                };
                store.agent(Level::ALL[*level]).put(&draft).unwrap();
                model.insert((*level, key), (text(words), expiring));
            }
            Step::Delete(level, key) => {
                let key = format!("{key} key");
                store.agent(Level::ALL[*level]).retire(&key, false).unwrap();
                model.remove(&(*level, key));
            }
        }
    }
    model
}

/// BM25 as the textbook has it, over the records of all visible levels as one.
fn oracle(model: &Model, taint: usize, query: &[usize]) -> BTreeMap<(usize, String), f64> {
    type Document<'a> = (&'a (usize, String), [Vec<String>; 2], bool);
    let documents: Vec<Document<'_>> = model
        .iter()
        .filter(|((level, _), _)| *level <= taint)
        .map(|(name, (content, expired))| {
            let key: Vec<String> = name.1.split(' ').map(str::to_owned).collect();
            let content = content
                .split(' ')
                .flat_map(terms)
                .map(str::to_owned)
                .collect();
            (name, [key, content], *expired)
        })
        .collect();
    let records = documents.len() as f64;
    let length = |columns: &[Vec<String>; 2]| (columns[0].len() + columns[1].len()) as f64;
    let average = documents
        .iter()
        .map(|(_, columns, _)| length(columns))
        .sum::<f64>()
        / records;
    let often = |columns: &[Vec<String>; 2], phrase: &[&str]| -> f64 {
        columns
            .iter()
            .map(|column| {
                column
                    .windows(phrase.len())
                    .filter(|part| *part == phrase)
                    .count()
            })
            .sum::<usize>() as f64
    };
    let mut seen = BTreeSet::new();
    let mut scores = BTreeMap::new();
    for word in query {
        let phrase = terms(WORDS[*word]);
        if !seen.insert(phrase.clone()) {
            continue;
        }
        let holding = documents
            .iter()
            .filter(|(_, columns, _)| often(columns, &phrase) > 0.0)
            .count() as f64;
        let weight = (1.0 + (records - holding + 0.5) / (holding + 0.5)).ln();
        for (name, columns, expired) in &documents {
            let count = often(columns, &phrase);
            if count > 0.0 && !expired {
                let norm = count + 1.2 * (1.0 - 0.75 + 0.75 * length(columns) / average);
                *scores.entry((*name).clone()).or_insert(0.0) += weight * count * 2.2 / norm;
            }
        }
    }
    scores
}

/// What a session at a taint finds on each level it sees, at a moment past all
/// expiries.
fn everything(store: &Store, taint: Level, query: &str) -> Vec<(Level, String, u64)> {
    let mut shelves = store.later(taint, 20);
    let mut all = Vec::new();
    for level in Level::readable_at(taint) {
        let mut position = 0;
        loop {
            let page = shelves.search(level, query, position, 3).unwrap();
            position += page.items.len();
            all.extend(
                page.items
                    .into_iter()
                    .map(|hit| (level, hit.memory.key, hit.score.to_bits())),
            );
            if !page.more {
                break;
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn scores_are_those_of_one_index_over_what_the_session_sees(
        steps in prop::collection::vec(step(), 1..16),
        query in prop::collection::vec(0..WORDS.len(), 1..5),
    ) {
        let store = Store::new();
        let model = apply(&store, &steps);
        // The same records, all saved on one level, under keys of the same words.
        let merged = Store::new();
        for taint in 0..4 {
            let expected = oracle(&model, taint, &query);
            let found = everything(&store, Level::ALL[taint], &text(&query));
            prop_assert_eq!(found.len(), expected.len());
            for (level, key, bits) in found {
                let rank = Level::ALL.iter().position(|other| *other == level).unwrap();
                let score = f64::from_bits(bits);
                let wanted = expected[&(rank, key)];
                prop_assert!((score - wanted).abs() < 1e-9, "{} {}", score, wanted);
            }
        }
        for (number, ((_, key), (content, expired))) in model.iter().enumerate() {
            // One term more in each key, so that keys differ; in the oracle too.
            let draft = Draft {
                expires_at: expired.then(|| at(10)),
                ..draft(&format!("{key} {number}"), content)
            };
            merged.agent(P).put(&draft).unwrap();
        }
        let renamed: Model = model.iter().enumerate()
            .map(|(number, ((_, key), rest))| ((0, format!("{key} {number}")), rest.clone()))
            .collect();
        let expected = oracle(&renamed, 0, &query);
        for (_, key, bits) in everything(&merged, P, &text(&query)) {
            prop_assert!((f64::from_bits(bits) - expected[&(0, key)]).abs() < 1e-9);
        }
    }

    #[test]
    fn a_search_is_to_the_bit_that_of_a_store_without_the_files_above(
        steps in prop::collection::vec(step(), 1..16),
        query in prop::collection::vec(0..WORDS.len(), 1..5),
    ) {
        let whole = Store::new();
        apply(&whole, &steps);
        for (rank, taint) in Level::ALL.into_iter().enumerate() {
            let without = Store::new();
            let low: Vec<Step> = steps.iter().filter(|step| match step {
                Step::Save(level, ..) | Step::Expiring(level, ..) | Step::Delete(level, _) => *level <= rank,
            }).cloned().collect();
            apply(&without, &low);
            prop_assert_eq!(
                everything(&whole, taint, &text(&query)),
                everything(&without, taint, &text(&query))
            );
        }
        // And taking the files away changes nothing for those below.
        let before: Vec<_> = Level::ALL.map(|taint| everything(&whole, taint, &text(&query))).into();
        for (rank, level) in Level::ALL.into_iter().enumerate().rev().take(3) {
            for name in ["", "-wal", "-shm"] {
                let path = whole.root().join("agents/main").join(format!("{}.db{name}", level.file_stem()));
                drop(std::fs::remove_file(path));
            }
            prop_assert_eq!(&everything(&whole, Level::ALL[rank - 1], &text(&query)), &before[rank - 1]);
        }
    }

    #[test]
    fn a_query_of_any_characters_is_answered(text in any::<String>()) {
        let store = Store::new();
        store.save(P, "k", &format!("x{text}"));
        prop_assert!(store.agent(P).search(P, &text, 0, 10).is_ok());
    }
}

#[test]
fn a_snippet_takes_no_longer_for_many_matches() {
    let store = Store::new();
    store.save(P, "k", &"a ".repeat(limits::CONTENT_BYTES / 2));
    let began = std::time::Instant::now();
    let found = store.agent(P).search(P, "a", 0, 10).unwrap();
    assert_eq!(found.items.len(), 1);
    // FTS5's own snippet() takes minutes for this.
    assert!(began.elapsed().as_secs() < 30);
}

#[test]
fn a_snippet_begins_shortly_before_the_first_word_that_matches() {
    let store = Store::new();
    let padding = "lorem ipsum ".repeat(40);
    for (key, word, query) in [
        ("plain", "heliotrope", "heliotropes"),
        ("stemmed", "Happiness", "happy"),
        ("accented", "CAFÉS", "cafe"),
        ("script", "Сергей", "сергей"),
    ] {
        store.save(P, key, &format!("{padding}{word} {padding}"));
        let found = store.agent(P).search(P, query, 0, 1).unwrap();
        let snippet = &found.items[0].snippet;
        assert!(snippet.contains(word), "{key}: {snippet}");
        assert!(snippet.len() <= limits::SNIPPET_BYTES);
        assert!(snippet.find(word).unwrap() <= LEAD + 3, "{key}: {snippet}");
    }
}
