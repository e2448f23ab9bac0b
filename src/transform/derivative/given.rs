//! What a reverse sweep that is a function of its own is given by its caller, beside the cotangents of the results: the
//! values of parameters that it reads, and the cotangents of arrays that it adds to.
//!
//! A parameter that is never set has the value that the caller passed, so the caller passes it again and no tape holds
//! it: what a recursion passes on unchanged is saved nowhere. The cotangent of an array of that kind is a sum that goes
//! through the calls and is added to in place: a call that reads one element costs one element, not the array.

use std::collections::BTreeMap;

use indexmap::{IndexMap, IndexSet};

use super::DerivativeError;
use super::activity::Key;
use super::differentiation::{CallRule, Differentiation};
use super::record::needed_at_end;
use crate::analysis::callgraph::CallGraph;
use crate::cfg::{Func, FuncId, Inst, InstKind, Operand, Program, Terminator, Var, VarId};
use crate::parts::Args;
use crate::prim::Prim;
use crate::transform::cfg::in_place;
use crate::transform::cfg::simplify::simplify_fully;

/// What a reverse sweep takes, by parameter of the function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Given {
    /// Those whose values it takes.
    pub(super) values: Vec<bool>,
    /// Those whose cotangents it takes and adds to.
    pub(super) sums: Vec<bool>,
}

/// By function, its parameters that are never set.
#[derive(Debug)]
pub(super) struct Lasting {
    /// Scalars, and arrays that a recursion passes on unchanged: an array that differs from call to call would have to
    /// be saved by the caller.
    passed: BTreeMap<FuncId, Vec<bool>>,
}

impl Lasting {
    /// Of the functions of a derivative.
    pub(super) fn new(program: &Program, funcs: &IndexMap<FuncId, Func>) -> Self {
        let funcs = funcs.iter().map(|(id, func)| (*id, func)).collect();
        Self { passed: in_place::passed_on(program, &funcs) }
    }
}

/// No call sets what it is passed: its reverse reads the arguments before what it set comes back.
pub(super) fn keep_arguments(func: &mut Func) {
    for id in func.blocks.ids() {
        let block = &mut func.blocks[id];
        let Terminator::Call { args, dsts, loc, .. } = &mut block.term else { continue };
        for arg in args {
            if let Operand::Var(v) = *arg
                && dsts.contains(&v)
            {
                let Var { name, ty } = func.vars[v].clone();
                let dst = func.vars.push(Var { name, ty });
                let args = Args::from_slice(&[*arg]);
                block.insts.push(Inst { kind: InstKind::Prim { dst, prim: Prim::Copy, args }, loc: loc.clone() });
                *arg = Operand::Var(dst);
            }
        }
    }
}

/// Where a recursion passes on a changed copy of an array that it does not want any more, the array itself is changed:
/// then so is its cotangent, in one place, and goes through the calls.
pub(super) fn change_in_place(program: &Program, funcs: &mut IndexMap<FuncId, Func>) {
    let graph = CallGraph::new(program);
    let lasting = Lasting::new(program, funcs);
    for (id, func) in funcs.iter_mut().filter(|(id, _)| graph.is_recursive(**id)) {
        if in_place::change_in_place(func, &lasting.passed[id]) {
            simplify_fully(program, func);
        }
    }
}

impl Differentiation<'_> {
    /// Finds what the reverse sweeps are given that these calls lead to.
    pub(super) fn find_given<'r>(&mut self, calls: impl Iterator<Item = &'r CallRule>) -> Result<(), DerivativeError> {
        let order = self.callees_first(calls)?;
        let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, key) in order.iter().enumerate() {
            for callee in self.outlines[key].calls.values().filter_map(called) {
                if let Some(callee) = order.get_index_of(callee) {
                    callers.entry(callee).or_default().push(at);
                }
            }
        }
        let mut stale = vec![true; order.len()];
        while stale.contains(&true) {
            for (at, key) in order.iter().enumerate() {
                if !std::mem::take(&mut stale[at]) {
                    continue;
                }
                let values = self.values_read(key);
                if values != self.given[key].values {
                    self.given[key].values = values;
                    callers.get(&at).into_iter().flatten().for_each(|caller| stale[*caller] = true);
                }
            }
        }
        Ok(())
    }

    /// The functions that these calls lead to and of which nothing is known yet, callees before callers where that can
    /// be.
    fn callees_first<'r>(
        &mut self,
        calls: impl Iterator<Item = &'r CallRule>,
    ) -> Result<IndexSet<Key>, DerivativeError> {
        let mut order = IndexSet::new();
        let mut work: Vec<(Key, bool)> = calls.filter_map(called).map(|key| (key.clone(), false)).collect();
        while let Some((key, entered)) = work.pop() {
            if entered {
                order.insert(key);
                continue;
            }
            if self.given.contains_key(&key) {
                continue;
            }
            let outline = self.outline(&key)?;
            let func = &outline.func;
            let array = |p: &VarId| !func.vars[*p].ty.is_scalar();
            let passed = self.passed(key.0);
            let sums =
                func.params.iter().zip(passed).zip(&key.1).map(|((p, passed), varies)| *varies && *passed && array(p));
            let given = Given { values: vec![false; func.params.len()], sums: sums.collect() };
            self.given.insert(key.clone(), given);
            work.push((key.clone(), true));
            work.extend(outline.calls.values().filter_map(called).map(|key| (key.clone(), false)));
            self.outlines.insert(key, outline);
        }
        Ok(order)
    }

    /// The parameters whose values the reverse sweep needs at its start and that the caller has.
    fn values_read(&self, key: &Key) -> Vec<bool> {
        let outline = &self.outlines[key];
        let needed = outline.with_subject(self, Some(key.0), |subject| needed_at_end(subject, &outline.vars));
        let passed = &self.lasting.passed[&key.0];
        outline.func.params.iter().zip(passed).map(|(p, passed)| *passed && needed.contains(*p)).collect()
    }

    /// The parameters that are passed again where they are needed.
    pub(super) fn passed(&self, func: FuncId) -> &[bool] {
        &self.lasting.passed[&func]
    }
}

/// The function with sweeps of its own that is called.
fn called(rule: &CallRule) -> Option<&Key> {
    match rule {
        CallRule::Pair { key, .. } => Some(key),
        _ => None,
    }
}
