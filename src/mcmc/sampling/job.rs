//! What to sample.

use std::path::{Path, PathBuf};

use super::method::quoted;
use super::settings::{SamplerSettings, TARGET_ACCEPT};
use crate::mcmc::log_prob::Terms;
use crate::program::{Error, ErrorKind, Program};
use crate::types::Array;

/// Where a model is.
#[derive(Clone, Copy, Debug)]
pub enum ModelSource<'a> {
    /// In a file.
    File(&'a Path),
    /// This is its text; what it uses is relative to the current folder.
    Text(&'a str),
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

/// What a model is called that is a text.
const TEXT: &str = "<model>";

impl ModelSource<'_> {
    /// Compiles it.
    pub(in crate::mcmc) fn program(&self) -> Result<Program, Error> {
        match self {
            ModelSource::File(path) => Program::load(path),
            ModelSource::Text(text) => Program::compile_named(TEXT, text),
        }
    }

    /// What users call it.
    pub(in crate::mcmc) fn name(&self) -> String {
        match self {
            ModelSource::File(path) => path.display().to_string(),
            ModelSource::Text(_) => "the model".to_owned(),
        }
    }

    /// The first of the terms that it cannot leave out or add: the option that asks for it.
    pub(in crate::mcmc) fn lacks_terms(&self, terms: Terms) -> Option<&'static str> {
        match self {
            ModelSource::File(_) | ModelSource::Text(_) if terms.constants => Some("--full"),
            ModelSource::File(_) | ModelSource::Text(_) if !terms.jacobian => Some("--no-jacobian"),
            ModelSource::File(_) | ModelSource::Text(_) => None,
        }
    }

    /// What stands in a `use` of it, and its text where that is no file.
    pub(super) fn module(&self) -> (String, Option<(&str, &str)>) {
        match self {
            ModelSource::File(path) => (quoted(path), None),
            ModelSource::Text(text) => (TEXT.to_owned(), Some((TEXT, text))),
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
    /// A step size that stays, with the unit metric: warmup then adapts nothing. Without it both are learnt.
    pub stepsize: Option<f64>,
    /// Where the chains start, chain × dimension, unconstrained; with fewer rows, a number that divides that of the
    /// chains, as many chains one after the other start at each. Without it every coordinate is uniform in (-2, 2).
    pub starts: Option<Array>,
    /// What is set of the sampler and its chain.
    pub settings: SamplerSettings,
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
            starts: None,
            settings: SamplerSettings::new(),
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
}
