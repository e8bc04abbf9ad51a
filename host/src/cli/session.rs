//! `session`: the operator's view of the sessions.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use remora_host::storage::SessionRow;
use remora_host::{Error, Level, Origin, Session, Store, can_flow_to};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Exit;
use super::globals::{Given, Globals};
use super::text::{Table, fields, quoted, when};
use super::visible;

#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// List the sessions, of --agent or of all
    List,
    /// Show one session
    Show {
        /// Its name
        name: String,
    },
    /// Record that a session has observed a level: its taint rises, for good
    ///
    /// It takes effect at the very next call of the session, also in a server
    /// that is running. Above the session's clearance nothing is unlocked, and
    /// the session writes no more.
    Raise {
        /// Its name
        name: String,
        /// PUBLIC, INTERNAL, CONFIDENTIAL or RESTRICTED
        level: Level,
    },
    /// Record that a session has heard words of an origin: its own falls, for
    /// good
    ///
    /// What it saves from its next call on has at most that origin, also in a
    /// server that is running.
    Lower {
        /// Its name
        name: String,
        /// user, agent or tool
        #[arg(value_name = "ORIGIN")]
        to: Origin,
    },
    /// Make a session, with --clearance, --taint, --origin and --agent
    New {
        /// Its name, unique in the store
        name: String,
    },
}

pub(crate) fn run(context: &mut Context<'_>, args: SessionArgs) -> anyhow::Result<Exit> {
    let (command, refused) = match &args.command {
        SessionCommand::List => ("session list", Given::SESSION),
        SessionCommand::Show { .. } => ("session show", Given::SESSION),
        SessionCommand::Raise { .. } => ("session raise", Given::SESSION),
        SessionCommand::Lower { .. } => ("session lower", Given::SESSION),
        SessionCommand::New { .. } => ("session new", &[Given::Session][..]),
    };
    context.globals.refuse(command, refused)?;
    let store = context.open_store()?;
    match args.command {
        SessionCommand::List => list(context, &store),
        SessionCommand::Show { name } => show(context, &store, &name),
        SessionCommand::Raise { name, level } => raise(context, &store, &name, level),
        SessionCommand::Lower { name, to } => lower(context, &store, &name, to),
        SessionCommand::New { name } => new(context, &store, &name),
    }
}

fn list(context: &mut Context<'_>, store: &Store) -> anyhow::Result<Exit> {
    let mut rows = store.sessions()?;
    if let Some(agent) = &context.globals.agent {
        rows.retain(|row| row.agent == *agent);
    }
    if context.globals.json {
        let sessions: Vec<Value> = rows.iter().map(described).collect();
        context
            .console
            .line(&json!({ "sessions": sessions }).to_string())?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        context.console.remark("There are no sessions.")?;
    }
    let mut table = Table::new(&[
        "SESSION",
        "AGENT",
        "LEVEL",
        "CLEARANCE",
        "ORIGIN",
        "CHANGED",
    ]);
    for row in &rows {
        table.row(vec![
            visible::line(&row.name),
            visible::line(&row.agent),
            match row.observed {
                None => row.taint.to_string(),
                Some(_) => format!("{}, reads only", row.taint),
            },
            row.clearance.to_string(),
            row.origin.to_string(),
            when(&row.updated_at.to_string()),
        ]);
    }
    table.print(&mut context.console)?;
    Ok(Exit::Done)
}

fn show(context: &mut Context<'_>, store: &Store, name: &str) -> anyhow::Result<Exit> {
    let row = existing(&context.globals, store, name)?.state()?;
    print(context, &row)?;
    Ok(Exit::Done)
}

fn raise(
    context: &mut Context<'_>,
    store: &Store,
    name: &str,
    level: Level,
) -> anyhow::Result<Exit> {
    let session = existing(&context.globals, store, name)?;
    let before = session.state()?;
    let after = session.raise(level)?;
    if !can_flow_to(level, after.clearance) {
        return Err(Error::refused(
            format!(
                "The session \"{}\" is cleared for {} and observed {level}: it stays at {}, \
                 nothing was unlocked, and from now on it writes no more",
                name.escape_debug(),
                after.clearance,
                after.taint
            ),
            "A taint rises up to the clearance, which stays as it was made",
            "Start another session for whoever may see more",
        )
        .into());
    }
    if context.globals.json {
        context.console.line(&described(&after).to_string())?;
    } else if before.taint == after.taint {
        context.console.line(&format!(
            "{} was at {} already. A taint only rises: start another session for less.",
            visible::line(name),
            after.taint
        ))?;
    } else {
        context.console.line(&format!(
            "{} rose from {} to {}, from its next call on.",
            visible::line(name),
            before.taint,
            after.taint
        ))?;
    }
    Ok(Exit::Done)
}

fn lower(
    context: &mut Context<'_>,
    store: &Store,
    name: &str,
    origin: Origin,
) -> anyhow::Result<Exit> {
    let session = existing(&context.globals, store, name)?;
    let before = session.state()?;
    let after = session.lower_origin(origin)?;
    if context.globals.json {
        context.console.line(&described(&after).to_string())?;
    } else if before.origin == after.origin {
        context.console.line(&format!(
            "{} had the origin {} already. It only falls: start another session for more.",
            visible::line(name),
            after.origin
        ))?;
    } else {
        context.console.line(&format!(
            "{} fell from the origin {} to {}, from its next call on.",
            visible::line(name),
            before.origin,
            after.origin
        ))?;
    }
    Ok(Exit::Done)
}

fn new(context: &mut Context<'_>, store: &Store, name: &str) -> anyhow::Result<Exit> {
    let session = store.new_session(name, &context.globals.session_options(Origin::User))?;
    let row = session.state()?;
    print(context, &row)?;
    Ok(Exit::Done)
}

/// A session that is there, of the agent that was named, if one was.
fn existing(globals: &Globals, store: &Store, name: &str) -> Result<Session, Error> {
    let session = store.existing_session(name)?;
    if let Some(agent) = &globals.agent
        && session.state()?.agent != *agent
    {
        return Err(Error::refused(
            format!(
                "The session \"{}\" belongs to another agent",
                name.escape_debug()
            ),
            "A session is bound to the agent it was made for",
            "Name that agent, or leave --agent out",
        ));
    }
    Ok(session)
}

fn print(context: &mut Context<'_>, row: &SessionRow) -> anyhow::Result<()> {
    if context.globals.json {
        context.console.line(&described(row).to_string())?;
        return Ok(());
    }
    let mut lines = vec![
        ("session", visible::line(&row.name)),
        ("agent", visible::line(&row.agent)),
        ("level", row.taint.to_string()),
        ("clearance", row.clearance.to_string()),
        ("origin", row.origin.to_string()),
    ];
    if let Some(observed) = row.observed {
        lines.push(("observed", writes_no_more(observed)));
    }
    lines.push(("made", when(&row.created_at.to_string())));
    lines.push(("changed", when(&row.updated_at.to_string())));
    fields(&mut context.console, &lines)?;
    Ok(())
}

/// Of a session that has observed `level`, which is above its clearance.
pub(super) fn writes_no_more(level: Level) -> String {
    format!("{level}, above its clearance: it writes no more")
}

/// What to say to somebody who names the session as the other commands want it,
/// and so leaves these commands an argument short.
pub(super) fn tip(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != clap::error::ErrorKind::MissingRequiredArgument {
        return None;
    }
    let (mut name, mut plain) = (None, Vec::new());
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word.split_once('=') {
            _ if word == "--session" => name = words.next(),
            Some(("--session", value)) => name = Some(value),
            _ if word == "--json" => {}
            // Another option: it takes a value, if that is not in it already.
            None if word.starts_with("--") => drop(words.next()),
            _ if word.starts_with("--") => {}
            _ => plain.push(word),
        }
    }
    match (plain.as_slice(), name) {
        (["session", command, rest @ ..], Some(name)) => {
            let line = ["remora", "session", command, name].into_iter();
            let line: Vec<String> = line.chain(rest.iter().copied()).map(quoted).collect();
            Some(format!(
                "the session's name is an argument here, and not --session: '{}'",
                line.join(" ")
            ))
        }
        _ => None,
    }
}

/// A session in JSON, in the words of `memory_status`.
fn described(row: &SessionRow) -> Value {
    json!({
        "session": row.name,
        "agent": row.agent,
        "classification": row.taint.name(),
        "clearance": row.clearance.name(),
        "origin": row.origin.name(),
        "observed_above_clearance": row.observed.map(Level::name),
        "read_only": row.observed.is_some(),
        "created_at": row.created_at.to_string(),
        "updated_at": row.updated_at.to_string(),
    })
}
