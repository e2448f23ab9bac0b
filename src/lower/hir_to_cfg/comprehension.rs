//! Comprehensions and reductions over them as functions. One with bounds that are known becomes a call of a function of its
//! own, which is the loop (`reduction`); beside it one element is made a function, of which `transform::vectorize` makes
//! whole-array code, where it can, to take the place of the loop. Both capture what closures do.

use indexmap::IndexSet;

use super::call::{self, result_layout};
use super::expr::zero;
use super::func::{Lowered, Lowering};
use super::instance::{ElementOf, Instance, Made, Specialiser};
use super::ragged::neutral;
use super::reduction::BLOCK;
use super::value::Value;
use super::walk;
use crate::base::IdVec;
use crate::cfg::{Func, FuncId, Operand, Terminator};
use crate::hir::{Clause, Expr, ExprKind, LocalId, Reduction};
use crate::prim::{self, Prim};
use crate::transform::vectorize::{ComprehensionRequest, Reduce};
use crate::types::{Scalar, Type};

impl<'a> Lowering<'_, 'a> {
    /// `[body for …]`, `sum(body for …)` and the like.
    pub(super) fn comprehension(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let (clauses, body, op) = match &expr.kind {
            ExprKind::Comprehension { clauses, body } => (clauses, body, None),
            ExprKind::Reduction { op, clauses, body } => (clauses, body, Some(*op)),
            _ => unreachable!("only comprehensions are lowered here"),
        };
        let is_own_loop = self.looped.take_if(|looped| std::ptr::eq(*looped, expr)).is_some();
        match self.ranges(op, clauses) {
            Some(bounds) if !is_own_loop => self.comprehension_call(expr, clauses, bounds),
            _ => match op {
                None => self.comprehension_loop(clauses, body, &expr.ty),
                Some(op) => self.reduction_loop(op, clauses, body),
            },
        }
    }

    fn comprehension_call(&mut self, expr: &'a Expr, clauses: &'a [Clause], bounds: Vec<(i64, i64)>) -> Lowered<Value> {
        let mut used: IndexSet<LocalId> = IndexSet::new();
        walk::locals(expr, &mut used);
        // An index may still be bound from an earlier turn of the lowering.
        used.retain(|local| clauses.iter().all(|c| c.var != *local));
        let Some(function) = self.capture(expr, &used)? else {
            return Ok(Value::Never);
        };
        let instance = Instance { closure: function.closure, params: Vec::new() };
        let func = self.spec.request(instance.clone(), expr.span)?;
        self.spec.request_element(ElementOf { instance, bounds }, expr.span)?;
        self.called(func);
        let result = result_layout(self.spec, function.closure, self.span())?;
        let (dsts, value) = self.temporaries(&result);
        self.call_block(func, function.operands().collect(), dsts);
        Ok(value)
    }

    /// The values that each index may take, if these are known when the program is specialised: of one that goes up to the
    /// length of a bounded dimension, those up to its bound.
    fn ranges(&self, op: Option<Reduction>, clauses: &'a [Clause]) -> Option<Vec<(i64, i64)>> {
        let ranges: Vec<(i64, i64)> = clauses.iter().map(|c| self.range(c)).collect::<Option<_>>()?;
        let is_limited = |c: &'a Clause| self.constant_bounds(c).is_none();
        let elements = ranges.iter().try_fold(1_i64, |n, (start, end)| n.checked_mul(end.checked_sub(*start)?.max(0)));
        let whole = match op {
            _ if !clauses.iter().any(is_limited) => true,
            None | Some(Reduction::Any | Reduction::All | Reduction::Prod) => true,
            // Padding between elements would shift the blocks of the sum.
            Some(Reduction::Sum | Reduction::LogSumExp) => {
                !clauses[1..].iter().any(is_limited) || elements.is_some_and(|n| n <= BLOCK)
            }
            // The number of elements matters: none of them traps, or divides.
            Some(Reduction::Min | Reduction::Max | Reduction::Mean) => false,
        };
        whole.then_some(ranges)
    }
    fn range(&self, clause: &'a Clause) -> Option<(i64, i64)> {
        if let Some(bounds) = self.constant_bounds(clause) {
            return Some(bounds);
        }
        let (Scalar::Int(start), ExprKind::Dim(end)) = (self.constant(&clause.start)?, &clause.end.kind) else {
            return None;
        };
        let (end, bounded) = self.dims.extent(end).ok()?;
        bounded.map(|_| (start, end))
    }

    /// The element of a comprehension as the end of a function: for indices beyond the length of a bounded dimension, what
    /// changes no reduction.
    pub(super) fn element(&mut self, op: Option<Reduction>, clauses: &'a [Clause], body: &'a Expr) -> Lowered<()> {
        let mut inside = None;
        for clause in clauses {
            self.note_range(clause.var, &clause.start, &clause.end);
            if self.constant_bounds(clause).is_some() {
                continue;
            }
            let (Some(Value::Leaf(index)), Some(end)) =
                (self.env.get(&clause.var).cloned(), self.operand(&clause.end)?)
            else {
                continue;
            };
            let below = self.prim(Prim::Lt, &[index, end], &Type::bool());
            inside = Some(match inside {
                None => below,
                Some(before) => self.prim(Prim::And, &[before, below], &Type::bool()),
            });
        }
        let (Some(inside), Some(ty)) = (inside, self.leaf_type(&body.ty)?) else {
            return self.tail(body);
        };
        let result = self.temporary(ty.clone());
        let (yes, no, join) = (self.new_block(), self.new_block(), self.new_block());
        self.terminate(Terminator::Branch(inside, yes, no));
        self.start(yes);
        if let Some(value) = self.operand(body)? {
            self.copy(result, value);
        }
        self.terminate(Terminator::Jump(join));
        self.start(no);
        let neutral = Operand::Const(match op {
            None => zero(ty.dtype),
            Some(Reduction::LogSumExp) => Scalar::Real(f64::NEG_INFINITY),
            Some(Reduction::Prod) => neutral(prim::Reduction::Prod, ty.dtype),
            Some(Reduction::Any) => neutral(prim::Reduction::Any, ty.dtype),
            Some(Reduction::All) => neutral(prim::Reduction::All, ty.dtype),
            Some(Reduction::Sum | Reduction::Mean) => neutral(prim::Reduction::Sum, ty.dtype),
            Some(Reduction::Min) => neutral(prim::Reduction::MinOf, ty.dtype),
            Some(Reduction::Max) => neutral(prim::Reduction::MaxOf, ty.dtype),
        });
        let prim = if ty.is_scalar() { Prim::Copy } else { Prim::Fill };
        self.set(result, prim, &[neutral]);
        self.terminate(Terminator::Jump(join));
        self.start(join);
        self.return_value(&Value::Leaf(Operand::Var(result)));
        Ok(())
    }

    /// The bounds of a clause, if they are known when the program is specialised.
    pub(super) fn constant_bounds(&self, clause: &'a Clause) -> Option<(i64, i64)> {
        match (self.constant(&clause.start)?, self.constant(&clause.end)?) {
            (Scalar::Int(start), Scalar::Int(end)) => Some((start, end)),
            _ => None,
        }
    }
}

/// The comprehensions that whole-array code may take the place of.
pub(super) fn requests(spec: &Specialiser<'_>, funcs: &IdVec<FuncId, Func>) -> Vec<ComprehensionRequest> {
    let mut found = Vec::new();
    for element in funcs.ids() {
        let Some((Made::Element(made), span)) = spec.made(element) else { continue };
        let target = spec.instance_func(&made.instance).expect("the loop was asked for before its element");
        found.push(ComprehensionRequest {
            target,
            element,
            bounds: made.bounds.clone(),
            reduce: call::reduction_of(spec, &made.instance).map(reduce),
            loc: spec.sources.loc(funcs[target].loc.function.as_ref(), span),
        });
    }
    found
}

fn reduce(op: Reduction) -> Reduce {
    match op {
        Reduction::Sum => Reduce::Sum,
        Reduction::Prod => Reduce::Prod,
        Reduction::Min => Reduce::Min,
        Reduction::Max => Reduce::Max,
        Reduction::Any => Reduce::Any,
        Reduction::All => Reduce::All,
        Reduction::Mean => Reduce::Mean,
        Reduction::LogSumExp => Reduce::LogSumExp,
    }
}
