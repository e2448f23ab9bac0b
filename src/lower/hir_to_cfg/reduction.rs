//! Comprehensions and the reductions over them, as loops.
//!
//! A sum is the one that the primitive `sum` gives for the array of the elements, bit for bit: ascending within blocks of
//! [`BLOCK`], the sums of the blocks added in order.

use super::expr::zero;
use super::func::{Lowered, Lowering};
use super::value::{MAX_ELEMENTS, Value};
use crate::cfg::{Operand, Terminator, VarId};
use crate::hir::{Clause, Expr, ExprKind, Reduction, Ty};
use crate::prim::Prim;
use crate::types::{DType, Scalar, Type};

/// Elements in a block of a sum; see `src/vmath/README.md`.
pub(super) const BLOCK: i64 = crate::prim::BLOCK as i64;

/// What runs for every element.
type Body<'f, 's, 'a> = dyn FnMut(&mut Lowering<'s, 'a>) -> Lowered<()> + 'f;

pub(super) fn int(value: i64) -> Operand {
    Operand::Const(Scalar::Int(value))
}
fn real(value: f64) -> Operand {
    Operand::Const(Scalar::Real(value))
}

impl<'s, 'a> Lowering<'s, 'a> {
    /// `[body for …]`: the array is made once and its parts are set in place.
    pub(super) fn comprehension_loop(&mut self, clauses: &'a [Clause], body: &'a Expr, ty: &'a Ty) -> Lowered<Value> {
        let axes = self.axes(ty);
        let Some(ty) = self.leaf_type(ty)? else {
            return Ok(Value::Never);
        };
        let array = self.temporary(ty.clone());
        let blank = self.blank(ty.dtype, &axes);
        self.set(array, Prim::Fill, &[Operand::Const(blank)]);
        let mut starts = Vec::new();
        for clause in clauses {
            let Some(start) = self.operand(&clause.start)? else {
                return Ok(Value::Never);
            };
            starts.push(self.keep(start));
            self.note_range(clause.var, &clause.start, &clause.end);
        }
        let lengths: Vec<Operand> = (0..clauses.len()).map(|axis| Self::axis_length(&axes, axis, &ty)).collect();
        let mut at = Vec::new();
        self.comprehend(array, clauses, &starts, &lengths, &mut at, body)?;
        Ok(Value::Leaf(Operand::Var(array)))
    }

    fn comprehend(
        &mut self,
        array: VarId,
        clauses: &'a [Clause],
        starts: &[Operand],
        lengths: &[Operand],
        at: &mut Vec<Operand>,
        body: &'a Expr,
    ) -> Lowered<()> {
        let ([clause, clauses @ ..], [start, starts @ ..], [length, lengths @ ..]) = (clauses, starts, lengths) else {
            if let Some(element) = self.operand(body)? {
                let args = [&[Operand::Var(array), element], &at[..]].concat();
                self.set(array, Prim::SetIndex, &args);
            }
            return Ok(());
        };
        if *start == int(0) {
            return self.local_loop(clause.var, int(0), *length, |this, _| {
                let Some(Value::Leaf(position)) = this.env.get(&clause.var).cloned() else {
                    return Ok(());
                };
                at.push(position);
                this.comprehend(array, clauses, starts, lengths, at, body)?;
                at.pop();
                Ok(())
            });
        }
        let position = self.bound("%i", Type::int());
        self.counted_loop(position, int(0), *length, |this, _| {
            let position = Operand::Var(position);
            let var = this.prim(Prim::Add, &[*start, position], &Type::int());
            this.bind(clause.var, &Value::Leaf(var))?;
            at.push(position);
            this.comprehend(array, clauses, starts, lengths, at, body)?;
            at.pop();
            Ok(())
        })
    }

    /// `sum(body for …)` and its kin.
    pub(super) fn reduction_loop(&mut self, op: Reduction, clauses: &'a [Clause], body: &'a Expr) -> Lowered<Value> {
        let Some(ty) = self.leaf_type(&body.ty)? else {
            return Ok(Value::Never);
        };
        let result = match op {
            Reduction::Sum => self.sum(clauses, body, ty.dtype)?.0,
            Reduction::Mean => self.mean(clauses, body)?,
            Reduction::Prod => {
                let one = match ty.dtype {
                    DType::Real => real(1.0),
                    _ => int(1),
                };
                self.chain(clauses, body, Prim::Mul, one)?
            }
            Reduction::Any => {
                let no = Operand::Const(Scalar::Bool(false));
                self.chain(clauses, body, Prim::Or, no)?
            }
            Reduction::All => {
                let yes = Operand::Const(Scalar::Bool(true));
                self.chain(clauses, body, Prim::And, yes)?
            }
            Reduction::Min => self.extremum(clauses, body, Prim::Min, ty.dtype)?,
            Reduction::Max => self.extremum(clauses, body, Prim::Max, ty.dtype)?,
            Reduction::LogSumExp => match self.largest_count(clauses) {
                Some(count) if count <= MAX_ELEMENTS => self.log_sum_exp_of_array(clauses, body, count)?,
                _ => self.log_sum_exp_streaming(clauses, body)?,
            },
        };
        Ok(Value::Leaf(Operand::Var(result)))
    }

    /// Runs `body` for every combination of the clauses' variables.
    fn for_each(&mut self, clauses: &'a [Clause], body: &mut Body<'_, 's, 'a>) -> Lowered<()> {
        let Some((clause, rest)) = clauses.split_first() else {
            return body(self);
        };
        self.note_range(clause.var, &clause.start, &clause.end);
        let Some((start, end)) = self.bounds(&clause.start, &clause.end)? else {
            return Ok(());
        };
        self.local_loop(clause.var, start, end, |this, _| this.for_each(rest, body))
    }

    /// How many elements there are, if that is known when the program is specialised.
    fn count(&self, clauses: &'a [Clause]) -> Option<i64> {
        clauses.iter().try_fold(1i64, |count, clause| {
            let (start, end) = self.constant_bounds(clause)?;
            count.checked_mul(end.checked_sub(start)?.max(0))
        })
    }

    /// How many elements there are at most, if they are as many as dimensions say: of a bounded one as many as its bound.
    fn largest_count(&self, clauses: &'a [Clause]) -> Option<i64> {
        clauses.iter().try_fold(1i64, |count, clause| {
            let length = match (&clause.end.kind, self.constant(&clause.start)?) {
                (ExprKind::Dim(end), Scalar::Int(start)) => self.dims.extent(end).ok()?.0.checked_sub(start)?,
                _ => self.count(std::slice::from_ref(clause))?,
            };
            count.checked_mul(length.max(0))
        })
    }

    /// A variable that starts with a value.
    pub(super) fn accumulator(&mut self, start: Operand) -> VarId {
        let var = self.temporary(self.type_of(start));
        self.set(var, Prim::Copy, &[start]);
        var
    }
    /// `accumulator = prim(accumulator, operand)`
    fn accumulate(&mut self, prim: Prim, accumulator: VarId, operand: Operand) {
        self.set(accumulator, prim, &[Operand::Var(accumulator), operand]);
    }

    /// `start` combined with every element in order.
    fn chain(&mut self, clauses: &'a [Clause], body: &'a Expr, prim: Prim, start: Operand) -> Lowered<VarId> {
        let result = self.accumulator(start);
        if self.count(clauses) != Some(0) {
            self.for_each(clauses, &mut |this| {
                if let Some(element) = this.operand(body)? {
                    this.accumulate(prim, result, element);
                }
                Ok(())
            })?;
        }
        Ok(result)
    }

    /// The sum, and the number of elements.
    fn sum(&mut self, clauses: &'a [Clause], body: &'a Expr, dtype: DType) -> Lowered<(VarId, Operand)> {
        let zero = Operand::Const(zero(dtype));
        match (self.count(clauses), clauses) {
            (Some(count), _) if count <= BLOCK => Ok((self.chain(clauses, body, Prim::Add, zero)?, int(count))),
            (Some(count), [clause]) => match self.constant_bounds(clause) {
                Some((start, end)) if end <= i64::MAX - BLOCK => {
                    let total = self.sum_blocks(clause, (start, end), body, zero)?;
                    Ok((total, int(count)))
                }
                _ => self.sum_counting(clauses, body, zero),
            },
            _ => self.sum_counting(clauses, body, zero),
        }
    }

    /// A long sum over one clause with known bounds: a loop over blocks around the loop over a block.
    fn sum_blocks(
        &mut self,
        clause: &'a Clause,
        (start, end): (i64, i64),
        body: &'a Expr,
        zero: Operand,
    ) -> Lowered<VarId> {
        let total = self.accumulator(zero);
        let from = self.accumulator(int(start));
        let number = self.bound("%block", Type::int());
        let blocks = (end - start + BLOCK - 1) / BLOCK;
        self.counted_loop(number, int(0), int(blocks), |this, _| {
            let block = this.accumulator(zero);
            let whole = this.prim(Prim::Add, &[Operand::Var(from), int(BLOCK)], &Type::int());
            let to = this.prim(Prim::Min, &[whole, int(end)], &Type::int());
            this.local_loop(clause.var, Operand::Var(from), to, |this, _| {
                if let Some(element) = this.operand(body)? {
                    this.accumulate(Prim::Add, block, element);
                }
                Ok(())
            })?;
            this.set(from, Prim::Copy, &[to]);
            this.accumulate(Prim::Add, total, Operand::Var(block));
            Ok(())
        })?;
        Ok(total)
    }

    /// A sum of unknown length: a counter tells where blocks end.
    fn sum_counting(&mut self, clauses: &'a [Clause], body: &'a Expr, zero: Operand) -> Lowered<(VarId, Operand)> {
        let total = self.accumulator(zero);
        let block = self.accumulator(zero);
        let filled = self.accumulator(int(0));
        let full_blocks = self.accumulator(int(0));
        self.for_each(clauses, &mut |this| {
            let Some(element) = this.operand(body)? else {
                return Ok(());
            };
            this.accumulate(Prim::Add, block, element);
            this.accumulate(Prim::Add, filled, int(1));
            let full = [Operand::Var(filled), int(BLOCK)];
            let full = this.prim(Prim::Eq, &full, &Type::bool());
            let (next, join) = (this.new_block(), this.new_block());
            this.terminate(Terminator::Branch(full, next, join));
            this.start(next);
            this.accumulate(Prim::Add, total, Operand::Var(block));
            this.set(block, Prim::Copy, &[zero]);
            this.set(filled, Prim::Copy, &[int(0)]);
            this.accumulate(Prim::Add, full_blocks, int(1));
            this.terminate(Terminator::Jump(join));
            this.start(join);
            Ok(())
        })?;
        self.accumulate(Prim::Add, total, Operand::Var(block));
        let counted = [Operand::Var(full_blocks), int(BLOCK)];
        let counted = self.prim(Prim::Mul, &counted, &Type::int());
        let count = [counted, Operand::Var(filled)];
        let count = self.prim(Prim::Add, &count, &Type::int());
        Ok((total, count))
    }

    fn mean(&mut self, clauses: &'a [Clause], body: &'a Expr) -> Lowered<VarId> {
        let (total, count) = self.sum(clauses, body, DType::Real)?;
        let count = self.prim(Prim::ToReal, &[count], &Type::real());
        let mean = self.temporary(Type::real());
        self.set(mean, Prim::Div, &[Operand::Var(total), count]);
        Ok(mean)
    }

    /// The smallest or largest element. It starts with the value that every element replaces; nothing at all traps.
    fn extremum(&mut self, clauses: &'a [Clause], body: &'a Expr, prim: Prim, dtype: DType) -> Lowered<VarId> {
        let start = match (prim, dtype) {
            (Prim::Min, DType::Real) => real(f64::INFINITY),
            (_, DType::Real) => real(f64::NEG_INFINITY),
            (Prim::Min, _) => int(i64::MAX),
            _ => int(i64::MIN),
        };
        let count = self.count(clauses);
        if count.is_some_and(|count| count > 0) {
            return self.chain(clauses, body, prim, start);
        }
        let result = self.accumulator(start);
        if count.is_none() {
            let found = self.accumulator(Operand::Const(Scalar::Bool(false)));
            self.for_each(clauses, &mut |this| {
                if let Some(element) = this.operand(body)? {
                    this.accumulate(prim, result, element);
                    let yes = Operand::Const(Scalar::Bool(true));
                    this.set(found, Prim::Copy, &[yes]);
                }
                Ok(())
            })?;
            let (empty, join) = (self.new_block(), self.new_block());
            self.terminate(Terminator::Branch(Operand::Var(found), join, empty));
            self.start(empty);
            self.extremum_of_nothing(result, prim, dtype);
            self.terminate(Terminator::Jump(join));
            self.start(join);
        } else {
            self.extremum_of_nothing(result, prim, dtype);
        }
        Ok(result)
    }

    /// Traps as `min` and `max` of an empty array do.
    fn extremum_of_nothing(&mut self, result: VarId, prim: Prim, dtype: DType) {
        let nothing = self.temporary(Type::new(dtype, [0]));
        self.set(nothing, Prim::Fill, &[Operand::Const(zero(dtype))]);
        let of = if prim == Prim::Min { Prim::MinOf } else { Prim::MaxOf };
        self.set(result, of, &[Operand::Var(nothing)]);
    }

    /// Of the array of the elements, by the same operations as `vectorize::reduce` has.
    fn log_sum_exp_of_array(&mut self, clauses: &'a [Clause], body: &'a Expr, count: i64) -> Lowered<VarId> {
        let result = self.accumulator(real(f64::NEG_INFINITY));
        let Ok(length @ 1..) = usize::try_from(count) else {
            return Ok(result);
        };
        let ty = Type::new(DType::Real, [length]);
        let array = self.temporary(ty.clone());
        // Where there are fewer elements, the rest changes neither the largest nor the sum.
        self.set(array, Prim::Fill, &[real(f64::NEG_INFINITY)]);
        let at = self.accumulator(int(0));
        self.for_each(clauses, &mut |this| {
            if let Some(element) = this.operand(body)? {
                let args = [Operand::Var(array), element, Operand::Var(at)];
                this.set(array, Prim::SetIndex, &args);
                this.accumulate(Prim::Add, at, int(1));
            }
            Ok(())
        })?;
        let extreme = self.prim(Prim::MaxOf, &[Operand::Var(array)], &Type::real());
        let size = self.prim(Prim::Abs, &[extreme], &Type::real());
        let infinite = self.prim(Prim::Eq, &[size, real(f64::INFINITY)], &Type::bool());
        let finite = self.prim(Prim::Select, &[infinite, real(0.0), extreme], &Type::real());
        let largest = self.prim(Prim::StopGradient, &[finite], &Type::real());
        let below = self.prim(Prim::Sub, &[Operand::Var(array), largest], &ty);
        let scaled = self.prim(Prim::Exp, &[below], &ty);
        let total = self.prim(Prim::Sum, &[scaled], &Type::real());
        let log = self.prim(Prim::Log, &[total], &Type::real());
        self.set(result, Prim::Add, &[largest, log]);
        Ok(result)
    }

    /// One pass for lengths that depend on the lane: the sum of `exp(x - largest)` is scaled when the largest changes.
    fn log_sum_exp_streaming(&mut self, clauses: &'a [Clause], body: &'a Expr) -> Lowered<VarId> {
        let largest = self.accumulator(real(f64::NEG_INFINITY));
        let total = self.accumulator(real(0.0));
        self.for_each(clauses, &mut |this| {
            if let Some(element) = this.operand(body)? {
                this.log_sum_exp_step(largest, total, element);
            }
            Ok(())
        })?;
        let log = self.prim(Prim::Log, &[Operand::Var(total)], &Type::real());
        self.accumulate(Prim::Add, largest, log);
        Ok(largest)
    }

    fn log_sum_exp_step(&mut self, largest: VarId, total: VarId, element: Operand) {
        let real_type = Type::real();
        let top = Operand::Var(largest);
        let join = self.new_block();
        let (equal, differs) = (self.new_block(), self.new_block());
        let (above, below) = (self.new_block(), self.new_block());
        // Equal infinities are apart because their difference is not a number.
        let equals = self.prim(Prim::Eq, &[element, top], &Type::bool());
        let size = self.prim(Prim::Abs, &[element], &real_type);
        let infinite = self.prim(Prim::Eq, &[size, real(f64::INFINITY)], &Type::bool());
        let same = self.prim(Prim::And, &[equals, infinite], &Type::bool());
        self.terminate(Terminator::Branch(same, equal, differs));
        self.start(equal);
        self.accumulate(Prim::Add, total, real(1.0));
        self.terminate(Terminator::Jump(join));
        self.start(differs);
        let more = self.prim(Prim::Gt, &[element, top], &Type::bool());
        self.terminate(Terminator::Branch(more, above, below));
        self.start(above);
        let drop = self.prim(Prim::Sub, &[top, element], &real_type);
        let scale = self.prim(Prim::Exp, &[drop], &real_type);
        self.accumulate(Prim::Mul, total, scale);
        self.accumulate(Prim::Add, total, real(1.0));
        self.set(largest, Prim::Copy, &[element]);
        self.terminate(Terminator::Jump(join));
        self.start(below);
        let drop = self.prim(Prim::Sub, &[element, top], &real_type);
        let term = self.prim(Prim::Exp, &[drop], &real_type);
        self.accumulate(Prim::Add, total, term);
        self.terminate(Terminator::Jump(join));
        self.start(join);
    }
}
