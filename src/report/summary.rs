//! The table that ends a sampling run: one line a scalar parameter, then what the sampler did and what to worry about.

use std::fmt;

use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use super::advice::{Advice, Concern, Warning};
use super::element_names::{ElementName, ElementNames, is_asked_for};
use super::failed::failed_draws;
use super::statistics::SamplerStatistics;
use super::stored::StoredChains;
use crate::mcmc::diagnostics::{self, RHAT_LIMIT};
use crate::mcmc::sampling::{Draws, FailedDraws, StoredDraws, StoredPart};
use crate::program::Error;
use crate::store::RunStore;
use crate::types::{Array, Scalar};

/// Bulk or tail effective sample size below this for each of up to four chains is a warning.
pub(super) const ESS_PER_CHAIN: f64 = 100.0;
/// How many times as many draws are advised at most.
const MOST_TIMES: f64 = 10.0;
/// What the draws say about one scalar parameter. Values that cannot be computed are NaN.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct SummaryRow {
    /// Name with indices from 1, as Stan prints it, `theta[1]`, `m[2,3]`, or with labels, `theta[Choate]`.
    pub name: String,
    /// That with indices, where `name` has labels.
    #[serde(skip)]
    pub by_index: Option<String>,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation.
    pub sd: f64,
    /// Monte Carlo standard error of the mean.
    pub mcse: f64,
    /// Median absolute deviation from the median, times 1.4826: the standard deviation of a normal with this one.
    pub mad: f64,
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
    /// Nested R-hat, where the chains are superchains: see [`diagnostics::rhat_nested`].
    pub rhat_nested: Option<f64>,
    /// R-hat of chains of this length that agree, where R-hat is large; else 1.
    pub rhat_expected: f64,
    /// Whether the chains agree, by the nested R-hat where there is one, else by R-hat as far as the length of the chains lets
    /// it tell.
    pub chains_agree: bool,
    /// Draws that are not finite.
    pub infinite: usize,
    /// Draws that are NaN.
    pub not_numbers: usize,
}

impl SummaryRow {
    /// The row of the scalar `name` with these draws, one vector a chain.
    pub fn of(name: impl Into<String>, chains: &[Vec<f64>]) -> Self {
        Self::of_superchains(name, chains, None)
    }

    /// The same of chains that are so many superchains, one after the other.
    fn of_superchains(name: impl Into<String>, chains: &[Vec<f64>], superchains: Option<usize>) -> Self {
        let quantiles = diagnostics::quantiles(chains, &[0.05, 0.5, 0.95]);
        let count = |holds: fn(&f64) -> bool| chains.iter().flatten().filter(|x| holds(x)).count();
        let rhat = diagnostics::rhat(chains);
        let rhat_nested = superchains.map(|n| diagnostics::rhat_nested(chains, n)).filter(|rhat| !rhat.is_nan());
        // What is looked at only where there is something to tell: it takes as long as all the rest.
        let agreement = (rhat >= RHAT_LIMIT).then(|| diagnostics::agreement(chains));
        let agree = agreement.is_none_or(|a| a.holds());
        Self {
            name: name.into(),
            by_index: None,
            mean: diagnostics::mean(chains),
            sd: diagnostics::sd(chains),
            mcse: diagnostics::mcse_mean(chains),
            mad: diagnostics::mad(chains),
            q05: quantiles[0],
            q50: quantiles[1],
            q95: quantiles[2],
            ess_bulk: diagnostics::ess_bulk(chains),
            ess_tail: diagnostics::ess_tail(chains),
            rhat,
            rhat_nested,
            rhat_expected: agreement.map_or(1.0, |a| a.expected),
            chains_agree: rhat_nested.map_or(agree, |rhat| rhat < RHAT_LIMIT),
            infinite: count(|x| x.is_infinite()),
            not_numbers: count(|x| x.is_nan()),
        }
    }

    pub(super) fn cells(&self) -> [String; 10] {
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

/// The summary of a sampling run. `Display` renders it as text.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// One row a scalar, in the order of the parameters, row-major within one.
    pub rows: Vec<SummaryRow>,
    /// What the sampler did.
    pub sampler: SamplerStatistics,
    /// What to worry about.
    pub warnings: Vec<Warning>,
    /// What is not as it looks, one line each.
    pub notes: Vec<String>,
}

impl Summary {
    /// Summarises `parameters`: each an array chain × draw × event shape.
    pub fn of(parameters: &IndexMap<String, Array>, sampler: SamplerStatistics) -> Self {
        Self::without((parameters, &ElementNames::default()), sampler, None, None)
    }

    /// Summarises the chains of files.
    pub fn of_stored(chains: &StoredChains) -> Self {
        Self::without((&chains.parameters, &chains.names), SamplerStatistics::of_stored(chains), None, None)
    }

    /// Summarises a run in a store, whose parameters are read one after the other, and in parts where they are large.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn of_store(stored: &StoredDraws, store: &RunStore) -> Result<Self, Error> {
        let draws = &stored.draws;
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        let names = ElementNames::of_draws(draws);
        for part in stored.parameters(store) {
            let StoredPart { name, event, first, values, lost, .. } = part?;
            // Groups of unequal size have no nested R-hat.
            let superchains = draws.superchains.filter(|_| lost.is_empty());
            let element = |at: usize| names.in_table(name, event, first + at);
            rows.extend(rows_of(&values, element, &lost, superchains));
            if first == 0 {
                all.push((name.to_owned(), lost));
            }
        }
        let mut summary = Self::of_rows(rows, SamplerStatistics::of_store(stored, store)?);
        summary.tell_failed(stored.failed(all).as_ref(), draws);
        Ok(summary)
    }

    /// Summarises a run. Draws that lack a parameter are left out of its row.
    pub fn of_draws(draws: &Draws) -> Self {
        let failed = draws.failed.as_ref();
        // Groups are equally large only with all chains and all draws.
        if draws.data_sets.is_some() {
            // Chains of different posteriors have nothing to agree on.
            let note = "the chains are those of many data sets, each of which has a posterior of its own".to_owned();
            let sampler = SamplerStatistics::of_draws(draws);
            return Self { rows: vec![], sampler, warnings: vec![], notes: vec![note] };
        }
        let superchains = draws.superchains.filter(|_| draws.traps.is_empty() && failed.is_none());
        let parameters = (&draws.parameters, &ElementNames::of_draws(draws));
        let mut summary = Self::without(parameters, SamplerStatistics::of_draws(draws), failed, superchains);
        summary.tell_failed(failed, draws);
        summary
    }

    fn tell_failed(&mut self, failed: Option<&FailedDraws>, draws: &Draws) {
        if let Some(failed) = failed {
            let place = |at: usize| format!("draw {} of chain {}", at % draws.draws, draws.chains[at / draws.draws]);
            self.warnings.push(Warning::new(failed_draws(failed, draws.chains.len() * draws.draws, place)));
        }
    }

    fn without(
        (parameters, names): (&IndexMap<String, Array>, &ElementNames),
        sampler: SamplerStatistics,
        failed: Option<&FailedDraws>,
        superchains: Option<usize>,
    ) -> Self {
        let rows = parameters.iter().flat_map(|(name, array)| {
            let lost = failed.map_or(&[][..], |failed| failed.of(name));
            let event = array.shape.get(2..).unwrap_or_default();
            rows_of(array, |element| names.in_table(name, event, element), lost, superchains)
        });
        Self::of_rows(rows.collect(), sampler)
    }

    fn of_rows(rows: Vec<SummaryRow>, sampler: SamplerStatistics) -> Self {
        let (mut warnings, mut notes) = (vec![], vec![]);
        // Nothing was asked for, so nothing is wrong with it.
        if sampler.draws > 0 {
            warnings = sampler.warnings();
            convergence(&rows, &sampler, &mut warnings, &mut notes);
        }
        Self { rows, sampler, warnings, notes }
    }

    /// Writes the command to every warning that advises one.
    pub fn advise(&mut self, command: impl Fn(&Advice) -> String) {
        for warning in &mut self.warnings {
            warning.command = warning.advice.as_ref().map(&command);
        }
    }

    /// Keeps the rows of these parameters, `theta`, `theta[3]` or `theta[Choate]`: all of them where none has such a name. Gives
    /// the names that no row has.
    pub fn keep(&mut self, names: &[String]) -> Vec<String> {
        let is = |row: &SummaryRow, name: &String| is_asked_for((&row.name, row.by_index.as_deref()), name);
        let unknown = names.iter().filter(|name| !self.rows.iter().any(|row| is(row, name))).cloned().collect();
        if names.iter().any(|name| self.rows.iter().any(|row| is(row, name))) {
            self.rows.retain(|row| names.iter().any(|name| is(row, name)));
        }
        unknown
    }
}

/// The rows of elements that have these names; `failed` are the draws to leave out, chain · draws + draw, ascending.
pub(super) fn rows_of(
    array: &Array,
    name: impl Fn(usize) -> ElementName + Sync,
    failed: &[usize],
    superchains: Option<usize>,
) -> Vec<SummaryRow> {
    let event = array.shape.get(2..).unwrap_or_default();
    let draws = array.shape.get(1).copied().unwrap_or(0);
    let row = |element: usize| {
        let mut chains = scalar_chains(array, element);
        if !failed.is_empty() {
            for (c, chain) in chains.iter_mut().enumerate() {
                let mut position = c * draws..;
                chain.retain(|_| position.next().is_some_and(|p| failed.binary_search(&p).is_err()));
            }
            chains.retain(|chain| !chain.is_empty());
        }
        let ElementName { shown, by_index } = name(element);
        SummaryRow { by_index, ..SummaryRow::of_superchains(shown, &chains, superchains) }
    };
    (0..event.iter().product()).into_par_iter().map(row).collect()
}

/// The draws of one element of the event, one vector a chain.
pub(super) fn scalar_chains(array: &Array, element: usize) -> Vec<Vec<f64>> {
    let chains = array.shape.first().copied().unwrap_or(0);
    let draws = array.shape.get(1).copied().unwrap_or(1);
    let elements: usize = array.shape.iter().skip(2).product();
    let at = |chain: usize, draw: usize| as_real(array.get((chain * draws + draw) * elements + element));
    (0..chains).map(|chain| (0..draws).map(|draw| at(chain, draw)).collect()).collect()
}

pub(super) fn as_real(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Bool(b) => f64::from(u8::from(b)),
        Scalar::Int(i) => i as f64,
        Scalar::Real(r) => r,
    }
}

/// What the rows say about convergence.
fn convergence(rows: &[SummaryRow], sampler: &SamplerStatistics, warnings: &mut Vec<Warning>, notes: &mut Vec<String>) {
    let enough = ESS_PER_CHAIN * sampler.chains.clamp(1, 4) as f64;
    let named = |holds: &dyn Fn(&SummaryRow) -> bool| {
        let names: Vec<&str> = rows.iter().filter(|row| holds(row)).map(|row| row.name.as_str()).collect();
        (!names.is_empty()).then(|| abridged(&names))
    };
    let few = |row: &SummaryRow| row.ess_bulk < enough || row.ess_tail < enough;
    let large = |row: &SummaryRow| row.rhat >= RHAT_LIMIT && row.rhat_nested.is_none();
    // Short chains have a large R-hat though they agree; only many of them make up for it.
    let disagree = |row: &SummaryRow| large(row) && (!row.chains_agree || few(row));
    let draws = (sampler.draws / sampler.chains.max(1)).saturating_mul(sampler.thin.max(1));
    // Of a run that was stopped it is known already that it was to be longer.
    let advised = |advice: Advice| Some(advice).filter(|_| !sampler.stopped);
    let longer = Advice::Longer { warmup: sampler.warmup.saturating_mul(2), draws: draws.saturating_mul(2) };
    let nested = named(&|row| row.rhat_nested.is_some() && !row.chains_agree).map(|names| {
        let text = format!(
            "nested R-hat is {RHAT_LIMIT} or more for {names}: the chains have not forgotten where they started"
        );
        Warning::of(Concern::Agreement, text + "; run longer", advised(longer.clone()))
    });
    let rhat = named(&disagree).map(|names| {
        // Of a single chain R-hat compares its halves.
        let what = if sampler.chains == 1 { "the halves of the chain" } else { "the chains" };
        let text = format!("R-hat is {RHAT_LIMIT} or more for {names}: {what} do not agree yet");
        Warning::of(Concern::Agreement, text + "; run longer", advised(longer.clone()))
    });
    let least = rows.iter().map(|row| row.ess_bulk.min(row.ess_tail)).fold(f64::INFINITY, f64::min);
    let times = (enough / least.max(1.0)).ceil().clamp(2.0, MOST_TIMES) as usize;
    let ess = named(&few).map(|names| {
        let message = format!("the effective sample size is below {enough} for {names}: run longer");
        Warning::of(Concern::SampleSize, message, advised(Advice::Draws(draws.saturating_mul(times))))
    });
    let undefined = named(&|row| row.not_numbers > 0 || row.mean.is_nan() && row.infinite == 0).map(|names| {
        Warning::new(format!(
            "draws that are not numbers: {names}: what computes them divides by 0, or takes a root or a logarithm of \
                 something negative; such draws have no share in the table"
        ))
    });
    let infinite =
        named(&|row| row.infinite > 0).map(|names| Warning::new(format!("draws that are infinite: {names}")));
    if sampler.stays {
        warnings.extend([undefined, infinite].into_iter().flatten());
        return;
    }
    warnings.extend([nested, rhat, ess, undefined, infinite].into_iter().flatten());
    let short: Vec<&SummaryRow> = rows.iter().filter(|row| large(row) && !disagree(row)).collect();
    if !short.is_empty() {
        let names: Vec<&str> = short.iter().map(|row| row.name.as_str()).collect();
        let expected = short.iter().map(|row| row.rhat_expected).fold(1.0, f64::max);
        notes.push(format!(
            "R-hat is {RHAT_LIMIT} or more for {}, as of chains that agree and are this short (up to {expected:.3}): \
             trust mcse and the effective sample sizes, or give fewer --starts than chains for nested R-hat",
            abridged(&names)
        ));
    }
    let worst = rows.iter().filter_map(|row| Some((row.rhat_nested?, &row.name))).max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((rhat, name)) = worst {
        notes.push(format!(
            "chains that share their starts are judged by nested R-hat, not by r_hat: at most {rhat:.3} ({name})"
        ));
    }
}

/// At most five names.
pub(super) fn abridged(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

const HEADINGS: [&str; 10] = ["", "mean", "sd", "mcse", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat"];

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sampler.draws > 0 || self.rows.is_empty() {
            self.table(f)?;
        }
        write!(f, "{}", self.sampler)?;
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

impl Summary {
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        writeln!(f)
    }
}

/// 1234567 as `1,234,567`.
pub(super) fn grouped(n: u64) -> String {
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
pub(super) fn significant(x: f64, digits: usize) -> String {
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

pub(super) fn whole(x: f64) -> String {
    fixed(x, 0)
}

pub(super) fn fixed(x: f64, decimals: usize) -> String {
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
    fn one_chain_and_one_transition_are_told_as_one() {
        let trend = Array::real([1, 100], (0..100).map(f64::from).collect());
        let divergent = Array::bool([1, 100], (0..100).map(|draw| draw == 7).collect());
        let statistics = IndexMap::from([("divergent".to_owned(), divergent)]);
        let sampler = SamplerStatistics::of(&statistics, Some(10), 1000, 1.0);
        let text = Summary::of(&IndexMap::from([("x".to_owned(), trend)]), sampler).to_string();
        assert!(text.contains("1 of 100 transitions was divergent"), "{text}");
        assert!(text.contains("R-hat is 1.01 or more for x: the halves of the chain do not agree yet"), "{text}");
    }

    #[test]
    fn nothing_sampled_is_an_empty_table() {
        let summary = Summary::of(&IndexMap::new(), SamplerStatistics::default());
        assert!(summary.to_string().contains("0 chains, 0 draws"));
    }
}
