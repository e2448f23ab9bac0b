//! What is shared, and the error for a value that varies where `shared` is demanded. The rule is that of [`crate::hir`].

use std::collections::BTreeMap;

use crate::base::{Diagnostic, FileId, Span};
use crate::hir::{self, Callee, Dim, Expr, ExprKind, FnId, LocalId, Pattern, Stmt, StmtKind, Ty, walk};
use crate::prim::{Effect, Prim};
use crate::types::{DType, Type};

use super::context::Checker;
use super::types::elements;

/// Where a local gets its value.
#[derive(Clone, Copy)]
enum Source<'e> {
    Param,
    /// Bound by `let`, or a part of what is bound.
    Let(&'e Expr),
    Loop,
    Clause,
    ClosureParam,
}

/// The locals of a function.
struct Locals<'e> {
    function: &'e hir::Fn,
    sources: BTreeMap<LocalId, Source<'e>>,
    shared: BTreeMap<LocalId, bool>,
}

/// What helps where data of lanes come to a shared parameter.
const OWN_DATA: &str = "remove `shared` from the parameter that takes it: then it takes both";

/// A link of the chain that made a value vary.
struct Link {
    note: String,
    help: Option<String>,
}

impl Checker<'_> {
    /// Reports values that vary where a shared parameter takes them.
    pub(super) fn check_shared(&mut self) {
        let mut errors = Vec::new();
        for (id, def) in self.fns.iter() {
            if let Some(function) = &def.checked {
                self.check_shared_fn(id, function, &mut errors);
            }
        }
        self.diagnostics.extend(errors);
    }

    /// Notes what is shared of the locals of each function, and why the others are not.
    pub(super) fn find_variance(&self) {
        if !self.is_noting() {
            return;
        }
        for (id, def) in self.fns.iter().filter(|(_, def)| !def.instance) {
            let Some(function) = &def.checked else { continue };
            let locals = Locals::of(function);
            for (local, source) in &locals.sources {
                let declared = &function.locals[*local];
                if matches!(declared.ty, Ty::Fn(..)) {
                    continue;
                }
                let shared = locals.shared.get(local).copied().unwrap_or(false);
                let why = || match source {
                    _ if shared => Vec::new(),
                    Source::Let(value) if !declared.mutable => {
                        let mut links = self.chain(id, &locals, value);
                        let first = links.remove(0).note;
                        let first = match first.strip_prefix("it varies") {
                            Some(rest) => format!("`{}` varies{rest}", declared.name),
                            None => first,
                        };
                        std::iter::once(first).chain(links.into_iter().map(|link| link.note)).collect()
                    }
                    source => vec![self.local_origin(id, &locals, *local, Some(source)).note],
                };
                self.note_variance(declared.span, shared, why);
            }
        }
    }

    fn check_shared_fn(&self, id: FnId, function: &hir::Fn, errors: &mut Vec<Diagnostic>) {
        let mut demands = Vec::new();
        walk::all(&function.body, &mut |expr| {
            let call = match &expr.kind {
                ExprKind::Call(Callee::Fn(called, _), args) => Some((called, args)),
                ExprKind::Derivative(derivative) => match &derivative.function.kind {
                    ExprKind::Function(called, _) => Some((called, &derivative.args)),
                    _ => None,
                },
                ExprKind::Attempt(function, args) => match &function.kind {
                    ExprKind::Function(called, _) => Some((called, args)),
                    _ => None,
                },
                _ => None,
            };
            if let Some((called, args)) = call {
                let params = self.fns[*called].signature.iter().flat_map(|s| &s.params);
                for (param, arg) in params.zip(args) {
                    if param.shared {
                        demands.push((*called, param, arg));
                    }
                }
            }
        });
        if demands.is_empty() {
            return;
        }
        let locals = Locals::of(function);
        for (called, param, arg) in demands {
            if locals.is_shared(arg) {
                continue;
            }
            let callee = &self.fns[called].name;
            let error = Diagnostic::error(
                "E0501",
                format!("`{callee}` demands that `{}` is shared, but this varies between lanes", param.name.text),
                arg.span,
                "not the same for all lanes",
            );
            let mut error = error.with_label(param.name.span, format!("`{}` is shared here", param.name.text));
            for link in self.chain(id, &locals, arg) {
                error = error.with_note(link.note);
                if let Some(help) = link.help {
                    error = error.with_help(help);
                }
            }
            errors.push(error);
        }
    }

    /// Why an expression varies, from itself to the origin.
    fn chain(&self, id: FnId, locals: &Locals<'_>, expr: &Expr) -> Vec<Link> {
        let mut links = Vec::new();
        let mut at = expr;
        let mut subject = "it".to_string();
        loop {
            let culprit = locals.culprit(at);
            let ExprKind::Local(local) = culprit.kind else {
                links.push(self.origin(&subject, locals, culprit));
                return links;
            };
            let name = &locals.function.locals[local].name;
            let hidden = name.starts_with('%');
            if !std::ptr::eq(culprit, expr) && !hidden {
                let line = self.place(expr.span.file, locals.function.locals[local].span);
                links.push(Link {
                    note: format!("{subject} varies because it is computed from `{name}` ({line})"),
                    help: None,
                });
            }
            if !hidden {
                subject = format!("`{name}`");
            }
            match locals.sources.get(&local) {
                Some(Source::Let(value)) if !locals.function.locals[local].mutable => at = value,
                source => {
                    links.push(self.local_origin(id, locals, local, source));
                    return links;
                }
            }
        }
    }

    fn place(&self, file: FileId, span: Span) -> String {
        let line = self.line(span);
        if span.file == file {
            format!("line {line}")
        } else {
            format!("{} line {line}", self.sources.file(span.file).name)
        }
    }

    fn local_origin(&self, id: FnId, locals: &Locals<'_>, local: LocalId, source: Option<&Source<'_>>) -> Link {
        let name = &locals.function.locals[local].name;
        let function = &locals.function.name;
        let mutable = locals.function.locals[local].mutable;
        let (why, help) = match source {
            Some(Source::Param) if self.is_of_lanes(id, name) => {
                ("each lane has data of its own for it".to_owned(), Some(OWN_DATA.to_owned()))
            }
            Some(Source::Param) => {
                let entry = self.fns[id].public && self.fns[id].module.0 == 0;
                let what = if entry { "lane parameter" } else { "parameter" };
                (
                    format!("it is a {what} of `{function}`"),
                    Some(format!("mark the parameter `{name}` of `{function}` as shared")),
                )
            }
            Some(Source::Loop | Source::Clause) => ("it is a loop variable".to_string(), None),
            Some(Source::ClosureParam) => ("it is a parameter of a closure".to_string(), None),
            _ if mutable => (
                "it is declared `mut`".to_string(),
                Some(format!("bind the shared value with `let`, without `mut`, before `{name}`")),
            ),
            _ => ("it is not known to be the same".to_string(), None),
        };
        Link { note: format!("`{name}` varies because {why}"), help }
    }

    /// Whether a parameter is marked `shared`, and whoever runs the program has a value for each lane.
    fn is_of_lanes(&self, id: FnId, name: &str) -> bool {
        let mut params = self.fns[id].signature.iter().flat_map(|signature| &signature.params);
        params.any(|param| param.of_lanes && *param.name.text == *name)
    }

    fn origin(&self, subject: &str, locals: &Locals<'_>, expr: &Expr) -> Link {
        let why = match &expr.kind {
            ExprKind::Call(Callee::Fn(id, _), _) => {
                format!("it is the result of a call of `{}`", self.fns[*id].name)
            }
            ExprKind::Call(Callee::Local(_), _) => "it is the result of a call".to_string(),
            ExprKind::Derivative(call) => format!("it is a result of `{}`", call.op.name()),
            ExprKind::Attempt(..) => "it is a result of `attempt`".to_string(),
            ExprKind::If(..) => "it is the result of an `if`".to_string(),
            ExprKind::Block(..) => "it is the result of a block".to_string(),
            ExprKind::Comprehension { .. } => "it is a comprehension".to_string(),
            ExprKind::Reduction { .. } => "it is a reduction over a comprehension".to_string(),
            ExprKind::And(..) | ExprKind::Or(..) => "its second operand is not always evaluated".to_string(),
            ExprKind::Prim(Prim::RandomUniform | Prim::RandomNormal, _) => "it is drawn at random".to_string(),
            ExprKind::Prim(Prim::RandomPosition, _) => "it counts the draws of the lane".to_string(),
            ExprKind::Prim(Prim::Index | Prim::Slice, _) => "its index is neither a number nor a dimension".to_string(),
            ExprKind::Prim(..) => "it is computed by an operation that can trap".to_string(),
            _ => "it is not known to be the same for all lanes".to_string(),
        };
        let help = "pass it to this function as a shared parameter";
        let bounded = if let ExprKind::Dim(dim) = &expr.kind { locals.bounded(dim) } else { None };
        if let Some(name) = bounded {
            let note =
                format!("{subject} varies because `{name}` is a bounded dimension, which differs from lane to lane");
            return Link { note, help: None };
        }
        Link {
            note: format!("{subject} varies because {why} (line {})", self.line(expr.span)),
            help: Some(help.to_string()),
        }
    }
}

impl<'e> Locals<'e> {
    fn of(function: &'e hir::Fn) -> Self {
        let mut locals = Self { function, sources: BTreeMap::new(), shared: BTreeMap::new() };
        for param in &function.params {
            locals.sources.insert(param.local, Source::Param);
            locals.shared.insert(param.local, param.shared);
        }
        // A local is bound before it is read, in the order of the walk.
        walk::all(&function.body, &mut |expr| match &expr.kind {
            ExprKind::Block(stmts, _) => locals.block(stmts),
            ExprKind::For(var, ..) => {
                locals.sources.insert(*var, Source::Loop);
            }
            ExprKind::Comprehension { clauses, .. } | ExprKind::Reduction { clauses, .. } => {
                for clause in clauses {
                    locals.sources.insert(clause.var, Source::Clause);
                }
            }
            ExprKind::Lambda { params, .. } => {
                for param in params {
                    locals.sources.insert(*param, Source::ClosureParam);
                }
            }
            _ => {}
        });
        locals
    }

    fn block(&mut self, stmts: &'e [Stmt]) {
        for stmt in stmts {
            if let StmtKind::Let(pattern, value) = &stmt.kind {
                let shared = self.is_shared(value);
                self.bind(pattern, value, shared);
            }
        }
    }

    fn bind(&mut self, pattern: &Pattern, value: &'e Expr, shared: bool) {
        match pattern {
            Pattern::Wildcard => {}
            Pattern::Local(local) => {
                let mutable = self.function.locals[*local].mutable;
                self.sources.insert(*local, Source::Let(value));
                self.shared.insert(*local, shared && !mutable);
            }
            Pattern::Fields(parts) => {
                for (_, part) in parts {
                    self.bind(part, value, shared);
                }
            }
        }
    }

    fn is_shared(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) => true,
            ExprKind::Dim(dim) => self.bounded(dim).is_none(),
            ExprKind::Local(local) => self.shared.get(local).copied().unwrap_or(false),
            ExprKind::Tuple(parts) | ExprKind::Struct(_, parts) => parts.iter().all(|p| self.is_shared(p)),
            ExprKind::Field(base, _) => self.is_shared(base),
            ExprKind::Prim(op, args) => is_total(*op, args) && args.iter().all(|a| self.is_shared(a)),
            _ => false,
        }
    }

    /// The bounded dimension in an extent: it differs from lane to lane.
    fn bounded(&self, dim: &Dim) -> Option<&str> {
        let id = dim.ids().find(|id| self.function.bounds.contains_key(id))?;
        Some(&self.function.dims[id])
    }

    /// The innermost expression that makes `expr` vary.
    fn culprit<'x>(&self, expr: &'x Expr) -> &'x Expr {
        let inner = match &expr.kind {
            ExprKind::Tuple(parts) | ExprKind::Struct(_, parts) => parts.iter().find(|p| !self.is_shared(p)),
            ExprKind::Field(base, _) => Some(&**base),
            ExprKind::Prim(_, args) => args.iter().find(|a| !self.is_shared(a)),
            _ => None,
        };
        match inner {
            Some(inner) => self.culprit(inner),
            None => expr,
        }
    }
}

/// Whether the primitive cannot trap and draws nothing, whatever the dimensions are.
fn is_total(op: Prim, args: &[Expr]) -> bool {
    let fixed = |e: &Expr| matches!(e.kind, ExprKind::Literal(_) | ExprKind::Dim(_));
    match op {
        Prim::Index | Prim::Slice => args[1..].iter().all(fixed),
        Prim::MinOf | Prim::MaxOf => {
            let extents = args.first().and_then(|a| elements(&a.ty)).map(|(_, d)| d);
            extents.is_some_and(|dims| dims.iter().all(|d| d.as_constant().is_some_and(|n| n > 0)))
        }
        _ => {
            // What a primitive does hangs on the element types only; the extents here stand for any.
            let types: Option<Vec<Type>> = args.iter().map(|a| any_shape(&a.ty)).collect();
            types.is_some_and(|types| op.effect(&types) == Effect::Pure)
        }
    }
}

fn any_shape(ty: &Ty) -> Option<Type> {
    let (dtype, dims): (DType, _) = elements(ty)?;
    Some(Type::new(dtype, dims.iter().map(|_| 1)))
}
