//! The work of a run: lanes are handed out to shards, shards run on worker threads, and their results are put together.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::backend::cpu::MACHINE;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::helpers;
use crate::base::Loc;
use crate::exec::mask::for_each_lane;
use crate::exec::{LaneMask, StackError};
use crate::plan::Work;
use crate::run::{
    AllCaught, BlockStats, Costs, Outcome, Profile, Settings, Stats, Timeline, Trap, TrapKind, VariableStats, cores,
    workers,
};
use crate::types::{Array, ArrayData, DType, Type};
use crate::vmath::Real;

/// What a thread costs to start, in nanoseconds, rounded up: a run that takes less is not worth a second one.
const THREAD_NANOSECONDS: f64 = 50_000.0;

/// How a batch is cut.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Layout {
    /// Slots of a shard.
    pub(super) width: usize,
    /// Shards that run at one time, each on a thread.
    pub(super) workers: usize,
    /// Threads, with those that have no lanes, where these are of use.
    pub(super) threads: usize,
    /// What sharing costs.
    pub(super) costs: Costs,
}

impl Layout {
    /// Cuts `lanes` lanes into shards of `planned` lanes, or of fewer where threads would be idle: a thread with a part of the
    /// lanes is never slower than one with all of them.
    pub(super) fn new(lanes: usize, planned: usize, work: Work, settings: &Settings) -> Self {
        let nanoseconds = work.total.map(|work| work as f64 * settings.costs.addition * lanes as f64);
        let short = settings.shard_lanes == 0 && nanoseconds.is_some_and(|n| n < THREAD_NANOSECONDS);
        let threads = if short { 1 } else { workers(settings) };
        let width = match settings.shard_lanes {
            0 => MACHINE.shard_width(lanes, planned, threads),
            n => n.min(lanes).max(1),
        };
        let workers = threads.min(lanes.div_ceil(width));
        let helped = workers.saturating_mul(helpers::of_use(work.heaviest, &settings.costs));
        // A helper is started for work that takes some times as long as starting it.
        let worth = nanoseconds.map_or(usize::MAX, |n| (n / (2.0 * THREAD_NANOSECONDS)) as usize);
        let helped = helped.min(workers.saturating_add(worth)).min(threads.min(cores()));
        Self { width, workers, threads: helped.max(workers), costs: settings.costs }
    }
}

/// The lanes that no shard has taken yet.
#[derive(Debug)]
pub(super) struct Queue {
    next: AtomicUsize,
    lanes: usize,
}

impl Queue {
    pub(super) fn new(lanes: usize) -> Self {
        Self { next: AtomicUsize::new(0), lanes }
    }
    /// How many lanes no shard has taken.
    pub(super) fn left(&self) -> usize {
        self.lanes.saturating_sub(self.next.load(Ordering::Relaxed))
    }
    /// Takes up to `n` lanes.
    pub(super) fn take(&self, n: usize) -> Range<usize> {
        // Never far past the end, so that it cannot wrap.
        let n = n.min(self.lanes);
        if self.left() == 0 {
            return self.lanes..self.lanes;
        }
        let start = self.next.fetch_add(n, Ordering::Relaxed).min(self.lanes);
        start..(start + n).min(self.lanes)
    }
}

/// Results of the lanes that one shard brought to their end.
#[derive(Debug)]
pub(super) struct Finished {
    positions: Vec<usize>,
    /// By output, one row for each of `positions`.
    rows: Vec<ArrayData>,
}

impl Finished {
    pub(super) fn new<'t>(types: impl Iterator<Item = &'t Type>) -> Self {
        let rows = types.map(|ty| match ty.dtype {
            DType::Bool => ArrayData::Bool(Vec::new()),
            DType::Int => ArrayData::Int(Vec::new()),
            DType::Real => ArrayData::Real(Vec::new()),
        });
        Self { positions: Vec::new(), rows: rows.collect() }
    }
    /// Lanes are done, those with these positions; their outputs follow, each by [`output`](Self::output).
    pub(super) fn lanes(&mut self, positions: impl Iterator<Item = usize>) {
        self.positions.extend(positions);
    }
    /// Output number `index` of these lanes, among as many as the buffer has.
    pub(super) fn output<R: Real>(&mut self, index: usize, buffer: &Buffer<R>, elements: usize, lanes: &LaneMask) {
        fn go<T, F: Copy>(to: &mut Vec<T>, from: &[F], elements: usize, lanes: &LaneMask, convert: impl Fn(F) -> T) {
            let width = lanes.width();
            if elements == 1 {
                for_each_lane(lanes.words(), |lane| to.push(convert(from[lane])));
            } else {
                let lane = |lane| to.extend((0..elements).map(|e| convert(from[e * width + lane])));
                for_each_lane(lanes.words(), lane);
            }
        }
        match (&mut self.rows[index], buffer) {
            (ArrayData::Bool(to), Buffer::Bool(from)) => go(to, from, elements, lanes, |x| x),
            (ArrayData::Int(to), Buffer::Int(from)) => go(to, from, elements, lanes, |x| x),
            (ArrayData::Real(to), Buffer::Real(from)) => go(to, from, elements, lanes, R::to_f64),
            _ => panic!("outputs have the type that the plan says"),
        }
    }
    fn store(&self, outputs: &mut [Array]) {
        fn copy<T: Copy>(to: &mut [T], from: &[T], positions: &[usize]) {
            let elements = from.len() / positions.len();
            for (row, position) in positions.iter().enumerate() {
                to[position * elements..(position + 1) * elements]
                    .copy_from_slice(&from[row * elements..(row + 1) * elements]);
            }
        }
        if self.positions.is_empty() {
            return;
        }
        for (output, rows) in outputs.iter_mut().zip(&self.rows) {
            match (&mut output.data, rows) {
                (ArrayData::Bool(to), ArrayData::Bool(from)) => copy(to, from, &self.positions),
                (ArrayData::Int(to), ArrayData::Int(from)) => copy(to, from, &self.positions),
                (ArrayData::Real(to), ArrayData::Real(from)) => copy(to, from, &self.positions),
                _ => panic!("outputs have the type that the plan says"),
            }
        }
    }
}

/// What one shard hands over at its end.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) finished: Finished,
    pub(super) traps: Vec<Trap>,
    pub(super) caught: AllCaught,
    pub(super) supersteps: u64,
    pub(super) blocks: Vec<BlockStats>,
    /// By place in the table of primitives.
    pub(super) prims: Vec<u64>,
    pub(super) variables: Vec<VariableStats>,
    pub(super) profile: Option<Profile>,
    pub(super) timeline: Option<Timeline>,
}

/// How often a unit ran, and for how many lanes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    executions: u64,
    useful: u64,
    issued: u64,
}

impl Counts {
    /// It ran once.
    pub(super) fn add(&mut self, useful: usize, issued: usize) {
        self.executions += 1;
        self.useful += useful as u64;
        self.issued += issued as u64;
    }
    pub(super) fn report(self, block: String, loc: &Loc, weight: u64) -> BlockStats {
        BlockStats {
            block,
            loc: loc.clone(),
            weight,
            executions: self.executions,
            lanes_useful: self.useful,
            lanes_issued: self.issued,
        }
    }
}

/// Runs a batch: `shard` runs one shard to its end, taking lanes from the queue, and gives the reports of all who ran them;
/// it fails before it takes any where there is no memory for its state. `entry` is where lanes start.
pub(super) fn run_shards(
    lanes: usize,
    layout: Layout,
    types: &[&Type],
    entry: &Loc,
    shard: impl Fn(&Queue) -> Result<Vec<Report>, StackError> + Sync,
) -> Outcome {
    let started = std::time::Instant::now();
    let queue = Queue::new(lanes);
    let reports = Mutex::new(Vec::new());
    let work = || {
        let made = shard(&queue);
        reports.lock().unwrap_or_else(|e| e.into_inner()).push(made);
    };
    if layout.threads <= 1 {
        work();
    } else {
        helpers::run(layout.workers, layout.threads, &layout.costs, work);
    }
    let reports = reports.into_inner().unwrap_or_else(|e| e.into_inner());
    let failed = reports.iter().any(Result::is_err);
    let mut outcome = put_together(lanes, types, reports.into_iter().flatten().flatten().collect());
    // Shards leave lanes in the queue only when the run was stopped, or when there was no memory for the next shard.
    let kind = if failed { TrapKind::MemoryLimit } else { TrapKind::Interrupted };
    let message = if failed { "no memory for the state of a shard" } else { "" };
    outcome.traps.extend(queue.take(lanes).map(|position| Trap {
        position,
        kind,
        loc: entry.clone(),
        call_depth: 0,
        message: message.to_owned(),
    }));
    outcome.traps.sort_by_key(|t| t.position);
    outcome.stats.seconds = started.elapsed().as_secs_f64();
    outcome
}

fn put_together(lanes: usize, types: &[&Type], reports: Vec<Report>) -> Outcome {
    let outputs = types.iter().map(|ty| {
        let mut batch = Type::clone(ty);
        batch.shape.insert(0, lanes);
        Array::zeros(&batch)
    });
    let mut outputs: Vec<Array> = outputs.collect();
    let (mut traps, mut caught, mut stats) = (Vec::new(), AllCaught::default(), Stats::default());
    let mut prims = vec![0; crate::prim::TABLE.len()];
    for report in reports {
        report.finished.store(&mut outputs);
        traps.extend(report.traps);
        caught.extend(report.caught);
        let Report { supersteps, blocks, variables, profile, timeline, .. } = report;
        stats.add(Stats { supersteps, blocks, variables, profile, timeline, ..Stats::default() });
        prims.iter_mut().zip(report.prims).for_each(|(to, from)| *to += from);
    }
    let rows = crate::prim::TABLE.iter().zip(prims);
    stats.prims = rows.filter(|(_, count)| *count > 0).map(|(row, count)| (row.name.to_string(), count)).collect();
    Outcome { outputs, traps, caught: caught.into_vec(), stats }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_lanes_unless_the_run_is_short() {
        let layout = |lanes, threads, shard_lanes, work| {
            let settings = Settings { threads, shard_lanes, ..Settings::default() };
            let layout = Layout::new(lanes, 512, Work { total: work, heaviest: 0 }, &settings);
            (layout.width, layout.workers)
        };
        assert_eq!(layout(1, 4, 0, None), (1, 1));
        assert_eq!(layout(0, 4, 0, None), (1, 0));
        assert_eq!(layout(10, 4, 0, None), (3, 4));
        assert_eq!(layout(10, 2, 0, None), (5, 2));
        assert_eq!(layout(64, 4, 0, None), (16, 4));
        // Whole vectors.
        assert_eq!(layout(36, 4, 0, None), (16, 3));
        assert_eq!(layout(1000, 4, 0, None), (256, 4));
        assert_eq!(layout(100_000, 4, 0, None), (512, 4));
        assert_eq!(layout(64, 4, 0, Some(1000)), (64, 1));
        assert_eq!(layout(64, 4, 0, Some(1_000_000)), (16, 4));
        assert_eq!(layout(64, 4, 7, Some(1)), (7, 4));
    }

    #[test]
    fn threads_without_lanes_are_there_for_heavy_units() {
        let threads = |lanes, threads, heaviest| {
            let settings = Settings::default().threads(threads);
            let layout = Layout::new(lanes, 512, Work { total: None, heaviest }, &settings);
            (layout.workers, layout.threads)
        };
        assert_eq!(threads(1, 4, 1000), (1, 1));
        assert_eq!(threads(1, 1, u64::MAX), (1, 1));
        assert_eq!(threads(1, 4, u64::MAX), (1, cores().min(4)));
        // Of use is one beside the one with the lane.
        assert_eq!(threads(1, 64, 30_000), (1, cores().min(2)));
        assert_eq!(threads(3, 3, u64::MAX), (3, 3));
        assert_eq!(threads(0, 4, u64::MAX), (0, 0));
    }

    #[test]
    fn shards_are_filled_alike_often() {
        assert_eq!(MACHINE.shard_width(0, 192, 2), 1);
        assert_eq!(MACHINE.shard_width(256, 192, 1), 256);
        assert_eq!(MACHINE.shard_width(300, 192, 1), 152);
        for lanes in 1..3000_usize {
            for (threads, planned) in [(1, 16), (1, 192), (2, 64), (3, 1024), (8, 64)] {
                let width = MACHINE.shard_width(lanes, planned, threads);
                assert!(width <= planned + planned / 2 + 8 && width <= lanes);
                let share = lanes.div_ceil(threads);
                let rounds = share.div_ceil(width);
                // A shard is short of a whole vector at most, in each round.
                assert!(rounds * width - share <= 8 * rounds, "{lanes} lanes, {threads} threads, {planned} planned");
            }
        }
    }

    #[test]
    fn lanes_that_no_shard_has_memory_for_trap() {
        let layout = Layout { width: 2, workers: 2, threads: 2, costs: Costs::default() };
        let ty = Type::int();
        let entry = Loc::new("f", 3);
        let outcome = run_shards(3, layout, &[&ty], &entry, |_| {
            Buffer::<f64>::try_zeros(DType::Real, usize::MAX / 16).map_err(StackError::from)?;
            unreachable!("no machine has so much memory")
        });
        assert_eq!(outcome.outputs, [Array::int([3], vec![0; 3])]);
        let traps: Vec<_> = outcome.traps.iter().map(|t| (t.position, t.kind, t.loc.line, &*t.message)).collect();
        let why = "no memory for the state of a shard";
        assert_eq!(traps, [0, 1, 2].map(|lane| (lane, TrapKind::MemoryLimit, 3, why)));
    }

    #[test]
    fn every_lane_is_taken_once() {
        let queue = Queue::new(10);
        assert_eq!(queue.take(4), 0..4);
        assert_eq!(queue.take(0), 4..4);
        assert_eq!(queue.take(usize::MAX), 4..10);
        assert!(queue.take(3).is_empty());
    }
}
