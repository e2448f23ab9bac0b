//! What the checker finds in the functions that a model becomes, in the words of the model, and once.

use crate::base::{Diagnostic, DiagnosticCode, FileId, SourceMap, Span};
use crate::check::body::Body;
use crate::check::context::Checker;
use crate::hir::{Dim, Expr, FnId, StructId, Ty};
use crate::types::DType;

use super::Role;

impl Checker<'_> {
    /// What a function is to the model that it comes from.
    pub(in crate::check) fn role(&self, id: FnId) -> Option<Role> {
        let def = &self.fns[id];
        self.modules[def.module].made.get(&def.item).copied().filter(|_| def.rule.is_none())
    }

    /// Checks the functions of models, before all others: they say which types the fields of their results have.
    pub(in crate::check) fn check_models(&mut self) {
        let made: Vec<FnId> = self.fns.ids().filter(|id| self.role(*id).is_some()).collect();
        for id in made {
            self.told_of_model(|checker| checker.check_fn(id));
        }
    }

    /// Does something with a function of a model; what it finds is told in the words of the model, unless it was before.
    pub(in crate::check) fn told_of_model<T>(&mut self, check: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.diagnostics.len();
        let result = check(self);
        for diagnostic in self.diagnostics.split_off(before) {
            let diagnostic = in_words_of_models(diagnostic, self.sources);
            // A constraint stands in several functions, in each in another way.
            let place = |d: &Diagnostic| (d.code, d.labels.first().map(|label| label.span));
            let known = |d: &Diagnostic| *d == diagnostic || (d.code.0 == "E1014" && place(d) == place(&diagnostic));
            // That calls among its functions do not determine a dimension either is nothing new.
            let follows = |d: &Diagnostic| {
                let dimension = d.message.strip_prefix("nothing has the dimension ");
                let told = |name: &str| diagnostic.message.starts_with(&format!("the dimension {name} of "));
                d.code.0 == "E1013" && diagnostic.code.0 == "E0306" && dimension.is_some_and(told)
            };
            if !self.diagnostics.iter().any(|d| known(d) || follows(d)) {
                self.diagnostics.push(diagnostic);
            }
        }
        result
    }

    /// The types of the fields of a struct that a model makes: those of its first value.
    pub(in crate::check) fn infer_fields(&mut self, id: StructId, values: &[Expr]) {
        let leaves = values.iter().map(|value| self.leaves(&value.ty)).sum::<usize>();
        let def = &mut self.structs[id];
        def.leaves = leaves + 1;
        for ((_, ty), value) in def.fields.iter_mut().zip(values) {
            *ty = Some(value.ty.clone());
        }
    }
}

impl Body<'_, '_> {
    /// The first value of a struct that a model makes: all its dimensions are those of the model.
    pub(in crate::check) fn infer_struct(&mut self, id: StructId, values: &[Expr]) -> Vec<Dim> {
        self.cx.infer_fields(id, values);
        self.cx.structs[id].dims.ids().map(Dim::param).collect()
    }

    /// Reports a body of a model that gives something else than a log density. True where it gives one.
    pub(in crate::check) fn is_log_density(&mut self, body: &Expr, span: Span) -> bool {
        if matches!(body.ty, Ty::Never | Ty::Scalar(DType::Real | DType::Int)) {
            return true;
        }
        let message = format!("the body of the model `{}` gives its log density, a real", self.name);
        let unit = body.ty.is_unit();
        let end = Span { start: span.end.saturating_sub(1).max(span.start), ..span };
        let (span, label) = match unit {
            true => (end, "it ends without a value".to_owned()),
            false => (super::super::body::value_span(body), format!("this is {}", self.show(&body.ty))),
        };
        let help = match &body.ty {
            Ty::Array(..) => "add up its elements: `sum(…)`",
            _ if unit => "end with the log density, without a semicolon: `normal_lpdf(y, mu, sigma)`",
            _ => "end with the log density",
        };
        self.cx.report(Diagnostic::error("E1008", message, span, label).with_help(help));
        false
    }
}

/// What is said of made text as it is to the user.
fn in_words_of_models(mut found: Diagnostic, sources: &SourceMap) -> Diagnostic {
    let Some(first) = found.labels.first().map(|label| label.span) else { return found };
    let text = |span: Span| &sources.file(span.file).text[span.start as usize..span.end as usize];
    let transform = ["_constrain`", "_log_jacobian`", "_unconstrain`"].iter().any(|end| found.message.contains(end));
    if found.code.0 == "E0118" {
        let name = text(first);
        found.code = DiagnosticCode("E1013");
        found.message = format!("nothing has the dimension `{name}`");
        found.labels[0].message = "no parameter and no data".to_owned();
        found.help = Some(format!("leave it out, or let something have it as an extent, such as `x: real[{name}]`"));
    } else if transform || text(first).starts_with('<') {
        // No expression of a user begins with this sign: the place is that of constraints.
        let said = if transform { String::new() } else { std::mem::take(&mut found.message) };
        let constraints = text(first).strip_prefix('<').map(|_| format!(" `{}`", text(first)));
        found.code = DiagnosticCode("E1014");
        found.message = format!("the constraint{} does not fit its parameter", constraints.unwrap_or_default());
        if !said.is_empty() {
            found.labels[0].message = said;
        }
        let own: FileId = first.file;
        let mut labels = std::mem::take(&mut found.labels).into_iter();
        found.labels.extend(labels.next());
        found.labels.extend(labels.filter(|label| label.span.file == own && label.span != first));
        found.help = Some("a bound is a real, one for all elements or an array of the parameter's shape".to_owned());
    }
    found
}
