//! What functions of Stan's library demand of their arguments, as in the headers of Stan 2.39 (`stan/math/prim`).

use std::f64::consts::{LN_2, PI};

use super::tails::distribution_of;

/// What an argument must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    NotNan,
    Finite,
    Positive,
    PositiveFinite,
    Nonnegative,
    Between(f64, f64),
    AtLeast(f64),
    Less(f64),
    Above(f64),
    /// From 0 to another argument.
    UpTo(usize),
    AtLeastThat(usize),
    GreaterThan(usize),
    /// Less another argument, from 0 to a third one.
    LessThatUpTo(usize, usize),
    /// From 1 to one more than there are cut-points.
    Category(usize),
    /// From 1 to the number of columns of another argument.
    Column(usize),
    /// From 0 to the size of another argument.
    UpToSize(usize),
    /// Greater than the rows of another argument less one.
    AboveRows(usize),
}

use Demand::{
    Above, AboveRows, AtLeast, AtLeastThat, Between, Category, Column, Finite, GreaterThan, Less, LessThatUpTo,
    Nonnegative, NotNan, Positive, PositiveFinite, UpTo, UpToSize,
};

/// An argument, Stan's name of it, and what it must be, in the order in which Stan looks.
pub(super) type Row = (usize, &'static str, Demand);

/// The demands of a density on numbers, as in the headers of Stan 2.39 (`stan/math/prim/prob`).
fn of_densities(name: &str) -> &'static [Row] {
    match name {
        "bernoulli_logit_glm_lpmf" => &[
            (0, "Vector of dependent variables", Between(0.0, 1.0)),
            (3, "Weight vector", Finite),
            (2, "Intercept", Finite),
            (1, "Matrix of independent variables", Finite),
        ],
        "bernoulli_logit_lpmf" => {
            &[(0, "n", Between(0.0, 1.0)), (1, "Logit transformed probability parameter", NotNan)]
        }
        "bernoulli_lpmf" => &[(0, "n", Between(0.0, 1.0)), (1, "Probability parameter", Between(0.0, 1.0))],
        "beta_binomial_lpmf" => &[
            (1, "Population size parameter", Nonnegative),
            (2, "First prior sample size parameter", PositiveFinite),
            (3, "Second prior sample size parameter", PositiveFinite),
        ],
        "beta_lpdf" => &[
            (1, "First shape parameter", PositiveFinite),
            (2, "Second shape parameter", PositiveFinite),
            (0, "Random variable", Between(0.0, 1.0)),
        ],
        "beta_neg_binomial_lpmf" => &[
            (0, "Failures variable", Nonnegative),
            (1, "Number of successes parameter", PositiveFinite),
            (2, "Prior success parameter", PositiveFinite),
            (3, "Prior failure parameter", PositiveFinite),
        ],
        "beta_proportion_lpdf" => &[
            (1, "Location parameter", Positive),
            (1, "Location parameter", Less(1.0)),
            (2, "Precision parameter", PositiveFinite),
            (0, "Random variable", Between(0.0, 1.0)),
        ],
        "binomial_logit_glm_lpmf" => &[
            (0, "Successes variable", UpTo(1)),
            (1, "Population size parameter", Nonnegative),
            (4, "Weight vector", Finite),
            (3, "Intercept", Finite),
            (2, "Matrix of independent variables", Finite),
        ],
        "binomial_logit_lpmf" => &[
            (0, "Successes variable", UpTo(1)),
            (1, "Population size parameter", Nonnegative),
            (2, "Probability parameter", Finite),
        ],
        "binomial_lpmf" => &[
            (0, "Successes variable", UpTo(1)),
            (1, "Population size parameter", Nonnegative),
            (2, "Probability parameter", Between(0.0, 1.0)),
        ],
        "categorical_logit_glm_lpmf" => &[
            (0, "categorical outcome out of support", Column(3)),
            (3, "Weight vector", Finite),
            (2, "Intercept", Finite),
            (1, "Matrix of independent variables", Finite),
        ],
        "categorical_logit_lpmf" => &[(1, "log odds parameter", Finite)],
        "dirichlet_lpdf" => &[(1, "prior sample sizes", Positive)],
        "cauchy_lpdf" => {
            &[(0, "Random variable", NotNan), (1, "Location parameter", Finite), (2, "Scale parameter", PositiveFinite)]
        }
        "student_t_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Degrees of freedom parameter", PositiveFinite),
            (2, "Location parameter", Finite),
            (3, "Scale parameter", PositiveFinite),
        ],
        "chi_square_lpdf" => {
            &[(0, "Random variable", Nonnegative), (1, "Degrees of freedom parameter", PositiveFinite)]
        }
        "inv_chi_square_lpdf" => &[(1, "Degrees of freedom parameter", PositiveFinite), (0, "Random variable", NotNan)],
        "scaled_inv_chi_square_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Degrees of freedom parameter", PositiveFinite),
            (2, "Scale parameter", PositiveFinite),
        ],
        "discrete_range_lpmf" => &[(2, "Upper bound parameter", AtLeastThat(1))],
        "double_exponential_lpdf" | "logistic_lpdf" => {
            &[(0, "Random variable", Finite), (1, "Location parameter", Finite), (2, "Scale parameter", PositiveFinite)]
        }
        "exp_mod_normal_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Location parameter", Finite),
            (2, "Scale parameter", PositiveFinite),
            (3, "Inv_scale parameter", PositiveFinite),
        ],
        "exponential_lpdf" => &[(0, "Random variable", Nonnegative), (1, "Inverse scale parameter", PositiveFinite)],
        "frechet_lpdf" => &[
            (0, "Random variable", Positive),
            (1, "Shape parameter", PositiveFinite),
            (2, "Scale parameter", PositiveFinite),
        ],
        "gamma_lpdf" => &[
            (0, "Random variable", PositiveFinite),
            (1, "Shape parameter", PositiveFinite),
            (2, "Inverse scale parameter", PositiveFinite),
        ],
        "gumbel_lpdf" | "normal_lpdf" => {
            &[(0, "Random variable", NotNan), (1, "Location parameter", Finite), (2, "Scale parameter", Positive)]
        }
        "inv_gamma_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Shape parameter", PositiveFinite),
            (2, "Scale parameter", PositiveFinite),
        ],
        "loglogistic_lpdf" => &[
            (0, "Random variable", PositiveFinite),
            (1, "Scale parameter", PositiveFinite),
            (2, "Shape parameter", PositiveFinite),
        ],
        "lognormal_lpdf" => &[
            (0, "Random variable", Nonnegative),
            (1, "Location parameter", Finite),
            (2, "Scale parameter", PositiveFinite),
        ],
        "gaussian_dlm_obs_lpdf" => &[
            (0, "y", Finite),
            (1, "F", Finite),
            (2, "G", Finite),
            (3, "V", Finite),
            (4, "W", Finite),
            (5, "m0", Finite),
            (6, "C0", Finite),
        ],
        "hypergeometric_lpmf" => &[
            (0, "Successes variable", UpTo(2)),
            (1, "Draws parameter", AtLeastThat(0)),
            (1, "Draws parameter minus successes variable", LessThatUpTo(0, 3)),
        ],
        "lkj_corr_lpdf" | "lkj_corr_cholesky_lpdf" => &[(1, "Shape parameter", Positive)],
        "matrix_power" => &[(0, "M", Finite)],
        "lkj_cov_lpdf" => &[
            (3, "Shape parameter", Positive),
            (1, "Location parameter", Finite),
            (2, "Scale parameter", Finite),
            (0, "Covariance matrix", Finite),
        ],
        "multi_gp_lpdf" | "multi_gp_cholesky_lpdf" => {
            &[(2, "Kernel scales", PositiveFinite), (0, "Random variable", Finite)]
        }
        "multi_normal_lpdf" | "multi_normal_cholesky_lpdf" | "multi_normal_prec_lpdf" => {
            &[(1, "Location parameter", Finite), (0, "Random variable", NotNan)]
        }
        "multi_student_t_lpdf" | "multi_student_t_cholesky_lpdf" => &[
            (1, "Degrees of freedom parameter", Positive),
            (1, "Degrees of freedom parameter", Finite),
            (2, "Location parameter", Finite),
            (0, "Random variable", NotNan),
        ],
        "multinomial_lpmf" => &[(0, "Number of trials variable", Nonnegative)],
        "multinomial_logit_lpmf" => {
            &[(0, "Number of trials variable", Nonnegative), (1, "log-probabilities parameter", Finite)]
        }
        "dirichlet_multinomial_lpmf" => {
            &[(0, "Number of trials variable", Nonnegative), (1, "Prior size parameter", PositiveFinite)]
        }
        "neg_binomial_2_log_glm_lpmf" => &[
            (3, "Weight vector", Finite),
            (2, "Intercept", Finite),
            (0, "Failures variables", Nonnegative),
            (4, "Precision parameter", PositiveFinite),
            (1, "Matrix of independent variables", Finite),
        ],
        "neg_binomial_2_log_lpmf" => &[
            (0, "Failures variable", Nonnegative),
            (1, "Log location parameter", Finite),
            (2, "Precision parameter", PositiveFinite),
        ],
        "neg_binomial_2_lpmf" => &[
            (0, "Failures variable", Nonnegative),
            (1, "Location parameter", PositiveFinite),
            (2, "Precision parameter", PositiveFinite),
        ],
        "neg_binomial_lpmf" => &[
            (0, "Failures variable", Nonnegative),
            (1, "Shape parameter", PositiveFinite),
            (2, "Inverse scale parameter", PositiveFinite),
        ],
        "normal_id_glm_lpdf" => &[
            (4, "Scale vector", PositiveFinite),
            (0, "Vector of dependent variables", Finite),
            (3, "Weight vector", Finite),
            (2, "Intercept", Finite),
            (1, "Matrix of independent variables", Finite),
        ],
        "ordered_logistic_lpmf" | "ordered_probit_lpmf" => {
            &[(1, "Location parameter", Finite), (0, "Random variable", Category(2)), (2, "Cut-points", Finite)]
        }
        "ordered_logistic_glm_lpmf" => &[
            (0, "Vector of dependent variables", Category(3)),
            (3, "Cut-points", Finite),
            (2, "Weight vector", Finite),
            (1, "Matrix of independent variables", Finite),
        ],
        "pareto_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Scale parameter", PositiveFinite),
            (2, "Shape parameter", PositiveFinite),
        ],
        "pareto_type_2_lpdf" => &[
            (0, "Random variable", AtLeastThat(1)),
            (2, "Scale parameter", PositiveFinite),
            (3, "Shape parameter", PositiveFinite),
        ],
        "poisson_binomial_lpmf" => {
            &[(0, "Successes variable", UpToSize(1)), (1, "Probability parameters", Between(0.0, 1.0))]
        }
        "poisson_log_glm_lpmf" => &[
            (0, "Vector of dependent variables", Nonnegative),
            (3, "Weight vector", Finite),
            (2, "Intercept", Finite),
            (1, "Matrix of independent variables", Finite),
        ],
        "poisson_log_lpmf" => &[(0, "Random variable", Nonnegative), (1, "Log rate parameter", NotNan)],
        "poisson_lpmf" => &[(0, "Random variable", Nonnegative), (1, "Rate parameter", Nonnegative)],
        "rayleigh_lpdf" => &[(1, "Scale parameter", Positive), (0, "Random variable", Positive)],
        "skew_double_exponential_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Location parameter", Finite),
            (2, "Scale parameter", PositiveFinite),
            (3, "Skewness parameter", Between(0.0, 1.0)),
        ],
        "skew_normal_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Location parameter", Finite),
            (3, "Shape parameter", Finite),
            (2, "Scale parameter", Positive),
        ],
        "std_normal_lpdf" => &[(0, "Random variable", NotNan)],
        "uniform_lpdf" => &[
            (0, "Random variable", NotNan),
            (1, "Lower bound parameter", Finite),
            (2, "Upper bound parameter", Finite),
            (2, "Upper bound parameter", GreaterThan(1)),
        ],
        "von_mises_lpdf" => &[
            (0, "Random variable", Finite),
            (1, "Location parameter", Finite),
            (2, "Scale parameter", Nonnegative),
            (2, "Scale parameter", Finite),
        ],
        "weibull_lpdf" => &[
            (0, "Random variable", Finite),
            (1, "Shape parameter", PositiveFinite),
            (2, "Scale parameter", PositiveFinite),
        ],
        "wiener_lpdf" => &[
            (0, "Random variable", Positive),
            (1, "Boundary separation", PositiveFinite),
            (2, "Nondecision time", PositiveFinite),
            (3, "A-priori bias", Between(0.0, 1.0)),
            (4, "Drift rate", Finite),
            (0, "Random variable", GreaterThan(2)),
        ],
        // Those of more than five arguments, and the probabilities to have come.
        "wiener_full" => &[
            (0, "Random variable", PositiveFinite),
            (1, "Boundary separation", PositiveFinite),
            (4, "Drift rate", Finite),
            (3, "A-priori bias", Less(1.0)),
            (3, "A-priori bias", Above(0.0)),
            (2, "Nondecision time", Nonnegative),
            (2, "Nondecision time", Finite),
            (5, "Inter-trial variability in drift rate", Nonnegative),
            (5, "Inter-trial variability in drift rate", Finite),
            (6, "Inter-trial variability in A-priori bias", Between(0.0, 1.0)),
            (7, "Inter-trial variability in Nondecision time", Nonnegative),
            (7, "Inter-trial variability in Nondecision time", Finite),
            (0, "Random variable", GreaterThan(2)),
        ],
        "wishart_lpdf" | "inv_wishart_lpdf" | "wishart_cholesky_lpdf" | "inv_wishart_cholesky_lpdf" => {
            &[(1, "Degrees of freedom parameter", AboveRows(0))]
        }
        "yule_simon_lpmf" => &[(0, "Outcome variable", AtLeast(1.0)), (1, "Shape parameter", PositiveFinite)],
        _ => &[],
    }
}

/// What the distribution functions demand of the value that they are asked for; of parameters they demand what densities do.
fn of_value(stem: &str) -> Option<Demand> {
    Some(match stem {
        "cauchy"
        | "double_exponential"
        | "exp_mod_normal"
        | "gumbel"
        | "logistic"
        | "normal"
        | "skew_double_exponential"
        | "skew_normal"
        | "std_normal"
        | "student_t"
        | "uniform" => NotNan,
        "chi_square"
        | "exponential"
        | "gamma"
        | "inv_chi_square"
        | "inv_gamma"
        | "loglogistic"
        | "lognormal"
        | "pareto"
        | "rayleigh"
        | "scaled_inv_chi_square"
        | "weibull" => Nonnegative,
        "frechet" => Positive,
        "pareto_type_2" => AtLeastThat(1),
        "beta" | "beta_proportion" => Between(0.0, 1.0),
        "von_mises" => Between(-PI, PI),
        _ => return None,
    })
}

/// The largest rate that Stan draws with.
const MOST: f64 = 1_073_741_824.0;

/// What generators demand, where it is not what densities demand of the same arguments.
fn of_generators(base: &str) -> Option<&'static [Row]> {
    Some(match base {
        "bernoulli_logit" => &[(0, "Logit transformed probability parameter", Finite)],
        "bernoulli_logit_glm" => {
            &[(0, "Matrix of independent variables", Finite), (2, "Weight vector", Finite), (1, "Intercept", Finite)]
        }
        "dirichlet_multinomial" => {
            &[(0, "prior size variable", PositiveFinite), (1, "number of trials variables", Nonnegative)]
        }
        "gumbel" | "normal" => &[(0, "Location parameter", Finite), (1, "Scale parameter", PositiveFinite)],
        "hypergeometric" => &[
            (0, "Draws parameter", Positive),
            (1, "Successes in population parameter", Positive),
            (2, "Failures in population parameter", Positive),
        ],
        "lkj_corr" | "lkj_corr_cholesky" => &[(1, "Shape parameter", Positive)],
        "categorical_logit" => &[(0, "Log odds parameter", Finite)],
        "multinomial_logit" => {
            &[(0, "Log-probabilities parameter", Finite), (1, "number of trials variables", Nonnegative)]
        }
        "multinomial" => &[(1, "number of trials variables", Nonnegative)],
        "multi_student_t" | "multi_student_t_cholesky" => {
            &[(0, "Degrees of freedom parameter", Positive), (1, "Location parameter", Finite)]
        }
        "neg_binomial_2_log" => {
            &[(0, "Log-location parameter", Finite), (1, "Inverse dispersion parameter", PositiveFinite)]
        }
        "ordered_logistic" | "ordered_probit" => {
            &[(0, "Location parameter", Finite), (1, "Cut points parameter", Finite)]
        }
        "pareto_type_2" => &[
            (0, "Location parameter", Finite),
            (1, "Scale parameter", PositiveFinite),
            (2, "Shape parameter", PositiveFinite),
        ],
        "poisson" => &[(0, "Rate parameter", Positive), (0, "Rate parameter", Less(MOST))],
        "poisson_log" => &[(0, "Log rate parameter", Finite), (0, "Log rate parameter", Less(30.0 * LN_2))],
        "rayleigh" => &[(0, "Scale parameter", PositiveFinite)],
        "skew_normal" => {
            &[(0, "Location parameter", Finite), (1, "Scale parameter", PositiveFinite), (2, "Shape parameter", Finite)]
        }
        "wishart" | "inv_wishart" | "wishart_cholesky" | "inv_wishart_cholesky" => {
            &[(0, "degrees of freedom > dims - 1", AboveRows(1))]
        }
        _ => return None,
    })
}

/// The same demand where there is one argument less before what it reads.
fn without_value(demand: Demand) -> Demand {
    match demand {
        UpTo(arg) => UpTo(arg - 1),
        AtLeastThat(arg) => AtLeastThat(arg - 1),
        GreaterThan(arg) => GreaterThan(arg - 1),
        LessThatUpTo(arg, most) => LessThatUpTo(arg - 1, most - 1),
        demand => demand,
    }
}

/// The demands of a density, a distribution function or a generator on numbers, in Stan's order.
pub(super) fn demands(name: &str) -> Vec<Row> {
    let density = |stem: &str| {
        let rows = of_densities(&format!("{stem}_lpdf"));
        if rows.is_empty() { of_densities(&format!("{stem}_lpmf")) } else { rows }
    };
    let of_parameters = |stem: &str| density(stem).iter().filter(|(arg, ..)| *arg > 0).copied();
    if let Some(stem) = distribution_of(name) {
        let parameters: Vec<Row> = match stem {
            "von_mises" => vec![(1, "Location parameter", Finite), (2, "Scale parameter", Positive)],
            stem => of_parameters(stem).collect(),
        };
        let value = of_value(stem).map(|demand| (0, "Random variable", demand));
        return parameters.into_iter().chain(value).collect();
    }
    if let Some(base) = name.strip_suffix("_rng") {
        return match of_generators(base) {
            Some(rows) => rows.to_vec(),
            None => of_parameters(base).map(|(arg, what, demand)| (arg - 1, what, without_value(demand))).collect(),
        };
    }
    of_densities(name).to_vec()
}

/// The demands of a kernel of Gaussian processes on one set of points or two, and on its numbers; some want length scales of
/// coordinates to be finite, too.
pub(super) fn of_kernel(stem: &str, sets: usize, of_coordinates: bool) -> Vec<Row> {
    let scale =
        if stem == "gp_exp_quad" && !of_coordinates || stem == "gp_periodic" { Positive } else { PositiveFinite };
    let numbers: &[(&'static str, Demand)] = match stem {
        "gp_dot_prod" => &[("sigma", Nonnegative), ("sigma", Finite)],
        "gp_periodic" => &[("signal standard deviation", scale), ("length-scale", scale), ("period", scale)],
        _ => &[("magnitude", scale), ("length scale", scale)],
    };
    let at = |place: usize| if stem == "gp_dot_prod" { sets } else { sets + place };
    let numbers = numbers.iter().enumerate().map(|(place, (what, demand))| (at(place), *what, *demand));
    let points: &[&'static str] = if sets == 1 { &["x"] } else { &["x1", "x2"] };
    let point = if stem == "gp_dot_prod" { Finite } else { NotNan };
    numbers.chain(points.iter().enumerate().map(|(i, what)| (i, *what, point))).collect()
}

/// What a vector or a matrix must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Simplex,
    Ordered,
    Symmetric,
    Correlations,
    /// Symmetric and positive definite.
    Covariances,
    /// The same, where nothing that is made of it tells that it is not.
    Definite,
    /// Symmetric and positive semidefinite; of a diagonal, nothing negative.
    Semidefinite,
    LowerTriangular,
    /// Lower triangular with a positive diagonal.
    Factor,
}

use Form::{Correlations, Covariances, Definite, Factor, LowerTriangular, Ordered, Semidefinite, Simplex, Symmetric};

/// The demands of a function on vectors and matrices, in Stan's order.
pub(super) fn forms(name: &str) -> &'static [(usize, &'static str, Form)] {
    match name {
        "dirichlet_lpdf" => &[(0, "probabilities", Simplex)],
        "categorical_rng" | "multinomial_rng" => &[(0, "Probabilities parameter", Simplex)],
        "multinomial_lpmf" => &[(1, "Probabilities parameter", Simplex)],
        "ordered_logistic_rng" | "ordered_probit_rng" => &[(1, "Cut points parameter", Ordered)],
        "gaussian_dlm_obs_lpdf" => &[(3, "V", Semidefinite), (4, "W", Semidefinite), (6, "C0", Definite)],
        "lkj_corr_lpdf" => &[(0, "Correlation matrix", Correlations)],
        "lkj_corr_cholesky_lpdf" => &[(0, "Random variable", Factor)],
        "multi_gp_lpdf" => &[(1, "Kernel", Covariances)],
        "multi_gp_cholesky_lpdf" => &[(1, "Cholesky decomposition of kernel matrix", Factor)],
        "multi_normal_lpdf" => &[(2, "Covariance matrix", Covariances)],
        "multi_normal_prec_lpdf" => &[(2, "Precision matrix", Covariances)],
        "multi_normal_cholesky_lpdf" => &[(2, "Cholesky decomposition of a variance matrix", Factor)],
        "multi_student_t_lpdf" => &[(3, "Scale parameter", Covariances)],
        "multi_student_t_cholesky_lpdf" => &[(3, "scale parameter", Factor)],
        "multi_normal_rng" => &[(1, "Covariance matrix", Covariances)],
        "multi_normal_prec_rng" => &[(1, "Precision matrix", Covariances)],
        "multi_normal_cholesky_rng" => &[(1, "Cholesky factor of covariance matrix", Factor)],
        "multi_student_t_rng" => &[(2, "Covariance matrix", Covariances)],
        "multi_student_t_cholesky_rng" => &[(2, "L matrix", Factor)],
        "wishart_lpdf" | "inv_wishart_lpdf" => {
            &[(0, "random variable", Covariances), (2, "scale parameter", Covariances)]
        }
        "wishart_cholesky_lpdf" | "inv_wishart_cholesky_lpdf" => {
            &[(0, "Cholesky random variable", Factor), (2, "Cholesky Scale matrix", Factor)]
        }
        "wishart_rng" | "inv_wishart_rng" => &[(1, "scale parameter", Covariances)],
        "wishart_cholesky_rng" | "inv_wishart_cholesky_rng" => &[(1, "Cholesky Scale matrix", Factor)],
        "eigendecompose_sym" | "eigenvalues_sym" | "eigenvectors_sym" => &[(0, "m", Symmetric)],
        "quad_form_sym" => &[(0, "A", Symmetric)],
        "cholesky_decompose" | "inverse_spd" | "log_determinant_spd" => &[(0, "m", Covariances)],
        "chol2inv" => &[(0, "L", LowerTriangular)],
        "mdivide_left_spd" => &[(0, "A", Covariances)],
        "mdivide_right_spd" => &[(1, "A", Covariances)],
        _ => &[],
    }
}
