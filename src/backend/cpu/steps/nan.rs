//! Where a NaN is born, for `--check nan`.

use super::Stepper;
use crate::backend::cpu::buffer::{Buffer, Values};
use crate::backend::cpu::kernels;
use crate::exec::mask::for_each_lane;
use crate::plan::Compute;
use crate::run::TrapKind;
use crate::types::{DType, Type};
use crate::vmath::Real;

impl<R: Real> Stepper<'_, R> {
    /// The active columns that did not trap and where a NaN is born trap.
    /// `had_nan`: the columns that had one in what is set in place.
    pub(in crate::backend::cpu) fn find_nans(
        &mut self,
        operands: &[kernels::KernelArg<'_, R>],
        out: &Buffer<R>,
        ty: &Type,
        had_nan: &[usize],
    ) {
        let columns = self.active.columns();
        let traps = &mut self.kernel_traps;
        for_each_lane(self.active.mask.words(), |column| {
            let trapped = traps.iter().any(|(l, _)| *l as usize == column) || had_nan.contains(&column);
            if !trapped && bears_nan(operands, out, ty, columns, column) {
                traps.push((column as u32, TrapKind::Nan));
            }
        });
    }
}

/// Whether a step could make a NaN of numbers.
pub(in crate::backend::cpu) fn bears_nans(c: &Compute) -> bool {
    c.ty.dtype == DType::Real && c.prim.bears_nans()
}

/// Whether a real element is NaN in a column.
pub(super) fn has_nan<R: Real>(values: Values<'_, R>, elements: usize, width: usize, column: usize) -> bool {
    let values = values.reals();
    (0..elements).any(|e| values[e * width + column].to_f64().is_nan())
}

/// Whether the result has a NaN in a column though no real operand has one there.
pub(super) fn bears_nan<R: Real>(
    operands: &[kernels::KernelArg<'_, R>],
    out: &Buffer<R>,
    ty: &Type,
    columns: usize,
    column: usize,
) -> bool {
    has_nan(out.values(0), ty.elements(), columns, column)
        && !operands.iter().any(|a| {
            let (width, column) = if a.broadcast { (1, 0) } else { (columns, column) };
            a.ty.dtype == DType::Real && has_nan(a.buffer, a.ty.elements(), width, column)
        })
}
