//! Reindex.

use super::*;
use crate::storage::sqlite::operator::LevelReindexed;
use crate::storage::sqlite::schema::Kind;

fn reindex(store: &Store) -> Vec<LevelReindexed> {
    store.operator(0).reindex(None, &mut quietly).unwrap()
}

fn filled() -> Store {
    let store = Store::new();
    for i in 0..90 {
        store
            .agent(P)
            .put(&tagged(&format!("k{i}"), &["brief"]))
            .unwrap();
    }
    store.save(C, "salary", "zebra");
    store.save(C, "salary", "quagga");
    store.save(C, "gone", "zebra");
    store.delete(C, "gone");
    store
}

fn found(store: &Store, query: &str) -> usize {
    let mut shelves = store.agent(C);
    [P, C]
        .into_iter()
        .map(|level| shelves.search(level, query, 0, 1000).unwrap().items.len())
        .sum()
}

#[test]
fn a_damaged_index_is_built_anew() {
    for damage in [
        "DELETE FROM memory_words_data WHERE id > 10",
        "DELETE FROM memory_grams_data",
        "UPDATE memory_words_data SET block = x'00'",
        "UPDATE memory_grams_data SET block = zeroblob(length(block))",
        "DELETE FROM memory_key",
        "INSERT INTO memory_words (rowid, content) VALUES (99, 'unicorn')",
        "INSERT INTO memory_grams (memory_grams) VALUES ('delete-all')",
    ] {
        let store = filled();
        let before = store.verified().records;
        store.by_hand(P).execute_batch(damage).unwrap();
        let findings = store.verified().findings;
        assert!(!findings.is_empty(), "{damage}");
        for finding in &findings {
            let is = (finding.check.as_str(), finding.level);
            assert_eq!(is, ("index", Some(P)), "{damage}: {finding:?}");
        }
        let done: Vec<(Level, u64)> = reindex(&store)
            .iter()
            .map(|level| (level.level, level.records))
            .collect();
        assert_eq!(done, [(P, 90), (C, 1)]);
        store.assert_sound();
        assert_eq!(store.verified().records, before);
        assert_eq!(found(&store, "words"), 90, "{damage}");
        assert_eq!(found(&store, "k77"), 1, "{damage}");
        assert_eq!(found(&store, "unicorn"), 0);
        store.save(P, "later", "words");
        store.assert_sound();
    }
}

/// What SQLite's own guard keeps anybody from who does not mean it.
fn unguarded(store: &Store, damage: &str) {
    let db = store.by_hand(P);
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)
        .unwrap();
    db.execute_batch(damage).unwrap();
}

#[test]
fn whatever_is_left_of_the_index_it_is_found_said_and_built_anew() {
    for damage in [
        "DELETE FROM memory_words_config",
        "DELETE FROM memory_grams_config",
        "UPDATE memory_words_config SET v = 99 WHERE k = 'version'",
        "DELETE FROM memory_words_config; DELETE FROM memory_grams_config; DROP TABLE memory_key",
        "DROP TABLE memory_words_data",
        "DROP TABLE memory_grams_data",
        "DROP TABLE memory_words_idx",
        "DROP TABLE memory_grams_config",
        "DROP TABLE memory_key",
        "DROP TABLE memory_words",
        "DROP TABLE memory_grams",
        "DROP TABLE memory_word_terms; DROP TABLE memory_gram_terms; DROP TABLE memory_vocabulary",
        "DROP TABLE memory_words; CREATE TABLE memory_words_data (a)",
        "DELETE FROM memory_words_idx; DELETE FROM memory_grams_idx",
        "DELETE FROM memory_words_idx WHERE pgno / 2 > 1",
        "DELETE FROM memory_grams_idx WHERE pgno / 2 > 1",
        "DELETE FROM memory_words_idx WHERE pgno / 2 = (SELECT max(pgno / 2) FROM memory_words_idx)",
        // Something else under its name.
        "DROP TABLE memory_key; CREATE VIEW memory_key AS SELECT 'a' AS words, 1 AS seq",
        "DROP TABLE memory_vocabulary; CREATE VIEW memory_vocabulary AS SELECT 'a' AS term, 1 AS doc, 1 AS cnt",
        "DROP TABLE memory_words_config; CREATE VIEW memory_words_config AS SELECT 'a' AS k, 1 AS v",
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE memory_words USING nosuch (a)'
             WHERE name = 'memory_words';",
        // A list that leads to the wrong page.
        "UPDATE memory_words_idx SET term = CAST(substr(term, 1, 2) AS BLOB) WHERE pgno / 2 = 3",
        "UPDATE memory_grams_idx SET term = CAST(substr(term, 1, 2) AS BLOB) WHERE pgno / 2 = 3",
        "INSERT INTO memory_words_idx
             SELECT segid, CAST(term || x'00' AS BLOB), pgno + 2 FROM memory_words_idx
             WHERE pgno / 2 = 2",
        "INSERT INTO memory_words_idx VALUES (900, x'', 2)",
        // Totals that the next change would go on from.
        "DELETE FROM memory_grams_data WHERE id = 1",
        "UPDATE memory_grams_data SET block = x'00' WHERE id = 1",
        "UPDATE memory_grams_data SET block = x'' WHERE id = 10",
        // Settings.
        "DELETE FROM memory_words_config WHERE k = 'secure-delete'",
        "INSERT OR REPLACE INTO memory_grams_config VALUES ('pgsz', 64)",
        "UPDATE memory_words_config SET v = 16 WHERE k = 'crisismerge'",
        "INSERT INTO memory_grams_config VALUES ('usermerge', 3)",
        "UPDATE memory_grams_config SET v = 0 WHERE k = 'secure-delete'",
        "UPDATE memory_words_config SET v = 0 WHERE k = 'automerge'",
        "UPDATE memory_grams_config SET v = 4096 WHERE k = 'hashsize'",
    ] {
        let store = filled();
        // More than one page of each.
        let words: Vec<String> = (0..3000).map(|i| format!("w{}", i * 7919)).collect();
        store.save(P, "long", &words.join(" "));
        reindex(&store);
        store.save(P, "short", "a later piece");
        store.assert_sound();
        let before = store.verified().records;
        unguarded(&store, damage);
        let storage = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
        let operator = storage.operator(at(0));
        let findings = operator.verify(None, &mut quietly).unwrap().findings;
        assert!(!findings.is_empty(), "{damage}");
        for finding in &findings {
            assert!(
                ["index", "schema"].contains(&finding.check.as_str()) && finding.level == Some(P),
                "{damage}: {finding:?}"
            );
        }
        let says = |what: &str| what.contains("`remora reindex`");
        assert!(
            findings.iter().any(|finding| says(&finding.what)),
            "{damage}: {findings:?}"
        );
        // Nobody is told that what is kept were lost.
        let mut shelves = storage.open(access(P, Origin::Agent)).unwrap();
        let searched = shelves.search(P, "words k77 w7919000", 0, 10).map(drop);
        let saved = shelves.put(&draft("k3", "other words")).map(drop);
        for error in [searched, saved].into_iter().filter_map(Result::err) {
            assert!(says(error.remedy()), "{damage}: {error:?}");
        }
        drop(shelves);
        let done = operator.reindex(None, &mut quietly).unwrap();
        // One more where the save went through.
        assert!((92..=93).contains(&done[0].records), "{damage}");
        let verified = operator.verify(None, &mut quietly).unwrap();
        assert_eq!(verified.findings, [], "{damage}");
        assert!(verified.records >= before);
        assert_eq!(found(&store, "k77"), 1, "{damage}");
        assert_eq!(found(&store, "w7919000"), 1, "{damage}");
        store.save(P, "later", "words");
        store.assert_sound();
    }
}

#[test]
fn a_page_of_the_index_that_is_damaged_is_found_said_and_mended() {
    for table in [
        "memory_key",
        "memory_words_data",
        "memory_words_idx",
        "memory_words_config",
        "memory_grams_data",
        "memory_grams_idx",
    ] {
        let store = filled();
        let (root, size): (u32, u32) = store
            .by_hand(P)
            .query_row(
                "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?1",
                [table],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        let Store { folder, storage } = store;
        drop(storage);
        let path = folder.path().join("store/agents/main/public.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let page = |number: u32| (number * size) as usize;
        bytes[page(root - 1)..page(root)].fill(0);
        std::fs::write(&path, bytes).unwrap();
        let root = folder.path().join("store");
        let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
        let operator = storage.operator(super::at(0));
        let verified = operator.verify(None, &mut quietly).unwrap();
        assert!(!verified.is_sound(), "{table}");
        for finding in &verified.findings {
            assert_eq!(finding.check, "index", "{table}: {finding:?}");
        }
        // What is kept was looked at all the same.
        assert!(verified.records > 90, "{table}: {verified:?}");
        let done = operator.reindex(None, &mut quietly).unwrap();
        assert_eq!(done[0].records, 90, "{table}");
        let verified = operator.verify(None, &mut quietly).unwrap();
        assert_eq!(verified.findings, [], "{table}");
        let store = Store { folder, storage };
        assert_eq!(found(&store, "k77"), 1, "{table}");
        store.save(P, "later", "words");
        store.assert_sound();
    }
}

#[test]
fn what_an_older_analyser_indexed_is_indexed_anew() {
    let store = filled();
    let inner = &store.storage.inner;
    let file = inner.layout.level("main", P);
    let kind = Kind::level(&file);
    let db = store.by_hand(P);
    kind.set_meta(&db, &inner.sealer, "analyser", "remora 0")
        .unwrap();
    // It knew other words.
    db.execute_batch(
        "INSERT INTO memory_words (memory_words) VALUES ('delete-all');
         INSERT INTO memory_words (rowid, content) VALUES (33, 'unicorn')",
    )
    .unwrap();
    let storage = SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap();
    let done = storage.operator(at(0)).reindex(None, &mut quietly).unwrap();
    assert_eq!(done[0].records, 90);
    assert!(kind.check(&db, &inner.sealer).unwrap());
    store.assert_sound();
    assert_eq!(found(&store, "words"), 90);
    assert_eq!(found(&store, "unicorn"), 0);
}

#[test]
fn each_level_is_told_of_its_own_and_how_far_it_is() {
    let store = filled();
    let mut heard = Vec::new();
    let mut hear = |progress: Progress| {
        assert_eq!(progress.step, "reindex");
        heard.push((progress.level.unwrap(), progress.done, progress.total));
    };
    store.operator(0).reindex(Some("main"), &mut hear).unwrap();
    assert_eq!(
        heard,
        [(P, 0, 90), (P, 64, 90), (P, 90, 90), (C, 0, 1), (C, 1, 1)]
    );
    let line = |text: &str| [("reindex".to_owned(), text.to_owned())];
    assert_eq!(store.told(P), line("records=90"));
    assert_eq!(store.told(C), line("records=1"));
    let error = store
        .operator(0)
        .reindex(Some("nobody"), &mut quietly)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn the_index_is_in_one_piece_afterwards() {
    let store = filled();
    let pieces = |table: &str| {
        let sql = format!("SELECT count(DISTINCT segid) FROM {table}_idx");
        store.rows(P, &sql)
    };
    assert!(pieces("memory_words") > 1);
    reindex(&store);
    assert_eq!((pieces("memory_words"), pieces("memory_grams")), (1, 1));
}

#[test]
fn a_crash_in_the_middle_leaves_the_index_as_it_was() {
    let store = filled();
    store
        .by_hand(P)
        .execute("DELETE FROM memory_key WHERE words = 'k77'", [])
        .unwrap();
    let (_, copies, folder) = crashes(&store, || reindex(&store));
    let points: Vec<&str> = copies.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        points,
        [
            "reindex",
            "reindex",
            "before-commit",
            "reindex",
            "before-commit"
        ]
    );
    for (number, (name, copy)) in copies.iter().enumerate() {
        let storage = SqliteStorage::open(copy, SqliteOptions::default()).unwrap();
        let operator = storage.operator(at(0));
        let findings = operator.verify(None, &mut quietly).unwrap().findings;
        // Until the first level is done, it is as it was.
        let wrong = usize::from(number <= 2);
        assert_eq!(findings.len(), wrong, "{name}: {findings:?}");
        operator.reindex(None, &mut quietly).unwrap();
        let verified = operator.verify(None, &mut quietly).unwrap();
        assert_eq!(verified.findings, [], "{name}");
    }
    store.assert_sound();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn nothing_but_the_index_and_the_trail_changes() {
    let store = filled();
    let kept = || {
        let sql = "SELECT group_concat(r) FROM (
                       SELECT seq || hex(seal) || content AS r FROM record
                       UNION ALL SELECT tag || key || seq FROM record_tag
                       UNION ALL SELECT name || value FROM meta WHERE name <> 'audit_head')";
        [P, C].map(|level| {
            store
                .by_hand(level)
                .query_row(sql, [], |row| row.get::<_, String>(0))
                .unwrap()
        })
    };
    let before = kept();
    reindex(&store);
    reindex(&store);
    assert_eq!(kept(), before);
    store.assert_sound();
}

#[test]
fn behind_a_damaged_page_of_the_index_every_other_table_is_checked() {
    for index in [
        "memory_words_config",
        "memory_words_data",
        "memory_grams_config",
        "memory_key",
    ] {
        for table in ["usage", "stamp", "edge", "erased", "foreign_event"] {
            let store = filled();
            let pages = |name: &str| -> (u32, u32) {
                store
                    .by_hand(P)
                    .query_row(
                        "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size
                         WHERE name = ?1",
                        [name],
                        |row| Ok((row.get(0)?, row.get(1)?)),
                    )
                    .unwrap()
            };
            let damaged = [pages(index), pages(table)];
            let Store { folder, storage } = store;
            drop(storage);
            let path = folder.path().join("store/agents/main/public.db");
            Connection::open(&path)
                .unwrap()
                .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
                .unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            for (root, size) in damaged {
                bytes[((root - 1) * size) as usize..(root * size) as usize].fill(0);
            }
            std::fs::write(&path, bytes).unwrap();
            let root = folder.path().join("store");
            let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
            let findings = storage
                .operator(at(0))
                .verify(None, &mut quietly)
                .unwrap()
                .findings;
            for (check, (root, _)) in ["index", "integrity"].into_iter().zip(damaged) {
                let names = |what: &str| what.starts_with(&format!("Tree {root} "));
                let mut of = findings.iter().filter(|finding| finding.check == check);
                assert!(
                    of.any(|finding| names(&finding.what)),
                    "{index} {table}: {findings:?}"
                );
            }
        }
    }
}

#[test]
fn of_an_index_that_was_forgotten_no_page_is_left() {
    for table in [
        "memory_key",
        "memory_words_data",
        "memory_words_idx",
        "memory_words_config",
        "memory_grams_data",
        "memory_grams_idx",
        "memory_grams_config",
    ] {
        let store = filled();
        let (root, size): (u32, u32) = store
            .by_hand(P)
            .query_row(
                "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?1",
                [table],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        let path = store.path(P);
        let Store { folder, storage } = store;
        drop(storage);
        Connection::open(&path)
            .unwrap()
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[((root - 1) * size) as usize..(root * size) as usize].fill(0);
        std::fs::write(&path, bytes).unwrap();
        let root = folder.path().join("store");
        let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
        let store = Store { folder, storage };
        let reindex = || {
            let operator = store.storage.operator(at(0));
            operator.reindex(None, &mut quietly).unwrap();
        };
        let ((), copies, copied) = crashes(&store, reindex);
        // SQLite's own check passes over pages that nothing uses, as long as the first
        // table that it happens to come to is a virtual one.
        let lost = "SELECT (SELECT page_count FROM pragma_page_count)
                        - (SELECT freelist_count FROM pragma_freelist_count)
                        - (SELECT count(*) FROM dbstat)";
        assert_eq!(store.rows(P, lost), 0, "{table}");
        store.assert_sound();
        // Nor where it was not run to its end, and is run again.
        for (name, root) in copies {
            let storage = SqliteStorage::open(&root, SqliteOptions::default()).unwrap();
            let operator = storage.operator(at(0));
            operator.reindex(None, &mut quietly).unwrap();
            assert_eq!(operator.verify(None, &mut quietly).unwrap().findings, []);
            let db = Connection::open(root.join("agents/main/public.db")).unwrap();
            let lost: i64 = db.query_row(lost, [], |row| row.get(0)).unwrap();
            assert_eq!(lost, 0, "{table}: {name}");
        }
        std::fs::remove_dir_all(copied).unwrap();
    }
}
