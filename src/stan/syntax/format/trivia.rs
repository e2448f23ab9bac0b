//! Comments and empty lines by the token that follows them.

use crate::stan::syntax::lexer::Lexeme;
use crate::stan::syntax::token::Token;

/// How a comment stands to its surroundings. Chosen so that printing a comment does not change its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// At the end of a line.
    Trailing,
    /// On a line of its own.
    Own,
    /// `/* c */` in front of a token on the same line.
    Lead,
}

#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) text: String,
    pub(super) place: Place,
    /// Whether an empty line stands before it.
    pub(super) blank: bool,
}

/// What stands between the previous token and this one.
#[derive(Clone, Debug, Default)]
pub(super) struct Trivia {
    pub(super) comments: Vec<Comment>,
    /// Whether an empty line stands directly before the token (or its leading comments).
    pub(super) blank: bool,
}

/// The trivia before each token, and those before the end of the text; and the tokens. `lexemes` are those of one file.
pub(super) fn trivia(text: &str, lexemes: &[Lexeme]) -> (Vec<Lexeme>, Vec<Trivia>) {
    let (mut tokens, mut all) = (Vec::with_capacity(lexemes.len()), Vec::with_capacity(lexemes.len() + 1));
    let mut before: Vec<Lexeme> = Vec::new();
    for lexeme in lexemes {
        if lexeme.is_comment() {
            before.push(*lexeme);
        } else {
            all.push(placed(text, lexeme.span.start as usize, &before));
            tokens.push(*lexeme);
            before.clear();
        }
    }
    all.push(placed(text, text.len(), &before));
    hoist(&tokens, &mut all);
    (tokens, all)
}

fn placed(text: &str, start: usize, before: &[Lexeme]) -> Trivia {
    let mut comments: Vec<Comment> = Vec::new();
    // From the last to the first: a comment leads only when all after it do.
    let mut leads = true;
    for lexeme in before.iter().rev() {
        let (from, to) = (lexeme.span.start as usize, lexeme.span.end as usize);
        let own = newlines_before(text, from) > 0;
        let at_end = newline_after(text, to);
        leads &= lexeme.token == Token::BlockComment && !at_end;
        comments.push(Comment {
            text: text[from..to].trim_end().to_owned(),
            place: match (leads, own) {
                (true, _) => Place::Lead,
                (false, true) => Place::Own,
                (false, false) => Place::Trailing,
            },
            blank: newlines_before(text, from) > 1,
        });
    }
    comments.reverse();
    let first_lead = comments.iter().position(|c| c.place == Place::Lead);
    let blank = match first_lead {
        Some(lead) => comments[lead].blank,
        None => newlines_before(text, start) > 1,
    };
    Trivia { comments, blank }
}

/// Comments before a comma or semicolon that would break the line go behind it.
fn hoist(tokens: &[Lexeme], all: &mut [Trivia]) {
    for (i, token) in tokens.iter().enumerate() {
        let breaks = all[i].comments.iter().any(|c| c.place != Place::Lead);
        let after_statement = i == 0 || matches!(tokens[i - 1].token, Token::Semi | Token::LBrace | Token::RBrace);
        if breaks && matches!(token.token, Token::Comma | Token::Semi) && !after_statement {
            let mut moved = std::mem::take(&mut all[i].comments);
            for comment in &mut moved {
                // What led the comma stands on a line of its own now.
                if comment.place == Place::Lead {
                    comment.place = Place::Own;
                }
            }
            for comment in &mut all[i + 1].comments {
                if comment.place == Place::Trailing {
                    comment.place = Place::Own;
                }
            }
            moved.append(&mut all[i + 1].comments);
            all[i + 1].comments = moved;
        }
    }
}

fn newlines_before(text: &str, at: usize) -> usize {
    let space = &text[text[..at].trim_end().len()..at];
    // The line break of a line comment is not part of the comment.
    space.matches('\n').count()
}

fn newline_after(text: &str, at: usize) -> bool {
    let rest = text[at..].trim_start();
    rest.is_empty() || text[at..text.len() - rest.len()].contains('\n')
}
