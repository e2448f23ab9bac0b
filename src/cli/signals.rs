//! Signals: the first one asks a run to end in order with what it has, the second one ends the process. Before a run starts,
//! while its program is compiled, the first one does.
//!
//! Ctrl-C (SIGINT), SIGTERM, which batch systems send, and SIGHUP, unless it is ignored as under `nohup`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::{exit_at_once, note};

/// The last signal that came; that of Ctrl-C where the system does not tell.
static SIGNAL: AtomicI32 = AtomicI32::new(2);

/// Whether a run has started, so that there may be something to keep.
static RUNNING: AtomicBool = AtomicBool::new(true);

/// Whether a process that ends at once says so.
static TELLS: AtomicBool = AtomicBool::new(false);

/// Until [`run_starts`] there is nothing to keep: the first signal ends the process at once, whatever it is at.
pub(super) fn nothing_to_keep() {
    RUNNING.store(false, Ordering::Relaxed);
}

/// The flag of [`stop_on_interrupt`] for a command that reads and compiles its model before [`run_starts`]. A process that
/// ends at once says what that means.
pub(super) fn nothing_to_keep_yet() -> Arc<AtomicBool> {
    nothing_to_keep();
    TELLS.store(true, Ordering::Relaxed);
    stop_on_interrupt()
}

/// From now on a run ends in order.
pub(super) fn run_starts() {
    RUNNING.store(true, Ordering::Relaxed);
}

/// The exit code of a run that was stopped: 130 after Ctrl-C, 128 and the number of the signal after others.
pub(super) fn interrupted() -> ExitCode {
    ExitCode::from(code())
}

fn code() -> u8 {
    u8::try_from(128 + SIGNAL.load(Ordering::Relaxed)).unwrap_or(130)
}

/// A flag that the first signal sets, so that a run ends in order with what it has; the second one ends the process.
pub(super) fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let on_signal = move |signal: i32| {
        SIGNAL.store(signal, Ordering::Relaxed);
        if flag.swap(true, Ordering::Relaxed) || !RUNNING.load(Ordering::Relaxed) {
            if TELLS.load(Ordering::Relaxed) {
                note(if RUNNING.load(Ordering::Relaxed) {
                    "stopped at once: what is not written is lost"
                } else {
                    "stopped while the model was read and compiled: nothing was done"
                });
            }
            exit_at_once(code().into());
        }
    };
    if let Err(error) = system::listen(on_signal) {
        note(&format!("warning: Ctrl-C will not stop the run in order: {error}"));
    }
    stop
}

#[cfg(unix)]
mod system {
    use std::io::{self, PipeWriter, Read as _};
    use std::os::fd::{AsRawFd as _, RawFd};
    use std::sync::OnceLock;

    use nix::errno::Errno;
    use nix::libc;
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    /// Where the handler tells of a signal: open as long as the process lives.
    static TOLD: OnceLock<PipeWriter> = OnceLock::new();
    /// Its number, which is all that the handler needs.
    static TOLD_AT: OnceLock<RawFd> = OnceLock::new();

    extern "C" fn tell(signal: libc::c_int) {
        let errno = Errno::last();
        if let Some(pipe) = TOLD_AT.get() {
            let byte = signal as u8;
            // SAFETY: `write` may be called in a handler; it reads one byte of a local variable. The pipe is never closed.
            // Should it be full, so many signals wait that one more tells nothing.
            unsafe { libc::write(*pipe, (&raw const byte).cast(), 1) };
        }
        errno.set();
    }

    /// Calls `on_signal` on a thread of its own with the number of every signal.
    pub(super) fn listen(on_signal: impl Fn(i32) + Send + 'static) -> io::Result<()> {
        let (mut reader, writer) = io::pipe()?;
        let at = writer.as_raw_fd();
        if TOLD.set(writer).is_err() {
            return Err(io::Error::other("signals are listened to already"));
        }
        TOLD_AT.get_or_init(|| at);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut byte = [0];
            while reader.read_exact(&mut byte).is_ok() {
                on_signal(byte[0].into());
            }
        })?;
        let handler = SigAction::new(SigHandler::Handler(tell), SaFlags::SA_RESTART, SigSet::empty());
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the handler only reads an atomic cell that was set before, writes to a pipe, and restores `errno`.
            let before = unsafe { sigaction(signal, &handler) }?;
            if signal == Signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: this is what was there before.
                unsafe { sigaction(signal, &before) }?;
            }
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod system {
    /// Calls `on_signal` on a thread of its own at every Ctrl-C.
    pub(super) fn listen(on_signal: impl Fn(i32) + Send + 'static) -> Result<(), ctrlc::Error> {
        ctrlc::set_handler(move || on_signal(2))
    }
}
