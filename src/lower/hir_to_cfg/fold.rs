//! The constants that specialisation must know, because types and shared values depend on them: ints, bools, and reals
//! only where the result is exact in every precision. All other constants are folded later, by the interpreter.

use crate::cfg::Operand;
use crate::prim::{Prim, eval};
use crate::types::Scalar;

/// The value of a primitive of constants, if it is one of those and does not trap.
pub(super) fn fold(prim: Prim, args: &[Operand]) -> Option<Scalar> {
    let constant = |a: &Operand| {
        if let Operand::Const(c) = a { Some(*c) } else { None }
    };
    let constants: Vec<Scalar> = args.iter().map(constant).collect::<Option<_>>()?;
    eval::fold(prim, &constants, eval::EXACT_IN_F64)
}
