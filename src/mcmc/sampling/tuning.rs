//! What of a sampler its users can tune.
//!
//! A sampler that exports `tuning() -> Tuning`, a struct of numbers, says by it what can be tuned and the values that
//! nobody has tuned. It is then called by `sample_tuned` and `sample_fixed_tuned`, which take such a struct behind the
//! density.

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

use super::{Plan, SAMPLE, SAMPLE_FIXED, quoted};
use crate::program::{Error, ErrorKind, Inputs, Options, Program};
use crate::types::Scalar;

/// The sampler that ships with autobatch: the library's, whatever lies in the current folder.
pub const DEFAULT_SAMPLER: &str = "std/nuts.ab";
/// The function by which a sampler says what can be tuned.
pub const TUNING: &str = "tuning";
/// The function of a sampler that can be tuned, in the place of [`SAMPLE`].
pub const SAMPLE_TUNED: &str = "sample_tuned";
/// The function of a sampler that can be tuned, in the place of [`SAMPLE_FIXED`].
pub const SAMPLE_FIXED_TUNED: &str = "sample_fixed_tuned";

/// Doublings beyond which a transition does not end: 2^30 gradients.
const MOST_DOUBLINGS: i64 = 30;

/// How a sampler is tuned; `None` leaves it as it is.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Tuning {
    /// The mean acceptance statistic that the step size is adapted to, between 0 and 1.
    pub target_accept: Option<f64>,
    /// Doublings after which a trajectory is long enough, 1 to 30.
    pub max_treedepth: Option<i64>,
    /// Chains start uniformly within this distance of 0, or of their starting points, in every unconstrained
    /// coordinate. 2 by default, and 0 with starting points.
    pub init_radius: Option<f64>,
}

impl Tuning {
    /// Refuses what makes no sense whatever the sampler.
    pub(super) fn check(&self, fixed: bool) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        match *self {
            Tuning { target_accept: Some(target), .. } if !(target > 0.0 && target < 1.0) => {
                refused(format!("the target acceptance rate must lie between 0 and 1, both excluded, not {target}"))
            }
            Tuning { target_accept: Some(_), .. } if fixed => {
                refused("the step size is given and stays: a target acceptance rate means nothing then".to_owned())
            }
            Tuning { max_treedepth: Some(depth), .. } if !(1..=MOST_DOUBLINGS).contains(&depth) => {
                refused(format!("the largest tree depth must be a number from 1 to {MOST_DOUBLINGS}, not {depth}"))
            }
            Tuning { init_radius: Some(radius), .. } if !(radius >= 0.0 && radius.is_finite()) => {
                refused(format!("the radius of the starting points must be a number from 0 on, not {radius}"))
            }
            _ => Ok(()),
        }
    }
}

/// A sampler as the driver program calls it.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    /// What stands in the driver's `use`.
    pub(super) module: String,
    /// The function that is called.
    pub(super) function: &'static str,
    /// The fields of its `Tuning` with their values, if it can be tuned.
    tuning: Option<IndexMap<String, Scalar>>,
}

impl Sampler {
    /// Reads what the sampler exports.
    pub(super) fn new(plan: &Plan<'_>) -> Result<Self, Error> {
        let path = plan.sampler.unwrap_or(Path::new(DEFAULT_SAMPLER));
        let shipped = path.to_str().and_then(|path| Some((path.to_owned(), Program::shipped(path)?)));
        let (module, program) = match shipped {
            Some((module, program)) => (module, program?),
            None => (quoted(path), Program::load(path)?),
        };
        let (tuned, plain) = match plan.stepsize {
            Some(_) => (SAMPLE_FIXED_TUNED, SAMPLE_FIXED),
            None => (SAMPLE_TUNED, SAMPLE),
        };
        let can_be_tuned = program.functions().any(|function| function == TUNING);
        let mut tuning = if can_be_tuned { Some(defaults(&program, path)?) } else { None };
        for (field, value) in [
            ("target_accept", plan.tuning.target_accept.map(Scalar::Real)),
            ("max_treedepth", plan.tuning.max_treedepth.map(Scalar::Int)),
        ] {
            let Some(value) = value else { continue };
            match tuning.as_mut().and_then(|fields| fields.get_mut(field)) {
                Some(place) => *place = value,
                None => return Err(not_tunable(path, field, tuning.as_ref())),
            }
        }
        Ok(Self { module, function: if can_be_tuned { tuned } else { plain }, tuning })
    }

    /// The struct as it stands behind the density in a call; nothing where there is none.
    pub(super) fn argument(&self) -> String {
        let Some(fields) = &self.tuning else { return String::new() };
        let values = fields.iter().map(|(name, value)| match value {
            Scalar::Bool(b) => format!("{name}: {b}"),
            Scalar::Int(i) => format!("{name}: {i}"),
            Scalar::Real(r) => format!("{name}: {r:?}"),
        });
        format!("sampler::Tuning {{ {} }}, ", values.collect::<Vec<_>>().join(", "))
    }

    pub(super) fn target_accept(&self) -> Option<f64> {
        match self.tuning.as_ref()?.get("target_accept")? {
            Scalar::Real(target) => Some(*target),
            _ => None,
        }
    }

    pub(super) fn max_treedepth(&self) -> Option<i64> {
        match self.tuning.as_ref()?.get("max_treedepth")? {
            Scalar::Int(depth) => Some(*depth),
            _ => None,
        }
    }
}

/// The values that the sampler has when nobody tunes it.
fn defaults(program: &Program, path: &Path) -> Result<IndexMap<String, Scalar>, Error> {
    let form = format!("{}: `{TUNING}` takes nothing and gives a struct `Tuning` of numbers", path.display());
    let wrong = || Error::new(ErrorKind::Entry, form.clone());
    let function = program.function(TUNING)?;
    if !function.signature().ports.is_empty() {
        return Err(wrong());
    }
    let results = function.run(&Inputs::new().lanes(1), &Options::default())?;
    if !results.traps().is_empty() || results.outputs().values().any(|array| array.shape[..] != [1]) {
        return Err(wrong());
    }
    Ok(results.outputs().iter().map(|(name, array)| (name.clone(), array.get(0))).collect())
}

fn not_tunable(path: &Path, field: &str, tuning: Option<&IndexMap<String, Scalar>>) -> Error {
    let names: Vec<String> = tuning.into_iter().flat_map(|fields| fields.keys().map(|n| format!("`{n}`"))).collect();
    let there = match &names[..] {
        [] => "it has nothing that can be tuned".to_owned(),
        names => format!("what can be tuned is {}", names.join(", ")),
    };
    let message = format!("`{field}` means nothing to the sampler {}: {there}", path.display());
    Error::new(ErrorKind::Option, message)
}
