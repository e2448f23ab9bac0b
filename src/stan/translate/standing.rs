//! The translated text as a program that stands by itself: small tables that the data do not have are written in it, so
//! that what is left to be given is mostly what the Stan program was given.

use std::fmt::Write as _;

use indexmap::IndexMap;

use crate::types::Array;

/// Numbers that a table in the text has at most.
const MOST_NUMBERS: usize = 16;
/// Characters of a table in the text at most: it is a line that can be read.
const WIDEST: usize = 90;

/// The text in which every table that is small and of which `given` does not hold is a `let` at the beginning of the
/// functions that took it, and the tables that it takes still.
pub fn standing(
    text: &str,
    tables: &IndexMap<String, Array>,
    given: impl Fn(&str) -> bool,
) -> (String, IndexMap<String, Array>) {
    let (mut written, mut left) = (IndexMap::new(), IndexMap::new());
    for (name, table) in tables {
        match literal(table).filter(|_| !given(name)) {
            Some(literal) => {
                let line = format!("    let {name}: {} = {literal};\n", table.ty());
                written.insert(format!(", shared {name}: {}", table.ty()), line);
            }
            None => {
                left.insert(name.clone(), table.clone());
            }
        }
    }
    // Only what is exported takes tables of a run: the functions that they call take them as they come.
    let mut made = String::with_capacity(text.len());
    for line in text.lines() {
        let mut head = line.to_owned();
        let mut lets = String::new();
        if line.starts_with("pub fn ") {
            for (port, line) in &written {
                // A name may begin another one, a type never goes on.
                if let Some(at) = head.find(port).filter(|at| head[at + port.len()..].starts_with([',', ')'])) {
                    head.replace_range(at..at + port.len(), "");
                    lets.push_str(line);
                }
            }
        }
        // A run has its data for the density: what only draws are made of is among them.
        if line.starts_with("pub fn log_density(")
            && let Some(end) = head.rfind(") -> ")
        {
            let lacking = left.iter().filter(|(name, _)| !head.contains(&format!(", shared {name}: ")));
            let ports: String = lacking.map(|(name, table)| format!(", shared {name}: {}", table.ty())).collect();
            head.insert_str(end, &ports);
        }
        let _ = writeln!(made, "{head}");
        made.push_str(&lets);
    }
    (made, left)
}

/// A small array as an expression of the language.
fn literal(table: &Array) -> Option<String> {
    if table.is_empty() || table.len() > MOST_NUMBERS {
        return None;
    }
    let mut text = String::new();
    write_part(table, 0, 0, &mut text);
    (text.len() <= WIDEST).then_some(text)
}

/// The elements that share their first `axis` indices.
fn write_part(table: &Array, axis: usize, start: usize, text: &mut String) {
    let Some((extent, inner)) = table.shape[axis..].split_first() else {
        text.push_str(&super::super::emit::number(table.get(start)));
        return;
    };
    let stride: usize = inner.iter().product();
    text.push('[');
    for i in 0..*extent {
        if i > 0 {
            text.push_str(", ");
        }
        write_part(table, axis + 1, start + i * stride, text);
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_that_are_not_given_stand_in_the_text() {
        let text = "fn loop_1(x: real, shared data0: int[2]) -> real {\n    x\n}\n\
                    pub fn log_density(q: real[2], shared y: real[2], shared data0: int[2], shared data1: real[1, 2]) -> real {\n    0.0\n}\n";
        let tables = IndexMap::from([
            ("y".to_owned(), Array::real([2], vec![0.5, 1.0])),
            ("data0".to_owned(), Array::int([2], vec![1, -1])),
            ("data1".to_owned(), Array::real([1, 2], vec![f64::INFINITY, -0.5])),
        ]);
        let (made, left) = standing(text, &tables, |name| name == "y");
        let wanted = "fn loop_1(x: real, shared data0: int[2]) -> real {\n    x\n}\n\
                      pub fn log_density(q: real[2], shared y: real[2]) -> real {\n    let data0: int[2] = [1, -1];\n    \
                      let data1: real[1, 2] = [[positive_infinity(), -0.5]];\n    0.0\n}\n";
        assert_eq!(made, wanted);
        assert_eq!(left.keys().collect::<Vec<_>>(), ["y"]);
    }

    #[test]
    fn the_density_takes_what_draws_are_made_of() {
        let text = "pub fn log_density(q: real[1]) -> real {\n}\npub fn parameters(q: real[1], shared y: real[1]) -> Parameters {\n}\n";
        let tables = IndexMap::from([("y".to_owned(), Array::real([1], vec![2.0]))]);
        let (made, _) = standing(text, &tables, |_| true);
        assert_eq!(made, text.replacen("q: real[1])", "q: real[1], shared y: real[1])", 1));
    }

    #[test]
    fn what_is_large_is_given() {
        let tables = IndexMap::from([("data0".to_owned(), Array::int([17], vec![3; 17]))]);
        let text = "pub fn log_density(q: real[1], shared data0: int[17]) -> real {\n}\n";
        assert_eq!(standing(text, &tables, |_| false), (text.to_owned(), tables.clone()));
    }
}
