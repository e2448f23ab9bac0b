//! A way in which one of our engines runs.

use crate::backend;
use crate::program::{Codegen, Engine};
use crate::run::{Execution, Schedule};

/// A way in which one of our engines runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Way {
    /// The engine.
    pub engine: Engine,
    /// What it runs on, by name. The interpreter runs on nothing but the host.
    pub device: &'static str,
    /// Whether steps are fused.
    pub fusion: bool,
    /// Whether blocks are generated code.
    pub codegen: Codegen,
    /// Which waiting block runs next; of `pc`.
    pub schedule: Schedule,
    /// How kernels run a block whose lanes are not all active. Under a mask the whole batch is together, without new lanes
    /// in the place of those that are done.
    pub execution: Execution,
    /// Leapfrog steps between the states that NUTS considers.
    pub leaf_steps: usize,
    /// The passes that are off.
    pub without: &'static [&'static str],
}

impl Way {
    /// An engine by its kernels, and as a run is without further words.
    pub fn of(engine: Engine, device: &'static str) -> Self {
        Self {
            engine,
            device,
            fusion: true,
            codegen: Codegen::Off,
            schedule: Schedule::default(),
            execution: Execution::default(),
            leaf_steps: 1,
            without: &[],
        }
    }

    /// Whether it is the reference interpreter.
    pub(super) fn interprets(self) -> bool {
        self.engine == Engine::Scalar && self.codegen != Codegen::Cc
    }

    /// Whether the lanes of a thread are one shard.
    pub(super) fn is_whole(self) -> bool {
        !self.fusion || self.execution == Execution::Mask
    }

    /// Its name in reports.
    pub(super) fn name(self) -> String {
        let name = match (self.engine, self.codegen) {
            (Engine::Scalar, Codegen::Cc) => "scalar cc",
            (Engine::Scalar, _) => "scalar",
            (Engine::Local, Codegen::Off) => "local",
            (Engine::Local, Codegen::Cc) => "local cc",
            (Engine::Local, Codegen::Auto) => "local auto",
            (Engine::Pc, Codegen::Off) => "pc",
            (Engine::Pc, Codegen::Cc) => "pc cc",
            (Engine::Pc, Codegen::Auto) => "pc auto",
        };
        let usual = self.engine == Engine::Scalar || self.device == backend::usual().name();
        if usual { name.to_owned() } else { format!("{name} on {}", self.device) }
    }

    /// Its policy in reports, as the command line has it, where there is one.
    pub(super) fn schedule_name(self) -> Option<String> {
        (self.engine == Engine::Pc).then(|| match self.schedule {
            Schedule::Earliest => "earliest".to_owned(),
            Schedule::MostLanes => "most-lanes".to_owned(),
            schedule if schedule == Schedule::default() => DEFAULT_SCHEDULE.to_owned(),
            Schedule::CostAware { theta } => format!("cost:{theta}"),
        })
    }

    /// How its kernels run in reports, as the command line has it, where there are some.
    pub(super) fn execution_name(self) -> Option<String> {
        let name = match self.execution {
            Execution::Auto => DEFAULT_EXECUTION,
            Execution::Mask => "mask",
            Execution::Gather => "gather",
        };
        (self.engine != Engine::Scalar && self.codegen == Codegen::Off).then(|| name.to_owned())
    }
}

/// The name of the policy that runs have without further words.
pub(super) const DEFAULT_SCHEDULE: &str = "cost";
/// How kernels run without further words.
pub(super) const DEFAULT_EXECUTION: &str = "auto";
