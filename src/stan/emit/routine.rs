//! The text of routines: loops and functions of their own, whose turns and calls lanes decide.

use std::sync::Arc;

use indexmap::IndexMap;

use super::packing::{Packing, Part, ty, zeros};
use super::{Code, Emitter, Level, Line, holds, simplified, taken};
use crate::base::{HashMap, HashSet, Span};
use crate::stan::graph::{Graph, Op};
use crate::stan::value::{Elem, Val, What};
use crate::types::Array;

/// Stands in a call for the tables of a routine that is not finished.
pub(in crate::stan) fn marker(name: &str) -> String {
    format!("‹{name}›")
}

/// The same among its parameters.
pub(in crate::stan) fn shared_marker(name: &str) -> String {
    format!("‹shared {name}›")
}

/// A name in the text for what the tracer calls so: it gives names that no program has.
pub(in crate::stan) fn plain_name(name: &str) -> &str {
    name.trim_end_matches("__")
}

/// A variable that a routine may read.
pub(in crate::stan) struct Slot {
    pub(in crate::stan) name: Arc<str>,
    pub(in crate::stan) int: bool,
    pub(in crate::stan) shape: Vec<usize>,
    /// What a turn of a loop leaves in it, where it changes it.
    pub(in crate::stan) state: Option<Val>,
}

/// A routine's text.
pub(in crate::stan) struct Text {
    pub(in crate::stan) lines: Vec<Line>,
    pub(in crate::stan) tables: IndexMap<String, Array>,
    /// The variables that are its parameters, in order.
    pub(in crate::stan) used: Vec<Arc<str>>,
    pub(in crate::stan) packing: Packing,
    /// Whether it does more than to give a value.
    pub(in crate::stan) acts: bool,
}

/// What turns a loop.
pub(in crate::stan) enum LoopHead {
    While(Box<Graph>, Val),
    /// The variable.
    For(Arc<str>),
}

/// What a turn of a loop does, beside changing variables.
pub(in crate::stan) struct LoopBody<'n> {
    pub(in crate::stan) name: &'n str,
    pub(in crate::stan) span: Span,
    /// Whether another turn may come.
    pub(in crate::stan) going: Val,
    /// Whether a function of the program returns, if it may.
    pub(in crate::stan) returned: Option<Val>,
    /// What it returns then: its plain parts.
    pub(in crate::stan) results: Vec<Val>,
    /// What it adds to the log density.
    pub(in crate::stan) terms: Vec<Elem>,
}

/// The names of a routine.
struct Names {
    taken: HashSet<String>,
    of: HashMap<Arc<str>, String>,
}

impl Names {
    fn new(graphs: &[&Graph], own: &str) -> Names {
        let mut taken: HashSet<String> = graphs.iter().flat_map(|graph| taken(graph)).collect();
        taken.insert(own.to_owned());
        Names { taken, of: HashMap::default() }
    }
    fn free(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut next = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{stem}_{next}");
            next += 1;
        }
        name
    }
    fn give(&mut self, name: &Arc<str>, stem: &str) -> String {
        let free = self.free(stem);
        self.of.insert(name.clone(), free.clone());
        free
    }
}

/// A scalar of a node is written where it is; any other result is named before.
fn is_scalar_of_node(value: &Val) -> Option<Elem> {
    match value.what {
        What::Scalar(elem @ Elem::Of(..)) => Some(elem),
        _ => None,
    }
}

fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

impl<'g> Emitter<'g> {
    /// For values of a routine, scalars among which are written where they are read.
    fn of_routine(graph: &'g Graph, values: &[&Val], terms: &[Elem], names: &Names, routine: &str) -> Emitter<'g> {
        let (results, mut summed) = parts(values);
        summed.extend(terms);
        let mut emitter = Emitter::new(graph, &results, &summed, "");
        emitter.taken.extend(names.taken.iter().cloned());
        emitter.inputs = names.of.clone();
        emitter.table_prefix = format!("{routine}_");
        emitter
    }

    /// Goes on with the names and tables of another one.
    fn follow(&mut self, before: &mut Emitter<'_>) {
        self.tables.extend(std::mem::take(&mut before.tables));
        self.table_names.extend(std::mem::take(&mut before.table_names));
        self.taken.extend(before.taken.drain());
        self.next_name = before.next_name;
    }

    /// Whether the input of this name is read.
    fn reads(&self, name: &str) -> bool {
        self.places.nodes().any(|id| matches!(&self.node(id).op, Op::Input(of) if **of == *name))
    }
}

fn parts(values: &[&Val]) -> (Vec<Val>, Vec<Elem>) {
    let mut results = Vec::new();
    let mut summed = Vec::new();
    for value in values {
        match is_scalar_of_node(value) {
            Some(elem) => summed.push(elem),
            None => results.push((*value).clone()),
        }
    }
    (results, summed)
}

fn condition(text: String) -> String {
    holds(&Code { text, level: Level::Add })
}

impl LoopBody<'_> {
    /// The text of the loop, of the graph of its body.
    pub(in crate::stan) fn written(self, head: &mut LoopHead, graph: &mut Graph, slots: &[Slot]) -> Text {
        let LoopBody { name, span, going, returned, results, terms } = self;
        let mut values: Vec<&Val> = slots.iter().filter_map(|slot| slot.state.as_ref()).collect();
        values.push(&going);
        values.extend(returned.iter().chain(&results));
        let (whole, mut summed) = parts(&values);
        summed.extend(&terms);
        simplified(graph, &whole, &summed);
        let graph = &*graph;
        let acts = graph.acts() || matches!(head, LoopHead::While(g, _) if g.acts());
        let mut names = match head {
            LoopHead::While(condition, _) => Names::new(&[graph, condition], name),
            LoopHead::For(_) => Names::new(&[graph], name),
        };
        let changed: Vec<(&Slot, String)> =
            slots.iter().map(|slot| (slot, names.give(&slot.name, plain_name(&slot.name)))).collect();
        let total = names.give(&Arc::from("target"), "target");
        let before = names.give(&Arc::from("target__"), "target_before");
        let flag = names.free("returned");
        let given: Vec<String> = results.iter().map(|_| names.free("result")).collect();
        let mut lines: Vec<Line> = Vec::new();
        let line = |text: String, indent: usize| Line { text, indent, span: Some(span) };
        let mut params: Vec<String> = Vec::new();
        // The head.
        let mut first = None;
        match head {
            LoopHead::While(graph, c) => {
                let (whole, summed) = parts(&[c]);
                simplified(graph, &whole, &summed);
                let graph = &**graph;
                let mut emitter = Emitter::of_routine(graph, &[c], &[], &names, name);
                emitter.write();
                let text = emitter.result(c);
                let c = if c.is_known() {
                    if c.as_int() == Some(0) { "false" } else { "true" }.into()
                } else {
                    condition(text)
                };
                let own = std::mem::take(&mut emitter.lines);
                if own.is_empty() {
                    lines.push(line(format!("while {c} {{"), 1));
                } else {
                    lines.push(line("while true {".into(), 1));
                    lines.extend(own.into_iter().map(|l| Line { indent: l.indent + 1, ..l }));
                    lines.push(line(format!("if !({c}) {{ break; }}"), 2));
                }
                first = Some(emitter);
            }
            LoopHead::For(var) => {
                let var = names.give(var, var);
                let (from, to) = (names.free("from"), names.free("to"));
                params.extend([format!("{from}: int"), format!("{to}: int")]);
                lines.push(line(format!("for {var} in {from}..{to} + 1 {{"), 1));
            }
        }
        // The body.
        let mut emitter = Emitter::of_routine(graph, &values, &terms, &names, name);
        if let Some(first) = &mut first {
            emitter.follow(first);
        }
        emitter.write();
        let mut last: Vec<String> = Vec::new();
        let sum = (!terms.is_empty()).then(|| emitter.total(&terms));
        if let Some(returned) = &returned {
            last.push(format!("{flag} = {};", emitter.result(returned)));
        }
        for (result, given) in results.iter().zip(&given) {
            last.push(format!("{given} = {};", emitter.result(result)));
        }
        let states: Vec<(&str, String)> = (changed.iter())
            .filter_map(|(slot, name)| Some((name.as_str(), emitter.result(slot.state.as_ref()?))))
            .collect();
        let mut stop = match going.as_int() {
            Some(0) => Some("break;".to_owned()),
            Some(_) => None,
            None => Some(condition(emitter.result(&going))),
        };
        // What a variable gets may read another one, or the log density, as it was before.
        let mut assign: Vec<String> = sum.iter().map(|sum| format!("{total} += {sum};")).collect();
        let is_read_in = |names: &[(&str, String)], text: &str| {
            sum.is_some() && mentions(text, &total) || names.iter().any(|(name, _)| mentions(text, name))
        };
        for (k, (name, text)) in states.iter().enumerate() {
            let early = is_read_in(&states[..k], text);
            let text = if early {
                let next = emitter.free(&format!("next_{name}"));
                last.push(format!("let {next} = {text};"));
                next
            } else {
                text.clone()
            };
            if text != *name {
                assign.push(format!("{name} = {text};"));
            }
        }
        if let Some(c) = stop.as_mut().filter(|c| *c != "break;") {
            if is_read_in(&states, c) {
                let going = emitter.free("going");
                last.push(format!("let {going} = {c};"));
                *c = going;
            }
            *c = format!("if !({c}) {{ break; }}");
        }
        let own = std::mem::take(&mut emitter.lines);
        lines.extend(own.into_iter().map(|l| Line { indent: l.indent + 1, ..l }));
        lines.extend(last.into_iter().chain(assign).chain(stop).map(|text| line(text, 2)));
        lines.push(line("}".into(), 1));
        // What it takes and gives.
        let mut packing = Packing { parts: Vec::new() };
        let mut texts: Vec<String> = Vec::new();
        let mut used: Vec<Arc<str>> = Vec::new();
        let mut own: Vec<Line> = Vec::new();
        let reads = |name: &str| emitter.reads(name) || first.as_ref().is_some_and(|first| first.reads(name));
        for (slot, name) in &changed {
            let is_state = slot.state.is_some();
            if is_state || reads(&slot.name) {
                let mutable = if is_state { "mut " } else { "" };
                params.push(format!("{mutable}{name}: {}", ty(slot.int, &slot.shape)));
                used.push(slot.name.clone());
            }
            if is_state {
                let (int, shape) = (slot.int, slot.shape.clone());
                packing.parts.push(Part { name: slot.name.clone(), int, shape, is_result: false });
                texts.push(name.clone());
            }
        }
        if reads("target__") {
            params.push(format!("{before}: real"));
            used.push("target__".into());
        }
        let mut give = |own: &mut Vec<Line>, part: &str, name: &str, int: bool, shape: &[usize], is_result: bool| {
            own.push(line(format!("let mut {name} = {};", zeros(int, shape)), 1));
            packing.parts.push(Part { name: part.into(), int, shape: shape.to_vec(), is_result });
            texts.push(name.to_owned());
        };
        if !terms.is_empty() || reads("target") {
            give(&mut own, "target", &total, false, &[], false);
        }
        if returned.is_some() {
            give(&mut own, "return", &flag, true, &[], false);
        }
        for (result, given) in results.iter().zip(&given) {
            give(&mut own, "result", given, result.kind.is_int(), &result.shape, true);
        }
        let head = format!("fn {name}({}{}) -> {} {{", params.join(", "), shared_marker(name), packing.ty());
        let mut all = vec![line(head, 0)];
        all.extend(own);
        all.extend(lines);
        all.push(line(packing.packed(&texts), 1));
        all.push(line("}".into(), 0));
        all.push(line(String::new(), 0));
        let (_, tables) = emitter.into_parts();
        Text { lines: all, tables, used, packing, acts }
    }
}

/// A function of the program that calls itself.
pub(in crate::stan) struct Body<'n> {
    pub(in crate::stan) name: &'n str,
    pub(in crate::stan) span: Span,
    /// The plain parts of what it gives.
    pub(in crate::stan) results: Vec<Val>,
    pub(in crate::stan) terms: Vec<Elem>,
    pub(in crate::stan) packing: Packing,
}

impl Body<'_> {
    /// The text of the function: all slots are its parameters.
    pub(in crate::stan) fn written(self, graph: &mut Graph, slots: &[Slot]) -> Text {
        let Body { name, span, results, terms, packing } = self;
        let values: Vec<&Val> = results.iter().collect();
        let (whole, mut summed) = parts(&values);
        summed.extend(&terms);
        simplified(graph, &whole, &summed);
        let graph = &*graph;
        let mut names = Names::new(&[graph], name);
        let params = slots.iter().map(|slot| {
            let name = names.give(&slot.name, plain_name(&slot.name));
            format!("{name}: {}", ty(slot.int, &slot.shape))
        });
        let params: Vec<String> = params.collect();
        let mut emitter = Emitter::of_routine(graph, &values, &terms, &names, name);
        emitter.write();
        let mut texts: Vec<String> = results.iter().map(|result| emitter.result(result)).collect();
        if packing.parts.iter().any(|p| &*p.name == "target") {
            texts.push(emitter.total(&terms));
        }
        let line = |text: String, indent: usize| Line { text, indent, span: Some(span) };
        let head = format!("fn {name}({}{}) -> {} {{", params.join(", "), shared_marker(name), packing.ty());
        let mut lines = vec![line(head, 0)];
        lines.append(&mut emitter.lines);
        lines.push(line(packing.packed(&texts), 1));
        lines.push(line("}".into(), 0));
        lines.push(line(String::new(), 0));
        let (_, tables) = emitter.into_parts();
        let used = slots.iter().map(|slot| slot.name.clone()).collect();
        Text { lines, tables, used, packing, acts: graph.acts() }
    }
}
