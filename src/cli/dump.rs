//! `autobatch dump`: a program at a stage of the compiler.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use crate::analysis::variance;
use crate::base::FileId;
use crate::base::Id as _;
use crate::lower::hir_to_cfg::{Shapes, Signature, SignaturePort};
use crate::pipeline::{Compiled, Deny, all_passes};
use crate::program::{Error, ErrorKind, Function, Inputs, Options, Program, code, cuda_text};
use crate::types::{Array, Precision, Shape, Type};
use crate::{hir, stack, syntax};

use super::args::{DumpArgs, EngineName, Stage, passes};
use super::ir_file::{extension, read_ir};
use super::model::{DataArgs, Model, SAMPLED, is_stan};
use super::{inputs, print, report, show_warnings};

pub(super) fn dump(args: &DumpArgs) -> Result<ExitCode, Error> {
    let Some(file) = args.file.as_deref().filter(|_| !args.passes) else {
        let lines: Vec<String> = all_passes().map(|(name, doc)| format!("{name:<20} {doc}\n")).collect();
        print(&lines.concat());
        return Ok(ExitCode::SUCCESS);
    };
    let options = Options { passes: passes(&args.no_pass)?, ..Options::default() };
    if matches!(extension(file), "cfg" | "stack" | "unit") {
        return compiled(args, &read_ir(file, &options)?);
    }
    if matches!(args.stage, Stage::Tokens | Stage::Ast) {
        if is_stan(file) {
            let message = format!("`translate {}` prints what it becomes; its stages begin with `hir`", file.display());
            return Err(Error::new(ErrorKind::Option, message));
        }
        return text(args, file);
    }
    if is_stan(file) {
        let given =
            DataArgs { data: args.inputs.data.clone(), shared: args.inputs.shared.clone(), ..DataArgs::default() };
        let model = Model::load(file, &given, SAMPLED, 0)?;
        let program = model.stan.as_ref().expect("it is a Stan program").program()?;
        // What `main` is in programs of the language.
        let entry = if args.entry == "main" { "log_density" } else { &args.entry };
        return stages(args, &program, entry, &options, &|function| model.inputs(function));
    }
    stages(args, &Program::load(file)?, &args.entry, &options, &|function| {
        inputs::read(&args.inputs, function.signature())
    })
}

/// The stages of a program from `hir` on.
fn stages(
    args: &DumpArgs,
    program: &Program,
    entry: &str,
    options: &Options,
    given: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
) -> Result<ExitCode, Error> {
    if args.stage == Stage::Hir {
        print(&hir::dump::dump(program.hir()));
        return Ok(ExitCode::SUCCESS);
    }
    let function = program.function(entry)?;
    let given = given(&function)?;
    let shapes = shapes(args, &function, &given)?;
    let made = function.compile(shapes, &options.passes)?;
    let denied = Deny::errors(&args.deny, &made.warnings);
    if !denied.is_empty() {
        return Err(Error::from_diagnostics(denied, program.sources().clone()));
    }
    show_warnings(&made.warnings, program.sources());
    compiled(args, &made)
}

/// The stages before names are resolved: they need no valid program.
fn text(args: &DumpArgs, file: &Path) -> Result<ExitCode, Error> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::Io, format!("{name} is not UTF-8")))?;
    if args.stage == Stage::Tokens {
        print(&syntax::tokens(FileId::new(0), &text));
        return Ok(ExitCode::SUCCESS);
    }
    let mut sources = crate::base::SourceMap::default();
    let id = sources.add(name.to_string(), text.as_str());
    let (module, diagnostics) = syntax::parse(id, &text);
    print(&syntax::dump(&module));
    if diagnostics.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    report(&Error::from_diagnostics(diagnostics, sources));
    Ok(ExitCode::FAILURE)
}

fn compiled(args: &DumpArgs, compiled: &Compiled) -> Result<ExitCode, Error> {
    let text = match (args.stage, &compiled.cfg, &compiled.stack) {
        (Stage::Cfg, Some(program), _) if args.explain => variance::print_explained(program),
        (Stage::Cfg, Some(program), _) => program.to_string(),
        (Stage::Stack, _, Some(program)) if args.explain => stack::print_explained(program),
        (Stage::Stack, _, Some(program)) => program.to_string(),
        (Stage::Unit, ..) => of_engine(args, &*compiled.units, compiled.call_units.as_deref().map(|u| u as _))?,
        (Stage::Plan, ..) => of_engine(args, &*compiled.plan, compiled.calls.as_deref().map(|p| p as _))?,
        (Stage::C, ..) => code(compiled, args.engine.into())?.text,
        (Stage::Cuda, ..) => cuda_text(compiled, Precision::default())?,
        (stage, ..) => {
            let stage = format!("{stage:?}").to_lowercase();
            return Err(Error::new(ErrorKind::Option, format!("the text of a later stage has no stage `{stage}`")));
        }
    };
    print(&text);
    Ok(ExitCode::SUCCESS)
}

/// What an engine runs, made of a stack program or of a CFG program; there is none of the latter for the text of a
/// stage after it.
fn of_engine(args: &DumpArgs, pc: &dyn Display, local: Option<&dyn Display>) -> Result<String, Error> {
    let shown = |it: &dyn Display| if args.explain { format!("{it:#}") } else { it.to_string() };
    match (args.engine, local) {
        (EngineName::Pc, _) => Ok(shown(pc)),
        (EngineName::Local, Some(local)) => Ok(shown(local)),
        (EngineName::Local, None) => Err(Error::new(ErrorKind::Option, "this text runs on the engine `pc` only")),
        (EngineName::Scalar, _) => {
            Err(Error::new(ErrorKind::Option, "the engine `scalar` runs the stage `cfg`, or `c` with --codegen cc"))
        }
    }
}

/// The event types of the inputs: of values, of `--shape`, or of the parameters where they have no dimensions; and what
/// is told of dimensions besides.
fn shapes(args: &DumpArgs, function: &Function<'_>, given: &Inputs) -> Result<Shapes, Error> {
    let signature = function.signature();
    let mut asked = Vec::new();
    for argument in &args.shape {
        asked.push(shape(argument, signature)?);
    }
    let mut told = given.told_by_arrays(signature);
    told.extend(given.told(signature));
    let of = |(i, port): (usize, &SignaturePort)| -> Result<Type, Error> {
        if let Some((_, shape)) = asked.iter().find(|(name, _)| *name == port.name) {
            return Ok(Type { dtype: port.dtype, shape: shape.clone() });
        }
        let constant = |d: &hir::Dim| {
            let bound = signature.bounded(d).and_then(|id| signature.bounds.get(&id));
            bound.unwrap_or(d).as_constant().and_then(|c| usize::try_from(c).ok())
        };
        if let Some(shape) = port.extents.iter().map(constant).collect() {
            return Ok(Type { dtype: port.dtype, shape });
        }
        let event = |array: &Array, shared: bool| array.shape[usize::from(!shared)..].into();
        let shape = given.values.get(&port.name).map(|g| event(&g.array, g.shared));
        let shape = shape.or_else(|| signature.extents_at(i, &told).map(Shape::from_vec)).ok_or_else(|| {
            let ty = port.describe(&signature.dims);
            let name = &port.name;
            Error::new(
                ErrorKind::Input,
                format!("the shape of `{name}: {ty}` is open; give --shape {name}=… or a value, or its dimensions by --shared"),
            )
        })?;
        Ok(Type { dtype: port.dtype, shape })
    };
    let mut types: Vec<Type> = signature.ports.iter().enumerate().map(of).collect::<Result<_, Error>>()?;
    let known: Vec<usize> = types.iter().map(|ty| ty.shape.len()).collect();
    signature.complete(&mut types, &known, &given.told(signature));
    let told = signature.open(&types, given.told(signature));
    Ok(Shapes { types, told })
}

fn shape(argument: &str, signature: &Signature) -> Result<(String, Shape), Error> {
    let wrong = || {
        Error::new(
            ErrorKind::Option,
            format!("--shape {argument}: expected the name of an input and its extents, as in x=10,2"),
        )
    };
    let (name, dims) = argument.split_once('=').ok_or_else(wrong)?;
    if !signature.ports.iter().any(|p| p.name == name) {
        return Err(Error::new(ErrorKind::Option, format!("--shape {argument}: there is no input `{name}`")));
    }
    let dims = dims.split(',').map(|d| d.trim().parse::<usize>().map_err(|_| wrong()));
    Ok((name.to_owned(), dims.collect::<Result<_, _>>()?))
}
