//! Calls, tail calls and returns. Arrays that a call only reads, or that the caller does not want any more, are handed
//! over where they are.

use super::Shard;
use super::activation::{Activation, drop_arrays, slot, store};
use crate::backend::cpu::arrays::Arrays;
use crate::backend::cpu::attempts::spoil;
use crate::base::Loc;
use crate::exec::StackError;
use crate::plan::{Arg, BlockId, CallTerminator, FuncId, Passing, SlotId, Source};
use crate::run::TrapKind;
use crate::vmath::Real;

/// Arrays of so many elements are given to a call beside which other lanes have values in them.
const MANY: usize = 64;

impl<R: Real> Shard<'_, R> {
    fn activation(&mut self, func: FuncId) -> Result<Activation<R>, StackError> {
        let budget = &self.stepper.env.settings.memory;
        let made = || Activation::new(self.plan, func, (self.width, &self.arrays), budget);
        self.spare[func].pop().map_or_else(made, Ok)
    }

    /// The active lanes cannot call: too many calls are active, or there is no memory for another one.
    pub(super) fn refuse_call(&mut self, kind: TrapKind, loc: &Loc) {
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
    pub(super) fn call(
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
    pub(super) fn note_attempt(&mut self) {
        let top = self.activations.last_mut().expect("it was made");
        top.attempt = true;
        top.tapes.clear();
        top.tapes.extend(self.stepper.tape_heights(self.width));
    }

    /// The active lanes go on in another function of the same activation, or in the same one from its start. Nothing has
    /// changed when there is no memory for it.
    pub(super) fn tail_call(&mut self, func: FuncId, args: &[Arg], passing: &[Passing]) -> Result<(), StackError> {
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

    /// The active lanes return: their results wait until all lanes of the call have returned. Nothing has returned when
    /// there is no memory for them.
    pub(super) fn give_back(&mut self, args: &[Arg], passing: &[Passing]) -> Result<(), StackError> {
        let top = self.activations.last_mut().expect("a unit of it ran");
        let running = &mut top.bodies[top.current];
        let active = &self.stepper.active;
        let mask = &active.mask;
        // A copy is made before what it is of is given away.
        let all = top.whole && active.count == top.callers;
        let given = |(arg, passing): (&Arg, &Passing)| match arg.source {
            Source::Slot(from) if all && *passing == Passing::Given && Arrays::<R>::holds(&arg.ty) => Some(from),
            _ => None,
        };
        for (k, arg) in args.iter().enumerate().filter(|(k, arg)| given((*arg, &passing[*k])).is_none()) {
            self.arrays.ensure_result(&mut top.results[k], &arg.ty)?;
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
        Ok(())
    }

    /// All lanes of the topmost activation have returned: they go on where they called from, or are done.
    pub(super) fn finish(&mut self) {
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
}
