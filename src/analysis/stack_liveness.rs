//! Which variables of a stack program may still be read. For a stack variable this is about its top: a `push` keeps the
//! old top for later, so it counts as a read; a `pop` throws the top away, so nothing before it is live.
//!
//! Calls are told apart: what is live after a function returns to one of its callers is live in the function, but before
//! the call of another caller only if that one, or the function itself, reads it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::stack_calls::{StackFunction, StackFunctions, within};
use super::worklist::{Order, reversed};
use crate::base::{Id as _, IdSet, IdVec, work};
use crate::prim::Effect;
use crate::stack::{BlockId, InstKind, Operand, Program, SideEffect, Terminator, VarId, Write};
use crate::types::Type;

/// Live variables at the borders of blocks.
pub struct Liveness {
    functions: StackFunctions,
    /// What each function reads before it writes it, by position: live where it starts, whoever calls it.
    uses: Vec<IdSet<VarId>>,
    /// What may be live after each function returns, by position.
    after: Vec<IdSet<VarId>>,
    outputs: IdSet<VarId>,
    live_in: IdVec<BlockId, IdSet<VarId>>,
    /// The results of attempts, by the blocks that these return to.
    results: BTreeMap<BlockId, Vec<VarId>>,
    none: IdSet<VarId>,
}

impl Liveness {
    /// The variables that may be read.
    pub fn of(program: &Program) -> Self {
        let mut search = Search::new(program, None);
        search.run();
        search.liveness
    }

    /// The variables whose values some effect, branch or output depends on, and the stack variables that are among them after
    /// a pop: what is read only to compute what nobody wants is not live.
    pub fn of_wanted(program: &Program) -> (Self, IdSet<VarId>) {
        Self::of_wanted_and(program, IdSet::new(program.vars.len()))
    }

    /// The same where all that is saved is wanted, whether it is read after the pop or not.
    pub fn of_wanted_and_saved(program: &Program) -> (Self, IdSet<VarId>) {
        Self::of_wanted_and(program, IdSet::full(program.vars.len()))
    }

    fn of_wanted_and(program: &Program, popped: IdSet<VarId>) -> (Self, IdSet<VarId>) {
        let mut search = Search::new(program, Some(popped));
        search.run();
        (search.liveness, search.popped.unwrap_or_else(|| IdSet::new(program.vars.len())))
    }

    /// Adds what may be live after a function returns.
    fn add_after_return(&self, function: usize, now: &mut IdSet<VarId>) {
        now.union_with(&self.after[function]);
    }

    /// Adds what is live when a block has ended, but for what is live after its function returns; `live_in` says what is
    /// live at the start of a block.
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
        match &program.blocks[block].term {
            Terminator::Jump(to) => add(*to),
            Terminator::Branch(_, yes, no) => {
                add(*yes);
                add(*no);
            }
            Terminator::PushJump { target, ret, attempt, .. } => {
                add(*ret);
                let callee = self.functions.position(*target);
                let written = &self.functions.list[callee].must_write;
                match attempt {
                    None => now.subtract(written),
                    // a trap sets them, but a callee that returns may have left one as the caller set it
                    Some(results) => results.iter().filter(|v| written.contains(**v)).for_each(|v| now.remove(*v)),
                }
                now.union_with(&self.uses[callee]);
            }
            Terminator::Return => {}
            Terminator::Halt => {
                now.union_with(&self.outputs);
            }
        }
    }

    /// The functions of the program.
    pub fn functions(&self) -> &StackFunctions {
        &self.functions
    }

    /// The variables that are live when a block starts.
    pub fn live_in(&self, block: BlockId) -> &IdSet<VarId> {
        &self.live_in[block]
    }

    /// The variables that are live after the last instruction of a block, so that its terminator may read them.
    pub fn live_at_end(&self, program: &Program, block: BlockId) -> IdSet<VarId> {
        let mut now = self.live_out(program, block);
        read_at_end(program, block, &mut now);
        now
    }

    /// The variables that are live after a block.
    pub fn live_out(&self, program: &Program, block: BlockId) -> IdSet<VarId> {
        let mut now = self.none.clone();
        self.leave(program, block, &mut now, |to| Some(&self.live_in[to]));
        if program.blocks[block].term == Terminator::Return {
            for f in &self.functions.of_block[block] {
                self.add_after_return(*f, &mut now);
            }
        }
        for ret in self.functions.of_block[block].iter().flat_map(|f| &self.functions.list[*f].caught_at) {
            now.union_with(&self.live_caught(*ret));
        }
        now
    }

    /// The variables that are live where an attempt goes on, but for the results, which a trap sets.
    fn live_caught(&self, ret: BlockId) -> IdSet<VarId> {
        let mut live = self.live_in[ret].clone();
        self.results[&ret].iter().for_each(|v| live.remove(*v));
        live
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

/// The search for the least sets that agree with one another: forwards from nothing, block by block, until none grows.
struct Search<'a> {
    program: &'a Program,
    liveness: Liveness,
    /// Which reads count: `None` for all; or only those by what is wanted itself, with the stack variables that are live after
    /// some pop of theirs.
    popped: Option<IdSet<VarId>>,
    /// All blocks so that one comes after those that it leads to in its function, loops aside.
    order: Order,
    /// The blocks that lead to each block within a function.
    before: IdVec<BlockId, Vec<BlockId>>,
    /// The blocks in which each function returns, and the functions that return to each block.
    returns: Vec<Vec<BlockId>>,
    returning: IdVec<BlockId, Vec<usize>>,
    /// The functions that run under the attempts that return to each block.
    caught: IdVec<BlockId, Vec<usize>>,
    /// What each function reads before it writes it, from each of its blocks on.
    within: Vec<HashMap<BlockId, IdSet<VarId>>>,
    /// The blocks of functions that are to be looked at for that: callees first.
    open_uses: BTreeSet<(usize, usize)>,
    /// Where functions stand in that order.
    rank: Vec<usize>,
    by_rank: Vec<usize>,
    /// The blocks that push or save each stack variable, where only what is wanted counts.
    saved_in: HashMap<VarId, Vec<BlockId>>,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, popped: Option<IdSet<VarId>>) -> Self {
        let none = IdSet::new(program.vars.len());
        let mut outputs = none.clone();
        for port in &program.outputs {
            outputs.insert(port.var);
        }
        let functions = StackFunctions::of(program);
        let n = functions.list.len();
        let of = |f: &StackFunction| {
            let ends = |b: &&BlockId| program.blocks[**b].term == Terminator::Return;
            f.body.iter().filter(ends).copied().collect()
        };
        let returns = functions.list.iter().map(of).collect();
        let mut returning = IdVec::filled(Vec::new(), program.blocks.len());
        for (f, function) in functions.list.iter().enumerate() {
            function.returns_to.iter().collect::<BTreeSet<_>>().into_iter().for_each(|b| returning[*b].push(f));
        }
        let mut caught = IdVec::filled(Vec::new(), program.blocks.len());
        for (f, function) in functions.list.iter().enumerate() {
            function.caught_at.iter().for_each(|b| caught[*b].push(f));
        }
        let results = program.blocks.values().filter_map(|b| match &b.term {
            Terminator::PushJump { ret, attempt: Some(results), .. } => Some((*ret, results.clone())),
            _ => None,
        });
        let results = results.collect();
        let before = reversed(program.blocks.len(), program.blocks.iter().map(|(id, b)| (id, within(&b.term))));
        let after = functions.list.iter().map(|f| if f.is_entry { outputs.clone() } else { none.clone() }).collect();
        let order = functions.forwards.reversed();
        let by_rank: Vec<usize> = functions.callees_first().collect();
        let mut rank = vec![0; n];
        by_rank.iter().enumerate().for_each(|(i, f)| rank[*f] = i);
        let mut saved_in: HashMap<VarId, Vec<BlockId>> = HashMap::new();
        for (id, block) in program.blocks.iter().filter(|_| popped.is_some()) {
            for (v, _) in block.insts.iter().filter_map(|i| i.kind.moved()).filter(|(_, step)| *step > 0) {
                saved_in.entry(v).or_default().push(id);
            }
        }
        let live_in = IdVec::filled(none.clone(), program.blocks.len());
        let uses = vec![none.clone(); n];
        let liveness = Liveness { functions, uses, after, outputs, live_in, results, none };
        let (within, open_uses) = (vec![HashMap::new(); n], BTreeSet::new());
        Self {
            program,
            liveness,
            popped,
            order,
            before,
            returns,
            returning,
            caught,
            within,
            open_uses,
            rank,
            by_rank,
            saved_in,
        }
    }

    /// What functions use comes first; what is found of it later where only what is wanted counts, as soon as it is known.
    fn run(&mut self) {
        for (f, function) in self.liveness.functions.list.iter().enumerate() {
            self.open_uses.extend(function.body.iter().map(|b| (self.rank[f], self.order.place(b.index()))));
        }
        self.find_uses(&mut |_| {});
        let order = self.callers_first();
        let mut open = order.all();
        while let Some(id) = open.take().map(BlockId::new) {
            let mut now = self.liveness.live_at_end(self.program, id);
            let popped = self.find_popped(id, now.clone());
            self.step_through(id, &mut now);
            if self.liveness.live_in[id].union_with(&now) {
                self.before[id].iter().for_each(|b| open.add(b.index()));
                for f in &self.caught[id] {
                    self.liveness.functions.list[*f].body.iter().for_each(|b| open.add(b.index()));
                }
                for f in &self.returning[id] {
                    if self.liveness.after[*f].union_with(&now) {
                        self.returns[*f].iter().for_each(|b| open.add(b.index()));
                        if self.popped.is_some() {
                            let rank = self.rank[*f];
                            let places = self.returns[*f].iter().map(|b| (rank, self.order.place(b.index())));
                            self.open_uses.extend(places);
                        }
                    }
                }
            }
            for b in popped.iter().flat_map(|v| self.saved_in.get(v)).flatten() {
                open.add(b.index());
                let places =
                    self.liveness.functions.of_block[*b].iter().map(|f| (self.rank[*f], self.order.place(b.index())));
                self.open_uses.extend(places);
            }
            self.find_uses(&mut |call| open.add(call.index()));
        }
    }

    /// As if nothing were live after any function returns. Where only what is wanted counts, what a function sets and somebody
    /// wants of it is, whoever that is: it is why it reads what it reads. `grown` hears of the blocks with calls of functions
    /// that use more than was known.
    fn find_uses(&mut self, grown: &mut dyn FnMut(BlockId)) {
        while let Some((rank, place)) = self.open_uses.pop_first() {
            work::add(1);
            let (f, id) = (self.by_rank[rank], BlockId::new(self.order.node(place)));
            let mut now = self.liveness.none.clone();
            self.liveness.leave(self.program, id, &mut now, |to| self.within[f].get(&to));
            read_at_end(self.program, id, &mut now);
            if self.popped.is_some() && self.program.blocks[id].term == Terminator::Return {
                self.liveness.add_after_return(f, &mut now);
                now.intersect_with(&self.liveness.functions.list[f].may_write);
            }
            self.step_through(id, &mut now);
            let known = self.within[f].entry(id).or_insert_with(|| self.liveness.none.clone());
            if !known.union_with(&now) {
                continue;
            }
            let places = self.before[id].iter().filter(|b| self.liveness.functions.of_block[**b].contains(&f));
            self.open_uses.extend(places.map(|b| (rank, self.order.place(b.index()))));
            let function = &self.liveness.functions.list[f];
            if function.start == id && self.liveness.uses[f].union_with(&now) {
                for call in &function.called_from {
                    let callers = self.liveness.functions.of_block[*call].iter();
                    self.open_uses.extend(callers.map(|g| (self.rank[*g], self.order.place(call.index()))));
                    grown(*call);
                }
            }
        }
    }

    /// All blocks, those of a function after those of its callers: what is live after it returns is known then.
    fn callers_first(&self) -> Order {
        let mut blocks: Vec<BlockId> = self.program.blocks.ids().collect();
        let of_block = &self.liveness.functions.of_block;
        let depth = |b: BlockId| of_block[b].iter().map(|f| usize::MAX - self.rank[*f]).max();
        blocks.sort_by_key(|b| (depth(*b).unwrap_or(usize::MAX), self.order.place(b.index())));
        Order::new(blocks.into_iter().map(BlockId::index).collect(), self.program.blocks.len())
    }

    /// Goes back through the instructions of a block.
    fn step_through(&self, block: BlockId, now: &mut IdSet<VarId>) {
        let insts = &self.program.blocks[block].insts;
        work::add(insts.len());
        for inst in insts.iter().rev() {
            match &self.popped {
                None => step_back(&inst.kind, now),
                Some(popped) => step_back_wanted(self.program, &inst.kind, now, popped),
            }
        }
    }

    /// The stack variables that turn out to be wanted after a pop in a block.
    fn find_popped(&mut self, block: BlockId, mut now: IdSet<VarId>) -> Vec<VarId> {
        let mut found = Vec::new();
        let Some(popped) = &mut self.popped else { return found };
        let insts = &self.program.blocks[block].insts;
        work::add(insts.len());
        for inst in insts.iter().rev() {
            if let InstKind::Pop(v) = inst.kind
                && now.contains(v)
                && popped.insert(v)
            {
                found.push(v);
            }
            step_back_wanted(self.program, &inst.kind, &mut now, popped);
        }
        found
    }
}

/// Adds what the end of a block reads.
fn read_at_end(program: &Program, block: BlockId, now: &mut IdSet<VarId>) {
    if let Terminator::Branch(Operand::Var(cond), ..) = program.blocks[block].term {
        now.insert(cond);
    }
}

/// From the variables that are live after an instruction to those that are live before it.
pub fn step_back(inst: &InstKind, now: &mut IdSet<VarId>) {
    match *inst {
        InstKind::Compute { write, dst, .. } if write != Write::Push => now.remove(dst),
        InstKind::Compute { dst, .. } => {
            now.insert(dst);
        }
        InstKind::Pop(v) | InstKind::Effect(SideEffect::TapePop { dst: v, .. }) => now.remove(v),
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
