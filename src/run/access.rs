//! What a lane is told whose index is out of range.

use crate::base::Loc;
use crate::prim::{Class, Prim, Traps};

/// An index, a slice, a gather or a scatter: what it asks of an array.
pub struct Access<'a> {
    /// Extents of the array.
    pub shape: &'a [usize],
    /// Indices: one for each of the leading axes.
    pub axes: usize,
    /// How many places the indices name: 1 but for gathers and scatters.
    pub places: usize,
    /// Of a slice the number of its entries.
    pub entries: Option<usize>,
    /// The index of an axis at a place.
    pub index: &'a dyn Fn(usize, usize) -> i64,
}

impl Access<'_> {
    /// Which operand of a primitive is its first index, the array being the first operand; `None` for one that accesses no part of an
    /// array.
    pub fn first_index(prim: Prim) -> Option<usize> {
        match prim.class() {
            Class::Movement(movement) if prim.row().traps == Traps::Always => Some(movement.values()),
            _ => None,
        }
    }

    /// The message of the trap: the first index that is out of range, place after place, axis after axis. Of a slice it is the first of its
    /// entries that is not there, as a loop over them would meet it.
    pub fn message(&self, loc: &Loc) -> String {
        let name = loc
            .array
            .as_ref()
            .map_or_else(|| "an array without a name".to_owned(), |array| format!("`{}`", array.name));
        if loc.array.as_ref().is_some_and(|array| array.bounded) {
            return format!("the index is not within the length that {name} has in this lane");
        }
        let all = (0..self.places).flat_map(|place| (0..self.axes).map(move |axis| (place, axis)));
        let mut found = all.map(|(place, axis)| ((self.index)(axis, place), self.shape[axis]));
        let entries = self.entries.unwrap_or(1);
        let fits = |i: i64, extent: usize| usize::try_from(i).is_ok_and(|i| entries <= extent && i <= extent - entries);
        let Some((first, extent)) = found.find(|(i, extent)| !fits(*i, *extent)) else {
            return String::new();
        };
        // Where what is made comes from, indices count from 1, and arrays have their own names.
        let (name, base) = match &loc.place {
            Some(place) => (format!("`{}`", indexed(&place.text)), 1),
            None => (name, 0),
        };
        let index = (if first < 0 { first } else { first.max(extent as i64) }).saturating_add(base);
        match extent {
            0 => format!("{name} has no index {index}: it is empty"),
            1 => format!("{name} has no index {index}: the only one is {base}"),
            _ => format!("{name} has no index {index}: they go from {base} to {}", extent as i64 - 1 + base),
        }
    }
}

/// What is indexed in a text such as `x[k]`.
fn indexed(text: &str) -> &str {
    let text = text.lines().next().unwrap_or_default().trim();
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 1 => return text[..at].trim(),
            '[' => depth -= 1,
            // Indices that go on in the next line.
            _ if depth == 0 => break,
            _ => {}
        }
    }
    let whole = |array: &&str| array.matches('(').count() == array.matches(')').count();
    text.split_once('[').map(|(array, _)| array.trim()).filter(whole).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(shape: &[usize], indices: &[i64], entries: Option<usize>) -> String {
        let mut loc = Loc::new("f", 1);
        loc.array = Some(std::sync::Arc::new(crate::base::ArrayName { name: "x".to_owned(), bounded: false }));
        Access { shape, axes: indices.len(), places: 1, entries, index: &|axis, _| indices[axis] }.message(&loc)
    }

    #[test]
    fn what_is_indexed_is_all_before_the_last_brackets() {
        for (text, array) in [
            ("x[k]", "x"),
            ("f(x[1:3])[k[2]]", "f(x[1:3])"),
            ("x[k,\n  2]", "x"),
            ("f(x[1],\n  2)[k]", "f(x[1],"),
            ("x", "x"),
        ] {
            assert_eq!(indexed(text), array, "{text}");
        }
    }

    #[test]
    fn the_index_the_extent_and_the_array_are_told() {
        assert_eq!(told(&[5], &[7], None), "`x` has no index 7: they go from 0 to 4");
        assert_eq!(told(&[5, 2], &[4, -1], None), "`x` has no index -1: they go from 0 to 1");
        assert_eq!(told(&[5], &[3], Some(3)), "`x` has no index 5: they go from 0 to 4");
        assert_eq!(told(&[5], &[8], Some(3)), "`x` has no index 8: they go from 0 to 4");
        assert_eq!(told(&[5], &[-8], Some(3)), "`x` has no index -8: they go from 0 to 4");
        assert_eq!(told(&[1], &[1], None), "`x` has no index 1: the only one is 0");
        assert_eq!(told(&[0], &[0], None), "`x` has no index 0: it is empty");
        assert_eq!(told(&[2], &[i64::MAX], Some(3)), "`x` has no index 9223372036854775807: they go from 0 to 1");
    }
}
