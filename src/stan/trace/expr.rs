//! Expressions.

use std::borrow::Cow;

use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::stan::value::{Base, Elem, Kind, Val};
use crate::types::column_major;

/// A number as Rust reads it.
fn digits(text: &str) -> Cow<'_, str> {
    if text.contains('_') { text.replace('_', "").into() } else { text.into() }
}

impl Tracer<'_> {
    /// The value of an expression.
    pub(in crate::stan) fn eval(&mut self, expr: &Expr) -> Result<Val> {
        let value = self.eval_counted(expr)?;
        if value.counted().is_some() {
            return unsupported(expr.span, "elements whose number depends on parameters, here");
        }
        Ok(value)
    }

    /// The same, where lanes may compute how many elements it has.
    pub(super) fn eval_counted(&mut self, expr: &Expr) -> Result<Val> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(text) => match digits(text).parse::<i64>() {
                Ok(i) if i32::try_from(i).is_ok() => Ok(Val::int(i)),
                _ => wrong(span, format!("{text} is too large for an int of Stan, which has 32 bits")),
            },
            ExprKind::Real(text) => match digits(text).parse::<f64>() {
                Ok(x) => Ok(Val::real(x)),
                Err(_) => wrong(span, format!("{text} is no number")),
            },
            ExprKind::Variable(name) => match self.value(&name.text) {
                Some(value) => Ok(value.clone()),
                None => wrong(span, format!("there is no variable `{}` here", name.text)),
            },
            ExprKind::Paren(inner) => self.eval_counted(inner),
            ExprKind::Unary(op, a) => {
                let a = self.eval_counted(a)?;
                self.unary(span, *op, &a)
            }
            ExprKind::Transpose(a) => {
                let a = self.eval_counted(a)?;
                self.transpose(span, &a)
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let a = self.eval(a)?;
                let a = self.truth(span, &a)?;
                let decides = i64::from(*op == BinaryOp::Or);
                match a.as_int() {
                    Some(i) if i == decides => Ok(a),
                    Some(_) => {
                        let b = self.eval(b)?;
                        self.truth(span, &b)
                    }
                    None => {
                        // The right side is computed where the left one does not decide.
                        let open = if *op == BinaryOp::Or { self.negated(span, &a)? } else { a.clone() };
                        let b = self.guarded(&open, |t| {
                            let b = t.eval(b)?;
                            t.truth(span, &b)
                        })?;
                        let name = if *op == BinaryOp::Or { "max" } else { "min" };
                        self.call_ab(span, name, &[a, b], Kind::INT, vec![])
                    }
                }
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.eval_counted(a)?, self.eval_counted(b)?);
                self.binary(span, *op, &a, &b)
            }
            ExprKind::Conditional(c, a, b) => {
                let c = self.eval(c)?;
                let c = self.truth(span, &c)?;
                match c.as_int() {
                    Some(c) => {
                        let value = self.eval_counted(if c == 0 { b } else { a })?;
                        match self.checked.types.get(&span) {
                            Some(typed) => self.as_type(span, value, &typed.ty),
                            None => Ok(value),
                        }
                    }
                    None => {
                        let off = self.negated(span, &c)?;
                        let a = self.guarded(&c, |t| t.eval_counted(a));
                        match (a, self.guarded(&off, |t| t.eval_counted(b))) {
                            (Err(why), Ok(only)) | (Ok(only), Err(why)) if why.wants_shape() => Ok(only),
                            (a, b) => self.select(span, &c, &a?, &b?),
                        }
                    }
                }
            }
            ExprKind::Call { name, args, .. } => self.call(span, name, args),
            ExprKind::Target => self.so_far(span),
            ExprKind::Array(items) => {
                let items = items.iter().map(|e| self.eval(e)).collect::<Result<Vec<_>>>()?;
                self.stacked(span, &items, false)
            }
            ExprKind::RowVector(items) => {
                let items = items.iter().map(|e| self.eval(e)).collect::<Result<Vec<_>>>()?;
                self.stacked(span, &items, true)
            }
            ExprKind::Index { base, indices } => {
                if let ExprKind::Variable(name) = &base.kind
                    && self.value(&name.text).is_some()
                {
                    return self.element(span, &name.text, indices);
                }
                let base = self.eval_counted(base)?;
                let indices = indices.iter().map(|i| self.index(i)).collect::<Result<Vec<_>>>()?;
                self.indexed(span, &base, &indices)
            }
            ExprKind::Imaginary(text) => match digits(text).parse::<f64>() {
                Ok(x) => Ok(Val::complex(Val::real(0.0), Val::real(x))),
                Err(_) => wrong(span, format!("{text} is no number")),
            },
            ExprKind::Tuple(items) => {
                let items = items.iter().map(|e| self.eval(e)).collect::<Result<Vec<_>>>()?;
                Ok(Val::tuple(vec![], items))
            }
            ExprKind::TupleField { base, index, .. } => self.tuple_field(span, base, *index),
            ExprKind::Error => wrong(span, "this does not parse"),
        }
    }

    /// A prefix operator.
    pub(super) fn unary(&mut self, span: Span, op: UnaryOp, a: &Val) -> Result<Val> {
        match op {
            UnaryOp::Plus => Ok(a.clone()),
            UnaryOp::Minus if a.counted().is_some() => {
                self.each_counted(span, std::slice::from_ref(a), |t, args| t.unary(span, op, &args[0]))
            }
            UnaryOp::Minus if a.is_complex() => self.each_part(a, |t, part| t.unary(span, op, part)),
            UnaryOp::Minus => self.apply(span, Op::Negate, std::slice::from_ref(a), a.kind, a.shape.clone()),
            UnaryOp::Not => self.apply(span, Op::Compare("=="), &[a.clone(), Val::int(0)], Kind::INT, vec![]),
        }
    }

    /// `a'`
    pub(super) fn transpose(&mut self, span: Span, a: &Val) -> Result<Val> {
        if a.is_complex() {
            return self.each_part(a, |t, part| t.transpose(span, part));
        }
        let kind = |base| Kind { base, ..a.kind };
        match a.kind.base {
            Base::Vector => Ok(Val { kind: kind(Base::RowVector), ..a.clone() }),
            Base::RowVector => Ok(Val { kind: kind(Base::Vector), ..a.clone() }),
            Base::Matrix if a.counted().is_some() => unsupported(span, "a matrix whose size depends on parameters"),
            Base::Matrix => {
                let [rows, cols] = a.shape[..] else { return unsupported(span, "the transpose of an array") };
                if !a.is_known() && matches!(a.what, crate::stan::value::What::Whole(_)) {
                    return self.call_ab(span, "transpose", std::slice::from_ref(a), Kind::MATRIX, vec![cols, rows]);
                }
                Ok(a.pick(Kind::MATRIX, vec![cols, rows], column_major(&a.shape, 0)))
            }
            _ => wrong(span, format!("{} has no transpose", a.kind.shown())),
        }
    }

    /// `{a, b}`, or `[a, b]`.
    fn stacked(&mut self, span: Span, items: &[Val], row: bool) -> Result<Val> {
        let Some(first) = items.first() else {
            return Ok(Val::from_elems(Kind::ROW_VECTOR, vec![0], vec![]));
        };
        if let Some(other) = items.iter().find(|v| v.shape != first.shape) {
            return wrong(span, format!("parts of sizes {:?} and {:?}", first.shape, other.shape));
        }
        if first.is_tuple() {
            return Ok(self.stacked_tuples(items));
        }
        if items.iter().any(Val::is_complex) {
            let (re, im): (Vec<Val>, Vec<Val>) = items.iter().map(Val::re_im).unzip();
            return Ok(Val::complex(self.stacked(span, &re, row)?, self.stacked(span, &im, row)?));
        }
        let widest = items.iter().find(|v| !v.kind.is_int()).unwrap_or(first).kind;
        let kind = match (row, widest.base) {
            (false, _) => Kind { arrays: widest.arrays + 1, ..widest },
            (true, Base::Int | Base::Real) => Kind::ROW_VECTOR,
            (true, _) => Kind::MATRIX,
        };
        let mut elems: Vec<Elem> = Vec::with_capacity(items.len() * first.len());
        for item in items {
            elems.extend(item.elems());
        }
        if !kind.is_int() {
            elems.iter_mut().for_each(|e| *e = e.as_real());
        }
        let shape = std::iter::once(items.len()).chain(first.shape.iter().copied()).collect();
        Ok(Val::from_elems(kind, shape, elems))
    }

    /// An infix operator but `&&` and `||`.
    pub(super) fn binary(&mut self, span: Span, op: BinaryOp, a: &Val, b: &Val) -> Result<Val> {
        if a.is_complex() || b.is_complex() {
            return self.complex_binary(span, op, a, b);
        }
        if a.counted().is_some() || b.counted().is_some() {
            return self.binary_counted(span, op, a, b);
        }
        let scalars = a.is_scalar() && b.is_scalar();
        match op {
            BinaryOp::Add => self.infix(span, "+", a, b),
            BinaryOp::Subtract => self.infix(span, "-", a, b),
            BinaryOp::EltMultiply => self.infix(span, "*", a, b),
            BinaryOp::EltDivide => self.infix(span, "/", a, b),
            BinaryOp::Multiply if a.is_scalar() || b.is_scalar() => self.infix(span, "*", a, b),
            BinaryOp::Multiply => self.matrix_product(span, a, b),
            BinaryOp::IntDivide => self.infix(span, "/", a, b),
            BinaryOp::Modulo => self.infix(span, "%", a, b),
            BinaryOp::Divide if a.is_scalar() || b.is_scalar() => self.infix(span, "/", a, b),
            BinaryOp::Divide => self.library(span, "mdivide_right", &[a.clone(), b.clone()]),
            BinaryOp::LeftDivide => self.library(span, "mdivide_left", &[a.clone(), b.clone()]),
            BinaryOp::Power | BinaryOp::EltPower => {
                // A square is quicker than a power, and has the same bits.
                if b.as_real() == Some(2.0) {
                    return self.elementwise(span, "square", std::slice::from_ref(a));
                }
                self.infix(span, "^", &a.promoted(), &b.promoted())
            }
            BinaryOp::Equal => self.compare(span, "==", a, b),
            BinaryOp::NotEqual => self.compare(span, "!=", a, b),
            BinaryOp::Less => self.compare(span, "<", a, b),
            BinaryOp::LessEqual => self.compare(span, "<=", a, b),
            BinaryOp::Greater => self.compare(span, ">", a, b),
            BinaryOp::GreaterEqual => self.compare(span, ">=", a, b),
            BinaryOp::And | BinaryOp::Or if scalars => unreachable!("evaluated from left to right before"),
            BinaryOp::And | BinaryOp::Or => wrong(span, format!("`{}` wants numbers", op.symbol())),
        }
    }

    pub(super) fn compare(&mut self, span: Span, sign: &'static str, a: &Val, b: &Val) -> Result<Val> {
        if !a.is_scalar() || !b.is_scalar() {
            return wrong(span, format!("`{sign}` wants numbers"));
        }
        self.apply(span, Op::Compare(sign), &[a.clone(), b.clone()], Kind::INT, vec![])
    }

    fn matrix_product(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        let (kind, inner, shape) = match (a.kind.base, b.kind.base) {
            (Base::Matrix, Base::Matrix) => (Kind::MATRIX, (a.shape[1], b.shape[0]), vec![a.shape[0], b.shape[1]]),
            (Base::Matrix, Base::Vector) => (Kind::VECTOR, (a.shape[1], b.shape[0]), vec![a.shape[0]]),
            (Base::RowVector, Base::Matrix) => (Kind::ROW_VECTOR, (a.shape[0], b.shape[0]), vec![b.shape[1]]),
            (Base::RowVector, Base::Vector) => (Kind::REAL, (a.shape[0], b.shape[0]), vec![]),
            (Base::Vector, Base::RowVector) => {
                let (n, m) = (a.shape[0], b.shape[0]);
                let column = a.reshaped(Kind::MATRIX, vec![n, 1]);
                let row = b.reshaped(Kind::MATRIX, vec![1, m]);
                return self.apply(span, Op::Infix("@"), &[column, row], Kind::MATRIX, vec![n, m]);
            }
            _ => return wrong(span, format!("no product of {} and {}", a.kind.shown(), b.kind.shown())),
        };
        if inner.0 != inner.1 {
            return wrong(span, format!("`*` of sizes {:?} and {:?}", a.shape, b.shape));
        }
        if shape.is_empty() {
            return self.call_ab(span, "dot", &[a.clone(), b.clone()], kind, shape);
        }
        self.apply(span, Op::Infix("@"), &[a.clone(), b.clone()], kind, shape)
    }
}
