//! The full-text index of a level's file.
//!
//! Two FTS5 tables, without content of their own: `memory_words` has stems, pairs
//! and characters, each with its places, in the key, the content and the tags;
//! `memory_grams` has which records hold a gram once, and which twice, but for those
//! of stop words alone, which so many hold that they never count. What goes
//! in are the analyser's terms, parted by spaces, so that FTS5's simplest tokenizer
//! takes them as they are. A plain table beside them, `memory_key`, has the words of
//! each key.
//!
//! A row's number is the record's `seq` and the class of its length, so that all
//! that a score needs is in the postings themselves: scoring reads no other row.
//! How many records there are, and how many terms in all, FTS5 counts anyway.
//!
//! Each record is in the index with the words that it has now; taking it out needs
//! the same words, so the index is only right while one analyser wrote all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::super::fault::Fault;
use super::super::schema::{INDEX, indexed};
use super::postings;
use crate::search::analyser::{Analyser, tokens};
use crate::search::query::{key_name, says_nothing};
use crate::search::score::{Collection, LENGTHS, length_class};

/// Stands behind a gram that a record holds more than once. No gram is so long, so
/// the one follows right behind the other.
const TWICE: char = '2';

/// What the index has of one record.
struct Document {
    row: i64,
    /// The words of its key, if it has any.
    name: Option<String>,
    key: String,
    content: String,
    tags: String,
    grams: String,
}

impl Document {
    fn new(analyser: &Analyser, seq: i64, key: &str, content: &str, tags: &[String]) -> Self {
        let mut grams: BTreeMap<String, bool> = BTreeMap::new();
        let mut length = 0_u64;
        let mut terms = |text: &str, into: &mut String| {
            for token in tokens(text) {
                analyser.words(&token, |term| {
                    length = length.saturating_add(1);
                    put(into, term);
                });
                // A quarter of the grams of English texts.
                if says_nothing(&token) {
                    continue;
                }
                analyser.grams(&token, |gram| {
                    if let Some(twice) = grams.get_mut(gram) {
                        *twice = true;
                    } else {
                        grams.insert(gram.to_owned(), false);
                    }
                });
            }
        };
        let mut document = Self {
            row: 0,
            name: key_name(key),
            key: String::new(),
            content: String::new(),
            tags: String::new(),
            grams: String::new(),
        };
        terms(key, &mut document.key);
        terms(content, &mut document.content);
        for tag in tags {
            terms(tag, &mut document.tags);
        }
        for (gram, twice) in grams {
            put(&mut document.grams, &gram);
            if twice {
                put(&mut document.grams, &format!("{gram}{TWICE}"));
            }
        }
        document.row = row_of(seq, length_class(length));
        document
    }

    fn bytes(&self) -> usize {
        [&self.key, &self.content, &self.tags, &self.grams]
            .into_iter()
            .fold(0, |bytes, text| bytes.saturating_add(text.len()))
    }
}

/// Statements that put documents in, or take them out.
struct Statements {
    words: &'static str,
    grams: &'static str,
    key: &'static str,
}

const INSERT: Statements = Statements {
    words: "INSERT INTO memory_words (rowid, key, content, tags) VALUES (?1, ?2, ?3, ?4)",
    grams: "INSERT INTO memory_grams (rowid, grams) VALUES (?1, ?2)",
    key: "INSERT INTO memory_key (words, seq) VALUES (?1, ?2)",
};

const DELETE: Statements = Statements {
    words: "INSERT INTO memory_words (memory_words, rowid, key, content, tags)
            VALUES ('delete', ?1, ?2, ?3, ?4)",
    grams: "INSERT INTO memory_grams (memory_grams, rowid, grams) VALUES ('delete', ?1, ?2)",
    key: "DELETE FROM memory_key WHERE words = ?1 AND seq = ?2",
};

impl Statements {
    /// Runs them for some documents, table by table: what FTS5 collects of one of them
    /// stays in the processor's cache then.
    fn run(&self, db: &Connection, documents: &[Document]) -> Result<(), Fault> {
        let run = || {
            let mut words = db.prepare_cached(self.words)?;
            for document in documents {
                words.execute((
                    document.row,
                    &document.key,
                    &document.content,
                    &document.tags,
                ))?;
            }
            let mut grams = db.prepare_cached(self.grams)?;
            for document in documents {
                grams.execute((document.row, &document.grams))?;
            }
            let mut key = db.prepare_cached(self.key)?;
            for document in documents {
                if let Some(name) = &document.name {
                    key.execute((name, record_of(document.row).0))?;
                }
            }
            Ok::<_, Fault>(())
        };
        run().map_err(Fault::in_index)
    }
}

fn put(into: &mut String, term: &str) {
    if !into.is_empty() {
        into.push(' ');
    }
    into.push_str(term);
}

fn row_of(seq: i64, length: u8) -> i64 {
    seq.saturating_mul(i64::from(LENGTHS))
        .saturating_add(i64::from(length))
}

/// A row of the index, taken apart: the record's `seq` and the class of its length.
pub(super) fn record_of(row: i64) -> (i64, u8) {
    let lengths = i64::from(LENGTHS);
    let length = u8::try_from(row.rem_euclid(lengths)).unwrap_or(0);
    (row.div_euclid(lengths), length)
}

/// Puts a record into the index.
pub(in super::super) fn add(
    db: &Connection,
    seq: i64,
    key: &str,
    content: &str,
    tags: &[String],
) -> Result<(), Fault> {
    INSERT.run(
        db,
        &[Document::new(&Analyser::new(), seq, key, content, tags)],
    )
}

/// Takes a record out of the index, by the words that it went in with.
pub(in super::super) fn remove(
    db: &Connection,
    seq: i64,
    key: &str,
    content: &str,
    tags: &[String],
) -> Result<(), Fault> {
    DELETE.run(
        db,
        &[Document::new(&Analyser::new(), seq, key, content, tags)],
    )
}

/// Calls for each record that belongs in the index, in the order of their rows.
fn each_record(
    db: &Connection,
    mut work: impl FnMut(i64, &str, &str, &[String]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = db.prepare(concat!(
        "SELECT seq, key, content, tags FROM record WHERE ",
        indexed!(),
        " ORDER BY seq"
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column: usize| {
            row.get_ref(column)?
                .as_str()
                .map_err(|_| Fault::Altered("a record can't be read"))
        };
        let tags: Vec<String> =
            serde_json::from_str(text(3)?).map_err(|_| Fault::Altered("a record can't be read"))?;
        work(row.get(0)?, text(1)?, text(2)?, &tags)?;
    }
    Ok(())
}

/// How many records belong in the index.
pub(in super::super) fn belonging(db: &Connection) -> Result<u64, Fault> {
    let sql = concat!("SELECT count(*) FROM record WHERE ", indexed!());
    let number: i64 = db.query_row(sql, [], |row| row.get(0))?;
    Ok(u64::try_from(number).unwrap_or(0))
}

/// Makes the tables of the index anew, empty.
fn make(db: &Connection) -> Result<(), Fault> {
    unguarded(db, || {
        drop_all(db)?;
        db.execute_batch(INDEX)?;
        Ok(())
    })
}

/// Whether the tables of the index are so damaged that they can't even be dropped. Tries
/// it, in a transaction that the caller rolls back.
pub(in super::super) fn is_stuck(db: &Connection) -> Result<bool, Fault> {
    match unguarded(db, || drop_all(db)).map_err(Fault::in_index) {
        Ok(()) => Ok(false),
        Err(Fault::Index(_)) => Ok(true),
        Err(fault) => Err(fault),
    }
}

/// Has the file forget the tables of the index. Their pages lie about until it is
/// vacuumed.
pub(in super::super) fn forget(db: &Connection) -> Result<(), Fault> {
    unguarded(db, || {
        Ok(db.execute_batch(
            "PRAGMA writable_schema = ON;
             DELETE FROM sqlite_schema WHERE tbl_name GLOB 'memory_*';
             PRAGMA writable_schema = RESET;",
        )?)
    })
}

/// What lies behind an FTS5 table is its module's own to write, so long as SQLite is on
/// its guard; and the module won't even drop a table whose settings it can't read.
fn unguarded<T>(db: &Connection, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    let done = work();
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    done
}

fn drop_all(db: &Connection) -> Result<(), Fault> {
    Ok(db.execute_batch(&format!(
        "DROP TABLE IF EXISTS memory_word_terms;
         DROP TABLE IF EXISTS memory_gram_terms;
         DROP TABLE IF EXISTS memory_vocabulary;
         DROP TABLE IF EXISTS memory_key;
         {}{}",
        drop_of("memory_words"),
        drop_of("memory_grams"),
    ))?)
}

/// Drops an FTS5 table, with settings that are sound.
fn drop_of(table: &str) -> String {
    format!(
        "DROP TABLE IF EXISTS {table}_config;
         CREATE TABLE {table}_config (k PRIMARY KEY, v) WITHOUT ROWID;
         INSERT INTO {table}_config VALUES ('version', 4);
         DROP TABLE IF EXISTS {table};
         DROP TABLE IF EXISTS {table}_config;
         DROP TABLE IF EXISTS {table}_data;
         DROP TABLE IF EXISTS {table}_idx;"
    )
}

/// Builds the index anew from the records. `done` is told
/// after each how many are in it. In the caller's transaction, on a connection that
/// no authorizer watches.
pub(in super::super) fn rebuild(db: &Connection, mut done: impl FnMut(u64)) -> Result<(), Fault> {
    make(db)?;
    // Pieces are as few as memory allows, and put together once, at the end: what is
    // merged again and again grows faster than the records.
    configure(db, 0, PIECES, HASH_BYTES)?;
    let analyser = Analyser::new();
    let mut batch: Vec<Document> = Vec::new();
    let (mut bytes, mut number) = (0_usize, 0_u64);
    each_record(db, |seq, key, content, tags| {
        let document = Document::new(&analyser, seq, key, content, tags);
        bytes = bytes.saturating_add(document.bytes());
        batch.push(document);
        if bytes >= BATCH_BYTES {
            INSERT.run(db, &batch)?;
            batch.clear();
            bytes = 0;
        }
        number = number.saturating_add(1);
        done(number);
        Ok(())
    })?;
    INSERT.run(db, &batch)?;
    compact(db)?;
    configure(db, AUTOMERGE, CRISISMERGE, HASH_BYTES_OF_A_SAVE)?;
    Ok(())
}

/// Terms that are put in at once.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// What FTS5 collects in memory for each table before it writes a piece while the whole
/// index is built: what some 30,000 short records need.
const HASH_BYTES: u32 = 32 * 1024 * 1024;
/// The most pieces of one size while the whole index is built.
const PIECES: u32 = 1024;
/// FTS5's own choices.
const HASH_BYTES_OF_A_SAVE: u32 = 1024 * 1024;
const AUTOMERGE: u32 = 4;
/// Fewer pieces than FTS5 leaves and smaller pages: what is taken out is looked up in each
/// piece, and the page that it stood on is written anew. Those that an index lacks which
/// was made before them are no fault of it.
const CRISISMERGE: u32 = 4;
const PAGE_BYTES: u32 = 1000;

fn configure(
    db: &Connection,
    automerge: u32,
    crisismerge: u32,
    hash_bytes: u32,
) -> Result<(), Fault> {
    for table in ["memory_words", "memory_grams"] {
        db.execute_batch(&format!(
            "INSERT INTO {table} ({table}, rank)
             VALUES ('automerge', {automerge}), ('crisismerge', {crisismerge}),
                    ('hashsize', {hash_bytes})"
        ))?;
    }
    Ok(())
}

/// Puts the index into one piece, of the many that it is written in: a search looks
/// into each. Costs about as much as writing it anew.
pub(in super::super) fn compact(db: &Connection) -> Result<(), Fault> {
    db.execute_batch(
        "INSERT INTO memory_words (memory_words) VALUES ('optimize');
         INSERT INTO memory_grams (memory_grams) VALUES ('optimize');",
    )?;
    Ok(())
}

/// Whether the index holds just what the records say: every term, at its place, and
/// nothing else, where a search looks for it and a save can go on from it. FTS5's own
/// check can only tell whether the index is sound in itself, since it does not know
/// the terms.
pub(in super::super) fn agrees(db: &Connection) -> Result<bool, Fault> {
    let agree = || {
        Ok(holds_the_records(db)?
            && is_listed(db, "memory_words")?
            && is_listed(db, "memory_grams")?
            && is_configured(db, "memory_words")?
            && is_configured(db, "memory_grams")?)
    };
    match agree().map_err(Fault::in_index) {
        Err(Fault::Index(_)) => Ok(false),
        agrees => agrees,
    }
}

/// Whether the list that leads a search to a page of an FTS5 table leads it to the right
/// one for each term on that page, and holds nothing of pieces that are not there
/// (<https://sqlite.org/fts5.html#fts5_data_structures>).
fn is_listed(db: &Connection, table: &str) -> Result<bool, Fault> {
    const PAGE_BITS: u32 = 31;
    /// A page's height in its tree, none for a leaf, and whether it is of a long list.
    const KIND_BITS: u32 = 6;
    let mut lookup = db.prepare(&format!(
        "SELECT term, pgno / 2 FROM {table}_idx WHERE segid = ?1 AND term <= ?2
         ORDER BY term DESC LIMIT 1"
    ))?;
    let mut leads_to = |piece: i64, term: &[u8]| {
        lookup
            .query_row((piece, term), |row| {
                Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()
    };
    // Those up to the 10th are no pages of terms.
    let mut pages = db.prepare(&format!(
        "SELECT id, block FROM {table}_data WHERE id > 10 ORDER BY id"
    ))?;
    let mut pages = pages.query([])?;
    let mut pieces = BTreeSet::new();
    while let Some(row) = pages.next()? {
        let id: i64 = row.get(0)?;
        let (piece, page) = (id >> (PAGE_BITS + KIND_BITS), id & ((1 << PAGE_BITS) - 1));
        if (id >> PAGE_BITS) & ((1 << KIND_BITS) - 1) != 0 {
            continue;
        }
        let is_first = pieces.insert(piece);
        let Some(ends) = first_and_last(row.get_ref(1)?.as_blob().unwrap_or_default()) else {
            return Ok(false);
        };
        let Some((first, last)) = ends else {
            continue;
        };
        let (found, again) = (leads_to(piece, &first)?, leads_to(piece, &last)?);
        let right = match &found {
            // A search that is led nowhere, or to a page that is no more, begins with
            // the first.
            None => is_first,
            Some((_, led)) => *led == page || (is_first && *led < page),
        };
        // The same line of the list for both is the same for all between them.
        if !right || found != again {
            return Ok(false);
        }
    }
    let mut listed = db.prepare(&format!("SELECT DISTINCT segid FROM {table}_idx"))?;
    let mut listed = listed.query([])?;
    while let Some(row) = listed.next()? {
        if !pieces.contains(&row.get(0)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first and the last of the terms that begin on a leaf of an FTS5 table; none
/// inside where none does, and none at all where it can't be read.
fn first_and_last(leaf: &[u8]) -> Option<Option<(Vec<u8>, Vec<u8>)>> {
    let terms_end = usize::from(u16::from_be_bytes([*leaf.get(2)?, *leaf.get(3)?]));
    let mut at = 0_usize;
    let mut ends: Option<(Vec<u8>, Vec<u8>)> = None;
    // Behind the terms stands where each of them begins: how far behind the one before.
    for step in varints(leaf.get(terms_end..)?) {
        at = at.checked_add(usize::try_from(step).ok()?)?;
        let mut rest = leaf.get(at..terms_end)?;
        let mut number = || -> Option<usize> {
            let (number, read) = varint(rest)?;
            rest = rest.get(read..)?;
            usize::try_from(number).ok()
        };
        // All but the first leave out what they begin with as the one before does.
        let kept = if ends.is_some() { number()? } else { 0 };
        let length = number()?;
        let new = rest.get(..length)?;
        match &mut ends {
            None => ends = Some((new.to_vec(), new.to_vec())),
            Some((_, last)) => {
                if kept > last.len() {
                    return None;
                }
                last.truncate(kept);
                last.extend_from_slice(new);
            }
        }
    }
    Some(ends)
}

/// Whether an FTS5 table has the settings that it was made with.
fn is_configured(db: &Connection, table: &str) -> Result<bool, Fault> {
    let mut statement = db.prepare(&format!("SELECT k, v FROM {table}_config"))?;
    let mut rows = statement.query([])?;
    let (mut version, mut secure) = (false, false);
    while let Some(row) = rows.next()? {
        let (name, value): (String, i64) = (row.get(0)?, row.get(1)?);
        match name.as_str() {
            // As made, and since something was first deleted from it.
            "version" => version = matches!(value, 4 | 5),
            "secure-delete" => secure = value == 1,
            "automerge" if value == i64::from(AUTOMERGE) => {}
            "hashsize" if value == i64::from(HASH_BYTES_OF_A_SAVE) => {}
            "crisismerge" if value == i64::from(CRISISMERGE) => {}
            "pgsz" if value == i64::from(PAGE_BYTES) => {}
            _ => return Ok(false),
        }
    }
    Ok(version && secure)
}

fn holds_the_records(db: &Connection) -> Result<bool, Fault> {
    let analyser = Analyser::new();
    // A sum does not depend on the order, which differs: the index lists by term.
    let (mut words, mut grams, mut keys) = (0_u64, 0_u64, 0_u64);
    // How many records there are, and the terms of each column.
    let mut totals = [0_u64; 4];
    let mut gram_totals = [0_u64; 2];
    let count = |total: &mut u64| *total = total.saturating_add(1);
    each_record(db, |seq, key, content, tags| {
        let document = Document::new(&analyser, seq, key, content, tags);
        let [records, of_key, of_content, of_tags] = &mut totals;
        count(records);
        for (column, text, total) in [
            ("key", &document.key, of_key),
            ("content", &document.content, of_content),
            ("tags", &document.tags, of_tags),
        ] {
            for (place, term) in (0_i64..).zip(text.split_ascii_whitespace()) {
                count(total);
                words = words.wrapping_add(digest((term, document.row, column, place)));
            }
        }
        if let Some(name) = &document.name {
            keys = keys.wrapping_add(digest((name.as_str(), seq)));
        }
        let [records, of_grams] = &mut gram_totals;
        count(records);
        for gram in document.grams.split_ascii_whitespace() {
            count(of_grams);
            grams = grams.wrapping_add(digest((gram, document.row)));
        }
        Ok(())
    })?;
    // Borrowed: there are very many.
    fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Fault> {
        Ok(row.get_ref(column)?.as_str().unwrap_or_default())
    }
    let mut statement = db.prepare(r#"SELECT term, doc, col, "offset" FROM memory_word_terms"#)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (doc, place): (i64, i64) = (row.get(1)?, row.get(3)?);
        words = words.wrapping_sub(digest((text(row, 0)?, doc, text(row, 2)?, place)));
    }
    let mut statement = db.prepare("SELECT term, doc FROM memory_gram_terms")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let doc: i64 = row.get(1)?;
        grams = grams.wrapping_sub(digest((text(row, 0)?, doc)));
    }
    let mut statement = db.prepare("SELECT words, seq FROM memory_key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(1)?;
        keys = keys.wrapping_sub(digest((text(row, 0)?, seq)));
    }
    let kept = averages(db, "SELECT block FROM memory_words_data WHERE id = 1")?;
    let kept_of_grams = averages(db, "SELECT block FROM memory_grams_data WHERE id = 1")?;
    Ok((words, grams, keys) == (0, 0, 0)
        && are(&kept, &totals)
        && are(&kept_of_grams, &gram_totals))
}

/// Whether FTS5 keeps these totals. It keeps none of an index that was always empty.
fn are(kept: &[u64], totals: &[u64]) -> bool {
    kept == totals || (kept.is_empty() && totals.iter().all(|total| *total == 0))
}

fn digest(posting: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    posting.hash(&mut hasher);
    hasher.finish()
}

/// How many records the index holds, and how many terms in all.
pub(super) fn collection(db: &Connection) -> Result<Collection, Fault> {
    let kept = averages(db, "SELECT block FROM memory_words_data WHERE id = 1")?;
    let mut numbers = kept.into_iter();
    Ok(Collection {
        records: numbers.next().unwrap_or(0),
        terms: numbers.fold(0, u64::saturating_add),
    })
}

/// FTS5's "averages" record (<https://sqlite.org/fts5.html#_data_structures>), which it
/// keeps up to date with every change: how many rows there are, and how many terms in
/// each column.
fn averages(db: &Connection, sql: &str) -> Result<Vec<u64>, Fault> {
    let block: Option<Vec<u8>> = db
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(varints(block.as_deref().unwrap_or_default()).collect())
}

/// SQLite's variable-length numbers, one after another.
fn varints(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let (number, read) = varint(bytes)?;
        bytes = bytes.get(read..)?;
        Some(number)
    })
}

/// The number that these begin with, and how many of them it takes.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for (read, byte) in (1..=9).zip(bytes) {
        if read == 9 {
            return Some(((number << 8) | u64::from(*byte), read));
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, read));
        }
    }
    None
}

/// Where a record has a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The row of the index.
    pub(super) row: i64,
    pub(super) column: Column,
    /// Which term it is in that column.
    pub(super) offset: i32,
}

/// A column of `memory_words`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    Key,
    Content,
    Tags,
}

/// Where a term is, in the order of the rows.
pub(super) fn places(db: &Connection, term: &str) -> Result<Vec<Place>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT posting_places(memory_words) FROM memory_words WHERE memory_words MATCH ?1
         LIMIT 1",
    )?;
    let mut rows = statement.query([quoted(term)])?;
    let Some(row) = rows.next()? else {
        return Ok(Vec::new());
    };
    let found = postings::places(row.get_ref(0)?.as_blob().unwrap_or_default());
    let mut places: Vec<Place> = found
        .map(|(row, column, offset)| Place {
            row,
            column: match column {
                0 => Column::Key,
                1 => Column::Content,
                _ => Column::Tags,
            },
            offset,
        })
        .collect();
    // FTS5 happens to list them in order, which costs next to nothing then.
    places.sort_unstable();
    Ok(places)
}

/// The rows with a gram in their order, and whether each has it more than once. None
/// if there are more than so many.
pub(super) fn rows_with_gram(
    db: &Connection,
    gram: &str,
    most: u64,
) -> Result<Option<Vec<(i64, bool)>>, Fault> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let once = gram_rows(db, gram, most)?;
    if once.len() > most {
        return Ok(None);
    }
    let twice = match once.as_slice() {
        [] => Vec::new(),
        _ => gram_rows(db, &format!("{gram}{TWICE}"), most)?,
    };
    let mut twice = twice.into_iter().peekable();
    let with = |row| {
        while twice.next_if(|other| *other < row).is_some() {}
        (row, twice.peek() == Some(&row))
    };
    Ok(Some(once.into_iter().map(with).collect()))
}

/// The rows with just that term of the grams' table, in their order: one more than so
/// many at most.
fn gram_rows(db: &Connection, term: &str, most: usize) -> Result<Vec<i64>, Fault> {
    let mut statement =
        db.prepare_cached("SELECT rowid FROM memory_grams WHERE memory_grams MATCH ?1")?;
    let mut rows = statement.query([quoted(term)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()?
        && found.len() <= most
    {
        found.push(row.get(0)?);
    }
    // FTS5 happens to list them in order, which costs next to nothing then.
    found.sort_unstable();
    Ok(found)
}

/// A term as a query of FTS5, in which it is nothing but a string.
fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', "\"\""))
}

/// The records whose key has just these words, in the order of their rows.
pub(super) fn with_key(db: &Connection, words: &str) -> Result<Vec<i64>, Fault> {
    let mut statement =
        db.prepare_cached("SELECT seq FROM memory_key WHERE words = ?1 ORDER BY seq")?;
    let rows = statement.query_map([words], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How many records hold a term.
pub(super) fn holding(db: &Connection, term: &str) -> Result<u64, Fault> {
    let number: Option<i64> = db
        .prepare_cached("SELECT doc FROM memory_vocabulary WHERE term = ?1")?
        .query_row([term], |row| row.get(0))
        .optional()?;
    Ok(number
        .and_then(|number| u64::try_from(number).ok())
        .unwrap_or(0))
}

/// The terms that begin so, and are not just that, with how often each is there:
/// at most so many, in their order.
pub(super) fn beginning(
    db: &Connection,
    prefix: &str,
    most: usize,
) -> Result<Vec<(String, u64)>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT term, cnt FROM memory_vocabulary WHERE term > ?1 AND term < ?2 LIMIT ?3",
    )?;
    // No term holds the last character of all.
    let end = format!("{prefix}{}", char::MAX);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = statement.query_map((prefix, end, most), |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?))
    })?;
    found
        .map(|found| {
            let (term, often) = found?;
            Ok((term, u64::try_from(often).unwrap_or(0)))
        })
        .collect()
}
