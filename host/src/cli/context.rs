//! What a command has at hand: its options, its console, and the store and
//! plugin once it needs them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use remora_host::storage::SqliteStorage;
use remora_host::storage::sqlite::SqliteOptions;
use remora_host::{Error, ErrorKind, Origin, Plugin, Session, Store, SystemClock};
use serde_json::Value;

use super::console::Console;
use super::globals::Globals;
use super::operator::progress::Line;

#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) globals: Globals,
    pub(crate) console: Console<'a>,
    plugin: Option<Arc<Plugin>>,
    store: Option<PathBuf>,
    serving: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(globals: Globals, console: Console<'a>, plugin: Option<Arc<Plugin>>) -> Self {
        Self {
            globals,
            console,
            plugin,
            store: None,
            serving: false,
        }
    }

    /// The store's folder, once the command has come to it.
    pub(crate) fn store_folder(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// The store's folder as the options name it.
    pub(crate) fn name_store(&mut self) -> Result<PathBuf, Error> {
        let folder = self.globals.store_folder()?;
        Ok(self.store.insert(folder).clone())
    }

    /// Opens the store that the options name, and makes it where there is none.
    pub(crate) fn open_store(&mut self) -> Result<Store, Error> {
        let storage = self.open_storage()?;
        Ok(Store::with(Arc::new(storage), Arc::new(SystemClock)))
    }

    /// The same, as what the operator works on.
    pub(crate) fn open_storage(&mut self) -> Result<SqliteStorage, Error> {
        let folder = self.name_store()?;
        tracing::debug!(store = %folder.display(), "opening");
        // Where it can't be looked into, opening it says why.
        let new = fs::symlink_metadata(folder.join("store.key"))
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let store = SqliteStorage::open(&folder, self.sqlite_options())?;
        if new {
            self.say(&format!("a new store was made in {}.", store.location()));
        }
        Ok(store)
    }

    /// How a store is opened here: where a person watches, long work that comes with
    /// it shows how far it is. A server must not wait for whoever watches; it logs.
    pub(crate) fn sqlite_options(&self) -> SqliteOptions {
        let options = SqliteOptions::default();
        if self.serving {
            return options;
        }
        options.watch(|| {
            let mut line = Line::new();
            Box::new(move |progress| line.tell(&progress))
        })
    }

    /// A note before a command does its work, which it does whether or not anybody
    /// reads notes.
    pub(crate) fn say(&mut self, text: &str) {
        let _gone = self.console.note(text);
    }

    /// The component, loaded when it is first needed.
    pub(crate) fn plugin(&mut self) -> Result<Arc<Plugin>, Error> {
        if let Some(plugin) = &self.plugin {
            return Ok(Arc::clone(plugin));
        }
        let plugin = self.globals.plugin()?;
        self.plugin = Some(Arc::clone(&plugin));
        Ok(plugin)
    }

    /// The session that the options describe, in the store that they name.
    pub(crate) fn session(&mut self) -> anyhow::Result<Session> {
        self.session_in_use(Origin::User, true)
    }

    /// The session that the options describe, with a note of what that changed
    /// for good; `made`: also where it made one.
    fn session_in_use(&mut self, default_origin: Origin, made: bool) -> anyhow::Result<Session> {
        let store = self.open_store()?;
        let options = self.globals.session_options(default_origin);
        let Some(name) = self.globals.session.clone() else {
            return Ok(store.one_shot(&options)?);
        };
        let before = match store.existing_session(&name) {
            Ok(session) => Some(session.state()?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let session = store.session(&name, &options)?;
        let after = session.state()?;
        match before {
            None if made => self.say(&format!("session \"{name}\" is new, at {}.", after.taint)),
            None => {}
            Some(before) => {
                if before.taint != after.taint {
                    self.say(&format!(
                        "session \"{name}\" rose from {} to {}, for good.",
                        before.taint, after.taint
                    ));
                }
                if before.origin != after.origin {
                    self.say(&format!(
                        "the origin of session \"{name}\" fell from {} to {}, for good.",
                        before.origin, after.origin
                    ));
                }
            }
        }
        if let (Some(_), Some(observed)) = (self.globals.taint, after.observed) {
            // Otherwise the only sign of it would be that nothing is found and
            // writing is refused.
            self.say(&format!(
                "The session has observed {observed}, above its clearance {}: that unlocked \
                 nothing, and the session writes no more.",
                after.clearance
            ));
        }
        Ok(session)
    }

    /// The session that a server serves: named, or else ended with it.
    pub(crate) fn serving_session(&mut self, ephemeral: bool) -> anyhow::Result<Session> {
        self.serving = true;
        let allowed = "serve --session NAME keeps the session under its name: a client that \
                       starts the server again finds it at the level it had reached. \
                       serve --ephemeral starts a new one every time, at --taint or else \
                       PUBLIC, and forgets it at the end";
        match (&self.globals.session, ephemeral) {
            (None, false) => {
                Err(Error::invalid("serve needs a session", allowed, "Add one of the two").into())
            }
            (Some(_), true) => Err(Error::invalid(
                "serve has both --session and --ephemeral",
                allowed,
                "Leave one of them out",
            )
            .into()),
            // That it is new is what one expects of a client's first start.
            _ => self.session_in_use(Origin::Agent, false),
        }
    }

    /// Calls a tool, as an agent would.
    pub(crate) fn invoke(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<String> {
        let session = self.session()?;
        let plugin = self.plugin()?;
        Ok(plugin.invoke(&session, tool, &arguments.to_string())?)
    }
}
