//! `#include`: the tokens of a file stand where its `#include` stood.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::path::{beside, normal};
use crate::base::{Diagnostic, FileId, SourceMap, Span};
use crate::stan::syntax::lexer::{Lexed, Lexeme, included_path, lex};
use crate::stan::syntax::token::Token;

/// How deep files may include one another.
const MAX_INCLUDES: usize = 100;
/// How many tokens a program may have: files that include others twice grow fast.
const MAX_TOKENS: usize = 50_000_000;

/// Where included files come from.
pub trait Includes {
    /// The name and the text of the file that `#include path` means, when the file named `from` says so. Two paths that
    /// mean one file must give one name. The error says why there is none.
    ///
    /// # Errors
    /// In one line, lower case, when there is no such file or it cannot be read.
    fn load(&mut self, from: &str, path: &str) -> Result<(String, Arc<str>), String>;
}

/// No file can be included.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn load(&mut self, _from: &str, _path: &str) -> Result<(String, Arc<str>), String> {
        Err("this program stands alone".to_owned())
    }
}

/// Files of the file system: beside the file that includes them, or in one of the folders, the first that has it.
#[derive(Clone, Debug, Default)]
pub struct IncludeFolders {
    /// Folders to look in, in this order, after the one of the file that includes.
    pub folders: Vec<PathBuf>,
}

impl IncludeFolders {
    /// The first file of those that a path may mean in the file `from` that is there.
    ///
    /// # Errors
    /// Where none is: where it was looked for.
    pub fn find(&self, from: &str, path: &str, is_there: impl Fn(&Path) -> bool) -> Result<PathBuf, String> {
        let mut candidates =
            std::iter::once(beside(from, path)).chain(self.folders.iter().map(|folder| normal(&folder.join(path))));
        candidates.find(|file| is_there(file)).ok_or_else(|| {
            let folders: Vec<String> = self.folders.iter().map(|f| format!("`{}`", f.display())).collect();
            let more = if folders.is_empty() { String::new() } else { format!(" or in {}", folders.join(", ")) };
            format!("there is no such file beside this one{more}")
        })
    }
}

impl Includes for IncludeFolders {
    fn load(&mut self, from: &str, path: &str) -> Result<(String, Arc<str>), String> {
        let found = self.find(from, path, Path::is_file)?;
        let bytes = std::fs::read(&found).map_err(|e| format!("{} cannot be read: {e}", found.display()))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", found.display()))?;
        Ok((found.display().to_string(), text.into()))
    }
}

/// The tokens of the main file and of those that it includes, comments left out.
pub(crate) fn lex_all(main: FileId, sources: &mut SourceMap, includes: &mut dyn Includes) -> Lexed {
    let mut expansion = Expansion { sources, includes, out: Lexed::default(), open: Vec::new(), done: Vec::new() };
    expansion.file(main);
    expansion.out
}

/// The `#include`s of a text: where the path of each stands, in bytes, and the path.
#[must_use]
pub fn includes(text: &str) -> Vec<(usize, usize, &str)> {
    let lexemes = lex(FileId(0), text).lexemes;
    let included = lexemes.into_iter().filter(|lexeme| lexeme.token == Token::Include);
    let path = |lexeme: Lexeme| {
        let (start, end) = (lexeme.span.start as usize, lexeme.span.end as usize);
        let path = included_path(&text[start..end]);
        let at = start + text[start..end].rfind(path).unwrap_or(0);
        (at, at + path.len(), path)
    };
    included.map(path).collect()
}

struct Expansion<'a> {
    sources: &'a mut SourceMap,
    includes: &'a mut dyn Includes,
    out: Lexed,
    /// The files that are being read, the main one first.
    open: Vec<FileId>,
    /// All that were read, and how often.
    done: Vec<FileId>,
}

impl Expansion<'_> {
    fn file(&mut self, file: FileId) {
        let text = self.sources.file(file).text.clone();
        if u32::try_from(text.len()).is_err() {
            let at = Span::new(file, 0, 0);
            self.out.diagnostics.push(Diagnostic::error("E2001", "a source file of 4 GiB or more", at, ""));
            return;
        }
        let lexed = lex(file, &text);
        // A file that is included twice is wrong in the same places, and said to be so once.
        if !self.done.contains(&file) {
            self.out.diagnostics.extend(lexed.diagnostics);
        }
        self.out.faults.extend(lexed.faults);
        self.out.swallowing.extend(lexed.swallowing);
        self.open.push(file);
        self.done.push(file);
        for lexeme in lexed.lexemes {
            if lexeme.token == Token::Include {
                let path = included_path(&text[lexeme.span.start as usize..lexeme.span.end as usize]);
                self.include(lexeme.span, path);
            } else if !lexeme.is_comment() {
                self.out.lexemes.push(lexeme);
            }
        }
        self.open.pop();
    }

    fn include(&mut self, at: Span, path: &str) {
        let from = self.sources.file(at.file).name.clone();
        let (name, text) = match self.includes.load(&from, path) {
            Ok(found) => found,
            Err(why) => {
                let message = format!("`{path}` cannot be included: {why}");
                let diagnostic = Diagnostic::error("E2019", message, at, "included here");
                self.fault(at, diagnostic.with_help("name its folder with `--include-path FOLDER`"));
                return;
            }
        };
        let known = self.sources.files().find(|(_, f)| f.name == name && f.text == text).map(|(id, _)| id);
        let file = known.unwrap_or_else(|| self.sources.add(name.clone(), text));
        if self.open.contains(&file) {
            let message = format!("`{path}` includes itself");
            let chain: Vec<&str> = self.open.iter().map(|f| self.sources.file(*f).name.as_str()).collect();
            let note = format!("{} → {name}", chain.join(" → "));
            self.fault(at, Diagnostic::error("E2020", message, at, "included again here").with_note(note));
            return;
        }
        // A library of functions is there once, however often it is asked for.
        if name.ends_with(".stanfunctions") && self.done.contains(&file) {
            return;
        }
        if self.open.len() >= MAX_INCLUDES || self.out.lexemes.len() > MAX_TOKENS {
            let message = "these includes make the program too large";
            self.fault(at, Diagnostic::error("E2013", message, at, "the limit is reached here"));
            return;
        }
        self.file(file);
    }

    fn fault(&mut self, at: Span, diagnostic: Diagnostic) {
        self.out.faults.push(at);
        if !self.out.diagnostics.contains(&diagnostic) {
            self.out.diagnostics.push(diagnostic);
        }
    }
}
