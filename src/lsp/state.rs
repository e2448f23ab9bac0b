//! The documents that are open, and what is known of them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::base::work::{self, Stopped};
use crate::base::{FileId, Span};

use super::analysis::{Analysis, Language, Surroundings};
use super::columns::{Encoding, Lines};
use super::wire::{INVALID_PARAMS, Refusal};
use super::{library, uri};

/// A document that is open.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// The path of its file; its address where it has none.
    pub(super) name: String,
    /// `None` for a text of another language, about which there is nothing to say.
    pub(super) language: Option<Language>,
    pub(super) version: Value,
    pub(super) text: Arc<str>,
    pub(super) lines: Arc<Lines>,
}

/// What the server knows.
#[derive(Default)]
pub(super) struct State {
    /// By address.
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) around: Surroundings,
    /// Where copies of the modules that ship are.
    pub(super) library: Option<PathBuf>,
    /// Folders that the client works in.
    pub(super) folders: Vec<PathBuf>,
    pub(super) encoding: Encoding,
    /// Whether the client shows Markdown.
    pub(super) markdown: bool,
    /// Whether the client fills in what a completion leaves open.
    pub(super) snippets: bool,
    /// Whether the client takes changes of a version of a document, and no other.
    pub(super) versioned_edits: bool,
    /// Of the texts as they are now, by address.
    analyses: HashMap<String, Arc<Analysis>>,
    /// Documents whose check failed, by address: they are checked again when they change.
    given_up: std::collections::HashSet<String>,
    /// The last ones without errors, by address.
    good: HashMap<String, Arc<Analysis>>,
}

impl State {
    /// Takes what the client says of itself.
    pub(super) fn initialize(&mut self, params: &Value) {
        self.encoding = Encoding::chosen(&params["capabilities"]["general"]["positionEncodings"]);
        let formats = &params["capabilities"]["textDocument"]["hover"]["contentFormat"];
        self.markdown = formats.as_array().is_some_and(|formats| formats.iter().any(|format| format == "markdown"));
        let item = &params["capabilities"]["textDocument"]["completion"]["completionItem"];
        self.snippets = item["snippetSupport"] == true;
        self.versioned_edits = params["capabilities"]["workspace"]["workspaceEdit"]["documentChanges"] == true;
        let folders = params["workspaceFolders"].as_array().map_or(&[][..], Vec::as_slice);
        let folders = folders.iter().map(|folder| &folder["uri"]).chain([&params["rootUri"]]);
        self.folders = folders.filter_map(|uri| uri::path_of(uri.as_str()?)).map(PathBuf::from).collect();
        self.folders.dedup();
        let library = params["initializationOptions"]["libraryFolder"].as_str().map(PathBuf::from);
        self.library = library.or_else(library::folder);
        let includes = params["initializationOptions"]["includePath"].as_array().map_or(&[][..], Vec::as_slice);
        self.around.includes.folders = includes.iter().filter_map(Value::as_str).map(PathBuf::from).collect();
    }

    pub(super) fn open(&mut self, uri: &str, id: &str, version: Value, text: &str) {
        let path = uri::path_of(uri);
        let ships = |path: &str| library::name_of(self.library.as_deref()?, path);
        let name = path.map_or_else(|| uri.to_owned(), |path| ships(&path).unwrap_or(path));
        let language = Language::of(&name, id);
        let lines = Arc::new(Lines::of(text, self.encoding));
        let document = Document { name, language, version, text: Arc::from(text), lines };
        self.around.open.insert(document.name.clone(), document.text.clone());
        self.changed(&document.name);
        self.documents.insert(uri.to_owned(), document);
    }

    /// Puts changes into a text, one after the other: of the whole text, or of a range of it.
    ///
    /// # Errors
    /// When the document is not open, or a change is none.
    pub(super) fn change(&mut self, uri: &str, version: Value, changes: &[Value]) -> Result<(), Refusal> {
        let encoding = self.encoding;
        let document = self.documents.get_mut(uri).ok_or_else(|| not_open(uri))?;
        let mut text = document.text.to_string();
        for change in changes {
            let new = change["text"].as_str().ok_or_else(|| invalid("a change has a text"))?;
            if change["range"].is_null() {
                new.clone_into(&mut text);
                continue;
            }
            let lines = Lines::of(&text, encoding);
            let start = lines.offset(&text, &change["range"]["start"]).ok_or_else(|| invalid("no position"))?;
            let end = lines.offset(&text, &change["range"]["end"]).ok_or_else(|| invalid("no position"))?;
            text.replace_range(start.min(end)..start.max(end), new);
        }
        document.lines = Arc::new(Lines::of(&text, encoding));
        document.text = Arc::from(text);
        document.version = version;
        let (name, text) = (document.name.clone(), document.text.clone());
        self.around.open.insert(name.clone(), text);
        self.changed(&name);
        Ok(())
    }

    pub(super) fn close(&mut self, uri: &str) {
        if let Some(document) = self.documents.remove(uri) {
            self.around.open.remove(&document.name);
            self.analyses.remove(uri);
            self.good.remove(uri);
            self.changed(&document.name);
        }
    }

    /// Forgets what was found of documents that read a file.
    fn changed(&mut self, name: &str) {
        // A file that could not be read may be there now.
        let lacks = |analysis: &Analysis| analysis.diagnostics.iter().any(|d| matches!(d.code.0, "E0105" | "E2019"));
        self.given_up.clear();
        self.analyses.retain(|_, analysis| !analysis.reads(name) && !lacks(analysis));
    }

    /// Forgets what was found of all documents: files may have changed.
    pub(super) fn forget(&mut self) {
        self.analyses.clear();
    }

    /// Documents whose text as it is now was not checked.
    pub(super) fn unchecked(&self) -> impl Iterator<Item = &String> {
        let known = |uri: &&String| !self.analyses.contains_key(*uri) && !self.given_up.contains(*uri);
        self.documents.iter().filter(|(_, document)| document.language.is_some()).map(|(uri, _)| uri).filter(known)
    }

    /// Leaves a document unchecked until something changes.
    pub(super) fn give_up(&mut self, uri: &str) {
        self.given_up.insert(uri.to_owned());
    }

    pub(super) fn document(&self, uri: &str) -> Result<&Document, Refusal> {
        self.documents.get(uri).ok_or_else(|| not_open(uri))
    }

    /// What is known of a document, which is found out now if it is not known; `None` for a text of another language.
    ///
    /// # Errors
    /// [`Stopped`] when the flag is set on the way.
    pub(super) fn analysis(&mut self, uri: &str, stop: &Arc<AtomicBool>) -> Result<Option<Arc<Analysis>>, Stopped> {
        if let Some(known) = self.analyses.get(uri) {
            return Ok(Some(known.clone()));
        }
        let Some(document) = self.documents.get(uri) else { return Ok(None) };
        let Some(language) = document.language else { return Ok(None) };
        let analyse = || Analysis::of(&document.name, &document.text, language, &self.around);
        let analysis = Arc::new(work::stoppable(stop, analyse)?);
        if !analysis.has_errors() {
            self.good.insert(uri.to_owned(), analysis.clone());
        }
        self.analyses.insert(uri.to_owned(), analysis.clone());
        Ok(Some(analysis))
    }

    /// What was known of a document when it had no errors last.
    pub(super) fn good(&self, uri: &str) -> Option<&Arc<Analysis>> {
        self.good.get(uri)
    }

    /// What is known now of all documents that were checked, by address.
    pub(super) fn checked(&self) -> impl Iterator<Item = (&Document, &Arc<Analysis>)> {
        self.documents.iter().filter_map(|(uri, document)| Some((document, self.analyses.get(uri)?)))
    }

    /// The address of a file that an analysis read: of the library that ships a copy that can be read; `None` where there is
    /// no such file.
    pub(super) fn uri(&self, analysis: &Analysis, file: FileId) -> Option<String> {
        let name = &analysis.sources.file(file).name;
        if let Some((uri, _)) = self.documents.iter().find(|(_, document)| document.name == *name) {
            return Some(uri.clone());
        }
        match analysis.ships(file) {
            true => {
                self.library.as_deref().and_then(|folder| library::copy(folder, name)).map(|path| uri::of_path(&path))
            }
            false => Some(uri::of_path(name)),
        }
    }

    /// The document of a file that is open.
    pub(super) fn named(&self, name: &str) -> Option<&Document> {
        self.documents.values().find(|document| document.name == name)
    }

    /// The lines of a file that an analysis read.
    pub(super) fn lines(&self, analysis: &Analysis, file: FileId) -> Arc<Lines> {
        let file = analysis.sources.file(file);
        match self.named(&file.name).filter(|document| Arc::ptr_eq(&document.text, &file.text)) {
            Some(document) => document.lines.clone(),
            None => Arc::new(Lines::of(&file.text, self.encoding)),
        }
    }

    /// A span as a location of the protocol.
    pub(super) fn location(&self, analysis: &Analysis, span: Span) -> Option<Value> {
        let text = &analysis.sources.file(span.file).text;
        let range = self.lines(analysis, span.file).range(text, span.start as usize, span.end as usize);
        Some(json!({"uri": self.uri(analysis, span.file)?, "range": range}))
    }
}

fn not_open(uri: &str) -> Refusal {
    invalid(&format!("the document {uri} is not open"))
}

/// Parameters that the method does not take.
pub(super) fn invalid(why: &str) -> Refusal {
    Refusal::new(INVALID_PARAMS, why)
}
