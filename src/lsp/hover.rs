//! What a name is: its declaration, its type with dimensions, what is written about it, and whether it varies.

use serde_json::{Value, json};

use crate::base::{Meaning, Symbol, SymbolKind};
use crate::check::builtin_told;
use crate::stan::check::library_function;

use super::analysis::Language;
use super::at::At;
use super::library;
use super::state::State;

/// The hover at a place; null where there is nothing to say.
pub(super) fn hover(state: &State, at: &At) -> Value {
    let analysis = &at.analysis;
    let (span, text) = match at.meant() {
        Some((span, Meaning::Declared(declared))) => {
            let Some(symbol) = analysis.symbol(declared) else { return Value::Null };
            let both = at.found.iter().filter_map(|(_, meaning)| match meaning {
                Meaning::Declared(other) if *other != declared => analysis.symbol(*other),
                _ => None,
            });
            let mut text = of_symbol(symbol, analysis.language, state.markdown);
            both.for_each(|other| text += &format!("\n\nand the field {}", quoted(&other.told, state.markdown)));
            (span, text)
        }
        Some((span, Meaning::Builtin { name, told })) => {
            (span, of_builtin(&name, &told, analysis.language, state.markdown))
        }
        Some((span, Meaning::File(file))) => (span, analysis.sources.file(file).name.clone()),
        None => {
            let Some((span, ty)) = analysis.meanings.type_at(analysis.main, at.offset as u32) else {
                return Value::Null;
            };
            (span, code(ty, analysis.language, state.markdown))
        }
    };
    let Some(span) = at.now(span) else { return Value::Null };
    let Some(document) = state.named(analysis.name()) else { return Value::Null };
    let range = document.lines.range(&document.text, span.start as usize, span.end as usize);
    let kind = if state.markdown { "markdown" } else { "plaintext" };
    json!({"contents": {"kind": kind, "value": text}, "range": range})
}

/// A line of a program.
fn code(text: &str, language: Language, markdown: bool) -> String {
    if markdown { format!("```{}\n{text}\n```", language.name()) } else { text.to_owned() }
}

fn quoted(text: &str, markdown: bool) -> String {
    if markdown { format!("`{text}`") } else { text.to_owned() }
}

/// What is said of something that is declared.
pub(super) fn of_symbol(symbol: &Symbol, language: Language, markdown: bool) -> String {
    let mut parts = vec![code(&symbol.told, language, markdown)];
    match symbol.shared {
        Some(true) => parts.push("shared: the same for all lanes".to_owned()),
        Some(false) if symbol.kind == SymbolKind::Parameter && symbol.because.is_empty() => {
            parts.push("varying: it may differ from lane to lane".to_owned());
        }
        Some(false) => parts.push(format!("varying: {}", symbol.because.join("; "))),
        None if !symbol.because.is_empty() => parts.push(symbol.because.join("; ")),
        None => {}
    }
    if !symbol.doc.is_empty() {
        parts.push(symbol.doc.clone());
    } else if let Some(row) =
        library::reference(&symbol.name).filter(|_| symbol.public && language == Language::Autobatch)
        && symbol.kind == SymbolKind::Function
    {
        parts.push(row.to_owned());
    }
    parts.join("\n\n")
}

/// What is said of a function of the language, or of Stan's library.
pub(super) fn of_builtin(name: &str, told: &[String], language: Language, markdown: bool) -> String {
    if language == Language::Autobatch {
        let head = builtin_told(name).unwrap_or_else(|| name.to_owned());
        let row = library::reference(name).map(str::to_owned);
        return std::iter::once(code(&head, language, markdown)).chain(row).collect::<Vec<_>>().join("\n\n");
    }
    let Some(library) = library_function(name) else { return code(name, language, markdown) };
    let head = match (told, &library.signatures[..]) {
        ([], []) => format!("{name}(function, ...)"),
        ([], all) => all.join("\n"),
        (told, _) => told.join("\n"),
    };
    let mut parts = vec![code(&head, language, markdown)];
    let shown = head.lines().count();
    if library.count > shown {
        parts.push(format!("one of {} signatures in Stan's library", library.count));
    } else {
        parts.push("a function of Stan's library".to_owned());
    }
    if library.lacking {
        parts.push(LACKING.to_owned());
    }
    parts.join("\n\n")
}

/// What is said of a function that a run refuses.
pub(super) const LACKING: &str = "known, not supported yet";
