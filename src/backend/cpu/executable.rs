//! The CPU as a back end: a plan, with generated code where that is asked for, runs on one of the two engines.

use std::sync::Arc;

use super::codegen::compiler::CodegenError;
use super::codegen::{Choice, Code, FEW, Generated, Native};
use super::{MACHINE, local, pc, straight};
use crate::backend::{Backend, BackendError, Executable, Generate, How, Units};
use crate::plan::TargetMachine;
use crate::run::{Outcome, RunInputs, Settings, Sink};

/// The back end for this processor.
#[derive(Clone, Copy, Debug)]
pub struct Cpu;

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError> {
        let code = match (&program, how.generate) {
            (_, Generate::Never) => Made::Nothing,
            // Where there is no compiler to come, none is looked for.
            (_, Generate::Beside) if !cfg!(feature = "codegen") => Made::Nothing,
            // Generated code keeps the tops of stacks in registers of the processor.
            (Units::Machine(_, plan), _) if !plan.cached_tops => Made::Nothing,
            (_, Generate::Beside) => Made::Beside(Box::new(Choice::new(&program, how.precision))),
            (_, Generate::Before) => {
                let code = Code::of(&program, how.form);
                Made::Before(Box::new(Native::new(code, how.precision, how.stop.clone())?))
            }
        };
        Ok(Arc::new(Loaded { program, code }))
    }
}

impl From<CodegenError> for BackendError {
    fn from(error: CodegenError) -> Self {
        match error {
            CodegenError::Interrupted => BackendError::Interrupted(error.to_string()),
            error => BackendError::Codegen(error.to_string()),
        }
    }
}

/// A plan and its generated code.
#[derive(Debug)]
struct Loaded {
    program: Units,
    code: Made,
}

/// The generated code of a plan.
#[derive(Debug)]
enum Made {
    Nothing,
    /// Before the first run.
    Before(Box<Native>),
    /// Beside the runs: groups, or straight code where it does more.
    Beside(Box<Choice>),
}

/// The code that suits a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suits {
    /// Groups of lanes, whatever they do.
    Groups,
    /// Who does more, with straight code first where there are `few` lanes a shard.
    Either { few: bool },
    /// Straight code, which is quicker than anything for shards of one lane.
    OneLane,
}

impl Loaded {
    /// The code that suits a run of so many lanes.
    fn suits(&self, lanes: usize, settings: &Settings) -> Suits {
        let Units::Machine(_, plan) = &self.program else { return Suits::Groups };
        if !straight::serves(settings) {
            return Suits::Groups;
        }
        match (settings.shard_lanes, pc::width(plan, lanes, settings)) {
            (_, 1) => Suits::OneLane,
            (0, width) => Suits::Either { few: width <= FEW },
            // Who asks for shards asks for groups.
            _ => Suits::Groups,
        }
    }
}

impl Executable for Loaded {
    fn prepare(&self, lanes: usize, settings: &Settings) {
        if let Made::Beside(choice) = &self.code {
            match self.suits(lanes, settings) {
                Suits::Groups | Suits::Either { few: false } => choice.groups().look_on_disk(),
                Suits::OneLane | Suits::Either { few: true } => choice.one_lane().look_on_disk(),
            }
        }
    }

    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Result<Outcome, BackendError> {
        let generated = match &self.code {
            Made::Nothing => Generated::Nothing,
            Made::Before(native) => Generated::Now(native),
            // Groups have functions of parts of blocks where straight code has nothing.
            Made::Beside(choice) => match self.suits(inputs.lanes.len(), settings) {
                Suits::OneLane if choice.one_lane().may_come() => Generated::Beside(choice.one_lane()),
                Suits::Either { few } => Generated::Either { choice, few },
                Suits::OneLane | Suits::Groups => Generated::Beside(choice.groups()),
            },
        };
        Ok(match &self.program {
            Units::Machine(_, plan) => pc::run_with(plan, generated, inputs, settings, sink),
            Units::Calls(_, plan) => local::run_with(plan, generated, inputs, settings, sink),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Inputs, Options, Program};

    #[test]
    fn the_code_is_that_which_suits_the_shards() {
        let source = "pub fn main(n: int) -> int { let mut m = n; while m > 1 { m = m / 2; } m }";
        let program = Program::compile(source).expect("it compiles");
        let options = Options::default();
        let inputs = Inputs::new().lane("n", vec![1_i64]);
        let bound = program.function("main").unwrap().bind(&inputs, &options).expect("it binds");
        let compiled = bound.compiled();
        let units = Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
        let loaded = Loaded { program: units, code: Made::Nothing };
        let suits = |lanes, settings: Settings| loaded.suits(lanes, &settings);
        let threads = |threads| Settings::default().threads(threads);
        assert_eq!(suits(4, threads(4)), Suits::OneLane);
        assert_eq!(suits(4, threads(2)), Suits::Either { few: true });
        assert_eq!(suits(5, threads(2)), Suits::Either { few: false });
        assert_eq!(suits(1000, threads(2)), Suits::Either { few: false });
        // What is asked for otherwise.
        assert_eq!(suits(4, threads(4).shard_lanes(4)), Suits::Groups);
        assert_eq!(suits(4, threads(2).shard_lanes(1)), Suits::OneLane);
        assert_eq!(suits(1, threads(1).stats(true)), Suits::Groups);
        assert_eq!(suits(1, threads(1).max_supersteps(10)), Suits::Groups);
    }
}
