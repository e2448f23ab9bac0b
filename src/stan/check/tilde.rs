//! `y ~ normal(mu, sigma) T[a, b];`

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{Expr, Name, Truncation, UnsizedType};

use super::context::Checker;
use super::resolve::{Candidate, Resolution, Value, resolve};
use super::{Called, laplace};

impl Checker {
    pub(super) fn tilde(
        &mut self,
        value: &Expr,
        distribution: &Name,
        args: &[Expr],
        truncation: Option<&Truncation>,
        span: Span,
    ) {
        let first = self.expr(value);
        let rest = self.exprs(args);
        let bounds = truncation.map(|truncation| self.bounds(truncation));
        if !self.at.has_target() {
            let message = "`~` outside `model` and functions that end in `_lp`";
            self.error::<()>("E2401", message, span, "here is no log density to add to");
        }
        self.check_name(distribution);
        if !self.is_distribution(distribution, span) {
            return;
        }
        let (Some(first), Some(rest)) = (first, rest) else { return };
        let mut values = vec![first];
        values.extend(rest);
        self.distribution(value, distribution, args, &values, span);
        if let Some((Some(bounds), truncation)) = bounds.zip(truncation) {
            self.truncated(distribution, &bounds, &values[1..], (truncation.span, span));
        }
    }

    /// Names with a suffix are no distributions.
    fn is_distribution(&mut self, name: &Name, whole: Span) -> bool {
        let suffix = ["_lpdf", "_lpmf", "_lupdf", "_lupmf"].into_iter().find(|suffix| name.text.ends_with(suffix));
        let error = if let Some(stem) = suffix.and_then(|suffix| name.text.strip_suffix(suffix)) {
            let error = Diagnostic::error("E2409", format!("`{}` after `~`", name.text), name.span, "it has a suffix");
            self.report(error.with_help(format!("write `y ~ {stem}(…)`")));
            return false;
        } else if name.text.ends_with("_cdf") || name.text.ends_with("_ccdf") {
            let log = name.text.replace("_ccdf", "_lccdf").replace("_cdf", "_lcdf");
            let message = format!("`{}` is no distribution for `~`", name.text);
            let error = Diagnostic::error("E2409", message, name.span, "it is a probability");
            error.with_help(format!("write `target += {log}(y | …);`"))
        } else {
            return true;
        };
        self.report_in(error, whole);
        false
    }

    /// Finds `foo_lpmf` or `foo_lpdf`, whichever takes the arguments.
    fn distribution(&mut self, value: &Expr, name: &Name, args: &[Expr], values: &[Value], span: Span) {
        let candidates = ["_lpmf", "_lpdf"].map(|suffix| {
            let stem = format!("{}{suffix}", name.text);
            let own = self.scope.functions(&stem).to_vec();
            let known = self.is_function(&stem);
            (resolve(&stem, &own, values), stem, known)
        });
        let known: Vec<_> = candidates.into_iter().filter(|(.., known)| *known).collect();
        self.warn_deprecated(name);
        let best = known.into_iter().min_by_key(|(resolution, ..)| match resolution {
            Resolution::Unique(_) => (0, 0),
            Resolution::Ambiguous(_) => (1, 0),
            Resolution::None { nearest, .. } => (2, usize::MAX - nearest.len()),
        });
        let all: Vec<Expr> = std::iter::once(value).chain(args).cloned().collect();
        match best {
            Some((Resolution::Unique(candidate), stem, _)) => self.record_density(name, &stem, &candidate),
            Some((resolution, stem, _)) => {
                let named = Name { text: stem.into(), span: name.span };
                self.unresolved((&named, span), &all, values, &resolution);
            }
            None if laplace::is_laplace(&format!("{}_lpmf", name.text)) => {
                let named = Name { text: format!("{}_lupmf", name.text).into(), span: name.span };
                self.laplace(&named, &all, values, span);
            }
            None => self.unknown_distribution(name),
        }
    }

    fn record_density(&mut self, name: &Name, stem: &str, candidate: &Candidate) {
        self.record(name, stem, candidate);
        if let Some(Called { unnormalized, .. }) = self.checked.calls.get_mut(&name.span) {
            *unnormalized = true;
        }
    }

    fn unknown_distribution(&mut self, name: &Name) {
        let message = format!("unknown distribution `{}`", name.text);
        let label = format!("there is no `{}_lpdf` and no `{}_lpmf`", name.text, name.text);
        let error = Diagnostic::error("E2110", message, name.span, label);
        let own = self.scope.function_names().chain(super::signatures::library().names());
        let mut stems: Vec<&str> =
            own.filter_map(|n| n.strip_suffix("_lpdf").or_else(|| n.strip_suffix("_lpmf"))).collect();
        stems.sort_unstable();
        let guess = crate::base::names::closest(&name.text, stems.into_iter());
        let error = match guess {
            Some(guess) => error.with_help(format!("did you mean `{guess}`?")),
            None => error,
        };
        self.report(error);
    }

    /// The bounds of a truncation; `None` when one has an error.
    fn bounds(&mut self, truncation: &Truncation) -> Option<Vec<Value>> {
        let written = [truncation.lower.as_ref(), truncation.upper.as_ref()];
        let bounds: Vec<Option<Value>> =
            written.into_iter().flatten().map(|bound| self.number(bound, "the bound of a truncation")).collect();
        bounds.into_iter().collect()
    }

    /// Truncation divides by a probability: the distribution has to have it.
    fn truncated(&mut self, name: &Name, bounds: &[Value], args: &[Value], (at, whole): (Span, Span)) {
        for bound in bounds {
            let values: Vec<Value> = std::iter::once(bound).chain(args).cloned().collect();
            for suffix in ["_lcdf", "_lccdf"] {
                let stem = format!("{}{suffix}", name.text);
                let own = self.scope.functions(&stem).to_vec();
                let found = matches!(
                    resolve(&stem, &own, &values),
                    Resolution::Unique(candidate) if candidate.function.result == Some(UnsizedType::Real)
                );
                if !found {
                    let given: Vec<String> = values.iter().map(|value| value.ty.to_string()).collect();
                    let message = format!("`{}` cannot be truncated here", name.text);
                    let label = format!("there is no `{stem}({})`", given.join(", "));
                    let error = Diagnostic::error("E2408", message, at, label);
                    let help = "`_lcdf` and `_lccdf` are needed, of the bound and the arguments";
                    self.report_in(error.with_help(help), whole);
                    return;
                }
            }
        }
    }
}
