//! Diagnostics, on standard error: standard output is for answers.
//!
//! A command writes there and waits. A server must not: a client may never read
//! what its server says there, and a full pipe would end its service. So its lines
//! go through a queue to a thread of their own; where the queue is full they are
//! dropped. Queue and lines are bounded, since a client chooses much of what is
//! logged of it.

use std::env;
use std::fmt::{Debug, Write as _};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

/// What is logged when `RUST_LOG` does not say. rmcp warns of every answer that
/// is an error of the protocol: those are the client's mistakes, and it is told.
const SERVING: &str = "warn,rmcp=error";

/// A command shows its failure anyway.
const COMMAND: &str = "error";

/// The most bytes of one line of a server's log.
const LINE_BYTES: usize = 4096;

/// The most lines that wait for whoever reads a server's standard error.
const WAITING_LINES: usize = 1024;

/// How long the end of a server waits for a reader of its last lines who takes
/// none of them. With what ending takes otherwise it stays under a second.
const STALLED: Duration = Duration::from_millis(150);

/// How long it waits for one who does take them.
const SLOW: Duration = Duration::from_secs(1);

/// Starts logging as `RUST_LOG` says, or else as is useful.
pub(crate) fn init(serving: bool) -> StandardError {
    let stderr = if serving {
        StandardError::Queue(Queue::new(io::stderr()))
    } else {
        StandardError::Direct
    };
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
    let writer = stderr.clone();
    let shown = fmt::layer()
        .with_writer(move || writer.writer())
        .with_ansi(io::stderr().is_terminal())
        .with_filter(filter);
    let registry = tracing_subscriber::registry().with(shown);
    if serving {
        registry.init();
    } else {
        registry.with(Causes.with_filter(LevelFilter::WARN)).init();
    }
    stderr
}

/// Where everything that this process says on standard error goes.
#[derive(Clone, Debug)]
pub(crate) enum StandardError {
    /// Written at once.
    Direct,
    /// Written by a thread, in time.
    Queue(Queue),
}

impl StandardError {
    pub(crate) fn writer(&self) -> Box<dyn Write> {
        match self {
            Self::Direct => Box::new(io::stderr()),
            Self::Queue(queue) => Box::new(queue.clone()),
        }
    }

    /// Has the last lines written, if anybody reads them.
    pub(crate) fn finish(&self) {
        if let Self::Queue(queue) = self {
            queue.finish();
        }
    }
}

/// Lines on their way to standard error. Writing never waits.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    lines: NonBlocking,
    dropped: ErrorCounter,
    sent: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
}

impl Queue {
    fn new(to: impl Write + Send + 'static) -> Self {
        let written = Arc::new(AtomicUsize::new(0));
        let (lines, guard) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(WAITING_LINES)
            .thread_name("stderr")
            .finish(Counted {
                to,
                written: Arc::clone(&written),
            });
        // `finish` takes the guard's place, which is never dropped: where the queue
        // is full that waits for a second and then prints on standard output.
        std::mem::forget(guard);
        Self {
            dropped: lines.error_counter(),
            lines,
            sent: Arc::default(),
            written,
        }
    }

    fn finish(&self) {
        let written = || self.written.load(Ordering::Acquire);
        let begun = Instant::now();
        let mut progress = (written(), begun);
        loop {
            let done = written();
            let due = self.sent.load(Ordering::Acquire);
            if done.saturating_add(self.dropped.dropped_lines()) >= due
                || progress.1.elapsed() >= STALLED
                || begun.elapsed() >= SLOW
            {
                return;
            }
            if done != progress.0 {
                progress = (done, Instant::now());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.sent.fetch_add(1, Ordering::AcqRel);
        match shortened(line) {
            Some(short) => self.lines.write_all(&short)?,
            None => self.lines.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line that is too long, cut.
fn shortened(line: &[u8]) -> Option<Vec<u8>> {
    let head = line.get(..LINE_BYTES)?;
    if line.len() == LINE_BYTES {
        return None;
    }
    // Between characters, where it is text.
    let end = match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => head.len(),
    };
    let mut short = head.get(..end)?.to_vec();
    short.extend_from_slice("…\n".as_bytes());
    Some(short)
}

/// Counts what was written, whether or not that went well.
struct Counted<W> {
    to: W,
    written: Arc<AtomicUsize>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let result = self.to.write_all(line);
        self.written.fetch_add(1, Ordering::AcqRel);
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that never takes anything.
    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("whole").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_queue_that_nobody_reads_holds_nobody_up() {
        let mut queue = Queue::new(Stuck);
        let begun = Instant::now();
        for _ in 0..10 * WAITING_LINES {
            queue.write_all(b"line\n").expect("taken or dropped");
        }
        queue.finish();
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(queue.dropped.dropped_lines() > 8 * WAITING_LINES);
    }

    #[test]
    fn the_last_lines_are_written_before_the_end() {
        let kept = Kept::default();
        let mut queue = Queue::new(kept.clone());
        for _ in 0..100 {
            queue.write_all(b"line\n").expect("taken");
        }
        queue.finish();
        assert_eq!(kept.0.lock().expect("whole").len(), 500);
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!(shortened(&[b'x'; LINE_BYTES]), None);
        let long = format!("x{}\n", "語".repeat(LINE_BYTES));
        let short = shortened(long.as_bytes()).expect("cut");
        let short = String::from_utf8(short).expect("text");
        assert!(short.ends_with("語…\n") && short.len() <= LINE_BYTES + 4);
    }
}
