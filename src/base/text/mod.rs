//! The text form of the IRs, as far as it knows no IR: words, names, numbers, strings with holes, and a reader over them.
//!
//! A text is a sequence of lines; the end of a line ends a statement and `;` starts a comment. A *name* is
//! `[A-Za-z_%][A-Za-z0-9_.#']*`; any other name, and one that is a reserved word, stands in backticks with escapes. A
//! *text* stands in double quotes; `{}` in it is a hole and a brace that is none is escaped.

mod print;
mod tokens;

use std::fmt;

pub use print::{QuotedName, Text};
pub use tokens::Token;
use tokens::{RESERVED, split_line};

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
