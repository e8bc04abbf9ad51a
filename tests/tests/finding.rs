//! What a search finds and what comes first, through the component. How often it is right on
//! real questions, the benchmark `search` tells; what went wrong elsewhere is in
//! [`field_cases`](crate::field_cases).

use remora_host::{Level, Session};
use remora_tests::{Calls, Sandbox};
use serde_json::json;

fn with(memories: &[(&str, &str)]) -> (Sandbox, Session) {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    for (key, content) in memories {
        session.save(key, content);
    }
    (sandbox, session)
}

#[test]
fn more_and_rarer_words_of_a_question_come_first() {
    let (_sandbox, session) = with(&[
        ("a", "the shop opens at nine"),
        ("b", "the shop opens at nine, the bakery at six"),
        ("c", "the shop"),
        ("d", "something else"),
    ]);
    let found = session.search("When does the bakery open, and the shop?");
    assert_eq!(found[0], "b");
    assert_eq!(found.len(), 3);
    assert_eq!(session.search("bakery shop")[0], "b");
}

#[test]
fn words_in_keys_and_tags_are_found_too() {
    let (_sandbox, session) = with(&[("project/heliotrope", "words"), ("other", "else")]);
    session.save_tagged("tagged", "more words", &["marmalade", "two words"]);
    assert_eq!(session.search("heliotrope"), ["project/heliotrope"]);
    assert_eq!(session.search("where is marmalade"), ["tagged"]);
}

#[test]
fn a_key_is_found_first_alone_and_within_a_question() {
    let (_sandbox, session) = with(&[
        ("deploy/steps", "First the tests."),
        ("a", "deploy steps, deploy steps and deploy steps"),
        ("b", "steps to deploy"),
        ("steps", "Wash the stairs."),
    ]);
    for query in [
        "deploy/steps",
        "Deploy steps",
        "deploy_steps",
        "what are the deploy steps for staging?",
    ] {
        assert_eq!(session.search(query)[0], "deploy/steps", "{query}");
    }
    assert_eq!(session.search("steps")[0], "steps");
}

#[test]
fn other_forms_of_an_english_word_are_found() {
    let (_sandbox, session) = with(&[
        ("a", "We deployed it on Monday."),
        ("b", "Deploym deployi deploym"),
        ("c", "else"),
    ]);
    for query in ["deploy", "deploys", "deploying", "DEPLOYED"] {
        // What only looks like it comes behind.
        assert_eq!(session.search(query), ["a", "b"], "{query}");
    }
}

#[test]
fn typing_errors_and_an_unfinished_last_word_are_forgiven() {
    let (_sandbox, session) = with(&[
        ("a", "The heliotrope needs water."),
        ("b", "The marmalade is eaten."),
        ("c", "Rindfleischetikettierung"),
    ]);
    for query in [
        "helitrope",
        "heilotrope",
        "heliotropes",
        "heliotroqe",
        "he",
        "when did the helio",
    ] {
        assert_eq!(session.search(query), ["a"], "{query}");
    }
    // Of a very short word nothing is left to tell by.
    session.save("short", "plum");
    assert!(session.search("plom").is_empty());
    // A part of a compound.
    assert_eq!(session.search("Etikettierung"), ["c"]);
    // With something behind it a word is finished.
    assert!(session.search("he ").is_empty());
    // What is right comes before what is nearly so.
    session.save("d", "The heliotrape needs water.");
    assert_eq!(session.search("heliotrope"), ["a", "d"]);
    assert_eq!(session.search("heliotrape"), ["d", "a"]);
}

#[test]
fn marks_prefixes_and_blanks_that_people_leave_out_make_no_difference() {
    let (_sandbox, session) = with(&[
        ("hebrew", "שָׁלוֹם עוֹלָם"),
        ("arabic", "مَرْحَبًا بِالْعَالَم"),
        ("greek", "άνθρωπος"),
        ("russian", "ёлка стоит"),
        ("thai", "สวัสดีชาวโลก"),
        ("japanese", "今日はしりとりをした"),
        ("korean", "오늘 게임을 했다"),
        ("chinese", "检查用户身份"),
        ("symbols", "Prefers C++ 👍"),
    ]);
    for (key, queries) in [
        ("hebrew", ["שלום", "בעולם"]),
        ("arabic", ["مرحبا", "العالم"]),
        ("greek", ["ΑΝΘΡΩΠΟΣ", "ανθρωπος"]),
        ("russian", ["елка", "ЁЛКА"]),
        ("thai", ["สวัสดี", "ชาว"]),
        ("japanese", ["しり", "今日"]),
        ("korean", ["게임", "오늘"]),
        ("chinese", ["用户", "身份"]),
        ("symbols", ["C++", "👍🏽"]),
    ] {
        for query in queries {
            assert_eq!(session.search(query), [key], "{query}");
        }
    }
}

#[test]
fn a_key_is_found_in_a_question_of_64_words_and_no_longer() {
    let name = "one two three four five six seven eight";
    let (_sandbox, session) = with(&[
        ("one/two/three/four/five/six/seven/eight", "words"),
        ("else", &format!("{name} {name} {name} filler")),
    ]);
    let ask = |words: usize| format!("{name} {}", "filler ".repeat(words - 8));
    assert!(session.search(&ask(64))[0].starts_with("one/"));
    assert_eq!(session.search(&ask(65))[0], "else");
}

#[test]
fn quotes_prefer_words_side_by_side_and_exclude_nothing() {
    let (_sandbox, session) = with(&[
        (
            "a",
            "red wine in a house, a house in red, and wine and red, near the red house wine",
        ),
        (
            "b",
            "the house was blue and had wine, bread, cheese and a door that was red",
        ),
        (
            "c",
            "a wine that came in a box from the house whose door was red",
        ),
        (
            "d",
            "wine, and at the end of the road, which is long, house, red",
        ),
    ]);
    for quotes in [
        "\"wine bread\"",
        "“wine bread”",
        "«wine bread»",
        "„wine bread“",
    ] {
        let found = session.search(quotes);
        assert_eq!((found[0].as_str(), found.len()), ("b", 4), "{quotes}");
    }
    for (phrase, first) in [("house red", "d"), ("house wine", "a"), ("in a box", "c")] {
        assert_eq!(session.search(&format!("\"{phrase}\""))[0], first);
    }
    // Which one comes first without them depends on other things.
    assert_ne!(session.search("house red")[0], "d");
}

#[test]
fn words_that_say_nothing_count_only_among_themselves() {
    let (_sandbox, session) = with(&[
        ("a", "what is it and who are they"),
        ("b", "the heliotrope"),
    ]);
    assert_eq!(session.search("who is the heliotrope"), ["b"]);
    assert_eq!(session.search("what is it"), ["a"]);
}

#[test]
fn a_score_is_above_zero_and_follows_from_what_the_session_sees() {
    let (sandbox, session) = with(&[("a", "heliotrope"), ("b", "heliotrope and more")]);
    let scores = |session: &Session| -> Vec<f64> {
        let answer = session.ask("memory_search", json!({ "query": "heliotrope" }));
        let results = answer["results"].as_array().expect("results").iter();
        results
            .map(|hit| hit["score"].as_f64().expect("a score"))
            .collect()
    };
    let before = scores(&session);
    assert!(before[0] > before[1] && before[1] > 0.0, "{before:?}");
    let high = sandbox.at(Level::Restricted);
    for i in 0..5 {
        high.save(&format!("k{i}"), "heliotrope");
    }
    assert_eq!(scores(&session), before);
    assert_ne!(scores(&high)[..2], before[..]);
}
