//! Work without the lock of Python. What takes time runs on a thread of its own, and the caller looks for signals: to
//! start it takes longer than many a call, so that what is most likely short is tried without it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::failed;
use crate::sentry;

/// How often the caller looks.
const LOOKS: Duration = Duration::from_millis(50);

/// What the work gives; an exception where it panics.
fn caught<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        format!("a fault of autobatch, please report it: {}", text.unwrap_or("no words"))
    })
}

/// What work of a moment gives.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| caught(work)).map_err(|why| failed(py, &why))
}

/// What work gives that is most likely over in a moment, on the thread of the caller; nothing where it took longer and was
/// ended by its flag, which is as it was then.
pub(crate) fn tried<R: Send>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> R + Send,
) -> PyResult<Option<R>> {
    let done = detached(py, || sentry::begin(stop).map(|_under_way| work()))?;
    Ok(done.filter(|_| !stop.swap(false, Ordering::Relaxed)))
}

/// What the work gives. An exception of a signal's handler, such as that of Ctrl-C, sets the flag that ends the work, and is
/// raised when it has ended.
pub(crate) fn watched<R: Send>(py: Python<'_>, stop: &AtomicBool, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            scope.spawn(move || send.send(caught(work)));
            let mut raised = None;
            loop {
                match receive.recv_timeout(LOOKS) {
                    Ok(done) => return raised.map_or(Ok(done), Err),
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        raised = Python::attach(|py| py.check_signals()).err();
                        if raised.is_some() {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    // The thread sends before it ends.
                    Err(_) => {}
                }
            }
        })
    });
    done?.map_err(|why| failed(py, &why))
}
