//! How much a variable of a CFG program may differ between lanes, and why: const ⊑ shared ⊑ region ⊑ varying.
//!
//! A variable is no more than *shared* when all its values come from constants and shared values, by primitives that do
//! not draw, and where several of them meet, what decides which one it is is shared too. Where they meet at the start
//! of a loop the value changes from turn to turn, and lanes may stand at different turns. Such a variable is *region*,
//! equal for the lanes inside one execution of a region, if nothing in the loop parts the lanes (no branch that varies,
//! no call). Otherwise it is *varying*, though it may hold the same number in every lane's history. What a lane brings
//! along (its inputs, draws, tapes) varies, and so does the parameter of a function that is called with different
//! values. This is a fixed point over loops, calls and recursion.
//!
//! `autobatch dump --stage cfg --explain` prints the variance of each variable with the chain of what made it vary:
//! instructions, branches, loops, calls, with their lines.

mod explain;

pub use explain::print_explained;

use std::collections::BTreeSet;

use super::dominance::Dominance;
use super::liveness::live_in;
use crate::base::{Id, IdVec, Loc};
use crate::cfg::{BlockId, Func, FuncId, InstKind, Operand, Program, SharedSource, SideEffect, Terminator, VarId};
use crate::prim::{Effect, Prim};

/// How much a value may differ between lanes, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variance {
    /// Known when the program is compiled.
    Const,
    /// The same for all lanes for ever.
    Shared,
    /// Equal for the lanes inside one execution of a region.
    Region,
    /// May differ from lane to lane.
    Varying,
}

impl std::fmt::Display for Variance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Variance::Const => "const",
            Variance::Shared => "shared",
            Variance::Region => "region",
            Variance::Varying => "varying",
        })
    }
}

/// A variable of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FuncVar {
    /// Its function.
    pub func: FuncId,
    /// The variable.
    pub var: VarId,
}

/// What raised a variable to its variance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It is not set, or to constants only.
    None,
    /// An instruction computes it from a shared value.
    Shared(Loc),
    /// A lane brings it along.
    LaneInput,
    /// A primitive draws it.
    Draw(Prim, Loc),
    /// It comes off a tape.
    Tape(Loc),
    /// It is what an attempt gives, which may trap in some lanes.
    Attempt(Loc),
    /// An instruction computes it from this operand.
    Operand(FuncVar, Loc),
    /// A branch on this operand decides which value it has.
    Branch(Option<FuncVar>, Loc),
    /// It changes from turn to turn of a loop.
    Turns(Loc),
    /// It changes from turn to turn of a loop (the first location) in which a call (the second) parts the lanes.
    Call(Loc, Loc),
    /// It changes in a cycle that has no single start.
    Cycle(Loc),
    /// The function is called with different values at these places.
    Calls(Loc, Loc),
    /// A call passes this operand.
    Argument(Option<FuncVar>, Loc),
    /// A call gives it: this is what the callee returns.
    Result(Option<FuncVar>, Loc),
}

/// The variance of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// How much it may differ between lanes.
    pub variance: Variance,
    /// What made it so.
    pub reason: Reason,
}

/// The variance of every variable of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Variances {
    vars: IdVec<FuncId, IdVec<VarId, Found>>,
    results: IdVec<FuncId, Vec<(Variance, Option<FuncVar>)>>,
}

/// A place where several values of a variable meet.
struct Merge {
    var: VarId,
    /// The blocks whose branches decide which one it is.
    deciding: BTreeSet<BlockId>,
    /// If it is the start of a loop: its location, and that of a call in it.
    turns: Option<(Loc, Option<Loc>)>,
    /// If it is in a cycle without a single start: its location.
    tangled: Option<Loc>,
}

/// What does not change while the fixed point is sought.
struct Facts {
    merges: IdVec<FuncId, Vec<Merge>>,
    /// The branches that decide where a function ends, if it ends at several places.
    ends: IdVec<FuncId, BTreeSet<BlockId>>,
    /// The calls of each function: caller, operands, place.
    calls: IdVec<FuncId, Vec<(FuncId, Vec<Operand>, Loc)>>,
}

impl Facts {
    fn of(program: &Program) -> Self {
        let mut calls: IdVec<FuncId, Vec<(FuncId, Vec<Operand>, Loc)>> = IdVec::filled(Vec::new(), program.funcs.len());
        let (mut merges, mut ends) = (IdVec::new(), IdVec::new());
        for (id, func) in program.funcs.iter() {
            for block in func.blocks.values() {
                if let Terminator::Call { func, args, loc, .. } | Terminator::TailCall { func, args, loc } = &block.term
                {
                    calls[*func].push((id, args.clone(), loc.clone()));
                }
            }
            let dominance = Dominance::of(func);
            let last = func.blocks.iter().filter(|(_, b)| b.term.successors().is_empty()).map(|(id, _)| id);
            let last: Vec<BlockId> = last.collect();
            ends.push(match last[..] {
                [] | [_] => BTreeSet::new(),
                _ => last.iter().flat_map(|b| dominance.deciding_to_run(*b)).collect(),
            });
            merges.push(merges_of(func, &dominance));
        }
        Self { merges, ends, calls }
    }
}

fn merges_of(func: &Func, dominance: &Dominance) -> Vec<Merge> {
    let mut set: IdVec<VarId, Vec<BlockId>> = IdVec::filled(Vec::new(), func.vars.len());
    func.params.iter().for_each(|p| set[*p].push(BlockId::new(0)));
    for (id, block) in func.blocks.iter().filter(|(id, _)| dominance.is_reached(*id)) {
        block.insts.iter().filter_map(|i| i.kind.dst()).for_each(|v| set[v].push(id));
        block.term.dsts().iter().for_each(|v| set[*v].push(id));
    }
    let live = live_in(func);
    let mut merges = Vec::new();
    for (var, blocks) in set.iter().filter(|(_, blocks)| blocks.len() > 1) {
        for block in dominance.merges(blocks).into_iter().filter(|b| live[*b].contains(var)) {
            let loc = &func.blocks[block].loc;
            let mut deciding = dominance.deciding(func, block);
            let turns = dominance.loop_at(block).map(|inside| {
                let call = inside.iter().find_map(|b| match &func.blocks[*b].term {
                    Terminator::Call { loc, .. } => Some(loc.clone()),
                    _ => None,
                });
                let branches = inside.iter().filter(|b| matches!(func.blocks[**b].term, Terminator::Branch(..)));
                deciding.extend(branches);
                (loc.clone(), call)
            });
            merges.push(Merge { var, deciding, turns, tangled: dominance.is_tangled(block).then(|| loc.clone()) });
        }
    }
    merges
}

/// The variance of a value and, if it is a variable, which.
type Level = (Variance, Option<FuncVar>);

impl Variances {
    /// Of a verified program.
    pub fn of(program: &Program) -> Self {
        let facts = Facts::of(program);
        let start = Found { variance: Variance::Const, reason: Reason::None };
        let mut all = Self {
            vars: program.funcs.values().map(|f| IdVec::filled(start.clone(), f.vars.len())).collect(),
            results: program.funcs.values().map(|f| vec![(Variance::Const, None); f.results.len()]).collect(),
        };
        let entry = &program.funcs[program.entry];
        for param in &entry.params {
            all.raise(program.entry, *param, Variance::Varying, Reason::LaneInput);
        }
        while program.funcs.ids().fold(false, |changed, id| all.visit(program, &facts, id) | changed) {}
        all
    }

    /// The variance of a variable.
    pub fn get(&self, func: FuncId, var: VarId) -> &Found {
        &self.vars[func][var]
    }

    fn raise(&mut self, func: FuncId, var: VarId, variance: Variance, reason: Reason) -> bool {
        let found = &mut self.vars[func][var];
        let higher = variance > found.variance;
        if higher {
            *found = Found { variance, reason };
        }
        higher
    }

    fn level(&self, program: &Program, func: FuncId, operand: Operand) -> Level {
        match operand {
            Operand::Var(var) => (self.vars[func][var].variance, Some(FuncVar { func, var })),
            Operand::Shared(s) => match program.shared[s].source {
                SharedSource::Constant(_) => (Variance::Const, None),
                _ => (Variance::Shared, None),
            },
            Operand::Const(_) => (Variance::Const, None),
        }
    }

    /// Raises what the code of a function says; whether something rose.
    fn visit(&mut self, program: &Program, facts: &Facts, id: FuncId) -> bool {
        let func = &program.funcs[id];
        let mut changed = self.parameters(program, facts, id);
        for block in func.blocks.values() {
            for inst in &block.insts {
                let loc = || inst.loc.clone();
                match &inst.kind {
                    InstKind::Prim { dst, prim, args } => {
                        if prim.effect(&types(program, func, args)) == Effect::Random {
                            changed |= self.raise(id, *dst, Variance::Varying, Reason::Draw(*prim, loc()));
                        }
                        for arg in args {
                            let (variance, place) = self.level(program, id, *arg);
                            let reason = match place {
                                Some(place) => Reason::Operand(place, loc()),
                                None => Reason::Shared(loc()),
                            };
                            changed |= self.raise(id, *dst, variance, reason);
                        }
                    }
                    InstKind::Effect(SideEffect::TapePop { dst, .. }) => {
                        changed |= self.raise(id, *dst, Variance::Varying, Reason::Tape(loc()));
                    }
                    _ => {}
                }
            }
            if let Terminator::Call { func: callee, dsts, loc, attempt, .. } = &block.term {
                for (i, dst) in dsts.iter().enumerate() {
                    let (variance, place) = self.results[*callee][i];
                    changed |= match attempt {
                        true => self.raise(id, *dst, Variance::Varying, Reason::Attempt(loc.clone())),
                        false => self.raise(id, *dst, outside(variance), Reason::Result(place, loc.clone())),
                    };
                }
            }
        }
        for merge in &facts.merges[id] {
            changed |= self.merge(program, id, merge);
        }
        changed | self.ends(program, facts, id)
    }

    fn merge(&mut self, program: &Program, id: FuncId, merge: &Merge) -> bool {
        let blocks = &program.funcs[id].blocks;
        let mut changed = false;
        if let Some(loc) = &merge.tangled {
            changed |= self.raise(id, merge.var, Variance::Varying, Reason::Cycle(loc.clone()));
        }
        for block in &merge.deciding {
            let Terminator::Branch(cond, ..) = blocks[*block].term else { continue };
            let (variance, place) = self.level(program, id, cond);
            changed |= self.raise(id, merge.var, variance, Reason::Branch(place, branch_loc(program, id, *block)));
        }
        if let Some((loc, call)) = &merge.turns {
            changed |= match call {
                Some(call) => self.raise(id, merge.var, Variance::Varying, Reason::Call(loc.clone(), call.clone())),
                None => self.raise(id, merge.var, Variance::Region, Reason::Turns(loc.clone())),
            };
        }
        changed
    }

    /// A parameter is what all calls pass. Passing it on unchanged says nothing.
    fn parameters(&mut self, program: &Program, facts: &Facts, id: FuncId) -> bool {
        let mut changed = false;
        for (i, param) in program.funcs[id].params.iter().enumerate() {
            let own = |caller: FuncId, operand: Operand| caller == id && operand == Operand::Var(*param);
            let calls = facts.calls[id].iter().map(|(caller, args, loc)| (*caller, args[i], loc));
            let mut calls = calls.filter(|(caller, operand, _)| !own(*caller, *operand));
            let Some((caller, operand, loc)) = calls.next() else { continue };
            let same = |other: Operand| operand == other && operand.var().is_none();
            let other = calls.find(|(_, other, _)| !same(*other)).map(|(_, _, loc)| loc.clone());
            let (variance, place) = self.level(program, caller, operand);
            changed |= self.raise(id, *param, outside(variance), Reason::Argument(place, loc.clone()));
            if let Some(other) = other {
                changed |= self.raise(id, *param, Variance::Varying, Reason::Calls(loc.clone(), other));
            }
        }
        changed
    }

    /// What a function gives: what it returns, and which return it is.
    fn ends(&mut self, program: &Program, facts: &Facts, id: FuncId) -> bool {
        let func = &program.funcs[id];
        let mut levels = vec![(Variance::Const, None); func.results.len()];
        let rise = |level: &mut Level, to: Level| {
            if to.0 > level.0 {
                *level = to;
            }
        };
        for block in func.blocks.values() {
            match &block.term {
                Terminator::Return(values) => {
                    let values = values.iter().map(|v| self.level(program, id, *v));
                    levels.iter_mut().zip(values).for_each(|(level, to)| rise(level, to));
                }
                Terminator::TailCall { func, .. } => {
                    levels.iter_mut().zip(&self.results[*func]).for_each(|(level, to)| rise(level, *to));
                }
                _ => {}
            }
        }
        for block in &facts.ends[id] {
            if let Terminator::Branch(cond, ..) = func.blocks[*block].term {
                let to = self.level(program, id, cond);
                levels.iter_mut().for_each(|level| rise(level, to));
            }
        }
        let mut changed = false;
        for (known, now) in self.results[id].iter_mut().zip(levels) {
            if now.0 > known.0 {
                *known = now;
                changed = true;
            }
        }
        changed
    }
}

/// Outside of the function whose region it is a value is one that varies.
fn outside(variance: Variance) -> Variance {
    if variance == Variance::Region { Variance::Varying } else { variance }
}

fn types(program: &Program, func: &Func, args: &[Operand]) -> Vec<crate::types::Type> {
    args.iter().map(|a| program.operand_type(func, *a)).collect()
}

/// Where the condition of a branch is computed, or else where its block stands.
fn branch_loc(program: &Program, func: FuncId, block: BlockId) -> Loc {
    let block = &program.funcs[func].blocks[block];
    block.insts.last().map_or(&block.loc, |i| &i.loc).clone()
}
