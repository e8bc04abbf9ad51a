//! Texts without end, the same on every run, and questions about them.

use remora_host::Level;

use crate::Options;
use crate::data;
use crate::stop::without_stop_words;
use crate::words::Random;

/// How many of the commonest made-up words count as stop words.
const COMMONEST: usize = 150;

/// Where texts come from.
pub(crate) enum Source {
    /// Turns of dialogues, with words of them replaced.
    Dialogues {
        turns: Vec<Turn>,
        words: Vec<String>,
        questions: Vec<String>,
    },
    /// Sentences of made-up words.
    Zipf,
}

/// A turn of a dialogue.
pub(crate) struct Turn {
    pub(crate) text: String,
    /// Who spoke, and on what day: `caroline-8-may-2023`.
    pub(crate) key: String,
    /// The session: `D1`.
    pub(crate) tag: String,
}

impl Turn {
    pub(crate) fn of(text: &data::Text) -> Self {
        let speaker = text.text.split(':').next().unwrap_or_default();
        let date = text.date.as_deref().unwrap_or_default();
        let day = date.split(" on ").last().unwrap_or_default();
        let key = format!("{speaker} {day}").to_lowercase();
        let parts: Vec<&str> = key
            .split(|c: char| !c.is_alphanumeric())
            .filter(|part| !part.is_empty())
            .collect();
        Self {
            text: text.text.clone(),
            key: parts.join("-"),
            tag: text.id.split(':').next().unwrap_or_default().to_owned(),
        }
    }
}

impl Source {
    /// The dialogues where they are to be had, and says so where they are not.
    pub(crate) fn new(options: &Options) -> Self {
        if options.zipf {
            return Self::Zipf;
        }
        let Some(sets) = data::read(&options.data, "locomo") else {
            println!(
                "made-up sentences: {}",
                data::missing(&options.data, &["locomo"])
            );
            return Self::Zipf;
        };
        let texts = sets.iter().flat_map(|(_, set)| &set.texts);
        let turns: Vec<Turn> = texts.map(Turn::of).collect();
        let words = turns.iter().flat_map(|turn| turn.text.split_whitespace());
        let questions = sets.iter().flat_map(|(_, set)| &set.questions);
        Self::Dialogues {
            words: words.map(str::to_owned).collect(),
            questions: questions.map(|question| question.text.clone()).collect(),
            turns,
        }
    }

    /// What tells stores filled from it apart from others.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Dialogues { .. } => "dialogues",
            Self::Zipf => "zipf",
        }
    }

    /// The texts of a level.
    pub(crate) fn texts(&self, level: Level) -> impl Iterator<Item = String> {
        // Xorshift takes some rounds to spread what seeds differ in.
        let mut random = Random(42 + level as u64);
        for _ in 0..16 {
            random.below(2);
        }
        let mut place = random.below(1000);
        std::iter::repeat_with(move || match self {
            Self::Zipf => {
                let words = 12 + random.below(20);
                random.sentence(words)
            }
            Self::Dialogues { turns, words, .. } => {
                let turn = &turns[place % turns.len()];
                place += 1;
                let replaced = turn.text.split_whitespace().map(|word| {
                    if random.below(10) < 3 {
                        words[random.below(words.len())].as_str()
                    } else {
                        word
                    }
                });
                replaced.collect::<Vec<_>>().join(" ")
            }
        })
    }

    /// About so many questions: as asked, and without their stop words.
    pub(crate) fn questions(&self, number: usize) -> Vec<(String, String)> {
        match self {
            Self::Dialogues { questions, .. } => {
                let step = (questions.len() / number).max(1);
                let every = questions.iter().step_by(step);
                every
                    .map(|question| (question.clone(), without_stop_words(question)))
                    .filter(|(_, without)| !without.is_empty())
                    .collect()
            }
            Self::Zipf => {
                let mut random = Random(7);
                let asked = std::iter::repeat_with(|| random.sentence(10)).map(|question| {
                    let rare = question.split(' ').filter(|word| rank(word) > COMMONEST);
                    let rare = rare.collect::<Vec<_>>().join(" ");
                    (question, rare)
                });
                asked
                    .filter(|(_, without)| !without.is_empty())
                    .take(number)
                    .collect()
            }
        }
    }
}

/// How common a made-up word is: see [`Random::sentence`].
fn rank(word: &str) -> usize {
    let letters = word.bytes().skip(1).rev();
    letters.fold(0, |rank, letter| rank * 26 + usize::from(letter - b'a'))
}

/// A key that no question holds: the number in letters.
pub(crate) fn opaque(mut number: usize) -> String {
    let mut key = String::from("zq");
    for _ in 0..6 {
        key.push(char::from(b'a' + (number % 16) as u8));
        number /= 16;
    }
    key
}
