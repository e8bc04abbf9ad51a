//! `context`: the memories that matter most, as text for a prompt.

use clap::Args;
use remora_host::ContextOptions;
use serde_json::json;

use super::context::Context;
use super::failure::Exit;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora context
  remora --session work context --budget 500 --query 'the next deploy' --tag ops

What answers the query comes first, then what carries one of the tags, then rules,
personas, preferences and projects, then what is most used; each whole or not at all,
with its dates, source and origin. A token is counted as three bytes. A prompt can take
it as it is: it says that the memories are data.")]
pub(crate) struct ContextArgs {
    /// The most tokens: 50 to 20000 [default: 1000]
    #[arg(long, value_name = "N")]
    budget: Option<u32>,
    /// What the conversation is about
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,
    /// Memories with this tag come next; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

pub(crate) fn run(context: &mut Context<'_>, args: ContextArgs) -> anyhow::Result<Exit> {
    let mut options = ContextOptions::default().tags(args.tags);
    if let Some(budget) = args.budget {
        options = options.budget(budget);
    }
    if let Some(query) = args.query {
        options = options.query(query);
    }
    let session = context.session()?;
    let text = context.plugin()?.context(&session, &options)?;
    if context.globals.json {
        context
            .console
            .line(&json!({ "context": text }).to_string())?;
    } else {
        context.console.bytes(text.as_bytes())?;
    }
    Ok(Exit::Done)
}
