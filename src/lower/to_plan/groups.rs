//! Finds the instructions of a block that share a row axis and can run tile by tile, and brings the block into an order in
//! which they stand together. Only what is independent changes places: effects, and what may trap, stay in order.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::aliases::Aliases;
use super::rows::{self, Rule};
use super::{How, Inst, RawBlock};
use crate::base::{IdVec, work};
use crate::parts::StorageClass;
use crate::plan::{Part, TiledStep, Var, VarId};
use crate::prim::{Effect, Prim};
use crate::types::Type;

/// A group is looked for until so many steps over row axes in a row were none of its members.
const MOST_OTHERS: usize = 128;
/// So many members without one whose result may need no memory promise nothing.
const MOST_KEPT: usize = 128;
/// How many instructions are looked at for each one of the block; what is left then stays as it is.
const MOST_LOOKS: usize = 1024;
/// How far from each other functions of the same rows may stand to be brought together.
const MOST_APART: usize = 512;

/// What stands in a block, in its new order.
pub(super) enum Item {
    /// An instruction, by its place.
    Inst(usize),
    /// Instructions that run tile by tile.
    Group(Group),
}

/// Instructions that run tile by tile, in their order.
pub(super) struct Group {
    pub(super) rows: usize,
    pub(super) members: Vec<Member>,
}

/// An instruction of a group.
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
    let finder = Finder::new(source, context);
    // The first is the last.
    let mut open = ungrouped(source, context.aliases);
    open.reverse();
    let mut looks = MOST_LOOKS * open.len();
    let mut items = Vec::new();
    while !open.is_empty() {
        // What runs before a group is looked at again.
        if !finder.group_first(&mut open, &mut looks) {
            items.extend(open.pop());
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
    /// The extent of the row axis of a group that it could start.
    starts: Option<usize>,
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
                    let starts = rows::row_axis(*prim, &operands, &var.ty);
                    facts.candidate =
                        Some(Candidate { prim: *prim, starts, args: roots, operands, ty: var.ty.clone(), pushes });
                }
            }
            _ => {}
        }
        facts
    }
}

/// What several instructions touch together.
#[derive(Default)]
struct Touched {
    reads: HashSet<VarId>,
    writes: HashSet<VarId>,
    effect: bool,
}

impl Touched {
    fn add(&mut self, facts: &Facts) {
        self.reads.extend(&facts.reads);
        self.writes.extend(facts.write);
        self.effect |= facts.effect;
    }
    /// Whether one of them and this instruction must keep their order.
    fn meets(&self, facts: &Facts) -> bool {
        (self.effect && facts.effect)
            || facts.reads.iter().any(|v| self.writes.contains(v))
            || facts.write.is_some_and(|v| self.writes.contains(&v) || self.reads.contains(&v))
    }
}

/// What is known of the members of a group while it grows.
#[derive(Default)]
struct Members {
    list: Vec<(usize, Rule)>,
    touched: Touched,
    /// Of each variable that a member sets, whether the last one that does adds up over the rows, and whether any does.
    made: HashMap<VarId, (bool, bool)>,
    /// What members read all of.
    whole: HashSet<VarId>,
    /// Whether the result of one may need no memory.
    promising: bool,
}

/// Where a variable is met.
struct Place {
    inst: usize,
    reads: bool,
    writes: bool,
}

struct Finder<'a, T> {
    source: &'a RawBlock<T>,
    context: &'a Context<'a>,
    facts: Vec<Facts>,
    /// In the order of the block, what needs no step left out.
    places: HashMap<VarId, Vec<Place>>,
    /// Variables that are read before they are set.
    read_first: HashSet<VarId>,
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

impl<'a, T> Finder<'a, T> {
    fn new(source: &'a RawBlock<T>, context: &'a Context<'a>) -> Self {
        let facts: Vec<Facts> = source.insts.iter().map(|(inst, _)| Facts::of(inst, context)).collect();
        let mut places: HashMap<VarId, Vec<Place>> = HashMap::new();
        let (mut met, mut read_first) = (HashSet::new(), HashSet::new());
        for (inst, fact) in facts.iter().enumerate() {
            work::add(1);
            let reads: BTreeSet<VarId> = fact.reads.iter().copied().collect();
            read_first.extend(reads.iter().filter(|v| !met.contains(*v)));
            met.extend(reads.iter().copied().chain(fact.write));
            if context.aliases.covers(&source.insts[inst].0) {
                continue;
            }
            for v in reads.iter().copied().chain(fact.write.filter(|v| !reads.contains(v))) {
                let place = Place { inst, reads: reads.contains(&v), writes: fact.write == Some(v) };
                places.entry(v).or_default().push(place);
            }
        }
        Self { source, context, facts, places, read_first }
    }

    /// Puts a group that saves memory in the place of its members, if the instruction that stands first begins one. The
    /// items stand in reverse.
    fn group_first(&self, open: &mut Vec<Item>, looks: &mut usize) -> bool {
        let Some((members, places)) = self.group_from(open, looks) else { return false };
        let Members { list, .. } = members;
        let first = self.facts[list[0].0].candidate.as_ref();
        let rows = first.and_then(|c| c.starts).expect("it starts a group");
        let members = self.fates(self.twins_together(list));
        let saves = members.iter().any(|m| !m.kept);
        if saves {
            self.part(open, &places, Group { rows, members });
        }
        saves
    }

    /// The members of a group that the first instruction begins, and where they stand, counted from the first one.
    fn group_from(&self, open: &[Item], looks: &mut usize) -> Option<(Members, BTreeSet<usize>)> {
        let Some(Item::Inst(first)) = open.last() else { return None };
        let rows = self.facts[*first].candidate.as_ref()?.starts?;
        let (mut members, mut places) = (Members::default(), BTreeSet::new());
        // What must run after the group.
        let mut later = Touched::default();
        let mut others = 0;
        for (place, item) in open.iter().rev().enumerate() {
            let insts = item.insts();
            work::add(insts.len());
            *looks = looks.checked_sub(insts.len())?;
            let starts = |i: &usize| self.facts[*i].candidate.as_ref().is_some_and(|c| c.starts.is_some());
            if insts.iter().any(starts) {
                others += 1;
            }
            if others > MOST_OTHERS || (members.list.len() > MOST_KEPT && !members.promising) {
                break;
            }
            if insts.iter().any(|i| later.meets(&self.facts[*i])) {
                insts.iter().for_each(|i| later.add(&self.facts[*i]));
                continue;
            }
            let rule = match item {
                Item::Inst(inst) => self.joins(*inst, rows, &members),
                Item::Group(_) => None,
            };
            if let Some(rule) = rule {
                self.join(&mut members, insts[0], rule);
                places.insert(place);
                others = 0;
            } else if insts.iter().any(|i| members.touched.meets(&self.facts[*i])) {
                insts.iter().for_each(|i| later.add(&self.facts[*i]));
            }
        }
        let begins = places.first() == Some(&0);
        begins.then_some((members, places))
    }

    /// An instruction becomes a member.
    fn join(&self, members: &mut Members, inst: usize, rule: Rule) {
        let facts = &self.facts[inst];
        members.touched.add(facts);
        if let Some(v) = facts.write {
            let made = members.made.entry(v).or_default();
            *made = (rule.total, made.1 || rule.total);
            members.promising |= !rule.total && self.may_spare(inst, v);
        }
        let args = facts.candidate.iter().flat_map(|c| &c.args).zip(&rule.parts);
        let whole = args.filter(|(_, part)| **part != Part::Rows).filter_map(|(arg, _)| arg.var());
        members.whole.extend(whole);
        members.list.push((inst, rule));
    }

    /// Whether what an instruction sets is read by none but what could be in its group.
    fn may_spare(&self, inst: usize, v: VarId) -> bool {
        let (read, redefined) = self.reads_after(inst, v);
        read.iter().all(|i| self.facts[*i].candidate.is_some()) && (redefined || !self.outlives(v))
    }

    /// The instructions that read what one sets, and whether the variable is set again.
    fn reads_after(&self, inst: usize, v: VarId) -> (Vec<usize>, bool) {
        let places = self.places.get(&v).map_or(&[][..], Vec::as_slice);
        let mut read = Vec::new();
        for place in &places[places.partition_point(|place| place.inst <= inst)..] {
            work::add(1);
            if place.reads {
                read.push(place.inst);
            }
            if place.writes {
                return (read, true);
            }
        }
        (read, false)
    }

    /// Functions of the same rows that cost less together ([`TiledStep::twin_of`](crate::plan::TiledStep::twin_of)) are brought
    /// together where nothing is in the way.
    fn twins_together(&self, mut members: Vec<(usize, Rule)>) -> Vec<(usize, Rule)> {
        let candidate = |inst: usize| self.facts[inst].candidate.as_ref().expect("members are candidates");
        for at in 1..members.len() {
            let (inst, _) = members[at];
            let (second, facts) = (candidate(inst), &self.facts[inst]);
            if !TiledStep::has_twin(second.prim) {
                continue;
            }
            let twin = (at.saturating_sub(MOST_APART)..at).rev().find(|i| {
                work::add(1);
                let first = candidate(members[*i].0);
                TiledStep::are_twins(first.prim, second.prim) && first.args == second.args
            });
            let free = |twin: &usize| {
                let mut between = Touched::default();
                members[twin + 1..at].iter().for_each(|(m, _)| between.add(&self.facts[*m]));
                !between.meets(facts)
            };
            if let Some(twin) = twin.filter(free) {
                members[twin + 1..=at].rotate_right(1);
            }
        }
        members
    }

    /// The rule by which an instruction joins a group with these members.
    fn joins(&self, inst: usize, rows: usize, members: &Members) -> Option<Rule> {
        let facts = &self.facts[inst];
        let candidate = facts.candidate.as_ref()?;
        let dst = facts.write?;
        let fits = |rule: &Rule| {
            // What it reads of members must be their rows.
            let reads_rows = candidate.args.iter().zip(&rule.parts).all(|(arg, part)| {
                let made = arg.var().and_then(|v| members.made.get(&v));
                made.is_none_or(|(total, _)| !total && *part == Part::Rows)
            });
            // What it overwrites no member may need in a later tile.
            let rewrites = members.made.get(&dst).is_some_and(|(_, total)| *total || rule.total);
            let overwrites = !rewrites && (rule.total || !members.whole.contains(&dst));
            let own = rule.total
                || candidate.args.iter().zip(&rule.parts).all(|(a, p)| a.var() != Some(dst) || *p == Part::Rows);
            reads_rows && overwrites && own && (rule.total || !candidate.pushes)
        };
        rows::rules(candidate.prim, &candidate.operands, &candidate.ty, rows).into_iter().find(fits)
    }

    /// Which results are kept, and how long the others live.
    fn fates(&self, members: Vec<(usize, Rule)>) -> Vec<Member> {
        let position: HashMap<usize, usize> = members.iter().enumerate().map(|(at, (inst, _))| (*inst, at)).collect();
        let made = members.into_iter().enumerate().map(|(index, (inst, rule))| {
            let v = self.facts[inst].write.expect("a member computes");
            let (read, redefined) = self.reads_after(inst, v);
            let readers = read.iter().map(|next| position.get(next).copied());
            let until = readers.clone().flatten().fold(index, usize::max);
            let elsewhere = readers.clone().any(|reader| reader.is_none());
            let kept = rule.total || elsewhere || (!redefined && self.outlives(v));
            Member { inst, rule, kept, until }
        });
        made.collect()
    }

    /// Whether a variable is needed after the block as it stands at its end.
    fn outlives(&self, v: VarId) -> bool {
        self.context.vars[v].class != StorageClass::Temporary
            || self.context.elsewhere.contains(&v)
            || self.source.cond.is_some_and(|c| c.var() == Some(v))
            // In a loop of a region the next round reads it.
            || self.read_first.contains(&v)
    }

    /// Puts a group in the place of its members: before it runs only what it needs.
    fn part(&self, open: &mut Vec<Item>, places: &BTreeSet<usize>, group: Group) {
        let last = places.last().copied().unwrap_or(0);
        let taken = open.split_off(open.len() - 1 - last);
        let mut wanted = Touched::default();
        let mut needed = Vec::new();
        // From the last one back to the first.
        for (place, item) in (0..=last).rev().zip(taken) {
            let insts = item.insts();
            work::add(insts.len());
            if places.contains(&place) {
                insts.iter().for_each(|i| wanted.add(&self.facts[*i]));
            } else if insts.iter().any(|i| wanted.meets(&self.facts[*i])) {
                insts.iter().for_each(|i| wanted.add(&self.facts[*i]));
                needed.push(item);
            } else {
                open.push(item);
            }
        }
        open.push(Item::Group(group));
        open.extend(needed);
    }
}
