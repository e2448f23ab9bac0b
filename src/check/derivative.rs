//! Derivatives: `grad(f)(x)` and its kin, called at once or as function values, and what `wrt` chooses.
//!
//! `grad`, `value_and_grad`, `jvp` and `vjp` become [`ExprKind::Derivative`]. A derivative of a derivative is the
//! derivative of a closure that takes what is differentiated and captures the rest, so that shared arguments stay shared.
//! `jacobian` and `hessian` are functions of the library, called with such a closure.

use std::sync::Arc;

use crate::base::{Diagnostic, Span};
use crate::hir::{Callee, Derivative, DerivativeCall, Expr, ExprKind, FnId, LocalId, Pattern, Stmt, StmtKind, Ty};
use crate::syntax::ast;
use crate::types::{DType, Scalar};

use super::body::{Body, FrameKind, promote};
use super::call::count;
use super::context::{Checker, Def};
use super::dims::Solver;
use super::expr::literal;
use super::names::{Found, Lookup};
use super::types::{elements, of_shape, substitute};

/// The derivatives by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Grad,
    ValueAndGrad,
    Jvp,
    Vjp,
    Jacobian,
    Hessian,
}

const OPERATORS: &[(&str, Operator)] = &[
    ("grad", Operator::Grad),
    ("value_and_grad", Operator::ValueAndGrad),
    ("jvp", Operator::Jvp),
    ("vjp", Operator::Vjp),
    ("jacobian", Operator::Jacobian),
    ("hessian", Operator::Hessian),
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
        if given.is_some_and(|given| given.len() < direction + 1) {
            let wanted = if direction == 0 { "1 argument".to_owned() } else { "2 arguments".to_owned() };
            let given = given.map_or(0, <[_]>::len);
            self.wrong_count(&format!("{name}(…)"), &format!("at least {wanted}"), given, span, None);
            return None;
        }
        let inner = given.map(|given| &given[..given.len() - direction]);
        let mut of = self.callable(function, inner)?;
        let wrt = self.wrt(written, &of)?;
        self.check_differentiable(written, &of, &wrt)?;
        let at = tuple_of(wrt.iter().map(|i| of.params[*i].clone()).collect());
        let ret = match op {
            Operator::Grad => at.clone(),
            Operator::ValueAndGrad | Operator::Vjp => Ty::Tuple(vec![of.ret.clone(), at.clone()]),
            Operator::Jvp => Ty::Tuple(vec![of.ret.clone(), of.ret.clone()]),
            Operator::Jacobian => self.jacobian_type(written, &of, &wrt)?,
            Operator::Hessian => self.hessian_type(written, &of, &wrt)?,
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

    // ---- what is differentiated

    fn callable(&mut self, function: &ast::Expr, given: Given<'_>) -> Option<Callable> {
        if let Some(written) = self.written(function) {
            return self.derivative(written, given, function.span);
        }
        match &function.kind {
            ast::ExprKind::Lambda { params, body } => self.callable_closure(params, body, given, function.span),
            ast::ExprKind::Path(path) => self.callable_path(path, given, function.span),
            _ => {
                self.not_a_function(function);
                None
            }
        }
    }

    fn callable_closure(
        &mut self,
        params: &[(ast::Name, Option<ast::TypeExpr>)],
        body: &ast::Expr,
        given: Given<'_>,
        span: Span,
    ) -> Option<Callable> {
        if let Some(given) = given.filter(|g| g.len() != params.len()) {
            self.wrong_count("the closure", &count(params.len()), given.len(), span, None);
            return None;
        }
        let known: Vec<Option<Ty>> = (params.iter().enumerate())
            .map(|(i, (_, written))| match (written, given) {
                (None, Some(given)) => Some(with_reals(&given[i].0)),
                _ => None,
            })
            .collect();
        let closure = self.closure(params, body, &known, None, span)?;
        let names = params.iter().map(|(name, _)| Some(name.text.clone())).collect();
        self.bound_callable(closure, names, "the closure".to_string())
    }

    /// A closure, bound to a local before what calls it.
    fn bound_callable(&mut self, closure: Expr, names: Vec<Option<Arc<str>>>, what: String) -> Option<Callable> {
        let Ty::Fn(params, ret) = closure.ty.clone() else {
            return None;
        };
        let span = closure.span;
        let ty = closure.ty.clone();
        let local = self.hidden(ty.clone(), span);
        let setup = vec![bind(local, closure)];
        let code = Code::Value(Expr { kind: ExprKind::FunctionLocal(local), ty, span });
        let shared = vec![false; params.len()];
        Some(Callable { code, params, ret: *ret, names, shared, what, setup })
    }

    fn callable_path(&mut self, path: &ast::Path, given: Given<'_>, span: Span) -> Option<Callable> {
        let what = format!("`{}`", path.name.text);
        if self.inner(path).is_none() {
            match self.cx.lookup(self.module, path) {
                Lookup::Found(Found::Def(Def::Fn(id))) => return self.callable_item(id, given, span),
                Lookup::Found(Found::Builtin(builtin)) if given.is_some() => {
                    let name = path.name.text.clone();
                    return self.wrapped_callable(given, what, span, |body, args| {
                        body.builtin_call(builtin, &name, args, span)
                    });
                }
                _ => {}
            }
        }
        let value = self.named_fn(path, None, span)?;
        let Ty::Fn(params, ret) = value.ty.clone() else {
            return None;
        };
        if let Some(given) = given.filter(|g| g.len() != params.len()) {
            self.wrong_count(&path.name.text, &count(params.len()), given.len(), span, None);
            return None;
        }
        let (names, shared) = (vec![None; params.len()], vec![false; params.len()]);
        Some(Callable { code: Code::Value(value), params, ret: *ret, names, shared, what, setup: Vec::new() })
    }

    /// A closure of the given types around a call: of what has no type of its own.
    fn wrapped_callable(
        &mut self,
        given: Given<'_>,
        what: String,
        span: Span,
        call: impl FnOnce(&mut Self, Vec<Expr>) -> Option<Expr>,
    ) -> Option<Callable> {
        let types: Vec<Ty> = given?.iter().map(|(ty, _)| with_reals(ty)).collect();
        let closure = self.framed(FrameKind::Closure, |body| {
            let params: Vec<LocalId> = types.iter().map(|ty| body.hidden(ty.clone(), span)).collect();
            let args = params.iter().zip(&types).map(|(local, ty)| local_expr(*local, ty, span)).collect();
            let value = call(body, args)?;
            let ty = Ty::Fn(types.clone(), Box::new(value.ty.clone()));
            Some(Expr { kind: ExprKind::Lambda { params, body: Box::new(value) }, ty, span })
        })?;
        let names = vec![None; types.len()];
        self.bound_callable(closure, names, what)
    }

    fn callable_item(&mut self, id: FnId, given: Given<'_>, span: Span) -> Option<Callable> {
        self.cx.fns[id].used = true;
        let signature = self.cx.fns[id].signature.clone()?;
        let name = self.cx.fns[id].name.clone();
        let what = format!("`{name}`");
        if let Some(param) = signature.params.iter().find(|p| matches!(p.ty, Ty::Fn(..))) {
            let error = Diagnostic::error(
                "E0907",
                format!("`{name}` takes a function: its derivative cannot be written like this"),
                span,
                format!("`{}` is a function", param.name.text),
            );
            self.cx.report(error.with_help(format!("give a closure the rest of the arguments: `|x| {name}(…, x)`")));
            return None;
        }
        let mut solver = Solver::new(signature.dims.len());
        if let Some(given) = given {
            if given.len() != signature.params.len() {
                let declared = self.cx.fns[id].span;
                self.wrong_count(&name, &count(signature.params.len()), given.len(), span, Some(declared));
                return None;
            }
            let arrays = given.iter().any(|(ty, _)| matches!(ty, Ty::Array(..)));
            if self.cx.fns[id].elementwise && arrays {
                let types = signature.clone();
                return self.wrapped_callable(Some(given), what, span, |body, args| {
                    body.call_elementwise(id, &types, args, span)
                });
            }
            for (i, (ty, at)) in given.iter().enumerate() {
                if !solver.unify(&signature.params[i].ty, ty, i) {
                    self.wrong_given("E0302", id, i, ty, *at);
                    return None;
                }
            }
            if let Err(i) = solver.solve() {
                let (ty, at) = &given[i];
                self.wrong_given("E0303", id, i, ty, *at);
                return None;
            }
        }
        let dims = match solver.solution() {
            Ok(dims) => dims,
            Err(dim) => {
                self.unknown_dim(&name, &signature.dims[dim], span);
                return None;
            }
        };
        let params = signature.params.iter().map(|p| substitute(&p.ty, &dims)).collect::<Option<Vec<Ty>>>()?;
        let ret = substitute(&signature.ret, &dims)?;
        let ty = Ty::Fn(params.clone(), Box::new(ret.clone()));
        Some(Callable {
            code: Code::Value(Expr { kind: ExprKind::Function(id, dims), ty, span }),
            params,
            ret,
            names: signature.params.iter().map(|p| Some(p.name.text.clone())).collect(),
            shared: signature.params.iter().map(|p| p.shared).collect(),
            what,
            setup: Vec::new(),
        })
    }

    fn wrong_given(&mut self, code: &'static str, id: FnId, i: usize, ty: &Ty, at: Span) {
        let Some(signature) = self.cx.fns[id].signature.clone() else {
            return;
        };
        let param = &signature.params[i];
        let (wanted, found) = (self.cx.show(&param.ty, &signature.dims), self.show(ty));
        let name = &self.cx.fns[id].name;
        let error = Diagnostic::error(
            code,
            format!("`{name}` takes {wanted} for `{}`, found {found}", param.name.text),
            at,
            format!("this is {found}"),
        );
        self.cx.report(error.with_label(param.name.span, "the parameter is declared here"));
    }

    // ---- wrt

    /// Positions of the parameters with respect to which: the first unless `wrt` says otherwise.
    fn wrt(&mut self, written: Written<'_>, of: &Callable) -> Option<Vec<usize>> {
        let mut found = None;
        for (name, value) in written.named {
            if &*name.text != "wrt" || found.is_some() {
                let (message, label) = match &*name.text {
                    "wrt" => ("`wrt` stands here twice".to_owned(), "again"),
                    other => (format!("`{}` has no argument `{other}`", written.name.text), "unknown argument"),
                };
                let error = Diagnostic::error("E0902", message, name.span, label);
                self.cx.report(error.with_help("several parameters are a tuple: `wrt = (w, b)`"));
                return None;
            }
            found = Some(value);
        }
        let Some(value) = found else {
            return if of.params.is_empty() { self.no_parameter(of, written.span) } else { Some(vec![0]) };
        };
        let parts: Vec<&ast::Expr> = match &value.kind {
            ast::ExprKind::Tuple(parts) if !parts.is_empty() => parts.iter().collect(),
            _ => vec![value],
        };
        let mut positions = Vec::new();
        for part in parts {
            let position = self.wrt_position(part, of)?;
            if positions.contains(&position) {
                let error = Diagnostic::error("E0903", "this parameter stands in `wrt` twice", part.span, "again");
                self.cx.report(error);
                return None;
            }
            positions.push(position);
        }
        Some(positions)
    }

    fn no_parameter(&mut self, of: &Callable, span: Span) -> Option<Vec<usize>> {
        let message = format!("{} has no parameters", of.what);
        self.cx.report(Diagnostic::error("E0903", message, span, "with respect to what?"));
        None
    }

    fn wrt_position(&mut self, part: &ast::Expr, of: &Callable) -> Option<usize> {
        let position = match &part.kind {
            ast::ExprKind::Path(path) if path.module.is_none() => {
                of.names.iter().position(|n| n.as_ref() == Some(&path.name.text))
            }
            ast::ExprKind::Int(Some(i)) => usize::try_from(*i).ok().filter(|i| *i < of.names.len()),
            ast::ExprKind::Error => return None,
            _ => None,
        };
        if position.is_some() {
            return position;
        }
        let named: Vec<String> = of.names.iter().flatten().map(|n| format!("`{n}`")).collect();
        let help = match (named.is_empty(), of.names.len()) {
            (_, 0) => "it has no parameters".to_owned(),
            (true, 1) => "its parameter has no name here: write its position, `wrt = 0`".to_owned(),
            (true, n) => format!("its parameters have no names here: write a position, 0 to {}", n - 1),
            (false, _) => format!("its parameters are {}", named.join(", ")),
        };
        let message = format!("this is no parameter of {}", of.what);
        let error = Diagnostic::error("E0903", message, part.span, "neither the name nor the position of one");
        self.cx.report(error.with_help(help));
        None
    }

    /// Reports what has no derivative by its types.
    fn check_differentiable(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<()> {
        let name = written.op.name();
        for i in wrt {
            let shown = of.names[*i].as_ref().map_or_else(|| format!("parameter {i}"), |n| n.to_string());
            if of.shared[*i] {
                let error = Diagnostic::error(
                    "E0905",
                    format!("`{shown}` of {} is shared: there is no derivative with respect to it", of.what),
                    written.span,
                    "it has one value for all lanes",
                );
                self.cx.report(
                    error.with_help("choose another parameter by `wrt = …`, or differentiate a closure: `|x| f(w, x)`"),
                );
                return None;
            }
            if let Some((path, dtype)) = self.cx.non_real(&of.params[*i], &shown) {
                let error = Diagnostic::error(
                    "E0904",
                    format!("`{name}` of {}: `{path}` is {dtype}", of.what),
                    written.span,
                    "there is no derivative with respect to it",
                );
                let help = if path == shown {
                    "choose a real parameter by `wrt = …`"
                } else {
                    "take the derivative of a closure of the real parts alone"
                };
                self.cx.report(error.with_help(help));
                return None;
            }
        }
        if written.op.of_scalar() && of.ret != Ty::Scalar(DType::Real) {
            let found = self.show(&of.ret);
            let error = Diagnostic::error(
                "E0906",
                format!("`{name}` needs a function that gives a real, {} gives {found}", of.what),
                written.span,
                format!("this gives {found}"),
            );
            self.cx.report(error.with_help("of other functions there are `jacobian(f)(x)` and `vjp(f)(x, v)`"));
            return None;
        }
        let empty = elements(&of.ret).is_none() && self.cx.leaves(&of.ret) <= 1;
        let wrong = match self.cx.non_real(&of.ret, "") {
            Some((path, dtype)) if path.is_empty() => Some(format!("{} gives {dtype}", of.what)),
            Some((path, dtype)) => Some(format!("`{}` of what {} gives is {dtype}", &path[1..], of.what)),
            None if empty => Some(format!("{} gives nothing", of.what)),
            None => None,
        };
        if let Some(message) = wrong {
            let error = Diagnostic::error(
                "E0906",
                format!("`{name}` needs a function that gives reals: {message}"),
                written.span,
                "there is no derivative of it",
            );
            self.cx.report(
                error.with_help("take the derivative of a closure that gives the real parts alone: `|x| f(x).0`"),
            );
            return None;
        }
        Some(())
    }

    fn jacobian_type(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<Ty> {
        let argument = self.array_parameter(written, of, wrt)?;
        match elements(&of.ret) {
            Some((_, dims)) if dims.len() <= 2 => {
                let mut shape = dims.to_vec();
                shape.extend(argument);
                Some(of_shape(DType::Real, &shape))
            }
            _ => {
                let found = self.show(&of.ret);
                self.no_jacobian(written, format!("{} gives {found}", of.what))
            }
        }
    }

    fn hessian_type(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<Ty> {
        let argument = self.array_parameter(written, of, wrt)?;
        let mut shape = argument.clone();
        shape.extend(argument);
        Some(of_shape(DType::Real, &shape))
    }

    /// The extents of the one parameter with respect to which.
    fn array_parameter(&mut self, written: Written<'_>, of: &Callable, wrt: &[usize]) -> Option<Vec<crate::hir::Dim>> {
        let [i] = wrt else {
            return self.no_jacobian(written, "`wrt` names several parameters".to_owned());
        };
        match elements(&of.params[*i]) {
            Some((_, dims)) if dims.len() <= 2 => Some(dims.to_vec()),
            _ => {
                let found = self.show(&of.params[*i]);
                self.no_jacobian(written, format!("the parameter is {found}"))
            }
        }
    }

    fn no_jacobian<T>(&mut self, written: Written<'_>, why: String) -> Option<T> {
        let name = written.op.name();
        let error = Diagnostic::error(
            "E0907",
            format!("`{name}` is of one real, vector or matrix by one real, vector or matrix: {why}"),
            written.span,
            "no array has this shape",
        );
        self.cx.report(error.with_help("take one at a time, or `vjp(f)(x, v)` and `jvp(f)(x, v)`"));
        None
    }

    // ---- making the expression

    /// The value of a function or a derivative at arguments.
    fn apply(&mut self, callable: &Callable, mut args: Vec<Expr>, span: Span) -> Option<Expr> {
        let derivative = match &callable.code {
            Code::Value(function) => {
                let callee = match &function.kind {
                    ExprKind::Function(id, dims) => Callee::Fn(*id, dims.clone()),
                    ExprKind::FunctionLocal(local) => Callee::Local(*local),
                    _ => return None,
                };
                return Some(Expr { kind: ExprKind::Call(callee, args), ty: callable.ret.clone(), span });
            }
            Code::Derivative(derivative) => derivative,
        };
        let direction = if derivative.op.has_direction() { args.pop() } else { None };
        let op = match derivative.op {
            Operator::Grad => Derivative::Grad,
            Operator::ValueAndGrad => Derivative::ValueAndGrad,
            Operator::Jvp => Derivative::Jvp,
            Operator::Vjp => Derivative::Vjp,
            Operator::Jacobian => return self.apply_jacobian(derivative, callable.ret.clone(), args),
            Operator::Hessian => return self.apply_hessian(derivative, callable.ret.clone(), args),
        };
        self.derive(op, &derivative.of, &derivative.wrt, args, direction, callable.ret.clone(), span)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of the node that it makes")]
    fn derive(
        &mut self,
        op: Derivative,
        of: &Callable,
        wrt: &[usize],
        args: Vec<Expr>,
        direction: Option<Expr>,
        ty: Ty,
        span: Span,
    ) -> Option<Expr> {
        if let Code::Value(function) = &of.code {
            let call = DerivativeCall { op, function: function.clone(), wrt: wrt.to_vec(), args, direction };
            return Some(Expr { kind: ExprKind::Derivative(Box::new(call)), ty, span });
        }
        let (setup, locals) = self.bind_args(args);
        let function = self.closure_over_some(of, wrt, &locals, span)?;
        let args = wrt.iter().map(|i| locals[*i].clone()).collect();
        let call = DerivativeCall { op, function, wrt: (0..wrt.len()).collect(), args, direction };
        Some(block(setup, Expr { kind: ExprKind::Derivative(Box::new(call)), ty, span }))
    }

    fn apply_jacobian(&mut self, derivative: &Differentiation, ty: Ty, args: Vec<Expr>) -> Option<Expr> {
        let Differentiation { of, wrt, span, .. } = derivative;
        let x = of.params[wrt[0]].clone();
        match (rank(&of.ret), rank(&x)) {
            (0, _) => self.derive(Derivative::Grad, of, wrt, args, None, x, *span),
            (_, 0) => self.slope(of, wrt, args, *span),
            (m, n) => {
                let name = match (m, n) {
                    (1, 1) => "jacobian_vector_vector",
                    (1, _) => "jacobian_vector_matrix",
                    (_, 1) => "jacobian_matrix_vector",
                    _ => "jacobian_matrix_matrix",
                };
                self.call_library(name, derivative, ty, args)
            }
        }
    }

    fn apply_hessian(&mut self, derivative: &Differentiation, ty: Ty, args: Vec<Expr>) -> Option<Expr> {
        let Differentiation { of, wrt, span, .. } = derivative;
        match rank(&of.params[wrt[0]]) {
            0 => {
                // The derivative of the gradient, which captures the other arguments.
                let real = Ty::Scalar(DType::Real);
                let (mut setup, locals) = self.bind_args(args);
                let inner = self.framed(FrameKind::Closure, |body| {
                    let param = body.hidden(real.clone(), *span);
                    let mut args = locals.clone();
                    args[wrt[0]] = local_expr(param, &real, *span);
                    let value = body.derive(Derivative::Grad, of, wrt, args, None, real.clone(), *span)?;
                    let ty = Ty::Fn(vec![real.clone()], Box::new(real.clone()));
                    Some(Expr {
                        kind: ExprKind::Lambda { params: vec![param], body: Box::new(value) },
                        ty,
                        span: *span,
                    })
                })?;
                let gradient = self.bound_callable(inner, vec![None], "the gradient".to_owned())?;
                setup.extend(gradient.setup.iter().cloned());
                let value = self.slope(&gradient, &[0], vec![locals[wrt[0]].clone()], *span)?;
                Some(block(setup, value))
            }
            1 => self.call_library("hessian_vector", derivative, ty, args),
            _ => self.call_library("hessian_matrix", derivative, ty, args),
        }
    }

    /// The derivative with respect to a real.
    fn slope(&mut self, of: &Callable, wrt: &[usize], args: Vec<Expr>, span: Span) -> Option<Expr> {
        let one = literal(Scalar::Real(1.0), span);
        let pair = Ty::Tuple(vec![of.ret.clone(), of.ret.clone()]);
        let both = self.derive(Derivative::Jvp, of, wrt, args, Some(one), pair, span)?;
        Some(Expr { kind: ExprKind::Field(Box::new(both), 1), ty: of.ret.clone(), span })
    }

    /// A call of a function of the library that takes a function of one parameter and its argument.
    fn call_library(&mut self, name: &str, derivative: &Differentiation, ty: Ty, args: Vec<Expr>) -> Option<Expr> {
        let Differentiation { of, wrt, span, .. } = derivative;
        let Some(Def::Fn(id)) = self.cx.prelude_names.get(name).copied() else {
            return None;
        };
        self.cx.fns[id].used = true;
        let signature = self.cx.fns[id].signature.clone()?;
        let (setup, locals) = self.bind_args(args);
        let function = match &of.code {
            Code::Value(function) if of.params.len() == 1 && !of.shared[0] => function.clone(),
            _ => self.closure_over_some(of, wrt, &locals, *span)?,
        };
        let operands = vec![function, locals[wrt[0]].clone()];
        let mut solver = Solver::new(signature.dims.len());
        for (i, operand) in operands.iter().enumerate() {
            solver.unify(&signature.params[i].ty, &operand.ty, i);
        }
        solver.solve().ok()?;
        let dims = solver.solution().ok()?;
        let call = Expr { kind: ExprKind::Call(Callee::Fn(id, dims), operands), ty, span: *span };
        Some(block(setup, call))
    }

    /// Binds arguments to locals, so that closures can capture them.
    fn bind_args(&mut self, args: Vec<Expr>) -> (Vec<Stmt>, Vec<Expr>) {
        let mut setup = Vec::new();
        let mut locals = Vec::new();
        for arg in args {
            let (ty, span) = (arg.ty.clone(), arg.span);
            let local = self.hidden(ty.clone(), span);
            setup.push(bind(local, arg));
            locals.push(local_expr(local, &ty, span));
        }
        (setup, locals)
    }

    /// A closure of all parameters that calls.
    fn closure_over(&mut self, callable: &Callable, captured: &[Expr], span: Span) -> Option<Expr> {
        let all: Vec<usize> = (0..callable.params.len()).collect();
        self.closure_over_some(callable, &all, captured, span)
    }

    /// A closure of the parameters at these positions that calls with captured values for the others.
    fn closure_over_some(
        &mut self,
        callable: &Callable,
        open: &[usize],
        captured: &[Expr],
        span: Span,
    ) -> Option<Expr> {
        let types: Vec<Ty> = open.iter().map(|i| callable.params[*i].clone()).collect();
        self.framed(FrameKind::Closure, |body| {
            let params: Vec<LocalId> = types.iter().map(|ty| body.hidden(ty.clone(), span)).collect();
            let args = (0..callable.params.len()).map(|i| match open.iter().position(|o| *o == i) {
                Some(at) => local_expr(params[at], &types[at], span),
                None => captured[i].clone(),
            });
            let args = args.collect();
            let value = body.apply(callable, args, span)?;
            let ty = Ty::Fn(types.clone(), Box::new(value.ty.clone()));
            Some(Expr { kind: ExprKind::Lambda { params, body: Box::new(value) }, ty, span })
        })
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

/// The type with reals in the place of ints, where it is a scalar or an array.
fn with_reals(ty: &Ty) -> Ty {
    match ty {
        Ty::Scalar(DType::Int) => Ty::Scalar(DType::Real),
        Ty::Array(DType::Int, dims) => Ty::Array(DType::Real, dims.clone()),
        ty => ty.clone(),
    }
}

fn rank(ty: &Ty) -> usize {
    elements(ty).map_or(0, |(_, dims)| dims.len())
}

fn local_expr(local: LocalId, ty: &Ty, span: Span) -> Expr {
    Expr { kind: ExprKind::Local(local), ty: ty.clone(), span }
}

fn bind(local: LocalId, value: Expr) -> Stmt {
    let span = value.span;
    Stmt { kind: StmtKind::Let(Pattern::Local(local), value), span }
}

/// A value after what it needs.
fn block(setup: Vec<Stmt>, value: Expr) -> Expr {
    if setup.is_empty() {
        return value;
    }
    let (ty, span) = (value.ty.clone(), value.span);
    Expr { kind: ExprKind::Block(setup, Some(Box::new(value))), ty, span }
}
