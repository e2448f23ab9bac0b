//! Every primitive of the table, for every combination of operand types that it takes and of operands that are the same for
//! all lanes, masked and gathered: the kernels do in every lane what the reference interpreter does.

use autobatch::backend::cpu::{MACHINE, local, pc};
use autobatch::pipeline::{self, Passes};
use autobatch::prim::{BatchRule, Prim, TABLE};
use autobatch::run::{Execution, NoSink, Outcome, RunInputs, Settings};
use autobatch::types::{Array, ArrayData, DType, Precision, Scalar, Type};
use autobatch::{cfg, interp};

use crate::tools::effort;
use crate::tools::random_programs::Rng;

/// Lanes of a run: more than a word of a mask, and not a multiple of one.
const LANES: usize = 70;

const SHAPES: [&[usize]; 9] = [&[], &[3], &[2], &[0], &[2, 3], &[3, 2], &[1, 3], &[2, 1], &[1]];

fn types() -> Vec<Type> {
    let of_shape =
        |shape: &&[usize]| [DType::Bool, DType::Int, DType::Real].map(|d| Type::new(d, shape.iter().copied()));
    SHAPES.iter().flat_map(of_shape).collect()
}

/// Operand types with a type of the result, for all that the primitive takes among [`types`], and for those of higher rank or
/// with arrays of indices some of their own.
fn signatures(prim: Prim) -> Vec<(Vec<Type>, Type)> {
    let types = types();
    let (least, more) = prim.arity();
    let mut found = chosen(prim);
    let mut open: Vec<Vec<Type>> = if found.is_empty() { vec![Vec::new()] } else { Vec::new() };
    let most = if more { least + 1 } else { least };
    while let Some(args) = open.pop() {
        if (least..=most).contains(&args.len()) {
            match prim.infer(&args) {
                Ok(result) if prim.row().batch != BatchRule::Reduction => found.push((args.clone(), result)),
                _ => found.extend(
                    types.iter().filter(|ty| prim.check(&args, ty).is_ok()).map(|ty| (args.clone(), ty.clone())),
                ),
            }
        }
        if args.len() < most {
            // Third and later operands are ints, or of the types of the two before them.
            let next = types.iter().filter(|ty| args.len() < 2 || **ty == Type::int() || args[1].dtype == ty.dtype);
            open.extend(next.map(|ty| [&args[..], std::slice::from_ref(ty)].concat()));
        }
    }
    found.sort();
    found
}

/// The operand types to try of primitives that take indices in arrays, or arrays of rank 3.
fn chosen(prim: Prim) -> Vec<(Vec<Type>, Type)> {
    let ty = |dtype: DType, shape: &[usize]| Type::new(dtype, shape.iter().copied());
    let ints = |shape: &[usize]| ty(DType::Int, shape);
    // an array, indices, and what they give
    let places = [
        (&[3][..], vec![ints(&[4])], &[4][..]),
        (&[3], vec![ints(&[0])], &[0]),
        (&[0], vec![ints(&[2])], &[2]),
        (&[3, 2], vec![ints(&[4])], &[4, 2]),
        (&[3, 0], vec![ints(&[4])], &[4, 0]),
        (&[3, 2], vec![ints(&[2, 2])], &[2, 2, 2]),
        (&[3, 2], vec![ints(&[4]), ints(&[4])], &[4]),
        (&[3, 2], vec![Type::int(), ints(&[3])], &[3]),
        (&[2, 3, 2], vec![ints(&[3]), Type::int()], &[3, 2]),
    ];
    let dtypes = [DType::Bool, DType::Int, DType::Real];
    let real = |shape: &[usize]| ty(DType::Real, shape);
    let mut found = Vec::new();
    match prim {
        Prim::Gather => {
            for (x, at, gives) in &places {
                found.extend(dtypes.map(|d| ([&[ty(d, x)], &at[..]].concat(), ty(d, gives))));
            }
        }
        Prim::Scatter | Prim::ScatterAdd => {
            for (x, at, part) in &places {
                let added = dtypes.iter().filter(|d| prim == Prim::Scatter || **d != DType::Bool);
                found.extend(added.map(|d| ([&[ty(*d, x), ty(*d, part)], &at[..]].concat(), ty(*d, x))));
            }
        }
        Prim::BatchMatMul | Prim::ChainBatchMatMul => {
            for [n, p, k, m] in [[2, 2, 3, 2], [1, 1, 300, 2], [2, 2, 0, 1], [0, 1, 2, 1]] {
                found.push((vec![real(&[n, p, k]), real(&[n, k, m])], real(&[n, p, m])));
            }
        }
        Prim::Cholesky => {
            found.extend([&[3, 3][..], &[0, 0], &[1, 1], &[2, 3, 3]].map(|x| (vec![real(x)], real(x))));
        }
        Prim::ChainCholeskyTangent | Prim::ChainCholeskyCotangent => {
            found.extend([&[3, 3][..], &[0, 0], &[1, 1], &[2, 3, 3]].map(|x| (vec![real(x), real(x)], real(x))));
        }
        Prim::SolveLower | Prim::SolveLowerTransposed | Prim::ChainSolveLower | Prim::ChainSolveLowerTransposed => {
            let sides: [(&[usize], &[usize]); 5] = [
                (&[3, 3], &[3]),
                (&[3, 3], &[3, 2]),
                (&[0, 0], &[0, 2]),
                (&[2, 3, 3], &[2, 3, 2]),
                // More than one block of a chain.
                (&[259, 259], &[259, 2]),
            ];
            found.extend(sides.map(|(l, b)| (vec![real(l), real(b)], real(b))));
        }
        Prim::TransposeEach => {
            found.extend(dtypes.map(|d| (vec![ty(d, &[2, 3, 2])], ty(d, &[2, 2, 3]))));
            found.push((vec![real(&[2, 3, 1, 2])], real(&[2, 1, 3, 2])));
        }
        _ => {}
    }
    found
}

/// Types of higher rank, for primitives that are tried with [`types`].
fn deeper(prim: Prim) -> Vec<(Vec<Type>, Type)> {
    let real = |shape: &[usize]| Type::new(DType::Real, shape.iter().copied());
    let array = [2, 3, 2];
    let masks = (0..8).map(|mask| [0, 1, 2].map(|axis| if mask >> axis & 1 == 1 { 1 } else { array[axis] }));
    match prim {
        Prim::Transpose => vec![(vec![real(&array)], real(&[3, 2, 2]))],
        Prim::Fill => masks.map(|from| (vec![real(&from)], real(&array))).collect(),
        Prim::Sum | Prim::SumLog | Prim::SumLog1pExp | Prim::Prod | Prim::MinOf | Prim::MaxOf => {
            let of_array = masks.map(|to| (vec![real(&array)], real(&to)));
            // more elements than there are in a block of a sum
            of_array.chain([(vec![real(&[600, 2])], real(&[1, 2])), (vec![real(&[600])], real(&[]))]).collect()
        }
        Prim::Mul | Prim::Pow => masks.map(|from| (vec![real(&from), real(&array)], real(&array))).collect(),
        _ => Vec::new(),
    }
}

fn values(ty: &Type, lanes: usize, rng: &mut Rng) -> Array {
    let n = ty.elements() * lanes;
    let ints = [i64::MIN, i64::MAX, i64::MIN + 1, 1 << 53, -1, 0, 63];
    let reals =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 5e-324, 1e-310, 1e300, -1e19, 9.3e18, 0.5, -1.0];
    let data = match ty.dtype {
        DType::Bool => ArrayData::Bool((0..n).map(|_| rng.percent(50)).collect()),
        DType::Int => ArrayData::Int(
            (0..n).map(|_| if rng.percent(15) { *rng.choose(&ints) } else { rng.below(7) as i64 - 2 }).collect(),
        ),
        DType::Real => ArrayData::Real(
            (0..n)
                .map(|_| match rng.below(5) {
                    0 => *rng.choose(&reals),
                    1 => rng.below(9) as f64 - 4.0,
                    2 => ((rng.bits() >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 200.0,
                    _ => (rng.bits() >> 11) as f64 / (1u64 << 53) as f64 * 3.0 - 1.0,
                })
                .collect(),
        ),
    };
    Array::new([lanes].into_iter().chain(ty.shape.iter().copied()), data)
}

fn elements(array: &Array) -> String {
    let all: Vec<String> = (0..array.len()).map(|i| array.get(i).to_string()).collect();
    format!("[{}]", all.join(", "))
}

/// A primitive with operand types, some of which are shared values.
struct Case {
    prim: Prim,
    args: Vec<Type>,
    result: Type,
    shared: usize,
}

impl Case {
    fn is_shared(&self, arg: usize) -> bool {
        self.shared >> arg & 1 == 1
    }

    /// A program that applies the primitive in the lanes where `go` holds. One that changes a part of its first operand does so
    /// in place when that is no shared value and `seed` is odd.
    fn text(&self, seed: u64, rng: &mut Rng) -> String {
        let mut text = "cfg entry main\n".to_owned();
        for (i, ty) in self.args.iter().enumerate().filter(|(i, _)| self.is_shared(*i)) {
            text += &format!("shared s{i}: {ty} = {}\n", elements(&values(ty, 1, rng)));
        }
        text += &format!("shared nothing: {} = {}\n", self.result, elements(&Array::zeros(&self.result)));
        let params = self.args.iter().enumerate().filter(|(i, _)| !self.is_shared(*i));
        let params: String = params.map(|(i, ty)| format!(", a{i}: {ty}")).collect();
        let args: Vec<String> =
            (0..self.args.len()).map(|i| if self.is_shared(i) { format!("$s{i}") } else { format!("a{i}") }).collect();
        let (ty, prim, args) = (&self.result, self.prim, args.join(", "));
        if self.prim.changes_part() && !self.is_shared(0) && !seed.is_multiple_of(2) {
            return text
                + &format!(
                    "outputs result\nfunc main(go: bool{params}) -> {ty} {{\nb0:\n  branch go, b1, b2\nb1: @main:2\n  \
                     a0 = {prim} {args} @main:3\n  jump b2\nb2:\n  return a0\n}}\n"
                );
        }
        text + &format!(
            "outputs result\nfunc main(go: bool{params}) -> {ty} {{\n  var r: {ty}\nb0:\n  branch go, b1, b2\nb1: @main:2\n  \
             r = {prim} {args} @main:3\n  return r\nb2:\n  return $nothing\n}}\n"
        )
    }

    fn check(&self, seed: u64) -> Result<(), String> {
        let mut rng = Rng::new(seed);
        let text = self.text(seed, &mut rng);
        let program = cfg::read(&text).map_err(|e| format!("{e}\n{text}"))?;
        let errors = cfg::verify(&program);
        if !errors.is_empty() {
            return Err(format!("{errors:?}\n{text}"));
        }
        let mut inputs = vec![values(&Type::bool(), LANES, &mut rng)];
        if seed.is_multiple_of(5) {
            inputs[0].data = ArrayData::Bool(vec![true; LANES]);
        }
        let varying = self.args.iter().enumerate().filter(|(i, _)| !self.is_shared(*i));
        inputs.extend(varying.map(|(_, ty)| values(ty, LANES, &mut rng)));
        let (precision, check_nan) = match seed % 4 {
            0 => (Precision::F32, false),
            1 => (Precision::F64, true),
            _ => (Precision::F64, false),
        };
        let settings = Settings::default().precision(precision).check_nan(check_nan).seed(seed).threads(1);
        let shared = interp::shared_values(&program.shared, &Default::default(), precision);
        let inputs = RunInputs::new(
            (0..LANES as u64).map(|l| l * l).collect(),
            inputs,
            shared.map_err(|e| format!("{e}\n{text}"))?,
        );
        let wanted = seen(&interp::run(&program, &inputs, &settings, &NoSink));
        self.compare(&program, &inputs, &settings, &wanted).map_err(|e| format!("{e}\n{settings:?}\n{text}"))?;
        Ok(())
    }

    fn compare(
        &self,
        program: &cfg::Program,
        inputs: &RunInputs,
        settings: &Settings,
        wanted: &[String],
    ) -> Result<(), String> {
        // With `if-convert` lanes that do not go compute junk; it is off where a NaN of theirs would trap.
        let off = settings.get_check_nan() || settings.get_seed().is_multiple_of(2);
        let passes = if off { Passes::none() } else { Passes::default() };
        let compiled = pipeline::from_cfg(program.clone(), &passes, MACHINE);
        let calls = compiled.calls.as_ref().expect("made from a CFG program");
        // Passes compute once what has only shared operands.
        let shared =
            interp::shared_values(&compiled.units.globals.shared, &Default::default(), settings.get_precision())
                .map_err(|e| e.to_string())?;
        let inputs = &inputs.clone().with_shared(shared);
        let narrow = [9, 4, 1, 3, 2, 8][settings.get_seed() as usize % 6];
        for (execution, shard_lanes) in [(Execution::Mask, 0), (Execution::Gather, 0), (Execution::Auto, narrow)] {
            let settings = settings.clone().execution(execution).shard_lanes(shard_lanes);
            let both = [
                ("pc", pc::run(&compiled.plan, inputs, &settings, &NoSink)),
                ("local", local::run(calls, inputs, &settings, &NoSink)),
            ];
            for (engine, outcome) in both {
                let found = seen(&outcome);
                let lane = (0..LANES).find(|l| found[*l] != wanted[*l]);
                if let Some(l) = lane {
                    let given: Vec<String> = inputs.values.iter().map(|a| format!("{:?}", a.get(0))).collect();
                    return Err(format!(
                        "{engine} {execution:?}, lane {l}: {} is wanted, found {} ({given:?} …)",
                        wanted[l], found[l]
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What came of each lane: its result with all bits, all NaNs being one, or its trap.
fn seen(outcome: &Outcome) -> Vec<String> {
    let output = &outcome.outputs[0];
    let each = output.len() / LANES;
    let bits = |i: usize| match output.get(i) {
        Scalar::Real(r) if r.is_nan() => "nan".to_owned(),
        Scalar::Real(r) => format!("{r:?}"),
        other => other.to_string(),
    };
    let mut seen: Vec<String> =
        (0..LANES).map(|l| (l * each..(l + 1) * each).map(bits).collect::<Vec<_>>().join(" ")).collect();
    for trap in &outcome.traps {
        seen[trap.position] = format!("{} at {}", trap.kind, trap.loc);
    }
    seen
}

#[test]
fn every_primitive_does_in_every_lane_what_the_interpreter_does() {
    let mut failures = Vec::new();
    let mut cases = 0;
    for row in TABLE {
        let before = cases;
        for (args, result) in signatures(row.prim).into_iter().chain(deeper(row.prim)) {
            for shared in 0..1 << args.len().min(3) {
                cases += 1;
                // of each primitive the first
                if cases > before + 1 && !effort::tried(cases as usize, 5) {
                    continue;
                }
                let case = Case { prim: row.prim, args: args.clone(), result: result.clone(), shared };
                failures.extend(case.check(cases).err());
            }
        }
        assert!(cases > before, "{} takes no operands", row.name);
    }
    println!("{cases} combinations");
    assert!(
        failures.is_empty(),
        "{} combinations fail:\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
}
