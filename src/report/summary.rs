//! The table that ends a sampling run: one line a scalar parameter, then what the sampler did and what to worry about.

use std::fmt;

use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use crate::mcmc::diagnostics;
use crate::types::{Array, Scalar};

/// R-hat at or above this is a warning.
const RHAT_LIMIT: f64 = 1.01;
/// Bulk or tail effective sample size below this for each of up to four chains is a warning.
const ESS_PER_CHAIN: f64 = 100.0;
/// E-BFMI below this is a warning.
const E_BFMI_LIMIT: f64 = 0.3;

/// What the draws say about one scalar parameter. Values that cannot be computed are NaN.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SummaryRow {
    /// Name with indices from 1, as Stan prints it: `theta[1]`, `m[2,3]`.
    pub name: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation.
    pub sd: f64,
    /// Monte Carlo standard error of the mean.
    pub mcse: f64,
    /// 5 % quantile.
    pub q05: f64,
    /// Median.
    pub q50: f64,
    /// 95 % quantile.
    pub q95: f64,
    /// Effective sample size for the bulk.
    pub ess_bulk: f64,
    /// Effective sample size for the tails.
    pub ess_tail: f64,
    /// Rank-normalised split R-hat.
    pub rhat: f64,
}

impl SummaryRow {
    /// The row of the scalar `name` with these draws, one vector a chain.
    pub fn of(name: impl Into<String>, chains: &[Vec<f64>]) -> Self {
        let quantiles = diagnostics::quantiles(chains, &[0.05, 0.5, 0.95]);
        Self {
            name: name.into(),
            mean: diagnostics::mean(chains),
            sd: diagnostics::sd(chains),
            mcse: diagnostics::mcse_mean(chains),
            q05: quantiles[0],
            q50: quantiles[1],
            q95: quantiles[2],
            ess_bulk: diagnostics::ess_bulk(chains),
            ess_tail: diagnostics::ess_tail(chains),
            rhat: diagnostics::rhat(chains),
        }
    }

    fn cells(&self) -> [String; 10] {
        [
            self.name.clone(),
            significant(self.mean, 4),
            significant(self.sd, 4),
            significant(self.mcse, 2),
            significant(self.q05, 4),
            significant(self.q50, 4),
            significant(self.q95, 4),
            whole(self.ess_bulk),
            whole(self.ess_tail),
            fixed(self.rhat, 3),
        ]
    }
}

/// What the sampler did over all chains, warmup excluded except where it says so.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SamplerStatistics {
    /// Chains.
    pub chains: usize,
    /// Draws kept, over all chains.
    pub draws: usize,
    /// Draws whose trajectory ended in a divergent transition.
    pub divergent: usize,
    /// Draws whose tree reached the largest depth.
    pub treedepth_saturated: usize,
    /// The largest tree depth, where the sampler has one.
    pub max_treedepth: Option<i64>,
    /// E-BFMI of each chain; empty where the sampler reports no energy.
    pub e_bfmi: Vec<f64>,
    /// Gradients evaluated, warmup included, over all chains.
    pub gradients: u64,
    /// Wall-clock time, warmup included.
    pub seconds: f64,
}

impl SamplerStatistics {
    /// Reads the streams `divergent`, `treedepth` and `energy`, each chain × draw, as far as the sampler has them.
    pub fn of(streams: &IndexMap<String, Array>, max_treedepth: Option<i64>, gradients: u64, seconds: f64) -> Self {
        let stream = |name: &str| streams.get(name).map_or_else(Vec::new, |array| scalar_chains(array, 0));
        let count =
            |name: &str, holds: &dyn Fn(f64) -> bool| stream(name).iter().flatten().filter(|x| holds(**x)).count();
        let extent = |axis: usize| streams.values().next().and_then(|a| a.shape.get(axis)).copied().unwrap_or(0);
        Self {
            chains: extent(0),
            draws: extent(0) * extent(1),
            divergent: count("divergent", &|x| x != 0.0),
            treedepth_saturated: max_treedepth.map_or(0, |max| count("treedepth", &|x| x >= max as f64)),
            max_treedepth,
            e_bfmi: stream("energy").iter().map(|chain| diagnostics::e_bfmi(chain)).collect(),
            gradients,
            seconds,
        }
    }

    /// Gradients a second; NaN when no time passed.
    pub fn gradients_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.gradients as f64 / self.seconds } else { f64::NAN }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.divergent > 0 {
            warnings.push(format!(
                "{} of {} transitions were divergent: the draws may miss part of the posterior; reparameterise, or raise the \
                 target acceptance rate",
                self.divergent, self.draws
            ));
        }
        if let Some(depth) = self.max_treedepth.filter(|_| self.treedepth_saturated > 0) {
            warnings.push(format!(
                "{} of {} transitions reached the largest tree depth, {depth}: the sampler is slow here, not wrong",
                self.treedepth_saturated, self.draws
            ));
        }
        let low = self.e_bfmi.iter().filter(|value| **value < E_BFMI_LIMIT).count();
        if low > 0 {
            warnings.push(format!(
                "E-BFMI is below {E_BFMI_LIMIT} in {low} of {} chains: the momentum explores the energies slowly; \
                 reparameterise",
                self.e_bfmi.len()
            ));
        }
        warnings
    }
}

/// The summary of a sampling run. `Display` renders it as text.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// One row a scalar, in the order of the parameters, row-major within one.
    pub rows: Vec<SummaryRow>,
    /// What the sampler did.
    pub sampler: SamplerStatistics,
    /// What to worry about, one line each.
    pub warnings: Vec<String>,
}

impl Summary {
    /// Summarises `parameters`: each an array chain × draw × event shape.
    pub fn of(parameters: &IndexMap<String, Array>, sampler: SamplerStatistics) -> Self {
        let rows: Vec<SummaryRow> = parameters.iter().flat_map(|(name, array)| rows_of(name, array)).collect();
        let mut warnings = sampler.warnings();
        warnings.extend(convergence_warnings(&rows, sampler.chains));
        Self { rows, sampler, warnings }
    }
}

fn rows_of(name: &str, array: &Array) -> Vec<SummaryRow> {
    let event = array.shape.get(2..).unwrap_or_default();
    let row = |element: usize| SummaryRow::of(element_name(name, event, element), &scalar_chains(array, element));
    (0..event.iter().product()).into_par_iter().map(row).collect()
}

/// The draws of one element of the event, one vector a chain.
fn scalar_chains(array: &Array, element: usize) -> Vec<Vec<f64>> {
    let chains = array.shape.first().copied().unwrap_or(0);
    let draws = array.shape.get(1).copied().unwrap_or(1);
    let elements: usize = array.shape.iter().skip(2).product();
    let at = |chain: usize, draw: usize| as_real(array.get((chain * draws + draw) * elements + element));
    (0..chains).map(|chain| (0..draws).map(|draw| at(chain, draw)).collect()).collect()
}

fn as_real(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Bool(b) => f64::from(u8::from(b)),
        Scalar::Int(i) => i as f64,
        Scalar::Real(r) => r,
    }
}

/// `theta[1]`, `m[2,3]`: the `element`-th in row-major order, counted from 1 along every axis.
pub fn element_name(name: &str, event_shape: &[usize], element: usize) -> String {
    if event_shape.is_empty() {
        return name.to_owned();
    }
    let mut rest = element;
    let mut indices: Vec<String> = event_shape
        .iter()
        .rev()
        .map(|extent| {
            let index = rest % extent + 1;
            rest /= extent;
            index.to_string()
        })
        .collect();
    indices.reverse();
    format!("{name}[{}]", indices.join(","))
}

fn convergence_warnings(rows: &[SummaryRow], chains: usize) -> Vec<String> {
    let enough = ESS_PER_CHAIN * chains.clamp(1, 4) as f64;
    let named = |holds: &dyn Fn(&SummaryRow) -> bool| {
        let names: Vec<&str> = rows.iter().filter(|row| holds(row)).map(|row| row.name.as_str()).collect();
        (!names.is_empty()).then(|| abridged(&names))
    };
    let rhat = named(&|row| row.rhat >= RHAT_LIMIT)
        .map(|names| format!("R-hat is {RHAT_LIMIT} or more for {names}: the chains do not agree yet; run longer"));
    let ess = named(&|row| row.ess_bulk < enough || row.ess_tail < enough)
        .map(|names| format!("the effective sample size is below {enough} for {names}: run longer"));
    let undefined = named(&|row| row.mean.is_nan()).map(|names| format!("draws that are not numbers: {names}"));
    [rhat, ess, undefined].into_iter().flatten().collect()
}

/// At most five names.
fn abridged(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

const HEADINGS: [&str; 10] = ["", "mean", "sd", "mcse", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat"];

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table: Vec<[String; 10]> =
            std::iter::once(HEADINGS.map(str::to_owned)).chain(self.rows.iter().map(SummaryRow::cells)).collect();
        let width = |column: usize| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 10] = std::array::from_fn(width);
        for cells in &table {
            write!(f, "{:<1$}", cells[0], widths[0])?;
            for (cell, width) in cells.iter().zip(widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        write!(f, "{}", self.sampler)?;
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SamplerStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} chains, {} draws, {} divergent transitions", self.chains, self.draws, self.divergent)?;
        let rate = self.gradients_per_second();
        let rate = if rate.is_nan() { "-".to_owned() } else { grouped(rate.round() as u64) };
        writeln!(f, "{} gradients in {:.2} s, {rate} gradients/s", grouped(self.gradients), self.seconds)
    }
}

/// 1234567 as `1,234,567`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `digits` significant digits, in scientific notation where plain digits would be long.
fn significant(x: f64, digits: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return fixed(x, 0);
    }
    let scientific = format!("{x:.*e}", digits - 1);
    // The exponent after rounding, so that 9.9999 is 10.00 and not 10.000.
    let exponent: i32 =
        scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).expect("`e` notation has an exponent");
    match exponent {
        -4..=5 => format!("{x:.*}", usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0)),
        _ => scientific,
    }
}

fn whole(x: f64) -> String {
    fixed(x, 0)
}

fn fixed(x: f64, decimals: usize) -> String {
    if x.is_nan() { "-".to_owned() } else { format!("{x:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are not.
    fn noise(chains: usize, draws: usize, elements: usize) -> Vec<f64> {
        let mut state: u64 = 1;
        let mut step = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        (0..chains * draws * elements).map(|_| step()).collect()
    }

    fn sample() -> Summary {
        let mut parameters = IndexMap::new();
        parameters.insert("m".to_owned(), Array::real([4, 250, 2, 2], noise(4, 250, 4)));
        parameters.insert("tau".to_owned(), Array::real([4, 250], vec![3.0; 1000]));
        let mut streams = IndexMap::new();
        let divergent = (0..1000).map(|i| i % 400 == 0).collect();
        streams.insert("divergent".to_owned(), Array::bool([4, 250], divergent));
        streams.insert("treedepth".to_owned(), Array::int([4, 250], vec![3; 1000]));
        streams.insert("energy".to_owned(), Array::real([4, 250], (0..1000).map(f64::from).collect()));
        Summary::of(&parameters, SamplerStatistics::of(&streams, Some(10), 1_234_567, 2.0))
    }

    #[test]
    fn summary_reads_like_this() {
        insta::assert_snapshot!(sample().to_string());
    }

    #[test]
    fn matrices_are_named_row_by_row_from_one() {
        let names: Vec<String> = sample().rows.into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["m[1,1]", "m[1,2]", "m[2,1]", "m[2,2]", "tau"]);
    }

    #[test]
    fn numbers_are_short_and_right() {
        let cases = [
            (9.99996, "10.00"),
            (-0.123456, "-0.1235"),
            (123456.7, "123457"),
            (1.5e7, "1.500e7"),
            (3e-9, "3.000e-9"),
            (0.0, "0"),
            (f64::NAN, "-"),
        ];
        for (x, text) in cases {
            assert_eq!(significant(x, 4), text);
        }
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(999), "999");
    }

    #[test]
    fn nothing_sampled_is_an_empty_table() {
        let summary = Summary::of(&IndexMap::new(), SamplerStatistics::default());
        assert!(summary.to_string().contains("0 chains, 0 draws"));
    }
}
