//! Decimal numbers: an integer and a scale.

/// A power of ten; the greatest that fits if the exponent is too large.
pub(crate) fn power_of_ten(digits: u32) -> i128 {
    10_i128.checked_pow(digits).unwrap_or(i128::MAX)
}

/// Whether a number has at most this many digits.
pub(crate) fn fits_digits(number: i128, digits: u8) -> bool {
    number.unsigned_abs() < power_of_ten(u32::from(digits)).unsigned_abs()
}

/// Divides and rounds to the nearest integer, with ties away from zero.
pub(crate) fn divide_rounded(number: i128, by: i128) -> i128 {
    let (quotient, rest) = (number / by, number % by);
    let up = rest.unsigned_abs() >= by.unsigned_abs().div_ceil(2);
    if up { quotient + number.signum() } else { quotient }
}

/// Changes the scale: more digits after the point, or fewer with rounding. `None` if the result is too large.
pub(crate) fn rescale(number: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        number.checked_mul(power_of_ten(u32::from(to - from)))
    } else {
        Some(divide_rounded(number, power_of_ten(u32::from(from - to))))
    }
}

/// Writes a number with its decimal point.
pub(crate) fn write(number: i128, scale: u8, out: &mut String) {
    let scale = usize::from(scale);
    let digits = number.unsigned_abs().to_string();
    if number < 0 {
        out.push('-');
    }
    if scale == 0 {
        out.push_str(&digits);
        return;
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    out.push_str(whole);
    out.push('.');
    out.push_str(fraction);
}

/// The nearest floating-point number.
pub(crate) fn to_real(number: i128, scale: u8) -> f64 {
    if scale == 0 {
        return number as f64;
    }
    let exact = number.unsigned_abs() < 1 << 53 && scale <= 22;
    if exact {
        return number as f64 / power_of_ten(u32::from(scale)) as f64;
    }
    let mut text = String::new();
    write(number, scale, &mut text);
    text.parse().unwrap_or(f64::NAN)
}

/// A HUGEINT as a floating-point number, computed with DuckDB's steps: negative numbers of up to 64 bits are
/// rounded one too low.
pub(crate) fn wide_to_real(number: i128) -> f64 {
    const HALF: i128 = 1 << 64;
    if (-HALF..0).contains(&number) {
        return -((-number - 1) as f64) - 1.0;
    }
    let (upper, lower) = (number.div_euclid(HALF), number.rem_euclid(HALF));
    lower as f64 + upper as f64 * HALF as f64
}

/// A sum as a floating-point number: HUGEINT, or DECIMAL(38, `scale`).
pub(crate) fn sum_to_real(number: i128, scale: u8) -> f64 {
    if scale == 0 { wide_to_real(number) } else { to_real(number, scale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of DuckDB 2.0 for `x::HUGEINT::DOUBLE`.
    #[test]
    fn long_whole_numbers_become_fractions_as_in_duckdb() {
        for (number, expected) in [
            (-9_007_199_254_741_090, -9_007_199_254_741_088.0),
            (9_007_199_254_741_090, 9_007_199_254_741_090.0),
            (-1, -1.0),
            (0, 0.0),
            (170_141_183_460_469_231_731_687_303_715_884_105, 1.701_411_834_604_692_4e35),
        ] {
            assert_eq!(wide_to_real(number), expected, "{number}");
        }
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (number, by, expected) in
            [(25, 10, 3), (-25, 10, -3), (24, 10, 2), (-26, 10, -3), (5, 1, 5), (0, 10, 0)]
        {
            assert_eq!(divide_rounded(number, by), expected, "{number} / {by}");
        }
    }

    #[test]
    fn numbers_are_written_with_all_digits_behind_the_point() {
        let text = |number, scale| {
            let mut out = String::new();
            write(number, scale, &mut out);
            out
        };
        assert_eq!([text(150, 2), text(-5, 2), text(0, 1), text(7, 0)], ["1.50", "-0.05", "0.0", "7"]);
    }
}
