//! Builds the guest component that the host carries.

use std::path::Path;

#[path = "build/componentize.rs"]
mod componentize;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
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
