//! What a call may change: its own level, and nothing else.
//!
//! A record, its index and its line in the audit trail are one transaction, and
//! a method answers only after the commit. What is less trusted never replaces,
//! deletes or hides what is more trusted: such a save waits for a person, such a
//! deletion is refused.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::event::{self, Line};
use super::fault::Fault;
use super::read::SqliteShelves;
use super::record::{Book, Record};
use super::schema::Kind;
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::provenance::{Origin, Standing};
use crate::storage::{Draft, Notable, Outcome, Receipt, check_draft, check_key};

impl SqliteShelves {
    /// Does something in one transaction on the session's own level. What the
    /// work refuses is committed all the same: its line in the audit trail.
    pub(super) fn transact<T>(
        &mut self,
        work: impl FnOnce(&Self, &Connection, &Book<'_>) -> Result<Result<T, Error>, Fault>,
    ) -> Result<T, Error> {
        let file = self
            .inner
            .layout
            .level(&self.access.agent, self.access.taint);
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.inner.writer(&file, Some(self.access.deadline))?,
        };
        let result = writer.run(|db| {
            let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            Kind::level(&file).check_current(&tx)?;
            let done = work(self, &tx, &self.inner.book(&file))?;
            tx.commit()?;
            Ok(done)
        });
        self.writer = Some(writer);
        // What an earlier search found may be otherwise now.
        self.ranking = None;
        result.flatten()
    }

    pub(super) fn line<'a>(
        &'a self,
        kind: &'a str,
        record: Option<(&'a str, &'a str)>,
        detail: Option<&'a str>,
    ) -> Line<'a> {
        Line {
            at: &self.now,
            kind,
            session: &self.access.session,
            origin: self.access.origin,
            record,
            detail,
        }
    }

    pub(super) fn append(&mut self, notable: Notable) -> Result<(), Error> {
        let (kind, detail) = match notable {
            Notable::ArgumentIgnored(argument) => ("argument-ignored", Some(argument.name())),
            Notable::WriteRefused => ("write-refused", None),
            Notable::Raised => ("raise", None),
            Notable::RaisedAboveClearance => ("raise", Some("above-clearance")),
        };
        if self.access.trail != self.access.taint {
            self.append_above(kind, detail);
            return Ok(());
        }
        self.transact(|shelves, db, book| {
            event::append(db, book, shelves.line(kind, None, detail))?;
            Ok(Ok(()))
        })
    }

    /// Adds a line to the trail of a level that the session may not see. What
    /// keeps it from being written is not told, since the session would learn of
    /// that level's file.
    fn append_above(&self, kind: &str, detail: Option<&str>) {
        let (agent, level) = (&self.access.agent, self.access.trail);
        let line = self.line(kind, None, detail);
        if let Err(error) = self.inner.append(agent, level, line) {
            let cause = crate::error::chain(&error);
            tracing::error!("a line is missing from an audit trail: {cause}");
        }
    }

    /// Refuses, in the audit trail too, where the session may not write.
    pub(super) fn check_may_write(&mut self) -> Result<(), Error> {
        let Some(reason) = self.access.read_only.clone() else {
            return Ok(());
        };
        let refused = Error::refused(
            reason,
            "Reading goes on as before",
            "Start another session to write",
        );
        if self.access.trail != self.access.taint {
            self.append_above("write-refused", Some("read-only"));
            return Err(refused);
        }
        self.transact(|shelves, db, book| {
            event::append(
                db,
                book,
                shelves.line("write-refused", None, Some("read-only")),
            )?;
            Ok(Err(refused))
        })
    }

    pub(super) fn save(&mut self, draft: &Draft) -> Result<Receipt, Error> {
        check_draft(draft, self.access.now)?;
        self.check_may_write()?;
        if !draft.supersedes.is_empty() {
            let taint = self.access.taint;
            self.open(|level| level != taint)?;
        }
        self.transact(|shelves, db, book| {
            let receipt = shelves.save_in(db, book, draft)?;
            let outcome = match receipt.outcome {
                Outcome::Created => "created",
                Outcome::Updated => "updated",
                Outcome::Unchanged => "unchanged",
                Outcome::Pending => "pending",
                Outcome::Quarantined => "quarantined",
            };
            let record = Some((receipt.id.as_str(), draft.key.as_str()));
            event::append(db, book, shelves.line("save", record, Some(outcome)))?;
            Ok(Ok(receipt))
        })
    }

    fn save_in(&self, db: &Connection, book: &Book<'_>, draft: &Draft) -> Result<Receipt, Fault> {
        let origin = self.access.origin;
        let tags = serde_json::to_string(&draft.tags)
            .map_err(|_| Fault::Altered("the tags can't be written"))?;
        let expires_at = draft.expires_at.map(Instant::to_sql);
        let same = |record: &Record| record.content == draft.content && record.tags == tags;
        let mut replaced: Vec<(Level, Record)> = Vec::new();
        for id in &draft.supersedes {
            let known = replaced.iter().any(|(_, record)| record.id == *id);
            if !known {
                let visible = self.visible(Some((db, book)), id)?;
                replaced.push(visible.ok_or_else(|| not_visible(id))?);
            }
        }

        let previous = book.indexed(db, &draft.key)?;
        let live = match &previous {
            Some(record) if self.is_live(db, book, record)? => Some(record),
            _ => None,
        };
        let tombstone = book.tombstone(db, &draft.key)?;
        let outcome = if origin == Origin::Tool {
            Outcome::Quarantined
        } else if let Some(tombstone) = &tombstone
            && tombstone.origin()?.outranks(origin)
        {
            Outcome::Pending
        } else if let Some(live) = live
            && live.origin()?.outranks(origin)
        {
            if same(live) && replaced.is_empty() {
                Outcome::Unchanged
            } else {
                Outcome::Pending
            }
        } else if self.outranked(&replaced)? {
            Outcome::Pending
        } else if let Some(live) = live {
            // The person who says what the model had said makes it their own.
            let nothing_new = same(live)
                && replaced.is_empty()
                && live.source == draft.source
                && live.expires_at == expires_at
                && !origin.outranks(live.origin()?);
            if nothing_new {
                Outcome::Unchanged
            } else {
                Outcome::Updated
            }
        } else {
            Outcome::Created
        };

        let standing = match outcome {
            Outcome::Created | Outcome::Updated | Outcome::Unchanged => Standing::Trusted,
            Outcome::Pending => Standing::Pending,
            Outcome::Quarantined => Standing::Quarantined,
        };
        let there = match outcome {
            Outcome::Unchanged => live.cloned(),
            // Saying again what already waits adds nothing.
            Outcome::Pending | Outcome::Quarantined => {
                book.apart(db, &draft.key)?.into_iter().find(|waiting| {
                    waiting.standing == standing.name()
                        && same(waiting)
                        && !waiting.has_expired(&self.now)
                })
            }
            Outcome::Created | Outcome::Updated => None,
        };
        for waiting in book.apart(db, &draft.key)? {
            let is_answered = match outcome {
                // Once the person has spoken nothing waits any more.
                Outcome::Created | Outcome::Updated | Outcome::Unchanged => origin == Origin::User,
                // Of what is saved again and again only the last waits.
                Outcome::Pending | Outcome::Quarantined => {
                    there.is_none()
                        && waiting.standing == standing.name()
                        && !waiting.origin()?.outranks(origin)
                }
            };
            if is_answered {
                book.supersede(db, waiting, &self.now)?;
            }
        }
        if let Some(record) = there {
            return self.receipt(outcome, &record);
        }

        let created_at = match (outcome, live) {
            (Outcome::Updated, Some(live)) => live.created_at.clone(),
            _ => self.now.clone(),
        };
        let mut record = Record {
            seq: 0,
            id: self.new_id()?,
            key: draft.key.clone(),
            tags,
            origin: origin.name().to_owned(),
            standing: standing.name().to_owned(),
            source: draft.source.clone(),
            session: self.access.session.clone(),
            version: next_version(db, &draft.key)?,
            created_at,
            updated_at: self.now.clone(),
            confirmed_at: None,
            expires_at,
            superseded_at: None,
            deleted_at: None,
            hides_lower: false,
            supersedes: serde_json::to_string(&draft.supersedes)
                .map_err(|_| Fault::Altered("the ids can't be written"))?,
            seal: Vec::new(),
            content: draft.content.clone(),
        };
        if standing == Standing::Trusted {
            if let Some(tombstone) = tombstone {
                book.supersede(db, tombstone, &self.now)?;
            }
            if let Some(previous) = previous {
                replaced.retain(|(_, record)| record.id != previous.id);
                book.supersede(db, previous, &self.now)?;
            }
            for (level, old) in replaced {
                book.add_edge(db, &old.id, level, &record)?;
                if level == self.access.taint {
                    book.supersede(db, old, &self.now)?;
                }
            }
        }
        book.insert(db, &mut record)?;
        self.receipt(outcome, &record)
    }

    /// Whether any of these is more trusted than the session.
    fn outranked(&self, records: &[(Level, Record)]) -> Result<bool, Fault> {
        for (_, record) in records {
            if record.origin()?.outranks(self.access.origin) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The live record with that id, on any level that the session sees.
    ///
    /// `own` is a transaction on the session's own level: it may be ahead of that
    /// level's reader, so it is asked in its place.
    pub(super) fn visible(
        &self,
        own: Option<(&Connection, &Book<'_>)>,
        id: &str,
    ) -> Result<Option<(Level, Record)>, Fault> {
        let look = |db: &Connection, book: &Book<'_>| match book.by_id(db, id)? {
            Some(record) if self.is_live(db, book, &record)? => Ok(Some(record)),
            _ => Ok(None),
        };
        for shelf in self.shelves() {
            let level = shelf.file.level;
            let found = match own {
                Some((db, book)) if level == self.access.taint => look(db, book)?,
                _ => self.on(shelf, look)?.flatten(),
            };
            let hidden = match own {
                Some((db, book)) if found.is_some() => book.has_edge_from(db, id)?,
                _ => false,
            };
            if let Some(record) = found
                && !hidden
            {
                return Ok(Some((level, record)));
            }
        }
        Ok(None)
    }

    fn receipt(&self, outcome: Outcome, record: &Record) -> Result<Receipt, Fault> {
        Ok(Receipt {
            outcome,
            id: record.id.clone(),
            level: self.access.taint,
            origin: record.origin()?,
            standing: match outcome {
                Outcome::Created | Outcome::Updated | Outcome::Unchanged => Standing::Trusted,
                Outcome::Pending => Standing::Pending,
                Outcome::Quarantined => Standing::Quarantined,
            },
            version: u64::try_from(record.version).unwrap_or(0),
        })
    }

    fn new_id(&self) -> Result<String, Fault> {
        let bytes = match &self.inner.options.ids {
            Some(ids) => ids(),
            None => {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes)
                    .map_err(|error| std::io::Error::other(error.to_string()))?;
                bytes
            }
        };
        Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    pub(super) fn delete(&mut self, key: &str, hide_lower: bool) -> Result<Option<String>, Error> {
        check_key(key)?;
        self.check_may_write()?;
        let taint = self.access.taint;
        self.open(|level| level == taint || hide_lower)?;
        // Read before the lock is taken: these files are others'.
        let mut lower = Lower::None;
        for shelf in self.shelves() {
            if hide_lower && shelf.file.level != taint {
                let found = self.on(shelf, |db, book| match self.live(db, book, key)? {
                    Some(record) if record.origin()?.outranks(self.access.origin) => {
                        Ok(Lower::MoreTrusted)
                    }
                    Some(_) => Ok(Lower::Live),
                    None => Ok(Lower::None),
                })?;
                lower = lower.max(found.unwrap_or(Lower::None));
            }
        }
        // Where nothing can be deleted or hidden, no file is made for it.
        let has_file = self.on(self.shelf(taint)?, |_, _| Ok(()))?.is_some();
        if !has_file && lower == Lower::None {
            return Ok(None);
        }
        self.transact(|shelves, db, book| shelves.delete_in(db, book, key, hide_lower, lower))
    }

    fn delete_in(
        &self,
        db: &Connection,
        book: &Book<'_>,
        key: &str,
        hide_lower: bool,
        lower: Lower,
    ) -> Result<Result<Option<String>, Error>, Fault> {
        let live = self.live(db, book, key)?;
        if let Some(record) = &live
            && record.origin()?.outranks(self.access.origin)
        {
            let record = Some((record.id.as_str(), key));
            event::append(db, book, self.line("write-refused", record, Some("origin")))?;
            return Ok(Err(too_trusted("deleted")));
        }
        if lower == Lower::MoreTrusted {
            event::append(db, book, self.line("write-refused", None, Some("origin")))?;
            return Ok(Err(too_trusted("hidden")));
        }
        let deleted = live.as_ref().map(|record| record.id.clone());
        let old = book.tombstone(db, key)?;
        let hides = match &old {
            None => live.is_some() || lower == Lower::Live,
            // One of somebody less trusted leaves more in sight.
            Some(old) => lower == Lower::Live && self.access.origin.outranks(old.origin()?),
        };
        let hides = hide_lower && hides;
        if live.is_none() && !hides {
            return Ok(Ok(None));
        }
        let mut ended = live;
        if let Some(record) = &mut ended {
            book.end(db, record, |record| {
                record.deleted_at = Some(self.now.clone());
            })?;
        }
        if self.access.origin == Origin::User {
            for mut waiting in book.apart(db, key)? {
                book.end(db, &mut waiting, |waiting| {
                    waiting.deleted_at = Some(self.now.clone());
                })?;
            }
        }
        // A tombstone is a row of its own: it has the authority of whoever
        // deletes, not of whoever wrote.
        if hides {
            if let Some(old) = old {
                book.supersede(db, old, &self.now)?;
            }
            let mut tombstone = self.tombstone(db, key)?;
            book.insert(db, &mut tombstone)?;
            ended.get_or_insert(tombstone);
        }
        let Some(record) = ended else {
            return Ok(Ok(None));
        };
        let named = Some((record.id.as_str(), key));
        let detail = hide_lower.then_some("hide-lower");
        event::append(db, book, self.line("delete", named, detail))?;
        Ok(Ok(deleted))
    }

    /// A tombstone by this session.
    fn tombstone(&self, db: &Connection, key: &str) -> Result<Record, Fault> {
        Ok(Record {
            seq: 0,
            id: self.new_id()?,
            key: key.to_owned(),
            tags: "[]".to_owned(),
            origin: self.access.origin.name().to_owned(),
            standing: Standing::Trusted.name().to_owned(),
            source: None,
            session: self.access.session.clone(),
            version: next_version(db, key)?,
            created_at: self.now.clone(),
            updated_at: self.now.clone(),
            confirmed_at: None,
            expires_at: None,
            superseded_at: None,
            deleted_at: Some(self.now.clone()),
            hides_lower: true,
            supersedes: "[]".to_owned(),
            seal: Vec::new(),
            content: String::new(),
        })
    }
}

/// What stands under a key on the levels below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lower {
    /// Nothing live.
    None,
    /// Something live.
    Live,
    /// Something live that is more trusted than the session.
    MoreTrusted,
}

fn next_version(db: &Connection, key: &str) -> Result<i64, Fault> {
    let newest: Option<i64> = db
        .prepare_cached("SELECT max(version) FROM record WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    newest
        .unwrap_or(0)
        .checked_add(1)
        .ok_or(Fault::Altered("a version is too high"))
}

fn not_visible(id: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("No visible memory has the id \"{}\"", id.escape_debug()),
        "What is superseded must be live and on a level that the session sees",
        "Search or list for it again",
    )
}

fn too_trusted(done: &str) -> Error {
    Error::refused(
        format!("What would be {done} is more trusted than this session"),
        "What the person said is not deleted or hidden by the model, nor what the model said by a tool's words",
        "Ask the person to do it",
    )
}
