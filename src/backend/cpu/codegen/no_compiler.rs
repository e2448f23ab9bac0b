//! In the place of the compiler, where the library is built without the feature `codegen`: there is none.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;

/// Under what something is kept.
pub(super) type Key = [u8; 32];

/// Why there is no compiled code.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodegenError {
    /// The library was built without it.
    #[error(
        "this build of autobatch generates no code: take --codegen off (`Codegen::Off`), or build it with the feature \
         `codegen`, which is there by default"
    )]
    NotBuiltIn,
    /// It was stopped from outside.
    #[error("interrupted while the C compiler ran")]
    Interrupted,
}

/// What code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The processor at hand, with the widest groups it has.
    Native,
    /// One lane at a time, in plain C.
    Scalar,
}

/// How a text is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompilerOptions {
    /// Whether a real is a `float` and no `double`.
    pub real_f32: bool,
    /// The processor.
    pub target: Target,
}

/// A C compiler: there is none.
#[derive(Clone, Debug)]
pub struct Compiler(Infallible);

/// Compiled code: there is none.
#[derive(Debug)]
pub struct Library(Infallible);

/// What was looked for in compiled code.
type Found<T> = Result<(Library, T), CodegenError>;

impl Compiler {
    /// None.
    pub fn find() -> Result<Self, CodegenError> {
        Self::find_until(None)
    }
    pub(super) fn find_until(_: Option<Arc<AtomicBool>>) -> Result<Self, CodegenError> {
        Err(CodegenError::NotBuiltIn)
    }
    /// Of none.
    pub fn with_stop(self, _: Option<Arc<AtomicBool>>) -> Self {
        match self.0 {}
    }
    /// Of none.
    pub fn name(&self) -> Cow<'_, str> {
        match self.0 {}
    }
    /// Of none.
    pub fn load_with<T>(
        &self,
        _: &str,
        _: &CompilerOptions,
        _: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Found<T> {
        match self.0 {}
    }
    pub(super) fn kept<T>(
        &self,
        _: &str,
        _: &CompilerOptions,
        _: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Result<Option<(Library, T)>, CodegenError> {
        match self.0 {}
    }
    pub(super) fn made<T>(
        &self,
        _: &str,
        _: &CompilerOptions,
        _: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Found<T> {
        match self.0 {}
    }
    pub(super) fn estimate(&self, _: &str) -> Duration {
        match self.0 {}
    }
    pub(super) fn measured(&self, _: &str) -> usize {
        match self.0 {}
    }
    pub(super) fn remember(&self, _: usize, _: Duration) {
        match self.0 {}
    }
    pub(super) fn spent(&self, _: &Key) -> Duration {
        match self.0 {}
    }
    pub(super) fn keep_spent(&self, _: &Key, _: Duration) {
        match self.0 {}
    }
    pub(super) fn recalled(&self, _: &Key, _: usize) -> Option<[f64; 2]> {
        match self.0 {}
    }
    pub(super) fn keep(&self, _: &Key, _: usize, _: &[f64; 2]) {
        match self.0 {}
    }
    pub(super) fn times_key(&self, _: &str, _: &CompilerOptions) -> Key {
        match self.0 {}
    }
    pub(super) fn keeps(&self) -> bool {
        match self.0 {}
    }
}

impl Library {
    /// Of none.
    ///
    /// # Safety
    ///
    /// There is none.
    pub unsafe fn symbol<F: Copy>(&self, _: &str) -> Result<F, CodegenError> {
        match self.0 {}
    }
}

/// No compiler runs.
pub fn end_all() {}
