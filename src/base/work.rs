//! How much work the compiler has done on this thread, as a number that does not depend on the machine: nodes of sets and maps
//! that were touched, and instructions that passes and analyses looked at. Tests hold the growth of compile time to it.

use std::cell::Cell;

thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// Adds to the work of this thread.
#[inline]
pub fn add(steps: usize) {
    DONE.with(|done| done.set(done.get().wrapping_add(steps as u64)));
}

/// The work of this thread so far.
#[must_use]
pub fn done() -> u64 {
    DONE.with(Cell::get)
}
