//! Diagnostics where their numbers are hard: far from zero, for short chains, for chains that share their starts.

use autobatch::mcmc::diagnostics::{
    agreement, e_bfmi, e_bfmi_of_all, ess_bulk, ess_mean, mcse_mean, mcse_sd, mean, rhat, rhat_nested, sd,
};

/// First-order autoregressions driven by a linear congruential generator; chain `c` is moved by `shift * c`.
fn autoregression(chains: usize, draws: usize, coefficient: f64, shift: f64) -> Vec<Vec<f64>> {
    let mut state: u64 = 12345;
    let chain = |c: usize| {
        let mut x = 0.0;
        let mut step = || {
            state = (state * 1_103_515_245 + 12345) % (1 << 31);
            x = coefficient * x + (state as f64 / f64::from(1_u32 << 31) - 0.5);
            x + shift * c as f64
        };
        (0..draws).map(|_| step()).collect()
    };
    (0..chains).map(chain).collect()
}

fn close(what: &str, found: f64, expected: f64) {
    let same = (found - expected).abs() <= 1e-9 * expected.abs() || (found.is_nan() && expected.is_nan());
    assert!(same, "{what}: {found} is not {expected}");
}

/// Chains of multiples of 2^-10, which an offset of 1e12 leaves exact.
fn on_a_grid(chains: usize, draws: usize, offset: f64) -> Vec<Vec<f64>> {
    let round = |x: &f64| offset + (x * 1024.0).round() / 1024.0;
    autoregression(chains, draws, 0.5, 0.0).iter().map(|chain| chain.iter().map(round).collect()).collect()
}

#[test]
fn an_offset_takes_no_digits() {
    for offset in [1e8, 1e12] {
        let (near, far) = (on_a_grid(4, 250, 0.0), on_a_grid(4, 250, offset));
        type Figure = fn(&[Vec<f64>]) -> f64;
        let figures: [(&str, Figure); 7] = [
            ("sd", sd),
            ("mcse of the mean", mcse_mean),
            ("mcse of the sd", mcse_sd),
            ("bulk", ess_bulk),
            ("mean", ess_mean),
            ("R-hat", rhat),
            ("E-BFMI", |chains| e_bfmi(&chains[0])),
        ];
        for (what, figure) in figures {
            close(what, figure(&far), figure(&near));
        }
        // The exact mean is a multiple of 2^-10 / 1000: what is left is the rounding of the sum to a number of its size.
        assert!((mean(&far) - offset - mean(&near)).abs() <= offset * f64::EPSILON);
    }
    // The variance of 1e12 + (0, 1, 2, 3) / 1024, by hand: 5/3 / 1024².
    let four = [0.0, 1.0, 2.0, 3.0].map(|k| 1e12 + k / 1024.0);
    close("by hand", sd(&[four]), (5.0_f64 / 3.0).sqrt() / 1024.0);
    assert_eq!(mean(&[[1.0, f64::INFINITY]]), f64::INFINITY);
}

#[test]
fn nested_rhat_is_that_of_the_formula() {
    // Four chains of four draws in two superchains, by hand. Means of the chains 1, 2, 4, 6; variances inside 2/3 each (draws
    // m - 1, m, m, m + 1). Superchains: means 3/2 and 5, variance between them 49/8; variances between their chains 1/2 and 2;
    // within: the mean of 1/2 + 2/3 and 2 + 2/3, 23/12. Nested R-hat: √(1 + (49/8) / (23/12)) = √(1 + 147/46).
    let chains: Vec<Vec<f64>> = [1.0, 2.0, 4.0, 6.0].iter().map(|m| vec![m - 1.0, *m, *m, m + 1.0]).collect();
    close("two superchains", rhat_nested(&chains, 2), (1.0_f64 + 147.0 / 46.0).sqrt());
    // Each chain for itself: the variance of the means 59/12 over the variance inside, 2/3.
    close("four superchains", rhat_nested(&chains, 4), (1.0_f64 + 59.0 / 12.0 * 1.5).sqrt());
    assert!(rhat_nested(&chains, 3).is_nan() && rhat_nested(&chains, 1).is_nan());
}

#[test]
fn short_chains_that_agree_may_have_a_larger_rhat() {
    let short = agreement(&autoregression(64, 60, 0.5, 0.0));
    // Halves of 30 draws with an autocorrelation time of 3 are worth 10 draws: √(29/30 / (1 - 1/10)) = 1.036.
    assert!((short.expected - 1.036).abs() < 0.01, "{short:?}");
    assert!(short.rhat > 1.01 && short.holds(), "{short:?}");
    // They disagree as soon as their centres are apart: a third of a standard deviation from one to the next.
    let apart = agreement(&autoregression(64, 60, 0.5, 0.1));
    assert!(!apart.holds(), "{apart:?}");
    let moderately = agreement(&autoregression(64, 60, 0.5, 0.01));
    assert!(!moderately.holds(), "{moderately:?}");
    // Long chains are judged as ever.
    let long = agreement(&autoregression(4, 1000, 0.5, 0.0));
    assert!(long.limit < 1.02 && long.holds(), "{long:?}");
    assert!(!agreement(&autoregression(4, 1000, 0.5, 0.1)).holds());
}

#[test]
fn the_energies_of_short_chains_are_looked_at_together() {
    let chains = autoregression(50, 20, 0.0, 0.0);
    assert!((e_bfmi_of_all(&chains) - 2.0).abs() < 0.3, "independent energies have 2");
    close("one chain", e_bfmi_of_all(&chains[..1]), e_bfmi(&chains[0]));
}
