//! The sum over the elements of a function with `@sum`: of its terms that are logarithms by `sum_log` and `sum_log1p_exp`,
//! which take one logarithm for many elements, and of the others as they stand.

use super::body::prim;
use crate::hir::{Expr, ExprKind, Ty};
use crate::prim::Prim;

/// What the body of a function is, term by term.
#[derive(Default)]
struct Terms {
    /// The terms that are no logarithms: one value for each element, or one that is the same for all.
    rest: Option<Expr>,
    /// Sums over the elements, and whether each is subtracted.
    sums: Vec<(bool, Expr)>,
}

/// The sum over all elements of an array of reals, which has the type `ty`.
pub(super) fn summed(body: Expr, ty: &Ty) -> Expr {
    let span = body.span;
    match body.kind {
        ExprKind::Block(stmts, Some(tail)) => {
            let tail = summed(*tail, ty);
            Expr { kind: ExprKind::Block(stmts, Some(Box::new(tail))), ty: ty.clone(), span }
        }
        _ if !is_array(&body) => prim(Prim::Sum, vec![body], ty.clone(), span),
        _ => {
            let of_array = body.ty.clone();
            let Terms { rest, sums } = terms(body, ty);
            let rest = rest.map(|rest| {
                let rest = if is_array(&rest) { rest } else { prim(Prim::Fill, vec![rest], of_array, span) };
                prim(Prim::Sum, vec![rest], ty.clone(), span)
            });
            let total = sums.into_iter().fold(rest, |total, (minus, sum)| combined(total, Some(sum), minus));
            total.expect("a body has terms")
        }
    }
}

fn is_array(expr: &Expr) -> bool {
    matches!(expr.ty, Ty::Array(..))
}

/// The terms of a value for each element; `ty` is the type of a sum over them.
fn terms(expr: Expr, ty: &Ty) -> Terms {
    if let Some(sum) = log_sum(&expr, ty) {
        return Terms { rest: None, sums: vec![(false, sum)] };
    }
    match expr.kind {
        ExprKind::Prim(op @ (Prim::Add | Prim::Sub), args) if args.iter().any(is_array) => {
            let minus = op == Prim::Sub;
            let [a, b] = <[Expr; 2]>::try_from(args).expect("two operands");
            let [a, b] =
                [a, b].map(|x| if is_array(&x) { terms(x, ty) } else { Terms { rest: Some(x), sums: vec![] } });
            let turned = b.sums.into_iter().map(|(below, sum)| (below != minus, sum));
            Terms { rest: combined(a.rest, b.rest, minus), sums: a.sums.into_iter().chain(turned).collect() }
        }
        ExprKind::Prim(Prim::Neg, args) => {
            let of = args.into_iter().next().expect("an operand");
            let Terms { rest, sums } = terms(of, ty);
            Terms { rest: combined(None, rest, true), sums: sums.into_iter().map(|(minus, x)| (!minus, x)).collect() }
        }
        kind => Terms { rest: Some(Expr { kind, ..expr }), sums: vec![] },
    }
}

/// `a + b`, or `a - b`, of what there is of the two.
fn combined(a: Option<Expr>, b: Option<Expr>, minus: bool) -> Option<Expr> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let ty = if is_array(&a) { a.ty.clone() } else { b.ty.clone() };
            let span = a.span;
            Some(prim(if minus { Prim::Sub } else { Prim::Add }, vec![a, b], ty, span))
        }
        (None, Some(b)) if minus => {
            let (ty, span) = (b.ty.clone(), b.span);
            Some(prim(Prim::Neg, vec![b], ty, span))
        }
        (a, b) => a.or(b),
    }
}

/// The sum of a term, if that is a logarithm, or such times a number.
fn log_sum(expr: &Expr, ty: &Ty) -> Option<Expr> {
    let ExprKind::Prim(op, args) = &expr.kind else { return None };
    match (op, &args[..]) {
        (Prim::Log | Prim::Log1pExp, [x]) if is_array(x) => {
            let of = if *op == Prim::Log { Prim::SumLog } else { Prim::SumLog1pExp };
            Some(prim(of, vec![x.clone()], ty.clone(), expr.span))
        }
        (Prim::Mul | Prim::ChainMul, [factor, x]) if !is_array(factor) => {
            let sum = log_sum(x, ty)?;
            Some(prim(*op, vec![factor.clone(), sum], ty.clone(), expr.span))
        }
        _ => None,
    }
}
