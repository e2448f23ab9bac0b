//! Layer 6: back ends: what runs units on a device.
//!
//! A [`Backend`] makes an [`Executable`] of the units of a program, for one precision, and that runs batches. [`all`]
//! lists them.

#[doc(hidden)]
pub mod cpu;
#[doc(hidden)]
#[cfg_attr(not(feature = "codegen"), path = "no_cuda.rs")]
pub mod cuda;
mod generator;

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::plan::{CallPlan, Plan, TargetMachine};
use crate::run::{Outcome, RunInputs, Settings, Sink};
use crate::types::Precision;
use crate::unit;

/// What runs programs on a kind of device. Whatever it is, it gives every lane the bits of the reference interpreter.
pub trait Backend: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// Its name, by which it is asked for.
    fn name(&self) -> &'static str;
    /// What plans must know of the machine: they are made for it.
    fn machine(&self) -> TargetMachine;
    /// Makes what runs a program.
    ///
    /// # Errors
    /// [`BackendError`], where it cannot.
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError>;
}

/// A program that a back end has compiled. Several threads may run it at once.
pub trait Executable: fmt::Debug + Send + Sync {
    /// Long runs of so many lanes will follow: does what they would do sooner or later.
    fn prepare(&self, _lanes: usize, _settings: &Settings) {}
    /// Runs it for all lanes of the inputs, which fit the program: element types and event shapes are those of its lane
    /// inputs and shared values. Rows of trapped lanes are zero, and traps come in the order of positions. The time
    /// that the run takes is not its business.
    ///
    /// # Errors
    /// [`BackendError`], where it does not do what the settings ask for, or the device fails.
    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Result<Outcome, BackendError>;
}

/// The units of a program, and the plan that was made of them for the machine of the back end.
#[derive(Clone, Debug)]
pub enum Units {
    /// Of a stack program, for program-counter autobatching.
    Machine(Arc<unit::Program>, Arc<Plan>),
    /// Of a CFG program, for local static autobatching.
    Calls(Arc<unit::CallProgram>, Arc<CallPlan>),
}

/// How a program is compiled for a device.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct How {
    /// Width of `real`.
    pub precision: Precision,
    /// Whether code is generated, where the back end can do without, and when.
    pub generate: Generate,
    /// For which shards it is generated before the first run; beside runs, that hangs on the run.
    pub form: Form,
    /// Set from outside to end a compilation that is waited for.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Whether code is generated, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Generate {
    /// Kernels run every step.
    #[default]
    Never,
    /// Before the first run, which waits for it; that there can be none is an error.
    Before,
    /// While the program runs, where that may pay; that there can be none is no error.
    Beside,
}

/// What generated code is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Functions in the place of steps, which take the lanes of a shard group by group.
    #[default]
    Groups,
    /// Straight code of a stack program: all blocks as one function, which takes the lane of a shard of one from block to
    /// block, with nothing of the machine between them.
    OneLane,
}

/// Why a back end cannot compile a program, or run it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// It was stopped from outside; what it did.
    #[error("{0}")]
    Interrupted(String),
    /// Code cannot be generated here, and why.
    #[error("{0}")]
    Codegen(String),
    /// The device is not there, or fails, and why.
    #[error("{0}")]
    Device(String),
    /// It only compiles: what was made, and where it is kept.
    #[error("{0}")]
    Compiled(String),
    /// It does not run this kind of program, and what to do.
    #[error("{0}")]
    Unsupported(String),
}

/// All back ends, the one that is taken without being asked for first.
pub fn all() -> Vec<Arc<dyn Backend>> {
    vec![usual(), Arc::new(cuda::Cuda::first()), Arc::new(cuda::CudaHost::one())]
}

/// The back end that is taken without being asked for.
pub fn usual() -> Arc<dyn Backend> {
    Arc::new(cpu::Cpu)
}

/// The back end of this name.
pub fn named(name: &str) -> Option<Arc<dyn Backend>> {
    // For tests.
    #[cfg(feature = "codegen")]
    if name == "cuda-threads" {
        return Some(Arc::new(cuda::CudaThreads));
    }
    #[cfg(feature = "codegen")]
    if let Some(arch) = name.strip_prefix("cuda-code:") {
        return Some(Arc::new(cuda::CudaCode { arch: arch.to_owned() }));
    }
    if let Some(host) = cuda::CudaHost::named(name) {
        return Some(Arc::new(host));
    }
    if let Some(gpus) = cuda::Cuda::named(name) {
        return Some(Arc::new(gpus));
    }
    all().into_iter().find(|backend| backend.name() == name)
}
