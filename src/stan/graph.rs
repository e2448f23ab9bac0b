//! What lanes compute, as a graph: every value is made once by a node, of known values and elements of other nodes.
//! Assignments, indices, loops and calls are gone: the host has run them.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexMap;
use smallvec::SmallVec;

use super::value::{Elem, NodeId, Val, What};
use crate::base::{HashMap, Id as _, IdVec, Span};
use crate::types::Array;

/// What a node does with its operands.
#[derive(Clone, Hash, Debug)]
#[allow(clippy::derived_hash_with_manual_eq, reason = "equality is that of the names, told sooner where they are one")]
pub(super) enum Op {
    /// `q[first..first + n]` of the unconstrained parameters, or `q[first]`.
    Parameters { first: usize },
    /// `a + b` and its kin.
    Infix(&'static str),
    /// `int(a < b)` and its kin.
    Compare(&'static str),
    /// `-a`
    Negate,
    /// `f(a, b, 3, 4)`: a function of the language or its library, then extents.
    Call(Arc<str>, Vec<usize>),
    /// `f(|x| …, a, b)`: a function of the language that takes a function, and the closure that it gets.
    CallWith(Arc<str>, Arc<str>),
    /// What a closure is given.
    Input(Arc<str>),
    /// `int(f(a, b))`: of a function that gives bools.
    CallBool(Arc<str>),
    /// `loop_1(a, b)`: a function that the text has for what lanes decide.
    Routine(Arc<Routine>),
    /// `a[i, j]`, counted from 0; the operands after the first are the indices.
    At,
    /// `select(c != 0, a, b)`.
    Select,
    /// `assert(c != 0, "…")`, with holes for the operands after the condition.
    Assert(Arc<[Arc<str>]>),
    /// `print("…")`, with holes for the operands; if so said, after a condition, which is the first of them.
    Print(Arc<[Arc<str>]>, bool),
}

/// Whether two names are the same; as a rule they are one, and nothing is compared.
fn same_name(a: &str, b: &str) -> bool {
    std::ptr::eq(a, b) || a == b
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Op::Parameters { first: a }, Op::Parameters { first: b }) => a == b,
            (Op::Infix(a), Op::Infix(b)) | (Op::Compare(a), Op::Compare(b)) => same_name(a, b),
            (Op::Negate, Op::Negate) | (Op::At, Op::At) | (Op::Select, Op::Select) => true,
            (Op::Call(a, x), Op::Call(b, y)) => same_name(a, b) && x == y,
            (Op::CallWith(a, x), Op::CallWith(b, y)) => same_name(a, b) && same_name(x, y),
            (Op::Input(a), Op::Input(b)) | (Op::CallBool(a), Op::CallBool(b)) => same_name(a, b),
            (Op::Routine(a), Op::Routine(b)) => a == b,
            (Op::Assert(a), Op::Assert(b)) => a == b,
            (Op::Print(a, x), Op::Print(b, y)) => a == b && x == y,
            _ => false,
        }
    }
}
impl Eq for Op {}

impl Op {
    /// Whether it is a random draw: no two of them are the same.
    pub(super) fn draws(&self) -> bool {
        matches!(self, Op::Call(name, _) | Op::CallWith(name, _) if name.ends_with("_rng"))
    }
}

/// A function of the text whose turns or calls lanes decide, as it is called.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Routine {
    pub(super) name: Arc<str>,
    /// What it is given after the operands: names of tables, with commas before them.
    pub(super) tables: Arc<str>,
    /// What stands for its value where the first operand, a condition, does not hold; without it there is no such operand.
    pub(super) otherwise: Option<Arc<str>>,
    /// Whether it does more than to give a value.
    pub(super) acts: bool,
}

/// An operand.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    Scalar(Elem),
    Known(Arc<Array>),
    Whole(NodeId),
    Elements(Arc<Vec<Elem>>, Vec<usize>),
    /// The first so many of these elements, and zeros in the places of the others: a row of what grows from turn to turn.
    Prefix(Arc<Vec<Elem>>, usize),
}

impl Arg {
    pub(super) fn of(value: &Val) -> Arg {
        match &value.what {
            What::Known(array) => Arg::Known(array.clone()),
            What::Scalar(elem) => Arg::Scalar(*elem),
            What::Whole(node) if value.is_scalar() => Arg::Scalar(Elem::Of(*node, 0)),
            What::Whole(node) => Arg::Whole(*node),
            What::Elements(elems) => Arg::Elements(elems.list().clone(), value.shape.clone()),
            What::Parts(_) => unreachable!("no operation takes a tuple or a complex number"),
            What::Counted(_) => unreachable!("operations take as many elements as there can be"),
        }
    }
    /// The nodes that it reads.
    pub(super) fn sources(&self) -> impl Iterator<Item = NodeId> + '_ {
        let of = |elem: &Elem| if let Elem::Of(node, _) = elem { Some(*node) } else { None };
        let (one, many): (Option<NodeId>, &[Elem]) = match self {
            Arg::Scalar(elem) => (of(elem), &[]),
            Arg::Known(_) => (None, &[]),
            Arg::Whole(node) => (Some(*node), &[]),
            Arg::Elements(elems, _) => (None, elems),
            Arg::Prefix(elems, n) => (None, &elems[..*n]),
        };
        one.into_iter().chain(many.iter().filter_map(of))
    }
}

impl PartialEq for Arg {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Arg::Scalar(a), Arg::Scalar(b)) => a == b,
            (Arg::Known(a), Arg::Known(b)) => Arc::ptr_eq(a, b),
            (Arg::Whole(a), Arg::Whole(b)) => a == b,
            (Arg::Elements(a, s), Arg::Elements(b, t)) => s == t && (Arc::ptr_eq(a, b) || a == b),
            (Arg::Prefix(a, n), Arg::Prefix(b, m)) => n == m && (Arc::ptr_eq(a, b) || a == b),
            _ => false,
        }
    }
}
impl Eq for Arg {}
impl Hash for Arg {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Arg::Scalar(elem) => elem.hash(state),
            Arg::Known(array) => Arc::as_ptr(array).hash(state),
            Arg::Whole(node) => node.hash(state),
            Arg::Elements(elems, shape) => (elems, shape).hash(state),
            Arg::Prefix(elems, n) => (elems, n).hash(state),
        }
    }
}

/// The operands of a node: most have two at most, and there are so many nodes that each allocation counts.
pub(super) type Args = SmallVec<[Arg; 2]>;

crate::define_id!(
    /// Where in a program a node was made: a place and the calls around it.
    #[allow(unreachable_pub, reason = "the macro makes public ids")]
    SiteId, "site"
);

crate::define_id!(
    /// A turn of a loop, in the turns of the loops around it. 0 is outside of all loops.
    #[allow(unreachable_pub, reason = "the macro makes public ids")]
    TurnId, "turn"
);

/// A turn of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The turn around it; its own id outside of all loops.
    pub(super) outer: TurnId,
    /// How many loops are around.
    pub(super) depth: u32,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) args: Args,
    pub(super) shape: Vec<usize>,
    pub(super) int: bool,
    pub(super) site: SiteId,
    pub(super) turn: TurnId,
}

/// The nodes, each after those that it reads.
#[derive(Debug)]
pub(super) struct Graph {
    /// Whether it is that of one of many data sets, whose graphs should differ in numbers alone.
    pub(super) of_many: bool,
    pub(super) nodes: IdVec<NodeId, Node>,
    pub(super) sites: IdVec<SiteId, Span>,
    pub(super) turns: IdVec<TurnId, Turn>,
    /// `assert` and `print`, in their order.
    pub(super) effects: Vec<NodeId>,
    /// What the program calls the values of nodes.
    names: Vec<Option<Arc<str>>>,
    /// What the program calls known arrays, by where they are; each is kept, lest another come to be there.
    pub(super) known: HashMap<*const Array, (Arc<Array>, Arc<str>)>,
    /// Values that closures read.
    pub(super) tables: IndexMap<String, Array>,
    /// Nodes by a hash of what they do. Of two that have the same hash the later one is behind the next number that is free.
    made: HashMap<u64, NodeId>,
    site_ids: HashMap<(Span, u32), SiteId>,
}

impl Graph {
    /// An empty one; of one of many data sets, or of one alone.
    pub(super) fn of(of_many: bool) -> Graph {
        let mut turns = IdVec::new();
        turns.push(Turn { outer: TurnId(0), depth: 0 });
        Graph {
            of_many,
            nodes: IdVec::new(),
            sites: IdVec::new(),
            turns,
            effects: Vec::new(),
            names: Vec::new(),
            known: HashMap::default(),
            tables: IndexMap::new(),
            made: HashMap::default(),
            site_ids: HashMap::default(),
        }
    }

    /// The site of a place, in these calls.
    pub(super) fn site(&mut self, span: Span, calls: u32) -> SiteId {
        let sites = &mut self.sites;
        *self.site_ids.entry((span, calls)).or_insert_with(|| sites.push(span))
    }

    /// Notes what the program calls a value; of a node the first name stays.
    pub(super) fn call(&mut self, name: &Arc<str>, value: &Val) {
        match &value.what {
            What::Whole(node) => self.call_node(name, *node),
            What::Scalar(Elem::Of(node, 0)) if self.nodes[*node].shape.is_empty() => self.call_node(name, *node),
            What::Known(array) => {
                self.known.insert(Arc::as_ptr(array), (array.clone(), name.clone()));
            }
            What::Parts(parts) if value.is_complex() => {
                for (part, end) in parts.iter().zip(["re", "im"]) {
                    self.call(&format!("{name}_{end}").into(), part);
                }
            }
            _ => {}
        }
    }

    fn call_node(&mut self, name: &Arc<str>, node: NodeId) {
        if self.names.len() <= node.index() {
            self.names.resize(node.index() + 1, None);
        }
        self.names[node.index()].get_or_insert_with(|| name.clone());
    }

    /// What the program calls the value of a node.
    pub(super) fn name(&self, node: NodeId) -> Option<&Arc<str>> {
        self.names.get(node.index())?.as_ref()
    }

    /// Adds a node, unless there is one that does the same; draws and effects are made anew each time.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        let effect = match &node.op {
            Op::Assert(_) | Op::Print(..) => true,
            Op::Routine(routine) => routine.acts,
            _ => false,
        };
        let again = effect || node.op.draws();
        if again {
            let id = self.nodes.push(node);
            self.effects.extend(effect.then_some(id));
            return id;
        }
        let mut hash = self.made.hasher().hash_one((&node.op, &node.args));
        loop {
            match self.made.entry(hash) {
                Entry::Vacant(free) => return *free.insert(self.nodes.push(node)),
                Entry::Occupied(mut made) => {
                    let other = &self.nodes[*made.get()];
                    if other.op != node.op || other.args != node.args {
                        hash = hash.wrapping_add(1);
                        continue;
                    }
                    if other.shape != node.shape || other.int != node.int {
                        made.insert(self.nodes.push(node));
                    }
                    return *made.get();
                }
            }
        }
    }

    /// Forgets the nodes from here on, and their effects.
    pub(super) fn forget(&mut self, nodes: usize, effects: usize) {
        let kept: Vec<Node> = self.nodes.as_slice()[..nodes].to_vec();
        self.nodes = kept.into();
        self.effects.truncate(effects);
        self.names.truncate(nodes);
        self.made.retain(|_, id| id.index() < nodes);
    }

    /// Whether lanes do more here than to compute values.
    pub(super) fn acts(&self) -> bool {
        !self.effects.is_empty() || self.nodes.values().any(|node| node.op.draws())
    }
}
