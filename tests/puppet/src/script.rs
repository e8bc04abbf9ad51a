//! What the puppet can be told, and how it does it.

use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::glue::remora::memory::storage::{self, Draft, Filter, Shelf, StalePosition};
use crate::glue::remora::memory::types::{Memory, MemoryError};
use crate::glue::{self, remora::memory::session};

/// One thing to do. In JSON: `{"do": "fetch", "shelf": 0, "key": "k"}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Answers everything that `session` says.
    Session,
    /// Asks for the shelves, holds them in place of those held before and
    /// answers their levels.
    Shelves,
    /// Asks for the shelves that many times and keeps all of them.
    Hold {
        /// How many times.
        times: u32,
    },
    /// `shelf.level`
    Level {
        /// Which of the shelves held.
        shelf: usize,
    },
    /// `shelf.fetch`
    Fetch {
        /// Which of the shelves held.
        shelf: usize,
        /// The key.
        key: String,
    },
    /// `shelf.search`
    Search {
        /// Which of the shelves held.
        shelf: usize,
        /// The words.
        text: String,
        /// How many matches to pass over.
        #[serde(default)]
        after: u32,
        /// How many to ask for.
        #[serde(default = "most")]
        limit: u32,
    },
    /// `shelf.page`
    Page {
        /// Which of the shelves held.
        shelf: usize,
        /// Tags to filter by.
        #[serde(default)]
        tags: Vec<String>,
        /// All of them.
        #[serde(default)]
        all: bool,
        /// Behind this key.
        #[serde(default)]
        after: Option<String>,
        /// How many to ask for.
        #[serde(default = "most")]
        limit: u32,
        /// How much content with each.
        #[serde(default = "most")]
        excerpt: u32,
    },
    /// `shelf.present`
    Present {
        /// Which of the shelves held.
        shelf: usize,
        /// The keys.
        keys: Vec<String>,
    },
    /// `shelf.versions`
    Versions {
        /// Which of the shelves held.
        shelf: usize,
        /// The key.
        key: String,
        /// Older than this version.
        #[serde(default)]
        before: Option<u64>,
        /// How many to ask for.
        #[serde(default = "most")]
        limit: u32,
    },
    /// `shelf.edges`
    Edges {
        /// Which of the shelves held.
        shelf: usize,
        /// The ids.
        ids: Vec<String>,
    },
    /// `shelf.stale`
    Stale {
        /// Which of the shelves held.
        shelf: usize,
        /// Before this moment.
        #[serde(default = "end_of_time")]
        before: i64,
        /// Behind this moment and id.
        #[serde(default)]
        after: Option<(i64, String)>,
        /// How many to ask for.
        #[serde(default = "most")]
        limit: u32,
    },
    /// `shelf.used`
    Used {
        /// Which of the shelves held.
        shelf: usize,
        /// How many to pass over.
        #[serde(default)]
        after: u32,
        /// How many to ask for.
        #[serde(default = "most")]
        limit: u32,
    },
    /// `shelf.counts`
    Counts {
        /// Which of the shelves held.
        shelf: usize,
    },
    /// `shelf.tags`
    Tags {
        /// Which of the shelves held.
        shelf: usize,
        /// How many to ask for.
        #[serde(default = "most")]
        limit: u32,
    },
    /// `put`
    Put {
        /// The key.
        key: String,
        /// The content; `fill` makes a long one without a long script.
        #[serde(default)]
        content: String,
        /// That many bytes of `x` behind the content.
        #[serde(default)]
        fill: usize,
        /// The tags, as they are.
        #[serde(default)]
        tags: Vec<String>,
        /// The source.
        #[serde(default)]
        source: Option<String>,
        /// When it expires, in milliseconds since 1970.
        #[serde(default)]
        expires_at: Option<i64>,
        /// Ids that it is to take the place of.
        #[serde(default)]
        supersedes: Vec<String>,
    },
    /// `retire`
    Retire {
        /// The key.
        key: String,
        /// With a tombstone.
        #[serde(default)]
        hide_lower: bool,
    },
    /// `stamp`
    Stamp {
        /// The record's id.
        id: String,
        /// The source.
        #[serde(default)]
        source: Option<String>,
    },
    /// `used`
    Use {
        /// The records' ids.
        ids: Vec<String>,
    },
    /// `note`
    Note {
        /// The argument that it says was ignored.
        argument: String,
    },
    /// Everything that can be asked of every shelf held, about one key and one
    /// word: a list with an object for each shelf.
    Everything {
        /// The key.
        key: String,
        /// The word.
        text: String,
    },
    /// Does a step so many times and answers what the last one answered.
    Repeat {
        /// How many times.
        times: u32,
        /// What.
        step: Box<Step>,
    },
    /// Drops a shelf and remembers its number: see [`Step::Forge`].
    Drop {
        /// Which of the shelves held.
        shelf: usize,
    },
    /// Uses a handle by its number, whether or not there is one.
    Forge {
        /// The number.
        handle: u32,
        /// The key to fetch through it.
        key: String,
    },
    /// Answers the numbers of the handles held.
    Handles,
    /// Never ends.
    Spin,
    /// Calls itself until there is no stack.
    Recurse,
    /// Takes that much memory and writes to it.
    Allocate {
        /// How much, in MiB.
        mib: usize,
    },
    /// Answers a text of that many bytes.
    Huge {
        /// How many.
        bytes: usize,
    },
    /// Panics.
    Panic,
    /// Leaves a word in the instance's memory and answers the one left before.
    Remember {
        /// The word.
        word: String,
    },
}

fn most() -> u32 {
    u32::MAX
}

fn end_of_time() -> i64 {
    i64::MAX
}

static REMEMBERED: Mutex<Option<String>> = Mutex::new(None);

/// Does the steps in order and answers what became of each, as a JSON list.
pub(crate) fn run(steps: &str) -> Result<String, String> {
    let steps: Vec<Step> = serde_json::from_str(steps).map_err(|error| error.to_string())?;
    let mut shelves = Vec::new();
    let answers: Vec<Value> = steps
        .iter()
        .map(|step| match act(step, &mut shelves) {
            Ok(value) => json!({ "ok": value }),
            Err(error) => failure(error),
        })
        .collect();
    Ok(Value::Array(answers).to_string())
}

fn act(step: &Step, shelves: &mut Vec<Shelf>) -> Result<Value, MemoryError> {
    let held = |shelves: &[Shelf], i: usize| -> usize {
        assert!(i < shelves.len(), "there is no shelf {i} to ask");
        i
    };
    Ok(match step {
        Step::Session => json!({
            "taint": level(session::taint()),
            "clearance": level(session::clearance()),
            "origin": format!("{:?}", session::origin()),
            "name": session::name(),
            "now": session::now(),
        }),
        Step::Shelves => {
            *shelves = storage::shelves()?;
            Value::Array(shelves.iter().map(|shelf| level(shelf.level())).collect())
        }
        Step::Hold { times } => {
            for _ in 0..*times {
                shelves.append(&mut storage::shelves()?);
            }
            json!(shelves.len())
        }
        Step::Level { shelf } => level(shelves[held(shelves, *shelf)].level()),
        Step::Fetch { shelf, key } => entry(shelves[held(shelves, *shelf)].fetch(key)?),
        Step::Search {
            shelf,
            text,
            after,
            limit,
        } => matches(shelves[held(shelves, *shelf)].search(text, *after, *limit)?),
        Step::Page {
            shelf,
            tags,
            all,
            after,
            limit,
            excerpt,
        } => {
            let filter = Filter {
                tags: tags.clone(),
                match_all: *all,
                excerpt_bytes: *excerpt,
            };
            page(shelves[held(shelves, *shelf)].page(&filter, after.as_deref(), *limit)?)
        }
        Step::Present { shelf, keys } => {
            let answers = shelves[held(shelves, *shelf)].present(keys)?;
            answers
                .into_iter()
                .map(|p| json!(format!("{p:?}")))
                .collect()
        }
        Step::Versions {
            shelf,
            key,
            before,
            limit,
        } => page(shelves[held(shelves, *shelf)].versions(key, *before, *limit)?),
        Step::Edges { shelf, ids } => edges(shelves[held(shelves, *shelf)].edges(ids)?),
        Step::Stale {
            shelf,
            before,
            after,
            limit,
        } => {
            let after = after.as_ref().map(|(checked_at, id)| StalePosition {
                checked_at: *checked_at,
                id: id.clone(),
            });
            page(shelves[held(shelves, *shelf)].stale(*before, after.as_ref(), *limit)?)
        }
        Step::Used {
            shelf,
            after,
            limit,
        } => page(shelves[held(shelves, *shelf)].used(*after, *limit, u32::MAX)?),
        Step::Counts { shelf } => {
            let counts = shelves[held(shelves, *shelf)].counts()?;
            json!({ "live": counts.live, "pending": counts.pending, "quarantined": counts.quarantined })
        }
        Step::Tags { shelf, limit } => shelves[held(shelves, *shelf)]
            .tags(*limit)?
            .into_iter()
            .map(|tag| json!([tag.tag, tag.count]))
            .collect(),
        Step::Put {
            key,
            content,
            fill,
            tags,
            source,
            expires_at,
            supersedes,
        } => {
            let receipt = storage::put(&Draft {
                key: key.clone(),
                content: format!("{content}{}", "x".repeat(*fill)),
                tags: tags.clone(),
                source: source.clone(),
                expires_at: *expires_at,
                supersedes: supersedes.clone(),
            })?;
            json!({
                "outcome": format!("{:?}", receipt.outcome),
                "id": receipt.id,
                "level": level(receipt.level),
                "origin": format!("{:?}", receipt.origin),
                "standing": format!("{:?}", receipt.standing),
                "version": receipt.version,
            })
        }
        Step::Retire { key, hide_lower } => json!(storage::retire(key, *hide_lower)?),
        Step::Stamp { id, source } => json!(storage::stamp(id, source.as_deref())?),
        Step::Use { ids } => {
            storage::used(ids);
            Value::Null
        }
        Step::Note { argument } => json!(storage::note(argument)?),
        Step::Everything { key, text } => shelves
            .iter()
            .map(|shelf| everything(shelf, key, text))
            .collect(),
        Step::Repeat { times, step } => {
            let mut last = Ok(Value::Null);
            for _ in 0..*times {
                last = act(step, shelves);
            }
            last?
        }
        Step::Drop { shelf } => {
            let shelf = shelves.remove(held(shelves, *shelf));
            let handle = shelf.handle();
            drop(shelf);
            json!(handle)
        }
        Step::Forge { handle, key } => {
            // Not dropped afterwards: the number belongs to nobody, or to another.
            let forged = std::mem::ManuallyDrop::new(glue::shelf_of(*handle));
            entry(forged.fetch(key)?)
        }
        Step::Handles => shelves.iter().map(|shelf| json!(shelf.handle())).collect(),
        Step::Spin => {
            let mut n = 0_u64;
            loop {
                n = std::hint::black_box(n.wrapping_add(1));
            }
        }
        Step::Recurse => json!(recurse(1)),
        Step::Allocate { mib } => {
            let mut sum = 0_u64;
            let mut blocks = Vec::new();
            for i in 0..*mib {
                let block = vec![u8::try_from(i % 251).unwrap_or(0); 1024 * 1024];
                sum += u64::from(std::hint::black_box(&block)[0]);
                blocks.push(block);
            }
            json!(sum)
        }
        Step::Huge { bytes } => json!("x".repeat(*bytes)),
        Step::Panic => panic!("as it was told"),
        Step::Remember { word } => {
            let mut remembered = REMEMBERED.lock().unwrap_or_else(|e| e.into_inner());
            json!(remembered.replace(word.clone()))
        }
    })
}

#[expect(
    unconditional_recursion,
    reason = "it is what the puppet is told to do"
)]
fn recurse(depth: u64) -> u64 {
    std::hint::black_box(recurse(std::hint::black_box(depth) + 1)) + 1
}

/// Everything that one shelf can be asked about a key and a word.
fn everything(shelf: &Shelf, key: &str, text: &str) -> Value {
    let told = |result: Result<Value, MemoryError>| result.unwrap_or_else(failure);
    let filter = Filter {
        tags: Vec::new(),
        match_all: false,
        excerpt_bytes: u32::MAX,
    };
    json!({
        "level": level(shelf.level()),
        "fetch": told(shelf.fetch(key).map(entry)),
        "search": told(shelf.search(text, 0, u32::MAX).map(matches)),
        "page": told(shelf.page(&filter, None, u32::MAX).map(page)),
        "present": told(shelf.present(&[key.to_owned()]).map(|p| json!(p.iter().any(|p| !matches!(p, storage::Presence::Absent))))),
        "counts": told(shelf.counts().map(|c| json!(c.live))),
        "versions": told(shelf.versions(key, None, u32::MAX).map(page)),
        "edges": told(everything_between(shelf, key)),
        "stale": told(shelf.stale(i64::MAX, None, u32::MAX).map(page)),
        "used": told(shelf.used(0, u32::MAX, u32::MAX).map(page)),
        "tags": told(shelf.tags(u32::MAX).map(|t| t.into_iter().map(|t| t.tag).collect())),
    })
}

/// The edges of every version of a key.
fn everything_between(shelf: &Shelf, key: &str) -> Result<Value, MemoryError> {
    let versions = shelf.versions(key, None, u32::MAX)?;
    let ids: Vec<String> = versions.items.into_iter().map(|memory| memory.id).collect();
    shelf.edges(&ids).map(edges)
}

fn level(level: glue::remora::memory::types::Level) -> Value {
    json!(
        format!("{level:?}")
            .rsplit("::")
            .next()
            .unwrap_or("")
            .to_uppercase()
    )
}

fn memory(memory: &Memory) -> Value {
    json!({
        "id": memory.id,
        "key": memory.key,
        "content": memory.content,
        "tags": memory.tags,
        "level": level(memory.level),
        "version": memory.version,
        "session": memory.session,
        "source": memory.source,
        "confirmed_at": memory.confirmed_at,
        "superseded_at": memory.superseded_at,
    })
}

fn edges(edges: Vec<storage::Edge>) -> Value {
    edges
        .into_iter()
        .map(|edge| {
            json!([
                edge.old_id,
                edge.new_id,
                edge.old_key,
                edge.new_key,
                edge.at
            ])
        })
        .collect()
}

fn entry(entry: Option<storage::Entry>) -> Value {
    match entry {
        None => Value::Null,
        Some(storage::Entry::Tombstone(_)) => json!("tombstone"),
        Some(storage::Entry::Live(live)) => memory(&live),
    }
}

fn matches(matches: storage::Matches) -> Value {
    let items: Vec<Value> = matches
        .items
        .iter()
        .map(|found| json!({ "memory": memory(&found.memory), "score": found.score, "snippet": found.snippet }))
        .collect();
    json!({ "items": items, "more": matches.more, "left_out": matches.left_out })
}

fn page(page: storage::Memories) -> Value {
    let items: Vec<Value> = page.items.iter().map(memory).collect();
    json!({ "items": items, "more": page.more })
}

fn failure(error: MemoryError) -> Value {
    let (code, problem) = match error {
        MemoryError::InvalidArgument(problem) => ("invalid_argument", problem),
        MemoryError::NotFound(problem) => ("not_found", problem),
        MemoryError::NoSuchRecordAtLevel(problem) => ("no_such_record_at_level", problem),
        MemoryError::TooLarge(problem) => ("too_large", problem),
        MemoryError::Refused(problem) => ("refused", problem),
        MemoryError::Unavailable(problem) => ("unavailable", problem),
    };
    json!({ "err": { "code": code, "what": problem.what, "allowed": problem.allowed, "remedy": problem.remedy } })
}
