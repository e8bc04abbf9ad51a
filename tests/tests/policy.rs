//! The policy, a test for each promise, across the real component and real files.
//! The store reads two rows at a time.

use remora_host::{ErrorKind, Level, Origin, Session, SessionOptions};
use remora_tests::{AGENT, Calls, Sandbox, keys, remora};
use serde_json::{Value, json};

use crate::processes;

const PUBLIC: Level = Level::Public;
const INTERNAL: Level = Level::Internal;
const CONFIDENTIAL: Level = Level::Confidential;
const RESTRICTED: Level = Level::Restricted;

/// A call of every tool.
pub fn every_tool() -> [(&'static str, Value); 6] {
    [
        ("memory_save", json!({ "key": "k", "content": "c" })),
        ("memory_get", json!({ "key": "k" })),
        ("memory_search", json!({ "query": "word" })),
        ("memory_list", json!({})),
        ("memory_delete", json!({ "key": "k" })),
        ("memory_status", json!({})),
    ]
}

/// The rows of a query on a level's file, joined with `|`.
pub fn rows(sandbox: &Sandbox, level: Level, sql: &str) -> Vec<String> {
    let db = rusqlite::Connection::open(sandbox.level_file(level)).expect("the file");
    let mut statement = db.prepare(sql).expect("a statement");
    let columns = statement.column_count();
    let rows = statement
        .query_map([], |row| {
            let values: Vec<String> = (0..columns)
                .map(|i| match row.get_ref(i) {
                    Ok(rusqlite::types::ValueRef::Text(text)) => {
                        String::from_utf8_lossy(text).into_owned()
                    }
                    Ok(value) => format!("{value:?}"),
                    Err(error) => error.to_string(),
                })
                .collect();
            Ok(values.join("|"))
        })
        .expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

#[test]
fn a_memory_saved_in_a_confidential_session_is_confidential() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(CONFIDENTIAL);
    assert_eq!(session.save("k", "words")["classification"], "CONFIDENTIAL");
    assert_eq!(
        session.ask("memory_get", json!({ "key": "k" }))["classification"],
        "CONFIDENTIAL"
    );
    assert_eq!(
        rows(&sandbox, CONFIDENTIAL, "SELECT content FROM record"),
        ["words"]
    );
    for other in [PUBLIC, INTERNAL, RESTRICTED] {
        assert!(
            !sandbox.level_file(other).exists()
                || rows(&sandbox, other, "SELECT content FROM record").is_empty(),
            "{other}"
        );
    }
}

#[test]
fn a_public_session_cannot_read_it() {
    let sandbox = Sandbox::new();
    sandbox
        .at(CONFIDENTIAL)
        .save_tagged("k", "heliotrope words", &["periwinkle"]);
    let session = sandbox.at(PUBLIC);
    assert_eq!(session.get("k"), None);
    assert!(session.search("heliotrope words").is_empty());
    assert!(session.list(json!({})).is_empty());
    assert!(session.list(json!({ "tag": "periwinkle" })).is_empty());
    assert_eq!(
        session.code("memory_delete", json!({ "key": "k" })),
        "not_found"
    );
    assert_eq!(
        session.code("memory_delete", json!({ "key": "k", "hide_lower": true })),
        "not_found"
    );
    let status = session.ask("memory_status", json!({}));
    assert_eq!(status["shelves"].as_array().map(Vec::len), Some(1));
    assert!(!status.to_string().contains("periwinkle"));
    assert_eq!(
        sandbox.at(CONFIDENTIAL).get("k").as_deref(),
        Some("heliotrope words")
    );
}

#[test]
fn a_confidential_session_reads_confidential_internal_and_public() {
    let sandbox = Sandbox::new();
    for level in Level::ALL {
        sandbox.at(level).save(level.name(), "words of it");
    }
    let session = sandbox.at(CONFIDENTIAL);
    let readable = ["CONFIDENTIAL", "INTERNAL", "PUBLIC"];
    for level in readable {
        let found = session.ask("memory_get", json!({ "key": level }));
        assert_eq!(found["classification"], level);
    }
    assert_eq!(session.get("RESTRICTED"), None);
    assert_eq!(session.list(json!({})), readable);
    let mut found = session.search("words");
    found.sort();
    assert_eq!(found, readable);
}

#[test]
fn of_one_key_on_two_levels_the_higher_visible_one_is_returned_and_each_lower_session_sees_only_its_own()
 {
    let sandbox = Sandbox::new();
    for level in [INTERNAL, RESTRICTED] {
        sandbox
            .at(level)
            .save("k", &format!("the words of {level}"));
    }
    let seen = |level: Level| {
        let session = sandbox.at(level);
        let list = session.ask("memory_list", json!({}));
        let search = session.ask("memory_search", json!({ "query": "words" }));
        let get = session.get("k");
        for records in [&list["memories"], &search["results"]] {
            let contents: Vec<&str> = records
                .as_array()
                .expect("records")
                .iter()
                .filter_map(|record| record["content"].as_str())
                .collect();
            assert_eq!(contents, Vec::from_iter(get.as_deref()), "{level}");
        }
        get
    };
    assert_eq!(seen(PUBLIC), None);
    assert_eq!(seen(INTERNAL).as_deref(), Some("the words of INTERNAL"));
    assert_eq!(seen(CONFIDENTIAL).as_deref(), Some("the words of INTERNAL"));
    assert_eq!(seen(RESTRICTED).as_deref(), Some("the words of RESTRICTED"));
}

#[test]
fn a_lower_version_is_no_hit_though_only_it_matches() {
    let sandbox = Sandbox::new();
    sandbox.at(PUBLIC).save("k", "heliotrope");
    sandbox.at(INTERNAL).save("k", "something else");
    assert_eq!(sandbox.at(PUBLIC).search("heliotrope"), ["k"]);
    assert!(sandbox.at(INTERNAL).search("heliotrope").is_empty());
    assert!(sandbox.at(RESTRICTED).search("heliotrope").is_empty());
}

#[test]
fn a_delete_touches_the_sessions_own_level_only_and_names_the_lower_version_that_is_now_visible() {
    let sandbox = Sandbox::new();
    for level in Level::ALL {
        sandbox.at(level).save("k", level.name());
    }
    let answer = sandbox
        .at(CONFIDENTIAL)
        .ask("memory_delete", json!({ "key": "k" }));
    assert_eq!(answer["deleted"], true);
    assert_eq!(answer["classification"], "CONFIDENTIAL");
    assert_eq!(answer["still_visible"], "INTERNAL");
    assert_eq!(
        sandbox.at(CONFIDENTIAL).get("k").as_deref(),
        Some("INTERNAL")
    );
    for level in [PUBLIC, INTERNAL, RESTRICTED] {
        assert_eq!(sandbox.at(level).get("k").as_deref(), Some(level.name()));
    }
    // Once more there is nothing of its own to delete.
    assert_eq!(
        sandbox
            .at(CONFIDENTIAL)
            .code("memory_delete", json!({ "key": "k" })),
        "no_such_record_at_level"
    );
    assert_eq!(sandbox.at(INTERNAL).get("k").as_deref(), Some("INTERNAL"));
    assert_eq!(
        sandbox
            .at(PUBLIC)
            .ask("memory_delete", json!({ "key": "k" }))["still_visible"],
        Value::Null
    );
}

#[test]
fn a_delete_hides_and_keeps_the_record() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(INTERNAL);
    session.save_tagged("k", "heliotrope", &["t"]);
    session.ask("memory_delete", json!({ "key": "k" }));
    assert_eq!(session.get("k"), None);
    assert!(session.search("heliotrope").is_empty());
    assert!(session.list(json!({})).is_empty());
    assert!(session.list(json!({ "tag": "t" })).is_empty());
    assert_eq!(
        rows(
            &sandbox,
            INTERNAL,
            "SELECT content, deleted_at IS NOT NULL FROM record"
        ),
        ["heliotrope|Integer(1)"]
    );
}

#[test]
fn hide_lower_leaves_a_tombstone_that_shadows_from_its_level_up() {
    let sandbox = Sandbox::new();
    sandbox.at(PUBLIC).save("k", "heliotrope");
    let answer = sandbox
        .at(INTERNAL)
        .ask("memory_delete", json!({ "key": "k", "hide_lower": true }));
    assert_eq!(answer["still_visible"], Value::Null);
    assert_eq!(sandbox.at(PUBLIC).get("k").as_deref(), Some("heliotrope"));
    for level in [INTERNAL, CONFIDENTIAL, RESTRICTED] {
        let session = sandbox.at(level);
        assert_eq!(session.get("k"), None, "{level}");
        assert!(session.search("heliotrope").is_empty(), "{level}");
        assert!(session.list(json!({})).is_empty(), "{level}");
    }
    // Saving there again ends it.
    sandbox.at(INTERNAL).save("k", "again");
    assert_eq!(sandbox.at(RESTRICTED).get("k").as_deref(), Some("again"));
}

#[test]
fn what_the_model_deletes_does_not_silence_the_person() {
    let sandbox = Sandbox::new();
    let model = sandbox
        .store
        .session(
            "model",
            &SessionOptions::new(AGENT)
                .taint(CONFIDENTIAL)
                .origin(Origin::Agent),
        )
        .expect("a session");
    model.save("k", "poison");
    model.ask("memory_delete", json!({ "key": "k", "hide_lower": true }));
    sandbox.at(PUBLIC).save("k", "heliotrope");
    for session in [
        sandbox.at(CONFIDENTIAL),
        sandbox.at(RESTRICTED),
        model.clone(),
    ] {
        assert_eq!(session.get("k").as_deref(), Some("heliotrope"));
        assert_eq!(session.search("heliotrope"), ["k"]);
        assert_eq!(session.list(json!({})), ["k"]);
    }
    // The person's own tombstone hides it, and the model does not undo that.
    sandbox
        .at(CONFIDENTIAL)
        .ask("memory_delete", json!({ "key": "k", "hide_lower": true }));
    let answer = model.ask("memory_save", json!({ "key": "k", "content": "x" }));
    assert_eq!(answer["outcome"], "pending");
    assert_eq!(sandbox.at(CONFIDENTIAL).get("k"), None);
    assert_eq!(sandbox.at(PUBLIC).get("k").as_deref(), Some("heliotrope"));
}

#[test]
fn a_deleted_key_can_be_saved_again() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(CONFIDENTIAL);
    for hide_lower in [false, true] {
        session.save("k", "first");
        session.ask(
            "memory_delete",
            json!({ "key": "k", "hide_lower": hide_lower }),
        );
        let again = session.save("k", "first");
        assert_eq!(again["saved"], true);
        assert_eq!(again["outcome"], "created");
        assert_eq!(session.get("k").as_deref(), Some("first"));
        assert_eq!(session.search("first"), ["k"]);
    }
}

#[test]
fn a_classification_argument_from_the_model_changes_nothing_is_audited_and_noticed() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(CONFIDENTIAL);
    for (argument, value) in [
        ("classification", json!("PUBLIC")),
        ("level", json!("PUBLIC")),
        ("taint", json!(0)),
        ("origin", json!("USER")),
    ] {
        let before = sandbox.trail(CONFIDENTIAL).len();
        let answer = session.ask(
            "memory_save",
            json!({ "key": argument, "content": "c", argument: value }),
        );
        assert_eq!(answer["classification"], "CONFIDENTIAL");
        let notices = answer["notices"].as_array().expect("notices");
        assert!(
            notices
                .iter()
                .any(|notice| notice.as_str().is_some_and(|n| n.contains(argument))),
            "{answer}"
        );
        let trail = sandbox.trail(CONFIDENTIAL);
        assert_eq!(trail[before..], ["argument-ignored", "save"], "{argument}");
        assert_eq!(sandbox.at(PUBLIC).get(argument), None);
    }
    // Neither does it open anything to a lower session.
    let lower = sandbox.at(PUBLIC);
    let answer = lower.ask(
        "memory_get",
        json!({ "key": "level", "taint": "RESTRICTED", "level": "RESTRICTED" }),
    );
    assert_eq!(answer["found"], false);
    assert_eq!(
        sandbox.trail(PUBLIC),
        ["argument-ignored", "argument-ignored"]
    );
}

#[test]
fn what_was_read_high_cannot_be_saved_low() {
    let sandbox = Sandbox::new();
    sandbox.at(RESTRICTED).save("secret", "heliotrope");
    let session = sandbox.session("worker");
    session.save("before", "harmless");
    session.raise(RESTRICTED).expect("a raise");
    let words = session.get("secret").expect("it may read");
    let answer = session.ask(
        "memory_save",
        json!({ "key": "copy", "content": words, "classification": "PUBLIC" }),
    );
    assert_eq!(answer["classification"], "RESTRICTED");
    for level in [PUBLIC, INTERNAL, CONFIDENTIAL] {
        let lower = sandbox.at(level);
        assert_eq!(lower.get("copy"), None, "{level}");
        assert!(lower.search("heliotrope").is_empty(), "{level}");
    }
    // Not by changing what it wrote before it was raised, either.
    session.save("before", "heliotrope");
    assert_eq!(
        sandbox.at(PUBLIC).get("before").as_deref(),
        Some("harmless")
    );
    // And the words are in no lower file.
    for level in [PUBLIC, INTERNAL, CONFIDENTIAL] {
        for file in files_of(&sandbox, level) {
            let bytes = std::fs::read(&file).expect("a file");
            assert!(
                !bytes.windows(10).any(|window| window == b"heliotrope"),
                "{file:?}"
            );
        }
    }
}

fn files_of(sandbox: &Sandbox, level: Level) -> Vec<std::path::PathBuf> {
    let file = sandbox.level_file(level);
    let wal = file.with_extension("db-wal");
    [file, wal]
        .into_iter()
        .filter(|file| file.exists())
        .collect()
}

#[test]
fn a_raise_in_the_middle_of_a_session_governs_the_next_call() {
    let sandbox = Sandbox::new();
    sandbox.at(CONFIDENTIAL).save("secret", "words");
    let session = sandbox.session("worker");
    assert_eq!(session.get("secret"), None);
    assert_eq!(session.save("mine", "one")["classification"], "PUBLIC");
    session.raise(CONFIDENTIAL).expect("a raise");
    // Reads and writes alike.
    assert_eq!(session.get("secret").as_deref(), Some("words"));
    assert_eq!(
        session.save("mine", "two")["classification"],
        "CONFIDENTIAL"
    );
    assert_eq!(
        session.ask("memory_status", json!({}))["classification"],
        "CONFIDENTIAL"
    );
    assert_eq!(sandbox.at(PUBLIC).get("mine").as_deref(), Some("one"));
    assert!(
        sandbox
            .trail(CONFIDENTIAL)
            .iter()
            .any(|kind| kind == "raise")
    );
}

#[test]
fn a_raise_by_another_process_governs_the_next_call() {
    let sandbox = Sandbox::new();
    sandbox.at(CONFIDENTIAL).save("secret", "words");
    let session = sandbox.session("worker");
    assert_eq!(session.get("secret"), None);
    let output = processes::child("policy::raise_the_worker", &sandbox.path(), "CONFIDENTIAL")
        .output()
        .expect("a child");
    processes::said(output);
    assert_eq!(session.get("secret").as_deref(), Some("words"));
    assert_eq!(
        session.save("mine", "two")["classification"],
        "CONFIDENTIAL"
    );
    // By another value in this process, too.
    let other = sandbox.reopen().expect("a store");
    other
        .existing_session("worker")
        .expect("the session")
        .raise(RESTRICTED)
        .expect("a raise");
    assert_eq!(
        session.save("mine", "three")["classification"],
        "RESTRICTED"
    );
}

#[test]
fn raise_the_worker() {
    let Some((store, level)) = processes::told() else {
        return;
    };
    let clock = std::sync::Arc::default();
    let store = remora_tests::open(&store, &clock).expect("a store");
    let session = store.existing_session("worker").expect("the session");
    session
        .raise(level.parse().expect("a level"))
        .expect("a raise");
}

#[test]
fn a_raise_governs_a_one_shot_session_alike() {
    let sandbox = Sandbox::new();
    sandbox.at(INTERNAL).save("secret", "words");
    let session = sandbox
        .store
        .one_shot(&SessionOptions::new(AGENT))
        .expect("a session");
    assert_eq!(session.get("secret"), None);
    session.raise(INTERNAL).expect("a raise");
    assert_eq!(session.get("secret").as_deref(), Some("words"));
    assert_eq!(session.save("mine", "c")["classification"], "INTERNAL");
}

#[test]
fn a_raise_above_the_clearance_unlocks_nothing_and_ends_writing() {
    let sandbox = Sandbox::new();
    sandbox.at(INTERNAL).save("internal", "words");
    sandbox.at(CONFIDENTIAL).save("secret", "heliotrope");
    let options = SessionOptions::new(AGENT).clearance(INTERNAL);
    let kept = sandbox
        .store
        .session("cleared", &options)
        .expect("a session");
    let once = sandbox.store.one_shot(&options).expect("a session");
    for (session, key) in [(kept, "kept"), (once, "once")] {
        session.save(key, "before");
        let row = session.raise(CONFIDENTIAL).expect("recorded");
        assert_eq!(row.taint, PUBLIC);
        assert_eq!(row.observed, Some(CONFIDENTIAL));
        assert_eq!(session.get("secret"), None);
        assert_eq!(session.get("internal"), None);
        assert!(session.search("heliotrope").is_empty());
        // What it could read it still can.
        assert_eq!(session.get(key).as_deref(), Some("before"));
        assert_eq!(
            session.code("memory_save", json!({ "key": key, "content": "after" })),
            "refused"
        );
        assert_eq!(
            session.code("memory_save", json!({ "key": "new", "content": "after" })),
            "refused"
        );
        assert_eq!(
            session.code("memory_delete", json!({ "key": key })),
            "refused"
        );
        assert_eq!(
            session.code("memory_delete", json!({ "key": key, "hide_lower": true })),
            "refused"
        );
        assert_eq!(session.get(key).as_deref(), Some("before"));
        // A raise within the clearance afterwards gives reading, not writing.
        session.raise(INTERNAL).expect("a raise");
        assert_eq!(session.get("internal").as_deref(), Some("words"));
        assert_eq!(
            session.code("memory_save", json!({ "key": key, "content": "after" })),
            "refused"
        );
        assert_eq!(session.get("secret"), None);
    }
    // From then on all that it does may tell of what it observed, refusals too, so
    // they are in the trail of that level and in no lower one.
    for level in [PUBLIC, INTERNAL] {
        let trail = sandbox.trail(level);
        let hears = trail.iter().filter(|kind| *kind != "save").count();
        assert_eq!(
            hears,
            usize::from(level == INTERNAL),
            "the raise of INTERNAL's own: {trail:?}"
        );
    }
    let above = sandbox.trail(CONFIDENTIAL);
    let count = |kind: &str| above.iter().filter(|event| *event == kind).count();
    assert_eq!(count("raise"), 5, "{above:?}");
    assert_eq!(count("write-refused"), 10, "{above:?}");
    // And it is no less true tomorrow.
    let again = sandbox
        .reopen()
        .expect("a store")
        .existing_session("cleared")
        .expect("it");
    assert_eq!(
        again.code("memory_save", json!({ "key": "k", "content": "c" })),
        "refused"
    );
}

#[test]
fn taint_survives_a_restart_and_never_falls() {
    let mut sandbox = Sandbox::new();
    let session = sandbox.session("worker");
    session.raise(CONFIDENTIAL).expect("a raise");
    for lower in [PUBLIC, INTERNAL] {
        assert_eq!(session.raise(lower).expect("no change").taint, CONFIDENTIAL);
    }
    drop(session);
    for _ in 0..3 {
        sandbox.store = sandbox.reopen().expect("a store");
        for taint in [None, Some(PUBLIC), Some(INTERNAL), Some(CONFIDENTIAL)] {
            let mut options = SessionOptions::new(AGENT);
            options.taint = taint;
            let session = sandbox
                .store
                .session("worker", &options)
                .expect("the session");
            assert_eq!(session.state().expect("its row").taint, CONFIDENTIAL);
            assert_eq!(session.save("k", "c")["classification"], "CONFIDENTIAL");
        }
    }
    let higher = SessionOptions::new(AGENT).taint(RESTRICTED);
    let session = sandbox
        .store
        .session("worker", &higher)
        .expect("the session");
    assert_eq!(session.save("k", "c")["classification"], "RESTRICTED");
}

#[test]
fn a_clearance_stays_and_a_session_belongs_to_one_agent() {
    let sandbox = Sandbox::new();
    let options = SessionOptions::new(AGENT).clearance(INTERNAL);
    sandbox.store.session("s", &options).expect("a session");
    let other = SessionOptions::new(AGENT).clearance(RESTRICTED);
    let error = sandbox
        .store
        .session("s", &other)
        .expect_err("another clearance");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = sandbox
        .store
        .session("s", &SessionOptions::new("mallory"))
        .expect_err("another agent");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!error.to_string().contains(AGENT), "{error}");
}

#[test]
fn one_agent_sees_nothing_of_another() {
    let sandbox = Sandbox::new();
    sandbox.at(PUBLIC).save_tagged("k", "heliotrope", &["t"]);
    let other = sandbox
        .store
        .session("theirs", &SessionOptions::new("somebody").taint(RESTRICTED))
        .expect("a session");
    assert_eq!(other.get("k"), None);
    assert!(other.search("heliotrope").is_empty());
    assert!(other.list(json!({})).is_empty());
    assert_eq!(
        other.code("memory_delete", json!({ "key": "k" })),
        "not_found"
    );
    other.save("k", "theirs");
    assert_eq!(
        sandbox.at(RESTRICTED).get("k").as_deref(),
        Some("heliotrope")
    );
}

/// Whatever is done to `sessions.db`: no call of any session is answered, old or
/// new, kept or not.
fn assert_every_call_is_refused(sessions: &[Session], what: &str) {
    for session in sessions {
        for (tool, arguments) in every_tool() {
            let answer = session.raw(tool, &arguments.to_string());
            let error = answer.expect_err(&format!("{what}: {tool} answered"));
            assert_eq!(error.code, "unavailable", "{what}: {error:?}");
            assert!(!error.message.contains("heliotrope"), "{what}: {error:?}");
        }
        assert!(session.state().is_err(), "{what}");
        let steps = json!([{ "do": "shelves" }]);
        assert!(
            session.told(steps).is_err(),
            "{what}: the puppet was let in"
        );
    }
}

/// Whether a process that runs already may go on with what it has read: only
/// where the file was written over behind SQLite's back, and then only as what
/// it was.
#[derive(Clone, Copy, PartialEq)]
enum Running {
    Refused,
    RefusedOrTrue,
}

fn control_plane(what: &str, running: Running, break_it: impl FnOnce(&Sandbox)) {
    let sandbox = Sandbox::new();
    sandbox.at(RESTRICTED).save("k", "heliotrope");
    let sessions = [
        sandbox.at(PUBLIC),
        sandbox.at(RESTRICTED),
        sandbox
            .store
            .one_shot(&SessionOptions::new(AGENT).taint(RESTRICTED))
            .expect("a session"),
    ];
    rusqlite::Connection::open(sessions_db(&sandbox))
        .and_then(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
        .expect("a checkpoint");
    break_it(&sandbox);
    match running {
        Running::Refused => assert_every_call_is_refused(&sessions, what),
        Running::RefusedOrTrue => {
            if let Ok(answer) = sessions[0].raw("memory_get", r#"{"key":"k"}"#) {
                assert!(answer.contains(r#""found":false"#), "{what}: {answer}");
            }
            if let Ok(row) = sessions[0].state() {
                assert_eq!(row.taint, PUBLIC, "{what}");
            }
        }
    }
    // A process that comes later is refused in any case.
    if let Ok(store) = sandbox.reopen() {
        for name in ["PUBLIC", "RESTRICTED", "another"] {
            if let Ok(session) = store.session(name, &SessionOptions::new(AGENT)) {
                assert_every_call_is_refused(&[session], what);
            }
        }
        if let Ok(session) = store.one_shot(&SessionOptions::new(AGENT).taint(RESTRICTED)) {
            assert_every_call_is_refused(&[session], what);
        }
    }
}

fn sessions_db(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.path().join("sessions.db")
}

#[test]
fn a_control_plane_that_is_gone_refuses_every_call() {
    control_plane("gone", Running::Refused, |sandbox| {
        for file in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
            drop(std::fs::remove_file(sandbox.path().join(file)));
        }
    });
}

#[test]
fn a_control_plane_of_garbage_refuses_every_call() {
    control_plane("garbage", Running::RefusedOrTrue, |sandbox| {
        std::fs::write(sessions_db(sandbox), vec![0xa5; 64 * 1024]).expect("written");
    });
    control_plane("empty", Running::RefusedOrTrue, |sandbox| {
        std::fs::write(sessions_db(sandbox), b"").expect("written");
    });
}

#[test]
fn a_control_plane_that_became_a_folder_refuses_every_call() {
    control_plane("a folder", Running::Refused, |sandbox| {
        std::fs::remove_file(sessions_db(sandbox)).expect("removed");
        std::fs::create_dir(sessions_db(sandbox)).expect("made");
    });
}

#[test]
fn a_control_plane_of_another_store_refuses_every_call() {
    control_plane("another store's", Running::Refused, |sandbox| {
        let other = Sandbox::new();
        for level in Level::ALL {
            other.at(level).save("k", "c");
        }
        let db = rusqlite::Connection::open(sessions_db(&other)).expect("a file");
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .expect("a checkpoint");
        drop(db);
        let bytes = std::fs::read(sessions_db(&other)).expect("a file");
        for side in ["sessions.db-wal", "sessions.db-shm"] {
            drop(std::fs::remove_file(sandbox.path().join(side)));
        }
        let file = sessions_db(sandbox);
        std::fs::remove_file(&file).expect("removed");
        std::fs::write(&file, bytes).expect("written");
    });
}

/// An old copy has good seals, and would undo a raise.
#[test]
fn a_control_plane_put_back_to_an_earlier_state_refuses_every_call() {
    let sandbox = Sandbox::new();
    sandbox.at(RESTRICTED).save("k", "heliotrope");
    let session = sandbox.session("worker");
    let checkpoint = || {
        rusqlite::Connection::open(sessions_db(&sandbox))
            .and_then(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .expect("a checkpoint");
    };
    checkpoint();
    let earlier = sandbox.path().join("earlier.db");
    std::fs::copy(sessions_db(&sandbox), &earlier).expect("copied");
    session.raise(RESTRICTED).expect("a raise");
    checkpoint();
    for side in ["sessions.db-wal", "sessions.db-shm"] {
        drop(std::fs::remove_file(sandbox.path().join(side)));
    }
    std::fs::rename(&earlier, sessions_db(&sandbox)).expect("put back");
    assert_every_call_is_refused(
        &[
            session,
            sandbox
                .store
                .one_shot(&SessionOptions::new(AGENT))
                .expect("a session"),
        ],
        "put back",
    );
}

#[test]
fn a_session_row_with_any_column_changed_refuses_every_call() {
    for (column, value) in [
        ("taint", "'RESTRICTED'"),
        ("taint", "'restricted'"),
        ("taint", "'nonsense'"),
        ("clearance", "'RESTRICTED'"),
        ("clearance", "'restricted'"),
        ("agent", "'somebody'"),
        ("origin", "'user'"),
        ("observed", "NULL"),
        ("created_at", "'2000-01-01 00:00:00.000'"),
        ("updated_at", "'2000-01-01 00:00:00.000'"),
        ("seal", "zeroblob(32)"),
        ("seal", "(SELECT seal FROM session WHERE name = 'other')"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.at(RESTRICTED).save("k", "heliotrope");
        let options = SessionOptions::new(AGENT)
            .clearance(INTERNAL)
            .origin(Origin::Agent);
        let session = sandbox
            .store
            .session("worker", &options)
            .expect("a session");
        session.raise(CONFIDENTIAL).expect("recorded");
        sandbox
            .store
            .session("other", &SessionOptions::new(AGENT))
            .expect("a session");
        let db = rusqlite::Connection::open(sessions_db(&sandbox)).expect("a file");
        db.pragma_update(None, "ignore_check_constraints", true)
            .expect("set");
        let changed = db
            .execute(
                &format!("UPDATE session SET {column} = {value} WHERE name = 'worker' AND {column} IS NOT {value}"),
                [],
            )
            .expect("changed");
        drop(db);
        if changed == 0 {
            // This spelling is the one in use.
            continue;
        }
        assert_every_call_is_refused(&[session], &format!("{column} = {value}"));
        // It is that session's row alone.
        assert_eq!(
            sandbox.at(RESTRICTED).get("k").as_deref(),
            Some("heliotrope")
        );
    }
}

#[test]
fn a_session_row_under_another_name_or_gone_refuses_every_call() {
    for sql in [
        "DELETE FROM session WHERE name = 'PUBLIC'",
        "DELETE FROM session WHERE name = 'PUBLIC';
         UPDATE session SET name = 'PUBLIC' WHERE name = 'RESTRICTED'",
    ] {
        let sandbox = Sandbox::new();
        sandbox.at(RESTRICTED).save("k", "heliotrope");
        let session = sandbox.at(PUBLIC);
        let db = rusqlite::Connection::open(sessions_db(&sandbox)).expect("a file");
        db.execute_batch(sql).expect("changed");
        drop(db);
        assert_every_call_is_refused(&[session], sql);
    }
}

#[test]
fn any_flipped_bit_in_a_session_row_refuses_its_calls() {
    let sandbox = Sandbox::new();
    sandbox.at(RESTRICTED).save("k", "heliotrope");
    // A name to find the row by.
    let name = "zanzibar-session";
    let session = sandbox
        .store
        .session(name, &SessionOptions::new(AGENT).taint(INTERNAL))
        .expect("a session");
    let before = session.state().expect("its row");
    let file = sessions_db(&sandbox);
    rusqlite::Connection::open(&file)
        .and_then(|db| db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"))
        .expect("a checkpoint");
    let original = std::fs::read(&file).expect("the file");
    let at = original
        .windows(name.len())
        .rposition(|window| window == name.as_bytes())
        .expect("the row");
    let mut refused = 0;
    for offset in (at..at + 170).step_by(3) {
        let mut bytes = original.clone();
        bytes[offset] ^= 1 << (offset % 8);
        std::fs::write(&file, &bytes).expect("written");
        let store = match sandbox.reopen() {
            Ok(store) => store,
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        match store.existing_session(name) {
            // What answers is what was there: the bit was in no part of the row.
            Ok(session) => match session.state() {
                Ok(row) => assert_eq!(row, before, "byte {offset}"),
                Err(_) => refused += 1,
            },
            Err(_) => refused += 1,
        }
    }
    assert!(
        refused > 30,
        "only {refused} of the flipped bits were noticed"
    );
}

#[test]
fn an_unreadable_control_plane_refuses_every_call() {
    let sandbox = Sandbox::new();
    sandbox.at(RESTRICTED).save("k", "heliotrope");
    processes::set_mode(&sessions_db(&sandbox), 0o000);
    let wrapper = processes::bound_by_permissions();
    let output = processes::child_under(
        &wrapper,
        "policy::ask_without_a_control_plane",
        &sandbox.path(),
        "",
    )
    .output()
    .expect("a child");
    processes::set_mode(&sessions_db(&sandbox), 0o600);
    processes::said(output);
}

#[test]
fn ask_without_a_control_plane() {
    let Some((path, _)) = processes::told() else {
        return;
    };
    let clock = std::sync::Arc::default();
    let Ok(store) = remora_tests::open(&path, &clock) else {
        return;
    };
    for session in [
        store.existing_session("RESTRICTED"),
        store.session("new", &SessionOptions::new(AGENT)),
        store.one_shot(&SessionOptions::new(AGENT).taint(RESTRICTED)),
    ]
    .into_iter()
    .flatten()
    {
        for (tool, arguments) in every_tool() {
            let error = session
                .raw(tool, &arguments.to_string())
                .expect_err("no answer");
            assert_eq!(error.code, "unavailable");
        }
    }
}

#[test]
fn the_same_bytes_answer_for_hidden_and_for_absent() {
    /// Everything a PUBLIC session is told about `k`.
    fn told(sandbox: &Sandbox) -> Vec<String> {
        let session = sandbox.at(PUBLIC);
        let mut answers = Vec::new();
        for (tool, arguments) in [
            ("memory_get", json!({ "key": "k" })),
            ("memory_search", json!({ "query": "heliotrope words" })),
            ("memory_list", json!({})),
            ("memory_list", json!({ "tag": "t" })),
            (
                "memory_list",
                json!({ "tags": ["t", "u"], "match": "all", "limit": 1 }),
            ),
            ("memory_status", json!({})),
            ("memory_delete", json!({ "key": "k" })),
            ("memory_delete", json!({ "key": "k", "hide_lower": true })),
            // Saving over it shows nothing, either.
            ("memory_save", json!({ "key": "k", "content": "mine" })),
            ("memory_save", json!({ "key": "k", "content": "mine" })),
            (
                "memory_save",
                json!({ "key": "k", "content": "mine again" }),
            ),
            ("memory_get", json!({ "key": "k" })),
            ("memory_search", json!({ "query": "heliotrope words mine" })),
            ("memory_delete", json!({ "key": "k" })),
            ("memory_get", json!({ "key": "k" })),
        ] {
            answers.push(format!(
                "{tool} {arguments}: {:?}",
                session.raw(tool, &arguments.to_string())
            ));
        }
        answers
    }
    let absent = told(&Sandbox::new());
    for level in [INTERNAL, CONFIDENTIAL, RESTRICTED] {
        let sandbox = Sandbox::new();
        sandbox
            .at(level)
            .save_tagged("k", "heliotrope words", &["t", "u"]);
        assert_eq!(told(&sandbox), absent, "with a {level} record");
        let sandbox = Sandbox::new();
        sandbox
            .at(level)
            .save_tagged("k", "heliotrope words", &["t", "u"]);
        sandbox
            .at(level)
            .ask("memory_delete", json!({ "key": "k", "hide_lower": true }));
        assert_eq!(told(&sandbox), absent, "with a {level} tombstone");
    }
}

#[test]
fn a_deleted_an_expired_and_an_absent_memory_are_the_same() {
    let told = |sandbox: &Sandbox| -> Vec<String> {
        let session = sandbox.at(PUBLIC);
        [
            ("memory_get", json!({ "key": "k" })),
            ("memory_search", json!({ "query": "heliotrope" })),
            ("memory_list", json!({})),
            ("memory_list", json!({ "tag": "t" })),
            ("memory_status", json!({})),
            ("memory_delete", json!({ "key": "k" })),
        ]
        .map(|(tool, arguments)| format!("{tool}: {:?}", session.raw(tool, &arguments.to_string())))
        .to_vec()
    };
    let sandbox = Sandbox::new();
    sandbox.clock.advance(1000);
    let absent = told(&sandbox);

    let sandbox = Sandbox::new();
    sandbox.at(PUBLIC).save_tagged("k", "heliotrope", &["t"]);
    sandbox
        .at(PUBLIC)
        .ask("memory_delete", json!({ "key": "k" }));
    sandbox.clock.advance(1000);
    assert_eq!(told(&sandbox), absent, "deleted");

    let sandbox = Sandbox::new();
    sandbox
        .at(PUBLIC)
        .told(json!([{ "do": "put", "key": "k", "content": "heliotrope", "tags": ["t"], "expires_at": 1_796_000_674_000_i64 }]))
        .expect("saved");
    assert_eq!(sandbox.at(PUBLIC).get("k").as_deref(), Some("heliotrope"));
    sandbox.clock.advance(1000);
    assert_eq!(told(&sandbox), absent, "expired");
}

#[test]
fn list_filters_by_tag_after_shadowing() {
    let sandbox = Sandbox::new();
    sandbox.at(PUBLIC).save_tagged("k", "old", &["draft"]);
    sandbox.at(PUBLIC).save_tagged("other", "old", &["draft"]);
    sandbox.at(INTERNAL).save_tagged("k", "new", &["final"]);
    let higher = sandbox.at(INTERNAL);
    // The version that carries the tag is shadowed by one that does not.
    assert_eq!(higher.list(json!({ "tag": "draft" })), ["other"]);
    assert_eq!(higher.list(json!({ "tag": "final" })), ["k"]);
    assert_eq!(
        higher.list(json!({ "tags": ["draft", "final"] })),
        ["k", "other"]
    );
    assert!(
        higher
            .list(json!({ "tags": ["draft", "final"], "match": "all" }))
            .is_empty()
    );
    assert_eq!(
        sandbox.at(PUBLIC).list(json!({ "tag": "draft" })),
        ["k", "other"]
    );
    // A tombstone shadows as well.
    sandbox.at(INTERNAL).ask(
        "memory_delete",
        json!({ "key": "other", "hide_lower": true }),
    );
    assert!(higher.list(json!({ "tag": "draft" })).is_empty());
}

#[test]
fn hidden_rows_never_crowd_visible_ones_out_of_a_page() {
    let sandbox = Sandbox::new();
    let (public, internal, restricted) = (
        sandbox.at(PUBLIC),
        sandbox.at(INTERNAL),
        sandbox.at(RESTRICTED),
    );
    // Of 40 keys on PUBLIC, INTERNAL shadows all but every fifth, RESTRICTED has
    // versions of all, and what shadows neither matches nor carries the tag.
    let mut visible = Vec::new();
    for i in 0..40 {
        let key = format!("k{i:02}");
        public.save_tagged(&key, "heliotrope words", &["t"]);
        restricted.save_tagged(&key, "heliotrope heliotrope heliotrope", &["t"]);
        if i % 5 == 4 {
            visible.push(key);
        } else if i % 5 == 3 {
            internal.ask("memory_delete", json!({ "key": key, "hide_lower": true }));
        } else {
            internal.save_tagged(&key, "nothing of the kind", &["u"]);
        }
    }
    for limit in [1, 2, 3, 7, 8, 200] {
        assert_eq!(
            internal.list(json!({ "tag": "t", "limit": limit })),
            visible,
            "limit {limit}"
        );
        let all = internal.list(json!({ "limit": limit }));
        assert_eq!(all.len(), 32, "limit {limit}");
        assert!(all.is_sorted());
    }
    // A page that could be full is full.
    let page = internal.ask("memory_list", json!({ "tag": "t", "limit": 5 }));
    assert_eq!(keys(&page["memories"]), visible[..5]);
    assert!(page["next_cursor"].is_string());
    let page = internal.ask("memory_list", json!({ "tag": "t", "limit": 8 }));
    assert_eq!(page["next_cursor"], Value::Null);
    for most in [1, 2, 5, 8, 100] {
        let answer = internal.ask(
            "memory_search",
            json!({ "query": "heliotrope", "max_results": most }),
        );
        let found = keys(&answer["results"]);
        assert_eq!(
            found,
            visible[..most.min(visible.len())],
            "max_results {most}"
        );
        for hit in answer["results"].as_array().expect("results") {
            assert_eq!(hit["classification"], "PUBLIC");
        }
    }
    assert_eq!(restricted.search("heliotrope").len(), 40);
}

#[test]
fn superseded_and_expired_rows_never_crowd_live_ones_out_of_a_page() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(PUBLIC);
    for round in 0..3 {
        for i in 0..12 {
            session.save_tagged(&format!("k{i:02}"), &format!("heliotrope {round}"), &["t"]);
        }
    }
    let mut steps = Vec::new();
    for i in 0..30 {
        steps.push(json!({
            "do": "put", "key": format!("a{i:02}"), "content": "heliotrope", "tags": ["t"],
            "expires_at": 1_796_000_673_001_i64,
        }));
    }
    session.told(Value::Array(steps)).expect("saved");
    sandbox.clock.advance(1);
    let expected: Vec<String> = (0..12).map(|i| format!("k{i:02}")).collect();
    assert_eq!(session.list(json!({ "limit": 5 })), expected);
    assert_eq!(session.list(json!({ "limit": 5, "tag": "t" })), expected);
    assert_eq!(session.search("heliotrope").len(), 12);
    let few = session.ask(
        "memory_search",
        json!({ "query": "heliotrope", "max_results": 3 }),
    );
    assert_eq!(keys(&few["results"]).len(), 3);
}

#[test]
fn a_save_above_public_says_that_sessions_below_will_not_see_it() {
    let sandbox = Sandbox::new();
    for level in Level::ALL {
        let answer = sandbox.at(level).save("k", "c");
        let said = answer["notices"].to_string().contains("will not see");
        assert_eq!(said, level != PUBLIC, "{answer}");
    }
}

#[test]
fn nothing_in_a_plugins_memory_reaches_the_next_call() {
    let sandbox = Sandbox::new();
    let high = sandbox.at(RESTRICTED);
    let low = sandbox.at(PUBLIC);
    for (session, word) in [(&high, "secret"), (&low, "a"), (&low, "b")] {
        let answer = session
            .told(json!([{ "do": "remember", "word": word }]))
            .expect("an answer");
        assert_eq!(answer[0]["ok"], Value::Null);
    }
}

#[test]
fn a_call_that_cannot_be_made_says_the_same_to_every_session() {
    let sandbox = Sandbox::new();
    sandbox.at(RESTRICTED).save("k", "c");
    let messages: Vec<_> = Level::ALL
        .into_iter()
        .map(|level| {
            remora()
                .invoke(&sandbox.at(level), "memory_forget", "{}")
                .expect_err("unknown")
        })
        .collect();
    assert!(messages.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(messages[0].code, "unknown_tool");
}
