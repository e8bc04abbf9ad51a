//! The policy of Remora's memory, as a sandboxed component.
//!
//! A host hands this component the shelves that a session may read and a place to write;
//! the component decides what is shadowed, what is valid and how an answer reads. It has
//! no clock, files, network or environment: what it knows of the world comes through the
//! two interfaces it imports (`wit/session.wit`, `wit/storage.wit`).
//!
//! Read in this order:
//!
//! 1. [`classification`]: which levels flow where, checked on everything the host hands out;
//! 2. [`shadow`]: which version of a key is seen, and merging the shelves;
//! 3. [`validate`]: what callers may pass;
//! 4. [`tools`]: the operations, made of the three above, and [`block`], what a prompt gets;
//! 5. [`toolbox`]: the same by name and JSON.
//!
//! # Trust
//!
//! The host enforces levels by itself. The check here is a second one that shares no code
//! with it, and neither relies on the other. A store's answers are not trusted to be in
//! order, whole or finite: a hostile host gets a wrong answer or an error, never a panic.
//!
//! # Performance
//!
//! Every call gets a fresh instance, so nothing is built ahead of use: schemas are text
//! that only `describe` reads, and a `get` is one host call per shelf it looks at.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

pub mod block;
pub mod classification;
pub mod contract;
pub mod cursor;
pub mod host;
pub mod ignored;
pub mod moment;
pub mod provenance;
pub mod shadow;
pub mod toolbox;
pub mod tools;
pub mod validate;

mod answers;
mod glue;

#[cfg(test)]
mod fake;
