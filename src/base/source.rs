//! Source texts, byte spans into them, and the locations that programs carry to run time.

use std::fmt;
use std::sync::Arc;

use crate::base::{Id, IdVec};

crate::define_id!(
    /// One source text of a [`SourceMap`].
    FileId, "file"
);

/// A half-open range of bytes in one source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }
    /// The smallest span that covers both. The file is that of `self`.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.file.index(), self.start, self.end)
    }
}

/// One source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// What the user calls it: a path, or `std/name.ab` for the library that ships in the binary.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

/// All source texts of a compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: IdVec<FileId, SourceFile>,
}

impl SourceMap {
    /// Adds a text.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(SourceFile { name: name.into(), text, line_starts })
    }
    /// The text with this id.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id]
    }
    /// All texts, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter()
    }
    /// The text of a line, counted from 1, without the blanks around it; `None` when the text has no such line.
    pub fn line(&self, id: FileId, line: u32) -> Option<Span> {
        let file = &self.files[id];
        let at = (line as usize).checked_sub(1)?;
        let start = *file.line_starts.get(at)? as usize;
        let end = file.line_starts.get(at + 1).map_or(file.text.len(), |e| *e as usize);
        let text = file.text.get(start..end)?;
        let start = start + text.len() - text.trim_start().len();
        Some(Span::new(id, start, start + text.trim().len()))
    }
    /// Line and column of the start of a span, both counted from 1 (columns in characters).
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let file = &self.files[span.file];
        let line = file.line_starts.partition_point(|s| *s <= span.start) - 1;
        let start = file.line_starts[line] as usize;
        let end = (span.start as usize).min(file.text.len());
        let column = file.text.get(start..end).map_or(0, |t| t.chars().count());
        (line as u32 + 1, column as u32 + 1)
    }
}

/// The array that an instruction takes a part of, as its traps name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayName {
    /// The name in the source; a part of a struct or tuple follows a dot.
    pub name: String,
    /// Whether an axis that is indexed has a bounded dimension, so that its length differs from lane to lane.
    pub bounded: bool,
}

/// Where an instruction came from: what traps and statistics report. Kept through every IR. Two of one place are equal.
#[derive(Clone)]
pub struct Loc {
    /// The function in the user's source.
    pub function: Arc<str>,
    /// Its line, counted from 1; 0 when there is none.
    pub line: u32,
    /// For an instruction that takes or sets a part of an array: which array, where it has a name. The place is the same without it.
    pub array: Option<Arc<ArrayName>>,
    /// For a block that computes the right operand of one of these where the left does not decide: which. The place is
    /// the same without it.
    pub right_of: Option<LazyOp>,
}

/// An operator whose right operand is computed only where the left does not decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LazyOp {
    /// `&&`.
    And,
    /// `||`.
    Or,
}

impl fmt::Display for LazyOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LazyOp::And => "&&",
            LazyOp::Or => "||",
        })
    }
}

impl PartialEq for Loc {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line && self.function == other.function
    }
}
impl Eq for Loc {}
impl std::hash::Hash for Loc {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.function, self.line).hash(state);
    }
}

impl Loc {
    /// A location.
    pub fn new(function: impl Into<Arc<str>>, line: u32) -> Self {
        Self { function: function.into(), line, array: None, right_of: None }
    }
    /// No location: code that the compiler made.
    pub fn none() -> Self {
        Self { function: Arc::from(""), line: 0, array: None, right_of: None }
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.function, self.line)
    }
}
impl fmt::Debug for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
