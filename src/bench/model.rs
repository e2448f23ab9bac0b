//! What is computed: posteriors with fixed step sizes, programs of control flow, and a user's own Stan programs.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::program::{Error, ErrorKind};

/// A model of the comparison.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name on the command line and in reports.
    pub name: Cow<'static, str>,
    /// What is done with it.
    pub kind: Kind,
    /// One line about it.
    pub about: &'static str,
}

/// What is done with a model.
#[derive(Clone, Debug)]
pub enum Kind {
    /// NUTS with a step size that stays and the unit metric; gradients are counted.
    Posterior {
        /// The program in a checkout.
        file: &'static str,
        /// The step size.
        stepsize: f64,
        /// Dimensions of the state.
        dimension: usize,
        /// Where the data come from.
        data: DataSource,
        /// Transitions before the states that become starting points.
        burn_in: usize,
    },
    /// A function of an int of each lane; what is counted is a function of the input.
    Control {
        /// The program in a checkout.
        file: &'static str,
        /// The function.
        entry: &'static str,
        /// The input of a lane, by its position.
        input: fn(usize) -> i64,
        /// Useful work of an input.
        work: fn(i64) -> u64,
        /// What is counted.
        unit: WorkUnit,
    },
    /// NUTS on a Stan program, with a step size and a diagonal metric that a warmup here learnt and all systems take;
    /// gradients are counted.
    Stan {
        /// The program.
        program: PathBuf,
        /// Where the files are that it includes.
        include: Vec<PathBuf>,
    },
}

/// Where the data of a model come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataSource {
    /// A file of a checkout in Stan's JSON data format.
    File(&'static str),
    /// The generator of `nuts/models/synthetic_logistic_data.ab` with seed 1 and this many rows.
    Logistic(usize),
    /// Mean 0 and the precision matrix of the covariance 0.9^|i - j|.
    Correlated,
    /// No data.
    Nothing,
}

/// What useful work is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkUnit {
    /// Leapfrog gradients.
    Gradients,
    /// Turns of a loop.
    Iterations,
    /// Calls of a function.
    Calls,
    /// Runs of a whole program.
    Runs,
}

impl WorkUnit {
    /// All of them.
    pub(super) const ALL: [WorkUnit; 4] = [WorkUnit::Gradients, WorkUnit::Iterations, WorkUnit::Calls, WorkUnit::Runs];

    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            WorkUnit::Gradients => "gradients",
            WorkUnit::Iterations => "iterations",
            WorkUnit::Calls => "calls",
            WorkUnit::Runs => "runs",
        }
    }
}

/// A program of `benches/ordinary`: a lane gives it its number.
macro_rules! ordinary {
    ($name:literal, $about:literal) => {
        Model {
            name: Cow::Borrowed($name),
            kind: Kind::Control {
                file: concat!("benches/ordinary/", $name, ".ab"),
                entry: $name,
                input: |lane| lane as i64,
                work: |_| 1,
                unit: WorkUnit::Runs,
            },
            about: $about,
        }
    };
}

/// All models.
pub const MODELS: &[Model] = &[
    Model {
        name: Cow::Borrowed("logistic"),
        kind: Kind::Posterior {
            file: "nuts/models/logistic_synthetic.ab",
            stepsize: 0.0265,
            dimension: 100,
            data: DataSource::Logistic(10_000),
            burn_in: 20,
        },
        about: "Bayesian logistic regression, 10,000 observations of 100 covariates",
    },
    Model {
        name: Cow::Borrowed("eight_schools"),
        kind: Kind::Posterior {
            file: "nuts/models/eight_schools.ab",
            stepsize: 0.55,
            dimension: 10,
            data: DataSource::File("nuts/data/eight_schools.json"),
            burn_in: 200,
        },
        about: "eight schools, non-centered, 10 dimensions",
    },
    Model {
        name: Cow::Borrowed("normal10"),
        kind: Kind::Posterior {
            file: "nuts/models/standard_normal.ab",
            stepsize: 0.87,
            dimension: 10,
            data: DataSource::Nothing,
            burn_in: 200,
        },
        about: "standard normal, 10 dimensions",
    },
    Model {
        name: Cow::Borrowed("normal100"),
        kind: Kind::Posterior {
            file: "nuts/models/standard_normal.ab",
            stepsize: 0.5,
            dimension: 100,
            data: DataSource::Nothing,
            burn_in: 200,
        },
        about: "standard normal, 100 dimensions",
    },
    Model {
        name: Cow::Borrowed("correlated10"),
        kind: Kind::Posterior {
            file: "nuts/models/correlated_gaussian.ab",
            stepsize: 0.3,
            dimension: 10,
            data: DataSource::Correlated,
            burn_in: 200,
        },
        about: "normal with correlation 0.9^|i - j|, 10 dimensions",
    },
    Model {
        name: Cow::Borrowed("correlated100"),
        kind: Kind::Posterior {
            file: "nuts/models/correlated_gaussian.ab",
            stepsize: 0.2,
            dimension: 100,
            data: DataSource::Correlated,
            burn_in: 200,
        },
        about: "normal with correlation 0.9^|i - j|, 100 dimensions",
    },
    Model {
        name: Cow::Borrowed("kidscore"),
        kind: Kind::Posterior {
            file: "nuts/models/kidscore_momiq.ab",
            stepsize: 0.012,
            dimension: 3,
            data: DataSource::File("nuts/data/kidiq.json"),
            burn_in: 20,
        },
        about: "linear regression of 434 test scores, 3 dimensions",
    },
    Model {
        name: Cow::Borrowed("wells"),
        kind: Kind::Posterior {
            file: "nuts/models/logistic_wells.ab",
            stepsize: 0.0015,
            dimension: 2,
            data: DataSource::File("nuts/data/wells_data.json"),
            burn_in: 20,
        },
        about: "logistic regression of 3,020 wells, 2 dimensions",
    },
    Model {
        name: Cow::Borrowed("collatz"),
        kind: Kind::Control {
            file: "examples/collatz.ab",
            entry: "collatz",
            input: collatz_input,
            work: collatz_steps,
            unit: WorkUnit::Iterations,
        },
        about: "steps of the Collatz iteration from starts up to 1,000,000",
    },
    Model {
        name: Cow::Borrowed("fib"),
        kind: Kind::Control {
            file: "examples/fib.ab",
            entry: "fib",
            input: fib_input,
            work: fib_calls,
            unit: WorkUnit::Calls,
        },
        about: "recursive Fibonacci numbers of 5 to 15",
    },
    ordinary!("ackermann", "the function of Ackermann and Péter, by recursion"),
    ordinary!("automaton", "a finite automaton with a table"),
    ordinary!("bellman_ford", "shortest paths in a graph of 20 nodes"),
    ordinary!("bisection", "the real roots of a cubic"),
    ordinary!("edit_distance", "the edit distance of two strings of 24 symbols"),
    ordinary!("event_queue", "200 events of a binary heap"),
    ordinary!("gauss", "systems of 5 linear equations"),
    ordinary!("hash_table", "a hash table with open addressing"),
    ordinary!("insertion_sort", "insertion sort of 64 numbers"),
    ordinary!("knapsack", "the knapsack of 20 items by dynamic programming"),
    ordinary!("life", "the game of life on a torus of 16 by 16 cells"),
    ordinary!("mandelbrot", "iterations of the Mandelbrot set at 8 points"),
    ordinary!("merge_sort", "merge sort of 64 numbers"),
    ordinary!("miller_rabin", "whether an odd number is a prime"),
    ordinary!("queens", "6 queens by recursive backtracking"),
    ordinary!("quicksort", "quicksort of 64 numbers by recursion"),
    ordinary!("range_queries", "a segment tree of 64 leaves"),
    ordinary!("ray_marcher", "4 rays march towards two spheres"),
    ordinary!("rk45", "an oscillator with adaptive steps"),
    ordinary!("sieve", "the sieve of Eratosthenes below 500"),
    ordinary!("sudoku", "backtracking on a Sudoku"),
];

/// The model of this name.
///
/// # Errors
/// [`ErrorKind::Option`] when there is none.
pub fn by_name(name: &str) -> Result<&'static Model, Error> {
    MODELS.iter().find(|m| m.name == name).ok_or_else(|| {
        let names: Vec<&str> = MODELS.iter().map(|m| &*m.name).collect();
        Error::new(ErrorKind::Option, format!("no model `{name}`: there is {}", names.join(", ")))
    })
}

/// Models are known by their names.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Model {
    /// A Stan program, named as its file.
    pub fn of_stan(program: &Path, include: &[PathBuf]) -> Model {
        let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let kind = Kind::Stan { program: program.to_owned(), include: include.to_vec() };
        Model { name: Cow::Owned(name), kind, about: "a Stan program" }
    }
    /// Whether NUTS runs on it.
    pub fn is_posterior(&self) -> bool {
        matches!(self.kind, Kind::Posterior { .. } | Kind::Stan { .. })
    }
    /// Whether it is a program of `benches/ordinary`.
    pub fn is_ordinary(&self) -> bool {
        matches!(self.kind, Kind::Control { unit: WorkUnit::Runs, .. })
    }
    /// Whether it has data.
    pub fn takes_data(&self) -> bool {
        match self.kind {
            Kind::Posterior { data, .. } => data != DataSource::Nothing,
            Kind::Control { .. } => false,
            Kind::Stan { .. } => true,
        }
    }
    /// What its useful work is counted in.
    pub fn unit(&self) -> WorkUnit {
        match self.kind {
            Kind::Posterior { .. } | Kind::Stan { .. } => WorkUnit::Gradients,
            Kind::Control { unit, .. } => unit,
        }
    }
}

/// A fixed spread of inputs in `0..below`: no generator is needed.
fn spread(i: usize, below: u64) -> i64 {
    (((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % below) as i64
}

fn collatz_input(lane: usize) -> i64 {
    // 0 spreads to 0, and 1 is done at once.
    1 + spread(lane + 1, 1_000_000)
}

fn collatz_steps(mut n: i64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn fib_input(lane: usize) -> i64 {
    5 + spread(lane, 11)
}

fn fib_calls(n: i64) -> u64 {
    let (mut before, mut calls) = (1, 1);
    for _ in 3..=n {
        (before, calls) = (calls, 1 + calls + before);
    }
    calls
}

/// The precision matrix of the covariance 0.9^|i - j|, row after row: tridiagonal.
pub(super) fn correlated_precision(d: usize) -> Vec<f64> {
    const R: f64 = 0.9;
    let scale = 1.0 / (1.0 - R * R);
    let element = |i: usize, j: usize| match i.abs_diff(j) {
        0 if i == 0 || i + 1 == d => scale,
        0 => scale * (1.0 + R * R),
        1 => -scale * R,
        _ => 0.0,
    };
    (0..d * d).map(|e| element(e / d, e % d)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_fib_are_counted() {
        fn calls(n: i64) -> u64 {
            if n < 3 { 1 } else { 1 + calls(n - 1) + calls(n - 2) }
        }
        assert!((0..20).all(|n| fib_calls(n) == calls(n)));
        assert_eq!(collatz_steps(27), 111);
    }

    #[test]
    fn the_precision_is_the_inverse_of_the_covariance() {
        let d = 4;
        let precision = correlated_precision(d);
        for i in 0..d {
            for j in 0..d {
                let terms = (0..d).map(|k| precision[i * d + k] * 0.9_f64.powi(k.abs_diff(j) as i32));
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((terms.sum::<f64>() - expected).abs() < 1e-12);
            }
        }
    }
}
