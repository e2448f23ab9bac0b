//! Simulation-based calibration of NUTS (Talts, Betancourt, Simpson, Vehtari and Gelman 2018), a named check:
//!
//!     cargo test --test it calibration -- --ignored --nocapture
//!
//! A lane of a program of `tests/filetests/calibration` draws parameters from the prior and data by them, and runs its
//! own chain on these. The rank of a parameter among thinned draws of its chain is then uniform.

use autobatch::program::io::{ArrayType, NamedValues};
use autobatch::types::DType;

use crate::project::cli::{Folder, output};

const LANES: usize = 2000;
/// Of so many draws one is looked at: they are near to independent.
const THIN: usize = 10;
/// Draws of a chain that are looked at; one less than a multiple of the bins.
const KEPT: usize = 64;
const BINS: usize = 13;
/// The chi-squared statistic with 12 degrees of freedom that is exceeded once in 100,000 times.
const MOST: f64 = 45.08;

/// The statistic of ranks from 0 to `KEPT`.
fn chi_squared(ranks: &[usize]) -> f64 {
    let mut counts = [0_usize; BINS];
    for rank in ranks {
        counts[rank * BINS / (KEPT + 1)] += 1;
    }
    let expected = ranks.len() as f64 / BINS as f64;
    counts.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum()
}

/// The parameters of a lane and its draws.
struct Lane {
    truth: Vec<f64>,
    draws: Vec<Vec<f64>>,
}

fn lanes(model: &str) -> Vec<Lane> {
    let folder = Folder::new(&format!("calibration-{model}"));
    let file = folder.0.join("out.npz");
    let path = format!("{}/tests/filetests/calibration/{model}.ab", env!("CARGO_MANIFEST_DIR"));
    let (lanes, draws) = (LANES.to_string(), format!("num_draws={}", THIN * KEPT));
    let to = file.display().to_string();
    let shared = ["--shared", "num_warmup=500", "--shared", &draws];
    let run = output(&[&["run", &path, "--lanes", &lanes, "--seed", "1", "--output", &to][..], &shared].concat());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let values = NamedValues::read(&file).expect("the outputs can be read");
    let array = |name: &str, rank: usize| values.array(name, ArrayType { dtype: DType::Real, rank }).expect("reals");
    let (truth, q) = (array("result", 2), array("draw.q", 3));
    std::fs::remove_dir_all(&folder.0).expect("the folder can go");
    let (d, rows) = (truth.shape[1], q.shape[1]);
    assert_eq!((truth.shape[0], rows), (LANES, THIN * KEPT));
    let (truth, q) = (truth.as_real().expect("reals"), q.as_real().expect("reals"));
    let row = |lane: usize, draw: usize| q[(lane * rows + draw) * d..][..d].to_vec();
    let lane = |lane: usize| Lane {
        truth: truth[lane * d..][..d].to_vec(),
        draws: (1..=KEPT).map(|k| row(lane, THIN * k - 1)).collect(),
    };
    (0..LANES).map(lane).collect()
}

/// Ranks of a parameter that is off by so much.
fn ranks(lanes: &[Lane], parameter: usize, off: f64) -> Vec<usize> {
    let rank = |lane: &Lane| lane.draws.iter().filter(|q| q[parameter] < lane.truth[parameter] + off).count();
    lanes.iter().map(rank).collect()
}

const MODELS: [&str; 3] = ["regression", "groups", "counts"];

/// The named check is not run every day; that its programs go with today's samplers is.
#[test]
fn programs_of_calibration_compile() {
    for model in MODELS {
        let path = format!("{}/tests/filetests/calibration/{model}.ab", env!("CARGO_MANIFEST_DIR"));
        let check = output(&["check", &path]);
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    }
}

#[test]
#[ignore = "a named check: a minute"]
fn calibration_of_nuts() {
    for model in MODELS {
        let lanes = lanes(model);
        for parameter in 0..lanes[0].truth.len() {
            let statistic = chi_squared(&ranks(&lanes, parameter, 0.0));
            println!("{model}, parameter {}: {statistic:.1}", parameter + 1);
            assert!(statistic < MOST, "{model}, parameter {}: {statistic:.1}", parameter + 1);
            // It would be seen if they were not uniform.
            let off = chi_squared(&ranks(&lanes, parameter, 0.2));
            assert!(off > MOST, "{model}, parameter {}: {off:.1} for what is wrong", parameter + 1);
        }
    }
}

#[test]
fn ranks_that_are_not_uniform_are_seen() {
    let uniform: Vec<usize> = (0..10 * (KEPT + 1)).map(|i| i % (KEPT + 1)).collect();
    assert_eq!(chi_squared(&uniform), 0.0);
    assert!(chi_squared(&vec![KEPT; 100]) > MOST);
}
