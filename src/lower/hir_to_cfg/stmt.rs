//! Statements: bindings, assignments to places, and records for streams.

use std::sync::Arc;

use super::expr::field_name;
use super::func::{Lowered, Lowering};
use super::ragged::Axes;
use super::value::{Value, join};
use super::walk;
use crate::base::{ArrayName, Diagnostic};
use crate::cfg::{InstKind, Operand, SideEffect, VarId};
use crate::hir::{Expr, Pattern, Place, Program, Projection, Stmt, StmtKind, Ty};
use crate::prim::Prim;
use crate::types::{Scalar, Type};

/// A step into an array, its indices evaluated.
enum Step {
    /// Ints for the leading axes.
    Index(Vec<Operand>),
    /// The first entry.
    Slice(Operand),
}

impl<'a> Lowering<'_, 'a> {
    /// Runs statements. Whether the end of the last one can be reached.
    pub(super) fn stmts(&mut self, stmts: &'a [Stmt]) -> Lowered<bool> {
        let mut reached = true;
        for stmt in stmts {
            let before = self.enter(stmt.span);
            reached &= self.stmt(&stmt.kind)?;
            self.enter(before);
        }
        Ok(reached)
    }

    fn stmt(&mut self, stmt: &'a StmtKind) -> Lowered<bool> {
        match stmt {
            StmtKind::Let(pattern, value) => {
                let value = self.expr(value)?;
                self.bind_pattern(pattern, &value)?;
                Ok(!value.is_never())
            }
            StmtKind::Assign { place, op, value } => self.assign(place, *op, value),
            StmtKind::Expr(value) => Ok(!self.expr(value)?.is_never()),
            StmtKind::Emit { stream, fields } => self.emit(stream, fields),
        }
    }

    fn bind_pattern(&mut self, pattern: &Pattern, value: &Value) -> Lowered<()> {
        match pattern {
            Pattern::Wildcard => Ok(()),
            Pattern::Local(local) => self.bind(*local, value),
            Pattern::Fields(parts) => parts.iter().try_for_each(|(position, part)| {
                let field = match value {
                    Value::Fields(fields) => fields.get(*position).unwrap_or(&Value::Never),
                    _ => &Value::Never,
                };
                self.bind_pattern(part, field)
            }),
        }
    }

    fn emit(&mut self, stream: &str, fields: &'a [(String, Expr)]) -> Lowered<bool> {
        let mut columns = Vec::new();
        let mut args = Vec::new();
        for (i, (name, value)) in fields.iter().enumerate() {
            let help =
                "records of a stream have one shape: emit its elements one by one, or what is computed from them";
            self.refuse_bounded(&value.ty, "a record cannot hold this array", help)?;
            columns.extend(self.layout(&value.ty)?.leaves(name));
            let Some(operands) = self.expr(value)?.leaves() else {
                return Ok(false);
            };
            let assigned_later = fields[i + 1..].iter().any(|(_, v)| walk::assigns(v));
            args.extend(operands.into_iter().map(|o| if assigned_later { self.keep(o) } else { o }));
        }
        let stream = self.spec.stream(stream, columns, self.span())?;
        let args = args.into_iter().collect();
        self.push(InstKind::Effect(SideEffect::Emit { stream, args }));
        Ok(true)
    }

    fn assign(&mut self, place: &'a Place, op: Option<Prim>, value: &'a Expr) -> Lowered<bool> {
        let mut target = self.env.get(&place.local).cloned().unwrap_or(Value::Never);
        let mut steps = Vec::new();
        let mut exprs: Vec<&'a Expr> = Vec::new();
        let mut root = self.home.locals[place.local].ty.clone();
        let mut name = self.local_name(place.local);
        for projection in &place.path {
            match projection {
                Projection::Field(position) => {
                    name = name.and_then(|name| Some(join(&name, &field_name(self.spec.program, &root, *position)?)));
                    root = field_type(self.spec.program, &root, *position);
                    target = match target {
                        Value::Fields(mut fields) if *position < fields.len() => fields.swap_remove(*position),
                        _ => Value::Never,
                    };
                }
                Projection::Index(indices) => match self.operands(indices)? {
                    Some(operands) => {
                        if !steps.iter().any(|s| matches!(s, Step::Slice(_))) {
                            exprs.extend(indices);
                        }
                        steps.push(Step::Index(operands));
                    }
                    None => target = Value::Never,
                },
                Projection::Slice(start) => match self.operand(start)? {
                    Some(start) => steps.push(Step::Slice(start)),
                    None => target = Value::Never,
                },
            }
        }
        if walk::assigns(value) {
            self.keep_indices(&mut steps);
        }
        let leaves = target.leaves();
        let Some(dsts) = leaves.map(|l| l.iter().filter_map(|o| o.var()).collect::<Vec<_>>()) else {
            self.expr(value)?;
            return Ok(false);
        };
        if steps.is_empty() && op.is_none() {
            self.expr_to(&dsts, value)?;
            return Ok(true);
        }
        let (Some(value), [array]) = (self.operand(value)?, &dsts[..]) else {
            return Ok(false);
        };
        let part = self.leaf_type(&place.ty)?;
        let part = Part { ty: part.unwrap_or_else(|| self.type_of(value)), axes: self.axes(&place.ty) };
        let mut steps = merge(steps);
        let axes = self.axes(&root);
        if let (Some(Step::Index(indices)), false) = (steps.first_mut(), axes.is_empty()) {
            let shape = self.type_of(Operand::Var(*array)).shape;
            self.check_indices(indices, &exprs, &axes, &shape);
        }
        self.array = name.map(|name| Arc::new(ArrayName { name, bounded: !axes.is_empty() }));
        self.store(*array, &axes, &steps, op, value, &part)?;
        self.array = None;
        Ok(true)
    }

    fn keep_indices(&mut self, steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Index(indices) => indices.iter_mut().for_each(|i| *i = self.keep(*i)),
                Step::Slice(start) => *start = self.keep(*start),
            }
        }
    }

    /// `part op v`, or `v` without an op.
    fn combined(
        &mut self,
        op: Option<Prim>,
        old: impl FnOnce(&mut Self) -> Operand,
        v: Operand,
        part: &Part,
    ) -> Operand {
        let Some(op) = op else {
            return v;
        };
        let old = old(self);
        match part.axes.is_empty() {
            true => self.prim(op, &[old, v], &part.ty),
            false => self.ragged_elementwise(op, &[old, v], &part.axes, &part.ty),
        }
    }

    /// Changes the part of an array at some steps, in place. `axes` are the lengths of the array's axes; the indices of the first
    /// step are within them.
    fn store(
        &mut self,
        array: VarId,
        axes: &[Option<Operand>],
        steps: &[Step],
        op: Option<Prim>,
        v: Operand,
        part: &Part,
    ) -> Lowered<()> {
        let whole = Operand::Var(array);
        match steps {
            [] => {
                let new = self.combined(op, |_| whole, v, part);
                self.copy(array, new);
            }
            [Step::Index(indices)] => {
                let at = |first: &[Operand]| [first, &indices[..]].concat();
                let v = self.combined(op, |this| this.prim(Prim::Index, &at(&[whole]), &part.ty), v, part);
                self.set(array, Prim::SetIndex, &at(&[whole, v]));
            }
            [Step::Slice(start)] => return self.store_slice(array, axes, *start, op, v, part),
            [Step::Index(indices), rest @ ..] => {
                let ty = self.type_of(whole);
                let shape = ty.shape[indices.len().min(ty.shape.len())..].iter().copied();
                let row_type = Type::new(ty.dtype, shape);
                let row = self.temporary(row_type);
                self.set(row, Prim::Index, &[&[whole], &indices[..]].concat());
                let inner = axes.get(indices.len()..).unwrap_or_default();
                self.store(row, inner, rest, op, v, part)?;
                let args = [&[whole, Operand::Var(row)], &indices[..]].concat();
                self.set(array, Prim::SetIndex, &args);
            }
            [Step::Slice(start), Step::Index(indices), rest @ ..] => {
                // An entry of a slice is an entry of the array: HIR puts nothing after a slice that could tell them apart.
                let mut indices = indices.clone();
                if let Some(first) = indices.first_mut() {
                    *first = self.prim(Prim::Add, &[*start, *first], &Type::int());
                }
                let shape = self.type_of(whole).shape;
                self.check_indices(&mut indices, &[], axes, &shape);
                let index = [Step::Index(indices)];
                let steps: Vec<&Step> = index.iter().chain(rest).collect();
                debug_assert!(steps.len() == 1, "after an index there are only indices");
                self.store(array, axes, &index, op, v, part)?;
            }
            [Step::Slice(_), rest @ ..] => return self.store(array, axes, rest, op, v, part),
        }
        Ok(())
    }

    /// Changes the entries of an array from `start` on.
    fn store_slice(
        &mut self,
        array: VarId,
        axes: &[Option<Operand>],
        start: Operand,
        op: Option<Prim>,
        v: Operand,
        part: &Part,
    ) -> Lowered<()> {
        let whole = Operand::Var(array);
        let of = self.type_of(whole);
        let length = axes.first().copied().flatten();
        if let Some(count) = part.axes.first().copied().flatten() {
            let length = length.unwrap_or(Operand::Const(Scalar::Int(of.shape[0] as i64)));
            let whole_array = start == Operand::Const(Scalar::Int(0)) && count == length;
            if let (Some(op), false) = (op, whole_array) {
                let what = format!("`{}=` does not take a slice of bounded length", op.name());
                let error = Diagnostic::error("E0807", what, self.span(), "its length differs from lane to lane");
                return Err(Box::new(error.with_help("change the elements in a loop")));
            }
            let v = self.combined(op, |_| whole, v, part);
            return self.set_ragged_slice(array, v, start, count, length);
        }
        let start = match length {
            Some(length) => self.check_slice(start, part.ty.shape[0], length, of.shape[0]),
            None => start,
        };
        let v = self.combined(op, |this| this.prim(Prim::Slice, &[whole, start], &part.ty), v, part);
        self.set(array, Prim::SetSlice, &[whole, v, start]);
        Ok(())
    }
}

/// What is assigned to a place.
struct Part {
    ty: Type,
    /// The lengths of its axes.
    axes: Axes,
}

/// The type of a field of a struct or tuple.
fn field_type(program: &Program, ty: &Ty, position: usize) -> Ty {
    let field = match ty {
        Ty::Tuple(parts) => parts.get(position).cloned(),
        Ty::Struct(id, dims) => program.structs[*id].fields.get(position).and_then(|(_, ty)| ty.substitute(dims)),
        _ => None,
    };
    field.unwrap_or(Ty::Never)
}

/// `[i][j]` is `[i, j]`.
fn merge(steps: Vec<Step>) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::new();
    for step in steps {
        match (merged.last_mut(), step) {
            (Some(Step::Index(all)), Step::Index(more)) => all.extend(more),
            (_, step) => merged.push(step),
        }
    }
    merged
}
