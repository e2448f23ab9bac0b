//! Maps from ids as trees that share what they have in common: like [`IdSet`](super::IdSet), with a value for each id.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use super::work;
use crate::base::Id;

/// Values of a leaf, and children of an inner node.
const FAN: usize = 16;

/// A map from ids below a bound that is fixed when the map is made.
#[derive(Clone)]
pub struct IdMap<I, T> {
    root: Link<T>,
    /// Levels of inner nodes above the leaves.
    height: u32,
    id: PhantomData<fn(I) -> I>,
}

/// A part of a map. One that has no node has no values.
type Link<T> = Option<Rc<Node<T>>>;

#[derive(Clone)]
enum Node<T> {
    Leaf([Option<T>; FAN]),
    Inner([Link<T>; FAN]),
}

/// The ids under one child of a node so many levels above the leaves.
fn span(height: u32) -> usize {
    FAN.pow(height)
}

impl<I: Id, T: Copy + PartialEq> IdMap<I, T> {
    /// The empty map for ids below `bound`.
    pub fn new(bound: usize) -> Self {
        let mut height = 0;
        while span(height + 1) < bound {
            height += 1;
        }
        Self { root: None, height, id: PhantomData }
    }
    /// The value of an id.
    pub fn get(&self, id: I) -> Option<T> {
        let (mut at, mut height) = (id.index(), self.height);
        if at >= span(height + 1) {
            return None;
        }
        let mut link = &self.root;
        loop {
            match link.as_deref()? {
                Node::Leaf(values) => return values[at],
                Node::Inner(children) => {
                    let span = span(height);
                    link = &children[at / span];
                    at %= span;
                    height -= 1;
                }
            }
        }
    }
    /// Gives an id a value, or none. Panics when the id is not below the bound (rounded up).
    pub fn set(&mut self, id: I, value: Option<T>) {
        if self.get(id) == value {
            return;
        }
        let (mut at, mut height) = (id.index(), self.height);
        assert!(at < span(height + 1), "the id is below the bound of the map");
        let mut link = &mut self.root;
        loop {
            work::add(1);
            let empty = || Rc::new(if height == 0 { Node::Leaf([None; FAN]) } else { Node::Inner(Default::default()) });
            match Rc::make_mut(link.get_or_insert_with(empty)) {
                Node::Leaf(values) => {
                    values[at] = value;
                    return;
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
    /// Keeps the values that another map with the same bound has too; returns whether there are fewer.
    pub fn keep_same(&mut self, other: &Self) -> bool {
        self.meet(other, &|a, b| a.filter(|a| Some(*a) == b))
    }
    /// Meets another map with the same bound: where only one of them has a value, that one; where both have the same, that;
    /// otherwise `different`. Returns whether anything changed.
    pub fn join(&mut self, other: &Self, different: T) -> bool {
        self.meet(other, &|a, b| match (a, b) {
            (Some(a), Some(b)) if a != b => Some(different),
            (a, b) => a.or(b),
        })
    }

    /// `how` gives of two equal values that one.
    fn meet(&mut self, other: &Self, how: &dyn Fn(Option<T>, Option<T>) -> Option<T>) -> bool {
        debug_assert_eq!(self.height, other.height);
        match meet(&self.root, &other.root, self.height, how) {
            Met::First => false,
            Met::Second => {
                self.root.clone_from(&other.root);
                true
            }
            Met::New(link) => {
                self.root = link;
                true
            }
        }
    }
}

/// What comes of two trees: one of them, or a new one.
enum Met<T> {
    First,
    Second,
    New(Link<T>),
}

fn meet<T: Copy + PartialEq>(
    a: &Link<T>,
    b: &Link<T>,
    height: u32,
    how: &dyn Fn(Option<T>, Option<T>) -> Option<T>,
) -> Met<T> {
    match (a, b) {
        (None, None) => return Met::First,
        (Some(a), Some(b)) if Rc::ptr_eq(a, b) => return Met::First,
        _ => {}
    }
    work::add(1);
    let (mut first, mut second) = (true, true);
    if height == 0 {
        let values = |link: &Link<T>, i: usize| match link.as_deref() {
            Some(Node::Leaf(values)) => values[i],
            _ => None,
        };
        let met: [Option<T>; FAN] = std::array::from_fn(|i| {
            let met = how(values(a, i), values(b, i));
            first &= met == values(a, i);
            second &= met == values(b, i);
            met
        });
        return match (first, second) {
            (true, _) => Met::First,
            (_, true) => Met::Second,
            _ => Met::New(Some(Rc::new(Node::Leaf(met)))),
        };
    }
    let child = |link: &Link<T>, i: usize| match link.as_deref() {
        Some(Node::Inner(children)) => children[i].clone(),
        _ => None,
    };
    let children: [Link<T>; FAN] = std::array::from_fn(|i| {
        let (x, y) = (child(a, i), child(b, i));
        let shared = match (&x, &y) {
            (None, None) => true,
            (Some(x), Some(y)) => Rc::ptr_eq(x, y),
            _ => false,
        };
        match meet(&x, &y, height - 1, how) {
            Met::First => {
                second &= shared;
                x
            }
            Met::Second => {
                first = false;
                y
            }
            Met::New(link) => {
                (first, second) = (false, false);
                link
            }
        }
    });
    match (first, second) {
        (true, _) => Met::First,
        (_, true) => Met::Second,
        _ => Met::New(Some(Rc::new(Node::Inner(children)))),
    }
}

impl<I: Id, T: Copy + PartialEq + fmt::Debug> fmt::Debug for IdMap<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = (0..span(self.height + 1)).filter_map(|i| Some((I::new(i), self.get(I::new(i))?)));
        f.debug_map().entries(all).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    crate::define_id!((pub(super)) ItemId, "i");

    fn entries(map: &IdMap<ItemId, u8>, bound: usize) -> BTreeMap<usize, u8> {
        (0..bound).filter_map(|i| Some((i, map.get(ItemId::new(i))?))).collect()
    }

    proptest! {
        /// Of one, two and three levels.
        #[test]
        fn they_are_maps(
            bound in prop::sample::select(vec![16_usize, 200, 3000]),
            a in prop::collection::btree_map(0_usize..3000, 0_u8..3, 0..40),
            b in prop::collection::btree_map(0_usize..3000, 0_u8..3, 0..40),
            common in prop::collection::btree_map(0_usize..3000, 0_u8..3, 0..40),
            gone in prop::collection::btree_set(0_usize..3000, 0..40),
        ) {
            let put = |map: &mut IdMap<ItemId, u8>, with: &BTreeMap<usize, u8>| {
                with.iter().for_each(|(i, x)| map.set(ItemId::new(i % bound), Some(*x)));
            };
            let mut shared = IdMap::new(bound);
            put(&mut shared, &common);
            let (mut left, mut right) = (shared.clone(), shared.clone());
            put(&mut left, &a);
            put(&mut right, &b);
            gone.iter().for_each(|i| right.set(ItemId::new(i % bound), None));
            let (x, y) = (entries(&left, bound), entries(&right, bound));
            let same: BTreeMap<usize, u8> =
                x.iter().filter(|(i, v)| y.get(i) == Some(v)).map(|(i, v)| (*i, *v)).collect();
            let mut now = left.clone();
            prop_assert_eq!(now.keep_same(&right), same != x);
            prop_assert_eq!(entries(&now, bound), same);
            let mut both = x.clone();
            for (i, v) in &y {
                let met = if both.get(i).is_none_or(|other| other == v) { *v } else { 9 };
                both.insert(*i, met);
            }
            let mut now = left.clone();
            prop_assert_eq!(now.join(&right, 9), both != x);
            prop_assert_eq!(entries(&now, bound), both);
            prop_assert_eq!(entries(&left, bound), x);
        }
    }
}
