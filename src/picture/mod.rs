//! Layer 1: pictures as SVG, and where values stand on their axes. What they show is the business of `bench` and `report`.

mod axis;
mod svg;

pub(crate) use axis::Axis;
pub(crate) use svg::{Anchor, Marker, Pen, Picture};

/// A number with three or four digits that count, in thousands, millions or billions.
pub(crate) fn short(x: f64) -> String {
    let (value, unit) = match x.abs() {
        a if a >= 1e9 => (x / 1e9, " G"),
        a if a >= 1e6 => (x / 1e6, " M"),
        a if a >= 1e4 => (x / 1e3, " k"),
        _ => (x, ""),
    };
    let digits = match value.abs() {
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0.5, "0.50"), (1234.4, "1234"), (12_345.0, "12.3 k"), (2.5e6, "2.50 M"), (1e9, "1.00 G")];
        for (x, expected) in cases {
            assert_eq!(short(x), expected);
        }
    }
}
