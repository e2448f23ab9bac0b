//! `const`: evaluated while compiling.

use crate::base::{Diagnostic, Span};
use crate::hir::Ty;
use crate::prim::{Arithmetic, Class, Comparison, IntArithmetic, eval};
use crate::syntax::ast::{self, BinaryOp, ExprKind, ItemKind, UnaryOp};
use crate::types::{DType, Scalar};

use super::context::{Checker, ConstId, ConstState, Def};
use super::modules::ModuleId;
use super::names::{Found, Lookup};

/// Why two constants cannot be combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The operator does not take these types.
    Types,
    /// An overflow or a division by zero.
    Trap,
    /// Not done while compiling.
    NotConstant,
}

impl Checker<'_> {
    /// Evaluates all consts, so that their errors are reported.
    pub(super) fn evaluate_consts(&mut self) {
        let ids: Vec<ConstId> = self.consts.ids().collect();
        for id in ids {
            self.const_value(id);
        }
    }

    /// The value of a const; `None` when it has an error, which was reported.
    pub(super) fn const_value(&mut self, id: ConstId) -> Option<Scalar> {
        let (module, item) = (self.consts[id].module, self.consts[id].item);
        let ast = self.modules[module].ast.clone();
        let ItemKind::Const { name, ty, value } = &ast.items[item].kind else {
            unreachable!("the declaration put a const here");
        };
        match self.consts[id].state {
            ConstState::Done(value) => return value,
            ConstState::InProgress => {
                let error = Diagnostic::error(
                    "E0110",
                    format!("the const `{}` is defined by itself", name.text),
                    name.span,
                    "its value needs its value",
                );
                self.report(error);
                self.consts[id].state = ConstState::Done(None);
                return None;
            }
            ConstState::Unseen => {}
        }
        self.consts[id].state = ConstState::InProgress;
        let mut result = self.const_expr(module, value);
        if let Some(written) = ty {
            let ty = self.resolve_type(module, &crate::base::IdVec::new(), written);
            result = self.const_as(result, ty, value.span);
        }
        if matches!(self.consts[id].state, ConstState::InProgress) {
            self.consts[id].state = ConstState::Done(result);
        }
        match self.consts[id].state {
            ConstState::Done(value) => value,
            _ => None,
        }
    }

    fn const_as(&mut self, value: Option<Scalar>, ty: Option<Ty>, span: Span) -> Option<Scalar> {
        match (value?, ty?) {
            (value, Ty::Scalar(dtype)) if value.dtype() == dtype => Some(value),
            (Scalar::Int(i), Ty::Scalar(DType::Real)) => Some(Scalar::Real(i as f64)),
            (value, ty) => {
                let wanted = self.show(&ty, &crate::base::IdVec::new());
                self.report(Diagnostic::error(
                    "E0201",
                    format!("expected {wanted}, found {}", value.dtype()),
                    span,
                    "of another type than is written",
                ));
                None
            }
        }
    }

    fn const_expr(&mut self, module: ModuleId, expr: &ast::Expr) -> Option<Scalar> {
        match &expr.kind {
            ExprKind::Error => None,
            ExprKind::Bool(b) => Some(Scalar::Bool(*b)),
            ExprKind::Int(i) => i.map(Scalar::Int),
            ExprKind::Real(r) => Some(Scalar::Real(*r)),
            ExprKind::Path(path) => self.const_path(module, path),
            ExprKind::Unary(op, operand) => {
                let value = self.const_expr(module, operand)?;
                self.const_result(unary(*op, value), expr.span)
            }
            ExprKind::Binary(op, a, b) => {
                let a = self.const_expr(module, a);
                let b = self.const_expr(module, b);
                self.const_result(binary(*op, a?, b?), expr.span)
            }
            ExprKind::Call { callee, args, named } if named.is_empty() => match (&callee.kind, &args[..]) {
                (ExprKind::Path(path), [arg]) if path.module.is_none() => {
                    let value = self.const_expr(module, arg)?;
                    self.const_result(convert(&path.name.text, value), expr.span)
                }
                _ => self.not_constant(expr.span),
            },
            _ => self.not_constant(expr.span),
        }
    }

    fn const_path(&mut self, module: ModuleId, path: &ast::Path) -> Option<Scalar> {
        match self.lookup(module, path) {
            Lookup::Found(Found::Def(Def::Const(id))) => self.const_value(id),
            Lookup::Found(_) => self.not_constant(path.name.span),
            Lookup::Silent => None,
            Lookup::Unknown => {
                let name = &path.name.text;
                let mut error =
                    Diagnostic::error("E0101", format!("there is no `{name}` here"), path.name.span, "unknown name");
                if let Some(help) = self.suggest(module, name, &[]) {
                    error = error.with_help(help);
                }
                self.report(error);
                None
            }
        }
    }

    fn const_result(&mut self, result: Result<Scalar, Refusal>, span: Span) -> Option<Scalar> {
        match result {
            Ok(value) => Some(value),
            Err(Refusal::NotConstant) => self.not_constant(span),
            Err(Refusal::Types) => {
                self.report(Diagnostic::error(
                    "E0202",
                    "this operator does not take these constants",
                    span,
                    "wrong types",
                ));
                None
            }
            Err(Refusal::Trap) => {
                self.report(Diagnostic::error(
                    "E0112",
                    "this constant cannot be computed",
                    span,
                    "integer overflow or division by zero",
                ));
                None
            }
        }
    }

    fn not_constant(&mut self, span: Span) -> Option<Scalar> {
        let error = Diagnostic::error(
            "E0111",
            "a const is made of numbers, other consts and arithmetic",
            span,
            "not known while compiling",
        );
        self.report(error.with_help("make it a function without parameters"));
        None
    }
}

fn unary(op: UnaryOp, value: Scalar) -> Result<Scalar, Refusal> {
    match (op, value) {
        (UnaryOp::Neg, Scalar::Int(i)) => i.checked_neg().map(Scalar::Int).ok_or(Refusal::Trap),
        (UnaryOp::Neg, Scalar::Real(r)) => Ok(Scalar::Real(-r)),
        (UnaryOp::Not, Scalar::Bool(b)) => Ok(Scalar::Bool(!b)),
        _ => Err(Refusal::Types),
    }
}

fn convert(name: &str, value: Scalar) -> Result<Scalar, Refusal> {
    match (name, value) {
        ("real", Scalar::Int(i)) => Ok(Scalar::Real(i as f64)),
        ("real", Scalar::Real(_)) | ("int", Scalar::Int(_)) => Ok(value),
        ("int", Scalar::Bool(b)) => Ok(Scalar::Int(i64::from(b))),
        ("int", Scalar::Real(r)) => eval::to_int(r).map(Scalar::Int).map_err(|_| Refusal::Trap),
        ("real", _) => Err(Refusal::Types),
        ("sqrt", Scalar::Real(r)) => Ok(Scalar::Real(r.sqrt())),
        _ => Err(Refusal::NotConstant),
    }
}

/// The operator on constants.
pub(super) fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Result<Scalar, Refusal> {
    match (a, b) {
        (Scalar::Int(x), Scalar::Int(y)) => int_binary(op, x, y),
        (Scalar::Real(x), Scalar::Real(y)) => real_binary(op, x, y),
        (Scalar::Int(x), Scalar::Real(y)) => real_binary(op, x as f64, y),
        (Scalar::Real(x), Scalar::Int(y)) => real_binary(op, x, y as f64),
        (Scalar::Bool(x), Scalar::Bool(y)) => match op {
            BinaryOp::And => Ok(Scalar::Bool(x && y)),
            BinaryOp::Or => Ok(Scalar::Bool(x || y)),
            BinaryOp::Eq => Ok(Scalar::Bool(x == y)),
            BinaryOp::Ne => Ok(Scalar::Bool(x != y)),
            _ => Err(Refusal::Types),
        },
        _ => Err(Refusal::Types),
    }
}

fn int_binary(op: BinaryOp, x: i64, y: i64) -> Result<Scalar, Refusal> {
    let class = match op {
        BinaryOp::Add => Class::Arithmetic(Arithmetic::Add),
        BinaryOp::Sub => Class::Arithmetic(Arithmetic::Sub),
        BinaryOp::Mul => Class::Arithmetic(Arithmetic::Mul),
        BinaryOp::Div => Class::IntArithmetic(IntArithmetic::IntDiv),
        BinaryOp::Rem => Class::IntArithmetic(IntArithmetic::IntRem),
        BinaryOp::Pow => Class::IntArithmetic(IntArithmetic::IntPow),
        op => return comparison(op).map(|op| Scalar::Bool(eval::compare(op, x, y))).ok_or(Refusal::Types),
    };
    match eval::int_binary(class, x, y) {
        Some(Ok(value)) => Ok(Scalar::Int(value)),
        Some(Err(_)) => Err(Refusal::Trap),
        None => Err(Refusal::Types),
    }
}

fn real_binary(op: BinaryOp, x: f64, y: f64) -> Result<Scalar, Refusal> {
    Ok(Scalar::Real(match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Rem => x % y,
        // The machine has its own `pow`: what it computes must not depend on when it is computed.
        BinaryOp::Pow => return Err(Refusal::NotConstant),
        op => return comparison(op).map(|op| Scalar::Bool(eval::compare(op, x, y))).ok_or(Refusal::Types),
    }))
}

/// The comparison that an operator is; none of others.
fn comparison(op: BinaryOp) -> Option<Comparison> {
    Some(match op {
        BinaryOp::Eq => Comparison::Eq,
        BinaryOp::Ne => Comparison::Ne,
        BinaryOp::Lt => Comparison::Lt,
        BinaryOp::Le => Comparison::Le,
        BinaryOp::Gt => Comparison::Gt,
        BinaryOp::Ge => Comparison::Ge,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Pow => return None,
        BinaryOp::MatMul | BinaryOp::And | BinaryOp::Or => return None,
    })
}
