//! How the draws of chains go with those before them, each chain for itself: chains that disagree change nothing of it.

use super::{Chains, MeanAutocovariance, autocorrelation_sum, usable};

/// The autocorrelations of lags 0, 1, … up to `most`, or as far as chains go: autocovariances, averaged over the chains, over
/// the variance within them. Empty where there is nothing to diagnose, or no chain moves.
pub fn autocorrelation<C: AsRef<[f64]>>(chains: &[C], most: usize) -> Vec<f64> {
    let Some((chains, covariance)) = moving(chains) else { return vec![] };
    let variance = covariance.at(0);
    (0..=most.min(chains.draws - 1)).map(|lag| covariance.at(lag) / variance).collect()
}

/// So many draws of a chain are worth one that is independent, by Geyer's initial monotone positive sequence; 1 or more. NaN as
/// [`autocorrelation`] is empty.
pub fn correlation_time<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let Some((chains, covariance)) = moving(chains) else { return f64::NAN };
    let variance = covariance.at(0);
    let sum = autocorrelation_sum(chains.draws, |lag| covariance.at(lag) / variance);
    (2.0 * sum.pairs + sum.last_even - 1.0).max(1.0)
}

fn moving<C: AsRef<[f64]>>(chains: &[C]) -> Option<(Chains, MeanAutocovariance)> {
    let chains = usable(chains)?;
    let covariance = MeanAutocovariance::of(&chains.centred());
    let variance = covariance.at(0);
    (variance > 0.0 && variance.is_finite()).then_some((chains, covariance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_repeats_its_draws_is_worth_less() {
        // By hand: of 1, 1, -1, -1, … the mean is 0 and neighbours are alike half of the time.
        let chain: Vec<f64> = (0..400).map(|i| if i / 2 % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let of = autocorrelation(&[chain], 4);
        assert_eq!(of[0], 1.0);
        assert!(of[1].abs() < 0.01 && (of[2] + 1.0).abs() < 0.01 && (of[4] - 1.0).abs() < 0.02, "{of:?}");
        assert!(autocorrelation(&[vec![2.0; 9]], 3).is_empty() && correlation_time(&[vec![2.0; 9]]).is_nan());
    }

    /// Walks of an odd number of steps, whose lags beyond the near ones come from the Fourier transform.
    #[test]
    fn lags_far_off_are_those_that_are_computed_one_by_one() {
        let walk = |step: usize| -> Vec<f64> {
            let steps = (0..701).map(|i: usize| if (i * i / step).is_multiple_of(3) { 1.0 } else { -0.5 });
            steps
                .scan(0.0, |at, x| {
                    *at += x;
                    Some(*at)
                })
                .collect()
        };
        let chains = usable(&[walk(5), walk(7), walk(11)]).expect("they vary");
        let covariance = MeanAutocovariance::of(&chains);
        for lag in [1, 64, 65, 66, 333, 699, 700] {
            let products = |chain: &[f64]| -> f64 { chain.iter().zip(&chain[lag..]).map(|(a, b)| a * b).sum() };
            let direct = covariance.centred.iter().map(products).sum::<f64>() / (3.0 * 701.0);
            let found = covariance.at(lag);
            assert!((found - direct).abs() < 1e-12 * covariance.at(0), "{lag}: {found} {direct}");
        }
    }

    #[test]
    fn chains_that_disagree_change_nothing() {
        let noise = |seed: u64| -> Vec<f64> {
            let mut state = seed;
            let mut step = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as f64 / f64::from(1_u32 << 31)
            };
            (0..500).map(|_| step()).collect()
        };
        let (a, b) = (noise(1), noise(2));
        let far: Vec<f64> = b.iter().map(|x| x + 100.0).collect();
        let (near, apart) = (correlation_time(&[a.clone(), b]), correlation_time(&[a, far]));
        assert!((near - apart).abs() < 1e-6 && near < 1.5, "{near} {apart}");
    }
}
