//! Loops whose turns lanes decide. Their state is what the body assigns of the variables around, and what it adds to the
//! target; the body is a graph of its own.

use std::sync::Arc;

use super::flow::{Flow, Mixed};
use super::loops::{assigned, mentioned, mentioned_in};
use super::routine::{ADDED, BEFORE, Called};
use super::stmt::same;
use super::tuple::Form;
use super::{Result, Term, Tracer, Variable, unsupported};
use crate::base::Span;
use crate::stan::emit::{LoopBody, LoopHead, Packing, Slot, Text, plain_name};
use crate::stan::graph::{Graph, Op};
use crate::stan::syntax::ast::{Expr, Name, Stmt};
use crate::stan::value::{Elem, Kind, Val};

/// What says how often a loop turns.
pub(super) enum Head<'e> {
    While(&'e Expr),
    For { var: &'e Name, from: Val, to: Val },
}

/// A plain part of a variable that a routine is given.
#[derive(Clone)]
struct Input {
    name: Arc<str>,
    /// The variable, and which of its plain parts it is.
    of: Arc<str>,
    part: usize,
    level: usize,
    kind: Kind,
    shape: Vec<usize>,
    /// Whether the loop assigns it.
    state: bool,
    /// Whether it is how many elements the input before it has.
    counts: bool,
}

impl Input {
    /// What it is in a value of its variable.
    fn held(&self, value: &Val) -> Val {
        let value = value.plain_parts()[self.part];
        match value.counted() {
            Some(counted) if self.counts => counted.count.clone(),
            Some(counted) => counted.whole.clone(),
            None => value.clone(),
        }
    }

    /// A value of its variable with another part in the place of this.
    fn with(&self, value: &Val, make: impl FnOnce(&Val) -> Val) -> Val {
        let mut parts: Vec<Val> = value.plain_parts().into_iter().cloned().collect();
        parts[self.part] = make(&parts[self.part]);
        value.with_plain_parts(&mut parts.into_iter())
    }

    fn is_like(&self, other: &Input) -> bool {
        self.name == other.name && self.kind == other.kind && self.shape == other.shape
    }
}

/// The variables around a loop that it names: those that lanes know, or will when it has assigned them, and the others.
#[derive(Clone)]
struct Given {
    inputs: Vec<Input>,
    known: Vec<(Arc<str>, Val)>,
}

impl Given {
    /// What is known in both, and differs, or is known in one only.
    fn differing(&self, other: &Given) -> Vec<Arc<str>> {
        let in_other = |name: &Arc<str>| other.known.iter().find(|(n, _)| n == name);
        let mut names: Vec<Arc<str>> = (self.known.iter())
            .filter(|(name, value)| !in_other(name).is_some_and(|(_, v)| same(v, value)))
            .map(|(name, _)| name.clone())
            .collect();
        let more = other.known.iter().filter(|(name, _)| self.known.iter().all(|(n, _)| n != name));
        names.extend(more.map(|(name, _)| name.clone()));
        names
    }
}

/// A loop that was written.
#[derive(Clone)]
pub(super) struct Loop {
    /// The place of the loop.
    span: Span,
    name: Arc<str>,
    given: Given,
    unnormalized: bool,
    used: Vec<Arc<str>>,
    packing: Arc<Packing>,
    /// What is returned out of it.
    result: Option<Form>,
    acts: bool,
    pub(super) tables: Arc<str>,
}

/// So many of the functions for one loop are looked at for one that serves.
const MAX_COMPARED: usize = 8;

impl Tracer<'_> {
    /// The variables around a loop that it names.
    fn given(&mut self, span: Span, head: &Head<'_>, body: &Stmt) -> Given {
        let names = self.routines.names.entry(span).or_insert_with(|| {
            let mut names = mentioned(body);
            if let Head::While(condition) = head {
                names.extend(mentioned_in(condition));
            }
            Arc::new((names, assigned(body)))
        });
        let names = names.clone();
        let (named, changed) = &*names;
        let varying = self.routines.varying.get(&span);
        let (mut inputs, mut known): (Vec<Input>, Vec<(Arc<str>, Val)>) = (Vec::new(), Vec::new());
        let frame = self.frames.last().expect("there is always a frame");
        for name in named.union(changed) {
            let found = frame.iter().enumerate().rev().find_map(|(level, scope)| Some((level, scope.get(name)?)));
            let Some((level, Variable { value })) = found else { continue };
            let state = changed.contains(name);
            for (part, (own, plain)) in value.named_parts(name).into_iter().enumerate() {
                if state || !plain.is_known() || varying.is_some_and(|v| v.contains(&own)) {
                    let (kind, shape, of) = (plain.kind, plain.shape.clone(), name.clone());
                    let input = Input { name: own.clone(), of, part, level, kind, shape, state, counts: false };
                    let count = plain.counted().map(|_| {
                        let (name, shape) = (format!("{own}_count__").into(), vec![]);
                        Input { name, kind: Kind::INT, shape, state: false, counts: true, ..input.clone() }
                    });
                    inputs.extend([Some(input), count].into_iter().flatten());
                } else {
                    known.push((own, plain.clone()));
                }
            }
        }
        // What it assigns comes first.
        inputs.sort_by_key(|input| !input.state);
        Given { inputs, known }
    }

    fn take_inputs(&mut self, span: Span, given: &Given) -> Result<()> {
        for g in &given.inputs {
            let input = self.input(span, &g.name, g.kind, g.shape.clone())?;
            let scope = Arc::make_mut(&mut self.frame()[g.level]);
            let variable = scope.get_mut(&g.of).expect("it was found there");
            variable.value = g.with(&variable.value, |old| match g.counts {
                true => Val::of_count(old.clone(), input),
                false => input,
            });
        }
        Ok(())
    }

    /// The log density before the loop, and what it has added.
    fn take_target(&mut self, span: Span) -> Result<()> {
        for name in [BEFORE, ADDED] {
            let input = self.input(span, name, Kind::REAL, vec![])?;
            self.target.push(Term { value: input.elem(0), span });
        }
        Ok(())
    }

    /// A loop whose turns lanes decide. One that was written for other turns of the loops around serves again: what is
    /// known and differs between them becomes an argument, where that can be.
    pub(super) fn loop_routine(&mut self, span: Span, head: Head<'_>, body: &Stmt) -> Result<Flow> {
        let given = self.given(span, &head, body);
        let at = match self.written_loop(span, &given) {
            Some(at) => at,
            None => {
                let differ = self.differing(span, &given);
                if differ.is_empty() || self.routines.special.contains(&span) {
                    self.write_loop(span, &head, body, &given)?
                } else {
                    let before = self.routines.varying.entry(span).or_default().clone();
                    self.routines.varying.entry(span).or_default().extend(differ);
                    let (mark, wider) = (self.mark(), self.given(span, &head, body));
                    match self.write_loop(span, &head, body, &wider) {
                        Ok(at) => at,
                        Err(why) if why.again.is_some() => return Err(why),
                        // What differs is a size, say.
                        Err(_) => {
                            self.back_to(mark);
                            self.routines.varying.insert(span, before);
                            self.routines.special.insert(span);
                            self.write_loop(span, &head, body, &given)?
                        }
                    }
                }
            }
        };
        let mut args: Vec<Val> = self.on(span)?.into_iter().collect();
        let guarded = !args.is_empty();
        if let Head::For { from, to, .. } = head {
            args.extend([from, to]);
        }
        let written = self.routines.loops[at].clone();
        for name in &written.used {
            args.push(match written.given.inputs.iter().find(|g| g.name == *name) {
                Some(input) => input.held(self.value(&input.of).expect("a loop is given what is around it")),
                None => self.so_far(span)?,
            });
        }
        let called = Called { name: written.name.clone(), tables: written.tables.clone(), guarded, acts: written.acts };
        let outputs = self.call_routine(span, called, &args, &written.packing)?;
        self.leave_loop(span, &written, outputs)
    }

    /// A loop that was written for what is given and known now.
    fn written_loop(&self, span: Span, given: &Given) -> Option<usize> {
        let (loops, unnormalized) = (&self.routines.loops, self.unnormalized);
        let like = |l: &Loop| {
            let same_inputs = l.given.inputs.len() == given.inputs.len()
                && l.given.inputs.iter().zip(&given.inputs).all(|(a, b)| a.is_like(b));
            l.unnormalized == unnormalized && same_inputs && l.given.differing(given).is_empty()
        };
        let mut latest = (0..loops.len()).rev().filter(|i| loops[*i].span == span).take(MAX_COMPARED);
        latest.find(|i| like(&loops[*i]))
    }

    /// What is known now and was something else when the loop was last written.
    fn differing(&self, span: Span, given: &Given) -> Vec<Arc<str>> {
        let last = self.routines.loops.iter().rev().find(|l| l.span == span);
        last.map_or_else(Vec::new, |l| l.given.differing(given))
    }

    /// Writes the function for a loop.
    fn write_loop(&mut self, span: Span, head: &Head<'_>, body: &Stmt, given: &Given) -> Result<usize> {
        let name = self.routines.name("loop");
        let before = self.frame().clone();
        let mut head_made = match head {
            Head::For { var, .. } => LoopHead::For(var.text.clone()),
            Head::While(e) => {
                let made = self.inside(|t| {
                    t.take_inputs(span, given)?;
                    t.take_target(span)?;
                    let c = t.eval(e)?;
                    t.truth(e.span, &c)
                });
                *self.frame() = before.clone();
                let (condition, graph, _) = made?;
                LoopHead::While(Box::new(graph), condition)
            }
        };
        let made = self.inside(|t| {
            t.take_inputs(span, given)?;
            t.take_target(span)?;
            let flow = t.scoped(|t| {
                if let Head::For { var, .. } = head {
                    let turn = t.input(var.span, &var.text, Kind::INT, vec![])?;
                    t.bind(&var.text, turn);
                }
                t.stmt(body)
            })?;
            let left = Mixed::of(flow);
            let going = t.either(span, &left.next, &left.continued)?;
            let frame = t.frame();
            let held = |g: &Input| g.held(&frame[g.level].get(&g.of).expect("it was found there").value);
            let states: Vec<Val> = given.inputs.iter().map(held).collect();
            Ok((left, going, states))
        });
        *self.frame() = before;
        let ((left, going, states), mut graph, terms) = made?;
        let terms: Vec<Elem> = terms[2..].iter().map(|t| t.value).collect();
        let mut slots: Vec<Slot> = Vec::new();
        for (g, state) in given.inputs.iter().zip(states) {
            let (int, shape) = g.kind.given(&g.shape);
            let state = state_of(&graph, &g.name, state.packed());
            let state = if g.state { state.map(|v| if int { v } else { v.promoted() }) } else { None };
            slots.push(Slot { name: g.name.clone(), int, shape, state });
        }
        let returned = (left.returned.as_int() != Some(0)).then_some(left.returned);
        if left.result.as_ref().is_some_and(|value| value.counted().is_some()) {
            return unsupported(span, "elements whose number depends on parameters, returned out of a loop");
        }
        let result = left.result.as_ref().map(Form::of);
        let results = left.result.iter().flat_map(Val::plain_parts).map(Val::packed).collect();
        let body = LoopBody { name: &name, span, going, returned, results, terms };
        let Text { mut lines, tables, used, packing, acts } = body.written(&mut head_made, &mut graph, &slots);
        let tables = self.finished(&name, &mut lines, tables, None);
        self.routines.lines.extend(lines);
        let given = given.clone();
        let (unnormalized, packing) = (self.unnormalized, Arc::new(packing));
        self.routines.loops.push(Loop { span, name, given, unnormalized, used, packing, result, acts, tables });
        Ok(self.routines.loops.len() - 1)
    }

    /// Takes over what a loop has left.
    fn leave_loop(&mut self, span: Span, written: &Loop, outputs: Vec<Val>) -> Result<Flow> {
        let (mut returned, mut results) = (None, Vec::new());
        for (part, output) in written.packing.parts.iter().zip(outputs) {
            match &*part.name {
                ADDED => self.target.push(Term { value: output.elem(0), span }),
                "return" => returned = Some(output),
                _ if part.is_result => results.push(output),
                name => {
                    let input = written.given.inputs.iter().find(|g| *g.name == *name);
                    let input = input.expect("a loop gives back what it was given");
                    let hold = self.lookup_mut(&input.of).expect("it is around the loop");
                    let mut left = None;
                    hold.value = input.with(&hold.value, |old| {
                        let value = output.unpacked(old.kind);
                        let value = match old.counted() {
                            Some(counted) => Val::of_count(value, counted.count.clone()),
                            None => value,
                        };
                        left.insert(value).clone()
                    });
                    if let Some(value) = left {
                        self.graph.call(&plain_name(&part.name).into(), &value);
                    }
                }
            }
        }
        let result = written.result.as_ref().map(|form| form.unpacked(&mut results.into_iter()));
        let Some(returned) = returned else { return Ok(Flow::Next) };
        let next = self.negated(span, &returned)?;
        let no = || Val::int(0);
        let left = Mixed { next, broke: no(), continued: no(), returned, result };
        Ok(left.into_flow())
    }
}

/// What a turn leaves in a variable; `None` where that is what it found.
fn state_of(graph: &Graph, name: &str, value: Val) -> Option<Val> {
    let input = match &value.what {
        crate::stan::value::What::Whole(id) => Some(*id),
        crate::stan::value::What::Scalar(Elem::Of(id, 0)) => Some(*id),
        // Parts of complex numbers that were put together again.
        crate::stan::value::What::Elements(elems) => match elems.list().first() {
            Some(Elem::Of(id, 0)) if graph.nodes[*id].shape == value.shape => {
                let whole = elems.list().iter().enumerate().all(|(i, elem)| *elem == Elem::Of(*id, i as u32));
                whole.then_some(*id)
            }
            _ => None,
        },
        _ => None,
    };
    let same = input.is_some_and(|id| matches!(&graph.nodes[id].op, Op::Input(of) if **of == *name));
    (!same).then_some(value)
}
