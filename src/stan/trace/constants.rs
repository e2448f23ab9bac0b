//! What a statement `~` leaves out: the addends of a density that none of its parameters reaches (Stan's reference manual,
//! "Log probability and gradient calculation"; the addends are those of Stan's `include_summand`). Whether an argument is a
//! parameter is a matter of its type, not of whether its value is known.

use crate::stan::value::{Kind, Val};
use crate::vmath::{BinaryFn, UnaryFn};

/// ½ ln 2π
const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
/// ½ ln π
const HALF_LOG_PI: f64 = 0.572_364_942_924_700_1;
/// ln π
const LOG_PI: f64 = 1.144_729_885_849_400_2;

pub(super) fn lgamma(x: f64) -> f64 {
    let f = UnaryFn::ALL.iter().find(|f| f.name() == "lgamma").expect("there is such a function");
    f.apply(x)
}

fn log(x: f64) -> f64 {
    UnaryFn::Log.apply(x)
}

/// x ln y, and 0 where both are 0.
fn lmultiply(x: f64, y: f64) -> f64 {
    BinaryFn::Lmultiply.apply(x, y)
}

fn log_choose(n: f64, k: f64) -> f64 {
    lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
}

/// Densities that leave nothing out, not even where all arguments are data.
pub(super) const KEPT: &[&str] = &["ordered_probit", "poisson_binomial"];

/// An addend: the arguments that it is made of, and its value for an element of each of these.
type Addend = (&'static [usize], fn(&[f64]) -> f64);

/// The addends of densities whose arguments are numbers and arrays, but for the one that all arguments reach.
fn addends(name: &str) -> Option<&'static [Addend]> {
    Some(match name {
        "normal" | "normal_id_glm" => &[(&[], |_| -HALF_LOG_TWO_PI), (&[2], |x| -log(x[0]))],
        "std_normal" => &[(&[], |_| -HALF_LOG_TWO_PI)],
        // Stan keeps the ½ ln 2π of this one.
        "lognormal" => &[(&[0], |x| -log(x[0])), (&[2], |x| -log(x[0]))],
        "skew_normal" => &[
            (&[], |_| -HALF_LOG_TWO_PI),
            (&[2], |x| -log(x[0])),
            (&[0, 1, 2], |x| -0.5 * ((x[0] - x[1]) / x[2]).powi(2)),
        ],
        "exp_mod_normal" => &[(&[], |_| -std::f64::consts::LN_2), (&[3], |x| log(x[0]))],
        "von_mises" => &[(&[], |_| -2.0 * HALF_LOG_TWO_PI)],
        "student_t" => &[
            (&[], |_| -HALF_LOG_PI),
            (&[1], |x| lgamma(0.5 * (x[0] + 1.0)) - lgamma(0.5 * x[0]) - 0.5 * log(x[0])),
            (&[3], |x| -log(x[0])),
        ],
        "cauchy" => &[(&[], |_| -LOG_PI), (&[2], |x| -log(x[0]))],
        "double_exponential" => &[(&[], |_| -std::f64::consts::LN_2), (&[2], |x| -log(x[0]))],
        "logistic" | "gumbel" => &[(&[2], |x| -log(x[0]))],
        "exponential" => &[(&[1], |x| log(x[0]))],
        "gamma" => &[
            (&[1], |x| -lgamma(x[0])),
            (&[1, 2], |x| x[0] * log(x[1])),
            (&[0, 1], |x| lmultiply(x[1] - 1.0, x[0])),
            (&[0, 2], |x| -x[1] * x[0]),
        ],
        "inv_gamma" => &[
            (&[1], |x| -lgamma(x[0])),
            (&[1, 2], |x| x[0] * log(x[1])),
            (&[0, 1], |x| -(x[1] + 1.0) * log(x[0])),
            (&[0, 2], |x| -x[1] / x[0]),
        ],
        "beta" => &[
            (&[1], |x| -lgamma(x[0])),
            (&[2], |x| -lgamma(x[0])),
            (&[1, 2], |x| lgamma(x[0] + x[1])),
            (&[0, 1], |x| lmultiply(x[1] - 1.0, x[0])),
            (&[0, 2], |x| lmultiply(x[1] - 1.0, 1.0 - x[0])),
        ],
        "uniform" => &[(&[1, 2], |x| -log(x[1] - x[0]))],
        "binomial" | "binomial_logit" | "beta_binomial" => &[(&[0, 1], |x| log_choose(x[1], x[0]))],
        "poisson" | "poisson_log" | "poisson_log_glm" => &[(&[0], |x| -lgamma(x[0] + 1.0))],
        "neg_binomial_2_log_glm" => &[
            (&[0], |x| -lgamma(x[0] + 1.0)),
            (&[2], |x| lmultiply(x[0], x[0]) - lgamma(x[0])),
            (&[0, 2], |x| lgamma(x[0] + x[1])),
        ],
        "binomial_logit_glm" => &[(&[0, 1], |x| log_choose(x[1], x[0]))],
        "neg_binomial" => &[(&[0, 1], |x| if x[0] == 0.0 { 0.0 } else { log_choose(x[0] + x[1] - 1.0, x[1] - 1.0) })],
        "beta_neg_binomial" => &[(&[0], |x| -lgamma(x[0] + 1.0))],
        "yule_simon" => &[(&[0], |x| lgamma(x[0]))],
        "beta_proportion" => {
            &[(&[2], |x| lgamma(x[0])), (&[1, 2], |x| -lgamma(x[0] * x[1]) - lgamma(x[1] - x[0] * x[1]))]
        }
        "loglogistic" => &[(&[1, 2], |x| log(x[1]) - x[1] * log(x[0]))],
        "rayleigh" => &[(&[0], |x| log(x[0])), (&[1], |x| -2.0 * log(x[0]))],
        "skew_double_exponential" => {
            &[(&[], |_| std::f64::consts::LN_2), (&[2], |x| -log(x[0])), (&[3], |x| log(x[0]) + log(1.0 - x[0]))]
        }
        "normal_sufficient" => &[(&[2], |x| -HALF_LOG_TWO_PI * x[0]), (&[2, 4], |x| -x[0] * log(x[1]))],
        "neg_binomial_2" => &[(&[0, 2], |x| log_choose(x[0] + x[1] - 1.0, x[0])), (&[0, 1], |x| lmultiply(x[0], x[1]))],
        "neg_binomial_2_log" => &[(&[0, 2], |x| log_choose(x[0] + x[1] - 1.0, x[0])), (&[0, 1], |x| x[0] * x[1])],
        "weibull" => {
            &[(&[1], |x| log(x[0])), (&[0, 1], |x| lmultiply(x[1] - 1.0, x[0])), (&[1, 2], |x| -lmultiply(x[0], x[1]))]
        }
        "pareto" => {
            &[(&[2], |x| log(x[0])), (&[1, 2], |x| lmultiply(x[1], x[0])), (&[0, 2], |x| -lmultiply(x[1] + 1.0, x[0]))]
        }
        "pareto_type_2" => &[(&[3], |x| log(x[0])), (&[2], |x| -log(x[0]))],
        "frechet" => {
            &[(&[1], |x| log(x[0])), (&[0, 1], |x| -(x[1] + 1.0) * log(x[0])), (&[1, 2], |x| x[0] * log(x[1]))]
        }
        "scaled_inv_chi_square" => &[
            (&[1], |x| 0.5 * x[0] * log(0.5 * x[0]) - lgamma(0.5 * x[0])),
            (&[1, 2], |x| x[0] * log(x[1])),
            (&[0, 1], |x| -(0.5 * x[1] + 1.0) * log(x[0])),
        ],
        "chi_square" => &[
            (&[1], |x| -0.5 * x[0] * std::f64::consts::LN_2 - lgamma(0.5 * x[0])),
            (&[0, 1], |x| lmultiply(0.5 * x[1] - 1.0, x[0])),
            (&[0], |x| -0.5 * x[0]),
        ],
        "inv_chi_square" => &[
            (&[1], |x| -0.5 * x[0] * std::f64::consts::LN_2 - lgamma(0.5 * x[0])),
            (&[0, 1], |x| -(0.5 * x[1] + 1.0) * log(x[0])),
            (&[0], |x| -0.5 / x[0]),
        ],
        _ => return None,
    })
}

/// The sum of what `y ~ name(…)` leaves out; `data` says which arguments, y first, are data. `None` where nothing is.
pub(super) fn left_out(name: &str, args: &[Val], data: &[bool]) -> Option<f64> {
    if let Some(sum) = of_vectors(name, args, data) {
        return Some(sum);
    }
    let glm = name.ends_with("_glm");
    let n = args.iter().filter(|arg| !arg.is_scalar()).map(Val::len).max().unwrap_or(1);
    // A regression's arguments are y, x, alpha, beta and the scale; those of a binomial one y, trials and the others.
    let rows = |x: &Val| if x.kind == Kind::MATRIX { x.shape[0] } else { 1 };
    let is_empty = |x: &Val| x.shape.first() == Some(&0);
    let n = match glm {
        true if args.iter().take(3).any(is_empty) => 0,
        true => args[0].len().max(rows(&args[1])).max(rows(&args[2])),
        false => n,
    };
    let of = |i: usize| if glm && i == 2 { 4 } else { i };
    let mut sum = 0.0;
    for (reads, value) in addends(name)? {
        if !reads.iter().all(|i| data.get(of(*i)).copied().unwrap_or(false)) {
            continue;
        }
        let values: Option<Vec<Vec<f64>>> = reads.iter().map(|i| args[of(*i)].reals()).collect();
        // Which of the data it is, lanes decide: it stays.
        let Some(values) = values else { continue };
        let element = |v: &Vec<f64>, i: usize| if v.len() == 1 { v[0] } else { v[i] };
        sum += (0..n).map(|i| value(&values.iter().map(|v| element(v, i)).collect::<Vec<_>>())).sum::<f64>();
    }
    Some(sum)
}

/// The same of distributions of vectors.
fn of_vectors(name: &str, args: &[Val], data: &[bool]) -> Option<f64> {
    let y = args.first()?;
    match name {
        "dirichlet" if data[1] => {
            let alpha = args[1].reals()?;
            let k = *args[1].shape.last()?;
            let one = |a: &[f64]| lgamma(a.iter().sum()) - a.iter().map(|a| lgamma(*a)).sum::<f64>();
            let each: f64 = alpha.chunks(k.max(1)).map(one).sum();
            let times = if args[1].kind.arrays == 0 { y.len() / k.max(1) } else { 1 };
            Some(each * times as f64)
        }
        "multi_normal" | "multi_normal_cholesky" | "multi_normal_prec" => {
            let mut each = -HALF_LOG_TWO_PI * *y.shape.last()? as f64;
            if data[2] {
                let scale = log_scale(&args[2], name == "multi_normal_cholesky")?;
                each += if name == "multi_normal_prec" { -scale } else { scale };
            }
            Some(each * rows(y, &args[1]))
        }
        "multi_student_t" | "multi_student_t_cholesky" => {
            let k = *y.shape.last()? as f64;
            let mut each = -0.5 * k * LOG_PI;
            if data[1] {
                let nu = args[1].as_real()?;
                each += lgamma(0.5 * (nu + k)) - lgamma(0.5 * nu) - 0.5 * k * log(nu);
            }
            if data[3] {
                each += log_scale(&args[3], name.ends_with("_cholesky"))?;
            }
            Some(each * rows(y, &args[2]))
        }
        "gaussian_dlm_obs" => Some(-HALF_LOG_TWO_PI * y.len() as f64),
        // Of a matrix whose rows are processes: y, the covariance or its factor, and the weights of the rows.
        "multi_gp" | "multi_gp_cholesky" => {
            let (rows, cols) = (y.shape[0] as f64, y.shape[1] as f64);
            let mut sum = -HALF_LOG_TWO_PI * rows * cols;
            if data[1] {
                sum += log_scale(&args[1], name.ends_with("_cholesky"))? * rows;
            }
            if data[2] {
                sum += 0.5 * cols * args[2].reals()?.into_iter().map(log).sum::<f64>();
            }
            Some(sum)
        }
        "wishart_cholesky" | "inv_wishart_cholesky" if data[1] => {
            let (nu, k) = (args[1].as_real()?, *y.shape.last()?);
            Some(k as f64 * std::f64::consts::LN_2 * (1.0 - 0.5 * nu) - lmgamma(k, 0.5 * nu))
        }
        "lkj_cov" => of_lkj_cov(args, data),
        "dirichlet_multinomial" => {
            let counts = y.reals()?;
            let some = counts.iter().filter(|n| **n > 0.0);
            let total: f64 = counts.iter().sum();
            Some(if total > 0.0 { log(total) - some.map(|n| log(*n)).sum::<f64>() } else { 0.0 })
        }
        "wishart" | "inv_wishart" if data[1] => {
            let (nu, k) = (args[1].as_real()?, *y.shape.last()?);
            let half = 0.5 * nu;
            let powers = -half * k as f64 * std::f64::consts::LN_2;
            let mut sum = -lmgamma(k, half);
            if name == "wishart" || data[2] {
                sum += powers;
            }
            if data[2] {
                let log_det = log_determinant(&square(&args[2], k)?, k)?;
                sum += if name == "wishart" { -half * log_det } else { half * log_det };
            }
            if name == "wishart" && data[0] {
                sum += (half - 0.5 * (k as f64 + 1.0)) * log_determinant(&square(y, k)?, k)?;
            }
            Some(sum)
        }
        "multinomial" | "multinomial_logit" => {
            let counts = y.reals()?;
            Some(lgamma(counts.iter().sum::<f64>() + 1.0) - counts.iter().map(|n| lgamma(n + 1.0)).sum::<f64>())
        }
        "lkj_corr" | "lkj_corr_cholesky" if data[1] => {
            let eta = args[1].as_real()?;
            Some(lkj_constant(eta, *y.shape.last()?))
        }
        _ => None,
    }
}

/// That of standard deviations, which are lognormal, and that of correlations.
fn of_lkj_cov(args: &[Val], data: &[bool]) -> Option<f64> {
    let [y, mu, sigma, eta] = args else { return None };
    let k = *y.shape.last()?;
    let mut sum = 0.0;
    if data[2] {
        sum -= sigma.reals()?.into_iter().map(log).sum::<f64>();
    }
    if data[3] {
        sum += lkj_constant(eta.as_real()?, k);
    }
    if !data[0] {
        return Some(sum);
    }
    let entries = square(y, k)?;
    let logs: Vec<f64> = (0..k).map(|i| 0.5 * log(entries[i * k + i])).collect();
    let total: f64 = logs.iter().sum();
    sum -= total;
    if data[1] && data[2] {
        let (mu, sigma) = (mu.reals()?, sigma.reals()?);
        sum -= (0..k).map(|i| 0.5 * ((logs[i] - mu[i]) / sigma[i]).powi(2) + HALF_LOG_TWO_PI).sum::<f64>();
    }
    if data[3] {
        sum += (eta.as_real()? - 1.0) * (log_determinant(&entries, k)? - 2.0 * total);
    }
    Some(sum)
}

/// How often a density of vectors is added up: y and its location may be one or several.
fn rows(y: &Val, location: &Val) -> f64 {
    let of_all = |v: &Val| if v.kind.arrays == 0 { 1 } else { v.shape[0] };
    if y.len() == 0 { 0.0 } else { of_all(y).max(of_all(location)) as f64 }
}

/// The logarithm of the multivariate gamma function.
fn lmgamma(k: usize, x: f64) -> f64 {
    let gammas: f64 = (0..k).map(|i| lgamma(x - 0.5 * i as f64)).sum();
    0.25 * (k * k.saturating_sub(1)) as f64 * LOG_PI + gammas
}

/// The elements of a matrix of so many rows and columns; what is of another size is told by the density.
fn square(matrix: &Val, k: usize) -> Option<Vec<f64>> {
    (matrix.shape == [k, k]).then(|| matrix.reals())?
}

/// -½ ln |Σ|, of a covariance or its Cholesky factor.
fn log_scale(matrix: &Val, is_factor: bool) -> Option<f64> {
    let k = *matrix.shape.last()?;
    let elements = square(matrix, k)?;
    if is_factor {
        return Some(-(0..k).map(|i| log(elements[i * k + i])).sum::<f64>());
    }
    Some(-0.5 * log_determinant(&elements, k)?)
}

/// Of a symmetric matrix; `None` where it is not positive definite.
pub(super) fn log_determinant(a: &[f64], k: usize) -> Option<f64> {
    let mut l = a.to_vec();
    let mut sum = 0.0;
    for j in 0..k {
        for i in j..k {
            let dot: f64 = (0..j).map(|p| l[i * k + p] * l[j * k + p]).sum();
            let rest = l[i * k + j] - dot;
            if i == j && rest <= 0.0 {
                return None;
            }
            l[i * k + j] = if i == j { rest.sqrt() } else { rest / l[j * k + j] };
        }
        sum += 2.0 * log(l[j * k + j]);
    }
    Some(sum)
}

/// The normalising constant of the LKJ distribution (Lewandowski, Kurowicka and Joe 2009), as Stan computes it.
fn lkj_constant(eta: f64, k: usize) -> f64 {
    let m = k as f64 - 1.0;
    let mut constant = m * lgamma(eta + 0.5 * m);
    for i in 1..k {
        let i = i as f64;
        constant -= 0.5 * i * LOG_PI + lgamma(eta + 0.5 * (m - i));
    }
    constant
}
