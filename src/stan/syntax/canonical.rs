//! Programs as they are written today: old syntax, parentheses, braces and includes are rewritten in the text, token by
//! token, so that comments stay where they are. What is found in a text is rewritten, and the new text looked at again, until
//! there is nothing left.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::base::stack::with_room;
use crate::base::{Diagnostic, FileId, SourceMap, Span};
use crate::stan::syntax::ast::*;
use crate::stan::syntax::format::format;
use crate::stan::syntax::include::Includes;
use crate::stan::syntax::layout::lay_out;
use crate::stan::syntax::lexer::{Lexed, Lexeme, included_path, lex};
use crate::stan::syntax::parse;
use crate::stan::syntax::token::Token;
use crate::stan::syntax::walk::{self, Walk};

/// How often a text is looked at again.
const MAX_ROUNDS: usize = 50;

/// What is rewritten. These are the words of `stanc --canonicalize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Canonical {
    /// Old syntax, old names of functions, declarations of functions that are defined.
    pub deprecations: bool,
    /// Parentheses that change nothing go; chained comparisons get some.
    pub parentheses: bool,
    /// The arms of `if` and the bodies of loops get braces.
    pub braces: bool,
    /// Included files stand where they were included.
    pub includes: bool,
}

/// The program `main` of `sources` rewritten and formatted.
///
/// # Errors
/// The diagnostics when the program does not parse.
pub fn canonicalize(
    main: FileId,
    sources: &mut SourceMap,
    includes: &mut dyn Includes,
    what: Canonical,
) -> Result<String, Vec<Diagnostic>> {
    let (program, diagnostics) = parse(main, sources, includes);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    drop(program);
    let name = sources.file(main).name.clone();
    let mut text = sources.file(main).text.to_string();
    if what.includes {
        text = inlined(&name, &text, includes, &mut BTreeSet::new());
    }
    for _ in 0..MAX_ROUNDS {
        let mut sources = SourceMap::default();
        let file = sources.add(name.clone(), text.as_str());
        let (mut program, _) = parse(file, &mut sources, includes);
        let room = program.depth;
        let edits = with_room(room, || edits(file, &sources, &mut program, what));
        let Some(edited) = applied(&text, edits) else { break };
        text = edited;
    }
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    format(file, &mut sources, includes)
}

/// The text with the texts of its includes, which a parse has found to be there.
fn inlined(name: &str, text: &str, includes: &mut dyn Includes, libraries: &mut BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut at = 0;
    for lexeme in lex(FileId(0), text).lexemes {
        if lexeme.token != Token::Include {
            continue;
        }
        let (start, end) = (lexeme.span.start as usize, lexeme.span.end as usize);
        out.push_str(&text[at..start]);
        at = end;
        if let Ok((file, text)) = includes.load(name, included_path(&text[start..end]))
            && (!file.ends_with(".stanfunctions") || libraries.insert(file.clone()))
        {
            out.push_str(inlined(&file, &text, includes, libraries).trim_end());
            out.push('\n');
        }
    }
    out.push_str(&text[at..]);
    out
}

/// A part of the text, and what stands there instead.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// The text after the edits; of those that overlap the first. `None` when there are none.
fn applied(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    // What is put in before something comes before what stands in its place.
    edits.sort_by_key(|e| (e.start, e.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits.iter().filter(|e| e.start <= e.end) {
        if edit.start < at {
            continue;
        }
        out.push_str(&text[at..edit.start]);
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(&text[at..]);
    Some(out)
}

fn edits(file: FileId, sources: &SourceMap, program: &mut Program, what: Canonical) -> Vec<Edit> {
    let text = &*sources.file(file).text;
    let lexed = lex(file, text);
    let words = lexed.lexemes.iter().copied().filter(|l| !l.is_comment()).collect();
    let tokens = lay_out(sources, &Lexed { lexemes: words, ..Lexed::default() }).lexemes;
    let mut rewriter = Rewriter { file, text, tokens, what, edits: Vec::new() };
    if what.deprecations {
        rewriter.words(&lexed.lexemes);
        rewriter.functions(program);
    }
    walk::program(&mut rewriter, program);
    rewriter.edits
}

/// Whether an expression is a number, in parentheses or not.
fn is_number(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Paren(inner) => is_number(inner),
        kind => matches!(kind, ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Imaginary(_)),
    }
}

struct Rewriter<'a> {
    file: FileId,
    text: &'a str,
    /// Those of the file, without comments.
    tokens: Vec<Lexeme>,
    what: Canonical,
    edits: Vec<Edit>,
}

impl<'a> Rewriter<'a> {
    fn source(&self, span: Span) -> &'a str {
        if span.file != self.file {
            return "";
        }
        &self.text[span.start as usize..span.end as usize]
    }

    fn replace(&mut self, span: Span, text: impl Into<String>) {
        if span.file == self.file {
            self.edits.push(Edit { start: span.start as usize, end: span.end as usize, text: text.into() });
        }
    }

    fn insert(&mut self, file: FileId, at: u32, text: impl Into<String>) {
        self.replace(Span { file, start: at, end: at }, text);
    }

    /// The first token of a kind that starts in the span.
    fn find(&self, token: Token, within: Span) -> Option<Span> {
        let from = self.tokens.partition_point(|t| t.span.start < within.start);
        let here = self.tokens[from..].iter().take_while(|t| t.span.start < within.end);
        here.filter(|t| t.token == token && within.file == self.file).map(|t| t.span).next()
    }

    // Old syntax

    /// What tokens alone can tell: `#`, `<-`, `real[,]`.
    fn words(&mut self, lexemes: &[Lexeme]) {
        for comment in lexemes.iter().filter(|l| l.token == Token::HashComment) {
            self.replace(Span { end: comment.span.start + 1, ..comment.span }, "//");
        }
        for i in 0..self.tokens.len() {
            let Lexeme { token, span } = self.tokens[i];
            if token == Token::OldAssign {
                self.replace(span, "=");
            } else if token.is_type() && !matches!(token, Token::Array | Token::Tuple) {
                self.old_unsized(i);
            }
        }
    }

    /// `real[,]`: a type with nothing but commas between its brackets.
    fn old_unsized(&mut self, i: usize) {
        let token = |i: usize| self.tokens.get(i).map(|l| l.token);
        let mut close = i + 2;
        while token(close) == Some(Token::Comma) {
            close += 1;
        }
        if token(i + 1) == Some(Token::LBracket) && token(close) == Some(Token::RBracket) {
            let (ty, brackets) = (self.tokens[i].span, i + 1..close + 1);
            let commas = ",".repeat(close - i - 2);
            self.insert(ty.file, ty.start, format!("array[{commas}] "));
            let touches = self.tokens.get(close + 1).is_some_and(|next| next.span.start == self.tokens[close].span.end);
            for at in brackets {
                // A name that stands at the last bracket must not become a part of the type.
                let instead = if at == close && touches { " " } else { "" };
                self.replace(self.tokens[at].span, instead);
            }
        }
    }

    /// The heads of functions.
    fn functions(&mut self, program: &Program) {
        let items = || program.functions.iter().flat_map(|f| &f.items);
        let types = |f: &Function| f.params.iter().map(|p| p.ty.clone()).collect::<Vec<_>>();
        let defined: IndexSet<(&str, Vec<UnsizedType>)> =
            items().filter(|f| f.body.is_some()).map(|f| (&*f.name.text, types(f))).collect();
        for function in items() {
            self.name(&function.name);
            if function.body.is_none() && defined.contains(&(&*function.name.text, types(function))) {
                self.replace(function.span, "");
            }
        }
    }

    /// A name that the parser has changed.
    fn name(&mut self, name: &Name) {
        let source = self.source(name.span);
        if !source.is_empty() && source != &*name.text {
            self.replace(name.span, &*name.text);
        }
    }

    /// `real x[N], y;`
    fn declaration(&mut self, ty: &SizedType, variables: &[Variable]) {
        if variables.iter().all(|v| v.old_dims.is_empty()) || ty.span.file != self.file {
            return;
        }
        let written = self.source(ty.span);
        for (n, variable) in variables.iter().enumerate() {
            let whole = match (variable.old_dims.first(), variable.old_dims.last()) {
                (Some(first), Some(last)) => {
                    let inside = first.span.to(last.span);
                    let after = Span { start: variable.name.span.end, end: inside.start, ..inside };
                    let rest = Span { start: inside.end, end: self.text.len() as u32, ..inside };
                    let open = self.find(Token::LBracket, after);
                    let close = self.find(Token::RBracket, rest);
                    if let (Some(open), Some(close)) = (open, close) {
                        self.replace(open.to(close), "");
                    }
                    with_extents(ty, written, self.source(inside))
                }
                _ => written.to_owned(),
            };
            if n == 0 {
                self.replace(ty.span, whole);
            } else {
                let name = variable.name.span;
                let before = Span { start: variables[n - 1].name.span.end, end: name.start, ..name };
                let commas = self.tokens.iter().filter(|t| t.token == Token::Comma && before.start <= t.span.start);
                if let Some(comma) = commas.filter(|t| t.span.end <= name.start).map(|t| t.span).next_back() {
                    self.replace(comma, ";\n");
                    self.insert(name.file, name.start, format!("{whole} "));
                }
            }
        }
    }

    /// `increment_log_prob(e);`
    fn increment(&mut self, stmt: Span, value: Span) {
        let source = self.source(stmt);
        if !source.starts_with("increment_log_prob") {
            return;
        }
        let name = Span { end: stmt.start + "increment_log_prob".len() as u32, ..stmt };
        let open = self.find(Token::LParen, Span { start: name.end, ..stmt });
        let close = self.find(Token::RParen, Span { start: value.end, ..stmt });
        if let (Some(open), Some(close)) = (open, close) {
            self.replace(name, "target");
            self.replace(open, " += ");
            self.replace(close, "");
        }
    }

    /// Calls that the parser has changed: their names, a bar, `if_else`.
    fn old_call(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Target if self.source(expr.span).starts_with("get_lp") => {
                self.replace(Span { end: expr.span.start + "get_lp".len() as u32, ..expr.span }, "target");
            }
            ExprKind::Call { name, args, bar } => {
                self.name(name);
                let Some(first) = args.first().filter(|_| *bar) else { return };
                let rest = Span { start: first.span.end, ..expr.span };
                match args.get(1) {
                    _ if self
                        .find(Token::Bar, Span { end: args.get(1).map_or(rest.end, |e| e.span.start), ..rest })
                        .is_some() => {}
                    Some(_) => {
                        if let Some(comma) = self.find(Token::Comma, rest) {
                            self.replace(comma, " |");
                        }
                    }
                    None => self.insert(rest.file, rest.start, " |"),
                }
            }
            ExprKind::Paren(inner) if self.source(expr.span).starts_with("if_else") => {
                let ExprKind::Conditional(c, a, b) = &inner.kind else { return };
                let (name, end) = (expr.span.start, expr.span.start + "if_else".len() as u32);
                let between = |x: &Expr, y: &Expr| Span { start: x.span.end, end: y.span.start, ..x.span };
                let commas = (self.find(Token::Comma, between(c, a)), self.find(Token::Comma, between(a, b)));
                if let (Some(first), Some(second)) = commas {
                    self.replace(Span { start: name, end, ..expr.span }, "");
                    if matches!(c.kind, ExprKind::Conditional(..)) {
                        self.insert(c.span.file, c.span.start, "(");
                        self.insert(c.span.file, c.span.end, ")");
                    }
                    self.replace(first, " ? ");
                    self.replace(second, " : ");
                }
            }
            _ => {}
        }
    }

    // Parentheses

    /// An expression that needs no parentheses around it.
    fn bare(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Paren(inner) => {
                self.unwrap(expr.span);
                self.bare(inner);
            }
            ExprKind::Binary(op, a, b) => {
                if is_comparison(*op) && matches!(&a.kind, ExprKind::Binary(op, ..) if is_comparison(*op)) {
                    self.insert(a.span.file, a.span.start, "(");
                    self.insert(a.span.file, a.span.end, ")");
                }
                self.kept(a);
                self.kept(b);
            }
            ExprKind::Conditional(c, a, b) => [c, a, b].into_iter().for_each(|e| self.kept(e)),
            ExprKind::Unary(_, e) | ExprKind::Transpose(e) => self.kept(e),
            // `(2).1` without its parentheses would be a number.
            ExprKind::TupleField { base, .. } if is_number(base) => {}
            ExprKind::TupleField { base, .. } => self.kept(base),
            ExprKind::Index { base, indices } => {
                self.kept(base);
                for index in indices {
                    match index {
                        Index::All(_) => {}
                        Index::Single(e) => self.bare(e),
                        Index::From(e) | Index::To(e) => self.kept(e),
                        Index::Between(a, b) => {
                            self.kept(a);
                            self.kept(b);
                        }
                    }
                }
            }
            ExprKind::Array(parts) | ExprKind::RowVector(parts) | ExprKind::Tuple(parts) => {
                parts.iter().for_each(|e| self.bare(e));
            }
            ExprKind::Call { args, .. } => args.iter().for_each(|e| self.bare(e)),
            _ => {}
        }
    }

    /// An expression whose parentheses may mean something.
    fn kept(&mut self, expr: &Expr) {
        let ExprKind::Paren(inner) = &expr.kind else { return self.bare(expr) };
        match &inner.kind {
            ExprKind::Paren(_) => {
                self.unwrap(expr.span);
                self.kept(inner);
            }
            ExprKind::Binary(..) | ExprKind::Unary(..) | ExprKind::Transpose(_) | ExprKind::Conditional(..) => {
                self.bare(inner);
            }
            _ => self.bare(expr),
        }
    }

    /// Takes the parentheses away that an expression starts and ends with.
    fn unwrap(&mut self, span: Span) {
        if self.source(span).starts_with('(') {
            self.replace(Span { end: span.start + 1, ..span }, " ");
            self.replace(Span { start: span.end - 1, ..span }, " ");
        }
    }

    fn sizes(&mut self, ty: &SizedType) {
        match &ty.constraint {
            Constraint::Lower(e) | Constraint::Upper(e) | Constraint::Offset(e) | Constraint::Multiplier(e) => {
                self.kept(e);
            }
            Constraint::LowerUpper(a, b) | Constraint::OffsetMultiplier(a, b) => {
                self.kept(a);
                self.kept(b);
            }
            _ => {}
        }
        match &ty.kind {
            SizedKind::Int | SizedKind::Real | SizedKind::Complex => {}
            SizedKind::Vector(n)
            | SizedKind::RowVector(n)
            | SizedKind::ComplexVector(n)
            | SizedKind::ComplexRowVector(n) => self.bare(n),
            SizedKind::Matrix(m, n) | SizedKind::ComplexMatrix(m, n) => {
                self.bare(m);
                if m.span != n.span {
                    self.bare(n);
                }
            }
            SizedKind::Array { dims, element } => {
                dims.iter().for_each(|e| self.bare(e));
                self.sizes(element);
            }
            SizedKind::Tuple(parts) => parts.iter().for_each(|part| self.sizes(part)),
        }
    }

    /// The expressions of a statement, without those of the statements in it.
    fn parentheses(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare { ty, variables } => {
                self.sizes(ty);
                for variable in variables {
                    variable.old_dims.iter().chain(&variable.value).for_each(|e| self.bare(e));
                }
            }
            StmtKind::Assign { place, value, .. } => {
                self.bare(place);
                self.bare(value);
            }
            StmtKind::Call { args, .. } => args.iter().for_each(|e| self.bare(e)),
            StmtKind::Target(e) | StmtKind::Jacobian(e) | StmtKind::Return(Some(e)) => self.bare(e),
            StmtKind::Tilde { value, args, truncation, .. } => {
                self.bare(value);
                args.iter().for_each(|e| self.bare(e));
                truncation.iter().flat_map(|t| [&t.lower, &t.upper]).flatten().for_each(|e| self.bare(e));
            }
            StmtKind::Print(parts) | StmtKind::Reject(parts) | StmtKind::FatalError(parts) => {
                for part in parts {
                    if let Printable::Value(e) = part {
                        self.bare(e);
                    }
                }
            }
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => self.bare(condition),
            StmtKind::For { from, to, .. } => {
                self.kept(from);
                self.kept(to);
            }
            StmtKind::ForEach { over, .. } => self.bare(over),
            _ => {}
        }
    }

    // Braces

    /// Braces around a statement that has none. `before` is where the token before it ends.
    fn braces(&mut self, body: &Stmt) {
        if matches!(body.kind, StmtKind::Block(_)) || body.span.file != self.file {
            return;
        }
        let first = self.tokens.partition_point(|t| t.span.start < body.span.start);
        let Some(before) = first.checked_sub(1).map(|i| self.tokens[i].span) else { return };
        // A comment behind the statement stays with it.
        let rest = self.text[body.span.end as usize..].lines().next().unwrap_or_default();
        let comment = if rest.trim_start().starts_with("//") { rest.len() as u32 } else { 0 };
        self.insert(before.file, before.end, " {");
        self.insert(body.span.file, body.span.end + comment, "\n}");
    }
}

impl Walk for Rewriter<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) {
        if self.what.deprecations {
            match &stmt.kind {
                StmtKind::Declare { ty, variables } => self.declaration(ty, variables),
                StmtKind::Target(value) => self.increment(stmt.span, value.span),
                StmtKind::Call { name, .. } => self.name(name),
                _ => {}
            }
        }
        if self.what.parentheses {
            self.parentheses(stmt);
        }
        if self.what.braces {
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    self.braces(then);
                    if let Some(otherwise) = otherwise
                        && !matches!(otherwise.kind, StmtKind::If { .. })
                    {
                        self.braces(otherwise);
                    }
                }
                StmtKind::While { body, .. } | StmtKind::For { body, .. } | StmtKind::ForEach { body, .. } => {
                    self.braces(body);
                }
                _ => {}
            }
        }
        walk::stmt_parts(self, stmt);
    }

    fn expr(&mut self, expr: &mut Expr) {
        if self.what.deprecations {
            self.old_call(expr);
        }
        walk::expr_parts(self, expr);
    }
}

/// `T` as an array of these extents; those of an array come behind them.
fn with_extents(ty: &SizedType, written: &str, extents: &str) -> String {
    match (&ty.kind, written.split_once('[')) {
        (SizedKind::Array { .. }, Some((array, rest))) => format!("{array}[{extents}, {rest}"),
        _ => format!("array[{extents}] {written}"),
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(op, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}
