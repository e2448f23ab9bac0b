//! The text form of the IRs, as far as it knows no IR: words, names, numbers, strings with holes, and a reader over them.
//!
//! A text is a sequence of lines; the end of a line ends a statement and `;` starts a comment. A *name* is
//! `[A-Za-z_%][A-Za-z0-9_.#']*`; any other name, and one that is a reserved word, stands in backticks with escapes. A
//! *text* stands in double quotes; `{}` in it is a hole and a brace that is none is escaped.

use std::fmt;

/// Why a text could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: u32,
    /// What was expected and what stands there.
    pub message: String,
}

impl ReadError {
    /// An error at a line.
    pub fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

/// Words that start a statement or a constant: a name that is one of them is written in backticks.
const RESERVED: &[&str] = &[
    "assert",
    "branch",
    "call",
    "cfg",
    "emit",
    "entry",
    "false",
    "func",
    "halt",
    "inf",
    "input",
    "inputs",
    "jump",
    "nan",
    "outputs",
    "pop",
    "prim",
    "print",
    "program",
    "push",
    "pushjump",
    "region",
    "register",
    "return",
    "set",
    "shared",
    "stack",
    "stream",
    "tailcall",
    "tape",
    "tape_pop",
    "tape_push",
    "temporary",
    "then",
    "true",
    "uniform",
    "update",
    "var",
];

/// One token.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// A name without backticks, or a word of the form itself.
    Word(String),
    /// A name in backticks.
    Quoted(String),
    /// An integer.
    Int(i64),
    /// A number with a point or an exponent, or `-inf`.
    Real(f64),
    /// A string, split at its holes: one part more than there are holes.
    Text(Vec<String>),
    /// One character of punctuation.
    Punct(char),
    /// `->`
    Arrow,
    /// The end of a line that has something on it.
    Newline,
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(w) => write!(f, "`{w}`"),
            Token::Quoted(w) => write!(f, "the name {w:?}"),
            Token::Int(i) => write!(f, "`{i}`"),
            Token::Real(r) => write!(f, "`{r:?}`"),
            Token::Text(_) => f.write_str("a string"),
            Token::Punct(c) => write!(f, "`{c}`"),
            Token::Arrow => f.write_str("`->`"),
            Token::Newline => f.write_str("the end of the line"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A name in its text form: in backticks where it is needed.
#[derive(Clone, Copy, Debug)]
pub struct QuotedName<'a>(pub &'a str);

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        let plain = chars.next().is_some_and(starts_name) && chars.all(continues_name);
        if plain && !RESERVED.contains(&self.0) {
            return f.write_str(self.0);
        }
        f.write_str("`")?;
        write_escaped(f, self.0)?;
        f.write_str("`")
    }
}

/// A string with holes in its text form; the parts stand around the holes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [String]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for (i, part) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("{}")?;
            }
            write_escaped(f, part)?;
        }
        f.write_str("\"")
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            '"' | '\\' | '{' | '}' | '`' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    Ok(())
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '%')
}
fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '#' | '\'')
}

/// Reads tokens one after another. Never fails on what it does not expect other than by an error with the line.
#[derive(Clone, Debug)]
pub struct Reader {
    tokens: Vec<(Token, u32)>,
    at: usize,
}

impl Reader {
    /// Splits a text into tokens.
    pub fn new(text: &str) -> Result<Self, ReadError> {
        let mut tokens = Vec::new();
        let mut line = 0;
        for (i, text) in text.lines().enumerate() {
            line = i as u32 + 1;
            let before = tokens.len();
            split_line(text, line, &mut tokens)?;
            if tokens.len() > before {
                tokens.push((Token::Newline, line));
            }
        }
        tokens.push((Token::End, line.max(1)));
        Ok(Self { tokens, at: 0 })
    }
    /// The next token.
    pub fn peek(&self) -> &Token {
        self.peek_at(0)
    }
    /// The token after `n` others.
    pub fn peek_at(&self, n: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + n).min(last)].0
    }
    /// The line of the next token.
    pub fn line(&self) -> u32 {
        self.tokens[self.at].1
    }
    /// Takes the next token; the end of the text stays.
    pub fn next_token(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }
    /// Where the reader stands, for [`back_to`](Self::back_to).
    pub fn position(&self) -> usize {
        self.at
    }
    /// Returns to an earlier position.
    pub fn back_to(&mut self, position: usize) {
        self.at = position.min(self.tokens.len() - 1);
    }
    /// Skips the rest of the line.
    pub fn skip_line(&mut self) {
        while !matches!(self.next_token(), Token::Newline | Token::End) {}
    }
    /// The error that something else was expected than the next token.
    pub fn expected(&self, what: &str) -> ReadError {
        self.error(format!("expected {what}, found {}", self.peek()))
    }
    /// An error at the line of the next token.
    pub fn error(&self, message: impl Into<String>) -> ReadError {
        ReadError::new(self.line(), message)
    }
    /// Whether the text is over.
    pub fn at_end(&self) -> bool {
        *self.peek() == Token::End
    }
    /// Whether the next token ends the line.
    pub fn at_line_end(&self) -> bool {
        matches!(self.peek(), Token::Newline | Token::End)
    }
    /// Whether the next token is this character.
    pub fn at(&self, punct: char) -> bool {
        *self.peek() == Token::Punct(punct)
    }
    /// Whether the next token is this word, not in backticks.
    pub fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }
    fn eat_if(&mut self, found: bool) -> bool {
        if found {
            self.next_token();
        }
        found
    }
    /// Takes this character if it comes next.
    pub fn eat(&mut self, punct: char) -> bool {
        self.eat_if(self.at(punct))
    }
    /// Takes this word if it comes next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        self.eat_if(self.at_word(word))
    }
    /// Takes `->` if it comes next.
    pub fn eat_arrow(&mut self) -> bool {
        self.eat_if(*self.peek() == Token::Arrow)
    }
    /// Takes this character.
    pub fn expect(&mut self, punct: char) -> Result<(), ReadError> {
        if self.eat(punct) { Ok(()) } else { Err(self.expected(&format!("`{punct}`"))) }
    }
    /// Takes this word.
    pub fn expect_word(&mut self, word: &str) -> Result<(), ReadError> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }
    /// Takes the end of the line.
    pub fn end_line(&mut self) -> Result<(), ReadError> {
        if self.at_line_end() {
            self.next_token();
            Ok(())
        } else {
            Err(self.expected("the end of the line"))
        }
    }
    /// Takes a name that is no reserved word, or one in backticks.
    pub fn name(&mut self, what: &str) -> Result<String, ReadError> {
        match self.peek() {
            Token::Word(w) if !RESERVED.contains(&w.as_str()) => {}
            Token::Quoted(_) => {}
            _ => return Err(self.expected(what)),
        }
        match self.next_token() {
            Token::Word(w) | Token::Quoted(w) => Ok(w),
            _ => unreachable!("peeked"),
        }
    }
    /// Takes an integer.
    pub fn int(&mut self, what: &str) -> Result<i64, ReadError> {
        if let Token::Int(i) = *self.peek() {
            self.next_token();
            Ok(i)
        } else {
            Err(self.expected(what))
        }
    }
    /// Takes a string with holes.
    pub fn text(&mut self, what: &str) -> Result<Vec<String>, ReadError> {
        if !matches!(self.peek(), Token::Text(_)) {
            return Err(self.expected(what));
        }
        match self.next_token() {
            Token::Text(parts) => Ok(parts),
            _ => unreachable!("peeked"),
        }
    }
    /// Items between commas: none if `at_end` holds at the start, and no comma after the last.
    pub fn list<T>(
        &mut self,
        at_end: impl Fn(&Self) -> bool,
        mut item: impl FnMut(&mut Self) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        let mut items = Vec::new();
        if at_end(self) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(',') {
                return Ok(items);
            }
        }
    }
    /// Items between commas and parentheses.
    pub fn parenthesized<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        self.expect('(')?;
        let items = self.list(|r| r.at(')'), item)?;
        self.expect(')')?;
        Ok(items)
    }
}

fn split_line(text: &str, line: u32, tokens: &mut Vec<(Token, u32)>) -> Result<(), ReadError> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
        } else if c == ';' {
            return Ok(());
        } else {
            let (token, used) = split_token(rest, c).map_err(|message| ReadError::new(line, message))?;
            tokens.push((token, line));
            rest = &rest[used..];
        }
    }
    Ok(())
}

/// The first token of a text that starts with `c`, and its bytes.
fn split_token(text: &str, c: char) -> Result<(Token, usize), String> {
    let run = |from: usize, keep: fn(char) -> bool| text[from..].find(|c| !keep(c)).map_or(text.len(), |n| from + n);
    if starts_name(c) {
        let n = run(c.len_utf8(), continues_name);
        return Ok((Token::Word(text[..n].to_string()), n));
    }
    if text.starts_with("->") {
        return Ok((Token::Arrow, 2));
    }
    if text.starts_with("-inf") {
        return Ok((Token::Real(f64::NEG_INFINITY), 4));
    }
    if c.is_ascii_digit() || c == '-' {
        let n = number_bytes(text);
        return Ok((number(&text[..n])?, n));
    }
    if c == '"' || c == '`' {
        let (mut parts, n) = string(text, c)?;
        return match c {
            '"' => Ok((Token::Text(parts), n)),
            _ if parts.len() == 1 => Ok((Token::Quoted(parts.remove(0)), n)),
            _ => Err("a name has no holes".to_string()),
        };
    }
    if "()[]{}:,=@$".contains(c) {
        return Ok((Token::Punct(c), c.len_utf8()));
    }
    Err(format!("unexpected character {c:?}"))
}

/// Bytes of a number at the start: digits, letters, points, and a sign at the start or after an exponent.
fn number_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut n = 1;
    while n < bytes.len() {
        let sign = matches!(bytes[n], b'+' | b'-') && matches!(bytes[n - 1], b'e' | b'E') && !text[..n].contains('x');
        if !(bytes[n].is_ascii_alphanumeric() || bytes[n] == b'.' || sign) {
            break;
        }
        n += 1;
    }
    n
}

fn number(text: &str) -> Result<Token, String> {
    let wrong = || format!("`{text}` is no number");
    if let Some(digits) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        return Ok(Token::Int(bits as i64));
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse().map(Token::Real).map_err(|_| wrong());
    }
    text.parse().map(Token::Int).map_err(|_| format!("`{text}` is no number of 64 bits"))
}

/// The parts of a string at the start of a text, and the bytes it takes with its quotes.
fn string(text: &str, quote: char) -> Result<(Vec<String>, usize), String> {
    let mut parts = vec![];
    let mut part = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        match c {
            c if c == quote => {
                parts.push(part);
                return Ok((parts, i + 1));
            }
            '{' => match chars.next() {
                Some((_, '}')) => parts.push(std::mem::take(&mut part)),
                _ => return Err("expected `}` after `{`: a brace is written `\\{`".to_string()),
            },
            '}' => return Err("expected `{` before `}`: a brace is written `\\}`".to_string()),
            '\\' => part.push(escaped(&mut chars)?),
            c => part.push(c),
        }
    }
    Err(format!("expected {quote} before the end of the line"))
}

fn escaped(chars: &mut impl Iterator<Item = (usize, char)>) -> Result<char, String> {
    let wrong = || "unknown escape after `\\`".to_string();
    match chars.next().ok_or_else(wrong)?.1 {
        'n' => Ok('\n'),
        't' => Ok('\t'),
        'r' => Ok('\r'),
        c @ ('"' | '\\' | '{' | '}' | '`') => Ok(c),
        'u' => {
            if chars.next().map(|c| c.1) != Some('{') {
                return Err(wrong());
            }
            let digits: String = chars.map(|c| c.1).take_while(|c| *c != '}').collect();
            let code = u32::from_str_radix(&digits, 16).map_err(|_| wrong())?;
            char::from_u32(code).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let mut reader = Reader::new(text).expect("a text that can be split");
        let mut tokens = vec![];
        while !reader.at_end() {
            tokens.push(reader.next_token());
        }
        tokens
    }

    #[test]
    fn numbers_keep_their_kind() {
        let expected = [
            Token::Int(-3),
            Token::Real(-0.0),
            Token::Real(1e-7),
            Token::Real(f64::NEG_INFINITY),
            Token::Arrow,
            Token::Int(i64::MIN),
            Token::Newline,
        ];
        let text = "-3 -0.0 1e-7 -inf -> -9223372036854775808 ; and a comment";
        assert_eq!(tokens(text), expected);
    }

    #[test]
    fn names_and_texts_come_back() {
        for name in ["x", "tree.left", "var", "a b", "`\\\n{}\u{7}", "", "é"] {
            let found = Reader::new(&QuotedName(name).to_string()).and_then(|mut r| r.name("a name"));
            assert_eq!(found.as_deref(), Ok(name));
        }
        let parts = ["x = ".to_string(), "{\"\\".to_string(), String::new()];
        let found = Reader::new(&Text(&parts).to_string()).and_then(|mut r| r.text("a text"));
        assert_eq!(found.as_deref(), Ok(&parts[..]));
    }

    #[test]
    fn errors_name_the_line() {
        let error = Reader::new("a\nb ?").expect_err("no token starts with a question mark");
        assert_eq!(error.to_string(), "line 2: unexpected character '?'");
        assert!(Reader::new("99999999999999999999").is_err());
        assert!(Reader::new("\"no end").is_err());
    }
}
