//! The binary, run as a person or a script runs it.
//!
//! It stands with the host and not with the other tests because cargo builds a
//! package's binaries for that package's own integration tests.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

mod place;

use place::{Place, Ran, finish};

impl Place {
    fn call(&self, tool: &str, arguments: &str) -> Ran {
        self.run(["call", tool, arguments])
    }
}

impl Ran {
    /// The code and message of a failure in JSON.
    #[track_caller]
    fn failure(&self) -> (String, String) {
        let json = self.json();
        let text = |name: &str| json["error"][name].as_str().map(str::to_owned);
        match (text("code"), text("message")) {
            (Some(code), Some(message)) => (code, message),
            _ => panic!("no failure: {self:?}"),
        }
    }
}

fn keys(answer: &Value, list: &str) -> Vec<String> {
    let items = answer[list].as_array().expect("a list");
    items
        .iter()
        .map(|item| item["key"].as_str().expect("a key").to_owned())
        .collect()
}

// The commands.

#[test]
fn what_was_saved_is_read_found_listed_and_deleted() {
    let place = Place::new();
    let saved = place.json([
        "save",
        "deploy",
        "Deploys go out on Tuesdays.",
        "--tag",
        "ops",
        "--source",
        "Ada",
    ]);
    assert_eq!(saved["saved"], true);
    assert_eq!(saved["outcome"], "created");
    assert_eq!(saved["key"], "deploy");
    assert_eq!(saved["classification"], "PUBLIC");
    assert_eq!(saved["origin"], "USER");
    assert_eq!(saved["standing"], "trusted");
    assert_eq!(saved["version"], 1);
    assert!(saved["notices"].is_array());

    let got = place.json(["get", "deploy"]);
    assert_eq!(got["found"], true);
    assert_eq!(got["content"], "Deploys go out on Tuesdays.");
    assert_eq!(got["tags"], json!(["ops"]));
    assert_eq!(got["source"], "Ada");
    assert_eq!(got["age_days"], 0);

    let found = place.json(["search", "when", "do", "we", "deploy?"]);
    assert_eq!(keys(&found, "results"), ["deploy"]);
    assert_eq!(found["query"], "when do we deploy?");

    let listed = place.json(["list", "--tag", "ops"]);
    assert_eq!(keys(&listed, "memories"), ["deploy"]);
    assert_eq!(listed["next_cursor"], Value::Null);

    let deleted = place.json(["delete", "deploy"]);
    assert_eq!(deleted["deleted"], true);
    assert_eq!(deleted["still_visible"], Value::Null);
    assert_eq!(place.run(["get", "deploy"]).code, 1);
}

#[test]
fn answers_for_people_are_readable() {
    let place = Place::new();
    let saved = place.run([
        "save",
        "deploy",
        "On Tuesdays.",
        "--tag",
        "ops",
        "--taint",
        "internal",
    ]);
    assert_eq!(saved.code, 0, "{saved:?}");
    assert_eq!(
        saved.out,
        "deploy: created, version 1 at INTERNAL, origin USER\n"
    );
    assert!(
        saved
            .err
            .contains("note: Sessions below INTERNAL will not see"),
        "{saved:?}"
    );

    let listed = place.run(["list", "--taint", "internal"]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["KEY", "LEVEL", "ORIGIN", "AGE", "TAGS", "CONTENT"]
    );
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        [
            "deploy",
            "INTERNAL",
            "USER",
            "today",
            "ops",
            "On",
            "Tuesdays."
        ]
    );

    let found = place.run(["search", "tuesdays", "--taint", "internal"]);
    assert_eq!(
        found.out,
        "deploy  INTERNAL · USER · today\n  On Tuesdays.\n"
    );

    let status = place.run(["status", "--taint", "internal"]);
    assert!(status.out.contains("level      INTERNAL"), "{status:?}");
    assert!(status.out.contains("ops (1)"), "{status:?}");
}

#[test]
fn what_hides_a_more_trusted_version_is_marked() {
    let place = Place::new();
    place.json(["save", "deploy", "On Tuesdays."]);
    place.json(["save", "other", "x", "--taint", "internal"]);
    let agent = ["--origin", "agent", "--taint", "internal"];
    let above = |args: &[&str]| place.run(args.iter().chain(&agent));
    above(&["save", "deploy", "On Fridays."]);

    let hidden = "hides a more trusted version at PUBLIC, origin USER";
    let got = above(&["get", "deploy"]);
    assert_eq!(got.out, "On Fridays.", "the content alone");
    assert_eq!(got.err, format!("note: {hidden}\n"));
    let conflict = above(&["get", "deploy", "--json"]).json()["conflict"].clone();
    assert_eq!(
        conflict,
        json!({"classification": "PUBLIC", "origin": "USER"})
    );
    let found = above(&["search", "fridays"]);
    assert!(found.out.contains(hidden), "{found:?}");

    let listed = above(&["list"]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert!(lines[1].contains("  AGENT !  "), "{listed:?}");
    assert!(!lines[2].contains('!'), "{listed:?}");
    assert!(
        listed.err.contains("! hides a more trusted version"),
        "{listed:?}"
    );
    // Nothing is said where nothing is hidden.
    for args in [["get", "deploy"].as_slice(), &["list"]] {
        assert_eq!(place.run(args).err, "");
    }
}

#[test]
fn nothing_found_is_said_beside_the_answer_and_is_no_failure() {
    let place = Place::new();
    for command in [&["search", "zebra"][..], &["list"], &["session", "list"]] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
        assert!(
            ran.err.contains("Nothing was found") || ran.err.contains("There are no"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_list_goes_on_from_its_cursor() {
    let place = Place::new();
    for key in ["a", "b", "c"] {
        place.json(["save", key, "x"]);
    }
    let first = place.json(["list", "--limit", "2"]);
    assert_eq!(keys(&first, "memories"), ["a", "b"]);
    let cursor = first["next_cursor"].as_str().expect("more");
    let second = place.json(["list", "--limit", "2", "--cursor", cursor]);
    assert_eq!(keys(&second, "memories"), ["c"]);
    let shown = place.run(["list", "--limit", "2"]);
    assert!(
        shown.err.contains(&format!("--cursor {cursor}")),
        "{shown:?}"
    );
}

#[test]
fn status_shows_the_effective_path_and_the_agent() {
    let place = Place::new();
    let status = place.json(["status", "--agent", "ada"]);
    let store = fs::canonicalize(place.store()).expect("made");
    assert_eq!(status["store"], store.to_str().expect("UTF-8"));
    assert_eq!(status["agent"], "ada");
    assert_eq!(status["classification"], "PUBLIC");
    assert_eq!(status["clearance"], "RESTRICTED");
}

#[test]
fn tools_spine_component_and_version_need_no_store() {
    let place = Place::new();
    let run = |args: &[&str]| {
        let mut command = place.command();
        // One that can't be opened.
        command.env("REMORA_STORE", "/dev/null/store").args(args);
        let ran = finish(command, b"");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}: {ran:?}");
        ran
    };
    let tools = run(&["tools"]).json();
    let names: Vec<&str> = tools
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "memory_save",
            "memory_get",
            "memory_search",
            "memory_list",
            "memory_delete",
            "memory_confirm",
            "memory_review",
            "memory_history",
            "memory_status"
        ]
    );
    for tool in tools.as_array().expect("a list") {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint}");
        }
    }
    let spine = run(&["spine"]).out;
    assert!(spine.contains("memory_save"), "{spine}");
    assert_eq!(
        run(&["spine", "--json"]).json()["instructions"]
            .as_str()
            .map(str::trim_end),
        Some(spine.trim_end())
    );
    assert!(run(&["--version"]).out.contains("remora:memory@0.1.0"));
    assert!(run(&["--help"]).out.contains("Examples:"));
    assert_eq!(
        run(&["component", "-o", "m.wasm", "--json"]).json()["file"],
        "m.wasm"
    );
    let written = fs::read(place.folder.path().join("m.wasm")).expect("written");
    assert!(written.starts_with(b"\0asm"));
    assert_eq!(written, remora_host::EMBEDDED_COMPONENT);
}

#[test]
fn another_component_can_be_run_instead() {
    let place = Place::new();
    assert_eq!(place.run(["component", "-o", "m.wasm"]).code, 0);
    assert_eq!(
        place.json(["--component", "m.wasm", "save", "k", "c"])["outcome"],
        "created"
    );

    let missing = place.run(["--component", "none.wasm", "get", "k"]);
    assert_eq!(missing.code, 4);
    assert!(missing.err.contains("none.wasm"), "{missing:?}");
    fs::write(place.folder.path().join("text.wasm"), "no component").expect("written");
    let wrong = place.run(["--component", "text.wasm", "--json", "get", "k"]);
    assert_eq!(wrong.code, 4);
    assert_eq!(wrong.failure().0, "plugin_failed");
}

#[test]
fn the_tour_keeps_its_promises() {
    let place = Place::new();
    let tour = place.run(["tour"]);
    assert_eq!((tour.code, tour.err.as_str()), (0, ""), "{}", tour.out);
    assert!(!tour.out.contains("BROKEN"));
    for number in 1..=6 {
        assert!(tour.out.contains(&format!("\n{number}. ")), "{}", tour.out);
    }
    for line in tour.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(
        tour.out
            .ends_with("$ remora mcp-config claude-desktop --session work\n$ remora --help\n"),
        "{}",
        tour.out
    );
    assert!(!tour.out.contains("cannot leak"));
    assert!(!place.store().exists(), "its store is a temporary one");
}

// Exit codes and failures.

#[test]
fn exit_code_1_is_for_what_is_not_there() {
    let place = Place::new();
    place.json(["save", "low", "x"]);
    for args in [
        &["get", "none"][..],
        &["delete", "none"],
        &["delete", "low", "--taint", "internal"],
        &["session", "show", "none"],
        &["session", "raise", "none", "internal"],
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}: {ran:?}");
        assert!(ran.err.starts_with("remora: "), "{ran:?}");
    }
    let get = place.run(["get", "none", "--json"]);
    assert_eq!(
        (get.code, get.out.as_str()),
        (1, "{\"found\":false,\"key\":\"none\"}\n")
    );
    let below = place.run(["delete", "low", "--taint", "internal", "--json"]);
    assert_eq!(below.failure().0, "no_such_record_at_level");
}

#[test]
fn exit_code_2_is_for_wrong_usage() {
    let place = Place::new();
    let long = "k".repeat(257);
    for args in [
        &[][..],
        &["remember"],
        &["get"],
        &["search"],
        &["get", "k", "--taint", "SECRET"],
        &["get", "k", "--origin", "nobody"],
        &["get", "k", "--agent", " "],
        &["get", "k", "--session", ""],
        &["get", " "],
        &["get", &long],
        &["save", "k", ""],
        &["search", " "],
        &["search", "x", "--max-results", "0"],
        &["list", "--limit", "201"],
        &["list", "--match", "some"],
        &["list", "--cursor", "nonsense"],
        &["call", "memory_sing", "{}"],
        &["serve"],
        &["serve", "--ephemeral", "--session", "work"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
    }
    let serve = place.run(["serve"]);
    assert!(
        serve.err.contains("--session NAME") && serve.err.contains("--ephemeral"),
        "{serve:?}"
    );
}

#[test]
fn exit_code_3_is_for_what_the_policy_refuses() {
    let place = Place::new();
    place.json(["session", "new", "demo", "--clearance", "internal"]);
    let raise = place.run(["session", "raise", "demo", "restricted"]);
    assert_eq!((raise.code, raise.out.as_str()), (3, ""), "{raise:?}");
    assert!(
        raise.err.contains("nothing was unlocked") && raise.err.contains("writes no more"),
        "{raise:?}"
    );
    let save = place.run(["--session", "demo", "--json", "save", "k", "x"]);
    assert_eq!(save.code, 3);
    assert_eq!(save.failure().0, "refused");
    assert_eq!(place.run(["--session", "demo", "list"]).code, 0);
    let other = place.run(["--session", "demo", "--agent", "other", "get", "k"]);
    assert_eq!(other.code, 3, "{other:?}");
}

#[test]
fn exit_code_4_is_for_a_store_that_fails() {
    let place = Place::new();
    fs::write(place.store(), "a file").expect("written");
    let ran = place.run(["get", "k"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{ran:?}");
    assert!(
        ran.err.contains(place.store().to_str().expect("UTF-8")),
        "{ran:?}"
    );
    assert_eq!(place.run(["get", "k", "--json"]).failure().0, "unavailable");
    // One that can't be made is not one that is gone.
    let parent = if cfg!(target_os = "linux") {
        "/proc"
    } else {
        "/dev"
    };
    let ran = place.run(["--store", &format!("{parent}/nope"), "status"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(
        ran.err.contains("/nope can't be made: ") && ran.err.contains("--store"),
        "{ran:?}"
    );
}

#[test]
fn the_cause_of_a_failing_store_is_told_to_people() {
    let place = Place::new();
    place.json(["save", "k", "x"]);
    let file = place.store().join("agents/default/public.db");
    let _gone = fs::remove_file(place.store().join("agents/default/public.db-wal"));
    fs::write(&file, vec![b'x'; 8192]).expect("written");
    let ran = place.run(["get", "k"]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("public.db: file is not a database") && !ran.err.contains("RUST_LOG"),
        "{ran:?}"
    );
    let (_, message) = place.run(["get", "k", "--json"]).failure();
    assert!(!message.contains("agents/default"), "{message}");
    // A plugin that fails says nothing of the store.
    for plugin in ["/dev/null", "none.wasm"] {
        let ran = place.run(["--component", plugin, "get", "k"]);
        assert_eq!(ran.code, 4);
        assert!(!ran.err.contains("store"), "{ran:?}");
    }
}

#[test]
fn people_are_told_of_commands_and_programs_of_tools() {
    let place = Place::new();
    place.json(["save", "low", "x"]);
    for (args, says, tool) in [
        (
            &["list", "--cursor", "nonsense"][..],
            "`remora list`",
            "memory_list",
        ),
        (
            &["delete", "low", "--taint", "internal"],
            "`remora delete --hide-lower`",
            "memory_delete",
        ),
        (&["search", " "], "`remora list`", "memory_list"),
    ] {
        let ran = place.run(args);
        assert!(ran.err.contains(says) && !ran.err.contains(tool), "{ran:?}");
        let (_, message) = place.run(args.iter().chain(&["--json"])).failure();
        assert!(message.contains(tool), "{message}");
    }
    let (_, message) = place.call("memory_search", r#"{"query":" "}"#).failure();
    assert!(message.contains("memory_list"), "{message}");
    place.json(["save", "low", "y", "--taint", "internal"]);
    let deleted = place.run(["delete", "low", "--taint", "internal"]);
    assert!(
        deleted.err.contains("delete it again with --hide-lower"),
        "{deleted:?}"
    );
}

#[test]
fn a_number_of_things_is_refused_with_its_range() {
    let place = Place::new();
    for (args, says) in [
        (
            ["list", "--limit", "abc"],
            "abc is not a whole number from 1 to 200",
        ),
        (
            ["list", "--limit", "0"],
            "0 is not a whole number from 1 to 200",
        ),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(says), "{ran:?}");
    }
    let ran = place.run(["search", "x", "--max-results", "1.5"]);
    assert!(
        ran.err.contains("1.5 is not a whole number from 1 to 100"),
        "{ran:?}"
    );
}

#[test]
fn a_damaged_control_plane_refuses_every_call() {
    let place = Place::new();
    place.json(["--session", "work", "save", "k", "x"]);
    let sessions = place.store().join("sessions.db");
    let _gone = fs::remove_file(place.store().join("sessions.db-wal"));
    fs::write(&sessions, vec![b'x'; 8192]).expect("written");
    for args in [
        &["get", "k"][..],
        &["--session", "work", "get", "k"],
        &["--session", "other", "save", "k", "x"],
        &["session", "list"],
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{args:?}: {ran:?}");
        assert!(ran.err.contains("sessions.db"), "{ran:?}");
    }
}

#[test]
fn a_damaged_level_is_named_and_the_others_answer() {
    let place = Place::new();
    place.json(["save", "low", "x"]);
    place.json(["save", "high", "y", "--taint", "confidential"]);
    let file = place.store().join("agents/default/confidential.db");
    let _gone = fs::remove_file(place.store().join("agents/default/confidential.db-wal"));
    fs::write(&file, vec![b'x'; 8192]).expect("written");
    assert_eq!(place.json(["get", "low"])["content"], "x");
    let ran = place.run(["get", "high", "--taint", "confidential"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.err.contains("confidential.db"), "{ran:?}");
    assert!(
        ran.err.contains(place.store().to_str().expect("UTF-8")),
        "{ran:?}"
    );
}

#[test]
fn a_usage_error_is_json_where_json_was_asked_for() {
    let place = Place::new();
    let ran = place.run(["get", "--json"]);
    assert_eq!(ran.code, 2);
    let (code, message) = ran.failure();
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("<KEY>"), "{message}");
    let content = place.run(["save", "k", "c", "extra", "--", "--json"]);
    assert_eq!((content.code, content.out.as_str()), (2, ""));
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let place = Place::new();
    let mut child = place
        .command()
        .arg("component")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_can_not_be_written_is_a_failure() {
    let place = Place::new();
    place.json(["save", "k", "x"]);
    for args in [
        &["get", "k"][..],
        &["list"],
        &["stats"],
        &["history", "k"],
        &["--json", "list"],
        &["--json", "get", "k"],
        &["save", "l", "y"],
        &["review", "--json"],
        &["call", "memory_status", "{}"],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("there");
        let output = place.command().args(args).stdout(full).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(4), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("The answer can't be written: "),
            "{args:?}: {said}"
        );
    }
}

// Input.

#[test]
fn content_comes_from_standard_input_byte_for_byte() {
    let place = Place::new();
    let content = "\u{feff}first\r\n\tlast \u{1b}[2J\u{202e}\n\n";
    assert_eq!(
        place
            .run_with_input(["save", "k", "-"], content.as_bytes())
            .code,
        0
    );
    assert_eq!(place.json(["get", "k"])["content"], content);
    assert_eq!(
        place.run(["get", "k"]).out,
        content,
        "through a pipe it is the same"
    );
}

#[test]
fn input_that_is_no_text_or_too_much_is_refused_with_the_reason() {
    let place = Place::new();
    let ran = place.run_with_input(["save", "k", "-"], b"abc\xff");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("not UTF-8: byte 3"), "{ran:?}");
    // F059: byte-equal, or refused with the limit named.
    for count in [2_100, 100_000] {
        let content = "é".repeat(count);
        assert_eq!(
            place
                .run_with_input(["save", "k", "-"], content.as_bytes())
                .code,
            0
        );
        assert_eq!(place.run(["get", "k"]).out, content);
    }
    let ran = place.run_with_input(["--json", "save", "big", "-"], &vec![b'x'; 5_000_000]);
    assert_eq!(ran.code, 2);
    let (code, message) = ran.failure();
    assert_eq!(code, "too_large");
    assert!(message.contains("262144"), "{message}");
    assert_eq!(place.run(["get", "big"]).code, 1);
    let ran = place.run_with_input(["save", "full", "-"], &vec![b'x'; 262_144]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn words_that_look_like_options_can_be_used() {
    let place = Place::new();
    place.json(["save", "list", "- milk\n- eggs"]);
    assert_eq!(place.run(["get", "list"]).out, "- milk\n- eggs");
    place.json(["save", "band", "--", "--rock-band"]);
    assert_eq!(
        keys(&place.json(["search", "--", "-band"]), "results"),
        ["band"]
    );
    place.json(["save", "danger", "never rm -rf the store"]);
    assert_eq!(
        keys(&place.json(["search", "rm -rf"]), "results"),
        ["danger"]
    );
    place.json(["save", "--", "-key", "x"]);
    assert_eq!(place.json(["get", "--", "-key"])["content"], "x");
}

#[test]
fn text_that_acts_on_a_terminal_is_shown_and_not_done() {
    let place = Place::new();
    place.json([
        "save",
        "k\u{202e}ey",
        "a\u{1b}[2J\u{200b}b\u{e0041} می\u{200c}خواهم 👩\u{200d}👧",
        "--tag",
        "t\u{2066}",
    ]);
    for args in [&["list"][..], &["search", "b"]] {
        let shown = place.run(args).out;
        assert!(shown.contains(r"k\u{202e}ey"), "{shown}");
        assert!(shown.contains(r"a\u{1b}[2J\u{200b}b\u{e0041}"), "{shown}");
        assert!(shown.contains("می\u{200c}خواهم 👩\u{200d}👧"), "{shown}");
    }
    let failed = place.run(["get", "\u{202e}none"]);
    assert!(failed.err.contains(r"\u{202e}"), "{failed:?}");
}

// call

#[test]
fn call_prints_the_answer_as_it_is() {
    let place = Place::new();
    place.json(["session", "new", "other"]);
    let saved = place.call(
        "memory_save",
        r#"{"key":"k","content":"c","classification":"RESTRICTED"}"#,
    );
    assert_eq!((saved.code, saved.err.as_str()), (0, ""));
    assert!(
        saved.out.starts_with(
            r#"{"saved":true,"outcome":"created","key":"k","classification":"PUBLIC","#
        ),
        "{saved:?}"
    );
    assert!(saved.out.contains("was ignored"), "{saved:?}");
    assert_eq!(
        place
            .run_with_input(["call", "memory_get", "-"], br#"{"key":"k"}"#)
            .json()["content"],
        "c"
    );
    assert_eq!(
        place.run(["call", "memory_status"]).json()["classification"],
        "PUBLIC"
    );
    // The tool did what it was asked; the answer says that there is none.
    let none = place.call("memory_get", r#"{"key":"none"}"#);
    assert_eq!(
        (none.code, none.out.as_str()),
        (0, "{\"found\":false,\"key\":\"none\"}\n")
    );
}

#[test]
fn wrong_arguments_of_a_call_are_a_precise_error_and_never_a_panic() {
    let place = Place::new();
    place.json(["session", "new", "other"]);
    for (arguments, says) in [
        (r#"{"key":"k","content":"c","colour":"red"}"#, "colour"),
        (r#"{"key":"\ud800","content":"c"}"#, "surrogate"),
        (r#"{"key":"k","key":"l","content":"c"}"#, "twice"),
        (r#"{"key":7,"content":"c"}"#, "key"),
        (r#"{"key":null,"content":"c"}"#, "key"),
        (r#"{"content":"c"}"#, "key"),
        (r#"{"key":"k","content":"c","tags":"one"}"#, "tags"),
        ("[]", "object"),
        ("{", "JSON"),
        ("not json", "JSON"),
    ] {
        let ran = place.call("memory_save", arguments);
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (2, ""),
            "{arguments}: {ran:?}"
        );
        let (code, message) = ran.failure();
        assert_eq!(code, "invalid_argument", "{arguments}");
        assert!(message.contains(says), "{arguments}: {message}");
    }
    assert_eq!(place.call("memory_sing", "{}").failure().0, "unknown_tool");
    assert_eq!(place.call("memory_get", r#"{"key":"none"}"#).code, 0);
}

// Sessions.

#[test]
fn a_session_keeps_its_level_and_a_raise_governs_the_next_command() {
    let place = Place::new();
    place.json(["save", "salary", "95k", "--taint", "confidential"]);
    let made = place.json(["session", "new", "work", "--agent", "default"]);
    assert_eq!(made["session"], "work");
    assert_eq!(made["classification"], "PUBLIC");
    assert_eq!(place.run(["--session", "work", "get", "salary"]).code, 1);
    assert_eq!(
        place.json(["session", "raise", "work", "Confidential"])["classification"],
        "CONFIDENTIAL"
    );
    assert_eq!(
        place.json(["--session", "work", "get", "salary"])["content"],
        "95k"
    );
    // It never falls, whatever is asked for.
    let lower = place.run(["session", "raise", "work", "public"]);
    assert_eq!(lower.code, 0);
    assert!(lower.out.contains("CONFIDENTIAL already"), "{lower:?}");
    place.json([
        "--session",
        "work",
        "--taint",
        "public",
        "save",
        "note",
        "95k",
    ]);
    assert_eq!(place.run(["get", "note"]).code, 1);
    assert_eq!(
        place.json(["session", "show", "work"])["classification"],
        "CONFIDENTIAL"
    );
}

#[test]
fn a_session_is_made_once() {
    let place = Place::new();
    place.json(["session", "new", "work", "--clearance", "internal"]);
    let again = place.run(["session", "new", "work"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.err.contains("already"), "{again:?}");
    let other = place.run(["--session", "work", "--clearance", "restricted", "list"]);
    assert_eq!(other.code, 2, "{other:?}");
    assert_eq!(
        place.json(["session", "show", "work"])["clearance"],
        "INTERNAL"
    );
}

#[test]
fn sessions_are_listed_of_all_agents_or_of_one() {
    let place = Place::new();
    place.json(["session", "new", "one"]);
    place.json([
        "session", "new", "two", "--agent", "ada", "--origin", "tool",
    ]);
    let names = |answer: &Value| -> Vec<String> {
        let rows = answer["sessions"].as_array().expect("a list");
        rows.iter()
            .map(|row| row["session"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(&place.json(["session", "list"])), ["one", "two"]);
    let of_ada = place.json(["session", "list", "--agent", "ada"]);
    assert_eq!(names(&of_ada), ["two"]);
    assert_eq!(of_ada["sessions"][0]["origin"], "TOOL");
    let shown = place.run(["session", "list"]).out;
    assert!(shown.starts_with("SESSION"), "{shown}");
    assert_eq!(shown.lines().count(), 3);
}

#[test]
fn a_taint_above_the_clearance_unlocks_nothing_and_says_so() {
    let place = Place::new();
    place.json(["save", "k", "x", "--taint", "restricted"]);
    place.json(["session", "new", "demo", "--clearance", "internal"]);
    assert_eq!(
        place.json(["--session", "demo", "status"])["read_only"],
        false
    );
    let ran = place.run(["--session", "demo", "--taint", "restricted", "get", "k"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("above its clearance INTERNAL"), "{ran:?}");
    // From then on everything that shows the session says so.
    for command in [
        &["--session", "demo", "status"][..],
        &["session", "show", "demo"],
    ] {
        let shown = place.run(command).out;
        assert!(
            shown.contains("RESTRICTED, above its clearance: it writes no more"),
            "{shown}"
        );
        assert_eq!(place.json(command)["read_only"], true);
    }
    assert!(place.run(["session", "list"]).out.contains("reads only"));
    let listed = place.json(["session", "list"]);
    assert_eq!(listed["sessions"][0]["read_only"], true);
}

#[test]
fn no_session_starts_above_its_clearance() {
    let place = Place::new();
    for command in [
        &["session", "new", "z"][..],
        &["--session", "z", "list"],
        &["list"],
        &["serve", "--session", "z"],
        &["serve", "--ephemeral"],
    ] {
        let levels = ["--clearance", "internal", "--taint", "restricted"];
        let ran = place.run(command.iter().chain(&levels));
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{command:?}: {ran:?}"
        );
        assert!(
            ran.err
                .contains("RESTRICTED is above the clearance INTERNAL"),
            "{ran:?}"
        );
    }
    assert_eq!(place.json(["session", "list"])["sessions"], json!([]));
}

#[test]
fn what_a_name_made_or_changed_for_good_is_said() {
    let place = Place::new();
    let said = |args: &[&str]| {
        let ran = place.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        // Where it is wrapped depends on the folder's name.
        ran.err.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let first = said(&["--session", "wrok", "list"]);
    assert!(
        first.starts_with("note: a new store was made in ")
            && first.contains("note: session \"wrok\" is new, at PUBLIC."),
        "{first}"
    );
    let again = said(&["--session", "wrok", "status"]);
    assert_eq!(again, "");
    assert_eq!(
        said(&["--session", "wrok", "--taint", "internal", "status"]),
        "note: session \"wrok\" rose from PUBLIC to INTERNAL, for good."
    );
    assert_eq!(
        said(&["--session", "wrok", "--taint", "public", "status"]),
        ""
    );
    assert_eq!(
        said(&["--session", "wrok", "--origin", "tool", "status"]),
        "note: the origin of session \"wrok\" fell from USER to TOOL, for good."
    );
    // A server's client is told what changed, and not that its session is new.
    assert_eq!(said(&["serve", "--session", "new"]), "");
    assert_eq!(
        said(&["serve", "--session", "new", "--taint", "internal"]),
        "note: session \"new\" rose from PUBLIC to INTERNAL, for good."
    );
}

#[test]
fn a_command_does_its_work_whether_or_not_its_notes_are_read() {
    let place = Place::new();
    let mut child = place
        .command()
        .args(["--session", "new", "save", "k", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stderr.take());
    // It waits for its content, so nothing was said yet.
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(b"words").expect("it reads");
    drop(stdin);
    child.wait().expect("it ends");
    assert_eq!(place.run(["get", "k"]).out, "words");
}

#[test]
fn of_two_that_make_a_session_at_once_one_succeeds() {
    let place = Place::new();
    place.json(["status"]);
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = place.command();
            command.args(["session", "new", "one"]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("it runs")
        })
        .collect();
    let mut codes: Vec<_> = children
        .into_iter()
        .map(|mut child| child.wait().expect("it ends").code())
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [&[Some(0)][..], &[Some(2); 7]].concat());
}

#[test]
fn an_origin_can_be_lowered_and_not_raised() {
    let place = Place::new();
    place.json(["session", "new", "work"]);
    let lower = |origin: &str| place.json(["session", "lower", "work", origin])["origin"].clone();
    assert_eq!(lower("agent"), "AGENT");
    assert_eq!(lower("user"), "AGENT");
    let shown = place.run(["session", "lower", "work", "tool"]);
    assert!(
        shown.out.contains("from the origin AGENT to TOOL"),
        "{shown:?}"
    );
    let again = place.run(["session", "lower", "work", "agent"]);
    assert!(again.out.contains("TOOL already"), "{again:?}");
    assert_eq!(place.run(["session", "lower", "none", "tool"]).code, 1);
    // What it saves is kept apart, so it has no version to tell of.
    let saved = place.run(["--session", "work", "save", "k", "x"]);
    assert_eq!(saved.out, "k: quarantined at PUBLIC, origin TOOL\n");
}

#[test]
fn a_session_named_where_it_is_not_looked_for_is_pointed_out() {
    let place = Place::new();
    for args in [
        &["--session", "my work", "session", "raise", "restricted"][..],
        &["session", "raise", "restricted", "--session=my work"],
        &[
            "--taint",
            "public",
            "--session",
            "my work",
            "session",
            "raise",
            "restricted",
        ],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(
            ran.err
                .contains("remora session raise 'my work' restricted"),
            "{ran:?}"
        );
    }
    let both = place.run(["--session", "a", "session", "raise", "a", "internal"]);
    assert_eq!(both.code, 2, "{both:?}");
    assert!(!place.run(["session", "raise", "a"]).err.contains("tip:"));
}

#[test]
fn an_option_that_would_not_be_heeded_is_refused() {
    let place = Place::new();
    for (command, option) in [
        ("spine", ["--session", "s"]),
        ("tools", ["--taint", "internal"]),
        ("tour", ["--agent", "a"]),
        ("tour", ["--store", "elsewhere"]),
        ("component", ["--clearance", "internal"]),
        ("component", ["--component", "m.wasm"]),
        ("spine", ["--origin", "tool"]),
    ] {
        for args in [
            [command, option[0], option[1]],
            [option[0], option[1], command],
        ] {
            let ran = place.run(args);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
            assert!(ran.err.contains(option[0]), "{ran:?}");
        }
    }
    let listed = place.run(["session", "list", "--taint", "internal"]);
    assert_eq!(listed.code, 2, "{listed:?}");
    assert!(!place.store().exists(), "nothing was made");
}

#[test]
fn the_help_is_short_or_long_and_a_command_of_its_own() {
    let place = Place::new();
    let short = place.run(["save", "-h"]).out;
    assert!(
        short.contains("--tag") && !short.contains("--clearance"),
        "{short}"
    );
    let long = place.run(["help", "save"]).out;
    assert!(
        long.contains("--tag") && long.contains("--clearance"),
        "{long}"
    );
    let all = place.run(["help"]).out;
    assert!(
        all.contains("mcp-config claude-desktop --session work") && all.contains("does not leak"),
        "{all}"
    );
}

// The store's folder: F070, F071.

#[test]
fn a_relative_store_starts_from_the_working_folder() {
    let place = Place::new();
    let status = place.json(["--store", "some/new/folder", "status"]);
    let folder = fs::canonicalize(place.folder.path().join("some/new/folder")).expect("made");
    assert_eq!(status["store"], folder.to_str().expect("UTF-8"));
}

#[test]
fn a_leading_tilde_is_the_home_folder() {
    let place = Place::new();
    let mut command = place.command();
    command
        .env("REMORA_STORE", "~/in home")
        .args(["status", "--json"]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.folder.path().join("in home/sessions.db").exists());
    let ran = place.run(["--store", "~nobody/store", "status"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(!place.folder.path().join("~nobody").exists());
}

#[test]
fn an_empty_store_is_an_error_that_names_the_variable() {
    let place = Place::new();
    let mut command = place.command();
    command.env("REMORA_STORE", "").arg("status");
    for ran in [finish(command, b""), place.run(["--store", "", "status"])] {
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("REMORA_STORE"), "{ran:?}");
    }
}

#[test]
fn without_a_store_named_it_is_the_platforms_data_folder() {
    let place = Place::new();
    let mut command = place.command();
    let data = place.folder.path().join("data");
    command
        .env_remove("REMORA_STORE")
        .env("XDG_DATA_HOME", &data)
        .args(["status", "--json"]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    let store = ran.json()["store"].as_str().expect("a path").to_owned();
    assert!(store.ends_with("/remora"), "{store}");
    if cfg!(target_os = "linux") {
        assert!(data.join("remora/sessions.db").exists());
    }
}

#[test]
fn a_store_may_have_spaces_and_any_script_in_its_path() {
    let place = Place::new();
    for folder in ["D Masaüstü/Bahadır", "保存 場所", "with ' quote"] {
        place.json(["--store", folder, "save", "k", "x"]);
        assert_eq!(place.json(["--store", folder, "get", "k"])["content"], "x");
    }
}

#[cfg(unix)]
#[test]
fn a_store_may_have_a_path_that_is_not_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let folder = OsStr::from_bytes(b"st\xffore");
    let args = |command: &'static [&'static str]| {
        [OsStr::new("--store"), folder]
            .into_iter()
            .chain(command.iter().map(OsStr::new))
    };
    assert_eq!(place.run(args(&["save", "k", "x"])).code, 0);
    assert_eq!(place.run(args(&["get", "k"])).out, "x");
    assert_eq!(place.run(args(&["status"])).code, 0);
}

// Namespaces, tags and keys: cases from the field.

#[test]
fn agents_are_apart_whatever_their_names() {
    // F029, F054, F055, F056.
    let place = Place::new();
    let agents = ["e%/x", "foo_bar", "fooXbar", "Foo_bar", "..", "%", "*"];
    for agent in agents {
        place.json(["--agent", agent, "save", "mine", agent]);
    }
    for agent in agents {
        let found = place.json(["--agent", agent, "list"]);
        assert_eq!(keys(&found, "memories"), ["mine"]);
        assert_eq!(found["memories"][0]["content"], agent);
    }
    // Without a name it is the default's own, which is empty.
    assert_eq!(place.run(["get", "mine"]).code, 1);
    assert_eq!(keys(&place.json(["list"]), "memories"), [""; 0]);
    assert_eq!(keys(&place.json(["search", "foo_bar"]), "results"), [""; 0]);
    // Deleting in one leaves the others.
    place.json(["--agent", "e%/x", "delete", "mine"]);
    assert_eq!(place.run(["--agent", "e%/x", "get", "mine"]).code, 1);
    for agent in &agents[1..] {
        assert_eq!(
            place.json(["--agent", agent, "get", "mine"])["content"],
            *agent
        );
    }
}

#[test]
fn deleting_takes_a_whole_key_and_no_pattern() {
    // F031, F032.
    let place = Place::new();
    place.json(["save", "deployment-steps", "x"]);
    for key in [
        "deployme",
        "none",
        "%",
        "_",
        "*",
        "deployment_steps",
        "deployment-step?",
    ] {
        let ran = place.run(["--json", "delete", key]);
        assert_eq!(ran.code, 1, "{key}: {ran:?}");
        assert_eq!(ran.failure().0, "not_found", "{key}");
    }
    assert_eq!(place.json(["get", "deployment-steps"])["content"], "x");
}

#[test]
fn tags_are_compared_whole() {
    // F034.
    let place = Place::new();
    place.json([
        "save",
        "paper",
        "x",
        "--tag",
        "machine,learning",
        "--tag",
        "ai",
    ]);
    let with = |tag: &str| keys(&place.json(["list", "--tag", tag]), "memories");
    assert_eq!(with("machine,learning"), ["paper"]);
    assert_eq!(with("ai"), ["paper"]);
    for tag in ["machine", "learning", "a", "%", "AI"] {
        assert!(with(tag).is_empty(), "{tag}");
    }
}

#[test]
fn any_or_all_of_the_tags_can_be_asked_for() {
    // F035.
    let place = Place::new();
    place.json(["save", "a", "x", "--tag", "open", "--tag", "private"]);
    place.json(["save", "b", "x", "--tag", "open", "--tag", "work"]);
    let matching = |how: &str| {
        let listed = place.json(["list", "--tag", "open", "--tag", "private", "--match", how]);
        keys(&listed, "memories")
    };
    assert_eq!(matching("all"), ["a"]);
    assert_eq!(matching("any"), ["a", "b"]);
}

#[test]
fn tags_past_a_limit_are_refused_with_the_limit_named() {
    // F036.
    let place = Place::new();
    let long = "t".repeat(5_543);
    let ran = place.run(["save", "k", "x", "--tag", &long]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("64"), "{ran:?}");
    let mut args = vec!["save".to_owned(), "k".to_owned(), "x".to_owned()];
    args.extend((0..2_000).map(|i| format!("--tag=t{i}")));
    let ran = place.run(args);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("32"), "{ran:?}");
    assert_eq!(place.run(["get", "k"]).code, 1);
}

#[test]
fn a_byte_order_mark_does_not_hide_what_follows() {
    // F072, without the import.
    let place = Place::new();
    place.run_with_input(["save", "ZEBRA-9340", "-"], "\u{feff}stripes".as_bytes());
    assert_eq!(place.run(["get", "ZEBRA-9340"]).out, "\u{feff}stripes");
    for words in ["stripes", "ZEBRA-9340"] {
        assert_eq!(
            keys(&place.json(["search", words]), "results"),
            ["ZEBRA-9340"],
            "{words}"
        );
    }
}

// The log.

#[test]
fn the_log_leaves_standard_output_alone() {
    let place = Place::new();
    place.json(["save", "k", "x"]);
    let mut command = place.command();
    command
        .env("RUST_LOG", "trace")
        .args(["get", "k", "--json"]);
    let ran = finish(command, b"");
    assert_eq!(ran.json()["content"], "x");
    assert!(ran.err.contains("opening"), "{ran:?}");
    // Nobody asked for it here.
    let quiet = place.run(["get", "k"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("x", ""));
}
