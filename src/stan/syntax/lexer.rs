//! From a text to tokens, with what a regular expression cannot say: old comments, and the path of an `#include`.

use logos::Logos;

use crate::base::{Diagnostic, FileId, Span};
use crate::stan::syntax::token::Token;

/// A token with its place. What layout and recovery put in has no width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) span: Span,
}

impl Lexeme {
    pub(crate) fn new(token: Token, span: Span) -> Self {
        Self { token, span }
    }
    /// One of no width at the end of this one.
    pub(crate) fn after(self, token: Token) -> Self {
        Self { token, span: Span { start: self.span.end, ..self.span } }
    }
    /// One of no width at the start of this one.
    pub(crate) fn before(self, token: Token) -> Self {
        Self { token, span: Span { end: self.span.start, ..self.span } }
    }
    /// Whether the parser never sees it.
    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.token, Token::LineComment | Token::BlockComment | Token::HashComment)
    }
}

/// The tokens of a text, comments and includes among them, and the places where it went wrong.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What was reported: a syntax error that comes from one of them is not reported again.
    pub(crate) faults: Vec<Span>,
    /// Texts and comments without an end, which may have swallowed brackets.
    pub(crate) swallowing: Vec<Span>,
}

/// The tokens of a file.
pub(crate) fn lex(file: FileId, text: &str) -> Lexed {
    let mut lexer = Lexer { file, text, out: Lexed::default() };
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    lexer.run(start, text.len());
    lexer.out
}

/// The path that an `#include` names: what stands between its quotes or angles, or the word.
pub(crate) fn included_path(source: &str) -> &str {
    let path = source.strip_prefix("#include").unwrap_or(source).trim();
    let quoted = |open, close| path.strip_prefix(open).and_then(|p: &str| p.strip_suffix(close));
    quoted('"', '"').or_else(|| quoted('<', '>')).unwrap_or(path)
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    out: Lexed,
}

impl Lexer<'_> {
    fn run(&mut self, start: usize, end: usize) {
        let mut unknown: Option<(usize, usize)> = None;
        let text = self.text;
        for (token, range) in Token::lexer(&text[start..end]).spanned() {
            let (from, to) = (start + range.start, start + range.end);
            match token {
                Ok(token) => self.add(token, from, to),
                Err(()) => match &mut unknown {
                    Some(run) if run.1 == from => run.1 = to,
                    _ => self.report_unknown(unknown.replace((from, to))),
                },
            }
        }
        self.report_unknown(unknown);
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    fn push(&mut self, token: Token, start: usize, end: usize) {
        self.out.lexemes.push(Lexeme::new(token, self.span(start, end)));
    }

    fn fault(&mut self, span: Span, diagnostic: Diagnostic) {
        self.out.faults.push(span);
        self.out.diagnostics.push(diagnostic);
    }

    fn add(&mut self, token: Token, start: usize, end: usize) {
        let source = &self.text[start..end];
        let span = self.span(start, end);
        match token {
            Token::HashComment => self.hash(start, end),
            Token::Ident if source.starts_with('_') => {
                let message = format!("the name `{source}` does not start with a letter");
                let diagnostic = Diagnostic::error("E2009", message, span, "a name starts with a letter");
                self.fault(span, diagnostic.with_help("choose another name; only letters, digits and `_` follow"));
                self.push(Token::Ident, start, end);
            }
            Token::BadNumber => {
                self.fault(span, malformed_number(source, span));
                self.push(Token::Int, start, end);
            }
            Token::OpenText => {
                let diagnostic = Diagnostic::error("E2002", "this text has no end", span, "its line ends first");
                self.fault(span, diagnostic.with_help("close it with `\"`"));
                self.out.swallowing.push(span);
                self.push(Token::Text, start, end);
            }
            Token::OpenComment => {
                let at = self.span(start, start + 2);
                let label = "the rest of the file is part of it";
                let diagnostic = Diagnostic::error("E2003", "this comment has no end", at, label);
                self.fault(span, diagnostic.with_help("close it with `*/`"));
                self.out.swallowing.push(span);
            }
            _ => self.push(token, start, end),
        }
    }

    /// `#include path`, after which the line may go on, or a comment of old.
    fn hash(&mut self, start: usize, end: usize) {
        let source = self.text[start..end].trim_end();
        let Some(rest) = source.strip_prefix("#include") else {
            self.old_comment(start, start + source.len());
            return;
        };
        let path = rest.trim_start_matches([' ', '\t', '\x0c']);
        let at = start + source.len() - path.len();
        if path.is_empty() || path.len() == rest.len() {
            let span = self.span(start, start + source.len());
            if path.is_empty() {
                let diagnostic = Diagnostic::error("E2019", "`#include` names no file", span, "a path is missing");
                self.fault(span, diagnostic.with_help("write `#include name.stan`, or `#include \"my file.stan\"`"));
            } else {
                self.old_comment(start, start + source.len());
            }
            return;
        }
        let quoted = |close: char| path[1..].find(close).map(|i| i + 2);
        let length = match path.as_bytes()[0] {
            b'"' => quoted('"'),
            b'<' => quoted('>'),
            _ => None,
        };
        let length = length.unwrap_or_else(|| path.find(char::is_whitespace).unwrap_or(path.len()));
        self.push(Token::Include, start, at + length);
        self.run(at + length, end);
    }

    fn old_comment(&mut self, start: usize, end: usize) {
        let span = self.span(start, end);
        let label = "Stan has had no such comments since 2.33";
        let diagnostic = Diagnostic::warning("W2003", "a comment starts with `//`, not with `#`", span, label);
        self.out.diagnostics.push(diagnostic.with_help("write `//`; `autobatch fmt --canonicalize` does"));
        self.push(Token::HashComment, start, end);
    }

    fn report_unknown(&mut self, run: Option<(usize, usize)>) {
        let Some((start, end)) = run else { return };
        let source = &self.text[start..end];
        let shown: String = source.chars().take(12).flat_map(char::escape_debug).collect();
        let span = self.span(start, end);
        let diagnostic =
            Diagnostic::error("E2001", format!("`{shown}` means nothing in Stan"), span, "unexpected here");
        let help = source.chars().next().and_then(meant_instead);
        self.fault(
            span,
            match help {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic,
            },
        );
    }
}

fn malformed_number(source: &str, span: Span) -> Diagnostic {
    let label = "digits and letters together";
    let diagnostic = Diagnostic::error("E2004", format!("`{source}` is not a number"), span, label);
    if source.starts_with("0x") || source.starts_with("0b") || source.starts_with("0o") {
        diagnostic.with_help("integers are written in base ten")
    } else if source.ends_with(['e', 'E']) {
        diagnostic.with_help("an exponent needs digits: `1e-3`")
    } else if source.contains('_') && source.bytes().all(|b| b == b'_' || b.is_ascii_digit()) {
        diagnostic.with_help("one `_` stands between two digits: `1_000_000`")
    } else {
        diagnostic
            .with_help("a number is written `12`, `1_000`, `1.5`, `1e-3` or, imaginary, `2i`; a product needs `*`")
    }
}

/// What a character from another language, or from a word processor, stands for in Stan.
fn meant_instead(c: char) -> Option<&'static str> {
    Some(match c {
        '@' => "a matrix product is `*`",
        '$' => "a part of a tuple is `t.1`; names hold letters, digits and `_`",
        '`' | '‘' | '’' | '“' | '”' | '„' | '«' | '»' => {
            "a text stands between `\"` and `\"`, a transpose is `'`"
        }
        '.' => "an elementwise operator is `.*`, `./` or `.^`; a part of a tuple is `t.1`",
        '¬' => "not is `!`",
        '−' | '–' | '—' => "minus is `-`",
        '×' | '·' | '⋅' => "times is `*`, elementwise `.*`",
        '÷' => "divided by is `/`",
        '≤' => "at most is `<=`",
        '≥' => "at least is `>=`",
        '≠' => "not equal is `!=`",
        '∼' => "the distribution of a value is written `y ~ normal(0, 1);`",
        '\u{a0}' => "this is a no-break space: replace it by a space",
        c if c.is_alphabetic() => "names are made of the letters a to z, digits and `_`",
        _ => return None,
    })
}
