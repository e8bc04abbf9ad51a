//! `tools`, `spine` and `component`: what the plugin is, without a store.

use std::path::PathBuf;

use clap::Args;
use remora_host::{EMBEDDED_COMPONENT, Error};
use serde_json::json;

use super::context::Context;
use super::failure::Exit;

#[derive(Args, Debug)]
pub(crate) struct ComponentArgs {
    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What a model is told of the tools: what the server answers to `tools/list`.
pub(crate) fn tools(context: &mut Context<'_>) -> anyhow::Result<Exit> {
    let tools = crate::mcp::tools(&*context.plugin()?)?;
    context
        .console
        .line(&serde_json::to_string_pretty(&tools)?)?;
    Ok(Exit::Done)
}

/// The text for a system prompt.
pub(crate) fn spine(context: &mut Context<'_>) -> anyhow::Result<Exit> {
    let text = context.plugin()?.instructions()?;
    if context.globals.json {
        context
            .console
            .line(&json!({ "instructions": text }).to_string())?;
    } else {
        context.console.line(text.trim_end())?;
    }
    Ok(Exit::Done)
}

/// The embedded component, to a file or through a pipe.
pub(crate) fn component(context: &mut Context<'_>, args: ComponentArgs) -> anyhow::Result<Exit> {
    let Some(file) = args.output else {
        if context.console.people {
            return Err(Error::invalid(
                "A component is binary, and standard output is a terminal",
                "It goes to a file or through a pipe",
                "Use `remora component -o remora.wasm`",
            )
            .into());
        }
        context.console.bytes(EMBEDDED_COMPONENT)?;
        return Ok(Exit::Done);
    };
    std::fs::write(&file, EMBEDDED_COMPONENT).map_err(|error| {
        Error::unavailable(
            format!("{} can't be written: {error}", file.display()),
            "-o names a file in a folder that exists",
            "Choose another one",
        )
    })?;
    let (shown, bytes) = (file.display().to_string(), EMBEDDED_COMPONENT.len());
    context.console.line(&if context.globals.json {
        json!({ "file": shown, "bytes": bytes }).to_string()
    } else {
        format!("{shown}: {bytes} bytes")
    })?;
    Ok(Exit::Done)
}
