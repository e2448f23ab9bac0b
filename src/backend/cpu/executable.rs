//! The CPU as a back end: a plan, with generated code where that is asked for, runs on one of the two engines.

use std::sync::Arc;

use super::codegen::compiler::CodegenError;
use super::codegen::{Beside, Code, Form, Generated, Native};
use super::{MACHINE, local, pc, straight};
use crate::backend::{Backend, CompileError, Executable, Generate, How, Units};
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
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, CompileError> {
        let beside = |form| Box::new(Beside::new(program.clone(), form, how.precision));
        let code = match (&program, how.generate) {
            (_, Generate::Never) => Made::Nothing,
            // Generated code keeps the tops of stacks in registers of the processor.
            (Units::Machine(_, plan), _) if !plan.cached_tops => Made::Nothing,
            (Units::Machine(..), Generate::Beside) => {
                let straight = [true, false].map(|alone| beside(Form::Straight { alone }));
                Made::Beside { groups: beside(Form::Groups), straight: Some(straight) }
            }
            (Units::Calls(..), Generate::Beside) => Made::Beside { groups: beside(Form::Groups), straight: None },
            (_, Generate::Before) => {
                let form = if how.straight { Form::Straight { alone: true } } else { Form::Groups };
                Made::Before(Box::new(Native::new(Code::of(&program, form), how.precision, how.stop.clone())?))
            }
        };
        Ok(Arc::new(Loaded { program, code }))
    }
}

impl From<CodegenError> for CompileError {
    fn from(error: CodegenError) -> Self {
        match error {
            CodegenError::Interrupted => CompileError::Interrupted(error.to_string()),
            error => CompileError::Codegen(error.to_string()),
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
    /// Beside the runs; straight code for those of a lane for each thread, and for those of few lanes.
    Beside {
        groups: Box<Beside>,
        straight: Option<[Box<Beside>; 2]>,
    },
}

/// Lanes for each thread of a run up to which straight code is quicker than groups of lanes: RESULTS.md has what was
/// measured.
const FEW: usize = 2;

impl Executable for Loaded {
    fn prepare(&self) {
        if let Made::Beside { groups, straight } = &self.code {
            let all = || std::iter::once(groups).chain(straight.iter().flatten());
            all().for_each(|beside| beside.look_on_disk());
            all().for_each(|beside| beside.wait_for_disk());
        }
    }

    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
        let generated = match &self.code {
            Made::Nothing => Generated::Nothing,
            Made::Before(native) => Generated::Now(native),
            Made::Beside { groups, straight } => {
                let (lanes, threads) = (inputs.lanes.len(), workers(settings));
                let few = lanes <= threads * FEW && straight::serves(settings);
                let straight = straight.as_ref().map(|[alone, any]| if lanes <= threads { alone } else { any });
                Generated::Beside(straight.filter(|straight| few && straight.may_come()).unwrap_or(groups))
            }
        };
        match &self.program {
            Units::Machine(_, plan) => pc::run_with(plan, generated, inputs, settings, sink),
            Units::Calls(_, plan) => local::run_with(plan, generated, inputs, settings, sink),
        }
    }
}
