//! Decimal numbers as text, with all their digits.

/// Appends the number with these `digits`, `scale` of them after the decimal point.
///
/// Trailing zeros are kept: they show the precision. There is never an exponent.
pub(super) fn write_decimal(digits: &str, scale: i8, out: &mut Vec<u8>) {
    let digits = match digits.strip_prefix('-') {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => digits,
    };
    let Ok(scale) = usize::try_from(scale) else {
        out.extend_from_slice(digits.as_bytes());
        if digits != "0" {
            for _ in 0..scale.unsigned_abs() {
                out.push(b'0');
            }
        }
        return;
    };
    let (whole, fraction) =
        digits.split_at_checked(digits.len().saturating_sub(scale)).unwrap_or((digits, ""));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole.as_bytes() });
    if scale > 0 {
        out.push(b'.');
        for _ in fraction.len()..scale {
            out.push(b'0');
        }
        out.extend_from_slice(fraction.as_bytes());
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
            let mut out = Vec::new();
            write_decimal(digits, scale, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), shown);
        }
    }
}
