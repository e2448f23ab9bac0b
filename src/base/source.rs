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
    made: Option<Made>,
}

/// The one text that nobody wrote: its file, what it was made of, and the first of the files of that, once they are here.
#[derive(Clone, Debug)]
struct Made {
    file: FileId,
    origin: Arc<Provenance>,
    first: Option<FileId>,
}

/// What a text was made of: the texts that somebody wrote, and which of its parts comes from where.
#[derive(Debug)]
pub struct Provenance {
    sources: SourceMap,
    parts: Vec<Part>,
}

/// A part of a made text.
#[derive(Debug)]
struct Part {
    start: u32,
    end: u32,
    /// The part around it.
    outer: Option<usize>,
    place: Arc<WrittenPlace>,
}

/// A place of a text that another one was made of.
#[derive(Debug)]
pub struct WrittenPlace {
    /// In the texts of the [`Provenance`].
    pub span: Span,
    /// As people are told it: `(in 'model.stan', line 3, column 2 to column 17)`.
    pub told: String,
    /// What stands there.
    pub text: String,
}

impl WrittenPlace {
    /// A place of which no more is known than how people are told it.
    pub fn told_as(told: &str) -> Self {
        Self { span: Span::new(FileId::new(0), 0, 0), told: told.to_owned(), text: String::new() }
    }
}

impl Provenance {
    /// Of a text whose parts, bytes `start..end`, come from these spans of `sources`. Of two parts one is in the other, or
    /// they have nothing in common. `told` says a place.
    pub fn new(
        sources: SourceMap,
        mut parts: Vec<(u32, u32, Span)>,
        told: impl Fn(&SourceMap, Span) -> String,
    ) -> Self {
        // Inner parts come first, also where an outer one has the same bytes.
        parts.reverse();
        parts.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
        let mut places: std::collections::HashMap<Span, Arc<WrittenPlace>> = std::collections::HashMap::new();
        let mut made: Vec<Part> = Vec::with_capacity(parts.len());
        let mut around: Vec<usize> = Vec::new();
        for (start, end, span) in parts {
            while around.last().is_some_and(|at| made[*at].end <= start) {
                around.pop();
            }
            let place = places.entry(span).or_insert_with(|| {
                let all = &sources.file(span.file).text;
                let text = all.get(span.start as usize..span.end as usize).unwrap_or_default().to_owned();
                Arc::new(WrittenPlace { span, told: told(&sources, span), text })
            });
            made.push(Part { start, end, outer: around.last().copied(), place: place.clone() });
            around.push(made.len() - 1);
        }
        Self { sources, parts: made }
    }

    fn files(&self) -> u32 {
        self.sources.files.len() as u32
    }

    /// The place that a span of the made text comes from: that of the smallest part around it, or else of the largest one
    /// that it begins in.
    fn place(&self, span: Span) -> Option<&Arc<WrittenPlace>> {
        let mut at = self.parts.partition_point(|part| part.start <= span.start).checked_sub(1)?;
        loop {
            let part = &self.parts[at];
            match part.outer {
                _ if part.start <= span.start && span.end <= part.end => return Some(&part.place),
                Some(outer) => at = outer,
                None => return Some(&part.place),
            }
        }
    }
}

impl SourceMap {
    /// The file of a name.
    pub fn named(&self, name: &str) -> Option<FileId> {
        self.files().find(|(_, file)| file.name == name).map(|(id, _)| id)
    }
    /// Adds a text.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(SourceFile { name: name.into(), text, line_starts })
    }
    /// Adds a text that was made of others. There is one at most.
    pub fn add_made(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>, origin: Arc<Provenance>) -> FileId {
        let file = self.add(name, text);
        debug_assert!(self.made.is_none(), "one text is made");
        self.made = Some(Made { file, origin, first: None });
        file
    }
    /// Adds the texts that the made one was made of, after all others: from now on its spans are [`written`](Self::written).
    pub fn add_origin(&mut self) {
        let Some(made) = self.made.as_mut().filter(|made| made.first.is_none()) else { return };
        made.first = Some(FileId(self.files.len() as u32));
        let origin = made.origin.clone();
        for file in origin.sources.files.values() {
            self.files.push(file.clone());
        }
    }
    /// Whether a span is of the made text, or of what that was made of.
    pub fn is_made(&self, span: Span) -> bool {
        self.made.as_ref().is_some_and(|made| {
            let of_origin = |first: FileId| span.file.0 >= first.0 && (span.file.0 - first.0) < made.origin.files();
            span.file == made.file || made.first.is_some_and(of_origin)
        })
    }
    /// Where somebody wrote what stands at a span: in the texts that a made one was made of, or here.
    pub fn written(&self, span: Span) -> Span {
        match self.place(span) {
            Some(place) => self.written_at(place),
            None => span,
        }
    }
    /// The span of a place that a made text comes from.
    pub fn written_at(&self, place: &WrittenPlace) -> Span {
        let first = self.made.as_ref().and_then(|made| made.first).unwrap_or(FileId(0));
        Span { file: FileId(place.span.file.0 + first.0), ..place.span }
    }
    /// The place that a span of the made text comes from; `None` for one of another text.
    pub fn place(&self, span: Span) -> Option<&Arc<WrittenPlace>> {
        let made = self.made.as_ref().filter(|made| made.file == span.file && made.first.is_some())?;
        made.origin.place(span)
    }
    /// The location of what stands at a span of a function.
    pub fn loc(&self, function: impl Into<Arc<str>>, span: Span) -> Loc {
        Loc { place: self.place(span).cloned(), ..Loc::new(function, self.line_column(span).0) }
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
    /// Line and column of the start of a span, both counted from 1 (columns in characters), where it is
    /// [`written`](Self::written).
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let span = self.written(span);
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
    /// The place in the text that the user wrote, where the source was made of another one. The place is the same
    /// without it.
    pub place: Option<Arc<WrittenPlace>>,
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
    /// Takes the place of the innermost of the calls around, from the inside out, that was made in a text that the user wrote:
    /// what happens in a function of the library is told where the user called it.
    pub fn take_place<'l>(&mut self, calls: impl Iterator<Item = &'l Loc>) {
        if self.place.is_none() {
            self.place = calls.filter_map(|call| call.place.as_ref()).next().cloned();
        }
    }
    /// A location.
    pub fn new(function: impl Into<Arc<str>>, line: u32) -> Self {
        Self { function: function.into(), line, array: None, right_of: None, place: None }
    }
    /// No location: code that the compiler made.
    pub fn none() -> Self {
        Self { function: Arc::from(""), line: 0, array: None, right_of: None, place: None }
    }
}

impl Loc {
    /// For people: ``(function `f`, line 3)``, or the place in the text that it was made of.
    pub fn told(&self) -> String {
        match &self.place {
            Some(place) => place.told.clone(),
            None => format!("(function `{}`, line {})", self.function, self.line),
        }
    }
    /// The same within a sentence: ``in `f`, line 3``.
    pub fn told_within(&self) -> String {
        match &self.place {
            Some(place) => place.told.trim_matches(['(', ')']).to_owned(),
            None => format!("in `{}`, line {}", self.function, self.line),
        }
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
