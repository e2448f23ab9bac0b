//! The expression that a derivative becomes: a node, a closure around one, or a call of the library.

use crate::base::Span;
use crate::hir::{Callee, Derivative, DerivativeCall, Expr, ExprKind, LocalId, Pattern, Stmt, StmtKind, Ty};
use crate::types::{DType, Scalar};

use super::{Callable, Code, Differentiation, Operator};
use crate::check::body::{Body, FrameKind};
use crate::check::context::Def;
use crate::check::dims::Solver;
use crate::check::expr::literal;
use crate::check::types::elements;

impl Body<'_, '_> {
    /// The value of a function or a derivative at arguments.
    pub(super) fn apply(&mut self, callable: &Callable, mut args: Vec<Expr>, span: Span) -> Option<Expr> {
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
            Operator::Attempt => return self.apply_attempt(derivative, args),
        };
        self.derive(op, &derivative.of, &derivative.wrt, args, direction, callable.ret.clone(), span)
    }

    fn apply_attempt(&mut self, attempt: &Differentiation, args: Vec<Expr>) -> Option<Expr> {
        let Differentiation { of, span, .. } = attempt;
        let call = |function: Expr, args: Vec<Expr>| {
            let kind = ExprKind::Attempt(Box::new(function), args);
            Expr { kind, ty: of.ret.clone(), span: *span }
        };
        if let Code::Value(function) = &of.code {
            return Some(call(function.clone(), args));
        }
        // shared arguments are captured, so that they stay shared
        let (setup, locals) = self.bind_args(args);
        let open: Vec<usize> = (0..of.params.len()).filter(|i| !of.shared[*i]).collect();
        let function = self.closure_over_some(of, &open, &locals, *span)?;
        let args = open.iter().map(|i| locals[*i].clone()).collect();
        Some(block(setup, call(function, args)))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of the node that it makes")]
    pub(super) fn derive(
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

    pub(super) fn apply_jacobian(&mut self, derivative: &Differentiation, ty: Ty, args: Vec<Expr>) -> Option<Expr> {
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

    pub(super) fn apply_hessian(&mut self, derivative: &Differentiation, ty: Ty, args: Vec<Expr>) -> Option<Expr> {
        let Differentiation { of, wrt, span, .. } = derivative;
        match rank(&of.params[wrt[0]]) {
            0 => {
                // The derivative of the gradient, which captures the other arguments.
                let real = Ty::Scalar(DType::Real);
                let (mut setup, locals) = self.bind_args(args);
                let inner = self.framed(FrameKind::Closure, *span, |body| {
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
    pub(super) fn slope(&mut self, of: &Callable, wrt: &[usize], args: Vec<Expr>, span: Span) -> Option<Expr> {
        let one = literal(Scalar::Real(1.0), span);
        let pair = Ty::Tuple(vec![of.ret.clone(), of.ret.clone()]);
        let both = self.derive(Derivative::Jvp, of, wrt, args, Some(one), pair, span)?;
        Some(Expr { kind: ExprKind::Field(Box::new(both), 1), ty: of.ret.clone(), span })
    }

    /// A call of a function of the library that takes a function of one parameter and its argument.
    pub(super) fn call_library(
        &mut self,
        name: &str,
        derivative: &Differentiation,
        ty: Ty,
        args: Vec<Expr>,
    ) -> Option<Expr> {
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
    pub(super) fn bind_args(&mut self, args: Vec<Expr>) -> (Vec<Stmt>, Vec<Expr>) {
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
    pub(super) fn closure_over(&mut self, callable: &Callable, captured: &[Expr], span: Span) -> Option<Expr> {
        let all: Vec<usize> = (0..callable.params.len()).collect();
        self.closure_over_some(callable, &all, captured, span)
    }

    /// A closure of the parameters at these positions that calls with captured values for the others.
    pub(super) fn closure_over_some(
        &mut self,
        callable: &Callable,
        open: &[usize],
        captured: &[Expr],
        span: Span,
    ) -> Option<Expr> {
        let types: Vec<Ty> = open.iter().map(|i| callable.params[*i].clone()).collect();
        self.framed(FrameKind::Closure, span, |body| {
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
}

fn rank(ty: &Ty) -> usize {
    elements(ty).map_or(0, |(_, dims)| dims.len())
}

pub(super) fn local_expr(local: LocalId, ty: &Ty, span: Span) -> Expr {
    Expr { kind: ExprKind::Local(local), ty: ty.clone(), span }
}

pub(super) fn bind(local: LocalId, value: Expr) -> Stmt {
    let span = value.span;
    Stmt { kind: StmtKind::Let(Pattern::Local(local), value), span }
}

/// A value after what it needs.
pub(super) fn block(setup: Vec<Stmt>, value: Expr) -> Expr {
    if setup.is_empty() {
        return value;
    }
    let (ty, span) = (value.ty.clone(), value.span);
    Expr { kind: ExprKind::Block(setup, Some(Box::new(value))), ty, span }
}
