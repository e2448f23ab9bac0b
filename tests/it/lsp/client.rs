//! A client of the language server: it sends messages and waits for what must come.

use std::io::{BufReader, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take before a test says that there is none.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Client {
    output: Box<dyn Write + Send>,
    input: Receiver<Value>,
    /// What came while something else was waited for.
    pub(super) notifications: Vec<Value>,
    last: i64,
}

impl Client {
    /// Of the ends of two pipes.
    pub(super) fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let (messages, receiver) = channel();
        std::thread::spawn(move || {
            let mut input = BufReader::new(input);
            while let Some(message) = read(&mut input) {
                if messages.send(message).is_err() {
                    return;
                }
            }
        });
        Self { output: Box::new(output), input: receiver, notifications: Vec::new(), last: 0 }
    }

    /// Of a server in this process.
    pub(super) fn in_memory() -> Self {
        let (server_in, client_out) = std::io::pipe().expect("a pipe");
        let (client_in, server_out) = std::io::pipe().expect("a pipe");
        std::thread::spawn(move || autobatch::lsp::serve(BufReader::new(server_in), server_out));
        Self::new(client_in, client_out)
    }

    pub(super) fn send_text(&mut self, text: &str) {
        write!(self.output, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.output.flush().expect("the server reads");
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request; gives its number.
    pub(super) fn start(&mut self, method: &str, params: Value) -> i64 {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    /// The next message that is meant; others that come before are kept.
    pub(super) fn wait(&mut self, what: &str, meant: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.notifications.iter().position(&meant) {
            return self.notifications.remove(at);
        }
        loop {
            let message =
                self.input.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the server did not send {what}"));
            if meant(&message) {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub(super) fn answer(&mut self, id: i64) -> Value {
        self.wait(&format!("the answer {id}"), |message| message["id"] == id && message.get("method").is_none())
    }

    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params);
        self.answer(id)
    }

    /// Whether the server ends without another message.
    pub(super) fn ends(&mut self) -> bool {
        matches!(self.input.recv_timeout(PATIENCE), Err(std::sync::mpsc::RecvTimeoutError::Disconnected))
    }

    /// Starts the session. `more` is what the client says of itself besides.
    pub(super) fn initialize(&mut self, more: Value) -> Value {
        let mut params = json!({
            "processId": null, "rootUri": null,
            "capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown", "plaintext"]}}},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        let answer = self.request("initialize", params);
        self.notify("initialized", json!({}));
        answer
    }
}

fn read(input: &mut BufReader<impl Read>) -> Option<Value> {
    use std::io::BufRead as _;
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match (line.trim().strip_prefix("Content-Length: "), line.trim()) {
            (Some(number), _) => length = Some(number.parse::<usize>().expect("a length is a number")),
            (None, "") => break,
            _ => {}
        }
    }
    let mut body = vec![0; length.expect("a message has a length")];
    input.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("a message is JSON"))
}
