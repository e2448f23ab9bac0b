//! Derivatives: a call of one is a call of a *placeholder*, a function without blocks, and a request that says what must
//! fill it. What cannot be filled because it draws at random is found here, where all functions are known.

use std::collections::BTreeSet;

use super::call::{self, Asked};
use super::func::{Lowered, Lowering};
use super::instance::{Closure, Code, DerivativeOf, Instance, Made, Specialiser};
use super::signature::layout_at;
use super::value::{Dims, Form, Layout, Value};
use crate::base::{Diagnostic, Id as _, IdVec, Span};
use crate::cfg::{Block, BlockId, Func, FuncId, InstKind, Operand, SideEffect, Terminator, Var, VarId};
use crate::hir::{Derivative, DerivativeCall, Expr, FnId};
use crate::prim::Prim;
use crate::transform::derivative::{CustomRule, DerivativeRequest, DerivativeRequests, Mode};
use crate::types::{DType, Scalar, Type};

/// What a function does that a derivative of it, or computing it twice, must know.
#[derive(Default)]
pub(super) struct Facts {
    /// What it calls, outside of `stop_gradient`.
    calls: Vec<(FuncId, Span)>,
    /// The first draw outside of `stop_gradient`.
    draw: Option<(Prim, Span)>,
    /// Whether it draws, prints or emits, inside of `stop_gradient` too.
    effect: Option<(&'static str, Span)>,
    /// What it calls inside of `stop_gradient`.
    stopped_calls: Vec<(FuncId, Span)>,
    /// The first draw, inside of `stop_gradient` too.
    any_draw: Option<Span>,
    /// What it attempts to call.
    attempts: Vec<(FuncId, Span)>,
}

impl<'a> Lowering<'_, 'a> {
    /// Notes what an instruction does.
    pub(super) fn note(&mut self, kind: &InstKind) {
        let span = self.span();
        let effect = match kind {
            InstKind::Prim { prim, .. } if prim.is_draw() => {
                if self.stopped == 0 {
                    self.facts.draw.get_or_insert((*prim, span));
                }
                self.facts.any_draw.get_or_insert(span);
                prim.name()
            }
            InstKind::Effect(SideEffect::Print(_)) => "print",
            InstKind::Effect(SideEffect::Emit { .. }) => "emit",
            _ => return,
        };
        self.facts.effect.get_or_insert((effect, span));
    }

    /// Notes a call.
    pub(super) fn called(&mut self, func: FuncId) {
        let call = (func, self.span());
        if self.stopped == 0 {
            self.facts.calls.push(call);
        } else {
            self.facts.stopped_calls.push(call);
        }
    }

    /// The function that an attempt of a function calls.
    pub(super) fn attempted(&mut self, func: FuncId) -> Lowered<FuncId> {
        // What stands in `stop_gradient` is not run again by a reverse sweep.
        if self.stopped == 0 {
            self.facts.attempts.push((func, self.span()));
        }
        if has_rule(self.spec, func) { self.spec.request_attempted(func, self.span()) } else { Ok(func) }
    }

    /// `stop_gradient(value)`
    pub(super) fn stop_gradient(&mut self, value: &'a Expr) -> Lowered<Value> {
        self.stopped += 1;
        let value = self.expr(value);
        self.stopped -= 1;
        Ok(self.stopped_value(&value?))
    }

    fn stopped_value(&mut self, value: &Value) -> Value {
        match value {
            Value::Leaf(operand) if operand.var().is_some() && self.type_of(*operand).dtype == DType::Real => {
                let ty = self.type_of(*operand);
                Value::Leaf(self.prim(Prim::StopGradient, &[*operand], &ty))
            }
            Value::Fields(fields) => Value::Fields(fields.iter().map(|f| self.stopped_value(f)).collect()),
            value => value.clone(),
        }
    }

    /// A derivative at arguments.
    pub(super) fn derivative(&mut self, call: &'a DerivativeCall) -> Lowered<Value> {
        let DerivativeCall { op, function, wrt, args, direction } = call;
        let function = self.expr(function)?;
        let given = self.values(args)?;
        let direction = match direction {
            Some(direction) => self.values(std::slice::from_ref(direction))?,
            None => Some(Vec::new()),
        };
        let (Value::Function(function), Some(given), Some(direction)) = (function, given, direction) else {
            return Ok(Value::Never);
        };
        let direction = direction.into_iter().next();
        let result = call::result_layout(self.spec, function.closure, self.span())?;
        let parts = wrt.iter().map(|i| self.layout(&args[*i].ty)).collect::<Lowered<Vec<Layout>>>()?;
        let asked = self.ask(&function, &given)?;
        match op {
            Derivative::Jvp => self.forward(asked, wrt, &result, direction),
            _ => self.reverse(*op, asked, wrt, &result, &parts, direction),
        }
    }

    fn forward(&mut self, asked: Asked, wrt: &[usize], result: &Layout, direction: Option<Value>) -> Lowered<Value> {
        let Some(direction) = direction else {
            return Ok(Value::Never);
        };
        // One value, or the tuple of several in the order of `wrt`; the function takes them in the order of parameters.
        let mut parts: Vec<(usize, Value)> = match (wrt, direction) {
            ([i], direction) => vec![(*i, direction)],
            (_, Value::Fields(parts)) => wrt.iter().copied().zip(parts).collect(),
            _ => return Ok(Value::Never),
        };
        parts.sort_by_key(|(i, _)| *i);
        let func = self.placeholder(&asked, wrt, Mode::Forward, false)?;
        let mut operands = asked.operands;
        for (_, part) in parts {
            operands.extend(part.leaves().unwrap_or_default());
        }
        let (mut dsts, value) = self.temporaries(result);
        let (tangent_dsts, tangent) = self.temporaries(result);
        dsts.extend(tangent_dsts);
        self.call_block(func, operands, dsts);
        Ok(Value::Fields(vec![value, tangent]))
    }

    fn reverse(
        &mut self,
        op: Derivative,
        asked: Asked,
        wrt: &[usize],
        result: &Layout,
        cotangents: &[Layout],
        direction: Option<Value>,
    ) -> Lowered<Value> {
        let func = self.placeholder(&asked, wrt, Mode::Reverse, direction.is_none())?;
        let mut operands = asked.operands;
        match direction {
            Some(direction) => operands.extend(direction.leaves().unwrap_or_default()),
            None => operands.push(Operand::Const(Scalar::Real(1.0))),
        }
        let (mut dsts, value) = self.temporaries(result);
        let mut order: Vec<usize> = (0..wrt.len()).collect();
        order.sort_by_key(|at| wrt[*at]);
        let mut parts: Vec<Value> = vec![Value::Never; wrt.len()];
        for at in order {
            let (part_dsts, part) = self.temporaries(&cotangents[at]);
            dsts.extend(part_dsts);
            parts[at] = part;
        }
        self.call_block(func, operands, dsts);
        let gradient = if parts.len() == 1 { parts.remove(0) } else { Value::Fields(parts) };
        Ok(match op {
            Derivative::Grad => gradient,
            _ => Value::Fields(vec![value, gradient]),
        })
    }

    fn placeholder(&mut self, asked: &Asked, wrt: &[usize], mode: Mode, of_one: bool) -> Lowered<FuncId> {
        let mut flags = vec![false; asked.operands.len()];
        for i in wrt {
            flags[asked.starts[*i]..asked.starts[*i + 1]].fill(true);
        }
        let derivative = DerivativeOf { of: asked.func, mode, wrt: flags, of_one };
        let func = self.spec.request_derivative(derivative, self.span())?;
        self.called(func);
        Ok(func)
    }
}

/// The function without blocks for a derivative.
pub(super) fn placeholder(derivative: &DerivativeOf, funcs: &IdVec<FuncId, Func>, name: String) -> Func {
    let of = &funcs[derivative.of];
    let mut vars: IdVec<VarId, Var> = IdVec::new();
    let mut params: Vec<VarId> = Vec::new();
    for param in &of.params {
        params.push(vars.push(of.vars[*param].clone()));
    }
    let wrt = of.params.iter().zip(&derivative.wrt).filter(|(_, wrt)| **wrt).map(|(param, _)| &of.vars[*param]);
    let wrt: Vec<Var> = wrt.cloned().collect();
    let real = |ty: &&Type| ty.dtype == DType::Real;
    let mut results = of.results.clone();
    let mut add = |prefix: &str, name: &str, ty: &Type| {
        let mut name = format!("{prefix}{name}");
        while vars.values().any(|v| v.name == name) {
            name.push('_');
        }
        params.push(vars.push(Var { name, ty: ty.clone() }));
    };
    match derivative.mode {
        Mode::Forward => {
            wrt.iter().for_each(|var| add("d.", &var.name, &var.ty));
            results.extend(of.results.iter().filter(real).cloned());
        }
        Mode::Reverse => {
            for (i, ty) in of.results.iter().filter(real).enumerate() {
                add("d.result", &i.to_string(), ty);
            }
            results.extend(wrt.iter().map(|var| var.ty.clone()));
        }
    }
    Func { name, params, results, vars, blocks: IdVec::new(), loc: of.loc.clone() }
}

/// A function that only calls another one.
pub(super) fn attempted((of, span): (FuncId, Span), functions: &Functions, name: String) -> (Func, Facts) {
    let called = &functions.funcs[of];
    let mut vars: IdVec<VarId, Var> = IdVec::new();
    let params: Vec<VarId> = called.params.iter().map(|p| vars.push(called.vars[*p].clone())).collect();
    let results = called.results.iter().enumerate();
    let dsts: Vec<VarId> =
        results.map(|(i, ty)| vars.push(Var { name: format!("result#{i}"), ty: ty.clone() })).collect();
    let values = |vars: &[VarId]| vars.iter().map(|v| Operand::Var(*v)).collect::<Vec<Operand>>();
    let (loc, next) = (called.loc.clone(), BlockId::new(1));
    let returns = Terminator::Return(values(&dsts));
    let call = Terminator::Call { func: of, args: values(&params), dsts, next, loc: loc.clone(), attempt: false };
    let block = |term: Terminator| Block { insts: Vec::new(), term, loc: loc.clone() };
    let blocks = [block(call), block(returns)].into_iter().collect();
    let facts = Facts { calls: vec![(of, span)], ..Facts::default() };
    (Func { name, params, results: called.results.clone(), vars, blocks, loc: loc.clone() }, facts)
}

/// The functions of a program and what each does, in one order.
#[derive(Default)]
pub(super) struct Functions {
    pub(super) funcs: IdVec<FuncId, Func>,
    pub(super) facts: IdVec<FuncId, Facts>,
}

/// Asks for the rules of the functions that have some, from function `from` on; says how far it came. Without derivatives
/// nothing needs them.
pub(super) fn request_rules(spec: &mut Specialiser<'_>, from: usize) -> Lowered<usize> {
    let derivative = |i: usize| matches!(spec.made(FuncId::new(i)), Some((Made::Derivative(_), _)));
    if spec.program.rules.is_empty() || !(0..spec.len()).any(derivative) {
        return Ok(from);
    }
    let end = spec.len();
    for i in from..end {
        rules_of(spec, FuncId::new(i))?;
    }
    Ok(end)
}

/// The rules of a function, asked for with the same dimensions, closures and forms.
fn rules_of(spec: &mut Specialiser<'_>, func: FuncId) -> Lowered<Option<CustomRule>> {
    let Some((Made::Instance(instance), span)) = spec.made(func) else {
        return Ok(None);
    };
    let instance = instance.clone();
    let closure = spec.closure_of(instance.closure);
    let Code::Fn(id) = closure.code else {
        return Ok(None);
    };
    let Some(rules) = spec.program.rules.get(&id).copied() else {
        return Ok(None);
    };
    let dims = closure.dims.clone();
    let mut captured = vec![false; dims.bounded.len()];
    instance.params.iter().for_each(|form| captures(spec, form, false, &mut captured));
    let mut rule = CustomRule { captured, ..CustomRule::default() };
    for (wanted, made) in [(rules.forward, &mut rule.forward), (rules.reverse, &mut rule.reverse)] {
        if let Some(wanted) = wanted {
            *made = Some(request_rule(spec, wanted, &dims, &instance, span)?);
        }
    }
    Ok(Some(rule))
}

/// Of each parameter that a form stands for, whether a function captured it.
fn captures(spec: &Specialiser<'_>, form: &Form, captured: bool, into: &mut Vec<bool>) {
    match form {
        Form::Static(_) => {}
        Form::Varying(_) => into.push(captured),
        Form::Fields(fields) => fields.iter().for_each(|form| captures(spec, form, captured, into)),
        Form::Function(id) => {
            let closure = spec.closure_of(*id);
            into.extend(closure.dims.bounded.iter().map(|_| true));
            closure.captures.iter().for_each(|(_, form)| captures(spec, form, true, into));
        }
    }
}

fn request_rule(
    spec: &mut Specialiser<'_>,
    rule: FnId,
    dims: &Dims,
    instance: &Instance,
    span: Span,
) -> Lowered<FuncId> {
    let home = spec.program.function(rule);
    let mut params = instance.params.clone();
    for param in &home.params[params.len()..] {
        let local = &home.locals[param.local];
        let layout = layout_at(spec.program, &local.ty, &home.dims, dims, local.span)?;
        params.push(varying(&layout));
    }
    let closure = Closure { code: Code::Fn(rule), dims: dims.clone(), captures: Vec::new() };
    let closure = spec.closure(closure, span)?;
    spec.request(Instance { closure, params }, span)
}

fn varying(layout: &Layout) -> Form {
    match layout {
        Layout::Leaf(ty) => Form::Varying(ty.clone()),
        Layout::Fields(fields) => Form::Fields(fields.iter().map(|(_, layout)| varying(layout)).collect()),
        Layout::Function | Layout::Never => Form::Fields(Vec::new()),
    }
}

/// What must fill the placeholders, and the place of each in the source.
///
/// # Errors
/// Derivatives through random draws (E0908), and functions that cannot be computed twice (E0913).
pub(super) fn requests(
    spec: &Specialiser<'_>,
    functions: &Functions,
) -> Result<(DerivativeRequests, Vec<Span>), Vec<Diagnostic>> {
    let Functions { funcs, facts } = functions;
    let mut requests = DerivativeRequests::default();
    let mut places = Vec::new();
    let mut problems: Vec<Diagnostic> = Vec::new();
    for func in funcs.ids() {
        let Some((made, span)) = spec.made(func) else {
            continue;
        };
        match made {
            Made::Derivative(DerivativeOf { of, mode, wrt, of_one }) => {
                problems.extend(through_draw(spec, facts, *of, span));
                if *mode == Mode::Reverse {
                    problems.extend(drawing_attempt(spec, facts, *of, span));
                }
                let loc = spec.sources.loc(funcs[*of].loc.function.as_ref(), span);
                let (of_one, wrt) = (*of_one, wrt.clone());
                requests.requests.push(DerivativeRequest { target: func, of: *of, mode: *mode, wrt, of_one, loc });
                places.push(span);
            }
            Made::Instance(instance) => {
                let Code::Fn(id) = spec.closure_of(instance.closure).code else {
                    continue;
                };
                if spec.program.function(id).recompute {
                    problems.extend(repeated(spec, facts, func));
                    requests.recompute.insert(func);
                }
            }
            Made::Element(_) | Made::Attempted(_) => {}
        }
    }
    problems.dedup();
    if problems.is_empty() { Ok((requests, places)) } else { Err(problems) }
}

/// Searches what a function calls, the nearest first, for something that it does.
fn search<T>(
    spec: &Specialiser<'_>,
    facts: &IdVec<FuncId, Facts>,
    start: FuncId,
    stopped_too: bool,
    find: impl Fn(&Facts) -> Option<T>,
) -> Option<(Vec<FuncId>, T)> {
    let mut seen = BTreeSet::from([start]);
    let mut ways: Vec<(FuncId, Option<usize>)> = vec![(start, None)];
    let mut next = 0;
    while let Some((func, _)) = ways.get(next).copied() {
        if let Some(found) = find(&facts[func]) {
            let mut path = Vec::new();
            let mut at = Some(next);
            while let Some(i) = at {
                path.push(ways[i].0);
                at = ways[i].1;
            }
            path.reverse();
            return Some((path, found));
        }
        let stopped = if stopped_too { &facts[func].stopped_calls[..] } else { &[] };
        let mut called: Vec<FuncId> = facts[func].calls.iter().chain(stopped).map(|(f, _)| *f).collect();
        if let Some((Made::Derivative(derivative), _)) = spec.made(func) {
            called.push(derivative.of);
        }
        for func in called {
            // a derivative by hand stands in the place of the body
            let replaced = !stopped_too && has_rule(spec, func);
            if !replaced && seen.insert(func) {
                ways.push((func, Some(next)));
            }
        }
        next += 1;
    }
    None
}

fn through_draw(spec: &Specialiser<'_>, facts: &IdVec<FuncId, Facts>, of: FuncId, span: Span) -> Option<Diagnostic> {
    if has_rule(spec, of) {
        return None;
    }
    let (path, (drawn, at)) = search(spec, facts, of, false, |facts| facts.draw)?;
    let mut names: Vec<String> = Vec::new();
    let mut last = (format!("`{}`", drawn.name()), at);
    for (i, func) in path.iter().enumerate() {
        let name = format!("`{}`", call::base_name(spec, *func));
        // A function of the library is told by its call.
        if let (true, Some(caller)) = (ships(spec, *func), i.checked_sub(1)) {
            let calls = facts[path[caller]].calls.iter().find(|(called, _)| called == func);
            last = (name, calls.map_or(at, |(_, span)| *span));
            break;
        }
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    let (name, at) = last;
    names.push(format!("{name} (line {})", spec.sources.line_column(at).0));
    let message = format!("a derivative goes through a random draw: {}", names.join(" → "));
    let error = Diagnostic::error("E0908", message, span, "this derivative").with_label(at, "drawn here");
    Some(error.with_help("draw before and pass the value, or mark the draw a constant: `stop_gradient(…)`"))
}

/// An attempt that a reverse derivative makes twice, and that draws.
fn drawing_attempt(spec: &Specialiser<'_>, facts: &IdVec<FuncId, Facts>, of: FuncId, span: Span) -> Option<Diagnostic> {
    let drawing = |attempts: &Facts| {
        attempts.attempts.iter().find_map(|(func, at)| {
            let (_, drawn) = search(spec, facts, *func, true, |facts| facts.any_draw)?;
            Some((*at, drawn))
        })
    };
    let (_, (at, drawn)) = search(spec, facts, of, false, drawing)?;
    let message = "a derivative goes through an attempt that draws at random: it would draw twice";
    let error = Diagnostic::error("E0916", message, span, "this derivative").with_label(at, "the attempt");
    Some(error.with_label(drawn, "drawn here").with_help("draw before the attempt and pass the value"))
}

/// Whether the user wrote the derivative of the function.
fn has_rule(spec: &Specialiser<'_>, func: FuncId) -> bool {
    match spec.made(func) {
        Some((Made::Instance(instance), _)) => {
            let Code::Fn(id) = spec.closure_of(instance.closure).code else { return false };
            spec.program.rules.contains_key(&id)
        }
        _ => false,
    }
}

/// Whether the function belongs to the library.
fn ships(spec: &Specialiser<'_>, func: FuncId) -> bool {
    match spec.made(func) {
        Some((Made::Instance(instance), _)) => {
            let home = spec.closure_of(instance.closure).code.home();
            spec.sources.file(spec.program.function(home).span.file).name.starts_with("std/")
        }
        _ => false,
    }
}

fn repeated(spec: &Specialiser<'_>, facts: &IdVec<FuncId, Facts>, func: FuncId) -> Option<Diagnostic> {
    let (_, (_, at)) = search(spec, facts, func, true, |facts| facts.effect)?;
    let name = call::base_name(spec, func);
    let message = format!("`{name}` is `@recompute`: it must neither draw, print nor emit");
    let error = Diagnostic::error("E0913", message, at, "it would happen twice");
    Some(error.with_help("remove `@recompute`"))
}

impl Specialiser<'_> {
    /// The rules of all functions that have some; they were asked for.
    pub(super) fn rules(&mut self, count: usize) -> Lowered<Vec<(FuncId, CustomRule)>> {
        let mut found = Vec::new();
        for i in 0..count {
            let func = FuncId::new(i);
            if let Some(rule) = rules_of(self, func)? {
                found.push((func, rule));
            }
        }
        Ok(found)
    }
}
