//! Every primitive of the table that has a derivative, where it may have none: at zeros, infinities and NaNs, alone and
//! mixed in arrays. A zero wins in the chain rule, so that each entry of a jacobian is what it is whatever stands
//! elsewhere: both modes give the same, and all engines the same bits.

use autobatch::backend::cpu::codegen::{Code, Generated, Native};
use autobatch::backend::cpu::{self, MACHINE};
use autobatch::cfg;
use autobatch::interp;
use autobatch::pipeline::{Passes, from_cfg};
use autobatch::prim::{BatchRule, DerivativeRule, Prim, TABLE};
use autobatch::program::Codegen;
use autobatch::run::{NoSink, Outcome, RunInputs, Settings};
use autobatch::transform::derivative::Mode;
use autobatch::types::{Array, ArrayData, DType, Type};

use crate::compiler::derivative::{derive, normal};
use crate::compiler::derivative_primitives::{operands, program, value};
use crate::tools::random_programs::Rng;

const SPECIAL: [f64; 8] = [0.0, f64::INFINITY, 1.0, f64::NAN, -1.0, f64::NEG_INFINITY, 2.0, 0.5];

/// As many as two scalars have special values together.
const PATTERNS: usize = SPECIAL.len() * SPECIAL.len();

/// An operand: scalars take all special values in turns, elements of arrays one by chance. Ints and bools are as ever.
fn special(ty: &Type, operand: usize, pattern: usize, rng: &mut Rng) -> Array {
    if ty.dtype != DType::Real {
        return value(ty, operand);
    }
    let in_turn = pattern / SPECIAL.len().pow(operand as u32) % SPECIAL.len();
    let mut pick = || SPECIAL[if ty.is_scalar() { in_turn } else { rng.below(SPECIAL.len()) }];
    Array::new(ty.shape.iter().copied(), ArrayData::Real((0..ty.elements()).map(|_| pick()).collect()))
}

fn reals(ty: &Type, values: impl IntoIterator<Item = f64>) -> Array {
    Array::new(ty.shape.iter().copied(), ArrayData::Real(values.into_iter().collect()))
}

fn of_array(array: &Array) -> &[f64] {
    match &array.data {
        ArrayData::Real(values) => values,
        _ => &[],
    }
}

/// The inputs of a batch: `lanes` has the values of each lane.
fn inputs(lanes: &[Vec<Array>]) -> RunInputs {
    let stacked = (0..lanes[0].len()).map(|i| {
        let shape = std::iter::once(lanes.len()).chain(lanes[0][i].shape.iter().copied());
        let each = lanes.iter().map(|lane| &lane[i].data);
        let data = match &lanes[0][i].data {
            ArrayData::Real(_) => ArrayData::Real(lanes.iter().flat_map(|lane| of_array(&lane[i]).to_vec()).collect()),
            ArrayData::Int(_) => ArrayData::Int(
                each.flat_map(|d| if let ArrayData::Int(v) = d { v.clone() } else { Vec::new() }).collect(),
            ),
            ArrayData::Bool(_) => ArrayData::Bool(
                each.flat_map(|d| if let ArrayData::Bool(v) = d { v.clone() } else { Vec::new() }).collect(),
            ),
        };
        Array::new(shape, data)
    });
    RunInputs::new((0..lanes.len() as u64).collect(), stacked.collect(), Vec::new())
}

/// The reals that come out of each lane behind those of the first `skip` outputs.
fn by_lane(program: &cfg::Program, lanes: &[Vec<Array>], skip: usize) -> Vec<Vec<f64>> {
    let outcome = interp::run(program, &inputs(lanes), &Settings::default(), &NoSink);
    assert!(outcome.traps.is_empty(), "{:?}\n{program}", outcome.traps);
    let of_lane = |lane: usize| {
        let parts = outcome.outputs[skip..].iter().map(|array| {
            let each = of_array(array).len() / lanes.len();
            &of_array(array)[lane * each..(lane + 1) * each]
        });
        parts.collect::<Vec<_>>().concat()
    };
    (0..lanes.len()).map(of_lane).collect()
}

/// Whether two derivatives are one. What the rules of solves add up comes in another order in each mode: where that is
/// not finite it is so in both, as an infinity or as a NaN.
fn agree(prim: Prim, a: f64, b: f64) -> bool {
    let nowhere = match prim.row().batch {
        BatchRule::Triangular => !a.is_finite() && !b.is_finite(),
        _ => a.is_nan() && b.is_nan(),
    };
    a == b || nowhere || (a - b).abs() <= 1e-12 * (a.abs() + b.abs())
}

/// The jacobian of a primitive for each of the values of its operands, element by element in both modes, and that zeros
/// give zeros: what is wrong.
fn check_jacobians(prim: Prim, types: &[Type], result: &Type, values: &[Vec<Array>]) -> Vec<String> {
    let mut wrong = Vec::new();
    let program = program(prim, types, result);
    let wrt: Vec<bool> = types.iter().map(|ty| ty.dtype == DType::Real).collect();
    let (reverse, forward) = (derive(&program, Mode::Reverse, &wrt), derive(&program, Mode::Forward, &wrt));
    let moved: Vec<&Type> = types.iter().filter(|ty| ty.dtype == DType::Real).collect();
    let (rows, columns) = (result.elements(), moved.iter().map(|ty| ty.elements()).sum::<usize>());
    let unit = |at: usize, first: usize, ty: &Type| {
        reals(ty, (first..first + ty.elements()).map(|e| f64::from(u8::from(e == at))))
    };
    let (mut back, mut ahead) = (Vec::new(), Vec::new());
    for values in values {
        // the last has no 1
        back.extend((0..=rows).map(|row| [&values[..], &[unit(row, 0, result)]].concat()));
        ahead.extend((0..=columns).map(|column| {
            let mut first = 0;
            let tangents = moved.iter().map(|ty| {
                first += ty.elements();
                unit(column, first - ty.elements(), ty)
            });
            values.iter().cloned().chain(tangents).collect::<Vec<Array>>()
        }));
    }
    let (back, ahead) = (by_lane(&reverse, &back, 1), by_lane(&forward, &ahead, 1));
    for (i, values) in values.iter().enumerate() {
        let (back, ahead) = (&back[i * (rows + 1)..][..rows + 1], &ahead[i * (columns + 1)..][..columns + 1]);
        let zeros = back[rows].iter().chain(&ahead[columns]).all(|x| *x == 0.0);
        if !zeros {
            wrong.push(format!("{prim} {values:?}: zeros give {:?} and {:?}", back[rows], ahead[columns]));
        }
        for row in 0..rows {
            for column in 0..columns {
                let (one, other) = (back[row][column], ahead[column][row]);
                if !agree(prim, one, other) {
                    let what = format!("of element {row} by element {column}");
                    wrong.push(format!("{prim} {values:?}: {what} {one} in reverse mode, {other} in forward mode"));
                }
            }
        }
    }
    wrong
}

/// Primitives with a derivative, with operands to try.
fn differentiable() -> impl Iterator<Item = (Prim, Vec<(Vec<Type>, Type)>)> {
    let rows = TABLE.iter().filter(|row| matches!(row.derivative, DerivativeRule::Smooth | DerivativeRule::Linear));
    rows.map(|row| {
        let mut found = operands(row.prim);
        found.retain(|(_, result)| result.dtype == DType::Real);
        assert!(!found.is_empty(), "no operands were found for `{}`", row.name);
        (row.prim, found)
    })
}

#[test]
fn both_modes_agree_on_every_primitive_at_singular_points() {
    let mut wrong = Vec::new();
    for (prim, list) in differentiable() {
        let mut rng = Rng::new(0x51);
        for (types, result) in list {
            let pattern = |p: usize, rng: &mut Rng| -> Vec<Array> {
                types.iter().enumerate().map(|(i, ty)| special(ty, i, p, rng)).collect()
            };
            let values: Vec<Vec<Array>> = (0..PATTERNS).map(|p| pattern(p, &mut rng)).collect();
            wrong.extend(check_jacobians(prim, &types, &result, &values));
        }
    }
    assert!(wrong.is_empty(), "{} wrong derivatives:\n{}", wrong.len(), wrong.join("\n"));
}

/// All primitives with a derivative in one function, each with its first operands.
fn all_at_once() -> (cfg::Program, Vec<Type>, Vec<Type>) {
    let (mut params, mut vars, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut types, mut results) = (Vec::new(), Vec::new());
    for (prim, list) in differentiable() {
        for (args, result) in list.into_iter().take(2) {
            let r = results.len();
            let names: Vec<String> = (0..args.len()).map(|i| format!("x{r}_{i}")).collect();
            params.extend(names.iter().zip(&args).map(|(name, ty)| format!("{name}: {ty}")));
            vars.push(format!("r{r}: {result}"));
            lines.push(format!("  r{r} = {prim} {} @f:1\n", names.join(", ")));
            types.extend(args);
            results.push(result);
        }
    }
    let names: Vec<String> = (0..results.len()).map(|r| format!("r{r}")).collect();
    let of: Vec<String> = results.iter().map(Type::to_string).collect();
    let (names, of) = (names.join(", "), of.join(", "));
    let text = format!(
        "cfg entry f\noutputs {names}\nfunc f({}) -> {of} {{ @f:1\n  var {}\nb0: @f:1\n{}  return {names}\n}}\n",
        params.join(", "),
        vars.join(", "),
        lines.concat(),
    );
    (cfg::read(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), types, results)
}

#[test]
fn engines_agree_on_all_derivatives_at_singular_points() {
    let (program, types, results) = all_at_once();
    let wrt: Vec<bool> = types.iter().map(|ty| ty.dtype == DType::Real).collect();
    let mut rng = Rng::new(0x52);
    for mode in [Mode::Reverse, Mode::Forward] {
        let derived = derive(&program, mode, &wrt);
        let seeds: Vec<Type> = match mode {
            Mode::Reverse => results.clone(),
            Mode::Forward => types.iter().filter(|ty| ty.dtype == DType::Real).cloned().collect(),
        };
        let lanes: Vec<Vec<Array>> = (0..PATTERNS + 3)
            .map(|p| {
                let values = types.iter().enumerate().map(|(i, ty)| special(ty, i % 2, p, &mut rng)).collect();
                let seeds = seeds.iter().map(|ty| {
                    let any = (0..ty.elements()).map(|_| [0.0, 1.0, 0.0, -2.0, f64::INFINITY][rng.below(5)]);
                    reals(ty, any.collect::<Vec<_>>())
                });
                let seeds: Vec<Array> = seeds.collect();
                [values, seeds].concat()
            })
            .collect();
        let (inputs, settings) = (inputs(&lanes), Settings::default().shard_lanes(40));
        let bits = |outcome: &Outcome| outcome.outputs.iter().map(normal).collect::<Vec<_>>();
        let wanted = bits(&interp::run(&derived, &inputs, &settings, &NoSink));
        for passes in [Passes::none(), Passes::default()] {
            let compiled = from_cfg(derived.clone(), &passes, MACHINE);
            let cfg = compiled.cfg.as_ref().expect("made of a CFG program");
            let shared = interp::shared_values(&cfg.shared, &indexmap::IndexMap::new(), settings.get_precision());
            let inputs = inputs.clone().with_shared(shared.expect("shared values"));
            let calls = compiled.calls.as_ref().expect("a plan");
            let local = bits(&cpu::local::run(calls, &inputs, &settings, &NoSink));
            assert!(local == wanted, "local, {mode:?}");
            let pc = bits(&cpu::pc::run(&compiled.plan, &inputs, &settings, &NoSink));
            assert!(pc == wanted, "pc, {mode:?}");
            if passes == Passes::default() && crate::tools::observed::codegen() == Codegen::Cc {
                let native =
                    Native::new(Code::of_units(&compiled.units, &compiled.plan), settings.get_precision(), None);
                let native = native.expect("the generated C compiles");
                let generated = cpu::pc::run_with(&compiled.plan, Generated::Now(&native), &inputs, &settings, &NoSink);
                assert!(bits(&generated) == wanted, "generated code, {mode:?}");
            }
        }
    }
}
