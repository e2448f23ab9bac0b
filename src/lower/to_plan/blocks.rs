//! From the operations of a unit block to instructions over places: variables stay what they are, a value that is
//! stored is computed where it goes, the others are temporaries.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::{How, Inst, Moves, RawBlock, Read};
use crate::base::{Id as _, IdVec, Loc, work};
use crate::parts::{Operand, StorageClass};
use crate::plan::{Origin, Var, VarId};
use crate::prim::Prim;
use crate::types::Type;
use crate::unit::{self, Block, BlockEnd, OpKind, ValueId};

/// The variable of a plan that a variable of its units is.
pub(super) fn var(v: unit::VarId) -> VarId {
    VarId::new(v.index())
}

/// The variables of a body; those of temporaries come after them.
pub(super) fn vars(vars: &IdVec<unit::VarId, unit::Var>) -> IdVec<VarId, Var> {
    let var = |v: &unit::Var| Var {
        name: v.name.clone(),
        ty: v.ty.clone(),
        class: v.class,
        uniform: v.uniform,
        slot: None,
        stack: None,
    };
    vars.values().map(var).collect()
}

/// The instructions of a block; its temporaries are added to `vars`.
pub(super) fn raw_block<T: BlockEnd + Clone>(block: &Block<T>, vars: &mut IdVec<VarId, Var>) -> RawBlock<T> {
    let mut lowering = Lowering {
        block,
        vars,
        places: IdVec::filled(None, block.values.len()),
        last: last_uses(block),
        stores: stores(block),
        holds: HashMap::new(),
        insts: Vec::with_capacity(block.ops.len()),
        origins: Vec::with_capacity(block.ops.len()),
        moved: Moves::new(),
        in_order: false,
    };
    let mut at = 0;
    while at < block.ops.len() {
        at += lowering.op(at);
    }
    let cond = block.term.condition().map(|c| lowering.read(c));
    let Lowering { insts, origins, in_order, .. } = lowering;
    let (term, loc) = (block.term.clone(), block.loc.clone());
    RawBlock { insts, origins, in_order, values: block.values.len(), cond, term, loc }
}

/// By value: the last operation that reads it; the number of operations for the terminator.
fn last_uses<T: BlockEnd>(block: &Block<T>) -> IdVec<ValueId, usize> {
    let mut last = IdVec::filled(0, block.values.len());
    for (at, op) in block.ops.iter().enumerate() {
        work::add(1);
        op.kind.for_each_operand(|o| o.var().into_iter().for_each(|v| last[v] = at));
    }
    if let Some(Operand::Var(v)) = block.term.condition() {
        last[v] = block.ops.len();
    }
    last
}

/// By variable: the operation that stores it, and what.
fn stores<T>(block: &Block<T>) -> HashMap<VarId, (usize, unit::Operand)> {
    let stored = block.ops.iter().enumerate().filter_map(|(at, op)| match &op.kind {
        OpKind::Store { var, value } => Some((self::var(*var), (at, *value))),
        _ => None,
    });
    stored.collect()
}

struct Lowering<'a, T> {
    block: &'a Block<T>,
    vars: &'a mut IdVec<VarId, Var>,
    /// Where each value is.
    places: IdVec<ValueId, Option<VarId>>,
    last: IdVec<ValueId, usize>,
    stores: HashMap<VarId, (usize, unit::Operand)>,
    /// The values that are where a variable is.
    holds: HashMap<VarId, Vec<ValueId>>,
    insts: Vec<(Inst, Loc)>,
    /// See [`RawBlock::origins`].
    origins: Vec<(Origin, Moves)>,
    /// Values that go elsewhere with the next instruction, and where.
    moved: Moves,
    /// See [`RawBlock::in_order`].
    in_order: bool,
}

impl<T> Lowering<'_, T> {
    fn read(&self, operand: unit::Operand) -> Read {
        operand.map(|v| self.places[v].expect("a value is computed before it is read"))
    }
    fn reads(&self, operands: &[unit::Operand]) -> Vec<Read> {
        operands.iter().map(|o| self.read(*o)).collect()
    }
    /// Adds an instruction that does some operations in a row. A value that it makes is where it writes from then on.
    fn inst(&mut self, inst: Inst, ops: Range<usize>, value: Option<ValueId>) {
        let mut homes = std::mem::take(&mut self.moved);
        homes.extend(value.zip(inst.writes()));
        self.insts.push((inst, self.block.ops[ops.start].loc.clone()));
        self.origins.push((Origin::Ops(ops.collect()), homes));
    }
    /// Adds a copy that only places need, before an operation.
    fn copy(&mut self, dst: VarId, (read, of): (Read, unit::Operand), at: usize) {
        let copy = Inst::Compute { how: How::Set, dst, prim: Prim::Copy, args: vec![read] };
        self.insts.push((copy, self.block.ops[at].loc.clone()));
        self.origins.push((Origin::Copy(of), SmallVec::new()));
    }

    /// A variable with the place of a value.
    fn temporary(&mut self, value: ValueId) -> VarId {
        let unit::Value { ty, uniform, name } = &self.block.values[value];
        self.named((name, ty), *uniform)
    }
    fn named(&mut self, (name, ty): (&str, &Type), uniform: bool) -> VarId {
        let (name, ty) = (name.to_owned(), ty.clone());
        self.vars.push(Var { name, ty, class: StorageClass::Temporary, uniform, slot: None, stack: None })
    }

    /// A variable gets another value, in the place of an operation: the values that it holds and that are read later go
    /// elsewhere.
    fn overwrite(&mut self, var: VarId, value: Option<ValueId>, at: usize) {
        for held in self.holds.insert(var, value.into_iter().collect()).unwrap_or_default() {
            if self.last[held] > at && Some(held) != value {
                let dst = self.temporary(held);
                self.copy(dst, (Operand::Var(var), Operand::Var(held)), at);
                // The instruction for which it is moved still reads it where it was.
                self.moved.push((held, dst));
                self.in_order = true;
                self.places[held] = Some(dst);
            }
        }
        if let Some(value) = value {
            self.places[value] = Some(var);
        }
    }

    /// The variable that a value is stored in by the operation at a place.
    fn stored(&self, value: ValueId, at: usize) -> Option<VarId> {
        match self.block.ops.get(at).map(|op| &op.kind) {
            Some(OpKind::Store { var, value: Operand::Var(v) }) if *v == value => Some(self::var(*var)),
            _ => None,
        }
    }

    /// Lowers the operation at a place, and those behind it that it takes in. Returns how many they are.
    fn op(&mut self, at: usize) -> usize {
        let block = self.block;
        match &block.ops[at].kind {
            OpKind::Load { dst, var } => {
                let var = self::var(*var);
                self.places[*dst] = Some(var);
                self.holds.entry(var).or_default().push(*dst);
            }
            OpKind::Compute { dst, prim, args } => return self.compute(at, *dst, *prim, args),
            OpKind::Store { var, value } => {
                let (var, read) = (self::var(*var), self.read(*value));
                if read != Operand::Var(var) {
                    self.overwrite(var, None, at);
                    let copy = Inst::Compute { how: How::Set, dst: var, prim: Prim::Copy, args: vec![read] };
                    self.inst(copy, at..at + 1, None);
                }
            }
            OpKind::Push { stack, value: pushed } => {
                let stack = self::var(*stack);
                let value = match self.read(*pushed) {
                    Operand::Var(v) => v,
                    read => {
                        let ty = self.vars[stack].ty.clone();
                        let dst = self.named(("pushed", &ty), false);
                        self.copy(dst, (read, *pushed), at);
                        dst
                    }
                };
                self.inst(Inst::Save { stack, value }, at..at + 1, None);
            }
            OpKind::Pop { dst, stack } => {
                let var = self::var(*stack);
                self.overwrite(var, Some(*dst), at);
                let taken = 1 + usize::from(self.stored(*dst, at + 1) == Some(var));
                self.inst(Inst::Pop(var), at..at + taken, Some(*dst));
                return taken;
            }
            OpKind::Effect(effect) => {
                let dst = effect.dst().copied();
                let stored = dst.and_then(|dst| self.stored(dst, at + 1));
                let reads = effect.map_reads(|o| self.read(*o));
                let effect = reads.map_dst(|dst| {
                    let var = match stored {
                        Some(var) => {
                            self.overwrite(var, Some(dst), at);
                            var
                        }
                        None => self.temporary(dst),
                    };
                    self.places[dst] = Some(var);
                    var
                });
                let taken = 1 + usize::from(stored.is_some());
                self.inst(Inst::Effect(effect), at..at + taken, dst);
                return taken;
            }
        }
        1
    }

    /// What is stored next is computed into the variable, as a new top where its old one is pushed in between.
    fn compute(&mut self, at: usize, dst: ValueId, prim: Prim, args: &[unit::Operand]) -> usize {
        let reads = self.reads(args);
        let (how, target, taken) = match (self.stored(dst, at + 1), self.pushed_over(dst, at)) {
            (Some(var), _) => (How::Set, Some(var), 2),
            (None, Some(stack)) => (How::Push, Some(stack), 3),
            (None, None) => (How::Set, None, 1),
        };
        let var = match target {
            Some(var) => {
                self.overwrite(var, Some(dst), at + taken - 1);
                var
            }
            None => match self.replaced(at, dst, prim, args) {
                Some(var) => {
                    if self.holds.contains_key(&var) {
                        self.overwrite(var, Some(dst), at);
                    }
                    var
                }
                None => self.temporary(dst),
            },
        };
        self.places[dst] = Some(var);
        self.inst(Inst::Compute { how, dst: var, prim, args: reads }, at..at + taken, Some(dst));
        taken
    }

    /// The stack whose old top is pushed by the next operation, and which has a value as its top by the one after it.
    fn pushed_over(&self, value: ValueId, at: usize) -> Option<VarId> {
        let OpKind::Push { stack, value: Operand::Var(old) } = self.block.ops.get(at + 1)?.kind else { return None };
        let var = self::var(stack);
        (self.places[old] == Some(var) && self.stored(value, at + 2) == Some(var)).then_some(var)
    }

    /// The place of an array of which a part is replaced and which nobody reads any more: the result takes it over. So it
    /// does that of a variable which is stored later in the block, since nobody reads what it held; not where the result
    /// would have to make room for what is stored.
    fn replaced(&self, at: usize, dst: ValueId, prim: Prim, args: &[unit::Operand]) -> Option<VarId> {
        let (Operand::Var(array), rest) = (*args.first()?, &args[1..]) else { return None };
        let place = self.places[array]?;
        let class = self.vars[place].class;
        let own = match self.holds.get(&place) {
            None => class == StorageClass::Temporary,
            Some(held) => {
                let stored = self.stores.get(&place).is_some_and(|(store, value)| {
                    *store > at && (*value == Operand::Var(dst) || self.last[dst] <= *store)
                });
                let alone = held.iter().all(|held| self.last[*held] <= at);
                stored && alone && class != StorageClass::Stack
            }
        };
        let last = self.last[array] == at && !rest.contains(&args[0]);
        let same = self.block.values[array].uniform == self.block.values[dst].uniform;
        (prim.changes_part() && own && last && same).then_some(place)
    }
}
