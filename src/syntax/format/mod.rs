//! The formatter. It prints the tokens of the text again, in their order, and chooses the spaces and line breaks between them; so no comment is
//! lost and the tree stays what it was. Only the comma before a closing bracket comes and goes.

pub(crate) mod doc;
mod printer;
mod spacing;
mod trivia;

use crate::base::stack::with_room;
use crate::base::{Diagnostic, FileId, Id};
use crate::syntax::layout::lay_out;
use crate::syntax::lexer::{Lexeme, lex};
use crate::syntax::parse;

/// The widest line that the formatter makes where it can choose.
pub const MAX_WIDTH: usize = 100;
/// Spaces for each level.
const INDENT: usize = 4;

/// The text in canonical form: four spaces for each level, lines of at most [`MAX_WIDTH`] characters where they can be broken, at most one empty
/// line in a row. All comments are kept. Formatting the result again changes nothing.
///
/// # Errors
/// The diagnostics (of file 0) when the text does not parse: broken programs are left alone.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let file = FileId::new(0);
    let (module, diagnostics) = parse(file, text);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    let lexed = lex(file, text, 0, text.len());
    let comments: Vec<Lexeme> = lexed.lexemes.iter().copied().filter(Lexeme::is_comment).collect();
    let tokens = lay_out(file, text, &lexed).lexemes;
    let trivia = trivia::trivia(text, &tokens, &comments);
    let printed = with_room(module.depth, || {
        let document = printer::Printer::new(text, tokens, trivia).file();
        doc::print(&document, MAX_WIDTH, INDENT)
    });
    let mut out = printed.trim_matches(['\n', ' ']).to_owned();
    if !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}
