//! The contract, as code: what `bindgen!` makes of `wit/`, and the thin layer
//! that answers a component's imports from a [`Grant`].
//!
//! Nothing is decided here. Each import counts as a request, then the grant is
//! asked and its answer translated.

use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::error::{Error, ErrorKind};
use crate::grant::Grant;
use crate::storage::{self, HostDecided};
use crate::{clock, level, provenance};

mod generated {
    #![expect(
        missing_docs,
        reason = "generated from wit/, where every item is documented"
    )]

    wasmtime::component::bindgen!({
        path: "../wit",
        world: "memory-plugin",
        imports: { default: trappable },
        with: { "remora:memory/storage.shelf": super::ShelfHandle },
    });
}

pub use generated::exports::remora::memory::{toolbox, tools};
pub use generated::remora::memory::{session, storage as storage_import, types};
pub use generated::{MemoryPlugin, MemoryPluginPre};

/// What a component's shelf handle stands for. Only the host makes one, and only
/// for a level that the session may read.
#[derive(Debug)]
pub struct ShelfHandle {
    level: level::Level,
}

/// What the imports of one component instance work on: a view into whatever the
/// embedder keeps in its [`wasmtime::Store`].
#[derive(Debug)]
pub struct RemoraView<'a> {
    /// What this call may do.
    pub grant: &'a mut Grant,
    /// Where shelf handles are kept.
    pub table: &'a mut ResourceTable,
}

/// Names the view to wasmtime.
#[derive(Debug)]
pub struct Remora;

impl HasData for Remora {
    type Data<'a> = RemoraView<'a>;
}

/// Adds the imports of `remora:memory` to a linker.
///
/// `projection` finds the grant and the resource table in the embedder's own
/// store data. [`Plugin`](crate::Plugin) does this for embedders who need
/// nothing else in their store.
///
/// # Errors
/// When the linker has one of these names already.
pub fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    projection: fn(&mut T) -> RemoraView<'_>,
) -> wasmtime::Result<()> {
    types::add_to_linker::<T, Remora>(linker, projection)?;
    session::add_to_linker::<T, Remora>(linker, projection)?;
    storage_import::add_to_linker::<T, Remora>(linker, projection)
}

impl types::Host for RemoraView<'_> {}

impl session::Host for RemoraView<'_> {
    fn taint(&mut self) -> wasmtime::Result<types::Level> {
        self.grant.spend()?;
        Ok(self.grant.taint().into())
    }

    fn clearance(&mut self) -> wasmtime::Result<types::Level> {
        self.grant.spend()?;
        Ok(self.grant.clearance().into())
    }

    fn origin(&mut self) -> wasmtime::Result<types::Origin> {
        self.grant.spend()?;
        Ok(self.grant.origin().into())
    }

    fn name(&mut self) -> wasmtime::Result<String> {
        self.grant.spend()?;
        Ok(self.grant.session_name().to_owned())
    }

    fn now(&mut self) -> wasmtime::Result<types::Instant> {
        self.grant.spend()?;
        Ok(self.grant.now().millis())
    }
}

/// What an import gives: the outer failure ends the call, the inner one is the
/// component's to handle.
type Answer<T> = wasmtime::Result<Result<T, types::MemoryError>>;

impl RemoraView<'_> {
    fn shelf(&self, handle: &Resource<ShelfHandle>) -> wasmtime::Result<level::Level> {
        Ok(self.table.get(handle)?.level)
    }
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn answer<T, U>(result: Result<T, Error>, translate: impl FnOnce(T) -> U) -> Answer<U> {
    Ok(match result {
        Ok(value) => Ok(translate(value)),
        Err(error) => {
            if let Some(cause) = std::error::Error::source(&error) {
                tracing::warn!(cause = %crate::error::chain(cause), "{error}");
            }
            Err(error.into())
        }
    })
}

impl storage_import::HostShelf for RemoraView<'_> {
    fn level(&mut self, shelf: Resource<ShelfHandle>) -> wasmtime::Result<types::Level> {
        self.grant.spend()?;
        Ok(self.shelf(&shelf)?.into())
    }

    fn fetch(
        &mut self,
        shelf: Resource<ShelfHandle>,
        key: String,
    ) -> Answer<Option<storage_import::Entry>> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        answer(self.grant.fetch(level, &key), |entry| {
            entry.map(|entry| match entry {
                storage::Entry::Live(memory) => storage_import::Entry::Live(memory.into()),
                storage::Entry::Tombstone(origin) => {
                    storage_import::Entry::Tombstone(origin.into())
                }
            })
        })
    }

    fn search(
        &mut self,
        shelf: Resource<ShelfHandle>,
        text: String,
        after: u32,
        limit: u32,
    ) -> Answer<storage_import::Matches> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        let matches = self.grant.search(level, &text, size(after), size(limit));
        answer(matches, |matches| storage_import::Matches {
            items: matches
                .items
                .into_iter()
                .map(|found| storage_import::Match {
                    memory: found.memory.into(),
                    score: found.score,
                    snippet: found.snippet,
                })
                .collect(),
            more: matches.more,
            left_out: u32::try_from(matches.left_out).unwrap_or(u32::MAX),
        })
    }

    fn page(
        &mut self,
        shelf: Resource<ShelfHandle>,
        filter: storage_import::Filter,
        after: Option<String>,
        limit: u32,
    ) -> Answer<storage_import::Memories> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        let filter = storage::Filter {
            tags: filter.tags,
            match_all: filter.match_all,
            excerpt_bytes: size(filter.excerpt_bytes),
        };
        let memories = self
            .grant
            .page(level, &filter, after.as_deref(), size(limit));
        answer(memories, Into::into)
    }

    fn present(
        &mut self,
        shelf: Resource<ShelfHandle>,
        keys: Vec<String>,
    ) -> Answer<Vec<storage_import::Presence>> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        answer(self.grant.present(level, &keys), |presences| {
            presences
                .into_iter()
                .map(|presence| match presence {
                    storage::Presence::Absent => storage_import::Presence::Absent,
                    storage::Presence::Live(origin) => {
                        storage_import::Presence::Live(origin.into())
                    }
                    storage::Presence::Tombstone(origin) => {
                        storage_import::Presence::Tombstone(origin.into())
                    }
                })
                .collect()
        })
    }

    fn versions(
        &mut self,
        shelf: Resource<ShelfHandle>,
        key: String,
        before: Option<u64>,
        limit: u32,
    ) -> Answer<storage_import::Memories> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        let versions = self.grant.versions(level, &key, before, size(limit));
        answer(versions, Into::into)
    }

    fn edges(
        &mut self,
        shelf: Resource<ShelfHandle>,
        ids: Vec<String>,
    ) -> Answer<Vec<storage_import::Edge>> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        answer(self.grant.edges(level, &ids), |edges| {
            edges
                .into_iter()
                .map(|edge| storage_import::Edge {
                    old_id: edge.old_id,
                    new_id: edge.new_id,
                    old_key: edge.old_key,
                    new_key: edge.new_key,
                    at: edge.at.millis(),
                })
                .collect()
        })
    }

    fn stale(
        &mut self,
        shelf: Resource<ShelfHandle>,
        before: types::Instant,
        after: Option<storage_import::StalePosition>,
        limit: u32,
    ) -> Answer<storage_import::Memories> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        // No record is older or newer than what can be written, so the nearest
        // such moment asks for the same.
        let before = clock::Instant::from_millis_clamped(before);
        let after = after.map(|after| storage::StalePosition {
            checked_at: clock::Instant::from_millis_clamped(after.checked_at),
            id: after.id,
        });
        let stale = self.grant.stale(level, before, after.as_ref(), size(limit));
        answer(stale, Into::into)
    }

    fn used(
        &mut self,
        shelf: Resource<ShelfHandle>,
        after: u32,
        limit: u32,
        excerpt_bytes: u32,
    ) -> Answer<storage_import::Memories> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        let used = self
            .grant
            .used(level, size(after), size(limit), size(excerpt_bytes));
        answer(used, Into::into)
    }

    fn counts(&mut self, shelf: Resource<ShelfHandle>) -> Answer<storage_import::Counts> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        answer(self.grant.counts(level), |counts| storage_import::Counts {
            live: counts.live,
            pending: counts.pending,
            quarantined: counts.quarantined,
        })
    }

    fn tags(
        &mut self,
        shelf: Resource<ShelfHandle>,
        limit: u32,
    ) -> Answer<Vec<storage_import::TagCount>> {
        self.grant.spend()?;
        let level = self.shelf(&shelf)?;
        answer(self.grant.tags(level, size(limit)), |tags| {
            tags.into_iter()
                .map(|tag| storage_import::TagCount {
                    tag: tag.tag,
                    count: tag.count,
                })
                .collect()
        })
    }

    fn drop(&mut self, shelf: Resource<ShelfHandle>) -> wasmtime::Result<()> {
        self.table.delete(shelf)?;
        Ok(())
    }
}

impl storage_import::Host for RemoraView<'_> {
    fn shelves(&mut self) -> Answer<Vec<Resource<ShelfHandle>>> {
        self.grant.spend()?;
        let mut handles = Vec::new();
        for level in self.grant.readable() {
            handles.push(self.table.push(ShelfHandle { level })?);
        }
        Ok(Ok(handles))
    }

    fn put(&mut self, draft: storage_import::Draft) -> Answer<storage_import::Receipt> {
        self.grant.spend()?;
        let expires_at = match draft.expires_at.map(clock::Instant::from_millis) {
            Some(None) => {
                return Ok(Err(Error::invalid(
                    "The expiry lies outside the years 0 to 9999",
                    "It must lie ahead, within these years",
                    "Give an earlier time, or none",
                )
                .into()));
            }
            Some(instant) => instant,
            None => None,
        };
        let draft = storage::Draft {
            key: draft.key,
            content: draft.content,
            tags: draft.tags,
            source: draft.source,
            expires_at,
            supersedes: draft.supersedes,
        };
        answer(self.grant.put(&draft), |receipt| storage_import::Receipt {
            outcome: receipt.outcome.into(),
            id: receipt.id,
            level: receipt.level.into(),
            origin: receipt.origin.into(),
            standing: receipt.standing.into(),
            version: receipt.version,
        })
    }

    fn retire(&mut self, key: String, hide_lower: bool) -> Answer<Option<String>> {
        self.grant.spend()?;
        answer(self.grant.retire(&key, hide_lower), |id| id)
    }

    fn stamp(&mut self, id: String, source: Option<String>) -> Answer<types::Instant> {
        self.grant.spend()?;
        answer(
            self.grant.stamp(&id, source.as_deref()),
            clock::Instant::millis,
        )
    }

    fn used(&mut self, ids: Vec<String>) -> wasmtime::Result<()> {
        self.grant.spend()?;
        self.grant.record_use(&ids);
        Ok(())
    }

    fn note(&mut self, argument: String) -> Answer<()> {
        self.grant.spend()?;
        let known = HostDecided::ALL
            .into_iter()
            .find(|decided| decided.name() == argument);
        match known {
            Some(decided) => answer(self.grant.note_ignored(decided), |()| ()),
            None => Ok(Err(Error::invalid(
                "There is no such argument to note",
                "It is classification, level, taint or origin",
                "Name one of these",
            )
            .into())),
        }
    }
}

impl From<level::Level> for types::Level {
    fn from(level: level::Level) -> Self {
        match level {
            level::Level::Public => Self::Public,
            level::Level::Internal => Self::Internal,
            level::Level::Confidential => Self::Confidential,
            level::Level::Restricted => Self::Restricted,
        }
    }
}

impl From<types::Level> for level::Level {
    fn from(level: types::Level) -> Self {
        match level {
            types::Level::Public => Self::Public,
            types::Level::Internal => Self::Internal,
            types::Level::Confidential => Self::Confidential,
            types::Level::Restricted => Self::Restricted,
        }
    }
}

impl From<provenance::Origin> for types::Origin {
    fn from(origin: provenance::Origin) -> Self {
        match origin {
            provenance::Origin::User => Self::User,
            provenance::Origin::Agent => Self::Agent,
            provenance::Origin::Tool => Self::Tool,
        }
    }
}

impl From<provenance::Standing> for types::Standing {
    fn from(standing: provenance::Standing) -> Self {
        match standing {
            provenance::Standing::Trusted => Self::Trusted,
            provenance::Standing::Pending => Self::Pending,
            provenance::Standing::Quarantined => Self::Quarantined,
        }
    }
}

impl From<storage::Outcome> for types::Outcome {
    fn from(outcome: storage::Outcome) -> Self {
        match outcome {
            storage::Outcome::Created => Self::Created,
            storage::Outcome::Updated => Self::Updated,
            storage::Outcome::Unchanged => Self::Unchanged,
            storage::Outcome::Pending => Self::Pending,
            storage::Outcome::Quarantined => Self::Quarantined,
        }
    }
}

impl From<storage::Memory> for types::Memory {
    fn from(memory: storage::Memory) -> Self {
        Self {
            id: memory.id,
            key: memory.key,
            content: memory.content,
            content_bytes: memory.content_bytes,
            tags: memory.tags,
            level: memory.level.into(),
            origin: memory.origin.into(),
            standing: memory.standing.into(),
            source: memory.source,
            session: memory.session,
            version: memory.version,
            created_at: memory.created_at.millis(),
            updated_at: memory.updated_at.millis(),
            confirmed_at: memory.confirmed_at.map(clock::Instant::millis),
            expires_at: memory.expires_at.map(clock::Instant::millis),
            superseded_at: memory.superseded_at.map(clock::Instant::millis),
            deleted_at: memory.deleted_at.map(clock::Instant::millis),
        }
    }
}

impl From<storage::Memories> for storage_import::Memories {
    fn from(memories: storage::Memories) -> Self {
        Self {
            items: memories.items.into_iter().map(Into::into).collect(),
            more: memories.more,
        }
    }
}

impl From<Error> for types::MemoryError {
    fn from(error: Error) -> Self {
        let problem = types::Problem {
            what: error.what().to_owned(),
            allowed: error.allowed().to_owned(),
            remedy: error.remedy().to_owned(),
        };
        match error.kind() {
            ErrorKind::InvalidArgument => Self::InvalidArgument(problem),
            ErrorKind::NotFound => Self::NotFound(problem),
            ErrorKind::NoSuchRecordAtLevel => Self::NoSuchRecordAtLevel(problem),
            ErrorKind::TooLarge => Self::TooLarge(problem),
            ErrorKind::Refused => Self::Refused(problem),
            ErrorKind::Unavailable | ErrorKind::Plugin => Self::Unavailable(problem),
        }
    }
}

impl From<types::MemoryError> for Error {
    fn from(error: types::MemoryError) -> Self {
        let (kind, problem) = match error {
            types::MemoryError::InvalidArgument(p) => (ErrorKind::InvalidArgument, p),
            types::MemoryError::NotFound(p) => (ErrorKind::NotFound, p),
            types::MemoryError::NoSuchRecordAtLevel(p) => (ErrorKind::NoSuchRecordAtLevel, p),
            types::MemoryError::TooLarge(p) => (ErrorKind::TooLarge, p),
            types::MemoryError::Refused(p) => (ErrorKind::Refused, p),
            types::MemoryError::Unavailable(p) => (ErrorKind::Unavailable, p),
        };
        Self::new(kind, problem.what, problem.allowed, problem.remedy)
    }
}
