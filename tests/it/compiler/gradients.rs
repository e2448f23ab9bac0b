//! Derivatives as users meet them: those of the models that ship against gradients by hand, identities between derivatives,
//! and what is refused.

use autobatch::program::io::{ArrayType, NamedValues};
use autobatch::program::{Inputs, Options, Program};
use autobatch::types::Array;

/// Reals between -1 and 1 that look random.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn outputs(program: &Program, entry: &str, inputs: &Inputs) -> Vec<Vec<f64>> {
    let results = program.function(entry).and_then(|f| f.run(inputs, &Options::default())).expect("it runs");
    assert!(results.traps().is_empty(), "{:?}", results.traps());
    results.outputs().values().map(|a| a.as_real().expect("real").to_vec()).collect()
}

fn close(found: &[f64], wanted: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(1e-300, |m: f64, w| m.max(w.abs()));
    for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
        let error = (f - w).abs() / w.abs().max(1e-3 * scale);
        assert!(error <= tolerance, "{what}[{i}]: {f} against {w}, relative error {error:e}");
    }
}

/// A model that ships, its data, and its dimension.
fn model_agrees(name: &str, data: Option<&str>, dimension: usize, extra: Inputs) {
    let lanes = 7;
    let model = Program::load(format!("nuts/models/{name}.ab")).expect("the model ships");
    let by_hand = Program::load(format!("tests/filetests/gradients/{name}.ab")).expect("the oracle is there");
    let density = model.function("log_density").expect("a model has a density");
    let mut inputs = extra.lane("q", Array::real([lanes, dimension], noise(3, lanes * dimension)));
    if let Some(data) = data {
        let values = NamedValues::read(std::path::Path::new(&format!("nuts/data/{data}.json"))).expect("the data ship");
        for port in density.signature().ports.iter().filter(|p| p.shared) {
            let ty = ArrayType { dtype: port.dtype, rank: port.extents.len() };
            inputs = inputs.shared(port.name.clone(), values.array(&port.name, ty).expect("an array"));
        }
    }
    let gradient = model.gradient("log_density", &[]).expect("it has a gradient");
    let derived = gradient.function().and_then(|f| f.run(&inputs, &Options::default())).expect("it runs");
    let derived: Vec<Vec<f64>> = derived.outputs().values().map(|a| a.as_real().expect("real").to_vec()).collect();
    let wanted = outputs(&by_hand, "log_density_and_gradient", &inputs);
    close(&derived[0], &wanted[0], 1e-10, &format!("{name}: value"));
    close(&derived[1], &wanted[1], 1e-10, &format!("{name}: gradient"));
}

#[test]
fn the_models_that_ship_have_the_gradients_that_were_written_by_hand() {
    model_agrees("eight_schools", Some("eight_schools"), 10, Inputs::new());
    model_agrees("kidscore_momiq", Some("kidiq"), 3, Inputs::new());
    model_agrees("logistic_wells", Some("wells_data"), 2, Inputs::new());
    model_agrees("correlated_gaussian", Some("correlated_gaussian"), correlated_dimension(), Inputs::new());
    let (n, d) = (40, 5);
    let y = noise(2, n).iter().map(|u| f64::from(*u > 0.0)).collect();
    let data = Inputs::new().shared("x", Array::real([n, d], noise(1, n * d))).shared("y", Array::real([n], y));
    model_agrees("logistic_synthetic", None, d, data);
}

fn correlated_dimension() -> usize {
    let values = NamedValues::read(std::path::Path::new("nuts/data/correlated_gaussian.json")).expect("the data ship");
    let ty = ArrayType { dtype: autobatch::types::DType::Real, rank: 1 };
    values.array("mean", ty).expect("an array").len()
}

const LOGISTIC: &str = "
fn term[d](w: real[d], x: real[d], y: int) -> real { bernoulli_logit_lpmf(y, dot(x, w)) }
fn density[n, d](w: real[d], shared x: real[n, d], shared y: int[n]) -> real {
    sum(term(w, x[i], y[i]) for i in 0..n) - 0.5 * dot(w, w)
}
pub fn of_example[d](shared w: real[d], x: real[d], y: int) -> real[d] { grad(term)(w, x, y) }
pub fn of_batch[n, d](w: real[d], shared x: real[n, d], shared y: int[n]) -> real[d] { grad(density)(w, x, y) + w }
pub fn curvature[n, d](w: real[d], shared x: real[n, d], shared y: int[n]) -> real[d, d] { -hessian(density)(w, x, y) }
";

/// Covariates, outcomes and weights.
fn regression(n: usize, d: usize) -> (Vec<f64>, Vec<i64>, Vec<f64>) {
    let y = noise(12, n).iter().map(|u| i64::from(*u > 0.2)).collect();
    (noise(11, n * d), y, noise(13, d))
}

#[test]
fn gradients_of_examples_sum_to_that_of_the_batch() {
    let (n, d) = (50, 4);
    let (x, y, w) = regression(n, d);
    let program = Program::compile(LOGISTIC).expect("it checks");
    let examples = Inputs::new()
        .lane("x", Array::real([n, d], x.clone()))
        .lane("y", Array::int([n], y.clone()))
        .shared("w", Array::real([d], w.clone()));
    let examples = outputs(&program, "of_example", &examples).remove(0);
    let mut sum = vec![0.0; d];
    examples.iter().enumerate().for_each(|(i, g)| sum[i % d] += g);
    let batch = Inputs::new()
        .lane("w", Array::real([1, d], w))
        .shared("x", Array::real([n, d], x))
        .shared("y", Array::int([n], y));
    let batch = outputs(&program, "of_batch", &batch).remove(0);
    close(&batch, &sum, 1e-12, "gradient");
}

#[test]
fn the_hessian_of_logistic_regression_is_x_d_x_plus_1() {
    let (n, d) = (30, 4);
    let (x, y, w) = regression(n, d);
    let program = Program::compile(LOGISTIC).expect("it checks");
    let inputs = Inputs::new()
        .lane("w", Array::real([1, d], w.clone()))
        .shared("x", Array::real([n, d], x.clone()))
        .shared("y", Array::int([n], y));
    let found = outputs(&program, "curvature", &inputs).remove(0);
    let mut wanted = vec![0.0; d * d];
    for row in x.chunks(d) {
        let eta: f64 = row.iter().zip(&w).map(|(x, w)| x * w).sum();
        let p = 1.0 / (1.0 + (-eta).exp());
        for i in 0..d {
            for j in 0..d {
                wanted[i * d + j] += row[i] * row[j] * p * (1.0 - p);
            }
        }
    }
    (0..d).for_each(|i| wanted[i * d + i] += 1.0);
    close(&found, &wanted, 1e-10, "Hessian");
}

/// The codes and messages of a program that is refused: when it is compiled, or for these inputs.
fn refused(source: &str) -> String {
    let program = match Program::compile(source) {
        Err(error) => return error.to_string(),
        Ok(program) => program,
    };
    let inputs = Inputs::new().lane("x", Array::real([2], vec![1.0, 2.0]));
    match program.function("main").and_then(|f| f.run(&inputs, &Options::default())) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("not refused:\n{source}"),
    }
}

#[test]
fn derivatives_through_draws_name_the_path() {
    let drawn = "fn h(x: real) -> real { normal_rng(x, 1.0) }\nfn g(x: real) -> real { 2.0 * h(x) }\n";
    let direct =
        refused(&format!("{drawn}fn f(x: real) -> real {{ g(x) }}\npub fn main(x: real) -> real {{ grad(f)(x) }}"));
    assert!(direct.contains("E0908") && direct.contains("`f` → `g` → `h` → `normal_rng` (line 1)"), "{direct}");
    let passed = refused(&format!(
        "{drawn}fn slope(f: fn(real) -> real, x: real) -> real {{ grad(f)(x) }}\npub fn main(x: real) -> real {{ slope(g, x) }}"
    ));
    assert!(passed.contains("E0908") && passed.contains("`g` → `h` → `normal_rng` (line 1)"), "{passed}");
    let twice = refused(
        "@recompute\nfn f(g: fn(real) -> real, x: real) -> real { g(x) }\nfn h(x: real) -> real { print(\"{x}\"); x }\n\
         pub fn main(x: real) -> real { grad(|x| f(h, x))(x) }",
    );
    assert!(twice.contains("E0913"), "{twice}");
}

#[test]
fn a_draw_in_stop_gradient_is_a_constant() {
    let program = Program::compile(
        "fn f(x: real, s: real) -> real { (x + s * stop_gradient(normal_rng(0.0, 1.0))) ^ 2 }\n\
         pub fn main(x: real) -> (real, (real, real)) { value_and_grad(f, wrt = (x, s))(x, 0.5) }",
    );
    let program = program.expect("it checks");
    let inputs = Inputs::new().lane("x", Array::real([3], vec![1.0, 2.0, 3.0]));
    let found = outputs(&program, "main", &inputs);
    for (lane, x) in [1.0, 2.0, 3.0].into_iter().enumerate() {
        let at = found[1][lane] / 2.0;
        let z = (at - x) / 0.5;
        close(&[found[0][lane], found[2][lane]], &[at * at, 2.0 * at * z], 1e-12, "value and slope");
    }
}

#[test]
fn the_library_gives_gradients_of_entries() {
    let program = Program::compile(
        "pub struct Z { a: real[2], b: real }\n\
         pub fn f(z: Z, n: int, shared s: real, t: (real, real)) -> real { dot(z.a, z.a) * z.b * n + s * t.0 * t.1 }\n\
         pub fn g(x: int) -> int { x }\npub fn h(x: int) -> real { 1.0 * x }",
    );
    let program = program.expect("it checks");
    let gradient = program.gradient("f", &[]).expect("it has one");
    assert_eq!(gradient.inputs(), ["z.a", "z.b", "t.0", "t.1"]);
    let inputs = Inputs::new()
        .lane("z.a", Array::real([1, 2], vec![1.0, 2.0]))
        .lane("z.b", Array::real([1], vec![3.0]))
        .lane("n", Array::int([1], vec![2]))
        .shared("s", 4.0)
        .lane("t.0", Array::real([1], vec![5.0]))
        .lane("t.1", Array::real([1], vec![6.0]));
    let results = gradient.function().and_then(|f| f.run(&inputs, &Options::default())).expect("it runs");
    let found: Vec<Vec<f64>> = results.outputs().values().map(|a| a.as_real().expect("real").to_vec()).collect();
    assert_eq!(found, [vec![150.0], vec![12.0, 24.0], vec![10.0], vec![24.0], vec![20.0]]);
    let message = |entry: &str, wrt: &[&str]| {
        let wrt: Vec<String> = wrt.iter().map(ToString::to_string).collect();
        program.gradient(entry, &wrt).expect_err("refused").to_string()
    };
    assert!(message("g", &[]).contains("does not give a real"));
    assert!(message("h", &[]).contains("no parameter that varies"));
    assert!(message("f", &["s"]).contains("is shared"));
    assert!(message("f", &["n"]).contains("not made of reals"));
    assert!(message("f", &["q"]).contains("no parameter `q`"));
}
