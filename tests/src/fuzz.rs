//! Documents and queries out of all of Unicode, saved, searched, saved again and
//! deleted, next to a map that says what must be there.
//!
//! Two ways lead to the store: [`Way::Storage`], as the plugin's imports do, two
//! levels at a time, and [`Way::Component`], by JSON through the compiled tools.
//! Both hold the same:
//!
//! - the only errors are the documented refusals, where they are due;
//! - a hit is live, its snippet is from its content, its score is above zero and not
//!   higher than that of the hit before, and it has something in common with the
//!   query;
//! - each saved document is found by its own words;
//! - afterwards [`verify`](remora_host::storage::sqlite::operator::Operator::verify)
//!   finds nothing: every term of the index at its place, and no other.
//!
//! All depends on the seed alone, so what fails once can be looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use remora_host::search::analyser::{Analyser, Kind, Token, tokens};
use remora_host::storage::{
    Access, Draft, Matches, Shelves, SqliteStorage, StorageProvider as _, limits,
    sqlite::SqliteOptions,
};
use remora_host::{
    Clock as _, Error, ErrorKind, Instant, Level, Origin, Session, SessionOptions, Store,
};
use serde_json::Value;

use crate::{AGENT, Calls as _, StandingClock, folder};

/// Which way the documents and queries take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Straight to the storage.
    Storage,
    /// By JSON through the component.
    Component,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Documents saved, for the first time or again.
    pub documents: u64,
    /// Random queries.
    pub queries: u64,
    /// Queries of a document's own words.
    pub own: u64,
    /// Documents deleted.
    pub deleted: u64,
    /// Documents and queries that were refused as they should.
    pub refused: u64,
    /// Hits that were looked at.
    pub hits: u64,
    /// Stores that were found sound.
    pub stores: u64,
    /// Documents without a word to be found by.
    pub wordless: u64,
}

impl Tally {
    /// Documents and queries together.
    #[must_use]
    pub fn inputs(&self) -> u64 {
        self.documents + self.queries + self.own + self.refused
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.queries += other.queries;
        self.own += other.own;
        self.deleted += other.deleted;
        self.refused += other.refused;
        self.hits += other.hits;
        self.stores += other.stores;
        self.wordless += other.wordless;
    }
}

/// Makes a store, does something over a thousand things with it, and looks at what
/// it has become. The same for the same seed.
///
/// # Panics
/// When anything is not as it should be: the message names the seed.
#[must_use]
pub fn batch(way: Way, seed: u64) -> Tally {
    let _named = Named(way, seed);
    let folder = folder();
    let path = folder.path().join("store");
    let clock = std::sync::Arc::new(StandingClock::default());
    let storage = SqliteStorage::open(&path, SqliteOptions::default()).expect("a store");
    let mut random = Random(seed);
    let tally = match way {
        Way::Storage => {
            let mut run = Run::new(Straight {
                storage: &storage,
                now: clock.now(),
            });
            run.go(&mut random, 1200, 120);
            run.tally
        }
        Way::Component => {
            let clock: std::sync::Arc<dyn remora_host::Clock> = clock.clone();
            let store = Store::with(std::sync::Arc::new(storage.clone()), clock);
            let session = store
                .session("fuzz", &SessionOptions::new(AGENT))
                .expect("a session");
            let mut run = Run::new(Tools {
                session,
                random: Random(seed ^ 1),
            });
            run.go(&mut random, 400, 50);
            run.tally
        }
    };
    let checked = storage
        .operator(clock.now())
        .verify(None, &mut |_| {})
        .expect("it looks");
    assert!(checked.is_sound(), "{:?}", checked.findings);
    assert!(checked.records > 0);
    Tally { stores: 1, ..tally }
}

/// Says which batch it was that panicked.
struct Named(Way, u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in fuzz::batch(Way::{:?}, {})", self.0, self.1);
        }
    }
}

/// A document as it was saved.
#[derive(Clone, Debug)]
struct Document {
    content: String,
    tags: Vec<String>,
}

/// A hit as any way tells it.
struct Found {
    level: Level,
    key: String,
    score: f64,
    snippet: String,
    excerpt: String,
}

/// How a document or a query was taken.
enum Taken<T> {
    Well(T),
    /// With the code of its error.
    Refused(String),
}

/// A way to a store.
trait Door {
    /// The levels that are written to.
    fn levels(&self) -> &[Level];
    /// Saves, and says under which key.
    fn save(&mut self, level: Level, key: &str, document: &Document) -> Taken<String>;
    fn delete(&mut self, level: Level, key: &str);
    /// All matches, until one is the wanted one. False: there are more of them than
    /// an answer has room for.
    fn search(
        &mut self,
        level: Level,
        text: &str,
        wanted: Option<(Level, &str)>,
    ) -> Taken<(Vec<Found>, bool)>;
    /// Why a document or a query has to be refused, by their bounds.
    fn refuses_key(&self, key: &str) -> bool;
    fn refuses_query(&self, text: &str) -> bool;
}

struct Straight<'a> {
    storage: &'a SqliteStorage,
    now: Instant,
}

const LEVELS: [Level; 2] = [Level::Public, Level::Confidential];

impl Straight<'_> {
    fn shelves(&self, taint: Level) -> Box<dyn Shelves> {
        let access = Access {
            agent: AGENT.to_owned(),
            session: "fuzz".to_owned(),
            taint,
            origin: Origin::User,
            read_only: None,
            trail: taint,
            now: self.now,
            deadline: std::time::Instant::now() + Duration::from_secs(120),
        };
        self.storage.open(access).expect("shelves")
    }
}

fn taken<T>(answer: Result<T, Error>) -> Taken<T> {
    match answer {
        Ok(answer) => Taken::Well(answer),
        Err(error) => {
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::InvalidArgument | ErrorKind::TooLarge
                ),
                "{error:?}"
            );
            Taken::Refused(error.kind().code().to_owned())
        }
    }
}

impl Door for Straight<'_> {
    fn levels(&self) -> &[Level] {
        &LEVELS
    }

    fn save(&mut self, level: Level, key: &str, document: &Document) -> Taken<String> {
        let draft = Draft {
            key: key.to_owned(),
            content: document.content.clone(),
            tags: document.tags.clone(),
            ..Draft::default()
        };
        match taken(self.shelves(level).put(&draft)) {
            Taken::Well(_) => Taken::Well(key.to_owned()),
            Taken::Refused(code) => Taken::Refused(code),
        }
    }

    fn delete(&mut self, level: Level, key: &str) {
        let retired = self.shelves(level).retire(key, false).expect("it deletes");
        assert!(retired.is_some(), "{key:?} was there");
    }

    fn search(
        &mut self,
        level: Level,
        text: &str,
        wanted: Option<(Level, &str)>,
    ) -> Taken<(Vec<Found>, bool)> {
        let mut shelves = self.shelves(level);
        let mut all = Vec::new();
        for shelf in LEVELS {
            if !remora_host::can_flow_to(shelf, level) {
                assert!(shelves.search(shelf, text, 0, 1).is_err(), "{shelf}");
                continue;
            }
            let mut after = 0;
            loop {
                let page = match taken(shelves.search(shelf, text, after, limits::MATCHES)) {
                    Taken::Well(page) => page,
                    Taken::Refused(code) => return Taken::Refused(code),
                };
                let Matches { items, more, .. } = page;
                assert!(!(more && items.is_empty()), "a page that does not advance");
                after += items.len();
                let mut done = !more;
                for item in items {
                    done |= wanted == Some((shelf, item.memory.key.as_str()));
                    all.push(Found {
                        level: shelf,
                        key: item.memory.key,
                        score: item.score,
                        snippet: item.snippet,
                        excerpt: item.memory.content,
                    });
                }
                if done {
                    break;
                }
            }
        }
        Taken::Well((all, true))
    }

    fn refuses_key(&self, key: &str) -> bool {
        // What is not in the normal form C is refused too: keys are made of such
        // characters alone.
        key.is_empty()
            || key.len() > limits::KEY_BYTES
            || key.trim() != key
            || key.chars().any(char::is_control)
    }

    fn refuses_query(&self, text: &str) -> bool {
        text.len() > limits::QUERY_BYTES
    }
}

struct Tools {
    session: Session,
    random: Random,
}

impl Tools {
    fn call(&mut self, tool: &str, arguments: &str) -> Taken<Value> {
        match self.session.raw(tool, arguments) {
            Ok(answer) => Taken::Well(serde_json::from_str(&answer).expect("an answer is JSON")),
            Err(error) => {
                assert!(
                    ["invalid_argument", "too_large"].contains(&error.code.as_str()),
                    "{tool}: {error:?}"
                );
                Taken::Refused(error.code)
            }
        }
    }

    /// A text as JSON, some of it escaped.
    fn json(&mut self, text: &str) -> String {
        let mut json = "\"".to_owned();
        let escaped = self.random.below(3) == 0;
        for c in text.chars() {
            if c < ' ' || c == '"' || c == '\\' || (escaped && self.random.below(4) == 0) {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    json.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                json.push(c);
            }
        }
        json.push('"');
        json
    }

    /// The same with half of a pair in it, which no text has.
    fn broken(&mut self, text: &str) -> String {
        let mut json = self.json(text);
        json.pop();
        let half = 0xd800 + self.random.below(0x800);
        json.push_str(&format!("\\u{half:04x}\""));
        json
    }
}

impl Door for Tools {
    fn levels(&self) -> &[Level] {
        &LEVELS[..1]
    }

    fn save(&mut self, _: Level, key: &str, document: &Document) -> Taken<String> {
        let key_json = self.json(key);
        if self.random.below(20) == 0 {
            let content = self.broken(&document.content);
            let answer = self.call(
                "memory_save",
                &format!(r#"{{"key":{key_json},"content":{content}}}"#),
            );
            assert!(matches!(answer, Taken::Refused(code) if code == "invalid_argument"));
        }
        let content = self.json(&document.content);
        let tags: Vec<String> = document.tags.iter().map(|tag| self.json(tag)).collect();
        let arguments = format!(
            r#"{{"key":{key_json},"content":{content},"tags":[{}]}}"#,
            tags.join(",")
        );
        match self.call("memory_save", &arguments) {
            Taken::Well(answer) => Taken::Well(answer["key"].as_str().expect("a key").to_owned()),
            Taken::Refused(code) => Taken::Refused(code),
        }
    }

    fn delete(&mut self, _: Level, key: &str) {
        let key_json = self.json(key);
        let answer = self.call("memory_delete", &format!(r#"{{"key":{key_json}}}"#));
        assert!(matches!(answer, Taken::Well(_)), "{key:?} was there");
    }

    fn search(
        &mut self,
        _: Level,
        text: &str,
        _: Option<(Level, &str)>,
    ) -> Taken<(Vec<Found>, bool)> {
        if self.random.below(20) == 0 {
            let query = self.broken(text);
            let answer = self.call("memory_search", &format!(r#"{{"query":{query}}}"#));
            assert!(matches!(answer, Taken::Refused(code) if code == "invalid_argument"));
        }
        let query = self.json(text);
        let answer = match self.call(
            "memory_search",
            &format!(r#"{{"query":{query},"max_results":100}}"#),
        ) {
            Taken::Well(answer) => answer,
            Taken::Refused(code) => return Taken::Refused(code),
        };
        let text_of = |hit: &Value, member: &str| hit[member].as_str().expect(member).to_owned();
        let all = answer["results"].as_array().expect("results").iter();
        let all = all.map(|hit| Found {
            level: Level::Public,
            key: text_of(hit, "key"),
            score: hit["score"].as_f64().expect("a score"),
            snippet: text_of(hit, "snippet"),
            excerpt: text_of(hit, "content"),
        });
        Taken::Well((all.collect(), answer["truncated"] == false))
    }

    fn refuses_key(&self, key: &str) -> bool {
        let key = key.trim();
        key.is_empty() || key.len() > limits::KEY_BYTES || key.chars().any(char::is_control)
    }

    fn refuses_query(&self, text: &str) -> bool {
        text.trim().is_empty()
    }
}

/// As much of a text as a message has room for.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(400)]
}

struct Run<D> {
    door: D,
    saved: BTreeMap<(usize, String), Document>,
    analyser: Analyser,
    tally: Tally,
}

impl<D: Door> Run<D> {
    fn new(door: D) -> Self {
        Self {
            door,
            saved: BTreeMap::new(),
            analyser: Analyser::new(),
            tally: Tally::default(),
        }
    }

    fn go(&mut self, random: &mut Random, steps: u32, keys: u64) {
        for _ in 0..steps {
            match random.below(20) {
                0..8 => self.save(random, keys),
                8 => self.delete(random),
                9..12 => self.find_one(random),
                _ => self.ask(random),
            }
        }
        let all: Vec<_> = self.saved.keys().cloned().collect();
        for place in all {
            self.find(random, &place);
        }
    }

    fn save(&mut self, random: &mut Random, keys: u64) {
        let at = random.index(self.door.levels().len());
        let level = self.door.levels()[at];
        let key = random.key(keys);
        let document = Document {
            content: random.document(),
            tags: random.tags(),
        };
        let due = self.door.refuses_key(&key)
            || document.content.is_empty()
            || document.content.len() > limits::CONTENT_BYTES;
        match self.door.save(level, &key, &document) {
            Taken::Well(key) => {
                assert!(!due, "{key:?} with {} bytes", document.content.len());
                self.saved.insert((at, key), document);
                self.tally.documents += 1;
            }
            Taken::Refused(code) => {
                // Blank content is the tools' own refusal.
                let blank = document.content.trim().is_empty();
                assert!(
                    due || blank,
                    "{code}: {key:?} {:?}",
                    head(&document.content)
                );
                self.tally.refused += 1;
            }
        }
    }

    fn delete(&mut self, random: &mut Random) {
        if let Some(place) = self.any(random) {
            let level = self.door.levels()[place.0];
            self.door.delete(level, &place.1);
            self.saved.remove(&place);
            self.tally.deleted += 1;
        }
    }

    fn any(&self, random: &mut Random) -> Option<(usize, String)> {
        let at = random.index(self.saved.len());
        self.saved.keys().nth(at).cloned()
    }

    fn ask(&mut self, random: &mut Random) {
        let at = random.index(self.door.levels().len());
        let level = self.door.levels()[at];
        let text = random.query();
        let due = self.door.refuses_query(&text);
        match self.door.search(level, &text, None) {
            Taken::Well((found, _)) => {
                assert!(!due, "{} bytes", text.len());
                self.check(&text, level, &found);
                if random.below(8) == 0 && text.len() < 2000 {
                    self.check_common(&text, &found);
                }
                self.tally.queries += 1;
            }
            Taken::Refused(code) => {
                assert!(due, "{code}: {} bytes, {:?}", text.len(), head(&text));
                self.tally.refused += 1;
            }
        }
    }

    fn check(&mut self, text: &str, level: Level, found: &[Found]) {
        let mut seen = BTreeSet::new();
        let mut before: Option<&Found> = None;
        for hit in found {
            let place = (self.index(hit.level), hit.key.clone());
            let Some(document) = self.saved.get(&place) else {
                panic!("{text:?} found {:?}, which is not saved", hit.key);
            };
            assert!(remora_host::can_flow_to(hit.level, level));
            assert!(hit.score.is_finite() && hit.score > 0.0, "{}", hit.score);
            assert!(hit.snippet.len() <= limits::SNIPPET_BYTES);
            assert!(document.content.contains(&hit.snippet), "{:?}", hit.snippet);
            assert!(!hit.snippet.is_empty(), "{:?}", document.content);
            assert!(document.content.starts_with(&hit.excerpt));
            if let Some(before) = before.filter(|before| before.level == hit.level) {
                let order = before.score.total_cmp(&hit.score).reverse();
                let order = order.then_with(|| before.key.cmp(&hit.key));
                assert!(order.is_lt(), "{text:?}: {:?}, {:?}", before.key, hit.key);
            }
            assert!(seen.insert(place), "{text:?}: {:?} twice", hit.key);
            before = Some(hit);
            self.tally.hits += 1;
        }
    }

    fn index(&self, level: Level) -> usize {
        let levels = self.door.levels();
        levels
            .iter()
            .position(|other| *other == level)
            .expect("a level that is written to")
    }

    /// Nothing is found that has no term and no gram of the query.
    fn check_common(&self, text: &str, found: &[Found]) {
        let mut asked = BTreeSet::new();
        let mut last = None;
        for token in tokens(text) {
            self.analyser.words(&token, |term| {
                asked.insert(term.to_owned());
            });
            self.analyser.grams(&token, |gram| {
                asked.insert(format!("{gram}\0"));
            });
            last = Some(token);
        }
        let prefix = last
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text);
        for hit in found.iter().take(5).chain(found.last()) {
            let document = &self.saved[&(self.index(hit.level), hit.key.clone())];
            let texts = [&hit.key, &document.content];
            let mut common = false;
            for text in texts.into_iter().chain(&document.tags) {
                for token in tokens(text) {
                    self.analyser.words(&token, |term| {
                        common |= asked.contains(term)
                            || prefix
                                .as_ref()
                                .is_some_and(|prefix| term.starts_with(prefix.as_str()));
                    });
                    self.analyser.grams(&token, |gram| {
                        common |= asked.contains(&format!("{gram}\0"));
                    });
                    if common {
                        break;
                    }
                }
            }
            assert!(common, "{text:?} has nothing of {:?}", hit.key);
        }
    }

    fn find_one(&mut self, random: &mut Random) {
        if let Some(place) = self.any(random) {
            self.find(random, &place);
        }
    }

    /// Looks for a document by some of its own words, by all of them or by its key.
    fn find(&mut self, random: &mut Random, place: &(usize, String)) {
        let document = self.saved[place].clone();
        let (key, content) = (place.1.as_str(), document.content.as_str());
        let known: Vec<Token> = tokens(content).collect();
        let by_key = random.below(10) == 0 || known.is_empty();
        let query = if by_key {
            key
        } else if (content.len() < 300 && random.below(3) == 0) || random.below(40) == 0 {
            content
        } else {
            let from = random.index(known.len());
            let to = known.len().min(from + 1 + random.index(8)) - 1;
            content
                .get(known[from].start..known[to].end)
                .expect("tokens are whole characters")
        };
        // Some mean nothing without what stood before them, such as the two signs
        // of C++.
        let texts = [key, content];
        let own: BTreeSet<(bool, String)> = texts
            .into_iter()
            .chain(document.tags.iter().map(String::as_str))
            .flat_map(tokens)
            .map(|token| (token.kind == Kind::Run, token.text))
            .collect();
        let mut any = false;
        for token in tokens(query) {
            any = true;
            if !own.contains(&(token.kind == Kind::Run, token.text)) {
                any = false;
                break;
            }
        }
        if !any {
            self.tally.wordless += 1;
            return;
        }
        let level = self.door.levels()[place.0];
        match self.door.search(level, query, Some((level, key))) {
            Taken::Well((found, whole)) => {
                self.check(query, level, &found);
                let there = found
                    .iter()
                    .any(|hit| hit.level == level && hit.key == *key);
                assert!(
                    there || !whole,
                    "{key:?} is not found by its own {:?} of {} bytes",
                    head(query),
                    content.len()
                );
                self.tally.own += 1;
            }
            Taken::Refused(code) => panic!("{code}: {:?}", head(query)),
        }
    }
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u64::try_from(length).unwrap_or(u64::MAX)))
            .expect("below a length")
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.index(from.len())]
    }

    fn char_in(&mut self, first: u32, last: u32) -> char {
        let span = u64::from(last - first) + 1;
        let number = first + u32::try_from(self.below(span)).expect("below u32");
        // Halves of pairs are no characters.
        char::from_u32(number).unwrap_or('\u{fffd}')
    }

    fn key(&mut self, keys: u64) -> String {
        match self.below(40) {
            // As it comes: some are refused.
            0 => {
                let mut key = String::new();
                for _ in 0..self.below(300) {
                    // Ideographs and symbols, which no normal form changes.
                    key.push(match self.below(6) {
                        0 => self.char_in(0, 0x7f),
                        1 => self.char_in(0x1f300, 0x1f5ff),
                        2 => ' ',
                        3 => self.char_in(0x4e00, 0x9fa5),
                        _ => self.char_in(0x61, 0x7a),
                    });
                }
                key
            }
            1..4 => format!("{} {}", self.pick(&WORDS), self.pick(&WORDS)).to_lowercase(),
            4..6 => self.pick(&WORDS).to_owned(),
            _ => format!("k/{}", self.below(keys)),
        }
    }

    fn tags(&mut self) -> Vec<String> {
        let tags: BTreeSet<String> = (0..self.below(4).saturating_sub(1))
            .map(|_| self.pick(&WORDS).to_owned())
            .collect();
        tags.into_iter().collect()
    }

    fn document(&mut self) -> String {
        let bytes = match self.below(4000) {
            0 => 262_144 + self.below(3),
            1 => self.below(262_144),
            2..40 => self.below(8000),
            40..1000 => self.below(400),
            _ => self.below(80),
        };
        let text = self.text(bytes);
        if bytes == 262_144 {
            // Just as much as there is room for.
            let mut text = text;
            text.truncate(text.floor_char_boundary(262_144));
            while text.len() < 262_144 {
                text.push('x');
            }
            return text;
        }
        text
    }

    fn query(&mut self) -> String {
        let bytes = match self.below(4000) {
            0 => self.below(1_000_000),
            1 => return "x".repeat(self.index(1_000_000)),
            2..8 => self.below(20_000),
            8..400 => self.below(300),
            _ => self.below(40),
        };
        self.text(bytes)
    }

    /// Not shorter than that.
    fn text(&mut self, bytes: u64) -> String {
        let bytes = usize::try_from(bytes).expect("below usize");
        let mut text = String::new();
        // One text in three is all plain words.
        let plain = self.below(3) == 0;
        while text.len() < bytes {
            if plain {
                text.push_str(self.pick(&WORDS));
                text.push(' ');
            } else {
                self.piece(&mut text);
                match self.below(4) {
                    0 => {}
                    1 => text.push_str(self.pick(&BETWEEN)),
                    _ => text.push(' '),
                }
            }
        }
        text
    }

    fn piece(&mut self, text: &mut String) {
        let several = 1 + self.below(6);
        let mut run = |random: &mut Self, first, last| {
            for _ in 0..several {
                text.push(random.char_in(first, last));
            }
        };
        match self.below(40) {
            0..12 => text.push_str(self.pick(&WORDS)),
            12 => self.mistyped(text),
            13..15 => text.push_str(self.pick(&SYNTAX)),
            15..17 => text.push_str(self.pick(&SEQUENCES)),
            // Every plane, noncharacters and private use too.
            17..19 => run(self, 0, 0x10_ffff),
            19 => {
                let plane = u32::try_from(self.below(17)).expect("a plane") << 16;
                run(self, plane, plane + 0xffff);
            }
            20 => {
                let plane = u32::try_from(self.below(17)).expect("a plane") << 16;
                run(self, plane + 0xfffe, plane + 0xffff);
            }
            21 => run(self, 0xfdd0, 0xfdef),
            22 => run(self, 0, 0x1f),
            23 => run(self, 0x7f, 0x24f),
            24 => run(self, 0x300, 0x36f),
            25 => run(self, 0x370, 0x52f),
            26 => run(self, 0x590, 0x6ff),
            27 => run(self, 0x900, 0x97f),
            28 => run(self, 0xe00, 0xeff),
            29 => run(self, 0x1100, 0x11ff),
            30 => run(self, 0xac00, 0xd7ff),
            31 => run(self, 0x3041, 0x30ff),
            32 => run(self, 0x4e00, 0x9fff),
            33 => run(self, 0x2000, 0x206f),
            34 => run(self, 0x1f000, 0x1faff),
            35 => run(self, 0xfb00, 0xfdff),
            36 => run(self, 0xfe00, 0xffff),
            37 => run(self, 0x2e80, 0x303f),
            38 => {
                let number = self.next() >> self.below(64);
                text.push_str(&number.to_string());
            }
            // Words without an end, some of marks alone.
            _ => {
                let c = self.pick(&["a", "é", "я", "\u{301}", "語", "\u{200d}", "'a", "ß"]);
                text.push_str(&c.repeat(self.index(400)));
            }
        }
    }

    fn mistyped(&mut self, text: &mut String) {
        let mut word: Vec<char> = self.pick(&WORDS).chars().collect();
        let at = self.index(word.len());
        match self.below(3) {
            0 => {
                word.remove(at);
            }
            1 => word.insert(at, 'x'),
            _ => word.truncate(at + 1),
        }
        text.extend(word);
    }
}

const WORDS: [&str; 40] = [
    "apple",
    "apples",
    "Pear",
    "plum",
    "deploy",
    "deployment",
    "steps",
    "staging",
    "the",
    "who",
    "is",
    "not",
    "memory",
    "Memories",
    "running",
    "ran",
    "don't",
    "Mel's",
    "l'amour",
    "café",
    "CAFÉ",
    "straße",
    "STRASSE",
    "naïve",
    "C++",
    "C#",
    "GB/s",
    "用户",
    "用户身份",
    "しりとり",
    "끝말잇기",
    "Сергей",
    "κόσμος",
    "ΚΟΣΜΟΣ",
    "שלום",
    "בבית",
    "صهيب",
    "والبيت",
    "สวัสดี",
    "दुनिया",
];

const BETWEEN: [&str; 14] = [
    "\n", "\t", "-", "_", "/", ".", ",", "\u{a0}", "\u{3000}", "\u{200b}", "\u{2028}", "\0", "'",
    "\u{ad}",
];

const SYNTAX: [&str; 36] = [
    "\"",
    "\"\"",
    "\"\"\"",
    "'",
    "''",
    "“",
    "”",
    "„",
    "«",
    "»",
    "「",
    "」",
    "AND",
    "OR",
    "NOT",
    "NEAR(",
    "NEAR(a b, 1)",
    "key:",
    "content :",
    "{key content}:",
    "^",
    "*",
    "a*",
    "(",
    ")",
    "))((",
    "+",
    "- ",
    "-apple",
    "'; DROP TABLE record; --",
    "%",
    "_",
    "\\",
    "\\\"",
    "\"apple pear\"",
    "\"the plum",
];

const SEQUENCES: [&str; 18] = [
    "👩‍👩‍👧",
    "👍🏽",
    "🇩🇪",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "1️⃣",
    "❤️",
    "e\u{301}",
    "\u{301}",
    "ﷺ",
    "ﬁn",
    "①②",
    "½",
    "1½",
    "\u{202e}abc\u{202c}",
    "\u{feff}",
    "㍿",
    "ｶﾞ",
    "ا\u{640}\u{64e}ب",
];
