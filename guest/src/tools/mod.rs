//! The operations, typed. Each is a few lines over [`crate::validate`],
//! [`crate::classification`] and [`crate::shadow`]; the host is asked for as little as the
//! answer needs, because every question crosses the component's boundary.
//!
//! Here stand saving and finding; in `upkeep` what keeps memories from going stale, in
//! `context` the block for a prompt.

mod context;
mod upkeep;

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::answers::{self, ANSWER_BYTES, ENVELOPE_BYTES, EXCERPT_BYTES, SNIPPET_BYTES};
use crate::classification::{self, VisibleShelf, visible_shelves};
use crate::contract::{
    Conflict, Deleted, Draft, Filter, Found, Hit, Level, ListArguments, Listing, Memory,
    MemoryError, Origin, Receipt, Results, SaveArguments, Saved, ShelfStatus, Standing,
    StatusReport,
};
use crate::cursor;
use crate::host::{Host, Shelf};
use crate::moment::age_days;
use crate::shadow::{self, Candidate, Feed, Page, Search, Seen, Unshadowed};
use crate::validate::{self, LIST_LIMIT, SEARCH_LIMIT, problem};

/// How many records to ask a shelf for at once. About as many excerpts as fit into one
/// answer, so that a large shelf is not read for nothing.
const PAGE_ROWS: u32 = 64;
/// The longest query that the host takes: 256 KiB.
const QUERY_BYTES: usize = 256 * 1024;
/// How many tags of a shelf a status names.
const STATUS_TAGS: u32 = 50;

/// The operations over one host.
#[derive(Debug)]
pub struct Tools<'h, H> {
    host: &'h H,
    page_rows: u32,
}

impl<'h, H: Host> Tools<'h, H> {
    /// The tools of the session that `host` serves.
    pub fn new(host: &'h H) -> Self {
        Self {
            host,
            page_rows: PAGE_ROWS,
        }
    }

    /// Asks a shelf for `rows` records at once (at least 1). No answer depends on it.
    #[must_use]
    pub fn with_page_rows(self, rows: u32) -> Self {
        Self {
            page_rows: rows.max(1),
            ..self
        }
    }

    /// The host behind the tools.
    pub(crate) fn host(&self) -> &H {
        self.host
    }

    /// Saves a memory on the session's own level. No shelf is read for the key: what lies
    /// above must not show in the answer, and what lies below does not matter. Only the keys
    /// in `supersedes` are looked up, among what is visible.
    pub fn save(&self, arguments: SaveArguments) -> Result<Saved, MemoryError> {
        let key = validate::key(&arguments.key)?;
        validate::content(&arguments.content)?;
        let tags = validate::tags(&arguments.tags)?;
        if let Some(source) = &arguments.source {
            validate::source(source)?;
        }
        if let Some(at) = arguments.expires_at {
            validate::expires_at(at, self.host.now())?;
        }
        let replaced = self.replaced(&key, &validate::supersedes(&arguments.supersedes)?)?;
        let draft = Draft {
            key,
            content: arguments.content,
            tags,
            source: arguments.source,
            expires_at: arguments.expires_at,
            supersedes: replaced.ids,
        };
        let receipt = self.host.put(&draft)?;
        let notices = save_notices(&draft, &receipt, replaced.below);
        Ok(Saved {
            outcome: receipt.outcome,
            key: draft.key,
            level: receipt.level,
            origin: receipt.origin,
            standing: receipt.standing,
            version: receipt.version,
            notices,
        })
    }

    /// The records whose place a save under `key` takes besides its own earlier version.
    fn replaced(&self, key: &str, supersedes: &[String]) -> Result<Replaced, MemoryError> {
        let mut replaced = Replaced::default();
        if supersedes.is_empty() {
            return Ok(replaced);
        }
        let (taint, shelves) = self.shelves()?;
        for old in supersedes {
            let Some((rank, memory)) = shadow::highest(&shelves, old, taint)? else {
                return Err(not_found(old, REPLACED));
            };
            let own = shelves
                .get(rank)
                .is_some_and(|entry| classification::can_flow_to(taint, entry.level));
            // An own version under the same key is replaced in any case.
            if !(own && old == key) {
                replaced.ids.push(memory.id);
                replaced.below |= !own;
            }
        }
        Ok(replaced)
    }

    /// The highest visible live version of a key, whole.
    pub fn get(&self, key: &str) -> Result<Option<Found>, MemoryError> {
        let key = validate::key(key)?;
        let (taint, shelves) = self.shelves()?;
        let Some((rank, memory)) = shadow::highest(&shelves, &key, taint)? else {
            return Ok(None);
        };
        let conflict = shadow::conflicts(&shelves, &[(rank, &key, memory.origin)])?
            .pop()
            .flatten();
        let age_days = age_days(&memory, self.host.now());
        self.host.used(std::slice::from_ref(&memory.id));
        Ok(Some(Found {
            memory,
            conflict,
            age_days,
        }))
    }

    /// The memories that hold words of `query`, best first.
    pub fn search(&self, query: &str, max_results: Option<u32>) -> Result<Results, MemoryError> {
        validate::query(query)?;
        let most = SEARCH_LIMIT.check(max_results)?;
        let (text, cut) = searchable(query);
        let (taint, shelves) = self.shelves()?;
        let now = self.host.now();

        let rows = self.page_rows.min(most);
        let left_out = Cell::new(0);
        let mut merged = Unshadowed::new(&shelves, |shelf| Search {
            shelf,
            text,
            after: 0,
            rows,
            taint,
            left_out: &left_out,
        });
        let echo = answers::text_size(answers::excerpt(query, answers::QUERY_ECHO_BYTES));
        let mut room = Room::new(echo);
        let mut hits = Vec::new();
        let mut truncated = false;
        'filling: while hits.len() < size(most) {
            let wanted = size(most).saturating_sub(hits.len()).min(size(rows));
            let Some(batch) = merged.next(wanted)? else {
                break;
            };
            for (found, conflict) in with_conflicts(&shelves, batch)? {
                let hit = Hit {
                    memory: excerpted(found.memory),
                    // JSON has no other numbers, and only a broken host sends them.
                    score: if found.score.is_finite() {
                        found.score
                    } else {
                        0.0
                    },
                    snippet: answers::excerpt(&found.snippet, SNIPPET_BYTES).to_owned(),
                    conflict,
                };
                if !room.take(answers::hit_size(&hit, now)) && !hits.is_empty() {
                    truncated = true;
                    break 'filling;
                }
                hits.push(hit);
            }
        }
        let wordless = wordless_notice(text).filter(|_| hits.is_empty());
        if !hits.is_empty() {
            let ids: Vec<String> = hits.iter().map(|hit| hit.memory.id.clone()).collect();
            self.host.used(&ids);
        }
        Ok(Results {
            hits,
            truncated,
            notices: cut
                .into_iter()
                .chain(left_out_notice(left_out.get()))
                .chain(wordless)
                .collect(),
        })
    }

    /// The visible memories in the order of the key's bytes, a page at a time.
    pub fn list(&self, arguments: ListArguments) -> Result<Listing, MemoryError> {
        let filter = Filter {
            tags: validate::tags(&arguments.tags)?,
            match_all: arguments.match_all,
            excerpt_bytes: u32::try_from(EXCERPT_BYTES).unwrap_or(u32::MAX),
        };
        let most = LIST_LIMIT.check(arguments.limit)?;
        let after = arguments.cursor.as_deref().map(cursor::read).transpose()?;
        let (taint, shelves) = self.shelves()?;

        let rows = self.rows_for(most);
        let merged = Unshadowed::new(&shelves, |shelf| Page {
            shelf,
            filter: &filter,
            after: after.clone(),
            rows,
            taint,
        });
        let Part {
            memories,
            more,
            truncated,
        } = self.part(&shelves, merged, most, answers::found_size)?;
        let next_cursor = match memories.last() {
            Some(last) if more => Some(cursor::after(&last.memory.key)),
            _ => None,
        };
        Ok(Listing {
            memories,
            next_cursor,
            truncated,
        })
    }

    /// Deletes a memory on the session's own level; with `hide_lower`, hides the versions of
    /// lower levels as well.
    pub fn delete(&self, key: &str, hide_lower: bool) -> Result<Deleted, MemoryError> {
        let key = validate::key(key)?;
        let (own, shelves) = self.shelves()?;
        if hide_lower {
            // A tombstone for a key that nobody sees would only be litter.
            if shadow::seen_at(&shelves, &key)?.is_none() {
                return Err(not_found(&key, DELETED));
            }
            self.host.retire(&key, true)?;
            return Ok(Deleted {
                key,
                level: own,
                still_visible: None,
                notices: Vec::new(),
            });
        }
        let retired = self.host.retire(&key, false)?;
        // Asked after the deletion, so this is what is seen from now on.
        let seen = shadow::seen_at(&shelves, &key)?;
        if retired.is_none() {
            return Err(match seen {
                Some(level) => not_here(&key, own, level),
                None => not_found(&key, DELETED),
            });
        }
        let notices = Vec::from_iter(seen.map(|level| {
            format!(
                "The {} version of this key is visible now. To hide it as well, call \
                 memory_delete again with hide_lower.",
                classification::name(level)
            )
        }));
        Ok(Deleted {
            key,
            level: own,
            still_visible: seen,
            notices,
        })
    }

    /// What the session is and what it can see.
    pub fn status(&self) -> Result<StatusReport, MemoryError> {
        let (taint, shelves) = self.shelves()?;
        let now = self.host.now();
        let shelves = shelves
            .iter()
            .enumerate()
            .map(|(rank, entry)| {
                Ok(ShelfStatus {
                    level: entry.level,
                    counts: entry.shelf.counts()?,
                    tags: entry.shelf.tags(STATUS_TAGS)?,
                    unconfirmed: self.unconfirmed(&shelves, rank, taint, now)?,
                })
            })
            .collect::<Result<Vec<ShelfStatus>, MemoryError>>()?;
        Ok(StatusReport {
            session: self.host.name(),
            taint,
            clearance: self.host.clearance(),
            origin: self.host.origin(),
            shelves,
        })
    }

    /// The first `most` memories, and whether there are more. `size_of`: the room that one
    /// takes in the answer.
    fn part<F: Feed>(
        &self,
        shelves: &[VisibleShelf<H::Shelf>],
        mut merged: Unshadowed<'_, H::Shelf, F>,
        most: u32,
        size_of: impl Fn(&Found) -> usize,
    ) -> Result<Part, MemoryError> {
        let now = self.host.now();
        let rows = self.rows_for(most);
        let mut room = Room::new(0);
        let mut part = Part::default();
        loop {
            let wanted = size(most)
                .saturating_sub(part.memories.len())
                .saturating_add(1)
                .min(size(rows));
            let Some(batch) = merged.next(wanted)? else {
                return Ok(part);
            };
            for (item, conflict) in with_conflicts(shelves, batch)? {
                if part.memories.len() >= size(most) {
                    part.more = true;
                    return Ok(part);
                }
                let memory = excerpted(item.into_memory());
                let found = Found {
                    age_days: age_days(&memory, now),
                    memory,
                    conflict,
                };
                if !room.take(size_of(&found)) && !part.memories.is_empty() {
                    part.more = true;
                    part.truncated = true;
                    return Ok(part);
                }
                part.memories.push(found);
            }
        }
    }

    /// How many records to ask a shelf for at once, to return `most`: one more than these, to
    /// know whether there are more.
    fn rows_for(&self, most: u32) -> u32 {
        self.page_rows.min(most.saturating_add(1))
    }

    /// The taint and the shelves at or below it. The only way to a shelf.
    fn shelves(&self) -> Result<Readable<H::Shelf>, MemoryError> {
        let taint = self.host.taint();
        Ok((taint, visible_shelves(self.host.shelves()?, taint)))
    }
}

/// The taint of a session and the shelves it may read, highest first.
type Readable<S> = (Level, Vec<VisibleShelf<S>>);

/// The records whose place a save takes.
#[derive(Default)]
struct Replaced {
    ids: Vec<String>,
    /// One of them lies below the session's own level.
    below: bool,
}

/// A part of what there is.
#[derive(Default)]
struct Part {
    memories: Vec<Found>,
    more: bool,
    /// There are fewer than asked for, because they are large.
    truncated: bool,
}

/// How much of [`ANSWER_BYTES`] is left.
struct Room(usize);

impl Room {
    /// `other`: bytes that something else in the answer takes.
    fn new(other: usize) -> Self {
        Self(
            ANSWER_BYTES
                .saturating_sub(ENVELOPE_BYTES)
                .saturating_sub(other),
        )
    }

    /// False: it does not fit, and nothing behind it does.
    fn take(&mut self, bytes: usize) -> bool {
        match self.0.checked_sub(bytes) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => {
                self.0 = 0;
                false
            }
        }
    }
}

fn with_conflicts<S: Shelf, T: Candidate>(
    shelves: &[VisibleShelf<S>],
    batch: Vec<Seen<T>>,
) -> Result<impl Iterator<Item = (T, Option<Conflict>)>, MemoryError> {
    let seen: Vec<(usize, &str, Origin)> = batch
        .iter()
        .map(|seen| {
            let memory = seen.item.memory();
            (seen.rank, memory.key.as_str(), memory.origin)
        })
        .collect();
    let conflicts = shadow::conflicts(shelves, &seen)?;
    Ok(batch.into_iter().map(|seen| seen.item).zip(conflicts))
}

/// A record for an answer that lists several. The host was asked for an excerpt; one that
/// sends more must not fill the answer.
fn excerpted(mut memory: Memory) -> Memory {
    let whole = memory.content.len();
    let shown = answers::excerpt(&memory.content, EXCERPT_BYTES).len();
    memory.content.truncate(shown);
    memory.content_bytes = memory
        .content_bytes
        .max(u64::try_from(whole).unwrap_or(u64::MAX));
    memory
}

/// What of a query the host takes, and a notice if that is not all of it.
fn searchable(query: &str) -> (&str, Option<String>) {
    let head = answers::excerpt(query, QUERY_BYTES);
    if head.len() == query.len() {
        return (query, None);
    }
    let notice = format!(
        "The query is very long: only its first {} KiB were searched for. Ask with fewer words \
         for better results.",
        QUERY_BYTES / 1024
    );
    (head, Some(notice))
}

fn left_out_notice(terms: u32) -> Option<String> {
    (terms > 0).then(|| {
        format!(
            "The query has very many different words: {terms} of them were not searched for, \
             those that the most memories hold and what stands behind the first 8192. Ask with \
             fewer words for better results."
        )
    })
}

/// Some symbols are words of their own, so it is said only where nothing was found.
fn wordless_notice(query: &str) -> Option<String> {
    (!query.contains(char::is_alphanumeric)).then(|| {
        "The query has no letter or digit, and most other characters are not searched for. Ask \
         with words that stand beside them."
            .to_owned()
    })
}

/// Says which characters of what is saved nobody sees, though a model reads them. They are
/// kept, since some are a part of how a script is written.
fn unseen_notice<'a>(texts: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut unseen = BTreeSet::new();
    for text in texts {
        // What stands ahead of it, and how many tags in a row.
        let (mut before, mut tags) = (None, 0_usize);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let tag = matches!(c, '\u{e0020}'..='\u{e007f}');
            tags = match (before, tag) {
                // The flag of a part of a country: at most six, and the end.
                (Some('\u{1f3f4}'), true) => 1,
                (_, true) if tags > 0 => tags.saturating_add(1),
                _ => 0,
            };
            let hidden = match c {
                // Between words of scripts that part them so, and ahead of a file.
                '\u{200b}' => {
                    !before.is_some_and(parts_words)
                        && !rest.clone().next().is_some_and(parts_words)
                }
                '\u{feff}' => before.is_some(),
                '\u{202d}' | '\u{202e}' | '\u{2061}'..='\u{2064}' => true,
                '\u{e0000}'..='\u{e007f}' => !(1..=7).contains(&tags),
                _ => {
                    joins(c)
                        && before.is_some_and(joins)
                        && !(c == '\u{200d}' && before == Some('\u{fe0f}'))
                }
            };
            if hidden {
                unseen.insert(c);
            }
            before = Some(c);
        }
    }
    let first: Vec<String> = unseen
        .iter()
        .take(5)
        .map(|c| format!("U+{:04X}", u32::from(*c)))
        .collect();
    let more = if unseen.len() > first.len() {
        " and others"
    } else {
        ""
    };
    (!first.is_empty()).then(|| {
        format!(
            "It holds characters that nobody sees ({}{more}): they are kept, and people are shown \
             them as numbers. Unless the text needs them, save it without.",
            first.join(", ")
        )
    })
}

/// Whether a character is a joiner or selects a variant: two in a row are no part of a script.
fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a character is of a script without blanks: Thai, Lao, Burmese, Khmer.
fn parts_words(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

fn save_notices(draft: &Draft, receipt: &Receipt, below: bool) -> Vec<String> {
    let mut notices = Vec::new();
    if !classification::can_flow_to(receipt.level, classification::LOWEST) {
        notices.push(format!(
            "Sessions below {} will not see this memory.",
            classification::name(receipt.level)
        ));
    }
    if draft.source.is_none() {
        notices.push(
            "No source was given, so a later reader can't check where this comes from.".to_owned(),
        );
    }
    let texts = [
        Some(&draft.key),
        Some(&draft.content),
        draft.source.as_ref(),
    ];
    notices.extend(unseen_notice(
        texts.into_iter().flatten().chain(&draft.tags),
    ));
    match receipt.standing {
        Standing::Trusted if below => notices.push(format!(
            "Sessions below {} still see what it takes the place of.",
            classification::name(receipt.level)
        )),
        Standing::Trusted => {}
        Standing::Pending if draft.supersedes.is_empty() => notices.push(
            "It waits for a person: the version saved under this key is the person's own, which \
             stands and is what is read until the person accepts this one or saves it themselves. Tell them."
                .to_owned(),
        ),
        Standing::Pending => notices.push(
            "It waits for a person: what it would take the place of is the person's own, which \
             stands and is what is read until the person accepts this one or saves it themselves. Tell them."
                .to_owned(),
        ),
        Standing::Quarantined => notices.push(
            "It is kept apart, because it comes from a tool and not from a person: the reading \
             tools do not show it until the person accepts it or saves it themselves. Tell them."
                .to_owned(),
        ),
    }
    notices
}

/// What else is allowed than a key that nobody sees: a sentence, and what to do.
type Wanted = (&'static str, &'static str);

const DELETED: Wanted = (
    "Only a memory that memory_get finds can be deleted",
    "Check the key with memory_list or memory_search",
);
const CONFIRMED: Wanted = (
    "Only a memory that memory_get finds can be confirmed",
    "Check the key with memory_list or memory_search",
);
const REPLACED: Wanted = (
    "A memory takes the place only of one that memory_get finds",
    "Nothing was saved: check the key with memory_list or memory_search, or leave it out of \
     supersedes",
);

fn not_found(key: &str, (allowed, remedy): Wanted) -> MemoryError {
    MemoryError::NotFound(problem(
        format!("There is no memory with the key {key:?}"),
        allowed,
        remedy,
    ))
}

fn not_here(key: &str, own: Level, seen: Level) -> MemoryError {
    let (own, seen) = (classification::name(own), classification::name(seen));
    MemoryError::NoSuchRecordAtLevel(problem(
        format!("The memory {key:?} is {seen}, and this session is {own}"),
        format!("A session deletes on its own level only, which is {own} here"),
        format!(
            "Call memory_delete with hide_lower to hide the {seen} version from {own} sessions \
             up, or delete it in a session at {seen}"
        ),
    ))
}

/// A count of records as a length.
fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
