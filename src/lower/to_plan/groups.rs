//! Finds the instructions of a block that share a row axis and can run tile by tile, and brings the block into an order in
//! which they stand together. Only what is independent changes places: effects, and what may trap, stay in order.

use std::collections::BTreeSet;

use super::aliases::Aliases;
use super::rows::{self, Rule};
use super::{How, Inst, RawBlock};
use crate::base::IdVec;
use crate::parts::StorageClass;
use crate::plan::{Part, TiledStep, Var, VarId};
use crate::prim::{Effect, Prim};
use crate::types::Type;

/// What stands in a block, in its new order.
#[derive(Clone)]
pub(super) enum Item {
    /// An instruction, by its place.
    Inst(usize),
    /// Instructions that run tile by tile.
    Group(Group),
}

/// Instructions that run tile by tile, in their order.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) rows: usize,
    pub(super) members: Vec<Member>,
}

/// An instruction of a group.
#[derive(Clone)]
pub(super) struct Member {
    /// Its place in the block.
    pub(super) inst: usize,
    pub(super) rule: Rule,
    /// Whether its result is needed as a whole: by what does not belong to the group, or after the block.
    pub(super) kept: bool,
    /// The last member that reads its result, by its place among the members; its own place when none does.
    pub(super) until: usize,
}

/// What is known of the variables of a block.
pub(super) struct Context<'a> {
    pub(super) vars: &'a IdVec<VarId, Var>,
    /// The type of an operand, and whether there is one value for all lanes.
    pub(super) operand: &'a dyn Fn(super::Read) -> (Type, bool),
    /// Temporaries that are met in other blocks of the unit.
    pub(super) elsewhere: &'a BTreeSet<VarId>,
    pub(super) aliases: &'a Aliases,
}

/// The block as it is, without what needs no step.
pub(super) fn ungrouped<T>(source: &RawBlock<T>, aliases: &Aliases) -> Vec<Item> {
    let steps = (0..source.insts.len()).filter(|i| !aliases.covers(&source.insts[*i].0));
    steps.map(Item::Inst).collect()
}

/// Groups the instructions of a block.
pub(super) fn grouped<T>(source: &RawBlock<T>, context: &Context<'_>) -> Vec<Item> {
    let facts = source.insts.iter().map(|(inst, _)| Facts::of(inst, context)).collect();
    let finder = Finder { source, context, facts };
    let mut items = ungrouped(source, context.aliases);
    let mut at = 0;
    while at < items.len() {
        match finder.group_from(&items, at) {
            // What runs before it is looked at again.
            Some(rest) => {
                items.truncate(at);
                items.extend(rest);
            }
            None => at += 1,
        }
    }
    items
}

/// What an instruction touches.
struct Facts {
    reads: Vec<VarId>,
    write: Option<VarId>,
    /// Whether it has an effect, or may trap: these stay in order.
    effect: bool,
    /// Whether it could belong to a group.
    candidate: Option<Candidate>,
}

struct Candidate {
    prim: Prim,
    /// What the operands stand for.
    args: Vec<super::Read>,
    operands: Vec<rows::Operand>,
    ty: Type,
    pushes: bool,
}

impl Facts {
    fn of(inst: &Inst, context: &Context<'_>) -> Facts {
        let reads = context.aliases.reads(inst).collect();
        let mut facts = Facts { reads, write: inst.writes(), effect: true, candidate: None };
        match inst {
            Inst::Pop(_) => facts.effect = false,
            // Before a pop of the same stack, or after it.
            Inst::Save { stack, .. } => facts.reads.push(*stack),
            Inst::Compute { how, dst, prim, args } => {
                let operands = args.iter().map(|a| (context.operand)(*a));
                let operands: Vec<rows::Operand> =
                    operands.map(|(ty, broadcast)| rows::Operand { ty, broadcast }).collect();
                let types: Vec<Type> = operands.iter().map(|o| o.ty.clone()).collect();
                let pushes = *how == How::Push;
                facts.effect = pushes || prim.effect(&types) != Effect::Pure;
                if pushes {
                    // The old top is saved.
                    facts.reads.push(*dst);
                }
                let var = &context.vars[*dst];
                let roots = args.iter().map(|a| context.aliases.root(*a)).collect();
                if !var.uniform {
                    facts.candidate =
                        Some(Candidate { prim: *prim, args: roots, operands, ty: var.ty.clone(), pushes });
                }
            }
            _ => {}
        }
        facts
    }
    /// Whether `self`, which comes first, must stay before `next`.
    fn precedes(&self, next: &Facts) -> bool {
        let writes = |write: Option<VarId>, other: &Facts| {
            write.is_some_and(|v| other.write == Some(v) || other.reads.contains(&v))
        };
        (self.effect && next.effect) || writes(self.write, next) || writes(next.write, self)
    }
}

struct Finder<'a, T> {
    source: &'a RawBlock<T>,
    context: &'a Context<'a>,
    facts: Vec<Facts>,
}

impl Item {
    /// The instructions that it stands for, by their places in the block.
    pub(super) fn insts(&self) -> Vec<usize> {
        match self {
            Item::Inst(i) => vec![*i],
            Item::Group(group) => group.members.iter().map(|m| m.inst).collect(),
        }
    }
}

impl<T> Finder<'_, T> {
    fn precedes(&self, first: &[usize], next: usize) -> bool {
        first.iter().any(|f| self.facts[*f].precedes(&self.facts[next]))
    }

    /// What becomes of the items from `at` on if the instruction there begins a group that saves memory.
    fn group_from(&self, items: &[Item], at: usize) -> Option<Vec<Item>> {
        let Item::Inst(first) = items[at] else { return None };
        let candidate = self.facts[first].candidate.as_ref()?;
        let rows = rows::row_axis(candidate.prim, &candidate.operands, &candidate.ty)?;
        let mut members: Vec<(usize, Rule)> = Vec::new();
        // Where the members stand, and what must run after the group.
        let mut places: BTreeSet<usize> = BTreeSet::new();
        let mut later: Vec<usize> = Vec::new();
        for (place, item) in items.iter().enumerate().skip(at) {
            let insts = item.insts();
            if insts.iter().any(|i| self.precedes(&later, *i)) {
                later.extend(insts);
                continue;
            }
            let rule = match item {
                Item::Inst(inst) => self.joins(*inst, rows, &members),
                Item::Group(_) => None,
            };
            if let Some(rule) = rule {
                members.push((insts[0], rule));
                places.insert(place);
            } else if members.iter().any(|(m, _)| insts.iter().any(|i| self.precedes(&[*m], *i))) {
                later.extend(insts);
            }
        }
        if members.first().is_none_or(|(inst, _)| *inst != first) {
            return None;
        }
        let members = self.fates(&self.twins_together(members));
        if members.iter().all(|m| m.kept) {
            return None;
        }
        Some(self.parted(items, at, &places, Group { rows, members }))
    }

    /// Functions of the same rows that cost less together ([`TiledStep::twin_of`](crate::plan::TiledStep::twin_of)) are brought
    /// together where nothing is in the way.
    fn twins_together(&self, mut members: Vec<(usize, Rule)>) -> Vec<(usize, Rule)> {
        let candidate = |inst: usize| self.facts[inst].candidate.as_ref().expect("members are candidates");
        for at in 1..members.len() {
            let (inst, _) = members[at];
            let (second, facts) = (candidate(inst), &self.facts[inst]);
            let twin = (0..at).rev().find(|i| {
                let first = candidate(members[*i].0);
                TiledStep::are_twins(first.prim, second.prim) && first.args == second.args
            });
            let free = |twin: &usize| {
                let mut between = members[twin + 1..at].iter().map(|(m, _)| &self.facts[*m]);
                between.all(|m| !m.precedes(facts) && !facts.precedes(m))
            };
            if let Some(twin) = twin.filter(free) {
                members[twin + 1..=at].rotate_right(1);
            }
        }
        members
    }

    /// The rule by which an instruction joins a group with these members.
    fn joins(&self, inst: usize, rows: usize, members: &[(usize, Rule)]) -> Option<Rule> {
        let facts = &self.facts[inst];
        let candidate = facts.candidate.as_ref()?;
        let dst = facts.write?;
        let fits = |rule: &Rule| {
            // What it reads of members must be their rows.
            let reads_rows = candidate.args.iter().zip(&rule.parts).all(|(arg, part)| {
                let Some(v) = arg.var() else { return true };
                let made_by = members.iter().rev().find(|(m, _)| self.facts[*m].write == Some(v));
                made_by.is_none_or(|(_, made)| !made.total && *part == Part::Rows)
            });
            // What it overwrites no member may need in a later tile.
            let overwrites = members.iter().all(|(m, other)| {
                let member = &self.facts[*m];
                let candidate = member.candidate.as_ref().expect("members are candidates");
                let mut read = candidate.args.iter().zip(&other.parts);
                let whole = read.any(|(arg, part)| arg.var() == Some(dst) && *part != Part::Rows);
                let rewritten = member.write == Some(dst) && (other.total || rule.total);
                !rewritten && (rule.total || !whole)
            });
            let own = rule.total
                || candidate.args.iter().zip(&rule.parts).all(|(a, p)| a.var() != Some(dst) || *p == Part::Rows);
            reads_rows && overwrites && own && (rule.total || !candidate.pushes)
        };
        rows::rules(candidate.prim, &candidate.operands, &candidate.ty, rows).into_iter().find(fits)
    }

    /// Which results are kept, and how long the others live.
    fn fates(&self, members: &[(usize, Rule)]) -> Vec<Member> {
        let position = |inst: usize| members.iter().position(|(m, _)| *m == inst);
        let fate = |index: usize| {
            let (inst, rule) = &members[index];
            let v = self.facts[*inst].write.expect("a member computes");
            let (mut kept, mut until, mut redefined) = (rule.total, index, false);
            let covered = |i: &usize| self.context.aliases.covers(&self.source.insts[*i].0);
            for next in (inst + 1..self.source.insts.len()).filter(|i| !covered(i)) {
                let facts = &self.facts[next];
                if facts.reads.contains(&v) {
                    match position(next) {
                        Some(reader) => until = until.max(reader),
                        None => kept = true,
                    }
                }
                if facts.write == Some(v) {
                    redefined = true;
                    break;
                }
            }
            (kept || (!redefined && self.outlives(v)), until)
        };
        let made = members.iter().enumerate().map(|(index, (inst, rule))| {
            let (kept, until) = fate(index);
            Member { inst: *inst, rule: rule.clone(), kept, until }
        });
        made.collect()
    }

    /// Whether a variable is needed after the block as it stands at its end.
    fn outlives(&self, v: VarId) -> bool {
        let read_first = || {
            let first = self.facts.iter().find(|f| f.write == Some(v) || f.reads.contains(&v));
            first.is_some_and(|f| f.reads.contains(&v))
        };
        self.context.vars[v].class != StorageClass::Temporary
            || self.context.elsewhere.contains(&v)
            || self.source.cond.is_some_and(|c| c.var() == Some(v))
            // In a loop of a region the next round reads it.
            || read_first()
    }

    /// The items from `at` on with a group whose members stand at `places`: before it runs only what it needs.
    fn parted(&self, items: &[Item], at: usize, places: &BTreeSet<usize>, group: Group) -> Vec<Item> {
        let last = places.last().copied().unwrap_or(at);
        let mut needed: BTreeSet<usize> = BTreeSet::new();
        let mut wanted: Vec<usize> = Vec::new();
        for place in (at..=last).rev() {
            let insts = items[place].insts();
            let precedes = |i: &usize| wanted.iter().any(|w| self.facts[*i].precedes(&self.facts[*w]));
            if places.contains(&place) {
                wanted.extend(insts);
            } else if insts.iter().any(precedes) {
                needed.insert(place);
                wanted.extend(insts);
            }
        }
        let rest = (at..items.len()).filter(|p| !places.contains(p) && !needed.contains(p));
        let before = needed.iter().map(|p| items[*p].clone());
        before.chain([Item::Group(group)]).chain(rest.map(|p| items[p].clone())).collect()
    }
}
