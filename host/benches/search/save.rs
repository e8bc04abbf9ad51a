//! How many saves a second the index allows, and what it takes on disk.

use std::path::Path;

use remora_host::Level;
use remora_host::storage::{Draft, Outcome, SqliteStorage, StorageProvider};

use crate::Options;
use crate::store::{self, AGENT, Place, say, time};
use crate::texts::{Source, Turn, opaque};

/// Saves under new keys.
const NEW: usize = 5_000;
/// Then saves of other words under some of them.
const AGAIN: usize = 2_000;
const RUNS: usize = 3;

/// The figures of one run.
struct Run {
    new: f64,
    again: f64,
    /// Bytes of the index, and of all, for each byte of text: of the new.
    index: f64,
    all: f64,
}

pub(crate) fn measure(options: &Options) {
    let source = Source::new(options);
    let drafts = drafts(&source);
    println!(
        "{NEW} saves of {} under new keys, then {AGAIN} of other words under these; the median of {RUNS} runs",
        source.name()
    );
    println!(
        "{:<8}{:>10}{:>10}   {:>14}{:>10}",
        "where", "new /s", "again /s", "index per text", "all"
    );
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    report("disk", disk, &drafts);
    // Without a disk to wait for, what is left is what saving reckons.
    let tmpfs = Path::new("/dev/shm");
    if tmpfs.is_dir() {
        report("tmpfs", tmpfs, &drafts);
    } else {
        println!("tmpfs   not measured: /dev/shm is not there");
    }
}

fn drafts(source: &Source) -> Vec<Draft> {
    let turns: Vec<Turn> = match source {
        Source::Dialogues { turns, .. } => turns
            .iter()
            .map(|turn| Turn {
                text: turn.text.clone(),
                key: turn.key.clone(),
                tag: turn.tag.clone(),
            })
            .collect(),
        Source::Zipf => source
            .texts(Level::Public)
            .take(NEW)
            .map(|text| Turn {
                text,
                key: "made-up".to_owned(),
                tag: "D1".to_owned(),
            })
            .collect(),
    };
    let cycle = turns.iter().cycle().take(NEW).enumerate();
    cycle
        .map(|(number, turn)| Draft {
            key: format!("{}-{}", turn.key, opaque(number)),
            content: turn.text.clone(),
            tags: vec![turn.tag.clone()],
            ..Draft::default()
        })
        .collect()
}

fn report(place: &str, folder: &Path, drafts: &[Draft]) {
    let runs: Vec<Run> = (1..=RUNS)
        .map(|number| {
            say(&format!("{place}, run {number}"));
            run(folder, drafts)
        })
        .collect();
    say("");
    let median = |of: fn(&Run) -> f64| {
        let mut figures: Vec<f64> = runs.iter().map(of).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    println!(
        "{place:<8}{:>10.0}{:>10.0}   {:>14.2}{:>10.2}",
        median(|run| run.new),
        median(|run| run.again),
        median(|run| run.index),
        median(|run| run.all)
    );
}

fn run(folder: &Path, drafts: &[Draft]) -> Run {
    let place = Place::temporary(folder);
    let storage = store::open(&place.store());
    let new = time(|| {
        for draft in drafts {
            save(&storage, draft, Outcome::Created);
        }
    });
    let text: usize = drafts.iter().map(|draft| draft.content.len()).sum();
    let (index, all) = store::bytes(&store::level_file(&storage, Level::Public));
    // The words of the next key, but for the last.
    let changed: Vec<Draft> = drafts
        .windows(2)
        .filter(|pair| pair[0].content != pair[1].content)
        .take(AGAIN)
        .map(|pair| Draft {
            content: pair[1].content.clone(),
            ..pair[0].clone()
        })
        .collect();
    assert_eq!(changed.len(), AGAIN);
    let again = time(|| {
        for draft in &changed {
            save(&storage, draft, Outcome::Updated);
        }
    });
    Run {
        new: drafts.len() as f64 / new.as_secs_f64(),
        again: changed.len() as f64 / again.as_secs_f64(),
        index: index as f64 / text as f64,
        all: all as f64 / text as f64,
    }
}

fn save(storage: &SqliteStorage, draft: &Draft, expected: Outcome) {
    let access = store::access(AGENT, Level::Public);
    let mut shelves = storage.open(access).expect("shelves");
    let receipt = shelves.put(draft).expect("a save");
    assert_eq!(receipt.outcome, expected);
}
