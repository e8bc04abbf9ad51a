//! The command line: what can be asked, and who answers.
//!
//! Every command that touches memories goes through the plugin like any agent's
//! call: there is no second way to read or write a record. A file of this folder
//! is one idea; [`execute`] is where they meet.
//!
//! Standard output carries the answer and nothing else. What is said beside it
//! (notices, failures, the log) goes to standard error.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use remora_host::{Plugin, ToolError};

mod block;
mod call;
mod console;
mod context;
mod describe;
mod failure;
mod globals;
mod log;
pub(crate) mod mcp_config;
mod memory;
mod operator;
mod paths;
mod session;
mod text;
mod tour;
mod visible;
mod words;

pub(crate) use console::Console;
pub(crate) use context::Context;
pub(crate) use failure::{Exit, Failure};
pub(crate) use globals::Globals;

/// What `--help` ends with.
const EXAMPLES: &str = "\
Examples:
  remora save deploy 'Deploys go out on Tuesdays.' --tag ops
  remora search when do we deploy
  remora get deploy
  remora --taint confidential save salary 'Ada earns 95k.'
  remora get salary                        finds nothing: the session is PUBLIC
  remora --taint confidential get salary
  remora serve --session work              MCP over standard input and output
  remora mcp-config claude-desktop --session work
                                           settings for an MCP client
  remora tour                              shows all of it on a temporary store

MCP clients: claude-code, claude-desktop, codex, cursor, gemini-cli, vscode,
windsurf, zed, and generic for most others.

Exit codes: 0 done, 1 not found or something is wrong with what was checked, 2 wrong usage or argument, 3 refused by policy,
4 the store or the plugin failed.";

/// What somebody is told who starts the server by hand.
const SERVING_A_PERSON: &str = "\
This serves MCP to a client that starts it, on standard input and output. \
`remora mcp-config CLIENT --session NAME` prints the settings for one. Ctrl-C ends it.";

const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\ncontract remora:memory@0.1.0");

/// A memory for AI agents that outlives the conversation and does not leak.
#[derive(Debug, Parser)]
#[command(
    name = "remora",
    version,
    long_version = LONG_VERSION,
    after_help = EXAMPLES,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Save a memory at the session's level
    Save(memory::SaveArgs),
    /// Read one memory whole
    Get(memory::GetArgs),
    /// Find memories by plain words or a question
    Search(memory::SearchArgs),
    /// List memories, a page at a time
    List(memory::ListArgs),
    /// Delete a memory on the session's own level
    Delete(memory::DeleteArgs),
    /// Record that a memory is still true
    Confirm(memory::ConfirmArgs),
    /// Show the versions of a memory, and what took the place of what
    History(memory::HistoryArgs),
    /// Print the memories that matter most, as text for a prompt
    Context(block::ContextArgs),
    /// Show the session, what it can read and where the store is
    Status,
    /// Call a tool as an agent would, with JSON
    Call(call::CallArgs),
    /// Serve the tools over MCP on standard input and output
    Serve(ServeArgs),
    /// Print the settings for an MCP client, claude-desktop for example
    McpConfig(mcp_config::McpConfigArgs),
    /// List, show, make, raise and lower sessions
    Session(session::SessionArgs),
    #[command(flatten)]
    Operator(operator::OperatorCommand),
    /// Print what a model is told of the tools, as JSON
    Tools,
    /// Write the WebAssembly component that this program carries
    Component(describe::ComponentArgs),
    /// Print the text for a system prompt: when to save, what not to
    Spine,
    /// Show what Remora does on a temporary store
    Tour,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Serve a session that ends with this process, instead of a named one
    #[arg(long)]
    ephemeral: bool,
}

impl Cli {
    /// Reads a command line, the program's name first.
    pub(crate) fn read(words: &[impl AsRef<OsStr>]) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(words.iter().map(AsRef::as_ref))?;
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.globals.store_given =
            matches.value_source("store") == Some(clap::parser::ValueSource::CommandLine);
        Ok(cli)
    }
}

/// Parses the command line, does what it says and reports how it went.
pub(crate) fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(error) => return usage(error, &words),
    };
    let stderr = log::init(matches!(cli.command, Command::Serve(_)));
    // Not locked: the server writes to the same from other threads.
    let (mut out, mut err) = (io::stdout(), stderr.writer());
    let console = Console::standard(&mut out, &mut *err);
    let exit = execute(cli, console, None);
    stderr.finish();
    exit.into()
}

/// Does what a command line says, and shows what went wrong. `plugin` is one
/// that is loaded already, if there is one.
pub(crate) fn execute(cli: Cli, console: Console<'_>, plugin: Option<Arc<Plugin>>) -> Exit {
    // Whoever passes JSON reads JSON.
    let json = cli.globals.json || matches!(cli.command, Command::Call(_));
    let mut context = Context::new(cli.globals, console, plugin);
    match run(&mut context, cli.command) {
        Ok(exit) => exit,
        Err(error) => {
            let mut failure = Failure::of(&error);
            if !json && error.is::<ToolError>() {
                failure = failure.in_words_of(words::of_the_command_line);
            }
            // An error that an agent might be told names no path.
            let store = context
                .store_folder()
                .map(|path| path.to_string_lossy().into_owned());
            let store = store.filter(|store| !json && failure.hides_store(store));
            let exit = failure.report(&mut context.console, json);
            if let Some(store) = store {
                let text = format!("remora: The store is {}.", visible::line(&store));
                // Where nothing can be shown the exit code still tells.
                let _gone = context.console.remark(&text);
            }
            exit
        }
    }
}

fn run(context: &mut Context<'_>, command: Command) -> anyhow::Result<Exit> {
    use globals::Given;
    match &command {
        Command::Tools => context.globals.refuse("tools", Given::STORE_AND_SESSION)?,
        Command::Spine => context.globals.refuse("spine", Given::STORE_AND_SESSION)?,
        Command::Component(_) => context.globals.refuse("component", Given::ALL)?,
        Command::Tour => context.globals.refuse("tour", Given::STORE_AND_SESSION)?,
        _ => {}
    }
    let exit = match command {
        Command::Save(args) => memory::save(context, args)?,
        Command::Get(args) => memory::get(context, args)?,
        Command::Search(args) => memory::search(context, args)?,
        Command::List(args) => memory::list(context, args)?,
        Command::Delete(args) => memory::delete(context, args)?,
        Command::Confirm(args) => memory::confirm(context, args)?,
        Command::History(args) => memory::history(context, args)?,
        Command::Context(args) => block::run(context, args)?,
        Command::Status => memory::status(context)?,
        Command::Call(args) => call::run(context, args)?,
        Command::Serve(args) => {
            let session = context.serving_session(args.ephemeral)?;
            if io::stdin().is_terminal() {
                context.say(SERVING_A_PERSON);
            }
            crate::mcp::serve(context.plugin()?, session)?;
            // The console's output is not flushed: nothing is in it, and where the
            // client reads no more a thread of the server's holds it for good.
            return Ok(Exit::Done);
        }
        Command::McpConfig(args) => {
            mcp_config::run(&context.globals, args)?;
            Exit::Done
        }
        Command::Session(args) => session::run(context, args)?,
        Command::Operator(command) => operator::run(context, command)?,
        Command::Tools => describe::tools(context)?,
        Command::Component(args) => describe::component(context, args)?,
        Command::Spine => describe::spine(context)?,
        Command::Tour => tour::run(context)?,
    };
    context.console.flush()?;
    Ok(exit)
}

/// Reports a command line that could not be understood, or prints the help or
/// the version that it asked for.
fn usage(mut error: clap::Error, words: &[OsString]) -> ExitCode {
    if let Some(tip) = session::tip(&error, words) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    let json = words
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json");
    if !json || !error.use_stderr() {
        // A reader that has gone is no failure.
        let _gone = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut console = Console::standard(&mut out, &mut err);
    Failure::usage(&error).report(&mut console, true).into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_has_an_argument_named_like_a_global_option() {
        // clap finds values by these names, and would read one for the other.
        fn names(command: &clap::Command) -> Vec<String> {
            let own = command.get_arguments();
            let below = command.get_subcommands().flat_map(names);
            own.map(|arg| arg.get_id().to_string())
                .chain(below)
                .collect()
        }
        let cli = Cli::command();
        let globals: Vec<&str> = cli
            .get_arguments()
            .map(|arg| arg.get_id().as_str())
            .collect();
        assert!(globals.contains(&"json"));
        for command in cli.get_subcommands() {
            for name in names(command) {
                assert!(
                    !globals.contains(&name.as_str()),
                    "{name} of {}",
                    command.get_name()
                );
            }
        }
    }

    #[test]
    fn the_version_names_the_contract() {
        assert!(LONG_VERSION.ends_with(remora_host::CONTRACT_VERSION));
    }

    #[test]
    fn content_may_begin_with_a_hyphen() {
        for content in ["- milk\n- eggs", "-", "--", "-5", "-x"] {
            let cli = Cli::try_parse_from(["remora", "save", "k", content]);
            if content == "--" {
                // By itself it only ends the options.
                assert!(cli.is_err());
                continue;
            }
            let cli = cli.unwrap_or_else(|error| panic!("{content}: {error}"));
            let Command::Save(args) = cli.command else {
                panic!("not a save");
            };
            assert_eq!(args.content, content);
        }
        let cli = Cli::try_parse_from(["remora", "save", "k", "--json", "--", "--taint"]);
        let cli = cli.expect("an option, then content");
        assert!(cli.globals.json);
    }

    #[test]
    fn global_options_stand_before_or_after_the_command() {
        for words in [
            ["remora", "--taint", "Internal", "get", "k"],
            ["remora", "get", "--taint", "internal", "k"],
            ["remora", "get", "k", "--taint", "INTERNAL"],
        ] {
            let cli = Cli::try_parse_from(words).expect("understood");
            assert_eq!(cli.globals.taint, Some(remora_host::Level::Internal));
        }
    }
}
