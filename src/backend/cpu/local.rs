//! Local static autobatching (section 2 of Radul et al. 2020), the comparison mode: each function is batched by itself.
//! Lanes of one call run together under a mask, always the earliest block at which one of them waits; a call runs the
//! callee to its end for the lanes that reached it, with a fresh set of variables, while the others stand still. So lanes
//! meet only in the same call of the same caller.
//!
//! Arrays that a call only reads, or that the caller does not want any more, are handed over where they are.
//!
//! The stack of activations is kept here and not on the host, so that no depth of recursion overflows it. A tail call
//! moves its lanes to another body of the same activation.

mod activation;
mod calls;
mod traps;

use crate::backend::cpu::arrays::Arrays;
use crate::backend::cpu::codegen::{Arrived, Generated, Lookout, Native, RunClock};
use crate::backend::cpu::crew::{Finished, Layout, Queue, Report, run_shards};
use crate::backend::cpu::profile::Profiler;
use crate::backend::cpu::run_unit::{Counted, Exit, Left, Lent, NoRoom, Steps, UnitShard, superstep};
use crate::backend::cpu::steps::{Environment, Stepper};
use crate::base::{IdVec, Loc};
use crate::exec::{LaneMask, StackError};
use crate::plan::{BlockId, CallPlan, CallTerminator, FuncId, Unit, UnitId};
use crate::run::{Activity, AllCaught, Outcome, RunInputs, Settings, Sink, TrapKind, VariableStats};
use crate::types::{Precision, Type};
use crate::vmath::Real;
use activation::{Activation, slot};

/// Runs a plan. `inputs` fit the program: element types and event shapes are those of its lane inputs and shared values.
pub fn run(plan: &CallPlan, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    run_with(plan, Generated::Nothing, inputs, settings, sink)
}

/// Runs a plan with generated code in the place of steps. It was made of this plan for the precision of the settings.
pub fn run_with(
    plan: &CallPlan,
    generated: Generated<'_>,
    inputs: &RunInputs,
    settings: &Settings,
    sink: &dyn Sink,
) -> Outcome {
    match settings.precision {
        Precision::F32 => run_typed::<f32>(plan, generated, inputs, settings, sink),
        Precision::F64 => run_typed::<f64>(plan, generated, inputs, settings, sink),
    }
}

fn run_typed<R: Real>(
    plan: &CallPlan,
    generated: Generated<'_>,
    inputs: &RunInputs,
    settings: &Settings,
    sink: &dyn Sink,
) -> Outcome {
    let lanes = inputs.lanes.len();
    let layout = Layout::new(lanes, plan.shard_lanes(size_of::<R>()), plan.work(), settings);
    let env = Environment::<R>::new(&plan.globals, inputs, settings, sink);
    let entry = &plan.funcs[plan.entry];
    let types: Vec<&Type> = entry.results.iter().collect();
    let loc = &entry.body.blocks[BlockId(0)].loc;
    let clock = RunClock::start(generated, generated.at_start(), layout.workers);
    let mut outcome = run_shards(lanes, layout, &types, loc, |queue| {
        Ok(vec![Shard::new(plan, &clock, inputs, &env, layout.width)?.run(queue)])
    });
    outcome.stats.code = clock.stop(env.stopped());
    outcome
}

/// One shard: its lanes run to their end together, then others take their slots.
struct Shard<'a, R> {
    plan: &'a CallPlan,
    inputs: &'a RunInputs,
    width: usize,
    stepper: Stepper<'a, R>,
    arrays: Arrays<'a, R>,
    /// The calls that are active, the entry first.
    activations: Vec<Activation<R>>,
    /// Activations of each function for reuse.
    spare: IdVec<FuncId, Vec<Activation<R>>>,
    /// Memory ran out once: only the entry's activation is kept for reuse, others may need the memory.
    short: bool,
    /// The lanes that trapped since those that run together began.
    gone: Vec<u32>,
    finished: Finished,
    caught: AllCaught,
    counted: Counted,
    /// The number of the first unit of each function.
    first_units: IdVec<FuncId, usize>,
    /// How the units of each function run.
    ways: IdVec<FuncId, Steps<'a>>,
    lookout: Lookout<'a>,
    /// The last unit; kept only for a profile.
    last: (FuncId, UnitId),
}

impl<'a, R: Real> UnitShard<'a> for Shard<'a, R> {
    type Real = R;
    type Id = (FuncId, UnitId);
    type Term = CallTerminator;
    type Way = Steps<'a>;

    fn way(&self, (func, _): Self::Id) -> Steps<'a> {
        self.ways[func]
    }
    fn waiting(&self, (_, unit): Self::Id) -> usize {
        let top = self.activations.last().expect("a unit of it runs");
        top.bodies[top.current].waiting.count(unit.0 as usize)
    }
    fn number(&self, (func, unit): Self::Id) -> usize {
        self.first_units[func] + unit.0 as usize
    }
    fn loc(&self, (func, unit): Self::Id) -> &'a Loc {
        let body = &self.plan.funcs[func].body;
        &body.blocks[body.units[unit].blocks[0]].loc
    }
    fn stepper(&mut self) -> &mut Stepper<'a, R> {
        &mut self.stepper
    }
    fn counted(&mut self) -> &mut Counted {
        &mut self.counted
    }
    fn lend(&mut self, (func, unit): Self::Id) -> Result<Lent<'_, 'a, R, CallTerminator>, NoRoom> {
        let top = self.activations.last_mut().expect("a unit of it runs");
        let running = &mut top.bodies[top.current];
        if self.arrays.enter(func, unit, &mut running.frame).is_err() {
            return Err(NoRoom);
        }
        let live = if top.guest { usize::MAX } else { running.live };
        let (frame, waiting) = (&mut running.frame, &mut running.waiting);
        Ok(Lent { stepper: &mut self.stepper, frame, waiting, body: &self.plan.funcs[func].body, unit, live })
    }
    fn leave(&mut self, (func, _): Self::Id, left: Left) {
        let top = self.activations.last_mut().expect("a unit of it ran");
        let running = &mut top.bodies[top.current];
        self.arrays.leave(func, &mut running.frame);
        running.live -= left.began - self.stepper.active.count;
        // Before there is another activation, to which they do not belong.
        self.bury_dead();
        if self.stepper.active.count > 0 {
            self.route(left.exit, left.from);
        }
    }
    /// The lanes trap that wait for arrays.
    fn without_room(&mut self, (func, unit): Self::Id) -> Option<usize> {
        let top = self.activations.last_mut().expect("a unit of it runs");
        self.stepper.active.take(&mut top.bodies[top.current].waiting, unit.0 as usize);
        let body = &self.plan.funcs[func].body;
        let block = &body.blocks[body.units[unit].blocks[0]];
        let loc = block.steps.first().map_or(&block.loc, |step| &step.loc);
        self.refuse_call(TrapKind::MemoryLimit, loc);
        None
    }
    fn bury(&mut self) {
        self.bury_dead();
    }
}

impl<'a, R: Real> Shard<'a, R> {
    fn new(
        plan: &'a CallPlan,
        clock: &'a RunClock<'a>,
        inputs: &'a RunInputs,
        env: &'a Environment<'a, R>,
        width: usize,
    ) -> Result<Self, StackError> {
        let mut units = 0;
        let first_units = plan.funcs.values().map(|func| {
            units += func.body.units.len();
            units - func.body.units.len()
        });
        let first_units = first_units.collect();
        let mut spare: IdVec<FuncId, Vec<Activation<R>>> = plan.funcs.values().map(|_| Vec::new()).collect();
        let budget = &env.settings.memory;
        let mut arrays = Arrays::new(plan, width, budget);
        let mut entry = Activation::new(plan, plan.entry, (width, &arrays), budget)?;
        for (result, ty) in entry.results.iter_mut().zip(&plan.funcs[plan.entry].results) {
            arrays.ensure_result(result, ty)?;
        }
        spare[plan.entry].push(entry);
        Ok(Self {
            plan,
            inputs,
            width,
            stepper: Stepper::new(env, &plan.globals.units.tapes, width),
            arrays,
            activations: Vec::new(),
            spare,
            short: false,
            gone: Vec::new(),
            finished: Finished::new(plan.funcs[plan.entry].results.iter()),
            caught: AllCaught::default(),
            counted: Counted::new(units),
            first_units,
            ways: ways(plan, clock.native(), env.settings, width),
            lookout: Lookout::new(clock),
            last: (plan.entry, UnitId(0)),
        })
    }

    fn run(mut self, queue: &Queue) -> Report {
        if self.stepper.env.settings.profile {
            self.stepper.profile = Some(Box::new(Profiler::new(self.counted.units.len())));
        }
        loop {
            if self.stepper.env.stopped() {
                break;
            }
            let positions = queue.take(self.width);
            if positions.is_empty() {
                break;
            }
            self.begin(positions);
            while let Some(top) = self.activations.last_mut() {
                match top.next() {
                    _ if self.stepper.env.stopped() => self.interrupt(),
                    Some(unit) => {
                        let id = (top.bodies[top.current].func, unit);
                        self.last = id;
                        if let Some(Arrived::Native(native)) = self.lookout.arrived(self.counted.supersteps) {
                            self.change_over(native);
                        }
                        superstep(&mut self, id);
                    }
                    None => self.finish(),
                }
                // what comes before the next unit, a return included, is counted with this one
                self.mark(Activity::Scheduling, self.last);
            }
        }
        self.report()
    }

    /// From now on units run by generated functions that have come, where they serve.
    #[cold]
    fn change_over(&mut self, native: &'a Native) {
        self.ways = ways(self.plan, Some(native), self.stepper.env.settings, self.width);
        self.stepper.calls.forget();
    }

    /// Lanes start at the entry.
    fn begin(&mut self, positions: std::ops::Range<usize>) {
        let plan = self.plan;
        let entry = &plan.funcs[plan.entry];
        let mut activation = self.spare[plan.entry].pop().expect("the entry's is made with the shard");
        let mut lanes = LaneMask::none(self.width);
        let running = &mut activation.bodies[0];
        let slots: Vec<u32> = (0..positions.len() as u32).collect();
        for (lane, position) in positions.clone().enumerate() {
            self.stepper.admit(lane, position, self.inputs);
            lanes.insert(lane);
        }
        self.stepper.tapes.reset(&slots);
        self.gone.clear();
        let params = entry.params.iter().map(|param| slot(entry, *param));
        let room = params.into_iter().try_for_each(|slot| self.arrays.ensure(plan.entry, &mut running.frame, slot));
        if room.is_err() {
            self.stepper.active.mask = lanes;
            self.stepper.active.count = slots.len();
            self.stepper.trap_all(TrapKind::MemoryLimit, &entry.loc);
            self.bury_dead();
            self.spare[plan.entry].push(activation);
            return;
        }
        for (param, values) in entry.params.iter().zip(&self.inputs.values) {
            let buffer = &mut running.frame.slots[slot(entry, *param)];
            buffer.set_lanes(self.width, &slots, values, positions.start);
        }
        running.enter(entry, &lanes);
        self.activations.push(activation);
    }

    /// Sends the active lanes where they go.
    fn route(&mut self, exit: Exit, from: BlockId) {
        let plan = self.plan;
        let top = self.activations.last_mut().expect("a unit of it ran");
        let running = &mut top.bodies[top.current];
        let body = &plan.funcs[running.func].body;
        let unit = |b: BlockId| body.blocks[b].unit.0 as usize;
        let active = &self.stepper.active;
        match (exit, &body.blocks[from].term) {
            (Exit::Nobody, _) => {}
            (Exit::To(b), _) | (Exit::Terminator, &CallTerminator::Jump(b)) => {
                running.waiting.add(unit(b), active.mask.words(), active.count);
            }
            (Exit::Terminator, CallTerminator::Branch(_, a, b)) => {
                let units = (unit(*a), unit(*b));
                running.waiting.split(units, active.mask.words(), active.taken.words(), active.count);
            }
            (Exit::Terminator, CallTerminator::Return(args, passing)) => {
                if self.give_back(args, passing).is_err() {
                    self.refuse_call(TrapKind::MemoryLimit, &body.blocks[from].loc);
                }
            }
            (Exit::Terminator, CallTerminator::Call { func, args, loc, attempt, passing, dsts, .. }) => {
                if self.activations.len() > self.stepper.env.settings.max_stack_depth {
                    self.refuse_call(TrapKind::StackLimit, loc);
                } else if self.call(from, *func, (args, passing), (dsts, *attempt)).is_err() {
                    self.refuse_call(TrapKind::MemoryLimit, loc);
                } else if *attempt {
                    self.note_attempt();
                }
            }
            (Exit::Terminator, CallTerminator::TailCall { func, args, passing }) => {
                if self.tail_call(*func, args, passing).is_err() {
                    self.refuse_call(TrapKind::MemoryLimit, &body.blocks[from].loc);
                }
            }
        }
    }

    fn report(mut self) -> Report {
        let profile = self.stepper.profile.take().map(|profile| {
            profile.report(self.plan.funcs.values().flat_map(|func| {
                let body = &func.body;
                let first = |unit: &Unit| unit.blocks[0];
                let name = move |unit| format!("{}.{}", func.name, first(unit));
                body.units.values().map(move |u| (name(u), body.blocks[first(u)].loc.clone()))
            }))
        });
        let (mut blocks, mut variables) = (Vec::new(), Vec::new());
        if self.stepper.env.settings.stats {
            for (id, func) in self.plan.funcs.iter() {
                for (block, data) in func.body.blocks.iter() {
                    let unit = &func.body.units[data.unit];
                    let name = format!("{}.{block}", func.name);
                    let counts = self.counted.units[self.first_units[id] + data.unit.0 as usize];
                    blocks.push(counts.report(name, &data.loc, unit.cost.weight));
                }
                variables.extend(func.body.vars.values().map(|var| VariableStats {
                    name: format!("{}.{}", func.name, var.name),
                    storage: var.class.into(),
                    pushes: 0,
                    bytes_pushed: 0,
                    max_stack_depth: 0,
                }));
            }
            variables.extend(self.stepper.tapes.statistics());
        }
        Report {
            blocks,
            variables,
            finished: self.finished,
            traps: self.stepper.traps,
            caught: self.caught,
            supersteps: self.counted.supersteps,
            prims: self.stepper.prims,
            profile,
            timeline: None,
        }
    }
}

/// How the units of each function run in a shard of this width, with the functions that were generated for them.
fn ways<'a>(
    plan: &CallPlan,
    native: Option<&'a Native>,
    settings: &Settings,
    width: usize,
) -> IdVec<FuncId, Steps<'a>> {
    let way = |(id, _): (FuncId, _)| Steps::new(native.map(|n| n.body(id.0 as usize)), settings, width);
    plan.funcs.iter().map(way).collect()
}
