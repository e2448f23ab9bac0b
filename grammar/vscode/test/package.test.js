// The package holds what it must and nothing else.
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const { unzipSync } = require("fflate");

test("the package is whole", () => {
  const files = unzipSync(new Uint8Array(fs.readFileSync(path.join(__dirname, "../autobatch.vsix"))));
  const names = Object.keys(files).map((name) => name.replace(/^extension\//, "").toLowerCase()).sort();
  for (const name of [
    "package.json", "out/extension.js", "syntaxes/autobatch.tmlanguage.json", "syntaxes/stan.tmlanguage.json",
    "language-configuration.json", "language-configuration-stan.json", "readme.md", "license-mit.txt", "license-apache.txt",
  ]) {
    assert.ok(names.includes(name) || names.includes(name.replace(".txt", "")), `${name} in ${names}`);
  }
  assert.ok(!names.some((name) => name.includes("node_modules") || name.startsWith("test/") || name.startsWith("src/")), `${names}`);
  const manifest = JSON.parse(Buffer.from(files["extension/package.json"]).toString());
  for (const grammar of manifest.contributes.grammars) {
    const text = Buffer.from(files[`extension/${path.posix.normalize(grammar.path)}`]).toString();
    assert.strictEqual(JSON.parse(text).scopeName, grammar.scopeName);
  }
  const size = Object.values(files).reduce((sum, bytes) => sum + bytes.length, 0);
  assert.ok(size < 2_000_000, `${size} bytes`);
});

test("the bundle needs nothing but VS Code and Node.js", () => {
  const bundle = fs.readFileSync(path.join(__dirname, "../out/extension.js"), "utf8");
  const { builtinModules } = require("node:module");
  const needed = [...bundle.matchAll(/\brequire\("([^"]+)"\)/g)].map((found) => found[1]);
  const foreign = needed.filter((name) => name !== "vscode" && !builtinModules.includes(name.replace(/^node:/, "")));
  assert.deepStrictEqual(foreign, []);
});
