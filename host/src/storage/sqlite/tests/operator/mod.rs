//! What the operator's commands promise.

mod looking;
mod pruning;
mod purging;
mod reindexing;
mod restoring;
mod trail;
mod verifying;
mod waiting;

use super::*;
use crate::storage::sqlite::operator::{self, Operator, Progress, Verification, days};

const DAY: i64 = 24 * 60 * 60;

fn quietly(_: Progress) {}

impl Store {
    /// The operator, so many days after the tests' moment.
    fn operator(&self, day: i64) -> Operator<'_> {
        self.storage.operator(at(day * DAY))
    }

    fn verified(&self) -> Verification {
        self.operator(0).verify(None, &mut quietly).unwrap()
    }

    #[track_caller]
    fn assert_sound(&self) {
        assert_eq!(self.verified().findings, []);
    }

    fn delete(&self, level: Level, key: &str) -> String {
        self.agent(level).retire(key, false).unwrap().unwrap()
    }

    fn rows(&self, level: Level, sql: &str) -> i64 {
        self.by_hand(level)
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }

    /// The operator's lines in a level's trail: what and details.
    fn told(&self, level: Level) -> Vec<(String, String)> {
        let events = self.storage.events("main", level).unwrap();
        events
            .into_iter()
            .filter(|event| event.session == operator::SESSION)
            .map(|event| {
                assert_eq!(event.origin, Origin::User);
                (event.kind, event.detail.unwrap_or_default())
            })
            .collect()
    }

    /// In which files a word stands, whatever its case.
    fn holding(&self, word: &str) -> Vec<String> {
        let word = word.to_lowercase();
        files(&self.root())
            .into_iter()
            .filter(|name| {
                let bytes = std::fs::read(self.root().join(name)).unwrap();
                bytes
                    .to_ascii_lowercase()
                    .windows(word.len())
                    .any(|window| window == word.as_bytes())
            })
            .collect()
    }
}

fn copy(from: &Path, to: &Path) {
    for name in files(from) {
        let target = to.join(&name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(from.join(&name), target).unwrap();
    }
}

fn expiring(key: &str, day: i64) -> Draft {
    Draft {
        expires_at: Some(at(day * DAY)),
        ..draft(key, "words")
    }
}

/// Calls `work` while a copy is taken at every fault point.
pub(super) fn crashes<T>(
    store: &Store,
    work: impl FnOnce() -> T,
) -> (T, Vec<(String, PathBuf)>, PathBuf) {
    let copies = folder().keep();
    let taken = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (root, into, list) = (store.root(), copies.clone(), std::rc::Rc::clone(&taken));
    operator::watch(Some(Box::new(move |name| {
        let number = list.borrow().len();
        let target = into.join(number.to_string());
        copy(&root, &target);
        list.borrow_mut().push((name.to_owned(), target));
    })));
    let done = work();
    operator::watch(None);
    (done, taken.take(), copies)
}
