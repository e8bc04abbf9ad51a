//! Taking a deletion back.

use super::*;
use crate::storage::sqlite::operator::{Prune, Purge, Undeleted};

fn undelete(store: &Store, id: &str) -> Result<Undeleted, Error> {
    store.operator(1).undelete(None, id)
}

#[track_caller]
fn refused(store: &Store, id: &str, why: &str) {
    let error = undelete(store, id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.what().contains(why), "{error}");
    store.assert_sound();
}

#[test]
fn a_deleted_record_is_there_again_with_its_words_tags_and_index() {
    let store = Store::new();
    store
        .agent(P)
        .put(&Draft {
            content: "zebra crossing".to_owned(),
            ..tagged("k", &["a", "b"])
        })
        .unwrap();
    let id = store.delete(P, "k");
    let undeleted = undelete(&store, &id).unwrap();
    assert_eq!((undeleted.level, undeleted.key.as_str()), (P, "k"));
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("zebra crossing"));
    let found = store.agent(P).search(P, "zebra", 0, 10).unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(store.agent(P).tags(P, 10).unwrap().len(), 2);
    assert_eq!(
        store.told(P),
        [("undelete".to_owned(), "version=1".to_owned())]
    );
    store.assert_sound();
    refused(&store, &id, "not deleted");
}

#[test]
fn what_a_tombstone_deleted_is_taken_back_and_the_tombstone_with_it() {
    let store = Store::new();
    store.save(P, "k", "low");
    let id = store.save(C, "k", "high").id;
    store.agent(C).retire("k", true).unwrap();
    undelete(&store, &id).unwrap();
    assert_eq!(store.seen(C, C, "k").as_deref(), Some("high"));
    store.assert_sound();
}

#[test]
fn one_that_only_hides_gives_way_and_never_comes_back_itself() {
    let store = Store::new();
    store.save(P, "k", "low");
    let id = store.save(C, "k", "high").id;
    store.delete(C, "k");
    store.agent(C).retire("k", true).unwrap();
    assert_eq!(store.seen(C, C, "k").as_deref(), Some("†"));
    let bare = store
        .by_hand(C)
        .query_row("SELECT id FROM record WHERE content = ''", [], |row| {
            row.get::<_, String>(0)
        })
        .unwrap();
    refused(&store, &bare, "holds no words");
    undelete(&store, &id).unwrap();
    assert_eq!(store.seen(C, C, "k").as_deref(), Some("high"));
    store.assert_sound();
    refused(&store, &bare, "took its place");
}

#[test]
fn it_is_refused_where_something_newer_stands_or_stood() {
    let store = Store::new();
    store.save(P, "k", "one");
    let first = store.delete(P, "k");
    store.save(P, "k", "two");
    refused(&store, &first, "Another version");
    let second = store.delete(P, "k");
    refused(&store, &first, "Version 2 was saved");
    undelete(&store, &second).unwrap();
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("two"));
}

#[test]
fn what_was_superseded_expired_or_purged_does_not_come_back() {
    let store = Store::new();
    let a = store.save(P, "a", "x").id;
    let b = Draft {
        supersedes: vec![a.clone()],
        ..draft("b", "y")
    };
    store.agent(P).put(&b).unwrap();
    store.delete(P, "b");
    refused(&store, &a, "took its place");

    store.agent(P).put(&expiring("c", 1)).unwrap();
    let c = store.delete(P, "c");
    refused(&store, &c, "time is over");

    store.save(P, "d", "x");
    let d = store.delete(P, "d");
    store
        .operator(0)
        .purge(None, &Purge::key("d"), Duration::ZERO, &mut quietly)
        .unwrap();
    refused(&store, &d, "erased");

    store.save(P, "e", "x");
    let e = store.delete(P, "e");
    let prune = Prune::default().deleted_after(days(0));
    store.operator(1).prune(None, &prune, &mut quietly).unwrap();
    assert_eq!(
        undelete(&store, &e).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn an_id_is_given_by_as_many_first_digits_as_name_one_record() {
    let next = std::sync::atomic::AtomicU8::new(0);
    let store = Store::with(SqliteOptions::default().ids(move || {
        let mut id = [0xab; 16];
        id[2] = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        id
    }));
    store.save(P, "k", "x");
    store.save(C, "other", "x");
    let id = store.delete(P, "k");
    assert_eq!(&id[..6], "abab00");
    for (wrong, kind) in [
        ("aba", ErrorKind::InvalidArgument),
        ("", ErrorKind::InvalidArgument),
        ("%%%%", ErrorKind::InvalidArgument),
        ("key/x", ErrorKind::InvalidArgument),
        (&format!("{id}0"), ErrorKind::InvalidArgument),
        // Of both records.
        ("abab", ErrorKind::InvalidArgument),
        // F031: oaustegard/claude-skills #244
        ("abab02", ErrorKind::NotFound),
        ("00000000000000000000000000000000", ErrorKind::NotFound),
    ] {
        let error = undelete(&store, wrong).unwrap_err();
        assert_eq!(error.kind(), kind, "{wrong}: {error}");
    }
    assert_eq!(store.seen(P, P, "k"), None);
    assert_eq!(undelete(&store, "ABAB00").unwrap().id, id);
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("x"));
}

#[test]
fn what_waited_and_was_deleted_waits_again_and_takes_nobodys_place() {
    let store = Store::new();
    store.user(P).put(&draft("k", "the person's")).unwrap();
    let waiting = store.save(P, "k", "the model's");
    store.user(P).retire("k", false).unwrap();
    store
        .user(P)
        .put(&draft("k", "the person's again"))
        .unwrap();
    assert_eq!(undelete(&store, &waiting.id).unwrap().standing, "pending");
    assert_eq!(store.seen(P, P, "k").as_deref(), Some("the person's again"));
    assert_eq!(store.agent(P).counts(P).unwrap().pending, 1);
    store.assert_sound();
}
