//! Disks, files and rows that are not as they should be: an error that says which
//! and what to do, while the other levels still answer.

use std::fs;
use std::path::Path;

use remora_host::{ErrorKind, Level, SessionOptions, Store, ToolError};
use remora_tests::{AGENT, Calls, Sandbox, folder};
use serde_json::json;

use crate::processes;

/// Takes everything out of a file's write-ahead log, so that its bytes are the
/// whole truth.
fn checkpoint(file: &Path) {
    let db = rusqlite::Connection::open(file).expect("the file");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("a checkpoint");
}

fn sql(file: &Path, statements: &str) {
    let db = rusqlite::Connection::open(file).expect("the file");
    // Whoever alters a file is not held up by its own rules.
    db.pragma_update(None, "ignore_check_constraints", true)
        .expect("set");
    db.execute_batch(statements).expect("changed");
}

/// A memory on each level.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    for level in Level::ALL {
        sandbox
            .at(level)
            .save_tagged(level.name(), &format!("heliotrope of {level}"), &["t"]);
        checkpoint(&sandbox.level_file(level));
    }
    sandbox
}

/// A session that sees the broken level gets an error about it, and one that does
/// not gets what it always got.
fn assert_only_it_is_broken(sandbox: &Sandbox, broken: Level) -> ToolError {
    // Opened again: what was read before may be in memory.
    let store = sandbox.reopen().expect("the store opens");
    let key = json!({ "key": broken.name() });
    let mut said = None;
    for level in Level::ALL {
        let session = remora_tests::at(&store, level);
        if !remora_host::can_flow_to(broken, level) {
            assert_eq!(
                session.list(json!({})).len(),
                Level::readable_at(level).count()
            );
            session.save(level.name(), "another version");
            continue;
        }
        for (tool, arguments) in [
            ("memory_get", key.clone()),
            ("memory_search", json!({ "query": "heliotrope" })),
            ("memory_list", json!({})),
        ] {
            let error = session
                .raw(tool, &arguments.to_string())
                .expect_err(&format!("{tool} at {level} answered"));
            assert_eq!(error.code, "unavailable", "{error:?}");
            assert!(error.message.contains(broken.name()), "{error:?}");
            assert!(!error.message.contains("heliotrope"), "{error:?}");
            said = Some(error);
        }
        // What lies above needs not what lies below.
        if level != broken {
            assert_eq!(
                session.get(level.name()),
                Some(format!("heliotrope of {level}")),
                "{level} with {broken} broken"
            );
        }
    }
    said.expect("somebody sees it")
}

#[test]
fn a_level_file_of_garbage_is_damaged_and_the_others_answer() {
    for broken in Level::ALL {
        let sandbox = filled();
        let file = sandbox.level_file(broken);
        let size = fs::metadata(&file).expect("the file").len();
        fs::write(&file, vec![0x5a; usize::try_from(size).expect("small")]).expect("written");
        let error = assert_only_it_is_broken(&sandbox, broken);
        assert!(error.message.contains("damaged"), "{error:?}");
    }
}

#[test]
fn garbage_in_the_middle_of_a_level_file_is_never_served() {
    // From some page on, everything is something else.
    for from in [1, 2, 4, 8] {
        let sandbox = filled();
        let file = sandbox.level_file(Level::Internal);
        let mut bytes = fs::read(&file).expect("the file");
        let middle = (from * 4096).min(bytes.len());
        for (i, byte) in bytes.iter_mut().enumerate().skip(middle) {
            *byte = (i % 251) as u8;
        }
        fs::write(&file, bytes).expect("written");
        let store = sandbox.reopen().expect("the store opens");
        let session = remora_tests::at(&store, Level::Internal);
        match session.raw("memory_get", r#"{"key":"INTERNAL"}"#) {
            Ok(answer) => {
                assert!(
                    answer.contains("heliotrope of INTERNAL"),
                    "{from}: {answer}"
                );
            }
            Err(error) => assert_eq!(error.code, "unavailable", "{error:?}"),
        }
        for (tool, arguments) in crate::policy::every_tool() {
            if let Err(error) = session.raw(tool, &arguments.to_string()) {
                assert!(
                    ["unavailable", "not_found"].contains(&error.code.as_str()),
                    "{from}: {tool}: {error:?}"
                );
            }
        }
        assert_eq!(
            remora_tests::at(&store, Level::Public)
                .get("PUBLIC")
                .as_deref(),
            Some("heliotrope of PUBLIC")
        );
    }
}

#[test]
fn a_record_with_any_column_changed_is_never_served() {
    for (column, value) in [
        ("content", "'heliotrope forged'"),
        ("key", "'forged'"),
        ("tags", "'[\"forged\"]'"),
        ("origin", "'TOOL'"),
        ("origin", "'nobody'"),
        ("source", "'the person'"),
        ("session", "'another'"),
        ("version", "7"),
        ("created_at", "'2001-01-01 00:00:00.000'"),
        ("updated_at", "'2001-01-01 00:00:00.000'"),
        ("confirmed_at", "'2026-01-01 00:00:00.000'"),
        ("expires_at", "'2030-01-01 00:00:00.000'"),
        ("id", "'00000000000000000000000000000000'"),
        ("seal", "zeroblob(32)"),
        ("supersedes", "'[\"x\"]'"),
    ] {
        let sandbox = filled();
        let file = sandbox.level_file(Level::Public);
        sql(&file, &format!("UPDATE record SET {column} = {value}"));
        let store = sandbox.reopen().expect("the store opens");
        let session = remora_tests::at(&store, Level::Public);
        for key in ["PUBLIC", "forged"] {
            match session.raw("memory_get", &json!({ "key": key }).to_string()) {
                Ok(answer) => assert!(answer.contains(r#""found":false"#), "{column}: {answer}"),
                Err(error) => {
                    assert_eq!(error.code, "unavailable", "{column}: {error:?}");
                    assert!(error.message.contains("altered"), "{column}: {error:?}");
                }
            }
        }
        for (tool, arguments) in [
            ("memory_list", json!({})),
            ("memory_search", json!({ "query": "heliotrope" })),
        ] {
            let error = session
                .raw(tool, &arguments.to_string())
                .expect_err(&format!("{column}: {tool} answered"));
            assert_eq!(error.code, "unavailable", "{column}: {error:?}");
        }
        // And the other levels answer.
        assert!(
            remora_tests::at(&store, Level::Internal)
                .get("INTERNAL")
                .is_some()
        );
    }
}

#[test]
fn an_edge_that_was_changed_is_noticed() {
    for change in [
        "new_id = old_id",
        "at = '2001-01-01 00:00:00.000'",
        "session = 'x'",
        "seal = zeroblob(32)",
    ] {
        let sandbox = Sandbox::new();
        let session = sandbox.at(Level::Public);
        session.save("k", "heliotrope");
        let high = sandbox.at(Level::Internal);
        let seen = high
            .told(json!([{ "do": "shelves" }, { "do": "fetch", "shelf": 1, "key": "k" }]))
            .expect("it reads");
        high.told(json!([{
            "do": "put", "key": "new", "content": "marmalade", "supersedes": [seen[1]["ok"]["id"]],
        }]))
        .expect("saved");
        assert_eq!(high.get("k"), None);
        sql(
            &sandbox.level_file(Level::Internal),
            &format!("UPDATE edge SET {change}"),
        );
        let error = high.raw("memory_get", r#"{"key":"k"}"#).expect_err(change);
        assert_eq!(error.code, "unavailable", "{change}: {error:?}");
        // Lower sessions have nothing to do with it.
        assert_eq!(session.get("k").as_deref(), Some("heliotrope"));
    }
}

#[test]
fn an_endorsement_by_hand_is_noticed() {
    let sandbox = Sandbox::new();
    let session = sandbox
        .store
        .session(
            "tool",
            &SessionOptions::new(AGENT).origin(remora_host::Origin::Tool),
        )
        .expect("a session");
    assert_eq!(session.save("k", "heliotrope")["standing"], "quarantined");
    assert_eq!(session.get("k"), None);
    sql(
        &sandbox.level_file(Level::Public),
        "UPDATE record SET standing = 'trusted'",
    );
    let error = session
        .raw("memory_get", r#"{"key":"k"}"#)
        .expect_err("noticed");
    assert_eq!(error.code, "unavailable");
}

#[test]
fn a_row_of_another_level_or_agent_is_never_served() {
    let copy = |from: &Path, to: &Path| {
        sql(
            to,
            &format!(
                "ATTACH '{}' AS other;
                 DELETE FROM record;
                 INSERT INTO record SELECT * FROM other.record;",
                from.display()
            ),
        );
    };
    let sandbox = filled();
    copy(
        &sandbox.level_file(Level::Restricted),
        &sandbox.level_file(Level::Public),
    );
    let store = sandbox.reopen().expect("the store opens");
    let session = remora_tests::at(&store, Level::Public);
    let error = session
        .raw("memory_get", r#"{"key":"RESTRICTED"}"#)
        .expect_err("noticed");
    assert!(error.message.contains("altered"), "{error:?}");
    for (tool, arguments) in [
        ("memory_list", "{}"),
        ("memory_search", r#"{"query":"heliotrope"}"#),
    ] {
        if let Ok(answer) = session.raw(tool, arguments) {
            assert!(!answer.contains("RESTRICTED"), "{tool}: {answer}");
        }
    }

    let sandbox = filled();
    let theirs = sandbox
        .store
        .session("theirs", &SessionOptions::new("somebody"))
        .expect("a session");
    theirs.save("theirs", "marmalade");
    copy(
        &remora_tests::level_file(&sandbox.path(), "somebody", Level::Public),
        &sandbox.level_file(Level::Public),
    );
    let store = sandbox.reopen().expect("the store opens");
    let session = remora_tests::at(&store, Level::Public);
    let error = session
        .raw("memory_get", r#"{"key":"theirs"}"#)
        .expect_err("noticed");
    assert!(error.message.contains("altered"), "{error:?}");
}

#[test]
fn a_file_under_another_levels_or_agents_name_is_refused() {
    // RESTRICTED under PUBLIC's name: the worst that a slip of the hand could do.
    let sandbox = filled();
    for side in ["", "-wal", "-shm"] {
        let of = |level: Level| {
            let mut name = sandbox.level_file(level).into_os_string();
            name.push(side);
            name
        };
        drop(fs::remove_file(of(Level::Public)));
        drop(fs::rename(of(Level::Restricted), of(Level::Public)));
    }
    // Whether the store was open or not.
    for store in [
        sandbox.store.clone(),
        sandbox.reopen().expect("the store opens"),
    ] {
        let session = remora_tests::at(&store, Level::Public);
        for (tool, arguments) in crate::policy::every_tool() {
            let error = match session.raw(tool, &arguments.to_string()) {
                // It says what the session is, and that the level has nothing.
                Ok(answer) => panic!("{tool} answered {answer}"),
                Err(error) => error,
            };
            assert_eq!(error.code, "unavailable", "{tool}: {error:?}");
            assert!(!error.message.contains("heliotrope"));
        }
    }

    let sandbox = filled();
    sandbox
        .store
        .session("theirs", &SessionOptions::new("somebody"))
        .expect("a session")
        .save("k", "marmalade");
    let theirs = remora_tests::level_file(&sandbox.path(), "somebody", Level::Public);
    checkpoint(&theirs);
    let ours = sandbox.level_file(Level::Public);
    fs::remove_file(&ours).expect("removed");
    fs::copy(&theirs, &ours).expect("copied");
    let store = sandbox.reopen().expect("the store opens");
    let error = remora_tests::at(&store, Level::Public)
        .raw("memory_get", r#"{"key":"k"}"#)
        .expect_err("another agent's");
    assert_eq!(error.code, "unavailable");
}

#[test]
fn a_file_of_another_store_is_refused() {
    let (sandbox, other) = (filled(), filled());
    let (ours, theirs) = (
        sandbox.level_file(Level::Public),
        other.level_file(Level::Public),
    );
    fs::remove_file(&ours).expect("removed");
    fs::copy(theirs, &ours).expect("copied");
    assert_only_it_is_broken(&sandbox, Level::Public);
}

#[test]
fn a_level_file_that_is_a_link_is_refused() {
    let sandbox = filled();
    let file = sandbox.level_file(Level::Public);
    let elsewhere = sandbox.path().join("elsewhere.db");
    fs::rename(&file, &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, &file).expect("linked");
    let store = sandbox.reopen().expect("the store opens");
    let error = remora_tests::at(&store, Level::Public)
        .raw("memory_get", r#"{"key":"PUBLIC"}"#)
        .expect_err("a link");
    assert_eq!(error.code, "unavailable");
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    let sandbox = filled();
    let file = sandbox.level_file(Level::Confidential);
    sql(&file, "PRAGMA user_version = 9999");
    checkpoint(&file);
    let before = fs::read(&file).expect("the file");
    let error = assert_only_it_is_broken(&sandbox, Level::Confidential);
    assert!(
        error.message.contains("newer") && error.message.contains("9999"),
        "{error:?}"
    );
    let store = sandbox.reopen().expect("the store opens");
    let error = remora_tests::at(&store, Level::Confidential)
        .raw("memory_save", r#"{"key":"k","content":"c"}"#)
        .expect_err("not written either");
    assert_eq!(error.code, "unavailable");
    assert_eq!(fs::read(&file).expect("the file"), before);

    let sandbox = filled();
    let sessions = sandbox.path().join("sessions.db");
    sql(&sessions, "PRAGMA user_version = 9999");
    let refused = match sandbox.reopen() {
        Ok(store) => store
            .session("new", &SessionOptions::new(AGENT))
            .expect_err("newer"),
        Err(error) => error,
    };
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.to_string().contains("newer"), "{refused}");
}

#[test]
fn an_audit_trail_that_was_cut_or_changed_is_noticed() {
    for change in [
        "DROP TRIGGER event_never_goes; DELETE FROM event WHERE number = (SELECT max(number) FROM event)",
        "DROP TRIGGER event_never_goes; DELETE FROM event WHERE number = 2",
        "DROP TRIGGER event_never_goes; DELETE FROM event",
        "DROP TRIGGER event_never_changes; UPDATE event SET session = 'another' WHERE number = 1",
        "DROP TRIGGER event_never_changes; UPDATE event SET kind = 'delete' WHERE number = 2",
        "DROP TRIGGER event_never_changes; UPDATE event SET detail = NULL WHERE number = 3",
        "DROP TRIGGER event_never_changes; UPDATE event SET record = NULL WHERE number = 3",
        "DELETE FROM meta WHERE name = 'audit_head'; DROP TRIGGER event_never_goes; DELETE FROM event",
    ] {
        let sandbox = Sandbox::new();
        let session = sandbox.at(Level::Public);
        for i in 0..4 {
            session.save(&format!("k{i}"), "words");
        }
        assert_eq!(sandbox.trail(Level::Public), ["save"; 4]);
        sql(&sandbox.level_file(Level::Public), change);
        for store in [
            sandbox.store.clone(),
            sandbox.reopen().expect("the store opens"),
        ] {
            let error = store.events(AGENT, Level::Public).expect_err(change);
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{change}");
        }
    }
    // By plain SQL it can't be done by mistake.
    let sandbox = Sandbox::new();
    sandbox.at(Level::Public).save("k", "words");
    let db = rusqlite::Connection::open(sandbox.level_file(Level::Public)).expect("the file");
    assert!(db.execute("DELETE FROM event", []).is_err());
    assert!(db.execute("UPDATE event SET kind = 'x'", []).is_err());
}

#[test]
fn the_audit_trail_holds_no_key_no_tag_and_no_words() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Internal);
    session.ask(
        "memory_save",
        json!({ "key": "heliotrope", "content": "marmalade", "tags": ["periwinkle"], "source": "chrysalis", "level": "gossamer" }),
    );
    session.ask("memory_delete", json!({ "key": "heliotrope" }));
    let rows = crate::policy::rows(&sandbox, Level::Internal, "SELECT * FROM event");
    assert_eq!(rows.len(), 4, "{rows:?}");
    for word in [
        "heliotrope",
        "marmalade",
        "periwinkle",
        "chrysalis",
        "gossamer",
    ] {
        assert!(!rows.join("\n").contains(word), "{rows:?}");
    }
}

#[test]
fn a_store_that_is_no_folder_says_so() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("written");
    let error = Store::open(&file).expect_err("a file");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("not a directory"), "{error}");
    let error = Store::open(file.join("under/it")).expect_err("under a file");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("not a directory"), "{error}");
}

#[test]
fn a_missing_folder_is_made_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = folder.path().join("a b/Masaüstü/日本 \"%41\"");
    let store = Store::open(&path).expect("a store");
    let session = store
        .session("s", &SessionOptions::new("Bahadır/../x"))
        .expect("a session");
    session.save("k", "words");
    assert_eq!(session.get("k").as_deref(), Some("words"));
    let mut seen = 0;
    let mut look = vec![path.clone()];
    while let Some(folder) = look.pop() {
        assert_eq!(
            fs::metadata(&folder).expect("it").permissions().mode() & 0o777,
            0o700,
            "{folder:?}"
        );
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                look.push(path);
            } else {
                let mode = fs::metadata(&path).expect("it").permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{path:?}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 3);
    assert!(!folder.path().join("x").exists());
}

#[test]
fn a_lost_or_shared_key_refuses_everything() {
    let sandbox = filled();
    let key = sandbox.path().join("store.key");
    processes::set_mode(&key, 0o644);
    let error = sandbox.reopen().expect_err("others can read it");
    assert!(error.to_string().contains("chmod 600"), "{error}");
    processes::set_mode(&key, 0o600);
    let secret = fs::read(&key).expect("the key");
    for wrong in [&b""[..], &secret[..31], &[&secret[..], b"x"].concat()] {
        fs::write(&key, wrong).expect("written");
        assert!(sandbox.reopen().is_err());
    }
    // Another key unseals nothing.
    fs::write(&key, [7; 32]).expect("written");
    let refused = sandbox
        .reopen()
        .and_then(|store| store.existing_session("PUBLIC"));
    assert!(refused.is_err());
    fs::remove_file(&key).expect("removed");
    assert!(sandbox.reopen().is_err());
    assert!(!key.exists(), "no key is made for a store in use");
    fs::write(&key, secret).expect("written");
    processes::set_mode(&key, 0o600);
    let store = sandbox.reopen().expect("as it was");
    assert!(
        remora_tests::at(&store, Level::Public)
            .get("PUBLIC")
            .is_some()
    );
}

/// A file-size limit is what a full disk looks like to one process: writing
/// fails, reading does not.
#[test]
fn a_full_disk_loses_nothing_and_says_so() {
    let folder = folder();
    let path = folder.path().join("store");
    let limited = [
        "sh",
        "-c",
        r#"trap '' XFSZ; ulimit -f 3000; exec "$@""#,
        "sh",
    ];
    let output =
        processes::child_under(&limited, "trouble::save_until_the_disk_is_full", &path, "")
            .output()
            .expect("a child");
    let acknowledged = processes::said(output);
    assert!(acknowledged.len() > 5, "{acknowledged:?}");
    // With space again everything acknowledged is there, and saving goes on.
    let sandbox = Sandbox::in_folder(folder);
    let session = sandbox.at(Level::Public);
    assert_eq!(session.list(json!({ "limit": 200 })), acknowledged);
    assert_eq!(session.search("heliotrope").len(), acknowledged.len());
    let check = crate::policy::rows(&sandbox, Level::Public, "PRAGMA integrity_check");
    assert_eq!(check, ["ok"]);
    session.save("again", "there is space");
    assert_eq!(sandbox.trail(Level::Public).len(), acknowledged.len() + 1);
}

#[test]
fn save_until_the_disk_is_full() {
    let Some((path, _)) = processes::told() else {
        return;
    };
    let store = Store::open(&path).expect("a store");
    let session = store
        .session("worker", &SessionOptions::new(AGENT))
        .expect("a session");
    for i in 0..1000 {
        let key = format!("k{i:04}");
        let content = format!("heliotrope {}", "x".repeat(100_000));
        let arguments = json!({ "key": key, "content": content }).to_string();
        match session.raw("memory_save", &arguments) {
            Ok(_) => processes::say(&key),
            Err(error) => {
                assert_eq!(error.code, "unavailable", "{error:?}");
                assert!(error.message.contains("disk"), "{error:?}");
                // Reading goes on, and a failed save shows nowhere.
                assert_eq!(session.get("k0000").map(|c| c.len()), Some(100_011));
                assert_eq!(session.get(&key), None);
                assert_eq!(session.list(json!({ "limit": 200 })).len(), i);
                return;
            }
        }
    }
    panic!("the disk was never full");
}

#[test]
fn a_read_only_store_still_answers_or_says_that_it_is_read_only() {
    let folder = folder();
    let path = folder.path().join("store");
    {
        let sandbox = Sandbox::in_folder(folder);
        sandbox.at(Level::Public).save("k", "words");
        let mut folders = vec![
            path.clone(),
            path.join("agents"),
            path.join("agents").join(AGENT),
        ];
        let mut files = Vec::new();
        for folder in &folders {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_file() {
                    files.push(path);
                }
            }
        }
        for file in &files {
            processes::set_mode(file, 0o400);
        }
        for folder in &folders {
            processes::set_mode(folder, 0o500);
        }
        let wrapper = processes::bound_by_permissions();
        let output = processes::child_under(&wrapper, "trouble::use_a_read_only_store", &path, "")
            .output()
            .expect("a child");
        folders.reverse();
        for folder in &folders {
            processes::set_mode(folder, 0o700);
        }
        for file in &files {
            processes::set_mode(file, 0o600);
        }
        processes::said(output);
        assert_eq!(sandbox.at(Level::Public).get("k").as_deref(), Some("words"));
    }
}

#[test]
fn use_a_read_only_store() {
    let Some((path, _)) = processes::told() else {
        return;
    };
    let says_why = |text: &str| {
        assert!(
            [
                "read-only",
                "may not be opened",
                "permission",
                "can't be opened"
            ]
            .iter()
            .any(|why| text.contains(why)),
            "{text}"
        );
    };
    let store = match Store::open(&path) {
        Ok(store) => store,
        Err(error) => return says_why(&error.to_string()),
    };
    let session = match store.existing_session("PUBLIC") {
        Ok(session) => session,
        Err(error) => return says_why(&error.to_string()),
    };
    match session.raw("memory_get", r#"{"key":"k"}"#) {
        Ok(answer) => assert!(answer.contains("words"), "{answer}"),
        Err(error) => says_why(&error.message),
    }
    let error = session
        .raw("memory_save", r#"{"key":"k","content":"c"}"#)
        .expect_err("read-only");
    assert_eq!(error.code, "unavailable");
    says_why(&error.message);
}
