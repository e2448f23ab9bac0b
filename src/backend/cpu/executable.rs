//! The CPU as a back end: a plan, with generated code where that is asked for, runs on one of the two engines.

use std::sync::Arc;

use super::codegen::compiler::CodegenError;
use super::codegen::{Code, Native};
use super::{MACHINE, local, pc};
use crate::backend::{Backend, CompileError, Executable, How, Units};
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
        let code = match &program {
            // Generated code keeps the tops of stacks in registers of the processor.
            Units::Machine(units, plan) => plan.cached_tops.then(|| Code::of_units(units, plan)),
            Units::Calls(units, plan) => Some(Code::of_calls(units, plan)),
        };
        let code = code.filter(|_| how.codegen);
        let native = code.map(|code| Native::new(code, how.precision, how.stop.clone())).transpose()?;
        Ok(Arc::new(Loaded { program, native }))
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
    native: Option<Native>,
}

impl Executable for Loaded {
    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
        let native = self.native.as_ref();
        match &self.program {
            Units::Machine(_, plan) => pc::run_with(plan, native, inputs, settings, sink),
            Units::Calls(_, plan) => local::run_with(plan, native, inputs, settings, sink),
        }
    }
}
