//! A host that checks nothing: it hands out the shelves of all four levels
//! whatever the session's taint is, lowest first, and answers everything about
//! them. Under it the guest's own check is the only one.

use std::sync::LazyLock;

use remora_host::EMBEDDED_COMPONENT;
use serde_json::Value;
use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceTable};
use wasmtime::{Cache, CacheConfig, Config, Engine, Store};

mod generated {
    #![allow(missing_docs, clippy::all, reason = "generated from wit/")]

    wasmtime::component::bindgen!({
        path: "../wit",
        world: "memory-plugin",
        imports: { default: trappable },
        with: { "remora:memory/storage.shelf": super::Shelf },
    });
}

use generated::MemoryPlugin;
use generated::remora::memory::session;
use generated::remora::memory::storage::{
    self, Counts, Draft, Edge, Entry, Filter, Match, Matches, Memories, Presence, Receipt,
    StalePosition, TagCount,
};
use generated::remora::memory::types::{
    self, Level, Memory, MemoryError, Origin, Outcome, Standing,
};

/// A shelf handle.
#[derive(Debug)]
pub struct Shelf(usize);

/// The levels, lowest first.
const LEVELS: [Level; 4] = [
    Level::Public,
    Level::Internal,
    Level::Confidential,
    Level::Restricted,
];

/// What a shelf has of a key.
#[derive(Clone, Debug)]
struct Kept {
    memory: Memory,
    tombstone: bool,
}

/// A host with no policy, for one session.
#[derive(Debug, Default)]
pub struct Generous {
    taint: usize,
    shelves: [Vec<Kept>; 4],
    /// Every shelf says that it is the session's own level.
    pub lies: bool,
    /// The arguments that were noted.
    pub noted: Vec<String>,
    /// The ids of the records that were confirmed.
    pub stamped: Vec<String>,
    table: ResourceTable,
}

impl Generous {
    /// For a session at this level, 0 for PUBLIC.
    pub fn new(taint: usize) -> Self {
        Self {
            taint,
            ..Self::default()
        }
    }

    /// Puts a record onto a shelf.
    pub fn keep(&mut self, level: usize, key: &str, content: &str, tags: &[&str]) {
        let memory = Memory {
            id: format!("{level}-{key}"),
            key: key.to_owned(),
            content: content.to_owned(),
            content_bytes: content.len() as u64,
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            level: LEVELS[level],
            origin: Origin::User,
            standing: Standing::Trusted,
            source: None,
            session: "another".to_owned(),
            version: 1,
            created_at: 0,
            updated_at: 0,
            confirmed_at: None,
            expires_at: None,
            superseded_at: None,
            deleted_at: None,
        };
        let shelf = &mut self.shelves[level];
        shelf.push(Kept {
            memory,
            tombstone: false,
        });
        shelf.sort_by(|a, b| a.memory.key.cmp(&b.memory.key));
    }

    /// What a shelf has of a key: a version, or a tombstone.
    pub fn state(&self, level: usize, key: &str) -> Option<String> {
        self.find(level, key).map(|kept| {
            if kept.tombstone {
                "tombstone".to_owned()
            } else {
                kept.memory.version.to_string()
            }
        })
    }

    fn find(&self, level: usize, key: &str) -> Option<&Kept> {
        self.shelves[level]
            .iter()
            .find(|kept| kept.memory.key == key)
    }

    fn live(&self, level: usize) -> impl Iterator<Item = &Memory> {
        self.shelves[level]
            .iter()
            .filter(|kept| !kept.tombstone)
            .map(|kept| &kept.memory)
    }

    fn level_of(&self, shelf: &Resource<Shelf>) -> wasmtime::Result<usize> {
        Ok(self.table.get(shelf)?.0)
    }
}

/// Calls a tool of Remora's own component over such a host.
///
/// # Errors
/// The code of what the tool says.
pub fn ask(host: Generous, tool: &str, arguments: &Value) -> (Generous, Result<Value, String>) {
    static ENGINE: LazyLock<(Engine, Component, Linker<Generous>)> = LazyLock::new(|| {
        let mut cache = CacheConfig::new();
        if let Some(folder) = remora_tests::plugin_options().cache_folder {
            cache.with_directory(folder);
        }
        let mut config = Config::new();
        config.cache(Some(Cache::new(cache).expect("a cache")));
        let engine = Engine::new(&config).expect("an engine");
        let component = Component::new(&engine, EMBEDDED_COMPONENT).expect("a component");
        let mut linker = Linker::new(&engine);
        MemoryPlugin::add_to_linker::<_, HasSelf<Generous>>(&mut linker, |host| host)
            .expect("the imports");
        (engine, component, linker)
    });
    let (engine, component, linker) = &*ENGINE;
    let mut store = Store::new(engine, host);
    let plugin = MemoryPlugin::instantiate(&mut store, component, linker).expect("an instance");
    let answer = plugin
        .remora_memory_toolbox()
        .call_invoke(&mut store, tool, &arguments.to_string())
        .expect("no trap");
    let answer = answer
        .map(|text| serde_json::from_str(&text).expect("JSON"))
        .map_err(|error| error.code);
    (store.into_data(), answer)
}

impl types::Host for Generous {}

impl session::Host for Generous {
    fn taint(&mut self) -> wasmtime::Result<Level> {
        Ok(LEVELS[self.taint])
    }

    fn clearance(&mut self) -> wasmtime::Result<Level> {
        Ok(Level::Restricted)
    }

    fn origin(&mut self) -> wasmtime::Result<Origin> {
        Ok(Origin::User)
    }

    fn name(&mut self) -> wasmtime::Result<String> {
        Ok("a session".to_owned())
    }

    fn now(&mut self) -> wasmtime::Result<i64> {
        Ok(1_796_000_673_000)
    }
}

type Answer<T> = wasmtime::Result<Result<T, MemoryError>>;

impl storage::HostShelf for Generous {
    fn level(&mut self, shelf: Resource<Shelf>) -> wasmtime::Result<Level> {
        let level = self.level_of(&shelf)?;
        Ok(LEVELS[if self.lies { self.taint } else { level }])
    }

    fn fetch(&mut self, shelf: Resource<Shelf>, key: String) -> Answer<Option<Entry>> {
        let level = self.level_of(&shelf)?;
        Ok(Ok(self.find(level, &key).map(|kept| {
            if kept.tombstone {
                Entry::Tombstone(kept.memory.origin)
            } else {
                Entry::Live(kept.memory.clone())
            }
        })))
    }

    fn search(
        &mut self,
        shelf: Resource<Shelf>,
        text: String,
        after: u32,
        limit: u32,
    ) -> Answer<Matches> {
        let level = self.level_of(&shelf)?;
        let found: Vec<Match> = self
            .live(level)
            .filter(|memory| {
                text.split_whitespace()
                    .any(|word| memory.content.contains(word))
            })
            .map(|memory| Match {
                memory: memory.clone(),
                score: 1.0,
                snippet: memory.content.clone(),
            })
            .collect();
        // Two at a time, to have pages.
        let rest = found.len().saturating_sub(after as usize);
        let items: Vec<Match> = found
            .into_iter()
            .skip(after as usize)
            .take(limit.min(2) as usize)
            .collect();
        Ok(Ok(Matches {
            more: rest > items.len(),
            items,
            left_out: 0,
        }))
    }

    fn page(
        &mut self,
        shelf: Resource<Shelf>,
        filter: Filter,
        after: Option<String>,
        limit: u32,
    ) -> Answer<Memories> {
        let level = self.level_of(&shelf)?;
        let mut rest = self
            .live(level)
            .filter(|memory| after.as_ref().is_none_or(|after| memory.key > *after))
            .filter(|memory| {
                filter.tags.is_empty() || filter.tags.iter().any(|tag| memory.tags.contains(tag))
            })
            .cloned();
        let items: Vec<Memory> = rest.by_ref().take(limit.min(2) as usize).collect();
        let more = rest.next().is_some();
        Ok(Ok(Memories { items, more }))
    }

    fn present(&mut self, shelf: Resource<Shelf>, keys: Vec<String>) -> Answer<Vec<Presence>> {
        let level = self.level_of(&shelf)?;
        Ok(Ok(keys
            .iter()
            .map(|key| {
                let kept = self.find(level, key);
                match kept {
                    None => Presence::Absent,
                    Some(kept) if kept.tombstone => Presence::Tombstone(kept.memory.origin),
                    Some(kept) => Presence::Live(kept.memory.origin),
                }
            })
            .collect()))
    }

    fn versions(
        &mut self,
        shelf: Resource<Shelf>,
        key: String,
        before: Option<u64>,
        _: u32,
    ) -> Answer<Memories> {
        let level = self.level_of(&shelf)?;
        Ok(Ok(Memories {
            items: self
                .live(level)
                .filter(|memory| memory.key == key)
                .filter(|memory| before.is_none_or(|before| memory.version < before))
                .cloned()
                .collect(),
            more: false,
        }))
    }

    /// Each key's record took the place of that key's on the level below.
    fn edges(&mut self, shelf: Resource<Shelf>, ids: Vec<String>) -> Answer<Vec<Edge>> {
        let level = self.level_of(&shelf)?;
        Ok(Ok(self
            .live(level)
            .filter_map(|memory| {
                let old_id = format!("{}-{}", level.checked_sub(1)?, memory.key);
                Some(Edge {
                    old_id,
                    new_id: memory.id.clone(),
                    old_key: Some(memory.key.clone()),
                    new_key: Some(memory.key.clone()),
                    at: 0,
                })
            })
            .filter(|edge| ids.contains(&edge.old_id) || ids.contains(&edge.new_id))
            .collect()))
    }

    fn stale(
        &mut self,
        shelf: Resource<Shelf>,
        before: i64,
        after: Option<StalePosition>,
        limit: u32,
    ) -> Answer<Memories> {
        let level = self.level_of(&shelf)?;
        let place = |memory: &Memory| {
            let checked_at = memory.confirmed_at.unwrap_or(memory.updated_at);
            (checked_at, memory.id.clone())
        };
        let after = after.map(|after| (after.checked_at, after.id));
        let mut rest: Vec<&Memory> = self
            .live(level)
            .filter(|memory| place(memory).0 < before)
            .filter(|memory| after.as_ref().is_none_or(|after| place(memory) > *after))
            .collect();
        rest.sort_by_key(|memory| place(memory));
        let items: Vec<Memory> = rest
            .iter()
            .take(limit.min(2) as usize)
            .map(|memory| (*memory).clone())
            .collect();
        let more = rest.len() > items.len();
        Ok(Ok(Memories { items, more }))
    }

    fn used(&mut self, shelf: Resource<Shelf>, after: u32, limit: u32, _: u32) -> Answer<Memories> {
        let level = self.level_of(&shelf)?;
        let mut rest = self.live(level).skip(after as usize).cloned();
        let items: Vec<Memory> = rest.by_ref().take(limit.min(2) as usize).collect();
        let more = rest.next().is_some();
        Ok(Ok(Memories { items, more }))
    }

    fn counts(&mut self, shelf: Resource<Shelf>) -> Answer<Counts> {
        let level = self.level_of(&shelf)?;
        Ok(Ok(Counts {
            live: self.live(level).count() as u64,
            pending: 0,
            quarantined: 0,
        }))
    }

    fn tags(&mut self, shelf: Resource<Shelf>, _: u32) -> Answer<Vec<TagCount>> {
        let level = self.level_of(&shelf)?;
        Ok(Ok(self
            .live(level)
            .flat_map(|memory| memory.tags.clone())
            .map(|tag| TagCount { tag, count: 1 })
            .collect()))
    }

    fn drop(&mut self, shelf: Resource<Shelf>) -> wasmtime::Result<()> {
        self.table.delete(shelf)?;
        Ok(())
    }
}

impl storage::Host for Generous {
    fn shelves(&mut self) -> Answer<Vec<Resource<Shelf>>> {
        let mut shelves = Vec::new();
        for level in 0..LEVELS.len() {
            shelves.push(self.table.push(Shelf(level))?);
        }
        Ok(Ok(shelves))
    }

    fn put(&mut self, draft: Draft) -> Answer<Receipt> {
        let level = self.taint;
        let before = self.find(level, &draft.key).map(|kept| kept.memory.version);
        self.shelves[level].retain(|kept| kept.memory.key != draft.key);
        let tags: Vec<&str> = draft.tags.iter().map(String::as_str).collect();
        self.keep(level, &draft.key, &draft.content, &tags);
        let version = before.unwrap_or(0) + 1;
        if let Some(kept) = self.shelves[level]
            .iter_mut()
            .find(|kept| kept.memory.key == draft.key)
        {
            kept.memory.version = version;
        }
        Ok(Ok(Receipt {
            outcome: if before.is_some() {
                Outcome::Updated
            } else {
                Outcome::Created
            },
            id: "new".to_owned(),
            level: LEVELS[level],
            origin: Origin::User,
            standing: Standing::Trusted,
            version,
        }))
    }

    fn retire(&mut self, key: String, hide_lower: bool) -> Answer<Option<String>> {
        let level = self.taint;
        let id = self
            .find(level, &key)
            .filter(|kept| !kept.tombstone)
            .map(|kept| kept.memory.id.clone());
        self.shelves[level].retain(|kept| kept.memory.key != key);
        if hide_lower {
            self.keep(level, &key, "", &[]);
            for kept in &mut self.shelves[level] {
                kept.tombstone |= kept.memory.key == key;
            }
        }
        Ok(Ok(id))
    }

    fn stamp(&mut self, id: String, _: Option<String>) -> Answer<i64> {
        let now = 1_796_000_673_000;
        self.stamped.push(id);
        Ok(Ok(now))
    }

    fn used(&mut self, _: Vec<String>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn note(&mut self, argument: String) -> Answer<()> {
        self.noted.push(argument);
        Ok(Ok(()))
    }
}
