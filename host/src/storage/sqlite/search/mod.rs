//! Search: BM25 over the statistics of exactly the files that a call may see.
//!
//! FTS5's own `bm25()` knows the statistics of one file only, so its scores from
//! two files don't compare, and a scale that is common to all would have to come
//! from files which the session may not see. So only the [index](index) is FTS5's;
//! the [postings] of each term are read from it, and scored here. How many records
//! there are, how many hold a term and how long they are on average is summed over the
//! visible files, as if they were one.
//!
//! What a query asks for and what each term of it weighs is told in
//! [`crate::search`].
//!
//! # Reproducibility
//!
//! Counts are whole numbers, and a record's score is a sum over the terms in their
//! order in the query: the same visible records give the same bits, whatever else
//! the store holds and however it is spread over files.
//!
//! # Performance
//!
//! All matches are scored, from the postings alone: of each term of the query that
//! is no stop word, and of each of its grams that few enough records hold to tell
//! anything. Only as many records are read as a page needs: the best are taken off
//! a heap until enough of them turn out to be live. Expired records, and those
//! which an edge hides, count in the statistics until they leave the index.

use std::collections::{BTreeMap, BinaryHeap};

use rusqlite::{Connection, OptionalExtension as _};

use super::connection::interrupted;
use super::fault::Fault;
use super::read::SqliteShelves;
use super::record::Book;
use super::schema::{Kind, indexed};
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::search::analyser::Analyser;
use crate::search::query::{Query, Term, TermKind};
use crate::search::score::{self, Collection, NEAR_WORDS, Weighing};
use crate::search::snippet::Wanted;
use crate::storage::{Match, Matches, limits};
use index::{Column, Place};

pub(super) mod index;
pub(super) mod postings;

/// What a text was found to match, on all visible levels.
pub(super) struct Ranking {
    text: String,
    wanted: Wanted,
    left_out: usize,
    levels: Vec<Ranked>,
}

/// One level's matches.
struct Ranked {
    level: Level,
    /// Not yet looked at.
    waiting: BinaryHeap<Scored>,
    /// Found live, best first.
    hits: Vec<Scored>,
}

/// A row of the index with its score.
#[derive(Clone, Copy, Debug)]
struct Scored {
    score: f64,
    seq: i64,
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.seq.cmp(&self.seq))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scored {}

/// The scores of a file's records while they are added up.
///
/// In blocks of neighbours, since the postings come in the order of the rows: as
/// fast as an array, and no larger than what matches.
#[derive(Default)]
struct Scores {
    blocks: BTreeMap<i64, Box<Block>>,
    /// What those get on top of it all whose key the query names.
    named: BTreeMap<i64, f64>,
}

struct Block {
    scores: [f64; BLOCK],
    /// Which of the query's words each holds; those from the 64th on as one.
    words: [u64; BLOCK],
}

const BLOCK: usize = 512;

impl Scores {
    /// Adds to records in the order of their rows; `word` is which of the query's
    /// words they hold, if it is a word that they hold.
    fn add(&mut self, word: Option<usize>, adding: impl Iterator<Item = (i64, f64)>) {
        let bit = word.map_or(0, |word| 1_u64 << word.min(63));
        let width = i64::try_from(BLOCK).unwrap_or(i64::MAX);
        let mut adding = adding.peekable();
        while let Some((seq, _)) = adding.peek() {
            let number = seq.div_euclid(width);
            let block = self.blocks.entry(number).or_insert_with(|| {
                Box::new(Block {
                    scores: [0.0; BLOCK],
                    words: [0; BLOCK],
                })
            });
            while let Some((seq, more)) = adding.next_if(|(seq, _)| seq.div_euclid(width) == number)
            {
                let place = usize::try_from(seq.rem_euclid(width)).unwrap_or(usize::MAX);
                if let (Some(score), Some(words)) =
                    (block.scores.get_mut(place), block.words.get_mut(place))
                {
                    *score += more;
                    *words |= bit;
                }
            }
        }
    }

    /// All that have a score.
    fn finish(self, words: usize) -> BinaryHeap<Scored> {
        let width = i64::try_from(BLOCK).unwrap_or(i64::MAX);
        let mut all = Vec::new();
        for (number, block) in self.blocks {
            let first = number.saturating_mul(width);
            for (place, (score, held)) in (0_i64..).zip(block.scores.iter().zip(&block.words)) {
                let seq = first.saturating_add(place);
                let named = self.named.get(&seq).copied().unwrap_or(0.0);
                if *score > 0.0 || named > 0.0 {
                    let score = named + score::with_all(*score, held.count_ones(), words);
                    all.push(Scored { score, seq });
                }
            }
        }
        BinaryHeap::from(all)
    }
}

/// Scores what a query matches, term by term, over all visible files at once.
struct Scoring<'a> {
    shelves: &'a SqliteShelves,
    collection: Collection,
    files: Vec<Scores>,
    /// More than what any record has so far.
    bound: f64,
    wanted: Wanted,
}

impl Scoring<'_> {
    /// What each visible file says, its own first.
    fn each<T: Default>(
        shelves: &SqliteShelves,
        mut ask: impl FnMut(&Connection) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Error> {
        shelves
            .shelves()
            .iter()
            .map(|shelf| {
                let found = shelves.on(shelf, |db, _| {
                    // Reckoning is out of sight of SQLite's own watch.
                    if std::time::Instant::now() < shelves.access.deadline {
                        ask(db)
                    } else {
                        Err(interrupted())
                    }
                })?;
                Ok(found.unwrap_or_default())
            })
            .collect()
    }

    fn ask<T: Default>(
        &self,
        mut ask: impl FnMut(&Connection) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Error> {
        Self::each(self.shelves, |db| ask(db).map_err(Fault::in_index))
    }

    /// Scores one term, and tells where it is.
    fn term(&mut self, term: &Term) -> Result<(Vec<Vec<Place>>, u64), Error> {
        let found = self.ask(|db| index::places(db, &term.text))?;
        let holding = holding(&found);
        if holding > 0 {
            let weighing = Weighing::term(self.collection, term.kind, holding);
            self.add(&weighing, Some(term.word), &found);
            self.wanted
                .terms
                .insert(term.text.clone(), weighing.weight());
        }
        Ok((found, holding))
    }

    fn add(&mut self, weighing: &Weighing, word: Option<usize>, found: &[Vec<Place>]) {
        self.bound += weighing.bound();
        for (scores, places) in self.files.iter_mut().zip(found) {
            scores.add(
                word,
                counted(places).map(|(row, often)| {
                    let (seq, length) = index::record_of(row);
                    (seq, weighing.of(often, length))
                }),
            );
        }
    }

    /// Scores the grams of a word that so many records hold.
    fn grams(&mut self, term: &Term, holding: u64) -> Result<(), Error> {
        let most = self.collection.most_for_a_gram();
        for gram in &term.grams {
            let mut room = most;
            let mut common = false;
            let found = self.ask(|db| {
                if common {
                    return Ok(Vec::new());
                }
                let rows = index::rows_with_gram(db, gram, room)?;
                common = rows.is_none();
                let rows = rows.unwrap_or_default();
                room = room.saturating_sub(u64::try_from(rows.len()).unwrap_or(u64::MAX));
                Ok(rows)
            })?;
            let number: usize = found.iter().map(Vec::len).sum();
            if common || number == 0 {
                continue;
            }
            let number = u64::try_from(number).unwrap_or(u64::MAX);
            let weighing = Weighing::gram(self.collection, number, holding);
            self.bound += weighing.bound();
            self.wanted.grams.insert(gram.clone(), weighing.weight());
            for (scores, rows) in self.files.iter_mut().zip(&found) {
                scores.add(
                    None,
                    rows.iter().map(|(row, twice)| {
                        let (seq, length) = index::record_of(*row);
                        (seq, weighing.of(if *twice { 2 } else { 1 }, length))
                    }),
                );
            }
        }
        Ok(())
    }

    /// Scores that two words are near each other, as they are in the query.
    fn near(&mut self, ones: &[Vec<Place>], others: &[Vec<Place>]) {
        let steps: Vec<Vec<(i64, u32)>> = ones
            .iter()
            .zip(others)
            .map(|(ones, others)| nearest(ones, others))
            .collect();
        let holding: usize = steps.iter().map(Vec::len).sum();
        if holding == 0 {
            return;
        }
        let near = score::near(self.collection, u64::try_from(holding).unwrap_or(u64::MAX));
        self.bound += near(1);
        for (scores, steps) in self.files.iter_mut().zip(&steps) {
            scores.add(
                None,
                steps
                    .iter()
                    .map(|(row, steps)| (index::record_of(*row).0, near(*steps))),
            );
        }
    }

    /// Scores what follows each other as in a quoted phrase.
    fn phrase(&mut self, terms: &[String]) -> Result<(), Error> {
        let found = self.ask(|db| phrase(db, terms))?;
        let holding = holding(&found);
        if holding > 0 {
            let weighing = Weighing::phrase(self.collection, holding);
            self.add(&weighing, None, &found);
        }
        Ok(())
    }

    /// Scores words that begin as the last one of the query.
    fn prefix(&mut self, prefix: &str) -> Result<(), Error> {
        let mut terms: BTreeMap<String, u64> = BTreeMap::new();
        for (term, often) in self
            .ask(|db| index::beginning(db, prefix, PREFIX_TERMS))?
            .into_iter()
            .flatten()
        {
            let sum = terms.entry(term).or_default();
            *sum = sum.saturating_add(often);
        }
        let mut found: Vec<Vec<Place>> = self.files.iter().map(|_| Vec::new()).collect();
        let mut terms: Vec<(u64, String)> = terms
            .into_iter()
            .take(PREFIX_TERMS)
            .filter(|(term, _)| !self.wanted.terms.contains_key(term))
            .map(|(term, often)| (often, term))
            .collect();
        // The rarest tell the most. The first is taken however often it is there: it may
        // be all that begins so.
        terms.sort_unstable();
        let mut room = PREFIX_PLACES;
        for (number, (often, term)) in terms.into_iter().enumerate() {
            if often > room && number > 0 {
                break;
            }
            room = room.saturating_sub(often);
            for (all, some) in found
                .iter_mut()
                .zip(self.ask(|db| index::places(db, &term))?)
            {
                all.extend(some);
            }
            self.wanted.terms.insert(term, 0.0);
        }
        for places in &mut found {
            places.sort_unstable();
        }
        let holding = holding(&found);
        if holding > 0 {
            let weighing = Weighing::prefix(self.collection, holding);
            self.add(&weighing, None, &found);
            for weight in self
                .wanted
                .terms
                .values_mut()
                .filter(|weight| **weight <= 0.0)
            {
                *weight = weighing.weight();
            }
        }
        Ok(())
    }

    /// Puts records first whose key the query names, those with more words of it
    /// before the others.
    fn keys(&mut self, query: &Query) -> Result<(), Error> {
        let bound = score::bound(self.bound).max(1.0);
        for name in &query.keys {
            let found = self.ask(|db| index::with_key(db, &name.name))?;
            let words = f64::from(u32::try_from(name.words).unwrap_or(u32::MAX));
            for (scores, records) in self.files.iter_mut().zip(found) {
                // None of its words need be one that is scored.
                scores.add(None, records.iter().map(|seq| (*seq, 0.0)));
                scores
                    .named
                    .extend(records.into_iter().map(|seq| (seq, bound * words)));
            }
        }
        Ok(())
    }
}

/// The most terms that a last word is taken for the beginning of, and how often they
/// may be there in all, unless one alone is there more often.
const PREFIX_TERMS: usize = 64;
const PREFIX_PLACES: u64 = 10_000;

/// How often each row is among the places; in the key it counts for more. They are
/// in order.
fn counted(places: &[Place]) -> impl Iterator<Item = (i64, u32)> + '_ {
    places.chunk_by(|a, b| a.row == b.row).filter_map(|same| {
        let often = same.iter().fold(0_u32, |often, place| {
            often.saturating_add(match place.column {
                Column::Key => score::KEY_COUNT,
                Column::Content | Column::Tags => 1,
            })
        });
        same.first().map(|place| (place.row, often))
    })
}

/// How many records have any of the places, over all files.
fn holding(files: &[Vec<Place>]) -> u64 {
    let holding: usize = files.iter().map(|places| counted(places).count()).sum();
    u64::try_from(holding).unwrap_or(u64::MAX)
}

/// The rows in which a place of the one list is near a place of the other, in the
/// same column, and the fewest steps from the one to the other.
fn nearest(ones: &[Place], others: &[Place]) -> Vec<(i64, u32)> {
    let most = NEAR_WORDS;
    let mut near: Vec<(i64, u32)> = Vec::new();
    let mut behind = others;
    for one in ones {
        // Those too far ahead of this one are so of all that follow.
        let passed = behind.partition_point(|other| {
            (
                other.row,
                other.column,
                other.offset.saturating_add_unsigned(most),
            ) < (one.row, one.column, one.offset)
        });
        behind = behind.get(passed..).unwrap_or_default();
        let steps = behind
            .iter()
            .take_while(|other| {
                (other.row, other.column, other.offset)
                    <= (
                        one.row,
                        one.column,
                        one.offset.saturating_add_unsigned(most),
                    )
            })
            .map(|other| one.offset.abs_diff(other.offset))
            .min();
        let Some(steps) = steps else {
            continue;
        };
        match near.last_mut() {
            Some((row, fewest)) if *row == one.row => *fewest = steps.min(*fewest),
            _ => near.push((one.row, steps)),
        }
    }
    near
}

/// Where terms follow each other within one column: where the first of them is.
///
/// Each different term is read once, and only one at a time is held, so that a
/// phrase costs no more than its terms occur.
fn phrase(db: &Connection, terms: &[String]) -> Result<Vec<Place>, Fault> {
    let mut distances: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (distance, term) in (0_i32..).zip(terms) {
        distances.entry(term).or_default().push(distance);
    }
    // Where the phrase may begin, as far as the terms so far can tell. In which
    // order they are asked makes no difference.
    let mut starts: Option<Vec<Place>> = None;
    for (term, distances) in distances {
        let places = index::places(db, term)?;
        for distance in distances {
            let begins = places.iter().map(|place| Place {
                offset: place.offset.saturating_sub(distance),
                ..*place
            });
            let both = match starts.take() {
                None => begins.collect(),
                Some(starts) => common(&starts, begins),
            };
            if both.is_empty() {
                return Ok(Vec::new());
            }
            starts = Some(both);
        }
    }
    Ok(starts.unwrap_or_default())
}

/// What two sorted lists have in common.
fn common(some: &[Place], others: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut others = others.peekable();
    some.iter()
        .copied()
        .filter(|place| {
            while others.next_if(|other| other < place).is_some() {}
            others.peek() == Some(place)
        })
        .collect()
}

impl SqliteShelves {
    pub(super) fn search_page(
        &mut self,
        level: Level,
        text: &str,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
        self.shelf(level)?;
        self.open(|_| true)?;
        let page = self.in_snapshot(level, text, after, limit);
        // Whatever came of it: the next call finds no transaction open.
        let ended = Scoring::each(self, |db| {
            if !db.is_autocommit() {
                db.execute_batch("COMMIT")?;
            }
            Ok(())
        });
        let page = page?;
        ended?;
        Ok(page)
    }

    /// Does it with one snapshot of each file: the counts must fit what they count. Leaves
    /// them open.
    fn in_snapshot(
        &mut self,
        level: Level,
        text: &str,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
        Scoring::each(self, |db| Ok(db.execute_batch("BEGIN")?))?;
        let mut ranking = match self.ranking.take() {
            Some(ranking) if ranking.text == text => ranking,
            _ => self.rank(text)?,
        };
        let wanted = &ranking.wanted;
        let mut page = match ranking.levels.iter_mut().find(|found| found.level == level) {
            Some(found) => self.matches(found, wanted, after, limit)?,
            None => Matches::default(),
        };
        page.left_out = ranking.left_out;
        self.ranking = Some(ranking);
        Ok(page)
    }

    fn rank(&mut self, text: &str) -> Result<Ranking, Error> {
        if text.len() > limits::QUERY_BYTES {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("The query has {} bytes", text.len()),
                format!("At most {} are searched for", limits::QUERY_BYTES),
                "Ask with fewer words",
            ));
        }
        let mut query = Query::new(&Analyser::new(), text);
        for shelf in self.shelves() {
            self.on(shelf, |db, _| Kind::level(&shelf.file).check_current(db))?;
        }
        let (files, wanted) = self.score(&mut query)?;
        let levels = self
            .shelves()
            .iter()
            .zip(files)
            .map(|(shelf, scores)| Ranked {
                level: shelf.file.level,
                waiting: scores.finish(query.words),
                hits: Vec::new(),
            })
            .collect();
        Ok(Ranking {
            text: text.to_owned(),
            wanted,
            left_out: query.left_out,
            levels,
        })
    }

    fn score(&self, query: &mut Query) -> Result<(Vec<Scores>, Wanted), Error> {
        let collections = Scoring::each(self, |db| index::collection(db).map_err(Fault::in_index))?;
        let sum =
            |of: fn(&Collection) -> u64| collections.iter().map(of).fold(0, u64::saturating_add);
        let mut scoring = Scoring {
            shelves: self,
            collection: Collection {
                records: sum(|file| file.records),
                terms: sum(|file| file.terms),
            },
            files: collections.iter().map(|_| Scores::default()).collect(),
            bound: 0.0,
            wanted: Wanted::default(),
        };
        query.cut(|term| {
            let holding = scoring.ask(|db| index::holding(db, term))?;
            Ok::<_, Error>(holding.into_iter().fold(0, u64::saturating_add))
        })?;
        let mut last: Option<(&str, Vec<Vec<Place>>)> = None;
        for term in &query.terms {
            let (found, holding) = scoring.term(term)?;
            scoring.grams(term, holding)?;
            if let Some((text, before)) = &last
                && term.behind.as_deref() == Some(*text)
            {
                scoring.near(before, &found);
            }
            if term.kind == TermKind::Stem {
                last = Some((&term.text, found));
            }
        }
        for terms in &query.phrases {
            scoring.phrase(terms)?;
        }
        if let Some(prefix) = &query.prefix {
            scoring.prefix(prefix)?;
        }
        scoring.keys(query)?;
        Ok((scoring.files, scoring.wanted))
    }

    fn matches(
        &self,
        found: &mut Ranked,
        wanted: &Wanted,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
        let analyser = Analyser::new();
        let rows = self.rows(limit, limits::MATCHES);
        let page = self.on(self.shelf(found.level)?, |db, book| {
            let mut page = Matches::default();
            let mut at = after;
            loop {
                self.look_at(db, book, found, at)?;
                let Some(hit) = found.hits.get(at).copied() else {
                    break;
                };
                if page.items.len() >= rows {
                    page.more = true;
                    break;
                }
                let record = match book.by_seq(db, hit.seq)? {
                    Some(record) if self.is_live(db, book, &record)? => record,
                    // It was ended since it was ranked.
                    _ => {
                        found.hits.remove(at);
                        continue;
                    }
                };
                let snippet = wanted
                    .part(&analyser, &record.content, limits::SNIPPET_BYTES)
                    .to_owned();
                page.items.push(Match {
                    memory: self.memory(found.level, record, limits::EXCERPT_BYTES)?,
                    score: hit.score,
                    snippet,
                });
                at = at.saturating_add(1);
            }
            Ok(page)
        })?;
        Ok(page.unwrap_or_default())
    }

    /// Takes matches off the heap until the one at that position is known, in
    /// the order of their scores and then their keys, leaving out those that are
    /// not live.
    fn look_at(
        &self,
        db: &Connection,
        book: &Book<'_>,
        found: &mut Ranked,
        position: usize,
    ) -> Result<(), Fault> {
        let mut heads = db.prepare_cached(concat!(
            "SELECT key, id FROM record
             WHERE seq = ?1 AND (expires_at IS NULL OR expires_at > ?2) AND ",
            indexed!()
        ))?;
        while found.hits.len() <= position {
            let Some(best) = found.waiting.peek().copied() else {
                break;
            };
            let mut equal: Vec<(String, Scored)> = Vec::new();
            while let Some(next) = found.waiting.peek().copied()
                && next.score.total_cmp(&best.score).is_eq()
            {
                found.waiting.pop();
                let head: Option<(String, String)> = heads
                    .query_row((next.seq, &self.now), |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                if let Some((key, id)) = head
                    && !book.has_edge_from(db, &id)?
                    && !self.hidden_from_above(book.file.level, &id)?
                {
                    equal.push((key, next));
                }
            }
            equal.sort_by(|(a, _), (b, _)| a.cmp(b));
            found.hits.extend(equal.into_iter().map(|(_, hit)| hit));
        }
        Ok(())
    }
}
