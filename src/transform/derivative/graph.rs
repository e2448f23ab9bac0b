//! The shape of a function: predecessors, dominators, and the blocks that may run more than once.

use crate::analysis::components::components;
use crate::base::{Id, IdSet, IdVec};
use crate::cfg::{BlockId, Func};

/// The control flow graph of a function all of whose blocks are reached.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// The blocks that lead to each block, one entry for each edge.
    pub(super) preds: IdVec<BlockId, Vec<BlockId>>,
    /// The immediate dominator of each block; the first block's is itself.
    idom: IdVec<BlockId, BlockId>,
    /// Position of each block in reverse postorder.
    position: IdVec<BlockId, usize>,
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
        let mut position = IdVec::filled(usize::MAX, n);
        for (i, block) in order.iter().enumerate() {
            position[*block] = i;
        }
        let idom = dominators(&order, &position, &preds);
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
        Self { preds, idom, position, order, cyclic, component: numbers }
    }

    /// Whether every path to `b` goes through `a`.
    pub(super) fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let mut at = b;
        while self.position[at] > self.position[a] {
            at = self.idom[at];
        }
        at == a
    }

    /// Whether two blocks lead to one another.
    pub(super) fn on_a_cycle(&self, a: BlockId, b: BlockId) -> bool {
        self.component[a] == self.component[b]
    }

    /// The immediate dominator.
    pub(super) fn idom(&self, block: BlockId) -> BlockId {
        self.idom[block]
    }
}

/// Immediate dominators (Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001).
fn dominators(
    order: &[BlockId],
    position: &IdVec<BlockId, usize>,
    preds: &IdVec<BlockId, Vec<BlockId>>,
) -> IdVec<BlockId, BlockId> {
    let first = BlockId::new(0);
    let mut idom: IdVec<BlockId, Option<BlockId>> = IdVec::filled(None, preds.len());
    idom[first] = Some(first);
    let mut changed = true;
    while changed {
        changed = false;
        for block in &order[1..] {
            let mut new: Option<BlockId> = None;
            for pred in preds[*block].iter().filter(|p| idom[**p].is_some()) {
                new = Some(match new {
                    None => *pred,
                    Some(other) => intersect(*pred, other, &idom, position),
                });
            }
            if idom[*block] != new {
                idom[*block] = new;
                changed = true;
            }
        }
    }
    idom.values().map(|d| d.unwrap_or(first)).collect()
}

fn intersect(
    mut a: BlockId,
    mut b: BlockId,
    idom: &IdVec<BlockId, Option<BlockId>>,
    position: &IdVec<BlockId, usize>,
) -> BlockId {
    while a != b {
        while position[a] > position[b] {
            a = idom[a].expect("visited");
        }
        while position[b] > position[a] {
            b = idom[b].expect("visited");
        }
    }
    a
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
