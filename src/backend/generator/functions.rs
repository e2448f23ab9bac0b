//! The C functions of `lanes.h` and `vmath.h` that compute primitives.

use crate::backend::generator::ssa::{Fold, Kind};
use crate::prim::{
    Arithmetic, Class, Conversion, IntArithmetic, Prim, RealArithmetic, Selection, Traps, computed_elementwise,
};
use crate::run::TrapKind;
use crate::types::DType;
use crate::vmath::{BinaryFn, Computed, UnaryFn};

/// The prefix of the functions of an element type.
pub(in crate::backend) fn prefix(dtype: DType) -> char {
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
pub(in crate::backend) fn memory_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "uint8_t",
        DType::Int => "int64_t",
        DType::Real => "real",
    }
}

/// How a primitive of operands of this element type (that of the first) is computed.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Call {
    /// A function of the operands.
    Total(String),
    /// A function of the operands and a pointer to the lanes where it fails.
    Fails(String, TrapKind),
    /// Division of ints, which fails in two ways: by zero, and in one case by overflow.
    Quotient(String),
    /// Its powers, which fail by a negative exponent and by overflow.
    Power(String),
    /// Its remainder, which fails by zero only.
    Remainder(String),
}

/// Whether a primitive of operands of these element types goes element by element, by a function that never fails.
pub(super) fn is_total(prim: Prim, dtypes: &[DType]) -> bool {
    // A power of ints has no function.
    let has_function =
        matches!(prim.class(), computed_elementwise!()) && !matches!(prim.class(), Class::IntArithmetic(_));
    has_function && matches!(of(prim, dtypes), Call::Total(_))
}

/// The function of an elementwise primitive whose operands have these element types.
///
/// # Panics
///
/// For what is not computed by a function: copies, what is not elementwise, and what a function does not
/// [take](super::takes::takes).
pub(super) fn of(prim: Prim, dtypes: &[DType]) -> Call {
    let first = dtypes[0];
    let row = prim.row();
    let named = |of: DType| format!("{}_{}", prefix(of), row.c);
    match row.class {
        Class::Arithmetic(op) => match op {
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Neg | Arithmetic::Abs
                if first == DType::Int =>
            {
                Call::Fails(format!("{}_over", named(first)), TrapKind::IntegerOverflow)
            }
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Neg | Arithmetic::Abs => {
                Call::Total(named(first))
            }
            Arithmetic::Min | Arithmetic::Max => Call::Total(named(first)),
        },
        Class::IntArithmetic(op) => match op {
            IntArithmetic::IntDiv => Call::Quotient(named(first)),
            IntArithmetic::IntRem => Call::Remainder(named(first)),
            IntArithmetic::IntPow => Call::Power(named(first)),
        },
        Class::Conversion(conversion) => match conversion {
            Conversion::ToReal => Call::Total(format!("{}_{}", named(DType::Real), prefix(first))),
            Conversion::BoolToInt => Call::Total(format!("{}_{}", named(DType::Int), prefix(first))),
            Conversion::ToInt => Call::Fails(named(first), TrapKind::IntegerConversion),
            Conversion::IsNan => Call::Total(named(first)),
        },
        Class::Selection(Selection::Select) => Call::Total(named(dtypes[1])),
        Class::RealArithmetic(_) | Class::Unary(_) | Class::Binary(_) | Class::Comparison(_) | Class::Logic(_) => {
            Call::Total(named(first))
        }
        Class::Identity(_)
        | Class::Movement(_)
        | Class::Contraction(_)
        | Class::Triangular(_)
        | Class::Reduction(_)
        | Class::Draw(_) => unreachable!("`{prim}` is no function of elements"),
    }
}

/// The same function of one lane without a branch, for loops that a compiler may make vectors of: of selections, and of
/// what branches on reals. (A compiler knows a minimum of ints by itself.)
pub(super) fn flat(prim: Prim, dtypes: &[DType]) -> Option<String> {
    let branches = match prim.class() {
        Class::Selection(_) => true,
        Class::Arithmetic(Arithmetic::Min | Arithmetic::Max) => dtypes[0] == DType::Real,
        Class::RealArithmetic(op) => matches!(op, RealArithmetic::ChainMul | RealArithmetic::ChainDiv),
        _ => false,
    };
    match of(prim, dtypes) {
        Call::Total(name) if branches => Some(format!("{name}_flat")),
        _ => None,
    }
}

/// Whether an operation may take lanes out; `dtype` is that of its first operand.
pub(super) fn may_trap(kind: Kind, dtype: Option<DType>) -> bool {
    let traps = |prim: Prim| match prim.row().traps {
        Traps::Never => false,
        Traps::Always => true,
        Traps::OnInts => dtype == Some(DType::Int),
        // a function has no arrays without elements
        Traps::OnEmpty => false,
    };
    match kind {
        Kind::Assert => true,
        Kind::Map(prim) => traps(prim),
        Kind::Reduce(Fold::All(reduction)) => traps(reduction.into()),
        Kind::Reduce(Fold::Products(_)) => false,
        Kind::Product { .. } | Kind::Draw { .. } | Kind::Pop(_) | Kind::Spill(_) | Kind::Store(_) | Kind::Decide => {
            false
        }
    }
}

/// The header `functions.h`: functions of reals, made of those of doubles, as the table of functions of reals says.
pub(in crate::backend) fn of_reals() -> String {
    let unary = UnaryFn::ALL.iter().map(|f| (f.name(), f.computed(), "VMATH_IN_F64"));
    let binary = BinaryFn::ALL.iter().map(|f| (f.name(), f.computed(), "VMATH_IN_F64_2"));
    let (mut floats, mut doubles) = (String::new(), String::new());
    for (name, computed, through_f64) in unary.chain(binary) {
        if computed == Computed::InF64 {
            floats += &format!("{through_f64}({name})\n");
        }
        if computed != Computed::Native {
            doubles += &format!("#define r_{name} d_{name}\n");
        }
    }
    format!("#ifdef REAL_F32\n{floats}#else\n{doubles}#endif\n")
}
