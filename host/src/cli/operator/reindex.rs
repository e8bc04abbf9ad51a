//! `reindex`: the index is built anew.

use clap::Args;

use super::progress::Line;
use super::{counted, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::text::Table;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Of --agent, or of all. Needed where `verify` finds that an index does not hold just the
words of its records. Nothing that is kept changes. While a level is indexed, searches
go on and saves on it wait.")]
pub(crate) struct ReindexArgs {}

pub(super) fn run(context: &mut Context<'_>, _: &ReindexArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "reindex")?;
    let mut line = Line::new();
    let levels =
        storage
            .operator(now())
            .reindex(context.globals.agent.as_deref(), &mut |progress| {
                line.tell(&progress);
            })?;
    drop(line);
    if context.globals.json {
        super::json(context, &serde_json::json!({ "levels": levels }))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["AGENT", "LEVEL", "INDEXED"]);
    for level in &levels {
        table.row(vec![
            visible::line(&level.agent),
            level.level.to_string(),
            level.records.to_string(),
        ]);
    }
    table.print(&mut context.console)?;
    let records = levels
        .iter()
        .fold(0_u64, |sum, level| sum.saturating_add(level.records));
    let files = u64::try_from(levels.len()).unwrap_or(u64::MAX);
    context.console.line(&format!(
        "Indexed {} of {} anew.",
        counted(records, "record", "records"),
        counted(files, "level", "levels")
    ))?;
    Ok(Exit::Done)
}
