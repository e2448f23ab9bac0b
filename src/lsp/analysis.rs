//! A document as the checkers see it, with all that they found.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Diagnostic, FileId, Meaning, Meanings, SourceMap, Span, Symbol, SymbolKind};
use crate::check::{self, FileLoader, Loader, StdLibrary};
use crate::stan;
use crate::stan::syntax::{IncludeFolders, Includes};

/// The language of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Language {
    /// Our own.
    Autobatch,
    /// Stan.
    Stan,
}

impl Language {
    /// The language of a file by the ending of its name, or else by what the client calls it.
    pub(super) fn of(name: &str, id: &str) -> Option<Self> {
        match Path::new(name).extension().and_then(|ending| ending.to_str()) {
            Some("ab") => Some(Self::Autobatch),
            Some("stan" | "stanfunctions") => Some(Self::Stan),
            _ if id == "autobatch" => Some(Self::Autobatch),
            _ if id == "stan" => Some(Self::Stan),
            _ => None,
        }
    }

    /// As Markdown names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Autobatch => "autobatch",
            Self::Stan => "stan",
        }
    }
}

/// Texts that are open in the client, by the names of their files: they count instead of what is on the disk.
pub(super) type OpenTexts = HashMap<String, Arc<str>>;

/// What is read besides the document itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    /// Open texts.
    pub(super) open: OpenTexts,
    /// Where included files of Stan are looked for, too.
    pub(super) includes: IncludeFolders,
}

impl Loader for Surroundings {
    fn load(&mut self, from: Option<&str>, path: &str) -> Result<(String, Arc<str>), String> {
        let name = FileLoader::file(from, path).display().to_string();
        match self.open.get(&name) {
            Some(text) => Ok((name, text.clone())),
            None => FileLoader.load(from, path),
        }
    }
}

impl Includes for Surroundings {
    fn load(&mut self, from: &str, path: &str) -> Result<(String, Arc<str>), String> {
        let is_there = |file: &Path| self.open.contains_key(&file.display().to_string()) || file.is_file();
        let name = self.includes.find(from, path, is_there)?.display().to_string();
        match self.open.get(&name) {
            Some(text) => Ok((name, text.clone())),
            None => self.includes.load(from, path),
        }
    }
}

/// A document that was checked.
#[derive(Debug)]
pub(super) struct Analysis {
    pub(super) language: Language,
    pub(super) sources: SourceMap,
    /// The document itself.
    pub(super) main: FileId,
    /// What the command `check` says.
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) meanings: Meanings,
}

impl Analysis {
    /// Checks a text that goes by a name.
    pub(super) fn of(name: &str, text: &Arc<str>, language: Language, around: &Surroundings) -> Self {
        let mut sources = SourceMap::default();
        let main = sources.add(name, text.clone());
        let mut around = around.clone();
        let (diagnostics, meanings) = match language {
            Language::Autobatch => {
                let (_, diagnostics, meanings) = check::analyse(main, &mut sources, &mut around);
                (diagnostics, meanings)
            }
            Language::Stan => {
                let (program, mut diagnostics) = stan::syntax::parse(main, &mut sources, &mut around);
                let (checked, found) = stan::check::check(&program, &sources);
                let mut meanings = stan::check::meanings(&program, &checked, &sources);
                included(main, &sources, &mut around, &mut meanings);
                // Of a program that does not parse nothing else is told: the rest would follow from that.
                if diagnostics.iter().all(|diagnostic| !diagnostic.is_error()) {
                    diagnostics.extend(found);
                }
                (diagnostics, meanings)
            }
        };
        Self { language, sources, main, diagnostics, meanings }
    }

    pub(super) fn text(&self) -> &Arc<str> {
        &self.sources.file(self.main).text
    }

    pub(super) fn name(&self) -> &str {
        &self.sources.file(self.main).name
    }

    pub(super) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Whether the text of this file was read.
    pub(super) fn reads(&self, name: &str) -> bool {
        self.sources.named(name).is_some()
    }

    /// Whether a file is one of the library that ships.
    pub(super) fn ships(&self, file: FileId) -> bool {
        let name = &self.sources.file(file).name;
        name.starts_with("std/") && StdLibrary::text(name).is_some()
    }

    pub(super) fn symbol(&self, declared: Span) -> Option<&Symbol> {
        self.meanings.symbols.get(&declared)
    }

    /// What can be named of the module that goes by an alias.
    pub(super) fn module_members(&self, alias: &str) -> Option<Vec<&Symbol>> {
        let mut modules = self.meanings.symbols.values().filter(|symbol| symbol.kind == SymbolKind::Module);
        let module = modules.find(|symbol| symbol.name == alias)?;
        Some(module.members.iter().filter_map(|span| self.symbol(*span)).collect())
    }

    /// The text of a span.
    pub(super) fn source(&self, span: Span) -> &str {
        self.sources.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

/// Notes the files that a program of Stan includes.
fn included(main: FileId, sources: &SourceMap, around: &mut Surroundings, meanings: &mut Meanings) {
    let file = sources.file(main);
    for (start, end, path) in stan::syntax::includes(&file.text) {
        let Ok((name, _)) = Includes::load(around, &file.name, path) else { continue };
        if let Some(target) = sources.named(&name) {
            meanings.uses.push((Span::new(main, start, end), Meaning::File(target)));
        }
    }
    meanings.sort();
}
