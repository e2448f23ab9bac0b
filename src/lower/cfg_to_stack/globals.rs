//! The global variables of a stack program: one for each variable of each function and one for each result of a function,
//! and which of them are one and the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::components::components;
use crate::base::{Id, IdSet, IdVec, Names};
use crate::cfg::{self, FuncId, Program, Terminator};
use crate::stack::{StorageClass, Var, VarId};

/// Where the variables and results of functions live.
pub(super) struct Globals {
    /// The variables, all registers at first.
    pub(super) vars: IdVec<VarId, Var>,
    /// For each function that can be reached, in program order: its variables, by position.
    locals: BTreeMap<FuncId, Vec<VarId>>,
    results: BTreeMap<FuncId, Vec<VarId>>,
    /// Parameters of recursive functions that no recursive call writes.
    pub(super) passed_on: BTreeSet<VarId>,
}

/// A parameter of a function, by position.
type Param = (FuncId, usize);

impl Globals {
    pub(super) fn of(program: &Program) -> Self {
        let mut globals =
            Self { vars: IdVec::new(), locals: BTreeMap::new(), results: BTreeMap::new(), passed_on: BTreeSet::new() };
        let functions = reachable(program);
        let mut names = Names::default();
        let merged = merged_params(program);
        let mut params: BTreeMap<Param, VarId> = BTreeMap::new();
        for f in functions.iter() {
            let func = &program.funcs[f];
            let mut locals = Vec::new();
            let places: BTreeMap<cfg::VarId, usize> = func.params.iter().enumerate().map(|(i, p)| (*p, i)).collect();
            for (v, var) in func.vars.iter() {
                let class = places.get(&v).and_then(|i| merged.get(&(f, *i)));
                let global = match class.and_then(|c| params.get(c)) {
                    Some(global) => *global,
                    None => globals.add(&mut names, &func.name, &var.name, &var.ty),
                };
                if let Some(class) = class {
                    params.insert(*class, global);
                    globals.passed_on.insert(global);
                }
                locals.push(global);
            }
            globals.locals.insert(f, locals);
        }
        globals.add_results(program, &functions, &mut names);
        globals
    }

    /// The functions that can be reached, in program order.
    pub(super) fn functions(&self) -> impl Iterator<Item = FuncId> + '_ {
        self.locals.keys().copied()
    }
    /// The global of a variable.
    pub(super) fn var(&self, func: FuncId, var: cfg::VarId) -> VarId {
        self.locals[&func][var.index()]
    }
    /// The globals of the results.
    pub(super) fn results(&self, func: FuncId) -> &[VarId] {
        &self.results[&func]
    }

    fn add(&mut self, names: &mut Names, func: &str, name: &str, ty: &crate::types::Type) -> VarId {
        self.vars.push(Var {
            name: names.unique_from(&format!("{func}.{name}"), ".", 2),
            ty: ty.clone(),
            class: StorageClass::Register,
            uniform: false,
            why: String::new(),
        })
    }

    /// Functions that end by calling one another share their result variables.
    fn add_results(&mut self, program: &Program, functions: &IdSet<FuncId>, names: &mut Names) {
        let mut leader: IdVec<FuncId, FuncId> = program.funcs.ids().collect();
        for f in functions.iter() {
            for block in program.funcs[f].blocks.values() {
                if let Terminator::TailCall { func, .. } = block.term {
                    let (a, b) = (find(&leader, f), find(&leader, func));
                    leader[a.max(b)] = a.min(b);
                }
            }
        }
        for f in functions.iter() {
            let first = find(&leader, f);
            let results = match self.results.get(&first) {
                Some(results) => results.clone(),
                None => {
                    let func = &program.funcs[f];
                    let name = |i| match i {
                        0 => "result".to_owned(),
                        i => format!("result.{i}"),
                    };
                    (func.results.iter().enumerate()).map(|(i, ty)| self.add(names, &func.name, &name(i), ty)).collect()
                }
            };
            self.results.insert(first, results.clone());
            self.results.insert(f, results);
        }
    }
}

fn find(leader: &IdVec<FuncId, FuncId>, mut f: FuncId) -> FuncId {
    while leader[f] != f {
        f = leader[f];
    }
    f
}

/// The calls and tail calls of a function: the callee and the operands for its parameters.
pub(super) fn calls(func: &cfg::Func) -> impl Iterator<Item = (FuncId, &[cfg::Operand])> {
    func.blocks.values().filter_map(|block| match &block.term {
        Terminator::Call { func, args, .. } | Terminator::TailCall { func, args, .. } => Some((*func, args.as_slice())),
        _ => None,
    })
}

fn reachable(program: &Program) -> IdSet<FuncId> {
    let mut seen = IdSet::new(program.funcs.len());
    let mut open = vec![program.entry];
    seen.insert(program.entry);
    while let Some(f) = open.pop() {
        for (callee, _) in calls(&program.funcs[f]) {
            if seen.insert(callee) {
                open.push(callee);
            }
        }
    }
    seen
}

/// The parameters that recursion passes on unchanged: each with the parameter that stands for all that are the same.
///
/// While functions call one another, such a parameter has one value in all their activations, so that one variable will
/// do for all of them and no call among them writes it.
fn merged_params(program: &Program) -> BTreeMap<Param, Param> {
    let successors = |f: usize| calls(&program.funcs[FuncId::new(f)]).map(|(callee, _)| callee.index()).collect();
    let mut merged = BTreeMap::new();
    for component in components(program.funcs.len(), successors) {
        let members: BTreeSet<FuncId> = component.into_iter().map(FuncId::new).collect();
        merge_in_component(program, &members, &mut merged);
    }
    merged
}

/// An operand of a call inside a component, where it is a parameter of the caller, and the parameter that it sets.
type Pass = (Option<Param>, Param);

fn merge_in_component(program: &Program, members: &BTreeSet<FuncId>, merged: &mut BTreeMap<Param, Param>) {
    let mut passes: Vec<Pass> = Vec::new();
    for f in members {
        let func = &program.funcs[*f];
        for (callee, args) in calls(func).filter(|(callee, _)| members.contains(callee)) {
            for (i, arg) in args.iter().enumerate() {
                let from = arg.var().and_then(|v| func.params.iter().position(|p| *p == v));
                passes.push((from.map(|k| (*f, k)), (callee, i)));
            }
        }
    }
    if passes.is_empty() {
        return;
    }
    let mut candidates = unwritten_params(program, members);
    loop {
        keep_passed_on(&passes, &mut candidates);
        let classes = classes(&passes, &candidates);
        let conflicts = conflicts(&classes);
        if conflicts.is_empty() {
            merged.extend(classes);
            return;
        }
        candidates.retain(|p| !conflicts.contains(&classes[p]));
    }
}

/// The parameters that no instruction of their function writes.
fn unwritten_params(program: &Program, members: &BTreeSet<FuncId>) -> BTreeSet<Param> {
    let mut params = BTreeSet::new();
    for f in members {
        let func = &program.funcs[*f];
        let mut written = IdSet::new(func.vars.len());
        for block in func.blocks.values() {
            for inst in &block.insts {
                if let Some(dst) = inst.kind.dst() {
                    written.insert(dst);
                }
            }
            if let Terminator::Call { dsts, .. } = &block.term {
                dsts.iter().for_each(|v| {
                    written.insert(*v);
                });
            }
        }
        params.extend((func.params.iter().enumerate()).filter(|(_, v)| !written.contains(**v)).map(|(i, _)| (*f, i)));
    }
    params
}

/// Drops the candidates that some call sets to anything but another candidate.
fn keep_passed_on(passes: &[Pass], candidates: &mut BTreeSet<Param>) {
    loop {
        let before = candidates.len();
        for (from, to) in passes {
            if from.is_none_or(|from| !candidates.contains(&from)) {
                candidates.remove(to);
            }
        }
        if candidates.len() == before {
            return;
        }
    }
}

/// The candidates, each with the least one that it is passed on from or to.
fn classes(passes: &[Pass], candidates: &BTreeSet<Param>) -> BTreeMap<Param, Param> {
    let mut class: BTreeMap<Param, Param> = candidates.iter().map(|p| (*p, *p)).collect();
    loop {
        let mut changed = false;
        for (from, to) in passes {
            let Some(from) = from.filter(|_| candidates.contains(to)) else {
                continue;
            };
            let least = class[&from].min(class[to]);
            for p in [from, *to] {
                changed |= class.insert(p, least) != Some(least);
            }
        }
        if !changed {
            return class;
        }
    }
}

/// The classes that hold two parameters of one function.
fn conflicts(classes: &BTreeMap<Param, Param>) -> BTreeSet<Param> {
    let mut seen = BTreeSet::new();
    classes.iter().filter(|(param, class)| !seen.insert((param.0, **class))).map(|(_, class)| *class).collect()
}
