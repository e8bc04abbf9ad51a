//! What finds a memory by what is in it, apart from where the index is kept.
//!
//! [`analyser`] turns text into terms, the same for what is saved and what is
//! asked; `query` says which terms a question is made of, `score` what each of
//! them adds to a record's score, and `snippet` shows the part that answers.

pub mod analyser;
pub(crate) mod query;
pub(crate) mod score;
pub(crate) mod snippet;
mod stop;
