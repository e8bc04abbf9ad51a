//! `prune`: what has had its time goes.

use clap::Args;
use remora_host::storage::sqlite::operator::{LevelPruned, Prune};
use serde_json::json;

use super::progress::Line;
use super::span::Span;
use super::{bytes, counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::text::Table;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Of --agent, or of all. Expired memories go at once: nobody could see them anyway. The
file does not shrink; the room is used again. Words are erased for good by `purge`.")]
pub(crate) struct PruneArgs {
    /// Only count what would go
    #[arg(long)]
    dry_run: bool,
    /// How long a superseded version stays in history
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "SPAN",
        default_value = "180d"
    )]
    superseded_after: Span,
    /// How long a deletion can be taken back
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "SPAN",
        default_value = "180d"
    )]
    deleted_after: Span,
}

pub(super) fn run(context: &mut Context<'_>, args: &PruneArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "prune")?;
    let prune = Prune::default()
        .dry_run(args.dry_run)
        .superseded_after(args.superseded_after.length())
        .deleted_after(args.deleted_after.length());
    let mut line = Line::new();
    let levels = storage.operator(now()).prune(
        context.globals.agent.as_deref(),
        &prune,
        &mut |progress| line.tell(&progress),
    )?;
    drop(line);
    if context.globals.json {
        super::json(
            context,
            &json!({ "dry_run": args.dry_run, "levels": levels }),
        )?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        "AGENT",
        "LEVEL",
        "EXPIRED",
        "SUPERSEDED",
        "DELETED",
        "STRIPPED",
        "SIZE",
    ]);
    for level in &levels {
        table.row(vec![
            visible::line(&level.agent),
            level.level.to_string(),
            level.expired.to_string(),
            level.superseded.to_string(),
            level.deleted.to_string(),
            level.stripped.to_string(),
            bytes(level.content_bytes),
        ]);
    }
    table.print(&mut context.console)?;
    let sum = |of: fn(&LevelPruned) -> u64| levels.iter().map(of).fold(0, u64::saturating_add);
    let (removed, size) = (
        counted(sum(LevelPruned::removed), "record", "records"),
        bytes(sum(|level| level.content_bytes)),
    );
    context.console.line(&if args.dry_run {
        format!("A prune would remove {removed}, {size}. Nothing was changed.")
    } else {
        format!("Pruned {removed}, {size}.")
    })?;
    Ok(Exit::Done)
}
