//! Search, against an oracle that knows only the definition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::search::analyser::{Analyser, Kind, tokens};
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
        "s/GB",
        "user@example.org",
        "wor",
        "日本語",
        "日本",
        "語",
    ] {
        assert_eq!(found(&store, P, P, text).len(), 1, "{text}");
    }
    for text in ["", "!!!", "\"\"", "xyzzy", "中国", "\0"] {
        assert_eq!(found(&store, P, P, text).len(), 0, "{text}");
    }
}

/// The keys that a query finds, the best first.
fn keys(store: &Store, text: &str) -> Vec<String> {
    let hits = found(store, P, P, text);
    hits.into_iter().map(|hit| hit.memory.key).collect()
}

#[test]
fn words_near_each_other_come_before_words_apart_and_neither_is_required() {
    let store = Store::new();
    store.save(P, "a", "at 3 GB/s");
    store.save(P, "b", "two GBs");
    store.save(P, "c", "gb of the one and of the other s");
    store.save(P, "d", "one s");
    assert_eq!(keys(&store, "GB/s"), ["a", "c", "d"]);
    // Words are not near from one column to the next.
    store.save(P, "the gb", "s");
    let best = found(&store, P, P, "\"gb s\"");
    assert_eq!(best[0].memory.key, "a");
}

#[test]
fn what_stands_in_quotes_is_preferred_where_it_follows_each_other() {
    let store = Store::new();
    store.save(
        P,
        "apart",
        "green was the house, green the tea, tea the green",
    );
    store.save(
        P,
        "whole",
        "a kettle of green tea and of other things in the house",
    );
    store.save(P, "none", "coffee");
    for (open, close) in [('"', '"'), ('“', '”'), ('«', '»'), ('„', '“'), ('「', '」')]
    {
        let found = keys(&store, &format!("house {open}green tea{close}"));
        assert_eq!(found, ["whole", "apart"], "{open}");
    }
    assert_eq!(keys(&store, "\"the house\"").len(), 2);
    // An unbalanced quote is no more than any other character.
    assert_eq!(keys(&store, "\"tea").len(), 2);
    store.save(P, "中", "用户的身份");
    store.save(P, "国", "身份和用户");
    assert_eq!(keys(&store, "「用户的身份」")[0], "中");
}

#[test]
fn a_key_that_the_query_names_comes_first() {
    let store = Store::new();
    for i in 0..20 {
        store.save(
            P,
            &format!("note {i}"),
            "the user name and the zebra, user name, zebra 9340",
        );
    }
    store.save(P, "user-name", "Ada");
    store.save(P, "name", "of a thing");
    store.save(P, "ZEBRA-9340", "striped");
    store.save(P, "what", "a stop word");
    for query in [
        "user-name",
        "USER_NAME?",
        "what is the user name of Ada",
        "user name",
    ] {
        let found = keys(&store, query);
        assert_eq!(&found[..2], ["user-name", "name"], "{query}");
    }
    for query in ["ZEBRA-9340", "zebra-9340", "where is zebra 9340 now"] {
        assert_eq!(keys(&store, query)[0], "ZEBRA-9340", "{query}");
    }
    assert_eq!(keys(&store, "what")[0], "what");
    assert_ne!(keys(&store, "what zebra?")[0], "what");
    // On another level too: scores compare.
    store.save(R, "garden-gate", "code");
    let top = |level| {
        store
            .agent(R)
            .search(level, "garden gate zebra user", 0, 1)
            .unwrap()
    };
    assert!(top(R).items[0].score > top(P).items[0].score);
}

#[test]
fn a_last_word_may_be_unfinished() {
    let store = Store::new();
    store.save(P, "a", "permission granted");
    store.save(P, "b", "pear");
    assert_eq!(keys(&store, "perm"), ["a"]);
    assert_eq!(keys(&store, "granted pe")[0], "a");
    assert_eq!(keys(&store, "pe").len(), 2);
    assert_eq!(keys(&store, "pe?").len(), 0);
    assert_eq!(keys(&store, "pe x").len(), 0);
    assert_eq!(keys(&store, "p").len(), 0);
}

#[test]
fn a_typing_error_a_part_and_another_form_are_forgiven() {
    let store = Store::new();
    store.save(P, "a", "The Dampfturbinen of the restaurant");
    store.save(P, "b", "something else altogether");
    for query in [
        "restaurnat",
        "restauraant",
        "restarant",
        "Restaurants",
        "Turbine",
        "Dampf",
        "turbines?",
    ] {
        assert_eq!(keys(&store, query), ["a"], "{query}");
    }
    assert_eq!(keys(&store, "zzzzzz?"), [""; 0]);
}

#[test]
fn every_script_is_found_by_one_of_its_words() {
    let store = Store::new();
    for (key, content, queries) in [
        ("code", "The user does not like `rm -rf`.", &["rm -rf"][..]),
        ("c++", "Prefers C++ over Java", &["C++"]),
        ("c#", "Prefers C# over Java", &["C#", "Ｃ＃"]),
        ("speed", "throughput 3 GB/s", &["GB/s", "3 GB/s"]),
        ("apostrophe", "a'b it is", &["a'b", "a\u{2019}b?"]),
        ("status", "status: done", &["status: done", "STATUS"]),
        (
            "chinese",
            "今天玩成语接龙游戏，用户身份",
            &["用户", "用户身份", "成语接龙"],
        ),
        ("japanese", "今日はしりとりをした", &["しりとり"]),
        ("korean", "오늘 끝말잇기 게임을 했다", &["끝말잇기", "게임"]),
        (
            "french",
            "Le caff\u{e8} est servi",
            &["caffe", "CAFFÈ", "caffe\u{300}"],
        ),
        ("hebrew", "הספר על השולחן", &["ספר", "בספר", "שולחן"]),
        ("arabic", "قرأت الكتاب أمس", &["كتاب", "والكتاب"]),
        ("thai", "ฉันชอบกินข้าวผัด", &["ข้าวผัด", "ข้าว"]),
        ("devanagari", "मुझे हिन्दी पसंद है", &["हिन्दी"]),
        ("russian", "Сергей пришёл домой", &["сергей", "ПРИШЕЛ"]),
        ("greek", "Ο Γιώργος μένει στην Αθήνα", &["γιωργος", "ΑΘΗΝΑ"]),
        ("emoji", "party 🎉 tonight", &["🎉"]),
    ] {
        store.save(P, key, content);
        for query in queries {
            assert_eq!(keys(&store, query)[0], key, "{query}");
        }
    }
    assert_eq!(keys(&store, "Сергей"), ["russian"]);
    assert_eq!(keys(&store, "🎂"), [""; 0]);
    let gbs = Store::new();
    gbs.save(P, "k", "two GBs");
    assert_eq!(keys(&gbs, "GB/s"), [""; 0]);
}

#[test]
fn of_very_many_words_the_rarest_are_searched_for_and_the_others_counted() {
    let store = Store::new();
    let many: Vec<String> = (0..300).map(|i| format!("word{i}")).collect();
    for i in 0..3 {
        store.save(P, &format!("common {i}"), &many.join(" "));
    }
    store.save(P, "rare", "needle");
    let mut shelves = store.agent(R);
    let query = format!("{} needle", many.join(" "));
    let page = shelves.search(P, &query, 0, 10).unwrap();
    assert_eq!(page.items.len(), 4);
    assert_eq!(page.left_out, 301 - limits::QUERY_TERMS);
    assert_eq!(
        shelves.search(R, &query, 0, 10).unwrap().left_out,
        page.left_out
    );
    assert_eq!(
        shelves.search(P, "word1 needle", 0, 10).unwrap().left_out,
        0
    );
}

#[test]
fn a_query_is_as_long_as_a_content_and_longer_ones_are_refused_by_name() {
    let store = Store::new();
    let longest = "a/".repeat(limits::QUERY_BYTES / 2);
    store.save(P, "k", &longest);
    assert_eq!(found(&store, P, P, &longest).len(), 1);
    let words: String = (0..60_000)
        .map(|i| format!("{i:x} "))
        .take(40_000)
        .collect();
    let words = &words[..words.len().min(limits::QUERY_BYTES)];
    assert!(store.agent(P).search(P, words, 0, 10).is_ok());
    let error = store
        .agent(P)
        .search(P, &format!("{longest}a"), 0, 10)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn a_word_said_twice_counts_once() {
    let store = Store::new();
    store.save(P, "a", "apple");
    store.save(P, "b", "pear");
    assert_eq!(
        found(&store, P, P, "apple apple Apples pear?"),
        found(&store, P, P, "apple pear?")
    );
}

#[test]
fn stop_words_are_left_out_unless_there_is_nothing_else() {
    let store = Store::new();
    store.save(P, "a", "to be or not to be");
    store.save(P, "b", "a question");
    assert_eq!(keys(&store, "what is the question?"), ["b"]);
    assert_eq!(keys(&store, "not to be"), ["a"]);
}

#[test]
fn no_statement_of_a_search_walks_through_a_table() {
    let store = Store::new();
    store.save(P, "a", "word 日本語");
    let db = store.by_hand(P);
    for sql in [
        r#"SELECT doc, col, "offset" FROM memory_word_terms WHERE term = ?1"#,
        "SELECT doc, term = ?1 FROM memory_gram_terms WHERE term >= ?1 AND term <= ?2",
        "SELECT doc FROM memory_vocabulary WHERE term = ?1",
        "SELECT term, cnt FROM memory_vocabulary WHERE term > ?1 AND term < ?2 LIMIT ?3",
        "SELECT seq FROM memory_key WHERE words = ?1 ORDER BY seq",
        "SELECT block FROM memory_words_data WHERE id = 1",
    ] {
        assert!(
            include_str!("../search/index.rs").contains(sql),
            "not asked any more: {sql}"
        );
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let count = statement.parameter_count();
        let plan: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(vec!["a"; count]), |row| {
                row.get(3)
            })
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for step in plan {
            // A virtual table says which constraints it was given behind the colon.
            let walks = step.starts_with("SCAN") && !step.contains("VIRTUAL TABLE INDEX");
            assert!(!walks && !step.ends_with("INDEX 0:"), "{sql}: {step}");
        }
    }
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
    // Also in the middle of a word.
    assert_eq!(found(&store, P, P, "needles").len(), 5);
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

const WORDS: [&str; 8] = [
    "apple",
    "apples",
    "pears",
    "GB/s",
    "gb",
    "s",
    "plum-tree",
    "用户身",
];

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

/// The words as a query whose last one is finished.
fn asked(words: &[usize]) -> String {
    format!("{}?", text(words))
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

/// The terms of a text, and of each its grams.
fn terms(text: &str) -> Vec<(String, Vec<String>)> {
    let analyser = Analyser::new();
    let mut all = Vec::new();
    for token in tokens(text) {
        let mut grams = Vec::new();
        analyser.grams(&token, |gram| grams.push(gram.to_owned()));
        analyser.words(&token, |term| all.push((term.to_owned(), grams.clone())));
    }
    all
}

/// A record as its text has it.
struct Document {
    name: (usize, String),
    columns: [Vec<String>; 2],
    grams: BTreeMap<String, u32>,
    expired: bool,
}

impl Document {
    fn new(name: &(usize, String), content: &str, expired: bool) -> Self {
        let mut grams = BTreeMap::new();
        let columns = [name.1.as_str(), content].map(|text| {
            terms(text)
                .into_iter()
                .map(|(term, of_it)| {
                    for gram in of_it {
                        *grams.entry(gram).or_insert(0_u32) += 1;
                    }
                    term
                })
                .collect()
        });
        Self {
            name: name.clone(),
            columns,
            grams,
            expired,
        }
    }

    fn length(&self) -> f64 {
        (self.columns[0].len() + self.columns[1].len()) as f64
    }

    fn often(&self, term: &str) -> f64 {
        self.columns
            .iter()
            .flatten()
            .filter(|other| *other == term)
            .count() as f64
    }

    /// The fewest steps between two words in one column.
    fn steps(&self, one: &str, other: &str) -> Option<usize> {
        let mut fewest = None;
        for column in &self.columns {
            for (i, a) in column.iter().enumerate() {
                for (j, b) in column.iter().enumerate() {
                    let steps = i.abs_diff(j);
                    if a == one && b == other && steps <= 5 && fewest.is_none_or(|f| steps < f) {
                        fewest = Some(steps);
                    }
                }
            }
        }
        fewest
    }
}

/// The score as it is defined, over the records of all visible levels as one, from
/// their texts alone.
fn oracle(model: &Model, taint: usize, query: &[usize]) -> BTreeMap<(usize, String), f64> {
    let documents: Vec<Document> = model
        .iter()
        .filter(|((level, _), _)| *level <= taint)
        .map(|(name, (content, expired))| Document::new(name, content, *expired))
        .collect();
    let records = documents.len() as f64;
    let average = documents.iter().map(Document::length).sum::<f64>() / records;
    let rarity = |holding: usize| {
        let holding = holding as f64;
        (1.0 + (records - holding + 0.5) / (holding + 0.5)).ln()
    };
    let saturated = |document: &Document, often: f64, k1: f64, b: f64| {
        // Lengths are known in steps of the square root of two.
        let length = 2.0_f64.powf((document.length().log2() * 2.0).round() / 2.0);
        often * (k1 + 1.0) / (often + k1 * (1.0 - b + b * length / average))
    };
    let mut scores: BTreeMap<(usize, String), (f64, BTreeSet<usize>)> = BTreeMap::new();
    let mut add = |document: &Document, more: f64, word: Option<usize>| {
        if more > 0.0 {
            let entry = scores.entry(document.name.clone()).or_default();
            entry.0 += more;
            entry.1.extend(word);
        }
    };
    let (mut words, mut seen, mut seen_grams) = (0, BTreeSet::new(), BTreeSet::new());
    let (mut last_new, mut before): (Option<String>, Option<String>) = (None, None);
    for token in query.iter().flat_map(|word| tokens(WORDS[*word])) {
        let mut of_token = Vec::new();
        Analyser::new().words(&token, |term| of_token.push(term.to_owned()));
        let is_word = token.kind == Kind::Word;
        let name = if is_word {
            of_token[0].clone()
        } else {
            token.text.clone()
        };
        let behind = std::mem::replace(&mut before, is_word.then(|| name.clone()));
        if !seen.insert(name) {
            continue;
        }
        for term in of_token {
            let holding = documents.iter().filter(|d| d.often(&term) > 0.0).count();
            let weight = match (is_word, term.chars().count()) {
                (true, _) => 1.0,
                (false, 1) => 0.8,
                (false, _) => 0.4,
            };
            for document in &documents {
                let often = document.often(&term);
                if often > 0.0 {
                    add(
                        document,
                        weight * rarity(holding) * saturated(document, often, 0.4, 0.7),
                        Some(words),
                    );
                }
            }
            if !is_word {
                continue;
            }
            for (_, grams) in terms(&token.text) {
                for gram in grams {
                    let number = documents
                        .iter()
                        .filter(|d| d.grams.contains_key(&gram))
                        .count();
                    if !seen_grams.insert(gram.clone()) || number == 0 {
                        continue;
                    }
                    let rare = (holding.max(1) as f64).powf(-0.3);
                    let weight = 0.4 * (1.0 + 0.25 * rare) * (rarity(number) / 5.0).powf(0.4);
                    for document in &documents {
                        if let Some(often) = document.grams.get(&gram) {
                            let often = f64::from(*often).min(2.0);
                            let saturated = saturated(document, often, 0.9, 0.1);
                            add(document, weight * rarity(number) * saturated, None);
                        }
                    }
                }
            }
            if let (Some(one), true) = (&last_new, behind == last_new) {
                let near: Vec<_> = documents
                    .iter()
                    .filter_map(|d| Some((d, d.steps(one, &term)?)))
                    .collect();
                for (document, steps) in &near {
                    add(document, 0.2 * rarity(near.len()) / *steps as f64, None);
                }
            }
            last_new = Some(term);
        }
        words += 1;
    }
    scores.retain(|name, _| documents.iter().any(|d| d.name == *name && !d.expired));
    scores
        .into_iter()
        .map(|(name, (score, found))| {
            (
                name,
                score * (1.0 + 0.2 * found.len() as f64 / words as f64),
            )
        })
        .collect()
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
            let found = everything(&store, Level::ALL[taint], &asked(&query));
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
        for (_, key, bits) in everything(&merged, P, &asked(&query)) {
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
