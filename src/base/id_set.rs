//! Sets of ids as trees of bit sets that share what they have in common.
//!
//! A copy of a set costs nothing, and what two sets share is not looked at when they are joined or compared: an analysis whose
//! sets change little from block to block takes time and memory for the changes, however large the sets are.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use super::work;
use crate::base::Id;

const BITS: usize = u64::BITS as usize;
/// Words of a leaf.
const WORDS: usize = 8;
/// Ids of a leaf.
const LEAF: usize = WORDS * BITS;
/// Children of an inner node.
const FAN: usize = 8;

/// A set of ids below a bound that is fixed when the set is made.
#[derive(Clone)]
pub struct IdSet<I> {
    root: Link,
    /// Levels of inner nodes above the leaves.
    height: u32,
    id: PhantomData<fn(I) -> I>,
}

/// A part of a set. One that is empty has no node, so that equal sets have equal trees.
type Link = Option<Rc<Node>>;

#[derive(Clone, PartialEq, Eq)]
enum Node {
    Leaf([u64; WORDS]),
    Inner([Link; FAN]),
}

/// The ids under one child of a node so many levels above the leaves.
fn span(height: u32) -> usize {
    LEAF * FAN.pow(height - 1)
}

impl<I: Id> IdSet<I> {
    /// The empty set for ids below `bound`.
    pub fn new(bound: usize) -> Self {
        let mut height = 0;
        while LEAF * FAN.pow(height) < bound {
            height += 1;
        }
        Self { root: None, height, id: PhantomData }
    }
    /// The set of all ids below `bound`.
    pub fn full(bound: usize) -> Self {
        let mut set = Self::new(bound);
        (0..bound).for_each(|i| _ = set.insert(I::new(i)));
        set
    }
    /// Adds an id; returns whether it was not in the set. Panics when it is not below the bound (rounded up).
    pub fn insert(&mut self, id: I) -> bool {
        if self.contains(id) {
            return false;
        }
        let (mut at, mut height) = (id.index(), self.height);
        assert!(at < LEAF * FAN.pow(height), "the id is below the bound of the set");
        let mut link = &mut self.root;
        loop {
            work::add(1);
            let node = link.get_or_insert_with(|| {
                Rc::new(if height == 0 { Node::Leaf([0; WORDS]) } else { Node::Inner(Default::default()) })
            });
            match Rc::make_mut(node) {
                Node::Leaf(words) => {
                    words[at / BITS] |= 1 << (at % BITS);
                    return true;
                }
                Node::Inner(children) => {
                    let span = span(height);
                    link = &mut children[at / span];
                    at %= span;
                    height -= 1;
                }
            }
        }
    }
    /// Takes an id out.
    pub fn remove(&mut self, id: I) {
        if self.contains(id) {
            remove(&mut self.root, id.index(), self.height);
        }
    }
    /// Whether the id is in the set.
    pub fn contains(&self, id: I) -> bool {
        let (mut at, mut height) = (id.index(), self.height);
        if at >= LEAF * FAN.pow(height) {
            return false;
        }
        let mut link = &self.root;
        loop {
            match link.as_deref() {
                None => return false,
                Some(Node::Leaf(words)) => return words[at / BITS] >> (at % BITS) & 1 == 1,
                Some(Node::Inner(children)) => {
                    let span = span(height);
                    link = &children[at / span];
                    at %= span;
                    height -= 1;
                }
            }
        }
    }
    /// Adds all ids of a set with the same bound; returns whether the set grew.
    pub fn union_with(&mut self, other: &Self) -> bool {
        if other.root.is_none() {
            return false;
        }
        self.combine(other, union)
    }
    /// Keeps the ids that another set with the same bound has too; returns whether the set shrank.
    pub fn intersect_with(&mut self, other: &Self) -> bool {
        self.combine(other, intersect)
    }
    /// Takes out the ids of another set with the same bound.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, subtract);
    }

    /// Whether the set changed.
    fn combine(&mut self, other: &Self, how: fn(&Link, &Link) -> Combined) -> bool {
        debug_assert!(self.height == other.height || self.root.is_none() || other.root.is_none());
        if self.root.is_none() {
            self.height = other.height;
        }
        match how(&self.root, &other.root) {
            Combined::First | Combined::Both => false,
            Combined::Second => {
                self.root.clone_from(&other.root);
                true
            }
            Combined::New(link) => {
                self.root = link;
                true
            }
        }
    }
    /// Whether another set with the same bound has an id of this one.
    pub fn meets(&self, other: &Self) -> bool {
        meets(&self.root, &other.root)
    }
    /// The first id of this set that another set with the same bound has too.
    pub fn first_of(&self, other: &Self) -> Option<I> {
        first_of(&self.root, &other.root, self.height).map(I::new)
    }
    /// Whether no id is in the set.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }
    /// The ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        let open = self.root.as_deref().map(|node| (node, 0, self.height)).into_iter().collect();
        Ids { open, words: &[], first: 0, word: 0, id: PhantomData }
    }
}

impl<I> PartialEq for IdSet<I> {
    fn eq(&self, other: &Self) -> bool {
        same(&self.root, &other.root)
    }
}

impl<I> Eq for IdSet<I> {}

fn is_shared(a: &Link, b: &Link) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

fn same(a: &Link, b: &Link) -> bool {
    if is_shared(a, b) {
        return true;
    }
    work::add(1);
    match (a.as_deref(), b.as_deref()) {
        (Some(Node::Leaf(a)), Some(Node::Leaf(b))) => a == b,
        (Some(Node::Inner(a)), Some(Node::Inner(b))) => a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => false,
    }
}

fn remove(link: &mut Link, at: usize, height: u32) {
    let Some(node) = link else { return };
    work::add(1);
    let empty = match Rc::make_mut(node) {
        Node::Leaf(words) => {
            words[at / BITS] &= !(1 << (at % BITS));
            words.iter().all(|w| *w == 0)
        }
        Node::Inner(children) => {
            let span = span(height);
            remove(&mut children[at / span], at % span, height - 1);
            children.iter().all(Option::is_none)
        }
    };
    if empty {
        *link = None;
    }
}

/// What comes of two trees: one of them, both being equal, or a new one.
enum Combined {
    First,
    Second,
    Both,
    New(Link),
}

fn union(a: &Link, b: &Link) -> Combined {
    match (a, b) {
        _ if is_shared(a, b) => Combined::Both,
        (_, None) => Combined::First,
        (None, _) => Combined::Second,
        (Some(a), Some(b)) => nodes(a, b, |a, b| a | b, union),
    }
}

fn intersect(a: &Link, b: &Link) -> Combined {
    match (a, b) {
        _ if is_shared(a, b) => Combined::Both,
        (None, _) => Combined::First,
        (_, None) => Combined::Second,
        (Some(a), Some(b)) => nodes(a, b, |a, b| a & b, intersect),
    }
}

fn subtract(a: &Link, b: &Link) -> Combined {
    match (a, b) {
        (None, _) | (_, None) => Combined::First,
        (Some(a), Some(b)) if Rc::ptr_eq(a, b) => Combined::New(None),
        (Some(a), Some(b)) => nodes(a, b, |a, b| a & !b, subtract),
    }
}

/// Two nodes of the same place, word by word and child by child.
fn nodes(a: &Node, b: &Node, word: fn(u64, u64) -> u64, part: fn(&Link, &Link) -> Combined) -> Combined {
    work::add(1);
    match (a, b) {
        (Node::Leaf(a), Node::Leaf(b)) => {
            let words: [u64; WORDS] = std::array::from_fn(|i| word(a[i], b[i]));
            match (words == *a, words == *b) {
                (true, true) => Combined::Both,
                (true, false) => Combined::First,
                (false, true) => Combined::Second,
                (false, false) if words == [0; WORDS] => Combined::New(None),
                (false, false) => Combined::New(Some(Rc::new(Node::Leaf(words)))),
            }
        }
        (Node::Inner(a), Node::Inner(b)) => {
            let (mut first, mut second) = (true, true);
            let children: [Link; FAN] = std::array::from_fn(|i| match part(&a[i], &b[i]) {
                Combined::Both => a[i].clone(),
                Combined::First => {
                    second = false;
                    a[i].clone()
                }
                Combined::Second => {
                    first = false;
                    b[i].clone()
                }
                Combined::New(link) => {
                    (first, second) = (false, false);
                    link
                }
            });
            match (first, second) {
                (true, true) => Combined::Both,
                (true, false) => Combined::First,
                (false, true) => Combined::Second,
                (false, false) if children.iter().all(Option::is_none) => Combined::New(None),
                (false, false) => Combined::New(Some(Rc::new(Node::Inner(children)))),
            }
        }
        _ => unreachable!("sets of one bound have one height"),
    }
}

fn meets(a: &Link, b: &Link) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    if Rc::ptr_eq(a, b) {
        return true;
    }
    work::add(1);
    match (&**a, &**b) {
        (Node::Leaf(a), Node::Leaf(b)) => a.iter().zip(b).any(|(a, b)| a & b != 0),
        (Node::Inner(a), Node::Inner(b)) => a.iter().zip(b).any(|(a, b)| meets(a, b)),
        _ => unreachable!("sets of one bound have one height"),
    }
}

fn first_of(a: &Link, b: &Link, height: u32) -> Option<usize> {
    let (Some(a), Some(b)) = (a, b) else { return None };
    work::add(1);
    match (&**a, &**b) {
        (Node::Leaf(a), Node::Leaf(b)) => {
            let mut words = a.iter().zip(b).map(|(a, b)| a & b).enumerate();
            words.find(|(_, w)| *w != 0).map(|(i, w)| i * BITS + w.trailing_zeros() as usize)
        }
        (Node::Inner(a), Node::Inner(b)) => {
            let mut parts = a.iter().zip(b).enumerate();
            parts.find_map(|(i, (a, b))| Some(i * span(height) + first_of(a, b, height - 1)?))
        }
        _ => unreachable!("sets of one bound have one height"),
    }
}

/// Goes through the ids of a set.
struct Ids<'a, I> {
    /// Parts that are still to be gone through, the last first: node, first id, height.
    open: Vec<(&'a Node, usize, u32)>,
    /// The leaf that is gone through: the words after the current one, the id of its first bit, what is left of it.
    words: &'a [u64],
    first: usize,
    word: u64,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id> Iterator for Ids<'_, I> {
    type Item = I;

    fn next(&mut self) -> Option<I> {
        loop {
            if self.word != 0 {
                let bit = self.word.trailing_zeros() as usize;
                self.word &= self.word - 1;
                work::add(1);
                return Some(I::new(self.first + bit));
            }
            if let Some((word, rest)) = self.words.split_first() {
                (self.word, self.words) = (*word, rest);
                self.first += BITS;
                continue;
            }
            let (node, first, height) = self.open.pop()?;
            work::add(1);
            match node {
                Node::Leaf(words) => {
                    (self.word, self.words, self.first) = (words[0], &words[1..], first);
                }
                Node::Inner(children) => {
                    let span = span(height);
                    let parts = children.iter().enumerate().rev();
                    let parts = parts.filter_map(|(i, c)| Some((c.as_deref()?, first + i * span, height - 1)));
                    self.open.extend(parts);
                }
            }
        }
    }
}

impl<I: Id> fmt::Debug for IdSet<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    crate::define_id!((pub(super)) ItemId, "i");

    fn set(items: &BTreeSet<usize>, bound: usize) -> IdSet<ItemId> {
        let mut set = IdSet::new(bound);
        items.iter().for_each(|i| assert!(set.insert(ItemId::new(*i))));
        set
    }

    fn items(set: &IdSet<ItemId>) -> BTreeSet<usize> {
        set.iter().map(|i| i.index()).collect()
    }

    proptest! {
        /// Of one, two and three levels.
        #[test]
        fn they_are_sets(
            bound in prop::sample::select(vec![500_usize, 4000, 9000]),
            a in prop::collection::btree_set(0_usize..9000, 0..80),
            b in prop::collection::btree_set(0_usize..9000, 0..80),
            common in prop::collection::btree_set(0_usize..9000, 0..80),
        ) {
            let within = |s: &BTreeSet<usize>| s.iter().map(|i| i % bound).collect::<BTreeSet<_>>();
            let (a, b, common) = (within(&a), within(&b), within(&common));
            let shared = set(&common, bound);
            // One half has what is common as the same nodes.
            let mut left = shared.clone();
            a.iter().for_each(|i| _ = left.insert(ItemId::new(*i)));
            let mut right = shared.clone();
            b.iter().for_each(|i| _ = right.insert(ItemId::new(*i)));
            let (a, b): (BTreeSet<_>, BTreeSet<_>) = (&a | &common, &b | &common);
            prop_assert_eq!(items(&left), a.clone());
            let mut now = left.clone();
            prop_assert_eq!(now.union_with(&right), !b.is_subset(&a));
            prop_assert_eq!(items(&now), &a | &b);
            prop_assert!(now == set(&(&a | &b), bound));
            let mut now = left.clone();
            prop_assert_eq!(now.intersect_with(&right), !a.is_subset(&b));
            prop_assert!(now == set(&(&a & &b), bound));
            let mut now = left.clone();
            now.subtract(&right);
            prop_assert!(now == set(&(&a - &b), bound));
            prop_assert_eq!(now.is_empty(), a.is_subset(&b));
            prop_assert_eq!(left.meets(&right), !a.is_disjoint(&b));
            prop_assert_eq!(left.first_of(&right).map(|i| i.index()), (&a & &b).first().copied());
            let mut now = left.clone();
            common.iter().for_each(|i| now.remove(ItemId::new(*i)));
            prop_assert!(now == set(&(&a - &common), bound));
            prop_assert!(common.iter().all(|i| !now.contains(ItemId::new(*i)) && left.contains(ItemId::new(*i))));
            prop_assert!(!left.contains(ItemId::new(1_000_000)));
        }
    }

    #[test]
    fn what_is_shared_is_not_looked_at() {
        let all = IdSet::<ItemId>::full(100_000);
        let (mut a, mut b) = (all.clone(), all.clone());
        a.remove(ItemId::new(5));
        b.remove(ItemId::new(99_999));
        let before = work::done();
        assert!(a.union_with(&b) && a == all && b != all);
        assert!(work::done() - before < 50, "{} nodes", work::done() - before);
    }
}
