//! What has had its time goes: rows, index terms, tags, stamps and usage.
//!
//! Nothing depends on it. Expiry is decided at reading, and a superseded or
//! deleted record is out of everything but history, so a prune that never ran
//! harms nothing but the disk.
//!
//! # What stays
//!
//! Edges: what a pruned record took the place of stays hidden, and so does a
//! pruned record itself, should an old export or backup hold it. Tombstones: they
//! still hide what lies on lower levels; once their time has come they lose
//! their words (content, tags, source) and keep the key. The lines of the audit
//! trail, which hold no words.
//!
//! # Performance
//!
//! One transaction for each file, and one walk along its rows, so a prune takes
//! time as the file has rows, and memory for one batch of them. Taking a record
//! out of the index costs as much as putting some tens into it, the more the
//! larger the index; so where many go, it is built anew from those that stay.
//! The file does not shrink; the room is used again by what is saved next.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use serde::Serialize;

use super::{Operator, Progress, SESSION, count, days, fault_point};
use crate::error::Error;
use crate::level::{Level, can_flow_to};
use crate::provenance::Standing;
use crate::storage::sqlite::edge::EdgeRow;
use crate::storage::sqlite::fault::Fault;
use crate::storage::sqlite::layout::LevelFile;
use crate::storage::sqlite::record::{Book, Record, columns};
use crate::storage::sqlite::schema::indexed;
use crate::storage::sqlite::search::index;

/// Rows of one batch: with content at its longest, 16 MB.
const BATCH: i64 = 64;

/// Taking one record out of the index costs about as much as indexing so many
/// (measured: 0.5 ms and 15 µs on 25,000 records).
const OUT_IS_WORTH: u64 = 32;

/// What a prune removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prune {
    /// Only count what would go.
    pub dry_run: bool,
    /// How long what was superseded stays.
    pub superseded_after: Duration,
    /// How long what was deleted stays.
    pub deleted_after: Duration,
}

impl Default for Prune {
    /// Half a year of history, and half a year to take a deletion back.
    fn default() -> Self {
        Self {
            dry_run: false,
            superseded_after: days(180),
            deleted_after: days(180),
        }
    }
}

impl Prune {
    /// Only counting what would go.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// With what was superseded staying so long.
    #[must_use]
    pub fn superseded_after(mut self, span: Duration) -> Self {
        self.superseded_after = span;
        self
    }

    /// With what was deleted staying so long.
    #[must_use]
    pub fn deleted_after(mut self, span: Duration) -> Self {
        self.deleted_after = span;
        self
    }
}

/// What a prune removed from one level, or would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelPruned {
    /// Whose.
    pub agent: String,
    /// From which level.
    pub level: Level,
    /// Whether it was only counted.
    pub dry_run: bool,
    /// Records whose time was over, also of those kept apart and of history.
    pub expired: u64,
    /// Records that something newer had taken the place of for long enough.
    pub superseded: u64,
    /// Records that had been deleted for long enough.
    pub deleted: u64,
    /// Tombstones that lost their words and stay.
    pub stripped: u64,
    /// Bytes of content that went.
    pub content_bytes: u64,
}

impl LevelPruned {
    /// How many records went.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.expired
            .saturating_add(self.superseded)
            .saturating_add(self.deleted)
    }

    fn is_nothing(&self) -> bool {
        self.removed() == 0 && self.stripped == 0
    }
}

/// Why a record goes, in a query of `record AS r` with the moment now as `?1`, the
/// one before which what was superseded goes as `?2`, and what was deleted as
/// `?3`. A tombstone that stands still hides, and never goes.
macro_rules! fate {
    () => {
        "CASE WHEN r.hides_lower = 1 AND r.superseded_at IS NULL THEN
                  CASE WHEN (r.deleted_at < ?3 OR r.expires_at <= ?1)
                            AND (r.content <> '' OR r.tags <> '[]' OR r.source IS NOT NULL)
                       THEN 'stripped' END
              WHEN r.expires_at <= ?1 THEN 'expired'
              WHEN r.superseded_at < ?2 THEN 'superseded'
              WHEN r.superseded_at IS NULL AND r.deleted_at < ?3 THEN 'deleted' END"
    };
}

const COUNTS: &str = concat!(
    "SELECT count(*) FILTER (WHERE fate = 'expired'),
            count(*) FILTER (WHERE fate = 'superseded'),
            count(*) FILTER (WHERE fate = 'deleted'),
            count(*) FILTER (WHERE fate = 'stripped'),
            coalesce(sum(bytes), 0)
     FROM (SELECT octet_length(r.content) AS bytes, ",
    fate!(),
    " AS fate FROM record AS r)
     WHERE fate IS NOT NULL"
);

const NEXT: &str = concat!(
    "SELECT ",
    columns!(),
    ", ",
    fate!(),
    " AS fate FROM record AS r
     WHERE r.seq > ?4 AND ",
    fate!(),
    " IS NOT NULL ORDER BY r.seq LIMIT ?5"
);

/// What goes of the rows up to `?5`: those that [`NEXT`] has told, but for what is
/// only stripped. Their tags go with them.
const REMOVE: &str = concat!(
    "DELETE FROM record AS r WHERE r.seq > ?4 AND r.seq <= ?5 AND ",
    fate!(),
    " IN ('expired', 'superseded', 'deleted')"
);

/// The moments that decide, as files hold them.
struct Cut {
    now: String,
    superseded: String,
    deleted: String,
}

impl Operator<'_> {
    /// Removes what has had its time, level by level, each in one transaction, so
    /// that a file is either before or after. A level where nothing goes is not
    /// written to.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files;
    /// [`Unavailable`](crate::ErrorKind::Unavailable), also for a file where what
    /// would go was altered outside Remora. What was reported as done before is
    /// done.
    pub fn prune(
        &self,
        agent: Option<&str>,
        prune: &Prune,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<LevelPruned>, Error> {
        self.inner.write_all_usage();
        let cut = Cut {
            now: self.now.to_sql(),
            superseded: self.before(prune.superseded_after),
            deleted: self.before(prune.deleted_after),
        };
        let files = self.files_of(agent)?;
        let mut report = Vec::with_capacity(files.len());
        for file in &files {
            // Counted first without the lock: mostly little or nothing goes.
            let mut pruned = self.read(file, |db, _| counted(db, file, &cut))?;
            pruned.dry_run = prune.dry_run;
            if !prune.dry_run && !pruned.is_nothing() {
                pruned =
                    self.change(file, |db, book| self.prune_level(db, book, &cut, progress))?;
            }
            report.push(pruned);
        }
        if !prune.dry_run {
            for file in &files {
                self.forget_orphans(file, &files)?;
            }
        }
        Ok(report)
    }

    fn prune_level(
        &self,
        db: &Connection,
        book: &Book<'_>,
        cut: &Cut,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<LevelPruned, Fault> {
        let expected = counted(db, book.file, cut)?;
        let total = expected.removed().saturating_add(expected.stripped);
        let (going, staying) = indexed_counts(db, cut)?;
        let anew = going.saturating_mul(OUT_IS_WORTH) > staying;
        let mut done: u64 = 0;
        let mut after = i64::MIN;
        loop {
            progress(Progress::of("prune", book.file, done, total));
            let batch = next(db, book, cut, after)?;
            let Some((last, _)) = batch.last() else {
                break;
            };
            let last = last.seq;
            for (record, fate) in batch {
                if fate == "stripped" {
                    strip(db, book, record)?;
                } else {
                    remember_its_place(db, book, &record)?;
                    if !anew {
                        forget(db, book, &record)?;
                    }
                }
                done = done.saturating_add(1);
            }
            // All at once, in the order in which they lie: row by row, each was
            // looked for again.
            db.prepare_cached(REMOVE)?.execute(rusqlite::params![
                cut.now,
                cut.superseded,
                cut.deleted,
                after,
                last
            ])?;
            after = last;
            fault_point("prune");
        }
        if anew {
            forget_gone(db, book)?;
            if going > 0 {
                index::rebuild(db, |_| {})?;
            }
        }
        if done > 0 {
            let detail = format!(
                "expired={} superseded={} deleted={} stripped={}",
                expected.expired, expected.superseded, expected.deleted, expected.stripped
            );
            self.log(db, book, "prune", None, &detail)?;
        }
        Ok(expected)
    }

    /// Forgets the stamps and the usage, kept on a level, of records that no level
    /// beneath it has any more.
    fn forget_orphans(&self, file: &LevelFile, files: &[LevelFile]) -> Result<(), Error> {
        const NAMED: &str = "SELECT record_id FROM stamp UNION SELECT record_id FROM usage";
        let mut named = self.read(file, |db, _| {
            let mut statement = db.prepare(NAMED)?;
            let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
            Ok(ids.collect::<Result<Vec<_>, _>>()?)
        })?;
        for lower in files {
            if lower.agent != file.agent || !can_flow_to(lower.level, file.level) {
                continue;
            }
            self.read(lower, |db, _| {
                let mut exists = db.prepare("SELECT 1 FROM record WHERE id = ?1")?;
                let mut orphans = Vec::new();
                for id in named.drain(..) {
                    if !exists.exists([&id])? {
                        orphans.push(id);
                    }
                }
                named = orphans;
                Ok(())
            })?;
        }
        if named.is_empty() {
            return Ok(());
        }
        let forget = |db: &Connection| {
            for sql in [
                "DELETE FROM stamp WHERE record_id = ?1",
                "DELETE FROM usage WHERE record_id = ?1",
            ] {
                let mut statement = db.prepare(sql)?;
                for id in &named {
                    statement.execute([id])?;
                }
            }
            Ok::<(), Fault>(())
        };
        // No line in the trail: nothing of a record goes, only what was counted
        // and stamped of ones that are gone.
        self.maintain(file, |db, _| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            forget(&tx)?;
            Ok(tx.commit()?)
        })
    }
}

fn counted(db: &Connection, file: &LevelFile, cut: &Cut) -> Result<LevelPruned, Fault> {
    let mut statement = db.prepare(COUNTS)?;
    let pruned = statement.query_row((&cut.now, &cut.superseded, &cut.deleted), |row| {
        let number = |column: usize| row.get(column).map(count);
        Ok(LevelPruned {
            agent: file.agent.clone(),
            level: file.level,
            dry_run: false,
            expired: number(0)?,
            superseded: number(1)?,
            deleted: number(2)?,
            stripped: number(3)?,
            content_bytes: number(4)?,
        })
    })?;
    Ok(pruned)
}

/// The next rows that go, each with how. Their seals are checked: what was
/// altered outside Remora may not really have had its time.
fn next(
    db: &Connection,
    book: &Book<'_>,
    cut: &Cut,
    after: i64,
) -> Result<Vec<(Record, String)>, Fault> {
    let mut statement = db.prepare_cached(NEXT)?;
    let mut rows = statement.query(rusqlite::params![
        cut.now,
        cut.superseded,
        cut.deleted,
        after,
        BATCH
    ])?;
    let mut batch = Vec::new();
    while let Some(row) = rows.next()? {
        let record = book.checked(Record::read(row)?)?;
        batch.push((record, row.get(19)?));
    }
    Ok(batch)
}

/// How many records that the index holds go, and how many stay.
fn indexed_counts(db: &Connection, cut: &Cut) -> Result<(u64, u64), Fault> {
    const SQL: &str = concat!(
        "SELECT count(*) FILTER (WHERE expires_at <= ?1),
                count(*) FILTER (WHERE expires_at IS NULL OR expires_at > ?1)
         FROM record WHERE ",
        indexed!()
    );
    let counts = db.query_row(SQL, [&cut.now], |row| {
        Ok((count(row.get(0)?), count(row.get(1)?)))
    })?;
    Ok(counts)
}

/// Leaves an edge where a record's place was taken, as the design asks of every
/// edge: it outlives both ends. A newer version of the same key needs none while
/// the older one stands, but without it an export or a backup from before would
/// bring that back to life.
fn remember_its_place(db: &Connection, book: &Book<'_>, record: &Record) -> Result<(), Fault> {
    let Some(at) = &record.superseded_at else {
        return Ok(());
    };
    if record.standing != Standing::Trusted.name() || book.has_edge_from(db, &record.id)? {
        return Ok(());
    }
    let newer: Option<(String, String)> = db
        .prepare_cached(
            "SELECT id, session FROM record
             WHERE key = ?1 AND version > ?2 AND standing = 'trusted'
             ORDER BY version LIMIT 1",
        )?
        .query_row((&record.key, record.version), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    // What took its place may be gone before it: then nothing can be named but
    // itself.
    let (new_id, session) = newer.unwrap_or((record.id.clone(), SESSION.to_owned()));
    book.keep_edge(
        db,
        &EdgeRow {
            old_id: record.id.clone(),
            new_id,
            old_level: book.file.level.name().to_owned(),
            at: at.clone(),
            session,
        },
    )?;
    Ok(())
}

/// Forgets what goes with a record beside its row: its index terms, and what this
/// file keeps about it but for the edges.
fn forget(db: &Connection, book: &Book<'_>, record: &Record) -> Result<(), Fault> {
    if record.is_indexed() {
        book.unindex(db, record)?;
    }
    db.prepare_cached("DELETE FROM stamp WHERE record_id = ?1")?
        .execute([&record.id])?;
    db.prepare_cached("DELETE FROM usage WHERE record_id = ?1")?
        .execute([&record.id])?;
    Ok(())
}

/// Forgets what this file keeps about records of its own that are gone. Where
/// many are, one walk along the ids in their order takes less time than looking
/// for each: ids are random, so each would be elsewhere.
fn forget_gone(db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    for sql in [
        "DELETE FROM stamp WHERE record_level = ?1
           AND NOT EXISTS (SELECT 1 FROM record WHERE record.id = stamp.record_id)",
        "DELETE FROM usage WHERE record_level = ?1
           AND NOT EXISTS (SELECT 1 FROM record WHERE record.id = usage.record_id)",
    ] {
        db.execute(sql, [book.file.level.name()])?;
    }
    Ok(())
}

/// Takes a tombstone's words away, which leaves what it hides with.
fn strip(db: &Connection, book: &Book<'_>, mut record: Record) -> Result<(), Fault> {
    record.content = String::new();
    record.tags = "[]".to_owned();
    record.source = None;
    record.expires_at = None;
    let seal = record.encode(book).finish();
    db.prepare_cached(
        "UPDATE record SET content = '', tags = '[]', source = NULL, expires_at = NULL, seal = ?2
         WHERE seq = ?1",
    )?
    .execute((record.seq, seal.as_slice()))?;
    Ok(())
}
