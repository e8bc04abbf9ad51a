//! What finds a memory by what is in it, apart from where the index is kept.

pub mod analyser;
