//! Forward mode: the tangent of an instruction's result from the tangents of its operands.

use super::care::Care;
use super::code::{ChainRule as _, Code, of_arrays, real};
use super::elementwise::elementwise;
use super::reductions::{reduction, spread};
use super::triangular;
use crate::cfg::Operand;
use crate::prim::{Class, Movement, Prim, Reduction, computed_elementwise};
use crate::types::Type;

/// An instruction to differentiate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) prim: Prim,
    pub(super) args: &'a [Operand],
    /// Its value, and the type of that.
    pub(super) result: Operand,
    pub(super) ty: &'a Type,
    /// How careful to be with the cotangent of the result, or the tangents of the operands.
    pub(super) care: Care,
}

/// The tangent of the result; `tangents` has one for each operand, nothing where it is zero. Nothing when the result's
/// tangent is zero.
pub(super) fn tangent(code: &mut Code<'_>, site: Site<'_>, tangents: &[Option<Operand>]) -> Option<Operand> {
    if tangents.iter().all(Option::is_none) {
        return None;
    }
    let made = match site.prim.class() {
        Class::Identity(_) | computed_elementwise!() => elementwise_tangent(code, site, tangents),
        Class::Movement(movement) => Some(moved(code, site, movement, tangents)),
        Class::Reduction(of) => tangents[0].and_then(|t| {
            // what the elements get of a cotangent of 1 says how much of their tangents goes on
            let scaled = if of == Reduction::Sum {
                t
            } else {
                let weights = reduction(code, site, of, real(1.0))?;
                code.times(weights, t, Care::Careful)
            };
            Some(code.prim_as(Prim::Sum, &[scaled], site.ty.clone()))
        }),
        Class::Contraction(_) => contraction(code, site, tangents),
        Class::Triangular(_) => triangular::tangent(code, site, tangents),
        Class::Draw(_) => None,
    };
    made.map(|t| spread(code, t, site.ty))
}

fn elementwise_tangent(code: &mut Code<'_>, site: Site<'_>, tangents: &[Option<Operand>]) -> Option<Operand> {
    let Site { prim, args, .. } = site;
    let or_zero = |i: usize| tangents[i].unwrap_or(real(0.0));
    match (prim, args) {
        // one selection for both operands
        (Prim::Select, &[c, ..]) => return Some(code.prim(Prim::Select, &[c, or_zero(1), or_zero(2)])),
        (Prim::Min | Prim::Max, &[x, y]) => {
            let first = code.prim(if prim == Prim::Min { Prim::Le } else { Prim::Ge }, &[x, y]);
            return Some(code.prim(Prim::Select, &[first, or_zero(0), or_zero(1)]));
        }
        _ => {}
    }
    let mut sum: Option<Operand> = None;
    for (i, t) in tangents.iter().enumerate() {
        let Some(part) = t.and_then(|t| elementwise(code, site, i, t)) else { continue };
        sum = Some(match sum {
            Some(sum) => code.prim(Prim::Add, &[sum, part]),
            None => part,
        });
    }
    sum
}

/// Movement is linear: the same movement of the tangents, zeros where there is none.
fn moved(code: &mut Code<'_>, site: Site<'_>, movement: Movement, tangents: &[Option<Operand>]) -> Operand {
    let values = movement.values().min(site.args.len());
    let mut args = site.args.to_vec();
    for i in 0..values {
        args[i] = match tangents[i] {
            Some(t) => t,
            None => {
                let ty = code.ty(args[i]);
                code.zero(&ty)
            }
        };
    }
    code.prim_as(site.prim, &args, site.ty.clone())
}

/// A product is linear in each operand.
fn contraction(code: &mut Code<'_>, site: Site<'_>, tangents: &[Option<Operand>]) -> Option<Operand> {
    let (x, y) = (site.args[0], site.args[1]);
    let prim = of_arrays(site.prim, site.care);
    let left = tangents[0].map(|t| code.prim(prim, &[t, y]));
    let right = tangents[1].map(|t| code.prim(prim, &[x, t]));
    match (left, right) {
        (Some(left), Some(right)) => Some(code.prim(Prim::Add, &[left, right])),
        (left, right) => left.or(right),
    }
}
