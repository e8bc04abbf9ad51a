//! Whether a PUBLIC session's searches take longer for what it may not see.

use std::hint::black_box;
use std::time::Duration;

use remora_host::Level;

use crate::Options;
use crate::store::{self, AGENT, Place, median_and_p99, say, time};
use crate::texts::Source;
use crate::time::fill_level;

/// Records that the session can see.
const VISIBLE: usize = 10_000;
/// How often each question is asked.
const ROUNDS: usize = 5;

pub(crate) fn measure(options: &Options) {
    let source = Source::new(options);
    // Two without: what they differ by is noise.
    let mut hidden = vec![0, 0];
    match options.records.as_slice() {
        [] => hidden.extend([100_000, 1_000_000]),
        records => hidden.extend(records.iter().filter(|records| **records > 0)),
    }
    let stores: Vec<_> = (0..)
        .zip(&hidden)
        .map(|(number, hidden)| {
            let name = format!("hidden-{}-{number}-{hidden}", source.name());
            let place = Place::new(options.keep.as_deref(), &name);
            let filled = place.is_filled();
            let storage = store::open(&place.store());
            if !filled {
                let mut done = 0;
                let mut more = |more| {
                    done += more;
                    say(&format!("{done} records"));
                };
                fill_level(&storage, &source, Level::Public, VISIBLE, &mut more);
                if *hidden > 0 {
                    fill_level(&storage, &source, Level::Restricted, *hidden, &mut more);
                }
                place.set_filled();
            }
            (storage, place)
        })
        .collect();
    let questions = source.questions(options.questions);
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); stores.len()];
    for round in 0..=ROUNDS {
        say(&format!("round {round}"));
        for (number, (question, _)) in questions.iter().enumerate() {
            // Each store comes first as often as any other.
            for turn in 0..stores.len() {
                let turn = (turn + number + round) % stores.len();
                let storage = &stores[turn].0;
                let taken = time(|| {
                    black_box(store::ask(storage, AGENT, Level::Public, question, 10));
                });
                // The first round opens files and fills caches.
                if round > 0 {
                    times[turn].push(taken);
                }
            }
        }
    }
    say("");
    println!(
        "a PUBLIC session among {VISIBLE} PUBLIC {}, {} questions, {ROUNDS} interleaved rounds",
        source.name(),
        questions.len()
    );
    println!(
        "{:>20} {:>12} {:>12} {:>12}",
        "RESTRICTED holds", "median ms", "p99 ms", "more"
    );
    let mut first = None;
    for (number, (hidden, times)) in hidden.iter().zip(&mut times).enumerate() {
        let (median, p99) = median_and_p99(times);
        let first = *first.get_or_insert(median);
        let holds = match number {
            1 => "0, for the noise".to_owned(),
            _ => hidden.to_string(),
        };
        let more = (median / first - 1.0) * 100.0;
        let more = match number {
            0 => String::new(),
            _ => format!("{more:+.1} %"),
        };
        println!("{holds:>20} {median:>12.3} {p99:>12.3} {more:>12}");
    }
}
