//! `@elementwise` functions: written for scalars, called with arrays. An instance has arrays of one shape in the places
//! where the call has them; its body is the same text.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Diagnostic, IdVec, Span};
use crate::hir::{Dim, DimId, Expr, FnId, Ty};
use crate::types::DType;

use super::body::{Body, to_real};
use super::context::{Checker, FnDef, Signature};
use super::types::elements;

/// Instances that need instances that need instances: past this, the function cannot be one.
const DEEPEST: usize = 16;

impl Body<'_, '_> {
    /// A call of an elementwise function.
    pub(super) fn call_elementwise(
        &mut self,
        id: FnId,
        signature: &Arc<Signature>,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        let scalars = values.iter().all(|v| !matches!(v.ty, Ty::Array(..)));
        if scalars {
            return self.call_with(id, signature, values, span);
        }
        let mut operands = Vec::new();
        for (i, value) in values.into_iter().enumerate() {
            operands.push(self.elementwise_operand(id, signature, i, value));
        }
        let operands: Vec<Expr> = operands.into_iter().collect::<Option<_>>()?;
        let refs: Vec<&Expr> = operands.iter().collect();
        let dims = self.common_shape(&refs, span)?;
        let mask: Vec<bool> = operands.iter().map(|v| matches!(v.ty, Ty::Array(..))).collect();
        let Some(instance) = self.cx.instance(id, &mask, dims.len()) else {
            let name = self.cx.fns[id].name.clone();
            let declared = self.cx.fns[id].span;
            let error = Diagnostic::error("E0311", format!("`{name}` takes scalars only"), span, "called with arrays");
            let error = error
                .with_label(declared, "its body does not work on arrays")
                .with_help(format!("say which elements: `[{name}(x[i]) for i in 0..n]`"));
            self.cx.report(error);
            return None;
        };
        let signature = self.cx.fns[instance].signature.clone()?;
        self.call_with(instance, &signature, operands, span)
    }

    fn elementwise_operand(&mut self, id: FnId, signature: &Signature, i: usize, value: Expr) -> Option<Expr> {
        let param = &signature.params[i];
        let found = elements(&value.ty).map(|(dtype, _)| dtype);
        match (&param.ty, found) {
            (Ty::Scalar(wanted), Some(dtype)) if *wanted == dtype => Some(value),
            (Ty::Scalar(DType::Real), Some(DType::Int)) => Some(to_real(value)),
            (wanted, _) => {
                let wanted = self.show(wanted);
                let found = self.show(&value.ty);
                let name = &self.cx.fns[id].name;
                let error = Diagnostic::error(
                    "E0302",
                    format!("`{name}` takes {wanted} or an array of it for `{}`, found {found}", param.name.text),
                    value.span,
                    format!("this is {found}"),
                );
                self.cx.report(error.with_label(param.name.span, "the parameter is declared here"));
                None
            }
        }
    }
}

impl Checker<'_> {
    /// The instance of an elementwise function for arrays of this rank where the mask holds; `None` when its body does
    /// not check.
    fn instance(&mut self, id: FnId, mask: &[bool], rank: usize) -> Option<FnId> {
        let key = (id, mask.to_vec(), rank);
        if let Some(known) = self.instances.get(&key) {
            return *known;
        }
        let signature = self.fns[id].signature.clone()?;
        if self.instance_depth >= DEEPEST {
            return None;
        }
        let def = &self.fns[id];
        let dims: IdVec<DimId, String> = (0..rank).map(|i| format!("n{i}")).collect();
        let shape: Vec<Dim> = dims.ids().map(Dim::param).collect();
        let over = |ty: &Ty| match ty {
            Ty::Scalar(dtype) => Ty::Array(*dtype, shape.clone()),
            ty => ty.clone(),
        };
        let mut params = signature.params.clone();
        for (param, array) in params.iter_mut().zip(mask) {
            if *array {
                param.ty = over(&param.ty);
            }
        }
        let ret = if def.sum { signature.ret.clone() } else { over(&signature.ret) };
        let instance = FnDef {
            name: def.name.clone(),
            module: def.module,
            item: def.item,
            rule: None,
            signature: Some(Arc::new(Signature { dims, declared: Vec::new(), bounds: BTreeMap::new(), params, ret })),
            elementwise: false,
            sum: def.sum,
            recompute: def.recompute,
            instance: true,
            used: true,
            public: false,
            span: def.span,
            checked: None,
        };
        let instance = self.fns.push(instance);
        self.instances.insert(key.clone(), Some(instance));
        let found = std::mem::take(&mut self.diagnostics);
        self.instance_depth += 1;
        self.notes.instance(true);
        self.check_fn(instance);
        self.notes.instance(false);
        self.instance_depth -= 1;
        let inner = std::mem::replace(&mut self.diagnostics, found);
        let fits = self.fns[instance].checked.is_some() && !inner.iter().any(Diagnostic::is_error);
        let result = fits.then_some(instance);
        self.instances.insert(key, result);
        result
    }
}
