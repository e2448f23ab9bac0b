//! Derivatives by differences of a function in one direction, and what they say of a gradient.
//!
//! A central difference of fourth order at one step is enough nearly everywhere. Where it does not agree, smaller steps are
//! looked at, and differences to one side: next to a jump, a kink or the end of the domain only those see the side that the
//! program computes. Every difference has an uncertainty, what it changes by between two rules of one step. The one that is
//! most certain decides, so that a wrong gradient is still found.

/// Step of the first differences, relative to 1 or to the value: that of a rule of fourth order in 64 bits.
const STEP: f64 = 1e-3;
/// Where the function is computed, in steps, and the weight of each value in the derivative.
const STENCIL: [(f64, f64); 4] = [(-2.0, 1.0 / 12.0), (-1.0, -8.0 / 12.0), (1.0, 8.0 / 12.0), (2.0, -1.0 / 12.0)];
/// Smaller steps, relative to 1 and to the value.
const SMALL_STEPS: [f64; 5] = [1e-4, 1e-5, 1e-6, 1e-7, 1e-8];
/// Where the function is computed for them, in steps.
const AROUND: [f64; 5] = [-2.0, -1.0, 0.0, 1.0, 2.0];
/// Differences whose relative uncertainty is more than this say nothing.
const SETTLED: f64 = 1e-2;
/// So many times its uncertainty a difference may be off.
const MARGIN: f64 = 2.0;
/// What the value of a function is off by, relative to it, at least.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    /// Where the function is differentiated, in this direction.
    pub(super) at: f64,
    /// The derivative that is checked.
    pub(super) gradient: f64,
    /// A derivative below this counts as 0: differences do not see it.
    pub(super) floor: f64,
    /// Relative error up to which it agrees.
    pub(super) tolerance: f64,
}

/// What the first differences say.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum First {
    /// They agree, with this relative error.
    Agrees(f64),
    /// They do not, or are no numbers; the closest, and its relative error.
    Open(Option<(f64, f64)>),
}

/// What all differences say.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Verdict {
    /// Those at this step agree, with this relative error.
    Agrees { error: f64, step: f64 },
    /// They settle on another derivative.
    Differs { differences: f64, error: f64, step: f64 },
    /// They settle nowhere: from the first, to the most certain one, at this step.
    Unsettled { first: Option<f64>, differences: f64, step: f64 },
    /// None is a number.
    Unknown,
}

impl Component {
    /// How far the first differences are moved from the component, in the order in which they want the values.
    pub(super) fn first_moves(&self) -> Vec<f64> {
        self.first_steps().iter().flat_map(|step| STENCIL.map(|(k, _)| k * step)).collect()
    }

    /// How many values the first differences want.
    pub(super) const FIRST: usize = 2 * STENCIL.len();

    /// The same for the others.
    pub(super) fn further_moves(&self) -> Vec<f64> {
        self.further_steps().iter().flat_map(|step| AROUND.map(|k| k * step)).collect()
    }

    /// The two steps that are tried first: relative to 1 and relative to the value. The one that agrees better counts.
    fn first_steps(&self) -> [f64; 2] {
        let large = STEP * self.at.abs().max(1.0);
        let small = if self.at == 0.0 { STEP * STEP } else { STEP * self.at.abs() };
        [large, small]
    }

    fn further_steps(&self) -> Vec<f64> {
        let large = self.at.abs().max(1.0);
        let small = self.at.abs();
        let of = |scale: f64| SMALL_STEPS.map(|step| step * scale);
        if small > 0.0 && small < 0.1 { [of(large), of(small)].concat() } else { of(large).to_vec() }
    }

    fn error(&self, differences: f64) -> f64 {
        (self.gradient - differences).abs() / self.scale(differences)
    }

    fn scale(&self, differences: f64) -> f64 {
        self.gradient.abs().max(differences.abs()).max(self.floor)
    }

    /// What the values at [`first_moves`](Self::first_moves) say.
    pub(super) fn first(&self, values: &[f64]) -> First {
        let closest = (values.chunks(STENCIL.len()).zip(self.first_steps()))
            .map(|(values, step)| central(values, step))
            .filter(|slope| slope.is_finite())
            .map(|slope| (slope, self.error(slope)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        match closest {
            Some((_, error)) if error <= self.tolerance => First::Agrees(error),
            closest => First::Open(closest),
        }
    }

    /// What the values at [`further_moves`](Self::further_moves) say, after the first did not agree.
    pub(super) fn further(&self, first: Option<f64>, values: &[f64]) -> Verdict {
        let found: Vec<Difference> = values
            .chunks(AROUND.len())
            .zip(self.further_steps())
            .flat_map(|(v, step)| Difference::all(v, step))
            .collect();
        let close = |d: &&Difference| d.rule == Rule::Central && self.error(d.slope) <= self.tolerance;
        if let Some(d) = found.iter().find(close) {
            return Verdict::Agrees { error: self.error(d.slope), step: d.step };
        }
        let doubt = |d: &Difference| d.uncertainty / self.scale(d.slope);
        let best_of = |rule: Option<Rule>| {
            let of_rule = found.iter().filter(|d| rule.is_none_or(|rule| d.rule == rule));
            of_rule.min_by(|a, b| doubt(a).total_cmp(&doubt(b)))
        };
        // at a jump or a kink each side has a derivative of its own
        for d in [Rule::Central, Rule::Above, Rule::Below].into_iter().filter_map(|rule| best_of(Some(rule))) {
            let error = self.error(d.slope);
            if doubt(d) <= SETTLED && error <= (MARGIN * doubt(d)).max(self.tolerance) {
                return Verdict::Agrees { error, step: d.step };
            }
        }
        let Some(best) = best_of(None) else {
            // what the first differences say stands alone
            return match first {
                Some(differences) => {
                    Verdict::Differs { differences, error: self.error(differences), step: self.first_steps()[0] }
                }
                None => Verdict::Unknown,
            };
        };
        let (differences, step) = (best.slope, best.step);
        if doubt(best) > SETTLED {
            Verdict::Unsettled { first, differences, step }
        } else {
            Verdict::Differs { differences, error: self.error(differences), step }
        }
    }
}

/// A derivative by differences.
#[derive(Clone, Copy, Debug)]
struct Difference {
    slope: f64,
    /// What it may be off by.
    uncertainty: f64,
    step: f64,
    rule: Rule,
}

/// Which values a difference is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// Those of both sides: of fourth order.
    Central,
    /// Those above the point, and of it.
    Above,
    /// Those below.
    Below,
}

impl Difference {
    /// Those of the values around a point that are numbers: to both sides, and to each.
    fn all(values: &[f64], step: f64) -> Vec<Difference> {
        let [far_left, left, here, right, far_right] = values else { return Vec::new() };
        let largest = values.iter().filter(|v| v.is_finite()).fold(0.0_f64, |a, v| a.max(v.abs()));
        let rounding = ROUNDING * largest / step;
        let difference = |slope: f64, other: f64, rule: Rule| Difference {
            slope,
            uncertainty: (slope - other).abs() + rounding,
            step,
            rule,
        };
        let to_side = |near: f64, far: f64, step: f64, rule: Rule| {
            let (once, twice) = ((near - here) / step, (far - here) / (2.0 * step));
            difference(2.0 * once - twice, once, rule)
        };
        let both = central(&[*far_left, *left, *right, *far_right], step);
        let found = [
            difference(both, (right - left) / (2.0 * step), Rule::Central),
            to_side(*right, *far_right, step, Rule::Above),
            to_side(*left, *far_left, -step, Rule::Below),
        ];
        found.into_iter().filter(|d| d.slope.is_finite() && d.uncertainty.is_finite()).collect()
    }
}

fn central(values: &[f64], step: f64) -> f64 {
    values.iter().zip(STENCIL).map(|(value, (_, weight))| weight * value).sum::<f64>() / step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(f: impl Fn(f64) -> f64, at: f64, gradient: f64) -> Verdict {
        let component = Component { at, gradient, floor: 1e-5, tolerance: 1e-6 };
        let values = |moves: Vec<f64>| moves.iter().map(|by| f(at + by)).collect::<Vec<f64>>();
        match component.first(&values(component.first_moves())) {
            First::Agrees(error) => Verdict::Agrees { error, step: STEP },
            First::Open(closest) => {
                component.further(closest.map(|(slope, _)| slope), &values(component.further_moves()))
            }
        }
    }

    fn agrees(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Agrees { .. })
    }

    #[test]
    fn the_rule_is_exact_for_polynomials_of_degree_four() {
        let f = |x: f64| x.powi(4) - 2.0 * x.powi(3) + x;
        let moved: Vec<f64> = STENCIL.iter().map(|(k, _)| f(1.5 + k * 0.25)).collect();
        let exact = 4.0 * 1.5f64.powi(3) - 6.0 * 1.5f64.powi(2) + 1.0;
        assert!((central(&moved, 0.25) - exact).abs() < 1e-12);
    }

    #[test]
    fn a_right_gradient_agrees_near_a_jump_a_kink_and_the_end_of_the_domain() {
        for distance in [0.0, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3] {
            for side in [-1.0, 1.0] {
                let jump = |x: f64| x.sin() * 20.0 + if side * (x - 1.0) > distance { 0.4 } else { 0.0 };
                let found = verdict(jump, 1.0, 20.0 * 1f64.cos());
                assert!(agrees(found), "a jump {distance} away: {found:?}");
                let kink =
                    |x: f64| if side * (x - 1.0) > distance { 5.0 * (x - 1.0 - side * distance) } else { 0.0 } + x;
                assert!(agrees(verdict(kink, 1.0, 1.0)), "a kink {distance} away");
            }
            if distance > 1e-8 {
                let found = verdict(|x| (x - 1.0 + distance).ln(), 1.0, 1.0 / ((1.0 - 1.0f64) + distance));
                assert!(agrees(found), "an end {distance} away: {found:?}");
            }
        }
    }

    #[test]
    fn a_wrong_gradient_differs_there_too() {
        for distance in [1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1.0] {
            let jump = |x: f64| x.sin() * 20.0 + if x - 1.0 > distance { 0.4 } else { 0.0 };
            for off in [1.001, 0.99, 2.0, -1.0, 0.0] {
                let found = verdict(jump, 1.0, off * 20.0 * 1f64.cos());
                assert!(matches!(found, Verdict::Differs { .. }), "a jump {distance} away, times {off}: {found:?}");
            }
        }
        assert!(matches!(verdict(f64::exp, 0.5, 1.65), Verdict::Differs { .. }));
    }

    #[test]
    fn what_jumps_everywhere_does_not_settle() {
        // of no period that the steps are a multiple of
        let rough = |x: f64| x + 0.1 * (x * 1.234_567e11).sin();
        assert!(matches!(verdict(rough, 0.3, 1.0), Verdict::Unsettled { .. }));
        assert_eq!(verdict(|_| f64::NAN, 0.3, 1.0), Verdict::Unknown);
    }

    #[test]
    fn noise_is_no_error() {
        // six digits of a step size control
        let noisy = |x: f64| -21.07 * x + 1e-9 * (x * 1e9).sin() + if x > 1.000_02 { 0.3 } else { 0.0 };
        let found = verdict(noisy, 1.0, -21.07);
        assert!(agrees(found), "{found:?}");
    }
}
