//! Functions of matrices of Stan's library, by those of ours.

use super::demands::{demands, forms, of_kernel};
use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::value::{Elem, Kind, Val};

impl Tracer<'_> {
    /// A function of matrices; `None` for any other.
    pub(super) fn of_matrices(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let matrix = |t: &mut Self, shape: Vec<usize>| t.call_ab(span, name, args, Kind::MATRIX, shape).map(Some);
        let square = |v: &Val| v.shape.clone();
        let demands_some = !forms(name).is_empty() || !demands(name).is_empty();
        if demands_some && !name.ends_with("_rng") && !name.contains("_lp") {
            self.check_support(span, name, args)?;
        }
        if name.starts_with("hmm_") {
            self.check_hidden_markov(span, name, args)?;
        }
        match (name, args) {
            // The part above the diagonal has no part in it.
            ("multiply_lower_tri_self_transpose", [a]) if a.shape[0] != a.shape[1] => {
                let cols = a.shape[1];
                let lower = |(at, elem)| if at % cols > at / cols { Elem::Real(0.0) } else { elem };
                let elems = a.promoted().elems().into_iter().enumerate().map(lower).collect();
                let lower = Val::from_elems(Kind::MATRIX, a.shape.clone(), elems);
                self.library(span, "tcrossprod", &[lower]).map(Some)
            }
            (
                "cholesky_decompose"
                | "inverse"
                | "inverse_spd"
                | "chol2inv"
                | "matrix_exp"
                | "multiply_lower_tri_self_transpose",
                [a],
            ) => matrix(self, square(a)),
            ("tcrossprod", [a]) => matrix(self, vec![a.shape[0], a.shape[0]]),
            ("crossprod", [a]) => matrix(self, vec![a.shape[1], a.shape[1]]),
            ("generalized_inverse", [a]) => matrix(self, vec![a.shape[1], a.shape[0]]),
            ("matrix_power", [a, _]) => matrix(self, square(a)),
            ("matrix_exp_multiply", [_, b]) => matrix(self, square(b)),
            ("scale_matrix_exp_multiply", [_, _, b]) => matrix(self, square(b)),
            ("qr_Q", [a]) => matrix(self, vec![a.shape[0], a.shape[0]]),
            ("qr_R", [a]) => matrix(self, square(a)),
            ("qr_thin_Q" | "qr_thin_R", [a]) if a.shape[0] >= a.shape[1] => {
                let n = a.shape[1];
                let parts = [(Kind::MATRIX, square(a)), (Kind::MATRIX, vec![n, n])];
                self.part_of(span, "qr_thin_rows", a, &parts, usize::from(name == "qr_thin_R")).map(Some)
            }
            // Of a matrix with more columns than rows nothing is left out.
            ("qr_thin_Q", [a]) => self.library(span, "qr_Q", std::slice::from_ref(a)).map(Some),
            ("qr_thin_R", [a]) => self.library(span, "qr_R", std::slice::from_ref(a)).map(Some),
            ("svd_U" | "svd_V" | "singular_values", [a]) => self.singular(span, name, a).map(Some),
            ("eigenvectors_sym" | "eigenvalues_sym", [a]) => {
                let parts = [(Kind::MATRIX, square(a)), (Kind::VECTOR, vec![a.shape[0]])];
                self.part_of(span, "eigendecompose_sym_rows", a, &parts, usize::from(name == "eigenvalues_sym"))
                    .map(Some)
            }
            ("trace", [a]) if a.shape[0] != a.shape[1] => {
                let diagonal = self.library(span, "diagonal", args)?;
                self.library(span, "sum", &[diagonal]).map(Some)
            }
            ("determinant" | "log_determinant" | "log_determinant_spd" | "trace", [_])
            | ("trace_quad_form", [_, Val { kind: Kind::MATRIX, .. }])
            | ("trace_gen_quad_form", [_, _, _]) => self.call_ab(span, name, args, Kind::REAL, vec![]).map(Some),
            ("mdivide_left" | "mdivide_left_spd" | "mdivide_left_tri_low", [_, b])
            | ("mdivide_right" | "mdivide_right_spd" | "mdivide_right_tri_low", [b, _]) => {
                let name = if b.kind == Kind::MATRIX { format!("{name}_matrix") } else { name.to_owned() };
                self.call_ab(span, &name, args, b.kind, b.shape.clone()).map(Some)
            }
            ("quad_form" | "quad_form_sym", [_, b]) => {
                if b.kind == Kind::VECTOR {
                    return self.call_ab(span, name, args, Kind::REAL, vec![]).map(Some);
                }
                let shape = vec![b.shape[1], b.shape[1]];
                self.call_ab(span, &format!("{name}_matrix"), args, Kind::MATRIX, shape).map(Some)
            }
            ("quad_form_diag", [m, v]) => {
                let left = self.scaled_rows(span, m, v)?;
                self.scaled_columns(span, &left, v).map(Some)
            }
            ("diag_pre_multiply", [v, m]) => self.scaled_rows(span, m, v).map(Some),
            ("diag_post_multiply", [m, v]) => self.scaled_columns(span, m, v).map(Some),
            ("columns_dot_self" | "columns_dot_product" | "rows_dot_self" | "rows_dot_product", [a, more @ ..]) => {
                self.dots(span, name, a, more.first().unwrap_or(a)).map(Some)
            }
            ("trace_dot", [a, b]) => {
                let b = self.transpose(span, b)?;
                let products = self.infix(span, "*", a, &b)?;
                self.library(span, "sum", &[products]).map(Some)
            }
            ("trace_quad_form", [_, b]) if b.kind == Kind::VECTOR => {
                self.call_ab(span, "quad_form", args, Kind::REAL, vec![]).map(Some)
            }
            ("add_diag", [m, v]) => self.with_diagonal(span, m, v).map(Some),
            ("hmm_marginal", [_, _, _]) => self.call_ab(span, name, args, Kind::REAL, vec![]).map(Some),
            ("hmm_hidden_state_prob", [omegas, _, _]) => matrix(self, square(omegas)),
            _ => self.covariance(span, name, args),
        }
    }

    /// Dot products of the columns or the rows of two matrices, or of vectors, which are matrices of one column or row.
    fn dots(&mut self, span: Span, name: &str, a: &Val, b: &Val) -> Result<Val> {
        if a.shape != b.shape {
            return wrong(span, format!("{name}: sizes differ: {:?} and {:?}", a.shape, b.shape));
        }
        let of_columns = name.starts_with("columns");
        let kind = if of_columns { Kind::ROW_VECTOR } else { Kind::VECTOR };
        if a.kind == Kind::MATRIX {
            let product = if of_columns { "columns_dot_product" } else { "rows_dot_product" };
            let shape = vec![a.shape[usize::from(of_columns)]];
            return self.call_ab(span, product, &[a.clone(), b.clone()], kind, shape);
        }
        if of_columns == (a.kind == Kind::VECTOR) {
            let dot = self.library(span, "dot_product", &[a.clone(), b.clone()])?;
            return Ok(dot.reshaped(kind, vec![1]));
        }
        let products = self.infix(span, "*", a, b)?;
        Ok(Val { kind, ..products })
    }

    /// Of a matrix with more columns than rows those of its transpose.
    fn singular(&mut self, span: Span, name: &str, a: &Val) -> Result<Val> {
        let (rows, cols) = (a.shape[0], a.shape[1]);
        let least = rows.min(cols);
        let (name, a) = match (name, rows >= cols) {
            (name, true) => (name, a.clone()),
            ("svd_U", false) => ("svd_V", self.transpose(span, a)?),
            ("svd_V", false) => ("svd_U", self.transpose(span, a)?),
            (name, false) => (name, self.transpose(span, a)?),
        };
        let vectors = |rows: usize| (Kind::MATRIX, vec![rows, least]);
        let parts = [vectors(a.shape[0]), (Kind::VECTOR, vec![least]), vectors(a.shape[1])];
        let part = match name {
            "svd_U" => 0,
            "singular_values" => 1,
            _ => 2,
        };
        self.part_of(span, "svd_rows", &a, &parts, part)
    }

    /// One of the parts of a decomposition, which is made once for all of them: `name` gives their rows, one below the
    /// other.
    fn part_of(&mut self, span: Span, name: &str, a: &Val, parts: &[(Kind, Vec<usize>)], part: usize) -> Result<Val> {
        let lengths: Vec<usize> = parts.iter().map(|(_, shape)| shape.iter().product()).collect();
        let (columns, all): (usize, usize) = (a.shape[1], lengths.iter().sum());
        let rows = all.checked_div(columns).unwrap_or(0);
        let whole = self.call_ab(span, name, std::slice::from_ref(a), Kind::MATRIX, vec![rows, columns])?;
        let (first, (kind, shape)) = (lengths[..part].iter().sum::<usize>(), parts[part].clone());
        Ok(whole.pick(kind, shape, first..first + lengths[part]))
    }

    fn with_diagonal(&mut self, span: Span, m: &Val, v: &Val) -> Result<Val> {
        let n = m.shape[0].min(m.shape[1]);
        let cols = m.shape[1];
        if !v.is_scalar() && v.len() != n {
            return wrong(span, format!("add_diag: {} numbers for a diagonal of {n}", v.len()));
        }
        let mut elems = m.elems();
        for i in 0..n {
            let at = Val::from_elems(Kind::REAL, vec![], vec![elems[i * (cols + 1)]]);
            let more = if v.is_scalar() { v.clone() } else { v.pick(Kind::REAL, vec![], std::iter::once(i)) };
            elems[i * (cols + 1)] = self.add(span, &at, &more)?.elem(0);
        }
        Ok(Val::from_elems(Kind::MATRIX, m.shape.clone(), elems))
    }

    fn scaled_rows(&mut self, span: Span, m: &Val, v: &Val) -> Result<Val> {
        let (rows, cols) = (m.shape[0], m.shape[1]);
        if v.len() != rows {
            return wrong(span, format!("{} factors for {rows} rows", v.len()));
        }
        let places = (0..rows).flat_map(|i| std::iter::repeat_n(i, cols));
        let factors = v.promoted().pick(Kind::MATRIX, vec![rows, cols], places);
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

    /// Covariances of Gaussian processes, of one set of points or two.
    fn covariance(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Option<Val>> {
        let name = if name == "cov_exp_quad" { "gp_exp_quad_cov" } else { name };
        let (Some(stem), true) = (name.strip_suffix("_cov"), name.starts_with("gp_")) else { return Ok(None) };
        // Points, then as many numbers as the kernel has.
        let numbers = match stem {
            "gp_dot_prod" => 1,
            "gp_periodic" => 3,
            _ => 2,
        };
        let sets = args.len().saturating_sub(numbers);
        if !(1..=2).contains(&sets) {
            return Ok(None);
        }
        let (points, numbers) = args.split_at(sets);
        self.check_rows(span, name, &of_kernel(stem, sets, !numbers.last().is_some_and(Val::is_scalar)), args)?;
        if stem == "gp_exp_quad" && points.iter().all(Val::is_known) && numbers[1].is_scalar() {
            let (x, y) = (&points[0], points.last().expect("there is one"));
            return self.exp_quad(span, x, y, &numbers[0], &numbers[1]).map(Some);
        }
        let mut numbers = numbers.to_vec();
        let mut rows = Vec::with_capacity(sets);
        for set in points {
            let n = set.shape[0];
            let d = if set.shape.len() > 1 { set.shape[1] } else { 1 };
            let mut set = set.promoted().reshaped(Kind::MATRIX, vec![n, d]);
            if let Some(scales) = numbers.get(1).filter(|s| !s.is_scalar()).cloned() {
                // A scale for each coordinate: the points are divided by them.
                let inverse = self.infix(span, "/", &Val::real(1.0), &Val { kind: Kind::VECTOR, ..scales })?;
                set = self.scaled_columns(span, &set, &inverse)?;
            }
            rows.push(set);
        }
        if numbers.get(1).is_some_and(|s| !s.is_scalar()) {
            numbers[1] = Val::real(1.0);
        }
        let shape = vec![rows[0].shape[0], rows[sets - 1].shape[0]];
        let name = if sets == 2 { format!("{stem}_cross_cov") } else { name.to_owned() };
        let all: Vec<Val> = rows.into_iter().chain(numbers.iter().map(Val::promoted)).collect();
        self.call_ab(span, &name, &all, Kind::MATRIX, shape).map(Some)
    }

    /// sigma² exp(−|x − y|² / (2 length²)) of known points: they have known distances.
    fn exp_quad(&mut self, span: Span, x: &Val, y: &Val, sigma: &Val, length: &Val) -> Result<Val> {
        let (n, m) = (x.shape[0], y.shape[0]);
        let (Some(p), Some(q)) = (x.reals(), y.reals()) else { return unsupported(span, "these points") };
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
}
