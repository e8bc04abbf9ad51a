//! The folder: how a store comes to be, and what stands in its way.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::storage::ControlPlane as _;

fn open(path: &Path) -> Result<SqliteStorage, Error> {
    SqliteStorage::open(path, SqliteOptions::default())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_new_store_has_a_key_and_sessions_and_nothing_else() {
    let store = Store::new();
    let names = files(&store.root());
    let names: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
        .collect();
    assert_eq!(names, ["sessions.db", "store.key"]);
}

#[test]
fn missing_parents_are_made() {
    let folder = folder();
    let deep = folder.path().join("a/b/c");
    open(&deep).unwrap();
    assert!(deep.join("store.key").exists());
}

#[test]
fn everything_is_for_the_owner_alone() {
    let store = Store::new();
    store.save(C, "a", "b");
    assert_eq!(mode(&store.root()), 0o700);
    assert_eq!(mode(&store.root().join("agents")), 0o700);
    assert_eq!(mode(&store.root().join("agents/main")), 0o700);
    for name in files(&store.root()) {
        assert_eq!(mode(&store.root().join(&name)), 0o600, "{name}");
    }
}

#[test]
fn a_file_in_its_place_is_an_error_that_names_it() {
    let folder = folder();
    let path = folder.path().join("store");
    fs::write(&path, "x").unwrap();
    let text = unavailable(open(&path));
    assert!(
        text.contains("is not a directory") && text.contains("store"),
        "{text}"
    );
    let text = unavailable(open(&path.join("deeper")));
    assert!(text.contains("not a directory"), "{text}");
}

#[test]
fn a_crash_between_the_key_and_the_sessions_is_made_good() {
    let folder = folder();
    fs::write(folder.path().join("store.key"), [3; 32]).unwrap();
    fs::set_permissions(
        folder.path().join("store.key"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    open(folder.path()).unwrap();
    assert!(folder.path().join("sessions.db").exists());
    assert_eq!(fs::read(folder.path().join("store.key")).unwrap(), [3; 32]);
}

#[test]
fn a_store_with_memories_but_no_sessions_is_refused() {
    let store = Store::new();
    store.save(P, "a", "b");
    fs::remove_file(store.root().join("sessions.db")).unwrap();
    let text = unavailable(open(&store.root()));
    assert!(text.contains("sessions.db"), "{text}");
    assert!(!store.root().join("sessions.db").exists());
}

#[test]
fn a_store_without_its_key_is_refused() {
    for with_agents in [false, true] {
        let store = Store::new();
        if with_agents {
            store.save(P, "a", "b");
        }
        fs::remove_file(store.root().join("store.key")).unwrap();
        let text = unavailable(open(&store.root()));
        assert!(text.contains("store.key"), "{text}");
        assert!(!store.root().join("store.key").exists());
    }
}

#[test]
fn a_key_of_the_wrong_length_is_refused() {
    for length in [0, 31, 33] {
        let store = Store::new();
        let key = store.root().join("store.key");
        fs::write(&key, vec![1; length]).unwrap();
        let text = unavailable(open(&store.root()));
        assert!(text.contains("32 bytes"), "{text}");
    }
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_remedy() {
    let store = Store::new();
    let key = store.root().join("store.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let text = unavailable(open(&store.root()));
    assert!(text.contains("chmod 600"), "{text}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    open(&store.root()).unwrap();
}

#[test]
fn another_key_opens_nothing() {
    let store = Store::new();
    fs::write(store.root().join("store.key"), [9; 32]).unwrap();
    let text = unavailable(open(&store.root()));
    assert!(text.contains("seal"), "{text}");
}

#[test]
fn a_symbolic_link_in_place_of_any_file_is_refused() {
    for name in [
        "store.key",
        "sessions.db",
        "agents",
        "agents/main",
        "agents/main/public.db",
    ] {
        let store = Store::new();
        store.save(P, "a", "b");
        let path = store.root().join(name);
        let moved = store.folder.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        let text = unavailable(
            open(&store.root())
                .and_then(|storage| storage.open(access(P, Origin::Agent))?.fetch(P, "a")),
        );
        assert!(text.contains("is a symbolic link"), "{name}: {text}");
        let written = open(&store.root()).and_then(|storage| {
            storage
                .open(access(P, Origin::Agent))?
                .put(&draft("c", "d"))
        });
        assert!(written.is_err(), "{name}");
    }
}

/// Puts something in place of a file or folder of a store, opens it again, and
/// reads and writes: what is said of it. It must not hang.
fn replaced(name: &str, put: impl FnOnce(&Path)) -> (String, String) {
    let store = Store::new();
    store.save(P, "a", "b");
    let path = store.root().join(name);
    // A file beside a database may have gone with its last connection.
    if path.is_dir() {
        fs::remove_dir_all(&path).unwrap();
    } else {
        drop(fs::remove_file(&path));
    }
    put(&path);
    let root = store.root();
    let (sender, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let read = open(&root)
            .and_then(|storage| storage.open(access(P, Origin::Agent))?.fetch(P, "a"))
            .map(|_| ());
        let written = open(&root)
            .and_then(|storage| {
                storage
                    .open(access(P, Origin::Agent))?
                    .put(&draft("c", "d"))
            })
            .map(|_| ());
        sender.send((read, written)).unwrap();
    });
    let (read, written) = said
        .recv_timeout(Duration::from_secs(30))
        .unwrap_or_else(|_| panic!("{name} hangs"));
    let said = (unavailable(read), unavailable(written));
    for text in [&said.0, &said.1] {
        assert!(!text.contains("log"), "{name}: {text}");
        assert!(!text.contains('/'), "{name}: {text}");
    }
    said
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_and_not_waited_for() {
    for name in [
        "store.key",
        "sessions.db",
        "sessions.db-journal",
        "sessions.db-wal",
        "agents/main/public.db",
        "agents/main/public.db-journal",
    ] {
        let (read, written) = replaced(name, |path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        });
        let file = name.rsplit('/').next().unwrap();
        for text in [read, written] {
            assert!(
                text.starts_with(&format!("{file} is not a regular file")),
                "{text}"
            );
        }
    }
}

#[test]
fn what_stands_in_place_of_a_file_or_folder_is_named() {
    let folder = |path: &Path| fs::create_dir(path).unwrap();
    for name in ["store.key", "sessions.db", "agents/main/public.db"] {
        let (read, written) = replaced(name, folder);
        for text in [read, written] {
            assert!(text.contains("is not a regular file"), "{name}: {text}");
        }
    }
    let file = |path: &Path| fs::write(path, "x").unwrap();
    for name in ["agents", "agents/main"] {
        let (read, written) = replaced(name, file);
        for text in [read, written] {
            assert!(text.contains("is not a folder"), "{name}: {text}");
        }
    }
    // One that leads nowhere, and one that leads to another agent's files.
    for elsewhere in ["/nowhere/at/all", "/"] {
        for name in ["agents", "agents/main"] {
            let (read, written) = replaced(name, |path| symlink(elsewhere, path).unwrap());
            for text in [read, written] {
                assert!(text.contains("is a symbolic link"), "{name}: {text}");
            }
        }
    }
}

#[test]
fn a_root_that_is_a_link_to_nowhere_says_so() {
    let folder = folder();
    let link = folder.path().join("link");
    for target in ["missing", "link"] {
        drop(fs::remove_file(&link));
        symlink(folder.path().join(target), &link).unwrap();
        let text = unavailable(open(&link));
        assert!(text.contains("is a symbolic link to"), "{text}");
        assert!(text.contains(target) && !text.contains("log"), "{text}");
    }
    fs::create_dir(folder.path().join("missing")).unwrap();
    drop(fs::remove_file(&link));
    symlink(folder.path().join("missing"), &link).unwrap();
    open(&link).unwrap();
}

#[test]
fn the_root_itself_may_be_a_symbolic_link() {
    let store = Store::new();
    store.save(P, "a", "b");
    let link = store.folder.path().join("link");
    symlink(store.root(), &link).unwrap();
    let storage = open(&link).unwrap();
    let found = storage
        .open(access(P, Origin::Agent))
        .unwrap()
        .fetch(P, "a");
    assert_eq!(content(found.unwrap()).as_deref(), Some("b"));
}

#[test]
fn a_reader_makes_no_file() {
    let store = Store::new();
    let mut shelves = store.agent(R);
    for level in Level::ALL {
        assert_eq!(shelves.fetch(level, "a").unwrap(), None);
        assert_eq!(
            shelves.page(level, &Default::default(), None, 10).unwrap(),
            Default::default()
        );
        assert_eq!(
            shelves.search(level, "a", 0, 10).unwrap(),
            Default::default()
        );
        assert_eq!(
            shelves.versions(level, "a", None, 10).unwrap(),
            Default::default()
        );
        assert_eq!(
            shelves.stale(level, at(9), None, 10).unwrap(),
            Default::default()
        );
        assert_eq!(shelves.used(level, 0, 10, 10).unwrap(), Default::default());
        assert_eq!(shelves.edges(level, &["a".to_owned()]).unwrap(), []);
        assert_eq!(shelves.counts(level).unwrap(), Default::default());
        assert_eq!(shelves.tags(level, 10).unwrap(), []);
        assert_eq!(
            shelves.present(level, &["a".to_owned()]).unwrap(),
            [Default::default()]
        );
    }
    assert_eq!(shelves.retire("a", true).unwrap(), None);
    assert!(shelves.stamp(&"0".repeat(32), None).is_err());
    shelves.record_use(&["a".to_owned()]);
    assert!(!store.root().join("agents").exists());
}

#[test]
fn a_write_makes_its_own_file_and_no_other() {
    let store = Store::new();
    store.save(C, "a", "b");
    assert!(store.path(C).exists());
    for level in [P, I, R] {
        assert!(!store.path(level).exists());
    }
}

#[test]
fn a_level_file_of_a_newer_schema_is_refused_untouched_and_the_others_answer() {
    let store = Store::new();
    store.save(P, "a", "low");
    store.save(I, "a", "high");
    store
        .by_hand(I)
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let storage = open(&store.root()).unwrap();
    let text = unavailable(
        storage
            .open(access(I, Origin::Agent))
            .unwrap()
            .fetch(I, "a"),
    );
    assert!(
        text.contains("newer Remora") && text.contains("internal.db"),
        "{text}"
    );
    assert!(!text.contains(store.root().to_str().unwrap()), "{text}");
    let text = unavailable(
        storage
            .open(access(I, Origin::Agent))
            .unwrap()
            .put(&draft("a", "c")),
    );
    assert!(text.contains("newer Remora"), "{text}");
    let low = storage
        .open(access(P, Origin::Agent))
        .unwrap()
        .fetch(P, "a")
        .unwrap();
    assert_eq!(content(low).as_deref(), Some("low"));
}

#[test]
fn a_damaged_level_file_is_named_and_the_others_answer() {
    let store = Store::new();
    store.save(P, "a", "low");
    store.save(I, "a", "high");
    drop(store.storage);
    let path = store.folder.path().join("store/agents/main/internal.db");
    fs::write(&path, vec![0x55; 8192]).unwrap();
    let storage = open(&store.folder.path().join("store")).unwrap();
    let error = storage
        .open(access(I, Origin::Agent))
        .unwrap()
        .fetch(I, "a")
        .unwrap_err();
    assert!(
        error.to_string().contains("internal.db) is damaged"),
        "{error}"
    );
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains(path.to_str().unwrap()), "{cause}");
    let low = storage
        .open(access(P, Origin::Agent))
        .unwrap()
        .fetch(P, "a")
        .unwrap();
    assert_eq!(content(low).as_deref(), Some("low"));
}

#[test]
fn a_file_under_another_name_is_not_served() {
    let store = Store::new();
    store.save(C, "a", "secret");
    drop(
        store
            .by_hand(C)
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())),
    );
    fs::copy(store.path(C), store.path(P)).unwrap();
    let text = unavailable(store.agent(P).fetch(P, "a"));
    assert!(text.contains("is not what its name says"), "{text}");
    fs::create_dir(store.root().join("agents/other")).unwrap();
    fs::copy(
        store.path(C),
        store.root().join("agents/other/confidential.db"),
    )
    .unwrap();
    let other = Access {
        agent: "other".to_owned(),
        ..access(C, Origin::Agent)
    };
    let text = unavailable(store.open(other).fetch(C, "a"));
    assert!(
        text.contains("is not what its name says") && !text.contains("main"),
        "{text}"
    );
}

#[test]
fn a_file_of_another_store_is_not_served() {
    let (one, two) = (Store::new(), Store::new());
    one.save(P, "a", "b");
    two.save(P, "a", "c");
    drop(
        one.by_hand(P)
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())),
    );
    // Its last connection writes the WAL back and takes it away.
    drop(two.storage);
    fs::copy(
        one.path(P),
        two.folder.path().join("store/agents/main/public.db"),
    )
    .unwrap();
    let storage = open(&two.folder.path().join("store")).unwrap();
    let text = unavailable(
        storage
            .open(access(P, Origin::Agent))
            .unwrap()
            .fetch(P, "a"),
    );
    assert!(text.contains("another store"), "{text}");
}

#[test]
fn a_file_taken_away_is_empty_and_one_put_in_its_place_is_read() {
    let store = Store::new();
    store.save(P, "a", "b");
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("b"));
    let away = store.folder.path().join("away");
    fs::create_dir(&away).unwrap();
    for name in ["public.db", "public.db-wal", "public.db-shm"] {
        let path = store.root().join("agents/main").join(name);
        if path.exists() {
            fs::rename(path, away.join(name)).unwrap();
        }
    }
    // The pooled connections still see the old file.
    assert_eq!(store.seen(P, P, "a"), None);
    store.save(P, "a", "c");
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("c"));
}

#[test]
fn a_store_that_may_not_be_written_says_so() {
    let store = Store::new();
    store.save(P, "a", "b");
    let db = store.root().join("agents/main/public.db");
    fs::set_permissions(&db, fs::Permissions::from_mode(0o400)).unwrap();
    // Root may write whatever the mode says.
    if fs::OpenOptions::new().write(true).open(&db).is_err() {
        let storage = open(&store.root()).unwrap();
        let text = unavailable(
            storage
                .open(access(P, Origin::Agent))
                .unwrap()
                .put(&draft("c", "d")),
        );
        assert!(text.contains("public.db"), "{text}");
    }
}

#[test]
fn agents_are_apart() {
    let store = Store::new();
    store.save(P, "a", "b");
    for agent in ["Main", "MAIN", "maın", "main2", "%6dain"] {
        let access = Access {
            agent: agent.to_owned(),
            ..access(P, Origin::Agent)
        };
        assert_eq!(store.open(access).fetch(P, "a").unwrap(), None, "{agent}");
    }
    let bad = Access {
        agent: " ".to_owned(),
        ..access(P, Origin::Agent)
    };
    let error = store.storage.open(bad).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_session_connection_can_do_nothing_but_its_work() {
    let store = Store::new();
    store.save(P, "a", "b");
    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let reader = inner.reader(&file, file.place(), None).unwrap().unwrap();
    let writer = inner.writer(&file, None).unwrap();
    for link in [&reader, &writer] {
        link.run(|db| {
            for sql in [
                "ATTACH '/tmp/x.db' AS x",
                "DETACH main",
                "PRAGMA journal_mode = DELETE",
                "PRAGMA user_version",
                "PRAGMA trusted_schema = ON",
                "PRAGMA data_version = 3",
                "VACUUM INTO '/tmp/x.db'",
            ] {
                assert!(db.execute_batch(sql).is_err(), "{sql}");
            }
            db.query_row("PRAGMA data_version", [], |_| Ok(()))?;
            assert!(
                db.execute("UPDATE memory_words_data SET block = x''", [])
                    .is_err()
            );
            Ok(())
        })
        .unwrap();
    }
    reader
        .run(|db| {
            assert!(db.execute("DELETE FROM record_tag", []).is_err());
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_connection_has_every_setting() {
    let store = Store::new();
    store.save(P, "a", "b");
    let path = store.path(P);
    let db = store
        .storage
        .inner
        .pool
        .connect(&path, super::super::connection::Mode::Write)
        .unwrap();
    for (pragma, value) in [
        ("journal_mode", "wal"),
        ("foreign_keys", "1"),
        ("synchronous", "2"),
        ("secure_delete", "1"),
        ("temp_store", "2"),
        ("trusted_schema", "0"),
        ("cell_size_check", "1"),
        ("busy_timeout", "5000"),
    ] {
        let found: rusqlite::types::Value = db
            .pragma_query_value(None, pragma, |row| row.get(0))
            .unwrap();
        let found = match found {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, value, "{pragma}");
    }
    use rusqlite::config::DbConfig;
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
    ] {
        assert_eq!(db.db_config(config).unwrap(), value, "{config:?}");
    }
    for index in ["memory_words", "memory_grams"] {
        let secure: i64 = db
            .query_row(
                &format!("SELECT v FROM {index}_config WHERE k = 'secure-delete'"),
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(secure, 1, "{index}");
    }
}

#[test]
fn a_backup_in_another_journal_mode_is_read_as_it_is_and_brought_to_wal_by_a_write() {
    let store = Store::new();
    store.save(P, "a", "b");
    let copy = store.folder.path().join("copy.db");
    store
        .by_hand(P)
        .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    for name in ["public.db-wal", "public.db-shm", "public.db"] {
        drop(fs::remove_file(store.root().join("agents/main").join(name)));
    }
    fs::copy(&copy, store.path(P)).unwrap();
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("b"));
    store.save(P, "a", "c");
    assert_eq!(store.seen(P, P, "a").as_deref(), Some("c"));
    let mode: String = store
        .by_hand(P)
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn the_store_says_where_it_is() {
    let store = Store::new();
    assert_eq!(
        Path::new(&store.storage.location()),
        fs::canonicalize(store.root()).unwrap()
    );
    assert!(store.storage.control().check().is_ok());
    store.storage.check().unwrap();
}

#[test]
fn what_a_crash_left_half_written_is_undone_by_the_first_who_reads() {
    let store = Store::new();
    store.storage.create(&new_session("s"), at(0)).unwrap();
    store.save(P, "k", "words");
    let root = store.root();
    let level = store.path(P);
    // Connections that are kept for the next call hold the files in WAL mode.
    let Store {
        folder: _kept,
        storage,
    } = store;
    drop(storage);
    for (path, change) in [
        (level, "UPDATE record SET content = 'half'"),
        (
            root.join("sessions.db"),
            "UPDATE session SET taint = 'half'",
        ),
    ] {
        let journal = PathBuf::from(format!("{}-journal", path.display()));
        let copies = [root.join("db.copy"), root.join("journal.copy")];
        let by_hand = Connection::open(&path).unwrap();
        by_hand
            .query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
            .unwrap();
        // More than the cache holds, so that half of it is in the file.
        by_hand
            .execute_batch(
                "PRAGMA cache_size = 1;
                 BEGIN IMMEDIATE;
                 CREATE TABLE half (x);
                 INSERT INTO half VALUES (zeroblob(1000000));",
            )
            .unwrap();
        by_hand.execute(change, []).unwrap();
        std::fs::copy(&path, &copies[0]).unwrap();
        std::fs::copy(&journal, &copies[1]).unwrap();
        by_hand.execute_batch("ROLLBACK").unwrap();
        drop(by_hand);
        std::fs::copy(&copies[0], &path).unwrap();
        std::fs::copy(&copies[1], &journal).unwrap();

        let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
        let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
        assert_eq!(live(shelves.fetch(P, "k").unwrap()).content, "words");
        assert!(storage.load("s").unwrap().is_some());
        assert!(!journal.exists());
    }
}

fn new_session(name: &str) -> crate::storage::NewSession {
    crate::storage::NewSession {
        name: name.to_owned(),
        agent: "main".to_owned(),
        clearance: R,
        origin: Origin::Agent,
    }
}
