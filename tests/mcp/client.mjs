// Remora's MCP server against the official TypeScript client.
//
//     npm ci && node client.mjs ../../target/debug/remora
//
// Every check starts servers of its own on a temporary store. A line for each,
// then how many passed; the exit code is 0 if all did.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";

if (process.argv.length !== 3) {
  console.error("usage: node client.mjs PATH-TO-REMORA");
  process.exit(2);
}
const remora = resolve(process.argv[2]);
const scratch = await mkdtemp(join(tmpdir(), "remora mcp "));
// Compiled components are shared between the checks; stores are not.
const cache = join(scratch, "cache");
const environment = { ...process.env, REMORA_CACHE: cache };
delete environment.RUST_LOG;
delete environment.REMORA_STORE;

let stores = 0;
const newStore = () => join(scratch, `store ${stores++}`);
const run = (store, ...words) =>
  promisify(execFile)(remora, ["--store", store, ...words], { env: environment });

/** An initialised client of a server of this store. */
async function connect(store, words = ["--session", "s"]) {
  const client = new Client({ name: "remora-tests", version: "1.0.0" });
  const transport = new StdioClientTransport({
    command: remora,
    args: ["--store", store, "serve", ...words],
    env: environment,
    stderr: "ignore",
  });
  await client.connect(transport);
  // So that the client validates every answer against its tool's schema.
  await client.listTools();
  return client;
}

/** Calls a tool and returns the answer, which must stand in both forms. */
async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.notEqual(result.isError, true, JSON.stringify(result));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

/** Calls a tool that fails, and returns the error. */
async function callBadly(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, JSON.stringify(result));
  return JSON.parse(result.content[0].text).error;
}

/** A server without the client: raw lines in and out. */
function raw(store, { words = ["--session", "s"], env = {} } = {}) {
  const child = spawn(remora, ["--store", store, "serve", ...words], {
    env: { ...environment, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const started = performance.now();
  let log = "";
  child.stderr.on("data", (chunk) => (log += chunk));
  const lines = [];
  const waiting = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    waiting.splice(0).forEach((wake) => wake());
  });
  const exit = once(child, "close").then(([code, signal]) => ({ code, signal }));
  const server = {
    child,
    lines,
    exit,
    started,
    log: () => log,
    send: (message) =>
      child.stdin.write(
        `${typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message })}\n`,
      ),
    /** The answer to a request. */
    async answer(id) {
      const deadline = performance.now() + 60_000;
      for (;;) {
        const found = lines.map((line) => JSON.parse(line)).find((message) => message.id === id);
        if (found) return found;
        assert.ok(performance.now() < deadline && child.exitCode === null, `no answer to ${id}`);
        await Promise.race([new Promise((wake) => waiting.push(wake)), sleep(1000)]);
      }
    },
    async initialize() {
      server.send({
        id: "initialize",
        method: "initialize",
        params: {
          protocolVersion: "2025-06-18",
          capabilities: {},
          clientInfo: { name: "raw", version: "1" },
        },
      });
      const answer = await server.answer("initialize");
      server.send({ method: "notifications/initialized" });
      return answer.result;
    },
    /** Waits for the end, and says how long it took. */
    async end(within) {
      const start = performance.now();
      const timeout = new AbortController();
      const ended = await Promise.race([
        exit,
        sleep(within, undefined, { signal: timeout.signal }).catch(() => undefined),
      ]);
      timeout.abort();
      if (!ended) child.kill("SIGKILL");
      assert.ok(ended, `still runs after ${within} ms`);
      return { ...ended, took: performance.now() - start };
    },
  };
  return server;
}

const checks = [];
const check = (name, body) => checks.push({ name, body });

check("initialize: name, version, capabilities, instructions", async () => {
  const client = await connect(newStore());
  assert.equal(client.getServerVersion().name, "remora");
  assert.match(client.getServerVersion().version, /^\d+\.\d+\.\d+/);
  assert.deepEqual(Object.keys(client.getServerCapabilities()).sort(), ["prompts", "resources", "tools"]);
  assert.notEqual(client.getServerCapabilities().tools.listChanged, true);
  assert.match(client.getInstructions(), /memory_save/);
  await client.ping();
  await client.close();
});

check("list: schemas, titles and hints", async () => {
  const client = await connect(newStore());
  const { tools } = await client.listTools();
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  for (const name of ["save", "get", "search", "list", "delete", "confirm", "review", "history", "status"]) {
    const tool = byName.get(`memory_${name}`);
    assert.ok(tool, name);
    assert.ok(tool.title && tool.description, name);
    assert.equal(tool.inputSchema.type, "object");
    assert.equal(tool.outputSchema.type, "object");
    assert.equal(tool.annotations.openWorldHint, false);
    assert.equal(tool.annotations.readOnlyHint, !["save", "delete", "confirm"].includes(name), name);
    assert.equal(tool.annotations.destructiveHint, name === "delete", name);
  }
  await client.close();
});

check("all tools, their answers valid by their schemas", async () => {
  const client = await connect(newStore());
  const saved = await call(client, "memory_save", {
    key: "tea",
    content: "Oolong, without milk. 烏龍茶 🫖",
    tags: ["drinks", "ada"],
    source: "Ada",
  });
  assert.equal(saved.outcome, "created");
  assert.equal(saved.classification, "PUBLIC");
  assert.equal(saved.origin, "AGENT");
  const again = await call(client, "memory_save", {
    key: "tea",
    content: "Oolong, with milk.",
    tags: ["drinks"],
  });
  assert.equal(again.outcome, "updated");
  assert.equal(again.version, 2);
  const got = await call(client, "memory_get", { key: "tea" });
  assert.equal(got.content, "Oolong, with milk.");
  assert.deepEqual(await call(client, "memory_get", { key: "none" }), { found: false, key: "none" });
  const found = await call(client, "memory_search", { query: "does Ada take milk?", max_results: 3 });
  assert.equal(found.results[0].key, "tea");
  const listing = await call(client, "memory_list", { tags: ["drinks"], match: "all", limit: 5 });
  assert.deepEqual(listing.memories.map((memory) => memory.key), ["tea"]);
  assert.equal(listing.next_cursor, null);
  const status = await call(client, "memory_status", {});
  assert.equal(status.session, "s");
  const confirmed = await call(client, "memory_confirm", { key: "tea", source: "Ada" });
  assert.equal(confirmed.confirmed, true);
  assert.deepEqual((await call(client, "memory_review", {})).memories, []);
  const history = await call(client, "memory_history", { key: "tea" });
  assert.deepEqual(history.versions.map((version) => version.version), [2, 1]);
  const block = await client.getPrompt({ name: "memory_context", arguments: { budget: "500" } });
  assert.match(block.messages[0].content.text, /Oolong, with milk/);
  const { contents } = await client.readResource({ uri: "remora://context" });
  assert.match(contents[0].text, /Oolong, with milk/);
  const deleted = await call(client, "memory_delete", { key: "tea" });
  assert.equal(deleted.still_visible, null);
  assert.equal((await call(client, "memory_list", {})).memories.length, 0);
  await client.close();
});

check("every tool of the list was among them, none left out", async () => {
  const client = await connect(newStore());
  const { tools } = await client.listTools();
  const tried = ["confirm", "delete", "get", "history", "list", "review", "save", "search", "status"];
  assert.deepEqual(tools.map((tool) => tool.name.replace("memory_", "")).sort(), tried);
  await client.close();
});

check("an invalid call is a tool error with its code", async () => {
  const client = await connect(newStore());
  for (const [tool, args, code] of [
    ["memory_save", { key: "", content: "c" }, "invalid_argument"],
    ["memory_save", { key: "k" }, "invalid_argument"],
    ["memory_save", { key: 7, content: "c" }, "invalid_argument"],
    ["memory_save", { key: "k", content: "c", extra: true }, "invalid_argument"],
    ["memory_save", { key: "k", content: "x".repeat(256 * 1024 + 1) }, "too_large"],
    ["memory_search", { query: "q", max_results: "5" }, "invalid_argument"],
    ["memory_search", { query: "  " }, "invalid_argument"],
    ["memory_delete", { key: "none" }, "not_found"],
  ]) {
    const error = await callBadly(client, tool, args);
    assert.equal(error.code, code, JSON.stringify(error));
    assert.ok(error.message.length > 10);
  }
  await client.close();
});

check("an unknown tool is an error of the protocol", async () => {
  const client = await connect(newStore());
  await assert.rejects(
    client.callTool({ name: "memory_forget", arguments: {} }),
    (error) => error instanceof McpError && error.code === ErrorCode.InvalidParams,
  );
  await client.ping();
  await client.close();
});

check("20 saves sent without waiting are 20 stored", async () => {
  const client = await connect(newStore());
  const keys = Array.from({ length: 20 }, (_, i) => `k${String(i).padStart(2, "0")}`);
  await Promise.all(keys.map((key) => call(client, "memory_save", { key, content: `of ${key}` })));
  const listing = await call(client, "memory_list", { limit: 200 });
  assert.deepEqual(listing.memories.map((memory) => memory.key), keys);
  await client.close();
});

check("a cancelled call ends nothing", async () => {
  const client = await connect(newStore());
  for (let i = 0; i < 20; i += 1) {
    const abort = new AbortController();
    const save = client.callTool(
      { name: "memory_save", arguments: { key: `k${i}`, content: "c" } },
      undefined,
      { signal: abort.signal },
    );
    abort.abort("a test");
    await assert.rejects(save);
  }
  await call(client, "memory_status", {});
  await client.close();
});

check("arguments missing, null and no object", async () => {
  const server = raw(newStore());
  await server.initialize();
  const cases = [
    ["missing", { name: "memory_status" }, (answer) => answer.result.structuredContent.session],
    ["null", { name: "memory_status", arguments: null }, (a) => a.result.structuredContent.session],
    ["required missing", { name: "memory_get" }, (answer) => answer.result.isError],
    ["array", { name: "memory_status", arguments: [] }, (a) => a.error.code === -32602],
    ["text", { name: "memory_status", arguments: "{}" }, (a) => a.error.code === -32602],
    ["number", { name: "memory_status", arguments: 7 }, (a) => a.error.code === -32602],
    ["no name", { arguments: {} }, (a) => a.error.code === -32602],
    ["no parameters", undefined, (a) => a.error.code === -32602],
  ];
  for (const [id, params, right] of cases) {
    server.send({ id, method: "tools/call", params });
    const answer = await server.answer(id);
    assert.ok(right(answer), `${id}: ${JSON.stringify(answer)}`);
  }
  server.child.stdin.end();
  assert.equal((await server.end(1000)).code, 0);
});

check("an argument that stands twice is refused", async () => {
  const server = raw(newStore());
  await server.initialize();
  server.send(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_save","arguments":{"key":"a","content":"c","key":"b"}}}',
  );
  const { result } = await server.answer(1);
  assert.equal(result.isError, true);
  assert.equal(JSON.parse(result.content[0].text).error.code, "invalid_argument");
  server.child.stdin.end();
  await server.end(1000);
});

check("stdout holds only JSON-RPC with RUST_LOG=trace", async () => {
  const server = raw(newStore(), { env: { RUST_LOG: "trace" } });
  await server.initialize();
  server.send({ id: 1, method: "tools/list" });
  server.send({ id: 2, method: "tools/call", params: { name: "memory_save", arguments: { key: "k", content: "c" } } });
  server.send({ id: 3, method: "tools/call", params: { name: "memory_get", arguments: { key: 7 } } });
  server.send({ id: 4, method: "no/such/method" });
  for (const id of [1, 2, 3, 4]) await server.answer(id);
  server.send("no JSON");
  server.child.stdin.end();
  assert.equal((await server.end(1000)).code, 0);
  assert.equal(server.lines.length, 6);
  for (const line of server.lines) assert.equal(JSON.parse(line).jsonrpc, "2.0", line);
  assert.match(server.log(), /TRACE/);
});

check("ends within a second of stdin closing, with calls in flight too", async () => {
  const idle = raw(newStore());
  await idle.initialize();
  idle.child.stdin.end();
  const first = await idle.end(1000);
  assert.deepEqual([first.code, first.signal], [0, null]);

  const busy = raw(newStore());
  await busy.initialize();
  for (let id = 0; id < 200; id += 1) {
    busy.send({
      id,
      method: "tools/call",
      params: { name: "memory_save", arguments: { key: `k${id}`, content: "words ".repeat(500) } },
    });
  }
  busy.child.stdin.end();
  const second = await busy.end(1000);
  assert.deepEqual([second.code, second.signal], [0, null]);
  return `idle ${first.took.toFixed(0)} ms, with 200 saves in flight ${second.took.toFixed(0)} ms`;
});

check("ends within a second of its parent's being killed", async () => {
  // The parent holds the other end of the server's standard input.
  const script = `
    const { spawn } = require("node:child_process");
    const [remora, store] = process.argv.slice(1);
    spawn(remora, ["--store", store, "serve", "--session", "s"], { stdio: ["pipe", "inherit", "ignore"] });
    setInterval(() => {}, 1000);
    process.stderr.write("up");
  `;
  const store = newStore();
  await run(store, "session", "new", "s");
  const parent = spawn(process.execPath, ["-e", script, remora, store], {
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  await once(parent.stderr, "data");
  await sleep(300);
  const start = performance.now();
  parent.kill("SIGKILL");
  // Standard output is the server's as well: it ends with the last of the two.
  parent.stdout.resume();
  await Promise.race([once(parent.stdout, "end"), sleep(1000).then(() => assert.fail("it lives"))]);
  return `${(performance.now() - start).toFixed(0)} ms`;
});

check("ends cleanly on SIGTERM, SIGHUP and SIGINT", async () => {
  if (process.platform === "win32") return "no such signals here";
  for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
    const server = raw(newStore());
    await server.initialize();
    server.child.kill(signal);
    const ended = await server.end(1000);
    assert.deepEqual([ended.code, ended.signal], [0, null], signal);
  }
});

check("four servers at once on one empty store all answer", async () => {
  const store = newStore();
  const servers = [0, 1, 2, 3].map((i) => raw(store, { words: ["--session", `s${i}`] }));
  const took = await Promise.all(
    servers.map(async (server) => {
      await server.initialize();
      return performance.now() - server.started;
    }),
  );
  servers.forEach((server, i) =>
    server.send({
      id: 1,
      method: "tools/call",
      params: { name: "memory_save", arguments: { key: `k${i}`, content: "c" } },
    }),
  );
  for (const server of servers) {
    assert.ok((await server.answer(1)).result.structuredContent.saved);
    server.child.stdin.end();
    await server.end(1000);
  }
  const listing = JSON.parse((await run(store, "--json", "list")).stdout);
  assert.equal(listing.memories.length, 4);
  assert.ok(Math.max(...took) < 1000, `within a second: ${took}`);
  return `initialised after ${took.map((ms) => ms.toFixed(0)).join(", ")} ms`;
});

check("a raise by another process governs the next call", async () => {
  const store = newStore();
  await run(store, "--taint", "CONFIDENTIAL", "save", "salary", "95k");
  const client = await connect(store);
  assert.deepEqual(await call(client, "memory_get", { key: "salary" }), { found: false, key: "salary" });
  await run(store, "session", "raise", "s", "confidential");
  assert.equal((await call(client, "memory_get", { key: "salary" })).content, "95k");
  const saved = await call(client, "memory_save", { key: "new", content: "c" });
  assert.equal(saved.classification, "CONFIDENTIAL");
  await client.close();
});

check("the settings of mcp-config start a server", async () => {
  const store = newStore();
  const { stdout } = await run(store, "mcp-config", "claude-desktop", "--session", "my session's");
  const { command, args } = JSON.parse(stdout).mcpServers.remora;
  const client = new Client({ name: "remora-tests", version: "1.0.0" });
  await client.connect(
    new StdioClientTransport({ command, args, env: { ...environment, REMORA_STORE: "/nowhere" } }),
  );
  assert.equal((await call(client, "memory_status", {})).session, "my session's");
  await client.close();
});

check("a second start answers its first memory_get", async () => {
  const store = newStore();
  const took = [];
  for (let i = 0; i < 6; i += 1) {
    const server = raw(store);
    server.initialize();
    server.send({ id: 1, method: "tools/call", params: { name: "memory_get", arguments: { key: "k" } } });
    assert.equal((await server.answer(1)).result.structuredContent.found, false);
    took.push(performance.now() - server.started);
    server.child.stdin.end();
    await server.end(1000);
  }
  // The first makes the store. Node's own time to start a process is in it.
  const later = took.slice(1).sort((a, b) => a - b);
  return `after ${later[2].toFixed(0)} ms (median of 5, ${later[0].toFixed(0)} to ${later[4].toFixed(0)})`;
});

// The component is compiled once, before anything is measured.
await promisify(execFile)(remora, ["spine"], { env: environment });
let failed = 0;
for (const { name, body } of checks) {
  try {
    const remark = await body();
    console.log(`ok    ${name}${remark ? `: ${remark}` : ""}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${error.stack ?? error}`);
  }
}
await rm(scratch, { recursive: true, force: true });
console.log(`${checks.length - failed} passed, ${failed} failed`);
// A check that failed may have left servers behind.
process.exit(failed === 0 ? 0 : 1);
