//! Layer 2: what goes into a run and what comes out of it, the same for every engine.

mod access;
mod available;
mod code;
mod costs;
mod device;
mod memory;
mod profile;
mod settings;
mod shared_arrays;
mod timeline;

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;

pub use crate::base::Loc;
pub use crate::parts::{StorageClass, StreamId};
use crate::prim::eval::Fault;
use crate::types::{Array, ArrayData};

pub use access::Access;
pub use available::{available_memory, cores, resident_memory};
pub use code::CodeStats;
pub use costs::Costs;
pub use device::DeviceStats;
pub use memory::{BETWEEN_LOOKS, MemoryBudget, NoMemory, Reservation, System};
pub use profile::{Activity, Profile, Times};
pub use settings::{Execution, Schedule, Settings, workers};
pub use shared_arrays::SharedArrays;
pub use timeline::{Slice, Timeline, TraceWindow, TracedUnit, Track};

/// The values of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunInputs {
    /// The number that each lane has for its random stream, for `print` and in reports; usually 0, 1, 2, …
    pub lanes: Vec<u64>,
    /// How many random draws each lane has made before, in an earlier run: it goes on behind them. None where it is empty.
    pub drawn: Vec<u64>,
    /// One array for each lane input of the program, in order; the leading axis is the lanes.
    pub values: Vec<Array>,
    /// One array for every shared value of the program, inputs, constants and computed ones, in order.
    pub shared: SharedArrays,
}

impl RunInputs {
    /// Lanes of these numbers, and the arrays of lane inputs and of shared values, in the order of the program.
    pub fn new(lanes: Vec<u64>, values: Vec<Array>, shared: impl Into<SharedArrays>) -> Self {
        Self { lanes, drawn: Vec::new(), values, shared: shared.into() }
    }
    /// The number of random draws with which the lane at a position starts.
    pub fn drawn_by(&self, position: usize) -> u64 {
        self.drawn.get(position).copied().unwrap_or(0)
    }
    /// The same lanes with other shared values.
    #[must_use]
    pub fn with_shared(self, shared: impl Into<SharedArrays>) -> Self {
        Self { shared: shared.into(), ..self }
    }
}

/// What came out of a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// One array for each output of the program, in order; the leading axis is the lanes. Rows of trapped lanes are zero
    /// (`false`) and mean nothing.
    pub outputs: Vec<Array>,
    /// The lanes that trapped, by position in [`RunInputs::lanes`], ascending.
    pub traps: Vec<Trap>,
    /// The lanes in which attempts caught traps, by position, ascending.
    pub caught: Vec<Caught>,
    /// Statistics; detailed ones only where [`Settings::stats`] is set.
    pub stats: Stats,
}

/// Why a lane stopped.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Trap {
    /// Position of the lane in [`RunInputs::lanes`].
    pub position: usize,
    /// What happened.
    pub kind: TrapKind,
    /// Where.
    pub loc: Loc,
    /// Calls that were active in the lane, the entry not counted.
    pub call_depth: usize,
    /// The text of a failed assert, holes filled; of an index out of range the index, the extent and the array; else
    /// empty.
    pub message: String,
}

impl Trap {
    /// Of the lane at a position, outside of any call and without a message.
    pub fn new(position: usize, kind: TrapKind, loc: Loc) -> Self {
        Self { position, kind, loc, call_depth: 0, message: String::new() }
    }
}

impl Trap {
    /// What happened and where, the lane aside. The message of a Stan program tells its own place, and no function or line
    /// of what became of it is known to anybody.
    pub fn told(&self) -> String {
        let said = if self.message.is_empty() { self.kind.to_string() } else { self.message.clone() };
        match self.tells_place() {
            true => said,
            false => format!("{said} {}", self.loc.told()),
        }
    }
}

impl Trap {
    /// Whether the message says where, as that of an assertion of a Stan program does.
    fn tells_place(&self) -> bool {
        self.message.contains(" (in '") && self.message.ends_with(')')
    }

    /// Whether it ends the run, caught or not: an assertion that fails with a message that begins with `fatal_error: `.
    pub fn is_fatal(&self) -> bool {
        self.kind == TrapKind::AssertFailed && self.message.starts_with(crate::base::FATAL)
    }

    /// What happened and where: ``assert failed: too steep (function `f`, line 3)``, with more in the brackets, which must
    /// begin with a comma.
    pub fn told_with(&self, more: &str) -> String {
        let colon = if self.message.is_empty() { "" } else { ": " };
        let place = if self.tells_place() { String::new() } else { format!(" {}", self.loc.told()) };
        let told = format!("{}{colon}{}{place}", self.kind, self.message);
        if more.is_empty() { told } else { format!("{}{more})", told.strip_suffix(')').unwrap_or(&told)) }
    }
}

impl fmt::Display for Trap {
    /// In words: ``assert failed: too steep, at log_density:14``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.message.is_empty() { "" } else { ": " };
        match &self.loc.place {
            Some(_) if self.tells_place() => write!(f, "{}{colon}{}", self.kind, self.message),
            Some(place) => write!(f, "{}{colon}{} {}", self.kind, self.message, place.told),
            None => write!(f, "{}{colon}{}, at {}", self.kind, self.message, self.loc),
        }
    }
}

/// The traps of one lane that attempts caught, so that it went on.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Caught {
    /// How many.
    pub count: u64,
    /// The first of them; its position is that of the lane.
    pub first: Trap,
}

/// What attempts caught, by the position of the lane.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AllCaught(BTreeMap<usize, Caught>);

impl AllCaught {
    /// One more trap was caught.
    pub fn note(&mut self, trap: Trap) {
        match self.0.get_mut(&trap.position) {
            Some(known) => known.count += 1,
            None => _ = self.0.insert(trap.position, Caught { count: 1, first: trap }),
        }
    }
    /// Adds what was caught in other lanes.
    pub fn extend(&mut self, others: AllCaught) {
        self.0.extend(others.0);
    }
    /// One for each lane that has any, by position, ascending.
    pub fn into_vec(self) -> Vec<Caught> {
        self.0.into_values().collect()
    }
}

/// The kinds of traps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum TrapKind {
    /// More active calls than [`Settings::max_stack_depth`].
    StackLimit,
    /// An index or slice outside the array.
    IndexOutOfRange,
    /// An int went past 64 bits.
    IntegerOverflow,
    /// Integer division by zero, or its remainder.
    DivisionByZero,
    /// An int raised to a negative power.
    NegativeExponent,
    /// A NaN or a real out of range where an int is wanted.
    IntegerConversion,
    /// `min` or `max` of nothing.
    EmptyReduction,
    /// An `assert` did not hold.
    AssertFailed,
    /// More blocks than [`Settings::max_supersteps`].
    StepLimit,
    /// With [`Settings::check_nan`]: the birth of a NaN.
    Nan,
    /// A push on a tape that holds [`Settings::max_tape_depth`] values.
    TapeLimit,
    /// No memory for one more call, value of a stack or of a tape, or record: none that is free, or none within
    /// [`Settings::memory`].
    MemoryLimit,
    /// A pop off an empty tape. What the compiler makes pops only what was pushed: only programs written by hand trap so.
    EmptyTape,
    /// The run was stopped from outside.
    Interrupted,
}

impl TrapKind {
    /// All kinds.
    const ALL: [TrapKind; 14] = [
        TrapKind::StackLimit,
        TrapKind::IndexOutOfRange,
        TrapKind::IntegerOverflow,
        TrapKind::DivisionByZero,
        TrapKind::NegativeExponent,
        TrapKind::IntegerConversion,
        TrapKind::EmptyReduction,
        TrapKind::AssertFailed,
        TrapKind::StepLimit,
        TrapKind::Nan,
        TrapKind::TapeLimit,
        TrapKind::MemoryLimit,
        TrapKind::EmptyTape,
        TrapKind::Interrupted,
    ];
    /// Whether an attempt catches it: it says something of the values that the lane computes with. The limits of a run
    /// are not caught, nor is what was asked to stop the lane: an interrupt, or the birth of a NaN where one is looked
    /// for.
    pub fn is_caught(self) -> bool {
        match self {
            TrapKind::IndexOutOfRange
            | TrapKind::IntegerOverflow
            | TrapKind::DivisionByZero
            | TrapKind::NegativeExponent
            | TrapKind::IntegerConversion
            | TrapKind::EmptyReduction
            | TrapKind::AssertFailed => true,
            TrapKind::StackLimit
            | TrapKind::StepLimit
            | TrapKind::Nan
            | TrapKind::TapeLimit
            | TrapKind::MemoryLimit
            | TrapKind::EmptyTape
            | TrapKind::Interrupted => false,
        }
    }
    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
    /// The name in reports and in the JSON format.
    pub fn name(self) -> &'static str {
        match self {
            TrapKind::StackLimit => "stack limit",
            TrapKind::IndexOutOfRange => "index out of range",
            TrapKind::IntegerOverflow => "integer overflow",
            TrapKind::DivisionByZero => "division by zero",
            TrapKind::NegativeExponent => "negative exponent",
            TrapKind::IntegerConversion => "integer conversion",
            TrapKind::EmptyReduction => "empty reduction",
            TrapKind::AssertFailed => "assert failed",
            TrapKind::StepLimit => "step limit",
            TrapKind::Nan => "nan",
            TrapKind::TapeLimit => "tape limit",
            TrapKind::MemoryLimit => "memory limit",
            TrapKind::EmptyTape => "empty tape",
            TrapKind::Interrupted => "interrupted",
        }
    }
}

impl From<Fault> for TrapKind {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::IntegerOverflow => TrapKind::IntegerOverflow,
            Fault::DivisionByZero => TrapKind::DivisionByZero,
            Fault::NegativeExponent => TrapKind::NegativeExponent,
            Fault::IntegerConversion => TrapKind::IntegerConversion,
        }
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Receives what lanes say while they run. Calls for one lane come in the lane's order; lanes of different shards may call
/// at the same time.
pub trait Sink: Sync {
    /// A record of a stream.
    ///
    /// # Errors
    /// Where there is no memory to keep it: the lane traps with [`TrapKind::MemoryLimit`].
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory>;
    /// A line of `print`, without the `[lane n]` before it.
    fn print(&self, position: usize, line: String);
    /// An attempt caught a trap, which is in [`Outcome::caught`] as well.
    fn caught(&self, _trap: &Trap) {}
    /// A lane trapped while it ran, and no attempt catches it; the trap is in [`Outcome::traps`] as well.
    fn trapped(&self, _trap: &Trap) {}
}

/// A record that a lane emits, which stands where the lane has it.
pub trait Record {
    /// The fields, each with its event shape.
    fn arrays(&self) -> Vec<Array>;
    /// Appends the elements of all fields, one after the other: an int as it is, a bool as 0 or 1, and of a real the bits of the
    /// f64.
    fn append_words(&self, words: &mut Vec<u64>);
}

impl Record for Vec<Array> {
    fn arrays(&self) -> Vec<Array> {
        self.clone()
    }
    fn append_words(&self, words: &mut Vec<u64>) {
        for array in self {
            match &array.data {
                ArrayData::Bool(v) => words.extend(v.iter().map(|x| u64::from(*x))),
                ArrayData::Int(v) => words.extend(v.iter().map(|x| *x as u64)),
                ArrayData::Real(v) => words.extend(v.iter().map(|x| x.to_bits())),
            }
        }
    }
}

/// A sink that drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn emit(&self, _position: usize, _stream: StreamId, _record: &dyn Record) -> Result<(), NoMemory> {
        Ok(())
    }
    fn print(&self, _position: usize, _line: String) {}
}

/// Statistics of a run, summed over shards.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Blocks (regions count once) that were run.
    pub supersteps: u64,
    /// By block, in program order.
    pub blocks: Vec<BlockStats>,
    /// Executions of each primitive (one for each time an instruction ran, whatever the lanes), by name.
    pub prims: IndexMap<String, u64>,
    /// By variable, in program order.
    pub variables: Vec<VariableStats>,
    /// Wall time of the run in seconds.
    pub seconds: f64,
    /// Where the time went; only with [`Settings::profile`].
    pub profile: Option<Profile>,
    /// Supersteps one by one; only with [`Settings::trace`].
    pub timeline: Option<Timeline>,
    /// What became of generated code; only where it comes beside the run.
    pub code: Option<CodeStats>,
    /// What a device that is not the processor did.
    pub device: Option<DeviceStats>,
}

/// Adds the figures of one part to the sum; all parts list the same things in the same order.
fn sum<T>(sum: &mut Vec<T>, part: Vec<T>, add: impl Fn(&mut T, &T)) {
    if sum.is_empty() {
        *sum = part;
    } else {
        sum.iter_mut().zip(&part).for_each(|(to, from)| add(to, from));
    }
}

/// Statistics of one block.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct BlockStats {
    /// Its name: `b3`; a region goes by its first block.
    pub block: String,
    /// Its location.
    pub loc: Loc,
    /// Cost of one execution in one lane by the cost model, in additions.
    pub weight: u64,
    /// How often it ran.
    pub executions: u64,
    /// Lanes that were active, summed over executions.
    pub lanes_useful: u64,
    /// Lanes that were computed, summed over executions: those of the shard; of a gathered unit the active ones, of generated
    /// code those of groups with an active one.
    pub lanes_issued: u64,
}

/// Statistics of one variable.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct VariableStats {
    /// Its name.
    pub name: String,
    /// How it is stored.
    pub storage: Storage,
    /// Values pushed, summed over lanes.
    pub pushes: u64,
    /// Their bytes.
    pub bytes_pushed: u64,
    /// Largest number of values below the top, or on the tape, that any lane had.
    pub max_stack_depth: usize,
}

/// How what [`VariableStats`] is about is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// A variable of this class.
    Variable(StorageClass),
    /// A tape, which is no variable.
    Tape,
}

impl From<StorageClass> for Storage {
    fn from(class: StorageClass) -> Self {
        Storage::Variable(class)
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Variable(class) => class.fmt(f),
            Storage::Tape => f.write_str("tape"),
        }
    }
}

impl Stats {
    /// Adds the figures of another part of the same run, or of another run of the same program.
    pub(crate) fn add(&mut self, other: Stats) {
        self.code = self.code.take().or(other.code);
        match (&mut self.device, other.device) {
            (Some(device), Some(more)) => device.add(more),
            (device, more) => *device = device.take().or(more),
        }
        self.supersteps += other.supersteps;
        self.seconds += other.seconds;
        sum(&mut self.blocks, other.blocks, |to, from| {
            to.executions += from.executions;
            to.lanes_useful += from.lanes_useful;
            to.lanes_issued += from.lanes_issued;
        });
        sum(&mut self.variables, other.variables, |to, from| {
            to.pushes += from.pushes;
            to.bytes_pushed += from.bytes_pushed;
            to.max_stack_depth = to.max_stack_depth.max(from.max_stack_depth);
        });
        for (name, count) in other.prims {
            *self.prims.entry(name).or_insert(0) += count;
        }
        if let Some(profile) = other.profile {
            self.profile.get_or_insert_default().merge(profile);
        }
        if let Some(mut timeline) = other.timeline {
            let all = self.timeline.get_or_insert_default();
            all.tracks.append(&mut timeline.tracks);
            all.units = timeline.units;
        }
    }
    /// Bytes that were pushed on stacks and tapes, return addresses aside.
    pub fn bytes_pushed(&self) -> u64 {
        self.variables.iter().map(|v| v.bytes_pushed).sum()
    }
    /// Useful lanes over issued lanes, weighted by the cost of blocks; 1 when nothing ran.
    pub fn utilization(&self) -> f64 {
        let total = |lanes: fn(&BlockStats) -> u64| -> f64 {
            self.blocks.iter().map(|b| b.weight.max(1) as f64 * lanes(b) as f64).sum()
        };
        let issued = total(|b| b.lanes_issued);
        if issued == 0.0 { 1.0 } else { total(|b| b.lanes_useful) / issued }
    }
}
