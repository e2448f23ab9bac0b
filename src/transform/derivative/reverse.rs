//! Reverse mode: the forward sweep, which saves what the reverse sweep needs, and the reverse sweep.
//!
//! The two sweeps of the function that a derivative is asked of stand in one function, so that what is not set again is still
//! in its variables. A function that is called and stays a call gets two: one that also leaves what its frame holds on
//! tapes, and one that takes it from there.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::care::{self, Care, Cares};
use super::code::{Code, int, real};
use super::cotangent::{Cotangents, Known};
use super::differentiation::{CallRule, Differentiation};
use super::given::Given;
use super::graph::Graph;
use super::prepare::{name_all, set_all};
use super::record::{Origin, Record, Save, Subject, Tapes, record};
use super::tangent::Site;
use super::{DerivativeError, activity::Key};
use crate::analysis::worklist::forwards;
use crate::base::{Id, IdSet, IdVec, Loc, work};
use crate::cfg::{
    Block, BlockId, Func, FuncId, Inst, InstKind, Operand, Program, SideEffect, TapeId, Terminator, Var, VarId,
};
use crate::prim::Prim;
use crate::types::{DType, Type};

/// A function while its sweeps are made.
struct Sweeps<'a> {
    program: &'a Program,
    func: Func,
    graph: Graph,
    record: Record,
    /// By block that ends with a call.
    calls: BTreeMap<BlockId, CallRule>,
    /// What the reverse sweep of the callee is given, by block that ends with such a call.
    given: BTreeMap<BlockId, Given>,
    /// What holds the cotangent of each active variable.
    of: IdVec<VarId, Option<VarId>>,
    /// The variables of the function, then those that hold cotangents.
    vars: IdVec<VarId, Var>,
    /// What takes the place of each tape of the function's own in the reverse sweep.
    shadows: BTreeMap<TapeId, TapeId>,
    /// For each parameter, whether it varies.
    mask: Vec<bool>,
    /// How careful to be with the cotangents of the results.
    seeds: Care,
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

/// Where the blocks of a reverse sweep stand.
struct Layout {
    start: BlockId,
    of: IdVec<BlockId, BlockId>,
    /// What follows the reverse of a call.
    after: BTreeMap<BlockId, BlockId>,
    end: BlockId,
    /// The parameters whose cotangents the caller began, and what holds these.
    sums: BTreeMap<VarId, VarId>,
}

impl Layout {
    fn new(func: &Func, first: usize) -> Self {
        let start = BlockId::new(first);
        let n = func.blocks.len();
        let of: IdVec<BlockId, BlockId> = (0..n).map(|i| BlockId::new(first + 1 + i)).collect();
        let calls = func.blocks.iter().filter(|(_, b)| matches!(b.term, Terminator::Call { .. }));
        let after: BTreeMap<BlockId, BlockId> =
            calls.enumerate().map(|(i, (id, _))| (id, BlockId::new(first + 1 + n + i))).collect();
        let end = BlockId::new(first + 1 + n + after.len());
        Self { start, of, after, end, sums: BTreeMap::new() }
    }
}

/// The reverse of one block while it is made.
struct Reversed {
    /// Up to the reverse of the call that ends the block, if one does.
    call: Option<(Vec<Inst>, Terminator)>,
    /// The rest.
    insts: Vec<Inst>,
    /// What is known of cotangents, at its end.
    known: Known,
}

impl<'a> Differentiation<'a> {
    /// The function that stands for a reverse derivative: parameters and the cotangents of all real results to results and the
    /// cotangents of the parameters of the key. `seeds`: how careful to be with those of the results; `silent`: a second run,
    /// which must not print or emit again.
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
        let mut tapes = std::mem::take(&mut self.tapes);
        let record = outline.with_subject(self, split.then_some(key.0), |subject| {
            record(subject, &outline.vars, &mut Tapes::new(&mut tapes, &name))
        });
        self.tapes = tapes;
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
    fn exit(&self) -> Option<(BlockId, &[Operand])> {
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
        crate::transform::cfg::blocks::drop_unreachable_blocks(&mut func);
        set_all(self.program, &mut func);
        crate::transform::cfg::blocks::drop_unused_variables(&mut func);
        name_all(&mut func);
        func
    }

    /// The parameters that the derivative is with respect to.
    fn masked(&self) -> impl Iterator<Item = VarId> + '_ {
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
    fn element(&self, (block, at): (BlockId, usize)) -> &[Operand] {
        match &self.func.blocks[block].insts[at].kind {
            InstKind::Prim { args, .. } => &args[2..],
            _ => &[],
        }
    }

    /// Appends the reverse sweep. It starts with `before` and the cotangents in `seeds`, and ends with `kept` and the
    /// cotangents of the parameters.
    fn reverse_blocks(
        &self,
        code: &mut Code<'_>,
        blocks: &mut IdVec<BlockId, Block>,
        layout: &Layout,
        before: Vec<Inst>,
        seeds: &[(Operand, VarId)],
        kept: &[Operand],
    ) {
        let exit = self.exit().map_or(BlockId::new(0), |(exit, _)| exit);
        let mut zero = IdSet::new(self.func.vars.len());
        self.of.iter().filter(|(v, holder)| holder.is_some() && !layout.sums.contains_key(v)).for_each(|(v, _)| {
            zero.insert(v);
        });
        code.insts = before;
        code.loc = self.func.blocks[exit].loc.clone();
        let mut known = Known::zero(zero);
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut known };
        for (value, seed) in seeds {
            cotangents.add(*value, Operand::Var(*seed));
        }
        let at_start = self.zeros(code, layout, exit, &known.zero);
        let cares = self.cares(code, layout, &at_start, seeds);
        let empty = Block { insts: Vec::new(), term: Terminator::Jump(layout.start), loc: self.func.loc.clone() };
        let first = blocks.len();
        while blocks.len() <= layout.end.index() {
            blocks.push(empty.clone());
        }
        debug_assert_eq!(first, layout.start.index());
        blocks[layout.start].insts = std::mem::take(&mut code.insts);
        blocks[layout.start].term = Terminator::Jump(layout.of[exit]);
        for id in self.func.blocks.ids() {
            // a block from which the function never returns has no reverse
            let Some(zero) = &at_start[id] else { continue };
            let made = self.reverse_block(code, layout, id, zero.clone(), &cares);
            self.lead_on(code, blocks, layout, &at_start, (id, made));
        }
        // the end: cotangents of the parameters
        let mut known = Known::zero(self.reverse_end(code, layout, &at_start));
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut known };
        let mut values = kept.to_vec();
        for param in self.masked() {
            values.push(match (self.of[param], layout.sums.get(&param)) {
                (Some(holder), _) => {
                    cotangents.materialise(param);
                    Operand::Var(holder)
                }
                (None, Some(sum)) => Operand::Var(*sum),
                (None, None) => {
                    let ty = self.func.vars[param].ty.clone();
                    cotangents.code.zero(&ty)
                }
            });
        }
        blocks[layout.end].insts = std::mem::take(&mut code.insts);
        blocks[layout.end].term = Terminator::Return(values);
    }

    /// For each block, the variables whose cotangent is known to be zero when its reverse starts; nothing for blocks that the
    /// reverse sweep does not come to. The largest solution.
    fn zeros(
        &self,
        code: &mut Code<'_>,
        layout: &Layout,
        exit: BlockId,
        at_exit: &IdSet<VarId>,
    ) -> IdVec<BlockId, Option<IdSet<VarId>>> {
        let mut at_start: IdVec<BlockId, Option<IdSet<VarId>>> = IdVec::filled(None, self.func.blocks.len());
        at_start[exit] = Some(at_exit.clone());
        let before = std::mem::take(&mut code.insts);
        let mut scratch = Code::new(self.program, code.vars.clone(), code.loc.clone());
        let plain = self.plain();
        let order = forwards(&self.func).reversed();
        let mut open = order.none();
        open.add(exit.index());
        while let Some(id) = open.take().map(BlockId::new) {
            let Some(zero) = at_start[id].clone() else { continue };
            work::add(self.func.blocks[id].insts.len());
            let out = self.reverse_block(&mut scratch, layout, id, zero, &plain).known.zero;
            for pred in &self.graph.preds[id] {
                let changed = match &mut at_start[*pred] {
                    Some(zero) => zero.intersect_with(&out),
                    none => {
                        *none = Some(out.clone());
                        true
                    }
                };
                if changed {
                    open.add(pred.index());
                }
            }
        }
        code.insts = before;
        at_start
    }

    fn reverse_end(
        &self,
        code: &mut Code<'_>,
        layout: &Layout,
        at_start: &IdVec<BlockId, Option<IdSet<VarId>>>,
    ) -> IdSet<VarId> {
        let first = BlockId::new(0);
        let zero = at_start[first].clone().expect("the reverse sweep comes to the first block");
        let mut scratch = Code::new(self.program, code.vars.clone(), code.loc.clone());
        code.insts.clear();
        self.reverse_block(&mut scratch, layout, first, zero, &self.plain()).known.zero
    }

    /// What is known to be zero at the end of a block hangs on no care.
    fn plain(&self) -> Cares {
        IdVec::filled(Care::Plain, self.func.vars.len())
    }

    /// How careful to be with each cotangent.
    fn cares(
        &self,
        code: &Code<'_>,
        layout: &Layout,
        at_start: &IdVec<BlockId, Option<IdSet<VarId>>>,
        seeds: &[(Operand, VarId)],
    ) -> Cares {
        // zero on one of the ways that meet, and not on another: no use on that way
        let mut cut = IdSet::new(self.func.vars.len());
        let mut scratch = Code::new(self.program, code.vars.clone(), code.loc.clone());
        let plain = self.plain();
        let parts =
            |id: &BlockId| self.graph.preds[*id].iter().any(|pred| self.func.blocks[*pred].term.successors().len() > 1);
        for id in self.func.blocks.ids().filter(parts) {
            let Some(zero) = at_start[id].clone() else { continue };
            let out = self.reverse_block(&mut scratch, layout, id, zero, &plain).known.zero;
            scratch.insts.clear();
            for expected in self.graph.preds[id].iter().filter_map(|pred| at_start[*pred].as_ref()) {
                let mut unused = out.clone();
                unused.subtract(expected);
                cut.union_with(&unused);
            }
        }
        let seeds: Vec<(Operand, Care)> = seeds.iter().map(|(value, _)| (*value, self.seeds)).collect();
        care::of_reverse(&self.func, |v| self.of[v].is_some(), &seeds, &cut)
    }

    /// The reverse of one block.
    fn reverse_block(
        &self,
        code: &mut Code<'_>,
        layout: &Layout,
        id: BlockId,
        zero: IdSet<VarId>,
        cares: &Cares,
    ) -> Reversed {
        let block = &self.func.blocks[id];
        let mut done = IdSet::new(self.func.vars.len());
        let mut reversed = Reversed { call: None, insts: Vec::new(), known: Known::zero(zero) };
        code.loc = block.loc.clone();
        for (v, tape) in self.record.at_end.get(&id).into_iter().flatten().rev() {
            code.tape_pop(*v, *tape);
        }
        if let Terminator::Call { .. } = &block.term {
            self.reverse_call(code, layout, id, &mut done, (&mut reversed, cares));
        }
        for (at, inst) in block.insts.iter().enumerate().rev() {
            code.loc = inst.loc.clone();
            self.reverse_inst(code, (id, at), inst, &mut done, (&mut reversed.known, cares));
        }
        Cotangents { code, of: &self.of, known: &mut reversed.known }.flush();
        reversed.insts = std::mem::take(&mut code.insts);
        reversed
    }

    fn reverse_inst(
        &self,
        code: &mut Code<'_>,
        place: (BlockId, usize),
        inst: &Inst,
        done: &mut IdSet<VarId>,
        (known, cares): (&mut Known, &Cares),
    ) {
        match &inst.kind {
            InstKind::Prim { dst, prim, args } => {
                let active = self.of[*dst].is_some() && !known.zero.contains(*dst);
                let needs = &self.record.needs[place.0][place.1];
                let mut result = Operand::Var(*dst);
                if active && needs.result {
                    self.again(code, place.0, *dst, done);
                    if self.record.saves.contains_key(&place) {
                        result = code.prim(Prim::Copy, &[result]);
                    }
                }
                self.restore(code, place, done);
                if !active {
                    return;
                }
                needs.before.iter().for_each(|v| self.again(code, place.0, *v, done));
                let ty = self.func.vars[*dst].ty.clone();
                let site = Site { prim: *prim, args, result, ty: &ty, care: cares[*dst] };
                Cotangents { code, of: &self.of, known }.instruction(*dst, site);
            }
            InstKind::Effect(SideEffect::TapePush { tape, value }) => {
                if let Some(shadow) = self.shadows.get(tape) {
                    let part = code.fresh(code.ty(*value));
                    code.tape_pop(part, *shadow);
                    Cotangents { code, of: &self.of, known }.add(*value, Operand::Var(part));
                }
            }
            InstKind::Effect(SideEffect::TapePop { dst, tape }) => {
                self.restore(code, place, done);
                if let Some(shadow) = self.shadows.get(tape) {
                    let ty = self.func.vars[*dst].ty.clone();
                    let mut cotangents = Cotangents { code, of: &self.of, known };
                    let value = match cotangents.take_whole(*dst) {
                        Some(g) => g,
                        None => cotangents.code.zero(&ty),
                    };
                    code.tape_push(*shadow, value);
                }
            }
            InstKind::Effect(SideEffect::Assert { .. } | SideEffect::Print(_) | SideEffect::Emit { .. }) => {}
        }
    }

    /// Brings back the old values of what an instruction or a call set.
    fn restore(&self, code: &mut Code<'_>, place: (BlockId, usize), done: &mut IdSet<VarId>) {
        for (v, save) in self.record.saves.get(&place).into_iter().flatten().rev() {
            match save {
                Save::Tape(tape) => code.tape_pop(*v, *tape),
                Save::Invert => {
                    if let InstKind::Prim { prim, args, .. } = &self.func.blocks[place.0].insts[place.1].kind {
                        let back = if *prim == Prim::Add { Prim::Sub } else { Prim::Add };
                        code.set(*v, back, args);
                    }
                }
                Save::Element(tape) => {
                    let at = self.element(place);
                    at.iter().filter_map(|o| o.var()).for_each(|o| self.again(code, place.0, o, done));
                    let InstKind::Prim { args, .. } = &self.func.blocks[place.0].insts[place.1].kind else { continue };
                    let old = code.fresh(code.ty(args[1]));
                    code.tape_pop(old, *tape);
                    let args: Vec<Operand> =
                        [Operand::Var(*v), Operand::Var(old)].into_iter().chain(at.iter().copied()).collect();
                    code.set(*v, Prim::SetIndex, &args);
                }
            }
        }
    }

    /// Computes a variable again that is found that way, if that was not done yet in this block.
    fn again(&self, code: &mut Code<'_>, block: BlockId, v: VarId, done: &mut IdSet<VarId>) {
        let Some(at) = self.record.again.get(&v) else { return };
        if !done.insert(v) {
            return;
        }
        let inst = &self.func.blocks[block].insts[*at];
        inst.kind.for_each_operand(|o| {
            if let Operand::Var(o) = o {
                self.again(code, block, o, done);
            }
        });
        code.insts.push(inst.clone());
    }

    fn reverse_call(
        &self,
        code: &mut Code<'_>,
        layout: &Layout,
        id: BlockId,
        done: &mut IdSet<VarId>,
        (reversed, cares): (&mut Reversed, &Cares),
    ) {
        let block = &self.func.blocks[id];
        let Terminator::Call { args, dsts, loc, attempt, .. } = &block.term else { return };
        let place = (id, block.insts.len());
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut reversed.known };
        let taken: Vec<Option<Operand>> = dsts.iter().map(|d| cotangents.take_whole(*d)).collect();
        let rule = &self.calls[&id];
        // what was saved before the call lies below what a forward sweep that is called left on the same tapes
        let restored_after = matches!(rule, CallRule::Pair { .. });
        if !restored_after {
            self.restore(code, place, done);
        }
        let (func, mut passed, skip, mask) = match rule {
            CallRule::Inactive => {
                let insts = std::mem::take(&mut code.insts);
                reversed.call = Some((insts, Terminator::Jump(layout.after[&id])));
                return;
            }
            CallRule::Pair { pair, key, results } => {
                let mut passed = self.cotangents_of(code, dsts, &taken, |k| results[k]);
                let values = args.iter().zip(&self.given[&id].values).filter(|(_, taken)| **taken).map(|(arg, _)| *arg);
                values.clone().filter_map(|arg| arg.var()).for_each(|v| self.again(code, id, v, done));
                passed.extend(values);
                (pair.reverse, passed, 0, &key.1)
            }
            CallRule::Again { func, skip, mask } => {
                args.iter().filter_map(|a| a.var()).for_each(|v| self.again(code, id, v, done));
                let real = |k: usize| self.func.vars[dsts[k]].ty.dtype == DType::Real;
                let mut passed = args.clone();
                passed.extend(self.cotangents_of(code, dsts, &taken, real));
                (*func, passed, *skip, mask)
            }
        };
        // the user's rule may multiply a zero by what is no number; of a value that is not wanted, one that could not be
        // computed has no say
        let by_hand = skip == 0 && matches!(rule, CallRule::Again { .. });
        let careful = *attempt || by_hand && dsts.iter().any(|d| cares[*d] != Care::Plain);
        let some: Vec<Operand> = taken.iter().flatten().filter(|_| careful).map(|g| code.is_some(*g)).collect();
        let some = some.into_iter().reduce(|a, b| code.prim(Prim::Or, &[a, b]));
        let mut results: Vec<VarId> = Vec::new();
        for dst in &dsts[..skip] {
            let ty = self.func.vars[*dst].ty.clone();
            results.push(code.fresh(ty));
        }
        let mut parts: Vec<(Operand, VarId)> = Vec::new();
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut reversed.known };
        for (k, arg) in args.iter().enumerate().filter(|(k, _)| mask[*k]) {
            let sum = self.given.get(&id).map(|given| given.sums[k]);
            results.push(self.cotangent_of_arg(&mut cotangents, *arg, (sum, &results), (&mut passed, &mut parts)));
        }
        let insts = std::mem::take(&mut code.insts);
        let (next, loc) = (layout.after[&id], loc.clone());
        reversed.call =
            Some((insts, Terminator::Call { func, args: passed, dsts: results, next, loc, attempt: *attempt }));
        if restored_after {
            self.restore(code, place, done);
        }
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut reversed.known };
        for (arg, part) in parts {
            let part = Operand::Var(part);
            let part = match some {
                Some(some) => cotangents.code.prim(Prim::Select, &[some, part, real(0.0)]),
                None if *attempt => continue,
                None => part,
            };
            cotangents.add(arg, part);
        }
    }

    /// What the reverse of a call sets for an argument. `sum`: whether it takes the cotangent and adds to it, where the
    /// callee has sweeps of its own; `results` are those before. What it takes goes to `passed`, and what is to be
    /// added afterwards to `parts`.
    fn cotangent_of_arg(
        &self,
        cotangents: &mut Cotangents<'_, '_>,
        arg: Operand,
        (sum, results): (Option<bool>, &[VarId]),
        (passed, parts): (&mut Vec<Operand>, &mut Vec<(Operand, VarId)>),
    ) -> VarId {
        // an argument that stands twice in a call has one cotangent
        let holder = arg.var().and_then(|v| Some((v, self.of[v]?))).filter(|(_, holder)| !results.contains(holder));
        match (holder, sum) {
            (Some((v, holder)), Some(true)) => {
                cotangents.materialise(v);
                passed.push(Operand::Var(holder));
                return holder;
            }
            (Some((v, holder)), Some(false)) if cotangents.known.zero.contains(v) => {
                cotangents.known.zero.remove(v);
                return holder;
            }
            _ => {}
        }
        let ty = cotangents.code.ty(arg);
        if sum == Some(true) {
            let zero = cotangents.code.zero(&ty);
            passed.push(zero);
        }
        let part = cotangents.code.fresh(ty);
        parts.push((arg, part));
        part
    }

    /// The cotangents of some of the results of a call, zeros where they are known to be.
    fn cotangents_of(
        &self,
        code: &mut Code<'_>,
        dsts: &[VarId],
        taken: &[Option<Operand>],
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<Operand> {
        let mut found = Vec::new();
        for (k, dst) in dsts.iter().enumerate().filter(|(k, _)| wanted(*k)) {
            found.push(match taken[k] {
                Some(cotangent) => cotangent,
                None => {
                    let ty = self.func.vars[*dst].ty.clone();
                    code.zero(&ty)
                }
            });
        }
        found
    }

    /// Ends the reverse of a block: on to the reverse of the block that it was entered from.
    fn lead_on(
        &self,
        code: &mut Code<'_>,
        blocks: &mut IdVec<BlockId, Block>,
        layout: &Layout,
        at_start: &IdVec<BlockId, Option<IdSet<VarId>>>,
        (id, made): (BlockId, Reversed),
    ) {
        let loc = self.func.blocks[id].loc.clone();
        code.loc = loc.clone();
        code.insts = made.insts;
        let preds = &self.graph.preds[id];
        let mut known = made.known;
        let mut cotangents = Cotangents { code, of: &self.of, known: &mut known };
        // what is known to be zero here and not there is zero from now on
        let mut expected = IdSet::new(self.func.vars.len());
        for zero in preds.iter().filter_map(|p| at_start[*p].as_ref()) {
            let mut more = cotangents.known.zero.clone();
            more.subtract(zero);
            expected.union_with(&more);
        }
        expected.iter().for_each(|v| cotangents.materialise(v));
        let (term, more) = self.back(code, layout, id, blocks.next_id());
        let last = match made.call {
            Some((insts, term)) => {
                blocks[layout.of[id]] = Block { insts, term, loc: loc.clone() };
                layout.after[&id]
            }
            None => layout.of[id],
        };
        blocks[last] = Block { insts: std::mem::take(&mut code.insts), term, loc };
        more.into_iter().for_each(|block| {
            blocks.push(block);
        });
    }

    /// Where the reverse of a block leads, and further blocks, the first of which will be `next`.
    fn back(&self, code: &mut Code<'_>, layout: &Layout, id: BlockId, next: BlockId) -> (Terminator, Vec<Block>) {
        match &self.record.origins[id] {
            Origin::Known(None) => (Terminator::Jump(layout.end), Vec::new()),
            Origin::Known(Some(pred)) => (Terminator::Jump(layout.of[*pred]), Vec::new()),
            Origin::Condition(cond, yes, no) => {
                (Terminator::Branch(*cond, layout.of[*yes], layout.of[*no]), Vec::new())
            }
            Origin::Counter { counter, start, entry, turn } => {
                let first = code.prim(Prim::Eq, &[Operand::Var(*counter), *start]);
                (Terminator::Branch(first, layout.of[*entry], layout.of[*turn]), Vec::new())
            }
            Origin::Tape(tape) => {
                let number = code.fresh(Type::int());
                code.tape_pop(number, *tape);
                self.choose(code, layout, &self.graph.preds[id], Operand::Var(number), next)
            }
        }
    }

    /// A chain of branches to the reverse of the predecessor of this number.
    fn choose(
        &self,
        code: &mut Code<'_>,
        layout: &Layout,
        preds: &[BlockId],
        number: Operand,
        next: BlockId,
    ) -> (Terminator, Vec<Block>) {
        let mut more = Vec::new();
        let links = preds.len() - 1;
        let mut first = None;
        for (i, pred) in preds[..links].iter().enumerate() {
            let here = code.prim(Prim::Eq, &[number, int(i as i64)]);
            let other = match i + 1 < links {
                true => BlockId::new(next.index() + i),
                false => layout.of[preds[links]],
            };
            let term = Terminator::Branch(here, layout.of[*pred], other);
            if i == 0 {
                // the test belongs to the block that is ending
                first = Some((term, code.insts.len()));
            } else {
                let insts = code.insts.drain(first.as_ref().map_or(0, |(_, n)| *n)..).collect();
                more.push(Block { insts, term, loc: code.loc.clone() });
            }
        }
        (first.expect("a block with a tape has several predecessors").0, more)
    }
}
