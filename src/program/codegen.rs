//! What back ends make of a compiled program, kept for its next run.

use std::sync::{Arc, Mutex};

use super::results::stack_only;
use super::{Engine, Error, ErrorKind, Options};
use crate::backend::cpu::codegen::compiler::{CodegenError, Compiler};
use crate::backend::cpu::codegen::{Code, end_all};
use crate::backend::{self, cuda};
use crate::backend::{BackendError, Executable, Form, Generate, How, Units};
use crate::pipeline::Compiled;
use crate::run::Execution;
use crate::types::Precision;

/// Whether blocks run as generated code. Changes speed, never results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codegen {
    /// The machine runs every step by a kernel.
    Off,
    /// Blocks that compute on small values are compiled by the system's C compiler: it takes seconds the first time,
    /// and is kept on disk. Needs a C compiler. With the engine `scalar` all blocks become one function, which takes one
    /// lane after the other from its start to its end.
    Cc,
    /// A run starts with kernels. Where it is long enough that code may pay, the C compiler works beside it, and the
    /// blocks that come change over to generated code as soon as it is there. What is on disk is used soon. Where there
    /// is no compiler, or it fails, the run goes on without; [`Stats::code`](crate::run::Stats) says why. Where
    /// there are few lanes, or that is measured to be faster, one function of all blocks takes them one after the other.
    #[default]
    Auto,
}

/// What back ends made of a compiled program.
#[derive(Debug, Default)]
pub(super) struct Executables {
    made: Mutex<Vec<(Made, Arc<dyn Executable>)>>,
}

/// What an executable depends on, besides the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Made {
    backend: &'static str,
    engine: Engine,
    precision: Precision,
    generate: Generate,
}

impl Executables {
    /// The one that the options ask for; none for the reference interpreter, which runs the CFG program.
    ///
    /// # Errors
    /// [`ErrorKind::Codegen`] where there is no C compiler, or it fails; [`ErrorKind::Option`] for `local` where there
    /// is only a stack program.
    pub(super) fn of(&self, compiled: &Compiled, options: &Options) -> Result<Option<Arc<dyn Executable>>, Error> {
        if options.engine == Engine::Scalar && options.backend.name() != backend::usual().name() {
            let message = "the engine `scalar` runs on the processor: leave --device out, or take --engine pc";
            return Err(Error::new(ErrorKind::Option, message));
        }
        let program = match (options.engine, &compiled.call_units, &compiled.calls) {
            (Engine::Scalar, ..) if options.codegen != Codegen::Cc => return Ok(None),
            (Engine::Pc | Engine::Scalar, ..) => {
                Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan))
            }
            (Engine::Local, Some(units), Some(plan)) => Units::Calls(Arc::clone(units), Arc::clone(plan)),
            (Engine::Local, ..) => return Err(stack_only()),
        };
        let (engine, precision) = (options.engine, options.settings.precision);
        let generate = generate(options);
        let key = Made { backend: options.backend.name(), engine, precision, generate };
        let made = || self.made.lock().expect("nothing panics while it holds the lock");
        if let Some((_, executable)) = made().iter().find(|(known, _)| *known == key) {
            return Ok(Some(Arc::clone(executable)));
        }
        let form = if engine == Engine::Scalar { Form::OneLane } else { Form::Groups };
        let how = How { precision, generate, form, stop: options.settings.stop.clone() };
        let executable = options.backend.compile(program, &how)?;
        made().push((key, Arc::clone(&executable)));
        Ok(Some(executable))
    }
}

/// Whether the options ask for code, and when.
fn generate(options: &Options) -> Generate {
    let (settings, passes) = (&options.settings, &options.passes);
    match options.codegen {
        Codegen::Off => Generate::Never,
        Codegen::Cc => Generate::Before,
        // Who asks for these asks for the steps.
        Codegen::Auto if settings.check_nan || settings.execution == Execution::Gather || !passes.fuse() => {
            Generate::Never
        }
        Codegen::Auto => Generate::Beside,
    }
}

/// Why no code can be generated here; none where it can.
pub fn codegen_fails() -> Option<Error> {
    Compiler::find().err().map(Error::from)
}

/// The process ends at once: ends C compilers that run, and removes their files.
pub fn end_compilers() {
    end_all();
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
    match (engine, &compiled.call_units, &compiled.calls) {
        (Engine::Pc, ..) => Ok(Code::of_units(&compiled.units, &compiled.plan)),
        (Engine::Scalar, ..) => Ok(Code::straight(&compiled.units, &compiled.plan)),
        (Engine::Local, Some(units), Some(plan)) => Ok(Code::of_calls(units, plan)),
        (Engine::Local, ..) => Err(stack_only()),
    }
}

/// The CUDA text of a compiled program.
///
/// # Errors
/// [`ErrorKind::Option`] where it does what no GPU does yet.
pub fn cuda_text(compiled: &Compiled, precision: Precision) -> Result<String, Error> {
    let program = Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan));
    Ok(cuda::text(program, precision)?)
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

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        let kind = match error {
            BackendError::Interrupted(_) => ErrorKind::Interrupted,
            BackendError::Codegen(_) | BackendError::Device(_) => ErrorKind::Codegen,
            BackendError::Unsupported(_) => ErrorKind::Option,
            BackendError::Compiled(_) => ErrorKind::Compiled,
        };
        Error::new(kind, error.to_string())
    }
}

#[cfg(test)]
#[cfg(not(feature = "codegen"))]
mod tests {
    use crate::program::{Codegen, ErrorKind, Inputs, Options, Program, device};

    #[test]
    fn what_is_not_built_in_is_told_and_what_is_runs() {
        let program = Program::compile("pub fn main(x: real) -> real { 2.0 * x }").expect("it compiles");
        let function = program.function("main").expect("it is there");
        let run = |options: Options| function.run(&Inputs::new().lane("x", vec![1.0, 2.0]), &options);
        assert_eq!(
            run(Options::default()).expect("it runs").output("result").expect("a result").as_real(),
            Some(&[2.0, 4.0][..])
        );
        let error = run(Options::default().codegen(Codegen::Cc)).expect_err("no code");
        assert_eq!(error.kind(), ErrorKind::Codegen);
        assert!(
            error.to_string().contains("--codegen off") && error.to_string().contains("feature `codegen`"),
            "{error}"
        );
        let error = run(Options::default().backend(device("cuda").expect("a name"))).expect_err("no GPU");
        assert!(error.to_string().contains("leave --device out"), "{error}");
    }
}
