//! An array of which only the changed copy is wanted is changed itself.

use std::collections::BTreeMap;

use super::blocks::{drop_unused_variables, live_at_terminators, step_back};
use crate::analysis::callgraph::CallGraph;
use crate::analysis::liveness::live_in;
use crate::base::{IdSet, IdVec, work};
use crate::cfg::{Func, FuncId, InstKind, Operand, Program, Terminator, VarId};
use crate::prim::Prim;

/// Makes one variable of an array and its changed copy (`d = set_index b, …`, or `d = copy b` where `d` is changed
/// later) if they never differ while both are wanted. Without that, a recursion that changes an array it is given
/// copies it in every call.
pub(super) fn run(mut program: Program) -> Program {
    let graph = CallGraph::new(&program);
    let passed = passed_on(&program, &program.funcs.iter().collect());
    for (id, func) in program.funcs.iter_mut() {
        let passed: &[bool] = if graph.is_recursive(id) { &passed[&id] } else { &[] };
        if change_in_place(func, passed) {
            drop_unused_variables(func);
        }
    }
    program
}

/// For each parameter, whether it is never set.
pub(in crate::transform) fn steady(func: &Func) -> Vec<bool> {
    let mut set = IdSet::new(func.vars.len());
    for block in func.blocks.values() {
        block.insts.iter().filter_map(|i| i.kind.dst()).for_each(|v| {
            set.insert(v);
        });
        block.term.dsts().iter().for_each(|v| {
            set.insert(*v);
        });
    }
    func.params.iter().map(|p| !set.contains(*p)).collect()
}

/// The parameters that are never set, and that a recursion passes on unchanged where they are arrays.
pub(in crate::transform) fn passed_on(
    program: &Program,
    funcs: &BTreeMap<FuncId, &Func>,
) -> BTreeMap<FuncId, Vec<bool>> {
    let mut passed: BTreeMap<FuncId, Vec<bool>> = funcs.iter().map(|(id, func)| (*id, steady(func))).collect();
    let graph = CallGraph::new(program);
    let mut component = IdVec::filled(0, program.funcs.len());
    for (at, scc) in graph.sccs.iter().enumerate() {
        scc.iter().for_each(|func| component[*func] = at);
    }
    let calls = |id: FuncId, func: &Func| {
        let calls = func.blocks.values().filter_map(|block| match &block.term {
            Terminator::Call { func: callee, args, .. } | Terminator::TailCall { func: callee, args, .. } => {
                Some((*callee, args.clone()))
            }
            _ => None,
        });
        calls.filter(|(callee, _)| component[*callee] == component[id]).collect::<Vec<_>>()
    };
    let calls: Vec<(FuncId, FuncId, Vec<Operand>)> = funcs
        .iter()
        .flat_map(|(id, func)| calls(*id, func).into_iter().map(|(callee, args)| (*id, callee, args)))
        .collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (id, callee, args) in &calls {
            work::add(args.len());
            let unchanged: Vec<bool> = args.iter().map(|arg| passes_on(funcs[id], &passed[id], *arg)).collect();
            for (passed, unchanged) in passed.entry(*callee).or_default().iter_mut().zip(unchanged) {
                changed |= *passed && !unchanged;
                *passed &= unchanged;
            }
        }
    }
    passed
}

/// Whether a recursive call passes a scalar, or an array that is what the function was given.
fn passes_on(func: &Func, passed: &[bool], arg: Operand) -> bool {
    let Operand::Var(v) = arg else { return true };
    func.vars[v].ty.is_scalar() || func.params.iter().zip(passed).any(|(p, passed)| *p == v && *passed)
}

/// Changes arrays of a function in place. The parameters in `passed` stay as they are: calls need not save what no call
/// sets. Whether there was any; what was copied is then left without mention.
pub(in crate::transform) fn change_in_place(func: &mut Func, passed: &[bool]) -> bool {
    let pairs = copies(func);
    if pairs.is_empty() {
        return false;
    }
    let mut watched = IdSet::new(func.vars.len());
    pairs.iter().flat_map(|(a, b)| [a, b]).for_each(|v| _ = watched.insert(*v));
    let mut params = IdSet::new(func.vars.len());
    func.params.iter().for_each(|p| _ = params.insert(*p));
    let of = func.vars.ids().collect();
    let mut classes = Classes { of, params, members: BTreeMap::new(), conflicts: BTreeMap::new() };
    for v in watched.iter() {
        let mut only = IdSet::new(func.vars.len());
        only.insert(v);
        classes.members.insert(v, only);
        classes.conflicts.insert(v, IdSet::new(func.vars.len()));
    }
    find_conflicts(func, &watched, &classes.params, &mut classes.conflicts);
    let kept = |v: VarId| func.params.iter().zip(passed).any(|(p, passed)| *p == v && *passed);
    let mut changed = false;
    for (from, to) in pairs.iter().filter(|(from, to)| !kept(*from) && !kept(*to)) {
        changed |= classes.join(*from, *to);
    }
    if changed {
        func.for_each_var_mut(|v| *v = classes.of[*v]);
        for block in func.blocks.values_mut() {
            block.insts.retain(|inst| match &inst.kind {
                InstKind::Prim { dst, prim: Prim::Copy, args } => args[0] != Operand::Var(*dst),
                _ => true,
            });
        }
    }
    changed
}

/// Arrays and their copies, those of which at least one is changed in part.
fn copies(func: &Func) -> Vec<(VarId, VarId)> {
    let mut pairs = Vec::new();
    let mut parts = IdSet::new(func.vars.len());
    for inst in func.blocks.values().flat_map(|block| &block.insts) {
        let InstKind::Prim { dst, prim, args } = &inst.kind else { continue };
        if !(*prim == Prim::Copy || prim.changes_part()) || func.vars[*dst].ty.is_scalar() {
            continue;
        }
        if prim.changes_part() {
            parts.insert(*dst);
        }
        if let Operand::Var(from) = args[0]
            && from != *dst
            && func.vars[from].ty == func.vars[*dst].ty
        {
            pairs.push((from, *dst));
        }
    }
    pairs.retain(|(from, to)| parts.contains(*from) || parts.contains(*to));
    pairs
}

/// For each watched variable, the others that are wanted where it is set to something else.
fn find_conflicts(
    func: &Func,
    watched: &IdSet<VarId>,
    params: &IdSet<VarId>,
    conflicts: &mut BTreeMap<VarId, IdSet<VarId>>,
) {
    let mut conflict = |v: VarId, others: &IdSet<VarId>| {
        if let Some(found) = conflicts.get_mut(&v) {
            let mut others = others.clone();
            others.intersect_with(watched);
            others.remove(v);
            found.union_with(&others);
        }
    };
    func.params.iter().for_each(|p| conflict(*p, params));
    let live = live_at_terminators(func);
    let live_in = live_in(func);
    for (id, block) in func.blocks.iter() {
        work::add(block.insts.len());
        if let Terminator::Call { dsts, next, .. } = &block.term {
            let mut set = live_in[*next].clone();
            dsts.iter().for_each(|dst| _ = set.insert(*dst));
            dsts.iter().for_each(|dst| conflict(*dst, &set));
        }
        let mut live = live[id].clone();
        for inst in block.insts.iter().rev() {
            if let Some(dst) = inst.kind.dst().filter(|dst| watched.contains(*dst)) {
                let mut others = live.clone();
                if let InstKind::Prim { prim, args, .. } = &inst.kind {
                    match args[0] {
                        Operand::Var(from) if *prim == Prim::Copy => others.remove(from),
                        Operand::Var(from) if prim.changes_part() => {
                            // what is put in, and where, is not what is changed
                            let mut read = IdSet::new(func.vars.len());
                            args[1..].iter().filter_map(|a| a.var()).for_each(|v| _ = read.insert(v));
                            others.union_with(&read);
                            conflict(from, &read);
                        }
                        _ => {}
                    }
                }
                conflict(dst, &others);
            }
            step_back(&inst.kind, &mut live);
        }
    }
}

/// Variables that have become one.
struct Classes {
    /// The variable that each one is now.
    of: IdVec<VarId, VarId>,
    /// Two of these are never one.
    params: IdSet<VarId>,
    members: BTreeMap<VarId, IdSet<VarId>>,
    conflicts: BTreeMap<VarId, IdSet<VarId>>,
}

impl Classes {
    /// Makes one of two variables, if that can be.
    fn join(&mut self, a: VarId, b: VarId) -> bool {
        let (a, b) = (self.of[a], self.of[b]);
        let meet = |a: VarId, b: VarId| self.members[&a].meets(&self.conflicts[&b]);
        if a == b || meet(a, b) || meet(b, a) {
            return false;
        }
        let (stays, goes) = if self.params.contains(b) { (b, a) } else { (a, b) };
        let members = self.members.remove(&goes).expect("a class");
        let conflicts = self.conflicts.remove(&goes).expect("a class");
        members.iter().for_each(|v| self.of[v] = stays);
        self.members.entry(stays).and_modify(|m| _ = m.union_with(&members));
        self.conflicts.entry(stays).and_modify(|c| _ = c.union_with(&conflicts));
        true
    }
}
