//! Values from ArviZ 0.23.4 (NumPy 2.4.6, SciPy 1.17.1), computed with
//! `az.rhat(x)`, `az.ess(x, method="bulk" | "tail" | "mean")`, `az.ess(x, method="quantile", prob=.3)`,
//! `az.mcse(x, method="mean" | "sd")`, `az.mcse(x, method="quantile", prob=.3)`, `az.bfmi(x)[0]`
//! on `x` made by the same recursion as `autoregression` below.

use super::*;

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
