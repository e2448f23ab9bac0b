//! The CPU as a back end: a plan, with generated code where that is asked for, runs on one of the two engines.

use std::sync::Arc;

use super::codegen::compiler::CodegenError;
use super::codegen::{Beside, Code, Generated, Native};
use super::{MACHINE, local, pc};
use crate::backend::{Backend, CompileError, Executable, Generate, How, Units};
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
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, CompileError> {
        let code = match (&program, how.generate) {
            (_, Generate::Never) => Made::Nothing,
            // Generated code keeps the tops of stacks in registers of the processor.
            (Units::Machine(_, plan), _) if !plan.cached_tops => Made::Nothing,
            (_, Generate::Beside) => Made::Beside(Box::new(Beside::new(program.clone(), how.precision))),
            (Units::Machine(units, plan), Generate::Before) if how.straight => {
                Made::before(Code::straight(units, plan), how)?
            }
            (Units::Machine(units, plan), Generate::Before) => Made::before(Code::of_units(units, plan), how)?,
            (Units::Calls(units, plan), Generate::Before) => Made::before(Code::of_calls(units, plan), how)?,
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
    /// Beside the runs.
    Beside(Box<Beside>),
}

impl Made {
    fn before(code: Code, how: &How) -> Result<Self, CodegenError> {
        Ok(Made::Before(Box::new(Native::new(code, how.precision, how.stop.clone())?)))
    }
}

impl Executable for Loaded {
    fn prepare(&self) {
        if let Made::Beside(beside) = &self.code {
            beside.look_on_disk();
        }
    }

    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
        let generated = match &self.code {
            Made::Nothing => Generated::Nothing,
            Made::Before(native) => Generated::Now(native),
            Made::Beside(beside) => Generated::Beside(beside),
        };
        match &self.program {
            Units::Machine(_, plan) => pc::run_with(plan, generated, inputs, settings, sink),
            Units::Calls(_, plan) => local::run_with(plan, generated, inputs, settings, sink),
        }
    }
}
