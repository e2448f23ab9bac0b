//! Other systems: which there are, where they are installed, and how one is run.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::cell::{Cell, Detail, Measured, Series};
use super::model::{Kind, Model};
use super::own::ess;
use super::precision_name;
use super::protocol::{Answer, Done, PeerJob, PeerRequest};
use super::report::Skipped;
use super::{Comparison, MAX_TREEDEPTH};
use crate::program::{Error, ErrorKind};
use crate::types::{Array, Precision};

/// Another system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// Its ways of running.
    pub engines: &'static [PeerEngine],
    /// What is run.
    pub program: PeerProgram,
    /// Whether its rate depends on the number of chains. One that runs chain after chain is given no more than one a
    /// thread.
    pub batches: bool,
    /// What `benches/compare/install` calls it.
    pub installed_as: &'static str,
}

/// A way of running of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerEngine {
    /// Its name in reports.
    pub name: &'static str,
    /// Models that it runs.
    pub models: &'static [&'static str],
    /// Whether it runs Stan programs.
    pub stan: bool,
    /// Precisions that it runs in.
    pub precisions: &'static [Precision],
}

/// What is run of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerProgram {
    /// A script of `benches/compare` in the virtual environment of the peer.
    Script(&'static str),
    /// A program in the folder `bin` of the peers.
    Binary(&'static str),
}

const POSTERIORS: &[&str] = &["logistic", "eight_schools", "normal10", "normal100", "correlated10", "correlated100"];
/// These, and the regressions that ship with their data.
const POSTERIORS_AND_REGRESSIONS: &[&str] =
    &["logistic", "eight_schools", "normal10", "normal100", "correlated10", "correlated100", "kidscore", "wells"];
const CONTROL: &[&str] = &["collatz", "fib"];
/// What is written in C: the programs of control flow, and those of `benches/ordinary`.
const IN_C: &[&str] = &[
    "collatz",
    "fib",
    "ackermann",
    "automaton",
    "bellman_ford",
    "bisection",
    "edit_distance",
    "event_queue",
    "gauss",
    "hash_table",
    "insertion_sort",
    "knapsack",
    "life",
    "mandelbrot",
    "merge_sort",
    "miller_rabin",
    "queens",
    "quicksort",
    "range_queries",
    "ray_marcher",
    "rk45",
    "sieve",
    "sudoku",
];
const ALL: &[&str] =
    &["logistic", "eight_schools", "normal10", "normal100", "correlated10", "correlated100", "collatz", "fib"];
const BOTH: &[Precision] = &[Precision::F64, Precision::F32];
const F64: &[Precision] = &[Precision::F64];

const fn posteriors_and_regressions(name: &'static str) -> PeerEngine {
    PeerEngine { name, models: POSTERIORS_AND_REGRESSIONS, stan: false, precisions: F64 }
}

const fn posteriors(name: &'static str, precisions: &'static [Precision]) -> PeerEngine {
    PeerEngine { name, models: POSTERIORS, stan: false, precisions }
}

/// All peers.
pub const PEERS: &[Peer] = &[
    Peer {
        name: "stan",
        engines: &[
            PeerEngine { stan: true, ..posteriors_and_regressions("plain") },
            PeerEngine { stan: true, ..posteriors_and_regressions("plain native") },
            PeerEngine { name: "glm", models: &["logistic"], stan: false, precisions: F64 },
            PeerEngine { name: "glm native", models: &["logistic"], stan: false, precisions: F64 },
        ],
        program: PeerProgram::Script("stan_peer.py"),
        batches: false,
        installed_as: "stan",
    },
    Peer {
        name: "stanli",
        engines: &[PeerEngine { name: "interpreter", models: &[], stan: true, precisions: F64 }],
        program: PeerProgram::Script("stanli_peer.py"),
        batches: false,
        installed_as: "stanli",
    },
    Peer {
        name: "numpyro",
        engines: &[posteriors("vectorized", BOTH)],
        program: PeerProgram::Script("numpyro_peer.py"),
        batches: true,
        installed_as: "jax",
    },
    Peer {
        name: "blackjax",
        engines: &[posteriors("vmap", BOTH)],
        program: PeerProgram::Script("blackjax_peer.py"),
        batches: true,
        installed_as: "jax",
    },
    Peer {
        name: "nuts-rs",
        engines: &[posteriors_and_regressions("native gradient")],
        program: PeerProgram::Binary("nuts-rs-peer"),
        batches: false,
        installed_as: "nuts-rs",
    },
    Peer {
        name: "tfp",
        engines: &[
            PeerEngine { name: "auto_batching", models: ALL, stan: false, precisions: BOTH },
            PeerEngine {
                name: "auto_batching graph",
                models: &["logistic", "collatz", "fib"],
                stan: false,
                precisions: BOTH,
            },
            posteriors("iterative", BOTH),
        ],
        program: PeerProgram::Script("tfp_peer.py"),
        batches: true,
        installed_as: "tfp",
    },
    Peer {
        name: "jax",
        engines: &[PeerEngine { name: "vmap", models: CONTROL, stan: false, precisions: BOTH }],
        program: PeerProgram::Script("jax_control_peer.py"),
        batches: true,
        installed_as: "jax",
    },
    Peer {
        name: "native",
        engines: &[
            PeerEngine { name: "rust", models: CONTROL, stan: false, precisions: BOTH },
            PeerEngine { name: "c", models: IN_C, stan: false, precisions: BOTH },
        ],
        program: PeerProgram::Binary("native-peer"),
        batches: true,
        installed_as: "native",
    },
];

/// A peer to compare with, or one of its ways of running: `stan`, `stan:glm native`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Against {
    /// The peer.
    pub peer: &'static Peer,
    engine: Option<&'static PeerEngine>,
}

impl Against {
    /// Reads `stan` or `stan:glm-native`; in the name of a way of running a hyphen, an underscore and a space are the same.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] for what there is not.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = |message| Err(Error::new(ErrorKind::Option, message));
        let (name, engine) = text.split_once(':').map_or((text, None), |(name, engine)| (name, Some(engine)));
        let Some(peer) = PEERS.iter().find(|p| p.name == name) else {
            let names: Vec<&str> = PEERS.iter().map(|p| p.name).collect();
            return refused(format!("no system `{name}`: there is {}", names.join(", ")));
        };
        let Some(wanted) = engine else { return Ok(Self { peer, engine: None }) };
        match peer.engines.iter().find(|e| e.argument() == hyphenated(wanted)) {
            Some(engine) => Ok(Self { peer, engine: Some(engine) }),
            None => {
                let names: Vec<String> = peer.engines.iter().map(PeerEngine::argument).collect();
                refused(format!("`{name}` has no `{}`: there is {}", hyphenated(wanted), names.join(", ")))
            }
        }
    }

    /// The ways of running that are asked for.
    pub(super) fn engines(&self) -> impl Iterator<Item = (&'static Peer, &'static PeerEngine)> {
        let (peer, wanted) = (self.peer, self.engine);
        peer.engines.iter().filter(move |e| wanted.is_none_or(|w| w == *e)).map(move |e| (peer, e))
    }
}

impl PeerEngine {
    /// Its name on the command line.
    pub fn argument(&self) -> String {
        hyphenated(self.name)
    }

    /// Why it does not run a model in a precision, of a system that is not named yet; none where it does.
    pub(super) fn cannot_run(&self, model: &Model, precision: Precision) -> Option<Skipped> {
        let refused = |why: &str| Skipped::new("", self.name, &Error::new(ErrorKind::Option, why));
        let why = match model.kind {
            Kind::Stan { .. } if self.stan => None,
            Kind::Stan { .. } => Some("it runs no Stan programs"),
            _ if self.models.contains(&&*model.name) => None,
            _ => Some("this model is not written for it"),
        };
        let model = &*model.name;
        if let Some(why) = why {
            return Some(refused(why).of_model(model));
        }
        let name = precision_name(precision);
        let why = format!("it does not run in {name}");
        (!self.precisions.contains(&precision)).then(|| refused(&why).of_model(model).in_precision(name))
    }
}

fn hyphenated(name: &str) -> String {
    name.replace([' ', '_'], "-")
}

/// Where models, scripts and peers are.
#[derive(Clone, Debug)]
pub struct Places {
    checkout: Option<PathBuf>,
    peers: Option<PathBuf>,
}

/// The file by which a checkout is known.
const MARK: &str = "benches/compare/README.md";
/// What installs peers, in a checkout.
const INSTALL: &str = "benches/compare/install";

impl Places {
    /// The checkout is looked for above the current folder, then above the program. Peers are in the given folder, in the one
    /// that the environment variable `AUTOBATCH_PEERS` names, or in `target/peers` of the checkout.
    pub fn find(peers: Option<&Path>) -> Self {
        let folders = [std::env::current_dir().ok(), std::env::current_exe().ok()];
        let above = folders.iter().flatten().flat_map(|path| path.ancestors());
        let checkout = above.filter(|folder| folder.join(MARK).is_file()).map(Path::to_owned).next();
        let named = || std::env::var_os("AUTOBATCH_PEERS").map(PathBuf::from);
        let usual = || checkout.as_ref().map(|c| c.join("target/peers"));
        let peers = peers.map(Path::to_owned).or_else(named).or_else(usual);
        Self { checkout, peers }
    }

    /// The folder of the checkout.
    ///
    /// # Errors
    /// When the program does not run in or from one.
    pub fn checkout(&self) -> Result<&Path, Error> {
        self.checkout.as_deref().ok_or_else(|| {
            let message = format!(
                "there is no {MARK} above the current folder or above this program: the models and the scripts of the comparison \
                 are those of a checkout of autobatch"
            );
            Error::new(ErrorKind::Io, message)
        })
    }

    /// How a peer is started.
    ///
    /// # Errors
    /// When it is not installed, with the command that installs it.
    pub fn command(&self, peer: &Peer) -> Result<Command, Error> {
        let peers = match &self.peers {
            Some(folder) => folder,
            None => return Err(self.checkout().err().unwrap_or_else(|| self.missing(peer, Path::new("")))),
        };
        match peer.program {
            PeerProgram::Script(script) => {
                let script = self.checkout()?.join("benches/compare").join(script);
                let python = peers.join(peer.installed_as).join("bin/python");
                if !script.is_file() {
                    let message = format!("the script {} is not there", script.display());
                    return Err(Error::new(ErrorKind::Io, message));
                }
                if !python.is_file() {
                    return Err(self.missing(peer, peers));
                }
                let mut command = Command::new(python);
                // No files of Python beside the scripts.
                command.arg("-B").arg(script);
                Ok(command)
            }
            PeerProgram::Binary(name) => {
                let program = peers.join("bin").join(name);
                if program.is_file() { Ok(Command::new(program)) } else { Err(self.missing(peer, peers)) }
            }
        }
    }

    /// An error with the command that installs a peer.
    fn missing(&self, peer: &Peer, peers: &Path) -> Error {
        // As it is called from here.
        let checkout = self.checkout.as_deref().unwrap_or(Path::new(""));
        let here = std::env::current_dir().is_ok_and(|here| here == checkout);
        let install = if here { PathBuf::from(INSTALL) } else { checkout.join(INSTALL) };
        let message = format!(
            "not installed in {}; to install it: AUTOBATCH_PEERS={} {} {}",
            peers.display(),
            peers.display(),
            install.display(),
            peer.installed_as
        );
        Error::new(ErrorKind::Io, message)
    }
}

/// How long it is waited before it is asked whether to go on.
const GLANCE: Duration = Duration::from_millis(100);
/// Lines of what a peer said that an error shows.
const SHOWN_LINES: usize = 12;

/// A peer that runs.
pub(super) struct Process {
    child: Child,
    /// None once the peer is to end.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
    version: String,
    chains: usize,
    /// Useful work of one run, where the model tells it and not the peer.
    work: Option<u64>,
    /// How long it may take for one answer: compiling a model included.
    patience: Duration,
    /// Set from outside: no answer is waited for then.
    stop: Option<Arc<AtomicBool>>,
}

impl Process {
    /// Starts a peer with the job of a cell, and waits until it is warm.
    pub(super) fn start(
        cell: &Cell<'_>,
        peer: &Peer,
        engine: &str,
        places: &Places,
        comparison: &Comparison,
    ) -> Result<Self, Error> {
        let case = cell.case;
        let mut command = places.command(peer)?;
        let chains = if peer.batches { cell.chains } else { cell.chains.min(cell.threads) };
        let job = PeerJob {
            model: case.model.name.to_string(),
            engine: engine.to_owned(),
            data: case.file(chains)?,
            chains,
            dimension: case.dimension,
            precision: precision_name(cell.precision).to_owned(),
            threads: cell.threads,
            stepsize: case.stepsize,
            max_treedepth: MAX_TREEDEPTH,
            folder: case.folder.to_owned(),
            program: case.stan_files(),
        };
        let log = case.folder.join(format!("{}-{}.log", peer.name, hyphenated(engine)));
        let file = File::create(&log).map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        // Ends with all that it has started: a compiler that goes on would take its time from the others.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|e| Error::new(ErrorKind::Io, format!("it does not start: {e}")))?;
        let stdin = child.stdin.take();
        let lines = reader(&mut child);
        let (version, work) = (String::new(), case.work(chains));
        let (patience, stop) = (comparison.patience, comparison.stop.clone());
        let mut process = Self { child, stdin, lines, log, version, chains, work, patience, stop };
        process.send(&job)?;
        match process.answer()? {
            Answer::Ready { version } => process.version = version,
            other => return Err(process.failed(&format!("it answered a job with {other:?}"))),
        }
        Ok(process)
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    fn send(&mut self, message: &impl serde::Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_string(message).map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?;
        line.push('\n');
        let sent = self.stdin.as_mut().map(|pipe| pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed("it has ended")),
        }
    }

    fn answer(&mut self) -> Result<Answer, Error> {
        let start = Instant::now();
        let line = loop {
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed("it ended without an answer")),
                Err(RecvTimeoutError::Timeout) if self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed)) => {
                    return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() > self.patience => {
                    return Err(self.failed(&format!("no answer within {} seconds", self.patience.as_secs_f64())));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        match serde_json::from_str(&line) {
            Ok(Answer::Error(message)) => Err(self.failed(&message)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(&format!("its answer `{line}` is not of the protocol: {error}"))),
        }
    }

    /// An error with the end of what the peer said.
    fn failed(&self, why: &str) -> Error {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n    ");
        let said = if last.is_empty() { String::new() } else { format!("\n    {last}") };
        Error::new(ErrorKind::Io, format!("{why}{said}"))
    }

    /// The bulk effective sample size of the draws in a file.
    fn ess(&self, path: &Path, extents: [usize; 3]) -> Result<Option<f64>, Error> {
        let bytes = fs::read(path).map_err(|e| self.failed(&format!("its draws cannot be read: {e}")))?;
        let count = extents.iter().try_fold(8_usize, |n, e| n.checked_mul(*e));
        if count != Some(bytes.len()) {
            return Err(self.failed(&format!("its draws are {} bytes, not {extents:?}", bytes.len())));
        }
        let values = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        Ok(ess(&Array::real(extents, values)))
    }
}

impl Series for Process {
    fn chains(&self) -> usize {
        self.chains
    }

    fn run(&mut self, request: &PeerRequest) -> Result<Measured, Error> {
        self.send(request)?;
        let Done { useful, issued, seconds, draws, kept } = match self.answer()? {
            Answer::Done(done) => done,
            other => return Err(self.failed(&format!("it answered a request with {other:?}"))),
        };
        let useful = self.work.map_or(useful, |work| work * draws as u64);
        if seconds.is_nan() || seconds <= 0.0 || useful == 0 || draws == 0 {
            return Err(self.failed(&format!("it did {useful} in {seconds} seconds and {draws} draws")));
        }
        let ess = match (&request.keep, kept) {
            (Some(path), Some(extents)) => self.ess(path, extents)?,
            _ => None,
        };
        Ok(Measured { useful, issued, seconds, draws, ess })
    }

    fn detail(&mut self, _: &PeerRequest) -> Result<Detail, Error> {
        Ok(Detail::default())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends when there is nothing more to read. One that hangs is killed: nobody waits for its answer.
        self.stdin = None;
        let quick = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            matches!(self.child.try_wait(), Ok(Some(_)))
        });
        if !quick {
            #[cfg(unix)]
            if let Ok(id) = i32::try_from(self.child.id()) {
                let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The lines that a child writes, from a thread of their own.
fn reader(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ordinary_programs_have_twins() {
        let ordinary = crate::bench::model::MODELS.iter().filter(|model| model.is_ordinary());
        let names: Vec<&str> = CONTROL.iter().copied().chain(ordinary.map(|model| &*model.name)).collect();
        assert_eq!(IN_C, names);
    }

    #[test]
    fn hyphens_underscores_and_spaces_are_the_same() {
        for text in ["tfp:auto-batching", "tfp:auto_batching", "tfp:auto batching"] {
            let against = Against::parse(text).unwrap();
            assert_eq!(against.engines().map(|(_, e)| e.name).collect::<Vec<_>>(), ["auto_batching"]);
        }
        assert_eq!(Against::parse("tfp:auto-batching-graph").unwrap().engines().count(), 1);
        assert_eq!(Against::parse("tfp").unwrap().engines().count(), 3);
        for peer in PEERS {
            for engine in peer.engines {
                let wanted = Against { peer, engine: Some(engine) };
                assert_eq!(Against::parse(&format!("{}:{}", peer.name, engine.argument())).unwrap(), wanted);
            }
        }
    }
}
