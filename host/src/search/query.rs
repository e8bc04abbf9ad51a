//! What a query asks for, as terms.

use std::collections::BTreeSet;

use super::analyser::{Analyser, Kind, Token, tokens};
use super::stop::is_stop_word;

/// The most different terms that are scored. Of more, those that the fewest
/// records hold.
pub(crate) const TERMS: usize = 128;
/// The most different terms that are looked at for it, from the beginning of the
/// query on.
const CONSIDERED: usize = 8192;
/// The most grams that are scored, and the longest word that has any in them.
const GRAMS: usize = 512;
/// Words of a query that are tried as a key, and of the longest key that is found
/// inside of a longer query.
const KEY_WORDS: usize = 64;
const LONGEST_KEY: usize = 8;
/// Characters of the shortest beginning that a last word is taken for.
const SHORTEST_PREFIX: usize = 2;

/// What a term is, and so what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TermKind {
    /// The stem of a word.
    Stem,
    /// Two neighbours in a run.
    Pair,
    /// A character of a run.
    Character,
}

/// A term to be scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) text: String,
    pub(crate) kind: TermKind,
    /// Which of the query's different words and runs it comes from.
    pub(crate) word: usize,
    /// Which other stem the query has right before it, stop words left out.
    pub(crate) behind: Option<String>,
    /// Its word's grams, those of an earlier word left out.
    pub(crate) grams: Vec<String>,
}

/// Words of a query that may be a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyName {
    /// How many words. First, so that longer keys sort behind.
    pub(crate) words: usize,
    pub(crate) name: String,
}

/// A query, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// In the order of the query, each once.
    pub(crate) terms: Vec<Term>,
    /// How many different words and runs they come from.
    pub(crate) words: usize,
    /// What stands in quotes, as the terms that must follow each other.
    pub(crate) phrases: Vec<Vec<String>>,
    pub(crate) keys: BTreeSet<KeyName>,
    /// What the last word begins with, where it may not be finished.
    pub(crate) prefix: Option<String>,
    /// How many different terms were left out, because there are so many.
    pub(crate) left_out: usize,
}

impl Query {
    /// Takes a text apart. Nothing in it is syntax, but for quotes around what
    /// should follow each other.
    pub(crate) fn new(analyser: &Analyser, text: &str) -> Self {
        let mut query = Self::default();
        let content = tokens(text).any(|token| !says_nothing(&token));
        let kept = |token: &Token| !content || !says_nothing(token);
        let mut seen = BTreeSet::new();
        let mut seen_words = BTreeSet::new();
        let mut seen_grams = BTreeSet::new();
        let mut behind: Option<String> = None;
        let mut last: Option<Token> = None;
        for token in tokens(text) {
            if kept(&token) {
                query.take(
                    analyser,
                    &token,
                    &mut behind,
                    &mut seen,
                    &mut seen_words,
                    &mut seen_grams,
                );
            }
            last = Some(token);
        }
        query.words = seen_words.len();
        query.prefix = last
            .filter(|token| kept(token) && may_go_on(token, text))
            .map(|token| token.text);
        query.phrases = phrases(analyser, text);
        query.keys = keys(text);
        query
    }

    fn take(
        &mut self,
        analyser: &Analyser,
        token: &Token,
        behind: &mut Option<String>,
        seen: &mut BTreeSet<(TermKind, String)>,
        seen_words: &mut BTreeSet<String>,
        seen_grams: &mut BTreeSet<String>,
    ) {
        let mut terms: Vec<Term> = Vec::new();
        let mut stem = None;
        analyser.words(token, |text| {
            let kind = match token.kind {
                Kind::Word => TermKind::Stem,
                Kind::Run if text.chars().nth(1).is_some() => TermKind::Pair,
                Kind::Run => TermKind::Character,
            };
            if kind == TermKind::Stem {
                stem = Some(text.to_owned());
            }
            // One sign of a syllabary tells nothing, if there are others.
            if kind == TermKind::Character && text != token.text && text.starts_with(is_kana) {
                return;
            }
            terms.push(Term {
                text: text.to_owned(),
                kind,
                word: 0,
                behind: None,
                grams: Vec::new(),
            });
        });
        let before = std::mem::replace(behind, stem.clone());
        // Said again, also in another form, it is no other word.
        if !seen_words.insert(stem.unwrap_or_else(|| token.text.clone())) {
            return;
        }
        let word = seen_words.len().saturating_sub(1);
        for mut term in terms {
            if !seen.insert((term.kind, term.text.clone())) {
                continue;
            }
            if self.terms.len() >= CONSIDERED {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            }
            term.word = word;
            if term.kind == TermKind::Stem {
                term.behind.clone_from(&before);
                analyser.grams(token, |gram| {
                    if seen_grams.len() < GRAMS && seen_grams.insert(gram.to_owned()) {
                        term.grams.push(gram.to_owned());
                    }
                });
            }
            self.terms.push(term);
        }
    }

    /// Leaves out all but the terms that the fewest records hold, where there are
    /// too many. `holding` says how many hold a term.
    pub(crate) fn cut<E>(
        &mut self,
        mut holding: impl FnMut(&str) -> Result<u64, E>,
    ) -> Result<(), E> {
        if self.terms.len() <= TERMS {
            return Ok(());
        }
        let mut rarest: Vec<(u64, usize)> = Vec::with_capacity(self.terms.len());
        for (place, term) in self.terms.iter().enumerate() {
            match holding(&term.text)? {
                // What nothing holds is no loss, unless it is a typing error.
                0 => rarest.push((u64::MAX, place)),
                some => rarest.push((some, place)),
            }
        }
        rarest.sort_unstable();
        let kept: BTreeSet<usize> = rarest.iter().take(TERMS).map(|(_, place)| *place).collect();
        let before = self.terms.len();
        let mut place = 0_usize;
        self.terms.retain(|_| {
            let keep = kept.contains(&place);
            place = place.saturating_add(1);
            keep
        });
        self.left_out = self
            .left_out
            .saturating_add(before.saturating_sub(self.terms.len()));
        Ok(())
    }
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}')
}

/// Whether a word is one that a question is made of.
pub(crate) fn says_nothing(token: &Token) -> bool {
    token.kind == Kind::Word && is_stop_word(&token.text)
}

/// Whether a last word may be the beginning of another: nothing stands behind it.
fn may_go_on(token: &Token, text: &str) -> bool {
    token.kind == Kind::Word
        && !token.is_number()
        && token.end == text.len()
        && token
            .text
            .chars()
            .nth(SHORTEST_PREFIX.saturating_sub(1))
            .is_some()
}

/// What stands in quotes, where it is more than one term.
fn phrases(analyser: &Analyser, text: &str) -> Vec<Vec<String>> {
    const MOST: usize = 16;
    let mut phrases = Vec::new();
    let mut rest = text;
    while let Some((_, open)) = rest.split_once(is_quote)
        && phrases.len() < MOST
    {
        let Some((quoted, after)) = open.split_once(is_quote) else {
            break;
        };
        let mut terms = Vec::new();
        for token in tokens(quoted) {
            analyser.words(&token, |term| terms.push(term.to_owned()));
            if terms.len() > TERMS {
                break;
            }
        }
        if terms.len() > 1 && terms.len() <= TERMS && !phrases.contains(&terms) {
            phrases.push(terms);
        }
        rest = after;
    }
    phrases
}

fn is_quote(c: char) -> bool {
    matches!(
        c,
        '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' | '\u{300c}' | '\u{300d}'
    )
}

/// The names of keys that the words of a query spell: all of them, and each few
/// that follow each other.
fn keys(text: &str) -> BTreeSet<KeyName> {
    let words: Vec<Token> = tokens(text).take(KEY_WORDS.saturating_add(1)).collect();
    let mut keys = BTreeSet::new();
    if words.len() > KEY_WORDS {
        return keys;
    }
    for length in (1..=LONGEST_KEY.min(words.len())).chain([words.len()]) {
        for some in words.windows(length.max(1)) {
            if !matches!(some, [single] if words.len() > 1 && says_nothing(single)) {
                let name: Vec<&str> = some.iter().map(|token| token.text.as_str()).collect();
                keys.insert(KeyName {
                    words: some.len(),
                    name: name.join(" "),
                });
            }
        }
    }
    keys
}

/// The words of a whole key, in their order, as the index has them. None for a key
/// without any.
pub(crate) fn key_name(key: &str) -> Option<String> {
    let words: Vec<Token> = tokens(key).collect();
    let words: Vec<&str> = words.iter().map(|token| token.text.as_str()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::new(&Analyser::new(), text)
    }

    fn texts(query: &Query) -> Vec<&str> {
        query.terms.iter().map(|term| term.text.as_str()).collect()
    }

    fn names(text: &str) -> Vec<String> {
        query(text).keys.into_iter().map(|key| key.name).collect()
    }

    fn numbered(number: usize) -> String {
        (0..number).map(|i| format!("w{i}q ")).collect()
    }

    #[test]
    fn each_word_is_asked_once_in_the_order_of_the_query() {
        let asked = query("Pears and the apples, pear; apple? 2");
        assert_eq!(texts(&asked), ["pear", "appl", "2"]);
        assert_eq!(asked.words, 3);
        let word: Vec<usize> = asked.terms.iter().map(|term| term.word).collect();
        assert_eq!(word, [0, 1, 2]);
        let behind: Vec<_> = asked.terms.iter().map(|t| t.behind.as_deref()).collect();
        assert_eq!(behind, [None, Some("pear"), Some("appl")]);
    }

    #[test]
    fn nothing_is_behind_a_run_but_what_comes_next_to_it() {
        let asked = query("apple 用户 pear");
        let pear = asked.terms.last().unwrap();
        assert_eq!((pear.text.as_str(), pear.behind.as_deref()), ("pear", None));
        assert_eq!(texts(&asked), ["appl", "用", "用户", "户", "pear"]);
        assert_eq!(asked.words, 3);
    }

    #[test]
    fn a_sign_of_a_syllabary_counts_where_it_is_alone() {
        assert_eq!(texts(&query("しり")), ["しり"]);
        assert_eq!(texts(&query("し")), ["し"]);
    }

    #[test]
    fn stop_words_count_where_there_is_nothing_else() {
        assert_eq!(texts(&query("to be or not")), ["to", "be", "or", "not"]);
        assert_eq!(texts(&query("to be or not here: 🎉")), ["🎉"]);
        assert_eq!(texts(&query("don\u{2019}t you dare")), ["dare"]);
    }

    #[test]
    fn a_gram_belongs_to_the_first_word_that_has_it() {
        let asked = query("permission permeable");
        assert_eq!(asked.terms[0].grams[..3], ["_per", "perm", "ermi"]);
        let more = ["erme", "rmea", "meab", "eabl", "able", "ble_"];
        assert_eq!(asked.terms[1].grams, more);
    }

    #[test]
    fn the_last_word_is_a_beginning_while_nothing_stands_behind_it() {
        let prefix = |text: &str| query(text).prefix;
        assert_eq!(prefix("perm").as_deref(), Some("perm"));
        assert_eq!(prefix("has PÉ").as_deref(), Some("pe"));
        for text in ["perm?", "perm ", "p", "\"perm\"", "12", "用户", "", "🎉"] {
            assert_eq!(prefix(text), None, "{text}");
        }
        // One that says nothing begins nothing, unless there is no other.
        assert_eq!(prefix("perm they"), None);
        assert_eq!(prefix("are they").as_deref(), Some("they"));
    }

    #[test]
    fn what_stands_in_quotes_of_any_kind_is_a_phrase() {
        let phrase = vec!["green".to_owned(), "tea".to_owned()];
        for text in [
            "\"green tea\"",
            "x “Green tea” y",
            "„green teas“",
            "«green tea»",
            "「green tea」",
        ] {
            assert_eq!(query(text).phrases, [phrase.as_slice()], "{text}");
        }
        for text in [
            "\"green",
            "\"green\" tea",
            "\"\"",
            "green tea\"",
            "'green tea'",
        ] {
            assert_eq!(query(text).phrases.len(), 0, "{text}");
        }
        // The stop words of a phrase are among what follows each other.
        assert_eq!(query("\"the tea\"").phrases, [["the", "tea"]]);
        let two = query("\"green tea\" and \"black tea\" and \"green tea\"");
        assert_eq!(two.phrases.len(), 2);
    }

    #[test]
    fn phrases_are_few_and_short() {
        let many: String = (0..100).map(|i| format!("\"a{i} b\" ")).collect();
        assert_eq!(query(&many).phrases.len(), 16);
        let long = |words: usize| query(&format!("\"{}\"", numbered(words))).phrases.len();
        assert_eq!((long(TERMS), long(TERMS + 1)), (1, 0));
    }

    #[test]
    fn a_key_is_named_by_any_few_words_that_follow_each_other() {
        assert_eq!(names("User-Name?"), ["name", "user", "user name"]);
        assert_eq!(key_name("USER_NAME").as_deref(), Some("user name"));
        assert_eq!(key_name("–!").as_deref(), None);
        // A stop word alone is one only if it is all.
        assert_eq!(names("what"), ["what"]);
        assert_eq!(names("what now"), ["what now"]);
        assert_eq!(names("what zebra"), ["zebra", "what zebra"]);
        // The longest are the last.
        let sizes: Vec<usize> = query("a b c d").keys.iter().map(|key| key.words).collect();
        assert!(sizes.is_sorted());
    }

    #[test]
    fn keys_are_looked_for_in_a_query_of_64_words_and_no_longer() {
        let longest = |number| {
            let asked = query(&numbered(number));
            asked
                .keys
                .iter()
                .map(|key| key.words)
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(longest(64), (1..=LONGEST_KEY).chain([64]).collect());
        assert_eq!(longest(65).len(), 0);
    }

    #[test]
    fn of_too_many_terms_those_are_left_that_the_fewest_hold() {
        let mut asked = query(&numbered(200));
        // The number of each word is how many hold it; the first have a typing error.
        let holding = |term: &str| {
            let number = term.trim_matches(['w', 'q']).parse::<u64>().unwrap();
            Ok::<_, ()>(if number < 10 { 0 } else { number })
        };
        asked.cut(holding).unwrap();
        let expected: Vec<String> = (10..10 + TERMS).map(|i| format!("w{i}q")).collect();
        assert_eq!(texts(&asked), expected);
        assert_eq!(asked.left_out, 200 - TERMS);
        // What nothing holds stays while there is room, and nothing is asked then.
        let mut asked = query(&numbered(TERMS));
        asked.cut(|_| Err(())).unwrap();
        assert_eq!((asked.terms.len(), asked.left_out), (TERMS, 0));
        let mut asked = query(&numbered(TERMS + 1));
        assert_eq!(asked.cut(|_| Err(())), Err(()));
    }

    #[test]
    fn a_longest_query_is_held_to_so_many_terms_and_grams() {
        let longest: String = numbered(32_000).chars().take(256 * 1024).collect();
        let asked = query(&longest);
        assert_eq!(asked.terms.len(), CONSIDERED);
        assert_eq!(asked.words, asked.terms.len() + asked.left_out);
        let grams: usize = asked.terms.iter().map(|term| term.grams.len()).sum();
        assert_eq!(grams, GRAMS);
        assert_eq!(asked.keys.len(), 0);
        let run: String = ('\u{4e00}'..='\u{9fff}').collect();
        assert_eq!(query(&run).terms.len(), CONSIDERED);
    }

    #[test]
    fn nothing_but_marks_asks_for_nothing() {
        for text in [
            "",
            " ",
            "?!…—",
            "\0\0",
            "\u{200d}\u{fe0f}",
            "\u{301}",
            "\"\" «»",
        ] {
            assert_eq!(query(text), Query::default(), "{text:?}");
        }
    }
}
