//! Comments and empty lines by the token that follows them.

use crate::syntax::lexer::Lexeme;
use crate::syntax::token::Token;

/// How a comment stands to its surroundings. Chosen so that printing a comment does not change its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// At the end of a line.
    Trailing,
    /// On a line of its own.
    Own,
    /// `/* c */` in front of a token on the same line.
    Lead,
}

#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) place: Place,
    /// Whether an empty line stands before it.
    pub(crate) blank: bool,
    pub(crate) is_doc: bool,
}

/// What stands between the previous token and this one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trivia {
    pub(crate) comments: Vec<Comment>,
    /// Whether an empty line stands directly before the token (or its leading comments).
    pub(crate) blank: bool,
}

/// The trivia before each of `tokens`, and those before the end of the text. `comments` are in order.
pub(crate) fn trivia(text: &str, tokens: &[Lexeme], comments: &[Lexeme]) -> Vec<Trivia> {
    let mut all = Vec::with_capacity(tokens.len() + 1);
    let mut comments = comments.iter().peekable();
    let ends = tokens.iter().map(|t| (t.start, t.token == Token::StmtEnd)).chain([(text.len(), false)]);
    for (start, is_virtual) in ends {
        let mut before = Vec::new();
        if !is_virtual {
            while let Some(comment) = comments.next_if(|c| c.start < start || start == text.len()) {
                before.push(*comment);
            }
        }
        all.push(placed(text, start, &before));
    }
    hoist(tokens, &mut all);
    all
}

fn placed(text: &str, start: usize, before: &[Lexeme]) -> Trivia {
    let mut comments: Vec<Comment> = Vec::new();
    // From the last to the first: a comment leads only when all after it do.
    let mut leads = true;
    for lexeme in before.iter().rev() {
        let own = newlines_before(text, lexeme.start) > 0;
        let at_end = newline_after(text, lexeme.end);
        leads &= lexeme.token == Token::BlockComment && !at_end;
        comments.push(Comment {
            text: text[lexeme.start..lexeme.end].trim_end().to_owned(),
            place: match (leads, own) {
                (true, _) => Place::Lead,
                (false, true) => Place::Own,
                (false, false) => Place::Trailing,
            },
            blank: newlines_before(text, lexeme.start) > 1,
            is_doc: lexeme.token == Token::Doc,
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
    for i in 0..tokens.len() {
        let comments = &all[i].comments;
        let moves = matches!(tokens[i].token, Token::Comma | Token::Semi)
            && comments.iter().any(|c| c.place != Place::Lead)
            && comments.iter().all(|c| !c.is_doc);
        if moves {
            let mut moved = std::mem::take(&mut all[i].comments);
            for comment in &mut moved {
                // What led the comma stands on a line of its own now.
                if comment.place == Place::Lead {
                    comment.place = Place::Own;
                }
            }
            let mut next = i + 1;
            while next < tokens.len() && tokens[next].token == Token::StmtEnd {
                next += 1;
            }
            for comment in &mut all[next].comments {
                if comment.place == Place::Trailing {
                    comment.place = Place::Own;
                }
            }
            moved.append(&mut all[next].comments);
            all[next].comments = moved;
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
