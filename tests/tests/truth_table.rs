//! The truth table (`tests/truth-table.tsv`), held to three times: by the real
//! component on real files, by the component alone under a host that hands out
//! every shelf, and by the host alone under a component that asks for everything.

use remora_host::{Level, Session};
use remora_tests::table::{self, IMPORTS, LEVELS, Row, TOOLS};
use remora_tests::{Calls, Sandbox};
use serde_json::{Value, json};

use crate::generous::{self, Generous};

/// What only the record says, so that wherever it shows the record was read.
const WORDS: &str = "heliotrope marmalade";
/// The word to search for, which an answer repeats.
const QUERY: &str = "heliotrope";
const TAG: &str = "periwinkle";

fn rows(operations: &[&str]) -> Vec<Row> {
    let rows: Vec<Row> = table::read(table::WRITTEN)
        .into_iter()
        .filter(|row| operations.contains(&row.operation.as_str()))
        .collect();
    assert_eq!(
        rows.len(),
        operations.len() * 16,
        "every pair of every operation"
    );
    rows
}

fn place(level: &str) -> usize {
    LEVELS
        .iter()
        .position(|&name| name == level)
        .unwrap_or_else(|| panic!("{level} is no level"))
}

/// Does what each row says and compares all rows at once, so that a failure shows
/// the whole pattern.
fn hold(operations: &[&str], act: impl Fn(&Row) -> (String, String)) {
    let mut wrong = Vec::new();
    for row in rows(operations) {
        let (answer, after) = act(&row);
        if (&answer, &after) != (&row.answer, &row.after) {
            wrong.push(format!(
                "{} by {} of a {} record: {answer:?} and then {after:?}, not {:?} and {:?}",
                row.operation, row.session, row.record, row.answer, row.after
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The tool of an operation, with its arguments.
fn call_of(operation: &str) -> (&'static str, Value) {
    match operation {
        "memory_get" => ("memory_get", json!({ "key": "k" })),
        "memory_list" => ("memory_list", json!({})),
        "memory_search" => ("memory_search", json!({ "query": QUERY })),
        "memory_status" => ("memory_status", json!({})),
        "memory_save" => ("memory_save", json!({ "key": "k", "content": "newer" })),
        "memory_save-another-key" => (
            "memory_save",
            json!({ "key": "another", "content": "newer" }),
        ),
        "memory_delete" => ("memory_delete", json!({ "key": "k" })),
        "memory_delete-hide-lower" => ("memory_delete", json!({ "key": "k", "hide_lower": true })),
        "memory_confirm" => ("memory_confirm", json!({ "key": "k" })),
        "memory_history" => ("memory_history", json!({ "key": "k" })),
        other => panic!("no tool does {other}"),
    }
}

/// A tool's answer, as the table says it.
fn in_short(tool: &str, answer: &Result<Value, String>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(code) => return code.clone(),
    };
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let listed = |records: &Value| {
        let records = records.as_array().expect("records");
        match &records[..] {
            [] => "nothing".to_owned(),
            [one] => text(&one["classification"]),
            more => format!("{} records", more.len()),
        }
    };
    match tool {
        "memory_get" if answer["found"] == json!(true) => text(&answer["classification"]),
        "memory_get" => "nothing".to_owned(),
        "memory_list" => listed(&answer["memories"]),
        "memory_search" => listed(&answer["results"]),
        "memory_status" => {
            let shelves = answer["shelves"].as_array().expect("shelves").iter();
            shelves
                .map(|shelf| format!("{} {}", text(&shelf["classification"]), shelf["live"]))
                .collect::<Vec<_>>()
                .join(", ")
        }
        "memory_save" => format!(
            "{} {} {}",
            text(&answer["outcome"]),
            text(&answer["classification"]),
            answer["version"]
        ),
        "memory_delete" => format!("deleted {}", text(&answer["classification"])),
        "memory_confirm" => format!("confirmed {}", text(&answer["classification"])),
        "memory_history" => listed(&answer["versions"]),
        other => panic!("what did {other} say?"),
    }
}

/// Nothing of the record shows where it can't be read.
fn assert_silent(row: &Row, answer: &str) {
    if place(&row.record) > place(&row.session) {
        for trace in ["marmalade", TAG, "by another"] {
            assert!(!answer.contains(trace), "{row:?}: {answer}");
        }
    }
}

fn levels() -> impl Iterator<Item = (usize, Level)> {
    Level::ALL.into_iter().enumerate()
}

fn level(name: &str) -> Level {
    name.parse().expect("a level")
}

fn joined(states: impl Iterator<Item = Option<String>>) -> String {
    let states: Vec<String> = LEVELS
        .iter()
        .zip(states)
        .filter_map(|(level, state)| state.map(|state| format!("{level} {state}")))
        .collect();
    if states.is_empty() {
        "-".to_owned()
    } else {
        states.join(", ")
    }
}

/// One record at the row's level, and the session.
fn prepare(row: &Row) -> (Sandbox, Session) {
    let sandbox = Sandbox::new();
    let record = level(&row.record);
    sandbox
        .store
        .session(
            "by another",
            &remora_host::SessionOptions::new(remora_tests::AGENT).taint(record),
        )
        .expect("a session")
        .save_tagged("k", WORDS, &[TAG]);
    let session = sandbox.at(level(&row.session));
    (sandbox, session)
}

/// What stands under `k`, asked by a session of each level about its own shelf.
fn afterwards(sandbox: &Sandbox) -> String {
    joined(Level::ALL.into_iter().map(|level| {
        let own = sandbox
            .at(level)
            .told(json!([{ "do": "shelves" }, { "do": "fetch", "shelf": 0, "key": "k" }]))
            .expect("the puppet answers");
        assert_eq!(own[0]["ok"][0], level.name());
        match &own[1]["ok"] {
            Value::Null => None,
            Value::String(tombstone) => Some(tombstone.clone()),
            memory => {
                assert_eq!(memory["level"], level.name());
                Some(memory["version"].to_string())
            }
        }
    }))
}

#[test]
fn the_whole_holds_to_the_truth_table() {
    hold(&TOOLS, |row| {
        let (sandbox, session) = prepare(row);
        let (tool, arguments) = call_of(&row.operation);
        let answer = session.raw(tool, &arguments.to_string());
        assert_silent(row, &format!("{answer:?}"));
        let answer = answer
            .map(|text| serde_json::from_str(&text).expect("JSON"))
            .map_err(|error| error.code);
        (in_short(tool, &answer), afterwards(&sandbox))
    });
}

#[test]
fn the_guest_alone_holds_to_the_truth_table() {
    hold(&TOOLS, |row| {
        let mut host = Generous::new(place(&row.session));
        host.keep(place(&row.record), "k", WORDS, &[TAG]);
        let (tool, arguments) = call_of(&row.operation);
        let (host, answer) = generous::ask(host, tool, &arguments);
        assert_silent(row, &format!("{answer:?}"));
        let after = joined((0..LEVELS.len()).map(|level| host.state(level, "k")));
        (in_short(tool, &answer), after)
    });
}

/// Each record is checked, not only the shelf it came from.
#[test]
fn the_guest_alone_reads_no_record_whose_shelf_lies_about_its_level() {
    for operation in ["memory_get", "memory_list", "memory_search"] {
        hold(&[operation], |row| {
            let mut host = Generous::new(place(&row.session));
            host.lies = true;
            host.keep(place(&row.record), "k", WORDS, &[TAG]);
            let (tool, arguments) = call_of(&row.operation);
            let (host, answer) = generous::ask(host, tool, &arguments);
            assert_silent(row, &format!("{answer:?}"));
            let after = joined((0..LEVELS.len()).map(|level| host.state(level, "k")));
            (in_short(tool, &answer), after)
        });
    }
}

#[test]
fn the_guest_alone_shadows_by_visible_levels_only() {
    for (taint, _) in levels() {
        let mut host = Generous::new(taint);
        for (other, _) in levels() {
            host.keep(other, "k", &format!("words of {other}"), &[]);
        }
        let (_, answer) = generous::ask(host, "memory_get", &json!({ "key": "k" }));
        let answer = answer.expect("found");
        assert_eq!(answer["content"], format!("words of {taint}"));
        assert_eq!(answer["classification"], LEVELS[taint]);
    }
}

#[test]
fn the_host_alone_holds_to_the_truth_table() {
    hold(&IMPORTS, |row| {
        let (sandbox, session) = prepare(row);
        let id = {
            let own = sandbox
                .at(level(&row.record))
                .told(json!([{ "do": "shelves" }, { "do": "fetch", "shelf": 0, "key": "k" }]))
                .expect("the puppet answers");
            own[1]["ok"]["id"].clone()
        };
        let put = |key: &str, supersedes: Value| json!([{ "do": "put", "key": key, "content": "newer", "supersedes": supersedes }]);
        let steps = match row.operation.as_str() {
            "put" => put("k", json!([])),
            "put-another-key" => put("another", json!([])),
            "put-superseding" => put("successor", json!([id])),
            "stamp" => json!([{ "do": "stamp", "id": id }]),
            // Use is counted where the reader stands, in a file that is there.
            "shelf.used" => json!([
                { "do": "put", "key": "unrelated", "content": "newer" },
                { "do": "shelves" },
                { "do": "everything", "key": "k", "text": QUERY },
                { "do": "use", "ids": [id] },
                { "do": "everything", "key": "k", "text": QUERY },
            ]),
            "retire" => json!([{ "do": "retire", "key": "k" }]),
            "retire-hide-lower" => json!([{ "do": "retire", "key": "k", "hide_lower": true }]),
            _ => json!([{ "do": "shelves" }, { "do": "everything", "key": "k", "text": QUERY }]),
        };
        let answers = session.told(steps).expect("the puppet answers");
        assert_silent(row, &json!(answers).to_string());
        let answer = if let Some(import) = row.operation.strip_prefix("shelf.") {
            served(import, &row.record, &answers[answers.len() - 1]["ok"])
        } else if let Some(code) = answers[0]["err"]["code"].as_str() {
            code.to_owned()
        } else {
            match (row.operation.as_str(), &answers[0]["ok"]) {
                ("stamp", moment) => {
                    assert!(moment.is_i64());
                    "stamped".to_owned()
                }
                ("retire" | "retire-hide-lower", Value::Null) => "nothing".to_owned(),
                ("retire" | "retire-hide-lower", retired) => {
                    assert_eq!(*retired, id);
                    "retired".to_owned()
                }
                (_, receipt) => format!(
                    "{} {} {}",
                    receipt["outcome"]
                        .as_str()
                        .expect("an outcome")
                        .to_lowercase()
                        .replace("outcome::", ""),
                    receipt["level"].as_str().expect("a level"),
                    receipt["version"]
                ),
            }
        };
        (answer, afterwards(&sandbox))
    });
}

/// Whether the shelf of the record's level was handed out and answered, and no
/// other shelf showed anything of the record.
fn served(import: &str, record: &str, shelves: &Value) -> String {
    let mut found = "no shelf";
    for shelf in shelves.as_array().expect("shelves") {
        let answer = &shelf[import];
        assert!(answer.get("err").is_none(), "{shelf}");
        let something = match import {
            "fetch" => answer["content"] == WORDS,
            "page" | "search" | "versions" | "stale" | "used" => answer["items"]
                .as_array()
                .is_some_and(|items| items.len() == 1),
            "present" => *answer == json!(true),
            "counts" => *answer == json!(1),
            "tags" => *answer == json!([TAG]),
            other => panic!("what is {other}?"),
        };
        assert_eq!(something, shelf["level"] == record, "{shelf}");
        if shelf["level"] == record {
            found = "served";
        }
    }
    found.to_owned()
}
