//! What nobody has used for long.

use std::time::Duration;

use serde::Serialize;

use super::stats::{live, stands};
use super::{Operator, count, instant};
use crate::clock::Instant;
use crate::error::Error;
use crate::level::{Level, can_flow_to};
use crate::storage::sqlite::layout::LevelFile;

/// A live record that nobody has used for long: a candidate for deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unused {
    /// Whose.
    pub agent: String,
    /// On which level.
    pub level: Level,
    /// The record.
    pub id: String,
    /// Its key.
    pub key: String,
    /// Where the caller said that the words come from.
    pub source: Option<String>,
    /// Who the words come from.
    pub origin: String,
    /// When it was saved.
    pub saved_at: Instant,
    /// When somebody last said that it is true.
    pub confirmed_at: Option<Instant>,
    /// When it was last used from any level, if ever.
    pub last_used_at: Option<Instant>,
    /// How often it was used from all levels.
    pub uses: u64,
    /// Bytes of its content.
    pub content_bytes: u64,
}

const CANDIDATES: &str = concat!(
    "SELECT r.id, r.key, r.source, r.origin, r.updated_at, r.confirmed_at,
            octet_length(r.content)
     FROM record AS r
     WHERE r.updated_at < ?2 AND coalesce(r.confirmed_at, '') < ?2 AND ",
    live!(),
    " ORDER BY r.seq"
);

impl Operator<'_> {
    /// The live records that were saved longer than `span` ago and that nobody has
    /// used or confirmed since: those used longest ago first, and before them
    /// those never used, by when they were saved. A record counts as used whatever
    /// level it was used from.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files,
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    pub fn unused(&self, agent: Option<&str>, span: Duration) -> Result<Vec<Unused>, Error> {
        self.inner.write_all_usage();
        let before = self.before(span);
        let files = self.files_of(agent)?;
        let mut unused = Vec::new();
        for file in &files {
            let above = files
                .iter()
                .filter(|other| other.agent == file.agent && can_flow_to(file.level, other.level));
            let mut candidates = self.candidates(file, &before)?;
            for other in above {
                self.leave_the_unused(other, &before, &mut candidates)?;
            }
            unused.append(&mut candidates);
        }
        unused.sort_by_key(|unused| (unused.last_used_at, unused.saved_at));
        Ok(unused)
    }

    fn candidates(&self, file: &LevelFile, before: &str) -> Result<Vec<Unused>, Error> {
        self.read(file, |db, _| {
            let mut statement = db.prepare(CANDIDATES)?;
            let mut rows = statement.query((self.now.to_sql(), before))?;
            let mut candidates = Vec::new();
            while let Some(row) = rows.next()? {
                let confirmed_at: Option<String> = row.get(5)?;
                candidates.push(Unused {
                    agent: file.agent.clone(),
                    level: file.level,
                    id: row.get(0)?,
                    key: row.get(1)?,
                    source: row.get(2)?,
                    origin: row.get(3)?,
                    saved_at: instant(&row.get::<_, String>(4)?)?,
                    confirmed_at: confirmed_at.as_deref().map(instant).transpose()?,
                    last_used_at: None,
                    uses: 0,
                    content_bytes: count(row.get(6)?),
                });
            }
            Ok(candidates)
        })
    }

    /// Leaves those that were not used or confirmed from that file either.
    fn leave_the_unused(
        &self,
        file: &LevelFile,
        before: &str,
        candidates: &mut Vec<Unused>,
    ) -> Result<(), Error> {
        self.read(file, |db, _| {
            let mut used =
                db.prepare("SELECT last_used_at, uses FROM usage WHERE record_id = ?1")?;
            let mut stamped = db.prepare("SELECT max(at) FROM stamp WHERE record_id = ?1")?;
            let mut kept = Vec::with_capacity(candidates.len());
            for mut candidate in candidates.drain(..) {
                let mut recent = false;
                let mut rows = used.query([&candidate.id])?;
                if let Some(row) = rows.next()? {
                    let at: String = row.get(0)?;
                    recent |= at.as_str() >= before;
                    candidate.last_used_at = candidate.last_used_at.max(Some(instant(&at)?));
                    candidate.uses = candidate.uses.saturating_add(count(row.get(1)?));
                }
                let at: Option<String> = stamped.query_row([&candidate.id], |row| row.get(0))?;
                if let Some(at) = at {
                    recent |= at.as_str() >= before;
                    candidate.confirmed_at = candidate.confirmed_at.max(Some(instant(&at)?));
                }
                if !recent {
                    kept.push(candidate);
                }
            }
            *candidates = kept;
            Ok(())
        })
    }
}
