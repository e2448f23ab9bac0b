//! What functions demand of their arguments, and what Stan says where these do not have it. Known ones are looked at here.
//! What lanes compute is looked at by the library of the language, whose densities are NaN where a parameter is outside
//! of its domain; where a number would come out, or a draw is wanted, an assertion stands before the call.

use std::sync::Arc;

use super::constants::log_determinant;
use super::constrained::distinct;
use super::declare::{TOLERANCE, above_diagonal};
use super::demands::Demand::{
    self, Above, AboveRows, AtLeast, AtLeastThat, Between, Category, Column, Finite, GreaterThan, Less, LessThatUpTo,
    Nonnegative, NotNan, Positive, PositiveFinite, UpTo, UpToSize,
};
use super::demands::{Form, Row, demands, forms};
use super::made_of::{DEEPEST, Signs, Symmetry, is_of_stochastic_matrix};
use super::{Result, Tracer};
use crate::base::Span;
use crate::stan::graph::{Arg, Op, TurnId};
use crate::stan::syntax::ast::{BinaryOp, Constraint};
use crate::stan::value::{Elem, Kind, NodeId, Val};
use crate::types::Scalar;

/// A number as C++ prints it: six digits.
pub(super) fn shown(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    format!("{x:.5e}").parse::<f64>().unwrap_or(x).to_string()
}

/// What every number must be, in words; `None` where that differs.
fn must_all(demand: Demand, args: &[Val]) -> Option<String> {
    let all_one = |arg: usize| (1..args[arg].len()).all(|at| other(arg, at, args) == other(arg, 0, args));
    match demand {
        UpTo(arg) | AtLeastThat(arg) | GreaterThan(arg) | LessThatUpTo(_, arg) if !all_one(arg) => None,
        _ => must(demand, 0, args),
    }
}

/// What a number at a place must be, in words; `None` where it depends on what is not known.
fn must(demand: Demand, at: usize, args: &[Val]) -> Option<String> {
    let size = |arg: usize| args[arg].shape.last().copied();
    Some(match demand {
        NotNan => "not be nan!".to_owned(),
        Finite => "be finite!".to_owned(),
        Positive => "be positive!".to_owned(),
        PositiveFinite => "be positive finite!".to_owned(),
        Nonnegative => "be nonnegative!".to_owned(),
        Between(a, b) => format!("be in the interval [{}, {}]", shown(a), shown(b)),
        AtLeast(a) => format!("be greater than or equal to {a}"),
        Above(a) => format!("be greater than {a}"),
        Less(b) => format!("be less than {}", shown(b)),
        UpTo(arg) | LessThatUpTo(_, arg) => format!("be in the interval [0, {}]", shown(other(arg, at, args)?)),
        AtLeastThat(arg) => format!("be greater than or equal to {}", shown(other(arg, at, args)?)),
        GreaterThan(arg) => format!("be greater than {}", shown(other(arg, at, args)?)),
        Category(arg) => format!("be in the interval [1, {}]", size(arg)? + 1),
        Column(arg) => format!("be in the interval [1, {}]", size(arg)?),
        UpToSize(arg) => format!("be in the interval [0, {}]", size(arg)?),
        AboveRows(arg) => format!("be greater than {}", size(arg)?.checked_sub(1)?),
    })
}

/// Where the number at a place of a value is, as Stan's checks write it.
pub(super) fn place_of(value: &Val, at: usize) -> String {
    let mut indices = value.shape.clone();
    indices.iter_mut().rev().fold(at, |rest, index| {
        let extent = std::mem::replace(index, rest % *index + 1);
        rest / extent
    });
    let (arrays, of_element) = indices.split_at(value.kind.arrays);
    let mut place: String = arrays.iter().map(|i| format!("[{i}]")).collect();
    match of_element {
        [i, j] => place += &format!("[row={i}, col={j}]"),
        others => place.extend(others.iter().map(|i| format!("[{i}]"))),
    }
    place
}

/// The number of another argument that goes with a place.
fn other(arg: usize, at: usize, args: &[Val]) -> Option<f64> {
    let value = &args[arg];
    let place = if value.len() == 1 { 0 } else { at };
    // One of many is read at a time: no list of them is made.
    if !value.is_known() || value.is_complex() || value.is_tuple() || place >= value.len() {
        return None;
    }
    match value.elem(place).known()? {
        Scalar::Int(i) => Some(i as f64),
        Scalar::Real(x) => Some(x),
        Scalar::Bool(_) => None,
    }
}

/// Whether a number at a place is what it must be; `None` where that is not known.
fn holds(demand: Demand, x: f64, at: usize, args: &[Val]) -> Option<bool> {
    let size = |arg: usize| args[arg].shape.last().map(|n| *n as f64);
    Some(match demand {
        NotNan => !x.is_nan(),
        Finite => x.is_finite(),
        Positive => x > 0.0,
        PositiveFinite => x > 0.0 && x.is_finite(),
        Nonnegative => x >= 0.0,
        Between(a, b) => a <= x && x <= b,
        AtLeast(a) => x >= a,
        Above(a) => x > a,
        Less(b) => x < b,
        UpTo(arg) | LessThatUpTo(_, arg) => 0.0 <= x && x <= other(arg, at, args)?,
        AtLeastThat(arg) => x >= other(arg, at, args)?,
        GreaterThan(arg) => x > other(arg, at, args)?,
        Category(arg) => 1.0 <= x && x <= size(arg)? + 1.0,
        Column(arg) => 1.0 <= x && x <= size(arg)?,
        UpToSize(arg) => 0.0 <= x && x <= size(arg)?,
        AboveRows(arg) => x > size(arg)? - 1.0,
    })
}

/// What must be said of a number that is not what it must be.
fn refusal(demand: Demand, x: f64, at: usize, args: &[Val]) -> Option<String> {
    let x = match demand {
        LessThatUpTo(arg, _) => x - other(arg, at, args)?,
        _ => x,
    };
    if holds(demand, x, at, args)? {
        return None;
    }
    Some(format!("is {}, but must {}", shown(x), must(demand, at, args)?))
}

/// Whether a symmetric matrix is positive semidefinite but for rounding: elimination by the largest pivots leaves nothing
/// where none is positive any more.
fn is_positive_semidefinite(entries: &[f64], n: usize) -> bool {
    let mut rest = entries.to_vec();
    let largest = |rest: &[f64]| (0..n).max_by(|i, j| rest[i * (n + 1)].total_cmp(&rest[j * (n + 1)]));
    let Some(first) = largest(&rest) else { return true };
    let rounding = 8.0 * n as f64 * f64::EPSILON * rest[first * (n + 1)].max(0.0);
    while let Some(p) = largest(&rest).filter(|p| rest[p * (n + 1)] > rounding) {
        let (pivot, column) = (rest[p * (n + 1)], (0..n).map(|i| rest[i * n + p]).collect::<Vec<f64>>());
        for (at, entry) in rest.iter_mut().enumerate() {
            let (i, j) = (at / n, at % n);
            *entry = if i == p || j == p { 0.0 } else { *entry - column[i] * column[j] / pivot };
        }
    }
    rest.iter().all(|entry| entry.abs() <= rounding)
}

pub(super) fn is_positive_definite(entries: &[f64], n: usize) -> bool {
    log_determinant(entries, n).is_some_and(|log| !log.is_nan())
}

impl Tracer<'_> {
    /// Demands of the arguments of a function of the library what Stan demands. Known ones that are not what they must be are
    /// told before the run: nothing that a chain could do mends them.
    pub(super) fn check_support(&mut self, span: Span, name: &str, args: &[Val]) -> Result<()> {
        self.check_demands(span, name, name, args)?;
        if !self.looks() || args.iter().any(|arg| arg.len() == 0) {
            return Ok(());
        }
        for (arg, what, form) in forms(name) {
            let Some(value) = args.get(*arg) else { continue };
            for part in Self::rows_of(value) {
                if *form != Form::Semidefinite || part.shape.len() == 2 {
                    self.check_form(span, name, what, *form, &part)?;
                } else if part.is_known() {
                    self.check_rows(span, name, &[(*arg, what, Nonnegative)], args)?;
                } else {
                    self.demand_least(span, &part, ">=", &format!("{name}: {what} must be nonnegative!"))?;
                }
            }
        }
        Ok(())
    }

    /// Whether arguments are looked at where the program stands: what gives the transformed parameters of a draw has them of
    /// points that the density has taken.
    fn looks(&self) -> bool {
        self.in_density || self.before_lanes || self.in_quantities
    }

    /// Whether something is not demanded of a value yet. Under a condition it is demanded of some lanes only.
    fn is_new(&mut self, demand: &str, x: &Val) -> bool {
        !self.guards.is_empty() || self.demanded.insert((demand.into(), Arg::of(x)))
    }

    /// The demands on numbers, for a function that is told by another name than that of its demands.
    pub(super) fn check_demands(&mut self, span: Span, name: &str, row: &str, args: &[Val]) -> Result<()> {
        self.check_rows(span, name, &demands(row), args)
    }

    /// Demands of arguments what these rows say.
    pub(super) fn check_rows(&mut self, span: Span, name: &str, rows: &[Row], args: &[Val]) -> Result<()> {
        if !self.looks() || args.iter().any(|arg| arg.len() == 0) {
            return Ok(());
        }
        for (arg, what, demand) in rows {
            let Some(value) = args.get(*arg) else { continue };
            let Some(numbers) = value.reals() else {
                if self.asserts(name, *arg, *demand, value) {
                    self.assert_demand(span, &format!("{name}: {what}"), *demand, value, args)?;
                }
                continue;
            };
            let found = numbers.iter().enumerate().find_map(|(at, x)| Some((at, refusal(*demand, *x, at, args)?)));
            if let Some((at, refusal)) = found {
                let place = place_of(value, at);
                let message = format!("{name}: {what}{place} {refusal}");
                return self.check(span, &Val::bool(false), &message);
            }
        }
        Ok(())
    }

    /// Whether what lanes compute needs a look before the call. A density is NaN where a parameter is outside of its domain;
    /// but outside of its support it is minus infinity, which a mixture outlives, and a kernel of known points takes any
    /// scale. In quantities what is NaN stays so; a scale is looked at, since Stan gives nothing at all then.
    fn asserts(&self, name: &str, arg: usize, demand: Demand, value: &Val) -> bool {
        let open = matches!(demand, NotNan | Finite);
        let wanted = match () {
            () if name.ends_with("_rng") => true,
            () if self.in_density => arg == 0 && !open && !value.kind.is_int() || name == "gp_exp_quad_cov" && !open,
            () => !open,
        };
        wanted && !self.is_within(demand, value)
    }

    /// Whether all numbers of a value are surely what they must be, but for rounding.
    fn is_within(&self, demand: Demand, value: &Val) -> bool {
        let mut signs = Signs::new(&self.graph);
        match demand {
            Positive | PositiveFinite | Nonnegative => signs.positive(&Arg::of(value)),
            Between(a, b) => a <= 0.0 && b >= 1.0 && signs.shares(&Arg::of(value)),
            _ => false,
        }
    }

    /// Demands of what lanes compute what Stan demands, and tells a number that is not so.
    fn assert_demand(&mut self, span: Span, what: &str, demand: Demand, x: &Val, args: &[Val]) -> Result<()> {
        if !self.is_new(&format!("{what} {demand:?}"), x) {
            return Ok(());
        }
        let x = x.promoted();
        let Some((holds, told)) = self.demanded_of_lanes(span, demand, &x, args)? else { return Ok(()) };
        // A loop that tells values would not become generated code; behind the density that is no matter.
        let in_loop = self.in_density && (self.turn != TurnId(0) || self.routines.depth > 0);
        if let Some(must) = must_all(demand, args).filter(|_| in_loop) {
            return self.check(span, &holds, &format!("{what} must {must}"));
        }
        let has = if x.is_scalar() { "is" } else { "has" };
        let begin: Arc<str> = format!("{what} {has} ").into();
        let (texts, values) = match (must_all(demand, args), demand) {
            (Some(must), _) => (vec![begin, format!(", but must {must}").into()], vec![told]),
            // The other argument is known to lanes only.
            (None, AtLeastThat(arg)) if args[arg].is_scalar() => (
                vec![begin, ", but must be greater than or equal to ".into(), "".into()],
                vec![told, args[arg].clone()],
            ),
            (None, GreaterThan(arg)) if args[arg].is_scalar() => {
                (vec![begin, ", but must be greater than ".into(), "".into()], vec![told, args[arg].clone()])
            }
            _ => (vec![begin, ", but must be greater than another argument".into()], vec![told]),
        };
        self.check_telling(span, &holds, texts, values)
    }

    /// The least or the largest of some numbers.
    fn extreme(&mut self, span: Span, name: &str, x: &Val) -> Result<Val> {
        if x.is_scalar() { Ok(x.clone()) } else { self.library(span, name, &[distinct(x)]) }
    }

    /// Whether all of some numbers are what they must be, and one that is told where they are not.
    fn demanded_of_lanes(&mut self, span: Span, demand: Demand, x: &Val, args: &[Val]) -> Result<Option<(Val, Val)>> {
        let size = |arg: usize| args[arg].shape.last().map_or(0.0, |n| *n as f64);
        let (sign, least, most) = match demand {
            NotNan | Finite => {
                let sizes = self.elementwise(span, "abs", std::slice::from_ref(x))?;
                let most = self.extreme(span, "max", &sizes)?;
                let sign = if matches!(demand, NotNan) { "<=" } else { "<" };
                let holds = self.compare(span, sign, &most, &Val::real(f64::INFINITY))?;
                return Ok(Some((holds, if x.is_scalar() { x.clone() } else { most })));
            }
            AtLeastThat(arg) | GreaterThan(arg) => {
                let (_, both) = self.aligned(span, "a bound", &[x.clone(), args[arg].promoted()])?;
                let more = self.binary(span, BinaryOp::Subtract, &both[0], &both[1])?;
                let least = self.extreme(span, "min", &more)?;
                let sign = if matches!(demand, GreaterThan(_)) { ">" } else { ">=" };
                let holds = self.compare(span, sign, &least, &Val::real(0.0))?;
                return Ok(Some((holds, self.extreme(span, "min", x)?)));
            }
            UpTo(_) | LessThatUpTo(..) => return Ok(None),
            Positive => (">", Some(0.0), None),
            PositiveFinite => (">", Some(0.0), Some(("<", f64::INFINITY))),
            Nonnegative => (">=", Some(0.0), None),
            AtLeast(a) => (">=", Some(a), None),
            Above(a) => (">", Some(a), None),
            AboveRows(arg) => (">", Some(size(arg) - 1.0), None),
            Less(b) => ("", None, Some(("<", b))),
            Between(a, b) => (">=", Some(a), Some(("<=", b))),
            UpToSize(arg) => (">=", Some(0.0), Some(("<=", size(arg)))),
            Category(arg) => (">=", Some(1.0), Some(("<=", size(arg) + 1.0))),
            Column(arg) => (">=", Some(1.0), Some(("<=", size(arg)))),
        };
        let below = match least {
            Some(a) => {
                let least = self.extreme(span, "min", x)?;
                Some((self.compare(span, sign, &least, &Val::real(a))?, least))
            }
            None => None,
        };
        let above = match most {
            Some((sign, b)) => {
                let most = self.extreme(span, "max", x)?;
                Some((self.compare(span, sign, &most, &Val::real(b))?, most))
            }
            None => None,
        };
        Ok(match (below, above) {
            (Some((holds, least)), Some((also, most))) => {
                let told = if x.is_scalar() { least } else { self.select(span, &holds, &most, &least)? };
                Some((self.both(span, &holds, &also)?, told))
            }
            (one, other) => one.or(other),
        })
    }

    /// Demands of a vector or a matrix that it has a form.
    fn check_form(&mut self, span: Span, name: &str, what: &str, form: Form, x: &Val) -> Result<()> {
        let of_lanes = !x.is_known() && !name.ends_with("_rng");
        match form {
            Form::Simplex => self.demand(span, name, what, &Constraint::Simplex, x),
            Form::Ordered => self.demand(span, name, what, &Constraint::Ordered, x),
            Form::Correlations => self.demand(span, name, what, &Constraint::CorrMatrix, x),
            Form::Symmetric => self.check_symmetric(span, name, what, x),
            // What is made of a matrix that is not positive definite is NaN, or it is told there, and of a diagonal that is
            // not positive NaN.
            Form::Definite if of_lanes => self.demand(span, name, what, &Constraint::CovMatrix, x),
            Form::Covariances if of_lanes => self.check_symmetric(span, name, what, x),
            Form::Factor if of_lanes && self.is_lower_triangular(x) => Ok(()),
            Form::Covariances | Form::Definite => {
                self.check_symmetric(span, name, what, x)?;
                let Some(entries) = x.reals() else { return self.demand(span, name, what, &Constraint::CovMatrix, x) };
                if !self.is_new("positive definite", x) || is_positive_definite(&entries, x.shape[0]) {
                    return Ok(());
                }
                self.check(span, &Val::bool(false), &format!("{name}: {what} is not positive definite"))
            }
            Form::Semidefinite => {
                self.check_symmetric(span, name, what, x)?;
                if !self.is_new("semidefinite", x) {
                    return Ok(());
                }
                let message = format!("{name}: {what} is not positive semi-definite.");
                if let Some(entries) = x.reals() {
                    return self.check(span, &Val::bool(is_positive_semidefinite(&entries, x.shape[0])), &message);
                }
                let test = Op::CallBool("is_positive_semidefinite".into());
                let holds = self.apply(span, test, std::slice::from_ref(x), Kind::INT, vec![])?;
                self.check(span, &holds, &message)
            }
            Form::LowerTriangular if self.is_lower_triangular(x) => Ok(()),
            Form::LowerTriangular => self.check_lower_triangular(span, name, what, x),
            Form::Factor => self.demand(span, name, what, &Constraint::CholeskyFactorCov, x),
        }
    }

    /// Demands of the arguments of functions of hidden Markov models what Stan demands.
    pub(super) fn check_hidden_markov(&mut self, span: Span, name: &str, args: &[Val]) -> Result<()> {
        let [omegas, gamma, rho] = args else { return Ok(()) };
        let n = omegas.shape[0];
        if rho.len() != n {
            return super::wrong(span, format!("{name}: rho has the size {}, but must have {n}", rho.len()));
        }
        if gamma.shape != [n, n] {
            let (rows, cols) = (gamma.shape[0], gamma.shape[1]);
            return super::wrong(span, format!("{name}: Gamma has the size {rows} x {cols}, but must have {n} x {n}"));
        }
        if !self.looks() || n == 0 {
            return Ok(());
        }
        self.demand(span, name, "rho", &Constraint::Simplex, rho)?;
        for i in 0..n {
            let row = gamma.pick(Kind::VECTOR, vec![n], i * n..(i + 1) * n);
            self.demand(span, name, &format!("Gamma[{}, ]", i + 1), &Constraint::Simplex, &row)?;
        }
        Ok(())
    }

    /// Demands of a vector or a matrix that is an argument of a function what a constraint says. What a transform of that
    /// constraint has made is taken as it is, and the same value is looked at once.
    pub(super) fn demand(
        &mut self,
        span: Span,
        name: &str,
        what: &str,
        constraint: &Constraint,
        x: &Val,
    ) -> Result<()> {
        let (made_by, word): (&[&str], &str) = match constraint {
            Constraint::Simplex => (&["simplex_constrain", "softmax"], "simplex"),
            Constraint::CorrMatrix => (&["corr_matrix_constrain"], "correlations"),
            Constraint::CovMatrix => (&["cov_matrix_constrain", "corr_matrix_constrain"], "covariances"),
            Constraint::CholeskyFactorCov => {
                (&["cholesky_factor_cov_constrain", "cholesky_factor_corr_constrain", "cholesky_decompose"], "factor")
            }
            _ => (&["ordered_constrain", "positive_ordered_constrain"], "ordered"),
        };
        let of_matrix = matches!(constraint, Constraint::Simplex)
            && matches!(Arg::of(x), Arg::Elements(elems, _) if is_of_stochastic_matrix(&self.graph, &elems));
        if !self.looks() || of_matrix || self.is_made_by(made_by, x) || !self.is_new(word, x) {
            return Ok(());
        }
        self.check_lanes(span, &format!("{name}: {what}"), constraint, x)
    }

    /// Whether a matrix has surely nothing above the diagonal, by what it is made of.
    fn is_lower_triangular(&self, x: &Val) -> bool {
        let &[rows, cols] = &x.shape[..] else { return false };
        let mut above = (0..rows).flat_map(|i| (i + 1..cols).map(move |j| i * cols + j));
        match Arg::of(x) {
            Arg::Whole(node) => self.is_triangular_node(node, &x.shape, 0),
            Arg::Elements(elems, _) => above.all(|at| match elems[at] {
                Elem::Real(x) => x == 0.0,
                Elem::Of(node, place) if place as usize == at => self.is_triangular_node(node, &x.shape, 0),
                _ => false,
            }),
            _ => false,
        }
    }

    fn is_triangular_node(&self, id: NodeId, shape: &[usize], depth: usize) -> bool {
        let node = &self.graph.nodes[id];
        let of = |arg: &Arg| matches!(arg, Arg::Whole(node) if self.is_triangular_node(*node, shape, depth + 1));
        let makes = |name: &str| {
            matches!(name, "cholesky_decompose" | "cholesky_factor_corr_constrain" | "cholesky_factor_cov_constrain")
        };
        depth < DEEPEST
            && node.shape == shape
            && match &node.op {
                Op::Call(name, _) => makes(name),
                // A factor that is not finite makes NaN of a zero, and of the density.
                Op::Infix("*") => node.args.iter().any(of),
                _ => false,
            }
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

    /// Demands of a matrix that it has nothing above the diagonal.
    fn check_lower_triangular(&mut self, span: Span, name: &str, what: &str, m: &Val) -> Result<()> {
        let &[rows, cols] = &m.shape[..] else { return Ok(()) };
        let Some(x) = m.reals() else {
            return self.demand_lower_triangular(span, m, &format!("{name}: {what} must be lower triangular"));
        };
        let Some((i, j)) = above_diagonal(&x, rows, cols) else { return Ok(()) };
        let entry = shown(x[i * cols + j]);
        let message = format!("{name}: {what} is not lower triangular; {what}[{},{}]={entry}", i + 1, j + 1);
        self.check(span, &Val::bool(false), &message)
    }

    /// Demands of a matrix that it is symmetric, as a Cholesky factor does.
    fn check_symmetric(&mut self, span: Span, name: &str, what: &str, m: &Val) -> Result<()> {
        let n = m.shape[0];
        if m.shape.get(1) != Some(&n) {
            return super::wrong(span, format!("{name}: a matrix of {:?} is not square", m.shape));
        }
        let pairs = || (0..n).flat_map(|i| (0..i).map(move |j| (i * n + j, j * n + i)));
        if let Some(x) = m.reals() {
            let off = pairs().find(|(a, b)| {
                // A NaN is equal to nothing.
                let equal = (x[*a] - x[*b]).abs() <= TOLERANCE;
                !equal
            });
            let Some((below, above)) = off else { return Ok(()) };
            let (i, j) = (below / n + 1, below % n + 1);
            let (upper, lower) = (shown(x[above]), shown(x[below]));
            let message =
                format!("{name}: {what} is not symmetric. {what}[{j},{i}] = {upper}, but {what}[{i},{j}] = {lower}");
            return self.check(span, &Val::bool(false), &message);
        }
        if Symmetry::new(&self.graph, n).of(&Arg::of(m)) {
            return Ok(());
        }
        if self.is_new("symmetric", m) {
            self.demand_symmetric(span, m, &format!("{name}: {what} must be symmetric"))?;
        }
        Ok(())
    }
}
