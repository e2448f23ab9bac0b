//! What can stand at a place: names in scope, functions of the libraries, fields, paths, words of the language.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::base::{FileId, Meaning, SourceMap, Symbol, SymbolKind, path};
use crate::check::{self, StdLibrary, builtin_names, builtin_told};
use crate::stan;
use crate::stan::check::{LibraryFunction, library_function, library_names};
use crate::syntax;

use super::analysis::{Analysis, Language};
use super::at::Kept;
use super::hover::{LACKING, of_builtin, of_symbol};
use super::state::State;

/// The completions at a byte of a document.
pub(super) fn completion(state: &State, uri: &str, analysis: &Arc<Analysis>, offset: usize) -> Value {
    let text = analysis.text();
    let line = &text[text[..offset].rfind('\n').map_or(0, |at| at + 1)..offset];
    let word = line.len() - line.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    let before = &line[..line.len() - word];
    let start = offset - word;
    let place = Place { state, uri, analysis, start, offset };
    let items = match analysis.language {
        _ if in_comment(before) => vec![],
        Language::Autobatch => place.of_autobatch(before),
        Language::Stan => place.of_stan(before),
    };
    json!({"isIncomplete": false, "items": items})
}

fn in_comment(before: &str) -> bool {
    before.match_indices("//").any(|(at, _)| before[..at].matches('"').count().is_multiple_of(2))
}

/// Where something is to be completed.
struct Place<'a> {
    state: &'a State,
    uri: &'a str,
    analysis: &'a Arc<Analysis>,
    /// Where the word begins that is there already.
    start: usize,
    /// Where it is to be completed.
    offset: usize,
}

/// Numbers of the protocol.
const FUNCTION: u32 = 3;
const FIELD: u32 = 5;
const VARIABLE: u32 = 6;
const MODULE: u32 = 9;
const KEYWORD: u32 = 14;
const SNIPPET: u32 = 15;
const FILE: u32 = 17;
const CONSTANT: u32 = 21;
const STRUCT: u32 = 22;
const TYPE: u32 = 25;

fn item(label: &str, kind: u32, detail: &str) -> Value {
    json!({"label": label, "kind": kind, "detail": detail})
}

impl Place<'_> {
    fn of_autobatch(&self, before: &str) -> Vec<Value> {
        let trimmed = before.trim_start();
        if trimmed.starts_with("use ") && before.matches('"').count() == 1 {
            return self.paths(before.rsplit('"').next().unwrap_or_default(), "ab");
        }
        if before.matches('"').count() % 2 == 1 && !before.ends_with('{') {
            return vec![];
        }
        if let Some(base) = before.strip_suffix('.').filter(|base| !base.ends_with('.')) {
            return self.fields(before.len() - base.len());
        }
        if let Some(alias) = before.strip_suffix("::") {
            let alias = alias.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            return self.members(alias);
        }
        if trimmed == "@" {
            return ["elementwise", "sum", "recompute"].map(|name| item(name, KEYWORD, "an attribute")).into();
        }
        let mut items = self.in_scope();
        let mut known: BTreeSet<String> =
            items.iter().filter_map(|item| item["label"].as_str().map(str::to_owned)).collect();
        for (name, symbol) in prelude() {
            if known.insert(name.clone()) {
                items.push(self.of_symbol(symbol));
            }
        }
        for name in builtin_names() {
            if known.insert(name.to_owned()) {
                let detail = builtin_told(name).unwrap_or_default();
                let mut found = item(name, FUNCTION, &detail);
                found["documentation"] = self.documentation(of_builtin(name, &[], Language::Autobatch, true));
                items.push(found);
            }
        }
        items.extend(syntax::token::keywords().map(|word| item(&word, KEYWORD, "")));
        items.extend(["model", "derivative", "generated"].map(|word| item(word, KEYWORD, "")));
        items.extend(["real", "int", "bool"].map(|word| item(word, TYPE, "a type")));
        items.extend(self.snippets(SNIPPETS));
        items
    }

    fn of_stan(&self, before: &str) -> Vec<Value> {
        if let Some(path) = before.trim_start().strip_prefix("#include") {
            return self.paths(path.trim_start().trim_start_matches(['<', '"']), "stan");
        }
        if before.matches('"').count() % 2 == 1 {
            return vec![];
        }
        if before.trim_end().ends_with('~') {
            let stems = library().iter().filter_map(|(name, library)| {
                let stem = name.strip_suffix("_lpdf").or_else(|| name.strip_suffix("_lpmf"))?;
                let mut found = self.of_library(name, library);
                found["label"] = json!(stem);
                Some(found)
            });
            let own = self.analysis.meanings.symbols.values().filter(|symbol| symbol.kind == SymbolKind::Function);
            let own = own.filter_map(|symbol| {
                let stem = symbol.name.strip_suffix("_lpdf").or_else(|| symbol.name.strip_suffix("_lpmf"))?;
                Some(item(stem, FUNCTION, &symbol.told))
            });
            return own.chain(stems).collect();
        }
        let mut items = self.in_scope();
        let known: BTreeSet<String> =
            items.iter().filter_map(|item| item["label"].as_str().map(str::to_owned)).collect();
        let more = library().iter().filter(|(name, _)| !known.contains(*name));
        items.extend(more.map(|(name, library)| self.of_library(name, library)));
        for token in stan::syntax::token::Token::ALL {
            if let Some(word) = token.reserved() {
                items.push(item(word, if token.is_type() { TYPE } else { KEYWORD }, ""));
            }
        }
        items.extend(
            ["transformed data", "transformed parameters", "generated quantities"].map(|w| item(w, KEYWORD, "")),
        );
        items.extend(self.snippets(STAN_SNIPPETS));
        items
    }

    fn of_library(&self, name: &str, library: &LibraryFunction) -> Value {
        let detail = match (library.lacking, library.signatures.first()) {
            (true, _) => LACKING.to_owned(),
            (false, Some(first)) if library.count > 1 => format!("{first} (and {} more)", library.count - 1),
            (false, Some(first)) => first.clone(),
            (false, None) => format!("{name}(function, ...)"),
        };
        item(name, FUNCTION, &detail)
    }

    fn snippets(&self, all: &[(&str, &str)]) -> Vec<Value> {
        if !self.state.snippets {
            return vec![];
        }
        let snippet = |(label, text): &(&str, &str)| {
            let mut found = item(label, SNIPPET, "");
            found["insertTextFormat"] = json!(2);
            found["insertText"] = json!(text);
            found["sortText"] = json!("~");
            found
        };
        all.iter().map(snippet).collect()
    }

    fn documentation(&self, markdown: String) -> Value {
        json!({"kind": "markdown", "value": markdown})
    }

    fn of_symbol(&self, symbol: &Symbol) -> Value {
        let kind = match symbol.kind {
            SymbolKind::Function | SymbolKind::Model => FUNCTION,
            SymbolKind::Struct => STRUCT,
            SymbolKind::Field => FIELD,
            SymbolKind::Constant => CONSTANT,
            SymbolKind::Module => MODULE,
            SymbolKind::Block => KEYWORD,
            SymbolKind::Dimension | SymbolKind::Parameter | SymbolKind::Loop | SymbolKind::Variable => VARIABLE,
        };
        let mut found = item(&symbol.name, kind, &symbol.told);
        if !symbol.doc.is_empty() || symbol.shared.is_some() {
            found["documentation"] = self.documentation(of_symbol(symbol, self.analysis.language, true));
        }
        found
    }

    /// What is declared and can be named here, the innermost of each name: by the text as it is, and where that has
    /// errors by the one before, too.
    fn in_scope(&self) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let text = self.analysis.text();
        let good = self.state.good(self.uri).filter(|_| self.analysis.has_errors());
        for analysis in std::iter::once(self.analysis).chain(good) {
            let Some(offset) = Kept::of(analysis.text(), text).in_old(self.start) else { continue };
            for symbol in visible(analysis, offset) {
                if known.insert(&symbol.name) {
                    found.push(self.of_symbol(symbol));
                }
            }
        }
        found
    }

    /// The fields of the value before the dot.
    fn fields(&self, dot: usize) -> Vec<Value> {
        let end = self.start - dot;
        let (analysis, ty) = match type_before(self.analysis, end) {
            Some(ty) => (self.analysis.clone(), ty),
            None => {
                let Some(found) = self.without_dot(end) else { return vec![] };
                found
            }
        };
        let name = ty.split('[').next().unwrap_or(&ty);
        if let Some(parts) = ty.strip_prefix('(').filter(|_| analysis.language == Language::Autobatch) {
            let count = parts.split(", ").filter(|part| !part.trim_end_matches(')').is_empty()).count();
            return (0..count).map(|i| item(&i.to_string(), FIELD, "a part of the tuple")).collect();
        }
        // By the declaration of what has the type, where that is a name: two modules may have structs of one name.
        let named = analysis.meanings.at(analysis.main, (end as u32).saturating_sub(1));
        let of = named.iter().find_map(|(_, meaning)| match meaning {
            Meaning::Declared(declared) => analysis.symbol(*declared)?.of,
            _ => None,
        });
        let own = of.and_then(|of| analysis.symbol(of)).filter(|symbol| symbol.name == name);
        let mut structs = analysis.meanings.symbols.values();
        let found = own.or_else(|| structs.find(|s| s.kind == SymbolKind::Struct && s.name == name));
        let members = found.iter().flat_map(|symbol| &symbol.members).filter_map(|span| analysis.symbol(*span));
        members.map(|symbol| self.of_symbol(symbol)).collect()
    }

    /// The text without what is being written behind an expression, and the type of that.
    fn without_dot(&self, end: usize) -> Option<(Arc<Analysis>, String)> {
        let text = self.analysis.text();
        let rest = &text[self.start..];
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let line = rest.lines().next().unwrap_or_default();
        // A statement that is being written has no end yet.
        let semicolon = if line.trim().is_empty() { ";" } else { "" };
        let patched: Arc<str> = format!("{}{semicolon}{rest}", &text[..end]).into();
        let name = self.analysis.name();
        let analysis = Analysis::of(name, &patched, self.analysis.language, &self.state.around);
        let ty = type_before(&analysis, end)?;
        Some((Arc::new(analysis), ty))
    }

    /// The public names of a module.
    fn members(&self, alias: &str) -> Vec<Value> {
        let good = self.state.good(self.uri);
        let members = std::iter::once(self.analysis).chain(good).find_map(|analysis| analysis.module_members(alias));
        members.into_iter().flatten().map(|symbol| self.of_symbol(symbol)).collect()
    }

    /// Files that a path can go on with, and modules that ship.
    fn paths(&self, written: &str, ending: &str) -> Vec<Value> {
        let (folder, begun) = written.rsplit_once('/').unwrap_or(("", written));
        let beside = path::beside(self.analysis.name(), folder);
        let includes = self.state.around.includes.folders.iter().filter(|_| ending == "stan");
        let folders = std::iter::once(beside).chain(includes.map(|other| other.join(folder)));
        let mut found: Vec<Value> = Vec::new();
        for entry in folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is = |kind: &str| Path::new(&name).extension().is_some_and(|e| e == kind);
            if entry.path().is_dir() && !name.starts_with('.') {
                found.push(item(&format!("{name}/"), FILE, "a folder"));
            } else if (is(ending) || (ending == "stan" && is("stanfunctions")))
                && entry.path() != Path::new(self.analysis.name())
            {
                found.push(item(&name, FILE, ""));
            }
        }
        if ending == "ab" && matches!(folder, "" | "std") {
            let before = if folder.is_empty() { "std/" } else { "" };
            found
                .extend(StdLibrary::paths().map(|path| item(&format!("{before}{path}"), FILE, "ships with autobatch")));
        }
        found.sort_by_key(|item| item["label"].as_str().map(str::to_owned));
        found.dedup_by_key(|item| item["label"].clone());
        // What editors take for the word does not have the dots and dashes of names of files.
        let lines = self.state.lines(self.analysis, self.analysis.main);
        let range = lines.range(self.analysis.text(), self.start - begun.len(), self.offset);
        for item in &mut found {
            item["textEdit"] = json!({"range": range, "newText": item["label"]});
        }
        found
    }
}

/// What can be named at an offset, the innermost first.
pub(super) fn visible(analysis: &Analysis, offset: usize) -> Vec<&Symbol> {
    let hidden: BTreeSet<(u32, u32)> = (analysis.meanings.symbols.values())
        .filter(|symbol| symbol.kind == SymbolKind::Module)
        .flat_map(|module| module.members.iter().map(|span| (span.file.0, span.start)))
        .collect();
    let at = offset as u32;
    let mut found: Vec<(u32, &Symbol)> = Vec::new();
    for (span, symbol) in &analysis.meanings.symbols {
        let own = span.file == analysis.main;
        match symbol.scope {
            _ if matches!(symbol.kind, SymbolKind::Field | SymbolKind::Block) => {}
            Some(scope) if own && scope.start <= at && at <= scope.end && span.end < at => {
                found.push((scope.end - scope.start, symbol));
            }
            Some(_) => {}
            None if own => found.push((u32::MAX, symbol)),
            None if analysis.ships(span.file) || hidden.contains(&(span.file.0, span.start)) => {}
            None if symbol.public || analysis.language == Language::Stan => found.push((u32::MAX, symbol)),
            None => {}
        }
    }
    // Of two of one name in the same scope the later one is meant.
    found.reverse();
    found.sort_by_key(|(size, _)| *size);
    found.into_iter().map(|(_, symbol)| symbol).collect()
}

/// The type of the longest expression that ends at a byte.
fn type_before(analysis: &Analysis, end: usize) -> Option<String> {
    let ends = analysis.meanings.types.iter().filter(|(s, _)| s.file == analysis.main && s.end as usize == end);
    let text = analysis.text();
    // `a + b.c` ends there, too, but the dot is of `b`.
    let joined = |start: u32| {
        let (mut depth, mut joined) = (0i32, true);
        for c in text[start as usize..end].chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                c if depth == 0 && !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':')) => joined = false,
                _ => {}
            }
        }
        joined
    };
    ends.filter(|(span, _)| joined(span.start)).min_by_key(|(span, _)| span.start).map(|(_, ty)| ty.clone())
}

/// What every program sees of the library, by name.
fn prelude() -> &'static [(String, Symbol)] {
    static PRELUDE: LazyLock<Vec<(String, Symbol)>> = LazyLock::new(|| {
        let mut sources = SourceMap::default();
        // Its names are those of the prelude's own module, and of what that uses.
        let main = sources.add("std/prelude.ab", StdLibrary::text("prelude.ab").unwrap_or_default());
        let (_, _, meanings) = check::analyse(main, &mut sources, &mut StdLibrary);
        let seen = |file: FileId| sources.file(file).name.starts_with("std/");
        let public = meanings.symbols.into_iter().filter(|(span, symbol)| {
            symbol.public && symbol.scope.is_none() && symbol.kind != SymbolKind::Field && seen(span.file)
        });
        public.map(|(_, symbol)| (symbol.name.clone(), symbol)).collect()
    });
    &PRELUDE
}

/// The functions of Stan's library.
pub(super) fn library() -> &'static [(&'static str, LibraryFunction)] {
    static LIBRARY: LazyLock<Vec<(&str, LibraryFunction)>> = LazyLock::new(|| {
        let hidden = |name: &str| stan::syntax::token::is_reserved(name);
        let names = library_names().into_iter().filter(|name| !hidden(name));
        names.filter_map(|name| Some((name, library_function(name)?))).collect()
    });
    &LIBRARY
}

/// What every program sees of the library by this name.
pub(super) fn prelude_symbol(name: &str) -> Option<&'static Symbol> {
    prelude().iter().find(|(known, _)| known == name).map(|(_, symbol)| symbol)
}

const SNIPPETS: &[(&str, &str)] = &[
    ("fn ... {}", "fn ${1:name}(${2:x: real}) -> ${3:real} {\n    $0\n}"),
    ("for ... {}", "for ${1:i} in ${2:0}..${3:n} {\n    $0\n}"),
    ("while ... {}", "while ${1:condition} {\n    $0\n}"),
    ("if ... else {}", "if ${1:condition} {\n    $2\n} else {\n    $0\n}"),
    ("model ... {}", "model ${1:name}(${2:mu: real}, shared ${3:y}: real[n]) {\n    $0\n}"),
];

const STAN_SNIPPETS: &[(&str, &str)] = &[
    ("data {}", "data {\n  $0\n}"),
    ("parameters {}", "parameters {\n  $0\n}"),
    ("model {}", "model {\n  $0\n}"),
    ("for (...) {}", "for (${1:i} in ${2:1} : ${3:N}) {\n  $0\n}"),
    ("if (...) {}", "if (${1:condition}) {\n  $0\n}"),
];
