//! Another name for something, everywhere. The names that change are those that the checker found to mean it; then all
//! programs that have one are checked again with the new name. A rename is refused unless they have no errors, and every
//! name in them means what it meant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::{Diagnostic, Meaning, Span, Symbol, SymbolKind, work};
use crate::stan;
use crate::syntax;

use super::analysis::{Analysis, Language, Surroundings};
use super::at::At;
use super::columns::Lines;
use super::names::{Place, places};
use super::state::State;
use super::wire::Refusal;

/// The most files that are looked at for uses of something that other files can name.
const MOST_FILES: usize = 2000;

/// The name that would change.
///
/// # Errors
/// Where there is none, or none that can have another.
pub(super) fn prepare(state: &State, at: &At) -> Result<Value, Refusal> {
    let (span, _, symbol) = target(at)?;
    let text = at.analysis.text();
    let range = Lines::of(text, state.encoding).range(text, span.start as usize, span.end as usize);
    Ok(json!({"range": range, "placeholder": symbol.name}))
}

/// What is at a place, its declaration, and what it is.
fn target(at: &At) -> Result<(Span, Span, &Symbol), Refusal> {
    let analysis = &at.analysis;
    if let Some(word) = keyword(analysis, at.offset) {
        return Err(Refusal::told(format!("`{word}` is a word of the language: it cannot be renamed")));
    }
    let (span, declared) = match at.meant() {
        Some((span, Meaning::Declared(declared))) => (span, declared),
        Some((_, Meaning::Builtin { name, .. })) => {
            let whose = match analysis.language {
                Language::Autobatch => "the language",
                Language::Stan => "Stan's library",
            };
            return Err(Refusal::told(format!("`{name}` is a function of {whose}: it cannot be renamed")));
        }
        Some((_, Meaning::File(_))) => return Err(Refusal::told("this is the name of a file: rename the file")),
        None => return Err(Refusal::told("there is no name here that is known")),
    };
    let symbol = analysis.symbol(declared).ok_or_else(|| Refusal::told("there is no name here that is known"))?;
    if symbol.kind == SymbolKind::Block {
        return Err(Refusal::told(format!("`{}` is a word of the language: it cannot be renamed", symbol.name)));
    }
    if analysis.ships(declared.file) {
        let name = &symbol.name;
        return Err(Refusal::told(format!("`{name}` is of the library that ships: it cannot be renamed")));
    }
    if let Some(error) = analysis.diagnostics.iter().find(|d| d.is_error()) {
        let why = told(analysis, error);
        return Err(Refusal::told(format!("the program has errors, so not all places of the name are known: {why}")));
    }
    Ok((span, declared, symbol))
}

/// An error with its line.
fn told(analysis: &Analysis, error: &Diagnostic) -> String {
    match error.labels.first() {
        Some(label) => {
            let (line, _) = analysis.sources.line_column(label.span);
            let name = &analysis.sources.file(label.span.file).name;
            let file = if label.span.file == analysis.main { String::new() } else { format!("{name}, ") };
            format!("{} ({file}line {line})", error.message)
        }
        None => error.message.clone(),
    }
}

/// The keyword at an offset.
fn keyword(analysis: &Analysis, offset: usize) -> Option<&str> {
    let text = analysis.text();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = text[..offset].trim_end_matches(is_word).len();
    let word: &str = text.get(start..)?.split(|c: char| !is_word(c)).next()?;
    is_keyword(word, analysis.language).then_some(word)
}

/// Whether a word is one of the language.
fn is_keyword(word: &str, language: Language) -> bool {
    match language {
        Language::Autobatch => syntax::token::is_keyword(word) || matches!(word, "real" | "int" | "bool"),
        Language::Stan => stan::syntax::token::is_reserved(word),
    }
}

/// All changes that give what is at a place another name.
///
/// # Errors
/// Where that cannot be done, or would change what something means.
pub(super) fn rename(state: &State, at: &At, new: &str) -> Result<Value, Refusal> {
    let (_, declared, symbol) = target(at)?;
    let language = at.analysis.language;
    check_name(new, language)?;
    if new == symbol.name {
        return Ok(json!({"changes": {}}));
    }
    let around = others(state, at, declared, symbol)?;
    let edits = edits(state, at, &around, declared, symbol, new)?;
    verify(state, at, &around, &edits, new)?;
    let (mut changes, mut versioned) = (serde_json::Map::new(), Vec::new());
    for (name, edits) in &edits.of_files {
        let (uri, text) = file(state, at, &around, name)?;
        let lines = Lines::of(&text, state.encoding);
        let shown = edits.iter().map(
            |edit| json!({"range": lines.range(&text, edit.start as usize, edit.end as usize), "newText": edit.text}),
        );
        let shown: Vec<Value> = shown.collect();
        if state.versioned_edits {
            let version = state.documents.get(&uri).map_or(&Value::Null, |document| &document.version);
            versioned.push(json!({"textDocument": {"uri": uri, "version": version}, "edits": shown}));
        } else {
            changes.insert(uri, json!(shown));
        }
    }
    Ok(if state.versioned_edits { json!({"documentChanges": versioned}) } else { json!({"changes": changes}) })
}

fn check_name(new: &str, language: Language) -> Result<(), Refusal> {
    let name =
        new.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !new.starts_with(|c: char| c.is_ascii_digit());
    if new.is_empty() || !name || new == "_" {
        let message = format!("`{new}` is no name: names are made of the letters a to z, digits and `_`");
        return Err(Refusal::told(message));
    }
    if is_keyword(new, language) {
        return Err(Refusal::told(format!("`{new}` is a word of the language: it cannot be a name")));
    }
    Ok(())
}

/// Analyses besides that of the document in which the name may stand: of documents that are open, and of programs in the
/// folders around that name something of the same name and read the file.
///
/// # Errors
/// Where there are too many to look at, and where one has errors, so that not all places in it are known.
fn others(state: &State, at: &At, declared: Span, symbol: &Symbol) -> Result<Vec<Arc<Analysis>>, Refusal> {
    let language = at.analysis.language;
    let home = at.analysis.sources.file(declared.file).name.clone();
    let open = state.checked().map(|(_, other)| other);
    let open = open.filter(|other| other.name() != at.analysis.name() && other.language == language);
    let mut found: Vec<Arc<Analysis>> = open.filter(|other| may_name(other, &home, symbol)).cloned().collect();
    // In Stan all that is declared outside of functions can be named by what includes the file.
    if symbol.public || symbol.scope.is_none() && language == Language::Stan {
        let known: BTreeSet<&str> =
            state.documents.values().map(|document| &document.name[..]).chain([at.analysis.name()]).collect();
        let folder = Path::new(&home).parent().map(Path::to_owned);
        let mut files = Vec::new();
        for folder in folder.iter().chain(&state.folders) {
            programs(folder, language, &mut files);
        }
        files.sort();
        files.dedup();
        if files.len() > MOST_FILES {
            return Err(Refusal::told(format!(
                "there are more than {MOST_FILES} programs in the folders that are open, too many to look for `{}` in: \
                 open the folder of those that use it",
                symbol.name
            )));
        }
        for file in files.into_iter().filter(|file| !known.contains(&file[..])) {
            work::add(1);
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            if has_word(&text, symbol) {
                let other = Analysis::of(&file, &Arc::from(text), language, &state.around);
                found.extend(may_name(&other, &home, symbol).then(|| Arc::new(other)));
            }
        }
    }
    // What others include is no program of its own.
    let included = |name: &str| {
        let mut programs = found.iter().chain([&at.analysis]).filter(|other| other.name() != name);
        programs.any(|other| other.reads(name))
    };
    if language == Language::Stan {
        found = found.iter().filter(|other| !included(other.name())).cloned().collect();
    }
    for other in &found {
        if let Some(error) = other.diagnostics.iter().find(|d| d.is_error()) {
            let (name, why) = (other.name(), told(other, error));
            let message = format!("{name} has errors, so not all places of the name in it are known: {why}");
            return Err(Refusal::told(message));
        }
    }
    Ok(found)
}

/// Whether something in the file `home` may have a name in what was analysed. One whose errors come before what it reads
/// may read the file.
fn may_name(other: &Analysis, home: &str, symbol: &Symbol) -> bool {
    let file = Path::new(home).file_name().and_then(|name| name.to_str()).unwrap_or(home);
    other.reads(home) || other.has_errors() && other.text().contains(file) && has_word(other.text(), symbol)
}

/// Whether the name stands in a text, in Stan also without what may be left out at its end.
fn has_word(text: &str, symbol: &Symbol) -> bool {
    let stem = ["_lpdf", "_lpmf"].iter().find_map(|ending| symbol.name.strip_suffix(ending));
    let is_it = |word: &str| word == symbol.name || stem.is_some_and(|stem| word.starts_with(stem));
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_it)
}

/// The programs of a language in a folder and those below it, one more than may be at most; folders of tools and of what is
/// built are passed over.
fn programs(folder: &Path, language: Language, into: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        work::add(1);
        if into.len() > MOST_FILES {
            return;
        }
        let path = entry.path();
        let name = entry.file_name();
        let hidden =
            name.to_str().is_none_or(|name| name.starts_with('.') || name == "target" || name == "node_modules");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden => programs(&path, language, into),
            Ok(kind) if kind.is_file() => {
                let name = path.display().to_string();
                if Language::of(&name, "") == Some(language) {
                    into.push(name);
                }
            }
            _ => {}
        }
    }
}

/// A change of a text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Edit {
    start: u32,
    end: u32,
    text: String,
    /// Of a name that is put before another one, which was that of a field, too.
    put: Option<Put>,
}

/// A name of a field that is put before the name that was short for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Put {
    /// Where the other name begins.
    before: u32,
    /// Whether what is renamed is the field.
    renamed: bool,
}

/// All changes of a rename.
struct Edits {
    /// What is renamed.
    declared: Place,
    /// By the names of files, in the order of places.
    of_files: BTreeMap<String, Vec<Edit>>,
}

fn edits(
    state: &State,
    at: &At,
    around: &[Arc<Analysis>],
    declared: Span,
    symbol: &Symbol,
    new: &str,
) -> Result<Edits, Refusal> {
    let mut all: BTreeSet<Place> = places(state, &at.analysis, declared);
    let home = &at.analysis.sources.file(declared.file).name;
    for other in around {
        let Some(file) = other.sources.named(home) else { continue };
        let uses = other.meanings.places_of(Span { file, ..declared });
        all.extend(uses.into_iter().map(|span| (other.sources.file(span.file).name.clone(), span.start, span.end)));
    }
    let analyses: Vec<&Analysis> = around.iter().map(|other| &**other).chain([&*at.analysis]).collect();
    let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    for (name, start, end) in all {
        let Some(analysis) = analyses.iter().find(|analysis| analysis.reads(&name)) else { continue };
        let Some(file) = analysis.sources.named(&name) else { continue };
        let span = Span { file, start, end };
        let written = spelled(analysis.source(span), &symbol.name, new)?;
        edits.entry(name).or_default().extend(edit(analysis, span, symbol, &written));
    }
    Ok(Edits { declared: (home.clone(), declared.start, declared.end), of_files: edits })
}

/// The new name where the old one is written so: in Stan `foo` and `foo_lupdf` mean `foo_lpdf`.
fn spelled(written: &str, old: &str, new: &str) -> Result<String, Refusal> {
    if written == old {
        return Ok(new.to_owned());
    }
    for (ending, dropped) in [("_lpdf", "_lupdf"), ("_lpmf", "_lupmf")] {
        let Some(stem) = old.strip_suffix(ending) else { continue };
        let Some(new_stem) = new.strip_suffix(ending) else {
            return Err(Refusal::told(format!(
                "`{old}` is called `{written}`, too: the new name must end in `{ending}`"
            )));
        };
        match written.strip_prefix(stem) {
            Some("") => return Ok(new_stem.to_owned()),
            Some(end) if end == dropped => return Ok(format!("{new_stem}{dropped}")),
            _ => {}
        }
    }
    Err(Refusal::told(format!("`{old}` is called `{written}`, too")))
}

/// The changes of one name. A name that is short for that of a field, too, gets the other one before it.
fn edit(analysis: &Analysis, span: Span, symbol: &Symbol, new: &str) -> Vec<Edit> {
    let plain = Edit { start: span.start, end: span.end, text: new.to_owned(), put: None };
    let Some(place) = analysis.meanings.short.get(&span) else { return vec![plain] };
    // An argument of `emit` has a field of this name, which nothing declares.
    let field = symbol.kind == SymbolKind::Field && analysis.meanings.at(span.file, span.start).len() > 1;
    let name = if field { new } else { analysis.source(span) };
    let put = Put { before: span.start, renamed: field };
    let put = Edit { start: *place, end: *place, text: format!("{name}: "), put: Some(put) };
    if field { vec![put] } else { vec![put, plain] }
}

/// The address and the text of a file that changes.
fn file(state: &State, at: &At, around: &[Arc<Analysis>], name: &str) -> Result<(String, Arc<str>), Refusal> {
    let analyses = std::iter::once(&at.analysis).chain(around);
    let found = analyses.filter_map(|analysis| Some((analysis, analysis.sources.named(name)?))).next();
    let uri = found.and_then(|(analysis, file)| state.uri(analysis, file));
    match (uri, found) {
        (Some(uri), Some((analysis, file))) => Ok((uri, analysis.sources.file(file).text.clone())),
        _ => Err(Refusal::told(format!("{name} cannot be changed"))),
    }
}

/// Checks all programs again, and compares what names mean.
fn verify(state: &State, at: &At, around: &[Arc<Analysis>], edits: &Edits, new: &str) -> Result<(), Refusal> {
    let mut texts = Surroundings::clone(&state.around);
    for name in edits.of_files.keys() {
        let (_, text) = file(state, at, around, name)?;
        texts.open.insert(name.clone(), Arc::from(edits.applied(name, &text)));
    }
    for before in std::iter::once(&at.analysis).chain(around) {
        let text = texts.open.get(before.name()).cloned().unwrap_or_else(|| before.text().clone());
        let after = Analysis::of(before.name(), &text, before.language, &texts);
        if let Some(error) = after.diagnostics.iter().find(|d| d.is_error()) {
            let why = told(&after, error);
            return Err(Refusal::told(format!("with the name `{new}` the program has an error: {why}")));
        }
        let (wanted, found) = (edits.moved(before), meant(&after));
        if let Some((name, start, ..)) = found.symmetric_difference(&wanted).next() {
            let analysis = if after.reads(name) { &after } else { before };
            let line = analysis.sources.named(name).map(|file| {
                let span = Span { file, start: *start as u32, end: *start as u32 };
                analysis.sources.line_column(span).0
            });
            let line = line.map_or_else(String::new, |line| format!(" in line {line}"));
            return Err(Refusal::told(format!("`{new}` is taken{line}: names would mean something else than they do")));
        }
    }
    Ok(())
}

/// A use of a name, and what it means: file and byte of both; builtin functions by their names.
type Use = (String, usize, String, usize);

fn meant(analysis: &Analysis) -> BTreeSet<Use> {
    let name = |span: &Span| analysis.sources.file(span.file).name.clone();
    let uses = analysis.meanings.uses.iter().map(|(span, meaning)| match meaning {
        Meaning::Declared(to) => (name(span), span.start as usize, name(to), to.start as usize),
        Meaning::Builtin { name: builtin, .. } => (name(span), span.start as usize, format!("%{builtin}"), 0),
        Meaning::File(file) => (name(span), span.start as usize, analysis.sources.file(*file).name.clone(), 0),
    });
    uses.collect()
}

impl Edits {
    fn applied(&self, name: &str, text: &str) -> String {
        let mut out = text.to_owned();
        for edit in self.of_files.get(name).into_iter().flatten().rev() {
            out.replace_range(edit.start as usize..edit.end as usize, &edit.text);
        }
        out
    }

    /// Where a name goes: that which is renamed, or another one.
    fn place(&self, name: &str, start: u32, renamed: bool) -> usize {
        let mut moved = start as usize;
        for edit in self.of_files.get(name).into_iter().flatten() {
            let own = edit.put.filter(|put| put.before == start);
            if own.is_some_and(|put| put.renamed == renamed) {
                // It is the name that is put there; all changes before are done.
                return moved - (start - edit.start) as usize;
            } else if edit.start < start || (edit.start == start && edit.put.is_some()) {
                moved = (moved + edit.text.len()) - (edit.end - edit.start) as usize;
            }
        }
        moved
    }

    /// What names should mean afterwards, and where.
    fn moved(&self, before: &Analysis) -> BTreeSet<Use> {
        let name = |span: Span| before.sources.file(span.file).name.clone();
        let is_renamed = |to: Span| self.declared == (name(to), to.start, to.end);
        let uses = before.meanings.uses.iter().map(|(span, meaning)| match meaning {
            Meaning::Declared(to) => {
                let renamed = is_renamed(*to);
                let from = self.place(&name(*span), span.start, renamed);
                (name(*span), from, name(*to), self.place(&name(*to), to.start, renamed))
            }
            Meaning::Builtin { name: builtin, .. } => {
                (name(*span), self.place(&name(*span), span.start, false), format!("%{builtin}"), 0)
            }
            Meaning::File(file) => {
                let file = before.sources.file(*file).name.clone();
                (name(*span), self.place(&name(*span), span.start, false), file, 0)
            }
        });
        uses.collect()
    }
}
