//! The part of a content that answers a query.

use std::collections::{BTreeMap, VecDeque};

use super::analyser::{Analyser, Kind, tokens};

/// Bytes of a snippet ahead of the first word that matched, to read it in its
/// context.
pub(crate) const LEAD: usize = 60;
/// What a gram counts against the rarest word: words that only resemble those
/// asked for show where nothing better does.
const GRAM: f64 = 0.01;

/// What the terms and the grams of a query tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) terms: BTreeMap<String, f64>,
    pub(crate) grams: BTreeMap<String, f64>,
}

impl Wanted {
    /// Where in a content that does not fit into so many bytes the part begins
    /// that holds the most of what is wanted, each once. One walk through the content.
    pub(crate) fn best_part(&self, analyser: &Analyser, content: &str, bytes: usize) -> usize {
        let mut window = Window {
            room: bytes.saturating_sub(LEAD),
            ..Window::default()
        };
        for token in tokens(content) {
            let (start, end) = (token.start, token.end);
            let run = content.get(start..end).unwrap_or_default();
            let mut any = token.kind == Kind::Run && self.in_run(analyser, start, run, &mut window);
            if !any {
                analyser.words(&token, |term| {
                    any |= self.term(start, end, term, &mut window)
                });
            }
            if !any {
                analyser.grams(&token, |gram| {
                    if let Some((gram, worth)) = self.grams.get_key_value(gram) {
                        window.take(start, end, (true, gram), GRAM * worth);
                    }
                });
            }
        }
        window.best_at
    }

    /// Takes a term. Whether it is wanted.
    fn term<'a>(&'a self, start: usize, end: usize, term: &str, window: &mut Window<'a>) -> bool {
        let wanted = self.terms.get_key_value(term);
        if let Some((term, worth)) = wanted {
            window.take(start, end, (false, term), *worth);
        }
        wanted.is_some()
    }

    /// Takes what is wanted in a run, which can be longer than a part: each character
    /// where it is, and the pair that it begins. Whether there was any.
    fn in_run<'a>(
        &'a self,
        analyser: &Analyser,
        start: usize,
        run: &str,
        window: &mut Window<'a>,
    ) -> bool {
        let mut any = false;
        for (at, c) in run.char_indices() {
            let rest = run.get(at..).unwrap_or_default();
            let second = rest.chars().nth(1).map_or(0, char::len_utf8);
            let pair = rest.get(..c.len_utf8().saturating_add(second));
            let start = start.saturating_add(at);
            for token in tokens(pair.unwrap_or_default()).take(1) {
                let end = start.saturating_add(token.end);
                let mut left = 2_u8;
                analyser.words(&token, |term| {
                    any |= left > 0 && self.term(start, end, term, window);
                    left = left.saturating_sub(1);
                });
            }
        }
        any
    }

    /// The part, with something ahead of what matched, as long as the bytes
    /// allow, from one character to another.
    pub(crate) fn part<'a>(&self, analyser: &Analyser, content: &'a str, bytes: usize) -> &'a str {
        if content.len() <= bytes {
            return content;
        }
        let first = self.best_part(analyser, content, bytes);
        let latest = content.len().saturating_sub(bytes);
        let from = content.ceil_char_boundary(first.saturating_sub(LEAD).min(latest));
        let to = content.floor_char_boundary(from.saturating_add(bytes));
        content.get(from..to).unwrap_or_default()
    }
}

/// Whether it is a gram, and which; else which term.
type Wish<'a> = (bool, &'a str);

/// What is wanted of a part of the content while the part moves on.
#[derive(Default)]
struct Window<'a> {
    /// Bytes from the first that is wanted to the end of the last.
    room: usize,
    inside: VecDeque<(usize, Wish<'a>, f64)>,
    often: BTreeMap<Wish<'a>, usize>,
    sum: f64,
    best: f64,
    best_at: usize,
    length: usize,
}

impl<'a> Window<'a> {
    fn take(&mut self, start: usize, end: usize, what: Wish<'a>, worth: f64) {
        self.inside.push_back((start, what, worth));
        let often = self.often.entry(what).or_default();
        *often = often.saturating_add(1);
        if *often == 1 {
            self.sum += worth;
        }
        // What comes again begins no part, nor does what is too far behind.
        while let Some((first, what, worth)) = self.inside.front().copied()
            && let Some(often) = self.often.get_mut(&what)
            && (*often > 1 || end.saturating_sub(first) > self.room)
            && self.inside.len() > 1
        {
            self.inside.pop_front();
            *often = often.saturating_sub(1);
            if *often == 0 {
                self.often.remove(&what);
                self.sum -= worth;
            }
        }
        let first = self.inside.front().map_or(0, |(start, ..)| *start);
        let length = end.saturating_sub(first);
        // Of equals the shortest, of these the first. Sums differ by their rounding.
        if self.sum > self.best * (1.0 + 1e-9)
            || (self.sum > self.best * (1.0 - 1e-9) && length < self.length)
        {
            self.best = self.sum;
            self.best_at = first;
            self.length = length;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: usize = 240;

    fn wanted(terms: &[(&str, f64)]) -> Wanted {
        let analyser = Analyser::new();
        let mut wanted = Wanted::default();
        for (text, worth) in terms {
            for token in tokens(text) {
                analyser.words(&token, |term| {
                    wanted.terms.insert(term.to_owned(), *worth);
                });
                analyser.grams(&token, |gram| {
                    wanted.grams.insert(gram.to_owned(), *worth);
                });
            }
        }
        wanted
    }

    fn part<'a>(wanted: &Wanted, content: &'a str) -> &'a str {
        wanted.part(&Analyser::new(), content, BYTES)
    }

    #[test]
    fn what_fits_is_shown_whole() {
        let content = "x".repeat(BYTES);
        assert_eq!(part(&wanted(&[]), &content), content);
        assert_eq!(part(&wanted(&[]), &format!("{content}y")), content);
        assert_eq!(part(&wanted(&[]), ""), "");
    }

    #[test]
    fn the_part_is_the_one_with_the_most_of_what_is_wanted() {
        let padding = "lorem ipsum ".repeat(50);
        let content = format!("apple {padding} pear {padding} apple and pear {padding}");
        let shown = part(&wanted(&[("apple", 1.0), ("pear", 1.0)]), &content);
        assert!(shown.contains("apple and pear"), "{shown}");
        assert_eq!(shown.find("apple"), Some(LEAD));
        // One rare word is more than two common ones.
        let shown = part(&wanted(&[("apple", 0.4), ("pear", 1.0)]), &content);
        assert!(shown.contains("apple and pear"), "{shown}");
        let content = format!("rare {padding} apple and pear {padding}");
        let shown = part(
            &wanted(&[("apple", 1.0), ("pear", 1.0), ("rare", 3.0)]),
            &content,
        );
        assert!(shown.starts_with("rare"), "{shown}");
    }

    #[test]
    fn a_word_that_comes_again_and_again_is_no_more_than_once() {
        let padding = "lorem ipsum ".repeat(50);
        let often = "the user ".repeat(20);
        let content = format!("{often}{padding} the user's garden gate {padding}");
        let wanted = wanted(&[("user", 1.0), ("garden", 1.5), ("gate", 1.5)]);
        assert!(part(&wanted, &content).contains("user's garden gate"));
    }

    #[test]
    fn of_equal_parts_it_is_the_first() {
        let padding = "lorem ipsum ".repeat(50);
        let content = format!("{padding}the first apple {padding} the second apple {padding}");
        let shown = part(&wanted(&[("apple", 0.1)]), &content);
        assert!(shown.contains("the first apple"), "{shown}");
    }

    #[test]
    fn what_only_resembles_it_is_shown_where_nothing_better_is() {
        let padding = "lorem ipsum ".repeat(50);
        let alike = format!("{padding} Dampfturbinen {padding}");
        let wanted = wanted(&[("turbine", 1.0)]);
        assert!(part(&wanted, &alike).contains("Dampfturbinen"));
        let both = format!("{padding} Dampfturbinen Turbinenhaus {padding} Turbine {padding}");
        assert!(part(&wanted, &both).contains(" Turbine "));
    }

    #[test]
    fn scripts_without_spaces_are_shown_around_what_matched() {
        for (filler, needle) in [
            ("天地玄黄宇宙洪荒", "成语接龙"),
            ("ごはんをたべる", "しりとり"),
            ("오늘 날씨가 ", "끝말잇기"),
            ("สวัสดีครับ", "ข้าวผัด"),
        ] {
            // Wherever in a token it is: a run is cut into pieces of 64 characters.
            for before in 50..70 {
                let padding = filler.repeat(60);
                let before: String = padding.chars().take(before).collect();
                let content = format!("{padding}{before}{needle}{padding}");
                let shown = part(&wanted(&[(needle, 1.0)]), &content);
                assert!(shown.contains(needle), "{shown}");
                assert!(shown.len() <= BYTES && shown.len() > BYTES - 4, "{shown}");
                // Something is ahead of it, to read it in its context.
                let at = shown.find(needle).unwrap();
                assert!(at > LEAD - 4 && at < LEAD + 4, "{at}: {shown}");
            }
        }
    }

    #[test]
    fn at_the_end_the_room_is_used_for_what_stands_before() {
        let content = format!("{} apple", "lorem ipsum ".repeat(50));
        let shown = part(&wanted(&[("apple", 1.0)]), &content);
        assert!(shown.ends_with("apple"));
        assert_eq!(shown.len(), BYTES);
    }

    proptest! {
        #[test]
        fn any_part_is_short_between_characters_and_of_the_content(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("apple ".to_owned()), Just("pear".to_owned()), Just("用户".to_owned()),
                    Just(" lorem ipsum dolor sit amet ".repeat(8)), any::<String>(),
                ],
                0..30,
            ),
            bytes in 0..300_usize,
        ) {
            let content = pieces.concat();
            let wanted = wanted(&[("apple", 1.0), ("pear", 2.0), ("用户", 1.5)]);
            let shown = wanted.part(&Analyser::new(), &content, bytes);
            prop_assert!(shown.len() <= bytes);
            prop_assert!(content.contains(shown));
            // As long as the room allows.
            prop_assert!(shown.len() + 6 >= bytes.min(content.len()));
        }
    }
}
