//! A store made by a few random acts, and what a session sees of it by brute force: look at
//! everything, then hide, sort and cut.

use super::*;
use crate::contract::{ContextArguments, Instant};
use crate::fake::score;
use crate::moment::DAY;

pub(super) const KEYS: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const WORDS: [&str; 3] = ["red", "blue", "green"];
pub(super) const TAGS: [&str; 4] = ["project", "rule", "x", "y"];

#[derive(Debug, Clone)]
pub(super) enum Act {
    Save {
        words: usize,
        tag: Option<usize>,
        origin: usize,
        supersedes: Option<usize>,
        long: bool,
    },
    Delete {
        hide_lower: bool,
    },
    Confirm,
    Get,
}

/// An act, with the level and the key of it and how many days go by before it.
pub(super) fn acts() -> impl Strategy<Value = Vec<(Act, usize, usize, u8)>> {
    let act = prop_oneof![
        6 => (
            0..8_usize,
            prop::option::of(0..TAGS.len()),
            0..3_usize,
            prop::option::weighted(0.3, 0..KEYS.len()),
            prop::bool::weighted(0.2),
        )
            .prop_map(|(words, tag, origin, supersedes, long)| Act::Save {
                words,
                tag,
                origin,
                supersedes,
                long,
            }),
        1 => any::<bool>().prop_map(|hide_lower| Act::Delete { hide_lower }),
        2 => Just(Act::Confirm),
        2 => Just(Act::Get),
    ];
    prop::collection::vec((act, 0..4_usize, 0..KEYS.len(), 0..70_u8), 0..16)
}

/// The store after these acts, through the tools.
pub(super) fn store(acts: &[(Act, usize, usize, u8)], rows: u32, hostile: bool) -> FakeHost {
    let mut host = FakeHost {
        rows,
        ..FakeHost::new(Public)
    };
    for (act, level, key, days) in acts {
        host.now += i64::from(*days) * DAY;
        let mut host = host.at(LEVELS[*level]);
        let key = KEYS[*key];
        match act {
            Act::Save {
                words,
                tag,
                origin,
                supersedes,
                long,
            } => {
                host.origin = [Origin::User, Origin::Agent, Origin::Tool][*origin];
                let words: Vec<&str> = (0..3)
                    .filter(|&i| words >> i & 1 == 1)
                    .map(|i| WORDS[i])
                    .collect();
                let filler = if *long {
                    "x".repeat(1500)
                } else {
                    String::new()
                };
                let _unseen = Tools::new(&host).save(SaveArguments {
                    tags: Vec::from_iter(tag.map(|tag| TAGS[tag].to_owned())),
                    supersedes: Vec::from_iter(supersedes.map(|key| KEYS[key].to_owned())),
                    ..save_arguments(key, &format!("{} . {filler}", words.join(" ")))
                });
            }
            Act::Delete { hide_lower } => {
                let _unseen = Tools::new(&host).delete(key, *hide_lower);
            }
            Act::Confirm => {
                let _unseen = Tools::new(&host).confirm(key, None);
            }
            Act::Get => {
                let _unseen = Tools::new(&host).get(key);
            }
        }
    }
    host.hostile = hostile;
    host
}

/// A record with what the visible levels say of it.
fn dressed(host: &FakeHost, memory: &Memory) -> Memory {
    let mut memory = memory.clone();
    for book in &host.books.borrow()[..=host.taint as usize] {
        for (id, at) in &book.stamps {
            if *id == memory.id && memory.confirmed_at.is_none_or(|before| before < *at) {
                memory.confirmed_at = Some(*at);
            }
        }
    }
    let edges = edges_from(host, &memory);
    if memory.superseded_at.is_none() {
        memory.superseded_at = edges.iter().map(|(at, _)| *at).min();
    }
    memory
}

/// The visible edges that take a record's place: when, and the new key.
fn edges_from(host: &FakeHost, memory: &Memory) -> Vec<(Instant, String)> {
    host.books.borrow()[..=host.taint as usize]
        .iter()
        .flat_map(|book| book.edges.clone())
        .filter(|edge| edge.old_id == memory.id)
        .map(|edge| (edge.at, edge.new_key.unwrap()))
        .collect()
}

fn entry(host: &FakeHost, level: usize, key: &str) -> Option<Entry> {
    host.shelves[level].borrow().get(key).cloned()
}

fn live(host: &FakeHost, level: usize, key: &str) -> Option<Memory> {
    match entry(host, level, key)? {
        Entry::Live(memory) => Some(dressed(host, &memory)).filter(|m| m.superseded_at.is_none()),
        Entry::Tombstone(_) => None,
    }
}

fn has_tombstone(host: &FakeHost, level: usize, key: &str) -> bool {
    matches!(entry(host, level, key), Some(Entry::Tombstone(_)))
}

/// Whether a tombstone above a record's level hides it: one by somebody as trusted.
fn buried(host: &FakeHost, memory: &Memory) -> bool {
    (memory.level as usize + 1..=host.taint as usize).any(|level| {
        matches!(entry(host, level, &memory.key), Some(Entry::Tombstone(by)) if by as u8 <= memory.origin as u8)
    })
}

/// The levels that are seen, highest first.
fn levels(host: &FakeHost) -> Vec<usize> {
    (0..=host.taint as usize).rev().collect()
}

pub(super) type Expected = (Memory, Option<Conflict>);

/// What is seen of every key.
pub(super) fn seen(host: &FakeHost) -> Vec<Expected> {
    let mut all = Vec::new();
    for key in KEYS {
        let column: Vec<Memory> = levels(host)
            .into_iter()
            .filter_map(|level| live(host, level, key))
            .filter(|memory| !buried(host, memory))
            .collect();
        if let Some(top) = column.first() {
            let best = column.iter().min_by_key(|m| m.origin as u8).unwrap();
            let conflict = (best.origin != top.origin).then_some(Conflict {
                level: best.level,
                origin: best.origin,
            });
            all.push((top.clone(), conflict));
        }
    }
    all
}

pub(super) fn review(host: &FakeHost, days: u32) -> Vec<Memory> {
    let before = host.now - i64::from(days) * DAY;
    let checked = |m: &Memory| m.confirmed_at.unwrap_or(m.updated_at);
    let mut all: Vec<Memory> = seen(host).into_iter().map(|(memory, _)| memory).collect();
    all.retain(|memory| checked(memory) < before);
    all.sort_by_key(|memory| (checked(memory), memory.id.clone()));
    all
}

/// A version's id, whether it is current, when and by what its place was taken, and the keys
/// of what it took the place of.
pub(super) type Told = (String, bool, Option<Instant>, Option<String>, Vec<String>);

pub(super) fn history(host: &FakeHost, key: &str) -> Vec<Told> {
    let mut versions: Vec<Memory> = Vec::new();
    for level in levels(host) {
        let past = host.books.borrow()[level].past.clone();
        let live = match entry(host, level, key) {
            Some(Entry::Live(memory)) => Some(memory),
            _ => None,
        };
        let all = past.into_iter().chain(live).filter(|m| m.key == key);
        let all = all.filter(|memory| !buried(host, memory));
        versions.extend(all.map(|memory| dressed(host, &memory)));
    }
    versions.sort_by_key(|m| std::cmp::Reverse((m.updated_at, m.level as u8, m.version)));
    let current = seen(host).into_iter().find(|(m, _)| m.key == key);
    versions
        .iter()
        .map(|memory| {
            let edges = edges_from(host, memory);
            let by = if edges.is_empty() {
                versions
                    .iter()
                    .any(|m| m.level == memory.level && m.version > memory.version)
                    .then(|| key.to_owned())
            } else {
                let hidden =
                    |key: &str| (0..=host.taint as usize).any(|l| has_tombstone(host, l, key));
                let named = edges.into_iter().filter(|(_, key)| !hidden(key)).min();
                named.map(|(_, key)| key)
            };
            let mut took: Vec<String> = host.books.borrow()[..=host.taint as usize]
                .iter()
                .flat_map(|book| &book.edges)
                .filter(|edge| edge.new_id == memory.id)
                .map(|edge| edge.old_key.clone().unwrap())
                .filter(|key| !(0..=host.taint as usize).any(|l| has_tombstone(host, l, key)))
                .collect();
            took.sort();
            took.dedup();
            (
                memory.id.clone(),
                current.as_ref().is_some_and(|(m, _)| m.id == memory.id),
                memory.superseded_at,
                memory.superseded_at.and(by),
                took,
            )
        })
        .collect()
}

pub(super) fn context(host: &FakeHost, arguments: &ContextArguments) -> String {
    let seen = seen(host);
    let mut order: Vec<Expected> = Vec::new();
    if let Some(query) = &arguments.query {
        let mut hits: Vec<(usize, Expected)> = seen
            .iter()
            .map(|seen| (score(query, &seen.0.content), seen.clone()))
            .filter(|(score, _)| *score > 0)
            .collect();
        hits.sort_by_key(|(score, (memory, _))| (std::cmp::Reverse(*score), memory.key.clone()));
        order.extend(hits.into_iter().map(|(_, seen)| seen));
    }
    let mut stages = vec![arguments.tags.clone()];
    stages.extend(["rule", "persona", "preference", "project"].map(|tag| vec![tag.to_owned()]));
    for tags in stages {
        let tagged = seen
            .iter()
            .filter(|(memory, _)| memory.tags.iter().any(|tag| tags.contains(tag)));
        order.extend(tagged.cloned());
    }
    let mut used: Vec<(usize, usize, String)> = Vec::new();
    for level in 0..=host.taint as usize {
        let books = host.books.borrow();
        let uses = &books[host.taint as usize].uses;
        let mut rows: Vec<(u64, String, String)> = KEYS
            .into_iter()
            .filter_map(|key| live(host, level, key))
            .filter_map(|m| uses.get(&m.id).map(|uses| (*uses, m.key, m.id)))
            .collect();
        rows.sort_by_key(|(uses, key, _)| (std::cmp::Reverse(*uses), key.clone()));
        let places = rows.into_iter().enumerate();
        used.extend(places.map(|(place, (_, _, id))| (place, 3 - level, id)));
    }
    used.sort();
    for (_, _, id) in used {
        order.extend(seen.iter().find(|(memory, _)| memory.id == id).cloned());
    }

    let budget = arguments.budget.unwrap_or(1000);
    let mut block = crate::block::Block::new(budget, host.now);
    let mut known = BTreeSet::new();
    for (memory, conflict) in order {
        if known.insert(memory.key.clone()) {
            block.offer(&memory, conflict.as_ref());
        }
    }
    block.finish()
}
