//! Densities of Stan's library, by those of ours.

use super::index::{At, number_at};
use super::{Result, Tracer, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{BinaryOp, Constraint};
use crate::stan::value::{Base, Kind, Val};

/// Densities whose arguments are numbers and arrays of one length, as in the language.
const VECTORISED: &[&str] = &[
    "normal_lpdf",
    "std_normal_lpdf",
    "lognormal_lpdf",
    "student_t_lpdf",
    "cauchy_lpdf",
    "double_exponential_lpdf",
    "logistic_lpdf",
    "exponential_lpdf",
    "gamma_lpdf",
    "inv_gamma_lpdf",
    "beta_lpdf",
    "uniform_lpdf",
    "bernoulli_lpmf",
    "bernoulli_logit_lpmf",
    "binomial_lpmf",
    "binomial_logit_lpmf",
    "poisson_lpmf",
    "poisson_log_lpmf",
    "neg_binomial_2_lpmf",
    "neg_binomial_2_log_lpmf",
    "neg_binomial_lpmf",
    "weibull_lpdf",
    "chi_square_lpdf",
    "inv_chi_square_lpdf",
    "scaled_inv_chi_square_lpdf",
    "gumbel_lpdf",
    "frechet_lpdf",
    "pareto_lpdf",
    "pareto_type_2_lpdf",
    "rayleigh_lpdf",
    "loglogistic_lpdf",
    "exp_mod_normal_lpdf",
    "skew_normal_lpdf",
    "skew_double_exponential_lpdf",
    "von_mises_lpdf",
    "beta_binomial_lpmf",
    "beta_proportion_lpdf",
    "beta_neg_binomial_lpmf",
    "hypergeometric_lpmf",
    "yule_simon_lpmf",
    "discrete_range_lpmf",
    "wiener_lpdf",
];

/// Distributions of vectors and matrices: of arrays of them one after the other.
const OF_VECTORS: &[&str] = &[
    "dirichlet_lpdf",
    "multi_normal_lpdf",
    "multi_normal_cholesky_lpdf",
    "multi_normal_prec_lpdf",
    "multi_student_t_lpdf",
    "multi_student_t_cholesky_lpdf",
    "multi_gp_lpdf",
    "multi_gp_cholesky_lpdf",
    "lkj_corr_cholesky_lpdf",
    "lkj_corr_lpdf",
    "lkj_cov_lpdf",
    "wishart_lpdf",
    "inv_wishart_lpdf",
    "wishart_cholesky_lpdf",
    "inv_wishart_cholesky_lpdf",
    "gaussian_dlm_obs_lpdf",
    "multinomial_lpmf",
    "multinomial_logit_lpmf",
    "dirichlet_multinomial_lpmf",
];

/// Distributions of categories and of regressions.
const OTHER: &[&str] = &[
    "categorical_lpmf",
    "categorical_logit_lpmf",
    "ordered_logistic_lpmf",
    "ordered_probit_lpmf",
    "bernoulli_logit_glm_lpmf",
    "normal_id_glm_lpdf",
    "poisson_log_glm_lpmf",
    "neg_binomial_2_log_glm_lpmf",
    "binomial_logit_glm_lpmf",
    "categorical_logit_glm_lpmf",
    "ordered_logistic_glm_lpmf",
    "poisson_binomial_lpmf",
];

impl Tracer<'_> {
    /// Whether the library has a density of this name.
    pub(super) fn library_has(&self, name: &str) -> bool {
        VECTORISED.contains(&name) || OF_VECTORS.contains(&name) || OTHER.contains(&name)
    }

    /// Whether arguments of a density are numbers and arrays of one length.
    pub(super) fn is_vectorised(&self, name: &str) -> bool {
        VECTORISED.contains(&name)
    }

    /// A density whose arguments are numbers and arrays of one length.
    pub(super) fn vectorised_density(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        let (length, args) = self.aligned(span, name, args)?;
        if length == Some(0) {
            return Ok(Val::real(0.0));
        }
        self.call_ab(span, name, &args, Kind::REAL, vec![])
    }

    /// `wiener_lpdf` of more than five arguments, and its distribution functions; `None` for any other. The last argument
    /// may be Stan's precision of derivatives, which has no part here: ours are exact but for rounding.
    pub(super) fn first_passage(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let (suffix, args) = match (name, args.len()) {
            ("wiener_lpdf", 6 | 8) => ("lpdf", args),
            ("wiener_lpdf", 7 | 9) => ("lpdf", &args[..args.len() - 1]),
            ("wiener_lcdf_unnorm" | "wiener_lccdf_unnorm", 5 | 8) => (&name["wiener_".len()..], args),
            ("wiener_lcdf_unnorm" | "wiener_lccdf_unnorm", 6 | 9) => {
                (&name["wiener_".len()..], &args[..args.len() - 1])
            }
            _ => return Ok(None),
        };
        self.check_demands(span, name, "wiener_full", args)?;
        // What does not vary needs no average.
        let varies =
            |at: usize| args.get(at).is_some_and(|v| v.reals().is_none_or(|all| all.iter().any(|x| *x != 0.0)));
        let (what, args) = match (varies(6), varies(7)) {
            (true, true) => ("full_", args.to_vec()),
            (true, false) => ("starts_", args[..7].to_vec()),
            (false, true) => ("times_", [&args[..6], &args[7..]].concat()),
            (false, false) if args.len() > 5 => ("drifts_", args[..6].to_vec()),
            (false, false) => ("", args.to_vec()),
        };
        let called = format!("wiener_{what}{suffix}");
        if matches!(called.as_str(), "wiener_lpdf" | "wiener_drifts_lpdf") {
            return self.vectorised_density(span, &called, &args).map(Some);
        }
        let (length, args) = self.aligned(span, name, &args)?;
        let Some(n) = length else { return self.call_ab(span, &called, &args, Kind::REAL, vec![]).map(Some) };
        if n == 0 {
            return Ok(Some(Val::real(0.0)));
        }
        let one = |t: &mut Self, numbers: &[Val]| t.call_ab(span, &called, numbers, Kind::REAL, vec![]);
        let each = self.each_element(&args, Kind::VECTOR, vec![n], one)?;
        self.library(span, "sum", &[each]).map(Some)
    }

    /// The rows of an argument that may be one vector or several.
    pub(super) fn rows_of(v: &Val) -> Vec<Val> {
        if v.kind.arrays == 0 {
            return vec![v.clone()];
        }
        let n = v.shape[0];
        let size = v.len() / n.max(1);
        (0..n).map(|i| v.pick(v.kind.element(), v.shape[1..].to_vec(), i * size..(i + 1) * size)).collect()
    }

    /// Densities of several numbers, and those of regressions.
    pub(super) fn density(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        if let ("gaussian_dlm_obs_lpdf", [_, _, _, noise, ..]) = (name, args)
            && noise.kind == Kind::VECTOR
        {
            let mut args = args.to_vec();
            args[3] = self.library(span, "diag_matrix", std::slice::from_ref(noise))?;
            return self.density(span, name, &args);
        }
        if OF_VECTORS.contains(&name) {
            // One vector at a time; of several arguments that are arrays the rows go together.
            let rows = |v: &Val| if v.kind.is_int() && v.kind.arrays < 2 { vec![v.clone()] } else { Self::rows_of(v) };
            return self.by_rows(span, name, &args.iter().map(rows).collect::<Vec<_>>()).map(Some);
        }
        match (name, args) {
            ("categorical_lpmf" | "categorical_logit_lpmf", [y, p]) => {
                if name == "categorical_lpmf" {
                    self.demand(span, name, "Probabilities parameter", &Constraint::Simplex, p)?;
                }
                let logs = if name == "categorical_lpmf" {
                    self.elementwise(span, "log", std::slice::from_ref(p))?
                } else {
                    let total = self.call_ab(span, "log_sum_exp", std::slice::from_ref(p), Kind::REAL, vec![])?;
                    self.infix(span, "-", p, &total)?
                };
                let chosen = self.categories(span, name, &logs, y)?;
                self.library(span, "sum", &[chosen]).map(Some)
            }
            ("ordered_logistic_lpmf" | "ordered_probit_lpmf", [y, eta, c]) => {
                let y = self.infix(span, "-", y, &Val::int(1))?;
                let c = Self::rows_of(c);
                for c in &c {
                    self.demand(span, name, "Cut-points", &Constraint::Ordered, c)?;
                }
                self.by_rows(span, name, &[self.numbers_of(&y), self.numbers_of(eta), c]).map(Some)
            }
            ("poisson_binomial_lpmf", [y, theta]) => {
                let theta = Self::rows_of(theta);
                self.by_rows(span, name, &[self.numbers_of(y), theta]).map(Some)
            }
            ("bernoulli_logit_glm_lpmf" | "poisson_log_glm_lpmf", [y, x, alpha, beta]) => {
                let location = self.regression(span, x, alpha, beta)?;
                let density = if name.starts_with("bern") { "bernoulli_logit_lpmf" } else { "poisson_log_lpmf" };
                self.vectorised_density(span, density, &[y.clone(), location]).map(Some)
            }
            ("binomial_logit_glm_lpmf", [y, n, x, alpha, beta]) => {
                let location = self.regression(span, x, alpha, beta)?;
                self.vectorised_density(span, "binomial_logit_lpmf", &[y.clone(), n.clone(), location]).map(Some)
            }
            ("normal_id_glm_lpdf" | "neg_binomial_2_log_glm_lpmf", [y, x, alpha, beta, scale]) => {
                let location = self.regression(span, x, alpha, beta)?;
                let density = if name.starts_with("normal") { "normal_lpdf" } else { "neg_binomial_2_log_lpmf" };
                self.vectorised_density(span, density, &[y.clone(), location, scale.clone()]).map(Some)
            }
            ("categorical_logit_glm_lpmf" | "ordered_logistic_glm_lpmf", [y, x, of_rows @ ..]) => {
                let (y, x) = self.observations(span, name, y, x)?;
                if y.len() == 0 {
                    return Ok(Some(Val::real(0.0)));
                }
                if let ("ordered_logistic_glm_lpmf", Some(c)) = (name, of_rows.last()) {
                    self.demand(span, name, "Cut-points", &Constraint::Ordered, c)?;
                }
                let args: Vec<Val> = [y, x].into_iter().chain(of_rows.iter().cloned()).collect();
                self.call_ab(span, name, &args, Kind::REAL, vec![]).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The sum of a density of arguments that go row by row; one row serves for all.
    fn by_rows(&mut self, span: Span, name: &str, parts: &[Vec<Val>]) -> Result<Val> {
        if parts.iter().any(Vec::is_empty) && parts.iter().all(|p| p.len() <= 1) {
            return Ok(Val::real(0.0));
        }
        let n = parts.iter().map(Vec::len).max().unwrap_or(1);
        if let Some(other) = parts.iter().find(|p| p.len() != 1 && p.len() != n) {
            return wrong(span, format!("{name}: arguments of {n} and {} elements", other.len()));
        }
        let mut terms = Vec::with_capacity(n);
        for i in 0..n {
            let row: Vec<Val> = parts.iter().map(|p| p[if p.len() == 1 { 0 } else { i }].clone()).collect();
            self.check_sizes(span, name, &row)?;
            terms.push(self.call_ab(span, name, &row, Kind::REAL, vec![])?.elem(0));
        }
        let all = Val::from_elems(
            if n == 1 { Kind::REAL } else { Kind::VECTOR },
            if n == 1 { vec![] } else { vec![n] },
            terms,
        );
        if n == 1 { Ok(all) } else { self.library(span, "sum", &[all]) }
    }

    /// The numbers of an argument that may be one or several.
    fn numbers_of(&self, v: &Val) -> Vec<Val> {
        let kind = if v.kind.is_int() { Kind::INT } else { Kind::REAL };
        (0..v.len()).map(|i| v.pick(kind, vec![], std::iter::once(i))).collect()
    }

    /// The linear predictor of the rows of x; of one row, which serves for all, a number if alpha is one.
    pub(super) fn regression(&mut self, span: Span, x: &Val, alpha: &Val, beta: &Val) -> Result<Val> {
        let product = self.binary(span, BinaryOp::Multiply, x, beta)?;
        self.add(span, alpha, &product)
    }

    /// Categories, counted from 0, and a row of x for each of them.
    fn observations(&mut self, span: Span, name: &str, y: &Val, x: &Val) -> Result<(Val, Val)> {
        let (width, rows) = (*x.shape.last().unwrap_or(&0), if x.kind == Kind::MATRIX { x.shape[0] } else { 1 });
        let n = if y.is_scalar() { rows } else { y.len() };
        if x.kind == Kind::MATRIX && rows != n {
            return wrong(span, format!("{name}: {n} categories for {rows} rows"));
        }
        let y = self.infix(span, "-", y, &Val::int(1))?;
        let places = (0..n).map(|i| if y.is_scalar() { 0 } else { i });
        let all = y.pick(Kind { base: Base::Int, arrays: 1 }, vec![n], places);
        if x.kind == Kind::MATRIX {
            return Ok((all, x.clone()));
        }
        Ok((all, x.pick(Kind::MATRIX, vec![n, width], (0..n).flat_map(|_| 0..width))))
    }

    /// The elements of a vector that categories choose, counted from 1.
    fn categories(&mut self, span: Span, name: &str, logs: &Val, y: &Val) -> Result<Val> {
        let n = logs.len();
        match y.ints() {
            Some(ints) => {
                if let Some(at) = ints.iter().position(|i| *i < 1 || *i > n as i64) {
                    let (what, place) = match (name, y.is_scalar()) {
                        ("categorical_lpmf", true) => ("Number of categories", String::new()),
                        ("categorical_lpmf", false) => ("element of outcome array", format!("[{}]", at + 1)),
                        (_, true) => ("categorical outcome out of support", String::new()),
                        (_, false) => ("categorical outcome out of support", format!("[{}]", at + 1)),
                    };
                    let bad = ints[at];
                    return wrong(
                        span,
                        format!("{name}: {what}{place} is {bad}, but must be in the interval [1, {n}]"),
                    );
                }
                let kind = if y.is_scalar() { Kind::REAL } else { Kind::VECTOR };
                Ok(logs.pick(kind, y.shape.clone(), ints.iter().map(|i| *i as usize - 1)))
            }
            None if y.is_scalar() => {
                let index = self.infix(span, "-", y, &Val::int(1))?;
                self.node(span, Op::At, &[logs.clone(), index], Kind::REAL, vec![])
            }
            None => {
                self.check_indices(&logs.shape, &[At::Lanes(y.clone(), span)])?;
                let mut chosen = Vec::with_capacity(y.len());
                for i in 0..y.len() {
                    let index = self.infix(span, "-", &number_at(y, i), &Val::int(1))?;
                    let index = match self.on(span)? {
                        // Who does not come here reads the first one.
                        Some(on) => self.select(span, &on, &index, &Val::int(0))?,
                        None => index,
                    };
                    chosen.push(self.node(span, Op::At, &[logs.clone(), index], Kind::REAL, vec![])?.elem(0));
                }
                Ok(Val::from_elems(Kind::VECTOR, y.shape.clone(), chosen))
            }
        }
    }
}
