//! Diagnostics, on standard error: standard output is for answers.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging as `RUST_LOG` says. Without it a server logs warnings; a
/// command shows its failure anyway, and logs errors alone.
pub(crate) fn init(serving: bool) {
    let default = if serving {
        LevelFilter::WARN
    } else {
        LevelFilter::ERROR
    };
    let filter = EnvFilter::builder()
        .with_default_directive(default.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
