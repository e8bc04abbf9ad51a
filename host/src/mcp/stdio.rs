//! JSON-RPC over standard input and output, one message a line.
//!
//! rmcp brings a transport for this. Ours differs in what becomes of a message
//! that is not as it should be: rmcp drops a line that is no JSON, takes a
//! `tools/call` whose arguments are an array for an unknown method, and reads
//! arguments so that of a key that stands twice the last one wins in silence.
//! Here every request is answered, and a call's arguments reach the plugin as
//! the client wrote them.
//!
//! # Threads
//!
//! Both streams block, so each has a thread, and nothing else in the process
//! reads or writes them. Neither thread is waited for at the end: a read from a
//! client that says nothing more can't be called off.
//!
//! # Bounds
//!
//! A line holds at most [`LONGEST_LINE`] bytes; a longer one is answered with an
//! error and passed over, whatever its length.

use std::fmt;
use std::future::Future;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode,
    ErrorData, GetMeta, JsonRpcMessage, JsonRpcRequest, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde::de::IgnoredAny;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use super::quoted;

/// The longest message that is read. The largest save that is allowed takes less
/// than 2 MiB with each of its bytes escaped.
const LONGEST_LINE: u64 = 8 * 1024 * 1024;

/// The arguments of a `tools/call` as the client wrote them: a JSON object. It
/// travels in the request's extensions.
#[derive(Clone, Debug)]
pub(super) struct Arguments(pub(super) Arc<str>);

/// What the reading thread hands over.
enum Line {
    Whole(Vec<u8>),
    /// How one begins that is longer than is read.
    TooLong(Vec<u8>),
    /// Nothing more is to be read.
    End,
}

/// The server's side of standard input and output.
pub(super) struct Stdio {
    incoming: mpsc::UnboundedReceiver<Line>,
    /// None once it is closed.
    outgoing: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// The client has begun: before that, rmcp gives up on a notification.
    begun: bool,
}

/// What its owner keeps of the connection.
pub(super) struct Ends {
    /// Told when standard input has ended.
    pub(super) ended: Arc<Notify>,
    /// Resolves when everything is written and the transport is gone.
    pub(super) written: oneshot::Receiver<()>,
    input: mpsc::UnboundedSender<Line>,
}

impl Ends {
    /// Reads no further, as if standard input had ended here.
    pub(super) fn stop_reading(&self) {
        // Fails where the transport is gone already.
        let _ = self.input.send(Line::End);
    }
}

/// Takes standard input and output.
pub(super) fn open() -> io::Result<(Stdio, Ends)> {
    let (input, incoming) = mpsc::unbounded_channel();
    let (outgoing, lines) = mpsc::unbounded_channel();
    let (done, written) = oneshot::channel();
    let ended = Arc::new(Notify::new());

    let reader = (input.clone(), Arc::clone(&ended));
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let (input, ended) = reader;
            read_lines(&mut io::stdin().lock(), &input);
            ended.notify_one();
        })?;
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            write_lines(&mut io::stdout().lock(), lines);
            // Fails where nobody waits for it.
            let _ = done.send(());
        })?;

    let stdio = Stdio {
        incoming,
        outgoing: Some(outgoing),
        begun: false,
    };
    let ends = Ends {
        ended,
        written,
        input,
    };
    Ok((stdio, ends))
}

/// Reads until the input ends, fails, or nobody wants more of it.
fn read_lines(input: &mut impl BufRead, lines: &mpsc::UnboundedSender<Line>) {
    loop {
        let line = read_line(input).unwrap_or_else(|error| {
            tracing::warn!("standard input can't be read: {error}");
            Line::End
        });
        let last = matches!(line, Line::End);
        if lines.send(line).is_err() || last {
            return;
        }
    }
}

fn read_line(input: &mut impl BufRead) -> io::Result<Line> {
    let mut line = Vec::new();
    input
        .by_ref()
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.ends_with(b"\n") || (line.len() as u64) < LONGEST_LINE {
        return Ok(Line::Whole(line));
    }
    input.skip_until(b'\n')?;
    Ok(Line::TooLong(line))
}

/// Writes until every sender is gone, or the client reads no more.
fn write_lines(output: &mut impl Write, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = lines.blocking_recv() {
        if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
            tracing::warn!("standard output can't be written: {error}");
            return;
        }
    }
}

impl Stdio {
    fn write(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the client has gone");
        let outgoing = self.outgoing.as_ref().ok_or_else(closed)?;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        outgoing.send(line).map_err(|_| closed())
    }

    async fn next_line(&mut self) -> Option<Line> {
        let outgoing = self.outgoing.as_ref()?;
        tokio::select! {
            line = self.incoming.recv() => line,
            // A client that reads no answers asks for none.
            () = outgoing.closed() => None,
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Response(response) = &message
            && !matches!(
                response.result,
                ServerResult::EmptyResult(_) | ServerResult::DiscoverResult(_)
            )
        {
            self.begun = true;
        }
        std::future::ready(self.write(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let read = match self.next_line().await? {
                Line::Whole(line) => read_message(&line),
                Line::TooLong(begin) => {
                    let what = format!("A message has at most {LONGEST_LINE} bytes");
                    Err(Refusal::no_message(id_of(&begin), what))
                }
                Line::End => return None,
            };
            match read {
                Ok(Some(message)) if self.begun => return Some(message),
                Ok(Some(JsonRpcMessage::Request(request))) => match too_early(&request) {
                    None => return Some(JsonRpcMessage::Request(request)),
                    Some(refusal) => drop(self.write(&refusal.into())),
                },
                Ok(_) => {}
                // Where it can't be written, the next turn ends the connection.
                Err(refusal) => drop(self.write(&refusal.into())),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        Ok(())
    }
}

/// What every message has. The other members are rmcp's to read.
#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<Value>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// The parameters of a `tools/call`.
#[derive(Deserialize)]
struct Call<'a> {
    name: Option<Value>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
}

/// Tells a `null` from nothing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The id of a message that can't be read to its end, where it stands ahead of what
/// can't: whoever sent it waits for an answer to it.
fn id_of(begin: &[u8]) -> Option<RequestId> {
    struct Found<'a>(&'a mut Option<RequestId>);
    impl<'de> Visitor<'de> for Found<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
            let mut id = None;
            while let Some(name) = members.next_key::<String>()? {
                // A number is whole once something stands behind it.
                *self.0 = id.take().or(self.0.take());
                if name == "id" {
                    id = Some(members.next_value()?);
                } else {
                    members.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }
    let mut found = None;
    let mut begin = serde_json::Deserializer::from_slice(begin);
    // It fails: the end is missing, or worse.
    let _failed = begin.deserialize_map(Found(&mut found));
    found
}

/// The answer to what could not be read.
#[derive(Debug)]
struct Refusal {
    /// None where the line had none that can be read.
    id: Option<RequestId>,
    code: ErrorCode,
    what: String,
}

impl Refusal {
    fn no_json(error: impl std::fmt::Display) -> Self {
        Self {
            id: None,
            code: ErrorCode::PARSE_ERROR,
            what: format!("A message is one line of JSON: {error}"),
        }
    }

    fn no_message(id: Option<RequestId>, what: impl Into<String>) -> Self {
        Self {
            id,
            code: ErrorCode::INVALID_REQUEST,
            what: what.into(),
        }
    }

    fn bad_parameters(id: RequestId, what: String) -> Self {
        Self {
            id: Some(id),
            code: ErrorCode::INVALID_PARAMS,
            what,
        }
    }
}

impl From<Refusal> for ServerJsonRpcMessage {
    fn from(Refusal { id, code, what }: Refusal) -> Self {
        Self::error(ErrorData::new(code, what, None), id)
    }
}

/// Reads one line: a message, nothing that needs an answer, or the answer to
/// what could not be read.
fn read_message(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Refusal> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let line = std::str::from_utf8(line.trim_ascii()).map_err(|error| Refusal {
        id: id_of(line),
        ..Refusal::no_json(error)
    })?;
    if line.is_empty() {
        return Ok(None);
    }
    // Derived readers take an array for an object's members in their order.
    if !is_object(line) {
        serde_json::from_str::<IgnoredAny>(line).map_err(Refusal::no_json)?;
        let what = "A message is one JSON object, and not a batch";
        return Err(Refusal::no_message(None, what));
    }
    let message: Envelope<'_> = serde_json::from_str(line).map_err(|error| {
        if error.is_data() {
            Refusal::no_message(None, format!("The message can't be read: {error}"))
        } else {
            Refusal {
                id: id_of(line.as_bytes()),
                ..Refusal::no_json(error)
            }
        }
    })?;
    // Answers and notifications get no answer, whatever they are: two peers
    // that answer each other's errors would never end.
    let answer = message.result.is_some() || message.error.is_some();
    let notification = message.method.is_some() && message.id.is_none();
    if answer || notification {
        return Ok(serde_json::from_str(line).ok());
    }

    let id = match &message.id {
        Some(id) => Some(RequestId::deserialize(id).map_err(|_| {
            let what = "The id of a request is a whole number or a string";
            Refusal::no_message(None, what)
        })?),
        None => None,
    };
    if message.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(Refusal::no_message(
            id,
            "A message has \"jsonrpc\": \"2.0\"",
        ));
    }
    match (message.method, id) {
        (Some(Value::String(method)), Some(id)) if method == "tools/call" => {
            match read_call(message.params) {
                Ok(request) => Ok(Some(ClientJsonRpcMessage::request(request, id))),
                Err(what) => Err(Refusal::bad_parameters(id, what)),
            }
        }
        // All else was looked at: what can't be read now is in the parameters.
        (Some(Value::String(method)), Some(id)) => {
            serde_json::from_str(line).map(Some).map_err(|_| {
                let what = format!("The parameters of {} can't be read", quoted(&method));
                Refusal::bad_parameters(id, what)
            })
        }
        (_, id) => Err(Refusal::no_message(id, "A request has a method, a string")),
    }
}

/// The answer to a request that nothing has gone before, where it needs that.
///
/// A request may also bring all that `initialize` would have said, in its metadata:
/// rmcp checks that where there is any sign of it.
fn too_early(request: &JsonRpcRequest<ClientRequest>) -> Option<Refusal> {
    let id = request.id.clone();
    match &request.request {
        ClientRequest::InitializeRequest(_)
        | ClientRequest::PingRequest(_)
        | ClientRequest::DiscoverRequest(_) => None,
        ClientRequest::CustomRequest(custom) if custom.method == "initialize" => {
            let what = "The parameters of initialize can't be read".to_owned();
            Some(Refusal::bad_parameters(id, what))
        }
        other if other.get_meta().protocol_version().is_some() => None,
        _ => Some(Refusal::no_message(
            Some(id),
            "Send initialize first: nothing else is answered before it but ping",
        )),
    }
}

fn read_call(params: Option<&RawValue>) -> Result<ClientRequest, String> {
    let params = params.map_or("", RawValue::get);
    if !is_object(params) {
        return Err("The parameters of tools/call are an object with a name".to_owned());
    }
    let call: Call<'_> = serde_json::from_str(params)
        .map_err(|error| format!("The parameters of tools/call can't be read: {error}"))?;
    let Some(Value::String(name)) = call.name else {
        return Err("The name of the tool to call is missing, or no string".to_owned());
    };
    let arguments = call.arguments.map_or("{}", RawValue::get);
    if !is_object(arguments) {
        return Err(
            "The arguments of a tool are a JSON object; none at all is an empty one".to_owned(),
        );
    }
    let mut request = CallToolRequest::new(CallToolRequestParams::new(name));
    request.extensions.insert(Arguments(arguments.into()));
    let mut request = ClientRequest::CallToolRequest(request);
    if let Some(meta) = call.meta {
        *request.get_meta_mut() = meta;
    }
    Ok(request)
}

fn is_object(json: &str) -> bool {
    json.trim_ascii_start().starts_with('{')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code_and_id(line: &str) -> (i64, Value) {
        let refusal = read_message(line.as_bytes()).expect_err("refused");
        let id = refusal.id.map_or(Value::Null, RequestId::into_json_value);
        (refusal.code.0.into(), id)
    }

    fn arguments(params: &str) -> Arc<str> {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        match read_message(line.as_bytes()) {
            Ok(Some(JsonRpcMessage::Request(request))) => match request.request {
                ClientRequest::CallToolRequest(call) => call
                    .extensions
                    .get::<Arguments>()
                    .expect("are there")
                    .0
                    .clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hands_on_arguments_as_they_were_written() {
        for text in [r#"{"a":1,"a":2}"#, r#"{ "x" : "\ud800", "n":1e2 }"#, "{}"] {
            let params = format!(r#"{{"name":"t","arguments":{text}}}"#);
            assert_eq!(&*arguments(&params), text);
        }
    }

    #[test]
    fn missing_and_null_arguments_are_an_empty_object() {
        assert_eq!(&*arguments(r#"{"name":"t"}"#), "{}");
        assert_eq!(&*arguments(r#"{"name":"t","arguments":null}"#), "{}");
    }

    #[test]
    fn keeps_a_calls_metadata() {
        let line = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","_meta":{"progressToken":7}}}"#;
        let Ok(Some(JsonRpcMessage::Request(request))) = read_message(line.as_bytes()) else {
            panic!("a request");
        };
        assert!(request.request.get_meta().get_progress_token().is_some());
    }

    #[test]
    fn refuses_parameters_of_a_call_that_are_no_call() {
        for params in [
            "[]",
            r#"["t",{}]"#,
            "null",
            "7",
            "{}",
            r#"{"name":null}"#,
            r#"{"name":7}"#,
            r#"{"name":"t","arguments":[]}"#,
            r#"{"name":"t","arguments":"{}"}"#,
            r#"{"name":"t","arguments":7}"#,
            r#"{"name":"t","arguments":{},"arguments":{}}"#,
            r#"{"name":"t","_meta":7}"#,
        ] {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}"#);
            assert_eq!(code_and_id(&line), (-32602, 5.into()), "{params}");
        }
        for method in ["tools/call\"", "tools/list\",\"params\":[]"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}}}"#);
            assert_eq!(code_and_id(&line), (-32602, "x".into()), "{method}");
        }
    }

    #[test]
    fn answers_what_is_no_json_with_a_parse_error() {
        let deep = format!(r#"{{"id":{}"#, "[".repeat(100_000));
        for line in ["{", "nonsense", "{} {}", r#"{"a":}"#, "[1,", &deep] {
            assert_eq!(code_and_id(line), (-32700, Value::Null), "{line:.20}");
        }
        assert!(read_message(b"{\"jsonrpc\":\"\xff\"}").is_err());
    }

    #[test]
    fn answers_json_that_is_no_message_with_an_invalid_request() {
        for (line, id) in [
            ("[]", Value::Null),
            (r#"["2.0",1,"tools/list",{}]"#, Value::Null),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null),
            ("7", Value::Null),
            (r#"{"jsonrpc":"2.0"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1}"#, 1.into()),
            (r#"{"id":1,"method":"ping"}"#, 1.into()),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 1.into()),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, 1.into()),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                Value::Null,
            ),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
                Value::Null,
            ),
        ] {
            assert_eq!(code_and_id(line), (-32600, id), "{line}");
        }
    }

    #[test]
    fn says_nothing_to_blank_lines_notifications_and_answers() {
        for line in [
            "",
            " \r\n",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
            r#"{"id":{},"result":7}"#,
        ] {
            assert!(read_message(line.as_bytes()).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_id_is_found_in_front_of_what_can_not_be_read() {
        for (begin, id) in [
            (
                &br#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"na"#[..],
                Some(json!(42)),
            ),
            (br#"{"id":"a","method":""#, Some(json!("a"))),
            (
                b"{\"params\":{\"a\":[1,{}]},\"id\":7,\"x\":\"\xff\"}",
                Some(json!(7)),
            ),
            // It may not be all of the number.
            (br#"{"id":42"#, None),
            (
                br#"{"jsonrpc":"2.0","method":"tools/call","params":{"id":1,"#,
                None,
            ),
            (br#"{"id":{"a":1},"method":"m","#, None),
            (br#"[{"id":1,"#, None),
            (b"", None),
        ] {
            let found = id_of(begin).map(|id| serde_json::to_value(id).expect("serialises"));
            assert_eq!(found, id, "{}", String::from_utf8_lossy(begin));
        }
        let refusal = read_message(b"{\"id\":5,\"method\":\"\xff\"}").expect_err("no text");
        assert_eq!(refusal.id, Some(RequestId::Number(5)));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_whole() {
        let mut input = vec![b'x'; 2 * LONGEST_LINE as usize];
        input.extend_from_slice(b"\nnext\nlast");
        let mut input = input.as_slice();
        assert!(matches!(read_line(&mut input), Ok(Line::TooLong(_))));
        assert!(matches!(read_line(&mut input), Ok(Line::Whole(line)) if line == b"next\n"));
        assert!(matches!(read_line(&mut input), Ok(Line::Whole(line)) if line == b"last"));
        assert!(matches!(read_line(&mut input), Ok(Line::End)));
    }
}
