//! A GPU of threads of the host, for tests: the text for a GPU as it is, with warps, barriers and blocks of threads. What
//! `cuda-host` has in one thread is done together here, so that what threads of a block do for one another is tried
//! where there is no GPU. The threads take turns, or are threads of the host under ThreadSanitizer.

use std::sync::atomic::{AtomicBool, Ordering};

use super::WARP;
use super::code::Code;
use super::device::{Device, DeviceError, Grid, Memory, Run, Scope};
use super::host::{Words, stop_until};
use crate::backend::cpu::codegen::compiler::{CodegenError, Compiler, CompilerOptions, Library, Target};
use crate::types::Precision;

/// Threads of a block.
const BLOCK: usize = 64;
/// Blocks of a run.
const BLOCKS: usize = 3;

/// Columns of a tile: fewer than a block can have.
const COLUMNS: usize = 24;

/// What the text asks of CUDA, and what begins threads.
const BEFORE: &str = concat!("#define AB_THREADS 64\n", include_str!("rt/emulated.h"));
const AFTER: &str = include_str!("rt/emulated_launch.h");

type Function = unsafe extern "C" fn(*const Run, u32, u32);

/// The function of a program, loaded.
#[derive(Debug)]
pub(super) struct Emulated {
    function: Function,
    _library: Library,
}

impl Emulated {
    /// Compiles the code of a program.
    ///
    /// # Errors
    /// Where there is no C++ compiler, or it fails.
    pub(super) fn new(code: &Code, scope: Scope) -> Result<Self, CodegenError> {
        let options = CompilerOptions { real_f32: code.precision == Precision::F32, target: Target::Emulated };
        let scope = if scope == Scope::Block { "#define AB_SCOPE_BLOCK\n" } else { "" };
        let text = format!("#define AB_TILE_WIDTH {COLUMNS}\n{scope}{BEFORE}{}{AFTER}", code.text);
        // SAFETY: the text has a function of this name, which takes such a struct and two numbers.
        let look = |library: &Library| unsafe { library.symbol::<Function>("ab_emulated") };
        let (library, function) = Compiler::find()?.load_with(&text, &options, look)?;
        Ok(Self { function, _library: library })
    }
}

impl Device for Emulated {
    fn name(&self) -> String {
        "threads of the processor, with the text for a GPU".to_owned()
    }
    fn threads(&self) -> Result<usize, DeviceError> {
        Ok(BLOCK * BLOCKS)
    }
    fn grid(&self, threads: usize, meets: bool) -> Grid {
        let columns = if meets { threads.div_ceil(BLOCKS).next_multiple_of(BLOCK / WARP).min(BLOCK) } else { BLOCK };
        Grid { columns, blocks: threads.div_ceil(columns), threads: BLOCK }
    }
    fn most_records(&self) -> usize {
        1 << 16
    }
    fn room(&self) -> Result<usize, DeviceError> {
        Ok(crate::run::available_memory().unwrap_or(1 << 30) / 2)
    }
    fn memory(&self, bytes: usize) -> Result<Box<dyn Memory>, DeviceError> {
        Words::of(bytes)
    }
    unsafe fn launch(&self, run: Run, grid: Grid, stops: &dyn Fn() -> bool) -> Result<(), DeviceError> {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: the caller answers for what the struct names.
                unsafe { (self.function)(&raw const run, grid.blocks as u32, grid.threads as u32) };
                ended.store(true, Ordering::Release);
            });
            // SAFETY: as above; this word is read as a whole.
            unsafe { stop_until(|| ended.load(Ordering::Acquire), &run, stops) };
        });
        Ok(())
    }
}
