//! Derivatives of products and extrema over whole arrays or along axes, as whole-array code that is right where elements are
//! zero or equal.

use super::care::Care;
use super::code::{ChainRule as _, Code, int, real};
use super::tangent::Site;
use crate::cfg::Operand;
use crate::prim::{Prim, Reduction};
use crate::types::{DType, Type};

/// `g` of a result of this type, summed over what an operand of type `to` was repeated along. Either may have an extent of 1,
/// or be a scalar, where all elements are equal.
pub(super) fn summed(code: &mut Code<'_>, g: Operand, result: &Type, to: &Type) -> Operand {
    let ty = code.ty(g);
    let extent = |axis: usize| ty.shape.get(axis).copied().unwrap_or(1);
    let repeated = |axis: usize| result.shape[axis] != 1 && to.shape.get(axis).is_none_or(|to| *to == 1);
    let axes = || (0..result.shape.len()).filter(|axis| repeated(*axis));
    let equal: usize = axes().filter(|axis| extent(*axis) == 1).map(|axis| result.shape[axis]).product();
    let added = axes().any(|axis| extent(axis) != 1);
    let sum = if to.is_scalar() && !ty.is_scalar() {
        code.prim(Prim::Sum, &[g])
    } else if added {
        let left = ty.shape.iter().enumerate().map(|(axis, extent)| if repeated(axis) { 1 } else { *extent });
        code.prim_as(Prim::Sum, &[g], Type::new(DType::Real, left))
    } else {
        g
    };
    if equal == 1 { sum } else { code.prim(Prim::Mul, &[sum, real(equal as f64)]) }
}

/// What the operand of a product or an extremum gets of the cotangent `g` of the result; it may have extents of 1 where it
/// is the same for all elements. Nothing for an operand without elements.
pub(super) fn reduction(code: &mut Code<'_>, site: Site<'_>, of: Reduction, g: Operand) -> Option<Operand> {
    let ty = code.ty(site.args[0]);
    if ty.elements() == 0 {
        return None;
    }
    match of {
        Reduction::Sum => Some(g),
        Reduction::SumLog => Some(code.over(g, site.args[0], Care::Careful)),
        Reduction::SumLog1pExp => {
            let slope = code.prim(Prim::InvLogit, &[site.args[0]]);
            Some(code.times(g, slope, site.care))
        }
        Reduction::Prod => Some(product(code, site.args[0], &ty, site.ty, g)),
        Reduction::MinOf | Reduction::MaxOf => {
            let taken = taken(code, site, &ty);
            Some(code.prim(Prim::Select, &[taken, g, real(0.0)]))
        }
        // of bools
        Reduction::Any | Reduction::All => None,
    }
}

/// Where the element stands that an extremum took: the first of equal ones, nowhere for a NaN.
fn taken(code: &mut Code<'_>, site: Site<'_>, ty: &Type) -> Operand {
    let count = ty.elements();
    let flat = code.prim_as(Prim::Iota, &[], Type::new(DType::Int, [count]));
    let numbers = code.prim_as(Prim::Reshape, &[flat], Type { dtype: DType::Int, shape: ty.shape.clone() });
    let equal = code.prim(Prim::Eq, &[site.args[0], site.result]);
    let candidates = code.prim(Prim::Select, &[equal, numbers, int(count as i64)]);
    let first = Type { dtype: DType::Int, shape: site.ty.shape.clone() };
    let first = code.prim_as(Prim::MinOf, &[candidates], first);
    code.prim(Prim::Eq, &[numbers, first])
}

/// The product of the other elements times `g`, for each element of `x`. Axes that are reduced and stand together are taken
/// as one, the last first.
fn product(code: &mut Code<'_>, x: Operand, ty: &Type, result: &Type, g: Operand) -> Operand {
    let reduced = |axis: usize| ty.shape[axis] != 1 && result.shape.get(axis).is_none_or(|extent| *extent == 1);
    let rank = ty.shape.len();
    let Some(end) = (0..rank).rev().find(|axis| reduced(*axis)).map(|axis| axis + 1) else { return g };
    let start = (0..end).rev().find(|axis| !reduced(*axis) && ty.shape[*axis] != 1).map_or(0, |axis| axis + 1);
    let mut between = ty.clone();
    between.shape[start..end].fill(1);
    let g = if (0..start).any(reduced) {
        let inner = code.prim_as(Prim::Prod, &[x], between.clone());
        product(code, inner, &between, result, g)
    } else {
        g
    };
    let size = |axes: std::ops::Range<usize>| ty.shape[axes].iter().product::<usize>();
    let (outer, n, inner) = (size(0..start), size(start..end), size(end..rank));
    let real_type = |shape: &[usize]| Type::new(DType::Real, shape.iter().copied());
    // the axis of the product first
    let apart = code.prim_as(Prim::Reshape, &[x], real_type(&[outer, n, inner]));
    let first = if outer == 1 { apart } else { code.prim(Prim::Transpose, &[apart]) };
    let columns = code.prim_as(Prim::Reshape, &[first], real_type(&[n, outer * inner]));
    let row = spread(code, g, &between);
    let row = code.prim_as(Prim::Reshape, &[row], real_type(&[1, outer * inner]));
    let parts = column_products(code, columns, (n, outer * inner), row);
    let first = code.prim_as(Prim::Reshape, &[parts], real_type(&[n, outer, inner]));
    let apart = if outer == 1 { first } else { code.prim(Prim::Transpose, &[first]) };
    code.prim_as(Prim::Reshape, &[apart], ty.clone())
}

/// For each element of the columns of `x` the product of the others of its column, times `g`: down a tree that pairs the
/// halves of the columns.
fn column_products(code: &mut Code<'_>, x: Operand, (n, m): (usize, usize), g: Operand) -> Operand {
    if n == 1 {
        return g;
    }
    let half = n / 2;
    let rows = |code: &mut Code<'_>, x: Operand, first: usize, count: usize| {
        code.prim_as(Prim::Slice, &[x, int(first as i64)], Type::new(DType::Real, [count, m]))
    };
    let (upper, lower) = (rows(code, x, 0, half), rows(code, x, half, half));
    let pairs = code.prim(Prim::Mul, &[upper, lower]);
    let odd = n % 2 == 1;
    let next = if odd {
        let last = rows(code, x, 2 * half, 1);
        code.prim(Prim::Concat, &[pairs, last])
    } else {
        pairs
    };
    let others = column_products(code, next, (n - half, m), g);
    let of_pairs = if odd { rows(code, others, 0, half) } else { others };
    let of_upper = code.times(of_pairs, lower, Care::Careful);
    let of_lower = code.times(of_pairs, upper, Care::Careful);
    let both = code.prim(Prim::Concat, &[of_upper, of_lower]);
    if odd {
        let last = rows(code, others, half, 1);
        code.prim(Prim::Concat, &[both, last])
    } else {
        both
    }
}

/// A value with all elements of this type.
pub(super) fn spread(code: &mut Code<'_>, x: Operand, ty: &Type) -> Operand {
    if code.ty(x) == *ty { x } else { code.prim_as(Prim::Fill, &[x], ty.clone()) }
}
