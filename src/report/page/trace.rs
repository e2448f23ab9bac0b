//! Draw after draw: quantiles over all chains as a fan, and on top the chains that are farthest from the others.

use super::figure::Figure;
use super::panel::{DASHES, Panel, SERIES};
use super::scalars::{Agreed, Scalar};
use crate::mcmc::diagnostics::quantiles;
use crate::picture::{Axis, Pen, Picture};
use crate::report::summary::significant;

pub(super) const SIZE: (f64, f64) = (330.0, 210.0);
/// Chains that are drawn by themselves.
pub(super) const CHAINS: usize = 8;
/// Places along the draws at which the fan is drawn.
const PLACES: usize = 48;
/// Points of a line.
const POINTS: usize = 110;
/// Rows of the table.
const ROWS: usize = 10;
const FAN: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The trace of a parameter; `numbers` are those of its chains.
pub(super) fn trace(at: usize, scalar: &Scalar<'_>, agreed: Option<&Agreed>, numbers: &[usize]) -> Figure {
    let draws = scalar.chains.iter().map(Vec::len).min().unwrap_or(0);
    let places = PLACES.min(draws.max(1));
    let part = |i: usize| i * draws / places..((i + 1) * draws / places).max(i * draws / places + 1);
    let of = |i: usize| {
        let values: Vec<f64> = scalar.chains.iter().flat_map(|chain| &chain[part(i)]).copied().collect();
        quantiles(&[values], &FAN)
    };
    let fan: Vec<Vec<f64>> = (0..places).map(of).collect();
    let x: Vec<f64> = (0..places).map(|i| (part(i).start + part(i).end) as f64 / 2.0).collect();
    let shown: Vec<usize> = match agreed {
        Some(agreed) => agreed.farthest(CHAINS),
        None => (0..scalar.chains.len().min(CHAINS)).collect(),
    };
    let lines: Vec<Vec<(f64, f64)>> = shown.iter().map(|chain| line(&scalar.chains[*chain][..draws])).collect();
    let values = || lines.iter().flatten().map(|(_, y)| *y).chain(fan.iter().flatten().copied());
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let panel = Panel {
        x: Axis::within("draw", 0.0..draws as f64, 5.0),
        y: Axis::linear("", low, high, 5.0),
        corner: (58.0, 10.0),
        size: (SIZE.0 - 70.0, SIZE.1 - 48.0),
    };
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    panel.draw(&mut picture);
    let line = |q: usize| fan.iter().map(|at| at[q]).collect::<Vec<f64>>();
    panel.between(&mut picture, &x, &line(0), &line(4), r#"fill="var(--c0)" fill-opacity="0.14""#);
    panel.between(&mut picture, &x, &line(1), &line(3), r#"fill="var(--c0)" fill-opacity="0.22""#);
    picture.element(r#"<g stroke-opacity="0.75">"#);
    for (i, points) in lines.iter().enumerate().rev() {
        let pen = Pen { color: SERIES[i % SERIES.len()], width: 0.9, dashes: DASHES[i / SERIES.len()] };
        panel.line(&mut picture, points, pen);
    }
    picture.element("</g>");
    let median: Vec<(f64, f64)> = x.iter().copied().zip(line(2)).collect();
    panel.line(&mut picture, &median, Pen { color: "var(--ink)", width: 1.4, dashes: "" });
    let named: Vec<String> = shown.iter().map(|chain| numbers[*chain].to_string()).collect();
    let (chains, left) = (scalar.chains.len(), scalar.chains.len() - shown.len());
    let rest = if left == 0 { String::new() } else { format!("; {left} more are in the fan alone") };
    let seen = format!(
        "The median over {chains} chains goes from {} to {}; lines are of the chains {}{rest}.",
        significant(fan[0][2], 4),
        significant(fan[places - 1][2], 4),
        named.join(", ")
    );
    let rows = (0..ROWS.min(places)).map(|i| {
        let at = i * places / ROWS.min(places);
        let range = part(at);
        let cells = fan[at].iter().map(|x| significant(*x, 4));
        std::iter::once(format!("draws {} to {}", range.start + 1, range.end)).chain(cells).collect()
    });
    Figure::new(&format!("trace-{at}"), "Trace", picture, &seen, &format!("Lines: chains {}{rest}.", named.join(", ")))
        .with("Quantiles over the chains", &["", "5%", "25%", "50%", "75%", "95%"], rows.collect())
}

/// The draws of a chain as a line of few points: of each part the smallest and the largest, in their order.
fn line(draws: &[f64]) -> Vec<(f64, f64)> {
    if draws.len() <= POINTS {
        return draws.iter().enumerate().map(|(i, y)| (i as f64 + 0.5, *y)).collect();
    }
    let parts = POINTS / 2;
    let part = |i: usize| {
        let range = i * draws.len() / parts..(i + 1) * draws.len() / parts;
        let by = |a: &usize, b: &usize| draws[*a].total_cmp(&draws[*b]);
        let (least, most) = (range.clone().min_by(by), range.max_by(by));
        let mut ends: Vec<usize> = least.into_iter().chain(most).collect();
        ends.sort_unstable();
        ends.into_iter().map(|i| (i as f64 + 0.5, draws[i])).collect::<Vec<_>>()
    };
    (0..parts).flat_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_keeps_its_peaks() {
        let mut draws = vec![0.0; 10_000];
        (draws[4_321], draws[7_000]) = (9.0, -9.0);
        let line = line(&draws);
        assert!(line.len() <= POINTS && line.contains(&(4_321.5, 9.0)) && line.contains(&(7_000.5, -9.0)));
        assert!(line.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
