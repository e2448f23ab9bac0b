//! `autobatch map`: a function applied to every row of its inputs. Rows are lanes; they go through the machine in chunks, so
//! that neither a large file nor its results need to fit in memory.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::base::Loc;
use crate::program::io::{Data, JsonArray, NpyRows, write_arrays, write_npy_rows};
use crate::program::{Bound, Error, ErrorKind, Function, Inputs, Options, Program, Results, memory_limit, refuse_kept};
use crate::run::{Caught, Trap, TrapKind};
use crate::types::{Array, Precision, Type};

use super::args::{InputArgs, MapArgs};
use super::ir_file::extension;
use super::show::{add_lengths, ragged, show_caught, stopped};
use super::signals::{interrupted, nothing_to_keep, run_starts, stop_on_interrupt};
use super::sinks::Collector;
use super::{check_output, inputs, note, print, warn};

/// Rows of the first chunk, after which it is known what a row takes.
const FIRST_ROWS: usize = 1024;
/// Most rows at one time, and the memory that they may take.
const MOST_ROWS: usize = 1 << 16;
const CHUNK_BYTES: usize = 256 << 20;
/// Rows of a trap that are named.
const NAMED_ROWS: usize = 9;

pub(super) fn map(args: &MapArgs) -> Result<ExitCode, Error> {
    if extension(&args.file) != "ab" {
        let message = format!("{}: map takes a program, whose name ends in .ab", args.file.display());
        return Err(Error::new(ErrorKind::Option, message));
    }
    check_output(args.output.as_deref(), &["npy", "npz", "json"])?;
    let mut options = args.engine.options(false)?;
    nothing_to_keep();
    let stop = stop_on_interrupt();
    options.settings.stop = Some(Arc::clone(&stop));
    let program = Program::load(&args.file)?;
    let function = program.function(&args.entry)?;
    let rows = Rows::open(&args.inputs, &function)?.only(args.rows.clone())?;
    let mut chunks = Chunks {
        function,
        next: rows.range.start,
        rows,
        waiting: Vec::new(),
        at_once: args.rows_at_once,
        options,
        traps: IndexMap::new(),
        caught: Vec::new(),
        keeps: args.output.as_deref().is_some_and(|path| extension(path) != "npy"),
        stop,
    };
    let written = match args.output.as_deref() {
        None => to_stdout(&mut chunks),
        Some(path) if extension(path) == "npy" => to_npy(&mut chunks, path),
        Some(path) => to_arrays(&mut chunks, path),
    };
    for (trap, count, named) in chunks.traps.values() {
        note(stopped(trap, *count, named, "row").trim_end());
    }
    show_caught(&chunks.caught, "row");
    written?;
    if chunks.stop.load(Ordering::Relaxed) {
        return Ok(interrupted());
    }
    Ok(if chunks.traps.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The inputs: `.npy` files are read as the rows are wanted, the rest is in memory.
struct Rows {
    files: Vec<(String, NpyRows)>,
    memory: Inputs,
    /// All of them, or those that are asked for.
    range: Range<usize>,
}

impl Rows {
    fn open(args: &InputArgs, function: &Function<'_>) -> Result<Self, Error> {
        let mut files: Vec<(String, NpyRows)> = Vec::new();
        let mut others =
            InputArgs { input: Vec::new(), shared: args.shared.clone(), data: args.data.clone(), lanes: args.lanes };
        for argument in &args.input {
            let path = argument.split_once('=').and_then(|(name, value)| Some((name, value.trim().strip_prefix('@')?)));
            let npy = path.filter(|(_, path)| extension(Path::new(path)).eq_ignore_ascii_case("npy"));
            match npy.map(|(name, path)| Ok::<_, Error>((name, NpyRows::open(Path::new(path))?))).transpose()? {
                // One row serves all the others, as in a run.
                Some((name, Some(rows))) if rows.len() != 1 => {
                    if files.iter().any(|(other, _)| other == name) {
                        return Err(Error::new(ErrorKind::Input, format!("`{name}` is given twice")));
                    }
                    files.push((name.trim().to_owned(), rows));
                }
                _ => others.input.push(argument.clone()),
            }
        }
        let memory = inputs::read(&others, function.signature())?;
        let counted = if others.input.is_empty() && args.lanes.is_none() { None } else { Some(memory.lane_count()?) };
        let total = match (files.first(), counted) {
            (None, None) => {
                let message = "there are no rows: give an array with --input, such as --input x=@rows.npy";
                return Err(Error::new(ErrorKind::Input, message));
            }
            (Some((_, rows)), None | Some(1)) => rows.len(),
            (_, Some(n)) => n,
        };
        if let Some((name, rows)) = files.iter().find(|(_, rows)| rows.len() != total) {
            let message = format!("inputs disagree on the number of rows: `{name}` has {}, others {total}", rows.len());
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(Self { files, memory, range: 0..total })
    }

    /// These of the rows, if some are asked for.
    fn only(mut self, asked: Option<Range<usize>>) -> Result<Self, Error> {
        let Some(asked) = asked else { return Ok(self) };
        if asked.end > self.range.end {
            let message = format!("--rows {}..{}: there are {} rows", asked.start, asked.end, self.range.end);
            return Err(Error::new(ErrorKind::Option, message));
        }
        for (_, file) in &mut self.files {
            file.skip_rows(asked.start)?;
        }
        self.range = asked;
        Ok(self)
    }

    /// How many rows to begin with: what a row takes in the files is known, what it takes to run it is not.
    fn at_first(&self) -> usize {
        let row = self.files.iter().fold(0_usize, |sum, (_, file)| sum.saturating_add(file.row_bytes()));
        (CHUNK_BYTES / row.max(1)).clamp(1, FIRST_ROWS)
    }

    /// The inputs of these rows, which are the next.
    fn take(&mut self, rows: Range<usize>, function: &Function<'_>) -> Result<Inputs, Error> {
        let mut inputs = self.memory.rows(rows.clone());
        for (name, file) in &mut self.files {
            let array = Data::Array(file.next_rows(rows.len())?);
            inputs.add_data(function.signature(), name, &array, false)?;
        }
        Ok(inputs)
    }
}

/// The rows on their way through the machine.
struct Chunks<'a> {
    function: Function<'a>,
    rows: Rows,
    /// The first row that has not been taken.
    next: usize,
    /// Rows that were taken and did not fit in memory with those before them: the first of each part, the last part first.
    waiting: Vec<(usize, Inputs)>,
    /// Rows of a chunk; 0 until it is chosen.
    at_once: usize,
    options: Options,
    /// By kind and place: the first one, how many, and the first rows.
    traps: IndexMap<(TrapKind, Loc), (Trap, usize, Vec<u64>)>,
    /// What attempts caught, by row.
    caught: Vec<(u64, Caught)>,
    /// Whether all outputs are kept until the end.
    keeps: bool,
    stop: Arc<AtomicBool>,
}

/// What came out of a chunk.
struct Chunk {
    first: usize,
    results: Results,
}

impl Chunks<'_> {
    /// The next chunk; none at the end. Without rows there is one chunk, for the types of the outputs.
    fn next(&mut self) -> Result<Option<Chunk>, Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some((first, inputs)) = self.waiting.pop().map_or_else(|| self.read(), |part| Ok(Some(part)))? else {
            return Ok(None);
        };
        self.options.first_lane = first as u64;
        let bound = self.bind(first, inputs)?;
        run_starts();
        if first == self.rows.range.start {
            self.start(&bound)?;
        }
        let budget = bound.budget(&self.options)?;
        let sink =
            Collector::new(&bound.compiled().units.globals.streams, &bound.inputs().lanes, "row", false, &budget);
        let results = bound.run_within(&budget, &self.options, &sink)?;
        for trap in results.traps() {
            let row = results.lanes()[trap.position];
            let key = (trap.kind, trap.loc.clone());
            let (_, count, named) = self.traps.entry(key).or_insert_with(|| (trap.clone(), 0, Vec::new()));
            *count += 1;
            if named.len() < NAMED_ROWS {
                named.push(row);
            }
        }
        let caught = results.caught().iter();
        self.caught.extend(caught.map(|c| (results.lanes()[c.first.position], c.clone())));
        Ok(Some(Chunk { first, results }))
    }

    /// The next rows of the inputs, and the number of the first; none at the end.
    fn read(&mut self) -> Result<Option<(usize, Inputs)>, Error> {
        let (first, Range { start, end }) = (self.next, self.rows.range.clone());
        // Without rows there is one chunk all the same.
        if first >= end.max(start + 1) {
            return Ok(None);
        }
        let wanted = if self.at_once == 0 { self.rows.at_first() } else { self.at_once };
        let rows = first..end.min(first.saturating_add(wanted));
        self.next = rows.end.max(start + 1);
        Ok(Some((first, self.rows.take(rows, &self.function)?)))
    }

    /// Binds rows. While nobody has said how many go at one time, those wait that do not fit in memory.
    fn bind(&mut self, first: usize, mut inputs: Inputs) -> Result<Bound, Error> {
        loop {
            let bound = self.function.bind(&inputs, &self.options);
            let lanes = inputs.lane_count()?;
            match bound {
                Err(error) if error.kind() == ErrorKind::Memory && self.at_once == 0 && lanes > 1 => {
                    self.waiting.push((first + lanes / 2, inputs.rows(lanes / 2..lanes)));
                    inputs = inputs.rows(0..lanes / 2);
                }
                bound => return bound,
            }
        }
    }

    fn start(&mut self, bound: &Bound) -> Result<(), Error> {
        warn(bound);
        if let Some(stream) = bound.compiled().units.globals.streams.values().next() {
            let name = self.function.name();
            let message =
                format!("`{name}` emits records of the stream `{}`, which map does not keep: use run", stream.name);
            return Err(Error::new(ErrorKind::Entry, message));
        }
        if self.keeps {
            let kept = bound.output_bytes().saturating_mul(self.rows.range.len());
            let what = format!("the outputs of {} rows", self.rows.range.len());
            refuse_kept(kept, (&what, "a .npy file is written as the rows come"), &self.options)?;
            if let Some(limit) = &mut self.options.memory_limit {
                *limit = limit.saturating_sub(kept as u64);
            }
        }
        if self.at_once == 0 {
            let memory = bound.memory(&self.options);
            let row = memory.host_bytes_per_lane.saturating_add(memory.state_bytes_per_lane);
            let fitting = memory.largest_batch(memory_limit(&self.options));
            self.at_once = (CHUNK_BYTES / row.max(1)).min(fitting).clamp(1, MOST_ROWS);
        }
        Ok(())
    }

    fn precision(&self) -> Precision {
        self.options.settings.precision
    }
}

/// A line for each row: `{"row": 0, "result": 1.5}`.
fn to_stdout(chunks: &mut Chunks<'_>) -> Result<(), Error> {
    let precision = chunks.precision();
    let failed = |e: serde_json::Error| Error::new(ErrorKind::Io, e.to_string());
    while let Some(Chunk { first, results }) = chunks.next()? {
        let mut traps = results.traps().iter().peekable();
        let mut text = String::new();
        for i in 0..results.lanes().len() {
            let mut line = Map::from_iter([("row".to_owned(), json!(first + i))]);
            match traps.next_if(|t| t.position == i) {
                Some(trap) => {
                    line.insert("trap".to_owned(), json!(trap.kind.name()));
                    line.insert("function".to_owned(), json!(&*trap.loc.function));
                    line.insert("line".to_owned(), json!(trap.loc.line));
                    line.insert("message".to_owned(), json!(trap.message));
                }
                None => {
                    for name in results.outputs().keys() {
                        let row = results.lane(name, i).expect("every lane has every output").shown(precision);
                        line.insert(name.clone(), serde_json::to_value(JsonArray(&row)).map_err(failed)?);
                    }
                }
            }
            text += &serde_json::to_string(&Value::Object(line)).map_err(failed)?;
            text.push('\n');
        }
        print(&text);
    }
    Ok(())
}

/// One output, written as it comes.
fn to_npy(chunks: &mut Chunks<'_>, path: &Path) -> Result<(), Error> {
    let Some(first) = chunks.next()? else { return Ok(()) };
    let outputs = first.results.outputs();
    if outputs.len() != 1 {
        let message = format!(
            "--output {}: `{}` has {} outputs, a .npy file holds one; write a .npz file",
            path.display(),
            chunks.function.name(),
            outputs.len()
        );
        return Err(Error::new(ErrorKind::Option, message));
    }
    let only = |chunk: &Chunk| chunk.results.outputs().values().next().cloned();
    let mut ty: Type = only(&first).map(|a| a.ty()).expect("there is one output");
    ty.shape[0] = chunks.rows.range.len();
    let mut waiting = Some(first);
    let mut failed: Option<Error> = None;
    let written = write_npy_rows(path, &ty, || {
        let chunk = match waiting.take() {
            Some(chunk) => Ok(Some(chunk)),
            None => chunks.next(),
        };
        match chunk {
            Ok(None) if chunks.stop.load(Ordering::Relaxed) => {
                Err(io::Error::other("the run was stopped: the file is not written"))
            }
            Ok(chunk) => Ok(chunk.as_ref().and_then(only)),
            Err(error) => {
                failed = Some(error);
                Err(io::Error::other("a chunk failed"))
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(written?),
    }
}

/// All outputs, gathered and written at the end.
fn to_arrays(chunks: &mut Chunks<'_>, path: &Path) -> Result<(), Error> {
    let mut all: IndexMap<String, Cow<'_, Array>> = IndexMap::new();
    let mut rows_of: IndexMap<String, Vec<Array>> = IndexMap::new();
    let mut dims: IndexMap<String, Vec<i64>> = IndexMap::new();
    while let Some(chunk) = chunks.next()? {
        for (name, rows) in ragged(&chunk.results, chunks.precision()) {
            rows_of.entry(name).or_default().extend(rows);
        }
        for (name, lengths) in chunk.results.dims() {
            dims.entry(name.clone()).or_default().extend(lengths);
        }
        for (name, rows) in chunk.results.outputs() {
            match all.get_mut(name) {
                Some(array) => array.to_mut().append_rows(rows),
                None => {
                    let mut first = rows.clone();
                    first.reserve_rows(chunks.rows.range.len());
                    all.insert(name.clone(), Cow::Owned(first));
                }
            }
        }
    }
    if !rows_of.is_empty() {
        add_lengths(&mut all, &dims);
    }
    Ok(write_arrays(path, &all, &rows_of, chunks.precision())?)
}
