//! What the tokens of a text are to their neighbours: brackets and their partners, prefix operators, and which of them have
//! a space between them.

use crate::stan::syntax::layout::{is_closer, is_opener, opens_block};
use crate::stan::syntax::lexer::Lexeme;
use crate::stan::syntax::token::Token;

/// The tokens of a file with what is known of each.
pub(super) struct Shape {
    pub(super) tokens: Vec<Lexeme>,
    /// The closing bracket of each opening one.
    pub(super) partner: Vec<usize>,
    /// Prefix operators.
    prefix: Vec<bool>,
    /// The `<` and the `>` around a constraint.
    angle: Vec<bool>,
    /// Between the brackets of a type without sizes, `array[,] real`, and its closing one.
    axes: Vec<bool>,
    /// Braces of statements.
    block: Vec<bool>,
    /// The colons of `c ? a : b`.
    ternary: Vec<bool>,
}

impl Shape {
    /// Of tokens whose brackets are in pairs.
    pub(super) fn new(tokens: Vec<Lexeme>) -> Self {
        let n = tokens.len();
        let mut shape = Self {
            tokens,
            partner: vec![0; n],
            prefix: vec![false; n],
            angle: vec![false; n],
            axes: vec![false; n],
            block: vec![false; n],
            ternary: vec![false; n],
        };
        shape.find_brackets();
        for i in 0..n {
            shape.find_axes(i);
        }
        shape
    }

    fn find_brackets(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        // Questions without their colon, for each open bracket.
        let mut questions = vec![0usize];
        for i in 0..self.tokens.len() {
            let token = self.tokens[i].token;
            let before = i.checked_sub(1).map(|p| self.tokens[p].token);
            let in_angle = open.last().is_some_and(|o| self.angle[*o]);
            match token {
                Token::Lt if before.is_some_and(Token::is_type) => {
                    self.angle[i] = true;
                    open.push(i);
                    questions.push(0);
                }
                _ if is_opener(token) => {
                    self.block[i] = token == Token::LBrace && opens_block(&self.tokens, i);
                    open.push(i);
                    questions.push(0);
                }
                _ if is_closer(token) || (token == Token::Gt && in_angle) => {
                    if let Some(o) = open.pop() {
                        self.partner[o] = i;
                        self.angle[i] = self.angle[o];
                        self.block[i] = self.block[o];
                    }
                    questions.pop();
                }
                Token::Question => *questions.last_mut().expect("the file is a level") += 1,
                Token::Colon => {
                    if let Some(count) = questions.last_mut().filter(|c| **c > 0) {
                        *count -= 1;
                        self.ternary[i] = true;
                    }
                }
                Token::Comma | Token::Semi => *questions.last_mut().expect("the file is a level") = 0,
                Token::Minus | Token::Plus | Token::Not => self.prefix[i] = !before.is_some_and(ends_expression),
                _ => {}
            }
        }
    }

    fn find_axes(&mut self, open: usize) {
        let mut i = open + 1;
        while self.token(i) == Some(Token::Comma) {
            i += 1;
        }
        if self.tokens[open].token == Token::LBracket && i > open + 1 && self.token(i) == Some(Token::RBracket) {
            self.axes[open + 1..=i].fill(true);
        }
    }

    pub(super) fn token(&self, i: usize) -> Option<Token> {
        self.tokens.get(i).map(|l| l.token)
    }

    /// Whether token `i` opens a bracket, that of a constraint included.
    pub(super) fn opens(&self, i: usize) -> bool {
        is_opener(self.tokens[i].token) || (self.tokens[i].token == Token::Lt && self.angle[i])
    }

    /// Whether token `i` is the opening brace of statements.
    pub(super) fn opens_block(&self, i: usize) -> bool {
        self.token(i) == Some(Token::LBrace) && self.block[i]
    }

    /// Whether token `i` is the colon of a range.
    pub(super) fn is_range(&self, i: usize) -> bool {
        self.tokens[i].token == Token::Colon && !self.ternary[i]
    }

    /// Whether token `i` is the colon of `c ? a : b`.
    pub(super) fn is_ternary(&self, i: usize) -> bool {
        self.ternary[i]
    }

    /// How loosely an infix operator binds, 0 the loosest; `None` for other tokens.
    pub(super) fn looseness(&self, i: usize) -> Option<u8> {
        if self.prefix[i] || self.angle[i] {
            return None;
        }
        Some(match self.tokens[i].token {
            Token::Or => 0,
            Token::And => 1,
            Token::Eq | Token::Ne => 2,
            Token::Lt | Token::Le | Token::Gt | Token::Ge => 3,
            Token::Plus | Token::Minus => 4,
            Token::Star | Token::Slash | Token::Percent | Token::EltStar | Token::EltSlash => 5,
            Token::IntSlash | Token::Backslash => 6,
            _ => return None,
        })
    }

    /// Whether a space stands before token `i`, which is not the first of its line.
    pub(super) fn spaced(&self, i: usize) -> bool {
        let (a, b) = (self.tokens[i - 1].token, self.tokens[i].token);
        if self.prefix[i - 1] {
            // `++` is one token
            return a == Token::Plus && b == Token::Plus;
        }
        let is_bound = |i: usize| {
            self.token(i) == Some(Token::Assign)
                && matches!(
                    self.token(i.wrapping_sub(1)),
                    Some(Token::Lower | Token::Upper | Token::Offset | Token::Multiplier)
                )
        };
        match (a, b) {
            (Token::Colon, _) | (_, Token::Colon) => true,
            (_, Token::Semi | Token::RParen | Token::Transpose) => false,
            (Token::LBracket | Token::LParen, Token::Comma) => !self.axes[i],
            (_, Token::Comma) => false,
            (Token::Comma, Token::RBracket) => !self.axes[i],
            (_, Token::RBracket) | (Token::LParen | Token::LBracket, _) => false,
            (Token::LBrace, _) => self.block[i - 1],
            (_, Token::RBrace) => self.block[i],
            (Token::Lt, _) if self.angle[i - 1] => false,
            (_, Token::Lt | Token::Gt) if self.angle[i] => false,
            (Token::Gt, Token::LBracket) if self.angle[i - 1] => false,
            (Token::Assign, _) if is_bound(i - 1) => false,
            (_, Token::Assign) if is_bound(i) => false,
            (
                Token::Ident
                | Token::Target
                | Token::Print
                | Token::Reject
                | Token::FatalError
                | Token::Profile
                | Token::Tuple,
                Token::LParen,
            ) => false,
            (a, Token::LBracket) => !(ends_expression(a) || a.is_type() || a == Token::Truncate),
            (a, Token::Dot) => !ends_expression(a),
            _ => true,
        }
    }
}

/// Whether an expression can end with this token.
fn ends_expression(token: Token) -> bool {
    matches!(
        token,
        Token::Ident
            | Token::Int
            | Token::Real
            | Token::Dot
            | Token::Imaginary
            | Token::Text
            | Token::RParen
            | Token::RBracket
            | Token::RBrace
            | Token::Transpose
    )
}
