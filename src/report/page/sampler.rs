//! What the sampler did: energies, trees and step sizes.

use std::fmt::Write as _;

use indexmap::IndexMap;

use super::figure::Figure;
use super::panel::{FRAME, LIMIT, Panel, TEXT};
use crate::mcmc::diagnostics::{e_bfmi, mean, quantiles, sd};
use crate::mcmc::protocol::{ENERGY, N_LEAPFROG, TREEDEPTH};
use crate::picture::{Anchor, Axis, Picture, short};
use crate::report::statistics::E_BFMI_LIMIT;
use crate::report::summary::{fixed, scalar_chains, significant, whole};
use crate::types::Array;

const SIZE: (f64, f64) = (480.0, 260.0);
/// Bins of a histogram.
const BINS: usize = 48;
/// Chains that have a dot each; of more there is a histogram.
const DOTS: usize = 80;
/// Rows of tables of chains.
const ROWS: usize = 10;

fn statistic(statistics: &IndexMap<String, Array>, name: &str) -> Vec<Vec<f64>> {
    statistics.get(name).map_or_else(Vec::new, |array| scalar_chains(array, 0))
}

fn panel(x: Axis, y: Axis) -> Panel {
    Panel { x, y, corner: (58.0, 12.0), size: (SIZE.0 - 74.0, SIZE.1 - 52.0) }
}

/// The distribution of the energy about its mean, and that of its changes.
pub(super) fn energies(statistics: &IndexMap<String, Array>) -> Option<Figure> {
    let energies = statistic(statistics, ENERGY);
    let all: Vec<f64> = energies.iter().flatten().copied().filter(|e| e.is_finite()).collect();
    let changes = energies.iter().flat_map(|chain| chain.windows(2)).map(|pair| pair[1] - pair[0]);
    let changes: Vec<f64> = changes.filter(|change| change.is_finite()).collect();
    let moves = sd(&[&all]) > 0.0;
    if changes.len() < BINS || !moves {
        return None;
    }
    let middle = mean(&[&all]);
    let marginal: Vec<f64> = all.iter().map(|e| e - middle).collect();
    let ends = |values: &Vec<f64>| quantiles(&[values], &[0.001, 0.999]);
    let (a, b) = (ends(&marginal), ends(&changes));
    let (low, high) = (a[0].min(b[0]), a[1].max(b[1]));
    let density = |values: &[f64]| -> Vec<f64> {
        let mut counts = vec![0.0; BINS];
        for value in values.iter().filter(|value| (low..high).contains(*value)) {
            counts[(((value - low) / (high - low) * BINS as f64) as usize).min(BINS - 1)] += 1.0;
        }
        let scale = BINS as f64 / (high - low) / values.len() as f64;
        counts.iter().map(|count| count * scale).collect()
    };
    let (of_energy, of_changes) = (density(&marginal), density(&changes));
    let most = of_energy.iter().chain(&of_changes).copied().fold(0.0, f64::max);
    let panel = panel(
        Axis::within("energy, less its mean; change of the energy", low..high, 7.0),
        Axis::linear("", 0.0, most, 5.0),
    );
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    panel.draw(&mut picture);
    let looks = [
        (&of_energy, r#"fill="var(--c0)" fill-opacity="0.25" stroke="var(--c0)" stroke-width="1.6""#),
        (
            &of_changes,
            r#"fill="var(--c1)" fill-opacity="0.2" stroke="var(--c1)" stroke-width="1.6" stroke-dasharray="5 3""#,
        ),
    ];
    for (densities, look) in looks {
        let mut path = String::new();
        let (x, y) = panel.at(low, 0.0);
        let _ = write!(path, "M{x:.1},{y:.1}");
        for (i, density) in densities.iter().enumerate() {
            let edge = |i: usize| low + (high - low) * i as f64 / BINS as f64;
            let (x, y) = panel.at(edge(i), *density);
            let _ = write!(path, "L{x:.1},{y:.1}H{:.1}", panel.at(edge(i + 1), 0.0).0);
        }
        let _ = write!(path, "V{y:.1}z");
        picture.path(&path, look);
    }
    for (i, (name, color, dashes)) in
        [("energy", "var(--c0)", ""), ("change", "var(--c1)", "5 3")].into_iter().enumerate()
    {
        let (x, y) = (SIZE.0 - 96.0, 24.0 + 18.0 * i as f64);
        picture.line((x, y), (x + 20.0, y), crate::picture::Pen { color, width: 2.0, dashes });
        picture.text((x + 26.0, y + 4.0), Anchor::Start, TEXT, name);
    }
    let (of, from) = (sd(&[&marginal]), sd(&[&changes]));
    let seen =
        format!("The energy has standard deviation {}, its changes {}.", significant(of, 3), significant(from, 3));
    let about = "Where changes are much narrower than the energy itself, the momentum explores the energies slowly.";
    let row = |name: &str, values: &[f64]| {
        let q = quantiles(&[values], &[0.05, 0.5, 0.95]);
        let cells = [sd(&[values]), q[0], q[1], q[2]].map(|x| significant(x, 3));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let rows = vec![row("energy, less its mean", &marginal), row("change", &changes)];
    let figure = Figure::new("energy", "Energy, and its change from draw to draw", picture, &seen, about);
    Some(figure.with("Energies", &["", "sd", "5%", "50%", "95%"], rows))
}

/// E-BFMI of each chain.
pub(super) fn fractions(statistics: &IndexMap<String, Array>, numbers: &[usize]) -> Option<Figure> {
    let values: Vec<f64> = statistic(statistics, ENERGY).iter().map(|chain| e_bfmi(chain)).collect();
    let low = values.iter().filter(|value| **value < E_BFMI_LIMIT).count();
    let seen = format!("{low} of {} chains are below {E_BFMI_LIMIT}.", values.len());
    of_chains("e-bfmi", "E-BFMI by chain", "E-BFMI", &values, numbers, Some(E_BFMI_LIMIT), &seen)
}

/// Step sizes at the end of warmup.
pub(super) fn stepsizes(stepsizes: &[f64], numbers: &[usize]) -> Option<Figure> {
    let q = quantiles(&[stepsizes], &[0.0, 0.5, 1.0]);
    let [least, median, most] = [0, 1, 2].map(|i| significant(q[i], 3));
    let seen = format!("Step sizes from {least} to {most}, median {median}.");
    of_chains("stepsizes", "Step sizes after warmup", "step size", stepsizes, numbers, None, &seen)
}

/// A number of each chain: a dot for each of few chains, a histogram of many.
fn of_chains(
    id: &str,
    title: &str,
    what: &str,
    values: &[f64],
    numbers: &[usize],
    limit: Option<f64>,
    seen: &str,
) -> Option<Figure> {
    let mut sorted: Vec<(f64, usize)> =
        values.iter().copied().zip(numbers.iter().copied()).filter(|(x, _)| x.is_finite()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (sorted.first()?.0, sorted.last()?.0);
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    let (low, high) = limit.map_or((first, last), |limit| (first.min(limit), last.max(limit)));
    if sorted.len() <= DOTS {
        let panel = panel(
            Axis::linear("chain, from the least to the most", 0.5, sorted.len() as f64 + 0.5, 1.0),
            Axis::linear(what, low.min(0.0), high, 5.0),
        );
        let panel = Panel { x: Axis::bare(0.0..sorted.len() as f64), ..panel };
        panel.draw(&mut picture);
        if let Some(limit) = limit {
            panel.across(&mut picture, limit, LIMIT);
        }
        let every = (sorted.len() as f64 * 24.0 / panel.size.0).ceil().max(1.0) as usize;
        for (i, (value, number)) in sorted.iter().enumerate() {
            let (x, y) = panel.at(i as f64 + 0.5, *value);
            picture.element(&format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="var(--c0)"/>"#));
            if i % every == 0 {
                picture.text((x, panel.corner.1 + panel.size.1 + 15.0), Anchor::Middle, TEXT, &number.to_string());
            }
        }
        let (x, y) = (panel.corner.0 + panel.size.0 / 2.0, panel.corner.1 + panel.size.1 + 31.0);
        picture.text((x, y), Anchor::Middle, TEXT, "chains, from the least to the most");
    } else {
        let axis = Axis::linear(what, low, high, 7.0);
        let (from, to) = axis.ends();
        let mut counts = vec![0.0; BINS];
        for (value, _) in &sorted {
            counts[(((value - from) / (to - from) * BINS as f64) as usize).min(BINS - 1)] += 1.0;
        }
        let panel = panel(axis, Axis::from_zero("chains", [counts.iter().copied().fold(0.0, f64::max)]));
        panel.draw(&mut picture);
        let mut path = String::new();
        for (i, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let edge = |i: usize| from + (to - from) * i as f64 / BINS as f64;
            let ((x, y), (end, ground)) = (panel.at(edge(i), *count), panel.at(edge(i + 1), 0.0));
            let _ = write!(path, "M{x:.1},{ground:.1}V{y:.1}H{:.1}V{ground:.1}z", end - 0.6);
        }
        picture.path(&path, r#"fill="var(--c0)" fill-opacity="0.75""#);
        if let Some(limit) = limit {
            let ends = panel.y.ends();
            panel.line(&mut picture, &[(limit, ends.0), (limit, ends.1)], LIMIT);
        }
    }
    let rows = sorted.iter().take(ROWS).map(|(value, number)| vec![format!("chain {number}"), significant(*value, 4)]);
    Some(Figure::new(id, title, picture, seen, seen).with("The least", &["", what], rows.collect()))
}

/// As it has room in a cell.
fn count_of(count: usize) -> String {
    if count < 10_000 { count.to_string() } else { short(count as f64) }
}

/// How long the trajectories were: depth of trees and leapfrog steps.
pub(super) fn trees(statistics: &IndexMap<String, Array>, most_allowed: Option<i64>) -> Option<Figure> {
    let (depths, leapfrogs) = (statistic(statistics, TREEDEPTH), statistic(statistics, N_LEAPFROG));
    let pairs: Vec<(i64, i64)> = depths
        .iter()
        .flatten()
        .zip(leapfrogs.iter().flatten())
        .filter(|(depth, steps)| depth.is_finite() && steps.is_finite())
        .map(|(depth, steps)| (*depth as i64, *steps as i64))
        .collect();
    let deepest = pairs.iter().map(|(depth, _)| *depth).max().filter(|depth| (1..64).contains(depth))?;
    // Steps in doublings: 1, 2 to 3, 4 to 7, …
    let bin = |steps: i64| i64::from(64 - (steps.max(0) as u64).leading_zeros());
    let longest = pairs.iter().map(|(_, steps)| bin(*steps)).max().unwrap_or(0).max(1);
    let (columns, rows) = (deepest as usize + 1, longest as usize + 1);
    let mut counts = vec![0_usize; columns * rows];
    pairs.iter().for_each(|(depth, steps)| counts[(*depth).max(0) as usize * rows + bin(*steps) as usize] += 1);
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    let (left, top, width, height) = (78.0, 12.0, SIZE.0 - 94.0, SIZE.1 - 52.0);
    let (w, h) = (width / columns as f64, height / rows as f64);
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (column, row) = ((at / rows) as f64, (at % rows) as f64);
        let (x, y) = (left + w * column, top + height - h * (row + 1.0));
        let part = (1.0 + *count as f64).ln() / (1.0 + most).ln();
        picture.element(&format!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="var(--c0)" fill-opacity="{:.2}"/>"#,
            w - 1.0,
            h - 1.0,
            0.15 + 0.6 * part
        ));
        if h >= 13.0 && w >= 34.0 {
            picture.text((x + w / 2.0, y + h / 2.0 + 4.0), Anchor::Middle, TEXT, &count_of(*count));
        }
    }
    picture.line((left, top + height), (left + width, top + height), FRAME);
    picture.line((left, top), (left, top + height), FRAME);
    let every = (20.0 / w).ceil().max(1.0) as usize;
    for column in (0..columns).step_by(every) {
        let x = left + w * (column as f64 + 0.5);
        picture.text((x, top + height + 15.0), Anchor::Middle, TEXT, &column.to_string());
    }
    let every = (14.0 / h).ceil().max(1.0) as usize;
    for row in (0..rows).step_by(every) {
        let y = top + height - h * (row as f64 + 0.5) + 4.0;
        let name = match row {
            0 => "0".to_owned(),
            1 => "1".to_owned(),
            row => format!("{}–{}", 1_u64 << (row - 1), (1_u64 << row) - 1),
        };
        picture.text((left - 6.0, y), Anchor::End, TEXT, &name);
    }
    picture.text((left + width / 2.0, top + height + 31.0), Anchor::Middle, TEXT, "tree depth");
    picture.upright((13.0, top + height / 2.0), TEXT, "leapfrog steps");
    let rows = (0..=deepest).filter_map(|depth| {
        let steps: Vec<f64> = pairs.iter().filter(|(d, _)| *d == depth).map(|(_, steps)| *steps as f64).collect();
        let median = quantiles(&[&steps], &[0.5])[0];
        let part = 100.0 * steps.len() as f64 / pairs.len() as f64;
        (!steps.is_empty()).then(|| vec![format!("depth {depth}"), format!("{part:.1} %"), whole(median)])
    });
    let all: Vec<f64> = pairs.iter().map(|(_, steps)| *steps as f64).collect();
    let limit = most_allowed.map_or(String::new(), |most| format!("; the largest that is allowed is {most}"));
    let seen = format!(
        "Trees have depth {deepest} at most{limit}. A transition takes {} leapfrog steps on average.",
        fixed(mean(&[&all]), 1)
    );
    let figure = Figure::new("trees", "Tree depth and leapfrog steps", picture, &seen, &seen);
    Some(figure.with("Transitions by depth", &["", "of all", "median steps"], rows.collect()))
}
