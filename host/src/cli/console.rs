//! Where answers go, and how wide they may be.

use std::io::{self, IsTerminal, Write};

use super::text;
use super::visible;

/// The width of lines that no terminal shows.
const WIDTH: usize = 120;
/// The width of a terminal that does not tell its own.
const TERMINAL_WIDTH: usize = 80;
/// Below this nothing can be laid out: a narrower terminal wraps by itself.
const LEAST_WIDTH: usize = 40;

/// Standard output and standard error, or what stands for them.
pub(crate) struct Console<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// A person reads the answer as it is printed.
    pub(crate) people: bool,
    /// Columns of a line.
    pub(crate) width: usize,
}

impl std::fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console")
            .field("people", &self.people)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl<'a> Console<'a> {
    /// The process's own.
    pub(crate) fn standard(out: &'a mut io::Stdout, err: &'a mut dyn Write) -> Self {
        let people = out.is_terminal();
        let width = match terminal_size::terminal_size_of(&*out) {
            Some((width, _)) => usize::from(width.0).max(LEAST_WIDTH),
            None if people => TERMINAL_WIDTH,
            None => WIDTH,
        };
        Self {
            out,
            err,
            people,
            width,
        }
    }

    /// Two writers that stand for a terminal of this width.
    pub(crate) fn like_a_terminal(
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
        width: usize,
    ) -> Self {
        Self {
            out,
            err,
            people: true,
            width,
        }
    }

    /// A line of the answer.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Bytes of the answer as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Something that a person should know and that is no part of the answer.
    pub(crate) fn remark(&mut self, text: &str) -> io::Result<()> {
        // What stands on both comes in the order in which it was written. Where the answer
        // can't be written, this may be what says so.
        let flushed = self.out.flush();
        self.err.write_all(text.as_bytes())?;
        self.err.write_all(b"\n")?;
        flushed
    }

    /// A question, with the answer to be typed behind it.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        self.out.flush()?;
        self.err.write_all(text.as_bytes())?;
        self.err.flush()
    }

    /// A remark that came with an answer, from a plugin: shown, not trusted.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        let text = format!("note: {}", visible::block(text));
        for line in text::wrap(&text, self.width) {
            self.remark(&line)?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
