//! `digest`: what happened since, as plain text fit for a daily mail.

use clap::Args;
use remora_host::storage::sqlite::operator::{Change, DigestEntry};
use remora_host::{Level, can_flow_to};
use serde_json::json;

use super::span::Since;
use super::{now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::text::when;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora digest
  remora digest --since 1w --up-to internal | mail -s 'Remora' ada@example.org

Of --agent, or of all. It tells keys and sources, never what a memory says; but a key
can say much: --up-to keeps what is more sensitive out of a mail.")]
pub(crate) struct DigestArgs {
    /// From when on: so long ago (12h, 7d, 2w), or a day, or a moment
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "WHEN",
        default_value = "1d"
    )]
    since: Since,
    /// Leave out what is above this level
    #[arg(long, value_name = "LEVEL")]
    up_to: Option<Level>,
}

pub(super) fn run(context: &mut Context<'_>, args: &DigestArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "digest")?;
    let now = now();
    let since = args.since.moment(now);
    let mut entries = storage
        .operator(now)
        .digest(context.globals.agent.as_deref(), since)?;
    if let Some(most) = args.up_to {
        entries.retain(|entry| can_flow_to(entry.level, most));
    }
    if context.globals.json {
        let report = json!({ "since": since, "until": now, "entries": entries });
        super::json(context, &report)?;
        return Ok(Exit::Done);
    }
    let number = |change| {
        entries
            .iter()
            .filter(|entry| entry.change == change)
            .count()
    };
    let console = &mut context.console;
    let rarer: String = [Change::Superseded, Change::Accepted, Change::Restored]
        .into_iter()
        .filter(|change| number(*change) > 0)
        .map(|change| format!(", {} {}", number(change), name(change)))
        .collect();
    console.line(&format!(
        "{} saved, {} changed, {} deleted{rarer}, from {} to {}.",
        number(Change::Saved),
        number(Change::Changed),
        number(Change::Deleted),
        when(&since.to_string()),
        when(&now.to_string()),
    ))?;
    // By agent and level; within one, as it happened.
    let mut sorted: Vec<&DigestEntry> = entries.iter().collect();
    sorted.sort_by_key(|entry| (entry.agent.as_str(), place(entry.level)));
    let mut heading = None;
    for entry in sorted {
        if heading != Some((entry.agent.as_str(), entry.level)) {
            heading = Some((entry.agent.as_str(), entry.level));
            console.line("")?;
            console.line(&format!("{}, {}", visible::line(&entry.agent), entry.level))?;
        }
        console.line(&format!("  {}", told(entry)))?;
    }
    Ok(Exit::Done)
}

fn place(level: Level) -> usize {
    Level::ALL
        .iter()
        .position(|other| *other == level)
        .unwrap_or(usize::MAX)
}

fn name(change: Change) -> &'static str {
    match change {
        Change::Saved => "saved",
        Change::Changed => "changed",
        Change::Deleted => "deleted",
        Change::Superseded => "superseded",
        Change::Accepted => "accepted",
        Change::Restored => "restored",
        _ => "other",
    }
}

fn told(entry: &DigestEntry) -> String {
    let mut line = format!(
        "{}  {:<10}  {}  {}, by {}",
        when(&entry.at.to_string()),
        name(entry.change),
        visible::line(&entry.key),
        visible::line(&entry.origin),
        visible::line(&entry.session),
    );
    if entry.standing != "trusted" {
        line.push_str(", ");
        line.push_str(&visible::line(&entry.standing));
    }
    match &entry.source {
        Some(source) => line.push_str(&format!(", source: {}", visible::line(source))),
        None => line.push_str(", no source"),
    }
    line
}
