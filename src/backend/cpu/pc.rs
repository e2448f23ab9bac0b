//! Program-counter autobatching: a shard runs the plan of a stack program, one unit for its active set at a time.

use crate::backend::cpu::PADDING;
use crate::backend::cpu::attempts::{Handlers, spoil};
use crate::backend::cpu::codegen::{Native, NativeBody, NativeSegment};
use crate::backend::cpu::crew::{Counts, Finished, Layout, Queue, Report, run_shards};
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::profile::Profiler;
use crate::backend::cpu::segments::{Routing, serve};
use crate::backend::cpu::steps::{Environment, Stepper};
use crate::backend::cpu::tops::Tops;
use crate::base::{IdVec, Loc};
use crate::exec::mask::{Bits, lanes_in_groups};
use crate::exec::{Columns, LaneMask, LaneStack, Scheduler, StackError, Waiting};
use crate::plan::{Attempt, BlockId, Plan, Terminator, Unit, UnitId, cost};
use crate::run::{Activity, AllCaught, Execution, Outcome, RunInputs, Settings, Sink, TrapKind, VariableStats};
use crate::types::{Precision, Type};
use crate::vmath::Real;

/// Runs a plan. `inputs` fit the program: element types and event shapes are those of its lane inputs and shared values.
pub fn run(plan: &Plan, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    run_with(plan, None, inputs, settings, sink)
}

/// Runs a plan with generated code in the place of steps. It was made of this plan for the precision of the settings.
pub fn run_with(
    plan: &Plan,
    native: Option<&Native>,
    inputs: &RunInputs,
    settings: &Settings,
    sink: &dyn Sink,
) -> Outcome {
    match settings.precision {
        Precision::F32 => run_typed::<f32>(plan, native, inputs, settings, sink),
        Precision::F64 => run_typed::<f64>(plan, native, inputs, settings, sink),
    }
}

fn run_typed<R: Real>(
    plan: &Plan,
    native: Option<&Native>,
    inputs: &RunInputs,
    settings: &Settings,
    sink: &dyn Sink,
) -> Outcome {
    let lanes = inputs.lanes.len();
    // Generated code keeps tops in registers of the processor.
    let native = native.filter(|_| plan.cached_tops).map(|n| n.body(0));
    let interpreted = plan.shard_lanes(size_of::<R>());
    let runs = settings.execution != Execution::Gather && serve(settings, interpreted);
    let planned = match native {
        Some(native) if runs && native.computes_all(&plan.body) => plan.shard_lanes_of_code(size_of::<R>()),
        _ => interpreted,
    };
    let layout = Layout::new(lanes, planned, plan.work(), settings);
    let env = Environment::<R>::new(&plan.globals, inputs, settings, sink);
    let types: Vec<&Type> = plan.outputs.iter().map(|o| &o.ty).collect();
    let entry = &plan.body.blocks[plan.entry].loc;
    run_shards(lanes, layout, &types, entry, |queue| {
        Ok(Shard::new(plan, native, inputs, &env, queue, layout.width)?.run())
    })
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
    /// The slots whose lanes are not done.
    occupied: LaneMask,
    live: usize,
    finished: Finished,
    supersteps: u64,
    units: IdVec<UnitId, Counts>,
    /// Buffers that supersteps reuse.
    other: LaneMask,
    free: Vec<u32>,
    /// How each unit runs.
    ways: IdVec<UnitId, Way<'a>>,
}

/// What runs a unit. It is chosen for each unit once, when the shard starts, since settings do not change.
trait RunUnit<R> {
    /// Runs a unit for the lanes that wait there, and sends them on. Returns the lanes that it computed.
    ///
    /// # Errors
    /// [`NoRoom`], where there is no memory for what it would push; nothing was done.
    fn run(self, shard: &mut Shard<'_, R>, id: UnitId) -> Result<usize, NoRoom>;
}

/// There is no memory for what a generated function would push: the steps trap those lanes whose values have no place.
struct NoRoom;

/// How a unit runs.
#[derive(Clone, Copy)]
enum Way<'a> {
    Steps(Steps<'a>),
    Routed(Routed<'a>),
}

/// Step by step: kernels, and generated functions in the place of some steps where there are any and they serve.
#[derive(Clone, Copy)]
struct Steps<'a> {
    native: Option<&'a NativeBody>,
}

/// By the generated function that is all of the unit and sends its lanes on too.
#[derive(Clone, Copy)]
struct Routed<'a> {
    function: &'a NativeSegment,
    /// Lanes that it computes at once.
    group: usize,
}

impl<'a> Way<'a> {
    /// The quickest way that serves a unit in a shard of this width. Routed functions know of lanes, not of columns,
    /// and look for no NaN.
    fn of(unit: &Unit, native: Option<&'a NativeBody>, settings: &Settings, width: usize) -> Self {
        let native = native.filter(|_| serve(settings, width));
        let routed = native.filter(|_| settings.execution != Execution::Gather);
        match routed.and_then(|n| Some((n.routed(unit)?, n.group()))) {
            Some((function, group)) => Way::Routed(Routed { function, group }),
            None => Way::Steps(Steps { native }),
        }
    }
}

impl<R: Real> RunUnit<R> for Steps<'_> {
    fn run(self, shard: &mut Shard<'_, R>, id: UnitId) -> Result<usize, NoRoom> {
        shard.stepper.calls.forget();
        let body = &shard.plan.body;
        let unit = &body.units[id];
        shard.stepper.active.take(&mut shard.waiting, id.0 as usize);
        let whole = self.native.filter(|n| n.is_whole(unit));
        shard.stepper.start(unit, whole.is_some(), &mut shard.frame, &body.slots, shard.live);
        shard.mark_unit(Activity::Masks, id);
        let issued = match shard.stepper.env.settings.stats {
            true => shard.stepper.lanes_issued(whole),
            false => 0,
        };
        let exit = shard.run_unit(id, unit, self.native);
        shard.stepper.end(unit, &mut shard.frame, &body.slots);
        shard.mark_unit(Activity::Masks, id);
        if shard.stepper.active.count > 0 {
            shard.route(exit);
        }
        Ok(issued)
    }
}

impl<R: Real> RunUnit<R> for Routed<'_> {
    fn run(self, shard: &mut Shard<'_, R>, id: UnitId) -> Result<usize, NoRoom> {
        let segment = &self.function.segment;
        let settings = shard.stepper.env.settings;
        let waits = shard.waiting.mask(id.0 as usize);
        let issued = if settings.stats { lanes_in_groups(waits, self.group) } else { 0 };
        if settings.max_supersteps > 0 {
            // What the steps are left to is not counted twice.
            let room = shard.stepper.has_room(&mut shard.frame, segment);
            if !room || shard.returns.open(1).is_err() {
                return Err(NoRoom);
            }
            shard.count_block(&shard.plan.body.units[id], id);
        }
        if segment.ends {
            shard.other.reset(shard.width);
        }
        let (waiting, returns, done) = (&mut shard.waiting, &mut shard.returns, &mut shard.other);
        let route = &mut Routing { waiting, returns, done };
        let finished = shard.stepper.call_routed(&mut shard.frame, (id, self.function), route).ok_or(NoRoom)?;
        shard.mark_unit(Activity::Native, id);
        if finished > 0 {
            shard.halt_others();
        }
        Ok(issued)
    }
}

impl<'a, R: Real> Shard<'a, R> {
    fn new(
        plan: &'a Plan,
        native: Option<&'a NativeBody>,
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
            occupied: LaneMask::none(width),
            live: 0,
            finished: Finished::new(plan.outputs.iter().map(|o| &o.ty)),
            supersteps: 0,
            units: IdVec::filled(Counts::default(), units.len()),
            other: LaneMask::none(width),
            free: Vec::with_capacity(width),
            ways: units.values().map(|unit| Way::of(unit, native, env.settings, width)).collect(),
        })
    }

    fn run(mut self) -> Report {
        if self.stepper.env.settings.profile {
            self.stepper.profile = Some(Box::new(Profiler::new(self.plan.body.units.len())));
        }
        self.refill();
        while let Some(unit) = self.scheduler.next(&self.waiting, self.live) {
            if let Some(profile) = &mut self.stepper.profile {
                profile.enter(unit);
            }
            if self.stepper.env.stopped() {
                self.interrupt();
                break;
            }
            let (live, unit) = (self.live, UnitId(unit as u32));
            self.superstep(unit);
            if self.live < live {
                self.refill();
                self.mark_unit(Activity::Scheduling, unit);
            }
        }
        self.report()
    }

    /// The time since the last mark went to an activity at the start of a unit.
    #[inline]
    fn mark_unit(&mut self, activity: Activity, unit: UnitId) {
        if self.stepper.profile.is_none() {
            return;
        }
        let body = &self.plan.body;
        self.stepper.mark(activity, &body.blocks[body.units[unit].blocks[0]].loc);
    }

    /// Lanes from the queue take the free slots.
    fn refill(&mut self) {
        let positions = self.queue.take(self.width - self.live);
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
            self.stepper.admit(lane, position, self.inputs.lanes[position]);
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

    /// Counts the block of a unit in the lanes that wait there; those past the limit trap.
    fn count_block(&mut self, unit: &Unit, id: UnitId) {
        let active = &mut self.stepper.active;
        active.take(&mut self.waiting, id.0 as usize);
        self.stepper.count_block(&self.plan.body.blocks[unit.blocks[0]].loc);
        self.send(unit.blocks[0]);
    }

    /// Runs a unit for the lanes that wait there, as it was chosen. What is counted, noted and taken out around it
    /// stands here.
    fn superstep(&mut self, id: UnitId) {
        self.mark_unit(Activity::Scheduling, id);
        let count = self.waiting.count(id.0 as usize);
        let issued = match self.ways[id] {
            Way::Routed(way) => way.run(self, id).or_else(|NoRoom| Steps { native: self.native }.run(self, id)),
            Way::Steps(way) => way.run(self, id),
        };
        let Ok(issued) = issued else { unreachable!("steps trap the lanes that find no room") };
        self.supersteps += 1;
        if self.stepper.env.settings.stats {
            self.units[id].add(count, issued);
        }
        if !self.stepper.dead.is_empty() {
            self.bury();
        }
        self.mark_unit(Activity::Scheduling, id);
    }

    /// Runs the blocks of a unit until its lanes leave it. Returns how, and the block they leave from.
    fn run_unit(&mut self, id: UnitId, unit: &Unit, native: Option<&NativeBody>) -> (Exit, BlockId) {
        let body = &self.plan.body;
        let mut at = unit.blocks[0];
        loop {
            let block = &body.blocks[at];
            self.stepper.count_block(&block.loc);
            let parts = native.map(|n| n.parts(at));
            self.stepper.run_parts(&mut self.frame, parts, &block.steps);
            if self.stepper.active.count == 0 {
                return (Exit::Nobody, at);
            }
            let inside = |b: BlockId| unit.region && body.contains(id, b);
            if let Terminator::Branch(cond, ..) = &block.term {
                self.stepper.load_top(&mut self.frame, cond);
            }
            let target = match &block.term {
                Terminator::Jump(b) => *b,
                // The same for all lanes: a jump.
                Terminator::Branch(cond, a, b) if cond.broadcast || inside(*a) || inside(*b) => {
                    if self.stepper.holds(&self.frame, cond) { *a } else { *b }
                }
                Terminator::Branch(cond, _, _) => {
                    self.stepper.evaluate(&self.frame, cond);
                    return (Exit::Terminator, at);
                }
                _ => return (Exit::Terminator, at),
            };
            if !inside(target) {
                return (Exit::To(target), at);
            }
            if self.stepper.env.stopped() {
                self.stepper.trap_all(TrapKind::Interrupted, &block.loc);
                return (Exit::Nobody, at);
            }
            at = target;
        }
    }

    /// Sends the active lanes where they go.
    fn route(&mut self, (exit, from): (Exit, BlockId)) {
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

    /// Completes the reports of the lanes that trapped: those that an attempt catches go on, the slots of the others are free.
    fn bury(&mut self) {
        let mut short = false;
        for (lane, mut trap) in self.stepper.take_dead() {
            trap.call_depth = self.returns.height(lane);
            let attempt = if trap.kind.is_caught() { self.handlers.last(&self.returns, lane) } else { None };
            if let Some((depth, ret, attempt)) = attempt {
                self.stepper.note_caught(&mut self.caught, trap);
                self.unwind(lane, depth, attempt);
                self.waiting.add_lane(self.unit_of(ret), lane);
                continue;
            }
            short |= trap.kind == TrapKind::MemoryLimit;
            self.stepper.traps.push(trap);
            self.occupied.remove(lane);
            self.live -= 1;
        }
        if short {
            self.trim();
        }
    }

    /// Memory ran out: what lanes held that are done goes to those that go on, here and in other shards.
    fn trim(&mut self) {
        let free = self.occupied.words().iter().enumerate().flat_map(|(i, word)| Bits(!word).map(move |b| i * 64 + b));
        self.free.clear();
        self.free.extend(free.take_while(|lane| *lane < self.width).map(|lane| lane as u32));
        self.stepper.tapes.reset(&self.free);
        self.stepper.tapes.trim();
        self.returns.reset(&self.free);
        self.returns.trim();
        for stack in &mut self.frame.stacks {
            stack.reset(&self.free);
            stack.trim();
        }
    }

    /// A lane goes back to a call: its stacks are as high as they were, and what the callee gives is spoilt.
    fn unwind(&mut self, lane: usize, depth: usize, attempt: &Attempt) {
        self.returns.cut(lane, depth);
        if attempt.has_heights() {
            let mut heights = self.handlers.heights(lane, depth).iter().map(|h| *h as usize);
            for (stack, height) in attempt.stacks.iter().zip(heights.by_ref()) {
                self.frame.stacks[stack.0 as usize].cut(lane, height);
            }
            for (tape, height) in attempt.tapes.iter().zip(heights) {
                self.stepper.tapes.cut(*tape, lane, height);
            }
        }
        for (slot, ty) in &attempt.results {
            spoil(&mut self.frame.slots[slot.0 as usize], ty.elements(), self.width, lane);
            if let Some(tops) = &self.stepper.tops {
                self.other.reset(self.width);
                self.other.insert(lane);
                tops.store(&mut self.frame, *slot, of_lanes(&self.other));
            }
        }
    }

    /// The run was stopped: the lanes that are not done trap where they wait.
    fn interrupt(&mut self) {
        for (unit, lane) in self.waiting.lanes() {
            let first = self.plan.body.units[UnitId(unit as u32)].blocks[0];
            let loc = &self.plan.body.blocks[first].loc;
            let (kind, text) = (TrapKind::Interrupted, String::new());
            self.stepper.bury(lane, kind, loc, text);
        }
        self.bury();
    }

    fn report(mut self) -> Report {
        let stats = self.stepper.env.settings.stats;
        let body = &self.plan.body;
        let blocks = body.units.iter().map(|(id, unit)| {
            let first = unit.blocks[0];
            let loc = &body.blocks[first].loc;
            self.units[id].report(first.to_string(), loc, unit.cost.weight)
        });
        let profile = self.stepper.profile.take().map(|profile| {
            let first = |unit: &Unit| unit.blocks[0];
            profile.report(body.units.values().map(|u| (first(u).to_string(), body.blocks[first(u)].loc.clone())))
        });
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
            supersteps: self.supersteps,
            prims: self.stepper.prims,
            profile,
        }
    }
}

/// These lanes, each in its own column.
fn of_lanes(lanes: &LaneMask) -> Columns<'_> {
    Columns { mask: lanes.words(), width: lanes.width(), lanes: None, all: false }
}

/// How the lanes of a unit leave it.
enum Exit {
    /// None is left.
    Nobody,
    /// All go to a block.
    To(BlockId),
    /// By the terminator of the block they leave from.
    Terminator,
}
