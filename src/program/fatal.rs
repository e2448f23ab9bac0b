//! Runs that a lane ends: `fatal_error` of Stan, an assertion whose message begins with that word.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Error, ErrorKind, Options};
use crate::parts::StreamId;
use crate::run::{NoMemory, Outcome, Record, Sink, Trap};

/// Hands on what a sink is told, and stops the run when an attempt catches what no sampler may go on after.
pub(super) struct Ending<'a> {
    sink: &'a dyn Sink,
    stop: Arc<AtomicBool>,
    first: Mutex<Option<Trap>>,
}

impl<'a> Ending<'a> {
    /// A run with a sink, and its options with a flag that stops it.
    pub(super) fn new(sink: &'a dyn Sink, options: &Options) -> (Self, Options) {
        let mut options = options.clone();
        let stop = options.settings.stop.get_or_insert_with(Arc::default).clone();
        (Self { sink, stop, first: Mutex::default() }, options)
    }

    /// Refuses the outcome of a run that was ended so.
    pub(super) fn refuse(self, outcome: &Outcome) -> Result<(), Error> {
        let first = self.first.into_inner().unwrap_or_else(PoisonError::into_inner);
        match first.as_ref().or_else(|| outcome.traps.iter().find(|trap| trap.is_fatal())) {
            Some(trap) => Err(Error::new(ErrorKind::Fatal, trap.told())),
            None => Ok(()),
        }
    }
}

impl Sink for Ending<'_> {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        self.sink.emit(position, stream, record)
    }
    fn print(&self, position: usize, line: String) {
        self.sink.print(position, line);
    }
    fn caught(&self, trap: &Trap) {
        if trap.is_fatal() {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| trap.clone());
            self.stop.store(true, Ordering::Relaxed);
        }
        self.sink.caught(trap);
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{ErrorKind, Inputs, Options, Program};
    use crate::run::NoSink;

    const TEXT: &str = "fn f(x: real) -> real { assert(x < 3.0, \"fatal_error: {x} is too much\"); x }
                        pub fn main(x: real) -> real { attempt(f)(x) }";

    #[test]
    fn a_fatal_error_ends_the_run_in_an_attempt_too_and_no_other_run() {
        let program = Program::compile(TEXT).expect("it compiles");
        let function = program.function("main").expect("it is there");
        let run = |x: Vec<f64>| function.run_with(&Inputs::new().lane("x", x), &Options::default(), &NoSink);
        assert_eq!(run(vec![1.0, 2.0]).expect("it runs").traps(), []);
        let error = run(vec![1.0, 4.0]).expect_err("it ends");
        assert_eq!(error.kind(), ErrorKind::Fatal);
        assert!(error.to_string().starts_with("fatal_error: 4 is too much (function `f`, line 1"), "{error}");
        assert!(run(vec![2.5]).is_ok());
    }
}
