//! Sizes that functions of the library demand of one another's arguments.

use std::sync::LazyLock;

use super::{Result, Tracer, wrong};
use crate::base::{HashMap, Span};
use crate::stan::value::Val;

/// For each argument the extents of its axes: a letter is the same extent wherever it stands, `.` is a number or anything
/// else, and `*` stands for axes that may be there and have any extent.
const SIZES: &[(&[&str], &str)] = &[
    (&["dirichlet_lpdf", "multinomial_lpmf", "multinomial_logit_lpmf", "dirichlet_multinomial_lpmf"], "n n"),
    (&["multi_normal_lpdf", "multi_normal_cholesky_lpdf", "multi_normal_prec_lpdf"], "n n nn"),
    (&["multi_student_t_lpdf", "multi_student_t_cholesky_lpdf"], "n . n nn"),
    (&["multi_gp_lpdf", "multi_gp_cholesky_lpdf"], "mn nn m"),
    (&["lkj_corr_lpdf", "lkj_corr_cholesky_lpdf"], "nn ."),
    (&["lkj_cov_lpdf"], "nn n n ."),
    (&["wishart_lpdf", "inv_wishart_lpdf", "wishart_cholesky_lpdf", "inv_wishart_cholesky_lpdf"], "nn . nn"),
    (&["gaussian_dlm_obs_lpdf"], "rt nr nn rr nn n nn"),
    (&["multi_normal_rng", "multi_normal_cholesky_rng", "multi_normal_prec_rng"], "n nn"),
    (&["multi_student_t_rng", "multi_student_t_cholesky_rng"], ". n nn"),
    (&["wishart_rng", "inv_wishart_rng", "wishart_cholesky_rng", "inv_wishart_cholesky_rng"], ". nn"),
    (&["dot_product", "squared_distance", "distance"], "n n"),
    (&["mdivide_left", "mdivide_left_spd", "mdivide_left_tri_low", "quad_form", "quad_form_sym"], "nn n*"),
    (&["mdivide_right", "mdivide_right_spd", "mdivide_right_tri_low"], "*n nn"),
    (&["trace_quad_form", "matrix_exp_multiply"], "nn n*"),
    (&["trace_gen_quad_form"], "mm nn nm"),
    (&["scale_matrix_exp_multiply"], ". nn n*"),
    (&["inverse", "inverse_spd", "chol2inv", "cholesky_decompose", "determinant", "matrix_exp"], "nn"),
    (&["log_determinant", "log_determinant_spd", "eigenvalues_sym", "eigenvectors_sym", "eigendecompose_sym"], "nn"),
    (&["matrix_power"], "nn ."),
];

fn demanded(name: &str) -> Option<&'static str> {
    static ROWS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        SIZES.iter().flat_map(|(names, pattern)| names.iter().map(move |name| (*name, *pattern))).collect()
    });
    ROWS.get(name).copied()
}

/// Whether the extents of the arguments are those of a pattern; also where it is of other arguments.
fn fits(pattern: &str, args: &[Val]) -> bool {
    let mut found: [Option<usize>; 26] = [None; 26];
    pattern.split(' ').zip(args).all(|(wanted, arg)| {
        let own = wanted.trim_matches('*');
        let n = own.len();
        let axes = match arg.shape.len() {
            len if own == "." || len < n => return true,
            len if wanted.starts_with('*') => &arg.shape[len - n..],
            len if wanted.ends_with('*') || len == n => &arg.shape[..n],
            _ => return true,
        };
        own.bytes()
            .zip(axes)
            .all(|(letter, extent)| *found[usize::from(letter - b'a')].get_or_insert(*extent) == *extent)
    })
}

/// A type with its sizes, as Stan writes it.
pub(super) fn sized(value: &Val) -> String {
    let list = |extents: &[usize]| extents.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let (arrays, own) = value.shape.split_at(value.kind.arrays.min(value.shape.len()));
    let base = crate::stan::value::Kind::of(value.kind.base).shown();
    let own = if own.is_empty() { base } else { format!("{base}[{}]", list(own)) };
    if arrays.is_empty() { own } else { format!("array[{}] {own}", list(arrays)) }
}

impl Tracer<'_> {
    /// Refuses arguments of a function whose sizes do not go together.
    pub(super) fn check_sizes(&self, span: Span, name: &str, args: &[Val]) -> Result<()> {
        if args.iter().all(Val::is_scalar) {
            return Ok(());
        }
        let Some(pattern) = demanded(name).filter(|pattern| !fits(pattern, args)) else { return Ok(()) };
        if !pattern.contains(' ') {
            return wrong(span, format!("{name}: {} is not square", sized(&args[0])));
        }
        let given: Vec<String> = args.iter().map(sized).collect();
        let wanted = pattern.split(' ').filter(|axes| *axes != ".").map(|axes| {
            let letters: Vec<String> = axes.trim_matches('*').chars().map(String::from).collect();
            letters.join(" × ")
        });
        let wanted: Vec<String> = wanted.collect();
        wrong(
            span,
            format!("{name}: the sizes of {} do not go together: it takes {}", given.join(", "), wanted.join(", ")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stan::value::Kind;
    use crate::types::Array;

    fn of(kind: Kind, shape: &[usize]) -> Val {
        Val::known(kind, Array::real(shape.iter().copied(), vec![0.0; shape.iter().product()]))
    }

    #[test]
    fn extents_of_one_letter_are_the_same() {
        let (v3, v2) = (of(Kind::VECTOR, &[3]), of(Kind::VECTOR, &[2]));
        let (m33, m23) = (of(Kind::MATRIX, &[3, 3]), of(Kind::MATRIX, &[2, 3]));
        assert!(fits("n n nn", &[v3.clone(), v3.clone(), m33.clone()]));
        assert!(!fits("n n nn", &[v3.clone(), v2.clone(), m33.clone()]));
        assert!(!fits("n n nn", &[v2.clone(), v2.clone(), m23.clone()]));
        assert!(fits("nn n*", &[m33.clone(), v3.clone()]) && fits("nn n*", &[m33.clone(), m33.clone()]));
        assert!(!fits("nn n*", &[m33.clone(), m23.clone()]));
        assert!(fits("*n nn", &[m23.clone(), m33.clone()]) && !fits("*n nn", &[v2.clone(), m33]));
        assert!(fits("nn .", &[Val::real(1.0), v2]));
        assert_eq!(
            (sized(&v3), sized(&m23), sized(&Val::int(1))),
            ("vector[3]".into(), "matrix[2, 3]".into(), "int".into())
        );
    }
}
