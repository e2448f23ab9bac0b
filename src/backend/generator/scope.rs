//! Where the values of a block are.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::base::{Id as _, IdVec};
use crate::parts::SharedId;
use crate::plan::{self, Constant, ConstantId, Homes, Origin, Slot, SlotId, StackId};
use crate::prim::Prim;
use crate::types::{DType, Scalar, Type};
use crate::unit::{Block, Globals, Op, OpKind, Operand, Value, ValueId, VarId};

/// Where a plan stores what the units of a body name.
pub(in crate::backend) struct Storage<'a> {
    /// The lane buffers.
    pub(super) slots: &'a IdVec<SlotId, Slot>,
    /// By variable.
    homes: &'a IdVec<VarId, Option<SlotId>>,
    stacks: IdVec<VarId, Option<StackId>>,
    /// How many stacks there are.
    pub(super) stack_count: usize,
    /// By shared value: the constant that it is for steps.
    pub(super) constants: IdVec<SharedId, Option<ConstantId>>,
    /// What is the same for all lanes.
    pub(super) globals: &'a Globals,
    /// By block.
    pub(super) blocks: Vec<&'a Homes>,
}

impl<'a> Storage<'a> {
    /// That of a body of a plan.
    pub(in crate::backend) fn of<T>(body: &'a plan::Body<T>, globals: &'a plan::Globals) -> Self {
        let mut constants = IdVec::filled(None, globals.units.shared.len());
        for (id, constant) in globals.constants.iter() {
            if let Constant::Shared(shared) = constant {
                constants[*shared] = Some(id);
            }
        }
        let stack = |var: VarId| body.vars[plan::VarId::new(var.index())].stack;
        Self {
            slots: &body.slots,
            homes: &body.homes,
            stacks: body.homes.ids().map(stack).collect(),
            stack_count: body.stacks.len(),
            constants,
            globals: &globals.units,
            blocks: body.blocks.values().map(|b| &b.homes).collect(),
        }
    }
    /// The lane buffers.
    pub(in crate::backend) fn slots(&self) -> &'a IdVec<SlotId, Slot> {
        self.slots
    }
    /// The element type of a constant.
    pub(in crate::backend) fn constant_type(&self, constant: ConstantId) -> DType {
        let of = self.constants.iter().find(|(_, c)| **c == Some(constant));
        of.map_or(DType::Real, |(id, _)| self.globals.shared[id].ty.dtype)
    }
    /// Where a variable is that a step meets.
    pub(super) fn home(&self, var: VarId) -> SlotId {
        self.home_if_any(var).expect("what a step meets has a slot")
    }
    /// Where a variable is; none for one that no step meets.
    pub(super) fn home_if_any(&self, var: VarId) -> Option<SlotId> {
        self.homes[var]
    }
    /// The memory of a stack.
    pub(super) fn stack(&self, var: VarId) -> StackId {
        self.stacks[var].expect("only stacks are pushed and popped")
    }
}

/// A block, and where its values are.
pub(in crate::backend) struct Scope<'a> {
    pub(super) values: &'a IdVec<ValueId, Value>,
    pub(super) ops: &'a [Op],
    pub(super) storage: &'a Storage<'a>,
    pub(super) homes: &'a Homes,
    /// By value: what it is, but for its shape, if the plan has no place for it.
    roots: IdVec<ValueId, Operand>,
    /// By value: the variable that it is loaded from.
    loads: IdVec<ValueId, Option<VarId>>,
    /// What is stored in slots for other blocks.
    stored: HashMap<SlotId, Operand>,
}

impl<'a> Scope<'a> {
    /// `outlives` says of a variable whether it may be read after its block.
    pub(super) fn of<T>(
        block: &'a Block<T>,
        (homes, storage): (&'a Homes, &'a Storage<'a>),
        outlives: impl Fn(VarId) -> bool,
    ) -> Self {
        let mut roots: IdVec<ValueId, Operand> = block.values.ids().map(Operand::Var).collect();
        let mut loads = IdVec::filled(None, block.values.len());
        let mut stored = HashMap::new();
        for op in &block.ops {
            match &op.kind {
                OpKind::Load { dst, var } => loads[*dst] = Some(*var),
                OpKind::Store { var, value } if outlives(*var) => _ = stored.insert(storage.home(*var), *value),
                OpKind::Compute { dst, prim: Prim::Reshape, args } if homes.values[*dst].is_empty() => {
                    roots[*dst] = match args[0] {
                        Operand::Var(of) => roots[of],
                        other => other,
                    };
                }
                _ => {}
            }
        }
        Self { values: &block.values, ops: &block.ops, storage, homes, roots, loads, stored }
    }

    /// What an operand stands for: what it is a reshape of, where the plan has no place for that.
    pub(super) fn root(&self, operand: Operand) -> Operand {
        match operand {
            Operand::Var(v) => self.roots[v],
            other => other,
        }
    }
    /// Where a value is before a step, if it has a slot by then.
    pub(super) fn home(&self, value: ValueId, step: usize) -> Option<SlotId> {
        match self.loads[value] {
            // What is loaded moves when its variable is stored.
            Some(var) => Some(self.homes.before(value, step).unwrap_or_else(|| self.storage.home(var))),
            None => self.homes.before(value, step),
        }
    }
    /// Whether a slot is that of a variable, which gets this operand for other blocks to read.
    pub(super) fn is_stored(&self, slot: SlotId, operand: Operand) -> bool {
        self.stored.get(&slot) == Some(&operand)
    }
    /// The type of an operand.
    pub(super) fn ty(&self, operand: Operand) -> Cow<'a, Type> {
        match operand {
            Operand::Var(v) => Cow::Borrowed(&self.values[v].ty),
            Operand::Shared(s) => Cow::Borrowed(&self.storage.globals.shared[s].ty),
            Operand::Const(c) => Cow::Owned(Type::scalar(c.dtype())),
        }
    }
    /// Its elements.
    pub(super) fn elements(&self, operand: Operand) -> usize {
        match operand {
            Operand::Const(_) => 1,
            operand => self.ty(operand).elements(),
        }
    }
    /// Whether there is one value for all lanes.
    pub(super) fn is_common(&self, operand: Operand) -> bool {
        match self.root(operand) {
            Operand::Var(v) => self.values[v].uniform,
            Operand::Shared(_) | Operand::Const(_) => true,
        }
    }
    /// The value of an operand that stands in the program text.
    pub(super) fn literal_int(&self, operand: Operand) -> Option<i64> {
        match self.root(operand) {
            Operand::Const(Scalar::Int(i)) => Some(i),
            _ => None,
        }
    }
    /// The slots that steps read, from one on, each with the value that it has there.
    pub(super) fn read_from(&self, step: usize) -> HashSet<(SlotId, ValueId)> {
        let mut read = HashSet::new();
        for (at, origin) in self.homes.steps.iter().enumerate().skip(step) {
            let mut see = |operand: Operand| read.extend(self.slot_of(operand, at));
            match origin {
                Origin::Ops(ops) => ops.iter().for_each(|op| self.ops[*op].kind.for_each_operand(&mut see)),
                Origin::Copy(operand) => see(*operand),
            }
        }
        read
    }
    /// The slot that a step reads for an operand, and the value that is there.
    pub(super) fn slot_of(&self, operand: Operand, step: usize) -> Option<(SlotId, ValueId)> {
        let value = self.root(operand).var()?;
        Some((self.home(value, step)?, value))
    }
}
