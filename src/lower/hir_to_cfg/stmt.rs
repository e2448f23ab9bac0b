//! Statements: bindings, assignments to places, and records for streams.

use super::func::{Lowered, Lowering};
use super::value::Value;
use super::walk;
use crate::cfg::{InstKind, Operand, VarId};
use crate::hir::{Expr, Pattern, Place, Projection, Stmt, StmtKind};
use crate::prim::Prim;
use crate::types::Type;

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
            columns.extend(self.layout(&value.ty)?.leaves(name));
            let Some(operands) = self.expr(value)?.leaves() else {
                return Ok(false);
            };
            let assigned_later = fields[i + 1..].iter().any(|(_, v)| walk::assigns(v));
            args.extend(operands.into_iter().map(|o| if assigned_later { self.keep(o) } else { o }));
        }
        let stream = self.spec.stream(stream, columns, self.span())?;
        let args = args.into_iter().collect();
        self.push(InstKind::Emit { stream, args });
        Ok(true)
    }

    fn assign(&mut self, place: &'a Place, op: Option<Prim>, value: &'a Expr) -> Lowered<bool> {
        let mut target = self.env.get(&place.local).cloned().unwrap_or(Value::Never);
        let mut steps = Vec::new();
        for projection in &place.path {
            match projection {
                Projection::Field(position) => {
                    target = match target {
                        Value::Fields(mut fields) if *position < fields.len() => fields.swap_remove(*position),
                        _ => Value::Never,
                    };
                }
                Projection::Index(indices) => match self.operands(indices)? {
                    Some(indices) => steps.push(Step::Index(indices)),
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
        let part = part.unwrap_or_else(|| self.type_of(value));
        self.store(*array, &merge(steps), op, value, &part);
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

    /// Changes the part of an array at some steps, in place. `part` is the type of the part.
    fn store(&mut self, array: VarId, steps: &[Step], op: Option<Prim>, v: Operand, part: &Type) {
        let whole = Operand::Var(array);
        match steps {
            [] => match op {
                Some(op) => {
                    let new = self.prim(op, &[whole, v], part);
                    self.copy(array, new);
                }
                None => self.copy(array, v),
            },
            [Step::Index(indices)] => {
                let at = |first: &[Operand]| [first, &indices[..]].concat();
                let mut v = v;
                if let Some(op) = op {
                    let old = self.prim(Prim::Index, &at(&[whole]), part);
                    v = self.prim(op, &[old, v], part);
                }
                self.set(array, Prim::SetIndex, &at(&[whole, v]));
            }
            [Step::Slice(start)] => {
                let mut v = v;
                if let Some(op) = op {
                    let old = self.prim(Prim::Slice, &[whole, *start], part);
                    v = self.prim(op, &[old, v], part);
                }
                self.set(array, Prim::SetSlice, &[whole, v, *start]);
            }
            [Step::Index(indices), rest @ ..] => {
                let ty = self.type_of(whole);
                let shape = ty.shape[indices.len().min(ty.shape.len())..].iter().copied();
                let row_type = Type::new(ty.dtype, shape);
                let row = self.temporary(row_type);
                self.set(row, Prim::Index, &[&[whole], &indices[..]].concat());
                self.store(row, rest, op, v, part);
                let args = [&[whole, Operand::Var(row)], &indices[..]].concat();
                self.set(array, Prim::SetIndex, &args);
            }
            [Step::Slice(start), Step::Index(indices), rest @ ..] => {
                // An entry of a slice is an entry of the array: HIR puts nothing after a slice that could tell them apart.
                let mut indices = indices.clone();
                if let Some(first) = indices.first_mut() {
                    *first = self.prim(Prim::Add, &[*start, *first], &Type::int());
                }
                let index = [Step::Index(indices)];
                let steps: Vec<&Step> = index.iter().chain(rest).collect();
                debug_assert!(steps.len() == 1, "after an index there are only indices");
                self.store(array, &index, op, v, part);
            }
            [Step::Slice(_), rest @ ..] => self.store(array, rest, op, v, part),
        }
    }
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
