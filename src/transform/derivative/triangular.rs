//! Derivatives of Cholesky factors and triangular solves, as products and solves of whole matrices. Source: I. Murray,
//! *Differentiation of the Cholesky decomposition*, arXiv:1602.07527, equations 8 and 10, with the transposes of a primitive
//! that reads the lower triangle only, and in the arithmetic of the chain rule: a factor may be NaN from some pivot on,
//! and a solution from some row on, which has no part in what stands before. Matrices may have a leading axis of
//! several.

use super::code::{Code, real};
use super::tangent::Site;
use crate::cfg::Operand;
use crate::prim::Prim;
use crate::types::{DType, Type};

/// The tangent of the result.
pub(super) fn tangent(code: &mut Code<'_>, site: Site<'_>, tangents: &[Option<Operand>]) -> Option<Operand> {
    let l = site.args[0];
    if site.prim == Prim::Cholesky {
        // l Φ(l⁻¹ da l⁻ᵀ)
        let l = site.result;
        let half = halved(code, tangents[0]?);
        let symmetric = with_transpose(code, half);
        let left = code.prim(Prim::ChainSolveLower, &[l, symmetric]);
        let left = transposed(code, left);
        let both = code.prim(Prim::ChainSolveLower, &[l, left]);
        let half = halved(code, both);
        return Some(product(code, l, half));
    }
    // l⁻¹ (db - dl x)
    let of_matrix = tangents[0].map(|t| {
        let t = lower(code, t);
        let t = if site.prim.ordinary() == Prim::SolveLower { t } else { transposed(code, t) };
        product(code, t, site.result)
    });
    let side = match (tangents[1], of_matrix) {
        (Some(b), Some(m)) => code.prim(Prim::Sub, &[b, m]),
        (None, Some(m)) => code.prim(Prim::Neg, &[m]),
        (b, None) => b?,
    };
    Some(code.prim(site.prim.of_chain_rule(), &[l, side]))
}

/// What the cotangent `g` of a factor adds to that of the matrix: Φ(l⁻ᵀ (P + Pᵀ) l⁻¹) with P = Φ(lᵀ g).
pub(super) fn factored(code: &mut Code<'_>, l: Operand, g: Operand) -> Operand {
    let turned = transposed(code, l);
    let inner = product(code, turned, g);
    let half = halved(code, inner);
    let symmetric = with_transpose(code, half);
    let left = code.prim(Prim::ChainSolveLowerTransposed, &[l, symmetric]);
    let left = transposed(code, left);
    let both = code.prim(Prim::ChainSolveLowerTransposed, &[l, left]);
    halved(code, both)
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

/// Φ: the lower triangle with half of its diagonal, zeros above.
fn halved(code: &mut Code<'_>, x: Operand) -> Operand {
    let [row, column] = numbers(code, x);
    let on = code.prim(Prim::Eq, &[row, column]);
    let weights = code.prim(Prim::Select, &[on, real(0.5), real(1.0)]);
    let weighted = code.prim(Prim::Mul, &[x, weights]);
    lower(code, weighted)
}
