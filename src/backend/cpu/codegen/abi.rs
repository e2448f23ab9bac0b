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
    /// For which there is memory.
    pub levels: u32,
}

/// A lane that trapped, and where.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeTrap {
    /// The lane.
    pub lane: u32,
    /// The number of the place.
    pub site: u32,
    /// Of a place with an index, the one that is out of range.
    pub index: i64,
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
    /// For regions: how high tapes may be.
    pub tape_limit: u32,
    /// Makes room for one more level of what is among `stacks`, by its number; 0 where there is no memory.
    pub grow: Option<unsafe extern "C" fn(*mut CodeCall, i64) -> i32>,
    /// What `grow` and `note` work on.
    pub tapes: *mut c_void,
    /// How often the blocks run, if that is counted.
    pub ran: *mut u64,
    /// The exit by which the lanes left; what it was, where all have trapped.
    pub left: i64,
    /// Whether the run is to stop, and whether a lane ended it.
    pub stop: *const u8,
    pub ended: *const u8,
    /// Whether the function stopped for it.
    pub stopped: i64,
    /// For arrays that are too large for the stack, aligned as groups of lanes are.
    pub scratch: *mut c_void,
    /// For straight code: the block that the lane enters at.
    pub entry: i64,
    /// How often it may still come to the unit whose visits are counted.
    pub visits: i64,
    /// Notes how high stacks and tapes are when the lane makes an attempt: the block that it returns to, how many return
    /// addresses the lane has, and the heights.
    pub note: Option<unsafe extern "C" fn(*mut CodeCall, u32, u32, *const u32)>,
    /// Computes a function of each of so many reals, by its number: from the first place to the last.
    pub map1: Option<unsafe extern "C" fn(i64, *const c_void, *mut c_void, i64)>,
    /// The same of two.
    pub map2: Option<unsafe extern "C" fn(i64, *const c_void, *const c_void, *mut c_void, i64)>,
    /// Computes `log1p_exp` and `inv_logit` of each of so many reals.
    pub twins: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void, i64)>,
    /// Computes the sum of `log1p_exp` of so many reals, and `inv_logit` of each.
    pub sum_and_map: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void, i64)>,
    /// Makes so many draws of reals, by the number of the kind: of this seed and lane, from this draw on.
    pub random: Option<unsafe extern "C" fn(i64, u64, u64, i64, *mut c_void, i64)>,
    /// Runs the kernel of this number with operands at these places; the result goes to the last one.
    pub kernel: Option<unsafe extern "C" fn(*mut CodeCall, i64, *const *const c_void, *mut c_void)>,
    /// Notes the message of this number, with values at these places, for the lane that traps next.
    pub tell: Option<unsafe extern "C" fn(*mut CodeCall, i64, *const *const c_void)>,
}

/// A generated function of a tile.
pub type TileFunction = unsafe extern "C" fn(*const TileCall);

/// What it works on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileCall {
    /// What it reads, each from the first row of the tile on.
    pub reads: *const *const c_void,
    /// Where results of the tile go, and those for all rows so far.
    pub stores: *const *mut c_void,
    /// Rows of the tile.
    pub rows: i64,
    /// Lanes.
    pub width: i64,
    /// Whether results for all rows go on from those of the tiles before.
    pub goes_on: i64,
}
