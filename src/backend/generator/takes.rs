//! Which operations can be part of a function.

use std::ops::RangeInclusive;

use crate::backend::generator::frame::Limits;
use crate::backend::generator::scope::Scope;
use crate::plan::Origin;
use crate::prim::{Class, Contraction, IntArithmetic, LOG_BLOCK, Movement, Prim, Reduction};
use crate::unit::{OpKind, Operand, SideEffect, ValueId};

/// Whether all that a step does can be part of a function.
pub(super) fn takes(origin: &Origin, scope: &Scope<'_>, limits: &Limits) -> bool {
    let taking = Taking { scope, small: 1..=limits.elements, matrix: limits.matrix };
    match origin {
        Origin::Ops(ops) => ops.iter().all(|at| taking.op(&scope.ops[*at].kind)),
        Origin::Copy(operand) => {
            let uniform = matches!(operand, Operand::Var(v) if scope.values[*v].uniform);
            !uniform && taking.is_small(*operand)
        }
    }
}

/// Where the part begins that an index or slice of known places names; none where it is out of range.
pub(super) fn place(prim: Prim, dst: ValueId, args: &[Operand], scope: &Scope<'_>) -> Option<usize> {
    let (indices, part) = match prim {
        Prim::Index | Prim::Slice => (&args[1..], Operand::Var(dst)),
        _ => (&args[2..], args[1]),
    };
    let (ty, part) = (scope.ty(args[0]), scope.ty(part));
    let shape = &ty.shape;
    let mut at = 0;
    for (axis, index) in indices.iter().enumerate() {
        let index = usize::try_from(scope.literal_int(*index)?).ok()?;
        let most = match prim {
            Prim::Slice | Prim::SetSlice => shape[0].checked_sub(part.shape[0])?,
            _ => shape[axis].checked_sub(1)?,
        };
        if index > most {
            return None;
        }
        at += index * shape[axis + 1..].iter().product::<usize>();
    }
    Some(at)
}

struct Taking<'a> {
    scope: &'a Scope<'a>,
    /// Elements that a value may have.
    small: RangeInclusive<usize>,
    /// Elements that a matrix may have.
    matrix: usize,
}

impl Taking<'_> {
    fn is_small(&self, operand: Operand) -> bool {
        self.small.contains(&self.scope.elements(operand))
    }

    fn op(&self, kind: &OpKind) -> bool {
        let storage = self.scope.storage;
        match kind {
            OpKind::Load { .. } => true,
            OpKind::Compute { dst, prim, args } => self.compute(*dst, *prim, args),
            OpKind::Store { var, .. } => {
                let slot = &storage.slots[storage.home(*var)];
                !slot.uniform && self.small.contains(&slot.elements)
            }
            OpKind::Push { value, .. } => self.is_small(*value),
            OpKind::Pop { dst, .. } => self.is_small(Operand::Var(*dst)),
            // A message with values is made where the values are: such asserts stay steps.
            OpKind::Effect(SideEffect::Assert { message, .. }) => message.args.is_empty(),
            OpKind::Effect(_) => false,
        }
    }

    fn compute(&self, dst: ValueId, prim: Prim, args: &[Operand]) -> bool {
        let scope = self.scope;
        let n = scope.values[dst].ty.elements();
        if scope.values[dst].uniform || !self.small.contains(&n) {
            return false;
        }
        let args_small = || args.iter().all(|a| self.is_small(*a));
        let whole = |a: &Operand| [1, n].contains(&scope.elements(*a));
        let known = |indices: &[Operand]| {
            indices.iter().all(|a| scope.literal_int(*a).is_some()) && place(prim, dst, args, scope).is_some()
        };
        match prim.class() {
            Class::Identity(_) => args_small(),
            Class::IntArithmetic(IntArithmetic::IntPow) => false,
            Class::Arithmetic(_)
            | Class::RealArithmetic(_)
            | Class::IntArithmetic(IntArithmetic::IntDiv | IntArithmetic::IntRem)
            | Class::Unary(_)
            | Class::Binary(_)
            | Class::Comparison(_)
            | Class::Logic(_)
            | Class::Selection(_)
            | Class::Conversion(_) => args.iter().all(whole),
            Class::Movement(movement) => match movement {
                Movement::Reshape | Movement::MakeArray | Movement::Concat => args_small(),
                Movement::Fill => scope.elements(args[0]) == 1,
                Movement::Index | Movement::Slice => self.is_small(args[0]) && known(&args[1..]),
                Movement::SetIndex | Movement::SetSlice => args_small() && known(&args[2..]),
                // What nobody has thought of stays a step.
                _ => false,
            },
            Class::Contraction(Contraction::Dot | Contraction::ChainDot) => args_small(),
            Class::Contraction(Contraction::MatMul | Contraction::ChainMatMul) => self.product(args),
            Class::Contraction(Contraction::BatchMatMul | Contraction::ChainBatchMatMul) | Class::Triangular(_) => {
                false
            }
            // Of one block: more are loops in a loop.
            Class::Reduction(Reduction::SumLog | Reduction::SumLog1pExp) => {
                n == 1 && args_small() && scope.elements(args[0]) <= LOG_BLOCK
            }
            Class::Reduction(_) => n == 1 && args_small(),
            Class::Draw(_) => true,
        }
    }

    /// Of a shared matrix and a vector of each lane.
    fn product(&self, args: &[Operand]) -> bool {
        let [a, b] = *args else { return false };
        let scope = self.scope;
        let (matrix, vector) = if scope.is_common(a) { (a, b) } else { (b, a) };
        let shared = matches!(scope.root(matrix), Operand::Shared(_));
        let (matrix, axes) = (scope.ty(matrix), scope.ty(vector).shape.len());
        shared
            && matrix.shape.len() == 2
            && axes == 1
            && !scope.is_common(vector)
            && self.is_small(vector)
            && matrix.elements() <= self.matrix
    }
}
