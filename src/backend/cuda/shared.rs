//! Several devices for one batch: each takes the next lanes when it is done with those that it had. What lanes give is put
//! together by their places, so that it does not matter which device had which.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::code::Code;
use super::device::{Device, DeviceError};
use super::run::{Room, interrupted, run};
use crate::plan::Plan;
use crate::run::{DeviceStats, NoMemory, Outcome, Record, RunInputs, Settings, Sink, StreamId, Trap};

/// What a device did: the first of some lanes, and what they gave.
type Part = (usize, Outcome);

/// Runs a plan by its code on devices. Where one fails the others are stopped, and its error is that of the run.
pub(super) fn run_on_all(
    program: (&Plan, &Code),
    devices: &[Arc<dyn Device>],
    inputs: &RunInputs,
    settings: &Settings,
    sink: &dyn Sink,
) -> Result<Outcome, DeviceError> {
    let queue = Queue { lanes: inputs.lanes.len(), devices: devices.len(), taken: Mutex::default() };
    let at_a_time = devices.iter().map(|device| device.threads()).collect::<Result<Vec<_>, _>>()?;
    // Each has a share for certain, whichever thread is the first.
    let first: Vec<_> = at_a_time.iter().map(|at_a_time| queue.next(*at_a_time)).collect();
    let failed = AtomicBool::new(false);
    let stops = || settings.is_stopped() || failed.load(Ordering::Relaxed);
    let work = |device: &dyn Device, at_a_time: usize, first: Option<Range<usize>>| {
        let (mut done, mut room, mut lanes) = (Vec::new(), Room::default(), first);
        while let Some(now) = lanes.filter(|_| !failed.load(Ordering::Relaxed)) {
            let first = now.start;
            let outcome = if stops() {
                interrupted(program.0, now.len())
            } else {
                let sink = FromLane { first, sink };
                run(program, device, &part_of(inputs, now), (settings, &stops), (&sink, &mut room))?
            };
            done.push((first, outcome));
            lanes = queue.next(at_a_time);
        }
        Ok::<Vec<Part>, DeviceError>(done)
    };
    let ended: Result<Vec<Vec<Part>>, DeviceError> = std::thread::scope(|scope| {
        let mut started = Vec::new();
        for ((device, at_a_time), first) in devices.iter().zip(at_a_time).zip(first) {
            let (work, failed) = (&work, &failed);
            started.push(scope.spawn(move || {
                let _others = Stops(failed);
                work(&**device, at_a_time, first).inspect_err(|_| failed.store(true, Ordering::Relaxed))
            }));
        }
        let joined =
            started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Vec<_>>().into_iter().collect()
    });
    Ok(put_together(ended?))
}

/// Stops the other devices where the thread of one panics.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The lanes that no device has had.
struct Queue {
    lanes: usize,
    devices: usize,
    taken: Mutex<usize>,
}

impl Queue {
    /// The next lanes for a device that runs so many at a time. Of few lanes all devices have as many. Of more a device
    /// takes a part of what is left, so that those that are slower have fewer, and as many as it runs at a time if there are:
    /// the more there are, the less it waits for the last of them.
    fn next(&self, at_a_time: usize) -> Option<Range<usize>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.lanes - *taken;
        let least = self.lanes.div_ceil(self.devices).min(at_a_time);
        let lanes = *taken..*taken + least.max(left.div_ceil(2 * self.devices)).min(left);
        *taken = lanes.end;
        (!lanes.is_empty()).then_some(lanes)
    }
}

/// The inputs of some of the lanes.
fn part_of(inputs: &RunInputs, lanes: Range<usize>) -> RunInputs {
    RunInputs {
        lanes: inputs.lanes[lanes.clone()].to_vec(),
        drawn: if inputs.drawn.is_empty() { Vec::new() } else { inputs.drawn[lanes.clone()].to_vec() },
        values: inputs.values.iter().map(|values| values.rows(lanes.clone())).collect(),
        shared: inputs.shared.clone(),
    }
}

/// The outcome of all lanes, of what each device did.
fn put_together(by_device: Vec<Vec<Part>>) -> Outcome {
    let mut devices: Vec<DeviceStats> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    for mut done in by_device {
        devices.extend(DeviceStats::of_runs(done.iter_mut().filter_map(|(_, outcome)| outcome.stats.device.take())));
        parts.append(&mut done);
    }
    parts.sort_by_key(|(first, _)| *first);
    let mut parts = parts.into_iter();
    let (_, mut all) = parts.next().expect("some device had the first lanes");
    for (first, part) in parts {
        all.outputs.iter_mut().zip(&part.outputs).for_each(|(all, part)| all.append_rows(part));
        all.traps.extend(part.traps.iter().map(|trap| moved(trap, first)));
        all.caught.extend(part.caught.into_iter().map(|mut caught| {
            caught.first = moved(&caught.first, first);
            caught
        }));
        all.stats.add(part.stats);
    }
    all.stats.device = DeviceStats::of_all(devices);
    all
}

/// A trap of a part, as one of the batch.
fn moved(trap: &Trap, first: usize) -> Trap {
    Trap { position: first + trap.position, ..trap.clone() }
}

/// Hands on what lanes of a part say, as lanes of the batch.
struct FromLane<'a> {
    first: usize,
    sink: &'a dyn Sink,
}

impl Sink for FromLane<'_> {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        self.sink.emit(self.first + position, stream, record)
    }
    fn print(&self, position: usize, line: String) {
        self.sink.print(self.first + position, line);
    }
    fn caught(&self, trap: &Trap) {
        self.sink.caught(&moved(trap, self.first));
    }
    fn trapped(&self, trap: &Trap) {
        self.sink.trapped(&moved(trap, self.first));
    }
}
