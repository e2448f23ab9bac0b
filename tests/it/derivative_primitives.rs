//! The derivative of every primitive of the table, for every mix of scalar and array operands, against central differences;
//! a primitive without one says so.

use autobatch::cfg;
use autobatch::prim::{BatchRule, Derivative, Prim, TABLE};
use autobatch::transform::derivative::Mode;
use autobatch::types::{Array, ArrayData, DType, Type};

use crate::derivative::{Point, check, derive, derived, outputs};

/// Operand types to try, with the type of the result: reals that the derivative is taken with respect to, ints and bools as
/// they are.
fn operands(prim: Prim) -> Vec<(Vec<Type>, Type)> {
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
        Prim::Dot => all(vec![vec![real(&[3]), real(&[3])]]),
        Prim::MatMul => all(vec![
            vec![real(&[2, 3]), real(&[3, 2])],
            vec![real(&[2, 3]), real(&[3])],
            vec![real(&[3]), real(&[3, 2])],
        ]),
        Prim::BatchMatMul => all(vec![vec![real(&[2, 2, 3]), real(&[2, 3, 1])]]),
        Prim::Cholesky => all([&[1, 1][..], &[3, 3], &[2, 2, 2]].map(|x| vec![real(x)]).into()),
        Prim::SolveLower | Prim::SolveLowerTransposed => all(vec![
            vec![real(&[3, 3]), real(&[3])],
            vec![real(&[2, 2]), real(&[2, 3])],
            vec![real(&[2, 2, 2]), real(&[2, 2, 1])],
        ]),
        Prim::Sum | Prim::Prod | Prim::MinOf | Prim::MaxOf => {
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
fn program(prim: Prim, args: &[Type], result: &Type) -> cfg::Program {
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
fn value(ty: &Type, operand: usize) -> Array {
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
            if row.batch == BatchRule::Triangular {
                strengthen_diagonals(&mut values[0]);
            }
            let point = Point { shared: &[], name: format!("{} {args:?}", row.name) };
            match row.derivative {
                // what stands in the way is an error, never a zero
                Derivative::None => assert!(derived(&program, &args).is_err(), "{}", row.name),
                // constant where it is taken to be, whatever differences say
                Derivative::Zero if row.prim == Prim::StopGradient => {}
                // its second derivative goes through `trigamma`, which has none
                _ if row.prim == Prim::Digamma => check(&program, &values, 1, &point),
                _ => check(&program, &values, 2, &point),
            }
        }
        let of_reals = matches!(row.derivative, Derivative::Smooth | Derivative::Linear);
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
