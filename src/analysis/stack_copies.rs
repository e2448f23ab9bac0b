//! Which variables of a stack program surely hold what another operand holds: copies that have been made on every way to a
//! place, and since then neither side has been written. Calls included.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::stack_calls::{StackFunctions, within, written_by};
use crate::base::{Id as _, IdSet, IdVec, work};
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
    by_fact: HashMap<(VarId, Operand), FactId>,
    /// The copies from or to a variable.
    about: IdVec<VarId, Held>,
    /// The copies to a variable.
    to: IdVec<VarId, Held>,
    /// The copies of an operand.
    of: HashMap<Operand, Held>,
    before: IdVec<BlockId, Held>,
}

/// The copies that hold at one place.
pub type Held = IdSet<FactId>;

impl Copies {
    /// The fixed point for a program.
    pub fn of(program: &Program, functions: &StackFunctions) -> Self {
        let copies = program.blocks.values().flat_map(|b| &b.insts).filter_map(|inst| copied(program, &inst.kind));
        let conditions = program.blocks.values().flat_map(|b| given(program, &b.term)).map(|(_, fact)| fact);
        let mut facts: IdVec<FactId, (VarId, Operand)> = IdVec::new();
        let mut by_fact = HashMap::new();
        for fact in copies.chain(conditions) {
            by_fact.entry(fact).or_insert_with(|| facts.push(fact));
        }
        let none = Held::new(facts.len());
        let mut about = IdVec::filled(none.clone(), program.vars.len());
        let mut to = about.clone();
        let mut of: HashMap<Operand, Held> = HashMap::new();
        for (id, (dst, src)) in facts.iter() {
            about[*dst].insert(id);
            to[*dst].insert(id);
            of.entry(*src).or_insert_with(|| none.clone()).insert(id);
            if let Some(v) = src.var() {
                about[v].insert(id);
            }
        }
        let before = IdVec::filled(Held::full(facts.len()), program.blocks.len());
        let mut copies = Self { facts, by_fact, about, to, of, before };
        if !copies.facts.is_empty() {
            copies.iterate(program, functions);
        }
        copies
    }

    fn iterate(&mut self, program: &Program, functions: &StackFunctions) {
        let all = Held::full(self.facts.len());
        self.before[program.entry] = Held::new(self.facts.len());
        // What a call may change, and what holds whenever the function returns.
        let direct = functions.list.iter().map(|f| self.broken_by(program, &f.body)).collect();
        let changed_by: Vec<Held> = functions.gathered(direct);
        let mut at_return = vec![all; functions.list.len()];
        let mut open = functions.forwards.all();
        while let Some(id) = open.take().map(BlockId::new) {
            let mut now = self.before[id].clone();
            for inst in &program.blocks[id].insts {
                self.step(program, &inst.kind, &mut now);
            }
            let mut arrive = |to: BlockId, now: &Held| {
                if self.before[to].intersect_with(now) {
                    open.add(to.index());
                }
            };
            match &program.blocks[id].term {
                Terminator::PushJump { target, ret, attempt, .. } => {
                    arrive(*target, &now);
                    let f = functions.position(*target);
                    now.subtract(&changed_by[f]);
                    match attempt {
                        None => _ = now.union_with(&at_return[f]),
                        // lanes may come from anywhere in the callee
                        Some(results) => results.iter().for_each(|v| now.subtract(&self.about[*v])),
                    }
                    arrive(*ret, &now);
                }
                Terminator::Return => {
                    for f in &functions.of_block[id] {
                        if at_return[*f].intersect_with(&now) {
                            functions.list[*f].called_from.iter().for_each(|b| open.add(b.index()));
                        }
                    }
                }
                term => {
                    let given = given(program, term);
                    for to in within(term) {
                        let mut now = now.clone();
                        for (_, fact) in given.iter().filter(|(way, _)| *way == to) {
                            self.by_fact.get(fact).into_iter().for_each(|e| _ = now.insert(*e));
                        }
                        arrive(to, &now);
                    }
                }
            }
        }
    }

    /// What no longer holds after some block ran.
    fn broken_by(&self, program: &Program, blocks: &[BlockId]) -> Held {
        let mut broken = Held::new(self.facts.len());
        for v in blocks.iter().flat_map(|b| written_by(&program.blocks[*b])).collect::<BTreeSet<VarId>>() {
            broken.union_with(&self.about[v]);
        }
        broken
    }

    /// What holds when a block starts.
    pub fn before(&self, block: BlockId) -> &Held {
        &self.before[block]
    }

    /// From what holds before an instruction to what holds after it.
    pub fn step(&self, program: &Program, inst: &InstKind, held: &mut Held) {
        work::add(1);
        if keeps_top(inst) {
            return;
        }
        let Some(written) = inst.written() else {
            return;
        };
        held.subtract(&self.about[written]);
        if let Some(fact) = copied(program, inst) {
            self.hold(fact, held);
        }
    }

    fn hold(&self, fact: (VarId, Operand), held: &mut Held) {
        if let Some(e) = self.by_fact.get(&fact) {
            held.insert(*e);
        }
    }

    /// The variables that are copies of an operand, by way of others too, and itself, if it is one.
    pub fn copies_of(&self, held: &Held, operand: Operand) -> BTreeSet<VarId> {
        let mut found: BTreeSet<VarId> = operand.var().into_iter().collect();
        let mut open = vec![operand];
        while let Some(source) = open.pop() {
            let Some(mut facts) = self.of.get(&source).cloned() else { continue };
            facts.intersect_with(held);
            let copies = facts.iter().map(|e| self.facts[e].0);
            open.extend(copies.filter(|v| found.insert(*v)).map(Operand::Var));
        }
        found
    }

    /// What an operand is a copy of in the end; itself, if of nothing.
    pub fn root(&self, held: &Held, operand: Operand) -> Operand {
        let mut seen = HashSet::from([operand]);
        let mut at = operand;
        while let Some(v) = at.var() {
            match self.to[v].first_of(held).map(|e| self.facts[e].1) {
                Some(next) if seen.insert(next) => at = next,
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
