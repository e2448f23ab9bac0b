//! The shape of a function: predecessors, dominators, and the blocks that may run more than once.

use crate::analysis::components::components;
use crate::analysis::dominance::Dominators;
use crate::base::{Id, IdSet, IdVec};
use crate::cfg::{BlockId, Func};

/// The control flow graph of a function all of whose blocks are reached.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// The blocks that lead to each block, one entry for each edge.
    pub(super) preds: IdVec<BlockId, Vec<BlockId>>,
    dominators: Dominators,
    /// The blocks in reverse postorder.
    pub(super) order: Vec<BlockId>,
    /// The blocks on a cycle.
    pub(super) cyclic: IdSet<BlockId>,
    /// Blocks with the same number lead to one another.
    component: IdVec<BlockId, usize>,
}

impl Graph {
    /// The graph of a function.
    pub(super) fn new(func: &Func) -> Self {
        let n = func.blocks.len();
        let mut preds: IdVec<BlockId, Vec<BlockId>> = IdVec::filled(Vec::new(), n);
        for (id, block) in func.blocks.iter() {
            for next in block.term.successors() {
                preds[next].push(id);
            }
        }
        let order = func.reverse_postorder();
        let mut cyclic = IdSet::new(n);
        let mut numbers = IdVec::filled(0, n);
        let successors =
            |b: usize| func.blocks[BlockId::new(b)].term.successors().iter().map(|s| s.index()).collect::<Vec<_>>();
        for (number, component) in components(n, successors).into_iter().enumerate() {
            component.iter().for_each(|b| numbers[BlockId::new(*b)] = number);
            let first = component[0];
            if component.len() > 1 || successors(first).contains(&first) {
                component.into_iter().for_each(|b| {
                    cyclic.insert(BlockId::new(b));
                });
            }
        }
        Self { preds, dominators: Dominators::of(func), order, cyclic, component: numbers }
    }

    /// Whether every path to `b` goes through `a`.
    pub(super) fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        self.dominators.dominates(a, b)
    }

    /// Whether two blocks lead to one another.
    pub(super) fn on_a_cycle(&self, a: BlockId, b: BlockId) -> bool {
        self.component[a] == self.component[b]
    }

    /// The immediate dominator; that of the first block is itself.
    pub(super) fn idom(&self, block: BlockId) -> BlockId {
        self.dominators.immediate(block).unwrap_or(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg;

    #[test]
    fn a_rotated_loop() {
        let text = "\
cfg entry f
outputs result
func f(n: int) -> int { @f:1
  var i: int, c: bool
b0: @f:1
  i = copy 0
  c = lt i, n
  branch c, b1, b3
b1: @f:1
  jump b2
b2: @f:1
  i = add i, 1
  c = lt i, n
  branch c, b1, b3
b3: @f:1
  return i
}
";
        let program = cfg::read(text).expect("a CFG program");
        let graph = Graph::new(&program.funcs[program.entry]);
        let b = BlockId::new;
        assert_eq!(graph.preds[b(1)], [b(0), b(2)]);
        assert_eq!((graph.idom(b(3)), graph.idom(b(2))), (b(0), b(1)));
        assert!(graph.dominates(b(1), b(2)) && !graph.dominates(b(1), b(3)));
        assert!(graph.cyclic.iter().eq([b(1), b(2)]));
    }
}
