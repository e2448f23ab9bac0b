//! Bounded dimensions: a lane gives what it gives alone with arrays of exactly its length, to the bit, whatever stands in the
//! padding, on every engine.

use autobatch::pipeline::Passes;
use autobatch::program::{Engine, Inputs, Options, Program, Results};
use autobatch::run::NoSink;
use autobatch::types::{Array, ArrayData, Scalar};

/// Lengths of the lanes; the last is the bound.
const LENGTHS: [usize; 8] = [3, 0, 1, 2, 17, 5, 16, 20];
/// The same around the blocks of sums.
const LONG: [usize; 6] = [256, 0, 255, 1, 257, 300];

/// What stands in the padding of reals.
const JUNK: [f64; 6] = [f64::NAN, f64::INFINITY, 0.0, -1e308, 1e308, f64::NEG_INFINITY];

/// What a function of `t` numbers gives: its result type, and its body over `x`, `y`, `k` and `s`.
type Body = (&'static str, &'static str);

fn source((result, body): Body, bound: usize) -> String {
    let params = "y: real[t], k: int[t], s: real";
    format!(
        "fn body[t](x: real[t], {params}) -> {result} {{ {body} }}\n\
         pub fn exact[t](x: real[t], {params}) -> {result} {{ body(x, y, k, s) }}\n\
         pub fn bounded(x: real[t <= {bound}], {params}) -> {result} {{ body(x, y, k, s) }}\n"
    )
}

/// Numbers that look like data, for a lane.
fn reals(lane: usize, count: usize, shift: f64) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + lane * 13) % 23) as f64 / 8.0 + shift - 1.0).collect()
}
fn ints(lane: usize, count: usize) -> Vec<i64> {
    (0..count).map(|i| ((i * 5 + lane * 3) % 11) as i64 + 1).collect()
}

/// The inputs of a lane, with zeros up to `room` entries.
fn inputs(lanes: &[(usize, usize)], room: Option<usize>) -> Inputs {
    let padded = |values: Vec<f64>, room: usize| {
        let mut values = values;
        values.resize(room, 0.0);
        values
    };
    let rows = |shift: f64| -> Vec<f64> {
        lanes.iter().flat_map(|(lane, n)| padded(reals(*lane, *n, shift), room.unwrap_or(*n))).collect()
    };
    let counts: Vec<i64> = lanes
        .iter()
        .flat_map(|(lane, n)| {
            let mut values = ints(*lane, *n);
            values.resize(room.unwrap_or(*n), 0);
            values
        })
        .collect();
    let width = room.unwrap_or(lanes[0].1);
    let s: Vec<f64> = lanes.iter().map(|(lane, _)| 0.25 + *lane as f64 / 4.0).collect();
    let inputs = Inputs::new()
        .lane("x", Array::real([lanes.len(), width], rows(0.0)))
        .lane("y", Array::real([lanes.len(), width], rows(0.5)))
        .lane("k", Array::int([lanes.len(), width], counts))
        .lane("s", s);
    match room {
        Some(_) => inputs.lane("t", lanes.iter().map(|(_, n)| *n as i64).collect::<Vec<_>>()),
        None => inputs,
    }
}

/// The elements of an array, all NaNs as one.
fn bits(array: &Array) -> String {
    let words = (0..array.len()).map(|i| match array.get(i) {
        Scalar::Real(r) if r.is_nan() => "nan".to_owned(),
        Scalar::Real(r) => format!("{r:?}"),
        other => other.to_string(),
    });
    format!("{:?}[{}]", array.shape, words.collect::<Vec<_>>().join(" "))
}

/// What a lane gives: its outputs, or its trap.
fn shown(results: &Results, lane: usize) -> String {
    match results.traps().iter().find(|trap| trap.position == lane) {
        Some(trap) => format!("trap: {}", trap.kind),
        None => {
            let outputs = results.outputs().keys();
            let outputs = outputs.map(|name| bits(&results.lane(name, lane).expect("it is there")));
            outputs.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Overwrites what stands beyond the lengths.
fn poison(bound: &mut autobatch::program::Bound) {
    let inputs = bound.inputs().values.len();
    for input in 0..inputs {
        let array = &bound.inputs().values[input];
        let size: usize = array.shape[1..].iter().product();
        let places = (0..array.len()).filter(|at| !bound.is_element(input, at / size.max(1), at % size.max(1)));
        let places: Vec<usize> = places.collect();
        match &mut bound.inputs_mut().values[input].data {
            ArrayData::Real(v) => {
                places.iter().for_each(|at| v[*at] = JUNK[at % JUNK.len()]);
            }
            ArrayData::Int(v) => {
                let junk = [i64::MAX, 0, i64::MIN, -1];
                places.iter().for_each(|at| v[*at] = junk[at % junk.len()]);
            }
            ArrayData::Bool(v) => places.iter().for_each(|at| v[*at] = at % 2 == 0),
        }
    }
}

/// The last bits of derivatives depend on `vectorize`.
fn ways(bits: bool) -> Vec<Options> {
    let mut none = Passes::none();
    if !bits {
        none.switch_on("vectorize");
    }
    let way = |engine, passes| Options::default().engine(engine).passes(passes).memory_limit(4 << 30);
    vec![
        way(Engine::Scalar, Passes::default()),
        way(Engine::Local, Passes::default()),
        way(Engine::Pc, Passes::default()),
        way(Engine::Pc, none),
    ]
}

fn alone(program: &Program, lane: usize, length: usize, options: &Options) -> String {
    let options = options.clone().first_lane(lane as u64);
    let results = program.function("exact").expect("it is there").run(&inputs(&[(lane, length)], None), &options);
    shown(&results.unwrap_or_else(|e| panic!("alone, {length} long: {e}")), 0)
}

fn compare(text: &str, lengths: &[usize], base: &Options) {
    compare_up_to(text, lengths, base, 0.0);
}

/// Like `compare`, but numbers may differ from those of the lane alone by a relative error; all ways give the same bits.
fn compare_up_to(text: &str, lengths: &[usize], base: &Options, error: f64) {
    let program = Program::compile(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let lanes: Vec<(usize, usize)> = lengths.iter().copied().enumerate().collect();
    let reference = base.clone().engine(Engine::Scalar);
    let wanted: Vec<String> = lanes.iter().map(|(lane, n)| alone(&program, *lane, *n, &reference)).collect();
    let bound = *lengths.last().expect("there are some");
    let given = inputs(&lanes, Some(bound));
    let mut first: Option<Vec<String>> = None;
    for way in ways(error == 0.0) {
        let options = way.settings(base.get_settings().clone());
        for poisoned in [false, true] {
            let function = program.function("bounded").expect("it is there");
            let mut run = function.bind(&given, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            if poisoned {
                poison(&mut run);
            }
            let results = run.run(&options, &NoSink).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let found: Vec<String> = (0..lanes.len()).map(|lane| shown(&results, lane)).collect();
            for (lane, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert!(
                    near(found, wanted, error),
                    "lane {lane}, {} long, poisoned: {poisoned}, {:?}\nfound  {found}\nwanted {wanted}\n{text}",
                    lengths[lane],
                    options.get_engine()
                );
            }
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{text}");
        }
    }
}

/// Whether two texts differ in numbers only, and in these by a relative error.
fn near(a: &str, b: &str, error: f64) -> bool {
    let words = |text: &str| -> Vec<String> { text.split([' ', '[', ']', ';']).map(str::to_owned).collect() };
    let (a, b) = (words(a), words(b));
    let close = |a: &String, b: &String| match (a.parse::<f64>(), b.parse::<f64>()) {
        _ if error == 0.0 => false,
        (Ok(a), Ok(b)) => (a - b).abs() <= error * a.abs().max(b.abs()).max(1.0),
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a == b || close(a, b))
}

fn hold(bodies: &[Body]) {
    for body in bodies {
        compare(&source(*body, LENGTHS[LENGTHS.len() - 1]), &LENGTHS, &Options::default());
    }
}

#[test]
fn elementwise_primitives_of_bounded_arrays() {
    hold(&[
        ("real[t]", "x * s + y / (x + 2.0) - exp(y) ^ s"),
        ("real[t]", "select(x > s, x, s) + min(x, y) - max(x, 0.5)"),
        ("bool[t]", "x < y && !(x == s) || k > 3"),
        ("int[t]", "k * k + 9223372036854775000 / k - k % 3 - abs(-k) + k ^ 2"),
        ("int[t]", "int(x * 3.0) + int(s) + k"),
        ("real[t]", "real(k) / 3.0 + k"),
        ("real[t]", "normal_lpdf(x[0], s, 1.0) + x"),
        ("real[t]", "lgamma(y + 2.0) + atan2(x, y) + stop_gradient(x) + fill(s, t) + zeros(t)"),
    ]);
}

#[test]
fn reductions_of_bounded_arrays() {
    hold(&[
        ("(real, real, real, real)", "(sum(x), prod(x), mean(x), variance(x))"),
        ("(real, real)", "(min(x), max(-y))"),
        ("(int, int)", "(min(k), max(k - 5))"),
        ("(int, int, int)", "(sum(k), prod(k % 3 + 1), sum(k / 2 + 1))"),
        ("(bool, bool)", "(any(x > s), all(x > s))"),
        ("(real, real[t])", "(log_sum_exp(x), softmax(y))"),
        ("(real, real)", "(dot(x, y), x @ (y * s))"),
        ("real", "normal_lpdf(x, y, s) + poisson_lpmf(k, s) + student_t_lpdf(x, 3.0, s, 1.0)"),
        ("real", "sum(x[i] * y[i] for i in 0..t) + mean(x[i] for i in 0..t) + log_sum_exp(x[i] + s for i in 0..t)"),
        ("(real, int)", "(min(x[i] for i in 0..t), sum(k[i] for i in 0..t))"),
    ]);
}

#[test]
fn sums_keep_their_blocks() {
    let bodies: [Body; 4] = [
        ("(real, real)", "(sum(x / 3.0), dot(x, y / 7.0))"),
        ("real", "sum([x[i] / 3.0, y[i] / 7.0][j] for i in 0..t, j in 0..2)"),
        ("real", "sum([x / 3.0, y / 7.0])"),
        ("(real, real)", "(mean(x[i] / 3.0 for i in 0..t), log_sum_exp(x[i] / 3.0 for i in 0..t))"),
    ];
    for body in bodies {
        compare(&source(body, LONG[LONG.len() - 1]), &LONG, &Options::default());
    }
}

#[test]
fn matrices_of_bounded_extents() {
    let outer = "let m = [x[i] * y[j] + s for i in 0..t, j in 0..t];";
    let bodies = [
        ("(real, real[t])", "(sum(m), m @ x)"),
        ("(real[t], real[t, t])", "(x @ m, m @ transpose(m))"),
        ("(real[t, t], real)", "(m * m - s, max(m))"),
        ("real[t]", "let mut n = m; for i in 0..t { n[i] = n[i] * 2.0; n[i, i] += 1.0; } n @ y"),
        ("real[2, t]", "[x, y] * s"),
        ("real[t, 2]", "transpose([x, y]) @ [[1.0, s], [2.0, 3.0]]"),
        ("real[4, t]", "concat([x, y], [y, x])"),
        ("(real[t, t], real[t])", "(identity_matrix(x) + diag_matrix(y), diagonal(m))"),
        ("real[t, 2, 1]", "reshape(transpose([x, y]), t, 2, 1)"),
        ("real", "sum(x[i] * sum(m[i]) for i in 0..t)"),
    ];
    for (result, body) in bodies {
        let body = format!("{outer} {body}");
        let body: &'static str = body.leak();
        hold(&[(result, body)]);
    }
}

#[test]
fn linear_algebra_of_bounded_extents() {
    let spd = "let a = [select(i == j, 30.0, 0.0) + x[i] * x[j] for i in 0..t, j in 0..t];";
    for (result, body) in [
        ("(real, real[t, t])", "(log_determinant_spd(a), cholesky_decompose(a))"),
        ("real[t]", "mdivide_left_tri_low(cholesky_decompose(a), y)"),
        ("real[t]", "cumulative_sum(x)"),
    ] {
        let body: &'static str = format!("{spd} sum(a); {body}").replace("sum(a); ", "").leak();
        hold(&[(result, body)]);
    }
}

#[test]
fn elements_and_slices_beyond_the_length_trap() {
    hold(&[
        ("real", "x[2]"),
        ("real", "x[t - 1] + x[t / 2]"),
        ("real", "x[k[0]]"),
        ("real[2]", "x[1..3]"),
        ("real[2]", "let i = k[0]; x[i..i + 2]"),
        ("real[t]", "x[0..t]"),
        ("real[t]", "x[..]"),
        ("real[t]", "let z = concat(fill(s, 20), [1.0]); z[1..t + 1] + x"),
        ("real[t]", "let mut z = x; z[3] = s; z[0] += s; z"),
        ("real[t]", "let mut z = x; z[1..3] = [s, 2.0]; z[0..2] *= s; z"),
        ("real[t]", "let mut z = x; z[0..t] = y; z *= s; z += y; z"),
        ("real[22]", "let mut z = zeros(22); z[2..t + 2] = y; z"),
        ("real[21]", "let mut z = zeros(21); z[2..t + 2] = y; z"),
        ("int[t]", "let mut z = k; z += 9223372036854775000; z -= 9223372036854775000; z"),
    ]);
}

#[test]
fn control_calls_closures_and_recursion() {
    hold(&[
        ("real", "let mut a = s; for i in 0..t { if x[i] > 0.0 { a = a * 0.5 + x[i]; } } a"),
        ("real", "let mut a = s; let mut i = t; while i > 0 { i -= 1; a += y[i] * i; } a"),
        ("real", "if t > 2 { sum(x) } else { s }"),
        ("(int, real)", "(len(x) * 2 + t, 1.0 / t)"),
        ("real[t]", "let f = |v: real[t]| v * s + x; f(f(y))"),
        ("real[t]", "[exp(x[t - 1 - i]) + sum(x[j] for j in 0..i + 1) for i in 0..t]"),
    ]);
    let halves = "fn halved[n](x: real[n], depth: int) -> real { if depth == 0 { sum(x) } else { halved(x * 0.5, depth - 1) + max(x) } }\n\
                  fn apply[n](f: fn(real[n]) -> real[n], x: real[n], times: int) -> real[n] { let mut z = x; for i in 0..times { z = f(z); } z }\n";
    for body in [("real", "halved(x, k[0])"), ("real[t]", "apply(|v| v * s + y, x, 3)")] {
        let text = format!("{halves}{}", source(body, 20))
            .replace("k[0]", "int(s * 8.0)")
            .replace("pub fn exact", "fn _unused() -> real { halved(apply(|v| v, [1.0], 1), 1) }\npub fn exact");
        let text = if body.0 == "real" {
            text.replace("halved(x, int(s * 8.0))", "if t > 0 { halved(x, int(s * 8.0)) } else { s }")
        } else {
            text
        };
        compare(&text, &LENGTHS, &Options::default());
    }
}

#[test]
fn draws_do_not_depend_on_the_bound() {
    hold(&[
        ("(real[t], real)", "(random_normal(t) + x, random_uniform())"),
        ("(real[2, t], real)", "(random_uniform(2, t), std_normal_rng())"),
    ]);
}

#[test]
fn gradients_of_bounded_arrays() {
    let functions = [
        "sum(x * s) / t + s",
        "sum(log(s * (x + 2.0)) + y)",
        "sum_log(s * (x + 2.0)) + sum_log1p_exp(y * s)",
        "sum_log([(x[i] + 3.0) * (y[j] + s) for i in 0..t, j in 0..t])",
        "dot(x * s + y, y) * mean(x) + variance(y * s)",
        "log_sum_exp(x * s) + sum(softmax(y)) * s",
        "prod(x + s) + max(x * s) + sum(fill(s, t) * y)",
        "let m = [x[i] * y[j] * s for i in 0..t, j in 0..t]; sum(m @ x) + s * sum((transpose([x, y]) @ [[s, 1.0], [2.0, s]])[i, 0] for i in 0..t)",
        "let mut a = s; for i in 0..t { a = tanh(a * y[i] + x[i]); } a",
        "normal_lpdf(x, y, s + 1.0)",
        "let mut z = x * s; for i in 0..t { z[i] = z[i] * z[t - 1 - i]; } sum(z[i] * y[i] for i in 0..t)",
        "sum(select(x > 0.5, x * s, s) / (y + 3.0))",
    ];
    for body in functions {
        let function = format!(
            "fn f[t](x: real[t], y: real[t], s: real) -> real {{ {body} }}\n{}",
            source(("(real, (real[t], real[t], real))", "_ = k[0];"), 20)
        );
        let text = function.replace(
            "_ = k[0];",
            "if sum(k) < 0 { (0.0, (x, y, s)) } else { value_and_grad(f, wrt = (x, y, s))(x, y, s) }",
        );
        // The functions may need an element.
        let lengths: Vec<usize> = LENGTHS.into_iter().filter(|n| *n > 0).collect();
        compare_up_to(&text, &lengths, &Options::default(), 1e-13);
        let forward = text.replace("value_and_grad(f, wrt = (x, y, s))(x, y, s)", "derivatives(x, y, s)");
        let forward = format!(
            "fn derivatives[t](x: real[t], y: real[t], s: real) -> (real, (real[t], real[t], real)) {{ \
             let (v, d) = jvp(f, wrt = (x, s))(x, y, s, (y, 1.0)); (v, (hessian_row(x, y, s), y, d)) }}\n\
             fn hessian_row[t](x: real[t], y: real[t], s: real) -> real[t] {{ jvp(grad(f))(x, y, s, y).1 }}\n{forward}"
        );
        compare_up_to(&forward, &lengths, &Options::default(), 1e-13);
    }
}

#[test]
fn no_nan_is_born_in_padding() {
    let options = Options::default().check_nan(true);
    let bodies: [Body; 3] = [
        ("real[t]", "let z = zeros(t) * s; (x - x) / (z + y + 2.0) + sqrt(y + 2.0)"),
        ("real[t]", "sqrt(x) + log(real(k))"),
        ("real", "sum(select(x > 0.5, sqrt(abs(x)), s)) + (x / (y + 3.0)) @ y"),
    ];
    for body in bodies {
        compare(&source(body, 20), &LENGTHS, &options);
    }
}
