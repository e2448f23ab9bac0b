//! A page of a report that needs nothing else: figures and tables.

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};

use super::figure::Figure;
use super::report::Report;
use super::table::{Table, TableLine};
use crate::program::{Error, ErrorKind};

const TEMPLATE: &str = include_str!("report.html");

/// The page of a report with its figures, which stand in the order of its groups.
///
/// # Errors
/// Never for a report of this version: the template is part of the program.
pub fn page(report: &Report, figures: &[Figure]) -> Result<String, Error> {
    let failed = |e: minijinja::Error| Error::new(ErrorKind::Io, format!("the page cannot be made: {e}"));
    let mut environment = Environment::new();
    environment.add_template("report.html", TEMPLATE).map_err(failed)?;
    let mut sections: Vec<Value> = Vec::new();
    for (figure, (group, rows)) in figures.iter().zip(report.groups()) {
        let Table { title, about, head, lines, names } = Table::of(report, group, &rows);
        let lines: Vec<Value> = lines.into_iter().map(|TableLine { cells, void }| context! { cells, void }).collect();
        sections.push(context! { title, about, svg => figure.svg.as_str(), head, lines, names });
    }
    let template = environment.get_template("report.html").map_err(failed)?;
    let skipped: Vec<String> = report.skipped.iter().map(ToString::to_string).collect();
    let (remarks, setup) = (report.remarks(), report.setup_lines());
    let context = context! { report => Value::from(Serde(report)), sections, skipped, remarks, setup };
    template.render(context).map_err(failed)
}
