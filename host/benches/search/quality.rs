//! How much of what answers a question is found, and how far up.

use remora_host::Level;
use remora_host::storage::SqliteStorage;

use crate::Options;
use crate::data::{self, Question, Set};
use crate::store::{self, Baseline, Memory, Place, say};
use crate::texts::{Turn, opaque};

/// A column of the table: what is measured, of which set, and what is asked for.
struct Measure {
    set: &'static str,
    name: &'static str,
    of: fn(&[usize], &Question) -> f64,
    target: f64,
}

const fn recall(set: &'static str, target: f64) -> Measure {
    Measure {
        set,
        name: "R@5",
        of: |found, question| recall_at(5, found, question),
        target,
    }
}

const MEASURES: [Measure; 9] = [
    recall("en", 0.93),
    recall("sv", 0.815),
    recall("de", 0.885),
    recall("he", 0.86),
    recall("ja", 0.892),
    recall("zh", 0.92),
    recall("locomo", 0.585),
    Measure {
        set: "locomo",
        name: "R@10",
        of: |found, question| recall_at(10, found, question),
        target: 0.66,
    },
    Measure {
        set: "locomo",
        name: "MRR",
        of: reciprocal_rank,
        target: 0.51,
    },
];

/// How many matches are looked at.
const DEPTH: usize = 100;

/// The share of what answers the question among the first of what was found.
fn recall_at(first: usize, found: &[usize], question: &Question) -> f64 {
    let first = &found[..found.len().min(first)];
    let relevant = &question.relevant;
    let hits = relevant.iter().filter(|place| first.contains(place));
    hits.count() as f64 / relevant.len() as f64
}

fn reciprocal_rank(found: &[usize], question: &Question) -> f64 {
    let first = found
        .iter()
        .position(|place| question.relevant.contains(place));
    first.map_or(0.0, |place| 1.0 / (place + 1) as f64)
}

/// A question's figures, for the measures of its set.
struct Figures {
    even: bool,
    ours: Vec<f64>,
    baseline: Vec<f64>,
}

pub(crate) fn measure(options: &Options) {
    let place = Place::new(None, "");
    let storage = store::open(&place.store());
    let mut names: Vec<&str> = MEASURES.iter().map(|measure| measure.set).collect();
    names.dedup();
    let mut table: Vec<(&str, Vec<Figures>)> = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        match data::read(&options.data, name) {
            None => missing.push(name),
            Some(sets) => {
                let mut figures = Vec::new();
                for (number, (store, set)) in sets.iter().enumerate() {
                    say(&format!("{name} {store}"));
                    let agent = format!("{name}-{number}");
                    figures.extend(figures_of(&storage, &agent, name, set, options.keys));
                }
                table.push((name, figures));
            }
        }
    }
    say("");
    if table.is_empty() {
        let missing = data::missing(&options.data, &missing);
        println!("quality: not measured. {missing}");
        return;
    }
    print(&table, options.keys);
    if !missing.is_empty() {
        let missing = data::missing(&options.data, &missing);
        println!("not all measured: {missing}");
    }
}

/// Stores a set, and asks its questions.
fn figures_of(
    storage: &SqliteStorage,
    agent: &str,
    name: &str,
    set: &Set,
    keys: bool,
) -> Vec<Figures> {
    let memories = set.texts.iter().enumerate().map(|(number, text)| {
        let mut memory = Memory {
            key: opaque(number),
            text: text.text.clone(),
            tags: Vec::new(),
        };
        if keys && text.date.is_some() {
            let turn = Turn::of(text);
            // One key holds one memory, so the number stays.
            memory.key = format!("{}-{}", turn.key, memory.key);
            memory.tags.push(turn.tag);
        }
        memory
    });
    let filled = store::fill(storage, agent, Level::Public, memories, &mut |_| {});
    assert_eq!(filled, set.texts.len() as u64);
    let baseline = Baseline::in_memory();
    baseline.fill(set.texts.iter().map(|text| text.text.clone()));

    let measures = || MEASURES.iter().filter(|measure| measure.set == name);
    let questions = set.questions.iter().enumerate();
    questions
        .map(|(number, question)| {
            if number % 50 == 0 {
                say(&format!("{name} {number}"));
            }
            let found = store::ask(storage, agent, Level::Public, &question.text, DEPTH);
            let found: Vec<usize> = found.iter().map(|key| number_of(key)).collect();
            let numbers = baseline.ask(&question.text, DEPTH as i64);
            let others: Vec<usize> = numbers.iter().map(|number| *number as usize - 1).collect();
            Figures {
                even: number % 2 == 0,
                ours: measures().map(|m| (m.of)(&found, question)).collect(),
                baseline: measures().map(|m| (m.of)(&others, question)).collect(),
            }
        })
        .collect()
}

/// The other way round than [`opaque`], whatever stands ahead of it.
fn number_of(key: &str) -> usize {
    let opaque = key.rsplit('-').next().unwrap_or_default();
    let letters = opaque.bytes().skip(2).rev();
    letters.fold(0, |number, letter| {
        number * 16 + usize::from(letter.wrapping_sub(b'a'))
    })
}

fn print(table: &[(&str, Vec<Figures>)], keys: bool) {
    let dialogues = if keys {
        "keys and tags tell who spoke and when"
    } else {
        "keys and tags tell nothing"
    };
    println!("recall and reciprocal rank; in the dialogues of locomo {dialogues}");
    let line = |name: &str, cell: &dyn Fn(&Measure) -> String| {
        let cells: Vec<String> = MEASURES
            .iter()
            .map(|measure| format!("{:>8}", cell(measure)))
            .collect();
        println!("{}", format!("{name:<18}{}", cells.concat()).trim_end());
    };
    line("", &|measure| measure.set.to_owned() + " ");
    line("questions", &|measure| measure.name.to_owned() + " ");
    let mut missed = Vec::new();
    for (half, even) in [("all", None), ("even", Some(true)), ("odd", Some(false))] {
        line(half, &|measure| {
            let of_half = |f: &Figures| even.is_none_or(|even| even == f.even);
            mean(table, measure, |f| of_half(f).then_some(&f.ours)).map_or_else(
                || "- ".to_owned(),
                |mean| {
                    let mark = if mean < measure.target { '!' } else { ' ' };
                    format!("{mean:.3}{mark}")
                },
            )
        });
    }
    line("at least", &|measure| format!("{:.3} ", measure.target));
    line("porter unicode61", &|measure| {
        mean(table, measure, |f| Some(&f.baseline))
            .map_or_else(|| "- ".to_owned(), |mean| format!("{mean:.3} "))
    });
    for measure in &MEASURES {
        let all = mean(table, measure, |f| Some(&f.ours));
        if all.is_some_and(|mean| mean < measure.target) {
            missed.push(format!("{} {}", measure.set, measure.name));
        }
    }
    match missed.as_slice() {
        [] => println!("nothing is missed"),
        missed => println!("! missed: {}", missed.join(", ")),
    }
}

/// The mean of a measure over some questions.
fn mean<'a>(
    table: &'a [(&str, Vec<Figures>)],
    measure: &Measure,
    of: impl Fn(&'a Figures) -> Option<&'a Vec<f64>>,
) -> Option<f64> {
    let (_, figures) = table.iter().find(|(set, _)| *set == measure.set)?;
    let column = MEASURES
        .iter()
        .filter(|other| other.set == measure.set)
        .position(|other| other.name == measure.name)?;
    let figures: Vec<f64> = figures
        .iter()
        .filter_map(of)
        .map(|row| row[column])
        .collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}
