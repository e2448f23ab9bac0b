//! Units that a generated function runs whole: it takes the lanes that wait there, and sends them on too.

use super::Shard;
use crate::backend::cpu::codegen::{NativeBody, NativeSegment, NativeStraight, RegionExit};
use crate::backend::cpu::run_unit::{Exit, Left, NoRoom, RunUnit, Steps, UnitShard};
use crate::backend::cpu::segments::{Routing, serve};
use crate::backend::cpu::straight::{Lane, serves};
use crate::base::Id as _;
use crate::exec::mask::lanes_in_groups;
use crate::plan::{BlockId, Body, Terminator, Unit, UnitId};
use crate::run::{Activity, Execution, Settings};
use crate::vmath::Real;

/// How a unit runs.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    Steps(Steps<'a>),
    Routed(Routed<'a>),
    Straight(Straight<'a>),
}

/// By straight code, which goes on to other units by itself.
#[derive(Clone, Copy)]
pub(super) struct Straight<'a>(&'a NativeStraight);

/// By the generated function that is all of the unit and sends its lanes on too.
#[derive(Clone, Copy)]
pub(super) struct Routed<'a> {
    function: &'a NativeSegment,
    /// Lanes that it computes at once.
    group: usize,
}

impl<'a> Way<'a> {
    /// The quickest way that serves a unit in a shard of this width. Routed functions know of lanes, not of columns,
    /// and look for no NaN.
    pub(super) fn of(
        (body, unit): (&Body<Terminator>, &Unit),
        native: Option<&'a NativeBody>,
        settings: &Settings,
        width: usize,
    ) -> Self {
        if let Some(straight) = native.and_then(NativeBody::straight)
            && width == 1
            && straight.has(unit)
            && serves(settings)
        {
            return Way::Straight(Straight(straight));
        }
        let routes = settings.execution != Execution::Gather && serve(settings, width);
        match native.filter(|_| routes).and_then(|n| Some((n.routed(unit)?, n.group()))) {
            Some((function, group)) => Way::Routed(Routed { function, group }),
            None => Way::Steps(Steps::new(native, settings, width).of(body, unit)),
        }
    }
}

impl<'a, R: Real> RunUnit<Shard<'a, R>, UnitId> for Way<'a> {
    #[inline]
    fn run(self, shard: &mut Shard<'a, R>, id: UnitId) -> Result<usize, NoRoom> {
        match self {
            Way::Routed(way) => way.run(shard, id),
            Way::Straight(way) => way.run(shard, id),
            Way::Steps(way) => way.run(shard, id),
        }
    }
}

impl<'a, R: Real> RunUnit<Shard<'a, R>, UnitId> for Routed<'a> {
    fn run(self, shard: &mut Shard<'a, R>, id: UnitId) -> Result<usize, NoRoom> {
        let segment = &self.function.segment;
        let settings = shard.stepper.env.settings;
        let waits = shard.waiting.mask(id.0 as usize);
        let issued = if settings.counts_lanes() { lanes_in_groups(waits, self.group) } else { 0 };
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
        shard.mark(Activity::Native, id);
        if finished > 0 {
            shard.halt_others();
        }
        Ok(issued)
    }
}

impl<'a, R: Real> RunUnit<Shard<'a, R>, UnitId> for Straight<'a> {
    fn run(self, shard: &mut Shard<'a, R>, id: UnitId) -> Result<usize, NoRoom> {
        let plan = shard.plan;
        let first = plan.body.units[id].blocks[0];
        shard.stepper.active.take(&mut shard.waiting, id.0 as usize);
        let (frame, returns, handlers) = (&mut shard.frame, &mut shard.returns, &mut shard.handlers);
        let lane = Lane { frame, returns, handlers, visits: &mut shard.visits };
        let Ok(left) = shard.stepper.call_straight(lane, self.0, (first, &plan.body.blocks[first].loc)) else {
            shard.send(first);
            return Err(NoRoom);
        };
        if let Some(RegionExit { from, to }) = left {
            let exit = to.map_or(Exit::Terminator, |to| Exit::To(BlockId::new(to.index())));
            shard.leave(id, Left { from: BlockId::new(from.index()), exit, began: 1 });
        }
        Ok(1)
    }
}

impl<R: Real> Shard<'_, R> {
    /// Counts the block of a unit in the lanes that wait there; those past the limit trap.
    fn count_block(&mut self, unit: &Unit, id: UnitId) {
        self.stepper.active.take(&mut self.waiting, id.0 as usize);
        self.stepper.count_block(&self.plan.body.blocks[unit.blocks[0]].loc);
        self.send(unit.blocks[0]);
    }
}
