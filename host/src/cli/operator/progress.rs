//! How far long work has come, on a line that is written over, where a person
//! watches. Nothing anywhere else.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use remora_host::storage::sqlite::operator::Progress;

use crate::cli::{text, visible};

/// Nothing is shown before: most work is done by then.
const QUIET: Duration = Duration::from_millis(500);
/// Between two looks of the line.
const STEP: Duration = Duration::from_millis(100);

/// The line.
#[derive(Debug)]
pub(crate) struct Line {
    watched: bool,
    began: Instant,
    shown: Option<Instant>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self {
            watched: io::stderr().is_terminal(),
            began: Instant::now(),
            shown: None,
        }
    }

    /// Shows how far it is.
    pub(crate) fn tell(&mut self, progress: &Progress) {
        let now = Instant::now();
        let early = now.duration_since(self.began) < QUIET;
        let soon = self
            .shown
            .is_some_and(|shown| now.duration_since(shown) < STEP);
        if !self.watched || early || soon {
            return;
        }
        self.shown = Some(now);
        let line = text::cut(&visible::line(&said(progress)), 78);
        // Who can't be shown it has lost nothing.
        let _gone = write!(io::stderr(), "\r\u{1b}[K{line}").and_then(|()| io::stderr().flush());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _gone = write!(io::stderr(), "\r\u{1b}[K").and_then(|()| io::stderr().flush());
        }
    }
}

fn said(progress: &Progress) -> String {
    let mut line = progress.step.to_owned();
    if let Some(agent) = &progress.agent {
        line.push(' ');
        line.push_str(agent);
    }
    if let Some(level) = progress.level {
        line.push(' ');
        line.push_str(level.name());
    }
    if progress.total > 0 {
        let done = progress.done.min(progress.total);
        let percent = done.saturating_mul(100) / progress.total;
        line.push_str(&format!(": {done} of {} ({percent}%)", progress.total));
    } else if progress.done > 0 {
        line.push_str(&format!(": {}", progress.done));
    }
    line
}
