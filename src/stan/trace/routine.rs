//! Routines: functions of the text for what lanes decide, loops and functions that call themselves. Each has a graph of its
//! own, and is given what it reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::loop_routine::Loop;
use super::{Frame, Result, Term, Tracer};
use crate::base::{HashMap, HashSet, Span};
use crate::stan::emit::{Line, Packing, marker, shared_marker};
use crate::stan::graph::{Graph, Op, Routine, TurnId};
use crate::stan::value::{Base, Kind, Val};
use crate::types::Array;

type Names = BTreeSet<Arc<str>>;

/// The functions of the text that were written.
#[derive(Default)]
pub(in crate::stan) struct Routines {
    /// What their names begin with: those of two functions of one text differ.
    pub(in crate::stan) prefix: &'static str,
    pub(in crate::stan) lines: Vec<Line>,
    number: usize,
    pub(super) loops: Vec<Loop>,
    /// For each loop the names that it mentions, and those that it assigns.
    pub(super) names: HashMap<Span, Arc<(Names, Names)>>,
    /// What differs between the times that a loop comes, although it is known.
    pub(super) varying: HashMap<Span, BTreeSet<Arc<str>>>,
    /// Loops for which that must stay known.
    pub(super) special: HashSet<Span>,
    /// The tables that they read.
    tables: IndexMap<String, Array>,
    /// How many are being traced.
    pub(super) depth: usize,
}

impl Routines {
    pub(super) fn name(&mut self, stem: &str) -> Arc<str> {
        self.number += 1;
        format!("{}{stem}_{}", self.prefix, self.number).into()
    }
    /// How many lines, names and loops there are.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.lines.len(), self.number, self.loops.len())
    }
    /// Forgets what came since.
    pub(super) fn back_to(&mut self, lines: usize, number: usize, loops: usize) {
        self.lines.truncate(lines);
        self.number = number;
        self.loops.truncate(loops);
    }
}

/// Where the run of a program was.
pub(super) struct Mark {
    frame: Frame,
    nodes: usize,
    effects: usize,
    target: usize,
    left_out: f64,
    lines: usize,
    number: usize,
    loops: usize,
    instances: usize,
}

/// The log density so far, as a routine knows it: what was there before, and what it adds itself. No variable of Stan has
/// these names.
pub(super) const BEFORE: &str = "target__";
pub(super) const ADDED: &str = "target";

impl Tracer<'_> {
    pub(super) fn mark(&mut self) -> Mark {
        Mark {
            frame: self.frame().clone(),
            nodes: self.graph.nodes.len(),
            effects: self.graph.effects.len(),
            target: self.target.len(),
            left_out: self.left_out,
            lines: self.routines.lines.len(),
            number: self.routines.number,
            loops: self.routines.loops.len(),
            instances: self.recursion.instances.len(),
        }
    }

    /// Forgets what was done since.
    pub(super) fn back_to(&mut self, mark: Mark) {
        *self.frame() = mark.frame;
        self.demanded.clear();
        self.graph.forget(mark.nodes, mark.effects);
        self.target.truncate(mark.target);
        self.left_out = mark.left_out;
        self.routines.back_to(mark.lines, mark.number, mark.loops);
        self.recursion.instances.truncate(mark.instances);
    }

    /// Runs something with a graph and a log density of its own.
    pub(super) fn inside<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Graph, Vec<Term>)> {
        let mut graph = Graph::of(self.graph.of_many);
        graph.known = self.graph.known.clone();
        let graph = std::mem::replace(&mut self.graph, graph);
        let turn = std::mem::replace(&mut self.turn, TurnId(0));
        let (guards, target) = (std::mem::take(&mut self.guards), std::mem::take(&mut self.target));
        let demanded = std::mem::take(&mut self.demanded);
        self.routines.depth += 1;
        let done = run(self);
        self.routines.depth -= 1;
        (self.turn, self.guards, self.demanded) = (turn, guards, demanded);
        let terms = std::mem::replace(&mut self.target, target);
        let graph = std::mem::replace(&mut self.graph, graph);
        Ok((done?, graph, terms))
    }

    /// What a routine is given by this name.
    pub(super) fn input(&mut self, span: Span, name: &str, kind: Kind, shape: Vec<usize>) -> Result<Val> {
        let (own, shape) = kind.packed(shape);
        let given = self.node(span, Op::Input(name.into()), &[], own, shape)?;
        Ok(given.unpacked(kind))
    }

    /// The log density so far.
    pub(super) fn so_far(&mut self, span: Span) -> Result<Val> {
        let mut sum = Val::real(0.0);
        for term in self.target.clone() {
            let value = Val::from_elems(Kind::REAL, vec![], vec![term.value]);
            sum = self.add(span, &sum, &value)?;
        }
        // A routine is given what was there without constants.
        if self.leaves_out && self.routines.depth == 0 && self.left_out != 0.0 {
            sum = self.infix(span, "-", &sum, &Val::real(self.left_out))?;
        }
        Ok(sum)
    }

    /// Ends the text of a routine: the tables that it reads become parameters. Gives what a call has after its operands. While
    /// a function that calls itself is being traced, whose tables are not known yet, a mark stands for them; `from` tells
    /// where the lines begin that have the mark of this routine.
    pub(super) fn finished(
        &mut self,
        name: &str,
        own: &mut [Line],
        tables: IndexMap<String, Array>,
        from: Option<usize>,
    ) -> Arc<str> {
        let from = from.unwrap_or(self.routines.lines.len());
        let group = &mut self.routines.lines[from..];
        let waits = |mark: &str| own.iter().chain(group.iter()).any(|line| line.text.contains(mark));
        let open = self.recursion.instances.iter().find(|i| i.open && *i.name != *name && waits(&marker(&i.name)));
        let (call, params) = match open {
            Some(open) => (marker(&open.name), shared_marker(&open.name)),
            None => {
                let all = own.iter().chain(group.iter());
                let used = crate::stan::translate::used_by(&tables, all);
                self.routines.tables.extend(used.iter().map(|(name, table)| (name.clone(), table.clone())));
                let call: String = used.keys().map(|table| format!(", {table}")).collect();
                (call, crate::stan::translate::ports(&used))
            }
        };
        for line in own.iter_mut().chain(group) {
            if line.text.contains('‹') {
                line.text = line.text.replace(&marker(name), &call).replace(&shared_marker(name), &params);
                line.text = line.text.replace("(, ", "(");
            }
        }
        // Loops inside of this function read what it reads.
        let waited = marker(name);
        self.routines.loops.iter_mut().filter(|l| *l.tables == *waited).for_each(|l| l.tables = call.as_str().into());
        self.graph.tables.extend(tables);
        call.into()
    }

    /// Calls a routine, and takes its value apart.
    pub(super) fn call_routine(
        &mut self,
        span: Span,
        called: Called,
        args: &[Val],
        packing: &Packing,
    ) -> Result<Vec<Val>> {
        for table in called.tables.split(", ") {
            if let Some(values) = self.routines.tables.get(table) {
                self.graph.tables.entry(table.to_owned()).or_insert_with(|| values.clone());
            }
        }
        let shape = packing.shape();
        let int = packing.is_int();
        let otherwise = called.guarded.then(|| packing.nothing().into());
        let routine = Routine { name: called.name, tables: called.tables, otherwise, acts: called.acts };
        let kind = |rank: usize, int: bool| {
            let base = if int { Base::Int } else { Base::Real };
            Kind { base, arrays: rank }
        };
        let kind_of_all = kind(shape.len(), int);
        let args: Vec<Val> = args.iter().map(Val::packed).collect();
        let all = self.node(span, Op::Routine(Arc::new(routine)), &args, kind_of_all, shape)?;
        if let [part] = &packing.parts[..] {
            return Ok(vec![Val { kind: kind(part.shape.len(), part.int), ..all }]);
        }
        let mut values = Vec::with_capacity(packing.parts.len());
        let mut at = 0;
        for part in &packing.parts {
            let n: usize = part.shape.iter().product();
            let of_kind = kind(part.shape.len(), part.int);
            if part.int && !int {
                let mut elems = Vec::with_capacity(n);
                for i in at..at + n {
                    let x = all.pick(Kind::REAL, vec![], std::iter::once(i));
                    elems.push(self.node(span, Op::Call("int".into(), vec![]), &[x], Kind::INT, vec![])?.elem(0));
                }
                values.push(Val::from_elems(of_kind, part.shape.clone(), elems));
            } else {
                values.push(all.pick(of_kind, part.shape.clone(), at..at + n));
            }
            at += n;
        }
        Ok(values)
    }
}

/// A routine as it is called: with a condition before its operands where it is `guarded`.
pub(super) struct Called {
    pub(super) name: Arc<str>,
    pub(super) tables: Arc<str>,
    pub(super) guarded: bool,
    pub(super) acts: bool,
}
