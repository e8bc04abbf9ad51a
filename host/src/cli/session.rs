//! `session`: the operator's view of the sessions.

use clap::{Args, Subcommand};
use remora_host::storage::SessionRow;
use remora_host::{Error, Level, Origin, Session, Store, can_flow_to};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Exit;
use super::globals::Globals;
use super::text::{Table, fields, when};
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
    /// Make a session, with --clearance, --taint, --origin and --agent
    New {
        /// Its name, unique in the store
        name: String,
    },
}

pub(crate) fn run(context: &mut Context<'_>, args: SessionArgs) -> anyhow::Result<Exit> {
    let store = context.open_store()?;
    match args.command {
        SessionCommand::List => list(context, &store),
        SessionCommand::Show { name } => show(context, &store, &name),
        SessionCommand::Raise { name, level } => raise(context, &store, &name, level),
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
            origin(row),
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

fn new(context: &mut Context<'_>, store: &Store, name: &str) -> anyhow::Result<Exit> {
    match store.existing_session(name) {
        Ok(_) => {
            return Err(Error::invalid(
                format!("There is a session \"{}\" already", name.escape_debug()),
                "A session's name is unique in the store, whichever its agent",
                "Choose another name, or use that session with --session",
            )
            .into());
        }
        Err(error) if error.kind() == remora_host::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let session = store.session(name, &context.globals.session_options(Origin::User))?;
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
        ("origin", origin(row)),
    ];
    if let Some(observed) = row.observed {
        lines.push((
            "observed",
            format!("{observed}, above its clearance: it writes no more"),
        ));
    }
    lines.push(("made", when(&row.created_at.to_string())));
    lines.push(("changed", when(&row.updated_at.to_string())));
    fields(&mut context.console, &lines)?;
    Ok(())
}

fn origin(row: &SessionRow) -> String {
    row.origin.name().to_ascii_uppercase()
}

/// A session in JSON, in the words of `memory_status`.
fn described(row: &SessionRow) -> Value {
    json!({
        "session": row.name,
        "agent": row.agent,
        "classification": row.taint.name(),
        "clearance": row.clearance.name(),
        "origin": origin(row),
        "observed_above_clearance": row.observed.map(Level::name),
        "writes": row.observed.is_none(),
        "created_at": row.created_at.to_string(),
        "updated_at": row.updated_at.to_string(),
    })
}
