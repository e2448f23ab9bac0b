//! Two parameters against each other: draws as hexagons, and divergent transitions one by one.

use std::fmt::Write as _;

use indexmap::IndexMap;

use super::figure::Figure;
use super::panel::{FRAME, Panel, TEXT, cut};
use super::scalars::Scalar;
use crate::mcmc::diagnostics::quantiles;
use crate::picture::{Anchor, Axis, Picture};
use crate::report::diagnosis::correlation;
use crate::report::summary::{fixed, scalar_chains};
use crate::types::Array;

/// Parameters that are drawn.
pub(super) const PARAMETERS: usize = 6;
/// Divergent transitions that are marked.
const MARKS: usize = 500;
/// The side of a panel, and what lies between two.
const SIDE: f64 = 148.0;
const GAP: f64 = 10.0;
const LEFT: f64 = 62.0;
/// Half of the height of a hexagon.
const RADIUS: f64 = 5.2;
/// Shades, by the logarithm of how many draws a hexagon has.
const SHADES: [&str; 5] = ["0.16", "0.32", "0.5", "0.72", "1"];

/// All pairs of the parameters; `divergent` are the places of divergent draws, chain after chain.
pub(super) fn pairs(scalars: &[Scalar<'_>], divergent: &[usize]) -> Option<Figure> {
    let shown = &scalars[..scalars.len().min(PARAMETERS)];
    let count = shown.len();
    if count < 2 {
        return None;
    }
    let values: Vec<Vec<f64>> = shown.iter().map(|s| s.chains.iter().flatten().copied().collect()).collect();
    let marks = spread(divergent, MARKS);
    let axes: Vec<Axis> = values.iter().map(|values| axis(values, &marks)).collect();
    let side = SIDE.min((960.0 - LEFT) / (count - 1) as f64 - GAP).max(SIDE / 1.2);
    let extent = (side + GAP) * (count - 1) as f64;
    let mut picture = Picture::new(LEFT + extent, extent + 40.0);
    for row in 1..count {
        for column in 0..row {
            let corner = (LEFT + (side + GAP) * column as f64, (side + GAP) * (row - 1) as f64 + 4.0);
            let panel = Panel { x: axes[column].clone(), y: axes[row].clone(), corner, size: (side, side) };
            panel.draw_lines(&mut picture);
            // What would reach beyond the frame is cut.
            let (x, y) = corner;
            picture.element(&format!(
                r#"<svg x="{x}" y="{y}" width="{side}" height="{side}" viewBox="{x} {y} {side} {side}">"#
            ));
            hexagons(&mut picture, &panel, &values[column], &values[row]);
            let mut path = String::new();
            for at in &marks {
                let (x, y) = panel.at(values[column][*at], values[row][*at]);
                let _ = write!(path, "M{x:.1},{y:.1}h0");
            }
            if !path.is_empty() {
                picture.path(&path, r#"class="divergent-edge""#);
                picture.path(&path, r#"class="divergent""#);
            }
            picture.element("</svg>");
        }
    }
    for (at, scalar) in shown.iter().enumerate() {
        let name = cut(&scalar.row.name, side - 6.0);
        if at > 0 {
            let top = (side + GAP) * (at - 1) as f64 + 4.0;
            picture.upright((12.0, top + side / 2.0), TEXT, &name);
            for (value, y) in ticks(&axes[at], side, 22.0) {
                picture.text((LEFT - 6.0, top + side - y + 4.0), Anchor::End, TEXT, &axes[at].label(value));
            }
        }
        if at + 1 < count {
            let left = LEFT + (side + GAP) * at as f64;
            picture.text((left + side / 2.0, extent + 30.0), Anchor::Middle, TEXT, &name);
            let mut end = left;
            for (value, x) in ticks(&axes[at], side, 1.0) {
                let label = axes[at].label(value);
                let half = label.chars().count() as f64 * 3.3;
                // Neither over its neighbour nor into the next panel.
                if left + x - half >= end && left + x + half <= left + side {
                    picture.text((left + x, extent + 12.0), Anchor::Middle, TEXT, &label);
                    end = left + x + half + 6.0;
                }
            }
        }
    }
    picture.line((LEFT, extent - 2.0), (LEFT, 4.0), FRAME);
    let marked = match (divergent.len(), marks.len()) {
        (0, _) => "No transition was divergent.".to_owned(),
        (all, marked) if all == marked => format!("All {all} divergent transitions are marked."),
        (all, marked) => format!("{marked} of {all} divergent transitions are marked."),
    };
    let seen = format!(
        "Pairs of {count} parameters: {}. {marked}",
        shown.iter().map(|s| s.row.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let about = format!(
        "Darker hexagons have more draws, by their logarithm; squares are divergent transitions. {marked} A few draws in the tails are beyond the frames."
    );
    let head: Vec<&str> = std::iter::once("").chain(shown.iter().map(|s| s.row.name.as_str())).collect();
    let rows = (0..count).map(|a| {
        let cells = (0..count).map(|b| fixed(correlation(&values[a], &values[b]), 2));
        std::iter::once(shown[a].row.name.clone()).chain(cells).collect()
    });
    let figure = Figure::new("pairs", "The worst parameters against each other", picture, &seen, &about);
    Some(figure.with("Correlations", &head, rows.collect()))
}

/// The places of divergent transitions, chain after chain.
pub(super) fn divergent(flags: Option<&Array>) -> Vec<usize> {
    let chains = flags.map_or_else(Vec::new, |array| scalar_chains(array, 0));
    chains.iter().flatten().enumerate().filter(|(_, flag)| **flag != 0.0).map(|(at, _)| at).collect()
}

/// So many of them at most, as far from one another as they go.
fn spread(places: &[usize], most: usize) -> Vec<usize> {
    let count = places.len().min(most);
    (0..count).map(|i| places[i * places.len() / count]).collect()
}

/// Nearly all draws, and the marks with them.
fn axis(values: &[f64], marks: &[usize]) -> Axis {
    let ends = quantiles(&[values], &[0.002, 0.998]);
    let marked: Vec<f64> = marks.iter().map(|at| values[*at]).collect();
    let (low, high) = if marked.is_empty() {
        (ends[0], ends[1])
    } else {
        let of = quantiles(&[marked], &[0.02, 0.98]);
        (ends[0].min(of[0]), ends[1].max(of[1]))
    };
    Axis::linear("", low, high, 4.0)
}

/// The ticks of an axis of this length with their places, not nearer to its ends than so much.
fn ticks(axis: &Axis, length: f64, margin: f64) -> Vec<(f64, f64)> {
    let placed = axis.ticks.iter().map(|tick| (*tick, axis.at(*tick) * length));
    placed.filter(|(_, at)| *at >= margin / 2.0 && *at <= length - margin / 2.0).collect()
}

fn hexagons(picture: &mut Picture, panel: &Panel, x: &[f64], y: &[f64]) {
    let (across, up) = (RADIUS * 3_f64.sqrt(), RADIUS * 1.5);
    let mut counts: IndexMap<(i32, i32), usize> = IndexMap::new();
    let ((left, right), (low, high)) = (panel.x.ends(), panel.y.ends());
    let inside = |(x, y): &(&f64, &f64)| (left..=right).contains(*x) && (low..=high).contains(*y);
    for (x, y) in x.iter().zip(y).filter(inside) {
        let (x, y) = panel.at(*x, *y);
        *counts.entry(hexagon(x / across, y / up)).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(1) as f64;
    let mut paths = [const { String::new() }; SHADES.len()];
    counts.sort_keys();
    for ((column, row), count) in counts {
        let shade = (1.0 + count as f64).ln() / (1.0 + most).ln() * SHADES.len() as f64;
        let shade = (shade as usize).min(SHADES.len() - 1);
        let x = (f64::from(column) + if row % 2 == 0 { 0.0 } else { 0.5 }) * across;
        let y = f64::from(row) * up - RADIUS;
        let (a, b) = (across / 2.0, RADIUS / 2.0);
        let _ = write!(
            paths[shade],
            "M{x:.1},{y:.1}l{a:.1},{b:.1}v{RADIUS:.1}l-{a:.1},{b:.1}l-{a:.1},-{b:.1}v-{RADIUS:.1}z"
        );
    }
    for (path, opacity) in paths.iter().zip(SHADES).filter(|(path, _)| !path.is_empty()) {
        picture.path(path, &format!(r#"fill="var(--c0)" fill-opacity="{opacity}""#));
    }
}

/// The hexagon that a point is in, by its column and row: the nearest of the centres of two grids.
fn hexagon(x: f64, y: f64) -> (i32, i32) {
    let near = |odd: i32| {
        let shift = f64::from(odd) / 2.0;
        let row = 2 * ((y - f64::from(odd)) / 2.0).round() as i32 + odd;
        let column = (x - shift).round() as i32;
        let (dx, dy) = (x - f64::from(column) - shift, y - f64::from(row));
        // Rows are nearer than columns: 1.5 of a radius against the root of 3.
        (dx * dx * 3.0 + dy * dy * 2.25, (column, row))
    };
    let (even, odd) = (near(0), near(1));
    if even.0 <= odd.0 { even.1 } else { odd.1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_in_the_hexagon_whose_centre_is_nearest() {
        assert_eq!(hexagon(0.1, 0.1), (0, 0));
        assert_eq!(hexagon(0.5, 1.0), (0, 1));
        assert_eq!(hexagon(0.9, 0.0), (1, 0));
        assert_eq!(hexagon(0.02, 1.9), (0, 2));
    }

    #[test]
    fn marks_are_spread_over_all() {
        let places: Vec<usize> = (0..2_000).collect();
        let marks = spread(&places, 500);
        assert_eq!((marks.len(), marks[0], marks[499]), (500, 0, 1996));
        assert_eq!(spread(&places[..3], 500), [0, 1, 2]);
    }
}
