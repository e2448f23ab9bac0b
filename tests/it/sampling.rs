//! What is around a sampler: streams of draws, draws that fail, what can be tuned, starts, and runs that are stopped.

use std::collections::HashSet;
use std::path::Path;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::sampling::{Draws, Plan, Sampling, Tuning};
use autobatch::program::{Engine, Error, Inputs, Options};
use autobatch::report::{SamplerStatistics, Summary};
use autobatch::types::Array;

use crate::cli::{Folder, autobatch, error, output};

/// A standard normal with random draws in its parameters.
const NOISY: &str = "
struct P { x: real, u: real, z: real }
pub fn log_density(q: real[1]) -> real { -0.5 * dot(q, q) }
pub fn parameters(q: real[1]) -> P { P { x: q[0], u: random_uniform(), z: random_normal() } }
";

/// A plan of no model yet.
fn plan() -> Plan<'static> {
    Plan::new(Path::new(""))
}

fn sampling(folder: &Folder, text: &str, plan: Plan<'_>) -> Result<Sampling, Error> {
    let model = folder.file("model.ab", text);
    Sampling::new(&Plan { model: Path::new(&model), ..plan }, |_| Ok(Inputs::new()))
}

fn run(sampling: &Sampling, options: &Options) -> Draws {
    let draws = sampling.run(options, &|| ()).expect("it runs");
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    draws
}

fn noisy(folder: &Folder, chains: usize, draws: usize, options: &Options) -> Draws {
    let plan = Plan { chains, warmup: 0, draws, stepsize: Some(1.0), ..plan() };
    run(&sampling(folder, NOISY, plan).expect("the model is right"), options)
}

fn reals<'a>(draws: &'a Draws, name: &str) -> &'a [f64] {
    draws.parameters[name].as_real().expect("reals")
}

#[test]
fn random_numbers_of_draws_do_not_repeat() {
    let folder = Folder::new("streams");
    let draws = noisy(&folder, 200, 1000, &Options::default());
    let distinct: HashSet<u64> = reals(&draws, "u").iter().map(|u| u.to_bits()).collect();
    assert_eq!(distinct.len(), 200_000);
}

#[test]
fn random_numbers_of_a_draw_are_its_own_whatever_runs_beside_it() {
    let folder = Folder::new("own-streams");
    let options = Options::default();
    let all = noisy(&folder, 7, 20, &options);
    let of = |draws: &Draws, chain: usize, n: usize| {
        reals(draws, "z")[chain * draws.draws..][..n].iter().map(|z| z.to_bits()).collect::<Vec<_>>()
    };
    let fewer_draws = noisy(&folder, 7, 10, &options);
    let fewer_chains = noisy(&folder, 3, 20, &options);
    let mut otherwise = options.clone();
    (otherwise.settings.threads, otherwise.settings.shard_lanes) = (1, 3);
    let otherwise = noisy(&folder, 7, 20, &otherwise);
    let scalar = noisy(&folder, 7, 20, &Options { engine: Engine::Scalar, ..options.clone() });
    // The chains from the second on as a batch of their own: they have their numbers.
    let later = noisy(&folder, 5, 20, &Options { first_lane: 2, ..options });
    for chain in 0..7 {
        assert_eq!(of(&all, chain, 10), of(&fewer_draws, chain, 10), "chain {chain}");
        assert_eq!(of(&all, chain, 20), of(&otherwise, chain, 20), "chain {chain}");
        assert_eq!(of(&all, chain, 20), of(&scalar, chain, 20), "chain {chain}");
        if chain < 3 {
            assert_eq!(of(&all, chain, 20), of(&fewer_chains, chain, 20), "chain {chain}");
        }
        if chain >= 2 {
            assert_eq!(of(&all, chain, 20), of(&later, chain - 2, 20), "chain {chain}");
        }
    }
}

#[test]
fn random_numbers_of_draws_are_none_of_the_chain() {
    let folder = Folder::new("correlation");
    let chains = 4000;
    // The first draw of a chain has the numbers of its start and of its first momentum, which its noise had, too.
    let draws = noisy(&folder, chains, 1, &Options::default());
    for noise in ["u", "z"] {
        let (x, y) = ([reals(&draws, "x").to_vec()], [reals(&draws, noise).to_vec()]);
        let (mx, my) = (diagnostics::mean(&x), diagnostics::mean(&y));
        let products: f64 = x[0].iter().zip(&y[0]).map(|(x, y)| (x - mx) * (y - my)).sum();
        let correlation = products / chains as f64 / diagnostics::sd(&x) / diagnostics::sd(&y);
        assert!(correlation.abs() < 4.0 / (chains as f64).sqrt(), "{noise}: {correlation}");
    }
}

/// Parameters that trap for a draw above 1.
const FAILING: &str = "
struct P { x: real, n: int, yes: bool, m: real[2] }
pub fn log_density(q: real[1]) -> real { -0.5 * dot(q, q) }
pub fn parameters(q: real[1]) -> P {
    assert(q[0] <= 1.0, \"{q[0]} is too much\");
    P { x: q[0], n: 7, yes: true, m: [q[0], 1.0] }
}
";

#[test]
fn a_draw_whose_parameters_trap_loses_nothing_else() {
    let folder = Folder::new("failing");
    let plan = Plan { chains: 3, warmup: 20, draws: 50, ..plan() };
    let sampling = sampling(&folder, FAILING, plan).expect("the model is right");
    let q = sampling.run_unconstrained(&Options::default(), &|| ()).expect("it runs");
    let draws = run(&sampling, &Options::default());
    let (q, x) = (reals(&q, "q"), reals(&draws, "x"));
    let above: Vec<usize> = (0..150).filter(|i| q[*i] > 1.0).collect();
    assert!(above.len() > 5);
    let failed = draws.failed.as_ref().expect("some draws failed");
    assert_eq!(failed.positions, above);
    assert_eq!(failed.first.message, format!("{} is too much", q[above[0]]));
    for (i, x) in x.iter().enumerate() {
        let is = |wanted: bool| assert_eq!(above.contains(&i), wanted);
        is(x.is_nan());
        is(reals(&draws, "m")[2 * i + 1].is_nan());
        is(draws.parameters["n"].as_int().expect("ints")[i] == 0);
        is(!draws.parameters["yes"].as_bool().expect("bools")[i]);
    }
    let model = folder.file("model.ab", FAILING);
    let file = folder.0.join("draws.json").display().to_string();
    let run = ["sample", &model, "--chains", "3", "--warmup", "20", "--draws", "50", "--output", &file];
    let found = output(&run);
    let text = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
    let wanted = format!(
        "warning: `parameters` failed for {} of 150 draws, which are NaN (ints 0) and left out of the table; the first is draw \
         {} of chain {}: assert failed: ",
        above.len(),
        above[0] % 50,
        above[0] / 50
    );
    assert!(text.contains(&wanted) && text.contains("is too much (function `parameters`, line 5)"), "{text}");
    assert!(!text.contains("not numbers") && Path::new(&file).exists(), "{text}");
    // Should all fail, all else is still there.
    let none = folder.file("none.ab", FAILING.replace("<= 1.0", "> 1e9"));
    let found = output(&["sample", &none, "--chains", "2", "--warmup", "20", "--draws", "10"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(
        found.status.success() && text.contains("failed for 20 of 20 draws") && text.contains("gradients in"),
        "{text}"
    );
}

const NORMAL: &str = "nuts/models/standard_normal.ab";

#[test]
fn the_sampler_that_ships_is_not_that_of_the_current_folder() {
    let folder = Folder::new("shadow");
    std::fs::create_dir(folder.0.join("std")).unwrap();
    for path in ["nuts.ab", "std/nuts.ab", "chain.ab"] {
        folder.file(path, "pub fn sample(x: real) -> real { x }");
    }
    let model = folder.file("model.ab", NOISY);
    let few = ["sample", &model, "--chains", "2", "--warmup", "20", "--draws", "5"];
    let text = |output: std::process::Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().take(4).collect::<Vec<_>>().join("\n")
    };
    let elsewhere = text(output(&few));
    assert_eq!(text(autobatch(&few).current_dir(&folder.0).output().unwrap()), elsewhere);
    let named = [&few[..], &["--sampler", "std/nuts.ab"]].concat();
    assert_eq!(text(autobatch(&named).current_dir(&folder.0).output().unwrap()), elsewhere);
    // The sampler of the user's own, who builds on the one that ships, with the form that samplers have always had.
    let own = folder.file(
        "own.ab",
        "use \"std/nuts.ab\" as nuts;\n\
         pub fn sample[d](density: fn(real[d]) -> (real, real[d]), origin: real[d], shared init_radius: real, \
         shared num_warmup: int, shared num_draws: int) { \
         nuts::sample(density, origin, init_radius, num_warmup, num_draws); }",
    );
    assert_eq!(text(output(&[&few[..], &["--sampler", &own]].concat())), elsewhere);
    // What is asked for by its path is taken.
    let mine = error(&[&few[..], &["--sampler", &folder.0.join("nuts.ab").display().to_string()]].concat());
    assert!(mine.contains("sample"), "{mine}");
}

fn tuned(folder: &Folder, sampler: Option<&str>, tuning: Tuning) -> Result<Sampling, Error> {
    let plan = Plan { sampler: sampler.map(Path::new), warmup: 200, draws: 50, tuning, ..plan() };
    let text = "pub fn log_density(q: real[5]) -> real { -0.5 * dot(q, q) }";
    sampling(folder, text, plan)
}

#[test]
fn the_target_of_adaptation_and_the_tree_depth_can_be_set() {
    let folder = Folder::new("tuned");
    for sampler in [None, Some("std/slice_nuts.ab"), Some("std/hmc.ab"), Some("nuts/nuts.ab")] {
        let adapted = |target_accept| {
            let tuning = Tuning { target_accept, ..Tuning::default() };
            let draws = run(&tuned(&folder, sampler, tuning).expect("it can be tuned"), &Options::default());
            (diagnostics::mean(&[&draws.adapted]), draws)
        };
        let (low, usual, high) = (adapted(Some(0.6)), adapted(None), adapted(Some(0.95)));
        assert!(low.0 > usual.0 && usual.0 > high.0, "{sampler:?}: {} {} {}", low.0, usual.0, high.0);
        assert_eq!(usual.1.tuning.target_accept, Some(0.8));
        let explicit = adapted(Some(0.8)).1;
        assert_eq!(usual.1.parameters, explicit.parameters, "{sampler:?}");
    }
    for sampler in [None, Some("std/slice_nuts.ab")] {
        let tuning = Tuning { max_treedepth: Some(2), ..Tuning::default() };
        let draws = run(&tuned(&folder, sampler, tuning).expect("it can be tuned"), &Options::default());
        assert_eq!(draws.max_treedepth, Some(2));
        assert_eq!(draws.statistics["treedepth"].as_int().expect("ints").iter().max(), Some(&2));
    }
}

#[test]
fn what_tunes_nothing_is_refused() {
    let folder = Folder::new("not-tuned");
    let refused = |sampler, tuning| tuned(&folder, sampler, tuning).expect_err("it means nothing").to_string();
    let of_depth = Tuning { max_treedepth: Some(5), ..Tuning::default() };
    let said = refused(Some("std/hmc.ab"), of_depth);
    assert!(
        said.contains("`max_treedepth` means nothing to the sampler std/hmc.ab: what can be tuned is `target_accept`")
    );
    let plain = folder.file(
        "plain.ab",
        "pub fn sample[d](density: fn(real[d]) -> (real, real[d]), origin: real[d], shared init_radius: real, \
         shared num_warmup: int, shared num_draws: int) { for i in 0..num_draws { emit draw(q: origin); } }",
    );
    assert!(refused(Some(&plain), of_depth).contains("it has nothing that can be tuned"));
    for target in [0.0, 1.0, -1.0, f64::NAN] {
        let said = refused(None, Tuning { target_accept: Some(target), ..Tuning::default() });
        assert!(said.contains("must lie between 0 and 1"), "{said}");
    }
    for depth in [0, -1, 31] {
        let said = refused(None, Tuning { max_treedepth: Some(depth), ..Tuning::default() });
        assert!(said.contains("a number from 1 to 30"), "{said}");
    }
    for radius in [-1.0, f64::INFINITY, f64::NAN] {
        let said = refused(None, Tuning { init_radius: Some(radius), ..Tuning::default() });
        assert!(said.contains("a number from 0 on"), "{said}");
    }
    let model = folder.file("model.ab", NOISY);
    let said = error(&["sample", &model, "--stepsize", "0.5", "--delta", "0.9"]);
    assert!(said.contains("the step size is given and stays"), "{said}");
}

#[test]
fn advice_names_options_that_there_are() {
    let folder = Folder::new("advice");
    let model = folder.file("model.ab", "pub fn log_density(q: real[3]) -> real { -0.5 * dot(q, q) }");
    let few = ["sample", &model, "--chains", "2", "--warmup", "100", "--draws", "30"];
    let said = |more: &[&str]| String::from_utf8_lossy(&output(&[&few[..], more].concat()).stdout).into_owned();
    let text = said(&["--max-depth", "1"]);
    assert!(
        text.contains("60 of 60 transitions reached the largest tree depth, 1") && text.contains("--max-treedepth")
    );
    assert!(!said(&[]).contains("tree depth"));
    // A wall, beyond which trajectories diverge.
    let wall =
        folder.file("wall.ab", "pub fn log_density(q: real[1]) -> real { if q[0] > 0.0 { -q[0] } else { log(0.0) } }");
    let at = folder.file("one.json", "[[1.0]]");
    let few = ["sample", &wall, "--chains", "4", "--warmup", "100", "--draws", "50", "--starts", &at];
    let text = String::from_utf8_lossy(&output(&few).stdout).into_owned();
    assert!(text.contains("transitions were divergent") && text.contains("raise --target-accept (0.8 here)"), "{text}");
}

#[test]
fn chains_start_within_the_radius_and_may_share_a_start() {
    let folder = Folder::new("starts");
    let text = "pub fn log_density(q: real[2]) -> real { -0.5 * dot(q, q) }";
    let starts = |rows: usize| Array::real([rows, 2], (0..2 * rows).map(|i| i as f64).collect());
    let first = |rows: Option<usize>, init_radius: Option<f64>| {
        let tuning = Tuning { init_radius, ..Tuning::default() };
        // Steps of next to no length leave everything where it is.
        let plan =
            Plan { chains: 6, warmup: 0, draws: 4, stepsize: Some(1e-12), starts: rows.map(starts), tuning, ..plan() };
        let draws = run(&sampling(&folder, text, plan).expect("the model is right"), &Options::default());
        let first: Vec<f64> = reals(&draws, "q").chunks(8).flat_map(|chain| &chain[..2]).copied().collect();
        (first, draws.superchains)
    };
    let far = |values: &[f64], from: &dyn Fn(usize) -> f64| {
        values.iter().enumerate().map(|(i, x)| (x - from(i)).abs()).fold(0.0, f64::max)
    };
    let zero = |_: usize| 0.0;
    assert!(far(&first(None, Some(0.0)).0, &zero) < 1e-6);
    let (within, none) = first(None, Some(0.5));
    assert!((0.1..0.5 + 1e-6).contains(&far(&within, &zero)) && none.is_none());
    assert!(far(&first(None, None).0, &zero) > 0.5);
    let (shared, superchains) = first(Some(3), None);
    assert!(far(&shared, &|i| (i / 4 * 2 + i % 2) as f64) < 1e-6 && superchains == Some(3), "{shared:?}");
    let (around, superchains) = first(Some(3), Some(0.1));
    assert!((0.01..0.1 + 1e-6).contains(&far(&around, &|i| (i / 4 * 2 + i % 2) as f64)) && superchains.is_none());
    assert_eq!(first(Some(1), None).1, None);
    assert_eq!(first(Some(6), None).1, None);
}

#[test]
fn a_start_without_a_density_is_told_at_once() {
    let folder = Folder::new("start");
    let model = folder.file("model.ab", "pub fn log_density(q: real[1]) -> real { log(q[0]) - q[0] }");
    let starts = folder.file("starts.json", "[[1.0], [-1.0], [2.0]]");
    let run = ["sample", &model, "--chains", "3", "--warmup", "20", "--draws", "5", "--starts", &starts];
    let found = output(&run);
    let said = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(1), "{said}");
    let wanted = "chain 1: assert failed: the log density or its gradient is not finite at the starting point";
    assert!(said.contains(wanted) && !said.contains("tries"), "{said}");
}

#[test]
fn without_draws_warmup_is_told() {
    let folder = Folder::new("no-draws");
    let model = folder.file("model.ab", NOISY);
    for more in [&[][..], &["--stepsize", "0.5"]] {
        let few = ["sample", &model, "--chains", "3", "--warmup", "30", "--draws", "0"];
        let found = output(&[&few[..], more].concat());
        let text = String::from_utf8_lossy(&found.stdout);
        assert!(found.status.success() && text.starts_with("3 chains, 0 draws"), "{text}");
        assert!(!text.contains("\n0 gradients") && text.contains("step size after warmup: median "), "{text}");
        assert!(!text.contains("warning") && !text.contains("NaN"), "{text}");
    }
}

#[test]
fn draws_that_are_infinite_are_named() {
    let folder = Folder::new("infinite");
    let text = NOISY.replace("u: random_uniform()", "u: if q[0] > 1.0 { -log(0.0) } else { 0.0 }");
    let model = folder.file("model.ab", text);
    let found = output(&["sample", &model, "--chains", "2", "--warmup", "50", "--draws", "50"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(text.contains("warning: draws that are infinite: u\n"), "{text}");
}

#[test]
fn the_summary_shows_what_is_asked_for() {
    let data = ["--data", "nuts/data/eight_schools.json", "--chains", "2", "--warmup", "30", "--draws", "10"];
    let run = [&["sample", "nuts/models/eight_schools.ab"][..], &data, &["--summary", "mu,theta[3],nope"]].concat();
    let found = output(&run);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let rows: Vec<&str> = text.lines().skip(1).take(3).map(|l| l.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(rows, ["theta[3]", "mu", ""], "{text}");
    assert!(String::from_utf8_lossy(&found.stderr).contains("there is no parameter `nope`"));
}

#[test]
fn numbers_below_zero_are_refused_in_words() {
    for option in ["--draws", "--warmup", "--chains"] {
        let found = output(&["sample", NORMAL, option, "-5"]);
        let said = String::from_utf8_lossy(&found.stderr);
        assert_eq!(found.status.code(), Some(2));
        assert!(said.contains("expected a whole number from 0 on") && said.contains("'-5'"), "{said}");
    }
}

/// A chain among others whose step size has collapsed, or that stays where it is, is named with what it does.
#[test]
fn stuck_chains_are_named() {
    let folder = Folder::new("stuck");
    // Beyond 50 the density is a narrow well, which a chain that starts in it never leaves.
    let text = "pub fn log_density(q: real[1]) -> real {
        if q[0] < 50.0 { -0.5 * q[0] * q[0] } else { 1e4 - 5e7 * (q[0] - 60.0) * (q[0] - 60.0) }
    }";
    let model = folder.file("model.ab", text);
    let starts = folder.file("starts.json", "[[0.1], [60.0001], [-0.2], [0.3]]");
    let run = ["sample", &model, "--chains", "4", "--warmup", "200", "--draws", "50", "--starts", &starts];
    let text = String::from_utf8_lossy(&output(&run).stdout).into_owned();
    assert!(text.contains("warning: 1 of 4 chains is stuck, and counted in the table: chain 1 (step size "), "{text}");
    assert!(text.contains("log density "), "{text}");
    let fine = ["sample", &model, "--chains", "4", "--warmup", "200", "--draws", "50"];
    assert!(!String::from_utf8_lossy(&output(&fine).stdout).contains("stuck"));
}

/// Autoregressions of numbers that look random and are not, in chains.
fn noise(chains: usize, draws: usize) -> Array {
    let mut state: u64 = 1;
    let mut x = 0.0;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x = 0.5 * x + (state >> 33) as f64 / f64::from(1_u32 << 31);
        x
    };
    Array::real([chains, draws], (0..chains * draws).map(|_| step()).collect())
}

#[test]
fn many_short_chains_that_agree_get_no_warning() {
    let streams = |chains, draws| [("energy".to_owned(), noise(chains, draws))].into_iter().collect();
    let of = |x: Array| {
        let (chains, draws) = (x.shape[0], x.shape[1]);
        let parameters = [("x".to_owned(), x)].into_iter().collect();
        Summary::of(&parameters, SamplerStatistics::of(&streams(chains, draws), None, 1, 1.0))
    };
    let short = of(noise(256, 60));
    assert!(short.rows[0].rhat >= 1.01, "{short}");
    assert!(
        short.warnings.is_empty() && short.notes[0].contains("trust mcse and the effective sample sizes"),
        "{short}"
    );
    // The chains are moved apart by a tenth of a standard deviation from each to the next.
    let mut apart = noise(256, 60);
    if let autobatch::types::ArrayData::Real(values) = &mut apart.data {
        values.iter_mut().enumerate().for_each(|(i, x)| *x += 0.03 * (i / 60) as f64);
    }
    let apart = of(apart);
    assert!(apart.warnings.iter().any(|w| w.contains("the chains do not agree yet")), "{apart}");
    // Of two chains of 20 draws nothing is said of E-BFMI.
    assert!(SamplerStatistics::of(&streams(2, 20), None, 1, 1.0).e_bfmi.is_empty());
    assert_eq!(SamplerStatistics::of(&streams(50, 20), None, 1, 1.0).e_bfmi.len(), 1);
    assert_eq!(SamplerStatistics::of(&streams(3, 100), None, 1, 1.0).e_bfmi.len(), 3);
}
