//! Means, deviations and variances that keep their digits where the mean is large against the deviations.

/// The mean as a number and the small rest that it lacks: the mean of the differences from a first, rounded mean. Where the
/// values lie close together, these differences are exact.
struct Centre {
    about: f64,
    rest: f64,
}

impl Centre {
    fn of(values: &[f64]) -> Self {
        let size = values.len() as f64;
        let about = values.iter().sum::<f64>() / size;
        if !about.is_finite() {
            return Self { about, rest: 0.0 };
        }
        Self { about, rest: values.iter().map(|x| x - about).sum::<f64>() / size }
    }
}

/// The mean; NaN of no values.
pub(super) fn average(values: &[f64]) -> f64 {
    let centre = Centre::of(values);
    centre.about + centre.rest
}

/// The differences from the mean.
pub(super) fn deviations(values: &[f64]) -> Vec<f64> {
    let Centre { about, rest } = Centre::of(values);
    values.iter().map(|x| (x - about) - rest).collect()
}

/// The variance with divisor n - 1; NaN for fewer than two values.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    deviations(values).iter().map(|x| x * x).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// In eight interleaved partial sums, so that the additions do not wait for one another.
pub(super) fn inner_product(a: &[f64], b: &[f64]) -> f64 {
    let mut partial = [0.0; 8];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_chunks.zip(b_chunks) {
        for i in 0..8 {
            partial[i] += x[i] * y[i];
        }
    }
    partial.iter().sum::<f64>() + rest
}
