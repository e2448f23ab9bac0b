//! A page of a report that needs nothing else: figures and tables.

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};

use super::figure::Figure;
use super::report::{Report, short};
use crate::program::{Error, ErrorKind};

const TEMPLATE: &str = include_str!("report.html");

/// The page.
///
/// # Errors
/// Never for a report of this version: the template is part of the program.
pub fn page(report: &Report, figures: &[Figure]) -> Result<String, Error> {
    let failed = |e: minijinja::Error| Error::new(ErrorKind::Io, format!("the page cannot be made: {e}"));
    let mut environment = Environment::new();
    environment.add_filter("short", |x: f64| short(x));
    environment.add_filter("percent", |x: f64| format!("{:.0} %", 100.0 * x));
    environment.add_filter("fixed", |x: f64| format!("{x:.3}"));
    environment.add_filter("digits", |x: f64| format!("{x:.0}"));
    environment.add_template("report.html", TEMPLATE).map_err(failed)?;
    let tables: Vec<Value> = (figures.iter().zip(report.figures()))
        .map(|(figure, (key, rows))| {
            let lanes = rows.first().map_or("chains", |row| row.lanes_name());
            let mut bounds = report.bounds(key).into_iter().peekable();
            let mut table: Vec<Value> = Vec::new();
            for row in rows {
                // The bound of a number of chains stands before its rows.
                if let Some((chains, rate)) = bounds.next_if(|(chains, _)| *chains == row.chains) {
                    table.push(context! { chains, series => "bound", rate => Value::from(Serde(rate)) });
                }
                table.push(context! {
                    chains => row.chains_shown(),
                    series => row.series(),
                    rate => Value::from(Serde(row.rate)),
                    ess => row.effective_samples_per_second.map(|rate| rate.median),
                    of_bound => row.bound.map(|b| row.rate.median / b),
                    utilization => row.utilization,
                    utilization_bound => row.utilization_bound,
                    pushed => row.bytes_pushed,
                    draws => row.draws,
                    void => row.is_void(),
                });
            }
            context! { title => figure.title(), svg => figure.svg.as_str(), unit => unit(report, key), lanes, rows => table }
        })
        .collect();
    let template = environment.get_template("report.html").map_err(failed)?;
    let skipped: Vec<String> = report.skipped.iter().map(ToString::to_string).collect();
    let (remarks, setup) = (report.remarks(), report.setup_lines());
    let context = context! { report => Value::from(Serde(report)), tables, skipped, remarks, setup };
    template.render(context).map_err(failed)
}

fn unit<'a>(report: &'a Report, key: (&str, &str, usize)) -> &'a str {
    report.results.iter().find(|row| row.figure() == key).map_or("", |row| row.unit.as_str())
}
