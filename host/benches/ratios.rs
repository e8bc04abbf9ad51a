//! What the component costs: `get`, `save` and `search` through it against the
//! same storage calls without it, on the same files, interleaved in one run; and
//! how long a server takes from its start to its first answer.
//!
//! Both sides read the session, keep the index and write the audit trail. The
//! figures are medians; what is judged is their ratio or difference, never the
//! time itself.
//!
//!     cargo bench -p remora-host --bench ratios [-- RECORDS [ROUNDS]]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use remora_host::storage::sqlite::SqliteOptions;
use remora_host::storage::{Access, Draft, Entry, SqliteStorage, StorageProvider};
use remora_host::{Level, Plugin, PluginOptions, Session, SessionOptions, Store, SystemClock};

mod words;

use words::Random;

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let records = numbers.first().copied().unwrap_or(10_000);
    let rounds = numbers.get(1).copied().unwrap_or(400);

    println!("{records} records on four levels, medians of {rounds} interleaved rounds");
    println!(
        "{:<8} {:<8} {:>14} {:>14} {:>8} {:>12}",
        "where", "call", "component µs", "without µs", "ratio", "more µs"
    );
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    measure("disk", disk, records, rounds);
    let tmpfs = Path::new("/dev/shm");
    if tmpfs.is_dir() {
        measure("tmpfs", tmpfs, records, rounds);
    } else {
        println!("tmpfs    not measured: /dev/shm is not there");
    }
    first_answer(disk);
}

/// One store and its two ways in.
struct Bench {
    provider: Arc<SqliteStorage>,
    session: Session,
    plugin: Plugin,
    random: Random,
    records: usize,
}

fn measure(place: &str, folder: &Path, records: usize, rounds: usize) {
    let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
    let storage = SqliteStorage::open(folder.path(), SqliteOptions::default()).expect("a store");
    let provider = Arc::new(storage);
    let store = Store::with(Arc::clone(&provider) as _, Arc::new(SystemClock));
    let options = SessionOptions::new("bench").taint(Level::Restricted);
    let session = store.session("bench", &options).expect("a session");
    let plugin = Plugin::embedded(PluginOptions::default()).expect("the component");
    let mut bench = Bench {
        provider,
        session,
        plugin,
        random: Random(42),
        records,
    };
    bench.fill();

    let report = |call: &str, (mut with, mut without): (Vec<Duration>, Vec<Duration>)| {
        let (with, without) = (median(&mut with), median(&mut without));
        println!(
            "{place:<8} {call:<8} {with:>14.1} {without:>14.1} {:>8.2} {:>12.1}",
            with / without,
            with - without
        );
    };
    report("get", bench.get(rounds * 5));
    report("search", bench.search(rounds));
    report("save", bench.save(rounds));
}

impl Bench {
    /// The same as a call would get, without the component.
    fn access(&self) -> Access {
        let row = self.session.state().expect("the session");
        Access {
            agent: row.agent,
            session: row.name,
            taint: row.taint,
            origin: row.origin,
            read_only: None,
            trail: row.taint,
            now: remora_host::Clock::now(&SystemClock),
            deadline: Instant::now() + Duration::from_secs(10),
        }
    }

    fn fill(&mut self) {
        for level in Level::ALL {
            let access = Access {
                taint: level,
                ..self.access()
            };
            let mut shelves = self.provider.open(access).expect("shelves");
            for i in 0..self.records / 4 {
                let draft = self.draft(format!("{}-{i}", level.file_stem()));
                shelves.put(&draft).expect("a save");
            }
        }
    }

    fn draft(&mut self, key: String) -> Draft {
        let words = 12 + self.random.below(20);
        Draft {
            key,
            content: self.random.sentence(words),
            tags: vec![format!("tag{}", self.random.below(10))],
            source: Some("bench".to_owned()),
            ..Draft::default()
        }
    }

    fn key(&mut self) -> String {
        let level = Level::ALL[self.random.below(4)];
        format!(
            "{}-{}",
            level.file_stem(),
            self.random.below(self.records / 4)
        )
    }

    fn get(&mut self, rounds: usize) -> (Vec<Duration>, Vec<Duration>) {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let key = self.key();
            let arguments = format!(r#"{{"key":"{key}"}}"#);
            with.push(time(|| {
                let answer = self.plugin.invoke(&self.session, "memory_get", &arguments);
                black_box(answer.expect("an answer"));
            }));
            without.push(time(|| {
                let mut shelves = self.provider.open(self.access()).expect("shelves");
                for level in Level::readable_at(Level::Restricted) {
                    let entry = shelves.fetch(level, &key).expect("an entry");
                    if let Some(Entry::Live(memory)) = entry {
                        black_box(memory);
                        break;
                    }
                }
            }));
        }
        (with, without)
    }

    fn search(&mut self, rounds: usize) -> (Vec<Duration>, Vec<Duration>) {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let query = self.random.sentence(5);
            let arguments = format!(r#"{{"query":"{query}"}}"#);
            with.push(time(|| {
                let answer = self
                    .plugin
                    .invoke(&self.session, "memory_search", &arguments);
                black_box(answer.expect("an answer"));
            }));
            without.push(time(|| {
                let mut shelves = self.provider.open(self.access()).expect("shelves");
                let mut above: Vec<Level> = Vec::new();
                for level in Level::readable_at(Level::Restricted) {
                    let found = shelves.search(level, &query, 0, 10).expect("matches");
                    let keys: Vec<String> =
                        found.items.iter().map(|m| m.memory.key.clone()).collect();
                    for higher in &above {
                        black_box(shelves.present(*higher, &keys).expect("presence"));
                    }
                    above.push(level);
                    black_box(found);
                }
            }));
        }
        (with, without)
    }

    fn save(&mut self, rounds: usize) -> (Vec<Duration>, Vec<Duration>) {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let draft = self.draft(format!("with-{round}"));
            let arguments = serde_json::json!({
                "key": draft.key, "content": draft.content,
                "tags": draft.tags, "source": draft.source,
            })
            .to_string();
            with.push(time(|| {
                let answer = self.plugin.invoke(&self.session, "memory_save", &arguments);
                black_box(answer.expect("an answer"));
            }));
            let draft = self.draft(format!("without-{round}"));
            without.push(time(|| {
                let mut shelves = self.provider.open(self.access()).expect("shelves");
                black_box(shelves.put(&draft).expect("a save"));
            }));
        }
        (with, without)
    }
}

/// From the start of a server's process to its first answer, when the compiled
/// component is in the cache.
fn first_answer(folder: &Path) {
    let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
    let mut times = Vec::new();
    for start in 0..21 {
        let elapsed = time(|| {
            let mut server = Command::new(env!("CARGO_BIN_EXE_remora"))
                .args(["serve", "--session", "bench"])
                .env("REMORA_STORE", folder.path().join("store"))
                .env("REMORA_CACHE", folder.path().join("cache"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the server starts");
            let mut input = server.stdin.take().expect("its input");
            let mut output = BufReader::new(server.stdout.take().expect("its output"));
            let mut line = String::new();
            writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"bench","version":"0"}}}}}}"#)
                .expect("it reads");
            output.read_line(&mut line).expect("it answers");
            writeln!(
                input,
                r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
            )
            .expect("it reads");
            writeln!(input, r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"memory_get","arguments":{{"key":"k"}}}}}}"#)
                .expect("it reads");
            line.clear();
            output.read_line(&mut line).expect("it answers");
            assert!(line.contains(r#""id":2"#), "{line}");
            server.kill().expect("it ends");
            server.wait().expect("it ends");
        });
        // The first start compiles; the second may still find the cache being
        // written.
        if start == 0 {
            println!(
                "first start, compiling: {:.0} ms",
                elapsed.as_secs_f64() * 1e3
            );
            std::thread::sleep(Duration::from_secs(1));
        } else {
            times.push(elapsed);
        }
    }
    println!(
        "later starts, to the first memory_get over MCP: median {:.1} ms, slowest {:.1} ms",
        median(&mut times) / 1e3,
        times.last().map_or(0.0, |t| t.as_secs_f64() * 1e3)
    );
}

fn time(action: impl FnOnce()) -> Duration {
    let start = Instant::now();
    action();
    start.elapsed()
}

/// In microseconds. Sorts what it is given.
fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
