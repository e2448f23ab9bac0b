//! Which predecessor the reverse sweep goes back to: asked of the condition that decided it, or of the counter of a
//! loop; only where neither can be had is the edge put on a tape. And what such a counter is when its loop is over.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{Subject, Tapes};
use crate::base::{Id, IdSet, IdVec, work};
use crate::cfg::{BlockId, Func, InstKind, Operand, SharedId, SharedSource, TapeId, Terminator, VarId};
use crate::prim::Prim;
use crate::types::{Scalar, Type};

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

/// How often each variable is set, and where last.
pub(super) fn definitions(func: &Func) -> IdVec<VarId, Vec<(BlockId, usize)>> {
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

/// Where each block is entered from, by a condition or a counter where that can be; `Tape` stands for all others, and
/// its tape is not made yet.
pub(super) fn origins(subject: &Subject<'_>) -> IdVec<BlockId, Origin> {
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

/// For each block that a loop leads to when its counter has come to its bound: the counter, and the bound. So the
/// reverse sweep sets the counter where it enters the loop, and need not find what it was. What it is set to is the same
/// for all lanes where the bound is: the reverse of a loop of so many turns is one, too.
pub(super) fn counted(subject: &Subject<'_>, origins: &IdVec<BlockId, Origin>) -> BTreeMap<BlockId, (VarId, Operand)> {
    let definitions = definitions(subject.func);
    let end = |(head, origin): (BlockId, &Origin)| match origin {
        Origin::Counter { counter, start, entry, turn } => {
            let (last, next, bound) = last_turn(subject, *counter, *turn)?;
            let below = steady(bound, &definitions) && starts_below(subject, &definitions, (*start, bound), *entry);
            // Were there a way back to the test, it would count on beyond the bound.
            let over = !returns_past(subject, (next, last), head);
            (below && over).then_some((next, (*counter, bound)))
        }
        _ => None,
    };
    origins.iter().filter_map(end).collect()
}

/// The last block of a loop whose turns end with `counter = counter + 1; if counter < bound`, where that goes on to, and
/// the bound.
fn last_turn(subject: &Subject<'_>, counter: VarId, turn: BlockId) -> Option<(BlockId, BlockId, Operand)> {
    let (func, graph) = (subject.func, subject.graph);
    let [last] = graph.preds[turn][..] else { return None };
    let Terminator::Branch(Operand::Var(cond), yes, no) = func.blocks[last].term else { return None };
    let sets = |v: VarId| func.blocks[last].insts.iter().rposition(|i| i.kind.dst() == Some(v));
    let (step, test) = (sets(counter)?, sets(cond)?);
    let insts = &func.blocks[last].insts;
    let one = Operand::Const(Scalar::Int(1));
    let steps = matches!(&insts[step].kind, InstKind::Prim { prim: Prim::Add, args, .. } if args[1] == one);
    match &insts[test].kind {
        InstKind::Prim { prim: Prim::Lt, args, .. }
            if steps && step < test && yes == turn && no != turn && args[0] == Operand::Var(counter) =>
        {
            Some((last, no, args[1]))
        }
        _ => None,
    }
}

/// Whether a loop is entered only where its counter starts below its bound.
fn starts_below(
    subject: &Subject<'_>,
    definitions: &IdVec<VarId, Vec<(BlockId, usize)>>,
    (start, bound): (Operand, Operand),
    entry: BlockId,
) -> bool {
    if let (Operand::Const(Scalar::Int(start)), Operand::Const(Scalar::Int(bound))) = (start, bound) {
        return start < bound;
    }
    let (func, graph) = (subject.func, subject.graph);
    let shared = |operand: Operand| operand.var().is_none().then(|| operand.map(|_| SharedId::new(0)));
    let compares = |cond: Operand| match cond {
        Operand::Var(cond) => {
            let [(block, at)] = definitions[cond][..] else { return false };
            matches!(func.blocks[block].insts.get(at).map(|i| &i.kind),
                Some(InstKind::Prim { dst, prim: Prim::Lt, args }) if *dst == cond && args[..] == [start, bound])
        }
        // It stands before the program where neither of them is a variable.
        Operand::Shared(cond) => match &subject.program.shared[cond].source {
            SharedSource::Prim(Prim::Lt, args) => {
                args.iter().map(|a| Some(*a)).eq([start, bound].into_iter().map(shared))
            }
            _ => false,
        },
        Operand::Const(_) => false,
    };
    // Start, bound, comparison and branch are each in one place, and each dominates the next: no way to the loop comes
    // from a new bound and leaves the comparison out.
    let mut at = entry;
    loop {
        work::add(1);
        if let Terminator::Branch(cond, yes, _) = func.blocks[at].term
            && compares(cond)
            && graph.preds[yes].len() == 1
            && graph.dominates(yes, entry)
        {
            return true;
        }
        let above = graph.idom(at);
        if above == at {
            return false;
        }
        at = above;
    }
}

/// The same, with tapes for the edges that nothing else tells.
pub(super) fn origins_with_tapes(
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
pub(super) fn asked(origin: &Origin) -> impl Iterator<Item = VarId> + use<> {
    let pair = match origin {
        Origin::Condition(cond, ..) => [cond.var(), None],
        Origin::Counter { counter, start, .. } => [Some(*counter), start.var()],
        Origin::Known(_) | Origin::Tape(_) => [None, None],
    };
    pair.into_iter().flatten()
}
