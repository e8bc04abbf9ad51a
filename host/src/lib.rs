//! Host of the Remora memory: what a plugin must not decide for itself.
//!
//! A memory plugin is a WebAssembly component that offers an agent tools to save
//! and find facts. This crate runs it. It tells the plugin how sensitive the
//! session is, keeps the records in one SQLite file a level, and hands the plugin
//! only what the session may read:
//!
//! ```
//! use remora_host::{Level, Origin, Plugin, PluginOptions, SessionOptions, Store};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # let folder = tempfile::tempdir()?;
//!     # std::env::set_current_dir(&folder)?;
//!     let store = Store::open("memory")?;
//!     // One for the process. With a cache folder only the first start compiles.
//!     let options = PluginOptions {
//!         cache_folder: Some("cache".into()),
//!         ..PluginOptions::default()
//!     };
//!     let plugin = Plugin::embedded(options)?;
//!     for tool in plugin.tools()? {
//!         println!("{}: {}", tool.name, tool.description);
//!     }
//!
//!     // One session for each conversation. It is kept under its name: started
//!     // again it has observed what it had observed before. The model calls the
//!     // tools, so the words are its own and not the person's.
//!     let helpdesk = SessionOptions::new("helpdesk").origin(Origin::Agent);
//!     let session = store.session("ticket-4711", &helpdesk)?;
//!     plugin.invoke(
//!         &session,
//!         "memory_save",
//!         r#"{"key": "opening hours", "content": "Nine to five.", "source": "the website"}"#,
//!     )?;
//!
//!     // Before the conversation is shown something confidential, say so. From
//!     // the next call on it may read up to there, and whatever it saves stays
//!     // there: the model has no way to save it lower.
//!     session.raise(Level::Confidential)?;
//!     plugin.invoke(
//!         &session,
//!         "memory_save",
//!         r#"{"key": "customer", "content": "Is about to cancel."}"#,
//!     )?;
//!
//!     // Another conversation of the same agent sees the one and not the other.
//!     let other = store.session("ticket-4712", &helpdesk)?;
//!     let hours = plugin.invoke(&other, "memory_get", r#"{"key": "opening hours"}"#)?;
//!     assert!(hours.contains("Nine to five."));
//!     let customer = plugin.invoke(&other, "memory_get", r#"{"key": "customer"}"#)?;
//!     assert_eq!(customer, r#"{"found":false,"key":"customer"}"#);
//!     Ok(())
//! }
//! ```
//!
//! # Calling
//!
//! [`Plugin::invoke`] blocks, for as long as [`CallLimits`] allows at most: from
//! async code call it on a thread that may block. It can be called from any
//! number of threads; each call gets an instance of its own. A failure is a
//! [`ToolError`], which is what a model should be told; [`Error`] is for the
//! host. Everything in this crate that a model can reach goes through a
//! [`Session`]; [`Store::sessions`] and [`Store::events`] are for the operator.
//!
//! # In a Cargo.toml
//!
//! ```toml
//! remora-host = { path = "…/remora/host", default-features = false }
//! ```
//!
//! The default feature `cli` is the binary's. Building needs the target
//! `wasm32-unknown-unknown`, for the component.
//!
//! # Where the policy is
//!
//! - [`can_flow_to`] is the one comparison of levels; [`Level`] has no order.
//! - [`SessionRow::having_observed`](storage::SessionRow::having_observed) is the
//!   ratchet: how taint rises, and what a clearance holds back.
//! - [`Grant`] is the reference monitor: everything that a plugin asks for in one
//!   call passes through it.
//! - The plugin (crate `remora-guest`) decides shadowing and validation, and
//!   checks levels again, with no code from here.
//!
//! # In an embedder's own store
//!
//! [`Plugin`] owns its engine and linker. A host that has these already calls
//! [`add_to_linker`], makes a [`Grant`] for each call and uses the typed
//! [`bindings`]. Before it passes a model's arguments on it calls [`screen`], and
//! [`notice`] after: what only the host decides is taken out there.
//!
//! # Other databases
//!
//! [`storage::StorageProvider`] is the seam; see [`Store::with`].
#![deny(missing_docs)]

pub mod bindings;
mod clock;
mod error;
mod grant;
mod hook;
mod level;
mod plugin;
mod prompt;
mod provenance;
mod seal;
pub mod search;
mod session;
pub mod storage;

pub use bindings::{Remora, RemoraView, add_to_linker};
pub use clock::{Clock, Instant, SystemClock};
pub use error::{Error, ErrorKind};
pub use grant::{CallLimits, Exhausted, Grant};
pub use hook::{Screened, notice, screen};
pub use level::{Level, can_flow_to};
pub use plugin::{
    CONTRACT_VERSION, CallState, EMBEDDED_COMPONENT, Plugin, PluginOptions, Tool, ToolError,
};
pub use prompt::ContextOptions;
pub use provenance::{Origin, Standing};
pub use session::{Session, SessionOptions, Store};
