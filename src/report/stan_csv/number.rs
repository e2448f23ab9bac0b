//! Numbers with so many significant digits, as C's `%g` writes them.

/// The text of a number; `digits` is at least 1.
pub fn general(x: f64, digits: usize) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{:.*e}", digits - 1, x);
    let (mantissa, exponent) = scientific.split_once('e').expect("`e` stands in it");
    let exponent: i32 = exponent.parse().expect("an exponent is a whole number");
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{x:.decimals$}")).to_owned()
}

/// Without zeros at the end of a fraction.
fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::general;

    /// The texts are those of `printf "%.8g"` and `"%.3g"`.
    #[test]
    fn numbers_are_those_of_printf() {
        let cases = [
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333"),
            (-2.0, "-2"),
            (0.0, "0"),
            (-0.0, "-0"),
            (12_345_678.9, "12345679"),
            (123_456_789.0, "1.2345679e+08"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (99_999_999.9, "1e+08"),
            (1e300, "1e+300"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (x, text) in cases {
            assert_eq!(general(x, 8), text);
        }
        assert_eq!((general(1234.5, 3), general(0.0012345, 3)), ("1.23e+03".to_owned(), "0.00123".to_owned()));
    }
}
