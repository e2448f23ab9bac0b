//! Names for the text form of the IR: unique, and made of characters that it can read back.

use crate::base;

/// The names that are taken in one scope.
#[derive(Default)]
pub(super) struct Names(base::Names);

impl Names {
    /// `base`, or where that is taken `base.1`, `base.2`, …
    pub(super) fn unique(&mut self, base: &str) -> String {
        self.0.unique_from(&lexable(base), ".", 1)
    }
    /// `prefix1`, `prefix2`, …
    pub(super) fn numbered(&mut self, prefix: &str) -> String {
        self.0.numbered(prefix, 1)
    }
}

/// The name with every character that the text form does not take replaced by `_`.
fn lexable(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '.' | '$');
    let mut text: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
        text.insert(0, '_');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lexable() {
        let mut names = Names::default();
        assert_eq!(names.unique("x"), "x");
        assert_eq!(names.unique("x"), "x.1");
        assert_eq!(names.unique("t1"), "t1");
        assert_eq!(names.numbered("t"), "t2");
        assert_eq!(names.unique("µ"), "_");
        assert_eq!(names.unique("0"), "_0");
    }
}
