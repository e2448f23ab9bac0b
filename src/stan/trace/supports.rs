//! What densities demand of their arguments, and what Stan says where known ones do not have it. What lanes compute is
//! looked at by the library of the language: a density is NaN there, which rejects the point.

use super::{Result, Tracer};
use crate::base::{HashMap, Span};
use crate::stan::graph::{Arg, Graph, Op};
use crate::stan::syntax::ast::Constraint;
use crate::stan::value::{Elem, NodeId, Val};
use crate::types::ArrayData;

/// What an argument must be.
#[derive(Clone, Copy)]
enum Demand {
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
    /// From 1 to one more than there are cut-points.
    Category(usize),
}

use Demand::{
    Above, AtLeast, AtLeastThat, Between, Category, Finite, GreaterThan, Less, Nonnegative, NotNan, Positive,
    PositiveFinite, UpTo,
};

/// An argument, Stan's name of it, and what it must be, in the order in which Stan looks.
type Row = (usize, &'static str, Demand);

/// The demands of a density on numbers, as in the headers of Stan 2.39 (`stan/math/prim/prob`).
fn demands(name: &str) -> &'static [Row] {
    match name {
        "bernoulli_logit_glm_lpmf" => &[(0, "Vector of dependent variables", Between(0.0, 1.0))],
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
        "binomial_logit_glm_lpmf" => {
            &[(0, "Successes variable", UpTo(1)), (1, "Population size parameter", Nonnegative)]
        }
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
        "lkj_corr_lpdf" | "lkj_corr_cholesky_lpdf" => &[(1, "Shape parameter", Positive)],
        "multi_student_t_lpdf" | "multi_student_t_cholesky_lpdf" => {
            &[(1, "Degrees of freedom parameter", Positive), (1, "Degrees of freedom parameter", Finite)]
        }
        "multinomial_lpmf" | "multinomial_logit_lpmf" | "dirichlet_multinomial_lpmf" => {
            &[(0, "Number of trials variable", Nonnegative)]
        }
        "neg_binomial_2_log_glm_lpmf" => {
            &[(0, "Failures variables", Nonnegative), (4, "Precision parameter", PositiveFinite)]
        }
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
        "normal_id_glm_lpdf" => &[(4, "Scale vector", PositiveFinite), (0, "Vector of dependent variables", Finite)],
        "ordered_logistic_lpmf" | "ordered_probit_lpmf" => &[(0, "Random variable", Category(2))],
        "ordered_logistic_glm_lpmf" => &[(0, "Vector of dependent variables", Category(3))],
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
        "poisson_log_glm_lpmf" => &[(0, "Vector of dependent variables", Nonnegative)],
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
        "yule_simon_lpmf" => &[(0, "Outcome variable", AtLeast(1.0)), (1, "Shape parameter", PositiveFinite)],
        _ => &[],
    }
}

/// Functions that give symmetric matrices, besides covariances of Gaussian processes.
const SYMMETRIC: &[&str] = &[
    "corr_matrix_constrain",
    "cov_matrix_constrain",
    "crossprod",
    "inverse_spd",
    "multiply_lower_tri_self_transpose",
    "quad_form_sym_matrix",
    "tcrossprod",
];

/// Functions that do the same with every element.
const ELEMENTWISE: &[&str] = &["abs", "cos", "exp", "inv", "log", "log1p", "sin", "sqrt", "square", "tanh"];

/// How many operations within one another are looked through.
const DEEPEST: usize = 100;

/// Which matrices with n rows are surely symmetric, by what they are made of.
struct Symmetry<'g> {
    graph: &'g Graph,
    n: usize,
    /// Each node is looked at once.
    known: HashMap<NodeId, bool>,
    depth: usize,
}

impl Symmetry<'_> {
    fn new(graph: &Graph, n: usize) -> Symmetry<'_> {
        Symmetry { graph, n, known: HashMap::default(), depth: 0 }
    }

    fn of(&mut self, m: &Arg) -> bool {
        let n = self.n;
        let mut pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i * n + j, j * n + i)));
        match m {
            Arg::Scalar(_) => true,
            Arg::Known(array) => match &array.data {
                ArrayData::Real(x) => x.len() == n * n && pairs.all(|(a, b)| x[a] == x[b]),
                _ => false,
            },
            Arg::Elements(elems, _) => {
                elems.len() == n * n && pairs.all(|(a, b)| self.pair(elems[a], elems[b], (a, b)))
            }
            Arg::Prefix(..) => false,
            Arg::Whole(node) => self.node(*node),
        }
    }

    /// Whether the elements at mirrored places are the same: one node's, or mirrored ones of a symmetric matrix.
    fn pair(&mut self, a: Elem, b: Elem, places: (usize, usize)) -> bool {
        match (a, b) {
            (Elem::Of(node, at), Elem::Of(other, mirrored)) if node == other && at != mirrored => {
                (at as usize, mirrored as usize) == places && self.node(node)
            }
            (a, b) => a == b,
        }
    }

    fn node(&mut self, id: NodeId) -> bool {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let node = &self.graph.nodes[id];
        let is = node.shape == [self.n, self.n]
            && match &node.op {
                Op::Infix(sign) => *sign != "@" && self.all(&node.args),
                Op::Negate => self.all(&node.args),
                Op::Call(name, _) if ELEMENTWISE.contains(&&**name) => self.all(&node.args),
                Op::Call(name, _) => {
                    let of_process = name.starts_with("gp_") && name.ends_with("_cov") && !name.ends_with("_cross_cov");
                    of_process || SYMMETRIC.contains(&&**name)
                }
                _ => false,
            };
        self.known.insert(id, is);
        is
    }

    fn all(&mut self, args: &[Arg]) -> bool {
        if self.depth == DEEPEST {
            return false;
        }
        self.depth += 1;
        let all = args.iter().all(|arg| self.of(arg));
        self.depth -= 1;
        all
    }
}

/// A number as C++ prints it: six digits.
pub(super) fn shown(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    format!("{x:.5e}").parse::<f64>().unwrap_or(x).to_string()
}

/// What must be said of a number that is not what it must be.
fn refusal(demand: Demand, x: f64, at: usize, args: &[Val]) -> Option<String> {
    let other = |arg: usize| {
        let values = args[arg].reals()?;
        if values.len() == 1 { values.first().copied() } else { values.get(at).copied() }
    };
    let (holds, must) = match demand {
        NotNan => (!x.is_nan(), "not be nan!".to_owned()),
        Finite => (x.is_finite(), "be finite!".to_owned()),
        Positive => (x > 0.0, "be positive!".to_owned()),
        PositiveFinite => (x > 0.0 && x.is_finite(), "be positive finite!".to_owned()),
        Nonnegative => (x >= 0.0, "be nonnegative!".to_owned()),
        Between(a, b) => (a <= x && x <= b, format!("be in the interval [{a}, {b}]")),
        AtLeast(a) => (x >= a, format!("be greater than or equal to {a}")),
        Above(a) => (x > a, format!("be greater than {a}")),
        Less(b) => (x < b, format!("be less than {b}")),
        UpTo(arg) => {
            let b = other(arg)?;
            (0.0 <= x && x <= b, format!("be in the interval [0, {}]", shown(b)))
        }
        AtLeastThat(arg) => {
            let a = other(arg)?;
            (x >= a, format!("be greater than or equal to {}", shown(a)))
        }
        GreaterThan(arg) => {
            let a = other(arg)?;
            (x > a, format!("be greater than {}", shown(a)))
        }
        Category(arg) => {
            let most = args[arg].shape.last()? + 1;
            (1.0 <= x && x <= most as f64, format!("be in the interval [1, {most}]"))
        }
    };
    (!holds).then(|| format!("is {}, but must {must}", shown(x)))
}

impl Tracer<'_> {
    /// Demands of the known arguments of a density what Stan demands: nothing that a chain could do mends them.
    pub(super) fn check_support(&mut self, span: Span, name: &str, args: &[Val]) -> Result<()> {
        self.check_demands(span, name, name, args)
    }

    /// The same for a function that is told by another name than that of its demands.
    pub(super) fn check_demands(&mut self, span: Span, name: &str, row: &str, args: &[Val]) -> Result<()> {
        if !self.in_density || args.iter().any(|arg| arg.len() == 0) {
            return Ok(());
        }
        for (arg, what, demand) in demands(row) {
            let Some(value) = args.get(*arg) else { continue };
            let Some(numbers) = value.reals() else { continue };
            let found = numbers.iter().enumerate().find_map(|(at, x)| Some((at, refusal(*demand, *x, at, args)?)));
            if let Some((at, refusal)) = found {
                let place = if value.is_scalar() { String::new() } else { format!("[{}]", at + 1) };
                let message = format!("{name}: {what}{place} {refusal}");
                return self.check(span, &Val::bool(false), &message);
            }
        }
        Ok(())
    }

    /// Demands of a vector that is an argument of a density what a constraint says. What a transform of that constraint has
    /// made is taken as it is, and the same vector is looked at once.
    pub(super) fn demand(
        &mut self,
        span: Span,
        name: &str,
        what: &str,
        constraint: &Constraint,
        x: &Val,
    ) -> Result<()> {
        let (made_by, word): (&[&str], &'static str) = match constraint {
            Constraint::Simplex => (&["simplex_constrain", "softmax"], "simplex"),
            _ => (&["ordered_constrain", "positive_ordered_constrain"], "ordered"),
        };
        if !self.in_density || self.is_made_by(made_by, x) {
            return Ok(());
        }
        // Under a condition it is demanded of some lanes only.
        if self.guards.is_empty() && !self.demanded.insert((word, Arg::of(x))) {
            return Ok(());
        }
        self.check_lanes(span, &format!("{name}: {what}"), constraint, x)
    }

    /// Whether a vector is all that a call of one of these functions has given.
    fn is_made_by(&self, functions: &[&str], x: &Val) -> bool {
        let of = |node: NodeId| {
            let node = &self.graph.nodes[node];
            let called = matches!(&node.op, Op::Call(name, _) if functions.contains(&&**name));
            called && node.shape == x.shape
        };
        match Arg::of(x) {
            Arg::Whole(node) => of(node),
            Arg::Elements(elems, _) => {
                let Some(Elem::Of(node, 0)) = elems.first() else { return false };
                let in_order = |(at, elem): (usize, &Elem)| *elem == Elem::Of(*node, at as u32);
                of(*node) && elems.iter().enumerate().all(in_order)
            }
            _ => false,
        }
    }

    /// Demands of a matrix that it is symmetric, as a Cholesky factor does.
    pub(super) fn check_symmetric(&mut self, span: Span, name: &str, m: &Val) -> Result<()> {
        let n = m.shape[0];
        if m.shape.get(1) != Some(&n) {
            return super::wrong(span, format!("{name}: a matrix of {:?} is not square", m.shape));
        }
        let pairs = || (0..n).flat_map(|i| (0..i).map(move |j| (i * n + j, j * n + i)));
        if let Some(x) = m.reals() {
            let off = pairs().find(|(a, b)| {
                // A NaN is equal to nothing.
                let equal = (x[*a] - x[*b]).abs() <= super::declare::TOLERANCE;
                !equal
            });
            let Some((below, above)) = off else { return Ok(()) };
            let (i, j) = (below / n + 1, below % n + 1);
            let (upper, lower) = (shown(x[above]), shown(x[below]));
            let message = format!("{name}: m is not symmetric. m[{j},{i}] = {upper}, but m[{i},{j}] = {lower}");
            return self.check(span, &Val::bool(false), &message);
        }
        if Symmetry::new(&self.graph, n).of(&Arg::of(m)) {
            return Ok(());
        }
        self.demand_symmetric(span, m, &format!("{name}: m must be symmetric"))
    }
}
