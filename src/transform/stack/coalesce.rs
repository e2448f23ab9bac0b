//! One variable for several that are copies of one another and are never wanted with different values at the same time: the
//! copies between them are gone, and so is their memory. After Chaitin (*Register allocation and spilling via graph
//! coloring*, 1982): the copies that run most often come first.
//!
//! Two variables *interfere* when one is set while the other is live and holds another value. Values below the tops of
//! stacks are safe where no function keeps values of both variables below their tops at once: each function leaves all
//! stacks as high as it found them, so that what one variable saved comes back before the other's is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::analysis::frequencies::frequencies;
use crate::analysis::stack_calls::{StackFunctions, within};
use crate::analysis::stack_copies::{Copies, keeps_top};
use crate::analysis::stack_liveness::Liveness;
use crate::analysis::storage;
use crate::base::{IdSet, IdVec, work};
use crate::prim::Prim;
use crate::stack::{BlockId, InstKind, Operand, Program, StorageClass, Terminator, VarId, Write};

use super::layout::{for_each_var, keep_vars};

/// Most variables that are looked at.
const MOST_CANDIDATES: usize = 8192;

pub(super) fn run(mut program: Program) -> Program {
    let copies = wanted_copies(&program);
    let mut candidates: Vec<VarId> = Vec::new();
    let mut among = IdSet::new(program.vars.len());
    for v in copies.iter().flat_map(|((a, b), _)| [*a, *b]) {
        if candidates.len() < MOST_CANDIDATES && among.insert(v) {
            candidates.push(v);
        }
    }
    if candidates.is_empty() {
        return program;
    }
    let mut graph = Interference::of(&program, &candidates, &among);
    for ((a, b), _) in copies {
        graph.join(a, b);
    }
    rename(&mut program, &mut graph);
    storage::assign(&mut program);
    program
}

/// The pairs of variables that copies join, with what the copies cost, the dearest first.
fn wanted_copies(program: &Program) -> Vec<((VarId, VarId), u64)> {
    let often = often(program);
    let inside = region_temporaries(program);
    let outputs: BTreeSet<VarId> = program.outputs.iter().map(|p| p.var).collect();
    let mut costs: BTreeMap<(VarId, VarId), u64> = BTreeMap::new();
    for (id, block) in program.blocks.iter() {
        for inst in &block.insts {
            let InstKind::Compute { write: Write::Set | Write::Update, dst, prim: Prim::Copy, args } = &inst.kind
            else {
                continue;
            };
            let Operand::Var(src) = args[0] else { continue };
            let fits = program.vars[src].ty == program.vars[*dst].ty
                && src != *dst
                && [src, *dst].iter().all(|v| !program.vars[*v].uniform && !inside.contains(*v))
                && !(outputs.contains(&src) && outputs.contains(dst));
            if fits {
                let cost = often[id].saturating_mul(program.vars[src].ty.elements().max(1) as u64);
                let known = costs.entry((src.min(*dst), src.max(*dst))).or_insert(0);
                *known = known.saturating_add(cost);
            }
        }
    }
    let mut costs: Vec<_> = costs.into_iter().collect();
    costs.sort_by_key(|(pair, cost)| (std::cmp::Reverse(*cost), *pair));
    costs
}

/// The temporaries that regions set: they cost nothing between the turns of their loops.
fn region_temporaries(program: &Program) -> IdSet<VarId> {
    let mut inside = IdSet::new(program.vars.len());
    for block in program.regions.iter().flat_map(|r| &r.blocks) {
        for v in program.blocks[*block].insts.iter().filter_map(|i| i.kind.written()) {
            if program.vars[v].class == StorageClass::Temporary {
                inside.insert(v);
            }
        }
    }
    inside
}

/// How often each block may run.
fn often(program: &Program) -> IdVec<BlockId, u64> {
    let next = program.blocks.values().map(|block| within(&block.term).collect()).collect();
    let calls: Vec<(BlockId, BlockId)> = (program.blocks.iter())
        .filter_map(|(id, block)| match block.term {
            Terminator::PushJump { target, .. } => Some((id, target)),
            _ => None,
        })
        .collect();
    frequencies(program.entry, &next, &calls)
}

/// Which variables may not be one; joined ones stand as one.
struct Interference {
    place: BTreeMap<VarId, usize>,
    vars: Vec<VarId>,
    leader: Vec<usize>,
    /// By place, for those that stand as one at the place of the first: which they are.
    members: Vec<IdSet<VarId>>,
    /// The same: what lives, with another value, where one of them is set. One side of the relation.
    rows: Vec<IdSet<VarId>>,
}

impl Interference {
    fn of(program: &Program, candidates: &[VarId], among: &IdSet<VarId>) -> Self {
        let n = candidates.len();
        let none = IdSet::new(program.vars.len());
        let alone = |v: &VarId| {
            let mut alone = none.clone();
            alone.insert(*v);
            alone
        };
        let mut graph = Self {
            place: candidates.iter().enumerate().map(|(i, v)| (*v, i)).collect(),
            vars: candidates.to_vec(),
            leader: (0..n).collect(),
            members: candidates.iter().map(alone).collect(),
            rows: vec![none; n],
        };
        let liveness = Liveness::of(program);
        graph.add_sets(program, among, &liveness);
        graph.add_inputs(program, &liveness);
        graph.add_saved(program, liveness.functions());
        for (members, row) in graph.members.iter().zip(&mut graph.rows) {
            row.subtract(members);
        }
        graph
    }

    fn add(&mut self, a: VarId, others: &IdSet<VarId>) {
        if let Some(a) = self.place.get(&a) {
            self.rows[*a].union_with(others);
        }
    }

    /// What is set while another is live and holds another value.
    fn add_sets(&mut self, program: &Program, among: &IdSet<VarId>, liveness: &Liveness) {
        let copies = Copies::of(program, liveness.functions());
        for (id, block) in program.blocks.iter() {
            let after = liveness.live_after(program, id);
            let mut held = copies.before(id).clone();
            work::add(block.insts.len());
            for (inst, mut live) in block.insts.iter().zip(after) {
                copies.step(program, &inst.kind, &mut held);
                let Some(set) = inst.kind.written().filter(|v| among.contains(*v) && !keeps_top(&inst.kind)) else {
                    continue;
                };
                if matches!(inst.kind, InstKind::Compute { prim: Prim::Copy, .. }) {
                    let root = copies.root(&held, Operand::Var(set));
                    let same = copies.copies_of(&held, root).into_iter();
                    let same = same.filter(|v| copies.root(&held, Operand::Var(*v)) == root);
                    same.for_each(|v| live.remove(v));
                }
                self.add(set, &live);
            }
            // a trap sets the results of an attempt, all at once
            if let Terminator::PushJump { ret, attempt: Some(results), .. } = &block.term {
                let mut live = liveness.live_in(*ret).clone();
                results.iter().for_each(|v| _ = live.insert(*v));
                results.iter().for_each(|v| self.add(*v, &live));
            }
        }
    }

    /// The inputs are set at once, whether they are read or not.
    fn add_inputs(&mut self, program: &Program, liveness: &Liveness) {
        let mut live = liveness.live_in(program.entry).clone();
        program.inputs.iter().for_each(|input| _ = live.insert(input.var));
        program.inputs.iter().for_each(|input| self.add(input.var, &live));
    }

    /// What one function keeps below the tops of two stacks at the same time.
    fn add_saved(&mut self, program: &Program, functions: &StackFunctions) {
        let mut before: BTreeMap<BlockId, Rc<BTreeMap<VarId, i64>>> = BTreeMap::new();
        let mut open: Vec<BlockId> = functions.list.iter().map(|f| f.start).collect();
        open.iter().for_each(|start| {
            before.insert(*start, Rc::default());
        });
        while let Some(id) = open.pop() {
            let mut heights = before[&id].clone();
            let mut kept = IdSet::new(program.vars.len());
            heights.keys().for_each(|v| _ = kept.insert(*v));
            for inst in &program.blocks[id].insts {
                let Some((v, step)) = inst.kind.moved() else { continue };
                let heights = Rc::make_mut(&mut heights);
                let height = heights.entry(v).or_insert(0);
                *height += step;
                if *height == 0 {
                    heights.remove(&v);
                    kept.remove(v);
                } else {
                    kept.insert(v);
                    self.add(v, &kept);
                }
            }
            for to in within(&program.blocks[id].term) {
                before.entry(to).or_insert_with(|| {
                    open.push(to);
                    heights.clone()
                });
            }
        }
    }

    fn find(&mut self, v: VarId) -> Option<usize> {
        let mut at = *self.place.get(&v)?;
        while self.leader[at] != at {
            self.leader[at] = self.leader[self.leader[at]];
            at = self.leader[at];
        }
        Some(at)
    }

    /// Makes one of two variables, if they may be.
    fn join(&mut self, a: VarId, b: VarId) {
        let (Some(a), Some(b)) = (self.find(a), self.find(b)) else { return };
        if a == b || self.rows[a].meets(&self.members[b]) || self.rows[b].meets(&self.members[a]) {
            return;
        }
        let (a, b) = (a.min(b), a.max(b));
        self.leader[b] = a;
        let (row, members) = (self.rows[b].clone(), self.members[b].clone());
        self.rows[a].union_with(&row);
        self.members[a].union_with(&members);
    }

    /// The variables that are one, for those that are more than one.
    fn classes(&mut self) -> Vec<Vec<VarId>> {
        let mut classes: BTreeMap<usize, Vec<VarId>> = BTreeMap::new();
        for v in self.vars.clone() {
            if let Some(leader) = self.find(v) {
                classes.entry(leader).or_default().push(v);
            }
        }
        classes.into_values().filter(|class| class.len() > 1).collect()
    }
}

/// Puts one variable in the place of all of its class; the others are no more.
fn rename(program: &mut Program, graph: &mut Interference) {
    let ports: BTreeSet<VarId> = program.inputs.iter().chain(&program.outputs).map(|p| p.var).collect();
    let mut new: IdVec<VarId, VarId> = program.vars.ids().collect();
    for class in graph.classes() {
        let name = |v: &VarId| (!ports.contains(v), is_made(&program.vars[*v].name), *v);
        let Some(kept) = class.iter().copied().min_by_key(name) else { continue };
        let others = class.iter().filter(|v| **v != kept);
        let others: Vec<&str> = others.map(|v| program.vars[*v].name.as_str()).collect();
        let why = format!("; also {}", others.join(", "));
        let stack = class.iter().find(|v| program.vars[**v].class == StorageClass::Stack);
        let class_of = stack.or(class.iter().find(|v| program.vars[**v].class == StorageClass::Register));
        let (class_kept, why_kept) = {
            let var = &program.vars[*class_of.unwrap_or(&kept)];
            (var.class, format!("{}{why}", var.why))
        };
        let var = &mut program.vars[kept];
        (var.class, var.why) = (class_kept, why_kept);
        class.iter().for_each(|v| new[*v] = kept);
    }
    program.inputs.iter_mut().chain(&mut program.outputs).for_each(|p| p.var = new[p.var]);
    for_each_var(program, |v| *v = new[*v]);
    let mut kept = IdSet::new(program.vars.len());
    new.values().for_each(|v| {
        kept.insert(*v);
    });
    keep_vars(program, &kept);
    for block in program.blocks.values_mut() {
        block.insts.retain(|inst| {
            let set = matches!(inst.kind, InstKind::Compute { write: Write::Set | Write::Update, .. });
            !(set && keeps_top(&inst.kind))
        });
    }
}

/// Whether the compiler made up the name, for a result or for a value between.
fn is_made(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    last == "result" || number(last) || name.contains('#') || last.strip_prefix('t').is_some_and(number)
}
