//! Lanes that trap: they leave the active set, and a report of each is kept.

use super::Stepper;
use crate::backend::cpu::kernels;
use crate::base::Loc;
use crate::prim::Prim;
use crate::run::{Access, Trap, TrapKind};
use crate::types::Type;
use crate::vmath::Real;

impl<R: Real> Stepper<'_, R> {
    /// Says of the lanes that a kernel reported whose index is out of range what they asked for. `in_place`: what is changed is no
    /// operand but the result, of type `ty`.
    #[cold]
    #[inline(never)]
    pub(in crate::backend::cpu) fn tell(
        &mut self,
        (prim, in_place, ty): (Prim, bool, &Type),
        operands: &[kernels::KernelArg<'_, R>],
        columns: usize,
        loc: &Loc,
    ) {
        let Some(first) = Access::first_index(prim) else { return };
        let offset = usize::from(in_place);
        let indices = &operands[first - offset..];
        let array = if in_place { ty } else { operands[0].ty };
        let entries = match prim {
            Prim::Slice => ty.shape.first().copied(),
            Prim::SetSlice => operands[1 - offset].ty.shape.first().copied(),
            _ => None,
        };
        let places = indices.iter().find(|i| !i.ty.is_scalar()).map_or(1, |i| i.ty.elements());
        for (column, _) in self.kernel_traps.iter().filter(|(_, kind)| *kind == TrapKind::IndexOutOfRange) {
            let index = |axis: usize, place: usize| {
                let index = &indices[axis];
                let place = if index.ty.is_scalar() { 0 } else { place };
                index.buffer.ints()[if index.broadcast { place } else { place * columns + *column as usize }]
            };
            let access = Access { shape: &array.shape, axes: indices.len(), places, entries, index: &index };
            self.told.push(access.message(loc));
        }
    }

    /// Takes out the lanes that a kernel reported.
    pub(super) fn take_traps(&mut self, loc: &Loc) {
        let mut traps = std::mem::take(&mut self.kernel_traps);
        let mut told = std::mem::take(&mut self.told).into_iter();
        for (column, kind) in traps.drain(..) {
            let message = if kind == TrapKind::IndexOutOfRange { told.next() } else { None };
            self.trap(column as usize, kind, loc, message.unwrap_or_default());
        }
        self.kernel_traps = traps;
    }

    /// These active columns trap.
    pub(in crate::backend::cpu) fn trap_columns(&mut self, columns: &[usize], kind: TrapKind, loc: &Loc) {
        for column in columns {
            self.trap(*column, kind, loc, String::new());
        }
    }

    /// All active lanes trap.
    pub(in crate::backend::cpu) fn trap_all(&mut self, kind: TrapKind, loc: &Loc) {
        self.trap_all_with(kind, loc, "");
    }
    pub(super) fn trap_all_with(&mut self, kind: TrapKind, loc: &Loc, message: &str) {
        let columns: Vec<usize> = self.active.mask.iter().collect();
        for column in columns {
            self.trap(column, kind, loc, message.to_owned());
        }
    }

    /// A lane traps: it is not active any more.
    pub(in crate::backend::cpu) fn trap(&mut self, column: usize, kind: TrapKind, loc: &Loc, message: String) {
        let lane = self.active.lane(column);
        self.active.remove(column);
        self.bury(lane, kind, loc, message);
    }

    /// Reports a lane that is not in the active set.
    pub(in crate::backend::cpu) fn bury(&mut self, lane: usize, kind: TrapKind, loc: &Loc, message: String) {
        self.dead.push(lane);
        self.traps.push(Trap { position: self.lanes.positions[lane], kind, loc: loc.clone(), call_depth: 0, message });
    }
}
