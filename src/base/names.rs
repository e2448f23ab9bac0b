//! Unique names, and names that are nearly the same.

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

/// The candidate nearest to `name`, when it is near enough to be a slip.
pub fn closest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 40;
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.chars().count() / 3).max(1);
    // Bytes may be more than characters, never fewer.
    let near = |c: &&str| c.len() <= LONGEST && c.len() + 4 * limit >= name.len() && name.len() + 4 * limit >= c.len();
    candidates
        .filter(|c| near(c) && *c != name)
        .map(|c| (edit_distance(name, c), c))
        .filter(|(distance, c)| *distance <= limit && *distance < c.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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

    #[test]
    fn slips_are_near_and_strangers_are_far() {
        assert_eq!(edit_distance("sigma", "sgima"), 1);
        assert_eq!(closest("lenght", ["length", "left"].into_iter()), Some("length"));
        assert_eq!(closest("x", ["alpha"].into_iter()), None);
    }
}
