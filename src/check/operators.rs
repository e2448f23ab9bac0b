//! Prefix and infix operators: promotion, broadcasting, shapes.

use crate::base::{Diagnostic, Span};
use crate::hir::{Dim, Expr, ExprKind, Ty};
use crate::prim::Prim;
use crate::syntax::ast::{BinaryOp, UnaryOp};
use crate::types::{DType, Scalar};

use super::body::{Body, int_literal, prim, to_real};
use super::types::{elements, of_shape};

impl Body<'_, '_> {
    /// `op value`
    pub(super) fn unary(&mut self, op: UnaryOp, value: Expr, span: Span) -> Option<Expr> {
        let shape = elements(&value.ty).map(|(dtype, dims)| (dtype, dims.is_empty()));
        match (op, shape) {
            (UnaryOp::Not, Some((DType::Bool, _))) => {
                let ty = value.ty.clone();
                Some(prim(Prim::Not, vec![value], ty, span))
            }
            (UnaryOp::Neg, Some((DType::Int | DType::Real, _))) => Some(negate(value, span)),
            _ => {
                let symbol = if op == UnaryOp::Neg { "-" } else { "!" };
                let wanted = if op == UnaryOp::Neg { "numbers" } else { "bools" };
                let found = self.show(&value.ty);
                let error = Diagnostic::error(
                    "E0202",
                    format!("`{symbol}` takes {wanted}, found {found}"),
                    value.span,
                    format!("this is {found}"),
                );
                self.cx.report(error);
                None
            }
        }
    }

    /// `a op b`
    pub(super) fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        if let Some(folded) = fold(op, &a, &b, span) {
            return Some(folded);
        }
        if op == BinaryOp::MatMul {
            return self.matmul(a, b, span);
        }
        let (Some((x, xs)), Some((y, ys))) = (elements(&a.ty), elements(&b.ty)) else {
            return self.wrong_operands(op, &a, &b, span);
        };
        let scalars = xs.is_empty() && ys.is_empty();
        let bools = x == DType::Bool && y == DType::Bool;
        let numbers = x != DType::Bool && y != DType::Bool;
        match op {
            BinaryOp::And | BinaryOp::Or if bools && scalars => {
                let (a, b) = (Box::new(a), Box::new(b));
                let kind = if op == BinaryOp::And { ExprKind::And(a, b) } else { ExprKind::Or(a, b) };
                let ty = Ty::Scalar(DType::Bool);
                Some(Expr { kind, ty, span })
            }
            BinaryOp::And | BinaryOp::Or if !bools => self.wrong_operands(op, &a, &b, span),
            BinaryOp::Eq | BinaryOp::Ne if bools => {
                self.elementwise(comparison(op)?, vec![a, b], Some(DType::Bool), span)
            }
            BinaryOp::And => self.elementwise(Prim::And, vec![a, b], None, span),
            BinaryOp::Or => self.elementwise(Prim::Or, vec![a, b], None, span),
            _ if !numbers => self.wrong_operands(op, &a, &b, span),
            _ => {
                let (op, a, b) = arithmetic(op, a, b);
                let result = matches!(op, Prim::Eq | Prim::Ne | Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge);
                self.elementwise(op, vec![a, b], result.then_some(DType::Bool), span)
            }
        }
    }

    /// An elementwise primitive of operands whose element types are right already.
    pub(super) fn elementwise(&mut self, op: Prim, args: Vec<Expr>, result: Option<DType>, span: Span) -> Option<Expr> {
        let refs: Vec<&Expr> = args.iter().collect();
        let dims = self.common_shape(&refs, span)?;
        let dtype = match result {
            Some(dtype) => dtype,
            None => elements(&args.last()?.ty)?.0,
        };
        Some(prim(op, args, of_shape(dtype, &dims), span))
    }

    /// The shape of scalars and arrays of one shape.
    pub(super) fn common_shape(&mut self, args: &[&Expr], span: Span) -> Option<Vec<Dim>> {
        let mut first: Option<(&Expr, &[Dim])> = None;
        for arg in args {
            let (_, dims) = elements(&arg.ty)?;
            match first {
                _ if dims.is_empty() => {}
                None => first = Some((arg, dims)),
                Some((_, known)) if known == dims => {}
                Some((other, _)) => {
                    let (x, y) = (self.show(&other.ty), self.show(&arg.ty));
                    let error = Diagnostic::error(
                        "E0203",
                        format!("the shapes of {x} and {y} differ"),
                        span,
                        "arrays combine when their shapes are equal",
                    );
                    let error = error
                        .with_label(other.span, format!("this is {x}"))
                        .with_label(arg.span, format!("this is {y}"))
                        .with_help("say what is meant with a comprehension: `[… for i in 0..n]`");
                    self.cx.report(error);
                    return None;
                }
            }
        }
        Some(first.map(|(_, dims)| dims.to_vec()).unwrap_or_default())
    }

    fn wrong_operands(&mut self, op: BinaryOp, a: &Expr, b: &Expr, span: Span) -> Option<Expr> {
        let (x, y) = (self.show(&a.ty), self.show(&b.ty));
        let symbol = op.symbol();
        let error =
            Diagnostic::error("E0202", format!("`{symbol}` does not take {x} and {y}"), span, "no such operation");
        let mut error = error.with_label(a.span, format!("this is {x}")).with_label(b.span, format!("this is {y}"));
        let bool_number = matches!(
            (&a.ty, &b.ty),
            (Ty::Scalar(DType::Bool), Ty::Scalar(_)) | (Ty::Scalar(_), Ty::Scalar(DType::Bool))
        );
        if matches!(a.ty, Ty::Struct(..) | Ty::Tuple(_)) {
            error = error.with_help("combine the fields one by one");
        } else if bool_number && matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
            error = error.with_help("`int(b)` makes 0 or 1 of a bool");
        }
        self.cx.report(error);
        None
    }

    /// `a @ b`, and `dot`.
    pub(super) fn matmul(&mut self, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        let (a, b) = (as_real(a), as_real(b));
        let (Some((x, xs)), Some((y, ys))) = (elements(&a.ty), elements(&b.ty)) else {
            return self.wrong_operands(BinaryOp::MatMul, &a, &b, span);
        };
        if x != DType::Real || y != DType::Real {
            return self.wrong_operands(BinaryOp::MatMul, &a, &b, span);
        }
        let (op, dims, fits) = match (xs, ys) {
            ([n], [m]) => (Prim::Dot, vec![], n == m),
            ([n, k], [l, m]) => (Prim::MatMul, vec![n.clone(), m.clone()], k == l),
            ([n, k], [l]) => (Prim::MatMul, vec![n.clone()], k == l),
            ([k], [l, m]) => (Prim::MatMul, vec![m.clone()], k == l),
            _ => return self.wrong_operands(BinaryOp::MatMul, &a, &b, span),
        };
        if !fits {
            let (x, y) = (self.show(&a.ty), self.show(&b.ty));
            let error = Diagnostic::error(
                "E0217",
                format!("the product of {x} and {y} does not fit"),
                span,
                "the inner extents must be equal",
            );
            let error = error.with_label(a.span, format!("this is {x}")).with_label(b.span, format!("this is {y}"));
            self.cx.report(error);
            return None;
        }
        Some(prim(op, vec![a, b], of_shape(DType::Real, &dims), span))
    }
}

/// Numbers as reals; other things as they are.
pub(super) fn as_real(expr: Expr) -> Expr {
    match elements(&expr.ty) {
        Some((DType::Int, _)) => to_real(expr),
        _ => expr,
    }
}

/// `-value` of a number.
fn negate(value: Expr, span: Span) -> Expr {
    let folded = match &value.kind {
        ExprKind::Literal(Scalar::Int(i)) => i.checked_neg().map(|i| int_literal(i, span).kind),
        ExprKind::Literal(Scalar::Real(r)) => Some(ExprKind::Literal(Scalar::Real(-r))),
        ExprKind::Dim(dim) => Dim::default().add_scaled(dim, -1).map(ExprKind::Dim),
        _ => None,
    };
    let ty = value.ty.clone();
    match folded {
        Some(kind) => Expr { kind, ty, span },
        None => prim(Prim::Neg, vec![value], ty, span),
    }
}

/// Sums, differences and multiples of ints and dimensions are themselves dimensions: they are shared and make extents.
fn fold(op: BinaryOp, a: &Expr, b: &Expr, span: Span) -> Option<Expr> {
    let (x, y) = (known(a)?, known(b)?);
    let value = match (op, x.as_constant(), y.as_constant()) {
        (BinaryOp::Add, ..) => x.add_scaled(&y, 1),
        (BinaryOp::Sub, ..) => x.add_scaled(&y, -1),
        (BinaryOp::Mul, Some(k), _) => Dim::default().add_scaled(&y, k),
        (BinaryOp::Mul, _, Some(k)) => Dim::default().add_scaled(&x, k),
        _ => None,
    }?;
    Some(match value.as_constant() {
        Some(value) => int_literal(value, span),
        None => Expr { kind: ExprKind::Dim(value), ty: Ty::Scalar(DType::Int), span },
    })
}

fn known(expr: &Expr) -> Option<Dim> {
    match &expr.kind {
        ExprKind::Literal(Scalar::Int(value)) => Some(Dim::constant(*value)),
        ExprKind::Dim(dim) => Some(dim.clone()),
        _ => None,
    }
}

fn comparison(op: BinaryOp) -> Option<Prim> {
    Some(match op {
        BinaryOp::Eq => Prim::Eq,
        BinaryOp::Ne => Prim::Ne,
        BinaryOp::Lt => Prim::Lt,
        BinaryOp::Le => Prim::Le,
        BinaryOp::Gt => Prim::Gt,
        BinaryOp::Ge => Prim::Ge,
        _ => return None,
    })
}

/// The primitive for numbers, and its operands promoted.
pub(super) fn arithmetic(op: BinaryOp, a: Expr, b: Expr) -> (Prim, Expr, Expr) {
    let int = |e: &Expr| elements(&e.ty).is_some_and(|(dtype, _)| dtype == DType::Int);
    let ints = int(&a) && int(&b);
    let (a, b) = if ints { (a, b) } else { (as_real(a), as_real(b)) };
    let prim = match op {
        BinaryOp::Add => Prim::Add,
        BinaryOp::Sub => Prim::Sub,
        BinaryOp::Mul => Prim::Mul,
        BinaryOp::Div if ints => Prim::IntDiv,
        BinaryOp::Div => Prim::Div,
        BinaryOp::Rem if ints => Prim::IntRem,
        BinaryOp::Rem => Prim::Rem,
        BinaryOp::Pow if ints => Prim::IntPow,
        BinaryOp::Pow => Prim::Pow,
        BinaryOp::MatMul => Prim::MatMul,
        BinaryOp::And => Prim::And,
        BinaryOp::Or => Prim::Or,
        op => comparison(op).unwrap_or(Prim::Eq),
    };
    (prim, a, b)
}
