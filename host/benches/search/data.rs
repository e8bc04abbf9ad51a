//! The retrieval sets: texts, questions, and which texts answer them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// The environment variable that names the folder.
const VARIABLE: &str = "REMORA_RETRIEVAL";

/// Texts that are stored together, and the questions about them.
pub(crate) struct Set {
    pub(crate) texts: Vec<Text>,
    pub(crate) questions: Vec<Question>,
}

pub(crate) struct Text {
    /// In the dialogues `D1:3`: the session, and the turn in it.
    pub(crate) id: String,
    /// In the dialogues `1:56 pm on 8 May, 2023`.
    pub(crate) date: Option<String>,
    pub(crate) text: String,
}

pub(crate) struct Question {
    pub(crate) text: String,
    /// The places of the texts that answer it.
    pub(crate) relevant: Vec<usize>,
}

#[derive(Deserialize)]
struct Line {
    store: Option<String>,
    id: Option<Value>,
    date: Option<String>,
    text: Option<String>,
    query: Option<String>,
    #[serde(default)]
    relevant: Vec<Value>,
}

/// Where the sets are looked for, unless an argument says otherwise.
pub(crate) fn folder() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
    from_workspace(named.map_or_else(|| "../shared/data/retrieval".into(), PathBuf::from))
}

/// A path as whoever typed it meant it: cargo runs benches in the crate's folder.
pub(crate) fn from_workspace(path: PathBuf) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().unwrap_or(crate_folder).join(path)
}

/// Says what is missing, where it was looked for, and how to give it.
pub(crate) fn missing(folder: &Path, names: &[&str]) -> String {
    let files: Vec<String> = names.iter().map(|name| format!("{name}.jsonl")).collect();
    format!(
        "Missing in {}: {}. Name the folder of the retrieval sets with --data DIR or {VARIABLE}=DIR",
        folder.display(),
        files.join(", ")
    )
}

/// The sets of a file, by the names of their stores in the order in which these
/// come. None where there is no such file.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Vec<(String, Set)>> {
    let path = folder.join(format!("{name}.jsonl"));
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        file => file.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    };
    let mut sets: Vec<(String, Set)> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    let mut questions = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let broken = |why: &str| -> ! { panic!("{}, line {number}: {why}", path.display()) };
        let line = line.unwrap_or_else(|error| broken(&error.to_string()));
        if line.trim().is_empty() {
            continue;
        }
        let line: Line =
            serde_json::from_str(&line).unwrap_or_else(|error| broken(&error.to_string()));
        let store = line.store.unwrap_or_default();
        let at = sets.iter().position(|(known, _)| *known == store);
        let at = at.unwrap_or_else(|| {
            let set = Set {
                texts: Vec::new(),
                questions: Vec::new(),
            };
            sets.push((store.clone(), set));
            sets.len() - 1
        });
        if let Some(text) = line.text {
            let id = line.id.as_ref().map(name_of).unwrap_or_default();
            let texts = &mut sets[at].1.texts;
            places.insert((store, id.clone()), texts.len());
            texts.push(Text {
                id,
                date: line.date,
                text,
            });
        } else if let Some(query) = line.query {
            questions.push((number, at, query, line.relevant));
        }
    }
    // A question may come before the text that answers it.
    for (number, at, text, relevant) in questions {
        let (store, set) = &mut sets[at];
        let relevant = relevant.iter().map(|id| {
            let id = name_of(id);
            let place = places.get(&(store.clone(), id.clone())).copied();
            place.unwrap_or_else(|| panic!("{}, line {number}: no text {id}", path.display()))
        });
        let mut relevant: Vec<usize> = relevant.collect();
        relevant.sort_unstable();
        relevant.dedup();
        assert!(
            !relevant.is_empty(),
            "{}, line {number}: nothing answers it",
            path.display()
        );
        set.questions.push(Question { text, relevant });
    }
    Some(sets)
}

/// Ids are numbers in some sets, texts in others.
fn name_of(id: &Value) -> String {
    match id {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
