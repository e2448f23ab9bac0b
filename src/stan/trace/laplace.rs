//! The embedded Laplace approximation: the covariance is a value, the likelihood a closure of the latent variables and of
//! what else lanes know of its arguments.

use super::constants::lgamma;
use super::higher::{Packed, missing};
use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Expr, ExprKind, Name};
use crate::stan::value::{Elem, Kind, Val};

/// What Stan takes where a program says nothing.
const TOLERANCE: f64 = 1.49012e-8;
const MAX_NUM_STEPS: i64 = 500;
const SOLVER: i64 = 1;
const MAX_STEPS_LINE_SEARCH: i64 = 1000;
const ALLOW_FALLTHROUGH: i64 = 1;

/// The log likelihood of the latent variables.
enum Likelihood {
    /// A function of the program.
    Own(Name),
    /// Successes among trials, by the log odds: `y`, `n`, `mean`.
    BernoulliLogit,
    /// Counts by the logarithms of rates, each of one of the variables: `y`, `y_index`, `mean`.
    PoissonLog,
    /// Counts by the logarithms of means, and by precisions: `y`, `y_index`, `eta`, `mean`. Stan 2.39 does not compile it
    /// with the vector of precisions that it asks for.
    NegBinomial2Log,
}

/// What the search for the mode goes by.
struct Control {
    guess: Option<Val>,
    tolerance: Val,
    max_num_steps: Val,
}

impl Tracer<'_> {
    /// `laplace_marginal(likelihood, (…), hessian_block_size, covariance, (…))`, and its kin: those with a likelihood of
    /// the library have its arguments in the place of the first two, those with `_tol` a tuple of controls at the end.
    pub(super) fn laplace(&mut self, span: Span, name: &str, args: &[Expr]) -> Result<Val> {
        if name.contains("_latent_solve") {
            return unsupported(span, format!("`{name}`"));
        }
        let (likelihood, own) = if name.contains("bernoulli_logit") {
            (Likelihood::BernoulliLogit, 3)
        } else if name.contains("poisson_log") {
            (Likelihood::PoissonLog, 3)
        } else if name.contains("neg_binomial_2_log") {
            (Likelihood::NegBinomial2Log, 4)
        } else {
            (Likelihood::Own(function(span, args.first())?), 2)
        };
        if args.len() < own + 3 {
            return Err(missing(span));
        }
        let (of, rest) = args.split_at(own);
        let given = match &likelihood {
            Likelihood::Own(_) => self.arguments(span, &of[1])?,
            _ => of.iter().map(|e| self.eval(e)).collect::<Result<Vec<_>>>()?,
        };
        let block = self.eval(&rest[0])?;
        let called = function(span, rest.get(1))?;
        let values = self.arguments(span, &rest[2])?;
        let covariance = self.call_with(span, &called, &values)?;
        let n = covariance.shape.first().copied().unwrap_or(0);
        if covariance.shape != [n, n] {
            return wrong(span, format!("`{name}`: the covariance is no square matrix"));
        }
        let block = match block.as_int().and_then(|b| usize::try_from(b).ok()) {
            Some(block) if block > 0 && n % block == 0 && n > 0 => block,
            _ => return wrong(span, format!("`{name}`: the covariance has no whole number of blocks of this size")),
        };
        let control = self.laplace_control(span, name, rest.get(3), n)?;
        let packed = Packed::new(given, self.on(span)?);
        let inputs = [("y", Kind::VECTOR, vec![n]), ("p", Kind::VECTOR, vec![packed.theta.len()])];
        let closure = self.closure(span, &inputs, |tracer, inputs| {
            let [theta, p] = inputs else { unreachable!("two inputs were asked for") };
            packed.within((tracer, span), p, |tracer, rest| tracer.log_likelihood(span, &likelihood, theta, rest))
        })?;
        let guess = control.guess.unwrap_or_else(|| constant(Kind::VECTOR, vec![n], 0.0));
        let mut args = vec![guess.promoted(), packed.theta.promoted(), covariance.promoted()];
        args.extend((block > 1).then(|| seeds(block, n)));
        args.extend([control.tolerance.promoted(), control.max_num_steps]);
        let draws = name.ends_with("_rng");
        let called = match (draws, block) {
            (true, 1) => "laplace_latent_rng",
            (true, _) => "laplace_latent_in_blocks_rng",
            (false, 1) => "laplace_marginal",
            (false, _) => "laplace_marginal_in_blocks",
        };
        let (kind, shape) = if draws { (Kind::VECTOR, vec![n]) } else { (Kind::REAL, vec![]) };
        self.node(span, Op::CallWith(called.into(), closure), &args, kind, shape)
    }

    /// The parts of a tuple of arguments.
    fn arguments(&mut self, span: Span, tuple: &Expr) -> Result<Vec<Val>> {
        match self.eval(tuple)?.parts() {
            Some(parts) => Ok(parts.to_vec()),
            None => wrong(span, "the arguments of a function are a tuple here"),
        }
    }

    /// The tuple at the end of `_tol` functions: a guess, the tolerance, steps, the solver, steps of the line search, and
    /// whether other solvers may be tried. All solvers find the same mode, so the last three change nothing here.
    fn laplace_control(&mut self, span: Span, name: &str, tuple: Option<&Expr>, n: usize) -> Result<Control> {
        let Some(tuple) = tuple else {
            let (tolerance, max_num_steps) = (Val::real(TOLERANCE), Val::int(MAX_NUM_STEPS));
            return Ok(Control { guess: None, tolerance, max_num_steps });
        };
        let parts = self.arguments(span, tuple)?;
        let [guess, tolerance, max_num_steps, solver, ..] = &parts[..] else { return Err(missing(span)) };
        let told = |what: &str| wrong(span, format!("`{name}`: {what}"));
        if guess.len() != n {
            return told(&format!("the initial guess has {} elements, the covariance {n} rows", guess.len()));
        }
        if guess.reals().is_some_and(|all| !all.iter().all(|x| x.is_finite())) {
            return told("the initial guess is not finite");
        }
        if tolerance.as_real().is_some_and(|x| x.is_nan() || x < 0.0) {
            return told("the tolerance must be nonnegative");
        }
        if max_num_steps.as_int().is_some_and(|steps| steps <= 0) {
            return told("max_num_steps must be positive");
        }
        if solver.as_int().is_some_and(|solver| !(1..=3).contains(&solver)) {
            return told("the solver must be 1, 2 or 3");
        }
        Ok(Control { guess: Some(guess.clone()), tolerance: tolerance.clone(), max_num_steps: max_num_steps.clone() })
    }

    /// The controls that `_tol` functions take, from a guess or its size.
    pub(super) fn laplace_options(&mut self, span: Span, start: &Val) -> Result<Val> {
        let guess = match start.as_int().map(usize::try_from) {
            Some(Ok(n)) => constant(Kind::VECTOR, vec![n], 0.0),
            Some(Err(_)) => return wrong(span, "`generate_laplace_options`: the size is negative"),
            None if start.kind == Kind::VECTOR => start.clone(),
            None => return unsupported(span, "a size that depends on parameters"),
        };
        let steps = [MAX_NUM_STEPS, SOLVER, MAX_STEPS_LINE_SEARCH, ALLOW_FALLTHROUGH].map(Val::int);
        Ok(Val::tuple(vec![], [guess, Val::real(TOLERANCE)].into_iter().chain(steps).collect()))
    }

    fn log_likelihood(&mut self, span: Span, likelihood: &Likelihood, theta: &Val, given: Vec<Val>) -> Result<Val> {
        let vector = |v: &Val| Val { kind: Kind::VECTOR, ..v.promoted() };
        match (likelihood, &given[..]) {
            (Likelihood::Own(name), given) => {
                let args: Vec<Val> = std::iter::once(theta.clone()).chain(given.iter().cloned()).collect();
                self.call_with(span, name, &args)
            }
            (Likelihood::BernoulliLogit, [y, trials, mean]) => {
                let odds = self.infix(span, "+", theta, mean)?;
                let softened = self.elementwise(span, "log1p_exp", std::slice::from_ref(&odds))?;
                let hits = self.library(span, "dot_product", &[vector(y), odds])?;
                let all = self.library(span, "dot_product", &[vector(trials), softened])?;
                self.infix(span, "-", &hits, &all)
            }
            (Likelihood::PoissonLog, [y, index, mean]) => {
                let (counts, sizes) = groups(span, y, index, theta.len())?;
                let constant: f64 = counts.reals().iter().flatten().map(|count| lgamma(count + 1.0)).sum();
                let rates = self.infix(span, "+", theta, mean)?;
                let means = self.elementwise(span, "exp", std::slice::from_ref(&rates))?;
                let seen = self.library(span, "dot_product", &[counts, rates])?;
                let expected = self.library(span, "dot_product", &[sizes, means])?;
                let rest = self.infix(span, "-", &seen, &expected)?;
                self.infix(span, "-", &rest, &Val::real(constant))
            }
            (Likelihood::NegBinomial2Log, [y, index, eta, mean]) => {
                let (counts, sizes) = groups(span, y, index, theta.len())?;
                let means = self.infix(span, "+", theta, mean)?;
                // One for all variables, or one for each; a count has that of its variable.
                let of_variable = |at: usize| if eta.len() == 1 { 0 } else { at };
                if eta.len() != 1 && eta.len() != theta.len() {
                    return wrong(span, format!("{} variables have {} precisions", theta.len(), eta.len()));
                }
                let each = eta.pick(Kind::VECTOR, theta.shape.clone(), (0..theta.len()).map(of_variable));
                let places = index.ints().into_iter().flatten().map(|at| of_variable(at as usize - 1));
                let of_counts = eta.pick(Kind::VECTOR, y.shape.clone(), places);
                let precisions = self.elementwise(span, "log", std::slice::from_ref(&each))?;
                let both = self.elementwise(span, "log_sum_exp", &[means.clone(), precisions.clone()])?;
                let shifted = self.infix(span, "+", &vector(y), &of_counts)?;
                let shifted = self.infix(span, "-", &shifted, &Val::real(1.0))?;
                let ways = self.library(span, "lchoose", &[shifted, vector(y)])?;
                let ways = self.library(span, "sum", &[ways])?;
                let counted = self.infix(span, "-", &means, &both)?;
                let seen = self.library(span, "dot_product", &[counts, counted])?;
                let weights = self.infix(span, "*", &sizes, &each)?;
                let left = self.infix(span, "-", &precisions, &both)?;
                let unseen = self.library(span, "dot_product", &[weights, left])?;
                let sum = self.infix(span, "+", &ways, &seen)?;
                self.infix(span, "+", &sum, &unseen)
            }
            _ => Err(missing(span)),
        }
    }
}

/// The sums of counts that belong to each of n variables, and how many counts these are.
fn groups(span: Span, y: &Val, index: &Val, n: usize) -> Result<(Val, Val)> {
    let (Some(y), Some(index)) = (y.ints(), index.ints()) else {
        return unsupported(span, "counts of a Laplace approximation that depend on parameters");
    };
    if y.len() != index.len() {
        return wrong(span, format!("{} counts have {} indices", y.len(), index.len()));
    }
    let (mut counts, mut sizes) = (vec![0.0; n], vec![0.0; n]);
    for (y, at) in y.iter().zip(&index) {
        match usize::try_from(*at) {
            Ok(at) if (1..=n).contains(&at) => {
                counts[at - 1] += *y as f64;
                sizes[at - 1] += 1.0;
            }
            _ => return wrong(span, format!("index {at} of a count is not in 1, …, {n}")),
        }
    }
    let vector = |all: Vec<f64>| Val::from_elems(Kind::VECTOR, vec![n], all.into_iter().map(Elem::Real).collect());
    Ok((vector(counts), vector(sizes)))
}

/// For each column of a block where it stands, in rows.
fn seeds(block: usize, n: usize) -> Val {
    let elems = (0..block * n).map(|at| Elem::Real(f64::from(u8::from((at % n) % block == at / n))));
    Val::from_elems(Kind::MATRIX, vec![block, n], elems.collect())
}

fn constant(kind: Kind, shape: Vec<usize>, x: f64) -> Val {
    let n = shape.iter().product();
    Val::from_elems(kind, shape, vec![Elem::Real(x); n])
}

/// The function that an argument names.
fn function(span: Span, arg: Option<&Expr>) -> Result<Name> {
    match arg {
        Some(Expr { kind: ExprKind::Variable(name), .. }) => Ok(name.clone()),
        _ => wrong(span, "the name of a function is wanted here"),
    }
}
