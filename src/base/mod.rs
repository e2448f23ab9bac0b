//! Layer 0: spans and sources, diagnostics as data, typed ids and the maps they index.

pub mod diagnostic;
pub mod id_map;
pub mod id_set;
pub mod ids;
pub mod meanings;
pub mod names;
pub mod path;
pub mod source;
pub mod stack;
pub mod text;
pub mod work;

/// A map of the compiler's own values: hashed faster than the standard library does, which guards against chosen keys.
pub type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// A set of the compiler's own values, hashed as those of [`HashMap`].
pub type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;

/// How the message of an assertion begins whose failure ends the run of all lanes, as Stan's `fatal_error` does.
pub const FATAL: &str = "fatal_error: ";

pub use diagnostic::{Diagnostic, DiagnosticCode, Finding, Label, Severity};
pub use id_map::IdMap;
pub use id_set::IdSet;
pub use ids::{Id, IdVec};
pub use meanings::{Meaning, Meanings, Symbol, SymbolKind};
pub use names::Names;
pub use source::{ArrayName, FileId, LazyOp, Loc, Provenance, SourceFile, SourceMap, Span, WrittenPlace};
