//! Kernels: one primitive over all lanes of a buffer. Plain loops over lane slices; each primitive is matched once a call.

mod call;
mod contraction;
mod elementwise;
mod gather;
mod integer;
mod lanes;
mod movement;
mod product;
mod random;
mod reduction;
mod rows;
mod slices;
mod spread;
#[cfg(test)]
mod tests;
mod triangular;

pub use call::{Active, Keep, KernelArg, KernelCall, Streams};
pub use contraction::gemm;

pub(super) use gather::fit;
pub(super) use product::most_columns_of_rows;
pub(super) use random::{Drawn, of_lane as draws_of_lane};
pub(super) use rows::multiversioned;
pub(super) use slices::{binary, log1p_exp_and_inv_logit, sums_of_log1p_exp_and_inv_logit, unary};

use crate::backend::cpu::buffer::Buffer;
use crate::plan::BatchKernel;
use crate::prim::{Class, Prim, computed_elementwise};
use crate::vmath::Real;

/// Runs a primitive into `out`, which has at least `elements * width` values of the right type and is no operand.
pub fn run<R: Real>(mut call: KernelCall<'_, R>, streams: Streams<'_>, out: &mut Buffer<R>) {
    if call.width == 0 {
        return;
    }
    let operands = call.args.iter().map(|a| (a.ty, a.broadcast));
    if BatchKernel::may_fall_back(call.prim) && BatchKernel::of(call.prim, operands) == BatchKernel::LaneByLane {
        return lanes::run(&mut call, out);
    }
    match call.prim.class() {
        Class::Movement(movement) => movement::run(movement, &mut call, out),
        Class::Reduction(reduction) => reduction::run(reduction, &mut call, out),
        Class::Contraction(contraction) => contraction::run(contraction, &call, out),
        Class::Triangular(triangular) => triangular::run(triangular, &call, out),
        Class::Draw(draw) => random::run(draw, &call, streams, out),
        Class::Identity(_) | computed_elementwise!() => match integer::handles(&call) {
            true => integer::run(&mut call, out),
            false => elementwise::run(&call, out),
        },
    }
}

/// Whether the kernel of a primitive can keep the values of lanes that do not count.
pub fn can_keep(prim: Prim) -> bool {
    prim.is_elementwise() && elementwise::can_keep(prim)
}

/// Runs a primitive that [changes a part](Prim::changes_part) of its first operand in place, in the active lanes only: `target` (of width
/// `call.width`) is that operand and the result; `call.args` are the other operands (the new part or parts, then the indices).
pub fn run_in_place<R: Real>(mut call: KernelCall<'_, R>, target: &mut Buffer<R>) {
    if call.width > 0 {
        movement::set_in_place(&mut call, target);
    }
}
