//! Pops go down to where the popped value is wanted, past branches too. What a callee left in the variable is of use until
//! then, so that results need not be copied away before the pop.

use crate::base::IdSet;
use crate::stack::{BlockId, InstKind, Program, Terminator};

use super::layout::{entrances, region_of_blocks};

pub(super) fn run(mut program: Program) -> Program {
    let entrances = entrances(&program);
    let regions = region_of_blocks(&program);
    let mut reached = IdSet::new(program.blocks.len());
    let mut order = Vec::new();
    visit(&program, program.entry, &mut reached, &mut order);
    for id in program.blocks.ids() {
        visit(&program, id, &mut reached, &mut order);
    }
    for id in order {
        let open = |b: BlockId| entrances.get(&b) == Some(&1) && !regions.contains_key(&b);
        let arms = match program.blocks[id].term {
            Terminator::Branch(cond, yes, no) if yes != no && open(yes) && open(no) => Some((cond.var(), [yes, no])),
            _ => None,
        };
        let mut insts = std::mem::take(&mut program.blocks[id].insts);
        let mut below = Vec::new();
        for i in (0..insts.len()).rev() {
            let InstKind::Pop(v) = insts[i].kind else { continue };
            let next = (i + 1..insts.len()).find(|j| insts[*j].kind.touches(v));
            let pop = insts.remove(i);
            match (next, arms) {
                (Some(j), _) => insts.insert(j - 1, pop),
                (None, Some((cond, _))) if cond != Some(v) => below.push(pop),
                (None, _) => insts.push(pop),
            }
        }
        program.blocks[id].insts = insts;
        below.reverse();
        for to in arms.iter().flat_map(|(_, arms)| arms) {
            program.blocks[*to].insts.splice(0..0, below.iter().cloned());
        }
    }
    program
}

/// Blocks before those that they lead to, but for loops.
fn visit(program: &Program, start: BlockId, reached: &mut IdSet<BlockId>, order: &mut Vec<BlockId>) {
    let mut path = vec![(start, 0)];
    let mut after = Vec::new();
    if !reached.insert(start) {
        return;
    }
    while let Some((block, next)) = path.pop() {
        match program.blocks[block].term.successors().get(next) {
            Some(to) => {
                path.push((block, next + 1));
                if reached.insert(*to) {
                    path.push((*to, 0));
                }
            }
            None => after.push(block),
        }
    }
    order.extend(after.into_iter().rev());
}
