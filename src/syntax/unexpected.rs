//! What to say about a token that the grammar did not expect: the usual slips by name, the rest by what could have stood there.

use crate::base::{Diagnostic, FileId, Span};
use crate::syntax::layout::{is_closer, is_opener};
use crate::syntax::lexer::Lexeme;
use crate::syntax::span;
use crate::syntax::token::Token;

/// Where a parse could not go on.
pub(crate) struct Site<'a> {
    pub(crate) file: FileId,
    pub(crate) text: &'a str,
    /// The tokens of the item or hole.
    pub(crate) lexemes: &'a [Lexeme],
    /// The index of the token that does not fit; their number when something is missing at the end.
    pub(crate) at: usize,
    /// The end of what was parsed, for a slip at the end of a hole.
    pub(crate) end: usize,
    /// What could have stood there, in the names of the grammar, with their quotes.
    pub(crate) expected: &'a [String],
}

/// How many alternatives a message names.
const MAX_ALTERNATIVES: usize = 6;

/// How the names of densities end, here and in Stan.
const DENSITIES: &[&str] = &["_lpdf", "_lpmf", "_lcdf", "_lccdf", "_lupdf", "_lupmf"];

/// A token as a message names it.
pub(crate) fn described(text: &str, lexeme: Lexeme) -> String {
    match lexeme.token {
        Token::Ident | Token::Int | Token::Real => format!("`{}`", &text[lexeme.start..lexeme.end]),
        Token::Text => "a text".to_owned(),
        token => token.to_string(),
    }
}

/// The diagnostic for a slip.
pub(crate) fn unexpected(site: &Site<'_>) -> Diagnostic {
    site.other_language()
        .or_else(|| site.wrong_place())
        .or_else(|| site.missing_part())
        .unwrap_or_else(|| site.general())
}

fn is_comparison(token: Token) -> bool {
    matches!(token, Token::Eq | Token::Ne | Token::Lt | Token::Le | Token::Gt | Token::Ge)
}

impl Site<'_> {
    fn found(&self) -> Option<Lexeme> {
        self.lexemes.get(self.at).copied()
    }

    fn token(&self) -> Option<Token> {
        self.found().map(|l| l.token)
    }

    fn before(&self) -> Option<Lexeme> {
        self.at.checked_sub(1).and_then(|i| self.lexemes.get(i)).copied()
    }

    fn source(&self, lexeme: Lexeme) -> &str {
        &self.text[lexeme.start..lexeme.end]
    }

    fn span(&self, lexeme: Lexeme) -> Span {
        span(self.file, lexeme.start, lexeme.end)
    }

    /// The span of the token that does not fit, or of the last one before the end.
    fn here(&self) -> Span {
        match (self.found(), self.before()) {
            (Some(found), Some(before)) if found.start == found.end => self.span(before),
            (Some(found), _) => self.span(found),
            (None, Some(before)) => self.span(before),
            (None, None) => span(self.file, self.end, self.end),
        }
    }

    fn expects(&self, name: &str) -> bool {
        self.expected.iter().any(|e| e.strip_prefix('"').and_then(|e| e.strip_suffix('"')) == Some(name))
    }

    /// Whether an expression could start here.
    fn expects_expression(&self) -> bool {
        self.expects("integer") && self.expects("true")
    }

    /// Whether an expression ends before this.
    fn after_expression(&self) -> bool {
        self.expects("^") || self.expects("*") || self.expects("&&")
    }

    /// The tokens before the slip in its own statement and brackets, the nearest first.
    fn back(&self) -> impl Iterator<Item = Token> + '_ {
        let mut closed = 0usize;
        self.lexemes[..self.at.min(self.lexemes.len())].iter().rev().map(|l| l.token).take_while(move |&token| {
            if is_closer(token) {
                closed += 1;
            } else if is_opener(token) {
                if closed == 0 {
                    return false;
                }
                closed -= 1;
            }
            closed > 0 || !matches!(token, Token::Semi | Token::StmtEnd | Token::BadStmt)
        })
    }

    fn back_has(&self, token: Token) -> bool {
        self.back().any(|t| t == token)
    }

    /// The keyword whose head or body this is.
    fn head(&self) -> Option<Token> {
        self.back().find(|t| {
            matches!(
                t,
                Token::If
                    | Token::Else
                    | Token::While
                    | Token::For
                    | Token::Fn
                    | Token::Struct
                    | Token::Derivative
                    | Token::Model
                    | Token::Generated
            )
        })
    }

    fn in_body(&self) -> bool {
        self.lexemes[..self.at.min(self.lexemes.len())].iter().any(|l| l.token == Token::LBrace)
    }

    /// Spellings of other languages.
    fn other_language(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let other = |message: String, help: &str| {
            Some(Diagnostic::error("E0012", message, self.span(found), "of another language").with_help(help))
        };
        match found.token {
            Token::Ampersand => other("`&` is not an operator".into(), "and is `&&`; there are no references"),
            Token::Bar if self.after_expression() => {
                let of_stan = self.called().is_some_and(|f| DENSITIES.iter().any(|ending| f.ends_with(ending)));
                let commas = "arguments are separated by commas: `normal_lpdf(y, mu, sigma)`";
                other("`|` is not an operator".into(), if of_stan { commas } else { "or is `||`" })
            }
            Token::StarStar => other("`**` is not an operator".into(), "a power is `x ^ 2`"),
            Token::FatArrow => other("`=>` is not an operator".into(), "a function without a name is `|x| x + 1`"),
            Token::PlusPlus => Some(self.increment("++", self.span(found))),
            Token::Ident if self.after_expression() => match self.source(found) {
                "and" => other("`and` is not an operator".into(), "and is `&&`"),
                "or" => other("`or` is not an operator".into(), "or is `||`"),
                "mod" => other("`mod` is not an operator".into(), "the remainder is `%`"),
                _ => self.word_before(),
            },
            Token::Semi | Token::RParen | Token::RBrace if self.expects_expression() => self.decrement(),
            _ if self.after_expression() => self.word_before(),
            _ => None,
        }
    }

    /// The function whose arguments these are.
    fn called(&self) -> Option<&str> {
        let mut closed = 0;
        let before = &self.lexemes[..self.at.min(self.lexemes.len())];
        let open = before.iter().rposition(|l| {
            if is_closer(l.token) {
                closed += 1;
            } else if is_opener(l.token) && closed > 0 {
                closed -= 1;
            } else {
                return is_opener(l.token);
            }
            false
        })?;
        let name = before.get(open.checked_sub(1)?).filter(|l| l.token == Token::Ident)?;
        (before[open].token == Token::LParen).then(|| self.source(*name))
    }

    /// `not x`, `elif c`, `var x`: the word parsed as a name.
    fn word_before(&self) -> Option<Diagnostic> {
        let word = self.before().filter(|l| l.token == Token::Ident)?;
        let source = self.source(word);
        let help = match source {
            "not" => "not is `!`",
            "elif" | "elsif" | "elseif" => "write `else if`",
            "var" | "val" | "auto" => "a variable is `let x = …;`, or `let mut x = …;` if it changes",
            "def" | "function" | "func" => "a function is `fn name(x: real) -> real { … }`",
            "switch" | "match" => "write `if … { } else if … { } else { }`",
            "loop" | "do" | "until" => "loops are `while c { … }` and `for i in a..b { … }`",
            _ => return None,
        };
        let message = format!("`{source}` has no meaning here");
        Some(Diagnostic::error("E0012", message, self.span(word), "of another language").with_help(help))
    }

    fn increment(&self, operator: &str, at: Span) -> Diagnostic {
        let sign = &operator[..1];
        Diagnostic::error("E0013", format!("there is no `{operator}`"), at, "not an operator")
            .with_help(format!("write `x {sign}= 1`"))
    }

    /// `x--;`
    fn decrement(&self) -> Option<Diagnostic> {
        let second = self.before().filter(|l| l.token == Token::Minus)?;
        let first = *self.lexemes.get(self.at.checked_sub(2)?)?;
        (first.token == Token::Minus && first.end == second.start)
            .then(|| self.increment("--", span(self.file, first.start, second.end)))
    }

    /// Tokens that have a meaning, but not here.
    fn wrong_place(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let at = self.span(found);
        match found.token {
            Token::Fn | Token::Struct | Token::Use | Token::Pub | Token::Const | Token::Derivative | Token::Model
                if self.in_body() =>
            {
                let message = format!("{} cannot stand in a function", found.token);
                let diagnostic = Diagnostic::error("E0024", message, at, "inside the body of a function");
                Some(diagnostic.with_help("move it out of the function; a function without a name is `|x| x + 1`"))
            }
            Token::Assign if matches!(self.head(), Some(Token::If | Token::While)) && !self.expects("=") => {
                let diagnostic = Diagnostic::error("E0011", "`=` in a condition", at, "this assigns");
                Some(diagnostic.with_help("to compare, write `==`"))
            }
            token if is_comparison(token) && self.expects("&&") && !self.expects("<") => {
                let diagnostic =
                    Diagnostic::error("E0017", "comparisons cannot be chained", at, "the second comparison");
                Some(diagnostic.with_help("write `a < b && b < c`"))
            }
            Token::Text => {
                let diagnostic = Diagnostic::error("E0030", "a text is not a value", at, "not expected here");
                Some(diagnostic.with_help("texts stand in `print(\"…\")`, `assert(c, \"…\")` and `use \"…\"` only"))
            }
            token if self.expects("name") && !self.expects_expression() && is_word(token) => {
                let source = self.source(found);
                let diagnostic =
                    Diagnostic::error("E0029", format!("`{source}` is a reserved word"), at, "a name is expected");
                Some(diagnostic.with_help(format!("choose another name, such as `{source}_`")))
            }
            _ => None,
        }
    }

    /// Parts that were left out.
    fn missing_part(&self) -> Option<Diagnostic> {
        let token = self.token();
        if self.expects("=") && !self.after_expression() && self.back_has(Token::Let) && token == Some(Token::Semi) {
            let diagnostic = Diagnostic::error("E0014", "`let` without a value", self.here(), "`= value` is missing");
            return Some(diagnostic.with_help("every variable starts with a value: `let x = 0;`"));
        }
        if self.expects("..") && self.back_has(Token::For) && token != Some(Token::Comma) {
            let diagnostic =
                Diagnostic::error("E0018", "`for` needs a range", self.here(), "expected `..` before this");
            return Some(diagnostic.with_help("count over the positions: `for i in 0..n`, then use `xs[i]`"));
        }
        if self.expects("{") && !self.expects_expression() {
            return self.missing_body();
        }
        if self.expects(":")
            && !self.expects("::")
            && matches!(token, Some(Token::Comma | Token::RParen | Token::RBrace))
        {
            let name = self.before().filter(|l| l.token == Token::Ident)?;
            let message = format!("`{}` has no type", self.source(name));
            let diagnostic = Diagnostic::error("E0016", message, self.span(name), "a type is missing");
            return Some(diagnostic.with_help(format!("write for example `{}: real`", self.source(name))));
        }
        None
    }

    fn missing_body(&self) -> Option<Diagnostic> {
        let head = self.head()?;
        let (message, help) = match head {
            Token::Fn => ("a function needs a body in braces", "write `fn f(x: real) -> real { x }`"),
            Token::Derivative => (
                "a rule of a derivative needs a body in braces",
                "write `forward(x, dx) { … }` or `reverse(x, dy) { … }`",
            ),
            Token::Model => (
                "a model needs its log density in braces",
                "write `model name(mu: real, shared y: real) { normal_lpdf(y, mu, 1.0) }`",
            ),
            Token::Generated => ("the quantities of a draw stand in braces", "write `generated { let x = …; }`"),
            Token::Struct => ("a struct needs its fields in braces", "write `struct Name { field: real }`"),
            Token::Else => ("the body of `else` stands in braces", "write `else { … }`"),
            Token::If => ("the body of `if` stands in braces", "write `if c { a } else { b }`"),
            Token::While => ("the body of `while` stands in braces", "write `while c { … }`"),
            _ => ("the body of `for` stands in braces", "write `for i in a..b { … }`"),
        };
        Some(Diagnostic::error("E0015", message, self.here(), self.expectation()).with_help(help))
    }

    fn general(&self) -> Diagnostic {
        let found = match self.found() {
            Some(found) if found.start == found.end => "the end of the statement".to_owned(),
            Some(found) => described(self.text, found),
            None => "the end".to_owned(),
        };
        let diagnostic =
            Diagnostic::error("E0007", format!("{found} does not fit here"), self.here(), self.expectation());
        match self.help() {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        }
    }

    fn help(&self) -> Option<&'static str> {
        let after_end = self.before().is_some_and(|l| l.token == Token::StmtEnd);
        Some(match self.token()? {
            Token::Else => "`else` follows the closing brace of its `if`",
            Token::LBracket if self.before().is_some_and(|l| l.token == Token::RAngle) => {
                "the extents stand before the constraints: `real[n]<lower = 0>`"
            }
            Token::Semi if after_end => "remove it",
            Token::Semi if self.expects_expression() => "something is missing before it",
            Token::Assign if self.after_expression() => {
                "a struct field is written `name: value`; to compare, write `==`"
            }
            Token::Colon => "a type is written after the name in `let x: real`, in parameters and in fields",
            Token::Lt | Token::PathSep => "dimensions stand in square brackets: `fn f[n](x: real[n])`",
            token
                if after_end
                    && (is_comparison(token)
                        || matches!(token, Token::Plus | Token::Star | Token::Dot | Token::And)) =>
            {
                "a statement ended at the brace: put parentheses around the `if` to go on with its value"
            }
            _ => return None,
        })
    }

    /// "expected …" in plain words.
    fn expectation(&self) -> String {
        let mut words = self.alternatives();
        if words.is_empty() {
            return "not expected here".to_owned();
        }
        if words.len() > MAX_ALTERNATIVES {
            words.truncate(MAX_ALTERNATIVES - 1);
            words.push("more".to_owned());
        }
        let last = words.pop().expect("there is at least one alternative");
        if words.is_empty() { format!("expected {last}") } else { format!("expected {} or {last}", words.join(", ")) }
    }

    fn alternatives(&self) -> Vec<String> {
        let mut rest: Vec<&str> = self
            .expected
            .iter()
            .filter_map(|e| e.strip_prefix('"').and_then(|e| e.strip_suffix('"')))
            .filter(|e| !matches!(*e, "end" | "bad statement" | "bad expression" | "start item" | "start expression"))
            .collect();
        let mut words = Vec::new();
        for (signs, group, word) in GROUPS {
            if signs.iter().all(|s| rest.contains(s)) {
                rest.retain(|e| !group.contains(e));
                words.push((*word).to_owned());
            }
        }
        let mut singles: Vec<String> = rest.iter().map(|e| in_words(e)).collect();
        // Short and certain alternatives first: "`;` or an operator".
        singles.extend(words);
        singles
    }
}

/// Sets of tokens with a common name: the signs that tell the set, all its tokens, the name.
const GROUPS: &[(&[&str], &[&str], &str)] = &[
    (&["let", "while", "return"], &["let", "while", "for", "return", "break", "continue", "emit"], "a statement"),
    (
        &["integer", "true", "name"],
        &["integer", "real", "true", "false", "name", "(", "[", "{", "if", "-", "!", "|", "||", "print", "assert"],
        "an expression",
    ),
    (&["fn", "struct", "const"], &["fn", "struct", "const", "use", "pub", "derivative", "model", "@"], "an item"),
    (&["name", "fn", "("], &["name", "fn", "("], "a type"),
    (&["name", "_", "("], &["name", "_", "(", "mut"], "a pattern"),
    (&["=", "+=", "*="], &["=", "+=", "-=", "*=", "/=", "%=", "^="], "an assignment"),
    (
        &["+", "*"],
        &["+", "-", "*", "/", "%", "@", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "(", "[", ".", "::", "T{"],
        "an operator",
    ),
    (&["&&", "||"], &["&&", "||"], "`&&`, `||`"),
];

fn in_words(name: &str) -> String {
    match name {
        "name" => "a name".to_owned(),
        "integer" => "an integer".to_owned(),
        "real" => "a real number".to_owned(),
        "text" => "a text".to_owned(),
        "T{" => "`{`".to_owned(),
        "<constraint" => "`<`".to_owned(),
        "constraint>" => "`>`".to_owned(),
        other => format!("`{other}`"),
    }
}

fn is_word(token: Token) -> bool {
    matches!(
        token,
        Token::Fn
            | Token::Struct
            | Token::Const
            | Token::Use
            | Token::As
            | Token::Pub
            | Token::Let
            | Token::Mut
            | Token::Shared
            | Token::If
            | Token::Else
            | Token::While
            | Token::For
            | Token::In
            | Token::Break
            | Token::Continue
            | Token::Return
            | Token::Emit
            | Token::Print
            | Token::Assert
            | Token::True
            | Token::False
    )
}
