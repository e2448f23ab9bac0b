//! Derivatives of the elementwise primitives. The jacobian of such a primitive is diagonal, so that one rule gives both
//! the tangent that an operand contributes and, transposed, its cotangent. Sources: NIST DLMF 4.20 (trigonometric),
//! 4.38 (hyperbolic), 5.2, 5.12 and 5.15 (gamma, beta), 7.2 (error function); at points without a derivative the values
//! of JAX and Stan (0 for `abs` at 0), the first operand for `min` and `max` of equal numbers.

use std::f64::consts::{LN_2, LN_10};

use super::care::Care;
use super::code::{ChainRule as _, Code, real};
use super::tangent::Site;
use crate::cfg::Operand;
use crate::prim::{Arithmetic, Class, Identity, Prim, RealArithmetic, Selection};
use crate::types::Scalar;
use crate::vmath::{BinaryFn, UnaryFn};

const TWO_OVER_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;
const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_7;
const ONE_OVER_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// `∂prim/∂args[i] · t`, for a primitive that is elementwise in reals; nothing where it is zero. `result` is the value
/// of the primitive. The result may be a scalar although that of the primitive is an array: then it is the same for all
/// elements.
pub(super) fn elementwise(code: &mut Code<'_>, site: Site<'_>, i: usize, t: Operand) -> Option<Operand> {
    let args = site.args;
    match site.prim.class() {
        Class::Identity(Identity::Copy) => Some(t),
        Class::Identity(Identity::StopGradient) => None,
        Class::Selection(Selection::Select) => {
            let arms = if i == 1 { [args[0], t, real(0.0)] } else { [args[0], real(0.0), t] };
            Some(code.prim(Prim::Select, &arms))
        }
        Class::Arithmetic(op) => Some(arithmetic(code, site, op, i, t)),
        Class::RealArithmetic(op) => Some(real_arithmetic(code, site, op, i, t)),
        Class::Unary(f) => unary(code, site, f, t),
        Class::Binary(f) => binary(code, site, f, i, t),
        // of ints and bools, or to them
        Class::IntArithmetic(_) | Class::Comparison(_) | Class::Logic(_) | Class::Conversion(_) => None,
        Class::Movement(_) | Class::Contraction(_) | Class::Triangular(_) | Class::Reduction(_) | Class::Draw(_) => {
            unreachable!("`{}` is not elementwise", site.prim)
        }
    }
}

fn arithmetic(code: &mut Code<'_>, site: Site<'_>, op: Arithmetic, i: usize, t: Operand) -> Operand {
    let Site { args, care, .. } = site;
    match op {
        Arithmetic::Add => t,
        Arithmetic::Sub if i == 0 => t,
        Arithmetic::Sub | Arithmetic::Neg => code.prim(Prim::Neg, &[t]),
        Arithmetic::Mul => code.times(t, args[1 - i], care),
        Arithmetic::Abs => {
            let minus = code.prim(Prim::Neg, &[t]);
            let below = code.prim(Prim::Lt, &[args[0], real(0.0)]);
            let above = code.prim(Prim::Gt, &[args[0], real(0.0)]);
            let other = code.prim(Prim::Select, &[below, minus, real(0.0)]);
            code.prim(Prim::Select, &[above, t, other])
        }
        Arithmetic::Min | Arithmetic::Max => {
            let first = code.prim(if op == Arithmetic::Min { Prim::Le } else { Prim::Ge }, args);
            let arms = if i == 0 { [first, t, real(0.0)] } else { [first, real(0.0), t] };
            code.prim(Prim::Select, &arms)
        }
    }
}

fn real_arithmetic(code: &mut Code<'_>, site: Site<'_>, op: RealArithmetic, i: usize, t: Operand) -> Operand {
    let Site { args, result, care, .. } = site;
    let (x, y) = (args[0], args[1]);
    let singular = Care::Careful;
    match (op, i) {
        (RealArithmetic::Rem, 0) => t,
        (RealArithmetic::ChainMul, i) => code.times(t, args[1 - i], singular),
        // where the quotient has no derivative it is no number itself, and only what is careful can make one of it
        (RealArithmetic::Div, 0) => code.over(t, y, care),
        (RealArithmetic::ChainDiv, 0) => code.over(t, y, singular),
        (RealArithmetic::Div | RealArithmetic::ChainDiv, _) => {
            let care = if op == RealArithmetic::Div { care } else { singular };
            let t = code.over(t, y, care);
            let t = code.times(t, result, care);
            code.prim(Prim::Neg, &[t])
        }
        (RealArithmetic::Rem, _) => {
            // x - y·n for the whole number n that the primitive took, which the rounded quotient may miss by one
            let taken = code.prim(Prim::Sub, &[x, result]);
            let quotient = code.prim(Prim::Div, &[taken, y]);
            let whole = code.prim(Prim::Round, &[quotient]);
            let t = code.times(t, whole, singular);
            code.prim(Prim::Neg, &[t])
        }
    }
}

fn unary(code: &mut Code<'_>, site: Site<'_>, f: UnaryFn, t: Operand) -> Option<Operand> {
    use Prim::*;
    let (one, x, y) = (real(1.0), site.args[0], site.result);
    // what `t` is multiplied by, or divided by; whether it is finite for every number x
    enum Factor {
        Times(Operand),
        Over(Operand),
        Minus(Operand),
    }
    use Factor::{Minus, Over, Times};
    let bounded = site.care;
    let singular = Care::Careful;
    let (factor, care) = match f {
        UnaryFn::Abs => return Some(arithmetic(code, site, Arithmetic::Abs, 0, t)),
        UnaryFn::Sqrt => (Over(code.prim(Add, &[y, y])), singular),
        UnaryFn::Cbrt => {
            let square = code.prim(Mul, &[y, y]);
            (Over(code.prim(Mul, &[real(3.0), square])), singular)
        }
        UnaryFn::Exp => (Times(y), singular),
        UnaryFn::Exp2 => (Times(code.prim(Mul, &[real(LN_2), y])), singular),
        UnaryFn::Expm1 => (Times(code.prim(Exp, &[x])), singular),
        UnaryFn::Log => (Over(x), singular),
        UnaryFn::Log2 => (Over(code.prim(Mul, &[real(LN_2), x])), singular),
        UnaryFn::Log10 => (Over(code.prim(Mul, &[real(LN_10), x])), singular),
        UnaryFn::Log1p => (Over(code.prim(Add, &[one, x])), singular),
        UnaryFn::Log1m => (Over(code.prim(Sub, &[x, one])), singular),
        UnaryFn::Log1mExp => {
            // -e^x / (1 - e^x), without cancellation near 0
            let minus = code.prim(Neg, &[x]);
            let above = code.prim(Expm1, &[minus]);
            (Over(code.prim(Neg, &[above])), singular)
        }
        UnaryFn::Sin => (Times(code.prim(Cos, &[x])), bounded),
        UnaryFn::Cos => (Minus(code.prim(Sin, &[x])), bounded),
        UnaryFn::Tan => {
            let square = code.prim(Mul, &[y, y]);
            (Times(code.prim(Add, &[one, square])), bounded)
        }
        UnaryFn::Asin => (Over(leg(code, x)), singular),
        UnaryFn::Acos => {
            let leg = leg(code, x);
            let t = code.over(t, leg, singular);
            return Some(code.prim(Neg, &[t]));
        }
        UnaryFn::Atan => {
            let square = code.prim(Mul, &[x, x]);
            (Over(code.prim(Add, &[one, square])), bounded)
        }
        UnaryFn::Sinh => (Times(code.prim(Cosh, &[x])), singular),
        UnaryFn::Cosh => (Times(code.prim(Sinh, &[x])), singular),
        UnaryFn::Tanh => {
            // 4 / (e^x + e^-x)²: 1 - y² has no digits left where y is near 1, this has them to where it underflows
            let twice = code.prim(Add, &[x, x]);
            let minus = code.prim(Neg, &[twice]);
            let (above, below) = (code.prim(InvLogit, &[twice]), code.prim(InvLogit, &[minus]));
            let four = code.prim(Mul, &[real(4.0), above]);
            (Times(code.prim(Mul, &[four, below])), bounded)
        }
        UnaryFn::InvLogit => {
            // as above, where y · (1 - y) would have none
            let minus = code.prim(Neg, &[x]);
            let other = code.prim(InvLogit, &[minus]);
            (Times(code.prim(Mul, &[y, other])), bounded)
        }
        UnaryFn::Log1pExp => (Times(code.prim(InvLogit, &[x])), bounded),
        UnaryFn::LogInvLogit => {
            let minus = code.prim(Neg, &[x]);
            (Times(code.prim(InvLogit, &[minus])), bounded)
        }
        UnaryFn::InvCloglog => {
            // e^(x - e^x); beyond 710 e^x is infinite, and the difference shall be, too
            let growth = code.prim(Exp, &[x]);
            let finite = code.prim(Min, &[x, real(710.0)]);
            let exponent = code.prim(Sub, &[finite, growth]);
            (Times(code.prim(Exp, &[exponent])), bounded)
        }
        UnaryFn::Erf => (Times(gaussian(code, x, 1.0, TWO_OVER_SQRT_PI)), bounded),
        UnaryFn::Erfc => (Minus(gaussian(code, x, 1.0, TWO_OVER_SQRT_PI)), bounded),
        UnaryFn::Lgamma => (Times(code.prim(Digamma, &[x])), singular),
        UnaryFn::Digamma => (Times(code.prim(Trigamma, &[x])), singular),
        UnaryFn::Phi => (Times(gaussian(code, x, 0.5, ONE_OVER_SQRT_TWO_PI)), bounded),
        UnaryFn::InvPhi => (Times(gaussian(code, y, -0.5, SQRT_TWO_PI)), singular),
        UnaryFn::Floor | UnaryFn::Ceil | UnaryFn::Round | UnaryFn::Trunc => return None,
        // the table says that it has none, and a program that asks for it is refused
        UnaryFn::Trigamma => return None,
    };
    Some(match factor {
        Times(d) => code.times(t, d, care),
        Over(d) => code.over(t, d, care),
        Minus(d) => {
            let t = code.times(t, d, care);
            code.prim(Neg, &[t])
        }
    })
}

/// √(1 - x²), without cancellation near ±1.
fn leg(code: &mut Code<'_>, x: Operand) -> Operand {
    let (below, above) = (code.prim(Prim::Sub, &[real(1.0), x]), code.prim(Prim::Add, &[real(1.0), x]));
    let product = code.prim(Prim::Mul, &[below, above]);
    code.prim(Prim::Sqrt, &[product])
}

/// `scale · exp(-rate · x²)`
fn gaussian(code: &mut Code<'_>, x: Operand, rate: f64, scale: f64) -> Operand {
    let square = code.prim(Prim::Mul, &[x, x]);
    let exponent = code.prim(Prim::Mul, &[real(-rate), square]);
    let exp = code.prim(Prim::Exp, &[exponent]);
    code.prim(Prim::Mul, &[real(scale), exp])
}

fn binary(code: &mut Code<'_>, site: Site<'_>, f: BinaryFn, i: usize, t: Operand) -> Option<Operand> {
    use Prim::*;
    let Site { args, result, .. } = site;
    let (x, y) = (args[0], args[1]);
    let singular = Care::Careful;
    Some(match (f, i) {
        (BinaryFn::Pow, 0) => return power_base(code, x, y, t),
        (BinaryFn::Pow, _) => {
            // x^y·log x; where x is 0 the power is constant in y > 0
            let log = code.prim(Log, &[x]);
            let d = code.prim(Mul, &[result, log]);
            let zero = code.prim(Eq, &[x, real(0.0)]);
            let d = code.prim(Select, &[zero, real(0.0), d]);
            code.times(t, d, singular)
        }
        (BinaryFn::Atan2, i) => {
            // the angle of (y, x) in the names of the primitive: the operands are (x, y) here
            // scaled, so that squares neither overflow nor vanish
            let (ax, ay) = (code.prim(Abs, &[x]), code.prim(Abs, &[y]));
            let scale = code.prim(Max, &[ax, ay]);
            let (u, v) = (code.prim(Div, &[x, scale]), code.prim(Div, &[y, scale]));
            let (uu, vv) = (code.prim(Mul, &[u, u]), code.prim(Mul, &[v, v]));
            let radius = code.prim(Add, &[uu, vv]);
            let d = code.prim(Div, &[if i == 0 { v } else { u }, radius]);
            let d = code.prim(Div, &[d, scale]);
            let t = code.times(t, d, singular);
            if i == 0 { t } else { code.prim(Neg, &[t]) }
        }
        (BinaryFn::Lbeta, i) => {
            let sum = code.prim(Add, &[x, y]);
            let (own, both) = (code.prim(Digamma, &[args[i]]), code.prim(Digamma, &[sum]));
            let d = code.prim(Sub, &[own, both]);
            code.times(t, d, singular)
        }
        (BinaryFn::LogAddExp, i) => {
            // Equal infinities have no difference; each has half of the derivative.
            let difference = code.prim(Sub, &[args[i], args[1 - i]]);
            let equal = code.prim(IsNan, &[difference]);
            let share = code.prim(InvLogit, &[difference]);
            let share = code.prim(Select, &[equal, real(0.5), share]);
            code.times(t, share, site.care)
        }
        (BinaryFn::Lmultiply, 0) => {
            let log = code.prim(Log, &[y]);
            code.times(t, log, singular)
        }
        (BinaryFn::Lmultiply, _) => {
            // 0 where x is, whatever y is: the function is constant there
            let t = code.times(t, x, singular);
            code.over(t, y, singular)
        }
        (BinaryFn::Rem, i) => return Some(real_arithmetic(code, site, RealArithmetic::Rem, i, t)),
        (BinaryFn::Min, i) => return Some(arithmetic(code, site, Arithmetic::Min, i, t)),
        (BinaryFn::Max, i) => return Some(arithmetic(code, site, Arithmetic::Max, i, t)),
    })
}

/// `t · y · x^(y-1)`, which is 0 where y is 0 whatever x is.
fn power_base(code: &mut Code<'_>, x: Operand, y: Operand, t: Operand) -> Option<Operand> {
    if let Operand::Const(Scalar::Real(y)) = y {
        if y == 0.0 {
            return None;
        }
        if y == 1.0 {
            return Some(t);
        }
        if y == 2.0 {
            let twice = code.prim(Prim::Add, &[x, x]);
            return Some(code.times(t, twice, Care::Careful));
        }
        // exact for any exponent that people write; a half, say
        let power = code.prim(Prim::Pow, &[x, real(y - 1.0)]);
        let d = code.prim(Prim::Mul, &[real(y), power]);
        return Some(code.times(t, d, Care::Careful));
    }
    let less = code.prim(Prim::Sub, &[y, real(1.0)]);
    let power = code.prim(Prim::Pow, &[x, less]);
    let d = code.times(y, power, Care::Careful);
    Some(code.times(t, d, Care::Careful))
}
