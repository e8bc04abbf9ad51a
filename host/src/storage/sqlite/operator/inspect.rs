//! How each file is kept: what a check of the surroundings asks, and no seal.

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;

use super::{Operator, count};
use crate::clock::Instant;
use crate::error::Error;
use crate::level::Level;
use crate::search::analyser::VERSION;
use crate::storage::sqlite::connection::Mode;
use crate::storage::sqlite::fault::{Fault, Place};
use crate::storage::sqlite::layout::LevelFile;
use crate::storage::sqlite::schema::{Kind, newer_analyser};

/// How a file of the store is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kept {
    /// Where it is, absolute.
    pub path: String,
    /// Whose; none for `sessions.db`.
    pub agent: Option<String>,
    /// Of which level.
    pub level: Option<Level>,
    /// What it looks like inside, or why nobody can tell, in a sentence.
    pub inside: Result<Inside, String>,
}

/// What a file looks like inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Inside {
    /// The version of its schema.
    pub schema: i64,
    /// The version that this program writes.
    pub current_schema: i64,
    /// Which analyser it says that it was indexed by; none for `sessions.db`.
    pub analyser: Option<String>,
    /// Which one this program has; none for `sessions.db`.
    pub current_analyser: Option<String>,
    /// Whether that is a later one, so that this program leaves the file alone.
    pub newer_analyser: bool,
    /// SQLite's name for how it keeps its journal.
    pub journal_mode: String,
    /// Rows (records and lines of the trail; sessions in `sessions.db`) that say
    /// they are from more than a minute later than now: others write while the
    /// files are read.
    pub ahead: u64,
    /// The latest moment that any of these says.
    pub newest: Option<Instant>,
}

impl Inside {
    /// Whether the index is that of the analyser that this program has, as far as
    /// the file says so. `sessions.db` has none.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.analyser == self.current_analyser
    }
}

/// Milliseconds that a row may be later than the moment of the call.
const MARGIN: i64 = 60 * 1000;

const LEVEL: &str = "
    SELECT count(*) FILTER (WHERE at > ?1), max(at)
    FROM (SELECT updated_at AS at FROM record UNION ALL SELECT at FROM event)";

const SESSIONS: &str = "
    SELECT count(*) FILTER (WHERE updated_at > ?1), max(updated_at) FROM session";

impl Operator<'_> {
    /// How each file of the store is kept. Nothing is changed, not even an older
    /// schema, and nobody waits. A file that can't be opened is in the answer too,
    /// with the reason.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where the folder itself
    /// can't be read.
    pub fn inspect(&self) -> Result<Vec<Kept>, Error> {
        let mut all = Vec::new();
        for file in self.files(None)? {
            let inside = self.inside(&file.path, &Kind::level(&file), LEVEL);
            all.push(self.kept(Some(&file), &file.path, inside));
        }
        let path = self.inner.layout.sessions();
        let inside = self.inside(&path, &Kind::sessions(), SESSIONS);
        all.push(self.kept(None, &path, inside));
        Ok(all)
    }

    fn kept(
        &self,
        file: Option<&LevelFile>,
        path: &std::path::Path,
        inside: Result<Inside, Fault>,
    ) -> Kept {
        Kept {
            path: path.display().to_string(),
            agent: file.map(|file| file.agent.clone()),
            level: file.map(|file| file.level),
            inside: inside.map_err(|fault| Place::path(path).say(fault).to_string()),
        }
    }

    fn inside(
        &self,
        path: &std::path::Path,
        kind: &Kind<'_>,
        moments: &str,
    ) -> Result<Inside, Fault> {
        let db: Connection = self.inner.pool.connect(path, Mode::Read)?;
        let pragma = |name: &str| format!("PRAGMA {name}");
        let schema = db.query_row(&pragma("user_version"), [], |row| row.get(0))?;
        let analyser: Option<String> = match kind.file {
            Some(_) => db
                .query_row(
                    "SELECT value FROM meta WHERE name = 'analyser'",
                    [],
                    |row| row.get(0),
                )
                .optional()?,
            None => None,
        };
        let journal_mode = db.query_row(&pragma("journal_mode"), [], |row| row.get(0))?;
        let last = Instant::from_millis_clamped(self.now.millis().saturating_add(MARGIN));
        let (ahead, newest): (i64, Option<String>) =
            db.query_row(moments, [last.to_sql()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(Inside {
            schema,
            current_schema: kind.schema(),
            newer_analyser: analyser
                .as_deref()
                .is_some_and(|name| newer_analyser(name).is_some()),
            analyser,
            current_analyser: kind.file.map(|_| VERSION.to_owned()),
            journal_mode,
            ahead: count(ahead),
            newest: newest.as_deref().and_then(Instant::from_sql),
        })
    }
}
