//! Ends work that takes longer than a moment. A thread looks at all that is under way, some hundred times a second, for as
//! long as there was such work in the last second: to begin and to end costs the work next to nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From one look to the next. What is found by two of them has taken so long at least.
const LOOKS: Duration = Duration::from_millis(5);
/// After so many looks that find nothing the thread ends.
const IDLE: u32 = 200;

/// What is under way.
#[derive(Default)]
struct State {
    works: Vec<Work>,
    /// The process whose thread looks; a process that was forked of it has none.
    looks_in: Option<u32>,
    /// The number of the next work.
    next: u64,
}

struct Work {
    number: u64,
    stop: Arc<AtomicBool>,
    was_seen: bool,
}

static STATE: Mutex<State> = Mutex::new(State { works: Vec::new(), looks_in: None, next: 0 });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work that is under way; it is over when this is dropped.
pub(crate) struct UnderWay(u64);

impl Drop for UnderWay {
    fn drop(&mut self) {
        state().works.retain(|work| work.number != self.0);
    }
}

/// Work begins; the flag that ends it is set when it has taken longer than a moment. `None` where there is no thread to
/// look at it, or others are at it: a process that was forked while some were would wait for ever.
pub(crate) fn begin(stop: &Arc<AtomicBool>) -> Option<UnderWay> {
    let mut state = STATE.try_lock().ok()?;
    let here = std::process::id();
    if state.looks_in != Some(here) {
        // What was under way when the process was forked is not under way here.
        state.works.clear();
        std::thread::Builder::new().name("autobatch-sentry".into()).spawn(look).ok()?;
        state.looks_in = Some(here);
    }
    let number = state.next;
    state.next += 1;
    state.works.push(Work { number, stop: Arc::clone(stop), was_seen: false });
    Some(UnderWay(number))
}

fn look() {
    let mut idle = 0;
    loop {
        std::thread::sleep(LOOKS);
        let mut state = state();
        idle = if state.works.is_empty() { idle + 1 } else { 0 };
        if idle > IDLE {
            state.looks_in = None;
            return;
        }
        for work in &mut state.works {
            if work.was_seen {
                work.stop.store(true, Ordering::Relaxed);
            }
            work.was_seen = true;
        }
    }
}
