//! What the policy needs of a host, as two small traits: the glue implements them with
//! the component's imports, tests with a store in memory.

use crate::contract::{
    Counts, Draft, Edge, Entry, Filter, Instant, Level, Matches, Memories, MemoryError, Origin,
    Presence, Receipt, StalePosition, TagCount,
};

/// One level's records, opened for reading (`storage.shelf`).
pub trait Shelf {
    /// The level of the shelf.
    fn level(&self) -> Level;

    /// The live version saved under exactly this key, or its tombstone.
    fn fetch(&self, key: &str) -> Result<Option<Entry>, MemoryError>;

    /// Matches from position `after` on, best first; at most `limit`, maybe fewer.
    fn search(&self, text: &str, after: u32, limit: u32) -> Result<Matches, MemoryError>;

    /// Live records behind the key `after`, by the bytes of the key; at most `limit`, maybe
    /// fewer.
    fn page(
        &self,
        filter: &Filter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Memories, MemoryError>;

    /// What the shelf shows of each key, in the order asked; at most 500 keys.
    fn present(&self, keys: &[String]) -> Result<Vec<Presence>, MemoryError>;

    /// The versions of a key that a history shows, newest first, older than `before`; at
    /// most `limit`, maybe fewer.
    fn versions(&self, key: &str, before: Option<u64>, limit: u32)
    -> Result<Memories, MemoryError>;

    /// The edges kept here that touch any of these records; at most 500 ids.
    fn edges(&self, ids: &[String]) -> Result<Vec<Edge>, MemoryError>;

    /// Live records last confirmed, or else saved, before `before`, behind `after`: the
    /// longest ago first, then by id; at most `limit`, maybe fewer.
    fn stale(
        &self,
        before: Instant,
        after: Option<&StalePosition>,
        limit: u32,
    ) -> Result<Memories, MemoryError>;

    /// Live records that the session's level used, from position `after` on, the most used
    /// first; at most `limit`, maybe fewer.
    fn used(&self, after: u32, limit: u32, excerpt_bytes: u32) -> Result<Memories, MemoryError>;

    /// How many records there are.
    fn counts(&self) -> Result<Counts, MemoryError>;

    /// The tags of live records, the most used first; at most `limit`.
    fn tags(&self, limit: u32) -> Result<Vec<TagCount>, MemoryError>;
}

/// The session and the store of the call being served (`session` and `storage`).
pub trait Host {
    /// What [`Host::shelves`] hands out.
    type Shelf: Shelf;

    /// The session's level.
    fn taint(&self) -> Level;

    /// The most that the session's audience may see.
    fn clearance(&self) -> Level;

    /// Who the words of this session come from.
    fn origin(&self) -> Origin;

    /// The session's name.
    fn name(&self) -> String;

    /// The moment of the call; the same throughout it.
    fn now(&self) -> Instant;

    /// The shelves that the session may read, says the host.
    fn shelves(&self) -> Result<Vec<Self::Shelf>, MemoryError>;

    /// Saves on the session's own level.
    fn put(&self, draft: &Draft) -> Result<Receipt, MemoryError>;

    /// Deletes on the session's own level. None: no live record had that key.
    fn retire(&self, key: &str, hide_lower: bool) -> Result<Option<String>, MemoryError>;

    /// Says that a visible live record is still true. Answers with the moment.
    fn stamp(&self, id: &str, source: Option<&str>) -> Result<Instant, MemoryError>;

    /// Says that these records were given to the caller; at most 500 ids.
    fn used(&self, ids: &[String]);

    /// Writes to the audit trail that an argument was ignored.
    fn note(&self, argument: &str) -> Result<(), MemoryError>;
}
