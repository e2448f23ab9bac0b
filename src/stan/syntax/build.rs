//! What the actions of the grammar need: names and literals by position, old syntax with its warnings, and the few
//! nodes that take more than a constructor.

use std::cell::RefCell;
use std::sync::Arc;

use crate::base::{Diagnostic, SourceMap, Span};
use crate::stan::syntax::ast::*;
use crate::stan::syntax::lexer::Lexeme;
use crate::stan::syntax::{report_once, source};

/// What one run of the grammar gives.
#[derive(Debug)]
pub(crate) enum Parsed {
    Functions(Vec<Function>),
    Block(Vec<Stmt>),
}

/// What stands before the `=` of a constraint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    Lower,
    Upper,
    Offset,
    Multiplier,
}

/// The surroundings of a parse. Positions are those of `lexemes`.
pub(crate) struct Builder<'a> {
    pub(crate) sources: &'a SourceMap,
    pub(crate) lexemes: &'a [Lexeme],
    pub(crate) diagnostics: &'a RefCell<Vec<Diagnostic>>,
}

impl Builder<'_> {
    /// From the start of token `l` to the end of token `r - 1`, as far as that is in one file.
    pub(crate) fn span(&self, l: usize, r: usize) -> Span {
        let Some(first) = self.lexemes.get(l).map(|first| first.span) else {
            let last = self.lexemes.last().expect("there is a brace at least").span;
            return Span { start: last.end, ..last };
        };
        let mut of_file = self.lexemes[l..r.max(l)].iter().rev().map(|l| l.span);
        match of_file.find(|s| s.file == first.file && s.end >= first.start) {
            Some(last) => first.to(last),
            None => Span { end: first.start, ..first },
        }
    }

    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        report_once(&mut self.diagnostics.borrow_mut(), diagnostic);
    }

    /// The text of token `l`.
    fn word(&self, l: usize) -> &str {
        source(self.sources, self.lexemes[l].span)
    }

    pub(crate) fn source(&self, l: usize, _r: usize) -> Arc<str> {
        Arc::from(self.word(l))
    }

    pub(crate) fn name(&self, l: usize, r: usize) -> Name {
        Name { text: self.source(l, r), span: self.lexemes[l].span }
    }

    /// A text without its quotes, of which the second may be missing.
    pub(crate) fn text(&self, l: usize, _r: usize) -> Arc<str> {
        let text = self.word(l);
        let text = text.strip_prefix('"').unwrap_or(text);
        Arc::from(text.strip_suffix('"').unwrap_or(text))
    }

    pub(crate) fn imaginary(&self, l: usize, _r: usize) -> ExprKind {
        ExprKind::Imaginary(Arc::from(self.word(l).trim_end_matches('i')))
    }

    pub(crate) fn expr(&self, l: usize, kind: ExprKind, r: usize) -> Expr {
        Expr { kind, span: self.span(l, r) }
    }

    pub(crate) fn stmt(&self, l: usize, kind: StmtKind, r: usize) -> Stmt {
        Stmt { kind, span: self.span(l, r) }
    }

    pub(crate) fn binary(&self, l: usize, a: Expr, op: BinaryOp, b: Expr, r: usize) -> Expr {
        self.expr(l, ExprKind::Binary(op, Box::new(a), Box::new(b)), r)
    }

    pub(crate) fn branch(&self, l: usize, condition: Expr, then: Stmt, otherwise: Option<Stmt>, r: usize) -> Stmt {
        let (then, otherwise) = (Box::new(then), otherwise.map(Box::new));
        self.stmt(l, StmtKind::If { condition, then, otherwise }, r)
    }

    pub(crate) fn prepend<T>(first: T, mut rest: Vec<T>) -> Vec<T> {
        rest.insert(0, first);
        rest
    }

    pub(crate) fn append<T>(mut list: Vec<T>, last: T) -> Vec<T> {
        list.push(last);
        list
    }

    pub(crate) fn array_of(axes: usize, element: UnsizedType) -> UnsizedType {
        (0..axes).fold(element, |element, _| UnsizedType::Array(Box::new(element)))
    }

    /// `real[,] x`
    pub(crate) fn old_unsized(&self, l: usize, element: UnsizedType, axes: usize, r: usize) -> UnsizedType {
        let word = self.word(l);
        let commas = ",".repeat(axes - 1);
        let message = format!("`{word}[{commas}]` is old: arrays are written `array[{commas}] {word}`");
        let label = "Stan has had no such types since 2.33";
        let diagnostic = Diagnostic::warning("W2001", message, self.span(l, r), label);
        self.report(diagnostic.with_help("`autobatch fmt --canonicalize` rewrites it"));
        Self::array_of(axes, element)
    }

    /// `real x[N]`
    pub(crate) fn old_dims(&self, l: usize, dims: Vec<Expr>, r: usize) -> Vec<Expr> {
        let span = self.span(l, r);
        let extents = source(self.sources, span);
        let message = format!("the extents of an array stand before the type: `array{extents} …`");
        let label = "Stan has had no such declarations since 2.33";
        let diagnostic = Diagnostic::warning("W2001", message, span, label);
        self.report(diagnostic.with_help("`autobatch fmt --canonicalize` rewrites it"));
        dims
    }

    /// `<lower = a, upper = b>`
    pub(crate) fn constraint(&self, l: usize, bounds: Vec<(Bound, Expr)>, r: usize) -> Constraint {
        let kinds: Vec<Bound> = bounds.iter().map(|b| b.0).collect();
        let mut values = bounds.into_iter().map(|b| Box::new(b.1));
        let mut next = || values.next().expect("every bound has a value");
        match kinds[..] {
            [Bound::Lower] => Constraint::Lower(next()),
            [Bound::Upper] => Constraint::Upper(next()),
            [Bound::Offset] => Constraint::Offset(next()),
            [Bound::Multiplier] => Constraint::Multiplier(next()),
            [Bound::Lower, Bound::Upper] => Constraint::LowerUpper(next(), next()),
            [Bound::Offset, Bound::Multiplier] => Constraint::OffsetMultiplier(next(), next()),
            [Bound::Upper, Bound::Lower] => {
                let upper = next();
                Constraint::LowerUpper(next(), upper)
            }
            [Bound::Multiplier, Bound::Offset] => {
                let multiplier = next();
                Constraint::OffsetMultiplier(next(), multiplier)
            }
            _ => {
                let message = "these do not go together in one constraint";
                let label = "each at most once, and no bound beside `offset` or `multiplier`";
                let diagnostic = Diagnostic::error("E2017", message, self.span(l, r), label);
                self.report(diagnostic.with_help("write `<lower = a, upper = b>` or `<offset = m, multiplier = s>`"));
                Constraint::None
            }
        }
    }

    pub(crate) fn int_constraint(&self, l: usize, constraint: Constraint, r: usize) -> Constraint {
        use Constraint::{Multiplier, Offset, OffsetMultiplier};
        if matches!(constraint, Offset(_) | Multiplier(_) | OffsetMultiplier(..)) {
            let message = "an `int` has no offset and no multiplier";
            self.report(Diagnostic::error("E2017", message, self.span(l, r), "`lower` and `upper` only"));
            return Constraint::None;
        }
        constraint
    }

    /// `place = value;`
    pub(crate) fn assign(&self, place: Expr, op: Option<BinaryOp>, value: Expr) -> StmtKind {
        if let Some(part) = not_a_place(&place) {
            let (message, label) = match part.kind {
                ExprKind::Call { .. } | ExprKind::Target => ("a call cannot be assigned to", "the result of a call"),
                ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Imaginary(_) => {
                    ("a number cannot be assigned to", "a number")
                }
                ExprKind::Paren(_) => ("parentheses cannot be assigned to", "no parentheses around a variable here"),
                _ => ("this cannot be assigned to", "the value of an expression"),
            };
            let diagnostic = Diagnostic::error("E2014", message, part.span, label);
            self.report(match part.kind {
                ExprKind::Target => diagnostic.with_help("to add to the log density write `target += …;`"),
                _ => diagnostic.with_help(
                    "what is assigned to is a variable, an element `x[i]`, a part `t.1` or a tuple of those",
                ),
            });
            return StmtKind::Error;
        }
        StmtKind::Assign { place, op, value }
    }

    /// `place <- value;`
    pub(crate) fn old_assign(&self, place: Expr, l: usize, r: usize, value: Expr) -> StmtKind {
        let label = "Stan has had no `<-` since 2.33";
        let diagnostic = Diagnostic::warning("W2002", "an assignment is written `=`", self.span(l, r), label);
        self.report(diagnostic.with_help("write `=`; `autobatch fmt --canonicalize` does"));
        self.assign(place, None, value)
    }

    /// `f(x);`
    pub(crate) fn call_statement(&self, expr: Expr) -> StmtKind {
        match expr.kind {
            ExprKind::Call { name, mut args, bar: false } if &*name.text == "increment_log_prob" && args.len() == 1 => {
                let label = "Stan has had no such function since 2.33";
                let message = "`increment_log_prob(e)` is written `target += e`";
                let diagnostic = Diagnostic::warning("W2004", message, name.span, label);
                self.report(diagnostic.with_help("`autobatch fmt --canonicalize` rewrites it"));
                StmtKind::Target(args.pop().expect("there is one"))
            }
            ExprKind::Call { name, args, bar: false } => StmtKind::Call { name, args },
            ExprKind::Error => StmtKind::Error,
            kind => {
                let message = "a value alone is no statement";
                let diagnostic = Diagnostic::error("E2018", message, expr.span, "nothing is done with this value");
                self.report(match kind {
                    ExprKind::Binary(BinaryOp::Equal, ..) => diagnostic.with_help("to assign, write `=`"),
                    ExprKind::Call { .. } => diagnostic.with_help("to add it to the log density write `target += …;`"),
                    _ => diagnostic.with_help("assign it, `x = …;`, or add it to the log density, `target += …;`"),
                });
                StmtKind::Error
            }
        }
    }

    pub(crate) fn call(&self, name: Name, args: Vec<Expr>) -> ExprKind {
        if &*name.text == "get_lp" && args.is_empty() {
            let label = "Stan has had no such function since 2.33";
            let diagnostic = Diagnostic::warning("W2005", "`get_lp()` is written `target()`", name.span, label);
            self.report(diagnostic.with_help("`autobatch fmt --canonicalize` rewrites it"));
            return ExprKind::Target;
        }
        ExprKind::Call { name, args, bar: false }
    }

    /// `t.1`
    pub(crate) fn tuple_field(&self, l: usize, base: Expr, n: usize, r: usize) -> Expr {
        let dot = self.lexemes[n].span;
        let digits = self.word(n)[1..].replace('_', "");
        if matches!(base.kind, ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Imaginary(_)) {
            let span = self.span(l, r);
            let message = format!("`{}` is not a number", source(self.sources, span));
            let diagnostic = Diagnostic::error("E2004", message, span, "two numbers side by side");
            self.report(diagnostic.with_help("a range is written `1:2`; a number has one point at most"));
            return self.expr(l, ExprKind::Error, r);
        }
        let Ok(index) = digits.parse() else {
            let message = format!("no tuple has {digits} parts");
            self.report(Diagnostic::error("E2004", message, dot, "this number is too large"));
            return self.expr(l, ExprKind::Error, r);
        };
        let index_span = Span { start: dot.start + 1, ..dot };
        self.expr(l, ExprKind::TupleField { base: Box::new(base), index, index_span }, r)
    }
}

/// The first part of an expression that cannot be assigned to.
fn not_a_place(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Variable(_) | ExprKind::Error => None,
        ExprKind::Index { base, .. } | ExprKind::TupleField { base, .. } => match base.kind {
            ExprKind::Tuple(_) => Some(base),
            _ => not_a_place(base),
        },
        ExprKind::Tuple(parts) => parts.iter().find_map(not_a_place),
        _ => Some(expr),
    }
}
