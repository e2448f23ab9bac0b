//! What is made of the program: one function for each distinct pair of a closure and the forms of its arguments. Calls ask
//! for instances; they are lowered in the order in which they were asked for, until no new ones turn up.

use std::hash::{Hash, Hasher};

use indexmap::IndexMap;

use super::ragged::Padding;
use super::shared::SharedPool;
use super::value::{Captures, ClosureId, Dims, Form};
use crate::base::{Diagnostic, Id as _, SourceMap, Span};
use crate::cfg::{FuncId, Stream, StreamId};
use crate::hir::{Expr, FnId, Program};
use crate::transform::derivative::Mode;
use crate::types::Type;

/// The code of a function value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Code<'a> {
    /// A function of the program.
    Fn(FnId),
    /// A closure that stands in a function, or a comprehension, which is one without parameters.
    Lambda(FnId, Lambda<'a>),
}

impl Code<'_> {
    /// The function whose locals and dimensions the code is written over.
    pub(super) fn home(self) -> FnId {
        match self {
            Code::Fn(id) | Code::Lambda(id, _) => id,
        }
    }
}

/// A closure expression; two are equal when they are the same piece of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lambda<'a>(pub(super) &'a Expr);

impl PartialEq for Lambda<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Lambda<'_> {}
impl Hash for Lambda<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// A function value as specialisation sees it. The variables that its varying captures are in do not matter, so that a
/// function that recursion passes on is the same one at every level.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Closure<'a> {
    pub(super) code: Code<'a>,
    /// The dimensions of its home.
    pub(super) dims: Dims,
    /// What it captured.
    pub(super) captures: Captures,
}

/// What limits check of a closure.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Closures inside closures.
    nesting: usize,
    /// Varying leaves among the captures.
    leaves: usize,
}

/// A function to be made.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Instance {
    pub(super) closure: ClosureId,
    /// One for each parameter.
    pub(super) params: Vec<Form>,
}

/// What a function of the CFG program is made of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Made {
    /// The code of a closure.
    Instance(Instance),
    /// One element of the comprehension that an instance is the loop of.
    Element(ElementOf),
    /// The derivative of another function: a placeholder.
    Derivative(DerivativeOf),
    /// A function that only calls another one, which has a derivative by hand: attempts call this one, so that a derivative of
    /// the attempt traps where the function or its rule does.
    Attempted(FuncId),
}

/// One element of a comprehension: its parameters are the indices, then what the comprehension captured.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ElementOf {
    /// The comprehension as a function: the loop.
    pub(super) instance: Instance,
    /// First and last index, the last exclusive, of each clause.
    pub(super) bounds: Vec<(i64, i64)>,
}

/// A derivative of a function of the CFG program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct DerivativeOf {
    pub(super) of: FuncId,
    pub(super) mode: Mode,
    /// One for each parameter of `of`.
    pub(super) wrt: Vec<bool>,
    /// Reverse mode: whether the cotangent of the one result is 1.
    pub(super) of_one: bool,
}

/// Functions that one program may become. Far above what people write; recursion over growing types would go on for ever.
const MAX_INSTANCES: usize = 10_000;
/// Closures that may capture one another.
const MAX_NESTING: usize = 200;
/// Parameters of one function after structs and captures are split.
const MAX_LEAVES: usize = 4_096;

/// The state of a specialisation.
pub(super) struct Specialiser<'a> {
    pub(super) program: &'a Program,
    pub(super) sources: &'a SourceMap,
    pub(super) padding: Padding,
    pub(super) shared: SharedPool,
    closures: IndexMap<Closure<'a>, Extent>,
    /// What each function is made of, and where it was first asked for.
    instances: IndexMap<Made, Span>,
    streams: IndexMap<String, Stream>,
}

impl<'a> Specialiser<'a> {
    pub(super) fn new(program: &'a Program, sources: &'a SourceMap, padding: Padding) -> Self {
        Self {
            program,
            sources,
            padding,
            shared: SharedPool::new(padding == Padding::Harmless),
            closures: IndexMap::new(),
            instances: IndexMap::new(),
            streams: IndexMap::new(),
        }
    }

    /// The number of a closure.
    ///
    /// # Errors
    /// When closures are nested too deeply or capture too much: recursion that wraps its function again and again.
    pub(super) fn closure(&mut self, closure: Closure<'a>, span: Span) -> Result<ClosureId, Box<Diagnostic>> {
        if let Some(index) = self.closures.get_index_of(&closure) {
            return Ok(ClosureId::new(index));
        }
        let mut extent = Extent { nesting: 0, leaves: closure.dims.bounded.len() };
        for (_, form) in &closure.captures {
            self.measure(form, &mut extent);
        }
        if extent.nesting > MAX_NESTING || extent.leaves > MAX_LEAVES {
            return Err(self.endless(closure.code.home(), span));
        }
        let (index, _) = self.closures.insert_full(closure, extent);
        Ok(ClosureId::new(index))
    }

    fn measure(&self, form: &Form, into: &mut Extent) {
        match form {
            Form::Static(_) => {}
            Form::Varying(_) => into.leaves = into.leaves.saturating_add(1),
            Form::Fields(fields) => fields.iter().for_each(|f| self.measure(f, into)),
            Form::Function(id) => {
                let inner = self.closures[id.index()];
                into.nesting = into.nesting.max(inner.nesting + 1);
                into.leaves = into.leaves.saturating_add(inner.leaves);
            }
        }
    }

    /// The closure with this number.
    pub(super) fn closure_of(&self, id: ClosureId) -> &Closure<'a> {
        let entry = self.closures.get_index(id.index());
        entry.expect("ids come from `closure`").0
    }

    /// The function for an instance; it is lowered later if it is new.
    pub(super) fn request(&mut self, instance: Instance, span: Span) -> Result<FuncId, Box<Diagnostic>> {
        self.request_made(Made::Instance(instance), span)
    }

    /// The function for the derivative of a function that was asked for before.
    pub(super) fn request_derivative(
        &mut self,
        derivative: DerivativeOf,
        span: Span,
    ) -> Result<FuncId, Box<Diagnostic>> {
        self.request_made(Made::Derivative(derivative), span)
    }

    /// The function that attempts call in the place of one that has a derivative by hand.
    pub(super) fn request_attempted(&mut self, of: FuncId, span: Span) -> Result<FuncId, Box<Diagnostic>> {
        self.request_made(Made::Attempted(of), span)
    }

    /// The function for one element of a comprehension.
    pub(super) fn request_element(&mut self, element: ElementOf, span: Span) -> Result<FuncId, Box<Diagnostic>> {
        self.request_made(Made::Element(element), span)
    }

    /// The function for an instance that was asked for.
    pub(super) fn instance_func(&self, instance: &Instance) -> Option<FuncId> {
        self.instances.get_index_of(&Made::Instance(instance.clone())).map(FuncId::new)
    }

    fn request_made(&mut self, made: Made, span: Span) -> Result<FuncId, Box<Diagnostic>> {
        if let Some(index) = self.instances.get_index_of(&made) {
            return Ok(FuncId::new(index));
        }
        if self.instances.len() >= MAX_INSTANCES {
            return Err(self.endless(self.home_of(&made), span));
        }
        let (index, _) = self.instances.insert_full(made, span);
        Ok(FuncId::new(index))
    }

    fn home_of(&self, made: &Made) -> FnId {
        let mut made = made;
        loop {
            match made {
                Made::Instance(instance) | Made::Element(ElementOf { instance, .. }) => {
                    return self.closure_of(instance.closure).code.home();
                }
                Made::Attempted(of) => {
                    made = self.made(*of).expect("an attempt is of a function that was asked for").0;
                }
                Made::Derivative(derivative) => {
                    made = self.made(derivative.of).expect("a derivative is of a function that was asked for").0;
                }
            }
        }
    }

    /// What a function is made of and where it was first asked for, if that many were asked for.
    pub(super) fn made(&self, func: FuncId) -> Option<(&Made, Span)> {
        self.instances.get_index(func.index()).map(|(made, span)| (made, *span))
    }

    /// How many functions were asked for.
    pub(super) fn len(&self) -> usize {
        self.instances.len()
    }

    fn endless(&self, home: FnId, span: Span) -> Box<Diagnostic> {
        let name = &self.program.function(home).name;
        let message = format!("`{name}` would have to be made for too many sizes or functions");
        Box::new(
            Diagnostic::error("E0805", message, span, "this call needs a new one")
                .with_note("dimensions, shared values and functions that are passed are fixed when a program is specialised")
                .with_help("let recursion pass its dimensions, shared values and functions on unchanged, or stop it by an `if` on dimensions"),
        )
    }

    /// The stream of this name.
    ///
    /// # Errors
    /// When it has other fields elsewhere.
    pub(super) fn stream(
        &mut self,
        name: &str,
        fields: Vec<(String, Type)>,
        span: Span,
    ) -> Result<StreamId, Box<Diagnostic>> {
        if let Some((index, _, stream)) = self.streams.get_full(name) {
            if stream.fields == fields {
                return Ok(StreamId::new(index));
            }
            let describe = |fields: &[(String, Type)]| {
                let fields = fields.iter().map(|(name, ty)| format!("{name}: {ty}"));
                fields.collect::<Vec<_>>().join(", ")
            };
            let message = format!("the stream `{name}` gets records of two kinds");
            let label = format!("here ({})", describe(&fields));
            let note = format!("elsewhere ({})", describe(&stream.fields));
            return Err(Box::new(
                Diagnostic::error("E0806", message, span, label)
                    .with_note(note)
                    .with_help("emit to two streams with different names"),
            ));
        }
        let stream = Stream { name: name.to_owned(), fields };
        let (index, _) = self.streams.insert_full(name.to_owned(), stream);
        Ok(StreamId::new(index))
    }

    /// The shared values and the streams.
    pub(super) fn into_parts(self) -> (SharedPool, Vec<Stream>) {
        (self.shared, self.streams.into_values().collect())
    }
}
