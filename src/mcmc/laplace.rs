//! Draws from the normal approximation at a mode of the unconstrained space: what `autobatch laplace` gives. The
//! Hessian is that of differences of gradients, all in one batch.

use indexmap::IndexMap;

use super::log_prob::{Evaluated, LogProb};
use super::posterior::Posterior;
use super::sampling::{FailedDraws, ModelSource, QuantitiesOfDraws};
use crate::mcmc::streams::OF_NORMALS;
use crate::program::{Engine, Error, ErrorKind, Function, Inputs, Options, Program, Terms};
use crate::run::{NoSink, TrapKind};
use crate::types::Array;

/// Points at which gradients are taken in one run.
const AT_ONCE: usize = 1 << 14;

/// Steps of the differences, in widths, and the weights of the gradients there.
const STENCIL: [(f64, f64); 4] = [(-2.0, 1.0), (-1.0, -8.0), (1.0, 8.0), (2.0, -1.0)];

/// What came of it.
#[derive(Clone, Debug)]
pub struct LaplaceDraws {
    /// The log density at the mode.
    pub lp_mode: f64,
    /// How far it is from where its gradient points, in standard deviations of the approximation: 0 of a mode.
    pub mode_off: f64,
    /// The covariance of the approximation, d × d.
    pub covariance: Vec<f64>,
    /// The unconstrained draws, 1 × draw × coordinate.
    pub q: Array,
    /// `log_p`, the log density of the model, and `log_q`, that of the approximation but for a constant: 1 × draw.
    pub statistics: IndexMap<String, Array>,
    /// Parameters, 1 × draw × event shape.
    pub parameters: IndexMap<String, Array>,
    /// Draws for which `parameters` trapped.
    pub failed: Option<FailedDraws>,
    /// What one of them said that ends a command when all is written, as `fatal_error` of Stan does.
    pub fatal: Option<Error>,
}

fn refused<T>(message: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Input, message))
}

/// Draws from the approximation at a mode. The density has these terms.
///
/// # Errors
/// For a model that cannot be read or has errors, a mode of another number of coordinates, and one that is none: where the
/// density is not finite or its Hessian not negative definite.
pub fn laplace(
    model: &ModelSource<'_>,
    terms: Terms,
    mode: &[f64],
    draws: usize,
    read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    options: &Options,
) -> Result<LaplaceDraws, Error> {
    let posterior = Posterior::new(model, terms, read_data)?;
    let density = LogProb::new(model, terms, read_data)?;
    let d = posterior.dimension();
    if d == 0 {
        return refused(format!("{} has no parameters: there is nothing to draw", model.name()));
    }
    if mode.len() != d {
        return refused(format!("the mode has {} coordinates, but the state of the model has {d}", mode.len()));
    }
    let (lp_mode, gradient) = match density.at(Array::real([1, d], mode.to_vec()), options)?.remove(0) {
        Evaluated::Density { lp, gradient } if lp.is_finite() => (lp, gradient),
        value => {
            let why = density.problem(&value, mode, options)?.unwrap_or_default();
            return refused(format!("the mode is rejected: {why}"));
        }
    };
    let precision: Vec<f64> = hessian(&density, mode, options)?.into_iter().map(|h| -h).collect();
    let Some(factor) = cholesky(&precision, d) else {
        return refused(
            "the log density is not concave at this point: it is no mode, or there is none; look at `optimize`, from \
             several --starts"
                .to_owned(),
        );
    };
    let z = normals(d, draws, options)?;
    let mut q = Vec::with_capacity(draws * d);
    let mut log_q = Vec::with_capacity(draws);
    for z in z.chunks(d.max(1)).take(draws) {
        // L' x = z, so that x has the covariance (L L')^-1.
        let mut x = z.to_vec();
        solve_transposed(&factor, &mut x);
        q.extend(mode.iter().zip(&x).map(|(m, x)| m + x));
        log_q.push(-0.5 * z.iter().map(|z| z * z).sum::<f64>());
    }
    let mut log_p = Vec::with_capacity(draws);
    for part in q.chunks(AT_ONCE * d.max(1)) {
        let points = Array::real([part.len() / d.max(1), d], part.to_vec());
        log_p.extend(density.at(points, options)?.iter().map(|value| match value {
            Evaluated::Density { lp, .. } => *lp,
            Evaluated::Rejected(_) => f64::NEG_INFINITY,
        }));
    }
    let q = Array::real([1, draws, d], q);
    let QuantitiesOfDraws { arrays: parameters, failed, fatal } = posterior.parameters(&q, options)?;
    let statistics = [("log_p", log_p), ("log_q", log_q)];
    let statistics = statistics.into_iter().map(|(name, values)| (name.to_owned(), Array::real([1, draws], values)));
    let covariance = inverse(&factor, d);
    // g' C g: Newton's step is C g, and its length is measured by the inverse of C.
    let squared: f64 = (0..d * d).map(|at| gradient[at / d] * covariance[at] * gradient[at % d]).sum();
    let mode_off = squared.max(0.0).sqrt();
    Ok(LaplaceDraws { lp_mode, mode_off, covariance, q, statistics: statistics.collect(), parameters, failed, fatal })
}

/// The Hessian by central differences of the fourth order, as `nuts/newton.ab` has it.
fn hessian(density: &LogProb, mode: &[f64], options: &Options) -> Result<Vec<f64>, Error> {
    let d = mode.len();
    let width = |i: usize| 1e-3 * mode[i].abs().max(1.0);
    let mut half = vec![0.0; d * d];
    let rows: Vec<(usize, f64, f64)> =
        (0..d).flat_map(|i| STENCIL.iter().map(move |(off, weight)| (i, *off, *weight))).collect();
    for part in rows.chunks(AT_ONCE) {
        let points = part.iter().flat_map(|(i, off, _)| {
            mode.iter().enumerate().map(move |(j, x)| if j == *i { x + off * width(*i) } else { *x })
        });
        let values = density.at(Array::real([part.len(), d], points.collect()), options)?;
        for ((i, _, weight), value) in part.iter().zip(values) {
            let Evaluated::Density { gradient, .. } = value else {
                return refused("the density is rejected near the mode: it is at a border of the model".to_owned());
            };
            for (j, slope) in gradient.iter().enumerate() {
                half[i * d + j] += weight * slope / (12.0 * width(*i));
            }
        }
    }
    Ok((0..d * d).map(|at| 0.5 * (half[at] + half[at % d * d + at / d])).collect())
}

/// Standard normal numbers, a row for each draw, each with a stream of its own.
fn normals(d: usize, draws: usize, options: &Options) -> Result<Vec<f64>, Error> {
    let program = Program::compile(&format!("pub fn z() -> real[{d}] {{ random_normal({d}) }}"))?;
    let mut host = Options::default().engine(Engine::Scalar);
    host.settings.seed = options.settings.seed;
    host.settings.stop = options.settings.stop.clone();
    let mut bound = program.function("z")?.bind(&Inputs::new().lanes(draws), &host)?;
    let first = options.first_lane << 32;
    bound.inputs_mut().lanes = (0..draws as u64).map(|draw| OF_NORMALS | first.wrapping_add(draw)).collect();
    let results = bound.run(&host, &NoSink)?;
    if results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted) {
        return Err(Error::new(ErrorKind::Interrupted, "stopped before there were draws: nothing is written"));
    }
    let z = results.outputs().values().next().expect("the function gives an array");
    Ok(z.as_real().expect("an array of reals").to_vec())
}

/// The factor L of a positive definite matrix L L', row by row.
fn cholesky(matrix: &[f64], d: usize) -> Option<Vec<f64>> {
    let mut factor = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| factor[i * d + k] * factor[j * d + k]).sum();
            let rest = matrix[i * d + j] - known;
            if i == j && !(rest > 0.0 && rest.is_finite()) {
                return None;
            }
            factor[i * d + j] = if i == j { rest.sqrt() } else { rest / factor[j * d + j] };
        }
    }
    Some(factor)
}

/// L' x = z, in place.
fn solve_transposed(factor: &[f64], x: &mut [f64]) {
    let d = x.len();
    for i in (0..d).rev() {
        let known: f64 = (i + 1..d).map(|k| factor[k * d + i] * x[k]).sum();
        x[i] = (x[i] - known) / factor[i * d + i];
    }
}

/// The inverse of L L'.
fn inverse(factor: &[f64], d: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; d * d];
    for column in 0..d {
        let mut x = vec![0.0; d];
        for i in column..d {
            let known: f64 = (column..i).map(|k| factor[i * d + k] * x[k]).sum();
            x[i] = (f64::from(u8::from(i == column)) - known) / factor[i * d + i];
        }
        solve_transposed(factor, &mut x);
        for (i, value) in x.into_iter().enumerate() {
            inverse[i * d + column] = value;
        }
    }
    inverse
}
