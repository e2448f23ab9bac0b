//! The C functions of `lanes.h` and `vmath.h` that compute primitives.

use crate::backend::cc::ssa::Kind;
use crate::prim::Prim;
use crate::run::TrapKind;
use crate::types::DType;

/// The prefix of the functions of an element type.
pub(super) fn prefix(dtype: DType) -> char {
    match dtype {
        DType::Bool => 'b',
        DType::Int => 'i',
        DType::Real => 'r',
    }
}

/// The C type of a group of lanes.
pub(super) fn group_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "B",
        DType::Int => "I",
        DType::Real => "R",
    }
}

/// The C type of an element in memory.
pub(super) fn memory_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "uint8_t",
        DType::Int => "int64_t",
        DType::Real => "real",
    }
}

/// How a primitive of operands of this element type (that of the first) is computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Function {
    /// A function of the operands.
    Total(&'static str),
    /// A function of the operands and a pointer to the lanes where it fails.
    Fails(&'static str, TrapKind),
    /// Division of ints: it fails in two ways, the remainder in one.
    Division(&'static str),
}

/// The function of an elementwise primitive, without its prefix.
pub(super) fn of(prim: Prim, dtype: DType) -> Function {
    use Function::{Division, Fails, Total};
    let int = dtype == DType::Int;
    let overflow = |name| Fails(name, TrapKind::IntegerOverflow);
    match prim {
        Prim::Add if int => overflow("add_over"),
        Prim::Sub if int => overflow("sub_over"),
        Prim::Mul if int => overflow("mul_over"),
        Prim::Neg if int => overflow("neg_over"),
        Prim::Abs if int => overflow("abs_over"),
        Prim::IntDiv => Division("div"),
        Prim::IntRem => Division("rem"),
        Prim::ToInt => Fails("to_i_trap", TrapKind::IntegerConversion),
        Prim::Add => Total("add"),
        Prim::Sub => Total("sub"),
        Prim::Mul => Total("mul"),
        Prim::Div => Total("div"),
        Prim::ChainMul => Total("chain_mul"),
        Prim::ChainDiv => Total("chain_div"),
        Prim::Rem => Total("rem"),
        Prim::Neg => Total("neg"),
        Prim::Abs => Total("abs"),
        Prim::Min => Total("min"),
        Prim::Max => Total("max"),
        Prim::Pow => Total("pow"),
        Prim::Sqrt => Total("sqrt"),
        Prim::Exp => Total("exp"),
        Prim::Expm1 => Total("expm1"),
        Prim::Log => Total("log"),
        Prim::Log1p => Total("log1p"),
        Prim::Sin => Total("sin"),
        Prim::Cos => Total("cos"),
        Prim::Tan => Total("tan"),
        Prim::Asin => Total("asin"),
        Prim::Acos => Total("acos"),
        Prim::Atan => Total("atan"),
        Prim::Atan2 => Total("atan2"),
        Prim::Sinh => Total("sinh"),
        Prim::Cosh => Total("cosh"),
        Prim::Tanh => Total("tanh"),
        Prim::InvLogit => Total("inv_logit"),
        Prim::Log1pExp => Total("log1p_exp"),
        Prim::Erf => Total("erf"),
        Prim::Erfc => Total("erfc"),
        Prim::Lgamma => Total("lgamma"),
        Prim::Digamma => Total("digamma"),
        Prim::Trigamma => Total("trigamma"),
        Prim::InvPhi => Total("inv_phi"),
        Prim::Phi => Total("phi"),
        Prim::Floor => Total("floor"),
        Prim::Ceil => Total("ceil"),
        Prim::Round => Total("round"),
        Prim::Trunc => Total("trunc"),
        Prim::IsNan => Total("is_nan"),
        Prim::Eq => Total("eq"),
        Prim::Ne => Total("ne"),
        Prim::Lt => Total("lt"),
        Prim::Le => Total("le"),
        Prim::Gt => Total("gt"),
        Prim::Ge => Total("ge"),
        Prim::And => Total("and"),
        Prim::Or => Total("or"),
        Prim::Not => Total("not"),
        Prim::Select => Total("select"),
        Prim::ToReal | Prim::BoolToInt => Total("from"),
        other => unreachable!("{other} is not elementwise, or never part of a segment"),
    }
}

/// Whether an operation may take lanes out; `dtype` is that of its first operand.
pub(super) fn may_trap(kind: Kind, dtype: Option<DType>) -> bool {
    match (kind, dtype) {
        (Kind::Assert, _) => true,
        (Kind::Map(Prim::Copy), _) => false,
        (Kind::Map(prim), Some(dtype)) => !matches!(of(prim, dtype), Function::Total(_)),
        (Kind::Reduce(prim), Some(dtype)) => dtype == DType::Int && matches!(prim, Prim::Sum | Prim::Prod),
        _ => false,
    }
}
