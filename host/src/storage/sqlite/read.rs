//! What a call may read.
//!
//! A record is served when its row says that it stands (believed, not
//! superseded, not deleted, not expired at the call's moment) and no edge in its
//! own file or in a higher one that the session sees hides it. Its seal is
//! checked before anything of it leaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::Connection;

use super::Inner;
use super::connection::Link;
use super::fault::Fault;
use super::layout::LevelFile;
use super::record::{Book, Record};
use super::schema::indexed;
use super::search::Ranking;
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::provenance::Standing;
use crate::storage::{
    Access, Counts, Draft, Edge, Entry, Filter, Matches, Memories, Memory, Notable, Presence,
    Receipt, Shelves, StalePosition, TagCount, limits,
};

/// What one call of one session may reach.
pub(super) struct SqliteShelves {
    pub(super) inner: Arc<Inner>,
    pub(super) access: Access,
    /// The call's moment, as files hold it.
    pub(super) now: String,
    /// The files that the session sees, its own first.
    shelves: Vec<Shelf>,
    pub(super) writer: Option<Link>,
    /// What the last search found, so that its later pages are of one piece.
    pub(super) ranking: Option<Ranking>,
    /// Whether this call could not write down what was used.
    pub(super) use_waits: bool,
}

/// One visible level.
pub(super) struct Shelf {
    pub(super) file: LevelFile,
    /// None until it is read, and while there is no file.
    reader: Option<Link>,
}

impl SqliteShelves {
    pub(super) fn new(inner: Arc<Inner>, access: Access) -> Self {
        let shelves = Level::readable_at(access.taint)
            .map(|level| Shelf {
                file: inner.layout.level(&access.agent, level),
                reader: None,
            })
            .collect();
        Self {
            inner,
            now: access.now.to_sql(),
            access,
            shelves,
            writer: None,
            ranking: None,
            use_waits: false,
        }
    }

    /// The most rows of a page, of those asked for.
    pub(super) fn rows(&self, asked: usize, most: usize) -> usize {
        let most = self
            .inner
            .options
            .page_rows
            .map_or(most, |rows| rows.min(most));
        asked.clamp(1, most.max(1))
    }

    /// The visible levels' files, the session's own first.
    pub(super) fn shelves(&self) -> &[Shelf] {
        &self.shelves
    }

    /// The shelf of a level, if the session sees it.
    pub(super) fn shelf(&self, level: Level) -> Result<&Shelf, Error> {
        self.shelves
            .iter()
            .find(|shelf| shelf.file.level == level)
            .ok_or_else(|| {
                Error::refused(
                    format!("The session does not see {level}"),
                    format!("It sees what may flow to {}", self.access.taint),
                    "Ask for one of its own shelves",
                )
            })
    }

    /// Opens the files of the visible levels that `wanted` names, where there
    /// are files.
    pub(super) fn open(&mut self, wanted: impl Fn(Level) -> bool) -> Result<(), Error> {
        for shelf in &mut self.shelves {
            if shelf.reader.is_none() && wanted(shelf.file.level) {
                let file = &shelf.file;
                shelf.reader = self
                    .inner
                    .reader(file, file.place(), Some(self.access.deadline))?;
            }
        }
        Ok(())
    }

    /// Opens what reading a level needs: its own file, and those of the higher
    /// visible levels, whose edges may hide its records.
    pub(super) fn open_upwards(&mut self, level: Level) -> Result<(), Error> {
        self.shelf(level)?;
        self.open(|other| can_flow_to(level, other))
    }

    /// Reads from a shelf. None where there is no file.
    pub(super) fn on<T>(
        &self,
        shelf: &Shelf,
        work: impl FnOnce(&Connection, &Book<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Error> {
        match &shelf.reader {
            None => Ok(None),
            Some(link) => link
                .run(|db| work(db, &self.inner.book(&shelf.file)))
                .map(Some),
        }
    }

    /// Whether an edge on a higher visible level hides a record of this one.
    pub(super) fn hidden_from_above(&self, level: Level, id: &str) -> Result<bool, Fault> {
        for shelf in &self.shelves {
            if shelf.file.level != level
                && can_flow_to(level, shelf.file.level)
                && self.on(shelf, |db, book| book.has_edge_from(db, id))? == Some(true)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a record of the level in `book` is served.
    pub(super) fn is_live(
        &self,
        db: &Connection,
        book: &Book<'_>,
        record: &Record,
    ) -> Result<bool, Fault> {
        Ok(record.stands(&self.now)
            && !book.has_edge_from(db, &record.id)?
            && !self.hidden_from_above(book.file.level, &record.id)?)
    }

    /// The live record under a key.
    pub(super) fn live(
        &self,
        db: &Connection,
        book: &Book<'_>,
        key: &str,
    ) -> Result<Option<Record>, Fault> {
        match book.indexed(db, key)? {
            Some(record) if self.is_live(db, book, &record)? => Ok(Some(record)),
            _ => Ok(None),
        }
    }

    /// The rows that the index holds and that are not live all the same: expired
    /// ones, and those that an edge hides.
    fn not_live(&self, db: &Connection, shelf: &Shelf) -> Result<BTreeSet<i64>, Fault> {
        let mut dead = BTreeSet::new();
        let mut statement = db.prepare_cached(concat!(
            "SELECT seq FROM record WHERE expires_at IS NOT NULL AND expires_at <= ?1 AND ",
            indexed!()
        ))?;
        let mut rows = statement.query([&self.now])?;
        while let Some(row) = rows.next()? {
            dead.insert(row.get(0)?);
        }
        let level = shelf.file.level;
        let mut find = db.prepare_cached(concat!(
            "SELECT seq FROM record WHERE id = ?1 AND ",
            indexed!()
        ))?;
        for above in &self.shelves {
            if !can_flow_to(level, above.file.level) {
                continue;
            }
            let ids = self.on(above, |db, _| {
                let mut statement =
                    db.prepare_cached("SELECT DISTINCT old_id FROM edge WHERE old_level = ?1")?;
                let ids = statement.query_map([level.name()], |row| row.get::<_, String>(0))?;
                Ok(ids.collect::<Result<Vec<_>, _>>()?)
            })?;
            for id in ids.unwrap_or_default() {
                let mut rows = find.query([id])?;
                if let Some(row) = rows.next()? {
                    dead.insert(row.get(0)?);
                }
            }
        }
        Ok(dead)
    }
}

impl Drop for SqliteShelves {
    fn drop(&mut self) {
        let readers = self
            .shelves
            .iter_mut()
            .filter_map(|shelf| shelf.reader.take());
        for link in readers.chain(self.writer.take()) {
            self.inner.pool.give_back(link);
        }
    }
}

impl Shelves for SqliteShelves {
    fn fetch(&mut self, level: Level, key: &str) -> Result<Option<Entry>, Error> {
        self.open_upwards(level)?;
        let entry = self.on(self.shelf(level)?, |db, book| {
            if let Some(record) = self.live(db, book, key)? {
                return Ok(Some(Entry::Live(self.memory(level, record, usize::MAX)?)));
            }
            Ok(match book.tombstone(db, key)? {
                Some(tombstone) => Some(Entry::Tombstone(tombstone.origin()?)),
                None => None,
            })
        })?;
        Ok(entry.flatten())
    }

    fn search(
        &mut self,
        level: Level,
        text: &str,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
        self.search_page(level, text, after, limit)
    }

    fn page(
        &mut self,
        level: Level,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Memories, Error> {
        if filter.tags.len() > limits::TAGS {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("The filter has {} tags", filter.tags.len()),
                format!("At most {} at once", limits::TAGS),
                "Ask for fewer",
            ));
        }
        self.open_upwards(level)?;
        let rows = self.rows(limit, limits::PAGE);
        let page = self.on(self.shelf(level)?, |db, book| {
            let mut page = Filling::new(rows);
            let mut statement = db.prepare_cached(&candidates(filter))?;
            let params =
                std::iter::once(after.unwrap_or("")).chain(filter.tags.iter().map(String::as_str));
            let mut found = statement.query(rusqlite::params_from_iter(params))?;
            while let Some(row) = found.next()? {
                let Some(record) = book.by_seq(db, row.get(1)?)? else {
                    continue;
                };
                if self.is_live(db, book, &record)?
                    && !page.add(self.memory(level, record, filter.excerpt_bytes)?)
                {
                    break;
                }
            }
            Ok(page.memories)
        })?;
        Ok(page.unwrap_or_default())
    }

    fn present(&mut self, level: Level, keys: &[String]) -> Result<Vec<Presence>, Error> {
        if keys.len() > limits::PRESENT {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{} keys are asked for", keys.len()),
                format!("At most {} at once", limits::PRESENT),
                "Ask for fewer",
            ));
        }
        self.open_upwards(level)?;
        let present = self.on(self.shelf(level)?, |db, book| {
            keys.iter()
                .map(|key| {
                    if let Some(record) = self.live(db, book, key)? {
                        return Ok(Presence::Live(record.origin()?));
                    }
                    Ok(match book.tombstone(db, key)? {
                        Some(tombstone) => Presence::Tombstone(tombstone.origin()?),
                        None => Presence::Absent,
                    })
                })
                .collect()
        })?;
        Ok(present.unwrap_or_else(|| vec![Presence::default(); keys.len()]))
    }

    fn versions(
        &mut self,
        level: Level,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.versions_page(level, key, before, limit)
    }

    fn edges(&mut self, level: Level, ids: &[String]) -> Result<Vec<Edge>, Error> {
        self.edges_page(level, ids)
    }

    fn stale(
        &mut self,
        level: Level,
        before: Instant,
        after: Option<&StalePosition>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.stale_page(level, before, after, limit)
    }

    fn used(
        &mut self,
        level: Level,
        after: usize,
        limit: usize,
        excerpt_bytes: usize,
    ) -> Result<Memories, Error> {
        self.used_page(level, after, limit, excerpt_bytes)
    }

    fn counts(&mut self, level: Level) -> Result<Counts, Error> {
        self.open_upwards(level)?;
        let shelf = self.shelf(level)?;
        let counts = self.on(shelf, |db, _| {
            let tx = db.unchecked_transaction()?;
            let all: i64 = tx
                .prepare_cached(concat!("SELECT count(*) FROM record WHERE ", indexed!()))?
                .query_row([], |row| row.get(0))?;
            let dead = self.not_live(&tx, shelf)?.len();
            let mut apart = tx.prepare_cached(
                "SELECT count(*) FROM record
                 WHERE standing = ?1 AND standing <> 'trusted' AND superseded_at IS NULL
                   AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)",
            )?;
            let mut apart = |standing: Standing| -> Result<u64, Fault> {
                let count: i64 = apart.query_row((standing.name(), &self.now), |row| row.get(0))?;
                Ok(u64::try_from(count).unwrap_or(0))
            };
            Ok(Counts {
                live: u64::try_from(all)
                    .unwrap_or(0)
                    .saturating_sub(u64::try_from(dead).unwrap_or(0)),
                pending: apart(Standing::Pending)?,
                quarantined: apart(Standing::Quarantined)?,
            })
        })?;
        Ok(counts.unwrap_or_default())
    }

    fn tags(&mut self, level: Level, limit: usize) -> Result<Vec<TagCount>, Error> {
        self.open_upwards(level)?;
        let limit = limit.min(limits::TAG_COUNTS);
        let shelf = self.shelf(level)?;
        let tags = self.on(shelf, |db, _| {
            let tx = db.unchecked_transaction()?;
            let dead = self.not_live(&tx, shelf)?;
            let mut tags: std::collections::BTreeMap<String, u64> = tx
                .prepare_cached("SELECT tag, count(*) FROM record_tag GROUP BY tag")?
                .query_map([], |row| {
                    Ok((
                        row.get(0)?,
                        u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                    ))
                })?
                .collect::<Result<_, _>>()?;
            let mut of = tx.prepare_cached("SELECT tag FROM record_tag WHERE seq = ?1")?;
            for seq in dead {
                let mut rows = of.query([seq])?;
                while let Some(row) = rows.next()? {
                    if let Some(count) = tags.get_mut(&row.get::<_, String>(0)?) {
                        *count = count.saturating_sub(1);
                    }
                }
            }
            let mut tags: Vec<TagCount> = tags
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(tag, count)| TagCount { tag, count })
                .collect();
            // Stable, so that equal counts stay in the order of their bytes.
            tags.sort_by_key(|tag| std::cmp::Reverse(tag.count));
            tags.truncate(limit);
            Ok(tags)
        })?;
        Ok(tags.unwrap_or_default())
    }

    fn put(&mut self, draft: &Draft) -> Result<Receipt, Error> {
        self.save(draft)
    }

    fn retire(&mut self, key: &str, hide_lower: bool) -> Result<Option<String>, Error> {
        self.delete(key, hide_lower)
    }

    fn stamp(&mut self, id: &str, source: Option<&str>) -> Result<Instant, Error> {
        self.confirm(id, source)
    }

    fn record_use(&mut self, ids: &[String]) {
        self.count_use(ids);
    }

    fn note(&mut self, notable: Notable) -> Result<(), Error> {
        self.append(notable)
    }
}

/// A page being filled.
pub(super) struct Filling {
    pub(super) memories: Memories,
    rows: usize,
    bytes: usize,
}

impl Filling {
    /// A page of at most so many rows.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            memories: Memories::default(),
            rows,
            bytes: 0,
        }
    }

    /// Adds one more. False: there was no room, and there is more than the page
    /// holds.
    pub(super) fn add(&mut self, memory: Memory) -> bool {
        let page = &mut self.memories;
        self.bytes = self.bytes.saturating_add(memory.content.len());
        let full = page.items.len() >= self.rows
            || (self.bytes > limits::PAGE_BYTES && !page.items.is_empty());
        if full {
            page.more = true;
        } else {
            page.items.push(memory);
        }
        !full
    }
}

/// The rows that a filter lets through, as key and row, in the order of the
/// keys. SQLite merges the tags' lists as it goes, so a page reads little more
/// than its own rows.
pub(super) fn candidates(filter: &Filter) -> String {
    const ALL: &str = concat!(
        "SELECT key, seq FROM record WHERE key > ?1 AND ",
        indexed!(),
        " ORDER BY key"
    );
    if filter.tags.is_empty() {
        return ALL.to_owned();
    }
    let parts: Vec<String> = (0..filter.tags.len())
        .map(|i| {
            let parameter = i.saturating_add(2);
            format!("SELECT key, seq FROM record_tag WHERE tag = ?{parameter} AND key > ?1")
        })
        .collect();
    let join = if filter.match_all {
        " INTERSECT "
    } else {
        " UNION "
    };
    format!("{} ORDER BY 1, 2", parts.join(join))
}
