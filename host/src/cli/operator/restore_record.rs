//! `restore-record`: a deletion is taken back.

use clap::Args;

use super::{now, storage};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
`remora digest --json` and `remora audit` name the ids. What something newer took the
place of does not come back, nor does what was purged. What waited for a person and was
refused or deleted waits again.")]
pub(crate) struct RestoreRecordArgs {
    /// The record's id: 32 hexadecimal digits, or the first ones where they name no other
    id: String,
}

pub(super) fn run(context: &mut Context<'_>, args: &RestoreRecordArgs) -> anyhow::Result<Exit> {
    let storage = storage(context, "restore-record")?;
    let restored = storage
        .operator(now())
        .undelete(context.globals.agent.as_deref(), args.id.trim())?;
    if context.globals.json {
        super::json(context, &restored)?;
        return Ok(Exit::Done);
    }
    let state = if restored.standing == "trusted" {
        "is live again"
    } else {
        "waits for a person again"
    };
    context.console.line(&format!(
        "{}: version {} {state} at {}, for the agent {}",
        visible::line(&restored.key),
        restored.version,
        restored.level,
        visible::line(&restored.agent),
    ))?;
    if restored.was_tombstone {
        context.console.note(
            "it had hidden versions of lower levels while it was deleted; it hides them still, \
             now because it is live.",
        )?;
    }
    Ok(Exit::Done)
}
