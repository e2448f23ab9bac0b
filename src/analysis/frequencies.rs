//! How often the blocks of a program may run, as loops, calls and recursion tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::components::components;
use crate::analysis::worklist::reversed;
use crate::base::{Id, IdVec};

/// How often a loop, or a recursion, is taken to run for each time that it is come to.
const TRIPS: u64 = 8;

/// How often each block may run in one run of the program that begins at `entry`.
///
/// `next` are the blocks that come after each one in its function, behind a call where that returns to; `calls` the
/// blocks that call, and where the function begins. A block outside of all loops runs as often as its function, and for
/// each loop that it is in so many times more often. A function runs as often as the blocks that call it all together,
/// and one of a recursion so many times more often.
pub fn frequencies<I: Id + Ord>(entry: I, next: &IdVec<I, Vec<I>>, calls: &[(I, I)]) -> IdVec<I, u64> {
    let starts: BTreeMap<I, usize> = {
        let starts: BTreeSet<I> = calls.iter().map(|(_, start)| *start).chain([entry]).collect();
        starts.into_iter().enumerate().map(|(number, start)| (start, number)).collect()
    };
    let turns = turns(&starts, next);
    let bodies: Vec<BTreeSet<I>> = starts.keys().map(|start| body(*start, next)).collect();
    let mut callees: Vec<Vec<(usize, u64)>> = vec![vec![]; bodies.len()];
    for (from, start) in calls {
        for caller in (0..bodies.len()).filter(|function| bodies[*function].contains(from)) {
            callees[caller].push((starts[start], turns[*from]));
        }
    }
    // By function; callers come before the functions that they call.
    let mut often = vec![0_u64; bodies.len()];
    often[starts[&entry]] = 1;
    let successors = |function: usize| callees[function].iter().map(|(callee, _)| *callee).collect::<Vec<_>>();
    for members in components(bodies.len(), successors).into_iter().rev() {
        let recursive = members.len() > 1 || successors(members[0]).contains(&members[0]);
        let together = members.iter().fold(0, |sum: u64, function| sum.saturating_add(often[*function]));
        let each = if recursive { together.saturating_mul(TRIPS) } else { together };
        members.iter().for_each(|function| often[*function] = each);
        for (callee, turns) in members.iter().flat_map(|function| &callees[*function]) {
            if !members.contains(callee) {
                often[*callee] = often[*callee].saturating_add(each.saturating_mul(*turns));
            }
        }
    }
    let mut all = IdVec::filled(0_u64, next.len());
    for (body, often) in bodies.iter().zip(often) {
        body.iter().for_each(|block| all[*block] = all[*block].saturating_add(turns[*block].saturating_mul(often)));
    }
    all
}

/// The blocks of a function.
fn body<I: Id + Ord>(start: I, next: &IdVec<I, Vec<I>>) -> BTreeSet<I> {
    let (mut open, mut seen) = (vec![start], BTreeSet::from([start]));
    while let Some(block) = open.pop() {
        open.extend(next[block].iter().copied().filter(|to| seen.insert(*to)));
    }
    seen
}

/// How often each block may run for each time that its function does.
fn turns<I: Id + Ord>(starts: &BTreeMap<I, usize>, next: &IdVec<I, Vec<I>>) -> IdVec<I, u64> {
    let before = reversed(next.len(), next.iter().map(|(id, next)| (id, next.iter().copied())));
    let mut turns = IdVec::filled(1_u64, next.len());
    let mut open: Vec<Vec<I>> = vec![next.ids().collect()];
    while let Some(nodes) = open.pop() {
        let place: BTreeMap<I, usize> = nodes.iter().enumerate().map(|(i, b)| (*b, i)).collect();
        let successors = |n: usize| next[nodes[n]].iter().filter_map(|b| place.get(b).copied()).collect::<Vec<_>>();
        for cycle in components(nodes.len(), successors) {
            if cycle.len() == 1 && !next[nodes[cycle[0]]].contains(&nodes[cycle[0]]) {
                continue;
            }
            let members: BTreeSet<I> = cycle.into_iter().map(|n| nodes[n]).collect();
            for b in &members {
                turns[*b] = turns[*b].saturating_mul(TRIPS);
            }
            // The cycles inside are those that do not go through where it is entered.
            let entered = |b: &I| starts.contains_key(b) || before[*b].iter().any(|from| !members.contains(from));
            let inner: Vec<I> = members.iter().copied().filter(|b| !entered(b)).collect();
            // A cycle that nothing enters never runs.
            if inner.len() < members.len() {
                open.push(inner);
            }
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::BlockId;

    /// Of so many blocks, entered at the first.
    fn of(n: usize, edges: &[(usize, usize)], calls: &[(usize, usize)]) -> Vec<u64> {
        let id = BlockId::new;
        let mut next = IdVec::filled(Vec::new(), n);
        edges.iter().for_each(|(a, b)| next[id(*a)].push(id(*b)));
        let calls: Vec<_> = calls.iter().map(|(from, start)| (id(*from), id(*start))).collect();
        frequencies(id(0), &next, &calls).into_values().collect()
    }

    #[test]
    fn a_loop_in_a_loop_runs_as_often_again() {
        // 0, a loop of 1 to 4 with a loop of 2 and 3 in it, and 5 behind.
        let edges = [(0, 1), (1, 2), (2, 3), (3, 2), (3, 4), (4, 1), (4, 5)];
        assert_eq!(of(6, &edges, &[]), [1, TRIPS, TRIPS * TRIPS, TRIPS * TRIPS, TRIPS, 1]);
        assert_eq!(of(2, &[(0, 1), (1, 1)], &[]), [1, TRIPS]);
    }

    #[test]
    fn a_function_runs_as_often_as_it_is_called() {
        // 0, a loop of 1 that calls 3, and 2 that calls it once more: what calls it once stays outside of all loops.
        let edges = [(0, 1), (1, 1), (1, 2), (3, 4)];
        assert_eq!(of(5, &edges, &[(1, 3), (2, 3)]), [1, TRIPS, 1, TRIPS + 1, TRIPS + 1]);
    }

    #[test]
    fn a_recursion_is_a_loop_and_what_nothing_comes_to_never_runs() {
        // 1 and 2 call one another, 2 calls 3; 4 is of no function.
        assert_eq!(of(5, &[], &[(0, 1), (1, 2), (2, 1), (2, 3)]), [1, TRIPS, TRIPS, TRIPS, 0]);
    }
}
