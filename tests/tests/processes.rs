//! This test binary as another process: a test that does nothing by itself is run
//! alone there, told what to do by the environment.

use std::path::Path;
use std::process::{Command, Output};

/// Where the child finds the store.
const STORE: &str = "REMORA_TESTS_STORE";
/// What else it is told.
const ARGUMENT: &str = "REMORA_TESTS_ARGUMENT";

/// A child that will run the test of that whole name.
pub fn child(test: &str, store: &Path, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    tell(&mut command, test, store, argument);
    command
}

/// Such a child, started by a shell or tool: `wrapper` gets the child's command
/// line behind its own arguments.
pub fn child_under(wrapper: &[&str], test: &str, store: &Path, argument: &str) -> Command {
    let (program, arguments) = wrapper.split_first().expect("a program");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(std::env::current_exe().expect("this binary"));
    tell(&mut command, test, store, argument);
    command
}

fn tell(command: &mut Command, test: &str, store: &Path, argument: &str) {
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(STORE, store)
        .env(ARGUMENT, argument);
}

/// In the child: the store and what else it was told. None in the parent, where
/// such a test has nothing to do.
pub fn told() -> Option<(std::path::PathBuf, String)> {
    let store = std::env::var_os(STORE)?;
    let argument = std::env::var(ARGUMENT).expect("what to do");
    Some((store.into(), argument))
}

/// Waits for a child and gives back the lines that it marked with `> `.
pub fn said(output: Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    // The harness prints the test's name without a line break before it runs.
    text.lines()
        .filter_map(|line| line.split_once("> ").map(|(_, said)| said.to_owned()))
        .collect()
}

/// In the child: says a line to the parent.
pub fn say(line: &str) {
    println!("\n> {line}");
}

/// What takes the power away to go round file permissions, where there is some.
/// Empty for an ordinary user; the superuser keeps its name and loses that.
pub fn bound_by_permissions() -> Vec<&'static str> {
    let probe = tempfile::tempdir().expect("a folder");
    let file = probe.path().join("probe");
    std::fs::write(&file, "x").expect("a file");
    set_mode(&file, 0o000);
    if std::fs::read(&file).is_err() {
        return vec!["env"];
    }
    vec![
        "setpriv",
        "--bounding-set",
        "-dac_override,-dac_read_search",
        "--",
    ]
}

/// Sets a file's or folder's permissions.
pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
}
