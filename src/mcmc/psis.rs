//! Pareto-smoothed importance sampling: Vehtari, Simpson, Gelman, Yao and Gabry, JMLR 25 (2024), with the fit of the
//! generalized Pareto distribution by Zhang and Stephens (2009), as Stan has it.

/// The weights of draws by their log ratios, the largest 1, and the shape k of the tail, where it could be fitted:
/// beyond 0.7 the weights cannot mend the approximation.
pub(super) fn weights(log_ratios: &[f64]) -> (Vec<f64>, Option<f64>) {
    let n = log_ratios.len() as f64;
    let tail = (0.2 * n).min(3.0 * n.sqrt()) as usize;
    let largest = log_ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut logs: Vec<f64> = log_ratios
        .iter()
        .map(|ratio| if ratio.is_nan() || largest == f64::NEG_INFINITY { f64::NEG_INFINITY } else { ratio - largest })
        .collect();
    let mut k = None;
    if tail >= 5 {
        let mut order: Vec<usize> = (0..logs.len()).collect();
        order.sort_by(|a, b| logs[*a].total_cmp(&logs[*b]));
        let places = order.split_off(order.len() - tail);
        let cutoff = order.last().map_or(f64::NEG_INFINITY, |at| logs[*at]).exp();
        let values: Vec<f64> = places.iter().map(|at| logs[*at].exp() - cutoff).collect();
        let spread = logs[places[tail - 1]] - logs[places[0]];
        if spread > f64::MIN_POSITIVE * 10.0 && values[0] > 0.0 {
            let (sigma, shape) = fit(&values);
            if shape.is_finite() && sigma.is_finite() {
                for (i, at) in places.iter().enumerate() {
                    let p = (i as f64 + 0.5) / tail as f64;
                    logs[*at] = (quantile(p, shape, sigma) + cutoff).ln();
                }
                k = Some(shape);
            }
        }
    }
    (logs.into_iter().map(|log| log.min(0.0).exp()).collect(), k)
}

/// The quantile of a generalized Pareto distribution.
fn quantile(p: f64, k: f64, sigma: f64) -> f64 {
    let log = f64::ln_1p(-p);
    if k == 0.0 { -sigma * log } else { sigma * f64::exp_m1(-k * log) / k }
}

/// Scale and shape of the generalized Pareto distribution of ascending numbers, the shape pulled a little to 0.5.
fn fit(x: &[f64]) -> (f64, f64) {
    const PRIOR: f64 = 3.0;
    const STRENGTH: f64 = 10.0;
    let n = x.len() as f64;
    let points = 30 + n.sqrt().floor() as usize;
    let quartile = x[((n / 4.0 + 0.5).floor() as usize).saturating_sub(1)];
    let shape = |theta: f64| x.iter().map(|x| f64::ln_1p(-theta * x)).sum::<f64>() / n;
    let grid: Vec<f64> = (1..=points)
        .map(|i| 1.0 / x[x.len() - 1] + (1.0 - (points as f64 / (i as f64 - 0.5)).sqrt()) / (PRIOR * quartile))
        .collect();
    let likelihood: Vec<f64> = grid
        .iter()
        .map(|theta| {
            let k = shape(*theta);
            n * ((-theta / k).ln() - k - 1.0)
        })
        .collect();
    let largest = likelihood.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = likelihood.iter().map(|l| (l - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let theta = grid.iter().zip(&weights).map(|(theta, weight)| theta * weight).sum::<f64>() / total;
    let k = shape(theta);
    (-k / theta, k * n / (n + STRENGTH) + STRENGTH * 0.5 / (n + STRENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_have_equal_weights() {
        let (weights, k) = weights(&[2.5; 100]);
        assert_eq!((weights, k), (vec![1.0; 100], None));
    }

    /// Ratios whose tail is that of a Pareto distribution with this shape.
    #[test]
    fn the_shape_of_a_tail_is_found() {
        for shape in [0.3, 0.5, 0.9] {
            let ratios: Vec<f64> = (1..=4000).map(|i| -shape * f64::ln(1.0 - (f64::from(i) - 0.5) / 4000.0)).collect();
            let (weights, k) = weights(&ratios);
            let k = k.unwrap();
            assert!((k - shape).abs() < 0.05, "{shape}: {k}");
            assert!(weights.iter().all(|w| (0.0..=1.0).contains(w)) && weights.windows(2).all(|w| w[0] <= w[1]));
        }
    }

    #[test]
    fn draws_without_density_have_no_weight() {
        let (weights, _) = weights(&[f64::NEG_INFINITY, 0.0, f64::NAN]);
        assert_eq!(weights, [0.0, 1.0, 0.0]);
    }
}
