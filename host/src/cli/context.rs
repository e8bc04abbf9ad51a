//! What a command has at hand: its options, its console, and the store and
//! plugin once it needs them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use remora_host::{Error, Origin, Plugin, Session, Store};
use serde_json::Value;

use super::console::Console;
use super::globals::Globals;

#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) globals: Globals,
    pub(crate) console: Console<'a>,
    plugin: Option<Arc<Plugin>>,
    store: Option<PathBuf>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(globals: Globals, console: Console<'a>, plugin: Option<Arc<Plugin>>) -> Self {
        Self {
            globals,
            console,
            plugin,
            store: None,
        }
    }

    /// The store's folder, once the command has come to it.
    pub(crate) fn store_folder(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// Opens the store that the options name, and makes it where there is none.
    pub(crate) fn open_store(&mut self) -> Result<Store, Error> {
        let folder = self.globals.store_folder()?;
        tracing::debug!(store = %folder.display(), "opening");
        Store::open(self.store.insert(folder))
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
        let store = self.open_store()?;
        let session = self.globals.session(&store, Origin::User)?;
        self.warn_of_clearance(&session)?;
        Ok(session)
    }

    /// The session that a server serves: named, or else ended with it.
    pub(crate) fn serving_session(&mut self, ephemeral: bool) -> anyhow::Result<Session> {
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
            _ => {
                let store = self.open_store()?;
                let session = self.globals.session(&store, Origin::Agent)?;
                self.warn_of_clearance(&session)?;
                Ok(session)
            }
        }
    }

    /// Calls a tool, as an agent would.
    pub(crate) fn invoke(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<String> {
        let session = self.session()?;
        let plugin = self.plugin()?;
        Ok(plugin.invoke(&session, tool, &arguments.to_string())?)
    }

    /// Says so where `--taint` went above the clearance: otherwise the only sign
    /// of it would be that nothing is found and writing is refused.
    fn warn_of_clearance(&mut self, session: &Session) -> anyhow::Result<()> {
        if self.globals.taint.is_none() {
            return Ok(());
        }
        let row = session.state()?;
        if let Some(observed) = row.observed {
            self.console.note(&format!(
                "The session has observed {observed}, above its clearance {}: that unlocked \
                 nothing, and the session writes no more.",
                row.clearance
            ))?;
        }
        Ok(())
    }
}
