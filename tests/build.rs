//! Builds the puppet component.

use std::path::Path;

#[path = "../host/build/componentize.rs"]
mod componentize;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
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
