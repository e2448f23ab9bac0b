//! Distribution functions, and truncation, which is made of them.

use super::{Result, Tracer};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Name, Truncation};
use crate::stan::value::{Kind, Val};

/// Distributions whose functions the language has of numbers only.
const OF_NUMBERS: &[&str] = &[
    "bernoulli",
    "beta",
    "beta_binomial",
    "beta_neg_binomial",
    "beta_proportion",
    "binomial",
    "chi_square",
    "discrete_range",
    "gamma",
    "inv_chi_square",
    "inv_gamma",
    "neg_binomial",
    "neg_binomial_2",
    "poisson",
    "scaled_inv_chi_square",
    "skew_normal",
    "student_t",
    "von_mises",
    "yule_simon",
];

/// The distribution whose function this is: the probability to lie below, its logarithm, or that of the rest.
pub(super) fn distribution_of(name: &str) -> Option<&str> {
    ["_lcdf", "_lccdf", "_cdf"].iter().find_map(|suffix| name.strip_suffix(suffix))
}

impl Tracer<'_> {
    /// A distribution function: of several values the probability that all lie there.
    pub(super) fn distribution_function(&mut self, span: Span, name: &str, args: &[Val]) -> Result<Val> {
        self.check_demands(span, name, name, args)?;
        let (length, args) = self.aligned(span, name, args)?;
        let is_probability = name.ends_with("_cdf");
        let n = match length {
            None => return self.call_ab(span, name, &args, Kind::REAL, vec![]),
            Some(0) => return Ok(Val::real(if is_probability { 1.0 } else { 0.0 })),
            Some(n) => n,
        };
        let one_by_one = distribution_of(name).is_some_and(|stem| OF_NUMBERS.contains(&stem));
        let each = if one_by_one {
            let one = |t: &mut Self, numbers: &[Val]| t.call_ab(span, name, numbers, Kind::REAL, vec![]);
            self.each_element(&args, Kind::VECTOR, vec![n], one)?
        } else if is_probability {
            self.call_ab(span, name, &args, Kind::VECTOR, vec![n])?
        } else {
            return self.call_ab(span, name, &args, Kind::REAL, vec![]);
        };
        self.library(span, if is_probability { "prod" } else { "sum" }, &[each])
    }

    /// `T[a, b]`: less the logarithm of the mass between, and nothing outside.
    pub(super) fn truncate(
        &mut self,
        span: Span,
        distribution: &Name,
        values: &[Val],
        truncation: &Truncation,
        discrete: bool,
    ) -> Result<()> {
        let lower = truncation.lower.as_ref().map(|e| self.eval(e)).transpose()?;
        let upper = truncation.upper.as_ref().map(|e| self.eval(e)).transpose()?;
        let (y, params) = values.split_first().expect("there is what is distributed");
        let mut inside = Val::int(1);
        for (bound, sign, extreme) in [(&lower, ">=", "min"), (&upper, "<=", "max")] {
            let Some(bound) = bound.as_ref().filter(|_| y.len() > 0) else { continue };
            let y = if y.is_scalar() { y.clone() } else { self.library(span, extreme, std::slice::from_ref(y))? };
            let holds = self.compare(span, sign, &y, bound)?;
            inside = self.both(span, &inside, &holds)?;
        }
        let outside = Val::real(f64::NEG_INFINITY);
        let term = match inside.as_int() {
            Some(0) => outside,
            Some(_) => self.less_mass(span, distribution, (lower, upper), (y, params), discrete)?,
            None => {
                let mass =
                    self.guarded(&inside, |t| t.less_mass(span, distribution, (lower, upper), (y, params), discrete))?;
                self.select(span, &inside, &mass, &outside)?
            }
        };
        self.add_terms(span, &term)
    }

    /// The sum of the logarithms of the masses between bounds, of each observation, negative.
    fn less_mass(
        &mut self,
        span: Span,
        distribution: &Name,
        (lower, upper): (Option<Val>, Option<Val>),
        (y, params): (&Val, &[Val]),
        discrete: bool,
    ) -> Result<Val> {
        // The mass of a discrete distribution from a on leaves out what is below it.
        let below = match &lower {
            Some(a) if discrete => Some(self.infix(span, "-", a, &Val::int(1))?),
            lower => lower.clone(),
        };
        // What is cut off at infinity is nothing.
        let below = below.filter(|a| a.as_real() != Some(f64::NEG_INFINITY));
        let upper = upper.filter(|b| b.as_real() != Some(f64::INFINITY));
        if below.is_none() && upper.is_none() {
            return Ok(Val::real(0.0));
        }
        let (length, params) = self.aligned(span, &distribution.text, params)?;
        let masses = match length {
            None => self.log_mass(span, distribution, (&below, &upper), &params)?,
            Some(n) => self.each_element(&params, Kind::VECTOR, vec![n], |t, params| {
                t.log_mass(span, distribution, (&below, &upper), params)
            })?,
        };
        let all = match (length, y.is_scalar()) {
            (None, true) => masses,
            (None, false) => self.infix(span, "*", &masses, &Val::real(y.len() as f64))?,
            (Some(_), _) => self.library(span, "sum", &[masses])?,
        };
        self.apply(span, Op::Negate, &[all], Kind::REAL, vec![])
    }

    /// The logarithm of the mass between two bounds, of which there is one at least.
    fn log_mass(
        &mut self,
        span: Span,
        distribution: &Name,
        bounds: (&Option<Val>, &Option<Val>),
        params: &[Val],
    ) -> Result<Val> {
        let mass = |t: &mut Self, suffix: &str, at: &Val| {
            let name = Name { text: format!("{}{suffix}", distribution.text).into(), span: distribution.span };
            let args: Vec<Val> = std::iter::once(at.clone()).chain(params.iter().cloned()).collect();
            t.call_with(span, &name, &args)
        };
        match bounds {
            (Some(a), Some(b)) => {
                let (above, under) = (mass(self, "_lcdf", b)?, mass(self, "_lcdf", a)?);
                // Behind the median what is left above tells more digits: far out both are 1, as they are in Stan.
                let half = self.compare(span, ">", &under, &Val::real(0.5_f64.ln()))?;
                let from_below = |t: &mut Self| t.library(span, "log_diff_exp", &[above, under]);
                if half.as_int() == Some(0) {
                    return from_below(self);
                }
                let from_below = from_below(self)?;
                let (more, less) = (mass(self, "_lccdf", a)?, mass(self, "_lccdf", b)?);
                let from_above = self.library(span, "log_diff_exp", &[more, less])?;
                self.select(span, &half, &from_above, &from_below)
            }
            (Some(a), None) => mass(self, "_lccdf", a),
            (None, Some(b)) => mass(self, "_lcdf", b),
            (None, None) => Ok(Val::real(0.0)),
        }
    }
}
