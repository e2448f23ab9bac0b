//! The rows of the table.

use super::{BatchRule, DerivativeRule, Row, Traps};
use crate::vmath::{BinaryFn, UnaryFn, real_functions};

/// The pattern of the classes that compute elements from elements: all elementwise ones but [`Class::Identity`].
macro_rules! computed_elementwise {
    () => {
        $crate::prim::Class::Arithmetic(_)
            | $crate::prim::Class::RealArithmetic(_)
            | $crate::prim::Class::IntArithmetic(_)
            | $crate::prim::Class::Unary(_)
            | $crate::prim::Class::Binary(_)
            | $crate::prim::Class::Comparison(_)
            | $crate::prim::Class::Logic(_)
            | $crate::prim::Class::Selection(_)
            | $crate::prim::Class::Conversion(_)
    };
}
pub(crate) use computed_elementwise;

/// Makes [`Prim`], [`Class`], an enum of each class, and [`TABLE`] from the rows.
macro_rules! declare {
    (
        {
            $(
                $(#[$class_doc:meta])*
                $class:ident: $batch:ident {
                    $($prim:ident $name:literal [$($called:literal)*] $c:literal $traps:ident $derivative:ident $cost:literal $doc:literal)*
                }
            )*
        }
        unary { $($u:ident $um:ident $uc:tt $uname:literal $ud:ident $ucost:literal $udoc:literal)* }
        other_unary $other_unary:tt
        binary { $($b:ident $bm:ident $bc:tt $bname:literal $bd:ident $bcost:literal $bdoc:literal)* }
        other_binary $other_binary:tt
    ) => {
        /// A primitive of the language: straight-line, one result, the same in every lane.
        ///
        /// *Elementwise* primitives take operands that are scalars or arrays of one rank whose extents on each axis are
        /// equal or 1: scalars and extents of 1 broadcast. The language is stricter; see `check`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Prim {
            $($(#[doc = $doc] $prim,)*)*
            $(#[doc = $udoc] $u,)*
            $(#[doc = $bdoc] $b,)*
        }

        $(
            $(#[$class_doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub enum $class {
                $(#[doc = $doc] $prim,)*
            }

            impl From<$class> for Prim {
                fn from(of: $class) -> Prim {
                    match of {
                        $($class::$prim => Prim::$prim,)*
                    }
                }
            }
        )*

        /// What a primitive takes and gives: the part of its meaning that primitives have in common. Whoever treats
        /// primitives one by one matches on this and on the enum of the class, without a last arm for the rest.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Class {
            $($(#[$class_doc])* $class($class),)*
            /// A function of one real, elementwise.
            Unary(UnaryFn),
            /// A function of two reals, elementwise.
            Binary(BinaryFn),
        }

        /// The table, in the order of [`Prim`].
        pub const TABLE: &[Row] = &[
            $($(Row {
                prim: Prim::$prim,
                name: $name,
                called: &[$($called),*],
                doc: $doc,
                class: Class::$class($class::$prim),
                batch: BatchRule::$batch,
                c: $c,
                traps: Traps::$traps,
                derivative: DerivativeRule::$derivative,
                cost: $cost,
            },)*)*
            $(Row {
                prim: Prim::$u,
                name: $uname,
                called: &[$uname],
                doc: $udoc,
                class: Class::Unary(UnaryFn::$u),
                batch: BatchRule::Elementwise,
                c: stringify!($um),
                traps: Traps::Never,
                derivative: DerivativeRule::$ud,
                cost: $ucost,
            },)*
            $(Row {
                prim: Prim::$b,
                name: $bname,
                called: &[$bname],
                doc: $bdoc,
                class: Class::Binary(BinaryFn::$b),
                batch: BatchRule::Elementwise,
                c: stringify!($bm),
                traps: Traps::Never,
                derivative: DerivativeRule::$bd,
                cost: $bcost,
            },)*
        ];
    };
}

// A row: variant, name in the IR, names of functions of the language, C function, traps, derivative, cost, what it
// gives.
real_functions!(declare! {
    /// Gives the operand itself.
    Identity: Elementwise {
        Copy "copy" [] "" Never Linear 1 "x itself"
        StopGradient "stop_gradient" [] "" Never Zero 1 "x itself, a real, through which no derivative goes"
    }
    /// Arithmetic of ints or of reals.
    Arithmetic: Elementwise {
        Add "add" [] "add" OnInts Smooth 1 "x + y; an int that overflows traps"
        Sub "sub" [] "sub" OnInts Smooth 1 "x - y; an int that overflows traps"
        Mul "mul" [] "mul" OnInts Smooth 1 "x * y; an int that overflows traps"
        Neg "neg" [] "neg" OnInts Smooth 1 "-x; an int that overflows traps"
        Abs "abs" ["abs"] "abs" OnInts Smooth 1 "|x|; an int that overflows traps"
        Min "min" ["min"] "min" Never Smooth 1 "the smaller of x and y; NaN if either is NaN"
        Max "max" ["max"] "max" Never Smooth 1 "the larger of x and y; NaN if either is NaN"
    }
    /// Arithmetic of two reals.
    RealArithmetic: Elementwise {
        Div "div" [] "div" Never Smooth 4 "x / y of reals"
        Rem "rem" [] "rem" Never Smooth 20 "remainder of x / y of reals with the sign of x (C's fmod)"
        ChainMul "chain_mul" ["zero_times"] "chain_mul" Never Smooth 1 "x * y of the chain rule: 0 where either is 0, whatever the other is"
        ChainDiv "chain_div" [] "chain_div" Never Smooth 4 "x / y of the chain rule: 0 where x is 0 or y infinite, whatever the other is"
    }
    /// Arithmetic of two ints that reals do differently.
    IntArithmetic: Elementwise {
        IntDiv "idiv" [] "div" Always Zero 8 "x / y of ints, truncated towards zero; y = 0 and overflow trap"
        IntRem "irem" [] "rem" Always Zero 8 "remainder of x / y of ints with the sign of x; y = 0 traps"
        IntPow "ipow" [] "pow" Always Zero 20 "x ^ y of ints; overflow and y < 0 trap"
    }
    /// Comparisons: of bools (equality only), ints or reals.
    Comparison: Elementwise {
        Eq "eq" [] "eq" Never Zero 1 "x == y"
        Ne "ne" [] "ne" Never Zero 1 "x != y"
        Lt "lt" [] "lt" Never Zero 1 "x < y"
        Le "le" [] "le" Never Zero 1 "x <= y"
        Gt "gt" [] "gt" Never Zero 1 "x > y"
        Ge "ge" [] "ge" Never Zero 1 "x >= y"
    }
    /// Logic of bools.
    Logic: Elementwise {
        And "and" [] "and" Never Zero 1 "x and y, both evaluated"
        Or "or" [] "or" Never Zero 1 "x or y, both evaluated"
        Not "not" [] "not" Never Zero 1 "not x"
    }
    /// One of two values.
    Selection: Elementwise {
        Select "select" ["select"] "select" Never Smooth 1 "select(c, x, y): x where c holds, else y; the condition is a bool scalar or has the common shape"
    }
    /// From one element type to another.
    Conversion: Elementwise {
        ToReal "to_real" ["real"] "from" Never Zero 1 "an int as a real"
        ToInt "to_int" ["int"] "to_i_trap" Always Zero 2 "a real truncated towards zero; NaN and values out of range trap"
        BoolToInt "bool_to_int" [] "from" Never Zero 1 "1 for true, 0 for false"
        IsNan "is_nan" ["is_nan"] "is_nan" Never Zero 1 "whether x is NaN"
    }
    /// Movement of elements.
    Movement: Movement {
        MakeArray "array" [] "" Never Linear 1 "array x0, x1, …: operands of one type stacked along a new leading axis"
        Index "index" [] "" Always Linear 1 "index x, i, j, …: ints index the leading axes; out of range traps"
        SetIndex "set_index" [] "" Always Linear 1 "set_index x, v, i, j, …: x with the part at the leading indices replaced by v; out of range traps"
        Slice "slice" [] "" Always Linear 1 "slice x, a: as many entries of the leading axis from a on as the result has; out of range traps"
        SetSlice "set_slice" [] "" Always Linear 1 "set_slice x, v, a: x with the entries of the leading axis from a on replaced by v; out of range traps"
        Gather "gather" [] "" Always Linear 2 "gather x, i, j, …: like index at each place r of int arrays of one shape M; gives M ++ rest; scalar indices serve all places; out of range traps"
        Scatter "scatter" [] "" Always Linear 1 "scatter x, v, i, j, …: x with the part at each place r replaced by `v[r]`, ascending; places are distinct for the derivative; out of range traps"
        ScatterAdd "scatter_add" [] "" Always Linear 2 "scatter_add x, v, i, j, …: `v[r]` added to the part of x at each place r, ascending; out of range traps, then an int that overflows"
        Fill "fill" ["fill"] "" Never Linear 1 "fill x: every element of the result is the scalar x, or the one of an x with extents of 1 that stands there"
        Iota "iota" [] "" Never Zero 1 "iota: the ints 0, 1, …, n - 1"
        Concat "concat" ["concat" "append_array"] "" Never Linear 1 "concat x, y: joined along the leading axis"
        Transpose "transpose" ["transpose"] "" Never Linear 1 "array with its first two axes exchanged"
        TransposeEach "transpose_each" [] "" Never Linear 1 "array with its second and third axes exchanged: a transpose for each entry of the first"
        Reshape "reshape" ["reshape"] "" Never Linear 1 "the same elements in row-major order under another shape"
    }
    /// Products over a common axis.
    Contraction: Contraction {
        Dot "dot" ["dot"] "" Never Smooth 2 "sum of products of two vectors"
        MatMul "matmul" [] "" Never Smooth 2 "matrix product, matrix-vector or vector-matrix"
        BatchMatMul "batch_matmul" [] "" Never Smooth 2 "a matrix product for each entry of the leading axis: [n, p, k] by [n, k, m]"
        ChainDot "chain_dot" [] "" Never Smooth 2 "dot of the chain rule: terms where either factor is 0 are 0, whatever the other is"
        ChainMatMul "chain_matmul" [] "" Never Smooth 2 "matmul of the chain rule, like chain_dot"
        ChainBatchMatMul "chain_batch_matmul" [] "" Never Smooth 2 "batch_matmul of the chain rule, like chain_dot"
    }
    /// Factors and solutions of triangular systems.
    Triangular: Triangular {
        Cholesky "cholesky" ["cholesky_factor"] "" Never Smooth 2 "lower triangular l with l @ transpose(l) = x; reads the lower triangle; from a pivot on that is not positive NaN; a leading axis is of several matrices"
        SolveLower "solve_lower" ["solve_lower"] "" Never Smooth 2 "solve_lower l, b: the solution x of l @ x = b for a vector or matrix b; reads the lower triangle; both may have a leading axis of several"
        SolveLowerTransposed "solve_lower_transposed" ["solve_lower_transposed"] "" Never Smooth 2 "solve_lower_transposed l, b: the solution x of transpose(l) @ x = b, like solve_lower"
        ChainSolveLower "chain_solve_lower" [] "" Never Smooth 2 "solve_lower in the arithmetic of the chain rule: chain_dot and chain_div"
        ChainSolveLowerTransposed "chain_solve_lower_transposed" [] "" Never Smooth 2 "solve_lower_transposed in the arithmetic of the chain rule"
        ChainCholeskyTangent "chain_cholesky_tangent" [] "" Never Smooth 4 "chain_cholesky_tangent l, a: of the tangent a of a matrix, whose lower triangle is read, that of its factor l; in the arithmetic of the chain rule"
        ChainCholeskyCotangent "chain_cholesky_cotangent" [] "" Never Smooth 2 "chain_cholesky_cotangent l, g: of the cotangent g of the factor l of a matrix that of the matrix, whose lower triangle is read; zeros above; in the arithmetic of the chain rule"
    }
    /// Reductions of a whole array, or along axes.
    Reduction: Reduction {
        Sum "sum" ["sum"] "" OnInts Linear 1 "sum of all elements, in the order of Numerics; for a result of the same rank, over the axes where it has 1"
        SumLog "sum_log" ["sum_log"] "sum_log" Never Smooth 3 "sum of the logarithms of all elements, in the order of Numerics; or over axes, like sum"
        SumLog1pExp "sum_log1p_exp" ["sum_log1p_exp"] "sum_log1p_exp" Never Smooth 12 "sum of log(1 + e^x) of all elements, in the order of Numerics; or over axes, like sum"
        Prod "prod" ["prod"] "" OnInts Smooth 1 "product of all elements, ascending; ints trap on overflow; or over axes, like sum"
        MinOf "min_of" [] "" OnEmpty Smooth 1 "smallest element; NaN if any is NaN; an empty array traps; or over axes, like sum"
        MaxOf "max_of" [] "" OnEmpty Smooth 1 "largest element; NaN if any is NaN; an empty array traps; or over axes, like sum"
        Any "any" ["any"] "" Never Zero 1 "whether any element holds; or over axes, like sum"
        All "all" ["all"] "" Never Zero 1 "whether all elements hold; or over axes, like sum"
    }
    /// Random draws.
    Draw: Random {
        RandomUniform "random_uniform" ["random_uniform"] "" Never None 16 "a uniform draw in (0, 1) for every element of the result, ascending"
        RandomNormal "random_normal" ["random_normal"] "" Never None 40 "a standard normal draw for every element of the result, ascending"
        RandomPosition "random_position" ["random_position"] "" Never None 1 "the number of draws that the lane has made; it makes none"
    }
});
