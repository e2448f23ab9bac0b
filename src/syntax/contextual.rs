//! Words and signs that mean something in one place only: `derivative`, `model`, `generated`, and the brackets of
//! constraints.

use crate::syntax::layout::{is_closer, is_opener};
use crate::syntax::lexer::Lexeme;
use crate::syntax::token::Token;

/// Tells the word `derivative` that starts an item from a name: `derivative of f`, three words in a row, is nothing else.
pub(crate) fn mark_derivatives(text: &str, lexemes: &mut [Lexeme]) {
    let word = |l: &Lexeme, source: &str| l.token == Token::Ident && &text[l.start..l.end] == source;
    for i in 0..lexemes.len().saturating_sub(2) {
        let [first, second, third] = &mut lexemes[i..i + 3] else { continue };
        if word(first, "derivative") && word(second, "of") && third.token == Token::Ident {
            first.token = Token::Derivative;
        }
    }
}

/// Tells the word `model` that starts an item from a name: it has a name behind it, outside of brackets or with the
/// bracket of dimensions or parameters behind that. And `generated` between the braces of two bodies outside of brackets.
pub(crate) fn mark_models(text: &str, lexemes: &mut [Lexeme]) {
    let mut depth = 0usize;
    for i in 0..lexemes.len() {
        let lexeme = lexemes[i];
        let token = |at: usize| lexemes.get(at).map(|l| l.token);
        let before = i.checked_sub(1).and_then(token);
        let word = |source: &str| lexeme.token == Token::Ident && &text[lexeme.start..lexeme.end] == source;
        let headed = depth == 0 || matches!(token(i + 2), Some(Token::LParen | Token::LBracket));
        if word("model") && token(i + 1) == Some(Token::Ident) && headed {
            lexemes[i].token = Token::Model;
        } else if word("generated")
            && depth == 0
            && before == Some(Token::RBrace)
            && token(i + 1) == Some(Token::LBrace)
        {
            lexemes[i].token = Token::Generated;
        } else if is_opener(lexeme.token) {
            depth += 1;
        } else if is_closer(lexeme.token) {
            depth = depth.saturating_sub(1);
        }
    }
}

/// Tells the brackets of constraints from comparisons: between the parentheses of a model, behind a type and before the end
/// of its entry.
pub(crate) fn mark_constraints(lexemes: &mut [Lexeme]) {
    let mut i = 0;
    while i < lexemes.len() {
        if lexemes[i].token == Token::Model
            && let Some(open) = (i + 1..lexemes.len()).find(|at| lexemes[*at].token == Token::LParen)
        {
            i = mark_entries(lexemes, open);
        }
        i += 1;
    }
}

/// Marks those of the entries behind the parenthesis at `open`; gives where the parenthesis is closed.
fn mark_entries(lexemes: &mut [Lexeme], open: usize) -> usize {
    let mut depth = 0usize;
    // Whether a type stands before, and where constraints were opened.
    let (mut after_type, mut opened): (bool, Option<usize>) = (false, None);
    for at in open..lexemes.len() {
        match lexemes[at].token {
            token if is_opener(token) => depth += 1,
            token if is_closer(token) => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ if depth > 1 => {}
            Token::Comma if opened.is_none() => after_type = false,
            Token::Colon => after_type = true,
            Token::Assign if opened.is_none() => after_type = false,
            Token::Lt if after_type && opened.is_none() => opened = Some(at),
            // Behind a comparison stands an operand; an extent behind constraints is a slip of its own.
            Token::Gt
                if matches!(
                    lexemes.get(at + 1).map(|l| l.token),
                    Some(Token::Comma | Token::RParen | Token::LBracket)
                ) =>
            {
                if let Some(opened) = opened.take() {
                    (lexemes[opened].token, lexemes[at].token) = (Token::LAngle, Token::RAngle);
                }
            }
            _ => {}
        }
    }
    lexemes.len()
}
