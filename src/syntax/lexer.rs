//! From text to tokens, with the few rules that a regular expression cannot say.

use logos::Logos;

use crate::base::{Diagnostic, FileId};
use crate::syntax::span;
use crate::syntax::token::Token;

/// A token with its place in the text. What layout and recovery insert has no width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Lexeme {
    pub(crate) fn new(token: Token, start: usize, end: usize) -> Self {
        Self { token, start, end }
    }
    /// Whether the parser never sees it.
    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.token, Token::LineComment | Token::BlockComment | Token::Doc)
    }
}

/// The tokens of a text, comments included, and the places where it went wrong.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Starts of what was reported: a syntax error that comes from one of them is not reported again.
    pub(crate) faults: Vec<usize>,
    /// Starts of texts and comments without an end, which may have swallowed brackets.
    pub(crate) swallowing: Vec<usize>,
}

/// The tokens of `text[start..end]`, with positions in `text`.
pub(crate) fn lex(file: FileId, text: &str, start: usize, end: usize) -> Lexed {
    let mut lexed = Lexed::default();
    let part = &text[start..end];
    let skipped = if start == 0 && part.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut unknown: Option<(usize, usize)> = None;
    for (token, range) in Token::lexer(&part[skipped..]).spanned() {
        let (from, to) = (start + skipped + range.start, start + skipped + range.end);
        match token {
            Ok(token) => lexed.add(file, text, Lexeme::new(token, from, to)),
            Err(()) => match &mut unknown {
                Some(run) if run.1 == from => run.1 = to,
                _ => {
                    lexed.report_unknown(file, text, unknown.replace((from, to)));
                }
            },
        }
    }
    lexed.report_unknown(file, text, unknown);
    lexed
}

impl Lexed {
    fn add(&mut self, file: FileId, text: &str, lexeme: Lexeme) {
        let Lexeme { token, start, end } = lexeme;
        let source = &text[start..end];
        match token {
            Token::LineComment if source.starts_with("///") && !source.starts_with("////") => {
                self.lexemes.push(Lexeme { token: Token::Doc, ..lexeme });
            }
            Token::Real if self.last_words().next() == Some(Token::Dot) => self.split_tuple_fields(source, lexeme),
            Token::Dot if self.last_is(Token::Int, start) && !self.field_number() && ends_a_number(&text[end..]) => {
                let integer = self.lexemes.pop().expect("the last token is an integer");
                self.lexemes.push(Lexeme::new(Token::Real, integer.start, end));
            }
            Token::BadNumber => {
                self.fault(start, malformed_number(file, source, lexeme));
                self.lexemes.push(Lexeme { token: Token::Int, ..lexeme });
            }
            Token::OpenText => {
                self.swallowing.push(start);
                let diagnostic =
                    Diagnostic::error("E0002", "this text has no end", span(file, start, end), "its line ends first")
                        .with_help("close it with `\"`; write a line break in a text as `\\n`");
                self.fault(start, diagnostic);
                self.lexemes.push(Lexeme { token: Token::Text, ..lexeme });
            }
            Token::OpenComment => {
                self.swallowing.push(start);
                let diagnostic = Diagnostic::error(
                    "E0003",
                    "this comment has no end",
                    span(file, start, start + 2),
                    "the rest of the file is part of it",
                );
                self.fault(start, diagnostic.with_help("close it with `*/`"));
            }
            _ => self.lexemes.push(lexeme),
        }
    }

    fn fault(&mut self, start: usize, diagnostic: Diagnostic) {
        self.faults.push(start);
        self.diagnostics.push(diagnostic);
    }

    /// Whether the last token is `token` and ends at `at`.
    fn last_is(&self, token: Token, at: usize) -> bool {
        self.lexemes.last().is_some_and(|l| l.token == token && l.end == at)
    }

    /// Whether the last token, an integer, is the position in `t.0` or was malformed.
    fn field_number(&self) -> bool {
        let last = self.lexemes.last().map(|l| l.start);
        if last.is_some() && self.faults.last().copied() == last {
            return true;
        }
        self.last_words().nth(1) == Some(Token::Dot)
    }

    /// The tokens before this that are no comments, the last first.
    fn last_words(&self) -> impl Iterator<Item = Token> + '_ {
        self.lexemes.iter().rev().filter(|l| !l.is_comment()).map(|l| l.token)
    }

    /// `t.0.1` has two positions, not one real number.
    fn split_tuple_fields(&mut self, source: &str, lexeme: Lexeme) {
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        match source.split_once('.') {
            Some((first, second)) if digits(first) && digits(second) => {
                let dot = lexeme.start + first.len();
                self.lexemes.push(Lexeme::new(Token::Int, lexeme.start, dot));
                self.lexemes.push(Lexeme::new(Token::Dot, dot, dot + 1));
                self.lexemes.push(Lexeme::new(Token::Int, dot + 1, lexeme.end));
            }
            _ => self.lexemes.push(lexeme),
        }
    }

    fn report_unknown(&mut self, file: FileId, text: &str, run: Option<(usize, usize)>) {
        let Some((start, end)) = run else { return };
        let source = &text[start..end];
        let shown: String = source.chars().take(12).flat_map(char::escape_debug).collect();
        let diagnostic = Diagnostic::error(
            "E0001",
            format!("`{shown}` means nothing in this language"),
            span(file, start, end),
            "unexpected here",
        );
        let help = source.chars().next().and_then(meant_instead);
        self.fault(
            start,
            match help {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic,
            },
        );
    }
}

/// Whether the dot before `rest` ends a real number, as in `1.`, and does not start `..` or a field.
fn ends_a_number(rest: &str) -> bool {
    !rest.starts_with(|c: char| c == '.' || c == '_' || c.is_ascii_alphanumeric())
}

fn malformed_number(file: FileId, source: &str, lexeme: Lexeme) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        "E0006",
        format!("`{source}` is not a number"),
        span(file, lexeme.start, lexeme.end),
        "digits and letters together",
    );
    if source.starts_with("0x") || source.starts_with("0b") || source.starts_with("0o") {
        diagnostic.with_help("integers are written in base ten")
    } else if source.ends_with(['e', 'E']) {
        diagnostic.with_help("an exponent needs digits: `1e-3`")
    } else {
        diagnostic
            .with_help("a number is written `12`, `1_000`, `1.5` or `1e-3`, without a suffix; a product needs `*`")
    }
}

/// What a character from another language, or from a word processor, stands for here.
fn meant_instead(c: char) -> Option<&'static str> {
    Some(match c {
        '#' => "a comment starts with `//`",
        '~' => "not is `!`; for `y ~ normal(mu, sigma)` add `normal_lpdf(y, mu, sigma)` to the log density",
        '¬' => "not is `!`",
        '?' => "a choice is `if c { a } else { b }` or `select(c, a, b)`",
        '\'' | '`' | '“' | '”' | '„' | '«' | '»' => "a text stands between `\"` and `\"`",
        '−' | '–' | '—' => "minus is `-`",
        '×' | '·' | '⋅' => "times is `*`; a matrix product is `@`",
        '÷' => "divided by is `/`",
        '≤' => "at most is `<=`",
        '≥' => "at least is `>=`",
        '≠' => "not equal is `!=`",
        '→' => "an arrow is `->`",
        '\u{a0}' => "this is a no-break space: replace it by a space",
        '\\' => "integer division is `/`, and a backslash is only known inside a text",
        c if c.is_alphabetic() => "names are made of the letters a to z, digits and `_`",
        _ => return None,
    })
}
