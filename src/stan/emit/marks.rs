//! Marks in a text that is being made: which of its parts come from which place of the program. They stand in the text
//! itself, so that whoever puts texts together need not know of them, and are taken out at the end.

use crate::base::{FileId, Span};

// Characters that Unicode keeps for what goes on inside of a program: no text has them.
const BEGIN: char = '\u{fdd0}';
const TEXT: char = '\u{fdd1}';
const END: char = '\u{fdd2}';

/// A text that comes from a place.
pub(super) fn marked(text: &str, span: Span) -> String {
    format!("{BEGIN}{}:{}:{}{TEXT}{text}{END}", span.file.0, span.start, span.end)
}

/// The mark around all of a text, with what is within; no mark where there is none.
fn outermost(text: &str) -> (&str, &str) {
    let none = ("", text);
    let Some((head, rest)) = text.strip_prefix(BEGIN).and_then(|t| t.split_once(TEXT)) else { return none };
    let Some(inner) = rest.strip_suffix(END) else { return none };
    let mut depth = 0_i32;
    for c in inner.chars() {
        depth += i32::from(c == BEGIN) - i32::from(c == END);
        if depth < 0 {
            return none;
        }
    }
    (head, inner)
}

/// Changes a text within the marks around all of it.
pub(super) fn within(text: &str, change: impl FnOnce(&str) -> String) -> String {
    match outermost(text) {
        ("", _) => change(text),
        (head, inner) => format!("{BEGIN}{head}{TEXT}{}{END}", within(inner, change)),
    }
}

/// Whether it is part of a mark: what somebody wrote has none.
pub(super) fn is_mark(c: char) -> bool {
    [BEGIN, TEXT, END].contains(&c)
}

/// The last character before a byte that is neither blank nor part of a mark.
pub(in crate::stan) fn before(text: &str, at: usize) -> Option<char> {
    let mut rest = text[..at].trim_end();
    loop {
        let last = rest.chars().next_back()?;
        rest = match last {
            END => &rest[..rest.len() - END.len_utf8()],
            TEXT => &rest[..rest.rfind(BEGIN)?],
            other => return Some(other),
        };
        rest = rest.trim_end();
    }
}

/// Takes the marks out of a text that will stand at this byte: the bytes that each was about are added to `parts`.
pub(in crate::stan) fn unmarked(text: &str, at: usize, parts: &mut Vec<(u32, u32, Span)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<(usize, Span)> = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.find(is_mark) {
        let (before, mark) = rest.split_at(next);
        out.push_str(before);
        let mut chars = mark.chars();
        match chars.next() {
            Some(BEGIN) => {
                let (head, after) = chars.as_str().split_once(TEXT).expect("a mark says where");
                let mut numbers = head.split(':').map(|n| n.parse().expect("a mark has three numbers"));
                let mut number = || numbers.next().expect("a mark has three numbers");
                let span = Span { file: FileId(number()), start: number(), end: number() };
                open.push((at + out.len(), span));
                rest = after;
            }
            _ => {
                let (start, span) = open.pop().expect("what ends has begun");
                parts.push((start as u32, (at + out.len()) as u32, span));
                rest = chars.as_str();
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_out_and_tell_the_bytes_that_they_were_about() {
        let span = |n| Span::new(FileId(0), n, n + 1);
        let inner = marked("a + b", span(1));
        let all = marked(&format!("{inner} * c"), span(2));
        let mut parts = Vec::new();
        assert_eq!(unmarked(&format!("let x = {all};"), 10, &mut parts), "let x = a + b * c;");
        assert_eq!(parts, [(18, 23, span(1)), (18, 27, span(2))]);
    }

    #[test]
    fn a_text_is_changed_within_its_marks() {
        let span = Span::new(FileId(0), 3, 4);
        let bracketed = |text: &str| within(text, |inner| format!("({inner})"));
        assert_eq!(bracketed("a"), "(a)");
        assert_eq!(bracketed(&marked(&marked("a", span), span)), marked(&marked("(a)", span), span));
        let two = format!("{}{}", marked("a", span), marked("b", span));
        assert_eq!(bracketed(&two), format!("({two})"));
    }
}
