//! Bounded dimensions, `real[t <= 100]`: where they are declared, and what cannot be made of them.

use std::collections::BTreeMap;

use crate::base::{Diagnostic, IdVec, Span};
use crate::hir::{self, Callee, Dim, DimId, Expr, ExprKind, FnId, Ty, walk};
use crate::syntax::ast::{self, BinaryOp, TypeExpr, TypeKind};

use super::context::Checker;
use super::modules::ModuleId;

/// The bounded dimensions that the types of parameters declare, in order: name and bound.
pub(super) fn declared(params: &[ast::Param]) -> Vec<(&ast::Name, &ast::Expr)> {
    let mut found = Vec::new();
    for param in params {
        collect(&param.ty, &mut found);
    }
    found
}

fn collect<'t>(ty: &'t TypeExpr, into: &mut Vec<(&'t ast::Name, &'t ast::Expr)>) {
    match &ty.kind {
        TypeKind::Named { dims, .. } => into.extend(dims.iter().filter_map(parts)),
        TypeKind::Tuple(parts) => parts.iter().for_each(|p| collect(p, into)),
        TypeKind::Fn { .. } => {}
    }
}

/// Name and bound of `t <= 100`.
fn parts(extent: &ast::Expr) -> Option<(&ast::Name, &ast::Expr)> {
    match &extent.kind {
        ast::ExprKind::Binary(BinaryOp::Le, name, bound) => match &name.kind {
            ast::ExprKind::Path(path) if path.module.is_none() => Some((&path.name, bound)),
            _ => None,
        },
        _ => None,
    }
}

impl Checker<'_> {
    /// The bounds of the dimensions that stand after the ordinary ones.
    pub(super) fn bounds(
        &mut self,
        module: ModuleId,
        ordinary: &IdVec<DimId, String>,
        written: &[(&ast::Name, &ast::Expr)],
    ) -> Option<BTreeMap<DimId, Dim>> {
        let mut dims = ordinary.clone();
        let mut bounds = Vec::new();
        for (name, bound) in written {
            let bound = self.extent(module, ordinary, bound);
            bounds.push(bound.map(|bound| (dims.push(name.text.to_string()), bound)));
        }
        bounds.into_iter().collect()
    }

    /// The extent `t <= 100`, which declares `t`; `None` for any other expression. It has its place only in the type of a
    /// parameter.
    pub(super) fn bounded_extent(&mut self, dims: &IdVec<DimId, String>, extent: &ast::Expr) -> Option<Option<Dim>> {
        let ast::ExprKind::Binary(BinaryOp::Le, ..) = &extent.kind else {
            return None;
        };
        let (message, label, help) = match parts(extent) {
            Some((name, _)) if self.binding_bounds => {
                let id = dims.iter().find(|(_, d)| ***d == *name.text).map(|(id, _)| id);
                return Some(id.map(Dim::param));
            }
            Some((name, _)) => (
                "a bound stands only in the type of a parameter of a function",
                "not the type of a parameter",
                format!("declare it there, and write `{}` here", name.text),
            ),
            None => (
                "a bounded dimension is a name and its bound",
                "no name before `<=`",
                "write it as `real[t <= 100]`".to_owned(),
            ),
        };
        self.report(Diagnostic::error("E0120", message, extent.span, label).with_help(help));
        Some(None)
    }

    /// Reports an extent in a type that is computed from a bounded dimension. True when there is none.
    pub(super) fn refuse_computed(
        &mut self,
        ty: &Ty,
        dims: &IdVec<DimId, String>,
        bounds: &BTreeMap<DimId, Dim>,
        span: Span,
    ) -> bool {
        let mut computed = None;
        ty.for_each_dim(&mut |dim| {
            if is_computed(dim, bounds) {
                computed.get_or_insert_with(|| dim.clone());
            }
        });
        if let Some(dim) = &computed {
            self.report(computed_extent(dim, dims, bounds, span));
        }
        computed.is_none()
    }

    /// Reports extents that are computed from bounded dimensions in bodies, each once, at the smallest place that has it.
    pub(super) fn check_bounded(&mut self) {
        let ids: Vec<FnId> = self.fns.ids().collect();
        for id in ids {
            let Some(function) = self.fns[id].checked.as_ref().filter(|f| !f.bounds.is_empty()) else {
                continue;
            };
            let errors: Vec<Diagnostic> = computed_in(function)
                .into_iter()
                .map(|(dim, span)| computed_extent(&dim, &function.dims, &function.bounds, span))
                .collect();
            self.diagnostics.extend(errors);
        }
    }
}

fn is_computed(dim: &Dim, bounds: &BTreeMap<DimId, Dim>) -> bool {
    dim.alone().is_none() && dim.ids().any(|id| bounds.contains_key(&id))
}

/// The extents in a body that are computed from bounded dimensions, in order, and the smallest place of each.
fn computed_in(function: &hir::Fn) -> Vec<(Dim, Span)> {
    let mut found: Vec<(Dim, Span)> = Vec::new();
    let mut note = |dim: &Dim, span: Span| {
        if !is_computed(dim, &function.bounds) {
            return;
        }
        let length = |span: &Span| span.end - span.start;
        match found.iter_mut().find(|(known, _)| known == dim) {
            Some((_, known)) if length(known) > length(&span) => *known = span,
            Some(_) => {}
            None => found.push((dim.clone(), span)),
        }
    };
    walk::all(&function.body, &mut |expr: &Expr| {
        expr.ty.for_each_dim(&mut |dim| note(dim, expr.span));
        if let ExprKind::Call(Callee::Fn(_, dims), _) | ExprKind::Function(_, dims) = &expr.kind {
            dims.iter().for_each(|dim| note(dim, expr.span));
        }
    });
    found
}

fn computed_extent(dim: &Dim, names: &IdVec<DimId, String>, bounds: &BTreeMap<DimId, Dim>, span: Span) -> Diagnostic {
    let shown = dim.display(names);
    let name = dim.ids().find(|id| bounds.contains_key(id)).map_or("", |id| names[id].as_str());
    Diagnostic::error(
        "E0121",
        format!("`{shown}` cannot be an extent: `{name}` is bounded, it differs from lane to lane"),
        span,
        format!("an extent `{shown}` is needed here"),
    )
    .with_help(format!(
        "extents are a bounded dimension itself or have none in them; as an int `{shown}` is fine: loop over it, or pass the \
         other array as a parameter with a bound of its own"
    ))
}
