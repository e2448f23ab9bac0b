//! The host as a device: the text of a machine compiled as C, with warps of one thread. What it computes is what a GPU does.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::device::{Device, DeviceError, Grid, Memory, Run};
use crate::backend::cpu::codegen::compiler::{CodegenError, Compiler, CompilerOptions, Library, Target};
use crate::types::Precision;

/// Threads of the machine: so many lanes are under way at a time, so that lanes wait, and are refilled.
const THREADS: usize = 48;

/// The function of a machine.
type Function = unsafe extern "C" fn(*const Run, u32);

/// The function of a program, loaded.
#[derive(Debug)]
pub(super) struct Host {
    function: Function,
    _library: Library,
}

impl Host {
    /// Compiles a text.
    ///
    /// # Errors
    /// Where there is no C compiler, or it fails.
    pub(super) fn new(text: &str, name: &str, precision: Precision) -> Result<Self, CodegenError> {
        let options = CompilerOptions { real_f32: precision == Precision::F32, target: Target::Scalar };
        // SAFETY: the text has a function of this name, which takes such a struct and a number.
        let look = |library: &Library| unsafe { library.symbol::<Function>(name) };
        let (library, function) = Compiler::find()?.load_with(text, &options, look)?;
        Ok(Self { function, _library: library })
    }
}

/// Memory of the host, in words, so that all elements are aligned; atomic ones, since functions change them through their
/// address.
pub(super) struct Words(Vec<AtomicU64>);

impl Words {
    /// So many bytes, all zero.
    ///
    /// # Errors
    /// Where there is no room.
    pub(super) fn of(bytes: usize) -> Result<Box<dyn Memory>, DeviceError> {
        let words = bytes.div_ceil(8).max(1);
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).map_err(|_| DeviceError::NoMemory(bytes))?;
        memory.resize_with(words, || AtomicU64::new(0));
        Ok(Box::new(Self(memory)))
    }
    fn bytes(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }
    fn check(&self, at: usize, bytes: usize) {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.0.len() * 8), "within the memory");
    }
}

impl Memory for Words {
    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check(at, bytes.len());
        // SAFETY: the place is within the memory, and no function runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes().add(at), bytes.len()) };
        Ok(())
    }
    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check(at, bytes.len());
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(self.bytes().add(at), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
    fn read_words(&self, at: usize, words: &mut [u64]) -> Result<(), DeviceError> {
        let from = &self.0[at..at + words.len()];
        words.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        Ok(())
    }
    fn fill(&mut self, byte: u8) -> Result<(), DeviceError> {
        self.0.iter().for_each(|word| word.store(u64::from_ne_bytes([byte; 8]), Ordering::Relaxed));
        Ok(())
    }
}

impl Device for Host {
    fn name(&self) -> String {
        "the processor, with the text for a GPU".to_owned()
    }
    fn threads(&self) -> Result<usize, DeviceError> {
        Ok(THREADS)
    }
    fn grid(&self, threads: usize, _: bool) -> Grid {
        Grid { blocks: threads, threads: 1, columns: 1 }
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
        let threads = grid.blocks;
        let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(threads));
        let work = || {
            while let Some(thread) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|thread| *thread < threads) {
                // SAFETY: the caller answers for what the struct names; threads share only what they change atomically.
                unsafe { (self.function)(&raw const run, thread as u32) };
                left.fetch_sub(1, Ordering::Release);
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(threads);
        std::thread::scope(|scope| {
            let mut started = 0;
            for _ in 0..workers {
                started +=
                    usize::from(std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, work).is_ok());
            }
            if started == 0 {
                work();
            }
            // SAFETY: the caller answers for what the struct names; this word is atomic for all.
            unsafe { stop_until(|| left.load(Ordering::Acquire) == 0, &run, stops) };
        });
        Ok(())
    }
}

/// Until a run on the host has ended, sets its word where it is to stop.
///
/// # Safety
/// `run.stop` is a word of memory of the host, which is read and written as a whole while this goes on.
pub(super) unsafe fn stop_until(has_ended: impl Fn() -> bool, run: &Run, stops: &dyn Fn() -> bool) {
    // SAFETY: the caller answers for that.
    let stop = unsafe { AtomicU32::from_ptr(run.stop as *mut u32) };
    while !has_ended() {
        if stops() {
            stop.store(1, Ordering::Relaxed);
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}
