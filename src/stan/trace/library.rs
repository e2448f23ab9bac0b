//! Functions of Stan's library, by what they are made of here.

use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::value::{Base, Elem, Kind, Val};

/// Elementwise functions of one real that have the same name and meaning in the language.
const UNARY: &[&str] = &[
    "sqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "log1m",
    "log1m_exp",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "inv_logit",
    "log_inv_logit",
    "log1p_exp",
    "inv_cloglog",
    "erf",
    "erfc",
    "Phi",
    "inv_Phi",
    "lgamma",
    "digamma",
    "trigamma",
    "floor",
    "ceil",
    "round",
    "trunc",
    "square",
    "logit",
    "Phi_approx",
    "tgamma",
    "inv_erfc",
    "lambert_w0",
    "lambert_wm1",
    "asinh",
    "acosh",
    "atanh",
];

/// The same of two reals.
const BINARY: &[&str] = &[
    "atan2",
    "lbeta",
    "lmultiply",
    "log_diff_exp",
    "fdim",
    "hypot",
    "owens_t",
    "gamma_p",
    "gamma_q",
    "beta",
    "lmgamma",
    "falling_factorial",
    "rising_factorial",
    "log_falling_factorial",
    "log_rising_factorial",
    "bessel_first_kind",
    "bessel_second_kind",
    "modified_bessel_first_kind",
    "modified_bessel_second_kind",
    "log_modified_bessel_first_kind",
];

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
    "discrete_range_lpmf",
    "wiener_lpdf",
];

/// Distributions of several numbers, and others that the translator knows one by one.
const OTHER: &[&str] = &[
    "categorical_lpmf",
    "categorical_logit_lpmf",
    "dirichlet_lpdf",
    "multi_normal_lpdf",
    "multi_normal_cholesky_lpdf",
    "multi_normal_prec_lpdf",
    "lkj_corr_cholesky_lpdf",
    "lkj_corr_lpdf",
    "bernoulli_logit_glm_lpmf",
    "normal_id_glm_lpdf",
    "poisson_log_glm_lpmf",
    "neg_binomial_2_log_glm_lpmf",
    "multinomial_lpmf",
    "ordered_logistic_lpmf",
    "ordered_probit_lpmf",
    "wishart_lpdf",
    "inv_wishart_lpdf",
    "multi_student_t_lpdf",
];

impl Tracer<'_> {
    /// Whether the library has a density of this name.
    pub(super) fn library_has(&self, name: &str) -> bool {
        VECTORISED.contains(&name) || OTHER.contains(&name)
    }

    /// A function of Stan's library.
    pub(super) fn library(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        if let Some(value) = self.moved(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.constant(name, args) {
            return Ok(value);
        }
        if let [_] = args
            && UNARY.contains(&name)
        {
            return self.elementwise(span, name, args);
        }
        if let [_, _] = args
            && BINARY.contains(&name)
        {
            return self.elementwise(span, name, args);
        }
        if let Some(value) = self.composed(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.reduced(span, name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.linear_algebra(span, name, args)? {
            return Ok(value);
        }
        if VECTORISED.contains(&name) || ["_lcdf", "_lccdf", "_cdf"].iter().any(|s| name.ends_with(s)) {
            return self.vectorised_density(span, name, args);
        }
        if let Some(value) = self.density(span, name, args)? {
            return Ok(value);
        }
        if let Some(base) = name.strip_suffix("_rng") {
            return self.draw(span, base, args);
        }
        unsupported(span, format!("`{name}`"))
    }

    fn constant(&self, name: &str, args: &[Val]) -> Option<Val> {
        let value = match (name, args) {
            ("pi", []) => std::f64::consts::PI,
            ("e", []) => std::f64::consts::E,
            ("sqrt2", []) => std::f64::consts::SQRT_2,
            ("log2", []) => std::f64::consts::LN_2,
            ("log10", []) => std::f64::consts::LN_10,
            ("not_a_number", []) => f64::NAN,
            ("positive_infinity", []) => f64::INFINITY,
            ("negative_infinity", []) => f64::NEG_INFINITY,
            ("machine_precision", []) => f64::EPSILON,
            _ => return None,
        };
        Some(Val::real(value))
    }

    /// Elementwise functions that are made of others.
    fn composed(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let one = Val::real(1.0);
        Ok(Some(match (name, args) {
            ("abs" | "fabs", [x]) if x.kind.is_int() && name == "abs" => {
                self.call_ab(span, "abs", args, x.kind, x.shape.clone())?
            }
            ("abs" | "fabs", [_]) => self.elementwise(span, "abs", args)?,
            ("inv", [x]) => self.infix(span, "/", &one, x)?,
            ("inv_sqrt", [_]) => {
                let root = self.elementwise(span, "sqrt", args)?;
                self.infix(span, "/", &one, &root)?
            }
            ("inv_square", [_]) => {
                let square = self.elementwise(span, "square", args)?;
                self.infix(span, "/", &one, &square)?
            }
            ("log1m_inv_logit", [x]) => {
                let minus = self.apply(span, Op::Negate, &[x.promoted()], x.promoted().kind, x.shape.clone())?;
                self.elementwise(span, "log_inv_logit", &[minus])?
            }
            ("softplus", [_]) => self.elementwise(span, "log1p_exp", args)?,
            ("pow", [a, b]) => self.binary(span, crate::stan::syntax::ast::BinaryOp::EltPower, a, b)?,
            ("multiply_log", [_, _]) => self.elementwise(span, "lmultiply", args)?,
            ("fmin", [_, _]) => self.elementwise(span, "min", args)?,
            ("fmax", [_, _]) => self.elementwise(span, "max", args)?,
            ("min" | "max", [a, b]) if a.kind.is_int() && b.kind.is_int() => {
                self.call_ab(span, name, args, Kind::INT, vec![])?
            }
            ("fmod", [a, b]) => self.apply(span, Op::Infix("%"), &[a.promoted(), b.promoted()], Kind::REAL, vec![])?,
            ("fma", [a, b, c]) => {
                let product = self.infix(span, "*", &a.promoted(), b)?;
                self.add(span, &product, c)?
            }
            ("lchoose" | "binomial_coefficient_log", [_, _]) => self.elementwise(span, "log_choose", args)?,
            ("int_step" | "step", [x]) => {
                let sign = if name == "step" { ">=" } else { ">" };
                let holds = self.compare(span, sign, x, &Val::int(0))?;
                if name == "step" { holds.promoted() } else { holds }
            }
            ("is_nan", [x]) => {
                self.apply(span, Op::CallBool("is_nan".into()), std::slice::from_ref(x), Kind::INT, vec![])?
            }
            ("is_inf", [x]) => {
                let size = self.elementwise(span, "abs", std::slice::from_ref(x))?;
                self.compare(span, "==", &size, &Val::real(f64::INFINITY))?
            }
            ("to_int", [x]) => self.call_ab(span, "int", std::slice::from_ref(x), Kind::INT, vec![])?,
            ("log_sum_exp", [_, _]) => self.elementwise(span, "log_add_exp", args)?,
            ("log_mix", [p, a, b]) => {
                let (first, rest) = (
                    self.elementwise(span, "log", std::slice::from_ref(p))?,
                    self.elementwise(span, "log1m", std::slice::from_ref(p))?,
                );
                let (a, b) = (self.add(span, &first, a)?, self.add(span, &rest, b)?);
                self.elementwise(span, "log_add_exp", &[a, b])?
            }
            ("log_mix", [p, a]) => {
                let logs = self.elementwise(span, "log", std::slice::from_ref(p))?;
                let a = Val { kind: logs.kind, ..a.clone() };
                let terms = self.add(span, &logs, &a)?;
                self.call_ab(span, "log_sum_exp", &[terms], Kind::REAL, vec![])?
            }
            _ => return Ok(None),
        }))
    }

    /// Functions of whole arrays that give a number, and a few that keep the shape.
    fn reduced(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let flat = |v: &Val| {
            v.reshaped(if v.kind.is_int() { Kind { base: Base::Int, arrays: 1 } } else { Kind::VECTOR }, vec![v.len()])
        };
        Ok(Some(match (name, args) {
            ("sum" | "prod", [x]) => {
                let kind = if x.kind.is_int() { Kind::INT } else { Kind::REAL };
                if let Some(ints) = x.ints() {
                    let total = if name == "sum" { ints.iter().sum() } else { ints.iter().product() };
                    return Ok(Some(Val::int(total)));
                }
                if x.len() == 0 {
                    return Ok(Some(Val::real(if name == "sum" { 0.0 } else { 1.0 })));
                }
                self.call_ab(span, name, &[flat(x)], kind, vec![])?
            }
            ("min" | "max", [x]) => {
                if let Some(ints) = x.ints() {
                    let found = if name == "min" { ints.iter().min() } else { ints.iter().max() };
                    return match found {
                        Some(i) => Ok(Some(Val::int(*i))),
                        None => wrong(span, format!("{name} of no ints")),
                    };
                }
                if x.len() == 0 {
                    return Ok(Some(Val::real(if name == "min" { f64::INFINITY } else { f64::NEG_INFINITY })));
                }
                self.call_ab(span, name, &[flat(x)], Kind::REAL, vec![])?
            }
            ("mean" | "variance" | "log_sum_exp", [x]) if !x.is_scalar() => {
                self.call_ab(span, name, &[flat(&x.promoted())], Kind::REAL, vec![])?
            }
            ("sd", [x]) => {
                let variance = self.call_ab(span, "variance", &[flat(&x.promoted())], Kind::REAL, vec![])?;
                self.elementwise(span, "sqrt", &[variance])?
            }
            ("dot_product", [x, y]) => {
                self.call_ab(span, "dot", &[flat(&x.promoted()), flat(&y.promoted())], Kind::REAL, vec![])?
            }
            ("dot_self", [x]) => self.call_ab(span, "dot", &[x.clone(), x.clone()], Kind::REAL, vec![])?,
            ("norm2", [x]) => {
                let square = self.call_ab(span, "dot", &[x.clone(), x.clone()], Kind::REAL, vec![])?;
                self.elementwise(span, "sqrt", &[square])?
            }
            ("norm1", [x]) => {
                let sizes = self.elementwise(span, "abs", std::slice::from_ref(x))?;
                self.call_ab(span, "sum", &[sizes], Kind::REAL, vec![])?
            }
            ("distance" | "squared_distance", [x, y]) => {
                let y = Val { kind: x.kind, ..y.clone() };
                let difference = self.infix(span, "-", &x.promoted(), &y)?;
                let square = if difference.is_scalar() {
                    self.elementwise(span, "square", &[difference])?
                } else {
                    self.call_ab(span, "dot", &[difference.clone(), difference], Kind::REAL, vec![])?
                };
                if name == "distance" { self.elementwise(span, "sqrt", &[square])? } else { square }
            }
            ("softmax" | "cumulative_sum" | "log_softmax", [x]) if name != "log_softmax" => {
                if let (Some(ints), "cumulative_sum") = (x.ints(), name) {
                    let sums = ints
                        .iter()
                        .scan(0_i64, |sum, i| {
                            *sum += i;
                            Some(Elem::Int(*sum))
                        })
                        .collect();
                    return Ok(Some(Val::from_elems(x.kind, x.shape.clone(), sums)));
                }
                self.call_ab(span, name, std::slice::from_ref(x), x.kind, x.shape.clone())?
            }
            ("log_softmax", [x]) => {
                let total = self.call_ab(span, "log_sum_exp", std::slice::from_ref(x), Kind::REAL, vec![])?;
                self.infix(span, "-", x, &total)?
            }
            ("sort_asc" | "sort_desc" | "sort_indices_asc" | "sort_indices_desc" | "rank", _) => {
                return self.sorted(span, name, args).map(Some);
            }
            _ => return Ok(None),
        }))
    }

    /// Sorting of what is known.
    fn sorted(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        let ([x] | [x, _]) = args else { return wrong(span, format!("{name} wants an array")) };
        let Some(values) = x.reals() else { return unsupported(span, format!("`{name}` of parameters")) };
        if let [_, at] = args {
            let Some(at) = at.as_int() else { return unsupported(span, "`rank` of parameters") };
            let here = values.get(at as usize - 1).copied().unwrap_or(f64::NAN);
            return Ok(Val::int(values.iter().filter(|v| **v < here).count() as i64));
        }
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        if name.ends_with("_desc") {
            order.reverse();
        }
        if name.starts_with("sort_indices") {
            let places = order.iter().map(|i| Elem::Int(*i as i64 + 1)).collect();
            return Ok(Val::from_elems(Kind { base: Base::Int, arrays: 1 }, vec![order.len()], places));
        }
        Ok(x.pick(x.kind, x.shape.clone(), order.into_iter()))
    }

    /// Functions of matrices that have the same name in the language.
    fn linear_algebra(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let same = |t: &mut Self, kind: Kind, shape: Vec<usize>| t.call_ab(span, name, args, kind, shape).map(Some);
        match (name, args) {
            (
                "cholesky_decompose"
                | "inverse"
                | "inverse_spd"
                | "chol2inv"
                | "matrix_exp"
                | "eigenvectors_sym"
                | "multiply_lower_tri_self_transpose"
                | "tcrossprod"
                | "crossprod"
                | "qr_thin_Q"
                | "qr_thin_R"
                | "qr_Q"
                | "qr_R",
                [a],
            ) => {
                let (r, c) = (a.shape[0], a.shape[1]);
                let shape = match name {
                    "tcrossprod" | "multiply_lower_tri_self_transpose" => vec![r, r],
                    "crossprod" => vec![c, c],
                    "qr_thin_R" => vec![r.min(c), c],
                    "qr_thin_Q" => vec![r, r.min(c)],
                    "qr_Q" => vec![r, r],
                    _ => a.shape.clone(),
                };
                match name {
                    "tcrossprod" => {
                        let t = self.transpose(span, a)?;
                        self.binary(span, crate::stan::syntax::ast::BinaryOp::Multiply, a, &t).map(Some)
                    }
                    "crossprod" => {
                        let t = self.transpose(span, a)?;
                        self.binary(span, crate::stan::syntax::ast::BinaryOp::Multiply, &t, a).map(Some)
                    }
                    _ => same(self, Kind::MATRIX, shape),
                }
            }
            ("eigenvalues_sym" | "singular_values", [a]) => same(self, Kind::VECTOR, vec![a.shape[0].min(a.shape[1])]),
            ("determinant" | "log_determinant" | "log_determinant_spd" | "trace", [_]) => {
                same(self, Kind::REAL, vec![])
            }
            ("mdivide_left_tri_low" | "mdivide_left" | "mdivide_left_spd", [_, b]) => {
                same(self, b.kind, b.shape.clone())
            }
            ("mdivide_right" | "mdivide_right_tri_low" | "mdivide_right_spd", [b, _]) => {
                same(self, b.kind, b.shape.clone())
            }
            ("quad_form_diag", [m, v]) => {
                let left = self.scaled_rows(span, m, v)?;
                self.scaled_columns(span, &left, v).map(Some)
            }
            ("diag_pre_multiply", [v, m]) => self.scaled_rows(span, m, v).map(Some),
            ("diag_post_multiply", [m, v]) => self.scaled_columns(span, m, v).map(Some),
            ("quad_form" | "quad_form_sym", [a, b]) => {
                let right = self.binary(span, crate::stan::syntax::ast::BinaryOp::Multiply, a, b)?;
                let left = self.transpose(span, b)?;
                self.binary(span, crate::stan::syntax::ast::BinaryOp::Multiply, &left, &right).map(Some)
            }
            ("add_diag", [m, v]) => {
                let n = m.shape[0].min(m.shape[1]);
                let cols = m.shape[1];
                let mut elems = m.elems();
                for i in 0..n {
                    let at = Val::from_elems(Kind::REAL, vec![], vec![elems[i * (cols + 1)]]);
                    let more = if v.is_scalar() { v.clone() } else { v.pick(Kind::REAL, vec![], std::iter::once(i)) };
                    elems[i * (cols + 1)] = self.add(span, &at, &more)?.elem(0);
                }
                Ok(Some(Val::from_elems(Kind::MATRIX, m.shape.clone(), elems)))
            }
            ("gp_exp_quad_cov" | "cov_exp_quad", [x, sigma, length]) => {
                self.exp_quad(span, x, x, sigma, length, true).map(Some)
            }
            ("gp_exp_quad_cov" | "cov_exp_quad", [x, y, sigma, length]) => {
                self.exp_quad(span, x, y, sigma, length, false).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn scaled_rows(&mut self, span: Span, m: &Val, v: &Val) -> Result<Val> {
        let (rows, cols) = (m.shape[0], m.shape[1]);
        if v.len() != rows {
            return wrong(span, format!("{} factors for {rows} rows", v.len()));
        }
        let factors =
            v.promoted().pick(Kind::MATRIX, vec![rows, cols], (0..rows).flat_map(|i| std::iter::repeat_n(i, cols)));
        self.infix(span, "*", &factors, m)
    }

    fn scaled_columns(&mut self, span: Span, m: &Val, v: &Val) -> Result<Val> {
        let (rows, cols) = (m.shape[0], m.shape[1]);
        if v.len() != cols {
            return wrong(span, format!("{} factors for {cols} columns", v.len()));
        }
        let factors = v.promoted().pick(Kind::MATRIX, vec![rows, cols], (0..rows).flat_map(|_| 0..cols));
        self.infix(span, "*", m, &factors)
    }

    /// sigma² exp(−|x − y|² / (2 length²)); known points have known distances.
    fn exp_quad(&mut self, span: Span, x: &Val, y: &Val, sigma: &Val, length: &Val, _same: bool) -> Result<Val> {
        let (n, m) = (x.shape[0], y.shape[0]);
        let (Some(p), Some(q)) = (x.reals(), y.reals()) else {
            return unsupported(span, "`gp_exp_quad_cov` of points that depend on parameters");
        };
        if !length.is_scalar() {
            return unsupported(span, "`gp_exp_quad_cov` with several length scales");
        }
        let d = p.len() / n.max(1);
        let square = |i: usize, j: usize| (0..d).map(|k| (p[i * d + k] - q[j * d + k]).powi(2)).sum::<f64>();
        let half: Vec<Elem> = (0..n * m).map(|k| Elem::Real(-0.5 * square(k / m, k % m))).collect();
        let half = Val::from_elems(Kind::MATRIX, vec![n, m], half);
        let length = self.elementwise(span, "square", std::slice::from_ref(length))?;
        let scaled = self.infix(span, "/", &half, &length)?;
        let decay = self.elementwise(span, "exp", &[scaled])?;
        let variance = self.elementwise(span, "square", std::slice::from_ref(sigma))?;
        self.infix(span, "*", &variance, &decay)
    }

    /// A density whose arguments are numbers and arrays of one length.
    fn vectorised_density(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        let long = args.iter().find(|arg| !arg.is_scalar());
        if let Some(long) = long {
            let n = long.len();
            if n == 0 {
                return Ok(Val::real(0.0));
            }
            if let Some(other) = args.iter().find(|arg| !arg.is_scalar() && arg.len() != n) {
                return wrong(span, format!("{name}: arguments of {n} and {} elements", other.len()));
            }
            let flat = |v: &Val| {
                let kind = if v.kind.is_int() { Kind { base: Base::Int, arrays: 1 } } else { Kind::VECTOR };
                if v.is_scalar() { v.clone() } else { v.reshaped(kind, vec![n]) }
            };
            let args: Vec<Val> = args.iter().map(flat).collect();
            return self.call_ab(span, name, &args, Kind::REAL, vec![]);
        }
        self.call_ab(span, name, args, Kind::REAL, vec![])
    }

    /// The rows of an argument that may be one vector or several.
    fn rows_of(v: &Val) -> Vec<Val> {
        if v.kind.arrays == 0 {
            return vec![v.clone()];
        }
        let n = v.shape[0];
        let size = v.len() / n.max(1);
        (0..n).map(|i| v.pick(v.kind.element(), v.shape[1..].to_vec(), i * size..(i + 1) * size)).collect()
    }

    /// Densities of several numbers, and those of regressions.
    fn density(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let sum = |t: &mut Self, terms: Vec<Val>| {
            let n = terms.len();
            let all = Val::from_elems(Kind::VECTOR, vec![n], terms.iter().map(|v| v.elem(0)).collect());
            if n == 1 { Ok(terms[0].clone()) } else { t.library(span, "sum", &[all]) }
        };
        match (name, args) {
            ("categorical_lpmf" | "categorical_logit_lpmf", [y, p]) => {
                let logs = if name == "categorical_lpmf" {
                    self.elementwise(span, "log", std::slice::from_ref(p))?
                } else {
                    let total = self.call_ab(span, "log_sum_exp", std::slice::from_ref(p), Kind::REAL, vec![])?;
                    self.infix(span, "-", p, &total)?
                };
                let chosen = self.categories(span, &logs, y)?;
                self.library(span, "sum", &[chosen]).map(Some)
            }
            (
                "dirichlet_lpdf"
                | "lkj_corr_cholesky_lpdf"
                | "lkj_corr_lpdf"
                | "multi_normal_lpdf"
                | "multi_normal_cholesky_lpdf"
                | "multi_normal_prec_lpdf"
                | "wishart_lpdf"
                | "inv_wishart_lpdf"
                | "multi_student_t_lpdf"
                | "multinomial_lpmf",
                _,
            ) => {
                // One vector at a time; of several arguments that are arrays the rows go together.
                let parts: Vec<Vec<Val>> =
                    args.iter().map(|v| if v.kind.is_int() { vec![v.clone()] } else { Self::rows_of(v) }).collect();
                let n = parts.iter().map(Vec::len).max().unwrap_or(1);
                let mut terms = Vec::with_capacity(n);
                for i in 0..n {
                    let row: Vec<Val> = parts.iter().map(|p| p[if p.len() == 1 { 0 } else { i }].clone()).collect();
                    terms.push(self.call_ab(span, name, &row, Kind::REAL, vec![])?);
                }
                sum(self, terms).map(Some)
            }
            ("bernoulli_logit_glm_lpmf" | "poisson_log_glm_lpmf", [y, x, alpha, beta]) => {
                let location = self.regression(span, x, alpha, beta)?;
                let density = if name.starts_with("bern") { "bernoulli_logit_lpmf" } else { "poisson_log_lpmf" };
                self.vectorised_density(span, density, &[y.clone(), location]).map(Some)
            }
            ("normal_id_glm_lpdf" | "neg_binomial_2_log_glm_lpmf", [y, x, alpha, beta, scale]) => {
                let location = self.regression(span, x, alpha, beta)?;
                let density = if name.starts_with("normal") { "normal_lpdf" } else { "neg_binomial_2_log_lpmf" };
                self.vectorised_density(span, density, &[y.clone(), location, scale.clone()]).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn regression(&mut self, span: Span, x: &Val, alpha: &Val, beta: &Val) -> Result<Val> {
        let product = self.matrix_vector(span, x, beta)?;
        let alpha = if alpha.is_scalar() { alpha.clone() } else { Val { kind: product.kind, ..alpha.clone() } };
        self.add(span, &alpha, &product)
    }

    fn matrix_vector(&mut self, span: Span, x: &Val, beta: &Val) -> Result<Val> {
        let x = if x.kind == Kind::ROW_VECTOR { x.reshaped(Kind::MATRIX, vec![1, x.len()]) } else { x.clone() };
        self.binary(span, crate::stan::syntax::ast::BinaryOp::Multiply, &x, beta)
    }

    /// The elements of a vector that categories choose, counted from 1.
    fn categories(&mut self, span: Span, logs: &Val, y: &Val) -> Result<Val> {
        let n = logs.len();
        match y.ints() {
            Some(ints) => {
                if let Some(bad) = ints.iter().find(|i| **i < 1 || **i > n as i64) {
                    return wrong(span, format!("category {bad} of {n}"));
                }
                let kind = if y.is_scalar() { Kind::REAL } else { Kind::VECTOR };
                Ok(logs.pick(kind, y.shape.clone(), ints.iter().map(|i| *i as usize - 1)))
            }
            None if y.is_scalar() => {
                let index = self.infix(span, "-", y, &Val::int(1))?;
                self.node(span, Op::At, &[logs.clone(), index], Kind::REAL, vec![])
            }
            None => unsupported(span, "categories that depend on parameters"),
        }
    }

    /// Draws: of numbers, one for each element.
    fn draw(&mut self, span: Span, base: &str, args: &[Val]) -> Result<Val> {
        const INTS: &[&str] = &[
            "bernoulli",
            "bernoulli_logit",
            "binomial",
            "poisson",
            "poisson_log",
            "categorical",
            "categorical_logit",
            "neg_binomial",
            "neg_binomial_2",
            "neg_binomial_2_log",
            "beta_binomial",
            "binomial_logit",
            "ordered_logistic",
            "hypergeometric",
            "discrete_range",
        ];
        let int = INTS.contains(&base);
        let kind = if int { Kind::INT } else { Kind::REAL };
        let name = format!("{base}_rng");
        match base {
            "categorical" | "categorical_logit" => {
                let logits = if base == "categorical" { self.elementwise(span, "log", args)? } else { args[0].clone() };
                let drawn =
                    self.node(span, Op::Call("categorical_logit_rng".into(), vec![]), &[logits], Kind::INT, vec![])?;
                return self.add(span, &drawn, &Val::int(1));
            }
            "poisson_log" => {
                let rates = args
                    .iter()
                    .map(|a| self.elementwise(span, "exp", std::slice::from_ref(a)))
                    .collect::<Result<Vec<_>>>()?;
                return self.draw(span, "poisson", &rates);
            }
            "dirichlet" => {
                let a = &args[0];
                return self.node(span, Op::Call(name.as_str().into(), vec![]), args, a.kind, a.shape.clone());
            }
            "multi_normal" | "multi_normal_cholesky" => {
                let shape = args[0].shape.clone();
                return self.node(span, Op::Call(name.as_str().into(), vec![]), args, Kind::VECTOR, shape);
            }
            _ => {}
        }
        let Some(long) = args.iter().find(|a| !a.is_scalar()) else {
            return self.node(span, Op::Call(name.as_str().into(), vec![]), args, kind, vec![]);
        };
        let n = long.len();
        let mut drawn = Vec::with_capacity(n);
        for i in 0..n {
            let one = |v: &Val| {
                let kind = if v.kind.is_int() { Kind::INT } else { Kind::REAL };
                if v.is_scalar() { v.clone() } else { v.pick(kind, vec![], std::iter::once(i)) }
            };
            let args: Vec<Val> = args.iter().map(one).collect();
            drawn.push(self.node(span, Op::Call(name.as_str().into(), vec![]), &args, kind, vec![])?.elem(0));
        }
        let kind = Kind { base: kind.base, arrays: 1 };
        Ok(Val::from_elems(kind, vec![n], drawn))
    }
}
