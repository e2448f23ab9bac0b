//! Comprehensions and reductions over them as functions. One with bounds that are known becomes a call of a function of its
//! own, which is the loop (`reduction`); beside it one element is made a function, of which `transform::vectorize` makes
//! whole-array code, where it can, to take the place of the loop. Both capture what closures do.

use indexmap::IndexSet;

use super::call::{self, result_layout};
use super::func::{Lowered, Lowering};
use super::instance::{ElementOf, Instance, Made, Specialiser};
use super::value::Value;
use super::walk;
use crate::base::{IdVec, Loc};
use crate::cfg::{Func, FuncId};
use crate::hir::{Clause, Expr, ExprKind, LocalId, Reduction};
use crate::transform::vectorize::{Reduce, Request};
use crate::types::Scalar;

impl<'a> Lowering<'_, 'a> {
    /// `[body for …]`, `sum(body for …)` and the like.
    pub(super) fn comprehension(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let (clauses, body, op) = match &expr.kind {
            ExprKind::Comprehension { clauses, body } => (clauses, body, None),
            ExprKind::Reduction { op, clauses, body } => (clauses, body, Some(*op)),
            _ => unreachable!("only comprehensions are lowered here"),
        };
        let is_own_loop = self.looped.take_if(|looped| std::ptr::eq(*looped, expr)).is_some();
        let bounds = clauses.iter().map(|c| self.constant_bounds(c)).collect::<Option<Vec<_>>>();
        match bounds {
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

    /// The bounds of a clause, if they are known when the program is specialised.
    pub(super) fn constant_bounds(&self, clause: &'a Clause) -> Option<(i64, i64)> {
        match (self.constant(&clause.start)?, self.constant(&clause.end)?) {
            (Scalar::Int(start), Scalar::Int(end)) => Some((start, end)),
            _ => None,
        }
    }
}

/// The comprehensions that whole-array code may take the place of.
pub(super) fn requests(spec: &Specialiser<'_>, funcs: &IdVec<FuncId, Func>) -> Vec<Request> {
    let mut found = Vec::new();
    for element in funcs.ids() {
        let Some((Made::Element(made), span)) = spec.made(element) else { continue };
        let target = spec.instance_func(&made.instance).expect("the loop was asked for before its element");
        let (line, _) = spec.sources.line_column(span);
        found.push(Request {
            target,
            element,
            bounds: made.bounds.clone(),
            reduce: call::reduction_of(spec, &made.instance).map(reduce),
            loc: Loc::new(funcs[target].loc.function.as_ref(), line),
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
