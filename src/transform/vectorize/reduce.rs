//! Reductions of the array of all elements, with the bits of the loop that they take the place of.

use crate::cfg::build::{Builder, real};
use crate::cfg::{Func, Operand, Program, Terminator};
use crate::prim::Prim;
use crate::transform::derivative::prepare::name_all;
use crate::types::Type;

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
        let mut code = Builder::new(program, vars, block.loc.clone()).naming("t");
        let result = reduced(&mut code, op, elements);
        func.vars = code.vars;
        block.insts.append(&mut code.insts);
        block.term = Terminator::Return(vec![result]);
    }
    let dtype = func.results[0].dtype;
    func.results = vec![Type::scalar(dtype)];
    name_all(func);
}

fn reduced(code: &mut Builder<&Program>, op: Reduce, x: Operand) -> Operand {
    let ty = code.ty(x);
    let mut over = |prim: Prim| code.prim_as(prim, &[x], Type::scalar(ty.dtype));
    match op {
        Reduce::Sum => over(Prim::Sum),
        Reduce::Prod => over(Prim::Prod),
        Reduce::Min => over(Prim::MinOf),
        Reduce::Max => over(Prim::MaxOf),
        Reduce::Any => over(Prim::Any),
        Reduce::All => over(Prim::All),
        Reduce::Mean => {
            let total = over(Prim::Sum);
            code.prim_as(Prim::Div, &[total, real(ty.elements() as f64)], Type::real())
        }
        Reduce::LogSumExp => log_sum_exp(code, x, &ty),
    }
}

/// `largest + log(sum(exp(x - largest)))`, with 0 in the place of a largest element that is infinite: then a sum of 0 or
/// infinity gives it back. What is taken off and added again has no part in derivatives, which so are `softmax(x)`, and 0
/// where the largest element is infinite.
fn log_sum_exp(code: &mut Builder<&Program>, x: Operand, ty: &Type) -> Operand {
    let extreme = code.prim_as(Prim::MaxOf, &[x], Type::real());
    let size = code.prim_as(Prim::Abs, &[extreme], Type::real());
    let infinite = code.prim_as(Prim::Eq, &[size, real(f64::INFINITY)], Type::bool());
    let finite = code.prim_as(Prim::Select, &[infinite, real(0.0), extreme], Type::real());
    let largest = code.prim_as(Prim::StopGradient, &[finite], Type::real());
    let below = code.prim_as(Prim::Sub, &[x, largest], ty.clone());
    let scaled = code.prim_as(Prim::Exp, &[below], ty.clone());
    let total = code.prim_as(Prim::Sum, &[scaled], Type::real());
    let log = code.prim_as(Prim::Log, &[total], Type::real());
    code.prim_as(Prim::Add, &[largest, log], Type::real())
}
