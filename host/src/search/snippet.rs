//! The part of a content that answers a query.

use std::collections::{BTreeMap, VecDeque};

use super::analyser::{Analyser, tokens};

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
    /// that holds the most of what is wanted. One walk through the content.
    pub(crate) fn best_part(&self, analyser: &Analyser, content: &str, bytes: usize) -> usize {
        let room = bytes.saturating_sub(LEAD);
        let mut inside: VecDeque<(usize, f64)> = VecDeque::new();
        let mut sum = 0.0;
        let (mut best, mut best_at) = (0.0, 0);
        for token in tokens(content) {
            let mut worth: f64 = 0.0;
            analyser.words(&token, |term| {
                worth = worth.max(self.terms.get(term).copied().unwrap_or(0.0));
            });
            if worth <= 0.0 {
                analyser.grams(&token, |gram| {
                    worth += GRAM * self.grams.get(gram).copied().unwrap_or(0.0);
                });
            }
            if worth <= 0.0 {
                continue;
            }
            inside.push_back((token.start, worth));
            sum += worth;
            while let Some((start, gone)) = inside.front().copied()
                && token.end.saturating_sub(start) > room
                && inside.len() > 1
            {
                inside.pop_front();
                sum -= gone;
            }
            // The first of equals, also where sums differ by their rounding.
            if sum > best * (1.0 + 1e-9) {
                best = sum;
                best_at = inside.front().map_or(0, |(start, _)| *start);
            }
        }
        best_at
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
