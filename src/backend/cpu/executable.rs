//! The CPU as a back end: a plan, with generated code where that is asked for, runs on one of the two engines.

use std::sync::Arc;

use super::codegen::compiler::CodegenError;
use super::codegen::{Beside, Choice, Code, Generated, Native};
use super::{MACHINE, local, pc, straight};
use crate::backend::{Backend, BackendError, Executable, Form, Generate, How, Units};
use crate::plan::TargetMachine;
use crate::run::{Outcome, RunInputs, Settings, Sink, workers};

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
        let beside = |form| Box::new(Beside::new(program.clone(), form, how.precision));
        let code = match (&program, how.generate) {
            (_, Generate::Never) => Made::Nothing,
            // Where there is no compiler to come, none is looked for.
            (_, Generate::Beside) if !cfg!(feature = "codegen") => Made::Nothing,
            // Generated code keeps the tops of stacks in registers of the processor.
            (Units::Machine(_, plan), _) if !plan.cached_tops => Made::Nothing,
            (_, Generate::Beside) => {
                let choice = Box::new(Choice::new(&program, how.precision));
                Made::Beside { choice, few_lanes: beside(Form::FewLanes) }
            }
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
    /// Beside the runs, in the form that suits each.
    Beside {
        /// Groups, or straight code where it does more.
        choice: Box<Choice>,
        few_lanes: Box<Beside>,
    },
}

/// Lanes of a shard up to which straight code is quicker than groups of lanes: `benches/RESULTS.md` has what was measured.
const FEW: usize = 2;

impl Loaded {
    /// The form of code that suits a run of so many lanes.
    fn form(&self, lanes: usize, settings: &Settings) -> Form {
        let Units::Machine(_, plan) = &self.program else { return Form::Groups };
        if lanes > workers(settings).saturating_mul(FEW) || !straight::serves(settings) {
            return Form::Groups;
        }
        match pc::width(plan, lanes, settings) {
            1 => Form::OneLane,
            ..=FEW => Form::FewLanes,
            _ => Form::Groups,
        }
    }

    /// Whether lanes that no shard has taken may go to straight code.
    fn chooses(&self, settings: &Settings) -> bool {
        matches!(self.program, Units::Machine(..)) && settings.shard_lanes == 0 && straight::serves(settings)
    }
}

impl Executable for Loaded {
    fn prepare(&self, lanes: usize, settings: &Settings) {
        if let Made::Beside { choice, few_lanes } = &self.code {
            match self.form(lanes, settings) {
                Form::Groups => choice.groups().look_on_disk(),
                Form::FewLanes => few_lanes.look_on_disk(),
                Form::OneLane => choice.one_lane().look_on_disk(),
            }
        }
    }

    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Result<Outcome, BackendError> {
        let generated = match &self.code {
            Made::Nothing => Generated::Nothing,
            Made::Before(native) => Generated::Now(native),
            // Groups have functions of parts of blocks where straight code has nothing.
            Made::Beside { choice, few_lanes } => match self.form(inputs.lanes.len(), settings) {
                Form::FewLanes if few_lanes.may_come() => Generated::Beside(few_lanes),
                Form::OneLane if choice.one_lane().may_come() => Generated::Beside(choice.one_lane()),
                _ if self.chooses(settings) => Generated::Either(choice),
                _ => Generated::Beside(choice.groups()),
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
    fn the_form_of_code_is_that_of_the_shards() {
        let source = "pub fn main(n: int) -> int { let mut m = n; while m > 1 { m = m / 2; } m }";
        let program = Program::compile(source).expect("it compiles");
        let options = Options::default();
        let inputs = Inputs::new().lane("n", vec![1_i64]);
        let bound = program.function("main").unwrap().bind(&inputs, &options).expect("it binds");
        let compiled = bound.compiled();
        let units = Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
        let loaded = Loaded { program: units, code: Made::Nothing };
        let form = |lanes, settings: Settings| loaded.form(lanes, &settings);
        let threads = |threads| Settings::default().threads(threads);
        assert_eq!(form(4, threads(4)), Form::OneLane);
        assert_eq!(form(4, threads(2)), Form::FewLanes);
        assert_eq!(form(5, threads(2)), Form::Groups);
        assert_eq!(form(1000, threads(2)), Form::Groups);
        // What is asked for otherwise.
        assert_eq!(form(4, threads(4).shard_lanes(4)), Form::Groups);
        assert_eq!(form(4, threads(4).shard_lanes(2)), Form::FewLanes);
        assert_eq!(form(1, threads(1).stats(true)), Form::Groups);
        assert_eq!(form(1, threads(1).max_supersteps(10)), Form::Groups);
    }
}
