//! Specialises a checked HIR program to the shapes of its inputs and to the functions that are passed, and makes the
//! CFG program of it. The result does not depend on the number of lanes.
//!
//! Every function becomes as many CFG functions as there are distinct *instances* of it: numbers for its dimensions,
//! operands for its shared parameters, closures for its function parameters, and for a closure what it captured that is
//! the same for all lanes (`instance`). Calls ask for instances and a list of them is worked off, so that recursion
//! ends when it passes these on unchanged; when it does not, a limit ends it with a diagnostic.
//!
//! Extents are polynomials over the dimensions (`hir::Dim`), so the checker compares them as values. The dimensions of
//! a call are solved for, one unknown at a time. Those of an entry are numbers that its inputs tell, or ints of their
//! names in the data (`program::Inputs::add_dimension`). Dimensions that no array tells are part of what is specialised
//! to ([`Shapes`]). The cache of `program` is keyed by the entry, the shapes of the inputs and the passes.
//!
//! While a function is lowered an expression is a `value::Value`: a tree of operands. Structs and tuples exist only
//! there. An operand that is not a variable is the same for all lanes; a primitive of such operands that cannot trap is
//! computed once, before the lanes start (`shared`). With `--check nan` only what cannot bear a NaN is computed so: the
//! rest is left to the lanes, so that a lane that comes there traps. A function value carries the operands of what it
//! captured that varies; they become parameters of every instance that gets it. After this stage there are no
//! dimensions, no structs and no function values.
//!
//! | file | lowers |
//! |---|---|
//! | `signature` | what an entry wants, and dimensions from the shapes of inputs |
//! | `instance`, `value` | what specialisation is by |
//! | `func` | variables, blocks and instructions of one function |
//! | `expr`, `stmt`, `control`, `call`, `reduction` | the language |
//! | `comprehension` | comprehensions as functions of their own |
//! | `derivative` | derivatives: placeholders for them, and what they go through |
//! | `ragged` | arrays whose extents differ from lane to lane |
//! | `shared`, `fold` | what is known before lanes start |
//! | `walk`, `names` | questions about expressions; names in the text form |

mod call;
mod comprehension;
mod control;
mod derivative;
mod expr;
mod fold;
mod func;
mod instance;
mod names;
mod ragged;
mod reduction;
mod shared;
mod signature;
mod specialised;
mod stmt;
mod value;
mod walk;

pub use ragged::Padding;
pub use signature::{Shapes, Signature, SignaturePort, Told, entry_signature, output_axes, output_dims};
pub use specialised::Specialised;

use crate::base::stack::on_large_stack;
use crate::base::{Diagnostic, Id as _, IdVec, SourceMap};
use crate::cfg::{self, FuncId, Operand};
use crate::hir::{self, FnId};
use crate::transform::expansion::Requests;

use derivative::{Facts, Functions};
use instance::{Closure, Code, Instance, Made, Specialiser};
use names::Names;
use signature::layout_at;
use value::{Dims, Form, Layout, join};

/// Problems after which the lowering gives up.
const MAX_DIAGNOSTICS: usize = 20;

/// The CFG program of an entry, and the derivatives that it needs: functions without blocks until they are filled, for
/// inputs of these shapes: a type for each port of its [`Signature`], in order. Lane inputs are the parameters of its
/// entry function, shared inputs its shared values, under the names of the ports.
///
/// # Errors
/// Inputs that do not fit (E0801), and what can be wrong only for these shapes: see the section of each code from
/// E0802 to E0806 in `grammar/errors.md`.
pub fn specialise(
    program: &hir::Program,
    sources: &SourceMap,
    entry: FnId,
    shapes: &Shapes,
    padding: Padding,
) -> Result<Specialised, Vec<Diagnostic>> {
    on_large_stack(program.depth, || specialise_here(program, sources, entry, shapes, padding))
}

fn specialise_here(
    program: &hir::Program,
    sources: &SourceMap,
    entry: FnId,
    shapes: &Shapes,
    padding: Padding,
) -> Result<Specialised, Vec<Diagnostic>> {
    let signature = entry_signature(program, entry).map_err(|d| vec![d])?;
    let dims = signature.bind(shapes)?;
    let mut spec = Specialiser::new(program, sources, padding);
    let home = program.function(entry);
    let outputs = layout_at(program, &home.ret, &home.dims, &dims, home.span)
        .map_err(|d| vec![*d])
        .map(|layout| signature::outputs(&layout))?;
    let instance = entry_instance(&mut spec, entry, &dims).map_err(|d| vec![*d])?;
    let entry = spec.request(instance, home.span).map_err(|d| vec![*d])?;
    let functions = lower_all(&mut spec)?;
    let (mut derivatives, places) = derivative::requests(&spec, &functions)?;
    let funcs = functions.funcs;
    let comprehensions = comprehension::requests(&spec, &funcs);
    if !derivatives.requests.is_empty() {
        derivatives.rules = spec.rules(funcs.len()).map_err(|d| vec![*d])?.into_iter().collect();
    }
    let (shared, streams) = spec.into_parts();
    let mut made = cfg::Program {
        funcs,
        entry,
        shared: IdVec::new(),
        streams: streams.into(),
        tapes: IdVec::new(),
        outputs: outputs.into_iter().map(|(name, _)| name).collect(),
    };
    shared.finish(&mut made);
    Ok(Specialised { program: made, requests: Requests { derivatives, comprehensions }, derivatives: places })
}

/// The instance of the entry: shared parameters are shared inputs, the others come in.
fn entry_instance(spec: &mut Specialiser<'_>, entry: FnId, dims: &Dims) -> Result<Instance, Box<Diagnostic>> {
    let home = spec.program.function(entry);
    let mut params = Vec::with_capacity(home.params.len());
    for param in &home.params {
        let local = &home.locals[param.local];
        let layout = layout_at(spec.program, &local.ty, &home.dims, dims, local.span)?;
        params.push(entry_form(spec, &layout, param.shared, &local.name));
    }
    let closure = Closure { code: Code::Fn(entry), dims: dims.clone(), captures: Vec::new() };
    let closure = spec.closure(closure, home.span)?;
    Ok(Instance { closure, params })
}

fn entry_form(spec: &mut Specialiser<'_>, layout: &Layout, shared: bool, name: &str) -> Form {
    match layout {
        Layout::Leaf(ty) if shared => Form::Static(Operand::Shared(spec.shared.input(name, ty.clone()))),
        Layout::Leaf(ty) => Form::Varying(ty.clone()),
        Layout::Fields(fields) => {
            let fields = fields.iter().map(|(field, layout)| entry_form(spec, layout, shared, &join(name, field)));
            Form::Fields(fields.collect())
        }
        Layout::Function | Layout::Never => Form::Fields(Vec::new()),
    }
}

/// Lowers every instance that is asked for, those that come up meanwhile included. Rules of derivatives are asked for
/// where the program takes derivatives.
fn lower_all(spec: &mut Specialiser<'_>) -> Result<Functions, Vec<Diagnostic>> {
    let mut names = Names::default();
    let mut functions = Functions::default();
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut next = FuncId::new(0);
    let mut with_rules = 0;
    while next.index() < spec.len() {
        let (made, span) = spec.made(next).expect("it was asked for");
        let made = made.clone();
        let name = names.unique(&call::base_name(spec, next));
        let lowered = match &made {
            Made::Instance(instance) => call::lower_instance(spec, instance, name),
            Made::Element(element) => call::lower_element(spec, element, name),
            // What it calls stands before it, unless that has a problem.
            Made::Attempted(_) if !problems.is_empty() => break,
            Made::Attempted(of) => Ok(derivative::attempted((*of, span), &functions, name)),
            // What it is the derivative of stands before it, unless that has a problem.
            Made::Derivative(_) if !problems.is_empty() => break,
            Made::Derivative(derivative) => {
                Ok((derivative::placeholder(derivative, &functions.funcs, name), Facts::default()))
            }
        };
        match lowered {
            Ok((func, found)) => {
                functions.funcs.push(func);
                functions.facts.push(found);
            }
            Err(problem) => {
                let seen = |p: &Diagnostic| p.code == problem.code && p.labels == problem.labels;
                let endless = problem.code.0 == "E0805";
                if !problems.iter().any(seen) {
                    problems.push(*problem);
                }
                if endless || problems.len() >= MAX_DIAGNOSTICS {
                    break;
                }
            }
        }
        next = FuncId::new(next.index() + 1);
        if next.index() == spec.len() {
            with_rules = derivative::request_rules(spec, with_rules).map_err(|d| vec![*d])?;
        }
    }
    if problems.is_empty() { Ok(functions) } else { Err(problems) }
}
