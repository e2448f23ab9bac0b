//! Code that is generated for a compiled program, kept for its next run.

use std::sync::{Arc, Mutex};

use super::results::stack_only;
use super::{Engine, Error, ErrorKind, Options};
use crate::backend::cpu::codegen::compiler::{CodegenError, Compiler};
use crate::backend::cpu::codegen::{Code, Native};
use crate::pipeline::Compiled;
use crate::types::Precision;

/// Whether blocks run as generated code. Changes speed, never results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codegen {
    /// The machine runs every step by a kernel.
    #[default]
    Off,
    /// Blocks that compute on small values are compiled by the system's C compiler: it takes seconds the first time, and
    /// is kept on disk. Needs a C compiler; the engines `pc` and `local`.
    Cc,
}

/// The generated code of a compiled program, by engine and precision.
#[derive(Debug, Default)]
pub(super) struct NativeCache {
    made: Mutex<Vec<(Engine, Precision, Arc<Native>)>>,
}

impl NativeCache {
    /// The code that the options ask for; none where they ask for none or the engine runs none, as `pc` where the tops of
    /// stacks are not cached: generated code keeps them in registers of the processor.
    ///
    /// # Errors
    /// [`ErrorKind::Codegen`] where there is no C compiler, or it fails.
    pub(super) fn of(&self, compiled: &Compiled, options: &Options) -> Result<Option<Arc<Native>>, Error> {
        let in_memory = options.engine == Engine::Pc && !compiled.plan.cached_tops;
        if options.codegen == Codegen::Off || options.engine == Engine::Scalar || in_memory {
            return Ok(None);
        }
        let (engine, precision) = (options.engine, options.settings.precision);
        let made = || self.made.lock().expect("nothing panics while it holds the lock");
        if let Some((_, _, native)) = made().iter().find(|(e, p, _)| (*e, *p) == (engine, precision)) {
            return Ok(Some(Arc::clone(native)));
        }
        let stop = options.settings.stop.clone();
        let native = Arc::new(Native::new(code(compiled, engine)?, precision, stop)?);
        made().push((engine, precision, Arc::clone(&native)));
        Ok(Some(native))
    }
}

/// Why no code can be generated here; none where it can.
pub fn codegen_fails() -> Option<Error> {
    Compiler::find().err().map(Error::from)
}

/// What the C compiler that makes generated code says of its version.
///
/// # Errors
/// [`ErrorKind::Codegen`] where there is none.
pub fn c_compiler() -> Result<String, Error> {
    Ok(Compiler::find()?.name().into_owned())
}

/// The C code of a compiled program for an engine.
///
/// # Errors
/// [`ErrorKind::Option`] for `local` where there is only a stack program.
pub fn code(compiled: &Compiled, engine: Engine) -> Result<Code, Error> {
    Ok(match engine {
        Engine::Local => Code::of_calls(compiled.calls.as_ref().ok_or_else(stack_only)?),
        Engine::Pc | Engine::Scalar => Code::of_plan(&compiled.plan),
    })
}

impl From<CodegenError> for Error {
    fn from(error: CodegenError) -> Self {
        let kind = match error {
            CodegenError::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Codegen,
        };
        Error::new(kind, error.to_string())
    }
}
