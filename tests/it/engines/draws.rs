//! Draws against the exact distributions: counts by chi² against probabilities that are computed by their ratios,
//! moments where there are too many values for that, shares below some points for reals. And the words in which a draw
//! of an int says what is wrong with its parameters. (What invalid parameters give: `tests/filetests/run/draws.ab`.)

use std::collections::BTreeMap;

use autobatch::program::{Codegen, Engine, Inputs, Options, Program, Results};
use autobatch::run::NoSink;
use autobatch::types::Array;

use crate::tools::observed::gpu;

/// Draws of each distribution. The seed is fixed, so the tests pass or fail for good.
const DRAWS: usize = 200_000;

const PROGRAM: &str = "
pub fn poisson(lambda: real) -> int { poisson_rng(lambda) }
pub fn binomial(n: int, theta: real) -> int { binomial_rng(n, theta) }
pub fn bernoulli(theta: real) -> int { bernoulli_rng(theta) }
pub fn bernoulli_logit(theta: real) -> int { bernoulli_logit_rng(theta) }
pub fn categorical(x: real[3]) -> int { categorical_logit_rng(x) }
pub fn beta(a: real, b: real) -> real { beta_rng(a, b) }
pub fn gamma(a: real, b: real) -> real { gamma_rng(a, b) }
";

fn program() -> Program {
    Program::compile(PROGRAM).unwrap_or_else(|e| panic!("{e}"))
}

fn run(program: &Program, entry: &str, inputs: &Inputs) -> Results {
    let options = Options::default().seed(20);
    program.function(entry).and_then(|f| f.run(inputs, &options)).unwrap_or_else(|e| panic!("{entry}: {e}"))
}

fn ints(program: &Program, entry: &str, inputs: &Inputs) -> Vec<i64> {
    let results = run(program, entry, inputs);
    assert!(results.traps().is_empty(), "{entry}: {:?}", results.traps().first());
    results.output("result").and_then(Array::as_int).expect("ints").to_vec()
}

fn poissons(program: &Program, lambda: f64) -> Vec<i64> {
    ints(program, "poisson", &Inputs::new().lane("lambda", Array::real([DRAWS], vec![lambda; DRAWS])))
}

fn binomials(program: &Program, n: i64, theta: f64) -> Vec<i64> {
    let inputs = Inputs::new()
        .lane("n", Array::int([DRAWS], vec![n; DRAWS]))
        .lane("theta", Array::real([DRAWS], vec![theta; DRAWS]));
    ints(program, "binomial", &inputs)
}

/// The probabilities of the numbers around the mode, from the ratios of neighbours, `up` from k to k + 1 and `down` to
/// k - 1.
fn probabilities(mode: i64, up: impl Fn(i64) -> f64, down: impl Fn(i64) -> f64) -> BTreeMap<i64, f64> {
    const NEGLIGIBLE: f64 = 1e-20;
    let mut weights = BTreeMap::from([(mode, 1.0)]);
    let (mut k, mut weight) = (mode, 1.0);
    while weight > NEGLIGIBLE {
        weight *= up(k);
        k += 1;
        weights.insert(k, weight);
    }
    (k, weight) = (mode, 1.0);
    while weight > NEGLIGIBLE && k > 0 {
        weight *= down(k);
        k -= 1;
        weights.insert(k, weight);
    }
    let total: f64 = weights.values().sum();
    weights.into_iter().map(|(k, w)| (k, w / total)).collect()
}

/// How many standard deviations chi² is above what is expected (by Wilson and Hilferty), in cells of at least 50 draws.
fn excess(draws: &[i64], probabilities: &BTreeMap<i64, f64>) -> f64 {
    const LEAST: f64 = 50.0;
    let mut found: BTreeMap<i64, f64> = BTreeMap::new();
    for draw in draws {
        *found.entry(*draw).or_default() += 1.0;
    }
    let possible = found.keys().all(|k| probabilities.get(k).is_some_and(|p| *p > 0.0));
    assert!(possible, "draws from {:?} to {:?}", found.first_key_value(), found.last_key_value());
    let mut cells = vec![(0.0, 0.0)];
    for (k, p) in probabilities {
        let last = cells.last_mut().expect("there is one");
        last.0 += p * draws.len() as f64;
        last.1 += found.get(k).copied().unwrap_or(0.0);
        if last.0 >= LEAST {
            cells.push((0.0, 0.0));
        }
    }
    let rest = cells.pop().expect("there is one");
    let last = cells.last_mut().expect("more than 50 draws");
    *last = (last.0 + rest.0, last.1 + rest.1);
    let chi2: f64 = cells.iter().map(|(expected, found)| (found - expected).powi(2) / expected).sum();
    let freedom = (cells.len() - 1) as f64;
    if freedom == 0.0 {
        return 0.0;
    }
    let spread = 2.0 / (9.0 * freedom);
    ((chi2 / freedom).cbrt() - 1.0 + spread) / spread.sqrt()
}

#[test]
fn poisson_draws_have_their_probabilities() {
    let program = program();
    for lambda in [0.1, 1.0, 5.0, 9.99, 10.0, 10.5, 12.0, 20.0, 50.0, 300.0, 1000.0, 1e4] {
        let exact = probabilities(lambda as i64, |k| lambda / (k + 1) as f64, |k| k as f64 / lambda);
        let excess = excess(&poissons(&program, lambda), &exact);
        assert!(excess < 3.5, "lambda {lambda}: {excess}");
    }
    assert!(poissons(&program, 0.0).iter().all(|k| *k == 0));
}

#[test]
fn binomial_draws_have_their_probabilities() {
    let program = program();
    let (few, many) = ([(1, 0.3), (10, 0.5), (19, 0.5), (20, 0.5), (21, 0.5)], [(100_000, 1e-3), (1_000_000, 0.2)]);
    let some = [(40, 0.3), (100, 0.1), (100, 0.11), (100, 0.9), (1000, 0.01), (1000, 0.5), (1000, 0.99)];
    for (n, theta) in few.into_iter().chain(some).chain(many) {
        let odds = theta / (1.0 - theta);
        let up = |k: i64| (n - k) as f64 / (k + 1) as f64 * odds;
        let down = |k: i64| k as f64 / (n - k + 1) as f64 / odds;
        let exact = probabilities((n as f64 * theta) as i64, up, down);
        let excess = excess(&binomials(&program, n, theta), &exact);
        assert!(excess < 3.5, "n {n}, theta {theta}: {excess}");
    }
    assert!(binomials(&program, 1000, 0.0).iter().all(|k| *k == 0));
    assert!(binomials(&program, 1000, 1.0).iter().all(|k| *k == 1000));
}

/// Mean and variance of what is normal but for its size.
fn is_normal(draws: &[i64], mean: i64, variance: f64, what: &str) {
    let z: Vec<f64> = draws.iter().map(|k| (k - mean) as f64 / variance.sqrt()).collect();
    let n = z.len() as f64;
    let average = z.iter().sum::<f64>() / n;
    let spread = z.iter().map(|z| z * z).sum::<f64>() / n;
    assert!(average.abs() < 3.5 / n.sqrt(), "{what}: the mean is off by {average} standard deviations");
    assert!((spread - 1.0).abs() < 3.5 * (2.0 / n).sqrt(), "{what}: {spread} of the variance");
}

#[test]
fn counts_of_any_size_are_drawn_at_once() {
    let program = program();
    for lambda in [1_000_000, 1_000_000_000, 1_000_000_000_000_000, 1_000_000_000_000_000_000] {
        is_normal(&poissons(&program, lambda as f64), lambda, lambda as f64, &format!("lambda {lambda}"));
    }
    for (n, theta) in [(1_000_000_000_000, 0.25), (1_000_000_000_000, 0.875), (9_000_000_000_000_000_000, 0.5)] {
        let mean = (n / 8) * (8.0 * theta) as i64;
        let variance = n as f64 * theta * (1.0 - theta);
        is_normal(&binomials(&program, n, theta), mean, variance, &format!("n {n}, theta {theta}"));
    }
    // The same numbers as a Poisson draw, nearly: a mean of 3 in many trials.
    let exact = probabilities(3, |k| 3.0 / (k + 1) as f64, |k| k as f64 / 3.0);
    let excess = excess(&binomials(&program, 1_000_000_000_000, 3e-12), &exact);
    assert!(excess < 3.5, "rare successes: {excess}");
}

#[test]
fn bernoulli_and_categorical_draws_have_their_probabilities() {
    let program = program();
    let all = |x: f64| Inputs::new().lane("theta", Array::real([DRAWS], vec![x; DRAWS]));
    let exact = BTreeMap::from([(0, 0.7), (1, 0.3)]);
    assert!(excess(&ints(&program, "bernoulli", &all(0.3)), &exact) < 3.5);
    let log_odds = (0.3_f64 / 0.7).ln();
    assert!(excess(&ints(&program, "bernoulli_logit", &all(log_odds)), &exact) < 3.5);
    let x = [-1000.0 + 0.2_f64.ln(), -1000.0 + 0.8_f64.ln(), f64::NEG_INFINITY].repeat(DRAWS);
    let draws = ints(&program, "categorical", &Inputs::new().lane("x", Array::real([DRAWS, 3], x)));
    assert!(excess(&draws, &BTreeMap::from([(0, 0.2), (1, 0.8)])) < 3.5);
}

/// Points and the share of the distribution below them, by SciPy 1.17.
type Shares = &'static [(f64, f64)];

const BETA: &[(f64, f64, Shares)] = &[
    (0.001, 0.001, &[(1e-300, 0.25059402842244344), (1e-10, 0.4886194130511643), (0.5, 0.5)]),
    (0.003, 0.003, &[(1e-300, 0.06294719841203988), (1e-10, 0.46663402844059937), (0.5, 0.5)]),
    (0.01, 0.01, &[(1e-100, 0.05000810698527953), (1e-10, 0.39722851343559046), (0.9, 0.5107974708262046)]),
    // By symmetry and by the limit for small shapes: 1 with probability a / (a + b), else 0.
    (1e-300, 1e-300, &[(0.0, 0.5), (0.5, 0.5)]),
    (5e-324, 5e-324, &[(0.0, 0.5), (0.5, 0.5)]),
    (1e-250, 3e-250, &[(0.0, 0.75), (0.999, 0.75)]),
    (0.1, 0.2, &[(1e-10, 0.06849609933570454), (0.5, 0.6705707961028995), (0.9, 0.7804880320024469)]),
    (2.5, 0.01, &[(0.5, 0.0011373236803123644), (0.9, 0.011678127164992934)]),
    (5.0, 7.0, &[(0.1, 0.0027509635), (0.5, 0.7255859375)]),
];

const GAMMA: &[(f64, f64, Shares)] = &[
    (0.001, 1.0, &[(1e-300, 0.5014761980108868), (1e-100, 0.7947862124087359), (0.1, 0.99817800973795)]),
    // The same of a variable 10^300 times as large.
    (0.001, 1e-300, &[(1.0, 0.5014761980108868), (1e200, 0.7947862124087359), (1e299, 0.99817800973795)]),
    (0.1, 2.0, &[(1e-10, 0.11265807486199703), (0.1, 0.8794196267900569)]),
    (0.5, 0.5, &[(0.1, 0.24817036595415076), (1.0, 0.6826894921370859), (5.0, 0.9746526813225317)]),
    (1.0, 3.0, &[(0.1, 0.2591817793182821), (1.0, 0.950212931632136)]),
    (7.0, 1.0, &[(1.0, 8.32411492880231e-05), (5.0, 0.2378165370270613)]),
];

fn has_shares(program: &Program, entry: &str, (a, b, shares): (f64, f64, Shares)) {
    let inputs =
        Inputs::new().lane("a", Array::real([DRAWS], vec![a; DRAWS])).lane("b", Array::real([DRAWS], vec![b; DRAWS]));
    let results = run(program, entry, &inputs);
    let draws = results.output("result").and_then(Array::as_real).expect("reals");
    assert!(draws.iter().all(|x| *x >= 0.0), "{entry} {a} {b}: negative or NaN");
    for (point, share) in shares {
        let below = draws.iter().filter(|x| *x <= point).count() as f64;
        let (mean, variance) = (share * DRAWS as f64, share * (1.0 - share) * DRAWS as f64);
        let z = (below - mean) / (variance + 1.0).sqrt();
        assert!(z.abs() < 4.0, "{entry} {a} {b}: {below} draws below {point}, not {mean} (z {z})");
    }
}

#[test]
fn beta_and_gamma_draws_have_their_distribution_at_small_shapes_too() {
    let program = program();
    BETA.iter().for_each(|row| has_shares(&program, "beta", *row));
    GAMMA.iter().for_each(|row| has_shares(&program, "gamma", *row));
}

#[test]
fn a_draw_of_an_int_names_the_parameter_that_is_wrong() {
    let program = program();
    let real = |name: &str, x: f64| Inputs::new().lane(name, Array::real([1], vec![x]));
    let binomial = |n: i64, theta: f64| real("theta", theta).lane("n", Array::int([1], vec![n]));
    let logits = Inputs::new().lane("x", Array::real([1, 3], vec![f64::NEG_INFINITY; 3]));
    let cases = [
        ("poisson", real("lambda", -1.0), "poisson_rng: lambda is -1, not a number from 0 to 1e18"),
        ("poisson", real("lambda", f64::INFINITY), "poisson_rng: lambda is inf, not"),
        ("bernoulli", real("theta", 2.0), "bernoulli_rng: theta is 2, not a number from 0 to 1"),
        ("bernoulli_logit", real("theta", f64::NAN), "bernoulli_logit_rng: alpha is NaN"),
        ("binomial", binomial(-1, 0.5), "binomial_rng: n is -1, which is negative"),
        ("binomial", binomial(5, 1.5), "binomial_rng: theta is 1.5, not a number from 0 to 1"),
        ("categorical", logits, "categorical_logit_rng: the largest x is -inf, not a finite number"),
    ];
    for (entry, inputs, wanted) in cases {
        let results = run(&program, entry, &inputs);
        let message = results.traps().first().map(|t| t.message.clone()).unwrap_or_default();
        assert!(message.contains(wanted), "{entry}: {message:?}, not {wanted:?}");
    }
}

#[test]
fn a_lane_goes_on_behind_the_draws_of_an_earlier_run() {
    let text = "fn more(n: int) -> real {
            if n == 0 { random_normal() } else { let last = more(n - 1); last + random_uniform() }
        }
        pub fn passes(k: int, n: int) -> (real, int) {
            for i in 0..k { let u = random_uniform(); assert(u > 0.0); }
            (more(n), random_position())
        }";
    let program = Program::compile(text).unwrap_or_else(|e| panic!("{e}"));
    let function = program.function("passes").unwrap_or_else(|e| panic!("{e}"));
    let (passed, n) = ([0_i64, 1, 40, 7, 3], [3_i64, 0, 2, 5, 1]);
    let inputs =
        |k: [i64; 5]| Inputs::new().lane("k", Array::int([5], k.to_vec())).lane("n", Array::int([5], n.to_vec()));
    let wanted = function.run(&inputs(passed), &Options::default().engine(Engine::Scalar).codegen(Codegen::Off));
    let wanted = wanted.unwrap_or_else(|e| panic!("{e}"));
    let on_gpu = gpu().map(|gpu| Options::default().engine(Engine::Pc).codegen(Codegen::Off).backend(gpu));
    let on_cpu = |(engine, codegen)| Options::default().engine(engine).codegen(codegen);
    let ways = [
        (Engine::Scalar, Codegen::Off),
        (Engine::Scalar, Codegen::Cc),
        (Engine::Pc, Codegen::Off),
        (Engine::Pc, Codegen::Cc),
        (Engine::Local, Codegen::Off),
        (Engine::Local, Codegen::Cc),
    ];
    for options in ways.map(on_cpu).into_iter().chain(on_gpu) {
        let mut bound = function.bind(&inputs([0; 5]), &options).unwrap_or_else(|e| panic!("{e}"));
        bound.inputs_mut().drawn = passed.iter().map(|k| *k as u64).collect();
        let found = bound.run(&options, &NoSink).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.outputs(), wanted.outputs(), "{options:?}");
    }
}
