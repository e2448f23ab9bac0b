//! Layer 1: the parts that the representations from the CFG program on have in common, so that the lowering takes them
//! over unchanged: operands, effects, storage classes, shared values, output streams and messages. Generic over the id of
//! a variable.

mod effect;
pub mod routine;
pub mod text;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::{Id as _, IdVec};
pub use effect::SideEffect;
pub use routine::Routine;

use crate::prim::{Effect, Prim};
use crate::types::{Array, Precision, Scalar, Type};

crate::define_id!(
    /// A value that is the same for all lanes.
    SharedId, "s"
);
crate::define_id!(
    /// An output stream.
    StreamId, "e"
);
crate::define_id!(
    /// A tape.
    TapeId, "tape"
);

/// How a variable is stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StorageClass {
    /// Never lives across the edge of a block (of a region, for variables of a region): not part of the machine's state.
    Temporary,
    /// One value a lane, written under the mask.
    Register,
    /// A stack a lane. Reads and updates touch its top.
    Stack,
}

impl fmt::Display for StorageClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StorageClass::Temporary => "temporary",
            StorageClass::Register => "register",
            StorageClass::Stack => "stack",
        })
    }
}

/// What an instruction reads; `V` is the id of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand<V> {
    /// A variable.
    Var(V),
    /// A shared value.
    Shared(SharedId),
    /// A scalar constant.
    Const(Scalar),
}

impl<V: Copy> Operand<V> {
    /// The variable, if it is one.
    pub fn var(self) -> Option<V> {
        if let Operand::Var(v) = self { Some(v) } else { None }
    }
    /// The same of another representation, where this variable is another one.
    pub fn map<W>(self, var: impl FnOnce(V) -> W) -> Operand<W> {
        match self {
            Operand::Var(v) => Operand::Var(var(v)),
            Operand::Shared(s) => Operand::Shared(s),
            Operand::Const(c) => Operand::Const(c),
        }
    }
    /// The same among shared values, which have no variables; none of a variable.
    pub fn shared<W>(self) -> Option<Operand<W>> {
        match self {
            Operand::Var(_) => None,
            Operand::Shared(s) => Some(Operand::Shared(s)),
            Operand::Const(c) => Some(Operand::Const(c)),
        }
    }
    /// The type, with those of variables and of shared values.
    pub fn ty(self, var: impl FnOnce(V) -> Type, shared: impl FnOnce(SharedId) -> Type) -> Type {
        match self {
            Operand::Var(v) => var(v),
            Operand::Shared(s) => shared(s),
            Operand::Const(c) => Type::scalar(c.dtype()),
        }
    }
}

impl<V: fmt::Debug> fmt::Debug for Operand<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Var(v) => v.fmt(f),
            Operand::Shared(s) => s.fmt(f),
            Operand::Const(c) => c.fmt(f),
        }
    }
}

/// Operands of an instruction.
pub type Args<V> = SmallVec<[Operand<V>; 3]>;

/// A shared value: stored once and computed once, before any lane starts.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// Name in the text form, unique among the shared values; for an input the user's name (`x`, `data.y`).
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it comes from.
    pub source: SharedSource,
}

/// Where a shared value comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum SharedSource {
    /// Given to the run under the name of the value.
    Input,
    /// An array constant of the program.
    Constant(Array),
    /// A primitive of earlier shared values and constants that cannot trap for them. No operand is a variable.
    Prim(Prim, Args<SharedId>),
    /// A result of code that is run once, and which one. All results of one routine are shared values that stand one after
    /// another. Should it trap or run too long, the lanes must run a program that computes them itself.
    Routine(Arc<Routine>, usize),
}

/// Checks shared values: what they are made of stands before them, has the types that it wants, and is no draw.
///
/// # Errors
/// What is wrong with each of those that make no sense, with its name.
pub fn check_shared(shared: &IdVec<SharedId, Shared>) -> Vec<String> {
    let wrong = shared.iter().filter_map(|(id, value)| Some((value, check_source(shared, id).err()?)));
    wrong.map(|(value, message)| format!("shared value `{}`: {message}", value.name)).collect()
}

fn check_source(shared: &IdVec<SharedId, Shared>, id: SharedId) -> Result<(), String> {
    let Shared { ty, source, .. } = &shared[id];
    match source {
        SharedSource::Input => Ok(()),
        SharedSource::Constant(array) if array.ty() == *ty => Ok(()),
        SharedSource::Constant(array) => Err(format!("the constant has type {}", array.ty())),
        SharedSource::Prim(prim, args) => {
            let ty_of = |arg: &Operand<SharedId>| match *arg {
                Operand::Const(c) => Ok(Type::scalar(c.dtype())),
                Operand::Shared(s) if s < id => Ok(shared[s].ty.clone()),
                Operand::Shared(_) | Operand::Var(_) => Err("an operand is no earlier shared value".to_owned()),
            };
            let types = args.iter().map(ty_of).collect::<Result<Vec<Type>, String>>()?;
            prim.check(&types, ty).map_err(|e| e.0)?;
            match prim.effect(&types) {
                Effect::Random => Err("a random draw is not shared".to_owned()),
                Effect::Pure | Effect::Traps => Ok(()),
            }
        }
        SharedSource::Routine(..) => check_routine(shared, id),
    }
}

/// Checks a shared value that a routine gives: its results stand one after another, in their order.
fn check_routine(shared: &IdVec<SharedId, Shared>, id: SharedId) -> Result<(), String> {
    let SharedSource::Routine(routine, result) = &shared[id].source else {
        return Ok(());
    };
    let first = id.index().checked_sub(*result).ok_or("the results before it are missing")?;
    let together = shared.values().skip(first).enumerate();
    let together =
        together.take_while(|(i, s)| matches!(&s.source, SharedSource::Routine(r, n) if n == i && r == routine));
    let types: Vec<Type> = together.map(|(_, s)| s.ty.clone()).collect();
    if types.len() <= *result {
        return Err("the results of its routine do not stand one after another".to_owned());
    }
    routine.check(shared, SharedId::new(first), &types)
}

/// A stream of records that leave the program by `emit`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// Names and types of its fields; struct fields are split: `z.q`.
    pub fields: Vec<(String, Type)>,
}

/// A tape: a stack of values for each lane that belongs to the whole program and not to an activation of a function. It is
/// empty when a lane starts, lives across calls and returns, and is reached by `tape_push` and `tape_pop` only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tape {
    /// Its name, unique among the tapes.
    pub name: String,
    /// The type of its values.
    pub ty: Type,
}

/// A string with holes and the operands `R` that fill them: `texts[0] args[0] texts[1] … args[n-1] texts[n]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message<R> {
    /// The texts around the holes: one more than there are operands.
    pub texts: Arc<[String]>,
    /// The operands.
    pub args: Vec<R>,
}

impl<R> Message<R> {
    /// The same with other operands.
    pub fn map<S>(&self, read: impl FnMut(&R) -> S) -> Message<S> {
        Message { texts: Arc::clone(&self.texts), args: self.args.iter().map(read).collect() }
    }
    /// Whether there is an operand for each hole.
    ///
    /// # Errors
    /// How many there are.
    pub fn check(&self) -> Result<(), String> {
        let (holes, args) = (self.texts.len().saturating_sub(1), self.args.len());
        if self.texts.len() == args + 1 { Ok(()) } else { Err(format!("{holes} holes, but {args} operands")) }
    }
}

/// Fills the holes of a message: what `print` prints and a failed `assert` says, in every engine. Scalars print as Rust
/// prints them, reals with the fewest digits that read back as the same number in the precision of the run (`1`, `0.1`,
/// `NaN`, `inf`); arrays as nested lists, `[[1, 2], [3, 4]]`.
pub fn render(texts: &[String], values: impl IntoIterator<Item = Array>, precision: Precision) -> String {
    let mut out = texts.first().cloned().unwrap_or_default();
    for (value, text) in values.into_iter().zip(texts.iter().skip(1)) {
        out.push_str(&value.shown(precision).to_string());
        out.push_str(text);
    }
    out
}
