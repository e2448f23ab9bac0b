//! The text form of the parts: constants, types, locations, operands, messages, shared values and streams. Printing is
//! total: an id that is out of range is written with a question mark, and such a text cannot be read back.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Args, Message, Operand, Routine, Shared, SharedId, SharedSource, Stream, StreamId, Tape, TapeId};
use crate::base::text::{QuotedName, ReadError, Reader, Text, Token};
use crate::base::{ArrayName, Id, IdVec, Loc};
use crate::prim::Prim;
use crate::types::{Array, ArrayData, DType, Scalar, Shape, Type};

/// Most elements of a type in a text.
const MOST_ELEMENTS: usize = 1 << 31;

/// A constant in its text form: that of [`Scalar`], and a NaN with other bits than Rust's as `nan(0x…)`.
#[derive(Clone, Copy, Debug)]
pub struct ScalarText(pub Scalar);

impl fmt::Display for ScalarText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scalar::Real(r) if r.is_nan() && r.to_bits() != f64::NAN.to_bits() => {
                write!(f, "nan({:#x})", r.to_bits())
            }
            other => other.fmt(f),
        }
    }
}

/// A location in its text form after a statement: ` @fib:3`, where a part of an array is meant with the array, ` @fib:3[x]`, or
/// nothing for [`Loc::none`].
#[derive(Clone, Copy, Debug)]
pub struct LocText<'a>(pub &'a Loc);

impl fmt::Display for LocText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == Loc::none() {
            return Ok(());
        }
        write!(f, " @{}:{}", QuotedName(&self.0.function), self.0.line)?;
        match &self.0.array {
            Some(array) if array.bounded => write!(f, "[bounded {}]", QuotedName(&array.name)),
            Some(array) => write!(f, "[{}]", QuotedName(&array.name)),
            None => Ok(()),
        }
    }
}

/// Names of variables and shared values, for printing what uses them.
#[derive(Clone, Copy)]
pub struct OperandNames<'a, V> {
    /// The name of a variable, if there is such a variable.
    pub var: &'a dyn Fn(V) -> Option<&'a str>,
    /// The shared values.
    pub shared: &'a IdVec<SharedId, Shared>,
}

impl<'a, V: Id> OperandNames<'a, V> {
    /// Text form of a variable.
    pub fn var(&self, v: V) -> String {
        (self.var)(v).map_or_else(|| format!("?{v}"), |name| QuotedName(name).to_string())
    }
    /// Text form of an operand: `x`, `$shared`, `1.5`.
    pub fn operand(&self, operand: Operand<V>) -> String {
        match operand {
            Operand::Var(v) => self.var(v),
            Operand::Shared(s) => match self.shared.get(s) {
                Some(shared) => format!("${}", QuotedName(&shared.name)),
                None => format!("?{s}"),
            },
            Operand::Const(c) => ScalarText(c).to_string(),
        }
    }
    /// Text form of operands, between commas.
    pub fn operands(&self, operands: &[Operand<V>]) -> String {
        let texts: Vec<String> = operands.iter().map(|o| self.operand(*o)).collect();
        texts.join(", ")
    }
    /// Text form of a primitive with its operands: `add x, 1`.
    pub fn prim(&self, prim: Prim, args: &[Operand<V>]) -> String {
        spaced(prim.name(), &self.operands(args))
    }
    /// Text form of a message: `"x = {}" x`.
    pub fn message(&self, message: &Message<Operand<V>>) -> String {
        spaced(&Text(&message.texts).to_string(), &self.operands(&message.args))
    }
}

fn spaced(first: &str, rest: &str) -> String {
    if rest.is_empty() { first.to_string() } else { format!("{first} {rest}") }
}

/// Writes the lines of shared values: `shared x: real[3] = input`.
pub fn write_shared(f: &mut impl fmt::Write, all: &IdVec<SharedId, Shared>) -> Result<(), fmt::Error> {
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
pub fn write_streams(f: &mut impl fmt::Write, all: &IdVec<StreamId, Stream>) -> Result<(), fmt::Error> {
    for stream in all.values() {
        let fields = typed_names(stream.fields.iter().map(|(name, ty)| (name.as_str(), ty)));
        writeln!(f, "stream {}({fields})", QuotedName(&stream.name))?;
    }
    Ok(())
}

/// Writes the lines of tapes: `tape fib.x: real[2]`.
pub fn write_tapes(f: &mut impl fmt::Write, all: &IdVec<TapeId, Tape>) -> Result<(), fmt::Error> {
    all.values().try_for_each(|tape| writeln!(f, "tape {}: {}", QuotedName(&tape.name), tape.ty))
}

/// Text form of a tape where an instruction names it.
pub fn tape_name(all: &IdVec<TapeId, Tape>, tape: TapeId) -> String {
    all.get(tape).map_or_else(|| format!("?{tape}"), |tape| QuotedName(&tape.name).to_string())
}

/// Text form of names with types: `n: int, x: real[3]`.
pub fn typed_names<'a>(names: impl Iterator<Item = (&'a str, &'a Type)>) -> String {
    let texts: Vec<String> = names.map(|(name, ty)| format!("{}: {ty}", QuotedName(name))).collect();
    texts.join(", ")
}

/// Names with ids, for reading; no name twice.
#[derive(Clone, Debug)]
pub struct NameTable<I> {
    what: &'static str,
    ids: HashMap<String, I>,
}

impl<I: Id> NameTable<I> {
    /// An empty table. `what` is what errors call an entry: `variable`.
    pub fn new(what: &'static str) -> Self {
        Self { what, ids: HashMap::new() }
    }
    /// Adds a name; an error at the line where the reader stands if it is there already.
    pub fn add(&mut self, reader: &Reader, name: &str, id: I) -> Result<(), ReadError> {
        match self.ids.insert(name.to_string(), id) {
            None => Ok(()),
            Some(_) => Err(reader.error(format!("there is already a {} `{name}`", self.what))),
        }
    }
    /// The id of a name, if it is there.
    pub fn get(&self, name: &str) -> Option<I> {
        self.ids.get(name).copied()
    }
    /// Reads a name of the table.
    pub fn read(&self, reader: &mut Reader) -> Result<I, ReadError> {
        let before = reader.position();
        let name = reader.name(&format!("the name of a {}", self.what))?;
        self.get(&name).ok_or_else(|| {
            reader.back_to(before);
            reader.error(format!("there is no {} `{name}`", self.what))
        })
    }
}

/// What an operand can name while a text is read.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a, V> {
    /// The variables.
    pub vars: &'a NameTable<V>,
    /// The shared values.
    pub shared: &'a NameTable<SharedId>,
}

impl<V: Id> Scope<'_, V> {
    /// Reads an operand.
    pub fn operand(&self, reader: &mut Reader) -> Result<Operand<V>, ReadError> {
        if reader.eat('$') {
            return self.shared.read(reader).map(Operand::Shared);
        }
        if let Some(constant) = eat_scalar(reader)? {
            return Ok(Operand::Const(constant));
        }
        match reader.peek() {
            Token::Word(_) | Token::Quoted(_) => self.vars.read(reader).map(Operand::Var),
            _ => Err(reader.expected("an operand")),
        }
    }
    /// Reads operands between commas up to the end of the line or a location; there may be none.
    pub fn operands(&self, reader: &mut Reader) -> Result<Args<V>, ReadError> {
        let operands = reader.list(|r| r.at_line_end() || r.at('@'), |r| self.operand(r))?;
        Ok(Args::from_vec(operands))
    }
    /// Reads a primitive with its operands.
    pub fn prim(&self, reader: &mut Reader) -> Result<(Prim, Args<V>), ReadError> {
        let name = match reader.peek() {
            Token::Word(w) => w.clone(),
            _ => return Err(reader.expected("the name of a primitive")),
        };
        let Some(prim) = Prim::from_name(&name) else {
            return Err(reader.error(format!("there is no primitive `{name}`")));
        };
        reader.next_token();
        Ok((prim, self.operands(reader)?))
    }
    /// Reads a message.
    pub fn message(&self, reader: &mut Reader) -> Result<Message<Operand<V>>, ReadError> {
        let texts = reader.text("a string")?;
        let args = self.operands(reader)?.into_vec();
        let holes = texts.len() - 1;
        if holes != args.len() {
            return Err(reader.error(format!("the string has {holes} holes, but {} operands follow", args.len())));
        }
        Ok(Message { texts: Arc::from(texts), args })
    }
}

/// Takes a constant if one comes next.
pub fn eat_scalar(reader: &mut Reader) -> Result<Option<Scalar>, ReadError> {
    let constant = match reader.peek() {
        Token::Int(i) => Scalar::Int(*i),
        Token::Real(r) => Scalar::Real(*r),
        Token::Word(w) => match w.as_str() {
            "true" => Scalar::Bool(true),
            "false" => Scalar::Bool(false),
            "inf" => Scalar::Real(f64::INFINITY),
            "nan" => {
                reader.next_token();
                return nan(reader).map(Some);
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    reader.next_token();
    Ok(Some(constant))
}

fn nan(reader: &mut Reader) -> Result<Scalar, ReadError> {
    if !reader.eat('(') {
        return Ok(Scalar::Real(f64::NAN));
    }
    let nan = f64::from_bits(reader.int("the bits of a nan")? as u64);
    if !nan.is_nan() {
        return Err(reader.error("these are not the bits of a nan"));
    }
    reader.expect(')')?;
    Ok(Scalar::Real(nan))
}

/// Reads a type.
pub fn read_type(reader: &mut Reader) -> Result<Type, ReadError> {
    let dtype = match reader.peek() {
        Token::Word(w) if w == "bool" => DType::Bool,
        Token::Word(w) if w == "int" => DType::Int,
        Token::Word(w) if w == "real" => DType::Real,
        _ => return Err(reader.expected("a type: `bool`, `int` or `real`, with extents `[3, 2]`")),
    };
    reader.next_token();
    let mut shape = Shape::new();
    if reader.eat('[') {
        let extents = reader.list(|_| false, |r| r.int("an extent"))?;
        for extent in extents {
            shape.push(usize::try_from(extent).map_err(|_| reader.error("negative extent"))?);
        }
        reader.expect(']')?;
    }
    let elements = shape.iter().try_fold(1usize, |n, extent| n.checked_mul((*extent).max(1)));
    if elements.is_none_or(|n| n > MOST_ELEMENTS) {
        return Err(reader.error("the type has more than 2^31 elements"));
    }
    Ok(Type { dtype, shape })
}

/// Reads `name: type`.
pub fn read_typed_name(reader: &mut Reader, what: &str) -> Result<(String, Type), ReadError> {
    let name = reader.name(what)?;
    reader.expect(':')?;
    Ok((name, read_type(reader)?))
}

/// A port as it is written: the user's name, the variable's name, the line.
pub type PortText = (String, String, u32);

/// Reads ports up to the end of the line: `n: fib.n, x: fib.x`.
pub fn read_ports(reader: &mut Reader) -> Result<Vec<PortText>, ReadError> {
    let port = |r: &mut Reader| {
        let name = r.name("the name of a port")?;
        r.expect(':')?;
        Ok((name, r.name("the name of a variable")?, r.line()))
    };
    let ports = reader.list(|r| r.at_line_end(), port)?;
    reader.end_line()?;
    Ok(ports)
}

/// Reads a block: `b0`.
pub fn read_block_id<B: Id>(reader: &mut Reader) -> Result<B, ReadError> {
    let number = match reader.peek() {
        Token::Word(word) => word.strip_prefix('b').and_then(|n| n.parse::<u32>().ok()),
        _ => None,
    };
    match number {
        Some(number) => {
            reader.next_token();
            Ok(B::new(number as usize))
        }
        None => Err(reader.expected("a block such as `b0`")),
    }
}

/// Reads a location if one comes next, else [`Loc::none`].
pub fn read_loc(reader: &mut Reader) -> Result<Loc, ReadError> {
    if !reader.eat('@') {
        return Ok(Loc::none());
    }
    let function = reader.name("the function of a location")?;
    reader.expect(':')?;
    let line = reader.int("the line of a location")?;
    let line = u32::try_from(line).map_err(|_| reader.error("the line is out of range"))?;
    let mut loc = Loc::new(function, line);
    if reader.eat('[') {
        let name = reader.name("the array of a location")?;
        let bounded = name == "bounded" && !reader.at(']');
        let name = if bounded { reader.name("the array of a location")? } else { name };
        reader.expect(']')?;
        loc.array = Some(Arc::new(ArrayName { name, bounded }));
    }
    Ok(loc)
}

/// Reads the elements of an array constant of this type: `[1.0, 2.0]`, row-major.
pub fn read_array(reader: &mut Reader, ty: &Type) -> Result<Array, ReadError> {
    reader.expect('[')?;
    let elements = reader.list(
        |r| r.at(']'),
        |r| match eat_scalar(r)? {
            Some(c) if c.dtype() == ty.dtype => Ok(c),
            _ => Err(r.expected(&format!("an element of type {}", ty.dtype))),
        },
    )?;
    reader.expect(']')?;
    if elements.len() != ty.elements() {
        let (found, wanted) = (elements.len(), ty.elements());
        return Err(reader.error(format!("expected {wanted} elements, found {found}")));
    }
    let mut data = Array::zeros(&Type::new(ty.dtype, [0])).data;
    for element in elements {
        match (&mut data, element) {
            (ArrayData::Bool(v), Scalar::Bool(b)) => v.push(b),
            (ArrayData::Int(v), Scalar::Int(i)) => v.push(i),
            (ArrayData::Real(v), Scalar::Real(r)) => v.push(r),
            _ => unreachable!("each element was checked against the type"),
        }
    }
    Ok(Array::new(ty.shape.iter().copied(), data))
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
    pub fn read(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
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
    pub fn read(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
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
    pub fn read(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let (name, ty) = read_typed_name(reader, "the name of a tape")?;
        self.names.add(reader, &name, self.values.next_id())?;
        self.values.push(Tape { name, ty });
        reader.end_line()
    }
}
