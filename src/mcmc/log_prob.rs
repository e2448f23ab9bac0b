//! The log density of a model and its gradient at points that are given: what `autobatch log-prob` prints.
//!
//! All points are lanes of one run. The density is not attempted: where it traps, the trap says why.

use std::sync::Arc;

use crate::program::{
    Bound, Error, ErrorKind, Function, Gradient, Inputs, Options, Prints, Program, Speakers, StanOrigin, Terms,
};
use crate::run::{MemoryBudget, NoSink, TrapKind};
use crate::types::{Array, ArrayData};

use super::sampling::{
    DENSITY, DENSITY_AND_GRADIENT, ModelSource, density, density_of_terms, dimension, refuse_missing,
};

/// What is said of a density that is no number.
const IS_NAN: &str = "the log density is NaN";

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
    /// Of a Stan program, where it comes from.
    origin: Option<Arc<StanOrigin>>,
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
        let origin = if let ModelSource::Stan(model) = model { Some(Arc::clone(model.origin())) } else { None };
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
        Ok(Self { model, data, derived, name, origin })
    }

    /// The number of unconstrained coordinates, where the data tell it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn dimension(&self) -> Result<Option<usize>, Error> {
        Ok(dimension(&density(&self.model, &self.name)?, &self.data))
    }

    /// Why the density is no finite number at a point: the statement of a Stan program, or the operation, that it comes
    /// from. The point is run again, which takes its time. `None` where that is not known.
    ///
    /// # Errors
    /// What [`Function::run`] refuses.
    pub fn explained(&self, point: &[f64], options: &Options) -> Result<Option<String>, Error> {
        if let Some((why, _)) = self.origin.as_ref().and_then(|origin| origin.explained(point)) {
            return Ok(Some(why));
        }
        // Where NaN is looked for, a program is another one, without what computes whole arrays at once.
        let mut options = options.clone();
        (options.settings.check_nan, options.prints) = (true, Prints::default());
        let function = density(&self.model, &self.name)?;
        let state = function.signature().ports[0].name.clone();
        let points = Array::real([1, point.len()], point.to_vec());
        let results = function.bind(&self.data.clone().lane(state, points), &options)?.run(&options, &NoSink)?;
        let born = results.traps().first().filter(|trap| trap.kind == TrapKind::Nan);
        Ok(born.map(|trap| format!("the first NaN is that of an operation {}", trap.loc.told_within())))
    }

    /// Why a Stan program rejects a point whose density is minus infinity here, as that of a value outside of a support is;
    /// `None` where it is so in Stan, too. The point is run again.
    pub fn rejection(&self, point: &[f64]) -> Option<String> {
        let (why, rejects) = self.origin.as_ref()?.explained(point)?;
        rejects.then_some(why)
    }

    /// Why a value is no finite density, in words; `None` for one that is.
    ///
    /// # Errors
    /// As [`explained`](Self::explained).
    pub fn problem(&self, value: &Evaluated, point: &[f64], options: &Options) -> Result<Option<String>, Error> {
        let said = match value {
            Evaluated::Rejected(why) if why != IS_NAN => return Ok(Some(why.clone())),
            Evaluated::Rejected(why) => why.clone(),
            Evaluated::Density { lp, .. } if !lp.is_finite() => format!("the log density is {lp}"),
            Evaluated::Density { .. } => return Ok(None),
        };
        Ok(Some(match self.explained(point, options)? {
            Some(why) => format!("{said}: {why}"),
            None => said,
        }))
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
        let values = self.bind(count, width, options)?.at(points.as_real().expect("points are reals"), options)?;
        let mut rejected = values.rejected.into_iter().peekable();
        let all = values.lp.iter().enumerate().map(|(i, lp)| match rejected.next_if(|(at, _)| *at == i) {
            Some((_, why)) => Evaluated::Rejected(why),
            None => Evaluated::Density { lp: *lp, gradient: values.gradient[i * width..][..width].to_vec() },
        });
        Ok(all.collect())
    }

    /// The density of so many points of so many coordinates, compiled for them: to be run again and again.
    ///
    /// # Errors
    /// What [`Function::bind`] refuses.
    pub fn bind(&self, points: usize, width: usize, options: &Options) -> Result<BoundDensity, Error> {
        let function = match &self.derived {
            Some(gradient) => gradient.function()?,
            None => density(&self.model, &self.name)?,
        };
        let state = function.signature().ports[0].name.clone();
        let origin = Array::real([points, width], vec![0.0; points * width]);
        let bound = function.bind(&self.data.clone().lane(state, origin), options)?;
        let budget = bound.budget(options)?;
        Ok(BoundDensity { bound, budget, points, width })
    }
}

/// A log density with its gradient, compiled for so many points. Made by [`LogProb::bind`].
#[derive(Debug)]
pub struct BoundDensity {
    bound: Bound,
    budget: Arc<MemoryBudget>,
    points: usize,
    width: usize,
}

/// Values at points.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Densities {
    /// The log densities; NaN where a point is rejected.
    pub lp: Vec<f64>,
    /// The gradients, point × dimension; NaN where a point is rejected.
    pub gradient: Vec<f64>,
    /// The points that a sampler would reject, and why, in order.
    pub rejected: Vec<(usize, String)>,
}

impl BoundDensity {
    /// How many points it takes.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The values at these points, one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for another number of coordinates than all points have, and what [`Function::run`] refuses.
    pub fn at(&mut self, points: &[f64], options: &Options) -> Result<Densities, Error> {
        if points.len() != self.points * self.width {
            let message = format!("{} numbers for {} points of {}", points.len(), self.points, self.width);
            return Err(Error::new(ErrorKind::Input, message));
        }
        match self.bound.inputs_mut().values.first_mut().map(|array| &mut array.data) {
            Some(ArrayData::Real(held)) if held.len() == points.len() => held.copy_from_slice(points),
            _ => unreachable!("the state is the first input, and made of reals"),
        }
        let who = |position: usize| format!("point {position}");
        let sink = Speakers { prints: &options.prints, of_results: false, who: &who };
        let results = self.bound.run_within(&self.budget, options, &sink)?;
        if results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted) {
            return Err(Error::new(
                ErrorKind::Interrupted,
                "stopped before all densities were known: nothing is written",
            ));
        }
        let mut rejected: Vec<(usize, String)> =
            results.traps().iter().map(|trap| (trap.position, trap.told())).collect();
        let mut outputs = results.into_outputs().into_values().filter_map(|array| match array.data {
            ArrayData::Real(values) => Some(values),
            _ => None,
        });
        let (mut lp, mut gradient) =
            outputs.next().zip(outputs.next()).expect("a density gives its value and its gradient");
        let mut trapped = vec![false; self.points];
        rejected.iter().for_each(|(at, _)| trapped[*at] = true);
        let nan = lp.iter().enumerate().filter(|(i, lp)| lp.is_nan() && !trapped[*i]);
        rejected.extend(nan.map(|(i, _)| (i, IS_NAN.to_owned())));
        rejected.sort_by_key(|(at, _)| *at);
        for (at, _) in &rejected {
            lp[*at] = f64::NAN;
            gradient[at * self.width..][..self.width].fill(f64::NAN);
        }
        Ok(Densities { lp, gradient, rejected })
    }
}
