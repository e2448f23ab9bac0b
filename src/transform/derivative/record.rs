//! What the reverse sweep must find again, and how: the values of variables that a derivative reads and that are set again
//! later, and the way that control took.
//!
//! The reverse sweep keeps to one rule: when it is at a place in the function, every variable that is *needed* there has
//! the value that it had when the forward sweep was there last. A variable is needed from where the derivative of an
//! instruction reads it on, until it is set again; there its old value is saved. So straight-line code saves nothing,
//! a loop saves what is carried from turn to turn, and a recursive function what its frame holds at its end
//! ("to be recorded" analysis: Hascoët, Naumann and Pascual 2005). Before a value is put on a tape, three cheaper ways are tried:
//!
//! * *recompute*: a variable that lives in one block only, from operands that are found again themselves;
//! * *invert*: a counter goes back by the step that it went on by;
//! * *element*: an array that is set in one place saves the element.
//!
//! Which predecessor a block was entered from is asked of the condition that decided it, or of the counter of a loop; only
//! where neither can be had is the edge put on a tape.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::care::Care;
use super::code::Code;
use super::cotangent::{Cotangents, Known};
use super::graph::Graph;
use super::tangent::Site;
use crate::base::{Id, IdSet, IdVec, Names, work};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Tape, TapeId, Terminator, VarId};
use crate::prim::{BatchRule, Effect, Prim};
use crate::types::{Scalar, Type};

/// A value is computed again, rather than taped, when an element costs no more than this, in additions. A push and a
/// pop move it four times through memory; beyond that is what only contractions cost.
const CHEAP_AGAIN: u64 = 60;

/// How the old value of a variable that is set comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Save {
    /// From a tape.
    Tape(TapeId),
    /// By the inverse of the instruction.
    Invert,
    /// The element that the instruction sets, from a tape.
    Element(TapeId),
}

/// How the reverse sweep knows which predecessor a block was entered from.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Origin {
    /// There is one, or none.
    Known(Option<BlockId>),
    /// The first where the operand holds, else the second.
    Condition(Operand, BlockId, BlockId),
    /// The first where the counter of a loop stands at its start, else the second.
    Counter { counter: VarId, start: Operand, entry: BlockId, turn: BlockId },
    /// The predecessor of this number, from a tape.
    Tape(TapeId),
}

/// What the sweeps of a function agree on.
#[derive(Debug)]
pub(super) struct Record {
    /// By block and instruction (the number of instructions for the terminator): what is saved before it.
    pub(super) saves: BTreeMap<(BlockId, usize), Vec<(VarId, Save)>>,
    /// What a sweep of its own leaves on tapes at the end of the function, in order.
    pub(super) at_exit: Vec<(VarId, TapeId)>,
    /// What it leaves there before, at the end of a block that leads to where ways meet.
    pub(super) at_end: BTreeMap<BlockId, Vec<(VarId, TapeId)>>,
    /// Where each block was entered from.
    pub(super) origins: IdVec<BlockId, Origin>,
    /// The variables that are computed again, with the instruction that does.
    pub(super) again: BTreeMap<VarId, usize>,
    /// By block, for each instruction and the terminator, what its reverse reads.
    pub(super) needs: IdVec<BlockId, Vec<Needs>>,
}

/// What the analysis is of.
pub(super) struct Subject<'a> {
    pub(super) program: &'a Program,
    pub(super) func: &'a Func,
    pub(super) graph: &'a Graph,
    /// What holds the cotangent of each active variable; such variables come after those of the function.
    pub(super) of: &'a IdVec<VarId, Option<VarId>>,
    /// Whether the reverse of the call that ends a block reads an argument.
    pub(super) reads_arg: &'a dyn Fn(BlockId, usize) -> bool,
    /// Whether what the call that ends a block sets comes back only after its reverse.
    pub(super) restores_late: &'a dyn Fn(BlockId) -> bool,
    /// The parameters that the reverse sweep, where it is a function of its own, is given again.
    pub(super) given: IdSet<VarId>,
    /// Whether the reverse sweep is a function of its own, which finds nothing in variables.
    pub(super) split: bool,
}

/// Makes tapes for a function.
pub(super) struct Tapes<'a> {
    made: &'a mut IdVec<TapeId, Tape>,
    func: &'a str,
    names: Names,
}

impl<'a> Tapes<'a> {
    /// Adds them to the tapes that were made.
    pub(super) fn new(made: &'a mut IdVec<TapeId, Tape>, func: &'a str) -> Self {
        let names = Names::of(made.values().map(|t| &t.name));
        Self { made, func, names }
    }

    fn new_tape(&mut self, name: &str, ty: Type) -> TapeId {
        let name = self.names.unique(&format!("{}.{name}", self.func));
        self.made.push(Tape { name, ty })
    }
}

/// What the reverse of an instruction reads.
#[derive(Clone, Default, Debug)]
pub(super) struct Needs {
    /// Variables as they are before it.
    pub(super) before: Vec<VarId>,
    /// The variable that it sets, as it is after it.
    pub(super) result: bool,
}

/// The variables that the reverse sweep needs at its start.
pub(super) fn needed_at_end(subject: &Subject<'_>, vars: &IdVec<VarId, crate::cfg::Var>) -> IdSet<VarId> {
    let needs = needs(subject, vars);
    let origins = origins(subject);
    let again = candidates(subject, &origins);
    Analysis::solved(subject, &needs, &origins, again).at_end()
}

/// Decides what is saved, and makes the tapes.
pub(super) fn record(subject: &Subject<'_>, vars: &IdVec<VarId, crate::cfg::Var>, tapes: &mut Tapes<'_>) -> Record {
    let needs = needs(subject, vars);
    let origins = origins(subject);
    let again = candidates(subject, &origins);
    let analysis = Analysis::solved(subject, &needs, &origins, again);
    let mut by_var: BTreeMap<VarId, TapeId> = BTreeMap::new();
    let mut saves = BTreeMap::new();
    let mut at_exit = Vec::new();
    let mut at_end = BTreeMap::new();
    for (id, block) in subject.func.blocks.iter() {
        let mut found: Vec<(usize, VarId)> = Vec::new();
        let end = analysis
            .block(id, analysis.at_entry[id].clone(), &mut |at, v| found.push((at, v)))
            .expect("what is computed again was settled");
        for (at, v) in found {
            let save = match way_back(subject, block.insts.get(at), v) {
                Way::Inverse => Save::Invert,
                Way::Element(ty) => {
                    Save::Element(tapes.new_tape(&format!("{}.element", subject.func.vars[v].name), ty))
                }
                Way::Whole => Save::Tape(tape_of(subject, v, &mut by_var, tapes)),
            };
            saves.entry((id, at)).or_insert_with(Vec::new).push((v, save));
        }
        let early = analysis.early.get(&id).into_iter().flat_map(IdSet::iter);
        for v in early {
            let tape = tape_of(subject, v, &mut by_var, tapes);
            at_end.entry(id).or_insert_with(Vec::new).push((v, tape));
        }
        if subject.split && matches!(block.term, Terminator::Return(_)) {
            for v in end.iter().filter(|v| !subject.given.contains(*v)) {
                let tape = tape_of(subject, v, &mut by_var, tapes);
                at_exit.push((v, tape));
            }
        }
    }
    let again = analysis.again;
    let origins = origins_with_tapes(subject, origins, tapes);
    Record { saves, at_exit, at_end, origins, again, needs }
}

fn tape_of(subject: &Subject<'_>, v: VarId, by_var: &mut BTreeMap<VarId, TapeId>, tapes: &mut Tapes<'_>) -> TapeId {
    *by_var.entry(v).or_insert_with(|| {
        let var = &subject.func.vars[v];
        tapes.new_tape(&var.name, var.ty.clone())
    })
}

/// What has to be saved of a variable that an instruction sets.
enum Way {
    /// Nothing: the instruction has an inverse, which starts from the new value.
    Inverse,
    /// The element of this type that the instruction sets; the others are taken from the new value.
    Element(Type),
    /// All of it.
    Whole,
}

fn way_back(subject: &Subject<'_>, inst: Option<&Inst>, v: VarId) -> Way {
    match inst.map(|i| &i.kind) {
        Some(InstKind::Prim { prim: Prim::Add | Prim::Sub, args, .. }) if inverts(subject, v, args) => Way::Inverse,
        Some(InstKind::Prim { prim: Prim::SetIndex, args, .. }) if args[0] == Operand::Var(v) => {
            Way::Element(subject.program.operand_type(subject.func, args[1]))
        }
        _ => Way::Whole,
    }
}

/// Whether `v = add v, c` or `v = sub v, c` of ints, which did not overflow.
fn inverts(subject: &Subject<'_>, v: VarId, args: &[Operand]) -> bool {
    args[0] == Operand::Var(v) && args[1].var().is_none() && subject.func.vars[v].ty == Type::int()
}

/// What the reverse of each instruction and terminator reads: its rule is run for nothing.
fn needs(subject: &Subject<'_>, vars: &IdVec<VarId, crate::cfg::Var>) -> IdVec<BlockId, Vec<Needs>> {
    let func = subject.func;
    let bound = func.vars.len();
    let mut code = Code::new(subject.program, vars.clone(), func.loc.clone());
    let mut all = IdVec::new();
    for (id, block) in func.blocks.iter() {
        let mut of_block = Vec::new();
        for inst in &block.insts {
            let mut needs = Needs::default();
            if let InstKind::Prim { dst, prim, args } = &inst.kind
                && subject.of[*dst].is_some()
            {
                let ty = func.vars[*dst].ty.clone();
                let result = code.fresh(ty.clone());
                let site = Site { prim: *prim, args, result: Operand::Var(result), ty: &ty, care: Care::Careful };
                let mut known = Known::zero(IdSet::new(bound));
                let mut cotangents = Cotangents { code: &mut code, of: subject.of, known: &mut known };
                cotangents.instruction(*dst, site);
                for inst in std::mem::take(&mut code.insts) {
                    inst.kind.for_each_operand(|o| match o {
                        Operand::Var(v) if v == result => needs.result = true,
                        Operand::Var(v) if v.index() < bound && !needs.before.contains(&v) => needs.before.push(v),
                        _ => {}
                    });
                }
            }
            of_block.push(needs);
        }
        let mut needs = Needs::default();
        if let Terminator::Call { args, .. } = &block.term {
            let read = args.iter().enumerate().filter(|(k, _)| (subject.reads_arg)(id, *k));
            needs.before = read.filter_map(|(_, a)| a.var()).collect();
        }
        of_block.push(needs);
        all.push(of_block);
    }
    all
}

/// How often each variable is set, and where last.
fn definitions(func: &Func) -> IdVec<VarId, Vec<(BlockId, usize)>> {
    let mut all: IdVec<VarId, Vec<(BlockId, usize)>> = IdVec::filled(Vec::new(), func.vars.len());
    for param in &func.params {
        all[*param].push((BlockId::new(0), 0));
    }
    for (id, block) in func.blocks.iter() {
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(dst) = inst.kind.dst() {
                all[dst].push((id, i));
            }
        }
        for dst in block.term.dsts() {
            all[*dst].push((id, block.insts.len()));
        }
    }
    all
}

/// Where each block is entered from, by a condition or a counter where that can be; `Tape` stands for all others, and its
/// tape is not made yet.
fn origins(subject: &Subject<'_>) -> IdVec<BlockId, Origin> {
    let (func, graph) = (subject.func, subject.graph);
    let definitions = definitions(func);
    let counters = counters(func, &definitions);
    let unmade = Origin::Tape(TapeId::new(0));
    func.blocks
        .ids()
        .map(|block| match graph.preds[block][..] {
            [] => Origin::Known(None),
            [pred] => Origin::Known(Some(pred)),
            [a, b] => counter(subject, &definitions, &counters, block, (a, b))
                .or_else(|| counter(subject, &definitions, &counters, block, (b, a)))
                .or_else(|| condition(subject, &definitions, block, (a, b)))
                .unwrap_or(unmade.clone()),
            _ => unmade.clone(),
        })
        .collect()
}

/// Whether an operand is the same wherever it has been set at all.
fn steady(operand: Operand, definitions: &IdVec<VarId, Vec<(BlockId, usize)>>) -> bool {
    operand.var().is_none_or(|v| definitions[v].len() == 1)
}

/// A loop whose counter starts at a steady value before it and goes up by a positive constant in every turn.
fn counter(
    subject: &Subject<'_>,
    definitions: &IdVec<VarId, Vec<(BlockId, usize)>>,
    counters: &BTreeMap<BlockId, Vec<VarId>>,
    head: BlockId,
    (entry, turn): (BlockId, BlockId),
) -> Option<Origin> {
    let (func, graph) = (subject.func, subject.graph);
    if !graph.dominates(head, turn) || graph.dominates(head, entry) {
        return None;
    }
    // It steps in a block that every turn goes through.
    let mut steps = BTreeSet::new();
    let mut at = turn;
    loop {
        work::add(1);
        steps.extend(counters.get(&at).into_iter().flatten().copied());
        if at == head {
            break;
        }
        at = graph.idom(at);
    }
    steps.into_iter().find_map(|v| {
        let [first, second] = definitions[v][..] else { return None };
        let (start, step) =
            if graph.dominates(first.0, head) && first.0 != head { (first, second) } else { (second, first) };
        let inside = graph.dominates(head, step.0) && graph.dominates(step.0, turn);
        let before = graph.dominates(start.0, entry) && !returns_past(subject, (head, entry), start.0);
        let set = func.blocks[start.0].insts.get(start.1).map(|i| &i.kind);
        let up = func.blocks[step.0].insts.get(step.1).map(|i| &i.kind);
        match (set, up) {
            (
                Some(InstKind::Prim { prim: Prim::Copy, args: from, dst: set }),
                Some(InstKind::Prim { prim: Prim::Add, args: by, dst: up }),
            ) if inside && before && *set == v && *up == v && by[0] == Operand::Var(v) => {
                let positive = matches!(by[1], Operand::Const(Scalar::Int(n)) if n > 0);
                let start = from[0];
                (positive && steady(start, definitions)).then_some(Origin::Counter { counter: v, start, entry, turn })
            }
            _ => None,
        }
    })
}

/// The variables that are set twice, once by adding to themselves, by the block that does.
fn counters(func: &Func, definitions: &IdVec<VarId, Vec<(BlockId, usize)>>) -> BTreeMap<BlockId, Vec<VarId>> {
    let mut found: BTreeMap<BlockId, Vec<VarId>> = BTreeMap::new();
    for (v, all) in definitions.iter().filter(|(_, all)| all.len() == 2) {
        for (block, at) in all {
            if let Some(InstKind::Prim { prim: Prim::Add, args, .. }) =
                func.blocks[*block].insts.get(*at).map(|i| &i.kind)
                && args[0] == Operand::Var(v)
            {
                found.entry(*block).or_default().push(v);
            }
        }
    }
    found
}

/// Whether a loop can be entered again without passing a block.
fn returns_past(subject: &Subject<'_>, (head, entry): (BlockId, BlockId), block: BlockId) -> bool {
    if !subject.graph.on_a_cycle(head, entry) {
        return false;
    }
    let mut seen = IdSet::new(subject.func.blocks.len());
    let mut work = vec![head];
    while let Some(at) = work.pop() {
        if at == block || !subject.graph.on_a_cycle(head, at) || !seen.insert(at) {
            continue;
        }
        work::add(1);
        if at == entry {
            return true;
        }
        work.extend(subject.func.blocks[at].term.successors());
    }
    false
}

/// Two ways that part at a branch and meet again: its condition says which was taken.
fn condition(
    subject: &Subject<'_>,
    definitions: &IdVec<VarId, Vec<(BlockId, usize)>>,
    join: BlockId,
    (a, b): (BlockId, BlockId),
) -> Option<Origin> {
    let (func, graph) = (subject.func, subject.graph);
    if graph.dominates(join, a) || graph.dominates(join, b) {
        return None;
    }
    let Terminator::Branch(cond, yes, no) = func.blocks[graph.idom(join)].term else { return None };
    let leads = |arm: BlockId, to: BlockId| graph.preds[arm].len() == 1 && graph.dominates(arm, to);
    if !steady(cond, definitions) {
        return None;
    }
    match (leads(yes, a) && leads(no, b), leads(yes, b) && leads(no, a)) {
        (true, _) => Some(Origin::Condition(cond, a, b)),
        (_, true) => Some(Origin::Condition(cond, b, a)),
        _ => None,
    }
}

fn origins_with_tapes(
    subject: &Subject<'_>,
    mut origins: IdVec<BlockId, Origin>,
    tapes: &mut Tapes<'_>,
) -> IdVec<BlockId, Origin> {
    for block in subject.func.blocks.ids() {
        if let Origin::Tape(tape) = &mut origins[block] {
            *tape = tapes.new_tape(&format!("{block}.from"), Type::int());
        }
    }
    origins
}

/// The operands that tell where a block was entered from.
fn asked(origin: &Origin) -> impl Iterator<Item = VarId> + use<> {
    let pair = match origin {
        Origin::Condition(cond, ..) => [cond.var(), None],
        Origin::Counter { counter, start, .. } => [Some(*counter), start.var()],
        Origin::Known(_) | Origin::Tape(_) => [None, None],
    };
    pair.into_iter().flatten()
}

/// The variables that may be computed again: set once, by a cheap primitive without effect besides, and read only in the
/// same block after that. In code that runs once they are simply still there.
fn candidates(subject: &Subject<'_>, origins: &IdVec<BlockId, Origin>) -> BTreeMap<VarId, usize> {
    let func = subject.func;
    let definitions = definitions(func);
    let params: HashSet<VarId> = func.params.iter().copied().collect();
    let mut found = BTreeMap::new();
    for v in func.vars.ids() {
        let [(block, at)] = definitions[v][..] else { continue };
        if params.contains(&v) || !(subject.split || subject.graph.cyclic.contains(block)) {
            continue;
        }
        let Some(inst) = func.blocks[block].insts.get(at) else { continue };
        if is_cheap(subject, &inst.kind) {
            found.insert(v, at);
        }
    }
    let mut drop_if = |v: VarId, block: BlockId| {
        if found.contains_key(&v) && definitions[v][0].0 != block {
            found.remove(&v);
        }
    };
    for (id, block) in func.blocks.iter() {
        let mut read = |o: Operand| o.var().into_iter().for_each(|v| drop_if(v, id));
        block.insts.iter().for_each(|i| i.kind.for_each_operand(&mut read));
        block.term.for_each_operand(&mut read);
    }
    for origin in origins.values() {
        asked(origin).for_each(|v| {
            found.remove(&v);
        });
    }
    found
}

fn is_cheap(subject: &Subject<'_>, inst: &InstKind) -> bool {
    let InstKind::Prim { dst, prim, args } = inst else { return false };
    let types: Vec<Type> = args.iter().map(|a| subject.program.operand_type(subject.func, *a)).collect();
    let ty = &subject.func.vars[*dst].ty;
    let elements = ty.elements().max(1) as u64;
    // a copy of an array with one element changed would be made again as a whole
    let whole = prim.changes_part();
    let reads_itself = args.contains(&Operand::Var(*dst));
    prim.effect(&types) != Effect::Random
        && prim.row().batch != BatchRule::Random
        && !whole
        && !reads_itself
        && prim.cost(&types, ty) <= CHEAP_AGAIN * elements
}

/// Which variables are needed where.
pub(super) struct Analysis<'a> {
    pub(super) subject: &'a Subject<'a>,
    needs: &'a IdVec<BlockId, Vec<Needs>>,
    origins: &'a IdVec<BlockId, Origin>,
    definitions: IdVec<VarId, Vec<(BlockId, usize)>>,
    again: BTreeMap<VarId, usize>,
    /// For each variable that is computed again: the first instruction that sets what it is computed from. Beyond that it
    /// cannot be.
    until: BTreeMap<VarId, usize>,
    /// The variables needed at the start of each block, but for those that were left on tapes before.
    pub(super) at_entry: IdVec<BlockId, IdSet<VarId>>,
    /// What a sweep of its own leaves on tapes at the end of a block, before ways meet.
    pub(super) early: BTreeMap<BlockId, IdSet<VarId>>,
}

impl<'a> Analysis<'a> {
    /// The analysis, in which what cannot be computed again where it is needed is not any more.
    fn solved(
        subject: &'a Subject<'a>,
        needs: &'a IdVec<BlockId, Vec<Needs>>,
        origins: &'a IdVec<BlockId, Origin>,
        again: BTreeMap<VarId, usize>,
    ) -> Self {
        let definitions = definitions(subject.func);
        let (until, at_entry) = (BTreeMap::new(), IdVec::new());
        let early = BTreeMap::new();
        let mut analysis = Self { subject, needs, origins, definitions, again, until, at_entry, early };
        analysis.settle();
        if subject.split {
            analysis.save_elements();
        }
        analysis
    }

    fn settle(&mut self) {
        self.until.clear();
        for id in self.subject.func.blocks.ids() {
            self.find_until(id);
        }
        self.at_entry = loop {
            if let Some(at_entry) = self.solve() {
                break at_entry;
            }
        };
        self.leave_early();
    }

    /// What is needed at the end of the function.
    pub(super) fn at_end(&self) -> IdSet<VarId> {
        let mut blocks = self.subject.func.blocks.iter();
        let exit = blocks.find(|(_, block)| matches!(block.term, Terminator::Return(_)));
        exit.map_or(IdSet::new(self.subject.func.vars.len()), |(id, _)| {
            let end = self.block(id, self.at_entry[id].clone(), &mut |_, _| {});
            end.expect("what is computed again was settled")
        })
    }

    /// An array that would be left on a tape only so that a smaller part of it can be read again is not: the part is.
    fn save_elements(&mut self) {
        let Subject { func, graph, ref given, .. } = *self.subject;
        let elements = |v: VarId| func.vars[v].ty.elements();
        let mut left = self.at_end();
        self.early.values().for_each(|early| _ = left.union_with(early));
        let arrays: Vec<VarId> = left.iter().filter(|v| !func.vars[*v].ty.is_scalar() && !given.contains(*v)).collect();
        for array in arrays {
            let parts: Vec<VarId> = self
                .again
                .iter()
                .filter_map(|(v, made)| {
                    let block = self.definitions[*v][0].0;
                    let mut reads = false;
                    func.blocks[block].insts[*made].kind.for_each_operand(|o| reads |= o == Operand::Var(array));
                    (reads && elements(*v) < elements(array) && !graph.cyclic.contains(block)).then_some(*v)
                })
                .collect();
            if parts.is_empty() {
                continue;
            }
            let (before, again) = (self.left(), self.again.clone());
            parts.iter().for_each(|v| {
                self.again.remove(v);
            });
            self.settle();
            if self.left() >= before {
                self.again = again;
                self.settle();
            }
        }
    }

    /// Says of each variable of a block that is computed again up to where it can be.
    fn find_until(&mut self, id: BlockId) {
        let block = &self.subject.func.blocks[id];
        for (made, inst) in block.insts.iter().enumerate() {
            let Some(v) = inst.kind.dst().filter(|v| self.again.get(v) == Some(&made)) else { continue };
            let mut until = usize::MAX;
            inst.kind.for_each_operand(|o| {
                let Some(o) = o.var() else { return };
                until = until.min(match self.until.get(&o) {
                    Some(until) if self.again.contains_key(&o) => *until,
                    _ => {
                        let set = self.definitions[o].partition_point(|place| *place <= (id, made));
                        let next = self.definitions[o].get(set).filter(|(block, _)| *block == id);
                        next.map_or(usize::MAX, |(_, at)| *at)
                    }
                });
            });
            self.until.insert(v, until);
        }
    }

    /// The variables needed at the start of each block. Nothing when a variable cannot be computed again that was taken to be
    /// where others had been decided already; it is none of them now.
    fn solve(&mut self) -> Option<IdVec<BlockId, IdSet<VarId>>> {
        let Subject { func, graph, .. } = *self.subject;
        let mut at_entry = IdVec::filled(IdSet::new(func.vars.len()), func.blocks.len());
        let mut seen = IdSet::new(func.blocks.len());
        let mut changed = true;
        while changed {
            changed = false;
            for id in &graph.order {
                let end = loop {
                    match self.block(*id, at_entry[*id].clone(), &mut |_, _| {}) {
                        Ok(end) => break end,
                        Err(not_again) => {
                            self.again.remove(&not_again);
                            self.until.remove(&not_again);
                            self.find_until(*id);
                            if seen.contains(*id) {
                                return None;
                            }
                        }
                    }
                };
                seen.insert(*id);
                for next in func.blocks[*id].term.successors() {
                    changed |= at_entry[next].union_with(&end);
                }
            }
        }
        Some(at_entry)
    }

    /// From the variables needed at the start of a block to those needed at its end; `save` gets each variable that is set
    /// while its old value is needed.
    pub(super) fn block(
        &self,
        id: BlockId,
        mut needed: IdSet<VarId>,
        save: &mut dyn FnMut(usize, VarId),
    ) -> Result<IdSet<VarId>, VarId> {
        let block = &self.subject.func.blocks[id];
        work::add(block.insts.len() + 1);
        let mut walked = IdSet::new(self.subject.func.vars.len());
        asked(&self.origins[id]).for_each(|v| {
            needed.insert(v);
        });
        for (at, needs) in self.needs[id].iter().enumerate() {
            let dst = block.insts.get(at).and_then(|i| i.kind.dst());
            let late = at == block.insts.len() && (self.subject.restores_late)(id);
            for v in &needs.before {
                // what comes back late is set already
                self.leaves(id, *v, at + usize::from(late), (&mut needed, &mut walked))?;
            }
            let again = dst.is_some_and(|d| self.again.contains_key(&d));
            if needs.result && again {
                dst.into_iter().try_for_each(|d| self.leaves(id, d, at, (&mut needed, &mut walked)))?;
            }
            if let Some(dst) = dst {
                if needed.contains(dst) {
                    save(at, dst);
                    match way_back(self.subject, block.insts.get(at), dst) {
                        // the way back starts from the new value, which so is needed in its turn
                        Way::Inverse => {}
                        Way::Element(_) => self.element_indices(id, at, (&mut needed, &mut walked))?,
                        Way::Whole => needed.remove(dst),
                    }
                }
                if needs.result && !again {
                    needed.insert(dst);
                }
            }
            if at == block.insts.len() {
                for dst in block.term.dsts() {
                    if needed.contains(*dst) {
                        save(at, *dst);
                        needed.remove(*dst);
                    }
                }
            }
        }
        Ok(needed)
    }

    /// The indices of an element that is saved are needed to put it back.
    fn element_indices(&self, id: BlockId, at: usize, (needed, walked): Sets<'_>) -> Result<(), VarId> {
        if let InstKind::Prim { dst, prim: Prim::SetIndex, args } = &self.subject.func.blocks[id].insts[at].kind
            && args[0] == Operand::Var(*dst)
        {
            args[2..]
                .iter()
                .filter_map(|a| a.var())
                .try_for_each(|v| self.leaves(id, v, at, (&mut *needed, &mut *walked)))?;
        }
        Ok(())
    }

    /// A variable is read by the reverse of instruction `at`: it is needed, or what it is computed from again is.
    fn leaves(&self, block: BlockId, v: VarId, at: usize, (needed, walked): Sets<'_>) -> Result<(), VarId> {
        if !self.again.contains_key(&v) {
            needed.insert(v);
            return Ok(());
        }
        if self.until[&v] < at {
            return Err(v);
        }
        let insts = &self.subject.func.blocks[block].insts;
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            match self.again.get(&v) {
                None => {
                    needed.insert(v);
                }
                // What it is computed from was found needed for an earlier instruction, and is not set up to this one.
                Some(_) if !walked.insert(v) => {}
                Some(made) => insts[*made].kind.for_each_operand(|o| work.extend(o.var())),
            }
        }
        Ok(())
    }
}

/// The variables that are needed, and those whose operands were followed already.
type Sets<'s> = (&'s mut IdSet<VarId>, &'s mut IdSet<VarId>);
