//! Declarations: the fields of structs, the parameters and attributes of functions.

use std::sync::Arc;

use crate::base::{Diagnostic, Id as _, IdVec, Span};
use crate::hir::{DimId, FnId, StructId, Ty};
use crate::syntax::ast::{self, ItemKind};
use crate::types::DType;

use super::bounded;
use super::context::{Checker, ParamSignature, Signature};
use super::dims::Solver;
use super::modules::ModuleId;
use super::types::MAX_LEAVES;

impl Checker<'_> {
    /// Finds the field types of all structs, then how large they are.
    pub(super) fn resolve_structs(&mut self) {
        let ids: Vec<StructId> = self.structs.ids().collect();
        for id in &ids {
            self.resolve_fields(*id);
        }
        let mut state = IdVec::filled(Size::Unseen, ids.len());
        for id in ids {
            self.measure(id, &mut state);
        }
    }

    fn resolve_fields(&mut self, id: StructId) {
        let (module, item) = (self.structs[id].module, self.structs[id].item);
        if self.structs[id].inferred {
            return;
        }
        let ast = self.modules[module].ast.clone();
        let ItemKind::Struct { dims, fields, .. } = &ast.items[item].kind else {
            unreachable!("the declaration put a struct here");
        };
        self.distinct(dims.iter(), "dimension");
        self.distinct(fields.iter().map(|f| &f.name), "field");
        let names = self.structs[id].dims.clone();
        self.notes.dims(dims.iter().map(|dim| dim.span).collect());
        for (i, field) in fields.iter().enumerate() {
            let ty = self.resolve_type(module, &names, &field.ty);
            let ty = self.refuse_fn(ty, field.ty.span, "a struct cannot hold a function");
            self.structs[id].fields[i].1 = ty;
        }
        let types: Vec<Ty> = (self.structs[id].fields.iter()).filter_map(|(_, ty)| ty.clone()).collect();
        if types.len() == fields.len() {
            self.require_bound(&names, &types, dims, "no field shows it");
        }
    }

    /// Reports the second of two equal names.
    pub(super) fn distinct<'n>(&mut self, names: impl Iterator<Item = &'n ast::Name>, what: &str) {
        self.distinct_from(&[], names, what);
    }

    /// Reports the second of two equal names; `dims` are dimensions, which need no parameter beside them.
    fn distinct_from<'n>(&mut self, dims: &[ast::Name], names: impl Iterator<Item = &'n ast::Name>, what: &str) {
        let mut seen: Vec<&ast::Name> = Vec::new();
        for name in names {
            if let Some(first) = seen.iter().find(|n| n.text == name.text) {
                let error = Diagnostic::error(
                    "E0115",
                    format!("the {what} `{}` stands here twice", name.text),
                    name.span,
                    "again here",
                );
                let error = error.with_label(first.span, "first here");
                self.report(match dims.iter().any(|dim| std::ptr::eq(dim, *first)) {
                    true => error.with_help(format!(
                        "leave the parameter out: in the body the dimension `{0}` is an int, and an int `{0}` of the data tells it",
                        name.text
                    )),
                    false => error,
                });
            } else {
                seen.push(name);
            }
        }
    }

    /// Reports dimension parameters that values of the types do not determine.
    fn require_bound(&mut self, names: &IdVec<DimId, String>, types: &[Ty], written: &[ast::Name], why: &str) {
        let mut solver = Solver::new(names.len());
        for (i, ty) in types.iter().enumerate() {
            solver.unify(ty, ty, i);
        }
        // Each type is its own argument: what is solved is what any argument determines.
        let solved = solver.solve().is_ok();
        for (id, name) in written.iter().enumerate() {
            let bound = solved && solver.knows(&Ty::Array(DType::Real, vec![crate::hir::Dim::param(DimId::new(id))]));
            if !bound {
                let error = Diagnostic::error(
                    "E0118",
                    format!("nothing determines the dimension `{}`", name.text),
                    name.span,
                    why,
                );
                self.report(error.with_help(format!(
                    "let it be an extent of its own, such as `x: real[{}]`, or pass an `int`",
                    name.text
                )));
            }
        }
    }

    fn measure(&mut self, id: StructId, state: &mut IdVec<StructId, Size>) -> usize {
        match state[id] {
            Size::Done(leaves) => return leaves,
            Size::InProgress => {
                let def = &self.structs[id];
                let error = Diagnostic::error(
                    "E0113",
                    format!("the struct `{}` contains itself", def.name),
                    def.span,
                    "it would be infinitely large",
                );
                let error = error
                    .with_help("there are no references: keep the elements in an array and their positions as ints");
                self.report(error);
                state[id] = Size::Done(1);
                return 1;
            }
            Size::Unseen => {}
        }
        state[id] = Size::InProgress;
        let types: Vec<Ty> = (self.structs[id].fields.iter()).filter_map(|(_, ty)| ty.clone()).collect();
        let mut leaves: usize = 1;
        for ty in &types {
            leaves = leaves.saturating_add(self.measure_ty(ty, state));
        }
        if leaves > MAX_LEAVES {
            let def = &self.structs[id];
            let error = Diagnostic::error(
                "E0228",
                format!("the struct `{}` is too large", def.name),
                def.span,
                format!("it holds more than {MAX_LEAVES} scalars and arrays"),
            );
            self.report(error.with_help("use arrays"));
            leaves = 1;
        }
        state[id] = Size::Done(leaves);
        self.structs[id].leaves = leaves;
        leaves
    }

    fn measure_ty(&mut self, ty: &Ty, state: &mut IdVec<StructId, Size>) -> usize {
        match ty {
            Ty::Struct(id, _) => self.measure(*id, state),
            Ty::Tuple(parts) => {
                let mut sum: usize = 1;
                for part in parts {
                    sum = sum.saturating_add(self.measure_ty(part, state));
                }
                sum
            }
            _ => 1,
        }
    }

    /// Finds the signatures of all functions.
    pub(super) fn resolve_signatures(&mut self) {
        let ids: Vec<FnId> = self.fns.iter().filter(|(_, def)| def.rule.is_none()).map(|(id, _)| id).collect();
        for id in ids {
            let (module, item) = (self.fns[id].module, self.fns[id].item);
            let ast = self.modules[module].ast.clone();
            let item = &ast.items[item];
            let ItemKind::Fn(decl) = &item.kind else {
                unreachable!("the declaration put a function here");
            };
            let signature = match self.role(id) {
                Some(_) => self.told_of_model(|checker| checker.signature(module, decl)),
                None => self.signature(module, decl),
            };
            self.check_attributes(id, item, signature.as_ref());
            self.fns[id].signature = signature.map(Arc::new);
        }
    }

    fn signature(&mut self, module: ModuleId, decl: &ast::FnDecl) -> Option<Signature> {
        let bounded = bounded::declared(&decl.params);
        let names = decl.dims.iter().chain(bounded.iter().map(|(name, _)| *name));
        let names = names.chain(decl.params.iter().map(|p| &p.name));
        self.distinct_from(&decl.dims, names.filter(|n| &*n.text != "_"), "parameter");
        let mut dims: IdVec<DimId, String> = decl.dims.iter().map(|d| d.text.to_string()).collect();
        let declared: Vec<Span> =
            decl.dims.iter().chain(bounded.iter().map(|(name, _)| *name)).map(|n| n.span).collect();
        let around = self.notes.dims(declared.clone());
        let bounds = self.bounds(module, &dims, &bounded);
        bounded.iter().for_each(|(name, _)| {
            dims.push(name.text.to_string());
        });
        self.binding_bounds = true;
        let params: Vec<_> = decl.params.iter().map(|p| self.param(module, &dims, p)).collect();
        self.binding_bounds = false;
        let ret = match &decl.ret {
            None => Some(Ty::unit()),
            Some(written) => {
                let ty = self.resolve_type(module, &dims, written);
                self.refuse_fn(ty, written.span, "a function cannot be returned")
            }
        };
        self.notes.dims(around);
        let params: Vec<ParamSignature> = params.into_iter().collect::<Option<_>>()?;
        let types: Vec<Ty> = params.iter().map(|p| p.ty.clone()).collect();
        self.require_bound(&dims, &types, &decl.dims, "no parameter shows it");
        let signature = Signature { dims, declared, bounds: bounds?, params, ret: ret? };
        self.refuse_bounded(decl, &signature).then_some(signature)
    }

    /// Reports what bounded dimensions cannot be in: shared parameters, and extents that are computed from them. True when
    /// there is no such thing.
    fn refuse_bounded(&mut self, decl: &ast::FnDecl, signature: &Signature) -> bool {
        let Signature { dims, bounds, params, ret, .. } = signature;
        let mut fits = true;
        for (param, written) in params.iter().zip(&decl.params) {
            fits &= self.refuse_computed(&param.ty, dims, bounds, written.ty.span);
            let mut bounded = None;
            param.ty.for_each_dim(&mut |dim| bounded = bounded.or(dim.ids().find(|id| bounds.contains_key(id))));
            if let (Some(id), true) = (bounded, param.shared) {
                let (name, dim) = (&param.name.text, &dims[id]);
                let error = Diagnostic::error(
                    "E0505",
                    format!("the shared parameter `{name}` cannot have the bounded dimension `{dim}`"),
                    written.ty.span,
                    format!("`{dim}` differs from lane to lane"),
                );
                self.report(error.with_help(format!("remove `shared`, or give `{name}` an ordinary dimension")));
                fits = false;
            }
        }
        let span = decl.ret.as_ref().map_or(decl.name.span, |ret| ret.span);
        fits & self.refuse_computed(ret, dims, bounds, span)
    }

    fn param(&mut self, module: ModuleId, dims: &IdVec<DimId, String>, param: &ast::Param) -> Option<ParamSignature> {
        let ty = self.resolve_type(module, dims, &param.ty)?;
        let name = &param.name.text;
        let function = matches!(ty, Ty::Fn(..));
        if param.shared && param.mutable {
            let error = Diagnostic::error(
                "E0502",
                format!("the shared parameter `{name}` cannot be `mut`"),
                param.name.span,
                "it has one value for all lanes",
            );
            self.report(error.with_help(format!("copy it: `let mut {name} = {name};`")));
        }
        if param.shared && function {
            let error = Diagnostic::error(
                "E0504",
                format!("`{name}` is a function: it cannot be marked `shared`"),
                param.name.span,
                "functions are known while compiling",
            );
            self.report(error.with_help("remove `shared`"));
        }
        if param.mutable && function {
            self.function_is_immutable(name, param.name.span);
        }
        Some(ParamSignature {
            name: param.name.clone(),
            ty,
            shared: param.shared,
            of_lanes: param.of_lanes,
            mutable: param.mutable && !param.shared && !function,
        })
    }

    /// Reports a `mut` that stands before a function.
    pub(super) fn function_is_immutable(&mut self, name: &str, span: Span) {
        let error = Diagnostic::error(
            "E0312",
            format!("`{name}` is a function: it cannot be `mut`"),
            span,
            "functions are known while compiling",
        );
        self.report(error.with_help("remove `mut`; let an `if` choose which function is called"));
    }

    fn check_attributes(&mut self, id: FnId, item: &ast::Item, signature: Option<&Signature>) {
        for attribute in &item.attributes {
            let name = &attribute.name;
            let mut wrong = None;
            match &*name.text {
                "elementwise" => {
                    let scalars = signature.is_none_or(|s| {
                        let scalar = |ty: &Ty| matches!(ty, Ty::Scalar(_));
                        !s.params.is_empty() && s.params.iter().all(|p| scalar(&p.ty)) && scalar(&s.ret)
                    });
                    if !scalars {
                        wrong = Some((
                            "E0703",
                            "an elementwise function takes and gives scalars".to_string(),
                            "has other parameters or another result",
                        ));
                    }
                }
                "sum" => {
                    let real = signature.is_none_or(|s| matches!(s.ret, Ty::Scalar(DType::Int | DType::Real)));
                    if !self.fns[id].elementwise || !real {
                        wrong = Some((
                            "E0704",
                            "`@sum` stands with `@elementwise` before a function of numbers".to_string(),
                            "what would be summed?",
                        ));
                    }
                }
                "recompute" => {}
                _ => {
                    wrong = Some(("E0701", format!("there is no attribute `@{}`", name.text), "unknown attribute"));
                }
            }
            if let Some((code, message, label)) = wrong {
                let error = Diagnostic::error(code, message, name.span, label);
                self.report(error.with_help("the attributes are `@elementwise`, `@sum` and `@recompute`"));
                self.fns[id].elementwise = false;
                self.fns[id].sum = false;
            }
        }
    }
}

/// How far the size of a struct is.
#[derive(Clone, Copy)]
enum Size {
    Unseen,
    InProgress,
    Done(usize),
}
