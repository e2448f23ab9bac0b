//! In the place of the CUDA back end, where the library is built without the feature `codegen`: a GPU runs generated code.

use std::fmt;
use std::sync::Arc;

use super::cpu::MACHINE;
use super::{Backend, BackendError, Executable, How, Units};
use crate::plan::TargetMachine;
use crate::types::Precision;

/// What is said whatever is asked for.
const NOT_BUILT_IN: &str = "this build of autobatch runs nothing on GPUs: leave --device out (`Options::backend`), or build it \
                            with the feature `codegen`, which is there by default";

/// The host, with the text of the GPU.
#[derive(Clone, Copy, Debug)]
pub struct CudaHost {
    _none: (),
}

/// GPUs.
#[derive(Clone, Copy, Debug)]
pub struct Cuda {
    _none: (),
}

impl Cuda {
    /// The first GPU.
    pub fn first() -> Self {
        Self { _none: () }
    }

    /// The GPUs of this name: there is none of any, which is told when it is to run something.
    pub fn named(name: &str) -> Option<Self> {
        name.starts_with("cuda:").then(Self::first)
    }
}

impl CudaHost {
    /// The host as one device.
    pub fn one() -> Self {
        Self { _none: () }
    }

    /// The host of this name, as with [`Cuda::named`].
    pub fn named(name: &str) -> Option<Self> {
        name.starts_with("cuda-host").then(Self::one)
    }
}

impl Backend for CudaHost {
    fn name(&self) -> &'static str {
        "cuda-host"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, _: Units, _: &How) -> Result<Arc<dyn Executable>, BackendError> {
        Err(BackendError::Unsupported(NOT_BUILT_IN.to_owned()))
    }
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, _: Units, _: &How) -> Result<Arc<dyn Executable>, BackendError> {
        Err(BackendError::Unsupported(NOT_BUILT_IN.to_owned()))
    }
}

/// A GPU that is there: none is.
#[derive(Clone, Debug)]
pub enum Gpu {}

impl Gpu {
    /// Its number.
    pub fn number(&self) -> i32 {
        match *self {}
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// The GPUs of the machine.
///
/// # Errors
/// Always.
pub fn gpus() -> Result<Vec<Gpu>, &'static str> {
    Err(NOT_BUILT_IN)
}

/// The text of a program for a GPU.
///
/// # Errors
/// Always.
pub fn text(_: Units, _: Precision) -> Result<String, BackendError> {
    Err(BackendError::Unsupported(NOT_BUILT_IN.to_owned()))
}
