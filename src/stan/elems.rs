//! Lists of elements. Copies share what they have in common: where lanes decide about a branch, both arms have all
//! variables, and change few elements of long arrays.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::value::Elem;

/// Elements of which a copy that changes one copies this many.
const CHUNK: usize = 64;

/// A list of elements.
#[derive(Clone, Debug)]
pub(super) enum Elems {
    Few(Arc<Vec<Elem>>),
    Many(Arc<Many>),
}

/// A list of more than one chunk.
#[derive(Clone, Debug)]
pub(super) struct Many {
    chunks: Vec<Arc<Vec<Elem>>>,
    /// All of them side by side, once somebody has asked.
    list: OnceLock<Arc<Vec<Elem>>>,
}

impl From<Vec<Elem>> for Elems {
    fn from(elems: Vec<Elem>) -> Self {
        if elems.len() <= CHUNK {
            return Elems::Few(Arc::new(elems));
        }
        let chunks = elems.chunks(CHUNK).map(|chunk| Arc::new(chunk.to_vec())).collect();
        Elems::Many(Arc::new(Many { chunks, list: OnceLock::from(Arc::new(elems)) }))
    }
}

impl Elems {
    pub(super) fn get(&self, at: usize) -> Elem {
        match self {
            Elems::Few(elems) => elems[at],
            Elems::Many(many) => many.chunks[at / CHUNK][at % CHUNK],
        }
    }

    /// All of them side by side.
    pub(super) fn list(&self) -> &Arc<Vec<Elem>> {
        match self {
            Elems::Few(elems) => elems,
            Elems::Many(many) => {
                many.list.get_or_init(|| Arc::new(many.chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect()))
            }
        }
    }

    pub(super) fn set(&mut self, at: usize, elem: Elem) {
        match self {
            Elems::Few(elems) => Arc::make_mut(elems)[at] = elem,
            Elems::Many(many) => {
                let many = Arc::make_mut(many);
                many.list.take();
                Arc::make_mut(&mut many.chunks[at / CHUNK])[at % CHUNK] = elem;
            }
        }
    }

    /// Where two lists of one length differ.
    pub(super) fn differing(&self, other: &Elems) -> Vec<usize> {
        let among = |range: Range<usize>| range.filter(|at| self.get(*at) != other.get(*at));
        match (self, other) {
            (Elems::Few(a), Elems::Few(b)) if Arc::ptr_eq(a, b) => Vec::new(),
            (Elems::Few(a), _) => among(0..a.len()).collect(),
            (Elems::Many(a), Elems::Many(b)) => {
                let chunks = a.chunks.iter().zip(&b.chunks).enumerate().filter(|(_, (a, b))| !Arc::ptr_eq(a, b));
                chunks.flat_map(|(i, (chunk, _))| among(i * CHUNK..i * CHUNK + chunk.len())).collect()
            }
            (Elems::Many(_), Elems::Few(_)) => unreachable!("lists of one length are of one kind"),
        }
    }
}

impl PartialEq for Elems {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Elems::Few(a), Elems::Few(b)) => Arc::ptr_eq(a, b) || a == b,
            (Elems::Many(a), Elems::Many(b)) => {
                let same = |(a, b): (&Arc<Vec<Elem>>, &Arc<Vec<Elem>>)| Arc::ptr_eq(a, b) || a == b;
                Arc::ptr_eq(a, b) || a.chunks.len() == b.chunks.len() && a.chunks.iter().zip(&b.chunks).all(same)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_differ_where_one_was_changed() {
        for n in [1, CHUNK, CHUNK + 1, 5 * CHUNK + 3] {
            let before = Elems::from((0..n as i64).map(Elem::Int).collect::<Vec<_>>());
            let mut after = before.clone();
            assert_eq!(before.differing(&after), Vec::<usize>::new());
            let places = [0, n / 2, n - 1];
            places.iter().for_each(|at| after.set(*at, Elem::Int(-7)));
            let mut all = places.to_vec();
            all.dedup();
            assert_eq!(before.differing(&after), all);
            assert!(before != after && after == after.clone());
            for at in 0..n {
                let changed = if all.contains(&at) { -7 } else { at as i64 };
                assert_eq!((before.get(at), after.get(at)), (Elem::Int(at as i64), Elem::Int(changed)));
                assert_eq!((before.list()[at], after.list()[at]), (before.get(at), after.get(at)));
            }
        }
    }
}
