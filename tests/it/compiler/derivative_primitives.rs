//! The derivative of every primitive of the table, for every mix of scalar and array operands, against central differences;
//! a primitive without one says so.

use autobatch::cfg;
use autobatch::prim::{BatchRule, DerivativeRule, Prim, TABLE};
use autobatch::transform::derivative::Mode;
use autobatch::types::{Array, ArrayData, DType, Type};

use crate::compiler::derivative::{Point, check, derive, derived, engines_agree, outputs};
use crate::tools::effort;

/// Operand types to try, with the type of the result: reals that the derivative is taken with respect to, ints and bools as
/// they are.
pub(crate) fn operands(prim: Prim) -> Vec<(Vec<Type>, Type)> {
    let real = |shape: &[usize]| Type::new(DType::Real, shape.iter().copied());
    let ints = |shape: &[usize]| Type::new(DType::Int, shape.iter().copied());
    let (int, bool, bools) = (Type::int(), Type::bool(), Type::new(DType::Bool, [3]));
    let inferred = |args: Vec<Type>| prim.infer(&args).ok().map(|result| (args, result));
    let all = |list: Vec<Vec<Type>>| list.into_iter().filter_map(inferred).collect();
    match prim {
        Prim::Select => {
            let column = Type::new(DType::Bool, [2, 1]);
            let mut list = vec![
                vec![column.clone(), real(&[1, 3]), real(&[2, 3])],
                vec![column, real(&[1, 3]), real(&[])],
                vec![Type::new(DType::Bool, [2, 3]), real(&[2, 1]), real(&[1, 3])],
            ];
            for condition in [&bool, &bools] {
                for x in [real(&[]), real(&[3])] {
                    list.extend([real(&[]), real(&[3])].map(|y| vec![condition.clone(), x.clone(), y]));
                }
            }
            all(list)
        }
        Prim::MakeArray => all(vec![vec![real(&[]); 3], vec![real(&[3]); 2]]),
        Prim::Index => all(vec![vec![real(&[3]), int.clone()], vec![real(&[3, 2]), int.clone(), int]]),
        Prim::SetIndex => all(vec![vec![real(&[3]), real(&[]), int.clone()], vec![real(&[3, 2]), real(&[2]), int]]),
        Prim::Slice => vec![(vec![real(&[4]), int], real(&[2]))],
        Prim::SetSlice => all(vec![vec![real(&[4, 2]), real(&[2, 2]), int]]),
        Prim::Gather => all(vec![
            vec![real(&[3]), ints(&[2])],
            vec![real(&[3, 2]), ints(&[2, 2])],
            vec![real(&[3, 4]), ints(&[3]), int.clone()],
            vec![real(&[3, 3]), ints(&[2]), ints(&[2])],
        ]),
        Prim::Scatter => all(vec![
            vec![real(&[3]), real(&[2]), ints(&[2])],
            vec![real(&[3, 2]), real(&[2, 2]), ints(&[2])],
            vec![real(&[2, 3]), real(&[2]), int.clone(), ints(&[2])],
        ]),
        Prim::ScatterAdd => all(vec![
            vec![real(&[3]), real(&[2]), ints(&[2])],
            vec![real(&[3, 2]), real(&[4, 2]), ints(&[4])],
            vec![real(&[2, 3]), real(&[4]), int, ints(&[4])],
        ]),
        Prim::Concat => all(vec![vec![real(&[2]), real(&[3])], vec![real(&[1, 2]), real(&[2, 2])]]),
        Prim::Transpose => all(vec![vec![real(&[2, 3])], vec![real(&[2, 3, 2])]]),
        Prim::TransposeEach => all(vec![vec![real(&[2, 3, 2])], vec![real(&[1, 2, 3, 2])]]),
        Prim::Fill => {
            let to = real(&[2, 3]);
            [&[][..], &[1, 3], &[2, 1], &[1, 1], &[2, 3]].map(|from| (vec![real(from)], to.clone())).into()
        }
        Prim::Reshape => vec![(vec![real(&[2, 3])], real(&[3, 2]))],
        Prim::Dot | Prim::ChainDot => all(vec![vec![real(&[3]), real(&[3])]]),
        Prim::MatMul | Prim::ChainMatMul => all(vec![
            vec![real(&[2, 3]), real(&[3, 2])],
            vec![real(&[2, 3]), real(&[3])],
            vec![real(&[3]), real(&[3, 2])],
        ]),
        Prim::BatchMatMul | Prim::ChainBatchMatMul => all(vec![vec![real(&[2, 2, 3]), real(&[2, 3, 1])]]),
        Prim::Cholesky => all([&[1, 1][..], &[3, 3], &[2, 2, 2]].map(|x| vec![real(x)]).into()),
        Prim::ChainCholeskyTangent | Prim::ChainCholeskyCotangent => {
            all([&[1, 1][..], &[3, 3], &[2, 2, 2]].map(|x| vec![real(x), real(x)]).into())
        }
        Prim::SolveLower | Prim::SolveLowerTransposed | Prim::ChainSolveLower | Prim::ChainSolveLowerTransposed => {
            all(vec![
                vec![real(&[3, 3]), real(&[3])],
                vec![real(&[2, 2]), real(&[2, 3])],
                vec![real(&[2, 2, 2]), real(&[2, 2, 1])],
            ])
        }
        Prim::Sum | Prim::SumLog | Prim::SumLog1pExp | Prim::Prod | Prim::MinOf | Prim::MaxOf => {
            let to = |from: &[usize], to: &[usize]| (vec![real(from)], real(to));
            vec![
                to(&[5], &[]),
                to(&[2, 2], &[]),
                to(&[3], &[1]),
                to(&[3, 2], &[1, 2]),
                to(&[2, 3], &[2, 1]),
                to(&[2, 2], &[2, 2]),
                to(&[2, 2, 3], &[1, 2, 1]),
                to(&[2, 2, 2], &[2, 1, 2]),
            ]
        }
        _ if prim.arity().0 == 1 => all([&[][..], &[3], &[2, 2]].map(|x| vec![real(x)]).into()),
        _ => {
            let pairs: [[&[usize]; 2]; 8] = [
                [&[], &[]],
                [&[], &[3]],
                [&[3], &[]],
                [&[3], &[3]],
                [&[2, 2], &[2, 2]],
                [&[2, 1], &[1, 3]],
                [&[2, 3], &[1, 3]],
                [&[1, 1], &[2, 2]],
            ];
            all(pairs.map(|[x, y]| vec![real(x), real(y)]).into())
        }
    }
}

/// `f(x0, x1, …) = prim x0, x1, …`
pub(crate) fn program(prim: Prim, args: &[Type], result: &Type) -> cfg::Program {
    let params: Vec<String> = args.iter().enumerate().map(|(i, ty)| format!("x{i}: {ty}")).collect();
    let names: Vec<String> = (0..args.len()).map(|i| format!("x{i}")).collect();
    let text = format!(
        "cfg entry f\noutputs result\nfunc f({}) -> {result} {{ @f:1\n  var r: {result}\nb0: @f:1\n  r = {prim} {} @f:1\n  \
         return r\n}}\n",
        params.join(", "),
        names.join(", "),
    );
    cfg::read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Values inside the domain of every function, no two equal, none where a derivative jumps.
pub(crate) fn value(ty: &Type, operand: usize) -> Array {
    let n = ty.elements();
    let data = match ty.dtype {
        DType::Real => ArrayData::Real(
            (0..n)
                .map(|e| 0.83 - 0.17 * e as f64 * (1.0 - 0.3 * operand as f64) - 0.29 * operand as f64)
                .map(|x: f64| if x < 0.05 { x.abs() + 0.11 } else { x })
                .collect(),
        ),
        // at most two places, and twice the same in an array of more
        DType::Int => ArrayData::Int((0..n).map(|e| 1 + e as i64 % 2).collect()),
        DType::Bool => ArrayData::Bool((0..n).map(|e| e % 2 == 0).collect()),
    };
    Array::new(ty.shape.iter().copied(), data)
}

/// Makes square matrices positive definite.
fn strengthen_diagonals(matrices: &mut Array) {
    let n = matrices.shape[matrices.shape.len() - 1];
    if let ArrayData::Real(values) = &mut matrices.data {
        values.iter_mut().enumerate().filter(|(e, _)| e / n % n == e % n).for_each(|(_, x)| *x += 1.5);
    }
}

#[test]
fn every_primitive_has_its_derivative_or_says_that_it_has_none() {
    for row in TABLE {
        let mut tried = 0;
        for (args, result) in operands(row.prim) {
            if row.batch == BatchRule::Random || result.dtype != DType::Real {
                continue;
            }
            tried += 1;
            let program = program(row.prim, &args, &result);
            let mut values: Vec<Array> = args.iter().enumerate().map(|(i, ty)| value(ty, i)).collect();
            // the one function of negative numbers
            if row.prim == Prim::Log1mExp
                && let ArrayData::Real(x) = &mut values[0].data
            {
                x.iter_mut().for_each(|x| *x = -*x);
            }
            if row.batch == BatchRule::Triangular {
                strengthen_diagonals(&mut values[0]);
            }
            let point = Point { shared: &[], name: format!("{} {args:?}", row.name) };
            match row.derivative {
                // what stands in the way is an error, never a zero
                DerivativeRule::None => assert!(derived(&program, &args).is_err(), "{}", row.name),
                // constant where it is taken to be, whatever differences say
                DerivativeRule::Zero if row.prim == Prim::StopGradient => {}
                // its second derivative goes through `trigamma`, which has none
                _ if row.prim == Prim::Digamma => check(&program, &values, 1, &point),
                _ => check(&program, &values, effort::part(1, 2), &point),
            }
        }
        let of_reals = matches!(row.derivative, DerivativeRule::Smooth | DerivativeRule::Linear);
        assert!(tried > 0 || !of_reals, "no operands were found for `{}`", row.name);
    }
}

#[test]
fn products_are_differentiated_at_zeros() {
    let real = |shape: &[usize]| Type::new(DType::Real, shape.iter().copied());
    for (values, to) in [
        (vec![0.0, 2.0, 3.0, -1.5, 0.5, 4.0], real(&[])),
        (vec![0.0, 2.0, 0.0, -1.5, 0.5, 4.0], real(&[])),
        (vec![0.0, 0.0, 0.0, -1.5, 0.5, 4.0], real(&[1, 2])),
        (vec![0.0, 2.0, 0.0, -1.5, 0.0, 0.0], real(&[3, 1])),
    ] {
        let x = Array::new([3, 2], ArrayData::Real(values));
        let name = format!("prod of {x} to {to}");
        check(&program(Prim::Prod, &[x.ty()], &to), &[x], 2, &Point { shared: &[], name });
    }
}

#[test]
fn the_first_of_equal_elements_is_the_extremum() {
    let x = Array::new([2, 3], ArrayData::Real(vec![1.0, 4.0, 4.0, 1.0, 4.0, -2.0]));
    let to = |shape: &[usize]| Type::new(DType::Real, shape.iter().copied());
    for (prim, to, seed, wanted) in [
        (Prim::MinOf, to(&[]), vec![1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
        (Prim::MaxOf, to(&[]), vec![1.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
        (Prim::MinOf, to(&[1, 3]), vec![1.0, 2.0, 3.0], [1.0, 2.0, 0.0, 0.0, 0.0, 3.0]),
        (Prim::MaxOf, to(&[2, 1]), vec![1.0, 2.0], [0.0, 1.0, 0.0, 0.0, 2.0, 0.0]),
    ] {
        let reverse = derive(&program(prim, &[x.ty()], &to), Mode::Reverse, &[true]);
        let found = outputs(&reverse, &[x.clone(), Array::new(to.shape.iter().copied(), ArrayData::Real(seed))], &[]);
        assert_eq!(found[to.elements()..], wanted, "{prim} to {to}");
    }
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Functions of one number, where their derivative is no number or infinite, or their value is: the point, and the
/// derivative as mathematics and IEEE arithmetic have it (`lgamma` and `digamma` have poles at 0, -1, …; `abs` at 0 by
/// convention).
const SINGULAR_UNARY: [(Prim, f64, f64); 37] = [
    (Prim::Sqrt, 0.0, INF),
    (Prim::Sqrt, -1.0, NAN),
    (Prim::Sqrt, INF, 0.0),
    (Prim::Log, 0.0, INF),
    (Prim::Log, INF, 0.0),
    (Prim::Log1p, -1.0, INF),
    (Prim::Log1p, INF, 0.0),
    (Prim::Exp, 800.0, INF),
    (Prim::Exp, -800.0, 0.0),
    (Prim::Exp, -INF, 0.0),
    (Prim::Expm1, 800.0, INF),
    (Prim::Asin, 1.0, INF),
    (Prim::Asin, -1.0, INF),
    (Prim::Asin, 2.0, NAN),
    (Prim::Acos, 1.0, -INF),
    (Prim::Acos, -1.0, -INF),
    (Prim::Atan, INF, 0.0),
    (Prim::Sin, INF, NAN),
    (Prim::Cos, INF, NAN),
    (Prim::Tan, INF, NAN),
    (Prim::Sinh, 800.0, INF),
    (Prim::Cosh, 800.0, INF),
    (Prim::Cosh, -800.0, -INF),
    (Prim::Tanh, INF, 0.0),
    (Prim::Tanh, NAN, NAN),
    (Prim::InvLogit, INF, 0.0),
    (Prim::InvLogit, -INF, 0.0),
    (Prim::Log1pExp, INF, 1.0),
    (Prim::Log1pExp, -INF, 0.0),
    (Prim::Erf, INF, 0.0),
    (Prim::Erfc, -INF, 0.0),
    (Prim::Phi, -INF, 0.0),
    (Prim::InvPhi, 0.0, INF),
    (Prim::InvPhi, 1.0, INF),
    (Prim::InvPhi, 2.0, NAN),
    (Prim::Abs, 0.0, 0.0),
    (Prim::Lgamma, INF, INF),
];

/// The same for functions of two numbers, with the derivatives by both. A power of 0 is constant in its exponent where
/// that is above 0, and taken to be where it is not.
const SINGULAR_BINARY: [(Prim, [f64; 2], [f64; 2]); 28] = [
    (Prim::Mul, [INF, 0.0], [0.0, INF]),
    (Prim::Mul, [NAN, 2.0], [2.0, NAN]),
    (Prim::ChainMul, [INF, 0.0], [0.0, INF]),
    (Prim::Div, [1.0, 0.0], [INF, -INF]),
    (Prim::Div, [0.0, 0.0], [INF, NAN]),
    (Prim::Div, [1.0, INF], [0.0, 0.0]),
    (Prim::ChainDiv, [1.0, 0.0], [INF, -INF]),
    (Prim::ChainDiv, [0.0, 0.0], [INF, 0.0]),
    (Prim::Pow, [0.0, 0.0], [0.0, 0.0]),
    (Prim::Pow, [0.0, 0.5], [INF, 0.0]),
    (Prim::Pow, [0.0, 1.0], [1.0, 0.0]),
    (Prim::Pow, [0.0, 2.0], [0.0, 0.0]),
    (Prim::Pow, [0.0, -1.0], [-INF, 0.0]),
    (Prim::Pow, [-1.0, 0.5], [NAN, NAN]),
    (Prim::Atan2, [0.0, 0.0], [NAN, NAN]),
    (Prim::Atan2, [INF, 1.0], [NAN, NAN]),
    (Prim::LogAddExp, [INF, 1.0], [1.0, 0.0]),
    (Prim::LogAddExp, [1.0, -INF], [1.0, 0.0]),
    (Prim::LogAddExp, [-INF, -INF], [0.5, 0.5]),
    (Prim::LogAddExp, [INF, INF], [0.5, 0.5]),
    (Prim::Min, [1.0, 1.0], [1.0, 0.0]),
    (Prim::Max, [1.0, 1.0], [1.0, 0.0]),
    (Prim::Min, [INF, 1.0], [0.0, 1.0]),
    (Prim::Rem, [1.0, 0.0], [1.0, NAN]),
    (Prim::Rem, [1.0, INF], [1.0, 0.0]),
    (Prim::Rem, [INF, 1.0], [1.0, NAN]),
    (Prim::Add, [INF, 1.0], [1.0, 1.0]),
    (Prim::Sub, [INF, INF], [1.0, -1.0]),
];

fn reals(shape: &[usize], values: &[f64]) -> Array {
    Array::new(shape.iter().copied(), ArrayData::Real(values.to_vec()))
}

/// Whether two derivatives are one: all NaNs are, and both zeros.
fn same(found: f64, wanted: f64) -> bool {
    found == wanted || found.is_nan() && wanted.is_nan()
}

/// Both derivatives of a primitive where some are no numbers: a cotangent and tangents of 0 give 0, those of 1 give
/// `wanted` (the derivatives by all elements of all operands) if it is there, and the same in both modes.
fn check_singular(prim: Prim, values: &[Array], wanted: Option<&[f64]>) {
    let types: Vec<Type> = values.iter().map(Array::ty).collect();
    let result = prim.infer(&types).expect("operands of the primitive");
    let program = program(prim, &types, &result);
    let name = format!("{prim} {values:?}");
    let wrt: Vec<bool> = types.iter().map(|ty| ty.dtype == DType::Real).collect();
    let (reverse, forward) = (derive(&program, Mode::Reverse, &wrt), derive(&program, Mode::Forward, &wrt));
    let count = result.elements();
    let seeded = |seeds: Vec<f64>| -> Vec<Array> {
        let seed = Array::new(result.shape.iter().copied(), ArrayData::Real(seeds));
        values.iter().cloned().chain([seed]).collect()
    };
    let point = Point { shared: &[], name: name.clone() };
    let zero = seeded(vec![0.0; count]);
    let found = outputs(&reverse, &zero, &[]);
    assert!(found[count..].iter().all(|x| *x == 0.0), "{name}: a cotangent of 0 gives {:?}", &found[count..]);
    engines_agree(&reverse, &zero, &point);
    let one = seeded(vec![1.0; count]);
    let gradient = outputs(&reverse, &one, &[])[count..].to_vec();
    engines_agree(&reverse, &one, &point);
    if let Some(wanted) = wanted {
        let right = gradient.iter().zip(wanted).all(|(found, wanted)| same(*found, *wanted));
        assert!(right, "{name}: derivatives {gradient:?}, not {wanted:?}\n{reverse}");
    }
    let sizes: Vec<usize> = values.iter().zip(&wrt).filter(|(_, w)| **w).map(|(v, _)| v.ty().elements()).collect();
    for at in 0..=gradient.len() {
        // one element moves; in the end none
        let mut first = 0;
        let mut given = values.to_vec();
        for (value, _) in values.iter().zip(&wrt).filter(|(_, w)| **w) {
            let n = value.ty().elements();
            let moves = (first..first + n).map(|e| f64::from(u8::from(e == at))).collect();
            given.push(Array::new(value.shape.iter().copied(), ArrayData::Real(moves)));
            first += n;
        }
        let found = outputs(&forward, &given, &[]);
        engines_agree(&forward, &given, &point);
        let tangent: f64 = found[count..].iter().sum();
        let wanted = gradient.get(at).copied().unwrap_or(0.0);
        assert!(
            same(tangent, wanted),
            "{name}: tangent {tangent} by element {at} of {sizes:?}, cotangent {wanted}\n{forward}"
        );
    }
}

#[test]
fn zeros_win_at_singular_points() {
    for (prim, x, wanted) in SINGULAR_UNARY {
        check_singular(prim, &[reals(&[], &[x])], Some(&[wanted]));
    }
    for (prim, [x, y], wanted) in SINGULAR_BINARY {
        check_singular(prim, &[reals(&[], &[x]), reals(&[], &[y])], Some(&wanted));
    }
    for x in [0.0, -1.0, -2.0] {
        for prim in [Prim::Lgamma, Prim::Digamma] {
            check_singular(prim, &[reals(&[], &[x])], None);
        }
    }
    for condition in [false, true] {
        let c = Array::new([], ArrayData::Bool(vec![condition]));
        let wanted = if condition { [1.0, 0.0] } else { [0.0, 1.0] };
        check_singular(Prim::Select, &[c, reals(&[], &[NAN]), reals(&[], &[INF])], Some(&wanted));
    }
}

#[test]
fn zeros_win_in_arrays_and_matrices() {
    let infinite = reals(&[3], &[INF, 2.0, NAN]);
    check_singular(Prim::Mul, &[infinite.clone(), infinite.clone()], None);
    for values in [[0.0, 2.0, 3.0], [0.0, 0.0, INF], [INF, 2.0, 0.5]] {
        check_singular(Prim::Prod, &[reals(&[3], &values)], None);
    }
    check_singular(Prim::MaxOf, &[reals(&[3], &[INF, INF, 0.0])], Some(&[1.0, 0.0, 0.0]));
    check_singular(Prim::MinOf, &[reals(&[3], &[-INF, NAN, 0.0])], Some(&[0.0, 0.0, 0.0]));
    let matrix = reals(&[2, 2], &[INF, 1.0, NAN, 2.0]);
    for (prim, args) in [
        (Prim::Dot, [reals(&[3], &[1.0, 0.0, 2.0]), infinite]),
        (Prim::MatMul, [matrix.clone(), reals(&[2, 2], &[1.0, 2.0, 3.0, INF])]),
        (Prim::MatMul, [matrix.clone(), reals(&[2], &[1.0, 2.0])]),
        (Prim::MatMul, [reals(&[2], &[1.0, 2.0]), matrix.clone()]),
        (Prim::BatchMatMul, [reals(&[1, 2, 2], &[INF, 1.0, NAN, 2.0]), reals(&[1, 2, 1], &[1.0, NAN])]),
        (Prim::SolveLower, [reals(&[2, 2], &[0.0, 0.0, 1.0, 1.0]), reals(&[2], &[1.0, 2.0])]),
        (Prim::SolveLowerTransposed, [reals(&[2, 2], &[0.0, 0.0, 1.0, 1.0]), reals(&[2, 1], &[1.0, 2.0])]),
        (Prim::SolveLower, [reals(&[1, 2, 2], &[0.0, 0.0, 1.0, 1.0]), reals(&[1, 2, 1], &[1.0, 2.0])]),
    ] {
        no_cotangent_no_derivative(prim, &args);
    }
    for values in [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0], [-1.0, 0.0, 0.0, NAN]] {
        no_cotangent_no_derivative(Prim::Cholesky, &[reals(&[2, 2], &values)]);
        let other = reals(&[2, 2], &[1.0, 0.0, NAN, 2.0]);
        for prim in [Prim::ChainCholeskyTangent, Prim::ChainCholeskyCotangent] {
            no_cotangent_no_derivative(prim, &[reals(&[2, 2], &values), other.clone()]);
        }
    }
}

/// Of products and factors of matrices: cotangents of 0 end there, whatever the operands hold.
fn no_cotangent_no_derivative(prim: Prim, values: &[Array]) {
    let types: Vec<Type> = values.iter().map(Array::ty).collect();
    let result = prim.infer(&types).expect("operands of the primitive");
    let program = program(prim, &types, &result);
    let reverse = derive(&program, Mode::Reverse, &vec![true; values.len()]);
    let n = result.elements();
    let seed = Array::new(result.shape.iter().copied(), ArrayData::Real(vec![0.0; n]));
    let given: Vec<Array> = values.iter().cloned().chain([seed]).collect();
    let found = outputs(&reverse, &given, &[]);
    assert!(found[n..].iter().all(|x| *x == 0.0), "{prim} {values:?}: {:?}\n{reverse}", &found[n..]);
    engines_agree(&reverse, &given, &Point { shared: &[], name: format!("{prim} {values:?}") });
}

/// The first and second derivative of functions that are flat far from 0, by mpmath with 60 digits; relative error up
/// to 1e-14.
const FLAT: [(Prim, f64, f64, f64); 27] = [
    (Prim::Tanh, 0.5, 0.7864477329659274, -0.7268619813835873),
    (Prim::Tanh, 3.0, 0.00986603716544019, -0.019634494363042435),
    (Prim::Tanh, 10.0, 8.244614455767397e-09, -1.6489228843561127e-08),
    (Prim::Tanh, -12.0, 1.510053817597626e-10, 3.0201076349672256e-10),
    (Prim::Tanh, 15.0, 3.743049187535369e-13, -7.486098375069338e-13),
    (Prim::Tanh, 19.0, 1.2556531168192118e-16, -2.511306233638423e-16),
    (Prim::Tanh, 25.0, 7.714999391855671e-22, -1.5429998783711343e-21),
    (Prim::Tanh, -40.0, 7.219405551381661e-35, 1.4438811102763322e-34),
    (Prim::Tanh, 100.0, 5.53558610694695e-87, -1.10711722138939e-86),
    (Prim::Tanh, 300.0, 1.0601586212017243e-260, -2.1203172424034486e-260),
    (Prim::Tanh, -340.0, 1.913428758812214e-295, 3.826857517624428e-295),
    (Prim::Tanh, 345.0, 8.686953125559309e-300, -1.7373906251118617e-299),
    (Prim::Tanh, 350.0, 3.943870617503908e-304, -7.887741235007817e-304),
    (Prim::InvLogit, 0.5, 0.2350037122015945, -0.05755679485232074),
    (Prim::InvLogit, -3.0, 0.04517665973091213, 0.04089157466094348),
    (Prim::InvLogit, 10.0, 4.5395807735951673e-05, -4.53916859901132e-05),
    (Prim::InvLogit, 20.0, 2.061153613941849e-09, -2.061153605445141e-09),
    (Prim::InvLogit, -25.0, 1.388794386457827e-11, 1.388794386419252e-11),
    (Prim::InvLogit, 30.0, 9.357622968838423e-14, -9.357622968836672e-14),
    (Prim::InvLogit, -37.0, 8.533047625744065e-17, 8.533047625744063e-17),
    (Prim::InvLogit, 40.0, 4.248354255291589e-18, -4.248354255291589e-18),
    (Prim::InvLogit, 100.0, 3.720075976020836e-44, -3.720075976020836e-44),
    (Prim::InvLogit, -300.0, 5.148200222412013e-131, 5.148200222412013e-131),
    (Prim::InvLogit, 600.0, 2.6503965530043108e-261, -2.6503965530043108e-261),
    (Prim::InvLogit, 690.0, 2.171738281389827e-300, -2.171738281389827e-300),
    (Prim::InvLogit, -700.0, 9.85967654375977e-305, 9.85967654375977e-305),
    (Prim::InvLogit, 700.0, 9.85967654375977e-305, -9.85967654375977e-305),
];

#[test]
fn flat_functions_keep_the_digits_of_their_derivatives() {
    for (prim, x, first, second) in FLAT {
        let program = program(prim, &[Type::real()], &Type::real());
        let gradient = derive(&program, Mode::Reverse, &[true]);
        let twice = derive(&gradient, Mode::Forward, &[true, false]);
        let back_twice = derive(&gradient, Mode::Reverse, &[true, false]);
        let given = |values: &[f64]| values.iter().map(|x| reals(&[], &[*x])).collect::<Vec<Array>>();
        let close = |found: f64, wanted: f64| (found - wanted).abs() <= 1e-14 * wanted.abs();
        let found = outputs(&gradient, &given(&[x, 1.0]), &[])[1];
        assert!(close(found, first), "{prim} at {x}: {found}, not {first}");
        let found = outputs(&twice, &given(&[x, 1.0, 1.0]), &[])[3];
        assert!(close(found, second), "{prim} twice at {x}: {found}, not {second}");
        let found = outputs(&back_twice, &given(&[x, 1.0, 0.0, 1.0]), &[])[2];
        assert!(close(found, second), "{prim} back twice at {x}: {found}, not {second}");
    }
}
