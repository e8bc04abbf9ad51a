//! Purge.

use std::collections::BTreeSet;

use super::*;
use crate::storage::sqlite::operator::{LevelPurged, Prune, Purge};

fn purge(store: &Store, what: &Purge) -> Result<Vec<LevelPurged>, Error> {
    store
        .operator(1)
        .purge(None, what, Duration::from_secs(1), &mut quietly)
}

/// A store in which a secret has been everywhere it can be, among many others.
fn secretive() -> Store {
    let store = Store::new();
    for i in 0..300 {
        // Letters only, so that no stemming joins them.
        let word: String = format!("{i:04}")
            .bytes()
            .map(|digit| char::from(b'a' + digit - b'0' + 9))
            .collect();
        for level in [P, C] {
            store.save(
                level,
                &format!("other {i}"),
                &format!("plain {word}word text"),
            );
        }
    }
    let secret = Draft {
        source: Some("from quokkasource".to_owned()),
        ..tagged("the quokkakey", &["quokkatag"])
    };
    for (level, content) in [
        (P, "quokkaone lives here"),
        (P, "quokkatwo lives here"),
        (C, "quokkathree lives here"),
    ] {
        let secret = Draft {
            content: content.to_owned(),
            ..secret.clone()
        };
        store.agent(level).put(&secret).unwrap();
    }
    let id = live(store.agent(P).fetch(P, "the quokkakey").unwrap()).id;
    let mut above = store.agent(R);
    above.put(&draft("own", "x")).unwrap();
    above.fetch(P, "the quokkakey").unwrap();
    above.stamp(&id, Some("quokkastamp")).unwrap();
    above.record_use(std::slice::from_ref(&id));
    above.used(P, 0, 1, 0).unwrap();
    drop(above);
    store
        .open(access(I, Origin::Tool))
        .put(&Draft {
            content: "quokkaweb".to_owned(),
            ..secret
        })
        .unwrap();
    store.by_hand(C).execute_batch("ANALYZE").unwrap();
    store
}

const WORDS: [&str; 8] = [
    "quokkaone",
    "quokkatwo",
    "quokkathree",
    "quokkaweb",
    "quokkakey",
    "quokkasource",
    "quokkatag",
    "quokkastamp",
];

#[test]
fn afterwards_no_file_holds_the_words() {
    let store = secretive();
    for word in WORDS {
        assert!(!store.holding(word).is_empty(), "{word}");
    }
    let report = purge(&store, &Purge::key("the quokkakey")).unwrap();
    let told: Vec<(Level, u64, u64, u64)> = report
        .iter()
        .map(|level| (level.level, level.records, level.stamps, level.usage))
        .collect();
    assert_eq!(
        told,
        [(P, 2, 0, 0), (I, 1, 0, 0), (C, 1, 0, 0), (R, 0, 1, 1)]
    );
    // Also the beginning that all of them share: terms are kept without what
    // they share with the one before.
    for part in ["quokk", "_quo", "uokk", "okka"] {
        assert_eq!(store.holding(part), [] as [&str; 0], "{part}");
    }
    assert_eq!(store.seen(C, C, "the quokkakey"), None);
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 300);
    let found = store.agent(P).search(P, "plain", 0, 10).unwrap();
    assert_eq!(found.items.len(), 10);
    store.assert_sound();
    assert_eq!(store.verified().notes, []);
}

#[test]
fn afterwards_no_file_holds_their_terms() {
    let store = secretive();
    // No word of the others shares four letters with these.
    let secret = Draft {
        content: "Zugzwangling wyvernfulness".to_owned(),
        ..tagged("Jukebox Xylophage", &["vexquiltz"])
    };
    for level in [P, C] {
        store.agent(level).put(&secret).unwrap();
    }
    let mut parts: BTreeSet<String> = BTreeSet::new();
    for word in [
        "zugzwangling",
        "wyvernfulness",
        "jukebox",
        "xylophage",
        "vexquiltz",
    ] {
        for start in 0..=word.len() - 4 {
            parts.insert(word[start..start + 4].to_owned());
        }
    }
    const LISTS: [&str; 3] = [
        "SELECT term FROM memory_word_terms",
        "SELECT term FROM memory_gram_terms",
        "SELECT words FROM memory_key",
    ];
    let listed = |level: Level, part: &str| -> Vec<bool> {
        let held = |list: &&str| {
            let sql = format!("SELECT count(*) FROM ({list}) WHERE instr(term, '{part}')");
            store.rows(
                level,
                &sql.replace("FROM (SELECT words", "FROM (SELECT words AS term"),
            ) > 0
        };
        LISTS.iter().map(held).collect()
    };
    for level in [P, C] {
        // The stems, and the words of the key as they are.
        assert_eq!(listed(level, "zugzwangl"), [true, false, false]);
        assert_eq!(listed(level, "wyvern"), [true, false, false]);
        assert_eq!(listed(level, "jukebox xylophage"), [false, false, true]);
        for part in &parts {
            assert!(listed(level, part)[1], "{part}");
        }
    }
    for part in ["zugzwangl", "jukebox xylophage"] {
        assert!(!store.holding(part).is_empty(), "{part}");
    }
    purge(&store, &Purge::key("Jukebox Xylophage")).unwrap();
    for part in &parts {
        // Also as a beginning that terms share, and on a page that nothing uses.
        assert_eq!(store.holding(part), [] as [&str; 0], "{part}");
        for level in [P, C] {
            assert_eq!(listed(level, part), [false; 3], "{part}");
        }
    }
    // The others' are there as before.
    assert_eq!(listed(P, "quokkatwo"), [true, false, false]);
    assert_eq!(listed(P, "the quokkakey"), [false, false, true]);
    assert_eq!(listed(P, "uokk"), [true, true, true]);
    store.assert_sound();
}

#[test]
fn it_leaves_a_line_with_a_digest_and_no_words() {
    let store = secretive();
    purge(&store, &Purge::key("the quokkakey")).unwrap();
    assert_eq!(
        store.told(P),
        [(
            "purge".to_owned(),
            "key records=2 stamps=0 usage=0".to_owned()
        )]
    );
    assert_eq!(
        store.told(R),
        [(
            "purge".to_owned(),
            "key records=0 stamps=1 usage=1".to_owned()
        )]
    );
    let same: i64 = store.rows(
        P,
        "SELECT count(*) FROM event AS purge JOIN event AS save USING (digest)
         WHERE purge.kind = 'purge' AND save.kind = 'save'",
    );
    assert_eq!(same, 2);
    let events = store.storage.events("main", P).unwrap();
    assert!(
        events
            .iter()
            .all(|event| event.key.as_deref() != Some("the quokkakey"))
    );
}

#[test]
fn nothing_of_others_is_touched_and_what_was_superseded_stays_so() {
    let store = Store::new();
    let a = store.save(P, "a", "zebra").id;
    let b = Draft {
        supersedes: vec![a],
        ..draft("b", "quokka")
    };
    store.agent(P).put(&b).unwrap();
    let lower = store.save(P, "lower", "zebra").id;
    let above = Draft {
        supersedes: vec![lower],
        ..draft("b", "quokka")
    };
    store.agent(C).put(&above).unwrap();
    purge(&store, &Purge::key("b")).unwrap();
    assert_eq!(store.seen(P, P, "a"), None);
    assert_eq!(store.seen(C, P, "lower"), None);
    assert_eq!(store.seen(P, P, "lower").as_deref(), Some("zebra"));
    assert_eq!(store.rows(P, "SELECT count(*) FROM edge"), 1);
    let found = store.agent(C).search(P, "zebra", 0, 10).unwrap();
    assert_eq!(found.items.len(), 0);
    assert_eq!(store.holding("quokka"), [] as [&str; 0]);
    store.assert_sound();
}

#[test]
fn one_level_alone_is_erased_when_asked() {
    let store = Store::new();
    store.save(P, "k", "quokkalow");
    store.save(C, "k", "quokkahigh");
    let report = purge(&store, &Purge::key_at("k", C)).unwrap();
    assert_eq!(report.len(), 1);
    assert_eq!(store.seen(C, P, "k").as_deref(), Some("quokkalow"));
    assert_eq!(store.holding("quokkahigh"), [] as [&str; 0]);
    assert_eq!(store.told(P), []);
}

#[test]
fn everything_from_a_session_is_erased_with_its_confirmations() {
    let store = Store::new();
    let theirs = |level| {
        store.open(Access {
            session: "theirs".to_owned(),
            ..access(level, Origin::Agent)
        })
    };
    let kept = store.save(P, "kept", "plain").id;
    store.agent(P).stamp(&kept, Some("mine")).unwrap();
    for level in [P, C] {
        theirs(level).put(&draft("one", "quokkaone")).unwrap();
        theirs(level).put(&draft("two", "quokkatwo")).unwrap();
        let mut shelves = theirs(level);
        shelves.fetch(P, "kept").unwrap();
        shelves.stamp(&kept, Some("quokkastamp")).unwrap();
    }
    store.save(C, "one", "mine now");
    let report = purge(&store, &Purge::everything_from("theirs")).unwrap();
    let told: Vec<(Level, u64, u64)> = report
        .iter()
        .map(|level| (level.level, level.records, level.stamps))
        .collect();
    assert_eq!(told, [(P, 2, 1), (C, 2, 1)]);
    assert_eq!(store.holding("quokka"), [] as [&str; 0]);
    assert_eq!(store.seen(C, C, "one").as_deref(), Some("mine now"));
    assert_eq!(
        store.rows(P, "SELECT count(*) FROM stamp WHERE latest = 1"),
        1
    );
    store.assert_sound();
}

#[test]
fn what_nobody_knows_is_not_found_and_a_pattern_is_no_key() {
    // F031 and F032.
    let store = Store::new();
    store.save(P, "quokka", "x");
    for what in [
        Purge::key("quokk"),
        Purge::key("%"),
        Purge::key("_"),
        Purge::key("*"),
        Purge::key("QUOKKA"),
        Purge::key_at("quokka", C),
        Purge::everything_from("tes"),
    ] {
        let error = purge(&store, &what).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    let error = purge(&store, &Purge::key("")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(store.rows(P, "SELECT count(*) FROM record"), 1);
    assert_eq!(store.told(P), []);
    assert_eq!(store.rows(P, "SELECT count(*) FROM erased"), 0);
}

#[test]
fn what_was_deleted_or_pruned_before_is_erased_as_well() {
    let store = Store::new();
    store.save(P, "k", "quokkadeleted");
    store.delete(P, "k");
    let prune = Prune::default().deleted_after(days(0));
    store.operator(1).prune(None, &prune, &mut quietly).unwrap();
    let report = purge(&store, &Purge::key("k")).unwrap();
    assert_eq!(report[0].records, 0);
    assert_eq!(store.holding("quokka"), [] as [&str; 0]);
}

#[test]
fn words_on_pages_that_nothing_uses_any_more_are_erased_as_well() {
    let store = Store::new();
    store.save(P, "k", &"quokkalong ".repeat(5000));
    // By hand, and without the overwriting that Remora asks for.
    store
        .by_hand(P)
        .execute_batch("PRAGMA secure_delete = OFF; DELETE FROM record")
        .unwrap();
    assert!(!store.holding("quokka").is_empty());
    assert!(store.rows(P, "SELECT freelist_count FROM pragma_freelist_count") > 10);
    let report = purge(&store, &Purge::key("k")).unwrap();
    assert_eq!(report[0].records, 0);
    assert_eq!(store.holding("quokka"), [] as [&str; 0]);
    // Nothing is wrong but that it was done by hand.
    let findings = store.verified().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].check, "missing");
}

#[test]
fn an_altered_record_can_be_erased() {
    let store = Store::new();
    store.save(P, "k", "quokkaold");
    store
        .by_hand(P)
        .execute("UPDATE record SET content = 'quokkanew'", [])
        .unwrap();
    assert!(!store.verified().is_sound());
    purge(&store, &Purge::key("k")).unwrap();
    assert_eq!(store.holding("quokka"), [] as [&str; 0]);
    store.assert_sound();
}

#[test]
fn after_a_crash_anywhere_a_second_run_completes_it() {
    let store = secretive();
    let what = Purge::key("the quokkakey");
    let (_, copies, folder) = crashes(&store, || purge(&store, &what).unwrap());
    let points: BTreeSet<&str> = copies.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        points.into_iter().collect::<Vec<_>>(),
        [
            "before-commit",
            "purge-deleted",
            "purge-truncated",
            "purge-vacuumed"
        ]
    );
    for (number, (name, root)) in copies.iter().enumerate() {
        let open = || SqliteStorage::open(root, SqliteOptions::default()).unwrap();
        let verified = open().operator(at(0)).verify(None, &mut quietly).unwrap();
        assert_eq!(verified.findings, [], "{number} {name}");
        open()
            .operator(at(2))
            .purge(None, &what, Duration::from_secs(1), &mut quietly)
            .unwrap();
        for file in files(root) {
            let bytes = std::fs::read(root.join(&file)).unwrap();
            let held = bytes.windows(5).any(|window| window == b"quokk");
            assert!(!held, "{number} {name}: {file}");
        }
        let verified = open().operator(at(0)).verify(None, &mut quietly).unwrap();
        assert_eq!(verified.findings, [], "{number} {name}");
        assert_eq!(verified.notes, [], "{number} {name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn after_a_crash_the_next_maintenance_completes_it_too() {
    let store = secretive();
    let what = Purge::key_at("the quokkakey", P);
    let (_, copies, folder) = crashes(&store, || purge(&store, &what).unwrap());
    let (_, root) = copies
        .iter()
        .find(|(name, _)| name == "purge-deleted")
        .unwrap();
    let storage = SqliteStorage::open(root, SqliteOptions::default()).unwrap();
    let operator = storage.operator(at(0));
    let verified = operator.verify(None, &mut quietly).unwrap();
    assert_eq!(verified.notes.len(), 1, "{:?}", verified.notes);
    // Anything that changes that file.
    storage
        .operator(at(400 * DAY))
        .forget_events(None, days(1), false, &mut quietly)
        .unwrap();
    let public = std::fs::read(root.join("agents/main/public.db")).unwrap();
    assert!(!public.windows(10).any(|window| window == b"quokkatwo "));
    assert_eq!(operator.verify(None, &mut quietly).unwrap().notes, []);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn who_reads_an_older_state_is_waited_for_and_then_named() {
    let store = secretive();
    // Another process that reads and does not stop.
    let mut reader = std::process::Command::new("python3")
        .args([
            "-c",
            "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('BEGIN')
db.execute('SELECT count(*) FROM record').fetchall()
print('reading', flush=True)
sys.stdin.readline()
db.execute('COMMIT')
print('done', flush=True)
sys.stdin.readline()",
        ])
        .arg(store.path(P))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::{BufRead as _, Write as _};
    let mut input = reader.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(reader.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();

    let what = Purge::key("the quokkakey");
    let text = unavailable(store.operator(1).purge(
        None,
        &what,
        Duration::from_millis(100),
        &mut quietly,
    ));
    let named = format!("process {} (python3", reader.id());
    assert!(text.contains(&named), "{text}");
    assert!(text.contains("run the same command again"), "{text}");
    // Deleted all the same, and sessions go on meanwhile.
    assert_eq!(store.seen(P, P, "the quokkakey"), None);
    store.save(P, "meanwhile", "x");
    assert_eq!(store.verified().findings, []);
    assert!(!store.verified().notes.is_empty());

    writeln!(input).unwrap();
    output.read_line(&mut line).unwrap();
    purge(&store, &what).unwrap();
    assert_eq!(store.holding("quokk"), [] as [&str; 0]);
    writeln!(input).unwrap();
    reader.wait().unwrap();
    assert_eq!(store.verified().notes, []);
}

#[test]
fn an_erasure_covers_what_backups_may_still_hold() {
    use crate::storage::sqlite::operator::erased;
    let store = Store::new();
    let id = store.save(P, "k", "x").id;
    store.save(P, "other", "x");
    purge(&store, &Purge::key("k")).unwrap();
    let file = store.storage.inner.layout.level("main", P);
    let book = store.storage.inner.book(&file);
    let db = store.by_hand(P);
    let covers = |id: &str, key: &str, session: &str, day: i64| {
        erased::covers(&db, &book, id, key, session, &at(day * DAY).to_sql()).unwrap()
    };
    let unknown = "0".repeat(32);
    assert!(covers(&id, "whatever", "s", 9));
    assert!(covers(&unknown, "k", "s", 1));
    assert!(!covers(&unknown, "k", "s", 2));
    assert!(!covers(&unknown, "other", "test", 1));
    purge(&store, &Purge::everything_from("test")).unwrap();
    assert!(covers(&unknown, "third", "test", 1));
    assert!(!covers(&unknown, "third", "test", 2));
    db.execute("UPDATE erased SET at = '2099-01-01 00:00:00.000'", [])
        .unwrap();
    assert!(erased::covers(&db, &book, &id, "k", "s", "").is_err());
    assert!(!store.verified().is_sound());
}

#[test]
fn who_stops_reading_in_time_is_waited_for() {
    let store = secretive();
    let reader = store.by_hand(P);
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM record")
        .unwrap();
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        reader.execute_batch("COMMIT").unwrap();
        reader
    });
    store
        .operator(1)
        .purge(
            None,
            &Purge::key("the quokkakey"),
            Duration::from_secs(60),
            &mut quietly,
        )
        .unwrap();
    reading.join().unwrap();
    assert_eq!(store.holding("quokk"), [] as [&str; 0]);
    assert_eq!(store.verified().notes, []);
}

#[test]
fn who_writes_meanwhile_is_waited_for_as_long_as_is_said() {
    let store = secretive();
    let options = SqliteOptions::default().busy_timeout(Duration::from_millis(20));
    let storage = SqliteStorage::open(&store.root(), options).unwrap();
    let path = store.path(P);
    let mut writing = None;
    operator::watch(Some(Box::new(move |name| {
        if name == "purge-deleted" && writing.is_none() {
            let db = Connection::open(&path).unwrap();
            db.execute_batch("BEGIN IMMEDIATE").unwrap();
            writing = Some(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                db.execute_batch("COMMIT").unwrap();
            }));
        }
    })));
    let what = Purge::key_at("the quokkakey", P);
    let purged = storage
        .operator(at(0))
        .purge(None, &what, Duration::from_secs(60), &mut quietly);
    operator::watch(None);
    purged.unwrap();
    assert_eq!(store.verified().notes, []);
}

#[test]
fn a_file_that_a_newer_program_indexes_while_it_is_maintained_is_not_changed() {
    use crate::storage::sqlite::schema::Kind;
    let store = secretive();
    let what = Purge::key_at("the quokkakey", P);
    let (_, copies, folder) = crashes(&store, || purge(&store, &what).unwrap());
    let (_, root) = copies
        .iter()
        .find(|(name, _)| name == "purge-deleted")
        .unwrap();
    let storage = SqliteStorage::open(root, SqliteOptions::default()).unwrap();
    let inner = &storage.inner;
    let file = inner.layout.level("main", P);
    let sealer = std::sync::Arc::clone(&inner.sealer);
    // Between its opening, for which that purge is completed, and its change.
    let of = file.clone();
    operator::watch(Some(Box::new(move |name| {
        if name == "purge-truncated" {
            let db = Connection::open(&of.path).unwrap();
            Kind::level(&of)
                .set_meta(&db, &sealer, "analyser", "remora 999")
                .unwrap();
        }
    })));
    let refused = storage
        .operator(at(400 * DAY))
        .forget_events(None, days(1), false, &mut quietly);
    operator::watch(None);
    let text = unavailable(refused);
    assert!(text.contains("another version"), "{text}");
    let told: i64 = Connection::open(&file.path)
        .unwrap()
        .query_row(
            "SELECT count(*) FROM event WHERE kind = 'retention'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(told, 0);
    std::fs::remove_dir_all(folder).unwrap();
}
