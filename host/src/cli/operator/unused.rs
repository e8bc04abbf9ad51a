//! `unused`: live memories that nobody has used for long.

use clap::Args;
use serde_json::json;

use super::span::Span;
use super::{bytes, counted, day, now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::text::Table;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Of --agent, or of all. They are candidates for deletion, and nothing is deleted: use
`remora delete KEY` at the level where one stands.")]
pub(crate) struct UnusedArgs {
    /// Neither saved, used nor confirmed for so long: 180d, 26w
    #[arg(
        long = "for",
        allow_hyphen_values = true,
        value_name = "SPAN",
        default_value = "180d"
    )]
    span: Span,
}

pub(super) fn run(context: &mut Context<'_>, args: &UnusedArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "unused")?;
    let unused = storage
        .operator(now())
        .unused(context.globals.agent.as_deref(), args.span.length())?;
    if context.globals.json {
        super::json(context, &json!({ "memories": unused }))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        "AGENT",
        "LEVEL",
        "KEY",
        "SAVED",
        "CONFIRMED",
        "USED",
        "USES",
        "SIZE",
    ]);
    let or_never = |at: Option<_>| at.map_or_else(|| "never".to_owned(), day);
    for memory in &unused {
        table.row(vec![
            visible::line(&memory.agent),
            memory.level.to_string(),
            visible::line(&memory.key),
            day(memory.saved_at),
            or_never(memory.confirmed_at),
            or_never(memory.last_used_at),
            memory.uses.to_string(),
            bytes(memory.content_bytes),
        ]);
    }
    table.print(&mut context.console)?;
    let number = u64::try_from(unused.len()).unwrap_or(u64::MAX);
    context.console.line(&format!(
        "{} neither used nor confirmed for that long.",
        counted(number, "live memory was", "live memories were"),
    ))?;
    Ok(Exit::Done)
}
