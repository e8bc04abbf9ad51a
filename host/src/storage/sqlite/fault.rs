//! What goes wrong in a file, turned into what the caller is told.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use crate::error::Error;

/// The remedy where it can't be told whether it is the index that is damaged.
const RUN_VERIFY: &str = "`remora verify` says what it is: what it finds in the index `remora reindex` mends, for anything \
     else a backup must be put back";
const VERIFY_IT: &str = "Ask the person who runs the store to run `remora verify`: what it finds in the index `remora reindex` \
     mends, for anything else a backup must be put back";

/// What is said where nothing can be written.
const READ_ONLY: (&str, &str, &str) = (
    "is read-only",
    "A store must be writable",
    "Correct its permissions or its file system",
);

/// A file of locks takes 32 KiB, and the log beside it a page or more.
const LEAST_ROOM: u64 = 64 * 1024;

/// What may keep a file from being opened that is none of its own doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileSystem {
    ReadOnly,
    Full,
    Fine,
}

#[cfg(unix)]
fn file_system(path: &Path) -> FileSystem {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    match path.parent().map(statvfs) {
        Some(Ok(found)) if found.f_flag.contains(StatVfsMountFlags::RDONLY) => FileSystem::ReadOnly,
        Some(Ok(found)) if found.f_bavail.saturating_mul(found.f_frsize) < LEAST_ROOM => {
            FileSystem::Full
        }
        _ => FileSystem::Fine,
    }
}

#[cfg(not(unix))]
fn file_system(_: &Path) -> FileSystem {
    FileSystem::Fine
}

/// What went wrong inside a file, before it is said where.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite said so.
    Sql(rusqlite::Error),
    /// The system said so.
    Io(io::Error),
    /// Something in the file is not what Remora wrote. Says what.
    Altered(&'static str),
    /// The file is of a newer schema: found, known.
    Newer(i64, i64),
    /// The file was indexed by a newer analyser. Says by which.
    NewerAnalyser(String),
    /// Another version of this program has brought the file further, while this one
    /// had it open.
    Outdated,
    /// The file is something else than its name says.
    Foreign(String),
    /// The full-text index can't be read or written, as SQLite said.
    Index(rusqlite::Error),
    /// Already said.
    Said(Error),
}

impl Fault {
    /// Nothing more fits on the disk.
    pub(super) fn disk_is_full(&self) -> bool {
        match self {
            Self::Sql(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
            _ => false,
        }
    }

    /// SQLite could not open the file, and does not say why.
    pub(super) fn cannot_open(&self) -> bool {
        matches!(self, Self::Sql(error)
            if error.sqlite_error_code() == Some(ErrorCode::CannotOpen))
    }

    /// What went wrong with the full-text index: where it is what is wrong itself, and
    /// no lock, limit or disk, it is told from damage to what is kept.
    pub(super) fn in_index(self) -> Self {
        match self {
            Self::Sql(error)
                if matches!(
                    error.sqlite_error_code(),
                    None | Some(
                        ErrorCode::DatabaseCorrupt
                            | ErrorCode::ConstraintViolation
                            | ErrorCode::TypeMismatch
                            | ErrorCode::Unknown
                    )
                ) =>
            {
                Self::Index(error)
            }
            other => other,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Said(error)
    }
}

/// Which file: by a name that may be said to anybody, and by its path, which
/// only logs and the operator see.
#[derive(Clone, Debug)]
pub(super) struct Place {
    name: String,
    path: PathBuf,
}

impl Place {
    /// A file that callers are told of by `name` alone.
    pub(super) fn named(name: String, path: &Path) -> Self {
        Self {
            name,
            path: path.to_owned(),
        }
    }

    /// A file that only the operator is told of, by its path.
    pub(super) fn path(path: &Path) -> Self {
        Self {
            name: path.display().to_string(),
            path: path.to_owned(),
        }
    }

    /// Says what went wrong here.
    pub(super) fn say(&self, fault: Fault) -> Error {
        match fault {
            Fault::Said(error) => error,
            Fault::Altered(what) => self.altered(what),
            Fault::Newer(found, known) => Error::unavailable(
                format!("{} has the schema {found}, from a newer Remora", self.name),
                format!("This Remora knows schemas up to {known}"),
                "Use the newer Remora, or a backup from before it",
            )
            .caused_by(self.cause("newer schema")),
            Fault::NewerAnalyser(found) => Error::unavailable(
                format!(
                    "{} was indexed by a newer Remora, with the analyser {found}",
                    self.name
                ),
                format!(
                    "This Remora has the analyser {}",
                    crate::search::analyser::VERSION
                ),
                "Use the newer Remora, or a backup from before it",
            )
            .caused_by(self.cause("newer analyser")),
            Fault::Outdated => Error::unavailable(
                format!(
                    "{} was changed by another version of Remora while this one had it open",
                    self.name
                ),
                "Nothing was saved; what was there before is kept",
                "Try again, or restart this program where it was updated",
            )
            .caused_by(self.cause("another schema or analyser")),
            Fault::Foreign(what) => Error::unavailable(
                format!("{} is not what its name says: {what}", self.name),
                "A file belongs to one agent and one level, and to the store it was made in",
                "Put the right file back, or take this one away",
            )
            .caused_by(self.cause("wrong file")),
            Fault::Io(error) => self.io(error),
            Fault::Index(error) => self.index(&error),
            // Only the index has tables of a module's own. It may write as late as
            // at the commit.
            Fault::Sql(error)
                if error.sqlite_extended_error_code() == Some(ffi::SQLITE_CORRUPT_VTAB) =>
            {
                self.index(&error)
            }
            Fault::Sql(error) => self.sql(&error),
        }
    }

    fn altered(&self, what: &'static str) -> Error {
        Error::unavailable(
            format!("{} was altered outside Remora: {what}", self.name),
            "What fails its seal is never served",
            "Put a backup back, or ask the person who runs the store to look at the file",
        )
        .caused_by(self.cause(what))
    }

    fn cause(&self, error: impl fmt::Display) -> Cause {
        Cause(format!("{}: {error}", self.path.display()))
    }

    fn io(&self, error: io::Error) -> Error {
        let cause = self.cause(&error);
        let (what, allowed, remedy) = match error.kind() {
            io::ErrorKind::PermissionDenied => (
                "may not be opened",
                "The store belongs to the user who runs Remora",
                "Correct its owner and permissions, or choose another store",
            ),
            io::ErrorKind::ReadOnlyFilesystem => (
                "is on a read-only file system",
                "A store must be writable",
                "Make it writable, or choose another store",
            ),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
                "can't grow: the disk is full",
                "",
                "Free some space and try again; nothing was lost",
            ),
            io::ErrorKind::NotADirectory => (
                "can't be made: something on the way to it is not a directory",
                "A store is a directory",
                "Choose another store, or move the file away",
            ),
            io::ErrorKind::NotFound => ("is gone", "", "Put it back from a backup"),
            io::ErrorKind::Unsupported => (
                "is on a file system that lacks hard links",
                "A store needs them to make its files all at once",
                "Choose a store on another file system",
            ),
            _ => ("can't be reached", "", "See the log for the cause"),
        };
        Error::unavailable(format!("{} {what}", self.name), allowed, remedy).caused_by(cause)
    }

    /// Whether it is the operator who is told.
    fn is_the_operators(&self) -> bool {
        self.name == self.path.display().to_string()
    }

    fn index(&self, error: &rusqlite::Error) -> Error {
        Error::unavailable(
            format!("{} has a damaged full-text index", self.name),
            "It is made of what is kept, which is still there",
            if self.is_the_operators() {
                "Run `remora reindex`, which makes it anew"
            } else {
                "Ask the person who runs the store to run `remora reindex`, which makes it anew"
            },
        )
        .caused_by(self.cause(error))
    }

    fn sql(&self, error: &rusqlite::Error) -> Error {
        let verify_it = if self.is_the_operators() {
            RUN_VERIFY
        } else {
            VERIFY_IT
        };
        let (what, allowed, remedy) = match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => (
                "was broken off: the call took too long",
                "A call has a time limit; nothing was changed",
                "Ask for less at once",
            ),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                ("is busy: another process holds its lock", "", "Try again")
            }
            Some(ErrorCode::DiskFull) => (
                "can't grow: the disk is full",
                "What was being written is undone, and nothing is lost",
                "Free some space and try again",
            ),
            Some(ErrorCode::ReadOnly) => READ_ONLY,
            Some(ErrorCode::PermissionDenied) => (
                "may not be opened",
                "The store belongs to the user who runs Remora",
                "Correct its owner and permissions",
            ),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => (
                "is damaged",
                "What can't be read whole is not served",
                verify_it,
            ),
            // Also what is only read needs a file of locks beside it. SQLite does not say
            // why it can't make one.
            Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
                if file_system(&self.path) == FileSystem::ReadOnly =>
            {
                READ_ONLY
            }
            Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
                if file_system(&self.path) == FileSystem::Full =>
            {
                (
                    "can't be read or written: the disk is full",
                    "Nothing is lost. Also reading needs some room, for a file of locks",
                    "Free some space and try again",
                )
            }
            Some(ErrorCode::CannotOpen) => (
                "can't be opened",
                "It must be a file of the user who runs Remora, not a symbolic link",
                "Correct its kind and permissions, or put a backup back",
            ),
            Some(ErrorCode::SystemIoFailure) => (
                "can't be read or written: the disk reports an error",
                "",
                "Look at the disk, and put a backup back where it is damaged",
            ),
            Some(ErrorCode::OutOfMemory) => ("needs more memory than there is", "", "Try again"),
            _ => ("can't answer", "", verify_it),
        };
        let cause = self.cause(error);
        Error::unavailable(format!("{} {what}", self.name), allowed, remedy).caused_by(cause)
    }
}

/// What lies behind an error, with the path: for logs.
#[derive(Debug)]
struct Cause(String);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}
