//! `doctor`: what endangers the store, and what to do about it.
//!
//! It looks at what lies around the words: where the files are, who may read
//! them, how much room there is, what the clock says. Whether the files are what
//! was written is for `verify`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use remora_host::storage::sqlite::operator::Kept;
use remora_host::storage::{ControlPlane as _, SqliteStorage};
use remora_host::{CONTRACT_VERSION, ErrorKind, Instant};
use serde::Serialize;
use serde_json::json;

use super::{bytes, counted, now, open_existing};
use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::text::quoted;
use crate::cli::visible;

/// Less free than this, and a save may fail any moment.
const ROOM_LEAST: u64 = 32 * 1024 * 1024;
/// Less free than this is worth a look.
const ROOM_LITTLE: u64 = 512 * 1024 * 1024;
/// A write-ahead log as large as this is held up by somebody who reads.
const LOG_LARGE: u64 = 64 * 1024 * 1024;
/// A temporary file as old as this belongs to nobody who still runs.
const LEFT_BEHIND: Duration = Duration::from_secs(10 * 60);
/// 2025-01-01T00:00:00Z: before there was a Remora. A clock says so where nobody
/// has set it.
const EPOCH: i64 = 1_735_689_600_000;
/// Days that a session may go unchanged before it is mentioned.
const STALE_DAYS: i64 = 90;
/// What brings a file up to date at once.
const REINDEX: &str = "`remora reindex`";
/// Milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

#[derive(Args, Debug)]
#[command(after_help = "\
It changes nothing. Exits with 1 where it finds an error; warnings and notes are for you
to judge. Whether the files are what was written is for `remora verify`.")]
pub(crate) struct DoctorArgs {}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    /// Memory is lost or told to others, or nothing works, if nothing is done.
    Error,
    /// That may come.
    Warning,
    /// Worth knowing.
    Note,
}

/// Something that was found.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    grade: Grade,
    /// What was looked at: a word.
    check: &'static str,
    what: String,
    remedy: String,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(
        &mut self,
        grade: Grade,
        check: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Finding {
            grade,
            check,
            what: what.into(),
            remedy: remedy.into(),
        });
    }
}

pub(super) fn run(context: &mut Context<'_>, _: &DoctorArgs) -> anyhow::Result<Exit> {
    context.globals.refuse("doctor", super::WHOLE_STORE)?;
    let folder = context.name_store()?;
    let now = now();
    let mut findings = Findings::default();
    let storage = match open_existing(context) {
        Ok(storage) => Some(storage),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error.into()),
        Err(error) => {
            let what = match error.allowed() {
                "" => error.what().to_owned(),
                allowed => format!("{}. {allowed}", error.what()),
            };
            findings.add(Grade::Error, "store", what, error.remedy());
            None
        }
    };
    // What is named is looked at where it is: the folder itself may be a link.
    let folder = fs::canonicalize(&folder).unwrap_or(folder);
    let files = files(&folder, &mut findings);
    permissions(&folder, &files, &mut findings);
    file_system(&folder, &mut findings);
    room(&folder, &files, &mut findings);
    leftovers(&files, &mut findings);
    clock(now, &mut findings);
    let mut schemas = Vec::new();
    if let Some(storage) = &storage {
        let kept = storage.operator(now).inspect()?;
        inside(&kept, now, &mut findings, &mut schemas);
        waiting(storage, &kept, now, &mut findings);
    }
    findings.0.sort_by_key(|finding| finding.grade);

    let failed = findings
        .0
        .iter()
        .any(|finding| finding.grade == Grade::Error);
    let exit = if failed { Exit::Findings } else { Exit::Done };
    if context.globals.json {
        let report = json!({
            "store": folder.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "contract": CONTRACT_VERSION,
            "sqlite": rusqlite::version(),
            "schemas": schemas,
            "findings": findings.0,
        });
        super::json(context, &report)?;
        return Ok(exit);
    }
    let console = &mut context.console;
    for finding in &findings.0 {
        let grade = match finding.grade {
            Grade::Error => "ERROR",
            Grade::Warning => "warning",
            Grade::Note => "note",
        };
        console.line(&format!(
            "{grade}: {}: {}.",
            finding.check,
            visible::line(finding.what.trim_end_matches('.'))
        ))?;
        if !finding.remedy.is_empty() {
            let remedy = visible::line(finding.remedy.trim_end_matches('.'));
            console.line(&format!("    {remedy}."))?;
        }
    }
    let number = |grade| {
        let found = findings.0.iter().filter(|finding| finding.grade == grade);
        u64::try_from(found.count()).unwrap_or(u64::MAX)
    };
    console.line(&format!(
        "{}, {}, {} for {}; remora {}, contract {CONTRACT_VERSION}, SQLite {}.",
        counted(number(Grade::Error), "error", "errors"),
        counted(number(Grade::Warning), "warning", "warnings"),
        counted(number(Grade::Note), "note", "notes"),
        visible::line(&folder.display().to_string()),
        env!("CARGO_PKG_VERSION"),
        rusqlite::version(),
    ))?;
    if storage.is_some() {
        console.note("whether the files are what was written is for `remora verify`.")?;
    }
    Ok(exit)
}

/// So many files are named.
#[cfg(unix)]
const NAMED: u64 = 3;

/// A path as a shell needs it.
fn word(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A thing in the store's folder.
struct Thing {
    path: PathBuf,
    metadata: fs::Metadata,
}

impl Thing {
    fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }
}

/// The folder with all that is in it, three folders deep: nothing of a store's is
/// deeper.
fn files(folder: &Path, findings: &mut Findings) -> Vec<Thing> {
    let mut things = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                findings.add(
                    Grade::Error,
                    "permissions",
                    format!("{} can't be looked into: {error}", folder.display()),
                    "Run this as the user whose store it is",
                );
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if metadata.is_dir() && depth < 2 {
                folders.push((path.clone(), depth + 1));
            }
            things.push(Thing { path, metadata });
        }
    }
    things.sort_by(|a, b| a.path.cmp(&b.path));
    things
}

#[cfg(unix)]
fn permissions(folder: &Path, things: &[Thing], findings: &mut Findings) {
    use std::os::unix::fs::MetadataExt as _;
    let me = rustix::process::geteuid().as_raw();
    let mut open = Vec::new();
    let root = fs::metadata(folder).ok();
    let all = root.iter().map(|metadata| (folder, metadata)).chain(
        things
            .iter()
            .map(|thing| (thing.path.as_path(), &thing.metadata)),
    );
    for (path, metadata) in all {
        let shown = path.display();
        if metadata.is_symlink() {
            findings.add(
                Grade::Error,
                "permissions",
                format!("{shown} is a symbolic link"),
                "Nothing beneath the store's folder may be one; put the file itself there",
            );
            continue;
        }
        if metadata.uid() != me {
            findings.add(
                Grade::Error,
                "permissions",
                format!(
                    "{shown} belongs to user {}, and you are {me}",
                    metadata.uid()
                ),
                format!("chown {me} {}, or use Remora as that user", word(path)),
            );
        }
        let mode = metadata.mode() & 0o7777;
        if mode & 0o077 != 0 {
            open.push(format!("{shown} (mode {mode:04o})"));
        }
    }
    let number = u64::try_from(open.len()).unwrap_or(u64::MAX);
    if number > 0 {
        let more = number.saturating_sub(NAMED);
        open.truncate(usize::try_from(NAMED).unwrap_or(usize::MAX));
        let mut what = format!("others may use {}", open.join(", "));
        if more > 0 {
            what.push_str(&format!(" and {more} more"));
        }
        // All at once: SQLite gives what it makes beside a file that file's mode.
        let remedy = format!("chmod -R go= {}", word(folder));
        findings.add(Grade::Error, "permissions", what, remedy);
    }
}

#[cfg(not(unix))]
fn permissions(_: &Path, _: &[Thing], _: &mut Findings) {}

/// What a kind of file system means for a store.
#[cfg(target_os = "linux")]
const FILE_SYSTEMS: &[(u32, &str, Grade, &str)] = &[
    (0x0102_1994, "tmpfs", Grade::Warning, IN_MEMORY),
    (0x8584_58f6, "ramfs", Grade::Warning, IN_MEMORY),
    (0x0000_6969, "NFS", Grade::Error, NETWORK),
    (0xff53_4d42, "CIFS", Grade::Error, NETWORK),
    (0xfe53_4d42, "SMB", Grade::Error, NETWORK),
    (0x0000_517b, "SMB", Grade::Error, NETWORK),
    (0x0102_1997, "9P", Grade::Error, NETWORK),
    (0x5346_414f, "AFS", Grade::Error, NETWORK),
    (0x6b41_4653, "AFS", Grade::Error, NETWORK),
    (0x7375_7245, "Coda", Grade::Error, NETWORK),
    (0x00c3_6400, "Ceph", Grade::Error, NETWORK),
    (0x0bd0_0bd0, "Lustre", Grade::Error, NETWORK),
    (0x4750_4653, "GPFS", Grade::Error, NETWORK),
    (0x0116_1970, "GFS2", Grade::Error, NETWORK),
    (0x7461_636f, "OCFS2", Grade::Error, NETWORK),
    (
        0x786f_4256,
        "a folder shared with a virtual machine",
        Grade::Error,
        NETWORK,
    ),
    (0x6573_5546, "FUSE", Grade::Warning, IN_BETWEEN),
    (0x0000_4d44, "FAT", Grade::Error, NO_RIGHTS),
    (0x2011_bab0, "exFAT", Grade::Error, NO_RIGHTS),
    (
        0x794c_7630,
        "an overlay, as in containers",
        Grade::Note,
        LAYERS,
    ),
];

#[cfg(target_os = "linux")]
const IN_MEMORY: &str = "It is gone when the machine starts again: move the store to a disk";
#[cfg(target_os = "linux")]
const NETWORK: &str = "Its locks and shared memory are not to be relied on, and databases on it \
    are damaged sooner or later: move the store to a disk of this machine";
#[cfg(target_os = "linux")]
const IN_BETWEEN: &str = "Look what is behind it; if that is a network or a synchronised folder, \
    move the store to a disk of this machine";
#[cfg(target_os = "linux")]
const NO_RIGHTS: &str = "It knows neither owners nor links: move the store to another file system";
#[cfg(target_os = "linux")]
const LAYERS: &str = "What is written there goes with the container: keep the store on a volume";

#[cfg(target_os = "linux")]
fn file_system(folder: &Path, findings: &mut Findings) {
    // The agents' files may be mounted from elsewhere.
    let mut told = Vec::new();
    for place in [folder.to_owned(), folder.join("agents")] {
        let Ok(found) = rustix::fs::statfs(&place) else {
            continue;
        };
        // Its type's width depends on the machine; its value has 32 bits.
        let magic = u64::try_from(found.f_type).map_or_else(
            |_| 0,
            |magic| u32::try_from(magic & 0xffff_ffff).unwrap_or(0),
        );
        if told.contains(&magic) {
            continue;
        }
        told.push(magic);
        if let Some((_, name, grade, remedy)) =
            FILE_SYSTEMS.iter().find(|(known, ..)| *known == magic)
        {
            findings.add(
                *grade,
                "file-system",
                format!("{} is on {name}", place.display()),
                *remedy,
            );
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn file_system(_: &Path, _: &mut Findings) {}

#[cfg(unix)]
fn room(folder: &Path, things: &[Thing], findings: &mut Findings) {
    let Ok(found) = rustix::fs::statvfs(folder) else {
        return;
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let store = things
        .iter()
        .filter(|thing| thing.metadata.is_file())
        .map(|thing| thing.metadata.len())
        .fold(0, u64::saturating_add);
    let remedy = "Make room, or `remora prune`; a purge and a migration need as much again as the \
                  largest file";
    let what = format!(
        "{} are free where the store is, which takes {}",
        bytes(free),
        bytes(store)
    );
    if free < ROOM_LEAST {
        findings.add(Grade::Error, "room", what, remedy);
    } else if free < ROOM_LITTLE.max(store) {
        findings.add(Grade::Warning, "room", what, remedy);
    }
    for thing in things {
        if thing.name().ends_with("-wal") && thing.metadata.len() > LOG_LARGE {
            findings.add(
                Grade::Warning,
                "room",
                format!(
                    "{} has grown to {}: somebody reads an old state for long",
                    thing.path.display(),
                    bytes(thing.metadata.len())
                ),
                "Look which process has it open, with lsof for example, and start it again",
            );
        }
    }
}

#[cfg(not(unix))]
fn room(_: &Path, _: &[Thing], _: &mut Findings) {}

/// What a crash has left, and what is no part of a store.
fn leftovers(things: &[Thing], findings: &mut Findings) {
    for thing in things {
        let name = thing.name();
        let temporary = name.starts_with('.')
            && (name.ends_with(".tmp") || matches!(name, ".restore" | ".replaced"));
        if !temporary {
            continue;
        }
        let age = thing
            .metadata
            .modified()
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age > LEFT_BEHIND) {
            findings.add(
                Grade::Warning,
                "leftovers",
                format!("{} was left behind by a crash", thing.path.display()),
                format!("While nothing uses the store: rm -r {}", word(&thing.path)),
            );
        }
    }
}

fn clock(now: Instant, findings: &mut Findings) {
    if now.millis() < EPOCH {
        findings.add(
            Grade::Error,
            "clock",
            format!("the clock says {now}"),
            "Set it: what is saved now would be oldest of all, and nothing would expire",
        );
    }
}

/// What the files say of themselves.
fn inside(
    kept: &[Kept],
    now: Instant,
    findings: &mut Findings,
    schemas: &mut Vec<serde_json::Value>,
) {
    for file in kept {
        let path = &file.path;
        let inside = match &file.inside {
            Ok(inside) => inside,
            Err(what) => {
                findings.add(
                    Grade::Error,
                    "file",
                    what.clone(),
                    "Do as it says. `remora verify` says more, and `remora restore` puts a backup \
                     back",
                );
                continue;
            }
        };
        schemas.push(json!({
            "file": path,
            "schema": inside.schema,
            "current": inside.current_schema,
            "analyser": inside.analyser,
            "current_analyser": inside.current_analyser,
        }));
        if inside.schema < inside.current_schema {
            findings.add(
                Grade::Note,
                "versions",
                format!(
                    "{path} has schema {}, and this Remora writes {}",
                    inside.schema, inside.current_schema
                ),
                format!(
                    "It is brought up to date when it is next used, or now by {REINDEX}; older \
                     programs can't read it then"
                ),
            );
        } else if inside.schema > inside.current_schema {
            findings.add(
                Grade::Error,
                "versions",
                format!(
                    "{path} has schema {}, and this Remora knows {}",
                    inside.schema, inside.current_schema
                ),
                "Use the Remora that wrote it, or a later one",
            );
        } else if let (false, Some(found), Some(own)) = (
            inside.is_indexed(),
            &inside.analyser,
            &inside.current_analyser,
        ) {
            let what = format!(
                "{path} was indexed by the analyser \"{}\", and this Remora has \"{own}\"",
                found.escape_debug()
            );
            if inside.newer_analyser {
                findings.add(
                    Grade::Error,
                    "versions",
                    what,
                    "Use the Remora that wrote it, or a later one",
                );
            } else {
                findings.add(
                    Grade::Note,
                    "versions",
                    what,
                    format!("It is indexed again when it is next used, or now by {REINDEX}"),
                );
            }
        }
        if !inside.journal_mode.eq_ignore_ascii_case("wal") {
            findings.add(
                Grade::Note,
                "journal",
                format!("{path} has the journal mode {}", inside.journal_mode),
                "Readers wait for writers until it is next written, which sets WAL",
            );
        }
        if inside.ahead > 0 {
            let latest = inside
                .newest
                .map_or_else(String::new, |newest| format!(", up to {newest}"));
            findings.add(
                Grade::Warning,
                "clock",
                format!(
                    "{path} has {} from the future: the clock says {now}{latest}",
                    counted(inside.ahead, "row", "rows")
                ),
                "Check the clock. If it is right now, it was ahead when they were written: they \
                 seem newer than they are, and expire late",
            );
        }
    }
}

/// What waits for somebody.
fn waiting(storage: &SqliteStorage, kept: &[Kept], now: Instant, findings: &mut Findings) {
    // Counting would bring an older file up to date, and a doctor changes nothing.
    let counts = |file: &&Kept| {
        let inside = file.inside.as_ref();
        inside.is_ok_and(|inside| inside.schema == inside.current_schema && inside.is_indexed())
    };
    let agents: BTreeSet<&str> = kept
        .iter()
        .filter_map(|file| file.agent.as_deref())
        .collect();
    let skipped: BTreeSet<&str> = kept
        .iter()
        .filter(|file| !counts(file))
        .filter_map(|file| file.agent.as_deref())
        .collect();
    for agent in agents.difference(&skipped) {
        kept_apart(storage, agent, now, findings);
    }
    sessions(storage, now, findings);
}

fn kept_apart(storage: &SqliteStorage, agent: &str, now: Instant, findings: &mut Findings) {
    match storage.operator(now).stats(Some(agent)) {
        Ok(levels) => {
            for level in &levels {
                let apart = level.pending.saturating_add(level.quarantined);
                if apart > 0 {
                    findings.add(
                        Grade::Note,
                        "kept-apart",
                        format!(
                            "{} of the agent \"{}\" on {}: {} pending, {} quarantined",
                            counted(apart, "record is kept apart", "records are kept apart"),
                            level.agent.escape_debug(),
                            level.level,
                            level.pending,
                            level.quarantined
                        ),
                        format!(
                            "No session is served them. `remora --agent {} --taint {} review` \
                             shows them one by one, to accept or refuse",
                            quoted(&level.agent),
                            level.level
                        ),
                    );
                }
            }
        }
        Err(error) => findings.add(Grade::Error, "file", error.what(), error.remedy()),
    }
}

fn sessions(storage: &SqliteStorage, now: Instant, findings: &mut Findings) {
    match storage.list() {
        Ok(sessions) => {
            let long_ago = now.millis().saturating_sub(STALE_DAYS * DAY);
            let stale = sessions
                .iter()
                .filter(|session| session.updated_at.millis() < long_ago);
            let stale = u64::try_from(stale.count()).unwrap_or(u64::MAX);
            if stale > 0 {
                findings.add(
                    Grade::Note,
                    "sessions",
                    format!(
                        "{} not changed level for {STALE_DAYS} days",
                        counted(stale, "session has", "sessions have")
                    ),
                    "`remora session list` shows them; one that is in no client's settings is \
                     harmless",
                );
            }
            let ended = sessions.iter().filter(|session| session.observed.is_some());
            let ended = u64::try_from(ended.count()).unwrap_or(u64::MAX);
            if ended > 0 {
                findings.add(
                    Grade::Note,
                    "sessions",
                    format!(
                        "{} observed something above the clearance, and can't write any more",
                        counted(ended, "session has", "sessions have")
                    ),
                    "Give its client another session with `remora session new`",
                );
            }
        }
        Err(error) => findings.add(Grade::Error, "sessions", error.what(), error.remedy()),
    }
}
