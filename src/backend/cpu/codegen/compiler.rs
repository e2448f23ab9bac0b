//! The system's C compiler: found, run, its results kept on disk and loaded.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio, id};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

pub(super) use crate::backend::cpu::codegen::cache::Key;
use crate::backend::cpu::codegen::cache::{Cache, digest, why_unsafe};
pub use crate::backend::cpu::codegen::group::end_all;
use crate::backend::cpu::codegen::group::{Group, is_removed, removed_at_exit};
pub use crate::backend::cpu::codegen::library::Library;
use crate::backend::cpu::codegen::text_parts::{Part, Rarely, cores, parts};
use crate::backend::generator;

/// The headers that generated C includes: name and text.
pub(in crate::backend) fn headers() -> [(&'static str, &'static str); 3] {
    static FUNCTIONS: OnceLock<String> = OnceLock::new();
    [
        ("lanes.h", include_str!("include/lanes.h")),
        ("vmath.h", include_str!("include/vmath.h")),
        ("functions.h", FUNCTIONS.get_or_init(generator::of_reals)),
    ]
}

/// Of every compilation, after the flags of `AUTOBATCH_CC`, which may say otherwise: no operation is contracted or
/// reordered, and no function sets `errno`. Straight-line code is not vectorised: GCC 12 takes wrong elements where it
/// does so with the unrolled products of matrices in one lane's arrays, and no program measured is slower without.
const FLAGS: [&str; 8] = [
    "-std=gnu11",
    "-fno-fast-math",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-slp-vectorize",
    "-fno-asynchronous-unwind-tables",
    "-fPIC",
];
/// What makes a library, of a text or of objects; these are no C, whatever language `AUTOBATCH_CC` says.
const LIBRARY: [&str; 2] = ["-shared", "-lm"];
const OBJECTS_FOLLOW: [&str; 2] = ["-x", "none"];

/// What runs took without code counts up to this: any compiler is worth as much.
const LONGEST_SPENT: Duration = Duration::from_secs(3600);
/// A compilation that takes longer is given up.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// A command that takes longer to say its version is no compiler.
const PROBE_LIMIT: Duration = Duration::from_secs(20);

/// Why there is no compiled code.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodegenError {
    /// No C compiler was found.
    #[error(
        "no C compiler was found ({tried}); install one (for instance the package `gcc` or `clang`), or name it in \
         AUTOBATCH_CC"
    )]
    NoCompiler {
        /// The commands that were tried, and why each did not serve.
        tried: String,
    },
    /// Masks are handed over as words and read as bytes.
    #[error("code is generated for little-endian processors only")]
    BigEndian,
    /// The compiler rejected the text, which is a fault of the code generator or of an old compiler.
    #[error("{compiler} failed with {status}:\n{lines}")]
    Failed {
        /// Its first line of `--version`.
        compiler: String,
        /// How it ended.
        status: ExitStatus,
        /// The first lines of what it said.
        lines: String,
    },
    /// The compiler did not come to an end.
    #[error("{compiler} was stopped after {} seconds", .limit.as_secs())]
    TimedOut {
        /// Its first line of `--version`.
        compiler: String,
        /// The time it was given.
        limit: Duration,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
    /// The compiler says that it is done, but has not made the file.
    #[error("{compiler} ended without an error and made no file: is it a C compiler?")]
    NoOutput {
        /// Its first line of `--version`, or the command.
        compiler: String,
    },
    /// Others can change what would be run.
    #[error(
        "generated code is not taken from or made in {}: {why}; name a folder of your own in AUTOBATCH_CACHE, which only \
         you can write to (chmod go-w), and in TMPDIR",
        .path.display()
    )]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// There is no folder to work in.
    #[error("there is no folder for temporary files")]
    NoPlace,
    /// It was stopped from outside.
    #[error("interrupted while the C compiler ran")]
    Interrupted,
    /// Compiled code could not be loaded, or lacks a function.
    #[error("compiled code could not be loaded: {}", reason(.0))]
    Load(#[from] libloading::Error),
}

/// What the loader says: the error alone names the function that failed.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn spent_key(times: &Key) -> Key {
    digest([&b"nanoseconds without code"[..], times])
}

fn class_key(times: &Key, class: usize) -> Key {
    digest([&b"of a class of lanes"[..], &class.to_le_bytes(), times])
}

/// What code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The processor at hand, with the widest groups it has.
    Native,
    /// An x86-64 processor with AVX2 and FMA: groups of 4 lanes.
    Avx2,
    /// One lane at a time, in plain C.
    Scalar,
    /// Threads as those of a GPU, in C++.
    Emulated,
}

impl Target {
    /// Whether this processor can run such code.
    pub fn runs_here(self) -> bool {
        match self {
            Target::Native | Target::Scalar | Target::Emulated => true,
            #[cfg(target_arch = "x86_64")]
            Target::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Target::Avx2 => false,
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Target::Native => &[NATIVE],
            Target::Avx2 => &["-mavx2", "-mfma"],
            Target::Scalar => &[NATIVE, TUNE, "-DLANES_SCALAR"],
            // The text is of CUDA; what serves C alone is not told twice.
            Target::Emulated => {
                &[NATIVE, TUNE, "-xc++", "-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-pthread", "-w"]
            }
        }
    }
}

/// For the processor at hand.
const NATIVE: &str = if cfg!(target_arch = "x86_64") { "-march=native" } else { "-mcpu=native" };

/// For no processor in particular: GCC 12 holds general registers in those of vectors where it tunes code for AMD's,
/// and loops of ints and indices take up to 1.4 times as long.
const TUNE: &str = "-mtune=generic";

/// In straight code vectors are those of loops over elements. With -O2 GCC makes some of those loops alone whose turns
/// fill whole vectors, however narrow these are then; Clang has no such model, and makes them.
const VECTORS: &str = "-fvect-cost-model=dynamic";

/// Of functions that lanes come to rarely. GCC 12 takes two fifths of the time, and what it makes takes 1.2 times as
/// long.
const QUICKLY: &str = "-Og";

/// How a text is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompilerOptions {
    /// Whether a real is a `float` and no `double`.
    pub real_f32: bool,
    /// The processor.
    pub target: Target,
}

/// A C compiler of this machine.
#[derive(Clone, Debug)]
pub struct Compiler {
    program: OsString,
    arguments: Vec<OsString>,
    /// What `--version` says.
    version: String,
    /// Where compiled code is kept, if anywhere.
    cache: Option<PathBuf>,
    /// Set from outside to end it.
    stop: Option<Arc<AtomicBool>>,
}

/// What an estimate of compile time begins with, for each byte of a text: that of GCC 12 on a common core.
const SECONDS_PER_BYTE: f64 = 6e-6;
/// Every compilation takes so long: the headers, and what starts the compiler.
const SECONDS_AT_LEAST: f64 = 0.15;

impl Compiler {
    /// The command in `AUTOBATCH_CC`, which may have arguments, or else the first of `cc`, `gcc` and `clang` that runs.
    /// Compiled code is kept in `AUTOBATCH_CACHE`, or else in `autobatch` in the user's folder for caches.
    pub fn find() -> Result<Self, CodegenError> {
        Self::find_until(None)
    }

    /// The same; what is asked its version is ended when `stop` is set.
    pub(super) fn find_until(stop: Option<Arc<AtomicBool>>) -> Result<Self, CodegenError> {
        if cfg!(target_endian = "big") {
            return Err(CodegenError::BigEndian);
        }
        let commands = match std::env::var_os("AUTOBATCH_CC") {
            Some(command) if !command.to_string_lossy().trim().is_empty() => vec![command],
            _ => ["cc", "gcc", "clang"].map(OsString::from).to_vec(),
        };
        // Asked once in a process: that takes longer than to generate the code of a small program.
        static FOUND: Mutex<Option<(Vec<OsString>, Compiler)>> = Mutex::new(None);
        let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let known = found().clone().filter(|(asked, _)| commands == *asked);
        if let Some((_, compiler)) = known {
            return Ok(compiler.with_cache(default_cache()).with_stop(stop));
        }
        let mut tried = Vec::new();
        for command in &commands {
            match Self::of_command(command, stop.as_deref()) {
                Ok(compiler) => {
                    *found() = Some((commands.clone(), compiler.clone()));
                    return Ok(compiler.with_cache(default_cache()).with_stop(stop));
                }
                Err(_) if is_set(stop.as_deref()) => return Err(CodegenError::Interrupted),
                Err(why) => tried.push(format!("`{}`: {why}", command.display())),
            }
        }
        Err(CodegenError::NoCompiler { tried: tried.join("; ") })
    }

    #[cfg(test)]
    pub(super) fn new(command: &OsStr) -> Result<Self, String> {
        Self::of_command(command, None)
    }

    /// A command with its arguments; without a cache. Or why it is no compiler.
    fn of_command(command: &OsStr, stop: Option<&AtomicBool>) -> Result<Self, String> {
        let mut words = words(command)?.into_iter();
        let program = words.next().ok_or("no command")?;
        let arguments: Vec<OsString> = words.collect();
        let version = version(Command::new(&program).args(&arguments).arg("--version"), PROBE_LIMIT, stop)?;
        Ok(Self { program, arguments, version, cache: None, stop: None })
    }

    /// The same compiler, whose results are kept in this folder, or nowhere. The folder need not exist, nor be
    /// writable.
    pub fn with_cache(self, folder: Option<PathBuf>) -> Self {
        Self { cache: folder, ..self }
    }

    /// The same compiler, which is ended when this is set.
    pub fn with_stop(self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..self }
    }

    /// The first line of what the compiler says about its version; the command, where it says nothing.
    pub fn name(&self) -> Cow<'_, str> {
        match self.version.lines().next() {
            Some(line) => line.into(),
            None => self.program.to_string_lossy(),
        }
    }

    /// Compiles a text, which may include `lanes.h` and `vmath.h`, and loads it; or loads what an earlier run has left
    /// in the cache for the same text, headers, options, compiler and processor.
    pub fn load(&self, text: &str, options: &CompilerOptions) -> Result<Library, CodegenError> {
        Ok(self.load_with(text, options, |_| Ok(()))?.0)
    }

    /// The same, and what is looked for in it; what was kept and lacks it is made again.
    pub fn load_with<T>(
        &self,
        text: &str,
        options: &CompilerOptions,
        look: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Result<(Library, T), CodegenError> {
        match self.kept(text, options, &look)? {
            Some(found) => Ok(found),
            None => self.made(text, options, &look),
        }
    }

    /// Loads what an earlier run has left in the cache, if it has what is looked for.
    ///
    /// # Errors
    /// [`CodegenError::Untrusted`], where others can change what is kept.
    pub(super) fn kept<T>(
        &self,
        text: &str,
        options: &CompilerOptions,
        look: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Result<Option<(Library, T)>, CodegenError> {
        let Some(cache) = self.open_cache()? else { return Ok(None) };
        let Some(object) = cache.get(&self.key(text, options)) else { return Ok(None) };
        // What is whole and cannot be loaded comes from another system.
        Ok(self.loaded(&object, look).ok())
    }

    /// Compiles a text and loads it, whatever is kept; and keeps it.
    pub(super) fn made<T>(
        &self,
        text: &str,
        options: &CompilerOptions,
        look: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Result<(Library, T), CodegenError> {
        let cache = self.open_cache()?;
        let temporary = std::env::temp_dir();
        let object = Workspace::in_one_of(&self.places(&temporary), |work| self.compile(text, options, work))?;
        let made = self.loaded(&object, look)?;
        if let Some(cache) = cache {
            cache.put(&self.key(text, options), &object);
        }
        Ok(made)
    }

    /// How long it will take to compile a text, by what [`remember`](Self::remember) has kept of this compiler.
    pub(super) fn estimate(&self, text: &str) -> Duration {
        let cache = self.open_cache().ok().flatten();
        Duration::from_secs_f64(SECONDS_AT_LEAST + self.rate(cache.as_ref()) * self.measured(text) as f64)
    }

    /// The bytes that a text takes a compiler's time for: those of the longest of its parts, or what each core has of
    /// all.
    pub(super) fn measured(&self, text: &str) -> usize {
        let parts = self.parts(text);
        let longest = parts.iter().map(Part::weight).max().unwrap_or(text.len());
        longest.max(parts.iter().map(Part::weight).sum::<usize>() / cores())
    }

    /// Keeps how long a text took with so many [`measured`](Self::measured) bytes, beside the compiled code. What was
    /// measured before counts as much: the machine may have had more to do.
    pub(super) fn remember(&self, bytes: usize, took: Duration) {
        if let Ok(Some(cache)) = self.open_cache() {
            let measured = (took.as_secs_f64() - SECONDS_AT_LEAST).max(0.0) / bytes.max(1) as f64;
            let rate = 0.5 * (self.rate(Some(&cache)) + measured);
            cache.put(&self.rate_key(), &rate.to_le_bytes());
        }
    }

    /// Seconds for each byte of a text.
    fn rate(&self, cache: Option<&Cache>) -> f64 {
        let kept = cache.and_then(|cache| cache.get(&self.rate_key())).and_then(|bytes| bytes.try_into().ok());
        kept.map(f64::from_le_bytes).filter(|rate| (0.0..1.0).contains(rate)).unwrap_or(SECONDS_PER_BYTE)
    }

    /// How long the runs of a program have taken that had no code, as was kept beside these times.
    pub(super) fn spent(&self, times: &Key) -> Duration {
        let cache = self.open_cache().ok().flatten();
        let bytes = cache.and_then(|cache| cache.get(&spent_key(times))).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(Duration::ZERO, |bytes| Duration::from_nanos(u64::from_le_bytes(bytes)).min(LONGEST_SPENT))
    }

    /// Keeps that.
    pub(super) fn keep_spent(&self, times: &Key, spent: Duration) {
        if let Ok(Some(cache)) = self.open_cache() {
            let nanoseconds = u64::try_from(spent.min(LONGEST_SPENT).as_nanos()).unwrap_or(u64::MAX);
            cache.put(&spent_key(times), &nanoseconds.to_le_bytes());
        }
    }

    /// Two times that were kept under this key, of a class of numbers of lanes.
    pub(super) fn recalled(&self, times: &Key, class: usize) -> Option<[f64; 2]> {
        let bytes: [u8; 16] = self.open_cache().ok()??.get(&class_key(times, class))?.try_into().ok()?;
        let [a, b] = [0, 8].map(|at| f64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 of 16 bytes")));
        // What stands for no time is as good as nothing.
        [a, b].iter().all(|seconds| (1e-12..1e6).contains(seconds)).then_some([a, b])
    }

    /// Keeps two times, in seconds, of a class of numbers of lanes under a key.
    pub(super) fn keep(&self, times: &Key, class: usize, [a, b]: &[f64; 2]) {
        if let Ok(Some(cache)) = self.open_cache() {
            cache.put(&class_key(times, class), &[a.to_le_bytes(), b.to_le_bytes()].concat());
        }
    }

    /// Under what times that were measured of a text are kept.
    pub(super) fn times_key(&self, text: &str, options: &CompilerOptions) -> Key {
        digest([&b"seconds of work"[..], &self.key(text, options)])
    }

    fn open_cache(&self) -> Result<Option<Cache>, CodegenError> {
        Ok(self.cache.as_deref().map(Cache::open).transpose()?.flatten())
    }

    /// Whether what is compiled is kept.
    pub(super) fn keeps(&self) -> bool {
        self.open_cache().is_ok_and(|cache| cache.is_some_and(|cache| cache.takes()))
    }

    /// Where there may be room for files.
    fn places<'p>(&'p self, temporary: &'p Path) -> Vec<&'p Path> {
        std::iter::once(temporary).chain(self.cache.as_deref()).collect()
    }

    fn loaded<T>(
        &self,
        object: &[u8],
        look: impl Fn(&Library) -> Result<T, CodegenError>,
    ) -> Result<(Library, T), CodegenError> {
        let library = Library::load(object, &self.places(&std::env::temp_dir()))?;
        let found = look(&library)?;
        Ok((library, found))
    }

    /// Runs the compiler; gives the shared object. A long text is compiled in parts, beside one another.
    fn compile(&self, text: &str, options: &CompilerOptions, work: &Workspace) -> Result<Vec<u8>, CodegenError> {
        let write = |name: &str, text: &str| {
            let path = work.path(name);
            fs::write(&path, text).map_err(|error| CodegenError::Io { path, error })
        };
        headers().into_iter().try_for_each(|(name, text)| write(name, text))?;
        let parts = if options.target == Target::Emulated { vec![] } else { self.parts(text) };
        let built = work.path("body.so");
        if parts.len() < 2 {
            write("body.c", text)?;
            let (source, messages) = (work.path("body.c"), work.path("messages"));
            self.run(vec![self.job(options, work, (&[], &[source]), &LIBRARY, (&built, messages))?])?;
        } else {
            let mut jobs = vec![];
            let mut objects = vec![];
            for (at, part) in parts.iter().enumerate() {
                write(&format!("part{at}.c"), &part.text)?;
                let [source, object] = ["c", "o"].map(|kind| work.path(&format!("part{at}.{kind}")));
                let messages = work.path(&format!("messages{at}"));
                let last: &[&str] = if part.rarely { &["-c", QUICKLY] } else { &["-c"] };
                jobs.push(self.job(options, work, (&[], &[source]), last, (&object, messages))?);
                objects.push(object);
            }
            self.run(jobs)?;
            let inputs = (&OBJECTS_FOLLOW[..], &objects[..]);
            self.run(vec![self.job(options, work, inputs, &LIBRARY, (&built, work.path("messages")))?])?;
        }
        fs::read(&built).map_err(|error| CodegenError::Io { path: built, error })
    }

    /// A command that makes a file of others, and what it says goes to another.
    fn job(
        &self,
        options: &CompilerOptions,
        work: &Workspace,
        (before, inputs): (&[&str], &[PathBuf]),
        last: &[&str],
        (output, messages): (&Path, PathBuf),
    ) -> Result<Job, CodegenError> {
        let to = File::create(&messages).map_err(|error| CodegenError::Io { path: messages.clone(), error })?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(self.flags(options));
        // In the caller's folder, so that what `AUTOBATCH_CC` says may be relative.
        command.args(before).args(inputs).arg("-o").arg(output).args(last);
        // What it writes on its way is in the same place, which nobody else can write to.
        command.env("TMPDIR", &work.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
        Ok(Job { command, output: output.to_owned(), messages })
    }

    /// Whether `AUTOBATCH_CC` has an argument that begins so.
    fn says(&self, start: &str) -> bool {
        self.arguments.iter().any(|a| a.as_encoded_bytes().starts_with(start.as_bytes()))
    }

    /// A text as texts that are compiled apart. What `AUTOBATCH_CC` says to optimise is for all functions.
    pub(super) fn parts(&self, text: &str) -> Vec<Part> {
        parts(text, if self.says("-O") { Rarely::AsAll } else { Rarely::Apart })
    }

    /// The flags of a compilation, which stand behind those of `AUTOBATCH_CC`. What to optimise and for which processor
    /// is left to it where it says so.
    pub(super) fn flags(&self, options: &CompilerOptions) -> Vec<&'static str> {
        let says = |start: &str| self.says(start);
        let mut flags = FLAGS.to_vec();
        if !says("-O") {
            flags.push("-O2");
        }
        let for_processor = says("-march=") || says("-mcpu=");
        let tuned = for_processor || says("-mtune=");
        let left = |flag: &&&str| !(**flag == NATIVE && for_processor || **flag == TUNE && tuned);
        flags.extend(options.target.flags().iter().filter(left));
        let says_model = says("-fvect-cost-model") || says("-fno-vect-cost-model");
        if options.target == Target::Scalar && !says_model && !self.version.contains("clang") {
            flags.push(VECTORS);
        }
        if options.real_f32 {
            flags.push("-DREAL_F32");
        }
        flags
    }

    /// Runs commands beside one another, until all have made their files or one fails.
    fn run(&self, jobs: Vec<Job>) -> Result<(), CodegenError> {
        let failed = |error| CodegenError::Io { path: PathBuf::from(&self.program), error };
        let compiler = || self.name().into_owned();
        let start = Instant::now();
        let mut running = Running(vec![]);
        for mut job in jobs {
            let group = Group::spawn(&mut job.command).map_err(failed)?;
            running.0.push((group, job));
        }
        loop {
            let mut at = 0;
            while let Some((group, _)) = running.0.get_mut(at) {
                let Some(status) = group.try_wait().map_err(failed)? else {
                    at += 1;
                    continue;
                };
                // It is over, and its number may be that of another.
                let (_, job) = running.0.swap_remove(at);
                if !status.success() {
                    let said = fs::read(&job.messages).unwrap_or_default();
                    let lines = first_errors(&String::from_utf8_lossy(&said));
                    return Err(CodegenError::Failed { compiler: compiler(), status, lines });
                }
                if !job.output.is_file() {
                    return Err(CodegenError::NoOutput { compiler: compiler() });
                }
            }
            if running.0.is_empty() {
                return Ok(());
            }
            if is_set(self.stop.as_deref()) {
                return Err(CodegenError::Interrupted);
            }
            if start.elapsed() > TIME_LIMIT {
                return Err(CodegenError::TimedOut { compiler: compiler(), limit: TIME_LIMIT });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Under which the speed of the compiler is kept.
    fn rate_key(&self) -> Key {
        digest([&b"seconds per byte"[..], self.program.as_encoded_bytes(), self.version.as_bytes()])
    }

    /// All that the compiled code depends on.
    fn key(&self, text: &str, options: &CompilerOptions) -> Key {
        let headers = headers().into_iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
        let program = [self.program.as_encoded_bytes(), self.version.as_bytes(), processor().as_bytes()];
        // No argument looks like what stands between the two lists.
        let arguments = self.arguments.iter().map(|a| a.as_encoded_bytes()).chain([&b"\0"[..]]);
        let flags = self.flags(options);
        let flags = flags.iter().copied().chain([QUICKLY]).map(str::as_bytes);
        digest([text.as_bytes()].into_iter().chain(headers).chain(program).chain(arguments).chain(flags))
    }
}

/// A command that is to make a file.
struct Job {
    command: Command,
    output: PathBuf,
    messages: PathBuf,
}

/// Commands that run, which are ended with this.
struct Running(Vec<(Group, Job)>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|(group, _)| group.end());
    }
}

/// A command as words: the name of a program as it stands, if there is such a file; else separated by spaces, where
/// quotes and backslashes hold words together as in a shell.
fn words(command: &OsStr) -> Result<Vec<OsString>, String> {
    if Path::new(command).is_file() {
        return Ok(vec![command.to_owned()]);
    }
    let text = command.to_str().ok_or("it is not UTF-8")?;
    let words = shell_words::split(text).map_err(|_| "a quote has no end")?;
    Ok(words.into_iter().map(OsString::from).collect())
}

fn is_set(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// What a command writes to its standard output, which is waited for no longer than this, and not when `stop` is set;
/// or why it does not serve.
fn version(command: &mut Command, limit: Duration, stop: Option<&AtomicBool>) -> Result<String, String> {
    let start = Instant::now();
    let failed = |error: io::Error| error.to_string();
    let over = || start.elapsed() > limit || is_set(stop);
    let hangs = || format!("--version did not end within {} seconds", limit.as_secs());
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut group = Group::spawn(command).map_err(failed)?;
    let (sender, receiver) = channel();
    if let Some(mut out) = group.take_stdout() {
        // Not waited for: a process that the command leaves behind may keep the pipe open.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = out.read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
    }
    let said = loop {
        match receiver.recv_timeout(Duration::from_millis(5)) {
            Ok(said) => break Some(said),
            Err(RecvTimeoutError::Timeout) if !over() => {}
            Err(_) => break None,
        }
    };
    let status = loop {
        match group.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if over() => {
                group.end();
                return Err(hangs());
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    match said {
        Some(said) if status.success() => Ok(String::from_utf8_lossy(&said).into_owned()),
        Some(_) => Err(format!("--version ended with {status}")),
        None => Err(hangs()),
    }
}

/// The lines of a compiler's messages that say what is wrong; without such a line, the first ones.
fn first_errors(said: &str) -> String {
    let mut lines: Vec<&str> = said.lines().filter(|l| l.contains("error")).take(8).collect();
    if lines.is_empty() {
        lines = said.lines().take(8).collect();
    }
    lines.join("\n")
}

/// A folder for one compilation, removed at the end with what is in it. A library that is loaded from there stays.
#[derive(Debug)]
pub(super) struct Workspace(PathBuf);

impl Workspace {
    /// Does something in a new folder that only this user can look into, in the first of these places where that
    /// succeeds: a disk may be full, or may run no code. What goes wrong in another way is not tried again.
    pub(super) fn in_one_of<T>(
        places: &[&Path],
        act: impl Fn(&Self) -> Result<T, CodegenError>,
    ) -> Result<T, CodegenError> {
        let mut result = Err(CodegenError::NoPlace);
        for place in places {
            result = Self::new(place).and_then(|work| act(&work));
            use CodegenError::{Failed, Io, Load, Untrusted};
            // A compiler that meets a full disk says so in its own words.
            if !matches!(result, Err(Failed { .. } | Io { .. } | Load(_) | Untrusted { .. })) {
                break;
            }
        }
        result
    }

    fn new(place: &Path) -> Result<Self, CodegenError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if let Some(error) = why_unsafe(place) {
            return Err(error);
        }
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let name = format!("autobatch-{}-{}-{time}", id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = place.join(name);
        removed_at_exit(&path);
        match create_private(&path, false) {
            Ok(()) => Ok(Self(path)),
            Err(error) => {
                is_removed(&path);
                Err(CodegenError::Io { path, error })
            }
        }
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans up.
        let _ = fs::remove_dir_all(&self.0);
        is_removed(&self.0);
    }
}

/// Makes a folder that only this user can read and write. Without `parents` it is an error if it is there already.
pub(super) fn create_private(path: &Path, parents: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(parents);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// `AUTOBATCH_CACHE`, or else `autobatch` in the folder that the XDG base directory specification names for caches.
pub(in crate::backend) fn default_cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("AUTOBATCH_CACHE").or_else(|| {
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
        Some(caches.join("autobatch"))
    })
}

/// The name of the processor and its features, as far as the system tells.
fn processor() -> &'static str {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(|| {
        let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let first = told.split("\n\n").next().unwrap_or_default();
        let kept = first.lines().filter(|l| {
            let name = l.split(':').next().unwrap_or_default().trim();
            ["vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part"]
                .contains(&name)
        });
        kept.fold(std::env::consts::ARCH.to_owned(), |all, line| all + "\n" + line)
    })
}
