//! The queue of what is to be checked again.

use super::*;
use crate::storage::StalePosition;

/// The queue's keys, the same whether it is read at once or one by one.
fn queue(store: &Store, taint: Level, level: Level, before: i64) -> Vec<String> {
    let mut shelves = store.later(taint, 1_000);
    let all = shelves.stale(level, at(before), None, 200).unwrap();
    assert!(!all.more);
    for limit in [1, 2, 3] {
        let (mut after, mut pages) = (None, Vec::new());
        loop {
            let page = shelves
                .stale(level, at(before), after.as_ref(), limit)
                .unwrap();
            assert!(page.items.len() == limit || !page.more);
            pages.extend(page.items);
            if !page.more {
                break;
            }
            after = pages.last().map(|last| StalePosition {
                checked_at: last.confirmed_at.unwrap_or(last.updated_at),
                id: last.id.clone(),
            });
        }
        assert_eq!(pages, all.items, "{limit} at once");
    }
    all.items.into_iter().map(|memory| memory.key).collect()
}

/// Records `0` to `5`, saved one second after another.
fn six(level: Level) -> (Store, Vec<String>) {
    let store = Store::new();
    let ids = (0..6)
        .map(|i| {
            let mut shelves = store.later(level, i);
            shelves.put(&draft(&i.to_string(), "words")).unwrap().id
        })
        .collect();
    (store, ids)
}

#[test]
fn the_longest_unconfirmed_come_first_up_to_the_moment_asked_for() {
    let (store, _) = six(P);
    assert_eq!(queue(&store, P, P, 100), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(queue(&store, R, P, 4), ["0", "1", "2", "3"]);
    assert_eq!(queue(&store, P, P, 0), [""; 0]);
}

#[test]
fn what_is_confirmed_goes_to_where_its_new_date_stands() {
    let (store, ids) = six(P);
    store.later(P, 50).stamp(&ids[0], None).unwrap();
    assert_eq!(queue(&store, P, P, 100), ["1", "2", "3", "4", "5", "0"]);
    assert_eq!(queue(&store, P, P, 50), ["1", "2", "3", "4", "5"]);
    store.later(P, 3).stamp(&ids[1], None).unwrap();
    let mut three = [("1", &ids[1]), ("3", &ids[3])];
    three.sort_by_key(|(_, id)| *id);
    assert_eq!(
        queue(&store, P, P, 50),
        ["2", three[0].0, three[1].0, "4", "5"]
    );
}

#[test]
fn a_confirmation_from_above_moves_it_for_those_who_see_it_and_for_nobody_else() {
    let (store, ids) = six(P);
    store.later(C, 50).stamp(&ids[0], None).unwrap();
    store.later(R, 60).stamp(&ids[1], None).unwrap();
    for taint in [P, I] {
        assert_eq!(
            queue(&store, taint, P, 50),
            ["0", "1", "2", "3", "4", "5"],
            "{taint}"
        );
    }
    assert_eq!(queue(&store, C, P, 50), ["1", "2", "3", "4", "5"]);
    assert_eq!(queue(&store, R, P, 50), ["2", "3", "4", "5"]);
    assert_eq!(queue(&store, C, P, 55), ["1", "2", "3", "4", "5", "0"]);
    assert_eq!(queue(&store, R, P, 99), ["2", "3", "4", "5", "0", "1"]);
}

#[test]
fn confirmations_on_several_levels_count_once_and_the_latest_does() {
    let (store, ids) = six(P);
    for (taint, seconds) in [(P, 20), (I, 40), (C, 40), (R, 30), (C, 10), (I, 25)] {
        store.later(taint, seconds).stamp(&ids[2], None).unwrap();
    }
    for (taint, places) in [(P, 20), (I, 40), (C, 40), (R, 40)] {
        assert_eq!(queue(&store, taint, P, places + 1).last().unwrap(), "2");
        assert!(!queue(&store, taint, P, places).contains(&"2".to_owned()));
    }
}

#[test]
fn a_confirmation_before_the_save_by_a_clock_set_back_is_still_the_date() {
    for taint in [P, C] {
        let (store, ids) = six(P);
        store.later(taint, -10).stamp(&ids[4], None).unwrap();
        assert_eq!(
            queue(&store, taint, P, 100),
            ["4", "0", "1", "2", "3", "5"],
            "{taint}"
        );
    }
}

#[test]
fn what_is_not_live_is_not_in_it() {
    let (store, ids) = six(P);
    for id in [&ids[0], &ids[1], &ids[2], &ids[3]] {
        store.later(C, 20).stamp(id, None).unwrap();
    }
    store.later(P, 21).put(&draft("0", "new")).unwrap();
    store.later(P, 20).retire("1", false).unwrap();
    let newer = Draft {
        supersedes: vec![ids[2].clone(), ids[4].clone()],
        ..draft("newer", "x")
    };
    store.later(C, 30).put(&newer).unwrap();
    let limited = Draft {
        expires_at: Some(at(900)),
        ..draft("limited", "x")
    };
    store.later(P, 6).put(&limited).unwrap();
    store
        .open(access(P, Origin::Tool))
        .put(&draft("apart", "x"))
        .unwrap();
    assert_eq!(queue(&store, C, P, 100), ["5", "3", "0"]);
    assert_eq!(queue(&store, P, P, 100), ["2", "3", "4", "5", "0"]);
    assert_eq!(queue(&store, C, C, 100), ["newer"]);
    assert_eq!(queue(&store, R, I, 100), [""; 0]);
}

#[test]
fn many_of_one_moment_are_each_told_once() {
    let store = Store::with(SqliteOptions::default().page_rows(7));
    let mut saved: Vec<String> = (0..119)
        .map(|i| store.save(P, &format!("{i:03}"), "x").id)
        .collect();
    for id in saved.iter().step_by(3) {
        store.later(I, 10).stamp(id, None).unwrap();
    }
    for taint in [P, I] {
        let (mut after, mut told) = (None, Vec::new());
        loop {
            let mut shelves = store.later(taint, 99);
            let page = shelves.stale(P, at(11), after.as_ref(), 13).unwrap();
            assert!(page.items.len() <= 7);
            after = page.items.last().map(|last| StalePosition {
                checked_at: last.confirmed_at.unwrap_or(last.updated_at),
                id: last.id.clone(),
            });
            told.extend(page.items.into_iter().map(|memory| memory.id));
            if !page.more {
                break;
            }
        }
        told.sort();
        saved.sort();
        assert_eq!(told, saved, "{taint}");
    }
}

#[test]
fn dates_at_the_ends_of_time_are_asked_for_without_harm() {
    let (store, ids) = six(P);
    let first = Instant::from_millis_clamped(i64::MIN);
    let last = Instant::from_millis_clamped(i64::MAX);
    let mut shelves = store.agent(P);
    assert_eq!(shelves.stale(P, first, None, 9).unwrap().items.len(), 0);
    assert_eq!(shelves.stale(P, last, None, 9).unwrap().items.len(), 6);
    let behind = StalePosition {
        checked_at: last,
        id: ids[0].clone(),
    };
    assert_eq!(shelves.stale(P, last, Some(&behind), 9).unwrap().items, []);
}

#[test]
fn neither_the_records_nor_the_stamps_are_scanned() {
    let (store, ids) = six(P);
    store.later(C, 9).stamp(&ids[0], None).unwrap();
    let plan = |level: Level, sql: &str| -> String {
        let db = store.by_hand(level);
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        for parameter in 1..=statement.parameter_count() {
            statement.raw_bind_parameter(parameter, "").unwrap();
        }
        let mut rows = statement.raw_query();
        let mut text = String::new();
        while let Some(row) = rows.next().unwrap() {
            text.push_str(&row.get::<_, String>(3).unwrap());
            text.push('\n');
        }
        text
    };
    for sql in super::super::stale::BY_RECORD {
        let text = plan(P, sql);
        assert!(
            text.contains("USING INDEX record_checked (<expr>"),
            "{text}"
        );
        assert!(!text.contains("TEMP B-TREE"), "{text}");
    }
    let text = plan(C, super::super::stale::BY_STAMP);
    assert!(
        text.contains("INDEX stamp_order (record_level=? AND (at,record_id)>(?,?)"),
        "{text}"
    );
    assert!(!text.contains("TEMP B-TREE"), "{text}");
}
