//! Decimal numbers: a whole number and the place of its point.

/// Ten to the power of a number of digits; the greatest power that fits for more.
pub(crate) fn power_of_ten(digits: u32) -> i128 {
    10_i128.checked_pow(digits).unwrap_or(i128::MAX)
}

/// Whether a number has no more than so many digits.
pub(crate) fn fits(number: i128, digits: u8) -> bool {
    number.unsigned_abs() < power_of_ten(u32::from(digits)).unsigned_abs()
}

/// Divides and rounds to the nearest, halves away from zero.
pub(crate) fn divide_rounded(number: i128, by: i128) -> i128 {
    let (quotient, rest) = (number / by, number % by);
    let up = rest.unsigned_abs() >= by.unsigned_abs().div_ceil(2);
    if up { quotient + number.signum() } else { quotient }
}

/// Moves the point: more digits behind it, or fewer with rounding. `None` where it grows too large.
pub(crate) fn rescale(number: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        number.checked_mul(power_of_ten(u32::from(to - from)))
    } else {
        Some(divide_rounded(number, power_of_ten(u32::from(from - to))))
    }
}

/// Writes a number with its point.
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

/// A number as the nearest number with a binary fraction.
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

#[cfg(test)]
mod tests {
    use super::*;

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
