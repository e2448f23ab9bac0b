//! Calibration from Rust: a model, what simulates its data, and [`Sampler::calibrate`].

use indexmap::IndexMap;

use super::{ErrorKind, Sampler, Terms};
use crate::mcmc::simulated::simulate;
use crate::program::Error;
use crate::program::io::NamedValues;
use crate::report::Calibration;
use crate::types::Array;

/// What draws parameters from the prior and data by them.
#[derive(Clone, Debug)]
pub enum Simulator {
    /// The model's own function `simulate`, so many times.
    Own(usize),
    /// Another program, with the data that it has: its function `simulate`, or the generated quantities of a Stan program; so
    /// many times.
    Program(Box<Sampler>, usize),
    /// What was drawn elsewhere: parameters and data by their names, with an axis over the data sets before their own.
    Drawn(NamedValues),
}

impl Sampler {
    /// Checks the model and the sampler by simulation: whether what the prior has drawn has uniform ranks among the draws of
    /// its posteriors. The number of chains is that of each data set, and all draws that are kept are ranked: `thin` should
    /// leave such as are near to independent.
    ///
    /// # Errors
    /// As [`run`](Self::run), for a simulator that fails, and where it and the model have no quantity in common.
    ///
    /// ```
    /// use autobatch::Sampler;
    /// use autobatch::sampler::Simulator;
    ///
    /// let calibration = Sampler::of_source(
    ///     "pub fn log_density(q: real[1], shared y: real) -> real {
    ///          normal_lpdf(q[0], 0.0, 1.0) + normal_lpdf(y, q[0], 1.0)
    ///      }
    ///      pub struct Parameters { mu: real }
    ///      pub fn parameters(q: real[1]) -> Parameters { Parameters { mu: q[0] } }
    ///      pub struct Simulated { mu: real, y: real }
    ///      pub fn simulate() -> Simulated {
    ///          let mu = normal_rng(0.0, 1.0);
    ///          Simulated { mu: mu, y: normal_rng(mu, 1.0) }
    ///      }",
    /// )
    /// .chains(1)
    /// .warmup(200)
    /// .draws(200)
    /// .set("thin", 10)
    /// .calibrate(&Simulator::Own(100))?;
    /// assert_eq!(calibration.quantities[0].name, "mu");
    /// assert!(calibration.p_value() > 0.01);
    /// # Ok::<(), autobatch::program::Error>(())
    /// ```
    pub fn calibrate(&self, simulator: &Simulator) -> Result<Calibration, Error> {
        let draw = |program: &Sampler, count: usize| -> Result<NamedValues, Error> {
            let loaded = program.load(Terms::default())?;
            let inputs = |function: &crate::program::Function<'_>| loaded.inputs(function);
            let drawn = simulate(&loaded.source(), count, inputs, &self.options)?;
            Ok(NamedValues::of("what the simulator gives".to_owned(), drawn))
        };
        let values = match simulator {
            Simulator::Own(count) => draw(self, *count)?,
            Simulator::Program(program, count) => draw(program, *count)?,
            Simulator::Drawn(values) => values.clone(),
        };
        let truths: Result<IndexMap<String, Array>, Error> =
            values.iter().map(|(name, data)| Ok((name.to_owned(), data.to_array(name, data.guess_type())?))).collect();
        let truths = truths?;
        let samples = self.clone().lane_data(values).run()?;
        if !samples.is_complete() && samples.draws().draws < samples.draws().asked {
            return Err(Error::new(ErrorKind::Interrupted, "cancelled: ranks are of chains that have all their draws"));
        }
        Calibration::of(samples.draws(), &truths)
    }
}
