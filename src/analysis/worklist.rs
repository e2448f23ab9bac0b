//! The order in which a fixed point looks at blocks.

use std::collections::BTreeSet;

use crate::base::work;
use crate::base::{Id, IdVec};
use crate::cfg::{BlockId, Func};

/// Nodes `0..n` in an order.
#[derive(Clone)]
pub struct Order {
    nodes: Vec<usize>,
    place: Vec<usize>,
}

impl Order {
    /// Those that are not in it, of `0..n`, are never looked at.
    pub fn new(nodes: Vec<usize>, n: usize) -> Self {
        let mut place = vec![usize::MAX; n];
        for (i, node) in nodes.iter().enumerate() {
            place[*node] = i;
        }
        Self { nodes, place }
    }
    /// The other way round.
    pub fn reversed(&self) -> Self {
        Self::new(self.nodes.iter().rev().copied().collect(), self.place.len())
    }
    /// The place of a node.
    pub fn place(&self, node: usize) -> usize {
        self.place[node]
    }
    /// The node at a place.
    pub fn node(&self, place: usize) -> usize {
        self.nodes[place]
    }
    /// Nothing is to be looked at.
    pub fn none(&self) -> Open<'_> {
        Open { order: self, open: BTreeSet::new() }
    }
    /// Everything is to be looked at.
    pub fn all(&self) -> Open<'_> {
        Open { order: self, open: (0..self.nodes.len()).collect() }
    }
}

/// What is to be looked at, the first in an order first. Nothing stands in it twice.
pub struct Open<'a> {
    order: &'a Order,
    open: BTreeSet<usize>,
}

impl Open<'_> {
    /// A node is to be looked at, if it is in the order.
    pub fn add(&mut self, node: usize) {
        if self.order.place[node] != usize::MAX {
            self.open.insert(self.order.place[node]);
        }
    }
    /// The next one.
    pub fn take(&mut self) -> Option<usize> {
        let place = self.open.pop_first()?;
        work::add(1);
        Some(self.order.nodes[place])
    }
}

/// The nodes `0..n` of a graph so that one comes after its successors, loops aside: those that `first` leads to, then those that
/// the others lead to, in the order of their numbers.
pub fn postorder<S: IntoIterator<Item = usize>>(n: usize, first: usize, successors: impl Fn(usize) -> S) -> Vec<usize> {
    let mut seen = vec![false; n];
    let mut order = Vec::with_capacity(n);
    for root in std::iter::once(first).chain(0..n).filter(|root| *root < n) {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut path = vec![(root, successors(root).into_iter())];
        while let Some((node, next)) = path.last_mut() {
            match next.next() {
                Some(to) if !std::mem::replace(&mut seen[to], true) => path.push((to, successors(to).into_iter())),
                Some(_) => {}
                None => {
                    order.push(*node);
                    path.pop();
                }
            }
        }
    }
    order
}

/// The blocks of a function that can be reached, in reverse postorder: where ways meet, after all of them, so that what a
/// loop-free part of a function says is known when each of its blocks was looked at once.
pub fn forwards(func: &Func) -> Order {
    Order::new(func.reverse_postorder().into_iter().map(BlockId::index).collect(), func.blocks.len())
}

/// For each thing the things that list it.
pub fn reversed<A: Id, S: IntoIterator<Item = A>>(n: usize, lists: impl Iterator<Item = (A, S)>) -> IdVec<A, Vec<A>> {
    let mut reversed = IdVec::filled(Vec::new(), n);
    for (from, list) in lists {
        list.into_iter().for_each(|to| reversed[to].push(from));
    }
    reversed
}
