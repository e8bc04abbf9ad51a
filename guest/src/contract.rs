//! The types of the contract (`wit/`) under one roof, so that every other module names
//! them without knowing how they were generated.

pub use crate::glue::exports::remora::memory::toolbox::{Tool, ToolError};
pub use crate::glue::exports::remora::memory::tools::{
    Confirmed, ContextArguments, Deleted, Found, ListArguments, Listing, Past, Results,
    ReviewArguments, ReviewQueue, SaveArguments, Saved, ShelfStatus, StatusReport, Timeline,
};
pub use crate::glue::remora::memory::storage::{
    Counts, Draft, Edge, Entry, Filter, Match, Matches, Memories, Presence, Receipt, StalePosition,
    TagCount,
};
pub use crate::glue::remora::memory::types::{
    Conflict, Hit, Instant, Level, Memory, MemoryError, Origin, Outcome, Problem, Standing,
};
