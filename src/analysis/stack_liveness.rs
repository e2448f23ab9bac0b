//! Which variables of a stack program may still be read. For a stack variable this is about its top: a `push` keeps the
//! old top for later, so it counts as a read; a `pop` throws the top away, so nothing before it is live.
//!
//! Calls are told apart: what is live after a function returns to one of its callers is live in the function, but before
//! the call of another caller only if that one, or the function itself, reads it.

use std::collections::BTreeMap;

use super::stack_calls::Functions;
use crate::base::{IdSet, IdVec};
use crate::prim::Effect;
use crate::stack::{BlockId, InstKind, Operand, Program, Terminator, VarId, Write};
use crate::types::Type;

/// Live variables at the borders of blocks.
pub struct Liveness {
    functions: Functions,
    /// What each function reads before it writes it, by position: live where it starts, whoever calls it.
    uses: Vec<IdSet<VarId>>,
    outputs: IdSet<VarId>,
    live_in: IdVec<BlockId, IdSet<VarId>>,
}

/// Which reads count: `None` for all; or only those by what is wanted itself, with the stack variables that are live after
/// some pop of theirs.
type Wanted<'a> = Option<&'a IdSet<VarId>>;

impl Liveness {
    /// The variables that may be read.
    pub fn of(program: &Program) -> Self {
        Self::counting(program, None)
    }

    /// The variables whose values some effect, branch or output depends on, and the stack variables that are among them after
    /// a pop: what is read only to compute what nobody wants is not live.
    pub fn of_wanted(program: &Program) -> (Self, IdSet<VarId>) {
        let mut popped = IdSet::new(program.vars.len());
        loop {
            let liveness = Self::counting(program, Some(&popped));
            let mut grew = false;
            for (id, block) in program.blocks.iter() {
                let mut now = liveness.live_at_end(program, id);
                for inst in block.insts.iter().rev() {
                    if let InstKind::Pop(v) = inst.kind
                        && now.contains(v)
                    {
                        grew |= popped.insert(v);
                    }
                    step_back_wanted(program, &inst.kind, &mut now, &popped);
                }
            }
            if !grew {
                return (liveness, popped);
            }
        }
    }

    fn counting(program: &Program, wanted: Wanted<'_>) -> Self {
        let none = IdSet::new(program.vars.len());
        let mut outputs = none.clone();
        for port in &program.outputs {
            outputs.insert(port.var);
        }
        let functions = Functions::of(program);
        let uses = vec![none.clone(); functions.list.len()];
        let mut liveness = Self { functions, uses, outputs, live_in: IdVec::filled(none, program.blocks.len()) };
        let mut live = vec![BTreeMap::new(); liveness.uses.len()];
        loop {
            liveness.find_uses(program, wanted, &mut live);
            if !liveness.find_live(program, wanted) || wanted.is_none() {
                return liveness;
            }
        }
    }

    /// The least sets that agree with one another: as if nothing were live after any function returns. Where only what is
    /// wanted counts, what a function sets and somebody wants of it is, whoever that is: it is why it reads what it reads.
    /// `live`: what was found before for the blocks of each function.
    fn find_uses(&mut self, program: &Program, wanted: Wanted<'_>, live: &mut [BTreeMap<BlockId, IdSet<VarId>>]) {
        let mut changed = true;
        while changed {
            changed = false;
            for (f, live) in live.iter_mut().enumerate() {
                for id in self.functions.list[f].body.iter().rev() {
                    let mut now = IdSet::new(program.vars.len());
                    self.leave(program, *id, &mut now, |to| live.get(&to));
                    if wanted.is_some() && program.blocks[*id].term == Terminator::Return {
                        self.add_after_return(f, &mut now);
                        now.intersect_with(&self.functions.list[f].may_write);
                    }
                    step_through(program, *id, &mut now, wanted);
                    let known = live.entry(*id).or_insert_with(|| IdSet::new(program.vars.len()));
                    changed |= known.union_with(&now);
                }
                let start = self.functions.list[f].start;
                if let Some(now) = live.get(&start) {
                    changed |= self.uses[f].union_with(now);
                }
            }
        }
    }

    /// Whether there was more to find.
    fn find_live(&mut self, program: &Program, wanted: Wanted<'_>) -> bool {
        let (mut changed, mut grew) = (true, false);
        while changed {
            changed = false;
            for id in program.blocks.ids().rev() {
                let mut now = self.live_at_end(program, id);
                step_through(program, id, &mut now, wanted);
                changed |= self.live_in[id].union_with(&now);
            }
            grew |= changed;
        }
        grew
    }

    /// Adds what may be live after a function returns.
    fn add_after_return(&self, function: usize, now: &mut IdSet<VarId>) {
        let function = &self.functions.list[function];
        for to in &function.returns_to {
            now.union_with(&self.live_in[*to]);
        }
        if function.is_entry {
            now.union_with(&self.outputs);
        }
    }

    /// Adds what is live when a block ends, but for what is live after its function returns; `live_in` says what is live at
    /// the start of a block.
    fn leave<'a>(
        &self,
        program: &Program,
        block: BlockId,
        now: &mut IdSet<VarId>,
        live_in: impl Fn(BlockId) -> Option<&'a IdSet<VarId>>,
    ) {
        let mut add = |to: BlockId| {
            if let Some(live) = live_in(to) {
                now.union_with(live);
            }
        };
        match program.blocks[block].term {
            Terminator::Jump(to) => add(to),
            Terminator::Branch(cond, yes, no) => {
                add(yes);
                add(no);
                if let Operand::Var(v) = cond {
                    now.insert(v);
                }
            }
            Terminator::PushJump { target, ret, .. } => {
                add(ret);
                let callee = self.functions.position(target);
                now.subtract(&self.functions.list[callee].must_write);
                now.union_with(&self.uses[callee]);
            }
            Terminator::Return => {}
            Terminator::Halt => {
                now.union_with(&self.outputs);
            }
        }
    }

    /// The functions of the program.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The variables that are live when a block starts.
    pub fn live_in(&self, block: BlockId) -> &IdSet<VarId> {
        &self.live_in[block]
    }

    /// The variables that are live after the last instruction of a block, so that its terminator may read them.
    pub fn live_at_end(&self, program: &Program, block: BlockId) -> IdSet<VarId> {
        let mut now = IdSet::new(program.vars.len());
        self.leave(program, block, &mut now, |to| Some(&self.live_in[to]));
        if program.blocks[block].term == Terminator::Return {
            for f in &self.functions.of_block[block] {
                self.add_after_return(*f, &mut now);
            }
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

fn step_through(program: &Program, block: BlockId, now: &mut IdSet<VarId>, wanted: Wanted<'_>) {
    for inst in program.blocks[block].insts.iter().rev() {
        match wanted {
            None => step_back(&inst.kind, now),
            Some(popped) => step_back_wanted(program, &inst.kind, now, popped),
        }
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

/// The same where only reads count by what is wanted. `popped`: the stack variables whose saved values are.
pub fn step_back_wanted(program: &Program, inst: &InstKind, now: &mut IdSet<VarId>, popped: &IdSet<VarId>) {
    match *inst {
        InstKind::Compute { write, dst, .. } => {
            let wanted = now.contains(dst) || !is_pure(program, inst);
            now.remove(dst);
            if write == Write::Push && popped.contains(dst) {
                now.insert(dst);
            }
            if !wanted {
                return;
            }
        }
        InstKind::Save { stack, .. } if !popped.contains(stack) => return,
        _ => {}
    }
    if matches!(inst, InstKind::Compute { .. }) {
        inst.for_each_operand(|operand| {
            if let Some(v) = operand.var() {
                now.insert(v);
            }
        });
    } else {
        step_back(inst, now);
    }
}

/// Whether an instruction does nothing but set its variable.
pub fn is_pure(program: &Program, inst: &InstKind) -> bool {
    if let InstKind::Compute { prim, args, .. } = inst {
        let types: Vec<Type> = args.iter().map(|a| program.operand_type(*a)).collect();
        prim.effect(&types) == Effect::Pure
    } else {
        false
    }
}
