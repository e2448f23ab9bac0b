//! Derivatives: `grad(f)(x)` and its kin, called at once or as function values, and what `wrt` chooses; and `attempt(f)(x)`,
//! which is written alike.
//!
//! `grad`, `value_and_grad`, `jvp` and `vjp` become [`ExprKind::Derivative`]. A derivative of a derivative is the
//! derivative of a closure that takes what is differentiated and captures the rest, so that shared arguments stay shared.
//! `jacobian` and `hessian` are functions of the library, called with such a closure.

mod callable;
mod make;
mod wrt;

use std::sync::Arc;

use crate::base::{Diagnostic, Span};
use crate::hir::{Expr, ExprKind, Stmt, Ty};
use crate::syntax::ast;
use crate::types::DType;

use super::body::{Body, promote};
use super::call::count;
use super::context::Checker;
use super::names::{Found, Lookup};
use make::block;

/// What makes a function of a function, by name: the derivatives, and `attempt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Grad,
    ValueAndGrad,
    Jvp,
    Vjp,
    Jacobian,
    Hessian,
    /// No derivative: `attempt(f)` is called as `f` is.
    Attempt,
}

const OPERATORS: &[(&str, Operator)] = &[
    ("grad", Operator::Grad),
    ("value_and_grad", Operator::ValueAndGrad),
    ("jvp", Operator::Jvp),
    ("vjp", Operator::Vjp),
    ("jacobian", Operator::Jacobian),
    ("hessian", Operator::Hessian),
    ("attempt", Operator::Attempt),
];

/// The derivative of this name.
pub(super) fn operator(name: &str) -> Option<Operator> {
    OPERATORS.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

/// The names of all derivatives.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name)
}

impl Operator {
    fn name(self) -> &'static str {
        OPERATORS.iter().find(|(_, op)| *op == self).map_or("grad", |(name, _)| *name)
    }
    /// Whether a tangent or cotangent follows the arguments.
    fn has_direction(self) -> bool {
        matches!(self, Operator::Jvp | Operator::Vjp)
    }
    /// Whether the function must give a real.
    fn of_scalar(self) -> bool {
        matches!(self, Operator::Grad | Operator::ValueAndGrad | Operator::Hessian)
    }
}

/// A function whose derivative is taken, or a derivative.
struct Callable {
    code: Code,
    params: Vec<Ty>,
    ret: Ty,
    /// Names of the parameters, where they have some.
    names: Vec<Option<Arc<str>>>,
    shared: Vec<bool>,
    /// In the user's words: `` `f` ``.
    what: String,
    /// What must be bound before it is called.
    setup: Vec<Stmt>,
}

enum Code {
    /// An [`ExprKind::Function`] or [`ExprKind::FunctionLocal`].
    Value(Expr),
    Derivative(Box<Differentiation>),
}

/// A derivative of a function, without its arguments.
struct Differentiation {
    op: Operator,
    of: Callable,
    /// Positions of the parameters with respect to which.
    wrt: Vec<usize>,
    span: Span,
}

/// `grad(f, wrt = w)` as it is written.
#[derive(Clone, Copy)]
struct Written<'t> {
    op: Operator,
    name: &'t ast::Name,
    args: &'t [ast::Expr],
    named: &'t [(ast::Name, ast::Expr)],
    span: Span,
}

/// What is known of an argument.
type Given<'g> = Option<&'g [(Ty, Span)]>;

impl Checker<'_> {
    /// The first part of a value that is no real: `z.count`, where the value is `z`.
    pub(super) fn non_real(&self, ty: &Ty, path: &str) -> Option<(String, DType)> {
        match ty {
            Ty::Scalar(DType::Real) | Ty::Array(DType::Real, _) => None,
            Ty::Scalar(dtype) | Ty::Array(dtype, _) => Some((path.to_string(), *dtype)),
            Ty::Tuple(parts) => {
                (parts.iter().enumerate()).find_map(|(i, part)| self.non_real(part, &format!("{path}.{i}")))
            }
            Ty::Struct(id, _) => self.structs[*id].fields.iter().find_map(|(name, ty)| {
                let ty = ty.as_ref()?;
                self.non_real(ty, &format!("{path}.{}", name.text))
            }),
            Ty::Fn(..) | Ty::Never => None,
        }
    }
}

impl Body<'_, '_> {
    /// `grad(f, …)`, when the expression is that.
    fn written<'t>(&mut self, expr: &'t ast::Expr) -> Option<Written<'t>> {
        let ast::ExprKind::Call { callee, args, named } = &expr.kind else {
            return None;
        };
        let ast::ExprKind::Path(path) = &callee.kind else {
            return None;
        };
        let op = self.operator(path)?;
        Some(Written { op, name: &path.name, args, named, span: expr.span })
    }

    fn operator(&mut self, path: &ast::Path) -> Option<Operator> {
        if path.module.is_some() || self.inner(path).is_some() {
            return None;
        }
        match self.cx.lookup(self.module, path) {
            Lookup::Found(Found::Derivative(op)) => Some(op),
            _ => None,
        }
    }

    /// Whether the name is that of a derivative.
    pub(super) fn is_operator(&mut self, path: &ast::Path) -> bool {
        self.operator(path).is_some()
    }

    /// Whether the expression is a derivative that is not called: a function.
    pub(super) fn is_derivative(&mut self, expr: &ast::Expr) -> bool {
        self.written(expr).is_some()
    }

    /// Reports `grad(f)` where a value is needed, and slips such as `grad(f, x)`.
    pub(super) fn derivative_as_value(&mut self, op: Operator, args: &[ast::Expr], span: Span) {
        let name = op.name();
        let arguments = if op.has_direction() { "x, v" } else { "x" };
        let help = format!("the arguments follow in parentheses of their own: `{name}(f)({arguments})`");
        let error = match args.len() {
            1 => Diagnostic::error("E0901", format!("this `{name}` is a function, not a value"), span, "not called"),
            n => Diagnostic::error(
                "E0901",
                format!("`{name}` takes one function, {} given", count(n)),
                span,
                "the function alone stands here",
            ),
        };
        self.cx.report(error.with_help(help));
    }

    /// `grad(f)(args)`; `None` when the callee is something else.
    pub(super) fn derivative_call(
        &mut self,
        callee: &ast::Expr,
        args: &[ast::Expr],
        span: Span,
    ) -> Option<Option<Expr>> {
        let written = self.written(callee)?;
        Some(self.call_derivative(written, args, span))
    }

    fn call_derivative(&mut self, written: Written<'_>, args: &[ast::Expr], span: Span) -> Option<Expr> {
        let values: Vec<Option<Expr>> = args.iter().map(|a| self.operand(a)).collect();
        let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
        let given: Vec<(Ty, Span)> = values.iter().map(|v| (v.ty.clone(), v.span)).collect();
        let mut derivative = self.derivative(written, Some(&given), span)?;
        let mut operands = Vec::new();
        for (i, (value, ty)) in values.into_iter().zip(&derivative.params).enumerate() {
            operands.push(self.derivative_arg(&derivative, i, value, ty));
        }
        let operands: Vec<Expr> = operands.into_iter().collect::<Option<_>>()?;
        let setup = std::mem::take(&mut derivative.setup);
        let value = self.apply(&derivative, operands, span)?;
        Some(block(setup, value))
    }

    fn derivative_arg(&mut self, derivative: &Callable, i: usize, value: Expr, ty: &Ty) -> Option<Expr> {
        match promote(value, ty) {
            Ok(value) => Some(value),
            Err(value) => {
                let (wanted, found) = (self.show(ty), self.show(&value.ty));
                let name = match &derivative.names[i] {
                    Some(name) => format!(" for `{name}`"),
                    None => String::new(),
                };
                let message = format!("{} takes {wanted}{name}, found {found}", derivative.what);
                let error = Diagnostic::error("E0302", message, value.span, format!("this is {found}"));
                self.cx.report(error);
                None
            }
        }
    }

    /// A derivative as a function value, of the type `expected` where that is known.
    pub(super) fn derivative_value(&mut self, expr: &ast::Expr, expected: Option<&Ty>) -> Option<Expr> {
        let written = self.written(expr)?;
        let span = expr.span;
        let given: Option<Vec<(Ty, Span)>> = match expected {
            Some(Ty::Fn(params, _)) => Some(params.iter().map(|ty| (ty.clone(), span)).collect()),
            _ => None,
        };
        let mut derivative = self.derivative(written, given.as_deref(), span)?;
        if let Some(i) = derivative.shared.iter().position(|s| *s) {
            let name = derivative.names[i].clone().unwrap_or_else(|| Arc::from("_"));
            let error = Diagnostic::error(
                "E0503",
                format!("{} has the shared parameter `{name}`: it cannot be passed as a function", derivative.what),
                span,
                "who calls it does not know what is shared",
            );
            self.cx.report(error.with_help("pass a closure that captures the shared value: `|w| grad(f)(w, x)`"));
            return None;
        }
        let ty = Ty::Fn(derivative.params.clone(), Box::new(derivative.ret.clone()));
        if let Some(expected) = expected.filter(|e| **e != ty) {
            let wanted = self.show(expected);
            self.wrong_fn(&wanted, &ty, span);
            return None;
        }
        let setup = std::mem::take(&mut derivative.setup);
        let value = self.closure_over(&derivative, &[], span)?;
        let ExprKind::Lambda { params, body } = value.kind else {
            return Some(value);
        };
        let kind = ExprKind::Lambda { params, body: Box::new(block(setup, *body)) };
        Some(Expr { kind, ty, span })
    }

    /// What `grad(f, wrt = w)` means for arguments of these types.
    fn derivative(&mut self, written: Written<'_>, given: Given<'_>, span: Span) -> Option<Callable> {
        let [function] = written.args else {
            self.derivative_as_value(written.op, written.args, written.span);
            return None;
        };
        let (op, name) = (written.op, written.op.name());
        let direction = usize::from(op.has_direction());
        if op != Operator::Attempt && given.is_some_and(|given| given.len() < direction + 1) {
            let wanted = if direction == 0 { "1 argument".to_owned() } else { "2 arguments".to_owned() };
            let given = given.map_or(0, <[_]>::len);
            self.wrong_count(&format!("{name}(…)"), &format!("at least {wanted}"), given, span, None);
            return None;
        }
        let inner = given.map(|given| &given[..given.len() - direction]);
        let mut of = self.callable(function, inner)?;
        if op == Operator::Attempt {
            return self.attempt_of(written, of, span);
        }
        let wrt = self.wrt(written, &of)?;
        self.check_differentiable(written, &of, &wrt)?;
        let at = tuple_of(wrt.iter().map(|i| of.params[*i].clone()).collect());
        let ret = match op {
            Operator::Grad => at.clone(),
            Operator::ValueAndGrad | Operator::Vjp => Ty::Tuple(vec![of.ret.clone(), at.clone()]),
            Operator::Jvp => Ty::Tuple(vec![of.ret.clone(), of.ret.clone()]),
            Operator::Jacobian => self.jacobian_type(written, &of, &wrt)?,
            Operator::Hessian => self.hessian_type(written, &of, &wrt)?,
            Operator::Attempt => of.ret.clone(),
        };
        let mut params = of.params.clone();
        let mut names = of.names.clone();
        let mut shared = of.shared.clone();
        if direction == 1 {
            params.push(if op == Operator::Jvp { at } else { of.ret.clone() });
            names.push(None);
            shared.push(false);
        }
        let what = format!("`{name}` of {}", of.what);
        let setup = std::mem::take(&mut of.setup);
        let code = Code::Derivative(Box::new(Differentiation { op, of, wrt, span }));
        Some(Callable { code, params, ret, names, shared, what, setup })
    }

    /// What `attempt(f)` means: what it gives when `f` fails must be seen.
    fn attempt_of(&mut self, written: Written<'_>, mut of: Callable, span: Span) -> Option<Callable> {
        if let Some((name, _)) = written.named.first() {
            let message = format!("`attempt` has no argument `{}`", name.text);
            self.cx.report(Diagnostic::error("E0902", message, name.span, "unknown argument"));
            return None;
        }
        if !self.cx.has_real(&of.ret) {
            let found = self.show(&of.ret);
            let message = format!("{} gives {found}: where it fails, nothing would tell", of.what);
            let error = Diagnostic::error("E0915", message, written.span, "no real in the result can be NaN");
            self.cx.report(error.with_help("let it give a real too: `|x| (f(x), 0.0)`"));
            return None;
        }
        let setup = std::mem::take(&mut of.setup);
        let Callable { params, ret, names, shared, .. } = &of;
        let (params, ret, names, shared) = (params.clone(), ret.clone(), names.clone(), shared.clone());
        let what = format!("`attempt` of {}", of.what);
        let code = Code::Derivative(Box::new(Differentiation { op: Operator::Attempt, of, wrt: Vec::new(), span }));
        Some(Callable { code, params, ret, names, shared, what, setup })
    }

    /// `stop_gradient(x)`
    pub(super) fn stop_gradient(&mut self, args: Vec<Expr>, span: Span) -> Option<Expr> {
        if args.len() != 1 {
            self.wrong_count("stop_gradient", "1 argument", args.len(), span, None);
            return None;
        }
        let value = args.into_iter().next()?;
        let ty = value.ty.clone();
        Some(Expr { kind: ExprKind::StopGradient(Box::new(value)), ty, span })
    }
}

/// One type, or the tuple of several.
fn tuple_of(mut types: Vec<Ty>) -> Ty {
    if types.len() == 1 { types.remove(0) } else { Ty::Tuple(types) }
}
