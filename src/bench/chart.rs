//! A chart: lines over two axes, with the names of the lines beside it.

use super::report::Rate;
use crate::picture::{Anchor, Axis, Marker, Pen, Picture};

/// A chart.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// What was measured.
    pub(super) lines: Vec<Line>,
    /// What nothing can be above of.
    pub(super) bounds: Vec<Line>,
    /// Points that count for nothing.
    pub(super) void: Vec<(f64, f64)>,
}

/// A line with its name: medians, with a stroke from the lowest to the highest.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, Rate)>,
}

/// Width and least height in pixels.
const SIZE: (f64, f64) = (1040.0, 600.0);
/// What is left free around the axes: left, top, right with the names of the lines, bottom.
const MARGIN: (f64, f64, f64, f64) = (88.0, 48.0, 300.0, 56.0);
/// From one name to the next.
const NAME_HEIGHT: f64 = 21.0;
/// What a cross behind a point means.
pub(super) const VOID: &str = "void: other load";
const BLACK: &str = "#000000";
const RED: &str = "#d00000";
const FRAME: Pen = Pen { color: "#444444", width: 1.0, dashes: "" };
const GRID: Pen = Pen { color: "#e2e2e2", width: 1.0, dashes: "" };
/// Colours that people who see few colours can tell apart (Okabe and Ito), then others.
const COLORS: [&str; 12] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#948000", "#787878", "#5a288c", "#8c4614",
    "#145032", "#aa003c",
];
const MARKERS: [Marker; 5] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Wedge];
const DASHES: [&str; 3] = ["", "8 3", "2 3"];
const BOUND_DASHES: [&str; 2] = ["10 5", "3 4"];

/// The look of a series: sixty that differ, and any two of the same colour differ in marker and dashes.
fn look(series: usize) -> (Pen, Marker) {
    let n = COLORS.len();
    let dashes = DASHES[(series + series / n) % DASHES.len()];
    (Pen { color: COLORS[series % n], width: 2.0, dashes }, MARKERS[series % MARKERS.len()])
}

impl Chart {
    /// As an SVG document.
    pub(super) fn draw(&self) -> String {
        let names = self.lines.len() + self.bounds.len() + usize::from(!self.void.is_empty());
        let (left, top, right, bottom) = MARGIN;
        let height = SIZE.1.max(top + NAME_HEIGHT * (names + 1) as f64);
        let (width, depth) = (SIZE.0 - left - right, height - top - bottom);
        let mut picture = Picture::new(SIZE.0, height);
        let place = |x: f64, y: f64| (left + width * self.x.at(x), top + depth * (1.0 - self.y.at(y)));
        picture.text((left + width / 2.0, top - 18.0), Anchor::Middle, 18, &self.title);
        for tick in &self.x.ticks {
            let (x, _) = place(*tick, self.y.ticks[0]);
            picture.line((x, top), (x, top + depth), GRID);
            picture.text((x, top + depth + 20.0), Anchor::Middle, 13, &self.x.label(*tick));
        }
        for tick in &self.y.ticks {
            let (_, y) = place(self.x.ticks[0], *tick);
            picture.line((left, y), (left + width, y), GRID);
            picture.text((left - 8.0, y + 4.5), Anchor::End, 13, &self.y.label(*tick));
        }
        picture.line((left, top + depth), (left + width, top + depth), FRAME);
        picture.line((left, top), (left, top + depth), FRAME);
        picture.text((left + width / 2.0, height - 14.0), Anchor::Middle, 14, &self.x.name);
        picture.upright((22.0, top + depth / 2.0), 14, &self.y.name);

        let all_void = self.void.len() == self.lines.iter().map(|line| line.points.len()).sum::<usize>();
        if !all_void {
            self.void.iter().for_each(|(x, y)| picture.marker(place(*x, *y), Marker::Cross, RED));
        }
        let mut legend = Legend { at: (SIZE.0 - right + 16.0, top + 10.0) };
        for (i, line) in self.lines.iter().enumerate() {
            let (pen, marker) = look(i);
            let points: Vec<(f64, f64)> = line.points.iter().map(|(x, rate)| place(*x, rate.median)).collect();
            for (x, rate) in line.points.iter().filter(|(_, rate)| rate.min < rate.max) {
                picture.line(place(*x, rate.min), place(*x, rate.max), Pen { width: 1.0, dashes: "", ..pen });
            }
            picture.polyline(&points, pen);
            points.iter().for_each(|point| picture.marker(*point, marker, pen.color));
            legend.add(&mut picture, &line.name, Some(pen), Some((marker, pen.color)));
        }
        for (line, dashes) in self.bounds.iter().zip(BOUND_DASHES) {
            let pen = Pen { color: BLACK, width: 2.0, dashes };
            let points: Vec<(f64, f64)> = line.points.iter().map(|(x, rate)| place(*x, rate.median)).collect();
            picture.polyline(&points, pen);
            legend.add(&mut picture, &line.name, Some(pen), None);
        }
        match self.void.is_empty() {
            true => {}
            // Crosses everywhere would tell nothing more.
            false if all_void => legend.add(&mut picture, &format!("all {VOID}"), None, None),
            false => legend.add(&mut picture, VOID, None, Some((Marker::Cross, RED))),
        }
        picture.finish(&self.title)
    }
}

/// The names beside a chart.
struct Legend {
    /// Where the next one stands.
    at: (f64, f64),
}

impl Legend {
    fn add(&mut self, picture: &mut Picture, name: &str, pen: Option<Pen>, marker: Option<(Marker, &str)>) {
        let (x, y) = self.at;
        if let Some(pen) = pen {
            picture.line((x, y), (x + 32.0, y), pen);
        }
        if let Some((marker, color)) = marker {
            picture.marker((x + 16.0, y), marker, color);
        }
        picture.text((x + 42.0, y + 4.5), Anchor::Start, 13, name);
        self.at.1 += NAME_HEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_series_look_different() {
        let looks: Vec<String> = (0..60).map(|i| format!("{:?}", look(i))).collect();
        let distinct: std::collections::BTreeSet<&String> = looks.iter().collect();
        assert_eq!(distinct.len(), 60);
        // The same colour never comes with the same marker, nor one after the other with the same dashes.
        let (a, b) = (look(3), look(15));
        assert!(a.0.color == b.0.color && a.1 != b.1 && a.0.dashes != b.0.dashes);
    }
}
