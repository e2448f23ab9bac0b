//! Layer 7: the public façade: compile a program, pick a function, run it for many lanes.
//!
//! ```
//! use autobatch::program::{Inputs, Options, Program};
//! use ndarray::array;
//!
//! let program = Program::compile("pub fn double(x: real) -> real { 2.0 * x }")?;
//! let results = program.function("double")?.run(&Inputs::new().lane("x", array![1.0, 2.5]), &Options::default())?;
//! assert_eq!(results.real("result")?, array![2.0, 5.0].into_dyn());
//! # Ok::<(), autobatch::program::Error>(())
//! ```

mod codegen;
mod data_inputs;
mod error;
mod fatal;
mod gradient;
mod inputs;
pub mod io;
mod options;
mod prints;
mod ragged;
mod results;
mod stan;
mod views;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;

use crate::base::{FileId, Id as _, IdVec, Provenance, Span, work};
use crate::check::{self, FileLoader, Loader, StdLibrary};
use crate::hir::{self, FnId};
use crate::interp::{self, SharedError};
use crate::lower::hir_to_cfg::{self, Shapes};
use crate::parts::SharedSource;
use crate::pipeline::{self, Compiled};
use crate::plan::{self, TargetMachine};
use crate::run::{self, MemoryBudget, NoSink, Sink};
use crate::types::Type;

#[doc(hidden)]
pub use crate::backend::cpu::calibrate;
pub use crate::base::{Diagnostic, SourceMap};
pub use crate::lower::hir_to_cfg::{Signature, SignaturePort};
pub use crate::pipeline::{Deny, Passes};
pub use crate::plan::MemoryEstimate;
pub use codegen::Codegen;
use codegen::Executables;
#[doc(hidden)]
pub use codegen::{c_compiler, code, codegen_fails, cuda_text, end_compilers};
pub use error::{Error, ErrorKind};
pub use gradient::Gradient;
pub(crate) use inputs::refuse_unknown;
pub use inputs::{Element, Inputs};
pub(crate) use options::no_pass;
pub use options::{Options, device, devices};
pub(crate) use prints::Speakers;
pub use prints::{Printed, Prints};
use ragged::BoundedAxes;
pub use results::{Engine, Results};
#[doc(hidden)]
pub use results::{budget, memory_limit, refuse, refuse_kept};
pub use stan::{StanData, StanFunction, StanModel, StanSets, Taken, Terms};
pub(crate) use stan::{StanOrigin, TRANSLATED};
pub use views::Arrays;

/// A checked program.
#[derive(Debug)]
pub struct Program {
    hir: hir::Program,
    sources: Arc<SourceMap>,
    warnings: Vec<Diagnostic>,
    compiled: Mutex<IndexMap<CacheKey, Entry>>,
}

/// A compilation that is kept, with the code that was generated for it.
#[derive(Clone, Debug)]
struct Entry {
    compiled: Arc<Compiled>,
    executables: Arc<Executables>,
}

/// The name of a program in a file, and its text.
pub(crate) fn text_of(path: &Path) -> Result<(String, String), Error> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
    let text = String::from_utf8(text).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::new(ErrorKind::Io, format!("{name} is not UTF-8: byte {at} does not belong to a character"))
    })?;
    Ok((name, text))
}

/// A module that is no file.
#[derive(Clone, Debug)]
pub(crate) struct MadeModule<'a> {
    /// Its name in a `use`.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// What it was made of, where nobody wrote it.
    pub(crate) origin: Option<Arc<Provenance>>,
}

/// Parameters of the functions of a module of which each lane has a value of its own, though they are `shared` there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Varying {
    /// The name of the module, as it is resolved.
    pub(crate) module: String,
    /// The names of the parameters.
    pub(crate) names: Vec<String>,
}

/// Files, and one module that is none.
struct WithText<'a> {
    module: Option<MadeModule<'a>>,
    varying: Varying,
}

impl Loader for WithText<'_> {
    fn load(&mut self, from: Option<&str>, path: &str) -> Result<(String, Arc<str>), String> {
        match &self.module {
            Some(module) if module.name == path => Ok((path.to_owned(), Arc::from(module.text))),
            _ => FileLoader.load(from, path),
        }
    }

    fn add(&self, sources: &mut SourceMap, name: &str, text: &Arc<str>) -> FileId {
        match self.module.as_ref().filter(|module| module.name == name).and_then(|module| module.origin.clone()) {
            Some(origin) => sources.add_made(name, text.clone(), origin),
            None => sources.add(name, text.clone()),
        }
    }

    fn varying(&self, module: &str) -> &[String] {
        if module == self.varying.module { &self.varying.names } else { &[] }
    }
}

/// What a compilation depends on: not the number of lanes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct CacheKey {
    entry: FnId,
    shapes: Shapes,
    passes: Passes,
    machine: TargetMachine,
}

impl Program {
    /// Compiles a source text. `use` finds the library that ships with autobatch, and files relative to the current folder.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] with all the diagnostics.
    pub fn compile(source: &str) -> Result<Program, Error> {
        Self::compile_named("<source>", source)
    }

    /// Compiles a source file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when it cannot be read or is not UTF-8, [`ErrorKind::Program`] with all the diagnostics.
    pub fn load(path: impl AsRef<Path>) -> Result<Program, Error> {
        Self::load_varying(path.as_ref(), &[])
    }

    /// The same; each lane has a value of its own of shared parameters of these names.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(crate) fn load_varying(path: &Path, varying: &[String]) -> Result<Program, Error> {
        let (name, text) = text_of(path)?;
        Self::compile_varying(&name, &text, varying)
    }

    /// Compiles a module of the library that ships, by the name that a `use` finds it by whatever lies in the folder:
    /// `std/nuts.ab`. `None` for every other path.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] with all the diagnostics.
    pub fn shipped(path: &str) -> Option<Result<Program, Error>> {
        let text = path.starts_with("std/").then(|| StdLibrary::text(path))??;
        Some(Self::compile_named(path, text))
    }

    /// Compiles a source text that goes by `name`; `use` paths are relative to its folder.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] with all the diagnostics.
    pub fn compile_named(name: &str, source: &str) -> Result<Program, Error> {
        Self::compile_varying(name, source, &[])
    }

    /// The same; each lane has a value of its own of shared parameters of these names.
    ///
    /// # Errors
    /// As [`compile_named`](Self::compile_named).
    pub(crate) fn compile_varying(name: &str, source: &str, varying: &[String]) -> Result<Program, Error> {
        Self::compile_with(name, source, None, Varying { module: name.to_owned(), names: varying.to_vec() })
    }

    /// Compiles a source text with a module that is no file.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] with all the diagnostics.
    pub(crate) fn compile_with(
        name: &str,
        source: &str,
        module: Option<MadeModule<'_>>,
        varying: Varying,
    ) -> Result<Program, Error> {
        let mut sources = SourceMap::default();
        let main = sources.add(name, source);
        Self::checked(main, sources, WithText { module, varying })
    }

    /// Compiles a text that was made of others.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] with all the diagnostics.
    pub(crate) fn compile_made(module: &MadeModule<'_>, varying: &[String]) -> Result<Program, Error> {
        let mut sources = SourceMap::default();
        let varying = Varying { module: module.name.to_owned(), names: varying.to_vec() };
        let mut loader = WithText { module: Some(module.clone()), varying };
        let main = loader.add(&mut sources, module.name, &Arc::from(module.text));
        loader.module = None;
        Self::checked(main, sources, loader)
    }

    fn checked(main: FileId, mut sources: SourceMap, mut loader: WithText<'_>) -> Result<Program, Error> {
        let check = || check::check_program(main, &mut sources, &mut loader);
        let (hir, diagnostics) = work::stage("check", |_| None, check);
        // After all others: the files of the library have the same numbers in every program.
        sources.add_origin();
        match hir {
            Some(hir) => {
                let warnings = diagnostics.into_iter().map(|found| found.written(&sources)).collect();
                Ok(Program::of(hir, Arc::new(sources), warnings))
            }
            None => Err(Error::from_diagnostics(diagnostics, sources)),
        }
    }

    fn of(hir: hir::Program, sources: Arc<SourceMap>, warnings: Vec<Diagnostic>) -> Program {
        Program { hir, sources, warnings, compiled: Mutex::default() }
    }

    /// What the checker found that is probably not meant.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The source texts: the program's own and those that it uses.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The typed program, for dumps.
    #[doc(hidden)]
    pub fn hir(&self) -> &hir::Program {
        &self.hir
    }

    /// Names of the public functions.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.hir.exports.keys().map(String::as_str)
    }

    /// An entry point.
    ///
    /// # Errors
    /// [`ErrorKind::Entry`] when there is no public function of this name, or a parameter is a function.
    pub fn function(&self, name: &str) -> Result<Function<'_>, Error> {
        let Some(entry) = self.hir.exports.get(name).copied() else {
            // What models are made of besides has names that nobody can write.
            let names: Vec<String> = self.functions().filter(|n| !n.contains('%')).map(|n| format!("`{n}`")).collect();
            let there = match &names[..] {
                [] => "the program has no `pub fn`".to_owned(),
                names => format!("there is {}", names.join(", ")),
            };
            return Err(Error::new(ErrorKind::Entry, format!("no public function `{name}`: {there}")));
        };
        let signature = hir_to_cfg::entry_signature(&self.hir, entry)
            .map_err(|d| Error::from_diagnostics(vec![d], (*self.sources).clone()))?;
        Ok(Function { program: self, name: name.to_owned(), entry, signature })
    }
}

/// Compiles, with [`Program::load`], [`Function::compile`] or others, until a flag is set from outside. What is being
/// compiled on this thread then ends at once, and nothing of it is kept. Runs have [`Options::stop`], which
/// [`Function::bind`] looks at too. (It unwinds: in a process that aborts on panics it would end that.)
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
/// use autobatch::program::{ErrorKind, Program, stoppable};
///
/// let stop = Arc::new(AtomicBool::new(true));
/// let stopped = stoppable(&stop, || Program::compile("pub fn double(x: real) -> real { 2.0 * x }"));
/// assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
/// ```
///
/// # Errors
/// Those of what it does, and [`ErrorKind::Interrupted`] when the flag was set.
pub fn stoppable<T>(stop: &Arc<AtomicBool>, compile: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let stopped = |_| Error::new(ErrorKind::Interrupted, "interrupted while the program was compiled");
    work::stoppable(stop, compile).map_err(stopped)?
}

/// An entry point of a [`Program`].
#[derive(Debug)]
pub struct Function<'a> {
    program: &'a Program,
    name: String,
    entry: FnId,
    signature: Signature,
}

/// A run of so much work by the cost model is over in a moment: the interpreter may take a hundred times as long.
const MOMENT_NANOSECONDS: f64 = 2e6;

/// A function that is compiled and has its values: ready to run.
#[derive(Clone, Debug)]
pub struct Bound {
    compiled: Arc<Compiled>,
    executables: Arc<Executables>,
    inputs: run::RunInputs,
    axes: BoundedAxes,
    sources: Arc<SourceMap>,
}

impl Function<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether another public function of the program takes an input of this name.
    pub(crate) fn is_taken_beside(&self, name: &str) -> bool {
        let others = self.program.functions().filter(|other| *other != self.name);
        others.filter_map(|other| self.program.function(other).ok()).any(|other| {
            let Signature { ports, dims, .. } = &other.signature;
            ports.iter().any(|port| port.name == name) || dims.values().any(|dim| dim == name)
        })
    }
    /// What is written above it.
    pub fn doc(&self) -> String {
        self.program.hir.fns[self.entry].as_ref().map_or_else(String::new, |function| function.doc.clone())
    }
    /// What it takes, struct fields split.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// What it gives, by name, and what the axes of each are called, those of lanes aside: dimensions of the function.
    pub(crate) fn output_axes(&self) -> Vec<(String, Vec<Option<String>>)> {
        hir_to_cfg::output_axes(&self.program.hir, self.entry)
    }
    /// What it takes, by name, and what the axes of each are called.
    pub(crate) fn input_axes(&self) -> Vec<(String, Vec<Option<String>>)> {
        let Signature { ports, dims, .. } = &self.signature;
        let called = |port: &SignaturePort| {
            port.extents.iter().map(|extent| extent.alone().map(|id| dims[id].clone())).collect()
        };
        ports.iter().map(|port| (port.name.clone(), called(port))).collect()
    }

    /// The names of the fields of the struct that it gives; none where it gives something else.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let ret = self.program.hir.fns[self.entry].as_ref().map(|function| &function.ret);
        let fields = match ret {
            Some(hir::Ty::Struct(id, _)) => &self.program.hir.structs[*id].fields[..],
            _ => &[],
        };
        fields.iter().map(|(name, _)| name.as_str())
    }

    /// Compiles it for these values, if it has not been compiled for their types before, and runs it.
    ///
    /// # Errors
    /// See [`Function::bind`] and [`Bound::run`].
    pub fn run(&self, inputs: &Inputs, options: &Options) -> Result<Results, Error> {
        self.run_with(inputs, options, &NoSink)
    }

    /// Like [`run`](Self::run), with a sink for what lanes print and emit.
    ///
    /// # Errors
    /// See [`Function::bind`] and [`Bound::run`].
    pub fn run_with(&self, inputs: &Inputs, options: &Options, sink: &dyn Sink) -> Result<Results, Error> {
        self.bind(inputs, options)?.run(options, sink)
    }

    /// Compiles it for these values and binds them.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a value that is missing, unknown, or of a wrong type or shape; [`ErrorKind::Program`]
    /// for what only shapes can tell, warnings that [`Options::deny`] names included; [`ErrorKind::Memory`] when the
    /// batch does not fit; [`ErrorKind::Option`] for options that make no sense; [`ErrorKind::Interrupted`] when
    /// [`Options::stop`] is set before it is compiled.
    pub fn bind(&self, inputs: &Inputs, options: &Options) -> Result<Bound, Error> {
        let mut passes = options.passes.clone();
        if options.settings.check_nan {
            passes.for_nan_checks();
        }
        let bound = self.bind_with(inputs, &passes, options);
        if bound.as_ref().is_err_and(|e| e.kind() == ErrorKind::Shared) {
            // The lanes compute it, those that come to it.
            passes.switch_off("shared-code");
            return self.bind_with(inputs, &passes, options);
        }
        bound
    }

    fn bind_with(&self, inputs: &Inputs, passes: &Passes, options: &Options) -> Result<Bound, Error> {
        inputs::refuse_unknown(inputs, &self.name, &self.signature)?;
        let lanes = inputs::lane_count(inputs)?;
        let values = inputs::bind(inputs, &self.name, &self.signature, lanes)?;
        let entry = || self.entry(values.shapes.clone(), passes, options.backend.machine());
        let Entry { compiled, executables } = match &options.settings.stop {
            Some(stop) => stoppable(stop, entry)?,
            None => entry()?,
        };
        let outputs = hir_to_cfg::output_dims(&self.program.hir, self.entry);
        let axes = BoundedAxes::new(&self.signature, &outputs);
        Ok(Bound {
            axes,
            executables,
            ..Bound::finish(compiled, values, lanes, options, Arc::clone(&self.program.sources))?
        })
    }

    /// Compiles it for lane inputs and shared inputs of these event types, one for each port of the
    /// [`signature`](Self::signature), and with dimensions that they leave open. A compilation is kept, and serves
    /// every number of lanes.
    ///
    /// # Errors
    /// [`ErrorKind::Program`] for what only shapes can tell.
    #[doc(hidden)]
    pub fn compile(&self, shapes: impl Into<Shapes>, passes: &Passes) -> Result<Arc<Compiled>, Error> {
        let machine = Options::default().backend.machine();
        Ok(self.entry(shapes.into(), passes, machine)?.compiled)
    }

    fn entry(&self, shapes: Shapes, passes: &Passes, machine: TargetMachine) -> Result<Entry, Error> {
        let key = CacheKey { entry: self.entry, shapes, passes: passes.clone(), machine };
        let program = self.program;
        // Nothing can panic while the lock is held, which is not while something is compiled.
        let cache = || program.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = cache().get(&key) {
            return Ok(entry.clone());
        }
        let compiled = pipeline::compile(&program.hir, &program.sources, self.entry, &key.shapes, passes, machine)
            .map_err(|diagnostics| Error::from_diagnostics(diagnostics, (*program.sources).clone()))?;
        let entry = Entry { compiled: Arc::new(compiled), executables: Arc::default() };
        Ok(cache().entry(key).or_insert(entry).clone())
    }
}

impl Bound {
    /// Binds values to a program that was read from the text of an IR: every parameter by its name in the text, with the
    /// type that it has there.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a value that is missing, unknown, or of a wrong type or shape; [`ErrorKind::Memory`] when the
    /// batch does not fit.
    #[doc(hidden)]
    pub fn of_ir(compiled: Compiled, inputs: &Inputs, options: &Options) -> Result<Bound, Error> {
        let signature = signature_of_ir(&compiled);
        inputs::refuse_unknown(inputs, &compiled.name(), &signature)?;
        let lanes = inputs::lane_count(inputs)?;
        let values = inputs::bind(inputs, &compiled.name(), &signature, lanes)?;
        for (port, ty) in signature.ports.iter().zip(&values.shapes.types) {
            let wanted = port.extents.iter().map(|d| d.constant as usize);
            if !wanted.eq(ty.shape.iter().copied()) {
                let message = format!(
                    "`{}` has the wrong type: expected {}, found {ty}",
                    port.name,
                    port.describe(&signature.dims)
                );
                return Err(Error::new(ErrorKind::Input, message));
            }
        }
        Self::finish(Arc::new(compiled), values, lanes, options, Arc::default())
    }

    fn finish(
        compiled: Arc<Compiled>,
        values: inputs::Values,
        lanes: usize,
        options: &Options,
        sources: Arc<SourceMap>,
    ) -> Result<Bound, Error> {
        options.check()?;
        let denied = Deny::errors(&options.deny, &compiled.warnings);
        if !denied.is_empty() {
            return Err(Error::from_diagnostics(denied, (*sources).clone()));
        }
        // Before anything is made that is as large as the batch or as a shared value.
        refuse(&plan::estimate(&compiled.plan, lanes, &options.settings), options)?;
        let shared = interp::shared_values(&compiled.units.globals.shared, &values.shared, options.settings.precision)
            .map_err(|error| match error {
                SharedError::Input(message) => Error::new(ErrorKind::Input, message),
                SharedError::Value(message) => Error::new(ErrorKind::Shared, message),
            })?;
        let numbers = (0..lanes as u64).map(|i| options.first_lane.wrapping_add(i)).collect();
        let inputs = run::RunInputs::new(numbers, values.lane_arrays(lanes), shared);
        Ok(Bound { compiled, executables: Arc::default(), inputs, axes: BoundedAxes::default(), sources })
    }

    /// What was compiled.
    #[doc(hidden)]
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }
    /// What is probably not meant and only the shapes of the inputs can tell, each site once; the spans are in
    /// [`sources`](Self::sources).
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.compiled.warnings
    }
    /// The source texts that it was compiled from; none for the text of an IR.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }
    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.inputs.lanes.len()
    }
    /// The inputs.
    pub fn inputs(&self) -> &run::RunInputs {
        &self.inputs
    }
    /// The inputs, to permute lanes, say.
    pub fn inputs_mut(&mut self) -> &mut run::RunInputs {
        &mut self.inputs
    }

    /// Whether an element of a lane input, both counted from 0 (elements in row-major order), belongs to the value of the lane: it is
    /// not padding beyond the length of a bounded dimension.
    pub fn is_element(&self, input: usize, position: usize, element: usize) -> bool {
        let shape = self.inputs.values.get(input).map_or(&[][..], |array| &array.shape[1..]);
        let lengths = self.axes.of_input(input, &self.inputs);
        lengths.is_none_or(|lengths| ragged::is_inside(shape, &lengths, position, element))
    }

    /// Bytes of the outputs of a lane, as arrays.
    pub fn output_bytes(&self) -> usize {
        let ports = self.compiled.plan.outputs.iter();
        ports
            .map(|port| plan::bytes(port.ty.dtype, port.ty.elements(), size_of::<f64>()))
            .fold(0, usize::saturating_add)
    }

    /// What the run will need, before it starts.
    pub fn memory(&self, options: &Options) -> MemoryEstimate {
        plan::estimate(&self.compiled.plan, self.inputs.lanes.len(), &options.settings)
    }

    /// Whether a run with these options is over in a moment whatever the values are: no loop or call of the program hangs on
    /// them, and there is little to do. Nobody needs a thread then to look after it.
    #[doc(hidden)]
    pub fn is_brief(&self, options: &Options) -> bool {
        let work = self.compiled.plan.work().total.map(|work| work as f64 * self.lanes() as f64);
        let here = options.backend.name() == crate::backend::usual().name();
        here && work.is_some_and(|work| work * options.settings.costs.addition <= MOMENT_NANOSECONDS)
    }

    /// Makes the code that a run with these options waits for, which the first run does otherwise. With
    /// [`Codegen::Auto`] it loads what is on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Codegen`] where there is no C compiler, or it fails; [`ErrorKind::Option`] as [`run`](Self::run).
    pub fn prepare(&self, options: &Options) -> Result<(), Error> {
        if let Some(executable) = self.executables.of(&self.compiled, options)? {
            executable.prepare(self.inputs.lanes.len(), &options.settings);
        }
        Ok(())
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] when the batch does not fit, [`ErrorKind::Option`] for options that make no sense and when
    /// the engine cannot run it (an IR text of a stack program has only `pc`, and `scalar` with [`Codegen::Cc`]), [`ErrorKind::Fatal`] where a lane ends it.
    pub fn run(&self, options: &Options, sink: &dyn Sink) -> Result<Results, Error> {
        self.run_within(&self.budget(options)?, options, sink)
    }

    /// What a run with these options may take that grows.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] when the batch does not fit.
    #[doc(hidden)]
    pub fn budget(&self, options: &Options) -> Result<Arc<MemoryBudget>, Error> {
        budget(&self.memory(options), options)
    }

    /// Runs it, with what grows from this budget, in which a sink may have a part.
    ///
    /// # Errors
    /// As [`run`](Self::run), but for the memory.
    #[doc(hidden)]
    pub fn run_within(&self, budget: &Arc<MemoryBudget>, options: &Options, sink: &dyn Sink) -> Result<Results, Error> {
        match self.run_keeping(budget, options, sink)? {
            (_, Some(fatal)) => Err(fatal),
            (results, None) => Ok(results),
        }
    }

    /// The same with what there is when a lane ends the run, and the error that it ends it with, of the kind
    /// [`ErrorKind::Fatal`]: the other lanes are interrupted.
    ///
    /// # Errors
    /// As [`run_within`](Self::run_within), but for that one.
    pub(crate) fn run_keeping(
        &self,
        budget: &Arc<MemoryBudget>,
        options: &Options,
        sink: &dyn Sink,
    ) -> Result<(Results, Option<Error>), Error> {
        let estimate = self.memory(options);
        let (sink, options) = fatal::Ending::new(sink, options);
        let outcome = results::execute(&self.compiled, &self.executables, &self.inputs, &options, budget, &sink)?;
        Ok((Results::new(&self.compiled, &self.inputs, &self.axes, outcome, estimate), sink.said()))
    }

    /// Runs it to its end also when a lane would end the run, with the error that the first such lane would end it with.
    ///
    /// # Errors
    /// As [`run`](Self::run), but for that one.
    pub(crate) fn run_on(&self, options: &Options, sink: &dyn Sink) -> Result<(Results, Option<Error>), Error> {
        let (estimate, budget) = (self.memory(options), self.budget(options)?);
        let sink = fatal::Ending::noting(sink);
        let outcome = results::execute(&self.compiled, &self.executables, &self.inputs, options, &budget, &sink)?;
        Ok((Results::new(&self.compiled, &self.inputs, &self.axes, outcome, estimate), sink.said()))
    }
}

/// What a program of IR text takes: its lane inputs and its shared inputs.
#[doc(hidden)]
pub fn signature_of_ir(compiled: &Compiled) -> Signature {
    let span = Span::new(FileId::new(0), 0, 0);
    let port = |name: &str, ty: &Type, shared| SignaturePort {
        name: name.to_owned(),
        shared,
        dtype: ty.dtype,
        extents: ty.shape.iter().map(|n| hir::Dim::constant(*n as i64)).collect(),
        length_of: None,
        span,
    };
    let units = &compiled.units;
    let lanes = units.inputs.iter().map(|p| port(&p.name, &units.body.vars[p.var].ty, false));
    let inputs = units.globals.shared.values().filter(|s| s.source == SharedSource::Input);
    let ports = lanes.chain(inputs.map(|s| port(&s.name, &s.ty, true))).collect();
    Signature { dims: IdVec::new(), bounds: BTreeMap::new(), ports, span }
}
