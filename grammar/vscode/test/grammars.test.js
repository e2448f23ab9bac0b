// The grammars colour every program of the repository: no scope is `invalid`, and none is open at the end of a file.
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const { loadWASM, OnigScanner, OnigString } = require("vscode-oniguruma");
const { Registry, INITIAL, parseRawGrammar } = require("vscode-textmate");

const root = path.join(__dirname, "../../..");

async function grammar(scope) {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await (grammar.ready ??= loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength)));
  const onigLib = Promise.resolve({
    createOnigScanner: (patterns) => new OnigScanner(patterns),
    createOnigString: (text) => new OnigString(text),
  });
  const file = path.join(__dirname, "../syntaxes", `${scope.replace("source.", "")}.tmLanguage.json`);
  const loadGrammar = async () => parseRawGrammar(fs.readFileSync(file, "utf8"), file);
  return new Registry({ onigLib, loadGrammar }).loadGrammar(scope);
}

// All tokens of a text: text and innermost scope; and the scopes that are open at its end.
function tokens(rules, text) {
  let stack = INITIAL;
  const found = [];
  for (const line of text.split(/\r?\n/)) {
    const result = rules.tokenizeLine(line, stack);
    for (const token of result.tokens) {
      found.push({ text: line.slice(token.startIndex, token.endIndex), scopes: token.scopes });
    }
    stack = result.ruleStack;
  }
  return { found, depth: stack.depth };
}

function programs(folder, ending) {
  return fs.readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
}

async function colours(scope, files) {
  const rules = await grammar(scope);
  assert.ok(files.length > 5, `${files.length} programs`);
  for (const file of files) {
    const { found, depth } = tokens(rules, fs.readFileSync(file, "utf8"));
    const invalid = found.filter((token) => token.scopes.some((name) => name.startsWith("invalid")));
    assert.deepStrictEqual(invalid, [], file);
    assert.strictEqual(depth, 1, `${file}: a scope is open at the end`);
  }
}

test("programs of autobatch are coloured without a fault", async () => {
  const folders = ["examples", "nuts", "src/std", "tests/filetests/run", "tests/filetests/conformance"];
  await colours("source.autobatch", folders.flatMap((folder) => programs(folder, ".ab")));
});

test("programs of Stan are coloured without a fault", async () => {
  const folders = ["nuts", "tests/filetests/stan/run", "tests/filetests/stan/told"];
  await colours("source.stan", folders.flatMap((folder) => programs(folder, ".stan")));
});

// The innermost scope of the first token that is this text.
async function scopeOf(scope, program, text) {
  const { found } = tokens(await grammar(scope), program);
  return found.find((token) => token.text.trim() === text)?.scopes.at(-1);
}

test("tokens get the scopes that themes know", async () => {
  const program = 'use "a.ab";\n/// Doc.\n@elementwise\npub fn f(shared x: real) -> real {\n    print("{x} is {{ \\n");\n    1.5e-3 + g(x) // more\n}\nmodel m(a: real) { 0.0 }';
  const expected = {
    "/// Doc.": "comment.line.documentation.autobatch",
    "@elementwise": "entity.name.function.attribute.autobatch",
    fn: "storage.type.autobatch",
    f: "entity.name.function.autobatch",
    shared: "storage.modifier.autobatch",
    real: "support.type.autobatch",
    "1.5e-3": "constant.numeric.autobatch",
    g: "entity.name.function.call.autobatch",
    "\\n": "constant.character.escape.autobatch",
    "->": "keyword.operator.autobatch",
    model: "keyword.other.autobatch",
  };
  for (const [text, scope] of Object.entries(expected)) {
    assert.strictEqual(await scopeOf("source.autobatch", program, text), scope, text);
  }
  const stan = "#include lib.stan\ntransformed data { vector<lower=0>[3] x; }\nmodel { y ~ normal(mu, 1.); target += f(x'); # old\n}";
  const expectedOfStan = {
    "#include": "keyword.control.include.stan",
    "transformed data": "keyword.other.block.stan",
    vector: "storage.type.stan",
    lower: "storage.modifier.stan",
    normal: "support.function.distribution.stan",
    "1.": "constant.numeric.stan",
    target: "variable.language.stan",
    "'": "keyword.operator.stan",
    "# old": "comment.line.number-sign.stan",
  };
  for (const [text, scope] of Object.entries(expectedOfStan)) {
    assert.strictEqual(await scopeOf("source.stan", stan, text), scope, text);
  }
});

test("what is no program is marked", async () => {
  const rules = await grammar("source.autobatch");
  const invalid = (text) => tokens(rules, text).found.filter((t) => t.scopes.some((s) => s.startsWith("invalid"))).length;
  assert.ok(invalid("let x = 0x1f;") > 0);
  assert.strictEqual(tokens(rules, '"open\nlet x = 1;').depth, 1);
  assert.notStrictEqual(tokens(rules, "/* open").depth, 1);
});
