//! Printing constants, locations, operands and messages.

use std::fmt;

use crate::base::text::{QuotedName, Text};
use crate::base::{Id, IdVec, Loc};
use crate::parts::{Message, Operand, Shared, SharedId, Tape, TapeId};
use crate::prim::Prim;
use crate::types::{Scalar, Type};

/// A constant in its text form: that of [`Scalar`], and a NaN with other bits than Rust's as `nan(0x…)`.
#[derive(Clone, Copy, Debug)]
pub struct ScalarText(pub Scalar);

impl fmt::Display for ScalarText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scalar::Real(r) if r.is_nan() && r.to_bits() != f64::NAN.to_bits() => {
                write!(f, "nan({:#x})", r.to_bits())
            }
            other => other.fmt(f),
        }
    }
}

/// A location in its text form after a statement: ` @fib:3`, where a part of an array is meant with the array, ` @fib:3[x]`, or
/// nothing for [`Loc::none`].
#[derive(Clone, Copy, Debug)]
pub struct LocText<'a>(pub &'a Loc);

impl fmt::Display for LocText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == Loc::none() {
            return Ok(());
        }
        write!(f, " @{}:{}", QuotedName(&self.0.function), self.0.line)?;
        match &self.0.array {
            Some(array) if array.bounded => write!(f, "[bounded {}]", QuotedName(&array.name)),
            Some(array) => write!(f, "[{}]", QuotedName(&array.name)),
            None => Ok(()),
        }
    }
}

/// Names of variables and shared values, for printing what uses them.
#[derive(Clone, Copy)]
pub struct OperandNames<'a, V> {
    /// The name of a variable, if there is such a variable.
    pub var: &'a dyn Fn(V) -> Option<&'a str>,
    /// The shared values.
    pub shared: &'a IdVec<SharedId, Shared>,
}

impl<'a, V: Id> OperandNames<'a, V> {
    /// Text form of a variable.
    pub fn var(&self, v: V) -> String {
        (self.var)(v).map_or_else(|| format!("?{v}"), |name| QuotedName(name).to_string())
    }
    /// Text form of an operand: `x`, `$shared`, `1.5`.
    pub fn operand(&self, operand: Operand<V>) -> String {
        match operand {
            Operand::Var(v) => self.var(v),
            Operand::Shared(s) => match self.shared.get(s) {
                Some(shared) => format!("${}", QuotedName(&shared.name)),
                None => format!("?{s}"),
            },
            Operand::Const(c) => ScalarText(c).to_string(),
        }
    }
    /// Text form of operands, between commas.
    pub fn operands(&self, operands: &[Operand<V>]) -> String {
        let texts: Vec<String> = operands.iter().map(|o| self.operand(*o)).collect();
        texts.join(", ")
    }
    /// Text form of a primitive with its operands: `add x, 1`.
    pub fn prim(&self, prim: Prim, args: &[Operand<V>]) -> String {
        spaced(prim.name(), &self.operands(args))
    }
    /// Text form of a message: `"x = {}" x`.
    pub fn message(&self, message: &Message<Operand<V>>) -> String {
        spaced(&Text(&message.texts).to_string(), &self.operands(&message.args))
    }
}

fn spaced(first: &str, rest: &str) -> String {
    if rest.is_empty() { first.to_string() } else { format!("{first} {rest}") }
}

/// Text form of a tape where an instruction names it.
pub fn tape_name(all: &IdVec<TapeId, Tape>, tape: TapeId) -> String {
    all.get(tape).map_or_else(|| format!("?{tape}"), |tape| QuotedName(&tape.name).to_string())
}

/// Text form of names with types: `n: int, x: real[3]`.
pub fn typed_names<'a>(names: impl Iterator<Item = (&'a str, &'a Type)>) -> String {
    let texts: Vec<String> = names.map(|(name, ty)| format!("{}: {ty}", QuotedName(name))).collect();
    texts.join(", ")
}
