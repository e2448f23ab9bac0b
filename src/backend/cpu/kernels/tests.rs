//! Elementwise kernels against the definition for one lane, at every width, under every kind of mask, on values at the edges.

use super::{Active, Keep, KernelArg, KernelCall, Streams, can_keep, run};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::{Class, Prim, eval};
use crate::run::TrapKind;
use crate::types::{DType, Scalar, Type};
use crate::vmath::{BinaryFn, Real, UnaryFn, philox};

/// Ints at which something changes: signs, halves of the range, the limits of the vectorised division.
const INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    -2,
    3,
    -3,
    7,
    64,
    -1000,
    i32::MAX as i64,
    i32::MIN as i64,
    i32::MAX as i64 + 1,
    i32::MIN as i64 - 1,
    3_037_000_499,
    3_037_000_500,
    (1 << 51) - 1,
    1 << 51,
    -(1 << 51),
    1 - (1 << 51),
    (1 << 53) + 1,
    1 << 62,
    -(1 << 62),
    i64::MAX / 3,
    i64::MAX / 3 + 1,
    i64::MIN / 3,
    i64::MIN / 3 - 1,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN + 1,
    i64::MIN,
];

const REALS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    0.499_999_999_999_999_94,
    -3.999,
    1e300,
    -1e-300,
    2_251_799_813_685_247.5,
    2_251_799_813_685_248.0,
    -2_251_799_813_685_248.5,
    9_223_372_036_854_774_784.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    -9_223_372_036_854_777_856.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

const INT_BINARY: &[Prim] =
    &[Prim::Add, Prim::Sub, Prim::Mul, Prim::IntDiv, Prim::IntRem, Prim::IntPow, Prim::Min, Prim::Max];
const COMPARISONS: &[Prim] = &[Prim::Eq, Prim::Ne, Prim::Lt, Prim::Le, Prim::Gt, Prim::Ge];

fn masks(width: usize, seed: u64) -> Vec<Vec<bool>> {
    let mixed = |l: usize| (l as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
    let shapes: [&dyn Fn(usize) -> bool; 6] =
        [&|_| false, &|_| true, &|l| l == 0, &|l| l + 1 == width, &|l| l % 64 != 63, &mixed];
    shapes.iter().map(|shape| (0..width).map(shape).collect()).collect()
}

fn words(mask: &[bool]) -> Vec<u64> {
    mask.chunks(64).map(|c| c.iter().enumerate().fold(0, |word, (l, on)| word | u64::from(*on) << l)).collect()
}

fn scalars<R: Real>(buffer: &Buffer<R>) -> Vec<Scalar> {
    match buffer {
        Buffer::Bool(v) => v.iter().map(|x| Scalar::Bool(*x)).collect(),
        Buffer::Int(v) => v.iter().map(|x| Scalar::Int(*x)).collect(),
        Buffer::Real(v) => v.iter().map(|x| Scalar::Real(x.to_f64())).collect(),
    }
}

fn same(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Real(a), Scalar::Real(b)) => a.to_bits64() == b.to_bits64(),
        (a, b) => a == b,
    }
}

/// Runs a kernel on scalars under every mask, with and without values to keep, and compares it with `expected`.
fn check<R: Real>(
    prim: Prim,
    width: usize,
    args: &[(&Buffer<R>, bool)],
    expected: &dyn Fn(&[Scalar]) -> Result<Scalar, TrapKind>,
) {
    let types: Vec<Type> = args.iter().map(|(b, _)| Type::scalar(scalars(b)[0].dtype())).collect();
    let ty = prim.infer(&types).expect("the operands fit");
    let operands: Vec<KernelArg<'_, R>> =
        args.iter().zip(&types).map(|((buffer, broadcast), ty)| KernelArg::new(buffer, ty, *broadcast)).collect();
    let values: Vec<Vec<Scalar>> = args.iter().map(|(b, _)| scalars(b)).collect();
    let lane_args = |lane: usize| -> Vec<Scalar> {
        args.iter().zip(&values).map(|((_, broadcast), v)| v[if *broadcast { 0 } else { lane }]).collect()
    };
    let results: Vec<_> = (0..width).map(|lane| expected(&lane_args(lane))).collect();
    let old: Buffer<R> = match ty.dtype {
        DType::Bool => Buffer::Bool((0..width).map(|l| l % 3 == 0).collect()),
        DType::Int => Buffer::Int((0..width).map(|l| l as i64 - 7777).collect()),
        DType::Real => Buffer::Real((0..width).map(|l| R::from_f64(l as f64 + 0.25)).collect()),
    };
    for mask in masks(width, width as u64) {
        let (bits, bytes): (_, Vec<i8>) = (words(&mask), mask.iter().map(|on| -i8::from(*on)).collect());
        let all = mask.iter().all(|on| *on);
        for keeps in [false, true] {
            if keeps && !can_keep(prim) {
                continue;
            }
            let mut out = Buffer::zeros(ty.dtype, width);
            let mut traps = Vec::new();
            let call = KernelCall {
                prim,
                args: &operands,
                ty: &ty,
                width,
                active: if all && !keeps { Active::All } else { Active::Mask(&bits) },
                keep: keeps.then_some(Keep { values: &old, mask: &bytes }),
                accumulate: false,
                traps: &mut traps,
            };
            run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, &mut out);
            let (out, old) = (scalars(&out), scalars(&old));
            let mut wanted = Vec::new();
            for lane in 0..width {
                let at =
                    || format!("{prim} {:?} lane {lane} of {width}, mask {bits:x?}, keeps {keeps}", lane_args(lane));
                match &results[lane] {
                    _ if !mask[lane] => assert!(!keeps || same(out[lane], old[lane]), "kept: {}", at()),
                    Ok(value) => assert!(same(out[lane], *value), "{:?} is not {value:?}: {}", out[lane], at()),
                    Err(kind) => wanted.push((lane as u32, *kind)),
                }
            }
            assert_eq!(traps, wanted, "traps of {prim}, width {width}, mask {bits:x?}, keeps {keeps}");
        }
    }
}

/// `width` values that step through a list from somewhere on.
fn ints(width: usize, from: usize, step: usize) -> Buffer<f64> {
    Buffer::Int((0..width).map(|l| INTS[(from + l * step) % INTS.len()]).collect())
}

fn int_result(prim: Prim, args: &[Scalar]) -> Result<Scalar, TrapKind> {
    let result = match args {
        [Scalar::Int(x)] => match prim.class() {
            Class::Identity(_) => Some(Ok(*x)),
            Class::Arithmetic(op) => eval::int_unary(op, *x),
            _ => None,
        },
        [Scalar::Int(x), Scalar::Int(y)] => eval::int_binary(prim.class(), *x, *y),
        other => panic!("ints, not {other:?}"),
    };
    result.expect("arithmetic of ints").map(Scalar::Int).map_err(TrapKind::from)
}

#[test]
fn ints_with_ints_of_lanes() {
    for width in 1..=130 {
        for prim in INT_BINARY {
            // Every pair of values comes up at some width.
            for step in [1, 4, 9] {
                let (x, y) = (ints(width, width, 1), ints(width, width / 2, step));
                check(*prim, width, &[(&x, false), (&y, false)], &|args| int_result(*prim, args));
            }
        }
    }
}

#[test]
fn ints_with_a_constant() {
    for (i, c) in INTS.iter().enumerate() {
        let c = Buffer::<f64>::Int(vec![*c].into());
        for width in [1, 5, 31, 64, 65, 130 - i] {
            let x = ints(width, 0, 1);
            for prim in INT_BINARY {
                check(*prim, width, &[(&x, false), (&c, true)], &|args| int_result(*prim, args));
                check(*prim, width, &[(&c, true), (&x, false)], &|args| int_result(*prim, args));
                check(*prim, width, &[(&c, true), (&c, true)], &|args| int_result(*prim, args));
            }
        }
    }
}

#[test]
fn ints_of_one_operand() {
    for width in 1..=130 {
        for prim in [Prim::Copy, Prim::Neg, Prim::Abs] {
            check(prim, width, &[(&ints(width, width, 1), false)], &|args| int_result(prim, args));
        }
    }
}

#[test]
fn small_ints_do_not_trap_beside_lanes_that_would() {
    let x = Buffer::<f64>::Int(vec![10, i64::MAX, 3, 5].into());
    let y = Buffer::<f64>::Int(vec![3, 2, 0, -2].into());
    for (prim, expected) in [(Prim::Mul, [30, -10]), (Prim::IntDiv, [3, -2]), (Prim::IntRem, [1, 1])] {
        let (ty, mut traps, mut out) = (Type::int(), Vec::new(), Buffer::Int(vec![0; 4].into()));
        let args = [&x, &y].map(|buffer| KernelArg::new(buffer, &ty, false));
        let active = Active::Mask(&[0b1001]);
        let call = KernelCall {
            prim,
            args: &args,
            ty: &ty,
            width: 4,
            active,
            keep: None,
            accumulate: false,
            traps: &mut traps,
        };
        run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, &mut out);
        assert_eq!((out.ints()[0], out.ints()[3]), (expected[0], expected[1]), "{prim}");
        assert!(traps.is_empty(), "{prim}: only lanes that are not active go wrong");
    }
}

#[test]
fn quotients_near_the_limit_of_the_vectorised_division() {
    let limit = 1_i64 << 51;
    for y in [3, -3, 7, 10, 1 << 20, (1 << 25) + 1, 94_906_267, limit - 1, 1 - limit] {
        let around = |q: i64| [q * y - 1, q * y, q * y + 1].map(|x| x.clamp(1 - limit, limit - 1));
        let x: Vec<i64> = [0, 1, -1, 5, limit / y - 1, limit / y, -limit / y].into_iter().flat_map(around).collect();
        let width = x.len();
        let (x, y) = (Buffer::<f64>::Int(x.into()), Buffer::<f64>::Int(vec![y].into()));
        for prim in [Prim::IntDiv, Prim::IntRem] {
            check(prim, width, &[(&x, false), (&y, true)], &|args| int_result(prim, args));
        }
    }
}

#[test]
fn comparisons_and_choices() {
    fn compared<T: PartialOrd>(prim: Prim, x: T, y: T) -> Result<Scalar, TrapKind> {
        let Class::Comparison(op) = prim.class() else { panic!("a comparison") };
        Ok(Scalar::Bool(eval::compare(op, x, y)))
    }
    for width in [1, 2, 7, 8, 9, 63, 64, 65, 100, 128, 130] {
        let (x, y) = (ints(width, 0, 1), ints(width, 3, 7));
        let real = |from: usize| Buffer::<f64>::Real((0..width).map(|l| REALS[(from + l) % REALS.len()]).collect());
        let (u, v) = (real(0), real(width));
        let c = Buffer::<f64>::Bool((0..width).map(|l| l % 5 < 2).collect());
        for prim in COMPARISONS {
            check(*prim, width, &[(&x, false), (&y, false)], &|args| match args {
                [Scalar::Int(x), Scalar::Int(y)] => compared(*prim, x, y),
                other => panic!("{other:?}"),
            });
            check(*prim, width, &[(&u, false), (&v, false)], &|args| match args {
                [Scalar::Real(x), Scalar::Real(y)] => compared(*prim, x, y),
                other => panic!("{other:?}"),
            });
        }
        let choice = |args: &[Scalar]| Ok(if args[0] == Scalar::Bool(true) { args[1] } else { args[2] });
        for flags in 0..8 {
            let broadcast = |i: usize| flags >> i & 1 == 1;
            for (a, b) in [(&x, &y), (&u, &v), (&c, &c)] {
                let args = [(&c, broadcast(0)), (a, broadcast(1)), (b, broadcast(2))];
                check(Prim::Select, width, &args, &choice);
            }
        }
        check(Prim::Not, width, &[(&c, false)], &|args| Ok(Scalar::Bool(args[0] == Scalar::Bool(false))));
        check(Prim::BoolToInt, width, &[(&c, false)], &|args| {
            Ok(Scalar::Int(i64::from(args[0] == Scalar::Bool(true))))
        });
    }
}

#[test]
fn reals() {
    type Function = fn(f64) -> f64;
    type BinaryFunction = fn(f64, f64) -> f64;
    let binary: [(Prim, BinaryFunction); 6] = [
        (Prim::Add, |x, y| x + y),
        (Prim::Sub, |x, y| x - y),
        (Prim::Mul, |x, y| x * y),
        (Prim::Div, |x, y| x / y),
        (Prim::Min, f64::min2),
        (Prim::Max, f64::max2),
    ];
    let slices: [(Prim, BinaryFn); 2] = [(Prim::Pow, BinaryFn::Pow), (Prim::Rem, BinaryFn::Rem)];
    let unary: [(Prim, Function); 8] = [
        (Prim::Neg, |x| -x),
        (Prim::Abs, f64::abs),
        (Prim::Sqrt, f64::sqrt),
        (Prim::Floor, f64::floor),
        (Prim::Ceil, f64::ceil),
        (Prim::Round, f64::round),
        (Prim::Trunc, f64::trunc),
        (Prim::Exp, |x| UnaryFn::Exp.apply(x)),
    ];
    let real = |x: &Scalar| if let Scalar::Real(x) = x { *x } else { panic!("a real") };
    for width in [1, 3, 8, 19, 64, 65, 127, 130] {
        let values = |from: usize| Buffer::<f64>::Real((0..width).map(|l| REALS[(from + l) % REALS.len()]).collect());
        let x = values(width);
        for from in 0..REALS.len() {
            let y = values(from);
            for (prim, f) in binary {
                let expected = |args: &[Scalar]| Ok(Scalar::Real(f(real(&args[0]), real(&args[1]))));
                check(prim, width, &[(&x, false), (&y, false)], &expected);
                check(prim, width, &[(&x, false), (&y, true)], &expected);
                check(prim, width, &[(&x, true), (&y, false)], &expected);
            }
        }
        for (prim, f) in slices {
            let expected = |args: &[Scalar]| Ok(Scalar::Real(f.apply(real(&args[0]), real(&args[1]))));
            check(prim, width, &[(&x, false), (&values(5), false)], &expected);
        }
        for (prim, f) in unary {
            check(prim, width, &[(&x, false)], &|args| Ok(Scalar::Real(f(real(&args[0])))));
        }
        check(Prim::IsNan, width, &[(&x, false)], &|args| Ok(Scalar::Bool(real(&args[0]).is_nan())));
        let to_int = |args: &[Scalar]| eval::to_int(real(&args[0])).map(Scalar::Int).map_err(TrapKind::from);
        check(Prim::ToInt, width, &[(&x, false)], &to_int);
        let to_real = |args: &[Scalar]| match args {
            [Scalar::Int(x)] => Ok(Scalar::Real(*x as f64)),
            other => panic!("{other:?}"),
        };
        check(Prim::ToReal, width, &[(&ints(width, 0, 1), false)], &to_real);
    }
}

#[test]
fn elements_of_arrays_are_masked_alike() {
    let width = 70;
    let mask = &masks(width, 3)[5];
    let (bits, bytes): (_, Vec<i8>) = (words(mask), mask.iter().map(|on| -i8::from(*on)).collect());
    let (ty, scalar) = (Type::new(DType::Int, [3]), Type::int());
    let x: Vec<i64> = (0..3 * width as i64).collect();
    let (x, y, old) = (Buffer::<f64>::Int(x.into()), ints(width, 0, 1), Buffer::Int(vec![-5; 3 * width].into()));
    let mut traps = Vec::new();
    let mut out = Buffer::Int(vec![0; 3 * width].into());
    let args = [KernelArg::new(&x, &ty, false), KernelArg::new(&y, &scalar, false)];
    let keep = Some(Keep { values: &old, mask: &bytes });
    let active = Active::Mask(&bits);
    let call =
        KernelCall { prim: Prim::Mul, args: &args, ty: &ty, width, active, keep, accumulate: false, traps: &mut traps };
    run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, &mut out);
    let mut wanted = Vec::new();
    for (lane, on) in mask.iter().copied().enumerate() {
        let product = |e: usize| x.ints()[e * width + lane].checked_mul(y.ints()[lane]);
        for e in 0..3 {
            let expected = if on { product(e) } else { Some(-5) };
            if let Some(expected) = expected.filter(|_| (0..3).all(|e| product(e).is_some()) || !on) {
                assert_eq!(out.ints()[e * width + lane], expected, "element {e} of lane {lane}");
            }
        }
        if on && (0..3).any(|e| product(e).is_none()) {
            wanted.push((lane as u32, TrapKind::IntegerOverflow));
        }
    }
    assert!(!wanted.is_empty());
    assert_eq!(traps, wanted);
}

/// The operands of a reduction or product of `n` rows of `k` numbers, cut after `cut` rows, give the bits of the whole.
fn in_two_parts(
    prim: Prim,
    operands: &[(Buffer<f64>, Type, bool, Cut)],
    ty: &Type,
    width: usize,
    cut: usize,
    n: usize,
) {
    let mut traps = Vec::new();
    let mut go = |rows: std::ops::Range<usize>, accumulate: bool, out: &mut Buffer<f64>| {
        let types: Vec<Type> = operands.iter().map(|(_, ty, _, cut)| cut.ty(ty, rows.len())).collect();
        let args = operands.iter().zip(&types).map(|((buffer, whole, broadcast, cut), ty)| {
            let width = if *broadcast { 1 } else { width };
            let (first, strides) = match cut {
                Cut::Rows => (rows.start * whole.elements() / n * width, None),
                Cut::Columns => (rows.start, Some([n, 1])),
                Cut::Transposed => (rows.start * whole.shape[0], Some([1, whole.shape[0]])),
            };
            KernelArg { buffer: buffer.values(first), ty, broadcast: *broadcast, strides }
        });
        let args: Vec<KernelArg<'_, f64>> = args.collect();
        let active = Active::All;
        let call = KernelCall { prim, args: &args, ty, width, active, keep: None, accumulate, traps: &mut traps };
        run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, out);
    };
    let len = ty.elements() * width;
    let (mut whole, mut parts) = (Buffer::zeros(ty.dtype, len), Buffer::zeros(ty.dtype, len));
    go(0..n, false, &mut whole);
    go(0..cut, false, &mut parts);
    go(cut..n, true, &mut parts);
    let bits = |b: &Buffer<f64>| scalars(b).iter().map(|s| format!("{s:?}")).collect::<Vec<_>>();
    assert_eq!(bits(&parts), bits(&whole), "{prim} of {n} rows cut at {cut}, {width} lanes");
}

/// How an operand is cut.
#[derive(Clone, Copy)]
enum Cut {
    Rows,
    /// A matrix `[k, n]`.
    Columns,
    /// A matrix `[k, n]` that stands column after column.
    Transposed,
}

impl Cut {
    fn ty(self, whole: &Type, rows: usize) -> Type {
        let mut ty = whole.clone();
        let axis = if matches!(self, Cut::Rows) { 0 } else { 1 };
        ty.shape[axis] = rows;
        ty
    }
}

#[test]
fn reductions_and_products_go_on_where_they_stopped() {
    use crate::types::DType::{Bool, Int, Real as Reals};
    let real = |len: usize| Buffer::Real((0..len).map(|i| ((i * i + 7 * i) as f64 * 0.37).sin() * 1e3).collect());
    let ints = |len: usize| Buffer::Int((0..len).map(|i| ((i * i) % 1009) as i64 - 500).collect());
    let bools = |len: usize| Buffer::Bool((0..len).map(|i| i == len / 2).collect());
    for (width, cut, n) in [(1, 256, 257), (3, 256, 512), (8, 512, 700), (65, 1024, 1100)] {
        let vector = |dtype| Type::new(dtype, [n]);
        let (reals, k) = (vector(Reals), 5);
        for prim in [Prim::Sum, Prim::SumLog, Prim::SumLog1pExp, Prim::Prod, Prim::MinOf, Prim::MaxOf] {
            in_two_parts(prim, &[(real(n * width), reals.clone(), false, Cut::Rows)], &Type::real(), width, cut, n);
        }
        for prim in [Prim::Sum, Prim::MinOf, Prim::MaxOf] {
            let ty = vector(Int);
            in_two_parts(prim, &[(ints(n * width), ty, false, Cut::Rows)], &Type::int(), width, cut, n);
        }
        for prim in [Prim::Any, Prim::All] {
            let ty = vector(Bool);
            in_two_parts(prim, &[(bools(n * width), ty, false, Cut::Rows)], &Type::bool(), width, cut, n);
        }
        let lanes = || (real(n * width), reals.clone(), false, Cut::Rows);
        let shared = || (real(n), reals.clone(), true, Cut::Rows);
        for operands in [[lanes(), lanes()], [shared(), lanes()], [lanes(), shared()]] {
            in_two_parts(Prim::Dot, &operands, &Type::real(), width, cut, n);
        }
        let matrix = |shape: [usize; 2], broadcast: bool, cut| {
            (real(n * k * if broadcast { 1 } else { width }), Type::new(Reals, shape), broadcast, cut)
        };
        let result = Type::new(Reals, [k]);
        for right in [matrix([n, k], true, Cut::Rows), matrix([n, k], false, Cut::Rows)] {
            in_two_parts(Prim::MatMul, &[lanes(), right], &result, width, cut, n);
        }
        for left in [Cut::Columns, Cut::Transposed] {
            in_two_parts(Prim::MatMul, &[matrix([k, n], true, left), lanes()], &result, width, cut, n);
            let operands = [matrix([k, n], true, left), matrix([n, k], false, Cut::Rows)];
            in_two_parts(Prim::MatMul, &operands, &Type::new(Reals, [k, k]), width, cut, n);
        }
    }
}

#[test]
fn products_of_the_chain_rule_go_on_where_they_stopped() {
    let real = |shape: &[usize]| Type::new(crate::types::DType::Real, shape.iter().copied());
    // zeros in rows of the vector that the matrix has no numbers for
    let vector = |e: usize| if e.is_multiple_of(7) { 0.0 } else { (e as f64 * 0.37).sin() };
    let entry = |row: usize, column: usize| match row {
        _ if row.is_multiple_of(14) => f64::NAN,
        259 if column == 1 => f64::INFINITY,
        _ => (row as f64 + 0.1 * column as f64).cos(),
    };
    let k = 3;
    for (width, cut, n) in [(1, 256, 257), (3, 256, 512), (65, 512, 700)] {
        let lanes = Buffer::Real((0..n * width).map(|e| vector(e / width)).collect());
        let down = Buffer::Real((0..n * k).map(|e| entry(e / k, e % k)).collect());
        let across = Buffer::Real((0..n * k).map(|e| entry(e % n, e / n)).collect());
        let row = (lanes.clone(), real(&[n]), false, Cut::Rows);
        let operands = [row.clone(), (down, real(&[n, k]), true, Cut::Rows)];
        in_two_parts(Prim::ChainMatMul, &operands, &real(&[k]), width, cut, n);
        for left in [Cut::Columns, Cut::Transposed] {
            let operands = [(across.clone(), real(&[k, n]), true, left), row.clone()];
            in_two_parts(Prim::ChainMatMul, &operands, &real(&[k]), width, cut, n);
        }
        in_two_parts(Prim::ChainDot, &[row.clone(), row], &real(&[]), width, cut, n);
    }
}

#[test]
fn long_triangular_solves_take_the_chains_of_dot_products() {
    let (n, width) = (300, 3);
    let number = |i: usize| ((i * i + 7 * i) as f64 * 0.37).sin();
    let l: Vec<f64> = (0..n * n).map(|i| number(i) + if i / n == i % n { 20.0 } else { 0.0 }).collect();
    let b: Vec<f64> = (0..n * width).map(number).collect();
    let (matrix, vector) = (Type::new(DType::Real, [n, n]), Type::new(DType::Real, [n]));
    let (shared, sides) = (Buffer::Real(l.clone().into()), Buffer::Real(b.clone().into()));
    for (prim, transposed) in [(Prim::SolveLower, false), (Prim::SolveLowerTransposed, true)] {
        let args = [KernelArg::new(&shared, &matrix, true), KernelArg::new(&sides, &vector, false)];
        let (mut traps, mut out) = (Vec::new(), Buffer::zeros(DType::Real, n * width));
        let active = Active::All;
        let call = KernelCall {
            prim,
            args: &args,
            ty: &vector,
            width,
            active,
            keep: None,
            accumulate: false,
            traps: &mut traps,
        };
        run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, &mut out);
        for lane in 0..width {
            let mut x = vec![0.0; n];
            for step in 0..n {
                let i = if transposed { n - 1 - step } else { step };
                let known: Vec<usize> = if transposed { (i + 1..n).collect() } else { (0..i).collect() };
                let factor = |k: &usize| if transposed { l[k * n + i] } else { l[i * n + k] };
                let factors: Vec<f64> = known.iter().map(factor).collect();
                let values: Vec<f64> = known.iter().map(|k| x[*k]).collect();
                x[i] = (b[i * width + lane] - crate::vmath::dot(&factors, &values)) / l[i * n + i];
                assert_eq!(out.reals()[i * width + lane].to_bits(), x[i].to_bits(), "{prim}, row {i} of lane {lane}");
            }
        }
    }
}

#[test]
fn derivatives_of_long_factors_take_the_chains_of_dot_products() {
    let n = 300;
    let number = |i: usize| ((i * i + 7 * i) as f64 * 0.37).sin();
    let l: Vec<f64> = (0..n * n).map(|i| number(i) + if i / n == i % n { 20.0 } else { 0.0 }).collect();
    let of: Vec<f64> = (0..n * n).map(|i| number(i + 1)).collect();
    let matrix = Type::new(DType::Real, [n, n]);
    for prim in [Prim::ChainCholeskyTangent, Prim::ChainCholeskyCotangent] {
        let mut wanted = vec![0.0; n * n];
        let (l_at, of_at) = (|i, k| l[i * n + k], |i, k| of[i * n + k]);
        let put = |i, k, x| wanted[i * n + k] = x;
        match prim {
            Prim::ChainCholeskyTangent => crate::vmath::chain_cholesky_tangent(n, l_at, of_at, put),
            _ => crate::vmath::chain_cholesky_cotangent(n, l_at, of_at, put),
        }
        for width in [1, 2, 5] {
            let lanes = |x: &[f64]| Buffer::Real((0..n * n * width).map(|e| x[e / width]).collect());
            let (l, of) = (lanes(&l), lanes(&of));
            let args = [KernelArg::new(&l, &matrix, false), KernelArg::new(&of, &matrix, false)];
            let (mut traps, mut out) = (Vec::new(), Buffer::zeros(DType::Real, n * n * width));
            let call = KernelCall {
                prim,
                args: &args,
                ty: &matrix,
                width,
                active: Active::All,
                keep: None,
                accumulate: false,
                traps: &mut traps,
            };
            run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, &mut out);
            for (e, x) in out.reals().iter().enumerate() {
                assert_eq!(x.to_bits(), wanted[e / width].to_bits(), "{prim}, element {} of {width} lanes", e / width);
            }
        }
    }
}

fn draws_are_those_of_their_lane_and_number<R: Real>() {
    for (width, elements) in [(1, 1), (1, 5), (1, 7), (1, 130), (2, 64), (3, 65), (7, 100), (9, 8), (64, 6), (65, 3)] {
        for mask in masks(width, elements as u64) {
            let words = words(&mask);
            let lanes: Vec<u64> = (0..width as u64).map(|lane| lane * 3 + 1).collect();
            // One stream comes to its end.
            let first: Vec<u64> = (0..width as u64).map(|lane| (lane * 7).wrapping_sub(2)).collect();
            for (prim, number) in [
                (Prim::RandomUniform, philox::uniform::<R> as fn(u64, u64, u64) -> R),
                (Prim::RandomNormal, philox::normal::<R>),
            ] {
                let mut draws = first.clone();
                let mut out = Buffer::zeros(DType::Real, elements * width);
                let ty = Type { dtype: DType::Real, shape: vec![elements].into() };
                let active = if mask.iter().all(|m| *m) { Active::All } else { Active::Mask(&words) };
                let call = KernelCall {
                    prim,
                    args: &[],
                    ty: &ty,
                    width,
                    active,
                    keep: None,
                    accumulate: false,
                    traps: &mut vec![],
                };
                run::<R>(call, Streams { seed: 5, lanes: &lanes, draws: &mut draws }, &mut out);
                for lane in (0..width).filter(|lane| mask[*lane]) {
                    assert_eq!(
                        draws[lane],
                        first[lane].wrapping_add(elements as u64),
                        "{prim} of lane {lane} of {width}"
                    );
                    for e in 0..elements {
                        let expected = number(5, lanes[lane], first[lane].wrapping_add(e as u64));
                        let got = out.reals()[e * width + lane];
                        assert_eq!(
                            got.to_f64().to_bits(),
                            expected.to_f64().to_bits(),
                            "{prim} {e} of {lane} of {width}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn draws_in_vectors_over_lanes_and_over_elements() {
    draws_are_those_of_their_lane_and_number::<f64>();
    draws_are_those_of_their_lane_and_number::<f32>();
}
