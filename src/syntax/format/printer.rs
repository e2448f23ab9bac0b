//! From tokens to a document: items, statements, lists and operator chains.

use std::ops::Range;

use crate::syntax::format::doc::Doc;
use crate::syntax::format::spacing::{ends_expression, looseness, space_between};
use crate::syntax::format::trivia::{Comment, Place, Trivia};
use crate::syntax::layout::{is_closer, is_opener};
use crate::syntax::lexer::Lexeme;
use crate::syntax::token::Token;

/// When the statements of a block may stand on the line of its braces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockStyle {
    /// When there is only a value.
    MayBeFlat,
    /// When there is nothing.
    Tall,
}

pub(crate) struct Printer<'a> {
    text: &'a str,
    tokens: Vec<Lexeme>,
    /// Before each token and before the end.
    trivia: Vec<Trivia>,
    /// The closing bracket of each opening one.
    partner: Vec<usize>,
    /// Bars that close the parameters of a function without a name.
    closing_bar: Vec<bool>,
    /// Prefix operators and opening bars.
    prefix: Vec<bool>,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(text: &'a str, tokens: Vec<Lexeme>, trivia: Vec<Trivia>) -> Self {
        let n = tokens.len();
        let (mut partner, mut closing_bar, mut prefix) = (vec![0; n], vec![false; n], vec![false; n]);
        let mut open = Vec::new();
        // Whether a bar is open, for each open bracket.
        let mut bars = vec![false];
        for (i, lexeme) in tokens.iter().enumerate() {
            let before = i.checked_sub(1).map(|p| tokens[p].token);
            let bar = bars.last_mut().expect("the file is a level");
            match lexeme.token {
                token if is_opener(token) => {
                    open.push(i);
                    bars.push(false);
                }
                token if is_closer(token) => {
                    let o = open.pop().expect("a parsed text has its brackets in pairs");
                    partner[o] = i;
                    bars.pop();
                }
                Token::Bar => {
                    closing_bar[i] = *bar;
                    prefix[i] = !*bar;
                    *bar = !*bar;
                }
                Token::Minus | Token::Not => prefix[i] = !before.is_some_and(ends_expression),
                _ => {}
            }
        }
        Self { text, tokens, trivia, partner, closing_bar, prefix }
    }

    /// The whole file.
    pub(crate) fn file(&mut self) -> Doc {
        let mut out = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let end = self.item_end(at);
            self.entry(at, at == 0, Doc::Hard, &mut out);
            let item = self.item(at..end);
            out.push(item);
            at = end;
        }
        self.comments_of_entry(self.tokens.len(), at == 0, &mut out);
        Doc::Concat(out)
    }

    fn token(&self, i: usize) -> Option<Token> {
        self.tokens.get(i).map(|l| l.token)
    }

    fn source(&self, i: usize) -> Doc {
        let Lexeme { start, end, .. } = self.tokens[i];
        Doc::text(&self.text[start..end])
    }

    // Items

    /// One past the item that starts at `at`.
    fn item_end(&self, at: usize) -> usize {
        let keyword = self.item_keyword(at);
        let has_body =
            matches!(self.token(keyword), Some(Token::Fn | Token::Struct | Token::Derivative | Token::Model));
        let mut i = keyword;
        while i < self.tokens.len() {
            match self.tokens[i].token {
                Token::Semi => return i + 1,
                Token::LBrace if has_body => {
                    let end = self.partner[i] + 1;
                    return if self.token(end) == Some(Token::Generated) { self.partner[end + 1] + 1 } else { end };
                }
                _ => i = self.skip(i),
            }
        }
        self.tokens.len()
    }

    fn item_keyword(&self, at: usize) -> usize {
        let mut i = at;
        while self.token(i) == Some(Token::At) {
            i += 2;
        }
        if self.token(i) == Some(Token::Pub) { i + 1 } else { i }
    }

    fn item(&mut self, range: Range<usize>) -> Doc {
        let mut out = Vec::new();
        let mut at = range.start;
        while self.token(at) == Some(Token::At) {
            if at > range.start {
                out.push(self.gap(at, Doc::Hard, Doc::Hard));
            }
            out.push(self.source(at));
            out.push(self.gap(at + 1, Doc::Nil, Doc::indent(vec![Doc::Hard])));
            out.push(self.source(at + 1));
            at += 2;
        }
        if at > range.start {
            out.push(self.gap(at, Doc::Hard, Doc::Hard));
        }
        let last = range.end - 1;
        let keyword = self.token(self.item_keyword(at));
        match keyword {
            Some(Token::Fn | Token::Struct | Token::Derivative) => {
                let open = (at..last).find(|i| self.tokens[*i].token == Token::LBrace).expect("an item has its brace");
                let head = self.units(at..open);
                let arrow = head.iter().map(|u| u.start).find(|i| self.tokens[*i].token == Token::Arrow);
                match arrow {
                    // the parameters take lines of their own before the result does
                    Some(arrow) => {
                        out.push(self.pieces(at..arrow));
                        out.push(self.gap(arrow, Doc::space(), Doc::indent(vec![Doc::Hard])));
                        out.push(Doc::Last(Box::new(self.pieces(arrow..open))));
                    }
                    None => out.push(self.pieces(at..open)),
                }
                out.push(self.gap(open, Doc::space(), Doc::indent(vec![Doc::Hard])));
                out.push(match keyword {
                    Some(Token::Fn) => self.block(open, BlockStyle::Tall),
                    Some(Token::Derivative) => self.rules(open),
                    _ => self.list(open),
                });
            }
            Some(Token::Model) => self.model(at, &mut out),
            _ => out.push(self.ended(at..last)),
        }
        Doc::Concat(out)
    }

    /// `model name(…) { … } generated { … }`
    fn model(&mut self, at: usize, out: &mut Vec<Doc>) {
        let line = || Doc::indent(vec![Doc::Hard]);
        let open = self.body_after(at);
        out.push(self.pieces(at..open));
        out.push(self.gap(open, Doc::space(), line()));
        out.push(self.block(open, BlockStyle::Tall));
        let word = self.partner[open] + 1;
        if self.token(word) == Some(Token::Generated) {
            out.push(self.gap(word, Doc::space(), Doc::Hard));
            out.push(self.source(word));
            out.push(self.gap(word + 1, Doc::space(), line()));
            out.push(self.block(word + 1, BlockStyle::Tall));
        }
    }

    /// `{ forward(x, dx) { … } … }`
    fn rules(&mut self, open: usize) -> Doc {
        let close = self.partner[open];
        let mut inside = Vec::new();
        let mut at = open + 1;
        while at < close {
            let body = self.body_after(at);
            self.entry(at, at == open + 1, Doc::Hard, &mut inside);
            inside.push(self.pieces(at..body));
            inside.push(self.gap(body, Doc::space(), Doc::indent(vec![Doc::Hard])));
            inside.push(self.block(body, BlockStyle::Tall));
            at = self.partner[body] + 1;
        }
        for comment in &mut self.trivia[close].comments {
            if comment.place == Place::Lead {
                comment.place = Place::Own;
            }
        }
        self.comments_of_entry(close, at == open + 1, &mut inside);
        let empty = inside.is_empty();
        let edge = if empty { Doc::Nil } else { Doc::Hard };
        Doc::Concat(vec![Doc::text("{"), Doc::indent(inside), edge, Doc::text("}")])
    }

    // Comments

    /// What stands before the first token of an item, statement or element that is not the first of its kind: comments, `separator`, leading
    /// comments.
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

    /// The comments before token `i` that end a line or have their own; leaves the leading ones. Says whether one has its own line.
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

    /// What stands before token `i` inside of a line: its comments, then `separator`, or `after_line` where a comment ended the line.
    fn gap(&mut self, i: usize, separator: Doc, after_line: Doc) -> Doc {
        let comments = std::mem::take(&mut self.trivia[i].comments);
        let mut out = Vec::new();
        let mut ended = false;
        for comment in comments {
            match comment.place {
                Place::Trailing => {
                    out.push(Doc::Trailing(format!(" {}", comment.text)));
                    ended = true;
                }
                Place::Own => {
                    out.push(Doc::indent(vec![Doc::Hard]));
                    out.push(Doc::Trailing(comment.text));
                    ended = true;
                }
                Place::Lead => {
                    out.push(if ended { Doc::indent(vec![Doc::Hard]) } else { Doc::space() });
                    out.push(Doc::Text(comment.text));
                    ended = false;
                }
            }
        }
        out.push(if ended { after_line } else { separator });
        Doc::Concat(out)
    }

    // Statements

    /// `{ … }`
    fn block(&mut self, open: usize, style: BlockStyle) -> Doc {
        let close = self.partner[open];
        let statements = self.statements(open + 1..close);
        let only_tail = matches!(&statements[..], [] | [(_, None)]);
        let flat = only_tail && (style == BlockStyle::MayBeFlat || statements.is_empty());
        let mut inside = Vec::new();
        for (n, (range, terminator)) in statements.iter().enumerate() {
            self.entry(range.start, n == 0, if flat { Doc::Line } else { Doc::Hard }, &mut inside);
            inside.push(self.statement(range.clone(), *terminator));
        }
        let comments = &mut self.trivia[close].comments;
        if statements.is_empty() && !comments.is_empty() && comments.iter().all(|c| c.place == Place::Lead) {
            let leads: Vec<String> = std::mem::take(comments).into_iter().map(|c| c.text).collect();
            return Doc::text(format!("{{ {} }}", leads.join(" ")));
        }
        for comment in comments.iter_mut().filter(|c| c.place == Place::Lead) {
            comment.place = Place::Own;
        }
        self.comments_of_entry(close, statements.is_empty(), &mut inside);
        let empty = inside.is_empty();
        let mut out = vec![Doc::text("{"), Doc::indent(inside)];
        if !empty {
            out.push(if flat { Doc::Line } else { Doc::Hard });
        }
        out.push(Doc::text("}"));
        Doc::Concat(out)
    }

    /// The statements in a block, each with its semicolon or end; the value of the block has neither.
    fn statements(&self, range: Range<usize>) -> Vec<(Range<usize>, Option<usize>)> {
        let mut statements = Vec::new();
        let (mut start, mut i) = (range.start, range.start);
        while i < range.end {
            if matches!(self.tokens[i].token, Token::Semi | Token::StmtEnd) {
                statements.push((start..i, Some(i)));
                start = i + 1;
            }
            i = self.skip_in_statement(i);
        }
        if start < range.end {
            statements.push((start..range.end, None));
        }
        statements
    }

    fn statement(&mut self, range: Range<usize>, terminator: Option<usize>) -> Doc {
        match (self.tokens[range.start].token, terminator) {
            (Token::While | Token::For, _) => self.loop_statement(range),
            (_, Some(end)) if self.tokens[end].token == Token::Semi => self.ended(range.start..end),
            _ => self.sequence(range),
        }
    }

    /// What ends with the semicolon at `range.end`.
    fn ended(&mut self, range: Range<usize>) -> Doc {
        let end = range.end;
        let body = if range.is_empty() { Doc::Nil } else { self.sequence(range) };
        Doc::Concat(vec![body, self.gap(end, Doc::Nil, Doc::indent(vec![Doc::Hard])), Doc::text(";")])
    }

    fn loop_statement(&mut self, range: Range<usize>) -> Doc {
        let head = if self.tokens[range.start].token == Token::For { range.start + 3 } else { range.start + 1 };
        let open = self.body_after(head);
        let mut out = vec![self.pieces(range.start..head)];
        out.push(self.gap(head, Doc::space(), Doc::indent(vec![Doc::Hard])));
        out.push(self.sequence(head..open));
        out.push(self.gap(open, Doc::space(), Doc::indent(vec![Doc::Hard])));
        out.push(self.block(open, BlockStyle::Tall));
        Doc::Concat(out)
    }

    /// The first brace of a block at the level of `i`.
    fn body_after(&self, mut i: usize) -> usize {
        while self.tokens[i].token != Token::LBrace {
            i = self.skip(i);
        }
        i
    }

    // Expressions

    /// The index after the unit at `i`: a token, a bracket with its inside, or an `if` with its blocks.
    fn skip(&self, i: usize) -> usize {
        match self.tokens[i].token {
            token if is_opener(token) => self.partner[i] + 1,
            Token::If => {
                let mut end = self.partner[self.body_after(i + 1)] + 1;
                if self.token(end) == Some(Token::Else) {
                    end = self.skip(end + 1);
                }
                end
            }
            _ => i + 1,
        }
    }

    /// Like [`skip`](Self::skip), which never meets the semicolon of a statement.
    fn skip_in_statement(&self, i: usize) -> usize {
        if matches!(self.tokens[i].token, Token::Semi | Token::StmtEnd) { i + 1 } else { self.skip(i) }
    }

    /// The units of a range.
    fn units(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut units = Vec::new();
        let mut i = range.start;
        while i < range.end {
            let next = self.skip(i);
            units.push(i..next);
            i = next;
        }
        units
    }

    /// A statement without its end, an element of a list, or an expression. The comments of its first token were printed.
    fn sequence(&mut self, range: Range<usize>) -> Doc {
        let units = self.units(range.clone());
        let first = self.tokens[range.start].token;
        let bars: Vec<usize> =
            units.iter().map(|u| u.start).filter(|i| self.tokens[*i].token == Token::Bar).take(2).collect();
        let head = if first == Token::Bar && bars.len() == 2 {
            Some(bars[1] + 1)
        } else if matches!(first, Token::Or | Token::Return) {
            Some(range.start + 1)
        } else if first == Token::Ident && self.token(range.start + 1) == Some(Token::Colon) {
            Some(range.start + 2)
        } else {
            units.iter().map(|u| u.start).find(|i| is_assignment(self.tokens[*i].token)).map(|i| i + 1)
        };
        match head {
            Some(head) if head < range.end => {
                let left = self.pieces(range.start..head);
                let gap = self.gap(head, Doc::space(), Doc::indent(vec![Doc::Hard]));
                Doc::Concat(vec![left, gap, self.sequence(head..range.end)])
            }
            Some(_) => self.pieces(range),
            None => self.operators(range, &units),
        }
    }

    /// Breaks before the loosest infix operators, if at all.
    fn operators(&mut self, range: Range<usize>, units: &[Range<usize>]) -> Doc {
        if let Some(dots) = units.iter().map(|u| u.start).find(|i| self.tokens[*i].token == Token::DotDot) {
            return self.range(range, dots);
        }
        let infix: Vec<(usize, u8)> = units
            .iter()
            .filter(|u| u.start > range.start && !self.prefix[u.start])
            .filter_map(|u| Some((u.start, looseness(self.tokens[u.start].token)?)))
            .collect();
        let Some(loosest) = infix.iter().map(|(_, l)| *l).min() else {
            return self.pieces(range);
        };
        let cuts: Vec<usize> = infix.iter().filter(|(_, l)| *l == loosest).map(|(i, _)| *i).collect();
        let first = self.sequence(range.start..cuts[0]);
        let mut rest = Vec::new();
        for (n, cut) in cuts.iter().enumerate() {
            let end = cuts.get(n + 1).copied().unwrap_or(range.end);
            rest.push(self.gap(*cut, Doc::Line, Doc::Hard));
            rest.push(self.source(*cut));
            rest.push(self.gap(cut + 1, Doc::space(), Doc::Hard));
            rest.push(self.sequence(cut + 1..end));
        }
        Doc::group(vec![first, Doc::indent(rest)])
    }

    /// `a..b`, either of which may be missing.
    fn range(&mut self, range: Range<usize>, dots: usize) -> Doc {
        let mut out = Vec::new();
        if range.start < dots {
            out.push(self.sequence(range.start..dots));
            let close = space_between(
                self.tokens[dots - 1].token,
                false,
                &self.text[self.tokens[dots - 1].start..self.tokens[dots - 1].end],
                Token::DotDot,
                false,
                false,
            );
            let separator = if close { Doc::space() } else { Doc::Nil };
            out.push(self.gap(dots, separator, Doc::indent(vec![Doc::Hard])));
        }
        out.push(Doc::text(".."));
        if dots + 1 < range.end {
            out.push(self.gap(dots + 1, Doc::Nil, Doc::indent(vec![Doc::Hard])));
            out.push(self.sequence(dots + 1..range.end));
        }
        Doc::Concat(out)
    }

    /// Units one after the other, broken only inside their brackets.
    fn pieces(&mut self, range: Range<usize>) -> Doc {
        let mut out = Vec::new();
        for unit in self.units(range.clone()) {
            if unit.start > range.start {
                let separator = if self.spaced(unit.start) { Doc::space() } else { Doc::Nil };
                out.push(self.gap(unit.start, separator, Doc::indent(vec![Doc::Hard])));
            }
            out.push(self.unit(unit));
        }
        Doc::Concat(out)
    }

    /// Whether a space stands before token `i`, which is not the first of its line.
    fn spaced(&self, i: usize) -> bool {
        let a = self.tokens[i - 1];
        let is_field = i >= 2 && self.tokens[i - 2].token == Token::Dot;
        let source = &self.text[a.start..a.end];
        space_between(a.token, self.prefix[i - 1], source, self.tokens[i].token, self.closing_bar[i], is_field)
    }

    fn unit(&mut self, unit: Range<usize>) -> Doc {
        match self.tokens[unit.start].token {
            Token::LBrace => {
                let block = self.block(unit.start, BlockStyle::MayBeFlat);
                Doc::group(vec![block])
            }
            token if is_opener(token) => self.list(unit.start),
            Token::If => {
                let mut out = Vec::new();
                self.if_chain(unit.start, &mut out);
                Doc::group(out)
            }
            _ => self.source(unit.start),
        }
    }

    /// `if c { … } else if d { … } else { … }`: all blocks on one line or none.
    fn if_chain(&mut self, start: usize, out: &mut Vec<Doc>) {
        let line = || Doc::indent(vec![Doc::Hard]);
        let open = self.body_after(start + 1);
        out.push(Doc::text("if"));
        out.push(self.gap(start + 1, Doc::space(), line()));
        out.push(self.sequence(start + 1..open));
        out.push(self.gap(open, Doc::space(), line()));
        out.push(self.block(open, BlockStyle::MayBeFlat));
        let otherwise = self.partner[open] + 1;
        if self.token(otherwise) != Some(Token::Else) {
            return;
        }
        out.push(self.gap(otherwise, Doc::space(), Doc::Hard));
        out.push(Doc::text("else"));
        out.push(self.gap(otherwise + 1, Doc::space(), line()));
        if self.tokens[otherwise + 1].token == Token::If {
            self.if_chain(otherwise + 1, out);
        } else {
            out.push(self.block(otherwise + 1, BlockStyle::MayBeFlat));
        }
    }

    // Lists

    /// A bracket with elements between commas, or with a comprehension.
    fn list(&mut self, open: usize) -> Doc {
        let close = self.partner[open];
        let inside = open + 1..close;
        let braces = matches!(self.tokens[open].token, Token::LBrace | Token::FieldsBrace);
        let edge = || if braces { Doc::Line } else { Doc::SoftLine };
        let is_for = |u: &Range<usize>| self.tokens[u.start].token == Token::For;
        if let Some(clauses) = self.units(inside.clone()).iter().find(|u| is_for(u)).map(|u| u.start) {
            return self.comprehension(open, clauses);
        }
        let (elements, has_comma) = self.elements(inside);
        if let Some(hugged) = self.hugged(open, &elements) {
            return hugged;
        }
        let comma = self.last_comma(open, &elements, has_comma);
        let mut docs = Vec::new();
        for (n, element) in elements.iter().enumerate() {
            self.entry(element.start, n == 0, if n == 0 { edge() } else { Doc::Line }, &mut docs);
            docs.push(self.sequence(element.clone()));
            let is_last = n + 1 == elements.len();
            if !is_last || has_comma {
                docs.push(self.gap(element.end, Doc::Nil, Doc::Hard));
            }
            docs.push(match (is_last, &comma) {
                (false, _) | (true, LastComma::Always) => Doc::text(","),
                (true, LastComma::WhenBroken) => Doc::IfBroken(","),
                (true, LastComma::Never) => Doc::Nil,
            });
        }
        self.comments_of_entry(close, elements.is_empty(), &mut docs);
        let leads = std::mem::take(&mut self.trivia[close].comments);
        let empty = docs.is_empty();
        let mut out = vec![self.source(open), Doc::indent(docs)];
        if !empty {
            out.push(if leads.is_empty() { edge() } else { Doc::Line });
        }
        for (n, lead) in leads.into_iter().enumerate() {
            out.push(Doc::Text(if n == 0 { lead.text } else { format!(" {}", lead.text) }));
        }
        out.push(self.source(close));
        Doc::group(out)
    }

    /// The ranges between commas, and whether a comma follows the last.
    fn elements(&self, range: Range<usize>) -> (Vec<Range<usize>>, bool) {
        let mut elements = Vec::new();
        let mut start = range.start;
        let mut in_bars = false;
        for unit in self.units(range.clone()) {
            match self.tokens[unit.start].token {
                Token::Bar => in_bars = !in_bars,
                Token::Comma if !in_bars => {
                    elements.push(start..unit.start);
                    start = unit.end;
                }
                _ => {}
            }
        }
        let has_comma = start == range.end && !elements.is_empty();
        if start < range.end {
            elements.push(start..range.end);
        }
        (elements, has_comma)
    }

    fn last_comma(&self, open: usize, elements: &[Range<usize>], has_comma: bool) -> LastComma {
        let before = open.checked_sub(1).map(|i| self.tokens[i].token);
        let is_call =
            before.is_some_and(|t| ends_expression(t) || matches!(t, Token::Fn | Token::Print | Token::Assert));
        let starts_with_dots = elements.last().is_some_and(|e| self.tokens[e.start].token == Token::DotDot);
        match self.tokens[open].token {
            Token::LParen if !is_call && elements.len() == 1 => {
                if has_comma {
                    LastComma::Always
                } else {
                    LastComma::Never
                }
            }
            Token::FieldsBrace if starts_with_dots => LastComma::Never,
            _ => LastComma::WhenBroken,
        }
    }

    /// A single element that is or ends with a bracket needs no lines of its own: `f(|x| { … })`.
    fn hugged(&mut self, open: usize, elements: &[Range<usize>]) -> Option<Doc> {
        let [element] = elements else { return None };
        let close = self.partner[open];
        let units = self.units(element.clone());
        let last = units.last()?.clone();
        let is_bracket = units.len() == 1 && is_opener(self.tokens[last.start].token);
        let is_lambda = matches!(self.tokens[element.start].token, Token::Bar | Token::Or)
            && self.tokens[last.start].token == Token::LBrace;
        let plain = element.end == close
            && self.trivia[element.start].comments.is_empty()
            && self.trivia[close].comments.is_empty()
            && !matches!(self.tokens[open].token, Token::LBrace | Token::FieldsBrace);
        if !plain || !(is_bracket || is_lambda) {
            return None;
        }
        Some(Doc::Concat(vec![self.source(open), self.sequence(element.clone()), self.source(close)]))
    }

    /// `(e for i in a..b, j in c..d)`; `clauses` is the `for`.
    fn comprehension(&mut self, open: usize, clauses: usize) -> Doc {
        let close = self.partner[open];
        let mut docs = Vec::new();
        self.entry(open + 1, true, Doc::SoftLine, &mut docs);
        docs.push(self.sequence(open + 1..clauses));
        docs.push(self.gap(clauses, Doc::Line, Doc::Hard));
        docs.push(Doc::text("for"));
        let (clauses, _) = self.elements(clauses + 1..close);
        for (n, clause) in clauses.iter().enumerate() {
            if n > 0 {
                docs.push(self.gap(clause.start - 1, Doc::Nil, Doc::indent(vec![Doc::Hard])));
                docs.push(Doc::text(","));
            }
            docs.push(self.gap(clause.start, Doc::space(), Doc::indent(vec![Doc::Hard])));
            // `i in`, then the range.
            let bounds = clause.start + 2;
            docs.push(self.pieces(clause.start..bounds));
            docs.push(self.gap(bounds, Doc::space(), Doc::indent(vec![Doc::Hard])));
            docs.push(self.sequence(bounds..clause.end));
        }
        self.comments_of_entry(close, false, &mut docs);
        let leads = std::mem::take(&mut self.trivia[close].comments);
        let edge = if leads.is_empty() { Doc::SoftLine } else { Doc::Line };
        let mut out = vec![self.source(open), Doc::indent(docs), edge];
        out.push(Doc::text(leads.into_iter().map(|c| c.text).collect::<Vec<_>>().join(" ")));
        out.push(self.source(close));
        Doc::group(out)
    }
}

/// Whether a comma follows the last element.
enum LastComma {
    Always,
    WhenBroken,
    Never,
}

fn is_assignment(token: Token) -> bool {
    matches!(
        token,
        Token::Assign
            | Token::PlusAssign
            | Token::MinusAssign
            | Token::StarAssign
            | Token::SlashAssign
            | Token::PercentAssign
            | Token::CaretAssign
    )
}
