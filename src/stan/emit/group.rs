//! Nodes of one place of the program: a comprehension, an expression, or a check.

use std::sync::Arc;

use super::pattern::Axes;
use super::region::shifted;
use super::{Code, Container, Emitter, Irregular, Local, Written, holds, written};
use crate::base::{HashMap, Id as _};
use crate::stan::graph::{Arg, Op};
use crate::stan::value::{Elem, NodeId};

/// Where a value is found: what must be the same for all nodes that one expression stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Found {
    Known,
    /// In an array of the current turn of a loop.
    Local(usize),
    Stored(usize),
    /// Written where it is read: what it does, and what its operands are.
    Here(Op, Vec<(std::mem::Discriminant<Arg>, Found)>),
    /// One after the other, with how many there are of each.
    Many(Vec<(Found, usize)>),
    /// The same of a row that grows.
    Grown(Vec<(Found, usize)>),
}

impl Emitter<'_> {
    /// Writes nodes that do the same, and do not depend on one another.
    pub(super) fn group(&mut self, nodes: &[NodeId]) -> Written<()> {
        let mut parts: Vec<Vec<NodeId>> = Vec::new();
        let mut which: HashMap<Vec<Found>, usize> = HashMap::default();
        let mut last: Option<(Vec<Found>, usize)> = None;
        for id in nodes {
            let mut all: Option<Vec<Found>> = None;
            let of_loops = if self.loops.is_empty() { None } else { Some(self.family(*id)) };
            let family = of_loops.as_ref().map_or(std::slice::from_ref(id), |family| &family[..]);
            for (point, member) in family.iter().enumerate() {
                let found = self.node(*member).args.iter().map(|arg| self.found(arg, point)).collect();
                match &all {
                    None => all = Some(found),
                    Some(first) if *first == found => {}
                    Some(_) => return Err(Irregular),
                }
            }
            let all = all.unwrap_or_default();
            if let Some((found, part)) = &last
                && *found == all
            {
                parts[*part].push(*id);
                continue;
            }
            let part = *which.entry(all.clone()).or_insert_with(|| {
                parts.push(Vec::new());
                parts.len() - 1
            });
            parts[part].push(*id);
            last = Some((all, part));
        }
        parts.iter().try_for_each(|part| self.part(part))
    }

    /// Where an operand is found at a point of the loops around.
    pub(super) fn found(&self, arg: &Arg, point: usize) -> Found {
        match arg {
            Arg::Scalar(elem) => self.found_elem(*elem, point),
            Arg::Known(_) => Found::Known,
            Arg::Whole(node) => self.found_elem(Elem::Of(*node, 0), point),
            Arg::Elements(elems, _) => Found::Many(runs(elems.iter().map(|elem| self.found_elem(*elem, point)))),
            Arg::Prefix(elems, _) => Found::Grown(self.stored_runs(elems)),
        }
    }

    /// Where the elements of a row are that grows; what has no place yet is still 0.
    pub(super) fn stored_runs(&self, elems: &[Elem]) -> Vec<(Found, usize)> {
        runs(elems.iter().map(|elem| match elem {
            Elem::Of(node, _) => self.places.get(*node).map_or(Found::Known, |(container, _)| Found::Stored(container)),
            _ => Found::Known,
        }))
    }

    fn found_elem(&self, elem: Elem, point: usize) -> Found {
        let Elem::Of(node, _) = elem else { return Found::Known };
        if self.deferred[node.index()] {
            let node = self.node(node);
            let operand = |arg: &Arg| (std::mem::discriminant(arg), self.found(arg, point));
            return Found::Here(node.op.clone(), node.args.iter().map(operand).collect());
        }
        match self.local(node, point) {
            Some((container, _)) => Found::Local(container),
            None => match self.places.get(node) {
                Some((container, _)) => Found::Stored(container),
                None => unreachable!("{node} is written before it is read"),
            },
        }
    }

    /// Where the value of a node is, if it was made in the turn of a loop that a point is in.
    pub(super) fn local(&self, node: NodeId, point: usize) -> Option<(usize, usize)> {
        let local = self.locals.get(&node)?;
        let inner: usize = self.loops[local.level + 1..].iter().map(|l| l.extent).product();
        (point / inner == local.point).then_some((local.container, local.at))
    }

    /// Writes nodes that one expression stands for.
    fn part(&mut self, nodes: &[NodeId]) -> Written<()> {
        let outer = self.axes();
        let m = nodes.len();
        let var = format!("{}i", self.prefix);
        let axes = if m == 1 { outer.clone() } else { outer.with(&var, m) };
        let members = self.over_points(nodes);
        let first = self.node(nodes[0]);
        let span = Some(self.span(nodes[0]));
        if let Op::Assert(texts) = &first.op {
            let condition = holds(&self.arg_code(&members, 0, &axes)?);
            let message = self.message(texts, 1, &members, &axes)?;
            let together = m > 1 && first.args.len() == 1;
            let condition = if together { format!("all({condition} for {var} in 0..{m})") } else { condition };
            let text = format!("assert({condition}, {message});");
            // Messages with values are those of one turn.
            let each = m > 1 && !together;
            self.line(if each { format!("for {var} in 0..{m} {{ {text} }}") } else { text }, span);
            return Ok(());
        }
        if let Op::Print(texts, guarded) = &first.op {
            let condition = if *guarded { Some(self.arg_code(&members, 0, &axes)?) } else { None };
            let message = self.message(texts, usize::from(*guarded), &members, &axes)?;
            let mut print = format!("print({message});");
            if let Some(condition) = condition {
                print = format!("if {} {{ {print} }}", holds(&condition));
            }
            let text = if m > 1 { format!("for {var} in 0..{m} {{ {print} }}") } else { print };
            self.line(text, span);
            return Ok(());
        }
        if let Op::Input(name) = &first.op {
            let name = self.inputs.get(name).cloned().unwrap_or_else(|| name.to_string());
            self.containers.push(Container { name, lead: Vec::new(), shape: first.shape.clone() });
            nodes.iter().for_each(|id| self.place(*id, self.containers.len() - 1, 0));
            return Ok(());
        }
        let code = self.code(&members, &axes)?;
        let mut text = code.text;
        let mut lead = Vec::new();
        if m > 1 {
            text = format!("[{text} for {var} in 0..{m}]");
            lead.push(m);
        }
        let name = self.name_of(nodes[0]);
        self.line(format!("let {name} = {text};"), span);
        self.containers.push(Container { name: name.clone(), lead, shape: first.shape.clone() });
        let container = self.containers.len() - 1;
        if self.loops.is_empty() {
            for (at, id) in nodes.iter().enumerate() {
                self.place(*id, container, at);
            }
            return Ok(());
        }
        self.keep_values(nodes, &name)?;
        self.keep_outside(nodes, &name)?;
        let level = self.loops.len() - 1;
        for (at, id) in nodes.iter().enumerate() {
            for (point, member) in self.family(*id).iter().enumerate() {
                self.locals.insert(*member, Local { container, at, level, point });
                self.loops[level].locals.push(*member);
            }
        }
        Ok(())
    }

    /// Texts with the operands from `first` on between them, as they stand in a program.
    fn message(&mut self, texts: &[Arc<str>], first: usize, members: &[NodeId], axes: &Axes) -> Written<String> {
        let operands = self.node(members[0]).args.len() - first;
        let mut message = String::new();
        for (i, text) in texts.iter().enumerate() {
            message.push_str(&escaped(text));
            if i < operands {
                message.push_str(&format!("{{{}}}", self.arg_code(members, first + i, axes)?.text));
            }
        }
        Ok(format!("\"{message}\""))
    }

    /// Keeps values of this turn that are read outside of it.
    fn keep_values(&mut self, nodes: &[NodeId], name: &str) -> Written<()> {
        let Some(places) = nodes.iter().map(|id| self.places.get(*id)).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let container = places[0].0;
        let lead = self.containers[container].lead.len();
        let (depth, together) = (self.loops.len(), nodes.len());
        let first = places[0].1 - places[0].1 % together;
        let is_row = lead == depth + 1 && self.containers[container].lead[depth] == together;
        if is_row && places.iter().enumerate().all(|(i, place)| *place == (container, first + i)) {
            let counters: Vec<String> = self.loops.iter().map(|l| shifted(&l.var, l.lag)).collect();
            let kept = self.containers[container].name.clone();
            self.line(format!("{kept}[{}] = {name};", counters.join(", ")), None);
            return Ok(());
        }
        for (at, id) in nodes.iter().enumerate() {
            let value = if nodes.len() == 1 { name.to_owned() } else { format!("{name}[{at}]") };
            let places: Option<Vec<_>> = self.family(*id).iter().map(|id| self.places.get(*id)).collect();
            self.keep_at(&places.ok_or(Irregular)?, &value)?;
        }
        Ok(())
    }

    /// The same in arrays of the loops around the innermost one, which keeps them for itself, too.
    fn keep_outside(&mut self, nodes: &[NodeId], name: &str) -> Written<()> {
        for (at, id) in nodes.iter().enumerate() {
            let Some(innermost) = self.loops.last() else { continue };
            if !innermost.outer.contains_key(id) {
                continue;
            }
            let places: Option<Vec<_>> = self.family(*id).iter().map(|id| innermost.outer.get(id).copied()).collect();
            let value = if nodes.len() == 1 { name.to_owned() } else { format!("{name}[{at}]") };
            self.keep_at(&places.ok_or(Irregular)?, &value)?;
        }
        Ok(())
    }

    /// Keeps a value at these places of an array, one for each point of the loops around.
    pub(super) fn keep_at(&mut self, places: &[(usize, usize)], value: &str) -> Written<()> {
        let container = places[0].0;
        if places.iter().any(|(other, _)| *other != container) {
            return Err(Irregular);
        }
        let c = &self.containers[container];
        let (kept, lead) = (c.name.clone(), c.lead.len());
        let size: usize = c.shape.iter().product();
        let flat: Vec<i64> = places.iter().map(|(_, at)| (at * size) as i64).collect();
        let axes = self.axes();
        let coordinates = self.coordinates(container, &flat, lead, &axes);
        self.line(format!("{kept}[{}] = {value};", coordinates.join(", ")), None);
        Ok(())
    }

    /// The nodes over all points of the loops around, then one after the other.
    fn over_points(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let families: Vec<_> = nodes.iter().map(|id| self.family(*id)).collect();
        (0..self.points()).flat_map(|p| families.iter().map(move |f| f[p])).collect()
    }

    /// The expression that nodes over some counters are.
    pub(super) fn code(&mut self, nodes: &[NodeId], axes: &Axes) -> Written<Code> {
        let first = self.node(nodes[0]);
        if nodes.iter().any(|id| self.node(*id).op != first.op || self.node(*id).args.len() != first.args.len()) {
            return Err(Irregular);
        }
        if let Op::Parameters { first: at } = first.op {
            let n: usize = first.shape.iter().product();
            let extents: Vec<String> = first.shape.iter().map(usize::to_string).collect();
            return Ok(Code::atom(match extents.len() {
                0 => format!("q[{at}]"),
                1 => format!("q[{at}..{}]", at + n),
                _ => format!("reshape(q[{at}..{}], {})", at + n, extents.join(", ")),
            }));
        }
        let mut args = Vec::with_capacity(first.args.len());
        for at in 0..first.args.len() {
            args.push(self.arg_code(nodes, at, axes)?);
        }
        Ok(written(&first.op, &args))
    }

    fn arg_code(&mut self, nodes: &[NodeId], at: usize, axes: &Axes) -> Written<Code> {
        let graph = self.graph;
        let args: Vec<&Arg> = nodes.iter().map(|id| &graph.nodes[*id].args[at]).collect();
        self.read(&args, axes)
    }
}

/// Stretches of what is found in one place.
fn runs(found: impl Iterator<Item = Found>) -> Vec<(Found, usize)> {
    let mut runs: Vec<(Found, usize)> = Vec::new();
    for found in found {
        match runs.last_mut() {
            Some((last, n)) if *last == found => *n += 1,
            _ => runs.push((found, 1)),
        }
    }
    runs
}

/// A text between quotes, without holes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '{' => out.push_str("{{"),
            '}' => out.push_str("}}"),
            c if super::marks::is_mark(c) => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
