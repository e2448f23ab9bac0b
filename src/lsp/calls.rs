//! The call around a place: what is called, and which argument is being written.

use serde_json::{Value, json};

use crate::base::{Symbol, SymbolKind};
use crate::check::builtin_told;
use crate::stan::check::library_function;

use super::analysis::{Analysis, Language};
use super::completion::{prelude_symbol, visible};
use super::library;

/// Most bytes that are looked through for the start of a call.
const MOST: usize = 20_000;

/// The signatures of the function that is called around a byte; null where none is.
pub(super) fn signature_help(analysis: &Analysis, offset: usize) -> Value {
    let Some((name, argument)) = call(analysis.text(), offset) else { return Value::Null };
    let plain = name.rsplit("::").next().unwrap_or(name);
    let own: Vec<&Symbol> = if let Some((alias, _)) = name.rsplit_once("::") {
        let members = analysis.module_members(alias).into_iter().flatten();
        members.filter(|symbol| symbol.name == plain).collect()
    } else {
        let all = visible(analysis, offset).into_iter();
        all.filter(|symbol| is_called(&symbol.name, plain)).collect()
    };
    let own = own.into_iter().filter(|s| matches!(s.kind, SymbolKind::Function | SymbolKind::Model));
    let mut signatures: Vec<Value> = own.map(of_symbol).collect();
    if signatures.is_empty() && analysis.language == Language::Autobatch {
        match prelude_symbol(plain) {
            Some(symbol) => signatures.push(of_symbol(symbol)),
            None => {
                let told = builtin_told(plain).map(
                    |label| json!({"label": label, "documentation": library::reference(plain).unwrap_or_default()}),
                );
                signatures.extend(told);
            }
        }
    }
    if signatures.is_empty() && analysis.language == Language::Stan {
        let names = [plain.to_owned(), format!("{plain}_lpdf"), format!("{plain}_lpmf")];
        if let Some(library) = names.iter().find_map(|name| library_function(name)) {
            signatures.extend(library.signatures.iter().map(|label| of_label(label)));
        }
    }
    if signatures.is_empty() {
        return Value::Null;
    }
    // The first that has so many parameters.
    let takes = |signature: &Value| signature["parameters"].as_array().is_none_or(|all| all.len() > argument);
    let active = signatures.iter().position(takes).unwrap_or(0);
    json!({"signatures": signatures, "activeSignature": active, "activeParameter": argument})
}

/// Whether a function is meant by what stands before the parenthesis: of `~` that is the distribution.
fn is_called(name: &str, written: &str) -> bool {
    let stem = name.strip_suffix("_lpdf").or_else(|| name.strip_suffix("_lpmf"));
    name == written || stem.is_some_and(|stem| stem == written)
}

fn of_symbol(symbol: &Symbol) -> Value {
    let parameters: Vec<Value> = symbol.params.iter().map(|param| json!({"label": param})).collect();
    json!({"label": symbol.told, "documentation": symbol.doc, "parameters": parameters})
}

/// A signature of Stan's library, `real f(real, array[] int)`.
fn of_label(label: &str) -> Value {
    let inner = label.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
    let mut parameters: Vec<Value> = Vec::new();
    let at = label.len() - 1 - inner.len();
    let (mut depth, mut start) = (0, 0);
    for (i, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' | '|' if depth == 0 => {
                let part = inner[start..i].trim();
                let from = at + start + inner[start..i].find(part).unwrap_or(0);
                if !part.is_empty() {
                    parameters.push(json!({"label": [from, from + part.len()]}));
                }
                start = i + 1;
            }
            _ => {}
        }
    }
    json!({"label": label, "parameters": parameters})
}

/// The name before the parenthesis around a byte, and the number of the argument at it.
fn call(text: &str, offset: usize) -> Option<(&str, usize)> {
    let mut from = offset.saturating_sub(MOST);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let (mut depth, mut argument) = (0usize, 0);
    for (at, c) in text[from..offset].char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' if depth == 0 => {
                let before = text[..from + at].trim_end();
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
                let name = before[before.trim_end_matches(is_name).len()..].trim_start_matches(':');
                return (!name.is_empty()).then_some((name, argument));
            }
            '[' | '{' | ';' if depth == 0 => return None,
            '(' | '[' | '{' => depth -= 1,
            ',' | '|' if depth == 0 => argument += 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_call_is_found() {
        let at = |text: &str| call(text, text.len()).map(|(name, argument)| (name.to_owned(), argument));
        assert_eq!(at("f(1, g(2), "), Some(("f".into(), 2)));
        assert_eq!(at("f(1, m::g(2, [1, 2], "), Some(("m::g".into(), 2)));
        assert_eq!(at("y ~ normal(mu, "), Some(("normal".into(), 1)));
        assert_eq!(at("normal_lpdf(y | "), Some(("normal_lpdf".into(), 1)));
        assert_eq!(at("\u{e9}f(1, "), Some(("f".into(), 1)));
        assert_eq!(at("\u{e9}(1, "), None);
        assert_eq!(at("(1, "), None);
        assert_eq!(at("f(1); x"), None);
    }

    #[test]
    fn parameters_of_a_signature_are_found() {
        let signature = of_label("real f(array[,] int | tuple(int, real), real)");
        let label = signature["label"].as_str().expect("a text");
        let parts: Vec<&str> = (signature["parameters"].as_array().expect("an array").iter())
            .map(|p| {
                &label[p["label"][0].as_u64().expect("a number") as usize
                    ..p["label"][1].as_u64().expect("a number") as usize]
            })
            .collect();
        assert_eq!(parts, ["array[,] int", "tuple(int, real)", "real"]);
    }
}
