//! Program-counter autobatching: a shard runs the plan of a stack program, one unit for its active set at a time.

mod alone;
mod routed;
mod traps;

use crate::backend::cpu::PADDING;
use crate::backend::cpu::attempts::Handlers;
use crate::backend::cpu::codegen::{Arrived, Course, Generated, Lookout, NativeBody, RunClock};
use crate::backend::cpu::crew::{Finished, Layout, Queue, Report, run_shards};
use crate::backend::cpu::frame::{Frame, StackMemory};
use crate::backend::cpu::profile::Profiler;
use crate::backend::cpu::run_unit::{Counted, Exit, Left, Lent, NoRoom, RunUnit, Steps, UnitShard, superstep};
use crate::backend::cpu::segments::serve;
use crate::backend::cpu::steps::{Environment, Stepper};
use crate::backend::cpu::straight;
use crate::backend::cpu::tops::Tops;
use crate::backend::cpu::tracer::{Look, Tracer};
use crate::base::{IdVec, Loc};
use crate::exec::mask::Bits;
use crate::exec::{Columns, LaneMask, LaneStack, Scheduler, StackError, Waiting};
use crate::plan::{Attempt, BlockId, Plan, Terminator, Unit, UnitId, cost};
use crate::run::{
    Activity, AllCaught, CodeStats, Execution, Outcome, RunInputs, Settings, Sink, TrapKind, VariableStats,
};
use crate::run::{Timeline, TracedUnit};
use crate::types::{Precision, Type};
use crate::vmath::Real;
use routed::Way;

/// Runs a plan. `inputs` fit the program: element types and event shapes are those of its lane inputs and shared values.
pub fn run(plan: &Plan, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    run_with(plan, Generated::Nothing, inputs, settings, sink)
}

/// Runs a plan with generated code in the place of steps. It was made of this plan for the precision of the settings.
pub fn run_with(
    plan: &Plan,
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
    plan: &Plan,
    generated: Generated<'_>,
    inputs: &RunInputs,
    settings: &Settings,
    sink: &dyn Sink,
) -> Outcome {
    let lanes = inputs.lanes.len();
    // Generated code keeps tops in registers of the processor.
    let generated = if plan.cached_tops { generated } else { Generated::Nothing };
    let there = generated.at_start();
    let native = there.map(|n| n.body(0));
    let interpreted = plan.shard_lanes(size_of::<R>());
    let runs = settings.execution != Execution::Gather && serve(settings, interpreted);
    // One lane after the other, each with its values side by side.
    let straight = native.and_then(NativeBody::straight).is_some();
    let alone = straight && straight::serves(settings);
    let planned = match native {
        Some(native) if runs && native.computes_all(&plan.body) => plan.shard_lanes_of_code(size_of::<R>()),
        _ => interpreted,
    };
    let layout = if alone {
        Layout::new(lanes, 1, plan.work(), &settings.clone().shard_lanes(0))
    } else {
        Layout::new(lanes, planned, plan.work(), settings)
    };
    let env = Environment::<R>::new(&plan.globals, inputs, settings, sink);
    let types: Vec<&Type> = plan.outputs.iter().map(|o| &o.ty).collect();
    let entry = &plan.body.blocks[plan.entry].loc;
    let clock = RunClock::start(generated, there, layout.workers);
    let mut outcome = run_shards(lanes, layout, &types, entry, |queue| {
        let code = (native, Lookout::new(&clock), clock.course(layout.width));
        Ok(Shard::new(plan, code, inputs, &env, queue, layout.width)?.run())
    });
    let code = clock.stop(env.stopped());
    outcome.stats.code = if straight && !alone { Some(CodeStats::CountsNothing) } else { code };
    outcome
}

/// Lanes of a shard of a run that starts without generated code.
pub(super) fn width(plan: &Plan, lanes: usize, settings: &Settings) -> usize {
    let real = match settings.precision {
        Precision::F32 => size_of::<f32>(),
        Precision::F64 => size_of::<f64>(),
    };
    Layout::new(lanes, plan.shard_lanes(real), plan.work(), settings).width
}

/// One shard: its state, its scheduler, and the lanes in its slots.
struct Shard<'a, R> {
    plan: &'a Plan,
    native: Option<&'a NativeBody>,
    inputs: &'a RunInputs,
    queue: &'a Queue,
    width: usize,
    stepper: Stepper<'a, R>,
    frame: Frame<R>,
    /// The stacks of the program counter: blocks to return to. Where a lane waits is its program counter itself.
    returns: LaneStack<u32>,
    handlers: Handlers<'a>,
    caught: AllCaught,
    waiting: Waiting,
    scheduler: Scheduler,
    /// Units of this weight are heavy.
    heavy: u64,
    /// The slots whose lanes are not done.
    occupied: LaneMask,
    live: usize,
    finished: Finished,
    counted: Counted,
    /// Buffers that supersteps reuse.
    other: LaneMask,
    free: Vec<u32>,
    /// How each unit runs.
    ways: IdVec<UnitId, Way<'a>>,
    lookout: Lookout<'a>,
    course: Course<'a>,
    /// The unit whose visits are counted.
    heaviest: Option<UnitId>,
    /// The shard of the lane that straight code runs, once there was one, and the slot that it came from here.
    alone: Option<Box<Shard<'a, R>>>,
    last_alone: usize,
    /// How often straight code may still come to the heaviest unit.
    visits: i64,
}

impl<'a, R: Real> UnitShard<'a> for Shard<'a, R> {
    type Real = R;
    type Id = UnitId;
    type Term = Terminator;
    type Way = Way<'a>;

    fn way(&self, id: UnitId) -> Way<'a> {
        self.ways[id]
    }
    fn waiting(&self, id: UnitId) -> usize {
        self.waiting.count(id.0 as usize)
    }
    fn number(&self, id: UnitId) -> usize {
        id.0 as usize
    }
    fn loc(&self, id: UnitId) -> &'a Loc {
        let body = &self.plan.body;
        &body.blocks[body.units[id].blocks[0]].loc
    }
    fn stepper(&mut self) -> &mut Stepper<'a, R> {
        &mut self.stepper
    }
    fn counted(&mut self) -> &mut Counted {
        &mut self.counted
    }
    fn lend(&mut self, unit: UnitId) -> Result<Lent<'_, 'a, R, Terminator>, NoRoom> {
        let (stepper, frame, waiting) = (&mut self.stepper, &mut self.frame, &mut self.waiting);
        Ok(Lent { stepper, frame, waiting, body: &self.plan.body, unit, live: self.live })
    }
    fn leave(&mut self, _: UnitId, left: Left) {
        if self.stepper.active.count > 0 {
            self.route(left.exit, left.from);
        }
    }
    /// A generated function that finds no room leaves the unit to the steps: they trap those lanes whose values have no
    /// place.
    fn without_room(&mut self, id: UnitId) -> Option<usize> {
        Steps::new(self.native, self.stepper.env.settings, self.width).run(self, id).ok()
    }
    fn bury(&mut self) {
        self.bury_dead();
    }
    fn look(&self, id: UnitId, tracer: &Tracer) -> Option<Look> {
        let here = id.0 as usize;
        let units = self.plan.body.units.iter().filter(|(unit, data)| *unit != id && data.cost.weight >= self.heavy);
        Some(Look {
            active: self.waiting.count(here),
            live: self.live,
            waiting: units.map(|(unit, _)| self.waiting.count(unit.0 as usize)).sum(),
            lanes: tracer.wants_lanes().then(|| self.waiting.mask(here).to_vec()),
            stack_bytes: tracer.wants_bytes().then(|| self.stack_bytes()),
        })
    }
}

impl<'a, R: Real> Shard<'a, R> {
    fn new(
        plan: &'a Plan,
        (native, lookout, course): (Option<&'a NativeBody>, Lookout<'a>, Course<'a>),
        inputs: &'a RunInputs,
        env: &'a Environment<'a, R>,
        queue: &'a Queue,
        width: usize,
    ) -> Result<Self, StackError> {
        let units = &plan.body.units;
        let weights = units.values().map(|u| u.cost.weight).collect();
        let heavy = cost::heavy_weight(units, &env.settings.costs);
        let mut frame = Frame::new(&plan.body, width, &env.settings.memory)?;
        let mut stepper = Stepper::new(env, &plan.globals.units.tapes, width);
        if !plan.cached_tops {
            stepper.tops = Some(Tops::in_memory(&plan.body, &mut frame)?);
        }
        Ok(Self {
            plan,
            native,
            inputs,
            queue,
            width,
            stepper,
            frame,
            returns: LaneStack::new(1, width, 0).padded(PADDING).within(&env.settings.memory),
            handlers: Handlers::new(plan, width),
            caught: AllCaught::default(),
            waiting: Waiting::new(units.len(), width),
            scheduler: Scheduler::new(env.settings.schedule, weights, heavy),
            heavy,
            occupied: LaneMask::none(width),
            live: 0,
            finished: Finished::new(plan.outputs.iter().map(|o| &o.ty)),
            counted: Counted::new(units.len()),
            other: LaneMask::none(width),
            free: Vec::with_capacity(width),
            ways: ways(plan, native, env.settings, width),
            lookout,
            course,
            heaviest: cost::heaviest(units),
            alone: None,
            last_alone: 0,
            visits: i64::MAX,
        })
    }

    /// Generated functions have come: from now on units run by those that serve, or lanes by straight code.
    #[cold]
    fn change_over(&mut self, arrived: Arrived<'a>) {
        let Arrived::Native(native) = arrived else { return self.course.straight_came(self.together(0)) };
        self.native = Some(native.body(0));
        self.ways = ways(self.plan, self.native, self.stepper.env.settings, self.width);
        self.stepper.calls.forget();
        self.course.changed(self.together(0));
    }

    fn run(mut self) -> Vec<Report> {
        if self.stepper.env.settings.profile {
            self.stepper.profile = Some(Box::new(Profiler::new(self.plan.body.units.len())));
        }
        if let Some(window) = self.stepper.env.settings.trace {
            self.stepper.trace = Some(Box::new(Tracer::new(window, self.width)));
        }
        let mut interrupted = false;
        loop {
            if self.course.straight().is_some() {
                self.run_alone();
            }
            if self.stepper.env.stopped() {
                self.interrupt();
                // What was broken off says nothing of how long lanes take.
                interrupted = true;
                break;
            }
            self.refill();
            if !self.run_together() {
                break;
            }
        }
        if !interrupted {
            self.course.ended();
        }
        let alone = self.alone.take();
        let mut reports = vec![self.report()];
        reports.extend(alone.map(|alone| alone.report()));
        reports
    }

    /// Groups run the lanes. Returns whether any is left: the run was stopped, or straight code is to go on.
    fn run_together(&mut self) -> bool {
        while let Some(unit) = self.scheduler.next(&self.waiting, self.live) {
            if self.stepper.env.stopped() {
                return true;
            }
            if let Some(arrived) = self.lookout.arrived(self.counted.supersteps) {
                self.change_over(arrived);
                if self.course.straight().is_some() {
                    return true;
                }
            }
            let (live, unit) = (self.live, UnitId(unit as u32));
            let mut work = if Some(unit) == self.heaviest { self.waiting(unit) } else { 0 };
            superstep(self, unit);
            if self.live < live {
                if self.stepper.env.stopped() {
                    return true;
                }
                work += live - self.live;
                self.refill();
                self.mark(Activity::Scheduling, unit);
            }
            if self.course.did(work as u64) {
                self.course.look(self.together(0));
                if self.course.straight().is_some() {
                    return true;
                }
            }
        }
        false
    }

    /// Bytes of what is on the stacks of variables below their tops, in all lanes that are not done.
    fn stack_bytes(&self) -> u64 {
        let of = |stack: &StackMemory<R>| {
            let Some(each) = stack.bytes_pushed().checked_div(stack.pushes()) else { return 0 };
            each * self.occupied.iter().map(|lane| stack.height(lane) as u64).sum::<u64>()
        };
        self.frame.stacks.iter().map(of).sum()
    }

    /// Lanes from the queue take the free slots.
    fn refill(&mut self) {
        self.refill_beside(0);
    }

    /// The same, but for the slots of lanes that are elsewhere.
    fn refill_beside(&mut self, elsewhere: usize) {
        let positions = self.queue.take(self.width - self.live - elsewhere);
        if positions.is_empty() {
            return;
        }
        let entry = self.unit_of(self.plan.entry);
        self.live += positions.len();
        self.free.clear();
        let free = self.occupied.words().iter().enumerate().flat_map(|(i, word)| Bits(!word).map(move |b| i * 64 + b));
        self.free.extend(free.take(positions.len()).map(|lane| lane as u32));
        for (lane, position) in self.free.iter().zip(positions.clone()) {
            let lane = *lane as usize;
            self.occupied.insert(lane);
            self.stepper.admit(lane, position, self.inputs);
            self.waiting.add_lane(entry, lane);
        }
        self.stepper.tapes.reset(&self.free);
        self.returns.reset(&self.free);
        self.handlers.reset(&self.free);
        self.frame.stacks.iter_mut().for_each(|s| s.reset(&self.free));
        for (port, values) in self.plan.inputs.iter().zip(&self.inputs.values) {
            let buffer = &mut self.frame.slots[port.slot.0 as usize];
            buffer.set_lanes(self.width, &self.free, values, positions.start);
        }
        if let Some(tops) = &self.stepper.tops {
            self.other.reset(self.width);
            self.free.iter().for_each(|lane| self.other.insert(*lane as usize));
            let columns = of_lanes(&self.other);
            self.plan.inputs.iter().for_each(|port| tops.store(&mut self.frame, port.slot, columns));
        }
    }

    /// Sends the active lanes where they go.
    fn route(&mut self, exit: Exit, from: BlockId) {
        let plan = self.plan;
        match exit {
            Exit::Nobody => {}
            Exit::To(block) => self.send(block),
            Exit::Terminator => match &plan.body.blocks[from].term {
                Terminator::Jump(block) => self.send(*block),
                Terminator::Branch(_, a, b) => self.split(*a, *b),
                Terminator::PushJump { target, ret, loc, attempt } => {
                    self.call(*target, *ret, loc);
                    if let Some(attempt) = attempt.as_ref().filter(|a| a.has_heights()) {
                        self.note_heights(attempt);
                    }
                }
                Terminator::Return => self.give_back(&plan.body.blocks[from].loc),
                Terminator::Halt => {
                    std::mem::swap(&mut self.other, &mut self.stepper.active.mask);
                    self.halt_others();
                }
            },
        }
    }

    fn unit_of(&self, block: BlockId) -> usize {
        self.plan.body.blocks[block].unit.0 as usize
    }

    /// All active lanes wait at a block.
    fn send(&mut self, block: BlockId) {
        let unit = self.unit_of(block);
        let active = &self.stepper.active;
        self.waiting.add(unit, active.mask.words(), active.count);
    }

    /// The active lanes go to `a` where the condition holds, else to `b`.
    fn split(&mut self, a: BlockId, b: BlockId) {
        let (a, b) = (self.unit_of(a), self.unit_of(b));
        let active = &self.stepper.active;
        self.waiting.split((a, b), active.mask.words(), active.taken.words(), active.count);
    }

    /// The active lanes call a function; those whose calls are too deep trap.
    fn call(&mut self, target: BlockId, ret: BlockId, loc: &Loc) {
        let limit = self.stepper.env.settings.max_stack_depth;
        if self.returns.highest() >= limit {
            let active = &self.stepper.active.mask;
            let deep: Vec<usize> = active.iter().filter(|lane| self.returns.height(*lane) >= limit).collect();
            for lane in deep {
                let (kind, text) = (TrapKind::StackLimit, String::new());
                self.stepper.trap(lane, kind, loc, text);
            }
        }
        // there is no memory for the highest lanes; others may have room in what there is
        while self.returns.push_value(&[ret.0], self.stepper.active.for_stacks()).is_err()
            && self.stepper.active.count > 0
        {
            let highest = self.stepper.active.highest(|lane| self.returns.height(lane));
            self.stepper.trap_columns(&highest, TrapKind::MemoryLimit, loc);
        }
        self.stepper.mark(Activity::Stacks, loc);
        self.send(target);
    }

    /// The active lanes have called under an attempt, whose return address is on top.
    fn note_heights(&mut self, attempt: &Attempt) {
        let active = &self.stepper.active;
        for lane in active.mask.iter().map(|column| active.lane(column)) {
            let depth = self.returns.height(lane) - 1;
            let stacks = attempt.stacks.iter().map(|s| self.frame.stacks[s.0 as usize].height(lane));
            let tapes = attempt.tapes.iter().map(|t| self.stepper.tapes.height(*t, lane));
            self.handlers.record(lane, depth, stacks.chain(tapes));
        }
    }

    /// The active lanes return; those that return from the entry halt.
    fn give_back(&mut self, loc: &Loc) {
        self.other.reset(self.width);
        let (other, waiting, blocks) = (&mut self.other, &mut self.waiting, &self.plan.body.blocks);
        let mut halting = false;
        self.returns.pop_alike(self.stepper.active.mask.words(), |word, lanes, target| match target {
            Some(target) => waiting.add_word(blocks[BlockId(target)].unit.0 as usize, word, lanes),
            None => {
                other.words_mut()[word] = lanes;
                halting = true;
            }
        });
        self.stepper.mark(Activity::Stacks, loc);
        if halting {
            self.halt_others();
        }
    }

    /// The lanes of `self.other` are done: their outputs are taken.
    fn halt_others(&mut self) {
        let positions = &self.stepper.lanes.positions;
        self.finished.lanes(self.other.iter().map(|lane| positions[lane]));
        for (i, port) in self.plan.outputs.iter().enumerate() {
            if let Some(tops) = &self.stepper.tops {
                tops.load(&mut self.frame, port.slot, of_lanes(&self.other));
            }
            let buffer = &self.frame.slots[port.slot.0 as usize];
            self.finished.output(i, buffer, port.ty.elements(), &self.other);
        }
        for (occupied, done) in self.occupied.words_mut().iter_mut().zip(self.other.words()) {
            *occupied &= !done;
            self.live -= done.count_ones() as usize;
        }
    }

    fn report(mut self) -> Report {
        let stats = self.stepper.env.settings.stats;
        let body = &self.plan.body;
        let blocks = body.units.iter().map(|(id, unit)| {
            let first = unit.blocks[0];
            let loc = &body.blocks[first].loc;
            self.counted.units[id.0 as usize].report(first.to_string(), loc, unit.cost.weight)
        });
        let profile = self.stepper.profile.take().map(|profile| {
            let first = |unit: &Unit| unit.blocks[0];
            profile.report(body.units.values().map(|u| (first(u).to_string(), body.blocks[first(u)].loc.clone())))
        });
        let units = body.units.values().map(|unit| {
            let first = unit.blocks[0];
            let (block, loc, weight) = (first.to_string(), body.blocks[first].loc.clone(), unit.cost.weight);
            TracedUnit { block, loc, heavy: weight >= self.heavy, weight }
        });
        let track = self.stepper.trace.take().map(|tracer| tracer.into_track());
        let timeline = track.map(|track| Timeline { units: units.collect(), tracks: vec![track] });
        let variables = body.vars.values().map(|var| {
            let memory = var.stack.map(|s| &self.frame.stacks[s.0 as usize]);
            VariableStats {
                name: var.name.clone(),
                storage: var.class.into(),
                pushes: memory.map_or(0, |m| m.pushes()),
                bytes_pushed: memory.map_or(0, |m| m.bytes_pushed()),
                max_stack_depth: memory.map_or(0, |m| m.highest()),
            }
        });
        let variables = variables.chain(self.stepper.tapes.statistics());
        Report {
            blocks: if stats { blocks.collect() } else { Vec::new() },
            variables: if stats { variables.collect() } else { Vec::new() },
            finished: self.finished,
            traps: self.stepper.traps,
            caught: self.caught,
            supersteps: self.counted.supersteps,
            prims: self.stepper.prims,
            profile,
            timeline,
        }
    }
}

/// How the units of a plan run in a shard of this width, with the functions that were generated for them.
fn ways<'a>(
    plan: &'a Plan,
    native: Option<&'a NativeBody>,
    settings: &Settings,
    width: usize,
) -> IdVec<UnitId, Way<'a>> {
    plan.body.units.values().map(|unit| Way::of((&plan.body, unit), native, settings, width)).collect()
}

/// These lanes, each in its own column.
fn of_lanes(lanes: &LaneMask) -> Columns<'_> {
    Columns { mask: lanes.words(), width: lanes.width(), lanes: None, all: false }
}
