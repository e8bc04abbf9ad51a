//! The trail, and how its beginning is let go.

use std::time::Duration;

use serde::Serialize;

use super::{Operator, Progress, count};
use crate::clock::Instant;
use crate::error::Error;
use crate::level::Level;
use crate::provenance::Origin;
use crate::storage::sqlite::event;
use crate::storage::sqlite::layout::LevelFile;

/// Which lines to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditFilter {
    /// Of this agent only.
    pub agent: Option<String>,
    /// From this moment on.
    pub since: Option<Instant>,
    /// By this session only.
    pub session: Option<String>,
}

impl AuditFilter {
    /// Of this agent only.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// From this moment on.
    #[must_use]
    pub fn since(mut self, since: Instant) -> Self {
        self.since = Some(since);
        self
    }

    /// By this session only.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }
}

/// A line of a trail, as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditLine {
    /// In whose trail.
    pub agent: String,
    /// In the trail of which level.
    pub level: Level,
    /// Counts the lines of a trail from 1, also those that retention removed.
    pub number: u64,
    /// When it happened.
    pub at: Instant,
    /// What happened.
    pub kind: String,
    /// By which session; `operator` for the operator's own commands.
    pub session: String,
    /// The session's origin.
    pub origin: Origin,
    /// The record it is about.
    pub record: Option<String>,
    /// The key of that record, where the record still stands.
    pub key: Option<String>,
    /// More, from a fixed set of words and numbers.
    pub detail: Option<String>,
    /// Whether this line and all before it are what was written.
    pub intact: bool,
}

/// What the check of one trail found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Trail {
    /// Whose.
    pub agent: String,
    /// Of which level.
    pub level: Level,
    /// Lines there are.
    pub lines: u64,
    /// Lines that retention removed before them.
    pub removed: u64,
    /// None: each line follows from the one before, down to the head.
    pub broken: Option<TrailBroken>,
}

/// Where a trail stops being what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TrailBroken {
    /// The number that the first wrong line has, or should have had.
    pub number: i64,
    /// What is wrong.
    pub what: String,
}

/// What retention removed from one trail, or would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelForgotten {
    /// Whose.
    pub agent: String,
    /// From the trail of which level.
    pub level: Level,
    /// Whether it was only counted.
    pub dry_run: bool,
    /// How many lines.
    pub removed: u64,
}

impl Operator<'_> {
    /// Tells the lines that a filter lets through, file by file (agents by name,
    /// levels from the lowest) and within one from the oldest; then what the
    /// check of each trail found. Whatever the filter, whole trails are checked.
    /// Lines behind a break are told as well, marked as not intact.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files;
    /// [`Unavailable`](crate::ErrorKind::Unavailable). A broken trail is no error.
    pub fn audit(
        &self,
        filter: &AuditFilter,
        each: &mut dyn FnMut(AuditLine),
    ) -> Result<Vec<Trail>, Error> {
        let files = self.files_of(filter.agent.as_deref())?;
        files
            .iter()
            .map(|file| self.trail(file, filter, each))
            .collect()
    }

    fn trail(
        &self,
        file: &LevelFile,
        filter: &AuditFilter,
        each: &mut dyn FnMut(AuditLine),
    ) -> Result<Trail, Error> {
        let walked = self.read(file, |db, book| {
            event::walk(db, book, |event, intact| {
                let wanted = filter.since.is_none_or(|since| event.at >= since)
                    && filter
                        .session
                        .as_ref()
                        .is_none_or(|session| *session == event.session);
                if wanted {
                    each(AuditLine {
                        agent: file.agent.clone(),
                        level: file.level,
                        number: event.number,
                        at: event.at,
                        kind: event.kind,
                        session: event.session,
                        origin: event.origin,
                        record: event.record,
                        key: event.key,
                        detail: event.detail,
                        intact,
                    });
                }
                Ok(())
            })
        })?;
        Ok(Trail {
            agent: file.agent.clone(),
            level: file.level,
            lines: walked.lines,
            removed: walked.removed,
            broken: walked.broken.map(|broken| TrailBroken {
                number: broken.number,
                what: broken.what.to_owned(),
            }),
        })
    }

    /// Lets go of the beginning of each trail: the lines before the first that is
    /// not older than `span`. What remains follows from a sealed anchor, so its
    /// own beginning can't be taken away unnoticed. A trail that is not whole
    /// keeps everything.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files;
    /// [`Unavailable`](crate::ErrorKind::Unavailable), also for a broken trail.
    pub fn forget_events(
        &self,
        agent: Option<&str>,
        span: Duration,
        dry_run: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<LevelForgotten>, Error> {
        let before = self.before(span);
        let mut report = Vec::new();
        for file in self.files_of(agent)? {
            // Counted first without the lock: mostly nothing goes.
            let older = self.read(&file, |db, _| event::older(db, &before))?;
            progress(Progress::of("retention", &file, 0, count(older)));
            let removed = if dry_run || older == 0 {
                older
            } else {
                self.change(&file, |db, book| {
                    let removed = event::forget(db, book, &before)?;
                    if removed > 0 {
                        let detail = format!("removed={removed}");
                        self.log(db, book, "retention", None, &detail)?;
                    }
                    Ok(removed)
                })?
            };
            report.push(LevelForgotten {
                agent: file.agent.clone(),
                level: file.level,
                dry_run,
                removed: count(removed),
            });
        }
        Ok(report)
    }
}
