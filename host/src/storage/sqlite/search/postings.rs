//! Reading the postings of a term, by FTS5's own interface for extensions.
//!
//! In SQL each posting is a row of an `fts5vocab` table, which costs several times what
//! finding it does. So an [auxiliary
//! function](https://sqlite.org/fts5.html#custom_auxiliary_functions) is registered with
//! each connection that searches: called on the first row that a term matches, it has
//! FTS5 go through all of its rows, and answers with their places in a blob, which safe
//! code takes apart. It takes a fourth to a third off the time of a search of 100,000
//! short records (`cargo bench -p remora-host --bench search -- time 100000`).
//!
//! This is the one module that is not safe code. Nothing that FTS5 hands to a call is
//! kept beyond it, and nothing here panics, which would end the process.

#![expect(unsafe_code, reason = "FTS5's interface for extensions is one of C")]

use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::Connection;
use rusqlite::ffi::{self, Fts5Context, Fts5ExtensionApi, Fts5PhraseIter, fts5_api};
use rusqlite::types::{ToSql, ToSqlOutput};

use super::super::fault::Fault;

/// Rows between two looks at the clock: some tens of microseconds.
const ROWS_BETWEEN_CHECKS: u64 = 1024;

/// Bytes of a place in an answer: the row's number, that of the column, the offset.
const PLACE: usize = 16;

/// Says whether the time for the work is over. FTS5 keeps it with the function.
struct Watch(Box<dyn Fn() -> bool + Send>);

/// Registers `posting_places(table)` with a connection: where the first term of a query is.
/// `over` is asked now and then whether to break off, as a progress handler is.
pub(in super::super) fn register(
    db: &Connection,
    over: impl Fn() -> bool + Send + 'static,
) -> Result<(), Fault> {
    unsafe extern "C" fn destroy(watch: *mut c_void) {
        // SAFETY: it is the one made of a box below; FTS5 calls this once, when it forgets
        // the function.
        drop(unsafe { Box::from_raw(watch.cast::<Watch>()) });
    }
    let fts5 = fts5(db)?;
    // SAFETY: null, or FTS5's interface to the connection, which is open.
    let create = unsafe { fts5.as_ref() }.and_then(|fts5| fts5.xCreateFunction);
    let Some(create) = create else {
        return Err(failed(ffi::SQLITE_MISUSE));
    };
    let watch = Box::into_raw(Box::new(Watch(Box::new(over)))).cast();
    // SAFETY: `fts5` is as above, the name is copied, and the functions are such as FTS5
    // wants. It owns the watch from here on, and hands it to them alone; where it can't
    // register the function, the watch is lost.
    let done = unsafe {
        let name = c"posting_places".as_ptr();
        create(fts5, name, watch, Some(posting_places), Some(destroy))
    };
    match done {
        ffi::SQLITE_OK => Ok(()),
        code => Err(failed(code)),
    }
}

/// The places in an answer of `posting_places`: row, number of the column, and how many
/// terms are ahead of it there.
pub(super) fn places(answer: &[u8]) -> impl Iterator<Item = (i64, i32, i32)> {
    let (places, _) = answer.as_chunks::<PLACE>();
    places.iter().map(|place| {
        let [row @ .., a, b, c, d, e, f, g, h] = *place;
        (
            i64::from_ne_bytes(row),
            i32::from_ne_bytes([a, b, c, d]),
            i32::from_ne_bytes([e, f, g, h]),
        )
    })
}

/// FTS5's interface to a connection.
fn fts5(db: &Connection) -> Result<*mut fts5_api, Fault> {
    /// Where FTS5 puts it.
    struct Into(*mut *mut fts5_api);
    impl ToSql for Into {
        fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
            let into = self.0.cast::<c_void>().cast_const();
            Ok(ToSqlOutput::Pointer((into, c"fts5_api_ptr", None)))
        }
    }
    let mut api = ptr::null_mut();
    db.query_row("SELECT fts5(?1)", [Into(&raw mut api)], |_| Ok(()))?;
    Ok(api)
}

fn failed(code: c_int) -> Fault {
    Fault::Sql(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
}

/// Answers with the places of the query's first term.
unsafe extern "C" fn posting_places(
    api: *const Fts5ExtensionApi,
    query: *mut Fts5Context,
    answer: *mut ffi::sqlite3_context,
    _: c_int,
    _: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: it is FTS5 that calls, with what `read` asks for and the call's context; of
    // the bytes SQLite makes a copy.
    unsafe {
        match read(api, query) {
            Ok(found) => {
                let length = u64::try_from(found.len()).unwrap_or(u64::MAX);
                let copied = ffi::SQLITE_TRANSIENT();
                ffi::sqlite3_result_blob64(answer, found.as_ptr().cast(), length, copied);
            }
            Err(code) => ffi::sqlite3_result_error_code(answer, code),
        }
    }
}

/// The places of the query's first term, or SQLite's code of what failed.
///
/// # Safety
///
/// Called within a call of a function that [`register`] registered, with what FTS5 handed
/// to it.
unsafe fn read(api: *const Fts5ExtensionApi, query: *mut Fts5Context) -> Result<Vec<u8>, c_int> {
    // SAFETY: null or FTS5's interface, which is static.
    let api = unsafe { api.as_ref() }.ok_or(ffi::SQLITE_MISUSE)?;
    let (Some(data), Some(each)) = (api.xUserData, api.xQueryPhrase) else {
        return Err(ffi::SQLITE_MISUSE);
    };
    // SAFETY: what FTS5 got together with the function, which it keeps as long as that; it
    // is only ever shared.
    let watch = unsafe { data(query).cast::<Watch>().as_ref() };
    let mut reading = Reading {
        watch: watch.ok_or(ffi::SQLITE_MISUSE)?,
        rows: 0,
        found: Vec::new(),
    };
    // SAFETY: the callback is called within this call only, with `reading`, which nothing
    // else uses meanwhile.
    match unsafe { each(query, 0, ptr::from_mut(&mut reading).cast(), Some(take)) } {
        ffi::SQLITE_OK => Ok(reading.found),
        code => Err(code),
    }
}

/// FTS5 going through the rows of a term.
struct Reading<'a> {
    watch: &'a Watch,
    rows: u64,
    found: Vec<u8>,
}

/// Takes the places of the term in the row that FTS5 stands on.
unsafe extern "C" fn take(
    api: *const Fts5ExtensionApi,
    row: *mut Fts5Context,
    reading: *mut c_void,
) -> c_int {
    // SAFETY: as in `read`, which has this called.
    let (api, reading) = unsafe { (api.as_ref(), &mut *reading.cast::<Reading<'_>>()) };
    let Some((Some(number), Some(first), Some(next))) =
        api.map(|api| (api.xRowid, api.xPhraseFirst, api.xPhraseNext))
    else {
        return ffi::SQLITE_MISUSE;
    };
    reading.rows = reading.rows.saturating_add(1);
    if reading.rows.is_multiple_of(ROWS_BETWEEN_CHECKS) && reading.watch.0() {
        return ffi::SQLITE_INTERRUPT;
    }
    let mut place = Fts5PhraseIter {
        a: ptr::null(),
        b: ptr::null(),
    };
    let (mut column, mut offset) = (0, 0);
    // SAFETY: FTS5 stands on that row, and the query has one term. The iterator is filled by
    // the first call, and used only by FTS5 and while it stands there.
    unsafe {
        let number = number(row).to_ne_bytes();
        let found = first(row, 0, &raw mut place, &raw mut column, &raw mut offset);
        if found != ffi::SQLITE_OK {
            return found;
        }
        while column >= 0 {
            reading.found.extend_from_slice(&number);
            reading.found.extend_from_slice(&column.to_ne_bytes());
            reading.found.extend_from_slice(&offset.to_ne_bytes());
            next(row, &raw mut place, &raw mut column, &raw mut offset);
        }
    }
    ffi::SQLITE_OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ErrorCode;

    /// A table with 5,000 rows of one term.
    fn table(over: impl Fn() -> bool + Send + 'static) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        register(&db, over).unwrap();
        db.execute_batch(
            "CREATE VIRTUAL TABLE words USING fts5 (a, b, content = '', columnsize = 0);
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000)
             INSERT INTO words (rowid, a, b) SELECT n, 'one', 'two one' FROM n;
             INSERT INTO words (rowid, a, b) VALUES (-7, 'three', 'two three three');",
        )
        .unwrap();
        db
    }

    fn ask(db: &Connection, query: &str) -> rusqlite::Result<Vec<(i64, i32, i32)>> {
        let sql = "SELECT posting_places(words) FROM words WHERE words MATCH ?1 LIMIT 1";
        db.query_row(sql, [query], |row| {
            Ok(places(row.get_ref(0)?.as_blob()?).collect())
        })
    }

    #[test]
    fn a_term_is_where_fts5vocab_says() {
        let db = table(|| false);
        db.execute_batch("CREATE VIRTUAL TABLE terms USING fts5vocab (words, instance)")
            .unwrap();
        for term in ["one", "two", "three"] {
            let mut statement = db
                .prepare(r#"SELECT doc, col = 'b', "offset" FROM terms WHERE term = ?1"#)
                .unwrap();
            let expected = statement
                .query_map([term], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap();
            let expected: Vec<(i64, i32, i32)> = expected.map(Result::unwrap).collect();
            assert_eq!(ask(&db, term).unwrap(), expected, "{term}");
        }
        assert_eq!(
            ask(&db, "three").unwrap(),
            [(-7, 0, 0), (-7, 1, 1), (-7, 1, 2)]
        );
        assert_eq!(ask(&db, "four"), Err(rusqlite::Error::QueryReturnedNoRows));
    }

    #[test]
    fn it_is_broken_off_when_its_time_is_over() {
        let db = table(|| true);
        let broken_off = ask(&db, "one").unwrap_err();
        assert_eq!(
            broken_off.sqlite_error_code(),
            Some(ErrorCode::OperationInterrupted)
        );
        // Nothing is so short that it can't be told.
        assert_eq!(ask(&db, "three").unwrap().len(), 3);
    }

    #[test]
    fn without_a_term_it_is_refused() {
        let db = table(|| false);
        for sql in [
            "SELECT posting_places(1)",
            "SELECT posting_places(words) FROM words WHERE rowid = 1",
            "SELECT posting_places()",
        ] {
            assert!(db.query_row(sql, [], |_| Ok(())).is_err(), "{sql}");
        }
    }

    #[test]
    fn what_fts5_keeps_is_dropped_with_the_connection() {
        let kept = std::sync::Arc::new(());
        let held = std::sync::Arc::clone(&kept);
        let db = table(move || std::sync::Arc::strong_count(&held) == 0);
        assert_eq!(std::sync::Arc::strong_count(&kept), 2);
        db.close().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    }
}
