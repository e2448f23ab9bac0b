//! Where the values of nodes are that were written.

use crate::base::Id as _;
use crate::stan::value::NodeId;

/// A container, and which of its elements.
type Place = (usize, usize);

/// For each node its place, once it was written: a list, since nearly all nodes get one.
pub(super) struct Places(Vec<Option<(u32, u32)>>);

impl Places {
    /// Of so many nodes, none of which has been written.
    pub(super) fn of(nodes: usize) -> Places {
        Places(vec![None; nodes])
    }

    pub(super) fn get(&self, node: NodeId) -> Option<Place> {
        self.0[node.index()].map(|(container, at)| (container as usize, at as usize))
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.0[node.index()].is_some()
    }

    pub(super) fn insert(&mut self, node: NodeId, (container, at): Place) {
        let narrow = |i: usize| u32::try_from(i).expect("there are fewer nodes than that");
        self.0[node.index()] = Some((narrow(container), narrow(at)));
    }

    pub(super) fn remove(&mut self, node: NodeId) -> Option<Place> {
        let place = self.get(node);
        self.0[node.index()] = None;
        place
    }

    /// All nodes that have a place.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().enumerate().filter(|(_, place)| place.is_some()).map(|(index, _)| NodeId::new(index))
    }
}
