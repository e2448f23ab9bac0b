//! The constraints that there are, and the transforms that make a parameter of unconstrained numbers. The library has
//! three functions of each, `X_constrain`, `X_log_jacobian` and `X_unconstrain` (`src/std/constraints.ab`).

use crate::base::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

use super::make::{At, product};

/// A constraint of whole vectors or matrices.
#[derive(Debug)]
pub(super) struct Whole {
    /// What it is called, here and at the beginning of the names of its functions.
    pub(super) name: &'static str,
    /// How many axes one value has.
    pub(super) rank: usize,
    /// Whether both extents of a matrix must be equal.
    pub(super) square: bool,
    /// Whether the functions are given an array of the size that comes out.
    shaped: bool,
    /// The extents of the unconstrained numbers.
    free: fn(At, &[Expr]) -> Vec<Expr>,
}

/// All constraints without a value.
pub(super) const WHOLE: &[Whole] = &[
    vector("ordered", same),
    vector("positive_ordered", same),
    vector("unit_vector", same),
    vector("simplex", |at, e| vec![less(at, &e[0])]),
    vector("sum_to_zero", |at, e| vec![less(at, &e[0])]),
    matrix("sum_to_zero_matrix", |at, e| vec![less(at, &e[0]), less(at, &e[1])]),
    matrix("stochastic_row", |at, e| vec![e[0].clone(), less(at, &e[1])]),
    matrix("stochastic_column", |at, e| vec![less(at, &e[0]), e[1].clone()]),
    triangle("cholesky_factor_corr", true, |at, e| vec![half(at, &e[0], BinaryOp::Sub)]),
    triangle("corr_matrix", true, |at, e| vec![half(at, &e[0], BinaryOp::Sub)]),
    triangle("cov_matrix", true, |at, e| vec![half(at, &e[0], BinaryOp::Add)]),
    triangle("cholesky_factor_cov", false, |at, e| {
        let below = product(at, &[at.binary(BinaryOp::Sub, e[0].clone(), e[1].clone()), e[1].clone()]);
        vec![at.binary(BinaryOp::Add, half(at, &e[1], BinaryOp::Add), below)]
    }),
];

/// Names of Stan for the same, and what they are here.
pub(super) const STANS: &[(&str, &str)] = &[
    ("sum_to_zero_vector", "sum_to_zero"),
    ("row_stochastic_matrix", "stochastic_row"),
    ("column_stochastic_matrix", "stochastic_column"),
];

const fn vector(name: &'static str, free: fn(At, &[Expr]) -> Vec<Expr>) -> Whole {
    Whole { name, rank: 1, square: false, shaped: false, free }
}

const fn matrix(name: &'static str, free: fn(At, &[Expr]) -> Vec<Expr>) -> Whole {
    Whole { name, rank: 2, square: false, shaped: false, free }
}

const fn triangle(name: &'static str, square: bool, free: fn(At, &[Expr]) -> Vec<Expr>) -> Whole {
    Whole { name, rank: 2, square, shaped: true, free }
}

fn same(_: At, extents: &[Expr]) -> Vec<Expr> {
    extents.to_vec()
}

fn less(at: At, extent: &Expr) -> Expr {
    at.binary(BinaryOp::Sub, extent.clone(), at.int(1))
}

/// `k * (k - 1) / 2` or `k * (k + 1) / 2`
fn half(at: At, k: &Expr, op: BinaryOp) -> Expr {
    let pairs = at.binary(BinaryOp::Mul, k.clone(), at.binary(op, k.clone(), at.int(1)));
    at.binary(BinaryOp::Div, pairs, at.int(2))
}

/// How a parameter comes from unconstrained numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transform<'a> {
    /// As they are.
    Free,
    /// Above a bound.
    Lower(&'a Expr),
    /// Below a bound.
    Upper(&'a Expr),
    /// Between bounds.
    Between(&'a Expr, &'a Expr),
    /// On a scale.
    Scaled { offset: Option<&'a Expr>, multiplier: Option<&'a Expr> },
    /// By a transform of whole vectors or matrices.
    Whole(&'static Whole),
}

impl<'a> Transform<'a> {
    /// Expressions that its values depend on.
    pub(super) fn bounds(self) -> Vec<&'a Expr> {
        match self {
            Self::Free | Self::Whole(_) => vec![],
            Self::Lower(a) | Self::Upper(a) => vec![a],
            Self::Between(a, b) => vec![a, b],
            Self::Scaled { offset, multiplier } => offset.into_iter().chain(multiplier).collect(),
        }
    }

    /// The extents of the unconstrained numbers of a parameter with these extents, and how many of them are those of an
    /// array of whole vectors or matrices.
    pub(super) fn free(self, span: Span, extents: &[Expr]) -> (Vec<Expr>, usize) {
        let Self::Whole(whole) = self else { return (extents.to_vec(), 0) };
        let (arrays, own) = extents.split_at(extents.len() - whole.rank);
        ([arrays, &(whole.free)(At(span), own)[..]].concat(), arrays.len())
    }

    /// The parameter of its unconstrained numbers.
    pub(super) fn constrain(self, span: Span, u: Expr, extents: &[Expr]) -> Expr {
        let at = At(span);
        match self {
            Self::Free => u,
            Self::Lower(bound) if number(bound) == Some(0.0) => at.library("exp", vec![u]),
            Self::Lower(bound) if number(bound).is_some() => {
                at.binary(BinaryOp::Add, at.library("exp", vec![u]), bound.clone())
            }
            Self::Upper(bound) if number(bound).is_some() => {
                at.binary(BinaryOp::Sub, bound.clone(), at.library("exp", vec![u]))
            }
            Self::Scaled { offset: Some(offset), multiplier: None } => at.binary(BinaryOp::Add, offset.clone(), u),
            _ => self.call(at, "constrain", u, extents),
        }
    }

    /// The log Jacobian of that; `None` where it is 0.
    pub(super) fn log_jacobian(self, span: Span, u: Expr, extents: &[Expr]) -> Option<Expr> {
        match self {
            Self::Free | Self::Scaled { multiplier: None, .. } => None,
            Self::Whole(whole) if whole.name.starts_with("sum_to_zero") => None,
            Self::Lower(bound) | Self::Upper(bound) if number(bound).is_some() && extents.is_empty() => Some(u),
            _ => Some(self.call(At(span), "log_jacobian", u, extents)),
        }
    }

    /// The unconstrained numbers of a parameter.
    pub(super) fn unconstrain(self, span: Span, x: Expr, extents: &[Expr]) -> Expr {
        match self {
            Self::Free => x,
            _ => self.call(At(span), "unconstrain", x, extents),
        }
    }

    /// One of the three functions of the library.
    fn call(self, at: At, what: &str, operand: Expr, extents: &[Expr]) -> Expr {
        let of = |stem: &str, mut bounds: Vec<Expr>| {
            bounds.insert(0, operand.clone());
            at.library(&format!("{stem}_{what}"), bounds)
        };
        let or = |bound: Option<&Expr>, value: f64| bound.cloned().unwrap_or_else(|| at.real(value));
        match self {
            Self::Free => operand,
            Self::Lower(a) => of("lower_bound", vec![a.clone()]),
            Self::Upper(b) => of("upper_bound", vec![b.clone()]),
            Self::Between(a, b) => of("lower_upper_bound", vec![a.clone(), b.clone()]),
            Self::Scaled { offset, multiplier } => of("offset_multiplier", vec![or(offset, 0.0), or(multiplier, 1.0)]),
            Self::Whole(whole) => {
                let (arrays, own) = extents.split_at(extents.len() - whole.rank);
                let mut args = vec![at.element(operand, arrays)];
                if whole.shaped && what != "unconstrain" {
                    args.push(at.library("zeros", own.to_vec()));
                }
                let one = at.library(&format!("{}_{what}", whole.name), args);
                if what == "log_jacobian" { at.sum_of_each(one, arrays) } else { at.each(one, arrays) }
            }
        }
    }
}

/// The number that is written.
fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Int(value) => value.map(|value| value as f64),
        ExprKind::Real(value) => Some(*value),
        ExprKind::Unary(UnaryOp::Neg, inner) => number(inner).map(|value| -value),
        _ => None,
    }
}
