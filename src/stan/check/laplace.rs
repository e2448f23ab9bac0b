//! The embedded Laplace approximation: functions that take two functions, each with a tuple of arguments.

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{Expr, ExprKind, Name, UnsizedType};

use super::call::call_level;
use super::context::{Checker, normalized};
use super::resolve::{Candidate, Depth, Mismatch, Value, Why, arguments_fit, cheapest};
use super::types::{Level, Parameter, Suffix, Type, spelled, wound};

/// The functions, by what they are called in the library.
pub(super) const NAMES: [&str; 18] = [
    "laplace_marginal",
    "laplace_marginal_tol",
    "laplace_latent_rng",
    "laplace_latent_tol_rng",
    "laplace_latent_solve",
    "laplace_latent_solve_tol",
    "laplace_marginal_bernoulli_logit_lpmf",
    "laplace_marginal_tol_bernoulli_logit_lpmf",
    "laplace_marginal_neg_binomial_2_log_lpmf",
    "laplace_marginal_tol_neg_binomial_2_log_lpmf",
    "laplace_marginal_poisson_log_lpmf",
    "laplace_marginal_tol_poisson_log_lpmf",
    "laplace_latent_bernoulli_logit_rng",
    "laplace_latent_tol_bernoulli_logit_rng",
    "laplace_latent_neg_binomial_2_log_rng",
    "laplace_latent_tol_neg_binomial_2_log_rng",
    "laplace_latent_poisson_log_rng",
    "laplace_latent_tol_poisson_log_rng",
];

/// Whether the library's function of this name is one of them.
pub(super) fn is_laplace(name: &str) -> bool {
    NAMES.contains(&name)
}

fn values_of(types: &[UnsizedType], data_only: bool) -> Vec<Parameter> {
    types.iter().map(|ty| Parameter { data_only, ty: Type::Value(ty.clone()) }).collect()
}

/// What a function with a built-in likelihood takes for it.
fn likelihood(name: &str) -> Vec<Parameter> {
    let counts = || wound(UnsizedType::Int, 1);
    if name.contains("neg_binomial_2_log") {
        values_of(&[counts(), counts(), UnsizedType::Vector, UnsizedType::Vector], false)
    } else if name.contains("bernoulli_logit") || name.contains("poisson_log") {
        values_of(&[counts(), counts(), UnsizedType::Vector], false)
    } else {
        Vec::new()
    }
}

/// The tuple at the end of `_tol` functions: the first guess, the tolerance, and four ints.
fn controls() -> Vec<Parameter> {
    use UnsizedType::{Int, Real, Vector};
    let mut controls = values_of(&[Vector], false);
    controls.extend(values_of(&[Real, Int, Int, Int, Int], true));
    controls
}

fn result(name: &str) -> UnsizedType {
    if name.ends_with("_rng") {
        UnsizedType::Vector
    } else if name.contains("_solve") {
        UnsizedType::Tuple(vec![UnsizedType::Vector, UnsizedType::Matrix])
    } else {
        UnsizedType::Real
    }
}

/// The arguments that were not looked at yet.
struct Rest<'a> {
    args: &'a [Expr],
    values: &'a [Value],
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> (&'a [Expr], &'a [Value]) {
        let count = count.min(self.args.len());
        let taken = (&self.args[..count], &self.values[..count]);
        (self.args, self.values) = (&self.args[count..], &self.values[count..]);
        taken
    }
}

impl Checker {
    /// `laplace_marginal(likelihood, (args), hessian_block_size, covariance, (args))` and its kin.
    pub(super) fn laplace(&mut self, name: &Name, args: &[Expr], values: &[Value], span: Span) -> Option<Value> {
        let mut rest = Rest { args, values };
        let wanted = likelihood(&name.text);
        if wanted.is_empty() {
            let latent = Parameter { data_only: false, ty: Type::Value(UnsizedType::Vector) };
            let function = self.forwarded(name, &mut rest, span, &[latent], &UnsizedType::Real)?;
            self.second_order.push(function);
        } else {
            let (of, given) = rest.take(wanted.len());
            if let Err(mismatch) = arguments_fit(Depth::Call, &wanted, given) {
                let at = match mismatch {
                    Mismatch::Argument { at, .. } => of[at].span,
                    Mismatch::Count { .. } => name.span,
                };
                let message = format!("the likelihood of `{}` does not take these arguments", name.text);
                return self.error("E2311", message, at, mismatch.describe(0));
            }
        }
        self.hessian_block_size(name, &mut rest)?;
        self.forwarded(name, &mut rest, span, &[], &UnsizedType::Matrix)?;
        self.controls(name, rest.args, rest.values)?;
        self.record_library(name);
        let ty = result(&name.text);
        Some(Value::new(ty.clone(), call_level(&ty, values)))
    }

    fn hessian_block_size(&mut self, name: &Name, rest: &mut Rest<'_>) -> Option<()> {
        let message = format!("`{}` wants the size of the blocks of the Hessian, a data-only int", name.text);
        match rest.take(1) {
            ([_], [Value { ty: Type::Value(UnsizedType::Int), level: Level::Data }]) => Some(()),
            ([arg], [value]) => self.error("E2311", message, arg.span, format!("this is {}", value.ty)),
            _ => self.error("E2311", message, name.span, "it is missing here"),
        }
    }

    fn controls(&mut self, name: &Name, args: &[Expr], values: &[Value]) -> Option<()> {
        let tolerances = name.text.contains("_tol");
        match (tolerances, args, values) {
            (false, [], _) => Some(()),
            (true, [arg], [value]) => {
                let Type::Value(UnsizedType::Tuple(types)) = &value.ty else {
                    let message = format!("the last argument of `{}` is a tuple of controls", name.text);
                    return self.error("E2311", message, arg.span, format!("this is {}", value.ty));
                };
                let given = parts(types, &value.level);
                arguments_fit(Depth::Call, &controls(), &given).map_err(|mismatch| mismatch.describe(0)).map_or_else(
                    |why| {
                        let message = format!("the controls of `{}` do not fit", name.text);
                        self.error("E2311", message, arg.span, why)
                    },
                    |_| Some(()),
                )
            }
            (true, [], _) => {
                let message = format!("`{}` wants a tuple of 6 controls at the end", name.text);
                self.error("E2311", message, name.span, "it is missing here")
            }
            (_, [.., arg], _) => {
                let message = format!("too many arguments of `{}`", name.text);
                let error = Diagnostic::error("E2311", message, arg.span, "this is not wanted");
                self.report(if tolerances { error } else { error.with_help("controls go to the `_tol` function") });
                None
            }
        }
    }

    /// A function and the tuple of its arguments: `required` ones come before these. Gives the name of the function.
    fn forwarded(
        &mut self,
        name: &Name,
        rest: &mut Rest<'_>,
        span: Span,
        required: &[Parameter],
        result: &UnsizedType,
    ) -> Option<Name> {
        let ([function, tuple], [_, given]) = rest.take(2) else {
            let message = format!("`{}` wants a function, and a tuple of arguments for it", name.text);
            return self.error("E2311", message, span, "there are too few arguments");
        };
        let ExprKind::Variable(callee) = &function.kind else {
            let message = format!("`{}` wants the name of a function here", name.text);
            return self.error("E2311", message, function.span, "this is none");
        };
        let Type::Value(UnsizedType::Tuple(types)) = &given.ty else {
            let message = format!("the arguments for `{}` must be a tuple", callee.text);
            return self.error("E2311", message, tuple.span, format!("this is {}; a tuple of one is `(x,)`", given.ty));
        };
        if name.text.contains("latent_solve") && !given.level.is_data() {
            let message = format!("the arguments of `{}` must be data only", name.text);
            return self.error("E2311", message, tuple.span, "this may depend on parameters");
        }
        let mut values: Vec<Value> = required.iter().map(super::resolve::given).collect();
        values.extend(parts(types, &given.level));
        let candidates = self.scope.functions(&normalized(&callee.text)).to_vec();
        let fits = candidates.iter().map(|c| callback_fits(c, &values, required, result).map(|cost| (cost, c.clone())));
        let (fitting, refused): (Vec<_>, Vec<_>) = fits.partition(Result::is_ok);
        let best = cheapest(fitting.into_iter().filter_map(Result::ok).collect());
        match (&best[..], refused.into_iter().find_map(Result::err)) {
            ([candidate], _) => {
                self.record_callback(function, candidate);
                Some(callee.clone())
            }
            ([], why) => {
                let message = format!("`{}` cannot be called by `{}` with these arguments", callee.text, name.text);
                let why = why.unwrap_or_else(|| "it is no function of this program".to_owned());
                self.error("E2311", message, callee.span, why)
            }
            (_, _) => {
                let message = format!("several functions `{}` fit equally well", callee.text);
                self.error("E2203", message, callee.span, "none is better than the others")
            }
        }
    }
}

fn parts(types: &[UnsizedType], level: &Level) -> Vec<Value> {
    let level = |at: usize| match level {
        Level::Tuple(levels) => levels.get(at).cloned().unwrap_or(Level::Data),
        other => other.clone(),
    };
    types.iter().enumerate().map(|(at, ty)| Value::new(ty.clone(), level(at))).collect()
}

fn callback_fits(
    candidate: &Candidate,
    values: &[Value],
    required: &[Parameter],
    result: &UnsizedType,
) -> Result<usize, String> {
    let function = &candidate.function;
    if function.result.as_ref() != Some(result) {
        let found = function.result.as_ref().map_or("void".to_owned(), spelled);
        return Err(format!("it must give {}, but gives {found}", spelled(result)));
    }
    if function.suffix != Suffix::Plain {
        return Err(format!("it must be {}, but is {}", Suffix::Plain.describe(), function.suffix.describe()));
    }
    let own = &function.params[..required.len().min(function.params.len())];
    if let Some(at) = (0..required.len()).find(|at| own.get(*at) != Some(&required[*at])) {
        return Err(format!("its parameter {} must be {}", at + 1, required[at].ty));
    }
    arguments_fit(Depth::Call, &function.params, values).map_err(|mismatch| match mismatch {
        Mismatch::Argument { at, why: Why::NotData } if at >= required.len() => {
            format!("its parameter {} is `data`, but what it is given is not", at + 1)
        }
        mismatch => mismatch.describe(required.len()),
    })
}
