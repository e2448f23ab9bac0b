//! Runs the lanes of a batch on a device: calls the function again and again until all lanes are done, and takes the records
//! that lanes have written in between.
//!
//! Where a pile has no room for one more value the run starts over with more: a lane does the same again, and of its records
//! those that were handed on already are passed over.

use std::time::Instant;

use super::code::{Code, element_bytes};
use super::device::{Device, DeviceError, Memory, Run};
use super::records::Told;
use crate::base::Id as _;
use crate::plan::{BlockId, Constant, Plan, Unit};
use crate::run::{BlockStats, DeviceStats, Outcome, RunInputs, Schedule, Settings, Sink, Stats, Trap, TrapKind};
use crate::types::{Array, ArrayData, DType, Precision, Type};

/// Levels of every pile to begin with.
const LEVELS: u32 = 32;
/// Words of records after which lanes wait for the host where there are none but of traps.
const FEW_RECORDS: usize = 1 << 16;
/// As often as many, where they do not suffice.
const MORE_LEVELS: u32 = 4;
/// Where a lane waits that is nowhere.
const NONE: u32 = u32::MAX;
const NOBODY: u64 = u64::MAX;
/// In the place of θ: the first unit in the order of the program runs.
const EARLIEST: u32 = u32::MAX;

/// Levels of piles that runs on a device have found to be enough, for the next one.
#[derive(Clone, Default)]
pub(super) struct Room {
    levels: Vec<u32>,
    /// Piles for which there was no memory any more, one bit each.
    capped: u64,
}

/// What came of lanes that were stopped before they began.
pub(super) fn interrupted(plan: &Plan, lanes: usize) -> Outcome {
    let entry = &plan.body.blocks[plan.entry].loc;
    let traps = (0..lanes).map(|position| Trap::new(position, TrapKind::Interrupted, entry.clone())).collect();
    let outputs = plan.outputs.iter().map(|port| Array::zeros(&batch(&port.ty, lanes))).collect();
    Outcome { outputs, traps, ..Outcome::default() }
}

/// Runs a plan by its code, until `stops` says so.
pub(super) fn run(
    (plan, code): (&Plan, &Code),
    device: &dyn Device,
    inputs: &RunInputs,
    (settings, stops): (&Settings, &(dyn Fn() -> bool + Sync)),
    (sink, room): (&dyn Sink, &mut Room),
) -> Result<Outcome, DeviceError> {
    let lanes = inputs.lanes.len();
    let (mut told, mut did) = (Told::new(code, sink, lanes), DeviceStats::new(device.name(), 0));
    let Room { levels, capped } = room.clone();
    let levels = if levels.is_empty() { vec![LEVELS; code.piles.len()] } else { levels };
    let mut attempt = Attempt { plan, code, device, inputs, settings, stops, levels, capped };
    let mut outcome = loop {
        match attempt.run(&mut told, &mut did)? {
            Ended::Done(outcome) => break *outcome,
            Ended::NoRoom { piles, room } => {
                told.start_over();
                attempt.grow(piles, room);
            }
        }
    };
    *room = Room { levels: attempt.levels, capped: attempt.capped };
    outcome.traps.append(&mut told.traps);
    outcome.traps.sort_by_key(|trap| trap.position);
    // A lane whose record was lost may have come to its end on the device.
    for trap in &outcome.traps {
        outcome.outputs.iter_mut().for_each(|output| clear(output, trap.position, lanes));
    }
    outcome.caught = told.caught.into_vec();
    outcome.stats.device = Some(did);
    Ok(outcome)
}

/// Sets the row of a lane to zero.
fn clear(output: &mut Array, lane: usize, lanes: usize) {
    let each = output.len() / lanes.max(1);
    let row = lane * each..(lane + 1) * each;
    match &mut output.data {
        ArrayData::Bool(v) => v[row].fill(false),
        ArrayData::Int(v) => v[row].fill(0),
        ArrayData::Real(v) => v[row].fill(0.0),
    }
}

fn batch(ty: &Type, lanes: usize) -> Type {
    let mut ty = ty.clone();
    ty.shape.insert(0, lanes);
    ty
}

/// How an attempt ended.
enum Ended {
    Done(Box<Outcome>),
    /// There was no room on piles, one bit each; and the bytes that threads can have.
    NoRoom {
        piles: u64,
        room: usize,
    },
}

/// A run with room for so many levels of each pile.
struct Attempt<'a> {
    plan: &'a Plan,
    code: &'a Code,
    device: &'a dyn Device,
    inputs: &'a RunInputs,
    settings: &'a Settings,
    stops: &'a (dyn Fn() -> bool + Sync),
    levels: Vec<u32>,
    /// Piles for which there is no memory any more, one bit each.
    capped: u64,
}

/// Memory of an attempt, all of which is there until it ends.
pub(super) struct Held<'a> {
    device: &'a dyn Device,
    held: Vec<Box<dyn Memory>>,
    /// Bytes of these, and how many the run may have.
    bytes: usize,
    limit: usize,
}

impl Held<'_> {
    /// Zeros.
    fn zeros(&mut self, bytes: usize) -> Result<usize, DeviceError> {
        let (bytes, limit) = (bytes.max(8), self.limit);
        let needed = self.bytes.saturating_add(bytes);
        if needed > limit {
            return Err(DeviceError::Limit { needed, limit });
        }
        self.held.push(self.device.memory(bytes)?);
        self.bytes = needed;
        Ok(self.held.len() - 1)
    }
    /// Bytes that can be taken beside these.
    fn room(&self) -> Result<usize, DeviceError> {
        Ok(self.device.room()?.min(self.limit - self.bytes))
    }
    /// These bytes.
    fn of(&mut self, bytes: &[u8]) -> Result<usize, DeviceError> {
        let at = self.zeros(bytes.len())?;
        if !bytes.is_empty() {
            self.held[at].write(0, bytes)?;
        }
        Ok(at)
    }
    fn of_words(&mut self, words: impl Iterator<Item = u64>) -> Result<usize, DeviceError> {
        self.of(&words.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())
    }
    fn address(&self, at: usize) -> u64 {
        self.held[at].address()
    }
    pub(super) fn words(&self, at: usize, from: usize, count: usize) -> Result<Vec<u64>, DeviceError> {
        let mut words = vec![0; count];
        self.held[at].read_words(from, &mut words)?;
        Ok(words)
    }
    fn halves(&self, at: usize, count: usize) -> Result<Vec<u32>, DeviceError> {
        let mut bytes = vec![0; count * 4];
        self.held[at].read(0, &mut bytes)?;
        Ok(bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("4 bytes"))).collect())
    }
}

impl Attempt<'_> {
    /// Levels that a pile can have by the limits of the run.
    fn most_levels(&self, pile: usize) -> u32 {
        let limit = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        match pile {
            pile if pile + 1 == self.levels.len() => limit(self.settings.get_max_stack_depth()),
            pile if pile < self.code.tapes => limit(self.settings.get_max_tape_depth()),
            _ => u32::MAX,
        }
    }

    /// These piles get more room, or lanes that want it are to trap.
    fn grow(&mut self, piles: u64, room: usize) {
        for pile in 0..self.levels.len() {
            let bit = 1 << pile.min(63);
            if piles & bit == 0 {
                continue;
            }
            let before = self.levels[pile];
            self.levels[pile] = before.saturating_mul(MORE_LEVELS).min(self.most_levels(pile)).max(before);
            if self.bytes_of_thread().saturating_mul(self.code.warp) > room {
                self.levels[pile] = before;
                self.capped |= bit;
            }
        }
    }

    /// Bytes that a thread takes.
    fn bytes_of_thread(&self) -> usize {
        let piles: usize =
            self.code.piles.iter().zip(&self.levels).map(|(bytes, levels)| bytes * *levels as usize).sum();
        let notes =
            4 * self.code.segment.notes.max(1) * *self.levels.last().expect("there are return addresses") as usize;
        let records = 16 * self.code.most_words();
        self.code.arena.div_ceil(self.code.warp)
            + piles
            + notes
            + records
            + 8 * (self.code.segment.most_told + self.code.segment.kept + self.code.scratch)
            + 128
    }

    /// Runs; `did` is what the device did in all attempts.
    fn run(&self, told: &mut Told<'_>, did: &mut DeviceStats) -> Result<Ended, DeviceError> {
        let (code, lanes, warp) = (self.code, self.inputs.lanes.len(), self.code.warp);
        let precision = code.precision;
        let limit = self.settings.get_device_memory();
        let mut held = Held { device: self.device, held: Vec::new(), bytes: 0, limit };
        let outputs = |of: &Type| of.elements() * element_bytes(of.dtype, precision) * lanes;
        let constants = code.constants.iter().map(|constant| {
            let bytes = match &self.plan.globals.constants[*constant] {
                Constant::Shared(shared) => to_bytes(&self.inputs.shared[shared.index()], precision),
                Constant::Literal(scalar) => to_bytes(&Array::scalar(*scalar), precision),
            };
            held.of(&bytes)
        });
        let constants = constants.collect::<Result<Vec<_>, _>>()?;
        let from = self.inputs.values.iter().map(|values| held.of(&to_bytes(values, precision)));
        let from = from.collect::<Result<Vec<_>, _>>()?;
        let to = self.plan.outputs.iter().map(|port| held.zeros(outputs(&port.ty)));
        let to = to.collect::<Result<Vec<_>, _>>()?;
        let numbers = held.of_words(self.inputs.lanes.iter().copied())?;
        let drawn = match self.inputs.drawn.is_empty() {
            true => None,
            false => Some(held.of_words((0..lanes).map(|position| self.inputs.drawn_by(position)))?),
        };
        // What is left is for the threads.
        let room = held.room()? / 10 * 9;
        let says = !code.segment.emits.is_empty() || !code.prints.is_empty();
        let log_words = if says { self.device.most_records() } else { FEW_RECORDS }.min(room / 8 / 16).max(1);
        let most_threads = self.device.threads()?;
        let most_grid = self.device.grid(most_threads, code.meets);
        let met_bytes = code.met_bytes(most_grid.threads);
        let for_threads = room.saturating_sub(log_words * 16 + met_bytes * most_grid.blocks);
        let most = (for_threads / self.bytes_of_thread()).max(warp);
        let threads = lanes.min(most_threads).min(most / warp * warp).next_multiple_of(warp).max(warp);
        let grid = self.device.grid(threads, code.meets);
        let numbers_met = held.zeros(met_bytes * grid.blocks)?;
        let piles =
            code.piles.iter().zip(&self.levels).map(|(bytes, levels)| held.zeros(bytes * *levels as usize * threads));
        let piles = piles.collect::<Result<Vec<_>, _>>()?;
        let depth = *self.levels.last().expect("there are return addresses") as usize;
        let notes = held.zeros(4 * code.segment.notes.max(1) * depth * threads)?;
        let levels = held.of(&self.levels.iter().flat_map(|l| l.to_ne_bytes()).collect::<Vec<u8>>())?;
        let arena = held.zeros(code.arena * threads / warp)?;
        let done = (code.blocks.len() + 1) as u32;
        let pcs = held.of(&vec![done; threads].into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<u8>>())?;
        let positions = held.zeros(8 * threads)?;
        held.held[positions].fill(0xff)?;
        let draws = held.zeros(8 * threads)?;
        let heights = held.zeros(4 * threads * code.piles.len())?;
        let sites = held.zeros(4 * threads)?;
        let indices = held.zeros(8 * threads)?;
        let told_words = held.zeros(8 * threads * code.segment.most_told.max(1))?;
        let steps = held.zeros(8 * threads)?;
        let kept = held.zeros(8 * threads * code.segment.kept.max(1))?;
        let scratch = held.zeros(8 * threads * code.scratch)?;
        let log_bytes = 8 * (log_words + threads * code.most_words());
        let log = held.zeros(log_bytes)?;
        let other_log = if says { held.zeros(log_bytes)? } else { log };
        // The cursor, the queue, what overflowed, and whether lanes are to stop.
        let control = held.zeros(32)?;
        let counts = if self.settings.get_stats() { Some(held.zeros(16 * (code.blocks.len() + 2))?) } else { None };
        let mut list = |of: &[usize]| {
            let addresses: Vec<u64> = of.iter().map(|at| held.address(*at)).collect();
            held.of_words(addresses.into_iter())
        };
        let (constants, from, to_list, piles) = (list(&constants)?, list(&from)?, list(&to)?, list(&piles)?);
        let limit = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let run = Run {
            constants: held.address(constants),
            inputs: held.address(from),
            outputs: held.address(to_list),
            numbers: held.address(numbers),
            drawn: drawn.map_or(0, |drawn| held.address(drawn)),
            lanes: lanes as u64,
            queue: held.address(control) + 8,
            arena: held.address(arena),
            piles: held.address(piles),
            levels: held.address(levels),
            notes: held.address(notes),
            pcs: held.address(pcs),
            positions: held.address(positions),
            draws: held.address(draws),
            heights: held.address(heights),
            sites: held.address(sites),
            indices: held.address(indices),
            told: held.address(told_words),
            steps: held.address(steps),
            kept: held.address(kept),
            scratch: held.address(scratch),
            numbers_met: held.address(numbers_met),
            log: held.address(log),
            cursor: held.address(control),
            high_water: log_words as u64,
            counts: counts.map_or(0, |counts| held.address(counts)),
            stop: held.address(control) + 24,
            overflowed: held.address(control) + 16,
            capped: self.capped,
            seed: self.settings.get_seed(),
            most_steps: self.settings.get_max_supersteps(),
            threads: threads as u64,
            deepest: limit(self.settings.get_max_stack_depth()),
            tape_limit: limit(self.settings.get_max_tape_depth()),
            theta: theta(self.settings.get_schedule()),
            columns: grid.columns as u32,
        };
        let mut supersteps = 0;
        did.threads = threads;
        let (mut run, mut log, mut other) = (run, log, other_log);
        // Of a log that is full: it is taken while the device goes on with the other one.
        let mut full = None;
        // Of no lanes there is nothing to begin.
        let mut done = lanes == 0;
        while !done {
            run.log = held.address(log);
            let started = Instant::now();
            let (launched, took) = std::thread::scope(|scope| {
                let (held, told) = (&held, &mut *told);
                let taking = full.take().map(|full| scope.spawn(move || told.take_all(held, full)));
                // SAFETY: what the struct names was made above, for this code, and is held until the end.
                let launched = unsafe { self.device.launch(run, grid, self.stops) };
                did.busy += started.elapsed().as_secs_f64();
                let took = taking.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                (launched, took.unwrap_or(Ok(())))
            });
            launched.and(took)?;
            let [cursor, queue, overflowed] = held.words(control, 0, 3)?[..] else { unreachable!("three words") };
            did.launches += 1;
            did.records += 8 * cursor;
            held.held[control].write(0, &0_u64.to_ne_bytes())?;
            let waiting = held.halves(pcs, threads)?;
            done = waiting.iter().all(|pc| *pc == NONE);
            let stopped = (self.stops)();
            assert!(done || stopped || cursor > 0 || overflowed != 0, "lanes wait for nothing but room for records");
            // Where there is nothing but traps there is one log.
            if done || stopped || overflowed != 0 || !says {
                told.take_all(&held, (log, cursor as usize))?;
            } else {
                full = Some((log, cursor as usize));
                std::mem::swap(&mut log, &mut other);
            }
            if overflowed != 0 {
                return Ok(Ended::NoRoom { piles: overflowed, room: for_threads });
            }
            if stopped {
                self.interrupt(told, &waiting, &held.words(positions, 0, threads)?, queue);
                break;
            }
        }
        let mut stats = Stats::default();
        if let Some(counts) = counts {
            let counts = held.words(counts, 0, 2 * (code.blocks.len() + 2))?;
            // A warp has fewer lanes than threads where these are spread.
            stats.blocks = self.counted(&counts, grid.columns * warp / grid.threads.max(warp), &mut supersteps);
        }
        stats.supersteps = supersteps;
        let outputs = self.plan.outputs.iter().zip(&to).map(|(port, at)| {
            let mut bytes = vec![0; outputs(&port.ty)];
            held.held[*at].read(0, &mut bytes)?;
            Ok(from_bytes(&batch(&port.ty, lanes), &bytes, precision))
        });
        let outputs = outputs.collect::<Result<Vec<_>, DeviceError>>()?;
        Ok(Ended::Done(Box::new(Outcome { outputs, stats, ..Outcome::default() })))
    }

    /// The run was stopped: the lanes that are not done trap where they wait.
    fn interrupt(&self, told: &mut Told<'_>, waiting: &[u32], positions: &[u64], queue: u64) {
        let entry = &self.plan.body.blocks[self.plan.entry].loc;
        for (pc, position) in
            waiting.iter().zip(positions).filter(|(pc, position)| **pc != NONE && **position != NOBODY)
        {
            if told.is_dead(*position as usize) {
                continue;
            }
            let loc = self.code.blocks.get(*pc as usize).unwrap_or(entry);
            told.trap(Trap::new(*position as usize, TrapKind::Interrupted, loc.clone()));
        }
        for position in queue..self.inputs.lanes.len() as u64 {
            let position = position as usize;
            if !told.is_dead(position) {
                told.traps.push(Trap::new(position, TrapKind::Interrupted, entry.clone()));
            }
        }
    }

    /// What the unit costs that begins at a block.
    fn weight_at(&self, block: usize) -> u64 {
        let body = &self.plan.body;
        body.units[body.blocks[BlockId::new(block)].unit].cost.weight
    }

    /// What was counted of each unit, by warps with so many lanes each.
    fn counted(&self, counts: &[u64], lanes_of_warp: usize, supersteps: &mut u64) -> Vec<BlockStats> {
        // A block that was parted is told of as one, by what lanes do together in it.
        let whole = |unit: &&Unit| !self.code.origins.contains_key(&unit.blocks[0].index());
        let mut parts = 0;
        for part in self.code.origins.keys() {
            parts += counts[2 * part];
        }
        *supersteps += parts;
        let units = self.plan.body.units.values().filter(whole).map(|unit| {
            let first = unit.blocks[0];
            let meeting = self.code.meeting_of.get(&first.index());
            // Of a region whose blocks are units of their own, all.
            let count = |at: usize| unit.blocks.iter().map(|block| counts[2 * block.index() + at]).sum::<u64>();
            *supersteps += count(0);
            let [executions, useful] =
                [0, 1].map(|at| meeting.map_or_else(|| count(at), |block| counts[2 * block + at]));
            BlockStats {
                block: first.to_string(),
                loc: self.plan.body.blocks[first].loc.clone(),
                weight: meeting.map_or(unit.cost.weight, |block| self.weight_at(*block)),
                executions,
                lanes_useful: useful,
                lanes_issued: executions * lanes_of_warp as u64,
            }
        });
        units.collect()
    }
}

/// Of 256 live lanes, so many make a heavy unit ready.
fn theta(schedule: Schedule) -> u32 {
    match schedule {
        Schedule::CostAware { theta } => (theta * 256.0).ceil() as u32,
        Schedule::MostLanes => 0,
        Schedule::Earliest => EARLIEST,
    }
}

/// The elements as they stand on a device.
fn to_bytes(array: &Array, precision: Precision) -> Vec<u8> {
    match (&array.data, precision) {
        (ArrayData::Bool(v), _) => v.iter().map(|x| u8::from(*x)).collect(),
        (ArrayData::Int(v), _) => v.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        (ArrayData::Real(v), Precision::F32) => v.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect(),
        (ArrayData::Real(v), Precision::F64) => v.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    }
}

fn from_bytes(ty: &Type, bytes: &[u8], precision: Precision) -> Array {
    let shape = ty.shape.iter().copied();
    match (ty.dtype, precision) {
        (DType::Bool, _) => Array::bool(shape, bytes.iter().map(|x| *x != 0).collect()),
        (DType::Int, _) => Array::int(shape, bytes.as_chunks().0.iter().map(|x| i64::from_ne_bytes(*x)).collect()),
        (DType::Real, Precision::F32) => {
            Array::real(shape, bytes.as_chunks().0.iter().map(|x| f64::from(f32::from_ne_bytes(*x))).collect())
        }
        (DType::Real, Precision::F64) => {
            Array::real(shape, bytes.as_chunks().0.iter().map(|x| f64::from_ne_bytes(*x)).collect())
        }
    }
}
