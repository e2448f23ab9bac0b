//! What lanes have said: the log of records of a run, which the host takes while the device goes on.

use super::code::{Code, words};
use super::device::DeviceError;
use super::run::Held;
use crate::backend::cpu::told;
use crate::backend::generator::RECORD_HEAD;
use crate::parts::render;
use crate::run::{AllCaught, Sink, Trap, TrapKind};
use crate::types::{Array, DType, Type};

/// Words of records that are copied to the host at a time.
const COPIED: usize = 4 << 20;
/// Words from which on several threads take them, each those of some lanes.
const FEWEST_SHARED: usize = 1 << 16;
/// The kinds of records.
const EMIT: u64 = 1;
const PRINT: u64 = 2;
const TRAPPED: u64 = 3;
const CAUGHT: u64 = 4;

/// What lanes have said.
pub(super) struct Told<'a> {
    code: &'a Code,
    sink: &'a dyn Sink,
    lanes: Lanes,
    pub(super) traps: Vec<Trap>,
    pub(super) caught: AllCaught,
}

/// What is known of each lane, by position.
#[derive(Default)]
struct Lanes {
    /// Records that have come since the run started, and those that were handed on ever.
    come: Vec<u64>,
    handed_on: Vec<u64>,
    /// The lanes that have trapped.
    dead: Vec<bool>,
}

impl<'a> Told<'a> {
    pub(super) fn new(code: &'a Code, sink: &'a dyn Sink, lanes: usize) -> Self {
        let lanes = Lanes { come: vec![0; lanes], handed_on: vec![0; lanes], dead: vec![false; lanes] };
        Self { code, sink, lanes, traps: Vec::new(), caught: AllCaught::default() }
    }

    /// The run starts over: what was handed on will come again.
    pub(super) fn start_over(&mut self) {
        self.lanes.come.fill(0);
    }

    /// Whether a lane has trapped.
    pub(super) fn is_dead(&self, position: usize) -> bool {
        self.lanes.dead[position]
    }

    pub(super) fn trap(&mut self, trap: Trap) {
        self.lanes.dead[trap.position] = true;
        self.sink.trapped(&trap);
        self.traps.push(trap);
    }

    /// Takes so many words of records.
    pub(super) fn take_all(&mut self, held: &Held<'_>, (log, words): (usize, usize)) -> Result<(), DeviceError> {
        let mut at = 0;
        while at < words {
            let part = held.words(log, at, COPIED.min(words - at))?;
            let taken = self.take(&part);
            // A record that is larger than a part is copied as a whole.
            at += if taken > 0 { taken } else { self.take(&held.words(log, at, words - at)?) };
        }
        Ok(())
    }

    /// Takes the records that are there as a whole; how many words that were.
    fn take(&mut self, log: &[u64]) -> usize {
        if !self.code.prints.is_empty() {
            // Lines of different lanes come in the order of these, as far as they have come.
            let mut by_lane: Vec<LogEntry<'_>> = records(log).collect();
            by_lane.sort_by_key(|record| record.position);
            let mut taker = self.takers(1).pop().expect("there is one");
            by_lane.iter().for_each(|record| taker.took(record));
            let (traps, caught) = taker.ends();
            self.end(traps, caught);
        } else {
            let threads =
                if log.len() < FEWEST_SHARED { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
            let takers = self.takers(threads);
            let said = std::thread::scope(|scope| {
                let started: Vec<_> = takers.into_iter().map(|taker| scope.spawn(move || taker.take(log))).collect();
                let ended = started
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                ended.collect::<Vec<_>>()
            });
            said.into_iter().for_each(|(traps, caught)| self.end(traps, caught));
        }
        records(log).map(|record| RECORD_HEAD + record.words.len()).sum()
    }

    fn end(&mut self, mut traps: Vec<Trap>, caught: Vec<Trap>) {
        self.traps.append(&mut traps);
        caught.into_iter().for_each(|trap| self.caught.note(trap));
    }

    /// So many takers, each for some lanes.
    fn takers(&mut self, count: usize) -> Vec<Taker<'_>> {
        let (code, sink) = (self.code, self.sink);
        let Lanes { come, handed_on, dead } = &mut self.lanes;
        let each = come.len().div_ceil(count).max(1);
        let lanes = come.chunks_mut(each).zip(handed_on.chunks_mut(each)).zip(dead.chunks_mut(each));
        let takers = lanes.enumerate().map(|(number, ((come, handed_on), dead))| Taker {
            code,
            sink,
            first: number * each,
            come,
            handed_on,
            dead,
            traps: Vec::new(),
            caught: Vec::new(),
        });
        takers.collect()
    }
}

/// Takes the records of lanes from one on.
struct Taker<'a> {
    code: &'a Code,
    sink: &'a dyn Sink,
    first: usize,
    come: &'a mut [u64],
    handed_on: &'a mut [u64],
    dead: &'a mut [bool],
    traps: Vec<Trap>,
    caught: Vec<Trap>,
}

impl Taker<'_> {
    /// Takes its records of a log; gives the lanes' traps, and those that were caught.
    fn take(mut self, log: &[u64]) -> (Vec<Trap>, Vec<Trap>) {
        let own = self.first..self.first + self.come.len();
        records(log).filter(|record| own.contains(&record.position)).for_each(|record| self.took(&record));
        self.ends()
    }

    fn ends(self) -> (Vec<Trap>, Vec<Trap>) {
        (self.traps, self.caught)
    }

    fn trap(&mut self, trap: Trap) {
        self.dead[trap.position - self.first] = true;
        self.sink.trapped(&trap);
        self.traps.push(trap);
    }

    fn took(&mut self, record: &LogEntry<'_>) {
        let &LogEntry { kind, id, position, words } = record;
        let lane = position - self.first;
        self.come[lane] += 1;
        if self.come[lane] <= self.handed_on[lane] {
            return;
        }
        self.handed_on[lane] += 1;
        // A lane whose record was lost has trapped there, whatever it does on the device.
        if self.dead[lane] {
            return;
        }
        match kind {
            EMIT => self.emitted(position, id, words),
            PRINT => {
                let print = &self.code.prints[id];
                let values = arrays(&print.args, words);
                self.sink.print(position, render(&print.texts, values, self.code.precision));
            }
            TRAPPED | CAUGHT => self.trapped(position, id, words, kind == CAUGHT),
            _ => unreachable!("there are four kinds of records"),
        }
    }

    fn emitted(&mut self, position: usize, emit: usize, own: &[u64]) {
        let (stream, loc) = &self.code.segment.emits[emit];
        let record = LogRecord { types: &self.code.streams[*stream], words: own };
        if self.sink.emit(position, *stream, &record).is_err() {
            self.trap(Trap::new(position, TrapKind::MemoryLimit, loc.clone()));
        }
    }

    fn trapped(&mut self, position: usize, site: usize, own: &[u64], caught: bool) {
        let (site, message) = &self.code.sites[site];
        let [index, depth, rest @ ..] = own else { unreachable!("a trap has an index and a depth") };
        let values = message.as_ref().map_or(0, |message| words(&message.args));
        let (addresses, values) = rest.split_at(rest.len() - values);
        let text = match (message, site.extent) {
            (Some(message), _) => render(&message.texts, arrays(&message.args, values), self.code.precision),
            (None, Some(extent)) => told(site, extent, *index as i64),
            (None, None) => site.text.clone(),
        };
        let mut loc = site.loc.clone();
        loc.take_place(addresses.iter().map(|ret| &self.code.blocks[*ret as usize]));
        let trap = Trap { position, kind: site.kind, loc, call_depth: *depth as usize, message: text };
        if caught {
            self.sink.caught(&trap);
            self.caught.push(trap);
        } else {
            self.trap(trap);
        }
    }
}

/// A record of a lane in the log.
struct LogEntry<'a> {
    kind: u64,
    id: usize,
    position: usize,
    words: &'a [u64],
}

/// The records that stand in a log as a whole.
fn records(log: &[u64]) -> impl Iterator<Item = LogEntry<'_>> {
    let mut rest = log;
    std::iter::from_fn(move || {
        let [head, position, words @ ..] = rest else { return None };
        let (words, after) = words.split_at_checked((head >> 32) as usize)?;
        rest = after;
        let (kind, id) = (head & 0xff, (head >> 8 & 0xff_ffff) as usize);
        Some(LogEntry { kind, id, position: *position as usize, words })
    })
}

/// The fields of a record where it stands in the log.
struct LogRecord<'a> {
    types: &'a [Type],
    words: &'a [u64],
}

impl crate::run::Record for LogRecord<'_> {
    fn arrays(&self) -> Vec<Array> {
        arrays(self.types, self.words).collect()
    }
    fn append_words(&self, words: &mut Vec<u64>) {
        words.extend_from_slice(self.words);
    }
}

/// Values of these types, which stand one after the other.
fn arrays<'a>(types: &'a [Type], words: &'a [u64]) -> impl Iterator<Item = Array> + use<'a> {
    let mut rest = words;
    types.iter().map(move |ty| {
        let (own, after) = rest.split_at(ty.elements());
        rest = after;
        let shape = ty.shape.iter().copied();
        match ty.dtype {
            DType::Bool => Array::bool(shape, own.iter().map(|word| *word != 0).collect()),
            DType::Int => Array::int(shape, own.iter().map(|word| *word as i64).collect()),
            DType::Real => Array::real(shape, own.iter().map(|word| f64::from_bits(*word)).collect()),
        }
    })
}
