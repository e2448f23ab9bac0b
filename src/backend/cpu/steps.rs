//! Runs the steps of a block for the active set: the part of the machine that both engines share.

use smallvec::SmallVec;

use crate::backend::cpu::PADDING;
use crate::backend::cpu::active::ActiveSet;
use crate::backend::cpu::buffer::{Buffer, Values};
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::kernels::{self, Active, Keep, KernelCall, Streams};
use crate::backend::cpu::profile::{self, Profiler};
use crate::backend::cpu::segments::Calls;
use crate::backend::cpu::tapes::Tapes;
use crate::backend::cpu::tops::Tops;
use crate::base::{IdVec, Loc};
use crate::exec::mask::{bits_of, for_each_lane};
use crate::parts::{StreamId, Tape, TapeId, render};
use crate::plan::{
    Arg, Compute, Constant, ConstantId, Globals, Message, SideEffect, Slot, SlotId, Source, StackId, Step, StepKind,
    Unit, Write,
};
use crate::prim::{Prim, TABLE};
use crate::run::{Access, Activity, Execution, Record, RunInputs, Settings, Sink, Trap, TrapKind};
use crate::types::{Array, DType, Type};
use crate::vmath::Real;

/// What all shards of a run share.
pub(super) struct Environment<'a, R> {
    /// By constant, each of width 1.
    constants: Vec<Buffer<R>>,
    pub(super) settings: &'a Settings,
    pub(super) sink: &'a dyn Sink,
}

impl<'a, R: Real> Environment<'a, R> {
    pub(super) fn new(globals: &Globals, inputs: &RunInputs, settings: &'a Settings, sink: &'a dyn Sink) -> Self {
        let constants = globals.constants.values().map(|c| match c {
            Constant::Shared(s) => Buffer::from_array(&inputs.shared[s.0 as usize]),
            Constant::Literal(c) => Buffer::from_array(&Array::scalar(*c)),
        });
        Self { constants: constants.collect(), settings, sink }
    }
    /// Where the values of an operand are.
    pub(super) fn buffer<'b>(&'b self, frame: &'b Frame<R>, arg: &Arg) -> &'b Buffer<R> {
        match arg.source {
            Source::Slot(s) => &frame.slots[s.0 as usize],
            Source::Constant(c) => &self.constants[c.0 as usize],
        }
    }
    /// The value of a constant.
    pub(super) fn constant(&self, id: ConstantId) -> &Buffer<R> {
        &self.constants[id.0 as usize]
    }
    /// Whether the run was stopped from outside.
    pub(super) fn stopped(&self) -> bool {
        let stop = self.settings.stop.as_ref();
        stop.is_some_and(|s| s.load(std::sync::atomic::Ordering::Relaxed))
    }
}

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

/// A lane that trapped during the unit that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dead {
    pub(super) lane: usize,
    /// Its report.
    pub(super) trap: usize,
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
    pub(super) dead: Vec<Dead>,
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
    pub(super) fn admit(&mut self, lane: usize, position: usize, number: u64) {
        self.lanes.positions[lane] = position;
        self.lanes.numbers[lane] = number;
        self.lanes.draws[lane] = 0;
        self.lanes.steps[lane] = 0;
    }

    /// Starts a unit for the lanes in `self.active`. `native`: whether it is all generated code, which skips lanes by itself.
    pub(super) fn start(
        &mut self,
        unit: &Unit,
        native: bool,
        frame: &mut Frame<R>,
        slots: &IdVec<SlotId, Slot>,
        live: usize,
    ) {
        let settings = self.env.settings;
        let execution = match settings.execution {
            Execution::Auto if native && !settings.check_nan => Execution::Mask,
            execution => execution,
        };
        self.active.start(unit, frame, slots, live, (execution, &settings.costs));
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
            self.load_tops(frame, &step.kind);
            match &step.kind {
                StepKind::Compute(c) => {
                    if self.env.settings.stats {
                        self.prims[c.prim as usize] += 1;
                    }
                    self.compute(frame, c, &step.loc);
                }
                StepKind::Tiled(group) => self.tiled(frame, group),
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

    /// Says of the lanes that a kernel reported whose index is out of range what they asked for. `in_place`: what is changed is no
    /// operand but the result, of type `ty`.
    #[cold]
    #[inline(never)]
    pub(super) fn tell(
        &mut self,
        (prim, in_place, ty): (Prim, bool, &Type),
        operands: &[kernels::KernelArg<'_, R>],
        columns: usize,
        loc: &Loc,
    ) {
        let Some(first) = Access::first_index(prim) else { return };
        let offset = usize::from(in_place);
        let indices = &operands[first - offset..];
        let array = if in_place { ty } else { operands[0].ty };
        let entries = match prim {
            Prim::Slice => ty.shape.first().copied(),
            Prim::SetSlice => operands[1 - offset].ty.shape.first().copied(),
            _ => None,
        };
        let places = indices.iter().find(|i| !i.ty.is_scalar()).map_or(1, |i| i.ty.elements());
        for (column, _) in self.kernel_traps.iter().filter(|(_, kind)| *kind == TrapKind::IndexOutOfRange) {
            let index = |axis: usize, place: usize| {
                let index = &indices[axis];
                let place = if index.ty.is_scalar() { 0 } else { place };
                index.buffer.ints()[if index.broadcast { place } else { place * columns + *column as usize }]
            };
            let access = Access { shape: &array.shape, axes: indices.len(), places, entries, index: &index };
            self.told.push(access.message(loc));
        }
    }

    /// The active columns that did not trap and where a NaN is born trap.
    /// `had_nan`: the columns that had one in what is set in place.
    pub(super) fn find_nans(
        &mut self,
        operands: &[kernels::KernelArg<'_, R>],
        out: &Buffer<R>,
        ty: &Type,
        had_nan: &[usize],
    ) {
        let columns = self.active.columns();
        let traps = &mut self.kernel_traps;
        for_each_lane(self.active.mask.words(), |column| {
            let trapped = traps.iter().any(|(l, _)| *l as usize == column) || had_nan.contains(&column);
            if !trapped && bears_nan(operands, out, ty, columns, column) {
                traps.push((column as u32, TrapKind::Nan));
            }
        });
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
        let first = self.active.first().unwrap_or(0);
        let columns = self.active.columns();
        let target = c.scratch.filter(|_| c.reads_slot).unwrap_or(c.slot);
        if c.prim == Prim::Copy && c.reads_slot {
            return;
        }
        let mut out = frame.take(target.0 as usize);
        let args = if c.in_place { &c.args[1..] } else { &c.args[..] };
        let owned: SmallVec<[Option<Buffer<R>>; 6]> = args
            .iter()
            .map(|a| {
                let per_lane = || self.env.buffer(frame, a).extract(a.ty.elements(), columns, first);
                (!a.broadcast).then(per_lane)
            })
            .collect();
        let operands: SmallVec<[kernels::KernelArg<'_, R>; 6]> = args
            .iter()
            .zip(&owned)
            .map(|(a, owned)| {
                let buffer = owned.as_ref().unwrap_or_else(|| self.env.buffer(frame, a));
                kernels::KernelArg::new(buffer, &a.ty, true)
            })
            .collect();
        let check = self.env.settings.check_nan && bears_nans(c);
        let had_nan = check && c.in_place && has_nan(out.values(0), c.ty.elements(), 1, 0);
        let call = KernelCall {
            prim: c.prim,
            args: &operands,
            ty: &c.ty,
            width: 1,
            active: Active::All,
            keep: None,
            accumulate: false,
            traps: &mut self.kernel_traps,
        };
        if c.in_place {
            kernels::run_in_place(call, &mut out);
        } else {
            let streams = Streams { seed: self.env.settings.seed, lanes: &[0], draws: &mut [0] };
            kernels::run(call, streams, &mut out);
        }
        self.tell((c.prim, c.in_place, &c.ty), &operands, 1, loc);
        let mut trap = self.kernel_traps.pop().map(|(_, kind)| kind);
        self.kernel_traps.clear();
        let message = self.told.pop().unwrap_or_default();
        if trap.is_none() && check && !had_nan && bears_nan(&operands, &out, &c.ty, 1, 0) {
            trap = Some(TrapKind::Nan);
        }
        drop(operands);
        frame.slots[target.0 as usize] = out;
        if target != c.slot {
            frame.slots.swap(target.0 as usize, c.slot.0 as usize);
        }
        if let Some(kind) = trap {
            self.trap_all_with(kind, loc, &message);
        }
    }

    fn effect(&mut self, frame: &mut Frame<R>, effect: &SideEffect, loc: &Loc) {
        match effect {
            SideEffect::Assert { cond, message } => self.assert(frame, cond, message, loc),
            SideEffect::Print(message) => self.print(frame, message),
            SideEffect::Emit { stream, args } => self.emit(frame, *stream, args, loc),
            SideEffect::TapePush { tape, value } => self.tape_push(frame, *tape, value, loc),
            SideEffect::TapePop { dst, tape } => self.tape_pop(frame, *dst, *tape, loc),
        }
    }

    fn assert(&mut self, frame: &Frame<R>, cond: &Arg, message: &Message, loc: &Loc) {
        let holds = self.env.buffer(frame, cond).bools();
        if cond.broadcast && holds[0] {
            return;
        }
        let failed = |column: &usize| cond.broadcast || !holds[*column];
        let failed: SmallVec<[usize; 8]> = self.active.mask.iter().filter(failed).collect();
        for column in failed {
            let text = self.text(frame, message, column);
            self.trap(column, TrapKind::AssertFailed, loc, text);
        }
    }

    /// The active lanes hand a record over; those whose records nobody can keep trap.
    fn emit(&mut self, frame: &Frame<R>, stream: StreamId, args: &[Arg], loc: &Loc) {
        let fields = args.iter().map(|arg| Field { buffer: self.env.buffer(frame, arg), arg }).collect();
        let mut record = LaneRecord { fields, width: self.active.columns(), column: 0 };
        let mut lost = Vec::new();
        for column in self.active.mask.iter() {
            record.column = column;
            let position = self.lanes.positions[self.active.lane(column)];
            if self.env.sink.emit(position, stream, &record).is_err() {
                lost.push(column);
            }
        }
        self.trap_columns(&lost, TrapKind::MemoryLimit, loc);
    }

    fn print(&self, frame: &Frame<R>, message: &Message) {
        for column in self.active.mask.iter() {
            let text = self.text(frame, message, column);
            let position = self.lanes.positions[self.active.lane(column)];
            self.env.sink.print(position, text);
        }
    }

    fn text(&self, frame: &Frame<R>, message: &Message, column: usize) -> String {
        let values = message.args.iter().map(|a| self.value(frame, a, column));
        render(&message.texts, values, self.env.settings.precision)
    }

    /// The value of an operand in a column.
    pub(super) fn value(&self, frame: &Frame<R>, arg: &Arg, column: usize) -> Array {
        let field = Field { buffer: self.env.buffer(frame, arg), arg };
        field.value(self.active.columns(), column)
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

    /// Takes out the lanes that a kernel reported.
    fn take_traps(&mut self, loc: &Loc) {
        let mut traps = std::mem::take(&mut self.kernel_traps);
        let mut told = std::mem::take(&mut self.told).into_iter();
        for (column, kind) in traps.drain(..) {
            let message = if kind == TrapKind::IndexOutOfRange { told.next() } else { None };
            self.trap(column as usize, kind, loc, message.unwrap_or_default());
        }
        self.kernel_traps = traps;
    }

    /// These active columns trap.
    pub(super) fn trap_columns(&mut self, columns: &[usize], kind: TrapKind, loc: &Loc) {
        for column in columns {
            self.trap(*column, kind, loc, String::new());
        }
    }

    /// All active lanes trap.
    pub(super) fn trap_all(&mut self, kind: TrapKind, loc: &Loc) {
        self.trap_all_with(kind, loc, "");
    }
    fn trap_all_with(&mut self, kind: TrapKind, loc: &Loc, message: &str) {
        let columns: Vec<usize> = self.active.mask.iter().collect();
        for column in columns {
            self.trap(column, kind, loc, message.to_owned());
        }
    }

    /// A lane traps: it is not active any more.
    pub(super) fn trap(&mut self, column: usize, kind: TrapKind, loc: &Loc, message: String) {
        let lane = self.active.lane(column);
        self.active.remove(column);
        self.bury(lane, kind, loc, message);
    }

    /// Reports a lane that is not in the active set.
    pub(super) fn bury(&mut self, lane: usize, kind: TrapKind, loc: &Loc, message: String) {
        self.dead.push(Dead { lane, trap: self.traps.len() });
        self.traps.push(Trap { position: self.lanes.positions[lane], kind, loc: loc.clone(), call_depth: 0, message });
    }
}

/// Whether a step could make a NaN of numbers.
pub(super) fn bears_nans(c: &Compute) -> bool {
    c.ty.dtype == DType::Real && c.prim.bears_nans()
}

/// Whether a real element is NaN in a column.
fn has_nan<R: Real>(values: Values<'_, R>, elements: usize, width: usize, column: usize) -> bool {
    let values = values.reals();
    (0..elements).any(|e| values[e * width + column].to_f64().is_nan())
}

/// Whether the result has a NaN in a column though no real operand has one there.
fn bears_nan<R: Real>(
    operands: &[kernels::KernelArg<'_, R>],
    out: &Buffer<R>,
    ty: &Type,
    columns: usize,
    column: usize,
) -> bool {
    has_nan(out.values(0), ty.elements(), columns, column)
        && !operands.iter().any(|a| {
            let (width, column) = if a.broadcast { (1, 0) } else { (columns, column) };
            a.ty.dtype == DType::Real && has_nan(a.buffer, a.ty.elements(), width, column)
        })
}

/// An operand of a record, and where it stands.
struct Field<'a, R> {
    buffer: &'a Buffer<R>,
    arg: &'a Arg,
}

impl<R: Real> Field<'_, R> {
    /// The width of the buffer and the column in it, in a shard of this many columns.
    fn place(&self, columns: usize, column: usize) -> (usize, usize) {
        if self.arg.broadcast { (1, 0) } else { (columns, column) }
    }
    fn value(&self, columns: usize, column: usize) -> Array {
        let (width, column) = self.place(columns, column);
        self.buffer.lane(&self.arg.ty.shape, width, column)
    }
}

/// The record of the lane in a column.
struct LaneRecord<'a, R> {
    fields: SmallVec<[Field<'a, R>; 8]>,
    width: usize,
    column: usize,
}

impl<R: Real> Record for LaneRecord<'_, R> {
    fn arrays(&self) -> Vec<Array> {
        self.fields.iter().map(|f| f.value(self.width, self.column)).collect()
    }
    fn append_words(&self, words: &mut Vec<u64>) {
        for field in &self.fields {
            let (width, column) = field.place(self.width, self.column);
            field.buffer.append_words(field.arg.ty.elements(), width, column, words);
        }
    }
}
