//! Runs that a lane ends: `fatal_error` of Stan, an assertion whose message begins with that word.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Error, ErrorKind, Options};
use crate::parts::StreamId;
use crate::run::{NoMemory, Record, Sink, Trap};

/// Hands on what a sink is told, and notes what a lane says that no other may go on after, which ends the run, too.
pub(super) struct Ending<'a> {
    sink: &'a dyn Sink,
    /// Where the run is told to end; none where it goes on.
    ended: Option<Arc<AtomicBool>>,
    first: Mutex<Option<Trap>>,
}

impl<'a> Ending<'a> {
    /// A run with a sink, and its options with a flag that ends this run and no other.
    pub(super) fn new(sink: &'a dyn Sink, options: &Options) -> (Self, Options) {
        let (mut options, ended) = (options.clone(), Arc::new(AtomicBool::new(false)));
        options.settings.ended = Some(ended.clone());
        (Self { ended: Some(ended), ..Self::noting(sink) }, options)
    }

    /// A run that goes on when a lane says so.
    pub(super) fn noting(sink: &'a dyn Sink) -> Self {
        Self { sink, ended: None, first: Mutex::default() }
    }

    fn look(&self, trap: &Trap) {
        if trap.is_fatal() {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| trap.clone());
            if let Some(ended) = &self.ended {
                ended.store(true, Ordering::Relaxed);
            }
        }
    }

    /// What a lane said first that ends a run, if one did.
    pub(super) fn said(self) -> Option<Error> {
        let first = self.first.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map(|trap| Error::new(ErrorKind::Fatal, trap.told()))
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
        self.look(trap);
        self.sink.caught(trap);
    }
    fn trapped(&self, trap: &Trap) {
        self.look(trap);
        self.sink.trapped(trap);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use crate::parts::StreamId;
    use crate::program::{Codegen, Engine, ErrorKind, Inputs, Options, Program, c_compiler};
    use crate::run::{NoMemory, NoSink, Record, Sink, Trap, TrapKind};

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

    /// Lanes that trapped, and why.
    #[derive(Default)]
    struct Trapped(Mutex<Vec<(usize, TrapKind)>>);

    impl Sink for Trapped {
        fn emit(&self, _: usize, _: StreamId, _: &dyn Record) -> Result<(), NoMemory> {
            Ok(())
        }
        fn print(&self, _: usize, _: String) {}
        fn trapped(&self, trap: &Trap) {
            self.0.lock().expect("nobody panics").push((trap.position, trap.kind));
        }
    }

    #[test]
    fn lanes_that_would_never_end_are_ended_and_the_flag_of_the_caller_is_left_alone() {
        let program = Program::compile(
            "pub fn main(x: real) -> int {
                assert(x < 3.0, \"fatal_error: {x} is too much\");
                let mut i = 0;
                while i >= 0 { i = (i + 1) % 7; }
                i
            }",
        );
        let program = program.expect("it compiles");
        let function = program.function("main").expect("it is there");
        let mut ways = [Engine::Scalar, Engine::Pc, Engine::Local].map(|engine| (engine, Codegen::Off)).to_vec();
        if c_compiler().is_ok() {
            ways.push((Engine::Pc, Codegen::Cc));
        }
        for (engine, codegen) in ways {
            let stop = Arc::new(AtomicBool::new(false));
            let options = Options::default().engine(engine).codegen(codegen).max_supersteps(200_000_000);
            let settings = options.get_settings().clone().stop(stop.clone()).threads(1);
            let trapped = Trapped::default();
            let inputs = Inputs::new().lane("x", vec![4.0, 1.0]);
            let error = function.run_with(&inputs, &options.settings(settings), &trapped).expect_err("it ends");
            assert_eq!(error.kind(), ErrorKind::Fatal);
            let trapped = trapped.0.into_inner().expect("nobody panics");
            let all = [(0, TrapKind::AssertFailed), (1, TrapKind::Interrupted)];
            assert_eq!(trapped, all, "{engine:?} {codegen:?}");
            assert!(!stop.load(Ordering::Relaxed));
        }
    }
}
