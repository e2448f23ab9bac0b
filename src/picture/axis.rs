//! Where values stand on the axes of a chart.

use std::ops::Range;

/// An axis: what it shows, and where.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    scale: Scale,
    range: Range<f64>,
    /// Values with a line and a label.
    pub(crate) ticks: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Axis {
    /// Of numbers of which each has its tick, where there is room: chains, threads.
    pub(crate) fn of_counts(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
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
    pub(crate) fn of_decades(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
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
    pub(crate) fn from_zero(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let high = values.into_iter().filter(|v| v.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
        let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * 10_f64.powf((high / 10.0).log10().floor()));
        let step = steps.into_iter().find(|step| high / step <= MOST_STEPS).unwrap_or(high);
        let ticks = (0..).map(|i| f64::from(i) * step).take_while(|tick| *tick <= high * 1.001).collect();
        Self { name: name.to_owned(), scale: Scale::Linear, range: 0.0..high * 1.02, ticks }
    }

    /// From one value to another, with a little room on both sides and at most so many steps.
    pub(crate) fn linear(name: &str, low: f64, high: f64, most_steps: f64) -> Self {
        let finite = ((high - low) * 2.0).is_finite() && (low.abs() * 2.0).is_finite() && low <= high;
        let (low, high) = if finite { (low, high) } else { (0.0, 1.0) };
        // A value alone stands in the middle.
        let room = if low < high { (high - low) * 0.02 } else { low.abs().max(1.0) / 2.0 };
        Self::within(name, low - room..high + room, most_steps)
    }

    /// Exactly this range, which is not empty, with at most so many steps.
    pub(crate) fn within(name: &str, range: Range<f64>, most_steps: f64) -> Self {
        let span = range.end - range.start;
        let decade = 10_f64.powf((span / most_steps).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|step| span / step <= most_steps);
        let step = step.unwrap_or(span);
        let first = (range.start / step).ceil();
        let ticks = (0..).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= range.end);
        // Of a range far from 0 that is narrower than the numbers there are, one.
        let ticks = ticks.take(MOST_STEPS as usize + 2).collect();
        Self { name: name.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// Exactly this range, without ticks.
    pub(crate) fn bare(range: Range<f64>) -> Self {
        Self { name: String::new(), scale: Scale::Linear, range, ticks: Vec::new() }
    }

    /// A value within the axis: what is beyond stands at its end.
    pub(crate) fn held(&self, value: f64) -> f64 {
        value.clamp(self.range.start, self.range.end)
    }

    /// The smallest and the largest value of the axis.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.range.start, self.range.end)
    }

    /// Where a value stands: 0 at the beginning, 1 at the end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        match self.scale {
            Scale::Linear => (value - start) / (end - start),
            // What is not above 0 has no place: it stands at the beginning.
            Scale::Logarithmic => (value.max(start) / start).ln() / (end / start).ln(),
        }
    }

    /// The label of a tick.
    pub(crate) fn label(&self, value: f64) -> String {
        match self.scale {
            Scale::Linear => self.linear_label(value),
            // Counts, and what is below 1.
            Scale::Logarithmic if value < 1e4 => format!("{value}"),
            Scale::Logarithmic => super::short(value).replace(".00", "").replace(".0 ", " "),
        }
    }

    /// With as many digits as tell neighbours apart.
    fn linear_label(&self, value: f64) -> String {
        let step = self.ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let size = self.ticks.iter().fold(0.0, |m: f64, t| m.max(t.abs()));
        // A tick at 0 that rounding has missed.
        let value = if step.is_finite() && value.abs() < step * 1e-6 { 0.0 } else { value };
        if size >= 1e5 || size > 0.0 && size < 1e-3 {
            let digits = size.log10().floor() - step.log10().floor();
            let digits = if step.is_finite() { digits.clamp(0.0, 4.0) as usize } else { 2 };
            return if value == 0.0 { "0".to_owned() } else { format!("{value:.digits$e}") };
        }
        let decimals = if step.is_finite() { (-step.log10().floor()).clamp(0.0, 6.0) as usize } else { 2 };
        let text = format!("{value:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
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
    fn linear_axes_have_ticks_that_differ() {
        let told = |low, high| {
            let axis = Axis::linear("x", low, high, 6.0);
            axis.ticks.iter().map(|t| axis.label(*t)).collect::<Vec<_>>()
        };
        assert_eq!(told(-1.0, 1.0), ["-1", "-0.5", "0", "0.5", "1"]);
        assert_eq!(told(0.0, 0.0004), ["0", "1e-4", "2e-4", "3e-4", "4e-4"]);
        assert_eq!(told(1.0e6, 1.2e6), ["1.00e6", "1.05e6", "1.10e6", "1.15e6", "1.20e6"]);
        assert_eq!(told(5.0, 5.0), ["3", "4", "5", "6", "7"]);
        assert!(!told(f64::NAN, 1.0).is_empty() && told(1e300, 1e300 * (1.0 + 1e-15)).len() < 20);
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
