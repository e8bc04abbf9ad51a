//! The options that every command takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use remora_host::{Error, Level, Origin, Plugin, PluginOptions, Session, SessionOptions, Store};

use super::paths;

/// The namespace of whoever names none.
const DEFAULT_AGENT: &str = "default";

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// Where memories are kept [default: the platform's data folder]
    #[arg(
        long,
        value_name = "DIR",
        env = "REMORA_STORE",
        hide_env_values = true,
        global = true
    )]
    pub(crate) store: Option<OsString>,

    /// Whose memory: the namespace, apart from all others [default: default]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,

    /// The session to act in; made if it is new. Without it the command is a
    /// session of its own, at --taint or else PUBLIC
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) session: Option<String>,

    /// Raise the session to at least PUBLIC, INTERNAL, CONFIDENTIAL or
    /// RESTRICTED
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) taint: Option<Level>,

    /// The most that the session's audience may see; fixed when it is made
    /// [default: RESTRICTED]
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) clearance: Option<Level>,

    /// Whose words the session passes on: user, agent or tool. Only falls
    /// [default: user, and agent for serve]
    #[arg(long, value_name = "ORIGIN", global = true)]
    pub(crate) origin: Option<Origin>,

    /// Run this component instead of the one that this program carries
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) component: Option<PathBuf>,

    /// Answer in JSON, failures too
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl Globals {
    /// The namespace.
    pub(crate) fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }

    /// The store's folder as an absolute path. It may not exist.
    pub(crate) fn store_folder(&self) -> Result<PathBuf, Error> {
        paths::store_folder(self.store.as_deref())
    }

    /// What a session made now is to be.
    pub(crate) fn session_options(&self, default_origin: Origin) -> SessionOptions {
        SessionOptions {
            agent: self.agent().to_owned(),
            clearance: self.clearance,
            taint: self.taint,
            origin: self.origin.unwrap_or(default_origin),
        }
    }

    /// The session named by `--session`, or one that ends with this process.
    pub(crate) fn session(&self, store: &Store, default_origin: Origin) -> Result<Session, Error> {
        let options = self.session_options(default_origin);
        match &self.session {
            Some(name) => store.session(name, &options),
            None => store.one_shot(&options),
        }
    }

    /// The component, compiled or found in the cache.
    pub(crate) fn plugin(&self) -> Result<Arc<Plugin>, Error> {
        let options = PluginOptions {
            cache_folder: paths::cache_folder(),
            ..PluginOptions::default()
        };
        let plugin = match &self.component {
            None => Plugin::embedded(options)?,
            Some(file) => {
                let bytes = std::fs::read(file).map_err(|error| {
                    Error::unavailable(
                        format!("The component {} can't be read: {error}", file.display()),
                        "--component names a WebAssembly component",
                        "Check the path, or leave it out to use the one that remora carries",
                    )
                })?;
                Plugin::new(&bytes, options)?
            }
        };
        Ok(Arc::new(plugin))
    }
}
