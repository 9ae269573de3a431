//! Casts of JSON, which are stricter than those of text: `"1.5"` is not an integer.

use serde_json::value::RawValue;

use super::cast::{CastFailure, CastMode, cast, cast_part};
use super::datum::Datum;
use super::json_normal::{is_whole_number, normalized};
use super::number_text::{parse_boolean, parse_decimal, parse_real, parse_whole, real_text};
use super::sql_type::SqlType;

/// Casts JSON text to a value; the mode applies to the elements of lists.
pub(crate) fn cast_json(text: &str, to: &SqlType, mode: CastMode) -> Result<Datum, CastFailure> {
    let text = text.trim();
    let first = text.as_bytes().first().copied().unwrap_or(b'x');
    match (first, to) {
        (b'n', _) => Ok(Datum::Null),
        (b'[', SqlType::List(item)) => {
            let items: Vec<&RawValue> =
                serde_json::from_str(text).map_err(|_| CastFailure::NotConvertible)?;
            let items = items.iter().map(|value| cast_part(cast_item(value.get(), item, mode), mode));
            items.collect::<Result<_, _>>().map(Datum::List)
        }
        (b'"', to) => {
            let string = serde_json::from_str::<String>(text).map_err(|_| CastFailure::NotConvertible)?;
            cast_string(string, to)
        }
        (b't' | b'f', SqlType::Boolean) => Ok(Datum::Boolean(first == b't')),
        (b't' | b'f', to) if to.is_number() => {
            cast(Datum::Boolean(first == b't'), &SqlType::Boolean, to, mode)
        }
        (b'-' | b'0'..=b'9', to) if to.is_number() || *to == SqlType::Boolean => cast_number(text, to, mode),
        _ => Err(CastFailure::NotConvertible),
    }
}

/// Casts an element of a list; text loses its quotes.
fn cast_item(text: &str, to: &SqlType, mode: CastMode) -> Result<Datum, CastFailure> {
    if text.starts_with('n') {
        return Ok(Datum::Null);
    }
    let found = match to {
        SqlType::Varchar => match (text.parse::<f64>(), serde_json::from_str(text)) {
            (_, Ok(string)) => Some(string),
            (Ok(number), _) if !is_whole_number(text) && number.is_finite() => {
                Some(real_text(number, &SqlType::Double))
            }
            _ => normalized(text),
        },
        SqlType::Json => normalized(text),
        _ => return cast_json(text, to, mode),
    };
    found.map(Datum::Text).ok_or(CastFailure::NotConvertible)
}

/// Casts the text of a JSON string.
fn cast_string(text: String, to: &SqlType) -> Result<Datum, CastFailure> {
    let found = match to {
        SqlType::Boolean => strict_boolean(&text).map(Datum::Boolean),
        SqlType::Double => strict_real(&text).map(Datum::Real),
        SqlType::Float => strict_real(&text).map(|number| Datum::Real(f64::from(number as f32))),
        SqlType::Decimal(digits, scale) => parse_decimal(&text, *digits, *scale).map(Datum::Decimal),
        SqlType::Date | SqlType::Time | SqlType::Timestamp => {
            return cast(Datum::Text(text), &SqlType::Varchar, to, CastMode::Fail);
        }
        to if to.is_whole() => strict_whole(&text, to).map(Datum::Whole),
        _ => None,
    };
    found.ok_or(CastFailure::NotConvertible)
}

/// Casts a JSON number: to decimals by its digits, otherwise via a 64-bit integer or a floating-point number;
/// a number that is neither is treated as text.
fn cast_number(text: &str, to: &SqlType, mode: CastMode) -> Result<Datum, CastFailure> {
    if let SqlType::Decimal(digits, scale) = to {
        let found = parse_decimal(text, *digits, *scale).map(Datum::Decimal);
        return found.ok_or(CastFailure::NotConvertible);
    }
    let real: f64 = text.parse().map_err(|_| CastFailure::NotConvertible)?;
    match (text.parse::<i64>(), text.parse::<u64>()) {
        (Ok(whole), _) => cast(Datum::Whole(whole.into()), &SqlType::BigInt, to, mode),
        (_, Ok(whole)) => cast(Datum::Whole(whole.into()), &SqlType::UBigInt, to, mode),
        _ if is_whole_number(text) || real.is_infinite() => cast_string(text.to_owned(), to),
        _ => cast(Datum::Real(real), &SqlType::Double, to, mode),
    }
}

fn strict_boolean(text: &str) -> Option<bool> {
    parse_boolean(text).filter(|_| !matches!(text, "1" | "0" | "y" | "Y" | "n" | "N"))
}

/// Whether a number is written with a `+`, a `_` or an unnecessary leading zero, and so is invalid.
fn has_loose_form(text: &str) -> bool {
    let bytes = text.trim_start().as_bytes();
    let has_zero = bytes.first() == Some(&b'0') && bytes.get(1).is_some_and(u8::is_ascii_digit);
    has_zero || bytes.first() == Some(&b'+') || text.contains('_')
}

fn strict_whole(text: &str, to: &SqlType) -> Option<i128> {
    let is_based = ["0x", "0X", "0b", "0B"].iter().any(|prefix| text.trim_start().starts_with(prefix));
    let has_fraction = !is_based && text.contains(['.', 'e', 'E']);
    parse_whole(text, to).filter(|_| !has_fraction && !has_loose_form(text))
}

fn strict_real(text: &str) -> Option<f64> {
    let ends_blank = text.ends_with(|last: char| last.is_ascii_whitespace());
    parse_real(text).filter(|_| !ends_blank && !has_loose_form(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, to: &SqlType) -> Option<String> {
        let datum = cast_json(text, to, CastMode::Fail).ok()?;
        super::super::cast::to_text(&datum, to)
    }

    /// Each with the result of DuckDB 2.0 for `TRY_CAST(to_json(text) AS type)`.
    #[test]
    fn strings_in_json_are_cast_strictly() {
        for (text, whole, real, boolean) in [
            ("1", Some("1"), Some("1.0"), None),
            ("007", None, None, None),
            ("-07", Some("-7"), Some("-7.0"), None),
            ("00", None, None, None),
            ("+1", None, None, None),
            (" 1", Some("1"), Some("1.0"), None),
            ("1 ", Some("1"), None, None),
            ("1.0", None, Some("1.0"), None),
            ("1e2", None, Some("100.0"), None),
            ("1_0", None, None, None),
            ("0x1E", Some("30"), None, None),
            ("0b1", Some("1"), None, None),
            ("+inf", None, None, None),
            ("-inf", None, Some("-inf"), None),
            ("", None, None, None),
            ("y", None, None, None),
            ("yes", None, None, Some("true")),
            ("T", None, None, Some("true")),
            ("FALSE", None, None, Some("false")),
            (" true", None, None, None),
        ] {
            let json = format!("\"{text}\"");
            assert_eq!(shown(&json, &SqlType::Integer).as_deref(), whole, "{json}");
            assert_eq!(shown(&json, &SqlType::Double).as_deref(), real, "{json}");
            assert_eq!(shown(&json, &SqlType::Boolean).as_deref(), boolean, "{json}");
        }
        assert_eq!(shown("\"+1_0\"", &SqlType::Decimal(5, 1)).as_deref(), Some("10.0"));
    }

    #[test]
    fn numbers_in_json_keep_the_digits_that_their_type_has() {
        for (text, to, expected) in [
            ("18446744073709551615", SqlType::HugeInt, Some("18446744073709551615")),
            ("100000000000000000000", SqlType::HugeInt, Some("100000000000000000000")),
            ("100000000000000000000", SqlType::Boolean, None),
            ("100000000000000000000", SqlType::Double, Some("1e+20")),
            ("1e25", SqlType::HugeInt, Some("10000000000000000905969664")),
            ("1e400", SqlType::Double, Some("inf")),
            ("1e400", SqlType::Float, Some("inf")),
            ("1e39", SqlType::Float, None),
            ("1.005", SqlType::Decimal(5, 2), Some("1.01")),
            ("2.5", SqlType::Integer, Some("2")),
            ("-1", SqlType::UBigInt, None),
            ("-0", SqlType::UBigInt, Some("0")),
        ] {
            assert_eq!(shown(text, &to).as_deref(), expected, "{text} {to}");
        }
    }

    #[test]
    fn elements_that_cannot_be_cast_are_null_where_that_is_wanted() {
        let list = SqlType::List(Box::new(SqlType::Integer));
        let items = cast_json(r#"[1, "x", null, "2"]"#, &list, CastMode::GiveNull);
        let expected = [Datum::Whole(1), Datum::Null, Datum::Null, Datum::Whole(2)];
        assert_eq!(items, Ok(Datum::List(expected.to_vec())));
        assert_eq!(cast_json(r#"[1, "x"]"#, &list, CastMode::Fail), Err(CastFailure::NotConvertible));
        let texts = SqlType::List(Box::new(SqlType::Varchar));
        let text = |text: &str| Datum::Text(text.to_owned());
        let expected = [text("1e+17"), text("100000000000000000000"), text("é"), text(r#"{"a":100.0}"#)];
        assert_eq!(
            cast_json(r#"[1e17, 100000000000000000000, "\u00e9", {"a" : 1e2}]"#, &texts, CastMode::Fail),
            Ok(Datum::List(expected.to_vec()))
        );
    }
}
