//! Reads the signature of a model: which parameters it has, by which transforms, and everything that is wrong with it.

use crate::base::{Diagnostic, SourceMap, Span};
use crate::check::names::closest;
use crate::syntax::ast::{
    Constraint, Constraints, EntryKind, Expr, ExprKind, ModelDecl, Name, StmtKind, TypeExpr, TypeKind,
};

use super::dims::{Carriers, Words, carriers, extents};
use super::make::{At, product};
use super::reads::{bound, reads};
use super::transforms::{STANS, Transform, WHOLE};

/// A parameter of a model.
#[derive(Clone, Copy)]
pub(super) struct Parameter<'a> {
    pub(super) name: &'a Name,
    pub(super) ty: &'a TypeExpr,
    /// Its extents.
    pub(super) extents: &'a [Expr],
    pub(super) transform: Transform<'a>,
    /// Where its constraints stand, or its type.
    pub(super) span: Span,
}

/// What is computed of parameters; no value where it has an error.
#[derive(Clone, Copy)]
pub(super) struct Computed<'a> {
    pub(super) name: &'a Name,
    pub(super) ty: Option<&'a TypeExpr>,
    pub(super) value: Option<&'a Expr>,
}

/// What a model makes of parameters and data, in the order of the signature.
#[derive(Clone, Copy)]
pub(super) enum Entry<'a> {
    Parameter(Parameter<'a>),
    Computed(Computed<'a>),
}

/// A signature that was read.
pub(super) struct Signature<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    pub(super) data: Vec<(&'a Name, &'a TypeExpr)>,
    /// Names that `generated` binds at its outermost level.
    pub(super) generated: Vec<&'a Name>,
}

/// What carries dimensions that nothing else tells.
pub(super) struct AllCarriers {
    /// To the functions of constrained values.
    pub(super) by_value: Carriers,
    /// To those of unconstrained numbers.
    pub(super) of_numbers: Carriers,
}

impl Signature<'_> {
    /// What the functions of a model take besides its data.
    pub(super) fn carriers(&self, decl: &ModelDecl, words: &Words<'_>) -> AllCarriers {
        let parameters = || {
            self.entries.iter().filter_map(|entry| match entry {
                Entry::Parameter(parameter) => Some(parameter),
                Entry::Computed(_) => None,
            })
        };
        let data: Vec<&Expr> = self.data.iter().flat_map(|(_, ty)| extents(ty)).collect();
        let state: Vec<Expr> =
            parameters().map(|p| product(At(p.span), &p.transform.free(p.span, p.extents).0)).collect();
        let values: Vec<&Expr> = data.iter().copied().chain(parameters().flat_map(|p| p.extents)).collect();
        AllCarriers { by_value: carriers(decl, words, &values, &[]), of_numbers: carriers(decl, words, &data, &state) }
    }
}

/// Reads what stands in a signature.
pub(super) struct Reader<'a> {
    pub(super) decl: &'a ModelDecl,
    pub(super) sources: &'a SourceMap,
    pub(super) found: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    fn error(&mut self, code: &'static str, message: String, span: Span, label: &str, help: impl Into<String>) {
        self.found.push(Diagnostic::error(code, message, span, label).with_help(help.into()));
    }

    fn text(&self, span: Span) -> &'a str {
        &self.sources.file(span.file).text[span.start as usize..span.end as usize]
    }

    pub(super) fn read(&mut self) -> Signature<'a> {
        let decl = self.decl;
        let (mut entries, mut data) = (Vec::new(), Vec::new());
        let generated = self.quantities();
        self.distinct(&generated);
        for (at, entry) in decl.entries.iter().enumerate() {
            if decl.entries[..at].iter().any(|other| other.name.text == entry.name.text) {
                continue;
            }
            let name = &entry.name;
            match &entry.kind {
                EntryKind::Data { ty, constraints } => {
                    if let Some(constraints) = constraints {
                        let message = format!("`{}` is given: only a parameter has constraints", name.text);
                        let help = format!("say what it must be in the body: `assert({} …)`", name.text);
                        self.error("E1010", message, constraints.span, "behind data", help);
                    }
                    data.push((name, ty));
                }
                EntryKind::Computed { ty, value } => {
                    let late = self.reads_later(at, value, "its value");
                    let value = (!late).then_some(value);
                    entries.push(Entry::Computed(Computed { name, ty: ty.as_ref(), value }));
                }
                EntryKind::Parameter { ty, constraints } => {
                    let extents = self.extents(name, ty);
                    let constraints = constraints.as_ref();
                    let mut transform = constraints.map_or(Transform::Free, |list| self.transform(name, list, extents));
                    let late = transform.bounds().into_iter().filter(|bound| self.reads_later(at, bound, "its bound"));
                    if late.count() > 0 {
                        transform = Transform::Free;
                    }
                    let span = constraints.map_or(ty.span, |list| list.span);
                    let extents = extents.unwrap_or(&[]);
                    entries.push(Entry::Parameter(Parameter { name, ty, extents, transform, span }));
                }
            }
        }
        Signature { entries, data, generated }
    }

    /// What `generated` binds; reports what a block of quantities cannot end with.
    fn quantities(&mut self) -> Vec<&'a Name> {
        let Some(block) = &self.decl.generated else { return vec![] };
        if let Some(tail) = &block.tail {
            let help = "name it: `let x = …;` makes a quantity `x` of every draw";
            self.error("E1011", "`generated` gives what it names, and no value".into(), tail.span, "a value", help);
        }
        let mut names: Vec<&Name> = Vec::new();
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Let { pattern, .. } => {
                    names.extend(bound(pattern).into_iter().filter(|name| !name.text.starts_with('_')));
                }
                StmtKind::Return(_) => {
                    let help = "leave it out: the quantities are what `generated` names by `let`";
                    self.error("E1011", "`generated` cannot return".into(), stmt.span, "it gives no value", help);
                }
                _ => {}
            }
        }
        names
    }

    /// Reports entries and quantities of one name.
    fn distinct(&mut self, generated: &[&'a Name]) {
        let all: Vec<&Name> = self.decl.entries.iter().map(|e| &e.name).chain(generated.iter().copied()).collect();
        for (at, name) in all.iter().enumerate() {
            if let Some(first) = all[..at].iter().find(|other| other.text == name.text) {
                let message = format!("`{}` stands twice in the model `{}`", name.text, self.decl.name.text);
                let error = Diagnostic::error("E1006", message, name.span, "again here");
                let error = error.with_label(first.span, "first here");
                self.found.push(error.with_help("give one of them another name: they are outputs of the model"));
            }
        }
    }

    /// The extents of the type of a parameter, which is real.
    fn extents(&mut self, name: &Name, ty: &'a TypeExpr) -> Option<&'a [Expr]> {
        if let TypeKind::Named { path, dims } = &ty.kind
            && path.module.is_none()
            && &*path.name.text == "real"
        {
            return Some(dims);
        }
        let message = format!("the parameter `{}` is {}", name.text, self.text(ty.span));
        let help = "parameters are reals and arrays of them; sum over what an int may be, and mark data `shared`";
        self.error("E1004", message, ty.span, "not real", help);
        None
    }

    /// Reports a name that is bound later, or by the entry itself; says whether there is one.
    fn reads_later(&mut self, at: usize, expr: &'a Expr, what: &str) -> bool {
        let later = &self.decl.entries[at..];
        let is_data = |name: &Name| {
            let entry = later.iter().find(|entry| entry.name.text == name.text)?;
            Some((matches!(entry.kind, EntryKind::Data { .. }), entry.name.span))
        };
        let found = reads(expr).into_iter().find_map(|name| match is_data(name) {
            Some((false, declared)) => Some((name, declared)),
            _ => None,
        });
        let Some((name, declared)) = found else { return false };
        let of = &self.decl.entries[at].name.text;
        let message = match name.text == *of {
            true => format!("`{of}` is needed for {what}"),
            false => format!("`{of}` stands before `{}`, which {what} reads", name.text),
        };
        let error = Diagnostic::error("E1005", message, name.span, "not known yet").with_label(declared, "it is here");
        let help = format!("put `{of}` behind what it depends on");
        self.found.push(if name.text == *of { error } else { error.with_help(help) });
        true
    }

    /// The transform that constraints ask for.
    fn transform(&mut self, of: &Name, list: &'a Constraints, extents: Option<&[Expr]>) -> Transform<'a> {
        let mut ok = !list.list.is_empty();
        if !ok {
            let help = "write `<lower = 0>`, or leave the brackets out";
            self.error("E1002", "there is no constraint between the brackets".into(), list.span, "empty", help);
        }
        for (i, constraint) in list.list.iter().enumerate() {
            ok &= self.known(constraint);
            if list.list[..i].iter().any(|other| other.name.text == constraint.name.text) {
                let message = format!("`{}` stands twice", constraint.name.text);
                self.error("E1003", message, constraint.name.span, "again here", "remove one of them");
                ok = false;
            }
        }
        if !ok {
            return Transform::Free;
        }
        let value = |name: &str| list.list.iter().find(|c| &*c.name.text == name).and_then(|c| c.value.as_ref());
        let whole = list.list.iter().find_map(|c| WHOLE.iter().find(|whole| whole.name == &*c.name.text));
        let transform = match (value("lower"), value("upper"), value("offset"), value("multiplier"), whole) {
            (None, None, None, None, Some(whole)) if list.list.len() == 1 => Transform::Whole(whole),
            (Some(lower), None, None, None, None) => Transform::Lower(lower),
            (None, Some(upper), None, None, None) => Transform::Upper(upper),
            (Some(lower), Some(upper), None, None, None) => Transform::Between(lower, upper),
            (None, None, offset, multiplier, None) => Transform::Scaled { offset, multiplier },
            _ => {
                let message = format!("the constraints {} do not go together", self.text(list.span));
                let help =
                    "`lower` and `upper` go together, and `offset` and `multiplier`; every other one stands alone";
                self.error("E1003", message, list.span, "a parameter has one transform", help);
                return Transform::Free;
            }
        };
        match extents {
            Some(extents) if !self.fits(of, transform, extents, list.span) => Transform::Free,
            _ => transform,
        }
    }

    /// Whether there is such a constraint, with a value where it needs one.
    fn known(&mut self, constraint: &Constraint) -> bool {
        let name = &*constraint.name.text;
        let valued = ["lower", "upper", "offset", "multiplier"].contains(&name);
        let whole = WHOLE.iter().any(|whole| whole.name == name);
        match (&constraint.value, valued, whole) {
            (Some(_), true, _) | (None, _, true) => true,
            (None, true, _) => {
                let message = format!("`{name}` has no value");
                self.error("E1002", message, constraint.name.span, "which one?", format!("write `{name} = 0`"));
                false
            }
            (Some(value), _, true) => {
                let message = format!("`{name}` takes no value");
                self.error("E1002", message, value.span, "not needed", format!("write `<{name}>`"));
                false
            }
            _ => {
                let names =
                    || ["lower", "upper", "offset", "multiplier"].into_iter().chain(WHOLE.iter().map(|w| w.name));
                let help = match STANS.iter().find(|(stan, _)| *stan == name) {
                    Some((_, here)) => format!("Stan's `{name}` is `{here}` here"),
                    None => match closest(name, names()) {
                        Some(guess) => format!("did you mean `{guess}`?"),
                        None => format!("there is {}", names().collect::<Vec<_>>().join(", ")),
                    },
                };
                self.error("E1001", format!("there is no constraint `{name}`"), constraint.name.span, "unknown", help);
                false
            }
        }
    }

    /// Whether a constraint of vectors or matrices stands behind such a type.
    fn fits(&mut self, of: &Name, transform: Transform<'_>, extents: &[Expr], span: Span) -> bool {
        let Transform::Whole(whole) = transform else { return true };
        let differ = |a: &Expr, b: &Expr| match (&a.kind, &b.kind) {
            (ExprKind::Int(a), ExprKind::Int(b)) => a != b,
            (ExprKind::Path(a), ExprKind::Path(b)) => a.name.text != b.name.text,
            _ => false,
        };
        let square = |extents: &[Expr]| !differ(&extents[extents.len() - 2], &extents[extents.len() - 1]);
        if extents.len() >= whole.rank && (!whole.square || square(extents)) {
            return true;
        }
        let example = match (whole.rank, whole.square) {
            (1, _) => format!("a vector: `{}: real[K]<{}>`", of.text, whole.name),
            (_, true) => format!("a square matrix: `{}: real[K, K]<{}>`", of.text, whole.name),
            _ => format!("a matrix: `{}: real[N, K]<{}>`", of.text, whole.name),
        };
        let message = format!("`{}` is of the wrong size for `{}`", of.text, whole.name);
        let help = format!("it is a constraint of {example}, with more axes before for an array of them");
        self.error("E1007", message, span, "behind this type", help);
        false
    }
}
