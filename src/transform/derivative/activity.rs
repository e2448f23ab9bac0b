//! Which variables a derivative goes through: those that vary with what it is taken with respect to, and that a result
//! depends on. One answer for a whole function, whatever the order of its blocks; a fixed point over calls.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::DerivativeRequests;
use crate::base::{Id, IdSet, work};
use crate::cfg::{BlockId, Func, FuncId, InstKind, Operand, SideEffect, TapeId, Terminator, VarId};
use crate::prim::{DerivativeRule, Prim};
use crate::types::DType;

/// A function, and for each of its parameters whether it varies.
pub(super) type Key = (FuncId, Vec<bool>);

/// Answers for the functions of a derivative.
#[derive(Debug)]
pub(super) struct Activity<'a> {
    funcs: &'a IndexMap<FuncId, Func>,
    requests: &'a DerivativeRequests,
    /// For each key asked for, which results vary.
    results: IndexMap<Key, Vec<bool>>,
    /// The tapes of the program, of an earlier derivative, that hold what varies.
    tapes: IdSet<TapeId>,
    /// Functions that may use tapes: what they give may vary although nothing that they are given does.
    taped: IdSet<FuncId>,
}

/// What one look at a function finds besides the variables that vary.
#[derive(Default)]
struct Found {
    /// Callees whose answer is not known yet.
    asked: Vec<Key>,
    /// Tapes that get what varies.
    tapes: Vec<TapeId>,
}

impl<'a> Activity<'a> {
    /// Nothing is known yet. `funcs` are all that the root of the derivative may run; there are `tapes` tapes.
    pub(super) fn new(funcs: &'a IndexMap<FuncId, Func>, requests: &'a DerivativeRequests, tapes: usize) -> Self {
        let bound = funcs.keys().map(|f| f.index() + 1).max().unwrap_or(0);
        let mut taped = IdSet::new(bound);
        let uses = |func: &Func| {
            let mut insts = func.blocks.values().flat_map(|b| &b.insts);
            insts.any(|i| matches!(&i.kind, InstKind::Effect(effect) if effect.tape().is_some()))
        };
        let mut changed = true;
        while changed {
            changed = false;
            for (id, func) in funcs {
                let mut callees = func.blocks.values().filter_map(|b| b.term.callee());
                if uses(func) || callees.any(|c| taped.contains(c)) {
                    changed |= taped.insert(*id);
                }
            }
        }
        Self { funcs, requests, results: IndexMap::new(), tapes: IdSet::new(tapes), taped }
    }

    /// Whether a tape holds what varies.
    pub(super) fn is_varied(&self, tape: TapeId) -> bool {
        self.tapes.contains(tape)
    }

    /// Whether a function may put what varies on a tape or take it from there.
    pub(super) fn uses_varied_tapes(&self, func: FuncId) -> bool {
        self.taped.contains(func) && !self.tapes.is_empty()
    }

    /// Which results of a function vary.
    pub(super) fn results(&mut self, key: &Key) -> Vec<bool> {
        if !self.results.contains_key(key) {
            self.ask(key.clone());
            self.solve();
        }
        self.results[key].clone()
    }

    /// The variables of a function that vary when these parameters do. `func` may be a changed copy of the one that is known.
    pub(super) fn varied(&mut self, func: &Func, params: &[bool]) -> IdSet<VarId> {
        loop {
            let mut found = Found::default();
            let varied = self.varied_now(func, params, &mut found);
            if !self.note(found) {
                return varied;
            }
            self.solve();
        }
    }

    /// Takes down what was found; whether it is new.
    fn note(&mut self, found: Found) -> bool {
        let before = self.results.len();
        found.asked.into_iter().for_each(|key| self.ask(key));
        let mut new = self.results.len() > before;
        found.tapes.into_iter().for_each(|tape| new |= self.tapes.insert(tape));
        new
    }

    fn ask(&mut self, key: Key) {
        if !self.results.contains_key(&key) {
            let func = &self.funcs[&key.0];
            // a rule knows what its function does not say
            let any = key.1.contains(&true) && self.requests.rules.contains_key(&key.0);
            let results = func.results.iter().map(|ty| any && ty.dtype == DType::Real).collect();
            self.results.insert(key, results);
        }
    }

    /// Asks for what is still missing until nothing changes.
    fn solve(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.results.len() {
                let (key, old) = self.results.get_index(at).map(|(k, r)| (k.clone(), r.clone())).expect("in range");
                if self.requests.rules.contains_key(&key.0) {
                    continue;
                }
                let func = &self.funcs[&key.0];
                let mut found = Found::default();
                let varied = self.varied_now(func, &key.1, &mut found);
                changed |= self.note(found);
                let mut results = old.clone();
                for block in func.blocks.values() {
                    if let Terminator::Return(values) = &block.term {
                        for (result, value) in results.iter_mut().zip(values) {
                            *result |= value.var().is_some_and(|v| varied.contains(v));
                        }
                    }
                }
                if results != old {
                    self.results[at] = results;
                    changed = true;
                }
            }
        }
    }

    /// What varies by what is known of the callees; keys that are not known yet are noted.
    fn varied_now(&self, func: &Func, params: &[bool], found: &mut Found) -> IdSet<VarId> {
        let mut varied = IdSet::new(func.vars.len());
        for (param, varies) in func.params.iter().zip(params) {
            if *varies {
                varied.insert(*param);
            }
        }
        let order = flow(func);
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().map(|b| &func.blocks[*b]) {
                work::add(block.insts.len() + 1);
                for inst in &block.insts {
                    changed |= match &inst.kind {
                        InstKind::Prim { dst, prim, args } => {
                            carries(*prim)
                                && func.vars[*dst].ty.dtype == DType::Real
                                && args.iter().any(|a| varies(*a, &varied))
                                && varied.insert(*dst)
                        }
                        InstKind::Effect(SideEffect::TapePush { tape, value }) => {
                            if varies(*value, &varied) && !self.tapes.contains(*tape) && !found.tapes.contains(tape) {
                                found.tapes.push(*tape);
                            }
                            false
                        }
                        InstKind::Effect(SideEffect::TapePop { dst, tape }) => {
                            self.tapes.contains(*tape) && varied.insert(*dst)
                        }
                        _ => false,
                    };
                }
                if let Terminator::Call { func: callee, args, dsts, .. } = &block.term {
                    let mask: Vec<bool> = args.iter().map(|a| varies(*a, &varied)).collect();
                    if !mask.contains(&true) && !self.taped.contains(*callee) {
                        continue;
                    }
                    let key = (*callee, mask);
                    match self.results.get(&key) {
                        Some(results) => {
                            for (dst, result) in dsts.iter().zip(results) {
                                changed |= *result && varied.insert(*dst);
                            }
                        }
                        None if found.asked.contains(&key) => {}
                        None => found.asked.push(key),
                    }
                }
            }
        }
        varied
    }
}

/// All blocks, so that most come before those that they lead to.
fn flow(func: &Func) -> Vec<BlockId> {
    let mut order = func.reverse_postorder();
    let reached: BTreeSet<BlockId> = order.iter().copied().collect();
    order.extend(func.blocks.ids().filter(|b| !reached.contains(b)));
    order
}

fn varies(operand: Operand, varied: &IdSet<VarId>) -> bool {
    operand.var().is_some_and(|v| varied.contains(v))
}

/// Whether a primitive's result may vary with its real operands.
pub(super) fn carries(prim: Prim) -> bool {
    matches!(prim.row().derivative, DerivativeRule::Smooth | DerivativeRule::Linear)
}

/// The variables of `varied` that the results of the function may depend on, or what it puts on a tape.
pub(super) fn active(func: &Func, varied: &IdSet<VarId>) -> IdSet<VarId> {
    let mut useful: IdSet<VarId> = IdSet::new(func.vars.len());
    let mark = |operand: Operand, useful: &mut IdSet<VarId>| match operand {
        Operand::Var(v) if varied.contains(v) => useful.insert(v),
        _ => false,
    };
    let order = flow(func);
    let mut changed = true;
    while changed {
        changed = false;
        for block in order.iter().rev().map(|b| &func.blocks[*b]) {
            work::add(block.insts.len() + 1);
            match &block.term {
                Terminator::Return(values) => values.iter().for_each(|v| changed |= mark(*v, &mut useful)),
                Terminator::Call { args, .. } => args.iter().for_each(|a| changed |= mark(*a, &mut useful)),
                _ => {}
            }
            for inst in block.insts.iter().rev() {
                match &inst.kind {
                    InstKind::Prim { dst, prim, args } if carries(*prim) && useful.contains(*dst) => {
                        args.iter().for_each(|a| changed |= mark(*a, &mut useful));
                    }
                    InstKind::Effect(SideEffect::TapePush { value, .. }) => changed |= mark(*value, &mut useful),
                    _ => {}
                }
            }
        }
    }
    useful
}
