//! What the compiler does on this thread: how much, how long each stage takes, and whether it should stop.
//!
//! Work is a number that does not depend on the machine: nodes of sets and maps that were touched, and instructions
//! that passes and analyses looked at. Tests hold the growth of compile time to it. Since everything that may take long
//! counts its work, this is also where a compilation looks whether it is still wanted.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How much work is done between two looks at the flag that stops it: far less than a millisecond's.
const BETWEEN_LOOKS: u64 = 1024;

/// What a stage of the compiler took.
#[derive(Clone, Debug)]
pub struct StageCost {
    /// Its name.
    pub name: &'static str,
    /// How long it took.
    pub time: Duration,
    /// The work that it did.
    pub work: u64,
    /// Instructions and terminators of what it gave, where that has any.
    pub insts: Option<usize>,
}

/// A compilation that was stopped from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

struct State {
    done: Cell<u64>,
    /// The work at which the flag is looked at again.
    look: Cell<u64>,
    stop: RefCell<Option<Arc<AtomicBool>>>,
    stages: RefCell<Option<Vec<StageCost>>>,
}

thread_local! {
    static STATE: State = const {
        State { done: Cell::new(0), look: Cell::new(u64::MAX), stop: RefCell::new(None), stages: RefCell::new(None) }
    };
}

/// Adds to the work of this thread. Inside of [`stoppable`] it does not return when the flag is set.
#[inline]
pub fn add(steps: usize) {
    STATE.with(|state| {
        let done = state.done.get().wrapping_add(steps as u64);
        state.done.set(done);
        if done >= state.look.get() {
            look(state, done);
        }
    });
}

#[cold]
fn look(state: &State, done: u64) {
    state.look.set(done.saturating_add(BETWEEN_LOOKS));
    let stopped = state.stop.borrow().as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
    if stopped {
        // No panic: nothing is printed, and `stoppable` takes it.
        resume_unwind(Box::new(Stopped));
    }
}

/// The work of this thread so far.
#[must_use]
pub fn done() -> u64 {
    STATE.with(|state| state.done.get())
}

/// Compiles until a flag is set, which is looked at whenever some work is done. What is stopped unwinds to here.
///
/// # Errors
/// [`Stopped`] when the flag was set.
pub fn stoppable<T>(stop: &Arc<AtomicBool>, compile: impl FnOnce() -> T) -> Result<T, Stopped> {
    let before = listen_to(Some(Arc::clone(stop)));
    // What is half made is dropped with the closure: nobody sees it.
    let result = catch_unwind(AssertUnwindSafe(compile));
    listen_to(before);
    result.map_err(|payload| match payload.downcast::<Stopped>() {
        Ok(stopped) => *stopped,
        Err(panic) => resume_unwind(panic),
    })
}

/// The flag that stops the work of this thread, if there is one: for threads that do a part of it.
pub(super) fn flag() -> Option<Arc<AtomicBool>> {
    STATE.with(|state| state.stop.borrow().clone())
}

/// Sets the flag that stops the work of this thread; gives the one before.
pub(super) fn listen_to(stop: Option<Arc<AtomicBool>>) -> Option<Arc<AtomicBool>> {
    STATE.with(|state| {
        state.look.set(if stop.is_some() { state.done.get() } else { u64::MAX });
        state.stop.replace(stop)
    })
}

/// From now on this thread notes what each stage takes.
pub fn note_stages() {
    STATE.with(|state| state.stages.replace(Some(Vec::new())));
}

/// What the stages took since [`note_stages`], in their order.
#[must_use]
pub fn stages() -> Vec<StageCost> {
    STATE.with(|state| state.stages.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default())
}

/// A stage of the compiler, and how many instructions its result has.
pub fn stage<T>(name: &'static str, insts: impl FnOnce(&T) -> Option<usize>, run: impl FnOnce() -> T) -> T {
    if STATE.with(|state| state.stages.borrow().is_none()) {
        return run();
    }
    let (start, before) = (Instant::now(), done());
    let result = run();
    let (time, work) = (start.elapsed(), done() - before);
    let stage = StageCost { name, time, work, insts: insts(&result) };
    STATE.with(|state| state.stages.borrow_mut().iter_mut().for_each(|stages| stages.push(stage.clone())));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_at_the_next_look_after_the_flag_is_set() {
        let stop = Arc::new(AtomicBool::new(false));
        assert_eq!(stoppable(&stop, || add(1)), Ok(()));
        let mut steps = 0;
        let flag = Arc::clone(&stop);
        let result = stoppable(&stop, || {
            loop {
                steps += 1;
                if steps == 5 * BETWEEN_LOOKS {
                    flag.store(true, Ordering::Relaxed);
                }
                add(1);
            }
        });
        assert_eq!(result, Err(Stopped));
        assert!((5 * BETWEEN_LOOKS..=6 * BETWEEN_LOOKS).contains(&steps), "{steps}");
        // and the thread works on
        add(1);
    }

    #[test]
    fn other_panics_go_through() {
        let stop = Arc::new(AtomicBool::new(false));
        let panics = catch_unwind(|| stoppable(&stop, || resume_unwind(Box::new("another"))));
        assert_eq!(panics.unwrap_err().downcast_ref(), Some(&"another"));
    }
}
