//! Search, against an oracle that knows only the definition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::operator::{ImportOptions, Prune};
use super::super::search::index;
use super::*;
use crate::search::analyser::{Analyser, Kind, Token, tokens};
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
fn of_keys_that_the_query_names_the_longer_comes_first_whatever_is_in_them() {
    let store = Store::new();
    // Numbers have no grams, of which a record never has as much as it could.
    let numbers: String = (100..150).map(|number| format!("{number} ")).collect();
    let query = &format!("{numbers} garden gate lock?");
    // Everything that is asked for, in its order, against next to nothing.
    store.save(P, "lock", &query.repeat(3));
    let other = "lorem ipsum dolor sit amet ".repeat(500);
    store.save(R, "garden-gate", &other);
    store.save(P, "none", &query.repeat(3));
    let top = |level| {
        let page = store.agent(R).search(level, query, 0, 2).unwrap();
        page.items
            .into_iter()
            .map(|hit| (hit.memory.key, hit.score))
            .collect::<Vec<_>>()
    };
    let (lower, upper) = (top(P), top(R));
    assert_eq!(lower[0].0, "lock");
    assert_eq!(lower[1].0, "none");
    assert_eq!(upper[0].0, "garden-gate");
    assert!(upper[0].1 > lower[0].1, "{upper:?} {lower:?}");
    assert!(lower[0].1 > lower[1].1);
}

#[test]
fn a_key_of_stop_words_is_named_though_they_are_left_out_elsewhere() {
    let store = Store::new();
    store.save(P, "to do", "milk");
    store.save(P, "the", "an article");
    store.save(P, "list", "bread and milk to do");
    assert_eq!(keys(&store, "to do")[0], "to do");
    assert_eq!(keys(&store, "the milk list to do")[0], "to do");
    assert_eq!(keys(&store, "The")[0], "the");
    // One word of them is a key only if it is all.
    assert_eq!(keys(&store, "the bread"), ["list"]);
}

#[test]
fn a_key_is_named_in_any_case_and_punctuation() {
    let store = Store::new();
    store.save(P, "ZEBRA-9340", "striped");
    store.save(P, "other", &"zebra 9340 ".repeat(20));
    for query in [
        "zebra-9340",
        "ZEBRA_9340!",
        "Zebra 9340",
        "(zebra/9340)",
        "what about zebra–9340, again?",
        "ｚｅｂｒａ 9340",
    ] {
        assert_eq!(keys(&store, query)[0], "ZEBRA-9340", "{query}");
    }
    for query in ["9340 zebra", "zebra", "zebra and 9340", "zebra9340"] {
        assert_ne!(
            keys(&store, query).first().map(String::as_str),
            Some("ZEBRA-9340"),
            "{query}"
        );
    }
}

#[test]
fn a_last_word_may_be_unfinished_however_often_the_word_is_there() {
    let store = Store::new();
    let often = |word: &str| format!("{word} ").repeat(10_001);
    store.save(P, "first", &often("customer"));
    let found = |query: &str| -> Vec<String> {
        let page = store.agent(P).search(P, query, 0, 9).unwrap();
        page.items.into_iter().map(|hit| hit.memory.key).collect()
    };
    for query in ["cu", "cus", "custo", "about custo"] {
        assert_eq!(found(query), ["first"], "{query}");
    }
    // Nor does one that is there too often hide those that tell more.
    store.save(P, "second", "custard");
    assert!(found("cu").contains(&"second".to_owned()));
}

#[test]
fn of_what_the_last_word_begins_the_rarest_are_found_up_to_ten_thousand_places() {
    for (often, all) in [(8000, true), (8001, false)] {
        let store = Store::new();
        // The most common one, on two levels.
        store.save(P, "a", &"qxa ".repeat(4000));
        store.save(C, "a too", &"qxa ".repeat(often - 4000));
        store.save(P, "b", &"qxb ".repeat(1999));
        store.save(C, "z", "qxz");
        let mut found: Vec<String> = [P, C]
            .into_iter()
            .flat_map(|level| store.agent(C).search(level, "qx", 0, 9).unwrap().items)
            .map(|hit| hit.memory.key)
            .collect();
        found.sort();
        let rare = ["b", "z"].as_slice();
        let expected = if all { &["a", "a too", "b", "z"] } else { rare };
        assert_eq!(found, expected, "{often}");
    }
}

#[test]
fn a_last_word_may_be_unfinished() {
    let store = Store::new();
    store.save(P, "a", "permission granted");
    store.save(P, "b", "pear");
    assert_eq!(keys(&store, "perm"), ["a"]);
    assert_eq!(keys(&store, "granted pe")[0], "a");
    assert_eq!(keys(&store, "pe").len(), 2);
    for finished in ["pe?", "pe ", "\"pe\"", "pe\u{a0}"] {
        assert_eq!(keys(&store, finished).len(), 0, "{finished}");
    }
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
fn a_word_of_the_query_does_not_count_again_as_what_the_last_one_begins() {
    let store = Store::new();
    store.save(P, "a", "applied science");
    store.save(P, "b", "something else");
    let finished = found(&store, P, P, "applied appl?");
    assert_eq!(finished, found(&store, P, P, "applied appl"));
    store.save(P, "c", "an application");
    let scores = |query| -> BTreeMap<String, f64> {
        let hits = found(&store, P, P, query).into_iter();
        hits.map(|hit| (hit.memory.key, hit.score)).collect()
    };
    let (finished, open) = (scores("applied appl?"), scores("applied appl"));
    assert!(finished["c"] < open["c"] && finished["a"].total_cmp(&open["a"]).is_eq());
}

/// All that one typing error makes of a word: a letter too few, twice, another or
/// changed with the next one.
fn mistyped(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut all = Vec::new();
    for at in 0..letters.len() {
        let mut with = |change: &dyn Fn(&mut Vec<char>)| {
            let mut letters = letters.clone();
            change(&mut letters);
            all.push(letters.into_iter().collect());
        };
        with(&|letters| {
            letters.remove(at);
        });
        with(&|letters| letters.insert(at, letters[at]));
        with(&|letters| letters[at] = 'x');
        // In the middle of six letters it leaves no four of them.
        if at + 1 < letters.len() && letters.len() > 6 {
            with(&|letters| letters.swap(at, at + 1));
        }
    }
    all
}

#[test]
fn one_typing_error_in_a_word_of_six_letters_is_forgiven() {
    let store = Store::new();
    store.save(P, "a", "orange kitchen deployment réunion Сергеевич");
    store.save(P, "b", "of mint, fill and gulf");
    let mut tried = 0;
    for word in ["orange", "kitchen", "deployment", "reunion", "сергеевич"] {
        for query in mistyped(word) {
            tried += 1;
            assert_eq!(keys(&store, &format!("{query}?")), ["a"], "{query}");
        }
    }
    assert!(tried > 130, "{tried}");
}

#[test]
fn an_error_in_any_of_several_words_leaves_the_right_one_first() {
    let store = Store::new();
    let words = ["garden", "umbrella", "password", "kitchen"];
    for i in 0..40 {
        store.save(P, &format!("other {i}"), "lorem ipsum dolor sit amet");
    }
    store.save(P, "all", &words.join(" and some "));
    for (number, missing) in words.into_iter().enumerate() {
        let other = words.map(|word| if word == missing { "cloudy" } else { word });
        store.save(P, &format!("some {number}"), &other.join(" and some "));
    }
    for (at, word) in words.into_iter().enumerate() {
        for wrong in mistyped(word) {
            let mut asked = words.map(str::to_owned);
            asked[at] = wrong;
            let asked = format!("{}?", asked.join(" "));
            assert_eq!(keys(&store, &asked)[0], "all", "{asked}");
        }
    }
}

#[test]
fn near_comes_before_far_and_all_before_some() {
    let store = Store::new();
    let filler = "lorem ipsum dolor sit amet consetetur sadipscing elitr";
    store.save(P, "far", &format!("copper {filler} kettle"));
    store.save(P, "near", &format!("{filler} copper kettle"));
    store.save(P, "between", &format!("copper dolor sit kettle {filler}"));
    store.save(P, "some", &format!("copper copper {filler}"));
    assert_eq!(
        keys(&store, "copper kettle?"),
        ["near", "between", "far", "some"]
    );
    // In the other order too.
    assert_eq!(keys(&store, "kettle copper?")[..2], ["near", "between"]);
}

#[test]
fn signs_tell_what_is_otherwise_the_same() {
    let store = Store::new();
    let about = "is a language with a compiler";
    for (key, name) in [
        ("one", "C++"),
        ("two", "C#"),
        ("three", "C"),
        ("four", "F#"),
    ] {
        store.save(P, key, &format!("{name} {about}"));
    }
    assert_eq!(keys(&store, "C++")[0], "one");
    assert_eq!(keys(&store, "C#")[0], "two");
    assert_eq!(keys(&store, "c# compiler?")[0], "two");
    assert_eq!(keys(&store, "the compiler of C++?")[0], "one");
    let store = Store::new();
    store.save(P, "speed", "it reads 3 GB/s");
    store.save(P, "size", "it has 3 GBs");
    store.save(P, "code", "do not run `rm -rf /`");
    store.save(P, "name", "rmrf a'b");
    store.save(P, "state", "status: done");
    assert_eq!(keys(&store, "3 GB/s")[0], "speed");
    assert_eq!(keys(&store, "GB/s"), ["speed"]);
    assert_eq!(keys(&store, "GBs?"), ["size"]);
    assert_eq!(keys(&store, "rm -rf"), ["code"]);
    assert_eq!(keys(&store, "a'b?"), ["name"]);
    assert_eq!(keys(&store, "status: done?"), ["state"]);
}

#[test]
fn composed_and_taken_apart_is_one_and_accents_do_not_matter() {
    let store = Store::new();
    for (key, content) in [
        ("composed", "Le caff\u{e8} est servi"),
        ("apart", "Le caffe\u{300} est servi"),
        ("plain", "LE CAFFE EST SERVI"),
        ("wide", "ｃａｆｆｅ́"),
    ] {
        store.save(P, key, content);
    }
    for query in ["caff\u{e8}?", "caffe\u{300}?", "Caffe?", "CAFFÈ?"] {
        let found: BTreeSet<String> = keys(&store, query).into_iter().collect();
        let all = ["apart", "composed", "plain", "wide"].map(str::to_owned);
        assert_eq!(found, all.into(), "{query}");
    }
    // Vowel signs, voicing marks and syllables are more than accents.
    let store = Store::new();
    store.save(P, "ha", "はし");
    store.save(P, "hindi", "कि");
    store.save(P, "korean", "한국");
    for query in ["ばし", "は\u{3099}し"] {
        let found = found(&store, P, P, query);
        assert!(
            found.len() <= 1 && found.iter().all(|hit| hit.score < 0.5),
            "{query}"
        );
    }
    assert_eq!(keys(&store, "की?"), [""; 0]);
    assert_eq!(keys(&store, "\u{1112}\u{1161}\u{11ab}국"), ["korean"]);
}

#[test]
fn a_script_finds_nothing_that_another_wrote() {
    let store = Store::new();
    for (key, content) in [
        ("chinese", "用户身份"),
        ("japanese", "しりとり"),
        ("korean", "끝말잇기"),
        ("hebrew", "הספר"),
        ("arabic", "الكتاب"),
        ("thai", "ข้าวผัด"),
        ("hindi", "हिन्दी"),
        ("emoji", "🎉👍🏽"),
        ("latin", "libro"),
    ] {
        store.save(P, key, content);
    }
    for (query, key) in [
        ("用户", "chinese"),
        ("户", "chinese"),
        ("りと", "japanese"),
        ("말잇", "korean"),
        ("ספר", "hebrew"),
        ("ושבספר", "hebrew"),
        ("كتاب", "arabic"),
        ("للكتاب", "arabic"),
        ("ข้าว", "thai"),
        ("हिन्दी", "hindi"),
        ("👍", "emoji"),
        ("👍🏿", "emoji"),
        ("🎉", "emoji"),
        ("libro", "latin"),
    ] {
        assert_eq!(keys(&store, query), [key], "{query}");
    }
}

#[test]
fn nothing_but_marks_finds_nothing_and_stop_words_what_has_them() {
    let store = Store::new();
    store.save(P, "marks", "?! … — \" ( 🎉 )");
    store.save(P, "hamlet", "to be or not to be");
    store.save(P, "other", "something else");
    for query in [
        "?!",
        "…",
        "\0",
        "\0\0 \0",
        "\u{200d}\u{fe0f}",
        "\"\"",
        "( )",
        "\u{301}",
    ] {
        assert_eq!(keys(&store, query), [""; 0], "{query:?}");
    }
    assert_eq!(keys(&store, "?!\0 🎉"), ["marks"]);
    assert_eq!(keys(&store, "not"), ["hamlet"]);
    assert_eq!(keys(&store, "to be, or not?"), ["hamlet"]);
    assert_eq!(keys(&store, "be\0something?"), ["other"]);
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
fn a_gram_that_too_many_hold_on_all_levels_together_does_not_count() {
    let store = Store::new();
    let record = |number: usize, level: Level| {
        serde_json::json!({
            "type": "record", "agent": "main", "level": level.name(),
            "id": format!("{number:032x}"), "key": format!("k{number}"), "version": 1,
            "content": "restaurant", "tags": [], "origin": "AGENT", "standing": "trusted",
            "session": "elsewhere", "created_at": at(-100).to_string(),
            "updated_at": at(-100).to_string(),
        })
    };
    let mut file = "{\"type\":\"header\",\"format\":\"remora-export\",\"version\":1}\n".to_owned();
    for number in 0..1000 {
        let level = if number < 600 { P } else { R };
        file.push_str(&format!("{}\n", record(number, level)));
    }
    let options = ImportOptions::default().origin(Origin::User);
    let operator = store.storage.operator(at(200));
    let report = operator.import(&mut std::io::Cursor::new(file), &options, &mut |_| ());
    assert_eq!(report.unwrap().records.imported, 1000);
    let found = |taint, level| {
        let page = store
            .agent(taint)
            .search(level, "restauraant?", 0, 1)
            .unwrap();
        page.items.len()
    };
    assert_eq!((found(R, P), found(R, R), found(P, P)), (1, 1, 1));
    store.save(R, "one too many", "restaurant");
    // For those who see them all. For the others nothing has changed.
    assert_eq!((found(R, P), found(R, R), found(P, P)), (0, 0, 1));
    // The word itself counts, however many hold it.
    let right = store.agent(R).search(R, "restaurant?", 0, 1).unwrap();
    assert_eq!(right.items.len(), 1);
}

/// What the index holds, each posting a line.
fn postings(store: &Store) -> BTreeSet<String> {
    let db = store.by_hand(P);
    let mut all = BTreeSet::new();
    for sql in [
        r#"SELECT 'word ' || term || ' ' || doc || ' ' || col || ' ' || "offset" FROM memory_word_terms"#,
        "SELECT 'gram ' || term || ' ' || doc FROM memory_gram_terms",
        "SELECT 'key ' || words || ' ' || seq FROM memory_key",
    ] {
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        all.extend(rows.map(Result::unwrap));
    }
    all
}

/// Whether the index's own tables have these bytes anywhere.
fn index_bytes(store: &Store, word: &str) -> bool {
    let db = store.by_hand(P);
    ["memory_words_data", "memory_grams_data"]
        .into_iter()
        .any(|table| {
            let mut statement = db.prepare(&format!("SELECT block FROM {table}")).unwrap();
            let blocks = statement
                .query_map([], |row| row.get::<_, Vec<u8>>(0))
                .unwrap();
            blocks.map(Result::unwrap).any(|block| {
                block
                    .windows(word.len())
                    .any(|some| some == word.as_bytes())
            })
        })
        || postings(store).iter().any(|posting| posting.contains(word))
}

#[test]
fn saved_again_or_deleted_nothing_of_the_old_words_is_in_the_index() {
    let store = Store::new();
    for i in 0..200 {
        store.save(
            P,
            &format!("k{i}"),
            &format!("some {i} of the words zzz{i}"),
        );
    }
    let before = postings(&store);
    for (content, key) in [("xylophone 卍字", "Quagga-17"), ("vuvuzela", "x")] {
        store.save(P, key, content);
        let with = postings(&store);
        assert!(before.is_subset(&with) && with.len() > before.len() + 5);
        // Stem, grams and their beginnings, since neighbours share these.
        for word in [
            "xylophon", "xylo", "phon", "hone", "卍", "卍字", "quagga", "quag", "agga",
        ] {
            assert_eq!(index_bytes(&store, word), key == "Quagga-17", "{word}");
        }
        if key == "Quagga-17" {
            store.save(P, key, "other words");
            for word in ["xylo", "ylop", "phon", "hone", "卍", "卍字"] {
                assert!(!index_bytes(&store, word), "{word}");
            }
            assert!(before.is_subset(&postings(&store)));
        }
        store.agent(P).retire(key, false).unwrap();
        // Of the others nothing is touched.
        assert_eq!(postings(&store), before);
        for word in ["xylo", "phon", "卍", "quag", "agga", "vuvu", "uzel"] {
            assert!(!index_bytes(&store, word), "{word}");
        }
    }
}

/// Whether each level's index agrees with its records.
fn agree(store: &Store) -> bool {
    Level::ALL
        .into_iter()
        .all(|level| !store.path(level).exists() || index::agrees(&store.by_hand(level)).unwrap())
}

#[test]
fn an_index_that_was_changed_by_hand_agrees_no_more() {
    let made = || {
        let store = Store::new();
        for i in 0..40 {
            store.save(P, &format!("key {i}"), &format!("apple {i} pears"));
        }
        assert!(agree(&store));
        store
    };
    for change in [
        "INSERT INTO memory_words (rowid, content) VALUES (9999, 'pear')",
        "INSERT INTO memory_words (rowid, content) VALUES (9999, '')",
        "INSERT INTO memory_words (memory_words, rowid, content) VALUES ('delete', 32 * 2 + 5, 'pear')",
        "INSERT INTO memory_words (memory_words) VALUES ('delete-all')",
        "INSERT INTO memory_grams (rowid, grams) VALUES (9999, 'pear')",
        "INSERT INTO memory_grams (rowid, grams) SELECT min(doc), 'qqqq' FROM memory_gram_terms",
        "INSERT INTO memory_grams (memory_grams) VALUES ('delete-all')",
        "INSERT INTO memory_key VALUES ('pear', 1)",
        "DELETE FROM memory_key WHERE seq = 7",
        "UPDATE memory_key SET seq = 99 WHERE seq = 7",
        "UPDATE memory_key SET words = 'other' WHERE seq = 7",
        // A term's place and the figures of all.
        "UPDATE memory_words_data SET block = x'2950783c00' WHERE id = 1",
        // Each of these figures alone: records, then terms in the key, content and tags.
        "UPDATE memory_words_data SET block = x'29507800' WHERE id = 1",
        "UPDATE memory_words_data SET block = x'28517800' WHERE id = 1",
        "UPDATE memory_words_data SET block = x'28507900' WHERE id = 1",
        "UPDATE memory_words_data SET block = x'28507801' WHERE id = 1",
        "UPDATE memory_grams_data
         SET block = CAST(x'29' || substr(block, 2) AS BLOB) WHERE id = 1",
        "UPDATE memory_grams_data
         SET block = CAST(substr(block, 1, length(block) - 1) || x'01' AS BLOB) WHERE id = 1",
        // A record that nobody indexed, or whose words are others.
        "UPDATE record SET content = 'apple 3 pear plum' WHERE seq = 4",
        "UPDATE record SET content = 'apple pears 3' WHERE seq = 4",
        "UPDATE record SET tags = '[\"pear\"]' WHERE seq = 4",
        "UPDATE record SET key = 'key-3' WHERE seq = 4; UPDATE record SET key = 'key 3 3' WHERE seq = 4",
        "DELETE FROM record WHERE seq = 4",
    ] {
        let store = made();
        let db = store.by_hand(P);
        db.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        db.execute_batch(change).unwrap();
        drop(db);
        assert!(
            !matches!(index::agrees(&store.by_hand(P)), Ok(true)),
            "{change}"
        );
    }
}

/// What is done to an index.
#[derive(Clone, Debug)]
enum Work {
    Step(Step),
    Prune(i64),
    Import,
    Rebuild,
    Compact,
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        12 => step().prop_map(Work::Step),
        1 => (0..100_i64).prop_map(Work::Prune),
        1 => Just(Work::Import),
        1 => Just(Work::Rebuild),
        1 => Just(Work::Compact),
    ]
}

fn exported(store: &Store) -> Vec<u8> {
    let mut text = Vec::new();
    let operator = store.storage.operator(at(100));
    operator.export(None, None, &mut text, &mut |_| ()).unwrap();
    text
}

fn import(store: &Store, text: Vec<u8>) {
    let options = ImportOptions::default().origin(Origin::User);
    let operator = store.storage.operator(at(200));
    operator
        .import(&mut std::io::Cursor::new(text), &options, &mut |_| ())
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_the_index_agrees_and_the_answer_is_that_of_a_new_one(
        works in prop::collection::vec(work(), 1..24),
        query in question(),
    ) {
        let store = Store::new();
        let (mut earlier, mut known) = (exported(&store), Model::new());
        for work in works {
            match work {
                Work::Step(step) => take(&store, &step, &mut known),
                Work::Prune(day) => {
                    // What is gone takes no other's place.
                    known.clear();
                    let operator = store.storage.operator(at(day * 24 * 60 * 60));
                    operator.prune(None, &Prune::default(), &mut |_| ()).unwrap();
                }
                Work::Import => {
                    known.clear();
                    let now = exported(&store);
                    import(&store, std::mem::replace(&mut earlier, now));
                }
                Work::Rebuild | Work::Compact => {
                    for level in Level::ALL.into_iter().filter(|level| store.path(*level).exists()) {
                        let db = store.by_hand(level);
                        match work {
                            Work::Rebuild => index::rebuild(&db, |_| ()).unwrap(),
                            _ => index::compact(&db).unwrap(),
                        }
                    }
                }
            }
            prop_assert!(agree(&store));
        }
        let before: Vec<_> = Level::ALL.map(|taint| everything(&store, taint, &query)).into();
        for remake in [index::compact, |db: &Connection| index::rebuild(db, |_| ())] {
            for level in Level::ALL.into_iter().filter(|level| store.path(*level).exists()) {
                remake(&store.by_hand(level)).unwrap();
            }
            prop_assert!(agree(&store));
            let after: Vec<_> = Level::ALL.map(|taint| everything(&store, taint, &query)).into();
            prop_assert_eq!(&after, &before);
        }
    }

    #[test]
    fn in_which_order_they_were_saved_makes_no_difference(
        contents in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 1..6), 1..12)
            .prop_shuffle(),
        order in any::<prop::sample::Index>(),
        query in question(),
    ) {
        let keys: Vec<String> = (0..contents.len()).map(|i| format!("k{i}")).collect();
        let (one, other) = (Store::new(), Store::new());
        for (key, words) in keys.iter().zip(&contents) {
            one.save(P, key, &text(words));
        }
        let first = order.index(keys.len());
        for at in (first..keys.len()).rev().chain(0..first) {
            // Not with their last words at once.
            other.save(P, &keys[at], "the pears");
            other.save(P, &keys[at], &text(&contents[at]));
        }
        prop_assert_eq!(everything(&one, P, &query), everything(&other, P, &query));
    }
}

#[test]
fn equals_are_in_the_order_of_the_bytes_of_their_keys() {
    let store = Store::new();
    let mut names = [
        "b", "B", "ä", "a", "z", "é", "Z", "я", "用", "a2", "🎉", "a-2", "10", "9",
    ];
    for name in names {
        store.save(P, name, "the same apple");
    }
    names.sort_unstable();
    let hits = found(&store, P, P, "apple?");
    let lengths: BTreeMap<u64, Vec<&str>> = hits.iter().fold(BTreeMap::new(), |mut all, hit| {
        all.entry(hit.score.to_bits())
            .or_default()
            .push(&hit.memory.key);
        all
    });
    // Of those of one length, which the key counts to, all score the same.
    assert!(lengths.len() <= 2, "{lengths:?}");
    for same in lengths.values() {
        let expected: Vec<&str> = names
            .into_iter()
            .filter(|name| same.contains(name))
            .collect();
        assert_eq!(*same, expected);
    }
    assert_eq!(hits.len(), names.len());
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
    super::super::search::postings::register(&db, || false).unwrap();
    let sources = [
        include_str!("../search/index.rs"),
        include_str!("../search/mod.rs"),
        include_str!("../record.rs"),
        include_str!("../edge.rs"),
    ];
    // Those of the one file that search, and of the other all.
    assert_eq!(sources[0].matches("\npub(super) fn ").count(), 7);
    assert_eq!(sources[0].matches("prepare_cached").count(), 9);
    assert_eq!(sources[1].matches("prepare").count(), 1);
    for sql in [
        "SELECT posting_places(memory_words) FROM memory_words WHERE memory_words MATCH ?1
         LIMIT 1",
        "SELECT key, id FROM record\n             WHERE seq = ?1 AND (expires_at IS NULL OR expires_at > ?2) AND standing = 'trusted' AND superseded_at IS NULL AND deleted_at IS NULL",
        "SELECT old_id, new_id, old_level, at, session, seal FROM edge WHERE old_id = ?1",
        "SELECT rowid FROM memory_grams WHERE memory_grams MATCH ?1",
        "SELECT doc FROM memory_vocabulary WHERE term = ?1",
        "SELECT term, cnt FROM memory_vocabulary WHERE term > ?1 AND term < ?2 LIMIT ?3",
        "SELECT seq FROM memory_key WHERE words = ?1 ORDER BY seq",
        "SELECT block FROM memory_words_data WHERE id = 1",
    ] {
        assert!(
            sources
                .iter()
                .any(|source| source.contains(sql.split(" AND standing").next().unwrap())),
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
    Tagged(usize, usize, Vec<usize>),
    Expiring(usize, usize, Vec<usize>),
    /// In place of what stands under another key, on this level or a lower one.
    Instead(usize, usize, Vec<usize>, usize, usize),
    Delete(usize, usize),
}

const WORDS: [&str; 10] = [
    "apple",
    "apples",
    "pears",
    "GB/s",
    "gb",
    "s",
    "plum-tree",
    "用户身",
    "the",
    "applied",
];

const KEYS: [&str; 5] = ["0 key", "plum tree", "apple", "用户", "the gb"];

fn step() -> impl Strategy<Value = Step> {
    let words = || prop::collection::vec(0..WORDS.len(), 1..6);
    let key = || 0..KEYS.len();
    prop_oneof![
        6 => (0..4_usize, key(), words()).prop_map(|(l, k, w)| Step::Save(l, k, w)),
        2 => (0..4_usize, key(), words()).prop_map(|(l, k, w)| Step::Tagged(l, k, w)),
        1 => (0..4_usize, key(), words()).prop_map(|(l, k, w)| Step::Expiring(l, k, w)),
        1 => (0..4_usize, key(), words(), 0..4_usize, key())
            .prop_map(|(l, k, w, ol, ok)| Step::Instead(l, k, w, ol.min(l), ok)),
        2 => (0..4_usize, key()).prop_map(|(l, k)| Step::Delete(l, k)),
    ]
}

fn text(words: &[usize]) -> String {
    words
        .iter()
        .map(|word| WORDS[*word])
        .collect::<Vec<_>>()
        .join(" ")
}

/// A query, also with something in quotes, and with a last word that is finished or
/// not.
fn question() -> impl Strategy<Value = String> {
    let words = || prop::collection::vec(0..WORDS.len(), 1..5);
    let quoted = prop::collection::vec(0..WORDS.len(), 1..3);
    let end = prop::sample::select(vec!["?", "", " appl", " p", " th", " plum tree", " key"]);
    (words(), prop::option::of(quoted), end).prop_map(|(words, quoted, end)| {
        let quoted = quoted.map(|quoted| format!(" “{}”", text(&quoted)));
        format!("{}{}{end}", text(&words), quoted.unwrap_or_default())
    })
}

/// An indexed record.
#[derive(Clone, Debug, Default)]
struct Known {
    id: String,
    content: String,
    tags: Vec<String>,
    expiring: bool,
    /// The levels from which something took its place.
    edges: BTreeSet<usize>,
}

/// By level and key.
type Model = BTreeMap<(usize, String), Known>;

fn apply(store: &Store, steps: &[Step]) -> Model {
    let mut model = Model::new();
    for step in steps {
        take(store, step, &mut model);
    }
    model
}

fn take(store: &Store, step: &Step, model: &mut Model) {
    match step {
        Step::Save(level, key, words)
        | Step::Tagged(level, key, words)
        | Step::Expiring(level, key, words)
        | Step::Instead(level, key, words, ..) => {
            let name = (*level, KEYS[*key].to_owned());
            let expiring = matches!(step, Step::Expiring(..));
            let tags: BTreeSet<String> = match step {
                Step::Tagged(..) => words.iter().map(|w| WORDS[*w].to_lowercase()).collect(),
                _ => BTreeSet::new(),
            };
            let old = match step {
                Step::Instead(.., level, key) => Some((*level, KEYS[*key].to_owned())),
                _ => None,
            };
            let visible = |known: &Known| known.edges.iter().all(|edge| *edge > *level);
            let old = old.filter(|old| *old != name && model.get(old).is_some_and(visible));
            let draft = Draft {
                expires_at: expiring.then(|| at(10)),
                tags: tags.iter().cloned().collect(),
                supersedes: old.iter().map(|old| model[old].id.clone()).collect(),
                ..draft(KEYS[*key], &text(words))
            };
            let receipt = store.agent(Level::ALL[*level]).put(&draft).unwrap();
            let known = model.entry(name).or_default();
            if known.id != receipt.id {
                *known = Known {
                    id: receipt.id,
                    content: text(words),
                    tags: draft.tags,
                    expiring,
                    edges: BTreeSet::new(),
                };
            }
            match old {
                Some(old) if old.0 == *level => drop(model.remove(&old)),
                Some(old) => {
                    model.get_mut(&old).unwrap().edges.insert(*level);
                }
                None => {}
            }
        }
        Step::Delete(level, key) => {
            let key = KEYS[*key].to_owned();
            store.agent(Level::ALL[*level]).retire(&key, false).unwrap();
            model.remove(&(*level, key));
        }
    }
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
    columns: Vec<Vec<String>>,
    grams: BTreeMap<String, u32>,
    shown: bool,
}

impl Document {
    fn new(name: &(usize, String), known: &Known, taint: usize) -> Self {
        let mut grams = BTreeMap::new();
        let tags = known.tags.join(" | ");
        let columns = [name.1.as_str(), &known.content, &tags].map(|text| {
            terms(text)
                .into_iter()
                .map(|(term, of_it)| {
                    // Those of a stop word are not indexed.
                    for gram in of_it.into_iter().filter(|_| term != "the") {
                        *grams.entry(gram).or_insert(0_u32) += 1;
                    }
                    term
                })
                .collect()
        });
        Self {
            name: name.clone(),
            columns: columns.into(),
            grams,
            shown: !known.expiring && known.edges.iter().all(|edge| *edge > taint),
        }
    }

    fn length(&self) -> f64 {
        self.columns.iter().map(Vec::len).sum::<usize>() as f64
    }

    fn often(&self, is: impl Fn(&str) -> bool) -> f64 {
        let terms = self.weighed();
        terms
            .map(|(column, count)| count * column.iter().filter(|term| is(term)).count() as f64)
            .sum()
    }

    fn often_in_a_row(&self, phrase: &[String]) -> f64 {
        let times = |column: &[String]| {
            column
                .windows(phrase.len())
                .filter(|some| *some == phrase)
                .count()
        };
        self.weighed()
            .map(|(column, count)| count * times(column) as f64)
            .sum()
    }

    /// Each column, and what a word in it counts as: in the key, which is the first, as
    /// two.
    fn weighed(&self) -> impl Iterator<Item = (&Vec<String>, f64)> {
        self.columns.iter().zip([2.0, 1.0, 1.0])
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

/// What a record scores without its key, and how many words long that is if the query
/// names it.
type Score = (f64, usize);

/// The score as it is defined, over the records of all visible levels as one, from
/// their texts alone.
fn oracle(model: &Model, taint: usize, query: &str) -> BTreeMap<(usize, String), Score> {
    let documents: Vec<Document> = model
        .iter()
        .filter(|((level, _), _)| *level <= taint)
        .map(|(name, known)| Document::new(name, known, taint))
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
        let entry = scores.entry(document.name.clone()).or_default();
        entry.0 += more;
        entry.1.extend(word);
    };
    // What each holds so often, as one word of that weight.
    let as_word = |add: &mut dyn FnMut(&Document, f64, Option<usize>),
                   weight: f64,
                   word: Option<usize>,
                   often: &dyn Fn(&Document) -> f64| {
        let holding = documents.iter().filter(|d| often(d) > 0.0).count();
        for document in documents.iter().filter(|d| often(d) > 0.0) {
            let more = weight * rarity(holding) * saturated(document, often(document), 0.4, 0.7);
            add(document, more, word);
        }
        holding
    };
    let all: Vec<Token> = tokens(query).collect();
    let stop = |token: &Token| token.text == "the";
    let nothing_else = all.iter().all(stop);
    let (mut words, mut seen, mut seen_grams) = (0, BTreeSet::new(), BTreeSet::new());
    let (mut last_new, mut before): (Option<String>, Option<String>) = (None, None);
    let mut known = BTreeSet::new();
    for token in all.iter().filter(|token| nothing_else || !stop(token)) {
        let mut of_token = Vec::new();
        Analyser::new().words(token, |term| of_token.push(term.to_owned()));
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
            if !known.insert(term.clone()) {
                continue;
            }
            let weight = match (is_word, term.chars().count()) {
                (true, _) => 1.0,
                (false, 1) => 0.8,
                (false, _) => 0.4,
            };
            let often = |d: &Document| d.often(|other| other == term);
            let holding = as_word(&mut add, weight, Some(words), &often);
            if !is_word {
                continue;
            }
            for gram in terms(&token.text).into_iter().flat_map(|(_, grams)| grams) {
                let holds = |d: &&Document| d.grams.contains_key(&gram);
                let number = documents.iter().filter(holds).count();
                if !seen_grams.insert(gram.clone()) || number == 0 {
                    continue;
                }
                let rare = (holding.max(1) as f64).powf(-0.3);
                let weight = 0.4 * (1.0 + 0.25 * rare) * (rarity(number) / 5.0).powf(0.4);
                for document in documents.iter().filter(holds) {
                    let often = f64::from(document.grams[&gram]).min(2.0);
                    let saturated = saturated(document, often, 0.9, 0.1);
                    add(document, weight * rarity(number) * saturated, None);
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
    for quoted in query.split('“').skip(1) {
        let phrase = terms(quoted.split('”').next().unwrap()).into_iter();
        let phrase: Vec<String> = phrase.map(|(term, _)| term).collect();
        if phrase.len() > 1 {
            as_word(&mut add, 2.0, None, &|d| d.often_in_a_row(&phrase));
        }
    }
    let unfinished = |last: &&Token| {
        last.kind == Kind::Word && last.text.len() > 1 && query.to_lowercase().ends_with(&last.text)
    };
    let says_nothing = |last: &&Token| stop(last) && !nothing_else;
    let last = all.last().filter(unfinished);
    if let Some(Token { text, .. }) = last.filter(|last| !says_nothing(last)) {
        let begins = |term: &str| term.starts_with(text) && term != text && !known.contains(term);
        as_word(&mut add, 0.4, None, &|d| d.often(begins));
    }
    let asked: Vec<&str> = all.iter().map(|token| token.text.as_str()).collect();
    let named = |key: &str| {
        let key: Vec<String> = tokens(key).map(|token| token.text).collect();
        let named = asked.windows(key.len()).any(|some| *some == key);
        if named { key.len() } else { 0 }
    };
    documents
        .iter()
        .filter(|d| d.shown)
        .filter_map(|d| {
            let (score, found) = scores.get(&d.name).cloned().unwrap_or_default();
            let score = score * (1.0 + 0.2 * found.len() as f64 / words as f64);
            let named = named(&d.name.1);
            (score > 0.0 || named > 0).then(|| (d.name.clone(), (score, named)))
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

fn rank(level: Level) -> usize {
    let found = Level::ALL.iter().position(|other| *other == level);
    found.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn scores_are_those_of_one_index_over_what_the_session_sees(
        steps in prop::collection::vec(step(), 1..20),
        query in question(),
        first in 1..6_usize,
    ) {
        let store = Store::new();
        let model = apply(&store, &steps);
        for (taint, own) in Level::ALL.into_iter().enumerate() {
            let expected = oracle(&model, taint, &query);
            let found = everything(&store, own, &query);
            prop_assert_eq!(found.len(), expected.len(), "{:?} {:?}", found, expected);
            let scores: Vec<(f64, Score)> = found
                .iter()
                .map(|(level, key, bits)| {
                    (f64::from_bits(*bits), expected[&(rank(*level), key.clone())])
                })
                .collect();
            // Each word of a key that is named adds the same, which is more than
            // anything else does.
            let most = scores.iter().map(|(_, (score, _))| *score).fold(0.0, f64::max);
            let named = scores.iter().find(|(_, (_, named))| *named > 0);
            let on_top = named.map(|(score, (wanted, named))| (score - wanted) / *named as f64);
            prop_assert!(on_top.is_none_or(|more| more > most));
            for (score, (wanted, named)) in &scores {
                let wanted = wanted + on_top.unwrap_or(0.0) * *named as f64;
                prop_assert!((score - wanted).abs() < 1e-9, "{} {}", score, wanted);
            }
            // On each level the first are those of all, and in their order.
            for level in Level::readable_at(own) {
                let all: Vec<_> = found.iter().filter(|(other, ..)| *other == level).collect();
                prop_assert!(all.is_sorted_by(|(_, a, x), (_, b, y)| {
                    let (x, y) = (f64::from_bits(*x), f64::from_bits(*y));
                    x > y || (x.total_cmp(&y).is_eq() && a < b)
                }), "{:?}", all);
                let page = store.later(own, 20).search(level, &query, 0, first).unwrap();
                prop_assert_eq!(page.more, all.len() > first);
                let page: Vec<_> = page
                    .items
                    .into_iter()
                    .map(|hit| (level, hit.memory.key, hit.score.to_bits()))
                    .collect();
                let expected: Vec<_> = all.into_iter().take(first).collect();
                prop_assert_eq!(page.iter().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_search_is_to_the_bit_that_of_a_store_without_the_files_above(
        steps in prop::collection::vec(step(), 1..16),
        query in question(),
    ) {
        let whole = Store::new();
        apply(&whole, &steps);
        for (rank, taint) in Level::ALL.into_iter().enumerate() {
            let without = Store::new();
            let low: Vec<Step> = steps.iter().filter(|step| match step {
                Step::Save(level, ..) | Step::Tagged(level, ..) | Step::Expiring(level, ..)
                | Step::Instead(level, ..) | Step::Delete(level, _) => *level <= rank,
            }).cloned().collect();
            apply(&without, &low);
            prop_assert_eq!(
                everything(&whole, taint, &query),
                everything(&without, taint, &query)
            );
        }
        // And taking the files away changes nothing for those below.
        let before: Vec<_> = Level::ALL.map(|taint| everything(&whole, taint, &query)).into();
        for (rank, level) in Level::ALL.into_iter().enumerate().rev().take(3) {
            for name in ["", "-wal", "-shm"] {
                let path = whole.root().join("agents/main").join(format!("{}.db{name}", level.file_stem()));
                drop(std::fs::remove_file(path));
            }
            prop_assert_eq!(&everything(&whole, Level::ALL[rank - 1], &query), &before[rank - 1]);
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
