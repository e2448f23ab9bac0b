//! Types: from what is written to [`Ty`], and how they are shown to the user.

use crate::base::{Diagnostic, IdVec, Span};
use crate::hir::{Dim, DimId, Ty};
use crate::syntax::ast::{self, TypeExpr, TypeKind};
use crate::types::DType;

use super::context::{Checker, Def};
use super::modules::ModuleId;
use super::names::{Found, Lookup};

/// More scalars and arrays than this in one value are refused: types grow exponentially otherwise.
pub(super) const MAX_LEAVES: usize = 1000;

/// The element type and extents of a scalar (no extents) or array.
pub(super) fn elements(ty: &Ty) -> Option<(DType, &[Dim])> {
    match ty {
        Ty::Scalar(dtype) => Some((*dtype, &[])),
        Ty::Array(dtype, dims) => Some((*dtype, dims)),
        _ => None,
    }
}

/// A scalar or array type.
pub(super) fn of_shape(dtype: DType, dims: &[Dim]) -> Ty {
    if dims.is_empty() { Ty::Scalar(dtype) } else { Ty::Array(dtype, dims.to_vec()) }
}

/// Whether the types are equal when extents are not looked at.
pub(super) fn same_up_to_dims(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Array(x, xs), Ty::Array(y, ys)) => x == y && xs.len() == ys.len(),
        (Ty::Struct(x, _), Ty::Struct(y, _)) => x == y,
        (Ty::Tuple(xs), Ty::Tuple(ys)) => xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| same_up_to_dims(x, y)),
        (a, b) => a == b,
    }
}

impl Checker<'_> {
    /// The type in the user's words.
    pub(super) fn show(&self, ty: &Ty, names: &IdVec<DimId, String>) -> String {
        let list = |dims: &[Dim]| {
            let dims: Vec<String> = dims.iter().map(|d| d.display(names)).collect();
            dims.join(", ")
        };
        let types = |parts: &[Ty]| {
            let parts: Vec<String> = parts.iter().map(|t| self.show(t, names)).collect();
            parts.join(", ")
        };
        match ty {
            Ty::Scalar(dtype) => dtype.to_string(),
            Ty::Array(dtype, dims) => format!("{dtype}[{}]", list(dims)),
            Ty::Tuple(parts) if parts.len() == 1 => format!("({},)", types(parts)),
            Ty::Tuple(parts) => format!("({})", types(parts)),
            Ty::Struct(_, dims) => {
                let name = self.struct_name(ty).unwrap_or("struct");
                if dims.is_empty() { name.to_string() } else { format!("{name}[{}]", list(dims)) }
            }
            Ty::Fn(params, ret) if ret.is_unit() => format!("fn({})", types(params)),
            Ty::Fn(params, ret) => format!("fn({}) -> {}", types(params), self.show(ret, names)),
            Ty::Never => "nothing".to_string(),
        }
    }

    /// How many scalars and arrays a value of the type holds, and tuples and structs around them.
    pub(super) fn leaves(&self, ty: &Ty) -> usize {
        match ty {
            Ty::Tuple(parts) => parts.iter().fold(1, |sum: usize, p| sum.saturating_add(self.leaves(p))),
            Ty::Struct(id, _) => self.structs[*id].leaves,
            _ => 1,
        }
    }

    /// The type that is written. `dims` are the dimension parameters in scope.
    pub(super) fn resolve_type(
        &mut self,
        module: ModuleId,
        dims: &IdVec<DimId, String>,
        written: &TypeExpr,
    ) -> Option<Ty> {
        match &written.kind {
            TypeKind::Named { path, dims: args } => self.resolve_named(module, dims, path, args, written.span),
            TypeKind::Tuple(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|p| {
                        let ty = self.resolve_type(module, dims, p);
                        self.refuse_fn(ty, p.span, "a tuple cannot hold a function")
                    })
                    .collect();
                let ty = Ty::Tuple(parts.into_iter().collect::<Option<_>>()?);
                self.limit_leaves(ty, written.span)
            }
            TypeKind::Fn { params, ret } => {
                let binding = std::mem::replace(&mut self.binding_bounds, false);
                let params: Vec<_> = params
                    .iter()
                    .map(|p| {
                        let ty = self.resolve_type(module, dims, p);
                        self.refuse_fn(ty, p.span, "a function value takes values only")
                    })
                    .collect();
                let ret = match ret {
                    Some(ret) => {
                        let ty = self.resolve_type(module, dims, ret);
                        self.refuse_fn(ty, ret.span, "a function cannot be returned")
                    }
                    None => Some(Ty::unit()),
                };
                self.binding_bounds = binding;
                Some(Ty::Fn(params.into_iter().collect::<Option<_>>()?, Box::new(ret?)))
            }
        }
    }

    /// A function type may stand at a parameter or a local only.
    pub(super) fn refuse_fn(&mut self, ty: Option<Ty>, span: Span, why: &str) -> Option<Ty> {
        match ty {
            Some(Ty::Fn(..)) => {
                let error = Diagnostic::error("E0310", "a function cannot escape", span, why);
                self.report(
                    error.with_help("functions are passed down as arguments: call it here and keep the result"),
                );
                None
            }
            ty => ty,
        }
    }

    pub(super) fn limit_leaves(&mut self, ty: Ty, span: Span) -> Option<Ty> {
        let leaves = self.leaves(&ty);
        if leaves <= MAX_LEAVES {
            return Some(ty);
        }
        self.report(Diagnostic::error(
            "E0228",
            "this type is too large",
            span,
            format!("it holds more than {MAX_LEAVES} scalars and arrays"),
        ));
        None
    }

    fn resolve_named(
        &mut self,
        module: ModuleId,
        dims: &IdVec<DimId, String>,
        path: &ast::Path,
        args: &[ast::Expr],
        span: Span,
    ) -> Option<Ty> {
        let args_found: Vec<_> = args.iter().map(|a| self.extent(module, dims, a)).collect();
        let scalar = match (&path.module, &*path.name.text) {
            (None, "bool") => Some(DType::Bool),
            (None, "int") => Some(DType::Int),
            (None, "real") => Some(DType::Real),
            _ => None,
        };
        if let Some(dtype) = scalar {
            let extents: Vec<Dim> = args_found.into_iter().collect::<Option<_>>()?;
            return Some(of_shape(dtype, &extents));
        }
        let id = match self.lookup(module, path) {
            Lookup::Found(Found::Def(Def::Struct(id))) => id,
            Lookup::Silent => return None,
            found => {
                let name = &path.name.text;
                let what = match found {
                    Lookup::Unknown => format!("there is no type `{name}`"),
                    _ => format!("`{name}` is not a type"),
                };
                let mut error = Diagnostic::error("E0103", what, path.name.span, "unknown type");
                if let Some(help) = self.suggest_type(module, name) {
                    error = error.with_help(help);
                }
                self.report(error);
                return None;
            }
        };
        let wanted = self.structs[id].dims.len();
        if wanted != args.len() {
            let def = &self.structs[id];
            let names: Vec<&str> = def.dims.values().map(String::as_str).collect();
            let error = Diagnostic::error(
                "E0218",
                format!("wrong number of dimensions for `{}`", def.name),
                span,
                format!("{wanted} needed, {} given", args.len()),
            );
            let shown = if names.is_empty() { def.name.clone() } else { format!("{}[{}]", def.name, names.join(", ")) };
            let error =
                error.with_label(def.span, "the struct is defined here").with_help(format!("write it as `{shown}`"));
            self.report(error);
            return None;
        }
        let args: Vec<Dim> = args_found.into_iter().collect::<Option<_>>()?;
        Some(Ty::Struct(id, args))
    }
}
