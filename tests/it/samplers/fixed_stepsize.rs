//! Sampling with a step size that stays and with starting points that are given.

use std::path::Path;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::sampling::{Draws, Job, Sampling};
use autobatch::program::{Engine, Error, Inputs, Options};
use autobatch::types::Array;

const SAMPLERS: [Option<&str>; 3] = [None, Some("nuts/slice_nuts.ab"), Some("nuts/hmc.ab")];

/// A standard normal, whose dimensions the starting points tell.
fn sampling(sampler: Option<&str>, stepsize: f64, starts: Array, warmup: usize) -> Result<Sampling, Error> {
    let plan = Job {
        sampler: sampler.map(Path::new),
        chains: 6,
        warmup,
        draws: 40,
        stepsize: Some(stepsize),
        starts: Some(starts),
        ..Job::new(Path::new("nuts/models/standard_normal.ab"))
    };
    Sampling::new(&plan, |_| Ok(Inputs::new()))
}

fn starts(chains: usize, dimension: usize) -> Array {
    Array::real([chains, dimension], (0..chains * dimension).map(|i| i as f64 / 10.0 - 1.0).collect())
}

fn run(sampling: &Sampling, engine: Engine) -> Draws {
    let draws = sampling.run(&Options::default().engine(engine), &|| ()).expect("it runs");
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    draws
}

#[test]
fn the_stepsize_stays_and_engines_agree() {
    for sampler in SAMPLERS {
        let sampling = sampling(sampler, 0.8, starts(6, 3), 10).expect("the model is right");
        let pc = run(&sampling, Engine::Pc);
        let steps = pc.statistics["stepsize"].as_real().expect("reals");
        assert!(steps.iter().all(|eps| *eps == 0.8));
        assert_eq!(pc.parameters["x"].shape[..], [6, 40, 3]);
        for engine in [Engine::Scalar, Engine::Local] {
            let other = run(&sampling, engine);
            assert_eq!(pc.parameters, other.parameters, "{engine:?}");
            assert_eq!(pc.gradients, other.gradients, "{engine:?}");
        }
    }
}

#[test]
fn chains_start_where_they_are_told() {
    // Steps of next to no length leave everything where it is.
    let starts = starts(6, 3);
    let draws = run(&sampling(None, 1e-12, starts.clone(), 0).expect("the model is right"), Engine::Pc);
    let states = draws.parameters["x"].as_real().expect("reals");
    for chain in 0..6 {
        for (found, wanted) in states[chain * 120..][..3].iter().zip(&starts.as_real().expect("reals")[chain * 3..]) {
            assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        }
    }
}

#[test]
fn the_moments_are_right() {
    let sampling = sampling(None, 0.7, starts(6, 3), 20).expect("the model is right");
    let draws = run(&sampling, Engine::Pc);
    let states = draws.parameters["x"].as_real().expect("reals");
    let squares: Vec<Vec<f64>> =
        states.chunks(120).map(|chain| chain.chunks(3).map(|q| q.iter().map(|x| x * x).sum()).collect()).collect();
    let (mean, error) = (diagnostics::mean(&squares), diagnostics::mcse_mean(&squares));
    assert!((mean - 3.0).abs() < 4.0 * error, "{mean} ± {error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for stepsize in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = sampling(None, stepsize, starts(6, 3), 0).expect_err("no such step size");
        assert!(error.to_string().contains("the step size must be a positive number"), "{error}");
    }
    for starts in [starts(5, 3), Array::real([6], vec![0.0; 6]), Array::int([6, 1], vec![0; 6])] {
        let error = sampling(None, 0.5, starts, 0).expect_err("no such starts");
        assert!(error.to_string().contains("6 chains need starts of the type real[6, _]"), "{error}");
    }
}
