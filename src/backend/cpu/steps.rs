//! Runs the steps of a block for the active set: the part of the machine that both engines share.

mod effects;
mod environment;
mod nan;
mod traps;

use smallvec::SmallVec;

use crate::backend::cpu::PADDING;
use crate::backend::cpu::active::ActiveSet;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::codegen::NativeTile;
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::kernels::{self, Active, Keep, KernelCall, Streams};
use crate::backend::cpu::profile::{self, Profiler};
use crate::backend::cpu::segments::Calls;
use crate::backend::cpu::tapes::Tapes;
use crate::backend::cpu::tops::Tops;
use crate::backend::cpu::tracer::Tracer;
use crate::base::{IdVec, Loc};
use crate::exec::mask::{bits_of, for_each_lane};
use crate::parts::{Tape, TapeId};
use crate::plan::cost::ByCode;
use crate::plan::{Arg, Compute, Slot, SlotId, StackId, Step, StepKind, Unit, Write};
use crate::prim::{Prim, TABLE};
use crate::run::{Activity, Execution, RunInputs, Trap, TrapKind};
use crate::vmath::Real;
use nan::{bears_nan, has_nan};

pub(super) use environment::Environment;
pub(super) use nan::bears_nans;

/// What a shard keeps of each of its lanes besides the values of variables.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Position in the inputs.
    pub(super) positions: Vec<usize>,
    /// Number of its random stream.
    pub(super) numbers: Vec<u64>,
    /// Draws made.
    pub(super) draws: Vec<u64>,
    /// Blocks run; kept only when they are limited.
    steps: Vec<u64>,
}

impl Lanes {
    /// A lane becomes a lane of another shard.
    pub(super) fn set_lane(&mut self, lane: usize, (from, other): (&Self, usize)) {
        self.positions[lane] = from.positions[other];
        self.numbers[lane] = from.numbers[other];
        self.draws[lane] = from.draws[other];
        self.steps[lane] = from.steps[other];
    }
}

/// Runs steps for the active set of a shard.
pub(super) struct Stepper<'a, R> {
    pub(super) env: &'a Environment<'a, R>,
    pub(super) active: ActiveSet,
    pub(super) lanes: Lanes,
    pub(super) tapes: Tapes<'a, R>,
    /// All traps of the shard. The engine fills in the call depth.
    pub(super) traps: Vec<Trap>,
    /// The lanes that trapped since the engine last looked.
    pub(super) dead: Vec<usize>,
    /// How often each primitive ran, by its place in the table; kept only with statistics.
    pub(super) prims: Vec<u64>,
    /// What a kernel reports.
    pub(super) kernel_traps: Vec<(u32, TrapKind)>,
    /// What is told of the indices out of range among them, in their order.
    pub(super) told: Vec<String>,
    /// What generated functions are called with.
    pub(super) calls: Calls,
    /// Whether a generated function told where the branch of the block goes.
    pub(super) decided: bool,
    /// Where the tops of stacks are that no lane buffer caches; none where they are cached.
    pub(super) tops: Option<Tops>,
    /// Where time goes, if that is asked.
    pub(super) profile: Option<Box<Profiler>>,
    /// Supersteps one by one, if that is asked.
    pub(super) trace: Option<Box<Tracer>>,
}

impl<'a, R: Real> Stepper<'a, R> {
    pub(super) fn new(env: &'a Environment<'a, R>, tapes: &'a IdVec<TapeId, Tape>, width: usize) -> Self {
        Self {
            env,
            active: ActiveSet::new(width),
            tapes: Tapes::new(tapes, width, &env.settings.memory),
            lanes: Lanes {
                positions: vec![0; width],
                numbers: vec![0; width + PADDING],
                draws: vec![0; width + PADDING],
                steps: vec![0; width],
            },
            traps: Vec::new(),
            dead: Vec::new(),
            prims: vec![0; TABLE.len()],
            kernel_traps: Vec::new(),
            told: Vec::new(),
            calls: Calls::default(),
            decided: false,
            tops: None,
            profile: None,
            trace: None,
        }
    }

    /// The time since the last mark went to an activity.
    #[inline]
    pub(super) fn mark(&mut self, activity: Activity, loc: &Loc) {
        if let Some(profile) = &mut self.profile {
            profile.mark(activity, loc);
        }
    }

    /// A lane of the shard starts over for the lane at this position of the inputs. Its tapes are reset by their owner.
    pub(super) fn admit(&mut self, lane: usize, position: usize, inputs: &RunInputs) {
        self.lanes.positions[lane] = position;
        self.lanes.numbers[lane] = inputs.lanes[position];
        self.lanes.draws[lane] = inputs.drawn_by(position);
        self.lanes.steps[lane] = 0;
    }

    /// Starts a unit for the lanes in `self.active`. `native`: whether it is all generated code, which skips lanes by itself,
    /// and what of its weight is.
    pub(super) fn start(
        &mut self,
        unit: &Unit,
        (native, by_code): (bool, ByCode),
        frame: &mut Frame<R>,
        slots: &IdVec<SlotId, Slot>,
        live: usize,
    ) {
        let settings = self.env.settings;
        let execution = match settings.execution {
            Execution::Auto if native && !settings.check_nan => Execution::Mask,
            execution => execution,
        };
        self.active.start(unit, frame, slots, live, (execution, &settings.costs, by_code));
        if unit.draws && self.active.gathered {
            self.active.gather_streams(&self.lanes.numbers, &self.lanes.draws);
        }
    }

    /// Ends it.
    pub(super) fn end(&mut self, unit: &Unit, frame: &mut Frame<R>, slots: &IdVec<SlotId, Slot>) {
        if unit.draws && self.active.gathered {
            self.active.scatter_streams(&mut self.lanes.draws);
        }
        self.active.end(unit, frame, slots);
    }

    /// Counts a block in every active lane, if blocks are limited; lanes past the limit trap.
    pub(super) fn count_block(&mut self, loc: &Loc) {
        let limit = self.env.settings.max_supersteps;
        if limit == 0 {
            return;
        }
        let (active, steps) = (&self.active, &mut self.lanes.steps);
        let traps = &mut self.kernel_traps;
        for_each_lane(active.mask.words(), |column| {
            let count = &mut steps[active.lane(column)];
            *count += 1;
            if *count > limit {
                traps.push((column as u32, TrapKind::StepLimit));
            }
        });
        self.take_traps(loc);
    }

    /// Runs steps until the end, or until no lane is active.
    pub(super) fn run(&mut self, frame: &mut Frame<R>, steps: &[Step]) {
        for step in steps {
            if self.active.count == 0 {
                return;
            }
            self.step(frame, step, &[]);
        }
    }

    /// Runs a step; if it runs tile by tile, with these functions.
    pub(super) fn step(&mut self, frame: &mut Frame<R>, step: &Step, native: &[NativeTile]) {
        self.load_tops(frame, &step.kind);
        match &step.kind {
            StepKind::Compute(c) => {
                if self.env.settings.stats {
                    self.prims[c.prim as usize] += 1;
                }
                self.compute(frame, c, &step.loc);
            }
            StepKind::Tiled(group) => self.tiled(frame, group, native),
            StepKind::Pop { stack, slot } => {
                let (memory, columns) = (&mut frame.stacks[stack.0 as usize], self.active.for_stacks());
                let popped = match &self.tops {
                    None => memory.pop(&mut frame.slots[slot.0 as usize], columns),
                    Some(_) => memory.lower(columns),
                };
                popped.expect("the verifier makes sure that what is popped was pushed");
            }
            StepKind::Effect(effect) => self.effect(frame, effect, &step.loc),
        }
        self.store_tops(frame, &step.kind);
        if self.profile.is_some() {
            self.mark(profile::activity(&step.kind), &step.loc);
        }
    }

    fn compute(&mut self, frame: &mut Frame<R>, c: &Compute, loc: &Loc) {
        if c.uniform {
            return self.compute_uniform(frame, c, loc);
        }
        if c.prim == Prim::Copy {
            return self.copy(frame, c, loc);
        }
        let slot = c.slot.0 as usize;
        if c.in_place {
            let mut target = frame.take(slot);
            self.invoke(frame, c, &c.args[1..], None, &mut target, loc);
            frame.slots[slot] = target;
            return;
        }
        let masked = self.active.blend && c.write != Write::Temporary;
        let spill = match c.write {
            Write::Push(stack) => Some(stack),
            _ => None,
        };
        if !masked && !c.reads_slot {
            if let Some(stack) = spill {
                self.spill(frame, stack, slot, loc);
            }
            let mut out = frame.take(slot);
            self.invoke(frame, c, &c.args, None, &mut out, loc);
            frame.slots[slot] = out;
            return;
        }
        // The result goes into a scratch buffer, which then takes the place of the variable's. Most kernels can fill in
        // what the other lanes keep.
        let scratch = c.scratch.expect("the plan gives it where it may be needed");
        let scratch = scratch.0 as usize;
        let keeps = masked && kernels::can_keep(c.prim);
        let mut out = frame.take(scratch);
        self.invoke(frame, c, &c.args, keeps.then(|| &frame.slots[slot]), &mut out, loc);
        self.mark(profile::activity_of(c), loc);
        if let Some(stack) = spill {
            self.spill(frame, stack, slot, loc);
        }
        if masked && !keeps {
            let (elements, columns) = (c.ty.elements(), self.active.columns());
            frame.slots[slot].blend(&out, elements, columns, self.active.mask.words());
            self.mark(Activity::Masks, loc);
        } else {
            std::mem::swap(&mut frame.slots[slot], &mut out);
        }
        frame.slots[scratch] = out;
    }

    /// Runs a kernel, and takes out the lanes that trap. `keep`: what lanes that are not active have in the result.
    fn invoke<'f>(
        &mut self,
        frame: &'f Frame<R>,
        c: &Compute,
        args: &'f [Arg],
        keep: Option<&Buffer<R>>,
        out: &mut Buffer<R>,
        loc: &Loc,
    ) {
        let env = self.env;
        let operand = |a: &'f Arg| kernels::KernelArg::new(env.buffer(frame, a), &a.ty, a.broadcast);
        // nearly all have one or two: no list is made for them
        match args {
            [a] => self.invoke_on(&[operand(a)], c, keep, out, loc),
            [a, b] => self.invoke_on(&[operand(a), operand(b)], c, keep, out, loc),
            [a, b, d] => self.invoke_on(&[operand(a), operand(b), operand(d)], c, keep, out, loc),
            _ => self.invoke_on(&args.iter().map(operand).collect::<Vec<_>>(), c, keep, out, loc),
        }
    }

    fn invoke_on(
        &mut self,
        operands: &[kernels::KernelArg<'_, R>],
        c: &Compute,
        keep: Option<&Buffer<R>>,
        out: &mut Buffer<R>,
        loc: &Loc,
    ) {
        let active = &mut self.active;
        if keep.is_some() {
            active.make_bytes();
        }
        let (columns, full) = (active.columns(), active.is_full());
        let checks = self.env.settings.check_nan && bears_nans(c);
        // What is changed in place is an operand too.
        let mut had_nan: SmallVec<[usize; 4]> = SmallVec::new();
        if checks && c.in_place {
            let with_nan = |column: &usize| has_nan(out.values(0), c.ty.elements(), columns, *column);
            had_nan.extend(active.mask.iter().filter(with_nan));
        }
        let call = KernelCall {
            prim: c.prim,
            args: operands,
            ty: &c.ty,
            width: columns,
            active: if full { Active::All } else { Active::Mask(active.mask.words()) },
            keep: keep.map(|values| Keep { values, mask: &active.bytes }),
            accumulate: false,
            traps: &mut self.kernel_traps,
        };
        if c.in_place {
            kernels::run_in_place(call, out);
        } else {
            let (lanes, draws) = if active.gathered {
                (&active.numbers, &mut active.draws)
            } else {
                (&self.lanes.numbers, &mut self.lanes.draws)
            };
            let streams = Streams { seed: self.env.settings.seed, lanes, draws };
            kernels::run(call, streams, out);
        }
        if checks {
            self.find_nans(operands, out, &c.ty, &had_nan);
        }
        if !self.kernel_traps.is_empty() {
            self.tell((c.prim, c.in_place, &c.ty), operands, columns, loc);
            self.take_traps(loc);
        }
    }

    /// A copy needs no kernel: it is stored under the mask as it is read.
    fn copy(&mut self, frame: &mut Frame<R>, c: &Compute, loc: &Loc) {
        let slot = c.slot.0 as usize;
        if let Write::Push(stack) = c.write {
            self.spill(frame, stack, slot, loc);
        }
        if c.reads_slot {
            return;
        }
        let mut out = frame.take(slot);
        let source = self.env.buffer(frame, &c.args[0]);
        let (elements, columns) = (c.ty.elements(), self.active.columns());
        let mask = self.active.mask.words();
        if c.args[0].broadcast {
            out.blend_value(source, elements, columns, mask);
        } else if self.active.blend && c.write != Write::Temporary {
            out.blend(source, elements, columns, mask);
        } else {
            out.copy_from(source, elements * columns);
        }
        frame.slots[slot] = out;
    }

    /// Saves the tops of the active lanes, which are about to be written over. Where there is no memory for the highest
    /// lanes, they trap; others may have room in what there is.
    pub(super) fn spill(&mut self, frame: &mut Frame<R>, stack: StackId, slot: usize, loc: &Loc) {
        if self.tops.is_some() {
            return self.push_in_memory(frame, stack, SlotId(slot as u32), loc);
        }
        let memory = &mut frame.stacks[stack.0 as usize];
        while memory.push(&frame.slots[slot], self.active.for_stacks()).is_err() && self.active.count > 0 {
            let highest = self.active.highest(|lane| memory.height(lane));
            self.trap_columns(&highest, TrapKind::MemoryLimit, loc);
        }
        self.mark(Activity::Stacks, loc);
    }

    /// Computes a variable that is equal in all active lanes. An operand that is stored per lane is taken from the first.
    fn compute_uniform(&mut self, frame: &mut Frame<R>, c: &Compute, loc: &Loc) {
        if c.prim == Prim::Copy && c.reads_slot {
            return;
        }
        let target = c.scratch.filter(|_| c.reads_slot).unwrap_or(c.slot);
        let mut out = frame.take(target.0 as usize);
        let args = if c.in_place { &c.args[1..] } else { &c.args[..] };
        let env = self.env;
        let operand = |a| kernels::KernelArg::new(env.buffer(frame, a), &a.ty, true);
        let trap = match args {
            // as in `invoke`
            [a] if a.broadcast => self.uniform_on(&[operand(a)], c, &mut out, loc),
            [a, b] if a.broadcast && b.broadcast => self.uniform_on(&[operand(a), operand(b)], c, &mut out, loc),
            _ => {
                let (first, columns) = (self.active.first().unwrap_or(0), self.active.columns());
                let per_lane = |a: &Arg| env.buffer(frame, a).extract(a.ty.elements(), columns, first);
                let owned: Vec<Option<Buffer<R>>> = args.iter().map(|a| (!a.broadcast).then(|| per_lane(a))).collect();
                let operands = args.iter().zip(&owned).map(|(a, owned)| match owned {
                    Some(buffer) => kernels::KernelArg::new(buffer, &a.ty, true),
                    None => operand(a),
                });
                self.uniform_on(&operands.collect::<Vec<_>>(), c, &mut out, loc)
            }
        };
        frame.slots[target.0 as usize] = out;
        if target != c.slot {
            frame.slots.swap(target.0 as usize, c.slot.0 as usize);
        }
        if let Some((kind, message)) = trap {
            self.trap_all_with(kind, loc, &message);
        }
    }

    /// Runs a kernel for one value; gives the trap of all lanes, and what is told of it.
    fn uniform_on(
        &mut self,
        operands: &[kernels::KernelArg<'_, R>],
        c: &Compute,
        out: &mut Buffer<R>,
        loc: &Loc,
    ) -> Option<(TrapKind, String)> {
        let check = self.env.settings.check_nan && bears_nans(c);
        let had_nan = check && c.in_place && has_nan(out.values(0), c.ty.elements(), 1, 0);
        let call = KernelCall {
            prim: c.prim,
            args: operands,
            ty: &c.ty,
            width: 1,
            active: Active::All,
            keep: None,
            accumulate: false,
            traps: &mut self.kernel_traps,
        };
        if c.in_place {
            kernels::run_in_place(call, out);
        } else {
            let streams = Streams { seed: self.env.settings.seed, lanes: &[0], draws: &mut [0] };
            kernels::run(call, streams, out);
        }
        if self.kernel_traps.is_empty() {
            let bears = check && !had_nan && bears_nan(operands, out, &c.ty, 1, 0);
            return bears.then(|| (TrapKind::Nan, String::new()));
        }
        self.tell((c.prim, c.in_place, &c.ty), operands, 1, loc);
        let trap = self.kernel_traps.pop().map(|(_, kind)| (kind, self.told.pop().unwrap_or_default()));
        self.kernel_traps.clear();
        trap
    }

    /// Where a condition holds: into `self.active.taken`, among the active columns.
    pub(super) fn evaluate(&mut self, frame: &Frame<R>, cond: &Arg) {
        if self.decided {
            return;
        }
        let holds = self.env.buffer(frame, cond).bools();
        let active = &mut self.active;
        if active.taken.width() != active.mask.width() {
            active.taken.reset(active.mask.width());
        }
        let words = active.taken.words_mut().iter_mut().zip(active.mask.words());
        if cond.broadcast {
            words.for_each(|(to, mask)| *to = if holds[0] { *mask } else { 0 });
            return;
        }
        for ((to, mask), holds) in words.zip(holds.chunks(64)) {
            *to = bits_of(holds) & mask;
        }
    }

    /// Whether a condition holds in the first active column: for one that is equal in all.
    pub(super) fn holds(&self, frame: &Frame<R>, cond: &Arg) -> bool {
        let first = self.active.first().unwrap_or(0);
        let at = if cond.broadcast { 0 } else { first };
        self.env.buffer(frame, cond).bools()[at]
    }
}
