//! The system's C compiler: found, run, its results kept on disk and loaded.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio, id};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use thiserror::Error;

/// The headers that generated C includes: name and text.
const HEADERS: [(&str, &str); 2] =
    [("lanes.h", include_str!("include/lanes.h")), ("vmath.h", include_str!("include/vmath.h"))];

/// Of every compilation: no operation is contracted or reordered, and no function sets `errno`.
const FLAGS: [&str; 9] = [
    "-std=gnu11",
    "-O2",
    // `AUTOBATCH_CC` may say otherwise.
    "-fno-fast-math",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-asynchronous-unwind-tables",
    "-shared",
    "-fPIC",
];

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

/// What code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The processor at hand, with the widest groups it has.
    Native,
    /// An x86-64 processor with AVX2 and FMA: groups of 4 lanes.
    Avx2,
    /// One lane at a time, in plain C.
    Scalar,
}

impl Target {
    /// Whether this processor can run such code.
    pub fn runs_here(self) -> bool {
        match self {
            Target::Native | Target::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Target::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Target::Avx2 => false,
        }
    }

    fn flags(self) -> &'static [&'static str] {
        const NATIVE: &str = if cfg!(target_arch = "x86_64") { "-march=native" } else { "-mcpu=native" };
        match self {
            Target::Native => &[NATIVE],
            Target::Avx2 => &["-mavx2", "-mfma"],
            Target::Scalar => &[NATIVE, "-DLANES_SCALAR"],
        }
    }
}

/// How a text is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
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

impl Compiler {
    /// The command in `AUTOBATCH_CC`, which may have arguments, or else the first of `cc`, `gcc` and `clang` that runs. Compiled
    /// code is kept in `AUTOBATCH_CACHE`, or else in `autobatch` in the user's folder for caches.
    pub fn find() -> Result<Self, CodegenError> {
        if cfg!(target_endian = "big") {
            return Err(CodegenError::BigEndian);
        }
        let commands = match std::env::var("AUTOBATCH_CC") {
            Ok(command) if !command.trim().is_empty() => vec![command],
            _ => ["cc", "gcc", "clang"].map(str::to_owned).to_vec(),
        };
        let mut tried = Vec::new();
        for command in commands {
            match Self::new(&command) {
                Ok(compiler) => return Ok(compiler.with_cache(default_cache())),
                Err(why) => tried.push(format!("`{command}`: {why}")),
            }
        }
        Err(CodegenError::NoCompiler { tried: tried.join("; ") })
    }

    /// A command with its arguments, separated by spaces; without a cache. Or why it is no compiler.
    fn new(command: &str) -> Result<Self, String> {
        let mut words = command.split_whitespace().map(OsString::from);
        let program = words.next().ok_or("no command")?;
        let arguments: Vec<OsString> = words.collect();
        let version = version(Command::new(&program).args(&arguments).arg("--version"), PROBE_LIMIT)?;
        Ok(Self { program, arguments, version, cache: None, stop: None })
    }

    /// The same compiler, whose results are kept in this folder, or nowhere. The folder need not exist, nor be writable.
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

    /// Compiles a text, which may include `lanes.h` and `vmath.h`, and loads it; or loads what an earlier run has left in the
    /// cache for the same text, headers, options, compiler and processor.
    pub fn load(&self, text: &str, options: &Options) -> Result<Library, CodegenError> {
        let key = self.key(text, options);
        let kept = self.cache.as_ref().map(|folder| folder.join(format!("{key:032x}.so")));
        if let Some(path) = &kept
            && is_sound(path, key)
        {
            // A file that is sound and cannot be loaded comes from another system: it is made again.
            if let Ok(library) = Library::open(path) {
                return Ok(library);
            }
        }
        let work = Workspace::new(self.cache.as_deref())?;
        let built = self.compile(text, options, &work)?;
        seal(&built, key).map_err(|error| CodegenError::Io { path: built.clone(), error })?;
        if let Some(path) = kept
            && fs::rename(&built, &path).is_ok()
        {
            // A folder of caches may be one from which nothing can be executed.
            return Library::open(&path).or_else(|_| {
                let elsewhere = Workspace::new(None)?;
                let copy = elsewhere.0.join("body.so");
                fs::copy(&path, &copy).map_err(|error| CodegenError::Io { path: copy.clone(), error })?;
                Library::open(&copy)
            });
        }
        Library::open(&built)
    }

    /// Runs the compiler; gives the path of the shared object.
    fn compile(&self, text: &str, options: &Options, work: &Workspace) -> Result<PathBuf, CodegenError> {
        for (name, text) in HEADERS.into_iter().chain([("body.c", text)]) {
            let path = work.0.join(name);
            fs::write(&path, text).map_err(|error| CodegenError::Io { path, error })?;
        }
        let messages = work.0.join("messages");
        let to = File::create(&messages).map_err(|error| CodegenError::Io { path: messages.clone(), error })?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(FLAGS).args(options.target.flags());
        if options.real_f32 {
            command.arg("-DREAL_F32");
        }
        // In the caller's folder, so that what `AUTOBATCH_CC` says may be relative.
        let built = work.0.join("body.so");
        command.arg(work.0.join("body.c")).arg("-o").arg(&built).arg("-lm");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
        let status = self.wait(command, TIME_LIMIT)?;
        if !status.success() {
            let said = fs::read(&messages).unwrap_or_default();
            let lines = first_errors(&String::from_utf8_lossy(&said));
            return Err(CodegenError::Failed { compiler: self.name().into_owned(), status, lines });
        }
        if built.is_file() { Ok(built) } else { Err(CodegenError::NoOutput { compiler: self.name().into_owned() }) }
    }

    fn wait(&self, mut command: Command, limit: Duration) -> Result<ExitStatus, CodegenError> {
        let failed = |error| CodegenError::Io { path: PathBuf::from(&self.program), error };
        let start = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(status);
            }
            let stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
            if stopped || start.elapsed() > limit {
                end(&mut child);
                if stopped {
                    return Err(CodegenError::Interrupted);
                }
                return Err(CodegenError::TimedOut { compiler: self.name().into_owned(), limit });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// All that the compiled code depends on, in 128 bits.
    fn key(&self, text: &str, options: &Options) -> u128 {
        digest(&(text, HEADERS, FLAGS, options, &self.program, &self.arguments, &self.version, processor()))
    }
}

/// Ends a process, which may have ended by itself in between: that does not matter.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// What a command writes to its standard output, which is waited for no longer than this; or why it does not serve.
fn version(command: &mut Command, limit: Duration) -> Result<String, String> {
    let start = Instant::now();
    let failed = |error: io::Error| error.to_string();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
    let (sender, receiver) = channel();
    if let Some(mut out) = child.stdout.take() {
        // Not waited for: a process that the command leaves behind may keep the pipe open.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = out.read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
    }
    let said = receiver.recv_timeout(limit);
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if start.elapsed() > limit => {
                end(&mut child);
                return Err(format!("--version did not end within {} seconds", limit.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    match said {
        Ok(said) if status.success() => Ok(String::from_utf8_lossy(&said).into_owned()),
        Ok(_) => Err(format!("--version ended with {status}")),
        Err(_) => Err(format!("--version did not end within {} seconds", limit.as_secs())),
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

/// Compiled code, loaded. Its functions are there until it is dropped.
#[derive(Debug)]
pub struct Library(libloading::Library);

impl Library {
    fn open(path: &Path) -> Result<Self, CodegenError> {
        // SAFETY: the file is what the compiler made of a text of ours, or was kept by an earlier run and has the digest that this
        // run wrote there. Such a text has no constructors, so loading it runs no code but that of the C library.
        let library = unsafe { libloading::Library::new(path)? };
        Ok(Self(library))
    }

    /// The address of a function of the text, as a pointer to it.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer (`unsafe extern "C" fn(…)`) with the parameters and the result that the function of
    /// this name has in the C text, and the pointer is not called after the library is dropped.
    pub unsafe fn symbol<F: Copy>(&self, name: &str) -> Result<F, CodegenError> {
        // SAFETY: the caller answers for the type; `libloading` checks that it has the size of a pointer.
        let symbol = unsafe { self.0.get::<F>(name)? };
        Ok(*symbol)
    }
}

/// A folder for one compilation, removed at the end with what is in it. A library that is loaded from there stays.
struct Workspace(PathBuf);

impl Workspace {
    /// In the cache if that can be written, so that results can be moved; else among the temporary files.
    fn new(cache: Option<&Path>) -> Result<Self, CodegenError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let name = format!("work-{}-{}-{time}", id(), COUNT.fetch_add(1, Ordering::Relaxed));
        if let Some(cache) = cache
            && create_private(cache, true).is_ok()
            && create_private(&cache.join(&name), false).is_ok()
        {
            return Ok(Self(cache.join(name)));
        }
        let path = std::env::temp_dir().join(format!("autobatch-{name}"));
        create_private(&path, false).map_err(|error| CodegenError::Io { path: path.clone(), error })?;
        Ok(Self(path))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans up.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a folder that only this user can read and write. Without `parents` it is an error if it is there already.
fn create_private(path: &Path, parents: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(parents);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// `AUTOBATCH_CACHE`, or else `autobatch` in the folder that the XDG base directory specification names for caches.
fn default_cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("AUTOBATCH_CACHE").or_else(|| {
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
        Some(caches.join("autobatch"))
    })
}

/// Appends the digest of a file and of its key to it. The loader does not read beyond the end of the object.
fn seal(path: &Path, key: u128) -> io::Result<()> {
    let mut bytes = fs::read(path)?;
    bytes.extend(digest(&(&bytes, key)).to_le_bytes());
    fs::write(path, bytes)
}

/// Whether a file is there, whole, and what this run would write under this key.
fn is_sound(path: &Path, key: u128) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let Some((object, seal)) = bytes.split_last_chunk::<16>() else { return false };
    digest(&(object, key)).to_le_bytes() == *seal
}

/// 128 bits that tell values apart, the same in every run of one build of this program.
fn digest(value: &impl Hash) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        value.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
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
