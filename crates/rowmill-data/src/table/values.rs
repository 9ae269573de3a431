//! Converts JSON texts to the values of typed columns, or to none if something would be lost.

use jiff::Timestamp;
use jiff::civil::{self, Date};

use super::cells::decode_string;

/// Beyond this, a double cannot represent every integer.
pub(super) const EXACT_DOUBLES: u64 = 1 << 53;

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonShape {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

/// Determines the kind by the first character, because the text is known to be valid JSON.
pub(super) fn json_shape(json: &str) -> JsonShape {
    match json.as_bytes().first() {
        Some(b'{') => JsonShape::Object,
        Some(b'[') => JsonShape::List,
        Some(b'"') => JsonShape::Text,
        Some(b't' | b'f') => JsonShape::Bool,
        Some(b'n') | None => JsonShape::Null,
        Some(_) => JsonShape::Number,
    }
}

/// Whether a number is written without fraction and exponent.
pub(super) fn is_written_whole(json: &str) -> bool {
    !json.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// An integer, also if it is written as `3.0` or `1e3`.
pub(super) fn parse_whole(json: &str) -> Option<i64> {
    if is_written_whole(json) {
        return json.parse().ok();
    }
    let value = parse_double(json)?;
    (value.fract() == 0.0 && value.abs() <= EXACT_DOUBLES as f64).then_some(value as i64)
}

/// A number that a double can represent: finite, exact if it is an integer, and with all of its digits if it is not.
pub(super) fn parse_double(json: &str) -> Option<f64> {
    if is_written_whole(json) {
        let value: i64 = json.parse().ok()?;
        return (value.unsigned_abs() <= EXACT_DOUBLES).then_some(value as f64);
    }
    json.parse().ok().filter(|value: &f64| value.is_finite() && keeps_digits(json, *value))
}

/// Whether a double has all digits of the number that it was read from. Every number of up to fifteen digits comes back
/// from a double of normal size as it was; of longer ones those that a double is written as.
fn keeps_digits(json: &str, value: f64) -> bool {
    const ALWAYS_KEPT: usize = 15;
    let written = json.split(['e', 'E']).next().unwrap_or_default();
    let is_short = written.bytes().filter(u8::is_ascii_digit).count() <= ALWAYS_KEPT;
    (is_short && value.is_normal()) || Significand::read(json) == Significand::read(&format!("{value:e}"))
}

/// The digits of a number without zeros at either end, and the power of ten of the first one.
#[derive(Debug, PartialEq)]
struct Significand {
    digits: String,
    power: i64,
}

impl Significand {
    fn read(number: &str) -> Option<Self> {
        let number = number.trim_start_matches('-');
        let (written, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self { digits: String::new(), power: 0 });
        }
        let first = i64::try_from(whole.len()).ok()? - i64::try_from(all.len() - digits.len()).ok()?;
        let power = power.parse::<i64>().ok()?.checked_add(first)?;
        Some(Self { digits: digits.trim_end_matches('0').to_owned(), power })
    }
}

/// The days from 1970-01-01 to a date in the format `2026-11-17`.
pub(super) fn parse_date_days(json: &str) -> Option<i32> {
    let text = decode_string(json)?;
    let dashes = |at: usize| text.as_bytes().get(at) == Some(&b'-');
    if text.len() != 10 || !dashes(4) || !dashes(7) {
        return None;
    }
    let date: Date = text.parse().ok()?;
    let since = date.since(civil::date(1970, 1, 1)).ok()?;
    Some(since.get_days())
}

/// The microseconds from 1970 to a time in RFC 3339 format with its offset.
pub(super) fn parse_timestamp_micros(json: &str) -> Option<i64> {
    let text = decode_string(json)?;
    // A leap second would be shifted, and the name of a time zone would be lost.
    if text.contains(":60") || text.contains('[') {
        return None;
    }
    let time: Timestamp = text.parse().ok()?;
    (time.as_nanosecond() % 1000 == 0).then(|| time.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_only_where_nothing_is_lost() {
        for (json, as_whole, as_double) in [
            ("7", Some(7), Some(7.0)),
            ("-9223372036854775808", Some(i64::MIN), None),
            ("9223372036854775808", None, None),
            ("9007199254740993", Some(9_007_199_254_740_993), None),
            ("3.0", Some(3), Some(3.0)),
            ("1e3", Some(1000), Some(1000.0)),
            ("0.5", None, Some(0.5)),
            ("1e400", None, None),
            ("1e-400", None, None),
            ("0.0", Some(0), Some(0.0)),
            ("-0.10", None, Some(-0.1)),
            ("0.30000000000000004", None, Some(0.300_000_000_000_000_04)),
            ("1.2345678901234568E+25", None, Some(1.234_567_890_123_456_8e25)),
            ("5e-324", None, Some(5e-324)),
            ("100000000000000000.5", None, None),
            ("9007199254740990.6", None, None),
            ("12345678901234567890123456.789", None, None),
            ("0.12345678901234567890", None, None),
        ] {
            assert_eq!((parse_whole(json), parse_double(json)), (as_whole, as_double), "{json}");
        }
    }

    #[test]
    fn dates_and_times_are_taken_only_where_nothing_is_lost() {
        for (json, expected) in [
            ("\"1970-01-02\"", Some(1)),
            ("\"1969-12-31\"", Some(-1)),
            ("\"2026-11-17\"", Some(20_774)),
            ("\"2026-02-30\"", None),
            ("\"20261117\"", None),
            ("\"soon\"", None),
            ("5", None),
        ] {
            assert_eq!(parse_date_days(json), expected, "{json}");
        }
        for (json, expected) in [
            ("\"1970-01-01T00:00:01Z\"", Some(1_000_000)),
            ("\"1970-01-01T01:00:00.000001+01:00\"", Some(1)),
            ("\"1970-01-01T00:00:00.0000001Z\"", None),
            ("\"1970-01-01T00:00:00\"", None),
            ("\"1972-06-30T23:59:60Z\"", None),
            ("\"2026-11-17\"", None),
        ] {
            assert_eq!(parse_timestamp_micros(json), expected, "{json}");
        }
    }
}
