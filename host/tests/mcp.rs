//! The server over standard input and output, spoken to in raw lines of JSON.
//!
//! The same is tried with the official TypeScript client by `tests/mcp/client.mjs`,
//! which needs Node; this needs nothing but the binary.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take on a loaded machine that compiles the component
/// first. Nothing here waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the end of a process may take.
const END: Duration = Duration::from_secs(1);

/// A folder with a store in it that goes away with the test.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn serve(&self, arguments: &[&str]) -> Server {
        let mut command = remora(&self.store());
        command.arg("serve").args(arguments);
        Server::spawn(command)
    }

    /// A server of the session `s` that has been initialised.
    fn server(&self) -> Server {
        let mut server = self.serve(&["--session", "s"]);
        server.initialize();
        server
    }

    fn run(&self, arguments: &[&str]) -> Output {
        remora(&self.store())
            .args(arguments)
            .output()
            .expect("the binary runs")
    }

    fn run_well(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// The binary, on this store. Compiled components are shared between tests.
fn remora(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_remora"));
    command
        .env_remove("RUST_LOG")
        .env("REMORA_STORE", store)
        .env(
            "REMORA_CACHE",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
        );
    command
}

/// A running server. Killed when dropped, if it is there still.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn spawn(command: Command) -> Self {
        Self::spawn_with(command, Stdio::inherit())
    }

    fn spawn_with(mut command: Command, stderr: Stdio) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the server starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            next_id: 1,
        }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("is open");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| stdin.flush())
            .expect("the server reads");
    }

    /// The next line, which must be a message of JSON-RPC.
    fn read(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        message(&line)
    }

    /// Sends a request without waiting; returns its id.
    fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&request.to_string());
        id
    }

    /// Sends a save without waiting.
    fn send_save(&mut self, key: &str, content: &str) -> u64 {
        let arguments = json!({"key": key, "content": content});
        self.send(
            "tools/call",
            json!({"name": "memory_save", "arguments": arguments}),
        )
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn initialize(&mut self) -> Value {
        let answer = self.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer["result"].clone()
    }

    /// Calls a tool, and sees to it that the answer has both of its forms.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        structured(&answer)
    }

    /// Calls a tool that fails; returns the code and the message.
    fn call_badly(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        tool_error(&answer)
    }

    /// Sends `params` of `tools/call` as they are.
    fn call_raw(&mut self, params: &str) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
        ));
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// That many answers by their ids, in whichever order they come.
    fn answers(&self, count: usize) -> BTreeMap<u64, Value> {
        let answers: BTreeMap<u64, Value> = (0..count)
            .map(|_| {
                let answer = self.read();
                (answer["id"].as_u64().expect("a number"), answer)
            })
            .collect();
        assert_eq!(answers.len(), count, "an answer to each");
        answers
    }

    /// Closes standard input and waits for the end, at most [`END`].
    fn close(mut self) -> (ExitStatus, Vec<Value>) {
        self.stdin = None;
        let status = self.ended();
        (
            status,
            self.lines.iter().map(|line| message(&line)).collect(),
        )
    }

    fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("can be waited for") {
                return status;
            }
            assert!(start.elapsed() < END, "runs after {END:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn message(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}

fn structured(answer: &Value) -> Value {
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{answer}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let structured = &result["structuredContent"];
    assert!(structured.is_object(), "{answer}");
    assert_eq!(
        &serde_json::from_str::<Value>(text).expect("JSON"),
        structured
    );
    structured.clone()
}

fn tool_error(answer: &Value) -> (String, String) {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let error: Value = serde_json::from_str(text).expect("JSON");
    let part = |name| error["error"][name].as_str().expect("a text").to_owned();
    (part("code"), part("message"))
}

fn protocol_error(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("no error of the protocol: {answer}"))
}

fn keys(server: &mut Server) -> Vec<String> {
    let listing = server.call("memory_list", json!({"limit": 200}));
    let memories = listing["memories"].as_array().expect("a list");
    memories
        .iter()
        .map(|memory| memory["key"].as_str().expect("a key").to_owned())
        .collect()
}

#[test]
fn introduces_itself_with_instructions_and_what_it_offers() {
    let place = Place::new();
    let mut server = place.serve(&["--ephemeral"]);
    let introduced = server.initialize();
    assert_eq!(introduced["protocolVersion"], "2025-06-18");
    assert_eq!(introduced["serverInfo"]["name"], "remora");
    assert_eq!(
        introduced["serverInfo"]["version"],
        env!("CARGO_PKG_VERSION")
    );
    let capabilities = introduced["capabilities"].as_object().expect("an object");
    assert_eq!(
        capabilities.keys().collect::<Vec<_>>(),
        ["prompts", "resources", "tools"]
    );
    for offered in capabilities.values() {
        assert_ne!(offered["listChanged"], true);
    }
    let spine = place.run_well(&["spine"]);
    let instructions = introduced["instructions"].as_str().expect("a text");
    assert_eq!(instructions.trim_end(), spine.trim_end());
}

#[test]
fn lists_each_tool_with_its_schemas_and_hints() {
    let place = Place::new();
    let answer = place.server().request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().expect("a list");
    for tool in tools {
        assert!(!tool["title"].as_str().expect("a title").is_empty());
        assert!(!tool["description"].as_str().expect("a text").is_empty());
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
        assert_eq!(tool["annotations"]["openWorldHint"], false);
    }
    let printed: Value = serde_json::from_str(&place.run_well(&["tools"])).expect("JSON");
    assert_eq!(
        &printed, &answer["result"]["tools"],
        "the same as `remora tools`"
    );
    for (name, hint, value) in [
        ("memory_save", "readOnlyHint", false),
        ("memory_save", "destructiveHint", false),
        ("memory_save", "idempotentHint", true),
        ("memory_get", "readOnlyHint", true),
        ("memory_delete", "readOnlyHint", false),
        ("memory_delete", "destructiveHint", true),
    ] {
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(tool["annotations"][hint], value, "{name} {hint}");
    }
}

#[test]
fn every_tool_answers() {
    let place = Place::new();
    let mut server = place.server();
    let saved = server.call(
        "memory_save",
        json!({"key": "tea", "content": "Oolong, no milk.", "tags": ["drinks"], "source": "Ada"}),
    );
    assert_eq!(saved["outcome"], "created");
    assert_eq!(saved["classification"], "PUBLIC");
    assert_eq!(saved["origin"], "AGENT");
    let got = server.call("memory_get", json!({"key": "tea"}));
    assert_eq!(got["content"], "Oolong, no milk.");
    let found = server.call("memory_search", json!({"query": "which oolong tea?"}));
    assert_eq!(found["results"][0]["key"], "tea");
    let listing = server.call("memory_list", json!({"tag": "drinks"}));
    assert_eq!(listing["memories"][0]["key"], "tea");
    let status = server.call("memory_status", json!({}));
    assert_eq!(status["session"], "s");
    let deleted = server.call("memory_delete", json!({"key": "tea"}));
    assert_eq!(deleted["still_visible"], Value::Null);
    let gone = server.call("memory_get", json!({"key": "tea"}));
    assert_eq!(gone, json!({"found": false, "key": "tea"}));
}

/// F020
#[test]
fn twenty_saves_sent_without_waiting_are_twenty_stored() {
    let place = Place::new();
    let mut server = place.server();
    let expected: Vec<String> = (0..20).map(|i| format!("k{i:02}")).collect();
    for key in &expected {
        server.send_save(key, "c");
    }
    for answer in server.answers(20).values() {
        assert_eq!(structured(answer)["outcome"], "created");
    }
    assert_eq!(keys(&mut server), expected);
}

/// F022
#[test]
fn seven_saves_at_once_are_seven_rows() {
    let place = Place::new();
    let mut server = place.server();
    for i in 0..7 {
        server.send_save(&format!("k{i}"), "c");
    }
    server.answers(7);
    assert_eq!(keys(&mut server).len(), 7);
}

/// F020: also the order in which they were sent is kept.
#[test]
fn saves_of_one_key_at_once_are_its_versions_in_the_order_of_the_lines() {
    let place = Place::new();
    let mut server = place.server();
    for i in 0..10 {
        server.send_save("k", &format!("content {i}"));
    }
    let versions: Vec<u64> = server
        .answers(10)
        .values()
        .map(|answer| structured(answer)["version"].as_u64().expect("a number"))
        .collect();
    assert_eq!(versions, (1..=10).collect::<Vec<u64>>());
    assert_eq!(keys(&mut server), ["k"]);
    let got = server.call("memory_get", json!({"key": "k"}));
    assert_eq!(got["content"], "content 9");
}

/// What is asked without waiting finds what was changed ahead of it, and nothing of what
/// is changed behind it, whichever tools they are.
#[test]
fn calls_take_effect_in_the_order_of_their_lines() {
    let place = Place::new();
    let mut server = place.server();
    let mut expected = BTreeMap::new();
    for round in 0..20 {
        let content = format!("word{round}");
        for (tool, arguments, path, value) in [
            ("memory_get", json!({"key": "k"}), "/found", json!(false)),
            (
                "memory_save",
                json!({"key": "k", "content": content}),
                "/outcome",
                json!("created"),
            ),
            (
                "memory_get",
                json!({"key": "k"}),
                "/content",
                json!(content),
            ),
            (
                "memory_search",
                json!({"query": content}),
                "/results/0/key",
                json!("k"),
            ),
            (
                "memory_delete",
                json!({"key": "k"}),
                "/deleted",
                json!(true),
            ),
            ("memory_list", json!({}), "/memories", json!([])),
        ] {
            let id = server.send("tools/call", json!({"name": tool, "arguments": arguments}));
            expected.insert(id, (tool, path, value));
        }
        // The block for a prompt reads as well.
        let id = server.send("prompts/list", json!({}));
        expected.insert(id, ("prompts/list", "", Value::Null));
    }
    for (id, answer) in server.answers(expected.len()) {
        let (tool, path, value) = &expected[&id];
        if !path.is_empty() {
            let found = structured(&answer);
            assert_eq!(found.pointer(path), Some(value), "{id} {tool}: {found}");
        }
    }
}

/// F024
#[test]
fn four_servers_started_at_once_on_an_empty_store_all_answer() {
    let place = Place::new();
    let mut servers: Vec<Server> = (0..4)
        .map(|i| place.serve(&["--session", &format!("s{i}")]))
        .collect();
    for server in &mut servers {
        server.initialize();
    }
    for (i, server) in servers.iter_mut().enumerate() {
        server.call(
            "memory_save",
            json!({"key": format!("k{i}"), "content": "c"}),
        );
    }
    for server in &mut servers {
        assert_eq!(keys(server), ["k0", "k1", "k2", "k3"]);
    }
}

#[test]
fn four_servers_of_one_new_session_all_answer() {
    let place = Place::new();
    let mut servers: Vec<Server> = (0..4).map(|_| place.serve(&["--session", "s"])).collect();
    for server in &mut servers {
        server.initialize();
        let status = server.call("memory_status", json!({}));
        assert_eq!(status["session"], "s");
    }
}

/// F065
#[test]
fn standard_output_holds_only_json_rpc_whatever_is_logged() {
    let place = Place::new();
    for filter in ["trace", "remora=debug,nonsense=[[", ""] {
        let mut child = remora(&place.store())
            .args(["serve", "--session", "s"])
            .env("RUST_LOG", filter)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut stdin = child.stdin.take().expect("is piped");
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"memory_save","arguments":{"key":"k","content":"line\nline"}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"memory_get","arguments":{"key":7}}}"#,
            "no JSON",
        ];
        stdin
            .write_all((lines.join("\n") + "\n").as_bytes())
            .expect("the server reads");
        drop(stdin);
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(text.lines().map(message).count(), 5, "{filter}: {text}");
        assert_eq!(filter == "trace", output.stderr.len() > 1000, "{filter}");
    }
}

#[test]
fn a_client_that_does_not_read_standard_error_is_served() {
    let place = Place::new();
    let mut command = remora(&place.store());
    command
        .args(["serve", "--session", "s"])
        .env("RUST_LOG", "trace");
    let mut server = Server::spawn_with(command, Stdio::piped());
    server.initialize();
    // Far more than a pipe holds, from the first of them on.
    let (code, _) = server.call_badly("memory_get", json!({"key": "x".repeat(200_000)}));
    assert_eq!(code, "too_large");
    for _ in 0..20 {
        for _ in 0..100 {
            server.send("ping", json!({}));
        }
        server.answers(100);
    }
    for _ in 0..20 {
        for _ in 0..100 {
            server.send("tools/call", json!({"name": "memory_status"}));
        }
        server.answers(100);
    }
    let mut said = server.child.stderr.take().expect("is piped");
    let (status, _) = server.close();
    assert!(status.success(), "{status:?}");
    // What fits in the pipe is there, in lines that are not too long.
    let mut text = Vec::new();
    said.read_to_end(&mut text).expect("read");
    assert!(text.len() > 4096, "{}", text.len());
    let longest = text.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert!(longest <= Some(4100), "{longest:?}");
}

/// F065
#[test]
fn a_store_that_cannot_be_used_is_said_on_standard_error_alone() {
    let place = Place::new();
    std::fs::write(place.store(), "no folder").expect("written");
    let output = place.run(&["serve", "--session", "s"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(!output.stderr.is_empty());
}

#[test]
fn serve_wants_either_a_session_or_ephemeral_and_explains_both() {
    let place = Place::new();
    for arguments in [&["serve"][..], &["serve", "--ephemeral", "--session", "s"]] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("--session") && said.contains("--ephemeral"),
            "{said}"
        );
    }
}

/// F066
#[test]
fn ends_within_a_second_of_standard_input_closing() {
    let place = Place::new();
    let (status, rest) = place.server().close();
    assert!(status.success(), "{status}");
    assert!(rest.is_empty());
}

/// F066
#[test]
fn calls_in_flight_do_not_keep_it_from_ending() {
    let place = Place::new();
    let mut server = place.server();
    let content = "words ".repeat(1000);
    for i in 0..200 {
        server.send_save(&format!("k{i}"), &content);
    }
    let (status, answers) = server.close();
    assert!(status.success(), "{status}");
    // What was acknowledged is stored.
    let mut server = place.server();
    for answer in answers.iter().filter(|answer| answer["result"].is_object()) {
        let key = structured(answer)["key"].clone();
        let got = server.call("memory_get", json!({"key": key}));
        assert_eq!(got["found"], true, "{key}");
    }
}

#[test]
fn a_request_sent_just_before_the_end_is_answered() {
    let place = Place::new();
    let mut server = place.server();
    server.send("tools/call", json!({"name": "memory_status"}));
    let (status, answers) = server.close();
    assert!(status.success(), "{status}");
    assert_eq!(answers.len(), 1);
    structured(&answers[0]);
}

/// F066
#[cfg(unix)]
#[test]
fn ends_cleanly_when_a_signal_asks_for_it() {
    use rustix::process::{Pid, Signal, kill_process};
    let place = Place::new();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut server = place.server();
        kill_process(Pid::from_child(&server.child), signal).expect("signalled");
        let status = server.ended();
        assert!(status.success(), "{signal:?}: {status}");
    }
}

#[test]
fn ends_when_the_client_reads_no_more() {
    let place = Place::new();
    let mut child = remora(&place.store())
        .args(["serve", "--ephemeral"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("is piped");
    let start = Instant::now();
    // The first answer meets the closed pipe; standard input stays open.
    while child.try_wait().expect("can be waited for").is_none() {
        // Fails once it has ended.
        let _ = stdin.write_all(b"no JSON\n");
        assert!(start.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ends_when_the_client_reads_nothing_and_keeps_the_pipes_open() {
    let place = Place::new();
    let mut child = remora(&place.store())
        .args(["serve", "--ephemeral"])
        .env("RUST_LOG", "trace")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut stdin = child.stdin.take().expect("is piped");
    for _ in 0..20_000 {
        // Each is answered with an error.
        stdin.write_all(b"no JSON\n").expect("the server reads");
    }
    drop(stdin);
    let start = Instant::now();
    while child.try_wait().expect("can be waited for").is_none() {
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().expect("killed");
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_client_may_say_nothing_at_all() {
    let place = Place::new();
    let mut child = remora(&place.store())
        .args(["serve", "--ephemeral"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut text = String::new();
    let mut stdout = child.stdout.take().expect("is piped");
    stdout.read_to_string(&mut text).expect("text");
    assert!(text.is_empty(), "{text}");
    assert!(child.wait().expect("ends").success());
}

/// F067
#[test]
fn arguments_that_are_missing_or_null_are_an_empty_object() {
    let place = Place::new();
    let mut server = place.server();
    for params in [
        r#"{"name":"memory_status"}"#,
        r#"{"name":"memory_status","arguments":null}"#,
        r#"{"name":"memory_status","arguments":{}}"#,
    ] {
        let answer = server.call_raw(params);
        assert_eq!(structured(&answer)["session"], "s", "{params}");
    }
    for params in [
        r#"{"name":"memory_save"}"#,
        r#"{"name":"memory_save","arguments":null}"#,
    ] {
        let (code, message) = tool_error(&server.call_raw(params));
        assert_eq!(code, "invalid_argument", "{params}");
        assert!(message.contains("key"), "{message}");
    }
    assert!(keys(&mut server).is_empty());
}

/// F067
#[test]
fn arguments_that_are_no_object_are_an_error_of_the_protocol() {
    let place = Place::new();
    let mut server = place.server();
    for params in [
        r#"{"name":"memory_status","arguments":[]}"#,
        r#"{"name":"memory_status","arguments":"{}"}"#,
        r#"{"name":"memory_status","arguments":7}"#,
        r#"{"arguments":{}}"#,
        r#"{"name":7}"#,
        "[]",
        "null",
    ] {
        assert_eq!(protocol_error(&server.call_raw(params)), -32602, "{params}");
    }
    server.call("memory_status", json!({}));
}

/// F067
#[test]
fn arguments_of_the_wrong_name_or_type_are_refused_and_nothing_is_stored() {
    let place = Place::new();
    let mut server = place.server();
    for arguments in [
        json!({"key": "k", "content": "c", "extra": 1}),
        json!({"key": 7, "content": "c"}),
        json!({"key": "k", "content": null}),
        json!({"key": "k"}),
        json!({"key": "", "content": "c"}),
        json!({"key": "k", "content": "c", "tags": {"a": 1}}),
    ] {
        let (code, message) = server.call_badly("memory_save", arguments.clone());
        assert_eq!(code, "invalid_argument", "{arguments}");
        assert!(!message.is_empty());
    }
    let (code, _) = server.call_badly("memory_search", json!({"query": "q", "max_results": "5"}));
    assert_eq!(code, "invalid_argument");
    assert!(keys(&mut server).is_empty());
}

/// F068
#[test]
fn tags_in_a_text_of_json_are_read_and_content_of_json_stays_text() {
    let place = Place::new();
    let mut server = place.server();
    server.call(
        "memory_save",
        json!({"key": "k", "content": r#"{"a": [1, 2]}"#, "tags": r#"["a","b"]"#}),
    );
    let got = server.call("memory_get", json!({"key": "k"}));
    assert_eq!(got["content"], r#"{"a": [1, 2]}"#);
    assert_eq!(got["tags"], json!(["a", "b"]));
}

#[test]
fn an_argument_that_stands_twice_is_refused() {
    let place = Place::new();
    let mut server = place.server();
    let answer = server
        .call_raw(r#"{"name":"memory_save","arguments":{"key":"a","content":"c","key":"b"}}"#);
    let (code, message) = tool_error(&answer);
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("twice"), "{message}");
    assert!(keys(&mut server).is_empty());
}

#[test]
fn half_a_surrogate_is_refused() {
    let place = Place::new();
    let mut server = place.server();
    let answer =
        server.call_raw(r#"{"name":"memory_save","arguments":{"key":"k","content":"\ud800"}}"#);
    assert_eq!(tool_error(&answer).0, "invalid_argument");
    assert!(keys(&mut server).is_empty());
}

#[test]
fn a_classification_from_the_model_changes_nothing_and_is_noticed() {
    let place = Place::new();
    let mut server = place.server();
    let saved = server.call(
        "memory_save",
        json!({"key": "k", "content": "c", "classification": "RESTRICTED"}),
    );
    assert_eq!(saved["classification"], "PUBLIC");
    assert!(
        saved["notices"].to_string().contains("classification"),
        "{saved}"
    );
}

#[test]
fn an_unknown_tool_is_an_error_of_the_protocol() {
    let place = Place::new();
    let mut server = place.server();
    let answer = server.request(
        "tools/call",
        json!({"name": "memory_forget", "arguments": {}}),
    );
    assert_eq!(protocol_error(&answer), -32602);
    let answer = server.request("memory/forget", json!({}));
    assert_eq!(protocol_error(&answer), -32601);
    assert_eq!(
        answer["error"]["message"],
        "There is no method \"memory/forget\""
    );
    // Of a long name only the beginning comes back.
    let long = format!("{}\n", "ä".repeat(500_000));
    for (method, params) in [(&long, json!({})), (&long, json!([]))] {
        let answer = server.request(method, params);
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message.contains("ää…\""), "{message:.300}");
        assert!(message.len() < 200, "{}", message.len());
    }
}

#[test]
fn a_request_before_initialize_is_told_what_comes_first() {
    let place = Place::new();
    let mut server = place.serve(&["--session", "s"]);
    for method in ["tools/list", "memory/forget"] {
        let answer = server.request(method, json!({}));
        assert_eq!(protocol_error(&answer), -32600, "{method}");
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message.starts_with("Send initialize first"), "{message}");
    }
    let answer = server.request("initialize", json!({"protocolVersion": 7}));
    assert_eq!(protocol_error(&answer), -32602);
    server.request("ping", json!({}));
    server.initialize();
    server.call("memory_status", json!({}));
}

#[test]
fn a_clients_mistakes_are_not_logged_at_the_default_level() {
    let place = Place::new();
    place.run_well(&["session", "new", "s", "--origin", "agent"]);
    let mut child = remora(&place.store())
        .args(["serve", "--session", "s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"memory/forget"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"memory_forget"}}"#,
    ];
    let mut stdin = child.stdin.take().expect("is piped");
    stdin
        .write_all((lines.join("\n") + "\n").as_bytes())
        .expect("the server reads");
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// The controlling side of a new terminal is a terminal as well.
#[cfg(target_os = "linux")]
#[test]
fn somebody_who_starts_it_by_hand_is_told_what_it_does() {
    let place = Place::new();
    let terminal = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/ptmx")
        .expect("a terminal");
    let mut child = remora(&place.store())
        .args(["serve", "--ephemeral"])
        .stdin(terminal)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let stderr = child.stderr.take().expect("is piped");
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Fails once enough was read.
            let _ = sender.send(line);
        }
    });
    let mut said = String::new();
    while !said.contains("Ctrl-C ends it") {
        let line = lines.recv_timeout(PATIENCE);
        said.push_str(&line.unwrap_or_else(|error| panic!("{error}: {said}")));
        said.push(' ');
    }
    assert!(said.contains("remora mcp-config CLIENT"), "{said}");
    child.kill().expect("runs until then");
    child.wait().expect("ends");
}

#[test]
fn what_is_no_message_is_answered_and_ends_nothing() {
    let place = Place::new();
    let mut server = place.serve(&["--session", "s"]);
    // Before the client has introduced itself as well as after.
    for round in 0..2 {
        for (line, code) in [
            ("no JSON", -32700),
            ("{", -32700),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        ] {
            server.write(line);
            assert_eq!(protocol_error(&server.read()), code, "{line}");
        }
        // Nobody waits for an answer to these.
        for line in [
            "",
            "\r",
            r#"{"jsonrpc":"2.0","method":"notifications/nonsense"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
            r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        ] {
            server.write(line);
        }
        if round == 0 {
            server.initialize();
        }
    }
    server.call("memory_status", json!({}));
}

#[test]
fn a_message_of_any_length_ends_nothing() {
    let place = Place::new();
    let mut server = place.server();
    let (code, _) = server.call_badly(
        "memory_save",
        json!({"key": "k", "content": "x".repeat(1024 * 1024)}),
    );
    assert_eq!(code, "too_large");
    server.write(&"x".repeat(20 * 1024 * 1024));
    assert_eq!(protocol_error(&server.read()), -32600);
    // Whoever waits for an answer gets it.
    let answer = server.request(
        "tools/call",
        json!({"name": "memory_save", "arguments": {"key": "k", "content": "é".repeat(5_000_000)}}),
    );
    assert_eq!(protocol_error(&answer), -32600);
    let content = "\u{1}".repeat(256 * 1024);
    server.call("memory_save", json!({"key": "k", "content": content}));
    let got = server.call("memory_get", json!({"key": "k"}));
    assert!(got["content"] == content, "the largest content comes back");
}

#[test]
fn a_call_that_is_cancelled_before_it_begins_never_does() {
    let place = Place::new();
    let mut server = place.server();
    server.call("memory_save", json!({"key": "a", "content": "c"}));
    let file = place.store().join("agents/default/public.db");
    let lock = rusqlite::Connection::open(file).expect("a file");
    lock.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let begun = server.send_save("b", "c");
    let ids: Vec<u64> = (0..100)
        .map(|i| server.send_save(&format!("c{i}"), "c"))
        .collect();
    for id in ids {
        let params = json!({"requestId": id});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        server.write(&cancelled.to_string());
    }
    // Read behind all of these.
    server.request("ping", json!({}));
    lock.execute_batch("ROLLBACK").expect("it goes");
    let list = server.send(
        "tools/call",
        json!({"name": "memory_list", "arguments": {}}),
    );
    let mut answers = BTreeMap::new();
    while !answers.contains_key(&list) {
        let answer = server.read();
        answers.insert(answer["id"].as_u64().expect("a number"), answer);
    }
    assert_eq!(structured(&answers[&begun])["outcome"], "created");
    let listed = structured(&answers[&list]);
    let listed: Vec<&Value> = listed["memories"]
        .as_array()
        .expect("memories")
        .iter()
        .map(|memory| &memory["key"])
        .collect();
    assert_eq!(listed, ["a", "b"]);
}

/// What takes effect when the input ends are the first lines, whichever are answered.
#[test]
fn what_is_done_at_the_end_is_what_came_first() {
    let place = Place::new();
    let mut server = place.server();
    for i in 0..2000 {
        server.send_save(&format!("k{i:04}"), "c");
    }
    let (_, answers) = server.close();
    let listed = place.run_well(&["--session", "s", "--json", "list", "--limit", "200"]);
    let first: Value = serde_json::from_str(&listed).expect("JSON");
    let mut keys = Vec::new();
    let mut page = first;
    loop {
        for memory in page["memories"].as_array().expect("memories") {
            keys.push(memory["key"].as_str().expect("a key").to_owned());
        }
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        let next = place.run_well(&[
            "--session",
            "s",
            "--json",
            "list",
            "--limit",
            "200",
            "--cursor",
            cursor,
        ]);
        page = serde_json::from_str(&next).expect("JSON");
    }
    let expected: Vec<String> = (0..keys.len()).map(|i| format!("k{i:04}")).collect();
    assert_eq!(keys, expected);
    let created = answers
        .iter()
        .filter(|answer| answer.get("result").is_some())
        .count();
    assert!(created <= keys.len(), "{created} of {}", keys.len());
}

#[test]
fn a_cancelled_call_ends_nothing() {
    let place = Place::new();
    let mut server = place.server();
    for i in 0..30 {
        let id = server.send_save(&format!("k{i}"), "c");
        let cancelled = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": id, "reason": "a test"},
        });
        server.write(&cancelled.to_string());
    }
    let last = server.send("tools/call", json!({"name": "memory_status"}));
    // Some of the calls were answered before they were cancelled.
    let answer = std::iter::repeat_with(|| server.read())
        .find(|answer| answer["id"] == last)
        .expect("an answer");
    structured(&answer);
}

#[test]
fn a_raise_by_another_process_governs_the_next_call() {
    let place = Place::new();
    place.run_well(&["--taint", "CONFIDENTIAL", "save", "salary", "95k"]);
    let mut server = place.server();
    let hidden = server.call("memory_get", json!({"key": "salary"}));
    assert_eq!(hidden, json!({"found": false, "key": "salary"}));
    place.run_well(&["session", "raise", "s", "confidential"]);
    let got = server.call("memory_get", json!({"key": "salary"}));
    assert_eq!(got["content"], "95k");
    let saved = server.call("memory_save", json!({"key": "new", "content": "c"}));
    assert_eq!(saved["classification"], "CONFIDENTIAL");
}

#[test]
fn a_lost_control_plane_is_named_without_its_path() {
    for replaced in [false, true] {
        let place = Place::new();
        let mut server = place.server();
        server.call("memory_status", json!({}));
        let sessions = place.store().join("sessions.db");
        std::fs::remove_file(&sessions).expect("removed");
        if replaced {
            std::fs::create_dir(&sessions).expect("made");
        }
        let (code, message) = server.call_badly("memory_status", json!({}));
        assert_eq!(code, "unavailable");
        assert!(message.starts_with("sessions.db is "), "{message}");
        let folder = place.folder.path().to_str().expect("UTF-8");
        assert!(!message.contains(folder), "{message}");
    }
}

#[test]
fn a_server_that_is_started_again_is_where_it_was() {
    let place = Place::new();
    let mut server = place.serve(&["--session", "s", "--taint", "internal"]);
    server.initialize();
    server.call("memory_save", json!({"key": "k", "content": "c"}));
    server.close();
    let mut server = place.serve(&["--session", "s", "--taint", "public"]);
    server.initialize();
    let status = server.call("memory_status", json!({}));
    assert_eq!(status["classification"], "INTERNAL");
    let got = server.call("memory_get", json!({"key": "k"}));
    assert_eq!(got["found"], true);
}

#[test]
fn the_settings_for_a_client_start_a_server() {
    let outer = Place::new();
    // A path that wants care.
    let place = Place {
        folder: tempfile::Builder::new()
            .prefix("it's \"my\" bölüm ")
            .tempdir_in(outer.folder.path())
            .expect("a folder"),
    };
    let printed = place.run_well(&[
        "mcp-config",
        "generic",
        "--session",
        "work",
        "--agent",
        "ada",
        "--taint",
        "internal",
    ]);
    let settings: Value = serde_json::from_str(&printed).expect("JSON");
    let server = &settings["mcpServers"]["remora"];
    let binary = Path::new(server["command"].as_str().expect("a text"));
    assert!(binary.is_absolute());
    assert_eq!(
        binary.canonicalize().expect("is there"),
        Path::new(env!("CARGO_BIN_EXE_remora"))
            .canonicalize()
            .expect("is there")
    );
    let mut command = remora(Path::new("/nowhere"));
    for argument in server["args"].as_array().expect("a list") {
        command.arg(argument.as_str().expect("a text"));
    }
    let mut server = Server::spawn(command);
    server.initialize();
    let status = server.call("memory_status", json!({}));
    assert_eq!(status["session"], "work");
    assert_eq!(status["classification"], "INTERNAL");
    assert!(place.store().is_dir());
}

#[test]
fn the_settings_for_a_client_want_either_a_session_or_ephemeral() {
    let place = Place::new();
    for arguments in [
        &["mcp-config", "zed"][..],
        &["mcp-config", "zed", "--session", "s", "--ephemeral"],
        &["mcp-config", "emacs", "--session", "s"],
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
    }
    for client in [
        "claude-code",
        "claude-desktop",
        "codex",
        "cursor",
        "gemini-cli",
        "vscode",
    ] {
        let output = place.run(&["mcp-config", client, "--ephemeral"]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("this"), "says where it goes: {said}");
        let group = match client {
            "codex" => None,
            "vscode" => Some("\"servers\""),
            _ => Some("\"mcpServers\""),
        };
        if let Some(group) = group {
            let hint = format!("has {group} already, add only what stands inside it");
            assert!(said.contains(&hint), "{said}");
        }
        assert_eq!(
            said.contains("claude mcp add remora -- "),
            client == "claude-code"
        );
    }
    assert!(!place.store().exists(), "it only prints");
}
