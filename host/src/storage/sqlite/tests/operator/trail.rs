//! The audit trail and its retention.

use super::*;
use crate::storage::sqlite::operator::{AuditFilter, AuditLine, Trail};

fn audit(store: &Store, filter: &AuditFilter) -> (Vec<AuditLine>, Vec<Trail>) {
    let mut lines = Vec::new();
    let trails = store
        .operator(0)
        .audit(filter, &mut |line| lines.push(line))
        .unwrap();
    (lines, trails)
}

fn forget(store: &Store, day: i64, span: u32) -> u64 {
    let forgotten = store
        .operator(day)
        .forget_events(None, days(span), false, &mut quietly)
        .unwrap();
    forgotten[0].removed
}

/// One save a day, from day 0 on.
fn daily(number: i64) -> Store {
    let store = Store::new();
    for day in 0..number {
        store
            .later(P, day * DAY)
            .put(&draft(&format!("k{day}"), "x"))
            .unwrap();
    }
    store
}

#[test]
fn lines_are_told_by_agent_session_and_time_with_the_check_of_their_trails() {
    let store = daily(4);
    store
        .open(Access {
            session: "other".to_owned(),
            now: at(9 * DAY),
            ..access(C, Origin::User)
        })
        .put(&draft("c", "x"))
        .unwrap();
    let (lines, trails) = audit(&store, &AuditFilter::default());
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line.intact));
    assert_eq!(lines[0].key.as_deref(), Some("k0"));
    assert_eq!(trails.len(), 2);
    assert_eq!((trails[0].lines, trails[0].removed), (4, 0));
    let of = |filter: AuditFilter| audit(&store, &filter).0.len();
    assert_eq!(of(AuditFilter::default().since(at(2 * DAY))), 3);
    assert_eq!(of(AuditFilter::default().session("other")), 1);
    assert_eq!(of(AuditFilter::default().agent("main").session("x")), 0);
    assert_eq!(store.told(P), []);
}

#[test]
fn a_broken_trail_is_told_to_its_end_with_where_it_breaks() {
    let store = daily(4);
    store
        .by_hand(P)
        .execute_batch(
            "DROP TRIGGER event_never_changes; UPDATE event SET kind = 'x' WHERE number = 2",
        )
        .unwrap();
    let (lines, trails) = audit(&store, &AuditFilter::default());
    let intact: Vec<bool> = lines.iter().map(|line| line.intact).collect();
    assert_eq!(intact, [true, false, false, false]);
    assert_eq!(
        trails[0].broken.as_ref().map(|broken| broken.number),
        Some(2)
    );
}

#[test]
fn retention_lets_the_beginning_go_and_the_rest_still_follows() {
    let store = daily(10);
    assert_eq!(forget(&store, 10, 20), 0);
    assert_eq!(store.told(P), []);
    // Lines of the days 0 to 3 are older than six days on day 10.
    assert_eq!(forget(&store, 10, 6), 4);
    let (lines, trails) = audit(&store, &AuditFilter::default());
    assert_eq!(lines.first().map(|line| line.number), Some(5));
    assert_eq!((trails[0].lines, trails[0].removed), (7, 4));
    assert_eq!(trails[0].broken, None);
    assert_eq!(
        store.told(P),
        [("retention".to_owned(), "removed=4".to_owned())]
    );
    store.save(P, "more", "x");
    store.assert_sound();
    assert_eq!(forget(&store, 10, 6), 0);
    // Twice, and everything but the line about it.
    assert_eq!(forget(&store, 1000, 6), 8);
    let (lines, trails) = audit(&store, &AuditFilter::default());
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].number, trails[0].removed), (13, 12));
    store.save(P, "again", "x");
    store.assert_sound();
}

#[test]
fn a_dry_run_counts_and_leaves_everything() {
    let store = daily(3);
    let would = store
        .operator(100)
        .forget_events(None, days(1), true, &mut quietly)
        .unwrap();
    assert_eq!((would[0].removed, would[0].dry_run), (3, true));
    assert_eq!(audit(&store, &AuditFilter::default()).0.len(), 3);
}

#[test]
fn what_is_left_is_still_append_only_and_its_beginning_can_not_be_taken() {
    let store = daily(10);
    forget(&store, 10, 6);
    let db = store.by_hand(P);
    for sql in [
        "DELETE FROM event WHERE number = 5",
        "UPDATE event SET kind = 'x'",
    ] {
        let error = db.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("append only"), "{error}");
    }
    for change in [
        "DELETE FROM event WHERE number = 5",
        "DELETE FROM event WHERE number < 7;
         UPDATE meta SET value = '6 ' || substr(value, 3) WHERE name = 'audit_anchor'",
        "DELETE FROM meta WHERE name = 'audit_anchor'",
        "DELETE FROM event; DELETE FROM meta WHERE name = 'audit_anchor'",
    ] {
        let store = daily(10);
        forget(&store, 10, 6);
        store
            .by_hand(P)
            .execute_batch(&format!("DROP TRIGGER event_never_goes; {change}"))
            .unwrap();
        let verified = store.verified();
        let checks: Vec<&str> = verified
            .findings
            .iter()
            .map(|finding| finding.check.as_str())
            .collect();
        assert!(checks.contains(&"audit"), "{change}: {verified:?}");
    }
}

#[test]
fn a_broken_trail_keeps_everything() {
    let store = daily(4);
    store
        .by_hand(P)
        .execute_batch(
            "DROP TRIGGER event_never_changes; UPDATE event SET kind = 'x' WHERE number = 2",
        )
        .unwrap();
    unavailable(
        store
            .operator(100)
            .forget_events(None, days(1), false, &mut quietly),
    );
    assert_eq!(store.rows(P, "SELECT count(*) FROM event"), 4);
}

#[test]
fn a_crash_in_the_middle_leaves_the_whole_trail_or_the_whole_rest() {
    let store = daily(10);
    let (_, copies, folder) = crashes(&store, || forget(&store, 10, 6));
    assert_eq!(copies.len(), 1);
    let storage = SqliteStorage::open(&copies[0].1, SqliteOptions::default()).unwrap();
    let verified = storage.operator(at(0)).verify(None, &mut quietly).unwrap();
    assert_eq!((verified.findings.len(), verified.events), (0, 10));
    assert_eq!(store.verified().events, 7);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_beginning_that_was_let_go_by_hand_is_noticed() {
    let store = daily(10);
    assert_eq!(forget(&store, 10, 6), 4);
    // As retention would leave it, but for the seal.
    let db = store.by_hand(P);
    db.execute_batch(
        "UPDATE meta SET value = (SELECT number || ' ' || lower(hex(chain)) FROM event
                                  WHERE number = 6) WHERE name = 'audit_anchor';
         DELETE FROM event WHERE number <= 6",
    )
    .unwrap();
    let (lines, trails) = audit(&store, &AuditFilter::default());
    assert_eq!(lines.first().map(|line| line.number), Some(7));
    assert!(trails[0].broken.is_some());
    assert!(lines.iter().all(|line| !line.intact));
    let found = store.verified().findings;
    assert!(
        found.iter().any(|finding| finding.check == "audit"),
        "{found:?}"
    );
    let text = unavailable(
        store
            .operator(1000)
            .forget_events(None, days(1), false, &mut quietly),
    );
    assert!(text.contains("seal"), "{text}");
}
