//! Operators by the names that they have as functions.

use super::{Result, Tracer};
use crate::base::Span;
use crate::stan::syntax::ast::{BinaryOp, UnaryOp};
use crate::stan::value::Val;

fn infix(name: &str) -> Option<BinaryOp> {
    Some(match name {
        "add" => BinaryOp::Add,
        "subtract" => BinaryOp::Subtract,
        "multiply" => BinaryOp::Multiply,
        "divide" => BinaryOp::Divide,
        "elt_multiply" => BinaryOp::EltMultiply,
        "elt_divide" => BinaryOp::EltDivide,
        "modulus" => BinaryOp::Modulo,
        "logical_and" => BinaryOp::And,
        "logical_or" => BinaryOp::Or,
        "logical_eq" => BinaryOp::Equal,
        "logical_neq" => BinaryOp::NotEqual,
        "logical_lt" => BinaryOp::Less,
        "logical_lte" => BinaryOp::LessEqual,
        "logical_gt" => BinaryOp::Greater,
        "logical_gte" => BinaryOp::GreaterEqual,
        _ => return None,
    })
}

fn prefix(name: &str) -> Option<UnaryOp> {
    Some(match name {
        "minus" => UnaryOp::Minus,
        "plus" => UnaryOp::Plus,
        "logical_negation" => UnaryOp::Not,
        _ => return None,
    })
}

impl Tracer<'_> {
    /// What an operator gives that is called by its name; `None` for any other function.
    pub(super) fn operator(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        match (args, prefix(name), infix(name)) {
            ([a], Some(op), _) => self.unary(span, op, a).map(Some),
            ([a, b], _, Some(op @ (BinaryOp::And | BinaryOp::Or))) => {
                let (a, b) = (self.truth(span, a)?, self.truth(span, b)?);
                if op == BinaryOp::And { self.both(span, &a, &b) } else { self.either(span, &a, &b) }.map(Some)
            }
            ([a, b], _, Some(op)) => self.binary(span, op, a, b).map(Some),
            _ => Ok(None),
        }
    }
}
