//! What is differentiated: a function, a closure, a builtin, a parameter of function type, or a derivative.

use std::sync::Arc;

use crate::base::{Diagnostic, Span};
use crate::hir::{Expr, ExprKind, FnId, LocalId, Ty};
use crate::syntax::ast;
use crate::types::DType;

use super::make::{bind, local_expr};
use super::{Callable, Code, Given};
use crate::check::body::{Body, FrameKind};
use crate::check::call::count;
use crate::check::context::Def;
use crate::check::dims::Solver;
use crate::check::names::{Found, Lookup};

impl Body<'_, '_> {
    pub(super) fn callable(&mut self, function: &ast::Expr, given: Given<'_>) -> Option<Callable> {
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

    pub(super) fn callable_closure(
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
    pub(super) fn bound_callable(
        &mut self,
        closure: Expr,
        names: Vec<Option<Arc<str>>>,
        what: String,
    ) -> Option<Callable> {
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

    pub(super) fn callable_path(&mut self, path: &ast::Path, given: Given<'_>, span: Span) -> Option<Callable> {
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
    pub(super) fn wrapped_callable(
        &mut self,
        given: Given<'_>,
        what: String,
        span: Span,
        call: impl FnOnce(&mut Self, Vec<Expr>) -> Option<Expr>,
    ) -> Option<Callable> {
        let types: Vec<Ty> = given?.iter().map(|(ty, _)| with_reals(ty)).collect();
        let closure = self.framed(FrameKind::Closure, span, |body| {
            let params: Vec<LocalId> = types.iter().map(|ty| body.hidden(ty.clone(), span)).collect();
            let args = params.iter().zip(&types).map(|(local, ty)| local_expr(*local, ty, span)).collect();
            let value = call(body, args)?;
            let ty = Ty::Fn(types.clone(), Box::new(value.ty.clone()));
            Some(Expr { kind: ExprKind::Lambda { params, body: Box::new(value) }, ty, span })
        })?;
        let names = vec![None; types.len()];
        self.bound_callable(closure, names, what)
    }

    pub(super) fn callable_item(&mut self, id: FnId, given: Given<'_>, span: Span) -> Option<Callable> {
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
        let params = signature.params.iter().map(|p| p.ty.substitute(&dims)).collect::<Option<Vec<Ty>>>()?;
        let ret = signature.ret.substitute(&dims)?;
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

    pub(super) fn wrong_given(&mut self, code: &'static str, id: FnId, i: usize, ty: &Ty, at: Span) {
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
}

/// The type with reals in the place of ints, where it is a scalar or an array.
fn with_reals(ty: &Ty) -> Ty {
    match ty {
        Ty::Scalar(DType::Int) => Ty::Scalar(DType::Real),
        Ty::Array(DType::Int, dims) => Ty::Array(DType::Real, dims.clone()),
        ty => ty.clone(),
    }
}
