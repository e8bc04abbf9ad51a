//! The one place where this crate meets generated code: it turns the imports into
//! [`Host`] and [`Shelf`], and the exports into calls of [`Tools`] and [`crate::toolbox`].
//! It decides nothing.

#![allow(
    unsafe_code,
    reason = "wit-bindgen's generated glue lifts and lowers values across the component boundary"
)]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "generated code"
)]

wit_bindgen::generate!({
    world: "memory-plugin",
    path: "../wit",
});

use crate::contract::*;
use crate::host::{Host, Shelf};
use crate::tools::Tools;
use exports::remora::memory::{toolbox, tools};
use remora::memory::{session, storage};

/// What the host imports into every instance.
#[derive(Debug, Clone, Copy)]
pub struct Imports;

impl Shelf for storage::Shelf {
    fn level(&self) -> Level {
        storage::Shelf::level(self)
    }
    fn fetch(&self, key: &str) -> Result<Option<Entry>, MemoryError> {
        storage::Shelf::fetch(self, key)
    }
    fn search(&self, text: &str, after: u32, limit: u32) -> Result<Matches, MemoryError> {
        storage::Shelf::search(self, text, after, limit)
    }
    fn page(
        &self,
        filter: &Filter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Memories, MemoryError> {
        storage::Shelf::page(self, filter, after, limit)
    }
    fn present(&self, keys: &[String]) -> Result<Vec<Presence>, MemoryError> {
        storage::Shelf::present(self, keys)
    }
    fn versions(
        &self,
        key: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Memories, MemoryError> {
        storage::Shelf::versions(self, key, before, limit)
    }
    fn edges(&self, ids: &[String]) -> Result<Vec<Edge>, MemoryError> {
        storage::Shelf::edges(self, ids)
    }
    fn stale(
        &self,
        before: Instant,
        after: Option<&StalePosition>,
        limit: u32,
    ) -> Result<Memories, MemoryError> {
        storage::Shelf::stale(self, before, after, limit)
    }
    fn used(&self, after: u32, limit: u32, excerpt_bytes: u32) -> Result<Memories, MemoryError> {
        storage::Shelf::used(self, after, limit, excerpt_bytes)
    }
    fn counts(&self) -> Result<Counts, MemoryError> {
        storage::Shelf::counts(self)
    }
    fn tags(&self, limit: u32) -> Result<Vec<TagCount>, MemoryError> {
        storage::Shelf::tags(self, limit)
    }
}

impl Host for Imports {
    type Shelf = storage::Shelf;

    fn taint(&self) -> Level {
        session::taint()
    }
    fn clearance(&self) -> Level {
        session::clearance()
    }
    fn origin(&self) -> Origin {
        session::origin()
    }
    fn name(&self) -> String {
        session::name()
    }
    fn now(&self) -> Instant {
        session::now()
    }
    fn shelves(&self) -> Result<Vec<storage::Shelf>, MemoryError> {
        storage::shelves()
    }
    fn put(&self, draft: &Draft) -> Result<Receipt, MemoryError> {
        storage::put(draft)
    }
    fn retire(&self, key: &str, hide_lower: bool) -> Result<Option<String>, MemoryError> {
        storage::retire(key, hide_lower)
    }
    fn stamp(&self, id: &str, source: Option<&str>) -> Result<Instant, MemoryError> {
        storage::stamp(id, source)
    }
    fn used(&self, ids: &[String]) {
        storage::used(ids);
    }
    fn note(&self, argument: &str) -> Result<(), MemoryError> {
        storage::note(argument)
    }
}

struct Component;

impl tools::Guest for Component {
    fn save(arguments: SaveArguments) -> Result<Saved, MemoryError> {
        Tools::new(&Imports).save(arguments)
    }
    fn get(key: String) -> Result<Option<Found>, MemoryError> {
        Tools::new(&Imports).get(&key)
    }
    fn search(query: String, max_results: Option<u32>) -> Result<Results, MemoryError> {
        Tools::new(&Imports).search(&query, max_results)
    }
    fn list(arguments: ListArguments) -> Result<Listing, MemoryError> {
        Tools::new(&Imports).list(arguments)
    }
    fn delete(key: String, hide_lower: bool) -> Result<Deleted, MemoryError> {
        Tools::new(&Imports).delete(&key, hide_lower)
    }
    fn confirm(key: String, source: Option<String>) -> Result<Confirmed, MemoryError> {
        Tools::new(&Imports).confirm(&key, source.as_deref())
    }
    fn review(arguments: ReviewArguments) -> Result<ReviewQueue, MemoryError> {
        Tools::new(&Imports).review(arguments)
    }
    fn history(key: String) -> Result<Timeline, MemoryError> {
        Tools::new(&Imports).history(&key)
    }
    fn context(arguments: ContextArguments) -> Result<String, MemoryError> {
        Tools::new(&Imports).context(arguments)
    }
    fn status() -> Result<StatusReport, MemoryError> {
        Tools::new(&Imports).status()
    }
}

impl toolbox::Guest for Component {
    fn describe() -> Vec<Tool> {
        crate::toolbox::describe()
    }
    fn instructions() -> String {
        crate::toolbox::instructions().to_owned()
    }
    fn invoke(name: String, arguments: String) -> Result<String, ToolError> {
        crate::toolbox::invoke(&Tools::new(&Imports), &name, &arguments)
    }
}

// The names that a component exports by are none that a native linker accepts.
#[cfg(target_arch = "wasm32")]
export!(Component);
