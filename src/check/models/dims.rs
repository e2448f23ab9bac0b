//! Which dimensions of a model an int of the data must tell: those that no array tells which its functions take.
//!
//! A function of the language has its dimensions from its arguments. For one that nothing else tells, the functions of a model
//! take an array without elements, `J_: int[J, 0]`; where a run is given the int `J`, that array is made of it.

use std::collections::HashMap;

use crate::syntax::ast::{BinaryOp, Expr, ExprKind, ModelDecl, Name, TypeExpr, TypeKind, UnaryOp};

use super::make::At;

/// The words of a model, and how often each stands there.
pub(super) type Words<'a> = HashMap<&'a str, usize>;

/// Shared parameters that carry a dimension.
pub(super) type Carriers = Vec<(Name, TypeExpr)>;

/// The carriers of the dimensions that arrays with these extents leave open. `state` are the terms of the extent of the
/// unconstrained numbers, which tells one dimension more.
pub(super) fn carriers(decl: &ModelDecl, words: &Words<'_>, extents: &[&Expr], state: &[Expr]) -> Carriers {
    let mut open: Vec<&Name> = decl.dims.iter().collect();
    loop {
        let told = |extent: &&&Expr| {
            let mut read = open.iter().filter(|dim| degree(extent, &dim.text) > 0);
            read.next()
                .filter(|dim| degree(extent, &dim.text) == 1 && read.next().is_none())
                .map(|dim| dim.text.clone())
        };
        let Some(name) = extents.iter().find_map(|extent| told(&extent)) else { break };
        open.retain(|dim| dim.text != name);
    }
    if let [one] = open[..]
        && state.iter().map(|term| degree(term, &one.text)).max() == Some(1)
    {
        open.clear();
    }
    // What nothing mentions is an error of its own.
    let mentioned = |dim: &&&Name| words.get(&*dim.text).is_some_and(|n| *n > 1);
    open.iter().filter(mentioned).map(|dim| carrier(dim, words)).collect()
}

/// `J_: int[J, 0]`
fn carrier(dim: &Name, words: &Words<'_>) -> (Name, TypeExpr) {
    let at = At(dim.span);
    let mut name = format!("{}_", dim.text);
    while words.contains_key(name.as_str()) {
        name.push('_');
    }
    (at.name(&name), at.array_type("int", vec![at.var(&dim.text), at.int(0)]))
}

/// The extents of the type of an array or a scalar.
pub(super) fn extents(ty: &TypeExpr) -> &[Expr] {
    match &ty.kind {
        TypeKind::Named { dims, .. } => dims,
        _ => &[],
    }
}

/// The degree of an extent as a polynomial of a dimension.
fn degree(extent: &Expr, dim: &str) -> u32 {
    match &extent.kind {
        ExprKind::Path(path) => u32::from(path.module.is_none() && &*path.name.text == dim),
        ExprKind::Unary(UnaryOp::Neg, of) => degree(of, dim),
        ExprKind::Binary(BinaryOp::Mul, a, b) => degree(a, dim) + degree(b, dim),
        // A quotient of a product such as k * (k - 1) / 2.
        ExprKind::Binary(BinaryOp::Div, a, _) => degree(a, dim),
        ExprKind::Binary(_, a, b) => degree(a, dim).max(degree(b, dim)),
        _ => 0,
    }
}
