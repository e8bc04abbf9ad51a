//! Search: BM25 over the statistics of exactly the files that a call may see.
//!
//! FTS5's own `bm25()` knows the statistics of one file only, so its scores from
//! two files don't compare, and a scale that is common to all would have to come
//! from files which the session may not see. So only the index is FTS5's; what
//! it holds of each word is read through `fts5vocab`, in plain SQL, and scored
//! here. How many records there are, how many hold a word and how long they are
//! on average is summed over the visible files, as if they were one.
//!
//! A word is what stands between white space. FTS5's analyser may see several
//! terms in it (`GB/s`): then they count where they follow each other, as in an
//! FTS5 phrase. Words with the same terms count once.
//!
//! # Reproducibility
//!
//! Counts are whole numbers, and a record's score is a sum over the words in
//! their order in the query: the same visible records give the same bits,
//! whatever else the store holds and however it is spread over files.
//!
//! # Performance
//!
//! All matches are scored, but only as many rows are read as a page needs: the
//! best are taken off a heap until enough of them turn out to be live. Expired
//! records, and those which an edge hides, count in the statistics until they
//! leave the index.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rusqlite::{Connection, OptionalExtension as _};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::connection::interrupted;
use super::fault::Fault;
use super::read::SqliteShelves;
use super::record::{Book, cut};
use super::schema::indexed;
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::storage::{Match, Matches, limits};

/// How soon a word's repetition in a record stops to matter. The customary value.
const K1: f64 = 1.2;
/// How much long records are held back. The customary value.
const B: f64 = 0.75;

/// Bytes of a snippet ahead of the first word that matched, to read it in its
/// context.
pub(super) const LEAD: usize = 60;

/// What a text was found to match, on all visible levels.
pub(super) struct Ranking {
    text: String,
    /// What words that match begin with.
    stems: BTreeSet<String>,
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

/// The words of a text, each once, in their order.
fn words(text: &str) -> Result<Vec<&str>, Error> {
    if text.len() > limits::QUERY_BYTES {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("The query has {} bytes", text.len()),
            format!("At most {} are searched for", limits::QUERY_BYTES),
            "Ask with fewer words",
        ));
    }
    let mut seen = BTreeSet::new();
    let words: Vec<&str> = text
        // SQL text ends at a NUL for some of SQLite's functions.
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| !word.is_empty() && seen.insert(*word))
        .collect();
    if words.len() > limits::QUERY_WORDS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("The query has {} different words", words.len()),
            format!("At most {} are searched for", limits::QUERY_WORDS),
            "Ask with fewer words",
        ));
    }
    Ok(words)
}

/// A word of a query, as the analyser sees it.
struct Word {
    terms: Vec<String>,
}

/// Has FTS5's analyser, the same that the index was made with, take words apart.
pub(super) struct Analyser(Connection);

impl Analyser {
    pub(super) fn new() -> Result<Self, Fault> {
        let db = Connection::open_in_memory()?;
        db.execute_batch(
            "CREATE VIRTUAL TABLE word USING fts5 (text, content = '', tokenize = 'porter unicode61');
             CREATE VIRTUAL TABLE term USING fts5vocab (word, instance);",
        )?;
        Ok(Self(db))
    }

    /// The words that have terms at all; of several with the same terms, the
    /// first.
    fn analyse(&self, words: &[&str]) -> Result<Vec<Word>, Fault> {
        let tx = self.0.unchecked_transaction()?;
        let mut insert = tx.prepare_cached("INSERT INTO word (rowid, text) VALUES (?1, ?2)")?;
        for (number, word) in (0_i64..).zip(words) {
            insert.execute((number, word))?;
        }
        let mut all: Vec<Word> = words.iter().map(|_| Word { terms: Vec::new() }).collect();
        let mut select =
            tx.prepare_cached(r#"SELECT doc, term FROM term ORDER BY doc, "offset""#)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let number = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
            if let Some(word) = all.get_mut(number) {
                word.terms.push(row.get(1)?);
            }
        }
        drop(rows);
        drop(select);
        drop(insert);
        // Nothing of a query stays behind.
        tx.rollback()?;
        let mut seen = BTreeSet::new();
        all.retain(|word| !word.terms.is_empty() && seen.insert(word.terms.clone()));
        Ok(all)
    }
}

/// What one file's index says of the words.
#[derive(Default)]
struct Statistics {
    /// Records in the index.
    records: u64,
    /// Their terms in all.
    terms: u64,
    /// For each word, the rows that hold it and how often.
    postings: Vec<Vec<(i64, u32)>>,
    /// The rows that hold any word, and how many terms each has.
    lengths: Vec<(i64, u64)>,
}

impl Statistics {
    /// Reads them. `in_time` fails once the call has taken too long: what is
    /// reckoned here is out of sight of SQLite's own watch.
    fn read(
        db: &Connection,
        words: &[Word],
        in_time: &impl Fn() -> Result<(), Fault>,
    ) -> Result<Self, Fault> {
        let (records, terms) = totals(db)?;
        let mut postings = Vec::with_capacity(words.len());
        for word in words {
            in_time()?;
            postings.push(match word.terms.as_slice() {
                [term] => occurrences(db, term)?,
                terms => phrase(db, terms, in_time)?,
            });
        }
        let mut rows: Vec<i64> = postings.iter().flatten().map(|(row, _)| *row).collect();
        rows.sort_unstable();
        rows.dedup();
        Ok(Self {
            records,
            terms,
            lengths: lengths(db, &rows, records)?,
            postings,
        })
    }
}

/// How many records the index holds, and how many terms in all: FTS5's "averages"
/// record (<https://sqlite.org/fts5.html#_data_structures>), which it keeps up to
/// date with every change.
fn totals(db: &Connection) -> Result<(u64, u64), Fault> {
    let block: Option<Vec<u8>> = db
        .prepare_cached("SELECT block FROM memory_fts_data WHERE id = 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let mut numbers = varints(block.as_deref().unwrap_or_default());
    let records = numbers.next().unwrap_or(0);
    Ok((records, numbers.fold(0, u64::saturating_add)))
}

/// SQLite's variable-length numbers, one after another.
fn varints(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let mut number = 0_u64;
        let mut read = 0_u32;
        while let Some((byte, rest)) = bytes.split_first() {
            bytes = rest;
            read = read.saturating_add(1);
            if read == 9 {
                return Some((number << 8) | u64::from(*byte));
            }
            number = (number << 7) | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    })
}

/// The rows that hold a term and how often, in the order of the rows.
fn occurrences(db: &Connection, term: &str) -> Result<Vec<(i64, u32)>, Fault> {
    let mut statement = db.prepare_cached("SELECT doc FROM memory_terms WHERE term = ?1")?;
    let mut rows = statement.query([term])?;
    let mut docs = Vec::new();
    while let Some(row) = rows.next()? {
        docs.push(row.get(0)?);
    }
    Ok(counted(docs))
}

/// How often each row appears, in the order of the rows.
fn counted(mut rows: Vec<i64>) -> Vec<(i64, u32)> {
    // FTS5 happens to list them in order, which costs next to nothing then.
    rows.sort_unstable();
    let mut counts: Vec<(i64, u32)> = Vec::new();
    for row in rows {
        match counts.last_mut() {
            Some((last, count)) if *last == row => *count = count.saturating_add(1),
            _ => counts.push((row, 1)),
        }
    }
    counts
}

/// Where a term stands: row, column, and place in it.
type Place = (i64, u8, i64);

/// The rows in which terms follow each other within one column, and how often.
///
/// Each different term is read once, and only one at a time is held, so that a
/// word of thousands of terms costs no more than they occur.
fn phrase(
    db: &Connection,
    terms: &[String],
    in_time: &impl Fn() -> Result<(), Fault>,
) -> Result<Vec<(i64, u32)>, Fault> {
    let mut statement =
        db.prepare_cached(r#"SELECT doc, col, "offset" FROM memory_terms WHERE term = ?1"#)?;
    let mut distances: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (distance, term) in (0_i64..).zip(terms) {
        distances.entry(term).or_default().push(distance);
    }
    // Where the phrase may begin, as far as the terms so far can tell. In which
    // order they are asked makes no difference.
    let mut starts: Option<Vec<Place>> = None;
    for (term, distances) in distances {
        let mut rows = statement.query([term])?;
        let mut places: Vec<Place> = Vec::new();
        while let Some(row) = rows.next()? {
            let column = match row.get_ref(1)?.as_str().unwrap_or_default() {
                "key" => 0,
                "content" => 1,
                _ => 2,
            };
            places.push((row.get(0)?, column, row.get(2)?));
        }
        places.sort_unstable();
        for distance in distances {
            in_time()?;
            let begins = places
                .iter()
                .map(|(row, column, offset)| (*row, *column, offset.saturating_sub(distance)));
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
    let rows = starts
        .unwrap_or_default()
        .into_iter()
        .map(|(row, _, _)| row);
    Ok(counted(rows.collect()))
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

/// How many terms each of the rows has. They are sorted.
fn lengths(db: &Connection, rows: &[i64], records: u64) -> Result<Vec<(i64, u64)>, Fault> {
    let length = |size: &[u8]| varints(size).fold(0, u64::saturating_add);
    let mut lengths = Vec::with_capacity(rows.len());
    // Beyond some share of the table reading all of it is faster.
    let many = u64::try_from(rows.len())
        .unwrap_or(u64::MAX)
        .saturating_mul(6)
        > records;
    if many {
        let mut statement =
            db.prepare_cached("SELECT id, sz FROM memory_fts_docsize ORDER BY id")?;
        let mut all = statement.query([])?;
        let mut wanted = rows.iter().peekable();
        while let Some(next) = wanted.peek() {
            let Some(row) = all.next()? else { break };
            let id: i64 = row.get(0)?;
            if id == **next {
                wanted.next();
                lengths.push((id, length(row.get_ref(1)?.as_blob().unwrap_or_default())));
            }
        }
    } else {
        let mut statement = db.prepare_cached("SELECT sz FROM memory_fts_docsize WHERE id = ?1")?;
        for id in rows {
            let mut found = statement.query([id])?;
            if let Some(row) = found.next()? {
                lengths.push((*id, length(row.get_ref(0)?.as_blob().unwrap_or_default())));
            }
        }
    }
    if lengths.len() == rows.len() {
        Ok(lengths)
    } else {
        Err(Fault::Altered("its index is incomplete"))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of records and terms are far below 2^53"
)]
fn float(number: u64) -> f64 {
    number as f64
}

/// Scores what the words match in each file.
fn score(files: &[Statistics], words: usize) -> Vec<BinaryHeap<Scored>> {
    let sum = |of: fn(&Statistics) -> u64| files.iter().map(of).fold(0, u64::saturating_add);
    let records = float(sum(|file| file.records));
    let average = float(sum(|file| file.terms)) / records;
    let weights: Vec<f64> = (0..words)
        .map(|word| {
            let holding: usize = files
                .iter()
                .filter_map(|file| file.postings.get(word))
                .map(Vec::len)
                .sum();
            let holding = float(u64::try_from(holding).unwrap_or(u64::MAX));
            ((records - holding + 0.5) / (holding + 0.5)).ln_1p()
        })
        .collect();
    files
        .iter()
        .map(|file| {
            let mut scores: Vec<(Scored, f64)> = file
                .lengths
                .iter()
                .map(|(seq, length)| {
                    let held_back = K1 * (1.0 - B + B * float(*length) / average);
                    (
                        Scored {
                            score: 0.0,
                            seq: *seq,
                        },
                        held_back,
                    )
                })
                .collect();
            for (weight, postings) in weights.iter().zip(&file.postings) {
                // Both are in the order of the rows.
                let mut scores = scores.iter_mut();
                for (row, count) in postings {
                    let often = f64::from(*count);
                    if let Some((scored, held_back)) =
                        scores.by_ref().find(|(scored, _)| scored.seq == *row)
                    {
                        scored.score += weight * often * (K1 + 1.0) / (often + *held_back);
                    }
                }
            }
            scores.into_iter().map(|(scored, _)| scored).collect()
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
        let mut ranking = match self.ranking.take() {
            Some(ranking) if ranking.text == text => ranking,
            _ => self.rank(text)?,
        };
        let stems = &ranking.stems;
        let page = match ranking.levels.iter_mut().find(|found| found.level == level) {
            Some(found) => self.matches(found, stems, after, limit)?,
            None => Matches::default(),
        };
        self.ranking = Some(ranking);
        Ok(page)
    }

    fn rank(&mut self, text: &str) -> Result<Ranking, Error> {
        let words = words(text)?;
        let words = self.inner.analyse(|analyser| analyser.analyse(&words))?;
        self.open(|_| true)?;
        let in_time = || {
            if std::time::Instant::now() < self.access.deadline {
                Ok(())
            } else {
                Err(interrupted())
            }
        };
        let mut files = Vec::new();
        for shelf in self.shelves() {
            let statistics = self.on(shelf, |db, _| {
                // One snapshot: the counts must fit what they count.
                let tx = db.unchecked_transaction()?;
                let statistics = Statistics::read(&tx, &words, &in_time)?;
                tx.commit()?;
                Ok(statistics)
            })?;
            files.push(statistics.unwrap_or_default());
        }
        let levels = self
            .shelves()
            .iter()
            .zip(score(&files, words.len()))
            .map(|(shelf, waiting)| Ranked {
                level: shelf.file.level,
                waiting,
                hits: Vec::new(),
            })
            .collect();
        Ok(Ranking {
            text: text.to_owned(),
            stems: words
                .into_iter()
                .flat_map(|word| word.terms)
                .map(stem)
                .collect(),
            levels,
        })
    }

    fn matches(
        &self,
        found: &mut Ranked,
        stems: &BTreeSet<String>,
        after: usize,
        limit: usize,
    ) -> Result<Matches, Error> {
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
                let snippet = snippet(&record.content, stems);
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

/// The part of a content around the first word that matched.
///
/// FTS5's own `snippet()` takes time in the square of the matches, in one step that
/// nothing can interrupt. This one walks through the content once. It knows a word
/// by its stem, which nearly always is how the word begins; where it knows none, the
/// snippet is how the content begins.
fn snippet(content: &str, stems: &BTreeSet<String>) -> String {
    if content.len() <= limits::SNIPPET_BYTES {
        return content.to_owned();
    }
    let first = words_at(content)
        .find(|(_, word)| begins_with_a_stem(word, stems))
        .map_or(0, |(at, _)| at);
    // As much of the content as fits, with something ahead of the match.
    let latest = content.len().saturating_sub(limits::SNIPPET_BYTES);
    let from = content.ceil_char_boundary(first.saturating_sub(LEAD).min(latest));
    let text = content.get(from..).unwrap_or_default();
    cut(text.to_owned(), limits::SNIPPET_BYTES)
}

/// The runs of letters and digits, with where they begin.
fn words_at(content: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let start = rest.find(char::is_alphanumeric)?;
        let from = rest.get(start..)?;
        let end = from
            .find(|c: char| !c.is_alphanumeric() && !is_combining_mark(c))
            .unwrap_or(from.len());
        let (word, after) = from.split_at_checked(end)?;
        rest = after;
        let at = content.len().checked_sub(from.len())?;
        Some((at, word))
    })
}

/// What a word that has this term begins with: Porter ends a stem in `i` where the
/// word has `y`.
fn stem(term: String) -> String {
    let folded: String = folded(&term).collect();
    match folded.strip_suffix('i') {
        Some(shorter) if !shorter.is_empty() => shorter.to_owned(),
        _ => folded,
    }
}

/// Without marks and case.
fn folded(text: &str) -> impl Iterator<Item = char> {
    text.nfd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
}

/// Whether a word begins with one of the stems.
fn begins_with_a_stem(word: &str, stems: &BTreeSet<String>) -> bool {
    // No word needs more characters to be known.
    const LONGEST: usize = 64;
    let mut beginning = String::with_capacity(LONGEST);
    for c in folded(word).take(LONGEST) {
        beginning.push(c);
        if stems.contains(&beginning) {
            return true;
        }
    }
    false
}
