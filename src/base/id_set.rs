//! Sets of ids as bit sets.

use std::fmt;
use std::marker::PhantomData;

use crate::base::Id;

const BITS: usize = u64::BITS as usize;

/// A set of ids below a bound that is fixed when the set is made.
#[derive(Clone, PartialEq, Eq)]
pub struct IdSet<I> {
    words: Vec<u64>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id> IdSet<I> {
    /// The empty set for ids below `bound`.
    pub fn new(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(BITS)], id: PhantomData }
    }
    /// Adds an id; returns whether it was not in the set. Panics when it is not below the bound (rounded up).
    pub fn insert(&mut self, id: I) -> bool {
        let word = &mut self.words[id.index() / BITS];
        let bit = 1 << (id.index() % BITS);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
    /// Takes an id out.
    pub fn remove(&mut self, id: I) {
        if let Some(word) = self.words.get_mut(id.index() / BITS) {
            *word &= !(1 << (id.index() % BITS));
        }
    }
    /// Whether the id is in the set.
    pub fn contains(&self, id: I) -> bool {
        self.words.get(id.index() / BITS).is_some_and(|word| word >> (id.index() % BITS) & 1 == 1)
    }
    /// Adds all ids of a set with the same bound; returns whether the set grew.
    pub fn union_with(&mut self, other: &Self) -> bool {
        let mut grew = false;
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            grew |= *more & !*word != 0;
            *word |= more;
        }
        grew
    }
    /// Keeps the ids that another set with the same bound has too; returns whether the set shrank.
    pub fn intersect_with(&mut self, other: &Self) -> bool {
        let mut shrank = false;
        for (word, kept) in self.words.iter_mut().zip(&other.words) {
            shrank |= *word & !*kept != 0;
            *word &= kept;
        }
        shrank
    }
    /// Takes out the ids of another set with the same bound.
    pub fn subtract(&mut self, other: &Self) {
        for (word, gone) in self.words.iter_mut().zip(&other.words) {
            *word &= !gone;
        }
    }
    /// Whether another set with the same bound has an id of this one.
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }
    /// Whether no id is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }
    /// The ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            (0..BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| I::new(i * BITS + bit))
        })
    }
}

impl<I: Id> fmt::Debug for IdSet<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
