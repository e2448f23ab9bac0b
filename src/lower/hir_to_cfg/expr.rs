//! Expressions that need no control flow of their own.

use std::sync::Arc;

use super::func::{Lowered, Lowering};
use super::ragged::Axes;
use super::value::{Layout, Value, join};
use super::walk;
use crate::base::{ArrayName, work};
use crate::cfg::{InstKind, Message, Operand, SideEffect, Terminator, VarId};
use crate::hir::{self, Expr, ExprKind, LocalId, Ty};
use crate::prim::Prim;
use crate::types::{Scalar, Type};

impl<'a> Lowering<'_, 'a> {
    /// The value of an expression.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Lowered<Value> {
        work::add(1);
        let before = self.enter(expr.span);
        let value = self.expr_kind(expr);
        self.enter(before);
        value
    }

    fn expr_kind(&mut self, expr: &'a Expr) -> Lowered<Value> {
        match &expr.kind {
            ExprKind::Literal(scalar) => Ok(Value::Leaf(Operand::Const(*scalar))),
            ExprKind::Dim(dim) => self.dim(dim),
            ExprKind::Local(local) | ExprKind::FunctionLocal(local) => {
                Ok(self.env.get(local).cloned().unwrap_or(Value::Never))
            }
            ExprKind::Tuple(parts) | ExprKind::Struct(_, parts) => {
                Ok(self.values(parts)?.map_or(Value::Never, Value::Fields))
            }
            ExprKind::Field(inner, position) => Ok(match self.expr(inner)? {
                Value::Fields(mut fields) if *position < fields.len() => fields.swap_remove(*position),
                _ => Value::Never,
            }),
            ExprKind::Prim(prim, args) => self.prim_expr(*prim, args, &expr.ty),
            ExprKind::And(a, b) => self.and_or(true, a, b),
            ExprKind::Or(a, b) => self.and_or(false, a, b),
            ExprKind::Call(callee, args) => self.call_expr(callee, args),
            ExprKind::If(condition, then, otherwise) => self.if_value(condition, then, otherwise.as_deref(), &expr.ty),
            ExprKind::Block(stmts, tail) => match (self.stmts(stmts)?, tail) {
                (true, Some(tail)) => self.expr(tail),
                (true, None) => Ok(Value::unit()),
                (false, tail) => {
                    // Code that is not reached may still be wrong, so that it is lowered too.
                    tail.as_ref().map(|tail| self.expr(tail)).transpose()?;
                    Ok(Value::Never)
                }
            },
            ExprKind::Comprehension { .. } | ExprKind::Reduction { .. } => self.comprehension(expr),
            ExprKind::Function(id, dims) => self.function_value(*id, dims),
            ExprKind::Lambda { .. } => self.closure_value(expr),
            ExprKind::Derivative(call) => self.derivative(call),
            ExprKind::Attempt(function, args) => self.attempt(function, args),
            ExprKind::StopGradient(value) => self.stop_gradient(value),
            ExprKind::Print(message) => self.print(message),
            ExprKind::Assert(condition, message) => self.assert(condition, message),
            ExprKind::While(condition, body) => self.while_loop(condition, body),
            ExprKind::For(var, start, end, body) => self.for_loop(*var, start, end, body),
            ExprKind::Break => Ok(self.leave(self.loops.last().map(|l| l.exit))),
            ExprKind::Continue => Ok(self.leave(self.loops.last().map(|l| l.next))),
            ExprKind::Return(value) => {
                match value {
                    Some(value) => self.tail(value)?,
                    None => self.return_value(&Value::unit()),
                }
                self.start_unreachable();
                Ok(Value::Never)
            }
        }
    }

    fn leave(&mut self, target: Option<crate::cfg::BlockId>) -> Value {
        if let Some(target) = target {
            self.terminate(Terminator::Jump(target));
            self.start_unreachable();
        }
        Value::Never
    }

    fn dim(&mut self, dim: &hir::Dim) -> Lowered<Value> {
        if self.dims.varies(dim) {
            return Ok(Value::Leaf(self.varying_dim(dim)));
        }
        match dim.eval(&self.dims.numbers) {
            Some(value) => Ok(Value::Leaf(Operand::Const(Scalar::Int(value)))),
            None => Err(Box::new(crate::base::Diagnostic::error(
                "E0803",
                "an extent is too large for an int",
                self.span(),
                "this does not fit into 64 bits",
            ))),
        }
    }

    /// An extent with bounded dimensions, computed in the lane.
    fn varying_dim(&mut self, dim: &hir::Dim) -> Operand {
        let int = |value| Operand::Const(Scalar::Int(value));
        let mut sum = int(dim.constant);
        for (product, factor) in &dim.terms {
            let mut term = int(*factor);
            for id in product {
                let number = int(self.dims.numbers[*id]);
                let value = self.lengths.get(id).copied().unwrap_or(number);
                term = if term == int(1) { value } else { self.prim(Prim::Mul, &[term, value], &Type::int()) };
            }
            sum = if sum == int(0) { term } else { self.prim(Prim::Add, &[sum, term], &Type::int()) };
        }
        if dim.divisor == 1 { sum } else { self.prim(Prim::IntDiv, &[sum, int(dim.divisor)], &Type::int()) }
    }

    /// The values of operands, evaluated in order and as they were when they were evaluated. `None` when one of them
    /// never ends normally.
    pub(super) fn values(&mut self, exprs: &'a [Expr]) -> Lowered<Option<Vec<Value>>> {
        let mut values = Vec::with_capacity(exprs.len());
        let mut reached = true;
        for (i, expr) in exprs.iter().enumerate() {
            let mut value = self.expr(expr)?;
            reached &= !value.is_never();
            let mutable = value.leaves().is_some_and(|l| l.iter().any(|o| self.is_mutable(*o)));
            if mutable && exprs[i + 1..].iter().any(walk::assigns) {
                value = self.keep_value(&value);
            }
            values.push(value);
        }
        Ok(reached.then_some(values))
    }

    /// The operands of all leaves of some expressions in order.
    pub(super) fn operands(&mut self, exprs: &'a [Expr]) -> Lowered<Option<Vec<Operand>>> {
        let values = self.values(exprs)?;
        Ok(values.and_then(|values| Value::Fields(values).leaves()))
    }

    /// The operand of a scalar or an array. `None` when it never ends normally.
    pub(super) fn operand(&mut self, expr: &'a Expr) -> Lowered<Option<Operand>> {
        Ok(match self.expr(expr)? {
            Value::Leaf(operand) => Some(operand),
            _ => None,
        })
    }

    /// The concrete type of a scalar or an array.
    pub(super) fn leaf_type(&self, ty: &Ty) -> Lowered<Option<Type>> {
        Ok(match self.layout(ty)? {
            Layout::Leaf(ty) => Some(ty),
            _ => None,
        })
    }

    fn prim_expr(&mut self, prim: Prim, args: &'a [Expr], wanted: &'a Ty) -> Lowered<Value> {
        let operands = match (prim, args) {
            (Prim::Index, [array, indices @ ..]) => self.index_operands(array, indices)?,
            _ => self.operands(args)?,
        };
        let (Some(mut operands), Some(ty)) = (operands, self.leaf_type(wanted)?) else {
            return Ok(Value::Never);
        };
        if let (Prim::Index, [array, indices @ ..]) = (prim, args) {
            let (array, indices) = indexed(array, indices);
            let axes = self.axes(&array.ty);
            if !axes.is_empty() {
                let shape = self.type_of(operands[0]).shape;
                self.check_indices(&mut operands[1..], &indices, &axes, &shape);
            }
            self.array = self.array_name(array);
            return Ok(Value::Leaf(self.prim(prim, &operands, &ty)));
        }
        if let (Prim::Slice, [array, _]) = (prim, args) {
            self.array = self.array_name(array);
        }
        let axes: Vec<Axes> = args.iter().map(|a| self.axes(&a.ty)).collect();
        let result = self.axes(wanted);
        Ok(Value::Leaf(match axes.iter().chain([&result]).all(Vec::is_empty) {
            true => self.prim(prim, &operands, &ty),
            false => self.ragged_prim(prim, &operands, &axes, &result, &ty)?,
        }))
    }

    /// What messages call an array: the name that it has in the source, if it has one.
    fn array_name(&self, array: &Expr) -> Option<Arc<ArrayName>> {
        let name = self.source_name(array)?;
        Some(Arc::new(ArrayName { name, bounded: !self.axes(&array.ty).is_empty() }))
    }
    fn source_name(&self, expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Local(local) => self.local_name(*local),
            ExprKind::Field(base, position) => {
                Some(join(&self.source_name(base)?, &field_name(self.spec.program, &base.ty, *position)?))
            }
            ExprKind::Prim(Prim::Index, args) => self.source_name(args.first()?),
            _ => None,
        }
    }
    /// The name of a local of the source.
    pub(super) fn local_name(&self, local: LocalId) -> Option<String> {
        let name = &self.home.locals[local].name;
        (!name.is_empty() && !name.starts_with('%')).then(|| name.clone())
    }

    /// `x[i][j]` is `x[i, j]`: the row is not made.
    fn index_operands(&mut self, array: &'a Expr, indices: &'a [Expr]) -> Lowered<Option<Vec<Operand>>> {
        let mut all: Vec<&'a [Expr]> = vec![indices];
        let mut array = array;
        while let ExprKind::Prim(Prim::Index, args) = &array.kind {
            let [inner, outer @ ..] = &args[..] else {
                break;
            };
            all.push(outer);
            array = inner;
        }
        let Some(mut array) = self.operand(array)? else {
            return Ok(None);
        };
        if all.iter().any(|i| i.iter().any(walk::assigns)) {
            array = self.keep(array);
        }
        let mut operands = vec![array];
        for (n, indices) in all.iter().enumerate().rev() {
            let Some(mut found) = self.operands(indices)? else {
                return Ok(None);
            };
            if all[..n].iter().any(|i| i.iter().any(walk::assigns)) {
                found.iter_mut().for_each(|o| *o = self.keep(*o));
            }
            operands.extend(found);
        }
        Ok(Some(operands))
    }

    /// Evaluates an expression into variables, one for each leaf. Arms of an `if` set them directly.
    pub(super) fn expr_to(&mut self, dsts: &[VarId], expr: &'a Expr) -> Lowered<()> {
        let before = self.enter(expr.span);
        match &expr.kind {
            ExprKind::If(condition, then, Some(otherwise)) => {
                self.if_arms(condition, then, Some(otherwise), &mut |this, arm| {
                    match arm {
                        Some(arm) => this.expr_to(dsts, arm)?,
                        None => this.copy_all(dsts, &[]),
                    }
                    Ok(true)
                })?;
            }
            ExprKind::Block(stmts, Some(tail)) => {
                self.stmts(stmts)?;
                self.expr_to(dsts, tail)?;
            }
            _ => {
                if let Some(leaves) = self.expr(expr)?.leaves() {
                    self.copy_all(dsts, &leaves);
                }
            }
        }
        self.enter(before);
        Ok(())
    }

    /// Evaluates the result of the function and returns it; the current block is ended. Arms of an `if` return by
    /// themselves, so that a call in one is the last thing that the function does.
    pub(super) fn tail(&mut self, expr: &'a Expr) -> Lowered<()> {
        let before = self.enter(expr.span);
        match &expr.kind {
            ExprKind::If(condition, then, Some(otherwise)) => {
                self.if_arms(condition, then, Some(otherwise), &mut |this, arm| {
                    match arm {
                        Some(arm) => this.tail(arm)?,
                        None => this.return_value(&Value::unit()),
                    }
                    Ok(false)
                })?;
                self.return_value(&Value::Never);
            }
            ExprKind::Block(stmts, tail) => {
                self.stmts(stmts)?;
                match tail {
                    Some(tail) => self.tail(tail)?,
                    None => self.return_value(&Value::unit()),
                }
            }
            _ => {
                let value = self.expr(expr)?;
                self.return_value(&value);
            }
        }
        self.enter(before);
        Ok(())
    }

    /// Ends the current block with a return.
    pub(super) fn return_value(&mut self, value: &Value) {
        let leaves = value.leaves().filter(|l| l.len() == self.results.len());
        let operands = leaves.unwrap_or_else(|| self.zeros());
        self.terminate(Terminator::Return(operands));
    }

    /// Results for the end of a function that is never reached.
    fn zeros(&mut self) -> Vec<Operand> {
        let results = self.results.clone();
        results
            .iter()
            .map(|ty| match ty.is_scalar() {
                true => Operand::Const(zero(ty.dtype)),
                false => {
                    let var = self.temporary(ty.clone());
                    self.set(var, Prim::Fill, &[Operand::Const(zero(ty.dtype))]);
                    Operand::Var(var)
                }
            })
            .collect()
    }

    fn message(&mut self, message: &'a hir::Message) -> Lowered<Option<Message>> {
        for arg in &message.args {
            self.refuse_bounded(&arg.ty, "a message cannot show this array", "print its elements in a loop")?;
        }
        let operands = self.operands(&message.args)?;
        Ok(operands
            .map(|operands| Message { texts: message.texts.clone().into(), args: operands.into_iter().collect() }))
    }

    fn print(&mut self, message: &'a hir::Message) -> Lowered<Value> {
        Ok(match self.message(message)? {
            Some(message) => {
                self.push(InstKind::Effect(SideEffect::Print(message)));
                Value::unit()
            }
            None => Value::Never,
        })
    }

    /// Values in the message are evaluated where the assertion fails, so that they do nothing where it holds.
    fn assert(&mut self, condition: &'a Expr, message: &'a hir::Message) -> Lowered<Value> {
        let Some(cond) = self.operand(condition)? else {
            return Ok(Value::Never);
        };
        if message.args.iter().all(is_at_hand) {
            if let Some(message) = self.message(message)? {
                self.push(InstKind::Effect(SideEffect::Assert { cond, message }));
            }
            return Ok(Value::unit());
        }
        let (failed, holds) = (self.new_block(), self.new_block());
        self.terminate(Terminator::Branch(cond, holds, failed));
        self.start(failed);
        if let Some(message) = self.message(message)? {
            let cond = Operand::Const(Scalar::Bool(false));
            self.push(InstKind::Effect(SideEffect::Assert { cond, message }));
        }
        self.terminate(Terminator::Jump(holds));
        self.start(holds);
        Ok(Value::unit())
    }
}

/// The array of `x[i][j]` and all of its indices in order.
fn indexed<'e>(array: &'e Expr, indices: &'e [Expr]) -> (&'e Expr, Vec<&'e Expr>) {
    let (root, mut all) = match &array.kind {
        ExprKind::Prim(Prim::Index, args) if !args.is_empty() => indexed(&args[0], &args[1..]),
        _ => (array, Vec::new()),
    };
    all.extend(indices);
    (root, all)
}

/// Whether a value needs no instructions.
fn is_at_hand(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Dim(_) | ExprKind::Local(_) => true,
        ExprKind::Field(inner, _) => is_at_hand(inner),
        _ => false,
    }
}

/// The zero of an element type.
pub(super) fn zero(dtype: crate::types::DType) -> Scalar {
    match dtype {
        crate::types::DType::Bool => Scalar::Bool(false),
        crate::types::DType::Int => Scalar::Int(0),
        crate::types::DType::Real => Scalar::Real(0.0),
    }
}

/// The name of a field of a struct, the number of a part of a tuple.
pub(super) fn field_name(program: &hir::Program, ty: &Ty, position: usize) -> Option<String> {
    match ty {
        Ty::Struct(id, _) => program.structs[*id].fields.get(position).map(|(name, _)| name.to_string()),
        _ => Some(position.to_string()),
    }
}
