//! Convergence diagnostics against ArviZ and NumPy, and where their numbers are hard: far from zero, for short chains,
//! for chains that share their starts.

use autobatch::mcmc::diagnostics::{
    agreement, e_bfmi, e_bfmi_of_all, ess_bulk, ess_mean, ess_quantile, ess_tail, mcse_mean, mcse_quantile, mcse_sd,
    mean, quantiles, rhat, rhat_nested, sd,
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
        // The exact mean is a multiple of 2^-10 / 1000: what is left is the rounding of the sum to a number of its
        // size.
        assert!((mean(&far) - offset - mean(&near)).abs() <= offset * f64::EPSILON);
    }
    // The variance of 1e12 + (0, 1, 2, 3) / 1024, by hand: 5/3 / 1024².
    let four = [0.0, 1.0, 2.0, 3.0].map(|k| 1e12 + k / 1024.0);
    close("by hand", sd(&[four]), (5.0_f64 / 3.0).sqrt() / 1024.0);
    assert_eq!(mean(&[[1.0, f64::INFINITY]]), f64::INFINITY);
}

#[test]
fn nested_rhat_is_that_of_the_formula() {
    // Four chains of four draws in two superchains, by hand. Means of the chains 1, 2, 4, 6; variances inside 2/3 each
    // (draws m - 1, m, m, m + 1). Superchains: means 3/2 and 5, variance between them 49/8; variances between their
    // chains 1/2 and 2; within: the mean of 1/2 + 2/3 and 2 + 2/3, 23/12. Nested R-hat: √(1 + (49/8) / (23/12)) = √(1 +
    // 147/46).
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
fn many_short_chains_that_agree_raise_no_alarm() {
    for (chains, draws) in [(64, 10), (256, 10), (256, 20), (1024, 10), (1024, 40), (64, 100)] {
        for correlation in [-0.4, 0.0, 0.3] {
            let agree = agreement(&autoregression(chains, draws, correlation, 0.0));
            assert!(agree.holds(), "{chains} × {draws}, {correlation}: {agree:?}");
            // Of normal draws the centres of chains are apart by standard deviations.
            let apart = agreement(&autoregression(chains, draws, correlation, 8.0 / chains as f64));
            assert!(!apart.holds(), "{chains} × {draws}, {correlation}: {apart:?}");
        }
    }
}

#[test]
fn the_energies_of_short_chains_are_looked_at_together() {
    let chains = autoregression(50, 20, 0.0, 0.0);
    assert!((e_bfmi_of_all(&chains) - 2.0).abs() < 0.3, "independent energies have 2");
    close("one chain", e_bfmi_of_all(&chains[..1]), e_bfmi(&chains[0]));
}

/// Values from ArviZ 0.23.4 (NumPy 2.4.6, SciPy 1.17.1), computed with
/// `az.rhat(x)`, `az.ess(x, method="bulk" | "tail" | "mean")`, `az.ess(x, method="quantile", prob=.3)`,
/// `az.mcse(x, method="mean" | "sd")`, `az.mcse(x, method="quantile", prob=.3)`, `az.bfmi(x)[0]`
/// on `x` made by the same recursion as `autoregression`.
#[test]
fn values_are_those_of_arviz() {
    let nan = f64::NAN;
    // Tail ESS of the last: ArviZ answers 12, the number of draws, where the indicator is constant; posterior does not.
    let cases = [
        (
            (4, 100, 0.5, 0.0),
            [
                1.014352674896544,
                116.18786771418934,
                247.74510021953296,
                120.55490569768237,
                163.76894471949026,
                0.0300859555511096,
                0.011385738661426205,
                0.04495460723368638,
                1.2640238681598472,
            ],
        ),
        (
            (3, 51, 0.9, 0.25),
            [
                1.3954419708182368,
                7.6204424739167145,
                11.891863322850883,
                6.922629121412221,
                14.332166665373247,
                0.23254792093357857,
                0.16427284964775168,
                0.14207035273935692,
                0.3468600408711161,
            ],
        ),
        (
            (2, 200, -0.6, 0.0),
            [
                1.0007968946501768,
                1040.823996531185,
                292.0688262740202,
                1040.823996531185,
                450.7959859191921,
                0.011459959989647899,
                0.01860768522823353,
                0.020689058350839826,
                3.1592932974195174,
            ],
        ),
        (
            (2, 7, 0.3, 0.0),
            [
                1.2297346731568077,
                12.9501749525715,
                nan,
                12.9501749525715,
                12.9501749525715,
                0.05312599999808755,
                0.023463359419379083,
                0.07615063625853508,
                2.5055283244554607,
            ],
        ),
    ];
    for ((chains, draws, coefficient, shift), expected) in cases {
        let x = autoregression(chains, draws, coefficient, shift);
        let found = [
            ("rhat", rhat(&x)),
            ("ess_bulk", ess_bulk(&x)),
            ("ess_tail", ess_tail(&x)),
            ("ess_mean", ess_mean(&x)),
            ("ess_quantile", ess_quantile(&x, 0.3)),
            ("mcse_mean", mcse_mean(&x)),
            ("mcse_sd", mcse_sd(&x)),
            ("mcse_quantile", mcse_quantile(&x, 0.3)),
            ("e_bfmi", e_bfmi(&x[0])),
        ];
        for ((what, found), expected) in found.into_iter().zip(expected) {
            close(&format!("{what} of {chains} x {draws}"), found, expected);
        }
    }
}

#[test]
fn ties_share_their_rank() {
    let mut x = autoregression(4, 100, 0.5, 0.0);
    // NumPy rounds halves to even, as this does.
    x.iter_mut().flatten().for_each(|x| *x = (*x * 4.0).round_ties_even());
    close("rhat", rhat(&x), 1.017016117755173);
    close("ess_bulk", ess_bulk(&x), 117.23350660659659);
    close("ess_tail", ess_tail(&x), 194.47369516024227);
}

#[test]
fn one_chain_is_enough() {
    let x = autoregression(1, 100, 0.5, 0.0);
    close("rhat", rhat(&x), 1.037534725382758);
    close("ess_bulk", ess_bulk(&x), 30.307350626980437);
    close("ess_tail", ess_tail(&x), 71.46607549151159);
}

#[test]
fn moments_and_quantiles_are_those_of_numpy() {
    let x = autoregression(3, 51, 0.9, 0.25);
    close("mean", mean(&x), 0.17854955023263283);
    close("sd", sd(&x), 0.6118542677034883);
    let expected = [-0.6044882717526262, 0.09949338693222609, 1.3713409264454546];
    for (found, expected) in quantiles(&x, &[0.05, 0.5, 0.95]).into_iter().zip(expected) {
        close("quantile", found, expected);
    }
}

#[test]
fn nothing_to_diagnose_is_nan() {
    let diagnostics = |x: &[Vec<f64>]| {
        [rhat(x), ess_bulk(x), ess_tail(x), ess_mean(x), mcse_mean(x), mcse_sd(x), mcse_quantile(x, 0.5)]
    };
    let constant = vec![vec![0.1 + 0.2; 20]; 4];
    let short = autoregression(4, 3, 0.5, 0.0);
    let mut not_a_number = autoregression(4, 20, 0.5, 0.0);
    not_a_number[2][7] = f64::NAN;
    let mut infinite = autoregression(4, 20, 0.5, 0.0);
    infinite[0][0] = f64::INFINITY;
    for x in [constant, short, not_a_number, infinite, vec![], vec![vec![]]] {
        assert!(diagnostics(&x).iter().all(|value| value.is_nan()), "{:?}", diagnostics(&x));
    }
    assert!(mean(&[[0.0; 0]]).is_nan());
    assert!(quantiles(&[[0.0; 0]], &[0.5])[0].is_nan());
    assert!(quantiles(&[[1.0, f64::NAN]], &[0.5])[0].is_nan());
    assert!(e_bfmi(&[1.0]).is_nan());
}

#[test]
fn chains_are_cut_to_the_shortest() {
    let even = autoregression(2, 40, 0.5, 0.0);
    let mut ragged = even.clone();
    ragged[1].extend([1e9; 5]);
    close("rhat", rhat(&ragged), rhat(&even));
}

#[test]
fn chains_that_stand_still_apart_have_infinite_rhat() {
    assert_eq!(rhat(&[vec![0.0; 10], vec![1.0; 10]]), f64::INFINITY);
}

/// Step sizes after warmup, say, of a long run: lag by lag they would take hours.
#[test]
fn chains_that_stay_apart_are_worth_one_draw_each() {
    for draws in [1000, 400_000] {
        let chains: Vec<Vec<f64>> = [0.1, 0.7, 0.3, 1.1].into_iter().map(|x| vec![x; draws]).collect();
        let size = ess_mean(&chains);
        assert!((size - 4.0).abs() < 0.05, "{draws} draws: {size}");
    }
}
