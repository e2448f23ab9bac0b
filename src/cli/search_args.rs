//! What the commands that look for modes have in common: where they start, and L-BFGS.

use clap::Args;

use crate::mcmc::sampling::{INIT_RADIUS, SamplerSettings};
use crate::program::{Error, Options};
use crate::run::Trap;
use crate::types::Array;

use super::inits;
use super::model::Model;
use super::note;

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// Start within this distance of 0 in every unconstrained coordinate; or a file with the values of parameters by
    /// their names, as `sample --init` has it
    #[arg(long, value_name = "RADIUS|FILE,…", allow_hyphen_values = true)]
    pub(super) init: Option<String>,
    /// The number of the first start, from 1: it has the random stream of this number
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub(super) id: u64,
}

impl StartArgs {
    /// The points that are given for so many starts.
    ///
    /// # Errors
    /// For files that cannot be read, and what the model does not take.
    pub(super) fn points(&self, model: &Model<'_>, starts: usize, options: &Options) -> Result<Option<Array>, Error> {
        let Some(files) = self.init.as_deref().and_then(inits::files) else { return Ok(None) };
        inits::inits(&files, model, (starts, self.id), options).map(Some)
    }

    /// What the header of Stan CSV tells.
    pub(super) fn told(&self) -> Option<String> {
        self.init.clone()
    }
}

/// Tolerances and other settings of quasi-Newton algorithms.
#[derive(Debug, Args)]
pub(super) struct ToleranceArgs {
    /// The first step of the first line search [default: 0.001]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    init_alpha: Option<String>,
    /// Stop where the log density changes by less [default: 1e-12]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_obj: Option<String>,
    /// Stop where the log density changes by less than so many units in its last place [default: 1e4]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_rel_obj: Option<String>,
    /// Stop where the norm of the gradient is less [default: 1e-8]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_grad: Option<String>,
    /// Stop where the gradient, by the inverse Hessian, is less than so many units in the last place of the log density
    /// [default: 1e7]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_rel_grad: Option<String>,
    /// Stop where the norm of a step is less [default: 1e-8]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    tol_param: Option<String>,
    /// Steps that L-BFGS remembers
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) history_size: usize,
}

impl ToleranceArgs {
    /// What is asked for, with the radius of starts and the number of iterations.
    ///
    /// # Errors
    /// For what is no number.
    pub(super) fn settings(&self, starts: &StartArgs, iter: Option<usize>) -> Result<SamplerSettings, Error> {
        let radius = starts.init.clone().filter(|text| inits::files(text).is_none());
        let iter = iter.map(|n| n.to_string());
        let all = [
            (INIT_RADIUS, &radius),
            ("init_alpha", &self.init_alpha),
            ("tol_obj", &self.tol_obj),
            ("tol_rel_obj", &self.tol_rel_obj),
            ("tol_grad", &self.tol_grad),
            ("tol_rel_grad", &self.tol_rel_grad),
            ("tol_param", &self.tol_param),
            ("iter", &iter),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        given.into_iter().try_fold(SamplerSettings::new(), |settings, text| settings.with_text(&text))
    }
}

/// Tells of starts that found no point to begin.
pub(super) fn report_traps(what: &str, traps: &[Trap]) {
    for trap in traps.iter().take(5) {
        let message = if trap.message.is_empty() { String::new() } else { format!(": {}", trap.message) };
        note(&format!("{what} {}: {}{message}", trap.position, trap.kind));
    }
    if traps.len() > 5 {
        note(&format!("… and {} more", traps.len() - 5));
    }
}

/// A switch as CmdStan has it.
pub(super) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err("expected 0 or 1".to_owned()),
    }
}
