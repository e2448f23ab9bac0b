//! A sampler and the chain around it: where they are, and how they are set.

use std::path::{Path, PathBuf};

use super::settings::{
    self, CHECKPOINT_EVERY, INIT_RADIUS, MAX_TREEDEPTH, POOLED_WARMUP, SAVE_WARMUP, SamplerSettings, Setting,
    TARGET_ACCEPT, THIN, Tuning,
};
use crate::program::{Error, ErrorKind, Program};
use crate::types::Scalar;

/// The sampler that ships with autobatch: the library's, whatever lies in the current folder.
pub const DEFAULT_SAMPLER: &str = "std/nuts.ab";
/// The function that a sampler must export.
pub const TRANSITION: &str = "transition";
/// Its form.
pub(super) const FORM: &str = "pub fn transition[d](density: fn(real[d]) -> (real, real[d]), shared tuning: Tuning, \
                    inv_metric: real[d], stepsize: real, point: Point[d]) -> Transition[d]";
/// The module of phase space, which the chain and its sampler must have in common.
const PHASE_SPACE: &str = "hamiltonian.ab";
/// The module of chains.
const CHAIN: &str = "chain.ab";

/// A sampler and its chain.
#[derive(Clone, Debug)]
pub(super) struct Method {
    /// What users call the sampler.
    pub(super) name: String,
    /// What stands in the driver's `use` of the sampler.
    pub(super) sampler: String,
    /// What stands in its `use` of the chain.
    pub(super) chain: String,
    /// The settings of the sampler, if it has any.
    pub(super) of_sampler: Option<Tuning>,
    /// The settings of the chain.
    pub(super) of_chain: Tuning,
}

impl Method {
    /// Reads a sampler and its chain, and sets what is asked for. Starts that are given are taken as they are unless a
    /// radius is asked for.
    pub(super) fn new(sampler: Option<&Path>, asked: &SamplerSettings, starts: bool) -> Result<Self, Error> {
        let path = sampler.unwrap_or(Path::new(DEFAULT_SAMPLER));
        let name = path.display().to_string();
        let (module, program) = open(path)?;
        let (chain, chain_program) = open(&chain_of(&program))?;
        let Some(mut of_chain) = Tuning::read(&chain_program, CHAIN)? else {
            let message = format!("{}: a chain exports its settings by `tuning`", chain.trim_matches('"'));
            return Err(Error::new(ErrorKind::Entry, message));
        };
        let mut of_sampler = Tuning::read(&program, &name)?;
        if let Some(tuning) = &of_sampler {
            of_chain.take_defaults(tuning)?;
        }
        if let Some(radius) = of_chain.settings.iter_mut().find(|s| starts && s.name == INIT_RADIUS) {
            (radius.default, radius.value) = (Scalar::Real(0.0), Scalar::Real(0.0));
        }
        of_chain.set(asked)?;
        if let Some(tuning) = &mut of_sampler {
            tuning.set(asked)?;
        }
        let method = Self { name, sampler: module, chain, of_sampler, of_chain };
        let there = method.settings();
        if let Some(name) = asked.names().find(|name| !there.iter().any(|s| s.name == *name)) {
            return Err(settings::unknown(name, &method.name, &there));
        }
        method.of_chain.check(&chain_program)?;
        if let Some(tuning) = &method.of_sampler {
            tuning.check(&program)?;
        }
        Ok(method)
    }

    /// The file of the chain that goes with a sampler, if it is not the one that ships.
    ///
    /// # Errors
    /// For a sampler that cannot be read.
    pub(super) fn chain_file(sampler: &Path) -> Result<Option<std::path::PathBuf>, Error> {
        let chain = chain_of(&open(sampler)?.1);
        Ok(chain.is_file().then_some(chain))
    }

    /// All settings: those of the chain, then those that are the sampler's alone.
    pub(super) fn settings(&self) -> Vec<&Setting> {
        let own = self.of_sampler.iter().flat_map(|tuning| &tuning.settings);
        self.of_chain.settings.iter().chain(own.filter(|s| self.of_chain.get(&s.name).is_none())).collect()
    }

    fn number(&self, name: &str) -> Option<f64> {
        let setting = self.settings().into_iter().find(|s| s.name == name)?;
        match setting.value {
            Scalar::Real(r) => Some(r),
            Scalar::Int(i) => Some(i as f64),
            Scalar::Bool(_) => None,
        }
    }

    /// Doublings at which a trajectory ends, of a sampler that has such a limit.
    pub(super) fn max_treedepth(&self) -> Option<i64> {
        self.number(MAX_TREEDEPTH).map(|depth| depth as i64)
    }

    /// How far from their origin chains start.
    pub(super) fn init_radius(&self) -> f64 {
        self.number(INIT_RADIUS).unwrap_or(0.0)
    }

    /// Of so many iterations one tells the state of the chain; 0 tells none.
    pub(super) fn checkpoint_every(&self) -> usize {
        self.number(CHECKPOINT_EVERY).map_or(0, |n| n as usize)
    }

    /// Of so many iterations one is kept.
    pub(super) fn thin(&self) -> usize {
        self.number(THIN).map_or(1, |thin| (thin as usize).max(1))
    }

    /// Whether the states of warmup are kept.
    pub(super) fn saves_warmup(&self) -> bool {
        self.is_set(SAVE_WARMUP)
    }

    /// Whether warmup learns from the draws of all chains.
    pub(super) fn pools_warmup(&self) -> bool {
        self.is_set(POOLED_WARMUP)
    }

    fn is_set(&self, name: &str) -> bool {
        self.settings().iter().any(|s| s.name == name && s.value == Scalar::Bool(true))
    }

    /// The acceptance statistic that warmup aims at.
    pub(super) fn target_accept(&self) -> Option<f64> {
        self.number(TARGET_ACCEPT)
    }
}

/// All that can be set of a sampler, the one that ships where none is named, by default.
///
/// # Errors
/// For a sampler that cannot be read, has errors, or exports no transition.
pub fn settings_of(sampler: Option<&Path>) -> Result<Vec<Setting>, Error> {
    let method = Method::new(sampler, &SamplerSettings::new(), false)?;
    Ok(method.settings().into_iter().cloned().collect())
}

/// The program of a path, with what stands in a `use` of it.
fn open(path: &Path) -> Result<(String, Program), Error> {
    match path.to_str().and_then(|path| Some((path.to_owned(), Program::shipped(path)?))) {
        Some((module, program)) => Ok((module, program?)),
        None => Ok((quoted(path), Program::load(path)?)),
    }
}

/// The chain that shares its phase space with a sampler: it lies beside the one that the sampler uses.
fn chain_of(sampler: &Program) -> std::path::PathBuf {
    let is_phase_space = |path: &&Path| path.file_name().is_some_and(|name| name == PHASE_SPACE);
    let used = sampler.sources().files().map(|(_, file)| Path::new(&file.name)).find(is_phase_space);
    let beside = used.map(|path| path.with_file_name(CHAIN));
    let shipped = || Path::new("std").join(CHAIN);
    beside.filter(|chain| chain.is_file()).unwrap_or_else(shipped)
}

/// A path as a `use` has it: absolute, so that it is not looked for in the library.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The same as it stands there.
pub(super) fn quoted(path: &Path) -> String {
    absolute(path)
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('{', "{{")
        .replace('}', "}}")
}
