//! Builds the guest component that the host carries.

use std::path::Path;

#[path = "build/componentize.rs"]
mod componentize;

fn main() {
    // Asked when it runs: one target folder may serve several checkouts.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let workspace = Path::new(&manifest)
        .parent()
        .expect("the crate is in its workspace");
    for input in [
        "guest/src",
        "guest/Cargo.toml",
        "wit",
        "Cargo.lock",
        "Cargo.toml",
    ] {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(input).display()
        );
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/componentize.rs");
    componentize::componentize(workspace, "remora-guest", "remora");
}
