//! What is around a sampler: streams of draws, draws that fail, what can be tuned, starts, and runs that are stopped.

use std::collections::HashSet;
use std::path::Path;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::protocol::STREAMS;
use autobatch::mcmc::sampling::{Draws, Job, SamplerSettings, Sampling};
use autobatch::program::{Engine, Error, Inputs, Options};
use autobatch::report::{SamplerStatistics, Summary};
use autobatch::types::Array;

use crate::project::cli::{Folder, autobatch, error, output};
use crate::tools::effort;

/// A standard normal with random draws in its parameters.
const NOISY: &str = "
struct P { x: real, u: real, z: real }
pub fn log_density(q: real[1]) -> real { -0.5 * dot(q, q) }
pub fn parameters(q: real[1]) -> P { P { x: q[0], u: random_uniform(), z: random_normal() } }
";

/// A plan of no model yet.
fn plan() -> Job<'static> {
    Job::new(Path::new(""))
}

fn sampling(folder: &Folder, text: &str, plan: Job<'_>) -> Result<Sampling, Error> {
    let model = folder.file("model.ab", text);
    Sampling::new(&Job { model: Path::new(&model).into(), ..plan }, |_| Ok(Inputs::new()))
}

fn run(sampling: &Sampling, options: &Options) -> Draws {
    let draws = sampling.run(options, &|| ()).expect("it runs");
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    draws
}

fn noisy(folder: &Folder, chains: usize, draws: usize, options: &Options) -> Draws {
    let plan = Job { chains, warmup: 0, draws, stepsize: Some(1.0), ..plan() };
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
    let otherwise = options.clone().threads(1).shard_lanes(3);
    let otherwise = noisy(&folder, 7, 20, &otherwise);
    let scalar = noisy(&folder, 7, 20, &options.clone().engine(Engine::Scalar));
    // The chains from the second on as a batch of their own: they have their numbers.
    let later = noisy(&folder, 5, 20, &options.first_lane(2));
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
    let plan = Job { chains: 3, warmup: 20, draws: 50, ..plan() };
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
        // No int is NaN, and no bool.
        is(reals(&draws, "n")[i].is_nan());
        is(reals(&draws, "yes")[i].is_nan());
    }
    let model = folder.file("model.ab", FAILING);
    let file = folder.0.join("draws.json").display().to_string();
    let run = ["sample", &model, "--chains", "3", "--warmup", "20", "--draws", "50", "--output", &file];
    let found = output(&run);
    let text = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
    let wanted = format!(
        "warning: x, n, yes, m failed for {} of 150 draws, for which they are NaN and left out of the table; the first is draw \
         {} of chain {}: ",
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

/// A sampler of one's own: a random walk, which looks at no gradient.
const RANDOM_WALK: &str = r#"
use "std/hamiltonian.ab";

pub struct Tuning {
    target_accept: real,
    // How far a step goes, in units of the step size.
    stride: real,
    // Whether steps are made at all.
    moving: bool,
}
pub fn tuning() -> Tuning { Tuning { target_accept: 0.44, stride: 1.5, moving: true } }
pub fn check_tuning(tuning: Tuning) { assert(tuning.stride > 0.0, "stride must be greater than 0, not {tuning.stride}"); }
pub fn transition[d](
    density: fn(real[d]) -> (real, real[d]), shared tuning: Tuning, inv_metric: real[d], stepsize: real, point: Point[d],
) -> Transition[d] {
    let q = point.q + tuning.stride * stepsize * sqrt(inv_metric) * [normal_rng(0.0, 1.0) for i in 0..d];
    let (lp, grad) = density(q);
    let accept = if lp >= point.lp { 1.0 } else { exp(lp - point.lp) };
    let there = Point { q, lp, grad };
    let taken = tuning.moving && uniform_rng(0.0, 1.0) < accept;
    Transition { point: if taken { there } else { point }, accept_stat: accept, treedepth: 0, n_leapfrog: 1,
                 divergent: false, energy: -lp }
}
"#;

#[test]
fn the_sampler_that_ships_is_not_that_of_the_current_folder() {
    let folder = Folder::new("shadow");
    std::fs::create_dir(folder.0.join("std")).unwrap();
    for path in ["nuts.ab", "std/nuts.ab", "chain.ab", "std/chain.ab", "hamiltonian.ab", "adapt.ab", "protocol.ab"] {
        folder.file(path, "pub fn transition(x: real) -> real { x }");
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
    // The sampler of the user's own, who builds on the one that ships.
    let own = folder.file(
        "own.ab",
        "use \"std/nuts.ab\" as nuts;\nuse \"std/hamiltonian.ab\";\n\
         pub fn transition[d](density: fn(real[d]) -> (real, real[d]), inv_metric: real[d], stepsize: real, \
         point: Point[d]) -> Transition[d] { \
         let tuning = nuts::Tuning { max_treedepth: 10, leaf_steps: 1, divergence_threshold: 1000.0 }; \
         nuts::transition(density, tuning, inv_metric, stepsize, point) }",
    );
    assert_eq!(text(output(&[&few[..], &["--sampler", &own]].concat())), elsewhere);
    // What is asked for by its path is taken.
    let mine = error(&[&few[..], &["--sampler", &folder.0.join("nuts.ab").display().to_string()]].concat());
    assert!(mine.contains("do not fit together"), "{mine}");
    // Copies of all files bring their own chain.
    let copies = Folder::new("copies");
    for file in ["nuts.ab", "hamiltonian.ab", "adapt.ab", "protocol.ab", "chain.ab"] {
        let text = std::fs::read_to_string(format!("nuts/{file}")).unwrap();
        copies.file(file, text.replace("target_accept: 0.8", "target_accept: 0.7"));
    }
    let copy = copies.0.join("nuts.ab").display().to_string();
    let said = String::from_utf8(output(&["sample", "--list-settings", "--sampler", &copy]).stdout).unwrap();
    assert!(said.contains("target_accept         0.7"), "{said}");
    assert_ne!(text(output(&[&few[..], &["--sampler", &copy]].concat())), elsewhere);
}

fn tuned(folder: &Folder, sampler: Option<&str>, settings: SamplerSettings) -> Result<Sampling, Error> {
    let job = Job { sampler: sampler.map(Path::new), warmup: 200, draws: 50, settings, ..plan() };
    let text = "pub fn log_density(q: real[5]) -> real { -0.5 * dot(q, q) }";
    sampling(folder, text, job)
}

fn ran(folder: &Folder, sampler: Option<&str>, settings: SamplerSettings) -> Draws {
    run(&tuned(folder, sampler, settings).expect("it can be set"), &Options::default())
}

#[test]
fn what_chains_emit_is_what_is_read() {
    let folder = Folder::new("protocol");
    for stepsize in [None, Some(0.1)] {
        let text = "pub fn log_density(q: real[5]) -> real { -0.5 * dot(q, q) }";
        let sampling = sampling(&folder, text, Job { stepsize, ..plan() }).expect("the model is right");
        let bound = sampling.bound(&Options::default()).expect("it compiles");
        let emitted: Vec<(String, Vec<String>)> = (bound.compiled().units.globals.streams.values())
            .map(|s| {
                let fields = s.fields.iter().map(|(name, ty)| format!("{name}: {} {}", ty.dtype, ty.shape.len()));
                (s.name.clone(), fields.collect())
            })
            .collect();
        let read = STREAMS.map(|records| {
            let fields = records.fields.iter().map(|(name, dtype, rank)| format!("{name}: {dtype} {rank}"));
            (records.name.to_owned(), fields.collect::<Vec<_>>())
        });
        let sorted = |mut all: Vec<(String, Vec<String>)>| {
            all.sort();
            all
        };
        assert_eq!(sorted(emitted), sorted(read.to_vec()));
    }
}

#[test]
fn the_target_of_adaptation_and_the_tree_depth_can_be_set() {
    let folder = Folder::new("tuned");
    for sampler in [None, Some("std/slice_nuts.ab"), Some("std/hmc.ab"), Some("nuts/nuts.ab")] {
        let adapted = |settings| {
            let draws = ran(&folder, sampler, settings);
            (diagnostics::mean(&[&draws.adapted]), draws)
        };
        let target = |rate: f64| SamplerSettings::new().with("target_accept", rate);
        let (low, usual, high) = (adapted(target(0.6)), adapted(SamplerSettings::new()), adapted(target(0.95)));
        assert!(low.0 > usual.0 && usual.0 > high.0, "{sampler:?}: {} {} {}", low.0, usual.0, high.0);
        assert_eq!(usual.1.target_accept, Some(0.8));
        assert_eq!(usual.1.parameters, adapted(target(0.8)).1.parameters, "{sampler:?}");
    }
    for sampler in [None, Some("std/slice_nuts.ab")] {
        let draws = ran(&folder, sampler, SamplerSettings::new().with("max_treedepth", 2));
        assert_eq!(draws.max_treedepth, Some(2));
        assert_eq!(draws.statistics["treedepth"].as_int().expect("ints").iter().max(), Some(&2));
    }
    // Three leapfrog steps a leaf are counted.
    let draws = ran(&folder, None, SamplerSettings::new().with("leaf_steps", 3));
    assert!(draws.statistics["n_leapfrog"].as_int().expect("ints").iter().all(|n| n % 3 == 0));
    let draws = ran(&folder, Some("std/hmc.ab"), SamplerSettings::new().with("integration_time", 1e-9));
    assert!(draws.statistics["n_leapfrog"].as_int().expect("ints").iter().all(|n| *n == 1));
}

#[test]
fn step_sizes_jitter_where_they_are_told_to() {
    let folder = Folder::new("jitter");
    for sampler in [None, Some("std/hmc.ab")] {
        let steps = |jitter: f64| {
            let draws = ran(&folder, sampler, SamplerSettings::new().with("stepsize_jitter", jitter));
            let steps = draws.statistics["stepsize"].as_real().expect("reals").to_vec();
            let nominal = draws.adapted.clone();
            (draws.parameters, steps.chunks(50).zip(nominal).map(|(s, n)| s.iter().map(|s| s / n).collect()).collect())
        };
        let (plain, of_none): (_, Vec<Vec<f64>>) = steps(0.0);
        assert_eq!(plain, ran(&folder, sampler, SamplerSettings::new()).parameters);
        assert!(of_none.iter().flatten().all(|ratio| *ratio == 1.0));
        let (_, of_half) = steps(0.5);
        let all: Vec<f64> = of_half.concat();
        // 200 uniform numbers in (0.5, 1.5): the mean within five of its standard errors.
        assert!(all.iter().all(|ratio| (0.5..=1.5).contains(ratio)), "{all:?}");
        let mean = diagnostics::mean(std::slice::from_ref(&all));
        assert!((mean - 1.0).abs() < 5.0 / (12.0 * all.len() as f64).sqrt(), "{mean}");
        assert!(all.iter().any(|ratio| *ratio < 0.6) && all.iter().any(|ratio| *ratio > 1.4));
    }
}

#[test]
fn a_sampler_of_ones_own_says_what_can_be_set() {
    let folder = Folder::new("own-settings");
    let walk = folder.file("walk.ab", RANDOM_WALK);
    let own = Some(walk.as_str());
    let draws = ran(&folder, own, SamplerSettings::new());
    assert_eq!((draws.target_accept, draws.max_treedepth), (Some(0.44), None));
    let steps = |stride: f64| {
        let draws = ran(&folder, own, SamplerSettings::new().with("stride", stride).with("target_accept", 0.3));
        assert_eq!(draws.target_accept, Some(0.3));
        diagnostics::mean(&[&draws.adapted])
    };
    assert!(steps(0.1) > 5.0 * steps(10.0));
    let still = ran(&folder, own, SamplerSettings::new().with("moving", false));
    let q = reals(&still, "q");
    assert!(q.chunks(5).take(50).all(|state| state == &q[..5]));
    let listed = output(&["sample", "--list-settings", "--sampler", &walk]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    for line in [
        "  target_accept     0.44   The mean acceptance statistic that warmup tunes the step size to.\n",
        "  stride            1.5    How far a step goes, in units of the step size.\n",
        "  moving            true   Whether steps are made at all.\n",
    ] {
        assert!(listed.contains(line), "{listed}");
    }
    let refused = |settings: SamplerSettings| tuned(&folder, own, settings).expect_err("it makes no sense").to_string();
    assert_eq!(refused(SamplerSettings::new().with("stride", 0.0)), "stride must be greater than 0, not 0");
    assert_eq!(refused(SamplerSettings::new().with("moving", 1)), "moving must be true or false, not 1");
}

#[test]
fn what_sets_nothing_is_refused() {
    let folder = Folder::new("not-tuned");
    let refused = |sampler, settings| tuned(&folder, sampler, settings).expect_err("it means nothing").to_string();
    let said = refused(Some("std/hmc.ab"), SamplerSettings::new().with("max_treedepth", 5));
    assert_eq!(
        said,
        "`max_treedepth` means nothing to the sampler std/hmc.ab: what can be set is, by default, target_accept = 0.8, \
         stepsize_jitter = 0.0, init_radius = 2.0, initial_stepsize = 1.0, gamma = 0.05, kappa = 0.75, t0 = 10.0, \
         init_buffer = 75, term_buffer = 50, window = 25, thin = 1, save_warmup = false, pooled_warmup = false, checkpoint_every = 0, \
         integration_time = 3.141592653589793, max_steps = 1024, divergence_threshold = 1000.0"
    );
    let model = folder.file("model.ab", NOISY);
    for (setting, why) in [
        ("target_accept=0", "target_accept must lie between 0 and 1, both excluded, not 0"),
        ("target_accept=1.0", "target_accept must lie between 0 and 1, both excluded, not 1"),
        ("target_accept=-1", "target_accept must lie between 0 and 1, both excluded, not -1"),
        ("target_accept=nan", "target_accept must be a finite number, not nan"),
        ("target_accept=-inf", "target_accept must be a finite number, not -inf"),
        ("target_accept=much", "target_accept must be a number, not `much`"),
        ("target_accept=true", "target_accept must be a number, not true"),
        ("target_accept=", "target_accept must be a number, not ``"),
        ("target_accept", "`target_accept` is no setting: write NAME=VALUE, such as target_accept=0.95"),
        ("=0.5", "`=0.5` is no setting"),
        ("max_treedepth=-9223372036854775808", "must be a number from 1 to 30, not -9223372036854775808"),
        ("max_treedepth=0", "max_treedepth must be a number from 1 to 30, not 0"),
        ("max_treedepth=-3", "max_treedepth must be a number from 1 to 30, not -3"),
        ("max_treedepth=31", "max_treedepth must be a number from 1 to 30, not 31"),
        ("max_treedepth=2.5", "max_treedepth must be a whole number, not 2.5"),
        ("max_treedepth=99999999999999999999", "max_treedepth must be a whole number, not 1e20"),
        ("leaf_steps=0", "leaf_steps must be a number from 1 to 1000, not 0"),
        ("divergence_threshold=0", "divergence_threshold must be greater than 0, not 0"),
        ("stepsize_jitter=1.01", "stepsize_jitter must be a number from 0 to 1, not 1.01"),
        ("init_radius=-1", "init_radius must be a number from 0 on, not -1"),
        ("init_radius=inf", "init_radius must be a finite number, not inf"),
        (
            "max_tree_depth=5",
            "save_warmup = false, pooled_warmup = false, checkpoint_every = 0, max_treedepth = 10, leaf_steps = 1, divergence_threshold = 1000.0",
        ),
    ] {
        let said = error(&["sample", &model, "--set", setting]);
        assert!(said.contains(why), "{setting}: {said}");
    }
    for (flags, why) in [
        (&["--delta", "-0.5"][..], "target_accept must lie between 0 and 1"),
        (&["--max-depth", "x"], "max_treedepth must be a number, not `x`"),
        (&["--delta", "0.9", "--set", "target_accept=0.95"], "`target_accept` is set twice"),
        (&["--stepsize", "0.5", "--delta", "0.9"], "the step size is given and stays"),
    ] {
        let said = error(&[&["sample", &model][..], flags].concat());
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_sampler_without_a_tuning_has_the_settings_of_its_chain() {
    let folder = Folder::new("plain");
    let plain = folder.file(
        "plain.ab",
        "use \"std/hamiltonian.ab\";\n\
         pub fn transition[d](density: fn(real[d]) -> (real, real[d]), inv_metric: real[d], stepsize: real, \
         point: Point[d]) -> Transition[d] { Transition { point, accept_stat: 0.5, treedepth: 0, n_leapfrog: 0, \
         divergent: false, energy: 0.0 } }",
    );
    let draws = ran(&folder, Some(&plain), SamplerSettings::new().with("init_radius", 0));
    assert!(reals(&draws, "q").iter().all(|x| *x == 0.0));
    let said =
        tuned(&folder, Some(&plain), SamplerSettings::new().with("depth", 1)).expect_err("there is none").to_string();
    assert!(
        said.contains("by default, target_accept = 0.8")
            && said.ends_with("save_warmup = false, pooled_warmup = false, checkpoint_every = 0"),
        "{said}"
    );
}

/// Data may have any names, those of the program that joins model and sampler included.
#[test]
fn data_are_called_what_they_like() {
    let folder = Folder::new("names");
    let names = ["position", "density", "stepsize", "num_draws", "start", "origin", "tuning", "point", "eps", "i"];
    let params: Vec<String> = names.iter().map(|name| format!("shared {name}: real")).collect();
    let text = format!(
        "pub fn log_density[num_warmup](q: real[num_warmup], shared x: real[num_warmup], {}) -> real {{\n    \
         -0.5 * dot(q - x, q - x) * ({})\n}}",
        params.join(", "),
        names.join(" * ")
    );
    let model = folder.file("model.ab", &text);
    for stepsize in [None, Some(0.5)] {
        let job = Job { chains: 3, warmup: 50, draws: 50, stepsize, ..Job::new(Path::new(&model)) };
        let data = |_: &autobatch::program::Function<'_>| {
            let data = Inputs::new().shared("x", vec![1e3, -1e3]);
            Ok(names.iter().fold(data, |data, name| data.shared(*name, 1.0)))
        };
        let sampling = Sampling::new(&job, data).expect("the model is right");
        let draws = run(&sampling, &Options::default());
        if stepsize.is_none() {
            let mean = diagnostics::mean(&[reals(&draws, "q").iter().step_by(2).copied().collect::<Vec<_>>()]);
            assert!((mean - 1e3).abs() < 2.0, "{mean}");
        }
    }
}

/// The words of a command as a shell takes it; only quotes stand in it that its words need.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match (c, quoted) {
            ('\'', _) => quoted = !quoted,
            (' ', false) => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(c),
        }
    }
    words
}

/// Runs a command, and every command that its warnings advise, once. Gives what the first said, and the advised ones.
fn followed(arguments: &[&str]) -> (String, Vec<String>) {
    let text = String::from_utf8(output(arguments).stdout).unwrap();
    let advised: Vec<&str> = (text.lines().zip(text.lines().skip(1)))
        .filter(|(line, _)| line.starts_with("warning: "))
        .filter_map(|(_, next)| next.strip_prefix("    "))
        .collect();
    for command in &advised {
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(words[0].ends_with("autobatch"), "{command}");
        let made = output(&words[1..]);
        assert!(made.status.success(), "{command}: {}", String::from_utf8_lossy(&made.stderr));
    }
    let advised = advised.iter().map(|command| command.split_once(' ').expect("arguments").1.to_owned()).collect();
    (text, advised)
}

/// A density that ends, and where chains start in it.
fn wall(folder: &Folder) -> (String, String) {
    let text = "pub fn log_density(q: real[1]) -> real { if q[0] > 0.0 { -q[0] } else { log(0.0) } }";
    (folder.file("wall.ab", text), folder.file("one.json", "[[1.0]]"))
}

#[test]
fn every_advice_comes_with_a_command_that_follows_it() {
    let folder = Folder::new("advice");
    let model = folder.file("a model.ab", "pub fn log_density(q: real[3]) -> real { -0.5 * dot(q, q) }");
    let few = ["sample", &model, "--chains", "2", "--warmup", "100", "--draws", "30"];
    let with = |more: &[&str]| followed(&[&few[..], more].concat());
    let (text, advised) = with(&["--set", "max_treedepth=1"]);
    assert!(text.contains("60 of 60 transitions reached the largest tree depth, 1"), "{text}");
    let deeper = format!("sample '{model}' --chains 2 --warmup 100 --draws 30 --set max_treedepth=3");
    assert!(advised.contains(&deeper), "{text}");
    let (text, advised) = with(&["--max-depth", "1"]);
    assert!(advised.contains(&deeper), "{text}");
    // 60 draws are too few: as many more are advised as should do.
    assert!(text.contains("the effective sample size is below 200"), "{text}");
    assert!(
        advised
            .iter()
            .any(|a| a.starts_with(&format!("sample '{model}' --chains 2 --warmup 100 --max-depth 1 --draws")))
    );
    assert!(!with(&[]).0.contains("tree depth"));
    // A wall, beyond which trajectories diverge.
    let (wall, at) = wall(&folder);
    let few = ["sample", &wall, "--chains", "4", "--warmup", "100", "--draws", "50", "--starts", &at];
    for (more, next) in [(&[][..], "0.9"), (&["--delta=0.9"], "0.95"), (&["--set", "target_accept=0.95"], "0.99")] {
        let (text, advised) = followed(&[&few[..], more].concat());
        assert!(text.contains("transitions were divergent") && text.contains("or raise target_accept (0."), "{text}");
        assert!(advised.contains(&format!("{} --set target_accept={next}", few.join(" "))), "{text}");
    }
    let (text, advised) = followed(&[&few[..], &["--stepsize", "0.5"]].concat());
    assert!(text.contains("or lower the step size (0.5 here)"), "{text}");
    assert!(advised.contains(&format!("{} --stepsize 0.25", few.join(" "))), "{text}");
    // Chains that start far apart and do not meet.
    let apart = folder.file("apart.json", "[[-5.0, 0, 0], [5.0, 0, 0]]");
    let (text, advised) = followed(&[
        "sample",
        &model,
        "--chains",
        "2",
        "--warmup",
        "0",
        "--draws",
        "20",
        "--stepsize",
        "1e-3",
        "--max-depth",
        "3",
        "--starts",
        &apart,
    ]);
    assert!(text.contains("the chains do not agree yet; run longer"), "{text}");
    let longer =
        format!("sample '{model}' --chains 2 --warmup 0 --stepsize 1e-3 --max-depth 3 --starts {apart} --draws 40");
    assert!(advised.contains(&longer), "{text}");
}

#[test]
fn what_no_setting_mends_is_diagnosed() {
    let folder = Folder::new("diagnosed");
    // Where no setting helps, the command shows what to write otherwise.
    let diagnosed = |arguments: &[&str], said: &str| {
        let (text, advised) = followed(arguments);
        assert!(text.contains(said), "{text}");
        let shown = format!("{} --diagnose", arguments.join(" "));
        assert!(advised.contains(&shown), "{text}");
        let text = String::from_utf8(output(&[arguments, &["--diagnose"]].concat()).stdout).unwrap();
        let table = text.split("What goes with trouble: ").nth(1).expect("the table is shown");
        table.lines().nth(2).expect("a first row").to_owned()
    };
    let (wall, at) = wall(&folder);
    let with_wall = ["sample", &wall, "--chains", "4", "--warmup", "100", "--draws", "50", "--starts", &at];
    let with_wall = [&with_wall[..], &["--delta", "0.999", "--seed", "3"]].concat();
    let worst = diagnosed(&with_wall, "were divergent: the draws may miss part of the posterior; reparameterise what");
    assert!(worst.starts_with("q[1] "), "{worst}");
    if effort::all() {
        let deep = "trees deeper than 15 seldom help; reparameterise what goes with them, as this shows";
        let flat = folder.file("flat.ab", "pub fn log_density(q: real[3]) -> real { -0.5 * dot(q, q) }");
        let steps = ["--warmup", "0", "--draws", "2", "--stepsize", "1e-9"];
        let long = [&["sample", &flat, "--chains", "1", "--max-depth", "15"], &steps[..]].concat();
        diagnosed(&long, deep);
        let nearly = [&["sample", &flat, "--chains", "1", "--max-depth", "14"], &steps[..]].concat();
        let raised = String::from_utf8(output(&nearly).stdout).unwrap();
        assert!(raised.contains("--set max_treedepth=15\n"), "{raised}");
    }
    // Neal's funnel: the first parameter is the logarithm of the scale of the others.
    let funnel = folder.file(
        "funnel.ab",
        "pub fn log_density(q: real[10]) -> real {
            let (v, x) = (q[0], q[1..10]);
            -v * v / 18.0 - 4.5 * v - 0.5 * exp(-v) * dot(x, x)
        }",
    );
    let slow = ["sample", &funnel, "--chains", "4", "--warmup", "200", "--draws", "200", "--threads", "1"];
    let worst = diagnosed(&slow, "the momentum explores the energies slowly; reparameterise what goes with the energy");
    assert!(worst.starts_with("q[1] "), "{worst}");
}

#[test]
fn chains_start_within_the_radius_and_may_share_a_start() {
    let folder = Folder::new("starts");
    let text = "pub fn log_density(q: real[2]) -> real { -0.5 * dot(q, q) }";
    let starts = |rows: usize| Array::real([rows, 2], (0..2 * rows).map(|i| i as f64).collect());
    let first = |rows: Option<usize>, init_radius: Option<f64>| {
        let settings =
            init_radius.map_or(SamplerSettings::new(), |radius| SamplerSettings::new().with("init_radius", radius));
        // Steps of next to no length leave everything where it is.
        let plan =
            Job { chains: 6, warmup: 0, draws: 4, stepsize: Some(1e-12), starts: rows.map(starts), settings, ..plan() };
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
    assert_eq!(rows, ["mu", "theta[3]", ""], "{text}");
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
    assert!(!String::from_utf8_lossy(&output(&fine).stdout).contains(" stuck"));
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
    assert!(apart.warnings.iter().any(|w| w.message.contains("the chains do not agree yet")), "{apart}");
    // Of two chains of 20 draws nothing is said of E-BFMI.
    assert!(SamplerStatistics::of(&streams(2, 20), None, 1, 1.0).e_bfmi.is_empty());
    assert_eq!(SamplerStatistics::of(&streams(50, 20), None, 1, 1.0).e_bfmi.len(), 1);
    assert_eq!(SamplerStatistics::of(&streams(3, 100), None, 1, 1.0).e_bfmi.len(), 3);
}
