//! The peer's side of the protocol of src/bench/protocol.rs, for peers written in Rust.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

/// The next line of the harness; `None` at the end.
fn read() -> Option<Value> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(serde_json::from_str(&line).expect("the harness sends JSON")),
    }
}

fn say(answer: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}").and_then(|()| out.flush()).expect("the harness listens");
}

/// What is to be computed: the fields are those of `protocol::Job`.
pub struct Job(pub Value);

impl Job {
    pub fn read() -> Self {
        Self(read().expect("a job"))
    }
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_else(|| panic!("the job has no text `{name}`"))
    }
    pub fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or_else(|| panic!("the job has no number `{name}`"))
    }
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }
    /// The data file.
    pub fn data(&self) -> Value {
        let text = std::fs::read_to_string(self.text("data")).expect("the data can be read");
        serde_json::from_str(&text).expect("the data are JSON")
    }
}

/// The numbers of nested lists, row after row.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(list) => list.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

/// A repetition.
pub struct Done {
    pub useful: u64,
    pub seconds: f64,
    /// Chain x draw x dimension, with the extents.
    pub states: Option<(Vec<f64>, [usize; 3])>,
}

/// Says that the peer is warm and answers requests until there are no more.
pub fn serve(version: &str, mut repeat: impl FnMut(usize, u64) -> Done) {
    say(&json!({ "ready": { "version": version } }));
    while let Some(request) = read() {
        let draws = request["draws"].as_u64().expect("a number of draws") as usize;
        let done = repeat(draws, request["seed"].as_u64().unwrap_or(0));
        let mut answer = json!({ "useful": done.useful, "seconds": done.seconds, "draws": draws });
        if let (Some(path), Some((states, extents))) = (request["keep"].as_str(), &done.states) {
            let bytes: Vec<u8> = states.iter().flat_map(|x| x.to_le_bytes()).collect();
            std::fs::write(path, bytes).expect("the draws can be written");
            answer["kept"] = json!(extents);
        }
        say(&json!({ "done": answer }));
    }
}

/// Says why it cannot go on, and ends.
pub fn fail(why: &str) -> ! {
    say(&json!({ "error": why }));
    std::process::exit(1)
}
