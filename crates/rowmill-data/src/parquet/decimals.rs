//! Decimal numbers as text, with all their digits.

/// Appends the number whose digits are those of `digits`, `scale` of them after the point.
///
/// Zeros at the end stay: they say how exact the number is. There is never an exponent.
pub(super) fn write_decimal(digits: &str, scale: i8, out: &mut String) {
    let digits = match digits.strip_prefix('-') {
        Some(rest) => {
            out.push('-');
            rest
        }
        None => digits,
    };
    let Ok(scale) = usize::try_from(scale) else {
        out.push_str(digits);
        if digits != "0" {
            for _ in 0..scale.unsigned_abs() {
                out.push('0');
            }
        }
        return;
    };
    let (whole, fraction) =
        digits.split_at_checked(digits.len().saturating_sub(scale)).unwrap_or((digits, ""));
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        out.push('.');
        for _ in fraction.len()..scale {
            out.push('0');
        }
        out.push_str(fraction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_digits_after_the_point_are_kept() {
        for (digits, scale, shown) in [
            ("1250", 2, "12.50"),
            ("-1250", 2, "-12.50"),
            ("0", 2, "0.00"),
            ("5", 2, "0.05"),
            ("-5", 3, "-0.005"),
            ("123", 3, "0.123"),
            ("7", 0, "7"),
            ("7", -2, "700"),
            ("0", -2, "0"),
            ("99999999999999999999999999999999999999", 10, "9999999999999999999999999999.9999999999"),
        ] {
            let mut out = String::new();
            write_decimal(digits, scale, &mut out);
            assert_eq!(out, shown);
        }
    }
}
