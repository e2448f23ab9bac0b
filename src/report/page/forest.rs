//! Where the parameters are: an interval for each, those of a variable over one axis.

use indexmap::IndexMap;
use rayon::prelude::*;

use super::figure::Figure;
use super::panel::{INK, MUTED, Panel, SERIES, TEXT, cut};
use super::scalars::Scalar;
use crate::mcmc::diagnostics::quantiles;
use crate::picture::{Anchor, Axis, Pen, Picture};
use crate::report::summary::significant;

const WIDTH: f64 = 470.0;
const NAMES: f64 = 118.0;
const STEP: f64 = 20.0;
const PROBABILITIES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
const THIN: Pen = Pen { color: MUTED, width: 1.5, dashes: "" };
const THICK: Pen = Pen { color: SERIES[0], width: 5.0, dashes: "" };

/// A picture for each variable.
pub(super) fn forest(scalars: &[Scalar<'_>]) -> Vec<Figure> {
    let of = |scalar: &Scalar<'_>| quantiles(&scalar.chains, &PROBABILITIES);
    let intervals: Vec<Vec<f64>> = scalars.par_iter().map(of).collect();
    let mut variables: IndexMap<&str, Vec<(&str, &[f64])>> = IndexMap::new();
    for (scalar, interval) in scalars.iter().zip(&intervals) {
        let name = scalar.row.name.as_str();
        variables.entry(name.split('[').next().unwrap_or(name)).or_default().push((name, interval));
    }
    variables.into_iter().enumerate().map(|(at, (name, rows))| of_variable(at, name, rows)).collect()
}

fn of_variable(at: usize, variable: &str, mut rows: Vec<(&str, &[f64])>) -> Figure {
    // In the order of their indices.
    rows.sort_by_key(|(name, _)| indices(name));
    let ends = || rows.iter().flat_map(|(_, interval)| [interval[0], interval[4]]);
    let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(f64::NEG_INFINITY, f64::max));
    let height = STEP * rows.len() as f64;
    let panel = Panel {
        x: Axis::linear(variable, low, high, 6.0),
        y: Axis::bare(0.0..rows.len() as f64),
        corner: (NAMES, 8.0),
        size: (WIDTH - NAMES - 16.0, height),
    };
    let mut picture = Picture::new(WIDTH, height + 46.0);
    panel.draw(&mut picture);
    for (i, (name, interval)) in rows.iter().enumerate() {
        let y = rows.len() as f64 - i as f64 - 0.5;
        panel.line(&mut picture, &[(interval[0], y), (interval[4], y)], THIN);
        panel.line(&mut picture, &[(interval[1], y), (interval[3], y)], THICK);
        let (x, y) = panel.at(interval[2], y);
        picture.element(&format!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.6" fill="var(--paper)" stroke="{INK}" stroke-width="1.6"/>"#
        ));
        picture.text((NAMES - 8.0, y + 4.0), Anchor::End, TEXT, &cut(name, NAMES - 12.0));
    }
    let seen =
        format!("{} intervals over one axis, from {} to {}.", rows.len(), significant(low, 4), significant(high, 4));
    let table = rows.iter().map(|(name, interval)| {
        let cells = interval.iter().map(|x| significant(*x, 4));
        std::iter::once((*name).to_owned()).chain(cells).collect()
    });
    let table = table.collect();
    Figure::new(&format!("forest-{at}"), variable, picture, &seen, "").with(
        "Quantiles",
        &["", "5%", "25%", "50%", "75%", "95%"],
        table,
    )
}

fn indices(name: &str) -> Vec<usize> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}
