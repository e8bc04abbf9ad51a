//! What the operator's commands cost: time and memory on 10,000 and 100,000
//! records, and how the time grows from the one to the other.
//!
//! The records lie on the four levels of one agent. Half have expired by the
//! time that prune runs, a tenth is superseded, and every fourth was used. Each
//! command runs three times on a copy of the same store, in a process of its own, so
//! that the peak of its memory (`VmHWM`, the program itself included) is its own. Told
//! are the shortest of the times, on the clock and on the processor, and the highest
//! of the peaks. What is judged is the memory and the growth, never the time itself.
//!
//!     cargo bench -p remora-host --bench operator [-- RECORDS… COMMANDS…]

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant as Clock};

use remora_host::storage::sqlite::operator::{
    AuditFilter, Change, ImportOptions, Operator, Progress, Prune, Purge, RestoreOptions, days,
};
use remora_host::storage::sqlite::{SqliteOptions, SqliteStorage};
use remora_host::storage::{Access, Draft, StorageProvider};
use remora_host::{Instant, Level, Origin};

mod words;

use words::Random;

/// How often each runs.
const RUNS: usize = 3;

/// In this order, since some need what the ones before have left beside the store.
const COMMANDS: [&str; 12] = [
    "stats",
    "digest",
    "unused",
    "verify",
    "audit",
    "backup",
    "restore",
    "export",
    "import",
    "purge",
    "prune",
    "retention",
];

/// When the records are saved.
const SAVED: i64 = 1_796_000_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, command, store, records] = arguments.as_slice()
        && flag == "--command"
    {
        return child(
            command,
            Path::new(store),
            records.parse().expect("a number"),
        );
    }
    let numbers: Vec<usize> = arguments
        .iter()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let numbers = if numbers.is_empty() {
        vec![10_000, 100_000]
    } else {
        numbers
    };
    let commands: Vec<&str> = COMMANDS
        .into_iter()
        .filter(|command| {
            let named = |name: &str| arguments.iter().any(|arg| arg == name);
            !COMMANDS.into_iter().any(named) || named(command)
        })
        .collect();
    let mut before: Option<Vec<Figures>> = None;
    for records in numbers {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let store = folder.path().join("store");
        println!("\n{records} records");
        println!(
            "{:<10} {:>12} {:>8} {:>12} {:>8} {:>10}",
            "command", "time ms", "growth", "CPU ms", "growth", "peak MB"
        );
        tell("fill", &[run("fill", &store, records)], None);
        let copy = folder.path().join("copy");
        let mut figures = Vec::new();
        for (number, command) in commands.iter().enumerate() {
            let runs: Vec<Figures> = (0..RUNS)
                .map(|_| {
                    let made = match *command {
                        "backup" => "backups",
                        "restore" => "restored",
                        "import" => "imported",
                        _ => "copy",
                    };
                    for old in [&copy, &folder.path().join(made)] {
                        if old.exists() {
                            std::fs::remove_dir_all(old).expect("what was there before");
                        }
                    }
                    copy_all(&store, &copy);
                    run(command, &copy, records)
                })
                .collect();
            let smaller = before.as_ref().map(|figures| &figures[number]);
            figures.push(tell(command, &runs, smaller));
        }
        before = Some(figures);
    }
}

/// Copies a folder, and waits until it is on the disk: what a command writes is not
/// to wait for what was written before it.
fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let copy = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &copy);
        } else {
            std::fs::copy(entry.path(), &copy).expect("a copy");
            let copied = File::open(&copy).and_then(|copy| copy.sync_all());
            copied.expect("the copy on the disk");
        }
    }
    #[cfg(unix)]
    std::fs::set_permissions(to, std::fs::metadata(from).expect("a folder").permissions())
        .expect("its permissions");
}

/// What a command took.
struct Figures {
    /// Milliseconds on the clock, and on the processor.
    time: f64,
    cpu: f64,
    /// Megabytes.
    peak: f64,
}

/// Tells the best times and the worst peak of a command's runs, and returns them.
fn tell(command: &str, runs: &[Figures], smaller: Option<&Figures>) -> Figures {
    let least = |of: fn(&Figures) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
    let figures = Figures {
        time: least(|run| run.time),
        cpu: least(|run| run.cpu),
        peak: runs.iter().map(|run| run.peak).fold(0.0, f64::max),
    };
    let growth = |of: fn(&Figures) -> f64| {
        smaller.map_or_else(String::new, |smaller| {
            format!("{:.1}", of(&figures) / of(smaller))
        })
    };
    println!(
        "{command:<10} {:>12.1} {:>8} {:>12.1} {:>8} {:>10.1}",
        figures.time,
        growth(|run| run.time),
        figures.cpu,
        growth(|run| run.cpu),
        figures.peak
    );
    figures
}

/// Runs a command in a process of its own.
fn run(command: &str, store: &Path, records: usize) -> Figures {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--command", command])
        .arg(store)
        .arg(records.to_string())
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = told
        .split_whitespace()
        .map(|n| n.parse::<f64>().expect("a number"));
    let mut next = || numbers.next().expect("a number");
    Figures {
        time: next(),
        cpu: next(),
        peak: next(),
    }
}

fn child(command: &str, root: &Path, records: usize) {
    let storage = SqliteStorage::open(root, SqliteOptions::default()).expect("a store");
    // A day later, when half of the records have expired.
    let operator = storage.operator(moment(24 * 60 * 60 * 1000));
    let (start, before) = (Clock::now(), cpu());
    match command {
        "fill" => fill(&storage, records),
        _ => act(command, &operator, root, records),
    }
    println!(
        "{} {} {}",
        start.elapsed().as_secs_f64() * 1e3,
        cpu() - before,
        peak()
    );
}

fn act(command: &str, operator: &Operator<'_>, root: &Path, records: usize) {
    let quiet = &mut |_: Progress| {};
    match command {
        "stats" => {
            let stats = operator.stats(None).expect("stats");
            let all: u64 = stats.iter().map(|level| level.all).sum();
            assert_eq!(all, records as u64);
        }
        "digest" => {
            let digest = operator.digest(None, moment(0)).expect("a digest");
            let saved = digest.iter().filter(|entry| entry.change == Change::Saved);
            assert_eq!(saved.count(), records);
        }
        "unused" => {
            let unused = operator
                .unused(None, Duration::from_secs(60))
                .expect("a list");
            assert!(!unused.is_empty());
        }
        "verify" => {
            let verified = operator.verify(None, quiet).expect("a check");
            assert!(verified.is_sound(), "{:?}", verified.findings);
            assert_eq!(verified.records, records as u64);
        }
        "audit" => {
            let mut lines = 0;
            let trails = operator
                .audit(&AuditFilter::default(), &mut |_| lines += 1)
                .expect("the trails");
            assert!(trails.iter().all(|trail| trail.broken.is_none()));
            assert_eq!(lines, records);
        }
        "backup" => {
            let folder = root.with_file_name("backups");
            operator.backup(&folder, quiet).expect("a backup");
        }
        "restore" => {
            let backups = std::fs::read_dir(root.with_file_name("backups")).expect("backups");
            let backup = backups.flatten().next().expect("a backup").path();
            let store = root.with_file_name("restored");
            let options = RestoreOptions::default();
            SqliteStorage::restore(&backup, &store, operator.now(), &options, quiet)
                .expect("a restore");
        }
        "export" => {
            let file = File::create(root.with_file_name("lines")).expect("a file");
            let exported = operator
                .export(None, None, &mut BufWriter::new(file), quiet)
                .expect("an export");
            assert_eq!(exported.lines.records, records as u64);
        }
        "import" => {
            let file = File::open(root.with_file_name("lines")).expect("the export");
            let store = root.with_file_name("imported");
            let storage = SqliteStorage::open(&store, SqliteOptions::default()).expect("a store");
            let imported = storage
                .operator(operator.now())
                .import(&mut BufReader::new(file), &ImportOptions::default(), quiet)
                .expect("an import");
            assert!(imported.complete && imported.rejected.is_empty());
            assert_eq!(imported.records.imported, records as u64);
        }
        "purge" => {
            let purge = Purge::key("public 8");
            let purged = operator
                .purge(None, &purge, Duration::from_secs(10), quiet)
                .expect("a purge");
            assert_eq!(purged.iter().map(|level| level.records).sum::<u64>(), 1);
        }
        "prune" => {
            let pruned = operator
                .prune(None, &Prune::default(), quiet)
                .expect("a prune");
            let removed: u64 = pruned.iter().map(|level| level.removed()).sum();
            assert_eq!(removed, records as u64 / 2);
        }
        "retention" => {
            let forgotten = operator
                .forget_events(None, days(0), false, quiet)
                .expect("a retention");
            assert!(forgotten.iter().all(|level| level.removed > 0));
        }
        other => panic!("{other} is no command"),
    }
}

fn moment(millis: i64) -> Instant {
    Instant::from_millis(SAVED + millis).expect("a moment")
}

/// Saves so many records, on four levels.
fn fill(storage: &SqliteStorage, records: usize) {
    let mut random = Random(42);
    for level in Level::ALL {
        let access = Access {
            agent: "bench".to_owned(),
            session: "bench".to_owned(),
            taint: level,
            trail: level,
            origin: Origin::User,
            read_only: None,
            now: moment(0),
            deadline: Clock::now() + Duration::from_secs(24 * 60 * 60),
        };
        let mut shelves = storage.open(access).expect("shelves");
        let mut last: Option<String> = None;
        for number in 0..records / 4 {
            let words = 12 + random.below(20);
            let mut draft = Draft {
                key: format!("{} {number}", level.file_stem()),
                content: random.sentence(words),
                tags: vec![format!("tag{}", random.below(10))],
                source: Some("bench".to_owned()),
                ..Draft::default()
            };
            if number % 2 == 1 {
                draft.expires_at = Some(moment(1000));
            }
            // Of those that do not expire, one in five.
            if number % 10 == 4 {
                draft.supersedes = last.take().into_iter().collect();
            }
            let saved = shelves.put(&draft).expect("a save");
            if number % 2 == 0 {
                last = Some(saved.id.clone());
            }
            if number % 4 == 0 {
                shelves.fetch(level, &draft.key).expect("what was saved");
                shelves.record_use(&[saved.id]);
            }
        }
    }
}

/// How long this process was on a processor, in milliseconds.
fn cpu() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = told.split_whitespace().next().and_then(|n| n.parse().ok());
    nanos.map_or(f64::NAN, |nanos: f64| nanos / 1e6)
}

/// The most memory that this process has had, in MB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kilobytes| kilobytes.parse::<f64>().ok())
        .map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
}
