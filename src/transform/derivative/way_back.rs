//! From the reverse of a block on to the reverse of the block that it was entered from.

use super::code::{Code, int};
use super::cotangent::Cotangents;
use super::origins::Origin;
use super::reverse::{Layout, Reversed};
use super::sweeps::Sweeps;
use crate::base::{Id, IdSet, IdVec};
use crate::cfg::{Block, BlockId, Operand, Terminator, VarId};
use crate::prim::Prim;
use crate::types::Type;

impl Sweeps<'_> {
    /// Ends the reverse of a block: on to the reverse of the block that it was entered from.
    pub(super) fn lead_on(
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
