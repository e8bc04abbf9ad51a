//! What crosses a boundary: the component, the library, files and processes.
//!
//! - [`truth_table`]: every pair of levels for every operation, three times: the
//!   whole, the guest alone, the host alone;
//! - [`policy`]: the promises, a test each;
//! - [`property`]: histories of which the high part is taken away;
//! - [`gate`]: the host's gate over a storage that checks nothing;
//! - [`hostile`]: a plugin without a policy, against the host's bounds;
//! - [`contract`]: the bytes of the component;
//! - [`hook`]: arguments that only the host decides;
//! - [`input`]: arguments that are wrong;
//! - [`trouble`]: disks, files and rows that are not as they should be;
//! - [`concurrency`]: processes at once;
//! - [`killed`]: an operator's commands that are killed on the way;
//! - [`field_cases`]: what went wrong elsewhere;
//! - [`finding`]: what a search finds first;
//! - [`fuzz`]: searches of random documents.

#![expect(
    unreachable_pub,
    reason = "a test binary has no public surface, and its modules share some code"
)]

mod concurrency;
mod contract;
mod field_cases;
mod finding;
mod fuzz;
mod gate;
mod generous;
mod hook;
mod hostile;
mod input;
mod killed;
mod policy;
mod processes;
mod property;
mod trouble;
mod truth_table;
