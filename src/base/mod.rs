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

pub use diagnostic::{Diagnostic, DiagnosticCode, Finding, Label, Severity};
pub use id_map::IdMap;
pub use id_set::IdSet;
pub use ids::{Id, IdVec};
pub use names::Names;
pub use source::{ArrayName, FileId, LazyOp, Loc, Provenance, SourceFile, SourceMap, Span, WrittenPlace};
