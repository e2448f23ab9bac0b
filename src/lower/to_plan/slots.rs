//! Gives out slots: one for each register and each stack top for ever, the others from a pool.

use indexmap::IndexMap;

use crate::base::IdVec;
use crate::parts::StorageClass;
use crate::plan::{Role, Slot, SlotId, StackId, Var, VarId};
use crate::types::{DType, Type};

/// Slots of one kind can stand in for each other: element type, elements, whether uniform.
type Kind = (DType, usize, bool);

/// The slots of a body.
pub(super) struct Slots {
    slots: IdVec<SlotId, Slot>,
    free: IndexMap<Kind, Vec<SlotId>>,
    /// Slots that are in use until the unit ends.
    held: Vec<SlotId>,
    temporaries: IndexMap<VarId, SlotId>,
    /// The scratch slot of each kind that the steps of the unit share. No temporary gets it before the unit ends: blocks of
    /// a region run in another order than the one in which their steps are made.
    scratch: IndexMap<Kind, SlotId>,
    pub(super) stacks: IdVec<StackId, VarId>,
}

impl Slots {
    /// Gives every register and every stack its slot, and every stack its memory.
    pub(super) fn for_state(vars: &mut IdVec<VarId, Var>) -> Self {
        let (mut slots, mut stacks) = (IdVec::new(), IdVec::new());
        for (id, var) in vars.iter_mut() {
            if var.class == StorageClass::Temporary || var.uniform {
                continue;
            }
            var.slot = Some(slots.push(Slot {
                dtype: var.ty.dtype,
                elements: var.ty.elements(),
                uniform: false,
                role: Role::State,
            }));
            var.stack = (var.class == StorageClass::Stack).then(|| stacks.push(id));
        }
        Self {
            slots,
            free: IndexMap::new(),
            held: Vec::new(),
            temporaries: IndexMap::new(),
            scratch: IndexMap::new(),
            stacks,
        }
    }

    fn take_from_pool(&mut self, ty: &Type, uniform: bool) -> SlotId {
        let kind = (ty.dtype, ty.elements(), uniform);
        let free = self.free.entry(kind).or_default();
        free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { dtype: ty.dtype, elements: ty.elements(), uniform, role: Role::Pool })
        })
    }

    fn give_back(&mut self, slot: SlotId) {
        let s = self.slots[slot];
        let free = self.free.entry((s.dtype, s.elements, s.uniform));
        free.or_default().push(slot);
    }

    /// A slot until the unit ends.
    pub(super) fn take(&mut self, ty: &Type, uniform: bool) -> SlotId {
        let slot = self.take_from_pool(ty, uniform);
        self.held.push(slot);
        slot
    }

    /// A slot for this step alone.
    pub(super) fn take_for_step(&mut self, ty: &Type, uniform: bool) -> SlotId {
        let kind = (ty.dtype, ty.elements(), uniform);
        if let Some(slot) = self.scratch.get(&kind) {
            return *slot;
        }
        let slot = self.take_from_pool(ty, uniform);
        self.scratch.insert(kind, slot);
        slot
    }

    /// The slot of a temporary, until it is freed or the unit ends.
    pub(super) fn temporary(&mut self, var: VarId, ty: &Type, uniform: bool) -> SlotId {
        if let Some(slot) = self.temporaries.get(&var) {
            return *slot;
        }
        let slot = self.take_from_pool(ty, uniform);
        self.temporaries.insert(var, slot);
        slot
    }

    /// The temporary was met for the last time.
    pub(super) fn free_temporary(&mut self, var: VarId) {
        if let Some(slot) = self.temporaries.swap_remove(&var) {
            self.give_back(slot);
        }
    }

    /// All slots but those of the state are free again.
    pub(super) fn end_unit(&mut self) {
        let temporaries = std::mem::take(&mut self.temporaries);
        let held = std::mem::take(&mut self.held);
        let scratch = std::mem::take(&mut self.scratch);
        let slots = temporaries.into_values().chain(held).chain(scratch.into_values());
        slots.for_each(|slot| self.give_back(slot));
    }

    pub(super) fn finish(self) -> IdVec<SlotId, Slot> {
        self.slots
    }
}
