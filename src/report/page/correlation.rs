//! What draws are worth: autocorrelations, and effective sample sizes of the first draws.

use rayon::prelude::*;

use super::figure::Figure;
use super::panel::{DASHES, LIMIT, Panel, SERIES, TEXT, cut};
use super::scalars::Scalar;
use crate::mcmc::diagnostics::{autocorrelation, ess_bulk, ess_tail};
use crate::picture::{Anchor, Axis, Pen, Picture};
use crate::report::summary::{fixed, whole};

const SIZE: (f64, f64) = (480.0, 300.0);
/// What is left free at the right for names.
const NAMES: f64 = 116.0;
const LAGS: usize = 40;
/// Parameters that are drawn.
pub(super) const LINES: usize = 6;
/// How many numbers of draws are tried.
const STEPS: usize = 8;

/// Autocorrelations within the chains.
pub(super) fn correlations(scalars: &[Scalar<'_>]) -> Option<Figure> {
    let of = |scalar: &Scalar<'_>| autocorrelation(&scalar.chains, LAGS);
    let all: Vec<Vec<f64>> = scalars.par_iter().take(LINES).map(of).collect();
    let lags = all.iter().map(Vec::len).max().filter(|lags| *lags > 1)?;
    let least = all.iter().flatten().copied().fold(0.0, f64::min);
    let y = Axis::linear("", least, 1.0, 6.0);
    let panel = panel(Axis::within("lag", 0.0..(lags - 1) as f64, 8.0), y);
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    panel.draw(&mut picture);
    panel.across(&mut picture, 0.0, LIMIT);
    let mut names = Names::default();
    for (i, (scalar, of)) in scalars.iter().zip(&all).enumerate().filter(|(_, (_, of))| !of.is_empty()) {
        let points: Vec<(f64, f64)> = of.iter().enumerate().map(|(lag, r)| (lag as f64, *r)).collect();
        panel.line(&mut picture, &points, pen(i));
        names.add(&mut picture, &scalar.row.name, pen(i));
    }
    let at = [1, 2, 5, 10, 20, 40];
    let cell = |of: &Vec<f64>, lag: usize| of.get(lag).map_or("-".to_owned(), |r| fixed(*r, 2));
    let rows = scalars.iter().zip(&all).map(|(scalar, of)| {
        std::iter::once(scalar.row.name.clone()).chain(at.iter().map(|lag| cell(of, *lag))).collect()
    });
    let first = all.iter().filter_map(|of| of.get(1)).copied().fold(f64::NEG_INFINITY, f64::max);
    let seen = format!("Autocorrelations of {} parameters; the largest at lag 1 is {}.", all.len(), fixed(first, 2));
    let about = "Mean over the chains, each about its own mean. The sooner a line is at 0, the more draws are worth.";
    let head: Vec<String> = std::iter::once(String::new()).chain(at.iter().map(|lag| format!("lag {lag}"))).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let figure = Figure::new("autocorrelation", "Autocorrelation", picture, &seen, about);
    Some(figure.with("Autocorrelations", &head, rows.collect()))
}

/// Effective sample sizes of the first draws of all chains.
pub(super) fn growth(scalars: &[Scalar<'_>], enough: f64) -> Option<Figure> {
    let shown = &scalars[..scalars.len().min(LINES)];
    let draws = shown.iter().flat_map(|s| &s.chains).map(Vec::len).min().filter(|draws| *draws >= 2 * STEPS)?;
    let counts: Vec<usize> = (1..=STEPS).map(|i| i * draws / STEPS).collect();
    let of = |(scalar, draws): (&Scalar<'_>, usize)| {
        let first: Vec<&[f64]> = scalar.chains.iter().map(|chain| &chain[..draws]).collect();
        (ess_bulk(&first), ess_tail(&first))
    };
    let pairs: Vec<(&Scalar<'_>, usize)> = shown.iter().flat_map(|s| counts.iter().map(move |n| (s, *n))).collect();
    let sizes: Vec<(f64, f64)> = pairs.into_par_iter().map(of).collect();
    let finite = |x: &f64| x.is_finite();
    let most = sizes.iter().flat_map(|(bulk, tail)| [*bulk, *tail]).filter(finite).fold(enough, f64::max);
    let panel = panel(Axis::within("draws of each chain", 0.0..draws as f64, 6.0), Axis::from_zero("", [most]));
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    panel.draw(&mut picture);
    panel.across(&mut picture, enough, LIMIT);
    let mut names = Names::default();
    let mut rows = vec![];
    for (i, (scalar, of)) in shown.iter().zip(sizes.chunks(STEPS)).enumerate() {
        let points = |value: fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
            let points = counts.iter().zip(of).map(|(n, sizes)| (*n as f64, value(sizes)));
            points.filter(|(_, size)| size.is_finite()).collect()
        };
        panel.line(&mut picture, &points(|sizes| sizes.0), Pen { dashes: "", ..pen(i) });
        panel.line(&mut picture, &points(|sizes| sizes.1), Pen { dashes: "3 3", ..pen(i) });
        names.add(&mut picture, &scalar.row.name, Pen { dashes: "", ..pen(i) });
        for (what, value) in [("bulk", (|s| s.0) as fn(&(f64, f64)) -> f64), ("tail", |s| s.1)] {
            let cells = of.iter().map(|sizes| whole(value(sizes)));
            rows.push(std::iter::once(format!("{}, {what}", scalar.row.name)).chain(cells).collect());
        }
    }
    let head: Vec<String> = std::iter::once(String::new()).chain(counts.iter().map(ToString::to_string)).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let seen = format!(
        "Effective sample sizes of {} parameters at {STEPS} numbers of draws; {enough} is enough.",
        shown.len()
    );
    let about = format!(
        "Solid: bulk; dotted: tail; dashed: {enough}, which is enough. A line that does not rise with the draws is of chains that disagree."
    );
    let figure = Figure::new("growth", "Effective sample size against draws", picture, &seen, &about);
    Some(figure.with("Effective sample sizes of the first draws", &head, rows))
}

fn pen(i: usize) -> Pen {
    Pen { color: SERIES[i % SERIES.len()], width: 1.8, dashes: DASHES[i % DASHES.len()] }
}

fn panel(x: Axis, y: Axis) -> Panel {
    Panel { x, y, corner: (58.0, 10.0), size: (SIZE.0 - 58.0 - NAMES - 10.0, SIZE.1 - 48.0) }
}

/// The names of lines, at the right.
#[derive(Default)]
struct Names {
    count: usize,
}

impl Names {
    fn add(&mut self, picture: &mut Picture, name: &str, pen: Pen) {
        let (x, y) = (SIZE.0 - NAMES, 18.0 + 19.0 * self.count as f64);
        picture.line((x, y), (x + 22.0, y), pen);
        picture.text((x + 28.0, y + 4.0), Anchor::Start, TEXT, &cut(name, NAMES - 32.0));
        self.count += 1;
    }
}
