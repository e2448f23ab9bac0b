//! From a program to its units: what a block computes becomes values, temporaries have no place any more, and a
//! variable is loaded and stored once at most, where somebody reads it afterwards.

mod calls;
mod passing;
mod stack;

pub use calls::cfg_to_units;
pub use stack::{Stores, stack_to_units};

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::{IdVec, Loc, work};
use crate::parts::{self, StorageClass};
use crate::prim::Prim;
use crate::types::Type;
use crate::unit::{Args, Op, OpKind, Operand, Value, ValueId, VarId};

/// A variable of the program that is lowered, by its place there.
struct Source<'a> {
    name: Arc<str>,
    ty: &'a Type,
    uniform: bool,
    /// Its variable; none where it is met in one block only, which sets it first.
    var: Option<VarId>,
}

/// Makes the operations of one block.
struct BlockBuilder<'a> {
    sources: &'a [Source<'a>],
    values: IdVec<ValueId, Value>,
    ops: Vec<Op>,
    /// What each variable holds.
    current: HashMap<usize, Operand>,
    /// Where the last store of each variable would stand: behind so many operations.
    stores: Vec<(usize, VarId, Operand, Loc)>,
}

/// How a computed value is stored.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Set,
    Push,
}

impl<'a> BlockBuilder<'a> {
    fn new(sources: &'a [Source<'a>]) -> Self {
        Self { sources, values: IdVec::new(), ops: Vec::new(), current: HashMap::new(), stores: Vec::new() }
    }

    fn op(&mut self, kind: OpKind, loc: &Loc) {
        work::add(1);
        self.ops.push(Op { kind, loc: loc.clone() });
    }

    /// A value that is made for a variable.
    fn value(&mut self, source: usize) -> ValueId {
        let Source { name, ty, uniform, .. } = &self.sources[source];
        self.values.push(Value { ty: (*ty).clone(), uniform: *uniform, name: Arc::clone(name) })
    }

    /// What a variable holds.
    fn var(&mut self, source: usize, loc: &Loc) -> Operand {
        if let Some(held) = self.current.get(&source) {
            return *held;
        }
        let var = self.sources[source].var.expect("a temporary is set before it is read");
        let dst = self.value(source);
        self.op(OpKind::Load { dst, var }, loc);
        self.current.insert(source, Operand::Var(dst));
        Operand::Var(dst)
    }

    fn operand<V: Copy>(&mut self, operand: parts::Operand<V>, index: impl Fn(V) -> usize, loc: &Loc) -> Operand {
        match operand {
            parts::Operand::Var(v) => self.var(index(v), loc),
            parts::Operand::Shared(s) => Operand::Shared(s),
            parts::Operand::Const(c) => Operand::Const(c),
        }
    }

    fn operands<V: Copy>(&mut self, operands: &[parts::Operand<V>], index: impl Fn(V) -> usize, loc: &Loc) -> Args {
        operands.iter().map(|o| self.operand(*o, &index, loc)).collect()
    }

    fn compute(&mut self, how: How, source: usize, (prim, args): (Prim, Args), loc: &Loc) {
        // What is pushed under the new top is loaded before it is computed: all loads of a step stand before it.
        let below = (how == How::Push).then(|| self.var(source, loc));
        let dst = self.value(source);
        self.op(OpKind::Compute { dst, prim, args }, loc);
        if let (Some(value), Some(stack)) = (below, self.sources[source].var) {
            self.op(OpKind::Push { stack, value }, loc);
        }
        self.set(source, Operand::Var(dst), loc);
    }

    /// A variable holds something else from now on.
    fn set(&mut self, source: usize, value: Operand, loc: &Loc) {
        self.current.insert(source, value);
        if let Some(var) = self.sources[source].var {
            self.stores.push((self.ops.len(), var, value, loc.clone()));
        }
    }

    fn save(&mut self, stack: usize, value: usize, loc: &Loc) {
        let value = self.var(value, loc);
        let stack = self.sources[stack].var.expect("stacks are variables");
        self.op(OpKind::Push { stack, value }, loc);
    }

    fn pop(&mut self, source: usize, loc: &Loc) {
        let stack = self.sources[source].var.expect("stacks are variables");
        let dst = self.value(source);
        self.op(OpKind::Pop { dst, stack }, loc);
        self.set(source, Operand::Var(dst), loc);
    }

    fn effect<V: Copy>(
        &mut self,
        effect: &parts::SideEffect<parts::Operand<V>, V>,
        index: impl Fn(V) -> usize,
        loc: &Loc,
    ) {
        let effect = effect.map_reads(|o| self.operand(*o, &index, loc));
        let set = effect.dst().map(|v| index(*v));
        let effect = effect.map_dst(|v| self.value(index(v)));
        let dst = effect.dst().copied();
        self.op(OpKind::Effect(effect), loc);
        if let (Some(source), Some(value)) = (set, dst) {
            self.set(source, Operand::Var(value), loc);
        }
    }

    /// The operations of the block, with the last store of each variable that is `live` at its end.
    fn finish(self, live: impl Fn(VarId) -> bool) -> (IdVec<ValueId, Value>, Vec<Op>) {
        let mut last: HashMap<VarId, usize> = HashMap::new();
        for (i, (_, var, ..)) in self.stores.iter().enumerate() {
            last.insert(*var, i);
        }
        let kept = self.stores.into_iter().enumerate().filter(|(i, (_, var, ..))| last[var] == *i && live(*var));
        let store = |(_, var, value, loc)| Op { kind: OpKind::Store { var, value }, loc };
        let mut kept = kept.map(|(_, store)| store).peekable();
        let mut ops = Vec::with_capacity(self.ops.len());
        for (at, op) in self.ops.into_iter().enumerate() {
            while let Some(found) = kept.next_if(|(behind, ..)| *behind <= at) {
                ops.push(store(found));
            }
            ops.push(op);
        }
        ops.extend(kept.map(store));
        (self.values, ops)
    }
}

/// Finds the variables that must be variables of the machine: all but those temporaries that each block which reads
/// them sets first. `classes` are those of the program; the blocks are met one after the other.
struct Crossing {
    /// The last block that set each.
    home: Vec<Option<usize>>,
    crosses: Vec<bool>,
}

impl Crossing {
    fn new(classes: impl Iterator<Item = StorageClass>) -> Self {
        let crosses: Vec<bool> = classes.map(|class| class != StorageClass::Temporary).collect();
        Self { home: vec![None; crosses.len()], crosses }
    }
    fn read(&mut self, block: usize, var: usize) {
        self.crosses[var] |= self.home[var] != Some(block);
    }
    fn write(&mut self, block: usize, var: usize) {
        self.home[var] = Some(block);
    }
    /// It is read or set as a whole register.
    fn whole(&mut self, var: usize) {
        self.crosses[var] = true;
    }
}
