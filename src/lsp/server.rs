//! The server: one thread reads and answers at once what it can, another does the work on documents.
//!
//! The reading thread knows the life of the server, and hands on everything about documents in order. So `shutdown`, `exit`
//! and `$/cancelRequest` are seen while a check goes on. A change or a close stops a check for diagnostics, which would tell
//! of a text that is gone; a request's own work is stopped when it is cancelled.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::state::{State, invalid};
use super::wire::{
    self, CANCELLED, INTERNAL_ERROR, INVALID_REQUEST, Incoming, NOT_INITIALIZED, Refusal, answered, refused, told,
};
use super::{answers, diagnostics};

/// How long nothing comes before documents that changed are checked: of a burst of changes the last is.
const QUIET: Duration = Duration::from_millis(25);

/// The stack of the thread that does the work, in bytes: deep trees have others, made for them.
const STACK: usize = 64 << 20;

/// The most requests that are remembered as cancelled.
const MOST_CANCELLED: usize = 1000;

/// Where messages go to the client. All threads write whole messages.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<dyn Write + Send>>);

impl Output {
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }

    /// Sends a message. A client that is gone is noticed where its messages are read.
    fn send(&self, message: &Value) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = wire::write(&mut *output, message);
    }
}

/// What both threads know.
#[derive(Default)]
struct Wanted {
    /// Requests that were cancelled before they were answered, as texts of their ids.
    cancelled: Mutex<HashSet<String>>,
    /// The request that is being answered, and what stops it.
    running: Mutex<Option<(String, Arc<AtomicBool>)>>,
    /// Stops a check for diagnostics.
    checking: Mutex<Arc<AtomicBool>>,
}

impl Wanted {
    fn cancel(&self, id: &str) {
        let mut cancelled = lock(&self.cancelled);
        // Those that were answered before stay here.
        if cancelled.len() >= MOST_CANCELLED {
            cancelled.clear();
        }
        cancelled.insert(id.to_owned());
        drop(cancelled);
        if let Some((_, stop)) = lock(&self.running).as_ref().filter(|(running, _)| running == id) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn stop_check(&self) {
        lock(&self.checking).store(true, Ordering::Relaxed);
    }

    fn stop_all(&self) {
        self.stop_check();
        if let Some((_, stop)) = lock(&self.running).as_ref() {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until `exit`, or until the input ends. True where the client shut the server down before.
pub(super) fn serve(input: &mut dyn BufRead, output: Output) -> bool {
    let wanted = Arc::new(Wanted::default());
    let (jobs, work) = channel();
    let worker = {
        let (wanted, output) = (wanted.clone(), output.clone());
        move || Worker { state: State::default(), wanted, output, told: BTreeSet::new() }.run(&work)
    };
    // It is not waited for at the end: nobody wants what it still does.
    if let Err(error) = std::thread::Builder::new().name("documents".into()).stack_size(STACK).spawn(worker) {
        output.send(&told("window/logMessage", json!({"type": 1, "message": format!("no thread: {error}")})));
        return false;
    }
    Reader { life: Life::New, wanted, output, jobs }.run(input)
}

/// How far the server is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    New,
    Initialized,
    ShutDown,
}

struct Reader {
    life: Life,
    wanted: Arc<Wanted>,
    output: Output,
    jobs: Sender<Incoming>,
}

impl Reader {
    fn run(mut self, input: &mut dyn BufRead) -> bool {
        loop {
            match wire::read(input) {
                Ok(Some(Incoming::Notification { method, .. })) if method == "exit" => break,
                Ok(Some(message)) => self.message(message),
                Ok(None) => break,
                Err(error) => {
                    let why = Refusal::new(wire::PARSE_ERROR, format!("the server ends: {error}"));
                    self.output.send(&refused(&Value::Null, &why));
                    break;
                }
            }
        }
        self.wanted.stop_all();
        self.life == Life::ShutDown
    }

    fn message(&mut self, message: Incoming) {
        match message {
            Incoming::Malformed(answer) => self.output.send(&answer),
            Incoming::Response => {}
            Incoming::Request { id, method, params } => {
                if let Err(why) = self.request(&id, &method, params) {
                    self.output.send(&refused(&id, &why));
                }
            }
            Incoming::Notification { method, params } => self.notification(method, params),
        }
    }

    /// A request: it is handed on, or answered here.
    fn request(&mut self, id: &Value, method: &str, params: Value) -> Result<(), Refusal> {
        match (self.life, method) {
            (Life::New, "initialize") => self.life = Life::Initialized,
            (Life::New, _) => return Err(Refusal::new(NOT_INITIALIZED, "the first request is `initialize`")),
            (Life::ShutDown, _) => return Err(Refusal::new(INVALID_REQUEST, "the server is shut down")),
            (Life::Initialized, "initialize") => {
                return Err(Refusal::new(INVALID_REQUEST, "the server is initialized"));
            }
            (Life::Initialized, "shutdown") => {
                self.life = Life::ShutDown;
                self.wanted.stop_all();
                self.output.send(&answered(id, Value::Null));
                return Ok(());
            }
            (Life::Initialized, _) => {}
        }
        self.hand_on(Incoming::Request { id: id.clone(), method: method.to_owned(), params })
    }

    fn notification(&mut self, method: String, params: Value) {
        if self.life != Life::Initialized {
            return;
        }
        if method == "$/cancelRequest" {
            self.wanted.cancel(&params["id"].to_string());
            return;
        }
        let changes = matches!(&method[..], "textDocument/didChange" | "textDocument/didClose");
        // A worker that is gone has nothing to do with it.
        let _ = self.hand_on(Incoming::Notification { method, params });
        if changes {
            self.wanted.stop_check();
        }
    }

    fn hand_on(&self, message: Incoming) -> Result<(), Refusal> {
        self.jobs.send(message).map_err(|_| Refusal::new(INTERNAL_ERROR, "the server's work has ended"))
    }
}

struct Worker {
    state: State,
    wanted: Arc<Wanted>,
    output: Output,
    /// Addresses of files that have findings in the client.
    told: BTreeSet<String>,
}

impl Worker {
    fn run(mut self, jobs: &Receiver<Incoming>) {
        // When what changed is to be checked.
        let mut due: Option<Instant> = None;
        loop {
            let next = match due {
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => jobs.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match next {
                Ok(message) => {
                    if self.message(message) {
                        due = Some(Instant::now() + QUIET);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let stop = Arc::new(AtomicBool::new(false));
                    *lock(&self.wanted.checking) = stop.clone();
                    // What came before the flag was there did not set it.
                    match jobs.try_recv() {
                        Ok(message) => drop(self.message(message)),
                        Err(_) => due = self.check(&stop).then(Instant::now),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Checks one document that changed, and tells what is found. True where more is to be done.
    fn check(&mut self, stop: &Arc<AtomicBool>) -> bool {
        let Some(uri) = self.state.unchecked().next().cloned() else {
            self.publish();
            return false;
        };
        match catch_unwind(AssertUnwindSafe(|| self.state.analysis(&uri, stop).is_ok())) {
            Ok(_) => {}
            Err(panic) => {
                let message = format!("the check of {uri} failed, which is a fault of autobatch: {}", said(&*panic));
                self.output.send(&told("window/showMessage", json!({"type": 1, "message": message})));
                // Not again before the text changes.
                self.state.give_up(&uri);
            }
        }
        true
    }

    /// Tells the findings of all files that have any, or had.
    fn publish(&mut self) {
        let all = diagnostics::all(&self.state);
        let gone: Vec<String> = self.told.iter().filter(|uri| !all.contains_key(*uri)).cloned().collect();
        for uri in gone {
            self.output.send(&told("textDocument/publishDiagnostics", json!({"uri": uri, "diagnostics": []})));
            self.told.remove(&uri);
        }
        for (uri, found) in all {
            let mut params = json!({"uri": uri, "diagnostics": found});
            if let Some(document) = self.state.documents.get(&uri) {
                params["version"] = document.version.clone();
            }
            self.output.send(&told("textDocument/publishDiagnostics", params));
            self.told.insert(uri);
        }
    }

    /// Does what a message says. True where documents are to be checked.
    fn message(&mut self, message: Incoming) -> bool {
        match message {
            Incoming::Request { id, method, params } => {
                self.request(&id, &method, &params);
                false
            }
            Incoming::Notification { method, params } => {
                let done = catch_unwind(AssertUnwindSafe(|| self.notification(&method, &params)));
                let why = match done {
                    Ok(Ok(check)) => return check,
                    Ok(Err(why)) => why.message,
                    Err(panic) => format!("a fault of autobatch: {}", said(&*panic)),
                };
                let message = format!("{method}: {why}");
                self.output.send(&told("window/logMessage", json!({"type": 1, "message": message})));
                false
            }
            Incoming::Response | Incoming::Malformed(_) => false,
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        let stop = Arc::new(AtomicBool::new(false));
        *lock(&self.wanted.running) = Some((id.to_string(), stop.clone()));
        let cancelled = lock(&self.wanted.cancelled).remove(&id.to_string());
        let answer = if cancelled {
            Err(Refusal::new(CANCELLED, "no longer wanted"))
        } else {
            guarded(|| self.answer(method, params, &stop))
        };
        *lock(&self.wanted.running) = None;
        // One that was cancelled while it was answered is answered, and no other of its number is meant.
        lock(&self.wanted.cancelled).remove(&id.to_string());
        self.output.send(&match answer {
            Ok(result) => answered(id, result),
            Err(why) => refused(id, &why),
        });
    }

    fn answer(&mut self, method: &str, params: &Value, stop: &Arc<AtomicBool>) -> Result<Value, Refusal> {
        if method == "initialize" {
            self.state.initialize(params);
            return Ok(answers::capabilities(&self.state));
        }
        answers::answer(&mut self.state, method, params, stop)
    }

    fn notification(&mut self, method: &str, params: &Value) -> Result<bool, Refusal> {
        let document = &params["textDocument"];
        let uri = || document["uri"].as_str().ok_or_else(|| invalid("`textDocument.uri` is a text"));
        match method {
            "textDocument/didOpen" => {
                let text = document["text"].as_str().ok_or_else(|| invalid("`textDocument.text` is a text"))?;
                let language = document["languageId"].as_str().unwrap_or_default();
                self.state.open(uri()?, language, document["version"].clone(), text);
            }
            "textDocument/didChange" => {
                let changes = params["contentChanges"].as_array();
                let changes = changes.ok_or_else(|| invalid("`contentChanges` is an array"))?;
                self.state.change(uri()?, document["version"].clone(), changes)?;
            }
            "textDocument/didClose" => self.state.close(uri()?),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.state.forget(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Does something whose panic is an answer and not the end of the server.
fn guarded(answer: impl FnOnce() -> Result<Value, Refusal>) -> Result<Value, Refusal> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|panic| {
        let why = format!("a fault of autobatch, which you may report: {}", said(&*panic));
        Err(Refusal::new(INTERNAL_ERROR, why))
    })
}

/// What a panic says.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        let answer = guarded(|| panic!("index out of bounds"));
        let why = answer.expect_err("it panicked");
        assert_eq!(why.code, INTERNAL_ERROR);
        assert!(why.message.contains("index out of bounds"), "{}", why.message);
    }
}
