//! Gives out slots: one for each register and each stack top for ever, the others from a pool.

use indexmap::IndexMap;

use crate::base::IdVec;
use crate::parts::StorageClass;
use crate::plan::{Role, Slot, SlotId, StackId, TILE_BLOCK, Var, VarId};
use crate::types::{DType, Type};

/// Slots of one kind can stand in for each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    dtype: DType,
    elements: usize,
    uniform: bool,
    tile: bool,
}

impl Kind {
    fn of(ty: &Type, uniform: bool) -> Self {
        Self { dtype: ty.dtype, elements: ty.elements(), uniform, tile: false }
    }
}

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
                tile: false,
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

    fn take_from_pool(&mut self, kind: Kind) -> SlotId {
        let free = self.free.entry(kind).or_default();
        let Kind { dtype, elements, uniform, tile } = kind;
        free.pop().unwrap_or_else(|| self.slots.push(Slot { dtype, elements, uniform, tile, role: Role::Pool }))
    }

    /// The slot is free for others of its kind.
    pub(super) fn give_back(&mut self, slot: SlotId) {
        let Slot { dtype, elements, uniform, tile, .. } = self.slots[slot];
        self.free.entry(Kind { dtype, elements, uniform, tile }).or_default().push(slot);
    }

    /// A slot for tiles of a value of this type, whose leading axis is the rows, until it is given back.
    pub(super) fn tile(&mut self, ty: &Type) -> SlotId {
        let elements = ty.shape[1..].iter().product::<usize>() * TILE_BLOCK;
        self.take_from_pool(Kind { dtype: ty.dtype, elements, uniform: false, tile: true })
    }

    /// A slot until the unit ends.
    pub(super) fn take(&mut self, ty: &Type, uniform: bool) -> SlotId {
        let slot = self.take_from_pool(Kind::of(ty, uniform));
        self.held.push(slot);
        slot
    }

    /// A slot for this step alone.
    pub(super) fn take_for_step(&mut self, ty: &Type, uniform: bool) -> SlotId {
        let kind = Kind::of(ty, uniform);
        if let Some(slot) = self.scratch.get(&kind) {
            return *slot;
        }
        let slot = self.take_from_pool(kind);
        self.scratch.insert(kind, slot);
        slot
    }

    /// The slot of a temporary, until it is freed or the unit ends.
    pub(super) fn temporary(&mut self, var: VarId, ty: &Type, uniform: bool) -> SlotId {
        if let Some(slot) = self.temporaries.get(&var) {
            return *slot;
        }
        let slot = self.take_from_pool(Kind::of(ty, uniform));
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
