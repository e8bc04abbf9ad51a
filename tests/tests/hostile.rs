//! A plugin without a policy against the host's bounds: whatever it does it
//! learns nothing above the taint and writes nothing below it, it can't take more
//! memory, time or requests than a call has, and the host is well afterwards.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use remora_host::{CallLimits, Level, Plugin, PluginOptions, Session, ToolError};
use remora_tests::{AGENT, Calls, PUPPET, Sandbox, plugin_options, puppet, run};
use serde_json::{Value, json};

/// A puppet with a bound of its own.
fn bounded(change: impl FnOnce(&mut PluginOptions)) -> Plugin {
    let mut options = plugin_options();
    change(&mut options);
    Plugin::new(PUPPET, options).expect("the puppet runs")
}

/// What ended a call that had to end.
fn ended(puppet: &Plugin, session: &Session, steps: Value) -> ToolError {
    let error = run(puppet, session, steps.clone()).expect_err(&format!("{steps} went on"));
    assert_eq!(error.code, "plugin_failed", "{error:?}");
    error
}

/// The host answers as before, by the same plugin and by Remora's own.
fn assert_well(puppet: &Plugin, session: &Session) {
    let answer = run(puppet, session, json!([{ "do": "shelves" }])).expect("the puppet answers");
    assert!(answer[0]["ok"].is_array());
    session.save("well", "it is");
    assert_eq!(session.get("well").as_deref(), Some("it is"));
}

#[test]
fn a_plugin_that_wants_all_memory_gets_its_share_and_ends() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    // What is within the bound is given.
    run(puppet(), &session, json!([{ "do": "allocate", "mib": 32 }])).expect("within the bound");
    for mib in [65, 200, 4000] {
        ended(
            puppet(),
            &session,
            json!([{ "do": "allocate", "mib": mib }]),
        );
    }
    assert_well(puppet(), &session);
}

#[test]
fn a_plugin_that_never_ends_is_ended() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let puppet = bounded(|options| options.fuel = 50_000_000);
    let error = ended(&puppet, &session, json!([{ "do": "spin" }]));
    assert!(error.message.contains("too long"), "{error:?}");
    assert_well(&puppet, &session);
}

#[test]
fn an_endless_loop_ends_within_seconds_by_default() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let began = Instant::now();
    ended(puppet(), &session, json!([{ "do": "spin" }]));
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    assert_well(puppet(), &session);
}

#[test]
fn a_plugin_that_recurses_for_ever_is_ended() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    ended(puppet(), &session, json!([{ "do": "recurse" }]));
    assert_well(puppet(), &session);
}

#[test]
fn a_plugin_that_panics_harms_nobody() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let error = ended(
        puppet(),
        &session,
        json!([{ "do": "put", "key": "k", "content": "c" }, { "do": "panic" }]),
    );
    assert!(!error.message.contains("as it was told"), "{error:?}");
    // What was committed before stays: a save is a save.
    assert_eq!(session.get("k").as_deref(), Some("c"));
    assert_well(puppet(), &session);
}

#[test]
fn a_plugin_that_asks_too_often_is_ended() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let puppet = bounded(|options| {
        options.limits = CallLimits {
            requests: 100,
            ..CallLimits::default()
        };
    });
    let ask = |times: u32, step: Value| json!([{ "do": "shelves" }, { "do": "repeat", "times": times, "step": step }]);
    let get = json!({ "do": "fetch", "shelf": 0, "key": "k" });
    run(&puppet, &session, ask(50, get.clone())).expect("within the bound");
    for step in [
        get,
        json!({ "do": "level", "shelf": 0 }),
        json!({ "do": "session" }),
        json!({ "do": "page", "shelf": 0 }),
        json!({ "do": "search", "shelf": 0, "text": "x" }),
        json!({ "do": "present", "shelf": 0, "keys": ["k"] }),
        json!({ "do": "versions", "shelf": 0, "key": "k" }),
        json!({ "do": "edges", "shelf": 0, "ids": ["0"] }),
        json!({ "do": "stale", "shelf": 0 }),
        json!({ "do": "used", "shelf": 0 }),
        json!({ "do": "counts", "shelf": 0 }),
        json!({ "do": "tags", "shelf": 0 }),
        json!({ "do": "put", "key": "k", "content": "c" }),
        json!({ "do": "retire", "key": "absent" }),
        json!({ "do": "stamp", "id": "0" }),
        json!({ "do": "use", "ids": ["0"] }),
        json!({ "do": "note", "argument": "level" }),
        json!({ "do": "hold", "times": 1 }),
        // What the host refuses is counted, too.
        json!({ "do": "put", "key": "", "content": "" }),
        json!({ "do": "note", "argument": "nonsense" }),
    ] {
        let error = ended(&puppet, &session, ask(101, step));
        assert!(error.message.contains("too much"), "{error:?}");
    }
    assert_well(&puppet, &session);
}

#[test]
fn a_plugin_that_holds_very_many_handles_harms_nobody() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Restricted);
    let answer = session
        .told(json!([{ "do": "hold", "times": 5000 }]))
        .expect("it may");
    assert_eq!(answer[0]["ok"], 20_000);
    ended(
        puppet(),
        &session,
        json!([{ "do": "hold", "times": 200_000 }]),
    );
    assert_well(puppet(), &session);
}

#[test]
fn slow_sql_is_broken_off_at_the_deadline() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    static PATIENT: LazyLock<Plugin> = LazyLock::new(|| bounded(|options| options.fuel = u64::MAX));
    // Many large rows that all match, so that one search and one page have much to do.
    for round in 0..8 {
        let steps: Vec<Value> = (0..100)
            .map(|i| {
                let words: String = (0..2500)
                    .map(|w| format!("word{} ", (w * 7 + i) % 500))
                    .collect();
                json!({ "do": "put", "key": format!("k{round}-{i}"), "content": words })
            })
            .collect();
        run(&PATIENT, &session, Value::Array(steps)).expect("saved");
    }
    let hasty = bounded(|options| {
        options.fuel = u64::MAX;
        options.limits.time = Duration::from_millis(60);
    });
    let text: String = (0..100).map(|i| format!("word{i} ")).collect();
    let began = Instant::now();
    let steps = json!([{ "do": "shelves" }, { "do": "search", "shelf": 0, "text": text }]);
    let answer = run(&hasty, &session, steps);
    let took = began.elapsed();
    match &answer {
        // Broken off in the SQL, which the plugin hears of.
        Ok(answers) => assert_eq!(answers[1]["err"]["code"], "unavailable", "{answers:?}"),
        Err(error) => assert_eq!(error.code, "plugin_failed", "{error:?}"),
    }
    assert!(took < Duration::from_secs(5), "{took:?}");
    // And over many short ones, the deadline holds as well.
    let began = Instant::now();
    let step = json!({ "do": "search", "shelf": 0, "text": "word1" });
    let error = ended(
        &hasty,
        &session,
        json!([{ "do": "shelves" }, { "do": "repeat", "times": 90_000, "step": step }]),
    );
    assert!(error.message.contains("too much"), "{error:?}");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_well(puppet(), &session);
}

#[test]
fn a_huge_answer_is_an_answer_or_an_end_and_never_a_crash() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let answer = session
        .told(json!([{ "do": "huge", "bytes": 1_000_000 }]))
        .expect("an answer");
    assert_eq!(answer[0]["ok"].as_str().map(str::len), Some(1_000_000));
    ended(
        puppet(),
        &session,
        json!([{ "do": "huge", "bytes": 60_000_000 }]),
    );
    assert_well(puppet(), &session);
}

#[test]
fn a_forged_handle_reaches_nothing() {
    let sandbox = Sandbox::new();
    for level in Level::ALL {
        sandbox.at(level).save("k", &format!("words of {level}"));
    }
    for taint in Level::ALL {
        let session = sandbox.at(taint);
        let mut answered = 0;
        for handle in (0..24).chain([100, 65_536, u32::MAX / 2, u32::MAX - 1]) {
            let steps =
                json!([{ "do": "shelves" }, { "do": "forge", "handle": handle, "key": "k" }]);
            match run(puppet(), &session, steps) {
                // A handle that it holds anyway.
                Ok(answers) => {
                    answered += 1;
                    let level: Level = answers[1]["ok"]["level"]
                        .as_str()
                        .expect("a level")
                        .parse()
                        .expect("a level");
                    assert!(
                        remora_host::can_flow_to(level, taint),
                        "{taint}: {answers:?}"
                    );
                }
                Err(error) => assert_eq!(error.code, "plugin_failed"),
            }
        }
        assert_eq!(answered, Level::readable_at(taint).count(), "{taint}");
        // Before it has asked for any there is none.
        ended(
            puppet(),
            &session,
            json!([{ "do": "forge", "handle": 1, "key": "k" }]),
        );
    }
    assert_well(puppet(), &sandbox.at(Level::Public));
}

#[test]
fn a_dropped_handle_reaches_nothing() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Internal);
    session.save("k", "words");
    let numbers = session
        .told(json!([{ "do": "shelves" }, { "do": "handles" }]))
        .expect("numbers");
    let first = numbers[1]["ok"][0].clone();
    ended(
        puppet(),
        &session,
        json!([{ "do": "shelves" }, { "do": "drop", "shelf": 0 }, { "do": "forge", "handle": first, "key": "k" }]),
    );
    // The others stay good.
    let answers = session
        .told(json!([{ "do": "shelves" }, { "do": "drop", "shelf": 0 }, { "do": "level", "shelf": 0 }]))
        .expect("an answer");
    assert_eq!(answers[2]["ok"], "PUBLIC");
    assert_well(puppet(), &session);
}

#[test]
fn a_made_up_note_is_refused_and_a_known_one_says_no_more_than_that() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Internal);
    let long = "x".repeat(1_000_000);
    for argument in ["", "key", "Level", "level ", "heliotrope", &long] {
        let answer = session
            .told(json!([{ "do": "note", "argument": argument }]))
            .expect("an answer");
        assert_eq!(answer[0]["err"]["code"], "invalid_argument");
        assert!(!answer[0].to_string().contains("heliotrope"));
    }
    assert_eq!(sandbox.trail(Level::Internal), ["raise"]);
    session
        .told(json!([{ "do": "note", "argument": "taint" }]))
        .expect("an answer");
    let events = sandbox
        .store
        .events(AGENT, Level::Internal)
        .expect("a trail");
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].detail.as_deref(), Some("taint"));
}

#[test]
fn a_draft_outside_the_bounds_is_refused_by_the_host_alone() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let now = 1_796_000_673_000_i64;
    let put = |extra: Value| {
        let mut step = json!({ "do": "put", "key": "k", "content": "c" });
        for (name, value) in extra.as_object().expect("members") {
            step[name] = value.clone();
        }
        let answers = session.told(json!([step])).expect("the puppet answers");
        answers[0]["err"]["code"]
            .as_str()
            .unwrap_or("saved")
            .to_owned()
    };
    let tags: Vec<String> = (0..33).map(|i| format!("t{i:02}")).collect();
    let ids: Vec<String> = (0..101).map(|i| format!("{i:032x}")).collect();
    for (extra, code) in [
        (json!({ "key": "" }), "invalid_argument"),
        (json!({ "key": " k" }), "invalid_argument"),
        (json!({ "key": "a\nb" }), "invalid_argument"),
        (json!({ "key": "a\u{0}b" }), "invalid_argument"),
        (json!({ "key": "e\u{301}" }), "invalid_argument"),
        (json!({ "key": "k".repeat(257) }), "too_large"),
        (json!({ "key": "k".repeat(10_000_000) }), "too_large"),
        (json!({ "content": "" }), "invalid_argument"),
        (json!({ "fill": 262_144 }), "too_large"),
        (json!({ "fill": 10 * 1024 * 1024 }), "too_large"),
        (json!({ "tags": ["b", "a"] }), "invalid_argument"),
        (json!({ "tags": ["a", "a"] }), "invalid_argument"),
        (json!({ "tags": [""] }), "invalid_argument"),
        (json!({ "tags": ["a\u{0}"] }), "invalid_argument"),
        (json!({ "tags": ["x".repeat(65)] }), "too_large"),
        (json!({ "tags": tags }), "too_large"),
        (json!({ "source": "s".repeat(1025) }), "too_large"),
        (json!({ "expires_at": now }), "invalid_argument"),
        (json!({ "expires_at": 0 }), "invalid_argument"),
        (json!({ "expires_at": i64::MIN }), "invalid_argument"),
        (json!({ "expires_at": i64::MAX }), "invalid_argument"),
        (json!({ "supersedes": ids }), "too_large"),
        (json!({ "supersedes": ["nonsense"] }), "not_found"),
        (json!({ "supersedes": [""] }), "not_found"),
        (
            json!({ "supersedes": ["x".repeat(1_000_000)] }),
            "not_found",
        ),
    ] {
        let shown: String = extra.to_string().chars().take(80).collect();
        assert_eq!(put(extra), code, "{shown}");
    }
    assert!(session.list(json!({})).is_empty());
    assert_eq!(
        put(json!({ "content": "a\u{0}b", "expires_at": now + 1 })),
        "saved"
    );
    assert_eq!(session.get("k").as_deref(), Some("a\u{0}b"));
}

#[test]
fn wild_questions_get_bounded_answers() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    for i in 0..5 {
        session.save_tagged(&format!("k{i}"), "words", &["t"]);
    }
    let many_keys: Vec<String> = (0..501).map(|i| i.to_string()).collect();
    let long = "x".repeat(5_000_000);
    for (step, code) in [
        (json!({ "do": "fetch", "shelf": 0, "key": long }), None),
        (json!({ "do": "fetch", "shelf": 0, "key": "\u{0}" }), None),
        (json!({ "do": "fetch", "shelf": 0, "key": "%" }), None),
        (
            json!({ "do": "search", "shelf": 0, "text": long }),
            Some("too_large"),
        ),
        (
            json!({ "do": "search", "shelf": 0, "text": "words", "after": u32::MAX }),
            None,
        ),
        (
            json!({ "do": "search", "shelf": 0, "text": "words", "limit": 0 }),
            None,
        ),
        (json!({ "do": "search", "shelf": 0, "text": "" }), None),
        (json!({ "do": "page", "shelf": 0, "limit": 0 }), None),
        (json!({ "do": "page", "shelf": 0, "after": long }), None),
        (json!({ "do": "page", "shelf": 0, "excerpt": 0 }), None),
        (
            json!({ "do": "page", "shelf": 0, "tags": many_keys }),
            Some("too_large"),
        ),
        (
            json!({ "do": "present", "shelf": 0, "keys": many_keys }),
            Some("too_large"),
        ),
        (json!({ "do": "present", "shelf": 0, "keys": [] }), None),
        (json!({ "do": "tags", "shelf": 0, "limit": 0 }), None),
        (json!({ "do": "retire", "key": long }), Some("too_large")),
        (
            json!({ "do": "retire", "key": "" }),
            Some("invalid_argument"),
        ),
        (json!({ "do": "retire", "key": "%" }), None),
    ] {
        let answers = session
            .told(json!([{ "do": "shelves" }, step]))
            .expect("the puppet answers");
        let shown: String = step.to_string().chars().take(80).collect();
        assert_eq!(
            answers[1]["err"]["code"].as_str(),
            code,
            "{shown}: {}",
            answers[1]
        );
        if let Some(items) = answers[1]["ok"]["items"].as_array() {
            assert!(items.len() <= 2, "two rows at a time: {shown}");
        }
    }
    assert_eq!(session.list(json!({})).len(), 5);
    // However it asks, a plugin that follows `more` gets to the end.
    let (mut after, mut seen) = (Value::Null, Vec::new());
    loop {
        let answers = session
            .told(json!([{ "do": "shelves" }, { "do": "page", "shelf": 0, "after": after, "limit": 0 }]))
            .expect("a page");
        let page = &answers[1]["ok"];
        for item in page["items"].as_array().expect("items") {
            seen.push(item["key"].as_str().expect("a key").to_owned());
        }
        if page["more"] == json!(false) {
            break;
        }
        after = json!(seen.last().expect("a page that goes on has something"));
    }
    assert_eq!(seen, ["k0", "k1", "k2", "k3", "k4"]);
}

#[test]
fn ids_above_the_taint_are_as_good_as_made_up() {
    let sandbox = Sandbox::new();
    let secret = sandbox
        .at(Level::Restricted)
        .told(json!([{ "do": "put", "key": "secret", "content": "heliotrope" }]))
        .expect("saved");
    let id = secret[0]["ok"]["id"].as_str().expect("an id").to_owned();
    let session = sandbox.at(Level::Public);
    let told = |id: &str| {
        let answers = session
            .told(json!([{ "do": "put", "key": "mine", "content": "c", "supersedes": [id] }]))
            .expect("the puppet answers");
        answers[0].to_string().replace(id, "ID")
    };
    assert_eq!(told(&id), told("00000000000000000000000000000000"));
    assert_eq!(session.get("mine"), None);
    assert_eq!(
        sandbox.at(Level::Restricted).get("secret").as_deref(),
        Some("heliotrope")
    );
}

#[test]
fn a_plugin_learns_nothing_by_confirming_what_it_cannot_see() {
    let sandbox = Sandbox::new();
    let secret = sandbox
        .at(Level::Restricted)
        .told(json!([{ "do": "put", "key": "secret", "content": "heliotrope" }]))
        .expect("saved");
    let id = secret[0]["ok"]["id"].as_str().expect("an id").to_owned();
    let session = sandbox.at(Level::Public);
    let told = |id: &str| {
        let answers = session
            .told(json!([
                { "do": "stamp", "id": id, "source": "a guess" },
                { "do": "shelves" },
                { "do": "edges", "shelf": 0, "ids": [id] },
                { "do": "use", "ids": [id] },
                { "do": "used", "shelf": 0 },
            ]))
            .expect("the puppet answers");
        json!(answers).to_string().replace(id, "ID")
    };
    assert_eq!(told(&id), told("00000000000000000000000000000000"));
    // Not even a file comes of it.
    assert!(!sandbox.level_file(Level::Public).exists());
    let seen = sandbox
        .at(Level::Restricted)
        .told(json!([{ "do": "shelves" }, { "do": "fetch", "shelf": 0, "key": "secret" }]))
        .expect("the puppet answers");
    assert_eq!(seen[1]["ok"]["confirmed_at"], Value::Null);
}

#[test]
fn a_plugin_that_asks_of_too_many_at_once_is_told_how_many_may_be() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    session.save("k", "c");
    let many: Vec<String> = (0..501).map(|i| i.to_string()).collect();
    let answers = session
        .told(json!([
            { "do": "shelves" },
            { "do": "edges", "shelf": 0, "ids": many },
            { "do": "edges", "shelf": 0, "ids": many[1..] },
            { "do": "use", "ids": many },
            { "do": "stamp", "id": "0", "source": "s".repeat(1025) },
            { "do": "stale", "shelf": 0, "before": i64::MIN, "after": [i64::MAX, "x"] },
            { "do": "versions", "shelf": 0, "key": "k", "before": u64::MAX },
            { "do": "versions", "shelf": 0, "key": "k", "before": 0 },
            { "do": "used", "shelf": 0, "after": u32::MAX },
        ]))
        .expect("the puppet answers");
    assert_eq!(answers[1]["err"]["code"], "too_large");
    assert!(answers[1]["err"]["allowed"].to_string().contains("500"));
    assert_eq!(answers[2]["ok"], json!([]));
    assert_eq!(answers[3]["ok"], Value::Null);
    assert_eq!(answers[4]["err"]["code"], "too_large");
    for (answer, items) in answers[5..].iter().zip([0, 1, 0, 0]) {
        let found = answer["ok"]["items"].as_array().expect("items").len();
        assert_eq!(found, items, "{answer}");
    }
}

#[test]
fn a_plugin_asked_for_its_tools_reaches_no_memory() {
    let sandbox = Sandbox::new();
    sandbox.at(Level::Public).save("k", "word heliotrope");
    // The puppet tries everything when it is asked to describe itself.
    let tools = puppet().tools().expect("tools");
    let tried: Value = serde_json::from_str(&tools[0].description).expect("what it tried");
    assert!(!tried.to_string().contains("heliotrope"), "{tried}");
    for step in tried.as_array().expect("steps").iter().skip(3) {
        assert_eq!(step["err"]["code"], "refused", "{tried}");
    }
    for shelf in tried[2]["ok"].as_array().into_iter().flatten() {
        assert_eq!(shelf["fetch"]["err"]["code"], "refused", "{shelf}");
    }
    assert_eq!(sandbox.trail(Level::Public), ["save"]);
}

#[test]
fn failures_do_not_use_up_the_places_for_calls() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let puppet = bounded(|options| {
        options.concurrent_calls = 2;
        options.fuel = 20_000_000;
    });
    for step in ["spin", "recurse", "panic", "spin", "panic"] {
        ended(&puppet, &session, json!([{ "do": step }]));
    }
    assert_well(&puppet, &session);
    // And many at once wait for one another.
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope
                .spawn(|| run(&puppet, &session, json!([{ "do": "shelves" }])).expect("an answer"));
        }
    });
}

#[test]
fn a_plugin_cannot_write_where_the_session_may_not() {
    let sandbox = Sandbox::new();
    let session = sandbox
        .store
        .session(
            "cleared",
            &remora_host::SessionOptions::new(AGENT).clearance(Level::Internal),
        )
        .expect("a session");
    session.save("k", "c");
    session.raise(Level::Restricted).expect("recorded");
    let answers = session
        .told(json!([
            { "do": "put", "key": "k", "content": "leak" },
            { "do": "put", "key": "new", "content": "leak" },
            { "do": "retire", "key": "k" },
            { "do": "retire", "key": "k", "hide_lower": true },
            { "do": "stamp", "id": "00000000000000000000000000000000" },
            { "do": "shelves" },
            { "do": "session" },
        ]))
        .expect("the puppet answers");
    for answer in &answers[..5] {
        assert_eq!(answer["err"]["code"], "refused", "{answer}");
    }
    // Nothing says what was observed.
    assert_eq!(answers[5]["ok"], json!(["PUBLIC"]));
    assert!(
        !json!(answers).to_string().contains("RESTRICTED"),
        "{answers:?}"
    );
    assert_eq!(session.get("k").as_deref(), Some("c"));
    assert_eq!(session.get("new"), None);
}
