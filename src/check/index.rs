//! Indexing and slicing.

use crate::base::{Diagnostic, Span};
use crate::hir::{Clause, Dim, Expr, ExprKind, LocalId, Stmt, Ty};
use crate::prim::Prim;
use crate::syntax::ast;
use crate::types::{DType, Scalar};

use super::body::{Body, int_literal, prim};
use super::types::{elements, of_shape};

/// One checked entry of an index list.
pub(super) enum Axis {
    /// One position: an int.
    At(Expr),
    /// `length` entries from `start` on.
    Range { start: Expr, length: Dim },
    /// The whole axis.
    Whole,
}

impl Body<'_, '_> {
    /// `base[indices]`
    pub(super) fn index(&mut self, base: Option<Expr>, indices: &[ast::Index], span: Span) -> Option<Expr> {
        let Some(base) = base else {
            self.index_parts_only(indices);
            return None;
        };
        let axes = self.axes(&base.ty, base.span, indices, span)?;
        if single_column(&axes) {
            let mut stmts = Vec::new();
            let base = self.repeatable(base, &mut stmts);
            let axes = axes
                .into_iter()
                .map(|axis| match axis {
                    Axis::At(i) => Axis::At(self.repeatable(i, &mut stmts)),
                    Axis::Range { start, length } => Axis::Range { start: self.repeatable(start, &mut stmts), length },
                    Axis::Whole => Axis::Whole,
                })
                .collect();
            let value = self.select_axes(base, axes, span)?;
            return Some(match stmts.is_empty() {
                true => value,
                false => Expr { ty: value.ty.clone(), kind: ExprKind::Block(stmts, Some(Box::new(value))), span },
            });
        }
        self.select_axes(base, axes, span)
    }

    fn index_parts_only(&mut self, indices: &[ast::Index]) {
        for index in indices {
            match index {
                ast::Index::At(i) => {
                    self.expr(i);
                }
                ast::Index::Range { start, end, .. } => {
                    for bound in [start, end].into_iter().flatten() {
                        self.expr(bound);
                    }
                }
            }
        }
    }

    /// Checks an index list against the type that is indexed.
    pub(super) fn axes(&mut self, ty: &Ty, base: Span, indices: &[ast::Index], span: Span) -> Option<Vec<Axis>> {
        let extents = match ty {
            Ty::Array(_, extents) => extents.clone(),
            other => {
                let found = self.show(other);
                let error = Diagnostic::error("E0207", format!("{found} cannot be indexed"), base, "not an array");
                let error = match other {
                    Ty::Tuple(_) => error.with_help("a part of a tuple is `t.0`"),
                    Ty::Struct(..) => error.with_help("a field of a struct is `t.name`"),
                    _ => error,
                };
                self.cx.report(error);
                self.index_parts_only(indices);
                return None;
            }
        };
        if indices.len() > extents.len() {
            let found = self.show(ty);
            let error = Diagnostic::error(
                "E0206",
                format!("{} indices for {found}", indices.len()),
                span,
                format!("it has {} axes", extents.len()),
            );
            self.cx.report(error);
            return None;
        }
        let axes: Vec<Option<Axis>> = (indices.iter().zip(&extents))
            .map(|(index, extent)| match index {
                ast::Index::At(i) => {
                    let i = self.int_index(i)?;
                    self.warn_out_of_range(&i, extent);
                    Some(Axis::At(i))
                }
                ast::Index::Range { start, end, span } => self.range(start.as_ref(), end.as_ref(), extent, *span),
            })
            .collect();
        let mut axes: Vec<Axis> = axes.into_iter().collect::<Option<_>>()?;
        while matches!(axes.last(), Some(Axis::Whole)) {
            axes.pop();
        }
        Some(axes)
    }

    fn int_index(&mut self, index: &ast::Expr) -> Option<Expr> {
        let index = self.operand(index)?;
        if index.ty == Ty::Scalar(DType::Int) {
            return Some(index);
        }
        let found = self.show(&index.ty);
        let error = Diagnostic::error(
            "E0205",
            format!("an index is an int, found {found}"),
            index.span,
            format!("this is {found}"),
        );
        let error = match index.ty {
            Ty::Scalar(DType::Real) => error.with_help("`int(x)` truncates it"),
            _ => error,
        };
        self.cx.report(error);
        None
    }

    fn warn_out_of_range(&mut self, index: &Expr, extent: &Dim) {
        let ExprKind::Literal(Scalar::Int(i)) = index.kind else {
            return;
        };
        let beyond = i < 0 || extent.as_constant().is_some_and(|n| i >= n);
        if beyond {
            let extent = extent.display(&self.dims);
            let warning = Diagnostic::warning(
                "W0005",
                format!("the index {i} is always out of range"),
                index.span,
                format!("the extent is {extent}: a lane that comes here traps"),
            );
            self.cx.warn(self.module, warning.with_help("indices count from 0"));
        }
    }

    fn range(&mut self, start: Option<&ast::Expr>, end: Option<&ast::Expr>, extent: &Dim, span: Span) -> Option<Axis> {
        if start.is_none() && end.is_none() {
            return Some(Axis::Whole);
        }
        let start = match start {
            Some(start) => self.int_index(start),
            None => Some(int_literal(0, span)),
        };
        let end = match end {
            Some(end) => self.int_index(end),
            None => Some(Expr { kind: ExprKind::Dim(extent.clone()), ty: Ty::Scalar(DType::Int), span }),
        };
        let (start, end) = (start?, end?);
        let length = self.length(&start, &end);
        match length {
            Some(length) if length.as_constant().is_some_and(|n| n < 0) => {
                let error = Diagnostic::error(
                    "E0221",
                    "a slice cannot have a negative length",
                    span,
                    format!("the length is {}", length.constant),
                );
                self.cx.report(error);
                None
            }
            Some(length) => Some(Axis::Range { start, length }),
            None => {
                let error = Diagnostic::error(
                    "E0213",
                    "the length of a slice must be known",
                    span,
                    "its length depends on the lane",
                );
                self.cx.report(
                    error.with_help(
                        "write `x[i..i + 3]`; where the length varies, use a loop or `sum(… for j in a..b)`",
                    ),
                );
                None
            }
        }
    }

    /// `end - start`, when it is an extent.
    pub(super) fn length(&self, start: &Expr, end: &Expr) -> Option<Dim> {
        let (start, end) = (self.linear(start)?, self.linear(end)?);
        end.add_scaled(&start, -1)?.as_dim().cloned()
    }

    /// The value itself if it can be evaluated again and again, else a local that holds it.
    fn repeatable(&mut self, value: Expr, stmts: &mut Vec<Stmt>) -> Expr {
        match value.kind {
            ExprKind::Local(_) | ExprKind::Literal(_) | ExprKind::Dim(_) => value,
            _ => {
                let (stmt, local) = self.name_value(value);
                stmts.push(stmt);
                local
            }
        }
    }

    /// The part of `base` that the axes select.
    fn select_axes(&mut self, base: Expr, axes: Vec<Axis>, span: Span) -> Option<Expr> {
        let mut at = Vec::new();
        let mut rest = axes.into_iter().peekable();
        while let Some(Axis::At(_)) = rest.peek() {
            if let Some(Axis::At(i)) = rest.next() {
                at.push(i);
            }
        }
        let base = index_prim(base, at, span)?;
        let Some(axis) = rest.next() else {
            return Some(base);
        };
        let rest: Vec<Axis> = rest.collect();
        let (dtype, extents) = elements(&base.ty)?;
        let (start, length) = match axis {
            Axis::Range { start, length } => (start, length),
            _ => (int_literal(0, span), extents.first()?.clone()),
        };
        if rest.is_empty() {
            let mut extents = extents.to_vec();
            *extents.first_mut()? = length;
            return Some(prim(Prim::Slice, vec![base.clone(), start], of_shape(dtype, &extents), span));
        }
        // One axis inside stays: element by element along this one.
        let var = self.hidden(Ty::Scalar(DType::Int), span);
        let end = self.shifted(&start, &length, span)?;
        let row = index_prim(base, vec![local_int(var, span)], span)?;
        let body = self.select_axes(row, rest, span)?;
        let (_, inner) = elements(&body.ty)?;
        let mut extents = vec![length];
        extents.extend_from_slice(inner);
        Some(Expr {
            kind: ExprKind::Comprehension { clauses: vec![Clause { var, start, end }], body: Box::new(body) },
            ty: of_shape(dtype, &extents),
            span,
        })
    }

    /// `start + length`
    fn shifted(&mut self, start: &Expr, length: &Dim, span: Span) -> Option<Expr> {
        let length = Expr { kind: ExprKind::Dim(length.clone()), ty: Ty::Scalar(DType::Int), span };
        self.binary(ast::BinaryOp::Add, start.clone(), length, span)
    }
}

/// Whether an axis after a range selects too, so that elements are gathered one by one.
fn single_column(axes: &[Axis]) -> bool {
    let first = axes.iter().position(|a| !matches!(a, Axis::At(_)));
    first.is_some_and(|first| first + 1 < axes.len())
}

/// `base[at]`; `base` itself without indices. Indices of an index join it.
fn index_prim(base: Expr, at: Vec<Expr>, span: Span) -> Option<Expr> {
    if at.is_empty() {
        return Some(base);
    }
    let (dtype, extents) = elements(&base.ty)?;
    let ty = of_shape(dtype, extents.get(at.len()..)?);
    let mut args = match base.kind {
        ExprKind::Prim(Prim::Index, args) => args,
        kind => vec![Expr { kind, ty: base.ty, span: base.span }],
    };
    args.extend(at);
    Some(prim(Prim::Index, args, ty, span))
}

fn local_int(local: LocalId, span: Span) -> Expr {
    Expr { kind: ExprKind::Local(local), ty: Ty::Scalar(DType::Int), span }
}
