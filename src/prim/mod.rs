//! Layer 1: THE table of primitives. One row declares a primitive: its name, the names that programs call it by, its
//! class, its batch rule, its C function, what it traps on, its derivative and its cost. The rows of the functions of
//! reals stand in `src/vmath/functions.rs`, those of all others in [`table`](self); whatever must know something about
//! a primitive asks here, or matches on its [`Class`], so that the compiler names what a new one lacks.

pub mod eval;
mod rules;
mod table;

use std::fmt;

pub use crate::vmath::{BLOCK, LOG_BLOCK};
pub use rules::TypeError;
pub(crate) use table::computed_elementwise;
pub use table::{
    Arithmetic, Class, Comparison, Contraction, Conversion, Draw, Identity, IntArithmetic, Logic, Movement, Prim,
    RealArithmetic, Reduction, Selection, TABLE, Triangular,
};

/// How a primitive is run for many lanes, by the variance of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchRule {
    /// Each element and lane by itself; shared operands broadcast over the lanes.
    Elementwise,
    /// Moves elements: views or copies.
    Movement,
    /// Combines the elements of a lane in a fixed order.
    Reduction,
    /// A chain of fused multiply-adds (dot and matrix products): a GEMM over the lanes when the matrix is shared.
    Contraction,
    /// Cholesky factors and triangular solves: for each element a chain as of a contraction, over those before it.
    Triangular,
    /// Reads and advances the lane's random stream.
    Random,
}

/// What a primitive can do besides computing its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Total and without effect: may run on junk, be repeated, moved, merged or dropped.
    Pure,
    /// May trap, on integer overflow, division by zero, or an index out of range (for these operand types).
    Traps,
    /// Advances the lane's random stream.
    Random,
}

/// When a primitive can trap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traps {
    /// Never.
    Never,
    /// For any operands.
    Always,
    /// Where its first operand is of ints: those of 64 bits overflow.
    OnInts,
    /// Where its operand has no elements.
    OnEmpty,
}

/// What is known of a primitive's derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DerivativeRule {
    /// Has one; the rule comes with the differentiation transform.
    Smooth,
    /// Zero wherever it is defined, or of an integer or boolean.
    Zero,
    /// Linear movement of elements: its own transpose rule.
    Linear,
    /// None: a random draw, or a function whose derivative the language has no function for.
    None,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The primitive.
    pub prim: Prim,
    /// Its name in the text form of the IR.
    pub name: &'static str,
    /// The functions of the language that it is; an operator, an index or another construct otherwise.
    pub called: &'static [&'static str],
    /// What it computes.
    pub doc: &'static str,
    /// What it takes and gives.
    pub class: Class,
    /// How it is run for many lanes.
    pub batch: BatchRule,
    /// The function of generated C, without the prefix of its element type; empty where there is none.
    pub c: &'static str,
    /// When it traps.
    pub traps: Traps,
    /// Its derivative.
    pub derivative: DerivativeRule,
    /// Cost of one element in one lane, in units of one addition (measured on AVX-512, rounded).
    pub cost: u32,
}

impl Prim {
    /// The row of this primitive.
    #[inline]
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
    /// What it takes and gives.
    #[inline]
    pub fn class(self) -> Class {
        self.row().class
    }
    /// By how many draws it advances the lane's random stream where its result has so many elements.
    pub fn draws(self, elements: usize) -> usize {
        match self {
            Prim::RandomUniform | Prim::RandomNormal => elements,
            _ => 0,
        }
    }
    /// Whether it reads the random stream of the lane.
    pub fn is_draw(self) -> bool {
        self.row().batch == BatchRule::Random
    }
    /// Whether it works on each element by itself.
    pub fn is_elementwise(self) -> bool {
        self.row().batch == BatchRule::Elementwise
    }
    /// Whether it gives its first operand with a part that is changed, and so can do that in place.
    pub fn changes_part(self) -> bool {
        matches!(self, Prim::SetIndex | Prim::SetSlice | Prim::Scatter | Prim::ScatterAdd)
    }
    /// Whether it is the tangent or the cotangent of a Cholesky factor.
    pub fn derives_factor(self) -> bool {
        matches!(self, Prim::ChainCholeskyTangent | Prim::ChainCholeskyCotangent)
    }
    /// Whether a NaN of its result tells what is the matter, and the program looks for it: a factor of a matrix that is not
    /// positive definite.
    pub fn tells_by_nan(self) -> bool {
        self == Prim::Cholesky
    }
    /// Whether a NaN of its result may be born in it: those that only move values cannot bear one.
    pub fn bears_nans(self) -> bool {
        let moves = self.row().batch == BatchRule::Movement && self != Prim::ScatterAdd;
        !moves && self != Prim::Copy && !self.tells_by_nan()
    }
    /// The primitive of the chain rule, in which a zero wins, for a product or a solve of arrays; others are
    /// themselves.
    pub fn of_chain_rule(self) -> Self {
        match self {
            Prim::Dot => Prim::ChainDot,
            Prim::MatMul => Prim::ChainMatMul,
            Prim::BatchMatMul => Prim::ChainBatchMatMul,
            Prim::SolveLower => Prim::ChainSolveLower,
            Prim::SolveLowerTransposed => Prim::ChainSolveLowerTransposed,
            other => other,
        }
    }
    /// The ordinary product or solve that a primitive of the chain rule is where nothing is NaN; others are themselves.
    pub fn ordinary(self) -> Self {
        match self {
            Prim::ChainDot => Prim::Dot,
            Prim::ChainMatMul => Prim::MatMul,
            Prim::ChainBatchMatMul => Prim::BatchMatMul,
            Prim::ChainSolveLower => Prim::SolveLower,
            Prim::ChainSolveLowerTransposed => Prim::SolveLowerTransposed,
            other => other,
        }
    }
    /// Its name in the text form of the IR.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    /// The primitive of this name.
    pub fn from_name(name: &str) -> Option<Prim> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.prim)
    }
}

impl fmt::Display for Prim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
impl fmt::Debug for Prim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.prim as usize, i, "{}", row.name);
            assert_eq!(Prim::from_name(row.name), Some(row.prim));
        }
    }

    #[test]
    fn a_function_of_the_language_is_one_primitive() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|row| row.called).copied().collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
