//! Statements.

use std::sync::Arc;

use super::flow::Flow;
use super::index::{number_at, one_place};
use super::tuple::has_field;
use super::{Frame, Result, Term, Tracer, Variable, unsupported, wrong};
use crate::base::{FATAL, Span};
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Expr, ExprKind, Printable, Stmt, StmtKind};
use crate::stan::value::{Kind, Val, What};

/// What a program does after a list of statements.
#[derive(Clone, Copy)]
enum After<'s> {
    /// The function or the block ends.
    End,
    /// A loop goes on.
    Loop,
    /// More statements, of the list around.
    List(&'s Rest<'s>),
}

/// The statements after one, up to the end of its list, and what comes after that.
struct Rest<'s> {
    stmts: &'s [Stmt],
    after: After<'s>,
}

impl Rest<'_> {
    /// Whether a loop goes on after all of them, in place of a function's end.
    fn in_loop(&self) -> bool {
        match self.after {
            After::End => false,
            After::Loop => true,
            After::List(more) => more.in_loop(),
        }
    }
}

impl Tracer<'_> {
    /// Runs statements one after the other.
    pub(in crate::stan) fn run(&mut self, stmts: &[Stmt]) -> Result<Flow> {
        self.run_list(stmts, After::End)
    }

    fn run_list(&mut self, stmts: &[Stmt], after: After<'_>) -> Result<Flow> {
        for (at, stmt) in stmts.iter().enumerate() {
            let rest = &stmts[at + 1..];
            match self.arm(stmt, &Rest { stmts: rest, after })? {
                Flow::Next => {}
                Flow::Mixed(left) if !rest.is_empty() && !left.is_over() => {
                    let flow = self.masked(stmt.span, &left, |t| t.run_list(rest, after))?;
                    return Ok(self.then(stmt.span, *left, flow)?.into_flow());
                }
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// What comes after a statement, up to the end of the function.
    fn run_rest(&mut self, rest: &Rest<'_>) -> Result<Flow> {
        match (self.run_list(rest.stmts, rest.after)?, rest.after) {
            (Flow::Next, After::List(more)) => self.run_rest(more),
            (Flow::Mixed(left), After::List(more)) if !left.is_over() => {
                let span = rest.stmts.last().map_or_else(|| Span::new(crate::base::FileId(0), 0, 0), |s| s.span);
                let flow = self.masked(span, &left, |t| t.run_rest(more))?;
                Ok(self.then(span, *left, flow)?.into_flow())
            }
            // Whoever comes to the end of a function returns.
            (Flow::Next, After::End) => Ok(Flow::Return(None)),
            (Flow::Mixed(left), After::End | After::List(_)) => Ok(Flow::Return(left.result)),
            (flow, _) => Ok(flow),
        }
    }

    /// A statement that may have others within, of which one may return where others go on with the rest.
    fn arm(&mut self, stmt: &Stmt, rest: &Rest<'_>) -> Result<Flow> {
        match &stmt.kind {
            StmtKind::If { condition, then, otherwise } => {
                let c = self.eval(condition)?;
                let c = self.truth(condition.span, &c)?;
                match (c.as_int(), otherwise) {
                    (None, _) => self.branch(stmt.span, &c, then, otherwise.as_deref(), rest),
                    (Some(0), None) => Ok(Flow::Next),
                    (Some(0), Some(otherwise)) => self.scoped(|t| t.arm(otherwise, rest)),
                    (Some(_), _) => self.scoped(|t| t.arm(then, rest)),
                }
            }
            StmtKind::Profile { body, .. } | StmtKind::Block(body) => {
                self.scoped(|t| t.run_list(body, After::List(rest)))
            }
            _ => self.stmt(stmt),
        }
    }

    pub(in crate::stan) fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => self.declare(ty, variables)?,
            StmtKind::Assign { place, op, value } => {
                let new = self.eval_counted(value)?;
                self.assign(span, place, *op, new)?;
            }
            StmtKind::Call { name, args } => {
                self.call_void(span, name, args)?;
            }
            StmtKind::Target(e) | StmtKind::Jacobian(e) => {
                let value = self.eval_counted(e)?;
                self.add_terms(e.span, &value)?;
            }
            StmtKind::Tilde { value, distribution, args, truncation } => {
                self.tilde(span, value, distribution, args, truncation.as_ref())?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Return(None) => return Ok(Flow::Return(None)),
            StmtKind::Return(Some(e)) => return Ok(Flow::Return(Some(self.eval_counted(e)?))),
            StmtKind::Print(parts) => self.print(span, parts)?,
            StmtKind::Reject(parts) => self.reject(span, "", parts)?,
            StmtKind::FatalError(parts) => self.reject(span, FATAL, parts)?,
            StmtKind::Skip => {}
            StmtKind::If { .. } | StmtKind::Profile { .. } | StmtKind::Block(_) => {
                return self.arm(stmt, &Rest { stmts: &[], after: After::Loop });
            }
            StmtKind::While { condition, body } => return self.while_loop(span, condition, body),
            StmtKind::For { var, from, to, body } => {
                let (from, to) = (self.eval(from)?, self.eval(to)?);
                return self.for_loop(span, var, from, to, body);
            }
            StmtKind::ForEach { var, over, body } => {
                let over = self.eval_counted(over)?;
                return self.for_each(span, var, &over, body);
            }
            StmtKind::Error => return wrong(span, "this does not parse"),
        }
        Ok(Flow::Next)
    }

    /// An `if` whose condition lanes compute: both arms run, and what they leave is chosen. Where one of them returns from
    /// a function, and no loop is around, the other goes on with `rest`.
    fn branch(&mut self, span: Span, c: &Val, then: &Stmt, otherwise: Option<&Stmt>, rest: &Rest<'_>) -> Result<Flow> {
        let off = self.negated(span, c)?;
        let before = self.frame().clone();
        let first = self.guarded(c, |t| t.scoped(|t| t.arm(then, rest)));
        let after_first = std::mem::replace(self.frame(), before);
        let second = match otherwise {
            Some(arm) => self.guarded(&off, |t| t.scoped(|t| t.arm(arm, rest))),
            None => Ok(Flow::Next),
        };
        let to_end = !rest.in_loop();
        let (first, second) = match (first, second) {
            // What a function gives that calls itself is told by the arm that does not call it.
            (Err(why), Ok(second)) if why.wants_shape() => {
                return if to_end && matches!(second, Flow::Next) { self.run_rest(rest) } else { Ok(second) };
            }
            (Ok(first), Err(why)) if why.wants_shape() => {
                *self.frame() = after_first;
                return if to_end && matches!(first, Flow::Next) { self.run_rest(rest) } else { Ok(first) };
            }
            (first, second) => (first?, second?),
        };
        match (first, second) {
            (first @ Flow::Return(_), Flow::Next) if to_end => match self.guarded(&off, |t| t.run_rest(rest)) {
                Err(why) if why.wants_shape() => Ok(first),
                second => {
                    let second = second?;
                    self.joined(span, (c, &off), first, second)
                }
            },
            (Flow::Next, second @ Flow::Return(_)) if to_end => {
                *self.frame() = after_first;
                match self.guarded(c, |t| t.run_rest(rest)) {
                    Err(why) if why.wants_shape() => Ok(second),
                    first => {
                        let first = first?;
                        self.joined(span, (c, &off), first, second)
                    }
                }
            }
            (first, second) => {
                // Who has returned reads no variables any more.
                match (&first, &second) {
                    (Flow::Return(_), _) => {}
                    (_, Flow::Return(_)) => *self.frame() = after_first,
                    _ => self.merge(span, c, &after_first)?,
                }
                self.joined(span, (c, &off), first, second)
            }
        }
    }

    /// Runs something of which only those lanes know where a condition holds.
    pub(super) fn guarded<T>(&mut self, condition: &Val, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.guards.push(condition.clone());
        let done = run(self);
        self.guards.pop();
        done
    }

    pub(super) fn choose_result(&mut self, span: Span, c: &Val, a: Val, b: Val) -> Result<Val> {
        let (a, b) = if a.kind.is_int() == b.kind.is_int() { (a, b) } else { (a.promoted(), b.promoted()) };
        self.select(span, c, &a, &b)
    }

    /// What variables hold after an `if`: what they hold now where the condition fails, and what they held then where it holds.
    pub(super) fn merge(&mut self, span: Span, c: &Val, then: &Frame) -> Result<()> {
        for level in 0..self.frame().len() {
            let now = &self.frame()[level];
            if Arc::ptr_eq(now, &then[level]) {
                continue;
            }
            let mut changed: Vec<(Arc<str>, Val, Val)> = Vec::new();
            for (name, Variable { value }) in now.iter() {
                let then = &then[level].get(name).expect("both arms have the variables around").value;
                if !same(value, then) {
                    changed.push((name.clone(), then.clone(), value.clone()));
                }
            }
            changed.sort_by(|a, b| a.0.cmp(&b.0));
            for (name, then, now) in changed {
                let value = self.select(span, c, &then, &now)?;
                Arc::make_mut(&mut self.frame()[level]).get_mut(&name).expect("it is there").value = value;
            }
        }
        Ok(())
    }

    /// `place = value` and its kin.
    fn assign(
        &mut self,
        span: Span,
        place: &Expr,
        op: Option<crate::stan::syntax::ast::BinaryOp>,
        value: Val,
    ) -> Result<()> {
        if let ExprKind::Tuple(places) = &place.kind {
            for (place, part) in places.iter().zip(value.parts().unwrap_or_default()) {
                self.assign(span, place, op, part.clone())?;
            }
            return Ok(());
        }
        if value.counted().is_some() && has_field(place) {
            return unsupported(span, "elements whose number depends on parameters, in a tuple");
        }
        if value.is_tuple() || has_field(place) {
            return self.assign_in_tuple(span, place, op, value);
        }
        let (name, indices) = self.place(place)?;
        if self.value(&name.text).is_none() {
            return wrong(name.span, format!("there is no variable `{}` here", name.text));
        }
        if !value.is_known() {
            self.graph.call(&name.text, &value);
        }
        let old = self.value(&name.text).expect("looked for above");
        if let (Some(at), What::Scalar(_)) = (one_place(old, &indices), &value.what) {
            let value = match op {
                None => value,
                Some(op) => {
                    let now = number_at(old, at);
                    self.binary(span, op, &now, &value)?
                }
            };
            let hold = &mut self.lookup_mut(&name.text).expect("looked for above").value;
            let value = if hold.kind.is_int() { value } else { value.promoted() };
            hold.set(&[at], &value);
            return Ok(());
        }
        let old = old.clone();
        let value = match op {
            None => value,
            Some(op) => {
                let now = if indices.is_empty() { old.clone() } else { self.indexed(place.span, &old, &indices)? };
                self.binary(span, op, &now, &value)?
            }
        };
        let is_counted = super::index::At::is_counted;
        if old.counted().is_some() || value.counted().is_some() || indices.iter().any(is_counted) {
            let made = self.assigned_counted(span, &old, &indices, &value)?;
            self.lookup_mut(&name.text).expect("found above").value = made;
            return Ok(());
        }
        if indices.is_empty() {
            let value = self.fitted(span, &old, value)?;
            self.lookup_mut(&name.text).expect("found above").value = value;
            return Ok(());
        }
        self.check_indices(&old.shape, &indices)?;
        // The variable gives its elements up while they change, so that they are not copied.
        let hold = self.lookup_mut(&name.text).expect("found above");
        hold.value = Val::int(0);
        let made = match indices.iter().any(super::index::At::is_of_lanes) {
            true => self.with_element(span, &old, &indices, &value),
            false => self.with_places(span, old, &indices, &value),
        }?;
        self.lookup_mut(&name.text).expect("found above").value = made;
        Ok(())
    }

    fn with_places(&mut self, span: Span, mut old: Val, indices: &[super::index::At], value: &Val) -> Result<Val> {
        if old.is_complex() {
            let ((re, im), (new_re, new_im)) = (old.into_re_im(), value.re_im());
            let re = self.with_places(span, re, indices, &new_re)?;
            return Ok(Val::complex(re, self.with_places(span, im, indices, &new_im)?));
        }
        let chosen = self.choose(old.kind, &old.shape, indices, span)?;
        let shape = chosen.shape();
        if shape != value.shape {
            return wrong(span, format!("the place has the size {shape:?}, the value {:?}", value.shape));
        }
        let value = if old.kind.is_int() { value.clone() } else { value.promoted() };
        let places = chosen.places(&old.shape);
        old.set(&places, &value);
        Ok(old)
    }

    /// Adds all elements of a value to the log density.
    pub(in crate::stan) fn add_terms(&mut self, span: Span, value: &Val) -> Result<()> {
        if !self.in_density {
            return Ok(());
        }
        let mut value = if value.is_scalar() {
            value.promoted()
        } else if value.counted().is_some() {
            self.library(span, "sum", &[value.promoted()])?
        } else {
            self.call_ab(span, "sum", &[value.promoted()], Kind::REAL, vec![])?
        };
        for guard in self.guards.clone() {
            value = self.select(span, &guard, &value, &Val::real(0.0))?;
        }
        self.target.push(Term { value: value.elem(0), span });
        Ok(())
    }

    fn texts(&mut self, parts: &[Printable]) -> Result<(Vec<Arc<str>>, Vec<Val>)> {
        let (mut texts, mut values) = (vec![String::new()], Vec::new());
        for part in parts {
            match part {
                Printable::Text(text, _) => texts.last_mut().expect("there is one").push_str(text),
                Printable::Value(e) => {
                    let value = self.eval(e)?;
                    shown(value, &mut texts, &mut values);
                }
            }
        }
        Ok((texts.into_iter().map(Arc::from).collect(), values))
    }

    fn print(&mut self, span: Span, parts: &[Printable]) -> Result<()> {
        let (texts, values) = self.texts(parts)?;
        if self.before_lanes
            && let Some(known) = values.iter().map(Val::known_text).collect::<Option<Vec<_>>>()
        {
            self.printed.push(filled(&texts, &known));
            return Ok(());
        }
        let on = self.on(span)?;
        let guarded = on.is_some();
        let values: Vec<Val> = on.into_iter().chain(values).collect();
        self.node(span, Op::Print(texts.into(), guarded), &values, Kind::INT, vec![])?;
        Ok(())
    }

    fn reject(&mut self, span: Span, word: &str, parts: &[Printable]) -> Result<()> {
        let (mut texts, values) = self.texts(parts)?;
        // By how it begins a message ends the run: that of `reject` never does.
        let word = if texts[0].starts_with(FATAL) { "reject: " } else { word };
        texts[0] = format!("{word}{}", texts[0]).into();
        self.check_telling(span, &Val::int(0), texts, values)
    }
}

/// A text with its holes filled.
pub(super) fn filled(texts: &[Arc<str>], values: &[String]) -> String {
    let mut message = String::new();
    for (i, text) in texts.iter().enumerate() {
        message.push_str(text);
        message.push_str(values.get(i).map_or("", String::as_str));
    }
    message
}

/// Adds a value to what is printed: the parts of a tuple or of a complex number in brackets.
fn shown(value: Val, texts: &mut Vec<String>, values: &mut Vec<Val>) {
    if value.is_complex() && !value.is_scalar() {
        let size = value.len() / value.shape[0].max(1);
        for i in 0..value.shape[0] {
            texts.last_mut().expect("there is one").push_str(if i == 0 { "[" } else { ", " });
            let places = i * size..(i + 1) * size;
            shown(value.pick(value.kind.element(), value.shape[1..].to_vec(), places), texts, values);
        }
        texts.last_mut().expect("there is one").push_str(if value.shape[0] == 0 { "[]" } else { "]" });
        return;
    }
    let Some(parts) = value.parts() else {
        values.push(value);
        texts.push(String::new());
        return;
    };
    for (i, part) in parts.iter().enumerate() {
        texts.last_mut().expect("there is one").push_str(if i == 0 { "(" } else { ", " });
        shown(part.clone(), texts, values);
    }
    texts.last_mut().expect("there is one").push(')');
}

/// Whether two values are the same without a look at many elements.
pub(super) fn same(a: &Val, b: &Val) -> bool {
    match (&a.what, &b.what) {
        (What::Known(a), What::Known(b)) => Arc::ptr_eq(a, b) || a == b,
        (What::Elements(a), What::Elements(b)) => a == b,
        (What::Scalar(a), What::Scalar(b)) => a == b,
        (What::Whole(a), What::Whole(b)) => a == b,
        (What::Counted(a), What::Counted(b)) => {
            Arc::ptr_eq(a, b) || same(&a.whole, &b.whole) && same(&a.count, &b.count)
        }
        (What::Parts(a), What::Parts(b)) => Arc::ptr_eq(a, b) || a.iter().zip(b.iter()).all(|(a, b)| same(a, b)),
        _ => false,
    }
}
