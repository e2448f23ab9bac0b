//! The formatter. It prints the tokens of the text again, in their order, and chooses the spaces and line breaks between
//! them; so no comment is lost and the tree stays what it was. Files that it includes are not looked into.
//!
//! The layout is that of `stanc --auto-format` as far as spaces, indentation and braces go: two spaces a level, `1 : n`,
//! `<lower=0>`, an `else` beside the brace before it. Lists and sums that are too long are broken as in our own language,
//! one element a line.

mod printer;
mod shape;
mod trivia;

use crate::base::stack::with_room;
use crate::base::{Diagnostic, FileId, SourceMap};
use crate::stan::syntax::include::Includes;
use crate::stan::syntax::layout::lay_out;
use crate::stan::syntax::lexer::{Lexed, Lexeme, lex};
use crate::stan::syntax::parse;
use crate::syntax::format::doc;

/// The widest line that the formatter makes where it can choose: Stan's style guide says so.
pub const MAX_WIDTH: usize = 80;
/// Spaces for each level.
const INDENT: usize = 2;

/// The text of the program `main` of `sources` in canonical form: two spaces for each level, lines of at most [`MAX_WIDTH`]
/// characters where they can be broken, at most one empty line in a row. All comments are kept. Formatting the result again
/// changes nothing.
///
/// # Errors
/// The diagnostics when the program does not parse: broken programs are left alone.
pub fn format(main: FileId, sources: &mut SourceMap, includes: &mut dyn Includes) -> Result<String, Vec<Diagnostic>> {
    let (program, diagnostics) = parse(main, sources, includes);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    let text = sources.file(main).text.clone();
    let lexed = lex(main, &text);
    // Brackets whose partners stand in another file leave nothing to hold on to.
    let layout = lay_out(sources, &Lexed { lexemes: without_comments(&lexed.lexemes), ..Lexed::default() });
    if !layout.diagnostics.is_empty() {
        return Err(layout.diagnostics);
    }
    let marked = with_marks(&lexed.lexemes, &layout.lexemes);
    let printed = with_room(program.depth.max(layout.depth) * 2, || {
        let (tokens, trivia) = trivia::trivia(&text, &marked);
        let document = printer::Printer::new(&text, tokens, trivia).file();
        doc::print(&document, MAX_WIDTH, INDENT)
    });
    let mut out = printed.trim_matches(['\n', ' ']).to_owned();
    if !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}

fn without_comments(lexemes: &[Lexeme]) -> Vec<Lexeme> {
    lexemes.iter().copied().filter(|l| !l.is_comment()).collect()
}

/// The tokens that layout made, with the comments between them.
fn with_marks(lexemes: &[Lexeme], marked: &[Lexeme]) -> Vec<Lexeme> {
    let comments = lexemes.iter().copied().filter(Lexeme::is_comment);
    let mut all: Vec<Lexeme> = marked.iter().copied().chain(comments).collect();
    all.sort_by_key(|l| l.span.start);
    all
}
