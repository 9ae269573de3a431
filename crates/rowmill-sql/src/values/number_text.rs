//! Numbers as text, in DuckDB's formats.

use super::decimal;
use super::sql_type::SqlType;

/// A parsed number: digits without a point, and the power of ten to multiply them by.
struct WrittenNumber {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl WrittenNumber {
    /// Parses `-12.5e3`, with `_` between digits.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches(is_blank);
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, plain_exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (whole, fraction) = (plain_digits(whole)?, plain_digits(fraction)?);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = exponent - i64::try_from(fraction.len()).ok()?;
        Some(Self { is_negative, digits: whole + &fraction, exponent })
    }

    /// The number with `scale` digits after the point, rounded; `None` if it is too large.
    fn scaled(&self, scale: u8) -> Option<i128> {
        let digits = self.digits.trim_start_matches('0');
        let shift = self.exponent + i64::from(scale);
        let kept = i64::try_from(digits.len()).ok()? + shift;
        if digits.is_empty() || kept < 0 {
            return Some(0);
        }
        if kept > 39 {
            return None;
        }
        let number = if shift >= 0 {
            let number: i128 = digits.parse().ok()?;
            number.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?
        } else {
            let (kept, cut) = digits.split_at_checked(usize::try_from(kept).ok()?)?;
            let number: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
            number.checked_add(i128::from(cut.as_bytes().first() >= Some(&b'5')))?
        };
        Some(if self.is_negative { -number } else { number })
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

fn plain_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number =
        !digits.is_empty() && digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Digits without the `_` that may separate them.
fn plain_digits(text: &str) -> Option<String> {
    let is_fine = !text.starts_with('_')
        && !text.ends_with('_')
        && !text.contains("__")
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    is_fine.then(|| text.replace('_', ""))
}

/// Parses an integer of a type; digits after the point are rounded.
pub(crate) fn parse_whole(text: &str, wanted: &SqlType) -> Option<i128> {
    let (least, greatest) = wanted.whole_range()?;
    let trimmed = text.trim_matches(is_blank);
    let in_base = |prefixes: [&str; 2], base| {
        let digits = prefixes.iter().find_map(|prefix| trimmed.strip_prefix(prefix))?;
        let is_digit = |letter: char| letter.is_digit(base);
        (!digits.is_empty() && digits.chars().all(is_digit))
            .then(|| i128::from_str_radix(digits, base).ok())?
    };
    let number = in_base(["0x", "0X"], 16)
        .or_else(|| in_base(["0b", "0B"], 2))
        .or_else(|| WrittenNumber::parse(trimmed)?.scaled(0))?;
    // Unsigned numbers have a minus sign only before zeros.
    let is_zero = text.strip_prefix('-').is_some_and(|digits| digits.bytes().all(|digit| digit == b'0'));
    let is_signed_zero = least == 0 && trimmed.starts_with('-') && !is_zero;
    (number >= least && number <= greatest && !is_signed_zero).then_some(number)
}

/// Parses a decimal number with a number of digits in total and after the point.
pub(crate) fn parse_decimal(text: &str, digits: u8, scale: u8) -> Option<i128> {
    let number = WrittenNumber::parse(text)?.scaled(scale)?;
    decimal::fits_digits(number, digits).then_some(number)
}

/// Parses a floating-point number.
pub(crate) fn parse_real(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_blank);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let value = match unsigned.to_ascii_lowercase().as_str() {
        "nan" => f64::NAN,
        "inf" | "infinity" => f64::INFINITY,
        _ => {
            let written = WrittenNumber::parse(unsigned)?;
            if written.is_negative || unsigned.starts_with('+') {
                return None;
            }
            unsigned.replace('_', "").parse().ok()?
        }
    };
    Some(if text.starts_with('-') { -value } else { value })
}

/// Parses `true` and `false` in the forms that DuckDB accepts.
pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// A floating-point number, with the fewest digits that distinguish it from its neighbours.
pub(crate) fn real_text(number: f64, wanted: &SqlType) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let exponential =
        if *wanted == SqlType::Float { format!("{:e}", number as f32) } else { format!("{number:e}") };
    let (mantissa, exponent) = exponential.split_once('e').unwrap_or((&exponential, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&power) {
        let plain = if *wanted == SqlType::Float { (number as f32).to_string() } else { number.to_string() };
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_duckdb_reads_them() {
        for (text, expected) in [
            ("5", Some(5)),
            (" 5 ", Some(5)),
            ("+5", Some(5)),
            ("5.7", Some(6)),
            ("-2.5", Some(-3)),
            (".5", Some(1)),
            (".4", Some(0)),
            ("5.", Some(5)),
            ("1e3", Some(1000)),
            ("1e-3", Some(0)),
            ("1.5e1", Some(15)),
            ("0x10", Some(16)),
            ("0b11", Some(3)),
            ("-0x10", None),
            ("1_000", Some(1000)),
            ("1__0", None),
            ("007", Some(7)),
            ("", None),
            ("5e", None),
            ("1,5", None),
            ("3000000000", None),
        ] {
            assert_eq!(parse_whole(text, &SqlType::Integer), expected, "{text}");
        }
    }

    #[test]
    fn fractions_are_written_as_duckdb_writes_them() {
        for (number, expected) in [
            (1.0, "1.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e20, "1e+20"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (0.000_012_34, "1.234e-05"),
            (-0.0, "-0.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(real_text(number, &SqlType::Double), expected);
        }
        assert_eq!(real_text(f64::from(0.1_f32), &SqlType::Float), "0.1");
        assert_eq!(parse_real("1_000.5"), Some(1000.5));
        assert_eq!(parse_real("-inf"), Some(f64::NEG_INFINITY));
        assert_eq!([parse_real("--1"), parse_real("1,5"), parse_real("")], [None, None, None]);
        assert_eq!(parse_decimal("12.345", 10, 2), Some(1235));
        assert_eq!(parse_decimal("12345678901", 10, 2), None);
    }
}
