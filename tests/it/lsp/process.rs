//! The server as an editor starts it: a process with pipes.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use super::client::Client;
use crate::project::cli::{Folder, autobatch};

struct Server {
    child: Child,
    client: Client,
    folder: Folder,
}

/// The input of a server that a test writes to, too.
struct Shared(std::sync::Arc<std::sync::Mutex<Option<ChildStdin>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics with it").as_mut().expect("it is open").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().expect("no test panics with it").as_mut().expect("it is open").flush()
    }
}

type Input = std::sync::Arc<std::sync::Mutex<Option<ChildStdin>>>;

impl Server {
    fn start(test: &str) -> (Self, Input) {
        let folder = Folder::new(&format!("lsp-{test}"));
        let mut command: Command = autobatch(&["lsp"]);
        command.env("AUTOBATCH_CACHE", folder.0.join("cache"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let input: Input = std::sync::Arc::new(std::sync::Mutex::new(child.stdin.take()));
        let client = Client::new(child.stdout.take().expect("a pipe"), Shared(input.clone()));
        (Self { child, client, folder }, input)
    }

    fn status(mut self) -> Option<i32> {
        assert!(self.client.ends(), "it ends");
        self.child.wait().expect("it ends").code()
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "autobatch", "version": 1, "text": text});
        self.client.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn findings(&mut self, uri: &str, version: i64) -> Value {
        let message = self.client.wait("findings", |message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && message["params"]["version"] == version
        });
        message["params"]["diagnostics"].clone()
    }
}

#[test]
fn a_session_of_the_process() {
    let (mut server, _input) = Server::start("session");
    let answer = server.client.initialize(json!({}));
    assert_eq!(answer["result"]["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(answer["result"]["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let uri = format!("file://{}/a%20b.ab", server.folder.0.display());
    server.open(&uri, "pub fn f(x: real) -> real { log_mix(0.5, x, y) }\n");
    let found = server.findings(&uri, 1);
    assert_eq!(found[0]["code"], "E0101");
    // The definition of a function of the library is in a file that can be read.
    let at = json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 30}});
    let place = server.client.request("textDocument/definition", at);
    let path = place["result"]["uri"].as_str().expect("an address").strip_prefix("file://").expect("a file").to_owned();
    let text = std::fs::read_to_string(&path).expect("it can be read");
    let line = place["result"]["range"]["start"]["line"].as_u64().expect("a line") as usize;
    assert!(text.lines().nth(line).expect("a line").contains("fn log_mix"), "{path}:{line}");
    // That file is one of the library to the server, too.
    server.open(&format!("file://{path}"), &text);
    assert_eq!(server.findings(&format!("file://{path}"), 1), json!([]));
    assert_eq!(server.client.request("shutdown", Value::Null)["result"], Value::Null);
    assert_eq!(server.client.request("textDocument/hover", json!({}))["error"]["code"], -32600);
    server.client.notify("exit", Value::Null);
    assert_eq!(server.status(), Some(0));
}

#[test]
fn exit_without_shutdown_is_an_error() {
    let (mut server, _input) = Server::start("exit");
    server.client.initialize(json!({}));
    server.client.notify("exit", Value::Null);
    assert_eq!(server.status(), Some(1));
}

#[test]
fn a_closed_input_ends_the_process() {
    let (mut server, input) = Server::start("closed");
    server.client.initialize(json!({}));
    drop(input.lock().expect("no panic").take());
    assert_eq!(server.status(), Some(1));
}

#[test]
fn a_message_without_a_length_ends_the_process_with_a_word() {
    let (mut server, input) = Server::start("length");
    server.client.initialize(json!({}));
    input.lock().expect("no panic").as_mut().expect("open").write_all(b"Content-Length: x\r\n\r\n").expect("it reads");
    let answer = server.client.wait("a word", |message| message.get("error").is_some());
    assert_eq!(answer["error"]["code"], -32700);
    assert_eq!(server.status(), Some(1));
}

#[test]
fn what_is_malformed_or_unknown_is_answered_and_the_server_goes_on() {
    let mut client = Client::in_memory();
    assert_eq!(client.request("textDocument/hover", json!({}))["error"]["code"], -32002);
    client.initialize(json!({}));
    let code = |client: &mut Client, text: &str| {
        client.send_text(text);
        client.wait("an error", |message| message["id"].is_null() && message.get("error").is_some())["error"]["code"]
            .clone()
    };
    assert_eq!(code(&mut client, "{"), -32700);
    assert_eq!(code(&mut client, "[]"), -32600);
    assert_eq!(code(&mut client, r#"{"jsonrpc": "2.0", "id": 1.5e3, "method": 7}"#), -32600);
    assert_eq!(client.request("textDocument/nothing", json!({}))["error"]["code"], -32601);
    assert_eq!(client.request("textDocument/hover", json!({}))["error"]["code"], -32602);
    assert_eq!(client.request("initialize", json!({}))["error"]["code"], -32600);
    // Of documents that are not open, and positions that are none.
    let nowhere = json!({"textDocument": {"uri": "file:///nowhere.ab"}, "position": {"line": 0, "character": 0}});
    assert_eq!(client.request("textDocument/hover", nowhere)["error"]["code"], -32602);
    let document = json!({"uri": "untitled:one", "languageId": "autobatch", "version": 7, "text": "fn f( {"});
    client.notify("textDocument/didOpen", json!({"textDocument": document}));
    let uri = json!({"uri": "untitled:one"});
    let bad = client.request("textDocument/hover", json!({"textDocument": uri, "position": {"line": -1}}));
    assert_eq!(bad["error"]["code"], -32602);
    let far = json!({"textDocument": uri, "position": {"line": 4_000_000_000_u64, "character": 9}});
    assert!(client.request("textDocument/hover", far)["error"].is_null());
    client.notify("textDocument/didChange", json!({"textDocument": uri, "contentChanges": 7}));
    client.notify("$/unknown", json!({}));
    // A text of another language is left alone.
    let other = json!({"uri": "file:///x.py", "languageId": "python", "version": 1, "text": "def"});
    client.notify("textDocument/didOpen", json!({"textDocument": other}));
    let at = json!({"textDocument": {"uri": "file:///x.py"}, "position": {"line": 0, "character": 0}});
    assert_eq!(client.request("textDocument/hover", at)["result"], Value::Null);
    assert_eq!(client.request("shutdown", Value::Null)["error"], Value::Null);
}

/// A program that takes long to check, in what work is counted.
fn long() -> String {
    let line = |i: usize| format!("pub fn f{i}(x: real) -> real {{ let y = x + {i}.0; y * y + sin(y) * exp(-y) }}\n");
    (0..5_000).map(line).collect()
}

#[test]
fn a_burst_of_changes_is_checked_once_and_shutdown_does_not_wait() {
    let mut client = Client::in_memory();
    client.initialize(json!({}));
    let text = long();
    let uri = "file:///long.ab";
    let document = json!({"uri": uri, "languageId": "autobatch", "version": 0, "text": text});
    client.notify("textDocument/didOpen", json!({"textDocument": document}));
    for version in 1..=20 {
        let change = json!({
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "// more\n",
        });
        let params = json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]});
        client.notify("textDocument/didChange", params);
    }
    let told = client.wait("findings", |message| message["params"]["version"] == 20);
    assert_eq!(told["params"]["diagnostics"], json!([]));
    let earlier = client.notifications.iter().filter(|m| m["method"] == "textDocument/publishDiagnostics").count();
    assert!(earlier <= 2, "{earlier} checks of texts that were gone");
    // A request of work that is not done yet, cancelled; and the end, which does not wait for it.
    let params = json!({"textDocument": {"uri": uri, "version": 21}, "contentChanges": [{"text": text}]});
    client.notify("textDocument/didChange", params);
    let at = json!({"textDocument": {"uri": uri}, "position": {"line": 4999, "character": 36}});
    let first = client.start("textDocument/hover", at.clone());
    // It may be cancelled before it comes: then no work of it is done.
    client.notify("$/cancelRequest", json!({"id": first + 1}));
    let second = client.start("textDocument/hover", at);
    assert_eq!(client.answer(second)["error"]["code"], -32800);
    let first = client.answer(first);
    assert!(first["result"]["contents"]["value"].as_str().is_some_and(|text| text.contains("real")), "{first}");
    assert_eq!(client.request("shutdown", Value::Null)["result"], Value::Null);
}
