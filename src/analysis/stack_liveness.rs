//! Which variables of a stack program may still be read. For a stack variable this is about its top: a `push` keeps the
//! old top for later, so it counts as a read; a `pop` throws the top away, so nothing before it is live.

use crate::base::{IdSet, IdVec};
use crate::stack::{BlockId, InstKind, Program, Terminator, VarId, Write};

/// Live variables at the borders of blocks.
pub struct Liveness {
    /// The blocks that may run next, returns included.
    next: IdVec<BlockId, Vec<BlockId>>,
    /// Whether the program may end after the block.
    ends: IdVec<BlockId, bool>,
    outputs: IdSet<VarId>,
    live_in: IdVec<BlockId, IdSet<VarId>>,
}

impl Liveness {
    /// The fixed point for a program.
    pub fn of(program: &Program) -> Self {
        let mut outputs = IdSet::new(program.vars.len());
        for port in &program.outputs {
            outputs.insert(port.var);
        }
        let (next, ends) = flow(program);
        let none = IdSet::new(program.vars.len());
        let mut liveness = Self { next, ends, outputs, live_in: IdVec::filled(none, program.blocks.len()) };
        liveness.iterate(program);
        liveness
    }

    fn iterate(&mut self, program: &Program) {
        let mut changed = true;
        while changed {
            changed = false;
            for (id, block) in program.blocks.iter().rev() {
                let mut now = self.live_at_end(program, id);
                for inst in block.insts.iter().rev() {
                    step_back(&inst.kind, &mut now);
                }
                changed |= self.live_in[id].union_with(&now);
            }
        }
    }

    /// The variables that are live when a block starts.
    pub fn live_in(&self, block: BlockId) -> &IdSet<VarId> {
        &self.live_in[block]
    }

    /// The variables that are live after the last instruction of a block, so that its terminator may read them.
    pub fn live_at_end(&self, program: &Program, block: BlockId) -> IdSet<VarId> {
        let mut now = IdSet::new(program.vars.len());
        for to in &self.next[block] {
            now.union_with(&self.live_in[*to]);
        }
        if self.ends[block] {
            now.union_with(&self.outputs);
        }
        if let Terminator::Branch(cond, ..) = program.blocks[block].term
            && let Some(v) = cond.var()
        {
            now.insert(v);
        }
        now
    }

    /// The variables that are live after each instruction of a block.
    pub fn live_after(&self, program: &Program, block: BlockId) -> Vec<IdSet<VarId>> {
        let insts = &program.blocks[block].insts;
        let mut now = self.live_at_end(program, block);
        let mut after = Vec::with_capacity(insts.len());
        for inst in insts.iter().rev() {
            after.push(now.clone());
            step_back(&inst.kind, &mut now);
        }
        after.reverse();
        after
    }
}

/// From the variables that are live after an instruction to those that are live before it.
pub fn step_back(inst: &InstKind, now: &mut IdSet<VarId>) {
    match *inst {
        InstKind::Compute { write, dst, .. } if write != Write::Push => now.remove(dst),
        InstKind::Compute { dst, .. } => {
            now.insert(dst);
        }
        InstKind::Pop(v) | InstKind::TapePop { dst: v, .. } => now.remove(v),
        _ => {}
    }
    inst.for_each_operand(|operand| {
        if let Some(v) = operand.var() {
            now.insert(v);
        }
    });
}

/// The blocks that a function that starts at `start` runs itself: those of its callees are not among them.
pub fn body(program: &Program, start: BlockId) -> IdSet<BlockId> {
    let mut body = IdSet::new(program.blocks.len());
    let mut open = vec![start];
    body.insert(start);
    while let Some(block) = open.pop() {
        for to in within(&program.blocks[block].term) {
            if body.insert(to) {
                open.push(to);
            }
        }
    }
    body
}

/// The blocks that may come next in the same function.
pub fn within(term: &Terminator) -> impl Iterator<Item = BlockId> + use<> {
    let callee = matches!(term, Terminator::PushJump { .. });
    term.successors().into_iter().skip(usize::from(callee))
}

/// The functions of a program: the block where each starts, in program order, and the blocks that its calls return to.
pub fn functions(program: &Program) -> Vec<(BlockId, Vec<BlockId>)> {
    let mut returns: Vec<(BlockId, Vec<BlockId>)> = vec![(program.entry, Vec::new())];
    for block in program.blocks.values() {
        if let Terminator::PushJump { target, ret, .. } = block.term {
            match returns.iter_mut().find(|(start, _)| *start == target) {
                Some((_, to)) => to.push(ret),
                None => returns.push((target, vec![ret])),
            }
        }
    }
    returns.sort_by_key(|(start, _)| *start);
    returns
}

fn flow(program: &Program) -> (IdVec<BlockId, Vec<BlockId>>, IdVec<BlockId, bool>) {
    let mut next: IdVec<BlockId, Vec<BlockId>> =
        program.blocks.values().map(|block| block.term.successors().to_vec()).collect();
    let mut ends: IdVec<BlockId, bool> = program.blocks.values().map(|block| block.term == Terminator::Halt).collect();
    for (start, returns) in functions(program) {
        for block in body(program, start).iter() {
            if program.blocks[block].term == Terminator::Return {
                next[block].extend(&returns);
                ends[block] |= start == program.entry;
            }
        }
    }
    (next, ends)
}
