//! Layer 1: THE table of primitives. One row per primitive: its name, its types and shape rule, its batch rule, its
//! derivative, its cost, and whether it is total on junk. Everything that must know something about a primitive asks here.

pub mod eval;
mod rules;

use std::fmt;

pub use rules::TypeError;

/// A primitive of the language: straight-line, one result, the same in every lane.
///
/// *Elementwise* primitives take operands that are scalars or arrays of one rank whose extents on each axis are equal or 1:
/// scalars and extents of 1 broadcast. The language is stricter; see `check`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is documented by its row in the table")]
pub enum Prim {
    // arithmetic
    Copy,
    Add,
    Sub,
    Mul,
    Div,
    ChainMul,
    ChainDiv,
    IntDiv,
    IntRem,
    Rem,
    Neg,
    Abs,
    Min,
    Max,
    Pow,
    IntPow,
    // elementary functions
    Sqrt,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    InvLogit,
    Log1pExp,
    Erf,
    Erfc,
    Lgamma,
    Digamma,
    Trigamma,
    InvPhi,
    Phi,
    Floor,
    Ceil,
    Round,
    Trunc,
    IsNan,
    StopGradient,
    // comparison and logic
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Not,
    Select,
    // conversion
    ToReal,
    ToInt,
    BoolToInt,
    // arrays
    MakeArray,
    Index,
    SetIndex,
    Slice,
    SetSlice,
    Gather,
    Scatter,
    ScatterAdd,
    Fill,
    Iota,
    Concat,
    Transpose,
    TransposeEach,
    Reshape,
    Dot,
    MatMul,
    BatchMatMul,
    ChainDot,
    ChainMatMul,
    ChainBatchMatMul,
    Cholesky,
    SolveLower,
    SolveLowerTransposed,
    ChainSolveLower,
    ChainSolveLowerTransposed,
    // reductions of a whole array, or along axes
    Sum,
    Prod,
    MinOf,
    MaxOf,
    Any,
    All,
    // random draws
    RandomUniform,
    RandomNormal,
}

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

/// What is known of a primitive's derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Derivative {
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
    /// What it computes.
    pub doc: &'static str,
    /// How it is run for many lanes.
    pub batch: BatchRule,
    /// Its derivative.
    pub derivative: Derivative,
    /// Cost of one element in one lane, in units of one addition (measured on AVX-512, rounded).
    pub cost: u32,
}

macro_rules! table {
    ($($prim:ident $name:literal $batch:ident $derivative:ident $cost:literal $doc:literal)*) => {
        /// The table, in the order of [`Prim`].
        pub const TABLE: &[Row] = &[$(Row {
            prim: Prim::$prim, name: $name, doc: $doc, batch: BatchRule::$batch,
            derivative: Derivative::$derivative, cost: $cost,
        }),*];
    };
}

table! {
    Copy "copy" Elementwise Linear 1 "x itself"
    Add "add" Elementwise Smooth 1 "x + y; an int that overflows traps"
    Sub "sub" Elementwise Smooth 1 "x - y; an int that overflows traps"
    Mul "mul" Elementwise Smooth 1 "x * y; an int that overflows traps"
    Div "div" Elementwise Smooth 4 "x / y of reals"
    ChainMul "chain_mul" Elementwise Smooth 1 "x * y of the chain rule: 0 where either is 0, whatever the other is"
    ChainDiv "chain_div" Elementwise Smooth 4 "x / y of the chain rule: 0 where x is 0 or y infinite, whatever the other is"
    IntDiv "idiv" Elementwise Zero 8 "x / y of ints, truncated towards zero; y = 0 and overflow trap"
    IntRem "irem" Elementwise Zero 8 "remainder of x / y of ints with the sign of x; y = 0 traps"
    Rem "rem" Elementwise Smooth 20 "remainder of x / y of reals with the sign of x (C's fmod)"
    Neg "neg" Elementwise Smooth 1 "-x; an int that overflows traps"
    Abs "abs" Elementwise Smooth 1 "|x|; an int that overflows traps"
    Min "min" Elementwise Smooth 1 "the smaller of x and y; NaN if either is NaN"
    Max "max" Elementwise Smooth 1 "the larger of x and y; NaN if either is NaN"
    Pow "pow" Elementwise Smooth 30 "x ^ y of reals"
    IntPow "ipow" Elementwise Zero 20 "x ^ y of ints; overflow and y < 0 trap"
    Sqrt "sqrt" Elementwise Smooth 6 "square root"
    Exp "exp" Elementwise Smooth 8 "e^x"
    Expm1 "expm1" Elementwise Smooth 10 "e^x - 1"
    Log "log" Elementwise Smooth 10 "natural logarithm"
    Log1p "log1p" Elementwise Smooth 12 "log(1 + x)"
    Sin "sin" Elementwise Smooth 12 "sine"
    Cos "cos" Elementwise Smooth 12 "cosine"
    Tan "tan" Elementwise Smooth 20 "tangent"
    Asin "asin" Elementwise Smooth 16 "arc sine"
    Acos "acos" Elementwise Smooth 16 "arc cosine"
    Atan "atan" Elementwise Smooth 16 "arc tangent"
    Atan2 "atan2" Elementwise Smooth 20 "angle of the point (y, x): atan2(y, x)"
    Sinh "sinh" Elementwise Smooth 14 "hyperbolic sine"
    Cosh "cosh" Elementwise Smooth 14 "hyperbolic cosine"
    Tanh "tanh" Elementwise Smooth 12 "hyperbolic tangent"
    InvLogit "inv_logit" Elementwise Smooth 12 "1 / (1 + e^-x)"
    Log1pExp "log1p_exp" Elementwise Smooth 20 "log(1 + e^x)"
    Erf "erf" Elementwise Smooth 20 "error function"
    Erfc "erfc" Elementwise Smooth 24 "1 - erf(x)"
    Lgamma "lgamma" Elementwise Smooth 40 "log |gamma(x)|"
    Digamma "digamma" Elementwise Smooth 40 "derivative of lgamma"
    Trigamma "trigamma" Elementwise None 40 "second derivative of lgamma"
    InvPhi "inv_Phi" Elementwise Smooth 40 "standard normal quantile"
    Phi "Phi" Elementwise Smooth 24 "standard normal distribution function"
    Floor "floor" Elementwise Zero 1 "largest integer not above x, as a real"
    Ceil "ceil" Elementwise Zero 1 "smallest integer not below x, as a real"
    Round "round" Elementwise Zero 2 "nearest integer, halves away from zero, as a real"
    Trunc "trunc" Elementwise Zero 1 "x without its fraction, as a real"
    IsNan "is_nan" Elementwise Zero 1 "whether x is NaN"
    StopGradient "stop_gradient" Elementwise Zero 1 "x itself, through which no derivative goes"
    Eq "eq" Elementwise Zero 1 "x == y"
    Ne "ne" Elementwise Zero 1 "x != y"
    Lt "lt" Elementwise Zero 1 "x < y"
    Le "le" Elementwise Zero 1 "x <= y"
    Gt "gt" Elementwise Zero 1 "x > y"
    Ge "ge" Elementwise Zero 1 "x >= y"
    And "and" Elementwise Zero 1 "x and y, both evaluated"
    Or "or" Elementwise Zero 1 "x or y, both evaluated"
    Not "not" Elementwise Zero 1 "not x"
    Select "select" Elementwise Smooth 1 "select(c, x, y): x where c holds, else y; the condition is a bool scalar or has the common shape"
    ToReal "to_real" Elementwise Zero 1 "an int as a real"
    ToInt "to_int" Elementwise Zero 2 "a real truncated towards zero; NaN and values out of range trap"
    BoolToInt "bool_to_int" Elementwise Zero 1 "1 for true, 0 for false"
    MakeArray "array" Movement Linear 1 "array x0, x1, …: operands of one type stacked along a new leading axis"
    Index "index" Movement Linear 1 "index x, i, j, …: ints index the leading axes; out of range traps"
    SetIndex "set_index" Movement Linear 1 "set_index x, v, i, j, …: x with the part at the leading indices replaced by v; out of range traps"
    Slice "slice" Movement Linear 1 "slice x, a: as many entries of the leading axis from a on as the result has; out of range traps"
    SetSlice "set_slice" Movement Linear 1 "set_slice x, v, a: x with the entries of the leading axis from a on replaced by v; out of range traps"
    Gather "gather" Movement Linear 2 "gather x, i, j, …: like index at each place r of int arrays of one shape M; gives M ++ rest; scalar indices serve all places; out of range traps"
    Scatter "scatter" Movement Linear 1 "scatter x, v, i, j, …: x with the part at each place r replaced by v[r], ascending; places are distinct for the derivative; out of range traps"
    ScatterAdd "scatter_add" Movement Linear 2 "scatter_add x, v, i, j, …: v[r] added to the part of x at each place r, ascending; out of range traps, then an int that overflows"
    Fill "fill" Movement Linear 1 "fill x: every element of the result is the scalar x, or the one of an x with extents of 1 that stands there"
    Iota "iota" Movement Zero 1 "iota: the ints 0, 1, …, n - 1"
    Concat "concat" Movement Linear 1 "concat x, y: joined along the leading axis"
    Transpose "transpose" Movement Linear 1 "array with its first two axes exchanged"
    TransposeEach "transpose_each" Movement Linear 1 "array with its second and third axes exchanged: a transpose for each entry of the first"
    Reshape "reshape" Movement Linear 1 "the same elements in row-major order under another shape"
    Dot "dot" Contraction Smooth 2 "sum of products of two vectors"
    MatMul "matmul" Contraction Smooth 2 "matrix product, matrix-vector or vector-matrix"
    BatchMatMul "batch_matmul" Contraction Smooth 2 "a matrix product for each entry of the leading axis: [n, p, k] by [n, k, m]"
    ChainDot "chain_dot" Contraction Smooth 2 "dot of the chain rule: terms where either factor is 0 are 0, whatever the other is"
    ChainMatMul "chain_matmul" Contraction Smooth 2 "matmul of the chain rule, like chain_dot"
    ChainBatchMatMul "chain_batch_matmul" Contraction Smooth 2 "batch_matmul of the chain rule, like chain_dot"
    Cholesky "cholesky" Triangular Smooth 2 "lower triangular l with l @ transpose(l) = x; reads the lower triangle; from a pivot on that is not positive NaN; a leading axis is of several matrices"
    SolveLower "solve_lower" Triangular Smooth 2 "solve_lower l, b: the solution x of l @ x = b for a vector or matrix b; reads the lower triangle; both may have a leading axis of several"
    SolveLowerTransposed "solve_lower_transposed" Triangular Smooth 2 "solve_lower_transposed l, b: the solution x of transpose(l) @ x = b, like solve_lower"
    ChainSolveLower "chain_solve_lower" Triangular Smooth 2 "solve_lower in the arithmetic of the chain rule: chain_dot and chain_div"
    ChainSolveLowerTransposed "chain_solve_lower_transposed" Triangular Smooth 2 "solve_lower_transposed in the arithmetic of the chain rule"
    Sum "sum" Reduction Linear 1 "sum of all elements, in the order of Numerics; for a result of the same rank, over the axes where it has 1"
    Prod "prod" Reduction Smooth 1 "product of all elements, ascending; ints trap on overflow; or over axes, like sum"
    MinOf "min_of" Reduction Smooth 1 "smallest element; NaN if any is NaN; an empty array traps; or over axes, like sum"
    MaxOf "max_of" Reduction Smooth 1 "largest element; NaN if any is NaN; an empty array traps; or over axes, like sum"
    Any "any" Reduction Zero 1 "whether any element holds; or over axes, like sum"
    All "all" Reduction Zero 1 "whether all elements hold; or over axes, like sum"
    RandomUniform "random_uniform" Random None 16 "a uniform draw in (0, 1) for every element of the result, ascending"
    RandomNormal "random_normal" Random None 40 "a standard normal draw for every element of the result, ascending"
}

impl Prim {
    /// The row of this primitive.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
    /// Whether it is a random draw.
    pub fn is_draw(self) -> bool {
        self.row().batch == BatchRule::Random
    }
    /// Whether it gives its first operand with a part that is changed, and so can do that in place.
    pub fn changes_part(self) -> bool {
        matches!(self, Prim::SetIndex | Prim::SetSlice | Prim::Scatter | Prim::ScatterAdd)
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
    /// The primitive of the chain rule, in which a zero wins, for a product or a solve of arrays; others are themselves.
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
        assert_eq!(TABLE.len(), Prim::RandomNormal as usize + 1);
    }
}
