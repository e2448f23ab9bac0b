//! Forward mode: every variable that varies gets a second one for its tangent, and every instruction one for the tangent of
//! its result. Control is that of the function.

use std::collections::BTreeMap;

use super::activity::Key;
use super::care::Care;
use super::code::Code;
use super::differentiation::{Differentiation, ForwardCall};
use super::prepare::name_all;
use super::tangent::{Site, tangent};
use super::{DerivativeError, activity};
use crate::base::{Id, IdVec};
use crate::cfg::{Block, BlockId, Func, InstKind, Operand, SideEffect, TapeId, Terminator, VarId};
use crate::prim::Prim;
use crate::types::DType;

/// Which results get a tangent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tangents {
    /// All real ones: what a request promises.
    Real,
    /// Those that vary.
    Varied,
}

struct Forward<'a, 'p> {
    code: Code<'p>,
    func: &'a Func,
    /// The variable of each tangent.
    of: IdVec<VarId, Option<VarId>>,
    shadows: BTreeMap<TapeId, TapeId>,
}

impl Differentiation<'_> {
    /// The function that also computes tangents: parameters and the tangents of those of the key to results and tangents.
    pub(super) fn forward(&mut self, key: &Key, name: &str, tangents: Tangents) -> Result<Func, DerivativeError> {
        let (func, varied, _) = self.subject(key)?;
        let mut calls = BTreeMap::new();
        for (id, block) in func.blocks.iter() {
            if let Terminator::Call { func: callee, args, loc, .. } = &block.term {
                let mask = args.iter().map(|a| a.var().is_some_and(|v| varied.contains(v))).collect();
                calls.insert(id, self.forward_of_call((*callee, mask), loc)?);
            }
        }
        let shadows = self.shadows(&func);
        let mut code = Code::new(self.program, func.vars.clone(), func.loc.clone());
        let mut of: IdVec<VarId, Option<VarId>> = IdVec::filled(None, func.vars.len());
        for v in varied.iter() {
            let var = &func.vars[v];
            of[v] = Some(code.named(format!("{}.dot", var.name), var.ty.clone()));
        }
        // a parameter that does not vary, but is set to what does
        for (param, _) in func.params.iter().zip(&key.1).filter(|(_, wrt)| !**wrt) {
            if let Some(dot) = of[*param] {
                code.set_zero(dot);
            }
        }
        let results = match tangents {
            Tangents::Real => func.results.iter().map(|ty| ty.dtype == DType::Real).collect(),
            Tangents::Varied => self.activity.results(key),
        };
        let mut forward = Forward { code, func: &func, of, shadows };
        let blocks = forward.blocks(&calls, &results);
        let mut params = func.params.clone();
        params.extend(func.params.iter().zip(&key.1).filter(|(_, wrt)| **wrt).filter_map(|(p, _)| forward.of[*p]));
        let mut types = func.results.clone();
        types.extend(func.results.iter().zip(&results).filter(|(_, wanted)| **wanted).map(|(ty, _)| ty.clone()));
        let vars = forward.code.vars;
        let mut made = Func { name: name.to_owned(), params, results: types, vars, blocks, loc: func.loc.clone() };
        crate::transform::cfg::blocks::drop_unused_variables(&mut made);
        name_all(&mut made);
        Ok(made)
    }
}

impl Forward<'_, '_> {
    fn dot(&self, operand: Operand) -> Option<Operand> {
        Some(Operand::Var((*self.of.get(operand.var()?)?)?))
    }

    /// The tangent of an operand, zero if it has none.
    fn dot_or_zero(&mut self, operand: Operand) -> Operand {
        match self.dot(operand) {
            Some(dot) => dot,
            None => {
                let ty = self.code.ty(operand);
                self.code.zero(&ty)
            }
        }
    }

    fn blocks(&mut self, calls: &BTreeMap<BlockId, ForwardCall>, results: &[bool]) -> IdVec<BlockId, Block> {
        let mut blocks = IdVec::new();
        let mut after: Vec<Block> = Vec::new();
        let count = self.func.blocks.len();
        for (id, block) in self.func.blocks.iter() {
            for inst in &block.insts {
                self.code.loc = inst.loc.clone();
                self.inst(&inst.kind);
            }
            self.code.loc = block.loc.clone();
            let term = match &block.term {
                Terminator::Return(values) => {
                    let mut values = values.clone();
                    let wanted = values.clone().into_iter().zip(results).filter(|(_, wanted)| **wanted);
                    for (value, _) in wanted {
                        let dot = self.dot_or_zero(value);
                        values.push(dot);
                    }
                    Terminator::Return(values)
                }
                Terminator::Call { .. } => self.call(&block.term, &calls[&id], count, &mut after),
                other => other.clone(),
            };
            blocks.push(Block { insts: std::mem::take(&mut self.code.insts), term, loc: block.loc.clone() });
        }
        after.into_iter().for_each(|b| {
            blocks.push(b);
        });
        blocks
    }

    fn inst(&mut self, kind: &InstKind) {
        match kind {
            InstKind::Prim { dst, prim, args } => match self.of[*dst] {
                None => self.code.push(kind.clone()),
                Some(dot) => self.prim(*dst, dot, *prim, args),
            },
            InstKind::Effect(SideEffect::TapePush { tape, value }) => {
                self.code.push(kind.clone());
                if let Some(shadow) = self.shadows.get(tape).copied() {
                    let value = self.dot_or_zero(*value);
                    self.code.tape_push(shadow, value);
                }
            }
            InstKind::Effect(SideEffect::TapePop { dst, tape }) => {
                self.code.push(kind.clone());
                let shadow = self.shadows.get(tape).copied();
                match (self.of[*dst], shadow) {
                    (Some(dot), Some(shadow)) => self.code.tape_pop(dot, shadow),
                    (Some(dot), None) => self.code.set_zero(dot),
                    (None, Some(shadow)) => {
                        let unused = self.code.fresh(self.func.vars[*dst].ty.clone());
                        self.code.tape_pop(unused, shadow);
                    }
                    (None, None) => {}
                }
            }
            _ => self.code.push(kind.clone()),
        }
    }

    fn prim(&mut self, dst: VarId, dot: VarId, prim: Prim, args: &[Operand]) {
        let carries = activity::carries(prim);
        let tangents: Vec<Option<Operand>> = args.iter().map(|a| self.dot(*a).filter(|_| carries)).collect();
        let ty = self.func.vars[dst].ty.clone();
        // an element of an array that is changed in place: so is its tangent
        if prim.changes_part() && args[0] == Operand::Var(dst) {
            let part = self.dot_or_zero(args[1]);
            let rest: Vec<Operand> = [Operand::Var(dot), part].into_iter().chain(args[2..].iter().copied()).collect();
            self.code.set(dot, prim, &rest);
            self.code.set(dst, prim, args);
            return;
        }
        let itself = args.contains(&Operand::Var(dst));
        let value = if itself { self.code.fresh(ty.clone()) } else { dst };
        self.code.set(value, prim, args);
        // tangents of zero come from wherever a direction has zeros
        let site = Site { prim, args, result: Operand::Var(value), ty: &ty, care: Care::Careful };
        match tangent(&mut self.code, site, &tangents) {
            Some(t) => self.code.assign(dot, t),
            None => self.code.set_zero(dot),
        }
        if itself {
            self.code.set(dst, Prim::Copy, &[Operand::Var(value)]);
        }
    }

    /// A call, and what follows it; blocks made for that are numbered from `count` on.
    fn call(&mut self, term: &Terminator, rule: &ForwardCall, count: usize, after: &mut Vec<Block>) -> Terminator {
        let Terminator::Call { func, args, dsts, next, loc, attempt } = term else { unreachable!("a call") };
        let block = |after: &Vec<Block>| BlockId::new(count + after.len());
        // tangents of results that do not vary here although their variables do
        let zeros = |this: &mut Self, set: &[VarId]| {
            for dst in dsts {
                if let Some(dot) = this.of[*dst].filter(|d| !set.contains(d)) {
                    this.code.set_zero(dot);
                }
            }
        };
        match rule {
            ForwardCall::Inactive => {
                if !dsts.iter().any(|d| self.of[*d].is_some()) {
                    return term.clone();
                }
                let before = std::mem::take(&mut self.code.insts);
                zeros(self, &[]);
                let insts = std::mem::replace(&mut self.code.insts, before);
                let joint = block(after);
                after.push(Block { insts, term: Terminator::Jump(*next), loc: loc.clone() });
                Terminator::Call {
                    func: *func,
                    args: args.clone(),
                    dsts: dsts.clone(),
                    next: joint,
                    loc: loc.clone(),
                    attempt: *attempt,
                }
            }
            ForwardCall::With { func, mask, results } => {
                let mut passed = args.clone();
                for (arg, _) in args.iter().zip(mask).filter(|(_, varies)| **varies) {
                    let dot = self.dot_or_zero(*arg);
                    passed.push(dot);
                }
                let mut set = Vec::new();
                for (dst, _) in dsts.iter().zip(results).filter(|(_, varies)| **varies) {
                    set.push(match self.of[*dst] {
                        Some(dot) => dot,
                        None => self.code.fresh(self.func.vars[*dst].ty.clone()),
                    });
                }
                let mut all = dsts.clone();
                all.extend(&set);
                let before = std::mem::take(&mut self.code.insts);
                zeros(self, &set);
                let insts = std::mem::replace(&mut self.code.insts, before);
                let mut to = *next;
                if !insts.is_empty() {
                    to = block(after);
                    after.push(Block { insts, term: Terminator::Jump(*next), loc: loc.clone() });
                }
                Terminator::Call { func: *func, args: passed, dsts: all, next: to, loc: loc.clone(), attempt: *attempt }
            }
            ForwardCall::Rule { func: rule, mask } => {
                // the rule gets the arguments as they are before the call
                let mut passed: Vec<Operand> = Vec::new();
                for arg in args {
                    let is_set = arg.var().is_some_and(|v| dsts.contains(&v));
                    passed.push(if is_set { self.code.prim(Prim::Copy, &[*arg]) } else { *arg });
                }
                for (arg, _) in args.iter().zip(mask).filter(|(_, ruled)| **ruled) {
                    let dot = self.dot_or_zero(*arg);
                    passed.push(dot);
                }
                let mut set = Vec::new();
                for dst in dsts.iter().filter(|d| self.func.vars[**d].ty.dtype == DType::Real) {
                    set.push(match self.of[*dst] {
                        Some(dot) => dot,
                        None => self.code.fresh(self.func.vars[*dst].ty.clone()),
                    });
                }
                let second = block(after);
                let ruled = Terminator::Call {
                    func: *rule,
                    args: passed,
                    dsts: set,
                    next: *next,
                    loc: loc.clone(),
                    attempt: *attempt,
                };
                after.push(Block { insts: Vec::new(), term: ruled, loc: loc.clone() });
                Terminator::Call {
                    func: *func,
                    args: args.clone(),
                    dsts: dsts.clone(),
                    next: second,
                    loc: loc.clone(),
                    attempt: *attempt,
                }
            }
        }
    }
}
