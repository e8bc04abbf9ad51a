//! The block for a prompt: which memories, and in what order. How they are written is
//! [`crate::block`]'s.
//!
//! What is asked for comes first, then what carries the tags that say how to behave, then
//! what is used most. What does not fit is left out and smaller ones behind it are tried,
//! so a long memory does not stand in the way of a short one.
//!
//! Being in a block is not counted as use: what is there would stay there for no other
//! reason.

use std::collections::BTreeSet;

use super::{Tools, searchable, size};
use crate::block::{Block, ITEM_BYTES};
use crate::classification::{VisibleShelf, visible};
use crate::contract::{
    ContextArguments, Entry, Filter, Level, Memory, MemoryError, Origin, Standing,
};
use crate::host::{Host, Shelf};
use crate::shadow::{self, Candidate, Feed, Page, Search, Seen, Unshadowed, Used};
use crate::validate::{self, BUDGET};

/// How many answers to the question are taken at most.
const ANSWERS: usize = 20;
/// The tags of what to know in every conversation, first things first.
const TAGS: [&str; 4] = ["rule", "persona", "preference", "project"];
/// How many records to ask a shelf for at once. About as many as fit into a block of the
/// usual size.
const ROWS: u32 = 16;
/// How many records are looked at besides the answers. A block holds far fewer; the bound
/// keeps a store full of long rules from being read to its end for the last few bytes.
const LOOKED_AT: usize = 500;
/// The most bytes of content to ask for with a record. Longer ones are fetched when it is
/// their turn and there is room.
const CONTENT_BYTES: usize = 4096;

impl<H: Host> Tools<'_, H> {
    /// The memories that matter most, as text for a prompt.
    pub fn context(&self, arguments: ContextArguments) -> Result<String, MemoryError> {
        let tokens = BUDGET.check(arguments.budget)?;
        let asked = validate::tags(&arguments.tags)?;
        if let Some(query) = &arguments.query {
            validate::query(query)?;
        }
        let (taint, shelves) = self.shelves()?;
        let block = Block::new(tokens, self.host().now());
        let excerpt_bytes = u32::try_from(block.room().min(CONTENT_BYTES)).unwrap_or(u32::MAX);
        let rows = self.page_rows.min(ROWS);
        let mut gathering = Gathering {
            shelves: &shelves,
            taint,
            rows: size(rows),
            block,
            known: BTreeSet::new(),
        };

        if let Some(query) = arguments.query {
            let (text, _) = searchable(&query);
            // A block for the prompt has no place for notices.
            let left_out = std::cell::Cell::new(0);
            let answers = Unshadowed::new(&shelves, |shelf| Search {
                shelf,
                text,
                after: 0,
                rows,
                taint,
                left_out: &left_out,
            });
            gathering.take(answers, ANSWERS, usize::MAX)?;
        }
        let mut left = LOOKED_AT;
        let asked = (!asked.is_empty()).then_some(asked);
        for tags in asked
            .into_iter()
            .chain(TAGS.map(|tag| vec![tag.to_owned()]))
        {
            let filter = Filter {
                tags,
                match_all: false,
                excerpt_bytes,
            };
            let tagged = Unshadowed::new(&shelves, |shelf| Page {
                shelf,
                filter: &filter,
                after: None,
                rows,
                taint,
            });
            left = gathering.take(tagged, usize::MAX, left)?;
        }
        let used = Unshadowed::new(&shelves, |shelf| Used {
            shelf,
            after: 0,
            rows,
            excerpt_bytes,
            taint,
        });
        gathering.take(used, usize::MAX, left)?;
        Ok(gathering.block.finish())
    }
}

/// A block, and what was offered to it.
struct Gathering<'a, S> {
    shelves: &'a [VisibleShelf<S>],
    taint: Level,
    rows: usize,
    block: Block,
    /// The keys that were offered. What did not fit once does not fit later.
    known: BTreeSet<String>,
}

impl<S: Shelf> Gathering<'_, S> {
    /// Offers the first `most` memories to the block, looking at no more than `left` records.
    /// Answers with how many of `left` are left.
    fn take<F: Feed>(
        &mut self,
        mut memories: Unshadowed<'_, S, F>,
        most: usize,
        mut left: usize,
    ) -> Result<usize, MemoryError> {
        let mut taken = 0_usize;
        while taken < most && self.block.room() > ITEM_BYTES {
            let wanted = self.rows.min(left);
            if wanted == 0 {
                break;
            }
            let Some(mut batch) = memories.next(wanted)? else {
                break;
            };
            left = left.saturating_sub(wanted);
            batch.truncate(most.saturating_sub(taken));
            taken = taken.saturating_add(batch.len());
            self.offer(batch)?;
        }
        Ok(left)
    }

    fn offer<T: Candidate>(&mut self, batch: Vec<Seen<T>>) -> Result<(), MemoryError> {
        let mut fresh: Vec<(usize, Memory)> = Vec::new();
        for Seen { item, rank } in batch {
            let memory = item.into_memory();
            if trusted(&memory) && self.known.insert(memory.key.clone()) && self.may_fit(&memory) {
                fresh.push((rank, memory));
            }
        }
        let seen: Vec<(usize, &str, Origin)> = fresh
            .iter()
            .map(|(rank, memory)| (*rank, memory.key.as_str(), memory.origin))
            .collect();
        let conflicts = shadow::conflicts(self.shelves, &seen)?;
        for ((rank, memory), conflict) in fresh.into_iter().zip(conflicts) {
            if self.may_fit(&memory)
                && let Some(memory) = self.whole(rank, memory)?
            {
                self.block.offer(&memory, conflict.as_ref());
            }
        }
        Ok(())
    }

    /// Whether there is room, as far as can be told without the whole content.
    fn may_fit(&self, memory: &Memory) -> bool {
        let content = usize::try_from(memory.content_bytes).unwrap_or(usize::MAX);
        content.saturating_add(ITEM_BYTES) <= self.block.room()
    }

    /// The memory with all of its content.
    fn whole(&self, rank: usize, memory: Memory) -> Result<Option<Memory>, MemoryError> {
        let shown = u64::try_from(memory.content.len()).unwrap_or(u64::MAX);
        if shown >= memory.content_bytes {
            return Ok(Some(memory));
        }
        let Some(entry) = self.shelves.get(rank) else {
            return Ok(None);
        };
        Ok(match entry.shelf.fetch(&memory.key)? {
            Some(Entry::Live(whole)) if visible(&whole, self.taint) && trusted(&whole) => {
                Some(whole)
            }
            _ => None,
        })
    }
}

/// The guest's own look at what the host serves: what is kept apart never comes into a
/// prompt by this way.
fn trusted(memory: &Memory) -> bool {
    match memory.standing {
        Standing::Trusted => true,
        Standing::Pending | Standing::Quarantined => false,
    }
}
