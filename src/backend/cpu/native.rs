//! Calls generated functions in the place of the steps that they stand for.

use std::ffi::c_void;
use std::ptr;

use crate::backend::cc::abi::{Call, Stack, Trap};
use crate::backend::cc::{NativeBody, NativePart, NativeSegment};
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::steps::Stepper;
use crate::plan::Step;
use crate::run::Activity;
use crate::vmath::Real;

/// What calls are made with, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<*mut c_void>,
    constants: Vec<*const c_void>,
    stacks: Vec<Stack>,
    traps: Vec<Trap>,
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
            Some(native) => self.active.in_groups(native.group()),
            None => self.active.columns(),
        }
    }

    /// Whether generated functions can stand for steps: they know of lanes, not of columns, and look for no NaN.
    fn runs_native(&self) -> bool {
        !self.active.gathered && !self.env.settings.check_nan
    }

    /// Calls a function for the active lanes. Returns false where there is no memory for what it would push; the steps
    /// then trap those lanes whose values have no place.
    fn call(&mut self, frame: &mut Frame<R>, native: &NativeSegment) -> bool {
        let segment = &native.segment;
        let width = self.active.columns();
        let calls = &mut self.calls;
        calls.stacks.clear();
        for (stack, pushes) in &segment.stacks {
            let memory = &mut frame.stacks[stack.0 as usize];
            let Ok(raw) = memory.open(*pushes) else { return false };
            calls.stacks.push(raw);
        }
        calls.slots.clear();
        calls.slots.extend(segment.slots.iter().map(|s| frame.slots[s.0 as usize].as_mut_ptr()));
        calls.constants.clear();
        calls.constants.extend(segment.constants.iter().map(|c| self.env.constant(*c).as_ptr()));
        if calls.traps.len() < width {
            calls.traps.resize(width, Trap::default());
        }
        let active = &mut self.active;
        if segment.decides {
            active.taken.reset(width);
        }
        let mut call = Call {
            slots: calls.slots.as_ptr(),
            constants: calls.constants.as_ptr(),
            stacks: calls.stacks.as_mut_ptr(),
            mask: active.mask.words().as_ptr().cast(),
            taken: if segment.decides { active.taken.words_mut().as_mut_ptr().cast() } else { ptr::null_mut() },
            width: width as i64,
            seed: self.env.settings.seed,
            numbers: self.lanes.numbers.as_ptr(),
            draws: self.lanes.draws.as_mut_ptr(),
            traps: calls.traps.as_mut_ptr(),
            trapped: 0,
        };
        // SAFETY: the function was generated from this plan for this width of `real`. It reads and writes the elements of
        // the slots, constants and stacks that it names, in groups of lanes that begin below `width`: `Frame::new` pads
        // every slot by `PADDING` elements, no group has more, and `open` did the same for the stacks, with a level for
        // each push. Streams are padded too. It traps a lane once at most. Words of a mask are bytes in the order of lanes
        // on little-endian machines, the only ones that code is generated for. Nothing else refers to this memory meanwhile.
        unsafe { (native.function)(&raw mut call) };
        self.decided = segment.decides;
        let trapped = call.trapped as usize;
        for ((stack, _), raw) in segment.stacks.iter().zip(&self.calls.stacks) {
            frame.stacks[stack.0 as usize].close(raw);
        }
        for i in 0..trapped {
            let Trap { lane, site } = self.calls.traps[i];
            let (loc, kind) = &segment.sites[site as usize];
            self.trap(lane as usize, *kind, loc, String::new());
        }
        if self.env.settings.stats {
            segment.prims.iter().for_each(|p| self.prims[*p as usize] += 1);
        }
        true
    }
}
