//! `stats`: how much of what is kept is still live, level by level.

use clap::Args;
use remora_host::Instant;
use remora_host::storage::sqlite::operator::LevelStats;
use serde_json::json;

use super::{bytes, counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::text::{cut, padded, width};
use crate::cli::visible;

/// Columns of a bar.
const BAR: usize = 24;
/// Columns of a key.
const KEY: usize = 40;
/// Milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

#[derive(Args, Debug)]
#[command(after_help = "\
Of --agent, or of all. Each record is counted as exactly one of live, expired,
superseded, deleted and kept apart; the gap is what is kept and not live.")]
pub(crate) struct StatsArgs {}

pub(super) fn run(context: &mut Context<'_>, _: &StatsArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "stats")?;
    let now = now();
    let levels = storage
        .operator(now)
        .stats(context.globals.agent.as_deref())?;
    if context.globals.json {
        super::json(context, &json!({ "levels": levels }))?;
        return Ok(Exit::Done);
    }
    let console = &mut context.console;
    let names: Vec<(String, &str)> = levels
        .iter()
        .map(|level| (visible::line(&level.agent), level.level.name()))
        .collect();
    let agents = names.iter().map(|(agent, _)| width(agent)).max();
    let levels_width = names.iter().map(|(_, level)| width(level)).max();
    for ((agent, name), level) in names.iter().zip(&levels) {
        console.line(&format!(
            "{}  {}  {}  {} of {} live, gap {}",
            padded(agent, agents.unwrap_or(0)),
            padded(name, levels_width.unwrap_or(0)),
            bar(level.live, level.all),
            level.live,
            level.all,
            level.gap,
        ))?;
        console.line(&format!("    {}", rest(level)))?;
        if let Some(oldest) = oldest(level, now) {
            console.line(&format!("    {oldest}"))?;
        }
    }
    let sum = |of: fn(&LevelStats) -> u64| levels.iter().map(of).fold(0, u64::saturating_add);
    console.line(&format!(
        "{} of {} live, a gap of {}, on {}, {} on disk.",
        sum(|level| level.live),
        counted(sum(|level| level.all), "record is", "records are"),
        sum(|level| level.gap),
        counted(count(levels.len()), "level", "levels"),
        bytes(sum(|level| level.file_bytes)),
    ))?;
    Ok(Exit::Done)
}

/// What is kept and not live, and how large it is.
fn rest(level: &LevelStats) -> String {
    let apart = level.pending.saturating_add(level.quarantined);
    format!(
        "expired {}, superseded {}, deleted {}, kept apart {apart}; words {} of {} live, file {}",
        level.expired,
        level.superseded,
        level.deleted,
        bytes(level.live_content_bytes),
        bytes(level.content_bytes),
        bytes(level.file_bytes),
    )
}

fn oldest(level: &LevelStats, now: Instant) -> Option<String> {
    let oldest = level.oldest_unconfirmed.as_ref()?;
    let days = now.millis().saturating_sub(oldest.since.millis()).max(0) / DAY;
    Some(format!(
        "longest unconfirmed: {}, {}",
        cut(&visible::line(&oldest.key), KEY),
        counted(u64::try_from(days).unwrap_or(0), "day", "days"),
    ))
}

/// The share of a whole. One of something is always seen, and one less than all.
fn bar(part: u64, whole: u64) -> String {
    let columns = u128::from(count(BAR));
    let full = u128::from(part)
        .saturating_mul(columns)
        .checked_div(u128::from(whole))
        .unwrap_or(0);
    let full = usize::try_from(full).unwrap_or(BAR).min(BAR);
    let full = if part > 0 { full.max(1) } else { full };
    format!(
        "{}{}",
        "█".repeat(full),
        "░".repeat(BAR.saturating_sub(full))
    )
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_its_share() {
        let full = |part, whole| bar(part, whole).chars().filter(|c| *c == '█').count();
        assert_eq!(full(0, 0), 0);
        assert_eq!(full(0, 9), 0);
        assert_eq!(full(1, 100_000), 1);
        assert_eq!(full(1, 2), BAR / 2);
        assert_eq!(full(99_999, 100_000), BAR - 1);
        assert_eq!(full(7, 7), BAR);
        assert_eq!(full(u64::MAX, u64::MAX), BAR);
        assert_eq!(bar(3, 7).chars().count(), BAR);
    }
}
