//! Branches on several conditions, such as `a || b`, whose arms store to elements of arrays: what the later conditions look
//! at is computed in any case, with harmless operands where it may trap, and the arms become selects. Others stay, though
//! arms be cheap: lanes that part may meet more others in a block of its own, and NUTS in batches of 64 chains took up to
//! 1.2 times as long where all were joined (`benches/HISTORY.md`).

use super::blocks::{FreshNames, cost, drop_unreachable_blocks, edges_to};
use super::diamonds::Diamond;
use super::if_convert::{OF_BATCH, Way, convert, convert_rest, way};
use super::merge_blocks::merge;
use crate::analysis::liveness::live_in;
use crate::base::{Id, IdSet, IdVec, Loc, work};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::Args;
use crate::prim::Prim;
use crate::types::{DType, Scalar, Type};

/// Joins branches where none is left then.
pub(super) fn run(mut program: Program) -> Program {
    for id in program.funcs.ids() {
        let mut func = program.funcs[id].clone();
        if join_all(&program, &mut func) {
            merge(&program, &mut func);
            convert_rest(&program, &mut func, OF_BATCH);
        }
        program.funcs[id] = func;
    }
    program
}

/// Joins the branches of a function. Whether there were some.
fn join_all(program: &Program, func: &mut Func) -> bool {
    let mut edges = edges_to(func);
    work::add(func.blocks.len());
    if func.blocks.ids().all(|head| Pair::all_at(func, &edges, head).is_empty()) {
        return false;
    }
    // What is live where a block starts stays: what is added is read in its own block alone.
    let (live, vars) = (live_in(func), func.vars.len());
    let mut names = FreshNames::new(func);
    let mut any = false;
    for head in func.blocks.ids() {
        let (mut before, mut joined) = (Vec::new(), Vec::new());
        while let Some(pair) = Pair::all_at(func, &edges, head).into_iter().find(|pair| pair.looks_at(vars)) {
            work::add(func.blocks[head].insts.len() + func.blocks[pair.second].insts.len());
            before.extend([head, pair.second].map(|id| (id, func.blocks[id].clone())));
            if !pair.join(program, func, [&live[pair.shared], &live[pair.other]], &mut names) {
                break;
            }
            edges[pair.second] = 0;
            edges[pair.shared] -= 1;
            joined.push(pair);
        }
        let diamond = Diamond::at(func, &edges, head).filter(|_| !joined.is_empty());
        let converted = diamond.is_some_and(|diamond| {
            let of_head = func.blocks[head].insts.iter().map(|i| cost(program, func, &i.kind)).sum();
            before.extend(diamond.arms.iter().flatten().map(|arm| (*arm, func.blocks[*arm].clone())));
            let way = way(program, func, &diamond, &live[diamond.join], of_head, OF_BATCH);
            let Some(way) = way.filter(Way::stores_elements) else { return false };
            convert(program, func, &diamond, way, &mut names);
            diamond.arms.iter().flatten().for_each(|arm| edges[*arm] = 0);
            edges[diamond.join] -= 1;
            true
        });
        any |= converted;
        if !converted {
            before.into_iter().rev().for_each(|(id, block)| func.blocks[id] = block);
            for pair in joined {
                edges[pair.second] = 1;
                edges[pair.shared] += 1;
            }
        }
    }
    drop_unreachable_blocks(func);
    any
}

/// A block that ends in a branch, and one that nothing else leads to and that ends in a branch to the same block.
struct Pair {
    head: BlockId,
    /// The condition of the first branch, and for which of its values the second block follows.
    first: Operand,
    when: bool,
    second: BlockId,
    /// The condition of the second branch, and where it leads.
    condition: Operand,
    targets: [BlockId; 2],
    /// The block to which both lead, and the other one.
    shared: BlockId,
    other: BlockId,
}

impl Pair {
    /// The pairs whose first block this is.
    fn all_at(func: &Func, edges: &IdVec<BlockId, usize>, head: BlockId) -> Vec<Pair> {
        let Terminator::Branch(first, yes, no) = func.blocks[head].term else { return Vec::new() };
        let pair = |second: BlockId, shared: BlockId| {
            let Terminator::Branch(condition, yes, no) = func.blocks[second].term else { return None };
            let other = if yes == shared { no } else { yes };
            let leads = yes != no && (yes == shared || no == shared);
            let alone = edges[second] == 1 && second != head && second != BlockId::new(0);
            let (when, targets) = (false, [yes, no]);
            (leads && alone).then_some(Pair { head, first, when, second, condition, targets, shared, other })
        };
        let where_it_holds = pair(yes, no).map(|pair| Pair { when: true, ..pair });
        where_it_holds.into_iter().chain(pair(no, yes)).collect()
    }

    /// Whether the second condition is one of the first so many variables.
    fn looks_at(&self, vars: usize) -> bool {
        self.condition.var().is_some_and(|v| v.index() < vars)
    }

    /// Makes one branch of both, if that is cheap enough. What is live in the block to which both lead, and in the other one.
    fn join(
        &self,
        program: &Program,
        func: &mut Func,
        [shared, other]: [&IdSet<VarId>; 2],
        names: &mut FreshNames,
    ) -> bool {
        let arms = if self.when { [Some(self.second), None] } else { [None, Some(self.second)] };
        let diamond = Diamond { head: self.head, cond: self.first, arms, join: self.shared };
        let mut wanted = shared.clone();
        wanted.union_with(other);
        if let Operand::Var(condition) = self.condition {
            wanted.insert(condition);
        }
        let of_head = func.blocks[self.head].insts.iter().map(|i| cost(program, func, &i.kind)).sum();
        let Some(mut way) = way(program, func, &diamond, &wanted, of_head, OF_BATCH) else { return false };
        // The condition of both: for those that do not come to the second one, what leads to the shared block.
        let both = names.add(&mut func.vars, "both", Type::new(DType::Bool, []));
        let copy = |from: Operand| {
            let args = Args::from_slice(&[from]);
            Inst { kind: InstKind::Prim { dst: both, prim: Prim::Copy, args }, loc: Loc::none() }
        };
        let of_shared = Operand::Const(Scalar::Bool(self.targets[0] == self.shared));
        func.blocks[self.head].insts.push(copy(of_shared));
        func.blocks[self.second].insts.push(copy(self.condition));
        // What the second block sets for the other one alone, lanes that do not come to it may not have.
        let (selected, given) = way.selected.into_iter().partition(|v| shared.contains(*v));
        way.selected = selected;
        way.given = given;
        way.selected.insert(0, both);
        convert(program, func, &diamond, way, names);
        let [yes, no] = self.targets;
        func.blocks[self.head].term = Terminator::Branch(Operand::Var(both), yes, no);
        true
    }
}
