//! NVIDIA's compiler at run time (NVRTC): found, loaded, run. It needs no GPU.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use super::code::Code;
use super::device::Scope;
use crate::backend::cpu::codegen::cache::{Cache, digest};
use crate::backend::cpu::codegen::compiler::{default_cache, headers};
use crate::types::Precision;

/// Of every compilation: no operation is contracted, and all are rounded as IEEE 754 has it.
const OPTIONS: [&str; 7] = [
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ptxas-options=-v",
    "--no-cache",
];

/// What is kept is for this version of ours: another calls machine code otherwise.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Names by which the loader may know it.
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// Why there is no code for a GPU.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// It is not there.
    #[error(
        "NVIDIA's run-time compiler (NVRTC) was not found ({0}); install the CUDA toolkit or the Python package \
         `nvidia-cuda-nvrtc`, and name the file libnvrtc.so.13, or its folder, in AUTOBATCH_NVRTC"
    )]
    Missing(String),
    /// `AUTOBATCH_NVRTC_FLAGS` cannot be read.
    #[error("AUTOBATCH_NVRTC_FLAGS: {0}")]
    Flags(String),
    /// It rejected the text, which is a fault of the code generator or of an old version.
    #[error("NVRTC {version} failed:\n{log}")]
    Failed {
        /// Its version.
        version: String,
        /// What it said.
        log: String,
    },
}

/// The compiler, loaded.
pub(super) struct Nvrtc {
    library: Library,
    _builtins: Option<Library>,
    version: (c_int, c_int),
}

/// Machine code for a kind of GPU, and what the compiler said of it.
pub(super) struct Cubin {
    pub(super) code: Vec<u8>,
    pub(super) log: String,
}

/// What machine code takes of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MachineCode {
    /// Bytes of it, with all that a GPU loads beside instructions.
    pub bytes: usize,
    /// Registers of a thread.
    pub registers: usize,
    /// Bytes that a thread stores for want of registers.
    pub spilled: usize,
}

impl MachineCode {
    /// By the log of the assembler, if it has both: `… 0 bytes spill stores, …`, `Used 72 registers`.
    pub(super) fn of(cubin: &Cubin) -> Option<Self> {
        let words: Vec<&str> = cubin.log.split_whitespace().collect();
        let number = |text: &str| text.parse::<usize>().ok();
        let spills = words.windows(4).filter(|w| w[1..] == ["bytes", "spill", "stores,"]).map(|w| number(w[0]));
        let registers = words.windows(3).filter(|w| w[0] == "Used" && w[2].starts_with("registers"));
        let spilled = spills.reduce(|a, b| Some(a? + b?))??;
        let registers = registers.map(|w| number(w[1])).reduce(|a, b| Some(a?.max(b?)))??;
        Some(Self { bytes: cubin.code.len(), registers, spilled })
    }
}

type Program = *mut c_void;

impl Nvrtc {
    /// The one that `AUTOBATCH_NVRTC` names, that the loader finds, or that stands where the toolkit is installed.
    ///
    /// # Errors
    /// [`NvrtcError::Missing`].
    pub(super) fn find() -> Result<Self, NvrtcError> {
        let mut tried = Vec::new();
        let named = std::env::var_os("AUTOBATCH_NVRTC").filter(|name| !name.is_empty()).map(PathBuf::from);
        let candidates = match &named {
            Some(path) if path.is_dir() => {
                NAMES.map(|name| path.join(name)).into_iter().filter(|p| p.exists()).collect()
            }
            Some(path) => vec![path.clone()],
            None => NAMES.map(PathBuf::from).into_iter().chain(installed()).collect::<Vec<_>>(),
        };
        for path in candidates {
            match Self::load(&path) {
                Ok(found) => return Ok(found),
                Err(why) => tried.push(format!("`{}`: {why}", path.display())),
            }
        }
        if let (Some(path), true) = (named, tried.is_empty()) {
            tried.push(format!("no library in `{}`", path.display()));
        }
        Err(NvrtcError::Missing(tried.join("; ")))
    }

    fn load(path: &Path) -> Result<Self, libloading::Error> {
        // It looks for a second library by name, which the loader may not know.
        let builtins = path.parent().filter(|folder| folder.is_dir()).and_then(|folder| {
            let is_builtins = |name: &OsStr| name.to_string_lossy().starts_with("libnvrtc-builtins.so");
            let mut files = std::fs::read_dir(folder).ok()?.flatten().filter(|file| is_builtins(&file.file_name()));
            // SAFETY: NVIDIA's libraries may be loaded by anybody.
            files.find_map(|file| unsafe { Library::open(Some(file.path()), RTLD_NOW | RTLD_GLOBAL) }.ok())
        });
        // SAFETY: as above.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)? };
        let mut version = (0, 0);
        // SAFETY: the function is as the manual of NVRTC says, and writes two numbers.
        unsafe {
            let ask = library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion\0")?;
            ask(&raw mut version.0, &raw mut version.1);
        }
        Ok(Self { library, _builtins: builtins, version })
    }

    /// Its version, as in `13.0`.
    pub(super) fn version(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// Compiles a text, which may include the headers of generated code.
    ///
    /// # Errors
    /// [`NvrtcError`].
    pub(super) fn compile(&self, text: &str, options: &[String]) -> Result<Cubin, NvrtcError> {
        let failed = |log: String| NvrtcError::Failed { version: self.version(), log };
        let c_string = |text: &str| CString::new(text).map_err(|_| failed("a text with a zero in it".to_owned()));
        let text = c_string(text)?;
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        for (name, header) in headers() {
            names.push(c_string(name)?);
            texts.push(c_string(header)?);
        }
        let options: Vec<CString> = options.iter().map(|option| c_string(option)).collect::<Result<_, _>>()?;
        let pointers = |of: &[CString]| of.iter().map(|text| text.as_ptr()).collect::<Vec<*const c_char>>();
        let (names, texts, options) = (pointers(&names), pointers(&texts), pointers(&options));
        let broken = |error: libloading::Error| failed(error.to_string());
        // SAFETY: the functions are as the manual of NVRTC says. All texts end with a zero and live until the end; buffers have
        // the sizes that it asks for.
        unsafe {
            type Create = unsafe extern "C" fn(
                *mut Program,
                *const c_char,
                *const c_char,
                c_int,
                *const *const c_char,
                *const *const c_char,
            ) -> c_int;
            let create = self.library.get::<Create>(b"nvrtcCreateProgram\0").map_err(broken)?;
            type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
            let compile = self.library.get::<Compile>(b"nvrtcCompileProgram\0").map_err(broken)?;
            type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
            type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
            let log_size = self.library.get::<Size>(b"nvrtcGetProgramLogSize\0").map_err(broken)?;
            let get_log = self.library.get::<Get>(b"nvrtcGetProgramLog\0").map_err(broken)?;
            let code_size = self.library.get::<Size>(b"nvrtcGetCUBINSize\0").map_err(broken)?;
            let get_code = self.library.get::<Get>(b"nvrtcGetCUBIN\0").map_err(broken)?;
            type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
            let destroy = self.library.get::<Destroy>(b"nvrtcDestroyProgram\0").map_err(broken)?;
            let mut program: Program = ptr::null_mut();
            let made = create(
                &raw mut program,
                text.as_ptr(),
                c"machine.cu".as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            );
            if made != 0 {
                return Err(failed(format!("it makes no program (code {made})")));
            }
            let result = compile(program, options.len() as c_int, options.as_ptr());
            let mut size = 0;
            log_size(program, &raw mut size);
            let mut log = vec![0_u8; size.max(1)];
            get_log(program, log.as_mut_ptr().cast());
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy().into_owned();
            let mut code = Vec::new();
            if result == 0 {
                let mut size = 0;
                code_size(program, &raw mut size);
                code = vec![0_u8; size];
                get_code(program, code.as_mut_ptr().cast());
            }
            destroy(&raw mut program);
            if result != 0 { Err(failed(first_lines(&log))) } else { Ok(Cubin { code, log }) }
        }
    }
}

/// The options of a compilation for a kind of GPU (`sm_90`), with those of `AUTOBATCH_NVRTC_FLAGS`.
///
/// # Errors
/// [`NvrtcError::Flags`].
pub(super) fn options(arch: &str, code: &Code, scope: Scope) -> Result<Vec<String>, NvrtcError> {
    let more = std::env::var("AUTOBATCH_NVRTC_FLAGS").unwrap_or_default();
    let more = shell_words::split(&more).map_err(|error| NvrtcError::Flags(error.to_string()))?;
    let mut options: Vec<String> = OPTIONS.map(str::to_owned).to_vec();
    options.push(format!("--gpu-architecture={arch}"));
    options.push(format!("-DAB_TILE_WIDTH={}", code.tiles(shared_memory(arch)).0));
    options.extend((code.precision == Precision::F32).then(|| "-DREAL_F32".to_owned()));
    options.extend((scope == Scope::Block).then(|| "-DAB_SCOPE_BLOCK".to_owned()));
    options.extend(more);
    Ok(options)
}

/// Bytes of shared memory that a block can have (the CUDA programming guide's table of compute capabilities).
pub(super) fn shared_memory(arch: &str) -> usize {
    match arch {
        "sm_90" | "sm_100" | "sm_103" => 227 << 10,
        "sm_80" | "sm_87" => 163 << 10,
        _ => 99 << 10,
    }
}

/// The machine code of a text for a kind of GPU (`sm_90`), with what the compiler said: what an earlier run has left in the
/// cache for the same text, headers and options, or else made now. What was kept says nothing, and needs no compiler.
///
/// # Errors
/// [`NvrtcError`].
pub(super) fn cubin(code: &Code, arch: &str, scope: Scope) -> Result<Cubin, NvrtcError> {
    let (text, options) = (&code.text[..], options(arch, code, scope)?);
    let parts = headers().into_iter().flat_map(|(name, text)| [name, text]).chain([VERSION, text]);
    let key = digest(parts.chain(options.iter().map(String::as_str)).map(str::as_bytes));
    let cache = default_cache().and_then(|folder| Cache::open(&folder).ok().flatten());
    if let Some(code) = cache.as_ref().and_then(|cache| cache.get(&key)) {
        return Ok(Cubin { code, log: String::new() });
    }
    let made = made(text, &options)?;
    if let Some(cache) = cache {
        cache.put(&key, &made.code);
    }
    Ok(made)
}

/// Where code is kept, if anywhere, for people.
pub(super) fn kept_in() -> String {
    match default_cache().filter(|folder| matches!(Cache::open(folder), Ok(Some(cache)) if cache.takes())) {
        Some(folder) => format!("kept in {}", folder.display()),
        None => "kept nowhere: name a folder in AUTOBATCH_CACHE".to_owned(),
    }
}

/// The machine code of a text, made now.
///
/// # Errors
/// [`NvrtcError`].
pub(super) fn made(text: &str, options: &[String]) -> Result<Cubin, NvrtcError> {
    Nvrtc::find()?.compile(text, options)
}

/// The first lines of a long log.
fn first_lines(log: &str) -> String {
    log.lines().filter(|line| line.contains("error")).take(8).collect::<Vec<_>>().join("\n")
}

/// Where toolkits are installed.
fn installed() -> Vec<PathBuf> {
    let roots = std::fs::read_dir("/usr/local").into_iter().flatten().flatten().map(|entry| entry.path());
    let toolkits = roots.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cuda")));
    let folders = toolkits.flat_map(|root| [root.join("lib64"), root.join("targets/x86_64-linux/lib")]);
    folders.flat_map(|folder| NAMES.map(|name| folder.join(name))).filter(|path| path.exists()).collect()
}
