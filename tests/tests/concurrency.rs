//! Processes at once on one store.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::sync::{Arc, Barrier};

use remora_host::{Level, SessionOptions, Store};
use remora_tests::{AGENT, Calls, Sandbox, folder};
use serde_json::json;

use crate::processes;

const PROCESSES: usize = 8;
const EACH: usize = 100;

fn start(test: &str, store: &std::path::Path, argument: &str) -> Child {
    processes::child(test, store, argument)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child")
}

/// All at once on a path where nothing is: each makes the store or finds it made.
#[test]
fn what_eight_processes_save_is_there_and_none_of_it_twice() {
    let folder = folder();
    let path = folder.path().join("store");
    let children: Vec<Child> = (0..PROCESSES)
        .map(|number| start("concurrency::save_a_hundred", &path, &number.to_string()))
        .collect();
    let mut acknowledged = BTreeSet::new();
    for child in children {
        let said = processes::said(child.wait_with_output().expect("a child"));
        assert_eq!(said.len(), EACH);
        for key in said {
            assert!(acknowledged.insert(key), "acknowledged twice");
        }
    }
    assert_eq!(acknowledged.len(), PROCESSES * EACH);
    let sandbox = Sandbox::in_folder(folder);
    let stored = sandbox.at(Level::Public).list(json!({ "limit": 200 }));
    assert_eq!(stored.len(), acknowledged.len(), "none twice");
    assert_eq!(stored.into_iter().collect::<BTreeSet<_>>(), acknowledged);
    // Each was saved once, and nothing is half there.
    let rows = crate::policy::rows(
        &sandbox,
        Level::Public,
        "SELECT count(*), count(DISTINCT id), max(version) FROM record",
    );
    assert_eq!(rows, ["Integer(800)|Integer(800)|Integer(1)"]);
    let check = crate::policy::rows(&sandbox, Level::Public, "PRAGMA integrity_check");
    assert_eq!(check, ["ok"]);
    assert_eq!(sandbox.trail(Level::Public).len(), PROCESSES * EACH);
    assert_eq!(sandbox.at(Level::Public).search("common").len(), 100);
}

#[test]
fn save_a_hundred() {
    let Some((path, number)) = processes::told() else {
        return;
    };
    let store = Store::open(&path).expect("a store");
    let session = store
        .session(&format!("process-{number}"), &SessionOptions::new(AGENT))
        .expect("a session");
    for i in 0..EACH {
        let key = format!("{number}-{i:03}");
        let answer = session.save(&key, "common words of one among many");
        assert_eq!(answer["outcome"], "created");
        processes::say(&key);
    }
}

#[test]
fn versions_of_one_key_are_counted_without_gaps_by_processes_at_once() {
    let sandbox = Sandbox::new();
    let children: Vec<Child> = (0..4)
        .map(|number| {
            start(
                "concurrency::save_one_key",
                &sandbox.path(),
                &number.to_string(),
            )
        })
        .collect();
    let mut versions = Vec::new();
    for child in children {
        versions.extend(processes::said(child.wait_with_output().expect("a child")));
    }
    let mut versions: Vec<u64> = versions
        .iter()
        .map(|v| v.parse().expect("a number"))
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=100).collect::<Vec<u64>>());
}

#[test]
fn save_one_key() {
    let Some((path, number)) = processes::told() else {
        return;
    };
    let store = Store::open(&path).expect("a store");
    let session = store
        .session("shared", &SessionOptions::new(AGENT))
        .expect("a session");
    for i in 0..25 {
        let answer = session.save("k", &format!("{number}-{i}"));
        processes::say(&answer["version"].to_string());
    }
}

#[test]
fn stores_that_open_at_once_on_an_empty_path_all_open() {
    for _ in 0..5 {
        let folder = folder();
        let path = folder.path().join("deep/er/store");
        let barrier = Barrier::new(4);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let store = Store::open(path).expect("a store");
                    let session = store
                        .session("shared", &SessionOptions::new(AGENT))
                        .expect("a session");
                    session.save(&format!("k{number}"), "words");
                });
            }
        });
        let store = Store::open(&path).expect("a store");
        let session = store.existing_session("shared").expect("one session");
        assert_eq!(session.list(json!({})), ["k0", "k1", "k2", "k3"]);
        // No temporary file is left.
        for entry in std::fs::read_dir(&path).expect("the store") {
            let name = entry.expect("an entry").file_name();
            assert!(!name.to_string_lossy().ends_with(".tmp"), "{name:?}");
        }
    }
}

#[test]
fn a_session_made_by_many_at_once_is_one_and_its_taint_is_the_highest() {
    let sandbox = Sandbox::new();
    let barrier = Arc::new(Barrier::new(8));
    std::thread::scope(|scope| {
        for number in 0..8_usize {
            let barrier = Arc::clone(&barrier);
            let store = sandbox.reopen().expect("a store");
            scope.spawn(move || {
                barrier.wait();
                let taint = Level::ALL[number % 4];
                store
                    .session("shared", &SessionOptions::new(AGENT).taint(taint))
                    .expect("a session");
            });
        }
    });
    let names: Vec<String> = sandbox
        .store
        .sessions()
        .expect("sessions")
        .into_iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(names, ["shared"]);
    let row = sandbox.session("shared").state().expect("its row");
    assert_eq!(row.taint, Level::Restricted);
}

#[test]
fn calls_of_one_process_at_once_are_all_done() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Internal);
    std::thread::scope(|scope| {
        for number in 0..20 {
            let session = &session;
            scope.spawn(move || {
                for i in 0..5 {
                    session.save(&format!("k{number}-{i}"), "words");
                    session.search("words");
                }
            });
        }
    });
    assert_eq!(session.list(json!({})).len(), 100);
}

/// What processes said that they had saved. The last line may be torn; the word
/// behind the key says that it is whole.
fn acknowledged(log: &std::path::Path) -> Vec<String> {
    let log = std::fs::read_to_string(log).expect("the log");
    log.lines()
        .filter_map(|line| line.split_once("> ")?.1.strip_suffix(" ok"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let folder = folder();
    let path = folder.path().join("store");
    Store::open(&path).expect("a store");
    let log = folder.path().join("acknowledged");
    for round in 0..3 {
        let out = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log");
        let mut child = processes::child("concurrency::save_for_ever", &path, &round.to_string())
            .stdout(out)
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        // In the middle of its work, however long it took to get there.
        let enough = 20 * (round + 1);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while acknowledged(&log).len() < enough && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
    }
    let sandbox = Sandbox::in_folder(folder);
    let stored: BTreeSet<String> = sandbox
        .at(Level::Public)
        .list(json!({ "limit": 200 }))
        .into_iter()
        .collect();
    let acknowledged = acknowledged(&log);
    assert!(acknowledged.len() >= 60, "only {}", acknowledged.len());
    for key in acknowledged {
        assert!(stored.contains(&key), "{key} was acknowledged");
    }
    let check = crate::policy::rows(&sandbox, Level::Public, "PRAGMA integrity_check");
    assert_eq!(check, ["ok"]);
}

#[test]
fn save_for_ever() {
    let Some((path, round)) = processes::told() else {
        return;
    };
    let store = Store::open(&path).expect("a store");
    let session = store
        .session("mortal", &SessionOptions::new(AGENT))
        .expect("a session");
    for i in 0.. {
        let key = format!("{round}-{i:06}");
        session.save(&key, "words");
        processes::say(&format!("{key} ok"));
    }
}
