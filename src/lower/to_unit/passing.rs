//! How the arrays of a CFG program get from call to call in its units: an array that the callee only reads is lent to
//! it, one that the caller does not want any more is given away, others are copied.

use crate::analysis::callgraph::CallGraph;
use crate::analysis::liveness::{live_across_call, live_in};
use crate::base::{IdSet, IdVec, work};
use crate::cfg::{BlockId, Func, FuncId, Operand, Program, Terminator, VarId};
use crate::unit::Passing;

/// What is lent and given in a program.
pub(super) struct Passings<'a> {
    program: &'a Program,
    /// For each function and parameter, whether it is an array that nothing changes.
    kept: IdVec<FuncId, Vec<bool>>,
    /// By function and block, what lives across the call that ends it.
    across: IdVec<FuncId, IdVec<BlockId, IdSet<VarId>>>,
}

impl<'a> Passings<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let kept = program.funcs.values().map(never_set).collect();
        let across = program.funcs.values().map(across).collect();
        let graph = CallGraph::new(program);
        let mut component = IdVec::filled(0, program.funcs.len());
        for (at, scc) in graph.sccs.iter().enumerate() {
            scc.iter().for_each(|func| component[*func] = at);
        }
        let mut made = Self { program, kept, across };
        for (id, func) in program.funcs.iter() {
            for block in func.blocks.values() {
                // a tail call sets the parameters
                let Terminator::TailCall { func: callee, args, .. } = &block.term else { continue };
                for (k, arg) in args.iter().enumerate() {
                    let stays = *callee == id && *arg == Operand::Var(func.params[k]);
                    made.kept[*callee][k] &= stays;
                }
            }
        }
        made.give_in_recursions(&component);
        made
    }

    /// An array that a recursion changes further down goes along with it: a caller that wants it makes the copy.
    fn give_in_recursions(&mut self, component: &IdVec<FuncId, usize>) {
        let mut calls = Vec::new();
        for (id, func) in self.program.funcs.iter() {
            for (block, data) in func.blocks.iter() {
                if let Terminator::Call { func: callee, args, .. } = &data.term
                    && component[*callee] == component[id]
                {
                    calls.push((id, block, *callee, args));
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (id, block, callee, args) in &calls {
                work::add(args.len());
                for (k, arg) in args.iter().enumerate() {
                    if self.kept[*callee][k] {
                        continue;
                    }
                    let Some(v) = arg.var().filter(|v| !self.across[*id][*block].contains(*v)) else { continue };
                    let param = self.program.funcs[*id].params.iter().position(|p| *p == v);
                    if let Some(param) = param.filter(|param| self.kept[*id][*param]) {
                        self.kept[*id][param] = false;
                        changed = true;
                    }
                }
            }
        }
    }

    /// How the operands of the terminator of a block get to where they go.
    pub(super) fn of(&self, id: FuncId, block: BlockId) -> Vec<Passing> {
        let func = &self.program.funcs[id];
        let kept = |v: VarId| func.params.iter().zip(&self.kept[id]).any(|(p, kept)| *p == v && *kept);
        let (args, callee) = match &func.blocks[block].term {
            Terminator::Call { func: callee, args, .. } => (args, Some(*callee)),
            Terminator::TailCall { args, .. } | Terminator::Return(args) => (args, None),
            Terminator::Jump(_) | Terminator::Branch(..) => return Vec::new(),
        };
        let mut gone: Vec<VarId> = Vec::new();
        let passing = |(k, arg): (usize, &Operand)| {
            let Some(v) = arg.var().filter(|v| !func.vars[*v].ty.is_scalar() && !gone.contains(v)) else {
                return Passing::Copy;
            };
            let passing = match callee {
                Some(callee) if self.kept[callee][k] => Passing::Lent,
                Some(_) if self.across[id][block].contains(v) => Passing::Copy,
                _ if kept(v) => Passing::Copy,
                _ => Passing::Given,
            };
            if passing != Passing::Copy {
                gone.push(v);
            }
            passing
        };
        args.iter().enumerate().map(passing).collect()
    }
}

/// For each parameter, whether it is an array that no instruction and no call sets.
fn never_set(func: &Func) -> Vec<bool> {
    let mut set = IdSet::new(func.vars.len());
    for block in func.blocks.values() {
        work::add(block.insts.len());
        let dsts = block.insts.iter().filter_map(|i| i.kind.dst()).chain(block.term.dsts().iter().copied());
        dsts.for_each(|v| _ = set.insert(v));
    }
    func.params.iter().map(|p| !func.vars[*p].ty.is_scalar() && !set.contains(*p)).collect()
}

/// What lives across the calls of a function; nothing where none passes an array.
fn across(func: &Func) -> IdVec<BlockId, IdSet<VarId>> {
    let array = |o: &Operand| o.var().is_some_and(|v| !func.vars[v].ty.is_scalar());
    let passes = |term: &Terminator| matches!(term, Terminator::Call { args, .. } if args.iter().any(array));
    if !func.blocks.values().any(|block| passes(&block.term)) {
        return IdVec::filled(IdSet::new(func.vars.len()), func.blocks.len());
    }
    let live = live_in(func);
    func.blocks.ids().map(|id| live_across_call(func, &live, id)).collect()
}
