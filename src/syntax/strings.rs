//! The inside of a text: escapes, holes and doubled braces.

use crate::base::{Diagnostic, FileId};
use crate::syntax::span;

/// A piece of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// Characters, escapes resolved.
    Chars(String),
    /// The bytes between a brace and its partner.
    Hole(usize, usize),
}

/// Whether braces in a text are holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holes {
    Parsed,
    None,
}

/// Takes `text[start..end]`, the inside of a text, to pieces; what is wrong with it goes to `report`.
pub(crate) fn pieces(
    file: FileId,
    text: &str,
    (start, end): (usize, usize),
    holes: Holes,
    report: &mut dyn FnMut(Diagnostic),
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut chars = String::new();
    let mut at = start;
    while let Some(c) = text[at..end].chars().next() {
        let next = at + c.len_utf8();
        let rest = &text[next..end];
        match c {
            '\\' => {
                let escaped = rest.chars().next();
                match escaped.and_then(unescaped) {
                    Some(c) => chars.push(c),
                    None => report(unknown_escape(file, at, escaped)),
                }
                at = next + escaped.map_or(0, char::len_utf8);
            }
            '{' | '}' if holes == Holes::Parsed && rest.starts_with(c) => {
                chars.push(c);
                at = next + 1;
            }
            '{' if holes == Holes::Parsed => {
                let Some(length) = hole_length(rest) else {
                    let diagnostic =
                        Diagnostic::error("E0022", "this hole is not closed", span(file, at, next), "opened here");
                    report(
                        diagnostic.with_help("close it with `}`; a brace that is meant as text is written twice: `{{`"),
                    );
                    break;
                };
                if !chars.is_empty() {
                    pieces.push(Piece::Chars(std::mem::take(&mut chars)));
                }
                pieces.push(Piece::Hole(next, next + length));
                at = next + length + 1;
            }
            '}' if holes == Holes::Parsed => {
                let diagnostic =
                    Diagnostic::error("E0022", "this brace closes no hole", span(file, at, next), "no `{` before it");
                report(diagnostic.with_help("a brace that is meant as text is written twice: `}}`"));
                at = next;
            }
            c => {
                chars.push(c);
                at = next;
            }
        }
    }
    if !chars.is_empty() {
        pieces.push(Piece::Chars(chars));
    }
    pieces
}

/// The bytes before the brace that closes the hole.
fn hole_length(rest: &str) -> Option<usize> {
    let mut open = 0;
    for (i, b) in rest.bytes().enumerate() {
        match b {
            b'{' => open += 1,
            b'}' if open == 0 => return Some(i),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

fn unescaped(c: char) -> Option<char> {
    Some(match c {
        'n' => '\n',
        't' => '\t',
        '\\' => '\\',
        '"' => '"',
        _ => return None,
    })
}

fn unknown_escape(file: FileId, at: usize, escaped: Option<char>) -> Diagnostic {
    let end = at + 1 + escaped.map_or(0, char::len_utf8);
    let shown = escaped.map_or(String::new(), |c| c.escape_debug().to_string());
    let diagnostic =
        Diagnostic::error("E0004", format!("`\\{shown}` is not an escape"), span(file, at, end), "in this text");
    match escaped {
        Some('{' | '}') => diagnostic.with_help("a brace that is meant as text is written twice"),
        _ => diagnostic.with_help("the escapes are `\\n`, `\\t`, `\\\\` and `\\\"`"),
    }
}
