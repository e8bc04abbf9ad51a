//! Runs a memory plugin: one component, a fresh instance for every call.
//!
//! # Isolation
//!
//! An instance lives for one call and is thrown away, so nothing in a plugin's
//! memory carries words from one session to another. It has the imports of
//! `remora:memory` and no others: no clock, files, network or environment.
//!
//! # Bounds
//!
//! Computation is bounded by fuel, memory by a limit, requests to the host and
//! the time of the SQL under them by [`CallLimits`], and instances at once by
//! [`PluginOptions::concurrent_calls`]. Past a bound the call ends with an error
//! and the host is as it was.
//!
//! # Performance
//!
//! Instances come from wasmtime's pool, which maps a component's memory copy on
//! write: a call costs some tens of microseconds. Compiling a component takes a
//! second or so, once for a version of it: [`PluginOptions::cache_folder`] keeps
//! the result.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{
    Cache, CacheConfig, Config, Enabled, Engine, InstanceAllocationStrategy,
    PoolingAllocationConfig, StoreLimits, StoreLimitsBuilder, Trap,
};

use crate::bindings::{MemoryPlugin, MemoryPluginPre, RemoraView, add_to_linker, toolbox};
use crate::error::{Error, ErrorKind};
use crate::grant::{CallLimits, Exhausted, Grant};
use crate::hook;
use crate::session::Session;

/// How long a call may take when nothing else is said.
pub(crate) const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// The version of `remora:memory` that this host offers.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// The component that this crate was built with: Remora's own policy.
pub const EMBEDDED_COMPONENT: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/remora.component.wasm"));

/// How a plugin is run.
#[derive(Clone, Debug)]
pub struct PluginOptions {
    /// Where compiled components are kept between runs. It holds machine code
    /// that will be run, so it must belong to the user alone. None: nowhere, and
    /// each [`Plugin`] takes a second or so to compile.
    pub cache_folder: Option<PathBuf>,
    /// What one call may do.
    pub limits: CallLimits,
    /// How much one call may compute, in wasmtime's units of fuel: about one
    /// for each instruction.
    pub fuel: u64,
    /// Bytes of linear memory that one call may use.
    pub memory_bytes: usize,
    /// Calls at once; more wait for a place.
    pub concurrent_calls: u32,
}

impl Default for PluginOptions {
    fn default() -> Self {
        Self {
            cache_folder: None,
            limits: CallLimits::default(),
            // The largest save that is allowed takes a few ten million; this is
            // about two seconds of a loop.
            fuel: 2_000_000_000,
            memory_bytes: 64 * 1024 * 1024,
            concurrent_calls: 16,
        }
    }
}

/// A compiled plugin, ready to be called by any session from any thread.
pub struct Plugin {
    engine: Engine,
    pre: MemoryPluginPre<CallState>,
    options: PluginOptions,
    places: Places,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What stands in the store of an instance.
pub struct CallState {
    grant: Grant,
    table: ResourceTable,
    memory: StoreLimits,
}

impl std::fmt::Debug for CallState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallState")
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

impl CallState {
    fn view(&mut self) -> RemoraView<'_> {
        RemoraView {
            grant: &mut self.grant,
            table: &mut self.table,
        }
    }
}

/// A tool as a model is told of it.
pub type Tool = toolbox::Tool;

/// Why a tool call failed, as a model is told it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// See [`ErrorKind::code`]; also `unknown_tool`.
    pub code: String,
    /// What was wrong, what is allowed, what to do next.
    pub message: String,
}

impl From<&Error> for ToolError {
    fn from(error: &Error) -> Self {
        Self {
            code: error.kind().code().to_owned(),
            message: error.to_string(),
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        if let Some(cause) = std::error::Error::source(&error) {
            tracing::warn!(cause = %crate::error::chain(cause), "{error}");
        }
        Self::from(&error)
    }
}

impl Plugin {
    /// Remora's own component.
    ///
    /// # Errors
    /// [`ErrorKind::Plugin`] when this machine can't run it.
    pub fn embedded(options: PluginOptions) -> Result<Self, Error> {
        Self::new(EMBEDDED_COMPONENT, options)
    }

    /// Compiles a component, or finds it compiled in the cache.
    ///
    /// # Errors
    /// [`ErrorKind::Plugin`] when it is no component, wants imports other than
    /// `remora:memory`'s, or another version of them.
    pub fn new(component: &[u8], options: PluginOptions) -> Result<Self, Error> {
        let engine = engine(&options)?;
        let component = Component::new(&engine, component).map_err(|error| {
            plugin_error(
                "The plugin can't be compiled",
                "A plugin is a WebAssembly component",
                "Check the file, or build it again",
                error,
            )
        })?;
        let mut linker = Linker::<CallState>::new(&engine);
        let linked = add_to_linker(&mut linker, CallState::view)
            .and_then(|()| linker.instantiate_pre(&component))
            .and_then(MemoryPluginPre::new);
        let pre = linked.map_err(|error| match drift(&engine, &component) {
            Some(version) => plugin_error(
                format!("The plugin was built for version {version} of remora:memory"),
                format!("This host offers version {CONTRACT_VERSION}"),
                "Build it against the wit/ folder of this host, or use a host of its version",
                error,
            ),
            None => plugin_error(
                "The plugin does not fit the world remora:memory/memory-plugin",
                "It may import session and storage, and must export tools and toolbox",
                "Build it against the wit/ folder of this host",
                error,
            ),
        })?;
        Ok(Self {
            engine,
            pre,
            places: Places::new(options.concurrent_calls),
            options,
        })
    }

    /// The tools it offers, in its own order.
    ///
    /// # Errors
    /// [`ErrorKind::Plugin`].
    pub fn tools(&self) -> Result<Vec<Tool>, Error> {
        self.with(Grant::of_nothing(), |plugin, store| {
            plugin.remora_memory_toolbox().call_describe(store)
        })
    }

    /// Text for a system prompt: when to save, what not to, how to read answers.
    ///
    /// # Errors
    /// [`ErrorKind::Plugin`].
    pub fn instructions(&self) -> Result<String, Error> {
        self.with(Grant::of_nothing(), |plugin, store| {
            plugin.remora_memory_toolbox().call_instructions(store)
        })
    }

    /// Calls a tool for a session, with arguments and answer in JSON. Blocks.
    ///
    /// The session is read afresh, what only the host decides is taken out of
    /// the arguments and audited, then the plugin answers.
    ///
    /// # Errors
    /// What the tool says, or what kept it from being called, in the same form.
    pub fn invoke(
        &self,
        session: &Session,
        tool: &str,
        arguments: &str,
    ) -> Result<String, ToolError> {
        // The session comes first: where it can't be read nothing else is said.
        // A model is told which file failed, and not where the host keeps it.
        let mut grant = Grant::for_call(session, self.options.limits)
            .map_err(|error| error.without_path(&session.store().location()))?;
        let hook::Screened { arguments, ignored } = hook::screen(arguments)?;
        for argument in &ignored {
            grant.note_ignored(*argument)?;
        }
        let arguments = arguments.into_owned();
        let answer = self.with(grant, |plugin, store| {
            plugin
                .remora_memory_toolbox()
                .call_invoke(store, tool, &arguments)
        })?;
        match answer {
            Ok(answer) => Ok(hook::notice(answer, &ignored)),
            Err(error) => Err(ToolError {
                code: error.code,
                message: error.message,
            }),
        }
    }

    /// Calls a plugin's typed functions for a session: `call` gets a fresh
    /// instance and its store.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when the session can't be read,
    /// [`ErrorKind::Plugin`] when the plugin fails.
    pub fn call<R>(
        &self,
        session: &Session,
        call: impl FnOnce(&MemoryPlugin, &mut wasmtime::Store<CallState>) -> wasmtime::Result<R>,
    ) -> Result<R, Error> {
        self.with(Grant::for_call(session, self.options.limits)?, call)
    }

    fn with<R>(
        &self,
        grant: Grant,
        call: impl FnOnce(&MemoryPlugin, &mut wasmtime::Store<CallState>) -> wasmtime::Result<R>,
    ) -> Result<R, Error> {
        let _place = self.places.take();
        let state = CallState {
            grant,
            table: ResourceTable::new(),
            memory: StoreLimitsBuilder::new()
                .memory_size(self.options.memory_bytes)
                .build(),
        };
        let mut store = wasmtime::Store::new(&self.engine, state);
        store.limiter(|state| &mut state.memory);
        store
            .set_fuel(self.options.fuel)
            .and_then(|()| self.pre.instantiate(&mut store))
            .and_then(|plugin| call(&plugin, &mut store))
            .map_err(failed)
    }
}

/// Why a call ended early.
fn failed(error: wasmtime::Error) -> Error {
    let what = if error.downcast_ref::<Exhausted>().is_some() {
        "The plugin asked for too much in one call"
    } else if error.downcast_ref::<Trap>() == Some(&Trap::OutOfFuel) {
        "The plugin computed for too long"
    } else {
        "The plugin failed"
    };
    plugin_error(
        what,
        "Nothing more was done for this call",
        "Ask for less, or tell the operator",
        error,
    )
}

fn plugin_error(
    what: impl Into<String>,
    allowed: impl Into<String>,
    remedy: impl Into<String>,
    cause: wasmtime::Error,
) -> Error {
    Error::new(ErrorKind::Plugin, what, allowed, remedy).caused_by(cause)
}

fn engine(options: &PluginOptions) -> Result<Engine, Error> {
    let mut config = Config::new();
    config.wasm_component_model(true).consume_fuel(true);
    if let Some(folder) = &options.cache_folder {
        let mut cache = CacheConfig::new();
        cache.with_directory(folder);
        match Cache::new(cache) {
            Ok(cache) => {
                config.cache(Some(cache));
            }
            // Slower starts, nothing worse.
            Err(error) => tracing::warn!("compiled plugins are not kept: {error:#}"),
        }
    }
    let places = options.concurrent_calls.max(1);
    let mut pool = PoolingAllocationConfig::new();
    // A component of wit-component's has up to four core instances and tables:
    // the module, an adapter's and two that tie them together.
    pool.total_component_instances(places)
        .total_core_instances(places.saturating_mul(4))
        .total_tables(places.saturating_mul(4))
        .total_memories(places)
        .max_memory_size(options.memory_bytes)
        // What a call usually touches is put back by hand, which is cheaper than
        // giving pages away and taking them again: together these three halve
        // what an instance costs (`cargo bench --bench ratios`). Only pages that
        // were written are looked at where the kernel tells which (Linux 6.7).
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(64 * 1024)
        .pagemap_scan(Enabled::Auto);
    let on_demand = config.clone();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
        .or_else(|error| {
            // The pool reserves address space, which some systems ration.
            tracing::warn!("no pool of instances: {error:#}");
            Engine::new(&on_demand)
        })
        .map_err(|error| {
            plugin_error(
                "WebAssembly can't be run on this machine",
                "",
                "See the cause in the log",
                error,
            )
        })
}

/// The version of the contract that a component wants, where it is another one.
fn drift(engine: &Engine, component: &Component) -> Option<String> {
    let kind = component.component_type();
    kind.imports(engine)
        .map(|(name, _)| name)
        .chain(kind.exports(engine).map(|(name, _)| name))
        .filter(|name| name.starts_with("remora:memory/"))
        .filter_map(|name| name.rsplit_once('@').map(|(_, version)| version.to_owned()))
        .find(|version| version != CONTRACT_VERSION)
}

/// How many calls may still begin: the pool has a slot for each.
#[derive(Debug)]
struct Places {
    free: Arc<(Mutex<u32>, Condvar)>,
}

/// One call's place, given back when it is dropped.
struct Place {
    free: Arc<(Mutex<u32>, Condvar)>,
}

impl Places {
    fn new(count: u32) -> Self {
        Self {
            free: Arc::new((Mutex::new(count.max(1)), Condvar::new())),
        }
    }

    fn take(&self) -> Place {
        let (free, freed) = &*self.free;
        let mut count = freed
            .wait_while(
                free.lock().unwrap_or_else(PoisonError::into_inner),
                |count| *count == 0,
            )
            .unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        drop(count);
        Place {
            free: Arc::clone(&self.free),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (free, freed) = &*self.free;
        let mut count = free.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_add(1);
        freed.notify_one();
    }
}
