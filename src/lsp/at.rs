//! What stands at a position: by what is known of the text as it is, or else, where that has errors, by what was known of
//! the text before, if the place is in a part that did not change.

use std::sync::Arc;

use crate::base::{Meaning, Span, SymbolKind};

use super::analysis::Analysis;
use super::state::State;

/// A place in a document, and what knows about it.
pub(super) struct At {
    pub(super) analysis: Arc<Analysis>,
    /// In the text of the analysis.
    pub(super) offset: usize,
    /// Names there, with what they mean.
    pub(super) found: Vec<(Span, Meaning)>,
    /// What of that text stands in the text as it is now.
    pub(super) kept: Kept,
}

/// The beginning and the end that two texts have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    before: usize,
    behind: usize,
    old: usize,
    new: usize,
}

impl Kept {
    /// What of an old text stands in a new one. Whole lines count: a name is kept whole or not at all.
    pub(super) fn of(old: &str, new: &str) -> Self {
        if old == new {
            return Self { before: old.len(), behind: 0, old: old.len(), new: new.len() };
        }
        let (a, b) = (old.as_bytes(), new.as_bytes());
        let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let before = a[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let most = a.len().min(b.len()) - before;
        let same = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(x, y)| x == y).count();
        let behind = a[a.len() - same..].iter().position(|byte| *byte == b'\n').map_or(0, |at| same - at);
        Self { before, behind, old: a.len(), new: b.len() }
    }

    /// A byte of the new text in the old one.
    pub(super) fn in_old(&self, offset: usize) -> Option<usize> {
        match offset {
            _ if offset < self.before => Some(offset),
            _ if offset >= self.new - self.behind => Some(offset + self.old - self.new),
            _ => (self.old == self.new && self.before == self.old).then_some(offset),
        }
    }

    /// A span of the old text in the new one.
    pub(super) fn in_new(&self, span: Span) -> Option<Span> {
        let (start, end) = (span.start as usize, span.end as usize);
        if end <= self.before {
            Some(span)
        } else if start >= self.old - self.behind {
            let moved = |at: usize| (at + self.new - self.old) as u32;
            Some(Span { start: moved(start), end: moved(end), ..span })
        } else {
            None
        }
    }
}

impl At {
    /// What is known of an offset of the text of a document as it is now.
    pub(super) fn of(state: &State, uri: &str, analysis: &Arc<Analysis>, offset: usize) -> Self {
        let text = analysis.text();
        let found = analysis.meanings.at(analysis.main, offset as u32);
        let now = Self { analysis: analysis.clone(), offset, found, kept: Kept::of(text, text) };
        let unclear = now.found.is_empty() && analysis.has_errors();
        let good = state.good(uri).filter(|_| unclear && !text[..].is_empty());
        let Some(good) = good else { return now };
        let kept = Kept::of(good.text(), text);
        let Some(offset) = kept.in_old(offset) else { return now };
        let found = good.meanings.at(good.main, offset as u32);
        if found.is_empty() && good.meanings.type_at(good.main, offset as u32).is_none() {
            return now;
        }
        Self { analysis: good.clone(), offset, found, kept }
    }

    /// The name that is meant, and what it means: of a name that is a field and a variable, the variable.
    pub(super) fn meant(&self) -> Option<(Span, Meaning)> {
        let field = |meaning: &Meaning| match meaning {
            Meaning::Declared(span) => self.analysis.symbol(*span).is_some_and(|s| s.kind == SymbolKind::Field),
            _ => false,
        };
        self.found.iter().min_by_key(|(_, meaning)| field(meaning)).cloned()
    }

    /// A span of the analysis where it is in the files as they are now; `None` where it is no longer.
    pub(super) fn now(&self, span: Span) -> Option<Span> {
        if span.file == self.analysis.main { self.kept.in_new(span) } else { Some(span) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::FileId;

    fn moved(old: &str, new: &str, name: &str) -> Option<usize> {
        let at = old.find(name).expect("it is there");
        let span = Kept::of(old, new).in_new(Span::new(FileId(0), at, at + name.len()));
        span.map(|span| span.start as usize)
    }

    #[test]
    fn lines_that_did_not_change_are_kept() {
        let (old, new) = ("one\ntwo\nthree\n", "one\ntwo more\nthree\n");
        assert_eq!(moved(old, new, "one"), Some(0));
        assert_eq!(moved(old, new, "two"), None);
        assert_eq!(moved(old, new, "three"), Some(13));
        assert_eq!(Kept::of(old, new).in_old(13), Some(8));
        assert_eq!(Kept::of(old, new).in_old(5), None);
    }

    #[test]
    fn what_is_the_same_at_both_ends_is_not_counted_twice() {
        assert_eq!(moved("a\na\na\n", "a\na\n", "a"), Some(0));
        assert_eq!(Kept::of("x\n", "x\nx\n").in_new(Span::new(FileId(0), 0, 1)).map(|s| s.start), Some(0));
        assert_eq!(moved("one", "one two", "one"), None);
        assert_eq!(moved("", "x", ""), Some(0));
    }
}
