//! What can go wrong, said so that the caller knows what to do next.

use std::fmt;

/// The kind of a failure: what the contract's `memory-error` calls its cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is missing, of the wrong type or outside its bounds.
    InvalidArgument,
    /// No such thing, or none that the session may see.
    NotFound,
    /// There is a visible version, but not on the session's own level.
    NoSuchRecordAtLevel,
    /// Past a documented limit. Nothing was cut, nothing was stored.
    TooLarge,
    /// The policy forbids it.
    Refused,
    /// The store can't answer now. Nothing was changed.
    Unavailable,
    /// The plugin itself failed: it trapped, ran out of its limits or speaks
    /// another version of the contract.
    Plugin,
}

impl ErrorKind {
    /// The code that JSON answers carry, `invalid_argument` for example.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::NoSuchRecordAtLevel => "no_such_record_at_level",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Plugin => "plugin_failed",
        }
    }
}

/// A failure: what was wrong, what is allowed, what to do next.
///
/// Shown, it is these three as sentences. What caused it (an I/O or database
/// error) is its [`source`](std::error::Error::source), for logs: it never
/// reaches a guest or a model.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    what: String,
    allowed: String,
    remedy: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A failure of `kind`. Each text is a phrase or sentences without the last
    /// full stop; `allowed` and `remedy` may be empty.
    pub fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        allowed: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                what: what.into(),
                allowed: allowed.into(),
                remedy: remedy.into(),
                source: None,
            }),
        }
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid(
        what: impl Into<String>,
        allowed: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::InvalidArgument, what, allowed, remedy)
    }

    /// [`ErrorKind::Refused`].
    pub fn refused(
        what: impl Into<String>,
        allowed: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::Refused, what, allowed, remedy)
    }

    /// [`ErrorKind::Unavailable`].
    pub fn unavailable(
        what: impl Into<String>,
        allowed: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::Unavailable, what, allowed, remedy)
    }

    /// With what caused it.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// With other words about what is allowed, or what became of it.
    #[must_use]
    pub(crate) fn allowing(mut self, allowed: impl Into<String>) -> Self {
        self.inner.allowed = allowed.into();
        self
    }

    /// As a model may be told it: without the path of `folder`, which is kept in
    /// the cause. What lies in it is named from there on.
    pub(crate) fn without_path(mut self, folder: &str) -> Self {
        let inner = &mut self.inner;
        let mut texts = [&mut inner.what, &mut inner.allowed, &mut inner.remedy];
        if folder.is_empty() || !texts.iter().any(|text| text.contains(folder)) {
            return self;
        }
        let inside = format!("{folder}{}", std::path::MAIN_SEPARATOR);
        for text in &mut texts {
            **text = text.replace(&inside, "").replace(folder, "the store");
        }
        if inner.source.is_none() {
            inner.source = Some(format!("in {folder}").into());
        }
        self
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// What was wrong.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.inner.what
    }

    /// What is allowed. May be empty.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.inner.allowed
    }

    /// What to do next. May be empty.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.inner.remedy
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for text in [self.what(), self.allowed(), self.remedy()] {
            if text.is_empty() {
                continue;
            }
            if !first {
                f.write_str(" ")?;
            }
            first = false;
            f.write_str(text)?;
            if !text.ends_with(['.', '!', '?']) {
                f.write_str(".")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner
            .source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// An error and what lies under it, on one line, for logs.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_kept_to_the_cause() {
        let error = Error::unavailable("/a/b/sessions.db is gone", "", "Run: chmod 600 /a/b");
        let error = error.without_path("/a/b");
        assert_eq!(
            error.to_string(),
            "sessions.db is gone. Run: chmod 600 the store."
        );
        assert_eq!(chain(&error), format!("{error}: in /a/b"));
        let other = Error::unavailable("x is gone", "", "").without_path("/a/b");
        assert_eq!(chain(&other), "x is gone.");
    }

    #[test]
    fn reads_as_sentences_without_its_cause() {
        let error = Error::invalid("The key is empty", "", "Give one.").caused_by("secret");
        assert_eq!(error.to_string(), "The key is empty. Give one.");
        assert_eq!(error.kind().code(), "invalid_argument");
    }
}
