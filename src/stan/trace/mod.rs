//! Running a Stan program on the host, with its data: what depends on data alone is computed, and what is left is a
//! [graph](super::graph) of what lanes compute. Loops turn here, calls are made here, arrays are filled here; so indices
//! and sizes are numbers wherever lanes have no part in them.

mod broadcast;
mod call;
mod called;
mod complex;
mod constants;
mod constrained;
mod counted;
mod declare;
mod demands;
mod densities;
mod draws;
mod expr;
mod flow;
mod higher;
mod index;
mod inverse;
mod laplace;
mod library;
mod loop_routine;
mod loops;
mod made_of;
mod matrices;
mod operators;
mod ops;
mod parameters;
mod recursion;
mod routine;
mod scope;
mod shapes;
mod sizes;
mod sparse;
mod stmt;
mod supports;
mod tails;
mod transforms;
mod tuple;

use std::sync::Arc;

use super::check::Checked;
use super::graph::{Arg, Graph, Turn};
use super::syntax::ast;
use super::value::{Elem, Kind, Val};
use crate::base::{HashMap, HashSet, Span};
use crate::types::{Array, Type};

use scope::{Frame, Scope, Variable};

pub(in crate::stan) use declare::Declared;
pub use inverse::Taken;

/// Computes functions of the language's library on the host.
pub trait HostFunctions {
    /// The value of an expression of the language, of a type, in which the arguments are `a0`, `a1`, …; `draw`: of one that
    /// draws, which of the draws of the program it is.
    ///
    /// # Errors
    /// Where it traps: why.
    fn evaluate(
        &mut self,
        expression: &str,
        args: &[Array],
        ty: &Type,
        draw: Option<u64>,
    ) -> std::result::Result<Array, String>;

    /// Whether the translation is one of many data sets, which should differ in numbers alone: so what an array looks like
    /// does not hang on its values.
    fn is_of_many(&self) -> bool {
        false
    }
}

/// Why a program cannot be run on the host.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Whether the program is right, but asks for what is not there yet.
    pub(super) unsupported: bool,
    /// What somebody around is to do instead of telling it.
    again: Option<recursion::Again>,
    /// What else is wrong, of the data.
    pub(super) others: Vec<Problem>,
}

pub(super) type Result<T> = std::result::Result<T, Box<Problem>>;

/// A mistake in the program or the data.
pub(super) fn wrong<T>(span: Span, message: impl Into<String>) -> Result<T> {
    let message = message.into();
    Err(Box::new(Problem { span, message, help: None, unsupported: false, again: None, others: vec![] }))
}

/// What is right, but not there yet.
pub(super) fn unsupported<T>(span: Span, what: impl std::fmt::Display) -> Result<T> {
    let message = format!("{what}: known, not supported yet");
    Err(Box::new(Problem { span, message, help: None, unsupported: true, again: None, others: vec![] }))
}

/// How many nodes a program may make: more is no program to compile.
const MAX_NODES: usize = 20_000_000;
/// How deep calls of functions go.
const MAX_CALLS: usize = 500;

/// A term of the log density.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) value: Elem,
    /// The statement that adds it.
    pub(super) span: Span,
}

/// A run of a program.
pub(super) struct Tracer<'a> {
    functions: Vec<&'a ast::Function>,
    checked: &'a Checked,
    host: &'a mut (dyn HostFunctions + Send),
    pub(super) graph: Graph,
    /// Names of functions of the language, each of which is there once.
    words: HashSet<Arc<str>>,
    frames: Vec<Frame>,
    /// Scopes that ended, to be opened again.
    ended: Vec<Arc<Scope>>,
    turn: super::graph::TurnId,
    /// The calls around, as a number, and the numbers that there are.
    calls: u32,
    call_ids: HashMap<(u32, Span), u32>,
    depth: usize,
    /// What is data in the calls of functions of the program that are under way.
    levels: Vec<call::Levels>,
    closures: usize,
    /// Functions of the text that were written, and what tells their names from those of another function's.
    pub(super) routines: routine::Routines,
    /// Calls of functions of the program that decide by themselves how deep they go.
    recursion: recursion::Recursion,
    /// Conditions of lanes under which the current statement runs.
    guards: Vec<Val>,
    pub(super) target: Vec<Term>,
    /// Whether densities leave out what is constant, where the program says so.
    pub(super) leaves_out: bool,
    /// Whether the density that is being computed may: in a function of the program, if it was called so.
    unnormalized: bool,
    /// The sum of what statements `~` leave out.
    pub(super) left_out: f64,
    /// Whether what is run is part of the log density.
    pub(super) in_density: bool,
    /// Whether what is run is made of draws: generated quantities.
    pub(super) in_quantities: bool,
    /// Whether what runs knows no lanes: `print` prints here and now, and draws are made.
    pub(super) before_lanes: bool,
    /// The draws that were made so.
    drawn: u64,
    /// Values of which it was demanded what the words say.
    demanded: HashSet<(Arc<str>, Arg)>,
    /// Lines that were printed so.
    pub(super) printed: Vec<String>,
    /// The unconstrained parameters, where one point is run on the host.
    pub(super) point: Option<Vec<f64>>,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(
        program: &'a ast::Program,
        checked: &'a Checked,
        host: &'a mut (dyn HostFunctions + Send),
    ) -> Tracer<'a> {
        Tracer {
            functions: program.functions.iter().flat_map(|f| &f.items).collect(),
            checked,
            graph: Graph::of(host.is_of_many()),
            host,
            words: HashSet::default(),
            frames: vec![vec![Arc::default()]],
            ended: Vec::new(),
            turn: crate::stan::graph::TurnId(0),
            calls: 0,
            call_ids: HashMap::default(),
            depth: 0,
            levels: Vec::new(),
            closures: 0,
            routines: routine::Routines::default(),
            recursion: recursion::Recursion::default(),
            guards: Vec::new(),
            target: Vec::new(),
            leaves_out: false,
            unnormalized: true,
            left_out: 0.0,
            in_density: true,
            in_quantities: false,
            before_lanes: false,
            drawn: 0,
            demanded: HashSet::default(),
            printed: Vec::new(),
            point: None,
        }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("there is always a frame")
    }

    fn lookup(&self, name: &str) -> Option<&Variable> {
        self.frames.last().expect("there is always a frame").iter().rev().find_map(|scope| scope.get(name))
    }

    fn lookup_mut(&mut self, name: &str) -> Option<&mut Variable> {
        let frame = self.frame();
        let scope = frame.iter().rposition(|scope| scope.get(name).is_some())?;
        Arc::make_mut(&mut frame[scope]).get_mut(name)
    }

    /// The value of a variable.
    pub(super) fn value(&self, name: &str) -> Option<&Val> {
        self.lookup(name).map(|v| &v.value)
    }

    /// The name of a function of the language.
    fn word(&mut self, name: &str) -> Arc<str> {
        if let Some(word) = self.words.get(name) {
            return word.clone();
        }
        let word: Arc<str> = name.into();
        self.words.insert(word.clone());
        word
    }

    /// Declares a variable in the innermost scope.
    pub(super) fn bind(&mut self, name: &Arc<str>, value: Val) {
        let scope = self.frame().last_mut().expect("a frame has a scope");
        Arc::make_mut(scope).insert(name, Variable { value });
    }

    /// Notes the names of the known arrays that there are now.
    pub(super) fn name_known(&mut self) {
        let scopes = self.frames.last().expect("there is always a frame");
        let mut all: Vec<(Arc<str>, Val)> =
            scopes.iter().flat_map(|s| s.iter().map(|(name, v)| (name.clone(), v.value.clone()))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, value) in all.iter().filter(|(_, value)| value.is_known()) {
            self.graph.call(name, value);
        }
    }

    /// Runs something in a scope of its own.
    fn scoped<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = self.ended.pop().unwrap_or_default();
        self.frame().push(scope);
        let done = run(self);
        if let Some(mut ended) = self.frame().pop()
            && let Some(scope) = Arc::get_mut(&mut ended)
        {
            scope.clear();
            self.ended.push(ended);
        }
        done
    }

    /// Begins a loop, or goes to its next turn.
    fn turned<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = self.turn;
        let depth = self.graph.turns[outer].depth + 1;
        self.turn = self.graph.turns.push(Turn { outer, depth });
        let done = self.scoped(run);
        self.turn = outer;
        done
    }

    /// What a variable of this kind and shape holds before it is assigned: NaN, or the least int of 32 bits.
    pub(super) fn unset(kind: Kind, shape: Vec<usize>) -> Val {
        if kind.is_complex() {
            let part = Tracer::unset(kind.real(), shape);
            return Val::complex(part.clone(), part);
        }
        let n: usize = shape.iter().product();
        let array = if kind.is_int() {
            Array::int(shape.iter().copied(), vec![i64::from(i32::MIN); n])
        } else {
            Array::real(shape.iter().copied(), vec![f64::NAN; n])
        };
        Val::known(kind, array)
    }
}
