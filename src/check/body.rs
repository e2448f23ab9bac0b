//! Checking one function: its locals, its scopes, and what its body must give.

use std::sync::Arc;

use crate::base::{Diagnostic, IdVec, Span};
use crate::hir::{self, Dim, DimId, Expr, ExprKind, FnId, LocalId, Ty};
use crate::prim::Prim;
use crate::syntax::ast::{self, ItemKind};
use crate::types::{DType, Scalar};

use super::context::Checker;
use super::dims::{Linear, power};
use super::models::Role;
use super::modules::ModuleId;
use super::summed::summed;
use super::types::elements;

/// What a local is; errors and warnings speak of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Param,
    Let,
    Loop,
    /// The variable of a comprehension or reduction.
    Clause,
    ClosureParam,
    /// Made by the checker.
    Hidden,
}

/// What the checker remembers of a local.
pub(super) struct LocalInfo {
    pub(super) origin: Origin,
    /// How many closures and comprehensions stand around its binding.
    pub(super) frame: usize,
    /// Whether it is read.
    pub(super) used: bool,
    /// Whether it is assigned.
    pub(super) assigned: bool,
    /// Its value as a linear form, when it is an immutable int.
    pub(super) linear: Option<Linear>,
}

/// What stands around the code that is being checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameKind {
    Fn,
    Closure,
    Comprehension,
}

/// The function, or a closure or comprehension in it.
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    /// How many loops of this frame stand around.
    pub(super) loops: usize,
}

/// The state of the check of one function.
pub(super) struct Body<'b, 'a> {
    pub(super) cx: &'b mut Checker<'a>,
    pub(super) module: ModuleId,
    pub(super) name: String,
    pub(super) dims: IdVec<DimId, String>,
    /// What the function returns.
    pub(super) ret: Ty,
    /// Whether this is an instance for arrays: its body is straight-line.
    pub(super) instance: bool,
    pub(super) locals: IdVec<LocalId, hir::Local>,
    pub(super) info: IdVec<LocalId, LocalInfo>,
    /// Names in scope, innermost last. `None` is a name whose binding had an error.
    scopes: Vec<Vec<(ast::Name, Option<LocalId>)>>,
    /// The pieces of text that are scopes, innermost last.
    pub(super) texts: Vec<Span>,
    pub(super) frames: Vec<Frame>,
}

/// What an unqualified name means inside a function.
pub(super) enum Inner {
    Local(LocalId),
    Dim(DimId),
    /// A local whose binding had an error.
    Broken,
}

impl Checker<'_> {
    /// Checks the body of a function, unless its declaration has an error.
    pub(super) fn check_fn(&mut self, id: FnId) {
        let def = &self.fns[id];
        let Some(signature) = def.signature.clone() else {
            return;
        };
        let (module, instance, sum) = (def.module, def.instance, def.sum);
        let (name, span) = (def.name.clone(), def.span);
        let ast = self.modules[module].ast.clone();
        let item = &ast.items[def.item];
        let block = match (&item.kind, def.rule) {
            (ItemKind::Fn(decl), None) => &decl.body,
            (ItemKind::Derivative(decl), Some(rule)) => &decl.rules[rule].body,
            _ => unreachable!("the declaration put a function here"),
        };
        let recompute = def.recompute;
        let role = self.role(id);
        // The body of an instance that sums gives the array.
        let shape = (signature.params.iter()).find(|p| matches!(p.ty, Ty::Array(..)));
        let ret = match (&signature.ret, shape.map(|p| &p.ty)) {
            (Ty::Scalar(dtype), Some(Ty::Array(_, dims))) if instance && sum => Ty::Array(*dtype, dims.clone()),
            (ret, _) => ret.clone(),
        };
        let around = self.notes.dims(signature.declared.clone());
        let mut body = Body {
            cx: self,
            module,
            name: name.clone(),
            dims: signature.dims.clone(),
            ret: ret.clone(),
            instance,
            locals: IdVec::new(),
            info: IdVec::new(),
            scopes: vec![Vec::new()],
            texts: vec![item.span, block.span],
            frames: vec![Frame { kind: FrameKind::Fn, loops: 0 }],
        };
        let mut params = Vec::new();
        for param in &signature.params {
            // A name of a dimension is that in the body, and the parameter is an error of its own.
            let mut named = param.name.clone();
            if body.dims.values().any(|dim| **dim == *named.text) {
                named.text = format!("%{}", named.text).into();
            }
            let local = body.declare(&named, param.ty.clone(), Origin::Param, param.mutable);
            params.push(hir::Param { local, shared: param.shared });
        }
        let checked = body.fn_block(block, &ret, role);
        if !instance && role != Some(Role::Made) {
            body.warn_locals(block.span);
        }
        let locals = body.locals;
        self.notes.dims(around);
        let Some(mut checked) = checked else {
            return;
        };
        if instance && sum {
            checked = summed(checked, &signature.ret);
        }
        self.fns[id].checked = Some(hir::Fn {
            name,
            doc: item.doc.clone(),
            dims: signature.dims.clone(),
            bounds: signature.bounds.clone(),
            params,
            ret: signature.ret.clone(),
            locals,
            body: checked,
            recompute,
            span,
        });
    }
}

impl Body<'_, '_> {
    /// Checks the body of the function against its result.
    fn fn_block(&mut self, block: &ast::Block, ret: &Ty, role: Option<Role>) -> Option<Expr> {
        let body = self.block(block)?;
        if role == Some(Role::Body) && !self.is_log_density(&body, block.span) {
            return None;
        }
        let span = block.tail.as_ref().map_or(block.span, |t| t.span);
        self.result(body, ret, block.tail.is_some(), span)
    }

    /// The value of a body as the result that is written.
    fn result(&mut self, body: Expr, ret: &Ty, has_tail: bool, span: Span) -> Option<Expr> {
        if body.ty.is_unit() && !ret.is_unit() {
            let shown = self.show(ret);
            let end = Span { start: body.span.end.saturating_sub(1).max(body.span.start), ..body.span };
            let error = Diagnostic::error(
                "E0406",
                format!("`{}` may end without a value", self.name),
                end,
                format!("{shown} is needed here"),
            );
            self.cx.report(error.with_help("end with the value, without a semicolon, or `return` it on every path"));
            return None;
        }
        if self.instance
            && let (Some((_, [])), Ty::Array(dtype, _)) = (elements(&body.ty), ret)
        {
            let scalar = self.coerce(body, &Ty::Scalar(*dtype))?;
            let span = scalar.span;
            return Some(prim(Prim::Fill, vec![scalar], ret.clone(), span));
        }
        if ret.is_unit() && has_tail && body.ty != Ty::Never && !body.ty.is_unit() {
            let shown = self.show(&body.ty);
            let error = Diagnostic::error(
                "E0407",
                format!("`{}` gives no value, but its body does", self.name),
                span,
                format!("this is {shown}"),
            );
            self.cx.report(error.with_help(format!("write the result, `-> {shown}`, or a semicolon after the value")));
            return None;
        }
        let message = format!("`{}` gives {}", self.name, self.show(ret));
        self.coerce_to(body, ret, |found| (message, format!("this is {found}")))
    }

    // ---- names

    pub(super) fn push_scope(&mut self, text: Span) {
        self.scopes.push(Vec::new());
        self.texts.push(text);
    }

    pub(super) fn pop_scope(&mut self) {
        self.scopes.pop();
        self.texts.pop();
    }

    /// Binds a name in the innermost scope.
    pub(super) fn declare(&mut self, name: &ast::Name, ty: Ty, origin: Origin, mutable: bool) -> LocalId {
        let local = self.local(&name.text, ty, origin, mutable, name.span);
        let scope = self.scopes.last_mut().expect("a function has a scope");
        scope.push((name.clone(), Some(local)));
        self.note_local(name, Some(local));
        local
    }

    /// Binds a name whose value had an error: uses of it stay silent.
    pub(super) fn declare_broken(&mut self, name: &ast::Name) {
        let scope = self.scopes.last_mut().expect("a function has a scope");
        scope.push((name.clone(), None));
        self.note_local(name, None);
    }

    /// A local without a name in the source.
    pub(super) fn hidden(&mut self, ty: Ty, span: Span) -> LocalId {
        let name = format!("%{}", self.locals.len());
        self.local(&name, ty, Origin::Hidden, false, span)
    }

    fn local(&mut self, name: &str, ty: Ty, origin: Origin, mutable: bool, span: Span) -> LocalId {
        self.info.push(LocalInfo { origin, frame: self.frames.len(), used: false, assigned: false, linear: None });
        self.locals.push(hir::Local { name: name.to_string(), ty, mutable, span })
    }

    /// What a name without a module before it means here, when it is not an item.
    pub(super) fn inner(&self, path: &ast::Path) -> Option<Inner> {
        if path.module.is_some() {
            return None;
        }
        let name = &path.name.text;
        for scope in self.scopes.iter().rev() {
            if let Some((declared, local)) = scope.iter().rev().find(|(n, _)| n.text == *name) {
                self.cx.means(&path.name, declared.span);
                return Some(local.map_or(Inner::Broken, Inner::Local));
            }
        }
        let dim = self.dims.iter().find(|(_, d)| ***d == **name);
        let id = dim.map(|(id, _)| id)?;
        self.cx.means_dim(&path.name, id);
        Some(Inner::Dim(id))
    }

    /// Names of locals and dimensions in scope.
    pub(super) fn inner_names(&self) -> Vec<Arc<str>> {
        let locals = self.scopes.iter().flatten().map(|(name, _)| name.text.clone());
        let dims = self.dims.values().map(|d| Arc::from(d.as_str()));
        locals.chain(dims).collect()
    }

    /// Warns of what a body binds in vain; what a model computes is an output, read or not.
    fn warn_locals(&mut self, body: Span) {
        let mut warnings = Vec::new();
        for (id, info) in self.info.iter() {
            let local = &self.locals[id];
            if local.name.starts_with('_') || (info.origin == Origin::Let && local.span.start < body.start) {
                continue;
            }
            let name = &local.name;
            if info.origin == Origin::Let && !info.used {
                let warning = Diagnostic::warning(
                    "W0001",
                    format!("the variable `{name}` is never read"),
                    local.span,
                    if info.assigned { "assigned, but never read" } else { "unused" },
                );
                warnings.push(warning.with_help(format!("remove it, or rename it to `_{name}`")));
            } else if local.mutable && !info.assigned {
                let warning = Diagnostic::warning(
                    "W0003",
                    format!("`{name}` is never assigned"),
                    local.span,
                    "need not be `mut`",
                );
                warnings.push(warning.with_help("remove `mut`"));
            }
        }
        for warning in warnings {
            self.cx.warn(self.module, warning);
        }
    }

    // ---- frames

    /// Runs `check` inside a closure or comprehension.
    pub(super) fn framed<T>(&mut self, kind: FrameKind, text: Span, check: impl FnOnce(&mut Self) -> T) -> T {
        self.frames.push(Frame { kind, loops: 0 });
        self.push_scope(text);
        let result = check(self);
        self.pop_scope();
        self.frames.pop();
        result
    }

    /// Whether a comprehension stands around, in this function.
    pub(super) fn in_comprehension(&self) -> bool {
        (self.frames.iter()).any(|f| f.kind == FrameKind::Comprehension)
    }

    pub(super) fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a function is a frame")
    }

    // ---- types

    /// The type in the user's words.
    pub(super) fn show(&self, ty: &Ty) -> String {
        self.cx.show(ty, &self.dims)
    }

    /// Converts to `ty`, or reports that something else was expected.
    pub(super) fn coerce(&mut self, expr: Expr, ty: &Ty) -> Option<Expr> {
        let wanted = self.show(ty);
        self.coerce_to(expr, ty, |found| (format!("expected {wanted}, found {found}"), format!("this is {found}")))
    }

    /// Converts to `ty`, or reports `say(found)`: a message and a label.
    pub(super) fn coerce_to(
        &mut self,
        expr: Expr,
        ty: &Ty,
        say: impl FnOnce(String) -> (String, String),
    ) -> Option<Expr> {
        match promote(expr, ty) {
            Ok(expr) => Some(expr),
            Err(expr) => {
                let (message, label) = say(self.show(&expr.ty));
                let error = Diagnostic::error("E0201", message, value_span(&expr), label);
                let error = match conversion_help(&expr.ty, ty) {
                    Some(help) => error.with_help(help),
                    None => error,
                };
                self.cx.report(error);
                None
            }
        }
    }

    /// An extent: the int must be known while compiling, up to dimensions.
    pub(super) fn known_extent(&mut self, expr: &Expr) -> Option<Dim> {
        let dim = self.linear(expr).and_then(|l| l.as_dim().cloned());
        match dim {
            Some(dim) if dim.as_constant().is_some_and(|n| n < 0) => {
                let error = Diagnostic::error(
                    "E0221",
                    "an extent cannot be negative",
                    expr.span,
                    format!("this is {}", dim.constant),
                );
                self.cx.report(error);
                None
            }
            Some(dim) => Some(dim),
            None => {
                let error = Diagnostic::error(
                    "E0227",
                    "an extent must be known while compiling",
                    expr.span,
                    "this depends on the lane",
                );
                self.cx.report(error.with_help("extents are made of numbers, consts and dimensions: `2 * n + 1`"));
                None
            }
        }
    }

    /// The int as a linear form.
    pub(super) fn linear(&self, expr: &Expr) -> Option<Linear> {
        match &expr.kind {
            ExprKind::Literal(Scalar::Int(value)) => Some(Linear::dim(Dim::constant(*value))),
            ExprKind::Dim(dim) => Some(Linear::dim(dim.clone())),
            ExprKind::Local(local) => match &self.info[*local].linear {
                Some(linear) => Some(linear.clone()),
                None => Some(Linear::opaque((*local, Vec::new()))),
            },
            ExprKind::Field(base, index) => {
                let mut path = vec![*index];
                let mut base = base;
                while let ExprKind::Field(inner, index) = &base.kind {
                    path.push(*index);
                    base = inner;
                }
                let ExprKind::Local(local) = base.kind else {
                    return None;
                };
                path.reverse();
                Some(Linear::opaque((local, path)))
            }
            ExprKind::Prim(op, args) if expr.ty == Ty::Scalar(DType::Int) => {
                let args: Option<Vec<Linear>> = args.iter().map(|a| self.linear(a)).collect();
                let args = args?;
                match (op, &args[..]) {
                    (Prim::Add, [a, b]) => a.add_scaled(b, 1),
                    (Prim::Sub, [a, b]) => a.add_scaled(b, -1),
                    (Prim::Neg, [a]) => Linear::default().add_scaled(a, -1),
                    (Prim::Mul, [a, b]) => a.product(b),
                    (Prim::IntDiv, [a, b]) => Some(Linear::dim(a.as_dim()?.quotient(b.as_constant()?)?)),
                    (Prim::IntPow, [a, b]) => Some(Linear::dim(power(a.as_dim()?, b.as_constant()?)?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Remembers the value of an immutable int.
    pub(super) fn remember_linear(&mut self, local: LocalId, value: &Expr) {
        if value.ty != Ty::Scalar(DType::Int) || self.locals[local].mutable {
            return;
        }
        let linear =
            self.linear(value).filter(|linear| (linear.opaque.keys()).all(|(local, _)| !self.locals[*local].mutable));
        self.info[local].linear = linear;
    }
}

/// Where the value of an expression stands: the tail of a block.
pub(super) fn value_span(expr: &Expr) -> Span {
    match &expr.kind {
        ExprKind::Block(_, Some(tail)) => value_span(tail),
        _ => expr.span,
    }
}

/// A primitive applied to operands.
pub(super) fn prim(op: Prim, args: Vec<Expr>, ty: Ty, span: Span) -> Expr {
    Expr { kind: ExprKind::Prim(op, args), ty, span }
}

/// An int literal.
pub(super) fn int_literal(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Literal(Scalar::Int(value)), ty: Ty::Scalar(DType::Int), span }
}

/// Ints as reals.
pub(super) fn to_real(expr: Expr) -> Expr {
    let span = expr.span;
    if let ExprKind::Literal(Scalar::Int(value)) = expr.kind {
        return Expr { kind: ExprKind::Literal(Scalar::Real(value as f64)), ty: Ty::Scalar(DType::Real), span };
    }
    let ty = match &expr.ty {
        Ty::Array(_, dims) => Ty::Array(DType::Real, dims.clone()),
        _ => Ty::Scalar(DType::Real),
    };
    prim(Prim::ToReal, vec![expr], ty, span)
}

/// The expression as a `ty`, ints promoted, or itself when it cannot be.
pub(super) fn promote(expr: Expr, ty: &Ty) -> Result<Expr, Expr> {
    if expr.ty == *ty || expr.ty == Ty::Never {
        return Ok(expr);
    }
    if !promotes(&expr.ty, ty) {
        return Err(expr);
    }
    let span = expr.span;
    match (expr.kind, ty) {
        (ExprKind::Tuple(parts), Ty::Tuple(types)) => {
            let parts: Result<Vec<Expr>, Expr> = parts.into_iter().zip(types).map(|(p, t)| promote(p, t)).collect();
            Ok(Expr { kind: ExprKind::Tuple(parts?), ty: ty.clone(), span })
        }
        (ExprKind::Block(stmts, Some(tail)), _) => {
            Ok(Expr { kind: ExprKind::Block(stmts, Some(Box::new(promote(*tail, ty)?))), ty: ty.clone(), span })
        }
        (ExprKind::If(condition, then, Some(other)), _) => {
            let then = promote(*then, ty)?;
            let other = promote(*other, ty)?;
            Ok(Expr { kind: ExprKind::If(condition, Box::new(then), Some(Box::new(other))), ty: ty.clone(), span })
        }
        (kind, Ty::Scalar(_) | Ty::Array(..)) => Ok(to_real(Expr { kind, ty: expr.ty, span })),
        (kind, _) => Err(Expr { kind, ty: expr.ty, span }),
    }
}

/// Whether ints in `from` are all that keeps it from being `to`.
fn promotes(from: &Ty, to: &Ty) -> bool {
    match (from, to) {
        (Ty::Scalar(DType::Int), Ty::Scalar(DType::Real)) => true,
        (Ty::Array(DType::Int, xs), Ty::Array(DType::Real, ys)) => xs == ys,
        (Ty::Tuple(xs), Ty::Tuple(ys)) => {
            xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| x == y || promotes(x, y))
        }
        (Ty::Never, _) => true,
        _ => false,
    }
}

fn conversion_help(from: &Ty, to: &Ty) -> Option<String> {
    match (elements(from)?, elements(to)?) {
        ((DType::Real, []), (DType::Int, [])) => Some("`int(x)` truncates it".into()),
        ((DType::Bool, []), (DType::Int, [])) => Some("`int(x)` gives 0 or 1".into()),
        ((a, []), (b, dims)) if a == b && !dims.is_empty() => Some("`fill(x, …)` makes an array of it".into()),
        ((DType::Int, []), (DType::Bool, [])) => Some("compare it: `x != 0`".into()),
        _ => None,
    }
}
