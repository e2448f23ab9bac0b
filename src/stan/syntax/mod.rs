//! The syntax of Stan 2.39: tokens, grammar and tree.
//!
//! A text becomes tokens ([`token`], by logos), those of included files stand where their `#include` stood (`include`),
//! `layout` matches brackets and marks what one token of lookahead could not tell, and the grammar in
//! `grammar/stan.lalrpop` makes the [`ast`]. Each block is parsed by itself; in a block, a statement that does not
//! parse is replaced by an error node and the block is parsed again, so that one run reports several slips. Old syntax
//! makes the tree of what replaced it, with a warning. `old` does the same for functions of old programs. `rules` has
//! what stanc's grammar says and ours does not: where values and constraints may stand. Nothing here resolves a name or
//! knows a type.

use crate::base::{Diagnostic, SourceMap, Span};

pub mod ast;
mod build;
mod canonical;
mod dump;
mod format;
mod include;
mod layout;
mod lexer;
mod old;
mod parser;
mod rules;
#[path = "../../../grammar/stan_tokens.rs"]
pub mod token;
mod unexpected;
pub(in crate::stan) mod walk;

pub use canonical::{Canonical, canonicalize};
pub use dump::dump;
pub use format::{MAX_WIDTH, format};
pub use include::{IncludeFolders, Includes, NoIncludes, includes};
pub use parser::parse;

/// What LALRPOP makes of `grammar/stan.lalrpop`.
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
    lalrpop_util::lalrpop_mod!(generated, "/stan.rs");
    pub(super) use generated::StartParser;
}

/// The text of a span.
fn source(sources: &SourceMap, span: Span) -> &str {
    sources.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or_default()
}

/// Adds `diagnostic` unless the same one is there: recovery parses a block more than once.
fn report_once(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if !diagnostics.contains(&diagnostic) {
        diagnostics.push(diagnostic);
    }
}
