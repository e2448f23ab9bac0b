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
    environment.add_template("report.html", TEMPLATE).map_err(failed)?;
    let tables: Vec<Value> = (figures.iter().zip(report.figures()))
        .map(|(figure, (key, rows))| {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    context! {
                        chains => row.chains,
                        series => row.series(),
                        rate => Value::from(Serde(row.rate)),
                        ess => Value::from(Serde(row.effective_samples_per_second)),
                        of_bound => row.bound.map(|b| row.rate.median / b),
                        utilization => row.utilization,
                        void => row.foreign_load.is_some_and(|load| load.void),
                    }
                })
                .collect();
            let bounds: Vec<Value> = (report.bounds(key).into_iter())
                .map(|(chains, rate)| context! { chains, rate => Value::from(Serde(rate)) })
                .collect();
            context! { title => figure.title(), svg => figure.svg.as_str(), unit => unit(report, key), rows, bounds }
        })
        .collect();
    let template = environment.get_template("report.html").map_err(failed)?;
    template.render(context! { report => Value::from(Serde(report)), tables }).map_err(failed)
}

fn unit<'a>(report: &'a Report, key: (&str, &str, usize)) -> &'a str {
    report.results.iter().find(|row| row.figure() == key).map_or("", |row| row.unit.as_str())
}
