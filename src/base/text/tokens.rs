//! Splitting a line into tokens.

use std::fmt;

use super::ReadError;

/// Words that start a statement or a constant: a name that is one of them is written in backticks.
pub(super) const RESERVED: &[&str] = &[
    "assert",
    "attempt",
    "block",
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

pub(super) fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '%')
}
pub(super) fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '#' | '\'')
}

/// Adds the tokens of a line, up to a comment.
pub(super) fn split_line(text: &str, line: u32, tokens: &mut Vec<(Token, u32)>) -> Result<(), ReadError> {
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
