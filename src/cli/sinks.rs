//! What lanes say while they run: printed at once, or kept by lane.

use std::io::Write as _;
use std::sync::Mutex;

use indexmap::IndexMap;

use crate::base::{Id as _, IdVec};
use crate::parts::StreamId;
use crate::run::{Record, Sink};
use crate::stack::Stream;
use crate::types::{Array, ArrayData, Shape};

/// Prints lines as they come, and keeps the records of streams.
pub(super) struct Collector {
    /// Whether lines go to standard output, which `--format json` keeps for its one object.
    to_stdout: bool,
    /// What the numbers are called that lines start with.
    what: &'static str,
    lanes: Vec<u64>,
    streams: IdVec<StreamId, Stream>,
    /// By stream and position of the lane.
    records: Vec<Vec<Mutex<Vec<Vec<Array>>>>>,
}

impl Collector {
    /// For these streams and lanes.
    pub(super) fn new(streams: &IdVec<StreamId, Stream>, lanes: &[u64], what: &'static str, to_stdout: bool) -> Self {
        let records = streams.values().map(|_| lanes.iter().map(|_| Mutex::default()).collect()).collect();
        Self { to_stdout, what, lanes: lanes.to_vec(), streams: streams.clone(), records }
    }

    /// The records as arrays, one a field: `stream.field`, with axes lanes and records where every lane has as many
    /// records; else all records one after the other, and the number of the lane of each as `stream.lane`.
    pub(super) fn into_arrays(self) -> IndexMap<String, Array> {
        let mut arrays = IndexMap::new();
        for (id, stream) in self.streams.iter() {
            let lanes: Vec<Vec<Vec<Array>>> = self.records[id.index()]
                .iter()
                .map(|m| std::mem::take(&mut *m.lock().expect("no emit panics while it holds the lock")))
                .collect();
            let count = lanes.first().map_or(0, Vec::len);
            let even = lanes.iter().all(|records| records.len() == count);
            let total: usize = lanes.iter().map(Vec::len).sum();
            if !even {
                let numbers = lanes.iter().zip(&self.lanes).flat_map(|(r, lane)| vec![*lane as i64; r.len()]).collect();
                arrays.insert(format!("{}.lane", stream.name), Array::int([total], numbers));
            }
            for (f, (field, ty)) in stream.fields.iter().enumerate() {
                let leading: &[usize] = if even { &[lanes.len(), count] } else { &[total] };
                let shape: Shape = leading.iter().chain(&ty.shape).copied().collect();
                let parts = lanes.iter().flatten().map(|record| &record[f].data);
                let mut data = Array::zeros(&crate::types::Type::new(ty.dtype, [0])).data;
                parts.for_each(|part| extend(&mut data, part));
                arrays.insert(format!("{}.{field}", stream.name), Array { shape, data });
            }
        }
        arrays
    }
}

fn extend(all: &mut ArrayData, part: &ArrayData) {
    match (all, part) {
        (ArrayData::Bool(a), ArrayData::Bool(p)) => a.extend_from_slice(p),
        (ArrayData::Int(a), ArrayData::Int(p)) => a.extend_from_slice(p),
        (ArrayData::Real(a), ArrayData::Real(p)) => a.extend_from_slice(p),
        _ => unreachable!("a field of a stream has one type"),
    }
}

impl Sink for Collector {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) {
        let lane = &self.records[stream.index()][position];
        lane.lock().expect("no emit panics while it holds the lock").push(record.arrays());
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
