//! A table of draws that are no chains: quantities that are computed of draws, or draws of an approximation.

use indexmap::IndexMap;

use super::element_names::ElementNames;
use super::summary::rows_of;
use crate::mcmc::sampling::FailedDraws;
use crate::types::Array;

/// The columns of a summary that mean something without chains: name, mean, sd, quantiles.
const COLUMNS: [usize; 6] = [0, 1, 2, 4, 5, 6];
const HEADINGS: [&str; 6] = ["", "mean", "sd", "5%", "50%", "95%"];

/// A row for each scalar of arrays chain × draw × event shape, without the draws that lack it.
pub fn quantity_table(arrays: &IndexMap<String, Array>, failed: Option<&FailedDraws>) -> String {
    let lost = |name: &str| failed.map_or(&[][..], |failed| failed.of(name));
    let names = ElementNames::default();
    let rows = arrays.iter().flat_map(|(name, array)| {
        let event = array.shape.get(2..).unwrap_or_default();
        rows_of(array, |element| names.in_table(name, event, element), lost(name), None)
    });
    let rows = rows.map(|row| {
        let cells = row.cells();
        COLUMNS.map(|column| cells[column].clone())
    });
    aligned(std::iter::once(HEADINGS.map(str::to_owned)).chain(rows).collect::<Vec<_>>().as_slice())
}

/// Lines of cells, the first column to the left, the others to the right.
pub fn aligned<const N: usize>(table: &[[String; N]]) -> String {
    let width = |column: usize| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for cells in table {
        let mut line = format!("{:<1$}", cells[0], widths[0]);
        for (cell, width) in cells.iter().zip(widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
