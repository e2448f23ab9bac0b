//! If-conversion: both arms of a cheap branch are computed, and selects choose.

use super::blocks::{FreshNames, cost, edges_to, is_pure};
use super::merge_blocks::merge;
use crate::analysis::liveness::live_in;
use crate::base::{IdSet, IdVec, Loc};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::Args;
use crate::prim::Prim;

/// Most that both arms and the selects may cost together in one lane, in additions: about what a superstep that is saved
/// costs each lane of a shard.
const MOST_COST: u64 = 24;

/// Converts branches whose arms are blocks of their own that hold only pure primitives, from the inside out.
pub(super) fn run(mut program: Program) -> Program {
    for id in program.funcs.ids() {
        let mut func = program.funcs[id].clone();
        while convert_one(&program, &mut func) {
            merge(&program, &mut func);
        }
        program.funcs[id] = func;
    }
    program
}

/// A branch that can be converted.
struct Diamond {
    head: BlockId,
    cond: Operand,
    /// The arms where the condition holds and where it does not; an arm may be missing.
    arms: [Option<BlockId>; 2],
    join: BlockId,
}

fn convert_one(program: &Program, func: &mut Func) -> bool {
    let edges = edges_to(func);
    let live = live_in(func);
    for head in func.blocks.ids() {
        if let Some(diamond) = diamond_at(func, &edges, head) {
            let vars = selected(func, &diamond, &live[diamond.join]);
            if cheap(program, func, &diamond, &vars) {
                convert(func, &diamond, vars);
                return true;
            }
        }
    }
    false
}

fn diamond_at(func: &Func, edges: &IdVec<BlockId, usize>, head: BlockId) -> Option<Diamond> {
    let Terminator::Branch(cond, yes, no) = func.blocks[head].term else {
        return None;
    };
    let after = |arm: BlockId| match func.blocks[arm].term {
        Terminator::Jump(next) if edges[arm] == 1 && arm != head && next != arm => Some(next),
        _ => None,
    };
    let (arms, join) = match (after(yes), after(no)) {
        (Some(a), Some(b)) if a == b => ([Some(yes), Some(no)], a),
        (Some(a), _) if a == no => ([Some(yes), None], no),
        (_, Some(b)) if b == yes => ([None, Some(no)], yes),
        _ => return None,
    };
    Some(Diamond { head, cond, arms, join })
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

fn cheap(program: &Program, func: &Func, diamond: &Diamond, selected: &[VarId]) -> bool {
    let mut total = 0;
    for arm in diamond.arms.iter().flatten() {
        for inst in &func.blocks[*arm].insts {
            match &inst.kind {
                InstKind::Prim { prim, args, .. } if is_pure(program, func, *prim, args) => {
                    total += cost(program, func, &inst.kind);
                }
                _ => return false,
            }
        }
    }
    let selects = selected.iter().map(|v| func.vars[*v].ty.elements() as u64);
    total += selects.sum::<u64>();
    total <= MOST_COST
}

fn convert(func: &mut Func, diamond: &Diamond, selected: Vec<VarId>) {
    let mut names = FreshNames::new(func);
    let mut written: [Vec<(VarId, VarId, Loc)>; 2] = [vec![], vec![]];
    let mut insts = vec![];
    for (arm, written) in diamond.arms.iter().zip(&mut written) {
        let Some(arm) = *arm else {
            continue;
        };
        for mut inst in std::mem::take(&mut func.blocks[arm].insts) {
            inst.kind.for_each_operand_mut(|o| {
                if let Operand::Var(v) = o
                    && let Some((_, now, _)) = written.iter().find(|(old, ..)| old == v)
                {
                    *v = *now;
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
    let head = &mut func.blocks[diamond.head];
    head.insts.extend(insts);
    head.term = Terminator::Jump(diamond.join);
}
