//! Edges: what took the place of what.
//!
//! An edge is kept where the newer record is, so that it hides the older one only
//! from those who can see the newer, and it outlives both.

use rusqlite::{Connection, Row};

use super::fault::Fault;
use super::record::{Book, Record};
use crate::level::Level;
use crate::seal::{Encoder, Purpose};

/// An edge as its row holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgeRow {
    pub(super) old_id: String,
    pub(super) new_id: String,
    /// The level of the older record.
    pub(super) old_level: String,
    pub(super) at: String,
    /// Of the newer record.
    pub(super) session: String,
}

impl EdgeRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            old_id: row.get(0)?,
            new_id: row.get(1)?,
            old_level: row.get(2)?,
            at: row.get(3)?,
            session: row.get(4)?,
        })
    }

    pub(super) fn encode(&self, book: &Book<'_>) -> Encoder {
        book.begin(Purpose::Edge)
            .text(&self.old_id)
            .text(&self.new_id)
            .text(&self.old_level)
            .text(&self.at)
            .text(&self.session)
    }
}

macro_rules! insert {
    () => {
        "INSERT INTO edge (old_id, new_id, old_level, at, session, seal)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    };
}

impl Book<'_> {
    fn some_edges(&self, db: &Connection, sql: &str, id: &str) -> Result<Vec<EdgeRow>, Fault> {
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        let mut edges = Vec::new();
        while let Some(row) = rows.next()? {
            let edge = EdgeRow::read(row)?;
            if !edge
                .encode(self)
                .fits(row.get_ref(5)?.as_blob().unwrap_or_default())
            {
                return Err(Fault::Altered("an edge fails its seal"));
            }
            edges.push(edge);
        }
        Ok(edges)
    }

    /// What in this file took the place of the record with that id, be it of
    /// this level or of a lower one.
    pub(super) fn edges_from(&self, db: &Connection, id: &str) -> Result<Vec<EdgeRow>, Fault> {
        self.some_edges(
            db,
            "SELECT old_id, new_id, old_level, at, session, seal FROM edge WHERE old_id = ?1",
            id,
        )
    }

    /// Whose place the record with that id took.
    pub(super) fn edges_to(&self, db: &Connection, id: &str) -> Result<Vec<EdgeRow>, Fault> {
        self.some_edges(
            db,
            "SELECT old_id, new_id, old_level, at, session, seal FROM edge WHERE new_id = ?1",
            id,
        )
    }

    /// Whether something in this file took the place of the record with that id.
    pub(super) fn has_edge_from(&self, db: &Connection, id: &str) -> Result<bool, Fault> {
        Ok(!self.edges_from(db, id)?.is_empty())
    }

    /// Writes down that one record took the place of another.
    pub(super) fn add_edge(
        &self,
        db: &Connection,
        old: &str,
        old_level: Level,
        new: &Record,
    ) -> Result<(), Fault> {
        let edge = EdgeRow {
            old_id: old.to_owned(),
            new_id: new.id.clone(),
            old_level: old_level.name().to_owned(),
            at: new.updated_at.clone(),
            session: new.session.clone(),
        };
        self.insert_edge(db, insert!(), &edge)?;
        Ok(())
    }

    /// Adds an edge as it is, if it is not there.
    pub(super) fn keep_edge(&self, db: &Connection, edge: &EdgeRow) -> Result<bool, Fault> {
        let sql = concat!(insert!(), " ON CONFLICT (old_id, new_id) DO NOTHING");
        Ok(self.insert_edge(db, sql, edge)? > 0)
    }

    fn insert_edge(&self, db: &Connection, sql: &str, edge: &EdgeRow) -> Result<usize, Fault> {
        let added = db.prepare_cached(sql)?.execute((
            &edge.old_id,
            &edge.new_id,
            &edge.old_level,
            &edge.at,
            &edge.session,
            edge.encode(self).finish().as_slice(),
        ))?;
        Ok(added)
    }
}
