//! Whether many short chains agree.
//!
//! R-hat compares the variance of the means of chains with the variance inside them. The mean of a short chain varies
//! though the chain is in equilibrium: of `n` draws that are worth `e` independent ones, R-hat is about √(1 + 1/e)
//! (Margossian and others, *Nested R-hat*, Bayesian Analysis 2024, section 2). So with chains of fewer than a hundred
//! effective draws it passes 1.01 in every good run, however many chains there are: more of them make it vary less, about
//! that value.
//!
//! What chains in equilibrium have follows from their autocorrelations ρ and the variance s² of a draw. The mean of h draws
//! has the variance v(h) = s²/h (1 + 2 Σ (1 - k/h) ρₖ), and the h draws of a chain vary about their mean by
//! W = (s² - v(h)) h / (h - 1), so that R-hat² = (h - 1)/h + v(h)/W. The autocovariances of a chain about its own mean lack
//! v(n): their terms of lag k are (1 - k/n) (s² ρₖ - v(n)) on average, which is solved for ρ and v(n) together. They are taken
//! of whole chains, which have twice the lags of the halves that R-hat compares, and summed as far as Geyer's initial monotone
//! sequence goes (*Practical Markov chain Monte Carlo*, Statistical Science 7, 1992).
//!
//! Of m halves the estimate of v(h) has the relative variance 2/(m - 1), that of W 2/(m (h - 1)), as those of variances in
//! the analysis of variance (Gelman and Rubin, Statistical Science 7, 1992), and each of K lags adds 4/(m h) by Bartlett's
//! formula. Four standard errors of all that are given to R-hat.
//!
//! Chains that stay apart look like chains of long memory, which is why there is no limit for those: where what is expected is
//! beyond 1.15, they are too short to tell.

use std::cell::RefCell;

use super::moments::{average, variance};
use super::{Chains, MeanAutocovariance, usable};

/// What chains may have on average at most: that of halves worth three independent draws. Of shorter ones nothing can be
/// told, and R-hat from here on is a disagreement.
const MOST: f64 = 1.15;
/// R-hat up to which chains agree, however long they are.
pub const RHAT_LIMIT: f64 = 1.01;
/// Standard errors by which R-hat may exceed its expectation.
const ERRORS: f64 = 4.0;
/// Rounds in which the variance of the mean and what it hides are found.
const ROUNDS: usize = 60;

/// R-hat beside what it is on average, and may be, when chains of this length agree: of the bulk and the folded figure
/// the larger, but one beyond its limit before one within.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Agreement {
    /// R-hat.
    pub rhat: f64,
    /// What chains that agree have on average, by their autocorrelation times.
    pub expected: f64,
    /// The figure up to which they may be taken to agree: the expected one with four standard errors, 1.01 at least; 1.15
    /// where more is expected.
    pub limit: f64,
}

impl Agreement {
    /// Whether the chains agree.
    pub fn holds(&self) -> bool {
        self.rhat < self.limit
    }

    pub(super) fn of(chains: Option<(Chains, Chains)>) -> Self {
        let nothing = Self { rhat: f64::NAN, expected: f64::NAN, limit: f64::NAN };
        let Some((bulk, folded)) = chains else { return nothing };
        let (bulk, folded) = (Self::of_scores(bulk), Self::of_scores(folded));
        let bad = |a: &Self| (a.rhat >= a.limit, a.rhat);
        if bulk.rhat.is_nan() || bad(&folded) > bad(&bulk) { folded } else { bulk }
    }

    /// Of the scores of halves of chains, two after one another.
    fn of_scores(halves: Chains) -> Self {
        let rhat = halves.rhat();
        let (draws, count) = (halves.draws as f64, halves.iter().len() as f64);
        let Some(Equilibrium { between, lags }) = Equilibrium::of(halves) else {
            return Self { rhat, expected: f64::NAN, limit: RHAT_LIMIT };
        };
        let errors = 2.0 / (count - 1.0) + 2.0 / (count * (draws - 1.0)) + 4.0 * lags / (count * draws);
        let figure = |between: f64| ((draws - 1.0) / draws + between).sqrt().max(1.0);
        let expected = figure(between);
        let most = figure(between * (1.0 + ERRORS * errors.sqrt()));
        Self { rhat, expected, limit: if expected > MOST { MOST } else { most.max(RHAT_LIMIT) } }
    }
}

/// What halves of chains have whose draws are as correlated as those inside of these chains are.
struct Equilibrium {
    /// The variance of their means over the variance inside.
    between: f64,
    /// Lags whose correlations are in that.
    lags: f64,
}

impl Equilibrium {
    fn of(halves: Chains) -> Option<Self> {
        let half = halves.draws;
        let whole = Chains { values: halves.values, draws: 2 * half };
        let autocovariance = MeanAutocovariance::of(&whole);
        let inside = autocovariance.at(0);
        if half < 2 || inside <= 0.0 {
            return None;
        }
        // Every round asks for about the same lags.
        let known: RefCell<Vec<f64>> = RefCell::new(Vec::new());
        let at = |lag: usize| {
            let mut known = known.borrow_mut();
            while known.len() <= lag {
                let next = autocovariance.at(known.len());
                known.push(next);
            }
            known[lag]
        };
        let draws = whole.draws as f64;
        let (mut hidden, mut correlations) = (0.0, vec![]);
        for _ in 0..ROUNDS {
            let total = inside + hidden;
            correlations = monotone(whole.draws, |lag| (at(lag) / (1.0 - lag as f64 / draws) + hidden) / total);
            let next = (total * share(&correlations, draws)).min(0.5 * total);
            let change: f64 = next - hidden;
            hidden = next;
            if change.abs() <= 1e-7 * inside {
                break;
            }
        }
        let total = inside + hidden;
        let of_means = (total * share(&correlations, half as f64)).min(0.9 * total);
        let inside = (total - of_means) * half as f64 / (half as f64 - 1.0);
        Some(Self { between: of_means / inside, lags: correlations.len() as f64 })
    }
}

/// The variance of the mean of so many draws over that of a draw.
fn share(correlations: &[f64], draws: f64) -> f64 {
    let terms = correlations.iter().zip(1..).map(|(rho, lag)| (1.0 - f64::from(lag) / draws).max(0.0) * rho);
    (1.0 + 2.0 * terms.sum::<f64>()).max(0.0) / draws
}

/// The correlations of lags 1, 2, … of the initial monotone positive sequence.
fn monotone(draws: usize, correlation: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut all = vec![];
    let mut smallest = f64::INFINITY;
    for even in (0..draws - 1).step_by(2) {
        let (first, second) = (if even == 0 { 1.0 } else { correlation(even) }, correlation(even + 1));
        let pair = first + second;
        if pair <= 0.0 {
            // The pair that ends the sequence counts by half where its even lag is positive.
            if even > 0 && first > 0.0 {
                all.push(first.min(smallest));
            }
            break;
        }
        let cut = if even == 0 { 1.0 } else { (smallest / pair).min(1.0) };
        smallest = smallest.min(pair);
        if even > 0 {
            all.push(first * cut);
        }
        all.push(second * cut);
    }
    all
}

/// Nested R-hat (Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman, *Nested R-hat*, Bayesian Analysis
/// 2024, doi
/// 10.1214/24-BA1453; equations 15 to 19), as the R package posterior computes it: `superchains` groups of as many
/// chains each, one after the other, the chains of a group started at the same point. Near 1 when the groups have
/// forgotten where they started, however short the chains. Means nothing for chains that started at different points.
///
/// NaN where there is nothing to diagnose, and where the groups are not equally large.
pub fn rhat_nested<C: AsRef<[f64]>>(chains: &[C], superchains: usize) -> f64 {
    let Some(chains) = usable(chains) else { return f64::NAN };
    let count = chains.iter().len();
    if superchains < 2 || !count.is_multiple_of(superchains) {
        return f64::NAN;
    }
    let each = count / superchains;
    let chains = chains.centred();
    let means: Vec<f64> = chains.iter().map(average).collect();
    let variances: Vec<f64> = chains.iter().map(variance).collect();
    let between_chains = |means: &[f64]| if each == 1 { 0.0 } else { variance(means) };
    let within: Vec<f64> = (means.chunks_exact(each).zip(variances.chunks_exact(each)))
        .map(|(means, variances)| between_chains(means) + average(variances))
        .collect();
    let centres: Vec<f64> = means.chunks_exact(each).map(average).collect();
    (1.0 + variance(&centres) / average(&within)).sqrt()
}
