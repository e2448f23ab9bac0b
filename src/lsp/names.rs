//! Where names are declared and used: definition, references, symbols of a document.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::base::{Meaning, Span, Symbol, SymbolKind};

use super::analysis::Analysis;
use super::at::At;
use super::state::State;

/// The declaration of what a name means, or the file that a path names; null where there is none.
pub(super) fn definition(state: &State, at: &At) -> Value {
    let span = match at.meant() {
        Some((_, Meaning::Declared(declared))) => at.now(declared),
        Some((_, Meaning::File(file))) => Some(Span::new(file, 0, 0)),
        Some((_, Meaning::Builtin { .. })) | None => None,
    };
    span.and_then(|span| located(state, at, span)).unwrap_or(Value::Null)
}

/// A span of the texts as they are now as a location.
fn located(state: &State, at: &At, span: Span) -> Option<Value> {
    let analysis = &at.analysis;
    let Some(open) = state.named(&analysis.sources.file(span.file).name) else {
        return state.location(analysis, span);
    };
    let range = open.lines.range(&open.text, span.start as usize, span.end as usize);
    Some(json!({"uri": state.uri(analysis, span.file)?, "range": range}))
}

/// A place by the name of its file: the numbers of files are those of one analysis.
pub(super) type Place = (String, u32, u32);

/// Where all open documents name what is declared at a place, its declaration among them.
pub(super) fn places(state: &State, analysis: &Analysis, declared: Span) -> BTreeSet<Place> {
    let name = analysis.sources.file(declared.file).name.clone();
    let text = &analysis.sources.file(declared.file).text;
    let others = state.checked().map(|(_, other)| &**other).filter(|other| !std::ptr::eq(*other, analysis));
    let mut found = BTreeSet::new();
    for other in others.chain([analysis]) {
        // The same text: elsewhere the place would be that of something else.
        let Some(file) = other.sources.named(&name).filter(|file| other.sources.file(*file).text == *text) else {
            continue;
        };
        let uses = other.meanings.places_of(Span { file, ..declared });
        found.extend(uses.into_iter().map(|span| (other.sources.file(span.file).name.clone(), span.start, span.end)));
    }
    found
}

/// All places that mean what the name here means.
pub(super) fn references(state: &State, at: &At, with_declaration: bool) -> Value {
    let Some((_, meaning)) = at.meant() else { return json!([]) };
    let analysis = &at.analysis;
    let found: Vec<Value> = match meaning {
        Meaning::Declared(declared) => {
            let own = (analysis.sources.file(declared.file).name.clone(), declared.start, declared.end);
            let places = places(state, analysis, declared).into_iter();
            places.filter(|place| with_declaration || *place != own).filter_map(|p| place(state, at, &p)).collect()
        }
        other => {
            let uses = analysis.meanings.uses.iter().filter(|(_, meaning)| match (meaning, &other) {
                (Meaning::Builtin { name, .. }, Meaning::Builtin { name: wanted, .. }) => name == wanted,
                (meaning, wanted) => meaning == wanted,
            });
            uses.filter_map(|(span, _)| at.now(*span)).filter_map(|span| located(state, at, span)).collect()
        }
    };
    json!(found)
}

/// A place as a location, if it is still there.
fn place(state: &State, at: &At, (name, start, end): &Place) -> Option<Value> {
    let analysis = state.checked().map(|(_, other)| &**other).chain([&*at.analysis]).find(|other| other.reads(name))?;
    let file = analysis.sources.named(name)?;
    let span = Span { file, start: *start, end: *end };
    let span = if *name == at.analysis.name() { at.kept.in_new(span)? } else { span };
    let range = match state.named(name) {
        Some(document) => document.lines.range(&document.text, span.start as usize, span.end as usize),
        None => return state.location(analysis, span),
    };
    Some(json!({"uri": state.uri(analysis, file)?, "range": range}))
}

/// The places of the name in the same document: those that an editor marks.
pub(super) fn highlights(state: &State, at: &At) -> Value {
    let Some((span, meaning)) = at.meant() else { return json!([]) };
    let analysis = &at.analysis;
    let spans: Vec<Span> = match meaning {
        Meaning::Declared(declared) => analysis.meanings.places_of(declared),
        _ => vec![span],
    };
    let Some(document) = state.named(analysis.name()) else { return json!([]) };
    let lines = &document.lines;
    let here = spans.into_iter().filter(|span| span.file == analysis.main).filter_map(|span| at.now(span));
    let marks = here.map(|span| json!({"range": lines.range(&document.text, span.start as usize, span.end as usize)}));
    json!(marks.collect::<Vec<Value>>())
}

/// The symbols of a document, those within others below them.
pub(super) fn symbols(state: &State, analysis: &Analysis) -> Value {
    let text = analysis.text();
    let lines = state.lines(analysis, analysis.main);
    let own = |span: &Span| span.file == analysis.main && span.start < span.end;
    let mut top: Vec<(Span, &Symbol)> = Vec::new();
    for (span, symbol) in &analysis.meanings.symbols {
        let local = matches!(symbol.kind, SymbolKind::Field | SymbolKind::Dimension) || symbol.scope.is_some();
        if own(span) && !local {
            top.push((*span, symbol));
        }
    }
    let blocks: Vec<Span> = top.iter().filter(|(_, s)| s.kind == SymbolKind::Block).map(|(_, s)| s.whole).collect();
    let within =
        |outer: &Span, span: &Span| outer.file == span.file && outer.start <= span.start && span.end <= outer.end;
    let show = |span: &Span, symbol: &Symbol, children: Vec<Value>| {
        let range = |span: Span| lines.range(text, span.start as usize, span.end as usize);
        let whole = if within(&symbol.whole, span) { symbol.whole } else { *span };
        json!({
            "name": symbol.name, "detail": symbol.ty.as_deref().unwrap_or_default(), "kind": number(symbol.kind),
            "range": range(whole), "selectionRange": range(*span), "children": children,
        })
    };
    let plain = |span: Span| analysis.symbol(span).filter(|_| own(&span)).map(|symbol| show(&span, symbol, vec![]));
    let shown = top
        .iter()
        .filter(|(span, symbol)| symbol.kind == SymbolKind::Block || !blocks.iter().any(|block| within(block, span)));
    let shown = shown.map(|(span, symbol)| {
        let children = match symbol.kind {
            SymbolKind::Block => {
                let inner = top.iter().filter(|(span, s)| s.kind != SymbolKind::Block && within(&symbol.whole, span));
                inner.map(|(span, symbol)| show(span, symbol, vec![])).collect()
            }
            SymbolKind::Struct => symbol.members.iter().filter_map(|span| plain(*span)).collect(),
            _ => vec![],
        };
        show(span, symbol, children)
    });
    json!(shown.collect::<Vec<Value>>())
}

/// The number of the protocol for a kind of symbol.
fn number(kind: SymbolKind) -> u32 {
    match kind {
        SymbolKind::Function => 12,
        SymbolKind::Model => 5,
        SymbolKind::Struct => 23,
        SymbolKind::Field => 8,
        SymbolKind::Constant => 14,
        SymbolKind::Module => 2,
        SymbolKind::Dimension => 26,
        SymbolKind::Parameter | SymbolKind::Loop | SymbolKind::Variable => 13,
        SymbolKind::Block => 3,
    }
}
