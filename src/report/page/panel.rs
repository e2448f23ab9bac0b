//! The frame of a picture: two axes with their names and ticks.

use crate::picture::{Anchor, Axis, Pen, Picture};

pub(super) const INK: &str = "var(--ink)";
pub(super) const MUTED: &str = "var(--muted)";
pub(super) const GRID: Pen = Pen { color: "var(--grid)", width: 1.0, dashes: "" };
pub(super) const FRAME: Pen = Pen { color: MUTED, width: 1.0, dashes: "" };
pub(super) const LIMIT: Pen = Pen { color: INK, width: 1.2, dashes: "5 4" };
/// Colours that people who see few colours can tell apart (Okabe and Ito): each on light and on dark paper.
pub(super) const SERIES: [&str; 8] =
    ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)", "var(--c7)"];
/// Lines that follow one another differ in these, too.
pub(super) const DASHES: [&str; 4] = ["", "7 3", "2 2.5", "9 3 2 3"];
/// The size of texts.
pub(super) const TEXT: u32 = 11;
/// The width of a digit of this size.
pub(super) const LETTER: f64 = 6.6;
/// The width of one of a name, of which some are wide.
const WIDE: f64 = 7.4;

/// A frame in a picture.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Its corner above and to the left.
    pub(super) corner: (f64, f64),
    /// Its width and height.
    pub(super) size: (f64, f64),
}

impl Panel {
    /// Where a pair of values stands. What is beyond an axis stands at its end.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.corner.0 + self.size.0 * self.x.at(self.x.held(x)),
            self.corner.1 + self.size.1 * (1.0 - self.y.at(self.y.held(y))),
        )
    }

    /// Lines of the ticks, with their labels, and the names of the axes.
    pub(super) fn draw(&self, picture: &mut Picture) {
        self.draw_lines(picture);
        let ((left, top), (width, height)) = (self.corner, self.size);
        // Labels that would touch are left out.
        let mut end = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let (label, x) = (self.x.label(*tick), self.at(*tick, 0.0).0);
            let half = label.chars().count() as f64 * LETTER / 2.0;
            if x - half > end + 4.0 {
                picture.text((x, top + height + 15.0), Anchor::Middle, TEXT, &label);
                end = x + half;
            }
        }
        for tick in &self.y.ticks {
            let y = self.at(0.0, *tick).1;
            picture.text((left - 6.0, y + 3.8), Anchor::End, TEXT, &self.y.label(*tick));
        }
        picture.text((left + width / 2.0, top + height + 31.0), Anchor::Middle, TEXT, &self.x.name);
        if !self.y.name.is_empty() {
            picture.upright((13.0, top + height / 2.0), TEXT, &self.y.name);
        }
    }

    /// The lines alone.
    pub(super) fn draw_lines(&self, picture: &mut Picture) {
        let ((left, top), (width, height)) = (self.corner, self.size);
        for tick in &self.x.ticks {
            let x = self.at(*tick, 0.0).0;
            picture.line((x, top), (x, top + height), GRID);
        }
        for tick in &self.y.ticks {
            let y = self.at(0.0, *tick).1;
            picture.line((left, y), (left + width, y), GRID);
        }
        picture.line((left, top + height), (left + width, top + height), FRAME);
        picture.line((left, top), (left, top + height), FRAME);
    }

    /// A line through those of the points that are finite.
    pub(super) fn line(&self, picture: &mut Picture, points: &[(f64, f64)], pen: Pen) {
        let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let points: Vec<(f64, f64)> = finite.map(|(x, y)| self.at(*x, *y)).collect();
        picture.polyline(&points, pen);
    }

    /// The area between two lines over the same places.
    pub(super) fn between(&self, picture: &mut Picture, x: &[f64], low: &[f64], high: &[f64], look: &str) {
        let there = x.iter().zip(low).map(|(x, y)| self.at(*x, *y));
        let back = x.iter().zip(high).rev().map(|(x, y)| self.at(*x, *y));
        let points: Vec<String> = there.chain(back).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        if !points.is_empty() {
            picture.path(&format!("M{}z", points.join(" ")), look);
        }
    }

    /// A line across, at a height.
    pub(super) fn across(&self, picture: &mut Picture, y: f64, pen: Pen) {
        let (low, high) = self.x.ends();
        self.line(picture, &[(low, y), (high, y)], pen);
    }
}

/// A text that is cut to a width in pixels.
pub(super) fn cut(text: &str, width: f64) -> String {
    let most = (width / WIDE).floor().max(4.0) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let end: Vec<char> = text.chars().collect();
    // The indices at the end tell elements apart.
    let (front, back) = (most / 2, most - most / 2 - 1);
    format!("{}…{}", end[..front].iter().collect::<String>(), end[end.len() - back..].iter().collect::<String>())
}
