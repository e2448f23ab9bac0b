//! Points where a density traps are rejected: chains go on, and what they draw is right.

use std::path::PathBuf;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::sampling::{Draws, Job, Sampling};
use autobatch::program::{Engine, Inputs, Options};
use autobatch::report::Summary;
use autobatch::run::{Caught, TrapKind};

/// A model without data in a file of its own.
fn sample(name: &str, model: &str, (chains, warmup, draws): (usize, usize, usize), engine: Engine) -> Draws {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rejections-{name}-{engine:?}.ab"));
    std::fs::write(&path, model).expect("the folder of tests");
    let plan = Job { chains, warmup, draws, ..Job::new(&path) };
    let sampling = Sampling::new(&plan, |_| Ok(Inputs::new())).expect("the model is right");
    let options = Options::default().engine(engine).seed(17);
    sampling.run(&options, &|| ()).expect("it runs")
}

fn chains(draws: &Draws, of: impl Fn(f64) -> f64) -> Vec<Vec<f64>> {
    let array = &draws.parameters["q"];
    let values = array.as_real().expect("a state is real");
    values.chunks(array.shape[1]).map(|chain| chain.iter().map(|x| of(*x)).collect()).collect()
}

/// The mean lies within 4 standard errors.
fn has_mean(what: &str, values: &[Vec<f64>], exact: f64) {
    let (found, error) = (diagnostics::mean(values), diagnostics::mcse_mean(values));
    assert!((found - exact).abs() < 4.0 * error, "{what}: {found}, not {exact}, standard error {error}");
    assert!(error < 0.01, "{what}: a standard error of {error} shows nothing");
}

const CORRELATION: &str = "
pub fn log_density(q: real[1]) -> real {
    let l = cholesky_decompose([[1.0, q[0]], [q[0], 1.0]]);
    log(l[1, 1])
}
";

/// The density is that of a semicircle: mean 0, variance 1/4, fourth moment 1/8.
#[test]
fn a_correlation_matrix_that_may_not_be_one() {
    let draws = sample("correlation", CORRELATION, (64, 200, 200), Engine::Pc);
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    assert_eq!(draws.chains.len(), 64);
    assert!(draws.rejected.len() > 32, "early steps are large: {}", draws.rejected.len());
    assert!(draws.rejected.iter().all(|c| c.count > 0 && c.first.kind == TrapKind::AssertFailed));
    has_mean("the mean", &chains(&draws, |x| x), 0.0);
    has_mean("the variance", &chains(&draws, |x| x * x), 0.25);
    has_mean("the fourth moment", &chains(&draws, |x| x.powi(4)), 0.125);
}

/// A standard normal cut at 4.5: but for 3e-6 of its mass it is whole, and so are its moments.
#[test]
fn a_limit_far_out_leaves_the_moments_alone() {
    let model = "pub fn log_density(q: real[1]) -> real { assert(q[0] < 4.5, \"beyond\"); -0.5 * q[0] * q[0] }";
    let draws = sample("limit", model, (1000, 60, 100), Engine::Pc);
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    assert_eq!(draws.chains.len(), 1000);
    let count = |caught: &[Caught]| caught.iter().map(|c| c.count).sum::<u64>();
    let (all, after) = (count(&draws.rejected), count(&draws.rejected_after_warmup));
    assert!(after > 0 && after < all, "{after} of {all}");
    let said = Summary::of_draws(&draws).to_string();
    let met = draws.rejected.len();
    assert!(said.contains(&format!("points were rejected in {met} chains, {after} after warmup, since")), "{said}");
    let first = &draws.rejected_after_warmup[0].first;
    assert!(said.contains(&format!("; first after warmup: {first} (chain {})", first.position)), "{said}");
    has_mean("the mean", &chains(&draws, |x| x), 0.0);
    has_mean("the variance", &chains(&draws, |x| x * x), 1.0);
    // 1 - Phi(2)
    has_mean("the upper tail", &chains(&draws, |x| f64::from(u8::from(x > 2.0))), 0.022_750_131_948_179_2);
    has_mean("the lower tail", &chains(&draws, |x| f64::from(u8::from(x < -2.0))), 0.022_750_131_948_179_2);
}

/// No chain stays where a density is infinite, and no search for a step size ends there.
#[test]
fn an_infinite_density_is_none() {
    let model = "pub fn log_density(q: real[1]) -> real { select(q[0] < 4.5, -0.5 * q[0] * q[0], 1.0 / 0.0) }";
    let draws = sample("infinite", model, (1000, 60, 100), Engine::Pc);
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    assert_eq!(draws.chains.len(), 1000);
    has_mean("the mean", &chains(&draws, |x| x), 0.0);
    has_mean("the square", &chains(&draws, |x| x * x), 1.0);
}

#[test]
fn engines_agree_on_what_is_rejected() {
    let of = |engine| {
        let draws = sample("engines", CORRELATION, (5, 20, 10), engine);
        let bits: Vec<u64> = chains(&draws, |x| x).concat().iter().map(|x| x.to_bits()).collect();
        let rejected = draws.rejected.iter().chain(&draws.rejected_after_warmup);
        let rejected = rejected.map(|c| (c.first.position, c.count, c.first.message.clone()));
        (bits, rejected.collect::<Vec<_>>())
    };
    let wanted = of(Engine::Scalar);
    assert!(!wanted.1.is_empty());
    assert_eq!(of(Engine::Pc), wanted);
    assert_eq!(of(Engine::Local), wanted);
}

/// A flat density within (-3, 3): starts lie within 2, and what is left after a warmup of nothing is all after it.
#[test]
fn without_warmup_all_rejections_are_of_draws() {
    let model = "pub fn log_density(q: real[1]) -> real { assert(abs(q[0]) < 3.0); 0.0 * q[0] }";
    let draws = sample("no-warmup", model, (4, 0, 20), Engine::Pc);
    assert!(!draws.rejected.is_empty());
    assert_eq!(draws.rejected, draws.rejected_after_warmup);
}

#[test]
fn a_chain_without_a_start_tells_why() {
    let model = "pub fn log_density(q: real[1]) -> real { assert(q[0] > 9.0, \"too low\"); -q[0] }";
    let draws = sample("nowhere", model, (2, 10, 10), Engine::Pc);
    assert_eq!(draws.traps.len(), 2);
    let message = &draws.traps[0].message;
    assert!(message.contains("in 100 tries; the density failed 100 times, first: assert failed: too low"), "{message}");
    assert!(message.contains("log_density:1"), "{message}");
}
