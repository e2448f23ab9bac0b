//! Reverse mode: the functions that the two sweeps of a function stand in, and the forward sweep, which saves what the
//! reverse sweep needs.
//!
//! The two sweeps of the function that a derivative is asked of stand in one function, so that what is not set again is
//! still in its variables. A function that is called and stays a call gets two: one that also leaves what its frame
//! holds on tapes, and one that takes it from there.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::care::Care;
use super::code::{Code, int};
use super::differentiation::{CallRule, Differentiation};
use super::given::Given;
use super::graph::Graph;
use super::origins::Origin;
use super::prepare::{name_all, set_all};
use super::record::{Record, Save, Subject, Tapes, record};
use super::reverse::Layout;
use super::{DerivativeError, activity::Key};
use crate::base::{Id, IdSet, IdVec, Loc};
use crate::cfg::trim::{drop_unreachable_blocks, drop_unused_variables};
use crate::cfg::{
    Block, BlockId, Func, FuncId, InstKind, Operand, Program, SideEffect, TapeId, Terminator, Var, VarId,
};
use crate::prim::Prim;
use crate::types::{DType, Type};

/// A function while its sweeps are made.
pub(super) struct Sweeps<'a> {
    pub(super) program: &'a Program,
    pub(super) func: Func,
    pub(super) graph: Graph,
    pub(super) record: Record,
    /// By block that ends with a call.
    pub(super) calls: BTreeMap<BlockId, CallRule>,
    /// What the reverse sweep of the callee is given, by block that ends with such a call.
    pub(super) given: BTreeMap<BlockId, Given>,
    /// What holds the cotangent of each active variable.
    pub(super) of: IdVec<VarId, Option<VarId>>,
    /// The variables of the function, then those that hold cotangents.
    pub(super) vars: IdVec<VarId, Var>,
    /// What takes the place of each tape of the function's own in the reverse sweep.
    pub(super) shadows: BTreeMap<TapeId, TapeId>,
    /// For each parameter, whether it varies.
    pub(super) mask: Vec<bool>,
    /// How careful to be with the cotangents of the results.
    pub(super) seeds: Care,
}

/// A function before its sweeps are made.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    pub(super) func: Func,
    graph: Graph,
    /// By block that ends with a call.
    pub(super) calls: BTreeMap<BlockId, CallRule>,
    /// What holds the cotangent of each active variable.
    of: IdVec<VarId, Option<VarId>>,
    /// The variables of the function, then those that hold cotangents.
    pub(super) vars: IdVec<VarId, Var>,
}

impl Outline {
    /// What is recorded for its sweeps, as two functions where it is called as the function `split`.
    pub(super) fn with_subject<T>(
        &self,
        all: &Differentiation<'_>,
        split: Option<FuncId>,
        analyse: impl FnOnce(&Subject<'_>) -> T,
    ) -> T {
        let rule = |block: BlockId| self.calls.get(&block);
        let reads_arg = |block: BlockId, k: usize| match rule(block) {
            Some(CallRule::Again { .. }) => true,
            Some(CallRule::Pair { key, .. }) => all.given[key].values[k],
            Some(CallRule::Inactive) | None => false,
        };
        let mut given = IdSet::new(self.func.vars.len());
        if let Some(func) = split {
            self.func.params.iter().zip(all.passed(func)).filter(|(_, passed)| **passed).for_each(|(p, _)| {
                given.insert(*p);
            });
        }
        analyse(&Subject {
            program: all.program,
            func: &self.func,
            graph: &self.graph,
            of: &self.of,
            reads_arg: &reads_arg,
            restores_late: &|block| matches!(rule(block), Some(CallRule::Pair { .. })),
            given,
            split: split.is_some(),
        })
    }
}

impl<'a> Differentiation<'a> {
    /// The function that stands for a reverse derivative: parameters and the cotangents of all real results to results
    /// and the cotangents of the parameters of the key. `seeds`: how careful to be with those of the results; `silent`:
    /// a second run, which must not print or emit again.
    pub(super) fn joint(&mut self, key: &Key, name: &str, seeds: Care, silent: bool) -> Result<Func, DerivativeError> {
        let sweeps = self.sweeps(key, seeds, false)?;
        Ok(sweeps.joint(name, silent))
    }

    /// The two sweeps of a function that is called.
    pub(super) fn split(&mut self, key: &Key, names: [String; 2]) -> Result<[Func; 2], DerivativeError> {
        let results = self.activity.results(key);
        let sweeps = self.sweeps(key, Care::Careful, true)?;
        let [forward, reverse] = names;
        Ok([sweeps.forward_func(&forward), sweeps.reverse_func(&reverse, &results, &self.given[key])])
    }

    fn sweeps(&mut self, key: &Key, seeds: Care, split: bool) -> Result<Sweeps<'a>, DerivativeError> {
        let outline = match self.outlines.get(key) {
            Some(outline) => Rc::clone(outline),
            None => self.outline(key)?,
        };
        self.find_given(outline.calls.values())?;
        let shadows = self.shadows(&outline.func);
        let name = outline.func.name.clone();
        let (mut tapes, mut names) = (std::mem::take(&mut self.tapes), std::mem::take(&mut self.tape_names));
        let record = outline.with_subject(self, split.then_some(key.0), |subject| {
            record(subject, &outline.vars, &mut Tapes { made: &mut tapes, names: &mut names, func: &name })
        });
        (self.tapes, self.tape_names) = (tapes, names);
        let Outline { func, graph, calls, of, vars } = Rc::try_unwrap(outline).unwrap_or_else(|o| (*o).clone());
        let given = calls.iter().filter_map(|(id, rule)| match rule {
            CallRule::Pair { key, .. } => Some((*id, self.given[key].clone())),
            _ => None,
        });
        let given = given.collect();
        let mask = key.1.clone();
        Ok(Sweeps { program: self.program, func, graph, record, calls, given, of, vars, shadows, mask, seeds })
    }

    /// A function, what its calls become and the variables for its cotangents.
    pub(super) fn outline(&mut self, key: &Key) -> Result<Rc<Outline>, DerivativeError> {
        let (func, varied, active) = self.subject(key)?;
        let mut vars = func.vars.clone();
        let mut of: IdVec<VarId, Option<VarId>> = IdVec::filled(None, func.vars.len());
        for v in active.iter() {
            let var = &func.vars[v];
            of[v] = Some(vars.push(Var { name: format!("{}.bar", var.name), ty: var.ty.clone() }));
        }
        let mut calls = BTreeMap::new();
        for (id, block) in func.blocks.iter() {
            if let Terminator::Call { func: callee, args, dsts, loc, attempt, .. } = &block.term {
                let mask = args.iter().map(|a| a.var().is_some_and(|v| varied.contains(v))).collect();
                let needed = dsts.iter().any(|d| active.contains(*d));
                calls.insert(id, self.reverse_of_call((*callee, mask), needed, *attempt, loc)?);
            }
        }
        let graph = Graph::new(&func);
        Ok(Rc::new(Outline { func, graph, calls, of, vars }))
    }
}

impl Sweeps<'_> {
    /// The block that returns, and what.
    pub(super) fn exit(&self) -> Option<(BlockId, &[Operand])> {
        self.func.blocks.iter().find_map(|(id, b)| match &b.term {
            Terminator::Return(values) => Some((id, &values[..])),
            _ => None,
        })
    }

    fn joint(&self, name: &str, silent: bool) -> Func {
        let mut code = Code::new(self.program, self.vars.clone(), self.func.loc.clone());
        let mut blocks = self.forward_blocks(&mut code, silent);
        let reals = self.func.results.iter().filter(|ty| ty.dtype == DType::Real);
        let cotangents: Vec<VarId> = reals.map(|ty| code.named("cotangent", ty.clone())).collect();
        let mut params = self.func.params.clone();
        params.extend(&cotangents);
        let wrt: Vec<VarId> = self.masked().collect();
        let mut results = self.func.results.clone();
        results.extend(wrt.iter().map(|p| self.func.vars[*p].ty.clone()));
        if let Some((exit, values)) = self.exit() {
            let layout = Layout::new(&self.func, blocks.len());
            // the reverse sweep takes variables back to what they were
            code.loc = blocks[exit].loc.clone();
            let kept: Vec<Operand> = values
                .iter()
                .map(|value| match value {
                    Operand::Var(_) => code.prim(Prim::Copy, &[*value]),
                    other => *other,
                })
                .collect();
            blocks[exit].insts.append(&mut code.insts);
            blocks[exit].term = Terminator::Jump(layout.start);
            let mut cotangents = cotangents.into_iter();
            let seeds: Vec<(Operand, VarId)> = values
                .iter()
                .zip(&self.func.results)
                .filter(|(_, ty)| ty.dtype == DType::Real)
                .map(|(value, _)| (*value, cotangents.next().expect("one for each real result")))
                .collect();
            self.reverse_blocks(&mut code, &mut blocks, &layout, Vec::new(), &seeds, &kept);
        }
        self.finish(name, params, results, code.vars, blocks)
    }

    fn forward_func(&self, name: &str) -> Func {
        let mut code = Code::new(self.program, self.func.vars.clone(), self.func.loc.clone());
        let mut blocks = self.forward_blocks(&mut code, false);
        if let Some((exit, _)) = self.exit() {
            code.loc = blocks[exit].loc.clone();
            for (v, tape) in &self.record.at_exit {
                code.tape_push(*tape, Operand::Var(*v));
            }
            blocks[exit].insts.append(&mut code.insts);
        }
        self.finish(name, self.func.params.clone(), self.func.results.clone(), code.vars, blocks)
    }

    fn reverse_func(&self, name: &str, varied: &[bool], given: &Given) -> Func {
        let mut code = Code::new(self.program, self.vars.clone(), self.func.loc.clone());
        let mut blocks = IdVec::new();
        let results: Vec<Type> = self.masked().map(|p| self.func.vars[p].ty.clone()).collect();
        let types = self.func.results.iter().zip(varied).filter(|(_, varies)| **varies);
        let mut params: Vec<VarId> = types.map(|(ty, _)| code.named("cotangent", ty.clone())).collect();
        let seeded = params.clone();
        let mut layout = Layout::new(&self.func, 0);
        params.extend(self.func.params.iter().zip(&given.values).filter(|(_, taken)| **taken).map(|(p, _)| *p));
        for (p, _) in self.func.params.iter().zip(&given.sums).filter(|(_, sum)| **sum) {
            let ty = self.func.vars[*p].ty.clone();
            let holder = self.of[*p].unwrap_or_else(|| code.named("cotangent", ty));
            layout.sums.insert(*p, holder);
            params.push(holder);
        }
        match self.exit() {
            Some((exit, values)) => {
                code.loc = self.func.blocks[exit].loc.clone();
                for (v, tape) in self.record.at_exit.iter().rev() {
                    code.tape_pop(*v, *tape);
                }
                let restored = std::mem::take(&mut code.insts);
                let varied = values.iter().zip(varied).filter(|(_, varies)| **varies);
                let seeds: Vec<(Operand, VarId)> = varied.map(|(v, _)| *v).zip(seeded).collect();
                self.reverse_blocks(&mut code, &mut blocks, &layout, restored, &seeds, &[]);
            }
            // never called: the forward sweep does not return
            None => {
                let (insts, loc) = (Vec::new(), self.func.loc.clone());
                blocks.push(Block { insts, term: Terminator::Jump(BlockId::new(0)), loc });
            }
        }
        self.finish(name, params, results, code.vars, blocks)
    }

    fn finish(
        &self,
        name: &str,
        params: Vec<VarId>,
        results: Vec<Type>,
        vars: IdVec<VarId, Var>,
        blocks: IdVec<BlockId, Block>,
    ) -> Func {
        let mut func = Func { name: name.to_owned(), params, results, vars, blocks, loc: self.func.loc.clone() };
        drop_unreachable_blocks(&mut func);
        set_all(self.program, &mut func);
        drop_unused_variables(&mut func);
        name_all(&mut func);
        func
    }

    /// The parameters that the derivative is with respect to.
    pub(super) fn masked(&self) -> impl Iterator<Item = VarId> + '_ {
        self.func.params.iter().zip(&self.mask).filter(|(_, wrt)| **wrt).map(|(p, _)| *p)
    }

    /// The forward sweep: the blocks of the function, which save what will be needed.
    fn forward_blocks(&self, code: &mut Code<'_>, silent: bool) -> IdVec<BlockId, Block> {
        let mut blocks = IdVec::new();
        for (id, block) in self.func.blocks.iter() {
            for (at, inst) in block.insts.iter().enumerate() {
                self.save(code, (id, at), &inst.loc);
                if !(silent && matches!(inst.kind, InstKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }))) {
                    code.insts.push(inst.clone());
                }
            }
            self.save(code, (id, block.insts.len()), &block.loc);
            code.loc = block.loc.clone();
            for (v, tape) in self.record.at_end.get(&id).into_iter().flatten() {
                code.tape_push(*tape, Operand::Var(*v));
            }
            for next in block.term.successors() {
                if let Origin::Tape(tape) = self.record.origins[next] {
                    let number = self.graph.preds[next].iter().position(|p| *p == id).expect("it leads there");
                    code.loc = block.loc.clone();
                    code.tape_push(tape, int(number as i64));
                }
            }
            let mut term = block.term.clone();
            if let (Terminator::Call { func, .. }, Some(CallRule::Pair { pair, .. })) = (&mut term, self.calls.get(&id))
            {
                *func = pair.forward;
            }
            blocks.push(Block { insts: std::mem::take(&mut code.insts), term, loc: block.loc.clone() });
        }
        blocks
    }

    fn save(&self, code: &mut Code<'_>, place: (BlockId, usize), loc: &Loc) {
        for (v, save) in self.record.saves.get(&place).into_iter().flatten() {
            code.loc = loc.clone();
            match save {
                Save::Invert => {}
                Save::Tape(tape) => code.tape_push(*tape, Operand::Var(*v)),
                Save::Element(tape) => {
                    let at = self.element(place);
                    let args: Vec<Operand> = [Operand::Var(*v)].into_iter().chain(at.iter().copied()).collect();
                    let old = code.prim(Prim::Index, &args);
                    code.tape_push(*tape, old);
                }
            }
        }
    }

    /// The indices of the element that an instruction sets.
    pub(super) fn element(&self, (block, at): (BlockId, usize)) -> &[Operand] {
        match &self.func.blocks[block].insts[at].kind {
            InstKind::Prim { args, .. } => &args[2..],
            _ => &[],
        }
    }
}
