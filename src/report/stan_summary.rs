//! The table of CmdStan's `stansummary`, of the chains of Stan CSV files.

use std::fmt;

use rayon::prelude::*;

use super::stan_csv::general;
use super::stored::StoredChains;
use super::summary::{SummaryRow, scalar_chains};
use crate::mcmc::diagnostics::{self, quantiles};
use crate::types::Array;

/// The headings of the columns before quantiles, and behind them.
const HEADINGS: ([&str; 4], [&str; 4]) =
    (["Mean", "MCSE", "StdDev", "MAD"], ["ESS_bulk", "ESS_tail", "ESS_bulk/s", "R_hat"]);

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
    /// Quantiles that are shown, in percent.
    percentiles: Vec<f64>,
    /// Those of each row.
    quantiles: Vec<Vec<f64>>,
    head: String,
    foot: String,
    /// Seconds of sampling.
    seconds: f64,
}

impl StanSummary {
    /// Of the chains of a run, with these quantiles in percent.
    pub fn of(chains: &StoredChains, digits: usize, percentiles: &[f64]) -> Self {
        let elements = |(name, array): (&String, &Array)| -> Vec<(String, Vec<Vec<f64>>)> {
            let event = &array.shape[2..];
            let all = 0..event.iter().product::<usize>();
            all.map(|element| (chains.names.element(name, event, element), scalar_chains(array, element))).collect()
        };
        let rows = |scalars: Vec<(String, Vec<Vec<f64>>)>| -> Vec<SummaryRow> {
            scalars.into_par_iter().map(|(name, chains)| SummaryRow::of(name, &chains)).collect()
        };
        let of_sampler = chains.statistics.iter().map(|(name, array)| (format!("{name}__"), scalar_chains(array, 0)));
        let (of_sampler, of_model): (Vec<_>, Vec<_>) =
            (of_sampler.collect(), chains.parameters.iter().flat_map(elements).collect());
        let parts: Vec<f64> = percentiles.iter().map(|percent| percent / 100.0).collect();
        let all: Vec<&Vec<Vec<f64>>> = of_sampler.iter().chain(&of_model).map(|(_, chains)| chains).collect();
        let quantiles = all.into_par_iter().map(|chains| quantiles(chains, &parts)).collect();
        Self {
            quantiles,
            percentiles: percentiles.to_vec(),
            sampler: rows(of_sampler),
            parameters: rows(of_model),
            digits,
            head: head(chains),
            foot: foot(chains),
            seconds: chains.run_seconds().1,
        }
    }

    /// Name, figures and R-hat of a row; `figure` writes one.
    fn cells(&self, at: usize, row: &SummaryRow, figure: &dyn Fn(f64) -> String) -> Vec<String> {
        let count = |x: f64| if x.is_nan() { figure(x) } else { format!("{x:.0}") };
        let mut cells = vec![row.name.clone()];
        cells.extend([row.mean, row.mcse, row.sd, row.mad].map(figure));
        cells.extend(self.quantiles[at].iter().map(|x| figure(*x)));
        let rate = if self.seconds > 0.0 { row.ess_bulk / self.seconds } else { f64::NAN };
        cells.extend([row.ess_bulk, row.ess_tail, rate].map(count));
        // Infinite of what is constant within chains, such as the step size, where it tells nothing.
        cells.push(if row.rhat.is_finite() { format!("{:.3}", row.rhat) } else { figure(f64::NAN) });
        cells
    }

    fn headings(&self) -> Vec<String> {
        let quantiles = self.percentiles.iter().map(|percent| format!("{percent}%"));
        let (before, behind) = HEADINGS;
        let named = |names: [&str; 4]| names.map(str::to_owned);
        [String::new()].into_iter().chain(named(before)).chain(quantiles).chain(named(behind)).collect()
    }

    /// All rows, those of the sampler first.
    fn rows(&self) -> impl Iterator<Item = (usize, &SummaryRow)> {
        self.sampler.iter().chain(&self.parameters).enumerate()
    }

    /// The table as CSV.
    pub fn csv(&self) -> String {
        let figure = |x: f64| if x.is_nan() { "nan".to_owned() } else { general(x, self.digits) };
        let quoted = |text: &str| match text.contains([',', '"']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        };
        let line = |cells: Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
        let mut headings = self.headings();
        headings[0] = "name".to_owned();
        let rows = self.rows().map(|(at, row)| line(self.cells(at, row, &figure)));
        std::iter::once(line(headings)).chain(rows).collect()
    }
}

/// What ran.
fn head(chains: &StoredChains) -> String {
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
    // A file of arrays tells no more.
    if chains.config.is_empty() {
        let s = if count == 1 { "" } else { "s" };
        return format!("{count} chain{s}: each with {} draws; {} draws saved.\n", chains.draws, count * chains.draws);
    }
    // Stores of other libraries may name none.
    let model = chains.config.get("model").map_or(String::new(), |m| format!("Inference for Stan model: {m}\n"));
    let time = if warmup + sampling > 0.0 {
        format!(
            "\nWarmup took ({}) seconds, {} seconds total\nSampling took ({}) seconds, {} seconds total\n",
            each(|s| s.0),
            general(warmup, 2),
            each(|s| s.1),
            general(sampling, 2),
        )
    } else {
        // Stores of Zarr do not tell it.
        String::new()
    };
    format!(
        "{model}{count} chain{}: each with {} draws; warmup={}; thin={}; {} draws saved.\n{time}",
        if count == 1 { "" } else { "s" },
        chains.draws,
        config("num_warmup"),
        config("thin"),
        count * chains.draws,
    )
}

/// What the columns mean.
fn foot(chains: &StoredChains) -> String {
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
        let headings = self.headings();
        let blank = vec![String::new(); headings.len()];
        let mut table = vec![headings, blank.clone()];
        let figure = |x: f64| if x.is_nan() { "-".to_owned() } else { general(x, self.digits) };
        for (at, row) in self.rows() {
            if at == self.sampler.len() {
                table.push(blank.clone());
            }
            table.push(self.cells(at, row, &figure));
        }
        let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..blank.len()).map(width).collect();
        for row in &table {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line += &format!("  {cell:>width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        write!(f, "\n{}", self.foot)
    }
}
