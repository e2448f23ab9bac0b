//! How generated functions are called: the structs of `include/prelude.h`.

use std::ffi::c_void;

/// A generated function.
pub type CodeFunction = unsafe extern "C" fn(*mut CodeCall);

/// The memory of a stack.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// Its levels.
    pub memory: *mut c_void,
    /// By lane.
    pub heights: *mut u32,
    /// Values pushed.
    pub pushes: u64,
    /// Largest height that any lane had.
    pub highest: u32,
}

/// A lane that trapped, and where.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeTrap {
    /// The lane.
    pub lane: u32,
    /// The number of the place.
    pub site: u32,
}

/// What a function works on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CodeCall {
    /// Lane buffers, `width` lanes each, and buffers of one value.
    pub slots: *const *mut c_void,
    /// Shared values.
    pub constants: *const *const c_void,
    /// Stacks, with room for what is pushed.
    pub stacks: *mut Stack,
    /// The active lanes, one bit each.
    pub mask: *const u8,
    /// Gets the active lanes in which the condition holds; zeros before.
    pub taken: *mut u8,
    /// Lanes.
    pub width: i64,
    /// Of the random streams.
    pub seed: u64,
    /// Numbers of the random streams.
    pub numbers: *const u64,
    /// Draws made.
    pub draws: *mut u64,
    /// Room for a trap of each lane.
    pub traps: *mut CodeTrap,
    /// How many there are.
    pub trapped: i64,
    /// For functions that send the lanes on: by unit, the mask of the lanes that wait there.
    pub waiting: *mut u64,
    /// How many these are.
    pub counts: *mut u32,
    /// The units at which lanes wait, one bit each.
    pub occupied: *mut u64,
    /// Gets the lanes that are done, one bit each; zeros before.
    pub done: *mut u64,
    /// How many these are.
    pub finished: i64,
    /// The stacks of return addresses, with room for one more.
    pub returns: *mut Stack,
    /// How high they may be.
    pub deepest: u32,
}
