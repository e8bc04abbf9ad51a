//! `audit`: the trail, and whether it is what was written.

use clap::Args;
use remora_host::Error;
use remora_host::storage::sqlite::operator::{AuditFilter, AuditLine, Trail};
use serde_json::json;

use super::progress::Line;
use super::span::{Days, Since};
use super::{counted, now, open_existing};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::globals::Given;
use crate::cli::text::{Table, cut};
use crate::cli::visible;

/// Digits of a record's id that a table shows.
const ID_SHOWN: usize = 8;
/// Columns of a session's name.
const NAME_SHOWN: usize = 24;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora audit --since 7d --session ticket-4711
  remora audit --keep 365d

Of --agent, or of all; --session leaves the lines of one session (`operator` for these
commands). A line holds ids and figures, never words; a key shows while its record is
kept. Each line follows from the one before: whatever is shown, whole trails are checked,
and the command exits with 1 where one is broken.")]
pub(crate) struct AuditArgs {
    /// From when on: so long ago (12h, 7d, 2w), or a day, or a moment
    #[arg(long, allow_hyphen_values = true, value_name = "WHEN")]
    since: Option<Since>,
    /// Instead of showing it, remove what is older than so many days, and leave a
    /// sealed anchor in its place
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "DAYS",
        conflicts_with = "since"
    )]
    keep: Option<Days>,
    /// With --keep: only count what would go
    #[arg(long, requires = "keep")]
    dry_run: bool,
}

pub(super) fn run(context: &mut Context<'_>, args: &AuditArgs) -> anyhow::Result<Exit> {
    context.globals.refuse(
        "audit",
        &[
            Given::Taint,
            Given::Clearance,
            Given::Origin,
            Given::Component,
        ],
    )?;
    match args.keep {
        Some(keep) => forget(context, keep, args.dry_run),
        None => show(context, args.since),
    }
}

fn show(context: &mut Context<'_>, since: Option<Since>) -> anyhow::Result<Exit> {
    let storage = open_existing(context)?;
    let now = now();
    let mut filter = AuditFilter::default();
    if let Some(agent) = &context.globals.agent {
        filter = filter.agent(agent);
    }
    if let Some(session) = &context.globals.session {
        filter = filter.session(session);
    }
    if let Some(since) = since {
        filter = filter.since(since.moment(now));
    }
    let operator = storage.operator(now);
    let trails = if context.globals.json {
        json_lines(context, |each| operator.audit(&filter, each))?
    } else {
        table(context, |each| operator.audit(&filter, each))?
    };
    let broken = trails.iter().any(|trail| trail.broken.is_some());
    Ok(if broken { Exit::Findings } else { Exit::Done })
}

/// Trails can be long, so the document is written as it is read.
fn json_lines(
    context: &mut Context<'_>,
    audit: impl FnOnce(&mut dyn FnMut(AuditLine)) -> Result<Vec<Trail>, Error>,
) -> anyhow::Result<Vec<Trail>> {
    let mut written = Ok(());
    let mut first = true;
    let console = &mut context.console;
    let trails = audit(&mut |line| {
        if written.is_err() {
            return;
        }
        let before = if first { "{\"events\":[" } else { "," };
        first = false;
        written = serde_json::to_string(&line)
            .map_err(anyhow::Error::from)
            .and_then(|line| Ok(console.bytes(format!("{before}\n{line}").as_bytes())?));
    });
    written?;
    let trails = trails?;
    let before = if first { "{\"events\":[" } else { "\n" };
    let found = serde_json::to_string(&trails)?;
    console.line(&format!("{before}],\"trails\":{found}}}"))?;
    Ok(trails)
}

fn table(
    context: &mut Context<'_>,
    audit: impl FnOnce(&mut dyn FnMut(AuditLine)) -> Result<Vec<Trail>, Error>,
) -> anyhow::Result<Vec<Trail>> {
    let mut table = Table::new(&[
        "TIME", "AGENT", "LEVEL", "WHAT", "DETAIL", "SESSION", "ORIGIN", "RECORD", "KEY",
    ]);
    let mut shown = 0_u64;
    let trails = audit(&mut |line| {
        shown = shown.saturating_add(1);
        let or_none = |text: &Option<String>| visible::line(text.as_deref().unwrap_or("-"));
        let record = or_none(&line.record);
        let kind = visible::line(&line.kind);
        table.row(vec![
            line.at.to_string(),
            visible::line(&line.agent),
            line.level.to_string(),
            if line.intact {
                kind
            } else {
                format!("{kind} NOT INTACT")
            },
            or_none(&line.detail),
            cut(&visible::line(&line.session), NAME_SHOWN),
            line.origin.to_string(),
            record.get(..ID_SHOWN).unwrap_or(&record).to_owned(),
            or_none(&line.key),
        ]);
    })?;
    table.print(&mut context.console)?;
    let (mut lines, mut removed, mut broken) = (0_u64, 0_u64, 0_u64);
    for trail in &trails {
        lines = lines.saturating_add(trail.lines);
        removed = removed.saturating_add(trail.removed);
        if let Some(found) = &trail.broken {
            broken = broken.saturating_add(1);
            context.console.line(&format!(
                "{} {}: BROKEN at line {}: {}",
                visible::line(&trail.agent),
                trail.level,
                found.number,
                visible::line(&found.what),
            ))?;
        }
    }
    let number = u64::try_from(trails.len()).unwrap_or(u64::MAX);
    let mut said = format!(
        "{} of {} shown; {}",
        shown,
        counted(lines, "line", "lines"),
        if broken == 0 {
            format!("{} intact", counted(number, "trail is", "trails are"))
        } else {
            format!("{broken} of {} BROKEN", counted(number, "trail", "trails"))
        },
    );
    if removed > 0 {
        said.push_str(&format!(
            ", behind {} that retention removed",
            counted(removed, "line", "lines")
        ));
    }
    context.console.line(&format!("{said}."))?;
    Ok(trails)
}

fn forget(context: &mut Context<'_>, keep: Days, dry_run: bool) -> anyhow::Result<Exit> {
    context.globals.refuse("audit --keep", &[Given::Session])?;
    let storage = open_existing(context)?;
    let agent = context.globals.agent.clone();
    let mut line = Line::new();
    let levels = storage.operator(now()).forget_events(
        agent.as_deref(),
        keep.0.length(),
        dry_run,
        &mut |progress| line.tell(&progress),
    )?;
    drop(line);
    if context.globals.json {
        super::json(context, &json!({ "dry_run": dry_run, "levels": levels }))?;
        return Ok(Exit::Done);
    }
    let removed = levels
        .iter()
        .map(|level| level.removed)
        .fold(0, u64::saturating_add);
    let (lines, trails) = (
        counted(removed, "line", "lines"),
        counted(
            u64::try_from(levels.len()).unwrap_or(u64::MAX),
            "trail",
            "trails",
        ),
    );
    context.console.line(&if dry_run {
        format!("{lines} of {trails} would be removed. Nothing was changed.")
    } else {
        format!("Removed {lines} from {trails}; what remains follows from a sealed anchor.")
    })?;
    Ok(Exit::Done)
}
