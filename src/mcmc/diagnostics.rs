//! Convergence diagnostics of Markov chains: R-hat, effective sample sizes, Monte Carlo standard errors, E-BFMI.
//!
//! The formulas are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner, *Rank-normalization, folding, and
//! localization: an improved R-hat* (Bayesian Analysis 16, 2021, doi 10.1214/20-BA1221), as the R package posterior
//! and ArviZ compute them.
//!
//! Every function takes the draws of one scalar quantity, one slice or vector a chain. Chains of unequal length (a lane
//! that trapped, say) are cut to the shortest. With fewer than four draws a chain, with a draw that is not finite, or
//! with draws that are all equal (up to rounding), there is nothing to diagnose and the answer is NaN.

mod agreement;
mod moments;
mod uniformity;
mod within;

use std::cell::OnceCell;

use realfft::RealFftPlanner;

use super::special::{beta_quantile, normal_quantile};
pub use agreement::{Agreement, RHAT_LIMIT, rhat_nested};
use moments::{average, deviations, inner_product, variance};
pub use uniformity::{COVERAGE, ChainRanks, Uniformity};
pub use within::{autocorrelation, correlation_time};

/// Fewest draws a chain with which there is anything to diagnose.
const MIN_DRAWS: usize = 4;

/// Rank-normalised split R-hat: the larger of the value for the draws (bulk) and for their distances from the median
/// (folded). One chain is enough, since chains are split. Near 1 when the chains agree; 1.01 is the usual limit.
pub fn rhat<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let Some(chains) = usable(chains) else { return f64::NAN };
    let (bulk, folded) = chains.bulk_and_folded();
    // Draws of two values at equal distances from the median fold to a constant, which says nothing: `max` drops NaN.
    bulk.rhat().max(folded.rhat())
}

/// Whether chains agree as well as chains of their length can: see [`Agreement`].
pub fn agreement<C: AsRef<[f64]>>(chains: &[C]) -> Agreement {
    Agreement::of(usable(chains).map(|chains| chains.bulk_and_folded()))
}

/// Effective sample size for the bulk of the distribution: of the rank-normalised split chains.
pub fn ess_bulk<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    usable(chains).map_or(f64::NAN, |chains| chains.split().normal_scores().ess())
}

/// Effective sample size for the tails: the smaller of those for the 5 % and the 95 % quantile.
pub fn ess_tail<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let Some(chains) = usable(chains) else { return f64::NAN };
    let sorted = chains.sorted();
    let (low, high) = (chains.ess_quantile(&sorted, 0.05), chains.ess_quantile(&sorted, 0.95));
    if low.is_nan() || high.is_nan() { f64::NAN } else { low.min(high) }
}

/// Effective sample size for the mean: of the split chains as they are.
pub fn ess_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    usable(chains).map_or(f64::NAN, |chains| chains.split().ess())
}

/// Effective sample size for the quantile `probability`: of the indicator of lying at or below it.
pub fn ess_quantile<C: AsRef<[f64]>>(chains: &[C], probability: f64) -> f64 {
    usable(chains).map_or(f64::NAN, |chains| chains.ess_quantile(&chains.sorted(), probability))
}

/// Monte Carlo standard error of the mean, in the unit of the draws.
pub fn mcse_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let Some(chains) = usable(chains) else { return f64::NAN };
    variance(&chains.values).sqrt() / chains.split().ess().sqrt()
}

/// Monte Carlo standard error of the standard deviation, in the unit of the draws.
pub fn mcse_sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let Some(chains) = usable(chains) else { return f64::NAN };
    let squares = chains.centred().map(|x| x * x);
    let second = average(&squares.values);
    let fourth = average(&squares.map(|c| c * c).values);
    ((fourth - second * second) / squares.split().ess() / (4.0 * second)).sqrt()
}

/// Monte Carlo standard error of the quantile `probability`, in the unit of the draws: half the distance of the order
/// statistics that enclose it with the probability that one standard deviation on either side has in a normal
/// distribution.
pub fn mcse_quantile<C: AsRef<[f64]>>(chains: &[C], probability: f64) -> f64 {
    let Some(chains) = usable(chains) else { return f64::NAN };
    let sorted = chains.sorted();
    let ess = chains.ess_quantile(&sorted, probability);
    let order_statistic = |p: f64| beta_quantile(p, ess * probability + 1.0, ess * (1.0 - probability) + 1.0);
    let last = sorted.len() as f64 - 1.0;
    let low = (order_statistic(0.158_655_3) * sorted.len() as f64 - 1.0).floor();
    let high = (order_statistic(0.841_344_7) * sorted.len() as f64 - 1.0).ceil();
    if low.is_nan() || high.is_nan() {
        return f64::NAN;
    }
    (sorted[high.clamp(0.0, last) as usize] - sorted[low.clamp(0.0, last) as usize]) / 2.0
}

/// The mean of all draws; NaN when there are none.
pub fn mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    average(&pooled(chains))
}

/// The standard deviation of all draws together (divisor: their number less one).
pub fn sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    variance(&pooled(chains)).sqrt()
}

/// The median absolute deviation from the median of all draws together, times 1.4826, which makes it the standard
/// deviation of a normal distribution. NaN as [`quantiles`].
pub fn mad<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let median = quantiles(chains, &[0.5])[0];
    let deviations: Vec<f64> = pooled(chains).iter().map(|x| (x - median).abs()).collect();
    1.4826 * quantiles(&[deviations], &[0.5])[0]
}

/// The quantiles at `probabilities` of all draws together, by linear interpolation between order statistics (type 7
/// of Hyndman and Fan, the default of R and NumPy). NaN when there are no draws or one of them is NaN.
pub fn quantiles<C: AsRef<[f64]>>(chains: &[C], probabilities: &[f64]) -> Vec<f64> {
    let mut sorted = pooled(chains);
    let undefined = sorted.is_empty() || sorted.iter().any(|x| x.is_nan());
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |p: &f64| if undefined { f64::NAN } else { quantile_of_sorted(&sorted, *p) };
    probabilities.iter().map(at).collect()
}

/// The estimated Bayesian fraction of missing information of one chain, from the energies of its draws: the mean
/// squared change of the energy over its variance (Betancourt, arXiv 1604.00695). Below 0.3 the momentum refreshes
/// the energy too slowly. NaN for fewer than two draws or a constant energy.
pub fn e_bfmi(energies: &[f64]) -> f64 {
    e_bfmi_of_all(&[energies])
}

/// The same of all chains together, for chains that are too short to have one each: all squared changes over the variance of
/// all energies.
pub fn e_bfmi_of_all<C: AsRef<[f64]>>(energies: &[C]) -> f64 {
    let changes = energies.iter().flat_map(|chain| chain.as_ref().windows(2));
    let squared_changes: Vec<f64> = changes.map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    average(&squared_changes) / variance(&pooled(energies))
}

/// Draws of one quantity in chains of equal length, chain after chain.
struct Chains {
    values: Vec<f64>,
    draws: usize,
}

/// The chains cut to equal length, or nothing when there is nothing to diagnose.
fn usable<C: AsRef<[f64]>>(chains: &[C]) -> Option<Chains> {
    let draws = chains.iter().map(|chain| chain.as_ref().len()).min()?;
    if draws < MIN_DRAWS {
        return None;
    }
    let values: Vec<f64> = chains.iter().flat_map(|chain| &chain.as_ref()[..draws]).copied().collect();
    let finite = values.iter().all(|x| x.is_finite());
    (finite && !is_constant(&values)).then_some(Chains { values, draws })
}

impl Chains {
    fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.draws)
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { values: self.values.iter().map(|x| f(*x)).collect(), draws: self.draws }
    }

    /// The differences from the mean of all.
    fn centred(&self) -> Self {
        Self { values: deviations(&self.values), draws: self.draws }
    }

    /// The normal scores of the split chains, and of their distances from the median.
    fn bulk_and_folded(&self) -> (Self, Self) {
        let split = self.split();
        let median = quantile_of_sorted(&split.sorted(), 0.5);
        let folded = split.map(|x| (x - median).abs());
        (split.normal_scores(), folded.normal_scores())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }

    /// Both halves of every chain as chains of their own; of an odd number of draws the middle one is dropped.
    fn split(&self) -> Self {
        let half = self.draws / 2;
        let halves = self.iter().flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]]);
        Self { values: halves.flatten().copied().collect(), draws: half }
    }

    /// Every draw replaced by the normal quantile of its rank among all; ties share their average rank.
    fn normal_scores(&self) -> Self {
        // Pairs lie side by side in memory, which sorts several times faster than indices alone. `+ 0.0` makes the two
        // zeros equal.
        let mut order: Vec<(f64, usize)> = self.values.iter().map(|x| x + 0.0).zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let size = self.values.len() as f64;
        let mut scores = vec![0.0; self.values.len()];
        let mut below = 0;
        for tied in order.chunk_by(|a, b| a.0 == b.0) {
            let rank = below as f64 + (tied.len() as f64 + 1.0) / 2.0;
            let score = normal_quantile((rank - 0.375) / (size + 0.25));
            tied.iter().for_each(|(_, i)| scores[*i] = score);
            below += tied.len();
        }
        Self { values: scores, draws: self.draws }
    }

    /// The square root of the ratio of the pooled variance estimate to the mean variance within chains.
    fn rhat(&self) -> f64 {
        if is_constant(&self.values) {
            return f64::NAN;
        }
        let means: Vec<f64> = self.iter().map(average).collect();
        let variances: Vec<f64> = self.iter().map(variance).collect();
        let draws = self.draws as f64;
        let between = draws * variance(&means);
        ((between / average(&variances) + draws - 1.0) / draws).sqrt()
    }

    /// `sorted` are the draws in ascending order.
    fn ess_quantile(&self, sorted: &[f64], probability: f64) -> f64 {
        let quantile = quantile_of_sorted(sorted, probability);
        self.map(|x| f64::from(u8::from(x <= quantile))).split().ess()
    }

    /// The number of draws over their integrated autocorrelation time, which Geyer's initial monotone positive
    /// sequence estimates. Lags are computed as they are needed: the sequence ends long before the last one unless
    /// the chains hardly move.
    fn ess(&self) -> f64 {
        if self.draws < 2 || is_constant(&self.values) {
            return f64::NAN;
        }
        let draws = self.draws as f64;
        // About one centre first, so that the means of the chains keep their digits however far off they lie.
        let autocovariance = MeanAutocovariance::of(&self.centred());
        let within = autocovariance.at(0) * draws / (draws - 1.0);
        let means = &autocovariance.means;
        let between = if means.len() > 1 { variance(means) } else { 0.0 };
        let total = within * (draws - 1.0) / draws + between;
        let correlation = |lag: usize| 1.0 - (within - autocovariance.at(lag)) / total;

        let sum = autocorrelation_sum(self.draws, correlation);
        let size = self.values.len() as f64;
        let time = (2.0 * sum.pairs + sum.last_even - 1.0).max(1.0 / size.log10());
        size / time
    }
}

/// What [`autocorrelation_sum`] found.
struct AutocorrelationSum {
    /// Over all lags of the monotone positive sequence.
    pairs: f64,
    /// The even lag that follows it, where it is positive.
    last_even: f64,
}

/// Sums the correlations of lags 2k and 2k + 1 while the sums of such pairs stay positive (initial positive sequence),
/// each pair cut to the one before (initial monotone sequence).
fn autocorrelation_sum(draws: usize, correlation: impl Fn(usize) -> f64) -> AutocorrelationSum {
    let (mut even, mut odd) = (1.0, correlation(1));
    let mut pairs: Vec<f64> = Vec::new();
    let mut lag = 1;
    while lag + 3 < draws && even + odd > 0.0 {
        pairs.push(even + odd);
        (even, odd) = (correlation(lag + 1), correlation(lag + 2));
        lag += 2;
    }
    let mut smallest = f64::INFINITY;
    let monotone = pairs.iter().map(|pair| {
        smallest = smallest.min(*pair);
        smallest
    });
    // The pair that ended the sequence counts by half where its even lag is positive.
    let last_even = if even + odd >= 0.0 { even } else { even.max(0.0) };
    AutocorrelationSum { pairs: monotone.sum(), last_even }
}

/// Lags that are computed one by one, which most chains are done with: all lags take as long as some tens of them.
const NEAR: usize = 64;

/// The autocovariances of chains, averaged over the chains.
struct MeanAutocovariance {
    centred: Chains,
    means: Vec<f64>,
    /// Those of all lags, as soon as one far off is asked for.
    all: OnceCell<Vec<f64>>,
}

impl MeanAutocovariance {
    fn of(chains: &Chains) -> Self {
        let means: Vec<f64> = chains.iter().map(average).collect();
        let centred = chains.iter().flat_map(deviations);
        Self { centred: Chains { values: centred.collect(), draws: chains.draws }, means, all: OnceCell::new() }
    }

    /// At one lag, divided by the number of draws and not by the number of terms.
    fn at(&self, lag: usize) -> f64 {
        if lag > NEAR {
            return self.all.get_or_init(|| self.of_all_lags())[lag];
        }
        let products = self.centred.iter().map(|chain| inner_product(&chain[..chain.len() - lag], &chain[lag..]));
        products.sum::<f64>() / self.centred.values.len() as f64
    }

    /// At all lags, by the Wiener–Khinchin theorem: the autocovariances of a sequence, with as many zeros behind it that it
    /// does not meet itself, are the inverse Fourier transform of the squares of its Fourier transform.
    fn of_all_lags(&self) -> Vec<f64> {
        let draws = self.centred.draws;
        let length = (2 * draws).next_power_of_two();
        let mut planner = RealFftPlanner::<f64>::new();
        let (forward, inverse) = (planner.plan_fft_forward(length), planner.plan_fft_inverse(length));
        let mut padded = forward.make_input_vec();
        let (mut spectrum, mut power) = (forward.make_output_vec(), forward.make_output_vec());
        for chain in self.centred.iter() {
            padded.fill(0.0);
            padded[..draws].copy_from_slice(chain);
            forward.process(&mut padded, &mut spectrum).expect("its vectors have its lengths");
            power.iter_mut().zip(&spectrum).for_each(|(power, x)| power.re += x.norm_sqr());
        }
        // It is linear: once for the sum of all chains.
        inverse.process(&mut power, &mut padded).expect("a sum of squares is real");
        let scale = length as f64 * self.centred.values.len() as f64;
        padded[..draws].iter().map(|sum| sum / scale).collect()
    }
}

fn pooled<C: AsRef<[f64]>>(chains: &[C]) -> Vec<f64> {
    chains.iter().flat_map(|chain| chain.as_ref()).copied().collect()
}

/// Whether all values are equal up to rounding.
fn is_constant(values: &[f64]) -> bool {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low <= 4.0 * f64::EPSILON * low.abs().max(high.abs())
}

/// Type 7; `sorted` is not empty.
fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let last = sorted.len() - 1;
    let position = (last as f64 * probability.clamp(0.0, 1.0)).min(last as f64);
    let low = position.floor() as usize;
    let fraction = position - low as f64;
    if fraction == 0.0 {
        return sorted[low];
    }
    (1.0 - fraction) * sorted[low] + fraction * sorted[low + 1]
}
