//! What to say about a token that the grammar did not expect: the usual slips by name, the rest by what could have
//! stood there.

use crate::base::{Diagnostic, SourceMap, Span};
use crate::stan::syntax::layout::{is_closer, is_opener};
use crate::stan::syntax::lexer::Lexeme;
use crate::stan::syntax::source;
use crate::stan::syntax::token::Token;

/// Where a parse could not go on.
pub(crate) struct Site<'a> {
    pub(crate) sources: &'a SourceMap,
    /// The tokens of the block.
    pub(crate) lexemes: &'a [Lexeme],
    /// The index of the token that does not fit; their number when something is missing at the end.
    pub(crate) at: usize,
    /// What could have stood there, in the names of the grammar, with their quotes.
    pub(crate) expected: &'a [String],
}

/// How many alternatives a message names.
const MAX_ALTERNATIVES: usize = 6;

/// A token as a message names it.
pub(crate) fn described(sources: &SourceMap, lexeme: Lexeme) -> String {
    match lexeme.token {
        Token::Ident | Token::Int | Token::Real | Token::Dot | Token::Imaginary => {
            format!("`{}`", source(sources, lexeme.span))
        }
        Token::Text => "a text".to_owned(),
        token => token.to_string(),
    }
}

/// The diagnostic for a slip.
pub(crate) fn unexpected(site: &Site<'_>) -> Diagnostic {
    site.other_language()
        .or_else(|| site.declaration())
        .or_else(|| site.wrong_place())
        .or_else(|| site.missing_part())
        .unwrap_or_else(|| site.general())
}

pub(crate) fn missing_semicolon(previous: Lexeme) -> Diagnostic {
    Diagnostic::error("E2006", "a `;` is missing", previous.span, "a `;` belongs after this")
        .with_help("every declaration and every statement ends with `;`, except those that end with `}`")
}

impl Site<'_> {
    fn found(&self) -> Option<Lexeme> {
        self.lexemes.get(self.at).copied()
    }

    fn before(&self) -> Option<Lexeme> {
        self.at.checked_sub(1).and_then(|i| self.lexemes.get(i)).copied()
    }

    fn source(&self, lexeme: Lexeme) -> &str {
        source(self.sources, lexeme.span)
    }

    fn described(&self, lexeme: Lexeme) -> String {
        described(self.sources, lexeme)
    }

    /// The span of the token that does not fit, or of the last one before the end.
    fn here(&self) -> Span {
        match (self.found(), self.before()) {
            (Some(found), Some(before)) if found.span.start == found.span.end => before.span,
            (Some(found), _) => found.span,
            (None, _) => self.lexemes.last().expect("there is a brace at least").span,
        }
    }

    fn expects(&self, name: &str) -> bool {
        self.expected.iter().any(|e| e.strip_prefix('"').and_then(|e| e.strip_suffix('"')) == Some(name))
    }

    /// Whether an expression could start here.
    fn expects_expression(&self) -> bool {
        self.expects("integer") && self.expects("name")
    }

    /// Whether an expression ends before this.
    fn after_expression(&self) -> bool {
        self.expects("^") || self.expects("*")
    }

    /// Whether what stands before this may be the end of an expression. The grammar may have gone on to where it expects
    /// less than what could have followed.
    fn after_value(&self) -> bool {
        let ends = |l: Lexeme| {
            matches!(l.token, Token::Ident | Token::Int | Token::Real | Token::Dot | Token::RParen | Token::RBracket)
        };
        self.after_expression() || (!self.expects_expression() && !self.expects("(") && self.before().is_some_and(ends))
    }

    /// Whether a statement could start here.
    fn expects_statement(&self) -> bool {
        self.expects("while") && self.expects("break")
    }

    /// The tokens before the slip in its own statement and brackets, the nearest first.
    fn back(&self) -> impl Iterator<Item = Lexeme> + '_ {
        let mut closed = 0usize;
        self.lexemes[..self.at.min(self.lexemes.len())].iter().rev().copied().take_while(move |lexeme| {
            if is_closer(lexeme.token) {
                closed += 1;
            } else if is_opener(lexeme.token) {
                if closed == 0 {
                    return false;
                }
                closed -= 1;
            }
            closed > 0 || !matches!(lexeme.token, Token::Semi | Token::BadStmt)
        })
    }

    /// The index of the innermost bracket that is open here.
    fn enclosing(&self) -> Option<usize> {
        let mut closed = 0;
        self.lexemes[..self.at.min(self.lexemes.len())].iter().rposition(|l| {
            if is_closer(l.token) {
                closed += 1;
            } else if is_opener(l.token) && closed > 0 {
                closed -= 1;
            } else {
                return is_opener(l.token);
            }
            false
        })
    }

    /// The word before the innermost bracket, when that is a parenthesis: `if`, `for`, a function.
    fn head(&self) -> Option<Lexeme> {
        let open = self.enclosing().filter(|o| self.lexemes[*o].token == Token::LParen)?;
        open.checked_sub(1).map(|i| self.lexemes[i])
    }

    /// Whether a semicolon in front of the token would have helped.
    pub(crate) fn misses_semicolon(&self) -> bool {
        let (Some(found), Some(previous)) = (self.found(), self.before()) else { return false };
        if !self.expects(";") || self.expects("{") {
            return false;
        }
        let token = found.token;
        let statement = token.is_type()
            || matches!(
                token,
                Token::While
                    | Token::For
                    | Token::Return
                    | Token::Break
                    | Token::Continue
                    | Token::If
                    | Token::Print
                    | Token::Reject
                    | Token::FatalError
                    | Token::Profile
                    | Token::Jacobian
                    | Token::RBrace
            );
        if statement && !matches!(previous.token, Token::Comma) {
            return true;
        }
        let between = Span { start: previous.span.end, end: found.span.start.max(previous.span.end), ..found.span };
        let new_line = found.span.file != previous.span.file || source(self.sources, between).contains('\n');
        new_line && matches!(token, Token::Ident | Token::Target | Token::LBrace)
    }

    /// Spellings of other languages.
    fn other_language(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let other = |lexeme: Lexeme, help: &str| {
            let message = format!("`{}` has no meaning here", self.source(lexeme));
            Some(Diagnostic::error("E2023", message, lexeme.span, "of another language").with_help(help))
        };
        match found.token {
            Token::Ampersand => other(found, "and is `&&`"),
            Token::Bar if self.after_value() => other(found, "or is `||`"),
            Token::StarStar => other(found, "a power is `x ^ 2`"),
            Token::PlusPlus => other(found, "write `x += 1`"),
            Token::CaretAssign | Token::PercentAssign => other(found, "write `x = x ^ e` or `x = x % e`"),
            Token::Colon if self.before().is_some_and(|b| b.token == Token::Colon) => {
                other(found, "a range is written `1:n`")
            }
            Token::Ident if self.after_expression() => match self.source(found) {
                "and" => other(found, "and is `&&`"),
                "or" => other(found, "or is `||`"),
                "mod" => other(found, "the remainder is `%`"),
                _ => self.word_before(),
            },
            _ if self.after_expression() => self.word_before(),
            _ => None,
        }
    }

    /// `not x`, `elif c`, `let x`: the word parsed as a name.
    fn word_before(&self) -> Option<Diagnostic> {
        let word = self.before().filter(|l| l.token == Token::Ident)?;
        let text = self.source(word);
        let help = match text {
            "not" => "not is `!`",
            "elif" | "elsif" | "elseif" => "write `else if`",
            "let" | "var" | "val" | "auto" | "const" => "a variable is declared by its type: `real x = 1;`",
            "double" | "float" | "number" => "the type of real numbers is `real`",
            "bool" | "boolean" | "integer" | "long" => "the type of whole numbers, and of what is true, is `int`",
            "then" => "`if (c)` is followed by a statement, without `then`",
            "def" | "function" | "func" | "fn" => "a function is `real f(real x) { … }` in the block `functions`",
            "do" | "until" | "repeat" => "loops are `while (c) { … }` and `for (i in 1:n) { … }`",
            "transformed" => "the name of the block is `transformed data` or `transformed parameters`, in one line",
            "generated" => "the name of the block is `generated quantities`, in one line",
            _ => return None,
        };
        let message = format!("`{text}` has no meaning here");
        Some(Diagnostic::error("E2023", message, word.span, "not a word of Stan").with_help(help))
    }

    /// Slips of types and declarations.
    fn declaration(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let previous = self.before()?;
        let at = self.here();
        // `real x, int y;`
        if found.token.is_type() && previous.token == Token::Comma && self.expects("name") && !self.expects("int") {
            let declared = self.back().any(|l| l.token.is_type());
            if declared && !self.expects_expression() {
                let message = format!("{} stands where the next name is expected", found.token);
                let diagnostic = Diagnostic::error("E2021", message, at, "a name is expected");
                return Some(
                    diagnostic
                        .with_help("all variables of one declaration have its type: end it by `;` and start another"),
                );
            }
        }
        // `real data;`
        if let Some(word) = found.token.reserved()
            && self.expects("name")
            && (!self.expects_statement() || matches!(found.token, Token::In | Token::Lower | Token::Upper))
            && !(found.token.is_type() && self.expects_expression())
            && !(self.expects("int") && found.token.is_constrained_type())
            && !(self.expects_expression() && is_control(found.token))
        {
            if found.token.is_type() && self.head().is_some_and(|h| h.token == Token::For) {
                let diagnostic = Diagnostic::error("E2021", "the variable of a loop has no type", at, "leave it out");
                return Some(diagnostic.with_help("write `for (i in 1:n)`: the type follows from what is walked"));
            }
            let message = format!("`{word}` is a reserved word");
            let label = if self.expects_expression() { "an expression is expected" } else { "a name is expected" };
            let diagnostic = Diagnostic::error("E2009", message, at, label);
            return Some(diagnostic.with_help(format!("choose another name, such as `{word}_`")));
        }
        if previous.token.is_type()
            && let Some(diagnostic) = self.after_type(previous, found)
        {
            return Some(diagnostic);
        }
        // `real f(vector[3] x)`
        if previous.token == Token::LBracket && self.expects("]") && !self.expects(":") && !self.expects_expression() {
            let message = "the types of parameters and results have no sizes";
            let diagnostic = Diagnostic::error("E2021", message, at, "leave it out");
            return Some(diagnostic.with_help("write `vector x`, `array[] real x`, `array[,] int n`"));
        }
        if found.token.is_constrained_type() && self.expects("int") && self.expects("vector") {
            let message = format!("{} is a type of declarations only", found.token);
            let diagnostic = Diagnostic::error("E2017", message, at, "parameters and results have no constraints");
            return Some(diagnostic.with_help("write `vector` or `matrix`"));
        }
        if found.token == Token::Void && (self.expects_statement() || self.expects("data")) {
            let diagnostic = Diagnostic::error("E2022", "`void` stands before functions only", at, "not here");
            return Some(diagnostic.with_help("functions are defined in the block `functions { … }`"));
        }
        // `real f(real x) {` in a block of statements
        if found.token == Token::LParen && self.expects(";") && self.expects("=") && !self.after_expression() {
            let name = self.source(previous);
            let message = format!("`{name}` looks like a function, and stands outside of the block `functions`");
            let diagnostic = Diagnostic::error("E2022", message, previous.span, "declared here as a variable");
            return Some(diagnostic.with_help("functions are defined in `functions { … }`, the first block"));
        }
        None
    }

    /// What follows the name of a type.
    fn after_type(&self, ty: Lexeme, found: Lexeme) -> Option<Diagnostic> {
        let at = self.here();
        if found.token == Token::Lt && self.expects("name") {
            let diagnostic = Diagnostic::error("E2017", "a type of a function has no constraint", at, "leave it out");
            return Some(diagnostic.with_help(format!("write {} alone", ty.token)));
        }
        if found.token == Token::Lt && self.expects("[") {
            let message = format!("{} takes no `<`", ty.token);
            let diagnostic = Diagnostic::error("E2017", message, at, "its constraint is in its name");
            return Some(diagnostic.with_help("a size follows: `[n]`"));
        }
        if self.expects("[") && !self.expects("name") {
            let sizes = match ty.token {
                Token::Matrix
                | Token::ComplexMatrix
                | Token::SumToZeroMatrix
                | Token::RowStochastic
                | Token::ColumnStochastic => "matrix[m, n]",
                Token::Array => "array[n] real",
                _ => "vector[n]",
            };
            let message = format!("{} has no size", ty.token);
            let diagnostic = Diagnostic::error("E2021", message, ty.span, "`[` with a size belongs after this");
            return Some(diagnostic.with_help(format!("write for example `{sizes} x;`")));
        }
        if found.token == Token::LBracket && self.expects("name") {
            let word = ty.token.reserved().unwrap_or_default();
            let message = format!("`{word}` has no size");
            let diagnostic = Diagnostic::error("E2021", message, at, "a name is expected");
            return Some(diagnostic.with_help(format!("an array is `array[n] {word} x;`")));
        }
        None
    }

    /// Tokens that have a meaning, but not here.
    fn wrong_place(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let previous = self.before()?;
        let at = self.here();
        match found.token {
            Token::Assign if previous.token == Token::Target => {
                let diagnostic = Diagnostic::error("E2014", "`target` cannot be assigned to", at, "`+=` is expected");
                Some(diagnostic.with_help("to add to the log density write `target += …;`"))
            }
            Token::Assign if self.head().is_some_and(|h| matches!(h.token, Token::If | Token::While)) => {
                let diagnostic = Diagnostic::error("E2014", "`=` in a condition", at, "this assigns");
                Some(diagnostic.with_help("to compare, write `==`"))
            }
            Token::Assign | Token::PlusAssign if self.after_expression() => {
                let diagnostic =
                    Diagnostic::error("E2014", "an assignment is no value", at, "nothing is assigned here");
                Some(diagnostic.with_help("assign in a statement of its own; to compare, write `==`"))
            }
            Token::Tilde if self.after_value() => {
                let diagnostic = Diagnostic::error("E2005", "`~` stands in an expression", at, "not expected here");
                Some(diagnostic.with_help("write `y ~ normal(0, 1);` as a statement of its own"))
            }
            Token::Text => {
                let diagnostic = Diagnostic::error("E2018", "a text is not a value", at, "not expected here");
                Some(diagnostic.with_help(
                    "texts stand in `print(\"…\")`, `reject(\"…\")`, `fatal_error(\"…\")` and `profile(\"…\")` only",
                ))
            }
            Token::Question | Token::Lt | Token::Le | Token::Ge | Token::Eq | Token::Ne | Token::And | Token::Or
                if self.expects(">") && self.expects("+") && !self.expects("&&") =>
            {
                let message = format!("{} in a constraint needs parentheses", found.token);
                let diagnostic = Diagnostic::error("E2005", message, at, "its `>` would end the constraint");
                Some(diagnostic.with_help("write `<lower = (a < b ? a : b)>`"))
            }
            Token::Else => {
                let diagnostic = Diagnostic::error("E2005", "`else` has no `if`", at, "not expected here");
                Some(diagnostic.with_help("one statement stands between `if (c)` and `else`: put several in braces"))
            }
            token if token.is_block() && !self.expects("name") => {
                let diagnostic = Diagnostic::error("E2012", format!("{token} stands in a block"), at, "not here");
                Some(diagnostic.with_help("close the block before by `}`; the name of a block is followed by `{`"))
            }
            _ => None,
        }
    }

    /// Parts that were left out.
    fn missing_part(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let previous = self.before()?;
        let at = self.here();
        if self.expects("(") && !self.expects("name") && !self.after_expression() {
            let help = match previous.token {
                Token::If => Some(("if", "write `if (c) { … } else { … }`")),
                Token::While => Some(("while", "write `while (c) { … }`")),
                Token::For => Some(("for", "write `for (i in 1:n) { … }`")),
                _ => None,
            };
            if let Some((word, help)) = help {
                let message = format!("what follows `{word}` stands in parentheses");
                return Some(Diagnostic::error("E2005", message, at, "expected `(`").with_help(help));
            }
        }
        if self.expects("in") && self.head().is_some_and(|h| h.token == Token::For) {
            let diagnostic = Diagnostic::error("E2005", "`for` needs a range", at, "expected `in`");
            return Some(diagnostic.with_help("write `for (i in 1:n)` or `for (x in xs)`"));
        }
        if found.token == Token::Ident && self.expects("void") {
            let message = format!("`{}` has no type", self.source(found));
            let diagnostic = Diagnostic::error("E2005", message, at, "expected a type");
            return Some(diagnostic.with_help("a function is `real f(real x) { … }`, or `void f(real x) { … }`"));
        }
        if self.expects_expression() && !self.expects_statement() {
            let closes = is_closer(found.token) || found.token == Token::Semi;
            if closes && previous.token == Token::Comma {
                let diagnostic =
                    Diagnostic::error("E2005", "something is missing after the comma", at, "expected an expression");
                return Some(diagnostic.with_help("remove the comma, or write what follows it"));
            }
            if found.token == Token::RBrace && previous.token == Token::LBrace {
                let diagnostic =
                    Diagnostic::error("E2005", "an array needs at least one element", at, "expected an expression");
                return Some(diagnostic.with_help("declare an array without elements: `array[0] real x;`"));
            }
        }
        if self.expects("{") && previous.token == Token::RParen && !self.expects_statement() && !self.after_expression()
        {
            let diagnostic = Diagnostic::error("E2005", "a body in braces is missing", at, "expected `{`");
            return Some(diagnostic.with_help("write `real f(real x) { … }` or `profile(\"name\") { … }`"));
        }
        None
    }

    fn general(&self) -> Diagnostic {
        let found = match self.found() {
            Some(found) if found.span.start == found.span.end => "the end".to_owned(),
            Some(found) => self.described(found),
            None => "the end".to_owned(),
        };
        Diagnostic::error("E2005", format!("{found} does not fit here"), self.here(), self.expectation())
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
            .filter(|e| !matches!(*e, "bad statement" | "start functions" | "start block"))
            .collect();
        if self.expects_statement() {
            // What starts a statement includes what starts a type or an expression.
            let closes = rest.contains(&"}");
            return std::iter::once("a statement").chain(closes.then_some("`}`")).map(str::to_owned).collect();
        }
        let mut words = Vec::new();
        // The end of a constraint, not a comparison.
        if rest.contains(&">") && !rest.contains(&"<=") {
            rest.retain(|e| *e != ">");
            words.push("`>`".to_owned());
        }
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

/// Words that start or shape a statement: nobody means them as names.
fn is_control(token: Token) -> bool {
    matches!(
        token,
        Token::If
            | Token::Else
            | Token::While
            | Token::For
            | Token::In
            | Token::Return
            | Token::Break
            | Token::Continue
            | Token::Void
    )
}

/// Sets of tokens with a common name: the signs that tell the set, all its tokens, the name.
const GROUPS: &[(&[&str], &[&str], &str)] = &[
    (
        &["integer", "name"],
        &["integer", "real", "dot number", "imaginary", "name", "(", "[", "{", "-", "+", "!", "target"],
        "an expression",
    ),
    (
        &["int", "vector"],
        &[
            "int",
            "real type",
            "complex",
            "vector",
            "row_vector",
            "matrix",
            "complex_vector",
            "complex_row_vector",
            "complex_matrix",
            "array",
            "tuple",
            "ordered",
            "positive_ordered",
            "simplex",
            "unit_vector",
            "sum_to_zero_vector",
            "sum_to_zero_matrix",
            "cholesky_factor_corr",
            "cholesky_factor_cov",
            "corr_matrix",
            "cov_matrix",
            "row_stochastic_matrix",
            "column_stochastic_matrix",
            "void",
            "data",
        ],
        "a type",
    ),
    (&["=", "+=", "*="], &["=", "+=", "-=", "*=", "/=", ".*=", "./=", "<-"], "an assignment"),
    (
        &["+", "*"],
        &[
            "+",
            "-",
            "*",
            "/",
            "%",
            "%/%",
            "\\\\",
            ".*",
            "./",
            "^",
            ".^",
            "'",
            "==",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "&&",
            "||",
            "?",
            "[",
            "dot number",
            "(",
            "|",
        ],
        "an operator",
    ),
    (&["lower", "upper"], &["lower", "upper", "offset", "multiplier"], "`lower`, `upper`, `offset`, `multiplier`"),
];

fn in_words(name: &str) -> String {
    match name {
        "name" => "a name".to_owned(),
        "integer" => "an integer".to_owned(),
        "real" => "a real number".to_owned(),
        "real type" => "`real`".to_owned(),
        "text" => "a text".to_owned(),
        other => format!("`{other}`"),
    }
}
