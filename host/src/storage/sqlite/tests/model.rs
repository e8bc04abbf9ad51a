//! A superseded record never comes back, whatever happens to what took its place:
//! random histories against a model.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::level::can_flow_to;
use crate::storage::{Filter, StalePosition};

const KEYS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Act {
    Save {
        key: usize,
        words: usize,
        lasts: Option<i64>,
    },
    /// Saves in place of whatever is visible under other keys.
    Supersede {
        key: usize,
        of: [bool; 3],
        lasts: Option<i64>,
    },
    Delete {
        key: usize,
        hide_lower: bool,
    },
    Confirm {
        key: usize,
    },
    /// Moves the clock, also back.
    Wait(i64),
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let key = 0..KEYS.len();
    let lasts = proptest::option::weighted(0.4, 1..20_i64);
    let act = prop_oneof![
        4 => (key.clone(), 0..3_usize, lasts.clone())
            .prop_map(|(key, words, lasts)| Act::Save { key, words, lasts }),
        4 => (key.clone(), any::<[bool; 3]>(), lasts)
            .prop_map(|(key, of, lasts)| Act::Supersede { key, of, lasts }),
        2 => (key.clone(), any::<bool>())
            .prop_map(|(key, hide_lower)| Act::Delete { key, hide_lower }),
        1 => key.prop_map(|key| Act::Confirm { key }),
        3 => (-8..15_i64).prop_map(Act::Wait),
    ];
    (0..4_usize, act)
}

/// A record as the rules would have it.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    key: &'static str,
    level: Level,
    expires: Option<i64>,
    /// Superseded or deleted, on its own level.
    superseded: bool,
    deleted: bool,
    /// The levels from which something took its place.
    edges: Vec<Level>,
}

impl Known {
    /// Nothing took its place that a session at `taint` sees.
    fn replaced(&self, taint: Level) -> bool {
        self.superseded || self.edges.iter().any(|edge| can_flow_to(*edge, taint))
    }

    fn live(&self, taint: Level, now: i64) -> bool {
        can_flow_to(self.level, taint)
            && !self.deleted
            && !self.replaced(taint)
            && self.expires.is_none_or(|at| now < at)
    }
}

/// The ids that a session is given, by each path.
fn told(store: &Store, taint: Level, now: i64) -> Vec<(&'static str, BTreeSet<String>)> {
    let mut shelves = store.open(Access {
        now: at(now),
        ..access(taint, Origin::User)
    });
    let mut all = ["fetch", "page", "search", "stale", "used"].map(|path| (path, BTreeSet::new()));
    for level in Level::readable_at(taint) {
        for key in KEYS {
            if let Some(Entry::Live(memory)) = shelves.fetch(level, key).unwrap() {
                all[0].1.insert(memory.id);
            }
        }
        let mut after: Option<String> = None;
        loop {
            let page = shelves
                .page(level, &Filter::default(), after.as_deref(), 2)
                .unwrap();
            after = page.items.last().map(|memory| memory.key.clone());
            all[1]
                .1
                .extend(page.items.into_iter().map(|memory| memory.id));
            if !page.more {
                break;
            }
        }
        let found = shelves.search(level, "words", 0, 100).unwrap();
        all[2]
            .1
            .extend(found.items.into_iter().map(|hit| hit.memory.id));
        let mut after: Option<StalePosition> = None;
        loop {
            let last = Instant::from_millis_clamped(i64::MAX);
            let page = shelves.stale(level, last, after.as_ref(), 2).unwrap();
            after = page.items.last().map(|memory| StalePosition {
                checked_at: memory.confirmed_at.unwrap_or(memory.updated_at),
                id: memory.id.clone(),
            });
            all[3]
                .1
                .extend(page.items.into_iter().map(|memory| memory.id));
            if !page.more {
                break;
            }
        }
    }
    // Whatever was given is used, so the list of what is used is the same. A
    // level without a file keeps no counts.
    if store.path(taint).exists() {
        let ids: Vec<String> = all[0].1.iter().cloned().collect();
        shelves.record_use(&ids);
        for level in Level::readable_at(taint) {
            let used = shelves.used(level, 0, 200, 0).unwrap();
            all[4]
                .1
                .extend(used.items.into_iter().map(|memory| memory.id));
        }
    } else {
        all[4].1 = all[0].1.clone();
    }
    all.into()
}

fn check(steps: &[(usize, Act)]) {
    let store = Store::new();
    let mut known: Vec<Known> = Vec::new();
    let mut gone: Vec<BTreeSet<String>> = vec![BTreeSet::new(); Level::ALL.len()];
    let mut now = 0;
    for (taint, act) in steps {
        let taint = Level::ALL[*taint];
        let mut shelves = store.open(Access {
            now: at(now),
            ..access(taint, Origin::User)
        });
        match act {
            Act::Wait(seconds) => now += seconds,
            Act::Save { .. } | Act::Supersede { .. } => {
                let (key, words, lasts, of) = match act {
                    Act::Save { key, words, lasts } => (*key, *words, *lasts, [false; 3]),
                    Act::Supersede { key, of, lasts } => (*key, 9, *lasts, *of),
                    _ => unreachable!(),
                };
                let supersedes: Vec<String> = known
                    .iter()
                    .filter(|record| record.live(taint, now))
                    .filter(|record| {
                        KEYS.iter()
                            .zip(of)
                            .any(|(key, of)| of && record.key == *key)
                    })
                    .map(|record| record.id.clone())
                    .collect();
                let expires = lasts.map(|lasts| now + lasts);
                let receipt = shelves
                    .put(&Draft {
                        expires_at: expires.map(at),
                        supersedes: supersedes.clone(),
                        ..draft(KEYS[key], &format!("words {words}"))
                    })
                    .unwrap();
                if receipt.outcome == Outcome::Unchanged {
                    assert!(known.iter().any(|record| record.id == receipt.id));
                    continue;
                }
                for old in &mut known {
                    let previous = old.key == KEYS[key] && old.level == taint && !old.deleted;
                    if previous && !old.superseded {
                        old.superseded = true;
                    } else if supersedes.contains(&old.id) {
                        old.edges.push(taint);
                        old.superseded |= old.level == taint;
                    }
                }
                known.push(Known {
                    id: receipt.id,
                    key: KEYS[key],
                    level: taint,
                    expires,
                    superseded: false,
                    deleted: false,
                    edges: Vec::new(),
                });
            }
            Act::Delete { key, hide_lower } => {
                let deleted = shelves.retire(KEYS[*key], *hide_lower).unwrap();
                let live = known.iter_mut().find(|record| {
                    record.level == taint && record.key == KEYS[*key] && record.live(taint, now)
                });
                assert_eq!(deleted.as_ref(), live.as_ref().map(|record| &record.id));
                if let Some(live) = live {
                    live.deleted = true;
                }
            }
            Act::Confirm { key } => {
                for record in &known {
                    if record.key == KEYS[*key] {
                        let confirmed = shelves.stamp(&record.id, None).is_ok();
                        assert_eq!(confirmed, record.live(taint, now), "{record:?}");
                    }
                }
            }
        }
        drop(shelves);
        for (number, taint) in Level::ALL.into_iter().enumerate() {
            let replaced = known.iter().filter(|record| record.replaced(taint));
            gone[number].extend(replaced.map(|record| record.id.clone()));
            let expected: BTreeSet<String> = known
                .iter()
                .filter(|record| record.live(taint, now))
                .map(|record| record.id.clone())
                .collect();
            for (path, ids) in told(&store, taint, now) {
                assert!(
                    ids.is_disjoint(&gone[number]),
                    "at {taint} {path} gave back what was superseded"
                );
                assert_eq!(ids, expected, "at {taint} by {path}, {now} s");
            }
        }
    }
    // What was superseded on its own level says so itself, edge or not.
    for record in known.iter().filter(|record| record.superseded) {
        let marked: bool = store
            .by_hand(record.level)
            .query_row(
                "SELECT superseded_at IS NOT NULL FROM record WHERE id = ?1",
                [&record.id],
                |row| row.get(0),
            )
            .unwrap();
        assert!(marked, "{record:?}");
    }
    // Nor does opening the store again bring anything back.
    let again = Store {
        storage: SqliteStorage::open(&store.root(), SqliteOptions::default()).unwrap(),
        folder: store.folder,
    };
    for (number, taint) in Level::ALL.into_iter().enumerate() {
        for (path, ids) in told(&again, taint, now) {
            assert!(ids.is_disjoint(&gone[number]), "{path}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_superseded_record_never_comes_back_and_what_is_live_is_told_by_every_path(
        steps in proptest::collection::vec(act(), 5..40),
    ) {
        check(&steps);
    }
}

/// The chain that trips others.
#[test]
fn neither_the_end_nor_the_expiry_of_a_successor_brings_back_what_it_replaced() {
    for end in [
        Act::Delete {
            key: 1,
            hide_lower: false,
        },
        Act::Delete {
            key: 1,
            hide_lower: true,
        },
        Act::Save {
            key: 1,
            words: 2,
            lasts: None,
        },
        Act::Wait(14),
    ] {
        for (low, high) in [(0, 0), (0, 2), (2, 2)] {
            check(&[
                (
                    low,
                    Act::Save {
                        key: 0,
                        words: 0,
                        lasts: None,
                    },
                ),
                (
                    high,
                    Act::Supersede {
                        key: 1,
                        of: [true, false, false],
                        lasts: Some(9),
                    },
                ),
                (high, end.clone()),
                (high, Act::Wait(-8)),
                (
                    low,
                    Act::Save {
                        key: 2,
                        words: 1,
                        lasts: None,
                    },
                ),
                (
                    high,
                    Act::Delete {
                        key: 1,
                        hide_lower: true,
                    },
                ),
            ]);
        }
    }
}
