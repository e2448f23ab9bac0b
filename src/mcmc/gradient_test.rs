//! The gradient of a model against differences at one point, as CmdStan's `diagnose test=gradient` has it.

use std::fmt;

use super::log_prob::{Evaluated, LogProb};
use crate::program::{Error, ErrorKind, Inputs, Options, Program};
use crate::types::Array;

/// Random points that are tried before the test gives up.
const MOST_TRIES: usize = 100;

/// Where a gradient is tested, and how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GradientTest {
    /// Every coordinate of the point is uniform within this distance of 0.
    pub radius: f64,
    /// Each coordinate is moved by so much, up and down.
    pub epsilon: f64,
    /// The largest error that is none.
    pub error: f64,
}

impl Default for GradientTest {
    /// CmdStan's numbers.
    fn default() -> Self {
        Self { radius: 2.0, epsilon: 1e-6, error: 1e-6 }
    }
}

/// A gradient beside differences.
#[derive(Clone, PartialEq, Debug)]
pub struct TestedGradient {
    /// The log density at the point.
    pub lp: f64,
    /// For each coordinate.
    pub coordinates: Vec<TestedCoordinate>,
    /// The largest error that is none.
    pub error: f64,
}

/// The derivative by one coordinate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TestedCoordinate {
    /// Where it is.
    pub value: f64,
    /// What the model gives.
    pub model: f64,
    /// What differences give.
    pub differences: f64,
}

impl TestedCoordinate {
    /// The first less the second.
    pub fn error(&self) -> f64 {
        self.model - self.differences
    }
}

impl TestedGradient {
    /// Coordinates whose error is too large, or no number.
    pub fn failures(&self) -> usize {
        // What is NaN does not agree.
        let agree = self.coordinates.iter().filter(|c| c.error().abs() <= self.error).count();
        self.coordinates.len() - agree
    }
}

impl LogProb {
    /// Tests the gradient at a random point where it and the density are finite.
    ///
    /// # Errors
    /// Where the data do not tell the number of coordinates, no point is found, and as [`at`](Self::at).
    pub fn test_gradient(&self, test: GradientTest, options: &Options) -> Result<TestedGradient, Error> {
        let Some(d) = self.dimension()? else {
            let message = "no data tell the number of unconstrained coordinates: say what its dimensions are in the data or by --shared";
            return Err(Error::new(ErrorKind::Input, message));
        };
        let (point, lp, gradient) = self.start(d, test.radius, options)?;
        let moved = (0..2 * d).flat_map(|row| {
            let by = if row % 2 == 0 { test.epsilon } else { -test.epsilon };
            point.iter().enumerate().map(move |(i, x)| if i == row / 2 { x + by } else { *x })
        });
        let values = self.at(Array::real([2 * d, d], moved.collect()), options)?;
        let density = |value: &Evaluated| match value {
            Evaluated::Density { lp, .. } => *lp,
            Evaluated::Rejected(_) => f64::NAN,
        };
        let coordinates = values.chunks(2).zip(point.iter().zip(&gradient)).map(|(pair, (value, model))| {
            let differences = (density(&pair[0]) - density(&pair[1])) / (2.0 * test.epsilon);
            TestedCoordinate { value: *value, model: *model, differences }
        });
        Ok(TestedGradient { lp, coordinates: coordinates.collect(), error: test.error })
    }

    /// Why no random point within this distance of 0 has a finite density and gradient; none where one has.
    ///
    /// # Errors
    /// Where the data do not tell the number of coordinates, and as [`at`](Self::at).
    pub fn start_problem(&self, radius: f64, options: &Options) -> Result<Option<String>, Error> {
        let Some(d) = self.dimension()? else { return Ok(None) };
        match self.start(d, radius, options) {
            Ok(_) => Ok(None),
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    /// Why the first of some points, point × dimension, that has no finite density has none; none where all have one.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn problem_of_points(&self, points: &Array, options: &Options) -> Result<Option<String>, Error> {
        let values = self.at(points.clone(), options)?;
        let rows = points.as_real().unwrap_or_default();
        let d = rows.len() / values.len().max(1);
        for (i, value) in values.iter().enumerate() {
            if let Some(why) = self.problem(value, &rows[i * d..][..d], options)? {
                return Ok(Some(format!("start {i}: {why}")));
            }
        }
        Ok(None)
    }

    /// A random point with its finite density and gradient.
    fn start(&self, d: usize, radius: f64, options: &Options) -> Result<(Vec<f64>, f64, Vec<f64>), Error> {
        let text = format!("pub fn start(shared r: real) -> real[{d}] {{ [uniform_rng(-r, r) for i in 0..{d}] }}");
        let tries = if radius == 0.0 { 1 } else { MOST_TRIES };
        let inputs = Inputs::new().shared("r", radius).lanes(tries);
        let starts = Program::compile(&text)?.function("start")?.run(&inputs, options)?;
        let points = starts.outputs().values().next().expect("the function gives an array").clone();
        let values = self.at(points.clone(), options)?;
        let points = points.as_real().expect("an array of reals").to_vec();
        let mut why = "the density or its gradient is not finite".to_owned();
        let mut last = None;
        for (i, value) in values.into_iter().enumerate() {
            match value {
                Evaluated::Density { lp, gradient } if lp.is_finite() && gradient.iter().all(|g| g.is_finite()) => {
                    return Ok((points[i * d..][..d].to_vec(), lp, gradient));
                }
                Evaluated::Density { lp, .. } if lp.is_finite() => {
                    why = "the gradient of the log density is not finite there".to_owned();
                    last = None;
                }
                value => last = Some((value, i)),
            }
        }
        // Of one point it is looked at why.
        if let Some((value, i)) = last {
            why = self.problem(&value, &points[i * d..][..d], options)?.unwrap_or(why);
        }
        let message = format!("no point with a finite log density and gradient in {tries} tries: {why}");
        Err(Error::new(ErrorKind::Input, message))
    }
}

/// The table of CmdStan.
impl fmt::Display for TestedGradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "TEST GRADIENT MODE\n\n Log probability={}\n", self.lp)?;
        writeln!(f, "{:>10}{:>16}{:>16}{:>16}{:>16}", "param idx", "value", "model", "finite diff", "error")?;
        for (i, c) in self.coordinates.iter().enumerate() {
            let TestedCoordinate { value, model, differences } = c;
            writeln!(f, "{i:>10}{value:>16.6}{model:>16.6}{differences:>16.6}{:>16.3e}", c.error())?;
        }
        let (failures, all) = (self.failures(), self.coordinates.len());
        if failures == 0 {
            return writeln!(f, "\nall {all} derivatives agree with differences within {:e}", self.error);
        }
        writeln!(
            f,
            "\n{failures} of {all} derivatives differ from differences by more than {:e}: look for a density that jumps, or \
             whose gradient is written by hand; another --seed tests another point, a larger --error allows more",
            self.error
        )
    }
}
