//! Of one key on several visible shelves, only the highest is seen.
//!
//! Shelves are known here by their rank: 0 is the highest. A live record hides every
//! version of its key on the shelves of higher rank number, whatever the question was: a
//! lower version does not become a match because the higher one is none. A tombstone hides
//! them too, but for what is more trusted than whoever left it: what the model deleted does
//! not silence the person. [`Descent`] is that rule.
//!
//! So shadowing comes before any filter's or limit's last word. Candidates are merged from
//! all shelves, those that a higher shelf hides are dropped, and the caller takes on until
//! it has enough or the shelves end.
//!
//! # Conflicts
//!
//! The highest version wins even where a more trusted one lies beneath it. That is named
//! (never shown) as a [`Conflict`]: the most trusted version beneath, and of equally
//! trusted ones the highest.
//!
//! # Paging
//!
//! The host bounds its pages in bytes as well as rows, so a short page is not the end; only
//! `more: false` is. A host whose pages do not advance gets an error, not an endless loop.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::classification::{VisibleShelf, visible};
use crate::contract::{
    Conflict, Entry, Filter, Level, Match, Memory, MemoryError, Origin, Presence,
};
use crate::host::Shelf;
use crate::provenance::{more_trusted, most_trusted};
use crate::validate::problem;

/// The most keys that `shelf.present` takes at once (`wit/storage.wit`).
const PRESENT_KEYS: usize = 500;

/// The way down from the highest shelf, for one key: which live version is met first that
/// no tombstone hides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Descent {
    /// The most trusted origin of the tombstones passed so far.
    buried_by: Option<Origin>,
}

impl Descent {
    /// Passes a tombstone.
    fn pass(&mut self, tombstone: Origin) {
        if self
            .buried_by
            .is_none_or(|passed| more_trusted(tombstone, passed))
        {
            self.buried_by = Some(tombstone);
        }
    }

    /// Whether a record of that origin is seen here.
    pub fn sees(&self, live: Origin) -> bool {
        self.buried_by
            .is_none_or(|tombstone| more_trusted(live, tombstone))
    }
}

/// The highest visible live version of a key, with the rank of its shelf.
pub fn highest<S: Shelf>(
    shelves: &[VisibleShelf<S>],
    key: &str,
    taint: Level,
) -> Result<Option<(usize, Memory)>, MemoryError> {
    let mut descent = Descent::default();
    for (rank, entry) in shelves.iter().enumerate() {
        match entry.shelf.fetch(key)? {
            Some(Entry::Live(memory)) if visible(&memory, taint) && descent.sees(memory.origin) => {
                return Ok(Some((rank, memory)));
            }
            Some(Entry::Tombstone(origin)) => descent.pass(origin),
            Some(Entry::Live(_)) | None => {}
        }
    }
    Ok(None)
}

/// The level of the version that is seen of a key on these shelves, without reading it.
pub fn seen_at<S: Shelf>(
    shelves: &[VisibleShelf<S>],
    key: &str,
) -> Result<Option<Level>, MemoryError> {
    let keys = [key.to_owned()];
    let mut descent = Descent::default();
    for entry in shelves {
        for presence in presences(&entry.shelf, &keys)? {
            match presence {
                Presence::Live(origin) if descent.sees(origin) => return Ok(Some(entry.level)),
                Presence::Tombstone(origin) => descent.pass(origin),
                Presence::Live(_) | Presence::Absent => {}
            }
        }
    }
    Ok(None)
}

/// For each of `(rank, key, origin)`, the more trusted version beneath it, if there is one.
pub fn conflicts<S: Shelf>(
    shelves: &[VisibleShelf<S>],
    seen: &[(usize, &str, Origin)],
) -> Result<Vec<Option<Conflict>>, MemoryError> {
    let mut conflicts: Vec<Option<Conflict>> = vec![None; seen.len()];
    let mut descents: Vec<Descent> = seen.iter().map(|_| Descent::default()).collect();
    // Nothing is more trusted than a person's own words, so there is nothing to ask.
    let mut open: Vec<usize> = (0..seen.len())
        .filter(|&i| {
            seen.get(i)
                .is_some_and(|&(.., origin)| !most_trusted(origin))
        })
        .collect();
    for (rank, entry) in shelves.iter().enumerate().skip(1) {
        let asked: Vec<(usize, &str, Origin)> = open
            .iter()
            .filter_map(|&i| {
                seen.get(i)
                    .map(|&(above, key, origin)| (i, above, key, origin))
            })
            .filter(|&(_, above, ..)| above < rank)
            .map(|(i, _, key, origin)| (i, key, origin))
            .collect();
        if asked.is_empty() {
            continue;
        }
        let keys: Vec<String> = asked.iter().map(|&(_, key, _)| key.to_owned()).collect();
        for (&(i, _, origin), presence) in asked.iter().zip(presences(&entry.shelf, &keys)?) {
            let (Some(conflict), Some(descent)) = (conflicts.get_mut(i), descents.get_mut(i))
            else {
                continue;
            };
            let best = conflict.as_ref().map_or(origin, |found| found.origin);
            match presence {
                Presence::Live(beneath) if more_trusted(beneath, best) && descent.sees(beneath) => {
                    *conflict = Some(Conflict {
                        level: entry.level,
                        origin: beneath,
                    });
                    if most_trusted(beneath) {
                        open.retain(|&other| other != i);
                    }
                }
                Presence::Tombstone(tombstone) => descent.pass(tombstone),
                Presence::Live(_) | Presence::Absent => {}
            }
        }
    }
    Ok(conflicts)
}

/// What can be merged: a record with a place in an order.
pub trait Candidate {
    /// The record.
    fn memory(&self) -> &Memory;

    /// Where it stands to another one of the same answer.
    fn order(&self, other: &Self) -> Ordering;
}

impl Candidate for Memory {
    fn memory(&self) -> &Memory {
        self
    }

    fn order(&self, other: &Self) -> Ordering {
        self.key.as_bytes().cmp(other.key.as_bytes())
    }
}

impl Candidate for Match {
    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn order(&self, other: &Self) -> Ordering {
        // Total also over NaN, which only a broken host sends.
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| self.memory.order(&other.memory))
    }
}

/// One shelf's candidates, a page at a time.
pub trait Feed {
    /// What it yields.
    type Item: Candidate;

    /// Appends the next page. False: there is nothing behind it.
    fn fill(&mut self, buffer: &mut VecDeque<Self::Item>) -> Result<bool, MemoryError>;
}

/// A shelf's records that carry the asked tags, by key.
#[derive(Debug)]
pub struct Page<'a, S> {
    /// The shelf.
    pub shelf: &'a S,
    /// Which records.
    pub filter: &'a Filter,
    /// Only keys behind this one.
    pub after: Option<String>,
    /// How many to ask for at once.
    pub rows: u32,
    /// The session's level.
    pub taint: Level,
}

impl<S: Shelf> Feed for Page<'_, S> {
    type Item = Memory;

    fn fill(&mut self, buffer: &mut VecDeque<Memory>) -> Result<bool, MemoryError> {
        let page = self
            .shelf
            .page(self.filter, self.after.as_deref(), self.rows)?;
        if page.more {
            match page.items.last() {
                Some(last) if self.after.as_ref().is_none_or(|after| *after < last.key) => {
                    self.after = Some(last.key.clone());
                }
                _ => return Err(stalled()),
            }
        }
        buffer.extend(
            page.items
                .into_iter()
                .filter(|memory| visible(memory, self.taint) && carries(memory, self.filter)),
        );
        Ok(page.more)
    }
}

/// A shelf's matches, best first.
#[derive(Debug)]
pub struct Search<'a, S> {
    /// The shelf.
    pub shelf: &'a S,
    /// The words.
    pub text: &'a str,
    /// How many matches came already.
    pub after: u32,
    /// How many to ask for at once.
    pub rows: u32,
    /// The session's level.
    pub taint: Level,
}

impl<S: Shelf> Feed for Search<'_, S> {
    type Item = Match;

    fn fill(&mut self, buffer: &mut VecDeque<Match>) -> Result<bool, MemoryError> {
        let page = self.shelf.search(self.text, self.after, self.rows)?;
        let got = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
        if page.more {
            match self.after.checked_add(got) {
                Some(after) if got > 0 => self.after = after,
                _ => return Err(stalled()),
            }
        }
        buffer.extend(
            page.items
                .into_iter()
                .filter(|found| visible(&found.memory, self.taint)),
        );
        Ok(page.more)
    }
}

/// A candidate that no higher shelf hides.
#[derive(Debug)]
pub struct Seen<T> {
    /// The candidate.
    pub item: T,
    /// The rank of its shelf.
    pub rank: usize,
}

/// The candidates of all shelves in one order, without those that are shadowed.
pub struct Unshadowed<'a, S, F: Feed> {
    shelves: &'a [VisibleShelf<S>],
    lanes: Vec<Lane<F>>,
}

struct Lane<F: Feed> {
    feed: F,
    buffer: VecDeque<F::Item>,
    more: bool,
}

impl<'a, S: Shelf, F: Feed> Unshadowed<'a, S, F> {
    /// `feed` makes the feed of one shelf.
    pub fn new(shelves: &'a [VisibleShelf<S>], feed: impl Fn(&'a S) -> F) -> Self {
        let lanes = shelves
            .iter()
            .map(|entry| Lane {
                feed: feed(&entry.shelf),
                buffer: VecDeque::new(),
                more: true,
            })
            .collect();
        Self { shelves, lanes }
    }

    /// What is left of the next `most` candidates (at least 1), which may be nothing. None:
    /// the shelves have ended.
    pub fn next(&mut self, most: usize) -> Result<Option<Vec<Seen<F::Item>>>, MemoryError> {
        let mut candidates = Vec::new();
        while candidates.len() < most.max(1) {
            match self.merge()? {
                Some(candidate) => candidates.push(candidate),
                None => break,
            }
        }
        if candidates.is_empty() {
            return Ok(None);
        }
        self.unshadow(candidates).map(Some)
    }

    /// The next candidate of all shelves, shadowed or not; of equal ones that of the
    /// highest shelf.
    fn merge(&mut self) -> Result<Option<Seen<F::Item>>, MemoryError> {
        for lane in &mut self.lanes {
            while lane.more && lane.buffer.is_empty() {
                lane.more = lane.feed.fill(&mut lane.buffer)?;
            }
        }
        let first = self
            .lanes
            .iter_mut()
            .enumerate()
            .filter(|(_, lane)| !lane.buffer.is_empty())
            .min_by(
                |(_, a), (_, b)| match (a.buffer.front(), b.buffer.front()) {
                    (Some(a), Some(b)) => a.order(b),
                    _ => Ordering::Equal,
                },
            );
        Ok(first.and_then(|(rank, lane)| {
            let item = lane.buffer.pop_front()?;
            Some(Seen { item, rank })
        }))
    }

    /// Drops what a higher shelf hides, with one question to each higher shelf.
    fn unshadow(&self, candidates: Vec<Seen<F::Item>>) -> Result<Vec<Seen<F::Item>>, MemoryError> {
        let mut ways: Vec<(Seen<F::Item>, Descent)> = candidates
            .into_iter()
            .map(|candidate| (candidate, Descent::default()))
            .collect();
        for (rank, entry) in self.shelves.iter().enumerate() {
            let keys: Vec<String> = ways
                .iter()
                .filter(|(candidate, _)| candidate.rank > rank)
                .map(|(candidate, _)| candidate.item.memory().key.clone())
                .collect();
            if keys.is_empty() {
                continue;
            }
            let mut presences = presences(&entry.shelf, &keys)?.into_iter();
            ways.retain_mut(|(candidate, descent)| {
                if candidate.rank <= rank {
                    return true;
                }
                match presences.next() {
                    Some(Presence::Live(origin)) => !descent.sees(origin),
                    Some(Presence::Tombstone(origin)) => {
                        descent.pass(origin);
                        true
                    }
                    Some(Presence::Absent) => true,
                    None => false,
                }
            });
        }
        Ok(ways
            .into_iter()
            .filter(|(candidate, descent)| descent.sees(candidate.item.memory().origin))
            .map(|(candidate, _)| candidate)
            .collect())
    }
}

/// The guest's own look at a filter that the host applied.
fn carries(memory: &Memory, filter: &Filter) -> bool {
    let has = |tag: &String| memory.tags.contains(tag);
    if filter.tags.is_empty() {
        true
    } else if filter.match_all {
        filter.tags.iter().all(has)
    } else {
        filter.tags.iter().any(has)
    }
}

/// `shelf.present` for any number of keys; exactly one answer for each.
fn presences<S: Shelf>(shelf: &S, keys: &[String]) -> Result<Vec<Presence>, MemoryError> {
    let mut presences = Vec::with_capacity(keys.len());
    for chunk in keys.chunks(PRESENT_KEYS) {
        let answer = shelf.present(chunk)?;
        if answer.len() != chunk.len() {
            return Err(MemoryError::Unavailable(problem(
                "The store answered for another number of keys than it was asked about",
                "It answers once for each key",
                "This is a fault of the host: report it to its operator",
            )));
        }
        presences.extend(answer);
    }
    Ok(presences)
}

fn stalled() -> MemoryError {
    MemoryError::Unavailable(problem(
        "The store said that there is more and gave nothing new",
        "Each page goes on behind the one before",
        "This is a fault of the host: report it to its operator",
    ))
}
