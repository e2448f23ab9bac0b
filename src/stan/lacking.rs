//! Functions of Stan's library that programs may name and that are not there yet: `check` warns of them, a run that comes
//! to one is refused.

use super::syntax::ast::UnsizedType;

/// Functions that no arguments reach.
const NAMES: &[&str] = &[
    "complex_schur_decompose",
    "complex_schur_decompose_t",
    "complex_schur_decompose_u",
    "dae",
    "dae_tol",
    "eigendecompose",
    "eigenvalues",
    "eigenvectors",
    "laplace_latent_solve",
    "laplace_latent_solve_tol",
];

/// Functions that are there of real matrices only.
const OF_REAL_MATRICES: &[&str] =
    &["eigendecompose_sym", "eigenvalues_sym", "eigenvectors_sym", "svd", "svd_U", "svd_V", "singular_values"];

/// Whether a function of the library with parameters of these types is not there yet; those that take functions have none.
pub(super) fn lacks(name: &str, params: &[UnsizedType]) -> bool {
    NAMES.contains(&name) || (OF_REAL_MATRICES.contains(&name) && params == [UnsizedType::ComplexMatrix])
}
