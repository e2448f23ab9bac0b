//! How a unit runs, in both engines: what runs it, and what is counted, noted and taken out around it.
//!
//! An engine is a [`UnitShard`]: it lends a unit what it works on, and sends its lanes on when it is over. Something
//! that implements [`RunUnit`] runs it. [`Steps`] serves both engines: kernels step by step, and generated functions in
//! the place of some. What sends its lanes on by itself is in `pc/routed.rs`. [`superstep`] stands around all of them.

use crate::backend::cpu::codegen::{NativeBody, RegionExit};
use crate::backend::cpu::crew::Counts;
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::segments::serve;
use crate::backend::cpu::steps::Stepper;
use crate::backend::cpu::tracer::{Look, Tracer};
use crate::base::{Id as _, Loc};
use crate::exec::Waiting;
use crate::plan::cost::ByCode;
use crate::plan::{Arg, BlockId, Body, CallTerminator, Terminator, Unit, UnitId};
use crate::run::{Activity, Settings, TrapKind};
use crate::vmath::Real;

/// What runs a unit. It is chosen for each unit when the shard starts, and when generated functions come.
pub(super) trait RunUnit<S, Id> {
    /// Runs a unit for the lanes that wait there, and sends them on. Returns the lanes that it computed.
    ///
    /// # Errors
    /// [`NoRoom`], where there is no memory for what it would need; nothing was done.
    fn run(self, shard: &mut S, id: Id) -> Result<usize, NoRoom>;
}

/// There is no memory for what a unit would need.
pub(super) struct NoRoom;

/// A shard of an engine, as those see it who run its units.
pub(super) trait UnitShard<'a>: Sized {
    /// Its reals.
    type Real: Real;
    /// What tells a unit from the others of the program.
    type Id: Copy;
    /// How its blocks end.
    type Term: Ending + 'a;
    /// What runs its units.
    type Way: RunUnit<Self, Self::Id>;

    /// What runs a unit.
    fn way(&self, id: Self::Id) -> Self::Way;
    /// Lanes that wait at it.
    fn waiting(&self, id: Self::Id) -> usize;
    /// Its number among all units, for figures.
    fn number(&self, id: Self::Id) -> usize;
    /// Where it stands.
    fn loc(&self, id: Self::Id) -> &'a Loc;
    /// What runs steps.
    fn stepper(&mut self) -> &mut Stepper<'a, Self::Real>;
    /// What is counted.
    fn counted(&mut self) -> &mut Counted;

    /// Lends a unit what it works on.
    ///
    /// # Errors
    /// [`NoRoom`], where there is no memory for that; nothing was done.
    fn lend(&mut self, id: Self::Id) -> Result<Lent<'_, 'a, Self::Real, Self::Term>, NoRoom>;
    /// The lanes that are active have run a unit: sends them on.
    fn leave(&mut self, id: Self::Id, left: Left);
    /// Nothing was done, since there is no room. Returns the lanes that were computed in another way, if the unit ran.
    fn without_room(&mut self, id: Self::Id) -> Option<usize>;
    /// Completes the reports of the lanes that trapped.
    fn bury(&mut self);
    /// Its lanes before it runs a unit, for a tracer; nothing of an engine that is not traced.
    fn look(&self, _id: Self::Id, _tracer: &Tracer) -> Option<Look> {
        None
    }

    /// The time since the last mark went to an activity at the start of a unit.
    #[inline]
    fn mark(&mut self, activity: Activity, id: Self::Id) {
        if self.stepper().profile.is_some() {
            let loc = self.loc(id);
            self.stepper().mark(activity, loc);
        }
    }
}

/// Runs a unit for the lanes that wait there, in its way. What is counted, noted and taken out around it stands here.
#[inline]
pub(super) fn superstep<'a, S: UnitShard<'a>>(shard: &mut S, id: S::Id) {
    let number = shard.number(id);
    if let Some(profile) = &mut shard.stepper().profile {
        profile.enter(number);
    }
    shard.mark(Activity::Scheduling, id);
    let useful = shard.waiting(id);
    if shard.stepper().trace.is_some() {
        trace_begin(shard, id);
    }
    let ran = match shard.way(id).run(shard, id) {
        Ok(issued) => Some(issued),
        Err(NoRoom) => shard.without_room(id),
    };
    if let Some(issued) = ran {
        let stats = shard.stepper().env.settings.stats;
        let counted = shard.counted();
        counted.supersteps += 1;
        if stats {
            counted.units[number].add(useful, issued);
        }
    }
    if shard.stepper().trace.is_some() {
        trace_end(shard, ran);
    }
    if !shard.stepper().dead.is_empty() {
        shard.bury();
    }
    shard.mark(Activity::Scheduling, id);
}

/// A superstep begins that may be noted.
#[cold]
fn trace_begin<'a, S: UnitShard<'a>>(shard: &mut S, id: S::Id) {
    let Some(mut tracer) = shard.stepper().trace.take() else { return };
    let env = shard.stepper().env;
    if tracer.opens(&env.clock)
        && let Some(look) = shard.look(id, &tracer)
    {
        tracer.begin(shard.number(id), look, &env.clock);
    }
    shard.stepper().trace = Some(tracer);
}

/// It is over; it computed so many lanes, if it ran.
#[cold]
fn trace_end<'a, S: UnitShard<'a>>(shard: &mut S, computed: Option<usize>) {
    let stepper = shard.stepper();
    let (env, gathered) = (stepper.env, stepper.active.gathered);
    if let Some(tracer) = &mut stepper.trace {
        tracer.end(computed, gathered, &env.clock);
    }
}

/// What a shard counts of its units.
pub(super) struct Counted {
    /// How many ran.
    pub(super) supersteps: u64,
    /// By number; kept only with statistics.
    pub(super) units: Vec<Counts>,
}

impl Counted {
    /// Of so many units, none of which has run.
    pub(super) fn new(units: usize) -> Self {
        Self { supersteps: 0, units: vec![Counts::default(); units] }
    }
}

/// What a unit works on.
pub(super) struct Lent<'s, 'a, R, T> {
    pub(super) stepper: &'s mut Stepper<'a, R>,
    pub(super) frame: &'s mut Frame<R>,
    pub(super) waiting: &'s mut Waiting,
    pub(super) body: &'a Body<T>,
    pub(super) unit: UnitId,
    /// Lanes with values in the frame that matter.
    pub(super) live: usize,
}

/// How the lanes of a unit leave it.
pub(super) struct Left {
    /// The block that they leave from.
    pub(super) from: BlockId,
    /// Where they go.
    pub(super) exit: Exit,
    /// How many there were when it began; those that trapped are not active any more.
    pub(super) began: usize,
}

/// Where the lanes of a unit go.
pub(super) enum Exit {
    /// None is left.
    Nobody,
    /// All go to a block.
    To(BlockId),
    /// Where the terminator of the block says that they leave from. The condition of a branch is evaluated.
    Terminator,
}

/// How a block ends, as far as a unit can go on by itself.
pub(super) trait Ending {
    /// What the unit knows.
    fn onward(&self) -> Onward<'_>;
}

/// What a unit knows of the end of a block.
pub(super) enum Onward<'t> {
    Jump(BlockId),
    Branch(&'t Arg, BlockId, BlockId),
    /// It is the engine's business.
    Out,
}

impl Ending for Terminator {
    #[inline]
    fn onward(&self) -> Onward<'_> {
        match self {
            Terminator::Jump(to) => Onward::Jump(*to),
            Terminator::Branch(cond, a, b) => Onward::Branch(cond, *a, *b),
            Terminator::PushJump { .. } | Terminator::Return | Terminator::Halt => Onward::Out,
        }
    }
}

impl Ending for CallTerminator {
    #[inline]
    fn onward(&self) -> Onward<'_> {
        match self {
            CallTerminator::Jump(to) => Onward::Jump(*to),
            CallTerminator::Branch(cond, a, b) => Onward::Branch(cond, *a, *b),
            CallTerminator::Call { .. } | CallTerminator::TailCall { .. } | CallTerminator::Return(..) => Onward::Out,
        }
    }
}

/// Step by step: kernels, and generated functions in the place of some steps where there are any and they serve.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    native: Option<&'a NativeBody>,
    /// What of the unit the functions have.
    by_code: ByCode,
}

impl<'a> Steps<'a> {
    /// For the units of a body in a shard of this width, with the functions that were generated for it.
    pub(super) fn new(native: Option<&'a NativeBody>, settings: &Settings, width: usize) -> Self {
        Self { native: native.filter(|_| serve(settings, width)), by_code: ByCode::default() }
    }

    /// The same for this unit.
    pub(super) fn of<T>(self, body: &Body<T>, unit: &Unit) -> Self {
        Self { by_code: self.native.map_or(ByCode::default(), |native| native.has_of(body, unit)), ..self }
    }
}

impl<'a, S: UnitShard<'a>> RunUnit<S, S::Id> for Steps<'a> {
    #[inline]
    fn run(self, shard: &mut S, id: S::Id) -> Result<usize, NoRoom> {
        let mut lent = shard.lend(id)?;
        let unit = &lent.body.units[lent.unit];
        lent.stepper.calls.forget();
        lent.stepper.active.take(lent.waiting, lent.unit.0 as usize);
        let began = lent.stepper.active.count;
        let whole = self.native.filter(|n| n.is_whole(unit));
        lent.stepper.start(unit, (whole.is_some(), self.by_code), lent.frame, &lent.body.slots, lent.live);
        lent.mark_masks();
        let issued = match lent.stepper.env.settings.counts_lanes() {
            true => lent.stepper.lanes_issued(whole),
            false => 0,
        };
        let (exit, from) = lent.run_blocks(self.native);
        lent.stepper.end(unit, lent.frame, &lent.body.slots);
        lent.mark_masks();
        shard.leave(id, Left { from, exit, began });
        Ok(issued)
    }
}

impl<R: Real, T: Ending> Lent<'_, '_, R, T> {
    /// The time since the last mark went to masks.
    #[inline]
    fn mark_masks(&mut self) {
        if self.stepper.profile.is_some() {
            let first = self.body.units[self.unit].blocks[0];
            self.stepper.mark(Activity::Masks, &self.body.blocks[first].loc);
        }
    }

    /// Runs the blocks of the unit until the active lanes leave it. Returns how, and the block that they leave from.
    #[inline]
    fn run_blocks(&mut self, native: Option<&NativeBody>) -> (Exit, BlockId) {
        let body = self.body;
        let unit = &body.units[self.unit];
        let mut at = unit.blocks[0];
        let inside = |b: BlockId| unit.region && body.contains(self.unit, b);
        loop {
            let block = &body.blocks[at];
            if let Some(region) = native.and_then(|n| n.region(at))
                && let Ok(left) = self.stepper.call_region(self.frame, region, &block.loc)
            {
                self.stepper.mark(Activity::Native, &block.loc);
                let Some(RegionExit { from, to }) = left else { return (Exit::Nobody, at) };
                let from = BlockId::new(from.index());
                let Some(to) = to.map(|to| BlockId::new(to.index())) else { return (Exit::Terminator, from) };
                if !inside(to) {
                    return (Exit::To(to), from);
                }
                at = to;
                continue;
            }
            self.stepper.count_block(&block.loc);
            self.stepper.run_parts(self.frame, native.map(|n| n.parts(at)), &block.steps);
            if self.stepper.active.count == 0 {
                return (Exit::Nobody, at);
            }
            let target = match block.term.onward() {
                Onward::Jump(to) => to,
                Onward::Branch(cond, a, b) => {
                    self.stepper.load_top(self.frame, cond);
                    // The same for all lanes: a jump.
                    if cond.broadcast || inside(a) || inside(b) {
                        if self.stepper.holds(self.frame, cond) { a } else { b }
                    } else {
                        self.stepper.evaluate(self.frame, cond);
                        return (Exit::Terminator, at);
                    }
                }
                Onward::Out => return (Exit::Terminator, at),
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
}
