//! The options that every command takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use remora_host::{Error, ErrorKind, Level, Origin, Plugin, PluginOptions, SessionOptions};

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
        hide_short_help = true,
        global = true
    )]
    pub(crate) store: Option<OsString>,

    /// The store was named on the command line, and not by the environment.
    #[arg(skip)]
    pub(crate) store_given: bool,

    /// Whose memory: the namespace, apart from all others [default: default]
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub(crate) agent: Option<String>,

    /// The session to act in; made if it is new. Without it the command is a
    /// session of its own, at --taint or else PUBLIC
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub(crate) session: Option<String>,

    /// Raise the session to at least PUBLIC, INTERNAL, CONFIDENTIAL or
    /// RESTRICTED
    #[arg(long, value_name = "LEVEL", global = true, hide_short_help = true)]
    pub(crate) taint: Option<Level>,

    /// The most that the session's audience may see; fixed when it is made
    /// [default: RESTRICTED]
    #[arg(long, value_name = "LEVEL", global = true, hide_short_help = true)]
    pub(crate) clearance: Option<Level>,

    /// Whose words the session passes on: user, agent or tool. Only falls
    /// [default: user, and agent for serve]
    #[arg(long, value_name = "ORIGIN", global = true, hide_short_help = true)]
    pub(crate) origin: Option<Origin>,

    /// Run this component instead of the one that this program carries
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) component: Option<PathBuf>,

    /// Answer in JSON, failures too
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) json: bool,
}

/// An option that may be given and not be heeded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    Store,
    Agent,
    Session,
    Taint,
    Clearance,
    Origin,
    Component,
}

impl Given {
    /// What says where memories are, and whose.
    pub(crate) const STORE_AND_SESSION: &[Self] = &[
        Self::Store,
        Self::Agent,
        Self::Session,
        Self::Taint,
        Self::Clearance,
        Self::Origin,
    ];
    /// All of these.
    pub(crate) const ALL: &[Self] = &[
        Self::Store,
        Self::Agent,
        Self::Session,
        Self::Taint,
        Self::Clearance,
        Self::Origin,
        Self::Component,
    ];
    /// What says which session, and what it is to be.
    pub(crate) const SESSION: &[Self] =
        &[Self::Session, Self::Taint, Self::Clearance, Self::Origin];

    fn name(self) -> &'static str {
        match self {
            Self::Store => "--store",
            Self::Agent => "--agent",
            Self::Session => "--session",
            Self::Taint => "--taint",
            Self::Clearance => "--clearance",
            Self::Origin => "--origin",
            Self::Component => "--component",
        }
    }

    fn given(self, globals: &Globals) -> bool {
        match self {
            Self::Store => globals.store_given,
            Self::Agent => globals.agent.is_some(),
            Self::Session => globals.session.is_some(),
            Self::Taint => globals.taint.is_some(),
            Self::Clearance => globals.clearance.is_some(),
            Self::Origin => globals.origin.is_some(),
            Self::Component => globals.component.is_some(),
        }
    }
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

    /// Refuses the options of `refused` that a command would not heed.
    ///
    /// What the environment says is for whoever heeds it.
    pub(crate) fn refuse(&self, command: &str, refused: &[Given]) -> Result<(), Error> {
        let Some(option) = refused.iter().find(|option| option.given(self)) else {
            return Ok(());
        };
        Err(Error::invalid(
            format!("`remora {command}` does not take {}", option.name()),
            match option {
                Given::Component if command == "component" => {
                    "It writes the component that this program carries"
                }
                _ if matches!(command, "tools" | "spine" | "component" | "tour") => {
                    "It is about the program, and not about a store or a session in it"
                }
                _ if command.starts_with("session ") => {
                    "It acts in no session, and the one that it is about is an argument"
                }
                Given::Agent => "It is about the whole store, and not about one agent's memory",
                _ => "It is the operator's: it is about the store, and acts in no session",
            },
            "Leave it out",
        ))
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
                    Error::new(
                        ErrorKind::Plugin,
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
