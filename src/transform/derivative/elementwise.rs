//! Derivatives of the elementwise primitives. The jacobian of such a primitive is diagonal, so that one rule gives both the
//! tangent that an operand contributes and, transposed, its cotangent. Sources: NIST DLMF 4.20 (trigonometric), 4.38
//! (hyperbolic), 5.2 and 5.15 (gamma), 7.2 (error function); at points without a derivative the values of JAX and Stan
//! (0 for `abs` at 0), the first operand for `min` and `max` of equal numbers.

use super::care::Care;
use super::code::{Code, real};
use super::tangent::Site;
use crate::cfg::Operand;
use crate::prim::Prim;
use crate::types::Scalar;

const TWO_OVER_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;
const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_7;
const ONE_OVER_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// `∂prim/∂args[i] · t`, for a primitive that is elementwise in reals; nothing where it is zero. `result` is the value
/// of the primitive. The result may be a scalar although that of the primitive is an array: then it is the same for all
/// elements.
pub(super) fn elementwise(code: &mut Code<'_>, site: Site<'_>, i: usize, t: Operand) -> Option<Operand> {
    match (site.prim, site.args) {
        (Prim::Select, &[c, _, _]) => {
            let zero = real(0.0);
            Some(if i == 1 { code.prim(Prim::Select, &[c, t, zero]) } else { code.prim(Prim::Select, &[c, zero, t]) })
        }
        (_, &[x]) => unary(code, site, x, t),
        (_, &[x, y]) => binary(code, site, i, (x, y), t),
        _ => None,
    }
}

fn unary(code: &mut Code<'_>, site: Site<'_>, x: Operand, t: Operand) -> Option<Operand> {
    use Prim::*;
    let (one, y) = (real(1.0), site.result);
    // what `t` is multiplied by, or divided by; whether it is finite for every number x
    enum Factor {
        Times(Operand),
        Over(Operand),
        Minus(Operand),
    }
    use Factor::{Minus, Over, Times};
    let bounded = site.care;
    let singular = Care::Careful;
    let (factor, care) = match site.prim {
        Copy => return Some(t),
        Neg => return Some(code.prim(Neg, &[t])),
        Abs => {
            let minus = code.prim(Neg, &[t]);
            let below = code.prim(Lt, &[x, real(0.0)]);
            let above = code.prim(Gt, &[x, real(0.0)]);
            let other = code.prim(Select, &[below, minus, real(0.0)]);
            return Some(code.prim(Select, &[above, t, other]));
        }
        Sqrt => (Over(code.prim(Add, &[y, y])), singular),
        Exp => (Times(y), singular),
        Expm1 => (Times(code.prim(Exp, &[x])), singular),
        Log => (Over(x), singular),
        Log1p => (Over(code.prim(Add, &[one, x])), singular),
        Sin => (Times(code.prim(Cos, &[x])), bounded),
        Cos => (Minus(code.prim(Sin, &[x])), bounded),
        Tan => {
            let square = code.prim(Mul, &[y, y]);
            (Times(code.prim(Add, &[one, square])), bounded)
        }
        Asin => (Over(leg(code, x)), singular),
        Acos => {
            let leg = leg(code, x);
            let t = code.over(t, leg, singular);
            return Some(code.prim(Neg, &[t]));
        }
        Atan => {
            let square = code.prim(Mul, &[x, x]);
            (Over(code.prim(Add, &[one, square])), bounded)
        }
        Sinh => (Times(code.prim(Cosh, &[x])), singular),
        Cosh => (Times(code.prim(Sinh, &[x])), singular),
        Tanh => {
            // 4 / (e^x + e^-x)²: 1 - y² has no digits left where y is near 1, this has them to where it underflows
            let twice = code.prim(Add, &[x, x]);
            let minus = code.prim(Neg, &[twice]);
            let (above, below) = (code.prim(InvLogit, &[twice]), code.prim(InvLogit, &[minus]));
            let four = code.prim(Mul, &[real(4.0), above]);
            (Times(code.prim(Mul, &[four, below])), bounded)
        }
        InvLogit => {
            // as above, where y · (1 - y) would have none
            let minus = code.prim(Neg, &[x]);
            let other = code.prim(InvLogit, &[minus]);
            (Times(code.prim(Mul, &[y, other])), bounded)
        }
        Log1pExp => (Times(code.prim(InvLogit, &[x])), bounded),
        Erf => (Times(gaussian(code, x, 1.0, TWO_OVER_SQRT_PI)), bounded),
        Erfc => (Minus(gaussian(code, x, 1.0, TWO_OVER_SQRT_PI)), bounded),
        Lgamma => (Times(code.prim(Digamma, &[x])), singular),
        Digamma => (Times(code.prim(Trigamma, &[x])), singular),
        Phi => (Times(gaussian(code, x, 0.5, ONE_OVER_SQRT_TWO_PI)), bounded),
        InvPhi => (Times(gaussian(code, y, -0.5, SQRT_TWO_PI)), singular),
        _ => return None,
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

fn binary(code: &mut Code<'_>, site: Site<'_>, i: usize, (x, y): (Operand, Operand), t: Operand) -> Option<Operand> {
    use Prim::*;
    let Site { prim, result, care, .. } = site;
    let singular = Care::Careful;
    Some(match (prim, i) {
        (Add, _) | (Sub, 0) | (Rem, 0) => t,
        (Sub, _) => code.prim(Neg, &[t]),
        (Mul, i) => code.times(t, if i == 0 { y } else { x }, care),
        (ChainMul, i) => code.times(t, if i == 0 { y } else { x }, singular),
        // where the quotient has no derivative it is no number itself, and only what is careful can make one of it
        (Div, 0) => code.over(t, y, care),
        (ChainDiv, 0) => code.over(t, y, singular),
        (Div | ChainDiv, _) => {
            let care = if prim == Div { care } else { singular };
            let t = code.over(t, y, care);
            let t = code.times(t, result, care);
            code.prim(Neg, &[t])
        }
        (Rem, _) => {
            // x - y·n for the whole number n that the primitive took, which the rounded quotient may miss by one
            let taken = code.prim(Sub, &[x, result]);
            let quotient = code.prim(Div, &[taken, y]);
            let whole = code.prim(Round, &[quotient]);
            let t = code.times(t, whole, singular);
            code.prim(Neg, &[t])
        }
        (Min | Max, i) => {
            let first = code.prim(if prim == Min { Le } else { Ge }, &[x, y]);
            let arms = if i == 0 { [first, t, real(0.0)] } else { [first, real(0.0), t] };
            code.prim(Select, &arms)
        }
        (Pow, 0) => return power_base(code, x, y, t),
        (Pow, _) => {
            // x^y·log x; where x is 0 the power is constant in y > 0
            let log = code.prim(Log, &[x]);
            let d = code.prim(Mul, &[result, log]);
            let zero = code.prim(Eq, &[x, real(0.0)]);
            let d = code.prim(Select, &[zero, real(0.0), d]);
            code.times(t, d, singular)
        }
        (Atan2, i) => {
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
        _ => return None,
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
