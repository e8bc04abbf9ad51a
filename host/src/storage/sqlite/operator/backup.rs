//! A copy of the whole store, taken while it is in use.
//!
//! # What is copied
//!
//! Each file by `VACUUM INTO`, which reads one snapshot and waits for nobody: the
//! files of the lowest level first and `sessions.db` last, so that whatever a
//! copied session may have read, its copied taint covers it. Beside them the
//! store's key, without which no seal can be checked, and a manifest. The folder
//! has the shape of a store; [`SqliteStorage::restore`] makes one of it.
//!
//! A backup holds every save that was acknowledged before it began, also what
//! was still in a write-ahead log.
//!
//! # Whole or not at all
//!
//! Everything is written under a temporary name, synced, checked as
//! [`Operator::verify`] checks a store, and only then named. A failure takes it
//! away again; what a crash leaves is taken away by the next backup into that
//! folder. The folder is locked for as long as a backup is made in it.
//!
//! # What it is worth
//!
//! The digests tell that a disk or a transfer changed a file. Who has the backup
//! has the key as well, and could write another one: keep it as carefully as the
//! store.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Operator, Progress};
use crate::clock::Instant;
use crate::error::{Error, ErrorKind};
use crate::level::Level;
use crate::storage::sqlite::connection::{Mode, for_long_work};
use crate::storage::sqlite::fault::{Fault, Place};
use crate::storage::sqlite::layout::LevelFile;
use crate::storage::sqlite::operator::fault_point;
use crate::storage::sqlite::{SqliteOptions, SqliteStorage};

/// What a backup's folder begins with.
const PREFIX: &str = "remora-";
/// What says what is in a backup.
pub(super) const MANIFEST: &str = "manifest.json";
/// What a manifest says it is.
pub(super) const FORMAT: &str = "remora-backup";
/// The one version of manifests so far.
const VERSION: u32 = 1;

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BackupReport {
    /// The folder that holds it.
    pub folder: String,
    /// The moment in its name.
    pub made_at: String,
    /// Its files, in the order in which they were copied.
    pub files: Vec<BackedUp>,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// A file of a backup, as its manifest names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BackedUp {
    /// Where it is in the backup's folder, and in the store.
    pub path: String,
    /// Whose memory it holds. None for `sessions.db` and the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The level of that memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The version of its schema. None for the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<i64>,
    /// How many records it holds, all versions counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of its bytes, in hexadecimal digits.
    pub blake3: String,
}

/// What a backup holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    /// When it was begun, RFC 3339.
    pub(super) made_at: String,
    /// The version of the program that made it.
    program: String,
    /// Every file but the manifest itself.
    pub(super) files: Vec<BackedUp>,
}

impl Manifest {
    /// Reads the manifest of a backup.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(MANIFEST);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(no_backup(folder));
            }
            Err(error) => return Err(Place::path(&path).say(error.into())),
        };
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| {
            Error::unavailable(
                format!("{} can't be read as a manifest", path.display()),
                "What a backup holds must be known before any of it is put back",
                "Use another backup",
            )
            .caused_by(error)
        })?;
        if manifest.format != FORMAT || manifest.version != VERSION {
            return Err(Error::unavailable(
                format!(
                    "{} is of the format {} {}",
                    path.display(),
                    manifest.format.escape_debug(),
                    manifest.version
                ),
                format!("This Remora knows {FORMAT} {VERSION}"),
                "Use the Remora that made it, or a later one",
            ));
        }
        Ok(manifest)
    }
}

fn no_backup(folder: &Path) -> Error {
    let mut inside: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join(MANIFEST).is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    inside.sort();
    let remedy = match inside.last() {
        Some(newest) => format!(
            "It holds backups; name one, the newest for example: {}",
            folder.join(newest).display()
        ),
        None => "Name a folder that `remora backup` made".to_owned(),
    };
    Error::new(
        ErrorKind::NotFound,
        format!("{} is no backup: it has no {MANIFEST}", folder.display()),
        "A backup is a folder named remora- and a moment",
        remedy,
    )
}

/// Is taken away again unless it is kept.
pub(super) struct Temporary(Option<PathBuf>);

impl Temporary {
    pub(super) fn folder(path: PathBuf) -> io::Result<Self> {
        create_folder(&path)?;
        Ok(Self(Some(path)))
    }

    /// It has another name now.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What can't be taken away now is by the next run.
            drop(fs::remove_dir_all(path));
        }
    }
}

impl Operator<'_> {
    /// Copies the whole store into a new folder inside `folder`, which is made
    /// where there is none, while others go on using the store. Leaves one line
    /// in the trail of each level's file, in the store and in the copy.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for a folder inside the store;
    /// [`ErrorKind::Unavailable`] for one that can't be written, and for a store
    /// that is not as Remora wrote it: such a copy would be no backup.
    pub fn backup(
        &self,
        folder: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<BackupReport, Error> {
        let folder = self.backup_folder(folder)?;
        let lock = lock(&folder)?.ok_or_else(|| {
            Error::unavailable(
                format!("Another backup is being made in {}", folder.display()),
                "One at a time is made in a folder",
                "Wait for it, or choose another folder",
            )
        })?;
        remove_leftovers(&folder)?;
        let name = format!("{PREFIX}{}", compact(self.now));
        let place = folder.join(&name);
        if place.symlink_metadata().is_ok() {
            return Err(Error::unavailable(
                format!("{} is there already", place.display()),
                "A backup is named for its moment, to the millisecond",
                "Try again",
            ));
        }
        let temporary = folder.join(format!(".{name}.tmp"));
        let guard =
            Temporary::folder(temporary.clone()).map_err(|error| no_place(&folder, &error))?;
        self.inner.write_all_usage();
        let files = self.copy_into(&temporary, progress)?;
        fault_point("backup-copied");
        let files = self.check_copy(&temporary, files, progress)?;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            made_at: self.now.to_string(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            files,
        };
        write_manifest(&temporary, &manifest)?;
        sync_tree(&temporary)?;
        fault_point("backup-written");
        fs::rename(&temporary, &place).map_err(|error| Place::path(&place).say(error.into()))?;
        guard.keep();
        sync_folder(&folder)?;
        drop(lock);
        Ok(BackupReport {
            folder: place.display().to_string(),
            made_at: manifest.made_at,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            files: manifest.files,
        })
    }

    /// The folder that backups go to, absolute and canonical: SQLite follows no
    /// link.
    fn backup_folder(&self, folder: &Path) -> Result<PathBuf, Error> {
        if folder.as_os_str().is_empty() {
            return Err(Error::invalid(
                "The folder for the backup has no name",
                "",
                "Name one",
            ));
        }
        let say = |error: io::Error| no_place(folder, &error);
        if !folder.is_dir() {
            create_folder(folder).map_err(say)?;
        }
        let canonical = fs::canonicalize(folder).map_err(say)?;
        if canonical.starts_with(self.inner.layout.root()) {
            return Err(Error::invalid(
                format!("{} is inside the store", canonical.display()),
                "A backup is for the day on which the store is gone",
                "Choose a folder elsewhere, best on another disk",
            ));
        }
        Ok(canonical)
    }

    /// Copies every file, and returns what the manifest says of each but its size
    /// and digest.
    fn copy_into(
        &self,
        target: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<BackedUp>, Error> {
        // Level by level, not agent by agent.
        let mut files = self.files(None)?;
        files.sort_by_key(|file| Level::ALL.iter().position(|level| *level == file.level));
        let total = u64::try_from(files.len()).unwrap_or(u64::MAX);
        let mut copied = Vec::new();
        for (done, file) in (0_u64..).zip(&files) {
            progress(Progress::of("backup", file, done, total));
            // Ahead of the copy, so that a store is not newer than its backup.
            self.change(file, |db, book| {
                self.log(db, book, "backup", None, "copied")
            })?;
            let relative = self.relative(file);
            let to = target.join(&relative);
            make_folders(target, &relative)?;
            let (schema, records) = self
                .copy(&file.path, &to, "SELECT count(*) FROM record")
                .map_err(|fault| file.operator_place().say(fault))?;
            fault_point("backup-file");
            copied.push(BackedUp {
                agent: Some(file.agent.clone()),
                level: Some(file.level.name().to_owned()),
                schema: Some(schema),
                records: Some(records),
                ..unnamed(&relative)
            });
        }
        let sessions = self.inner.layout.sessions();
        let relative = PathBuf::from("sessions.db");
        let (schema, _) = self
            .copy(
                &sessions,
                &target.join(&relative),
                "SELECT count(*) FROM session",
            )
            .map_err(|fault| Place::path(&sessions).say(fault))?;
        copied.push(BackedUp {
            schema: Some(schema),
            ..unnamed(&relative)
        });
        let (secret, _) = self.inner.layout.secret()?;
        let relative = PathBuf::from("store.key");
        let key = target.join(&relative);
        let place = Place::path(&key);
        let write = || -> io::Result<()> {
            let mut file = new_file(&key)?;
            file.write_all(&secret)?;
            file.sync_all()
        };
        write().map_err(|error| place.say(error.into()))?;
        copied.push(unnamed(&relative));
        Ok(copied)
    }

    /// Where a level's file is in the store, and so in its backups.
    fn relative(&self, file: &LevelFile) -> PathBuf {
        file.path
            .strip_prefix(self.inner.layout.root())
            .unwrap_or(&file.path)
            .to_owned()
    }

    /// Copies a database as of now. Returns its schema and what a query counts in
    /// the copy.
    fn copy(&self, from: &Path, to: &Path, count: &str) -> Result<(i64, u64), Fault> {
        let name = to.to_str().ok_or_else(|| {
            Error::invalid(
                format!("{} is no Unicode text", to.display()),
                "SQLite takes file names as text",
                "Choose another folder",
            )
        })?;
        // Made here so that nobody else can read it; SQLite fills an empty file.
        new_file(to)?;
        let db = self.inner.pool.connect(from, Mode::Read)?;
        for_long_work(&db)?;
        db.execute("VACUUM INTO ?1", [name])
            .map_err(|error| match Fault::from(error) {
                full if full.disk_is_full() => Place::path(to).say(full).into(),
                fault => fault,
            })?;
        db.close().map_err(|(_, error)| error)?;
        let copy = self.inner.pool.connect(to, Mode::Read)?;
        let schema = copy.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let counted: i64 = copy.query_row(count, [], |row| row.get(0))?;
        copy.close().map_err(|(_, error)| error)?;
        Ok((schema, u64::try_from(counted).unwrap_or(0)))
    }

    /// Checks a copy as a store, and adds to what the manifest says of its files
    /// how large they are and their digests.
    fn check_copy(
        &self,
        copy: &Path,
        files: Vec<BackedUp>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<BackedUp>, Error> {
        verify_tree(copy, self.now, &self.inner.options, progress)?;
        files
            .into_iter()
            .map(|file| {
                let path = copy.join(&file.path);
                let (bytes, digest) =
                    digest(&path).map_err(|error| Place::path(&path).say(error.into()))?;
                Ok(BackedUp {
                    bytes,
                    blake3: digest.to_hex().to_string(),
                    ..file
                })
            })
            .collect()
    }
}

/// Checks a folder as a store, whole, without leaving anything in it.
pub(super) fn verify_tree(
    folder: &Path,
    now: Instant,
    options: &SqliteOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let storage = SqliteStorage::open(folder, options.clone())?;
    let found = storage.operator(now).verify(None, progress)?;
    let Some(first) = found.findings.first() else {
        return Ok(());
    };
    let more = found.findings.len().saturating_sub(1);
    let more = if more == 0 {
        String::new()
    } else {
        format!(", and {more} more")
    };
    Err(Error::unavailable(
        format!(
            "The copy of {} does not verify: {}{more}",
            first.file, first.what
        ),
        "What fails its seals is neither backed up nor put back",
        "Run `remora verify` on the store; where it is the backup that is damaged, use another one",
    ))
}

fn no_place(folder: &Path, error: &io::Error) -> Error {
    Error::unavailable(
        format!("No backup can be made in {}: {error}", folder.display()),
        "Backups go into a folder that you can make and write in, best on another disk",
        "Check the path, or choose another folder",
    )
}

fn unnamed(relative: &Path) -> BackedUp {
    let parts: Vec<String> = relative
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    BackedUp {
        // The same text on every system.
        path: parts.join("/"),
        agent: None,
        level: None,
        schema: None,
        records: None,
        bytes: 0,
        blake3: String::new(),
    }
}

/// A moment without a character that some file system refuses:
/// `20261130T010433042Z`.
fn compact(moment: Instant) -> String {
    moment
        .to_string()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect()
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = folder.join(MANIFEST);
    let write = || -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(manifest).map_err(io::Error::other)?;
        text.push(b'\n');
        let mut file = new_file(&path)?;
        file.write_all(&text)?;
        file.sync_all()
    };
    write().map_err(|error| Place::path(&path).say(error.into()))
}

/// How long a file is, and BLAKE3 of its bytes.
pub(super) fn digest(path: &Path) -> io::Result<(u64, blake3::Hash)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0_u8; 128 * 1024];
    let mut bytes = 0_u64;
    loop {
        let read = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else {
            return Ok((bytes, hasher.finalize()));
        };
        hasher.update(part);
        bytes += part.len() as u64;
    }
}

/// Makes a file that only its owner can read, and that was not there.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Makes a folder, and those above it, that only its owner may enter.
pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    create_folder(path).map_err(|error| Place::path(path).say(error.into()))
}

fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        builder.mode(0o700);
        builder.create(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
    }
    #[cfg(not(unix))]
    builder.create(path)
}

/// Makes the folders in which `relative` lies under `root`.
pub(super) fn make_folders(root: &Path, relative: &Path) -> Result<(), Error> {
    let mut path = root.to_owned();
    for part in relative.parent().into_iter().flat_map(Path::iter) {
        path.push(part);
        if !path.is_dir() {
            make_folder(&path)?;
        }
    }
    Ok(())
}

/// Makes a folder and all in it durable.
pub(super) fn sync_tree(folder: &Path) -> Result<(), Error> {
    fn sync(path: &Path) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                sync(&entry.path())?;
            } else {
                File::open(entry.path())?.sync_all()?;
            }
        }
        sync_names(path)
    }
    sync(folder).map_err(|error| Place::path(folder).say(error.into()))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    sync_names(folder).map_err(|error| Place::path(folder).say(error.into()))
}

#[cfg(unix)]
fn sync_names(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_names(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Takes a folder's lock, for as long as what is returned lives. None: another
/// process has it.
#[cfg(unix)]
pub(super) fn lock(folder: &Path) -> Result<Option<File>, Error> {
    let file = File::open(folder).map_err(|error| Place::path(folder).say(error.into()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        // Some network file systems have no locks. There, two at once is what
        // the operator must not do.
        Err(fs::TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Other systems don't open folders as files: the lock is a file's.
#[cfg(not(unix))]
pub(super) fn lock(folder: &Path) -> Result<Option<File>, Error> {
    let path = folder.join(".remora.lock");
    let say = |error: io::Error| Place::path(&path).say(error.into());
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(say)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// What crashed backups left in a folder goes.
fn remove_leftovers(folder: &Path) -> Result<(), Error> {
    let say = |error: io::Error| Place::path(folder).say(error.into());
    for entry in fs::read_dir(folder).map_err(say)? {
        let entry = entry.map_err(say)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = name
            .strip_prefix(".remora-")
            .and_then(|rest| rest.strip_suffix(".tmp"))
            .is_some_and(|moment| moment.ends_with('Z'));
        if ours {
            fs::remove_dir_all(entry.path()).map_err(say)?;
        }
    }
    Ok(())
}
