//! Parallel copies as a sequence: all operands are read before any of the variables is written, so that swaps and
//! rotations of arguments just work. One more variable for each cycle.

use std::collections::{BTreeSet, HashMap};

use crate::base::work;
use crate::stack::{Operand, VarId};

/// One copy of the sequence: the variable that is written and what it gets.
pub(super) type Copy = (VarId, Operand);

/// Orders `copies`; no variable is written twice by them. Where they form a cycle, `spare` makes a variable like the one
/// it is given, which takes over its old value.
pub(super) fn sequence(mut copies: Vec<Copy>, mut spare: impl FnMut(VarId) -> VarId) -> Vec<Copy> {
    copies.retain(|(dst, src)| src.var() != Some(*dst));
    let place: HashMap<VarId, usize> = copies.iter().enumerate().map(|(i, (dst, _))| (*dst, i)).collect();
    let mut readers: HashMap<VarId, BTreeSet<usize>> = HashMap::new();
    for (i, (_, src)) in copies.iter().enumerate() {
        if let Some(v) = src.var() {
            readers.entry(v).or_default().insert(i);
        }
    }
    let mut open: BTreeSet<usize> = (0..copies.len()).collect();
    // Those whose variables nobody reads any more.
    let mut free: BTreeSet<usize> = open.iter().copied().filter(|i| !readers.contains_key(&copies[*i].0)).collect();
    let mut ordered = Vec::with_capacity(copies.len());
    while let Some(first) = open.first().copied() {
        work::add(1);
        if let Some(next) = free.pop_first() {
            open.remove(&next);
            let (dst, src) = copies[next];
            ordered.push((dst, src));
            let Some(of) = src.var() else { continue };
            let left = readers.entry(of).or_default();
            left.remove(&next);
            if let (true, Some(i)) = (left.is_empty(), place.get(&of).filter(|i| open.contains(i))) {
                free.insert(*i);
            }
        } else {
            let blocked = copies[first].0;
            let saved = spare(blocked);
            ordered.push((saved, Operand::Var(blocked)));
            let moved = readers.remove(&blocked).unwrap_or_default();
            moved.iter().for_each(|i| copies[*i].1 = Operand::Var(saved));
            readers.insert(saved, moved);
            free.insert(first);
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::Id;

    proptest! {
        #[test]
        fn the_sequence_does_what_the_parallel_copy_says(sources in prop::collection::vec(0_usize..6, 6)) {
            let copies: Vec<Copy> = (sources.iter().enumerate())
                .map(|(d, s)| (VarId::new(d), Operand::Var(VarId::new(*s))))
                .collect();
            let mut spares = 5;
            let ordered = sequence(copies, |_| {
                spares += 1;
                VarId::new(spares)
            });
            let mut values: BTreeMap<VarId, usize> = (0..6).map(|i| (VarId::new(i), i)).collect();
            for (dst, src) in ordered {
                let value = values[&src.var().expect("only variables")];
                values.insert(dst, value);
            }
            for (d, s) in sources.iter().enumerate() {
                prop_assert_eq!(values[&VarId::new(d)], *s);
            }
        }
    }

    #[test]
    fn a_swap_needs_one_spare_variable() {
        let [a, b, t] = [0, 1, 2].map(VarId::new);
        let ordered = sequence(vec![(a, Operand::Var(b)), (b, Operand::Var(a))], |_| t);
        assert_eq!(ordered, [(t, Operand::Var(a)), (a, Operand::Var(b)), (b, Operand::Var(t))]);
    }
}
