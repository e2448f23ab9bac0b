//! Draws of Stan's library, by those of ours, whose categories are counted from 0.

use super::{Result, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::emit::expression;
use crate::stan::graph::Op;
use crate::stan::value::{Base, Kind, Val};
use crate::types::Array;

/// Distributions of ints.
const INTS: &[&str] = &[
    "bernoulli",
    "bernoulli_logit",
    "binomial",
    "poisson",
    "poisson_log",
    "neg_binomial",
    "neg_binomial_2",
    "neg_binomial_2_log",
    "beta_binomial",
    "beta_neg_binomial",
    "hypergeometric",
    "discrete_range",
    "yule_simon",
    "poisson_binomial",
];

/// Distributions of reals.
const REALS: &[&str] = &[
    "beta",
    "beta_proportion",
    "cauchy",
    "chi_square",
    "double_exponential",
    "exp_mod_normal",
    "exponential",
    "frechet",
    "gamma",
    "gumbel",
    "inv_chi_square",
    "inv_gamma",
    "logistic",
    "loglogistic",
    "lognormal",
    "normal",
    "pareto",
    "pareto_type_2",
    "rayleigh",
    "scaled_inv_chi_square",
    "skew_double_exponential",
    "skew_normal",
    "std_normal",
    "student_t",
    "uniform",
    "von_mises",
    "weibull",
];

impl Tracer<'_> {
    /// A draw; of arrays one for each element.
    pub(super) fn draw(&mut self, span: Span, base: &str, args: &[Val]) -> Result<Val> {
        let name = format!("{base}_rng");
        match (base, args) {
            ("categorical" | "categorical_logit" | "ordered_logistic" | "ordered_probit", _) => {
                let drawn = self.one(span, &name, args, Kind::INT, vec![])?;
                self.add(span, &drawn, &Val::int(1))
            }
            ("multinomial" | "multinomial_logit" | "dirichlet_multinomial", [theta, _]) => {
                self.one(span, &name, args, Kind { base: Base::Int, arrays: 1 }, theta.shape.clone())
            }
            ("dirichlet", [a]) => self.one(span, &name, args, a.kind, a.shape.clone()),
            ("multi_normal" | "multi_normal_cholesky" | "multi_normal_prec", [mu, _])
            | ("multi_student_t" | "multi_student_t_cholesky", [_, mu, _]) => {
                let own = vec![*mu.shape.last().unwrap_or(&0)];
                if mu.kind.arrays == 0 {
                    return self.one(span, &name, args, Kind::VECTOR, own);
                }
                let place = usize::from(args.len() == 3);
                let mut drawn = Vec::with_capacity(mu.len());
                for row in Self::rows_of(mu) {
                    let mut args = args.to_vec();
                    args[place] = row;
                    drawn.extend(self.one(span, &name, &args, Kind::VECTOR, own.clone())?.elems());
                }
                Ok(Val::from_elems(Kind { base: Base::Vector, arrays: 1 }, mu.shape.clone(), drawn))
            }
            ("bernoulli_logit_glm", [x, alpha, beta]) => {
                let location = self.regression(span, x, alpha, beta)?;
                let location = location.reshaped(Kind::VECTOR, vec![location.len()]);
                self.each(span, "bernoulli_logit_rng", &[location], Kind::INT)
            }
            ("wishart" | "inv_wishart" | "wishart_cholesky" | "inv_wishart_cholesky", [_, scale]) => {
                self.one(span, &name, args, Kind::MATRIX, scale.shape.clone())
            }
            ("lkj_corr" | "lkj_corr_cholesky", [k, eta]) => {
                let Some(k) = k.as_int().and_then(|k| usize::try_from(k).ok()) else {
                    return unsupported(span, "a size that depends on parameters");
                };
                let like = Val::from_elems(Kind::VECTOR, vec![k], vec![crate::stan::value::Elem::Real(0.0); k]);
                self.one(span, &name, &[like, eta.clone()], Kind::MATRIX, vec![k, k])
            }
            ("hmm_latent", [omegas, _, _]) => {
                self.check_hidden_markov(span, &name, args)?;
                let kind = Kind { base: Base::Int, arrays: 1 };
                let states = self.one(span, &name, args, kind, vec![omegas.shape[1]])?;
                self.infix(span, "+", &states, &Val::int(1))
            }
            _ if INTS.contains(&base) => self.each(span, &name, args, Kind::INT),
            _ if REALS.contains(&base) => self.each(span, &name, args, Kind::REAL),
            _ => unsupported(span, format!("`{name}`")),
        }
    }

    fn one(&mut self, span: Span, name: &str, args: &[Val], kind: Kind, shape: Vec<usize>) -> Result<Val> {
        let op = Op::Call(name.into(), vec![]);
        let known: Option<Vec<Array>> = args.iter().map(Val::to_array).collect();
        let Some(arrays) = known.filter(|_| self.before_lanes) else {
            let args = self.spared(span, name, args)?;
            return self.node(span, op, &args, kind, shape);
        };
        self.drawn += 1;
        let ty = kind.host_type(&shape);
        let drawn = self.host.evaluate(&expression(&op, args.len()), &arrays, &ty, Some(self.drawn));
        let value = drawn.or_else(|why| wrong(span, why)).map(|array| Val::known(kind, array))?;
        if value.reals().is_some_and(|drawn| drawn.iter().any(|x| x.is_nan())) {
            return wrong(span, format!("{name}: its arguments are outside of what it takes, so there is no draw"));
        }
        Ok(value)
    }

    fn each(&mut self, span: Span, name: &str, args: &[Val], kind: Kind) -> Result<Val> {
        let (Some(n), args) = self.aligned(span, name, args)? else { return self.one(span, name, args, kind, vec![]) };
        let array = Kind { base: kind.base, arrays: 1 };
        self.each_element(&args, array, vec![n], |t, numbers| t.one(span, name, numbers, kind, vec![]))
    }
}
