//! How careful the rules must be with a cotangent. In the products of the chain rule a zero wins over an infinity and a
//! NaN: what does not move, or what the path of a lane has no use for, contributes nothing. Plain products are right
//! where neither factor can be such a zero; they are what a gradient is made of as long as control and singular
//! functions leave it alone. What is found here holds for a variable wherever it is.

use crate::base::{Id, IdSet, IdVec};
use crate::cfg::{Func, InstKind, Operand, SideEffect, Terminator, VarId};
use crate::prim::{BatchRule, Prim};
use crate::types::Scalar;

/// What a cotangent, or a tangent, may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Care {
    /// Nothing out of the ordinary: plain products.
    Plain,
    /// It may be zero where what it is multiplied by is no number: the path of the lane has no use for it, or a
    /// function has underflown. Or it may be infinite, where a function is singular.
    Careful,
}

/// Of each variable of a function, how careful to be with its cotangent.
pub(super) type Cares = IdVec<VarId, Care>;

/// Whether a constant is a number at every precision, and neither 0 nor infinite: products with it and quotients by it
/// are numbers where the other is.
pub(in crate::transform) fn is_ordinary(operand: Operand) -> bool {
    matches!(operand, Operand::Const(Scalar::Real(x)) if (1e-30..1e30).contains(&x.abs()))
}

/// The cares of a reverse sweep: those of `seeds` to begin with; `cut`: what the path of a lane may have no use for.
pub(super) fn of_reverse(
    func: &Func,
    active: impl Fn(VarId) -> bool,
    seeds: &[(Operand, Care)],
    cut: &IdSet<VarId>,
) -> Cares {
    let mut cares: Cares = IdVec::filled(Care::Plain, func.vars.len());
    cut.iter().for_each(|v| cares[v] = Care::Careful);
    seeds.iter().for_each(|(value, care)| {
        raise(&mut cares, *value, *care);
    });
    for block in func.blocks.values() {
        if let Terminator::Call { args, .. } = &block.term {
            args.iter().for_each(|arg| {
                raise(&mut cares, *arg, Care::Careful);
            });
        }
        for inst in &block.insts {
            if let InstKind::Effect(SideEffect::TapePush { value, .. }) = &inst.kind {
                raise(&mut cares, *value, Care::Careful);
            }
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for inst in func.blocks.values().rev().flat_map(|b| b.insts.iter().rev()) {
            let InstKind::Prim { dst, prim, args } = &inst.kind else { continue };
            if !active(*dst) {
                continue;
            }
            for i in 0..args.len() {
                let care = cares[*dst].max(added(*prim, i, args));
                changed |= raise(&mut cares, args[i], care);
            }
        }
    }
    cares
}

fn raise(cares: &mut Cares, operand: Operand, care: Care) -> bool {
    match operand {
        Operand::Var(v) if v.index() < cares.len() && cares[v] < care => {
            cares[v] = care;
            true
        }
        _ => false,
    }
}

/// What a primitive adds to the care of the cotangent that goes on to an operand.
fn added(prim: Prim, i: usize, args: &[Operand]) -> Care {
    match prim.row().batch {
        BatchRule::Elementwise => match prim {
            Prim::Copy | Prim::Neg | Prim::Add | Prim::Sub | Prim::Mul => Care::Plain,
            Prim::Rem if i == 0 => Care::Plain,
            // data that are divided by are no zeros, or the value itself is no number
            Prim::Div if is_ordinary(args[1]) || matches!(args[1], Operand::Shared(_)) => Care::Plain,
            _ => Care::Careful,
        },
        BatchRule::Movement => match prim {
            Prim::MakeArray | Prim::Fill | Prim::Concat | Prim::Transpose | Prim::TransposeEach | Prim::Reshape => {
                Care::Plain
            }
            Prim::ScatterAdd => Care::Plain,
            prim if prim.changes_part() && i > 0 => Care::Plain,
            // zeros where nothing is read, or where something else is put
            _ => Care::Careful,
        },
        BatchRule::Reduction if prim == Prim::Sum => Care::Plain,
        BatchRule::Contraction if prim == prim.ordinary() => Care::Plain,
        BatchRule::Contraction | BatchRule::Triangular | BatchRule::Reduction | BatchRule::Random => Care::Careful,
    }
}
