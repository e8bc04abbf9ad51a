//! The property that the whole design is for, on random histories from tiny
//! pools, with a fixed clock and fixed ids.
//!
//! - *View*: what a session is told is what it would be told if the files above
//!   its taint were not there, to the last byte, search scores included; and
//!   however many rows a page has.
//! - *Purge*: take a session's raise above L and all that it does afterwards out
//!   of a history, and everything that sessions at or below L are told stays the
//!   same, and so does everything in the files at or below L: records, edges,
//!   events, index terms, seals.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use remora_host::storage::SqliteStorage;
use remora_host::storage::sqlite::SqliteOptions;
use remora_host::{Clock, Level, Origin, Session, SessionOptions, Store, ToolError};
use remora_tests::{AGENT, Calls, Sandbox, StandingClock, folder, level_file, open_with};
use serde_json::{Value, json};

const BEGAN: i64 = 1_796_000_673_000;
const SESSIONS: usize = 4;
const KEYS: [&str; 4] = ["a", "b", "B", "é/ü"];
const WORDS: [&str; 6] = [
    "apple",
    "apple pear",
    "pear pear plum",
    "plum",
    "quince, apple-pear; \"plum\"",
    "用户 apples",
];
const TAGS: [&[&str]; 4] = [&[], &["x"], &["x", "y"], &["y", "z"]];
const QUERIES: [&str; 7] = [
    "apple",
    "pear plum",
    "apple-pear",
    "quince 用户 nothing",
    "a b",
    "\"apple pear\" aplpes",
    "E/U",
];

/// Something that a session does.
#[derive(Clone, Debug)]
enum Act {
    Raise(usize),
    Save {
        key: usize,
        words: usize,
        tags: usize,
    },
    /// Saves what ends so many steps later.
    SaveFor {
        key: usize,
        words: usize,
        steps: i64,
    },
    /// Saves in place of what it sees under another key.
    Supersede {
        key: usize,
        of: usize,
        words: usize,
    },
    Delete {
        key: usize,
        hide_lower: bool,
    },
    Get {
        key: usize,
    },
    Search {
        query: usize,
        most: usize,
    },
    List {
        tags: usize,
        all: bool,
        limit: usize,
    },
    Status,
    Confirm {
        key: usize,
    },
    /// Confirms all that it sees under a key, also what is shadowed.
    ConfirmAll {
        key: usize,
    },
    Review {
        limit: usize,
    },
    History {
        key: usize,
    },
    /// Everything about the edges, the queue and the use of a key.
    Upkeep {
        key: usize,
    },
    /// With an argument that is ignored.
    Meddle {
        key: usize,
    },
}

#[derive(Clone, Debug)]
struct Step {
    session: usize,
    act: Act,
}

fn act() -> impl Strategy<Value = Act> {
    let key = 0..KEYS.len();
    let words = 0..WORDS.len();
    let tags = 0..TAGS.len();
    prop_oneof![
        3 => (1..4_usize).prop_map(Act::Raise),
        8 => (key.clone(), words.clone(), tags.clone())
            .prop_map(|(key, words, tags)| Act::Save { key, words, tags }),
        2 => (key.clone(), words.clone(), 1..6_i64)
            .prop_map(|(key, words, steps)| Act::SaveFor { key, words, steps }),
        2 => (key.clone(), key.clone(), words)
            .prop_map(|(key, of, words)| Act::Supersede { key, of, words }),
        3 => (key.clone(), any::<bool>())
            .prop_map(|(key, hide_lower)| Act::Delete { key, hide_lower }),
        2 => key.clone().prop_map(|key| Act::Get { key }),
        3 => (0..QUERIES.len(), 1..4_usize).prop_map(|(query, most)| Act::Search { query, most }),
        2 => (tags, any::<bool>(), 1..4_usize)
            .prop_map(|(tags, all, limit)| Act::List { tags, all, limit }),
        1 => Just(Act::Status),
        2 => key.clone().prop_map(|key| Act::Confirm { key }),
        2 => key.clone().prop_map(|key| Act::ConfirmAll { key }),
        2 => (1..4_usize).prop_map(|limit| Act::Review { limit }),
        1 => key.clone().prop_map(|key| Act::History { key }),
        2 => key.clone().prop_map(|key| Act::Upkeep { key }),
        1 => key.prop_map(|key| Act::Meddle { key }),
    ]
}

fn history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(
        (0..SESSIONS, act()).prop_map(|(session, act)| Step { session, act }),
        steps / 2..steps,
    )
}

/// A store in which everything is fixed: its key, the clock, the ids of each step.
struct Fixed {
    folder: tempfile::TempDir,
    clock: Arc<StandingClock>,
    ids: Arc<AtomicU64>,
    store: Store,
    sessions: Vec<Session>,
}

fn open_fixed(path: &Path, clock: &Arc<StandingClock>, ids: &Arc<AtomicU64>) -> Store {
    let ids = Arc::clone(ids);
    let options = SqliteOptions::default()
        .ids(move || u128::from(ids.fetch_add(1, Ordering::SeqCst)).to_be_bytes());
    open_with(path, clock, options).expect("a store")
}

impl Fixed {
    /// Sessions may have clearances.
    fn new(clearances: [Level; SESSIONS]) -> Self {
        let folder = folder();
        let path = folder.path().join("store");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("store.key"), [42; 32]).expect("a key");
        crate::processes::set_mode(&path.join("store.key"), 0o600);
        let clock = Arc::new(StandingClock::default());
        let ids = Arc::new(AtomicU64::new(0));
        let store = open_fixed(&path, &clock, &ids);
        let sessions = clearances
            .into_iter()
            .enumerate()
            .map(|(number, clearance)| {
                // One of them speaks as a model, one as a tool.
                let origin = [Origin::User, Origin::Agent, Origin::User, Origin::Tool][number];
                let options = SessionOptions::new(AGENT)
                    .clearance(clearance)
                    .origin(origin);
                store
                    .session(&format!("s{number}"), &options)
                    .expect("a session")
            })
            .collect();
        Self {
            folder,
            clock,
            ids,
            store,
            sessions,
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store")
    }

    /// Does the step that has that number in its history, and says what the
    /// session was told.
    fn step(&self, number: usize, step: &Step) -> String {
        let number = i64::try_from(number).expect("a short history");
        let now = BEGAN + number * 1000;
        self.clock.set(now);
        // Ids tell the step that made them, whatever else has happened.
        self.ids.store(
            u64::try_from(number).expect("a short history") << 16,
            Ordering::SeqCst,
        );
        let session = &self.sessions[step.session];
        let told = |tool: &str, arguments: Value| match session.raw(tool, &arguments.to_string()) {
            Ok(answer) => answer,
            Err(error) => format!("{error:?}"),
        };
        match &step.act {
            Act::Raise(level) => match session.raise(Level::ALL[*level]) {
                Ok(row) => format!("{row:?}"),
                Err(error) => error.to_string(),
            },
            Act::Save { key, words, tags } => told(
                "memory_save",
                json!({ "key": KEYS[*key], "content": WORDS[*words], "tags": TAGS[*tags] }),
            ),
            Act::SaveFor { key, words, steps } => {
                let put = session.told(json!([{
                    "do": "put", "key": KEYS[*key], "content": WORDS[*words], "tags": ["x"],
                    "expires_at": now + steps * 1000,
                }]));
                format!("{:?}", put.expect("the puppet answers"))
            }
            Act::Supersede { key, of, words } => {
                let seen = session
                    .told(json!([{ "do": "shelves" }, { "do": "everything", "key": KEYS[*of], "text": "apple" }]))
                    .expect("the puppet answers");
                let shelves = seen[1]["ok"].as_array().expect("shelves");
                let ids: Vec<&Value> = shelves
                    .iter()
                    .map(|shelf| &shelf["fetch"]["id"])
                    .filter(|id| id.is_string())
                    .collect();
                let ids: Vec<&Value> = ids.into_iter().take(1).collect();
                let put = session.told(json!([{
                    "do": "put", "key": KEYS[*key], "content": WORDS[*words], "supersedes": ids,
                }]));
                format!("{seen:?} {:?}", put.expect("the puppet answers"))
            }
            Act::Delete { key, hide_lower } => told(
                "memory_delete",
                json!({ "key": KEYS[*key], "hide_lower": hide_lower }),
            ),
            Act::Get { key } => told("memory_get", json!({ "key": KEYS[*key] })),
            Act::Search { query, most } => told(
                "memory_search",
                json!({ "query": QUERIES[*query], "max_results": most }),
            ),
            Act::List { tags, all, limit } => told(
                "memory_list",
                json!({
                    "tags": TAGS[*tags], "match": if *all { "all" } else { "any" }, "limit": limit,
                }),
            ),
            Act::Status => told("memory_status", json!({})),
            Act::Confirm { key } => told(
                "memory_confirm",
                json!({ "key": KEYS[*key], "source": "a letter" }),
            ),
            Act::ConfirmAll { key } => {
                let ids = seen_ids(session, KEYS[*key]);
                let steps: Vec<Value> = ids
                    .iter()
                    .map(|id| json!({ "do": "stamp", "id": id }))
                    .collect();
                format!("{:?}", session.told(Value::Array(steps)))
            }
            Act::Review { limit } => told(
                "memory_review",
                json!({ "older_than_days": 0, "limit": limit }),
            ),
            Act::History { key } => told("memory_history", json!({ "key": KEYS[*key] })),
            Act::Upkeep { key } => format!("{:?}", upkeep(session, KEYS[*key])),
            Act::Meddle { key } => told(
                "memory_get",
                json!({ "key": KEYS[*key], "taint": "RESTRICTED" }),
            ),
        }
    }
}

/// The ids of what a session sees under a key, on every shelf.
fn seen_ids(session: &Session, key: &str) -> Vec<String> {
    let seen = session
        .told(json!([{ "do": "shelves" }, { "do": "everything", "key": key, "text": "apple" }]))
        .expect("the puppet answers");
    let shelves = seen[1]["ok"].as_array().expect("shelves");
    shelves
        .iter()
        .filter_map(|shelf| shelf["fetch"]["id"].as_str().map(str::to_owned))
        .collect()
}

/// What the shelves tell of versions, edges, the queue and use, after what was
/// seen was said to be used.
fn upkeep(session: &Session, key: &str) -> Result<Vec<Value>, ToolError> {
    // The ids of another call: the shelf is read again before they are counted.
    let ids = seen_ids(session, key);
    session.told(json!([
        { "do": "shelves" },
        { "do": "everything", "key": key, "text": "plum" },
        { "do": "use", "ids": ids },
        { "do": "everything", "key": key, "text": "apple" },
    ]))
}

/// Everything that a session can be told about the pools.
fn everything(session: &Session) -> String {
    let mut text = String::new();
    let mut told = |tool: &str, arguments: Value| {
        let answer = session.raw(tool, &arguments.to_string());
        writeln!(text, "{tool} {arguments}: {answer:?}").expect("a String takes it");
    };
    for key in KEYS {
        told("memory_get", json!({ "key": key }));
    }
    for query in QUERIES {
        for most in [1, 2, 100] {
            told(
                "memory_search",
                json!({ "query": query, "max_results": most }),
            );
        }
    }
    for tags in TAGS {
        for limit in [1, 3] {
            told("memory_list", json!({ "tags": tags, "limit": limit }));
            told(
                "memory_list",
                json!({ "tags": tags, "match": "all", "limit": limit }),
            );
        }
    }
    told("memory_status", json!({}));
    for key in KEYS {
        told("memory_history", json!({ "key": key }));
    }
    for limit in [1, 2, 200] {
        told(
            "memory_review",
            json!({ "older_than_days": 0, "limit": limit }),
        );
    }
    let raw = session.told(
        json!([{ "do": "shelves" }, { "do": "everything", "key": "a", "text": "apple plum" }]),
    );
    writeln!(text, "{raw:?}").expect("a String takes it");
    text
}

/// Everything in a level's file but how SQLite lays it out.
fn dump(store: &Path, level: Level) -> String {
    let file = level_file(store, AGENT, level);
    if !file.exists() {
        return "no file".to_owned();
    }
    let db = rusqlite::Connection::open(file).expect("the file");
    let mut text = String::new();
    for table in [
        "meta",
        "record",
        "record_tag",
        "edge",
        "stamp",
        "usage",
        "erased",
        "event",
        "memory_word_terms",
        "memory_gram_terms",
        "memory_vocabulary",
        "memory_key",
        // What FTS5 counts: records, and terms of each column.
        "memory_words_data WHERE id = 1",
        "memory_grams_data WHERE id = 1",
        "memory_words_config",
        "memory_grams_config",
        "live_memory",
        "sqlite_schema",
    ] {
        let mut statement = db
            .prepare(&format!("SELECT * FROM {table}"))
            .unwrap_or_else(|error| panic!("{table}: {error}"));
        let columns = statement.column_count();
        let mut lines = statement
            .query_map([], |row| {
                let mut line = String::new();
                for i in 0..columns {
                    write!(line, "{:?}|", row.get_ref(i)?.to_owned_value()).expect("a String");
                }
                Ok(line)
            })
            .expect("rows")
            .collect::<Result<Vec<_>, _>>()
            .expect("rows");
        lines.sort();
        writeln!(text, "{table}:\n{}", lines.join("\n")).expect("a String takes it");
    }
    text
}

trait Owned {
    fn to_owned_value(&self) -> rusqlite::types::Value;
}

impl Owned for rusqlite::types::ValueRef<'_> {
    fn to_owned_value(&self) -> rusqlite::types::Value {
        rusqlite::types::Value::try_from(*self).expect("text is UTF-8")
    }
}

fn copy_without(from: &Path, to: &Path, above: Level) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_owned();
        if path.is_dir() {
            copy_without(&path, &to.join(name), above);
            continue;
        }
        let hidden = Level::ALL.into_iter().any(|level| {
            !remora_host::can_flow_to(level, above)
                && name.to_string_lossy().starts_with(level.file_stem())
        });
        if !hidden {
            fs::copy(&path, to.join(name)).expect("copied");
        }
    }
}

/// Something said at a level, for a search to find.
#[derive(Clone, Debug)]
struct Said {
    level: usize,
    origin: usize,
    key: usize,
    words: Vec<usize>,
    tag: Option<usize>,
    /// It ends before all is said.
    ends: bool,
    supersedes: Option<usize>,
    /// Instead of saving: with what it hides below.
    deletes: Option<bool>,
}

/// Keys that are words of others, and of queries.
const SPOKEN_KEYS: [&str; 7] = [
    "apple",
    "apple pear",
    "pear",
    "deploy/steps",
    "Deploy Steps",
    "用户身份",
    "the",
];
const SPOKEN: [&str; 14] = [
    "apple",
    "apples",
    "pear",
    "PEAR",
    "plum",
    "application",
    "deploy",
    "steps",
    "用户",
    "身份",
    "café",
    "שלום",
    "C++",
    "the",
];
/// Words of those, unfinished, mistyped, in quotes, names of keys, and nothing.
const ASKED: [&str; 22] = [
    "apple",
    "apples pear",
    "\"apple pear\"",
    "\"pear plum",
    "«plum apple»",
    "“用户身份”",
    "aple",
    "aplpe pera",
    "app",
    "pl",
    "deploy steps",
    "Deploy/Steps",
    "deployment",
    "用户",
    "户身",
    "CAFE",
    "שלום",
    "C++",
    "the",
    "who is the",
    "nothing",
    "***",
];

fn said() -> impl Strategy<Value = Said> {
    (
        0..4_usize,
        prop_oneof![3 => Just(0_usize), 1 => Just(1), 1 => Just(2)],
        0..SPOKEN_KEYS.len(),
        proptest::collection::vec(0..SPOKEN.len(), 1..7),
        proptest::option::of(0..SPOKEN.len()),
        proptest::bool::weighted(0.15),
        proptest::option::weighted(0.2, 0..SPOKEN_KEYS.len()),
        proptest::option::weighted(0.12, any::<bool>()),
    )
        .prop_map(
            |(level, origin, key, words, tag, ends, supersedes, deletes)| Said {
                level,
                origin,
                key,
                words,
                tag,
                ends,
                supersedes,
                deletes,
            },
        )
}

/// Says it all, by a session of each level and origin, and lets what ends end.
/// A refusal is as good as anything.
fn say(sandbox: &Sandbox, all: &[Said]) {
    for said in all {
        sandbox.clock.advance(1000);
        let origin = [Origin::User, Origin::Agent, Origin::Tool][said.origin];
        let options = SessionOptions::new(AGENT)
            .taint(Level::ALL[said.level])
            .origin(origin);
        let session = sandbox
            .store
            .session(&format!("{}-{origin:?}", said.level), &options)
            .expect("a session");
        let key = SPOKEN_KEYS[said.key];
        let (tool, arguments) = if let Some(hide_lower) = said.deletes {
            (
                "memory_delete",
                json!({ "key": key, "hide_lower": hide_lower }),
            )
        } else {
            let words: Vec<&str> = said.words.iter().map(|word| SPOKEN[*word]).collect();
            let mut arguments = json!({ "key": key, "content": words.join(" ") });
            if let Some(tag) = said.tag {
                arguments["tags"] = json!([SPOKEN[tag]]);
            }
            if said.ends {
                arguments["expires_in"] = json!("1m");
            }
            if let Some(old) = said.supersedes {
                arguments["supersedes"] = json!([SPOKEN_KEYS[old]]);
            }
            ("memory_save", arguments)
        };
        if let Err(error) = session.raw(tool, &arguments.to_string()) {
            let known = ["not_found", "no_such_record_at_level", "refused"];
            assert!(known.contains(&error.code.as_str()), "{error:?}");
        }
    }
    sandbox.clock.advance(60_000);
}

/// The answers to the questions, few and many at a time.
fn answers(store: &Store, session: &str, questions: &[String]) -> Vec<String> {
    let session = store.existing_session(session).expect("it");
    let mut answers = Vec::new();
    for question in questions {
        for most in [1, 3, 100] {
            let arguments = json!({ "query": question, "max_results": most });
            let answer = session.raw("memory_search", &arguments.to_string());
            answers.push(format!("{arguments}: {}", answer.expect("an answer")));
        }
    }
    answers
}

/// Which steps are to be taken out: of the sessions named, the first raise above
/// the level and all that comes after it.
fn purged(steps: &[Step], level: usize, sessions: &[bool; SESSIONS]) -> Vec<bool> {
    let mut gone = [false; SESSIONS];
    steps
        .iter()
        .map(|step| {
            if let Act::Raise(to) = step.act {
                gone[step.session] |= to > level && sessions[step.session];
            }
            gone[step.session]
        })
        .collect()
}

/// Which steps were done by a session that had observed nothing above the level.
fn low(steps: &[Step], level: usize) -> Vec<bool> {
    purged(steps, level, &[true; SESSIONS])
        .into_iter()
        .map(|high| !high)
        .collect()
}

fn assert_purge(
    steps: &[Step],
    clearances: [Level; SESSIONS],
    level: usize,
    sessions: [bool; SESSIONS],
) {
    let (whole, less) = (Fixed::new(clearances), Fixed::new(clearances));
    let removed = purged(steps, level, &sessions);
    let low = low(steps, level);
    for (number, step) in steps.iter().enumerate() {
        let answer = whole.step(number, step);
        if removed[number] {
            continue;
        }
        let without = less.step(number, step);
        if low[number] {
            assert_eq!(
                answer,
                without,
                "step {number}, {step:?}, with and without what {sessions:?} did above {}",
                Level::ALL[level]
            );
        }
    }
    for kept in &Level::ALL[..=level] {
        let (with, without) = (dump(&whole.path(), *kept), dump(&less.path(), *kept));
        let only = |one: &str, other: &str| -> Vec<String> {
            let there: Vec<&str> = other.lines().collect();
            one.lines()
                .filter(|line| !there.contains(line))
                .map(str::to_owned)
                .collect()
        };
        assert!(
            with == without,
            "the {kept} file, with what {sessions:?} did above {}: {:#?}, and without: {:#?}",
            Level::ALL[level],
            only(&with, &without),
            only(&without, &with),
        );
    }
}

/// As many cases as `PROPTEST_CASES` says, or few enough to run each time.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|cases| cases.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn what_a_session_is_told_is_what_the_files_it_sees_would_tell(steps in history(40)) {
        let fixed = Fixed::new([Level::Restricted; SESSIONS]);
        for (number, step) in steps.iter().enumerate() {
            fixed.step(number, step);
        }
        for level in Level::ALL {
            let options = SessionOptions::new(AGENT).taint(level);
            fixed.store.session(&format!("view-{level}"), &options).expect("a session");
        }
        let Fixed { folder, clock, ids, store, sessions } = fixed;
        // Closed, so that the files are whole.
        drop((sessions, store));
        let path = folder.path().join("store");
        for level in Level::ALL {
            let copy = folder.path().join(format!("copy-{level}"));
            copy_without(&path, &copy, level);
            let told = [&path, &copy].map(|path| {
                let store = open_fixed(path, &clock, &ids);
                everything(&store.existing_session(&format!("view-{level}")).expect("it"))
            });
            prop_assert_eq!(&told[0], &told[1], "at {}", level);
        }
    }

    /// Two candidates come at a time; the third look has them all at once.
    #[test]
    fn a_search_is_one_of_the_files_that_the_session_sees(
        all in proptest::collection::vec(said(), 10..40),
        asked in proptest::collection::vec(proptest::collection::vec(0..ASKED.len(), 1..4), 8),
    ) {
        let sandbox = Sandbox::new();
        say(&sandbox, &all);
        let questions: Vec<String> = asked
            .iter()
            .map(|words| {
                let words: Vec<&str> = words.iter().map(|word| ASKED[*word]).collect();
                words.join(" ")
            })
            .collect();
        for level in Level::ALL {
            drop(sandbox.at(level));
        }
        let (folder, clock) = sandbox.close();
        let path = folder.path().join("store");
        for level in Level::ALL {
            let copy = folder.path().join(format!("copy-{level}"));
            copy_without(&path, &copy, level);
            let look = |path: &Path, rows: usize| {
                let storage = SqliteStorage::open(path, SqliteOptions::default().page_rows(rows))
                    .expect("a store");
                let clock: Arc<dyn Clock> = Arc::clone(&clock) as _;
                answers(&Store::with(Arc::new(storage), clock), level.name(), &questions)
            };
            let told = look(&path, 2);
            prop_assert_eq!(&told, &look(&copy, 2), "at {}", level);
            prop_assert_eq!(&told, &look(&copy, 64), "at {}, by larger pages", level);
        }
    }

    #[test]
    fn what_was_done_above_a_level_leaves_no_trace_at_or_below_it(
        steps in history(40),
        level in 0..3_usize,
        sessions in any::<[bool; SESSIONS]>(),
    ) {
        assert_purge(&steps, [Level::Restricted; SESSIONS], level, sessions);
    }

    /// The same with clearances: a session that has observed more than it is
    /// cleared for stays where it was, and writes no more.
    #[test]
    fn what_was_observed_above_a_clearance_leaves_no_trace_below(
        steps in history(40),
        level in 0..3_usize,
        clearances in any::<[bool; SESSIONS]>(),
        sessions in any::<[bool; SESSIONS]>(),
    ) {
        let clearances = clearances.map(|low| if low { Level::Internal } else { Level::Restricted });
        assert_purge(&steps, clearances, level, sessions);
    }
}

/// The histories that are most likely to go wrong, written out.
#[test]
fn a_high_save_of_a_low_key_leaves_no_trace() {
    let save = |session, words| Step {
        session,
        act: Act::Save {
            key: 0,
            words,
            tags: 1,
        },
    };
    let look = |session, act| Step { session, act };
    let mut steps = vec![
        save(0, 0),
        save(1, 1),
        look(1, Act::Raise(2)),
        save(1, 2),
        save(0, 3),
    ];
    for act in [
        Act::Delete {
            key: 0,
            hide_lower: true,
        },
        Act::Save {
            key: 1,
            words: 4,
            tags: 2,
        },
        Act::Supersede {
            key: 2,
            of: 0,
            words: 5,
        },
        Act::Meddle { key: 0 },
    ] {
        steps.push(look(1, act));
        for looks in [
            Act::Get { key: 0 },
            Act::Search { query: 0, most: 3 },
            Act::List {
                tags: 0,
                all: false,
                limit: 3,
            },
            Act::Status,
        ] {
            steps.push(look(0, looks));
        }
        steps.push(save(2, 1));
    }
    for level in 0..3 {
        assert_purge(
            &steps,
            [Level::Restricted; SESSIONS],
            level,
            [true; SESSIONS],
        );
    }
}
