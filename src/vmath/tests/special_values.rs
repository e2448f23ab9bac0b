//! Zeros, infinities, NaN, the ends of the range, and exact values.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

use super::{INF, NAN, ulps};
use crate::UnaryFn::*;
use crate::*;

/// (argument, value), exactly.
#[rustfmt::skip]
const SPECIAL_VALUES: &[(UnaryFn, &[(f64, f64)])] = &[
    (Exp, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (709.7827128933841, INF), (-745.1332191019411,
        5e-324), (-745.1332191019412, 0.0)]),
    (Expm1, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (-50.0, -1.0), (5e-324, 5e-324), (709.79,
        INF)]),
    (Log, &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (5e-324,
        -744.4400719213812)]),
    (Log1p, &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-1.1, NAN), (-INF, NAN), (5e-324, 5e-324),
        (f64::MAX, 709.782712893384)]),
    (Log2, &[(0.0, -INF), (1.0, 0.0), (1024.0, 10.0), (0.125, -3.0), (5e-324, -1074.0), (INF, INF), (-1.0,
        NAN)]),
    (Exp2, &[(0.0, 1.0), (-0.0, 1.0), (3.0, 8.0), (-1074.0, 5e-324), (-1076.0, 0.0), (1023.0, 8.98846567431158e307), (1024.0,
        INF), (0.5, std::f64::consts::SQRT_2), (INF, INF), (-INF, 0.0)]),
    (Cbrt, &[(0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-0.125, -0.5), (1e300, 1e100), (INF, INF), (-INF, -INF), (5e-324,
        1.7031839360032603e-108)]),
    (Log1m, &[(0.0, -0.0), (-0.0, 0.0), (1.0, -INF), (2.0, NAN), (-INF, INF), (INF, NAN), (5e-324, -5e-324)]),
    (Log1mExp, &[(0.0, -INF), (-0.0, -INF), (1.0, NAN), (INF, NAN), (-INF, -0.0), (-5e-324, -744.4400719213812)]),
    (InvCloglog, &[(-INF, 0.0), (INF, 1.0), (-745.0, 5e-324), (10.0, 1.0)]),
    (Log10, &[(0.0, -INF), (1.0, 0.0), (1000.0, 3.0), (1e22, 22.0), (INF, INF), (-1.0, NAN)]),
    (Sin, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (5e-324, 5e-324), (PI, 1.2246467991473532e-16),
        (1e22, -0.8522008497671888), (f64::MAX, 0.004961954789184062)]),
    (Cos, &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (FRAC_PI_2, 6.123233995736766e-17), (1e22, 0.523214785395139),
        (f64::MAX, -0.9999876894265599), (-f64::MAX, -0.9999876894265599),
        // the double nearest to an odd multiple of π/2
        (5.319372648326541e255, -4.687165924254628e-19)]),
    (Tan, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (FRAC_PI_2, 1.633123935319537e16)]),
    (Asin, &[(0.0, 0.0), (-0.0, -0.0), (1.0, FRAC_PI_2), (-1.0, -FRAC_PI_2), (1.1, NAN), (-INF, NAN), (5e-324,
        5e-324)]),
    (Acos, &[(0.0, FRAC_PI_2), (1.0, 0.0), (-1.0, PI), (1.1, NAN), (INF, NAN)]),
    (Atan, &[(0.0, 0.0), (-0.0, -0.0), (INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (1.0, FRAC_PI_4), (5e-324,
        5e-324)]),
    (Sinh, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (711.0, INF), (5e-324, 5e-324)]),
    (Cosh, &[(0.0, 1.0), (INF, INF), (-INF, INF), (711.0, INF)]),
    (Tanh, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (5e-324, 5e-324)]),
    (InvLogit, &[(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-745.0, 5e-324), (40.0, 1.0)]),
    (Log1pExp, &[(0.0, LN_2), (INF, INF), (-INF, 0.0), (1e300, 1e300)]),
    (LogInvLogit, &[(0.0, -LN_2), (INF, -0.0), (-INF, -INF), (-1e300, -1e300)]),
    (Erf, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)]),
    (Erfc, &[(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (30.0, 0.0)]),
    (Lgamma, &[(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-1.0, INF), (-5e15, INF), (INF, INF), (-INF,
        INF), (5e-324, 744.4400719213812), (3e305, INF)]),
    (Trigamma, &[(0.0, INF), (-0.0, INF), (-1.0, INF), (-7.0, INF), (5e-324, INF), (INF, 0.0), (-INF, NAN)]),
    (Digamma, &[(0.0, -INF), (-0.0, INF), (-1.0, NAN), (-7.0, NAN), (INF, INF), (-INF, NAN)]),
    (Phi, &[(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-40.0, 0.0)]),
    (InvPhi, &[(0.0, -INF), (1.0, INF), (0.5, 0.0), (-0.1, NAN), (1.1, NAN), (INF, NAN)]),
    (Round, &[(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.49999999999999994, 0.0), (-0.2, -0.0)]),
    (Sqrt, &[(4.0, 2.0), (-0.0, -0.0), (-1.0, NAN)]),
];

#[test]
fn special_values_are_right() {
    for (f, values) in SPECIAL_VALUES {
        for &(x, expected) in *values {
            let y: f64 = f.apply(x);
            assert_eq!(y.to_bits64(), expected.to_bits64(), "{}({x:e}) = {y:e}, not {expected:e}", f.name());
        }
    }
    for f in UnaryFn::ALL {
        assert!(f.apply(NAN).is_nan() && f.apply(f32::NAN).is_nan(), "{}(NaN)", f.name());
    }
}

#[test]
fn special_values_of_two_arguments_are_right() {
    use BinaryFn::*;
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e300,
        -1e300,
        5e-324,
        9007199254740993.0,
        INF,
        -INF,
        NAN,
    ];
    for x in values {
        for y in values {
            let same = |f: BinaryFn, expected: f64| {
                let z = f.apply(x, y);
                assert!(ulps(z, expected) <= 1, "{}({x:e}, {y:e}) = {z:e}, not {expected:e}", f.name());
                assert!(
                    z.is_nan() || z.is_sign_negative() == expected.is_sign_negative(),
                    "{}({x:e}, {y:e})",
                    f.name()
                );
            };
            same(Pow, x.powf(y));
            same(Atan2, x.atan2(y));
            same(Rem, x % y);
        }
    }
    let zeros: [(BinaryFn, f64, f64, f64); 6] = [
        (Min, 0.0, -0.0, -0.0),
        (Min, -0.0, 0.0, -0.0),
        (Max, 0.0, -0.0, 0.0),
        (Max, -0.0, 0.0, 0.0),
        (Min, NAN, 1.0, NAN),
        (Max, 1.0, NAN, NAN),
    ];
    for (f, x, y, expected) in zeros {
        assert_eq!(f.apply(x, y).to_bits64(), expected.to_bits64());
    }
    let logarithms: [(BinaryFn, f64, f64, f64); 24] = [
        (Lmultiply, 0.0, 0.0, 0.0),
        (Lmultiply, -0.0, 0.0, 0.0),
        (Lmultiply, 2.0, 1.0, 0.0),
        (Lmultiply, 1.0, 0.0, -INF),
        (Lmultiply, 0.0, INF, NAN),
        (Lmultiply, 1.0, -1.0, NAN),
        (Lmultiply, NAN, 0.0, NAN),
        (Lmultiply, -2.0, INF, -INF),
        (LogAddExp, INF, INF, INF),
        (LogAddExp, -INF, -INF, -INF),
        (LogAddExp, -INF, INF, INF),
        (LogAddExp, INF, 3.0, INF),
        (LogAddExp, -2.5, -INF, -2.5),
        (LogAddExp, NAN, 1.0, NAN),
        (LogAddExp, -INF, NAN, NAN),
        (LogAddExp, NAN, NAN, NAN),
        (Lbeta, 1.0, 1.0, 0.0),
        (Lbeta, 0.0, 3.0, INF),
        (Lbeta, INF, 0.0, INF),
        (Lbeta, INF, 2.0, -INF),
        (Lbeta, INF, INF, -INF),
        (Lbeta, -0.5, 2.0, NAN),
        (Lbeta, NAN, 2.0, NAN),
        (Lbeta, 0.0, NAN, NAN),
    ];
    for (f, x, y, expected) in logarithms {
        let z = f.apply(x, y);
        assert!(ulps(z, expected) == 0, "{}({x:e}, {y:e}) = {z:e}, not {expected:e}", f.name());
    }
    assert_eq!((Min.apply(2.0, -3.0), Max.apply(2.0, -3.0), Max.apply(-INF, INF)), (-3.0, 2.0, INF));
}
