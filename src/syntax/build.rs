//! What the actions of the grammar need: names and literals by position, and the few nodes that take more than a constructor.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Diagnostic, FileId, Span};
use crate::syntax::ast::*;
use crate::syntax::parser::parse_hole;
use crate::syntax::report_once;
use crate::syntax::strings::{self, Holes, Piece};

/// What one run of the grammar gives.
#[derive(Debug)]
pub(crate) enum Parsed {
    Item(Box<Item>),
    Expr(Expr),
}

/// The surroundings of a parse.
pub(crate) struct Builder<'a> {
    pub(crate) file: FileId,
    pub(crate) text: &'a str,
    /// Doc text by the start of the token after it.
    pub(crate) docs: &'a BTreeMap<usize, String>,
    /// Starts of tokens that were reported already.
    pub(crate) faults: &'a [usize],
    pub(crate) diagnostics: RefCell<Vec<Diagnostic>>,
}

impl Builder<'_> {
    pub(crate) fn span(&self, l: usize, r: usize) -> Span {
        Span::new(self.file, l, r.max(l))
    }

    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        report_once(&mut self.diagnostics.borrow_mut(), diagnostic);
    }

    fn is_fault(&self, start: usize) -> bool {
        self.faults.contains(&start)
    }

    pub(crate) fn doc(&self, start: usize) -> String {
        self.docs.get(&start).cloned().unwrap_or_default()
    }

    pub(crate) fn name(&self, l: usize, r: usize) -> Name {
        Name { text: Arc::from(&self.text[l..r]), span: self.span(l, r) }
    }

    pub(crate) fn expr(&self, l: usize, kind: ExprKind, r: usize) -> Expr {
        Expr { kind, span: self.span(l, r) }
    }

    pub(crate) fn binary(&self, l: usize, a: Expr, op: BinaryOp, b: Expr, r: usize) -> Expr {
        self.expr(l, ExprKind::Binary(op, Box::new(a), Box::new(b)), r)
    }

    pub(crate) fn call(&self, l: usize, callee: Expr, args: Vec<Expr>, named: Vec<(Name, Expr)>, r: usize) -> Expr {
        self.expr(l, ExprKind::Call { callee: Box::new(callee), args, named }, r)
    }

    /// `else if`: a block whose tail is the `if`.
    pub(crate) fn else_if(&self, l: usize, kind: ExprKind, r: usize) -> Block {
        Block { stmts: Vec::new(), tail: Some(Box::new(self.expr(l, kind, r))), span: self.span(l, r) }
    }

    pub(crate) fn variable(name: Name) -> Expr {
        let span = name.span;
        Expr { kind: ExprKind::Path(Path { module: None, name }), span }
    }

    pub(crate) fn prepend<T>(first: T, mut rest: Vec<T>) -> Vec<T> {
        rest.insert(0, first);
        rest
    }

    pub(crate) fn append<T>(mut list: Vec<T>, last: T) -> Vec<T> {
        list.push(last);
        list
    }

    /// The extents of a type, of which there are some: `real[]` would be `real`.
    pub(crate) fn extents(&self, l: usize, path: &Path, extents: Vec<Expr>, r: usize) -> Vec<Expr> {
        if extents.is_empty() {
            let name = &path.name.text;
            let message = format!("the type `{name}[]` has no extent");
            let diagnostic = Diagnostic::error("E0031", message, self.span(l, r), "nothing between the brackets");
            self.report(diagnostic.with_help(format!(
                "an array says how long it is, `{name}[3]`, or `{name}[n]` with `n` declared after the name of the function, \
                 `fn f[n](…)`; a single value is `{name}`"
            )));
        }
        extents
    }

    /// The dimension parameters in brackets, of which there are some.
    pub(crate) fn dimensions(&self, l: usize, names: Vec<Name>, r: usize) -> Vec<Name> {
        if names.is_empty() {
            let message = "no dimension is declared between these brackets";
            let diagnostic = Diagnostic::error("E0031", message, self.span(l, r), "nothing between the brackets");
            self.report(diagnostic.with_help("name the dimensions, `fn f[n, m](…)`, or leave the brackets out"));
        }
        names
    }

    /// `f(e for i in 0..n)`, where `f` must be a name.
    pub(crate) fn reduction(&self, l: usize, callee: Expr, body: Expr, clauses: Vec<Clause>, r: usize) -> Expr {
        let ExprKind::Path(Path { module: None, name }) = callee.kind else {
            let diagnostic = Diagnostic::error(
                "E0026",
                "a reduction needs the name of a reduction before its parenthesis",
                callee.span,
                "not such a name",
            );
            self.report(diagnostic.with_help(
                "the reductions are `sum prod max min any all mean log_sum_exp`; an array is `[e for i in 0..n]`",
            ));
            return self.expr(l, ExprKind::Error, r);
        };
        self.expr(l, ExprKind::Reduction { name, body: Box::new(body), clauses }, r)
    }

    pub(crate) fn integer(&self, l: usize, r: usize) -> Option<i64> {
        if self.is_fault(l) {
            return None;
        }
        let digits = self.text[l..r].replace('_', "");
        let value = digits.parse().ok();
        if value.is_none() {
            let diagnostic = Diagnostic::error(
                "E0005",
                "this integer does not fit in 64 bits",
                self.span(l, r),
                format!("more than {}", i64::MAX),
            );
            self.report(diagnostic.with_help("write it as a real number, with a point or an exponent"));
        }
        value
    }

    pub(crate) fn real(&self, l: usize, r: usize) -> f64 {
        let digits = self.text[l..r].replace('_', "");
        let value: f64 = digits.parse().expect("the lexer lets only numbers through");
        if value.is_infinite() {
            self.report(Diagnostic::error(
                "E0005",
                "this number is too large",
                self.span(l, r),
                format!("more than {:e}", f64::MAX),
            ));
        }
        value
    }

    /// `t.0`; `l` is where the base starts, `n..r` the number.
    pub(crate) fn tuple_field(&self, l: usize, base: Expr, n: usize, r: usize) -> Expr {
        let index = self.text[n..r].parse::<u32>().unwrap_or_else(|_| {
            if !self.is_fault(n) {
                self.report(
                    Diagnostic::error("E0005", "no tuple has so many elements", self.span(n, r), "not a position")
                        .with_help("the first element is `.0`"),
                );
            }
            u32::MAX
        });
        self.expr(l, ExprKind::TupleField { base: Box::new(base), index, index_span: self.span(n, r) }, r)
    }

    /// The bytes between the quotes of the text at `l..r`.
    fn inside(&self, l: usize, r: usize) -> (usize, usize) {
        let closed = !self.is_fault(l);
        (l + 1, if closed { r - 1 } else { r })
    }

    /// The text after `use`.
    pub(crate) fn path_text(&self, l: usize, r: usize) -> Name {
        let mut report = |d| self.report(d);
        let pieces = strings::pieces(self.file, self.text, self.inside(l, r), Holes::None, &mut report);
        let text: String = pieces.iter().map(|p| if let Piece::Chars(c) = p { c.as_str() } else { "" }).collect();
        Name { text: Arc::from(text), span: self.span(l, r) }
    }

    /// The text of a `print` or an `assert`.
    pub(crate) fn message(&self, l: usize, r: usize) -> Message {
        let faulty = self.is_fault(l);
        let mut report = |d| {
            if !faulty {
                self.report(d);
            }
        };
        let pieces = strings::pieces(self.file, self.text, self.inside(l, r), Holes::Parsed, &mut report);
        let parts = pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Chars(text) => MessagePart::Text(text),
                Piece::Hole(start, end) => MessagePart::Hole(parse_hole(self, start, end)),
            })
            .collect();
        Message { parts, span: self.span(l, r) }
    }
}
