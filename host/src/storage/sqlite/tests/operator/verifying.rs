//! Verify.

use super::*;
use crate::storage::{ControlPlane as _, NewSession};

/// A store with something of everything.
fn rich() -> Store {
    let store = Store::new();
    store
        .storage
        .create(
            &NewSession {
                name: "s".to_owned(),
                agent: "main".to_owned(),
                clearance: R,
                origin: Origin::User,
            },
            at(0),
        )
        .unwrap();
    for level in [P, C] {
        let old = store.save(level, "old", "zebra").id;
        store
            .agent(level)
            .put(&Draft {
                supersedes: vec![old],
                ..tagged("new", &["a", "b"])
            })
            .unwrap();
        store.save(level, "gone", "x");
        store.delete(level, "gone");
        store.agent(level).put(&expiring("brief", 1)).unwrap();
    }
    let id = live(store.agent(P).fetch(P, "new").unwrap()).id;
    let mut above = store.agent(C);
    above.fetch(P, "new").unwrap();
    above.stamp(&id, Some("checked")).unwrap();
    drop(above);
    store
        .operator(0)
        .purge(
            None,
            &operator::Purge::key("gone"),
            Duration::ZERO,
            &mut quietly,
        )
        .unwrap();
    store
}

#[test]
fn a_store_that_nobody_touched_is_sound_and_everything_is_counted() {
    let store = rich();
    let mut heard = 0;
    let verified = store.operator(0).verify(None, &mut |_| heard += 1).unwrap();
    assert_eq!(verified.findings, []);
    assert!(verified.is_sound());
    assert_eq!(verified.files, 3);
    assert_eq!((verified.records, verified.edges), (6, 2));
    assert_eq!((verified.stamps, verified.erased), (1, 4));
    assert_eq!((verified.sessions, verified.events), (1, 13));
    assert!(heard > 0);
    let json = serde_json::to_string(&verified).unwrap();
    assert!(json.contains(r#""findings":[]"#), "{json}");
}

#[test]
fn whatever_is_done_by_hand_is_found_and_said_where() {
    for (check, change) in [
        (
            "record",
            "UPDATE record SET content = 'other' WHERE key = 'old'",
        ),
        (
            "record",
            "UPDATE record SET superseded_at = NULL WHERE key = 'old'",
        ),
        ("record", "UPDATE record SET seal = zeroblob(32)"),
        (
            "index",
            "UPDATE record SET content = 'other' WHERE key = 'new'",
        ),
        ("index", "DELETE FROM memory_words_data WHERE id > 10"),
        ("index", "DELETE FROM memory_grams_data WHERE id > 10"),
        ("index", "DELETE FROM memory_key WHERE words = 'new'"),
        (
            "index",
            "UPDATE memory_key SET seq = 99 WHERE words = 'new'",
        ),
        ("index", "DELETE FROM record WHERE key = 'new'"),
        (
            "index",
            "INSERT INTO memory_words (memory_words, rowid, key, content, tags)
             SELECT 'delete', min(doc), 'new', 'word', 'a b' FROM memory_word_terms
             WHERE term = 'new'",
        ),
        (
            "index",
            "INSERT INTO memory_words (rowid, key, content, tags)
             SELECT 32 * seq, 'old', 'zebra', '' FROM record WHERE key = 'old'",
        ),
        (
            "index",
            "INSERT INTO memory_grams (memory_grams, rowid, grams)
             SELECT 'delete', min(doc), min(term) FROM memory_gram_terms",
        ),
        (
            "index",
            "INSERT INTO memory_grams (rowid, grams)
             SELECT 32 * seq, 'zeb' FROM record WHERE key = 'old'",
        ),
        ("tags", "DELETE FROM record_tag WHERE tag = 'a'"),
        ("tags", "UPDATE record_tag SET tag = 'c' WHERE tag = 'a'"),
        ("tags", "UPDATE record_tag SET key = 'c' WHERE tag = 'a'"),
        (
            "tags",
            "INSERT INTO record_tag SELECT 'x', key, seq FROM record WHERE key = 'old'",
        ),
        (
            "foreign-keys",
            "INSERT INTO record_tag VALUES ('x', 'k', 999)",
        ),
        ("edge", "UPDATE edge SET at = '2020-01-01 00:00:00.000'"),
        ("stamp", "UPDATE stamp SET source = 'other'"),
        ("stamp", "UPDATE stamp SET latest = 0"),
        ("erased", "UPDATE erased SET digest = NULL"),
        (
            "erased",
            "UPDATE erased SET record_id = (SELECT id FROM record WHERE key = 'old')
             WHERE record_id = (SELECT min(record_id) FROM erased)",
        ),
        (
            "meta",
            "UPDATE meta SET seal = zeroblob(32) WHERE name = 'audit_head'",
        ),
        ("meta", "INSERT INTO meta VALUES ('x', 'y', zeroblob(32))"),
        (
            "audit",
            "DROP TRIGGER event_never_goes; DELETE FROM event WHERE number = 3",
        ),
        (
            "audit",
            "UPDATE meta SET value = '4' WHERE name = 'audit_head'",
        ),
        (
            "file",
            "UPDATE meta SET value = 'other' WHERE name = 'agent'",
        ),
        ("file", "PRAGMA user_version = 99"),
    ] {
        let store = rich();
        let db = store.by_hand(C);
        db.execute_batch(&format!("PRAGMA foreign_keys = OFF; {change}"))
            .unwrap();
        let verified = store.verified();
        let found: Vec<&str> = verified
            .findings
            .iter()
            .map(|finding| finding.check.as_str())
            .collect();
        assert!(found.contains(&check), "{change}: {verified:?}");
        for finding in &verified.findings {
            assert_eq!(finding.file, "agents/main/confidential.db", "{change}");
            assert_eq!(
                (finding.agent.as_deref(), finding.level),
                (Some("main"), Some(C))
            );
            assert!(!finding.what.contains("zebra"), "{finding:?}");
        }
    }
}

#[test]
fn a_session_that_was_altered_is_found() {
    let store = rich();
    Connection::open(store.root().join("sessions.db"))
        .unwrap()
        .execute("UPDATE session SET taint = 'RESTRICTED'", [])
        .unwrap();
    let verified = store.verified();
    assert_eq!(verified.findings.len(), 1);
    assert_eq!(verified.findings[0].check, "session");
    assert_eq!(verified.findings[0].file, "sessions.db");
}

#[test]
fn a_damaged_page_is_found_and_the_other_files_are_checked_all_the_same() {
    let store = rich();
    store
        .by_hand(P)
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    // Another process would have no page of it in memory.
    let root = store.root();
    let path = store.path(P);
    let size = std::fs::metadata(&path).unwrap().len();
    let Store { folder, storage } = store;
    drop(storage);
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for page in 2..size / 4096 {
        file.write_all_at(&[0xff; 64], page * 4096 + 8).unwrap();
    }
    let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
    let store = Store { folder, storage };
    let verified = store.verified();
    assert!(!verified.is_sound());
    assert!(
        verified
            .findings
            .iter()
            .all(|finding| finding.level == Some(P))
    );
    assert!(verified.files >= 2);
}

#[test]
fn a_file_under_another_name_is_found() {
    let store = rich();
    std::fs::copy(store.path(P), store.path(I)).unwrap();
    let verified = store.verified();
    assert_eq!(verified.findings.len(), 1, "{verified:?}");
    assert_eq!(verified.findings[0].level, Some(I));
    assert!(verified.findings[0].what.contains("another level"));
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_found_and_the_other_files_are_checked_all_the_same() {
    let store = rich();
    std::os::unix::fs::symlink(store.path(P), store.path(I)).unwrap();
    let verified = store.verified();
    assert_eq!(verified.findings.len(), 1, "{verified:?}");
    assert_eq!(verified.findings[0].level, Some(I));
    assert!(verified.findings[0].what.contains("symbolic link"));
    assert_eq!(verified.files, 3);
    let error = store
        .operator(0)
        .verify(Some("nobody"), &mut quietly)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn many_findings_of_one_kind_are_told_as_how_many_more_there_are() {
    let store = Store::new();
    for i in 0..50 {
        store.save(P, &format!("k{i}"), "x");
    }
    store
        .by_hand(P)
        .execute("UPDATE record SET session = 'x'", [])
        .unwrap();
    let verified = store.verified();
    assert_eq!(verified.findings.len(), 21);
    assert_eq!(verified.findings[20].what, "and 30 more");
}

#[test]
fn what_is_no_agents_folder_is_noted() {
    let store = rich();
    std::fs::create_dir(store.root().join("agents/Main")).unwrap();
    std::fs::write(store.root().join("agents/notes.txt"), "x").unwrap();
    let verified = store.verified();
    assert!(verified.is_sound());
    let noted: Vec<&str> = verified
        .notes
        .iter()
        .map(|note| note.file.as_str())
        .collect();
    assert_eq!(noted, ["agents/Main", "agents/notes.txt"]);
}

#[test]
fn where_somebody_writes_the_index_is_compared_all_the_same() {
    let store = rich();
    let quick = SqliteOptions::default().busy_timeout(Duration::from_millis(20));
    let storage = SqliteStorage::open(&store.root(), quick).unwrap();
    let db = store.by_hand(P);
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    db.execute_batch("DELETE FROM memory_key").unwrap();
    let verify = || storage.operator(at(0)).verify(None, &mut quietly).unwrap();
    let verified = verify();
    assert_eq!((verified.findings, verified.notes), (vec![], vec![]));
    db.execute_batch("COMMIT; BEGIN IMMEDIATE").unwrap();
    let verified = verify();
    assert_eq!(verified.findings.len(), 1, "{verified:?}");
    assert_eq!(
        (
            verified.findings[0].check.as_str(),
            verified.findings[0].level
        ),
        ("index", Some(P))
    );
    db.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn it_writes_nothing() {
    let store = rich();
    let sums = || {
        let hash = |name: &String| blake3::hash(&std::fs::read(store.root().join(name)).unwrap());
        let files = files(&store.root());
        files
            .iter()
            .filter(|name| !name.ends_with("-shm"))
            .map(hash)
            .collect::<Vec<_>>()
    };
    let before = sums();
    store.assert_sound();
    assert_eq!(sums(), before);
}

#[test]
fn reading_and_confirming_do_not_touch_the_index() {
    // F016.
    let store = rich();
    let index = || -> (i64, Option<String>) {
        store
            .by_hand(P)
            .query_row(
                "SELECT count(*), group_concat(hex(block))
                 FROM (SELECT block FROM memory_words_data
                       UNION ALL SELECT block FROM memory_grams_data
                       UNION ALL SELECT words || ' ' || seq FROM memory_key)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap()
    };
    let before = index();
    let id = live(store.agent(P).fetch(P, "new").unwrap()).id;
    for second in 0..1000 {
        let mut shelves = store.later(P, second);
        shelves.fetch(P, "new").unwrap();
        shelves.record_use(std::slice::from_ref(&id));
    }
    store.later(P, 2000).stamp(&id, None).unwrap();
    assert_eq!(index(), before);
    store.assert_sound();
}

#[test]
fn a_changed_schema_is_found_by_name() {
    for (name, change) in [
        ("event_never_goes", "DROP TRIGGER event_never_goes"),
        ("event_never_changes", "DROP TRIGGER event_never_changes"),
        (
            "event_never_goes",
            "DROP TRIGGER event_never_goes;
             CREATE TRIGGER event_never_goes BEFORE DELETE ON event WHEN 0
                 BEGIN SELECT RAISE(ABORT, 'no'); END",
        ),
        ("record_expiry", "DROP INDEX record_expiry"),
        ("live_memory", "DROP VIEW live_memory"),
        (
            "live_memory",
            "DROP VIEW live_memory; CREATE VIEW live_memory AS SELECT * FROM record",
        ),
        ("memory_word_terms", "DROP TABLE memory_word_terms"),
        ("memory_gram_terms", "DROP TABLE memory_gram_terms"),
        ("memory_vocabulary", "DROP TABLE memory_vocabulary"),
        ("memory_key", "DROP TABLE memory_key"),
        (
            "memory_grams",
            "DROP TABLE memory_grams;
             CREATE VIRTUAL TABLE memory_grams USING fts5 (grams, content = '')",
        ),
        ("usage", "DROP TABLE usage"),
        ("extra", "CREATE TABLE extra (x)"),
        (
            "extra",
            "CREATE TRIGGER extra AFTER INSERT ON record
                 BEGIN DELETE FROM record_tag; END",
        ),
        ("extra", "CREATE INDEX extra ON record (content)"),
        ("usage", "ALTER TABLE usage ADD COLUMN extra TEXT"),
    ] {
        let store = rich();
        store.by_hand(C).execute_batch(change).unwrap();
        let verified = store.verified();
        // What `reindex` mends is told as what it is.
        let check = if name.starts_with("memory_") {
            "index"
        } else {
            "schema"
        };
        let found = verified.findings.iter().any(|finding| {
            finding.check == check && finding.level == Some(C) && finding.what.contains(name)
        });
        assert!(found, "{change}: {verified:?}");
    }
    let store = rich();
    Connection::open(store.root().join("sessions.db"))
        .unwrap()
        .execute_batch("CREATE VIEW extra AS SELECT * FROM session")
        .unwrap();
    let verified = store.verified();
    assert_eq!(verified.findings.len(), 1, "{verified:?}");
    assert_eq!(verified.findings[0].check, "schema");
    assert_eq!(verified.findings[0].file, "sessions.db");
}

#[test]
fn what_sqlite_keeps_for_itself_and_an_older_schema_are_no_change() {
    let store = rich();
    store
        .by_hand(P)
        .execute_batch(
            "ANALYZE; VACUUM;
             INSERT INTO memory_words (memory_words) VALUES ('optimize');
             INSERT INTO memory_grams (memory_grams) VALUES ('optimize')",
        )
        .unwrap();
    store.assert_sound();
    fixture::first_schema().assert_sound();
}

#[test]
fn an_edge_that_was_taken_away_is_found() {
    let store = rich();
    let low = store.save(P, "low", "Berlin").id;
    let high = Draft {
        supersedes: vec![low.clone()],
        ..draft("low", "Bonn")
    };
    store
        .agent(C)
        .put(&draft("low", "what it says above"))
        .unwrap();
    let high = store.agent(C).put(&high).unwrap().id;
    store.assert_sound();
    let own: String = store
        .by_hand(C)
        .query_row("SELECT id FROM record WHERE key = 'old'", [], |row| {
            row.get(0)
        })
        .unwrap();
    store.by_hand(C).execute("DELETE FROM edge", []).unwrap();
    let verified = store.verified();
    assert_eq!(verified.findings.len(), 2, "{verified:?}");
    for (old, finding) in [own, low].iter().zip(&verified.findings) {
        assert_eq!((finding.check.as_str(), finding.level), ("edge", Some(C)));
        assert!(finding.what.contains(old.as_str()), "{finding:?}");
    }
    assert!(verified.findings[1].what.contains(&high));
    // Also where the older one is gone, and only brought back would be served.
    let store = rich();
    store
        .operator(400)
        .prune(None, &operator::Prune::default(), &mut quietly)
        .unwrap();
    assert_eq!(
        store.rows(P, "SELECT count(*) FROM record WHERE key = 'old'"),
        0
    );
    store.assert_sound();
    store.by_hand(P).execute("DELETE FROM edge", []).unwrap();
    assert_eq!(store.verified().findings.len(), 1);
}

#[test]
fn a_version_that_was_saved_to_take_the_place_of_the_one_before_needs_no_edge() {
    let store = Store::new();
    let first = store.save(P, "k", "Berlin").id;
    let other = store.save(P, "other", "Paris").id;
    let second = Draft {
        supersedes: vec![other, first],
        ..draft("k", "Bonn")
    };
    store.agent(P).put(&second).unwrap();
    assert_eq!(store.rows(P, "SELECT count(*) FROM edge"), 1);
    store.assert_sound();
    store
        .operator(400)
        .prune(None, &operator::Prune::default(), &mut quietly)
        .unwrap();
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 1);
    store.assert_sound();
    store.by_hand(P).execute("DELETE FROM edge", []).unwrap();
    assert_eq!(store.verified().findings.len(), 2);
}

#[test]
fn what_waits_and_what_was_imported_without_its_edges_is_sound() {
    let store = Store::new();
    let said = store.user(P).put(&draft("said", "by the person")).unwrap();
    let instead = Draft {
        supersedes: vec![said.id.clone()],
        ..draft("thought", "otherwise")
    };
    let waits = store.agent(P).put(&instead).unwrap();
    assert_eq!(waits.outcome, Outcome::Pending);
    store.assert_sound();
    let moment = at(0);
    let line = format!(
        r#"{{"type":"header","format":"remora-export","version":1}}
{{"type":"record","agent":"main","level":"PUBLIC","id":"{:032x}","key":"new","version":1,"content":"x","tags":[],"origin":"AGENT","standing":"trusted","session":"s","created_at":"{moment}","updated_at":"{moment}","supersedes":["{}"]}}
"#,
        1, said.id
    );
    let report = store
        .operator(0)
        .import(
            &mut line.as_bytes(),
            &operator::ImportOptions::default(),
            &mut quietly,
        )
        .unwrap();
    assert_eq!(report.records.imported, 1, "{report:?}");
    store.assert_sound();
}

#[test]
fn what_others_save_while_the_files_are_read_is_not_from_the_future() {
    let store = rich();
    let ahead = || -> u64 {
        let kept = store.operator(0).inspect().unwrap();
        kept.iter()
            .map(|file| file.inside.as_ref().unwrap().ahead)
            .sum()
    };
    store.later(P, 60).put(&draft("meanwhile", "x")).unwrap();
    assert_eq!(ahead(), 0);
    store.later(P, 61).put(&draft("tomorrow", "x")).unwrap();
    // The record and its line in the trail.
    assert_eq!(ahead(), 2);
}

#[test]
fn what_the_trail_tells_of_and_is_not_there_is_missing() {
    let missing = |store: &Store, what: &str| {
        let verified = store.verified();
        let found: Vec<_> = verified
            .findings
            .iter()
            .filter(|finding| finding.check == "missing")
            .collect();
        assert_eq!(found.len(), 1, "{what}: {verified:?}");
        assert!(found[0].what.contains(what), "{what}: {found:?}");
    };
    let take = |store: &Store, sql: &str| {
        assert!(store.by_hand(P).execute(sql, []).unwrap() > 0, "{sql}");
    };
    let filled = || {
        let store = Store::new();
        for key in ["a", "b", "c"] {
            store.save(P, key, "words");
        }
        let id = store.save(P, "d", "words").id;
        store.agent(P).stamp(&id, None).unwrap();
        store.user(P).retire("a", true).unwrap();
        store
            .operator(400)
            .purge(
                None,
                &operator::Purge::key("b"),
                std::time::Duration::from_secs(1),
                &mut quietly,
            )
            .unwrap();
        let id = store.save(P, "e", "words").id;
        store.agent(P).stamp(&id, None).unwrap();
        store.assert_sound();
        store
    };
    let store = filled();
    take(&store, "DELETE FROM erased WHERE record_id LIKE 'key/%'");
    missing(&store, "the erasure of a key");
    let store = filled();
    take(
        &store,
        "DELETE FROM erased WHERE record_id NOT LIKE 'key/%'",
    );
    missing(&store, "there are 0 erasures");
    let store = filled();
    take(
        &store,
        "DELETE FROM stamp WHERE record_id IN (SELECT id FROM record WHERE key = 'e')",
    );
    missing(&store, "the stamp on PUBLIC");
    // A tombstone may be there or not: nobody can tell.
    let store = filled();
    take(&store, "DELETE FROM record WHERE key IN ('c', 'e')");
    missing(&store, "there are 3 records, where the trail tells of 4");
    // What goes as it should is not missing.
    let store = filled();
    store
        .operator(400)
        .prune(None, &operator::Prune::default(), &mut quietly)
        .unwrap();
    store.assert_sound();
}
