//! Calls: what is called, its arguments, and the dimensions that follow from them.

use std::sync::Arc;

use crate::base::{Diagnostic, Span};
use crate::hir::{Callee, Dim, Expr, ExprKind, FnId, LocalId, Ty};
use crate::syntax::ast;

use super::body::{Body, Inner};
use super::builtins::builtin;
use super::context::{Def, Signature};
use super::dims::Solver;
use super::names::{Found, Lookup};

/// Functions of the library that Stan overloads by the number of arguments: name, number, and the name here.
const OVERLOADS: &[(&str, usize, &str)] = &[("log_mix", 2, "log_mix_of"), ("log_sum_exp", 2, "log_add_exp")];

impl Body<'_, '_> {
    /// `callee(args, name = value)`
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        args: &[ast::Expr],
        named: &[(ast::Name, ast::Expr)],
        span: Span,
    ) -> Option<Expr> {
        match &callee.kind {
            ast::ExprKind::Path(path) if !self.is_operator(path) => self.refuse_named(&path.name.text, named),
            _ => {}
        }
        if let Some(value) = self.derivative_call(callee, args, span) {
            self.refuse_named("a derivative", named);
            return value;
        }
        let ast::ExprKind::Path(path) = &callee.kind else {
            let value = self.expr_or_closure(callee);
            self.args_only(args);
            if let Some(ty) = value {
                self.not_callable(&self.show(&ty), callee.span, Some("bind it with `let` first"));
            }
            return None;
        };
        match self.inner(path) {
            Some(Inner::Broken) => {
                self.args_only(args);
                return None;
            }
            Some(Inner::Dim(_)) => {
                self.args_only(args);
                let what = format!("the dimension `{}`", path.name.text);
                self.not_callable(&what, callee.span, None);
                return None;
            }
            Some(Inner::Local(local)) => return self.call_local(local, &path.name, args, span),
            None => {}
        }
        let found = self.cx.lookup(self.module, path);
        let found = self.overloaded(found, args.len());
        if let Lookup::Found(found) = found {
            self.cx.means_instead(&path.name, found);
        }
        match found {
            Lookup::Found(Found::Def(Def::Fn(id))) => self.call_fn(id, &path.name, args, span),
            Lookup::Found(Found::Builtin(builtin)) => {
                let values: Vec<_> = args.iter().map(|a| self.operand(a)).collect();
                let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
                self.builtin_call(builtin, &path.name.text, values, span)
            }
            Lookup::Found(Found::StopGradient) => {
                let values: Vec<_> = args.iter().map(|a| self.operand(a)).collect();
                let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
                self.stop_gradient(values, span)
            }
            Lookup::Found(Found::Derivative(op)) => {
                self.args_only(args);
                self.derivative_as_value(op, args, span);
                None
            }
            Lookup::Found(Found::Def(def)) => {
                self.args_only(args);
                let name = &path.name.text;
                let help = match def {
                    Def::Struct(_) => Some(format!("make one: `{name} {{ field: value }}`")),
                    _ => None,
                };
                self.not_callable(&format!("`{name}`"), callee.span, help.as_deref());
                None
            }
            Lookup::Silent => {
                self.args_only(args);
                None
            }
            Lookup::Unknown => {
                self.args_only(args);
                self.unknown_name("E0102", &path.name);
                None
            }
        }
    }

    /// What is meant by a function of the library with this number of arguments.
    fn overloaded(&self, found: Lookup, count: usize) -> Lookup {
        let Lookup::Found(Found::Def(Def::Fn(id))) = found else { return found };
        let def = &self.cx.fns[id];
        let is_meant = |(name, n, _): &&(&str, usize, &str)| *name == def.name && *n == count;
        let Some((.., other)) = OVERLOADS.iter().find(is_meant).filter(|_| self.cx.modules[def.module].std) else {
            return found;
        };
        let of_prelude = self.cx.prelude_names.get(*other).map(|def| Found::Def(*def));
        of_prelude.or_else(|| builtin(other).map(Found::Builtin)).map_or(found, Lookup::Found)
    }

    /// Reports arguments with a name.
    fn refuse_named(&mut self, callee: &str, named: &[(ast::Name, ast::Expr)]) {
        if let Some((name, _)) = named.first() {
            let message = format!("`{callee}` has no argument with the name `{}`", name.text);
            let error = Diagnostic::error("E0902", message, name.span, "arguments go by their position");
            self.cx.report(error.with_help("only a derivative takes one: `grad(f, wrt = w)(x, w)`"));
        }
    }

    /// The type of what is called, when it has one.
    fn expr_or_closure(&mut self, callee: &ast::Expr) -> Option<Ty> {
        match &callee.kind {
            ast::ExprKind::Lambda { .. } => Some(self.let_value(callee)?.ty),
            _ => Some(self.expr(callee)?.ty),
        }
    }

    fn not_callable(&mut self, what: &str, span: Span, help: Option<&str>) {
        let mut error =
            Diagnostic::error("E0301", format!("{what} cannot be called"), span, "not the name of a function");
        if let Some(help) = help {
            error = error.with_help(help);
        }
        self.cx.report(error);
    }

    /// Checks arguments for their own errors when nothing is known of what they are given to.
    pub(super) fn args_only(&mut self, args: &[ast::Expr]) {
        for arg in args {
            match &arg.kind {
                ast::ExprKind::Lambda { .. } => {}
                ast::ExprKind::Path(path) => self.mark_used(path),
                _ if self.is_derivative(arg) => {}
                _ => {
                    self.expr(arg);
                }
            }
        }
    }

    /// Marks what a path means as used; an unknown name is an error.
    fn mark_used(&mut self, path: &ast::Path) {
        match self.inner(path) {
            Some(Inner::Local(local)) => self.info[local].used = true,
            Some(_) => {}
            None => match self.cx.lookup(self.module, path) {
                Lookup::Found(Found::Def(Def::Fn(id))) => self.cx.fns[id].used = true,
                Lookup::Unknown => self.unknown_name("E0101", &path.name),
                _ => {}
            },
        }
    }

    pub(super) fn wrong_count(&mut self, name: &str, wanted: &str, given: usize, span: Span, declared: Option<Span>) {
        let mut error = Diagnostic::error(
            "E0304",
            format!("`{name}` takes {wanted}, {given} given"),
            span,
            format!("{given} given here"),
        );
        if let Some(declared) = declared {
            error = error.with_label(declared, "declared here");
        }
        self.cx.report(error);
    }

    fn call_local(&mut self, local: LocalId, name: &ast::Name, args: &[ast::Expr], span: Span) -> Option<Expr> {
        self.info[local].used = true;
        let Ty::Fn(params, ret) = self.locals[local].ty.clone() else {
            self.args_only(args);
            let found = self.show(&self.locals[local].ty);
            let what = format!("`{}` is {found}: it", name.text);
            let help = matches!(self.locals[local].ty, Ty::Array(..)).then(|| format!("index it: `{}[i]`", name.text));
            self.not_callable(&what, name.span, help.as_deref());
            return None;
        };
        if params.len() != args.len() {
            self.args_only(args);
            let declared = self.locals[local].span;
            let wanted = count(params.len());
            self.wrong_count(&name.text, &wanted, args.len(), span, Some(declared));
            return None;
        }
        let values: Vec<Option<Expr>> = (args.iter().zip(&params))
            .map(|(arg, ty)| {
                let value = self.operand(arg)?;
                let message = format!("`{}` takes {}", name.text, self.show(ty));
                self.coerce_arg(value, ty, &message)
            })
            .collect();
        Some(Expr {
            kind: ExprKind::Call(Callee::Local(local), values.into_iter().collect::<Option<_>>()?),
            ty: *ret,
            span,
        })
    }

    /// Converts an argument, or reports `message` and what was found.
    fn coerce_arg(&mut self, value: Expr, ty: &Ty, message: &str) -> Option<Expr> {
        match super::body::promote(value, ty) {
            Ok(value) => Some(value),
            Err(value) => {
                let found = self.show(&value.ty);
                let error = Diagnostic::error(
                    "E0302",
                    format!("{message}, found {found}"),
                    value.span,
                    format!("this is {found}"),
                );
                self.cx.report(error);
                None
            }
        }
    }

    fn call_fn(&mut self, id: FnId, name: &ast::Name, args: &[ast::Expr], span: Span) -> Option<Expr> {
        self.cx.fns[id].used = true;
        let Some(signature) = self.cx.fns[id].signature.clone() else {
            self.args_only(args);
            return None;
        };
        if args.len() != signature.params.len() {
            self.args_only(args);
            let declared = self.cx.fns[id].span;
            let wanted = count(signature.params.len());
            self.wrong_count(&name.text, &wanted, args.len(), span, Some(declared));
            return None;
        }
        let values: Vec<Option<Expr>> = (args.iter().zip(&signature.params))
            .map(|(arg, param)| match param.ty {
                Ty::Fn(..) => None,
                _ => self.operand(arg),
            })
            .collect();
        let function = |i: usize| matches!(signature.params[i].ty, Ty::Fn(..));
        if (0..args.len()).any(|i| values[i].is_none() && !function(i)) {
            let functions = (0..args.len()).filter(|i| function(*i));
            for i in functions {
                self.args_only(&args[i..=i]);
            }
            return None;
        }
        if self.cx.fns[id].elementwise {
            let values = values.into_iter().collect::<Option<_>>()?;
            return self.call_elementwise(id, &signature, values, span);
        }
        let mut solver = self.solve_values(id, &signature, &values)?;
        let mut operands = Vec::new();
        for (i, value) in values.into_iter().enumerate() {
            operands.push(match value {
                Some(value) => Some(value),
                None => self.function_arg(&mut solver, &signature, i, &args[i]),
            });
        }
        let operands: Vec<Expr> = operands.into_iter().collect::<Option<_>>()?;
        let dims = self.dim_args(id, &signature, &solver, span)?;
        self.finish_call(id, &signature, operands, dims, span)
    }

    /// What the arguments that are values say about the dimensions.
    fn solve_values(&mut self, id: FnId, signature: &Signature, values: &[Option<Expr>]) -> Option<Solver> {
        let mut solver = Solver::new(signature.dims.len());
        let mut ok = true;
        for (i, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            if !solver.unify(&signature.params[i].ty, &value.ty, i) {
                self.wrong_arg("E0302", id, signature, i, value, None);
                ok = false;
            }
        }
        if let (true, Err(i)) = (ok, solver.solve()) {
            let known = signature.dims.iter().zip(solver.solution_parts());
            let known: Vec<String> = known
                .filter_map(|((_, name), dim)| Some(format!("{name} = {}", dim.as_ref()?.display(&self.dims))))
                .collect();
            let note = (!known.is_empty()).then(|| format!("the arguments say {}", known.join(", ")));
            if let Some(value) = &values[i] {
                self.wrong_arg("E0303", id, signature, i, value, note);
            }
            ok = false;
        }
        ok.then_some(solver)
    }

    fn wrong_arg(
        &mut self,
        code: &'static str,
        id: FnId,
        signature: &Signature,
        i: usize,
        value: &Expr,
        note: Option<String>,
    ) {
        let param = &signature.params[i];
        let wanted = self.cx.show(&param.ty, &signature.dims);
        let found = self.show(&value.ty);
        let name = &self.cx.fns[id].name;
        let error = Diagnostic::error(
            code,
            format!("`{name}` takes {wanted} for `{}`, found {found}", param.name.text),
            value.span,
            format!("this is {found}"),
        );
        let mut error = error.with_label(param.name.span, "the parameter is declared here");
        if let Some(note) = note {
            error = error.with_note(note);
        }
        self.cx.report(error);
    }

    fn function_arg(&mut self, solver: &mut Solver, signature: &Signature, i: usize, arg: &ast::Expr) -> Option<Expr> {
        let param = &signature.params[i];
        if solver.knows(&param.ty) {
            let expected = param.ty.substitute(&solver.partial())?;
            return self.fn_value(arg, &expected);
        }
        // What is passed must say what the dimensions are.
        let value = self.fn_of_its_own_type(arg)?;
        let fits = solver.unify(&param.ty, &value.ty, i) && solver.solve().is_ok();
        if fits {
            return Some(value);
        }
        let wanted = self.cx.show(&param.ty, &signature.dims);
        self.wrong_fn(&wanted, &value.ty, value.span);
        None
    }

    fn dim_args(&mut self, id: FnId, signature: &Signature, solver: &Solver, span: Span) -> Option<Vec<Dim>> {
        match solver.solution() {
            Ok(dims) => Some(dims),
            Err(dim) => {
                let name = self.cx.fns[id].name.clone();
                self.unknown_dim(&name, &signature.dims[dim], span);
                None
            }
        }
    }

    /// Reports a dimension that nothing at the call determines.
    pub(super) fn unknown_dim(&mut self, name: &str, dim: &str, span: Span) {
        let error = Diagnostic::error(
            "E0306",
            format!("the dimension `{dim}` of `{name}` is not known here"),
            span,
            "nothing here determines it",
        );
        self.cx.report(error.with_help("pass a closure whose parameters have their types written"));
    }

    fn finish_call(
        &mut self,
        id: FnId,
        signature: &Arc<Signature>,
        operands: Vec<Expr>,
        dims: Vec<Dim>,
        span: Span,
    ) -> Option<Expr> {
        let mut args = Vec::new();
        for (param, value) in signature.params.iter().zip(operands) {
            let ty = param.ty.substitute(&dims)?;
            let wanted = self.show(&ty);
            let message = format!("`{}` takes {wanted}", self.cx.fns[id].name);
            args.push(self.coerce_arg(value, &ty, &message)?);
        }
        Some(Expr { ty: signature.ret.substitute(&dims)?, kind: ExprKind::Call(Callee::Fn(id, dims), args), span })
    }

    /// A call whose operands are checked already, of a function without function parameters.
    pub(super) fn call_with(
        &mut self,
        id: FnId,
        signature: &Arc<Signature>,
        operands: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        let values: Vec<Option<Expr>> = operands.iter().cloned().map(Some).collect();
        let solver = self.solve_values(id, signature, &values)?;
        let dims = self.dim_args(id, signature, &solver, span)?;
        self.finish_call(id, signature, operands, dims, span)
    }
}

/// `1 argument`, `2 arguments`
pub(super) fn count(n: usize) -> String {
    match n {
        0 => "no arguments".into(),
        1 => "1 argument".into(),
        n => format!("{n} arguments"),
    }
}
