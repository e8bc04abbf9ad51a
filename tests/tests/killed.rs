//! A process that is killed in the middle of an operator's command: the store
//! opens, verifies, and each of its files is as before the command or as behind
//! it; and the same command run again gets there.
//!
//! Each command is killed a few times at random; `REMORA_TEST_KILLS` says how
//! often.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant as Stopwatch};

use remora_host::storage::sqlite::SqliteOptions;
use remora_host::storage::sqlite::operator::{
    ImportOptions, Operator, Progress, Prune, Purge, RestoreOptions,
};
use remora_host::storage::{Access, Draft, SqliteStorage, StorageProvider as _};
use remora_host::{Instant, Level, Origin};
use remora_tests::folder;

use crate::processes;

fn moment(seconds: i64) -> Instant {
    Instant::from_millis(1_796_000_000_000 + seconds * 1000).expect("a moment")
}

fn open(store: &Path) -> SqliteStorage {
    SqliteStorage::open(store, SqliteOptions::default()).expect("the store opens")
}

fn quiet(_: Progress) {}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
            processes::set_mode(&target, 0o600);
        }
    }
}

/// Every level's lines, but for audit and use.
fn state(store: &Path) -> BTreeMap<String, String> {
    let storage = open(store);
    let mut text = Vec::new();
    storage
        .operator(moment(0))
        .export(None, None, &mut text, &mut quiet)
        .expect("an export");
    let text = String::from_utf8(text).expect("text");
    let mut levels = BTreeMap::<String, String>::new();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let Some(level) = row["level"].as_str() else {
            continue;
        };
        if row["type"] != "event" && row["type"] != "usage" {
            let lines = levels.entry(level.to_owned()).or_default();
            lines.push_str(line);
            lines.push('\n');
        }
    }
    levels
}

fn verify(store: &Path) {
    let found = open(store)
        .operator(moment(0))
        .verify(None, &mut quiet)
        .expect("it is checked");
    assert!(found.is_sound(), "{found:?}");
}

fn save(storage: &SqliteStorage, level: Level, session: &str, key: &str, content: &str) {
    let mut shelves = storage
        .open(Access {
            agent: "main".to_owned(),
            session: session.to_owned(),
            taint: level,
            origin: Origin::User,
            read_only: None,
            trail: level,
            now: moment(0),
            deadline: Stopwatch::now() + Duration::from_secs(60),
        })
        .expect("shelves");
    let draft = Draft {
        key: key.to_owned(),
        content: content.to_owned(),
        ..Draft::default()
    };
    shelves.put(&draft).expect("a save");
}

/// A store with history on two levels.
fn fill(store: &Path) {
    let storage = open(store);
    for number in 0..120 {
        for level in [Level::Public, Level::Internal] {
            let key = format!("k{}", number % 60);
            save(
                &storage,
                level,
                "main",
                &key,
                &format!("some words {number}"),
            );
        }
    }
    for number in 0..20 {
        save(
            &storage,
            Level::Public,
            "poison",
            &format!("p{number}"),
            "quagga",
        );
    }
}

/// What the child does.
fn act(command: &str, store: &Path) {
    let beside = |name: &str| store.with_file_name(name);
    match command {
        "restore" => {
            let options = RestoreOptions::default().force(true);
            let backup = fs::read_dir(beside("backups"))
                .expect("backups")
                .next()
                .expect("a backup")
                .expect("an entry");
            SqliteStorage::restore(&backup.path(), store, moment(9), &options, &mut quiet)
                .expect("a restore");
        }
        _ => on(command, &open(store).operator(moment(5)), store),
    }
}

fn on(command: &str, operator: &Operator<'_>, store: &Path) {
    match command {
        "prune" => {
            let prune = Prune::default().superseded_after(Duration::ZERO);
            operator.prune(None, &prune, &mut quiet).expect("a prune");
        }
        "purge" => {
            let purge = Purge::everything_from("poison");
            operator
                .purge(None, &purge, Duration::from_secs(30), &mut quiet)
                .expect("a purge");
        }
        "backup" => {
            operator
                .backup(&store.with_file_name("backups"), &mut quiet)
                .expect("a backup");
        }
        "import" => {
            let lines = fs::File::open(store.with_file_name("lines")).expect("an export");
            operator
                .import(
                    &mut BufReader::new(lines),
                    &ImportOptions::default(),
                    &mut quiet,
                )
                .expect("an import");
        }
        "migrate" => {
            operator.stats(None).expect("stats");
        }
        other => panic!("{other} is no command"),
    }
}

#[test]
fn command() {
    let Some((store, command)) = processes::told() else {
        return;
    };
    processes::say("ready");
    act(&command, &store);
    processes::say("done");
}

/// Runs a command in a process of its own that is killed so long after it began.
/// Returns how long it took where it was faster.
fn run(command: &str, store: &Path, until: Option<Duration>) -> Option<Duration> {
    let mut child = processes::child("killed::command", store, command)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let mut lines = out.lines().map_while(Result::ok);
    assert!(
        lines.any(|line| line.contains("> ready")),
        "{command} began"
    );
    let began = Stopwatch::now();
    if let Some(until) = until {
        std::thread::sleep(until);
        child.kill().expect("killed");
    }
    let done = lines.any(|line| line.contains("> done"));
    let took = began.elapsed();
    child.wait().expect("gone");
    done.then_some(took)
}

/// What is checked of a store after the kill: it gets the states before and
/// behind the command.
type Check = fn(&Path, &BTreeMap<String, String>, &BTreeMap<String, String>);

fn kill(command: &str, prepare: impl Fn(&Path), check: Check) {
    let times = std::env::var("REMORA_TEST_KILLS").map_or(4, |n| n.parse().expect("a number"));
    let template = folder();
    prepare(&template.path().join("store"));
    let before = if command == "migrate" {
        BTreeMap::new()
    } else {
        state(&template.path().join("store"))
    };
    let whole = folder();
    copy(template.path(), whole.path());
    let took = run(command, &whole.path().join("store"), None).expect("it ends");
    let after = state(&whole.path().join("store"));
    let mut cut = 0;
    for round in 0..times {
        let crash = folder();
        copy(template.path(), crash.path());
        let store = crash.path().join("store");
        let random = RandomState::new().hash_one(round) % 1000;
        let until = took.mul_f64(random as f64 / 900.0);
        cut += usize::from(run(command, &store, Some(until)).is_none());
        verify(&store);
        check(&store, &before, &after);
        act(command, &store);
        verify(&store);
        assert_eq!(state(&store), after, "{command}, killed after {until:?}");
    }
    println!("{command}: {cut} of {times} did not get to the end");
}

/// Each file is as before or as behind the command.
fn either(store: &Path, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let found = state(store);
    for level in before.keys().chain(after.keys()) {
        let (found, before, after) = (found.get(level), before.get(level), after.get(level));
        assert!(found == before || found == after, "{level}: {found:?}");
    }
}

#[test]
fn killed_in_a_prune_each_file_is_before_or_after_it() {
    kill("prune", fill, either);
}

#[test]
fn killed_in_a_purge_each_file_is_before_or_after_it_and_a_second_run_leaves_no_word() {
    kill("purge", fill, |store, before, after| {
        either(store, before, after);
        act("purge", store);
        let mut folders = vec![store.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = fs::read(&path).expect("a file");
                let found = bytes.windows(6).any(|window| window == b"quagga");
                assert!(!found, "{}", path.display());
            }
        }
    });
}

#[test]
fn killed_in_a_backup_the_store_is_as_it_was_and_each_backup_there_is_whole() {
    kill("backup", fill, |store, before, after| {
        assert_eq!(&state(store), before);
        assert_eq!(before, after);
        let backups = store.with_file_name("backups");
        for entry in fs::read_dir(&backups).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if name.starts_with("remora-") {
                let restored = store.with_file_name("restored");
                SqliteStorage::restore(
                    &path,
                    &restored,
                    moment(9),
                    &RestoreOptions::default(),
                    &mut quiet,
                )
                .expect("a restore");
                assert_eq!(&state(&restored), before);
                // The next one bears the same moment.
                fs::remove_dir_all(path).expect("removed");
            } else {
                assert!(name.ends_with(".tmp"), "{name}");
            }
        }
    });
}

#[test]
fn killed_in_a_restore_the_store_is_before_or_after_it_as_a_whole() {
    let prepare = |store: &Path| {
        fill(store);
        act("backup", store);
        let storage = open(store);
        save(&storage, Level::Public, "main", "later", "words");
        save(&storage, Level::Confidential, "main", "later", "words");
    };
    kill("restore", prepare, |store, before, after| {
        let found = state(store);
        assert!(found == *before || found == *after, "{found:?}");
        let names: Vec<String> = fs::read_dir(store)
            .expect("the store")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
    });
}

#[test]
fn killed_in_an_import_each_record_is_there_or_not_and_a_second_run_completes_it() {
    let prepare = |store: &Path| {
        let other = store.with_file_name("other");
        fill(&other);
        let mut lines = fs::File::create(store.with_file_name("lines")).expect("a file");
        open(&other)
            .operator(moment(1))
            .export(None, None, &mut lines, &mut quiet)
            .expect("an export");
        drop(open(store));
    };
    kill("import", prepare, either);
}

#[test]
fn killed_in_a_migration_each_file_is_of_the_old_schema_or_of_the_new_one() {
    let prepare = |store: &Path| {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schema-1/store");
        copy(&kept, store);
    };
    kill("migrate", prepare, |store, _, after| {
        assert_eq!(&state(store), after);
    });
}

#[test]
fn eight_processes_that_start_at_once_on_a_store_of_the_first_schema_all_get_through() {
    let folder = folder();
    let store = folder.path().join("store");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schema-1/store");
    copy(&kept, &store);
    let children: Vec<_> = (0..8)
        .map(|_| {
            processes::child("killed::command", &store, "migrate")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a child")
        })
        .collect();
    for child in children {
        let said = processes::said(child.wait_with_output().expect("its output"));
        assert_eq!(said, ["ready", "done"]);
    }
    verify(&store);
    let records: usize = state(&store)
        .values()
        .map(|lines| lines.lines().count())
        .sum();
    assert_eq!(records, 11);
}
