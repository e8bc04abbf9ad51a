//! Diagnostics, on standard error: standard output is for answers.

use std::env;
use std::fmt::{Debug, Write as _};
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

/// What is logged when `RUST_LOG` does not say. rmcp warns of every answer that
/// is an error of the protocol: those are the client's mistakes, and it is told.
const SERVING: &str = "warn,rmcp=error";

/// A command shows its failure anyway.
const COMMAND: &str = "error";

/// Starts logging as `RUST_LOG` says, or else as is useful.
pub(crate) fn init(serving: bool) {
    let default = if serving { SERVING } else { COMMAND };
    let asked = env::var("RUST_LOG").unwrap_or_default();
    let filter = if asked.trim().is_empty() {
        EnvFilter::new(default)
    } else {
        // What can't be understood in it is passed over.
        let level = if serving {
            LevelFilter::WARN
        } else {
            LevelFilter::ERROR
        };
        EnvFilter::builder()
            .with_default_directive(level.into())
            .parse_lossy(asked)
    };
    let shown = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_filter(filter);
    let registry = tracing_subscriber::registry().with(shown);
    if serving {
        registry.init();
    } else {
        registry.with(Causes.with_filter(LevelFilter::WARN)).init();
    }
}

/// The last cause that the host logged, whether or not it was shown. What an
/// agent is told of a failure names no path and no cause; the person at the
/// command line is who can do something about it.
pub(crate) fn last_cause() -> Option<String> {
    LAST_CAUSE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

static LAST_CAUSE: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the causes that the host logs beside its failures.
struct Causes;

impl<S: Subscriber> Layer<S> for Causes {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target().starts_with("remora_host") {
            let mut cause = Cause(String::new());
            event.record(&mut cause);
            if !cause.0.is_empty() {
                *LAST_CAUSE.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause.0);
            }
        }
    }
}

/// The field `cause` of an event.
struct Cause(String);

impl Visit for Cause {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "cause" {
            // Writing to a String can't fail.
            let _infallible = write!(self.0, "{value:?}");
        }
    }
}
