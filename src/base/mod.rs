//! Layer 0: spans and sources, diagnostics as data, typed ids and the maps they index.

pub mod diagnostic;
pub mod id_map;
pub mod id_set;
pub mod ids;
pub mod names;
pub mod source;
pub mod stack;
pub mod text;
pub mod work;

/// How the message of an assertion begins whose failure ends the run of all lanes, as Stan's `fatal_error` does.
pub const FATAL: &str = "fatal_error: ";

pub use diagnostic::{Diagnostic, DiagnosticCode, Finding, Label, Severity};
pub use id_map::IdMap;
pub use id_set::IdSet;
pub use ids::{Id, IdVec};
pub use names::Names;
pub use source::{ArrayName, FileId, LazyOp, Loc, Provenance, SourceFile, SourceMap, Span, WrittenPlace};
