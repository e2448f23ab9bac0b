//! The log density of a model and its gradient at points that are given: what `autobatch log-prob` prints.
//!
//! All points are lanes of one run. The density is not attempted: where it traps, the trap says why.

use crate::program::{Error, ErrorKind, Function, Gradient, Inputs, Options, Program, Speakers, Terms};
use crate::run::TrapKind;
use crate::types::Array;

use super::sampling::{
    DENSITY, DENSITY_AND_GRADIENT, ModelSource, density, density_of_terms, dimension, refuse_missing,
};

/// The value at a point.
#[derive(Clone, PartialEq, Debug)]
pub enum Evaluated {
    /// A log density that is a number, possibly infinite.
    Density {
        /// The log density.
        lp: f64,
        /// Its gradient.
        gradient: Vec<f64>,
    },
    /// A sampler would reject the point, and why.
    Rejected(String),
}

/// A model with its data, ready to be evaluated.
#[derive(Debug)]
pub struct LogProb {
    model: Program,
    data: Inputs,
    /// Unless it is written by hand.
    derived: Option<Gradient>,
    name: String,
}

impl LogProb {
    /// Compiles a model. `read_data` gets its density and gives its shared inputs.
    ///
    /// # Errors
    /// For a model that cannot be read, has errors or no density of the right form; for terms that it cannot leave out or
    /// add; for what `read_data` fails on, and data that are not all there.
    pub fn new(
        model: &ModelSource<'_>,
        terms: Terms,
        read_data: impl FnOnce(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Self, Error> {
        let name = model.name();
        let compiled = model.program()?;
        if let Some(option) = model.lacks_terms(&compiled, terms) {
            let message = match terms.constants {
                true => format!("{option}: {name} is no Stan program: its constants are as they stand there"),
                false => format!(
                    "{option}: {name} is no Stan program and has no `model`: its density is what `{DENSITY}` computes, the \
                     Jacobian as it stands there"
                ),
            };
            return Err(Error::new(ErrorKind::Option, message));
        }
        let model = compiled;
        let function = density_of_terms(&model, &name, terms)?;
        let data = read_data(&function)?;
        refuse_missing(&function, &data)?;
        let state = function.signature().ports[0].name.clone();
        let by_hand = function.name() == DENSITY_AND_GRADIENT;
        let derived = (!by_hand).then(|| model.gradient(function.name(), &[state])).transpose()?;
        Ok(Self { model, data, derived, name })
    }

    /// The number of unconstrained coordinates, where the data tell it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn dimension(&self) -> Result<Option<usize>, Error> {
        Ok(dimension(&density(&self.model, &self.name)?, &self.data))
    }

    /// The values at these points, point × dimension.
    ///
    /// # Errors
    /// For points of another width than the model has coordinates, and what [`Function::run`] refuses.
    pub fn at(&self, points: Array, options: &Options) -> Result<Vec<Evaluated>, Error> {
        let (count, width) = (points.shape[0], points.shape.get(1).copied().unwrap_or(0));
        if count == 0 {
            return Ok(vec![]);
        }
        if let Some(d) = self.dimension()?.filter(|d| *d != width) {
            let message =
                format!("the points have {width} coordinates, where {} has {d} unconstrained parameters", self.name);
            return Err(Error::new(ErrorKind::Input, message));
        }
        let function = match &self.derived {
            Some(gradient) => gradient.function()?,
            None => density(&self.model, &self.name)?,
        };
        let state = function.signature().ports[0].name.clone();
        let who = |position: usize| format!("point {position}");
        let sink = Speakers { prints: &options.prints, of_results: false, who: &who };
        let results = function.bind(&self.data.clone().lane(state, points), options)?.run(options, &sink)?;
        if results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted) {
            return Err(Error::new(
                ErrorKind::Interrupted,
                "stopped before all densities were known: nothing is written",
            ));
        }
        let mut outputs = results.outputs().values().filter_map(Array::as_real);
        let (lp, gradient) = outputs.next().zip(outputs.next()).expect("a density gives its value and its gradient");
        let all = lp.iter().enumerate().map(|(i, lp)| match results.traps().iter().find(|trap| trap.position == i) {
            Some(trap) => Evaluated::Rejected(trap.told()),
            None if lp.is_nan() => Evaluated::Rejected("the log density is NaN".to_owned()),
            None => Evaluated::Density { lp: *lp, gradient: gradient[i * width..][..width].to_vec() },
        });
        Ok(all.collect())
    }
}
