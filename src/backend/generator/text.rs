//! The text of a function: its loops over elements, and the elements that these read and write. What stands around it is
//! its [`Frame`]'s.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::backend::generator::ending::Route;
use crate::backend::generator::frame::{Frame, Function, Signature, Stored};
use crate::backend::generator::functions::group_type;
use crate::backend::generator::lockstep::Lockstep;
use crate::backend::generator::operations::literal;
use crate::backend::generator::schedule::{Group, Schedule, schedule};
use crate::backend::generator::ssa::{Base, Kind, LocalId, Op, Ssa, Value};
use crate::base::{Id as _, IdVec};
use crate::plan::StackId;
use crate::types::DType;
use crate::unit::BlockId;

/// Appends the function to `out`.
pub(super) fn function(
    (name, block): (&str, BlockId),
    ssa: &Ssa<'_>,
    lockstep: &Lockstep,
    frame: &dyn Frame,
    route: Option<&Route<'_>>,
    out: &mut String,
) -> Signature {
    let schedule = schedule(ssa, lockstep);
    let mut w = Writer {
        frame,
        ssa,
        schedule: &schedule,
        borrowed: borrowed(ssa, frame),
        signature: Signature::default(),
        body: String::new(),
        loaded: HashMap::new(),
        turns: 1,
        indent: 8,
        names: 0,
        routes: route.is_some(),
    };
    for group in &schedule.groups {
        w.group(group);
    }
    if let Some(route) = route {
        frame.send(route, &mut w);
    }
    let declared = w.declarations();
    let Writer { signature, body, .. } = w;
    debug_assert!(signature.sites.len() < u32::MAX as usize, "sites are numbered with 32 bits");
    let function = Function { name, block, signature: &signature, route, ssa };
    frame.begin(&function, out);
    out.push_str(&declared);
    out.push_str(&body);
    frame.end(&function, out);
    signature
}

/// By local: how it is declared, if it is an array that is popped and read where it stands on its stack: nothing is pushed
/// there as long as it is read.
fn borrowed(ssa: &Ssa<'_>, frame: &dyn Frame) -> IdVec<LocalId, Option<String>> {
    let spilled = |stack: StackId| ssa.ops.values().any(|op| matches!(op.kind, Kind::Spill(s) if s == stack));
    let declared = ssa.locals.iter().map(|(id, local)| match &local.made_by[..] {
        [made] => match ssa.ops[*made].kind {
            Kind::Pop(stack) if !spilled(stack) => frame.borrow(id, local.elements, local.dtype),
            _ => None,
        },
        _ => None,
    });
    declared.collect()
}

/// Writes the statements of a function.
pub(in crate::backend) struct Writer<'a> {
    pub(super) frame: &'a dyn Frame,
    pub(super) ssa: &'a Ssa<'a>,
    pub(super) schedule: &'a Schedule,
    /// See [`borrowed`].
    borrowed: IdVec<LocalId, Option<String>>,
    pub(in crate::backend) signature: Signature,
    body: String,
    /// What the loop at hand has loaded: the variable of each operand that stands in memory.
    pub(super) loaded: HashMap<(u8, u32, usize, bool), String>,
    /// Elements that the loop at hand goes through.
    pub(super) turns: usize,
    indent: usize,
    names: usize,
    /// Whether the function sends lanes on.
    pub(super) routes: bool,
}

impl Writer<'_> {
    /// A line of text.
    pub(in crate::backend) fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "{:indent$}{}", "", text.as_ref(), indent = self.indent);
    }
    /// A line that opens a block.
    pub(in crate::backend) fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 4;
    }
    /// The end of a block.
    pub(in crate::backend) fn close(&mut self) {
        self.indent -= 4;
        self.line("}");
    }

    pub(super) fn fresh(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    /// The local variables that live for all of the function.
    fn declarations(&self) -> String {
        let mut out = String::new();
        for (id, local) in self.ssa.locals.iter().filter(|(id, _)| self.schedule.kept[*id]) {
            let ty = group_type(local.dtype);
            let array = if Schedule::is_array(self.ssa, id) { format!("[{}]", local.elements) } else { String::new() };
            let _ = writeln!(out, "        {ty} v{}{array};", id.index());
            if let Some(borrowed) = &self.borrowed[id] {
                let _ = writeln!(out, "        {borrowed}");
            }
        }
        out
    }

    /// The statements of a group.
    fn group(&mut self, group: &Group) {
        self.loaded.clear();
        let Some(turns) = group.turns else {
            let ops: Vec<&Op> = group.ops.iter().map(|o| &self.ssa.ops[*o]).collect();
            return self.alone(&ops);
        };
        for op in &group.ops {
            let op = &self.ssa.ops[*op];
            if let (Kind::Reduce(fold), Some((local, _))) = (op.kind, op.out) {
                self.start_of(fold, local, op);
            }
        }
        self.turns = turns;
        if turns > 1 {
            self.open(&format!("for (int e = 0; e < {turns}; e++) {{"));
        }
        let (stores, others): (Vec<&Op>, Vec<&Op>) =
            group.ops.iter().map(|o| &self.ssa.ops[*o]).partition(|op| matches!(op.kind, Kind::Store(_)));
        for op in others.into_iter().chain(stores) {
            self.in_loop(op);
            if turns == 1 {
                self.end_of(op);
            }
        }
        if turns > 1 {
            self.close();
            group.ops.iter().for_each(|o| self.end_of(&self.ssa.ops[*o]));
        }
        self.turns = 1;
        self.loaded.clear();
    }

    /// The element of a value at which the loop is, as an expression.
    pub(super) fn element(&mut self, value: &Value) -> String {
        let at = if value.spread || self.turns == 1 {
            value.offset.to_string()
        } else if value.offset == 0 {
            "e".to_owned()
        } else {
            format!("e + {}", value.offset)
        };
        self.element_at(value, &at)
    }

    /// The element of a value at a place, as an expression.
    pub(super) fn element_at(&mut self, value: &Value, at: &str) -> String {
        let (kind, id, stored) = match value.base {
            Base::Literal(scalar) => return literal(scalar),
            Base::Local(l) if self.is_borrowed(l) => (3, l.0, Stored::Stack(l)),
            Base::Local(l) => return self.local(l, at),
            Base::Slot(s) => (0, s.0, Stored::Slot(s)),
            Base::Uniform(s) => (1, s.0, Stored::Uniform(s)),
            Base::Constant(c) => (2, c.0, Stored::Constant(c)),
        };
        let key = (kind, id, value.offset, value.spread);
        // Loops of their own take each element once.
        let in_loop = at.starts_with('e') || at.bytes().all(|b| b.is_ascii_digit());
        if let Some(name) = self.loaded.get(&key).filter(|_| in_loop) {
            return name.clone();
        }
        match stored {
            Stored::Slot(s) | Stored::Uniform(s) => _ = self.signature.slots.insert(s),
            Stored::Constant(c) => _ = self.signature.constants.insert(c),
            Stored::Stack(_) => {}
        }
        let text = self.frame.load(stored, at, value.dtype);
        if !in_loop {
            return text;
        }
        let name = self.fresh();
        self.line(format!("{} {name} = {text};", group_type(value.dtype)));
        self.loaded.insert(key, name.clone());
        name
    }

    /// Whether a local variable is read where it stands on a stack.
    pub(in crate::backend) fn is_borrowed(&self, local: LocalId) -> bool {
        self.borrowed[local].is_some()
    }

    /// The element type of a local variable.
    pub(in crate::backend) fn local_type(&self, local: LocalId) -> DType {
        self.ssa.locals[local].dtype
    }

    /// An element of a local variable, as an expression.
    pub(in crate::backend) fn local(&self, local: LocalId, at: &str) -> String {
        match self.schedule.kept[local] && Schedule::is_array(self.ssa, local) {
            true => format!("v{}[{at}]", local.index()),
            false => format!("v{}", local.index()),
        }
    }

    /// Does something with each element of what is pushed.
    pub(in crate::backend) fn each_element(&mut self, op: &Op, text: impl FnOnce(&str) -> String) {
        self.open(&format!("for (int e = 0; e < {}; e++) {{", op.turns));
        self.turns = op.turns;
        let element = self.element(&op.args[0]);
        self.turns = 1;
        self.line(text(&element));
        self.loaded.clear();
        self.close();
    }

    /// Sets the element of a local at which the loop is.
    pub(super) fn set(&mut self, (local, offset): (LocalId, usize), text: &str) {
        let dtype = self.ssa.locals[local].dtype;
        if !self.schedule.kept[local] {
            return self.line(format!("{} v{} = {text};", group_type(dtype), local.index()));
        }
        let value = Value { base: Base::Local(local), offset, spread: false, dtype };
        let place = self.element(&value);
        self.line(format!("{place} = {text};"));
    }
}
