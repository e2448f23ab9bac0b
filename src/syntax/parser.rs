//! Runs the grammar over a file, one item at a time, and goes on after what does not parse.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

use lalrpop_util::ParseError;

use crate::base::stack::with_room;
use crate::base::{Diagnostic, FileId};
use crate::syntax::ast::{Expr, ExprKind, Item, Module};
use crate::syntax::build::{Builder, Parsed};
use crate::syntax::grammar::StartParser;
use crate::syntax::layout::{Layout, is_closer, is_opener, lay_out, lay_out_hole, starts_item};
use crate::syntax::lexer::{Lexeme, lex};
use crate::syntax::span;
use crate::syntax::token::Token;
use crate::syntax::unexpected::{Site, unexpected};

/// How many slips are reported in one item before the rest of it is given up.
const MAX_SLIPS: usize = 30;

/// Parses a file. With errors among the diagnostics the module holds what could be parsed: a broken statement is
/// [`StmtKind::Error`](crate::syntax::ast::StmtKind::Error), an item with a broken head is left out. Never panics, for any text.
pub fn parse(file: FileId, text: &str) -> (Module, Vec<Diagnostic>) {
    if u32::try_from(text.len()).is_err() {
        let diagnostic = Diagnostic::error("E0001", "a source file of 4 GiB or more", span(file, 0, 0), "");
        return (Module::default(), vec![diagnostic]);
    }
    let lexed = lex(file, text, 0, text.len());
    let docs = doc_lines(text, &lexed.lexemes);
    let layout = lay_out(file, text, &lexed);
    let mut diagnostics = lexed.diagnostics;
    let mut faults = lexed.faults;
    diagnostics.extend(layout.diagnostics);
    faults.extend(layout.faults);
    let mut module = Module::default();
    module.depth = layout.depth;
    if !layout.too_deep {
        // What of a tree is given up after an error is dropped by recursion.
        (module.items, diagnostics) = with_room(layout.depth, || {
            let builder = Builder { file, text, docs: &docs, faults: &faults, diagnostics: RefCell::new(diagnostics) };
            let parser = ItemParser { grammar: StartParser::new(), builder: &builder };
            let items = parser.items(&layout.lexemes);
            (items, builder.diagnostics.into_inner())
        });
    }
    diagnostics.sort_by_key(|d| d.labels.first().map(|l| l.span.start));
    (module, diagnostics)
}

/// Parses the expression `text[start..end]` of a hole; what is wrong with it is reported to `outer`.
pub(crate) fn parse_hole(outer: &Builder<'_>, start: usize, end: usize) -> Expr {
    let Builder { file, text, .. } = *outer;
    let error = Expr { kind: ExprKind::Error, span: span(file, start, end) };
    let lexed = lex(file, text, start, end);
    if lexed.lexemes.iter().all(Lexeme::is_comment) && lexed.diagnostics.is_empty() {
        let diagnostic =
            Diagnostic::error("E0021", "this hole is empty", span(file, start - 1, end + 1), "nothing to print");
        outer.report(diagnostic.with_help(
            "put an expression between the braces; braces that are meant as text are written twice: `{{}}`",
        ));
        return error;
    }
    let Layout { lexemes, diagnostics, too_deep, .. } = lay_out_hole(file, text, &lexed);
    let broken = !lexed.diagnostics.is_empty() || !diagnostics.is_empty();
    lexed.diagnostics.into_iter().chain(diagnostics).for_each(|d| outer.report(d));
    if too_deep {
        return error;
    }
    let docs = BTreeMap::new();
    let builder = Builder { file, text, docs: &docs, faults: &lexed.faults, diagnostics: RefCell::default() };
    let parsed = run(&StartParser::new(), &builder, Token::StartExpr, &lexemes);
    builder.diagnostics.into_inner().into_iter().for_each(|d| outer.report(d));
    match parsed {
        Ok(Parsed::Expr(expr)) => expr,
        Ok(Parsed::Item(_)) => error,
        Err(_) if broken => error,
        Err(slip) => {
            let site = Site { file, text, lexemes: &lexemes, at: slip.at, end, expected: &slip.expected };
            let inner = unexpected(&site);
            let label = inner.labels.first().expect("an error has a label").span;
            let diagnostic = Diagnostic::error("E0020", "a hole holds one expression", label, inner.message);
            outer.report(
                diagnostic.with_help(
                    inner
                        .help
                        .unwrap_or_else(|| "braces that are meant as text are written twice: `{{` and `}}`".to_owned()),
                ),
            );
            error
        }
    }
}

/// The doc text before each token that has some, by the start of the token.
fn doc_lines(text: &str, lexemes: &[Lexeme]) -> BTreeMap<usize, String> {
    let mut docs = BTreeMap::new();
    let mut lines: Vec<&str> = Vec::new();
    for lexeme in lexemes {
        if lexeme.token == Token::Doc {
            let line = text[lexeme.start + 3..lexeme.end].trim_end();
            lines.push(line.strip_prefix(' ').unwrap_or(line));
        } else if !lexeme.is_comment() && !lines.is_empty() {
            docs.insert(lexeme.start, lines.join("\n"));
            lines.clear();
        }
    }
    docs
}

/// Where the grammar could not go on.
struct Slip {
    /// Index of the token; the number of tokens at the end.
    at: usize,
    /// What could have stood there, in the names of the grammar.
    expected: Vec<String>,
}

/// Runs the grammar from `start` over all of `lexemes`.
fn run(grammar: &StartParser, builder: &Builder<'_>, start: Token, lexemes: &[Lexeme]) -> Result<Parsed, Slip> {
    let taken = Cell::new(0usize);
    let first = lexemes.first().map_or(0, |l| l.start);
    let tokens = lexemes.iter().map(|l| {
        taken.set(taken.get() + 1);
        Ok((l.start, l.token, l.end))
    });
    let tokens = std::iter::once(Ok((first, start, first))).chain(tokens);
    grammar.parse(builder, tokens).map_err(|error| match error {
        // The grammar takes one token of lookahead, so the last one taken is the one that does not fit.
        ParseError::UnrecognizedToken { expected, .. } => Slip { at: taken.get().saturating_sub(1), expected },
        ParseError::UnrecognizedEof { expected, .. } => Slip { at: lexemes.len(), expected },
        ParseError::ExtraToken { .. } | ParseError::InvalidToken { .. } | ParseError::User { .. } => {
            Slip { at: taken.get().saturating_sub(1), expected: Vec::new() }
        }
    })
}

struct ItemParser<'a> {
    grammar: StartParser,
    builder: &'a Builder<'a>,
}

impl ItemParser<'_> {
    fn items(&self, lexemes: &[Lexeme]) -> Vec<Item> {
        let mut items = Vec::new();
        let mut at = 0;
        while at < lexemes.len() {
            if let Some(keyword) = self.item_keyword(lexemes, at) {
                let end = item_end(lexemes, keyword);
                if lexemes[keyword].token == Token::Ident {
                    self.report_host(&lexemes[at..end]);
                } else {
                    items.extend(self.item(lexemes[at..end].to_vec()));
                }
                at = end;
            } else {
                let end = self.next_item(lexemes, at + 1);
                self.report_no_item(lexemes, at..end);
                at = end;
            }
        }
        items
    }

    /// The index of the keyword of the item that starts at `at`, after attributes and `pub`.
    fn item_keyword(&self, lexemes: &[Lexeme], at: usize) -> Option<usize> {
        let token = |i: usize| lexemes.get(i).map(|l| l.token);
        let mut i = at;
        while token(i) == Some(Token::At) && token(i + 1) == Some(Token::Ident) {
            i += 2;
        }
        if token(i) == Some(Token::Pub) {
            i += 1;
        }
        match token(i)? {
            Token::Fn | Token::Struct | Token::Const | Token::Use | Token::Derivative | Token::Model => Some(i),
            Token::Ident if token(i + 1) == Some(Token::Fn) && self.source(lexemes[i]) == "host" => Some(i),
            _ => None,
        }
    }

    fn next_item(&self, lexemes: &[Lexeme], from: usize) -> usize {
        let mut depth = 0usize;
        for i in from..lexemes.len() {
            if depth == 0 && self.item_keyword(lexemes, i).is_some() {
                return i;
            }
            depth = depth_after(lexemes[i].token, depth);
        }
        lexemes.len()
    }

    fn source(&self, lexeme: Lexeme) -> &str {
        &self.builder.text[lexeme.start..lexeme.end]
    }

    fn report_host(&self, lexemes: &[Lexeme]) {
        let (first, last) = (lexemes[0], lexemes[lexemes.len() - 1]);
        let diagnostic = Diagnostic::error(
            "E0023",
            "functions of the host are not available yet",
            span(self.builder.file, first.start, last.end),
            "declared here",
        );
        self.builder.report(diagnostic.with_help("compute the value before the run and pass it as an input"));
    }

    fn report_no_item(&self, lexemes: &[Lexeme], range: Range<usize>) {
        let (first, last) = (lexemes[range.start], lexemes[range.end - 1]);
        if self.is_faulty(first.start, last.end) {
            return;
        }
        let end = if range.len() == 1 || first.token == Token::Pub { first.end } else { last.end };
        let diagnostic = Diagnostic::error(
            "E0025",
            format!("{} starts no item", crate::syntax::unexpected::described(self.builder.text, first)),
            span(self.builder.file, first.start, end),
            "expected `fn`, `struct`, `model`, `const` or `use`",
        );
        self.builder.report(match first.token {
            Token::Semi => diagnostic.with_help("remove it: no semicolon follows the brace of an item"),
            Token::Let => diagnostic.with_help("a value for the whole file is a `const`"),
            Token::Ident if self.source(first) == "derivative" => {
                diagnostic.with_help("a custom derivative is `derivative of f { forward(x, dx) { … } }`")
            }
            Token::Ident if self.source(first) == "generated" => diagnostic
                .with_help("the quantities of a draw follow the body of a model: `} generated { let x = …; }`"),
            Token::Ident if self.source(first) == "model" => {
                diagnostic.with_help("a model has a name: `model name(mu: real, shared y: real) { … }`")
            }
            _ => diagnostic.with_help("statements stand in the body of a function"),
        });
    }

    /// Whether something between these bytes was reported by the lexer or by layout.
    fn is_faulty(&self, start: usize, end: usize) -> bool {
        self.builder.faults.iter().any(|f| (start..=end).contains(f))
    }

    /// Parses one item, replacing what does not parse and trying again.
    fn item(&self, mut lexemes: Vec<Lexeme>) -> Option<Item> {
        for _ in 0..MAX_SLIPS {
            match run(&self.grammar, self.builder, Token::StartItem, &lexemes) {
                Ok(Parsed::Item(item)) => return Some(*item),
                Ok(Parsed::Expr(_)) => return None,
                Err(slip) => self.recover(&mut lexemes, &slip)?,
            }
        }
        None
    }

    /// Reports a slip and changes `lexemes` so that the parse gets past it; `None` when nothing of the item can be kept.
    fn recover(&self, lexemes: &mut Vec<Lexeme>, slip: &Slip) -> Option<()> {
        let Builder { file, text, .. } = *self.builder;
        let found = lexemes.get(slip.at).copied();
        let again = found.is_some_and(|f| matches!(f.token, Token::BadStmt | Token::BadExpr));
        if !again && self.misses_semicolon(lexemes, slip) {
            let previous = lexemes[slip.at - 1];
            if !self.is_faulty(previous.start, previous.end) {
                self.builder.report(missing_semicolon(file, previous));
            }
            lexemes.insert(slip.at, Lexeme::new(Token::Semi, previous.end, previous.end));
            return Some(());
        }
        let region = broken_statement(lexemes, slip.at, again);
        if !again {
            let (from, to) = match &region {
                Some(range) => (lexemes[range.start].start, lexemes[range.end - 1].end),
                None => (lexemes[0].start, lexemes[lexemes.len() - 1].end),
            };
            if !self.is_faulty(from, to) {
                let site = Site { file, text, lexemes, at: slip.at, end: text.len(), expected: &slip.expected };
                self.builder.report(unexpected(&site));
            }
        }
        let range = region?;
        let (first, last) = (lexemes[range.start], lexemes[range.end - 1]);
        let ended = matches!(last.token, Token::Semi | Token::StmtEnd | Token::BadStmt);
        let token = if ended { Token::BadStmt } else { Token::BadExpr };
        lexemes.splice(range, [Lexeme::new(token, first.start, last.end)]);
        Some(())
    }

    /// Whether a semicolon in front of the token would have helped.
    fn misses_semicolon(&self, lexemes: &[Lexeme], slip: &Slip) -> bool {
        let Some(found) = lexemes.get(slip.at) else {
            return false;
        };
        if slip.at == 0 || !slip.expected.iter().any(|e| e == "\";\"") {
            return false;
        }
        let previous = lexemes[slip.at - 1];
        if slip.expected.iter().any(|e| e == "\"=\"")
            && lexemes[..slip.at].iter().rev().take(2).any(|l| l.token == Token::Let)
        {
            return false;
        }
        let statement = matches!(
            found.token,
            Token::Let
                | Token::While
                | Token::For
                | Token::Return
                | Token::Emit
                | Token::Break
                | Token::Continue
                | Token::RBrace
        );
        let word = matches!(found.token, Token::Ident | Token::If | Token::Print | Token::Assert);
        let new_line = self.builder.text[previous.end..found.start.max(previous.end)].contains('\n');
        statement || (word && new_line)
    }
}

fn missing_semicolon(file: FileId, previous: Lexeme) -> Diagnostic {
    Diagnostic::error("E0008", "a `;` is missing", span(file, previous.start, previous.end), "a `;` belongs after this")
        .with_help("every statement ends with `;`, except those that end with a block and the value of a block")
}

fn depth_after(token: Token, depth: usize) -> usize {
    if is_opener(token) {
        depth + 1
    } else if is_closer(token) {
        depth.saturating_sub(1)
    } else {
        depth
    }
}

/// One past the item whose keyword is at `keyword`.
fn item_end(lexemes: &[Lexeme], keyword: usize) -> usize {
    let has_body = !matches!(lexemes[keyword].token, Token::Const | Token::Use);
    let mut depth = 0usize;
    for i in keyword..lexemes.len() {
        let token = lexemes[i].token;
        if depth == 0 && i > keyword + 1 && starts_item(lexemes, i) {
            return i;
        }
        depth = depth_after(token, depth);
        let goes_on = lexemes.get(i + 1).is_some_and(|l| l.token == Token::Generated);
        if depth == 0 && (token == Token::Semi || (has_body && token == Token::RBrace && !goes_on)) {
            return i + 1;
        }
    }
    lexemes.len()
}

/// The tokens of the innermost statement, or last expression, of a block around `at`; of the block outside that when `outside`.
fn broken_statement(lexemes: &[Lexeme], at: usize, outside: bool) -> Option<Range<usize>> {
    let mut open = enclosing_block(lexemes, at)?;
    if outside {
        open = enclosing_block(lexemes, open)?;
    }
    loop {
        let range = statement_in(lexemes, open, at);
        if !range.is_empty() {
            return Some(range);
        }
        open = enclosing_block(lexemes, open)?;
    }
}

/// The brace of the innermost block that is open before `at`.
fn enclosing_block(lexemes: &[Lexeme], at: usize) -> Option<usize> {
    let mut closed = 0usize;
    for i in (0..at.min(lexemes.len())).rev() {
        let token = lexemes[i].token;
        if is_closer(token) {
            closed += 1;
        } else if is_opener(token) && closed > 0 {
            closed -= 1;
        } else if token == Token::LBrace {
            return Some(i);
        }
    }
    None
}

/// The statement around `at` of the block that is opened at `open`.
fn statement_in(lexemes: &[Lexeme], open: usize, at: usize) -> Range<usize> {
    let mut start = open + 1;
    let mut depth = 0usize;
    for (i, lexeme) in lexemes.iter().enumerate().skip(open + 1) {
        let token = lexeme.token;
        if depth == 0 && token == Token::RBrace {
            return start..i;
        }
        depth = depth_after(token, depth);
        if depth == 0 && matches!(token, Token::Semi | Token::StmtEnd | Token::BadStmt) {
            if i >= at {
                return start..i + 1;
            }
            start = i + 1;
        }
    }
    start..lexemes.len()
}
