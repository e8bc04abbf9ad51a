//! A backup becomes the store again.
//!
//! # What comes back, and what does not
//!
//! The store is as it was when the backup was made, but for what may never be
//! undone. Where the store that is replaced can still be read:
//!
//! - what a purge erased from it is erased from the restored files too;
//! - a record that it knows as superseded stays superseded, and its edges stay.
//!   What took its place is newer than the backup and does not come along, so its
//!   key may have nothing live then: the report counts these. A tombstone is no
//!   memory, and hides again what it hid;
//! - a session's taint never falls: each session has observed what it had
//!   observed in either, its origin is the lower one, and sessions younger than
//!   the backup stay. Where its sessions can't be read, each restored one is
//!   taken to have observed all that it is cleared for.
//!
//! A file goes where it says that it belongs, and nowhere else: a level's words
//! never come out on a lower one.
//!
//! # Whole or not at all
//!
//! The new files are built and checked in `.restore.tmp` inside the store's
//! folder, which is on the store's file system wherever that is mounted. Renaming
//! it to `.restore` is the moment of the restore. From then on the files are
//! moved to their places one by one and the old ones to `.replaced`, and whoever
//! opens the store after a crash goes on where it stopped (`recover`). Before
//! it, nothing has happened, and what was built is taken away.
//!
//! # Locking
//!
//! The store's folder is locked from beginning to end, and every database in it
//! for as long as it is in its place. A server that has one open keeps that from
//! succeeding, and so the restore from beginning.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior};
use serde::Serialize;

use super::backup::{
    BackedUp, MANIFEST, Manifest, Temporary, lock, make_folder, make_folders, new_file,
    sync_folder, sync_tree, verify_tree,
};
use super::erased::{self, Erased};
use super::guard::backup_around;
use super::{Operator, Progress, agent_of, fault_point, purge};
use crate::clock::Instant;
use crate::error::Error;
use crate::level::Level;
use crate::seal::{Digest, Sealer};
use crate::storage::SessionRow;
use crate::storage::sqlite::connection::{Mode, Pool};
use crate::storage::sqlite::edge::EdgeRow;
use crate::storage::sqlite::fault::{Fault, Place};
use crate::storage::sqlite::layout::{Layout, LevelFile, identity};
use crate::storage::sqlite::record::{Book, Record, columns};
use crate::storage::sqlite::schema::Kind;
use crate::storage::sqlite::search::index;
use crate::storage::sqlite::{SqliteOptions, SqliteStorage, check_name, sessions};

/// Where the new files are built.
const BUILDING: &str = ".restore.tmp";
/// Where they are once they are the store's.
const DECIDED: &str = ".restore";
/// Where the old files go.
const REPLACED: &str = ".replaced";
/// What a store consists of, in the order in which it is exchanged: without its
/// control plane nothing of a store is served.
const PARTS: [&str; 3] = [SESSIONS, AGENTS, KEY];
const SESSIONS: &str = "sessions.db";
const AGENTS: &str = "agents";
const KEY: &str = "store.key";
/// What SQLite may have left beside a database.
const SIDECARS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The kinds of audit lines that tell of nothing that a restore would lose: a
/// store with only such behind its backup is not newer than it.
const HARMLESS: &[&str] = &["backup", "export", "restore"];

/// How to restore.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// Also over a store that is newer than the backup, that is another store, or
    /// that can't be read to tell.
    pub force: bool,
    /// How to open the store's files.
    pub sqlite: SqliteOptions,
}

impl Default for RestoreOptions {
    /// Never over a newer store.
    fn default() -> Self {
        Self {
            force: false,
            // A server's connections don't go away by waiting.
            sqlite: SqliteOptions::default().busy_timeout(Duration::from_secs(1)),
        }
    }
}

impl RestoreOptions {
    /// Also over a newer store.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }
}

/// A restore that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The backup.
    pub backup: String,
    /// When that was made.
    pub made_at: String,
    /// The store.
    pub store: String,
    /// Whether another store was there and is gone.
    pub replaced: bool,
    /// Its levels.
    pub files: Vec<RestoredFile>,
    /// Its sessions.
    pub sessions: RestoredSessions,
    /// What could not be read of the store that was replaced, in sentences.
    pub warnings: Vec<String>,
}

/// A level of a restored store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestoredFile {
    /// Whose.
    pub agent: String,
    /// Which.
    pub level: Level,
    /// How many records it has, all versions counted.
    pub records: u64,
    /// Records of the backup that a purge had erased since, and that are erased.
    pub erased: u64,
    /// Records that were live in the backup and superseded since: they stay so.
    pub superseded: u64,
    /// Edges younger than the backup, which stay.
    pub edges: u64,
    /// Keys that this level saw something live under in the backup, and sees
    /// nothing under now: it was superseded since, by what is newer than the
    /// backup. The words are in the history.
    pub vacant: u64,
}

/// The sessions of a restored store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestoredSessions {
    /// How many there are.
    pub total: u64,
    /// Those of the backup that have observed more than it knew.
    pub raised: u64,
    /// Those which are younger than the backup.
    pub kept: u64,
}

impl SqliteStorage {
    /// Makes the store in `store` what `backup` holds. Where there is no store,
    /// the folder is made. No connection to the store may be open, in this
    /// process neither. Leaves one line in the trail of each level's file.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for what is no backup;
    /// [`Refused`](crate::ErrorKind::Refused) while somebody has the store open, and for a store
    /// that is newer than the backup; [`Unavailable`](crate::ErrorKind::Unavailable) for a backup
    /// that is damaged. Nothing is changed then.
    pub fn restore(
        backup: &Path,
        store: &Path,
        now: Instant,
        options: &RestoreOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RestoreReport, Error> {
        let manifest = Manifest::read(backup)?;
        check_paths(backup, &manifest)?;
        let root = prepare(store)?;
        let lock = lock(&root)?.ok_or_else(under_way)?;
        settle(&root)?;
        let mut present = Present::hold(&root, options)?;

        let building = root.join(BUILDING);
        let guard = Temporary::folder(building.clone())
            .map_err(|error| Place::path(&building).say(error.into()))?;
        copy_into(backup, &building, &manifest, progress)?;
        make_folder(&building.join(AGENTS))?;
        fault_point("restore-copied");
        let copy = SqliteStorage::open(&building, options.sqlite.clone())?;
        let restored = copy.operator(now);
        check_files(&restored, &manifest)?;
        if !options.force {
            present.check_not_newer(&restored)?;
        }
        let files = present.carry_over(&restored, progress)?;
        let sessions = present.carry_sessions(&copy)?;
        drop(copy);
        close(&building, options)?;
        verify_tree(&building, now, &options.sqlite, progress)?;
        close(&building, options)?;
        sync_tree(&building)?;
        fault_point("restore-built");

        let decided = root.join(DECIDED);
        fs::rename(&building, &decided).map_err(|error| Place::path(&decided).say(error.into()))?;
        guard.keep();
        present.is_moved();
        sync_folder(&root)?;
        fault_point("restore-decided");
        let replaced = present.key.is_some() || !present.files.is_empty();
        let warnings = std::mem::take(&mut present.warnings);
        exchange(&root)?;
        // Only now, so that whoever waited for a lock finds another file there.
        drop(present);
        remove(&root, REPLACED)?;
        drop(lock);
        Ok(RestoreReport {
            backup: backup.display().to_string(),
            made_at: manifest.made_at,
            store: root.display().to_string(),
            replaced,
            files,
            sessions,
            warnings,
        })
    }
}

/// Finishes a restore that crashed behind its decision, and takes away what one
/// left that crashed before it. To be called before a store is opened.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) while a restore is under way.
pub(in crate::storage::sqlite) fn recover(root: &Path) -> Result<(), Error> {
    let there = [BUILDING, DECIDED, REPLACED]
        .iter()
        .any(|name| root.join(name).symlink_metadata().is_ok());
    if !there {
        return Ok(());
    }
    let lock = lock(root)?.ok_or_else(under_way)?;
    settle(root)?;
    drop(lock);
    Ok(())
}

fn under_way() -> Error {
    Error::unavailable(
        "The store is being restored from a backup",
        "Until that is done nothing is served",
        "Try again in a while",
    )
}

/// The same, by who holds the folder's lock.
fn settle(root: &Path) -> Result<(), Error> {
    if root.join(DECIDED).symlink_metadata().is_ok() {
        exchange(root)?;
    }
    remove(root, BUILDING)?;
    remove(root, REPLACED)
}

fn remove(root: &Path, name: &str) -> Result<(), Error> {
    let path = root.join(name);
    match fs::remove_dir_all(&path) {
        Ok(()) => sync_folder(root),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Place::path(&path).say(error.into())),
    }
}

/// Moves every decided part to its place, and what was there out of it. Done
/// again it goes on where it stopped: a part that is still in [`DECIDED`] is not
/// in its place.
fn exchange(root: &Path) -> Result<(), Error> {
    let (decided, replaced) = (root.join(DECIDED), root.join(REPLACED));
    if replaced.symlink_metadata().is_err() {
        make_folder(&replaced)?;
    }
    let there = |path: &Path| path.symlink_metadata().is_ok();
    let rename = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|error| Place::path(from).say(error.into()))
    };
    for part in PARTS {
        let new = decided.join(part);
        if !there(&new) {
            continue;
        }
        // An old log beside a new database would be taken for its own.
        for old in SIDECARS
            .iter()
            .map(|suffix| format!("{part}{suffix}"))
            .chain([part.to_owned()])
        {
            if there(&root.join(&old)) {
                rename(&root.join(&old), &replaced.join(&old))?;
            }
        }
        fault_point("restore-between");
        rename(&new, &root.join(part))?;
        fault_point("restore-moved");
    }
    sync_folder(root)?;
    remove(root, DECIDED)
}

/// Refuses a folder within a backup.
fn refuse_inside(store: &Path) -> Result<(), Error> {
    match backup_around(store) {
        None => Ok(()),
        Some(backup) => Err(Error::invalid(
            format!(
                "{} lies in {}, which is a backup",
                store.display(),
                backup.display()
            ),
            "A backup is restored over a store, or into an empty folder that is no backup's",
            "Choose another folder",
        )),
    }
}

/// The store's folder, made where there is none, absolute and canonical.
fn prepare(store: &Path) -> Result<PathBuf, Error> {
    refuse_inside(store)?;
    // Makes the folder and looks at nothing in it.
    if !store.exists() {
        make_folder(store)?;
    }
    let root = fs::canonicalize(store).map_err(|error| Place::path(store).say(error.into()))?;
    if SqliteStorage::is_backup(&root) {
        return Err(Error::invalid(
            format!("{} is a backup itself", root.display()),
            "A backup is restored over a store, or into an empty folder",
            "Choose another folder",
        ));
    }
    let say = |error: io::Error| Place::path(&root).say(error.into());
    let mut strange = false;
    for entry in fs::read_dir(&root).map_err(say)? {
        let name = entry.map_err(say)?.file_name();
        let name = name.to_string_lossy();
        if PARTS.contains(&&*name) || [BUILDING, DECIDED, REPLACED].contains(&&*name) {
            return Ok(root);
        }
        // A file system that was just made has that one.
        strange |= name != "lost+found";
    }
    if strange {
        return Err(Error::invalid(
            format!("{} holds something, and is no store", root.display()),
            "A backup is restored over a store, or into an empty folder",
            "Choose another folder",
        ));
    }
    Ok(root)
}

/// Checks that the manifest names what a store consists of and nothing else, and
/// that the folder holds no database besides.
pub(super) fn check_paths(backup: &Path, manifest: &Manifest) -> Result<(), Error> {
    let wrong = |what: String| {
        Error::unavailable(
            format!(
                "{} is no backup as Remora makes them: {what}",
                backup.display()
            ),
            "Nothing of it is put back",
            "Use another backup",
        )
    };
    let mut seen = BTreeSet::new();
    for file in &manifest.files {
        let path = Path::new(&file.path);
        let parts: Vec<&str> = path
            .components()
            .map(|part| match part {
                Component::Normal(name) => name.to_str().unwrap_or(""),
                _ => "",
            })
            .collect();
        let fits = match (parts.as_slice(), &file.agent, &file.level) {
            ([name], None, None) => *name == KEY || *name == SESSIONS,
            ([AGENTS, folder, name], Some(agent), Some(level)) => {
                agent_of(folder).as_deref() == Some(agent)
                    && check_name("agent", agent).is_ok()
                    && Level::ALL.into_iter().any(|known| {
                        known.name() == level && format!("{}.db", known.file_stem()) == *name
                    })
            }
            _ => false,
        };
        if !fits {
            return Err(wrong(format!(
                "its manifest names \"{}\"",
                file.path.escape_debug()
            )));
        }
        if !seen.insert(path.to_owned()) {
            return Err(wrong(format!("its manifest names {} twice", file.path)));
        }
    }
    for needed in [KEY, SESSIONS] {
        if !seen.contains(Path::new(needed)) {
            return Err(wrong(format!("its manifest names no {needed}")));
        }
    }
    let mut folders = vec![backup.to_owned()];
    while let Some(folder) = folders.pop() {
        let say = |error: io::Error| Place::path(&folder).say(error.into());
        for entry in fs::read_dir(&folder).map_err(say)? {
            let entry = entry.map_err(say)?;
            let path = entry.path();
            if entry.file_type().map_err(say)?.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(backup).unwrap_or(&path);
            if relative != Path::new(MANIFEST) && !seen.contains(relative) {
                return Err(wrong(format!("it holds {} besides", relative.display())));
            }
        }
    }
    Ok(())
}

/// Copies the backup's files, each checked on the way.
fn copy_into(
    backup: &Path,
    target: &Path,
    manifest: &Manifest,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let total = u64::try_from(manifest.files.len()).unwrap_or(u64::MAX);
    for (done, file) in (0_u64..).zip(&manifest.files) {
        progress(Progress {
            step: "restore",
            agent: file.agent.clone(),
            level: file.level.as_deref().and_then(|level| level.parse().ok()),
            done,
            total,
        });
        make_folders(target, Path::new(&file.path))?;
        let from = backup.join(&file.path);
        copy(&from, &target.join(&file.path), file).map_err(|fault| match fault {
            Fault::Io(error) if error.kind() == io::ErrorKind::NotFound => Error::unavailable(
                format!(
                    "{} is missing, which the backup's manifest names",
                    from.display()
                ),
                "A backup that is not whole is put back not even in part",
                "Use another backup",
            )
            .caused_by(error),
            fault => Place::path(&from).say(fault),
        })?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, expected: &BackedUp) -> Result<(), Fault> {
    if from.symlink_metadata()?.is_symlink() {
        return Err(Fault::Foreign("it is a symbolic link".to_owned()));
    }
    let at_the_copy = |error: io::Error| Place::path(to).say(error.into());
    let (mut source, mut copy) = (fs::File::open(from)?, new_file(to).map_err(at_the_copy)?);
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0_u8; 128 * 1024];
    let mut bytes = 0_u64;
    loop {
        let read = source.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else {
            break;
        };
        hasher.update(part);
        copy.write_all(part).map_err(at_the_copy)?;
        bytes += part.len() as u64;
    }
    if bytes != expected.bytes || hasher.finalize().to_hex().as_str() != expected.blake3 {
        return Err(Fault::Said(Error::unavailable(
            format!("{} is not as the backup's manifest says", from.display()),
            "A backup that was damaged is put back not even in part",
            "Use another backup",
        )));
    }
    Ok(())
}

/// Checks that each file of the copy is what its place says, and brings it up to
/// date.
fn check_files(restored: &Operator<'_>, manifest: &Manifest) -> Result<(), Error> {
    for file in restored.files(None)? {
        restored.maintain(&file, |_, _| Ok(()))?;
    }
    let files = manifest.files.iter().filter(|file| file.agent.is_some());
    if files.count() != restored.files(None)?.len() {
        return Err(Error::unavailable(
            "The backup's files are not where their agents' files are",
            "",
            "Use another backup",
        ));
    }
    Ok(())
}

/// Leaves no log beside the databases of a folder.
fn close(root: &Path, options: &RestoreOptions) -> Result<(), Error> {
    let layout = Layout::open(root)?;
    let (secret, _) = layout.secret()?;
    let pool = Pool::new(Sealer::new(&secret).into(), options.sqlite.busy_timeout);
    let mut paths = vec![layout.sessions()];
    paths.extend(level_files(&layout)?.into_iter().map(|file| file.path));
    for path in paths {
        let close = || -> Result<(), Fault> {
            let db = pool.connect(&path, Mode::Write)?;
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            db.close().map_err(|(_, error)| error)?;
            Ok(())
        };
        close().map_err(|fault| Place::path(&path).say(fault))?;
    }
    Ok(())
}

/// The files of a store, agents by folder, lowest level first.
fn level_files(layout: &Layout) -> Result<Vec<LevelFile>, Error> {
    let folder = layout.root().join(AGENTS);
    let say = |error: io::Error| Place::path(&folder).say(error.into());
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(say(error)),
    };
    let mut agents = Vec::new();
    for entry in entries {
        let name = entry.map_err(say)?.file_name();
        agents.extend(name.to_str().and_then(agent_of));
    }
    agents.sort();
    let mut files = Vec::new();
    for agent in agents {
        for level in Level::ALL {
            let file = layout.level(&agent, level);
            if identity(&file.path)?.is_some() {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// The store that is to be replaced, with every database locked.
struct Present {
    /// None: the folder had no key that can be read.
    key: Option<Sealer>,
    sessions: Held,
    files: Vec<(LevelFile, Held)>,
    /// Whether it has agents but no sessions.
    headless: bool,
    /// Whether it is replaced even where it can't be read.
    force: bool,
    /// What can't be read, in sentences.
    warnings: Vec<String>,
}

/// A database of the store that is to be replaced.
enum Held {
    /// Locked, and what its name says.
    Open(Locked),
    /// Can't be read.
    Unreadable,
    /// Not there.
    Absent,
}

impl Held {
    fn open(&self) -> Option<&Connection> {
        match self {
            Self::Open(locked) => Some(&locked.db),
            Self::Unreadable | Self::Absent => None,
        }
    }
}

/// A database that nobody else can open.
struct Locked {
    db: Connection,
    /// It is, or is about to be, in another place: nothing may be written beside
    /// where it was, for another one is there.
    moved: bool,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // One that stays in its place is used with a log again. Its next writer
        // sees to that where it can't be done here.
        let end = if self.moved {
            "ROLLBACK"
        } else {
            "ROLLBACK; PRAGMA journal_mode = WAL"
        };
        drop(self.db.execute_batch(end));
    }
}

impl Present {
    fn hold(root: &Path, options: &RestoreOptions) -> Result<Self, Error> {
        let layout = Layout::open(root)?;
        let key = fs::read(root.join(KEY))
            .ok()
            .and_then(|bytes| Digest::try_from(bytes.as_slice()).ok())
            .map(|secret| Sealer::new(&secret));
        let mut present = Self {
            key,
            sessions: Held::Absent,
            files: Vec::new(),
            headless: false,
            force: options.force,
            warnings: Vec::new(),
        };
        let path = layout.sessions();
        let sealer = present
            .key
            .clone()
            .unwrap_or_else(|| Sealer::new(&Digest::default()));
        let pool = Pool::new(sealer.clone().into(), options.sqlite.busy_timeout);
        // First, since every call of a server has it open.
        present.sessions = present.take(&pool, &sealer, &path, &Kind::sessions())?;
        for file in level_files(&layout)? {
            let held = present.take(&pool, &sealer, &file.path, &Kind::level(&file))?;
            present.files.push((file, held));
        }
        present.headless = matches!(present.sessions, Held::Absent) && !present.files.is_empty();
        let mut missing = Vec::new();
        if present.headless {
            missing.push(format!("{} is missing", path.display()));
        }
        let in_use = !present.files.is_empty() || !matches!(present.sessions, Held::Absent);
        if in_use && present.key.is_none() {
            let key = root.join(KEY);
            missing.push(format!("{} is missing or damaged", key.display()));
        }
        present.put_up_with(missing)?;
        Ok(present)
    }

    /// Goes on without what can't be read, if that is wanted.
    fn put_up_with(&mut self, unreadable: Vec<String>) -> Result<(), Error> {
        if !self.force
            && let Some(first) = unreadable.first()
        {
            return Err(Error::refused(
                format!("The store that is there can't be read: {first}"),
                "Without that nobody can know whether it is newer than the backup, what was purged from it and what its sessions have observed",
                "Restore into another folder, or over it with force: where its sessions can't be read, the restored ones count as having observed all that they are cleared for",
            ));
        }
        self.warnings.extend(
            unreadable
                .into_iter()
                .map(|what| format!("{what}. What it held was not taken into account.")),
        );
        Ok(())
    }

    /// The files are another store's from now on.
    fn is_moved(&mut self) {
        let files = self.files.iter_mut().map(|(_, held)| held);
        for held in files.chain([&mut self.sessions]) {
            if let Held::Open(locked) = held {
                locked.moved = true;
            }
        }
    }

    /// Locks a database against everybody.
    fn take(
        &mut self,
        pool: &Pool,
        sealer: &Sealer,
        path: &Path,
        kind: &Kind<'_>,
    ) -> Result<Held, Error> {
        if identity(path)?.is_none() {
            return Ok(Held::Absent);
        }
        let open = || -> Result<Connection, Fault> {
            let db = pool.connect(path, Mode::Write)?;
            // Leaving the log behind takes the one lock that no other connection,
            // idle as it may be, lets another one have.
            let mode: String =
                db.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
            if !mode.eq_ignore_ascii_case("delete") {
                return Err(Fault::Foreign(format!("its journal is {mode}")));
            }
            db.execute_batch("BEGIN EXCLUSIVE")?;
            kind.check(&db, sealer)?;
            Ok(db)
        };
        match open() {
            Ok(db) => Ok(Held::Open(Locked { db, moved: false })),
            Err(Fault::Sql(error))
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                ) =>
            {
                Err(Error::refused(
                    format!("{} is open in another process", path.display()),
                    "A store is replaced only while nobody uses it",
                    "Stop its servers, then try again",
                )
                .caused_by(error))
            }
            Err(fault) => {
                self.put_up_with(vec![Place::path(path).say(fault).what().to_owned()])?;
                Ok(Held::Unreadable)
            }
        }
    }

    /// Whether both are one store: only then do the same words have the same
    /// digests.
    fn is_of(&self, restored: &Operator<'_>) -> bool {
        let name = self.key.as_ref().map(Sealer::store_name);
        name == Some(restored.inner.sealer.store_name())
    }

    /// Refuses to replace what the backup does not know.
    fn check_not_newer(&self, restored: &Operator<'_>) -> Result<(), Error> {
        let Some(sealer) = &self.key else {
            return Ok(());
        };
        let refuse = |what: String| {
            Error::refused(
                what,
                "What is newer than the backup would be lost",
                "Make a backup of the store as it is; then restore with force",
            )
        };
        if !self.is_of(restored) {
            return Err(refuse(
                "The store that is there is another one than the backup's".to_owned(),
            ));
        }
        for (file, held) in &self.files {
            let Some(db) = held.open() else { continue };
            let place = file.operator_place();
            let found =
                Trail::read(db, &Book { file, sealer }).map_err(|fault| place.say(fault))?;
            let newer = if identity(&restored.inner.layout.level(&file.agent, file.level).path)?
                .is_some()
            {
                let copy = restored.inner.layout.level(&file.agent, file.level);
                restored.read(&copy, |backup, book| {
                    let kept = Trail::read(backup, book)?;
                    if found.count < kept.count {
                        // Older, if its end is in the backup's trail.
                        return Ok(!found.is_in(backup)?);
                    }
                    Ok(!kept.is_in(db)? || changed_behind(db, kept.count)?)
                })?
            } else {
                changed_behind(db, 0).map_err(|fault| place.say(fault))?
            };
            if newer {
                return Err(refuse(format!(
                    "{} is newer than the backup",
                    file.path.display()
                )));
            }
        }
        if let Some(db) = self.sessions.open() {
            let present = sessions::all(db, sealer)
                .map_err(|fault| Place::path(Path::new(SESSIONS)).say(fault))?;
            let kept = restored_sessions(restored)?;
            for row in present {
                let known = kept.iter().find(|kept| kept.name == row.name);
                if known.is_none_or(|known| row.updated_at > known.updated_at) {
                    return Err(refuse(format!(
                        "The session \"{}\" is newer than the backup",
                        row.name.escape_debug()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Brings over what no restore may undo.
    fn carry_over(
        &mut self,
        restored: &Operator<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<RestoredFile>, Error> {
        let mut unread = Vec::new();
        for (file, held) in &self.files {
            let Some(db) = held.open() else { continue };
            let copy = restored.inner.layout.level(&file.agent, file.level);
            // Where nobody can tell, an empty file does no harm.
            if has_lasting(db).unwrap_or(true) && identity(&copy.path)?.is_none() {
                let kind = Kind::level(&copy);
                restored
                    .inner
                    .layout
                    .make_level(&copy, |path| restored.inner.pool.maintain(path, &kind))
                    .map_err(|fault: Fault| copy.operator_place().say(fault))?;
            }
        }
        let mut report = Vec::new();
        let now = restored.now.to_sql();
        let files = restored.files(None)?;
        let total = u64::try_from(files.len()).unwrap_or(u64::MAX);
        // Of the agent whose files are gone through, from the lowest level up.
        let mut gone = (String::new(), Vec::new());
        for (done, file) in (0_u64..).zip(&files) {
            progress(Progress::of("restore", file, done, total));
            if gone.0 != file.agent {
                gone = (file.agent.clone(), Vec::new());
            }
            let carried = restored.change(file, |db, book| {
                let mut carried = RestoredFile {
                    agent: file.agent.clone(),
                    level: file.level,
                    records: 0,
                    erased: 0,
                    superseded: 0,
                    edges: 0,
                    vacant: 0,
                };
                if let Some(mut old) = self.old(file, restored) {
                    let mut lost = Lost::new(&now);
                    carried.erased = carry_erased(&mut old, db, book, &mut gone.1)?;
                    carried.edges = carry_edges(&mut old, db, book, &mut lost)?;
                    carried.superseded = carry_superseded(&mut old, db, book, &mut lost)?;
                    unread.append(&mut old.unread);
                    carried.vacant = lost.vacant(restored, db, book)?;
                }
                forget(db, &gone.1)?;
                let detail = format!(
                    "erased={} superseded={} edges={} vacant={}",
                    carried.erased, carried.superseded, carried.edges, carried.vacant
                );
                restored.log(db, book, "restore", None, &detail)?;
                let records: i64 =
                    db.query_row("SELECT count(*) FROM record", [], |row| row.get(0))?;
                carried.records = super::count(records);
                Ok(carried)
            })?;
            if carried.erased > 0 {
                restored.maintain(file, |db, _| Ok(db.execute_batch("VACUUM")?))?;
            }
            report.push(carried);
        }
        self.put_up_with(unread)?;
        Ok(report)
    }

    /// The file of that agent and level, for reading.
    fn old(&self, file: &LevelFile, restored: &Operator<'_>) -> Option<Old<'_>> {
        let sealer = self.key.as_ref()?;
        let (file, held) = self
            .files
            .iter()
            .find(|(other, _)| other.agent == file.agent && other.level == file.level)?;
        Some(Old {
            db: held.open()?,
            book: Book { file, sealer },
            same_store: self.is_of(restored),
            unread: Vec::new(),
        })
    }

    /// Sees to it that no session has observed less than before.
    fn carry_sessions(&mut self, copy: &SqliteStorage) -> Result<RestoredSessions, Error> {
        let inner = &copy.inner;
        let path = inner.layout.sessions();
        let mut unread = Vec::new();
        let present = match (self.sessions.open(), &self.key) {
            (Some(db), Some(sealer)) => match sessions::all(db, sealer) {
                Ok(all) => Some(all),
                Err(fault) => {
                    let error = Place::path(Path::new(SESSIONS)).say(fault);
                    unread.push(error.what().to_owned());
                    None
                }
            },
            _ => None,
        };
        self.put_up_with(unread)?;
        let work = || -> Result<RestoredSessions, Fault> {
            let lost =
                present.is_none() && (self.headless || !matches!(self.sessions, Held::Absent));
            let db = inner.pool.connect(&path, Mode::Write)?;
            let tx = Transaction::new_unchecked(&db, TransactionBehavior::Immediate)?;
            let mut report = RestoredSessions::default();
            let restored = sessions::all(&tx, &inner.sealer)?;
            for row in &restored {
                let other = present
                    .iter()
                    .flatten()
                    .find(|other| other.name == row.name);
                let joined = match other {
                    Some(other) => join(row, other),
                    None if lost => row.having_observed(row.clearance, row.updated_at),
                    None => row.clone(),
                };
                if joined != *row {
                    sessions::keep(&tx, &inner.sealer, &joined)?;
                    report.raised += 1;
                }
            }
            for other in present.iter().flatten() {
                if !restored.iter().any(|row| row.name == other.name) {
                    sessions::keep(&tx, &inner.sealer, other)?;
                    report.kept += 1;
                }
            }
            let total: i64 = tx.query_row("SELECT count(*) FROM session", [], |row| row.get(0))?;
            report.total = super::count(total);
            tx.commit()?;
            db.close().map_err(|(_, error)| error)?;
            Ok(report)
        };
        work().map_err(|fault| Place::path(&path).say(fault))
    }
}

/// A session that has observed what it has in either store.
fn join(row: &SessionRow, other: &SessionRow) -> SessionRow {
    let later = row.updated_at.max(other.updated_at);
    let mut joined = row
        .having_observed(other.taint, later)
        .having_heard(other.origin, later);
    if let Some(observed) = other.observed {
        joined = joined.having_observed(observed, later);
    }
    joined
}

fn restored_sessions(restored: &Operator<'_>) -> Result<Vec<SessionRow>, Error> {
    let path = restored.inner.layout.sessions();
    let read = || -> Result<Vec<SessionRow>, Fault> {
        let db = restored.inner.pool.connect(&path, Mode::Read)?;
        sessions::all(&db, &restored.inner.sealer)
    };
    read().map_err(|fault| Place::path(&path).say(fault))
}

/// Where an audit trail ends.
struct Trail {
    count: i64,
    last: Vec<u8>,
}

impl Trail {
    fn read(db: &Connection, book: &Book<'_>) -> Result<Self, Fault> {
        let broken = || Fault::Altered("its audit trail is broken");
        let head = Kind::level(book.file)
            .meta(db, book.sealer, "audit_head")?
            .ok_or_else(broken)?;
        let (count, last) = head.split_once(' ').ok_or_else(broken)?;
        Ok(Self {
            count: count.parse().map_err(|_| broken())?,
            last: blake3::Hash::from_hex(last)
                .map_err(|_| broken())?
                .as_bytes()
                .to_vec(),
        })
    }

    /// Whether another trail goes through here.
    fn is_in(&self, db: &Connection) -> Result<bool, Fault> {
        if self.count == 0 {
            return Ok(true);
        }
        let chain: Option<Vec<u8>> = db
            .query_row(
                "SELECT chain FROM event WHERE number = ?1",
                [self.count],
                |row| row.get(0),
            )
            .optional()?;
        Ok(chain.as_ref() == Some(&self.last))
    }
}

/// Whether a trail tells of a change behind that line.
fn changed_behind(db: &Connection, number: i64) -> Result<bool, Fault> {
    let mut statement = db.prepare("SELECT kind FROM event WHERE number > ?1")?;
    let mut rows = statement.query([number])?;
    while let Some(row) = rows.next()? {
        let kind: String = row.get(0)?;
        if !HARMLESS.contains(&kind.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_table(db: &Connection, name: &str) -> Result<bool, Fault> {
    Ok(db.query_row(
        "SELECT count(*) > 0 FROM sqlite_schema WHERE name = ?1",
        [name],
        |row| row.get(0),
    )?)
}

/// Whether a file holds something that no restore may undo.
fn has_lasting(db: &Connection) -> Result<bool, Fault> {
    let edges: bool = db.query_row("SELECT count(*) > 0 FROM edge", [], |row| row.get(0))?;
    if edges || !has_table(db, "erased")? {
        return Ok(edges);
    }
    Ok(db.query_row("SELECT count(*) > 0 FROM erased", [], |row| row.get(0))?)
}

/// A file that is replaced, as far as it can be read.
struct Old<'a> {
    db: &'a Connection,
    book: Book<'a>,
    /// Whether its keyed digests mean the same in the restored store.
    same_store: bool,
    /// What can't be read of it, in sentences.
    unread: Vec<String>,
}

impl Old<'_> {
    /// Reads rows. `read` gives none for one that fails its seal; that one and
    /// whatever SQLite can't read are left out.
    fn rows<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&rusqlite::Row<'_>, &Book<'_>) -> Result<Option<T>, Fault>,
        mut each: impl FnMut(T) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut damaged = 0_u64;
        let mut failed = None;
        let walked = (|| -> rusqlite::Result<()> {
            let mut statement = self.db.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                match read(row, &self.book) {
                    Ok(Some(row)) => {
                        if let Err(fault) = each(row) {
                            failed = Some(fault);
                            break;
                        }
                    }
                    Ok(None) | Err(_) => damaged = damaged.saturating_add(1),
                }
            }
            Ok(())
        })();
        let path = self.book.file.path.display();
        if let Err(error) = walked {
            self.unread
                .push(format!("{path} can't be read to its end: {error}"));
        }
        if damaged > 0 {
            self.unread
                .push(format!("{damaged} rows of {path} fail their seals"));
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Erases from one file what was erased from the other, and keeps in mind that it
/// was. `gone` gathers the ids of what went, here and on lower levels. Returns
/// how many records went.
fn carry_erased(
    old: &mut Old<'_>,
    db: &Connection,
    book: &Book<'_>,
    gone: &mut Vec<String>,
) -> Result<u64, Fault> {
    if !has_table(old.db, "erased").unwrap_or(true) {
        return Ok(0);
    }
    let same_store = old.same_store;
    old.rows(
        "SELECT record_id, at, digest, seal FROM erased",
        |row, book| {
            let erased: Erased = erased::read(row)?;
            Ok(erased.fits(book).then_some(erased))
        },
        |erased| {
            // What has a digest for a name means nothing to another store.
            if same_store || !erased.name.contains('/') {
                erased.keep(db, book)?;
            }
            Ok(())
        },
    )?;
    let mut erased = 0_u64;
    let mut after = 0_i64;
    // A few at a time: rows are deleted between reading and reading on.
    loop {
        let mut found = Vec::new();
        let mut read = 0;
        {
            let mut statement = db.prepare_cached(
                "SELECT seq, id, key, session, updated_at FROM record WHERE seq > ?1
                 ORDER BY seq LIMIT 500",
            )?;
            let mut rows = statement.query([after])?;
            while let Some(row) = rows.next()? {
                after = row.get(0)?;
                read += 1;
                let (id, key): (String, String) = (row.get(1)?, row.get(2)?);
                let (session, updated_at): (String, String) = (row.get(3)?, row.get(4)?);
                if erased::covers(db, book, &id, &key, &session, &updated_at)? {
                    found.push((after, id));
                }
            }
        }
        for (seq, id) in found {
            db.prepare_cached("DELETE FROM record_tag WHERE seq = ?1")?
                .execute([seq])?;
            db.prepare_cached("DELETE FROM record WHERE seq = ?1")?
                .execute([seq])?;
            gone.push(id);
            erased = erased.saturating_add(1);
        }
        if read == 0 {
            break;
        }
    }
    erase_stamps(db, book)?;
    if erased > 0 {
        index::rebuild(db, |_| {})?;
    }
    Ok(erased)
}

/// Deletes what is left of records that are erased.
fn forget(db: &Connection, gone: &[String]) -> Result<(), Fault> {
    for id in gone {
        for sql in [
            "DELETE FROM stamp WHERE record_id = ?1",
            "DELETE FROM usage WHERE record_id = ?1",
        ] {
            db.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(())
}

/// Deletes the stamps of sessions of which everything was erased.
fn erase_stamps(db: &Connection, book: &Book<'_>) -> Result<(), Fault> {
    let mut sessions = db.prepare("SELECT DISTINCT session FROM stamp")?;
    let sessions = sessions.query_map([], |row| row.get::<_, String>(0))?;
    for session in sessions.collect::<Result<Vec<_>, _>>()? {
        let name = erased::session_name(book, &session);
        let at: Option<String> = db
            .query_row(
                "SELECT at FROM erased WHERE record_id = ?1",
                [name],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(at) = at {
            db.execute(
                "DELETE FROM stamp WHERE session = ?1 AND at <= ?2",
                [session, at],
            )?;
        }
    }
    purge::find_latest_stamps(db)
}

/// Who lost its place to something that is newer than the backup.
struct Lost<'a> {
    /// The restore's moment, as files hold it.
    now: &'a str,
    /// Keys of the file itself.
    keys: BTreeSet<String>,
    /// Records of lower levels, which only this file's edges hide: level and id.
    below: BTreeSet<(String, String)>,
}

impl<'a> Lost<'a> {
    fn new(now: &'a str) -> Self {
        Self {
            now,
            keys: BTreeSet::new(),
            below: BTreeSet::new(),
        }
    }

    /// To be told of a record before it is ended or hidden.
    fn note(&mut self, db: &Connection, book: &Book<'_>, record: &Record) -> Result<(), Fault> {
        if record.stands(self.now) && !book.has_edge_from(db, &record.id)? {
            self.keys.insert(record.key.clone());
        }
        Ok(())
    }

    /// The same, of whom an edge is about to hide.
    fn note_hidden(
        &mut self,
        db: &Connection,
        book: &Book<'_>,
        edge: &EdgeRow,
    ) -> Result<(), Fault> {
        let taken = |record: Option<Record>| record.is_some_and(|new| new.stands(self.now));
        if book.has_edge_from(db, &edge.old_id)? || taken(book.by_id(db, &edge.new_id)?) {
            return Ok(());
        }
        if edge.old_level != book.file.level.name() {
            self.below
                .insert((edge.old_level.clone(), edge.old_id.clone()));
        } else if let Some(old) = book.by_id(db, &edge.old_id)? {
            self.note(db, book, &old)?;
        }
        Ok(())
    }

    /// Under how many of their keys nothing is live now. The lower levels' files
    /// are done by then.
    fn vacant(
        mut self,
        restored: &Operator<'_>,
        db: &Connection,
        book: &Book<'_>,
    ) -> Result<u64, Fault> {
        for (level, id) in std::mem::take(&mut self.below) {
            let Ok(level) = level.parse::<Level>() else {
                continue;
            };
            let lower = restored.inner.layout.level(&book.file.agent, level);
            if identity(&lower.path)?.is_none() {
                continue;
            }
            let key = restored.read(&lower, |db, book| match book.by_id(db, &id)? {
                Some(old) if old.stands(self.now) && !book.has_edge_from(db, &id)? => {
                    Ok(Some(old.key))
                }
                _ => Ok(None),
            })?;
            self.keys.extend(key);
        }
        let mut vacant = 0_u64;
        for key in &self.keys {
            let live = match book.indexed(db, key)? {
                Some(live) => live.stands(self.now) && !book.has_edge_from(db, &live.id)?,
                None => false,
            };
            vacant = vacant.saturating_add(u64::from(!live));
        }
        Ok(vacant)
    }
}

/// Adds the edges that only the other file has. Returns how many.
fn carry_edges(
    old: &mut Old<'_>,
    db: &Connection,
    book: &Book<'_>,
    lost: &mut Lost<'_>,
) -> Result<u64, Fault> {
    let mut added = 0_u64;
    old.rows(
        "SELECT old_id, new_id, old_level, at, session, seal FROM edge",
        |row, book| {
            let edge = EdgeRow::read(row)?;
            let seal: Vec<u8> = row.get(5)?;
            Ok(edge.encode(book).fits(&seal).then_some(edge))
        },
        |edge| {
            lost.note_hidden(db, book, &edge)?;
            if book.keep_edge(db, &edge)? {
                added = added.saturating_add(1);
            }
            Ok(())
        },
    )?;
    Ok(added)
}

/// Supersedes what the other file knows as superseded. Returns how many records
/// were not yet.
fn carry_superseded(
    old: &mut Old<'_>,
    db: &Connection,
    book: &Book<'_>,
    lost: &mut Lost<'_>,
) -> Result<u64, Fault> {
    const SUPERSEDED: &str = concat!(
        "SELECT ",
        columns!(),
        // A tombstone gave way to a version that the backup does not have. Were it
        // taken away, what it hides would be seen, which was seen in neither.
        " FROM record WHERE superseded_at IS NOT NULL AND hides_lower = 0"
    );
    let mut ended = 0_u64;
    old.rows(
        SUPERSEDED,
        |row, book| Ok(book.checked(Record::read(row)?).ok()),
        |known| {
            if let Some(mut record) = book.by_id(db, &known.id)?
                && record.superseded_at.is_none()
            {
                lost.note(db, book, &record)?;
                book.end(db, &mut record, |record| {
                    record.superseded_at.clone_from(&known.superseded_at);
                })?;
                ended = ended.saturating_add(1);
            }
            Ok(())
        },
    )?;
    Ok(ended)
}
