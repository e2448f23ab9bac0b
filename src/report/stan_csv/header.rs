//! The comments in which CmdStan tells the configuration of a run: names, order and indentation are its own, since tools
//! read them.

use super::write::ChainRows;
use crate::mcmc::sampling::{Draws, Setting};
use crate::types::Scalar;

/// What a file tells of a run beside what the draws know.
#[derive(Clone, PartialEq, Debug)]
pub struct CsvRun {
    /// The name of the model.
    pub model: String,
    /// The sampler: `std/nuts.ab`, …
    pub sampler: String,
    /// The file of the data.
    pub data: Option<String>,
    /// Where chains start: a radius, or a file.
    pub init: String,
    /// The file of the inverse metric.
    pub metric_file: Option<String>,
    /// The seed.
    pub seed: u64,
    /// Iterations of each chain after warmup, those that are not kept included.
    pub num_samples: usize,
    /// Chains of the run.
    pub num_chains: usize,
    /// Significant digits of the numbers.
    pub digits: usize,
    /// Whether the step size and the metric of each chain go to a file of their own.
    pub saves_metric: bool,
    /// After how many iterations progress is told; none where a clock says when.
    pub refresh: Option<usize>,
}

/// The version of Stan whose files these are like.
const STAN_VERSION: [u32; 3] = [2, 39, 0];

impl CsvRun {
    /// The lines, without `# ` before them. `file` is the one that they are written to, `id` the number of its chain
    /// from 1.
    pub(super) fn lines(&self, draws: &Draws, rows: &ChainRows<'_>, id: u64, file: &str) -> Vec<String> {
        let mut lines = version_lines(&self.model);
        lines.extend(["method = sample (Default)".to_owned(), "  sample".to_owned()]);
        lines.extend(self.of_method(draws, rows).into_iter().map(|line| format!("    {line}")));
        let or_none = |file: &Option<String>| file.clone().unwrap_or_default();
        lines.extend([
            format!("id = {id}"),
            "data".to_owned(),
            format!("  file = {}", or_none(&self.data)),
            format!("init = {}", self.init),
            "random".to_owned(),
            format!("  seed = {}", self.seed),
            "output".to_owned(),
            format!("  file = {file}"),
            "  diagnostic_file =  (Default)".to_owned(),
            with_default("  refresh", self.refresh.unwrap_or(100), 100),
            with_default("  sig_figs", self.digits, super::DEFAULT_DIGITS),
            "num_threads = 1 (Default)".to_owned(),
        ]);
        lines
    }

    /// Those of the method `sample`.
    fn of_method(&self, draws: &Draws, rows: &ChainRows<'_>) -> Vec<String> {
        let setting = |name: &str, shown: &str| {
            let setting = draws.settings.iter().find(|s| s.name == name);
            setting.map(|s| told(shown, s))
        };
        // Readers compare what is told with what is there, so of a chain that was stopped it is what is there.
        let whole = rows.draws == self.num_samples.div_ceil(draws.thin);
        let num_samples = if whole { self.num_samples } else { rows.draws * draws.thin };
        // Nothing is adapted, but readers want some warmup where the others, whose names end in `engaged`, are as usual.
        let num_warmup = if self.is_fixed_param() { 1000 } else { rows.warmup };
        let engaged = self.is_fixed_param() || draws.stepsize.is_none();
        let mut lines =
            vec![with_default("num_samples", num_samples, 1000), with_default("num_warmup", num_warmup, 1000)];
        lines.extend(setting("save_warmup", "save_warmup"));
        lines.extend(setting("thin", "thin"));
        lines.push("adapt".to_owned());
        lines.push(with_default("  engaged", engaged, true));
        let adapt = ["gamma", "delta", "kappa", "t0", "init_buffer", "term_buffer", "window"];
        lines.extend(adapt.into_iter().filter_map(|name| {
            let ours = if name == "delta" { "target_accept" } else { name };
            setting(ours, &format!("  {name}"))
        }));
        lines.push(with_default("  save_metric", self.saves_metric, false));
        lines.extend(self.of_algorithm(draws));
        lines.push(with_default("num_chains", self.num_chains, 1));
        lines
    }

    /// The file name of the sampler.
    fn sampler(&self) -> &str {
        self.sampler.rsplit(['/', '\\']).next().unwrap_or_default()
    }

    /// Whether the sampler has nothing to adapt.
    pub(super) fn is_fixed_param(&self) -> bool {
        self.sampler() == "fixed_param.ab"
    }

    fn of_algorithm(&self, draws: &Draws) -> Vec<String> {
        let sampler = self.sampler();
        if self.is_fixed_param() {
            return vec!["algorithm = fixed_param".to_owned()];
        }
        let mut lines = vec!["algorithm = hmc (Default)".to_owned(), "  hmc".to_owned()];
        let of = |name: &str| draws.settings.iter().find(|s| s.name == name);
        if let Some(time) = of("int_time") {
            lines.extend(["    engine = static".to_owned(), "      static".to_owned(), told("        int_time", time)]);
        } else {
            let default = if sampler == "nuts.ab" { " (Default)" } else { "" };
            lines.extend([format!("    engine = nuts{default}"), "      nuts".to_owned()]);
            lines.extend(of("max_treedepth").map(|depth| told("        max_depth", depth)));
        }
        let default = if draws.metric.name() == "diag_e" { " (Default)" } else { "" };
        lines.push(format!("    metric = {}{default}", draws.metric.name()));
        lines.push(match &self.metric_file {
            Some(file) => format!("    metric_file = {file}"),
            None => "    metric_file =  (Default)".to_owned(),
        });
        match (draws.stepsize, of("initial_stepsize")) {
            (Some(stepsize), _) => lines.push(format!("    stepsize = {stepsize}")),
            (None, Some(initial)) => lines.push(told("    stepsize", initial)),
            (None, None) => {}
        }
        lines.extend(of("stepsize_jitter").map(|jitter| told("    stepsize_jitter", jitter)));
        lines
    }
}

/// What every file begins with.
pub(super) fn version_lines(model: &str) -> Vec<String> {
    let [major, minor, patch] = STAN_VERSION;
    vec![
        format!("stan_version_major = {major}"),
        format!("stan_version_minor = {minor}"),
        format!("stan_version_patch = {patch}"),
        format!("model = {model}"),
        format!("written_by = autobatch {}", env!("CARGO_PKG_VERSION")),
    ]
}

/// A line of a setting.
fn told(name: &str, setting: &Setting) -> String {
    let shown = |value: Scalar| match value {
        Scalar::Real(r) => r.to_string(),
        value => value.to_string(),
    };
    with_default(name, shown(setting.value), shown(setting.default))
}

fn with_default<T: PartialEq + std::fmt::Display>(name: &str, value: T, default: T) -> String {
    if value == default { format!("{name} = {value} (Default)") } else { format!("{name} = {value}") }
}
