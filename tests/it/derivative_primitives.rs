//! The derivative of every primitive of the table, for every mix of scalar and array operands, against central differences;
//! a primitive without one says so.

use autobatch::cfg;
use autobatch::prim::{BatchRule, Derivative, Prim, TABLE};
use autobatch::types::{Array, ArrayData, DType, Type};

use crate::derivative::{Point, check, derived};

/// Operand types to try: reals that the derivative is taken with respect to, ints and bools as they are.
fn operands(prim: Prim) -> Vec<Vec<Type>> {
    let real = |shape: &[usize]| Type::new(DType::Real, shape.iter().copied());
    let (int, bool, bools) = (Type::int(), Type::bool(), Type::new(DType::Bool, [3]));
    let shapes = [real(&[]), real(&[3]), real(&[2, 2])];
    match prim {
        Prim::Select => {
            let mut all = Vec::new();
            for condition in [&bool, &bools] {
                for x in &shapes[..2] {
                    all.extend(shapes[..2].iter().map(|y| vec![condition.clone(), x.clone(), y.clone()]));
                }
            }
            all
        }
        Prim::MakeArray => vec![vec![shapes[0].clone(); 3], vec![shapes[1].clone(); 2]],
        Prim::Index => vec![vec![real(&[3]), int.clone()], vec![real(&[3, 2]), int.clone(), int]],
        Prim::SetIndex => {
            vec![vec![real(&[3]), real(&[]), int.clone()], vec![real(&[3, 2]), real(&[2]), int]]
        }
        Prim::Slice => vec![vec![real(&[4]), int]],
        Prim::SetSlice => vec![vec![real(&[4, 2]), real(&[2, 2]), int]],
        Prim::Concat => vec![vec![real(&[2]), real(&[3])], vec![real(&[1, 2]), real(&[2, 2])]],
        Prim::Transpose => vec![vec![real(&[2, 3])]],
        Prim::Fill => vec![vec![real(&[])]],
        Prim::Reshape => vec![vec![real(&[2, 3])]],
        Prim::Dot => vec![vec![real(&[3]), real(&[3])]],
        Prim::MatMul => {
            vec![vec![real(&[2, 3]), real(&[3, 2])], vec![real(&[2, 3]), real(&[3])], vec![real(&[3]), real(&[3, 2])]]
        }
        Prim::Sum | Prim::Prod | Prim::MinOf | Prim::MaxOf => vec![vec![real(&[4])], vec![real(&[2, 2])]],
        _ => match prim.arity().0 {
            1 => shapes.iter().map(|x| vec![x.clone()]).collect(),
            _ => shapes[..2]
                .iter()
                .flat_map(|x| shapes[..2].iter().map(move |y| vec![x.clone(), y.clone()]))
                .chain([vec![shapes[2].clone(), shapes[2].clone()]])
                .collect(),
        },
    }
}

/// The result type of those whose operands do not determine it.
fn result(prim: Prim, args: &[Type]) -> Option<Type> {
    match prim {
        Prim::Fill => Some(Type::new(DType::Real, [2, 2])),
        Prim::Reshape => Some(Type::new(DType::Real, [3, 2])),
        Prim::Slice => Some(Type::new(DType::Real, [2])),
        _ => prim.infer(args).ok(),
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
        DType::Int => ArrayData::Int(vec![1; n]),
        DType::Bool => ArrayData::Bool((0..n).map(|e| e % 2 == 0).collect()),
    };
    Array::new(ty.shape.iter().copied(), data)
}

#[test]
fn every_primitive_has_its_derivative_or_says_that_it_has_none() {
    for row in TABLE {
        let mut tried = 0;
        for args in operands(row.prim) {
            let Some(result) = result(row.prim, &args) else { continue };
            if row.batch == BatchRule::Random || result.dtype != DType::Real {
                continue;
            }
            tried += 1;
            let program = program(row.prim, &args, &result);
            let values: Vec<Array> = args.iter().enumerate().map(|(i, ty)| value(ty, i)).collect();
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
