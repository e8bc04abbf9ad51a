//! How good search is and how long it takes, judged through the store's public
//! interface alone, so that one engine can be held against another: run it on the
//! builds of both.
//!
//! | part | what |
//! | --- | --- |
//! | `quality` | recall and rank on retrieval sets of six languages and on long dialogues, beside what is asked for |
//! | `time` | searches on four levels against one FTS5 table with the same texts, interleaved, on one thread |
//! | `hidden` | a PUBLIC session's searches, with more and more on RESTRICTED |
//! | `save` | saves per second, and what the index takes on disk |
//!
//! The baseline everywhere is what SQLite brings along: a table of FTS5 with `porter
//! unicode61`, any of the words, `bm25()`. Of times only ratios and differences are
//! judged, but for saves. A part without a name runs all four; the numbers are the
//! records of `time` and `hidden`.
//!
//! The retrieval sets are not part of the project. They are looked for in `--data`,
//! in `REMORA_RETRIEVAL`, and in `../shared/data/retrieval` beside the workspace:
//! `en.jsonl`, `sv`, `de`, `he`, `ja`, `zh` and `locomo`, lines of JSON with `id` and
//! `text`, or with `query` and `relevant`. Without them `quality` has nothing to
//! measure; the others make do with sentences from a vocabulary in which a word is
//! as rare as in prose, as with `--zipf`.
//!
//! Stores of a million records take minutes to fill. `--keep DIR` keeps them for the
//! next run of the same build; for another engine name another folder.
//!
//!     cargo bench -p remora-host --bench search [-- PART] [RECORDS…] [--zipf] [--keys]
//!         [--questions N] [--data DIR] [--keep DIR]

use std::path::PathBuf;
use std::process::ExitCode;

#[path = "search/data.rs"]
mod data;
#[path = "search/hidden.rs"]
mod hidden;
#[path = "search/quality.rs"]
mod quality;
#[path = "search/save.rs"]
mod save;
#[path = "search/stop.rs"]
mod stop;
#[path = "search/store.rs"]
mod store;
#[path = "search/texts.rs"]
mod texts;
#[path = "search/time.rs"]
mod time;
mod words;

/// What was asked for.
struct Options {
    parts: Vec<String>,
    records: Vec<usize>,
    /// Where the retrieval sets are.
    data: PathBuf,
    /// Where filled stores are kept.
    keep: Option<PathBuf>,
    /// Of `time` and `hidden`, about how many are asked.
    questions: usize,
    /// In `quality`, the keys and tags of the dialogues tell who spoke and when.
    keys: bool,
    /// Sentences of a made-up vocabulary, also where there are dialogues.
    zipf: bool,
}

const PARTS: [&str; 4] = ["quality", "time", "hidden", "save"];

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    for (number, part) in options.parts.iter().enumerate() {
        if number > 0 {
            println!();
        }
        match part.as_str() {
            "quality" => quality::measure(&options),
            "time" => time::measure(&options),
            "hidden" => hidden::measure(&options),
            _ => save::measure(&options),
        }
    }
    ExitCode::SUCCESS
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        parts: Vec::new(),
        records: Vec::new(),
        data: data::folder(),
        keep: None,
        questions: 200,
        keys: false,
        zipf: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            // Cargo says it.
            "--bench" => {}
            "--keys" => options.keys = true,
            "--zipf" => options.zipf = true,
            "--data" => options.data = data::from_workspace(value()?.into()),
            "--keep" => options.keep = Some(data::from_workspace(value()?.into())),
            "--questions" => {
                options.questions = match value()?.parse() {
                    Ok(number) if number > 0 => number,
                    _ => return Err("--questions needs a number above zero".to_owned()),
                };
            }
            part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
            other => match other.replace('_', "").parse() {
                Ok(number) => options.records.push(number),
                Err(_) => {
                    return Err(format!(
                        "{other}: the parts are {}; the options --keys, --zipf, --questions N, \
                         --data DIR, --keep DIR",
                        PARTS.join(", ")
                    ));
                }
            },
        }
    }
    if options.parts.is_empty() {
        options.parts = PARTS.map(str::to_owned).to_vec();
    }
    Ok(options)
}
