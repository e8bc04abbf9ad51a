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

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::classification::{VisibleShelf, visible};
use crate::contract::{
    Conflict, Entry, Filter, Instant, Level, Match, Memory, MemoryError, Origin, Presence,
    StalePosition,
};
use crate::host::Shelf;
use crate::moment::checked_at;
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

/// For each shelf, the way down to it: what tombstones of a key lie above it. One hides what
/// lies beneath it, not what lies beside it.
pub fn descents<S: Shelf>(
    shelves: &[VisibleShelf<S>],
    key: &str,
) -> Result<Vec<Descent>, MemoryError> {
    let keys = [key.to_owned()];
    let mut descents = Vec::with_capacity(shelves.len());
    let mut descent = Descent::default();
    for entry in shelves {
        descents.push(descent);
        for presence in presences(&entry.shelf, &keys)? {
            if let Presence::Tombstone(origin) = presence {
                descent.pass(origin);
            }
        }
    }
    Ok(descents)
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

    /// The record alone.
    fn into_memory(self) -> Memory;

    /// Where it stands to another one of the same answer.
    fn order(&self, other: &Self) -> Ordering;
}

impl Candidate for Memory {
    fn memory(&self) -> &Memory {
        self
    }

    fn into_memory(self) -> Memory {
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

    fn into_memory(self) -> Memory {
        self.memory
    }

    fn order(&self, other: &Self) -> Ordering {
        // Total also over NaN, which only a broken host sends.
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| self.memory.order(&other.memory))
    }
}

/// A record in the order in which they are to be checked again: the longest unconfirmed
/// first, then by id.
#[derive(Debug)]
pub struct Aged(Memory);

impl Candidate for Aged {
    fn memory(&self) -> &Memory {
        &self.0
    }

    fn into_memory(self) -> Memory {
        self.0
    }

    fn order(&self, other: &Self) -> Ordering {
        checked_at(&self.0)
            .cmp(&checked_at(&other.0))
            .then_with(|| self.0.id.as_bytes().cmp(other.0.id.as_bytes()))
    }
}

/// A record in the order of use. Shelves do not say how often one was used, only which was
/// used more: they take turns, the highest first.
#[derive(Debug)]
pub struct Favourite {
    memory: Memory,
    place: u32,
}

impl Candidate for Favourite {
    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn into_memory(self) -> Memory {
        self.memory
    }

    fn order(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

/// A version in a history, the newest first. On one shelf the version counts and not the
/// clock, which may have been set back between two.
#[derive(Debug)]
pub struct Version(Memory);

impl Candidate for Version {
    fn memory(&self) -> &Memory {
        &self.0
    }

    fn into_memory(self) -> Memory {
        self.0
    }

    fn order(&self, other: &Self) -> Ordering {
        other.0.updated_at.cmp(&self.0.updated_at)
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
    /// Where it is told how many terms were not searched for.
    pub left_out: &'a Cell<u32>,
}

impl<S: Shelf> Feed for Search<'_, S> {
    type Item = Match;

    fn fill(&mut self, buffer: &mut VecDeque<Match>) -> Result<bool, MemoryError> {
        let page = self.shelf.search(self.text, self.after, self.rows)?;
        self.left_out.set(page.left_out.max(self.left_out.get()));
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

/// A shelf's records that were not confirmed or saved since a moment.
#[derive(Debug)]
pub struct Stale<'a, S> {
    /// The shelf.
    pub shelf: &'a S,
    /// The moment.
    pub before: Instant,
    /// Only records behind this one.
    pub after: Option<StalePosition>,
    /// How many to ask for at once.
    pub rows: u32,
    /// The session's level.
    pub taint: Level,
}

impl<S: Shelf> Feed for Stale<'_, S> {
    type Item = Aged;

    fn fill(&mut self, buffer: &mut VecDeque<Aged>) -> Result<bool, MemoryError> {
        let page = self
            .shelf
            .stale(self.before, self.after.as_ref(), self.rows)?;
        if page.more {
            let place = |at: &StalePosition| (at.checked_at, at.id.clone());
            match page.items.last().map(|last| StalePosition {
                checked_at: checked_at(last),
                id: last.id.clone(),
            }) {
                Some(last)
                    if self
                        .after
                        .as_ref()
                        .is_none_or(|after| place(after) < place(&last)) =>
                {
                    self.after = Some(last);
                }
                _ => return Err(stalled()),
            }
        }
        buffer.extend(
            page.items
                .into_iter()
                .filter(|memory| visible(memory, self.taint) && checked_at(memory) < self.before)
                .map(Aged),
        );
        Ok(page.more)
    }
}

/// A shelf's records that the session's level used, the most used first.
#[derive(Debug)]
pub struct Used<'a, S> {
    /// The shelf.
    pub shelf: &'a S,
    /// How many came already.
    pub after: u32,
    /// How many to ask for at once.
    pub rows: u32,
    /// The most bytes of content to ask for with each.
    pub excerpt_bytes: u32,
    /// The session's level.
    pub taint: Level,
}

impl<S: Shelf> Feed for Used<'_, S> {
    type Item = Favourite;

    fn fill(&mut self, buffer: &mut VecDeque<Favourite>) -> Result<bool, MemoryError> {
        let page = self.shelf.used(self.after, self.rows, self.excerpt_bytes)?;
        let first = self.after;
        let got = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
        if page.more {
            match self.after.checked_add(got) {
                Some(after) if got > 0 => self.after = after,
                _ => return Err(stalled()),
            }
        }
        buffer.extend(
            (first..)
                .zip(page.items)
                .filter(|(_, memory)| visible(memory, self.taint))
                .map(|(place, memory)| Favourite { memory, place }),
        );
        Ok(page.more)
    }
}

/// A shelf's versions of a key, the newest first.
#[derive(Debug)]
pub struct Versions<'a, S> {
    /// The shelf.
    pub shelf: &'a S,
    /// The key.
    pub key: &'a str,
    /// Only versions older than this one.
    pub before: Option<u64>,
    /// How many to ask for at once.
    pub rows: u32,
    /// The session's level.
    pub taint: Level,
}

impl<S: Shelf> Feed for Versions<'_, S> {
    type Item = Version;

    fn fill(&mut self, buffer: &mut VecDeque<Version>) -> Result<bool, MemoryError> {
        let page = self.shelf.versions(self.key, self.before, self.rows)?;
        if page.more {
            match page.items.last() {
                Some(last) if self.before.is_none_or(|before| last.version < before) => {
                    self.before = Some(last.version);
                }
                _ => return Err(stalled()),
            }
        }
        buffer.extend(
            page.items
                .into_iter()
                .filter(|memory| visible(memory, self.taint) && memory.key == self.key)
                .map(Version),
        );
        Ok(page.more)
    }
}

/// A candidate with the place it comes from.
#[derive(Debug)]
pub struct Seen<T> {
    /// The candidate.
    pub item: T,
    /// The rank of its shelf.
    pub rank: usize,
}

/// The candidates of several shelves in one order, shadowed ones among them.
pub struct Merged<F: Feed> {
    lanes: Vec<Lane<F>>,
}

struct Lane<F: Feed> {
    feed: F,
    buffer: VecDeque<F::Item>,
    more: bool,
}

impl<F: Feed> Merged<F> {
    /// `feed` makes the feed of one shelf.
    pub fn new<'a, S: Shelf>(shelves: &'a [VisibleShelf<S>], feed: impl Fn(&'a S) -> F) -> Self {
        let lanes = shelves
            .iter()
            .map(|entry| Lane {
                feed: feed(&entry.shelf),
                buffer: VecDeque::new(),
                more: true,
            })
            .collect();
        Self { lanes }
    }

    /// Takes the next candidate of all shelves; of equal ones that of the highest shelf.
    pub fn pop(&mut self) -> Result<Option<Seen<F::Item>>, MemoryError> {
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
}

/// The candidates of all shelves in one order, without those that are shadowed.
pub struct Unshadowed<'a, S, F: Feed> {
    shelves: &'a [VisibleShelf<S>],
    merged: Merged<F>,
}

impl<'a, S: Shelf, F: Feed> Unshadowed<'a, S, F> {
    /// `feed` makes the feed of one shelf.
    pub fn new(shelves: &'a [VisibleShelf<S>], feed: impl Fn(&'a S) -> F) -> Self {
        Self {
            shelves,
            merged: Merged::new(shelves, feed),
        }
    }

    /// The candidates of the shelf at `rank` alone, without those that a higher one shadows.
    pub fn on(shelves: &'a [VisibleShelf<S>], rank: usize, feed: impl Fn(&'a S) -> F) -> Self {
        let mut all = Self::new(shelves, feed);
        for (other, lane) in all.merged.lanes.iter_mut().enumerate() {
            lane.more = other == rank;
        }
        all
    }

    /// What is left of the next `most` candidates (at least 1), which may be nothing. None:
    /// the shelves have ended.
    pub fn next(&mut self, most: usize) -> Result<Option<Vec<Seen<F::Item>>>, MemoryError> {
        let mut candidates = Vec::new();
        while candidates.len() < most.max(1) {
            match self.merged.pop()? {
                Some(candidate) => candidates.push(candidate),
                None => break,
            }
        }
        if candidates.is_empty() {
            return Ok(None);
        }
        self.unshadow(candidates).map(Some)
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
pub fn presences<S: Shelf>(shelf: &S, keys: &[String]) -> Result<Vec<Presence>, MemoryError> {
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
