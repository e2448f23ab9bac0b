//! What no implementation of the gradient of logistic regression goes below on this machine: its two matrix products by the
//! machine's own kernel, and an exponential and a logarithm for each observation, with nothing around them.

use std::hint::black_box;

use ndarray::{Array2, ArrayView2};

use crate::backend::cpu::kernels::gemm;
use crate::vmath::{Real, UnaryFn, unary};

/// Most columns of one product: lanes of a shard.
const MOST_COLUMNS: usize = 256;
/// Bytes that the intermediate values of a tile of rows may take: half of a second-level cache.
const TILE_BYTES: usize = 1 << 19;
/// Rows of a tile are a multiple of this.
const ROW_BLOCK: usize = 256;

/// The work of one thread, with its memory.
#[derive(Debug)]
pub struct Gradients<'a, R> {
    x: ArrayView2<'a, R>,
    /// In batches of columns.
    weights: Vec<Array2<R>>,
    rows: usize,
    eta: Vec<R>,
    out: Vec<R>,
    gradient: Vec<R>,
}

impl<'a, R: Real> Gradients<'a, R> {
    /// `x` is observation × covariate, `weights` covariate × lane.
    pub fn new(x: ArrayView2<'a, R>, weights: Array2<R>) -> Self {
        let columns = weights.ncols().clamp(1, MOST_COLUMNS);
        let rows = TILE_BYTES / (2 * size_of::<R>() * columns) / ROW_BLOCK * ROW_BLOCK;
        let rows = rows.max(ROW_BLOCK).min(x.nrows());
        let tile = vec![R::ZERO; rows * columns];
        let gradient = vec![R::ZERO; x.ncols() * columns];
        let batches = (0..weights.ncols()).step_by(MOST_COLUMNS);
        let last = |first: usize| (first + MOST_COLUMNS).min(weights.ncols());
        let weights =
            batches.map(|first| weights.slice(ndarray::s![.., first..last(first)]).as_standard_layout().into_owned());
        let weights = weights.collect();
        Self { x, weights, rows, eta: tile.clone(), out: tile, gradient }
    }

    /// Computes one gradient for each lane.
    pub fn run(&mut self) {
        for w in &self.weights {
            let columns = w.ncols();
            for row in (0..self.x.nrows()).step_by(self.rows) {
                let rows = self.rows.min(self.x.nrows() - row);
                let x = self.x.slice(ndarray::s![row..row + rows, ..]);
                let (eta, out) = (&mut self.eta[..rows * columns], &mut self.out[..rows * columns]);
                gemm(&x, &w.view(), false, eta);
                unary(UnaryFn::Exp, eta, out);
                unary(UnaryFn::Log1p, out, eta);
                black_box(&mut *eta);
                let residual = ArrayView2::from_shape((rows, columns), &*out).expect("the tile fills its shape");
                gemm(&x.t(), &residual, row > 0, &mut self.gradient[..self.x.ncols() * columns]);
            }
            black_box(&mut self.gradient);
        }
    }
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
    fn it_computes_the_products() {
        let (n, d, lanes) = (600, 3, 300);
        let x = Array2::from_shape_fn((n, d), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 11.0 - 0.5);
        let w = Array2::from_shape_fn((d, lanes), |(i, j)| ((i + j) % 5) as f64 / 5.0 - 0.4);
        let mut work = Gradients::new(x.view(), w.clone());
        work.run();
        let expected = x.t().dot(&x.dot(&w).mapv(f64::exp));
        // The last batch of columns.
        let (first, columns) = (256, lanes - 256);
        for (e, found) in work.gradient[..d * columns].iter().enumerate() {
            let wanted = expected[[e / columns, first + e % columns]];
            assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{found} {wanted}");
        }
    }

    #[test]
    fn lanes_are_shared_evenly() {
        assert_eq!(shares(10, 3), [3, 3, 4]);
        assert_eq!(shares(1, 2), [1]);
        assert_eq!(shares(1000, 2), [500, 500]);
    }
}
