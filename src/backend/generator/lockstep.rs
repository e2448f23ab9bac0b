//! Stacks that go in lockstep: they are equally high wherever a function begins, so one height serves them all.

use crate::backend::generator::scope::Scope;
use crate::base::IdVec;
use crate::plan::{Origin, StackId};
use crate::unit::OpKind;

/// By stack: the first of those that go in lockstep with it.
pub(super) type Lockstep = IdVec<StackId, usize>;

/// Numbers of the stacks, the same for those that are always equally high wherever a run begins: they are pushed and
/// popped in the same order in each run. Runs are given as those of each block, as steps that do operations.
pub(super) fn lockstep<'a>(
    stacks: usize,
    blocks: impl Iterator<Item = (&'a Scope<'a>, Vec<&'a [Origin]>)>,
) -> Lockstep {
    let mut histories: IdVec<StackId, Vec<(usize, bool)>> = IdVec::filled(Vec::new(), stacks);
    let mut run = 0;
    for (scope, runs) in blocks {
        for steps in runs {
            let done = steps.iter().flat_map(|origin| match origin {
                Origin::Ops(ops) => ops.as_slice(),
                Origin::Copy(_) => &[],
            });
            for at in done {
                match scope.ops[*at].kind {
                    OpKind::Push { stack, .. } => histories[scope.storage.stack(stack)].push((run, true)),
                    OpKind::Pop { stack, .. } => histories[scope.storage.stack(stack)].push((run, false)),
                    _ => {}
                }
            }
            run += 1;
        }
    }
    let first = |history| histories.values().position(|h| h == history).expect("it is one of them");
    histories.values().map(first).collect()
}
