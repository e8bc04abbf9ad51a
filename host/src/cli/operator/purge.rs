//! `purge`: words are erased for good.

use std::time::Duration;

use clap::Args;
use remora_host::storage::sqlite::operator::{LevelPurged, Purge};
use remora_host::{Error, Level};
use serde_json::json;
use unicode_normalization::UnicodeNormalization as _;

use super::progress::Line;
use super::span::Span;
use super::{agreed, can_ask, counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora purge salary
  remora purge salary --level confidential --yes
  remora purge --everything-from ticket-4711

Every version goes, and every trace in the store's files; then no file of the store holds
the words. Backups and exports do: restoring one does not bring them back, but delete
those that must not hold them. Where it says that somebody still reads an older state,
run it again once they have gone, or give it longer with --wait (30s, 5m).")]
pub(crate) struct PurgeArgs {
    /// Erase what was saved under exactly this key
    #[arg(required_unless_present = "everything_from")]
    key: Option<String>,
    /// Only from this level
    #[arg(long, value_name = "LEVEL", requires = "key")]
    level: Option<Level>,
    /// Erase all that a session saved
    #[arg(long, value_name = "SESSION", conflicts_with = "key")]
    everything_from: Option<String>,
    /// Under the key of every agent, where there are several
    #[arg(long, requires = "key")]
    all_agents: bool,
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// How long to wait for those who still read an older state
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "SPAN",
        default_value = "1m"
    )]
    wait: Span,
}

pub(super) fn run(context: &mut Context<'_>, args: PurgeArgs) -> anyhow::Result<Exit> {
    // --session is what everything-from might be mistaken for.
    let storage = storage(context, "purge")?;
    let operator = storage.operator(now());
    let agent = context.globals.agent.clone();
    let wait = args.wait.length().max(Duration::from_millis(1));
    let (purge, what) = match (args.key, args.everything_from) {
        (_, Some(session)) => {
            let what = format!("everything that the session \"{}\" saved", shown(&session));
            (Purge::everything_from(session), what)
        }
        (key, None) => {
            // As it was saved: however a keyboard or a file system writes it.
            let key: String = key.unwrap_or_default().trim().nfc().collect();
            let agents = operator.agents()?;
            if agent.is_none() && !args.all_agents && agents.len() > 1 {
                return Err(Error::invalid(
                    "There are several agents in this store, and a key may be any one's",
                    format!("They are {}", shown(&agents.join(", "))),
                    "Name one with --agent, or say --all-agents",
                )
                .into());
            }
            let place = match args.level {
                Some(level) => format!("on {level}"),
                None => "on every level".to_owned(),
            };
            let whose = match &agent {
                Some(agent) => format!("of the agent \"{}\"", shown(agent)),
                None if agents.len() > 1 => "of every agent".to_owned(),
                None => format!("of the agent \"{}\"", shown(&agents.join(", "))),
            };
            let what = format!("every version of \"{}\" {place} {whose}", shown(&key));
            let purge = match args.level {
                Some(level) => Purge::key_at(key, level),
                None => Purge::key(key),
            };
            (purge, what)
        }
    };
    if !args.yes {
        if !can_ask() {
            return Err(Error::invalid(
                "Nobody can be asked whether to erase: there is no terminal",
                "A purge erases for good, so it asks first",
                "Add --yes where it is certain",
            )
            .into());
        }
        if !agreed(context, &format!("Erase {what}, for good?"))? {
            return Err(Error::refused("Nothing was erased", "", "").into());
        }
    }
    let mut line = Line::new();
    let levels = operator.purge(agent.as_deref(), &purge, wait, &mut |progress| {
        line.tell(&progress);
    })?;
    drop(line);
    if context.globals.json {
        super::json(context, &json!({ "levels": levels }))?;
        return Ok(Exit::Done);
    }
    let sum = |of: fn(&LevelPurged) -> u64| levels.iter().map(of).fold(0, u64::saturating_add);
    let places: Vec<String> = levels
        .iter()
        .filter(|level| level.records > 0)
        .map(|level| {
            let agent = visible::line(&level.agent);
            format!("{agent} {} {}", level.level, level.records)
        })
        .collect();
    let (records, stamps, usage) = (
        sum(|level| level.records),
        sum(|level| level.stamps),
        sum(|level| level.usage),
    );
    let said = if records == 0 && stamps == 0 && usage == 0 {
        "Nothing of it was left to erase: it was purged or pruned before. No file of the store \
         holds its words."
            .to_owned()
    } else {
        format!(
            "Erased {}{}, {} and {} for good. No file of the store holds the words of these any \
             longer.",
            counted(records, "record", "records"),
            if places.is_empty() {
                String::new()
            } else {
                format!(" ({})", places.join(", "))
            },
            counted(stamps, "confirmation", "confirmations"),
            counted(usage, "count of use", "counts of use"),
        )
    };
    context.console.line(&said)?;
    context.console.note(
        "backups and exports that were made before still hold them. A restore erases them \
         again, as long as this store is there.",
    )?;
    Ok(Exit::Done)
}

fn shown(text: &str) -> String {
    visible::line(text)
}
