//! How often the blocks of a program may run, as loops, calls and recursion tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::components::components;
use crate::analysis::worklist::reversed;
use crate::base::{Id, IdVec, work};

/// How often a loop, or a recursion, is taken to run for each time that it is come to.
const TRIPS: u64 = 8;

/// How often each block may run in one run of the program that begins at `entry`.
///
/// `next` are the blocks that come after each one in its function, behind a call where that returns to; `calls` the
/// blocks that call, and where the function begins. A block outside of all loops runs as often as its function, and for
/// each loop that it is in so many times more often. A function runs as often as the blocks that call it all together,
/// and one of a recursion so many times more often.
pub fn frequencies<I: Id + Ord>(entry: I, next: &IdVec<I, Vec<I>>, calls: &[(I, I)]) -> IdVec<I, u64> {
    let starts: BTreeSet<I> = calls.iter().map(|(_, start)| *start).chain([entry]).collect();
    let starts: BTreeMap<I, usize> = starts.into_iter().enumerate().map(|(number, start)| (start, number)).collect();
    // Functions may have blocks in common.
    let mut functions_of: IdVec<I, Vec<usize>> = IdVec::filled(vec![], next.len());
    for (start, function) in &starts {
        blocks_from(*start, next).into_iter().for_each(|block| functions_of[block].push(*function));
    }
    let turns = turns_in_function(&starts, next);
    let mut callees: Vec<Vec<(usize, u64)>> = vec![vec![]; starts.len()];
    for (from, start) in calls {
        functions_of[*from].iter().for_each(|caller| callees[*caller].push((starts[start], turns[*from])));
    }
    let runs = runs_of_functions(starts[&entry], &callees);
    let often = functions_of.iter().map(|(block, functions)| {
        let runs = functions.iter().fold(0, |sum: u64, function| sum.saturating_add(runs[*function]));
        runs.saturating_mul(turns[block])
    });
    often.collect()
}

/// How often each function runs. `callees`: the functions that each one calls, and how often for each of its runs.
fn runs_of_functions(entry: usize, callees: &[Vec<(usize, u64)>]) -> Vec<u64> {
    let mut runs = vec![0_u64; callees.len()];
    runs[entry] = 1;
    let called_by = |function: usize| callees[function].iter().map(|(callee, _)| *callee).collect::<Vec<_>>();
    // Callers come before the functions that they call.
    for members in components(callees.len(), called_by).into_iter().rev() {
        let is_member = |function: &usize| members.binary_search(function).is_ok();
        let recursive = members.len() > 1 || called_by(members[0]).contains(&members[0]);
        let together = members.iter().fold(0, |sum: u64, function| sum.saturating_add(runs[*function]));
        let each = if recursive { together.saturating_mul(TRIPS) } else { together };
        for function in &members {
            runs[*function] = each;
            work::add(callees[*function].len());
            for (callee, turns) in callees[*function].iter().filter(|(callee, _)| !is_member(callee)) {
                runs[*callee] = runs[*callee].saturating_add(each.saturating_mul(*turns));
            }
        }
    }
    runs
}

/// The blocks of a function.
fn blocks_from<I: Id + Ord>(start: I, next: &IdVec<I, Vec<I>>) -> BTreeSet<I> {
    let (mut open, mut seen) = (vec![start], BTreeSet::from([start]));
    while let Some(block) = open.pop() {
        work::add(1);
        open.extend(next[block].iter().copied().filter(|to| seen.insert(*to)));
    }
    seen
}

/// How often each block may run for each time that its function does. A function that begins in a loop of another
/// enters that loop there.
fn turns_in_function<I: Id + Ord>(starts: &BTreeMap<I, usize>, next: &IdVec<I, Vec<I>>) -> IdVec<I, u64> {
    let before = reversed(next.len(), next.iter().map(|(id, next)| (id, next.iter().copied())));
    let mut turns = IdVec::filled(1_u64, next.len());
    let mut open: Vec<Vec<I>> = vec![next.ids().collect()];
    while let Some(nodes) = open.pop() {
        work::add(nodes.len());
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

    #[test]
    fn a_block_of_two_functions_runs_as_often_as_both() {
        // 0 calls 1 and 3 once each; both go on at 2, which is in a loop with 1.
        assert_eq!(of(4, &[(1, 2), (2, 1), (3, 2)], &[(0, 1), (0, 3)])[2], 2 * TRIPS);
    }

    #[test]
    fn a_deep_nest_runs_as_often_as_can_be_told() {
        // Each loop begins at a block and ends at the last one.
        let edges: Vec<_> = (0..29).map(|at| (at, at + 1)).chain((0..29).map(|at| (29, at))).collect();
        let often = of(30, &edges, &[]);
        assert!(often.is_sorted() && often[29] == u64::MAX, "{often:?}");
    }
}
