//! Between the lexer and the grammar: brackets are matched, and what one token of lookahead cannot tell is marked.
//!
//! - Every bracket gets its partner. What is missing is reported and put in, so that recovery and the grammar can rely
//!   on nesting.
//! - The `T` of `y ~ f(x) T[a, b]` becomes [`Token::Truncate`]; elsewhere it is a name.
//! - `<` and `-` side by side after what starts a statement become [`Token::OldAssign`].
//! - Nesting is limited, so that no recursive walk over the tree can exhaust the stack.

use crate::base::{Diagnostic, SourceMap};
use crate::stan::syntax::lexer::{Lexed, Lexeme};
use crate::stan::syntax::token::Token;

/// How deep brackets may be nested, braces counted as the levels that they are.
pub(crate) const MAX_NESTING: usize = 500;
/// How deep a syntax tree may get, with chains of operators and of `else if`, which do not look nested.
pub(crate) const MAX_DEPTH: usize = 100_000;
/// What a block counts: several levels of the tree.
const BLOCK_NESTING: usize = 3;

/// The tokens ready for the grammar.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What was reported: a syntax error that comes from one of them is not reported again.
    pub(crate) faults: Vec<crate::base::Span>,
    /// Levels of the tree, at most.
    pub(crate) depth: usize,
    /// Whether the text is nested too deep to be parsed at all.
    pub(crate) too_deep: bool,
}

/// Lays out the tokens of a program.
pub(crate) fn lay_out(sources: &SourceMap, lexed: &Lexed) -> Layout {
    let mut lexemes = lexed.lexemes.clone();
    mark(sources, &mut lexemes);
    let mut matcher = Matcher { lexed, out: Layout::default(), open: Vec::new() };
    matcher.run(&lexemes);
    let mut layout = matcher.out;
    match tree_depth(&layout.lexemes) {
        Ok(depth) => layout.depth = depth,
        Err(diagnostic) => {
            layout.diagnostics.push(*diagnostic);
            layout.too_deep = true;
        }
    }
    layout
}

pub(crate) fn is_opener(token: Token) -> bool {
    matches!(token, Token::LParen | Token::LBracket | Token::LBrace)
}

pub(crate) fn is_closer(token: Token) -> bool {
    matches!(token, Token::RParen | Token::RBracket | Token::RBrace)
}

fn closer_of(open: Token) -> Token {
    match open {
        Token::LParen => Token::RParen,
        Token::LBracket => Token::RBracket,
        _ => Token::RBrace,
    }
}

/// Whether the brace at `i` opens statements or functions, not the elements of an array.
pub(crate) fn opens_block(lexemes: &[Lexeme], i: usize) -> bool {
    let Some(before) = i.checked_sub(1).map(|p| lexemes[p].token) else { return true };
    matches!(before, Token::RParen | Token::Semi | Token::LBrace | Token::RBrace | Token::Else | Token::BadStmt)
        || before.is_block()
}

/// Whether a block of the program starts at `i`, wherever `i` is: these words stand before a brace nowhere else.
pub(crate) fn starts_block(lexemes: &[Lexeme], i: usize) -> bool {
    lexemes[i].token.is_block() && lexemes.get(i + 1).is_some_and(|l| l.token == Token::LBrace)
}

/// Tells the `T` of a truncation and `<-` apart from what looks the same.
fn mark(sources: &SourceMap, lexemes: &mut Vec<Lexeme>) {
    let mut after_tilde = false;
    // Parentheses that are open: braces in them are those of arrays.
    let mut parentheses = 0usize;
    // Whether all tokens of the statement so far are those of a place: `x[i, j].1`, with the brackets that are open.
    let (mut place, mut brackets) = (false, 0usize);
    let mut out: Vec<Lexeme> = Vec::with_capacity(lexemes.len());
    let mut at = 0;
    while at < lexemes.len() {
        let mut lexeme = lexemes[at];
        let previous = out.last().map(|l| l.token);
        let next = lexemes.get(at + 1).copied();
        match lexeme.token {
            Token::LParen => parentheses += 1,
            Token::RParen => parentheses = parentheses.saturating_sub(1),
            Token::Semi => parentheses = 0,
            _ => {}
        }
        match lexeme.token {
            Token::LBrace | Token::RBrace if after_tilde && parentheses > 0 => {}
            Token::Semi | Token::LBrace | Token::RBrace | Token::Else => {
                (after_tilde, place, brackets) = (false, true, 0);
            }
            Token::Tilde => after_tilde = true,
            Token::Ident if after_tilde && previous == Some(Token::RParen) => {
                let text = &sources.file(lexeme.span.file).text[lexeme.span.start as usize..lexeme.span.end as usize];
                if text == "T" {
                    lexeme.token = Token::Truncate;
                }
            }
            Token::LBracket => brackets += 1,
            Token::RBracket => brackets = brackets.saturating_sub(1),
            Token::Lt if place && brackets == 0 => {
                let joined = next.filter(|n| n.token == Token::Minus && n.span.start == lexeme.span.end);
                if let Some(minus) = joined
                    && matches!(previous, Some(Token::Ident | Token::RBracket | Token::Dot))
                {
                    lexeme = Lexeme::new(Token::OldAssign, lexeme.span.to(minus.span));
                    at += 1;
                }
                place = false;
            }
            // `if (c) x <- 1`: a place may start after the parenthesis.
            Token::RParen if brackets == 0 => place = true,
            Token::Ident | Token::Dot => {}
            _ if brackets == 0 => place = false,
            _ => {}
        }
        out.push(lexeme);
        at += 1;
    }
    *lexemes = out;
}

fn balanced(lexemes: &[Lexeme]) -> bool {
    let mut open = Vec::new();
    for (i, lexeme) in lexemes.iter().enumerate() {
        if is_opener(lexeme.token) {
            open.push(closer_of(lexeme.token));
        } else {
            let unmatched = is_closer(lexeme.token) && open.pop() != Some(lexeme.token);
            if unmatched || (!open.is_empty() && starts_block(lexemes, i)) {
                return false;
            }
        }
    }
    open.is_empty()
}

/// Gives every bracket its partner.
struct Matcher<'a> {
    lexed: &'a Lexed,
    out: Layout,
    open: Vec<Lexeme>,
}

impl Matcher<'_> {
    fn run(&mut self, lexemes: &[Lexeme]) {
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
                token if is_closer(token) => self.close(lexeme),
                Token::Semi if in_list => {
                    self.close_lists(lexeme);
                    self.out.lexemes.push(lexeme);
                }
                _ => {
                    if !self.open.is_empty() && starts_block(lexemes, i) {
                        self.close_down_to(0, lexeme);
                    }
                    self.out.lexemes.push(lexeme);
                }
            }
        }
        if let Some(last) = lexemes.last() {
            self.close_down_to(0, last.after(Token::RBrace));
        }
    }

    fn close(&mut self, lexeme: Lexeme) {
        let is_partner = |o: &Lexeme| closer_of(o.token) == lexeme.token;
        let in_block = self.open.iter().rposition(|o| o.token == Token::LBrace).map_or(0, |b| b + 1);
        let from = if lexeme.token == Token::RBrace { 0 } else { in_block };
        match self.open[from..].iter().rposition(is_partner) {
            Some(partner) => {
                self.close_down_to(from + partner + 1, lexeme);
                self.open.pop();
                self.out.lexemes.push(lexeme);
            }
            None if self.open.len() > in_block => {
                let open = self.open.pop().expect("a bracket is open");
                let message = format!("{} is closed by {}", open.token, lexeme.token);
                let label = format!("{} expected", closer_of(open.token));
                let diagnostic = Diagnostic::error("E2008", message, lexeme.span, label);
                self.fault(lexeme, diagnostic.with_label(open.span, "opened here"));
                self.out.lexemes.push(Lexeme { token: closer_of(open.token), ..lexeme });
            }
            None => {
                let message = format!("{} closes nothing", lexeme.token);
                let diagnostic = Diagnostic::error("E2008", message, lexeme.span, "no bracket is open here");
                self.fault(lexeme, diagnostic.with_help("remove it, or open its bracket"));
            }
        }
    }

    /// Closes the parentheses and square brackets that are open in the innermost block.
    fn close_lists(&mut self, at: Lexeme) {
        let keep = self.open.iter().rposition(|o| o.token == Token::LBrace).map_or(0, |b| b + 1);
        self.close_down_to(keep, at);
    }

    /// Closes what was opened after the first `keep`, before `at`.
    fn close_down_to(&mut self, keep: usize, at: Lexeme) {
        let Some(first) = self.open.get(keep).copied() else { return };
        let place = at.before(at.token).span;
        let message = format!("{} is never closed", first.token);
        let diagnostic = Diagnostic::error("E2007", message, first.span, "opened here")
            .with_label(place, format!("{} is missing before this", closer_of(first.token)));
        self.out.faults.push(place);
        if self.lexed.swallowing.is_empty() {
            self.out.diagnostics.push(diagnostic);
        }
        while self.open.len() > keep {
            let open = self.open.pop().expect("a bracket is open");
            self.out.lexemes.push(Lexeme::new(closer_of(open.token), place));
        }
    }

    fn fault(&mut self, at: Lexeme, diagnostic: Diagnostic) {
        self.out.faults.push(at.span);
        self.out.diagnostics.push(diagnostic);
    }
}

/// How deep the tree gets: an upper bound, every bracket, operator and `else` since the last separator of its level,
/// summed over the open levels. The error is at the first place where it gets deeper than [`MAX_DEPTH`], or brackets
/// are nested deeper than [`MAX_NESTING`].
fn tree_depth(lexemes: &[Lexeme]) -> Result<usize, Box<Diagnostic>> {
    // For each open level: depth at its last separator, what its bracket counts, whether it holds statements.
    let mut levels: Vec<(usize, usize, bool)> = Vec::new();
    let base = |levels: &[(usize, usize, bool)]| levels.last().map_or(0, |l| l.0);
    let (mut depth, mut nesting, mut deepest) = (0usize, 0usize, 0usize);
    for (i, lexeme) in lexemes.iter().enumerate() {
        match lexeme.token {
            token if is_opener(token) => {
                let counts = if token == Token::LBrace { BLOCK_NESTING } else { 1 };
                depth += counts;
                nesting += counts;
                levels.push((depth, counts, token == Token::LBrace && opens_block(lexemes, i)));
            }
            token if is_closer(token) => {
                // The bracket is one link of the chain around it: `x[i][j][k]`.
                let (inside, counts, block) = levels.pop().expect("brackets are balanced");
                depth = inside;
                nesting -= counts;
                let goes_on = lexemes.get(i + 1).is_some_and(|l| l.token == Token::Else);
                if block && !goes_on {
                    depth = base(&levels);
                }
            }
            Token::Semi if lexemes.get(i + 1).is_some_and(|l| l.token == Token::Else) => {}
            Token::Comma | Token::Semi => depth = base(&levels),
            Token::Else | Token::If | Token::For | Token::While => depth += BLOCK_NESTING,
            Token::Ident | Token::Int | Token::Real | Token::Text => {}
            _ => depth += 1,
        }
        if depth > MAX_DEPTH || nesting > MAX_NESTING {
            let most = if nesting > MAX_NESTING { MAX_NESTING } else { MAX_DEPTH };
            let message = format!("this is nested more than {most} levels deep");
            let diagnostic = Diagnostic::error("E2013", message, lexeme.span, "the limit is reached here");
            return Err(Box::new(diagnostic.with_help("give a part of it a name, or move it to a function")));
        }
        deepest = deepest.max(depth);
    }
    Ok(deepest + BLOCK_NESTING)
}
