//! Emission of instructions that the derivative adds: straight-line code over the variables of a function that grows.

use super::care::{Care, is_ordinary};
pub(super) use crate::cfg::build::{int, real};
use crate::cfg::{Operand, Program, build};
use crate::prim::Prim;

/// Instructions that are being made. Variables made here have no name until [`name_all`](super::prepare::name_all)
/// gives them one.
pub(super) type Code<'p> = build::Builder<&'p Program>;

/// A product or solve of arrays in the chain rule.
pub(super) fn of_arrays(prim: Prim, care: Care) -> Prim {
    if care == Care::Plain { prim } else { prim.of_chain_rule() }
}

/// The product of the chain rule.
pub(super) fn product(x: Operand, y: Operand, care: Care) -> Prim {
    if care == Care::Plain || is_ordinary(x) || is_ordinary(y) { Prim::Mul } else { Prim::ChainMul }
}

/// Products and quotients in the chain rule.
pub(super) trait ChainRule {
    /// `x · y`
    fn times(&mut self, x: Operand, y: Operand, care: Care) -> Operand;
    /// `x / y`
    fn over(&mut self, x: Operand, y: Operand, care: Care) -> Operand;
}

impl ChainRule for Code<'_> {
    fn times(&mut self, x: Operand, y: Operand, care: Care) -> Operand {
        self.prim(product(x, y, care), &[x, y])
    }
    fn over(&mut self, x: Operand, y: Operand, care: Care) -> Operand {
        let plain = care == Care::Plain || is_ordinary(x) || is_ordinary(y);
        self.prim(if plain { Prim::Div } else { Prim::ChainDiv }, &[x, y])
    }
}
