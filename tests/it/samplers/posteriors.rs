//! The samplers against what is known: moments of Gaussians, and the reference posteriors of posteriordb
//! (`tests/data/posterior_reference.json`: means, standard deviations and their Monte Carlo standard errors). Those that
//! take a minute run by `cargo test --test it posteriors -- --ignored`, as continuous integration does.

use std::path::Path;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::sampling::{Draws, Job, Sampling};
use autobatch::program::io::{ArrayType, NamedValues};
use autobatch::program::{Engine, Inputs, Options};
use autobatch::types::Array;
use serde_json::Value;

use crate::tools::data::shared_inputs;

/// A sampling run of a model that ships, with its data.
struct Run {
    /// A sampler of `nuts/`; `None` for the default.
    sampler: Option<&'static str>,
    model: &'static str,
    data: Option<&'static str>,
    chains: usize,
    warmup: usize,
    draws: usize,
}

impl Run {
    fn sample(&self, options: &Options) -> Draws {
        let model = format!("nuts/models/{}.ab", self.model);
        let sampler = self.sampler.map(|name| format!("nuts/{name}.ab"));
        let plan = Job {
            sampler: sampler.as_ref().map(Path::new),
            chains: self.chains,
            warmup: self.warmup,
            draws: self.draws,
            ..Job::new(Path::new(&model))
        };
        let sampling = Sampling::new(&plan, |density| {
            let Some(data) = self.data else { return Ok(Inputs::new()) };
            shared_inputs(density, &format!("nuts/data/{data}.json"))
        });
        let draws = sampling.expect("the model is right").run(options, &|| ()).expect("it runs");
        assert!(draws.traps.is_empty(), "{}: {:?}", self.model, draws.traps.first());
        draws
    }
}

fn options(engine: Engine, seed: u64) -> Options {
    Options::default().engine(engine).seed(seed)
}

/// The draws of one scalar by chain.
fn chains(array: &Array, element: usize) -> Vec<Vec<f64>> {
    let event: usize = array.shape[2..].iter().product();
    let values = array.as_real().expect("a real parameter");
    let value = |chain: usize, draw: usize| values[(chain * array.shape[1] + draw) * event + element];
    (0..array.shape[0]).map(|c| (0..array.shape[1]).map(|d| value(c, d)).collect()).collect()
}

/// Mean and mean square of every parameter lie within 4 combined standard errors of the reference.
fn agrees_with_reference(draws: &Draws, posterior: &str) {
    let text = std::fs::read_to_string("tests/data/posterior_reference.json").expect("the reference ships");
    let reference: Value = serde_json::from_str(&text).expect("it is JSON");
    let record = &reference["posteriors"][posterior];
    let names: Vec<&str> = record["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert!(!names.is_empty(), "{posterior} has parameters");
    let mut compared = 0;
    for (i, full) in names.iter().enumerate() {
        let (name, element) = match full.split_once('[') {
            Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().expect("an index") - 1),
            None => (*full, 0),
        };
        let Some(array) = draws.parameters.get(name) else { panic!("{posterior}: there is no {name}") };
        let ours = chains(array, element);
        let number = |key: &str| record[key][i].as_f64().unwrap_or_else(|| panic!("{posterior}: {key} of {full}"));
        let error = diagnostics::mcse_mean(&ours).hypot(number("mcse"));
        let difference = diagnostics::mean(&ours) - number("mean");
        assert!(difference.abs() < 4.0 * error, "{full}: the mean is off by {difference}, standard error {error}");
        let squares: Vec<Vec<f64>> = ours.iter().map(|c| c.iter().map(|x| x * x).collect()).collect();
        compared += 1;
        // The reference's own error of the mean square is that of its standard deviation over its effective size; where
        // only a summary is published there is none.
        if record["sd2"].is_null() {
            continue;
        }
        let theirs = number("mcse") / number("sd") * number("sd2");
        let error = diagnostics::mcse_mean(&squares).hypot(theirs);
        let difference = diagnostics::mean(&squares) - number("m2");
        assert!(
            difference.abs() < 4.0 * error,
            "{full}: the mean square is off by {difference}, standard error {error}"
        );
    }
    assert_eq!(compared, names.len(), "{posterior}: {names:?}");
}

#[test]
fn eight_schools_agrees_with_the_reference() {
    let run =
        Run { sampler: None, model: "eight_schools", data: Some("eight_schools"), chains: 256, warmup: 150, draws: 30 };
    agrees_with_reference(&run.sample(&options(Engine::Pc, 11)), "eight_schools-eight_schools_noncentered");
}

#[test]
#[ignore = "takes long: cargo test --test it posteriors -- --ignored"]
fn kidscore_agrees_with_the_reference() {
    let run = Run { sampler: None, model: "kidscore_momiq", data: Some("kidiq"), chains: 256, warmup: 150, draws: 20 };
    agrees_with_reference(&run.sample(&options(Engine::Pc, 12)), "kidiq-kidscore_momiq");
}

#[test]
#[ignore = "takes long: cargo test --test it posteriors -- --ignored"]
fn wells_agrees_with_the_reference() {
    let run =
        Run { sampler: None, model: "logistic_wells", data: Some("wells_data"), chains: 256, warmup: 100, draws: 10 };
    agrees_with_reference(&run.sample(&options(Engine::Pc, 13)), "wells_data-wells_dist");
}

#[test]
#[ignore = "takes long: cargo test --test it posteriors -- --ignored"]
fn the_other_samplers_agree_with_the_reference() {
    for (i, sampler) in ["slice_nuts", "hmc"].into_iter().enumerate() {
        let (model, data) = ("eight_schools", Some("eight_schools"));
        let run = Run { sampler: Some(sampler), model, data, chains: 256, warmup: 150, draws: 30 };
        agrees_with_reference(
            &run.sample(&options(Engine::Pc, 14 + i as u64)),
            "eight_schools-eight_schools_noncentered",
        );
    }
}

#[test]
fn a_chain_is_the_same_alone_and_among_256() {
    let run = |chains| Run {
        sampler: None,
        model: "eight_schools",
        data: Some("eight_schools"),
        chains,
        warmup: 30,
        draws: 5,
    };
    let many = run(256).sample(&options(Engine::Pc, 5));
    let one = run(1).sample(&options(Engine::Pc, 5));
    for (name, array) in &one.parameters {
        let all = many.parameters[name].as_real().expect("real");
        let alone = array.as_real().expect("real");
        assert_eq!(alone, &all[..alone.len()], "{name}");
    }
}

#[test]
fn engines_draw_the_same_chains() {
    let run =
        Run { sampler: None, model: "eight_schools", data: Some("eight_schools"), chains: 5, warmup: 40, draws: 10 };
    let pc = run.sample(&options(Engine::Pc, 3));
    for engine in [Engine::Scalar, Engine::Local] {
        let other = run.sample(&options(engine, 3));
        assert_eq!(pc.parameters, other.parameters, "{engine:?}");
        assert_eq!(pc.statistics, other.statistics, "{engine:?}");
        assert_eq!(pc.gradients, other.gradients, "{engine:?}");
    }
}

/// Mean and covariance of the correlated Gaussian that ships are those of its data, by every sampler.
#[test]
#[ignore = "takes long: cargo test --test it posteriors -- --ignored"]
fn the_correlated_gaussian_has_its_moments() {
    // Trajectories of random length need longer to forget where they started.
    let all = [(None, 150, 40), (Some("slice_nuts"), 150, 40), (Some("hmc"), 600, 200)];
    for (i, (sampler, warmup, draws)) in all.into_iter().enumerate() {
        let (model, data) = ("correlated_gaussian", Some("correlated_gaussian"));
        let run = Run { sampler, model, data, chains: 64, warmup, draws };
        has_the_moments_of_the_gaussian(&run.sample(&options(Engine::Pc, 21 + i as u64)));
    }
}

fn has_the_moments_of_the_gaussian(draws: &Draws) {
    let values = NamedValues::read(Path::new("nuts/data/correlated_gaussian.json")).expect("the data ship");
    let real = |name: &str, rank| {
        let array = values.array(name, ArrayType { dtype: autobatch::types::DType::Real, rank }).expect("an array");
        array.as_real().expect("real").to_vec()
    };
    let (mean, precision) = (real("mean", 1), real("precision", 2));
    let d = mean.len();
    let x: Vec<Vec<Vec<f64>>> = (0..d).map(|i| chains(&draws.parameters["x"], i)).collect();
    for i in 0..d {
        let error = diagnostics::mcse_mean(&x[i]);
        assert!((diagnostics::mean(&x[i]) - mean[i]).abs() < 4.0 * error, "x[{i}]");
        // E[(x - mean) (precision (x - mean))_i] = 1: the Stein identity, an exact test of the second moments.
        let stein: Vec<Vec<f64>> = (0..x[i].len())
            .map(|c| {
                let pull = |t: usize| (0..d).map(|j| precision[i * d + j] * (x[j][c][t] - mean[j])).sum::<f64>();
                (0..x[i][c].len()).map(|t| (x[i][c][t] - mean[i]) * pull(t)).collect()
            })
            .collect();
        let error = diagnostics::mcse_mean(&stein);
        assert!((diagnostics::mean(&stein) - 1.0).abs() < 4.0 * error, "second moment of x[{i}]");
    }
}
