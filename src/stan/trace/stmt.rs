//! Statements.

use std::sync::Arc;

use super::tuple::has_field;
use super::{Frame, Result, Term, Tracer, unsupported, wrong};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::syntax::ast::{Expr, ExprKind, Name, Printable, Stmt, StmtKind};
use crate::stan::value::{Kind, Val};

/// Where a statement leaves.
pub(in crate::stan) enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Val>),
}

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

impl Tracer<'_> {
    /// Runs statements one after the other.
    pub(in crate::stan) fn run(&mut self, stmts: &[Stmt]) -> Result<Flow> {
        self.run_list(stmts, After::End)
    }

    fn run_list(&mut self, stmts: &[Stmt], after: After<'_>) -> Result<Flow> {
        for (at, stmt) in stmts.iter().enumerate() {
            match self.arm(stmt, &Rest { stmts: &stmts[at + 1..], after })? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// What comes after a statement, up to the end of the function.
    fn run_rest(&mut self, rest: &Rest<'_>) -> Result<Flow> {
        match (self.run_list(rest.stmts, rest.after)?, rest.after) {
            (Flow::Next, After::List(more)) => self.run_rest(more),
            (Flow::Next, After::End) => Ok(Flow::Return(None)),
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
                let new = self.eval(value)?;
                self.assign(span, place, *op, new)?;
            }
            StmtKind::Call { name, args } => {
                self.call_void(span, name, args)?;
            }
            StmtKind::Target(e) | StmtKind::Jacobian(e) => {
                let value = self.eval(e)?;
                self.add_terms(e.span, &value)?;
            }
            StmtKind::Tilde { value, distribution, args, truncation } => {
                self.tilde(span, value, distribution, args, truncation.as_ref())?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Return(None) => return Ok(Flow::Return(None)),
            StmtKind::Return(Some(e)) => return Ok(Flow::Return(Some(self.eval(e)?))),
            StmtKind::Print(parts) => self.print(span, parts)?,
            StmtKind::Reject(parts) | StmtKind::FatalError(parts) => self.reject(span, parts)?,
            StmtKind::Skip => {}
            StmtKind::If { .. } | StmtKind::Profile { .. } | StmtKind::Block(_) => {
                return self.arm(stmt, &Rest { stmts: &[], after: After::Loop });
            }
            StmtKind::While { condition, body } => return self.while_loop(condition, body),
            StmtKind::For { var, from, to, body } => {
                let (from, to) = (self.eval(from)?, self.eval(to)?);
                let (Some(from), Some(to)) = (from.as_int(), to.as_int()) else {
                    return unsupported(span, "a loop whose bounds depend on parameters");
                };
                return self.turns(var, (from..=to).map(Val::int), body);
            }
            StmtKind::ForEach { var, over, body } => {
                let over = self.eval(over)?;
                let kind = over.kind.element();
                // A matrix is walked element by element, in column-major order.
                let items: Vec<Val> = if over.parts().is_some() {
                    let one = |i: usize| [super::index::At::One(i as i64 + 1, span)];
                    (0..over.shape[0]).map(|i| self.indexed(span, &over, &one(i))).collect::<Result<_>>()?
                } else if over.kind == Kind::MATRIX {
                    let (rows, cols) = (over.shape[0], over.shape[1]);
                    let places = (0..cols).flat_map(|j| (0..rows).map(move |i| i * cols + j));
                    places.map(|at| over.pick(Kind::REAL, vec![], std::iter::once(at))).collect()
                } else {
                    let shape = over.shape[1..].to_vec();
                    let size: usize = shape.iter().product();
                    (0..over.shape[0]).map(|i| over.pick(kind, shape.clone(), i * size..(i + 1) * size)).collect()
                };
                return self.turns(var, items.into_iter(), body);
            }
            StmtKind::Error => return wrong(span, "this does not parse"),
        }
        Ok(Flow::Next)
    }

    fn turns(&mut self, var: &Name, items: impl Iterator<Item = Val>, body: &Stmt) -> Result<Flow> {
        for item in items {
            let flow = self.turned(|t| {
                t.bind(&var.text, item);
                t.stmt(body)
            })?;
            match flow {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                flow @ Flow::Return(_) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn while_loop(&mut self, condition: &Expr, body: &Stmt) -> Result<Flow> {
        loop {
            let c = self.eval(condition)?;
            let c = self.truth(condition.span, &c)?;
            match c.as_int() {
                Some(0) => return Ok(Flow::Next),
                Some(_) => {}
                None => return unsupported(condition.span, "a `while` whose condition depends on parameters"),
            }
            match self.turned(|t| t.stmt(body))? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                flow @ Flow::Return(_) => return Ok(flow),
            }
        }
    }

    /// An `if` whose condition lanes compute: both arms run, and what they leave is chosen. Where one of them returns, the
    /// other goes on with `rest`.
    fn branch(&mut self, span: Span, c: &Val, then: &Stmt, otherwise: Option<&Stmt>, rest: &Rest<'_>) -> Result<Flow> {
        let off = self.apply(span, Op::Compare("=="), &[c.clone(), Val::int(0)], Kind::INT, vec![])?;
        let before = self.frames.last().cloned().expect("there is always a frame");
        let first = self.guarded(c, |t| t.scoped(|t| t.arm(then, rest)))?;
        let after_first = std::mem::replace(self.frame(), before);
        let second = match otherwise {
            Some(arm) => self.guarded(&off, |t| t.scoped(|t| t.arm(arm, rest)))?,
            None => Flow::Next,
        };
        let (first, second) = match (first, second) {
            (Flow::Next, Flow::Next) => {
                self.merge(span, c, &after_first)?;
                return Ok(Flow::Next);
            }
            (first @ Flow::Return(_), Flow::Next) => (first, self.guarded(&off, |t| t.run_rest(rest))?),
            (Flow::Next, second @ Flow::Return(_)) => {
                *self.frame() = after_first;
                (self.guarded(c, |t| t.run_rest(rest))?, second)
            }
            arms => arms,
        };
        match (first, second) {
            (Flow::Return(Some(a)), Flow::Return(Some(b))) => {
                Ok(Flow::Return(Some(self.choose_result(span, c, a, b)?)))
            }
            (Flow::Return(None), Flow::Return(None)) => Ok(Flow::Return(None)),
            _ => {
                unsupported(span, "`break`, `continue` or `return` in a loop that only some values of parameters take")
            }
        }
    }

    /// Runs something of which only those lanes know where a condition holds.
    fn guarded<T>(&mut self, condition: &Val, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.guards.push(condition.clone());
        let done = run(self);
        self.guards.pop();
        done
    }

    fn choose_result(&mut self, span: Span, c: &Val, a: Val, b: Val) -> Result<Val> {
        let (a, b) = if a.kind.is_int() == b.kind.is_int() { (a, b) } else { (a.promoted(), b.promoted()) };
        self.select(span, c, &a, &b)
    }

    /// What variables hold after an `if`: what they hold now where the condition fails, and what they held then where it holds.
    fn merge(&mut self, span: Span, c: &Val, then: &Frame) -> Result<()> {
        let depth = self.frame().len();
        for level in 0..depth {
            let mut names: Vec<_> = self.frame()[level].keys().cloned().collect();
            names.sort();
            for name in names {
                let now = self.frame()[level][&name].value.clone();
                let then = then[level][&name].value.clone();
                if same(&now, &then) {
                    continue;
                }
                let value = self.select(span, c, &then, &now)?;
                self.frame()[level].get_mut(&name).expect("it is there").value = value;
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
        if value.parts().is_some() || has_field(place) {
            return self.assign_in_tuple(span, place, op, value);
        }
        let (name, indices) = self.place(place)?;
        let Some(old) = self.value(&name.text).cloned() else {
            return wrong(name.span, format!("there is no variable `{}` here", name.text));
        };
        if !value.is_known() {
            self.graph.call(&name.text, &value);
        }
        let value = match op {
            None => value,
            Some(op) => {
                let now = if indices.is_empty() { old.clone() } else { self.indexed(place.span, &old, &indices)? };
                self.binary(span, op, &now, &value)?
            }
        };
        if indices.is_empty() {
            let value = self.fitted(span, &old, value)?;
            self.lookup_mut(&name.text).expect("found above").value = value;
            return Ok(());
        }
        // The variable gives its elements up while they change, so that they are not copied.
        let hold = self.lookup_mut(&name.text).expect("found above");
        hold.value = Val::int(0);
        let made = match indices.iter().any(|at| matches!(at, super::index::At::Lane(..))) {
            true => self.with_element(span, &old, &indices, &value),
            false => self.with_places(span, old, &indices, &value),
        }?;
        self.lookup_mut(&name.text).expect("found above").value = made;
        Ok(())
    }

    fn with_places(&mut self, span: Span, mut old: Val, indices: &[super::index::At], value: &Val) -> Result<Val> {
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
        } else {
            self.call_ab(span, "sum", &[value.promoted()], Kind::REAL, vec![])?
        };
        for guard in self.guards.clone() {
            value = self.select(span, &guard, &value, &Val::real(0.0))?;
        }
        self.target.push(Term { value: value.elem(0) });
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
        self.node(span, Op::Print(texts.into()), &values, Kind::INT, vec![])?;
        Ok(())
    }

    fn reject(&mut self, span: Span, parts: &[Printable]) -> Result<()> {
        let (texts, values) = self.texts(parts)?;
        let mut message = String::new();
        for (i, text) in texts.iter().enumerate() {
            message.push_str(text);
            if let Some(value) = values.get(i) {
                match value.as_real() {
                    Some(x) => message.push_str(&x.to_string()),
                    None => message.push('…'),
                }
            }
        }
        self.check(span, &Val::int(0), &message)
    }
}

/// Adds a value to what is printed: the parts of a tuple in brackets.
fn shown(value: Val, texts: &mut Vec<String>, values: &mut Vec<Val>) {
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
fn same(a: &Val, b: &Val) -> bool {
    use crate::stan::value::What;
    match (&a.what, &b.what) {
        (What::Known(a), What::Known(b)) => Arc::ptr_eq(a, b) || a == b,
        (What::Elements(a), What::Elements(b)) => Arc::ptr_eq(a, b) || a == b,
        (What::Scalar(a), What::Scalar(b)) => a == b,
        (What::Whole(a), What::Whole(b)) => a == b,
        (What::Parts(a), What::Parts(b)) => Arc::ptr_eq(a, b) || a.iter().zip(b.iter()).all(|(a, b)| same(a, b)),
        _ => false,
    }
}
