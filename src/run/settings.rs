//! How a run goes, whatever runs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::run::{Costs, MemoryBudget, TraceWindow};
use crate::types::Precision;

/// Which waiting block the scheduler runs next. Changes statistics, never results.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Schedule {
    /// The first block in program order at which a lane waits.
    Earliest,
    /// The block at which most lanes wait.
    MostLanes,
    /// A heavy block runs only when at least the fraction θ of the live lanes waits there or nothing cheaper can run; among
    /// the others, most lanes first.
    CostAware {
        /// θ in 0..=1.
        theta: f64,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::CostAware { theta: 0.95 }
    }
}

/// How a block runs whose lanes are not all active. Changes speed, never results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Execution {
    /// Every lane of the shard is computed, results are stored under the mask.
    Mask,
    /// The active lanes are compacted, run dense, and scattered back.
    Gather,
    /// The cost model chooses.
    #[default]
    Auto,
}

/// Declares the settings: each has its field, its building method and its getter.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident, $get:ident: $ty:ty = $default:expr;)*) => {
        /// Settings of a run that every engine understands; those that an engine has no use for are ignored. They are
        /// built up from `Settings::default()`, as in `Settings::default().seed(7).threads(1)`; what a setting is
        /// stands at the method that sets it.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $(pub(crate) $name: $ty,)*
            pub(crate) memory: Arc<MemoryBudget>,
            pub(crate) stop: Option<Arc<AtomicBool>>,
            /// The flag by which this run alone is ended, by what a lane says.
            pub(crate) ended: Option<Arc<AtomicBool>>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default,)* memory: Arc::new(MemoryBudget::unlimited()), stop: None, ended: None }
            }
        }

        impl Settings {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $name: $ty) -> Self {
                    Self { $name, ..self }
                }
                #[doc = concat!("What [`", stringify!($name), "`](Self::", stringify!($name), ") has set.")]
                pub fn $get(&self) -> $ty {
                    self.$name
                }
            )*
        }
    };
}

settings! {
    /// Policy of the scheduler.
    schedule, get_schedule: Schedule = Schedule::default();
    /// Masked or gathered execution.
    execution, get_execution: Execution = Execution::default();
    /// What the cost model reckons with. Changes speed, never results.
    costs, get_costs: Costs = Costs::default();
    /// Width of `real`; 64 bits if nothing is said.
    precision, get_precision: Precision = Precision::default();
    /// Worker threads; 0, or nothing, takes one a core.
    threads, get_threads: usize = 0;
    /// Lanes a shard; 0, or nothing, lets the plan choose.
    shard_lanes, get_shard_lanes: usize = 0;
    /// Seed of all random streams; 0 if nothing is said.
    seed, get_seed: u64 = 0;
    /// Calls that may be active in a lane at one time, 10,000 if nothing is said (tail calls and inlined calls not
    /// counted, the entry not counted); a call beyond it traps with [`TrapKind::StackLimit`](super::TrapKind).
    max_stack_depth, get_max_stack_depth: usize = 10_000;
    /// Values that one tape of a lane may hold, 2²⁴ if nothing is said; a push beyond it traps with
    /// [`TrapKind::TapeLimit`](super::TrapKind).
    max_tape_depth, get_max_tape_depth: usize = 1 << 24;
    /// Blocks that one lane may run before it traps with [`TrapKind::StepLimit`](super::TrapKind); 0, or nothing, is no
    /// limit.
    max_supersteps, get_max_supersteps: u64 = 0;
    /// Bytes of its memory that a device may give a run, each of several; all that it has if nothing is said. What the
    /// processor runs takes none of it.
    device_memory, get_device_memory: usize = usize::MAX;
    /// Whether the birth of a NaN (a real result that is NaN though no real operand is) traps.
    check_nan, get_check_nan: bool = false;
    /// Whether to collect statistics of blocks, primitives and variables.
    stats, get_stats: bool = false;
    /// Whether the batching engines note where time goes.
    profile, get_profile: bool = false;
    /// The supersteps that the engine `pc` notes one by one, if any. Straight code, which takes one lane after the other
    /// through many blocks, does not run then.
    trace, get_trace: Option<TraceWindow> = None;
}

impl Settings {
    /// Whether lanes are counted, superstep by superstep.
    pub(crate) fn counts_lanes(&self) -> bool {
        self.stats || self.trace.is_some()
    }
    /// What stacks, tapes and activations take their memory from as they grow; a lane that finds no more in it traps
    /// with [`TrapKind::MemoryLimit`](super::TrapKind). Which lanes these are depends on which run together, on the
    /// engine, and on whether code is generated.
    #[must_use]
    pub fn memory(self, memory: Arc<MemoryBudget>) -> Self {
        Self { memory, ..self }
    }
    /// A flag that stops the run when it is set from outside: lanes that are not done trap with
    /// [`TrapKind::Interrupted`](super::TrapKind). What is still being compiled for it ends at once.
    #[must_use]
    pub fn stop(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..self }
    }
    /// Whether the run is to stop, from outside or because a lane ended it.
    pub(crate) fn is_stopped(&self) -> bool {
        let is_set = |flag: &Option<Arc<AtomicBool>>| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        is_set(&self.stop) || is_set(&self.ended)
    }
    /// The budget of [`memory`](Self::memory).
    pub fn get_memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }
    /// The flag of [`stop`](Self::stop).
    pub fn get_stop(&self) -> Option<&Arc<AtomicBool>> {
        self.stop.as_ref()
    }

    /// Whether all of it makes sense.
    ///
    /// # Errors
    /// Says what does not.
    pub fn check(&self) -> Result<(), String> {
        match self.schedule {
            Schedule::CostAware { theta } if !(0.0..=1.0).contains(&theta) => {
                Err(format!("the fraction of lanes that a heavy block waits for must be in 0..=1, not {theta}"))
            }
            _ => Ok(()),
        }
    }
}

/// Worker threads of a run: as many as the settings say, or one for each core.
pub fn workers(settings: &Settings) -> usize {
    match settings.threads {
        0 => super::available::cores(),
        n => n,
    }
}
