//! What is not written and yet known: types of variables, and which are the same for all lanes.

use serde_json::{Value, json};

use crate::base::SymbolKind;

use super::analysis::{Analysis, Language};
use super::state::State;

/// The hints between two bytes of a document.
pub(super) fn hints(state: &State, analysis: &Analysis, from: usize, to: usize) -> Value {
    if analysis.language == Language::Stan {
        return json!([]);
    }
    let text = analysis.text();
    let lines = state.lines(analysis, analysis.main);
    let mut found = Vec::new();
    for (span, symbol) in &analysis.meanings.symbols {
        let (start, end) = (span.start as usize, span.end as usize);
        if span.file != analysis.main || symbol.scope.is_none() || end < from || start > to {
            continue;
        }
        let written = text[end..].trim_start();
        let typed = written.starts_with(':') && !written.starts_with("::");
        let variable = symbol.kind == SymbolKind::Variable;
        let varies = match symbol.shared {
            Some(true) if variable => "shared",
            Some(false) if variable => "varying",
            _ => "",
        };
        let ty = symbol.ty.as_deref().filter(|_| !typed && symbol.kind != SymbolKind::Loop);
        let label = match (ty, varies) {
            (Some(ty), "") => format!(": {ty}"),
            (Some(ty), varies) => format!(": {ty}, {varies}"),
            (None, "") => continue,
            (None, varies) => format!(" {varies}"),
        };
        if symbol.kind == SymbolKind::Dimension {
            continue;
        }
        let mut hint = json!({"position": lines.position(text, end), "label": label, "kind": 1});
        if !symbol.because.is_empty() {
            hint["tooltip"] = json!(symbol.because.join("\n"));
        }
        found.push(hint);
    }
    json!(found)
}
