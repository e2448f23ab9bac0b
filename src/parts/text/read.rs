//! Reading names, constants, types, locations, operands and messages.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::text::{ReadError, Reader, Token};
use crate::base::{ArrayName, Id, Loc};
use crate::parts::{Args, Message, Operand, SharedId};
use crate::prim::Prim;
use crate::types::{Array, ArrayData, DType, Scalar, Shape, Type};

/// Most elements of a type in a text.
const MOST_ELEMENTS: usize = 1 << 31;

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
