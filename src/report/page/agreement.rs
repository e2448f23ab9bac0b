//! Whether the chains of a parameter agree: ranks as strips, chain × bin, and distribution functions in their band.

use std::fmt::Write as _;

use super::figure::Figure;
use super::panel::{DASHES, FRAME, Panel, SERIES, TEXT};
use super::scalars::{Agreed, Scalar};
use super::trace::{CHAINS, SIZE};
use crate::mcmc::diagnostics::quantiles;
use crate::picture::{Anchor, Axis, Pen, Picture};
use crate::report::summary::fixed;

/// Strips that are drawn, and bins of each.
const STRIPS: usize = 24;
const MOST_BINS: usize = 20;
/// Ranks that are expected in a bin, at least.
const IN_A_BIN: usize = 5;
/// Deviations of a bin, in standard deviations, that have colours of their own.
const LEVELS: [f64; 4] = [1.0, 2.0, 3.0, 4.0];

/// Ranks of a parameter: a strip for each chain, in parts from the smallest to the largest rank.
pub(super) fn strips(at: usize, scalar: &Scalar<'_>, agreed: &Agreed, numbers: &[usize]) -> Figure {
    let ranks = &agreed.ranks;
    let bins = (ranks.draws() / IN_A_BIN).clamp(4, MOST_BINS);
    let histogram = ranks.histogram(bins);
    let shown = {
        let mut shown = agreed.farthest(STRIPS);
        shown.sort_unstable();
        shown
    };
    let (left, top) = (46.0, 10.0);
    let (width, height) = (SIZE.0 - left - 12.0, SIZE.1 - 48.0);
    let step = (height / shown.len() as f64).min(28.0);
    let expected = ranks.draws() as f64 / bins as f64;
    let deviation = (expected * (1.0 - 1.0 / bins as f64) * (1.0 - 1.0 / scalar.chains.len() as f64)).sqrt();
    // A path for each colour: cells by the level of what they deviate, below and above.
    let mut cells = [const { [const { String::new() }; LEVELS.len()] }; 2];
    for (row, chain) in shown.iter().enumerate() {
        for (bin, count) in histogram[*chain].iter().enumerate() {
            let z = (f64::from(*count) - expected) / deviation;
            let Some(level) = LEVELS.iter().rposition(|level| z.abs() >= *level) else { continue };
            let (x, y) = (left + width * bin as f64 / bins as f64, top + step * row as f64);
            let (w, h) = (width / bins as f64, step - 1.0);
            let _ = write!(cells[usize::from(z > 0.0)][level], "M{x:.1},{y:.1}h{w:.1}v{h:.1}h-{w:.1}z");
        }
    }
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    let depth = step * shown.len() as f64;
    picture.element(&format!(
        r#"<rect x="{left}" y="{top}" width="{width:.1}" height="{depth:.1}" fill="var(--grid)" fill-opacity="0.5"/>"#
    ));
    for (colors, color) in cells.iter().zip(["var(--c1)", "var(--c0)"]) {
        for (path, opacity) in colors.iter().zip(["0.25", "0.5", "0.75", "1"]).filter(|(path, _)| !path.is_empty()) {
            picture.path(path, &format!(r#"fill="{color}" fill-opacity="{opacity}""#));
        }
    }
    // As many names as have room.
    let every = (13.0 / step).ceil() as usize;
    for (row, chain) in shown.iter().enumerate().step_by(every.max(1)) {
        let y = top + step * (row as f64 + 0.5) + 3.8;
        picture.text((left - 6.0, y), Anchor::End, TEXT, &numbers[*chain].to_string());
    }
    picture.line((left, top + depth), (left + width, top + depth), FRAME);
    picture.text((left, top + depth + 15.0), Anchor::Start, TEXT, "smallest");
    picture.text((left + width, top + depth + 15.0), Anchor::End, TEXT, "largest ranks");
    picture.text((left + width / 2.0, top + depth + 15.0), Anchor::Middle, TEXT, "by chain");
    let left_out = scalar.chains.len() - shown.len();
    let rest =
        if left_out == 0 { String::new() } else { format!(" {left_out} chains nearer to the others are not drawn.") };
    let far = |z: f64| z.abs() >= 3.0;
    let z = |count: &u32| (f64::from(*count) - expected) / deviation;
    let odd = histogram.iter().flatten().filter(|count| far(z(count))).count();
    let cells = histogram.len() * bins;
    let seen = format!("{odd} of {cells} bins deviate by 3 standard deviations or more.{rest}");
    let rows = agreed.farthest(CHAINS).into_iter().map(|chain| {
        let least = histogram[chain].iter().min().copied().unwrap_or(0);
        let most = histogram[chain].iter().max().copied().unwrap_or(0);
        vec![format!("chain {}", numbers[chain]), least.to_string(), most.to_string(), fixed(expected, 1)]
    });
    let about = format!("{odd} of {cells} bins are off by 3 sd or more.{rest}");
    Figure::new(&format!("strips-{at}"), "Ranks", picture, &seen, &about).with(
        "Fewest and most in a bin",
        &["", "fewest", "most", "expected"],
        rows.collect(),
    )
}

/// Distribution functions of the ranks of each chain, less the uniform one, with the band that all stay within.
pub(super) fn functions(at: usize, scalar: &Scalar<'_>, agreed: &Agreed, numbers: &[usize]) -> Figure {
    let uniformity = &agreed.uniformity;
    let chains = scalar.chains.len();
    let x: Vec<f64> = std::iter::once(0.0).chain(uniformity.points.iter().copied()).chain([1.0]).collect();
    let ended = |values: Vec<f64>| -> Vec<f64> { std::iter::once(0.0).chain(values).chain([0.0]).collect() };
    let low = ended(uniformity.band.iter().map(|b| b.0).collect());
    let high = ended(uniformity.band.iter().map(|b| b.1).collect());
    let shown = agreed.farthest(CHAINS);
    let lines: Vec<Vec<f64>> = shown.iter().map(|chain| ended(uniformity.differences[*chain].clone())).collect();
    let most = lines.iter().flatten().chain(&low).chain(&high).fold(0.0, |m: f64, d| m.max(d.abs()));
    let panel = Panel {
        x: Axis::within("part of all ranks", 0.0..1.0, 5.0),
        y: Axis::linear("", -most, most, 5.0),
        corner: (58.0, 10.0),
        size: (SIZE.0 - 70.0, SIZE.1 - 48.0),
    };
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    panel.draw(&mut picture);
    let band = r#"fill="var(--muted)" fill-opacity="0.22" stroke="var(--muted)" stroke-width="1""#;
    panel.between(&mut picture, &x, &low, &high, band);
    if chains > shown.len() {
        let of = |point: usize, p: f64| {
            let values: Vec<f64> = uniformity.differences.iter().map(|d| d[point]).collect();
            quantiles(&[values], &[p])[0]
        };
        let quantile = |p: f64| ended((0..uniformity.points.len()).map(|point| of(point, p)).collect());
        let fan = r#"fill="var(--c0)" fill-opacity="0.25""#;
        panel.between(&mut picture, &x, &quantile(0.05), &quantile(0.95), fan);
    }
    for (i, line) in lines.iter().enumerate().rev() {
        let pen = Pen { color: SERIES[i % SERIES.len()], width: 1.4, dashes: DASHES[i % DASHES.len()] };
        let points: Vec<(f64, f64)> = x.iter().copied().zip(line.iter().copied()).collect();
        panel.line(&mut picture, &points, pen);
    }
    let outside: Vec<usize> = (0..chains).filter(|chain| agreed.reach[*chain] > 1.0).collect();
    let named: Vec<String> = outside.iter().take(CHAINS).map(|chain| numbers[*chain].to_string()).collect();
    let more = outside.len() - named.len();
    let left = match (&named[..], more) {
        ([], _) => "No chain leaves the band.".to_owned(),
        (named, 0) => format!("{} of {chains} leave the band: {}.", outside.len(), named.join(", ")),
        (named, more) => {
            format!("{} of {chains} chains leave the band: {} and {more} more.", outside.len(), named.join(", "))
        }
    };
    let thin = match (agreed.ranks.thin, agreed.ranks.dependent) {
        (1, _) => String::new(),
        (thin, false) => format!(" One draw of {thin} is taken."),
        (thin, true) => {
            format!(" One draw of {thin} is taken, and these still depend on one another: the band is too narrow.")
        }
    };
    let rows = shown.into_iter().map(|chain| {
        let most =
            uniformity.differences[chain].iter().copied().fold(0.0, |m: f64, d| if d.abs() > m.abs() { d } else { m });
        vec![format!("chain {}", numbers[chain]), fixed(most, 3), fixed(agreed.reach[chain], 2)]
    });
    Figure::new(&format!("ecdf-{at}"), "Distribution of ranks", picture, &left, &format!("{left}{thin}")).with(
        "The chains that go farthest",
        &["", "difference", "of the band"],
        rows.collect(),
    )
}
