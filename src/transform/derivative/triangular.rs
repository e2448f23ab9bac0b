//! Derivatives of Cholesky factors and triangular solves. Those of a factor are primitives, a third of a matrix product,
//! whose own derivatives are made of them. Source: I. Murray, *Differentiation of the Cholesky decomposition*,
//! arXiv:1602.07527. All is in the arithmetic of the chain rule: a factor may be NaN from some pivot on, and a solution
//! from some row on, which has no part in what stands before. Matrices may have a leading axis of several.

use super::code::{Code, real};
use super::tangent::Site;
use crate::cfg::Operand;
use crate::prim::Prim;
use crate::types::{DType, Type};

/// The tangent of the result.
pub(super) fn tangent(code: &mut Code<'_>, site: Site<'_>, tangents: &[Option<Operand>]) -> Option<Operand> {
    let l = site.args[0];
    match site.prim {
        Prim::Cholesky => return Some(code.prim(Prim::ChainCholeskyTangent, &[site.result, tangents[0]?])),
        Prim::ChainCholeskyTangent => {
            // x @ transpose(l) + l @ transpose(x) is a: x of da - (x @ transpose(dl) + dl @ transpose(x)).
            let of_factor = tangents[0].map(|dl| {
                let dl = lower(code, dl);
                let turned = transposed(code, dl);
                let half = product(code, site.result, turned);
                with_transpose(code, half)
            });
            let side = difference(code, tangents[1], of_factor)?;
            return Some(code.prim(site.prim, &[l, side]));
        }
        Prim::ChainCholeskyCotangent => {
            // With the symmetric s of the result r, of which s @ l and g have the same lower triangle: r of dg - s @ dl.
            let of_factor = tangents[0].map(|dl| {
                let dl = lower(code, dl);
                let s = with_transpose(code, site.result);
                product(code, s, dl)
            });
            let side = difference(code, tangents[1], of_factor)?;
            return Some(code.prim(site.prim, &[l, side]));
        }
        _ => {}
    }
    // l⁻¹ (db - dl x)
    let of_matrix = tangents[0].map(|t| {
        let t = lower(code, t);
        let t = if site.prim.ordinary() == Prim::SolveLower { t } else { transposed(code, t) };
        product(code, t, site.result)
    });
    let side = difference(code, tangents[1], of_matrix)?;
    Some(code.prim(site.prim.of_chain_rule(), &[l, side]))
}

/// `x - y`, of which either may not be there.
fn difference(code: &mut Code<'_>, x: Option<Operand>, y: Option<Operand>) -> Option<Operand> {
    match (x, y) {
        (Some(x), Some(y)) => Some(code.prim(Prim::Sub, &[x, y])),
        (None, Some(y)) => Some(code.prim(Prim::Neg, &[y])),
        (x, None) => x,
    }
}

/// What a derivative of a factor adds to the cotangent of the factor, where `side` is what it adds to that of the other
/// operand: the lower triangle of minus s times the tangent of the factor, with the symmetric s of its cotangent.
pub(super) fn factor(code: &mut Code<'_>, site: Site<'_>, side: Operand) -> Operand {
    let of_cotangent = site.prim == Prim::ChainCholeskyCotangent;
    let (cotangent, tangent) = if of_cotangent { (site.result, side) } else { (side, site.result) };
    let s = with_transpose(code, cotangent);
    let both = product(code, s, tangent);
    let both = code.prim(Prim::Neg, &[both]);
    lower(code, both)
}

/// What the cotangent `g` of a solution adds to that of the right side.
pub(super) fn side(code: &mut Code<'_>, site: Site<'_>, g: Operand) -> Operand {
    let transposed = site.prim.ordinary() == Prim::SolveLowerTransposed;
    let back = if transposed { Prim::ChainSolveLower } else { Prim::ChainSolveLowerTransposed };
    code.prim(back, &[site.args[0], g])
}

/// What a solution adds to the cotangent of its matrix, where `side` is what it adds to that of the right side: the lower
/// triangle of minus an outer product.
pub(super) fn solved(code: &mut Code<'_>, site: Site<'_>, side: Operand) -> Operand {
    let (mut column, mut row) = (side, site.result);
    if site.prim.ordinary() == Prim::SolveLowerTransposed {
        (column, row) = (row, column);
    }
    if site.ty.shape.len() == 1 {
        let n = site.ty.shape[0];
        column = code.prim_as(Prim::Reshape, &[column], Type::new(DType::Real, [n, 1]));
        row = code.prim_as(Prim::Reshape, &[row], Type::new(DType::Real, [1, n]));
    } else {
        row = transposed(code, row);
    }
    let outer = product(code, column, row);
    let outer = code.prim(Prim::Neg, &[outer]);
    lower(code, outer)
}

fn is_batch(code: &Code<'_>, x: Operand) -> bool {
    code.ty(x).shape.len() == 3
}

fn transposed(code: &mut Code<'_>, x: Operand) -> Operand {
    let prim = if is_batch(code, x) { Prim::TransposeEach } else { Prim::Transpose };
    code.prim(prim, &[x])
}

fn product(code: &mut Code<'_>, x: Operand, y: Operand) -> Operand {
    let prim = if is_batch(code, x) { Prim::ChainBatchMatMul } else { Prim::ChainMatMul };
    code.prim(prim, &[x, y])
}

/// A matrix and its transpose, added.
fn with_transpose(code: &mut Code<'_>, x: Operand) -> Operand {
    let turned = transposed(code, x);
    code.prim(Prim::Add, &[x, turned])
}

/// The numbers of the rows and of the columns of a square matrix, to be repeated.
fn numbers(code: &mut Code<'_>, x: Operand) -> [Operand; 2] {
    let shape = code.ty(x).shape;
    let rank = shape.len();
    let n = shape[rank - 1];
    [rank - 2, rank - 1].map(|axis| {
        let flat = code.prim_as(Prim::Iota, &[], Type::new(DType::Int, [n]));
        let along = (0..rank).map(|a| if a == axis { n } else { 1 });
        code.prim_as(Prim::Reshape, &[flat], Type::new(DType::Int, along))
    })
}

/// The lower triangle with its diagonal, zeros above.
fn lower(code: &mut Code<'_>, x: Operand) -> Operand {
    let [row, column] = numbers(code, x);
    let below = code.prim(Prim::Ge, &[row, column]);
    code.prim(Prim::Select, &[below, x, real(0.0)])
}
