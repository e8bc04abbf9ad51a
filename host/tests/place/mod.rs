//! Where the binary is run, and how it ended.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own for each test, with a store in it once that is used.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// The binary in a tidy environment, in this folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_remora"));
        command
            .env_remove("RUST_LOG")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.folder.path())
            .env("REMORA_STORE", self.store())
            // One for all tests: compiling the component takes a while.
            .env(
                "REMORA_CACHE",
                concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
            )
            .current_dir(self.folder.path());
        command
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.run_with_input(args, b"")
    }

    pub(crate) fn run_with_input<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Ran {
        let mut command = self.command();
        command.args(args);
        finish(command, input)
    }

    /// A command that must succeed, with its answer in JSON.
    #[track_caller]
    pub(crate) fn json<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Value {
        let mut command = self.command();
        command.arg("--json").args(args);
        let told = format!("{command:?}");
        let ran = finish(command, b"");
        assert_eq!(ran.code, 0, "{told}: {ran:?}");
        ran.json()
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end.
pub(crate) fn finish(command: Command, input: &[u8]) -> Ran {
    let output = assert_cmd::Command::from_std(command)
        .write_stdin(input)
        .timeout(Duration::from_secs(120))
        .output()
        .expect("it runs");
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}
