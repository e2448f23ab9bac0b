//! The `autobatch` command.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;

fn main() -> ExitCode {
    autobatch::cli::main()
}

/// The system's allocator, with large blocks aligned to cache lines: lane buffers are read and written in vectors that fill
/// one, and vectors across two lines take twice as long. Sampling eight schools with generated code takes 10 % less time.
struct CacheLines;

/// Depends on the size alone, so that a block is given back with the layout that it was taken with.
fn aligned(layout: Layout) -> Layout {
    const LARGE: usize = 512;
    const CACHE_LINE: usize = 64;
    if layout.size() < LARGE { layout } else { layout.align_to(CACHE_LINE).unwrap_or(layout) }
}

// SAFETY: every call is passed on to the system's allocator, with a layout of the same size that depends on the given one
// only; memory that is aligned to more than was asked for is aligned to that too. `realloc` is made of these.
unsafe impl GlobalAlloc for CacheLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.alloc(aligned(layout)) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(aligned(layout)) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block was taken with the same layout.
        unsafe { System.dealloc(block, aligned(layout)) }
    }
}

#[global_allocator]
static ALLOCATOR: CacheLines = CacheLines;
