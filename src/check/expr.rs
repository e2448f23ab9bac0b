//! Expressions.

use crate::base::{Diagnostic, Span, work};
use crate::hir::{Dim, Expr, ExprKind, Ty};
use crate::prim::Prim;
use crate::syntax::ast;
use crate::types::{DType, Scalar};

use super::body::{Body, Inner, prim, promote};
use super::context::Def;
use super::names::{Found, Lookup};
use super::types::{elements, of_shape};

impl Body<'_, '_> {
    /// An expression that is a value. `None` when it has an error, which was reported.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Option<Expr> {
        work::add(1);
        let checked = self.expr_of_kind(expr)?;
        self.note_expr(expr.span, &checked.ty);
        Some(checked)
    }

    fn expr_of_kind(&mut self, expr: &ast::Expr) -> Option<Expr> {
        let span = expr.span;
        work::add(1);
        match &expr.kind {
            ast::ExprKind::Error => None,
            ast::ExprKind::Bool(value) => Some(literal(Scalar::Bool(*value), span)),
            ast::ExprKind::Int(value) => Some(literal(Scalar::Int((*value)?), span)),
            ast::ExprKind::Real(value) => Some(literal(Scalar::Real(*value), span)),
            ast::ExprKind::Path(path) => self.path(path, span),
            ast::ExprKind::Unary(op, operand) => {
                let operand = self.operand(operand)?;
                self.unary(*op, operand, span)
            }
            ast::ExprKind::Binary(op, a, b) => {
                let a = self.operand(a);
                let b = self.operand(b);
                self.binary(*op, a?, b?, span)
            }
            ast::ExprKind::Call { callee, args, named } => self.call(callee, args, named, span),
            ast::ExprKind::Index { base, indices } => {
                let base = self.operand(base);
                self.index(base, indices, span)
            }
            ast::ExprKind::Field { base, name } => {
                let base = self.operand(base)?;
                self.field(base, name, span)
            }
            ast::ExprKind::TupleField { base, index, index_span } => {
                let base = self.operand(base)?;
                let (position, ty) = self.tuple_field_of(&base.ty, *index, *index_span)?;
                let kind = ExprKind::Field(Box::new(base), position);
                Some(Expr { kind, ty, span })
            }
            ast::ExprKind::Tuple(parts) => self.tuple(parts, span),
            ast::ExprKind::Array(parts) => self.array(parts, span),
            ast::ExprKind::Comprehension { body, clauses } => self.comprehension(body, clauses, span),
            ast::ExprKind::Reduction { name, body, clauses } => self.reduction(name, body, clauses, span),
            ast::ExprKind::Struct { path, fields, base } => self.struct_literal(path, fields, base.as_deref(), span),
            ast::ExprKind::If { condition, then, otherwise } => self.if_expr(condition, then, otherwise.as_ref(), span),
            ast::ExprKind::Block(block) => self.block(block),
            ast::ExprKind::Lambda { .. } => {
                let error = Diagnostic::error(
                    "E0310",
                    "a function cannot escape",
                    span,
                    "a closure is passed as an argument, or bound by `let`",
                );
                self.cx.report(error);
                None
            }
            ast::ExprKind::Print(message) => self.print(message, span),
            ast::ExprKind::Assert { condition, message } => self.assert(condition, message.as_ref(), span),
        }
    }

    /// An expression whose value is needed.
    pub(super) fn operand(&mut self, expr: &ast::Expr) -> Option<Expr> {
        let value = self.expr(expr)?;
        self.needs_value(value)
    }

    /// An expression that must be a `ty`, which may be a function.
    pub(super) fn expr_as(&mut self, expr: &ast::Expr, ty: &Ty) -> Option<Expr> {
        if let Ty::Fn(..) = ty {
            return self.fn_value(expr, ty);
        }
        let value = self.expr(expr)?;
        self.coerce(value, ty)
    }

    fn path(&mut self, path: &ast::Path, span: Span) -> Option<Expr> {
        match self.inner(path) {
            Some(Inner::Broken) => return None,
            Some(Inner::Dim(id)) => {
                return Some(Expr { kind: ExprKind::Dim(Dim::param(id)), ty: Ty::Scalar(DType::Int), span });
            }
            Some(Inner::Local(local)) => {
                self.info[local].used = true;
                let ty = self.locals[local].ty.clone();
                if matches!(ty, Ty::Fn(..)) {
                    return self.function_as_value(&path.name);
                }
                let kind = ExprKind::Local(local);
                return Some(Expr { kind, ty, span });
            }
            None => {}
        }
        match self.cx.lookup(self.module, path) {
            Lookup::Found(Found::Def(Def::Const(id))) => Some(literal(self.cx.const_value(id)?, span)),
            Lookup::Found(Found::Def(Def::Fn(id))) => {
                self.cx.fns[id].used = true;
                self.function_as_value(&path.name)
            }
            Lookup::Found(Found::Builtin(_) | Found::Derivative(_) | Found::StopGradient) => {
                self.function_as_value(&path.name)
            }
            Lookup::Found(Found::Def(Def::Struct(_))) => {
                let name = &path.name.text;
                let error =
                    Diagnostic::error("E0119", format!("`{name}` is a struct, not a value"), span, "a value is needed");
                self.cx.report(error.with_help(format!("make one: `{name} {{ field: value }}`")));
                None
            }
            Lookup::Silent => None,
            Lookup::Unknown => {
                self.unknown_name("E0101", &path.name);
                None
            }
        }
    }

    /// Reports a name that nothing has.
    pub(super) fn unknown_name(&mut self, code: &'static str, name: &ast::Name) {
        let what = if code == "E0102" { "function " } else { "" };
        let error =
            Diagnostic::error(code, format!("there is no {what}`{}` here", name.text), name.span, "unknown name");
        let inner = self.inner_names();
        let help = self.cx.suggest(self.module, &name.text, &inner);
        let error = match help {
            Some(help) => error.with_help(help),
            None => error,
        };
        self.cx.report(error);
    }

    fn function_as_value(&mut self, name: &ast::Name) -> Option<Expr> {
        let error = Diagnostic::error(
            "E0313",
            format!("the function `{}` is used as a value", name.text),
            name.span,
            "neither called nor passed on",
        );
        let help = format!("call it: `{}(…)`", name.text);
        self.cx.report(error.with_help(help));
        None
    }

    fn tuple(&mut self, parts: &[ast::Expr], span: Span) -> Option<Expr> {
        let parts: Vec<_> = parts.iter().map(|p| self.operand(p)).collect();
        let parts: Vec<Expr> = parts.into_iter().collect::<Option<_>>()?;
        let ty = Ty::Tuple(parts.iter().map(|p| p.ty.clone()).collect());
        let ty = self.cx.limit_leaves(ty, span)?;
        let kind = ExprKind::Tuple(parts);
        Some(Expr { kind, ty, span })
    }

    fn array(&mut self, parts: &[ast::Expr], span: Span) -> Option<Expr> {
        let values: Vec<_> = parts.iter().map(|p| self.operand(p)).collect();
        let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
        let Some(first) = values.first() else {
            let error = Diagnostic::error("E0212", "an empty array does not say what it holds", span, "no elements");
            self.cx.report(error.with_help("write `zeros(0)`"));
            return None;
        };
        let mut ty = first.ty.clone();
        for value in &values {
            ty = match join(&ty, &value.ty) {
                Some(ty) => ty,
                None => {
                    let (x, y) = (self.show(&ty), self.show(&value.ty));
                    let error = Diagnostic::error(
                        "E0211",
                        "the elements of an array have one type",
                        value.span,
                        format!("this is {y}"),
                    );
                    self.cx.report(error.with_label(values[0].span, format!("this is {x}")));
                    return None;
                }
            };
        }
        let Some((dtype, dims)) = elements(&ty) else {
            let found = self.show(&ty);
            let error = Diagnostic::error(
                "E0219",
                format!("an array cannot hold {found}"),
                values[0].span,
                "arrays hold bools, ints and reals",
            );
            self.cx.report(error.with_help("keep one array for each field"));
            return None;
        };
        let mut extents = vec![Dim::constant(values.len() as i64)];
        extents.extend_from_slice(dims);
        let values: Result<Vec<Expr>, Expr> = values.into_iter().map(|v| promote(v, &ty)).collect();
        Some(prim(Prim::MakeArray, values.ok()?, of_shape(dtype, &extents), span))
    }

    fn if_expr(
        &mut self,
        condition: &ast::Expr,
        then: &ast::Block,
        otherwise: Option<&ast::Block>,
        span: Span,
    ) -> Option<Expr> {
        let condition = self.condition(condition);
        let then_value = self.block(then);
        let Some(otherwise) = otherwise else {
            let then_value = then_value?;
            if !then_value.ty.is_unit() && then_value.ty != Ty::Never {
                let at = then.tail.as_ref().map_or(then.span, |t| t.span);
                let found = self.show(&then_value.ty);
                let error =
                    Diagnostic::error("E0223", "an `if` without `else` has no value", at, format!("this is {found}"));
                self.cx.report(error.with_help("add an `else`, or a semicolon after the value"));
                return None;
            }
            let kind = ExprKind::If(Box::new(condition?), Box::new(then_value), None);
            let ty = Ty::unit();
            return Some(Expr { kind, ty, span });
        };
        let other_value = self.block(otherwise);
        let (condition, then_value, other_value) = (condition?, then_value?, other_value?);
        let Some(ty) = join(&then_value.ty, &other_value.ty) else {
            let (x, y) = (self.show(&then_value.ty), self.show(&other_value.ty));
            let at = |block: &ast::Block| block.tail.as_ref().map_or(block.span, |t| t.span);
            let error = Diagnostic::error(
                "E0210",
                format!("the arms of this `if` are {x} and {y}"),
                at(otherwise),
                format!("this is {y}"),
            );
            self.cx.report(error.with_label(at(then), format!("this is {x}")));
            return None;
        };
        let then_value = promote(then_value, &ty).ok()?;
        let other_value = promote(other_value, &ty).ok()?;
        let kind = ExprKind::If(Box::new(condition), Box::new(then_value), Some(Box::new(other_value)));
        Some(Expr { kind, ty, span })
    }
}

/// A literal.
pub(super) fn literal(value: Scalar, span: Span) -> Expr {
    Expr { kind: ExprKind::Literal(value), ty: Ty::Scalar(value.dtype()), span }
}

/// The type that both can become: equal, or after promotion of ints.
pub(super) fn join(a: &Ty, b: &Ty) -> Option<Ty> {
    match (a, b) {
        (Ty::Never, other) | (other, Ty::Never) => Some(other.clone()),
        _ if a == b => Some(a.clone()),
        _ => {
            let ((x, xs), (y, ys)) = (elements(a)?, elements(b)?);
            let numbers = x != DType::Bool && y != DType::Bool;
            (numbers && xs == ys).then(|| of_shape(DType::Real, xs))
        }
    }
}
