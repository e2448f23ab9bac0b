//! Calls generated functions in the place of the steps that they stand for.

use std::ffi::c_void;
use std::ptr;

use crate::backend::cpu::codegen::abi::{CodeCall, CodeTrap, Stack};
use crate::backend::cpu::codegen::{NativeBody, NativePart, NativeSegment, Segment};
use crate::backend::cpu::frame::{Frame, opened};
use crate::backend::cpu::steps::Stepper;
use crate::exec::mask::lanes_in_groups;
use crate::exec::{LaneMask, LaneStack, Waiting};
use crate::plan::{Step, UnitId};
use crate::run::{Activity, Settings};
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
    stacks: Vec<Stack>,
    traps: Vec<CodeTrap>,
    /// Changes whenever lane buffers may have changed places.
    age: u64,
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
}

impl<R: Real> Stepper<'_, R> {
    /// Runs a block: its generated functions, if it has some and they serve, and the steps between them.
    pub(super) fn run_parts(&mut self, frame: &mut Frame<R>, parts: Option<&[NativePart]>, steps: &[Step]) {
        self.decided = false;
        let Some(parts) = parts.filter(|_| self.runs_native()) else {
            return self.run(frame, steps);
        };
        for part in parts {
            if self.active.count == 0 {
                return;
            }
            match part {
                NativePart::Steps(range) => self.run(frame, &steps[range.clone()]),
                NativePart::Segment(segment) => {
                    let range = segment.segment.steps.clone();
                    if self.call(frame, segment) {
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
        if calls.operands.len() <= at {
            calls.operands.resize(at + 1, Operands::default());
        }
        let operands = &mut calls.operands[at];
        if operands.age != calls.age + 1 {
            operands.age = calls.age + 1;
            operands.slots.clear();
            operands.slots.extend(segment.slots.iter().map(|s| frame.slots[s.0 as usize].as_mut_ptr()));
            operands.constants.clear();
            operands.constants.extend(segment.constants.iter().map(|c| self.env.constant(*c).as_ptr()));
        }
        if calls.traps.len() < width {
            calls.traps.resize(width, CodeTrap::default());
        }
        true
    }

    /// What a function is called with.
    fn arguments(&mut self, width: usize, at: usize) -> CodeCall {
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
            waiting: ptr::null_mut(),
            counts: ptr::null_mut(),
            occupied: ptr::null_mut(),
            done: ptr::null_mut(),
            finished: 0,
            returns: ptr::null_mut(),
            deepest: 0,
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
        // the slots, constants and stacks that it names, in groups of lanes that begin below `width`: `Frame::new` pads
        // every slot by `PADDING` elements, no group has more, and `open` did the same for the stacks, with a level for
        // each push. Streams are padded too. It traps a lane once at most. Words of a mask are bytes in the order of lanes
        // on little-endian machines, the only ones that code is generated for. Nothing else refers to this memory meanwhile.
        unsafe { (native.function)(&raw mut call) };
        self.decided = segment.decides;
        self.close(frame, segment);
        for i in 0..call.trapped as usize {
            let CodeTrap { lane, site } = self.calls.traps[i];
            let site = &segment.sites[site as usize];
            self.lanes.draws[lane as usize] += site.draws;
            self.trap(lane as usize, site.kind, &site.loc, site.text.clone());
        }
        true
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
            let CodeTrap { lane, site } = self.calls.traps[i];
            let site = &segment.sites[site as usize];
            self.lanes.draws[lane as usize] += site.draws;
            self.bury(lane as usize, site.kind, &site.loc, site.text.clone());
        }
        Some(finished)
    }
}

/// What a function that sends lanes on works on, beside the frame.
pub(super) struct Routing<'a> {
    pub(super) waiting: &'a mut Waiting,
    pub(super) returns: &'a mut LaneStack<u32>,
    pub(super) done: &'a mut LaneMask,
}
