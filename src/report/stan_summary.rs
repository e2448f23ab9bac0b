//! The table of CmdStan's `stansummary`, of the chains of Stan CSV files.

use std::fmt;

use rayon::prelude::*;

use super::stan_csv::CsvChains;
use super::stan_csv::general;
use super::summary::{SummaryRow, element_name, scalar_chains};
use crate::mcmc::diagnostics;
use crate::types::Array;

/// The headings of the columns.
const HEADINGS: [&str; 12] =
    ["", "Mean", "MCSE", "StdDev", "MAD", "5%", "50%", "95%", "ESS_bulk", "ESS_tail", "ESS_bulk/s", "R_hat"];

/// Chains whose seconds are told one by one.
const LISTED: usize = 16;

/// A table with a row for each scalar: first what the sampler tells, then the parameters, those of an array in row-major
/// order. `Display` prints it.
#[derive(Clone, PartialEq, Debug)]
pub struct StanSummary {
    /// What the sampler tells: `lp__`, `accept_stat__`, …
    pub sampler: Vec<SummaryRow>,
    /// The parameters.
    pub parameters: Vec<SummaryRow>,
    /// Significant digits.
    pub digits: usize,
    head: String,
    foot: String,
    /// Seconds of sampling.
    seconds: f64,
}

impl StanSummary {
    /// Of the chains of a run.
    pub fn of(chains: &CsvChains, digits: usize) -> Self {
        let elements = |(name, array): (&String, &Array)| -> Vec<(String, Vec<Vec<f64>>)> {
            let event = &array.shape[2..];
            let all = 0..event.iter().product::<usize>();
            all.map(|element| (element_name(name, event, element), scalar_chains(array, element))).collect()
        };
        let rows = |scalars: Vec<(String, Vec<Vec<f64>>)>| -> Vec<SummaryRow> {
            scalars.into_par_iter().map(|(name, chains)| SummaryRow::of(name, &chains)).collect()
        };
        let of_sampler = chains.statistics.iter().map(|(name, array)| (format!("{name}__"), scalar_chains(array, 0)));
        Self {
            sampler: rows(of_sampler.collect()),
            parameters: rows(chains.parameters.iter().flat_map(elements).collect()),
            digits,
            head: head(chains),
            foot: foot(chains),
            seconds: chains.run_seconds().1,
        }
    }

    fn cells(&self, row: &SummaryRow) -> [String; 12] {
        let number = |x: f64| if x.is_nan() { "-".to_owned() } else { general(x, self.digits) };
        let count = |x: f64| if x.is_nan() { "-".to_owned() } else { format!("{x:.0}") };
        [
            row.name.clone(),
            number(row.mean),
            number(row.mcse),
            number(row.sd),
            number(row.mad),
            number(row.q05),
            number(row.q50),
            number(row.q95),
            count(row.ess_bulk),
            count(row.ess_tail),
            count(if self.seconds > 0.0 { row.ess_bulk / self.seconds } else { f64::NAN }),
            // Infinite of what is constant within chains, such as the step size, where it tells nothing.
            if row.rhat.is_finite() { format!("{:.3}", row.rhat) } else { "-".to_owned() },
        ]
    }
}

/// What ran.
fn head(chains: &CsvChains) -> String {
    let config = |key: &str| chains.config.get(key).cloned().unwrap_or_else(|| "?".to_owned());
    let (warmup, sampling) = chains.run_seconds();
    let each = |of: fn(&(f64, f64)) -> f64| -> String {
        let all: Vec<f64> = chains.seconds.iter().map(of).collect();
        if all.len() <= LISTED {
            return all.iter().map(|s| general(*s, 2)).collect::<Vec<_>>().join(", ");
        }
        let all = [all];
        let most = all[0].iter().copied().fold(0.0, f64::max);
        let [mean, sd, most] = [diagnostics::mean(&all), diagnostics::sd(&all), most].map(|x| general(x, 2));
        format!("mean {mean}, sd {sd}, at most {most}")
    };
    let count = chains.seconds.len();
    format!(
        "Inference for Stan model: {}\n{count} chains: each with {} draws; warmup={}; thin={}; {} draws saved.\n\n\
         Warmup took ({}) seconds, {} seconds total\nSampling took ({}) seconds, {} seconds total\n",
        config("model"),
        chains.draws,
        config("num_warmup"),
        config("thin"),
        count * chains.draws,
        each(|s| s.0),
        general(warmup, 2),
        each(|s| s.1),
        general(sampling, 2),
    )
}

/// What the columns mean.
fn foot(chains: &CsvChains) -> String {
    let config = |key: &str| chains.config.get(key).map(String::as_str);
    let by = match (config("algorithm"), config("engine")) {
        (Some(algorithm), Some(engine)) => format!("Samples were drawn using {algorithm} with {engine}.\n"),
        (Some(algorithm), None) => format!("Samples were drawn using {algorithm}.\n"),
        _ => String::new(),
    };
    let cut = if chains.uneven { "Chains differ in length: all are cut to the shortest.\n" } else { "" };
    format!(
        "{by}{cut}ESS_bulk and ESS_tail are the effective sample sizes of all draws, for the bulk and for the 5% and 95% \
         quantiles; MCSE is the standard error of the mean. R_hat is near 1 where the chains agree. `autobatch diagnose` \
         with the same files says what to look at.\n"
    )
}

impl fmt::Display for StanSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.head)?;
        let blank: [String; 12] = std::array::from_fn(|_| String::new());
        let mut table = vec![HEADINGS.map(str::to_owned), blank.clone()];
        table.extend(self.sampler.iter().map(|row| self.cells(row)));
        table.push(blank);
        table.extend(self.parameters.iter().map(|row| self.cells(row)));
        let widths: [usize; 12] =
            std::array::from_fn(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
        for row in &table {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(widths).skip(1) {
                line += &format!("  {cell:>width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        write!(f, "\n{}", self.foot)
    }
}
