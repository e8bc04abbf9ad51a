//! A host in memory for tests: four shelves, pages as small as wanted, and, when it is
//! hostile, every shelf handed out whatever the taint.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::contract::*;
use crate::host::{Host, Shelf};

pub(crate) const LEVELS: [Level; 4] = [
    Level::Public,
    Level::Internal,
    Level::Confidential,
    Level::Restricted,
];

pub(crate) type Rows = Rc<RefCell<BTreeMap<String, Entry>>>;

/// 2026-11-30T01:04:00Z.
pub(crate) const NOW: Instant = 1_796_000_640_000;

pub(crate) struct FakeHost {
    pub(crate) taint: Level,
    pub(crate) origin: Origin,
    /// Hands out every shelf, lowest first, and does not look at tags.
    pub(crate) hostile: bool,
    /// The most rows of one page; 0: one to three in turn.
    pub(crate) rows: u32,
    pub(crate) shelves: [Rows; 4],
    pub(crate) standing: Standing,
    pub(crate) calls: Rc<RefCell<Vec<String>>>,
    pub(crate) turn: Rc<Cell<u32>>,
}

pub(crate) struct FakeShelf {
    hostile: bool,
    level: Level,
    rows: Rows,
    most: u32,
    calls: Rc<RefCell<Vec<String>>>,
    turn: Rc<Cell<u32>>,
}

pub(crate) fn memory(level: Level, key: &str, content: &str) -> Memory {
    Memory {
        id: format!("{level:?}-{key}"),
        key: key.to_owned(),
        content: content.to_owned(),
        content_bytes: content.len() as u64,
        tags: Vec::new(),
        level,
        origin: Origin::Agent,
        standing: Standing::Trusted,
        source: None,
        session: "s".to_owned(),
        version: 1,
        created_at: NOW - 1000,
        updated_at: NOW - 1000,
        confirmed_at: None,
        expires_at: None,
        superseded_at: None,
        deleted_at: None,
    }
}

impl FakeHost {
    pub(crate) fn new(taint: Level) -> Self {
        Self {
            taint,
            origin: Origin::Agent,
            hostile: false,
            rows: 2,
            shelves: Default::default(),
            standing: Standing::Trusted,
            calls: Rc::default(),
            turn: Rc::default(),
        }
    }

    pub(crate) fn put_memory(&self, memory: Memory) {
        let rows = &self.shelves[memory.level as usize];
        rows.borrow_mut()
            .insert(memory.key.clone(), Entry::Live(memory));
    }

    pub(crate) fn with(self, level: Level, key: &str, content: &str) -> Self {
        self.put_memory(memory(level, key, content));
        self
    }

    pub(crate) fn with_tombstone(self, level: Level, key: &str) -> Self {
        self.shelves[level as usize]
            .borrow_mut()
            .insert(key.to_owned(), Entry::Tombstone(Origin::User));
        self
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }

    fn called(&self, call: impl Into<String>) {
        self.calls.borrow_mut().push(call.into());
    }
}

impl Host for FakeHost {
    type Shelf = FakeShelf;

    fn taint(&self) -> Level {
        self.called("taint");
        self.taint
    }
    fn clearance(&self) -> Level {
        Level::Restricted
    }
    fn origin(&self) -> Origin {
        self.origin
    }
    fn name(&self) -> String {
        "work".to_owned()
    }
    fn now(&self) -> Instant {
        self.called("now");
        NOW
    }
    fn shelves(&self) -> Result<Vec<FakeShelf>, MemoryError> {
        self.called("shelves");
        let mut shelves: Vec<FakeShelf> = LEVELS
            .into_iter()
            .filter(|&level| self.hostile || level as u8 <= self.taint as u8)
            .map(|level| FakeShelf {
                hostile: self.hostile,
                level,
                rows: Rc::clone(&self.shelves[level as usize]),
                most: self.rows,
                calls: Rc::clone(&self.calls),
                turn: Rc::clone(&self.turn),
            })
            .collect();
        if !self.hostile {
            shelves.reverse();
        }
        Ok(shelves)
    }
    fn put(&self, draft: &Draft) -> Result<Receipt, MemoryError> {
        self.called("put");
        let mut record = memory(self.taint, &draft.key, &draft.content);
        record.tags.clone_from(&draft.tags);
        record.source.clone_from(&draft.source);
        record.expires_at = draft.expires_at;
        record.origin = self.origin;
        let receipt = Receipt {
            outcome: match self.standing {
                Standing::Trusted => Outcome::Created,
                Standing::Pending => Outcome::Pending,
                Standing::Quarantined => Outcome::Quarantined,
            },
            id: record.id.clone(),
            level: self.taint,
            origin: self.origin,
            standing: self.standing,
            version: 1,
        };
        self.put_memory(record);
        Ok(receipt)
    }
    fn retire(&self, key: &str, hide_lower: bool) -> Result<Option<String>, MemoryError> {
        self.called("retire");
        let mut rows = self.shelves[self.taint as usize].borrow_mut();
        let id = match rows.get(key) {
            Some(Entry::Live(memory)) => Some(memory.id.clone()),
            _ => None,
        };
        if hide_lower {
            rows.insert(key.to_owned(), Entry::Tombstone(self.origin));
        } else if id.is_some() {
            rows.remove(key);
        }
        Ok(id)
    }
    fn note(&self, argument: &str) -> Result<(), MemoryError> {
        self.called(format!("note {argument}"));
        Ok(())
    }
}

impl FakeShelf {
    fn called(&self, call: &str) {
        let level = crate::classification::name(self.level);
        self.calls.borrow_mut().push(format!("{level} {call}"));
    }

    /// How many rows to give when `limit` are asked for.
    fn most(&self, limit: u32) -> usize {
        let most = if self.most == 0 {
            self.turn.set((self.turn.get() + 1) % 3);
            self.turn.get() + 1
        } else {
            self.most
        };
        most.min(limit) as usize
    }

    fn live(&self) -> Vec<Memory> {
        self.rows
            .borrow()
            .values()
            .filter_map(|entry| match entry {
                Entry::Live(memory) => Some(memory.clone()),
                Entry::Tombstone(_) => None,
            })
            .collect()
    }
}

/// How the fake scores: how many different words of the text are in the content. Collides
/// often, and that is the point.
pub(crate) fn score(text: &str, content: &str) -> usize {
    let words: BTreeSet<&str> = text.split_whitespace().collect();
    words
        .into_iter()
        .filter(|word| content.split_whitespace().any(|other| other == *word))
        .count()
}

fn cut<T>(mut items: Vec<T>, most: usize) -> (Vec<T>, bool) {
    let more = items.len() > most;
    items.truncate(most);
    (items, more)
}

impl Shelf for FakeShelf {
    fn level(&self) -> Level {
        self.level
    }
    fn fetch(&self, key: &str) -> Result<Option<Entry>, MemoryError> {
        self.called("fetch");
        Ok(self.rows.borrow().get(key).cloned())
    }
    fn search(&self, text: &str, after: u32, limit: u32) -> Result<Matches, MemoryError> {
        self.called("search");
        assert!((1..=100).contains(&limit));
        let mut found: Vec<Match> = self
            .live()
            .into_iter()
            .filter(|memory| score(text, &memory.content) > 0)
            .map(|memory| Match {
                score: score(text, &memory.content) as f64,
                snippet: memory.content.clone(),
                memory,
            })
            .collect();
        found.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.memory.key.cmp(&b.memory.key))
        });
        let found = found.into_iter().skip(after as usize).collect();
        let (items, more) = cut(found, self.most(limit));
        Ok(Matches { items, more })
    }
    fn page(
        &self,
        filter: &Filter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Memories, MemoryError> {
        self.called("page");
        assert!((1..=200).contains(&limit));
        let rows = self
            .live()
            .into_iter()
            .filter(|memory| {
                self.hostile
                    || filter.tags.is_empty()
                    || if filter.match_all {
                        filter.tags.iter().all(|tag| memory.tags.contains(tag))
                    } else {
                        filter.tags.iter().any(|tag| memory.tags.contains(tag))
                    }
            })
            .filter(|memory| after.is_none_or(|after| memory.key.as_str() > after))
            .collect();
        let (items, more) = cut(rows, self.most(limit));
        Ok(Memories { items, more })
    }
    fn present(&self, keys: &[String]) -> Result<Vec<Presence>, MemoryError> {
        self.called("present");
        assert!(keys.len() <= 500);
        let rows = self.rows.borrow();
        Ok(keys
            .iter()
            .map(|key| match rows.get(key) {
                None => Presence::Absent,
                Some(Entry::Tombstone(origin)) => Presence::Tombstone(*origin),
                Some(Entry::Live(memory)) => Presence::Live(memory.origin),
            })
            .collect())
    }
    fn counts(&self) -> Result<Counts, MemoryError> {
        Ok(Counts {
            live: self.live().len() as u64,
            pending: 0,
            quarantined: 0,
        })
    }
    fn tags(&self, limit: u32) -> Result<Vec<TagCount>, MemoryError> {
        let mut counts = BTreeMap::new();
        for tag in self.live().into_iter().flat_map(|memory| memory.tags) {
            *counts.entry(tag).or_insert(0) += 1;
        }
        let mut counts: Vec<TagCount> = counts
            .into_iter()
            .map(|(tag, count)| TagCount { tag, count })
            .collect();
        counts.sort_by_key(|tag| std::cmp::Reverse(tag.count));
        counts.truncate(limit as usize);
        Ok(counts)
    }
}
