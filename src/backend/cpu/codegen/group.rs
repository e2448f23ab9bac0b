//! Processes that are ended with all that they have started: a compiler is a driver of several programs. And what a
//! process of ours that ends at once, as on a second Ctrl-C, must not leave behind.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A process that leads a group, in which those are that it starts.
#[derive(Debug)]
pub(super) struct Group {
    leader: Child,
}

/// What there is to end and to remove.
#[derive(Debug)]
struct Left {
    leaders: Vec<u32>,
    folders: Vec<PathBuf>,
}

static LEFT: Mutex<Left> = Mutex::new(Left { leaders: Vec::new(), folders: Vec::new() });

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Group {
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut left = left();
        let leader = command.spawn()?;
        left.leaders.push(leader.id());
        Ok(Self { leader })
    }

    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout.take()
    }

    /// How the leader ended, if it has.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.leader.try_wait()
    }

    /// Ends all of them, and waits for the leader. It may have ended by itself in between: that does not matter.
    pub(super) fn end(&mut self) {
        // Its number is not another's before it was waited for.
        kill(self.leader.id());
        let _ = self.leader.kill();
        let _ = self.leader.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let id = self.leader.id();
        left().leaders.retain(|leader| *leader != id);
    }
}

fn kill(leader: u32) {
    #[cfg(unix)]
    if let Ok(leader) = i32::try_from(leader) {
        use nix::sys::signal::{Signal, killpg};
        let _ = killpg(nix::unistd::Pid::from_raw(leader), Signal::SIGKILL);
    }
    #[cfg(not(unix))]
    let _ = leader;
}

/// A folder that is removed if the process ends at once.
pub(super) fn removed_at_exit(folder: &Path) {
    left().folders.push(folder.to_owned());
}

/// It is removed.
pub(super) fn is_removed(folder: &Path) {
    left().folders.retain(|other| other != folder);
}

/// The process ends at once: ends all compilers and removes their folders.
pub fn end_all() {
    let tries = || std::iter::repeat_n(Duration::from_millis(10), 10);
    // A thread that starts a compiler may hang: the end does not wait for it.
    let taken = tries().find_map(|pause| match LEFT.try_lock() {
        Ok(left) => Some(left),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::thread::sleep(pause);
            None
        }
    });
    let Some(left) = taken else { return };
    left.leaders.iter().for_each(|leader| kill(*leader));
    for folder in &left.folders {
        // One that is just being ended may make files in it yet. What cannot be removed is left to whoever cleans up.
        for pause in tries() {
            if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
                break;
            }
            std::thread::sleep(pause);
        }
    }
    // Nothing more is started or made.
    std::mem::forget(left);
}
