//! Layer 2: tokens, grammar and the abstract syntax tree.
//!
//! A text becomes tokens ([`token`], by logos), `layout` matches brackets and marks what one token of lookahead could not tell,
//! and the grammar in `grammar/autobatch.lalrpop` makes the [`ast`]. Each item is parsed by itself; in an item, a statement that does
//! not parse is replaced by an error node and the item is parsed again, so that one run reports several slips.
//! Nothing here resolves a name or knows a type, and nothing prints.

use crate::base::{Diagnostic, FileId, Span};

pub mod ast;
mod build;
mod contextual;
mod decode;
mod dump;
pub(crate) mod format;
mod layout;
mod lexer;
mod parser;
mod strings;
#[path = "../../grammar/tokens.rs"]
pub mod token;
mod unexpected;

pub use decode::decode;
pub use dump::{dump, tokens};
pub use format::{MAX_WIDTH, format};
pub use parser::parse;

/// What LALRPOP makes of `grammar/autobatch.lalrpop`.
#[allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    missing_docs,
    unreachable_pub,
    unused,
    reason = "generated code"
)]
mod grammar {
    lalrpop_util::lalrpop_mod!(generated, "/autobatch.rs");
    pub(super) use generated::StartParser;
}

/// A span of `file` from byte offsets.
fn span(file: FileId, start: usize, end: usize) -> Span {
    Span::new(file, start, end)
}

/// Adds `diagnostic` unless the same one is there: recovery parses an item more than once.
fn report_once(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if !diagnostics.contains(&diagnostic) {
        diagnostics.push(diagnostic);
    }
}
