//! Code that is generated and compiled beside the runs of a program (`--codegen auto`).
//!
//! A run starts on kernels. When the runs of a program together have taken a while, a thread generates its code, finds
//! the compiler, and loads what is kept on disk. Where nothing is kept, the thread ends, and the compiler starts when
//! it may pay. Shards look out for what comes ([`Lookout`](super::Lookout)).
//!
//! **When it may pay.** How long a run will go on is not known, so this is the problem of renting or buying skis. To
//! start the compiler once the runs have taken as long as the compiler would is never more than twice as slow as
//! knowing. It is also what one expects: of a run that has taken a time t, about t is left, of which generated code
//! spares half or more. That is the rule where the threads of the run take all cores, and the compiler competes with
//! them. Where a core is idle, a compilation in vain costs the run nothing, so the compiler starts after a quarter of
//! the time. For the same reason looking on disk, which takes some ten milliseconds, waits for as long. How long the
//! compiler takes is estimated by the length of the longest of the parts that it compiles beside one another, or of all
//! over the cores, at the speed that was measured last and is kept on disk.
//!
//! **The end.** What is compiled when a run ends goes on for the next one. When the program ends, so does the compiler
//! with all that it has started, and what its runs have taken is kept on disk: the next process counts it in. So of a
//! program that runs again and again, each time for less than its compiler takes, the code is made all the same. Where
//! runs have taken as long as the compiler does, its end is waited for, not after a run that was stopped: of a program
//! that earlier processes ran, for up to ten seconds, since that is done once and spares each process to come most of
//! its time; of one that never ran before for a small part of what its runs took, since it may never run again. If it
//! is still at work then, what the runs took counts for nothing any more, so that no process after the other starts a
//! compiler that it does not see the end of.

use std::mem::replace;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::compiler::{CodegenError, Compiler, Key};
use super::{Code, Native};
use crate::backend::{Form, Units};
use crate::run::CodeStats;
use crate::types::Precision;

/// A run that is to be long waits no longer for what is on disk.
const LONGEST_LOOK: Duration = Duration::from_millis(100);

/// What waiting at the end may cost the first process that runs a program, in parts of the time of its runs.
const FIRST_WAIT: f64 = 0.03;

/// How long is waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// With what is kept on disk, in runs that take all cores.
    pub(super) disk: Duration,
    /// With the compiler, in such runs, in parts of the time that it is estimated to take.
    pub(super) compiler: f64,
    /// With both where a core is idle, in parts of that.
    pub(super) idle: f64,
    /// At the end of a process: a compiler that takes longer may hang.
    pub(super) end: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { disk: Duration::from_millis(16), compiler: 1.0, idle: 0.25, end: Duration::from_secs(10) }
    }
}

/// The code of a program that is made while it runs.
#[derive(Debug)]
pub struct Beside {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    program: Units,
    form: Form,
    precision: Precision,
    patience: Patience,
    native: OnceLock<Native>,
    /// The compiler, where it need not be found.
    compiler: Option<Compiler>,
    stage: Mutex<Stage>,
    /// Nanoseconds that the runs that are over have taken, with those of earlier processes.
    spent: AtomicU64,
    /// The same without those.
    spent_here: AtomicU64,
    /// Whether the last run was stopped.
    stopped: AtomicBool,
    /// Nanoseconds of runs that take all cores after which the next stage begins.
    due: AtomicU64,
    /// The compiler, and under what times are kept beside the code.
    kept_under: OnceLock<(Compiler, Key)>,
    /// Ends what is at work.
    stop: Arc<AtomicBool>,
}

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// How far it is.
#[derive(Debug)]
enum Stage {
    /// Nothing was looked at.
    New,
    /// A thread generates the code and looks on disk.
    Looking,
    /// Nothing is on disk.
    Waiting(Box<Job>),
    /// A thread waits for the compiler, which began then and was estimated to take so long.
    Compiling(Instant, Duration),
    /// The functions are there; whether they were on disk, and how long it took to load or compile them.
    Ready { kept: bool, keeps: bool, took: Duration },
    /// Nothing of the program becomes a function.
    Nothing,
    /// There will be no functions, and why.
    Failed(String),
}

/// What is to be compiled.
#[derive(Debug)]
struct Job {
    code: Code,
    compiler: Compiler,
    estimate: Duration,
}

impl Beside {
    /// For a program; nothing happens yet.
    pub(in crate::backend::cpu) fn new(program: Units, form: Form, precision: Precision) -> Self {
        Self::with((program, form), precision, Patience::default(), None)
    }

    /// The same, with other patience, and a compiler that is not looked for.
    pub(super) fn with(
        (program, form): (Units, Form),
        precision: Precision,
        patience: Patience,
        compiler: Option<Compiler>,
    ) -> Self {
        let shared = Shared {
            program,
            form,
            precision,
            patience,
            native: OnceLock::new(),
            compiler,
            stage: Mutex::new(Stage::New),
            spent: AtomicU64::new(0),
            spent_here: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            due: AtomicU64::new(nanoseconds(patience.disk)),
            kept_under: OnceLock::new(),
            stop: Arc::default(),
        };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// The functions, when they are there.
    #[inline]
    pub(in crate::backend::cpu) fn native(&self) -> Option<&Native> {
        self.shared.native.get()
    }

    /// Whether functions may come yet.
    pub(in crate::backend::cpu) fn may_come(&self) -> bool {
        !matches!(*self.shared.stage(), Stage::Nothing | Stage::Failed(_))
    }

    /// Looks on disk now, for runs that are known to be long; waits for it, but not for long.
    pub(in crate::backend::cpu) fn look_on_disk(&self) {
        let start = Instant::now();
        self.begin_to_look();
        while matches!(*self.shared.stage(), Stage::Looking) && start.elapsed() < LONGEST_LOOK {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// What the runs that are over have taken.
    pub(super) fn spent(&self) -> Duration {
        Duration::from_nanos(self.shared.spent.load(Ordering::Relaxed))
    }

    /// What was [kept](Self::keep) of this code, for a class of numbers of lanes; none while it is not known under what that is.
    pub(super) fn recalled(&self, class: usize) -> Option<Option<[f64; 2]>> {
        let (compiler, key) = self.shared.kept_under.get()?;
        Some(compiler.recalled(key, class))
    }

    /// Keeps two times of a class of numbers of lanes beside the code.
    pub(super) fn keep(&self, class: usize, seconds: &[f64; 2]) {
        if let Some((compiler, key)) = self.shared.kept_under.get() {
            compiler.keep(key, class, seconds);
        }
    }

    /// Whether code is being looked for or compiled.
    pub(super) fn is_at_work(&self) -> bool {
        matches!(*self.shared.stage(), Stage::Looking | Stage::Compiling(..))
    }

    /// A run ends that has taken so long; whether it was stopped.
    pub(in crate::backend::cpu) fn add(&self, run: Duration, stopped: bool) {
        self.shared.spent.fetch_add(nanoseconds(run), Ordering::Relaxed);
        self.shared.spent_here.fetch_add(nanoseconds(run), Ordering::Relaxed);
        self.shared.stopped.store(stopped, Ordering::Relaxed);
    }

    /// A run has taken so long, and is `busy` where it leaves no core to others: what is due begins.
    pub(in crate::backend::cpu) fn passed(&self, run: Duration, busy: bool) {
        self.passed_after(1.0, run, busy);
    }

    /// The same of code that may wait so many times as long.
    pub(super) fn passed_after(&self, later: f64, run: Duration, busy: bool) {
        let due = self.shared.due.load(Ordering::Relaxed);
        let part = if busy { later } else { later * self.shared.patience.idle };
        let spent = self.shared.spent.load(Ordering::Relaxed).saturating_add(nanoseconds(run));
        if due != NEVER && spent as f64 >= due as f64 * part && !self.begin_to_look() {
            self.begin_to_compile();
        }
    }

    /// Begins to look on disk, if nobody has.
    fn begin_to_look(&self) -> bool {
        let looking = |stage: &Stage| matches!(stage, Stage::New).then_some(Stage::Looking);
        let begins = self.shared.advance(looking).is_some();
        if begins {
            let shared = Arc::clone(&self.shared);
            self.spawn(move || shared.generate_and_find());
        }
        begins
    }

    /// Begins to compile, if there is something that waits for it.
    fn begin_to_compile(&self) {
        let compiling = |stage: &Stage| match stage {
            Stage::Waiting(job) => Some(Stage::Compiling(Instant::now(), job.estimate)),
            _ => None,
        };
        if let Some(Stage::Waiting(job)) = self.shared.advance(compiling) {
            let shared = Arc::clone(&self.shared);
            self.spawn(move || shared.compile(*job));
        }
    }

    fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        // The handle is there before another shard can find that the thread is over, and starts the next one.
        let mut last = lock(&self.thread);
        let before = match std::thread::Builder::new().name("codegen".into()).spawn(work) {
            Ok(thread) => last.replace(thread),
            Err(error) => {
                *self.shared.stage() = Stage::Failed(format!("there is no thread to generate it: {error}"));
                None
            }
        };
        drop(last);
        // It has told what it found, which is all that it does.
        before.map(JoinHandle::join);
    }

    /// What became of it, for a run that ends, in which shards went over to the functions at this superstep.
    pub(in crate::backend::cpu) fn told(&self, from_start: bool, came: Option<u64>) -> CodeStats {
        let spent = self.spent();
        match &*self.shared.stage() {
            Stage::Ready { .. } if from_start => CodeStats::FromStart,
            Stage::Ready { kept, keeps, took } => {
                CodeStats::Came { superstep: came, kept: *kept, keeps: *keeps, took: *took }
            }
            Stage::New => CodeStats::NotWorth { spent, estimate: None },
            Stage::Waiting(job) => CodeStats::NotWorth { spent, estimate: Some(job.estimate) },
            Stage::Looking | Stage::Compiling(..) => CodeStats::NotReady { spent },
            Stage::Nothing => CodeStats::Nothing,
            Stage::Failed(why) => CodeStats::Failed(why.clone()),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.shared.wait_if_worth();
        self.shared.keep_spent();
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // Should it have panicked, it has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        lock(&self.stage)
    }

    /// Goes on from a stage to the next, if there is one: one of several threads that find something due does it.
    fn advance(&self, next: impl Fn(&Stage) -> Option<Stage>) -> Option<Stage> {
        let mut stage = self.stage();
        next(&stage).map(|next| {
            self.due.store(NEVER, Ordering::Relaxed);
            replace(&mut *stage, next)
        })
    }

    /// Waits for the compiler, if that is worth it.
    fn wait_if_worth(&self) {
        let Stage::Compiling(began, estimate) = *self.stage() else { return };
        if self.stopped.load(Ordering::Relaxed) {
            return;
        }
        let [spent, here] =
            [&self.spent, &self.spent_here].map(|time| Duration::from_nanos(time.load(Ordering::Relaxed)));
        let before = spent.saturating_sub(here);
        let longest =
            if before.is_zero() { here.mul_f64(FIRST_WAIT).min(self.patience.end) } else { self.patience.end };
        let waits = spent >= estimate && estimate.saturating_sub(began.elapsed()) <= longest;
        let start = Instant::now();
        while waits && self.is_compiling() && start.elapsed() < longest {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It had all the time of this process, or all patience.
        if self.is_compiling() && (before >= estimate || waits && longest == self.patience.end) {
            self.spent.store(0, Ordering::Relaxed);
        }
    }

    fn is_compiling(&self) -> bool {
        matches!(*self.stage(), Stage::Compiling(..))
    }

    /// Keeps what runs have taken without code, for processes to come.
    fn keep_spent(&self) {
        let without = matches!(*self.stage(), Stage::Waiting(_) | Stage::Compiling(..));
        let spent = Duration::from_nanos(self.spent.load(Ordering::Relaxed));
        if let Some((compiler, key)) = self.kept_under.get().filter(|_| without) {
            compiler.keep_spent(key, spent);
        }
    }

    /// Generates the code, and looks on disk for what was compiled of it.
    fn generate_and_find(&self) {
        let found = self.found();
        self.arrive(found);
    }

    fn found(&self) -> Result<(Stage, Option<Native>), CodegenError> {
        let start = Instant::now();
        let code = Code::of(&self.program, self.form);
        if code.is_empty() {
            return Ok((Stage::Nothing, None));
        }
        let stop = Some(Arc::clone(&self.stop));
        let compiler = match self.compiler.clone() {
            Some(compiler) => compiler.with_stop(stop),
            None => Compiler::find_until(stop)?,
        };
        // Nothing else sets it.
        let times = Native::times_key(&code, self.precision, &compiler);
        let _ = self.kept_under.set((compiler.clone(), times));
        Ok(match Native::kept(code, self.precision, &compiler)? {
            Ok(native) => (Stage::Ready { kept: true, keeps: true, took: start.elapsed() }, Some(native)),
            Err(code) => {
                self.spent.fetch_add(nanoseconds(compiler.spent(&times)), Ordering::Relaxed);
                let estimate = compiler.estimate(&code.text);
                (Stage::Waiting(Box::new(Job { code, compiler, estimate })), None)
            }
        })
    }

    /// Compiles what is not on disk.
    fn compile(&self, job: Job) {
        let Job { code, compiler, estimate } = job;
        let (start, bytes) = (Instant::now(), compiler.measured(&code.text));
        let made = Native::made(code, self.precision, &compiler);
        let took = start.elapsed();
        if self.stop.load(Ordering::Relaxed) && took > estimate {
            // It was ended, and would have taken longer: the next estimate is to know.
            compiler.remember(bytes, took);
        }
        self.arrive(made.map(|native| {
            compiler.remember(bytes, took);
            (Stage::Ready { kept: false, keeps: compiler.keeps(), took }, Some(native))
        }));
    }

    /// A thread has come to its end; who finds the functions finds what is told of them.
    fn arrive(&self, found: Result<(Stage, Option<Native>), CodegenError>) {
        let (stage, native) = found.unwrap_or_else(|error| (Stage::Failed(error.to_string()), None));
        let mut now = self.stage();
        if let Some(native) = native {
            // Nothing else sets it.
            let _ = self.native.set(native);
        }
        if let Stage::Waiting(job) = &stage {
            self.due.store(nanoseconds(job.estimate.mul_f64(self.patience.compiler)), Ordering::Relaxed);
        }
        *now = stage;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}
