//! What an instruction does besides computing a value: asserts, prints, records, tapes. The same in every
//! representation, from the CFG program to the plan, but for what names an operand.

use super::text::{NameTable, OperandNames, Scope, tape_name};
use super::{Message, Operand, Stream, StreamId, Tape, TapeId};
use crate::base::text::{QuotedName, ReadError, Reader};
use crate::base::{Id, IdVec};
use crate::types::Type;

/// An effect. `R` is what it reads: an operand of a representation. `W` is what it sets: the id of a variable, a value
/// or a place.
#[derive(Clone, PartialEq, Debug)]
pub enum SideEffect<R, W> {
    /// `assert cond, "message" args`: traps the lanes where the condition does not hold.
    Assert {
        /// A bool scalar.
        cond: R,
        /// What the trap says.
        message: Message<R>,
    },
    /// `print "message" args`: prints a line in each active lane.
    Print(Message<R>),
    /// `emit stream(args)`: appends a record to the stream of each active lane, one operand for each field.
    Emit {
        /// The stream.
        stream: StreamId,
        /// The fields.
        args: Vec<R>,
    },
    /// `tape_push tape, value`: the tape of each active lane gets one more value. A tape with [`max_tape_depth`] values
    /// traps the lane.
    ///
    /// [`max_tape_depth`]: crate::run::Settings::max_tape_depth
    TapePush {
        /// The tape.
        tape: TapeId,
        /// What is pushed; it has the type of the tape.
        value: R,
    },
    /// `tape_pop tape`: takes the last value off the tape of each active lane; the other lanes keep what they have (of a
    /// stack variable, the top is overwritten). An empty tape traps the lane.
    TapePop {
        /// Where the value goes; it has the type of the tape.
        dst: W,
        /// The tape.
        tape: TapeId,
    },
}

impl<R, W> SideEffect<R, W> {
    /// What it reads, in order.
    pub fn reads(&self) -> impl Iterator<Item = &R> {
        let (first, rest): (Option<&R>, &[R]) = match self {
            SideEffect::Assert { cond, message } => (Some(cond), &message.args),
            SideEffect::Print(message) => (None, &message.args),
            SideEffect::Emit { args, .. } => (None, args),
            SideEffect::TapePush { value, .. } => (Some(value), &[]),
            SideEffect::TapePop { .. } => (None, &[]),
        };
        first.into_iter().chain(rest)
    }
    /// What it reads, in order, to be replaced.
    pub fn reads_mut(&mut self) -> impl Iterator<Item = &mut R> {
        let (first, rest): (Option<&mut R>, &mut [R]) = match self {
            SideEffect::Assert { cond, message } => (Some(cond), &mut message.args),
            SideEffect::Print(message) => (None, &mut message.args),
            SideEffect::Emit { args, .. } => (None, args),
            SideEffect::TapePush { value, .. } => (Some(value), &mut []),
            SideEffect::TapePop { .. } => (None, &mut []),
        };
        first.into_iter().chain(rest)
    }
    /// What it sets.
    pub fn dst(&self) -> Option<&W> {
        if let SideEffect::TapePop { dst, .. } = self { Some(dst) } else { None }
    }
    /// What it sets, to be replaced.
    pub fn dst_mut(&mut self) -> Option<&mut W> {
        if let SideEffect::TapePop { dst, .. } = self { Some(dst) } else { None }
    }
    /// The tape that it pushes on or pops off.
    pub fn tape(&self) -> Option<TapeId> {
        match self {
            SideEffect::TapePush { tape, .. } | SideEffect::TapePop { tape, .. } => Some(*tape),
            SideEffect::Assert { .. } | SideEffect::Print(_) | SideEffect::Emit { .. } => None,
        }
    }

    /// The same effect of another representation: what it reads is mapped, in order.
    pub fn map_reads<S>(&self, mut read: impl FnMut(&R) -> S) -> SideEffect<S, W>
    where
        W: Clone,
    {
        match self {
            SideEffect::Assert { cond, message } => {
                SideEffect::Assert { cond: read(cond), message: message.map(&mut read) }
            }
            SideEffect::Print(message) => SideEffect::Print(message.map(read)),
            SideEffect::Emit { stream, args } => {
                SideEffect::Emit { stream: *stream, args: args.iter().map(read).collect() }
            }
            SideEffect::TapePush { tape, value } => SideEffect::TapePush { tape: *tape, value: read(value) },
            SideEffect::TapePop { dst, tape } => SideEffect::TapePop { dst: dst.clone(), tape: *tape },
        }
    }
    /// The same effect of another representation: what it sets is mapped.
    pub fn map_dst<X>(self, write: impl FnOnce(W) -> X) -> SideEffect<R, X> {
        match self {
            SideEffect::Assert { cond, message } => SideEffect::Assert { cond, message },
            SideEffect::Print(message) => SideEffect::Print(message),
            SideEffect::Emit { stream, args } => SideEffect::Emit { stream, args },
            SideEffect::TapePush { tape, value } => SideEffect::TapePush { tape, value },
            SideEffect::TapePop { dst, tape } => SideEffect::TapePop { dst: write(dst), tape },
        }
    }

    /// Whether it makes sense, with the types of what it reads and sets, which exist: its stream and its tape, the types
    /// that they want, the holes of its message.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        (streams, tapes): (&IdVec<StreamId, Stream>, &IdVec<TapeId, Tape>),
        read: impl Fn(&R) -> Type,
        set: impl FnOnce(&W) -> Type,
    ) -> Result<(), String> {
        let on_tape = |tape: TapeId, ty: Type| match tapes.get(tape) {
            None => Err(format!("there is no tape {tape}")),
            Some(tape) if tape.ty != ty => Err(format!("tape `{}` holds {}, not {ty}", tape.name, tape.ty)),
            Some(_) => Ok(()),
        };
        match self {
            SideEffect::Assert { cond, message } => match read(cond) {
                ty if ty == Type::bool() => message.check(),
                ty => Err(format!("the condition is {ty}, not bool")),
            },
            SideEffect::Print(message) => message.check(),
            SideEffect::Emit { stream, args } => {
                let stream = streams.get(*stream).ok_or_else(|| format!("there is no stream {stream}"))?;
                let list = |types: Vec<Type>| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
                let wanted: Vec<Type> = stream.fields.iter().map(|(_, ty)| ty.clone()).collect();
                let found: Vec<Type> = args.iter().map(read).collect();
                if found == wanted {
                    return Ok(());
                }
                Err(format!("fields of types ({}) expected, found ({})", list(wanted), list(found)))
            }
            SideEffect::TapePush { tape, value } => on_tape(*tape, read(value)),
            SideEffect::TapePop { dst, tape } => on_tape(*tape, set(dst)),
        }
    }
}

impl<V: Id> SideEffect<Operand<V>, V> {
    /// The text form, without the variable that a pop off a tape sets.
    pub fn text(
        &self,
        names: &OperandNames<'_, V>,
        streams: &IdVec<StreamId, Stream>,
        tapes: &IdVec<TapeId, Tape>,
    ) -> String {
        match self {
            SideEffect::Assert { cond, message } => {
                format!("assert {}, {}", names.operand(*cond), names.message(message))
            }
            SideEffect::Print(message) => format!("print {}", names.message(message)),
            SideEffect::Emit { stream, args } => {
                let stream = match streams.get(*stream) {
                    Some(stream) => QuotedName(&stream.name).to_string(),
                    None => format!("?{stream}"),
                };
                format!("emit {stream}({})", names.operands(args))
            }
            SideEffect::TapePush { tape, value } => {
                format!("tape_push {}, {}", tape_name(tapes, *tape), names.operand(*value))
            }
            SideEffect::TapePop { tape, .. } => format!("tape_pop {}", tape_name(tapes, *tape)),
        }
    }

    /// Reads what [`text`](Self::text) writes; nothing where something else stands. Not a pop off a tape, which each
    /// representation writes in its own way.
    ///
    /// # Errors
    /// For what only begins like an effect.
    pub fn read(
        reader: &mut Reader,
        scope: &Scope<'_, V>,
        streams: &NameTable<StreamId>,
        tapes: &NameTable<TapeId>,
    ) -> Result<Option<Self>, ReadError> {
        Ok(Some(if reader.eat_word("assert") {
            let cond = scope.operand(reader)?;
            reader.expect(',')?;
            SideEffect::Assert { cond, message: scope.message(reader)? }
        } else if reader.eat_word("print") {
            SideEffect::Print(scope.message(reader)?)
        } else if reader.eat_word("emit") {
            let stream = streams.read(reader)?;
            SideEffect::Emit { stream, args: reader.parenthesized(|r| scope.operand(r))? }
        } else if reader.eat_word("tape_push") {
            let tape = tapes.read(reader)?;
            reader.expect(',')?;
            SideEffect::TapePush { tape, value: scope.operand(reader)? }
        } else {
            return Ok(None);
        }))
    }
}
