//! Where values stand on the axes of a chart.

use std::ops::Range;

/// An axis: what it shows, and where.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    scale: Scale,
    range: Range<f64>,
    /// Values with a line and a label.
    pub(super) ticks: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Axis {
    /// Of numbers of which each has its tick, where there is room: chains, threads.
    pub(super) fn of_counts(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(1.0));
        // A little room on both sides.
        let margin = if low < high { (high / low).powf(0.06) } else { 2.0 };
        let mut axis = Self {
            name: name.to_owned(),
            scale: Scale::Logarithmic,
            range: low / margin..high * margin,
            ticks: Vec::new(),
        };
        for value in values {
            let far = axis.ticks.last().is_none_or(|last| axis.at(value) - axis.at(*last) >= LEAST_STEP);
            if far {
                axis.ticks.push(value);
            }
        }
        axis
    }

    /// Logarithmic, at least one decade.
    pub(super) fn of_decades(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|v| *v > 0.0 && v.is_finite());
        let (low, high) = positive.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let range = low / 1.3..(high * 1.3).max(low * 10.0);
        let decades = (range.end / range.start).log10();
        // With few decades there are lines within them.
        let within: &[f64] = if decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let exponents = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
        let ticks = exponents.flat_map(|e| within.iter().map(move |m| m * 10_f64.powi(e)));
        let ticks = ticks.filter(|tick| range.contains(tick)).collect();
        Self { name: name.to_owned(), scale: Scale::Logarithmic, range, ticks }
    }

    /// From 0 to a little above the highest value.
    pub(super) fn from_zero(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let high = values.into_iter().filter(|v| v.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
        let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * 10_f64.powf((high / 10.0).log10().floor()));
        let step = steps.into_iter().find(|step| high / step <= MOST_STEPS).unwrap_or(high);
        let ticks = (0..).map(|i| f64::from(i) * step).take_while(|tick| *tick <= high * 1.001).collect();
        Self { name: name.to_owned(), scale: Scale::Linear, range: 0.0..high * 1.02, ticks }
    }

    /// Where a value stands: 0 at the beginning, 1 at the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        match self.scale {
            Scale::Linear => (value - start) / (end - start),
            // What is not above 0 has no place: it stands at the beginning.
            Scale::Logarithmic => (value.max(start) / start).ln() / (end / start).ln(),
        }
    }

    /// The label of a tick.
    pub(super) fn label(&self, value: f64) -> String {
        match self.scale {
            Scale::Linear => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            // Counts, and what is below 1.
            Scale::Logarithmic if value < 1e4 => format!("{value}"),
            Scale::Logarithmic => super::report::short(value).replace(".00", "").replace(".0 ", " "),
        }
    }
}

/// Ticks that are nearer, as a part of the axis, are left out.
const LEAST_STEP: f64 = 0.05;
/// A linear axis has no more steps.
const MOST_STEPS: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_and_what_is_within_them_have_ticks() {
        let axis = Axis::of_decades("rate", [200.0, 3e6]);
        assert_eq!(axis.ticks, [1e3, 1e4, 1e5, 1e6]);
        assert_eq!(axis.ticks.iter().map(|t| axis.label(*t)).collect::<Vec<_>>(), ["1000", "10 k", "100 k", "1 M"]);
        assert_eq!((axis.label(16.0), axis.label(0.5), axis.label(2e6)), ("16".into(), "0.5".into(), "2 M".into()));
        assert_eq!(Axis::of_decades("rate", [30.0, 40.0]).ticks, [50.0, 100.0, 200.0]);
        // As far apart as they are: a decade is a decade.
        assert!((axis.at(1e4) - axis.at(1e3) - axis.at(1e6) + axis.at(1e5)).abs() < 1e-12);
        assert!(Axis::of_decades("nothing", []).ticks.len() > 1);
    }

    #[test]
    fn counts_have_their_own_ticks() {
        assert_eq!(Axis::of_counts("chains", [1000.0, 1.0, 10.0, 1.0]).ticks, [1.0, 10.0, 1000.0]);
        assert_eq!(Axis::of_counts("chains", [100.0, 101.0, 1000.0]).ticks, [100.0, 1000.0]);
        let one = Axis::of_counts("threads", [4.0]);
        assert_eq!((one.ticks.clone(), one.at(4.0)), (vec![4.0], 0.5));
    }

    #[test]
    fn linear_axes_begin_at_zero() {
        let axis = Axis::from_zero("utilization", [1.0]);
        assert_eq!(axis.ticks.len(), 11);
        assert_eq!((axis.at(0.0), axis.label(0.0), axis.label(0.30000000000000004)), (0.0, "0".into(), "0.3".into()));
        assert_eq!(Axis::from_zero("times", [3.4]).ticks, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(Axis::from_zero("times", [42.0]).ticks, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
    }
}
