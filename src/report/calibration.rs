//! Simulation-based calibration: whether a sampler and a model draw from the posterior that the model means.
//!
//! Parameters that are drawn from the prior, and data that are drawn by them, have the posterior of these data as their
//! distribution given the data. So the rank of such a parameter among draws of the posterior is uniform (Cook, Gelman and
//! Rubin 2006; Talts, Betancourt, Simpson, Vehtari and Gelman 2018, <https://arxiv.org/abs/1804.06788>). Whether ranks are
//! is seen by their empirical distribution function and a band that it leaves with a given probability anywhere (Säilynoja,
//! Bürkner and Vehtari 2022, <https://doi.org/10.1007/s11222-022-10090-6>).

use std::fmt;

use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use super::element_names::element_name;
use super::summary::{fixed, scalar_chains, significant};
use crate::mcmc::diagnostics::{self, COVERAGE};
use crate::mcmc::sampling::Draws;
use crate::picture::{Anchor, Pen, Picture};
use crate::program::{Error, ErrorKind};
use crate::types::Array;
use crate::vmath::philox;

/// Places at which a distribution function is looked at, at most.
const MOST_PLACES: usize = 100;
/// Samples of uniform ranks that tell how far such a function goes by chance.
const SAMPLES: usize = 4000;
/// Random streams of what is drawn here.
const SEED: u64 = 0x7261_6e6b;

/// The ranks of what was drawn from the prior among the draws of the posteriors.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Calibration {
    /// Draws of a posterior, which are the largest rank.
    pub draws: usize,
    /// Data sets whose chains have made all these draws.
    pub simulations: usize,
    /// Data sets that are left out, since a chain of theirs failed, or draws of it lack something.
    pub failed: usize,
    /// A row for each number of each quantity that the prior drew.
    pub quantities: Vec<CalibratedQuantity>,
}

/// The ranks of one number.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct CalibratedQuantity {
    /// Name with indices from 1: `theta[1]`.
    pub name: String,
    /// Its rank in each data set: so many draws are less, and by chance a part of those that are equal.
    pub ranks: Vec<usize>,
    /// How often ranks that are uniform are as far from it as these, anywhere: the simultaneous test of Säilynoja,
    /// Bürkner and Vehtari.
    pub p_value: f64,
    /// The distribution function of the ranks, and its band.
    pub function: Vec<RankPoint>,
    /// The mean of the ranks over the largest, ½ where they are uniform.
    pub mean: f64,
    /// The variance of the ranks over that of uniform ones: more than 1 where the posterior is too narrow.
    pub spread: f64,
    /// The mean effective sample size of the draws of a data set, over their number; NaN where it is not known.
    pub independent: f64,
}

/// A point of the distribution function of ranks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RankPoint {
    /// The part of the ranks that is below it, were they uniform.
    pub place: f64,
    /// The part that is.
    pub part: f64,
    /// Where the band begins here.
    pub least: f64,
    /// Where it ends.
    pub most: f64,
}

impl Calibration {
    /// Of draws of the posteriors of many data sets, and what was drawn from the prior for each, data set × event shape, by
    /// the names of the draws.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where no quantity has both, or shapes differ, and where there are no draws.
    pub fn of(draws: &Draws, truths: &IndexMap<String, Array>) -> Result<Self, Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
        let Some((sets, each)) = draws.data_sets else {
            return refused("these are draws of one posterior: calibration is of many".to_owned());
        };
        let mut whole = draws.whole_data_sets();
        if let Some(failed) = &draws.failed {
            // Draws that lack something have no ranks.
            let lacks = |first: usize| {
                let at = failed.positions.partition_point(|at| *at < first * draws.draws);
                failed.positions.get(at).is_some_and(|at| *at < (first + each) * draws.draws)
            };
            whole.retain(|(_, first)| !lacks(*first));
        }
        let count = each * draws.draws;
        if whole.is_empty() || count == 0 {
            return refused("no data set has all draws of all its chains".to_owned());
        }
        let test = RankTest::new(whole.len(), count);
        let mut quantities = Vec::new();
        for (name, truth) in truths {
            let Some(drawn) = draws.parameters.get(name) else { continue };
            let event = &drawn.shape[2..];
            if truth.shape.first() != Some(&sets) {
                return refused(format!("`{name}` is {}, but there are {sets} data sets", truth.ty()));
            }
            if truth.shape[1..] != *event {
                let message = format!(
                    "`{name}` is {} of each data set, but {} of each draw",
                    shown(&truth.shape[1..]),
                    shown(event)
                );
                return refused(message);
            }
            let elements: usize = event.iter().product();
            let rows: Result<Vec<CalibratedQuantity>, Error> = (0..elements)
                .into_par_iter()
                .map(|element| {
                    let all = scalar_chains(drawn, element);
                    let truth_of = |set: usize| super::summary::as_real(truth.get(set * elements + element));
                    let lost = |(set, first): &&(usize, usize)| {
                        truth_of(*set).is_nan() || all[*first..first + each].iter().flatten().any(|x| x.is_nan())
                    };
                    if let Some((set, _)) = whole.iter().find(lost) {
                        let name = element_name(name, event, element);
                        let message = format!("`{name}` is NaN in the data set {set}, counted from 0: NaN has no rank");
                        return Err(Error::new(ErrorKind::Input, message));
                    }
                    let of = |(set, first): &(usize, usize)| {
                        let chains = &all[*first..first + each];
                        let truth = truth_of(*set);
                        let ess = diagnostics::ess_bulk(chains);
                        (rank(truth, chains.iter().flatten(), *set as u64), ess)
                    };
                    let (ranks, mut ess): (Vec<usize>, Vec<f64>) = whole.iter().map(of).unzip();
                    // Of few draws, or such as are all equal, it is not known.
                    ess.retain(|ess| !ess.is_nan());
                    let independent = ess.iter().sum::<f64>() / ess.len() as f64 / count as f64;
                    Ok(test.of(element_name(name, event, element), ranks, independent))
                })
                .collect();
            quantities.extend(rows?);
        }
        if quantities.is_empty() {
            let names = |all: Vec<&String>| all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return refused(format!(
                "nothing that the simulator gives is a quantity of the model: it gives {}, and draws have {}",
                names(truths.keys().collect()),
                names(draws.parameters.keys().collect())
            ));
        }
        Ok(Self { draws: count, simulations: whole.len(), failed: sets - whole.len(), quantities })
    }

    /// The p-value of all quantities together: the least of them, times their number (Bonferroni).
    #[must_use]
    pub fn p_value(&self) -> f64 {
        let least = self.quantities.iter().map(|quantity| quantity.p_value).fold(1.0, f64::min);
        (least * self.quantities.len() as f64).min(1.0)
    }
}

fn shown(shape: &[usize]) -> String {
    if shape.is_empty() { "a number".to_owned() } else { format!("an array {shape:?}") }
}

/// How many draws are less, and a part of those that are equal: as many as chance says, the same for the same data set.
fn rank<'a>(truth: f64, draws: impl Iterator<Item = &'a f64>, set: u64) -> usize {
    let (mut less, mut equal) = (0, 0);
    for draw in draws {
        less += usize::from(*draw < truth);
        equal += usize::from(*draw == truth);
    }
    less + below(SEED, set, 0, equal + 1)
}

/// A random number below another.
fn below(seed: u64, lane: u64, draw: u64, end: usize) -> usize {
    let [a, b, ..] = philox::block(seed, lane, draw);
    let word = u64::from(a) | u64::from(b) << 32;
    ((u128::from(word) * end as u128) >> 64) as usize
}

/// The test of ranks that should be uniform on 0 to `draws`.
#[derive(Clone, Debug)]
struct RankTest {
    samples: usize,
    draws: usize,
    /// Ranks below which are counted.
    places: Vec<usize>,
    /// For each place and each count, the probability of a count as far out, twice that of the nearer tail.
    tails: Vec<Vec<f64>>,
    /// The least tail of samples of uniform ranks, ascending.
    least: Vec<f64>,
}

impl RankTest {
    /// For so many ranks of 0 to `draws`.
    ///
    /// # Panics
    /// Where there are no ranks.
    fn new(samples: usize, draws: usize) -> Self {
        assert!(samples > 0, "there are ranks");
        let count = draws.min(MOST_PLACES);
        // Evenly, as far as ranks are whole.
        let places: Vec<usize> = (1..=count).map(|i| (i * (draws + 1)).div_ceil(count + 1).min(draws)).collect();
        let tails: Vec<Vec<f64>> =
            places.par_iter().map(|place| tails(samples, *place as f64 / (draws + 1) as f64)).collect();
        let mut test = Self { samples, draws, places, tails, least: vec![] };
        let sample = |k: usize| {
            let ranks = (0..samples).map(|i| below(SEED, 1 + k as u64, i as u64, draws + 1));
            test.least_tail(&test.counts(ranks))
        };
        let mut least: Vec<f64> = (0..SAMPLES).into_par_iter().map(sample).collect();
        least.sort_unstable_by(f64::total_cmp);
        test.least = least;
        test
    }

    /// How many ranks are below each place.
    fn counts(&self, ranks: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut counts = vec![0; self.places.len() + 1];
        for rank in ranks {
            counts[self.places.partition_point(|place| *place <= rank)] += 1;
        }
        let mut sum = 0;
        counts[..self.places.len()]
            .iter()
            .map(|count| {
                sum += count;
                sum
            })
            .collect()
    }

    fn least_tail(&self, counts: &[usize]) -> f64 {
        counts.iter().zip(&self.tails).map(|(count, tails)| tails[*count]).fold(1.0, f64::min)
    }

    /// How often uniform ranks are as far out as these somewhere.
    fn p_value(&self, ranks: &[usize]) -> f64 {
        let found = self.least_tail(&self.counts(ranks.iter().copied()));
        let further = self.least.partition_point(|least| *least <= found);
        (1 + further) as f64 / (1 + SAMPLES) as f64
    }

    /// The distribution function of ranks, with the band that uniform ones leave once in 20 times.
    fn function(&self, ranks: &[usize]) -> Vec<RankPoint> {
        let limit = self.least[((1.0 - COVERAGE) * SAMPLES as f64) as usize];
        let all = self.samples as f64;
        let counts = self.counts(ranks.iter().copied());
        let points = self.places.iter().zip(counts).zip(&self.tails);
        points
            .map(|((place, count), tails)| {
                let within = |count: &usize| tails[*count] >= limit;
                let least = (0..=self.samples).find(within).unwrap_or(0);
                let most = (0..=self.samples).rev().find(within).unwrap_or(self.samples);
                RankPoint {
                    place: *place as f64 / (self.draws + 1) as f64,
                    part: count as f64 / all,
                    least: least as f64 / all,
                    most: most as f64 / all,
                }
            })
            .collect()
    }

    fn of(&self, name: String, ranks: Vec<usize>, independent: f64) -> CalibratedQuantity {
        let (n, most) = (ranks.len() as f64, self.draws as f64);
        let mean = ranks.iter().map(|rank| *rank as f64).sum::<f64>() / n;
        let spread = ranks.iter().map(|rank| (*rank as f64 - most / 2.0).powi(2)).sum::<f64>() / n;
        CalibratedQuantity {
            name,
            p_value: self.p_value(&ranks),
            function: self.function(&ranks),
            mean: mean / most,
            spread: spread / (most * (most + 2.0) / 12.0),
            independent,
            ranks,
        }
    }
}

/// Of each number of hits in so many trials with a probability the probability of one as far out: twice that of the nearer
/// tail, 1 at most.
fn tails(trials: usize, probability: f64) -> Vec<f64> {
    let odds = (probability.ln(), (-probability).ln_1p());
    let mut log_choose = 0.0;
    let mut weights: Vec<f64> = Vec::with_capacity(trials + 1);
    for k in 0..=trials {
        if k > 0 {
            log_choose += ((trials - k + 1) as f64).ln() - (k as f64).ln();
        }
        weights.push((log_choose + k as f64 * odds.0 + (trials - k) as f64 * odds.1).exp());
    }
    let sums = |weights: &mut dyn Iterator<Item = &f64>| -> Vec<f64> {
        let mut sum = 0.0;
        weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect()
    };
    let up_to = sums(&mut weights.iter());
    let mut from = sums(&mut weights.iter().rev());
    from.reverse();
    up_to.iter().zip(from).map(|(a, b)| (2.0 * a.min(b)).min(1.0)).collect()
}

/// Quantities that are drawn, those that are the least uniform.
const DRAWN: usize = 24;
/// Below this a p-value of all quantities together says that something is wrong.
const DOUBT: f64 = 0.01;
/// Fewer data sets, and fewer draws of each, tell little.
const FEW_SETS: usize = 50;
const FEW_DRAWS: usize = 20;
/// Draws that are worth fewer independent ones than this part of them bend ranks by themselves.
const DEPENDENT: f64 = 0.7;

impl CalibratedQuantity {
    /// What the ranks look like, where they are not uniform.
    fn told(&self) -> &'static str {
        match (self.mean, self.spread) {
            _ if self.p_value >= DOUBT => "",
            (mean, _) if mean < 0.45 => "draws are too large",
            (mean, _) if mean > 0.55 => "draws are too small",
            (_, spread) if spread > 1.05 => "the posterior is too narrow",
            (_, spread) if spread < 0.95 => "the posterior is too wide",
            _ => "the ranks are not uniform",
        }
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["", "p_value", "mean rank", "spread", "ess / draws", ""].map(str::to_owned);
        let cells = |row: &CalibratedQuantity| {
            let numbers = [row.mean, row.spread, row.independent].map(|x| fixed(x, 3));
            let [mean, spread, independent] = numbers;
            [row.name.clone(), significant(row.p_value, 2), mean, spread, independent, row.told().to_owned()]
        };
        let table: Vec<[String; 6]> = std::iter::once(heading).chain(self.quantities.iter().map(cells)).collect();
        let width = |column: usize| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        for cells in &table {
            let mut line = format!("{:<1$}", cells[0], width(0));
            for (column, cell) in cells.iter().enumerate().take(5).skip(1) {
                line += &format!("  {cell:>width$}", width = width(column));
            }
            writeln!(f, "{}", format!("{line}  {}", cells[5]).trim_end())?;
        }
        let (n, draws) = (self.simulations, self.draws);
        writeln!(
            f,
            "\n{n} data sets, ranks among {draws} draws; 0.5 and 1 are the mean rank and the spread of uniform ones"
        )?;
        let p = self.p_value();
        let verdict = if p < DOUBT { "they are not calibrated" } else { "nothing says that they are not calibrated" };
        writeln!(f, "all quantities together: p = {}, {verdict}", significant(p, 2))?;
        if self.failed > 0 {
            writeln!(
                f,
                "warning: {} data sets are left out, since a chain or draws of theirs failed: ranks of the others may be off",
                self.failed
            )?;
        }
        if n < FEW_SETS || draws < FEW_DRAWS {
            writeln!(
                f,
                "warning: so few data sets or draws show only what is far off: {FEW_SETS} and {FEW_DRAWS} are few"
            )?;
        }
        let dependent = self.quantities.iter().filter(|quantity| quantity.independent < DEPENDENT).count();
        if dependent > 0 {
            writeln!(
                f,
                "warning: the draws of {dependent} quantities depend on one another, which bends their ranks: keep fewer of \
                 more draws, --thin and --draws"
            )?;
        }
        Ok(())
    }
}

impl Calibration {
    /// The quantities with the least p-values first.
    #[must_use]
    pub fn worst_first(&self) -> Vec<&CalibratedQuantity> {
        let mut all: Vec<&CalibratedQuantity> = self.quantities.iter().collect();
        all.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
        all
    }

    /// A page with the distribution functions of the ranks less those of uniform ones, and their bands, of the quantities
    /// with the least p-values.
    #[must_use]
    pub fn page(&self, title: &str) -> String {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let worst = self.worst_first();
        let drawn: String =
            worst.iter().take(DRAWN).enumerate().map(|(at, quantity)| format!("{}\n", drawn(at, quantity))).collect();
        let left = match worst.len().saturating_sub(DRAWN) {
            0 => String::new(),
            n => format!("<p>{n} more are in the table.</p>\n"),
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>{title}</title><style>\n\
             body {{ font: 15px/1.4 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }}\n\
             svg {{ max-width: 100%; height: auto; margin: 0.5em; }} pre {{ overflow-x: auto; }}\n\
             </style></head>\n<body><h1>{title}</h1>\n<pre>{table}</pre>\n\
             <p>Each line is the part of the ranks that is below a place, less the part that would be, were they uniform. \
             Ranks that are uniform leave the grey band anywhere once in 20 times. A line above it on the left and below it on \
             the right is that of a posterior that is too narrow.</p>\n{drawn}{left}</body></html>\n",
            title = escaped(title),
            table = escaped(&self.to_string()),
        )
    }
}

/// The picture of a quantity.
fn drawn(at: usize, quantity: &CalibratedQuantity) -> String {
    let (width, height, left, top) = (300.0, 200.0, 50.0, 30.0);
    let (right, bottom) = (width - 10.0, height - 30.0);
    let points = &quantity.function;
    let reach = points.iter().flat_map(|p| [p.part, p.least, p.most].map(|y| (y - p.place).abs())).fold(1e-6, f64::max);
    let x = |place: f64| left + place * (right - left);
    let y = |off: f64| (top + bottom) / 2.0 - off / reach * (bottom - top) / 2.0;
    let mut picture = Picture::new(width, height);
    let ends = |of: fn(&RankPoint) -> f64| -> Vec<(f64, f64)> {
        let inner = points.iter().map(|p| (x(p.place), y(of(p) - p.place)));
        std::iter::once((x(0.0), y(0.0))).chain(inner).chain([(x(1.0), y(0.0))]).collect()
    };
    let (most, mut least) = (ends(|p| p.most), ends(|p| p.least));
    least.reverse();
    let outline: Vec<String> = most.iter().chain(&least).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    picture.path(&format!("M{}Z", outline.join("L")), r##"fill="#dddddd""##);
    let pen = |color: &'static str, width: f64| Pen { color, width, dashes: "" };
    picture.line((left, y(0.0)), (right, y(0.0)), pen("#888888", 1.0));
    picture.polyline(&ends(|p| p.part), pen("#0072b2", 2.0));
    picture.text(
        (left, top - 12.0),
        Anchor::Start,
        13,
        &format!("{}, p = {}", quantity.name, significant(quantity.p_value, 2)),
    );
    picture.text((left - 4.0, y(reach) + 8.0), Anchor::End, 11, &format!("+{}", significant(reach, 2)));
    picture.text((left - 4.0, y(-reach)), Anchor::End, 11, &format!("-{}", significant(reach, 2)));
    picture.text((left, height - 10.0), Anchor::Start, 11, "0");
    picture.text((right, height - 10.0), Anchor::End, 11, "1");
    picture.text(((left + right) / 2.0, height - 10.0), Anchor::Middle, 11, "rank / draws");
    let about =
        format!("{}: mean rank {}, spread {}", quantity.name, fixed(quantity.mean, 3), fixed(quantity.spread, 3));
    picture.inline(&format!("rank{at}"), &quantity.name, &about)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: 2 * pmin(pbinom(0:4, 4, 0.25), pbinom(-1:3, 4, 0.25, lower.tail = FALSE)), by hand of 81, 108, 54, 12, 1 of 256.
    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        let expected = [162.0 / 256.0, 1.0, 134.0 / 256.0, 26.0 / 256.0, 2.0 / 256.0];
        for (found, expected) in tails(4, 0.25).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn uniform_ranks_pass_and_others_do_not() {
        let test = RankTest::new(1000, 63);
        let uniform: Vec<usize> = (0..1000).map(|i| i * 64 / 1000).collect();
        assert!(test.p_value(&uniform) > 0.99);
        // Of a posterior that is too narrow, of one that is too wide, and of one that is off.
        let bent = |bend: f64| -> Vec<usize> {
            (0..1000).map(|i| (64.0 * (f64::from(i) / 1000.0).powf(bend)) as usize).collect()
        };
        let narrow: Vec<usize> = (0..1000).map(|i| if i % 8 == 0 { 63 * (i / 8 % 2) } else { i * 64 / 1000 }).collect();
        let wide: Vec<usize> = (0..1000).map(|i| 8 + i * 48 / 1000).collect();
        for ranks in [bent(1.3), narrow, wide] {
            assert!(test.p_value(&ranks) < 0.001, "{}", test.p_value(&ranks));
        }
    }

    /// By the definition of the band: of samples of uniform ranks so many are out of it.
    #[test]
    fn p_values_of_uniform_ranks_are_uniform() {
        let test = RankTest::new(200, 19);
        let p = |k: u64| {
            let ranks: Vec<usize> = (0..200).map(|i| below(99, k, i, 20)).collect();
            let out = test.function(&ranks).iter().any(|point| point.part < point.least || point.part > point.most);
            (test.p_value(&ranks), out)
        };
        let found: Vec<(f64, bool)> = (0..2000).map(p).collect();
        let share = |holds: &dyn Fn(&(f64, bool)) -> bool| found.iter().filter(|f| holds(f)).count() as f64 / 2000.0;
        // Standard errors of shares of 2000 are at most 0.011; ranks of 200 are coarse.
        for level in [0.05, 0.25, 0.5, 0.75] {
            let share = share(&|(p, _)| *p <= level);
            assert!((share - level).abs() < 0.06, "{level}: {share}");
        }
        let out = share(&|(_, out)| *out);
        assert!((0.03..=0.07).contains(&out), "{out}");
    }

    #[test]
    fn ranks_count_what_is_less_and_a_part_of_what_is_equal() {
        let draws = [0.0, 1.0, 2.0, 3.0];
        assert_eq!(rank(2.5, draws.iter(), 0), 3);
        assert_eq!(rank(-1.0, draws.iter(), 0), 0);
        let ties: Vec<usize> = (0..200).map(|set| rank(1.0, [1.0; 3].iter(), set)).collect();
        for rank in 0..=3 {
            let count = ties.iter().filter(|found| **found == rank).count();
            assert!((30..=70).contains(&count), "{rank}: {count}");
        }
    }
}
