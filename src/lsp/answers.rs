//! Which method is answered by what.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::base::{SourceMap, work};
use crate::stan;
use crate::syntax;

use super::analysis::{Analysis, Language};
use super::at::At;
use super::columns::Lines;
use super::state::{State, invalid};
use super::wire::{CANCELLED, METHOD_NOT_FOUND, Refusal};
use super::{calls, completion, hints, hover, names, rename};

/// What the server can do.
pub(super) fn capabilities(state: &State) -> Value {
    json!({
        "capabilities": {
            "positionEncoding": state.encoding.name(),
            "textDocumentSync": {"openClose": true, "change": 2, "save": true},
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "documentHighlightProvider": true,
            "documentSymbolProvider": true,
            "renameProvider": {"prepareProvider": true},
            "completionProvider": {"triggerCharacters": [".", ":", "\"", "/", "~", "@"]},
            "signatureHelpProvider": {"triggerCharacters": ["(", ",", "|"]},
            "documentFormattingProvider": true,
            "inlayHintProvider": true,
        },
        "serverInfo": {"name": "autobatch", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The answer to a request about documents.
///
/// # Errors
/// Where there is none: no such method, parameters that it does not take, or a reason that the user is told.
pub(super) fn answer(
    state: &mut State,
    method: &str,
    params: &Value,
    stop: &Arc<AtomicBool>,
) -> Result<Value, Refusal> {
    let known = matches!(
        method.strip_prefix("textDocument/"),
        Some(
            "hover"
                | "definition"
                | "references"
                | "documentHighlight"
                | "documentSymbol"
                | "prepareRename"
                | "rename"
                | "completion"
                | "signatureHelp"
                | "formatting"
                | "inlayHint"
        )
    );
    if !known {
        return Err(Refusal::new(METHOD_NOT_FOUND, format!("there is no method `{method}`")));
    }
    let uri = params["textDocument"]["uri"].as_str().ok_or_else(|| invalid("`textDocument.uri` is a text"))?;
    let document = state.document(uri)?.clone();
    let Some(language) = document.language else { return Ok(Value::Null) };
    if method == "textDocument/formatting" {
        return Ok(formatting(state, &document.name, &document.text, language));
    }
    let cancelled = |_| Refusal::new(CANCELLED, "no longer wanted");
    // Files that are not open may have changed, and nobody said so: no byte may be changed by what they were.
    if method == "textDocument/rename" {
        state.forget();
    }
    let Some(analysis) = state.analysis(uri, stop).map_err(cancelled)? else { return Ok(Value::Null) };
    if method == "textDocument/documentSymbol" {
        return Ok(names::symbols(state, &analysis));
    }
    let lines = &document.lines;
    let offset = |position: &Value| {
        lines.offset(&document.text, position).ok_or_else(|| invalid("a position has a line and a character"))
    };
    if method == "textDocument/inlayHint" {
        let range = &params["range"];
        return Ok(hints::hints(state, &analysis, offset(&range["start"])?, offset(&range["end"])?));
    }
    let offset = offset(&params["position"])?;
    // References and renames are of all open documents.
    if matches!(method, "textDocument/references" | "textDocument/rename") {
        let others: Vec<String> = state.unchecked().cloned().collect();
        for other in others {
            state.analysis(&other, stop).map_err(cancelled)?;
        }
    }
    let state = &*state;
    let at = || At::of(state, uri, &analysis, offset);
    let answer = || {
        Ok(match method {
            "textDocument/hover" => hover::hover(state, &at()),
            "textDocument/definition" => names::definition(state, &at()),
            "textDocument/references" => {
                names::references(state, &at(), params["context"]["includeDeclaration"] != false)
            }
            "textDocument/documentHighlight" => names::highlights(state, &at()),
            "textDocument/prepareRename" => rename::prepare(state, &at_now(state, uri, &analysis, offset))?,
            "textDocument/rename" => {
                let new = params["newName"].as_str().ok_or_else(|| invalid("`newName` is a text"))?;
                rename::rename(state, &at_now(state, uri, &analysis, offset), new)?
            }
            "textDocument/completion" => completion::completion(state, uri, &analysis, offset),
            _ => calls::signature_help(&analysis, offset),
        })
    };
    work::stoppable(stop, answer).map_err(cancelled)?
}

/// What is at an offset by the text as it is, whatever was known before.
fn at_now(state: &State, uri: &str, analysis: &Arc<Analysis>, offset: usize) -> At {
    let at = At::of(state, uri, analysis, offset);
    if Arc::ptr_eq(&at.analysis, analysis) {
        at
    } else {
        At { analysis: analysis.clone(), offset, found: vec![], ..at }
    }
}

/// The changes that put a document into canonical form: one, of the lines that differ. Null where it does not parse, which
/// its diagnostics say.
fn formatting(state: &State, name: &str, text: &str, language: Language) -> Value {
    let formatted = match language {
        Language::Autobatch => syntax::format(text),
        Language::Stan => {
            let mut sources = SourceMap::default();
            let main = sources.add(name, text);
            stan::syntax::format(main, &mut sources, &mut state.around.clone())
        }
    };
    let Ok(mut formatted) = formatted else { return Value::Null };
    // Lines end as they do in the document: otherwise all of them would change.
    if 2 * text.matches("\r\n").count() > text.matches('\n').count() {
        formatted = formatted.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    if formatted == text {
        return json!([]);
    }
    let same = |a: &str, b: &str| a == b;
    let (old, new): (Vec<&str>, Vec<&str>) =
        (text.split_inclusive('\n').collect(), formatted.split_inclusive('\n').collect());
    let before = old.iter().zip(&new).take_while(|(a, b)| same(a, b)).count();
    let most = old.len().min(new.len()) - before;
    let behind = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| same(a, b)).count();
    let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let (start, end) = (bytes(&old[..before]), text.len() - bytes(&old[old.len() - behind..]));
    let range = Lines::of(text, state.encoding).range(text, start, end);
    json!([{"range": range, "newText": new[before..new.len() - behind].concat()}])
}
