//! Which variables of a stack program surely hold what another operand holds: copies that have been made on every way to a
//! place, and since then neither side has been written. Calls included.

use super::stack_calls::{Functions, within};
use crate::base::{IdSet, IdVec};
use crate::prim::Prim;
use crate::stack::{BlockId, InstKind, Operand, Program, Terminator, VarId, Write};
use crate::types::Scalar;

crate::define_id!(
    /// A copy, by the variable that is set and what it is set to.
    FactId, "e"
);

/// The copies that hold at the start of each block.
pub struct Copies {
    facts: IdVec<FactId, (VarId, Operand)>,
    /// The copies from or to a variable.
    about: IdVec<VarId, Vec<FactId>>,
    before: IdVec<BlockId, IdSet<FactId>>,
}

/// The copies that hold at one place.
pub type Held = IdSet<FactId>;

impl Copies {
    /// The fixed point for a program.
    pub fn of(program: &Program, functions: &Functions) -> Self {
        let mut facts: IdVec<FactId, (VarId, Operand)> = IdVec::new();
        let mut about: IdVec<VarId, Vec<FactId>> = IdVec::filled(Vec::new(), program.vars.len());
        let copies = program.blocks.values().flat_map(|b| &b.insts).filter_map(|inst| copied(program, &inst.kind));
        let conditions = program.blocks.values().flat_map(|b| given(program, &b.term)).map(|(_, fact)| fact);
        for (dst, src) in copies.chain(conditions) {
            if about[dst].iter().all(|e| facts[*e] != (dst, src)) {
                let id = facts.push((dst, src));
                about[dst].push(id);
                if let Some(v) = src.var() {
                    about[v].push(id);
                }
            }
        }
        let mut all = IdSet::new(facts.len());
        facts.ids().for_each(|e| {
            all.insert(e);
        });
        let before = IdVec::filled(all.clone(), program.blocks.len());
        let mut copies = Self { facts, about, before };
        if !copies.facts.is_empty() {
            copies.iterate(program, functions, &all);
        }
        copies
    }

    fn iterate(&mut self, program: &Program, functions: &Functions, all: &Held) {
        let none = IdSet::new(self.facts.len());
        self.before[program.entry] = none;
        // What a call may change, and what holds whenever the function returns.
        let changed_by: Vec<Held> = functions.list.iter().map(|f| self.broken_by(&f.may_write)).collect();
        let mut at_return = vec![all.clone(); functions.list.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for id in program.blocks.ids() {
                let mut now = self.before[id].clone();
                for inst in &program.blocks[id].insts {
                    self.step(program, &inst.kind, &mut now);
                }
                match &program.blocks[id].term {
                    Terminator::PushJump { target, ret, .. } => {
                        changed |= self.before[*target].intersect_with(&now);
                        let f = functions.position(*target);
                        now.subtract(&changed_by[f]);
                        now.union_with(&at_return[f]);
                        changed |= self.before[*ret].intersect_with(&now);
                    }
                    Terminator::Return => {
                        for f in &functions.of_block[id] {
                            changed |= at_return[*f].intersect_with(&now);
                        }
                    }
                    term => {
                        let given = given(program, term);
                        for to in within(term) {
                            let mut now = now.clone();
                            for (_, fact) in given.iter().filter(|(way, _)| *way == to) {
                                self.hold(*fact, &mut now);
                            }
                            changed |= self.before[to].intersect_with(&now);
                        }
                    }
                }
            }
        }
    }

    fn broken_by(&self, written: &IdSet<VarId>) -> Held {
        let mut broken = IdSet::new(self.facts.len());
        for v in written.iter() {
            for e in &self.about[v] {
                broken.insert(*e);
            }
        }
        broken
    }

    /// What holds when a block starts.
    pub fn before(&self, block: BlockId) -> &Held {
        &self.before[block]
    }

    /// From what holds before an instruction to what holds after it.
    pub fn step(&self, program: &Program, inst: &InstKind, held: &mut Held) {
        if keeps_top(inst) {
            return;
        }
        let Some(written) = inst.written() else {
            return;
        };
        for e in &self.about[written] {
            held.remove(*e);
        }
        if let Some(fact) = copied(program, inst) {
            self.hold(fact, held);
        }
    }

    fn hold(&self, fact: (VarId, Operand), held: &mut Held) {
        if let Some(e) = self.about[fact.0].iter().find(|e| self.facts[**e] == fact) {
            held.insert(*e);
        }
    }

    /// What an operand is a copy of in the end; itself, if of nothing.
    pub fn root(&self, held: &Held, operand: Operand) -> Operand {
        let mut seen = vec![operand];
        let mut at = operand;
        while let Some(v) = at.var() {
            let next = self.about[v].iter().find(|e| held.contains(**e) && self.facts[**e].0 == v);
            match next.map(|e| self.facts[*e].1) {
                Some(next) if !seen.contains(&next) => {
                    seen.push(next);
                    at = next;
                }
                _ => break,
            }
        }
        at
    }
}

/// Whether it is a copy of a variable to itself: a push then saves it and leaves the top as it is.
pub fn keeps_top(inst: &InstKind) -> bool {
    matches!(inst, InstKind::Compute { dst, prim: Prim::Copy, args, .. } if args[0].var() == Some(*dst))
}

/// The copy that holds after an instruction. None from or to uniform variables: what reads them is stored once, too.
fn copied(program: &Program, inst: &InstKind) -> Option<(VarId, Operand)> {
    match inst {
        InstKind::Compute { write: Write::Set | Write::Update | Write::Push, dst, prim: Prim::Copy, args } => {
            let src = args[0];
            let uniform = |v: VarId| program.vars[v].uniform;
            (src.var() != Some(*dst) && !uniform(*dst) && !src.var().is_some_and(uniform)).then_some((*dst, src))
        }
        _ => None,
    }
}

/// What a branch tells: its condition, on either way.
fn given(program: &Program, term: &Terminator) -> Vec<(BlockId, (VarId, Operand))> {
    match *term {
        Terminator::Branch(Operand::Var(v), yes, no) if yes != no && !program.vars[v].uniform => {
            let holds = |b| (v, Operand::Const(Scalar::Bool(b)));
            vec![(yes, holds(true)), (no, holds(false))]
        }
        _ => Vec::new(),
    }
}
