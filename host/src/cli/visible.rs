//! Text of unknown origin, made safe to look at.
//!
//! A memory can hold anything: escape sequences that rewrite the screen,
//! direction overrides that show one thing and mean another, characters that
//! nobody sees but a model reads. On a terminal each shows as its number,
//! `\u{202e}` for example. What writing needs stays: joiners inside words and
//! emoji, variation selectors behind what they vary.

use std::fmt::Write;

/// A text on one line: white space runs together, all else is visible.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |c| match c {
        '\n' | '\t' => Some(' '),
        _ => None,
    })
    .split_whitespace()
    .collect::<Vec<_>>()
    .join(" ")
}

/// A text with its lines and tabs, all else visible.
pub(crate) fn block(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

fn escaped(text: &str, control: impl Fn(char) -> Option<char>) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.clone().next();
        // A line end of two characters is one.
        if c == '\r' && after == Some('\n') {
            continue;
        }
        if let Some(stays) = control(c) {
            shown.push(stays);
        } else if is_hidden(c) && !belongs(c, before, after) {
            // Writing to a String can't fail.
            let _infallible = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
        before = Some(c);
    }
    shown
}

/// Whether a character acts on the text around it, or does not show at all.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            // Fillers, that fonts leave blank.
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
            | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            // Zero width, and direction.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Variation selectors.
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Tags.
            | '\u{e0000}'..='\u{e007f}')
}

/// Whether a hidden character is a part of how its neighbours are written.
fn belongs(c: char, before: Option<char>, after: Option<char>) -> bool {
    let is_written = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !c.is_whitespace());
    match c {
        // Between letters of Persian or Hindi, between the parts of an emoji,
        // also behind such a part's variation selector.
        '\u{200c}' | '\u{200d}' => {
            is_written(before)
                && is_written(after)
                && !after.is_some_and(is_hidden)
                && before.is_some_and(|c| !is_hidden(c) || c == '\u{fe0f}')
        }
        // As text or as emoji: also of digits, in keycaps.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|c| {
            (!c.is_ascii() && !c.is_whitespace() && !is_hidden(c))
                || c.is_ascii_digit()
                || matches!(c, '#' | '*')
        }),
        // Variants of ideographs.
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => {
            before.is_some_and(|c| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_shows_as_its_number() {
        assert_eq!(block("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(block("\u{9b}31m\u{7}\r"), "\\u{9b}31m\\u{7}\\u{d}");
        assert_eq!(block("user\u{202e}txt"), "user\\u{202e}txt");
        assert_eq!(
            block("a\u{200b}b\u{2066}c\u{feff}"),
            "a\\u{200b}b\\u{2066}c\\u{feff}"
        );
        assert_eq!(block("x\u{e0049}\u{e0001}"), "x\\u{e0049}\\u{e0001}");
        assert_eq!(
            block("a\u{fe01}\u{e0100}\u{2028}"),
            "a\\u{fe01}\\u{e0100}\\u{2028}"
        );
    }

    #[test]
    fn joiners_stay_where_writing_needs_them() {
        for text in ["می‌خواهم", "👩‍👩‍👧", "❤️‍🔥", "🏳️‍🌈", "1️⃣", "क्‍ष", "葛󠄀"]
        {
            assert_eq!(block(text), text);
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn joiners_elsewhere_are_shown() {
        assert_eq!(block("a\u{200d}b"), "a\\u{200d}b");
        assert_eq!(block("\u{200c}"), "\\u{200c}");
        assert_eq!(block("م\u{200c}\u{200d}م"), "م\\u{200c}\\u{200d}م");
        assert_eq!(block("😀\u{fe0f}\u{fe0f}"), "😀\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn lines_run_together_or_stay() {
        assert_eq!(line(" a\r\n\tb  c\n"), "a b c");
        assert_eq!(block("a\r\n\tb\n"), "a\n\tb\n");
    }
}
