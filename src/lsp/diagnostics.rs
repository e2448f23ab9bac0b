//! What the checkers find, as the protocol has it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::{Diagnostic, FileId, Label, Span};

use super::analysis::Analysis;
use super::columns::Lines;
use super::state::State;

/// What is told of each file, by address: findings of all documents that are checked, each once.
pub(super) fn all(state: &State) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    // Two programs that use a module find the same in it.
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    for (_, analysis) in state.checked() {
        // A document without findings is told that it has none.
        if let Some(uri) = state.uri(analysis, analysis.main) {
            found.entry(uri).or_default();
        }
        let mut places = Places { state, analysis, files: HashMap::new() };
        for diagnostic in &analysis.diagnostics {
            if let Some((uri, shown)) = one(&mut places, diagnostic)
                && known.insert((uri.clone(), shown.to_string()))
            {
                found.entry(uri).or_default().push(shown);
            }
        }
    }
    found
}

/// A finding, and the file that it is about: that of its first label which is no text of the library, and else the document.
fn one(places: &mut Places<'_>, diagnostic: &Diagnostic) -> Option<(String, Value)> {
    let analysis = places.analysis;
    let own = |label: &&Label| !analysis.ships(label.span.file) || label.span.file == analysis.main;
    let first = diagnostic.labels.iter().find(own);
    let file = first.map_or(analysis.main, |label| label.span.file);
    let span = first.map_or(Span::new(file, 0, 0), |label| label.span);
    let (uri, range) = places.of(span)?;
    let related = diagnostic.labels.iter().filter(|label| first.is_none_or(|first| !std::ptr::eq(first, *label)));
    let related = related.filter_map(|label| {
        let (uri, range) = places.of(label.span)?;
        let location = json!({"uri": uri, "range": range});
        let message = if label.message.is_empty() { "here" } else { &label.message };
        Some(json!({"location": location, "message": message}))
    });
    let related: Vec<Value> = related.collect();
    let mut shown = json!({
        "range": range,
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
    Some((uri, shown))
}

/// The files of an analysis, each looked at once.
struct Places<'a> {
    state: &'a State,
    analysis: &'a Analysis,
    files: HashMap<FileId, Option<(String, Arc<Lines>)>>,
}

impl Places<'_> {
    /// The address of a file and the range of a span in it.
    fn of(&mut self, span: Span) -> Option<(String, Value)> {
        let look = || Some((self.state.uri(self.analysis, span.file)?, self.state.lines(self.analysis, span.file)));
        let (uri, lines) = self.files.entry(span.file).or_insert_with(look).as_ref()?;
        let text = &self.analysis.sources.file(span.file).text;
        Some((uri.clone(), lines.range(text, span.start as usize, span.end as usize)))
    }
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
