//! What is to be checked again: the longest unconfirmed first.
//!
//! A record's place in the queue is when it was confirmed, or else saved; and a
//! confirmation may be on any visible level above it. So the queue is merged of
//! several orders that files keep: that of the records themselves, and those of
//! the latest stamps on each level above. A record is taken where it stands by
//! all that the session sees, and passed over elsewhere.

use rusqlite::{Connection, OptionalExtension as _};

use super::fault::Fault;
use super::read::{Filling, SqliteShelves};
use super::record::Book;
use super::schema::indexed;
use crate::clock::Instant;
use crate::error::Error;
use crate::level::{Level, can_flow_to};
use crate::storage::{Memories, StalePosition, limits};

/// Records as they were saved and confirmed on their own level: those of the same
/// moment as ?1 behind the id ?2, then those of later moments. In two, since an
/// index on an expression serves no comparison of pairs.
pub(super) const BY_RECORD: [&str; 2] = [
    concat!(
        "SELECT id, confirmed_at, updated_at FROM record
         WHERE coalesce(confirmed_at, updated_at) = ?1 AND id > ?2 AND ?1 < ?3
           AND (expires_at IS NULL OR expires_at > ?4) AND ",
        indexed!(),
        " ORDER BY id"
    ),
    concat!(
        "SELECT id, confirmed_at, updated_at FROM record
         WHERE coalesce(confirmed_at, updated_at) > ?1 AND coalesce(confirmed_at, updated_at) < ?3
           AND (expires_at IS NULL OR expires_at > ?4) AND ",
        indexed!(),
        " ORDER BY coalesce(confirmed_at, updated_at), id"
    ),
];

/// Records of a lower level as they were confirmed from here.
pub(super) const BY_STAMP: &str = "SELECT at, record_id FROM stamp
     WHERE latest = 1 AND record_level = ?1 AND (at, record_id) > (?2, ?3) AND at < ?4
     ORDER BY at, record_id";

/// A place in the queue: a moment as files hold it, and an id.
type Position = (String, String);

/// The part of the queue that is asked for.
struct Window {
    after: Position,
    before: String,
    most: usize,
}

impl SqliteShelves {
    pub(super) fn stale_page(
        &mut self,
        level: Level,
        before: Instant,
        after: Option<&StalePosition>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.open_upwards(level)?;
        let rows = self.rows(limit, limits::PAGE);
        let window = Window {
            // Nothing sorts ahead of the empty texts.
            after: after.map_or_else(Position::default, |after| {
                (after.checked_at.to_sql(), after.id.clone())
            }),
            before: before.to_sql(),
            most: rows.saturating_add(1),
        };
        let page = self.on(self.shelf(level)?, |db, book| {
            // One snapshot: what was counted must be there when it is read.
            let tx = db.unchecked_transaction()?;
            let mut queue = self.by_record(&tx, book, &window)?;
            for above in self.shelves() {
                if above.file.level != level && can_flow_to(level, above.file.level) {
                    let stamped =
                        self.on(above, |stamps, _| self.by_stamp(stamps, &tx, book, &window))?;
                    queue.extend(stamped.unwrap_or_default());
                }
            }
            queue.sort();
            // Confirmed at the same moment on two levels.
            queue.dedup();
            let mut page = Filling::new(rows);
            for (_, id) in queue {
                if let Some(record) = book.by_id(&tx, &id)?
                    && !page.add(self.memory(level, record, limits::EXCERPT_BYTES)?)
                {
                    break;
                }
            }
            tx.commit()?;
            Ok(page.memories)
        })?;
        Ok(page.unwrap_or_default())
    }

    /// Those whose place is where their own rows say.
    fn by_record(
        &self,
        db: &Connection,
        book: &Book<'_>,
        window: &Window,
    ) -> Result<Vec<Position>, Fault> {
        let level = book.file.level;
        let mut found = Vec::new();
        for sql in BY_RECORD {
            let mut statement = db.prepare_cached(sql)?;
            let mut rows =
                statement.query((&window.after.0, &window.after.1, &window.before, &self.now))?;
            while found.len() < window.most
                && let Some(row) = rows.next()?
            {
                let id: String = row.get(0)?;
                let own: Option<String> = row.get(1)?;
                let saved: String = row.get(2)?;
                let at = own.clone().unwrap_or_else(|| saved.clone());
                if self.confirmed(level, &id, own)?.unwrap_or(saved) == at
                    && !book.has_edge_from(db, &id)?
                    && !self.hidden_from_above(level, &id)?
                {
                    found.push((at, id));
                }
            }
        }
        Ok(found)
    }

    /// Those whose place is where the stamps of one level above say.
    fn by_stamp(
        &self,
        stamps: &Connection,
        db: &Connection,
        book: &Book<'_>,
        window: &Window,
    ) -> Result<Vec<Position>, Fault> {
        let level = book.file.level;
        let mut heads = db.prepare_cached(concat!(
            "SELECT confirmed_at FROM record
             WHERE id = ?1 AND (expires_at IS NULL OR expires_at > ?2) AND ",
            indexed!()
        ))?;
        let mut statement = stamps.prepare_cached(BY_STAMP)?;
        let mut rows = statement.query((
            level.name(),
            &window.after.0,
            &window.after.1,
            &window.before,
        ))?;
        let mut found = Vec::new();
        while found.len() < window.most
            && let Some(row) = rows.next()?
        {
            let (at, id): Position = (row.get(0)?, row.get(1)?);
            let head: Option<Option<String>> = heads
                .query_row((&id, &self.now), |row| row.get(0))
                .optional()?;
            if let Some(own) = head
                && self.confirmed(level, &id, own)?.as_ref() == Some(&at)
                && !book.has_edge_from(db, &id)?
                && !self.hidden_from_above(level, &id)?
            {
                found.push((at, id));
            }
        }
        Ok(found)
    }
}
