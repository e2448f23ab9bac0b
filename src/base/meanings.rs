//! What names mean, as data: a checker finds it where somebody asks, an editor is told of it.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::base::{FileId, Span};

/// What the names of a program mean, and what else an editor wants to know of it. Whole only where there are no errors;
/// what is there is right in any case.
#[derive(Clone, Debug, Default)]
pub struct Meanings {
    /// What the program declares, and what it uses of the library, by the name in the declaration.
    pub symbols: IndexMap<Span, Symbol>,
    /// What each name means where it stands, in the order of their places; names in declarations are not here. A name
    /// may mean two things: the field and the variable of `Tree { left }`.
    pub uses: Vec<(Span, Meaning)>,
    /// The types of expressions, as users write them, in the order of their places.
    pub types: Vec<(Span, String)>,
    /// Names that stand for the name of a field, too, and where `field: ` would go.
    pub short: HashMap<Span, u32>,
}

/// What a name means.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Meaning {
    /// What is declared by the name at this place.
    Declared(Span),
    /// A function that the language or a library of it has.
    Builtin {
        /// Its name there.
        name: Arc<str>,
        /// The signatures that are meant; empty where all are.
        told: Vec<String>,
    },
    /// A file: the path of a `use` or an `#include`.
    File(FileId),
}

/// Something with a name.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// How it is declared, in a line: `let x: real[n]`.
    pub told: String,
    /// Its parameters as they are declared, when it is a function.
    pub params: Vec<String>,
    /// Its type, where it is known.
    pub ty: Option<String>,
    /// What is written about it.
    pub doc: String,
    /// Whether it is the same for all lanes; `None` where that is not known, or no question.
    pub shared: Option<bool>,
    /// Why it varies, one line each.
    pub because: Vec<String>,
    /// Where it can be named from its declaration on; `None` for what is declared outside of functions.
    pub scope: Option<Span>,
    /// The fields of a struct, by the names in their declarations.
    pub members: Vec<Span>,
    /// The struct that its type is, by the name in its declaration.
    pub of: Option<Span>,
    /// Whether other files can name it.
    pub public: bool,
    /// All of its declaration.
    pub whole: Span,
}

/// What kind of thing has a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A model.
    Model,
    /// A struct.
    Struct,
    /// A field of a struct.
    Field,
    /// A constant.
    Constant,
    /// A module by the name that a file gives it.
    Module,
    /// A dimension.
    Dimension,
    /// A parameter of a function.
    Parameter,
    /// A variable of a loop or a comprehension.
    Loop,
    /// A variable.
    Variable,
    /// A block of a program of Stan.
    Block,
}

impl Symbol {
    /// Something of a kind, declared so; nothing else is known of it.
    pub fn new(name: &str, kind: SymbolKind, told: impl Into<String>, whole: Span) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            told: told.into(),
            params: Vec::new(),
            ty: None,
            doc: String::new(),
            shared: None,
            because: Vec::new(),
            scope: None,
            members: Vec::new(),
            of: None,
            public: false,
            whole,
        }
    }
}

impl Meanings {
    /// Puts everything in the order of its places, each once.
    pub fn sort(&mut self) {
        let place = |span: &Span| (span.file.0, span.start, span.end);
        let told = |meaning: &Meaning| match meaning {
            Meaning::Declared(span) => (0, place(span)),
            Meaning::Builtin { .. } => (1, (0, 0, 0)),
            Meaning::File(file) => (2, (file.0, 0, 0)),
        };
        self.uses.sort_by_key(|(span, meaning)| (place(span), told(meaning)));
        self.uses.dedup();
        self.types.sort_by_key(|(span, _)| place(span));
        self.types.dedup_by_key(|(span, _)| *span);
        self.symbols.sort_by_key(|span, _| place(span));
    }

    /// The names at an offset of a file, with what they mean: that at which it is, or that which ends there.
    pub fn at(&self, file: FileId, offset: u32) -> Vec<(Span, Meaning)> {
        let near = |span: &Span| span.file == file && span.start <= offset && offset <= span.end;
        let from =
            self.uses.partition_point(|(span, _)| (span.file.0, span.start) < (file.0, offset.saturating_sub(MOST)));
        let to = self.uses.partition_point(|(span, _)| (span.file.0, span.start) <= (file.0, offset));
        let used = self.uses[from.min(to)..to].iter().filter(|(span, _)| near(span)).cloned();
        let declared = self.symbols.keys().filter(|span| near(span)).map(|span| (*span, Meaning::Declared(*span)));
        let mut found: Vec<_> = used.chain(declared).collect();
        // Of two names beside one another the second is meant.
        let last = found.iter().map(|(span, _)| span.start).max();
        found.retain(|(span, _)| Some(span.start) == last);
        found
    }

    /// The innermost expression around an offset of a file, with its type.
    pub fn type_at(&self, file: FileId, offset: u32) -> Option<(Span, &str)> {
        let around = self.types.iter().filter(|(s, _)| s.file == file && s.start <= offset && offset <= s.end);
        let innermost = around.min_by_key(|(span, _)| span.end - span.start)?;
        Some((innermost.0, &innermost.1))
    }

    /// Where what is declared at a place is named, its declaration among them, in the order of places.
    pub fn places_of(&self, declared: Span) -> Vec<Span> {
        let uses =
            self.uses.iter().filter(|(_, meaning)| *meaning == Meaning::Declared(declared)).map(|(span, _)| *span);
        let mut places: Vec<Span> = uses.chain([declared]).collect();
        places.sort_by_key(|span| (span.file.0, span.start));
        places.dedup();
        places
    }
}

/// More bytes than a name has: how far before an offset a name that is there begins.
const MOST: u32 = 4096;
