//! How long a search on four levels takes, against one table of FTS5.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use remora_host::Level;
use remora_host::storage::SqliteStorage;

use crate::Options;
use crate::store::{self, AGENT, Baseline, Memory, Place, median, median_and_p99, say, time};
use crate::texts::{Source, opaque};

/// Matches that are asked for.
const FIRST: usize = 10;
/// How often each question is asked; less often where that takes longer than
/// [`PATIENCE`].
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(options: &Options) {
    let source = Source::new(options);
    let records = match (options.records.as_slice(), &source) {
        ([], Source::Dialogues { .. }) => vec![100_000, 1_000_000],
        ([], Source::Zipf) => vec![10_000, 100_000, 1_000_000],
        (records, _) => records.to_vec(),
    };
    for (number, records) in records.into_iter().enumerate() {
        if number > 0 {
            println!();
        }
        of(options, &source, records);
    }
}

fn of(options: &Options, source: &Source, records: usize) {
    let place = Place::new(
        options.keep.as_deref(),
        &format!("time-{}-{records}", source.name()),
    );
    let each = records / Level::ALL.len();
    let filled = place.is_filled();
    let storage = store::open(&place.store());
    let baseline = Baseline::in_file(&place.baseline());
    if !filled {
        let ours = time(|| fill(&storage, source, each));
        say("the baseline");
        let theirs = time(|| {
            let levels = Level::ALL.into_iter();
            baseline.fill(levels.flat_map(|level| source.texts(level).take(each)));
        });
        say("");
        place.set_filled();
        println!(
            "filled in {:.1} s, the baseline in {:.1} s",
            ours.as_secs_f64(),
            theirs.as_secs_f64()
        );
    }
    let text: usize = Level::ALL
        .into_iter()
        .flat_map(|level| source.texts(level).take(each))
        .map(|text| text.len())
        .sum();
    let files = Level::ALL.map(|level| store::bytes(&store::level_file(&storage, level)));
    let index: i64 = files.iter().map(|(index, _)| index).sum();
    let all: i64 = files.iter().map(|(_, all)| all).sum();
    println!(
        "for each byte of text {:.2} in the index, {:.2} in all; in the baseline {:.2}",
        index as f64 / text as f64,
        all as f64 / text as f64,
        store::bytes(&place.baseline()).1 as f64 / text as f64
    );

    let questions = source.questions(options.questions);
    println!(
        "{} {} on four levels, {} questions, the first {FIRST} matches; ms",
        each * Level::ALL.len(),
        source.name(),
        questions.len()
    );
    println!(
        "{:<20}{:>6}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}{:>9}",
        "", "rounds", "ours", "p99", "baseline", "p99", "ratio", "of p99", "at most"
    );
    let asked: Vec<&str> = questions.iter().map(|(asked, _)| asked.as_str()).collect();
    report("as asked", 1.0, &storage, &baseline, &asked);
    let rare: Vec<&str> = questions.iter().map(|(_, rare)| rare.as_str()).collect();
    report("without stop words", 1.5, &storage, &baseline, &rare);
}

/// Puts so many texts on each level, all levels at once.
pub(crate) fn fill(storage: &SqliteStorage, source: &Source, each: usize) {
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for level in Level::ALL {
            let done = &done;
            scope.spawn(move || {
                fill_level(storage, source, level, each, &mut |more| {
                    let done = done.fetch_add(more, Ordering::Relaxed) + more;
                    say(&format!("{done} records"));
                });
            });
        }
    });
    say("");
    for level in Level::ALL {
        store::write_back(&store::level_file(storage, level));
    }
}

/// Puts so many texts on a level.
pub(crate) fn fill_level(
    storage: &SqliteStorage,
    source: &Source,
    level: Level,
    number: usize,
    more: &mut dyn FnMut(u64),
) {
    let first = level as usize * 4_000_000;
    let texts = source.texts(level).take(number).enumerate();
    let memories = texts.map(|(number, text)| Memory {
        key: opaque(first + number),
        text,
        tags: Vec::new(),
    });
    let mut before = 0;
    let filled = store::fill(storage, AGENT, level, memories, &mut |done| {
        more(done - before);
        before = done;
    });
    assert_eq!(filled, number as u64);
}

/// Asks the questions of both, in turns.
fn report(name: &str, at_most: f64, ours: &SqliteStorage, baseline: &Baseline, asked: &[&str]) {
    let search = |text: &str| {
        black_box(store::ask(ours, AGENT, Level::Restricted, text, FIRST));
    };
    let match_any = |text: &str| {
        black_box(baseline.ask(text, FIRST as i64));
    };
    // The first ones open files.
    for text in asked.iter().take(3) {
        search(text);
        match_any(text);
    }
    let mut times = vec![(Vec::new(), Vec::new()); asked.len()];
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS {
        for (number, (text, (of_ours, of_baseline))) in asked.iter().zip(&mut times).enumerate() {
            if number % 10 == 0 {
                say(&format!("{name}, round {}, {number}", rounds + 1));
            }
            of_ours.push(time(|| search(text)));
            of_baseline.push(time(|| match_any(text)));
        }
        rounds += 1;
        // Another one would take too long.
        let next = rounds as u32 + 1;
        if start.elapsed() / rounds as u32 * next > PATIENCE {
            break;
        }
    }
    say("");
    let mut of_ours: Vec<Duration> = times.iter_mut().map(|(ours, _)| median(ours)).collect();
    let mut of_baseline: Vec<Duration> = times.iter_mut().map(|(_, base)| median(base)).collect();
    let (ours, ours_99) = median_and_p99(&mut of_ours);
    let (baseline, baseline_99) = median_and_p99(&mut of_baseline);
    let ratio = |ours: f64, baseline: f64| {
        let ratio = ours / baseline;
        let mark = if ratio > at_most { '!' } else { ' ' };
        format!("{ratio:.2}{mark}")
    };
    println!(
        "{name:<20}{rounds:>6}{ours:>10.2}{ours_99:>10.2}{baseline:>10.2}{baseline_99:>10.2}{:>8}{:>8}{at_most:>9.1}",
        ratio(ours, baseline),
        ratio(ours_99, baseline_99)
    );
}
