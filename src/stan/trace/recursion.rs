//! Functions of the program that call themselves where parameters decide: each is a function of the text, for arguments of
//! these kinds and sizes. What is known of the arguments and the same in all calls stays known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call::Levels;
use super::called::SO_FAR;
use super::flow::Flow;
use super::routine::{ADDED, BEFORE, Called};
use super::stmt::same;
use super::tuple::Form;
use super::{Problem, Result, Term, Tracer, unsupported, wrong};
use crate::base::{HashMap, HashSet, Span};
use crate::stan::emit::{Body, Packing, Part, Slot, Text, marker};
use crate::stan::graph::Graph;
use crate::stan::syntax::ast::Function;
use crate::stan::value::{Elem, Kind, Val};

/// So often a function is inside itself whose calls differ in what is known: the data may well end it.
const MAX_UNROLLED: usize = 8;
/// So many functions of the text one function of the program becomes, for different arguments.
const MAX_INSTANCES: usize = 200;

/// What somebody around is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Again {
    /// To call this function, which calls itself, otherwise.
    Call(Span),
    /// To find out how large what a function gives is.
    Shape,
}

impl Problem {
    pub(super) fn wants_shape(&self) -> bool {
        self.again == Some(Again::Shape)
    }
}

fn again<T>(span: Span, message: String, again: Again) -> Result<T> {
    Err(Box::new(Problem { span, message, help: None, unsupported: true, again: Some(again), others: vec![] }))
}

/// A call that is being run in its place.
struct Active {
    function: Span,
    args: Vec<Val>,
    guards: usize,
    routines: usize,
}

/// A function of the text.
pub(super) struct Instance {
    function: Span,
    pub(super) name: Arc<str>,
    /// Whether it is still being traced.
    pub(super) open: bool,
    forms: Vec<Form>,
    /// The arguments that are known.
    known: Vec<Option<Val>>,
    unnormalized: bool,
    /// Which arguments are data.
    levels: Levels,
    /// What it gives, once that is known.
    result: Option<Form>,
    /// Whether it adds to the log density, and whether it reads it.
    target: bool,
    reads_target: bool,
    acts: bool,
    tables: Arc<str>,
}

/// What a body gives, and what it adds to the log density.
type Returned = (Option<Val>, Vec<Elem>);

impl Instance {
    /// The arguments that are known to it and something else here.
    fn differing(&self, args: &[Val]) -> Vec<usize> {
        let each = self.known.iter().zip(args).enumerate();
        each.filter(|(_, (known, arg))| known.as_ref().is_some_and(|k| !same(k, arg))).map(|(i, _)| i).collect()
    }
}

/// Calls of functions that call themselves.
#[derive(Default)]
pub(super) struct Recursion {
    active: Vec<Active>,
    /// Functions of which parameters decide how deep they go, by their names.
    found: HashSet<Span>,
    /// Which of their arguments differ between calls.
    varying: HashMap<Span, BTreeSet<usize>>,
    pub(super) instances: Vec<Instance>,
    /// For each function what it may call.
    pub(super) names: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl<'a> Tracer<'a> {
    /// Runs a call in its place, or where parameters decide whether it calls itself, calls a function of the text. The
    /// arguments are what the parameters take.
    pub(super) fn enter(
        &mut self,
        span: Span,
        function: &'a Function,
        args: Vec<Val>,
        levels: Levels,
        run: impl FnOnce(&mut Self, &[Val], Levels) -> Result<Option<Val>>,
    ) -> Result<Option<Val>> {
        let key = function.name.span;
        if self.recursion.found.contains(&key) && !args.iter().all(Val::is_known) {
            return self.call_instance(span, function, &args, &levels);
        }
        if self.decided_by_lanes(key, &args) {
            self.recursion.found.insert(key);
            let message = format!("`{}` calls itself where parameters decide", function.name.text);
            return again(span, message, Again::Call(key));
        }
        let outermost = self.recursion.active.iter().all(|a| a.function != key);
        let mark = (outermost && self.may_call(function, &function.name.text)).then(|| self.mark());
        let (guards, routines) = (self.guards.len(), self.routines.depth);
        self.recursion.active.push(Active { function: key, args: args.clone(), guards, routines });
        let active = self.recursion.active.len();
        let done = run(self, &args, levels.clone());
        self.recursion.active.truncate(active - 1);
        match (done, mark) {
            (Err(why), Some(mark)) if why.again == Some(Again::Call(key)) => {
                self.back_to(mark);
                self.call_instance(span, function, &args, &levels)
            }
            (done, _) => done,
        }
    }

    /// Whether a call inside of one of the same function is one that parameters decide about.
    fn decided_by_lanes(&self, key: Span, args: &[Val]) -> bool {
        let mut around = self.recursion.active.iter().rev().filter(|a| a.function == key);
        let Some(last) = around.next() else { return false };
        if self.guards.len() <= last.guards && self.routines.depth <= last.routines {
            return false;
        }
        let counts = last.args.iter().zip(args).any(|(a, b)| a.is_known() && b.is_known() && !same(a, b));
        !counts || around.count() + 1 >= MAX_UNROLLED
    }

    /// Calls the function of the text for these arguments.
    fn call_instance(
        &mut self,
        span: Span,
        function: &'a Function,
        args: &[Val],
        levels: &Levels,
    ) -> Result<Option<Val>> {
        let key = function.name.span;
        let unnormalized = self.unnormalized;
        let like = |i: &Instance| {
            i.function == key
                && i.unnormalized == unnormalized
                && i.levels == *levels
                && i.forms.iter().zip(args).all(|(form, arg)| *form == Form::of(arg))
        };
        let fits = |i: &Instance| {
            i.known.iter().zip(args).all(|(known, arg)| known.as_ref().is_none_or(|known| same(known, arg)))
        };
        let found = self.recursion.instances.iter().position(|i| like(i) && fits(i));
        let at = match found {
            Some(at) => at,
            None => {
                // A call inside of another one, with other known values: they vary.
                if let Some(open) = self.recursion.instances.iter().find(|i| i.open && like(i)) {
                    let differ = open.differing(args);
                    self.recursion.varying.entry(key).or_default().extend(differ);
                    let message = format!("`{}` calls itself with other values", function.name.text);
                    return again(span, message, Again::Call(key));
                }
                // A call beside others, with other known values: one function serves for them all, where that can be.
                let differ = match self.recursion.instances.iter().rev().find(|i| like(i)) {
                    Some(last) => last.differing(args),
                    None => Vec::new(),
                };
                let before = self.recursion.varying.get(&key).cloned().unwrap_or_default();
                let mark = self.mark();
                self.recursion.varying.entry(key).or_default().extend(differ.iter().copied());
                match self.new_instance(span, function, args, levels) {
                    Err(why) if why.again.is_none() && !differ.is_empty() => {
                        self.back_to(mark);
                        self.recursion.varying.insert(key, before);
                        self.new_instance(span, function, args, levels)?
                    }
                    made => made?,
                }
            }
        };
        self.call_found(span, function, at, args)
    }

    fn packing(&self, at: usize) -> Packing {
        let instance = &self.recursion.instances[at];
        let results = instance.result.iter().flat_map(Form::packed);
        let mut parts: Vec<Part> =
            results.map(|(int, shape)| Part { name: "result".into(), int, shape, is_result: true }).collect();
        if instance.target {
            parts.push(Part { name: ADDED.into(), int: false, shape: vec![], is_result: false });
        }
        Packing { parts }
    }

    fn call_found(&mut self, span: Span, function: &'a Function, at: usize, args: &[Val]) -> Result<Option<Val>> {
        let instance = &self.recursion.instances[at];
        let form = instance.result.clone();
        if function.result.is_some() && form.is_none() {
            let message =
                format!("the size of what `{}` gives: every way through it calls it again", function.name.text);
            return again(span, message, Again::Shape);
        }
        let (name, target, acts) = (instance.name.clone(), instance.target, instance.acts);
        let reads_target = instance.reads_target;
        let tables: Arc<str> = if instance.open { marker(&name).into() } else { instance.tables.clone() };
        let known: Vec<bool> = instance.known.iter().map(Option::is_some).collect();
        let packing = self.packing(at);
        let mut given: Vec<Val> = self.on(span)?.into_iter().collect();
        let guarded = !given.is_empty();
        let unknown = args.iter().zip(known).filter(|(_, known)| !known);
        given.extend(unknown.flat_map(|(arg, _)| arg.plain_parts()).cloned());
        if reads_target {
            given.push(self.so_far(span)?);
        }
        let called = Called { name, tables, guarded, acts };
        let mut outputs = self.call_routine(span, called, &given, &packing)?.into_iter();
        let result = form.map(|form| form.unpacked(&mut outputs));
        if let (true, Some(added)) = (target, outputs.next()) {
            self.target.push(Term { value: added.elem(0), span });
        }
        Ok(result)
    }

    /// Writes the function of the text for arguments like these.
    fn new_instance(&mut self, span: Span, function: &'a Function, args: &[Val], levels: &Levels) -> Result<usize> {
        let key = function.name.span;
        if args.iter().any(|arg| arg.counted().is_some()) {
            let text = &function.name.text;
            let what = "elements whose number depends on parameters";
            return unsupported(span, format!("{what}, in `{text}`, which calls itself where parameters decide"));
        }
        if self.recursion.instances.iter().filter(|i| i.function == key).count() >= MAX_INSTANCES {
            let text = &function.name.text;
            return unsupported(span, format!("`{text}`, which calls itself with arguments of ever other sizes"));
        }
        let at = self.recursion.instances.len();
        let name = self.routines.name(&function.name.text);
        let outermost = self.recursion.instances.iter().all(|i| !i.open || i.function != key);
        let target = self.in_density && function.name.text.ends_with("_lp");
        let reads_target = target && self.may_call(function, SO_FAR);
        let mut result = function.result.as_ref().and_then(Form::of_scalars);
        let mut acts = function.result.is_none() && !target;
        loop {
            let varying = self.recursion.varying.get(&key).cloned().unwrap_or_default();
            let known =
                args.iter().enumerate().map(|(i, arg)| (arg.is_known() && !varying.contains(&i)).then(|| arg.clone()));
            let known: Vec<Option<Val>> = known.collect();
            let instance = Instance {
                function: key,
                name: name.clone(),
                open: true,
                forms: args.iter().map(Form::of).collect(),
                known: known.clone(),
                unnormalized: self.unnormalized,
                levels: levels.clone(),
                result: result.clone(),
                target,
                reads_target,
                acts,
                tables: "".into(),
            };
            self.recursion.instances.push(instance);
            let (lines, number, loops) = self.routines.counts();
            let traced = self.trace_body(span, function, args, (&known, levels));
            let forget = |t: &mut Self| {
                t.recursion.instances.truncate(at);
                t.routines.back_to(lines, number, loops);
            };
            let ((value, terms), mut graph) = match traced {
                Ok(traced) => traced,
                Err(why) if why.again == Some(Again::Call(key)) && outermost => {
                    forget(self);
                    continue;
                }
                Err(mut why) => {
                    forget(self);
                    // Nobody around knows more than the arms that were tried.
                    if why.again == Some(Again::Shape) {
                        why.again = None;
                    }
                    return Err(why);
                }
            };
            if value.as_ref().is_some_and(|v| v.counted().is_some()) {
                forget(self);
                return wrong(span, format!("`{}` gives values of different sizes", function.name.text));
            }
            let (wanted, made) = (function.result.is_some(), value.as_ref().map(Form::of));
            let grown = graph.acts() && !acts;
            if wanted && result.is_none() || grown {
                result = made;
                acts |= grown;
                forget(self);
                continue;
            }
            if made != result && wanted {
                forget(self);
                return wrong(span, format!("`{}` gives values of different sizes", function.name.text));
            }
            let mut slots: Vec<Slot> = Vec::new();
            for ((param, arg), known) in function.params.iter().zip(args).zip(&known) {
                if known.is_none() {
                    slots.extend(arg.named_parts(&param.name.text).into_iter().map(|(name, part)| {
                        let (int, shape) = part.kind.given(&part.shape);
                        Slot { name, int, shape, state: None }
                    }));
                }
            }
            if reads_target {
                slots.push(Slot { name: BEFORE.into(), int: false, shape: vec![], state: None });
            }
            let packing = self.packing(at);
            let results = value.iter().flat_map(Val::plain_parts).map(Val::packed).collect();
            let body = Body { name: &name, span: function.span, results, terms, packing };
            let Text { lines: mut own, tables, .. } = body.written(&mut graph, &slots);
            self.recursion.instances[at].open = false;
            let tables = self.finished(&name, &mut own, tables, Some(lines));
            self.routines.lines.extend(own);
            self.recursion.instances[at].tables = tables;
            return Ok(at);
        }
    }

    /// Runs the body of a function whose arguments lanes know.
    fn trace_body(
        &mut self,
        span: Span,
        function: &'a Function,
        args: &[Val],
        (known, levels): (&[Option<Val>], &Levels),
    ) -> Result<(Returned, Graph)> {
        let Some(body) = &function.body else {
            return wrong(span, format!("`{}` has no body", function.name.text));
        };
        let active = std::mem::take(&mut self.recursion.active);
        self.frames.push(vec![Arc::default()]);
        self.levels.push(levels.clone());
        self.depth += 1;
        let made = self.inside(|t| {
            let before = t.input(span, BEFORE, Kind::REAL, vec![])?;
            t.target.push(Term { value: before.elem(0), span });
            for ((param, arg), known) in function.params.iter().zip(args).zip(known) {
                let value = match known {
                    Some(known) => known.clone(),
                    None => t.argument(param.name.span, &param.name.text, arg)?,
                };
                t.bind(&param.name.text, value);
            }
            match t.run(body)? {
                Flow::Return(value) => Ok(value),
                Flow::Mixed(mixed) => Ok(mixed.result),
                _ if function.result.is_none() => Ok(None),
                _ => wrong(span, format!("`{}` ends without `return`", function.name.text)),
            }
        });
        self.depth -= 1;
        self.levels.pop();
        self.frames.pop();
        self.recursion.active = active;
        let (value, graph, terms) = made?;
        let value = match (value, &function.result) {
            (Some(value), Some(ty)) => Some(self.as_type(span, value, ty)?),
            (value, _) => value,
        };
        Ok(((value, terms[1..].iter().map(|t| t.value).collect()), graph))
    }

    /// What a routine is given for a parameter that has arguments like this one.
    fn argument(&mut self, span: Span, name: &Arc<str>, like: &Val) -> Result<Val> {
        let mut parts = Vec::new();
        for (name, plain) in like.named_parts(name) {
            parts.push(self.input(span, &name, plain.kind, plain.shape.clone())?);
        }
        Ok(like.with_plain_parts(&mut parts.into_iter()))
    }
}
