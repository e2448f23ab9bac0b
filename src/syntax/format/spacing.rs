//! Which tokens have a space between them.

use crate::syntax::token::Token;

/// Whether an expression can end with this token.
pub(crate) fn ends_expression(token: Token) -> bool {
    matches!(
        token,
        Token::Ident
            | Token::Int
            | Token::Real
            | Token::Text
            | Token::True
            | Token::False
            | Token::RParen
            | Token::RBracket
            | Token::RBrace
    )
}

/// How loosely an infix operator binds, 0 the loosest; `None` for other tokens.
pub(crate) fn looseness(token: Token) -> Option<u8> {
    Some(match token {
        Token::Or => 0,
        Token::And => 1,
        Token::Eq | Token::Ne | Token::Lt | Token::Le | Token::Gt | Token::Ge => 2,
        Token::Plus | Token::Minus => 3,
        Token::Star | Token::Slash | Token::Percent | Token::At => 4,
        _ => return None,
    })
}

/// Whether a space stands between two neighbours. `a_is_prefix`: `a` is a prefix operator or the opening bar of a function without a name;
/// `b_closes_bar`: `b` is its closing bar; `a_source`: the text of `a`.
pub(crate) fn space_between(
    a: Token,
    a_is_prefix: bool,
    a_source: &str,
    b: Token,
    b_closes_bar: bool,
    a_is_field: bool,
) -> bool {
    // `1. .. n` and `1 .0` would be read as other tokens without it.
    if matches!(b, Token::Dot | Token::DotDot) && a_source.ends_with('.') && a == Token::Real {
        return true;
    }
    if b == Token::Dot && a == Token::Int && !a_is_field {
        return true;
    }
    if a_is_prefix || b_closes_bar {
        return false;
    }
    match (a, b) {
        (Token::LParen | Token::LBracket | Token::LAngle | Token::Dot | Token::PathSep | Token::DotDot, _) => false,
        (_, Token::LAngle | Token::RAngle) => false,
        (_, Token::RParen | Token::RBracket | Token::Comma | Token::Semi | Token::Colon) => false,
        (_, Token::Dot | Token::PathSep | Token::DotDot) => false,
        (Token::Fn | Token::Print | Token::Assert, Token::LParen) => false,
        (a, Token::LParen | Token::LBracket) => !ends_expression(a),
        _ => true,
    }
}
