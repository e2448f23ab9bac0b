//! If-conversion: both arms of a cheap branch are computed, and selects choose. An arm that may trap computes with harmless
//! operands in the lanes that do not take it. What one arm stores to a place that was just read is chosen, and stored.

use std::collections::BTreeSet;

use super::blocks::{FreshNames, cost, drop_unreachable_blocks, edges_to, is_pure};
use super::diamonds::{Diamond, Store};
use super::guards::{Guard, guards};
use super::merge_blocks::{absorb, absorbs, merge, weights};
use crate::analysis::liveness::live_in;
use crate::analysis::worklist::reversed;
use crate::base::{IdSet, Loc, work};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::Args;
use crate::prim::Prim;

/// Most that both arms and the selects may cost together in one lane, in additions: about what a superstep that is saved
/// costs each lane of a shard.
const MOST_COST: u64 = 24;
/// The same for batches, where lanes that go both ways pay for both arms anyway, and for a superstep for each.
const MOST_BATCH_COST: u64 = 128;
/// For batches arms may cost so much more as the block costs that ends in the branch, but no more than this: then the work is
/// doubled at worst, where hardly any lane takes a dear arm, and where most do, as in `a && b && c` of a convergence check,
/// lanes stay together and what the blocks hand to one another stays in registers.
const MOST_OF_HEAD: u64 = 4096;
/// Copies in arms of batches count for so much less: stored under the mask they cost what a select costs.
const COPY_DISCOUNT: u64 = 8;

/// What is converted.
#[derive(Clone, Copy)]
pub(in crate::transform) struct Conversion<'a> {
    /// Branches on these conditions.
    pub(in crate::transform) wanted: &'a dyn Fn(Operand) -> bool,
    /// Primitives that are known not to trap for their operands, besides those that never do.
    pub(in crate::transform) total: &'a dyn Fn(Prim, &[Operand]) -> bool,
    /// Arms too whose primitives may trap: they get harmless operands where they are not taken.
    pub(in crate::transform) guarded: bool,
    /// Most that both arms, the selects and the guards may cost together in one lane, in additions.
    pub(in crate::transform) most_cost: u64,
    /// They may cost so much more as the block costs that ends in the branch, but no more than this.
    pub(in crate::transform) most_of_head: u64,
    /// Whether copies in the arms, and the selects in their place, count for less.
    pub(in crate::transform) copies_cost_less: bool,
}

/// Of every branch.
const ALL: Conversion<'static> = Conversion {
    wanted: &|_| true,
    total: &|_, _| false,
    guarded: false,
    most_cost: MOST_COST,
    most_of_head: 0,
    copies_cost_less: false,
};

/// Of every branch for batches, also where arms may trap.
pub(super) const OF_BATCH: Conversion<'static> =
    Conversion { guarded: true, most_cost: MOST_BATCH_COST, most_of_head: MOST_OF_HEAD, copies_cost_less: true, ..ALL };

/// Converts branches whose conditions are wanted, those that have no others in their arms, and so many at most. Whether
/// there was one.
pub(in crate::transform) fn convert_where(
    program: &Program,
    func: &mut Func,
    conversion: Conversion<'_>,
    most_branches: usize,
) -> bool {
    let edges = edges_to(func);
    let live = live_in(func);
    let mut names: Option<FreshNames> = None;
    let (mut converted, mut left) = (IdSet::new(func.blocks.len()), most_branches);
    for head in func.blocks.ids() {
        work::add(1);
        let Some(diamond) = Diamond::at(func, &edges, head).filter(|d| (conversion.wanted)(d.cond)) else { continue };
        let mut arms = diamond.arms.iter().flatten();
        if arms.any(|arm| converted.contains(*arm)) {
            continue;
        }
        let of_head = || func.blocks[head].insts.iter().map(|i| cost(program, func, &i.kind)).sum();
        let of_head = if conversion.most_of_head > 0 { of_head() } else { 0 };
        if let Some(way) = way(program, func, &diamond, &live[diamond.join], of_head, conversion) {
            let names = names.get_or_insert_with(|| FreshNames::new(func));
            convert(program, func, &diamond, way, names);
            converted.insert(head);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    names.is_some()
}

/// Converts branches whose arms are blocks of their own that hold only pure primitives, from the inside out.
pub(super) fn run(program: Program) -> Program {
    convert_all(program, Conversion { guarded: false, ..ALL })
}

/// Converts those too whose arms may trap.
pub(super) fn run_guarded(program: Program) -> Program {
    convert_all(program, OF_BATCH)
}

fn convert_all(mut program: Program, conversion: Conversion<'_>) -> Program {
    for id in program.funcs.ids() {
        let mut func = program.funcs[id].clone();
        // One: how much a branch may cost hangs on what was converted before it.
        if convert_where(&program, &mut func, conversion, 1) {
            merge(&program, &mut func);
            convert_rest(&program, &mut func, conversion);
        }
        program.funcs[id] = func;
    }
    program
}

/// Converts all branches of a function whose blocks are merged, and merges what comes of it, as `convert_where` and `merge` would
/// in turns. What one conversion changes is the branch itself, its head, which goes on with what followed, and the branches
/// that the head is an arm of: no other is looked at again, and what is live where a block starts stays.
pub(super) fn convert_rest(program: &Program, func: &mut Func, conversion: Conversion<'_>) {
    let mut edges = edges_to(func);
    let mut weights = weights(program, func);
    let mut before = reversed(func.blocks.len(), func.blocks.iter().map(|(id, b)| (id, b.term.successors())));
    let live = live_in(func);
    let mut names = FreshNames::new(func);
    let mut open: BTreeSet<BlockId> = func.blocks.ids().collect();
    while let Some(head) = open.pop_first() {
        work::add(1);
        let Some(diamond) = Diamond::at(func, &edges, head).filter(|d| (conversion.wanted)(d.cond)) else { continue };
        let Some(way) = way(program, func, &diamond, &live[diamond.join], weights[head], conversion) else { continue };
        let count = func.blocks[head].insts.len();
        convert(program, func, &diamond, way, &mut names);
        let added = &func.blocks[head].insts[count..];
        work::add(added.len());
        weights[head] += added.iter().map(|i| cost(program, func, &i.kind)).sum::<u64>();
        let join = diamond.join;
        edges[join] -= 1;
        let gone: Vec<BlockId> = diamond.arms.iter().flatten().copied().collect();
        before[join].retain(|b| !gone.contains(b) && *b != head);
        before[join].push(head);
        if absorbs(&edges, head, join) {
            absorb(func, &mut weights, head, join);
            for to in func.blocks[head].term.successors() {
                before[to].iter_mut().filter(|b| **b == join).for_each(|b| *b = head);
            }
        }
        open.insert(head);
        open.extend(before[head].iter().copied());
    }
    drop_unreachable_blocks(func);
}

/// How a branch is converted.
pub(super) struct Way {
    stores: Vec<Store>,
    /// The variables that get one value or the other.
    pub(super) selected: Vec<VarId>,
    /// Those that only lanes read which take the one arm that there is: they get its value.
    pub(super) given: Vec<VarId>,
    /// What each arm must not read.
    guards: [Vec<Guard>; 2],
}

impl Way {
    /// Whether arms store to elements of arrays.
    pub(super) fn stores_elements(&self) -> bool {
        !self.stores.is_empty()
    }
}

/// How a branch is converted, if it can be and that is cheap enough: then its arms are without what the head has for them.
pub(super) fn way(
    program: &Program,
    func: &mut Func,
    diamond: &Diamond,
    live: &IdSet<VarId>,
    of_head: u64,
    conversion: Conversion<'_>,
) -> Option<Way> {
    let (stores, before) = diamond.lift(func, live);
    let selected = selected(func, diamond, live);
    let most = conversion.most_cost.saturating_add(conversion.most_of_head.min(of_head));
    let way =
        guards_of(program, func, diamond, conversion).map(|guards| Way { stores, selected, given: Vec::new(), guards });
    let way = way.filter(|way| converted_cost(program, func, diamond, way, conversion) <= most);
    if way.is_none() {
        diamond.put_back(func, before);
    }
    way
}

/// The variables that a diamond's arms write and that live after it, in the order of the variables.
fn selected(func: &Func, diamond: &Diamond, live: &IdSet<VarId>) -> Vec<VarId> {
    let mut vars = vec![];
    for arm in diamond.arms.iter().flatten() {
        vars.extend(func.blocks[*arm].insts.iter().filter_map(|i| i.kind.dst()));
    }
    vars.sort_unstable();
    vars.dedup();
    vars.retain(|v| live.contains(*v));
    // the condition is overwritten last
    vars.sort_by_key(|v| diamond.cond == Operand::Var(*v));
    vars
}

/// What each arm must not read; `None` when an arm cannot be converted.
fn guards_of(program: &Program, func: &Func, diamond: &Diamond, conversion: Conversion<'_>) -> Option<[Vec<Guard>; 2]> {
    let of = |arm: Option<BlockId>| {
        let Some(arm) = arm else {
            return Some(Vec::new());
        };
        let insts = &func.blocks[arm].insts;
        let pure = insts.iter().all(|inst| match &inst.kind {
            InstKind::Prim { prim, args, .. } => is_pure(program, func, *prim, args) || (conversion.total)(*prim, args),
            _ => false,
        });
        let found = match conversion.guarded {
            _ if pure => Vec::new(),
            false => return None,
            true => guards(program, func, insts, conversion.total)?,
        };
        Some(found)
    };
    Some([of(diamond.arms[0])?, of(diamond.arms[1])?])
}

/// What the code in the place of a branch costs in one lane, in additions.
fn converted_cost(
    program: &Program,
    func: &Func,
    diamond: &Diamond,
    Way { stores, selected, guards, .. }: &Way,
    conversion: Conversion<'_>,
) -> u64 {
    let insts = || diamond.arms.iter().flatten().flat_map(|arm| &func.blocks[*arm].insts);
    // A branch on what all lanes share parts none of them.
    let less = conversion.copies_cost_less && diamond.cond.var().is_some();
    let discount = |of: u64, copied: bool| if copied && less { of.div_ceil(COPY_DISCOUNT) } else { of };
    let is_copy = |inst: &Inst| matches!(inst.kind, InstKind::Prim { prim: Prim::Copy, .. });
    let arms: u64 = insts().map(|inst| discount(cost(program, func, &inst.kind), is_copy(inst))).sum();
    let copied = |v: VarId| insts().filter(|i| i.kind.dst() == Some(v)).all(is_copy);
    let selects: u64 = selected.iter().map(|v| discount(func.vars[*v].ty.elements() as u64, copied(*v))).sum();
    let elements = |g: &Guard| program.operand_type(func, g.operand).elements() as u64;
    let guards: u64 = guards.iter().flatten().map(elements).sum();
    let stored = |s: &Store| 1 + program.operand_type(func, s.values[0]).elements() as u64;
    arms + selects + guards + stores.iter().map(|store| 2 * stored(store)).sum::<u64>()
}

/// Computes both arms in the head, which goes on with what follows then.
pub(super) fn convert(
    program: &Program,
    func: &mut Func,
    diamond: &Diamond,
    Way { stores, selected, given, guards }: Way,
    names: &mut FreshNames,
) {
    let mut written: [Vec<(VarId, VarId, Loc)>; 2] = [vec![], vec![]];
    let mut insts = vec![];
    for ((i, arm), written) in diamond.arms.iter().enumerate().zip(&mut written) {
        let Some(arm) = *arm else {
            continue;
        };
        let loc = func.blocks[arm].insts.first().map_or(Loc::none(), |inst| inst.loc.clone());
        let mut guarded: Vec<(Operand, VarId)> = vec![];
        for Guard { operand, harmless } in &guards[i] {
            let ty = program.operand_type(func, *operand);
            let dst = names.add(&mut func.vars, "guarded", ty);
            let harmless = Operand::Const(*harmless);
            let (yes, no) = if i == 0 { (*operand, harmless) } else { (harmless, *operand) };
            let kind = InstKind::Prim { dst, prim: Prim::Select, args: Args::from_slice(&[diamond.cond, yes, no]) };
            insts.push(Inst { kind, loc: loc.clone() });
            guarded.push((*operand, dst));
        }
        for mut inst in std::mem::take(&mut func.blocks[arm].insts) {
            inst.kind.for_each_operand_mut(|o| {
                if let Operand::Var(v) = o
                    && let Some((_, now, _)) = written.iter().find(|(old, ..)| old == v)
                {
                    *v = *now;
                } else if let Some((_, now)) = guarded.iter().find(|(operand, _)| operand == o) {
                    *o = Operand::Var(*now);
                }
            });
            if let InstKind::Prim { dst, .. } = &mut inst.kind {
                let (name, ty) = (func.vars[*dst].name.clone(), func.vars[*dst].ty.clone());
                let now = names.add(&mut func.vars, &name, ty);
                written.retain(|(old, ..)| old != dst);
                written.push((*dst, now, inst.loc.clone()));
                *dst = now;
            }
            insts.push(inst);
        }
    }
    // What is stored is chosen before anything is: an array that one arm changes may be what stood in another's place.
    let mut stored = vec![];
    for Store { var, values, indices, loc } in stores {
        let now = |arm: usize, v: VarId| written[arm].iter().find(|(old, ..)| *old == v).map_or(v, |(_, now, _)| *now);
        let [yes, no] = [0, 1].map(|arm| values[arm].var().map_or(values[arm], |v| Operand::Var(now(arm, v))));
        let ty = program.operand_type(func, yes);
        let dst = names.add(&mut func.vars, "stored", ty);
        let kind = InstKind::Prim { dst, prim: Prim::Select, args: Args::from_slice(&[diamond.cond, yes, no]) };
        insts.push(Inst { kind, loc: loc.clone() });
        let args = [Operand::Var(var), Operand::Var(dst)].into_iter().chain(indices.iter().copied()).collect();
        stored.push(Inst { kind: InstKind::Prim { dst: var, prim: Prim::SetIndex, args }, loc });
    }
    insts.extend(stored);
    for var in selected {
        let find = |arm: usize| written[arm].iter().find(|(old, ..)| *old == var);
        let value = |arm: usize| Operand::Var(find(arm).map_or(var, |(_, now, _)| *now));
        let loc = find(0).or(find(1)).map_or(Loc::none(), |(.., loc)| loc.clone());
        insts.push(Inst {
            kind: InstKind::Prim {
                dst: var,
                prim: Prim::Select,
                args: Args::from_slice(&[diamond.cond, value(0), value(1)]),
            },
            loc,
        });
    }
    // The condition may be one of them.
    for var in given {
        let of_arm = written.iter().flatten().find(|(old, ..)| *old == var);
        insts.extend(of_arm.map(|(_, now, loc)| {
            let args = Args::from_slice(&[Operand::Var(*now)]);
            Inst { kind: InstKind::Prim { dst: var, prim: Prim::Copy, args }, loc: loc.clone() }
        }));
    }
    let head = &mut func.blocks[diamond.head];
    head.insts.extend(insts);
    head.term = Terminator::Jump(diamond.join);
}
