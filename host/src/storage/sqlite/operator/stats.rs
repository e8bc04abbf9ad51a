//! How much of what is kept is still live.

use serde::Serialize;

use super::{Operator, count};
use crate::clock::Instant;
use crate::error::Error;
use crate::level::Level;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::LevelFile;

/// What one level of one agent holds.
///
/// Every record is counted as exactly one of `live`, `expired`, `superseded`,
/// `deleted`, `pending` and `quarantined`, so that these add up to `all`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelStats {
    /// Whose.
    pub agent: String,
    /// Which level.
    pub level: Level,
    /// All versions of everything.
    pub all: u64,
    /// Served now to sessions of just this level.
    pub live: u64,
    /// Its time is over. Prune removes it.
    pub expired: u64,
    /// Something newer took its place.
    pub superseded: u64,
    /// Deleted softly: it can still be restored. Tombstones among it.
    pub deleted: u64,
    /// Of the deleted ones, those that hide versions on lower levels.
    pub tombstones: u64,
    /// Kept apart: waits for a person.
    pub pending: u64,
    /// Kept apart: comes from outside.
    pub quarantined: u64,
    /// What is kept and not live: `all` less `live`.
    pub gap: u64,
    /// Bytes of content of all versions.
    pub content_bytes: u64,
    /// Bytes of content of the live ones.
    pub live_content_bytes: u64,
    /// Bytes of the file and of its write-ahead log.
    pub file_bytes: u64,
    /// Lines of the audit trail.
    pub events: u64,
    /// The live record that nobody has confirmed for the longest.
    pub oldest_unconfirmed: Option<Unconfirmed>,
}

/// A record and when somebody last said that it is true: its saving, where nobody
/// has since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unconfirmed {
    /// The record.
    pub id: String,
    /// Its key.
    pub key: String,
    /// Since when.
    pub since: Instant,
}

/// The condition on a record `r` that nothing took its place: neither it nor an
/// edge of its own file says so.
macro_rules! stands {
    () => {
        "r.superseded_at IS NULL AND NOT EXISTS (SELECT 1 FROM edge WHERE edge.old_id = r.id)"
    };
}
pub(super) use stands;

/// The condition on a record `r` that it is served at `?1`.
macro_rules! live {
    () => {
        concat!(
            "r.standing = 'trusted' AND r.superseded_at IS NULL AND r.deleted_at IS NULL
             AND (r.expires_at IS NULL OR r.expires_at > ?1) AND ",
            stands!()
        )
    };
}
pub(super) use live;

/// One walk along the rows. The length of a text is told without reading it.
const COUNTS: &str = concat!(
    "SELECT count(*), coalesce(sum(bytes), 0),
            count(*) FILTER (WHERE state = 'live'),
            coalesce(sum(bytes) FILTER (WHERE state = 'live'), 0),
            count(*) FILTER (WHERE state = 'expired'),
            count(*) FILTER (WHERE state = 'superseded'),
            count(*) FILTER (WHERE state = 'deleted'),
            count(*) FILTER (WHERE state = 'deleted' AND hides_lower = 1),
            count(*) FILTER (WHERE state = 'pending'),
            count(*) FILTER (WHERE state = 'quarantined')
     FROM (SELECT r.hides_lower AS hides_lower, octet_length(r.content) AS bytes,
                  CASE WHEN NOT (",
    stands!(),
    ") THEN 'superseded'
                       WHEN r.deleted_at IS NOT NULL THEN 'deleted'
                       WHEN r.expires_at <= ?1 THEN 'expired'
                       WHEN r.standing <> 'trusted' THEN r.standing
                       ELSE 'live' END AS state
           FROM record AS r)"
);

const OLDEST: &str = concat!(
    "SELECT r.id, r.key, coalesce(r.confirmed_at, r.updated_at) AS since FROM record AS r
     WHERE ",
    live!(),
    " ORDER BY coalesce(r.confirmed_at, r.updated_at), r.id LIMIT 1"
);

impl Operator<'_> {
    /// What is kept, for each level of one agent or of all: agents by name,
    /// levels from the lowest.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files,
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn stats(&self, agent: Option<&str>) -> Result<Vec<LevelStats>, Error> {
        let files = self.files_of(agent)?;
        files.iter().map(|file| self.level_stats(file)).collect()
    }

    fn level_stats(&self, file: &LevelFile) -> Result<LevelStats, Error> {
        let now = self.now.to_sql();
        let file_bytes = file_bytes(file);
        self.read(file, |db, _| {
            let mut stats = db.query_row(COUNTS, [&now], |row| {
                let number = |column: usize| row.get(column).map(count);
                let (all, live) = (number(0)?, number(2)?);
                Ok(LevelStats {
                    agent: file.agent.clone(),
                    level: file.level,
                    all,
                    content_bytes: number(1)?,
                    live,
                    live_content_bytes: number(3)?,
                    expired: number(4)?,
                    superseded: number(5)?,
                    deleted: number(6)?,
                    tombstones: number(7)?,
                    pending: number(8)?,
                    quarantined: number(9)?,
                    gap: all.saturating_sub(live),
                    file_bytes,
                    events: 0,
                    oldest_unconfirmed: None,
                })
            })?;
            stats.events = db.query_row("SELECT count(*) FROM event", [], |row| {
                row.get(0).map(count)
            })?;
            let mut oldest = db.prepare(OLDEST)?;
            let mut rows = oldest.query([&now])?;
            if let Some(row) = rows.next()? {
                let since: String = row.get(2)?;
                stats.oldest_unconfirmed = Some(Unconfirmed {
                    id: row.get(0)?,
                    key: row.get(1)?,
                    since: Instant::from_sql(&since)
                        .ok_or(Fault::Altered("a record can't be read"))?,
                });
            }
            Ok(stats)
        })
    }
}

/// Bytes on disk of a level: what can't be read counts as nothing.
fn file_bytes(file: &LevelFile) -> u64 {
    let mut log = file.path.clone().into_os_string();
    log.push("-wal");
    [file.path.clone(), log.into()]
        .iter()
        .filter_map(|path| std::fs::symlink_metadata(path).ok())
        .map(|found| found.len())
        .fold(0, u64::saturating_add)
}
