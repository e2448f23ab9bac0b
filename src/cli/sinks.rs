//! What lanes say while they run: printed at once, or kept by lane.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;

use crate::base::{Id as _, IdVec};
use crate::parts::StreamId;
use crate::run::{MemoryBudget, NoMemory, Record, Sink};
use crate::stack::Stream;
use crate::types::{Array, ArrayData, DType, Shape, Type};

/// What a kept word takes: it is there once more when the arrays are made.
const BYTES_OF_WORD: usize = 2 * size_of::<u64>();
/// Words that the first records of a lane get room for.
const FIRST_WORDS: usize = 8;

/// Prints lines as they come, and keeps the records of streams within the memory of the run.
pub(super) struct Collector {
    /// Whether lines go to standard output, which `--format json` keeps for its one object.
    to_stdout: bool,
    /// What the numbers are called that lines start with.
    what: &'static str,
    lanes: Vec<u64>,
    streams: IdVec<StreamId, Stream>,
    /// By stream and position of the lane.
    records: Vec<Vec<Mutex<Records>>>,
    budget: Arc<MemoryBudget>,
    /// Bytes that are taken of it.
    taken: AtomicUsize,
}

/// The records of a stream in one lane, one after the other.
#[derive(Default)]
struct Records {
    count: usize,
    words: Vec<u64>,
}

impl Collector {
    /// For these streams and lanes. Records take of the budget.
    pub(super) fn new(
        streams: &IdVec<StreamId, Stream>,
        lanes: &[u64],
        what: &'static str,
        to_stdout: bool,
        budget: &Arc<MemoryBudget>,
    ) -> Self {
        let records = streams.values().map(|_| lanes.iter().map(|_| Mutex::default()).collect()).collect();
        let (lanes, streams, budget) = (lanes.to_vec(), streams.clone(), Arc::clone(budget));
        Self { to_stdout, what, lanes, streams, records, budget, taken: AtomicUsize::new(0) }
    }

    /// The records as arrays, one a field: `stream.field`, with axes lanes and records where every lane has as many
    /// records; else all records one after the other, and the number of the lane of each as `stream.lane`.
    pub(super) fn into_arrays(self) -> IndexMap<String, Array> {
        let mut arrays = IndexMap::new();
        for (id, stream) in self.streams.iter() {
            let take = |m: &Mutex<Records>| std::mem::take(&mut *m.lock().unwrap_or_else(PoisonError::into_inner));
            let lanes: Vec<Records> = self.records[id.index()].iter().map(take).collect();
            let count = lanes.first().map_or(0, |lane| lane.count);
            let even = lanes.iter().all(|lane| lane.count == count);
            let total: usize = lanes.iter().map(|lane| lane.count).sum();
            if !even {
                let numbers = lanes.iter().zip(&self.lanes);
                let numbers = numbers.flat_map(|(lane, number)| std::iter::repeat_n(*number as i64, lane.count));
                arrays.insert(format!("{}.lane", stream.name), Array::int([total], numbers.collect()));
            }
            let words = words_of(stream);
            let mut first = 0;
            for (field, ty) in &stream.fields {
                let leading: &[usize] = if even { &[lanes.len(), count] } else { &[total] };
                let shape: Shape = leading.iter().chain(&ty.shape).copied().collect();
                let place = first..first + ty.elements();
                first = place.end;
                let records = lanes.iter().flat_map(|lane| lane.words.chunks_exact(words.max(1)));
                let elements = records.flat_map(|record| &record[place.clone()]).copied();
                let data = data_of(ty, total * ty.elements(), elements);
                arrays.insert(format!("{}.{field}", stream.name), Array { shape, data });
            }
        }
        arrays
    }

    /// Makes room for so many words more; more than that where the budget has it.
    fn make_room(&self, words: &mut Vec<u64>, more: usize) -> Result<(), NoMemory> {
        if words.capacity() - words.len() >= more {
            return Ok(());
        }
        let ample = (words.len() / 2).max(FIRST_WORDS).max(more);
        let mut reserve = |more: usize| {
            let bytes = (words.len() + more).saturating_sub(words.capacity()).saturating_mul(BYTES_OF_WORD);
            self.budget.take(bytes)?;
            if words.try_reserve_exact(more).is_err() {
                self.budget.give_back(bytes);
                return Err(NoMemory);
            }
            self.taken.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        };
        reserve(ample).or_else(|_| reserve(more))
    }
}

/// Words of a record.
fn words_of(stream: &Stream) -> usize {
    stream.fields.iter().map(|(_, ty)| ty.elements()).sum()
}

/// Elements as an array has them, of the words of records; so many.
fn data_of(ty: &Type, count: usize, words: impl Iterator<Item = u64>) -> ArrayData {
    fn all<T>(count: usize, elements: impl Iterator<Item = T>) -> Vec<T> {
        let mut all = Vec::with_capacity(count);
        all.extend(elements);
        all
    }
    match ty.dtype {
        DType::Bool => ArrayData::Bool(all(count, words.map(|w| w != 0))),
        DType::Int => ArrayData::Int(all(count, words.map(|w| w as i64))),
        DType::Real => ArrayData::Real(all(count, words.map(f64::from_bits))),
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.budget.give_back(self.taken.load(Ordering::Relaxed));
    }
}

impl Sink for Collector {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        let lane = &self.records[stream.index()][position];
        let mut lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_room(&mut lane.words, words_of(&self.streams[stream]))?;
        record.append_words(&mut lane.words);
        lane.count += 1;
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        let line = format!("[{} {}] {line}\n", self.what, self.lanes[position]);
        if self.to_stdout {
            super::print(&line);
        } else {
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}
