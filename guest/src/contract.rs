//! The types of the contract (`wit/`) under one roof, so that every other module names
//! them without knowing how they were generated.

pub use crate::glue::exports::remora::memory::toolbox::{Tool, ToolError};
pub use crate::glue::exports::remora::memory::tools::{
    Deleted, Found, ListArguments, Listing, Results, SaveArguments, Saved, ShelfStatus,
    StatusReport,
};
pub use crate::glue::remora::memory::storage::{
    Counts, Draft, Entry, Filter, Match, Matches, Memories, Presence, Receipt, TagCount,
};
pub use crate::glue::remora::memory::types::{
    Conflict, Hit, Instant, Level, Memory, MemoryError, Origin, Outcome, Problem, Standing,
};
