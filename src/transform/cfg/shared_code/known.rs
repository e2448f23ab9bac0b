//! What variables hold at a place, where it is one shared value or constant on every path to it.

use crate::analysis::worklist::forwards;
use crate::base::{Id as _, IdMap, IdVec, work};
use crate::cfg::{BlockId, Func, InstKind, Operand, VarId};
use crate::prim::Prim;

/// What is known where each block starts.
pub(super) struct Known {
    starts: IdVec<BlockId, Option<State>>,
}

/// What is known at a place.
#[derive(Clone)]
pub(super) struct State {
    values: IdMap<VarId, Operand>,
}

impl Known {
    pub(super) fn of(func: &Func) -> Self {
        let nothing = State { values: IdMap::new(func.vars.len()) };
        let mut starts: IdVec<BlockId, Option<State>> = IdVec::filled(None, func.blocks.len());
        let first = BlockId::new(0);
        starts[first] = Some(nothing);
        let order = forwards(func);
        let mut open = order.none();
        open.add(0);
        while let Some(block) = open.take().map(BlockId::new) {
            let end = starts[block].clone().expect("a block of the list was reached").after(func, block);
            for next in func.blocks[block].term.successors() {
                let changed = match &mut starts[next] {
                    Some(state) => state.meet(&end),
                    unknown => {
                        *unknown = Some(end.clone());
                        true
                    }
                };
                if changed {
                    open.add(next.index());
                }
            }
        }
        Self { starts }
    }

    /// Where a block starts; `None` if no path leads there.
    pub(super) fn at(&self, block: BlockId) -> Option<State> {
        self.starts[block].clone()
    }

    /// Where it ends.
    pub(super) fn after(&self, func: &Func, block: BlockId) -> Option<State> {
        self.at(block).map(|state| state.after(func, block))
    }
}

impl State {
    /// What a variable holds.
    pub(super) fn get(&self, var: VarId) -> Option<Operand> {
        self.values.get(var)
    }

    /// Puts what a variable holds in its place; whether it is known.
    pub(super) fn replace(&self, operand: &mut Operand) -> bool {
        match operand.var().and_then(|v| self.values.get(v)) {
            Some(value) => {
                *operand = value;
                true
            }
            None => false,
        }
    }

    /// Goes past an instruction.
    pub(super) fn step(&mut self, inst: &InstKind) {
        let Some(dst) = inst.dst() else { return };
        let value = match inst {
            InstKind::Prim { prim: Prim::Copy, args, .. } => match args[0] {
                Operand::Var(v) => self.values.get(v),
                value => Some(value),
            },
            _ => None,
        };
        self.values.set(dst, value);
    }

    fn after(mut self, func: &Func, block: BlockId) -> Self {
        let block = &func.blocks[block];
        work::add(block.insts.len());
        block.insts.iter().for_each(|i| self.step(&i.kind));
        block.term.dsts().iter().for_each(|v| self.values.set(*v, None));
        self
    }

    /// Keeps what another path says too; whether something is not known any more.
    pub(super) fn meet(&mut self, other: &State) -> bool {
        self.values.keep_same(&other.values)
    }
}
