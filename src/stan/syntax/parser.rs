//! Cuts a program into blocks, runs the grammar over each of them, and goes on after what does not parse.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use lalrpop_util::ParseError;

use crate::base::names::closest;
use crate::base::stack::with_room;
use crate::base::{Diagnostic, FileId, SourceMap, Span};
use crate::stan::syntax::ast::{Block, Functions, Program};
use crate::stan::syntax::build::{Builder, Parsed};
use crate::stan::syntax::grammar::StartParser;
use crate::stan::syntax::include::{Includes, lex_all};
use crate::stan::syntax::layout::{is_closer, is_opener, lay_out, opens_block, starts_block};
use crate::stan::syntax::lexer::Lexeme;
use crate::stan::syntax::token::Token;
use crate::stan::syntax::unexpected::{Site, missing_semicolon, unexpected};
use crate::stan::syntax::{old, report_once, rules, source};

/// How many slips are reported in one block before the rest of it is given up.
const MAX_SLIPS: usize = 30;

/// Parses the program `main` of `sources`, to which the files that it includes are added. A file named
/// `….stanfunctions` is what stands in a block of functions. With errors among the diagnostics the program holds what
/// could be parsed: a broken statement is [`StmtKind::Error`](crate::stan::syntax::ast::StmtKind::Error). Never panics,
/// for any text.
pub fn parse(main: FileId, sources: &mut SourceMap, includes: &mut dyn Includes) -> (Program, Vec<Diagnostic>) {
    let lexed = lex_all(main, sources, includes);
    let sources = &*sources;
    let layout = lay_out(sources, &lexed);
    let mut diagnostics = lexed.diagnostics;
    let mut faults = lexed.faults;
    diagnostics.extend(layout.diagnostics);
    faults.extend(layout.faults);
    let mut program = Program::default();
    if !layout.too_deep {
        let standalone = sources.file(main).name.ends_with(".stanfunctions");
        // What of a tree is given up after an error is dropped by recursion.
        (program, diagnostics) = with_room(layout.depth, || {
            let mut parser = ProgramParser {
                grammar: StartParser::new(),
                sources,
                faults: &faults,
                diagnostics: RefCell::new(diagnostics),
                program: Program::default(),
            };
            parser.program.depth = layout.depth;
            if standalone {
                parser.standalone(main, layout.lexemes);
            } else {
                parser.blocks(main, &layout.lexemes);
            }
            let mut diagnostics = parser.diagnostics.into_inner();
            rules::check(&parser.program, &mut diagnostics);
            old::rewrite(&mut parser.program, &mut diagnostics);
            (parser.program, diagnostics)
        });
    }
    diagnostics.sort_by_key(|d| d.labels.first().map(|l| (l.span.file != main, l.span.file, l.span.start)));
    (program, diagnostics)
}

/// Where the grammar could not go on.
struct Slip {
    /// Index of the token; the number of tokens at the end.
    at: usize,
    /// What could have stood there, in the names of the grammar.
    expected: Vec<String>,
}

struct ProgramParser<'a> {
    grammar: StartParser,
    sources: &'a SourceMap,
    faults: &'a [Span],
    diagnostics: RefCell<Vec<Diagnostic>>,
    program: Program,
}

impl ProgramParser<'_> {
    fn report(&self, diagnostic: Diagnostic) {
        report_once(&mut self.diagnostics.borrow_mut(), diagnostic);
    }

    /// A file of functions.
    fn standalone(&mut self, main: FileId, mut lexemes: Vec<Lexeme>) {
        let end = self.sources.file(main).text.len();
        lexemes.insert(0, Lexeme::new(Token::LBrace, Span::new(main, 0, 0)));
        lexemes.push(Lexeme::new(Token::RBrace, Span::new(main, end, end)));
        if let Some(Parsed::Functions(items)) = self.parse(Token::StartFunctions, lexemes) {
            self.program.functions = Some(Functions { items, span: Span::new(main, 0, end) });
        }
    }

    fn blocks(&mut self, main: FileId, lexemes: &[Lexeme]) {
        // The blocks so far: the place of each in the order that Stan wants, and its name.
        let mut seen: Vec<(usize, Lexeme)> = Vec::new();
        let mut at = 0;
        while at < lexemes.len() {
            if starts_block(lexemes, at) {
                let end = closing(lexemes, at + 1) + 1;
                self.check_order(&mut seen, lexemes[at]);
                self.block(&lexemes[at..end]);
                at = end;
            } else {
                let end = self.next_block(lexemes, at + 1);
                self.report_outside(&lexemes[at..end]);
                at = end;
            }
        }
        if lexemes.is_empty() && self.faults.is_empty() {
            let message = "this program is empty";
            self.report(Diagnostic::warning("W2009", message, Span::new(main, 0, 0), "no block of Stan is here"));
        }
    }

    fn next_block(&self, lexemes: &[Lexeme], from: usize) -> usize {
        let mut depth = 0usize;
        for i in from..lexemes.len() {
            if depth == 0 && starts_block(lexemes, i) {
                return i;
            }
            depth = depth_after(lexemes[i].token, depth);
        }
        lexemes.len()
    }

    fn check_order(&self, seen: &mut Vec<(usize, Lexeme)>, name: Lexeme) {
        const ORDER: [Token; 7] = [
            Token::Functions,
            Token::Data,
            Token::TransformedData,
            Token::Parameters,
            Token::TransformedParameters,
            Token::Model,
            Token::GeneratedQuantities,
        ];
        let place = ORDER.iter().position(|t| *t == name.token).expect("every block has its place");
        if let Some((_, first)) = seen.iter().find(|s| s.0 == place) {
            let message = format!("there are two blocks {}", name.token);
            let diagnostic = Diagnostic::error("E2011", message, name.span, "the second")
                .with_label(first.span, "the first")
                .with_help("join them into one");
            self.report(diagnostic);
        } else if let Some((_, later)) = seen.iter().find(|s| s.0 > place) {
            let message = format!("{} stands after {}", name.token, later.token);
            let label = format!("belongs before {}", later.token);
            let order = "the order is: functions, data, transformed data, parameters, transformed parameters, model, \
                         generated quantities";
            let diagnostic =
                Diagnostic::error("E2010", message, name.span, label).with_label(later.span, "this comes later");
            self.report(diagnostic.with_help(order));
        }
        seen.push((place, name));
    }

    /// The block whose name, braces and what is between them these are.
    fn block(&mut self, lexemes: &[Lexeme]) {
        let (name, last) = (lexemes[0], lexemes[lexemes.len() - 1]);
        let span = if name.span.file == last.span.file { name.span.to(last.span) } else { name.span };
        let inside = lexemes[1..].to_vec();
        if name.token == Token::Functions {
            let items = match self.parse(Token::StartFunctions, inside) {
                Some(Parsed::Functions(items)) => items,
                _ => Vec::new(),
            };
            self.program.functions.get_or_insert(Functions { items, span });
            return;
        }
        let stmts = match self.parse(Token::StartBlock, inside) {
            Some(Parsed::Block(stmts)) => stmts,
            _ => Vec::new(),
        };
        let program = &mut self.program;
        let place = match name.token {
            Token::Data => &mut program.data,
            Token::TransformedData => &mut program.transformed_data,
            Token::Parameters => &mut program.parameters,
            Token::TransformedParameters => &mut program.transformed_parameters,
            Token::Model => &mut program.model,
            _ => &mut program.generated_quantities,
        };
        place.get_or_insert(Block { stmts, span });
    }

    fn report_outside(&self, lexemes: &[Lexeme]) {
        let (first, last) = (lexemes[0], lexemes[lexemes.len() - 1]);
        if self.is_faulty(lexemes) {
            return;
        }
        let span = if first.span.file == last.span.file { first.span.to(last.span) } else { first.span };
        let diagnostic = if first.token.is_block() {
            let message = format!("the block {} has no braces", first.token);
            let diagnostic = Diagnostic::error("E2012", message, first.span, "`{` belongs after this");
            diagnostic.with_help("a block is written `model { … }`, an empty one, too")
        } else if first.token == Token::Semi {
            let diagnostic =
                Diagnostic::error("E2012", "`;` stands outside of the blocks", first.span, "not in a block");
            diagnostic.with_help("remove it: no semicolon follows the brace of a block")
        } else {
            let what = crate::stan::syntax::unexpected::described(self.sources, first);
            let message = format!("{what} stands outside of the blocks");
            let diagnostic = Diagnostic::error("E2012", message, span, "not in a block");
            diagnostic.with_help(self.block_meant(lexemes).unwrap_or(match first.token {
                Token::RBrace => "remove it",
                token if token.is_type() || token == Token::Void => {
                    "declarations stand in a block, such as `data { … }`, and functions in `functions { … }`"
                }
                Token::Ident if ["transformed", "generated"].contains(&source(self.sources, first.span)) => {
                    "the two words of a block's name stand in one line: `transformed data`, `generated quantities`"
                }
                _ => "statements stand in a block, such as `model { … }`",
            }))
        };
        self.report(diagnostic);
    }

    /// The block whose name words before a brace may be.
    fn block_meant(&self, lexemes: &[Lexeme]) -> Option<&'static str> {
        const HELP: [(&str, &str); 7] = [
            ("functions", "did you mean `functions { … }`?"),
            ("data", "did you mean `data { … }`?"),
            ("transformed data", "did you mean `transformed data { … }`?"),
            ("parameters", "did you mean `parameters { … }`?"),
            ("transformed parameters", "did you mean `transformed parameters { … }`?"),
            ("model", "did you mean `model { … }`?"),
            ("generated quantities", "did you mean `generated quantities { … }`?"),
        ];
        let brace = lexemes.iter().take(3).position(|l| l.token == Token::LBrace)?;
        let words: Vec<&str> = lexemes[..brace].iter().map(|l| source(self.sources, l.span)).collect();
        let written = words.join(" ");
        let words = written.to_lowercase();
        // The words are right where they stand in two lines.
        let name = closest(&words, HELP.iter().map(|(name, _)| *name)).filter(|name| *name != written)?;
        HELP.iter().find(|(block, _)| *block == name).map(|(_, help)| *help)
    }

    /// Whether something among these tokens was reported by the lexer or by layout.
    fn is_faulty(&self, lexemes: &[Lexeme]) -> bool {
        let (Some(first), Some(last)) = (lexemes.first(), lexemes.last()) else { return false };
        let within = |f: &Span, from: Span, to: Span| f.file == from.file && from.start <= f.end && f.start <= to.end;
        let one_file = first.span.file == last.span.file;
        self.faults.iter().any(|f| {
            (one_file && within(f, first.span, last.span)) || lexemes.iter().any(|l| within(f, l.span, l.span))
        })
    }

    /// Parses what stands in the braces, replacing what does not parse and trying again.
    fn parse(&self, start: Token, mut lexemes: Vec<Lexeme>) -> Option<Parsed> {
        for _ in 0..MAX_SLIPS {
            match self.run(start, &lexemes) {
                Ok(parsed) => return Some(parsed),
                Err(slip) => self.recover(&mut lexemes, &slip)?,
            }
        }
        None
    }

    /// Runs the grammar from `start` over all of `lexemes`.
    fn run(&self, start: Token, lexemes: &[Lexeme]) -> Result<Parsed, Slip> {
        let taken = Cell::new(0usize);
        let tokens = lexemes.iter().enumerate().map(|(i, l)| {
            taken.set(taken.get() + 1);
            Ok((i, l.token, i + 1))
        });
        let tokens = std::iter::once(Ok((0, start, 0))).chain(tokens);
        let builder = Builder { sources: self.sources, lexemes, diagnostics: &self.diagnostics };
        self.grammar.parse(&builder, tokens).map_err(|error| match error {
            // The grammar takes one token of lookahead, so the last one taken is the one that does not fit.
            ParseError::UnrecognizedToken { expected, .. } => Slip { at: taken.get().saturating_sub(1), expected },
            ParseError::UnrecognizedEof { expected, .. } => Slip { at: lexemes.len(), expected },
            ParseError::ExtraToken { .. } | ParseError::InvalidToken { .. } | ParseError::User { .. } => {
                Slip { at: taken.get().saturating_sub(1), expected: Vec::new() }
            }
        })
    }

    /// Reports a slip and changes `lexemes` so that the parse gets past it; `None` when nothing of the block can be
    /// kept.
    fn recover(&self, lexemes: &mut Vec<Lexeme>, slip: &Slip) -> Option<()> {
        let site = Site { sources: self.sources, lexemes, at: slip.at, expected: &slip.expected };
        let again = lexemes.get(slip.at).is_some_and(|f| f.token == Token::BadStmt);
        if !again && site.misses_semicolon() {
            let previous = lexemes[slip.at - 1];
            if !self.is_faulty(&[previous]) {
                self.report(missing_semicolon(previous));
            }
            lexemes.insert(slip.at, previous.after(Token::Semi));
            return Some(());
        }
        let region = broken_statement(lexemes, slip.at, again);
        if !again && !self.is_faulty(&lexemes[region.clone().unwrap_or(0..lexemes.len())]) {
            self.report(unexpected(&site));
        }
        let range = region?;
        let (first, last) = (lexemes[range.start], lexemes[range.end - 1]);
        let span = if first.span.file == last.span.file { first.span.to(last.span) } else { first.span };
        lexemes.splice(range, [Lexeme::new(Token::BadStmt, span)]);
        Some(())
    }
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

/// The partner of the bracket at `open`.
fn closing(lexemes: &[Lexeme], open: usize) -> usize {
    let mut depth = 0;
    for (i, lexeme) in lexemes.iter().enumerate().skip(open) {
        depth = depth_after(lexeme.token, depth);
        if depth == 0 {
            return i;
        }
    }
    lexemes.len() - 1
}

/// The tokens of the innermost statement, or function, around `at`; of the block outside that when `outside`.
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
        } else if token == Token::LBrace && opens_block(lexemes, i) {
            return Some(i);
        }
    }
    None
}

/// The statement around `at` of the block that is opened at `open`.
fn statement_in(lexemes: &[Lexeme], open: usize, at: usize) -> Range<usize> {
    let mut start = open + 1;
    let mut depth = 0usize;
    // Whether each open brace is that of a block.
    let mut blocks: Vec<bool> = Vec::new();
    for (i, lexeme) in lexemes.iter().enumerate().skip(open + 1) {
        let token = lexeme.token;
        if depth == 0 && token == Token::RBrace {
            return start..i;
        }
        depth = depth_after(token, depth);
        let mut ends = matches!(token, Token::Semi | Token::BadStmt);
        if token == Token::LBrace {
            blocks.push(opens_block(lexemes, i));
        } else if token == Token::RBrace {
            ends = blocks.pop().unwrap_or(true);
        }
        let goes_on = lexemes.get(i + 1).is_some_and(|l| l.token == Token::Else) && i + 1 != at;
        if depth == 0 && ends && !goes_on {
            if i >= at {
                return start..i + 1;
            }
            start = i + 1;
        }
    }
    start..lexemes.len()
}
