//! Between the lexer and the grammar: brackets are matched, and what one token of lookahead cannot tell is marked.
//!
//! - Every bracket gets its partner. What is missing is reported and put in, so that recovery and the grammar can rely on nesting.
//! - The word `derivative` before `of f` becomes [`Token::Derivative`]; elsewhere it is a name. So do `model` before a name, and
//!   `generated` behind the body of a model.
//! - The brackets of constraints, `tau: real<lower = 0>` of a model, become [`Token::LAngle`] and [`Token::RAngle`].
//! - The brace of a struct literal or pattern becomes [`Token::FieldsBrace`]: it follows a name and is not the body of an `if`, `while`,
//!   `for`, `fn`, `struct`, `derivative` or `model`, whose head ends at the first brace of its own level. (So `if x == T { … }` has the body `{ … }`, as in Rust.)
//! - A statement that ends with a block and has no semicolon gets a [`Token::StmtEnd`].
//! - Nesting is limited, so that no recursive walk over the tree can exhaust the stack.

use crate::base::{Diagnostic, FileId};
use crate::syntax::contextual::{mark_constraints, mark_derivatives, mark_models};
use crate::syntax::lexer::{Lexed, Lexeme};
use crate::syntax::span;
use crate::syntax::token::Token;

/// How deep brackets may be nested, braces counted as the levels that they are.
pub(crate) const MAX_NESTING: usize = 500;
/// How deep a syntax tree may get, with chains of operators and of `else if`, which do not look nested. Later passes
/// walk it by recursion, with room for it.
pub(crate) const MAX_DEPTH: usize = 100_000;
/// What a block counts: several levels of the tree.
const BLOCK_NESTING: usize = 3;

/// The tokens ready for the grammar.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Starts of what was reported: a syntax error that comes from one of them is not reported again.
    pub(crate) faults: Vec<usize>,
    /// Levels of the tree, at most.
    pub(crate) depth: usize,
    /// Whether the text is nested too deep to be parsed at all.
    pub(crate) too_deep: bool,
}

/// Lays out the tokens of a file. Comments are left out.
pub(crate) fn lay_out(file: FileId, text: &str, lexed: &Lexed) -> Layout {
    lay_out_within(MAX_DEPTH, file, text, lexed)
}

/// Lays out the tokens of a hole. Its tree hangs in that of a file, which has no room for a deep one.
pub(crate) fn lay_out_hole(file: FileId, text: &str, lexed: &Lexed) -> Layout {
    lay_out_within(MAX_NESTING, file, text, lexed)
}

fn lay_out_within(most: usize, file: FileId, text: &str, lexed: &Lexed) -> Layout {
    let mut lexemes: Vec<Lexeme> = lexed.lexemes.iter().copied().filter(|l| !l.is_comment()).collect();
    mark_derivatives(text, &mut lexemes);
    mark_models(text, &mut lexemes);
    let mut matcher = Matcher { file, swallowing: &lexed.swallowing, out: Layout::default(), open: Vec::new() };
    matcher.run(text, &lexemes);
    let mut layout = matcher.out;
    mark_constraints(&mut layout.lexemes);
    match tree_depth(most, file, &layout.lexemes) {
        Ok(depth) => layout.depth = depth,
        Err(diagnostic) => {
            layout.diagnostics.push(*diagnostic);
            layout.too_deep = true;
        }
    }
    layout.lexemes = mark(&layout.lexemes);
    layout
}

pub(crate) fn is_opener(token: Token) -> bool {
    matches!(token, Token::LParen | Token::LBracket | Token::LBrace | Token::FieldsBrace | Token::LAngle)
}

pub(crate) fn is_closer(token: Token) -> bool {
    matches!(token, Token::RParen | Token::RBracket | Token::RBrace | Token::RAngle)
}

fn closer_of(open: Token) -> Token {
    match open {
        Token::LParen => Token::RParen,
        Token::LBracket => Token::RBracket,
        Token::LAngle => Token::RAngle,
        _ => Token::RBrace,
    }
}

/// Whether an item starts at `i`, wherever `i` is: none of these can stand in a body.
pub(crate) fn starts_item(lexemes: &[Lexeme], i: usize) -> bool {
    let next = lexemes.get(i + 1).map(|l| l.token);
    match lexemes[i].token {
        Token::Fn | Token::Struct | Token::Const => next == Some(Token::Ident),
        Token::Use => next == Some(Token::Text),
        Token::Pub | Token::Derivative | Token::Model => true,
        _ => false,
    }
}

fn balanced(lexemes: &[Lexeme]) -> bool {
    let mut open = Vec::new();
    for lexeme in lexemes {
        if is_opener(lexeme.token) {
            open.push(closer_of(lexeme.token));
        } else if is_closer(lexeme.token) && open.pop() != Some(lexeme.token) {
            return false;
        }
    }
    open.is_empty()
}

/// Gives every bracket its partner.
struct Matcher<'a> {
    file: FileId,
    swallowing: &'a [usize],
    out: Layout,
    open: Vec<Lexeme>,
}

impl Matcher<'_> {
    fn run(&mut self, text: &str, lexemes: &[Lexeme]) {
        if balanced(lexemes) {
            self.out.lexemes = lexemes.to_vec();
            return;
        }
        for (i, &lexeme) in lexemes.iter().enumerate() {
            let in_list = self.open.last().is_some_and(|o| o.token != Token::LBrace);
            match lexeme.token {
                token if is_opener(token) => {
                    self.open.push(lexeme);
                    self.out.lexemes.push(lexeme);
                }
                token if is_closer(token) => self.close(text, lexeme),
                Token::Semi | Token::Let | Token::While | Token::Return | Token::Emit if in_list => {
                    self.close_lists(lexeme.start);
                    self.out.lexemes.push(lexeme);
                }
                _ => {
                    if !self.open.is_empty() && starts_item(lexemes, i) {
                        self.close_down_to(0, lexeme.start);
                    }
                    self.out.lexemes.push(lexeme);
                }
            }
        }
        self.close_down_to(0, lexemes.last().map_or(0, |l| l.end));
    }

    fn close(&mut self, text: &str, lexeme: Lexeme) {
        let is_partner = |o: &Lexeme| closer_of(o.token) == lexeme.token;
        let in_block = self.open.iter().rposition(|o| o.token == Token::LBrace).map_or(0, |b| b + 1);
        let from = if lexeme.token == Token::RBrace { 0 } else { in_block };
        match self.open[from..].iter().rposition(is_partner) {
            Some(partner) => {
                self.close_down_to(from + partner + 1, lexeme.start);
                self.open.pop();
                self.out.lexemes.push(lexeme);
            }
            None if self.open.len() > in_block => {
                let open = self.open.pop().expect("a bracket is open");
                let found = &text[lexeme.start..lexeme.end];
                let diagnostic = Diagnostic::error(
                    "E0010",
                    format!("{} is closed by `{found}`", open.token),
                    span(self.file, lexeme.start, lexeme.end),
                    format!("{} expected", closer_of(open.token)),
                )
                .with_label(span(self.file, open.start, open.end), "opened here");
                self.fault(lexeme.start, diagnostic);
                self.out.lexemes.push(Lexeme { token: closer_of(open.token), ..lexeme });
            }
            None => {
                let diagnostic = Diagnostic::error(
                    "E0010",
                    format!("{} closes nothing", lexeme.token),
                    span(self.file, lexeme.start, lexeme.end),
                    "no bracket is open here",
                );
                self.fault(lexeme.start, diagnostic.with_help("remove it, or open its bracket"));
            }
        }
    }

    /// Closes the parentheses and square brackets that are open in the innermost block.
    fn close_lists(&mut self, at: usize) {
        let keep = self.open.iter().rposition(|o| o.token == Token::LBrace).map_or(0, |b| b + 1);
        self.close_down_to(keep, at);
    }

    fn close_down_to(&mut self, keep: usize, at: usize) {
        let Some(first) = self.open.get(keep) else {
            return;
        };
        let diagnostic = Diagnostic::error(
            "E0009",
            format!("{} is never closed", first.token),
            span(self.file, first.start, first.end),
            "opened here",
        )
        .with_label(span(self.file, at, at), format!("{} is missing before this", closer_of(first.token)));
        self.out.faults.push(at);
        let swallowed = self.swallowing.iter().any(|s| (first.start..=at).contains(s));
        if !swallowed {
            self.out.diagnostics.push(diagnostic);
        }
        while self.open.len() > keep {
            let open = self.open.pop().expect("a bracket is open");
            self.out.lexemes.push(Lexeme::new(closer_of(open.token), at, at));
        }
    }

    fn fault(&mut self, at: usize, diagnostic: Diagnostic) {
        self.out.faults.push(at);
        self.out.diagnostics.push(diagnostic);
    }
}

/// How deep the tree gets: an upper bound, every bracket, prefix and infix operator, `else` and `->` since the last
/// separator of its level, summed over the open levels. The error is at the first place where it gets deeper than
/// `most_depth`, or brackets are nested deeper than [`MAX_NESTING`].
fn tree_depth(most_depth: usize, file: FileId, lexemes: &[Lexeme]) -> Result<usize, Box<Diagnostic>> {
    // Depth at the level's last separator and what its bracket counts, for each open level; `depth` is that of the
    // current token, `nesting` that of the brackets alone.
    let mut levels: Vec<(usize, usize)> = Vec::new();
    let base = |levels: &[(usize, usize)]| levels.last().map_or(0, |(depth, _)| *depth);
    let (mut depth, mut nesting, mut deepest) = (0, 0, 0);
    let mut previous = Token::Semi;
    for (i, lexeme) in lexemes.iter().enumerate() {
        let token = lexeme.token;
        match token {
            _ if levels.is_empty() && starts_item(lexemes, i) => depth = 0,
            _ if is_opener(token) => {
                if token == Token::LBrace && previous == Token::RBrace {
                    depth = base(&levels);
                }
                let counts = if token == Token::LBrace { BLOCK_NESTING } else { 1 };
                depth += counts;
                nesting += counts;
                levels.push((depth, counts));
            }
            _ if is_closer(token) => {
                // The bracket is one link of the chain around it: `f(x)(y)(z)`.
                let (inside, counts) = levels.pop().expect("brackets are balanced");
                depth = inside;
                nesting -= counts;
            }
            Token::If if previous == Token::RBrace => depth = base(&levels),
            Token::Comma | Token::Semi | Token::Let | Token::While | Token::For | Token::Return | Token::Emit => {
                depth = base(&levels);
            }
            Token::Else => depth += BLOCK_NESTING,
            Token::Ident | Token::Int | Token::Real | Token::Text | Token::True | Token::False => {}
            _ => depth += 1,
        }
        if depth > most_depth || nesting > MAX_NESTING {
            let at = span(file, lexeme.start, lexeme.end);
            let most = if nesting > MAX_NESTING { MAX_NESTING } else { most_depth };
            let message = format!("this is nested more than {most} levels deep");
            let diagnostic = Diagnostic::error("E0019", message, at, "the limit is reached here");
            return Err(Box::new(diagnostic.with_help("name a part of it with `let`, or move it to a function")));
        }
        deepest = deepest.max(depth);
        previous = token;
    }
    Ok(deepest)
}

/// What the open bracket is to the statements around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statement {
    /// Not at the start of one that ends with a block.
    Other,
    /// An `if` or a block that stands as a statement.
    BlockLike,
    /// A `while` or `for`.
    Loop,
}

struct Level {
    open: Token,
    /// Whether the next brace of this level is the body of what came before.
    head: bool,
    /// Whether a statement may start here.
    at_start: bool,
    statement: Statement,
}

impl Level {
    fn new(open: Token) -> Self {
        Self { open, head: false, at_start: open == Token::LBrace, statement: Statement::Other }
    }
    fn end_statement(&mut self) {
        self.at_start = true;
        self.statement = Statement::Other;
        self.head = false;
    }
}

/// Tells the two kinds of braces apart and ends the statements that need no semicolon.
fn mark(lexemes: &[Lexeme]) -> Vec<Lexeme> {
    let mut out: Vec<Lexeme> = Vec::with_capacity(lexemes.len() + lexemes.len() / 8);
    let mut levels = vec![Level::new(Token::LParen)];
    let mut after_loop = false;
    for (i, &lexeme) in lexemes.iter().enumerate() {
        let previous = i.checked_sub(1).map(|p| lexemes[p].token);
        let next = lexemes.get(i + 1).map(|l| l.token);
        let level = levels.last_mut().expect("the file is a level");
        if std::mem::take(&mut after_loop) && lexeme.token == Token::Semi {
            continue;
        }
        let at_start = std::mem::take(&mut level.at_start);
        match lexeme.token {
            Token::LBrace => {
                let fields = !level.head && previous == Some(Token::Ident);
                level.head = false;
                if at_start {
                    level.statement = Statement::BlockLike;
                }
                let token = if fields { Token::FieldsBrace } else { Token::LBrace };
                out.push(Lexeme { token, ..lexeme });
                levels.push(Level::new(token));
                continue;
            }
            token if is_opener(token) => levels.push(Level::new(token)),
            token if is_closer(token) => {
                let open = levels.pop().map(|l| l.open);
                out.push(lexeme);
                let outer = levels.last_mut().expect("brackets are balanced");
                let ends = open == Some(Token::LBrace) && outer.statement != Statement::Other && !outer.head;
                if ends && outer.open == Token::LBrace {
                    let is_loop = outer.statement == Statement::Loop;
                    let goes_on = match next {
                        Some(Token::Else) => !is_loop,
                        Some(Token::Semi | Token::RBrace) => !is_loop,
                        _ => false,
                    };
                    if !goes_on {
                        out.push(Lexeme::new(Token::StmtEnd, lexeme.end, lexeme.end));
                        outer.end_statement();
                        after_loop = is_loop;
                    }
                }
                continue;
            }
            Token::Semi => level.end_statement(),
            Token::If => {
                level.head = true;
                if at_start {
                    level.statement = Statement::BlockLike;
                }
            }
            Token::While | Token::For if level.open == Token::LBrace => {
                level.head = true;
                if at_start {
                    level.statement = Statement::Loop;
                }
            }
            Token::Fn if next == Some(Token::Ident) => level.head = true,
            Token::Struct | Token::Derivative | Token::Model | Token::Generated => level.head = true,
            _ => {}
        }
        out.push(lexeme);
    }
    out
}
