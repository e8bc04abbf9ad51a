//! Use: which records were given to callers, how often, and when last.
//!
//! Use is counted where the reader stands, so a reader leaves no trace below its
//! level. It is worth little and must cost less: counts are kept in memory and
//! written in batches, without waiting for the disk and hardly for another's
//! lock, with no seal, no line in the audit trail and no touch of the index. What
//! can't be written waits for the next batch, or is lost when the program ends.
//!
//! A level that has no file gets none for this: nothing was saved there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::Inner;
use super::connection::Mode;
use super::fault::Fault;
use super::read::{Filling, SqliteShelves};
use super::record::Book;
use super::schema::{Kind, indexed};
use crate::error::Error;
use crate::level::Level;
use crate::storage::{Memories, limits};

/// So many uses make a batch.
const BATCH_USES: u64 = 64;

/// A batch is written once its first use is so long ago, by the callers' clock.
const BATCH_MILLIS: u64 = 5_000;

/// Different records of a batch that can't be written: the rest go uncounted.
const BATCH_RECORDS: usize = 4096;

/// What is not yet written, for each agent and level.
#[derive(Debug, Default)]
pub(super) struct Usage(Mutex<HashMap<(String, Level), Batch>>);

#[derive(Debug, Default)]
struct Batch {
    /// When its first use was, or when it was last tried to write it, in
    /// milliseconds.
    began: i64,
    /// How many there were since then.
    uses: u64,
    records: BTreeMap<String, Use>,
}

/// How a record was used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    level: Level,
    count: u64,
    /// When last, as files hold it.
    last: String,
}

impl Batch {
    fn new(began: i64) -> Self {
        Self {
            began,
            ..Self::default()
        }
    }

    fn add(&mut self, id: String, new: Use) {
        if let Some(known) = self.records.get_mut(&id) {
            known.count = known.count.saturating_add(new.count);
            if known.last < new.last {
                known.last = new.last;
            }
        } else if self.records.len() < BATCH_RECORDS {
            self.records.insert(id, new);
        }
    }

    fn is_due(&self, now: i64) -> bool {
        // A clock that was set back makes a batch due as well.
        self.uses >= BATCH_USES || now.abs_diff(self.began) >= BATCH_MILLIS
    }
}

impl Inner {
    /// Writes an agent's counts of a level. Where that can't be done at once they
    /// are kept, and not tried again before another batch is full: `now` is when,
    /// in milliseconds. Answers whether there is nothing left to write.
    fn write_usage(&self, agent: &str, level: Level, now: i64) -> bool {
        let place = (agent.to_owned(), level);
        let batches = || self.usage.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(batch) = batches().remove(&place) else {
            return true;
        };
        // Outside the lock: it may take a while.
        match self.try_write_usage(agent, level, &batch) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(error) => tracing::debug!(
                cause = std::error::Error::source(&error).map(ToString::to_string),
                "use is not counted yet: {error}"
            ),
        }
        let mut batches = batches();
        let kept = batches.entry(place).or_insert_with(|| Batch::new(now));
        for (id, uses) in batch.records {
            kept.add(id, uses);
        }
        false
    }

    /// False: there is no file.
    fn try_write_usage(&self, agent: &str, level: Level, batch: &Batch) -> Result<bool, Error> {
        let file = self.layout.level(agent, level);
        let kind = Kind::level(&file);
        let Some(link) = self
            .pool
            .take(&file.path, &kind, Mode::Count, file.place(), None)?
        else {
            return Ok(false);
        };
        let result = link.run(|db| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            let mut statement = tx.prepare_cached(
                "INSERT INTO usage (record_id, record_level, last_used_at, uses)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (record_id) DO UPDATE
                     SET uses = min(uses, 4611686018427387904) + excluded.uses,
                         last_used_at = max(last_used_at, excluded.last_used_at)",
            )?;
            for (id, used) in &batch.records {
                let count = i64::try_from(used.count).unwrap_or(i64::MAX >> 2);
                statement.execute((id, used.level.name(), &used.last, count))?;
            }
            drop(statement);
            tx.commit()?;
            Ok(true)
        });
        self.pool.give_back(link);
        result
    }

    /// Writes all counts, as far as it can be done at once.
    pub(super) fn write_all_usage(&self) {
        let places: Vec<(String, Level)> = {
            let batches = self.usage.0.lock().unwrap_or_else(PoisonError::into_inner);
            batches.keys().cloned().collect()
        };
        for (agent, level) in places {
            self.write_usage(&agent, level, 0);
        }
    }
}

impl SqliteShelves {
    pub(super) fn count_use(&mut self, ids: &[String]) {
        // What a session knows from above its clearance must leave no trace.
        if self.access.read_only.is_some() {
            return;
        }
        let ids: BTreeSet<&String> = ids.iter().take(limits::USED_IDS).collect();
        let seen: Vec<(String, Level)> = ids
            .into_iter()
            .filter_map(|id| Some((id.clone(), self.level_of(id)?)))
            .collect();
        if seen.is_empty() {
            return;
        }
        let now = self.access.now.millis();
        let due = {
            let mut batches = self
                .inner
                .usage
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let batch = batches
                .entry((self.access.agent.clone(), self.access.taint))
                .or_insert_with(|| Batch::new(now));
            for (id, level) in seen {
                batch.uses = batch.uses.saturating_add(1);
                let last = self.now.clone();
                batch.add(
                    id,
                    Use {
                        level,
                        count: 1,
                        last,
                    },
                );
            }
            batch.is_due(now)
        };
        if due {
            self.inner
                .write_usage(&self.access.agent, self.access.taint, now);
        }
    }

    /// On which visible level a record is. Only the levels that this call has
    /// read from are asked: what it was given came from one of them.
    fn level_of(&self, id: &str) -> Option<Level> {
        let here = |db: &Connection| {
            Ok(db
                .prepare_cached("SELECT 1 FROM record WHERE id = ?1")?
                .exists([id])?)
        };
        self.shelves()
            .iter()
            .find(|shelf| matches!(self.on(shelf, |db, _| here(db)), Ok(Some(true))))
            .map(|shelf| shelf.file.level)
    }

    pub(super) fn used_page(
        &mut self,
        level: Level,
        after: usize,
        limit: usize,
        excerpt: usize,
    ) -> Result<Memories, Error> {
        let taint = self.access.taint;
        self.open_upwards(level)?;
        // Tried once a call, since it may have to wait.
        if self.access.read_only.is_none() && !self.use_waits {
            let now = self.access.now.millis();
            self.use_waits = !self.inner.write_usage(&self.access.agent, taint, now);
        }
        let rows = self.rows(limit, limits::PAGE);
        let page = self.on(self.shelf(taint)?, |counts, _| {
            let page = self.on(self.shelf(level)?, |db, book| {
                let most = after.saturating_add(rows).saturating_add(1);
                let order = self.order_of_use(counts, db, book, most)?;
                let mut page = Filling::new(rows);
                for seq in order.into_iter().skip(after) {
                    if let Some(record) = book.by_seq(db, seq)?
                        && self.is_live(db, book, &record)?
                        && !page.add(self.memory(level, record, excerpt)?)
                    {
                        break;
                    }
                }
                Ok(page.memories)
            })?;
            Ok(page)
        })?;
        Ok(page.flatten().unwrap_or_default())
    }

    /// The first rows of live records in the order of their use, at least `most`
    /// where there are as many.
    fn order_of_use(
        &self,
        counts: &Connection,
        db: &Connection,
        book: &Book<'_>,
        most: usize,
    ) -> Result<Vec<i64>, Fault> {
        let level = book.file.level;
        let mut heads = db.prepare_cached(concat!(
            "SELECT key, seq FROM record
             WHERE id = ?1 AND (expires_at IS NULL OR expires_at > ?2) AND ",
            indexed!()
        ))?;
        let mut statement = counts.prepare_cached(
            "SELECT record_id, uses FROM usage WHERE record_level = ?1 ORDER BY uses DESC",
        )?;
        let mut rows = statement.query([level.name()])?;
        let mut order: Vec<i64> = Vec::new();
        // Those used equally often, which stand in the order of their keys.
        let mut equal: Vec<(String, i64)> = Vec::new();
        let mut often: Option<i64> = None;
        let settle = |equal: &mut Vec<(String, i64)>, order: &mut Vec<i64>| {
            equal.sort();
            order.extend(equal.drain(..).map(|(_, seq)| seq));
        };
        while let Some(row) = rows.next()? {
            let (id, uses): (String, i64) = (row.get(0)?, row.get(1)?);
            if often != Some(uses) {
                settle(&mut equal, &mut order);
                if order.len() >= most {
                    break;
                }
                often = Some(uses);
            }
            let head: Option<(String, i64)> = heads
                .query_row((&id, &self.now), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some(head) = head
                && !book.has_edge_from(db, &id)?
                && !self.hidden_from_above(level, &id)?
            {
                equal.push(head);
            }
        }
        settle(&mut equal, &mut order);
        Ok(order)
    }
}
