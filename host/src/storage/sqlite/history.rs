//! What was saved under a key, and what took its place.
//!
//! A history shows what was live once: versions that were superseded, by a newer
//! version or by another memory. What was deleted, has expired or is kept apart
//! is as if it had never been.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::edge::EdgeRow;
use super::fault::Fault;
use super::read::{Filling, SqliteShelves};
use super::record::{Book, Record};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::{Level, can_flow_to};
use crate::storage::{Edge, Memories, limits};

impl SqliteShelves {
    pub(super) fn versions_page(
        &mut self,
        level: Level,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Memories, Error> {
        self.open_upwards(level)?;
        let rows = self.rows(limit, limits::PAGE);
        let before = before.map_or(i64::MAX, |version| {
            i64::try_from(version).unwrap_or(i64::MAX)
        });
        let page = self.on(self.shelf(level)?, |db, book| {
            let mut statement = db.prepare_cached(
                "SELECT seq FROM record
                 WHERE key = ?1 AND version < ?2 AND standing = 'trusted' AND deleted_at IS NULL
                   AND (expires_at IS NULL OR expires_at > ?3)
                 ORDER BY version DESC",
            )?;
            let mut found = statement.query((key, before, &self.now))?;
            let mut page = Filling::new(rows);
            while let Some(row) = found.next()? {
                let Some(mut record) = book.by_seq(db, row.get(0)?)? else {
                    continue;
                };
                if !record.is_history(&self.now) {
                    continue;
                }
                record.superseded_at = self.superseded(level, &record)?;
                if !page.add(self.memory(level, record, limits::EXCERPT_BYTES)?) {
                    break;
                }
            }
            Ok(page.memories)
        })?;
        Ok(page.unwrap_or_default())
    }

    /// When something first took a record's place, as far as the session can
    /// see.
    fn superseded(&self, level: Level, record: &Record) -> Result<Option<String>, Fault> {
        let mut first = record.superseded_at.clone();
        for shelf in self.shelves() {
            if !can_flow_to(level, shelf.file.level) {
                continue;
            }
            let edges = self.on(shelf, |db, book| book.edges_from(db, &record.id))?;
            let edges = edges.into_iter().flatten().map(|edge| edge.at);
            first = first.into_iter().chain(edges).min();
        }
        Ok(first)
    }

    pub(super) fn edges_page(&mut self, level: Level, ids: &[String]) -> Result<Vec<Edge>, Error> {
        if ids.len() > limits::EDGE_IDS {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("The edges of {} memories are asked for", ids.len()),
                format!("At most {} at once", limits::EDGE_IDS),
                "Ask for fewer",
            ));
        }
        self.shelf(level)?;
        // The older record stands here or lower.
        self.open(|other| can_flow_to(other, level))?;
        let edges = self.on(self.shelf(level)?, |db, book| {
            let mut edges = BTreeMap::new();
            for id in ids {
                for edge in book
                    .edges_from(db, id)?
                    .into_iter()
                    .chain(book.edges_to(db, id)?)
                {
                    let place = (edge.at.clone(), edge.old_id.clone(), edge.new_id.clone());
                    edges.insert(place, edge);
                }
            }
            edges
                .into_values()
                .map(|edge| self.edge(db, book, edge))
                .collect()
        })?;
        Ok(edges.unwrap_or_default())
    }

    fn edge(&self, db: &Connection, book: &Book<'_>, edge: EdgeRow) -> Result<Edge, Fault> {
        let older = match self
            .shelves()
            .iter()
            .find(|s| s.file.level.name() == edge.old_level)
        {
            Some(shelf) => self.on(shelf, |db, book| book.by_id(db, &edge.old_id))?,
            None => None,
        };
        let newer = book.by_id(db, &edge.new_id)?;
        let key = |record: Option<Record>| {
            record
                .filter(|record| record.is_history(&self.now))
                .map(|record| record.key)
        };
        Ok(Edge {
            old_key: key(older.flatten()),
            new_key: key(newer),
            at: Instant::from_sql(&edge.at).ok_or(Fault::Altered("an edge can't be read"))?,
            old_id: edge.old_id,
            new_id: edge.new_id,
        })
    }
}
