//! Reductions of the array of all elements, with the bits of the loop that they take the place of.

use crate::cfg::build::Builder;
use crate::cfg::{Func, Operand, Program, Terminator};
use crate::prim::Prim;
use crate::transform::derivative::prepare::name_all;
use crate::types::{DType, Scalar, Type};

/// What elements are reduced by. Int, real: `Sum`, `Prod`, `Min`, `Max` (nothing at all traps for `Min` and `Max`);
/// bool: `Any`, `All`; real: `Mean`, `LogSumExp`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named after the functions of the language")]
pub enum Reduce {
    Sum,
    Prod,
    Min,
    Max,
    Any,
    All,
    Mean,
    LogSumExp,
}

/// Reduces what the function returns.
pub(super) fn reduce(program: &Program, func: &mut Func, op: Reduce) {
    for id in func.blocks.ids() {
        let Terminator::Return(values) = &func.blocks[id].term else { continue };
        let elements = values[0];
        let block = &mut func.blocks[id];
        let vars = std::mem::take(&mut func.vars);
        let mut code = Code(Builder::new(program, vars, block.loc.clone()).naming("t"));
        let ty = code.0.ty(elements);
        let result = code.reduced(op, elements, &ty);
        func.vars = code.0.vars;
        block.insts.append(&mut code.0.insts);
        block.term = Terminator::Return(vec![result]);
    }
    let dtype = func.results[0].dtype;
    func.results = vec![Type::scalar(dtype)];
    name_all(func);
}

struct Code<'p>(Builder<&'p Program>);

impl Code<'_> {
    fn prim(&mut self, prim: Prim, args: &[Operand], ty: &Type) -> Operand {
        self.0.prim_as(prim, args, ty.clone())
    }

    fn reduced(&mut self, op: Reduce, x: Operand, ty: &Type) -> Operand {
        let one = Type::scalar(ty.dtype);
        match op {
            Reduce::Sum => self.prim(Prim::Sum, &[x], &one),
            Reduce::Prod => self.prim(Prim::Prod, &[x], &one),
            Reduce::Min => self.prim(Prim::MinOf, &[x], &one),
            Reduce::Max => self.prim(Prim::MaxOf, &[x], &one),
            Reduce::Any => self.prim(Prim::Any, &[x], &one),
            Reduce::All => self.prim(Prim::All, &[x], &one),
            Reduce::Mean => {
                let total = self.prim(Prim::Sum, &[x], &one);
                let count = Operand::Const(Scalar::Real(ty.elements() as f64));
                self.prim(Prim::Div, &[total, count], &one)
            }
            Reduce::LogSumExp => self.log_sum_exp(x, ty),
        }
    }

    /// `largest + log(sum(exp(x - largest)))`; the largest itself where it is infinite. There everything else is computed of
    /// zeros, so that no derivative comes through it.
    fn log_sum_exp(&mut self, x: Operand, ty: &Type) -> Operand {
        let (real, bool) = (Type::real(), Type::scalar(DType::Bool));
        let zero = Operand::Const(Scalar::Real(0.0));
        let extreme = self.prim(Prim::MaxOf, &[x], &real);
        let size = self.prim(Prim::Abs, &[extreme], &real);
        let infinite = self.prim(Prim::Eq, &[size, Operand::Const(Scalar::Real(f64::INFINITY))], &bool);
        let finite = self.prim(Prim::Select, &[infinite, zero, x], ty);
        let largest = self.prim(Prim::MaxOf, &[finite], &real);
        let below = self.prim(Prim::Sub, &[finite, largest], ty);
        let scaled = self.prim(Prim::Exp, &[below], ty);
        let total = self.prim(Prim::Sum, &[scaled], &real);
        let log = self.prim(Prim::Log, &[total], &real);
        let sum = self.prim(Prim::Add, &[largest, log], &real);
        self.prim(Prim::Select, &[infinite, extreme, sum], &real)
    }
}
