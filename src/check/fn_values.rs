//! Functions as values: names and closures given to parameters of function type, or bound by `let`.

use crate::base::{Diagnostic, Span};
use crate::hir::{Expr, ExprKind, FnId, Ty};
use crate::syntax::ast;

use super::body::{Body, FrameKind, Inner, Origin};
use super::context::Def;
use super::dims::Solver;
use super::names::{Found, Lookup};

impl Body<'_, '_> {
    /// The value of a `let` without a type: functions are allowed.
    pub(super) fn let_value(&mut self, value: &ast::Expr) -> Option<Expr> {
        if self.is_function(value) { self.fn_of_its_own_type(value) } else { self.expr(value) }
    }

    fn is_function(&mut self, value: &ast::Expr) -> bool {
        match &value.kind {
            ast::ExprKind::Lambda { .. } => true,
            ast::ExprKind::Call { .. } => self.is_derivative(value),
            ast::ExprKind::Path(path) => match self.inner(path) {
                Some(Inner::Local(local)) => matches!(self.locals[local].ty, Ty::Fn(..)),
                Some(_) => false,
                // Errors about a module before the name are reported where the value is checked.
                None if path.module.is_some() => {
                    let known = self.cx.diagnostics.len();
                    let found = self.cx.lookup(self.module, path);
                    self.cx.diagnostics.truncate(known);
                    is_function(&found)
                }
                None => is_function(&self.cx.lookup(self.module, path)),
            },
            _ => false,
        }
    }

    /// A function whose type does not come from where it stands.
    pub(super) fn fn_of_its_own_type(&mut self, value: &ast::Expr) -> Option<Expr> {
        match &value.kind {
            ast::ExprKind::Lambda { params, body } => {
                self.closure(params, body, &vec![None; params.len()], None, value.span)
            }
            ast::ExprKind::Path(path) => self.named_fn(path, None, value.span),
            _ if self.is_derivative(value) => self.derivative_value(value, None),
            _ => self.not_a_function(value),
        }
    }

    /// A function of the type `expected`.
    pub(super) fn fn_value(&mut self, value: &ast::Expr, expected: &Ty) -> Option<Expr> {
        match &value.kind {
            ast::ExprKind::Lambda { params, body } => self.closure_of(params, body, expected, value.span),
            ast::ExprKind::Path(path) => self.named_fn(path, Some(expected), value.span),
            _ if self.is_derivative(value) => self.derivative_value(value, Some(expected)),
            _ => self.not_a_function(value),
        }
    }

    pub(super) fn not_a_function(&mut self, value: &ast::Expr) -> Option<Expr> {
        let found = self.expr(value)?;
        let shown = self.show(&found.ty);
        self.needs_function(&shown, value.span);
        None
    }

    fn needs_function(&mut self, found: &str, span: Span) {
        let error = Diagnostic::error(
            "E0307",
            format!("a function is needed here, found {found}"),
            span,
            format!("this is {found}"),
        );
        self.cx.report(error.with_help("pass the name of a function, or a closure `|x| …`"));
    }

    /// Reports a function of another type than is needed.
    pub(super) fn wrong_fn(&mut self, wanted: &str, found: &Ty, span: Span) {
        let found = self.show(found);
        let error = Diagnostic::error(
            "E0308",
            format!("{wanted} is needed here, found {found}"),
            span,
            format!("this is {found}"),
        );
        self.cx.report(error.with_help("wrap it in a closure that converts: `|x| …`"));
    }

    pub(super) fn named_fn(&mut self, path: &ast::Path, expected: Option<&Ty>, span: Span) -> Option<Expr> {
        match self.inner(path) {
            Some(Inner::Broken) => return None,
            Some(Inner::Dim(_)) => {
                self.needs_function("an int", span);
                return None;
            }
            Some(Inner::Local(local)) => {
                self.info[local].used = true;
                let ty = self.locals[local].ty.clone();
                if !matches!(ty, Ty::Fn(..)) {
                    let found = self.show(&ty);
                    self.needs_function(&found, span);
                    return None;
                }
                if let Some(expected) = expected.filter(|e| **e != ty) {
                    let wanted = self.show(expected);
                    self.wrong_fn(&wanted, &ty, span);
                    return None;
                }
                let kind = ExprKind::FunctionLocal(local);
                return Some(Expr { kind, ty, span });
            }
            None => {}
        }
        match self.cx.lookup(self.module, path) {
            Lookup::Found(Found::Def(Def::Fn(id))) => self.item_fn(id, expected, span),
            Lookup::Found(Found::Builtin(builtin)) => {
                let name = path.name.text.clone();
                match expected {
                    Some(expected) => {
                        self.wrapped(expected, span, |body, args| body.builtin_call(builtin, &name, args, span))
                    }
                    None => self.needs_types(&name, span),
                }
            }
            Lookup::Found(Found::StopGradient) => self.needs_types("stop_gradient", span),
            Lookup::Found(Found::Derivative(op)) => {
                self.derivative_as_value(op, &[], span);
                None
            }
            Lookup::Found(Found::Def(_)) => {
                let found = format!("`{}`", path.name.text);
                self.needs_function(&found, span);
                None
            }
            Lookup::Silent => None,
            Lookup::Unknown => {
                self.unknown_name("E0102", &path.name);
                None
            }
        }
    }

    fn needs_types(&mut self, name: &str, span: Span) -> Option<Expr> {
        let error = Diagnostic::error(
            "E0309",
            format!("the type of `{name}` is not known here"),
            span,
            "it takes scalars and arrays",
        );
        let help = format!("write the types: `|x: real| {name}(x)`");
        self.cx.report(error.with_help(help));
        None
    }

    fn item_fn(&mut self, id: FnId, expected: Option<&Ty>, span: Span) -> Option<Expr> {
        self.cx.fns[id].used = true;
        let signature = self.cx.fns[id].signature.clone()?;
        let name = self.cx.fns[id].name.clone();
        if let Some(shared) = signature.params.iter().find(|p| p.shared) {
            let error = Diagnostic::error(
                "E0503",
                format!("`{name}` has a shared parameter: it cannot be passed as a function"),
                span,
                "who calls it does not know what is shared",
            );
            let error = error.with_label(shared.name.span, "shared here");
            self.cx
                .report(error.with_help(format!("pass a closure that captures the shared value: `|w| {name}(w, x)`")));
            return None;
        }
        let params: Vec<Ty> = signature.params.iter().map(|p| p.ty.clone()).collect();
        let own = Ty::Fn(params, Box::new(signature.ret.clone()));
        let mut solver = Solver::new(signature.dims.len());
        if let Some(expected) = expected {
            let fits = solver.unify(&own, expected, 0) && solver.solve().is_ok();
            if !fits {
                if self.cx.fns[id].elementwise {
                    return self.wrapped(expected, span, |body, args| {
                        if args.len() == signature.params.len() {
                            return body.call_elementwise(id, &signature, args, span);
                        }
                        let wanted = super::call::count(signature.params.len());
                        body.wrong_count(&name, &wanted, args.len(), span, None);
                        None
                    });
                }
                let wanted = self.show(expected);
                let found = self.cx.show(&own, &signature.dims);
                let error = Diagnostic::error(
                    "E0308",
                    format!("{wanted} is needed here, but `{name}` is {found}"),
                    span,
                    format!("this is {found}"),
                );
                self.cx.report(error.with_help("wrap it in a closure that converts: `|x| …`"));
                return None;
            }
        }
        match solver.solution() {
            Ok(dims) => Some(Expr { ty: own.substitute(&dims)?, kind: ExprKind::Function(id, dims), span }),
            Err(dim) => {
                self.unknown_dim(&name, &signature.dims[dim], span);
                None
            }
        }
    }

    /// A closure of the type `expected` around a call.
    fn wrapped(
        &mut self,
        expected: &Ty,
        span: Span,
        call: impl FnOnce(&mut Self, Vec<Expr>) -> Option<Expr>,
    ) -> Option<Expr> {
        let Ty::Fn(types, ret) = expected else {
            return None;
        };
        self.framed(FrameKind::Closure, span, |body| {
            let params: Vec<_> = types.iter().map(|ty| body.hidden(ty.clone(), span)).collect();
            let args = params.iter().zip(types).map(|(local, ty)| Expr {
                kind: ExprKind::Local(*local),
                ty: ty.clone(),
                span,
            });
            let value = call(body, args.collect())?;
            let value = body.coerce(value, ret)?;
            Some(Expr { kind: ExprKind::Lambda { params, body: Box::new(value) }, ty: expected.clone(), span })
        })
    }

    /// A closure of the type `expected`.
    fn closure_of(
        &mut self,
        params: &[(ast::Name, Option<ast::TypeExpr>)],
        value: &ast::Expr,
        expected: &Ty,
        span: Span,
    ) -> Option<Expr> {
        let Ty::Fn(types, ret) = expected else {
            return None;
        };
        if types.len() != params.len() {
            let wanted = self.show(expected);
            let error = Diagnostic::error(
                "E0308",
                format!("{wanted} is needed here"),
                span,
                format!("this closure takes {}", super::call::count(params.len())),
            );
            self.cx.report(error);
            return None;
        }
        let types: Vec<Option<Ty>> = types.iter().cloned().map(Some).collect();
        self.closure(params, value, &types, Some(&**ret), span)
    }

    /// A closure whose parameters have these types, where they are known, and that gives `ret`, where that is known.
    pub(super) fn closure(
        &mut self,
        params: &[(ast::Name, Option<ast::TypeExpr>)],
        value: &ast::Expr,
        types: &[Option<Ty>],
        ret: Option<&Ty>,
        span: Span,
    ) -> Option<Expr> {
        let found: Vec<Option<Ty>> = (params.iter().zip(types))
            .map(|((name, written), ty)| self.closure_param(name, written.as_ref(), ty.as_ref()))
            .collect();
        self.framed(FrameKind::Closure, span, |body| {
            let mut locals = Vec::new();
            for ((name, _), ty) in params.iter().zip(&found) {
                match ty {
                    Some(ty) => locals.push(body.declare(name, ty.clone(), Origin::ClosureParam, false)),
                    None => body.declare_broken(name),
                }
            }
            let value = body.operand(value)?;
            let types: Vec<Ty> = found.into_iter().collect::<Option<_>>()?;
            let value = match ret {
                Some(ret) => {
                    let message = format!("the closure gives {}", body.show(ret));
                    body.coerce_to(value, ret, |found| (message, format!("this is {found}")))?
                }
                None => value,
            };
            let ty = Ty::Fn(types, Box::new(value.ty.clone()));
            let kind = ExprKind::Lambda { params: locals, body: Box::new(value) };
            Some(Expr { kind, ty, span })
        })
    }

    fn closure_param(
        &mut self,
        name: &ast::Name,
        written: Option<&ast::TypeExpr>,
        expected: Option<&Ty>,
    ) -> Option<Ty> {
        let Some(written) = written else {
            if expected.is_none() {
                let error = Diagnostic::error(
                    "E0309",
                    format!("the type of `{}` is not known here", name.text),
                    name.span,
                    "nothing says what it is",
                );
                let help = format!("write it: `|{}: real| …`", name.text);
                self.cx.report(error.with_help(help));
            }
            return expected.cloned();
        };
        let dims = self.dims.clone();
        let ty = self.cx.resolve_type(self.module, &dims, written);
        let ty = (self.cx).refuse_fn(ty, written.span, "a closure takes values only")?;
        if let Some(expected) = expected.filter(|e| **e != ty) {
            let (wanted, found) = (self.show(expected), self.show(&ty));
            let error = Diagnostic::error(
                "E0308",
                format!("`{}` is {wanted} here, not {found}", name.text),
                written.span,
                format!("{wanted} is passed"),
            );
            self.cx.report(error);
            return None;
        }
        Some(ty)
    }
}

fn is_function(found: &Lookup) -> bool {
    matches!(
        found,
        Lookup::Found(Found::Builtin(_) | Found::Derivative(_) | Found::StopGradient | Found::Def(Def::Fn(_)))
    )
}
