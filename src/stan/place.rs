//! Places in a Stan program as stanc writes them, for people and tools that know them.

use crate::base::{SourceMap, Span};

/// `(in 'model.stan', line 3, column 2 to column 17)`: lines from 1, columns from 0, as stanc counts.
pub fn place(sources: &SourceMap, span: Span) -> String {
    let from = sources.line_column(span);
    let to = sources.line_column(Span { start: span.end, ..span });
    let name = &sources.file(span.file).name;
    let (from_column, to_column) = (from.1.saturating_sub(1), to.1.saturating_sub(1));
    let end = if from.0 == to.0 { String::new() } else { format!("line {}, ", to.0) };
    if from == to {
        return format!("(in '{name}', line {}, column {from_column})", from.0);
    }
    format!("(in '{name}', line {}, column {from_column} to {end}column {to_column})", from.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_and_columns_from_zero() {
        let mut sources = SourceMap::default();
        let file = sources.add("model.stan", "model {\n  x ~ normal(0, 1);\n}\n");
        assert_eq!(place(&sources, Span::new(file, 10, 27)), "(in 'model.stan', line 2, column 2 to column 19)");
        assert_eq!(place(&sources, Span::new(file, 0, 29)), "(in 'model.stan', line 1, column 0 to line 3, column 1)");
        assert_eq!(place(&sources, Span::new(file, 3, 3)), "(in 'model.stan', line 1, column 3)");
    }
}
