//! What happened since: enough for a daily mail, and never the words.

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
    /// Deleted softly.
    Deleted,
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
    /// By which session it was saved.
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

impl Operator<'_> {
    /// What was saved, changed and deleted from `since` until now, oldest first.
    /// What was purged or pruned since is not in it.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files,
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn digest(&self, agent: Option<&str>, since: Instant) -> Result<Vec<DigestEntry>, Error> {
        let mut entries = Vec::new();
        for file in self.files_of(agent)? {
            self.read(&file, |db, _| {
                for (sql, deleted) in [(SAVED, false), (DELETED, true)] {
                    let mut statement = db.prepare(sql)?;
                    let mut rows = statement.query((since.to_sql(), self.now.to_sql()))?;
                    while let Some(row) = rows.next()? {
                        entries.push(entry(row, &file, deleted)?);
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

fn entry(row: &rusqlite::Row<'_>, file: &LevelFile, deleted: bool) -> Result<DigestEntry, Fault> {
    let at: String = row.get(0)?;
    let replaces: bool = row.get(7)?;
    Ok(DigestEntry {
        at: Instant::from_sql(&at).ok_or(Fault::Altered("a record can't be read"))?,
        change: match (deleted, replaces) {
            (true, _) => Change::Deleted,
            (false, true) => Change::Changed,
            (false, false) => Change::Saved,
        },
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
