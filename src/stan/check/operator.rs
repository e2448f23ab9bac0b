//! Operators: each is a function of the library, or several.

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp, UnsizedType};

use super::context::Checker;
use super::resolve::{Resolution, Value, resolve};
use super::signatures::{functions_of_operator, library};
use super::types::{FunctionType, Level, Type, promotion, spelled};

impl Checker {
    pub(super) fn unary(&mut self, op: UnaryOp, operand: &Expr, span: Span) -> Option<Value> {
        let symbol = match op {
            UnaryOp::Minus => "-",
            UnaryOp::Plus => "+",
            UnaryOp::Not => "!",
        };
        self.one_operand(symbol, operand, span)
    }

    pub(super) fn transpose(&mut self, operand: &Expr, span: Span) -> Option<Value> {
        self.one_operand("'", operand, span)
    }

    fn one_operand(&mut self, symbol: &str, operand: &Expr, span: Span) -> Option<Value> {
        let (ty, level) = self.value(operand)?;
        let args = [Value::new(ty.clone(), level.clone())];
        match result(symbol, &args) {
            Some(ty) => Some(Value::new(ty, level)),
            None => {
                let message = format!("`{symbol}` does not take {}", spelled(&ty));
                let error = Diagnostic::error("E2201", message, span, format!("it is given {}", spelled(&ty)));
                self.report(error.with_help(takes(symbol, 1)));
                None
            }
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) -> Option<Value> {
        let (left_value, right_value) = (self.value(left), self.value(right));
        let ((a, a_level), (b, b_level)) = (left_value?, right_value?);
        self.warn_operator(op, (left, &a), (right, &b), span);
        let args = [Value::new(a.clone(), a_level.clone()), Value::new(b.clone(), b_level.clone())];
        match result_of_binary(op, &args).zip(a_level.join(&b_level)) {
            Some((ty, level)) => Some(Value::new(ty, level)),
            None => {
                let symbol = op.symbol();
                let message = format!("`{symbol}` does not take {} and {}", spelled(&a), spelled(&b));
                let error = Diagnostic::error("E2201", message, left.span, spelled(&a));
                self.report_in(error.with_label(right.span, spelled(&b)).with_help(help(op, &a, &b)), span);
                None
            }
        }
    }

    fn warn_operator(&mut self, op: BinaryOp, left: (&Expr, &UnsizedType), right: (&Expr, &UnsizedType), span: Span) {
        let warning = match (left.1, op, right.1) {
            (UnsizedType::Int, BinaryOp::Divide, UnsizedType::Int) => int_division(left.0, right.0, span),
            (_, BinaryOp::Power, UnsizedType::Int | UnsizedType::Real) if is_matrix(left.1) => Diagnostic::warning(
                "W2102",
                "`^` of a matrix is taken element by element",
                span,
                "this is no power of the matrix",
            )
            .with_help("write `.^` if that is meant, else `matrix_power(…)`"),
            (_, op, _) if is_comparison(op) => match &left.0.kind {
                ExprKind::Binary(first, ..) if is_comparison(*first) => Diagnostic::warning(
                    "W2103",
                    format!("`{}` compares the 0 or 1 that `{}` gives", op.symbol(), first.symbol()),
                    span,
                    "comparisons are not chained",
                )
                .with_help("write `a < b && b < c`, or parentheses if this is meant"),
                _ => return,
            },
            _ => return,
        };
        self.report(warning);
    }
}

fn int_division(left: &Expr, right: &Expr, span: Span) -> Diagnostic {
    let warning = Diagnostic::warning("W2101", "int division drops the remainder", span, "both sides are int");
    let real = match (&left.kind, &right.kind) {
        (ExprKind::Int(text), _) => format!("`{text}.0 / …`"),
        (_, ExprKind::Int(text)) => format!("`… / {text}.0`"),
        _ => "`a * 1.0 / b`".to_owned(),
    };
    warning.with_help(format!("write {real} for a real, or `%/%` if an int is meant"))
}

fn is_matrix(ty: &UnsizedType) -> bool {
    match ty {
        UnsizedType::Matrix => true,
        UnsizedType::Array(element) => **element == UnsizedType::Matrix,
        _ => false,
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(op, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

fn result(symbol: &str, args: &[Value]) -> Option<UnsizedType> {
    functions_of_operator(symbol, args.len()).iter().find_map(|name| match resolve(name, &[], args) {
        Resolution::Unique(candidate) => candidate.function.result.clone(),
        Resolution::Ambiguous(_) | Resolution::None { .. } => None,
    })
}

fn result_of_binary(op: BinaryOp, args: &[Value]) -> Option<UnsizedType> {
    if op != BinaryOp::IntDivide {
        return result(op.symbol(), args);
    }
    args.iter().all(|arg| arg.ty == Type::Value(UnsizedType::Int)).then_some(UnsizedType::Int)
}

/// Whether `place op= value` stores what has the type of the place. `.*=` and `./=` are of containers, `/=` divides.
pub(super) fn assigns(op: BinaryOp, place: &UnsizedType, value: (&UnsizedType, &Level)) -> bool {
    let args = [Value::new(place.clone(), Level::Parameter), Value::new(value.0.clone(), value.1.clone())];
    let given = match op {
        BinaryOp::Divide => match resolve("divide", &[], &args) {
            Resolution::Unique(candidate) => candidate.function.result.clone(),
            Resolution::Ambiguous(_) | Resolution::None { .. } => None,
        },
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::EltMultiply | BinaryOp::EltDivide => {
            result(op.symbol(), &args)
        }
        _ => None,
    };
    let scalar = matches!(place, UnsizedType::Int | UnsizedType::Real);
    let elementwise = matches!(op, BinaryOp::EltMultiply | BinaryOp::EltDivide);
    given.as_ref() == Some(place) && !(elementwise && scalar)
}

/// What the right side of `place op= …` may be.
pub(super) fn assignable(op: BinaryOp, place: &UnsizedType) -> Vec<String> {
    let names: &[&str] = if op == BinaryOp::Divide { &["divide"] } else { functions_of_operator(op.symbol(), 2) };
    let mut found: Vec<UnsizedType> = Vec::new();
    for function in names.iter().flat_map(|name| library().all(name)) {
        let [left, right] = &function.params[..] else { continue };
        let (Some(left), Some(right)) = (left.ty.value(), right.ty.value()) else { continue };
        if left == place && assigns(op, place, (right, &Level::Parameter)) && !found.contains(right) {
            found.push(right.clone());
        }
    }
    found.iter().map(spelled).collect()
}

/// What an operator takes.
fn takes(symbol: &str, operands: usize) -> String {
    let functions = functions_of_operator(symbol, operands).iter().flat_map(|name| library().all(name));
    let shallow = |f: &FunctionType| f.params.iter().all(|p| !matches!(p.ty, Type::Value(UnsizedType::Array(_))));
    let list: Vec<String> = functions.filter(shallow).map(|f| f.params[0].ty.to_string()).collect();
    format!("it takes {}", list.join(", "))
}

fn help(op: BinaryOp, left: &UnsizedType, right: &UnsizedType) -> String {
    let fits = |other: BinaryOp| {
        let args = [Value::new(left.clone(), Level::Data), Value::new(right.clone(), Level::Data)];
        result_of_binary(other, &args).is_some()
    };
    let is_array = |ty: &UnsizedType| matches!(ty, UnsizedType::Array(_));
    match op {
        BinaryOp::Multiply if fits(BinaryOp::EltMultiply) => "element by element it is `.*`".into(),
        BinaryOp::Divide if fits(BinaryOp::EltDivide) => "element by element it is `./`".into(),
        BinaryOp::IntDivide | BinaryOp::Modulo => "it takes ints alone".into(),
        BinaryOp::And | BinaryOp::Or => "it takes ints: write a comparison, such as `x > 0`".into(),
        _ if is_comparison(op) => "it compares numbers, not containers".into(),
        _ if is_array(left) || is_array(right) => {
            let one = [left, right]
                .into_iter()
                .find(|ty| promotion(&UnsizedType::Array(Box::new(UnsizedType::Real)), ty).is_some());
            match one {
                Some(_) => {
                    "arrays are not added or multiplied: make a vector by `to_vector(…)`, or write a loop".into()
                }
                None => "it takes no arrays: write a loop".into(),
            }
        }
        _ => transposed(op, left, right).unwrap_or_else(|| "convert one side, or write a loop".into()),
    }
}

/// Advice where one operand need only be transposed.
fn transposed(op: BinaryOp, left: &UnsizedType, right: &UnsizedType) -> Option<String> {
    let turned = |ty: &UnsizedType| result("'", &[Value::new(ty.clone(), Level::Data)]);
    let fits = |a: UnsizedType, b: UnsizedType| {
        result_of_binary(op, &[Value::new(a, Level::Data), Value::new(b, Level::Data)]).is_some()
    };
    if turned(left).is_some_and(|left| fits(left, right.clone())) {
        return Some("transpose the left side: `a'`".into());
    }
    turned(right).filter(|right| fits(left.clone(), right.clone())).map(|_| "transpose the right side: `b'`".into())
}
