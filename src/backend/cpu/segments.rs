//! Calls generated functions in the place of the steps that they stand for.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::backend::cpu::codegen::abi::{CodeCall, CodeTrap, Stack};
use crate::backend::cpu::codegen::{NativeBody, NativePart, NativeRegion, NativeSegment, RegionExit, Segment, Site};
use crate::backend::cpu::frame::{Frame, opened};
use crate::backend::cpu::steps::Stepper;
use crate::backend::cpu::tapes::Tapes;
use crate::base::Loc;
use crate::exec::mask::lanes_in_groups;
use crate::exec::{LaneMask, LaneStack, Waiting};
use crate::parts::TapeId;
use crate::plan::{ConstantId, SlotId, Step, UnitId};
use crate::run::{Access, Activity, MemoryBudget, NoMemory, Reservation, Settings, TrapKind};
use crate::vmath::Real;

/// Most lanes of a shard that generated functions take: places in stacks are computed of 32-bit factors.
const MOST_WIDTH: usize = 1 << 24;

/// Whether generated functions can serve in a shard of this width: they look for no NaN.
pub(super) fn serve(settings: &Settings, width: usize) -> bool {
    !settings.check_nan && width <= MOST_WIDTH
}

/// What calls are made with, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The first of functions that are looked up anew in each call, the others by unit.
    operands: Vec<Operands>,
    pub(super) stacks: Vec<Stack>,
    pub(super) traps: Vec<CodeTrap>,
    /// Room for arrays of the functions of regions, and of straight code.
    scratch: Vec<Line>,
    reserved: Option<Reservation>,
    /// Changes whenever lane buffers may have changed places.
    age: u64,
}

/// A line of the cache, which has room for eight values, and is aligned as the widest group of lanes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line {
    _values: [u64; 8],
}

/// Where the operands of a function are.
#[derive(Clone, Debug, Default)]
struct Operands {
    slots: Vec<*mut c_void>,
    constants: Vec<*const c_void>,
    /// One more than the age when this was looked up.
    age: u64,
}

impl Calls {
    /// Lane buffers may change places.
    pub(super) fn forget(&mut self) {
        self.age += 1;
    }

    /// Makes room for arrays of so many values.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub(super) fn have_scratch(&mut self, values: usize, budget: &Arc<MemoryBudget>) -> Result<(), NoMemory> {
        let (lines, there) = (values.div_ceil(8), self.scratch.len());
        if there < lines {
            let reserved = self.reserved.get_or_insert_with(|| Reservation::of(budget));
            reserved.resize(lines * size_of::<Line>())?;
            self.scratch.try_reserve_exact(lines - there).map_err(|_| NoMemory)?;
            self.scratch.resize(lines, Line::default());
        }
        Ok(())
    }

    /// This room.
    pub(super) fn scratch_memory(&mut self) -> *mut c_void {
        self.scratch.as_mut_ptr().cast()
    }
}

impl<R: Real> Stepper<'_, R> {
    /// Runs a block: its generated functions, if it has some and they serve, and the steps between them.
    pub(super) fn run_parts(&mut self, frame: &mut Frame<R>, parts: Option<&[NativePart]>, steps: &[Step]) {
        self.decided = false;
        let Some(parts) = parts else {
            return self.run(frame, steps);
        };
        let runs_native = self.runs_native();
        for part in parts {
            if self.active.count == 0 {
                return;
            }
            match part {
                NativePart::Steps(range) => self.run(frame, &steps[range.clone()]),
                NativePart::Tiles(step, native) => self.step(frame, &steps[*step], native),
                NativePart::Segment(segment) => {
                    let range = segment.segment.steps.clone();
                    if runs_native && self.call(frame, segment) {
                        self.mark(Activity::Native, &steps[range.start].loc);
                    } else {
                        self.run(frame, &steps[range]);
                    }
                }
            }
        }
    }

    /// Lanes that a unit which starts now computes; `native`: its generated functions, if it is made of them alone.
    pub(super) fn lanes_issued(&self, native: Option<&NativeBody>) -> usize {
        match native.filter(|_| self.runs_native()) {
            Some(native) => lanes_in_groups(self.active.mask.words(), native.group()),
            None => self.active.columns(),
        }
    }

    /// Whether generated functions can stand for steps: they know of lanes, not of columns, and look for no NaN.
    fn runs_native(&self) -> bool {
        !self.active.gathered && serve(self.env.settings, self.active.columns())
    }

    /// Makes ready to call a function for a shard of this width. Returns false where there is no memory for what it would
    /// push; the steps then trap those lanes whose values have no place.
    fn open(&mut self, frame: &mut Frame<R>, segment: &Segment, width: usize, at: usize) -> bool {
        let calls = &mut self.calls;
        calls.stacks.clear();
        for (stack, pushes) in &segment.stacks {
            let memory = &mut frame.stacks[stack.0 as usize];
            let Ok(raw) = memory.open(*pushes) else { return false };
            calls.stacks.push(raw);
        }
        self.find(frame, (&segment.slots, &segment.constants), width, at);
        true
    }

    /// Looks up where operands are, and makes room for traps.
    pub(super) fn find(
        &mut self,
        frame: &mut Frame<R>,
        (slots, constants): (&[SlotId], &[ConstantId]),
        width: usize,
        at: usize,
    ) {
        let calls = &mut self.calls;
        if calls.operands.len() <= at {
            calls.operands.resize(at + 1, Operands::default());
        }
        let operands = &mut calls.operands[at];
        if operands.age != calls.age + 1 {
            operands.age = calls.age + 1;
            operands.slots.clear();
            operands.slots.extend(slots.iter().map(|s| frame.slots[s.0 as usize].as_mut_ptr()));
            operands.constants.clear();
            operands.constants.extend(constants.iter().map(|c| self.env.constant(*c).as_ptr()));
        }
        if calls.traps.len() < width {
            calls.traps.resize(width, CodeTrap::default());
        }
    }

    /// What a function is called with.
    pub(super) fn arguments(&mut self, width: usize, at: usize) -> CodeCall {
        let operands = &self.calls.operands[at];
        CodeCall {
            slots: operands.slots.as_ptr(),
            constants: operands.constants.as_ptr(),
            stacks: self.calls.stacks.as_mut_ptr(),
            mask: ptr::null(),
            taken: ptr::null_mut(),
            width: width as i64,
            seed: self.env.settings.seed,
            numbers: self.lanes.numbers.as_ptr(),
            draws: self.lanes.draws.as_mut_ptr(),
            traps: self.calls.traps.as_mut_ptr(),
            trapped: 0,
            tape_limit: u32::MAX,
            grow: None,
            tapes: ptr::null_mut(),
            ran: ptr::null_mut(),
            left: 0,
            stop: ptr::null(),
            ended: ptr::null(),
            stopped: 0,
            scratch: ptr::null_mut(),
            waiting: ptr::null_mut(),
            counts: ptr::null_mut(),
            occupied: ptr::null_mut(),
            done: ptr::null_mut(),
            finished: 0,
            returns: ptr::null_mut(),
            deepest: 0,
            entry: 0,
            visits: i64::MAX,
            note: None,
            map1: None,
            map2: None,
            twins: None,
            sum_and_map: None,
            random: None,
            kernel: None,
            tell: None,
        }
    }

    /// Calls a function for the active lanes. Returns false where there is no memory for what it would push.
    fn call(&mut self, frame: &mut Frame<R>, native: &NativeSegment) -> bool {
        let segment = &native.segment;
        let width = self.active.columns();
        self.calls.forget();
        if !self.open(frame, segment, width, 0) {
            return false;
        }
        let mut call = self.arguments(width, 0);
        let active = &mut self.active;
        if segment.decides {
            active.taken.reset(width);
            call.taken = active.taken.words_mut().as_mut_ptr().cast();
        }
        call.mask = active.mask.words().as_ptr().cast();
        // SAFETY: the function was generated from this plan for this width of `real`. It reads and writes the elements of
        // the slots, constants and stacks that it names, in groups of lanes that begin below `width`: `Buffer::try_slot` pads
        // every slot by `PADDING` elements, no group has more, and `open` did the same for the stacks, with a level for
        // each push. Streams are padded too. It traps a lane once at most. Words of a mask are bytes in the order of lanes
        // on little-endian machines, the only ones that code is generated for. Nothing else refers to this memory meanwhile.
        unsafe { (native.function)(&raw mut call) };
        self.decided = segment.decides;
        self.close(frame, segment);
        for i in 0..call.trapped as usize {
            let CodeTrap { lane, site, .. } = self.calls.traps[i];
            let site = &segment.sites[site as usize];
            self.lanes.draws[lane as usize] += site.draws;
            self.trap(lane as usize, site.kind, &site.loc, site.text.clone());
        }
        true
    }

    /// Calls the function of a region for the active lanes, until they leave it. Returns the exit, or none where no lane is left;
    /// `Err` where the function does not serve them, and nothing was done: its tapes must be equally high in the lanes of a
    /// group. `loc`: where the region stands.
    pub(super) fn call_region(
        &mut self,
        frame: &mut Frame<R>,
        native: &NativeRegion,
        loc: &Loc,
    ) -> Result<Option<RegionExit>, NotServed> {
        let (region, settings) = (&native.region, self.env.settings);
        let mask = self.active.mask.words();
        let serves = self.runs_native()
            && settings.max_supersteps == 0
            && region.tapes.iter().all(|tape| self.tapes.are_alike(*tape, mask, native.group));
        if !serves {
            return Err(NotServed);
        }
        let width = self.active.columns();
        self.calls.forget();
        self.calls.stacks.clear();
        for tape in &region.tapes {
            self.calls.stacks.push(self.tapes.open(*tape).map_err(|_| NotServed)?);
        }
        self.find(frame, (&region.slots, &region.constants), width, 0);
        let mut ran = vec![0; if settings.stats { region.prims.len() } else { 0 }];
        let never = 0;
        let byte = |flag: &Option<Arc<AtomicBool>>| {
            flag.as_ref().map_or(&raw const never, |flag| flag.as_ptr().cast_const().cast())
        };
        let (stop, ended) = (byte(&settings.stop), byte(&settings.ended));
        let scratch = region.scratch * native.group;
        self.calls.have_scratch(scratch, settings.get_memory()).map_err(|_| NotServed)?;
        self.active.taken.reset(width);
        let common = self.arguments(width, 0);
        let mut opened = OpenedTapes { tapes: ptr::from_mut(&mut self.tapes), ids: &region.tapes };
        let mut call = CodeCall {
            mask: self.active.mask.words().as_ptr().cast(),
            taken: self.active.taken.words_mut().as_mut_ptr().cast(),
            tape_limit: u32::try_from(settings.max_tape_depth).unwrap_or(u32::MAX),
            grow: Some(grow::<R>),
            tapes: ptr::from_mut(&mut opened).cast(),
            ran: if settings.stats { ran.as_mut_ptr() } else { ptr::null_mut() },
            stop,
            ended,
            scratch: self.calls.scratch_memory(),
            ..common
        };
        // SAFETY: as in `Stepper::call`. Besides, the function reads and writes the tapes that it names, at levels for which
        // `grow` has made room, the counts of the blocks of the region, and reads `stop` and `ended`, bytes that others may
        // set at any time, atomically.
        unsafe { (native.function)(&raw mut call) };
        for (tape, raw) in region.tapes.iter().zip(&self.calls.stacks) {
            self.tapes.close(*tape, raw);
        }
        for (prims, times) in region.prims.iter().zip(&ran) {
            prims.iter().for_each(|p| self.prims[*p as usize] += times);
        }
        for i in 0..call.trapped as usize {
            let CodeTrap { lane, site, index } = self.calls.traps[i];
            let site = &region.sites[site as usize];
            let text = site.extent.map_or_else(|| site.text.clone(), |extent| told(site, extent, index));
            self.trap(lane as usize, site.kind, &site.loc, text);
        }
        if call.stopped != 0 {
            self.trap_all(TrapKind::Interrupted, loc);
        }
        Ok((self.active.count > 0).then(|| region.exits[call.left as usize]))
    }

    /// What was opened is as the function left it.
    fn close(&mut self, frame: &mut Frame<R>, segment: &Segment) {
        for ((stack, _), raw) in segment.stacks.iter().zip(&self.calls.stacks) {
            frame.stacks[stack.0 as usize].close(raw);
        }
        if self.env.settings.stats {
            segment.prims.iter().for_each(|p| self.prims[*p as usize] += 1);
        }
    }

    /// Whether there is memory for what the function of a unit would push.
    pub(super) fn has_room(&mut self, frame: &mut Frame<R>, segment: &Segment) -> bool {
        segment.stacks.iter().all(|(stack, pushes)| frame.stacks[stack.0 as usize].open(*pushes).is_ok())
    }

    /// Calls the function of a whole unit for the lanes that wait there: those that trap are buried, those that are done go
    /// into `route.done`, which is empty before, the others wait where they go. Returns how many are done; `None` where there is
    /// no memory for what it would push, and nothing was done.
    pub(super) fn call_routed(
        &mut self,
        frame: &mut Frame<R>,
        (id, native): (UnitId, &NativeSegment),
        route: &mut Routing<'_>,
    ) -> Option<usize> {
        let segment = &native.segment;
        let width = route.done.width();
        let at = id.0 as usize + 1;
        if !self.open(frame, segment, width, at) {
            return None;
        }
        let touches = segment.calls || segment.ends;
        let mut returns = match touches {
            true => Some(opened(route.returns, usize::from(segment.calls)).ok()?),
            false => None,
        };
        let waiting = route.waiting.open();
        let mut call = CodeCall {
            waiting: waiting.masks.as_mut_ptr(),
            counts: waiting.counts.as_mut_ptr(),
            occupied: waiting.occupied.as_mut_ptr(),
            done: route.done.words_mut().as_mut_ptr(),
            returns: returns.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            deepest: u32::try_from(self.env.settings.max_stack_depth).unwrap_or(u32::MAX),
            ..self.arguments(width, at)
        };
        // SAFETY: as in `call`; lane buffers have been where they are since the operands were looked up, since whoever moves
        // them calls `forget`. Besides, the function goes through the words of the masks of the units that it names, which are
        // units of this plan, and of `done`, as many as `width` lanes have. The stacks of return addresses are given to functions
        // that call or return, with room for one more address where it calls; what is on them are blocks of this plan.
        unsafe { (native.function)(&raw mut call) };
        let finished = call.finished as usize;
        let trapped = call.trapped as usize;
        if let Some(returns) = &returns {
            route.returns.close(returns.pushes, returns.highest);
        }
        self.close(frame, segment);
        for i in 0..trapped {
            let CodeTrap { lane, site, .. } = self.calls.traps[i];
            let site = &segment.sites[site as usize];
            self.lanes.draws[lane as usize] += site.draws;
            self.bury(lane as usize, site.kind, &site.loc, site.text.clone());
        }
        Some(finished)
    }
}

/// A function does not serve the active lanes.
pub(super) struct NotServed;

/// What a lane is told whose index is out of range.
pub(in crate::backend) fn told(site: &Site, (extent, entries): (usize, usize), index: i64) -> String {
    let entries = (entries > 1).then_some(entries);
    Access { shape: &[extent], axes: 1, places: 1, entries, index: &|_, _| index }.message(&site.loc)
}

/// The tapes that the function of a region has.
struct OpenedTapes<'t, 'a, R> {
    tapes: *mut Tapes<'a, R>,
    ids: &'t [TapeId],
}

/// Makes room for one more level of a tape.
unsafe extern "C" fn grow<R: Real>(call: *mut CodeCall, tape: i64) -> i32 {
    // SAFETY: the function hands on what it was called with: `call_region` keeps the call, the tapes and the list of what was
    // opened alive, and nobody else uses them meanwhile. The number is one of those tapes.
    let (opened, stack) = unsafe {
        let opened = &*(*call).tapes.cast::<OpenedTapes<'_, '_, R>>();
        (opened, &mut *(*call).stacks.add(tape as usize))
    };
    // SAFETY: as above.
    let tapes = unsafe { &mut *opened.tapes };
    match tapes.open_more(opened.ids[tape as usize], stack.levels) {
        Ok(more) => {
            (stack.memory, stack.heights, stack.levels) = (more.memory, more.heights, more.levels);
            1
        }
        Err(_) => 0,
    }
}

/// What a function that sends lanes on works on, beside the frame.
pub(super) struct Routing<'a> {
    pub(super) waiting: &'a mut Waiting,
    pub(super) returns: &'a mut LaneStack<u32>,
    pub(super) done: &'a mut LaneMask,
}
