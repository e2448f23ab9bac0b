//! Local static autobatching (section 2 of Radul et al. 2020), the comparison mode: each function is batched by itself.
//! Lanes of one call run together under a mask, always the earliest block at which one of them waits; a call runs the
//! callee to its end for the lanes that reached it, with a fresh set of variables, while the others stand still. So lanes
//! meet only in the same call of the same caller.
//!
//! Arrays that a call only reads, or that the caller does not want any more, are handed over where they are.
//!
//! The stack of activations is kept here and not on the host, so that no depth of recursion overflows it. A tail call
//! moves its lanes to another body of the same activation.

use std::sync::Arc;

use crate::backend::cpu::arrays::Arrays;
use crate::backend::cpu::attempts::spoil;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::codegen::{Native, NativeBody};
use crate::backend::cpu::crew::{Counts, Finished, Layout, Queue, Report, run_shards};
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::profile::Profiler;
use crate::backend::cpu::steps::{Environment, Stepper};
use crate::base::{Id, IdVec, Loc};
use crate::exec::{LaneMask, StackError, Waiting};
use crate::parts::TapeId;
use crate::plan::{Arg, BlockId, CallPlan, CallTerminator, Func, FuncId, Passing, SlotId, Source, Unit, UnitId};
use crate::run::{
    Activity, AllCaught, MemoryBudget, Outcome, Reservation, RunInputs, Settings, Sink, TrapKind, VariableStats,
};
use crate::types::{Precision, Type};
use crate::vmath::Real;

/// Arrays of so many elements are given to a call beside which other lanes have values in them.
const MANY: usize = 64;

/// Runs a plan. `inputs` fit the program: element types and event shapes are those of its lane inputs and shared values.
pub fn run(plan: &CallPlan, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    run_with(plan, None, inputs, settings, sink)
}

/// Runs a plan with generated code in the place of steps. It was made of this plan for the precision of the settings.
pub fn run_with(
    plan: &CallPlan,
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
    plan: &CallPlan,
    native: Option<&Native>,
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
    run_shards(lanes, layout, &types, loc, |queue| Ok(Shard::new(plan, native, inputs, &env, layout.width)?.run(queue)))
}

/// One shard: its lanes run to their end together, then others take their slots.
struct Shard<'a, R> {
    plan: &'a CallPlan,
    native: Option<&'a Native>,
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
    supersteps: u64,
    /// Where the last unit stands; kept only for a profile.
    loc: Loc,
    counts: IdVec<FuncId, IdVec<UnitId, Counts>>,
}

/// One call, for the lanes that made it together.
struct Activation<R> {
    /// The function, and those that it has tail-called.
    bodies: Vec<Running<R>>,
    /// The body whose lanes run.
    current: usize,
    /// The results of the lanes that have returned.
    results: Vec<Buffer<R>>,
    returned: LaneMask,
    /// What the results take.
    _memory: Reservation,
    /// Whether the call is an attempt.
    attempt: bool,
    /// The lanes whose traps it caught.
    failed: LaneMask,
    /// Of an attempt, how many values each tape had in each lane at the call, tape after tape.
    tapes: Vec<u32>,
    /// How many lanes made the call.
    callers: usize,
    /// Whether these are all lanes that have values where the call came from.
    whole: bool,
    /// Whether it may change arrays in which other lanes of the caller have values, so that all that it sets is set
    /// under the mask.
    guest: bool,
    /// The slots of the caller and of the function that have changed places.
    loans: Vec<(usize, usize)>,
    /// The block that called, in the current body of the activation below.
    site: BlockId,
}

/// A function within an activation.
struct Running<R> {
    func: FuncId,
    frame: Frame<R>,
    waiting: Waiting,
    /// Lanes whose variables are here.
    live: usize,
    /// New values of the parameters when the function tail-calls itself.
    staged: Vec<Buffer<R>>,
    /// What all of it takes.
    memory: Reservation,
}

impl<R: Real> Running<R> {
    fn new(
        plan: &CallPlan,
        func: FuncId,
        (width, arrays): (usize, &Arrays<'_, R>),
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self, StackError> {
        let body = &plan.funcs[func].body;
        let mut memory = Reservation::of(budget);
        memory.resize(arrays.frame_bytes(func))?;
        Ok(Self {
            func,
            frame: Frame::without(body, arrays.left_out(func), width, budget)?,
            waiting: Waiting::new(body.units.len(), width),
            live: 0,
            staged: Vec::new(),
            memory,
        })
    }
    /// Makes room for the new value of a parameter.
    fn stage(&mut self, k: usize, ty: &Type, width: usize) -> Result<(), StackError> {
        while self.staged.len() <= k {
            self.staged.push(Buffer::nothing());
        }
        if self.staged[k].is_empty() {
            let bytes = bytes_of::<R>(std::iter::once(ty), width);
            self.memory.resize(self.memory.bytes().saturating_add(bytes))?;
            self.staged[k] = zeros(ty, width)?;
        }
        Ok(())
    }
    /// Lanes enter the function; its parameters are set.
    fn enter(&mut self, func: &Func, lanes: &LaneMask) {
        let entry = func.body.blocks[BlockId(0)].unit;
        let count = lanes.count();
        self.waiting.add(entry.0 as usize, lanes.words(), count);
        self.live += count;
    }
}

impl<R: Real> Activation<R> {
    fn new(
        plan: &CallPlan,
        func: FuncId,
        (width, arrays): (usize, &Arrays<'_, R>),
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self, StackError> {
        let results = plan.funcs[func].results.iter();
        let mut memory = Reservation::of(budget);
        memory.resize(bytes_of::<R>(results.clone().filter(|ty| !Arrays::<R>::holds(ty)), width))?;
        let result = |ty| if Arrays::<R>::holds(ty) { Ok(Buffer::nothing()) } else { zeros(ty, width) };
        Ok(Self {
            _memory: memory,
            bodies: vec![Running::new(plan, func, (width, arrays), budget)?],
            current: 0,
            results: results.map(result).collect::<Result<_, _>>()?,
            returned: LaneMask::none(width),
            attempt: false,
            failed: LaneMask::none(width),
            tapes: Vec::new(),
            callers: 0,
            whole: false,
            guest: false,
            loans: Vec::new(),
            site: BlockId(0),
        })
    }
    /// The unit that runs next: the earliest of the current body, else of the first body with lanes; `None` when all
    /// lanes have returned.
    fn next(&mut self) -> Option<UnitId> {
        let first = |body: &Running<R>| body.waiting.first();
        let unit = first(&self.bodies[self.current]).or_else(|| {
            let mut bodies = self.bodies.iter().enumerate();
            let (index, unit) = bodies.find_map(|(i, b)| first(b).map(|unit| (i, unit)))?;
            self.current = index;
            Some(unit)
        });
        unit.map(|unit| UnitId(unit as u32))
    }
    /// The body for a function that is tail-called.
    fn body(
        &mut self,
        plan: &CallPlan,
        func: FuncId,
        arrays: (usize, &Arrays<'_, R>),
        budget: &Arc<MemoryBudget>,
    ) -> Result<usize, StackError> {
        if let Some(found) = self.bodies.iter().position(|b| b.func == func) {
            return Ok(found);
        }
        self.bodies.push(Running::new(plan, func, arrays, budget)?);
        Ok(self.bodies.len() - 1)
    }
}

impl<'a, R: Real> Shard<'a, R> {
    fn new(
        plan: &'a CallPlan,
        native: Option<&'a Native>,
        inputs: &'a RunInputs,
        env: &'a Environment<'a, R>,
        width: usize,
    ) -> Result<Self, StackError> {
        let counts = plan.funcs.values();
        let counts = counts.map(|f| IdVec::filled(Counts::default(), f.body.units.len()));
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
            native,
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
            supersteps: 0,
            loc: Loc::none(),
            counts: counts.collect(),
        })
    }

    fn run(mut self, queue: &Queue) -> Report {
        if self.stepper.env.settings.profile {
            self.stepper.profile = Some(Box::new(Profiler::new(self.counts.values().map(IdVec::len).sum())));
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
                    Some(unit) => self.superstep(unit),
                    None => self.finish(),
                }
                // what comes before the next unit, a return included, is counted with this one
                self.stepper.mark(Activity::Scheduling, &self.loc);
            }
        }
        self.report()
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
            self.stepper.admit(lane, position, self.inputs.lanes[position]);
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
            self.bury();
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

    fn activation(&mut self, func: FuncId) -> Result<Activation<R>, StackError> {
        let budget = &self.stepper.env.settings.memory;
        let made = || Activation::new(self.plan, func, (self.width, &self.arrays), budget);
        self.spare[func].pop().map_or_else(made, Ok)
    }

    /// Runs a unit of the topmost activation for the lanes that wait there.
    fn superstep(&mut self, id: UnitId) {
        let plan = self.plan;
        let top = self.activations.last_mut().expect("a unit of it runs");
        let running = &mut top.bodies[top.current];
        let body = &plan.funcs[running.func].body;
        let unit = &body.units[id];
        let at = unit.blocks[0];
        let block = &body.blocks[at];
        self.stepper.active.take(&mut running.waiting, id.0 as usize);
        let count = self.stepper.active.count;
        if let Some(profile) = &mut self.stepper.profile {
            let before = self.counts.iter().take_while(|(func, _)| *func != running.func).map(|(_, units)| units.len());
            profile.enter(before.sum::<usize>() + id.0 as usize);
            self.loc = block.loc.clone();
        }
        self.stepper.mark(Activity::Scheduling, &block.loc);
        if self.arrays.enter(running.func, id, &mut running.frame).is_err() {
            let loc = block.steps.first().map_or(&block.loc, |step| &step.loc);
            self.refuse_call(TrapKind::MemoryLimit, loc);
            self.bury();
            return;
        }
        let native: Option<&NativeBody> = self.native.map(|n| n.body(running.func.0 as usize));
        let whole = native.is_some_and(|n| n.is_whole(unit));
        let live = if top.guest { usize::MAX } else { running.live };
        self.stepper.start(unit, whole, &mut running.frame, &body.slots, live);
        self.stepper.mark(Activity::Masks, &block.loc);
        self.supersteps += 1;
        if self.stepper.env.settings.stats {
            let issued = self.stepper.lanes_issued(native.filter(|_| whole));
            self.counts[running.func][id].add(count, issued);
        }
        self.stepper.count_block(&block.loc);
        self.stepper.run_parts(&mut running.frame, native.map(|n| n.parts(at)), &block.steps);
        if let CallTerminator::Branch(cond, _, _) = &block.term {
            self.stepper.evaluate(&running.frame, cond);
        }
        self.stepper.end(unit, &mut running.frame, &body.slots);
        self.arrays.leave(running.func, &mut running.frame);
        self.stepper.mark(Activity::Masks, &block.loc);
        running.live -= count - self.stepper.active.count;
        self.bury();
        if self.stepper.active.count > 0 {
            self.route(at, &block.term);
        }
        self.bury();
    }

    /// Sends the active lanes where they go.
    fn route(&mut self, at: BlockId, term: &CallTerminator) {
        let plan = self.plan;
        let too_deep = self.activations.len() > self.stepper.env.settings.max_stack_depth;
        let top = self.activations.last_mut().expect("a unit of it ran");
        let running = &mut top.bodies[top.current];
        let body = &plan.funcs[running.func].body;
        let unit = |b: &BlockId| body.blocks[*b].unit.0 as usize;
        let active = &self.stepper.active;
        let mask = &active.mask;
        match term {
            CallTerminator::Jump(b) => running.waiting.add(unit(b), mask.words(), active.count),
            CallTerminator::Branch(_, a, b) => {
                let units = (unit(a), unit(b));
                running.waiting.split(units, mask.words(), active.taken.words(), active.count);
            }
            CallTerminator::Return(args, passing) => {
                // a copy is made before what it is of is given away
                let all = top.whole && active.count == top.callers;
                let given = |(arg, passing): (&Arg, &Passing)| match arg.source {
                    Source::Slot(from) if all && *passing == Passing::Given && Arrays::<R>::holds(&arg.ty) => {
                        Some(from)
                    }
                    _ => None,
                };
                for (k, arg) in args.iter().enumerate().filter(|(k, arg)| given((*arg, &passing[*k])).is_none()) {
                    if self.arrays.ensure_result(&mut top.results[k], &arg.ty).is_err() {
                        self.refuse_call(TrapKind::MemoryLimit, &body.blocks[at].loc);
                        return;
                    }
                    store(self.stepper.env, &running.frame, arg, &mut top.results[k], self.width, mask);
                }
                for (k, from) in args.iter().zip(passing).map(given).enumerate() {
                    if let Some(from) = from {
                        std::mem::swap(&mut running.frame.slots[from.0 as usize], &mut top.results[k]);
                    }
                }
                let words = top.returned.words_mut().iter_mut().zip(mask.words());
                words.for_each(|(to, from)| *to |= from);
                running.live -= active.count;
            }
            CallTerminator::Call { func, args, loc, attempt, passing, dsts, .. } => {
                if too_deep {
                    self.refuse_call(TrapKind::StackLimit, loc);
                } else if self.call(at, *func, (args, passing), (dsts, *attempt)).is_err() {
                    self.refuse_call(TrapKind::MemoryLimit, loc);
                } else if *attempt {
                    self.note_attempt();
                }
            }
            CallTerminator::TailCall { func, args, passing } => {
                if self.tail_call(*func, args, passing).is_err() {
                    self.refuse_call(TrapKind::MemoryLimit, &body.blocks[at].loc);
                }
            }
        }
    }

    /// The active lanes cannot call: too many calls are active, or there is no memory for another one.
    fn refuse_call(&mut self, kind: TrapKind, loc: &Loc) {
        if kind == TrapKind::MemoryLimit {
            self.short = true;
            let entry = self.plan.entry;
            for (_, spare) in self.spare.iter_mut().filter(|(func, _)| *func != entry) {
                for activation in spare.drain(..) {
                    drop_arrays(&mut self.arrays, self.plan, &activation);
                }
            }
        }
        let top = self.activations.last_mut().expect("it calls");
        top.bodies[top.current].live -= self.stepper.active.count;
        self.stepper.trap_all(kind, loc);
    }

    /// The active lanes call a function: a new activation. Nothing has changed when there is no memory for it.
    fn call(
        &mut self,
        site: BlockId,
        func: FuncId,
        (args, passing): (&[Arg], &[Passing]),
        (dsts, attempt): (&[SlotId], bool),
    ) -> Result<(), StackError> {
        let mut activation = self.activation(func)?;
        let made = self.pass((func, &mut activation), (args, passing), (dsts, attempt));
        if made.is_err() {
            self.spare[func].push(activation);
            return made;
        }
        activation.bodies[0].enter(&self.plan.funcs[func], &self.stepper.active.mask);
        activation.callers = self.stepper.active.count;
        activation.site = site;
        self.activations.push(activation);
        Ok(())
    }

    /// Sets the parameters of a call: what is lent or given changes places with what the callee has there. Where others
    /// have values in an array that is given, it must be larger than what it takes to set everything under the mask.
    fn pass(
        &mut self,
        (func, activation): (FuncId, &mut Activation<R>),
        (args, passing): (&[Arg], &[Passing]),
        (dsts, attempt): (&[SlotId], bool),
    ) -> Result<(), StackError> {
        let callee = &self.plan.funcs[func];
        let top = self.activations.last_mut().expect("it calls");
        let caller = &mut top.bodies[top.current];
        let alone = self.stepper.active.count == caller.live && !top.guest;
        let handed = |arg: &Arg, passing: &Passing| {
            let array = Arrays::<R>::holds(&arg.ty) && matches!(arg.source, Source::Slot(_)) && !arg.broadcast;
            array && (*passing == Passing::Lent || *passing == Passing::Given && (alone || arg.ty.elements() >= MANY))
        };
        let running = &mut activation.bodies[0];
        for ((param, arg), passing) in callee.params.iter().zip(args).zip(passing) {
            if !handed(arg, passing) {
                self.arrays.ensure(func, &mut running.frame, slot(callee, *param))?;
            }
        }
        let whole = alone && !attempt;
        if !whole {
            // the lanes of the call get their results beside those of others
            dsts.iter().try_for_each(|dst| self.arrays.ensure(caller.func, &mut caller.frame, dst.0 as usize))?;
        }
        if attempt {
            for (result, ty) in activation.results.iter_mut().zip(&callee.results) {
                self.arrays.ensure_result(result, ty)?;
            }
        }
        for ((param, arg), passing) in callee.params.iter().zip(args).zip(passing) {
            if !handed(arg, passing) {
                let to = &mut running.frame.slots[slot(callee, *param)];
                store(self.stepper.env, &caller.frame, arg, to, self.width, &self.stepper.active.mask);
            }
        }
        for ((param, arg), passing) in callee.params.iter().zip(args).zip(passing) {
            if let (true, Source::Slot(from)) = (handed(arg, passing), arg.source) {
                let (from, to) = (from.0 as usize, slot(callee, *param));
                std::mem::swap(&mut caller.frame.slots[from], &mut running.frame.slots[to]);
                activation.loans.push((from, to));
                activation.guest |= *passing == Passing::Given && !alone;
            }
        }
        activation.whole = whole;
        Ok(())
    }

    /// The call that was made is an attempt.
    fn note_attempt(&mut self) {
        let top = self.activations.last_mut().expect("it was made");
        top.attempt = true;
        top.tapes.clear();
        top.tapes.extend(self.stepper.tape_heights(self.width));
    }

    /// The active lanes go on in another function of the same activation, or in the same one from its start. Nothing has
    /// changed when there is no memory for it.
    fn tail_call(&mut self, func: FuncId, args: &[Arg], passing: &[Passing]) -> Result<(), StackError> {
        let plan = self.plan;
        let callee = &plan.funcs[func];
        let env = self.stepper.env;
        let mask = &self.stepper.active.mask;
        let count = self.stepper.active.count;
        let width = self.width;
        let top = self.activations.last_mut().expect("it calls");
        let (from, to) = (top.current, top.body(plan, func, (width, &self.arrays), &env.settings.memory)?);
        let alone = top.bodies[from].live == count && !top.guest;
        if let Ok([from, to]) = top.bodies.get_disjoint_mut([from, to]) {
            let alone = alone && to.live == 0;
            for param in &callee.params {
                self.arrays.ensure(func, &mut to.frame, slot(callee, *param))?;
            }
            let given = |arg: &Arg, passing: &Passing| match arg.source {
                Source::Slot(at) if alone && *passing == Passing::Given && Arrays::<R>::holds(&arg.ty) => Some(at),
                _ => None,
            };
            let all = || callee.params.iter().map(|param| slot(callee, *param)).zip(args).zip(passing);
            for ((param, arg), _) in all().filter(|((_, arg), passing)| given(arg, passing).is_none()) {
                store(env, &from.frame, arg, &mut to.frame.slots[param], width, mask);
            }
            for ((param, arg), passing) in all() {
                if let Some(SlotId(at)) = given(arg, passing) {
                    std::mem::swap(&mut from.frame.slots[at as usize], &mut to.frame.slots[param]);
                }
            }
            from.live -= count;
            to.enter(callee, mask);
            return Ok(());
        }
        let running = &mut top.bodies[from];
        // what stays where it is is not touched
        let stays = |k: usize| args[k].source == Source::Slot(SlotId(slot(callee, callee.params[k]) as u32));
        for (k, arg) in args.iter().enumerate().filter(|(k, _)| !stays(*k)) {
            self.arrays.ensure(func, &mut running.frame, slot(callee, callee.params[k]))?;
            running.stage(k, &arg.ty, width)?;
        }
        for (k, arg) in args.iter().enumerate().filter(|(k, _)| !stays(*k)) {
            store(env, &running.frame, arg, &mut running.staged[k], width, mask);
        }
        for (k, arg) in args.iter().enumerate().filter(|(k, _)| !stays(*k)) {
            let to = &mut running.frame.slots[slot(callee, callee.params[k])];
            to.blend(&running.staged[k], arg.ty.elements(), width, mask.words());
        }
        running.live -= count;
        running.enter(callee, mask);
        Ok(())
    }

    /// All lanes of the topmost activation have returned: they go on where they called from, or are done.
    fn finish(&mut self) {
        let plan = self.plan;
        let mut done = self.activations.pop().expect("it is finished");
        let func = &plan.funcs[done.bodies[0].func];
        for lane in done.failed.iter() {
            done.returned.insert(lane);
            for (result, ty) in done.results.iter_mut().zip(&func.results) {
                spoil(result, ty.elements(), self.width, lane);
            }
        }
        let returned = &done.returned;
        match self.activations.last_mut() {
            Some(top) => {
                let running = &mut top.bodies[top.current];
                let caller = &plan.funcs[running.func].body;
                let site = &caller.blocks[done.site].term;
                let CallTerminator::Call { dsts, next, .. } = site else {
                    unreachable!("an activation above another comes from a call");
                };
                for (lent, param) in done.loans.drain(..).rev() {
                    let param = &mut done.bodies[0].frame.slots[param];
                    std::mem::swap(&mut running.frame.slots[lent], param);
                }
                let types = plan.funcs[done.bodies[0].func].results.iter();
                for ((SlotId(dst), from), ty) in dsts.iter().zip(&mut done.results).zip(types) {
                    let to = &mut running.frame.slots[*dst as usize];
                    if done.whole && Arrays::<R>::holds(ty) {
                        std::mem::swap(to, from);
                    } else if returned.count() > 0 {
                        to.blend(from, ty.elements(), self.width, returned.words());
                    }
                }
                running.live -= done.callers - returned.count();
                let unit = caller.blocks[*next].unit.0 as usize;
                running.waiting.add(unit, returned.words(), returned.count());
            }
            // results that nobody has may have no memory
            None if returned.count() == 0 => {}
            None => {
                let types = &plan.funcs[plan.entry].results;
                let positions = &self.stepper.lanes.positions;
                self.finished.lanes(returned.iter().map(|lane| positions[lane]));
                for (i, (from, ty)) in done.results.iter().zip(types).enumerate() {
                    self.finished.output(i, from, ty.elements(), returned);
                }
            }
        }
        done.returned.reset(self.width);
        done.failed.reset(self.width);
        done.attempt = false;
        (done.whole, done.guest) = (false, false);
        done.current = 0;
        let func = done.bodies[0].func;
        if !self.short || func == plan.entry && self.spare[func].is_empty() {
            self.spare[func].push(done);
        } else {
            drop_arrays(&mut self.arrays, plan, &done);
        }
    }

    /// Completes the reports of the lanes that trapped; those that an attempt catches wait until all lanes of its call are back.
    fn bury(&mut self) {
        if self.stepper.dead.is_empty() {
            return;
        }
        let call_depth = self.activations.len().saturating_sub(1);
        let mut short = false;
        for (lane, mut trap) in self.stepper.take_dead() {
            trap.call_depth = call_depth;
            let attempt = match trap.kind.is_caught() {
                true => self.activations.iter_mut().rev().find(|a| a.attempt),
                false => None,
            };
            let Some(attempt) = attempt else {
                short |= trap.kind == TrapKind::MemoryLimit;
                self.gone.push(lane as u32);
                self.stepper.traps.push(trap);
                continue;
            };
            attempt.failed.insert(lane);
            for (tape, heights) in attempt.tapes.chunks_exact(self.width).enumerate() {
                self.stepper.tapes.cut(TapeId::new(tape), lane, heights[lane] as usize);
            }
            self.stepper.note_caught(&mut self.caught, trap);
        }
        if short {
            // What lanes held that are gone goes to those that go on, here and in other shards.
            self.stepper.tapes.reset(&self.gone);
            self.stepper.tapes.trim();
        }
    }

    /// The run was stopped: the lanes that are not done trap where they stand.
    fn interrupt(&mut self) {
        while let Some(top) = self.activations.pop() {
            for running in &top.bodies {
                let body = &self.plan.funcs[running.func].body;
                for (unit, lane) in running.waiting.lanes() {
                    let first = body.units[UnitId(unit as u32)].blocks[0];
                    self.interrupt_lane(lane, &body.blocks[first].loc);
                }
            }
            let func = &self.plan.funcs[top.bodies[0].func];
            for lane in top.returned.iter().chain(top.failed.iter()) {
                self.interrupt_lane(lane, &func.loc);
            }
            // The activation is gone, so the ones below it count the calls of its lanes.
            for dead in self.stepper.dead.drain(..) {
                self.stepper.traps[dead.trap].call_depth = self.activations.len();
            }
        }
    }

    fn interrupt_lane(&mut self, lane: usize, loc: &Loc) {
        let (kind, text) = (TrapKind::Interrupted, String::new());
        self.stepper.bury(lane, kind, loc, text);
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
                    let counts = self.counts[id][data.unit];
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
            supersteps: self.supersteps,
            prims: self.stepper.prims,
            profile,
        }
    }
}

/// An activation is about to go.
fn drop_arrays<R: Real>(arrays: &mut Arrays<'_, R>, plan: &CallPlan, activation: &Activation<R>) {
    activation.bodies.iter().for_each(|running| arrays.drop_frame(running.func, &running.frame));
    let types = &plan.funcs[activation.bodies[0].func].results;
    arrays.drop_results(activation.results.iter().zip(types));
}

/// Bytes of buffers of these types for all lanes of a shard.
fn bytes_of<'t, R>(types: impl Iterator<Item = &'t Type>, width: usize) -> usize {
    let bytes = types.map(|ty| crate::plan::bytes(ty.dtype, ty.elements(), size_of::<R>()).saturating_mul(width));
    bytes.fold(0, usize::saturating_add)
}

/// Zeros of this type for all lanes of a shard.
fn zeros<R: Real>(ty: &Type, width: usize) -> Result<Buffer<R>, StackError> {
    Ok(Buffer::try_zeros(ty.dtype, ty.elements().saturating_mul(width))?)
}

/// The slot of a parameter.
fn slot(func: &Func, param: crate::plan::VarId) -> usize {
    let slot = func.body.vars[param].slot;
    slot.expect("parameters are registers").0 as usize
}

/// Stores an operand for some lanes.
fn store<R: Real>(
    env: &Environment<'_, R>,
    frame: &Frame<R>,
    arg: &Arg,
    to: &mut Buffer<R>,
    width: usize,
    lanes: &LaneMask,
) {
    let (from, elements) = (env.buffer(frame, arg), arg.ty.elements());
    if arg.broadcast {
        to.blend_value(from, elements, width, lanes.words());
    } else {
        to.blend(from, elements, width, lanes.words());
    }
}
