//! Builds the puppet component.

use std::path::Path;

#[path = "../host/build/componentize.rs"]
mod componentize;

fn main() {
    // Asked when it runs: one target folder may serve several checkouts.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let workspace = Path::new(&manifest)
        .parent()
        .expect("the crate is in its workspace");
    for input in [
        "tests/puppet/src",
        "tests/puppet/Cargo.toml",
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
    println!("cargo::rerun-if-changed=../host/build/componentize.rs");
    componentize::componentize(workspace, "remora-puppet", "puppet");
}
