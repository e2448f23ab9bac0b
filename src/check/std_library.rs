//! The library that ships in the binary, and the loader that reads files.

use std::path::PathBuf;
use std::sync::Arc;

use super::Loader;
use crate::base::path;

/// The modules of the library: path and text.
const MODULES: &[(&str, &str)] = &[
    ("prelude.ab", include_str!("../std/prelude.ab")),
    ("algebra.ab", include_str!("../std/algebra.ab")),
    ("bessel.ab", include_str!("../std/bessel.ab")),
    ("constraints.ab", include_str!("../std/constraints.ab")),
    ("continuous.ab", include_str!("../std/continuous.ab")),
    ("counts.ab", include_str!("../std/counts.ab")),
    ("covariance_constraints.ab", include_str!("../std/covariance_constraints.ab")),
    ("cumulative.ab", include_str!("../std/cumulative.ab")),
    ("cumulative_circular.ab", include_str!("../std/cumulative_circular.ab")),
    ("cumulative_counts.ab", include_str!("../std/cumulative_counts.ab")),
    ("cumulative_incomplete.ab", include_str!("../std/cumulative_incomplete.ab")),
    ("cumulative_positive.ab", include_str!("../std/cumulative_positive.ab")),
    ("decompositions.ab", include_str!("../std/decompositions.ab")),
    ("derivatives.ab", include_str!("../std/derivatives.ab")),
    ("distributions.ab", include_str!("../std/distributions.ab")),
    ("draws.ab", include_str!("../std/draws.ab")),
    ("draws_of_counts.ab", include_str!("../std/draws_of_counts.ab")),
    ("draws_of_vectors.ab", include_str!("../std/draws_of_vectors.ab")),
    ("elementary.ab", include_str!("../std/elementary.ab")),
    ("gaussian_processes.ab", include_str!("../std/gaussian_processes.ab")),
    ("hidden_markov.ab", include_str!("../std/hidden_markov.ab")),
    ("hypergeometric.ab", include_str!("../std/hypergeometric.ab")),
    ("incomplete_beta.ab", include_str!("../std/incomplete_beta.ab")),
    ("incomplete_beta_tail.ab", include_str!("../std/incomplete_beta_tail.ab")),
    ("incomplete_gamma.ab", include_str!("../std/incomplete_gamma.ab")),
    ("laplace.ab", include_str!("../std/laplace.ab")),
    ("linear.ab", include_str!("../std/linear.ab")),
    ("matrices.ab", include_str!("../std/matrices.ab")),
    ("matrix_functions.ab", include_str!("../std/matrix_functions.ab")),
    ("multivariate.ab", include_str!("../std/multivariate.ab")),
    ("ode.ab", include_str!("../std/ode.ab")),
    ("quadrature.ab", include_str!("../std/quadrature.ab")),
    ("random.ab", include_str!("../std/random.ab")),
    ("regressions.ab", include_str!("../std/regressions.ab")),
    ("rosenbrock.ab", include_str!("../std/rosenbrock.ab")),
    ("runge_kutta.ab", include_str!("../std/runge_kutta.ab")),
    ("sensitivities.ab", include_str!("../std/sensitivities.ab")),
    ("series.ab", include_str!("../std/series.ab")),
    ("special.ab", include_str!("../std/special.ab")),
    ("supports.ab", include_str!("../std/supports.ab")),
    ("valid.ab", include_str!("../std/valid.ab")),
    ("vectors.ab", include_str!("../std/vectors.ab")),
    ("wiener.ab", include_str!("../std/wiener.ab")),
    // The samplers, which stand in `nuts/` so that they can be read beside their algorithms.
    ("adapt.ab", include_str!("../../nuts/adapt.ab")),
    ("chain.ab", include_str!("../../nuts/chain.ab")),
    ("fixed_param.ab", include_str!("../../nuts/fixed_param.ab")),
    ("hamiltonian.ab", include_str!("../../nuts/hamiltonian.ab")),
    ("hmc.ab", include_str!("../../nuts/hmc.ab")),
    ("line_search.ab", include_str!("../../nuts/line_search.ab")),
    ("newton.ab", include_str!("../../nuts/newton.ab")),
    ("nuts.ab", include_str!("../../nuts/nuts.ab")),
    ("pathfinder.ab", include_str!("../../nuts/pathfinder.ab")),
    ("protocol.ab", include_str!("../../nuts/protocol.ab")),
    ("quasi_newton.ab", include_str!("../../nuts/quasi_newton.ab")),
    ("slice_nuts.ab", include_str!("../../nuts/slice_nuts.ab")),
    ("static_hmc.ab", include_str!("../../nuts/static_hmc.ab")),
];

/// The modules that ship in the binary, written in the language itself. Their names start with `std/`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdLibrary;

impl StdLibrary {
    /// The text of a module, such as `prelude.ab`.
    pub fn text(path: &str) -> Option<&'static str> {
        let path = path.strip_prefix("std/").unwrap_or(path);
        MODULES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
    }

    /// Paths of all modules.
    pub fn paths() -> impl Iterator<Item = &'static str> {
        MODULES.iter().map(|(path, _)| *path)
    }
}

impl Loader for StdLibrary {
    fn load(&mut self, _from: Option<&str>, path: &str) -> Result<(String, Arc<str>), String> {
        let text = Self::text(path).ok_or("the library has no module of this name")?;
        let path = path.strip_prefix("std/").unwrap_or(path);
        Ok((format!("std/{path}"), Arc::from(text)))
    }
}

/// Reads modules from files, relative to the file that uses them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLoader;

impl FileLoader {
    /// The file that a path means in the file of this name: also its name.
    pub fn file(from: Option<&str>, path: &str) -> PathBuf {
        path::beside(from.unwrap_or_default(), path)
    }
}

impl Loader for FileLoader {
    fn load(&mut self, from: Option<&str>, path: &str) -> Result<(String, Arc<str>), String> {
        let file = Self::file(from, path);
        let text = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let text = String::from_utf8(text).map_err(|_| format!("{}: the file is not UTF-8", file.display()))?;
        Ok((file.display().to_string(), Arc::from(text)))
    }
}
