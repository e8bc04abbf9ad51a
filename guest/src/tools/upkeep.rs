//! What keeps memories from going stale: confirming, reviewing, and looking back.
//!
//! None of these counts as use. What is read only to be checked is not wanted for that.

use std::collections::BTreeSet;

use super::{CONFIRMED, Part, Room, Tools, excerpted, not_found, size};
use crate::answers;
use crate::classification::{self, VisibleShelf};
use crate::contract::{
    Confirmed, Edge, Instant, Level, Memory, MemoryError, Past, Presence, ReviewArguments,
    ReviewQueue, Timeline,
};
use crate::host::{Host, Shelf};
use crate::moment::{self, DAY};
use crate::shadow::{self, Candidate, Merged, Stale, Unshadowed, Versions};
use crate::validate::{self, REVIEW_DAYS, REVIEW_LIMIT};

/// How many unconfirmed memories of a shelf a status counts (`wit/tools.wit`).
const UNCONFIRMED: u32 = 1000;
/// The most versions in a history. Below the 500 ids of one question for edges.
const VERSIONS: usize = 200;

impl<H: Host> Tools<'_, H> {
    /// Says that the memory that is seen under a key is still true.
    pub fn confirm(&self, key: &str, source: Option<&str>) -> Result<Confirmed, MemoryError> {
        let key = validate::key(key)?;
        if let Some(source) = source {
            validate::source(source)?;
        }
        let (taint, shelves) = self.shelves()?;
        let Some((_, memory)) = shadow::highest(&shelves, &key, taint)? else {
            return Err(not_found(&key, CONFIRMED));
        };
        let confirmed_at = self.host().stamp(&memory.id, source)?;
        let mut notices = Vec::new();
        if !classification::can_flow_to(taint, memory.level) {
            notices.push(format!(
                "Sessions below {} will not see this confirmation.",
                classification::name(taint)
            ));
        }
        if let Some(at) = memory.expires_at {
            notices.push(format!(
                "It still expires at {}. To keep it longer, save it again.",
                moment::rfc3339(at)
            ));
        }
        Ok(Confirmed {
            key,
            level: memory.level,
            confirmed_at,
            notices,
        })
    }

    /// The visible memories longest unconfirmed, oldest first.
    pub fn review(&self, arguments: ReviewArguments) -> Result<ReviewQueue, MemoryError> {
        let days = REVIEW_DAYS.check(arguments.older_than_days)?;
        let most = REVIEW_LIMIT.check(arguments.limit)?;
        let (taint, shelves) = self.shelves()?;
        let before = days_before(self.host().now(), days);
        let rows = self.rows_for(most);
        let merged = Unshadowed::new(&shelves, |shelf| Stale {
            shelf,
            before,
            after: None,
            rows,
            taint,
        });
        let Part {
            memories,
            more,
            truncated,
        } = self.part(&shelves, merged, most, answers::reviewed_size)?;
        Ok(ReviewQueue {
            memories,
            more,
            truncated,
        })
    }

    /// How many memories of one shelf a review would offer.
    pub(super) fn unconfirmed(
        &self,
        shelves: &[VisibleShelf<H::Shelf>],
        rank: usize,
        taint: Level,
        now: Instant,
    ) -> Result<u32, MemoryError> {
        let before = days_before(now, REVIEW_DAYS.otherwise);
        let rows = self.rows_for(UNCONFIRMED);
        let mut stale = Unshadowed::on(shelves, rank, |shelf| Stale {
            shelf,
            before,
            after: None,
            rows,
            taint,
        });
        let mut count = 0_u32;
        while count < UNCONFIRMED
            && let Some(batch) = stale.next(size(rows))?
        {
            count = count.saturating_add(u32::try_from(batch.len()).unwrap_or(u32::MAX));
        }
        Ok(count.min(UNCONFIRMED))
    }

    /// What was saved under a key, newest first, and what took the place of what.
    pub fn history(&self, key: &str) -> Result<Timeline, MemoryError> {
        let key = validate::key(key)?;
        let (taint, shelves) = self.shelves()?;
        let current = shadow::highest(&shelves, &key, taint)?.map(|(_, memory)| memory.id);

        let descents = shadow::descents(&shelves, &key)?;
        let mut merged = Merged::new(&shelves, |shelf| Versions {
            shelf,
            key: &key,
            before: None,
            rows: self.rows_for(u32::try_from(VERSIONS).unwrap_or(u32::MAX)),
            taint,
        });
        let mut room = Room::new(0);
        let mut truncated = false;
        let mut memories: Vec<Memory> = Vec::new();
        while let Some(seen) = merged.pop()? {
            let memory = excerpted(seen.item.into_memory());
            let hidden = descents
                .get(seen.rank)
                .is_some_and(|descent| !descent.sees(memory.origin));
            if hidden {
                continue;
            }
            // Enough to fill the answer by themselves: the names of what took their place,
            // which are asked for below, come on top.
            let fits = room.take(memory.content.len());
            if memories.len() >= VERSIONS || (!fits && !memories.is_empty()) {
                truncated = true;
                break;
            }
            memories.push(memory);
        }

        let lineage = Lineage::ask(&shelves, &memories)?;
        let now = self.host().now();
        let mut room = Room::new(0);
        let mut versions: Vec<Past> = Vec::new();
        for (place, memory) in memories.iter().enumerate() {
            let newer = memories.get(..place).unwrap_or_default();
            let mut past = Past {
                current: current.as_ref() == Some(&memory.id),
                superseded_by: lineage.superseded_by(memory, newer),
                supersedes: lineage.supersedes(memory),
                memory: memory.clone(),
            };
            past.memory.superseded_at = memory
                .superseded_at
                .or_else(|| lineage.superseded_at(memory));
            if !room.take(answers::past_size(&past, now)) && !versions.is_empty() {
                truncated = true;
                break;
            }
            versions.push(past);
        }
        Ok(Timeline {
            key,
            versions,
            truncated,
        })
    }
}

fn days_before(now: Instant, days: u32) -> Instant {
    now.saturating_sub(DAY.saturating_mul(i64::from(days)))
}

/// The edges that touch the versions of a history, all from shelves that the session may
/// read. An edge on a shelf above the taint was never asked for, so nothing of the record
/// that it belongs to can show here.
struct Lineage {
    edges: Vec<Edge>,
    /// Keys that a tombstone hides: as if nothing had ever been saved under them.
    hidden: BTreeSet<String>,
}

impl Lineage {
    fn ask<S: Shelf>(
        shelves: &[VisibleShelf<S>],
        versions: &[Memory],
    ) -> Result<Self, MemoryError> {
        let mut lineage = Self {
            edges: Vec::new(),
            hidden: BTreeSet::new(),
        };
        if versions.is_empty() {
            return Ok(lineage);
        }
        let ids: Vec<String> = versions.iter().map(|memory| memory.id.clone()).collect();
        for entry in shelves {
            lineage.edges.extend(entry.shelf.edges(&ids)?);
        }
        let named: BTreeSet<&String> = lineage
            .edges
            .iter()
            .flat_map(|edge| edge.old_key.iter().chain(&edge.new_key))
            .collect();
        let named: Vec<String> = named.into_iter().cloned().collect();
        if named.is_empty() {
            return Ok(lineage);
        }
        for entry in shelves {
            for (key, presence) in named.iter().zip(shadow::presences(&entry.shelf, &named)?) {
                if matches!(presence, Presence::Tombstone(_)) {
                    lineage.hidden.insert(key.clone());
                }
            }
        }
        Ok(lineage)
    }

    fn edges_from<'a>(&'a self, old: &'a Memory) -> impl Iterator<Item = &'a Edge> {
        self.edges.iter().filter(|edge| edge.old_id == old.id)
    }

    fn superseded_at(&self, old: &Memory) -> Option<Instant> {
        self.edges_from(old).map(|edge| edge.at).min()
    }

    /// The key of what took a version's place. `newer`: the newer ones of its own key.
    fn superseded_by(&self, old: &Memory, newer: &[Memory]) -> Option<String> {
        let mut edges = self.edges_from(old).peekable();
        if edges.peek().is_some() {
            // Several can have, on several shelves: the first to do so is named.
            return edges
                .filter_map(|edge| edge.new_key.as_ref().map(|key| (edge.at, key)))
                .filter(|(_, key)| !self.hidden.contains(*key))
                .min()
                .map(|(_, key)| key.clone());
        }
        // A later version on its own shelf needs no edge.
        (old.superseded_at.is_some() && newer.iter().any(|newer| newer.level == old.level))
            .then(|| old.key.clone())
    }

    /// The keys of what a version took the place of, other than earlier versions on its own
    /// level.
    fn supersedes(&self, new: &Memory) -> Vec<String> {
        let keys: BTreeSet<&String> = self
            .edges
            .iter()
            .filter(|edge| edge.new_id == new.id)
            .filter_map(|edge| edge.old_key.as_ref())
            .filter(|key| !self.hidden.contains(*key))
            .collect();
        keys.into_iter().cloned().collect()
    }
}
