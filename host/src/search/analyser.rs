//! From text to terms: the one analyser that both the index and a query go
//! through.
//!
//! No dictionary and no guess at the language: what is done to a word depends on
//! the script that it is written in.
//!
//! 1. **Folding.** Compatibility forms are taken apart (NFKD), letters made lower
//!    case, and the marks of alphabets that are read without them dropped: `CAFÉ`,
//!    `cafe` and `ｃａｆé` are one word. Latin letters that no mark makes are spelled out:
//!    `Łódź` is `lodz`, `Æble` is `aeble`. The vowel signs of Indic scripts and Thai
//!    and the voicing marks of kana are not such marks, and stay.
//! 2. **Tokens.** A [word](Kind::Word) is a run of letters and digits. A word ends
//!    where another script begins (`הpicopix` is two words). Scripts that are
//!    written without spaces make [runs](Kind::Run); a pictograph, and `+` or `#`
//!    behind a letter (`C++`, `C#`), is a run too. `_` and `-` part words like any
//!    other character. An apostrophe joins what belongs together (`don't`, `Mel's`,
//!    `ג'ירפה`) and parts what does not (`l'amour`).
//! 3. **Terms.** A word has one [term](Analyser::words): its English stem in Latin
//!    letters, in Hebrew and Arabic what is left without the articles and the
//!    prepositions that are written together with it, else the word itself; and
//!    [grams](Analyser::grams), four characters each, which words that only
//!    resemble each other share: inflections, compounds, prefixes and typing
//!    errors. A run has its characters and the pairs of neighbours.
//!
//! What is indexed depends on all of this, so any change to it needs another
//! [`VERSION`].

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{
    canonical_combining_class, decompose_compatible, is_combining_mark,
};

/// Which analyser this is. A file's `meta` says by which one it was indexed.
pub const VERSION: &str = "remora 3";

/// Characters of the longest word. A longer run of letters is cut into words of so
/// many. What only continues a character is not counted, and twice as many are kept.
const LONGEST: usize = 64;
const MOST_CONTINUED: usize = 2 * LONGEST;
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
    /// As it is compared: folded, in normalisation form C. At most 64 characters
    /// besides the marks that no letter is composed with, of which at most 128.
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
        continued: 0,
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
            _ if is_combining_mark(c) => Self::Mark,
            _ if is_unspaced(c) => Self::Unspaced,
            _ if is_pictograph(c) => Self::Symbol,
            _ if c.is_numeric() => Self::Digit,
            // Signs of phonetics and transliterations.
            '\u{2b0}'..='\u{2ff}' => Self::None,
            _ if !c.is_alphabetic() => Self::None,
            '\u{80}'..='\u{2af}'
            | '\u{1d00}'..='\u{1dbf}'
            | '\u{1e00}'..='\u{1eff}'
            | '\u{2c60}'..='\u{2c7f}'
            | '\u{a720}'..='\u{a7ff}'
            | '\u{ab30}'..='\u{ab64}' => Self::Latin,
            _ => Self::Letter,
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
        | '\u{1780}'..='\u{17ff}' | '\u{1950}'..='\u{1aaf}' | '\u{1b00}'..='\u{1b7f}'
        | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{318f}' | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a9ff}' | '\u{aa60}'..='\u{aadf}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{16fe0}'..='\u{18dff}' | '\u{1aff0}'..='\u{1b2ff}'
        | '\u{20000}'..='\u{3ffff}')
        && c.is_alphanumeric()
}

/// Whether a character is part of the one before it: a mark, and the second and
/// third part of a Korean syllable.
fn continues(c: char) -> bool {
    let jamo = matches!(c, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}');
    jamo || (!c.is_ascii() && is_combining_mark(c))
}

/// Not the lines and blocks that tables and bars are drawn with.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{2190}'..='\u{23ff}' | '\u{2460}'..='\u{24ff}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2900}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// One character for a division: no digit of it belongs to the number before it.
fn is_fraction(c: char) -> bool {
    matches!(c, '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{215f}' | '\u{2189}')
}

/// Characters that are neither seen nor mean anything by themselves, and so
/// neither count nor part words: joiners, the soft hyphen, selectors of a glyph,
/// skin tones, the Arabic stroke that only stretches a word, the fillers of Korean
/// syllables, the tone marks that Armenian has inside of a word, and trade marks.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{ae}' | '\u{34f}' | '\u{55b}' | '\u{55c}' | '\u{55e}' | '\u{61c}'
        | '\u{640}' | '\u{115f}'..='\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2120}' | '\u{2122}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Accents, points and vowel signs that people leave out when they type: of
/// Latin, Greek and Cyrillic letters, Hebrew, Arabic and Syriac.
fn is_dropped_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'
        | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}'
        | '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{711}' | '\u{730}'..='\u{74a}'
        | '\u{898}'..='\u{89f}' | '\u{8ca}'..='\u{8ff}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// What is typed for a letter by those whose keyboard lacks it, where taking marks off
/// does not lead there: ligatures and letters with a stroke, of the alphabets of Europe and of Vietnam.
fn spelled_out(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{df}' => "ss",
        '\u{e6}' => "ae",
        '\u{f0}' | '\u{111}' => "d",
        '\u{f8}' => "o",
        '\u{fe}' => "th",
        '\u{127}' => "h",
        '\u{131}' => "i",
        '\u{142}' => "l",
        '\u{14b}' => "n",
        '\u{153}' => "oe",
        '\u{167}' => "t",
        // The form that ends a word.
        '\u{3c2}' => "\u{3c3}",
        _ => return None,
    })
}

/// What is typed for an apostrophe, the letters that look like one, and the Hebrew
/// geresh.
fn is_apostrophe(c: char) -> bool {
    matches!(c,
        '\'' | '`' | '\u{b4}' | '\u{2b9}'..='\u{2bf}' | '\u{374}' | '\u{5f3}' | '\u{1fef}'
        | '\u{1ffd}' | '\u{2018}'..='\u{2019}' | '\u{ff07}')
}

/// What is typed for the Hebrew gershayim.
fn is_gershayim(c: char) -> bool {
    matches!(c, '"' | '\u{201d}' | '\u{5f4}')
}

fn is_hebrew(c: char) -> bool {
    matches!(c, '\u{5d0}'..='\u{5f2}' | '\u{fb1d}'..='\u{fb4f}')
}

/// What English puts behind an apostrophe and does not part from its word.
const ENDINGS: [&str; 7] = ["s", "t", "m", "d", "re", "ve", "ll"];

struct Walk<'a> {
    text: &'a str,
    chars: std::str::CharIndices<'a>,
    /// Of the last character of the token at hand; none when there is none.
    class: Class,
    folded: String,
    /// Characters of `folded` that are counted, and those that are not.
    length: usize,
    continued: usize,
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
        if (is_apostrophe(c) && self.joins_here(end))
            || (is_gershayim(c) && self.stands_between_hebrew(end))
        {
            // As if it were not there.
        } else if c.is_ascii() {
            // By far the most: nothing to take apart.
            self.fold(at, end, c.to_ascii_lowercase());
        } else if is_fraction(c) {
            self.finish();
            self.take_apart(at, end, c);
            self.finish();
        } else {
            self.take_apart(at, end, c);
        }
    }

    fn take_apart(&mut self, at: usize, end: usize, c: char) {
        if is_ignored(c) {
            return self.stretch(end);
        }
        decompose_compatible(c, |part| {
            for lower in part.to_lowercase() {
                if is_dropped_mark(lower) || is_ignored(lower) {
                    self.stretch(end);
                } else {
                    self.fold(at, end, lower);
                }
            }
        });
    }

    /// Takes one folded character in.
    fn fold(&mut self, at: usize, end: usize, c: char) {
        // `C++` and `C#`, but neither `1 + 1` nor a heading.
        let behind_a_letter = matches!(self.class, Class::Latin | Class::Symbol);
        match c {
            // As pictographs, since these are: ➕ and ♯.
            '+' if behind_a_letter => self.push(at, end, '\u{2795}'),
            '#' if behind_a_letter => self.push(at, end, '\u{266f}'),
            _ => match spelled_out(c) {
                Some(letters) => {
                    for letter in letters.chars() {
                        self.push(at, end, letter);
                    }
                }
                None => self.push(at, end, c),
            },
        }
    }

    fn push(&mut self, at: usize, end: usize, c: char) {
        let class = Class::of(c);
        let continues = continues(c);
        if !class.joins(self.class) || (self.length >= LONGEST && !continues) {
            self.finish();
        }
        if class == Class::None || (class == Class::Mark && self.folded.is_empty()) {
            return;
        }
        if self.folded.is_empty() {
            self.start = at;
        }
        self.end = end;
        if class != Class::Mark {
            self.class = class;
        }
        if continues {
            self.go_on(c);
        } else {
            self.length = self.length.saturating_add(1);
            self.folded.push(c);
        }
    }

    /// Takes a mark in, where it stands in the canonical order: of too many the same
    /// ones are left out, in whatever order a text has them.
    fn go_on(&mut self, c: char) {
        let class = canonical_combining_class(c);
        let behind = self
            .folded
            .char_indices()
            .rev()
            .take_while(|(_, before)| canonical_combining_class(*before) > class && class != 0)
            .last();
        let is_full = self.continued >= MOST_CONTINUED;
        match behind {
            Some((at, _)) => {
                self.folded.insert(at, c);
                if is_full {
                    self.folded.pop();
                }
            }
            None if is_full => return,
            None => self.folded.push(c),
        }
        if !is_full {
            self.continued = self.continued.saturating_add(1);
        }
    }

    /// Takes something that is not seen into the range of the token at hand.
    fn stretch(&mut self, end: usize) {
        if !self.folded.is_empty() {
            self.end = end;
        }
    }

    /// Hands out the token at hand.
    fn finish(&mut self) {
        if !self.folded.is_empty() {
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
        self.continued = 0;
        self.class = Class::None;
    }

    /// Whether an apostrophe that ends at this byte belongs to the word.
    fn joins_here(&self, end: usize) -> bool {
        match self.class {
            // Any alphabet but the Latin has it inside its words.
            Class::Letter => true,
            Class::Latin => {
                // Ends at the next apostrophe at the latest: a text can be full of them.
                let rest = self.text.get(end..).unwrap_or_default();
                let ending: String = rest
                    .chars()
                    .nfkd()
                    .filter(|c| !is_ignored(*c))
                    .take_while(|c| c.is_alphanumeric() || is_combining_mark(*c))
                    .take_while(|c| !is_apostrophe(*c))
                    .take(3)
                    .collect();
                ENDINGS
                    .iter()
                    .any(|known| ending.eq_ignore_ascii_case(known))
            }
            _ => false,
        }
    }

    fn stands_between_hebrew(&self, end: usize) -> bool {
        let next = self.text.get(end..).and_then(|rest| rest.chars().next());
        self.folded.chars().next_back().is_some_and(is_hebrew) && next.is_some_and(is_hebrew)
    }
}

/// A Hebrew word without its prepositions, conjunctions and articles, an Arabic one
/// without its article and what stands before that: they are written together
/// with the word, and no other script has the like. Three letters must be left.
///
/// All that can be one is taken off, also from a word that only begins like it:
/// so a word is the same with a prefix and without, whatever its first letter.
fn without_prefix(word: &str) -> &str {
    let mut left = word;
    while let Some(rest) = after_prefix(left).filter(|rest| rest.chars().nth(2).is_some()) {
        left = rest;
    }
    left
}

fn after_prefix(word: &str) -> Option<&str> {
    const HEBREW: [char; 7] = [
        '\u{5d5}', '\u{5d4}', '\u{5d1}', '\u{5dc}', '\u{5de}', '\u{5e9}', '\u{5db}',
    ];
    const ARTICLE: &str = "\u{627}\u{644}";
    const BEFORE_ARTICLE: [char; 4] = ['\u{648}', '\u{641}', '\u{628}', '\u{643}'];
    /// What "to" and the article make of each other.
    const TO_THE: &str = "\u{644}\u{644}";
    word.strip_prefix(HEBREW)
        .or_else(|| word.strip_prefix(TO_THE))
        .or_else(|| {
            let rest = word.strip_prefix(BEFORE_ARTICLE).unwrap_or(word);
            rest.strip_prefix(ARTICLE)
        })
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

#[cfg(test)]
mod tests;
