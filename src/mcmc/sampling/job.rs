//! What to sample.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::data_sets::DataSets;
use super::method::{absolute, quoted};
use super::model::DENSITY_WITHOUT_JACOBIAN;
use super::settings::{SamplerSettings, TARGET_ACCEPT};
use crate::base::path::normal;
use crate::program::{Error, ErrorKind, MadeModule, Program, StanModel, TRANSLATED, Terms, Varying};
use crate::store::Coordinates;
use crate::types::Array;

/// Where a model is.
#[derive(Clone, Copy, Debug)]
pub enum ModelSource<'a> {
    /// In a file.
    File(&'a Path),
    /// This is its text; what it uses is relative to the current folder.
    Text(&'a str),
    /// A Stan program with its data.
    Stan(&'a StanModel),
}

impl<'a> From<&'a Path> for ModelSource<'a> {
    fn from(path: &'a Path) -> Self {
        ModelSource::File(path)
    }
}

impl<'a> From<&'a PathBuf> for ModelSource<'a> {
    fn from(path: &'a PathBuf) -> Self {
        ModelSource::File(path)
    }
}

impl<'a> From<&'a StanModel> for ModelSource<'a> {
    fn from(model: &'a StanModel) -> Self {
        ModelSource::Stan(model)
    }
}

/// What a model is called that is a text.
const TEXT: &str = "<model>";

impl ModelSource<'_> {
    /// Compiles it.
    pub(in crate::mcmc) fn program(&self) -> Result<Program, Error> {
        self.program_varying(&[])
    }

    /// Compiles it, so that each lane has a value of its own of these data.
    pub(super) fn program_varying(&self, varying: &[String]) -> Result<Program, Error> {
        match self {
            ModelSource::File(path) => Program::load_varying(path, varying),
            ModelSource::Text(text) => Program::compile_varying(TEXT, text, varying),
            ModelSource::Stan(model) => Program::compile_made(&model.module(), varying),
        }
    }

    /// The module of it, as a program that uses it resolves its name, and data of which each lane has its own.
    pub(super) fn varying(&self, names: Vec<String>) -> Varying {
        let module = match self {
            ModelSource::File(path) => normal(&absolute(path)).display().to_string(),
            ModelSource::Text(_) => TEXT.to_owned(),
            ModelSource::Stan(_) => TRANSLATED.to_owned(),
        };
        Varying { module, names }
    }

    /// What users call it.
    pub(in crate::mcmc) fn name(&self) -> String {
        match self {
            ModelSource::File(path) => path.display().to_string(),
            ModelSource::Text(_) => "the model".to_owned(),
            ModelSource::Stan(model) => model.name().to_owned(),
        }
    }

    /// The first of the terms that it cannot leave out or add, compiled: the option that asks for it.
    pub(in crate::mcmc) fn lacks_terms(&self, compiled: &Program, terms: Terms) -> Option<&'static str> {
        let declared = || compiled.functions().any(|name| name == DENSITY_WITHOUT_JACOBIAN);
        match self {
            ModelSource::File(_) | ModelSource::Text(_) if terms.constants => Some("--full"),
            ModelSource::File(_) | ModelSource::Text(_) if !terms.jacobian && !declared() => Some("--no-jacobian"),
            ModelSource::File(_) | ModelSource::Text(_) => None,
            ModelSource::Stan(_) => None,
        }
    }

    /// Whether its density can be had without the Jacobian of its transforms: that of a Stan program, or of a model with
    /// its constraints in the signature.
    ///
    /// # Errors
    /// For a model that cannot be read or has errors.
    pub fn knows_jacobian(&self) -> Result<bool, Error> {
        let terms = Terms { constants: false, jacobian: false };
        Ok(self.lacks_terms(&self.program()?, terms).is_none())
    }

    /// What stands in a `use` of it, and its text where that is no file.
    pub(in crate::mcmc) fn module(&self) -> (String, Option<MadeModule<'_>>) {
        match self {
            ModelSource::File(path) => (quoted(path), None),
            ModelSource::Text(text) => (TEXT.to_owned(), Some(MadeModule { name: TEXT, text, origin: None })),
            ModelSource::Stan(model) => (TRANSLATED.to_owned(), Some(model.module())),
        }
    }
}

/// What is learnt of the covariance of the posterior: the inverse metric of the momenta is the estimate of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Metric {
    /// Nothing: it is the unit matrix. Stan's `unit_e`.
    Unit,
    /// The variances. Stan's `diag_e`.
    #[default]
    Diagonal,
    /// The whole covariance. Stan's `dense_e`.
    Dense,
}

impl Metric {
    /// Stan's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Unit => "unit_e",
            Metric::Diagonal => "diag_e",
            Metric::Dense => "dense_e",
        }
    }
}

/// What to sample.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The model.
    pub model: ModelSource<'a>,
    /// The sampler; the shipped NUTS where there is none.
    pub sampler: Option<&'a Path>,
    /// Chains.
    pub chains: usize,
    /// Warmup iterations of each chain.
    pub warmup: usize,
    /// Draws of each chain after warmup.
    pub draws: usize,
    /// A step size that stays: warmup then adapts nothing, and the metric is `inv_metric`, or the unit metric. Without
    /// it both are learnt.
    pub stepsize: Option<f64>,
    /// What is learnt of the metric.
    pub metric: Metric,
    /// The inverse metric to start with, dimension, or dimension × dimension of a dense one. Without it ones on the
    /// diagonal. With an axis over the chains before its own, each chain has one.
    pub inv_metric: Option<Array>,
    /// Where the chains start, chain × dimension, unconstrained; with fewer rows, a number that divides that of the
    /// chains, as many chains one after the other start at each. Without it every coordinate is uniform in (-2, 2).
    pub starts: Option<Array>,
    /// What is set of the sampler and its chain.
    pub settings: SamplerSettings,
    /// Data of which each data set has its own: the data of the model are then the others. There is a multiple of as many
    /// chains.
    pub data_sets: Option<DataSets>,
    /// What axes of variables and data are called, where it is not as the model has it: `school` of `theta`.
    pub dims: IndexMap<String, Vec<String>>,
    /// What stands along axes.
    pub coords: Coordinates,
    /// Whether chains can start from the states that they had in an earlier run.
    pub resumes: bool,
}

impl<'a> Job<'a> {
    /// 4 chains of 1000 warmup iterations and 1000 draws from a model.
    pub fn new(model: impl Into<ModelSource<'a>>) -> Self {
        let model = model.into();
        let (chains, warmup, draws) = (4, 1000, 1000);
        Job {
            model,
            sampler: None,
            chains,
            warmup,
            draws,
            stepsize: None,
            metric: Metric::default(),
            inv_metric: None,
            starts: None,
            settings: SamplerSettings::new(),
            data_sets: None,
            dims: IndexMap::new(),
            coords: Coordinates::new(),
            resumes: false,
        }
    }

    /// Refuses what makes no sense whatever the model and the sampler.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        // No more draws than these have room in any memory.
        if self.warmup > usize::MAX / 4 {
            return refused(format!("{} iterations of warmup are more than a chain can count", self.warmup));
        }
        match self.stepsize {
            Some(eps) if !(eps > 0.0 && eps.is_finite()) => {
                return refused(format!("the step size must be a positive number, not {eps}"));
            }
            Some(_) if self.settings.get(TARGET_ACCEPT).is_some() => {
                return refused(format!("the step size is given and stays: {TARGET_ACCEPT} means nothing then"));
            }
            _ => {}
        }
        self.check_metric()?;
        match &self.starts {
            Some(starts)
                if starts.shape.len() != 2
                    || starts.as_real().is_none()
                    || starts.shape[0] == 0
                    || !self.chains.is_multiple_of(starts.shape[0]) =>
            {
                refused(format!(
                    "{} chains need starts of the type real[{}, _], one row for all of them, or a number of rows that divides {}, not {}",
                    self.chains,
                    self.chains,
                    self.chains,
                    starts.ty()
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether each chain has an inverse metric of its own.
    pub(super) fn has_metrics(&self) -> bool {
        let own = if self.metric == Metric::Dense { 2 } else { 1 };
        self.inv_metric.as_ref().is_some_and(|metric| metric.shape.len() == own + 1)
    }

    /// Refuses an inverse metric that is none.
    fn check_metric(&self) -> Result<(), Error> {
        let Some(given) = &self.inv_metric else { return Ok(()) };
        if self.metric == Metric::Unit || !self.has_metrics() {
            return self.check_one_metric(given);
        }
        let count = given.shape[0];
        if count != self.chains {
            let message = format!("{count} inverse metrics for {} chains: one for all, or one for each", self.chains);
            return Err(Error::new(ErrorKind::Option, message));
        }
        (0..count).try_for_each(|chain| {
            let mut one = given.rows(chain..chain + 1);
            one.shape.remove(0);
            self.check_one_metric(&one)
        })
    }

    fn check_one_metric(&self, given: &Array) -> Result<(), Error> {
        let name = self.metric.name();
        let refused = |why: String| Err(Error::new(ErrorKind::Option, format!("the inverse metric {why}")));
        let Some(values) = given.as_real() else { return refused(format!("holds no reals, but {}", given.ty())) };
        match (self.metric, &given.shape[..]) {
            (Metric::Unit, _) => refused(format!("of {name} is known: none can be given")),
            (Metric::Diagonal, [_]) => match values.iter().find(|v| !(**v > 0.0 && v.is_finite())) {
                Some(value) => refused(format!("must hold positive numbers, not {value}")),
                None => Ok(()),
            },
            (Metric::Dense, [d, columns]) if d == columns => {
                let differ = (0..*d).flat_map(|i| (0..i).map(move |j| (i, j))).find(|(i, j)| {
                    let (a, b) = (values[i * d + j], values[j * d + i]);
                    // A NaN is equal to nothing.
                    let equal = (a - b).abs() <= 1e-8 * a.abs().max(b.abs()).max(1.0);
                    !equal
                });
                match differ {
                    Some((i, j)) => refused(format!("is not symmetric: look at row {} and column {}", i + 1, j + 1)),
                    None if !is_positive_definite(values, *d) => refused("is not positive definite".to_owned()),
                    None => Ok(()),
                }
            }
            (Metric::Diagonal, _) => refused(format!("of {name} is a list of numbers, not {}", given.ty())),
            (Metric::Dense, _) => refused(format!("of {name} is a square matrix, not {}", given.ty())),
        }
    }
}

/// Whether a symmetric matrix has a Cholesky factor.
fn is_positive_definite(matrix: &[f64], d: usize) -> bool {
    let mut factor = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| factor[i * d + k] * factor[j * d + k]).sum();
            let rest = matrix[i * d + j] - known;
            if i == j && !(rest > 0.0 && rest.is_finite()) {
                return false;
            }
            factor[i * d + j] = if i == j { rest.sqrt() } else { rest / factor[j * d + j] };
        }
    }
    true
}
