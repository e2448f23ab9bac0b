//! From tokens to a document: statements, lists and operator chains.

use std::ops::Range;

use crate::stan::syntax::format::shape::Shape;
use crate::stan::syntax::format::trivia::{Comment, Place, Trivia};
use crate::stan::syntax::lexer::Lexeme;
use crate::stan::syntax::token::Token;
use crate::syntax::format::doc::Doc;

pub(super) struct Printer<'a> {
    text: &'a str,
    shape: Shape,
    /// Before each token and before the end.
    trivia: Vec<Trivia>,
}

/// What goes on after a comment has ended the line.
fn line() -> Doc {
    Doc::indent(vec![Doc::Hard])
}

impl<'a> Printer<'a> {
    pub(super) fn new(text: &'a str, tokens: Vec<Lexeme>, trivia: Vec<Trivia>) -> Self {
        Self { text, shape: Shape::new(tokens), trivia }
    }

    /// The whole file: blocks, or the functions of a library.
    pub(super) fn file(&mut self) -> Doc {
        let end = self.shape.tokens.len();
        let mut out = Vec::new();
        self.statements(0..end, &mut out);
        self.comments_of_entry(end, end == 0, &mut out);
        Doc::Concat(out)
    }

    fn token(&self, i: usize) -> Option<Token> {
        self.shape.token(i)
    }

    /// The token itself. Nothing follows an `#include` in its line.
    fn source(&self, i: usize) -> Doc {
        let span = self.shape.tokens[i].span;
        let text = self.text[span.start as usize..span.end as usize].to_owned();
        if self.token(i) == Some(Token::Include) { Doc::Trailing(text) } else { Doc::Text(text) }
    }

    // Comments

    /// What stands before the first token of a statement or element that is not the first of its kind: comments,
    /// `separator`, leading comments.
    fn entry(&mut self, i: usize, is_first: bool, separator: Doc, out: &mut Vec<Doc>) {
        let had_comment = self.comments_of_entry(i, is_first, out);
        let trivia = &mut self.trivia[i];
        if trivia.blank && (!is_first || had_comment) {
            out.push(Doc::Blank);
        }
        out.push(separator);
        for lead in std::mem::take(&mut trivia.comments) {
            out.push(Doc::Text(lead.text + " "));
        }
    }

    /// The comments before token `i` that end a line or have their own; leaves the leading ones. Says whether one has its
    /// own line.
    fn comments_of_entry(&mut self, i: usize, is_first: bool, out: &mut Vec<Doc>) -> bool {
        let (leads, lines): (Vec<Comment>, Vec<Comment>) =
            std::mem::take(&mut self.trivia[i].comments).into_iter().partition(|c| c.place == Place::Lead);
        self.trivia[i].comments = leads;
        let mut own = false;
        for comment in lines {
            if comment.place == Place::Own {
                if comment.blank && (!is_first || own) {
                    out.push(Doc::Blank);
                }
                out.push(Doc::Hard);
                out.push(Doc::Trailing(comment.text));
                own = true;
            } else {
                out.push(Doc::Trailing(format!(" {}", comment.text)));
                own |= i == 0;
            }
        }
        own
    }

    /// What stands before token `i` inside of a line: its comments, then `separator`, or `after_line` where a comment ended
    /// the line. An `#include` has a line of its own.
    fn gap(&mut self, i: usize, separator: Doc, after_line: Doc) -> Doc {
        let comments = std::mem::take(&mut self.trivia[i].comments);
        let mut out = Vec::new();
        let include = |token| token == Some(Token::Include);
        let mut ended = include(self.token(i)) || (i > 0 && include(self.token(i - 1)));
        for comment in comments {
            match comment.place {
                Place::Trailing => {
                    out.push(Doc::Trailing(format!(" {}", comment.text)));
                    ended = true;
                }
                Place::Own => {
                    out.push(line());
                    out.push(Doc::Trailing(comment.text));
                    ended = true;
                }
                Place::Lead => {
                    out.push(if ended { line() } else { Doc::space() });
                    out.push(Doc::Text(comment.text));
                    ended = false;
                }
            }
        }
        out.push(if ended { after_line } else { separator });
        Doc::Concat(out)
    }

    // Statements

    /// Statements on lines of their own.
    fn statements(&mut self, range: Range<usize>, out: &mut Vec<Doc>) {
        let mut at = range.start;
        while at < range.end {
            self.entry(at, at == range.start, Doc::Hard, out);
            let (doc, next) = self.statement(at, range.end);
            out.push(doc);
            at = next;
        }
    }

    /// `{ … }`
    fn block(&mut self, open: usize) -> Doc {
        let close = self.shape.partner[open];
        let empty = open + 1 == close;
        let comments = &mut self.trivia[close].comments;
        if empty && comments.iter().all(|c| c.place == Place::Lead) {
            let leads: String = std::mem::take(comments).into_iter().map(|c| c.text + " ").collect();
            return Doc::text(format!("{{ {leads}}}"));
        }
        let mut inside = Vec::new();
        self.statements(open + 1..close, &mut inside);
        for comment in &mut self.trivia[close].comments {
            if comment.place == Place::Lead {
                comment.place = Place::Own;
            }
        }
        self.comments_of_entry(close, empty, &mut inside);
        Doc::Concat(vec![Doc::text("{"), Doc::indent(inside), Doc::Hard, Doc::text("}")])
    }

    /// The statement, block or function at `at`, and the index after it. The comments of its first token were printed.
    fn statement(&mut self, at: usize, end: usize) -> (Doc, usize) {
        let parenthesis = self.token(at + 1) == Some(Token::LParen) && at + 1 < end;
        match self.shape.tokens[at].token {
            Token::LBrace if self.shape.opens_block(at) => (self.block(at), self.shape.partner[at] + 1),
            Token::Include => (self.source(at), at + 1),
            Token::If if parenthesis => self.if_chain(at, end),
            Token::While | Token::For if parenthesis => {
                let mut out = vec![self.head(at)];
                let next = self.arm(self.shape.partner[at + 1] + 1, end, &mut out);
                (Doc::Concat(out), next)
            }
            Token::Else => {
                let mut out = vec![self.source(at)];
                let next = self.arm(at + 1, end, &mut out);
                (Doc::Concat(out), next)
            }
            _ => self.plain(at, end),
        }
    }

    /// What ends with a semicolon or with a block.
    fn plain(&mut self, at: usize, end: usize) -> (Doc, usize) {
        let mut i = at;
        while i < end && self.token(i) != Some(Token::Semi) && !self.shape.opens_block(i) {
            i = self.skip(i);
        }
        let mut out = Vec::new();
        if i > at {
            out.push(self.declared(at..i));
        }
        if i == end {
            return (Doc::Concat(out), end);
        }
        if self.shape.opens_block(i) {
            out.push(self.gap(i, Doc::space(), line()));
            out.push(self.block(i));
            return (Doc::Concat(out), self.shape.partner[i] + 1);
        }
        if i > at {
            out.push(self.gap(i, Doc::Nil, line()));
        }
        out.push(Doc::text(";"));
        (Doc::Concat(out), i + 1)
    }

    /// `if (…)`, `while (…)`, `for (…)`
    fn head(&mut self, at: usize) -> Doc {
        let gap = self.gap(at + 1, Doc::space(), line());
        Doc::Concat(vec![self.source(at), gap, self.list(at + 1)])
    }

    /// The statement behind a head: a block on its line, others on the next. Gives the index after it.
    fn arm(&mut self, at: usize, end: usize, out: &mut Vec<Doc>) -> usize {
        if at >= end {
            return end;
        }
        if self.shape.opens_block(at) {
            out.push(self.gap(at, Doc::space(), line()));
            out.push(self.block(at));
            return self.shape.partner[at] + 1;
        }
        let mut inside = Vec::new();
        self.entry(at, true, Doc::Hard, &mut inside);
        let (doc, next) = self.statement(at, end);
        inside.push(doc);
        out.push(Doc::indent(inside));
        next
    }

    /// `if (a) … else if (b) … else …`
    fn if_chain(&mut self, start: usize, end: usize) -> (Doc, usize) {
        let mut out = Vec::new();
        let mut at = start;
        loop {
            out.push(self.head(at));
            let arm = self.shape.partner[at + 1] + 1;
            let next = self.arm(arm, end, &mut out);
            if next >= end || self.token(next) != Some(Token::Else) {
                return (Doc::Concat(out), next);
            }
            let beside = self.shape.opens_block(arm);
            out.push(self.gap(next, if beside { Doc::space() } else { Doc::Hard }, Doc::Hard));
            out.push(Doc::text("else"));
            let again = self.token(next + 1) == Some(Token::If) && self.token(next + 2) == Some(Token::LParen);
            if !again || next + 2 >= end {
                let after = self.arm(next + 1, end, &mut out);
                return (Doc::Concat(out), after);
            }
            out.push(self.gap(next + 1, Doc::space(), line()));
            at = next + 1;
        }
    }

    // Expressions

    /// The index after the unit at `i`: a token, or a bracket with its inside.
    fn skip(&self, i: usize) -> usize {
        if self.shape.opens(i) { self.shape.partner[i] + 1 } else { i + 1 }
    }

    /// The starts of the units of a range.
    fn units(&self, range: Range<usize>) -> Vec<usize> {
        let mut units = Vec::new();
        let mut i = range.start;
        while i < range.end {
            units.push(i);
            i = self.skip(i);
        }
        units
    }

    fn find(&self, range: Range<usize>, wanted: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        self.units(range).into_iter().find(|i| wanted(self, *i))
    }

    /// A statement without its end, of which a declaration may have several parts. The comments of its first token were
    /// printed.
    fn declared(&mut self, range: Range<usize>) -> Doc {
        let commas: Vec<usize> =
            self.units(range.clone()).into_iter().filter(|i| self.token(*i) == Some(Token::Comma)).collect();
        if commas.is_empty() {
            return self.sequence(range);
        }
        let mut rest = Vec::new();
        let first = self.sequence(range.start..commas[0]);
        for (n, comma) in commas.iter().enumerate() {
            let end = commas.get(n + 1).copied().unwrap_or(range.end);
            rest.push(self.gap(*comma, Doc::Nil, Doc::Hard));
            rest.push(Doc::text(","));
            if comma + 1 < end {
                rest.push(self.gap(comma + 1, Doc::Line, Doc::Hard));
                rest.push(self.sequence(comma + 1..end));
            }
        }
        Doc::group(vec![first, Doc::indent(rest)])
    }

    /// A part of a declaration, an element of a list, or an expression. The comments of its first token were printed.
    fn sequence(&mut self, range: Range<usize>) -> Doc {
        if range.is_empty() {
            return Doc::Nil;
        }
        let splits = |p: &Self, i: usize| p.token(i).is_some_and(splits_statement) || p.shape.is_range(i);
        let head = match self.token(range.start) {
            Some(Token::Return) => Some(range.start + 1),
            _ => self.find(range.clone(), splits).map(|i| i + 1),
        };
        match head {
            Some(head) if head < range.end => {
                let sign = head - 1;
                let mut out = Vec::new();
                if sign > range.start {
                    out.push(self.sequence(range.start..sign));
                    let separator = if self.shape.spaced(sign) { Doc::space() } else { Doc::Nil };
                    out.push(self.gap(sign, separator, line()));
                }
                out.push(self.source(sign));
                let separator = if self.shape.spaced(head) { Doc::space() } else { Doc::Nil };
                out.push(self.gap(head, separator, line()));
                out.push(self.sequence(head..range.end));
                Doc::Concat(out)
            }
            Some(_) => self.pieces(range),
            None => self.operators(range),
        }
    }

    /// Breaks before `?` and its colon, or before the loosest infix operators, if at all.
    fn operators(&mut self, range: Range<usize>) -> Doc {
        let units = self.units(range.clone());
        let question = units.iter().position(|i| self.token(*i) == Some(Token::Question));
        let cuts: Vec<usize> = match question {
            Some(question) => {
                // Those in between belong to what stands between.
                let mut open = 0;
                let colon = units[question..].iter().copied().find(|i| {
                    open += usize::from(self.token(*i) == Some(Token::Question));
                    open -= usize::from(self.shape.is_ternary(*i));
                    open == 0
                });
                std::iter::once(units[question]).chain(colon).collect()
            }
            None => {
                let infix: Vec<(usize, u8)> = units
                    .iter()
                    .filter(|i| **i > range.start)
                    .filter_map(|i| Some((*i, self.shape.looseness(*i)?)))
                    .collect();
                let loosest = infix.iter().map(|(_, l)| *l).min();
                infix.iter().filter(|(_, l)| Some(*l) == loosest).map(|(i, _)| *i).collect()
            }
        };
        if cuts.is_empty() {
            return self.pieces(range);
        }
        let first = self.sequence(range.start..cuts[0]);
        let mut rest = Vec::new();
        for (n, cut) in cuts.iter().enumerate() {
            let end = cuts.get(n + 1).copied().unwrap_or(range.end);
            rest.push(self.gap(*cut, Doc::Line, Doc::Hard));
            rest.push(self.source(*cut));
            if cut + 1 < end {
                rest.push(self.gap(cut + 1, Doc::space(), Doc::Hard));
                rest.push(self.sequence(cut + 1..end));
            }
        }
        Doc::group(vec![first, Doc::indent(rest)])
    }

    /// Units one after the other, broken only inside their brackets.
    fn pieces(&mut self, range: Range<usize>) -> Doc {
        let mut out = Vec::new();
        for unit in self.units(range.clone()) {
            if unit > range.start {
                let separator = if self.shape.spaced(unit) { Doc::space() } else { Doc::Nil };
                out.push(self.gap(unit, separator, line()));
            }
            out.push(if self.shape.opens(unit) { self.list(unit) } else { self.source(unit) });
        }
        Doc::Concat(out)
    }

    // Lists

    /// A bracket with elements between commas and bars.
    fn list(&mut self, open: usize) -> Doc {
        let close = self.shape.partner[open];
        let separators: Vec<usize> = self
            .units(open + 1..close)
            .into_iter()
            .filter(|i| matches!(self.token(*i), Some(Token::Comma | Token::Bar)))
            .collect();
        let starts: Vec<usize> = std::iter::once(open + 1).chain(separators.iter().map(|s| s + 1)).collect();
        let ends: Vec<usize> = separators.iter().copied().chain([close]).collect();
        let plain = |p: &Self, (start, end): (&usize, &usize)| {
            start < end && !p.shape.is_range(*start) && !p.shape.is_range(*end - 1)
        };
        let whole = starts.iter().zip(&ends).all(|element| plain(self, element));
        if open + 1 == close || !whole {
            return self.flat(open);
        }
        if let Some(hugged) = self.hugged(open, starts.len()) {
            return hugged;
        }
        let mut docs = Vec::new();
        for (n, (start, end)) in starts.iter().zip(&ends).enumerate() {
            self.entry(*start, n == 0, if n == 0 { Doc::SoftLine } else { Doc::Line }, &mut docs);
            docs.push(self.sequence(*start..*end));
            if *end < close {
                let separator = if self.token(*end) == Some(Token::Bar) { Doc::space() } else { Doc::Nil };
                docs.push(self.gap(*end, separator, Doc::Hard));
                docs.push(self.source(*end));
            }
        }
        self.comments_of_entry(close, false, &mut docs);
        let leads = std::mem::take(&mut self.trivia[close].comments);
        let mut out = vec![self.source(open), Doc::indent(docs)];
        let included = self.token(close - 1) == Some(Token::Include);
        out.push(match (included, leads.is_empty()) {
            (true, _) => Doc::Hard,
            (false, true) => Doc::SoftLine,
            (false, false) => Doc::Line,
        });
        out.push(Doc::text(leads.into_iter().map(|c| c.text).collect::<Vec<_>>().join(" ")));
        out.push(self.source(close));
        Doc::group(out)
    }

    /// A bracket that is not broken: nothing between some of its separators, as in `x[ : , 1]` and `array[,]`.
    fn flat(&mut self, open: usize) -> Doc {
        let close = self.shape.partner[open];
        let mut out = vec![self.source(open)];
        let separator = |p: &Self, i: usize| if p.shape.spaced(i) { Doc::space() } else { Doc::Nil };
        if open + 1 < close {
            let before = separator(self, open + 1);
            out.push(self.gap(open + 1, before, line()));
            out.push(self.pieces(open + 1..close));
        }
        let before = separator(self, close);
        out.push(self.gap(close, before, line()));
        out.push(self.source(close));
        Doc::Concat(out)
    }

    /// A single element that is a bracket needs no lines of its own: `f({ … })`.
    fn hugged(&mut self, open: usize, elements: usize) -> Option<Doc> {
        let close = self.shape.partner[open];
        let is_bracket = elements == 1 && self.shape.opens(open + 1) && self.shape.partner[open + 1] + 1 == close;
        let plain = self.trivia[open + 1].comments.is_empty() && self.trivia[close].comments.is_empty();
        if !is_bracket || !plain {
            return None;
        }
        Some(Doc::Concat(vec![self.source(open), self.list(open + 1), self.source(close)]))
    }
}

/// Whether a statement has its left and its right of this token.
fn splits_statement(token: Token) -> bool {
    matches!(
        token,
        Token::Assign
            | Token::OldAssign
            | Token::PlusAssign
            | Token::MinusAssign
            | Token::StarAssign
            | Token::SlashAssign
            | Token::EltStarAssign
            | Token::EltSlashAssign
            | Token::Tilde
            | Token::In
    )
}
