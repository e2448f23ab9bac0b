//! The lines of what is the same for all lanes: shared values, streams and tapes.

use std::fmt;
use std::sync::Arc;

use super::{NameTable, OperandNames, ScalarText, Scope, read_array, read_typed_name, typed_names};
use crate::base::text::{QuotedName, ReadError, Reader};
use crate::base::{Id as _, IdVec};
use crate::parts::{Routine, Shared, SharedId, SharedSource, Stream, StreamId, Tape, TapeId};

/// Writes the lines of shared values, streams and tapes.
///
/// # Errors
/// Those of the writer.
pub fn write_globals(
    f: &mut impl fmt::Write,
    shared: &IdVec<SharedId, Shared>,
    streams: &IdVec<StreamId, Stream>,
    tapes: &IdVec<TapeId, Tape>,
) -> fmt::Result {
    write_shared(f, shared)?;
    write_streams(f, streams)?;
    write_tapes(f, tapes)
}

/// Writes the lines of shared values: `shared x: real[3] = input`.
fn write_shared(f: &mut impl fmt::Write, all: &IdVec<SharedId, Shared>) -> fmt::Result {
    let names = OperandNames { var: &|_: SharedId| None, shared: all };
    for (id, shared) in all.iter() {
        if let SharedSource::Routine(routine, result) = &shared.source {
            // All results of a routine are declared together, by the first of them.
            if *result == 0 {
                let others = (all.iter().skip(id.index()).enumerate()).take_while(
                    |(i, (_, s))| matches!(&s.source, SharedSource::Routine(r, n) if n == i && r == routine),
                );
                let declared = typed_names(others.map(|(_, (_, s))| (s.name.as_str(), &s.ty)));
                writeln!(f, "shared {declared} = routine {}", routine.text(all))?;
            }
            continue;
        }
        write!(f, "shared {}: {} = ", QuotedName(&shared.name), shared.ty)?;
        match &shared.source {
            SharedSource::Input => f.write_str("input")?,
            SharedSource::Constant(array) => {
                let elements: Vec<String> = (0..array.len()).map(|i| ScalarText(array.get(i)).to_string()).collect();
                write!(f, "[{}]", elements.join(", "))?;
            }
            SharedSource::Prim(prim, args) => f.write_str(&names.prim(*prim, args))?,
            SharedSource::Routine(..) => {}
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Writes the lines of streams: `stream draw(q: real[2], lp: real)`.
fn write_streams(f: &mut impl fmt::Write, all: &IdVec<StreamId, Stream>) -> fmt::Result {
    for stream in all.values() {
        let fields = typed_names(stream.fields.iter().map(|(name, ty)| (name.as_str(), ty)));
        writeln!(f, "stream {}({fields})", QuotedName(&stream.name))?;
    }
    Ok(())
}

/// Writes the lines of tapes: `tape fib.x: real[2]`.
fn write_tapes(f: &mut impl fmt::Write, all: &IdVec<TapeId, Tape>) -> fmt::Result {
    all.values().try_for_each(|tape| writeln!(f, "tape {}: {}", QuotedName(&tape.name), tape.ty))
}

/// What is the same for all lanes, as far as it has been read.
#[derive(Clone, Default, Debug)]
pub struct GlobalsReader {
    /// The shared values.
    pub shared: SharedValues,
    /// The streams.
    pub streams: StreamTable,
    /// The tapes.
    pub tapes: Tapes,
}

impl GlobalsReader {
    /// Reads a line of a shared value, a stream or a tape; false where something else stands.
    ///
    /// # Errors
    /// For a line that only begins like one.
    pub fn line(&mut self, reader: &mut Reader) -> Result<bool, ReadError> {
        if reader.eat_word("shared") {
            self.shared.read(reader)?;
        } else if reader.eat_word("stream") {
            self.streams.read(reader)?;
        } else if reader.eat_word("tape") {
            self.tapes.read(reader)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// The shared values of a text, as far as they have been read.
#[derive(Clone, Debug)]
pub struct SharedValues {
    /// The values.
    pub values: IdVec<SharedId, Shared>,
    /// Their names.
    pub names: NameTable<SharedId>,
}

impl Default for SharedValues {
    fn default() -> Self {
        Self { values: IdVec::new(), names: NameTable::new("shared value") }
    }
}

impl SharedValues {
    /// Reads what follows the word `shared`: `x: real[3] = input`.
    fn read(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let mut declared = reader.list(|r| r.at('='), |r| read_typed_name(r, "the name of a shared value"))?;
        reader.expect('=')?;
        if reader.eat_word("routine") {
            let routine = Arc::new(Routine::read(reader, &self.names)?);
            for (i, (name, ty)) in declared.into_iter().enumerate() {
                self.names.add(reader, &name, self.values.next_id())?;
                self.values.push(Shared { name, ty, source: SharedSource::Routine(Arc::clone(&routine), i) });
            }
            return reader.end_line();
        }
        let Some((name, ty)) = declared.pop().filter(|_| declared.is_empty()) else {
            return Err(reader.expected("`routine`, which gives several values,"));
        };
        let source = if reader.eat_word("input") {
            SharedSource::Input
        } else if reader.at('[') {
            SharedSource::Constant(read_array(reader, &ty)?)
        } else {
            let scope = Scope { vars: &NameTable::new("variable"), shared: &self.names };
            let (prim, args) = scope.prim(reader)?;
            SharedSource::Prim(prim, args)
        };
        let id = SharedId::new(self.values.len());
        self.names.add(reader, &name, id)?;
        self.values.push(Shared { name, ty, source });
        reader.end_line()
    }
}

/// The streams of a text, as far as they have been read.
#[derive(Clone, Debug)]
pub struct StreamTable {
    /// The streams.
    pub values: IdVec<StreamId, Stream>,
    /// Their names.
    pub names: NameTable<StreamId>,
}

impl Default for StreamTable {
    fn default() -> Self {
        Self { values: IdVec::new(), names: NameTable::new("stream") }
    }
}

impl StreamTable {
    /// Reads what follows the word `stream`: `draw(q: real[2], lp: real)`.
    fn read(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let name = reader.name("the name of a stream")?;
        let fields = reader.parenthesized(|r| read_typed_name(r, "the name of a field"))?;
        let id = StreamId::new(self.values.len());
        self.names.add(reader, &name, id)?;
        self.values.push(Stream { name, fields });
        reader.end_line()
    }
}

/// The tapes of a text, as far as they have been read.
#[derive(Clone, Debug)]
pub struct Tapes {
    /// The tapes.
    pub values: IdVec<TapeId, Tape>,
    /// Their names.
    pub names: NameTable<TapeId>,
}

impl Default for Tapes {
    fn default() -> Self {
        Self { values: IdVec::new(), names: NameTable::new("tape") }
    }
}

impl Tapes {
    /// Reads what follows the word `tape`: `fib.x: real[2]`.
    fn read(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let (name, ty) = read_typed_name(reader, "the name of a tape")?;
        self.names.add(reader, &name, self.values.next_id())?;
        self.values.push(Tape { name, ty });
        reader.end_line()
    }
}
