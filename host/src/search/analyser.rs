//! From text to terms: the one analyser that both the index and a query go
//! through.
//!
//! No dictionary and no guess at the language: what is done to a word depends on
//! the script that it is written in.
//!
//! 1. **Folding.** Compatibility forms are taken apart (NFKD), letters made lower
//!    case, and the marks of alphabets that are read without them dropped: `CAFÉ`,
//!    `cafe` and `ｃａｆé` are one word. The vowel signs of Indic scripts and Thai
//!    and the voicing marks of kana are not such marks, and stay.
//! 2. **Tokens.** A [word](Kind::Word) is a run of letters and digits. A word ends
//!    where another script begins (`הpicopix` is two words). Scripts that are
//!    written without spaces make [runs](Kind::Run); a pictograph, and `+` or `#`
//!    behind a letter (`C++`, `C#`), is a run too. `_` and `-` part words like any
//!    other character. An apostrophe joins what belongs together (`don't`, `Mel's`,
//!    `ג'ירפה`) and parts what does not (`l'amour`).
//! 3. **Terms.** A word has one [term](Analyser::words): its English stem in Latin
//!    letters, in Hebrew and Arabic what is left without the article or the
//!    preposition that is written together with it, else the word itself; and
//!    [grams](Analyser::grams), four characters each, which words that only
//!    resemble each other share: inflections, compounds, prefixes and typing
//!    errors. A run has its characters and the pairs of neighbours.
//!
//! What is indexed depends on all of this, so any change to it needs another
//! [`VERSION`].

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Which analyser this is. A file's `meta` says by which one it was indexed.
pub const VERSION: &str = "remora 1";

/// Characters of the longest word. A longer run of letters is cut into words of so
/// many.
const LONGEST: usize = 64;
/// Characters of a gram.
const GRAM: usize = 4;
/// Stands for the beginning and the end of a word in its grams.
const EDGE: char = '_';

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Letters and digits between two boundaries.
    Word,
    /// Characters of a script that is written without spaces, or symbols.
    Run,
}

/// A word or a run, folded, and where the text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// As it is compared: folded, in normalisation form C. At most 64 characters.
    pub text: String,
    /// What it is.
    pub kind: Kind,
    /// The byte of the text with which it begins.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

impl Token {
    /// Whether it is digits only.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.kind == Kind::Word && self.text.chars().all(char::is_numeric)
    }
}

/// Takes a text apart, in one walk. Needs memory for the token at hand only.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> + '_ {
    let mut walk = Walk {
        text,
        chars: text.char_indices(),
        class: Class::None,
        folded: String::new(),
        length: 0,
        start: 0,
        end: 0,
        ready: std::collections::VecDeque::new(),
    };
    std::iter::from_fn(move || walk.next())
}

/// What a folded character is to the word it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Parts words.
    None,
    /// A letter of a Latin alphabet.
    Latin,
    /// A digit.
    Digit,
    /// A letter of another alphabet, abjad or syllabary.
    Letter,
    /// A character of a script that is written without spaces.
    Unspaced,
    /// A pictograph.
    Symbol,
    /// Belongs to what it stands behind.
    Mark,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Latin,
            '0'..='9' => Self::Digit,
            '\0'..='\u{7f}' => Self::None,
            _ if is_unspaced(c) => Self::Unspaced,
            _ if is_pictograph(c) => Self::Symbol,
            _ if is_combining_mark(c) => Self::Mark,
            _ if c.is_numeric() => Self::Digit,
            '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' if c.is_alphabetic() => Self::Latin,
            _ if c.is_alphabetic() => Self::Letter,
            _ => Self::None,
        }
    }

    /// Whether a character of this class goes on with a word that ends in `last`.
    fn joins(self, last: Self) -> bool {
        match (last, self) {
            (Self::None, _) | (_, Self::None) => false,
            (_, Self::Mark) | (Self::Latin, Self::Digit) | (Self::Digit, Self::Latin) => true,
            _ => last == self,
        }
    }
}

/// Thai to Myanmar, Khmer, kana, Han, Hangul and their like. Korean has spaces, but
/// around words with their particles, which pairs of syllables see through.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{3035}' | '\u{3041}'..='\u{3096}'
        | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
        | '\u{16fe0}'..='\u{18dff}' | '\u{1aff0}'..='\u{1b2ff}' | '\u{20000}'..='\u{3ffff}')
        && (c.is_alphanumeric() || is_combining_mark(c))
}

fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{2190}'..='\u{23ff}' | '\u{2460}'..='\u{27bf}' | '\u{2900}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}')
}

/// Characters that are neither seen nor mean anything by themselves, and so
/// neither count nor part words: joiners, the soft hyphen, selectors of a glyph,
/// skin tones, and the Arabic stroke that only stretches a word.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{640}' | '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Accents, points and vowel signs that people leave out when they type: of
/// Latin, Greek and Cyrillic letters, Hebrew, Arabic and Syriac.
fn is_dropped_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'
        | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}'
        | '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{711}' | '\u{730}'..='\u{74a}'
        | '\u{8d3}'..='\u{8ff}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// What is typed for an apostrophe, and the Hebrew geresh.
fn is_apostrophe(c: char) -> bool {
    matches!(
        c,
        '\'' | '\u{2018}' | '\u{2019}' | '\u{2bc}' | '\u{5f3}' | '\u{ff07}' | '`'
    )
}

/// What is typed for the Hebrew gershayim.
fn is_gershayim(c: char) -> bool {
    matches!(c, '"' | '\u{201d}' | '\u{5f4}')
}

fn is_hebrew(c: char) -> bool {
    matches!(c, '\u{5d0}'..='\u{5f2}')
}

/// What English puts behind an apostrophe and does not part from its word.
const ENDINGS: [&str; 7] = ["s", "t", "m", "d", "re", "ve", "ll"];

struct Walk<'a> {
    text: &'a str,
    chars: std::str::CharIndices<'a>,
    /// Of the last character of the token at hand; none when there is none.
    class: Class,
    folded: String,
    /// Characters of `folded`.
    length: usize,
    start: usize,
    end: usize,
    ready: std::collections::VecDeque<Token>,
}

impl Walk<'_> {
    fn next(&mut self) -> Option<Token> {
        while self.ready.is_empty() {
            let Some((at, c)) = self.chars.next() else {
                self.finish();
                break;
            };
            self.take(at, c);
        }
        self.ready.pop_front()
    }

    fn take(&mut self, at: usize, c: char) {
        let end = at.saturating_add(c.len_utf8());
        if c.is_ascii() {
            // By far the most: nothing to take apart.
            self.take_ascii(at, end, c);
        } else if is_ignored(c) || (is_apostrophe(c) && self.joins_here(end)) {
            // As if it were not there.
        } else if is_gershayim(c) && self.stands_between_hebrew(end) {
            // Likewise.
        } else {
            decompose_compatible(c, |part| {
                if !is_dropped_mark(part) && !is_ignored(part) {
                    for lower in part.to_lowercase() {
                        if !is_dropped_mark(lower) {
                            self.fold(at, end, lower);
                        }
                    }
                }
            });
        }
    }

    fn take_ascii(&mut self, at: usize, end: usize, c: char) {
        let ignored = match c {
            '\'' | '`' => self.joins_here(end),
            '"' => self.stands_between_hebrew(end),
            _ => false,
        };
        if ignored {
            return;
        }
        // `C++` and `C#`, but neither `1 + 1` nor a heading.
        let behind_a_letter = matches!(self.class, Class::Latin | Class::Symbol) && self.end == at;
        match c {
            '+' | '#' if behind_a_letter => {
                let wide = if c == '+' { '\u{ff0b}' } else { '\u{ff03}' };
                self.push(at, end, wide, Class::Symbol);
            }
            _ => self.fold(at, end, c.to_ascii_lowercase()),
        }
    }

    /// Takes one folded character in.
    fn fold(&mut self, at: usize, end: usize, c: char) {
        match c {
            '\u{df}' => {
                self.push(at, end, 's', Class::Latin);
                self.push(at, end, 's', Class::Latin);
            }
            '\u{131}' => self.push(at, end, 'i', Class::Latin),
            '\u{3c2}' => self.push(at, end, '\u{3c3}', Class::Letter),
            _ => self.push(at, end, c, Class::of(c)),
        }
    }

    fn push(&mut self, at: usize, end: usize, c: char, class: Class) {
        if !class.joins(self.class) || self.length >= LONGEST {
            self.finish();
        }
        if class == Class::None || (class == Class::Mark && self.length == 0) {
            self.finish();
            return;
        }
        if self.length == 0 {
            self.start = at;
        }
        self.folded.push(c);
        self.length = self.length.saturating_add(1);
        self.end = end;
        if class != Class::Mark {
            self.class = class;
        }
    }

    /// Hands out the token at hand.
    fn finish(&mut self) {
        if self.length > 0 {
            let kind = match self.class {
                Class::Unspaced | Class::Symbol => Kind::Run,
                _ => Kind::Word,
            };
            let text = if self.folded.is_ascii() {
                self.folded.clone()
            } else {
                self.folded.nfc().collect()
            };
            self.ready.push_back(Token {
                text,
                kind,
                start: self.start,
                end: self.end,
            });
        }
        self.folded.clear();
        self.length = 0;
        self.class = Class::None;
    }

    /// Whether an apostrophe that ends at this byte belongs to the word.
    fn joins_here(&self, end: usize) -> bool {
        match self.class {
            // Any alphabet but the Latin has it inside its words.
            Class::Letter => true,
            Class::Latin => {
                let rest = self.text.get(end..).unwrap_or_default();
                let word = rest
                    .find(|c: char| !c.is_alphanumeric())
                    .map_or(rest, |stop| rest.get(..stop).unwrap_or_default());
                ENDINGS
                    .iter()
                    .any(|ending| word.eq_ignore_ascii_case(ending))
            }
            _ => false,
        }
    }

    fn stands_between_hebrew(&self, end: usize) -> bool {
        let next = self.text.get(end..).and_then(|rest| rest.chars().next());
        self.folded.chars().next_back().is_some_and(is_hebrew) && next.is_some_and(is_hebrew)
    }
}

/// A Hebrew word without its preposition, conjunction or article, an Arabic one
/// without its article and what stands before that: they are written together
/// with the word, and no other script has the like. Three letters must be left.
fn without_prefix(word: &str) -> &str {
    const HEBREW: [char; 7] = [
        '\u{5d5}', '\u{5d4}', '\u{5d1}', '\u{5dc}', '\u{5de}', '\u{5e9}', '\u{5db}',
    ];
    const ARTICLE: &str = "\u{627}\u{644}";
    const BEFORE_ARTICLE: [char; 4] = ['\u{648}', '\u{641}', '\u{628}', '\u{643}'];
    let rest = if word.starts_with(is_hebrew) {
        word.strip_prefix(HEBREW)
    } else {
        word.strip_prefix(BEFORE_ARTICLE)
            .unwrap_or(word)
            .strip_prefix(ARTICLE)
    };
    rest.filter(|rest| rest.chars().nth(2).is_some())
        .unwrap_or(word)
}

/// Makes terms of tokens.
#[derive(Clone, Copy)]
pub struct Analyser {
    english: Stemmer,
}

impl Default for Analyser {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Analyser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Analyser").field(&VERSION).finish()
    }
}

impl Analyser {
    /// The analyser of this [`VERSION`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            english: Stemmer::new(Algorithm::English),
        }
    }

    /// Gives each term of a token in its order: one for a word; for a run each
    /// character, followed by the pair that it begins.
    pub fn words(&self, token: &Token, mut give: impl FnMut(&str)) {
        match token.kind {
            Kind::Word => give(&self.english.stem(without_prefix(&token.text))),
            Kind::Run => {
                let text = token.text.as_str();
                for (at, c) in text.char_indices() {
                    let next = at.saturating_add(c.len_utf8());
                    give(text.get(at..next).unwrap_or_default());
                    let rest = text.get(next..).unwrap_or_default();
                    if let Some(second) = rest.chars().next() {
                        let end = next.saturating_add(second.len_utf8());
                        give(text.get(at..end).unwrap_or_default());
                    }
                }
            }
        }
    }

    /// Gives each gram of a token. A run has none, nor has a number.
    pub fn grams(&self, token: &Token, mut give: impl FnMut(&str)) {
        if token.kind == Kind::Run || token.is_number() {
            return;
        }
        let mut edged = String::with_capacity(token.text.len().saturating_add(2));
        edged.push(EDGE);
        edged.push_str(&token.text);
        edged.push(EDGE);
        let bounds: Vec<usize> = edged
            .char_indices()
            .map(|(at, _)| at)
            .chain([edged.len()])
            .collect();
        let mut any = false;
        for ends in bounds.windows(GRAM.saturating_add(1)) {
            if let (Some(from), Some(to)) = (ends.first(), ends.last()) {
                any = true;
                give(edged.get(*from..*to).unwrap_or_default());
            }
        }
        if !any {
            give(&edged);
        }
    }
}
