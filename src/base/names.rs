//! Unique names.

use std::collections::{HashMap, HashSet};

/// The names that are taken in one scope. What is asked for comes with a number where it is taken.
#[derive(Clone, Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
    /// The last number that was tried, by what stands before it.
    last: HashMap<String, usize>,
}

impl Names {
    /// With these taken.
    pub fn of<'a>(taken: impl IntoIterator<Item = &'a String>) -> Self {
        Self { taken: taken.into_iter().cloned().collect(), last: HashMap::new() }
    }
    /// `wanted`, or where that is taken `wanted#2`, `wanted#3`, …
    pub fn unique(&mut self, wanted: &str) -> String {
        self.unique_from(wanted, "#", 2)
    }
    /// `wanted`, or where that is taken `wanted`, the separator, and a number from `first` on.
    pub fn unique_from(&mut self, wanted: &str, separator: &str, first: usize) -> String {
        if self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        self.search(wanted, separator, first)
    }
    /// `prefix` and a number from `first` on.
    pub fn numbered(&mut self, prefix: &str, first: usize) -> String {
        self.search(prefix, "", first)
    }

    fn search(&mut self, base: &str, separator: &str, first: usize) -> String {
        let last = self.last.entry(base.to_owned()).or_insert(0);
        let mut number = first.max(*last + 1);
        loop {
            *last = number;
            let name = format!("{base}{separator}{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut names = Names::of(&["x".to_owned(), "x#3".to_owned(), "%4".to_owned()]);
        assert_eq!([names.unique("x"), names.unique("x"), names.unique("y")], ["x#2", "x#4", "y"]);
        assert_eq!([names.unique_from("y", ".", 1), names.unique_from("y", ".", 1)], ["y.1", "y.2"]);
        assert_eq!([names.numbered("%", 3), names.numbered("%", 3), names.numbered("%", 9)], ["%3", "%5", "%9"]);
    }
}
