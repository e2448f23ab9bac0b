//! What a simulator draws: parameters from the prior and data by them, once for each data set.

use indexmap::IndexMap;

use super::sampling::{Job, ModelSource, Sampling};
use crate::program::{Error, ErrorKind, Function, Inputs, Options};
use crate::types::Array;

/// The function of a program that draws a data set: what it gives are parameters and data by their names.
pub const SIMULATE: &str = "simulate";
/// Nothing that chains draw is drawn here, nor the other way round: the word `sim` in the seed.
const OF_SIMULATIONS: u64 = 0x0073_696d << 40;

/// Runs a simulator for so many data sets: the function `simulate` of a program, or the generated quantities of a Stan
/// program. Gives arrays data set × event shape by their names. `read_data` gives the shared inputs of a function.
///
/// # Errors
/// For a program that cannot be read or has no such function, for data that do not fit, and where a data set fails.
pub fn simulate(
    simulator: &ModelSource<'_>,
    count: usize,
    read_data: impl Fn(&Function<'_>) -> Result<Inputs, Error>,
    options: &Options,
) -> Result<IndexMap<String, Array>, Error> {
    if count == 0 {
        return Err(Error::new(ErrorKind::Option, "0 simulations: there is nothing to draw"));
    }
    let mut options = options.clone();
    options.settings = options.settings.clone().seed(options.settings.get_seed() ^ OF_SIMULATIONS);
    let name = simulator.name();
    let failed = |set: usize, why: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Input, format!("{name}: the data set {set}, counted from 0, could not be drawn: {why}"))
    };
    if let ModelSource::Stan(_) = simulator {
        let sampler = std::path::Path::new("std/fixed_param.ab");
        let job = Job { sampler: Some(sampler), chains: count, warmup: 0, draws: 1, ..Job::new(*simulator) };
        let job = Job { stepsize: Some(1.0), ..job };
        let draws = Sampling::new(&job, read_data)?.run(&options, &|| {})?;
        if let Some(trap) = draws.traps.first() {
            return Err(failed(trap.position, trap));
        }
        if let Some(lost) = &draws.failed {
            return Err(failed(lost.positions[0], &lost.first.told()));
        }
        let without_draws = |(name, mut array): (String, Array)| {
            array.shape.remove(1);
            (name, array)
        };
        return Ok(draws.parameters.into_iter().map(without_draws).collect());
    }
    let program = simulator.program()?;
    if !program.functions().any(|function| function == SIMULATE) {
        let message = format!(
            "{name}: there is no `pub fn {SIMULATE}`, which draws parameters from their prior and data by them: a struct of \
             both, by their names"
        );
        return Err(Error::new(ErrorKind::Entry, message));
    }
    let function = program.function(SIMULATE)?;
    if let Some(port) = function.signature().ports.iter().find(|port| !port.shared) {
        let message = format!("{name}: `{SIMULATE}` draws all but shared data: `{}` is not shared", port.name);
        return Err(Error::new(ErrorKind::Entry, message));
    }
    let inputs = read_data(&function)?.restricted_to(function.signature()).lanes(count);
    let results = function.run(&inputs, &options)?;
    match results.traps().first() {
        Some(trap) => Err(failed(trap.position, trap)),
        None => Ok(results.outputs().clone()),
    }
}
