//! Which blocks of a CFG function every path to a block goes through, and what follows from it: where the paths from a branch
//! meet again, which branches decide whether a block runs, and the loops (Cooper, Harvey and Kennedy, *A simple, fast dominance
//! algorithm*, 2001).

use std::collections::BTreeSet;

use crate::base::{Id, IdVec, work};
use crate::cfg::{Block, BlockId, Func, Terminator};

/// Immediate dominators of the nodes `0..n` of a graph; `None` for the root and for what it does not reach.
#[derive(Clone, Debug)]
struct Tree {
    parent: Vec<Option<usize>>,
    /// Place in reverse postorder; `usize::MAX` for what the root does not reach.
    order: Vec<usize>,
    /// When a walk through the tree comes to each node, and when it leaves it.
    spans: Vec<(usize, usize)>,
}

impl Tree {
    fn new(root: usize, successors: &[Vec<usize>]) -> Self {
        let n = successors.len();
        let (mut order, mut postorder) = (vec![usize::MAX; n], Vec::new());
        let mut seen = vec![false; n];
        seen[root] = true;
        let mut todo = vec![(root, 0)];
        while let Some((node, next)) = todo.last_mut() {
            match successors[*node].get(*next).copied() {
                Some(to) => {
                    *next += 1;
                    if !seen[to] {
                        seen[to] = true;
                        todo.push((to, 0));
                    }
                }
                None => {
                    postorder.push(*node);
                    todo.pop();
                }
            }
        }
        let mut predecessors = vec![Vec::new(); n];
        for (i, node) in postorder.iter().rev().enumerate() {
            order[*node] = i;
            successors[*node].iter().for_each(|to| predecessors[*to].push(*node));
        }
        let mut tree = Tree { parent: vec![None; n], order, spans: Vec::new() };
        tree.parent[root] = Some(root);
        let mut changed = true;
        while changed {
            changed = false;
            for node in postorder.iter().rev().filter(|node| **node != root) {
                let known = predecessors[*node].iter().copied().filter(|p| tree.parent[*p].is_some());
                let new = known.reduce(|a, b| tree.meet(a, b));
                changed |= tree.parent[*node] != new;
                tree.parent[*node] = new;
            }
        }
        tree.parent[root] = None;
        tree.spans = spans(&tree.parent);
        tree
    }

    /// The nearest node that dominates both.
    fn meet(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            let later = if self.order[a] > self.order[b] { &mut a } else { &mut b };
            *later = self.parent[*later].expect("the root comes first");
        }
        a
    }

    fn above(&self, node: usize, wanted: usize) -> bool {
        let ((start, end), (first, last)) = (self.spans[node], self.spans[wanted]);
        first <= start && end <= last
    }
}

/// When a walk through the trees of a forest comes to each node, and when it leaves it.
fn spans(parent: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut children = vec![Vec::new(); parent.len()];
    for (node, parent) in parent.iter().enumerate() {
        parent.iter().for_each(|p| children[*p].push(node));
    }
    let (mut spans, mut time) = (vec![(0, 0); parent.len()], 0);
    for root in (0..parent.len()).filter(|node| parent[*node].is_none()) {
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            if *next == 0 {
                spans[*node].0 = time;
                time += 1;
            }
            match children[*node].get(*next) {
                Some(child) => {
                    *next += 1;
                    path.push((*child, 0));
                }
                None => {
                    spans[*node].1 = time;
                    path.pop();
                }
            }
        }
    }
    work::add(parent.len());
    spans
}

/// Which blocks of a function every path from its start to a block goes through, and nothing else.
#[derive(Clone, Debug)]
pub struct Dominators(Tree);

impl Dominators {
    /// Of a function.
    pub fn of(func: &Func) -> Self {
        let successors = |block: &Block| block.term.successors().iter().map(|b| b.index()).collect();
        Self(Tree::new(0, &func.blocks.values().map(successors).collect::<Vec<_>>()))
    }
    /// Whether every path from the start to `block` goes through `by`; a block dominates itself.
    pub fn dominates(&self, by: BlockId, block: BlockId) -> bool {
        self.0.above(block.index(), by.index())
    }
    /// The nearest other block that dominates a block; `None` for the first, and for what is never reached.
    pub fn immediate(&self, block: BlockId) -> Option<BlockId> {
        self.0.parent[block.index()].map(BlockId::new)
    }
}

/// What dominance says of a function.
pub struct Dominance {
    before: Tree,
    /// With one more node at the end, where every path that ends the function leads to.
    after: Tree,
    predecessors: IdVec<BlockId, Vec<BlockId>>,
    /// The branches that decide whether a block runs, by block; of branches that are passed one after another the last.
    deciding: IdVec<BlockId, Vec<BlockId>>,
}

impl Dominance {
    /// Of a verified function.
    pub fn of(func: &Func) -> Self {
        let n = func.blocks.len();
        let mut successors: Vec<Vec<usize>> = Vec::with_capacity(n);
        let mut backwards: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
        let mut predecessors = IdVec::filled(Vec::new(), n);
        for (id, block) in func.blocks.iter() {
            let next = block.term.successors();
            successors.push(next.iter().map(|b| b.index()).collect());
            for to in &next {
                backwards[to.index()].push(id.index());
                predecessors[*to].push(id);
            }
            if next.is_empty() {
                backwards[n].push(id.index());
            }
        }
        let (before, after) = (Tree::new(0, &successors), Tree::new(n, &backwards));
        let mut deciding: IdVec<BlockId, Vec<BlockId>> = IdVec::filled(Vec::new(), n);
        for (id, block) in func.blocks.iter().filter(|(_, b)| matches!(b.term, Terminator::Branch(..))) {
            let meeting = after.parent[id.index()];
            for next in block.term.successors() {
                let mut at = Some(next.index());
                while let Some(node) = at.filter(|node| Some(*node) != meeting && *node < n) {
                    deciding[BlockId::new(node)].push(id);
                    at = after.parent[node];
                }
            }
        }
        Self { before, after, predecessors, deciding }
    }

    /// The blocks with an edge to a block.
    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        &self.predecessors[block]
    }

    /// Whether a path from the start leads to a block.
    pub fn is_reached(&self, block: BlockId) -> bool {
        self.before.order[block.index()] != usize::MAX
    }

    /// Whether every path from the start to `block` goes through `by`; a block dominates itself.
    pub fn dominates(&self, by: BlockId, block: BlockId) -> bool {
        self.before.above(block.index(), by.index())
    }

    /// The block where all paths from a block meet first; `None` when they do not, or only at the end of the function.
    pub fn meeting(&self, block: BlockId) -> Option<BlockId> {
        let end = self.predecessors.len();
        self.after.parent[block.index()].filter(|node| *node < end).map(BlockId::new)
    }

    /// The blocks where paths from two of these blocks meet for the first time, and again with these, and so on (the iterated
    /// dominance frontier).
    pub fn merges(&self, from: &[BlockId]) -> BTreeSet<BlockId> {
        let mut merges = BTreeSet::new();
        let mut work: Vec<usize> = from.iter().map(|b| b.index()).collect();
        while let Some(node) = work.pop() {
            for (to, predecessors) in self.predecessors.iter() {
                let outside = |p: &BlockId| self.is_reached(*p) && self.before.above(p.index(), node);
                let strictly = to.index() != node && self.before.above(to.index(), node);
                if !strictly && predecessors.iter().any(outside) && merges.insert(to) {
                    work.push(to.index());
                }
            }
        }
        merges
    }

    /// The branches that decide by which edge a block is entered.
    pub fn deciding(&self, func: &Func, block: BlockId) -> BTreeSet<BlockId> {
        let top = self.before.parent[block.index()];
        let inside = |b: &BlockId| top.is_none_or(|top| self.before.above(b.index(), top));
        let mut found = BTreeSet::new();
        let mut work = Vec::new();
        for p in self.predecessors[block].iter().copied().filter(|p| self.is_reached(*p)) {
            if matches!(func.blocks[p].term, Terminator::Branch(..)) && found.insert(p) {
                work.push(p);
            }
            work.push(p);
        }
        let mut seen = BTreeSet::new();
        while let Some(at) = work.pop() {
            if !seen.insert(at) || Some(at.index()) == top {
                continue;
            }
            for b in self.deciding[at].iter().copied().filter(inside) {
                found.insert(b);
                work.push(b);
            }
        }
        found
    }

    /// The branches that decide whether a block runs, all of them.
    pub fn deciding_to_run(&self, block: BlockId) -> BTreeSet<BlockId> {
        let mut found = BTreeSet::new();
        let mut work = vec![block];
        while let Some(at) = work.pop() {
            work.extend(self.deciding[at].iter().copied().filter(|b| found.insert(*b)));
        }
        found
    }

    /// Whether an edge leads back to a block from one that it does not dominate: a cycle that is entered at several places.
    pub fn is_tangled(&self, block: BlockId) -> bool {
        let order = |b: BlockId| self.before.order[b.index()];
        let back = |p: &&BlockId| self.is_reached(**p) && order(**p) >= order(block);
        self.predecessors[block].iter().filter(back).any(|p| !self.dominates(block, *p))
    }

    /// The blocks of the loop that is entered at a block; `None` when it is not the start of a loop.
    pub fn loop_at(&self, head: BlockId) -> Option<BTreeSet<BlockId>> {
        let mut blocks = BTreeSet::from([head]);
        let back = |p: &BlockId| self.is_reached(*p) && self.dominates(head, *p);
        let mut work: Vec<BlockId> = self.predecessors[head].iter().copied().filter(back).collect();
        if work.is_empty() {
            return None;
        }
        while let Some(block) = work.pop() {
            if blocks.insert(block) {
                work.extend(self.predecessors[block].iter().copied().filter(|p| self.is_reached(*p)));
            }
        }
        Some(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg;

    fn b(n: usize) -> BlockId {
        BlockId::new(n)
    }

    /// b0 branches to b1 and b2; b2 is a loop of b2 and b3, whose diamond over b4 and b5 meets in b6; b7 ends it.
    const TEXT: &str = "cfg entry f\noutputs r\nfunc f(c: bool) -> int { @f:1\nb0: @f:1\n  branch c, b1, b2\nb1: @f:1\n  jump b7\n\
                        b2: @f:1\n  jump b3\nb3: @f:1\n  branch c, b4, b5\nb4: @f:1\n  jump b6\nb5: @f:1\n  jump b6\nb6: @f:1\n  \
                        branch c, b2, b7\nb7: @f:1\n  return 1\n}\n";

    #[test]
    fn merges_deciding_branches_and_loops() {
        let program = cfg::read(TEXT).expect("a program");
        let func = &program.funcs[program.entry];
        let d = Dominance::of(func);
        assert!(d.dominates(b(2), b(6)) && !d.dominates(b(2), b(7)));
        assert_eq!(d.meeting(b(3)), Some(b(6)));
        assert_eq!(d.meeting(b(0)), Some(b(7)));
        assert_eq!(d.merges(&[b(4)]), BTreeSet::from([b(2), b(6), b(7)]));
        // The diamond does not decide how b7 is entered, nor which turn of the loop it is.
        assert_eq!(d.deciding(func, b(7)), BTreeSet::from([b(0), b(6)]));
        assert_eq!(d.deciding(func, b(6)), BTreeSet::from([b(3)]));
        assert_eq!(d.deciding_to_run(b(4)), BTreeSet::from([b(0), b(3), b(6)]));
        assert_eq!(d.loop_at(b(2)), Some(BTreeSet::from([b(2), b(3), b(4), b(5), b(6)])));
        assert_eq!(d.loop_at(b(3)), None);
    }
}
