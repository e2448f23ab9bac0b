//! Room for work that follows a tree by recursion.

use std::thread::{Scope, ScopedJoinHandle};

use super::work;

/// Levels of a tree that any thread's stack has room for.
pub const SHALLOW: usize = 500;
/// Stack that one level takes at most, in whatever walks it: frames are larger in builds without optimisation.
const LEVEL_BYTES: usize = if cfg!(debug_assertions) { 24 << 10 } else { 8 << 10 };
/// The least stack of a thread that is made for deep work. It is address space, not memory.
const LEAST_BYTES: usize = 256 << 20;

/// Does work on a tree of so many levels, on a stack that has room for it. Its own thread's stack is taken where that is deep enough.
pub fn with_room<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> T {
    if levels <= SHALLOW { work() } else { on_large_stack(levels, work) }
}

/// The same, on a stack of its own in any case.
pub fn on_large_stack<T: Send>(levels: usize, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| joined(start(scope, levels, run)))
}

/// Does two things at the same time, each on a stack of its own.
pub fn both_on_large_stacks<A: Send, B: Send>(
    levels: usize,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    std::thread::scope(|scope| {
        let (first, second) = (start(scope, levels, first), start(scope, levels, second));
        (joined(first), joined(second))
    })
}

/// Starts work, on whose behalf this thread is asked to stop, and which is counted as its own.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    levels: usize,
    run: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, (T, u64)> {
    let stop = work::flag();
    std::thread::Builder::new()
        .name("deep".into())
        .stack_size(levels.saturating_mul(LEVEL_BYTES).max(LEAST_BYTES))
        .spawn_scoped(scope, || {
            work::listen_to(stop);
            (run(), work::done())
        })
        .expect("the system can start a thread")
}

fn joined<T>(thread: ScopedJoinHandle<'_, (T, u64)>) -> T {
    match thread.join() {
        Ok((result, done)) => {
            work::add(done as usize);
            result
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
