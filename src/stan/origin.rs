//! The translated text with what it was made of.

use crate::base::{Provenance, SourceMap, Span};

use super::emit::unmarked;
use super::place::place;

/// A text with marks, each of whose lines comes from a place: without marks, its assertions saying where they stand in the
/// Stan program, and where every part comes from. `fallback` is the place of what has none.
pub fn placed(text: &str, lines: &[Option<Span>], sources: &SourceMap, fallback: Span) -> (String, Provenance) {
    let mut made = String::with_capacity(text.len());
    let mut parts = Vec::new();
    // What closes or keeps something is of the line before.
    let mut last = fallback;
    for (line, span) in text.lines().zip(lines) {
        last = span.unwrap_or(last);
        let start = made.len();
        made.push_str(&unmarked(&with_place(line, last, sources), start, &mut parts));
        parts.push((start as u32, made.len() as u32, last));
        made.push('\n');
    }
    (made, Provenance::new(sources.clone(), parts, place))
}

/// A line; that of an assertion says where it stands in the Stan program.
fn with_place(line: &str, span: Span, sources: &SourceMap) -> String {
    // An assertion for each turn of a loop is one line, too.
    let end = ["\");", "\"); }"].into_iter().find(|end| line.ends_with(end));
    let is_assertion = line.trim_start().starts_with("assert(") || line.contains(" { assert(");
    match end {
        Some(end) if is_assertion => {
            let place = place(sources, span).replace('\\', "/").replace('"', "'").replace('{', "{{").replace('}', "}}");
            format!("{} {place}{end}", &line[..line.len() - end.len()])
        }
        _ => line.to_owned(),
    }
}
