//! A process that is stopped while it runs, at a moment that it tells itself: no test guesses how long something takes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A process whose standard error is read line by line as it comes; what it prints is kept.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    said: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (send, lines) = channel();
        // It ends with the pipe, that is when all are gone that could write to it.
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines, said: String::new() }
    }

    /// Waits until it has said these words.
    pub(crate) fn wait_for(&mut self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.said.contains(words) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said += &(line + "\n"),
                Err(RecvTimeoutError::Timeout) => panic!("it never says {words:?}: {}", self.said),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {words:?}: {}", self.said),
            }
        }
    }

    /// Sends it a signal: `INT`, `TERM`, …
    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(killed.expect("there is kill").success());
    }

    /// Its output, and all that it said.
    pub(crate) fn end(mut self) -> (Output, String) {
        let output = self.child.wait_with_output().expect("it ended");
        for line in self.lines.iter() {
            self.said += &(line + "\n");
        }
        (output, self.said)
    }
}
