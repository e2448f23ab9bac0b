//! From the graph to a text of our language. Nodes that one place of the program made, turn after turn, become one
//! comprehension; where they depend on one another, a loop. What differs between them and is known stands in tables, which
//! all lanes share.

mod group;
mod growing;
mod marks;
mod packing;
mod pattern;
mod places;
mod pool;
mod read;
mod region;
mod routine;
mod sums;

use std::sync::Arc;

use indexmap::IndexMap;
use smallvec::SmallVec;

use super::graph::{Arg, Graph, Node, Op, SiteId, TurnId};
use super::value::{Elem, NodeId, Val};
use crate::base::{HashMap, HashSet, Id as _, Span};
use crate::types::{Array, ArrayData, Scalar};

use places::Places;

pub(super) use marks::{before, unmarked};
pub(super) use packing::{Packing, Part};
pub(super) use routine::{Body, LoopBody, LoopHead, Slot, Text, marker, plain_name, shared_marker};

/// The graph with its running sums as sums, and what grows from turn to turn as rows of one length.
pub(super) fn simplified(graph: &mut Graph, results: &[Val], summed: &[Elem]) {
    sums::with_sums(graph, results, summed);
    growing::with_prefixes(graph);
}

/// How tightly an expression binds: parentheses stand where an operand binds less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    Add,
    Multiply,
    Negate,
    Power,
    Atom,
}

/// A text and how tightly it binds.
#[derive(Clone, Debug)]
struct Code {
    text: String,
    level: Level,
}

impl Code {
    fn atom(text: impl Into<String>) -> Code {
        Code { text: text.into(), level: Level::Atom }
    }
    /// The same, known to come from a place of the program.
    fn of(self, span: Span) -> Code {
        Code { text: marks::marked(&self.text, span), ..self }
    }
    /// As an operand that must bind at least so tightly.
    fn at(&self, level: Level) -> String {
        if self.level < level { marks::within(&self.text, |text| format!("({text})")) } else { self.text.clone() }
    }
}

/// What an operation with these operands looks like.
fn written(op: &Op, args: &[Code]) -> Code {
    let list = |args: &[Code]| args.iter().map(|a| a.text.as_str()).collect::<Vec<_>>().join(", ");
    match op {
        Op::Infix(sign) => {
            let (level, left, right) = match *sign {
                "+" => (Level::Add, Level::Add, Level::Multiply),
                "-" => (Level::Add, Level::Add, Level::Multiply),
                "^" => (Level::Power, Level::Atom, Level::Power),
                _ => (Level::Multiply, Level::Multiply, Level::Negate),
            };
            Code { text: format!("{} {sign} {}", args[0].at(left), args[1].at(right)), level }
        }
        Op::Compare(sign) => Code::atom(format!("int({} {sign} {})", args[0].at(Level::Add), args[1].at(Level::Add))),
        Op::Negate => Code { text: format!("-{}", args[0].at(Level::Power)), level: Level::Negate },
        Op::Call(name, extents) => {
            let mut all: Vec<String> = args.iter().map(|a| a.text.clone()).collect();
            all.extend(extents.iter().map(usize::to_string));
            Code::atom(format!("{name}({})", all.join(", ")))
        }
        Op::CallBool(name) => Code::atom(format!("int({name}({}))", list(args))),
        Op::At => Code::atom(format!("{}[{}]", args[0].at(Level::Atom), list(&args[1..]))),
        Op::Select => Code::atom(format!("select({}, {}, {})", holds(&args[0]), args[1].text, args[2].text)),
        Op::Routine(routine) => {
            let operands = &args[usize::from(routine.otherwise.is_some())..];
            let call = format!("{}({}{})", routine.name, list(operands), routine.tables).replace("(, ", "(");
            match &routine.otherwise {
                Some(otherwise) => {
                    let text = format!("if {} {{ {call} }} else {{ {otherwise} }}", holds(&args[0]));
                    Code { text, level: Level::Add }
                }
                None => Code::atom(call),
            }
        }
        Op::CallWith(name, closure) => Code::atom(format!("{name}({closure}, {})", list(args))),
        Op::Input(name) => Code::atom(&**name),
        Op::Parameters { .. } | Op::Assert(_) | Op::Print(..) => unreachable!("written where it stands"),
    }
}

/// An int as a condition.
fn holds(code: &Code) -> String {
    marks::within(&code.text, |text| match text.strip_prefix("int(").and_then(|t| t.strip_suffix(')')) {
        // The whole must be one conversion of a condition.
        Some(inner) if balanced(inner) && !inner.is_empty() && is_condition(inner) => inner.to_owned(),
        _ => format!("{} != 0", Code { text: text.to_owned(), level: code.level }.at(Level::Add)),
    })
}

fn is_condition(text: &str) -> bool {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '<' | '>' | '=' | '!' if depth == 0 => return i > 0,
            _ => {}
        }
    }
    text.starts_with("is_nan(")
}

fn balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    for c in text.chars() {
        depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// An operation whose operands are `a0`, `a1`, …
pub(super) fn expression(op: &Op, args: usize) -> String {
    let args: Vec<Code> = (0..args).map(|i| Code::atom(format!("a{i}"))).collect();
    written(op, &args).text
}

/// A real that reads back as the same number.
fn real_literal(x: f64) -> Code {
    if x.is_nan() {
        return Code::atom("not_a_number()");
    }
    if x.is_infinite() {
        return Code::atom(if x > 0.0 { "positive_infinity()" } else { "negative_infinity()" });
    }
    let level = if x.is_sign_negative() { Level::Negate } else { Level::Atom };
    Code { text: format!("{x:?}"), level }
}

/// A number as it is written.
pub(super) fn number(x: Scalar) -> String {
    match x {
        Scalar::Int(i) => int_literal(i).text,
        Scalar::Real(x) => real_literal(x).text,
        Scalar::Bool(b) => b.to_string(),
    }
}

fn int_literal(i: i64) -> Code {
    Code { text: i.to_string(), level: if i < 0 { Level::Negate } else { Level::Atom } }
}

/// What tells arrays apart: extents, the type of elements, and their bits.
fn bits(array: &Array) -> Vec<u64> {
    let mut key: Vec<u64> = array.shape.iter().map(|n| *n as u64).collect();
    match &array.data {
        ArrayData::Int(v) => {
            key.push(u64::MAX);
            key.extend(v.iter().map(|i| *i as u64));
        }
        ArrayData::Real(v) => {
            key.push(u64::MAX - 1);
            key.extend(v.iter().map(|x| x.to_bits()));
        }
        ArrayData::Bool(_) => unreachable!("there are no bools in Stan"),
    }
    key
}

/// The names of known arrays; of those that are alike the first in the alphabet.
fn program_names(graph: &Graph) -> HashMap<Vec<u64>, Arc<str>> {
    let mut names: HashMap<Vec<u64>, Arc<str>> = HashMap::default();
    for (array, name) in graph.known.values() {
        let of_array = names.entry(bits(array)).or_insert_with(|| name.clone());
        if *name < *of_array {
            *of_array = name.clone();
        }
    }
    names
}

/// Where the values of some nodes are: an array whose leading axes count the nodes.
#[derive(Clone, Debug)]
struct Container {
    name: String,
    lead: Vec<usize>,
    shape: Vec<usize>,
}

/// A loop that is being written.
struct Loop {
    var: String,
    extent: usize,
    /// How many rows arrays that are kept have before its first turn.
    lag: usize,
    /// For a node of the first turn those of all turns of this loop and the ones around it.
    align: HashMap<NodeId, Arc<Vec<NodeId>>>,
    /// Nodes whose values are there in the current turn only.
    locals: Vec<NodeId>,
    /// Where loops around keep what this one keeps for itself.
    outer: HashMap<NodeId, (usize, usize)>,
}

/// Where a value of the current turn of a loop is.
#[derive(Clone, Copy, Debug)]
struct Local {
    container: usize,
    at: usize,
    /// The loop, and which point of it and the loops around the node is of.
    level: usize,
    point: usize,
}

/// What cannot be written in one loop: it is written turn after turn.
#[derive(Debug)]
struct Irregular;

type Written<T> = Result<T, Irregular>;

/// A line of the text, and the place of the Stan program that it comes from.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) indent: usize,
    pub(super) span: Option<Span>,
}

impl Line {
    /// Its text, marked as of its place.
    pub(super) fn marked(self) -> String {
        self.span.map_or(self.text.clone(), |span| marks::marked(&self.text, span))
    }
}

/// Writes the nodes of a graph.
pub(super) struct Emitter<'g> {
    graph: &'g Graph,
    /// How often the value of a node is read, by operands and results.
    uses: Vec<u32>,
    /// Who reads it, of operands; who is written where it is read counts as its own reader.
    readers: Vec<SmallVec<[NodeId; 4]>>,
    /// Whether a result reads it, or what is written where a result is.
    is_result: Vec<bool>,
    /// Whether it is written where it is read.
    deferred: Vec<bool>,
    /// Nodes that something needs.
    live: Vec<bool>,
    containers: Vec<Container>,
    places: Places,
    /// Arrays of elements that lie about in others, by where these are. They are made outside of loops alone, where no
    /// container is ever taken back.
    pools: HashMap<pool::Gathered, usize>,
    /// Arrays that are put together and read in many places, in the same way.
    rows: HashMap<pool::Rows, usize>,
    /// The keys of `places`, in the order in which they came.
    written: Vec<NodeId>,
    /// Arrays that the loops that are being written fill, and whether they are of ints.
    kept: Vec<(usize, bool)>,
    loops: Vec<Loop>,
    locals: HashMap<NodeId, Local>,
    tables: IndexMap<String, Array>,
    table_names: HashMap<Vec<u64>, String>,
    /// What the program calls known arrays.
    program_names: HashMap<Vec<u64>, Arc<str>>,
    prefix: String,
    /// What names of tables begin with.
    table_prefix: String,
    /// What the values that a routine is given are called.
    inputs: HashMap<Arc<str>, String>,
    next_name: usize,
    /// Names that are taken: those of functions that are called, too.
    taken: HashSet<String>,
    pub(super) lines: Vec<Line>,
}

/// Words of the language: no name is one.
pub(super) const WORDS: &[&str] = &[
    "as",
    "assert",
    "bool",
    "break",
    "const",
    "continue",
    "derivative",
    "else",
    "emit",
    "false",
    "fn",
    "for",
    "if",
    "in",
    "int",
    "let",
    "mut",
    "print",
    "pub",
    "real",
    "return",
    "shared",
    "struct",
    "true",
    "use",
    "while",
];

/// What the text calls by these names, wherever it is.
const OWN: &[&str] = &[
    "q",
    "i",
    "t0",
    "t1",
    "t2",
    "fill",
    "concat",
    "reshape",
    "sum",
    "select",
    "all",
    "min",
    "max",
    "attempt",
    "value_and_grad",
    "positive_infinity",
    "negative_infinity",
    "not_a_number",
    "log_density",
    "parameters",
];

/// Names that no value may have: words of the language, and functions that are called.
fn taken(graph: &Graph) -> HashSet<String> {
    let called = graph.nodes.values().filter_map(|node| match &node.op {
        Op::Call(name, _) | Op::CallBool(name) | Op::CallWith(name, _) => Some(name.to_string()),
        Op::Routine(routine) => Some(routine.name.to_string()),
        _ => None,
    });
    let tables = graph.tables.keys().cloned();
    WORDS.iter().chain(OWN).map(|word| (*word).to_owned()).chain(called).chain(tables).collect()
}

/// Of the nodes of a place one in so many is needed, or all others stay out.
const MOST_DEAD: usize = 4;

/// The deepest expression that is written in one piece.
const MAX_DEPTH: u32 = 24;

impl<'g> Emitter<'g> {
    /// An emitter for what these results need, and all effects. `summed` are results that only a sum reads.
    pub(super) fn new(graph: &'g Graph, results: &[Val], summed: &[Elem], prefix: &str) -> Emitter<'g> {
        let n = graph.nodes.len();
        let mut emitter = Emitter {
            graph,
            uses: vec![0; n],
            readers: vec![SmallVec::new(); n],
            is_result: vec![false; n],
            deferred: vec![false; n],
            live: vec![false; n],
            containers: Vec::new(),
            places: Places::of(n),
            pools: HashMap::default(),
            rows: HashMap::default(),
            written: Vec::new(),
            kept: Vec::new(),
            loops: Vec::new(),
            locals: HashMap::default(),
            tables: graph.tables.clone(),
            table_names: HashMap::default(),
            program_names: program_names(graph),
            prefix: prefix.to_owned(),
            table_prefix: String::new(),
            inputs: HashMap::default(),
            next_name: 0,
            taken: taken(graph),
            lines: Vec::new(),
        };
        // What routines read by the program's names is read by these here, too.
        for (name, array) in &graph.tables {
            let key = bits(array);
            if emitter.program_names.get(&key).is_some_and(|own| **own == **name) {
                emitter.table_names.insert(key, name.clone());
            }
        }
        emitter.count_uses(results, summed);
        emitter
    }

    fn node(&self, id: NodeId) -> &'g Node {
        &self.graph.nodes[id]
    }

    /// The place of the program that a node comes from.
    fn span(&self, id: NodeId) -> Span {
        self.graph.sites[self.node(id).site]
    }

    fn count_uses(&mut self, results: &[Val], summed: &[Elem]) {
        let graph = self.graph;
        for id in &graph.effects {
            self.live[id.index()] = true;
        }
        for source in results.iter().map(Arg::of).collect::<Vec<_>>().iter().flat_map(Arg::sources) {
            // A result is never written where it is read.
            self.uses[source.index()] += 2;
            self.live[source.index()] = true;
            self.is_result[source.index()] = true;
        }
        for elem in summed {
            if let Elem::Of(node, _) = elem {
                self.uses[node.index()] += 1;
                self.live[node.index()] = true;
                self.is_result[node.index()] = true;
            }
        }
        self.live_rows();
        for index in (0..graph.nodes.len()).rev() {
            if !self.live[index] {
                continue;
            }
            let id = NodeId::new(index);
            for arg in &self.node(id).args {
                // What an array is put together of is written before.
                let uses = if matches!(arg, Arg::Elements(..) | Arg::Prefix(..)) { 2 } else { 1 };
                for source in arg.sources() {
                    self.live[source.index()] = true;
                    self.uses[source.index()] += uses;
                    self.readers[source.index()].push(id);
                }
            }
        }
        self.defer();
        self.resolve_readers();
    }

    /// Marks what lives, and where turns of an outer loop need differently many of the nodes of one place, all of these:
    /// turns that do the same are one loop. Where most nodes of a place are not needed, they stay out.
    fn live_rows(&mut self) {
        for index in (0..self.graph.nodes.len()).rev() {
            if self.live[index] {
                let sources = self.graph.nodes[NodeId::new(index)].args.iter().flat_map(Arg::sources);
                sources.for_each(|source| self.live[source.index()] = true);
            }
        }
        // For each place the turns of the outermost loop, which come one after the other.
        let mut rows: Vec<Vec<(TurnId, usize, usize)>> = vec![Vec::new(); self.graph.sites.len()];
        for (id, node) in self.graph.nodes.iter() {
            if self.graph.turns[node.turn].depth >= 2 {
                let (turn, row) = (self.turn_at(id, 1), &mut rows[node.site.index()]);
                let live = usize::from(self.live[id.index()]);
                match row.last_mut() {
                    Some((last, some, all)) if *last == turn => (*some, *all) = (*some + live, *all + 1),
                    _ => row.push((turn, live, 1)),
                }
            }
        }
        let is_uneven = |row: &Vec<(TurnId, usize, usize)>| {
            let (live, all) = row.iter().fold((0, 0), |(live, all), (_, l, a)| (live + l, all + a));
            let same = row.iter().all(|(_, live, _)| *live == row[0].1);
            !same && live * MOST_DEAD >= all
        };
        let uneven: Vec<bool> = rows.iter().map(is_uneven).collect();
        if !uneven.contains(&true) {
            return;
        }
        for (id, node) in self.graph.nodes.iter() {
            if self.graph.turns[node.turn].depth >= 2 && uneven[node.site.index()] {
                self.live[id.index()] = true;
            }
        }
    }

    /// What is read once, in the same turn, is written where it is read.
    fn defer(&mut self) {
        let mut depth = vec![0_u32; self.graph.nodes.len()];
        for index in 0..self.graph.nodes.len() {
            let id = NodeId::new(index);
            let node = self.node(id);
            let written = match &node.op {
                Op::Parameters { .. } | Op::Input(_) | Op::Assert(_) | Op::Print(..) => true,
                Op::Routine(routine) => routine.acts || routine.otherwise.is_some(),
                _ => false,
            };
            let element = self.is_result[index] && !node.shape.is_empty();
            if !self.live[index] || self.uses[index] != 1 || written || element || self.draws(id) {
                continue;
            }
            let near = self.readers[index].iter().all(|reader| {
                let reader = self.node(*reader);
                // An element of an array is no reading of all of it; what reads its like makes a chain.
                let element =
                    |arg: &Arg| matches!(arg, Arg::Scalar(Elem::Of(s, _)) if *s == id) && !node.shape.is_empty();
                let alike = reader.site == node.site && reader.op == node.op;
                reader.turn == node.turn && !alike && !reader.args.iter().any(element)
            });
            let below = node.args.iter().flat_map(Arg::sources).filter(|s| self.deferred[s.index()]);
            let own = 1 + below.map(|s| depth[s.index()]).max().unwrap_or(0);
            if near && own < MAX_DEPTH {
                self.deferred[index] = true;
                depth[index] = own;
            }
        }
    }

    fn draws(&self, id: NodeId) -> bool {
        self.node(id).op.draws()
    }

    /// Readers that are written where they are read stand for their own readers.
    fn resolve_readers(&mut self) {
        for index in (0..self.graph.nodes.len()).rev() {
            let readers = std::mem::take(&mut self.readers[index]);
            let mut found = SmallVec::with_capacity(readers.len());
            for reader in readers {
                if self.deferred[reader.index()] {
                    // Later nodes are resolved by now.
                    found.extend(self.readers[reader.index()].iter().copied());
                    self.is_result[index] |= self.is_result[reader.index()];
                } else {
                    found.push(reader);
                }
            }
            self.readers[index] = found;
        }
    }

    fn fresh(&mut self, stem: &str) -> String {
        loop {
            let name = format!("{}{stem}{}", self.prefix, self.next_name);
            self.next_name += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// A name for the values of a node: the program's own, where it has one.
    fn name_of(&mut self, id: NodeId) -> String {
        match self.graph.name(id).cloned() {
            Some(name) => self.free(&name),
            None => self.fresh("x"),
        }
    }

    /// A name like this one that nothing has.
    fn free(&mut self, name: &str) -> String {
        let mut free = format!("{}{name}", self.prefix);
        let mut next = 2;
        while self.taken.contains(&free) {
            free = format!("{}{name}_{next}", self.prefix);
            next += 1;
        }
        self.taken.insert(free.clone());
        free
    }

    fn line(&mut self, text: impl Into<String>, span: Option<Span>) {
        let indent = 1 + self.loops.len();
        self.lines.push(Line { text: text.into(), indent, span });
    }

    /// A table of these values, as an input that all lanes share. What the program has a name for is called that in every
    /// function, so that all of them read one table.
    fn table(&mut self, array: Array) -> String {
        let key = bits(&array);
        if let Some(name) = self.table_names.get(&key) {
            return name.clone();
        }
        let name = match self.program_names.get(&key) {
            Some(name) if self.taken.insert(name.to_string()) => name.to_string(),
            _ => self.free(&format!("{}data{}", self.table_prefix, self.table_names.len())),
        };
        self.tables.insert(name.clone(), array);
        self.table_names.insert(key, name.clone());
        name
    }

    pub(super) fn into_parts(self) -> (Vec<Line>, IndexMap<String, Array>) {
        (self.lines, self.tables)
    }

    /// Writes all that is live.
    pub(super) fn write(&mut self) {
        let nodes: Vec<NodeId> =
            (0..self.graph.nodes.len()).filter(|i| self.live[*i] && !self.deferred[*i]).map(NodeId::new).collect();
        let whole = self.region(&nodes);
        whole.expect("outside of loops nodes are written one by one where they differ");
    }
}

impl Emitter<'_> {
    /// A result, outside of all loops.
    pub(super) fn result(&mut self, value: &Val) -> String {
        let arg = Arg::of(value);
        let axes = pattern::Axes::default();
        if let Arg::Scalar(elem) = &arg
            && !value.kind.is_int()
            && elem.is_known()
        {
            let arg = Arg::Scalar(elem.as_real());
            return self.read(&[&arg], &axes).expect("one value is regular").text;
        }
        self.read(&[&arg], &axes).expect("one value is regular").text
    }

    /// The sum of these numbers, each of which is read once.
    pub(super) fn total(&mut self, terms: &[Elem]) -> String {
        let mut known = 0.0;
        let mut parts: Vec<String> = Vec::new();
        // Terms of one place of the program are one sum.
        let mut groups: IndexMap<(SiteId, Op, bool), Vec<Elem>> = IndexMap::new();
        let mut last = 0;
        for term in terms {
            match term {
                Elem::Of(id, _) => {
                    let (node, is_deferred) = (self.node(*id), self.deferred[id.index()]);
                    // As a rule a term is of the place of the one before it.
                    if let Some(((site, op, deferred), elems)) = groups.get_index_mut(last)
                        && *site == node.site
                        && *op == node.op
                        && *deferred == is_deferred
                    {
                        elems.push(*term);
                        continue;
                    }
                    let entry = groups.entry((node.site, node.op.clone(), is_deferred));
                    last = entry.index();
                    entry.or_default().push(*term);
                }
                Elem::Int(i) => known += *i as f64,
                Elem::Real(x) => known += x,
            }
        }
        for (_, elems) in groups {
            // What is found in different places makes different sums.
            let mut like: IndexMap<(Vec<region::ArgKind>, group::Found), Vec<Elem>> = IndexMap::new();
            for elem in elems {
                let Elem::Of(id, _) = elem else { continue };
                let kinds = self.node(id).args.iter().map(region::kind).collect();
                let found = self.found(&Arg::Scalar(elem), 0);
                like.entry((kinds, found)).or_default().push(elem);
            }
            for (_, elems) in like {
                let sum = self.sum_of(&elems);
                parts.push(match elems[0] {
                    Elem::Of(id, _) => marks::marked(&sum, self.span(id)),
                    _ => sum,
                });
            }
        }
        if known != 0.0 || parts.is_empty() {
            parts.push(real_literal(known).text);
        }
        parts.join(" + ")
    }

    fn sum_of(&mut self, elems: &[Elem]) -> String {
        let m = elems.len();
        let axes = pattern::Axes::default();
        if m == 1 {
            let arg = Arg::Scalar(elems[0]);
            return self.read(&[&arg], &axes).expect("one value is regular").at(Level::Multiply);
        }
        // The elements of a whole array are summed as such.
        let list = Arg::Elements(Arc::new(elems.to_vec()), vec![m]);
        if elems.iter().all(|e| matches!(e, Elem::Of(id, _) if !self.deferred[id.index()])) {
            let read = self.read(&[&list], &axes).expect("one value is regular");
            return format!("sum({})", read.text);
        }
        let var = format!("{}i", self.prefix);
        let args: Vec<Arg> = elems.iter().map(|e| Arg::Scalar(*e)).collect();
        let args: Vec<&Arg> = args.iter().collect();
        match self.read(&args, &axes.with(&var, m)) {
            Ok(code) => format!("sum({} for {var} in 0..{m})", code.text),
            Err(Irregular) => {
                let parts: Vec<String> = elems.iter().map(|e| self.sum_of(&[*e])).collect();
                parts.join(" + ")
            }
        }
    }
}
