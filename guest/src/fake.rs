//! A host in memory for tests: four shelves, pages as small as wanted, and, when it is
//! hostile, every shelf handed out whatever the taint, and more of each than was asked for.

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

/// What a level's file holds besides what is live.
#[derive(Default)]
pub(crate) struct Book {
    /// Superseded versions.
    pub(crate) past: Vec<Memory>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) stamps: BTreeMap<String, Instant>,
    pub(crate) uses: BTreeMap<String, u64>,
    /// The last version of each key.
    pub(crate) versions: BTreeMap<String, u64>,
}

pub(crate) type Books = Rc<RefCell<[Book; 4]>>;

pub(crate) struct FakeHost {
    pub(crate) taint: Level,
    pub(crate) origin: Origin,
    pub(crate) now: Instant,
    /// Hands out every shelf, lowest first, and does not look at tags.
    pub(crate) hostile: bool,
    /// The most rows of one page; 0: one to three in turn.
    pub(crate) rows: u32,
    pub(crate) shelves: [Rows; 4],
    pub(crate) books: Books,
    pub(crate) standing: Standing,
    pub(crate) calls: Rc<RefCell<Vec<String>>>,
    pub(crate) turn: Rc<Cell<u32>>,
    /// How many terms each search leaves out.
    pub(crate) left_out: Rc<Cell<u32>>,
}

pub(crate) struct FakeShelf {
    hostile: bool,
    level: Level,
    taint: Level,
    rows: Rows,
    books: Books,
    most: u32,
    calls: Rc<RefCell<Vec<String>>>,
    turn: Rc<Cell<u32>>,
    left_out: Rc<Cell<u32>>,
}

pub(crate) fn memory(level: Level, key: &str, content: &str) -> Memory {
    Memory {
        id: format!("{}-{key}", crate::classification::name(level)),
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
            now: NOW,
            hostile: false,
            rows: 2,
            shelves: Default::default(),
            books: Books::default(),
            standing: Standing::Trusted,
            calls: Rc::default(),
            turn: Rc::default(),
            left_out: Rc::default(),
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

    /// The same store, seen from another level.
    pub(crate) fn at(&self, taint: Level) -> Self {
        Self {
            shelves: self.shelves.clone(),
            books: Rc::clone(&self.books),
            rows: self.rows,
            now: self.now,
            hostile: self.hostile,
            ..Self::new(taint)
        }
    }

    /// The next version of a key on a level. None is ever used twice, as no id is.
    fn next_version(&self, level: usize, key: &str) -> u64 {
        let live = match self.shelves[level].borrow().get(key) {
            Some(Entry::Live(memory)) => memory.version,
            _ => 0,
        };
        let book = &mut self.books.borrow_mut()[level];
        let past = book.past.iter().filter(|old| old.key == key);
        let past = past.map(|old| old.version).max().unwrap_or(0);
        let last = book.versions.entry(key.to_owned()).or_insert(0);
        *last = live.max(past).max(*last) + 1;
        *last
    }

    /// Takes a live record out of a shelf and keeps it as a superseded one.
    fn supersede(&self, level: usize, key: &str) {
        let gone = self.shelves[level].borrow_mut().remove(key);
        if let Some(Entry::Live(mut memory)) = gone {
            memory.superseded_at = Some(self.now);
            self.books.borrow_mut()[level].past.push(memory);
        }
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
        self.now
    }
    fn shelves(&self) -> Result<Vec<FakeShelf>, MemoryError> {
        self.called("shelves");
        let mut shelves: Vec<FakeShelf> = LEVELS
            .into_iter()
            .filter(|&level| self.hostile || level as u8 <= self.taint as u8)
            .map(|level| FakeShelf {
                hostile: self.hostile,
                level,
                taint: self.taint,
                books: Rc::clone(&self.books),
                rows: Rc::clone(&self.shelves[level as usize]),
                most: self.rows,
                calls: Rc::clone(&self.calls),
                turn: Rc::clone(&self.turn),
                left_out: Rc::clone(&self.left_out),
            })
            .collect();
        if !self.hostile {
            shelves.reverse();
        }
        Ok(shelves)
    }
    fn put(&self, draft: &Draft) -> Result<Receipt, MemoryError> {
        self.called("put");
        let own = self.taint as usize;
        let mut record = memory(self.taint, &draft.key, &draft.content);
        record.tags.clone_from(&draft.tags);
        record.source.clone_from(&draft.source);
        record.expires_at = draft.expires_at;
        record.origin = self.origin;
        record.created_at = self.now - 1000;
        record.updated_at = self.now - 1000;
        record.version = self.next_version(own, &draft.key);
        if record.version > 1 {
            record.id = format!("{}-v{}", record.id, record.version);
        }
        for old_id in &draft.supersedes {
            let (level, key) = (0..=own)
                .flat_map(|level| {
                    let rows = self.shelves[level].borrow();
                    let found = rows.values().find_map(|entry| match entry {
                        Entry::Live(memory) if memory.id == *old_id => Some(memory.key.clone()),
                        _ => None,
                    });
                    found.map(|key| (level, key))
                })
                .next()
                .expect("a visible id");
            self.books.borrow_mut()[own].edges.push(Edge {
                old_id: old_id.clone(),
                new_id: record.id.clone(),
                old_key: Some(key.clone()),
                new_key: Some(draft.key.clone()),
                at: self.now,
            });
            if level == own {
                self.supersede(level, &key);
            }
        }
        self.supersede(own, &draft.key);
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
            version: record.version,
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
    fn stamp(&self, id: &str, _: Option<&str>) -> Result<Instant, MemoryError> {
        self.called("stamp");
        let own = &mut self.books.borrow_mut()[self.taint as usize];
        own.stamps.insert(id.to_owned(), self.now);
        Ok(self.now)
    }
    fn used(&self, ids: &[String]) {
        self.called("used");
        assert!((1..=500).contains(&ids.len()));
        let own = &mut self.books.borrow_mut()[self.taint as usize];
        for id in ids {
            *own.uses.entry(id.clone()).or_insert(0) += 1;
        }
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
            .filter_map(|entry| self.shown(entry))
            .collect()
    }

    /// A live record as the session sees it: none where an edge that it sees hides it.
    fn shown(&self, entry: &Entry) -> Option<Memory> {
        match entry {
            Entry::Live(memory) => {
                Some(self.dressed(memory)).filter(|memory| memory.superseded_at.is_none())
            }
            Entry::Tombstone(_) => None,
        }
    }

    /// With what the session's own and lower levels say of it.
    fn dressed(&self, memory: &Memory) -> Memory {
        let books = self.books.borrow();
        let seen = &books[..=self.taint as usize];
        let stamp = seen.iter().filter_map(|book| book.stamps.get(&memory.id));
        let edge = seen
            .iter()
            .flat_map(|book| &book.edges)
            .filter(|edge| edge.old_id == memory.id);
        Memory {
            confirmed_at: stamp.copied().max().max(memory.confirmed_at),
            superseded_at: memory.superseded_at.or(edge.map(|edge| edge.at).min()),
            ..memory.clone()
        }
    }

    fn excerpted(&self, mut memory: Memory, most: usize) -> Memory {
        if !self.hostile {
            let most = memory.content.floor_char_boundary(most);
            memory.content.truncate(most);
        }
        memory
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
        let rows = self.rows.borrow();
        Ok(match rows.get(key) {
            Some(Entry::Tombstone(origin)) => Some(Entry::Tombstone(*origin)),
            Some(entry) => self.shown(entry).map(Entry::Live),
            None => None,
        })
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
                memory: self.excerpted(memory, 1024),
            })
            .collect();
        found.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.memory.key.cmp(&b.memory.key))
        });
        let found = found.into_iter().skip(after as usize).collect();
        let (items, more) = cut(found, self.most(limit));
        Ok(Matches {
            items,
            more,
            left_out: self.left_out.get(),
        })
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
            .map(|memory| self.excerpted(memory, filter.excerpt_bytes as usize))
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
                Some(Entry::Tombstone(origin)) => Presence::Tombstone(*origin),
                entry => match entry.and_then(|entry| self.shown(entry)) {
                    Some(memory) => Presence::Live(memory.origin),
                    None => Presence::Absent,
                },
            })
            .collect())
    }
    fn versions(
        &self,
        key: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Memories, MemoryError> {
        self.called("versions");
        assert!((1..=200).contains(&limit));
        let rows = self.rows.borrow();
        let live = rows.get(key).and_then(|entry| match entry {
            Entry::Live(memory) => Some(memory.clone()),
            Entry::Tombstone(_) => None,
        });
        let past = self.books.borrow()[self.level as usize].past.clone();
        let mut versions: Vec<Memory> = past
            .into_iter()
            .chain(live)
            .filter(|memory| memory.key == key)
            .filter(|memory| before.is_none_or(|before| memory.version < before))
            .map(|memory| self.dressed(&memory))
            .collect();
        versions.sort_by_key(|memory| std::cmp::Reverse(memory.version));
        let (items, more) = cut(versions, self.most(limit));
        Ok(Memories { items, more })
    }
    fn edges(&self, ids: &[String]) -> Result<Vec<Edge>, MemoryError> {
        self.called("edges");
        assert!(ids.len() <= 500);
        let mut edges = self.books.borrow()[self.level as usize].edges.clone();
        if !self.hostile {
            edges.retain(|edge| ids.contains(&edge.old_id) || ids.contains(&edge.new_id));
        }
        Ok(edges)
    }
    fn stale(
        &self,
        before: Instant,
        after: Option<&StalePosition>,
        limit: u32,
    ) -> Result<Memories, MemoryError> {
        self.called("stale");
        assert!((1..=200).contains(&limit));
        let place = |memory: &Memory| {
            let checked_at = memory.confirmed_at.unwrap_or(memory.updated_at);
            (checked_at, memory.id.clone())
        };
        let after = after.map(|after| (after.checked_at, after.id.clone()));
        let mut rows: Vec<Memory> = self
            .live()
            .into_iter()
            .filter(|memory| self.hostile || place(memory).0 < before)
            .filter(|memory| after.as_ref().is_none_or(|after| place(memory) > *after))
            .collect();
        rows.sort_by_key(place);
        let (items, more) = cut(rows, self.most(limit));
        Ok(Memories { items, more })
    }
    fn used(&self, after: u32, limit: u32, excerpt_bytes: u32) -> Result<Memories, MemoryError> {
        self.called("used");
        assert!((1..=200).contains(&limit));
        let books = self.books.borrow();
        let uses = &books[self.taint as usize].uses;
        let mut rows: Vec<(u64, Memory)> = self
            .live()
            .into_iter()
            .filter_map(|memory| Some((*uses.get(&memory.id)?, memory)))
            .collect();
        rows.sort_by_key(|(uses, memory)| (std::cmp::Reverse(*uses), memory.key.clone()));
        let rows = rows
            .into_iter()
            .skip(after as usize)
            .map(|(_, memory)| self.excerpted(memory, excerpt_bytes as usize))
            .collect();
        let (items, more) = cut(rows, self.most(limit));
        Ok(Memories { items, more })
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
