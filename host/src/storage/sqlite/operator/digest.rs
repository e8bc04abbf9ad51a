//! What happened since: enough for a daily mail, and never the words.

use std::collections::BTreeMap;

use rusqlite::Row;
use serde::Serialize;

use super::Operator;
use crate::clock::Instant;
use crate::error::Error;
use crate::level::Level;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::LevelFile;

/// What happened to a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Change {
    /// Saved under a key that had no live version.
    Saved,
    /// Saved in place of the version before.
    Changed,
    /// Deleted softly; what waited was refused.
    Deleted,
    /// Something under another key took its place.
    Superseded,
    /// It waited, and a person accepted it.
    Accepted,
    /// Its deletion was taken back.
    Restored,
}

/// One thing that happened. Content and tags are never told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DigestEntry {
    /// When.
    pub at: Instant,
    /// What.
    pub change: Change,
    /// Whose memory.
    pub agent: String,
    /// On which level.
    pub level: Level,
    /// Under which key.
    pub key: String,
    /// The record.
    pub id: String,
    /// Where the caller said that the words come from.
    pub source: Option<String>,
    /// Who the words come from.
    pub origin: String,
    /// Whether it is believed: `trusted`, `pending` or `quarantined`.
    pub standing: String,
    /// Which session did it.
    pub session: String,
}

/// A walk along the rows that reads no content. A version took another one's
/// place when its run of versions began earlier, or when that one ended in the
/// very moment of its saving.
const SAVED: &str = "
    SELECT r.updated_at, r.key, r.id, r.source, r.origin, r.standing, r.session,
           r.created_at <> r.updated_at
               OR EXISTS (SELECT 1 FROM record AS old
                          WHERE old.key = r.key AND old.version < r.version
                            AND old.superseded_at = r.updated_at
                            AND old.deleted_at IS NULL)
    FROM record AS r WHERE r.updated_at >= ?1 AND r.updated_at <= ?2 AND r.content <> ''";

const DELETED: &str = "
    SELECT r.deleted_at, r.key, r.id, r.source, r.origin, r.standing, r.session, 0
    FROM record AS r WHERE r.deleted_at >= ?1 AND r.deleted_at <= ?2";

/// A version that took the place of another key's, rather than of the one before.
const SUPERSEDED: &str = "
    SELECT old.superseded_at, old.key, old.id, old.source, old.origin, old.standing,
           edge.session, 0
    FROM record AS old
        JOIN edge ON edge.old_id = old.id
        JOIN record AS new ON new.id = edge.new_id AND new.key <> old.key
    WHERE old.superseded_at >= ?1 AND old.superseded_at <= ?2
    GROUP BY old.seq";

/// What only the trail tells, by the person or session that did it.
const ACTS: &str = "
    SELECT e.at, r.key, r.id, r.source, r.origin, r.standing, e.session, e.kind
    FROM event AS e JOIN record AS r ON r.id = e.record
    WHERE e.kind IN ('delete', 'refuse', 'accept', 'undelete') AND e.at >= ?1 AND e.at <= ?2
    ORDER BY e.number";

impl Operator<'_> {
    /// What was saved, changed, deleted, superseded, accepted and restored from `since`
    /// until now, oldest first. What was purged or pruned since is not in it.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files,
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn digest(&self, agent: Option<&str>, since: Instant) -> Result<Vec<DigestEntry>, Error> {
        let mut entries = Vec::new();
        for file in self.files_of(agent)? {
            self.read(&file, |db, _| {
                let span = (since.to_sql(), self.now.to_sql());
                // Of what was deleted the record tells who had saved it.
                let mut deleted_by: BTreeMap<String, String> = BTreeMap::new();
                let mut statement = db.prepare(ACTS)?;
                let mut rows = statement.query((&span.0, &span.1))?;
                while let Some(row) = rows.next()? {
                    let kind: String = row.get(7)?;
                    match kind.as_str() {
                        "accept" => entries.push(entry(row, &file, Change::Accepted)?),
                        "undelete" => entries.push(entry(row, &file, Change::Restored)?),
                        _ => {
                            deleted_by.insert(row.get(2)?, row.get(6)?);
                        }
                    }
                }
                for (sql, change) in [
                    (SAVED, Change::Saved),
                    (DELETED, Change::Deleted),
                    (SUPERSEDED, Change::Superseded),
                ] {
                    let mut statement = db.prepare(sql)?;
                    let mut rows = statement.query((&span.0, &span.1))?;
                    while let Some(row) = rows.next()? {
                        let replaces = row.get(7)?;
                        let mut entry =
                            entry(row, &file, if replaces { Change::Changed } else { change })?;
                        if change == Change::Deleted
                            && let Some(session) = deleted_by.remove(&entry.id)
                        {
                            entry.session = session;
                        }
                        entries.push(entry);
                    }
                }
                Ok(())
            })?;
        }
        // Stable, so that what happened at once stays in the order of the files.
        entries.sort_by_key(|entry| entry.at);
        Ok(entries)
    }
}

fn entry(row: &Row<'_>, file: &LevelFile, change: Change) -> Result<DigestEntry, Fault> {
    let at: String = row.get(0)?;
    Ok(DigestEntry {
        at: Instant::from_sql(&at).ok_or(Fault::Altered("a record can't be read"))?,
        change,
        agent: file.agent.clone(),
        level: file.level,
        key: row.get(1)?,
        id: row.get(2)?,
        source: row.get(3)?,
        origin: row.get(4)?,
        standing: row.get(5)?,
        session: row.get(6)?,
    })
}
