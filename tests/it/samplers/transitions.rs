//! Single transitions of the samplers that ship: full trees on an almost flat density, distributions that a transition
//! conserves, and what synchronising lanes after every trajectory costs.

use autobatch::pipeline::Passes;
use autobatch::program::{Engine, Inputs, Options, Program, Results};
use autobatch::types::Array;

fn program(text: &str) -> Program {
    Program::compile(text).unwrap_or_else(|e| panic!("{e}"))
}

fn options(engine: Engine, seed: u64) -> Options {
    Options::default().engine(engine).seed(seed)
}

fn run(program: &Program, entry: &str, inputs: &Inputs, options: &Options) -> Results {
    let results = program.function(entry).and_then(|f| f.run(inputs, options)).unwrap_or_else(|e| panic!("{e}"));
    assert!(results.traps().is_empty(), "{:?}", results.traps().first());
    results
}

fn ints(results: &Results, name: &str) -> Vec<i64> {
    results.output(name).and_then(Array::as_int).expect("ints").to_vec()
}

fn reals(results: &Results, name: &str) -> Vec<f64> {
    results.output(name).and_then(Array::as_real).expect("reals").to_vec()
}

const FLAT: &str = r#"
use "std/nuts.ab";
use "std/hamiltonian.ab";
fn flat[d](q: real[d]) -> (real, real[d]) { (-0.5e-12 * dot(q, q), -1e-12 * q) }
pub struct Counts { leapfrogs: int, treedepth: int }
fn counts(q: real[3], eps: real, shared tuning: Tuning) -> Counts {
    let (lp, grad) = flat(q);
    let t = transition(flat, tuning, [1.0, 1.0, 1.0], eps, Point { q: q, lp: lp, grad: grad });
    Counts { leapfrogs: t.n_leapfrog, treedepth: t.treedepth }
}
pub fn leapfrogs(q: real[3], eps: real, shared max_treedepth: int, shared leaf_steps: int) -> Counts {
    counts(q, eps, Tuning { max_treedepth, leaf_steps, divergence_threshold: 1000.0 })
}
pub fn usual(q: real[3], eps: real) -> Counts {
    counts(q, eps, Tuning { max_treedepth: 10, leaf_steps: 1, divergence_threshold: 1000.0 })
}
"#;

/// On an almost flat density no trajectory turns around: every tree is full, at every largest depth and number of steps a
/// leaf.
#[test]
fn trees_are_full_on_an_almost_flat_density() {
    let lanes = 20;
    let q = Array::real([lanes, 3], (0..lanes * 3).map(|i| (i as f64 * 0.7).sin()).collect());
    let flat = program(FLAT);
    for (depth, leaf_steps) in (1..=6_i64).map(|d| (d, 1)).chain([(2, 2), (2, 3), (3, 2), (3, 3)]) {
        let inputs = Inputs::new().lane("q", q.clone()).shared("eps", 0.1);
        let inputs = inputs.shared("max_treedepth", depth).shared("leaf_steps", leaf_steps);
        let results = run(&flat, "leapfrogs", &inputs, &options(Engine::Pc, 1));
        assert_eq!(ints(&results, "leapfrogs"), vec![((1 << depth) - 1) * leaf_steps; lanes], "depth {depth}");
        assert_eq!(ints(&results, "treedepth"), vec![depth; lanes]);
    }
}

/// What the machine saves of a transition of NUTS; what recursion passes on unchanged is not among it. The implementation in TensorFlow Probability has 10 stack variables and
/// 20 pushes.
#[test]
fn a_transition_saves_little_on_stacks() {
    use autobatch::parts::StorageClass;
    use autobatch::types::{DType, Type};

    let program = program(FLAT);
    let function = program.function("usual").expect("an entry");
    let types = vec![Type::new(DType::Real, [3]), Type::real()];
    let compiled = function.compile(types, &Passes::default()).expect("it compiles");
    let stack = compiled.stack.as_ref().expect("it was lowered");
    let class = |name: &str| stack.vars.values().find(|v| v.name == name).map(|v| v.class);
    for passed_on in ["build_tree.inv_metric", "build_tree.eps", "build_tree.h0"] {
        assert_ne!(class(passed_on), Some(StorageClass::Stack), "{passed_on}");
    }
    assert_eq!(class("build_tree.depth"), Some(StorageClass::Stack));
    let stacks = stack.vars.values().filter(|v| v.class == StorageClass::Stack).count();
    let text = stack.to_string();
    let count = |word: &str| text.lines().filter(|l| l.trim_start().starts_with(word)).count();
    let pushes = count("push ") + count("save ");
    assert!(stacks <= 8 && pushes <= 8, "{stacks} stack variables, {pushes} pushes");
}

/// One transition from an exact draw of the target, for every sampler and target.
const CONSERVED: &str = r#"
use "std/SAMPLER.ab";
use "std/hamiltonian.ab";

pub struct Moved { before: real, after: real, leapfrogs: int }

fn moved(density: fn(real[1]) -> (real, real[1]), y: real, eps: real) -> Moved {
    let (lp, grad) = density([y]);
    let t = transition(density, TUNING, [1.0], eps, Point { q: [y], lp: lp, grad: grad });
    Moved { before: y, after: t.point.q[0], leapfrogs: t.n_leapfrog }
}

/// Normal with mean 1 and standard deviation 2.
pub fn normal(shared eps: real) -> Moved {
    moved(|q: real[1]| (-0.125 * (q[0] - 1.0) ^ 2, [-0.25 * (q[0] - 1.0)]), normal_rng(1.0, 2.0), eps)
}

/// The logit of a Beta(1, 2): its density is x (1 - x)^2 up to a constant, its distribution function 1 - (1 - x)^2.
pub fn logit_beta(shared eps: real) -> Moved {
    let x = 1.0 - sqrt(uniform_rng(0.0, 1.0));
    moved(
        |q: real[1]| (-log1p_exp(-q[0]) - 2.0 * log1p_exp(q[0]), [1.0 - 3.0 * inv_logit(q[0])]),
        log(x) - log1p(-x),
        eps,
    )
}

pub struct Moved3 { before: real[3], after: real[3], leapfrogs: int }

/// Three normals: x, x + y / 2, and z of another mean and scale.
pub fn normal3(shared eps: real) -> Moved3 {
    let (x, y, z) = (normal_rng(0.0, 1.0), normal_rng(0.0, 1.0), normal_rng(-1.0, 2.0));
    let density = |q: real[3]| {
        let r = 2.0 * (q[1] - q[0]);
        let s = 0.5 * (q[2] + 1.0);
        (-0.5 * (q[0] * q[0] + r * r + s * s), [2.0 * r - q[0], -2.0 * r, -0.5 * s])
    };
    let start = [x, x + 0.5 * y, z];
    let (lp, grad) = density(start);
    let t = transition(density, TUNING, [1.0, 1.0, 1.0], eps, Point { q: start, lp: lp, grad: grad });
    Moved3 { before: start, after: t.point.q, leapfrogs: t.n_leapfrog }
}
"#;

/// A program for a sampler, whose trees have at most three doublings.
fn conserved(sampler: &str) -> Program {
    let tuning = match sampler {
        "nuts" => "max_treedepth: 3, leaf_steps: 1",
        "slice_nuts" => "max_treedepth: 3",
        _ => "integration_time: 3.141592653589793, max_steps: 1024",
    };
    let tuning = format!("Tuning {{ {tuning}, divergence_threshold: 1000.0 }}");
    program(&CONSERVED.replace("SAMPLER", sampler).replace("TUNING", &tuning))
}

const LANES: usize = 50_000;

/// By the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart the empirical distribution function of `LANES` draws is
/// farther from the true one than this with probability at most 1e-6.
fn bound() -> f64 {
    ((2.0_f64 / 1e-6).ln() / (2 * LANES) as f64).sqrt()
}

/// The largest distance between the empirical distribution function of the draws and `cdf`.
fn distance(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    draws.sort_unstable_by(f64::total_cmp);
    let n = draws.len() as f64;
    let off = draws.iter().enumerate().map(|(i, x)| {
        let f = cdf(*x);
        (f - i as f64 / n).max((i + 1) as f64 / n - f)
    });
    off.fold(0.0, f64::max)
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * autobatch::vmath::Real::erfc(-x / std::f64::consts::SQRT_2)
}

fn conserves(sampler: &str, entry: &str, eps: f64, seed: u64, cdf: impl Fn(f64) -> f64) {
    let program = conserved(sampler);
    let inputs = Inputs::new().shared("eps", eps).lanes(LANES);
    let results = run(&program, entry, &inputs, &options(Engine::Pc, seed));
    let (before, after) = (reals(&results, "before"), reals(&results, "after"));
    for (when, draws) in [("before", &before), ("after", &after)] {
        let off = distance(draws.clone(), &cdf);
        assert!(off <= bound(), "{sampler} on {entry} with step {eps}: {when} the transition off by {off}");
    }
    // A sampler that goes nowhere conserves everything.
    let counts: std::collections::BTreeSet<i64> = ints(&results, "leapfrogs").into_iter().collect();
    let mean = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).sum::<f64>() / LANES as f64;
    if eps > 1e-3 {
        assert!(mean >= eps, "{sampler} on {entry}: moves by {mean} with steps of {eps}");
        assert!(counts.len() >= 3, "{sampler} on {entry}: {counts:?} leapfrogs");
    }
}

#[test]
fn a_transition_conserves_a_normal() {
    for (i, sampler) in ["nuts", "slice_nuts", "hmc"].into_iter().enumerate() {
        conserves(sampler, "normal", 0.2, 31 + i as u64, |x| normal_cdf((x - 1.0) / 2.0));
    }
}

#[test]
fn a_transition_conserves_the_logit_of_a_beta() {
    let cdf = |y: f64| 1.0 - (1.0 / (1.0 + y.exp())).powi(2);
    for (i, sampler) in ["nuts", "slice_nuts", "hmc"].into_iter().enumerate() {
        conserves(sampler, "logit_beta", 0.2, 41 + i as u64, cdf);
    }
    conserves("nuts", "logit_beta", 1e-4, 44, cdf);
}

/// Every projection of a normal vector is normal: 100 of them, for each sampler.
#[test]
fn a_transition_conserves_a_normal_of_three_dimensions() {
    for (i, sampler) in ["nuts", "slice_nuts", "hmc"].into_iter().enumerate() {
        let program = conserved(sampler);
        let inputs = Inputs::new().shared("eps", 0.3).lanes(LANES);
        let results = run(&program, "normal3", &inputs, &options(Engine::Pc, 51 + i as u64));
        let (before, after) = (reals(&results, "before"), reals(&results, "after"));
        let mut rng = crate::tools::random_programs::Rng::new(7);
        for _ in 0..100 {
            let w: [f64; 3] = std::array::from_fn(|_| rng.below(2001) as f64 / 1000.0 - 1.0);
            // x has coefficient w0 + w1, y has w1 / 2, z has mean -1 and scale 2.
            let scale = ((w[0] + w[1]).powi(2) + 0.25 * w[1] * w[1] + 4.0 * w[2] * w[2]).sqrt();
            let projected = after.chunks(3).map(|q| q[0] * w[0] + q[1] * w[1] + q[2] * w[2]).collect();
            let off = distance(projected, |x| normal_cdf((x + w[2]) / scale));
            assert!(off <= bound(), "{sampler}: the projection on {w:?} is off by {off}");
        }
        let moves = before.chunks(3).zip(after.chunks(3));
        let lengths = moves.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt());
        assert!(lengths.sum::<f64>() / LANES as f64 >= 0.3, "{sampler} hardly moves");
    }
}

/// A chain of trajectories in which every lane goes at its own pace, and the leapfrogs of each of its trajectories.
const TRAJECTORIES: &str = r#"
use "std/nuts.ab";
use "std/hamiltonian.ab";

pub struct Chain[n] { q: real[10], leapfrogs: int[n] }

/// Scales from 0.4 to 5, one a coordinate.
fn density(q: real[10]) -> (real, real[10]) {
    let pull = [q[i] / (0.4 * 1.32 ^ real(i)) ^ 2 for i in 0..10];
    (-0.5 * dot(q, pull), -pull)
}

pub fn chain[n](q: real[10], shared rounds: real[n]) -> Chain[n] {
    let mut at = q;
    let mut counts = [0 for i in 0..n];
    for i in 0..n {
        let (lp, grad) = density(at);
        let tuning = Tuning { max_treedepth: 7, leaf_steps: 1, divergence_threshold: 1000.0 };
        let t = transition(density, tuning, [1.0 for i in 0..10], 0.4, Point { q: at, lp: lp, grad: grad });
        at = t.point.q;
        counts[i] = t.n_leapfrog;
    }
    Chain { q: at, leapfrogs: counts }
}
"#;

/// Lanes that wait for one another after every trajectory waste much of the machine; lanes of one program do not: the
/// gradient runs as often as the lane needs it that needs it most.
#[test]
fn lanes_do_not_wait_for_one_another_between_trajectories() {
    let program = program(TRAJECTORIES);
    let (lanes, rounds) = (20, 11);
    let q = Array::real([lanes, 10], (0..lanes * 10).map(|i| (i as f64 * 0.7).sin()).collect());
    let inputs = Inputs::new().lane("q", q).shared("rounds", vec![0.0; rounds]);
    let options = options(Engine::Pc, 9).stats(true);
    let results = run(&program, "chain", &inputs, &options);
    let counts = ints(&results, "leapfrogs");
    // Waiting: every round costs what its longest trajectory does.
    let longest = |round: usize| counts.iter().skip(round).step_by(rounds).max().copied().expect("lanes");
    let waiting: i64 = (0..rounds).map(longest).sum();
    let taken: Vec<i64> = counts.chunks(rounds).map(|lane| lane.iter().sum()).collect();
    let useful: Vec<f64> = taken.iter().map(|n| *n as f64 / waiting as f64).collect();
    let mean = useful.iter().sum::<f64>() / lanes as f64;
    assert!(mean < 0.65, "waiting lanes would be busy {mean} of the time");
    assert!(useful.iter().all(|u| *u < 0.9), "{useful:?}");
    // Not waiting: within 5 % of what the busiest lane takes, its first gradients included.
    let most = *taken.iter().max().expect("lanes") as u64 + rounds as u64;
    let stats = results.stats();
    let leaf = stats.blocks.iter().max_by_key(|b| b.weight * b.executions.min(1)).expect("blocks");
    println!("waiting {waiting}, busiest lane {most}, executions {} of {}", leaf.executions, leaf.loc);
    assert!(leaf.executions as f64 <= 1.05 * most as f64, "{} executions, the bound is {most}", leaf.executions);
}
