//! The reverse sweep: the blocks of a function backwards, and in each its instructions backwards. Which cotangents are
//! known to be zero at each place is a fixed point over it.

use std::collections::BTreeMap;

use super::care::{self, Care, Cares};
use super::code::Code;
use super::cotangent::{Cotangents, Known};
use super::record::Save;
use super::sweeps::Sweeps;
use super::tangent::Site;
use crate::analysis::worklist::forwards;
use crate::base::{Id, IdSet, IdVec, work};
use crate::cfg::{Block, BlockId, Func, Inst, InstKind, Operand, SideEffect, Terminator, VarId};
use crate::prim::Prim;

/// Where the blocks of a reverse sweep stand.
pub(super) struct Layout {
    pub(super) start: BlockId,
    pub(super) of: IdVec<BlockId, BlockId>,
    /// What follows the reverse of a call.
    pub(super) after: BTreeMap<BlockId, BlockId>,
    pub(super) end: BlockId,
    /// The parameters whose cotangents the caller began, and what holds these.
    pub(super) sums: BTreeMap<VarId, VarId>,
}

impl Layout {
    pub(super) fn new(func: &Func, first: usize) -> Self {
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
pub(super) struct Reversed {
    /// Up to the reverse of the call that ends the block, if one does.
    pub(super) call: Option<(Vec<Inst>, Terminator)>,
    /// The rest.
    pub(super) insts: Vec<Inst>,
    /// What is known of cotangents, at its end.
    pub(super) known: Known,
}

impl Sweeps<'_> {
    /// Appends the reverse sweep. It starts with `before` and the cotangents in `seeds`, and ends with `kept` and the
    /// cotangents of the parameters.
    pub(super) fn reverse_blocks(
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

    /// For each block, the variables whose cotangent is known to be zero when its reverse starts; nothing for blocks
    /// that the reverse sweep does not come to. The largest solution.
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
        if let Some((counter, bound)) = self.record.counters.get(&id) {
            code.assign(*counter, *bound);
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
    pub(super) fn restore(&self, code: &mut Code<'_>, place: (BlockId, usize), done: &mut IdSet<VarId>) {
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
    pub(super) fn again(&self, code: &mut Code<'_>, block: BlockId, v: VarId, done: &mut IdSet<VarId>) {
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
}
