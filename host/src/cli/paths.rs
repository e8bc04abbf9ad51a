//! Which folders are used: the store's, and that of compiled components.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
use remora_host::Error;

/// The folder that Remora has inside the platform's data and cache folders.
const OWN_FOLDER: &str = "remora";

/// The store's folder as an absolute path: as given, from the working folder and
/// with a leading `~`, or else the platform's.
pub(crate) fn store_folder(given: Option<&OsStr>) -> Result<PathBuf, Error> {
    match given {
        Some(given) if given.is_empty() => Err(Error::invalid(
            "The store's folder is an empty text",
            "--store and REMORA_STORE name a folder; it is made where it is missing",
            "Name one, or unset REMORA_STORE to use the platform's data folder",
        )),
        Some(given) => resolve(Path::new(given), etcetera::home_dir().ok().as_deref()),
        None => match choose_native_strategy() {
            Ok(platform) => Ok(platform.data_dir().join(OWN_FOLDER)),
            Err(error) => Err(Error::invalid(
                format!("There is no platform's data folder: {error}"),
                "Without --store the memory is kept under the home folder",
                "Give --store DIR, or set REMORA_STORE or HOME",
            )),
        },
    }
}

/// An absolute path, without asking the file system about it.
///
/// The shell expands `~` only where it reads it unquoted; MCP clients' settings
/// files have no shell.
fn resolve(given: &Path, home: Option<&Path>) -> Result<PathBuf, Error> {
    let mut parts = given.components();
    let expanded = match parts.next() {
        Some(Component::Normal(first)) if first == "~" => match home {
            Some(home) => home.join(parts.as_path()),
            None => {
                return Err(Error::invalid(
                    format!("There is no home folder for {}", given.display()),
                    "A leading ~ stands for the home folder",
                    "Write the whole path, or set HOME",
                ));
            }
        },
        Some(Component::Normal(first)) if first.as_encoded_bytes().starts_with(b"~") => {
            return Err(Error::invalid(
                format!("{} is not understood", given.display()),
                "A leading ~ stands for your own home folder only",
                format!(
                    "Write the whole path, or ./{} for a folder of that name",
                    given.display()
                ),
            ));
        }
        _ => given.to_owned(),
    };
    std::path::absolute(&expanded).map_err(|error| {
        Error::unavailable(
            format!("{} has no absolute path: {error}", expanded.display()),
            "A relative path starts from the working folder",
            "Write the whole path",
        )
    })
}

/// Where compiled components are kept: `REMORA_CACHE`, nowhere if that is empty,
/// else the platform's cache folder. None also where that folder can't be used:
/// starts are slower then, nothing worse.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let folder = match env::var_os("REMORA_CACHE") {
        Some(given) if given.is_empty() => return None,
        Some(given) => resolve(Path::new(&given), etcetera::home_dir().ok().as_deref())
            .inspect_err(|error| tracing::warn!("compiled plugins are not kept: {error}"))
            .ok()?,
        None => choose_native_strategy().ok()?.cache_dir().join(OWN_FOLDER),
    };
    match private(&folder) {
        Ok(()) => Some(folder),
        Err(error) => {
            tracing::warn!(
                "compiled plugins are not kept: {} can't be used: {error}",
                folder.display()
            );
            None
        }
    }
}

/// Makes a folder for the user alone, or checks that it is one: machine code is
/// kept in it that will be run.
fn private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(folder)?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(io::Error::other("other users can write in it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(given: &str) -> Result<PathBuf, Error> {
        resolve(Path::new(given), Some(Path::new("/home/Bahadır")))
    }

    #[test]
    fn a_leading_tilde_is_the_home_folder() {
        let at = |given| resolved(given).expect("a path");
        assert_eq!(at("~"), Path::new("/home/Bahadır/"));
        assert_eq!(
            at("~/Masaüstü/my store"),
            Path::new("/home/Bahadır/Masaüstü/my store")
        );
        assert_eq!(at("/data/~"), Path::new("/data/~"));
    }

    #[test]
    fn another_users_home_is_not_guessed() {
        let error = resolved("~ada/store").expect_err("refused");
        assert!(error.to_string().contains("./~ada/store"), "{error}");
        assert!(resolved("./~ada/store").is_ok());
    }

    #[test]
    fn a_relative_path_starts_from_the_working_folder() {
        let here = env::current_dir().expect("a working folder");
        assert_eq!(resolved("notes").expect("a path"), here.join("notes"));
    }

    #[test]
    fn without_a_home_folder_a_tilde_is_an_error() {
        assert!(resolve(Path::new("~/x"), None).is_err());
        assert!(resolve(Path::new("x"), None).is_ok());
    }

    #[test]
    fn an_empty_name_is_an_error() {
        let error = store_folder(Some(OsStr::new(""))).expect_err("refused");
        assert!(error.to_string().contains("REMORA_STORE"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_cache_that_others_can_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("a/b");
        private(&folder).expect("made");
        let mode = fs::metadata(&folder).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).expect("changed");
        assert!(private(&folder).is_err());
    }
}
