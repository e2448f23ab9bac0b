//! Which kernel runs a primitive for many lanes: chosen by the primitive and by which of its operands are the same for all
//! lanes. The back end asks the same table, and so do the warnings.

use std::fmt;

use crate::prim::{BatchRule, Class, Prim};
use crate::types::{DType, Type};

/// How a primitive is run for the active lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BatchKernel {
    /// All operands are the same for all lanes: computed once, and stored for each lane where the result is.
    Once,
    /// A loop over the lanes for each element; what is shared is read once for all of them.
    Elementwise,
    /// Rows of lanes are moved whole.
    Moves,
    /// Each lane reads or writes at a place of its own, all in one loop for each element.
    Places,
    /// The elements of all lanes are combined in their order, a row of lanes at a time.
    Reduction,
    /// The left matrix is shared: one matrix product over the lanes.
    Gemm,
    /// The right matrix is shared: one product of its transpose over the lanes for each row of the left one.
    GemmTransposed,
    /// Both operands differ: a chain of multiply-adds over rows of lanes for each element.
    Chains,
    /// Draws of all lanes, a row at a time.
    Draws,
    /// There is no kernel for these operands: one lane after another.
    LaneByLane,
}

impl fmt::Display for BatchKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BatchKernel::Once => "once for all lanes",
            BatchKernel::Elementwise => "elementwise over the lanes",
            BatchKernel::Moves => "moves rows of lanes",
            BatchKernel::Places => "a place for each lane",
            BatchKernel::Reduction => "reduces rows of lanes",
            BatchKernel::Gemm => "one matrix product over the lanes",
            BatchKernel::GemmTransposed => "one transposed matrix product over the lanes",
            BatchKernel::Chains => "chains of multiply-adds over rows of lanes",
            BatchKernel::Draws => "draws rows of lanes",
            BatchKernel::LaneByLane => "lane by lane",
        })
    }
}

impl BatchKernel {
    /// Whether there are operands for which the primitive has no kernel.
    pub fn may_fall_back(prim: Prim) -> bool {
        prim == Prim::IntPow
    }

    /// The kernel for operands of these types, each of which is shared or not.
    pub fn of<'a>(prim: Prim, args: impl IntoIterator<Item = (&'a Type, bool)>) -> BatchKernel {
        let args: smallvec::SmallVec<[(&Type, bool); 6]> = args.into_iter().collect();
        let shared = |i: usize| args.get(i).is_none_or(|a| a.1);
        let rule = prim.row().batch;
        if rule != BatchRule::Random && args.iter().all(|a| a.1) {
            return BatchKernel::Once;
        }
        match rule {
            BatchRule::Random => BatchKernel::Draws,
            // With one exponent for all lanes the products are the same.
            BatchRule::Elementwise if BatchKernel::may_fall_back(prim) && !(shared(1) && args[1].0.is_scalar()) => {
                BatchKernel::LaneByLane
            }
            BatchRule::Elementwise => BatchKernel::Elementwise,
            BatchRule::Movement if places(prim, &args) => BatchKernel::Places,
            BatchRule::Movement => BatchKernel::Moves,
            BatchRule::Reduction => BatchKernel::Reduction,
            BatchRule::Contraction => match (shared(0), shared(1)) {
                (true, false) => BatchKernel::Gemm,
                (false, true) => BatchKernel::GemmTransposed,
                _ => BatchKernel::Chains,
            },
            BatchRule::Triangular => BatchKernel::Chains,
        }
    }
}

/// Whether an index operand differs from lane to lane.
fn places(prim: Prim, args: &[(&Type, bool)]) -> bool {
    let Class::Movement(movement) = prim.class() else { return false };
    args.iter().skip(movement.values()).any(|(ty, shared)| ty.dtype == DType::Int && !shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(prim: Prim, args: &[(Type, bool)]) -> BatchKernel {
        BatchKernel::of(prim, args.iter().map(|(ty, shared)| (ty, *shared)))
    }

    #[test]
    fn the_kernel_depends_on_which_operands_are_shared() {
        let (m, v, i) = (Type::new(DType::Real, [3, 2]), Type::new(DType::Real, [2]), Type::int());
        assert_eq!(of(Prim::MatMul, &[(m.clone(), true), (v.clone(), false)]), BatchKernel::Gemm);
        assert_eq!(of(Prim::MatMul, &[(v.clone(), false), (m.clone(), true)]), BatchKernel::GemmTransposed);
        assert_eq!(of(Prim::MatMul, &[(m.clone(), false), (v.clone(), false)]), BatchKernel::Chains);
        assert_eq!(of(Prim::MatMul, &[(m.clone(), true), (v.clone(), true)]), BatchKernel::Once);
        assert_eq!(of(Prim::Index, &[(v.clone(), true), (i.clone(), false)]), BatchKernel::Places);
        assert_eq!(of(Prim::Index, &[(v, false), (i.clone(), true)]), BatchKernel::Moves);
        assert_eq!(of(Prim::IntPow, &[(i.clone(), false), (i.clone(), true)]), BatchKernel::Elementwise);
        assert_eq!(of(Prim::IntPow, &[(i.clone(), true), (i, false)]), BatchKernel::LaneByLane);
        assert_eq!(of(Prim::RandomNormal, &[]), BatchKernel::Draws);
    }
}
