//! What the host asks of a store, with no word of how it is kept.
//!
//! [`StorageProvider`] is the seam: SQLite stands behind it by default
//! ([`SqliteStorage`]), and another database can. It has two sides. [`Shelves`]
//! is what one call of one session may do with records; [`ControlPlane`] keeps
//! the sessions themselves, and is never reachable from a plugin.

use std::time::Instant as Deadline;

use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::provenance::{Origin, Standing};

pub mod sqlite;

pub use sqlite::SqliteStorage;

/// The bounds of what is kept. Past one is an error that names it.
pub mod limits {
    /// Bytes of a key.
    pub const KEY_BYTES: usize = 256;
    /// Bytes of content: 256 KiB.
    pub const CONTENT_BYTES: usize = 256 * 1024;
    /// Tags of one record.
    pub const TAGS: usize = 32;
    /// Characters of one tag.
    pub const TAG_CHARS: usize = 64;
    /// Bytes of a source: 1 KiB.
    pub const SOURCE_BYTES: usize = 1024;
    /// Records that one save may supersede.
    pub const SUPERSEDES: usize = 100;
    /// Bytes of a session's or an agent's name.
    pub const NAME_BYTES: usize = 64;
    /// Records of one page.
    pub const PAGE: usize = 200;
    /// Matches of one page.
    pub const MATCHES: usize = 100;
    /// Keys of one question whether they are present.
    pub const PRESENT: usize = 500;
    /// Tags of one answer.
    pub const TAG_COUNTS: usize = 500;
    /// Ids of one question for edges.
    pub const EDGE_IDS: usize = 500;
    /// Ids of records that one call says it was given. More are passed over.
    pub const USED_IDS: usize = 500;
    /// Bytes of content in one page: what crosses into a guest at once.
    pub const PAGE_BYTES: usize = 1024 * 1024;
    /// Bytes of an excerpt in a match.
    pub const EXCERPT_BYTES: usize = 1024;
    /// Bytes of a snippet.
    pub const SNIPPET_BYTES: usize = 240;
    /// Bytes of the words of one search.
    pub const QUERY_BYTES: usize = 256 * 1024;
    /// Different terms of one search that are scored.
    pub const QUERY_TERMS: usize = crate::search::query::TERMS;
}

/// One version of one memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Random, unique in the store, never reused: 32 hexadecimal digits.
    pub id: String,
    /// What it is saved under.
    pub key: String,
    /// Its words, or the first of them where the call says so.
    pub content: String,
    /// How many bytes the whole content has.
    pub content_bytes: u64,
    /// Sorted, without repeats.
    pub tags: Vec<String>,
    /// The level of the file it stands in.
    pub level: Level,
    /// Who its words come from.
    pub origin: Origin,
    /// Whether it is believed.
    pub standing: Standing,
    /// Where the caller said the words come from.
    pub source: Option<String>,
    /// The session that saved it.
    pub session: String,
    /// Counts the versions of a key on its level from 1.
    pub version: u64,
    /// When the first version of this run of versions was saved.
    pub created_at: Instant,
    /// When this version was saved.
    pub updated_at: Instant,
    /// When somebody last said that it is still true.
    pub confirmed_at: Option<Instant>,
    /// From then on it is as if it had never been saved.
    pub expires_at: Option<Instant>,
    /// When something newer took its place.
    pub superseded_at: Option<Instant>,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

/// What stands under a key.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it nearly always is the large one"
)]
pub enum Entry {
    /// The live version, whole.
    Live(Memory),
    /// Deleted by a session of that origin, so that versions of lower levels are
    /// hidden too, but for more trusted ones.
    Tombstone(Origin),
}

/// What a shelf shows of a key, without its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Nothing.
    #[default]
    Absent,
    /// A live record of that origin.
    Live(Origin),
    /// See [`Entry::Tombstone`].
    Tombstone(Origin),
}

/// Which records a page lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Labels, compared whole. None: every record.
    pub tags: Vec<String>,
    /// Every tag must be there, rather than any.
    pub match_all: bool,
    /// The most bytes of content to return with a record.
    pub excerpt_bytes: usize,
}

/// A part of a shelf, in the order of the key's bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memories {
    /// At most [`limits::PAGE`], and [`limits::PAGE_BYTES`] of content.
    pub items: Vec<Memory>,
    /// There is more behind the last.
    pub more: bool,
}

/// A record that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Its content is an excerpt of at most [`limits::EXCERPT_BYTES`].
    pub memory: Memory,
    /// Finite and above zero: BM25 over words and grams, and far more where the
    /// query names the key.
    pub score: f64,
    /// The part of the content that matched, at most [`limits::SNIPPET_BYTES`].
    pub snippet: String,
}

/// A part of a shelf's matches: by score from high to low, then by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matches {
    /// At most [`limits::MATCHES`].
    pub items: Vec<Match>,
    /// There is more behind the last.
    pub more: bool,
    /// How many different terms of the query were left out, because it has so
    /// many: those that the most records hold.
    pub left_out: usize,
}

/// That a record took another's place. Kept on the shelf of the newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The id of the record whose place was taken.
    pub old_id: String,
    /// The id of the record that took it. That record may be gone.
    pub new_id: String,
    /// The key of the older one, while a history shows it.
    pub old_key: Option<String>,
    /// The key of the newer one, while a history shows it.
    pub new_key: Option<String>,
    /// When.
    pub at: Instant,
}

/// A place in the order in which records are to be checked again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StalePosition {
    /// When the record was confirmed, or else saved.
    pub checked_at: Instant,
    /// Its id.
    pub id: String,
}

/// How many records of each kind a shelf holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Served now.
    pub live: u64,
    /// Waiting for a person.
    pub pending: u64,
    /// Kept apart.
    pub quarantined: u64,
}

/// How many live records carry a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag.
    pub tag: String,
    /// How many.
    pub count: u64,
}

/// What to save.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Unicode NFC, trimmed: see [`limits::KEY_BYTES`].
    pub key: String,
    /// See [`limits::CONTENT_BYTES`].
    pub content: String,
    /// See [`limits::TAGS`].
    pub tags: Vec<String>,
    /// See [`limits::SOURCE_BYTES`].
    pub source: Option<String>,
    /// Must lie ahead.
    pub expires_at: Option<Instant>,
    /// Ids of the visible records whose place it takes.
    pub supersedes: Vec<String>,
}

/// What a save did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The key had no live version on this level.
    Created,
    /// A new version; the one before is superseded.
    Updated,
    /// The same content and tags were already there.
    Unchanged,
    /// Stored, but waits for a person: what it would replace is more trusted.
    Pending,
    /// Stored, but kept apart: it comes from outside.
    Quarantined,
}

/// What was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// What the save did.
    pub outcome: Outcome,
    /// The id of the record that now holds these words.
    pub id: String,
    /// Its level.
    pub level: Level,
    /// Its origin.
    pub origin: Origin,
    /// Its standing.
    pub standing: Standing,
    /// Its version.
    pub version: u64,
}

/// For whom a call reads and writes, as it was when the call began.
#[derive(Clone, Debug)]
pub struct Access {
    /// The namespace.
    pub agent: String,
    /// The session's name, kept with what it writes.
    pub session: String,
    /// The session's level: the ceiling of its reading, the place of its writing.
    pub taint: Level,
    /// The session's origin.
    pub origin: Origin,
    /// None, or why the session may not write.
    pub read_only: Option<String>,
    /// The level whose audit trail hears of what is noted or refused: the taint,
    /// or the highest level that the session has observed above its clearance,
    /// since from then on all it does may tell of that.
    pub trail: Level,
    /// The moment of the call.
    pub now: Instant,
    /// When whatever is still running is broken off.
    pub deadline: Deadline,
}

/// Something worth a line in the audit trail besides the writes, which keep
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notable {
    /// The caller passed an argument that only the host decides.
    ArgumentIgnored(HostDecided),
    /// A write was refused by policy.
    WriteRefused,
    /// A session that the control plane does not keep rose to this level.
    Raised,
    /// A session that the control plane does not keep observed this level,
    /// which is above its clearance.
    RaisedAboveClearance,
}

/// The arguments that only the host decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDecided {
    /// `classification`
    Classification,
    /// `level`
    Level,
    /// `taint`
    Taint,
    /// `origin`
    Origin,
}

impl HostDecided {
    /// All, in the order in which notices name them.
    pub const ALL: [Self; 4] = [Self::Classification, Self::Level, Self::Taint, Self::Origin];

    /// The argument's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Level => "level",
            Self::Taint => "taint",
            Self::Origin => "origin",
        }
    }
}

/// What one call of one session may do with records.
///
/// Reading takes a level because the caller (the shelf capability) owns that
/// choice; an implementation refuses one that can't flow to the access's taint.
/// Writing takes none: it is always at the taint. No transaction outlives a
/// method.
pub trait Shelves: Send {
    /// The live version under exactly this key, or its tombstone.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when the level can't be read.
    fn fetch(&mut self, level: Level, key: &str) -> Result<Option<Entry>, Error>;

    /// Matches of any word of `text` from position `after` on, scored over the
    /// statistics of all levels up to the taint. Of more different terms than
    /// [`limits::QUERY_TERMS`] the rarest are scored.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] past [`limits::QUERY_BYTES`];
    /// [`ErrorKind::Unavailable`].
    fn search(
        &mut self,
        level: Level,
        text: &str,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error>;

    /// Live records whose key sorts behind `after`.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn page(
        &mut self,
        level: Level,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Memories, Error>;

    /// What the level shows of each key, in the order asked.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] past [`limits::PRESENT`];
    /// [`ErrorKind::Unavailable`].
    fn present(&mut self, level: Level, keys: &[String]) -> Result<Vec<Presence>, Error>;

    /// The versions of a key that a history shows: neither deleted, expired nor
    /// kept apart. Newest first, those older than `before`. Each is whole, and
    /// says when its place was taken as far as the access can see.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn versions(
        &mut self,
        level: Level,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Memories, Error>;

    /// The edges kept on the level in which any of these ids is the older or the
    /// newer one, by their moment and then their ids.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] past [`limits::EDGE_IDS`];
    /// [`ErrorKind::Unavailable`].
    fn edges(&mut self, level: Level, ids: &[String]) -> Result<Vec<Edge>, Error>;

    /// Live records last confirmed, or else saved, before `before`: the longest
    /// ago first, then by id. Confirmations on every level up to the taint count.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn stale(
        &mut self,
        level: Level,
        before: Instant,
        after: Option<&StalePosition>,
        limit: usize,
    ) -> Result<Memories, Error>;

    /// Live records of the level by how often they were used from the taint, the
    /// most used first, then by key. `after` says how many to pass over; each has
    /// at most `excerpt_bytes` of content.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn used(
        &mut self,
        level: Level,
        after: usize,
        limit: usize,
        excerpt_bytes: usize,
    ) -> Result<Memories, Error>;

    /// How many records there are.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn counts(&mut self, level: Level) -> Result<Counts, Error>;

    /// The most used tags of live records.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn tags(&mut self, level: Level, limit: usize) -> Result<Vec<TagCount>, Error>;

    /// Saves at the taint: record, index and audit event in one transaction,
    /// durable when it returns.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] and [`ErrorKind::TooLarge`] for a draft
    /// outside the bounds, [`ErrorKind::NotFound`] for an id in `supersedes`
    /// that is not visible, [`ErrorKind::Refused`] where the session may not
    /// write, [`ErrorKind::Unavailable`].
    fn put(&mut self, draft: &Draft) -> Result<Receipt, Error>;

    /// Deletes softly at the taint, with a tombstone where `hide_lower`. None
    /// when nothing live stood there.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] where the session may not write, or what would
    /// be deleted or hidden is more trusted than the session;
    /// [`ErrorKind::Unavailable`].
    fn retire(&mut self, key: &str, hide_lower: bool) -> Result<Option<String>, Error>;

    /// Says that a visible live record is still true: a stamp at the taint,
    /// whichever level the record is on. Its moment is the call's. Durable when
    /// it returns.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an id that is not visible,
    /// [`ErrorKind::TooLarge`] for a source past its bound,
    /// [`ErrorKind::Refused`] where the session may not write or speaks with a
    /// tool's words, [`ErrorKind::Unavailable`].
    fn stamp(&mut self, id: &str, source: Option<&str>) -> Result<Instant, Error>;

    /// Counts records that this access read as used, at the taint. Counts are
    /// written in batches and may be lost; nothing else ever comes of it.
    fn record_use(&mut self, ids: &[String]);

    /// Writes a line to the audit trail at the taint.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn note(&mut self, notable: Notable) -> Result<(), Error>;
}

/// A session as the control plane keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Unique in the store.
    pub name: String,
    /// The namespace it is bound to.
    pub agent: String,
    /// The high-water mark of what it has observed. Only rises.
    pub taint: Level,
    /// What its audience may see. Fixed when it is made.
    pub clearance: Level,
    /// Only falls.
    pub origin: Origin,
    /// The highest level observed above the clearance, if any: it unlocks
    /// nothing and ends the session's writing.
    pub observed: Option<Level>,
    /// When it was made.
    pub created_at: Instant,
    /// When it last changed.
    pub updated_at: Instant,
}

impl SessionRow {
    /// What the row becomes when the session has observed `level`: the ratchet.
    /// Taint rises up to the clearance and never falls; above the clearance it
    /// stays, and the observation is recorded.
    #[must_use]
    pub fn having_observed(&self, level: Level, now: Instant) -> Self {
        let mut row = self.clone();
        if can_flow_to(level, row.clearance) {
            row.taint = row.taint.join(level);
        } else {
            row.observed = Some(row.observed.map_or(level, |seen| seen.join(level)));
        }
        if row != *self {
            row.updated_at = now;
        }
        row
    }

    /// The level whose audit trail hears of what the session does at `level`: that
    /// one, or what it has observed above its clearance, which all that it does
    /// from then on may tell of.
    #[must_use]
    pub fn trail(&self, level: Level) -> Level {
        self.observed.map_or(level, |observed| observed.join(level))
    }

    /// What the row becomes when the session has heard words of `origin`.
    #[must_use]
    pub fn having_heard(&self, origin: Origin, now: Instant) -> Self {
        let mut row = self.clone();
        row.origin = row.origin.meet(origin);
        if row != *self {
            row.updated_at = now;
        }
        row
    }
}

/// What a new session is.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// At most [`limits::NAME_BYTES`].
    pub name: String,
    /// The namespace.
    pub agent: String,
    /// The most that its audience may see.
    pub clearance: Level,
    /// Who its words come from.
    pub origin: Origin,
}

/// Keeps the sessions. A row is sealed; one that fails its seal is an error, and
/// an error means that the session's calls are refused.
pub trait ControlPlane: Send + Sync {
    /// Succeeds when the control plane can be read at all.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn check(&self) -> Result<(), Error>;

    /// The session of that name as it is now.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn load(&self, name: &str) -> Result<Option<SessionRow>, Error>;

    /// Makes a session at PUBLIC, or returns the one that has the name already:
    /// of several processes that make it at once, one does. The flag says
    /// whether this call made it.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn create(&self, new: &NewSession, now: Instant) -> Result<(SessionRow, bool), Error>;

    /// Raises a session's taint to at least `level`; above the clearance it
    /// records the observation instead. Durable when it returns, and written to
    /// the audit trail of `level` before: without its line nothing is raised.
    /// Returns the row as it is then.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for no such session; [`ErrorKind::Unavailable`].
    fn raise(&self, name: &str, level: Level, now: Instant) -> Result<SessionRow, Error>;

    /// Lowers a session's origin to at most `origin`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for no such session; [`ErrorKind::Unavailable`].
    fn lower_origin(&self, name: &str, origin: Origin, now: Instant) -> Result<SessionRow, Error>;

    /// Every session, by name.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn list(&self) -> Result<Vec<SessionRow>, Error>;
}

/// A line of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The level of the file it stands in.
    pub level: Level,
    /// Counts the events of a file from 1, without gaps.
    pub number: u64,
    /// When it happened.
    pub at: Instant,
    /// What happened: `save`, `delete`, `confirm`, `argument-ignored`, `write-refused`, `raise`…
    pub kind: String,
    /// By which session.
    pub session: String,
    /// The session's origin.
    pub origin: Origin,
    /// The record it is about.
    pub record: Option<String>,
    /// The key of that record, where the record still stands. Joined when
    /// listing: the event itself holds no words.
    pub key: Option<String>,
    /// More, from a fixed set of words.
    pub detail: Option<String>,
}

/// A store: where records and sessions are kept.
pub trait StorageProvider: Send + Sync {
    /// Opens what one call may reach.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    fn open(&self, access: Access) -> Result<Box<dyn Shelves>, Error>;

    /// The sessions.
    fn control(&self) -> &dyn ControlPlane;

    /// The audit trail of one agent's level, oldest first, after checking that
    /// each line follows from the one before.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], also for a trail that was altered.
    fn events(&self, agent: &str, level: Level) -> Result<Vec<Event>, Error>;

    /// Where the store is, for people.
    fn location(&self) -> String;
}

/// Checks the bounds of a draft, whatever the guest did.
///
/// # Errors
/// [`ErrorKind::TooLarge`] or [`ErrorKind::InvalidArgument`].
pub fn check_draft(draft: &Draft, now: Instant) -> Result<(), Error> {
    check_key(&draft.key)?;
    let too_large = |what: String, allowed: String| {
        Err(Error::new(
            ErrorKind::TooLarge,
            what,
            allowed,
            "Save less, or split it",
        ))
    };
    if draft.content.is_empty() {
        return Err(Error::invalid(
            "The content is empty",
            "Content is 1 byte to 256 KiB of text",
            "Say what to remember",
        ));
    }
    if draft.content.len() > limits::CONTENT_BYTES {
        return too_large(
            format!("The content has {} bytes", draft.content.len()),
            format!("At most {} (256 KiB) are kept", limits::CONTENT_BYTES),
        );
    }
    if draft.tags.len() > limits::TAGS {
        return too_large(
            format!("There are {} tags", draft.tags.len()),
            format!("A memory has at most {}", limits::TAGS),
        );
    }
    for tag in &draft.tags {
        let chars = tag.chars().count();
        if chars > limits::TAG_CHARS {
            return too_large(
                format!("A tag has {chars} characters"),
                format!("At most {} are allowed", limits::TAG_CHARS),
            );
        }
        if tag.is_empty() || tag.chars().any(char::is_control) {
            return Err(Error::invalid(
                "A tag is empty or holds control characters",
                "A tag is 1 to 64 characters of text",
                "Leave it out or correct it",
            ));
        }
    }
    if !draft.tags.is_sorted_by(|a, b| a < b) {
        return Err(Error::invalid(
            "The tags are not sorted or repeat themselves",
            "A plugin passes tags sorted by their bytes, each once",
            "Sort them",
        ));
    }
    check_source(draft.source.as_deref())?;
    if draft.supersedes.len() > limits::SUPERSEDES {
        return too_large(
            format!("The save supersedes {} memories", draft.supersedes.len()),
            format!("At most {} at once", limits::SUPERSEDES),
        );
    }
    if draft.expires_at.is_some_and(|at| at <= now) {
        return Err(Error::invalid(
            "The expiry lies in the past",
            format!("It must lie after {now}"),
            "Give a later time, or none",
        ));
    }
    Ok(())
}

/// Checks the bounds of a source.
///
/// # Errors
/// [`ErrorKind::TooLarge`].
pub fn check_source(source: Option<&str>) -> Result<(), Error> {
    match source {
        Some(source) if source.len() > limits::SOURCE_BYTES => Err(Error::new(
            ErrorKind::TooLarge,
            format!("The source has {} bytes", source.len()),
            format!("At most {} (1 KiB) are kept", limits::SOURCE_BYTES),
            "Give a shorter one",
        )),
        _ => Ok(()),
    }
}

/// Checks that a key is one that can be kept.
///
/// # Errors
/// [`ErrorKind::TooLarge`] or [`ErrorKind::InvalidArgument`].
pub fn check_key(key: &str) -> Result<(), Error> {
    if key.len() > limits::KEY_BYTES {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("The key has {} bytes", key.len()),
            format!("A key has at most {}", limits::KEY_BYTES),
            "Choose a shorter one",
        ));
    }
    if key.is_empty()
        || key.trim() != key
        || key.chars().any(char::is_control)
        || !unicode_normalization::is_nfc(key)
    {
        return Err(Error::invalid(
            "The key is empty, has blanks around it, holds control characters or is not in Unicode NFC",
            "A key is 1 to 256 bytes of trimmed NFC text",
            "Choose another one",
        ));
    }
    Ok(())
}

/// Checks that a session's or an agent's name is one that can be kept. `kind`
/// says which, for the error.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`].
pub fn check_name(kind: &str, name: &str) -> Result<(), Error> {
    if name.is_empty()
        || name.len() > limits::NAME_BYTES
        || name.trim() != name
        || name.chars().any(char::is_control)
        || !unicode_normalization::is_nfc(name)
    {
        let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        return Err(Error::invalid(
            format!(
                "\"{}\" can't be the name of {article} {kind}",
                name.escape_debug()
            ),
            format!(
                "A name is 1 to {} bytes of Unicode NFC text without control characters or blanks around it",
                limits::NAME_BYTES
            ),
            "Choose another one",
        ));
    }
    Ok(())
}
