//! The arguments of `sample` that have CmdStan's names: what a chain does, and the file of its draws.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::mcmc::sampling::{INIT_RADIUS, MAX_TREEDEPTH, Metric, POOLED_WARMUP, SAVE_WARMUP, SamplerSettings};
use crate::mcmc::sampling::{TARGET_ACCEPT, THIN};
use crate::program::Error;
use crate::report::stan_csv::DEFAULT_DIGITS;

use super::args::{count, yes_or_no};

#[derive(Debug, Args)]
pub(super) struct ChainArgs {
    /// Short for --set target_accept=RATE: the mean acceptance rate that the step size is adapted to
    #[arg(long, visible_alias = "delta", value_name = "RATE", allow_hyphen_values = true)]
    pub(super) target_accept: Option<String>,
    /// Short for --set max_treedepth=N: doublings after which a trajectory of NUTS is long enough
    #[arg(long, visible_alias = "max-depth", value_name = "N", allow_hyphen_values = true)]
    pub(super) max_treedepth: Option<String>,
    /// Chains start within this distance of 0, or of their --starts (--set init_radius=RADIUS); or a file with the values
    /// of parameters by their names, as CmdStan has it: those that it does not name are drawn. With FILE_1.json, FILE_2.json,
    /// … in the place of FILE.json, or FILE.json,FILE.json,…, each chain has its own
    #[arg(long, visible_alias = "init", value_name = "RADIUS|FILE,…", allow_hyphen_values = true)]
    pub(super) init_radius: Option<String>,
    /// Where the chains start, unconstrained: a row for each, or fewer, each for as many chains one after the other
    #[arg(long, value_name = "FILE.npy|.json")]
    pub(super) starts: Option<PathBuf>,
    /// A step size that stays, with the unit metric or that of --metric-file: warmup adapts nothing
    #[arg(long, allow_negative_numbers = true)]
    pub(super) stepsize: Option<f64>,
    /// The step size at which adaptation starts (CmdStan's `stepsize`): --set initial_stepsize=EPS
    #[arg(long, value_name = "EPS", allow_hyphen_values = true, conflicts_with = "stepsize")]
    pub(super) initial_stepsize: Option<String>,
    /// Each transition has a step size of its own, within this part of the nominal one: --set stepsize_jitter=PART
    #[arg(long, value_name = "PART", allow_hyphen_values = true)]
    pub(super) stepsize_jitter: Option<String>,
    /// Whether warmup adapts: 0 keeps the step size (1 where none is given) and the metric
    #[arg(long, value_name = "0|1", value_parser = yes_or_no)]
    pub(super) adapt_engaged: Option<bool>,
    /// What is learnt of the metric: nothing, the variances, the covariances
    #[arg(long, value_enum)]
    pub(super) metric: Option<MetricName>,
    /// The inverse metric to start with: a list of numbers, or of rows for dense_e, as the key `inv_metric`. With FILE_1.json,
    /// FILE_2.json, … in the place of FILE.json, or FILE.json,FILE.json,…, each chain has its own
    #[arg(long, value_name = "FILE.json|.npy,…", value_delimiter = ',')]
    pub(super) metric_file: Vec<PathBuf>,
    /// Write step size and inverse metric of each chain to FILE_metric.json beside its file, as --metric-file reads them
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", value_parser = yes_or_no)]
    pub(super) save_metric: Option<bool>,
    /// How chains move: std/nuts.ab, std/static_hmc.ab, std/fixed_param.ab
    #[arg(long, value_enum, conflicts_with = "sampler")]
    pub(super) algorithm: Option<AlgorithmName>,
    /// Of --algorithm static, the length of a trajectory in units of time: --set int_time=TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) int_time: Option<String>,
    /// Keep one of so many draws: --set thin=N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) thin: Option<String>,
    /// Write the states of warmup, too: --set save_warmup=true
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", value_parser = yes_or_no)]
    pub(super) save_warmup: Option<bool>,
    /// Let warmup learn from the draws of all chains, window by window: --set pooled_warmup=true
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", value_parser = yes_or_no)]
    pub(super) pooled_warmup: Option<bool>,
    /// Iterations of warmup before the metric is learnt: --set init_buffer=N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) init_buffer: Option<String>,
    /// Iterations of warmup after the metric is learnt: --set term_buffer=N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) term_buffer: Option<String>,
    /// Iterations of the first window in which the metric is learnt: --set window=N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) window: Option<String>,
    /// Of dual averaging: --set gamma=X
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(super) gamma: Option<String>,
    /// Of dual averaging: --set kappa=X
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(super) kappa: Option<String>,
    /// Of dual averaging: --set t0=X
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(super) t0: Option<String>,
    /// The number of the first chain, from 1: it has the random stream of this number
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(super) id: u64,
    /// How progress is shown: `auto` has bars on a terminal and lines elsewhere, `json` an object a second on standard error
    #[arg(long, value_enum, default_value_t = ProgressName::Auto)]
    pub(super) progress: ProgressName,
    /// Tell how far the chains are after so many iterations of the slowest; 0 tells nothing
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) refresh: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct DrawsFileArgs {
    /// Write the draws to this file; of .csv one for each chain, with _1, _2, … behind the name
    #[arg(long, value_name = "FILE.npz|.json|.csv")]
    pub(super) output: Option<PathBuf>,
    /// What is written: arrays of all chains, or Stan CSV (to output.csv where --output does not say)
    #[arg(long, value_enum)]
    pub(super) format: Option<DrawsFormat>,
    /// Significant digits in Stan CSV, 1 to 18 [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=18))]
    pub(super) sig_figs: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DrawsFormat {
    /// .npz or .json
    Arrays,
    /// One file a chain, as CmdStan writes it
    StanCsv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MetricName {
    #[value(name = "unit_e", alias = "unit")]
    Unit,
    #[value(name = "diag_e", alias = "diag")]
    Diagonal,
    #[value(name = "dense_e", alias = "dense")]
    Dense,
}

impl From<MetricName> for Metric {
    fn from(name: MetricName) -> Self {
        match name {
            MetricName::Unit => Metric::Unit,
            MetricName::Diagonal => Metric::Diagonal,
            MetricName::Dense => Metric::Dense,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AlgorithmName {
    /// The No-U-Turn Sampler
    Nuts,
    /// Hamiltonian Monte Carlo with trajectories of one length
    Static,
    /// No moves: only `parameters` draws
    #[value(name = "fixed_param")]
    FixedParam,
}

impl AlgorithmName {
    /// The sampler.
    pub(super) fn sampler(self) -> &'static str {
        match self {
            AlgorithmName::Nuts => "std/nuts.ab",
            AlgorithmName::Static => "std/static_hmc.ab",
            AlgorithmName::FixedParam => "std/fixed_param.ab",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressName {
    /// Bars on a terminal, else lines
    Auto,
    /// A bar for each of up to eight groups of chains
    Bar,
    /// A line every ten seconds, and at every tenth
    Lines,
    /// A JSON object a second
    Json,
    /// Nothing
    None,
}

impl DrawsFileArgs {
    /// Significant digits of Stan CSV.
    pub(super) fn digits(&self) -> usize {
        self.sig_figs.map_or(DEFAULT_DIGITS, |n| n as usize)
    }
}

impl ChainArgs {
    /// All that is asked for of the sampler, with what `--set` says.
    ///
    /// # Errors
    /// For what is no number, and what is set twice.
    pub(super) fn settings(&self, set: &[String]) -> Result<SamplerSettings, Error> {
        if let Some(text) = self.radius() {
            super::inits::check_radius(text)?;
        }
        let shorts = [
            (TARGET_ACCEPT, &self.target_accept),
            (MAX_TREEDEPTH, &self.max_treedepth),
            (INIT_RADIUS, &self.radius().map(str::to_owned)),
            ("initial_stepsize", &self.initial_stepsize.clone().filter(|_| self.adapt_engaged != Some(false))),
            ("stepsize_jitter", &self.stepsize_jitter),
            ("int_time", &self.int_time),
            (THIN, &self.thin),
            (SAVE_WARMUP, &self.save_warmup.map(|save| save.to_string())),
            (POOLED_WARMUP, &self.pooled_warmup.map(|pools| pools.to_string())),
            ("init_buffer", &self.init_buffer),
            ("term_buffer", &self.term_buffer),
            ("window", &self.window),
            ("gamma", &self.gamma),
            ("kappa", &self.kappa),
            ("t0", &self.t0),
        ]
        .map(|(name, value)| value.as_ref().map(|value| format!("{name}={value}")));
        let all = set.iter().cloned().chain(shorts.into_iter().flatten());
        all.into_iter().try_fold(SamplerSettings::new(), |settings, text| settings.with_text(&text))
    }

    /// The radius that `--init` tells.
    fn radius(&self) -> Option<&str> {
        self.init_radius.as_deref().filter(|_| self.init_files().is_none())
    }

    /// The files that `--init` names.
    pub(super) fn init_files(&self) -> Option<Vec<PathBuf>> {
        super::inits::files(self.init_radius.as_deref()?)
    }
}
