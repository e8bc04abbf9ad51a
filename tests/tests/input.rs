//! Arguments that are wrong: a precise error or the documented reading, never a
//! panic, and nothing stored.

use remora_host::Level;
use remora_tests::{Calls, Sandbox};
use serde_json::{Value, json};

/// The code of an error whose message has all of `words` in it.
fn refused(sandbox: &Sandbox, tool: &str, arguments: &str, words: &[&str]) {
    let error = sandbox
        .at(Level::Public)
        .raw(tool, arguments)
        .expect_err(&format!("{tool} {arguments} answered"));
    for word in words {
        assert!(
            error.code == *word || error.message.contains(word),
            "{tool} {arguments}: {error:?} lacks {word}"
        );
    }
}

#[test]
fn what_is_missing_null_or_of_another_type_is_named() {
    let sandbox = Sandbox::new();
    for (tool, arguments, words) in [
        (
            "memory_save",
            "",
            &["invalid_argument", "key is missing"][..],
        ),
        ("memory_save", "{}", &["invalid_argument", "key is missing"]),
        (
            "memory_save",
            r#"{"key":"k"}"#,
            &["invalid_argument", "content is missing"],
        ),
        (
            "memory_save",
            r#"{"key":null,"content":"c"}"#,
            &["invalid_argument", "key is null", "a text"],
        ),
        (
            "memory_save",
            r#"{"key":7,"content":"c"}"#,
            &["key is the number 7"],
        ),
        (
            "memory_save",
            r#"{"key":"k","content":{"a":1}}"#,
            &["content is an object"],
        ),
        (
            "memory_save",
            r#"{"key":"k","content":["c"]}"#,
            &["content is an array"],
        ),
        (
            "memory_save",
            r#"{"key":"k","content":"c","tags":7}"#,
            &["tags is the number 7"],
        ),
        (
            "memory_save",
            r#"{"key":"k","content":"c","tags":[7]}"#,
            &["tags[0] is the number 7"],
        ),
        (
            "memory_save",
            r#"{"key":"k","content":"c","tags":"a, b"}"#,
            &["not a JSON array"],
        ),
        (
            "memory_save",
            r#"{"key":"k","content":"c","colour":"red"}"#,
            &["no argument \"colour\""],
        ),
        (
            "memory_get",
            "[]",
            &["invalid_argument", "an array", "one JSON object"],
        ),
        ("memory_get", "null", &["invalid_argument", "null"]),
        ("memory_get", "7", &["invalid_argument"]),
        ("memory_get", r#""k""#, &["invalid_argument"]),
        (
            "memory_search",
            r#"{"query":"q","max_results":"5"}"#,
            &["max_results", "without quotes"],
        ),
        (
            "memory_search",
            r#"{"query":"q","max_results":0}"#,
            &["max_results is 0", "100"],
        ),
        (
            "memory_search",
            r#"{"query":"q","max_results":101}"#,
            &["max_results is 101", "100"],
        ),
        (
            "memory_search",
            r#"{"query":"q","max_results":-1}"#,
            &["max_results is -1"],
        ),
        (
            "memory_search",
            r#"{"query":"q","max_results":1.5}"#,
            &["max_results is 1.5"],
        ),
        (
            "memory_search",
            r#"{"query":"q","max_results":1e300}"#,
            &["max_results"],
        ),
        ("memory_search", r#"{"query":"  "}"#, &["query is blank"]),
        ("memory_list", r#"{"limit":201}"#, &["limit is 201", "200"]),
        (
            "memory_list",
            r#"{"match":"some"}"#,
            &["match is \"some\"", "any", "all"],
        ),
        (
            "memory_list",
            r#"{"tag":"a","tags":["b"]}"#,
            &["tag and tags are both given"],
        ),
        ("memory_list", r#"{"cursor":"nonsense!"}"#, &["cursor"]),
        (
            "memory_delete",
            r#"{"key":"k","hide_lower":"true"}"#,
            &["hide_lower", "without quotes"],
        ),
        (
            "memory_status",
            r#"{"verbose":true}"#,
            &["no argument \"verbose\""],
        ),
        ("memory_forget", "{}", &["unknown_tool", "memory_delete"]),
        ("", "{}", &["unknown_tool"]),
    ] {
        refused(&sandbox, tool, arguments, words);
    }
    assert!(sandbox.at(Level::Public).list(json!({})).is_empty());
}

#[test]
fn what_is_no_json_is_refused() {
    let sandbox = Sandbox::new();
    let deep = format!("{{\"key\":{}", "[".repeat(200_000));
    for arguments in [
        "{",
        "}",
        "{\"key\":\"k\"",
        "{\"key\":\"k\"} {}",
        "{'key':'k'}",
        "{\"key\":\"\\ud800\"}",
        "{\"key\":\"\\udc00\\ud800\"}",
        "{\"key\":\"a\nb\"}",
        "\u{0}",
        "\u{feff}{}",
        "{\"key\":NaN}",
        &deep,
    ] {
        refused(&sandbox, "memory_get", arguments, &["invalid_argument"]);
    }
}

#[test]
fn the_documented_readings() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    // A JSON array as a text is the array; an optional null is nothing; 5.0 is 5.
    session.ask(
        "memory_save",
        json!({ "key": "k", "content": "c", "tags": r#"["b","a"]"#, "source": null }),
    );
    let found = session.ask("memory_get", json!({ "key": "k" }));
    assert_eq!(found["tags"], json!(["a", "b"]));
    assert_eq!(found["source"], Value::Null);
    let answer = session.raw("memory_search", r#"{"query":"c","max_results":5.0}"#);
    assert!(answer.is_ok(), "{answer:?}");
    session.ask(
        "memory_list",
        json!({ "tag": null, "tags": null, "match": null, "cursor": null, "limit": null }),
    );
    // Nothing at all is an empty object.
    session.raw("memory_status", "").expect("an answer");
    session.raw("memory_list", "  \n").expect("an answer");
    // A key is trimmed and composed; its case is kept.
    session.save(" Cafe\u{301} ", "au lait");
    assert_eq!(session.get("Caf\u{e9}").as_deref(), Some("au lait"));
    assert_eq!(session.get("caf\u{e9}"), None);
}

#[test]
fn every_limit_is_named_and_nothing_is_cut() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let tags = |count: usize| -> Vec<String> { (0..count).map(|i| format!("t{i}")).collect() };
    let at_the_limit = json!({
        "key": "k".repeat(256),
        "content": "c".repeat(262_144),
        "tags": tags(31).into_iter().chain(["語".repeat(64)]).collect::<Vec<_>>(),
        "source": "s".repeat(1024),
    });
    session.ask("memory_save", at_the_limit.clone());
    let found = session.ask("memory_get", json!({ "key": "k".repeat(256) }));
    assert_eq!(found["content"], at_the_limit["content"]);
    assert_eq!(found["tags"].as_array().map(Vec::len), Some(32));
    for (argument, value, limit) in [
        ("key", json!("k".repeat(257)), "256"),
        ("content", json!("c".repeat(262_145)), "262144"),
        ("tags", json!(tags(33)), "32"),
        ("tags", json!(["語".repeat(65)]), "64"),
        ("source", json!("s".repeat(1025)), "1024"),
    ] {
        let mut arguments = json!({ "key": "new", "content": "c" });
        arguments[argument] = value;
        refused(
            &sandbox,
            "memory_save",
            &arguments.to_string(),
            &["too_large", limit],
        );
    }
    assert_eq!(session.list(json!({})).len(), 1);
}

#[test]
fn content_is_kept_byte_for_byte() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    for (i, content) in [
        "a\u{0}b",
        "\u{feff}bom",
        "line\r\nline\n",
        "  blanks around  ",
        "e\u{301} is not \u{e9}",
        r#"{"json": "as text"}"#,
        "[\"a\",\"b\"]",
        "\u{202e}\u{200b}\u{e0041}",
        "👩‍👩‍👧 می‌خواهم",
        "\u{10ffff}\u{1}\u{7f}",
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("k{i}");
        session.save(&key, content);
        assert_eq!(session.get(&key).as_deref(), Some(content));
    }
}

#[test]
fn any_text_is_a_valid_query() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    session.save("k", "heliotrope near OR not AND words");
    for query in [
        "\"",
        "\"\"",
        "\"()*\"",
        "***",
        "AND",
        "NOT OR AND NEAR",
        "NEAR(heliotrope words, 1)",
        "key:heliotrope",
        "^heliotrope",
        "-heliotrope",
        "heliotrope*",
        "{key content}:words",
        "a\u{0}b",
        "'; DROP TABLE record; --",
        "%",
        "_",
        "\\",
        "\u{feff}",
        "👍",
        "(",
        "))((",
        "+",
        "heliotrope + words",
        "content : x",
        "\u{202e}",
    ] {
        let answer = session.raw("memory_search", &json!({ "query": query }).to_string());
        assert!(answer.is_ok(), "{query:?}: {answer:?}");
        let words = query.split_whitespace().any(|word| {
            ["heliotrope", "words", "and", "or", "not", "near"].contains(
                &word
                    .trim_matches(|c: char| !c.is_alphanumeric())
                    .to_lowercase()
                    .as_str(),
            )
        });
        if words {
            assert_eq!(session.search(query), ["k"], "{query:?}");
        }
    }
    let long = "heliotrope ".repeat(20_000);
    assert_eq!(session.search(&long), ["k"]);
    let many: String = (0..5000).map(|i| format!("term{i} ")).collect();
    assert!(session.search(&many).is_empty());
    let one = "x".repeat(1_000_000);
    assert!(session.search(&one).is_empty());
}

#[test]
fn what_of_a_query_was_not_searched_for_is_noticed() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    session.save("k", "heliotrope");
    let search = |query: String| {
        let answer = session.ask("memory_search", json!({ "query": query }));
        let notices = answer["notices"].as_array().cloned().unwrap_or_default();
        (remora_tests::keys(&answer["results"]), notices)
    };
    let words = |number: usize| -> String { (0..number).map(|i| format!("term{i} ")).collect() };
    let (found, notices) = search(words(127) + "heliotrope");
    assert_eq!((found, notices), (vec!["k".to_owned()], vec![]));
    // The word that a memory holds is kept, wherever it stands.
    let (found, notices) = search(words(200) + "heliotrope");
    assert_eq!(found, ["k"]);
    assert!(
        matches!(notices.as_slice(), [Value::String(notice)] if notice.contains(": 73 of them")),
        "{notices:?}"
    );
    let (found, notices) = search("heliotrope ".repeat(30_000));
    assert_eq!(found, ["k"]);
    assert!(
        matches!(notices.as_slice(), [Value::String(notice)] if notice.contains("first 256 KiB")),
        "{notices:?}"
    );
}
