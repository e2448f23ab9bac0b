//! The gradient of an entry point, for callers outside of the language.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::base::Id as _;
use crate::base::stack::with_room;
use crate::hir::{self, Derivative, DerivativeCall, Dim, DimId, Expr, ExprKind, FnId, Ty};
use crate::program::{Error, ErrorKind, Function, Program};
use crate::types::DType;

/// An entry point that gives a value and its gradient. Made by [`Program::gradient`].
#[derive(Debug)]
pub struct Gradient {
    program: Program,
    name: String,
    inputs: Vec<String>,
}

impl Gradient {
    /// The entry point: it takes what the original one takes. Its first output is the value; the gradient with respect to
    /// each of the [`inputs`](Self::inputs) follows, in their order.
    ///
    /// # Errors
    /// See [`Program::function`].
    pub fn function(&self) -> Result<Function<'_>, Error> {
        self.program.function(&self.name)
    }
    /// Names of the lane inputs with respect to which, fields of structs split.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }
}

impl Program {
    /// The value and the gradient of a public function that gives a real, with respect to the parameters that `wrt` names:
    /// with an empty `wrt`, to all that vary between lanes and are made of reals.
    ///
    /// # Errors
    /// [`ErrorKind::Entry`] when there is no such function, it does not give a real, or `wrt` names what is no parameter,
    /// shared, or not made of reals.
    pub fn gradient(&self, name: &str, wrt: &[String]) -> Result<Gradient, Error> {
        let entry = self.function(name)?.entry;
        let function = self.hir.function(entry);
        if function.ret != Ty::Scalar(DType::Real) {
            return Err(refused(format!("`{name}` does not give a real: its gradient has no meaning")));
        }
        let wrt = self.differentiated(function, wrt)?;
        let inputs = wrt.iter().flat_map(|i| {
            let local = &function.locals[function.params[*i].local];
            self.leaves(&local.ty, &local.name)
        });
        let inputs = inputs.collect();
        let mut hir = with_room(self.hir.depth, || self.hir.clone());
        let derived = hir.fns.push(Some(with_gradient(function, entry, wrt)));
        hir.exports = IndexMap::from([(name.to_owned(), derived)]);
        let program = Program::of(hir, Arc::clone(&self.sources), self.warnings.clone());
        Ok(Gradient { program, name: name.to_owned(), inputs })
    }

    /// Positions of the parameters with respect to which, ascending.
    fn differentiated(&self, function: &hir::Fn, wrt: &[String]) -> Result<Vec<usize>, Error> {
        let name = &function.name;
        let param = |i: usize| &function.locals[function.params[i].local];
        let possible = |i: usize| !function.params[i].shared && self.is_real(&param(i).ty);
        let all = 0..function.params.len();
        if wrt.is_empty() {
            let real: Vec<usize> = all.filter(|i| possible(*i)).collect();
            return match real.is_empty() {
                true => {
                    Err(refused(format!("`{name}` has no parameter that varies between lanes and is made of reals")))
                }
                false => Ok(real),
            };
        }
        let mut positions = Vec::new();
        for wanted in wrt {
            match all.clone().find(|i| param(*i).name == *wanted) {
                Some(i) if possible(i) => positions.push(i),
                Some(i) if function.params[i].shared => {
                    let why = "is shared: there is no gradient with respect to it";
                    return Err(refused(format!("`{wanted}` of `{name}` {why}")));
                }
                Some(_) => return Err(refused(format!("`{wanted}` of `{name}` is not made of reals"))),
                None => return Err(refused(format!("`{name}` has no parameter `{wanted}`"))),
            }
        }
        positions.sort_unstable();
        positions.dedup();
        Ok(positions)
    }

    /// Whether all that a value of the type holds are reals, and it holds some.
    fn is_real(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Scalar(dtype) | Ty::Array(dtype, _) => *dtype == DType::Real,
            Ty::Tuple(parts) => !parts.is_empty() && parts.iter().all(|p| self.is_real(p)),
            Ty::Struct(id, _) => {
                let fields = &self.hir.structs[*id].fields;
                !fields.is_empty() && fields.iter().all(|(_, ty)| self.is_real(ty))
            }
            Ty::Fn(..) | Ty::Never => false,
        }
    }

    /// Names of the scalars and arrays in a value.
    fn leaves(&self, ty: &Ty, name: &str) -> Vec<String> {
        match ty {
            Ty::Tuple(parts) => {
                let parts = parts.iter().enumerate();
                parts.flat_map(|(i, part)| self.leaves(part, &format!("{name}.{i}"))).collect()
            }
            Ty::Struct(id, _) => {
                let fields = self.hir.structs[*id].fields.iter();
                fields.flat_map(|(field, ty)| self.leaves(ty, &format!("{name}.{field}"))).collect()
            }
            _ => vec![name.to_owned()],
        }
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Entry, message)
}

/// A function of the same parameters that gives the value and the gradient.
fn with_gradient(function: &hir::Fn, entry: FnId, wrt: Vec<usize>) -> hir::Fn {
    let span = function.span;
    let ty_of = |i: usize| function.locals[function.params[i].local].ty.clone();
    let types: Vec<Ty> = (0..function.params.len()).map(ty_of).collect();
    let mut gradient: Vec<Ty> = wrt.iter().map(|i| types[*i].clone()).collect();
    let gradient = if gradient.len() == 1 { gradient.remove(0) } else { Ty::Tuple(gradient) };
    let ret = Ty::Tuple(vec![function.ret.clone(), gradient]);
    let dims = (0..function.dims.len()).map(|i| Dim::param(DimId::new(i))).collect();
    let args = function.params.iter().zip(&types).map(|(param, ty)| Expr {
        kind: ExprKind::Local(param.local),
        ty: ty.clone(),
        span,
    });
    let args = args.collect();
    let callee =
        Expr { kind: ExprKind::Function(entry, dims), ty: Ty::Fn(types, Box::new(function.ret.clone())), span };
    let call = DerivativeCall { op: Derivative::ValueAndGrad, function: callee, wrt, args, direction: None };
    hir::Fn {
        body: Expr { kind: ExprKind::Derivative(Box::new(call)), ty: ret.clone(), span },
        ret,
        recompute: false,
        ..function.clone()
    }
}
