//! Functions of old programs become what replaced them, each with a warning.
//!
//! - `multiply_log` and its like have other names now, `if_else(c, a, b)` is `c ? a : b`;
//! - the densities, `normal_log(y, mu, sigma)`, end in `_lpdf` or `_lpmf` and have a bar, `normal_cdf_log` is
//!   `normal_lcdf`;
//! - a function of the program that is used as a distribution, `y ~ f(x)`, and is written `f_log`, too;
//! - `integrate_ode` and its like are still there and stay.
//!
//! A function that the program defines by such a name is its own.

use indexmap::{IndexMap, IndexSet};

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::*;
use crate::stan::syntax::report_once;
use crate::stan::syntax::walk::{self, Walk};

/// Old names of functions, and the new ones.
const RENAMED: &[(&str, &str)] = &[
    ("multiply_log", "lmultiply"),
    ("binomial_coefficient_log", "lchoose"),
    ("cov_exp_quad", "gp_exp_quad_cov"),
    ("fabs", "abs"),
    ("integrate_ode", "integrate_ode_rk45"),
];

/// Functions that Stan still has and wants to be rid of, with what to use.
const DEPRECATED: &[(&str, &str)] = &[
    ("integrate_ode_rk45", "ode_rk45"),
    ("integrate_ode_bdf", "ode_bdf"),
    ("integrate_ode_adams", "ode_adams"),
    ("algebra_solver", "solve_powell"),
    ("algebra_solver_newton", "solve_newton"),
];

/// Distributions of real values that had a function `…_log`.
const CONTINUOUS: &[&str] = &[
    "beta",
    "beta_proportion",
    "cauchy",
    "chi_square",
    "dirichlet",
    "double_exponential",
    "exp_mod_normal",
    "exponential",
    "frechet",
    "gamma",
    "gaussian_dlm_obs",
    "gumbel",
    "inv_chi_square",
    "inv_gamma",
    "inv_wishart",
    "lkj_corr",
    "lkj_corr_cholesky",
    "lkj_cov",
    "logistic",
    "lognormal",
    "multi_gp",
    "multi_gp_cholesky",
    "multi_normal",
    "multi_normal_cholesky",
    "multi_normal_prec",
    "multi_student_t",
    "normal",
    "pareto",
    "pareto_type_2",
    "rayleigh",
    "scaled_inv_chi_square",
    "skew_normal",
    "student_t",
    "uniform",
    "von_mises",
    "weibull",
    "wiener",
    "wishart",
];

/// Distributions of whole numbers that had a function `…_log`.
const DISCRETE: &[&str] = &[
    "bernoulli",
    "bernoulli_logit",
    "beta_binomial",
    "binomial",
    "binomial_logit",
    "categorical",
    "categorical_logit",
    "hypergeometric",
    "multinomial",
    "neg_binomial",
    "neg_binomial_2",
    "neg_binomial_2_log",
    "ordered_logistic",
    "ordered_probit",
    "poisson",
    "poisson_log",
];

/// Rewrites the calls of a program.
pub(crate) fn rewrite(program: &mut Program, diagnostics: &mut Vec<Diagnostic>) {
    let defined: IndexSet<String> =
        program.functions.iter().flat_map(|f| &f.items).map(|f| f.name.text.to_string()).collect();
    let mut sampled = Distributions { names: IndexSet::new() };
    walk::program(&mut sampled, program);
    let mut renamed = IndexMap::new();
    for function in program.functions.iter_mut().flat_map(|f| &mut f.items) {
        let Some(base) = function.name.text.strip_suffix("_log").map(str::to_owned) else { continue };
        let has_new = ["_lpdf", "_lpmf"].iter().any(|suffix| defined.contains(&format!("{base}{suffix}")));
        let Some(first) = function.params.first() else { continue };
        if has_new || !sampled.names.contains(&base) {
            continue;
        }
        let new = if is_whole(&first.ty) { format!("{base}_lpmf") } else { format!("{base}_lpdf") };
        warn_density(diagnostics, function.name.span, &function.name.text, &new);
        renamed.insert(function.name.text.to_string(), new.clone());
        function.name.text = new.into();
    }
    walk::program(&mut Rewriter { defined, renamed, diagnostics }, program);
}

fn is_whole(ty: &UnsizedType) -> bool {
    match ty {
        UnsizedType::Int => true,
        UnsizedType::Array(element) => is_whole(element),
        _ => false,
    }
}

fn warn_density(diagnostics: &mut Vec<Diagnostic>, at: Span, old: &str, new: &str) {
    let message = format!("`{old}` is written `{new}`");
    let label = "Stan has had no densities that end in `_log` since 2.33";
    let diagnostic = Diagnostic::warning("W2006", message, at, label);
    let help =
        "a bar follows the first argument: `normal_lpdf(y | mu, sigma)`; `autobatch fmt --canonicalize` rewrites it";
    report_once(diagnostics, diagnostic.with_help(help));
}

/// The distributions of statements `y ~ f(x)`.
struct Distributions {
    names: IndexSet<String>,
}

impl Walk for Distributions {
    fn stmt(&mut self, stmt: &mut Stmt) {
        if let StmtKind::Tilde { distribution, .. } = &stmt.kind {
            self.names.insert(distribution.text.to_string());
        }
        walk::stmt_parts(self, stmt);
    }
    fn expr(&mut self, _expr: &mut Expr) {}
}

struct Rewriter<'a> {
    /// The functions of the program, by the names that they had.
    defined: IndexSet<String>,
    /// Those that have new names.
    renamed: IndexMap<String, String>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Walk for Rewriter<'_> {
    fn expr(&mut self, expr: &mut Expr) {
        walk::expr_parts(self, expr);
        let ExprKind::Call { name, args, bar } = &mut expr.kind else { return };
        if &*name.text == "if_else" && args.len() == 3 && !self.defined.contains("if_else") {
            let label = "Stan has had no such function since 2.33";
            let message = "`if_else(c, a, b)` is written `c ? a : b`";
            let diagnostic = Diagnostic::warning("W2007", message, name.span, label);
            self.report(diagnostic.with_help("`autobatch fmt --canonicalize` rewrites it"));
            let mut parts = std::mem::take(args).into_iter().map(Box::new);
            let mut next = || parts.next().expect("there are three");
            let kind = ExprKind::Conditional(next(), next(), next());
            expr.kind = ExprKind::Paren(Box::new(Expr { kind, span: expr.span }));
            return;
        }
        self.call(name, args.len(), bar);
    }
}

impl Rewriter<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        report_once(self.diagnostics, diagnostic);
    }

    fn call(&mut self, name: &mut Name, args: usize, bar: &mut bool) {
        let old = name.text.to_string();
        if let Some(new) = self.renamed.get(&old).cloned() {
            warn_density(self.diagnostics, name.span, &old, &new);
            name.text = new.into();
            *bar = args > 0;
            return;
        }
        if self.defined.contains(&old) {
            return;
        }
        if let Some((_, new)) = RENAMED.iter().find(|r| r.0 == old) {
            let message = format!("`{old}` is written `{new}`");
            let label = "the old name";
            let diagnostic = Diagnostic::warning("W2007", message, name.span, label);
            self.report(diagnostic.with_help("`autobatch fmt --canonicalize` rewrites it"));
            name.text = (*new).into();
        } else if let Some((_, new)) = DEPRECATED.iter().find(|d| d.0 == old) {
            let message = format!("`{old}` is deprecated");
            let label = format!("`{new}` replaces it, with other arguments");
            self.report(Diagnostic::warning("W2008", message, name.span, label));
        } else if let Some(new) = density(&old) {
            warn_density(self.diagnostics, name.span, &old, &new);
            *bar = args > 0;
            name.text = new.into();
        }
    }
}

/// The name of today for the function of an old density or distribution function.
fn density(old: &str) -> Option<String> {
    let base = old.strip_suffix("_log")?;
    for (suffix, new) in [("_cdf", "_lcdf"), ("_ccdf", "_lccdf")] {
        if let Some(base) = base.strip_suffix(suffix)
            && (CONTINUOUS.contains(&base) || DISCRETE.contains(&base))
        {
            return Some(format!("{base}{new}"));
        }
    }
    if CONTINUOUS.contains(&base) {
        Some(format!("{base}_lpdf"))
    } else if DISCRETE.contains(&base) {
        Some(format!("{base}_lpmf"))
    } else {
        None
    }
}
