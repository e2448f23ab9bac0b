// The client's side of the protocol, as the extension has it, with the real server: `AUTOBATCH` names the command.
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { spawn } = require("node:child_process");
const rpc = require("vscode-jsonrpc/node");
const protocol = require("vscode-languageserver-protocol");

const command = process.env.AUTOBATCH;

test("a session", { skip: command ? false : "AUTOBATCH does not name the command" }, async () => {
  const server = spawn(command, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.on("exit", resolve));
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(server.stdout),
    new rpc.StreamMessageWriter(server.stdin),
  );
  const waiting = new Map();
  connection.onNotification(protocol.PublishDiagnosticsNotification.type, (params) => {
    waiting.get(params.uri)?.(params.diagnostics);
  });
  connection.listen();
  const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, {
    processId: process.pid, rootUri: null, capabilities: {},
  });
  for (const name of ["hover", "definition", "references", "rename", "completion", "documentFormatting", "inlayHint"]) {
    assert.ok(capabilities[`${name}Provider`], name);
  }
  connection.sendNotification(protocol.InitializedNotification.type, {});
  const open = (uri, languageId, text) => {
    const told = new Promise((resolve) => waiting.set(uri, resolve));
    connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
      textDocument: { uri, languageId, version: 1, text },
    });
    return told;
  };
  const found = await open("untitled:one", "autobatch", "pub fn f(x: real) -> real { y }\n");
  assert.deepStrictEqual(found.map((d) => d.code), ["E0101"]);
  assert.deepStrictEqual(await open("untitled:two", "stan", "parameters { real mu; }\nmodel { mu ~ normal(0, 1); }\n"), []);
  const hover = await connection.sendRequest(protocol.HoverRequest.type, {
    textDocument: { uri: "untitled:two" }, position: { line: 1, character: 14 },
  });
  assert.match(hover.contents.value, /normal_lpdf/);
  await connection.sendRequest(protocol.ShutdownRequest.type);
  connection.sendNotification(protocol.ExitNotification.type);
  assert.strictEqual(await ended, 0);
});
