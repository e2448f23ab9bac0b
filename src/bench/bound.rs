//! What the gradient of logistic regression takes on this machine with a logarithm for each observation: its two matrix
//! products by the machine's own kernel, and an exponential and a logarithm for each observation, with nothing around
//! them. A model that sums its logarithms by blocks ([`LogSum`](crate::vmath::LogSum)) may go beyond.
//!
//! How long that takes hangs on how it is cut into tiles: a tile of rows of the matrix, which is read twice, and what is made of it
//! should stay in the cache. Many [`Tiling`]s are tried, those that the machine may choose among them, and the quickest is the
//! bound.

use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array2, ArrayView2, s};

use crate::backend::cpu::kernels::gemm;
use crate::vmath::{Real, UnaryFn, log1p_exp_and_inv_logit, unary};

/// How the work is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiling {
    /// Most columns of one product: lanes that run together.
    pub columns: usize,
    /// Observations of a tile.
    pub rows: usize,
    /// The elementary functions of an observation.
    pub functions: ElementwiseWork,
}

/// Which elementary functions are computed of each observation in each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementwiseWork {
    /// An exponential, then a logarithm.
    ExpThenLog1p,
    /// The log density and its derivative at once, which have an exponential in common.
    Together,
}

/// Columns that are tried: those of the machine's shards and parts of them.
const COLUMNS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Rows that are tried: the tiles of the machine are multiples of 256.
const ROWS: [usize; 4] = [256, 512, 1024, 2048];
/// Narrower than this part of the lanes no product is quickest.
const NARROWEST: usize = 16;
/// With so few columns a tile of few rows, whose part of the matrix stays in the first cache, may be the quickest.
const FEW_COLUMNS: usize = 16;
/// Such a tile.
const FEW_ROWS: usize = 64;
/// Elements (observations × lanes) that a trial computes: some milliseconds.
const TRIAL: usize = 1 << 18;
/// Observations that a trial goes through at least, so that each tile comes from where it comes from in the end.
const TRIAL_ROWS: usize = 2048;
/// How many of the quickest of the first trial go into a second one.
const FINALISTS: usize = 6;

impl Tiling {
    /// All that are worth a trial for so many observations and lanes.
    fn all(observations: usize, lanes: usize, functions: ElementwiseWork) -> Vec<Self> {
        let narrowest = lanes.min(COLUMNS[COLUMNS.len() - 1]).div_ceil(NARROWEST);
        let mut all: Vec<Self> = Vec::new();
        for most in COLUMNS.iter().filter(|c| **c >= narrowest) {
            let columns = lanes.min(*most);
            let few = (columns <= FEW_COLUMNS).then_some(FEW_ROWS);
            for rows in few.into_iter().chain(ROWS) {
                let tiling = Self { columns, rows: rows.min(observations), functions };
                if !all.contains(&tiling) {
                    all.push(tiling);
                }
            }
        }
        all
    }
}

impl ElementwiseWork {
    /// The quicker ones on this machine.
    fn quicker<R: Real>() -> Self {
        const ELEMENTS: usize = 1 << 13;
        let eta: Vec<R> = (0..ELEMENTS).map(|i| R::from_f64((i % 97) as f64 / 16.0 - 3.0)).collect();
        let (mut a, mut b) = (eta.clone(), eta.clone());
        let mut seconds = |functions: Self| {
            let mut x = eta.clone();
            let start = Instant::now();
            functions.apply(&mut x, &mut a, &mut b);
            black_box((&x, &a, &b));
            start.elapsed().as_secs_f64()
        };
        let mut least = [f64::INFINITY; 2];
        for _ in 0..8 {
            let turn = [seconds(Self::ExpThenLog1p), seconds(Self::Together)];
            least = [least[0].min(turn[0]), least[1].min(turn[1])];
        }
        if least[0] <= least[1] { Self::ExpThenLog1p } else { Self::Together }
    }

    /// Computes them of `eta`; `residual` gets what the second product takes.
    fn apply<R: Real>(self, eta: &mut [R], residual: &mut [R], rest: &mut [R]) {
        match self {
            Self::ExpThenLog1p => {
                unary(UnaryFn::Exp, eta, residual);
                unary(UnaryFn::Log1p, residual, eta);
            }
            Self::Together => log1p_exp_and_inv_logit(eta, &mut rest[..eta.len()], residual),
        }
    }
}

/// The work of one thread, with its memory.
#[derive(Debug)]
pub struct Gradients<R> {
    /// In batches of columns.
    weights: Vec<Array2<R>>,
    tiling: Tiling,
    eta: Vec<R>,
    residual: Vec<R>,
    rest: Vec<R>,
    gradient: Vec<R>,
}

impl<R: Real> Gradients<R> {
    /// `weights` is covariate × lane.
    pub fn new(weights: ArrayView2<'_, R>, tiling: Tiling) -> Self {
        let (lanes, columns) = (weights.ncols(), tiling.columns.clamp(1, weights.ncols().max(1)));
        let tile = vec![R::ZERO; tiling.rows * columns];
        let gradient = vec![R::ZERO; weights.nrows() * columns];
        let batch = |first: usize| {
            let part = weights.slice(s![.., first..lanes.min(first + columns)]);
            part.as_standard_layout().into_owned()
        };
        let weights = (0..lanes).step_by(columns).map(batch).collect();
        let rest = if tiling.functions == ElementwiseWork::Together { tile.clone() } else { Vec::new() };
        Self { weights, tiling, eta: tile.clone(), residual: tile, rest, gradient }
    }

    /// Computes one gradient for each lane; `x` is observation × covariate.
    pub fn run(&mut self, x: &ArrayView2<'_, R>) {
        (0..self.weights.len()).for_each(|batch| self.run_batch(batch, x));
    }

    fn run_batch(&mut self, batch: usize, x: &ArrayView2<'_, R>) {
        let w = &self.weights[batch];
        let (columns, step) = (w.ncols(), self.tiling.rows.max(1));
        for row in (0..x.nrows()).step_by(step) {
            let rows = step.min(x.nrows() - row);
            let x = x.slice(s![row..row + rows, ..]);
            let (eta, residual) = (&mut self.eta[..rows * columns], &mut self.residual[..rows * columns]);
            gemm(&x, &w.view(), false, eta);
            self.tiling.functions.apply(eta, residual, &mut self.rest);
            black_box((&mut *eta, &mut self.rest));
            let residual = ArrayView2::from_shape((rows, columns), &*residual).expect("the tile fills its shape");
            gemm(&x.t(), &residual, row > 0, &mut self.gradient[..x.ncols() * columns]);
        }
        black_box(&mut self.gradient);
    }
}

/// The tilings that are quickest on this machine for the lanes of one thread, the first first, as far as a short trial tells.
/// `x` is observation × covariate, `weights` covariate × lane.
pub fn quickest<R: Real>(x: &ArrayView2<'_, R>, weights: &ArrayView2<'_, R>) -> Vec<Tiling> {
    let functions = ElementwiseWork::quicker::<R>();
    let mut tried: Vec<(f64, Tiling)> =
        Tiling::all(x.nrows(), weights.ncols(), functions).into_iter().map(|t| (trial(x, weights, t, 1), t)).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    tried.truncate(FINALISTS);
    for (seconds, tiling) in &mut tried {
        *seconds = seconds.min(trial(x, weights, *tiling, 2));
    }
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    tried.into_iter().map(|(_, tiling)| tiling).collect()
}

/// Seconds for an observation in a lane: the quickest of some passes of one batch over as many observations as take a moment.
fn trial<R: Real>(x: &ArrayView2<'_, R>, weights: &ArrayView2<'_, R>, tiling: Tiling, passes: usize) -> f64 {
    let columns = tiling.columns.min(weights.ncols()).max(1);
    let rows = (TRIAL / columns).max(TRIAL_ROWS).min(x.nrows());
    let mut work = Gradients::new(weights.slice(s![.., ..columns]), tiling);
    // A first tile, so that the memory is there.
    work.run(&x.slice(s![..tiling.rows.min(rows), ..]));
    let x = x.slice(s![..rows, ..]);
    let pass = || {
        let start = Instant::now();
        work.run(&x);
        start.elapsed().as_secs_f64()
    };
    std::iter::repeat_with(pass).take(passes).fold(f64::INFINITY, f64::min) / (rows * columns) as f64
}

/// Lanes of each thread: as even as can be, none without lanes.
pub fn shares(lanes: usize, threads: usize) -> Vec<usize> {
    let workers = threads.min(lanes).max(1);
    (0..workers).map(|i| (lanes * (i + 1)) / workers - (lanes * i) / workers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tiling_computes_the_products() {
        let (n, d, lanes) = (600, 3, 30);
        let x = Array2::from_shape_fn((n, d), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 11.0 - 0.5);
        let w = Array2::from_shape_fn((d, lanes), |(i, j)| ((i + j) % 5) as f64 / 5.0 - 0.4);
        for functions in [ElementwiseWork::ExpThenLog1p, ElementwiseWork::Together] {
            let residual = match functions {
                ElementwiseWork::ExpThenLog1p => f64::exp,
                ElementwiseWork::Together => |eta: f64| 1.0 / (1.0 + (-eta).exp()),
            };
            let expected = x.t().dot(&x.dot(&w).mapv(residual));
            let all = Tiling::all(n, lanes, functions);
            assert!(all.iter().any(|t| t.columns == lanes) && all.iter().any(|t| t.columns == 8 && t.rows == 256));
            for tiling in all {
                let mut work = Gradients::new(w.view(), tiling);
                work.run(&x.view());
                // The last batch of columns.
                let columns = work.weights[work.weights.len() - 1].ncols();
                for (e, found) in work.gradient[..d * columns].iter().enumerate() {
                    let wanted = expected[[e / columns, lanes - columns + e % columns]];
                    assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{tiling:?}: {found} {wanted}");
                }
            }
        }
    }

    /// A tile of the matrix fits in a cache that every processor has beside a core, and so does what is made of it in the lanes.
    #[test]
    fn some_tiling_stays_in_the_cache_whatever_the_lanes() {
        for lanes in [1, 2, 5, 10, 64, 100, 256, 500, 1000] {
            let all = Tiling::all(10_000, lanes, ElementwiseWork::Together);
            let bytes = |t: &Tiling| (100 + 3 * t.columns) * t.rows * size_of::<f64>();
            assert!(all.iter().any(|t| bytes(t) <= 1 << 19), "{lanes} lanes: {all:?}");
            assert!(all.len() <= 32 && all.iter().all(|t| t.columns <= 256), "{lanes} lanes: {all:?}");
        }
    }

    #[test]
    fn the_quickest_are_some_of_them() {
        let x = Array2::<f32>::from_elem((40, 5), 0.1);
        let w = Array2::<f32>::from_elem((5, 3), 0.2);
        let found = quickest(&x.view(), &w.view());
        assert!(!found.is_empty() && found.len() <= FINALISTS);
        assert!(found.iter().all(|t| t.rows == 40 && t.columns <= 3));
    }

    #[test]
    fn lanes_are_shared_evenly() {
        assert_eq!(shares(10, 3), [3, 3, 4]);
        assert_eq!(shares(1, 2), [1]);
        assert_eq!(shares(1000, 2), [500, 500]);
    }
}
