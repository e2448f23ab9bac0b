//! nuts-rs with gradients written by hand: one chain a thread, a fixed step size and the unit metric.

#[path = "../../protocol.rs"]
mod protocol;

mod density;

use std::sync::Arc;
use std::time::Instant;

use density::{Density, Model};
use nuts_rs::{Chain, CpuMath, DiagNutsSettings, Settings, StepSizeAdaptMethod};
use protocol::{Done, Job, fail, numbers, serve};
use rand::SeedableRng;

fn main() {
    let job = Job::read();
    let data = job.data();
    let Some(model) = Model::read(job.text("model"), &data) else {
        fail(&format!("no gradient of `{}` is written here", job.text("model")));
    };
    let model = Arc::new(model);
    let (dimension, chains) = (job.count("dimension"), job.count("chains"));
    let starts: Vec<Vec<f64>> = numbers(&data["starts"]).chunks(dimension).map(<[f64]>::to_vec).collect();
    let settings = settings(job.number("stepsize"), job.count("max_treedepth"));
    serve(&format!("nuts-rs {}, gradients by hand, -C target-cpu=native", version()), |draws, seed| {
        let start = Instant::now();
        let parts: Vec<(u64, Vec<f64>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..chains)
                .map(|chain| {
                    let (model, start) = (Arc::clone(&model), &starts[chain]);
                    scope.spawn(move || run(&settings, model, start, draws, seed, chain as u64))
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("a chain runs")).collect()
        });
        let seconds = start.elapsed().as_secs_f64();
        let useful = parts.iter().map(|(steps, _)| steps).sum();
        let states = parts.into_iter().flat_map(|(_, states)| states).collect();
        Done { useful, seconds, states: Some((states, [chains, draws, dimension])) }
    });
}

/// The version of nuts-rs that is built in: that of the lock file.
fn version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains("name = \"nuts-rs\"\n"));
    let line = package.and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")));
    line.map_or("of unknown version", |version| version.trim_matches('"'))
}

fn settings(stepsize: f64, max_treedepth: usize) -> DiagNutsSettings {
    // It insists on an iteration of tuning, which with one draw learns nothing.
    let mut settings = DiagNutsSettings { num_tune: 1, maxdepth: max_treedepth as u64, ..Default::default() };
    let steps = &mut settings.adapt_options.step_size_settings;
    steps.jitter = None;
    steps.initial_step = stepsize;
    steps.adapt_options.method = StepSizeAdaptMethod::Fixed(stepsize);
    settings
}

/// Leapfrog steps and states of a chain.
fn run(
    settings: &DiagNutsSettings,
    model: Arc<Model>,
    start: &[f64],
    draws: usize,
    seed: u64,
    chain: u64,
) -> (u64, Vec<f64>) {
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(chain));
    let mut sampler = settings.new_chain(chain, CpuMath::new(Density::new(model)), &mut rng);
    sampler.set_position(start).expect("the start is possible");
    let (mut steps, mut states) = (0, Vec::with_capacity(draws * start.len()));
    for _ in 0..draws {
        let (state, progress) = sampler.draw().expect("a draw is made");
        steps += progress.num_steps;
        states.extend_from_slice(&state);
    }
    (steps, states)
}
