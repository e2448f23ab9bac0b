//! The log densities with gradients by hand.

use std::collections::HashMap;
use std::sync::Arc;

use autobatch_vmath::{UnaryFn, unary};
use nuts_rs::{CpuLogpFunc, CpuMathError, HasDims, LogpError};
use serde_json::Value;
use thiserror::Error;

use crate::protocol::numbers;

/// A model with its data.
pub enum Model {
    Logistic { x: Vec<f64>, y: Vec<f64>, d: usize },
    EightSchools { y: Vec<f64>, sigma: Vec<f64> },
    Normal { d: usize },
    Correlated { mean: Vec<f64>, precision: Vec<f64> },
    Kidscore { score: Vec<f64>, iq: Vec<f64> },
    Wells { switched: Vec<f64>, dist: Vec<f64> },
}

/// Rows of a tile of the logistic regression: its part of `x` stays in the cache for the second use.
const ROWS: usize = 256;

impl Model {
    pub fn read(name: &str, data: &Value) -> Option<Self> {
        let list = |name: &str| numbers(&data[name]);
        Some(match name {
            "logistic" => {
                let (x, y) = (list("x"), list("y"));
                let d = x.len() / y.len();
                Model::Logistic { x, y, d }
            }
            "eight_schools" => Model::EightSchools { y: list("y"), sigma: list("sigma") },
            "normal10" => Model::Normal { d: 10 },
            "normal100" => Model::Normal { d: 100 },
            "correlated10" | "correlated100" => {
                Model::Correlated { mean: list("mean"), precision: list("precision") }
            }
            "kidscore" => Model::Kidscore { score: list("kid_score"), iq: list("mom_iq") },
            "wells" => Model::Wells { switched: list("switched"), dist: list("dist") },
            _ => return None,
        })
    }

    fn dim(&self) -> usize {
        match self {
            Model::Logistic { d, .. } | Model::Normal { d } => *d,
            Model::EightSchools { y, .. } => y.len() + 2,
            Model::Correlated { mean, .. } => mean.len(),
            Model::Kidscore { .. } => 3,
            Model::Wells { .. } => 2,
        }
    }
}

/// A density of one chain, with its memory.
pub struct Density {
    model: Arc<Model>,
    eta: Vec<f64>,
    part: Vec<f64>,
    /// The first evaluation is for the metric, which nuts-rs takes from the gradient there: ones make it the unit metric.
    for_metric: bool,
}

impl Density {
    pub fn new(model: Arc<Model>) -> Self {
        let d = model.dim();
        Self { model, eta: vec![0.0; ROWS], part: vec![0.0; ROWS.max(d)], for_metric: true }
    }
}

#[derive(Debug, Error)]
#[error("the density cannot fail")]
pub struct Never;

impl LogpError for Never {
    fn is_recoverable(&self) -> bool {
        false
    }
}

impl HasDims for Density {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".to_owned(), self.model.dim() as u64)])
    }
}

impl CpuLogpFunc for Density {
    type LogpError = Never;
    type FlowParameters = ();
    type ExpandedVector = Vec<f64>;

    fn dim(&self) -> usize {
        self.model.dim()
    }

    fn logp(&mut self, q: &[f64], grad: &mut [f64]) -> Result<f64, Never> {
        let lp = match &*self.model {
            Model::Logistic { x, y, d } => logistic(x, y, *d, q, grad, &mut self.eta, &mut self.part),
            Model::EightSchools { y, sigma } => eight_schools(y, sigma, q, grad),
            Model::Normal { .. } => normal(q, grad),
            Model::Correlated { mean, precision } => correlated(mean, precision, q, grad, &mut self.part),
            Model::Kidscore { score, iq } => kidscore(score, iq, q, grad),
            Model::Wells { switched, dist } => wells(switched, dist, q, grad, &mut self.eta, &mut self.part),
        };
        if std::mem::take(&mut self.for_metric) {
            grad.fill(1.0);
        }
        Ok(lp)
    }

    fn expand_vector<R: rand::Rng + ?Sized>(&mut self, _: &mut R, q: &[f64]) -> Result<Vec<f64>, CpuMathError> {
        Ok(q.to_vec())
    }
}

const WIDTH: usize = 8;

/// In independent partial sums, so that it vectorises.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; WIDTH];
    let (a, b) = (a.chunks_exact(WIDTH), b.chunks_exact(WIDTH));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for i in 0..WIDTH {
            sums[i] = f64::mul_add(a[i], b[i], sums[i]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// One pass over the data: products, elementary functions and transposed products tile by tile.
fn logistic(
    x: &[f64],
    y: &[f64],
    d: usize,
    q: &[f64],
    grad: &mut [f64],
    eta: &mut [f64],
    part: &mut [f64],
) -> f64 {
    let mut lp = -0.5 * dot(q, q);
    grad.iter_mut().zip(q).for_each(|(g, q)| *g = -q);
    for (x, y) in x.chunks(ROWS * d).zip(y.chunks(ROWS)) {
        let (eta, part) = (&mut eta[..y.len()], &mut part[..y.len()]);
        for (eta, row) in eta.iter_mut().zip(x.chunks_exact(d)) {
            *eta = dot(row, q);
        }
        unary(UnaryFn::Log1pExp, eta, part);
        lp += dot(y, eta) - part.iter().sum::<f64>();
        unary(UnaryFn::InvLogit, eta, part);
        part.iter_mut().zip(y).for_each(|(p, y)| *p = y - *p);
        // Four rows at a time: the gradient is read and written a quarter as often.
        let (rows, weights) = (x.chunks_exact(4 * d), part.chunks_exact(4));
        for (row, r) in rows.remainder().chunks_exact(d).zip(weights.remainder()) {
            grad.iter_mut().zip(row).for_each(|(g, x)| *g = f64::mul_add(*r, *x, *g));
        }
        for (rows, r) in rows.zip(weights) {
            let (a, rest) = rows.split_at(d);
            let (b, rest) = rest.split_at(d);
            let (c, e) = rest.split_at(d);
            for j in 0..d {
                let low = f64::mul_add(r[0], a[j], r[1] * b[j]);
                let high = f64::mul_add(r[2], c[j], r[3] * e[j]);
                grad[j] += low + high;
            }
        }
    }
    lp
}

fn eight_schools(y: &[f64], sigma: &[f64], q: &[f64], grad: &mut [f64]) -> f64 {
    let schools = y.len();
    let (mu, log_tau) = (q[schools], q[schools + 1]);
    let tau = log_tau.exp();
    let (mut lp, mut d_mu, mut d_tau) = (0.0, 0.0, 0.0);
    for i in 0..schools {
        let residual = (y[i] - (mu + tau * q[i])) / sigma[i];
        let slope = residual / sigma[i];
        lp -= 0.5 * (q[i] * q[i] + residual * residual);
        grad[i] = slope * tau - q[i];
        d_mu += slope;
        d_tau += slope * q[i];
    }
    let t = tau / 5.0;
    lp += log_tau - 0.5 * (mu / 5.0) * (mu / 5.0) - (t * t).ln_1p();
    grad[schools] = d_mu - mu / 25.0;
    grad[schools + 1] = tau * d_tau + 1.0 - 2.0 * t * t / (1.0 + t * t);
    lp
}

fn normal(q: &[f64], grad: &mut [f64]) -> f64 {
    grad.iter_mut().zip(q).for_each(|(g, q)| *g = -q);
    -0.5 * dot(q, q)
}

fn correlated(mean: &[f64], precision: &[f64], q: &[f64], grad: &mut [f64], centred: &mut [f64]) -> f64 {
    let d = q.len();
    let centred = &mut centred[..d];
    for i in 0..d {
        centred[i] = q[i] - mean[i];
    }
    for (g, row) in grad.iter_mut().zip(precision.chunks_exact(d)) {
        *g = -dot(row, centred);
    }
    0.5 * dot(centred, grad)
}

/// In independent partial sums, as [`dot`]: of the residuals, of their squares, and of their products with the covariate.
fn kidscore(score: &[f64], iq: &[f64], q: &[f64], grad: &mut [f64]) -> f64 {
    let (intercept, slope, sigma) = (q[0], q[1], q[2].exp());
    let mut sums = [[0.0; WIDTH]; 3];
    let whole = score.len() / WIDTH * WIDTH;
    for (score, iq) in score[..whole].chunks_exact(WIDTH).zip(iq[..whole].chunks_exact(WIDTH)) {
        for i in 0..WIDTH {
            let residual = score[i] - f64::mul_add(slope, iq[i], intercept);
            sums[0][i] += residual;
            sums[1][i] = f64::mul_add(residual, residual, sums[1][i]);
            sums[2][i] = f64::mul_add(residual, iq[i], sums[2][i]);
        }
    }
    let [mut sum, mut squares, mut products] = sums.map(|sums| sums.iter().sum::<f64>());
    for (score, iq) in score[whole..].iter().zip(&iq[whole..]) {
        let residual = score - f64::mul_add(slope, *iq, intercept);
        sum += residual;
        squares += residual * residual;
        products += residual * iq;
    }
    let (n, precision, scale) = (score.len() as f64, 1.0 / (sigma * sigma), sigma / 2.5);
    grad[0] = sum * precision;
    grad[1] = products * precision;
    grad[2] = squares * precision - n - 2.0 * scale * scale / (1.0 + scale * scale) + 1.0;
    -0.5 * squares * precision - n * q[2] - (scale * scale).ln_1p() + q[2]
}

fn wells(switched: &[f64], dist: &[f64], q: &[f64], grad: &mut [f64], eta: &mut [f64], part: &mut [f64]) -> f64 {
    let mut lp = 0.0;
    grad.fill(0.0);
    for (y, x) in switched.chunks(ROWS).zip(dist.chunks(ROWS)) {
        let (eta, part) = (&mut eta[..y.len()], &mut part[..y.len()]);
        eta.iter_mut().zip(x).for_each(|(eta, x)| *eta = f64::mul_add(q[1], *x, q[0]));
        unary(UnaryFn::Log1pExp, eta, part);
        lp += dot(y, eta) - total(part);
        unary(UnaryFn::InvLogit, eta, part);
        part.iter_mut().zip(y).for_each(|(p, y)| *p = y - *p);
        grad[0] += total(part);
        grad[1] += dot(part, x);
    }
    lp
}

/// In independent partial sums.
fn total(x: &[f64]) -> f64 {
    let mut sums = [0.0; WIDTH];
    let chunks = x.chunks_exact(WIDTH);
    let rest: f64 = chunks.remainder().iter().sum();
    for x in chunks {
        (0..WIDTH).for_each(|i| sums[i] += x[i]);
    }
    sums.iter().sum::<f64>() + rest
}
