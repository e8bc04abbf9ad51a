//! The full-text index is built anew from the records.
//!
//! Everything in it follows from what is kept, so nothing is lost with an index,
//! however it was damaged: where its tables can't even be dropped, they are forgotten,
//! and the file is vacuumed afterwards. Saving keeps it right, and a file that another analyser
//! indexed is indexed again by whoever opens it; so this is for what `verify` finds.
//!
//! # Performance
//!
//! One transaction for each file. Others read the old index meanwhile, and wait to
//! write.

use rusqlite::{Transaction, TransactionBehavior};
use serde::Serialize;

use super::{Operator, Progress, fault_point, purge};
use crate::error::Error;
use crate::level::Level;
use crate::storage::sqlite::layout::LevelFile;
use crate::storage::sqlite::search::index;

/// Between two tellings of how far it is.
const STEP: u64 = 64;

/// A level that was indexed anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelReindexed {
    /// Whose.
    pub agent: String,
    /// Which level.
    pub level: Level,
    /// How many records the index holds.
    pub records: u64,
}

impl Operator<'_> {
    /// Builds the index of each level's file anew, in one transaction, so that a file
    /// is either before or after. Leaves a line in the trail of each.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for an agent that has no files;
    /// [`Unavailable`](crate::ErrorKind::Unavailable). The levels below that file are
    /// done.
    pub fn reindex(
        &self,
        agent: Option<&str>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<LevelReindexed>, Error> {
        let files = self.files_of(agent)?;
        let mut report = Vec::with_capacity(files.len());
        for file in &files {
            let records = match self.reindex_file(file, false, progress) {
                Err(_) if self.is_stuck(file)? => {
                    let records = self.reindex_file(file, true, progress)?;
                    fault_point("reindex-forgotten");
                    // Opening a file for maintenance finishes what is marked in it.
                    self.maintain(file, |_, _| Ok(()))?;
                    records
                }
                done => done?,
            };
            report.push(LevelReindexed {
                agent: file.agent.clone(),
                level: file.level,
                records,
            });
        }
        Ok(report)
    }

    fn reindex_file(
        &self,
        file: &LevelFile,
        forget: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<u64, Error> {
        self.change(file, |db, book| {
            if forget {
                index::forget(db)?;
                // Its pages still lie about: the file is to be written afresh, also where
                // this is not run to its end.
                purge::mark(db, book, &self.now.to_sql())?;
            }
            let records = index::belonging(db)?;
            progress(Progress::of("reindex", file, 0, records));
            index::rebuild(db, |done| {
                if done.is_multiple_of(STEP) || done == records {
                    progress(Progress::of("reindex", file, done, records));
                    fault_point("reindex");
                }
            })?;
            self.log(db, book, "reindex", None, &format!("records={records}"))?;
            Ok(records)
        })
    }

    /// Whether the index of a file is too damaged to be dropped.
    fn is_stuck(&self, file: &LevelFile) -> Result<bool, Error> {
        self.maintain(file, |db, _| {
            // Rolled back when it goes.
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            index::is_stuck(&tx)
        })
    }
}
