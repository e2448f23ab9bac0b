//! Work that takes time: it runs on a thread of its own, without the lock of Python, and the caller looks for signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::failed;

/// How often the caller looks.
const LOOKS: Duration = Duration::from_millis(50);

/// What the work gives. An exception of a signal's handler, such as that of Ctrl-C, sets the flag that ends the work, and is
/// raised when it has ended.
pub(crate) fn watched<R: Send>(py: Python<'_>, stop: &AtomicBool, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            scope.spawn(move || send.send(work()));
            let mut raised = None;
            loop {
                match receive.recv_timeout(LOOKS) {
                    Ok(done) => return raised.map_or(Ok(done), Err),
                    Err(RecvTimeoutError::Disconnected) => return Err(failed("autobatch: the work panicked")),
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        raised = Python::attach(|py| py.check_signals()).err();
                        if raised.is_some() {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        })
    })
}
