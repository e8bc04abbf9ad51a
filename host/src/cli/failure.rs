//! How a command ends: exit codes, and failures as people and programs see them.

use std::io;
use std::process::ExitCode;

use remora_host::{Error, ErrorKind, ToolError};

use super::console::Console;
use super::{log, visible};

/// How a command ended, for whoever called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Done, and what was looked at is not as it should be.
    Findings,
    /// There is no such thing, or none that the session may see or change.
    NotFound,
    /// The command or an argument is not right.
    Usage,
    /// The policy forbids it.
    Refused,
    /// The store, the plugin or the machine failed.
    Storage,
}

impl Exit {
    /// The process's exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Findings | Self::NotFound => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Storage => 4,
        }
    }

    /// What a failure with this code (see [`ErrorKind::code`]) ends with.
    fn of(code: &str) -> Self {
        match code {
            "not_found" | "no_such_record_at_level" => Self::NotFound,
            "invalid_argument" | "too_large" | "unknown_tool" => Self::Usage,
            "refused" => Self::Refused,
            _ => Self::Storage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A failure, ready to be shown.
#[derive(Debug)]
pub(crate) struct Failure {
    code: String,
    message: String,
    exit: Exit,
    /// What lies behind it, with paths: for people at the command line alone.
    cause: Option<String>,
    /// The store failed, and nothing else.
    store: bool,
}

impl Failure {
    /// What an error means for whoever called.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        if !causes.is_empty() {
            tracing::debug!(cause = causes.join(": "), "{error}");
        }
        if let Some(error) = error.downcast_ref::<io::Error>()
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // Whoever read the answer has had enough of it.
            return Self {
                code: String::new(),
                message: String::new(),
                exit: Exit::Done,
                cause: None,
                store: false,
            };
        }
        let code = if let Some(error) = error.downcast_ref::<ToolError>() {
            error.code.clone()
        } else if let Some(error) = error.downcast_ref::<Error>() {
            error.kind().code().to_owned()
        } else {
            ErrorKind::Unavailable.code().to_owned()
        };
        let outermost = error.chain().next();
        let message = if outermost.is_some_and(|error| error.is::<io::Error>()) {
            // Whatever else is read or written says itself what it was.
            format!("The answer can't be written: {error}.")
        } else {
            error.to_string()
        };
        let exit = Exit::of(&code);
        let own = error.is::<ToolError>() || error.is::<Error>();
        Self {
            exit,
            message,
            store: own && code == ErrorKind::Unavailable.code(),
            code,
            // A tool's failure has left its cause behind: only the log knew it.
            cause: if exit == Exit::Storage {
                Some(causes.join(": "))
                    .filter(|cause| !cause.is_empty())
                    .or_else(log::last_cause)
            } else {
                None
            },
        }
    }

    /// In the words of the command line, where it is a tool that failed.
    pub(crate) fn in_words_of(mut self, translated: impl FnOnce(&str) -> String) -> Self {
        self.message = translated(&self.message);
        self
    }

    /// What the command ends with.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// As programs are told it.
    pub(crate) fn in_json(&self) -> serde_json::Value {
        serde_json::json!({ "code": self.code, "message": self.message })
    }

    /// Whether the store failed, and the message does not say where it is.
    pub(crate) fn hides_store(&self, folder: &str) -> bool {
        let said = |text: &str| text.contains(folder);
        self.store && !said(&self.message) && !self.cause.as_deref().is_some_and(said)
    }

    /// A command line that could not be understood.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text);
        Self {
            code: ErrorKind::InvalidArgument.code().to_owned(),
            // The usage line is for people.
            message: message
                .split("\n\nUsage:")
                .next()
                .unwrap_or(message)
                .trim_end()
                .to_owned(),
            exit: Exit::Usage,
            cause: None,
            store: false,
        }
    }

    /// Shows it: as JSON on standard output, or as a sentence on standard error.
    pub(crate) fn report(self, console: &mut Console<'_>, json: bool) -> Exit {
        if self.exit == Exit::Done {
            return self.exit;
        }
        if json {
            let error = serde_json::json!({ "error": self.in_json() });
            let written = console.line(&error.to_string());
            if written.and_then(|()| console.flush()).is_ok() {
                return self.exit;
            }
        }
        let mut text = format!("remora: {}", visible::block(&self.message));
        if let Some(cause) = &self.cause {
            text.push_str(&format!(" The cause: {}.", visible::line(cause)));
        }
        // Where nothing can be shown the exit code still tells.
        let _gone = console.remark(&text);
        self.exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        for (kind, exit) in [
            (ErrorKind::NotFound, 1),
            (ErrorKind::NoSuchRecordAtLevel, 1),
            (ErrorKind::InvalidArgument, 2),
            (ErrorKind::TooLarge, 2),
            (ErrorKind::Refused, 3),
            (ErrorKind::Unavailable, 4),
            (ErrorKind::Plugin, 4),
        ] {
            let failure = Failure::of(&Error::new(kind, "What", "", "").into());
            assert_eq!(failure.exit.code(), exit, "{kind:?}");
            assert_eq!(failure.code, kind.code());
        }
        let unknown = ToolError {
            code: "unknown_tool".to_owned(),
            message: "There is none.".to_owned(),
        };
        assert_eq!(Failure::of(&unknown.into()).exit, Exit::Usage);
    }

    #[test]
    fn people_are_told_the_cause_and_programs_are_not() {
        let error = || -> anyhow::Error {
            let cause = io::Error::from(io::ErrorKind::StorageFull);
            Error::unavailable("What", "", "").caused_by(cause).into()
        };
        let shown = |json: bool| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut console = Console::like_a_terminal(&mut out, &mut err, 80);
            Failure::of(&error()).report(&mut console, json);
            String::from_utf8([out, err].concat()).expect("text")
        };
        assert_eq!(shown(false), "remora: What. The cause: no storage space.\n");
        assert!(!shown(true).contains("no storage space"));
        assert!(Failure::of(&error()).hides_store("/store"));
        let plugin = Error::new(ErrorKind::Plugin, "What", "", "");
        assert!(!Failure::of(&plugin.into()).hides_store("/store"));
        let output = io::Error::from(io::ErrorKind::StorageFull);
        assert!(!Failure::of(&output.into()).hides_store("/store"));
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::of(&gone.into()).exit, Exit::Done);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::of(&full.into()).exit, Exit::Storage);
    }
}
