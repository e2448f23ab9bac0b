//! Calls: which function is meant, and whether it may be called here.

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{Expr, Name, UnsizedType};

use super::context::{Checker, is_unnormalized, normalized};
use super::resolve::{Candidate, Mismatch, Resolution, Value, resolve};
use super::scope::BlockName;
use super::types::{Level, Suffix, Type, is_discrete};
use super::{Called, CalledFunction};

/// Endings of functions whose first argument is divided from the others by a bar.
const CONDITIONING: [&str; 7] = ["_lpdf", "_lupdf", "_lupmf", "_lpmf", "_cdf", "_lcdf", "_lccdf"];

/// Whether the first argument of a function is divided from the others by a bar.
pub(super) fn is_conditioning(name: &str) -> bool {
    CONDITIONING.iter().any(|suffix| name.ends_with(suffix))
}

impl Checker {
    /// `f(x)`, `f(y | x)`
    pub(super) fn call(&mut self, name: &Name, args: &[Expr], bar: bool, span: Span) -> Option<Value> {
        let values = self.exprs(args);
        self.check_bar(name, args, bar);
        self.check_place(name, values.as_deref());
        let values = values?;
        if super::variadic::signature(&name.text).is_some() {
            return self.variadic(name, args, &values);
        }
        if super::variadic::is_reduce_sum(&name.text) {
            return self.reduce_sum(name, args, &values);
        }
        if super::laplace::is_laplace(&normalized(&name.text)) {
            return self.laplace(name, args, &values, span);
        }
        let candidate = self.resolved(name, args, &values, span)?;
        match &candidate.function.result {
            Some(ty) => Some(Value::new(ty.clone(), call_level(ty, &values))),
            None => {
                let message = format!("`{}` gives nothing", name.text);
                let error = Diagnostic::error("E2306", message, name.span, "a value is wanted here");
                self.report(error.with_help(format!("call it as a statement: `{}(…);`", name.text)));
                None
            }
        }
    }

    /// `f(x);`
    pub(super) fn call_stmt(&mut self, name: &Name, args: &[Expr], span: Span) {
        self.check_name(name);
        let values = self.exprs(args);
        self.check_place(name, values.as_deref());
        let Some(values) = values else { return };
        let special = super::variadic::is_special(&normalized(&name.text));
        let result = if special { None } else { self.resolved(name, args, &values, span) };
        if special || result.is_some_and(|candidate| candidate.function.result.is_some()) {
            let message = format!("what `{}` gives is not used", name.text);
            let error =
                Diagnostic::error("E2307", message, name.span, "only functions that give nothing are statements");
            self.report(error.with_help(format!("assign it, or add it: `target += {}(…);`", name.text)));
        }
    }

    /// The function that a name means with these arguments. It is recorded.
    pub(super) fn resolved(&mut self, name: &Name, args: &[Expr], values: &[Value], span: Span) -> Option<Candidate> {
        self.warn_deprecated(name);
        self.check_name(name);
        let stem = normalized(&name.text);
        if let Some(local) = self.scope.variable(&stem)
            && !super::signatures::library().has(&stem)
        {
            let message = format!("`{}` is a variable", name.text);
            let error = Diagnostic::error("E2105", message, name.span, "a function is wanted here");
            self.report(error.with_label(local.at, "it is declared here"));
            return None;
        }
        if !self.is_function(&stem) {
            self.unknown_function(name);
            return None;
        }
        let own = self.scope.functions(&stem).to_vec();
        match resolve(&stem, &own, values) {
            Resolution::Unique(candidate) => {
                self.record(name, &stem, &candidate);
                Some(candidate)
            }
            resolution => {
                self.unresolved((name, span), args, values, &resolution);
                None
            }
        }
    }

    /// Records which function a name means.
    pub(super) fn record(&mut self, name: &Name, stem: &str, candidate: &Candidate) {
        let params = || candidate.function.params.iter().filter_map(|param| param.ty.value().cloned());
        let function = match candidate.user {
            Some((index, _)) => CalledFunction::User(index),
            None => {
                let params: Vec<UnsizedType> = params().collect();
                self.warn_lacking(name, stem, &params);
                CalledFunction::Library { name: stem.into(), params }
            }
        };
        let unnormalized = is_unnormalized(&name.text);
        self.checked.calls.insert(name.span, Called { function, unnormalized });
    }

    /// Says that no function, or more than one, takes the arguments.
    pub(super) fn unresolved(
        &mut self,
        (name, whole): (&Name, Span),
        args: &[Expr],
        values: &[Value],
        resolution: &Resolution,
    ) {
        let given: Vec<String> = values.iter().map(|value| value.ty.to_string()).collect();
        let given = given.join(", ");
        let error = match resolution {
            Resolution::Unique(_) => return,
            Resolution::Ambiguous(candidates) => {
                let message = format!("`{}({given})` fits several functions equally well", name.text);
                let error = Diagnostic::error("E2203", message, name.span, "none is better than the others");
                let error = candidates.iter().fold(error, |error, c| error.with_note(c.function.to_string()));
                error.with_help("define one for exactly these types, or convert an argument")
            }
            Resolution::None { nearest, more } => {
                let message = format!("`{}` does not take ({given})", name.text);
                let (span, label) = match nearest.first() {
                    Some((_, Mismatch::Argument { at, .. })) if nearest.len() == 1 => (args[*at].span, "this one"),
                    _ => (name.span, "nothing of this name takes them"),
                };
                let error = Diagnostic::error("E2202", message, span, label);
                let row = |error: Diagnostic, (c, why): &(Candidate, Mismatch)| {
                    error.with_note(format!("{}: {}", c.function, why.describe(0)))
                };
                let error = nearest.iter().fold(error, row);
                let error = if *more { error.with_note("there are more signatures") } else { error };
                match nearest.first().and_then(|(_, why)| advice(why)) {
                    Some(help) => error.with_help(help),
                    None => error,
                }
            }
        };
        self.report_in(error, whole);
    }

    fn unknown_function(&mut self, name: &Name) {
        let message = format!("unknown function `{}`", name.text);
        let error = Diagnostic::error("E2102", message, name.span, "neither the program nor Stan's library has it");
        let help = self.other_suffix(&name.text).or_else(|| self.with_suffix(&name.text));
        let help = help.or_else(|| self.did_you_mean(&name.text, true));
        self.report(match help {
            Some(help) => error.with_help(help),
            None => error,
        });
    }

    /// The same distribution with the suffix that it has.
    fn other_suffix(&self, name: &str) -> Option<String> {
        let (stem, suffix) = name.rsplit_once('_')?;
        let other = match suffix {
            "lpdf" | "lupdf" => "lpmf",
            "lpmf" | "lupmf" => "lpdf",
            "log" => return self.with_suffix(stem),
            "cdf" | "lcdf" | "lccdf" | "rng" if self.with_suffix(stem).is_some() => {
                return Some(format!("`{stem}` has no `_{suffix}`"));
            }
            _ => return None,
        };
        let found = format!("{stem}_{other}");
        self.is_function(&found).then(|| format!("`{stem}` is a distribution of other values: use `{found}`"))
    }

    fn check_bar(&mut self, name: &Name, args: &[Expr], bar: bool) {
        if bar && !is_conditioning(&name.text) {
            let error =
                Diagnostic::error("E2406", format!("`|` in a call of `{}`", name.text), name.span, "no density");
            self.report(
                error.with_help("`|` stands in calls of functions that end in `_lpdf`, `_lpmf`, `_cdf` and their kin"),
            );
        } else if !bar && is_conditioning(&name.text) && args.len() > 1 {
            let message = format!("a call of `{}` without `|`", name.text);
            let error =
                Diagnostic::error("E2405", message, name.span, "it is given the first argument under the others");
            self.report(error.with_help(format!("write `{}(y | …)`", name.text)));
        }
    }

    /// Whether a function with this suffix may be called here.
    fn check_place(&mut self, name: &Name, args: Option<&[Value]>) {
        match Suffix::of(&name.text) {
            Suffix::Lp => self.check_lp(name),
            Suffix::Jacobian => self.check_jacobian(name, args),
            Suffix::Rng => self.check_rng(name),
            Suffix::Density | Suffix::Mass | Suffix::Plain => self.check_unnormalized(name),
        }
    }

    fn check_lp(&mut self, name: &Name) {
        if self.at.block == BlockName::TransformedParameters {
            let message = format!("`{}` in `transformed parameters`", name.text);
            let warning = Diagnostic::warning("W2106", message, name.span, "Stan 2.40 refuses `_lp` functions here");
            self.report(warning.with_help("write a function that ends in `_jacobian`, with `jacobian +=`"));
        } else if !self.at.has_target() {
            let message = format!("`{}` outside `model` and functions that end in `_lp`", name.text);
            self.error::<()>("E2401", message, name.span, "here is no log density to add to");
        }
    }

    fn check_jacobian(&mut self, name: &Name, args: Option<&[Value]>) {
        if !self.at.has_jacobian() {
            let message =
                format!("`{}` outside `transformed parameters` and functions that end in `_jacobian`", name.text);
            self.error::<()>("E2402", message, name.span, "here is no Jacobian to add to");
        } else if args.is_some_and(|args| args.iter().all(|arg| arg.level.is_data())) {
            let message = format!("`{}` of data alone still adds its Jacobian", name.text);
            let warning = Diagnostic::warning("W2107", message, name.span, "no argument depends on parameters");
            let plain = name.text.strip_suffix("_jacobian").map(|stem| format!("{stem}_constrain"));
            self.report(match plain.filter(|name| self.is_function(name)) {
                Some(plain) => warning.with_help(format!("use `{plain}` for the value alone")),
                None => warning,
            });
        }
    }

    fn check_rng(&mut self, name: &Name) {
        let block = matches!(self.at.block, BlockName::GeneratedQuantities | BlockName::TransformedData);
        let (message, label) = if self.at.in_size {
            (format!("`{}` in a size", name.text), "sizes are no random numbers")
        } else if !block && !self.at.in_function(Suffix::Rng) {
            let places = "`transformed data`, `generated quantities` and functions that end in `_rng`";
            (format!("`{}` outside {places}", name.text), "no random numbers are drawn here")
        } else {
            return;
        };
        self.error::<()>("E2403", message, name.span, label);
    }

    /// Whether the library has a function of this name, of any kind.
    pub(super) fn is_library(&self, name: &str) -> bool {
        super::signatures::library().has(name)
    }
}

/// The level of what a function gives.
pub(super) fn call_level(ty: &UnsizedType, args: &[Value]) -> Level {
    let depends = !is_discrete(ty) && args.iter().any(|arg| !arg.level.is_data());
    let level = if depends { Level::Parameter } else { Level::Data };
    level.for_type(ty)
}

/// What to do about an argument that does not fit.
fn advice(mismatch: &Mismatch) -> Option<String> {
    use super::resolve::Why;
    let Mismatch::Argument { why, .. } = mismatch else { return None };
    match why {
        Why::NotData => Some(
            "local variables count as parameters, and so do parameters of functions without `data` before them".into(),
        ),
        Why::Type { wanted: Type::Value(wanted), found: Type::Value(found) } => convert(wanted, found),
        Why::Type { .. } | Why::Suffix { .. } | Why::Result { .. } | Why::Inputs { .. } => None,
    }
}

fn convert(wanted: &UnsizedType, found: &UnsizedType) -> Option<String> {
    use UnsizedType::{Array, Int, Matrix, Real, RowVector, Vector};
    let name = match (wanted, found) {
        (Vector, Array(inner)) if matches!(**inner, Int | Real) => "to_vector",
        (RowVector, Array(inner)) if matches!(**inner, Int | Real) => "to_row_vector",
        (Vector, RowVector) => "to_vector",
        (RowVector, Vector) => "to_row_vector",
        (Array(inner), Vector | RowVector) if **inner == Real => "to_array_1d",
        (Matrix, Vector | RowVector) => "to_matrix",
        (Int, Real) => return Some("a real is made an int by `to_int(…)`, of data alone".into()),
        _ => return None,
    };
    Some(format!("convert it: `{name}(…)`"))
}
