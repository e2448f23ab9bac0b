//! Derivatives by source transformation on the CFG program: fills the functions that stand for the derivative of
//! another one.
//!
//! The lowering from HIR makes a *placeholder* for every derivative that the program asks for, a function without
//! blocks, and a [`DerivativeRequest`] that says what it stands for. `fill` writes the blocks. What comes out is an
//! ordinary program, so that derivatives nest and every engine runs them as it runs anything else.
//!
//! Forward mode gives each variable that varies a second one for its tangent. Reverse mode makes two sweeps: the
//! forward one saves on tapes, per-lane stacks, what the reverse one needs and cannot find otherwise; the reverse one
//! goes back through the blocks and adds up cotangents. Nothing is assumed about control: branches, loops and recursion
//! are followed by what the forward sweep noted.
//!
//! `README.md` in this folder says how each part works, with an example.
//!
//! | file | has |
//! |---|---|
//! | `prepare` | copies of the functions in the form that is differentiated |
//! | `activity` | which variables a derivative goes through |
//! | `elementwise`, `tangent`, `cotangent`, `reductions`, `triangular` | the derivatives of the primitives |
//! | `code` | emission of what a derivative adds |
//! | `care` | where a product of the chain rule may be zero times what is no number |
//! | `forward` | forward mode |
//! | `graph`, `origins` | which way the reverse sweep goes back |
//! | `record`, `needed` | what it needs, and how it finds it |
//! | `leaving` | where a function that is called leaves it on tapes |
//! | `sweeps` | the functions of the two sweeps, and the forward sweep |
//! | `reverse`, `reverse_call`, `way_back` | the reverse sweep: instructions, calls, and from block to block |
//! | `given` | what the reverse sweep of a function that is called is given by the caller |
//! | `differentiation` | the functions that one derivative consists of |

mod activity;
mod care;
pub(super) mod code;
mod cotangent;
mod differentiation;
mod elementwise;
mod forward;
mod given;
mod graph;
mod leaving;
mod needed;
mod origins;
pub(super) mod prepare;
mod record;
mod reductions;
mod reverse;
mod reverse_call;
mod sweeps;
mod tangent;
mod triangular;
mod way_back;

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::base::Loc;
use crate::cfg::{self, Block, Func, FuncId, Operand, Program, Terminator, Var, VarId};
use care::Care;
pub(in crate::transform) use care::is_ordinary;
use differentiation::Differentiation;
use forward::Tangents;

/// Which way a derivative is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Tangents of the parameters to tangents of the results. Parameters: those of the function, then the tangent of each
    /// parameter that is differentiated. Results: those of the function, then the tangent of each real one.
    Forward,
    /// Cotangents of the results to cotangents of the parameters. Parameters: those of the function, then the cotangent of
    /// each real result. Results: those of the function, then the cotangent of each parameter that is differentiated.
    Reverse,
}

/// A placeholder and what it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DerivativeRequest {
    /// The placeholder: a function with its name, parameters and results, and without blocks.
    pub target: FuncId,
    /// The function whose derivative it is. It may be a placeholder, or call some.
    pub of: FuncId,
    /// Which way.
    pub mode: Mode,
    /// One for each parameter of `of`: whether the derivative is with respect to it. Only real ones may be.
    pub wrt: Vec<bool>,
    /// Reverse mode: whether the cotangent of the one result is always 1, as in a gradient.
    pub of_one: bool,
    /// Where the derivative is asked for.
    pub loc: Loc,
}

/// The derivative that the user wrote for a function: at least one of the two.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CustomRule {
    /// Parameters: those of the function, then the tangent of each real one. Results: the tangent of each real result.
    pub forward: Option<FuncId>,
    /// Parameters: those of the function, then the cotangent of each real result. Results: the cotangent of each real
    /// parameter.
    pub reverse: Option<FuncId>,
    /// Which parameters are what a function captured that is an argument: they have neither tangents nor cotangents.
    pub captured: Vec<bool>,
}

/// Everything about derivatives that a CFG program does not say itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DerivativeRequests {
    /// Placeholders in the order in which they were asked for.
    pub requests: Vec<DerivativeRequest>,
    /// Derivatives that the user wrote, by function.
    pub rules: IndexMap<FuncId, CustomRule>,
    /// Functions whose values are computed again in the reverse sweep instead of being taped.
    pub recompute: BTreeSet<FuncId>,
}

/// Why a derivative cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DerivativeError {
    /// What stands in the way, or where the derivative is asked for.
    pub loc: Loc,
    /// In the user's words.
    pub message: String,
    /// A remedy, where there is one.
    pub help: Option<String>,
}

impl DerivativeRequests {
    /// Whether a function stays apart from those that call it.
    fn is_apart(&self, func: FuncId) -> bool {
        self.rules.contains_key(&func) || self.recompute.contains(&func)
    }
}

/// A derivative that goes through itself.
pub(super) fn endless(program: &Program, request: &DerivativeRequest) -> DerivativeError {
    let name = &program.funcs[request.of].name;
    DerivativeError {
        loc: request.loc.clone(),
        message: format!("the derivative of `{name}` goes through itself: it would need derivatives of every order"),
        help: Some("take the derivative outside of the recursion".to_owned()),
    }
}

/// Fills a placeholder. What it goes through is filled.
///
/// # Errors
/// A derivative that cannot be made: a primitive on the way has none, or a rule lacks the part that is needed.
pub(super) fn fill(
    program: &mut Program,
    requests: &DerivativeRequests,
    request: &DerivativeRequest,
) -> Result<(), DerivativeError> {
    let (base, root) = with_root(program, request.of);
    let mut prepared =
        prepare::prepare(&base, root, requests, (prepare::Inlining::of_derivatives(), Some(&request.wrt)));
    given::change_in_place(&base, &mut prepared);
    let mut differentiation = Differentiation::new(&base, requests, &prepared, root.0 as usize);
    let key = (root, request.wrt.clone());
    let placeholder = &program.funcs[request.target];
    let name = placeholder.name.clone();
    let mut made = match request.mode {
        Mode::Forward => differentiation.forward(&key, &name, Tangents::Real)?,
        Mode::Reverse => {
            let seeds = if request.of_one { Care::Plain } else { Care::Careful };
            differentiation.joint(&key, &name, seeds, false)?
        }
    };
    made.loc = placeholder.loc.clone();
    let (funcs, tapes) = differentiation.finish()?;
    program.funcs[request.target] = made;
    for func in funcs {
        program.funcs.push(func);
    }
    program.tapes = tapes;
    Ok(())
}

/// The program with one function more, which only calls the one to be differentiated: so that one that is recursive, or
/// has a rule, is called like any other.
fn with_root(program: &Program, of: FuncId) -> (Program, FuncId) {
    let mut base = program.clone();
    let func = &program.funcs[of];
    let mut vars = crate::base::IdVec::new();
    let params: Vec<VarId> = func.params.iter().map(|p| vars.push(func.vars[*p].clone())).collect();
    let results = func.results.iter().enumerate();
    let results: Vec<VarId> =
        results.map(|(i, ty)| vars.push(Var { name: format!("result#{i}"), ty: ty.clone() })).collect();
    let values = |vars: &[VarId]| vars.iter().map(|v| Operand::Var(*v)).collect();
    let loc = func.loc.clone();
    let call = Terminator::Call {
        func: of,
        args: values(&params),
        dsts: results.clone(),
        next: cfg::BlockId(1),
        loc: loc.clone(),
        attempt: false,
    };
    let mut blocks = crate::base::IdVec::new();
    blocks.push(Block { insts: Vec::new(), term: call, loc: loc.clone() });
    blocks.push(Block { insts: Vec::new(), term: Terminator::Return(values(&results)), loc: loc.clone() });
    let name = func.name.clone();
    let root = base.funcs.push(Func { name, params, results: func.results.clone(), vars, blocks, loc });
    (base, root)
}
