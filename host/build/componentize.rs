// Builds a crate of this workspace as a WebAssembly component. Shared by the
// build scripts that need one (`#[path]`): the host embeds the policy, the tests
// a puppet.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles `package` for wasm and writes `<OUT_DIR>/<name>.component.wasm`.
///
/// It has a target folder of its own under OUT_DIR, because cargo holds the lock
/// of the outer one while this runs, and it reaches no network that the outer
/// build would not.
pub(crate) fn componentize(workspace: &Path, package: &str, name: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = out.join("component");
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let mut build = Command::new(cargo);
    build
        .current_dir(workspace)
        .args(["build", "--lib", "--package", package])
        .args(["--target", TARGET, "--profile", "component", "--quiet"])
        .arg("--target-dir")
        .arg(&target);
    // Panic messages carry the paths of sources. Those of the builder's machine
    // are nobody's business, and would make each machine's component another one.
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = vec![format!(
        "--remap-path-prefix={}=remora",
        workspace.display()
    )];
    if let Some(home) = home {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    // Flags and wrappers of the outer build (coverage, sanitizers, clippy) are
    // for its own target.
    for variable in [
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
    ] {
        build.env_remove(variable);
    }
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let status = build.status().expect("cargo runs");
    assert!(
        status.success(),
        "{package} does not compile for {TARGET}. If the target is missing, add it with\n\n    \
         rustup target add {TARGET}\n\nand build again."
    );
    let module = target
        .join(TARGET)
        .join("component")
        .join(format!("{}.wasm", package.replace('-', "_")));
    let module = std::fs::read(&module)
        .unwrap_or_else(|error| panic!("{} can't be read: {error}", module.display()));
    let component = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .unwrap_or_else(|error| panic!("{package} is no component: {error:#}"));
    std::fs::write(out.join(format!("{name}.component.wasm")), component)
        .expect("OUT_DIR can be written");
}
