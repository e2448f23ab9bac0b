//! The left sides of assignments.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::{Diagnostic, Span};
use crate::stan::syntax::ast::{BinaryOp, Expr, ExprKind, Index, Name, UnsizedType};

use super::context::Checker;
use super::operator::{assignable, assigns};
use super::resolve::Value;
use super::types::{Type, promotion, spelled, unwound};
use super::warnings::{is_same, names_in};

/// A part of a variable that is assigned: its name and the positions of parts of tuples on the way.
type Path = (Arc<str>, Vec<u32>);

impl Checker {
    /// `place = value;`, `place += value;`
    pub(super) fn assign(&mut self, place: &Expr, op: Option<BinaryOp>, value: &Expr, span: Span) {
        let target = self.place(place);
        self.check_parts(place);
        if op.is_none() && is_same(place, value) {
            let warning = Diagnostic::warning("W2105", "this assigns a variable to itself", span, "nothing changes");
            self.report(warning);
        }
        let value_of = self.value(value);
        let (Some(target), Some((ty, level))) = (target, value_of) else { return };
        match op {
            None => self.stores(&target, (&ty, value.span), place.span, value.span),
            Some(op) if assigns(op, &target, (&ty, &level)) => {}
            Some(op) => {
                let symbol = op.symbol();
                let message = format!("`{symbol}=` does not take {} and {}", spelled(&target), spelled(&ty));
                let error = Diagnostic::error("E2204", message, value.span, format!("this is {}", spelled(&ty)));
                let error = error.with_label(place.span, spelled(&target));
                let takes = assignable(op, &target);
                let help = if takes.is_empty() {
                    format!("nothing can stand on the right of `{symbol}=` here: write `a = a {symbol} …`")
                } else {
                    format!("the right side may be {}", takes.join(", "))
                };
                self.report(error.with_help(help));
            }
        }
    }

    /// Whether a value of type `ty` can be stored.
    pub(super) fn stores(&mut self, target: &UnsizedType, value: (&UnsizedType, Span), place: Span, whole: Span) {
        let (ty, span) = value;
        if promotion(target, ty).is_some() {
            return;
        }
        let message = format!("{} cannot be assigned to {}", spelled(ty), spelled(target));
        let error = Diagnostic::error("E2204", message, span, format!("this is {}", spelled(ty)));
        let error = error.with_label(place, spelled(target));
        let error = match assigned(target, ty) {
            Some(help) => error.with_help(help),
            None => error,
        };
        self.report_in(error, whole);
    }

    /// The type of a place; `None` when an error was reported.
    fn place(&mut self, place: &Expr) -> Option<UnsizedType> {
        if let ExprKind::Tuple(parts) = &place.kind {
            let types: Vec<Option<UnsizedType>> = parts.iter().map(|part| self.place(part)).collect();
            return Some(UnsizedType::Tuple(types.into_iter().collect::<Option<_>>()?));
        }
        let (value, _) = self.part(place)?;
        self.typed(place.span, &value);
        value.ty.value().cloned()
    }

    /// A part of a variable, and whether indices so far keep an axis.
    fn part(&mut self, place: &Expr) -> Option<(Value, bool)> {
        match &place.kind {
            ExprKind::Variable(name) => Some((self.assigned_variable(name)?, false)),
            ExprKind::Paren(inner) => self.part(inner),
            ExprKind::TupleField { base, index, index_span } => {
                let (base, _) = self.part(base)?;
                Some((self.field(&base, *index, *index_span, place.span)?, false))
            }
            ExprKind::Index { base, indices } => {
                let inner = self.part(base);
                let taken = self.indices(indices);
                let ((inner, several), taken) = (inner?, taken?);
                if several {
                    let label = "these brackets follow those of a slice";
                    let error = Diagnostic::error("E2411", "indices of a slice are assigned", place.span, label);
                    self.report(error.with_help("put all indices into one pair of brackets: `x[a:b, i]`"));
                }
                let value = self.indexed(&inner, &taken, place.span)?;
                Some((value, several || taken.iter().any(|taken| taken.keeps)))
            }
            ExprKind::Error => None,
            _ => self.error("E2204", "only variables and their parts are assigned", place.span, "this is none"),
        }
    }

    fn assigned_variable(&mut self, name: &Name) -> Option<Value> {
        self.check_name(name);
        let Some(local) = self.scope.variable(&name.text).cloned() else {
            if self.is_function(&name.text) || super::variadic::is_special(&name.text) {
                let message = format!("`{}` is a function", name.text);
                return self.error("E2107", message, name.span, "functions are not assigned");
            }
            let message = format!("unknown name `{}`", name.text);
            let error = Diagnostic::error("E2101", message, name.span, "nothing has it");
            let help = self.did_you_mean(&name.text, false);
            self.report(error.with_help(help.unwrap_or_else(|| "declare it first, with its type".to_owned())));
            return None;
        };
        self.means(name);
        if local.global && local.block != self.at.block {
            let message =
                format!("`{}` of block `{}` is assigned in `{}`", name.text, local.block.text(), self.at.block.text());
            let error = Diagnostic::error("E2106", message, name.span, "it can only be read here");
            let error = error.with_label(local.at, "it is declared here");
            self.report(error.with_help("declare another variable for it in this block"));
        } else if let Some(what) = local.fixed {
            let message = format!("`{}` is {what} and cannot be assigned", name.text);
            let error = Diagnostic::error("E2107", message, name.span, "it can only be read");
            let error = error.with_label(local.at, "it is declared here");
            self.report(error.with_help(format!("copy it: `… {}_copy = {};`", name.text, name.text)));
        }
        let ty = local.ty?;
        Some(Value { level: self.level_of(local.block, &ty), ty: Type::Value(ty) })
    }

    /// No part is assigned twice at once, or read in an index on the left.
    fn check_parts(&mut self, place: &Expr) {
        let mut written = Vec::new();
        self.written(place, &mut written);
        let mut seen: BTreeSet<&Path> = BTreeSet::new();
        if let Some((name, _)) = written.iter().find(|path| !seen.insert(path)) {
            let message = format!("`{name}` is assigned twice at once");
            self.error::<()>("E2410", message, place.span, "which value it would have is not known");
        }
        let names: BTreeSet<&str> = written.iter().map(|(name, _)| &**name).collect();
        let mut read = Vec::new();
        read_in(place, &mut read);
        if let Some(name) = read.into_iter().find(|name| names.contains(&*name.text)) {
            let message = format!("`{}` is read on the left of an assignment to it", name.text);
            let error = Diagnostic::error("E2410", message, name.span, "the index is part of what is assigned");
            self.report_in(error.with_help("assign the index to a variable first"), place.span);
        }
    }

    fn written(&self, place: &Expr, into: &mut Vec<Path>) {
        if let ExprKind::Tuple(parts) = &place.kind {
            parts.iter().for_each(|part| self.written(part, into));
            return;
        }
        let mut fields = Vec::new();
        let Some(name) = root(place, &mut fields) else { return };
        match self.checked.types.get(&place.span) {
            Some(typed) => leaves(&typed.ty, &(name.text.clone(), fields), into),
            None => into.push((name.text.clone(), fields)),
        }
    }
}

/// The variable of a place, and the parts of tuples on the way.
fn root<'e>(place: &'e Expr, fields: &mut Vec<u32>) -> Option<&'e Name> {
    match &place.kind {
        ExprKind::Variable(name) => Some(name),
        ExprKind::Index { base, .. } | ExprKind::Paren(base) => root(base, fields),
        ExprKind::TupleField { base, index, .. } => {
            let name = root(base, fields)?;
            fields.push(*index);
            Some(name)
        }
        _ => None,
    }
}

/// All parts that are not tuples.
fn leaves(ty: &UnsizedType, path: &Path, into: &mut Vec<Path>) {
    let UnsizedType::Tuple(parts) = unwound(ty).0 else {
        into.push(path.clone());
        return;
    };
    for (at, part) in parts.iter().enumerate() {
        let mut path = path.clone();
        path.1.push(at as u32 + 1);
        leaves(part, &path, into);
    }
}

/// Names in the indices of a place.
fn read_in<'e>(place: &'e Expr, into: &mut Vec<&'e Name>) {
    match &place.kind {
        ExprKind::Tuple(parts) => parts.iter().for_each(|part| read_in(part, into)),
        ExprKind::Paren(base) | ExprKind::TupleField { base, .. } => read_in(base, into),
        ExprKind::Index { base, indices } => {
            read_in(base, into);
            for index in indices {
                match index {
                    Index::All(_) => {}
                    Index::Single(expr) | Index::From(expr) | Index::To(expr) => names_in(expr, into),
                    Index::Between(from, to) => {
                        names_in(from, into);
                        names_in(to, into);
                    }
                }
            }
        }
        _ => {}
    }
}

fn assigned(target: &UnsizedType, ty: &UnsizedType) -> Option<String> {
    use UnsizedType::{Array, Int, Matrix, Real, RowVector, Vector};
    match (target, ty) {
        (Int, Real) => Some("a real is made an int by `to_int(…)`, of data alone".into()),
        (Vector, RowVector) | (RowVector, Vector) => Some("transpose it: `x'`".into()),
        (Vector, Array(_)) => Some("convert it: `to_vector(…)`".into()),
        (Array(inner), Vector | RowVector) if **inner == Real => Some("convert it: `to_array_1d(…)`".into()),
        (Matrix, Vector | RowVector) => Some("convert it: `to_matrix(…)`".into()),
        (Vector | Matrix, Real | Int) => Some("repeat it: `rep_vector(…, n)` or `rep_matrix(…, m, n)`".into()),
        _ => None,
    }
}
