//! Files of Stan CSV of methods other than sampling: comments, a line of names, rows.

use std::io::{self, Write};
use std::path::Path;

use indexmap::IndexMap;

use super::header::version_lines;
use super::write::Columns;
use crate::types::Array;

/// What the comments tell of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct CsvHeader {
    /// The name of the model.
    pub model: String,
    /// CmdStan's name of the method.
    pub method: &'static str,
    /// What can be set of it, `name = value`.
    pub lines: Vec<String>,
    /// The file of the data.
    pub data: Option<String>,
    /// Where it starts.
    pub init: Option<String>,
    /// The seed.
    pub seed: u64,
    /// Significant digits of the numbers.
    pub digits: usize,
}

impl CsvHeader {
    /// The name of the model of a file.
    pub fn model_of(path: &Path) -> String {
        format!("{}_model", path.file_stem().unwrap_or_default().to_string_lossy())
    }

    fn all_lines(&self, id: u64, file: &str) -> Vec<String> {
        let mut lines = version_lines(&self.model);
        lines.extend([format!("method = {}", self.method), format!("  {}", self.method)]);
        lines.extend(self.lines.iter().map(|line| format!("    {line}")));
        lines.extend([
            format!("id = {id}"),
            "data".to_owned(),
            format!("  file = {}", self.data.clone().unwrap_or_default()),
            format!("init = {}", self.init.clone().unwrap_or_else(|| "2 (Default)".to_owned())),
            "random".to_owned(),
            format!("  seed = {}", self.seed),
            "output".to_owned(),
            format!("  file = {file}"),
            format!("  sig_figs = {}", self.digits),
        ]);
        lines
    }
}

/// The tables of a run, one a chain, start or path.
#[derive(Clone, Copy, Debug)]
pub struct CsvTables<'a> {
    /// What the comments tell.
    pub header: &'a CsvHeader,
    /// Columns whose names get `__`: chain × row.
    pub statistics: &'a IndexMap<String, Array>,
    /// Chain × row × event shape.
    pub parameters: &'a IndexMap<String, Array>,
    /// Tables.
    pub chains: usize,
    /// Rows of each.
    pub rows: usize,
}

impl CsvTables<'_> {
    /// Writes the table of a chain to a file of this name; `id` is its number, from 1.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, chain: usize, id: u64, file: &str) -> io::Result<()> {
        for line in self.header.all_lines(id, file) {
            writeln!(out, "# {line}")?;
        }
        let columns =
            Columns::in_order(self.statistics.iter().map(|(name, array)| (name.as_str(), array)), self.parameters);
        writeln!(out, "{}", columns.names().join(","))?;
        columns.rows(out, (chain, self.rows), self.header.digits)
    }
}
