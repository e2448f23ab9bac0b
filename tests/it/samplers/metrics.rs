//! The metrics that warmup learns, and what else CmdStan can set of a chain.

use std::path::Path;

use autobatch::mcmc::diagnostics;
use autobatch::mcmc::sampling::{Draws, Job, Metric, SamplerSettings, Sampling};
use autobatch::program::{Engine, Error, Function, Inputs, Options};
use autobatch::types::Array;

use crate::project::cli::{Folder, error};

/// The covariance and the precision, its inverse by hand, of two coordinates: determinant 1.
const COVARIANCE: [f64; 4] = [4.0, 1.9, 1.9, 1.1525];
const PRECISION: [f64; 4] = [1.1525, -1.9, -1.9, 4.0];

fn gaussian(job: Job<'_>) -> Result<Sampling, Error> {
    let data = |_: &Function<'_>| {
        let precision = Array::real([2, 2], PRECISION.to_vec());
        Ok(Inputs::new().shared("mean", vec![3.0, -1.0]).shared("precision", precision))
    };
    Sampling::new(&job, data)
}

fn job(metric: Metric) -> Job<'static> {
    let model = Path::new("nuts/models/correlated_gaussian.ab");
    Job { chains: 8, warmup: 300, draws: 200, metric, ..Job::new(model) }
}

fn run(job: Job<'_>, engine: Engine) -> Draws {
    let sampling = gaussian(job).expect("the model is right");
    let draws = sampling.run(&Options::default().engine(engine).seed(7), &|| ()).expect("it runs");
    assert!(draws.traps.is_empty(), "{:?}", draws.traps.first());
    draws
}

fn chains(draws: &Draws, of: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let x = draws.parameters["x"].as_real().expect("reals");
    x.chunks(2 * draws.draws).map(|chain| chain.chunks(2).map(&of).collect()).collect()
}

#[test]
fn every_metric_samples_the_same_posterior() {
    for metric in [Metric::Unit, Metric::Diagonal, Metric::Dense] {
        let draws = run(job(metric), Engine::Pc);
        let close = |of: &dyn Fn(&[f64]) -> f64, wanted: f64| {
            let values = chains(&draws, of);
            let (mean, error) = (diagnostics::mean(&values), diagnostics::mcse_mean(&values));
            assert!((mean - wanted).abs() < 4.5 * error, "{metric:?}: {mean} ± {error}, not {wanted}");
        };
        close(&|x| x[0], 3.0);
        close(&|x| x[1], -1.0);
        close(&|x| (x[0] - 3.0) * (x[0] - 3.0), COVARIANCE[0]);
        close(&|x| (x[0] - 3.0) * (x[1] + 1.0), COVARIANCE[1]);
        close(&|x| (x[1] + 1.0) * (x[1] + 1.0), COVARIANCE[3]);
    }
}

/// The last window of 300 iterations of warmup has 100 draws, so an element is known to about 15 %.
#[test]
fn a_metric_is_what_it_is_called() {
    let size = |draws: &Draws| {
        diagnostics::mean(&[draws.statistics["n_leapfrog"]
            .as_int()
            .unwrap()
            .iter()
            .map(|n| *n as f64)
            .collect::<Vec<_>>()])
    };
    let unit = run(job(Metric::Unit), Engine::Pc);
    assert!(unit.inv_metrics.iter().all(|m| *m == Array::real([1, 2], vec![1.0, 1.0])));
    let diagonal = run(job(Metric::Diagonal), Engine::Pc);
    let dense = run(job(Metric::Dense), Engine::Pc);
    let mean = |draws: &Draws, element: usize| {
        let of = |m: &Array| m.as_real().expect("reals")[element];
        diagnostics::mean(&[draws.inv_metrics.iter().map(of).collect::<Vec<f64>>()])
    };
    assert_eq!((&diagonal.inv_metrics[0].shape[..], &dense.inv_metrics[0].shape[..]), (&[1, 2][..], &[2, 2][..]));
    for (draws, element, wanted) in [
        (&diagonal, 0, COVARIANCE[0]),
        (&diagonal, 1, COVARIANCE[3]),
        (&dense, 0, COVARIANCE[0]),
        (&dense, 1, COVARIANCE[1]),
        (&dense, 2, COVARIANCE[2]),
        (&dense, 3, COVARIANCE[3]),
    ] {
        let found = mean(draws, element);
        assert!((found / wanted - 1.0).abs() < 0.3, "{found}, not {wanted}");
    }
    // With the right metric both directions are alike, and trajectories are short.
    assert!(size(&dense) < 0.75 * size(&diagonal), "{} {}", size(&dense), size(&diagonal));
}

#[test]
fn engines_agree_with_every_metric() {
    for metric in [Metric::Unit, Metric::Diagonal, Metric::Dense] {
        for given in [false, true] {
            let inv_metric = match metric {
                Metric::Diagonal if given => Some(Array::real([2], vec![4.0, 1.0])),
                Metric::Dense if given => Some(Array::real([2, 2], COVARIANCE.to_vec())),
                _ => None,
            };
            let settings = SamplerSettings::new().with("thin", 3).with("save_warmup", true).with("window", 10);
            let job = || Job {
                chains: 3,
                warmup: 120,
                draws: 10,
                inv_metric: inv_metric.clone(),
                settings: settings.clone(),
                ..job(metric)
            };
            let pc = run(job(), Engine::Pc);
            assert_eq!((pc.draws, pc.parameters["x"].shape.to_vec()), (4, vec![3, 4, 2]));
            let states = pc.warmup_states.as_ref().expect("they were asked for");
            assert_eq!((states.states, states.parameters["x"].shape.to_vec()), (40, vec![3, 40, 2]));
            for engine in [Engine::Scalar, Engine::Local] {
                let other = run(job(), engine);
                assert_eq!(pc.parameters, other.parameters, "{metric:?} {engine:?}");
                assert_eq!(pc.inv_metrics, other.inv_metrics, "{metric:?} {engine:?}");
                let theirs = other.warmup_states.expect("they were asked for");
                assert_eq!((&states.parameters, &states.statistics), (&theirs.parameters, &theirs.statistics));
            }
        }
    }
}

/// Thinning and the states of warmup only say what is told of a chain.
#[test]
fn thinning_keeps_every_third_draw_of_the_same_chain() {
    let all = run(Job { chains: 2, warmup: 50, draws: 10, ..job(Metric::Diagonal) }, Engine::Pc);
    let settings = SamplerSettings::new().with("thin", 3).with("save_warmup", true);
    let thinned = run(Job { chains: 2, warmup: 50, draws: 10, settings, ..job(Metric::Diagonal) }, Engine::Pc);
    let (all, thinned) = (chains(&all, |x| x[0]), chains(&thinned, |x| x[0]));
    for (all, thinned) in all.iter().zip(&thinned) {
        assert_eq!(*thinned, all.iter().copied().step_by(3).collect::<Vec<_>>());
    }
}

#[test]
fn a_step_size_that_stays_has_the_metric_that_is_given() {
    let given = Array::real([2, 2], COVARIANCE.to_vec());
    let job = Job { stepsize: Some(0.9), inv_metric: Some(given), warmup: 20, ..job(Metric::Dense) };
    let draws = run(job, Engine::Pc);
    for metric in &draws.inv_metrics {
        let found = metric.as_real().expect("reals");
        assert!(found.iter().zip(COVARIANCE).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
    assert!(draws.statistics["stepsize"].as_real().unwrap().iter().all(|eps| *eps == 0.9));
}

#[test]
fn a_metric_that_is_none_is_refused() {
    let refused = |metric, shape: &[usize], values: &[f64]| {
        let inv_metric = Some(Array::real(shape.iter().copied(), values.to_vec()));
        gaussian(Job { inv_metric, ..job(metric) }).expect_err("no such metric").to_string()
    };
    assert!(refused(Metric::Unit, &[2], &[1.0, 1.0]).contains("of unit_e is known"));
    assert!(refused(Metric::Diagonal, &[2], &[1.0, 0.0]).contains("must hold positive numbers, not 0"));
    assert!(refused(Metric::Diagonal, &[2, 2, 1], &[1.0; 4]).contains("is a list of numbers"));
    assert!(refused(Metric::Diagonal, &[3, 2], &[1.0; 6]).contains("3 inverse metrics for"));
    assert!(refused(Metric::Diagonal, &[3], &[1.0; 3]).contains("has 3 rows, but the state of the model has 2"));
    assert!(refused(Metric::Dense, &[2], &[1.0; 2]).contains("is a square matrix"));
    assert!(
        refused(Metric::Dense, &[2, 2], &[1.0, 0.5, 0.4, 1.0]).contains("is not symmetric: look at row 2 and column 1")
    );
    assert!(refused(Metric::Dense, &[2, 2], &[1.0, 2.0, 2.0, 1.0]).contains("is not positive definite"));
    assert!(refused(Metric::Dense, &[2, 2], &[f64::NAN, 0.0, 0.0, 1.0]).contains("is not positive definite"));
}

/// Of a length of 1, steps of 0.3 have room three times.
#[test]
fn static_trajectories_have_the_length_that_they_are_given() {
    let sampler = Some(Path::new("std/static_hmc.ab"));
    let model = Path::new("nuts/models/standard_normal.ab");
    let settings = SamplerSettings::new().with("int_time", 1.0);
    let starts = Some(Array::real([1, 3], vec![0.0; 3]));
    let (chains, warmup) = (32, 20);
    let job = Job { sampler, settings, starts, stepsize: Some(0.3), chains, warmup, draws: 200, ..Job::new(model) };
    let draws = Sampling::new(&job, |_| Ok(Inputs::new())).unwrap().run(&Options::default(), &|| ()).unwrap();
    assert!(draws.statistics["n_leapfrog"].as_int().unwrap().iter().all(|n| *n == 3));
    let x = draws.parameters["x"].as_real().expect("reals");
    let squares: Vec<Vec<f64>> = x.chunks(600).map(|chain| chain.chunks(3).map(|x| x[0] * x[0]).collect()).collect();
    let (mean, error) = (diagnostics::mean(&squares), diagnostics::mcse_mean(&squares));
    assert!((mean - 1.0).abs() < 4.5 * error, "{mean} ± {error}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let folder = Folder::new("options");
    let metric = folder.file("metric.json", "{\"inv_metric\": [1, 2, 3]}");
    let model = ["sample", "nuts/models/eight_schools.ab", "--data", "nuts/data/eight_schools.json"];
    for (flags, why) in [
        (&["--metric-file", &metric][..], "has 3 rows, but the state of the model has 10"),
        (&["--metric", "dense_e", "--metric-file", &metric], "expected a list"),
        (&["--stepsize", "0.5", "--adapt-engaged", "1"], "--stepsize is a step size that stays"),
        (&["--thin", "0"], "thin must be a number from 1 on, not 0"),
        (&["--window", "0"], "window must be a number from 1 to"),
        (&["--init", "none.json"], "none.json"),
        (&["--sig-figs", "8"], "--sig-figs is for Stan CSV"),
        (&["--format", "arrays"], "say where, by --output"),
    ] {
        let said = error(&[&model[..], flags].concat());
        assert!(said.contains(why), "{flags:?}: {said}");
    }
}
