//! What the tests over Remora's boundaries share: a store in a temporary folder
//! with a clock that stands still, the compiled component and the puppet, and
//! calls in JSON.
//!
//! The tests are in `tests/`, one binary, so that wasmtime is linked once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use remora_host::storage::SqliteStorage;
use remora_host::storage::sqlite::SqliteOptions;
use remora_host::{
    Clock, Instant, Level, Plugin, PluginOptions, Session, SessionOptions, Store, ToolError,
};
use serde_json::Value;

pub mod fuzz;
pub mod table;

/// The puppet: a component that makes whatever import calls it is told to. Its
/// script is documented in `tests/puppet/src/script.rs`.
pub const PUPPET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/puppet.component.wasm"));

/// The agent whose memory the tests use when they name none.
pub const AGENT: &str = "tests";

/// Options with the compiled components kept where the build keeps its files.
#[must_use]
pub fn plugin_options() -> PluginOptions {
    PluginOptions {
        cache_folder: Some(PathBuf::from(concat!(env!("OUT_DIR"), "/compiled"))),
        ..PluginOptions::default()
    }
}

/// Remora's own component, compiled once a process.
pub fn remora() -> &'static Plugin {
    static REMORA: LazyLock<Plugin> =
        LazyLock::new(|| Plugin::embedded(plugin_options()).expect("the component runs"));
    &REMORA
}

/// The puppet, compiled once a process.
pub fn puppet() -> &'static Plugin {
    static PUPPET_PLUGIN: LazyLock<Plugin> =
        LazyLock::new(|| Plugin::new(PUPPET, plugin_options()).expect("the puppet runs"));
    &PUPPET_PLUGIN
}

/// A clock that moves only when it is told to.
#[derive(Debug)]
pub struct StandingClock(AtomicI64);

impl Default for StandingClock {
    /// 2026-11-30T01:04:33Z.
    fn default() -> Self {
        Self(AtomicI64::new(1_796_000_673_000))
    }
}

impl StandingClock {
    /// Lets time pass.
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets it.
    pub fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Instant {
        Instant::from_millis_clamped(self.0.load(Ordering::SeqCst))
    }
}

/// A folder for one test. In memory where the machine has such a place: the
/// store syncs every save, and that is not what most tests are about.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    let shared_memory = Path::new("/dev/shm");
    tempfile::tempdir_in(shared_memory)
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder")
}

/// A store of its own for one test. It reads two rows at a time, so that whatever
/// goes wrong at the end of a page goes wrong at once.
#[derive(Debug)]
pub struct Sandbox {
    folder: tempfile::TempDir,
    /// What time it is in the store.
    pub clock: Arc<StandingClock>,
    /// The store.
    pub store: Store,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::in_folder(folder())
    }

    /// The store in a folder, which may have one already.
    #[must_use]
    pub fn in_folder(folder: tempfile::TempDir) -> Self {
        let clock = Arc::new(StandingClock::default());
        let store = open(&folder.path().join("store"), &clock).expect("a store");
        Self {
            folder,
            clock,
            store,
        }
    }

    /// The store's folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// The file of a level of [`AGENT`].
    #[must_use]
    pub fn level_file(&self, level: Level) -> PathBuf {
        level_file(&self.path(), AGENT, level)
    }

    /// Closes the store, so that its files are whole.
    #[must_use]
    pub fn close(self) -> (tempfile::TempDir, Arc<StandingClock>) {
        (self.folder, self.clock)
    }

    /// Opens the store once more, as another process would.
    ///
    /// # Errors
    /// What keeps it from being opened.
    pub fn reopen(&self) -> Result<Store, remora_host::Error> {
        open(&self.path(), &self.clock)
    }

    /// The session at this level that bears its name.
    #[must_use]
    pub fn at(&self, level: Level) -> Session {
        at(&self.store, level)
    }

    /// A named session at PUBLIC or wherever it was before.
    #[must_use]
    pub fn session(&self, name: &str) -> Session {
        self.store
            .session(name, &SessionOptions::new(AGENT))
            .expect("a session")
    }

    /// The kinds of a level's audit trail, oldest first.
    #[must_use]
    pub fn trail(&self, level: Level) -> Vec<String> {
        let events = self.store.events(AGENT, level).expect("the trail");
        events.into_iter().map(|event| event.kind).collect()
    }
}

/// The file of a level of an agent whose name needs no encoding.
#[must_use]
pub fn level_file(store: &Path, agent: &str, level: Level) -> PathBuf {
    store
        .join("agents")
        .join(agent)
        .join(format!("{}.db", level.file_stem()))
}

/// The session of a store that bears a level's name and is at it.
#[must_use]
pub fn at(store: &Store, level: Level) -> Session {
    store
        .session(level.name(), &SessionOptions::new(AGENT).taint(level))
        .expect("a session")
}

/// Opens a store that reads two rows at a time.
///
/// # Errors
/// What keeps it from being opened.
pub fn open(path: &Path, clock: &Arc<StandingClock>) -> Result<Store, remora_host::Error> {
    open_with(path, clock, SqliteOptions::default())
}

/// Opens a store that reads two rows at a time, with other options.
///
/// # Errors
/// What keeps it from being opened.
pub fn open_with(
    path: &Path,
    clock: &Arc<StandingClock>,
    options: SqliteOptions,
) -> Result<Store, remora_host::Error> {
    let storage = SqliteStorage::open(path, options.page_rows(2))?;
    let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
    Ok(Store::with(Arc::new(storage), clock))
}

/// Calls of a session.
pub trait Calls {
    /// The answer of a tool of Remora's own component, byte for byte.
    ///
    /// # Errors
    /// What the tool says.
    fn raw(&self, tool: &str, arguments: &str) -> Result<String, ToolError>;

    /// The answer of the puppet.
    ///
    /// # Errors
    /// What ended the call.
    fn told(&self, steps: Value) -> Result<Vec<Value>, ToolError>;

    /// The answer of a tool.
    ///
    /// # Panics
    /// When there is none.
    fn ask(&self, tool: &str, arguments: Value) -> Value {
        let text = self
            .raw(tool, &arguments.to_string())
            .unwrap_or_else(|error| panic!("{tool} {arguments}: {error:?}"));
        serde_json::from_str(&text).expect("an answer is JSON")
    }

    /// The code of a tool's failure.
    ///
    /// # Panics
    /// When it does not fail.
    fn code(&self, tool: &str, arguments: Value) -> String {
        match self.raw(tool, &arguments.to_string()) {
            Ok(answer) => panic!("{tool} {arguments} answered {answer}"),
            Err(error) => error.code,
        }
    }

    /// Saves a memory.
    fn save(&self, key: &str, content: &str) -> Value {
        self.ask(
            "memory_save",
            serde_json::json!({ "key": key, "content": content }),
        )
    }

    /// Saves a memory with tags.
    fn save_tagged(&self, key: &str, content: &str, tags: &[&str]) -> Value {
        self.ask(
            "memory_save",
            serde_json::json!({ "key": key, "content": content, "tags": tags }),
        )
    }

    /// The content that `memory_get` finds.
    fn get(&self, key: &str) -> Option<String> {
        let answer = self.ask("memory_get", serde_json::json!({ "key": key }));
        answer["found"]
            .as_bool()
            .expect("found says whether it is")
            .then(|| answer["content"].as_str().expect("content").to_owned())
    }

    /// The keys that a search finds, best first.
    fn search(&self, query: &str) -> Vec<String> {
        let answer = self.ask(
            "memory_search",
            serde_json::json!({ "query": query, "max_results": 100 }),
        );
        keys(&answer["results"])
    }

    /// The keys that a whole list has, gathered over its pages.
    fn list(&self, arguments: Value) -> Vec<String> {
        let mut arguments = arguments;
        let mut listed = Vec::new();
        loop {
            let answer = self.ask("memory_list", arguments.clone());
            listed.extend(keys(&answer["memories"]));
            match &answer["next_cursor"] {
                Value::Null => return listed,
                cursor => arguments["cursor"] = cursor.clone(),
            }
        }
    }
}

/// The keys of records in an answer.
///
/// # Panics
/// On something else.
#[must_use]
pub fn keys(records: &Value) -> Vec<String> {
    let records = records.as_array().expect("a list of records");
    records
        .iter()
        .map(|record| record["key"].as_str().expect("a key").to_owned())
        .collect()
}

impl Calls for Session {
    fn raw(&self, tool: &str, arguments: &str) -> Result<String, ToolError> {
        remora().invoke(self, tool, arguments)
    }

    fn told(&self, steps: Value) -> Result<Vec<Value>, ToolError> {
        run(puppet(), self, steps)
    }
}

/// Lets a puppet with limits of its own do something.
///
/// # Errors
/// What ended the call.
pub fn run(puppet: &Plugin, session: &Session, steps: Value) -> Result<Vec<Value>, ToolError> {
    let answer = puppet.invoke(session, "run", &steps.to_string())?;
    Ok(serde_json::from_str(&answer).expect("the puppet answers JSON"))
}
