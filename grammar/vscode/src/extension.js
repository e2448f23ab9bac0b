// The client of `autobatch lsp`.
"use strict";

const { execFile } = require("node:child_process");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;
let watcher;
let log;
// Starts and stops come one after the other, however fast they are asked for.
let last = Promise.resolve();

function inTurn(work) {
  last = last.then(work).catch((error) => log.error(String(error)));
  return last;
}

function settings() {
  return vscode.workspace.getConfiguration("autobatch");
}

// The version of the command, or why there is none.
function version(command) {
  return new Promise((resolve, reject) => {
    execFile(command, ["--version"], (error, stdout) => (error ? reject(error) : resolve(stdout.trim())));
  });
}

async function start() {
  const command = settings().get("path") || "autobatch";
  let found;
  try {
    found = await version(command);
  } catch (error) {
    const why = error.code === "ENOENT" ? "there is no such command" : error.message;
    const choice = await vscode.window.showErrorMessage(
      `autobatch: ${command} cannot be started: ${why}. Install autobatch, or say where it is.`,
      "Open the setting",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "autobatch.path");
    }
    return;
  }
  log.info(`${command}: ${found}`);
  const languages = settings().get("stan") ? ["autobatch", "stan"] : ["autobatch"];
  const documentSelector = languages.flatMap((language) => [
    { scheme: "file", language },
    { scheme: "untitled", language },
  ]);
  watcher = vscode.workspace.createFileSystemWatcher("**/*.{ab,stan,stanfunctions}");
  client = new LanguageClient(
    "autobatch",
    "autobatch",
    { command, args: ["lsp"] },
    {
      documentSelector,
      initializationOptions: { includePath: settings().get("includePath") },
      outputChannel: log,
      synchronize: { fileEvents: watcher },
    },
  );
  try {
    await client.start();
  } catch (error) {
    await stop();
    vscode.window.showErrorMessage(`autobatch: the language server did not start: ${error.message}`);
  }
}

async function stop() {
  const [old, files] = [client, watcher];
  client = undefined;
  watcher = undefined;
  files?.dispose();
  // One that did not start has nothing to stop, which is refused.
  await old?.dispose().catch((error) => log.info(String(error)));
}

// What `autobatch explain` says of the code of the finding at the cursor.
async function explain() {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    return;
  }
  const at = editor.selection.active;
  const found = vscode.languages.getDiagnostics(editor.document.uri);
  const here = found.find((d) => d.source === "autobatch" && d.range.contains(at));
  if (!here) {
    vscode.window.showInformationMessage("autobatch: there is no finding at the cursor");
    return;
  }
  execFile(settings().get("path") || "autobatch", ["explain", String(here.code)], async (error, text, said) => {
    const content = error ? said || error.message : text;
    const document = await vscode.workspace.openTextDocument({ language: "markdown", content });
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  });
}

exports.activate = async (context) => {
  log = vscode.window.createOutputChannel("autobatch", { log: true });
  const restart = () =>
    inTurn(async () => {
      await stop();
      await start();
    });
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("autobatch.restart", restart),
    vscode.commands.registerCommand("autobatch.explain", explain),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("autobatch") && restart()),
  );
  await inTurn(start);
};

exports.deactivate = () => inTurn(stop);
