//! The block for a prompt, asked for by the host that makes the prompt.
//!
//! No tool returns it: a model calls tools, and this is what it is told before
//! it can call any.

use crate::bindings::tools::ContextArguments;
use crate::bindings::types::{MemoryError, Problem};
use crate::error::{Error, ErrorKind};
use crate::plugin::{Plugin, ToolError};
use crate::session::Session;

/// What a block for a prompt is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// The most tokens that it may take, counted as a third of its bytes: 50 to
    /// 20,000. None: 1,000.
    pub budget: Option<u32>,
    /// What the conversation is about: memories that answer it come first.
    pub query: Option<String>,
    /// Memories with any of these tags come next.
    pub tags: Vec<String>,
}

impl ContextOptions {
    /// With at most so many tokens.
    #[must_use]
    pub fn budget(mut self, tokens: u32) -> Self {
        self.budget = Some(tokens);
        self
    }

    /// With what answers this first.
    #[must_use]
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// With what carries any of these tags next.
    #[must_use]
    pub fn tags(mut self, tags: Vec<String>) -> Self {
        self.tags = tags;
        self
    }
}

impl Plugin {
    /// The memories that matter most to a session, as text for its prompt: each
    /// with its dates, source and origin, whole or not at all, within a budget,
    /// and nothing above the session's level.
    ///
    /// # Errors
    /// What the plugin says of the options, or what kept it from being asked.
    pub fn context(
        &self,
        session: &Session,
        options: &ContextOptions,
    ) -> Result<String, ToolError> {
        let arguments = ContextArguments {
            budget: options.budget,
            query: options.query.clone(),
            tags: options.tags.clone(),
        };
        let answer = self.call(session, |plugin, store| {
            plugin.remora_memory_tools().call_context(store, &arguments)
        })?;
        answer.map_err(|error| ToolError::from(&said(error)))
    }
}

fn said(error: MemoryError) -> Error {
    let (kind, problem) = match error {
        MemoryError::InvalidArgument(problem) => (ErrorKind::InvalidArgument, problem),
        MemoryError::NotFound(problem) => (ErrorKind::NotFound, problem),
        MemoryError::NoSuchRecordAtLevel(problem) => (ErrorKind::NoSuchRecordAtLevel, problem),
        MemoryError::TooLarge(problem) => (ErrorKind::TooLarge, problem),
        MemoryError::Refused(problem) => (ErrorKind::Refused, problem),
        MemoryError::Unavailable(problem) => (ErrorKind::Unavailable, problem),
    };
    let Problem {
        what,
        allowed,
        remedy,
    } = problem;
    Error::new(kind, what, allowed, remedy)
}
