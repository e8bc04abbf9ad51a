//! The tools as commands: `save`, `get`, `search`, `list`, `delete`, `confirm`,
//! `history`, `status`.
//!
//! Each makes the tool's JSON arguments, calls it through the plugin, and prints
//! the answer: as it is with `--json`, and laid out for people without. People are
//! told of commands and options where the tool speaks of tools and arguments: see
//! [`words`].

use std::io;

use clap::Args;
use remora_host::storage::limits;
use remora_host::{Error, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::call::standard_input;
use super::console::Console;
use super::context::Context;
use super::failure::Exit;
use super::text::{self, Table, cut, fields, wrap};
use super::{visible, words};

/// Columns that a list gives to tags.
const TAGS_WIDTH: usize = 16;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora save deploy 'Deploys go out on Tuesdays.' --tag ops --source 'Ada'
  remora save notes/meeting - < meeting.md
  remora --taint internal save deploy 'Bo does hotfixes on Fridays.'

Save again under a key to change what it says: a new version is made. The level is
the session's. Content past 128 KiB, the most of one argument on some systems, goes
through standard input.")]
pub(crate) struct SaveArgs {
    /// What to save it under: at most 256 bytes
    pub(crate) key: String,
    /// What to remember: at most 256 KiB, kept byte for byte; - reads standard
    /// input
    #[arg(allow_hyphen_values = true)]
    pub(crate) content: String,
    /// A label to filter by; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Where it comes from: a person, a URL, a file
    #[arg(long)]
    source: Option<String>,
    /// When it stops being served: a day, read as its end in UTC, or a moment with
    /// its offset
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "WHEN",
        conflicts_with = "expires_in"
    )]
    expires_at: Option<String>,
    /// How long from now it is served: 12h, 7d, 2w
    #[arg(long, allow_hyphen_values = true, value_name = "SPAN")]
    expires_in: Option<String>,
    /// The key of another memory whose place it takes, for good; may be given again
    #[arg(long, value_name = "KEY")]
    supersedes: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Its words stay, and its age starts anew. Reading is no confirmation. What a lower level
holds is confirmed at the session's own level, and seen from there up.")]
pub(crate) struct ConfirmArgs {
    /// The key it was saved under
    key: String,
    /// How it is known to be true: a person, a URL, a file
    #[arg(long)]
    source: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The key it was saved under
    key: String,
}

#[derive(Args, Debug)]
#[command(after_help = "\
On a terminal the content comes under a header with its level, origin and age. Through
a pipe it comes alone, byte for byte as it was saved.")]
pub(crate) struct GetArgs {
    /// The key it was saved under
    key: String,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora search when do we deploy
  remora search 'rm -rf' --max-results 3
  remora search -- -band              a word that begins with a hyphen")]
pub(crate) struct SearchArgs {
    /// Plain words or a whole question; quotes prefer what has them side by side, and
    /// there is no other syntax
    #[arg(required = true)]
    words: Vec<String>,
    /// The most results: 1 to 100 [default: 10]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 100))]
    max_results: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only memories with exactly this tag; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Whether any of the tags is enough or all must be there
    #[arg(long = "match", value_name = "HOW", value_parser = ["any", "all"])]
    matching: Option<String>,
    /// Where the page begins, from the page before
    #[arg(long)]
    cursor: Option<String>,
    /// The most memories: 1 to 200 [default: 50]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 200))]
    limit: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The key it was saved under
    key: String,
    /// Hide the versions of lower levels as well, from this level up
    #[arg(long)]
    hide_lower: bool,
}

/// How many are asked for. The tool checks it as well, in its own words.
fn whole_number(text: &str, most: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("{text} is not a whole number from 1 to {most}"))
}

/// A record in any answer, as far as people are shown it.
#[derive(Debug, Deserialize)]
pub(super) struct Shown {
    pub(super) key: String,
    pub(super) content: String,
    #[serde(default)]
    pub(super) content_truncated: bool,
    pub(super) classification: String,
    #[serde(default)]
    tags: Vec<String>,
    origin: String,
    standing: String,
    source: Option<String>,
    version: u64,
    created_at: String,
    updated_at: String,
    confirmed_at: Option<String>,
    expires_at: Option<String>,
    age_days: u64,
    snippet: Option<String>,
    conflict: Option<Conflict>,
}

#[derive(Debug, Deserialize)]
struct Conflict {
    classification: String,
    origin: String,
}

pub(crate) fn save(context: &mut Context<'_>, args: SaveArgs) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Answer {
        outcome: String,
        key: String,
        classification: String,
        origin: String,
        standing: String,
        version: u64,
    }
    let content = if args.content == "-" {
        standard_input("content", limits::CONTENT_BYTES)?
    } else {
        args.content
    };
    let mut arguments = Map::new();
    arguments.insert("key".to_owned(), args.key.into());
    arguments.insert("content".to_owned(), content.into());
    if !args.tags.is_empty() {
        arguments.insert("tags".to_owned(), args.tags.into());
    }
    if let Some(source) = args.source {
        arguments.insert("source".to_owned(), source.into());
    }
    if let Some(at) = args.expires_at {
        arguments.insert("expires_at".to_owned(), at.into());
    }
    if let Some(within) = args.expires_in {
        arguments.insert("expires_in".to_owned(), within.into());
    }
    if !args.supersedes.is_empty() {
        arguments.insert("supersedes".to_owned(), args.supersedes.into());
    }
    answer(
        context,
        "memory_save",
        arguments,
        |console, answer: Answer| {
            // What waits or is kept apart takes no version's place.
            let version = match answer.standing.as_str() {
                "trusted" => format!(", version {}", answer.version),
                _ => String::new(),
            };
            console.line(&format!(
                "{}: {}{version} at {}, origin {}",
                visible::line(&answer.key),
                visible::line(&answer.outcome),
                visible::line(&answer.classification),
                visible::line(&answer.origin),
            ))?;
            Ok(())
        },
    )
}

pub(crate) fn get(context: &mut Context<'_>, args: GetArgs) -> anyhow::Result<Exit> {
    let json = context.globals.json;
    let text = context.invoke("memory_get", &json!({ "key": args.key }))?;
    let value: Value = parsed("memory_get", &text)?;
    let found = value.get("found").and_then(Value::as_bool) == Some(true);
    let exit = if found { Exit::Done } else { Exit::NotFound };
    if json {
        context.console.line(&text)?;
        return Ok(exit);
    }
    if !found {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "There is no memory \"{}\" that this session can see",
                args.key.escape_debug()
            ),
            "",
            "`remora search` and `remora list` show those that it can",
        )
        .into());
    }
    let shown: Shown = parsed("memory_get", &text)?;
    if context.console.people {
        header(&mut context.console, &shown)?;
        context.console.line("")?;
        let content = visible::block(&shown.content);
        context
            .console
            .line(content.strip_suffix('\n').unwrap_or(&content))?;
    } else {
        context.console.bytes(shown.content.as_bytes())?;
        if let Some(conflict) = &shown.conflict {
            context.console.note(&beneath(conflict))?;
        }
    }
    notices(context, &value)?;
    Ok(exit)
}

pub(crate) fn search(context: &mut Context<'_>, args: SearchArgs) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Answer {
        results: Vec<Shown>,
        truncated: bool,
    }
    let mut arguments = Map::new();
    arguments.insert("query".to_owned(), args.words.join(" ").into());
    if let Some(most) = args.max_results {
        arguments.insert("max_results".to_owned(), most.into());
    }
    answer(
        context,
        "memory_search",
        arguments,
        |console, answer: Answer| {
            for (i, shown) in answer.results.iter().enumerate() {
                if i > 0 {
                    console.line("")?;
                }
                console.line(&format!(
                    "{}  {}",
                    visible::line(&shown.key),
                    provenance(shown)
                ))?;
                let words = shown.snippet.as_ref().unwrap_or(&shown.content);
                for line in wrap(&visible::line(words), console.width.saturating_sub(2)) {
                    console.line(&format!("  {line}"))?;
                }
                if let Some(conflict) = &shown.conflict {
                    console.line(&format!("  {}", beneath(conflict)))?;
                }
            }
            if answer.results.is_empty() {
                console.remark("Nothing was found.")?;
            }
            if answer.truncated {
                console.remark("There is more: the answer was cut because it was large.")?;
            }
            Ok(())
        },
    )
}

pub(crate) fn list(context: &mut Context<'_>, args: ListArgs) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Answer {
        memories: Vec<Shown>,
        next_cursor: Option<String>,
    }
    let mut arguments = Map::new();
    if !args.tags.is_empty() {
        arguments.insert("tags".to_owned(), args.tags.into());
    }
    if let Some(matching) = args.matching {
        arguments.insert("match".to_owned(), matching.into());
    }
    if let Some(cursor) = args.cursor {
        arguments.insert("cursor".to_owned(), cursor.into());
    }
    if let Some(limit) = args.limit {
        arguments.insert("limit".to_owned(), limit.into());
    }
    answer(
        context,
        "memory_list",
        arguments,
        |console, answer: Answer| {
            let tagged = answer.memories.iter().any(|shown| !shown.tags.is_empty());
            let mut table = Table::new(if tagged {
                &["KEY", "LEVEL", "ORIGIN", "AGE", "TAGS", "CONTENT"]
            } else {
                &["KEY", "LEVEL", "ORIGIN", "AGE", "CONTENT"]
            });
            for shown in &answer.memories {
                let mut row = vec![
                    visible::line(&shown.key),
                    visible::line(&shown.classification),
                    format!(
                        "{}{}",
                        visible::line(&shown.origin),
                        if shown.conflict.is_some() { " !" } else { "" }
                    ),
                    age(shown.age_days),
                ];
                if tagged {
                    row.push(cut(&visible::line(&shown.tags.join(", ")), TAGS_WIDTH));
                }
                row.push(visible::line(&shown.content));
                table.row(row);
            }
            table.print(console)?;
            if answer.memories.iter().any(|shown| shown.conflict.is_some()) {
                console.note(
                    "! hides a more trusted version at a lower level: `remora get KEY` says where.",
                )?;
            }
            if answer.memories.is_empty() {
                console
                    .remark("There are no memories that match and that this session can see.")?;
            }
            if let Some(cursor) = answer.next_cursor {
                console.remark(&format!(
                    "There is more: add --cursor {}",
                    visible::line(&cursor)
                ))?;
            }
            Ok(())
        },
    )
}

pub(crate) fn delete(context: &mut Context<'_>, args: DeleteArgs) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Answer {
        key: String,
        classification: String,
        still_visible: Option<String>,
    }
    let mut arguments = Map::new();
    arguments.insert("key".to_owned(), args.key.into());
    if args.hide_lower {
        arguments.insert("hide_lower".to_owned(), true.into());
    }
    answer(
        context,
        "memory_delete",
        arguments,
        |console, answer: Answer| {
            let mut line = format!(
                "{}: deleted at {}",
                visible::line(&answer.key),
                visible::line(&answer.classification)
            );
            if let Some(level) = answer.still_visible {
                line.push_str(&format!(
                    "; its version at {} is visible now",
                    visible::line(&level)
                ));
            }
            console.line(&line)?;
            Ok(())
        },
    )
}

pub(crate) fn confirm(context: &mut Context<'_>, args: ConfirmArgs) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Answer {
        key: String,
        classification: String,
        confirmed_at: String,
    }
    let mut arguments = Map::new();
    arguments.insert("key".to_owned(), args.key.into());
    if let Some(source) = args.source {
        arguments.insert("source".to_owned(), source.into());
    }
    answer(
        context,
        "memory_confirm",
        arguments,
        |console, answer: Answer| {
            console.line(&format!(
                "{}: the memory of {} is confirmed, {}",
                visible::line(&answer.key),
                visible::line(&answer.classification),
                when(&answer.confirmed_at),
            ))?;
            Ok(())
        },
    )
}

pub(crate) fn history(context: &mut Context<'_>, args: HistoryArgs) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Version {
        #[serde(flatten)]
        shown: Shown,
        current: bool,
        superseded_at: Option<String>,
        superseded_by: Option<String>,
        supersedes: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Answer {
        key: String,
        versions: Vec<Version>,
        truncated: bool,
    }
    let json = context.globals.json;
    let text = context.invoke("memory_history", &json!({ "key": args.key }))?;
    let answer: Answer = parsed("memory_history", &text)?;
    let exit = if answer.versions.is_empty() {
        Exit::NotFound
    } else {
        Exit::Done
    };
    if json {
        context.console.line(&text)?;
        return Ok(exit);
    }
    let console = &mut context.console;
    for (i, version) in answer.versions.iter().enumerate() {
        if i > 0 {
            console.line("")?;
        }
        let shown = &version.shown;
        console.line(&format!(
            "version {}, {}  {}",
            shown.version,
            when(&shown.updated_at),
            provenance(shown)
        ))?;
        let state = match (&version.superseded_at, &version.superseded_by) {
            _ if version.current => "holds now".to_owned(),
            (Some(at), Some(by)) if *by != shown.key => {
                format!("superseded {} by {}", when(at), visible::line(by))
            }
            (Some(at), _) => format!("superseded {}", when(at)),
            (None, _) => "hidden by another level's".to_owned(),
        };
        let mut lines = vec![("state", state)];
        if let Some(confirmed) = &shown.confirmed_at {
            lines.push(("confirmed", when(confirmed)));
        }
        if let Some(source) = &shown.source {
            lines.push(("source", visible::line(source)));
        }
        if !version.supersedes.is_empty() {
            let keys = version.supersedes.join(", ");
            lines.push(("supersedes", visible::line(&keys)));
        }
        fields(console, &lines)?;
        for line in wrap(
            &visible::line(&shown.content),
            console.width.saturating_sub(2),
        ) {
            console.line(&format!("  {line}"))?;
        }
    }
    if answer.versions.is_empty() {
        let key = answer.key.escape_debug();
        console.remark(&format!(
            "Nothing that this session can see was saved under \"{key}\"."
        ))?;
    }
    if answer.truncated {
        console.remark("There are older versions: the answer was cut because it was large.")?;
    }
    notices(context, &parsed("memory_history", &text)?)?;
    Ok(exit)
}

pub(crate) fn status(context: &mut Context<'_>) -> anyhow::Result<Exit> {
    #[derive(Deserialize)]
    struct Tag {
        tag: String,
        count: u64,
    }
    #[derive(Deserialize)]
    struct Shelf {
        classification: String,
        live: u64,
        pending: u64,
        quarantined: u64,
        unconfirmed: u64,
        tags: Vec<Tag>,
    }
    #[derive(Deserialize)]
    struct Answer {
        session: String,
        classification: String,
        clearance: String,
        origin: String,
        shelves: Vec<Shelf>,
    }
    let session = context.session()?;
    let plugin = context.plugin()?;
    let text = plugin.invoke(&session, "memory_status", "{}")?;
    let mut value: Value = parsed("memory_status", &text)?;
    let store = session.store().location();
    let observed = session.state()?.observed;
    if context.globals.json {
        // What the plugin does not know and the operator asks for first.
        if let Value::Object(answer) = &mut value {
            answer.insert("agent".to_owned(), context.globals.agent().into());
            answer.insert("store".to_owned(), store.into());
            answer.insert("read_only".to_owned(), observed.is_some().into());
        }
        context.console.line(&value.to_string())?;
        return Ok(Exit::Done);
    }
    let answer: Answer = parsed("memory_status", &text)?;
    let kept = if context.globals.session.is_some() {
        String::new()
    } else {
        ", ends with this command".to_owned()
    };
    let mut lines = vec![
        ("store", visible::line(&store)),
        ("agent", visible::line(context.globals.agent())),
        (
            "session",
            format!("{}{kept}", visible::line(&answer.session)),
        ),
        ("level", visible::line(&answer.classification)),
        ("clearance", visible::line(&answer.clearance)),
        ("origin", visible::line(&answer.origin)),
    ];
    if let Some(observed) = observed {
        lines.push(("observed", super::session::writes_no_more(observed)));
    }
    fields(&mut context.console, &lines)?;
    context.console.line("")?;
    let mut table = Table::new(&[
        "LEVEL",
        "LIVE",
        "UNCONFIRMED",
        "PENDING",
        "QUARANTINED",
        "TAGS",
    ]);
    for shelf in &answer.shelves {
        let tags: Vec<String> = shelf
            .tags
            .iter()
            .map(|tag| format!("{} ({})", tag.tag, tag.count))
            .collect();
        table.row(vec![
            visible::line(&shelf.classification),
            shelf.live.to_string(),
            shelf.unconfirmed.to_string(),
            shelf.pending.to_string(),
            shelf.quarantined.to_string(),
            visible::line(&tags.join(", ")),
        ]);
    }
    table.print(&mut context.console)?;
    notices(context, &value)?;
    Ok(Exit::Done)
}

/// Calls a tool and prints its answer: as it is with `--json`, and otherwise as
/// `print` lays it out, with the notices behind it.
fn answer<T: DeserializeOwned>(
    context: &mut Context<'_>,
    tool: &str,
    arguments: Map<String, Value>,
    print: impl FnOnce(&mut Console<'_>, T) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    let text = context.invoke(tool, &Value::Object(arguments))?;
    if context.globals.json {
        context.console.line(&text)?;
        return Ok(Exit::Done);
    }
    print(&mut context.console, parsed(tool, &text)?)?;
    notices(context, &parsed(tool, &text)?)?;
    Ok(Exit::Done)
}

fn parsed<T: DeserializeOwned>(tool: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(
            ErrorKind::Plugin,
            format!("The answer of {tool} is not understood: {error}"),
            "",
            "Use `remora call` to see it as it is",
        )
    })
}

pub(super) fn notices(context: &mut Context<'_>, answer: &Value) -> io::Result<()> {
    let notices = answer.get("notices").and_then(Value::as_array);
    for notice in notices.into_iter().flatten().filter_map(Value::as_str) {
        context.console.note(&words::of_the_command_line(notice))?;
    }
    Ok(())
}

/// What a person should know before believing a record.
pub(super) fn header(console: &mut Console<'_>, shown: &Shown) -> io::Result<()> {
    console.line(&format!(
        "{}  {}",
        visible::line(&shown.key),
        provenance(shown)
    ))?;
    if let Some(conflict) = &shown.conflict {
        console.line(&beneath(conflict))?;
    }
    let saved = if shown.version > 1 {
        format!(
            "version {}, {}; first saved {}",
            shown.version,
            when(&shown.updated_at),
            when(&shown.created_at)
        )
    } else {
        when(&shown.updated_at)
    };
    let mut lines = vec![("saved", saved)];
    if let Some(confirmed) = &shown.confirmed_at {
        lines.push(("confirmed", when(confirmed)));
    }
    if let Some(expires) = &shown.expires_at {
        lines.push(("expires", when(expires)));
    }
    if let Some(source) = &shown.source {
        lines.push(("source", visible::line(source)));
    }
    if !shown.tags.is_empty() {
        lines.push(("tags", visible::line(&shown.tags.join(", "))));
    }
    fields(console, &lines)
}

/// Level, origin and age on one line.
fn provenance(shown: &Shown) -> String {
    let mut line = format!(
        "{} · {} · {}",
        visible::line(&shown.classification),
        visible::line(&shown.origin),
        age(shown.age_days)
    );
    if shown.standing != "trusted" {
        line.push_str(" · ");
        line.push_str(&visible::line(&shown.standing));
    }
    line
}

fn beneath(conflict: &Conflict) -> String {
    format!(
        "hides a more trusted version at {}, origin {}",
        visible::line(&conflict.classification),
        visible::line(&conflict.origin)
    )
}

fn when(date: &str) -> String {
    text::when(&visible::line(date))
}

fn age(days: u64) -> String {
    match days {
        0 => "today".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_its_range_is_refused_with_the_range() {
        assert_eq!(whole_number("200", 200), Ok(200));
        for text in ["0", "201", "abc", "-1", "1.5", ""] {
            assert_eq!(
                whole_number(text, 200),
                Err(format!("{text} is not a whole number from 1 to 200"))
            );
        }
    }

    #[test]
    fn ages_read_well() {
        assert_eq!([age(0), age(1), age(400)], ["today", "1 day", "400 days"]);
    }
}
