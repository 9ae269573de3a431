//! Converts the JSON text of a field to a value of its column's type.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::date_text::{parse_date, parse_instant, parse_time, parse_timestamp};
use super::datum::Datum;
use super::encoding::encode_value;
use super::json::RawFields;
use super::json_normal::normalized;
use super::number_text::{parse_boolean, parse_decimal, parse_real};
use super::sql_type::SqlType;
use crate::table::SqliteColumnValue;

/// How text in a field is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextInterpretation {
    /// Text is always text, because the format has other types.
    AlwaysText,
    /// Text may represent any type, and null if it is empty, because the format has only text.
    AnyType,
}

/// The value of a field for a query; `None` if it does not have the column's type.
///
/// ```
/// use rowmill_sql::{TextInterpretation, SqliteColumnValue, SqlType, sqlite_value_from_json};
/// assert_eq!(sqlite_value_from_json("7", &SqlType::BigInt, TextInterpretation::AlwaysText), Some(SqliteColumnValue::Integer(7)));
/// assert_eq!(sqlite_value_from_json("\"n/a\"", &SqlType::BigInt, TextInterpretation::AnyType), None);
/// ```
#[must_use]
pub fn sqlite_value_from_json<'j>(
    json: &'j str,
    kind: &SqlType,
    text: TextInterpretation,
) -> Option<SqliteColumnValue<'j>> {
    let first = json.as_bytes().first().copied().unwrap_or(b'n');
    match (first, kind) {
        (b'n', _) => Some(SqliteColumnValue::Null),
        (b'"', SqlType::Varchar | SqlType::Other(_)) => {
            let decoded = decoded_string(json)?;
            let is_nothing = text == TextInterpretation::AnyType && decoded.is_empty();
            Some(if is_nothing { SqliteColumnValue::Null } else { SqliteColumnValue::Text(decoded) })
        }
        (b'-' | b'0'..=b'9', SqlType::BigInt) => json.parse().ok().map(SqliteColumnValue::Integer),
        (b'-' | b'0'..=b'9', SqlType::Double) => json.parse().ok().map(SqliteColumnValue::Real),
        (b't', SqlType::Boolean) => Some(SqliteColumnValue::Integer(1)),
        (b'f', SqlType::Boolean) => Some(SqliteColumnValue::Integer(0)),
        (b'"', SqlType::Json) if text == TextInterpretation::AnyType => {
            let decoded = decoded_string(json)?;
            if decoded.is_empty() {
                return Some(SqliteColumnValue::Null);
            }
            normalized(&decoded).map(|_| SqliteColumnValue::Text(decoded))
        }
        (_, SqlType::Json) => normalized(json).map(|text| SqliteColumnValue::Text(Cow::Owned(text))),
        (_, SqlType::Other(_)) => Some(SqliteColumnValue::Text(Cow::Borrowed(json))),
        (b'"', _) if text == TextInterpretation::AnyType => {
            let decoded = decoded_string(json)?;
            if decoded.is_empty() {
                return Some(SqliteColumnValue::Null);
            }
            read_cell(&decoded, kind).map(|datum| SqliteColumnValue::of_sqlite(encode_value(datum, kind)))
        }
        _ => read(json, kind).map(|datum| SqliteColumnValue::of_sqlite(encode_value(datum, kind))),
    }
}

/// The value of a field in a column that was declared as text: any value, as text; `None` for a string that
/// is not valid text.
#[must_use]
pub fn text_value(json: &str, text: TextInterpretation) -> Option<SqliteColumnValue<'_>> {
    match json.as_bytes().first() {
        None | Some(b'n') => Some(SqliteColumnValue::Null),
        Some(b'"') => sqlite_value_from_json(json, &SqlType::Varchar, text),
        Some(_) => normalized(json).map(|text| SqliteColumnValue::Text(Cow::Owned(text))),
    }
}

/// The contents of a JSON string; copied only if it has escapes.
fn decoded_string(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        return serde_json::from_str::<String>(json).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inside))
}

/// Parses the text of a cell in a text-only format.
fn read_cell(text: &str, kind: &SqlType) -> Option<Datum> {
    let is_json_number = || text.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    match kind {
        SqlType::Boolean => parse_boolean(text).map(Datum::Boolean),
        kind if kind.is_number() => {
            let plain = is_json_number() && serde_json::from_str::<&RawValue>(text).is_ok();
            plain.then(|| read(text, kind))?
        }
        SqlType::List(_) | SqlType::Struct(_) => read(text, kind),
        _ => read_string(text, kind),
    }
}

/// Parses the JSON text of a value.
fn read(json: &str, kind: &SqlType) -> Option<Datum> {
    let first = json.as_bytes().first()?;
    Some(match (first, kind) {
        (b'n', _) => Datum::Null,
        (_, SqlType::Json | SqlType::Other(_)) => Datum::Text(normalized(json)?),
        (b'[', SqlType::List(item)) => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let items = items.iter().map(|value| read(value.get(), item));
            Datum::List(items.collect::<Option<_>>()?)
        }
        (b'{', SqlType::Struct(fields)) => {
            let RawFields(found) = serde_json::from_str(json).ok()?;
            let value = |(name, kind): &(String, SqlType)| {
                let mut with_name = found.iter().filter(|(known, _)| known == name);
                match (with_name.next(), with_name.next()) {
                    (None, _) => Some(Datum::Null),
                    (Some((_, value)), None) => read(value.get(), kind),
                    // DuckDB rejects an object with a duplicate field.
                    (Some(_), Some(_)) => None,
                }
            };
            Datum::Struct(fields.iter().map(value).collect::<Option<_>>()?)
        }
        (b'"', _) => return read_string(&decoded_string(json)?, kind),
        (b't' | b'f', SqlType::Boolean) => Datum::Boolean(*first == b't'),
        (b'-' | b'0'..=b'9', SqlType::Double) => Datum::Real(json.parse().ok()?),
        (b'-' | b'0'..=b'9', SqlType::Float) => Datum::Real(f64::from(json.parse::<f32>().ok()?)),
        (b'-' | b'0'..=b'9', SqlType::Decimal(digits, scale)) => {
            Datum::Decimal(parse_decimal(json, *digits, *scale)?)
        }
        (b'-' | b'0'..=b'9', kind) => {
            let (least, greatest) = kind.whole_range()?;
            let number: i128 = json.parse().ok()?;
            (number >= least && number <= greatest).then_some(Datum::Whole(number))?
        }
        _ => return None,
    })
}

/// Parses a JSON string as a value of a type.
fn read_string(text: &str, kind: &SqlType) -> Option<Datum> {
    Some(match kind {
        SqlType::Varchar => Datum::Text(text.to_owned()),
        SqlType::Decimal(digits, scale) => Datum::Decimal(parse_decimal(text, *digits, *scale)?),
        SqlType::Date => Datum::Date(parse_date(text).ok()?),
        SqlType::Time if is_in_microseconds(text) => Datum::Time(parse_time(text).ok()?),
        SqlType::Timestamp if is_in_microseconds(text) => Datum::Timestamp(parse_timestamp(text).ok()?),
        SqlType::TimestampTz if is_in_microseconds(text) => Datum::Timestamp(parse_instant(text).ok()?),
        SqlType::Float | SqlType::Double => {
            let is_word = matches!(text, "NaN" | "Infinity" | "-Infinity");
            Datum::Real(parse_real(text).filter(|_| is_word)?)
        }
        _ => return None,
    })
}

/// Whether a fraction of a second has no digits beyond microseconds.
fn is_in_microseconds(text: &str) -> bool {
    let Some((_, fraction)) = text.split_once('.') else { return true };
    fraction.bytes().take_while(u8::is_ascii_digit).skip(6).all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_type_of_their_column_or_none() {
        let text = |text: &'static str| Some(SqliteColumnValue::Text(text.into()));
        for (json, kind, expected) in [
            ("1", SqlType::BigInt, Some(SqliteColumnValue::Integer(1))),
            ("1", SqlType::Double, Some(SqliteColumnValue::Real(1.0))),
            ("1.5", SqlType::BigInt, None),
            ("1", SqlType::Varchar, None),
            ("9223372036854775808", SqlType::BigInt, None),
            ("true", SqlType::Boolean, Some(SqliteColumnValue::Integer(1))),
            ("1", SqlType::Boolean, None),
            ("null", SqlType::BigInt, Some(SqliteColumnValue::Null)),
            (r#""12.50""#, SqlType::Decimal(10, 2), Some(SqliteColumnValue::Integer(1250))),
            (r#""a\nb""#, SqlType::Varchar, text("a\nb")),
            (r#""""#, SqlType::Varchar, text("")),
            (r#""2024-01-02""#, SqlType::Date, Some(SqliteColumnValue::Integer(19_724))),
            (r#""2024-01-02T00:00:00.000000001""#, SqlType::Timestamp, None),
            (r#""x""#, SqlType::Date, None),
            (r#"{"a": [1,  2.50]}"#, SqlType::Json, text(r#"{"a":[1,2.5]}"#)),
            (r#"["\ud83d"]"#, SqlType::Json, None),
        ] {
            assert_eq!(
                sqlite_value_from_json(json, &kind, TextInterpretation::AlwaysText),
                expected,
                "{json} {kind}"
            );
        }
    }

    #[test]
    fn cells_of_untyped_formats_are_read_as_what_their_column_is() {
        for (json, kind, expected) in [
            (r#""""#, SqlType::Varchar, Some(SqliteColumnValue::Null)),
            (r#""""#, SqlType::BigInt, Some(SqliteColumnValue::Null)),
            (r#""7""#, SqlType::BigInt, Some(SqliteColumnValue::Integer(7))),
            (r#""007""#, SqlType::BigInt, None),
            (r#""n/a""#, SqlType::BigInt, None),
            (r#""7""#, SqlType::Double, Some(SqliteColumnValue::Real(7.0))),
            (r#""true""#, SqlType::Boolean, Some(SqliteColumnValue::Integer(1))),
            (r#""7""#, SqlType::Varchar, Some(SqliteColumnValue::Text("7".into()))),
        ] {
            assert_eq!(
                sqlite_value_from_json(json, &kind, TextInterpretation::AnyType),
                expected,
                "{json} {kind}"
            );
        }
        assert_eq!(
            text_value("[1,  2]", TextInterpretation::AlwaysText),
            Some(SqliteColumnValue::Text("[1,2]".into()))
        );
        assert_eq!(text_value(r#""\ud83d""#, TextInterpretation::AlwaysText), None);
    }
}
