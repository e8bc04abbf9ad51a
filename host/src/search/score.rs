//! How well a record answers a query.
//!
//! BM25 over words, pairs and characters, and over the grams of the words, with
//! what follows in the record as it does in the query a little ahead. All weights
//! are one fixed setting, found on half of the questions of six languages and a
//! set of dialogues (`cargo bench -p remora-host --bench search -- quality`).

use super::query::TermKind;

/// How soon a word's repetition in a record stops to matter.
const K1: f64 = 0.4;
/// How much long records are held back.
const B: f64 = 0.7;
/// The same for grams.
const GRAM_K1: f64 = 0.9;
const GRAM_B: f64 = 0.1;
/// What a gram weighs against a word.
const GRAM: f64 = 0.4;
/// How much more the grams of a word weigh that no record holds, since it may be
/// mistyped or inflected; the more records hold it, the less.
const GRAM_RARE: f64 = 0.25;
const GRAM_RARE_POWER: f64 = 0.3;
/// What a pair of neighbours in a run weighs.
const PAIR: f64 = 0.4;
/// What a character of a run weighs.
const CHARACTER: f64 = 0.8;
/// What it weighs that two words stand next to each other; farther apart, less.
const NEAR: f64 = 0.2;
/// Words that stand farther apart than so many are not near.
pub(crate) const NEAR_WORDS: u32 = 5;
/// What a quoted phrase weighs.
const PHRASE: f64 = 2.0;
/// What a word weighs that begins as the last word of the query.
const PREFIX: f64 = 0.4;
/// How much more a record counts that holds all of the words.
const ALL: f64 = 0.2;
/// How much more than in BM25 the rarity of a gram counts.
const GRAM_RARITY: f64 = 0.4;
/// The rarity at which it counts as in BM25.
const USUAL_RARITY: f64 = 5.0;
/// What a word in the key counts as, in words of the content.
pub(crate) const KEY_COUNT: u32 = 2;

/// Grams that are in more than one record of so many tell nothing, unless there
/// are few records.
const COMMON_GRAM: u64 = 100;
const FEW: u64 = 1000;

/// Steps of a record's length for each doubling.
const LENGTH_STEPS: f64 = 2.0;
/// The classes of length: up to 2^15.5 terms are told apart.
pub(crate) const LENGTHS: u8 = 32;

/// The class of a length in terms. The index has it in every posting, so that
/// scoring reads no record.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..32 before"
)]
pub(crate) fn length_class(terms: u64) -> u8 {
    let steps = (float(terms.max(1)).log2() * LENGTH_STEPS).round();
    steps.clamp(0.0, f64::from(LENGTHS.saturating_sub(1))) as u8
}

/// What all visible records together say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collection {
    /// How many there are.
    pub(crate) records: u64,
    /// Terms of all of them.
    pub(crate) terms: u64,
}

impl Collection {
    /// How many records may hold a gram that is scored.
    pub(crate) fn most_for_a_gram(self) -> u64 {
        FEW.max(self.records / COMMON_GRAM)
    }

    /// BM25's measure of how rare a term is that so many records hold.
    fn rarity(self, holding: u64) -> f64 {
        let (all, holding) = (float(self.records.max(holding)), float(holding));
        ((all - holding + 0.5) / (holding + 0.5)).ln_1p()
    }

    /// How the lengths of records hold them back, by their class.
    fn saturation(self, k1: f64, b: f64) -> [f64; LENGTHS as usize] {
        let average = float(self.terms.max(1)) / float(self.records.max(1));
        std::array::from_fn(|class| {
            let steps = f64::from(u8::try_from(class).unwrap_or(LENGTHS));
            let length = (steps / LENGTH_STEPS).exp2() / average;
            k1 * (1.0 - b + b * length)
        })
    }
}

/// What one term adds to the score of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighing {
    weight: f64,
    k1: f64,
    saturation: [f64; LENGTHS as usize],
}

impl Weighing {
    /// Of a term that so many records hold.
    pub(crate) fn term(collection: Collection, kind: TermKind, holding: u64) -> Self {
        let weight = match kind {
            TermKind::Stem => 1.0,
            TermKind::Pair => PAIR,
            TermKind::Character => CHARACTER,
        };
        Self {
            weight: weight * collection.rarity(holding),
            k1: K1,
            saturation: collection.saturation(K1, B),
        }
    }

    /// Of a gram that so many records hold, in a word that `word_holding` hold.
    pub(crate) fn gram(collection: Collection, holding: u64, word_holding: u64) -> Self {
        let rare = float(word_holding.max(1)).powf(-GRAM_RARE_POWER);
        let rarity = collection.rarity(holding);
        let counting_more = (rarity / USUAL_RARITY).powf(GRAM_RARITY);
        Self {
            weight: GRAM * (1.0 + GRAM_RARE * rare) * rarity * counting_more,
            k1: GRAM_K1,
            saturation: collection.saturation(GRAM_K1, GRAM_B),
        }
    }

    /// Of the words that begin as the query's last word, as if they were one.
    pub(crate) fn prefix(collection: Collection, holding: u64) -> Self {
        let mut weighing = Self::term(collection, TermKind::Stem, holding);
        weighing.weight *= PREFIX;
        weighing
    }

    /// Of a quoted phrase.
    pub(crate) fn phrase(collection: Collection, holding: u64) -> Self {
        let mut weighing = Self::term(collection, TermKind::Stem, holding);
        weighing.weight *= PHRASE;
        weighing
    }

    /// What it adds where a record of that class of length has it so often.
    pub(crate) fn of(&self, often: u32, length: u8) -> f64 {
        let often = f64::from(often);
        let held = self
            .saturation
            .get(usize::from(length))
            .copied()
            .unwrap_or(self.k1);
        self.weight * often * (self.k1 + 1.0) / (often + held)
    }

    /// More than it ever adds.
    pub(crate) fn bound(&self) -> f64 {
        self.weight * (self.k1 + 1.0)
    }

    /// What the term tells of a record.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }
}

/// What it adds that two words are near each other, which they are in so many
/// records, for one in which so many steps lead from the one to the other.
pub(crate) fn near(collection: Collection, holding: u64) -> impl Fn(u32) -> f64 {
    let weight = NEAR * collection.rarity(holding);
    move |steps| weight / f64::from(steps.max(1))
}

/// The score of a record of which so many of the query's words were found.
pub(crate) fn with_all(score: f64, found: u32, words: usize) -> f64 {
    let words = f64::from(u32::try_from(words.max(1)).unwrap_or(u32::MAX));
    score * (1.0 + ALL * (f64::from(found) / words).min(1.0))
}

/// More than any record scores whose terms are together bound by that.
pub(crate) fn bound(terms: f64) -> f64 {
    terms * (1.0 + ALL)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of records and terms are far below 2^53"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Collection = Collection {
        records: 1000,
        terms: 16_000,
    };

    #[test]
    fn a_gram_counts_that_a_thousand_hold_or_one_of_a_hundred() {
        for (records, most) in [
            (0, 1000),
            (1, 1000),
            (100_000, 1000),
            (100_099, 1000),
            (100_100, 1001),
            (1_000_000, 10_000),
        ] {
            let collection = Collection { records, terms: 0 };
            assert_eq!(collection.most_for_a_gram(), most, "{records}");
        }
    }

    #[test]
    fn a_class_of_length_is_half_a_doubling() {
        let classes: Vec<u8> = [0, 1, 2, 3, 4, 6, 8, 1024].map(length_class).into();
        assert_eq!(classes, [0, 0, 2, 3, 4, 5, 6, 20]);
        assert_eq!(length_class(u64::MAX), LENGTHS - 1);
        assert!((0..100_000).map(length_class).is_sorted());
    }

    #[test]
    fn a_word_is_worth_what_bm25_says() {
        // By hand: ln(1 + (1000 - 10 + 0.5) / (10 + 0.5)), of average length.
        let rarity = (1.0_f64 + 990.5 / 10.5).ln();
        let weighing = Weighing::term(SOME, TermKind::Stem, 10);
        for often in [1.0, 2.0, 7.0] {
            let expected = rarity * often * 1.4 / (often + 0.4);
            let found = weighing.of(often as u32, length_class(16));
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        // Twice as long as the average.
        let expected = rarity * 1.4 / (1.0 + 0.4 * (0.3 + 0.7 * 2.0));
        assert!((weighing.of(1, length_class(32)) - expected).abs() < 1e-12);
        for (kind, part) in [(TermKind::Pair, 0.4), (TermKind::Character, 0.8)] {
            let weight = Weighing::term(SOME, kind, 10).weight();
            assert!((weight - part * rarity).abs() < 1e-12);
        }
        assert!((Weighing::prefix(SOME, 10).weight() - 0.4 * rarity).abs() < 1e-12);
        assert!((Weighing::phrase(SOME, 10).weight() - 2.0 * rarity).abs() < 1e-12);
        assert!((near(SOME, 10)(2) - 0.1 * rarity).abs() < 1e-12);
    }

    fn weighings(collection: Collection, holding: u64) -> [Weighing; 7] {
        [
            Weighing::term(collection, TermKind::Stem, holding),
            Weighing::term(collection, TermKind::Pair, holding),
            Weighing::term(collection, TermKind::Character, holding),
            Weighing::gram(collection, holding, 0),
            Weighing::gram(collection, holding, holding),
            Weighing::prefix(collection, holding),
            Weighing::phrase(collection, holding),
        ]
    }

    #[test]
    fn whatever_the_figures_a_score_is_more_than_nothing_and_below_its_bound() {
        let numbers = [0, 1, 2, 1000, u64::from(u32::MAX)];
        for records in numbers {
            for terms in numbers {
                let collection = Collection { records, terms };
                // Also where an index holds more than it says.
                for holding in numbers.into_iter().filter(|holding| *holding > 0) {
                    for weighing in weighings(collection, holding) {
                        for often in [1, 2, 100_000] {
                            for class in 0..LENGTHS {
                                let found = weighing.of(often, class);
                                assert!(found > 0.0 && found.is_finite(), "{weighing:?}");
                                assert!(found <= weighing.bound(), "{weighing:?}");
                            }
                        }
                    }
                    let near = near(collection, holding);
                    assert!(near(1) > 0.0 && near(1).is_finite() && near(0) <= near(1));
                }
            }
        }
    }

    #[test]
    fn rarer_more_often_shorter_and_nearer_is_worth_more() {
        for (rarer, more_common) in weighings(SOME, 3).iter().zip(&weighings(SOME, 900)) {
            assert!(rarer.weight() > more_common.weight());
            for class in 1..LENGTHS {
                assert!(rarer.of(1, class - 1) > rarer.of(1, class));
                assert!(rarer.of(2, class) > rarer.of(1, class));
            }
        }
        assert!(near(SOME, 3)(1) > near(SOME, 3)(2));
        // The grams of a word that nothing holds weigh the most.
        let gram = |word| Weighing::gram(SOME, 10, word).weight();
        assert!(gram(1) > gram(2));
    }

    #[test]
    fn all_of_the_words_are_worth_more_than_some() {
        assert!(with_all(1.0, 2, 2) > with_all(1.0, 1, 2));
        assert!(with_all(1.0, 1, 2) > with_all(1.0, 0, 2));
        for (found, words) in [(0, 0), (1, 1), (64, 3), (u32::MAX, usize::MAX)] {
            assert!(with_all(1.0, found, words) <= bound(1.0));
        }
    }
}
