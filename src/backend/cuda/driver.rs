//! A GPU through NVIDIA's driver, which is looked for when it is asked for: nothing of CUDA is needed to build.

use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::OnceLock;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    CUcontext, CUdevice_attribute as Attribute, CUfunction, CUfunction_attribute, CUmodule, CUstream,
};

use super::WARP;
use super::device::{Device, DeviceError, Grid, Memory, Run};

/// Threads of a block, where there are enough: `AB_THREADS`.
const BLOCK: usize = 256;

/// GPUs with less cannot do what a machine asks of them: reductions over a warp.
const LEAST: (i32, i32) = (8, 0);

/// A GPU.
#[derive(Clone, Debug)]
pub struct Gpu {
    number: i32,
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: (i32, i32),
    /// Bytes of its memory.
    pub memory: usize,
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// Once something is to run there.
    context: Option<Context>,
}

/// The primary context of a GPU, which all threads share. It is kept until the process ends.
#[derive(Clone, Copy, Debug)]
struct Context(CUcontext);

// SAFETY: the driver may be called with a context from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Why there is no GPU to run on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoGpu {
    /// The driver is not installed.
    #[error("no NVIDIA driver was found (libcuda.so.1): install the driver of your GPU, or use `--device cpu`")]
    NoDriver,
    /// There is no such GPU.
    #[error("there is no GPU {asked}: {there}")]
    NotThere {
        /// The number that was asked for.
        asked: usize,
        /// How many there are.
        there: String,
    },
    /// It cannot do what is asked of it.
    #[error("`{name}` has compute capability {}.{}: at least {}.{} is needed; use `--device cpu`", .capability.0, .capability.1, LEAST.0, LEAST.1)]
    TooOld {
        /// Its name.
        name: String,
        /// What it has.
        capability: (i32, i32),
    },
    /// What the driver says.
    #[error("the NVIDIA driver fails: {0}")]
    Failed(String),
}

fn told(error: DriverError) -> String {
    error.error_string().map_or_else(|_| format!("{error:?}"), |text| text.to_string_lossy().into_owned())
}

impl From<DriverError> for NoGpu {
    fn from(error: DriverError) -> Self {
        NoGpu::Failed(told(error))
    }
}

fn failed(what: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError::Failed { what, why: told(error) }
}

/// All GPUs that the driver shows.
///
/// # Errors
/// [`NoGpu`], where there is no driver or it fails.
pub fn gpus() -> Result<Vec<Gpu>, NoGpu> {
    static FOUND: OnceLock<Result<Vec<Gpu>, NoGpu>> = OnceLock::new();
    FOUND.get_or_init(look).clone()
}

fn look() -> Result<Vec<Gpu>, NoGpu> {
    // SAFETY: loading the driver's library runs its start-up code, as it is meant to.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err(NoGpu::NoDriver);
    }
    result::init()?;
    let count = result::device::get_count()?;
    (0..count).map(Gpu::of).collect()
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gpu { name, capability: (major, minor), memory, multiprocessors, .. } = self;
        let mib = memory >> 20;
        write!(f, "{name}, {mib} MiB, {multiprocessors} multiprocessors, compute capability {major}.{minor}")
    }
}

impl Gpu {
    /// The GPU of this number.
    ///
    /// # Errors
    /// [`NoGpu`], also where it is too old.
    pub fn numbered(number: usize) -> Result<Self, NoGpu> {
        let all = gpus()?;
        let there = match all.len() {
            0 => "the driver shows none".to_owned(),
            n => format!("the driver shows {n}, from 0 on"),
        };
        let mut gpu = all.into_iter().nth(number).ok_or(NoGpu::NotThere { asked: number, there })?;
        if gpu.capability < LEAST {
            return Err(NoGpu::TooOld { name: gpu.name, capability: gpu.capability });
        }
        // SAFETY: the device was returned by the driver. The context is retained and never released.
        let context = unsafe { result::primary_ctx::retain(result::device::get(gpu.number)?)? };
        gpu.context = Some(Context(context));
        Ok(gpu)
    }

    fn of(number: i32) -> Result<Self, NoGpu> {
        let device = result::device::get(number)?;
        // SAFETY: the device was returned by the driver.
        let ask = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let capability = (
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let multiprocessors = ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        // SAFETY: as above.
        let memory = unsafe { result::device::total_mem(device)? };
        let name = result::device::get_name(device)?;
        Ok(Self { number, name, capability, memory, multiprocessors, context: None })
    }

    /// Its number for the driver.
    pub fn number(&self) -> i32 {
        self.number
    }

    /// The kind of GPU for the compiler, as in `sm_90`.
    pub fn arch(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }

    fn enter(&self) -> Result<(), DriverError> {
        let context = self.context.as_ref().expect("what runs has a context");
        // SAFETY: the context is there until the process ends.
        unsafe { result::ctx::set_current(context.0) }
    }
}

/// A GPU with the function of a program.
#[derive(Debug)]
pub(super) struct Loaded {
    gpu: Gpu,
    module: CUmodule,
    function: CUfunction,
    /// For the program, and for what is to reach it while it runs: a program that looked into the memory of the host would
    /// wait for it most of the time.
    streams: Vec<CUstream>,
    /// Of the function, that a multiprocessor has at a time.
    blocks: usize,
    /// Bytes that all threads take for variables of the function.
    local: usize,
    /// Bytes of shared memory that a block is given.
    shared: usize,
}

// SAFETY: modules, functions and streams belong to the context, which may be used from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Threads that a multiprocessor has at most, for all of which the driver takes local memory.
const MOST_THREADS: usize = 2048;

impl Loaded {
    /// Loads machine code.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn new(gpu: Gpu, code: &[u8], (name, shared): (&str, usize)) -> Result<Self, DeviceError> {
        let fails = failed("the code of the program cannot be loaded");
        gpu.enter().map_err(&fails)?;
        let name = CString::new(name).expect("a name of ours");
        // SAFETY: the code is what NVRTC made, and the handles are the driver's. What was made is given back in `drop`.
        unsafe {
            let module = result::module::load_data(code.as_ptr().cast()).map_err(&fails)?;
            let function = std::ptr::null_mut();
            let mut loaded = Self { gpu, module, function, streams: Vec::new(), blocks: 1, local: 0, shared };
            loaded.function = result::module::get_function(module, name).map_err(&fails)?;
            result::function::set_function_attribute(
                loaded.function,
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                shared as i32,
            )
            .map_err(&fails)?;
            let blocks = result::occupancy::max_active_block_per_multiprocessor(loaded.function, BLOCK as i32, shared);
            loaded.blocks = blocks.map_err(&fails)?.max(1) as usize;
            let bytes = result::function::get_function_attribute(
                loaded.function,
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            );
            loaded.local = bytes.map_err(&fails)?.max(0) as usize * loaded.gpu.multiprocessors * MOST_THREADS;
            for _ in 0..2 {
                loaded.streams.push(result::stream::create(result::stream::StreamKind::NonBlocking).map_err(&fails)?);
            }
            Ok(loaded)
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: nothing runs any more, and nobody else has these.
            unsafe {
                self.streams.iter().for_each(|stream| _ = result::stream::destroy(*stream));
                let _ = result::module::unload(self.module);
            }
        }
    }
}

/// Memory of a GPU.
struct Bytes {
    gpu: Gpu,
    address: u64,
    bytes: usize,
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: it was allocated, and nothing runs any more that uses it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

impl Memory for Bytes {
    fn address(&self) -> u64 {
        self.address
    }
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes), "within the memory");
        let fails = failed("nothing can be copied to the GPU");
        self.gpu.enter().map_err(&fails)?;
        // SAFETY: the place is within the memory.
        unsafe { result::memcpy_htod_sync(self.address + at as u64, bytes).map_err(&fails) }
    }
    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes), "within the memory");
        if bytes.is_empty() {
            return Ok(());
        }
        let fails = failed("nothing can be copied from the GPU");
        self.gpu.enter().map_err(&fails)?;
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_sync(bytes, self.address + at as u64).map_err(&fails) }
    }
    fn read_words(&self, at: usize, words: &mut [u64]) -> Result<(), DeviceError> {
        assert!(at.checked_add(words.len()).is_some_and(|end| end <= self.bytes / 8), "within the memory");
        if words.is_empty() {
            return Ok(());
        }
        let fails = failed("nothing can be copied from the GPU");
        self.gpu.enter().map_err(&fails)?;
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_sync(words, self.address + 8 * at as u64).map_err(&fails) }
    }
    fn fill(&mut self, byte: u8) -> Result<(), DeviceError> {
        let fails = failed("the memory of the GPU cannot be set");
        self.gpu.enter().map_err(&fails)?;
        // SAFETY: as above.
        unsafe { result::memset_d8_sync(self.address, byte, self.bytes).map_err(&fails) }
    }
}

impl Device for Loaded {
    fn name(&self) -> String {
        self.gpu.name.clone()
    }
    fn threads(&self) -> Result<usize, DeviceError> {
        Ok(self.gpu.multiprocessors * self.blocks * BLOCK)
    }
    fn grid(&self, threads: usize, meets: bool) -> Grid {
        // Few lanes are spread over all multiprocessors.
        let multiprocessors = self.gpu.multiprocessors;
        let columns = match meets {
            true => threads.div_ceil(multiprocessors * self.blocks).next_multiple_of(BLOCK / WARP).min(BLOCK),
            false if threads.div_ceil(BLOCK) < multiprocessors => 32,
            false => BLOCK,
        };
        Grid { columns, blocks: threads.div_ceil(columns), threads: if meets { BLOCK } else { columns } }
    }
    fn most_records(&self) -> usize {
        64 << 20
    }
    fn room(&self) -> Result<usize, DeviceError> {
        let fails = failed("the GPU does not tell its memory");
        self.gpu.enter().map_err(&fails)?;
        // The driver takes local memory when the function is started.
        Ok(result::mem_get_info().map_err(&fails)?.0.saturating_sub(self.local))
    }
    fn memory(&self, bytes: usize) -> Result<Box<dyn Memory>, DeviceError> {
        let bytes = bytes.max(8);
        self.gpu.enter().map_err(failed("the GPU does not answer"))?;
        // SAFETY: it is set below, before anybody reads it.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(|_| DeviceError::NoMemory(bytes))?;
        let mut memory = Bytes { gpu: self.gpu.clone(), address, bytes };
        memory.fill(0)?;
        Ok(Box::new(memory))
    }
    unsafe fn launch(&self, run: Run, grid: Grid, stops: &dyn Fn() -> bool) -> Result<(), DeviceError> {
        let fails = failed("the program failed on the GPU");
        self.gpu.enter().map_err(&fails)?;
        let mut run = run;
        let [program, beside] = self.streams[..] else { unreachable!("there are two streams") };
        let mut parameters = [(&raw mut run).cast::<c_void>()];
        // SAFETY: the function takes one struct of this layout, and the caller answers for
        // what it names. The event and the struct live until the function has come back.
        unsafe {
            // What was copied before is there.
            result::ctx::synchronize().map_err(&fails)?;
            let event =
                result::event::create(cudarc::driver::sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(&fails)?;
            let (grid, block) = ((grid.blocks as u32, 1, 1), (grid.threads as u32, 1, 1));
            let launched =
                result::launch_kernel(self.function, grid, block, self.shared as u32, program, &mut parameters)
                    .and_then(|()| result::event::record(event, program));
            let (mut waited, mut told, mut untold) = (0_u32, false, None);
            let ended = launched.and_then(|()| {
                loop {
                    match result::event::query(event) {
                        Ok(()) => break result::event::synchronize(event),
                        Err(error) if error.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_READY => {}
                        Err(error) => break Err(error),
                    }
                    if !told && stops() {
                        // The driver has copied the word before it returns. Whatever it says, the function runs on.
                        untold = result::memcpy_htod_async(run.stop, &[1_u32], beside).err();
                        told = true;
                    }
                    waited = waited.saturating_add(1);
                    if waited > 2000 {
                        std::thread::sleep(std::time::Duration::from_micros(50));
                    }
                }
            });
            let _ = result::event::destroy(event);
            match untold {
                Some(error) => Err(fails(error)),
                None => ended.map_err(&fails),
            }
        }
    }
}
