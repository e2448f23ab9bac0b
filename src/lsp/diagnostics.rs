//! What the checkers find, as the protocol has it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::{Diagnostic, Label};

use super::analysis::Analysis;
use super::columns::Lines;
use super::state::State;

/// What is told of each file, by address: findings of all documents that are checked, each once.
pub(super) fn all(state: &State) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (_, analysis) in state.checked() {
        // A document without findings is told that it has none.
        if let Some(uri) = state.uri(analysis, analysis.main) {
            found.entry(uri).or_default();
        }
        for diagnostic in &analysis.diagnostics {
            if let Some((uri, shown)) = one(state, analysis, diagnostic) {
                let known = found.entry(uri).or_default();
                if !known.contains(&shown) {
                    known.push(shown);
                }
            }
        }
    }
    found
}

/// A finding, and the file that it is about: that of its first label which is no text of the library, and else the document.
fn one(state: &State, analysis: &Analysis, diagnostic: &Diagnostic) -> Option<(String, Value)> {
    let own = |label: &&Label| !analysis.ships(label.span.file) || label.span.file == analysis.main;
    let first = diagnostic.labels.iter().find(own);
    let file = first.map_or(analysis.main, |label| label.span.file);
    let text = &analysis.sources.file(file).text;
    let lines = Lines::of(text, state.encoding);
    let (start, end) = first.map_or((0, 0), |label| (label.span.start as usize, label.span.end as usize));
    let related = diagnostic.labels.iter().filter(|label| first.is_none_or(|first| !std::ptr::eq(first, *label)));
    let related = related.filter_map(|label| {
        let location = state.location(analysis, label.span)?;
        let message = if label.message.is_empty() { "here" } else { &label.message };
        Some(json!({"location": location, "message": message}))
    });
    let related: Vec<Value> = related.collect();
    let mut shown = json!({
        "range": lines.range(text, start, end),
        "severity": if diagnostic.is_error() { 1 } else { 2 },
        "code": diagnostic.code.0,
        "source": "autobatch",
        "message": message(diagnostic, first),
    });
    if !related.is_empty() {
        shown["relatedInformation"] = json!(related);
    }
    // What is for nothing is shown faded.
    if matches!(diagnostic.code.0, "W0001" | "W0002" | "W0004" | "W0006" | "W2104" | "W2109") {
        shown["tags"] = json!([1]);
    }
    Some((state.uri(analysis, file)?, shown))
}

/// All that is said, a line each.
fn message(diagnostic: &Diagnostic, first: Option<&Label>) -> String {
    let mut lines = vec![diagnostic.message.clone()];
    lines.extend(first.map(|label| label.message.clone()).filter(|label| !label.is_empty()));
    // Where it is the editor shows; that place is for tools that read what is printed.
    let notes = diagnostic.notes.iter().filter(|note| !note.starts_with("(in '"));
    lines.extend(notes.map(|note| format!("note: {note}")));
    lines.extend(diagnostic.help.iter().map(|help| format!("help: {help}")));
    lines.push(format!("more: autobatch explain {}", diagnostic.code.0));
    lines.join("\n")
}
