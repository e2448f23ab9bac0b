//! Messages of JSON-RPC with their headers, as the protocol frames them. A message that is malformed is answered and passed
//! over: an editor that sends one does not lose the server.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::{Value, json};

/// The code of JSON-RPC for text that is no JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// For JSON that is no message.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// For a method that there is not.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// For parameters that the method does not take.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// For a fault of the server.
pub(super) const INTERNAL_ERROR: i32 = -32603;
/// For a request before `initialize`.
pub(super) const NOT_INITIALIZED: i32 = -32002;
/// For a request that was cancelled.
pub(super) const CANCELLED: i32 = -32800;
/// For a request that cannot be done, for a reason that the user is told.
pub(super) const REQUEST_FAILED: i32 = -32803;

/// The largest message that is taken, in bytes.
const LARGEST: usize = 1 << 30;
/// The longest line of a header, in bytes.
const LONGEST_LINE: u64 = 4096;

/// What a client sends.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Incoming {
    /// It wants an answer.
    Request {
        /// Its number or name.
        id: Value,
        /// What is wanted.
        method: String,
        /// Of what.
        params: Value,
    },
    /// It wants none.
    Notification {
        /// What happened.
        method: String,
        /// To what.
        params: Value,
    },
    /// The answer to a request of the server, which makes none that it waits for.
    Response,
    /// It is malformed: the answer.
    Malformed(Value),
}

/// Why a request is not done.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Refusal {
    /// The code of the protocol.
    pub(super) code: i32,
    /// For people.
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// For a reason that the user is told.
    pub(super) fn told(message: impl Into<String>) -> Self {
        Self::new(REQUEST_FAILED, message)
    }
}

/// The next message; `None` at the end of the input.
///
/// # Errors
/// When the input cannot be read, or what follows cannot be found: no length, or more than a server takes.
pub(super) fn read(input: &mut dyn BufRead) -> io::Result<Option<Incoming>> {
    let Some(length) = header(input)? else { return Ok(None) };
    if length > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    // No more is taken than comes, whatever the header says.
    let mut body = Vec::new();
    if (&mut *input).take(length as u64).read_to_end(&mut body)? < length {
        return Ok(None);
    }
    Ok(Some(message(&body)))
}

/// The length that a header gives.
fn header(input: &mut dyn BufRead) -> io::Result<Option<usize>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        let read = (&mut *input).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        match (line.split_once(':'), length) {
            _ if line.is_empty() && length.is_none() => {}
            _ if line.is_empty() => return Ok(length),
            (Some((name, value)), _) if name.trim().eq_ignore_ascii_case("content-length") => {
                let value = value.trim().parse::<usize>();
                length =
                    Some(value.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a length that is no number"))?);
            }
            _ => {}
        }
    }
}

fn message(body: &[u8]) -> Incoming {
    let malformed = |code, why: String| Incoming::Malformed(refused(&Value::Null, &Refusal::new(code, why)));
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return malformed(PARSE_ERROR, format!("no JSON: {error}")),
    };
    let Value::Object(mut message) = value else {
        return malformed(INVALID_REQUEST, "a message is an object".to_owned());
    };
    let params = message.remove("params").unwrap_or(Value::Null);
    match (message.remove("id"), message.remove("method")) {
        (Some(id @ (Value::Number(_) | Value::String(_))), Some(Value::String(method))) => {
            Incoming::Request { id, method, params }
        }
        (None, Some(Value::String(method))) => Incoming::Notification { method, params },
        (Some(_), None) => Incoming::Response,
        _ => malformed(INVALID_REQUEST, "a message has a method, and an id that is a number or a string".to_owned()),
    }
}

/// An answer.
pub(super) fn answered(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The answer of what is not done.
pub(super) fn refused(id: &Value, why: &Refusal) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": why.code, "message": why.message}})
}

/// Something that the client is told.
pub(super) fn told(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Writes a message with its header.
///
/// # Errors
/// When the output cannot be written.
pub(super) fn write(output: &mut dyn Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Incoming> {
        std::iter::from_fn(|| read(&mut input).expect("it can be read")).collect()
    }

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    #[test]
    fn messages_follow_one_another() {
        let text = framed(r#"{"id":1,"method":"a","params":[1]}"#) + &framed(r#"{"method":"b"}"#);
        let request = Incoming::Request { id: json!(1), method: "a".into(), params: json!([1]) };
        let notification = Incoming::Notification { method: "b".into(), params: Value::Null };
        assert_eq!(all(text.as_bytes()), [request, notification]);
    }

    #[test]
    fn what_is_malformed_is_answered_and_passed_over() {
        let text = framed("{") + &framed("[]") + &framed(r#"{"id":{},"method":"a"}"#) + &framed(r#"{"method":"b"}"#);
        let codes: Vec<Option<i64>> = all(text.as_bytes())
            .iter()
            .map(|message| match message {
                Incoming::Malformed(answer) => answer["error"]["code"].as_i64(),
                _ => None,
            })
            .collect();
        assert_eq!(codes, [Some(-32700), Some(-32600), Some(-32600), None]);
    }

    #[test]
    fn a_body_that_is_not_utf_8_is_malformed() {
        assert!(matches!(&all(b"Content-Length: 2\r\n\r\n\xff\xfe")[..], [Incoming::Malformed(_)]));
    }

    #[test]
    fn headers_are_read_as_they_come() {
        let text = "content-length:14\nContent-Type: application/vscode-jsonrpc; charset=utf-8\n\n{\"method\":\"b\"}";
        assert!(matches!(&all(text.as_bytes())[..], [Incoming::Notification { .. }]));
        assert_eq!(all(b"Content-Length: 100\r\n\r\n{}"), []);
        assert!(read(&mut &b"Content-Length: many\r\n\r\n{}"[..]).is_err());
        assert!(read(&mut &b"Content-Length: 99999999999\r\n\r\n{}"[..]).is_err());
    }
}
