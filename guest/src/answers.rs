//! Answers as JSON: the names, the order of the members, dates and sizes.

use std::io;

use serde::{Serialize, Serializer};

use crate::classification;
use crate::contract::{
    Confirmed, Conflict, Deleted, Found, Hit, Instant, Listing, Memory, Past, Results, ReviewQueue,
    Saved, StatusReport, Timeline,
};
use crate::moment::{age_days, rfc3339};
use crate::provenance::{origin_name, outcome_name, standing_name};

/// The most bytes of JSON in an answer that lists records.
pub(crate) const ANSWER_BYTES: usize = 64 * 1024;
/// The most bytes of a record's content in an answer that lists records.
pub(crate) const EXCERPT_BYTES: usize = 1024;
/// The most bytes of a query that an answer repeats.
pub(crate) const QUERY_ECHO_BYTES: usize = 1024;
/// The most bytes of a snippet (`wit/types.wit`).
pub(crate) const SNIPPET_BYTES: usize = 240;
/// Kept free of records: the other members of the answer, a cursor (343 bytes for the
/// longest key) and up to five notices of at most 120 bytes.
pub(crate) const ENVELOPE_BYTES: usize = 1536;

/// At most the first `most` bytes of a text, cut between characters.
pub(crate) fn excerpt(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// How much room a text takes inside an answer.
pub(crate) fn text_size(text: &str) -> usize {
    size(&text)
}

/// How much room a record takes inside a list, with the comma.
pub(crate) fn found_size(found: &Found) -> usize {
    size(&Record::listed(found)).saturating_add(1)
}

/// How much room a record takes inside a review, with the comma.
pub(crate) fn reviewed_size(found: &Found) -> usize {
    size(&Record::reviewed(found)).saturating_add(1)
}

/// How much room a version takes inside a history, with the comma.
pub(crate) fn past_size(past: &Past, now: Instant) -> usize {
    size(&Record::past(past, now)).saturating_add(1)
}

/// How much room a hit takes inside a search's answer, with the comma.
pub(crate) fn hit_size(hit: &Hit, now: Instant) -> usize {
    size(&Record::hit(hit, now)).saturating_add(1)
}

/// The answer of `memory_save`.
pub(crate) fn save(saved: &Saved, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        saved: bool,
        outcome: &'a str,
        key: &'a str,
        classification: &'a str,
        origin: &'a str,
        standing: &'a str,
        version: u64,
        notices: Notices<'a>,
    }
    text(&Answer {
        saved: true,
        outcome: outcome_name(saved.outcome),
        key: &saved.key,
        classification: classification::name(saved.level),
        origin: origin_name(saved.origin),
        standing: standing_name(saved.standing),
        version: saved.version,
        notices: Notices(notices, &saved.notices),
    })
}

/// The answer of `memory_get`.
pub(crate) fn get(key: &str, found: Option<&Found>, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Absent<'a> {
        found: bool,
        key: &'a str,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    let notices = Notices(notices, &[]);
    match found {
        Some(found) => text(&Record {
            found: Some(true),
            notices,
            ..Record::of(&found.memory, found.conflict.as_ref(), found.age_days)
        }),
        None => text(&Absent {
            found: false,
            key,
            notices,
        }),
    }
}

/// The answer of `memory_list`.
pub(crate) fn list(listing: &Listing, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        memories: Vec<Record<'a>>,
        next_cursor: Option<&'a str>,
        truncated: bool,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        memories: listing.memories.iter().map(Record::listed).collect(),
        next_cursor: listing.next_cursor.as_deref(),
        truncated: listing.truncated,
        notices: Notices(notices, &[]),
    })
}

/// The answer of `memory_search`.
pub(crate) fn search(results: &Results, query: &str, now: Instant, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        results: Vec<Record<'a>>,
        query: &'a str,
        truncated: bool,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        results: results
            .hits
            .iter()
            .map(|hit| Record::hit(hit, now))
            .collect(),
        query: excerpt(query, QUERY_ECHO_BYTES),
        truncated: results.truncated,
        notices: Notices(notices, &results.notices),
    })
}

/// The answer of `memory_delete`.
pub(crate) fn delete(deleted: &Deleted, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        deleted: bool,
        key: &'a str,
        classification: &'a str,
        still_visible: Option<&'a str>,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        deleted: true,
        key: &deleted.key,
        classification: classification::name(deleted.level),
        still_visible: deleted.still_visible.map(classification::name),
        notices: Notices(notices, &deleted.notices),
    })
}

/// The answer of `memory_confirm`.
pub(crate) fn confirm(confirmed: &Confirmed, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        confirmed: bool,
        key: &'a str,
        classification: &'a str,
        confirmed_at: Date,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        confirmed: true,
        key: &confirmed.key,
        classification: classification::name(confirmed.level),
        confirmed_at: Date(confirmed.confirmed_at),
        notices: Notices(notices, &confirmed.notices),
    })
}

/// The answer of `memory_review`.
pub(crate) fn review(queue: &ReviewQueue, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        memories: Vec<Record<'a>>,
        more: bool,
        truncated: bool,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        memories: queue.memories.iter().map(Record::reviewed).collect(),
        more: queue.more,
        truncated: queue.truncated,
        notices: Notices(notices, &[]),
    })
}

/// The answer of `memory_history`.
pub(crate) fn history(timeline: &Timeline, now: Instant, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        key: &'a str,
        versions: Vec<Record<'a>>,
        truncated: bool,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        key: &timeline.key,
        versions: timeline
            .versions
            .iter()
            .map(|past| Record::past(past, now))
            .collect(),
        truncated: timeline.truncated,
        notices: Notices(notices, &[]),
    })
}

/// The answer of `memory_status`.
pub(crate) fn status(report: &StatusReport, notices: &[String]) -> String {
    #[derive(Serialize)]
    struct Tag<'a> {
        tag: &'a str,
        count: u64,
    }
    #[derive(Serialize)]
    struct Shelf<'a> {
        classification: &'a str,
        live: u64,
        pending: u64,
        quarantined: u64,
        unconfirmed: u32,
        tags: Vec<Tag<'a>>,
    }
    #[derive(Serialize)]
    struct Answer<'a> {
        session: &'a str,
        classification: &'a str,
        clearance: &'a str,
        origin: &'a str,
        shelves: Vec<Shelf<'a>>,
        #[serde(skip_serializing_if = "Notices::is_empty")]
        notices: Notices<'a>,
    }
    text(&Answer {
        session: &report.session,
        classification: classification::name(report.taint),
        clearance: classification::name(report.clearance),
        origin: origin_name(report.origin),
        shelves: report
            .shelves
            .iter()
            .map(|shelf| Shelf {
                classification: classification::name(shelf.level),
                live: shelf.counts.live,
                pending: shelf.counts.pending,
                quarantined: shelf.counts.quarantined,
                unconfirmed: shelf.unconfirmed,
                tags: shelf
                    .tags
                    .iter()
                    .map(|tag| Tag {
                        tag: &tag.tag,
                        count: tag.count,
                    })
                    .collect(),
            })
            .collect(),
        notices: Notices(notices, &[]),
    })
}

/// A record in any of the answers; what an answer does not have is left out.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<bool>,
    key: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_truncated: Option<bool>,
    classification: &'a str,
    tags: &'a [String],
    origin: &'a str,
    standing: &'a str,
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    version: u64,
    created_at: Date,
    updated_at: Date,
    confirmed_at: Option<Date>,
    expires_at: Option<Date>,
    age_days: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<Beneath<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_at: Option<Option<Date>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Notices::is_empty")]
    notices: Notices<'a>,
}

#[derive(Serialize)]
struct Beneath<'a> {
    classification: &'a str,
    origin: &'a str,
}

impl<'a> Record<'a> {
    fn of(memory: &'a Memory, conflict: Option<&Conflict>, age_days: u64) -> Self {
        Self {
            found: None,
            key: &memory.key,
            content: &memory.content,
            content_truncated: None,
            classification: classification::name(memory.level),
            tags: &memory.tags,
            origin: origin_name(memory.origin),
            standing: standing_name(memory.standing),
            source: memory.source.as_deref(),
            session: None,
            version: memory.version,
            created_at: Date(memory.created_at),
            updated_at: Date(memory.updated_at),
            confirmed_at: memory.confirmed_at.map(Date),
            expires_at: memory.expires_at.map(Date),
            age_days,
            score: None,
            snippet: None,
            conflict: conflict.map(|conflict| Beneath {
                classification: classification::name(conflict.level),
                origin: origin_name(conflict.origin),
            }),
            current: None,
            superseded_at: None,
            superseded_by: None,
            supersedes: None,
            notices: Notices(&[], &[]),
        }
    }

    fn listed(found: &'a Found) -> Self {
        Self {
            content_truncated: Some(is_excerpt(&found.memory)),
            ..Self::of(&found.memory, found.conflict.as_ref(), found.age_days)
        }
    }

    fn reviewed(found: &'a Found) -> Self {
        Self {
            session: Some(&found.memory.session),
            ..Self::listed(found)
        }
    }

    fn past(past: &'a Past, now: Instant) -> Self {
        Self {
            content_truncated: Some(is_excerpt(&past.memory)),
            current: Some(past.current),
            superseded_at: Some(past.memory.superseded_at.map(Date)),
            superseded_by: Some(past.superseded_by.as_deref()),
            supersedes: Some(&past.supersedes),
            ..Self::of(&past.memory, None, age_days(&past.memory, now))
        }
    }

    fn hit(hit: &'a Hit, now: Instant) -> Self {
        Self {
            content_truncated: Some(is_excerpt(&hit.memory)),
            score: Some(hit.score),
            snippet: Some(&hit.snippet),
            ..Self::of(
                &hit.memory,
                hit.conflict.as_ref(),
                age_days(&hit.memory, now),
            )
        }
    }
}

fn is_excerpt(memory: &Memory) -> bool {
    u64::try_from(memory.content.len()).is_ok_and(|shown| shown < memory.content_bytes)
}

/// RFC 3339 in UTC with milliseconds.
struct Date(Instant);

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&rfc3339(self.0))
    }
}

/// The toolbox's notices, then the tool's own.
struct Notices<'a>(&'a [String], &'a [String]);

impl Notices<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty() && self.1.is_empty()
    }
}

impl Serialize for Notices<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().chain(self.1))
    }
}

fn text(answer: &impl Serialize) -> String {
    // The types above have text keys and finite depth, so this can't fail; an empty object
    // would be refused by the output schema and so be noticed.
    serde_json::to_string(answer).unwrap_or_else(|_| "{}".to_owned())
}

fn size(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
