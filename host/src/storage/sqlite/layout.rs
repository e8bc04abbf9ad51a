//! The store's folder: what lies where, and how its files come to be.
//!
//! # Making a file
//!
//! Every file is made under a temporary name in its own folder, filled, synced
//! and then hard-linked to its final name, which fails where that name exists.
//! So a file is there whole or not at all, and of several processes that make it
//! at once one wins and the others use the winner's. A crash leaves at most a
//! `.….tmp` behind, which means nothing.
//!
//! # What its absence means
//!
//! `store.key` is made first, then `sessions.db`, and `agents/` only after both.
//! They are looked for in the opposite order, so that a process which watches
//! another one initialise never sees a later one without an earlier one. Hence:
//! a store that has agents but no `sessions.db` has lost its control plane, and
//! one without a key can't be checked; both are refused, never made anew.
//!
//! # Filesystems
//!
//! It needs hard links and shared memory, which excludes FAT and most network
//! file systems. Folders are 0700 and files 0600 whatever the umask says.
//! No file beneath the root may be a symbolic link; the root itself may, and is
//! resolved once. Nothing but a regular file is ever opened as a file: to open a
//! FIFO is to wait for whoever holds its other end.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, DirBuilder, File, OpenOptions};

use super::fault::Place;
use crate::error::Error;
use crate::level::Level;
use crate::seal::Digest;

pub(super) const KEY: &str = "store.key";
const SESSIONS: &str = "sessions.db";
const AGENTS: &str = "agents";

/// A store's folder, opened.
pub(super) struct Layout {
    root: PathBuf,
    dir: Dir,
}

/// The file that holds one level of one agent.
#[derive(Clone, Debug)]
pub(super) struct LevelFile {
    /// The agent.
    pub(super) agent: String,
    /// The level.
    pub(super) level: Level,
    /// Where it is: absolute and canonical.
    pub(super) path: PathBuf,
    folder: String,
    name: String,
}

impl LevelFile {
    /// As callers are told of it.
    pub(super) fn place(&self) -> Place {
        let name = format!("The {} memory of this agent ({})", self.level, self.name);
        Place::named(name, &self.path)
    }

    /// As the operator is told of it.
    pub(super) fn operator_place(&self) -> Place {
        Place::path(&self.path)
    }
}

/// Which of a store's parts exist.
struct Found {
    agents: bool,
    sessions: bool,
    key: bool,
}

impl Layout {
    /// Opens the folder, and makes it where there is none.
    pub(super) fn open(root: &Path) -> Result<Self, Error> {
        let place = Place::path(root);
        let say = |error: io::Error| place.say(error.into());
        match fs::metadata(root) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(Error::unavailable(
                    format!("{} is not a directory", root.display()),
                    "A store is a directory",
                    "Choose another store, or move the file away",
                ));
            }
            Err(error) if fs::symlink_metadata(root).is_ok_and(|found| found.is_symlink()) => {
                let to = fs::read_link(root).unwrap_or_default();
                return Err(Error::unavailable(
                    format!(
                        "{} is a symbolic link to {}, where no folder can be reached",
                        root.display(),
                        to.display()
                    ),
                    "The folder of a store may be a link to a folder that exists",
                    "Make that folder, or remove the link, or choose another store with --store",
                )
                .caused_by(error));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_root(root).map_err(|error| {
                    // Nothing is there yet, so this is for whoever chose the path.
                    Error::unavailable(
                        format!("The folder {} can't be made: {error}", root.display()),
                        "A store is a folder that the user who runs Remora can make and write in",
                        "Check the path, or choose another with --store",
                    )
                })?;
            }
            Err(error) => return Err(say(error)),
        }
        let root = fs::canonicalize(root).map_err(say)?;
        super::operator::recover(&root)?;
        let dir = Dir::open_ambient_dir(&root, cap_std::ambient_authority()).map_err(say)?;
        Ok(Self { root, dir })
    }

    /// The folder, absolute and canonical.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the sessions are kept.
    pub(super) fn sessions(&self) -> PathBuf {
        self.root.join(SESSIONS)
    }

    /// The store's secret, made where the store is new. The flag says whether
    /// `sessions.db` is still to be made.
    pub(super) fn secret(&self) -> Result<(Digest, bool), Error> {
        let found = self.look()?;
        match found {
            Found {
                agents: true,
                sessions: false,
                ..
            } => Err(Error::unavailable(
                format!(
                    "{} is missing from a store that has memories",
                    self.root.join(SESSIONS).display()
                ),
                "Without it nobody can know what a session has observed, so no call is answered",
                "Put it back from a backup",
            )),
            Found {
                key: false,
                agents,
                sessions,
            } if agents || sessions => Err(Error::unavailable(
                format!(
                    "{} is missing from a store in use",
                    self.root.join(KEY).display()
                ),
                "Without it no seal can be checked, so nothing is served",
                "Put it back from a backup",
            )),
            Found { key: false, .. } => {
                self.make_key()?;
                Ok((self.read_key()?, true))
            }
            Found { sessions, .. } => Ok((self.read_key()?, !sessions)),
        }
    }

    // The order matters: see the module's documentation.
    fn look(&self) -> Result<Found, Error> {
        Ok(Found {
            agents: self.exists(AGENTS, cap_std::fs::Metadata::is_dir, no_folder)?,
            sessions: self.exists(SESSIONS, cap_std::fs::Metadata::is_file, no_file)?,
            key: self.exists(KEY, cap_std::fs::Metadata::is_file, no_file)?,
        })
    }

    fn exists(
        &self,
        name: &str,
        right: impl FnOnce(&cap_std::fs::Metadata) -> bool,
        wrong: impl FnOnce(&Path) -> Error,
    ) -> Result<bool, Error> {
        match self.dir.symlink_metadata(name) {
            Ok(found) if found.is_symlink() => Err(symlink(&self.root.join(name))),
            Ok(found) if !right(&found) => Err(wrong(&self.root.join(name))),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Place::path(&self.root.join(name)).say(error.into())),
        }
    }

    fn make_key(&self) -> Result<(), Error> {
        let place = Place::path(&self.root.join(KEY));
        let mut secret = Digest::default();
        getrandom::fill(&mut secret)
            .map_err(|error| place.say(io::Error::other(error.to_string()).into()))?;
        publish(&self.dir, &self.root, KEY, |file, _| {
            file.write_all(&secret)?;
            file.sync_all()
        })
        .map(|_| ())
        .map_err(|error| place.say(error.into()))
    }

    fn read_key(&self) -> Result<Digest, Error> {
        let path = self.root.join(KEY);
        let place = Place::path(&path);
        let read = || -> io::Result<(u32, Vec<u8>)> {
            let file = self.dir.open(KEY)?;
            let mode = mode_of(&file.metadata()?);
            let mut bytes = Vec::new();
            // One more than a key has, to tell that it is too long.
            file.take(33).read_to_end(&mut bytes)?;
            Ok((mode, bytes))
        };
        let (mode, bytes) = read().map_err(|error| place.say(error.into()))?;
        if mode & 0o077 != 0 {
            return Err(Error::unavailable(
                format!(
                    "{} can be read by others (mode {:04o})",
                    path.display(),
                    mode & 0o7777
                ),
                "The key of a store is for its owner alone",
                format!("Run: chmod 600 {}", path.display()),
            ));
        }
        Digest::try_from(bytes.as_slice()).map_err(|_| {
            Error::unavailable(
                format!("{} is damaged: it is not 32 bytes long", path.display()),
                "Without the key no seal can be checked, so nothing is served",
                "Put it back from a backup",
            )
        })
    }

    /// Makes `sessions.db`: `fill` makes a database of the empty file at the
    /// path it is given. False when another process was first.
    pub(super) fn make_sessions<E: From<io::Error>>(
        &self,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<bool, E> {
        publish(&self.dir, &self.root, SESSIONS, |_, path| fill(path))
    }

    /// The file of one level of one agent, whether or not it exists.
    pub(super) fn level(&self, agent: &str, level: Level) -> LevelFile {
        let folder = folder_name(agent);
        let name = format!("{}.db", level.file_stem());
        let path = self.root.join(AGENTS).join(&folder).join(&name);
        LevelFile {
            agent: agent.to_owned(),
            level,
            path,
            folder,
            name,
        }
    }

    /// Makes a level's file with the folders above it, like
    /// [`Layout::make_sessions`].
    pub(super) fn make_level<E: From<io::Error>>(
        &self,
        file: &LevelFile,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<bool, E> {
        let agents_path = self.root.join(AGENTS);
        let agents = private_dir(&self.dir, &self.root, AGENTS)?;
        let folder = private_dir(&agents, &agents_path, &file.folder)?;
        let path = agents_path.join(&file.folder);
        publish(&folder, &path, &file.name, |_, path| fill(path))
    }
}

/// Which file it is, to tell when another one has taken its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

/// The identity of the file at a path; none where there is no file.
///
/// # Errors
/// Where there is something else: then it must not be opened. Whoever is told of
/// it may be a model, so the path is in the cause alone.
pub(super) fn identity(path: &Path) -> Result<Option<Identity>, Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(symlink(path)),
        Ok(found) if !found.is_file() => Err(no_file(path)),
        Ok(found) => Ok(Some(identity_of(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            way_to(path)?;
            Ok(None)
        }
        Err(error) => {
            way_to(path)?;
            Err(Place::named(name_of(path), path).say(error.into()))
        }
    }
}

/// Checks the files that SQLite opens by itself beside a database.
pub(super) fn check_beside(path: &Path) -> Result<(), Error> {
    for ending in ["-journal", "-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(ending);
        identity(Path::new(&beside))?;
    }
    Ok(())
}

/// Checks the folders above a file, where the file itself could not be reached:
/// the agent's and the one of all agents.
pub(super) fn way_to(path: &Path) -> Result<(), Error> {
    for folder in path.ancestors().skip(1).take(2) {
        match fs::symlink_metadata(folder) {
            Ok(found) if found.is_symlink() => return Err(symlink(folder)),
            Ok(found) if !found.is_dir() => return Err(no_folder(folder)),
            // What is not there, or can't be looked at, is said of the file.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(unix)]
fn identity_of(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    Identity(found.dev(), found.ino())
}

#[cfg(not(unix))]
fn identity_of(_: &fs::Metadata) -> Identity {
    // Other systems don't let an open file be replaced.
    Identity(0, 0)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn symlink(path: &Path) -> Error {
    Error::unavailable(
        format!("{} is a symbolic link", name_of(path)),
        "The files and folders of a store are never symbolic links",
        "Put what it leads to there itself, or take the link away",
    )
    .caused_by(path.display().to_string())
}

fn no_file(path: &Path) -> Error {
    Error::unavailable(
        format!("{} is not a regular file", name_of(path)),
        "The files of a store are regular files: no folders, pipes or devices",
        "Take it away, and put the right file back from a backup",
    )
    .caused_by(path.display().to_string())
}

fn no_folder(path: &Path) -> Error {
    Error::unavailable(
        format!("{} is not a folder", name_of(path)),
        "A store keeps the memories of its agents in folders",
        "Take it away, and put the right folder back from a backup",
    )
    .caused_by(path.display().to_string())
}

#[cfg(unix)]
fn make_root(root: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(root)?;
    fs::set_permissions(root, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_root(root: &Path) -> io::Result<()> {
    fs::create_dir_all(root)
}

#[cfg(unix)]
fn mode_of(found: &cap_std::fs::Metadata) -> u32 {
    use cap_std::fs::MetadataExt as _;
    found.mode()
}

#[cfg(not(unix))]
fn mode_of(_: &cap_std::fs::Metadata) -> u32 {
    0
}

/// Opens a folder that only the owner may enter, and makes it where there is
/// none. A symbolic link out of the parent is refused by the capability itself.
fn private_dir(parent: &Dir, path: &Path, name: &str) -> io::Result<Dir> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use cap_std::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    match parent.create_dir_with(name, &builder) {
        Ok(()) => {
            #[cfg(unix)]
            {
                use cap_std::fs::PermissionsExt as _;
                parent.set_permissions(name, cap_std::fs::Permissions::from_mode(0o700))?;
            }
            sync_dir(path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if parent.symlink_metadata(name)?.is_symlink() {
                return Err(io::Error::other(format!("{name} is a symbolic link")));
            }
        }
        Err(error) => return Err(error),
    }
    parent.open_dir(name)
}

/// Makes a file whole or not at all. False when the name was taken: then the
/// file is another's.
fn publish<E: From<io::Error>>(
    dir: &Dir,
    path: &Path,
    name: &str,
    fill: impl FnOnce(&mut File, &Path) -> Result<(), E>,
) -> Result<bool, E> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let temporary = format!(".{name}.{:016x}.tmp", u64::from_be_bytes(random));
    let made = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let mut file = dir.open_with(&temporary, &options)?;
        #[cfg(unix)]
        {
            use cap_std::fs::PermissionsExt as _;
            file.set_permissions(cap_std::fs::Permissions::from_mode(0o600))?;
        }
        fill(&mut file, &path.join(&temporary))?;
        match dir.hard_link(&temporary, dir, name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // Linux says EPERM where the file system has no hard links.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(E::from(io::Error::new(io::ErrorKind::Unsupported, error)))
            }
            Err(error) => Err(error.into()),
        }
    })();
    // It may not exist, and a leftover harms nothing.
    drop(dir.remove_file(&temporary));
    if matches!(made, Ok(true)) {
        sync_dir(path)?;
    }
    made
}

/// Makes the names in a folder durable.
#[cfg(unix)]
fn sync_dir(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The folder of an agent: its name in which every byte but `a-z`, `0-9`, `-`
/// and `_` is `%` and two hexadecimal digits. Injective also where a file system
/// ignores case or normalises Unicode, and at most 3 × 64 bytes long.
fn folder_name(agent: &str) -> String {
    let mut name = String::with_capacity(agent.len());
    for byte in agent.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::check_name;

    #[test]
    fn folder_names_are_injective_and_safe_where_case_is_ignored() {
        let agents = [
            "a", "A", "%41", "ä", "a\u{308}", ".", "..", "a/b", "con", "a b", "%",
        ];
        let mut folders: Vec<String> = agents
            .iter()
            .map(|agent| folder_name(agent).to_lowercase())
            .collect();
        for folder in &folders {
            assert!(!folder.contains(['/', '.', '\\', ' ']), "{folder}");
        }
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), agents.len());
        assert!(folder_name(&"\u{10348}".repeat(16)).len() <= 192);
    }

    #[test]
    fn names_are_short_trimmed_text() {
        for name in ["a", "Ann Lee", &"x".repeat(64), "ä"] {
            assert!(check_name("session", name).is_ok(), "{name}");
        }
        for name in ["", " a", "a\n", "a\0b", &"x".repeat(65), "a\u{308}"] {
            assert!(check_name("session", name).is_err(), "{name}");
        }
        let error = check_name("agent", "").expect_err("refused").to_string();
        assert!(error.contains("name of an agent"), "{error}");
    }
}
