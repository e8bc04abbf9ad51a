//! The MCP server: the plugin's tools over standard input and output, and the block
//! for a prompt.
//!
//! # Concurrency
//!
//! What a client asks for takes effect in the order in which it asked: a call that
//! may change something runs alone, after all that came before it and ahead of all
//! that come behind. Those that only read run side by side, on a pool of blocking
//! threads, as many as the plugin has places for. Nothing about the session is kept
//! here: the plugin's host reads it at every call, so a raise by another process
//! governs the next one.
//!
//! # The end
//!
//! When standard input ends, or a signal asks for it, calls that have begun get
//! a moment to be answered; then the process ends whether they are done or not.
//! What a call has not committed by then is rolled back by the store.

mod block;
mod stdio;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use remora_host::{ContextOptions, Error, ErrorKind, Plugin, Session, ToolError};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    JsonObject, ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RunningService, ServerInitializeError};
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Calls at once: the places that a plugin has when nothing else is said.
const CALLS_AT_ONCE: usize = 16;

/// The most bytes of a client's text that an error repeats.
const ECHO_BYTES: usize = 64;

/// How long calls that have begun may still take once the client has gone.
/// With [`FLUSH`] and the end of the process it stays under a second, which is
/// what clients wait before they kill a server.
const GRACE: Duration = Duration::from_millis(700);

/// How long answers that are ready may take to be written at the end.
const FLUSH: Duration = Duration::from_millis(100);

/// Serves the plugin's tools to the client on standard input and output, until
/// it closes them or a signal ends the process.
///
/// # Errors
/// When the plugin can't say what its tools are, or the process can't have the
/// threads it needs. The client's mistakes are answered, and end nothing.
pub(crate) fn serve(plugin: Arc<Plugin>, session: Session) -> anyhow::Result<()> {
    let server = Server::new(plugin, session)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALLS_AT_ONCE)
        .build()
        .context("The server can't be started")?;
    let served = runtime.block_on(run(server));
    // Without waiting for calls that are still running: see "The end".
    runtime.shutdown_background();
    served
}

async fn run(server: Server) -> anyhow::Result<()> {
    let signal = signal().context("Signals can't be received")?;
    let (stdio, ends) = stdio::open().context("Standard input and output can't be used")?;
    let serving = async {
        match server.serve(stdio).await {
            Ok(running) => RunningService::waiting(running)
                .await
                .map(drop)
                .context("The server failed"),
            // A client may go before it has said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error).context("The client could not be served"),
        }
    };
    let ending = async {
        tokio::select! {
            () = ends.ended.notified() => {}
            () = signal => ends.stop_reading(),
        }
        tokio::time::sleep(GRACE).await;
    };
    let served = tokio::select! {
        served = serving => served,
        () = ending => {
            tracing::warn!("the client has gone, and calls were left unfinished");
            Ok(())
        }
    };
    // Gone with the transport, or stuck with a client that does not read.
    let _ = tokio::time::timeout(FLUSH, ends.written).await;
    served
}

/// Resolves when the process is asked to end. Asks for the signals at once.
#[cfg(unix)]
fn signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Resolves when the process is asked to end.
#[cfg(not(unix))]
fn signal() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without it the process ends by the system's own handler.
            std::future::pending::<()>().await;
        }
    })
}

/// What answers a client's requests.
struct Server {
    plugin: Arc<Plugin>,
    session: Session,
    tools: Vec<Tool>,
    config: ServerConfig,
    /// Who has it may call the plugin: many to read, one to write. It is handed on in the
    /// order in which it was asked for, and requests are begun in the order of their lines.
    turn: Arc<RwLock<()>>,
}

impl Server {
    fn new(plugin: Arc<Plugin>, session: Session) -> anyhow::Result<Self> {
        let tools = tools(&plugin)?;
        let instructions = plugin
            .instructions()
            .context("The plugin has no instructions")?;
        let config = ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_prompts()
                .enable_resources()
                .build(),
        )
        .with_server_info(
            Implementation::new("remora", env!("CARGO_PKG_VERSION")).with_title("Remora"),
        )
        .with_instructions(instructions);
        Ok(Self {
            plugin,
            session,
            tools,
            config,
            turn: Arc::default(),
        })
    }
}

/// A call's turn, as long as it is kept.
enum Turn {
    Reading(#[expect(dead_code, reason = "kept, not used")] OwnedRwLockReadGuard<()>),
    Writing(#[expect(dead_code, reason = "kept, not used")] OwnedRwLockWriteGuard<()>),
}

impl Server {
    /// Waits until a tool may be called.
    async fn turn(&self, tool: &str) -> Turn {
        let reads = self.tools.iter().any(|known| {
            let hints = known.annotations.as_ref();
            known.name == tool && hints.and_then(|hints| hints.read_only_hint) == Some(true)
        });
        let turn = Arc::clone(&self.turn);
        if reads {
            Turn::Reading(turn.read_owned().await)
        } else {
            Turn::Writing(turn.write_owned().await)
        }
    }

    /// The block for a prompt, as the session's level allows it now.
    async fn block(
        &self,
        context: &RequestContext<RoleServer>,
        options: ContextOptions,
    ) -> Result<String, ErrorData> {
        let plugin = Arc::clone(&self.plugin);
        let session = self.session.clone();
        let turn = Arc::clone(&self.turn).read_owned().await;
        let answer = blocking(context, move || {
            let _turn = turn;
            plugin.context(&session, &options)
        })
        .await?;
        answer.map_err(block::failed)
    }
}

/// Does what takes its time where that holds up nobody else.
async fn blocking<T: Send + 'static>(
    context: &RequestContext<RoleServer>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorData> {
    let cancelled = context.ct.clone();
    // One that has begun goes on, and its answer is what came of it. At the end all are
    // cancelled at once, so that what was done is what came first.
    let call = tokio::task::spawn_blocking(move || (!cancelled.is_cancelled()).then(work));
    match call.await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(ErrorData::internal_error(
            "The call was cancelled before it began",
            None,
        )),
        Err(error) => {
            tracing::error!("a call failed: {error}");
            Err(ErrorData::internal_error("The call failed", None))
        }
    }
}

/// The plugin's tools in the words of MCP: what `tools/list` answers.
///
/// # Errors
/// [`ErrorKind::Plugin`] when it can't say, or a schema of one is no JSON object.
pub(crate) fn tools(plugin: &Plugin) -> Result<Vec<Tool>, Error> {
    plugin.tools()?.into_iter().map(tool).collect()
}

fn tool(tool: remora_host::Tool) -> Result<Tool, Error> {
    let schema = |json: &str| -> Result<Arc<JsonObject>, Error> {
        serde_json::from_str(json).map(Arc::new).map_err(|error| {
            Error::new(
                ErrorKind::Plugin,
                format!("A schema of {} is no JSON object: {error}", tool.name),
                "A plugin describes its tools with JSON Schema",
                "Report it to the plugin's author",
            )
        })
    };
    let input = schema(&tool.input_schema)?;
    let output = schema(&tool.output_schema)?;
    let annotations = ToolAnnotations::new()
        .read_only(tool.read_only)
        .destructive(tool.destructive)
        .idempotent(tool.idempotent)
        .open_world(false);
    Ok(Tool::new(tool.name, tool.description, input)
        .with_title(tool.title)
        .with_raw_output_schema(output)
        .with_annotations(annotations))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.config.clone()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = context
            .extensions
            .get::<stdio::Arguments>()
            .map(|arguments| Arc::clone(&arguments.0))
            .ok_or_else(|| ErrorData::internal_error("The arguments are lost", None))?;
        let plugin = Arc::clone(&self.plugin);
        let session = self.session.clone();
        let turn = self.turn(&request.name).await;
        // A call that was cancelled may go on: it keeps its turn until it is done.
        let answer = blocking(&context, move || {
            let _turn = turn;
            plugin.invoke(&session, &request.name, &arguments)
        })
        .await?;
        result(answer).map(CallToolResponse::from)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![block::prompt()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != block::PROMPT {
            return Err(ErrorData::invalid_params(
                format!(
                    "There is no prompt {:?}. There is {}.",
                    request.name,
                    block::PROMPT
                ),
                None,
            ));
        }
        let options = block::options(request.arguments.as_ref())?;
        let text = self.block(&context, options).await?;
        Ok(block::prompt_result(text).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![block::resource()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != block::RESOURCE {
            return Err(ErrorData::resource_not_found(
                format!(
                    "There is no resource {:?}. There is {}.",
                    request.uri,
                    block::RESOURCE
                ),
                None,
            ));
        }
        let text = self.block(&context, ContextOptions::default()).await?;
        Ok(block::resource_result(text).into())
    }

    /// A request that rmcp could read as none it knows: its method is unknown,
    /// or its parameters are not that method's.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if matches!(
            request.method.as_str(),
            "initialize"
                | "ping"
                | "tools/list"
                | "prompts/list"
                | "prompts/get"
                | "resources/list"
                | "resources/read"
        ) {
            return Err(ErrorData::invalid_params(
                format!("The parameters of {} can't be read", request.method),
                None,
            ));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("There is no method {}", quoted(&request.method)),
            None,
        ))
    }
}

/// A client's text for an error: quoted, escaped and not too long.
fn quoted(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(ECHO_BYTES)];
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", shown.escape_debug())
}

/// A tool's answer as MCP puts it. What went wrong with a call is a result that
/// the model sees; only a tool that does not exist is an error of the protocol.
fn result(answer: Result<String, ToolError>) -> Result<CallToolResult, ErrorData> {
    match answer {
        Ok(answer) => Ok(match serde_json::from_str::<JsonObject>(&answer) {
            Ok(object) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(answer)]);
                result.structured_content = Some(Value::Object(object));
                result
            }
            Err(error) => {
                tracing::error!("the plugin's answer is no JSON object: {error}");
                failure("plugin_failed", "The plugin's answer can't be read.")
            }
        }),
        Err(error) if error.code == "unknown_tool" => {
            Err(ErrorData::invalid_params(error.message, None))
        }
        Err(error) => Ok(failure(&error.code, &error.message)),
    }
}

/// In text alone: clients hold structured content to the tool's output schema,
/// some of them that of a failure too.
fn failure(code: &str, message: &str) -> CallToolResult {
    let failure = json!({"error": {"code": code, "message": message}});
    CallToolResult::error(vec![ContentBlock::text(failure.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: &str) -> Result<CallToolResult, ErrorData> {
        result(Err(ToolError {
            code: code.to_owned(),
            message: "Why.".to_owned(),
        }))
    }

    #[test]
    fn an_answer_is_structured_and_the_same_as_text() {
        let answer = r#"{"found":true,"key":"k"}"#;
        let result = result(Ok(answer.to_owned())).expect("a result");
        let result = serde_json::to_value(result).expect("serialises");
        assert_eq!(result["content"][0]["text"], answer);
        assert_eq!(result["structuredContent"].to_string(), answer);
        assert_ne!(result["isError"], true);
    }

    #[test]
    fn a_number_is_the_same_in_both_forms() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..1000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // Between 1 and 2, with all of their digits.
            let score = f64::from_bits((bits >> 12) | 0x3ff0_0000_0000_0000);
            let answer = json!({"score": score * 17.0}).to_string();
            let result = result(Ok(answer.clone())).expect("a result");
            let structured = result.structured_content.expect("an object");
            assert_eq!(structured.to_string(), answer);
        }
    }

    #[test]
    fn a_failure_is_a_result_with_its_code() {
        let result =
            serde_json::to_value(failed("refused").expect("a result")).expect("serialises");
        assert_eq!(result["isError"], true);
        assert_eq!(
            result["content"][0]["text"],
            r#"{"error":{"code":"refused","message":"Why."}}"#
        );
        assert!(result.get("structuredContent").is_none());
    }

    #[test]
    fn an_unknown_tool_is_an_error_of_the_protocol() {
        let error = failed("unknown_tool").expect_err("an error");
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert_eq!(error.message, "Why.");
    }

    #[test]
    fn an_answer_that_is_no_object_is_the_plugins_failure() {
        for answer in ["[]", "", "7"] {
            let result = result(Ok(answer.to_owned())).expect("a result");
            assert_eq!(result.is_error, Some(true), "{answer}");
        }
    }
}
