//! Horizontal bars from zero, each with its name and its value, and a line that stands for what all are compared with.

use super::report::Rate;
use crate::picture::{Anchor, Axis, Pen, Picture};

/// Bars.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bars {
    pub(super) title: String,
    /// What lengths are.
    pub(super) axis: String,
    pub(super) bars: Vec<Bar>,
    /// What all are compared with.
    pub(super) reference: f64,
}

/// A bar: the median, with a stroke from the lowest to the highest.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) length: Rate,
    /// Whether it counts for nothing.
    pub(super) void: bool,
}

const WIDTH: f64 = 1040.0;
/// What is left free around the bars: left with their names, top, right with their values, bottom.
const MARGIN: (f64, f64, f64, f64) = (240.0, 48.0, 210.0, 56.0);
/// From one bar to the next.
const STEP: f64 = 36.0;
const THICKNESS: f64 = 22.0;
const COLOR: &str = "#56b4e9";
const DARK: Pen = Pen { color: "#222222", width: 1.5, dashes: "" };
const REFERENCE: Pen = Pen { color: "#000000", width: 1.5, dashes: "6 4" };
const GRID: Pen = Pen { color: "#e2e2e2", width: 1.0, dashes: "" };

impl Bars {
    /// As an SVG document.
    pub(super) fn draw(&self) -> String {
        let (left, top, right, bottom) = MARGIN;
        let depth = STEP * self.bars.len() as f64;
        let (width, height) = (WIDTH - left - right, top + depth + bottom);
        let axis = Axis::from_zero(&self.axis, self.bars.iter().map(|bar| bar.length.max).chain([self.reference]));
        let place = |value: f64| left + width * axis.at(value);
        let mut picture = Picture::new(WIDTH, height);
        picture.text((WIDTH / 2.0, top - 18.0), Anchor::Middle, 18, &self.title);
        for tick in &axis.ticks {
            picture.line((place(*tick), top), (place(*tick), top + depth), GRID);
            picture.text((place(*tick), top + depth + 20.0), Anchor::Middle, 13, &axis.label(*tick));
        }
        picture.text((left + width / 2.0, height - 14.0), Anchor::Middle, 14, &axis.name);
        for (i, Bar { name, length, void }) in self.bars.iter().enumerate() {
            let middle = top + STEP * (i as f64 + 0.5);
            let corner = (left, middle - THICKNESS / 2.0);
            picture.rectangle(corner, (place(length.median) - left, THICKNESS), COLOR);
            picture.line((place(length.min), middle), (place(length.max), middle), DARK);
            picture.text((left - 10.0, middle + 4.5), Anchor::End, 14, name);
            let mut value = format!("{:.2}", length.median);
            if length.min < length.max {
                value += &format!(" ({:.2}–{:.2})", length.min, length.max);
            }
            if *void {
                value += ", void";
            }
            picture.text((left + width + 10.0, middle + 4.5), Anchor::Start, 13, &value);
        }
        picture.line((place(self.reference), top), (place(self.reference), top + depth), REFERENCE);
        picture.line((left, top), (left, top + depth), DARK);
        picture.finish(&self.title)
    }
}
