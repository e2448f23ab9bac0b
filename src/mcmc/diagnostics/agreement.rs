//! Whether many short chains agree.
//!
//! R-hat compares the variance of the means of chains with the variance inside them. The mean of a short chain varies
//! though the chain is in equilibrium: of `n` draws that are worth `e` independent ones, R-hat is about √(1 + 1/e). So
//! with chains of fewer than a hundred effective draws it passes 1.01 in every good run, however many chains there are.

use super::moments::{average, variance};
use super::{Chains, MeanAutocovariance, autocorrelation_sum, usable};

/// R-hat beyond which chains disagree, however short they are: that of halves worth five independent draws. Of shorter
/// ones nothing can be told.
const MOST: f64 = 1.1;
/// R-hat up to which chains agree, however long they are.
pub const RHAT_LIMIT: f64 = 1.01;
/// Standard errors by which R-hat may exceed its expectation.
const ERRORS: f64 = 4.0;
/// Rounds in which the autocorrelation time and what it hides are found.
const ROUNDS: usize = 30;

/// R-hat beside what it is on average, and may be, when chains of this length agree: of the bulk and the folded figure
/// the larger, but one beyond its limit before one within.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Agreement {
    /// R-hat.
    pub rhat: f64,
    /// What chains that agree have on average, by their autocorrelation times.
    pub expected: f64,
    /// The figure up to which they may be taken to agree: the expected one with four standard errors, from 1.01 to 1.1.
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
        let (bulk, folded) = (Self::of_scores(&bulk), Self::of_scores(&folded));
        let bad = |a: &Self| (a.rhat >= a.limit, a.rhat);
        if bulk.rhat.is_nan() || bad(&folded) > bad(&bulk) { folded } else { bulk }
    }

    fn of_scores(chains: &Chains) -> Self {
        let rhat = chains.rhat();
        let expected = expected(chains);
        let spread = ERRORS * (2.0 / (chains.iter().len() as f64 - 1.0).max(1.0)).sqrt();
        // In terms of the variance of the means, which is what varies.
        let most = (1.0 + (expected * expected - 1.0).max(0.0) * (1.0 + spread)).sqrt();
        Self { rhat, expected, limit: if most.is_nan() { RHAT_LIMIT } else { most.clamp(RHAT_LIMIT, MOST) } }
    }
}

/// R-hat of chains in equilibrium whose draws are as correlated as those inside of these chains are: with the variance
/// s² and the autocorrelation time τ the means vary by s² τ / n, and the variance inside is s² (1 - τ / n).
fn expected(chains: &Chains) -> f64 {
    let draws = chains.draws as f64;
    let autocovariance = MeanAutocovariance::of(chains);
    let inside = autocovariance.at(0);
    if chains.draws < 2 || inside <= 0.0 {
        return f64::NAN;
    }
    // Centred at the mean of its chain, every autocovariance lacks the variance of the means, which is what is looked
    // for; the fewer terms it has, the less.
    let mut part = 0.0;
    for _ in 0..ROUNDS {
        let hidden = inside * part / (1.0 - part);
        let terms = |lag: usize| 1.0 - lag as f64 / draws;
        let correlation = |lag: usize| (autocovariance.at(lag) + hidden * terms(lag)) / (inside + hidden);
        let sum = autocorrelation_sum(chains.draws, correlation);
        let time = (2.0 * sum.pairs + sum.last_even - 1.0).max(0.0);
        let next = (time / draws).min(0.5);
        if (next - part).abs() <= 1e-6 {
            break;
        }
        part = next;
    }
    ((draws - 1.0) / draws / (1.0 - part)).sqrt().max(1.0)
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
