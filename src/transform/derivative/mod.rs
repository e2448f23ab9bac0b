//! Derivatives: fills the functions that stand for the derivative of another one.
//!
//! The lowering from HIR makes a *placeholder* for every derivative that the program asks for, a function without blocks,
//! and a [`Request`] that says what it stands for. [`expand`] writes the blocks.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::base::Loc;
use crate::cfg::{self, FuncId};

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
pub struct Request {
    /// The placeholder: a function with its name, parameters and results, and without blocks.
    pub target: FuncId,
    /// The function whose derivative it is. It may be a placeholder, or call some.
    pub of: FuncId,
    /// Which way.
    pub mode: Mode,
    /// One for each parameter of `of`: whether the derivative is with respect to it. Only real ones may be.
    pub wrt: Vec<bool>,
    /// Where the derivative is asked for.
    pub loc: Loc,
}

/// The derivative that the user wrote for a function: at least one of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CustomRule {
    /// Parameters: those of the function, then the tangent of each real one. Results: the tangent of each real result.
    pub forward: Option<FuncId>,
    /// Parameters: those of the function, then the cotangent of each real result. Results: the cotangent of each real
    /// parameter.
    pub reverse: Option<FuncId>,
}

/// Everything about derivatives that a CFG program does not say itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Placeholders in the order in which they were asked for.
    pub requests: Vec<Request>,
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

/// Fills the placeholders.
///
/// # Errors
/// A derivative that cannot be made.
pub fn expand(program: &mut cfg::Program, requests: &Requests) -> Result<(), DerivativeError> {
    let _ = program;
    match requests.requests.first() {
        None => Ok(()),
        Some(request) => Err(DerivativeError {
            loc: request.loc.clone(),
            message: "derivatives are not available in this version".to_owned(),
            help: None,
        }),
    }
}
